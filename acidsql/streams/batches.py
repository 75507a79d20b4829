"""Runs the micro-batches of a streaming query, each exactly once.

One batch, from start to finish:

1. If the run begins with this batch, abort the transactions that a dead run has left open, because
   they hold locks. Look up the ledger. If the batch was committed already, skip it
   (``metastore/stream_rules.py``).
2. Write the batch's rows, in a transaction.
3. COMMIT notes the batch in the ledger, unless another run has changed the entry since 1.

Spark evaluates a batch anew for each action on it, and may get other rows. So each kind of sink has
one action: the statement's own job, or one job that writes the rows into temporary files, or sends
a few rows to the driver.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table, TableName
from acidsql.arguments import checked
from acidsql.errors import AnalysisError, SettingError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.stream_rules import is_replay
from acidsql.metastore.streams import Batch, NextBatch, StreamEntry, next_batch
from acidsql.sql.text.given_names import table_parts
from acidsql.statements.context.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.session.jvm import composed_text_conf
from acidsql.storage.spark.views import drop_view
from acidsql.streams.query import running_query
from acidsql.txn.retry import retry_transient

Target = TypeVar("Target")  # one table, or several


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings and functions that all writers of batches need.

    Attributes:
        spark: The session that starts the query.
        metastore: The session's metastore.
        make_runner: Makes a runner for statements on a batch's own Spark session.
        app_id: The application in the ledger. None: the id of the streaming query.
        retries: How often to write a batch again after a conflict with another transaction.
        require_no_transaction: Raises TxnError if this thread is in a transaction of the session.
            A batch has its own one, so it would wait for the locks of its own caller, and COMMIT
            beside it.
    """

    spark: SparkSession
    metastore: Metastore
    make_runner: Callable[[SparkSession], Runner]
    app_id: str | None
    retries: int
    require_no_transaction: Callable[[str], None]

    def __reduce__(self) -> str:
        """Raise the error of a stream over Spark Connect, which alone pickles the function of
        ``foreachBatch``."""
        raise no_sinks_error(NotSentError)


class NotSentError(UnsupportedError, pickle.PickleError):
    """An error while an object is pickled, which PySpark passes on as it is."""


def no_sinks_error(kind: type[UnsupportedError] = UnsupportedError) -> UnsupportedError:
    """Return the error of a stream into a table over Spark Connect, in the class ``kind``."""
    return kind(
        "With Spark Connect, foreachBatch runs on the server, where this session and its metastore "
        "are not. Start the query in a classic Spark session: a program of spark-submit, for "
        "example. Or write new rows with acid.sql or acid.insert_into, batch by batch.",
        condition="UNSUPPORTED_FEATURE.STREAMS_OVER_CONNECT",
    )


