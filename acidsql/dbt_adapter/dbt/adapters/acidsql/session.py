"""One connection of dbt's: an acidsql session over a Spark session of its own.

dbt opens a connection for each node and runs nodes in several threads. A transaction, a temporary
view and a conf belong to one session, so connections share none. All run in one Spark application.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.acidsql.credentials import AcidsqlCredentials
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionWrapper
from pyspark.sql import DataFrame, SparkSession

import acidsql
from acidsql.errors import TxnError
from acidsql.java import use_java
from acidsql.sql.text.tokens import split_statements
from acidsql.storage.spark.session.quiet import new_spark

_log = AdapterLogger("acidsql")
_OWN_CONF = "spark.acidsql."
_starting_spark = threading.Lock()
_NO_TRANSACTION = "NO_ACTIVE_TRANSACTION"


def open_session(credentials: AcidsqlCredentials) -> acidsql.Session:
    """Open an acidsql session over a new Spark session, which has the profile's conf.

    Raises:
        AcidSqlError: The warehouse or the metastore cannot be opened, or a setting is wrong.
        PySparkException: Spark cannot be started, or the server of Spark Connect not be reached.
    """
    spark = _new_spark_session(credentials)
    return acidsql.connect(
        spark,
        warehouse=credentials.warehouse,
        metastore=credentials.metastore,
        compactor=credentials.compactor,
        retries=credentials.retries,
        settings=credentials.settings,
    )


def _new_spark_session(credentials: AcidsqlCredentials) -> SparkSession:
    """Return a new Spark session: of the process's Spark, which is started if there is none, or of
    the server of Spark Connect."""
    conf = credentials.spark_conf
    if credentials.method == "connect":
        builder = SparkSession.builder.remote(credentials.host)
        for name, value in conf.items():
            builder = builder.config(name, value)
        return builder.create()
    with _starting_spark:
        running = SparkSession.getActiveSession()
        if running is None:
            use_java()
            running = new_spark(conf)
    spark = running.newSession()
    for name, value in conf.items():
        if name.startswith(_OWN_CONF) or spark.conf.isModifiable(name):
            spark.conf.set(name, value)
        elif (running_value := spark.conf.get(name, None)) != value:
            _log.warning(f"Spark runs already: {name} stays {running_value}, and is not {value}.")
    return spark


class SessionHandle(SparkConnectionWrapper):
    """dbt's handle and cursor of one session. dbt uses it in one thread, and cancels in another.

    Attributes:
        session: The acidsql session.
        is_remote: Spark Connect's server has the Spark session.
        rows_affected: The number of rows that the last text has changed; None: it was no change.
        statement_name: The first word of the last statement, in upper case; "" before the first.
    """

    def __init__(self, session: acidsql.Session, *, is_remote: bool) -> None:
        self.session, self.is_remote = session, is_remote
        self.rows_affected: int | None = None
        self.statement_name = ""
        self._rows: DataFrame | None = None

    def cursor(self) -> SessionHandle:
        return self

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run the statements of a text in their order; the rows are those of the last one. A COMMIT
        without a transaction does nothing: dbt runs one before hooks outside of transactions.

        Raises:
            AcidSqlError: A statement failed; those behind it were not run.
            PySparkException: Spark refused a statement.
        """
        self._rows = self.rows_affected = None
        statements = [span.slice(sql) for span in split_statements(sql)]
        for statement in statements:
            self._run(statement, bindings)

    def execute_with_frames(self, statement: str, frames: Mapping[str, Any]) -> None:
        """Run one statement that names DataFrames in braces. Raise what ``execute`` raises."""
        self._rows = self.rows_affected = None
        self._run(statement, None, frames)

    def _run(
        self,
        statement: str,
        bindings: Sequence[Any] | None,
        frames: Mapping[str, Any] | None = None,
    ) -> None:
        self.statement_name = statement.split(None, 1)[0].upper()
        args = None if bindings is None else list(bindings)
        last_receipt = self.session.last
        try:
            self._rows = self.session.sql(statement, args, **(frames or {}))
        except TxnError as error:
            if self.statement_name != "COMMIT" or error.condition != _NO_TRANSACTION:
                raise
        receipt = self.session.last
        if receipt is not last_receipt and receipt is not None and receipt.counts:
            self.rows_affected = sum(counts.affected for counts in receipt.counts)

    @property
    def description(self) -> list[tuple[Any, ...]]:
        """The columns of the last rows as PEP 249 has them: name, type's name, …, nullable."""
        if self._rows is None:
            return []
        return [
            (column.name, column.dataType.simpleString(), None, None, None, None, column.nullable)
            for column in self._rows.schema.fields
        ]

    def fetchall(self) -> list[Any]:
        return [] if self._rows is None else [tuple(row) for row in self._rows.collect()]

    def fetchmany(self, limit: int) -> list[Any]:
        return [] if self._rows is None else [tuple(row) for row in self._rows.take(limit)]

    def fetchone(self) -> Any:
        return next(iter(self.fetchmany(1)), None)

    def begin(self) -> None:
        self.session.sql("BEGIN")

    def commit(self) -> None:
        self.session.sql("COMMIT")

    def rollback(self, *args: Any, **kwargs: Any) -> None:
        """Undo the open transaction; without one do nothing."""
        if self.session.txn_id is not None:
            self.session.sql("ROLLBACK")

    def cancel(self) -> None:
        """End what the session runs now, from another thread: its statement fails."""
        self.session.spark.interruptAll()

    def close(self) -> None:
        """Undo an open transaction, drop the session's temporary tables, and close it."""
        self.session.close()
        if self.is_remote:
            self.session.spark.stop()  # the server forgets this session; others go on
