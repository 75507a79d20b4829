"""The changes of a table between two versions or times: ``Session.changes``, ``table_changes``.

A version is a write id of the table. ``ADDED`` are the columns that changes have behind the
table's: ``_change_type``, the version, time and transaction of the commit, and ``row__id``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Table
from acidsql.acid.write_ids import NewWriteIds, ValidWriteIdList
from acidsql.errors import VersionNotFoundError
from acidsql.metastore.older_versions import require_files_kept, require_versions
from acidsql.metastore.versions import Version
from acidsql.plan.undo import need_row_ids
from acidsql.sql.queries.table_changes import TableChanges
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText
from acidsql.statements.context.time_travel import PointInTime, TimeTravel
from acidsql.storage.columns import literal, quote
from acidsql.storage.event_records import VERSION
from acidsql.storage.files.gone import check_after_block
from acidsql.storage.reading.change_columns import (
    ADDED,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    TXN_ID,
    change_keys,
    refuse_reserved_names,
    same_key_message,
)
from acidsql.storage.reading.changes import ChangesRequest, changes, keyed_changes, no_changes
from acidsql.storage.reading.net_changes import drop_equal_pairs
from acidsql.storage.spark.local_rows import local_numbers
from acidsql.storage.spark.session import jvm
from acidsql.txn import Snapshot

Moment = int | date | str  # a version or a time
_NAMED = 10  # versions that an error names
_DELETED, _INSERTED = "__acidsql_deleted", "__acidsql_inserted"


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The range of changes to show. Both ends belong to the range.

    Attributes:
        start: The first version or time.
        end: The last version or time; None: until now.
        keys: The columns that make a deleted row and a new row the same row; None: those of the
            table property ``acidsql.key``, if the table has it.
        net: Show only the differences between the start and the end.
    """

    start: PointInTime
    end: PointInTime | None = None
    keys: Sequence[str] | None = None
    net: bool = False


