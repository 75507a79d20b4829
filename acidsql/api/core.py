"""What the methods of a session share: its parts, and what each method checks first."""

from __future__ import annotations

import getpass
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.errors import SettingError
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings
from acidsql.sql.text.given_names import table_parts
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.runner import Runner


class SessionCore:
    """The parts of a session. ``Session`` has ``sql`` and ``transaction``; the classes between have
    the other methods, a subject each."""

    sql: Callable[..., DataFrame]
    transaction: Callable[..., AbstractContextManager[Transaction]]

    def __init__(
        self,
        spark: SparkSession,
        warehouse: str,
        metastore: Metastore,
        settings: Settings,
        retries: int,
        compactor: str = "off",
    ) -> None:
        """Keep the parts, and make the runner of statements, for this machine's user and host."""
        self.spark, self.warehouse, self.metastore = spark, warehouse, metastore
        self._user_and_host = {"user": getpass.getuser(), "host": socket.gethostname()}
        self._runner = Runner(
            spark, metastore, settings, compactor=compactor,
            user=self._user_and_host["user"], host=self._user_and_host["host"],
        )  # fmt: skip
        self._retries = retries
        self._closed = False
        self._lock = threading.RLock()

    def _need_open(self) -> None:
        """Raise SettingError if the session is closed."""
        if self._closed:
            raise SettingError(
                "This session is closed. Open a new one with acidsql.connect().",
                condition="INVALID_HANDLE.SESSION_CLOSED",
                sqlstate="HY000",
            )

    def _table(self, name: str) -> Table:
        """Return the ACID table of this name, ``table`` or ``database.table``; its constraints may
        be outdated, because a cache may answer. Raise CatalogError, which names similar tables, if
        there is none, if a view has the name, or if the text is no such name."""
        return self._runner.require_table(table_parts(name))
