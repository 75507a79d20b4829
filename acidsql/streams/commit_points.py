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
from acidsql.sql.cdc import is_expression
from acidsql.statements.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import literal, quote
from acidsql.storage.writing.staging import staged
from acidsql.streams.auto_cdc import Applier, AutoCdc, together
from acidsql.streams.batches import Setup, Target, run, table_name, view_of
from acidsql.streams.packed import packed, unpacked
from acidsql.streams.several import SeveralCdc

_PREFIX = "__acidsql_"
# Of each record: its transaction, its place in it, what it says of the end, and where it waits.
_TXN, _PLACE, _LAST, _COUNT = (f"{_PREFIX}{name}" for name in ("txn", "place", "last", "count"))
_HOME = f"{_PREFIX}home"  # the number of the table beside which the record waits
_MARK = f"{_PREFIX}mark"  # it is a commit point and no change
_RECORD, _SCHEMA = f"{_PREFIX}record", f"{_PREFIX}schema"
_SINCE = f"{_PREFIX}since"  # the version of the pending table with which it came there
_DONE = f"{_PREFIX}done"  # a complete transaction
_FACTS = (_TXN, _PLACE, _LAST, _COUNT, _RECORD, _SCHEMA)
_NAMES = ("source_txn", "place", "is_last", "num_records", "record", "schema")  # pending table