class ChangeFeed:
    """Reads the changes of one session's tables."""

    def __init__(self, context: Context, travel: TimeTravel) -> None:
        self._spark, self._metastore = context.spark, context.metastore
        self._transactions, self._catalog = context.transactions, context.catalog
        self._travel = travel

    def changes_between(
        self,
        table: Table,
        start: Moment,
        end: Moment | None,
        keys: Sequence[str] | None,
        *,
        net: bool,
    ) -> DataFrame:
        """Return the changes of a table from a version or time until another one, lazily: a row for
        each inserted or deleted row, or image of an updated one, with its version, time and
        transaction. Both ends belong to the range. Its files are listed now.

        Args:
            table: The table.
            start: The first version or time of the range.
            end: The last version or time; None: until now, with the changes of the open
                transaction.
            keys: The columns that make a deleted and a new row two images of one update; None:
                those of the property ``acidsql.key``, if there is one.
            net: Only what is different in the end.

        Raises:
            SettingError: A version is negative.
            VersionNotFoundError: There is no such version or time, or the range begins after its
                end.
            UnsupportedError: The table is insert-only, or the metastore does not keep versions.
            SnapshotTooOldError: Files of the range were deleted.
        """
        end_moment = None if end is None else self._resolve_moment(end)
        change_range = ChangeRange(self._resolve_moment(start), end_moment, keys, net)
        return self._changes_in_range(
            table, change_range, self._transactions.read_snapshot([table.name])
        )

    def rows_of_call(
        self, table: Table, call: TableChanges, snapshot: Snapshot, statement_text: StatementText
    ) -> DataFrame:
        """Return the rows of a call of ``table_changes`` in a query, lazily. Its arguments are
        evaluated now. Without an end, the range ends with what ``snapshot`` shows.

        Raises:
            SqlError: Spark's error about an argument, or an argument is neither version nor time.
            VersionNotFoundError: There is no such version or time, or the range is empty.
            UnsupportedError: The table is insert-only, or the metastore does not keep versions.
        """
        start = self._travel.resolve_expression(call.start, statement_text)
        end = (
            None if call.end is None else self._travel.resolve_expression(call.end, statement_text)
        )
        return self._changes_in_range(table, ChangeRange(start, end), snapshot)

    def no_rows(self, table: Table) -> DataFrame:
        """Return a DataFrame without rows in the columns that a call of ``table_changes`` has."""
        return self._add_commit_columns(no_changes(self._spark, table), table, ())

    def _resolve_moment(self, moment: Moment) -> PointInTime:
        """Return the point in time of a version or a time. Raise SettingError for a negative
        version, VersionNotFoundError for a text that is no time."""
        if isinstance(moment, int):
            when = self._travel.resolve_arguments(moment, None)
        else:
            when = self._travel.resolve_arguments(None, moment)
        assert when is not None
        return when

    def _changes_in_range(
        self, table: Table, change_range: ChangeRange, snapshot: Snapshot
    ) -> DataFrame:
        """Return the changes of a table in a range, lazily: the table's columns, then ``ADDED``. A
        deletion and an insertion of one key become the two images of an update; without keys they
        stay as they are. Raise VersionNotFoundError, UnsupportedError or SnapshotTooOldError if the
        range cannot be read."""
        keys = change_keys(table, change_range.keys)
        need_row_ids(table)
        refuse_reserved_names(table)
        versions = self._metastore.versions(table.name)
        creating_version = self._creating_version(table, change_range, versions)
        new_write_ids = self.new_write_ids(table, change_range, snapshot, creating_version)
        rows = self.rows(
            table, new_write_ids, snapshot, net=change_range.net, creating_version=creating_version
        )
        if change_range.net:
            rows = drop_equal_pairs(rows, table)
        if keys:
            rows = _pair_updates(rows, table, keys, by_version=not change_range.net)
        shown_versions = [
            version
            for version in versions
            if version.write_id in new_write_ids or version.write_id == creating_version
        ]
        return self._add_commit_columns(rows, table, shown_versions)

    def _creating_version(
        self, table: Table, change_range: ChangeRange, versions: Sequence[Version]
    ) -> int | None:
        """Return the version that created a table, if the range begins with this version, or at the
        very time of its commit. Otherwise return None: the rows of that version are then no
        changes. Raise UnsupportedError if the metastore does not keep versions."""
        require_versions(self._metastore, table.name)
        first, start = self._metastore.first_version(table.name), change_range.start
        if start.version is not None:
            return first if first == start.version > 0 else None
        times = {version.committed_ms for version in versions if version.write_id == first}
        return first if start.timestamp_ms in times else None

    def new_write_ids(
        self,
        table: Table,
        change_range: ChangeRange,
        snapshot: Snapshot,
        creating_version: int | None = None,
    ) -> NewWriteIds:
        """Return two lists of visible write ids: those before a range, and those until its end. The
        ``creating_version``, if there is one, counts as before.

        Raises:
            VersionNotFoundError: There is no such version or time, or the range is empty.
            UnsupportedError: The metastore does not keep versions.
        """
        require_versions(self._metastore, table.name)
        start, visible = change_range.start, self.visible_write_ids(table, snapshot)
        if creating_version is not None:
            before = visible.up_to(creating_version)
        elif start.version is not None:
            if not 1 <= start.version <= visible.high_water_mark:
                raise VersionNotFoundError(
                    f"{table.name} has no version {start.version}: it has the versions 1 to "
                    f"{visible.high_water_mark}.",
                    table=table.name,
                    version=start.version,
                )
            before = visible.up_to(start.version - 1)
        else:
            assert start.timestamp_ms is not None
            earlier = PointInTime(timestamp_ms=start.timestamp_ms - 1)
            before = self._travel.write_ids(table, earlier, snapshot)
        after = visible
        if change_range.end is not None:
            after = self._travel.write_ids(table, change_range.end, snapshot).intersect(visible)
        if not _is_in_order(change_range):
            raise VersionNotFoundError(
                f"The range begins after its end: {_moment_text(start)} is after "
                f"{_moment_text(change_range.end)}.",
                table=table.name,
            )
        return NewWriteIds(before, after)

    def visible_write_ids(self, table: Table, snapshot: Snapshot) -> ValidWriteIdList:
        """Return the write ids that reads see: now or, in ``acid.snapshot(timestamp=…)``, at that
        time."""
        if (pinned_moment := self._transactions.pinned_moment) is None:
            return snapshot.write_ids[table.name]
        return self._travel.write_ids(table, pinned_moment, snapshot)

    def rows(
        self,
        table: Table,
        new_write_ids: NewWriteIds,
        snapshot: Snapshot,
        *,
        net: bool = False,
        is_keyed: bool = False,
        creating_version: int | None = None,
    ) -> DataFrame:
        """Return the changes of some write ids, lazily, a row for each insertion and deletion.
        Files are listed now.

        Args:
            table: The table.
            new_write_ids: The write ids whose changes are shown.
            snapshot: The snapshot of the read.
            net: Only what is different in the end.
            is_keyed: Whether the row id is in the columns ``KEYS``, and not in ``row__id``.
            creating_version: The version that created the table, if its rows are shown, too, as
                inserted rows; None: they are not shown.

        Returns:
            ``_change_type`` (``insert`` or ``delete``), ``_commit_version`` (the write id), the row
            id, the table's columns and its partition columns.

        Raises:
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: needed files were deleted. Or a partition
                was dropped since the snapshot.
            CatalogError: Another session changed the table while its files were listed.
        """
        partition_names = self._catalog.partition_names(table)
        partitions = partition_names if table.partition_columns else [""]
        dropped_partitions = self._catalog.partitions_dropped_by_others(table)
        self._catalog.refuse_dropped_partitions(table, partitions)

        def check_unchanged() -> None:
            self._catalog.require_unchanged(table, partition_names, snapshot, dropped_partitions)
            require_files_kept(self._metastore, table.name, new_write_ids.before)

        with check_after_block(check_unchanged):
            read_changes = keyed_changes if is_keyed else changes
            return read_changes(
                self._spark,
                ChangesRequest(
                    table, partitions, new_write_ids, snapshot.valid_txns, net, creating_version
                ),
            )

    def _add_commit_columns(
        self, rows: DataFrame, table: Table, versions: Iterable[Version]
    ) -> DataFrame:
        """Return the changes in the table's columns and ``ADDED``, with the version, time and
        transaction of each change's commit; other columns are dropped. A change of a version that
        is not in ``versions`` has NULLs."""
        version_by_id = {version.write_id: version for version in versions}
        commits = local_numbers(
            self._spark,
            {
                VERSION: [*version_by_id],
                COMMIT_TIMESTAMP: [version.committed_ms for version in version_by_id.values()],
                TXN_ID: [version.txn_id for version in version_by_id.values()],
            },
        )
        commits = jvm.select(
            commits,
            VERSION,
            f"timestamp_millis({COMMIT_TIMESTAMP}) AS {COMMIT_TIMESTAMP}",
            TXN_ID,
        )
        is_same_version = F.expr(f"{COMMIT_VERSION} = {VERSION}")
        joined = rows.join(commits.hint("broadcast"), is_same_version, "left")
        return jvm.select(joined, *(quote(version.name) for version in table.all_columns), *ADDED)


