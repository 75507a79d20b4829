"""Connections, store transactions and the store's clock, for every kind of database.

Only one store transaction writes at a time: each begins with a lock (see ``Dialect.write``), and so
sees all changes of earlier ones. The lock replaces every mutex and ``SELECT … FOR UPDATE`` of
Hive's TxnHandler (hive-transactions.md §1.4).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, Engine, Table, event, make_url, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from acidsql.costs import note_metastore_call
from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.database.dialect import Dialect
from acidsql.metastore.embedded.database.mysql import MYSQL
from acidsql.metastore.embedded.database.postgresql import POSTGRESQL
from acidsql.metastore.embedded.database.sqlite import SQLITE
from acidsql.metastore.embedded.database.upgrade import create_or_upgrade, is_up_to_date

_DIALECTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}
_SCHEME = re.compile(r"(?P<dialect>[a-z]+)(\+(?P<driver>\w+))?://")
# Drivers raise these for unknown options and missing packages.
_BAD_OPTION = (TypeError, ValueError, RuntimeError, ImportError)


class Store:
    """An opened database: its store transactions and its clock.

    Args:
        url: A URL of SQLAlchemy.
        warehouse: Location of the database ``default``, used when the store is created.
        clock: Milliseconds since the epoch; None for the database's own clock.
        busy_timeout_ms: How long to wait for another process, or another thread, that is writing.

    Raises:
        MetastoreError: The store cannot be opened, or it is no metastore of acidsql.
    """

    def __init__(
        self,
        url: str,
        *,
        warehouse: str,
        clock: Callable[[], int] | None,
        busy_timeout_ms: int,
    ) -> None:
        self.name, self._clock, self._process = _url_for_messages(url), clock, os.getpid()
        self.dialect_name = url.partition(":")[0].partition("+")[0]
        self._dialect, self._busy_ms = _dialect_of_url(url, self.name), busy_timeout_ms
        self._writing = threading.Lock()
        self.engine = _open_engine(self._dialect, url, self.name, busy_timeout_ms)
        event.listen(self.engine, "before_cursor_execute", lambda *_: note_metastore_call())
        try:
            self._create_or_upgrade(warehouse)
        except BaseException:
            self.close()
            raise

    def read(self) -> AbstractContextManager[Connection]:
        """Begin a store transaction that only reads; it ends with the ``with`` block. It sees one
        moment, and waits for no writer."""
        return self._begin(self._dialect.read)

    def write(self) -> AbstractContextManager[Connection]:
        """Begin a store transaction that may write; the ``with`` block's end commits it, an error
        rolls it back: all of its changes happen, or none (I12). It waits for other writers.

        If the connection is lost during COMMIT, MetastoreError says that the changes may have
        happened.
        """
        return self._write(self._dialect.write)

    def now_ms(self, connection: Connection) -> int:
        """Return the store's time in milliseconds since the epoch: the only clock for time-outs."""
        if self._clock is not None:
            return self._clock()
        return int(connection.execute(text(self._dialect.now)).scalar_one())

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def _create_or_upgrade(self, warehouse: str) -> None:
        """Make the schema, or bring it up to date, unless it is. Raise MetastoreError if the
        database belongs to something else, or its schema is too new or too old. ``warehouse``: the
        location of the database ``default`` in a new store."""
        with self.read() as connection:
            if is_up_to_date(connection):
                return
        with self._write(self._dialect.upgrade) as connection:
            create_or_upgrade(connection, warehouse)
        self.engine.dispose()  # closing the connection releases MySQL's GET_LOCK

    @contextmanager
    def _write(self, statements: Sequence[str]) -> Iterator[Connection]:
        """Run a block in a store transaction that begins with these statements and may write.
        Before it, wait until other threads that use this Store have ended theirs; raise
        MetastoreError if the wait is longer than the busy time-out."""
        # Threads of this process wait here. If they waited in the database, each would keep a
        # connection, and the pool would have none left for readers.
        self._leave_parents_connections()
        with self._one_writing_thread(), self._begin(statements, writes=True) as connection:
            yield connection

    @contextmanager
    def _one_writing_thread(self) -> Iterator[None]:
        """Run a block while no other thread writes through this Store. Raise MetastoreError if the
        wait for the other threads, not the block, takes longer than the busy time-out."""
        writing = self._writing
        if not writing.acquire(timeout=self._busy_ms / 1000):
            reason = "Other threads wrote to it for longer than acidsql.metastore.busy.timeout."
            raise MetastoreError(
                f"The metastore {self.name} is busy. {reason} Nothing was changed.",
                store=self.name,
                reason=reason,
            )
        try:
            yield
        finally:
            writing.release()

    @contextmanager
    def _begin(self, statements: Sequence[str], *, writes: bool = False) -> Iterator[Connection]:
        """Run a block in a store transaction that begins with these statements. SQLAlchemy's errors
        become MetastoreError, all others pass. If COMMIT itself fails, and the block ``writes``,
        the error says that the changes may have happened."""
        unknown = False
        try:
            with self._connect() as connection, connection.begin():
                for statement in statements:
                    self._execute_opening_statement(connection, statement)
                yield connection
                unknown = writes  # an error from here on comes from COMMIT
        except SQLAlchemyError as error:
            raise self._store_error(error, unknown=unknown) from error

    def _connect(self) -> Connection:
        """Take a connection from the pool, in a forked process from a new one. Raise MetastoreError
        if the URL's options are wrong; SQLAlchemy's errors pass."""
        self._leave_parents_connections()
        try:
            return self.engine.connect()
        except _BAD_OPTION as error:
            raise self._store_error(error, unknown=False) from error

    def _leave_parents_connections(self) -> None:
        """In a process that was forked from the one that opened the store, forget the parent's
        connections without closing them, and take a new lock. Otherwise do nothing."""
        if os.getpid() != self._process:
            # A connection must not be used after a fork, not even to close it. The lock may be held
            # by a thread that only the parent has.
            self.engine.dispose(close=False)
            self._process, self._writing = os.getpid(), threading.Lock()

    def _execute_opening_statement(self, connection: Connection, statement: str) -> None:
        """Run a statement that begins a store transaction. If it returns rows, it asks for a lock:
        raise MetastoreError if the first value is false, 0 or NULL, or there is no row, as the lock
        was not granted."""
        result = connection.exec_driver_sql(statement)
        if result.returns_rows and not result.scalar():
            raise MetastoreError(
                f"The metastore {self.name} gave no lock: {statement}. Nothing was changed.",
                store=self.name,
                reason=statement,
            )

    def _store_error(self, error: Exception, *, unknown: bool) -> MetastoreError:
        """Make the MetastoreError of an error of the database, with advice. ``unknown``: whether
        the changes may have been committed."""
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        hints = [advice for part, advice in self._dialect.advice.items() if part in reason]
        if unknown:
            sentences = [
                f"The metastore {self.name} did not answer to COMMIT: {reason}.",
                *hints[:1],
            ]
            sentences.append("It may have committed nevertheless.")
        else:
            sentences = [f"The metastore {self.name} reported an error: {reason}.", *hints[:1]]
            sentences.append("Nothing was changed.")
        return MetastoreError(" ".join(sentences), store=self.name, reason=reason)


