"""Which table owns a directory, and which directories are still to be deleted.

No other table may lie in an owned directory, and LOAD DATA takes no files from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.table import TableName
from acidsql.errors import CatalogError


@dataclass(frozen=True, slots=True)
class PendingCleanup:
    """A directory of a dropped, or never made, table to be deleted (COMPACTION_QUEUE, state r)."""

    id: int
    table: TableName
    location: str


@dataclass(frozen=True, slots=True)
class Owner:
    """A table with its directory, or a dropped one whose files are still to be deleted."""

    table: TableName
    location: str
    is_dropped: bool = False

    def refusal(self, location: str) -> CatalogError:
        """The error of another table that would lie there."""
        dropped = ", which was dropped and whose files are still to be deleted"
        return CatalogError(
            f"The location '{location}' overlaps '{self.location}' of {self.table}"
            f"{dropped if self.is_dropped else ''}.",
            condition="LOCATION_ALREADY_EXISTS",
            sqlstate="42710",
            location=location,
        )
