"""Calls of a Hive Metastore by name: several servers, repeats, the project's errors.

Each thread has a connection of its own, because a connection is not thread-safe. A connection is
never used in a process that was forked. If a connection fails, the next call opens another one, to
the next server of the URL.

Whether a call is repeated after its reply was lost depends on the method:

* *reads* and *idempotent* calls are repeated, at most twice.
* All other calls fail: only the caller can find out what has happened. ``commit_txn`` is such a
  call, because its caller must know that it was repeated.

A call that has used up its time is not repeated, because the server would then do the same work
twice at once. A server that is slow is waited for; one whose machine is gone is noticed within two
minutes (see ``connection``).
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from acidsql.costs import note_metastore_call
from acidsql.errors import (
    AcidSqlError,
    CatalogError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnError,
)
from acidsql.metastore.hive.wire.address import Address, host_and_port
from acidsql.metastore.hive.wire.connection import INTERNAL, LOST, REFUSED, Connection
from acidsql.metastore.hive.wire.security import advice, user_of

_REPEATS = 2
_PAUSE_S = 0.2  # before the first repeat; twice as long before the next
# A transaction times out while its heartbeat waits for a server that hangs. So another connection,
# perhaps to another server, is tried soon.
_HEARTBEAT_TIMEOUT_MS = 20_000
_READS = ("get", "show_")
# A lost ``open_txns`` leaves a transaction that times out. ``add_dynamic_partitions`` may write the
# same rows twice, which changes nothing.
_IDEMPOTENT = {
    "set_ugi", "open_txns", "heartbeat", "check_lock", "unlock", "abort_txn",
    "allocate_table_write_ids", "add_dynamic_partitions", "add_partitions_req", "compact2",
    "abort_Compactions", "drop_partitions_req", "alter_partitions_req",
    "alter_partitions_with_environment_context", "mark_compacted", "mark_failed", "mark_refused",
}  # fmt: skip

_GENERAL_ADVICE = (
    "Is the address right, is the server running, and does it ask for other security (auth=, tls=)?"
)

# What the server's words mean for who runs it.
_HINTS = {
    "using an ACID compliant format": " A server says so of ORC, too, if it does not know Hive's "
    "formats: the class path of the metastore must have hive-exec.",
    "types incompatible with the existing columns": " The metastore allows the change if its "
    "hive.metastore.disallow.incompatible.col.type.changes is false.",
}


class Client:
    """Calls one metastore. Several threads may use an instance.

    Args:
        address: The metastore.
        sleep: Waits for some seconds; tests replace it.
    """

    def __init__(self, address: Address, sleep: Callable[[float], None] = time.sleep) -> None:
        self.address, self._sleep = address, sleep
        self._own = threading.local()
        self._all: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._servers = list(address.hosts)
        random.shuffle(self._servers)  # so that many clients do not all ask the first
        self._closed = False

    def call(self, name: str, *values: Any, repeats: int | None = None) -> Any:
        """Call a method with the values of its arguments, and return its answer.

        Args:
            name: The method.
            values: The arguments, in order.
            repeats: How often the call may be repeated if its reply is lost and the address's
                time-out has not passed. None: twice for reads and idempotent methods, never for
                others.

        Raises:
            MetastoreError: No server answers, the server failed, or the reply was lost.
            TxnError, CatalogError: The server refuses; the class says why.
        """
        repeats_left = repeats if repeats is not None else _REPEATS if _may_repeat(name) else 0
        pause_s, end = _PAUSE_S, time.monotonic() + self.address.timeout_s
        while True:
            connection = self._thread_connection()
            note_metastore_call()
            try:
                return connection.call(name, self._timeout_ms(name), *values)
            except INTERNAL as error:
                self._drop(connection)  # the server may close it, too
                raise self._call_error(connection.host, name, error) from error
            except LOST as error:
                self._drop(connection)
                if repeats_left <= 0 or time.monotonic() >= end:
                    raise self._call_error(connection.host, name, error) from error
            except REFUSED as error:
                raise converted_error(error, name) from error
            except BaseException:
                # Interrupted, for example: the next call would read the answer to this one.
                self._drop(connection)
                raise
            repeats_left -= 1
            self._sleep(pause_s)
            pause_s *= 2

    def has_method(self, name: str, *values: Any) -> bool:
        """Call a method with these arguments, and return whether the server knows it; errors other
        than that of an unknown method are raised."""
        try:
            self.call(name, *values)
        except MetastoreError as error:
            if _is_unknown(error.__cause__):
                return False
            raise
        return True

    @property
    def user(self) -> str:
        """The user's name, as the server knows it."""
        # Only the ticket tells it.
        is_by_ticket = self.address.auth == "kerberos"
        return self._thread_connection().user if is_by_ticket else user_of(self.address)

    @property
    def protection(self) -> str:
        """The protection of all messages by Kerberos: ``signed``, ``encrypted`` or nothing."""
        return self._thread_connection().protection

    def close(self) -> None:
        """Close the connections of all threads. May be called twice; later calls fail."""
        self._closed = True
        with self._guard:
            connections = list(self._all)
        for connection in connections:
            connection.close()

    def _thread_connection(self) -> Connection:
        """Return this thread's connection, opened if necessary. Raise MetastoreError if the client
        is closed, or no server answers."""
        if self._closed:
            raise MetastoreError(f"The connection to {self.address} is closed.")
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is not None and self._own.process == os.getpid():
            if connection.is_open:
                return connection
            self._drop(connection)
        self._own.connection, self._own.process = self._open(), os.getpid()
        new_connection: Connection = self._own.connection
        return new_connection

    def _open(self) -> Connection:
        """Open a connection to the first server that answers, in the order in which this client
        asks them. One that does not answer is asked last from then on. Raise MetastoreError, with
        advice, if none answers."""
        failures, advices = [], dict[str, None]()
        with self._guard:
            servers = list(self._servers)
        for host, port in servers:
            try:
                opened = Connection(self.address, host, port)
            except (*LOST, INTERNAL) as error:
                failures.append(f"{host_and_port(host, port)}: {_message_of(error)}")
                advices[advice(self.address, host, error)] = None
                with self._guard:
                    self._servers.remove((host, port))
                    self._servers.append((host, port))
                continue
            with self._guard:
                self._all.add(opened)
            return opened
        # Advice about one server may help with it, so the general one is only the last resort.
        hints = " ".join(filter(None, advices)) or _GENERAL_ADVICE
        raise MetastoreError(
            f"No Hive Metastore answers at {self.address} ({'; '.join(failures)}). {hints}",
            metastore=self.address,
        )

    def _timeout_ms(self, name: str) -> int:
        most = self.address.timeout_s * 1000
        return min(most, _HEARTBEAT_TIMEOUT_MS) if name == "heartbeat" else most

    def _drop(self, connection: Connection) -> None:
        self._own.connection = None
        connection.close()

    def _call_error(self, host: str, method: str, error: BaseException) -> MetastoreError:
        """Make the error to raise when a call has failed on a server. It says whether the server
        failed or did not answer, with advice about security (TLS, Kerberos)."""
        failure = "failed at" if isinstance(error, INTERNAL) else "did not answer"
        message = (
            f"The Hive Metastore {self.address} {failure} the call {method}: {_message_of(error)}."
        )
        return MetastoreError(
            f"{message} {advice(self.address, host, error)}".rstrip(),
            metastore=self.address,
            call=method,
        )