def next_number(connection: Connection, counter: Table) -> int:
    """Take the next number of a one-row counter table (NEXT_TXN_ID and its like): return it, and
    add 1 to the row."""
    (column,) = counter.columns
    connection.execute(update(counter).values({column: column + 1}))
    return int(connection.execute(select(column)).scalar_one()) - 1


def _dialect_of_url(url: str, url_for_messages: str) -> Dialect:
    """Return the dialect that a metastore's URL names. Raise MetastoreError UNSUPPORTED_METASTORE
    if it names another database or driver. ``url_for_messages``: the URL without its password."""
    scheme = _SCHEME.match(url)
    dialect = _DIALECTS.get(scheme["dialect"]) if scheme else None
    if scheme is None or dialect is None or scheme["driver"] not in (None, dialect.driver):
        known_urls = (
            f"{name}+{dialect.driver}://…" if dialect.extra else "sqlite:////directory/file"
            for name, dialect in _DIALECTS.items()
        )
        raise MetastoreError(
            f"'{url_for_messages}' is no metastore; it can be {', '.join(known_urls)}, or that of "
            "a Hive: thrift://host:9083.",
            condition="UNSUPPORTED_METASTORE",
            sqlstate="0A000",
            store=url_for_messages,
        )
    return dialect


def _open_engine(dialect: Dialect, url: str, url_for_messages: str, busy_timeout_ms: int) -> Engine:
    """Make the engine of a URL, without a connection yet. Raise MetastoreError if the driver is not
    installed, or the URL is wrong. ``url_for_messages``: the URL without its password."""
    try:
        return dialect.open(url, busy_timeout_ms)
    except ModuleNotFoundError as error:
        raise MetastoreError(
            f"The metastore {url_for_messages} needs the package {error.name}: "
            f"pip install 'acidsql[{dialect.extra}]'.",
            condition="DRIVER_NOT_INSTALLED",
            store=url_for_messages,
        ) from error
    except (SQLAlchemyError, ValueError) as error:
        raise MetastoreError(
            f"'{url_for_messages}' is no URL of a metastore.", store=url_for_messages
        ) from error


def _url_for_messages(url: str) -> str:
    """Return the URL for messages and logs: without the password and the options that do not say
    where the database is. A URL of SQLite stays as it is. A text that SQLAlchemy cannot parse loses
    all before its last ``@`` but the scheme, and all options."""
    if url.startswith("sqlite"):
        return url
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        # One with a wrong scheme, such as ``postgresql//``, may have a password, too.
        shown = re.sub(r"^([\w+]*:?/*).*@", r"\1***@", url, flags=re.DOTALL)
        return shown.partition("?")[0]
    where = {key: parsed.query[key] for key in ("host", "unix_socket") if key in parsed.query}
    return parsed.set(query=where).render_as_string(hide_password=True)
