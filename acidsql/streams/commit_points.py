"""Applies the transactions of a source as a whole: ``commit_points`` of ``Session.auto_cdc``.

A micro-batch may cut a transaction of the source in two. So the records of a batch are sorted:

1. Those whose transaction is complete now, and those without a transaction, are applied, together
   with the records that have waited for them.
2. The others are put into the pending table (``acid.cdc``) beside their target.
3. The records that have waited, and are applied now, are deleted there.

All of this is one transaction, with one entry in the ledger. So a record is applied or waits, and a
replay changes nothing. The records of a transaction are counted without repeated ones, because
sources send a record again after a crash of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import BooleanType, DecimalType, IntegralType, StructType

from acidsql.acid.cdc import pending_name
from acidsql.acid.table import Table
from acidsql.arguments import check_fields
from acidsql.errors import AnalysisError, SettingError, WriteError
from acidsql.sql.grammar.cdc import is_expression
from acidsql.statements.context.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import literal, quote
from acidsql.storage.writing.staging import stage_rows
from acidsql.streams.auto_cdc import Applier, AutoCdc, combined_receipt
from acidsql.streams.batches import Setup, Target, run_statement, table_name, temporary_view
from acidsql.streams.packed import packed_row, unpacked_rows
from acidsql.streams.several import SeveralCdc

_PREFIX = "__acidsql_"
# Columns of a record: its transaction, its place there, and what it says of the transaction's end.
_TXN, _PLACE, _LAST, _COUNT = (f"{_PREFIX}{name}" for name in ("txn", "place", "last", "count"))
_HOME = f"{_PREFIX}home"  # the number of the table beside which the record waits
_MARK = f"{_PREFIX}mark"  # whether the record is a commit point and no change
_RECORD, _SCHEMA = f"{_PREFIX}record", f"{_PREFIX}schema"
_SINCE = f"{_PREFIX}since"  # the version of the pending table that has added the record
_COMPLETE_TXN = f"{_PREFIX}done"  # the id of a complete transaction
_FACTS = (_TXN, _PLACE, _LAST, _COUNT, _RECORD, _SCHEMA)
_NAMES = ("source_txn", "place", "is_last", "num_records", "record", "schema")  # pending table


@dataclass(frozen=True, slots=True)
class CommitPoints:
    """The way in which records show the end of a source's transactions; see ``Session.auto_cdc``.

    ``commit_points="n"`` is short for ``commit_points=CommitPoints("n")``.

    The records of a transaction wait until it is complete; then all of them are applied in one
    transaction. A record without a transaction (a row of a snapshot) is applied at once. Records
    wait in the table ``<target>__acidsql_pending``, one beside each target. It is written in the
    batch's transaction, and is renamed and dropped with its target. Each application has its own
    waiting records there. A stream with a new checkpoint is another application, unless
    ``txn_app_id`` names it.

    A transaction is complete

    - if ``ends`` is a number, when there are as many different records of it. Records may come in
      any order. More records, or two numbers, are an error (CDC_COMMIT_POINT_CONTRADICTION);
    - if ``ends`` is a BOOLEAN, when there is a record for which it is true: all others must have
      come before, or come in the same batch.

    With several targets, a record with NULL in the column ``by`` and with a commit point is no
    change. It only tells that its transaction ends, as Debezium's END does.

    A record that came twice counts once. A complete transaction is forgotten: if the source later
    sends a part of it again, this part may wait, for it is not complete. It would change nothing;
    ``DELETE FROM <target>__acidsql_pending`` ends the waiting. Change the list of targets, or DROP
    one of them, when nothing waits: other records of a transaction would wait for what went.

    Attributes:
        ends: SQL over a record: the number of records of its transaction, or whether it is the last
            one. NULL: it does not tell.
        txn: SQL of the transaction's id. The default is the column of ``Session.changes_from`` and
            ``Session.transactions_from``.
        place: SQL of the record's place in its transaction, to tell a record that was sent twice.
            Default: records of which any column differs are different ones.
    """

    ends: str
    txn: str = "_source_txn"
    place: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def check(self) -> None:
        """Raise SettingError if ``ends``, ``txn`` or ``place`` is no SQL expression."""
        for text in (self.ends, self.txn, "0" if self.place is None else self.place):
            if not isinstance(text, str) or not is_expression(text):
                raise SettingError(
                    f"commit_points: {text!r} is not one SQL expression.", name="commit_points"
                )


class WholeTransactions(Applier[Target]):
    """Hands the records of a source's complete transactions to another applier, and keeps the other
    records in pending tables.

    Args:
        setup: What all writers of batches need.
        applier: Applies the records of a complete transaction.
        points: The commit points.
    """

    def __init__(self, setup: Setup, applier: Applier[Target], points: CommitPoints) -> None:
        super().__init__(setup)
        self._applier, self._points = applier, points

    def __repr__(self) -> str:
        return f"{self._applier!r} in transactions of {self._points.txn}"

    def require_target(self, runner: Runner) -> Target:
        """Return the applier's target. Raise AnalysisError if there is no such ACID table."""
        return self._applier.require_target(runner)

    def tables(self, target: Target) -> Sequence[Table]:
        """Return the applier's tables, in the order in which they are changed."""
        return self._applier.tables(target)

    def _sink_name(self, target: Target) -> str:
        """Return the name that the applier's targets have in the ledger."""
        return self._applier._sink_name(target)

    def prepare_target(self, runner: Runner, target: Target, rows: DataFrame) -> None:
        """Make the state tables, the pending tables and the table of bad records, as far as they
        are missing, in transactions of their own."""
        self._applier.make_tables(runner, target, rows)
        for table in self.tables(target):
            runner.auto_cdc.make_pending_table(table)

    def write(self, runner: Runner, target: Target, rows: DataFrame, txn_id: int) -> Receipt | None:
        """Apply, in the runner's transaction, the records whose source transactions are complete
        now, and put the others into the pending tables, where they wait. The rows are evaluated
        once, and the targets are locked first. Return one receipt, with a note of how many records
        wait. Raise WriteError if commit points contradict the records, or if a record is for no
        table and nothing puts it aside."""
        location, few_rows = self.tables(target)[0].location, runner.settings.driver_row_limit
        with stage_rows(rows, location, txn_id, few_rows) as staged_rows:
            runner.auto_cdc.lock_targets(self.tables(target))
            batch = _Batch(
                runner,
                self.tables(target),
                self._records_with_facts(staged_rows, target),
                staged_rows,
            )
            self._applier.check_targets(batch.change_records(), target)
            with stage_rows(batch.source_transactions(), location, txn_id, few_rows) as groups:
                return self._apply_complete(batch, groups, target, txn_id)

    def _apply_complete(
        self, batch: _Batch, groups: DataFrame, target: Target, txn_id: int
    ) -> Receipt | None:
        """Apply the records of complete transactions, also those that waited; delete these where
        they waited, and write the records that wait from now on. Return one receipt, whose note
        counts all that wait. ``groups``: a row for each source transaction
        (``source_transactions``)."""
        runner, counts = batch.runner, batch.count_records(groups)
        receipts = [
            self._applier.write(runner, target, records, txn_id)
            for records in batch.ready_records(groups, counts)
        ]
        for table_number in range(len(batch.tables)):
            table_counts = [count for count in counts if count.home == table_number]
            if any(count.complete and count.waited for count in table_counts):
                batch.delete_applied(groups, table_number)
            if any(not count.complete and not count.waited for count in table_counts):
                batch.insert_waiting(groups, table_number)
        receipt, waiting = (
            combined_receipt(receipts, txn_id),
            sum(count.n for count in counts if not count.complete),
        )
        if not waiting:
            return receipt
        waiting_text = "record waits for its" if waiting == 1 else "records wait for their"
        return receipt.with_note(f"{waiting:,} {waiting_text} transaction{'s' * (waiting > 1)}")

    def _records_with_facts(self, staged_rows: DataFrame, target: Target) -> DataFrame:
        """Return the batch's records, lazily, with columns of what each tells of its source
        transaction: id, place, end, number of records; its target's position (0 for no target);
        whether it is a commit point and no change; the record as JSON, and its schema as JSON.

        Raises:
            AnalysisError: ``ends`` is neither a whole number nor a BOOLEAN.
        """
        points, names = self._points, [quote(name) for name in staged_rows.columns]
        ends_type = staged_rows.select(F.expr(points.ends)).schema[0].dataType
        is_number = isinstance(ends_type, IntegralType) or (
            isinstance(ends_type, DecimalType) and ends_type.scale == 0
        )
        if not is_number and not isinstance(ends_type, BooleanType):
            raise AnalysisError(
                f"commit_points: '{points.ends}' is a {ends_type.simpleString().upper()}. It must "
                "be a whole number of records, or a BOOLEAN that is true for the last one.",
                condition="DATATYPE_MISMATCH",
                sqlstate="42K09",
            )
        ends = F.expr(points.ends)
        home = self._applier.target_index(staged_rows, target)
        place = F.lit(None) if points.place is None else F.expr(points.place)
        records = staged_rows.select(
            *names,
            F.expr(points.txn).cast("string").alias(_TXN),
            place.cast("string").alias(_PLACE),
            (F.lit(None) if is_number else ends).cast("boolean").alias(_LAST),
            (ends if is_number else F.lit(None)).cast("bigint").alias(_COUNT),
            F.coalesce(home, F.lit(0)).alias(_HOME),
            self._applier.names_no_target(staged_rows).alias(_MARK),
            packed_row(staged_rows).alias(_RECORD),
            F.lit(staged_rows.schema.json()).alias(_SCHEMA),
        )
        ending = F.coalesce(F.col(_LAST), F.col(_COUNT).isNotNull())
        is_mark = F.col(_MARK) & F.col(_TXN).isNotNull() & ending
        return records.withColumn(_MARK, F.coalesce(is_mark, F.lit(False)))


