"""The entries of a catalog, and tables that are not ACID tables, as queries read them."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of the lines of a text file.

    Attributes:
        field_end: The character between two fields.
        null: The text that stands for NULL.
    """

    field_end: str = "\x01"
    null: str = "\\N"


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A plain or external table of Hive's, a materialized view, or a table of another engine.

    Attributes:
        name: The name of the table.
        table: The columns and the location; None if acidsql cannot read the table.
        partitions: The partitions, which may lie anywhere; only ``with_partitions`` finds them.
        text: How to read the text files of the table.
        refusal: Why acidsql cannot read the table, and what to do.
        is_external: Whether DROP leaves the files, because they do not belong to the table.
    """

    name: TableName
    table: Table | None = None
    partitions: tuple[Partition, ...] = ()
    text: TextFormat = TextFormat()
    refusal: str = ""
    is_external: bool = False

    def need_table(self) -> Table:
        """Return the field ``table``, for a query. Raises UnsupportedError, with the ``refusal``,
        if it is None, as acidsql cannot read the table."""
        if self.table is None:
            raise self.refused_error()
        return self.table

    def refused_error(self) -> UnsupportedError:
        """Make the error UNSUPPORTED_FEATURE.FOREIGN_TABLE of a statement that acidsql cannot run
        on this table: the table's name, then ``refusal``, or, if that is "", that the table is no
        ACID table and can only be read."""
        reason = self.refusal or (
            "is no ACID table, so acidsql only reads it in queries. For all else use Hive, or a "
            "Spark session with Hive support."
        )
        return UnsupportedError(
            f"{self.name} {reason}", condition="UNSUPPORTED_FEATURE.FOREIGN_TABLE"
        )


# The entry of a name in a metastore: an ACID table, a view (a ``Table`` with ``view``), or another
# table; None: the metastore has no such name.
CatalogEntry = Table | ForeignTable | None


def acid_table(entry: CatalogEntry) -> Table | None:
    """Return the entry itself if it is an ACID table, else None."""
    return entry if isinstance(entry, Table) and entry.view is None else None


def view_of(entry: CatalogEntry) -> Table | None:
    """Return the entry itself if it is a view, else None."""
    return entry if isinstance(entry, Table) and entry.view is not None else None
