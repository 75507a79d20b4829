"""Time travel: the write ids that an older version of a table shows.

*Version n* shows the events of all committed write ids up to n. *A time* shows what was committed
until then, in all tables at one moment. Both are a snapshot's list of write ids with some of them
left out, so the same reader reads them. The store knows which files were deleted
(``VersionLog.oldest_version``): a version that needs a deleted file is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import (
    AnalysisError,
    SettingError,
    SnapshotTooOldError,
    UnsupportedError,
    VersionNotFoundError,
)
from acidsql.metastore.interface import Metastore
from acidsql.metastore.older_versions import at_commit, commit_at, lost_before
from acidsql.plan import lower
from acidsql.plan.query import placeholders
from acidsql.plan.sqltext import Text
from acidsql.sql.time_travel import AsOf
from acidsql.sql.tokens import Span
from acidsql.statements.statement_text import StatementText
from acidsql.txn import Snapshot


@dataclass(frozen=True, slots=True)
class When:
    """A version of one table, or a moment of all tables; one attribute is given.

    Attributes:
        version: A write id of the table.
        timestamp_ms: A time, in milliseconds since the epoch, by the store's clock.
        commit: The number of a commit, as in ``Version``.
    """

    version: int | None = None
    timestamp_ms: int | None = None
    commit: int | None = None


class TimeTravel:
    """Finds the write ids of older versions, for one session."""

    def __init__(self, spark: SparkSession, metastore: Metastore) -> None:
        self._spark, self._metastore = spark, metastore

    def when(self, as_of: AsOf, said: StatementText) -> When:
        """What a clause of a statement means. Spark evaluates a timestamp once.

        Raises:
            SqlError: Spark's error about the timestamp, or it is no time.
        """
        if (span := as_of.timestamp) is None:
            return When(version=as_of.version)
        _, time_ms = self._evaluated(span, said)
        if time_ms is None:
            raise _no_time("This is no time.", span, said)
        return When(timestamp_ms=time_ms)

    def said(self, span: Span, said: StatementText) -> When:
        """What an expression means: a whole number is a version, all else is a time.

        Raises:
            SqlError: Spark's error about the expression, or it is neither.
        """
        value, time_ms = self._evaluated(span, said)
        if isinstance(value, int) and not isinstance(value, bool):
            return When(version=value)
        if time_ms is None or not isinstance(value, str | date):
            raise _no_time("This is neither a version nor a time.", span, said)
        return When(timestamp_ms=time_ms)

    def _evaluated(self, span: Span, said: StatementText) -> tuple[object, int | None]:
        """The value of an expression, and the same as a time in milliseconds since the epoch."""
        text = Text(said.text, placeholders(said.text))
        text.raw("SELECT value, unix_millis(try_cast(value AS TIMESTAMP_LTZ)) FROM (SELECT ")
        text.user(span).raw(" AS value)")
        with lower.mapped_errors(text):
            (row,) = lower.frame(self._spark, text, {}, said.args, said.time).collect()
        return row[0], None if row[1] is None else int(row[1])

    def at(self, version: int | None, timestamp: date | str | None) -> When | None:
        """The version or the time of a call; None if neither is given.

        Raises:
            SettingError: Both are given, or the version is no number.
            VersionNotFoundError: The timestamp is no time.
        """
        if timestamp is None:
            if version is None:
                return None
            if isinstance(version, bool) or not isinstance(version, int) or version < 0:
                raise SettingError(f"version={version!r} is no number from 0 on.", name="version")
            return When(version=version)
        if version is not None:
            raise SettingError("Pass version=… or timestamp=…, not both.", name="version")
        if isinstance(timestamp, datetime):
            return When(timestamp_ms=_milliseconds(timestamp))
        query = "SELECT unix_millis(try_cast(:at AS TIMESTAMP_LTZ))"
        (row,) = self._spark.sql(query, args={"at": timestamp}).collect()
        if row[0] is None:
            raise VersionNotFoundError(f"timestamp={timestamp!r} is no time.")
        return When(timestamp_ms=int(row[0]))

    def of_all_tables(self, timestamp: date | str | None, txn_id: int | None) -> When | None:
        """One moment of all tables: a time, or when a transaction committed; None: the present.

        Raises:
            SettingError: Both are given.
            VersionNotFoundError: The timestamp is no time or after now, the transaction changed no
                table, or its changes were forgotten.
            UnsupportedError: The metastore does not keep versions.
        """
        if timestamp is None and txn_id is None:
            return None
        if timestamp is not None and txn_id is not None:
            raise SettingError("Pass timestamp=… or txn_id=…, not both.", name="txn_id")
        need_versions(self._metastore, "all tables")
        if txn_id is None:
            when = self.at(None, timestamp)
            assert when is not None
            return self.moment(when)
        commit = self._metastore.last_commit(txn_id=txn_id)
        if commit is None:
            raise VersionNotFoundError(
                f"Transaction {txn_id} committed no change, or it did so longer ago than "
                "acidsql.txn.history.retention.",
                txnId=txn_id,
            )
        return When(commit=commit)

    def moment(self, when: When) -> When:
        """The same as the number of a commit, so that it is one moment for all tables.

        Raises:
            VersionNotFoundError: The time is after now.
        """
        if when.timestamp_ms is None:
            return when
        return When(commit=commit_at(self._metastore, when.timestamp_ms))

    def write_ids(self, table: Table, when: When, snapshot: Snapshot) -> ValidWriteIdList:
        """The write ids that a version shows: some of those that the snapshot sees.

        A moment does not show what the snapshot's own transaction has changed so far.

        Raises:
            VersionNotFoundError: The table never had this version, or did not exist at the time.
            UnsupportedError: The metastore does not keep versions.
        """
        need_versions(self._metastore, table.name)
        if when.version is not None:
            seen = snapshot.write_ids[table.name]
            # The first version of a table that was made again has the last write id of the table
            # before it, which may have been rolled back.
            if seen.is_aborted(when.version) and any(
                one.write_id == when.version for one in self._metastore.versions(table.name)
            ):
                return seen.up_to(when.version)
            return _at_version(table, when.version, seen)
        committed = self._committed(table, snapshot)  # before the versions: all of it is in them
        versions = self._metastore.versions(table.name)
        commit = self.moment(when).commit
        assert commit is not None
        return at_commit(table.name, committed, versions, commit)

    def _committed(self, table: Table, snapshot: Snapshot) -> ValidWriteIdList:
        own = [] if snapshot.held_by is None else [snapshot.held_by]
        others = snapshot.valid_txns.hiding(own)
        return self._metastore.valid_write_ids(others, [table.name])[table.name]

    def need_kept(self, table: Table, shown: ValidWriteIdList) -> None:
        """Check, after files were listed, that none of them had been deleted before.

        The cleaner notes what is gone before it deletes it.

        Raises:
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: the files are gone.
        """
        if (oldest := lost_before(self._metastore, table.name, shown)) is None:
            return
        needed = shown.complete_up_to
        raise SnapshotTooOldError(
            f"Version {needed} of {table.name} is gone: the cleaner has deleted files of it "
            f"after a compaction, a partition was dropped, or the table was replaced. The oldest "
            f"version that can be read is {oldest}. A greater acidsql.history.retention or "
            "acidsql.history.max.ratio, set before the cleaner runs, keeps versions that a "
            "compaction has replaced.",
            table=table.name, version=needed, oldest=oldest,
        )  # fmt: skip


def _milliseconds(moment: datetime) -> int:
    """A time in milliseconds since the epoch. Without a zone it is in that of this process."""
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def need_versions(metastore: Metastore, of: object) -> None:
    """Raise UnsupportedError if the metastore does not keep versions."""
    if not metastore.abilities.keeps_versions:
        raise UnsupportedError(
            f"An older version of {of} could lack rows, because this metastore does not note "
            "which files were deleted. Time travel needs acidsql's own metastore.",
            condition="UNSUPPORTED_FEATURE.TIME_TRAVEL",
        )


def _no_time(message: str, span: Span, said: StatementText) -> AnalysisError:
    return AnalysisError(
        message,
        said.text, span.start, span.end,
        condition="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR", sqlstate="42K0E",
    )  # fmt: skip


def _at_version(table: Table, version: int, seen: ValidWriteIdList) -> ValidWriteIdList:
    if version > seen.high_water_mark:
        raise VersionNotFoundError(
            f"{table.name} has no version {version}: the newest one is {seen.high_water_mark}.",
            table=table.name, version=version,
        )  # fmt: skip
    if not seen.is_valid(version):
        why = "was rolled back" if seen.is_aborted(version) else "is not committed"
        raise VersionNotFoundError(
            f"{table.name} has no version {version}: its transaction {why}.",
            table=table.name, version=version,
        )  # fmt: skip
    return seen.up_to(version)
