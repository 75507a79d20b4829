"""The changes of a table between two versions or times: ``Session.changes``, ``table_changes``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Table
from acidsql.acid.write_ids import NewWriteIds, ValidWriteIdList
from acidsql.errors import VersionNotFoundError
from acidsql.metastore.versions import Version
from acidsql.plan.undo import need_row_ids
from acidsql.sql.table_changes import TableChanges
from acidsql.statements.family import Context
from acidsql.statements.statement_text import StatementText
from acidsql.statements.table_rows import explained_by
from acidsql.statements.time_travel import TimeTravel, When, need_versions
from acidsql.storage.columns import literal, quote
from acidsql.storage.event_records import VERSION
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
    need_names,
    same_key,
)
from acidsql.storage.reading.changes import Changes, changes, keyed_changes, no_changes
from acidsql.storage.reading.net_changes import only_differences
from acidsql.storage.spark import jvm
from acidsql.storage.spark.local_rows import local_numbers
from acidsql.txn import Snapshot

Moment = int | date | str  # a version or a time
_NAMED = 10  # versions that an error names
_DELETED, _INSERTED = "__acidsql_deleted", "__acidsql_inserted"


@dataclass(frozen=True, slots=True)
class Range:
    """Which changes to show. Both ends belong to the range.

    Attributes:
        start: The first version, or the time from which on.
        end: The last version or time; None: until now.
        keys: The columns that make a deleted row and a new row the same row; None: those of the
            table property ``acidsql.key``, if the table has it.
        net: Show only what is different in the end.
    """

    start: When
    end: When | None = None
    keys: Sequence[str] | None = None
    net: bool = False


class ChangeFeed:
    """Reads the changes of one session's tables."""

    def __init__(self, context: Context, travel: TimeTravel) -> None:
        self._spark, self._metastore = context.spark, context.metastore
        self._transactions, self._travel = context.transactions, travel

    def between(
        self,
        table: Table,
        start: Moment,
        end: Moment | None,
        keys: Sequence[str] | None,
        *,
        net: bool,
    ) -> DataFrame:
        """See ``Session.changes``."""
        last = None if end is None else self._when(end)
        wanted = Range(self._when(start), last, keys, net)
        return self._of(table, wanted, self._transactions.look([table.name]))

    def called(
        self, table: Table, call: TableChanges, snapshot: Snapshot, said: StatementText
    ) -> DataFrame:
        """The rows of a call of ``table_changes``.

        Raises:
            SqlError: Spark's error about an argument, or an argument is neither version nor time.
        """
        start = self._travel.said(call.start, said)
        end = None if call.end is None else self._travel.said(call.end, said)
        return self._of(table, Range(start, end), snapshot)

    def none(self, table: Table) -> DataFrame:
        """No rows, with the columns of a call of ``table_changes``."""
        return self._with_commits(no_changes(self._spark, table), table, ())

    def _when(self, moment: Moment) -> When:
        if isinstance(moment, int):
            when = self._travel.at(moment, None)
        else:
            when = self._travel.at(None, moment)
        assert when is not None
        return when

    def _of(self, table: Table, wanted: Range, snapshot: Snapshot) -> DataFrame:
        """The changes of a range."""
        keys = change_keys(table, wanted.keys)
        need_row_ids(table)
        need_names(table)
        versions = self._metastore.versions(table.name)
        made_by = self._made_by(table, wanted, versions)
        new = self.new(table, wanted, snapshot, made_by)
        rows = self.rows(table, new, snapshot, net=wanted.net, made_by=made_by)
        if wanted.net:
            rows = only_differences(rows, table)
        if keys:
            rows = _paired(rows, table, keys, by_version=not wanted.net)
        shown = [one for one in versions if one.write_id in new or one.write_id == made_by]
        return self._with_commits(rows, table, shown)

    def _made_by(self, table: Table, wanted: Range, versions: Sequence[Version]) -> int | None:
        """The version that made a table, if a range begins with it or its commit; else None."""
        need_versions(self._metastore, table.name)
        first, start = self._metastore.first_version(table.name), wanted.start
        if start.version is not None:
            return first if first == start.version > 0 else None
        times = {version.committed_ms for version in versions if version.write_id == first}
        return first if start.timestamp_ms in times else None

    def new(
        self, table: Table, wanted: Range, snapshot: Snapshot, made_by: int | None = None
    ) -> NewWriteIds:
        """The write ids of a range, without that of the version which made the table, if given.

        Raises:
            VersionNotFoundError: There is no such version or time, or the range is empty.
            UnsupportedError: The metastore does not keep versions.
        """
        need_versions(self._metastore, table.name)
        start, seen = wanted.start, self.seen(table, snapshot)
        if made_by is not None:
            before = seen.up_to(made_by)
        elif start.version is not None:
            if not 1 <= start.version <= seen.high_water_mark:
                raise VersionNotFoundError(
                    f"{table.name} has no version {start.version}: it has the versions 1 to "
                    f"{seen.high_water_mark}.",
                    table=table.name,
                    version=start.version,
                )
            before = seen.up_to(start.version - 1)
        else:
            assert start.timestamp_ms is not None
            earlier = When(timestamp_ms=start.timestamp_ms - 1)
            before = self._travel.write_ids(table, earlier, snapshot)
        after = seen
        if wanted.end is not None:
            after = self._travel.write_ids(table, wanted.end, snapshot).within(seen)
        if not _is_within(wanted):
            raise VersionNotFoundError(
                f"The range begins after its end: {_shown(start)} is after {_shown(wanted.end)}.",
                table=table.name,
            )
        return NewWriteIds(before, after)

    def seen(self, table: Table, snapshot: Snapshot) -> ValidWriteIdList:
        """What is visible; in ``acid.snapshot(timestamp=…)`` what was visible then."""
        if (pinned := self._transactions.when) is None:
            return snapshot.write_ids[table.name]
        return self._travel.write_ids(table, pinned, snapshot)

    def rows(
        self,
        table: Table,
        new: NewWriteIds,
        snapshot: Snapshot,
        *,
        net: bool = False,
        is_keyed: bool = False,
        made_by: int | None = None,
    ) -> DataFrame:
        """The changes of some write ids, as ``changes`` or ``keyed_changes`` gives them.

        ``made_by``: see ``Changes``.

        Raises:
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: files were deleted that are needed.
            CatalogError: Another session changed the table while its files were listed.
        """
        names = self._transactions.partition_names(table)
        where = names if table.partition_columns else [""]
        lost = self._transactions.lost(table)
        self._transactions.refuse_lost(table, where)

        def still_there() -> None:
            self._transactions.need_unchanged(table, names, snapshot, lost)
            self._travel.need_kept(table, new.before)

        with explained_by(still_there):
            read = keyed_changes if is_keyed else changes
            return read(self._spark, Changes(table, where, new, snapshot.valid_txns, net, made_by))

    def _with_commits(
        self, rows: DataFrame, table: Table, versions: Iterable[Version]
    ) -> DataFrame:
        """The rows, in the order of columns that the user sees, with what is known of commits."""
        known = {one.write_id: one for one in versions}
        commits = local_numbers(
            self._spark,
            {
                VERSION: [*known],
                COMMIT_TIMESTAMP: [one.committed_ms for one in known.values()],
                TXN_ID: [one.txn_id for one in known.values()],
            },
        )
        commits = jvm.select(
            commits,
            VERSION,
            f"timestamp_millis({COMMIT_TIMESTAMP}) AS {COMMIT_TIMESTAMP}",
            TXN_ID,
        )
        same = F.expr(f"{COMMIT_VERSION} = {VERSION}")
        joined = rows.join(commits.hint("broadcast"), same, "left")
        return jvm.select(joined, *(quote(one.name) for one in table.all_columns), *ADDED)