@dataclass(frozen=True, slots=True)
class CommitPoints:
    """How the end of a source's transactions is known; see ``Session.auto_cdc``.

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
        """Raises SettingError if one of the texts is no expression."""
        for text in (self.ends, self.txn, "0" if self.place is None else self.place):
            if not isinstance(text, str) or not is_expression(text):
                raise SettingError(
                    f"commit_points: {text!r} is not one SQL expression.", name="commit_points"
                )


class WholeTransactions(Applier[Target]):
    """Hands the records of complete transactions to another applier.

    Args:
        setup: What all writers of batches need.
        applier: The other one.
        points: The commit points.
    """

    def __init__(self, setup: Setup, applier: Applier[Target], points: CommitPoints) -> None:
        super().__init__(setup)
        self._applier, self._points = applier, points

    def __repr__(self) -> str:
        return f"{self._applier!r} in transactions of {self._points.txn}"

    def target(self, runner: Runner) -> Target:
        return self._applier.target(runner)

    def tables(self, target: Target) -> Sequence[Table]:
        return self._applier.tables(target)

    def _sink(self, target: Target) -> str:
        return self._applier._sink(target)

    def make_ready(self, runner: Runner, target: Target, rows: DataFrame) -> None:
        self._applier.make_tables(runner, target, rows)
        for table in self.tables(target):
            runner.auto_cdc.make_pending_table(table)

    def write(self, runner: Runner, target: Target, rows: DataFrame, txn_id: int) -> Receipt | None:
        location, few = self.tables(target)[0].location, runner.settings.few_rows
        with staged(rows, location, txn_id, few) as kept:
            runner.auto_cdc.lock_targets(self.tables(target))
            batch = _Batch(runner, self.tables(target), self._told(kept, target), kept)
            self._applier.check(batch.changes(), target)
            with staged(batch.groups(), location, txn_id, few) as groups:
                return self._sorted(batch, groups, target, txn_id)

    def _sorted(
        self, batch: _Batch, groups: DataFrame, target: Target, txn_id: int
    ) -> Receipt | None:
        """Apply what is complete, and let the rest wait."""
        runner, found = batch.runner, batch.counts(groups)
        receipts = [
            self._applier.write(runner, target, ready, txn_id)
            for ready in batch.ready(groups, found)
        ]
        for number in range(len(batch.tables)):
            here = [one for one in found if one.home == number]
            if any(one.complete and one.waited for one in here):
                batch.forget(groups, number)
            if any(not one.complete and not one.waited for one in here):
                batch.keep(groups, number)
        done, waiting = together(receipts, txn_id), sum(one.n for one in found if not one.complete)
        if not waiting:
            return done
        what = "record waits for its" if waiting == 1 else "records wait for their"
        return done.with_note(f"{waiting:,} {what} transaction{'s' * (waiting > 1)}")

    def _told(self, kept: DataFrame, target: Target) -> DataFrame:
        """The records with what they tell of their transactions."""
        points, names = self._points, [quote(name) for name in kept.columns]
        given = kept.select(F.expr(points.ends)).schema[0].dataType
        is_number = isinstance(given, IntegralType) or (
            isinstance(given, DecimalType) and given.scale == 0
        )
        if not is_number and not isinstance(given, BooleanType):
            raise AnalysisError(
                f"commit_points: '{points.ends}' is a {given.simpleString().upper()}. It must be a "
                "whole number of records, or a BOOLEAN that is true for the last one.",
                condition="DATATYPE_MISMATCH", sqlstate="42K09",
            )  # fmt: skip
        ends = F.expr(points.ends)
        home = self._applier.home(kept, target)
        place = F.lit(None) if points.place is None else F.expr(points.place)
        told = kept.select(
            *names,
            F.expr(points.txn).cast("string").alias(_TXN),
            place.cast("string").alias(_PLACE),
            (F.lit(None) if is_number else ends).cast("boolean").alias(_LAST),
            (ends if is_number else F.lit(None)).cast("bigint").alias(_COUNT),
            F.coalesce(home, F.lit(0)).alias(_HOME),
            self._applier.names_no_table(kept).alias(_MARK),
            packed(kept).alias(_RECORD),
            F.lit(kept.schema.json()).alias(_SCHEMA),
        )
        ending = F.coalesce(F.col(_LAST), F.col(_COUNT).isNotNull())
        is_mark = F.col(_MARK) & F.col(_TXN).isNotNull() & ending
        return told.withColumn(_MARK, F.coalesce(is_mark, F.lit(False)))


def by_commit_points(
    setup: Setup, applier: AutoCdc | SeveralCdc, points: CommitPoints | str | None
) -> AutoCdc | SeveralCdc | WholeTransactions[Any]:
    """An applier of whole transactions; the same applier without commit points.

    Raises:
        SettingError: A text of the commit points is no expression.
    """
    if points is None:
        return applier
    points = points if isinstance(points, CommitPoints) else CommitPoints(points)
    points.check()
    return WholeTransactions(setup, applier, points)


class _Batch:
    """The records of one batch, and those that waited for them."""

    def __init__(
        self, runner: Runner, tables: Sequence[Table], told: DataFrame, kept: DataFrame
    ) -> None:
        self.runner, self.tables = runner, tables
        self._told, self._kept = told, kept
        batch = runner.transactions.need().batch
        app_id = "NULL" if batch is None else literal(batch.batch.app_id)
        self._app_id, self._is_ours = app_id, f"txn_app_id <=> {app_id}"
        self._waited = self._read()

    def _read(self) -> DataFrame:
        """The records that have waited: ``_FACTS``, ``_SINCE`` and ``_HOME``."""
        names, found = ", ".join((*_NAMES, "row__id.writeid")), None
        for number, table in enumerate(self.tables):
            text = f"SELECT {names} FROM {_pending(table)} WHERE {self._is_ours}"
            rows = self.runner.run(text, None, 0).toDF(*_FACTS, _SINCE)
            rows = rows.withColumn(_HOME, F.lit(number))
            found = rows if found is None else found.unionAll(rows)
        assert found is not None
        return found

    def _arrived(self) -> DataFrame:
        """The records of the batch that have a transaction, as those that have waited."""
        is_mark = F.col(_MARK)
        text = F.when(~is_mark, F.col(_RECORD)).alias(_RECORD)
        others = [name for name in (*_FACTS, _HOME) if name != _RECORD]
        return self._told.where(F.col(_TXN).isNotNull()).select(*others, text)

    def changes(self) -> DataFrame:
        """The records of the batch that are changes."""
        return self._told.where(~F.col(_MARK)).select(*map(quote, self._kept.columns))

    def groups(self) -> DataFrame:
        """The transactions: how many records there are and should be, and whether it is complete.

        One record may come twice, but a commit point is no record.
        """
        known = self._arrived().unionByName(self._waited.drop(_SINCE))
        record = F.when(F.col(_RECORD).isNotNull(), F.coalesce(_PLACE, _RECORD))
        sums = known.groupBy(_TXN).agg(
            F.count_distinct(record).alias("seen"),
            F.max(_LAST).alias("last"),
            F.min(_COUNT).alias("low"),
            F.max(_COUNT).alias("high"),
        )
        return sums.selectExpr(
            _TXN, "seen", "low", "high", "coalesce(seen > high OR low <> high, false) AS wrong",
            "coalesce(last, false) OR coalesce(seen = high, false) AS complete",
        )  # fmt: skip

    def counts(self, groups: DataFrame) -> list[Row]:
        """The numbers of records by home, schema, and whether they waited and are complete.

        Raises:
            WriteError: CDC_COMMIT_POINT_CONTRADICTION.
        """
        columns = (_TXN, _HOME, _SCHEMA, _RECORD)
        arrived = self._arrived().select(
            *columns, F.lit(False).alias("waited"), F.lit(None).cast("bigint").alias(_SINCE)
        )
        known = arrived.unionAll(self._waited.select(*columns, F.lit(True), _SINCE))
        schema = F.when(F.col(_RECORD).isNotNull() & F.col("waited"), F.col(_SCHEMA))
        facts = F.struct("wrong", _TXN, "seen", "low", "high")
        found = (
            known.join(groups, _TXN)
            .groupBy(F.col(_HOME).alias("home"), schema.alias("schema"), "waited", "complete")
            .agg(
                F.count(_RECORD).alias("n"),
                F.max(facts).alias("worst"),
                F.min(_SINCE).alias("since"),
            )
            .collect()
        )
        for one in found:
            if one.worst.wrong:
                raise _contradiction(one.worst)
        return found

    def ready(self, groups: DataFrame, found: Sequence[Row]) -> list[DataFrame]:
        """The records to apply, in the order in which to apply them.

        Those that waited may have other columns than the batch has. They come first, in the order
        in which they began to wait: a late record would not set what newer ones have left out.
        """
        done = groups.where("complete").select(F.col(_TXN).alias(_DONE))
        is_done = F.col(_TXN) == F.col(_DONE)
        names, own = list(map(quote, self._kept.columns)), self._kept.schema.json()
        now = self._told.where(~F.col(_MARK)).join(done, is_done, "left")
        newest = now.where(F.col(_TXN).isNull() | F.col(_DONE).isNotNull()).select(*names)
        older: list[DataFrame] = []
        waited = [one for one in found if one.complete and one.schema is not None]
        for one in sorted(waited, key=lambda one: (one.home, one.since, one.schema)):
            is_one = (F.col(_HOME) == one.home) & (F.col(_SCHEMA) == one.schema)
            rows = self._waited.where(is_one & F.col(_RECORD).isNotNull())
            schema = StructType.fromJson(json.loads(one.schema))
            rows = unpacked(rows.join(done, is_done, "left_semi"), _RECORD, schema)
            if one.schema == own:
                newest = newest.unionAll(rows)
            else:
                older.append(rows)
        return [*older, newest]

    def keep(self, groups: DataFrame, number: int) -> None:
        """Let the records of this batch for one table wait."""
        open_ones = groups.where("NOT complete").select(_TXN)
        rows = self._arrived().where(F.col(_HOME) == number).join(open_ones, _TXN, "left_semi")
        names = ", ".join(_NAMES)
        with view_of(rows.select(*_FACTS).toDF(*_NAMES)) as view:
            run(
                self.runner,
                f"INSERT INTO {_pending(self.tables[number])} (txn_app_id, {names})\n"
                f"SELECT {self._app_id}, {names} FROM {view}",
            )

    def forget(self, groups: DataFrame, number: int) -> None:
        """Delete the records that waited beside one table and are applied."""
        with view_of(groups.where("complete").select(_TXN).toDF("done")) as view:
            run(
                self.runner,
                f"DELETE FROM {_pending(self.tables[number])} WHERE {self._is_ours} "
                f"AND source_txn IN (SELECT done FROM {view})",
            )


def _pending(table: Table) -> str:
    return table_name(pending_name(table.name))


def _contradiction(found: Row) -> WriteError:
    txn, seen, low, high = found[1:]
    told = f"it has {high:,}" if low == high else f"it has {low:,}, and that it has {high:,}"
    return WriteError(
        f"Of the source transaction '{txn}' there are {seen:,} different records, and its commit "
        f"point says that {told}. Nothing of the batch was applied. Records that were filtered out "
        "must not be counted; if records were sent twice in different forms, CommitPoints(place=…) "
        "tells them apart.",
        condition="CDC_COMMIT_POINT_CONTRADICTION", sqlstate="22023", transaction=txn,
    )  # fmt: skip
