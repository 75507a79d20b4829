"""What a name means in a metastore; tables that are not ACID tables, as queries need them."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text file's lines are to be read.

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
        name: Its name.
        table: Its columns and its place; None if acidsql cannot read it.
        partitions: Its partitions, which may lie anywhere; only ``with_partitions`` finds them.
        text: How to read its text files.
        refusal: Why acidsql cannot read it, and what to do.
        is_external: Its files are not its own: DROP leaves them.
    """

    name: TableName
    table: Table | None = None
    partitions: tuple[Partition, ...] = ()
    text: TextFormat = TextFormat()
    refusal: str = ""
    is_external: bool = False

    def need_table(self) -> Table:
        """The table to read. Raises UnsupportedError if acidsql cannot read it."""
        if self.table is None:
            raise self.refused()
        return self.table

    def refused(self) -> UnsupportedError:
        """The error of a statement that acidsql cannot run on it."""
        why = self.refusal or (
            "is no ACID table, so acidsql only reads it in queries. For all else use Hive, or a "
            "Spark session with Hive support."
        )
        return UnsupportedError(f"{self.name} {why}", condition="UNSUPPORTED_FEATURE.FOREIGN_TABLE")


# What a name means in a metastore: an ACID table, a view (a ``Table`` with ``view``), another
# table; None: nothing.
Found = Table | ForeignTable | None


def acid_table(entry: Found) -> Table | None:
    """The ACID table, if the name is that of one."""
    return entry if isinstance(entry, Table) and entry.view is None else None


def view_of(entry: Found) -> Table | None:
    """The view, if the name is that of one."""
    return entry if isinstance(entry, Table) and entry.view is not None else None
