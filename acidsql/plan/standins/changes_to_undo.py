"""The changes of a table that RESTORE and REVERT TRANSACTION undo."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.table import Table


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """The net changes of a table since an older version, or since a time.

    Attributes:
        version: The write id; None: ``timestamp_ms`` says when.
        timestamp_ms: The time, in milliseconds since the epoch.
        target: The table whose version is meant, if the changes are those of the state table beside
            it; None: the version is the table's own.
    """

    version: int | None
    timestamp_ms: int | None
    target: Table | None = None


@dataclass(frozen=True, slots=True)
class ChangesOfVersion:
    """The changes of one version.

    Attributes:
        version: The write id.
        txn_id: The transaction.
        skips_conflicts: Rows that were changed again since are left out.
    """

    version: int
    txn_id: int
    skips_conflicts: bool = False


ChangesToUndo = ChangesSince | ChangesOfVersion