def _is_within(wanted: Range) -> bool:
    start, end = wanted.start, wanted.end
    if end is None:
        return True
    if start.version is not None and end.version is not None:
        return start.version <= end.version
    if start.timestamp_ms is not None and end.timestamp_ms is not None:
        return start.timestamp_ms <= end.timestamp_ms
    return True


def _shown(when: When | None) -> str:
    if when is None or when.timestamp_ms is None:
        return f"version {when.version if when else None}"
    return datetime.fromtimestamp(when.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _paired(rows: DataFrame, table: Table, keys: Sequence[str], *, by_version: bool) -> DataFrame:
    """A deletion and an insertion under one key become the two images of an update.

    A key with NULL in a column makes no rows the same.
    """
    names = [quote(key) for key in keys]
    within = ", ".join([COMMIT_VERSION, *names] if by_version else names)
    counted = jvm.select(
        rows,
        "*",
        *(
            f"count_if({CHANGE_TYPE} = '{kind}') OVER (PARTITION BY {within}) AS {name}"
            for kind, name in ((DELETE, _DELETED), (INSERT, _INSERTED))
        ),
    )
    is_key = " AND ".join(f"{name} IS NOT NULL" for name in names)
    several = literal(same_key(table, keys))
    kind = (
        f"CASE WHEN NOT ({is_key}) THEN {CHANGE_TYPE} "
        f"WHEN {_DELETED} > 1 OR {_INSERTED} > 1 THEN raise_error({several}) "
        f"WHEN {_DELETED} = 0 OR {_INSERTED} = 0 THEN {CHANGE_TYPE} "
        f"WHEN {CHANGE_TYPE} = '{DELETE}' THEN '{PREIMAGE}' ELSE '{POSTIMAGE}' END"
    )
    others = [name for name in rows.columns if name != CHANGE_TYPE]
    return jvm.select(counted, f"{kind} AS {CHANGE_TYPE}", *map(quote, others))
