"""A Hive Metastore, as the parts of the store share it: its calls, its features, and the own
transactions of the session."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from acidsql.acid.layout import DEFAULT_PARTITION
from acidsql.acid.table import TableName
from acidsql.errors import (
    AcidSqlError,
    CatalogError,
    NoSuchTxnError,
    TxnAbortedError,
    UnsupportedError,
)
from acidsql.metastore.hive.wire import hive3
from acidsql.metastore.hive.wire.address import DEFAULT_CATALOG
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.features import DEFAULT_PARTITION_NAME, Features
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn

log = logging.getLogger(__package__)

# The names of what is in a directory; none if there is no such directory.
ListNames = Callable[[str], Sequence[str]]
NAME_MAX = 128  # characters of a name in a transaction or lock; with more, the server fails
ROLLED_BACK = 50005  # Hive's reason for an abort (TxnErrorMsg)


class Server:
    """One metastore, for one session. Several threads may use an instance.

    Args:
        client: Calls the server.
        features: What the server has said about itself.
        list_names: Lists a directory. The store itself must not know files.

    Attributes:
        catalog: The session's catalog on the server.
        user: The session's user.
        own_txns: The open transactions of this session, by the number with which they write.
    """

    def __init__(self, client: Client, features: Features, list_names: ListNames) -> None:
        self.client, self.features, self.list_names = client, features, list_names
        self.catalog, self.user = client.address.catalog, client.user
        self.own_txns: dict[int, OwnTxn] = {}

    def own_txn(self, txn_id: int) -> OwnTxn:
        """The record of a transaction; if another session has opened it, a new record, which is not
        remembered."""
        own_txn = self.own_txns.get(txn_id)
        return OwnTxn(txn_id, self.user, socket.gethostname()) if own_txn is None else own_txn

    def call(self, name: str, *values: Any) -> Any:
        """Call a method of Hive 4 with its arguments, over Hive 3 in its words. Raise the project's
        errors. If the error says that one of an own transaction's two numbers has ended, abort the
        other one before, unless the call itself is ``abort_txn``."""
        try:
            if self.features.is_hive3:
                return hive3.call(self.client, name, *values)
            return self.client.call(name, *values)
        except (NoSuchTxnError, TxnAbortedError):
            ended = getattr(values[0], "txnid", None)
            for own in list(self.own_txns.values()) if name != "abort_txn" else ():
                if ended in own.numbers:
                    for number in set(own.numbers) - {ended}:
                        self.end_number(number)
            raise

    def end_number(self, number: int) -> None:
        """Abort a transaction's number that is not needed any more; if that fails, it times out."""
        with suppress(AcidSqlError):
            self.call("abort_txn", hive.AbortTxnRequest(txnid=number, errorCode=ROLLED_BACK))

    def qualified_database(self, database: str) -> str:
        """A database of the session's catalog, for a call that has no argument for the catalog."""
        return database if self.catalog == DEFAULT_CATALOG else f"@{self.catalog}#{database}"

    def need_usual_null(self, name: TableName) -> None:
        """Raise UnsupportedError if the server's word for NULL in names of partitions is not the
        usual one.

        acidsql would show this word where Hive means NULL, and Hive would show acidsql's.
        """
        word = self.features.default_partition
        if word != DEFAULT_PARTITION:
            raise UnsupportedError(
                f"The partitioned table {name} cannot be used, because the server says "
                f"{DEFAULT_PARTITION_NAME}={word}. acidsql knows {DEFAULT_PARTITION} only.",
                condition="UNSUPPORTED_FEATURE.DEFAULT_PARTITION_NAME",
            )


def is_missing(error: CatalogError) -> bool:
    """Whether the server has said that there is no such thing."""
    return error.condition == "TABLE_OR_VIEW_NOT_FOUND"
