"""Directories that belong to tables, and directories that are still to be deleted.

No other table may be inside of a table's directory, and LOAD DATA takes no files from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.table import TableName
from acidsql.errors import CatalogError


@dataclass(frozen=True, slots=True)
class PendingCleanup:
    """The directory of a dropped table, or of a table that never existed, which is to be deleted.

    The store keeps it in COMPACTION_QUEUE, in state r.

    Attributes:
        id: The number of the entry.
        table: The table's name.
        location: The directory.
        until: Another table has replaced this one. The directory stays for readers until all
            transactions up to this number have ended. 0: it may be deleted now.
    """

    id: int
    table: TableName
    location: str
    until: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    """A table and its directory. The table may be dropped, with files that are not deleted yet.

    ``has_readers``: the directory of a dropped table may not be deleted yet.
    """

    table: TableName
    location: str
    is_dropped: bool = False
    has_readers: bool = False

    def refusal(self, location: str) -> CatalogError:
        """Make the error LOCATION_ALREADY_EXISTS, for another table whose location overlaps this
        directory."""
        dropped = ", which was dropped and whose files are still to be deleted"
        return CatalogError(
            f"The location '{location}' overlaps '{self.location}' of {self.table}"
            f"{dropped if self.is_dropped else ''}.",
            condition="LOCATION_ALREADY_EXISTS",
            sqlstate="42710",
            location=location,
        )
