"""The changes that RESTORE and REVERT TRANSACTION undo.

A version of a table is a write id. ``KEYS``: the parts of a row id, and the partition. The state
table is a table beside a target of AUTO CDC; RESTORE of the target restores it, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.acid.write_ids import NewWriteIds, ValidWriteIdList
from acidsql.errors import TxnError
from acidsql.metastore.older_versions import require_versions, state_write_ids
from acidsql.plan.standins.changes_to_undo import ChangesOfVersion, ChangesSince, ChangesToUndo
from acidsql.statements.context.family import Context
from acidsql.statements.context.time_travel import PointInTime, TimeTravel
from acidsql.statements.queries.changes import ChangeFeed
from acidsql.statements.queries.reverted import refuse_reverted
from acidsql.statements.queries.skipped_conflicts import exclude_conflicts, unknown_twin_reason
from acidsql.storage.event_records import WRITE_ID
from acidsql.storage.reading.change_columns import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    DELETE,
    change_keys,
)
from acidsql.txn import Snapshot

_MAX_NAMED = 10  # an error names at most so many versions


class UndoneChanges:
    """Reads the changes that RESTORE and REVERT TRANSACTION of one session undo."""

    def __init__(self, context: Context, feed: ChangeFeed, travel: TimeTravel) -> None:
        self._metastore, self._transactions = context.metastore, context.transactions
        self._feed, self._travel = feed, travel

    def rows(self, table: Table, to_undo: ChangesToUndo, snapshot: Snapshot) -> DataFrame:
        """Return the changes that RESTORE (all since a version or time, net) or REVERT (those of
        one version) undoes, lazily. To find conflicts of REVERT, this may run jobs.

        Returns:
            ``_change_type`` (``insert`` or ``delete``), ``_commit_version`` (the write id), the row
            id in the columns ``KEYS``, the table's columns and its partition columns.

        Raises:
            TxnError: REVERT_CONFLICT: rows of the version were changed again since, or it was
                reverted already. Or the transaction's snapshot does not see the version.
            VersionNotFoundError: There is no such version or time.
            UnsupportedError: The metastore keeps no versions.
        """
        require_versions(self._metastore, table.name)
        visible = self._feed.visible_write_ids(table, snapshot)
        if isinstance(to_undo, ChangesSince):
            ids_before = self._ids_at_older_version(table, to_undo, snapshot).intersect(visible)
            return self._feed.rows(
                table, NewWriteIds(ids_before, visible), snapshot, net=True, is_keyed=True
            )
        version = to_undo.version
        if not visible.is_valid(version):
            raise TxnError(
                f"The transaction's snapshot does not see version {version} of {table.name}. "
                "Begin anew.",
                table=table.name,
            )
        versions, current = self._metastore.versions(table.name), self._transactions.current
        own_changes = (0, []) if current is None else (current.id, current.table_changes())
        refuse_reverted(to_undo.txn_id, table.name, versions, *own_changes)
        ids_before, ids_after = visible.up_to(version - 1), visible.up_to(version)
        rows = self._feed.rows(table, NewWriteIds(ids_before, ids_after), snapshot, is_keyed=True)
        later = NewWriteIds(ids_after, visible)
        if not later.has_any(version + 1, visible.high_water_mark):
            return rows
        later_changes = self._feed.rows(table, later, snapshot, is_keyed=True)
        changed_again = later_changes.where(
            f"{CHANGE_TYPE} = '{DELETE}' AND {WRITE_ID} = {version}L"
        )
        return self._without_conflicts(table, to_undo, rows, changed_again)

    def _ids_at_older_version(
        self, table: Table, to_undo: ChangesSince, snapshot: Snapshot
    ) -> ValidWriteIdList:
        """Return the write ids that the table showed at the version or time of RESTORE. If
        ``to_undo.target`` is given, the table is its state table, and the version or time is the
        target's."""
        when = PointInTime(to_undo.version, to_undo.timestamp_ms)
        if (target := to_undo.target) is None:
            return self._travel.write_ids(table, when, snapshot)
        return state_write_ids(
            self._feed.visible_write_ids(table, snapshot),
            self._metastore.versions(table.name),
            self._travel.write_ids(target, when, snapshot),
            self._metastore.versions(target.name),
        )

    def _without_conflicts(
        self, table: Table, to_undo: ChangesOfVersion, rows: DataFrame, changed_again: DataFrame
    ) -> DataFrame:
        """Return the changes of a version, lazily, except changes of rows that were changed again.
        A job counts the rows that were changed again.

        Args:
            table: The table.
            to_undo: The version.
            rows: The changes of the version.
            changed_again: The rows that the version inserted and that were deleted since.

        Raises:
            TxnError: REVERT_CONFLICT: there are rows that were changed again, and the statement
                does not skip them, or it is unknown which rows they replaced.
        """
        counts = (
            changed_again.groupBy(COMMIT_VERSION).count().orderBy(COMMIT_VERSION).limit(_MAX_NAMED)
        )
        conflicts = [(int(row[0]), int(row[1])) for row in counts.collect()]
        if not conflicts:
            return rows
        keys = change_keys(table, None)
        if not to_undo.skips_conflicts:
            advice = "REVERT TRANSACTION … SKIP CONFLICTS keeps them as they are."
        elif not keys:
            advice = (
                "SKIP CONFLICTS needs the table property acidsql.key (names of columns), which "
                "tells the rows that these had replaced."
            )
        else:
            versions = self._metastore.versions(table.name)
            updated = sum(
                version.change.updated
                for version in versions
                if version.write_id == to_undo.version
            )
            reason = unknown_twin_reason(rows, changed_again, keys, updated)
            if reason is None:
                return exclude_conflicts(rows, changed_again, keys)
            advice = (
                f"SKIP CONFLICTS cannot tell which rows they had replaced: {reason}. Undo it by "
                f"hand: acid.changes('{table.name}', {to_undo.version}, {to_undo.version}) shows "
                "what the version changed."
            )
        raise self._conflict_error(table, to_undo, conflicts, advice)

    def _conflict_error(
        self,
        table: Table,
        to_undo: ChangesOfVersion,
        conflicts: Sequence[tuple[int, int]],
        advice: str,
    ) -> TxnError:
        """Return the error that rows of a version were changed again. ``conflicts``: pairs of a
        later version and how many of the rows it changed; ``advice``: what the user can do."""
        versions = {version.write_id: version for version in self._metastore.versions(table.name)}

        def author(write_id: int) -> str:
            version = versions.get(write_id)
            return f" ({version.change.operation} by {version.user})" if version else ""

        changed_by = ", ".join(
            f"{rows} by version {number}{author(number)}" for number, rows in conflicts
        )
        return TxnError(
            f"Rows of version {to_undo.version} of {table.name} were changed again since: "
            f"{changed_by}. {advice}",
            condition="REVERT_CONFLICT",
            sqlstate="40001",
            table=table.name,
        )