class BatchWriter(Generic[Target]):
    """A function for ``DataStreamWriter.foreachBatch``.

    Attributes:
        last: The receipt of the newest batch; None before the first one.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._runs: set[str] = set()  # the runs whose batches this sink has got
        self.last: Receipt | None = None

    def require_target(self, runner: Runner) -> Target:
        """Look up the target, and return it. Raise AnalysisError if there is no such ACID table."""
        raise NotImplementedError

    def write(self, runner: Runner, target: Target, rows: DataFrame, txn_id: int) -> Receipt | None:
        """Write a batch in the runner's transaction, and return the receipt."""
        raise NotImplementedError

    def prepare_target(self, runner: Runner, target: Target, rows: DataFrame) -> None:
        """Do what must be done before the transaction of a batch begins. By default nothing."""

    def _sink_name(self, target: Target) -> str:
        """Return the target's name in the ledger."""
        raise NotImplementedError

    @checked
    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it was written before, and set ``last``. ``foreachBatch`` calls
        this method. The first batch of a streaming query's run aborts the open transactions of the
        query's other runs. The batch is repeated after a TransientTxnError, as often as allowed.

        Raises:
            StreamError: The batch is out of order: another query or run has written, or a batch is
                missing.
            AnalysisError: The batch's columns do not fit the table.
            TxnError: It is called between BEGIN and COMMIT, and not by a streaming query.
            AcidSqlError: Any error of a statement. Nothing of the batch was written.
        """
        self._setup.require_no_transaction("A batch, which has a transaction of its own,")
        spark = rows.sparkSession
        with composed_text_conf(spark), self._runner(spark) as runner:
            target = self.require_target(runner)
            batch = self._identity(rows, batch_id, target)
            runner.transactions.set_batch(batch)
            if batch.query_id and batch.run_id not in self._runs:
                self._setup.metastore.end_other_runs(batch)
            self.last = retry_transient(
                lambda: self._write_once(runner, target, rows, batch), self._setup.retries
            )
        self._runs.add(batch.run_id)

    def _write_once(
        self, runner: Runner, target: Target, rows: DataFrame, batch: Batch
    ) -> Receipt | None:
        """Write a batch in a transaction, or skip it if the ledger says that it was committed; then
        its entry gets this run. Return the receipt; that of a skipped batch says so, and names the
        transaction that committed it. Raise StreamError if the batch is out of order."""
        entry = self._setup.metastore.stream(batch.app_id, batch.sink)
        if entry is not None and self._is_replay(entry, batch):
            if entry.batch.run_id != batch.run_id:
                self._setup.metastore.take_over_stream(batch, entry.batch)
            statement_text = f"foreachBatch({batch.version})"
            return Receipt(statement_text, txn_id=entry.txn_id, notes=(entry.skipped_note,))
        description = f"batch {batch.version} of the stream {batch.app_id} into {batch.sink}"
        return self._run_in_transaction(runner, target, rows, description, next_batch(batch, entry))

    def _run_in_transaction(
        self, runner: Runner, target: Target, rows: DataFrame, text: str, batch: NextBatch | None
    ) -> Receipt | None:
        """Make the target ready; then write the batch in a new transaction, and commit; after an
        error of these, roll back, and raise it. ``batch``: what COMMIT notes in the ledger; None:
        nothing. Return what ``write`` returns."""
        self.prepare_target(runner, target, rows)
        transaction = runner.transactions.begin(text, in_block=True, batch=batch)
        failed = True
        try:
            receipt = self.write(runner, target, rows, transaction.id)
            failed = False
        finally:
            runner.transactions.end_block(transaction, failed=failed)
        return receipt

    def _is_replay(self, entry: StreamEntry, batch: Batch) -> bool:
        """Whether the ledger's entry says that the batch was committed before. Without a streaming
        query, its own number or a higher one says so; with one, ``stream_rules`` decides, and
        raises StreamError if the batch is out of order."""
        if not batch.query_id:  # no stream: a program that numbers its own batches
            return batch.version <= entry.batch.version
        return is_replay(entry, batch, first=batch.run_id not in self._runs)

    def _identity(self, rows: DataFrame, batch_id: int, target: Target) -> Batch:
        """Return which batch this is, as the ledger knows it: application, number, sink and, if a
        streaming query calls, its id, run and offsets. Raise SettingError if neither a streaming
        query nor ``txn_app_id`` tells the application."""
        query = running_query(rows, self._setup.spark)
        if query is None:
            if self._setup.app_id is None:
                raise SettingError(
                    "No streaming query calls this sink, so nobody knows which batches it has "
                    "written. Pass txn_app_id=… to acid.sink(), or use it in foreachBatch.",
                    name="txn_app_id",
                )
            return Batch(self._setup.app_id, batch_id, self._sink_name(target))
        return Batch(
            self._setup.app_id or query.id,
            batch_id,
            self._sink_name(target),
            query.id,
            query.run_id,
            query.fingerprint(batch_id),
        )

    @contextmanager
    def _runner(self, spark: SparkSession) -> Iterator[Runner]:
        """Yield a new runner on the batch's Spark session, which is a clone of the query's, and
        close it after the block.

        The runner does not use the transaction and the locks of the user's session.
        """
        runner = self._setup.make_runner(spark)
        try:
            yield runner
        finally:
            runner.close()


def resolve_table(runner: Runner, name: str) -> Table:
    """Return the ACID table that has this name. Raise AnalysisError if there is none, also for a
    view or a table of Spark's."""
    parts = table_parts(name)
    table = runner.resolve(parts)
    if table is None:
        raise AnalysisError(
            f"There is no ACID table '{name}' for the stream to write to."
            f"{runner.similar_tables_hint(parts)}",
            condition="TABLE_OR_VIEW_NOT_FOUND",
            sqlstate="42P01",
        )
    return table


def run_statement(runner: Runner, text: str) -> Receipt | None:
    """Run one statement, without retries, and return the runner's last receipt: the statement's, if
    it makes one."""
    runner.run(text, None, 0)
    return runner.last_receipt


def table_name(name: TableName) -> str:
    """Return SQL of a table's name, with its database, quoted."""
    return quoted_path((name.database, name.name))


@contextmanager
def temporary_view(rows: DataFrame) -> Iterator[str]:
    """Make a temporary view of a DataFrame on its own Spark session, and yield the view's name. The
    view is dropped after the block."""
    name = f"acidsql_batch_{uuid.uuid4().hex}"
    rows.createTempView(name)
    try:
        yield name
    finally:
        drop_view(rows.sparkSession, name)