def with_commit_points(
    setup: Setup, applier: AutoCdc | SeveralCdc, points: CommitPoints | str | None
) -> AutoCdc | SeveralCdc | WholeTransactions[Any]:
    """Return an applier that hands whole transactions of the source to ``applier``; without commit
    points ``applier`` itself.

    Raises:
        SettingError: A text of the commit points is no expression.
    """
    if points is None:
        return applier
    points = points if isinstance(points, CommitPoints) else CommitPoints(points)
    points.check()
    return WholeTransactions(setup, applier, points)


class _Batch:
    """The records of one batch, and the records that have waited for their transactions."""

    def __init__(
        self, runner: Runner, tables: Sequence[Table], records: DataFrame, staged_rows: DataFrame
    ) -> None:
        self.runner, self.tables = runner, tables
        self._records, self._staged_rows = records, staged_rows
        batch = runner.transactions.require_transaction().batch
        app_id = "NULL" if batch is None else literal(batch.batch.app_id)
        self._app_id, self._is_ours = app_id, f"txn_app_id <=> {app_id}"
        self._waiting = self._read_waiting()

    def _read_waiting(self) -> DataFrame:
        """Return this application's records that wait in the pending tables of all targets, lazily:
        ``_FACTS``, the write id that has added the record (``_SINCE``), and the target's position
        (``_HOME``)."""
        names, waiting = ", ".join((*_NAMES, "row__id.writeid")), None
        for number, table in enumerate(self.tables):
            text = f"SELECT {names} FROM {_pending_table(table)} WHERE {self._is_ours}"
            rows = self.runner.run(text, None, 0).toDF(*_FACTS, _SINCE)
            rows = rows.withColumn(_HOME, F.lit(number))
            waiting = rows if waiting is None else waiting.unionAll(rows)
        assert waiting is not None
        return waiting

    def _arrived_records(self) -> DataFrame:
        """Return the batch's records that have a source transaction, lazily, in ``_FACTS`` and
        ``_HOME``, as waiting records are. A commit point that is no change has NULL as its
        record."""
        is_mark = F.col(_MARK)
        record = F.when(~is_mark, F.col(_RECORD)).alias(_RECORD)
        fact_names = [name for name in (*_FACTS, _HOME) if name != _RECORD]
        return self._records.where(F.col(_TXN).isNotNull()).select(*fact_names, record)

    def change_records(self) -> DataFrame:
        """Return the batch's records that are changes, lazily, with their own columns only."""
        return self._records.where(~F.col(_MARK)).select(*map(quote, self._staged_rows.columns))

    def source_transactions(self) -> DataFrame:
        """Return, lazily, one row for each source transaction of the batch's records and of those
        that waited: its numbers of records, whether it is ``complete``, and whether the numbers are
        ``wrong``.

        ``seen`` is the number of different records so far; ``low`` and ``high`` are the smallest
        and largest number that commit points state. A commit point is not counted as a record.
        """
        records = self._arrived_records().unionByName(self._waiting.drop(_SINCE))
        record = F.when(F.col(_RECORD).isNotNull(), F.coalesce(_PLACE, _RECORD))
        sums = records.groupBy(_TXN).agg(
            F.count_distinct(record).alias("seen"),
            F.max(_LAST).alias("last"),
            F.min(_COUNT).alias("low"),
            F.max(_COUNT).alias("high"),
        )
        return sums.selectExpr(
            _TXN, "seen", "low", "high", "coalesce(seen > high OR low <> high, false) AS wrong",
            "coalesce(last, false) OR coalesce(seen = high, false) AS complete",
        )  # fmt: skip

    def count_records(self, groups: DataFrame) -> list[Row]:
        """Count, in one job, the batch's records that have a source transaction and those that
        waited, in groups: by table, by schema (of those that waited), and by whether they waited
        and whether their transaction is complete.

        Returns:
            A row for each group: ``home`` (the table's position), ``schema`` (NULL for the batch's
            own), ``waited``, ``complete``, ``n`` (the number of records), ``worst`` (the facts of
            one of its transactions) and ``since`` (the lowest write id by which a record began to
            wait).

        Raises:
            WriteError: CDC_COMMIT_POINT_CONTRADICTION: a transaction has more records than its
                commit point says, or two numbers.
        """
        columns = (_TXN, _HOME, _SCHEMA, _RECORD)
        arrived = self._arrived_records().select(
            *columns, F.lit(False).alias("waited"), F.lit(None).cast("bigint").alias(_SINCE)
        )
        records = arrived.unionAll(self._waiting.select(*columns, F.lit(True), _SINCE))
        schema = F.when(F.col(_RECORD).isNotNull() & F.col("waited"), F.col(_SCHEMA))
        facts = F.struct("wrong", _TXN, "seen", "low", "high")
        counts = (
            records.join(groups, _TXN)
            .groupBy(F.col(_HOME).alias("home"), schema.alias("schema"), "waited", "complete")
            .agg(
                F.count(_RECORD).alias("n"),
                F.max(facts).alias("worst"),
                F.min(_SINCE).alias("since"),
            )
            .collect()
        )
        for count in counts:
            if count.worst.wrong:
                raise _contradiction_error(count.worst)
        return counts

    def ready_records(self, groups: DataFrame, counts: Sequence[Row]) -> list[DataFrame]:
        """Return the records of complete transactions, and those without a transaction, lazily, as
        DataFrames in the order in which to apply them. ``groups``, ``counts``: as in
        ``count_records``.

        The last DataFrame has the batch's records, and those that waited with the same columns.
        Records that waited with other columns come before, one DataFrame for each table and set of
        columns, in the order of the tables, then in that in which they began to wait: a late record
        would not set the columns that newer records have left out.
        """
        complete_txns = groups.where("complete").select(F.col(_TXN).alias(_COMPLETE_TXN))
        is_complete = F.col(_TXN) == F.col(_COMPLETE_TXN)
        names, batch_schema = (
            list(map(quote, self._staged_rows.columns)),
            self._staged_rows.schema.json(),
        )
        arrived = self._records.where(~F.col(_MARK)).join(complete_txns, is_complete, "left")
        newest = arrived.where(F.col(_TXN).isNull() | F.col(_COMPLETE_TXN).isNotNull()).select(
            *names
        )
        older: list[DataFrame] = []
        waiting_counts = [count for count in counts if count.complete and count.schema is not None]
        for count in sorted(
            waiting_counts, key=lambda count: (count.home, count.since, count.schema)
        ):
            is_counted = (F.col(_HOME) == count.home) & (F.col(_SCHEMA) == count.schema)
            rows = self._waiting.where(is_counted & F.col(_RECORD).isNotNull())
            schema = StructType.fromJson(json.loads(count.schema))
            rows = unpacked_rows(
                rows.join(complete_txns, is_complete, "left_semi"), _RECORD, schema
            )
            if count.schema == batch_schema:
                newest = newest.unionAll(rows)
            else:
                older.append(rows)
        return [*older, newest]

    def insert_waiting(self, groups: DataFrame, table_number: int) -> None:
        """Insert the batch's records of incomplete transactions, and their commit points, that are
        for the table at this position into its pending table, in the runner's transaction."""
        incomplete_txns = groups.where("NOT complete").select(_TXN)
        rows = (
            self._arrived_records()
            .where(F.col(_HOME) == table_number)
            .join(incomplete_txns, _TXN, "left_semi")
        )
        names = ", ".join(_NAMES)
        with temporary_view(rows.select(*_FACTS).toDF(*_NAMES)) as view:
            run_statement(
                self.runner,
                f"INSERT INTO {_pending_table(self.tables[table_number])} (txn_app_id, {names})\n"
                f"SELECT {self._app_id}, {names} FROM {view}",
            )

    def delete_applied(self, groups: DataFrame, table_number: int) -> None:
        """Delete this application's records of complete transactions from the pending table of the
        table at this position, in the runner's transaction."""
        with temporary_view(groups.where("complete").select(_TXN).toDF("done")) as view:
            run_statement(
                self.runner,
                f"DELETE FROM {_pending_table(self.tables[table_number])} WHERE {self._is_ours} "
                f"AND source_txn IN (SELECT done FROM {view})",
            )


def _pending_table(table: Table) -> str:
    """Return SQL of the name of the pending table beside a target."""
    return table_name(pending_name(table.name))


def _contradiction_error(facts: Row) -> WriteError:
    """Return the error of a source transaction whose commit points contradict its records."""
    txn, num_records, low, high = facts[1:]
    stated_numbers = (
        f"it has {high:,}" if low == high else f"it has {low:,}, and that it has {high:,}"
    )
    return WriteError(
        f"Of the source transaction '{txn}' there are {num_records:,} different records, and its "
        f"commit point says that {stated_numbers}. Nothing of the batch was applied. Records that "
        "were filtered out must not be counted; if records were sent twice in different forms, "
        "CommitPoints(place=…) tells them apart.",
        condition="CDC_COMMIT_POINT_CONTRADICTION", sqlstate="22023", transaction=txn,
    )  # fmt: skip
