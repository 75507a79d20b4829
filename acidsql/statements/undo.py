"""The changes that RESTORE and REVERT TRANSACTION undo."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.acid.write_ids import NewWriteIds, ValidWriteIdList
from acidsql.errors import TxnError
from acidsql.metastore.older_versions import beside_version
from acidsql.plan.changes_to_undo import ChangesOfVersion, ChangesSince, ChangesToUndo
from acidsql.statements.changes import ChangeFeed
from acidsql.statements.family import Context
from acidsql.statements.reverted import refuse_reverted
from acidsql.statements.skipped_conflicts import unknown_twin, without_conflicts
from acidsql.statements.time_travel import TimeTravel, When, need_versions
from acidsql.storage.event_records import WRITE_ID
from acidsql.storage.reading.change_columns import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    DELETE,
    change_keys,
)
from acidsql.txn import Snapshot

_NAMED = 10  # versions that an error names


class UndoneChanges:
    """Reads the changes that statements of one session undo."""

    def __init__(self, context: Context, feed: ChangeFeed, travel: TimeTravel) -> None:
        self._metastore, self._transactions = context.metastore, context.transactions
        self._feed, self._travel = feed, travel

    def rows(self, table: Table, undone: ChangesToUndo, snapshot: Snapshot) -> DataFrame:
        """The changes that a statement undoes, as ``keyed_changes`` gives them.

        Raises:
            TxnError: REVERT_CONFLICT: rows of the version were changed again since, or it was
                reverted already.
        """
        need_versions(self._metastore, table.name)
        seen = self._feed.visible_write_ids(table, snapshot)
        if isinstance(undone, ChangesSince):
            before = self._before(table, undone, snapshot).within(seen)
            return self._feed.rows(
                table, NewWriteIds(before, seen), snapshot, net=True, is_keyed=True
            )
        version = undone.version
        if not seen.is_valid(version):
            raise TxnError(
                f"The transaction's snapshot does not see version {version} of {table.name}. "
                "Begin anew.",
                table=table.name,
            )
        versions, current = self._metastore.versions(table.name), self._transactions.current
        own = (0, []) if current is None else (current.id, current.changed())
        refuse_reverted(undone.txn_id, table.name, versions, *own)
        before, after = seen.up_to(version - 1), seen.up_to(version)
        rows = self._feed.rows(table, NewWriteIds(before, after), snapshot, is_keyed=True)
        later = NewWriteIds(after, seen)
        if not later.has_any(version + 1, seen.high_water_mark):
            return rows
        since = self._feed.rows(table, later, snapshot, is_keyed=True)
        again = since.where(f"{CHANGE_TYPE} = '{DELETE}' AND {WRITE_ID} = {version}L")
        return self._without_conflicts(table, undone, rows, again)

    def _before(self, table: Table, undone: ChangesSince, snapshot: Snapshot) -> ValidWriteIdList:
        """What the table, or the state table, showed at the older version."""
        when = When(undone.version, undone.timestamp_ms)
        if (target := undone.target) is None:
            return self._travel.write_ids(table, when, snapshot)
        return beside_version(
            self._feed.visible_write_ids(table, snapshot),
            self._metastore.versions(table.name),
            self._travel.write_ids(target, when, snapshot),
            self._metastore.versions(target.name),
        )

    def _without_conflicts(
        self, table: Table, undone: ChangesOfVersion, rows: DataFrame, again: DataFrame
    ) -> DataFrame:
        """The changes of a version without those of rows that were changed again.

        Args:
            table: The table.
            undone: The version.
            rows: Its changes.
            again: The rows that it inserted, and that were deleted since.

        Raises:
            TxnError: REVERT_CONFLICT: there are such rows. They are not to be skipped, or nothing
                tells which rows they replaced.
        """
        counts = again.groupBy(COMMIT_VERSION).count().orderBy(COMMIT_VERSION).limit(_NAMED)
        conflicts = [(int(row[0]), int(row[1])) for row in counts.collect()]
        if not conflicts:
            return rows
        keys = change_keys(table, None)
        if not undone.skips_conflicts:
            advice = "REVERT TRANSACTION … SKIP CONFLICTS keeps them as they are."
        elif not keys:
            advice = (
                "SKIP CONFLICTS needs the table property acidsql.key (names of columns), which "
                "tells the rows that these had replaced."
            )
        else:
            noted = self._metastore.versions(table.name)
            updated = sum(
                version.change.updated for version in noted if version.write_id == undone.version
            )
            reason = unknown_twin(rows, again, keys, updated)
            if reason is None:
                return without_conflicts(rows, again, keys)
            advice = (
                f"SKIP CONFLICTS cannot tell which rows they had replaced: {reason}. Undo it by "
                f"hand: acid.changes('{table.name}', {undone.version}, {undone.version}) shows "
                "what the version changed."
            )
        raise self._conflict(table, undone, conflicts, advice)

    def _conflict(
        self,
        table: Table,
        undone: ChangesOfVersion,
        conflicts: Sequence[tuple[int, int]],
        advice: str,
    ) -> TxnError:
        noted = {version.write_id: version for version in self._metastore.versions(table.name)}

        def doer(number: int) -> str:
            version = noted.get(number)
            return f" ({version.change.operation} by {version.user})" if version else ""

        by = ", ".join(f"{rows} by version {number}{doer(number)}" for number, rows in conflicts)
        return TxnError(
            f"Rows of version {undone.version} of {table.name} were changed again since: {by}. "
            f"{advice}",
            condition="REVERT_CONFLICT",
            sqlstate="40001",
            table=table.name,
        )