def _may_repeat(name: str) -> bool:
    return name.startswith(_READS) or name in _IDEMPOTENT


def _is_unknown(error: BaseException | None) -> bool:
    return isinstance(error, INTERNAL) and error.type == INTERNAL.UNKNOWN_METHOD


def _message_of(error: BaseException) -> str:
    """The message of an error with Thrift's reason, or its type if the message is empty; in one
    line of at most 500 characters."""
    text = str(getattr(error, "message", None) or error) or type(error).__name__
    reason = getattr(error, "inner", None)  # Thrift's own errors do not say why
    return " ".join((f"{text}: {reason}" if reason else text).split())[:500]


def converted_error(error: Any, method: str) -> AcidSqlError:
    """Return, not raise, the project's error for an exception of the server: NoSuchTxnError,
    TxnAbortedError, TxnError about a lock, or CatalogError, with the condition METASTORE_REFUSED if
    the server's reason is none of those that are known."""
    reason = _message_of(error)
    match type(error).__name__:
        case "NoSuchTxnException":
            return NoSuchTxnError(f"The metastore says: {reason}.")
        case "TxnAbortedException":
            return TxnAbortedError(f"The metastore says: {reason}.")
        case "NoSuchLockException":
            return TxnError(f"The metastore says: {reason}.", condition="NO_SUCH_LOCK")
        case "TxnOpenException":
            return TxnError(f"The metastore says: {reason}.", condition="TXN_OPEN")
        case "NoSuchObjectException" | "UnknownDBException":
            return CatalogError(f"The metastore says: {reason}.")
        case "AlreadyExistsException":
            return CatalogError(
                f"The metastore says: {reason}.",
                condition="TABLE_OR_VIEW_ALREADY_EXISTS",
                sqlstate="42P07",
            )
    hint = next((hint for words, hint in _HINTS.items() if words in reason), "")
    return CatalogError(
        f"The metastore refuses {method}: {reason}.{hint}",
        condition="METASTORE_REFUSED",
        sqlstate="38000",
    )
