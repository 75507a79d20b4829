"""Writes the micro-batches of a streaming query into one ACID table, each exactly once.

One batch, from start to finish:

1. Look up the ledger. If the batch was committed already, skip it (``metastore/stream_rules.py``).
2. Run one statement over the batch's rows, in a transaction: INSERT, an overwrite, or MERGE.
3. COMMIT notes the batch in the ledger, unless another run has changed the entry since 1.

Spark evaluates a batch anew for each action on it, and may get other rows. So each mode has one
action: the statement's own job, or one job that writes the rows into temporary files.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, SettingError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.stream_rules import is_replay
from acidsql.metastore.streams import Batch, StreamEntry, entry_of, following
from acidsql.sql.parts import parts_of
from acidsql.statements.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import quote
from acidsql.storage.writing.staging import staged
from acidsql.streams.query import running_query
from acidsql.streams.upsert import keyed, merge_text, refuse_bad_keys
from acidsql.txn.retry import again

MODES = ("append", "complete", "upsert")


class Sink:
    """A function for ``DataStreamWriter.foreachBatch``; ``Session.sink`` makes it.

    Args:
        spark: The session that starts the query.
        metastore: The session's metastore.
        make_runner: Makes a runner for statements on a batch's own Spark session.
        table: The target, ``database.table``.
        mode: ``append``, ``complete`` or ``upsert``.
        keys: For ``upsert``: the columns that name a row.
        app_id: The application in the ledger. None: the id of the streaming query.
        retries: How often to write a batch again after a conflict with another transaction.

    Attributes:
        last: The receipt of the newest batch; None before the first one.
    """

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        make_runner: Callable[[SparkSession], Runner],
        table: str,
        *,
        mode: str,
        keys: Sequence[str],
        app_id: str | None,
        retries: int,
    ) -> None:
        self._spark, self._metastore, self._make_runner = spark, metastore, make_runner
        self.table, self._mode = table, mode
        self._keys = list(dict.fromkeys(key.lower() for key in keys))
        self._app_id, self._retries = app_id, retries
        self._runs: set[str] = set()  # the runs whose batches this sink has got
        self.last: Receipt | None = None

    def __repr__(self) -> str:
        return f"<acidsql sink of {self.table}, {self._mode}>"

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it was written before. ``foreachBatch`` calls this method.

        Raises:
            StreamError: The batch is out of order (see ``StreamError``).
            AnalysisError: The batch's columns do not fit the table.
            AcidSqlError: As ``Session.sql``. Nothing of the batch was written.
        """
        with self._runner(rows.sparkSession) as runner:
            table = self._target(runner)
            batch = self._identity(rows, batch_id, table)
            self.last = again(lambda: self._once(runner, table, rows, batch), self._retries)
        self._runs.add(batch.run_id)

    def _once(self, runner: Runner, table: Table, rows: DataFrame, batch: Batch) -> Receipt | None:
        entry = entry_of(self._metastore, batch)
        if entry is not None and self._is_replay(entry, batch):
            if entry.batch.run_id != batch.run_id:
                self._metastore.take_over_stream(batch, entry.batch)
            said = f"foreachBatch({batch.version})"
            return Receipt(said, txn_id=entry.txn_id, notes=(entry.skipped,))
        text = f"batch {batch.version} of the stream {batch.app_id} into {table.name}"
        transaction = runner.transactions.begin(text, in_block=True, batch=following(batch, entry))
        failed = True
        try:
            self._write(runner, table, rows, transaction.id)
            failed = False
        finally:
            runner.transactions.end_block(transaction, failed=failed)
        return runner.last

    def _is_replay(self, entry: StreamEntry, batch: Batch) -> bool:
        if not batch.query_id:  # no stream: a program that numbers its own batches
            return batch.version <= entry.batch.version
        return is_replay(entry, batch, first=batch.run_id not in self._runs)

    def _identity(self, rows: DataFrame, batch_id: int, table: Table) -> Batch:
        query = running_query(rows, self._spark)
        if query is None:
            if self._app_id is None:
                raise SettingError(
                    "No streaming query calls this sink, so nobody knows which batches it has "
                    "written. Pass txn_app_id=… to acid.sink(), or use it in foreachBatch.",
                    name="txn_app_id",
                )
            return Batch(self._app_id, batch_id, str(table.name))
        return Batch(
            self._app_id or query.id,
            batch_id,
            str(table.name),
            query.id,
            query.run_id,
            query.fingerprint(batch_id),
        )

    def _target(self, runner: Runner) -> Table:
        table = runner.resolve(parts_of(self.table))
        if table is None:
            raise AnalysisError(
                f"There is no ACID table '{self.table}' for the stream to write to.",
                condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
            )  # fmt: skip
        return table

    @contextmanager
    def _runner(self, spark: SparkSession) -> Iterator[Runner]:
        """A runner on the batch's session, which is a clone of the session of the query.

        The user's session, its transaction and its lock are not concerned.
        """
        runner = self._make_runner(spark)
        try:
            yield runner
        finally:
            runner.close()

    # ── the statements ───────────────────────────────────────────────────────────────────────

    def _write(self, runner: Runner, table: Table, rows: DataFrame, txn_id: int) -> None:
        rows = _fitting(table, rows)
        target, names = table_name(table), ", ".join(map(quote, rows.columns))
        if self._mode == "upsert":
            with staged(keyed(table, rows, self._keys), table.location, txn_id) as kept:
                refuse_bad_keys(kept, self._keys)
                with view_of(kept) as view:
                    run(runner, merge_text(table, target, view, kept, self._keys))
            return
        with view_of(rows) as view:
            if self._mode == "complete":
                # An overwrite replaces only the partitions that get rows, and must be alone in its
                # transaction (see ``Transaction.refuse_hidden``).
                if table.partition_columns:
                    run(runner, f"DELETE FROM {target}")
                else:
                    run(runner, f"INSERT OVERWRITE TABLE {target} ({names}) "
                                 f"SELECT {names} FROM {view}")  # fmt: skip
                    return
            run(runner, f"INSERT INTO {target} ({names}) SELECT {names} FROM {view}")


def run(runner: Runner, text: str) -> None:
    """Run one statement, once."""
    runner.run(text, None, 0)


def table_name(table: Table) -> str:
    """The table's name in a statement."""
    return f"{quote(table.name.database)}.{quote(table.name.name)}"


def _fitting(table: Table, rows: DataFrame) -> DataFrame:
    """The batch with its columns' names in lower case, as the table has them.

    Raises:
        AnalysisError: The table lacks one of the columns, or the batch has it twice.
    """
    known = {column.name for column in (*table.columns, *table.partition_columns)}
    names = [name.lower() for name in rows.columns]
    for name in names:
        if name not in known:
            raise AnalysisError(
                f"The batch has a column '{name}' that the table {table.name} does not have. "
                "Leave it out by select(…), or add it by ALTER TABLE … ADD COLUMNS.",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=name,
            )  # fmt: skip
        if names.count(name) > 1:
            raise AnalysisError(
                f"The batch for {table.name} has two columns '{name}'.",
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711", column=name,
            )  # fmt: skip
    return rows.toDF(*names)


@contextmanager
def view_of(rows: DataFrame) -> Iterator[str]:
    """A name for a DataFrame in the statements of the block, on the DataFrame's own session."""
    name = f"acidsql_batch_{uuid.uuid4().hex}"
    rows.createTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
