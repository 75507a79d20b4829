"""Time travel: the write ids that an older version of a table shows.

*Version n* shows the events of all committed write ids up to n. *A time* shows all events that were
committed until this time, in all tables at one moment. Both are a snapshot's list of write ids with
some of them left out, so the same reader reads them. The store knows which files were deleted
(``VersionLog.oldest_version``): a version that needs a deleted file is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import AnalysisError, SettingError, VersionNotFoundError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.older_versions import (
    commit_number_at,
    require_versions,
    write_ids_at_commit,
    write_ids_at_version,
)
from acidsql.plan.analysis import lower
from acidsql.plan.standins.query import placeholders
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.time_travel import AsOf
from acidsql.sql.text.tokens import Span
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.txn import Snapshot


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A version of one table, or a moment of all tables. Exactly one attribute is given.

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

    def resolve_as_of(self, as_of: AsOf, statement_text: StatementText) -> PointInTime:
        """Return the point in time of an AS OF clause: its version, or its timestamp, which Spark
        evaluates. Whether the version exists is not checked.

        Raises:
            SqlError: Spark cannot evaluate the timestamp, or cannot cast it to a time.
        """
        if (span := as_of.timestamp) is None:
            return PointInTime(version=as_of.version)
        _, time_ms = self._evaluate(span, statement_text)
        if time_ms is None:
            raise _time_error("This is no time.", span, statement_text)
        return PointInTime(timestamp_ms=time_ms)

    def resolve_expression(self, span: Span, statement_text: StatementText) -> PointInTime:
        """Evaluate an expression as a point in time: a whole number is a version; a text, date or
        timestamp is a time. Whether the version exists is not checked.

        Raises:
            SqlError: Spark cannot evaluate the expression, or its value is neither, such as 1.5,
                true or NULL.
        """
        value, time_ms = self._evaluate(span, statement_text)
        if isinstance(value, int) and not isinstance(value, bool):
            return PointInTime(version=value)
        if time_ms is None or not isinstance(value, str | date):
            raise _time_error("This is neither a version nor a time.", span, statement_text)
        return PointInTime(timestamp_ms=time_ms)

    def _evaluate(self, span: Span, statement_text: StatementText) -> tuple[object, int | None]:
        """Evaluate an expression of the statement by Spark. Return its value, and the
        value as a time in milliseconds since the epoch, or None if Spark cannot cast it to
        TIMESTAMP_LTZ. Raise SqlError if Spark cannot evaluate it."""
        text = Text(statement_text.text, placeholders(statement_text.text))
        text.raw("SELECT value, unix_millis(try_cast(value AS TIMESTAMP_LTZ)) FROM (SELECT ")
        text.user(span).raw(" AS value)")
        with lower.mapped_errors(text):
            (row,) = query_rows(self._spark, text, {}, statement_text).collect()
        return row[0], None if row[1] is None else int(row[1])

    def resolve_arguments(
        self, version: int | None, timestamp: date | str | None
    ) -> PointInTime | None:
        """Return the point in time of a method's arguments; None if neither is given.

        A datetime without a zone is in this process's zone; Spark casts any other timestamp to
        TIMESTAMP_LTZ.

        Raises:
            SettingError: Both are given, or the version is no whole number from 0 on.
            VersionNotFoundError: The timestamp is no time.
        """
        if timestamp is None:
            if version is None:
                return None
            if isinstance(version, bool) or not isinstance(version, int) or version < 0:
                raise SettingError(f"version={version!r} is no number from 0 on.", name="version")
            return PointInTime(version=version)
        if version is not None:
            raise SettingError("Pass version=… or timestamp=…, not both.", name="version")
        if isinstance(timestamp, datetime):
            return PointInTime(timestamp_ms=_milliseconds(timestamp))
        query = "SELECT unix_millis(try_cast(:at AS TIMESTAMP_LTZ))"
        (row,) = self._spark.sql(query, args={"at": timestamp}).collect()
        if row[0] is None:
            raise VersionNotFoundError(f"timestamp={timestamp!r} is no time.")
        return PointInTime(timestamp_ms=int(row[0]))

    def resolve_for_all_tables(
        self, timestamp: date | str | None, txn_id: int | None
    ) -> PointInTime | None:
        """Return one moment of all tables, as the number of a commit: of the last commit until
        ``timestamp``, or of the transaction ``txn_id``. None: neither is given.

        Raises:
            SettingError: Both are given.
            VersionNotFoundError: The timestamp is no time or after now, the transaction committed
                no change, or its changes were forgotten.
            UnsupportedError: The metastore does not keep versions.
        """
        if timestamp is None and txn_id is None:
            return None
        if timestamp is not None and txn_id is not None:
            raise SettingError("Pass timestamp=… or txn_id=…, not both.", name="txn_id")
        require_versions(self._metastore, "all tables")
        if txn_id is None:
            point_in_time = self.resolve_arguments(None, timestamp)
            assert point_in_time is not None
            return self.resolve_to_commit(point_in_time)
        commit = self._metastore.last_commit(txn_id=txn_id)
        if commit is None:
            raise VersionNotFoundError(
                f"Transaction {txn_id} committed no change, or it did so longer ago than "
                "acidsql.txn.history.retention.",
                txnId=txn_id,
            )
        return PointInTime(commit=commit)

    def resolve_to_commit(self, point_in_time: PointInTime) -> PointInTime:
        """Turn a time into the number of the last commit until then, which is one moment for all
        tables.

        A point in time without a time is returned as it is.

        Raises:
            VersionNotFoundError: The time is after now.
        """
        if point_in_time.timestamp_ms is None:
            return point_in_time
        return PointInTime(commit=commit_number_at(self._metastore, point_in_time.timestamp_ms))

    def write_ids(
        self, table: Table, point_in_time: PointInTime, snapshot: Snapshot
    ) -> ValidWriteIdList:
        """Return the write ids of a table that a version or a moment shows: some of those that the
        snapshot sees.

        A moment does not show what the snapshot's own transaction has changed so far. A version
        with a write id that was rolled back is accepted if the store keeps a version of this
        number: the first one of a table that was made again.

        Raises:
            VersionNotFoundError: The version is above the newest one, was rolled back, or is not
                committed; or the table did not exist at the time, or the time is after now.
            UnsupportedError: The metastore does not keep versions.
        """
        require_versions(self._metastore, table.name)
        if point_in_time.version is not None:
            visible = snapshot.write_ids[table.name]
            return write_ids_at_version(self._metastore, table.name, visible, point_in_time.version)
        # The write ids are read first, so that the versions have all of them.
        committed = self._committed_write_ids(table, snapshot)
        versions = self._metastore.versions(table.name)
        commit = self.resolve_to_commit(point_in_time).commit
        assert commit is not None
        return write_ids_at_commit(table.name, committed, versions, commit)

    def _committed_write_ids(self, table: Table, snapshot: Snapshot) -> ValidWriteIdList:
        """Return the write ids of a table that the snapshot sees, without those of the snapshot's
        own transaction."""
        own_txns = [] if snapshot.held_by is None else [snapshot.held_by]
        valid_txns = snapshot.valid_txns.hide(own_txns)
        return self._metastore.valid_write_ids(valid_txns, [table.name])[table.name]


def _milliseconds(moment: datetime) -> int:
    """Return a time in milliseconds since the epoch. A time without a zone is in this process's
    zone."""
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _time_error(message: str, span: Span, statement_text: StatementText) -> AnalysisError:
    """Return the error of a time-travel expression, which points to the expression."""
    return AnalysisError(
        message,
        statement_text.text, span.start, span.end,
        condition="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR", sqlstate="42K0E",
    )  # fmt: skip
