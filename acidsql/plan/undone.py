"""Which changes RESTORE and REVERT TRANSACTION undo in a table."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.time_travel import AsOf


@dataclass(frozen=True, slots=True)
class Since:
    """The net changes of a table since an older version."""

    as_of: AsOf


@dataclass(frozen=True, slots=True)
class OfVersion:
    """The changes of one version.

    Attributes:
        version: The write id.
        txn_id: The transaction.
        skips_conflicts: Leave out the rows that were changed again since.
    """

    version: int
    txn_id: int
    skips_conflicts: bool = False


Undone = Since | OfVersion