def _is_in_order(change_range: ChangeRange) -> bool:
    """Whether the range does not end before it begins; true if one end is a version, and the other
    one a time."""
    start, end = change_range.start, change_range.end
    if end is None:
        return True
    if start.version is not None and end.version is not None:
        return start.version <= end.version
    if start.timestamp_ms is not None and end.timestamp_ms is not None:
        return start.timestamp_ms <= end.timestamp_ms
    return True


def _moment_text(when: PointInTime | None) -> str:
    """Return ``version n``, or a time in UTC to the millisecond, for a message."""
    if when is None or when.timestamp_ms is None:
        return f"version {when.version if when else None}"
    return datetime.fromtimestamp(when.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _pair_updates(
    rows: DataFrame, table: Table, keys: Sequence[str], *, by_version: bool
) -> DataFrame:
    """Return the changes, lazily, in which the deletion and the insertion of one key (with
    ``by_version``, in one version) are the two images of an update. Rows of other keys, or with a
    NULL in their key, stay as they are. ``_change_type`` is the first column; the others follow.

    If a key has two deletions or two insertions, the result raises an error when it is read.
    """
    key_columns = [quote(key) for key in keys]
    partition_by = ", ".join([COMMIT_VERSION, *key_columns] if by_version else key_columns)
    counted_rows = jvm.select(
        rows,
        "*",
        *(
            f"count_if({CHANGE_TYPE} = '{kind}') OVER (PARTITION BY {partition_by}) AS {name}"
            for kind, name in ((DELETE, _DELETED), (INSERT, _INSERTED))
        ),
    )
    key_is_whole = " AND ".join(f"{name} IS NOT NULL" for name in key_columns)
    error_message = literal(same_key_message(table, keys))
    kind = (
        f"CASE WHEN NOT ({key_is_whole}) THEN {CHANGE_TYPE} "
        f"WHEN {_DELETED} > 1 OR {_INSERTED} > 1 THEN raise_error({error_message}) "
        f"WHEN {_DELETED} = 0 OR {_INSERTED} = 0 THEN {CHANGE_TYPE} "
        f"WHEN {CHANGE_TYPE} = '{DELETE}' THEN '{PREIMAGE}' ELSE '{POSTIMAGE}' END"
    )
    other_columns = [name for name in rows.columns if name != CHANGE_TYPE]
    return jvm.select(counted_rows, f"{kind} AS {CHANGE_TYPE}", *map(quote, other_columns))
