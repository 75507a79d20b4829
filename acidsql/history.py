"""The public methods of a session about older versions of tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.statements.runner import Runner


class HistoryMethods:
    """What a ``Session`` offers for versions of tables."""

    _runner: Runner
    _lock: threading.RLock
    _need_open: Callable[[], None]
    _table: Callable[[str], Table]

    def table(
        self,
        name: str,
        *,
        row_id: bool = False,
        version: int | None = None,
        timestamp: datetime | str | None = None,
    ) -> DataFrame:
        """The live rows of a table in one snapshot, lazily.

        The columns are always those of today: columns correspond by position.

        Args:
            name: ``table`` or ``database.table``.
            row_id: Add ``row__id`` (struct of writeid, bucketid, rowid) as the first column.
            version: Show this version, as ``t VERSION AS OF n`` does: the changes of all committed
                write ids up to this one. ``history`` lists the versions.
            timestamp: Show what was committed until this time, as ``t TIMESTAMP AS OF …`` does. A
                text is read as Spark casts it to TIMESTAMP.

        Raises:
            CatalogError: There is no such table.
            VersionNotFoundError: There never was this version, or the time is before the first
                remembered version or after now.
            SnapshotTooOldError: Files of this version were deleted, for example after a
                compaction.
            UnsupportedError: ``row_id`` is true, and the table is insert-only; or a version is
                given, and the metastore does not keep versions.
        """
        return self._runner.read_table(
            self._table(name), row_id=row_id, version=version, timestamp=timestamp
        )

    @contextmanager
    def snapshot(
        self, *, timestamp: datetime | str | None = None, txn_id: int | None = None
    ) -> Iterator[None]:
        """Let all reads in the block see one snapshot of all tables. Changes are refused.

        Args:
            timestamp: See what was committed until this time. Default: until now.
            txn_id: See what was committed when this transaction committed, and its changes.

        Raises:
            TxnError: A transaction or another snapshot is open.
            VersionNotFoundError: The time is after now, or the transaction committed no change
                that is remembered. A table that did not exist then raises this error when it is
                read.
            UnsupportedError: The metastore does not keep versions.
        """
        self._need_open()
        with self._runner.snapshot(timestamp, txn_id):
            yield

    def history(self, table: str, limit: int | None = None) -> DataFrame:
        """The versions of a table, newest first, as DESCRIBE HISTORY shows them.

        Args:
            table: ``table`` or ``database.table``.
            limit: Show only so many.

        Returns:
            One row for each statement that changed the table: ``version`` bigint (the write id),
            ``timestamp`` timestamp (of the commit, by the metastore's clock), ``userName`` string,
            ``operation`` string, ``statement`` string (its first 1024 letters), ``txnId`` bigint,
            ``host`` string, ``numInsertedRows``, ``numUpdatedRows``, ``numDeletedRows``,
            ``numFiles``, ``numBytes`` and ``partitions`` bigint (how many were changed),
            ``isAvailable`` boolean (whether the version can still be read; NULL if the metastore
            does not keep versions). All but ``version`` and ``isAvailable`` are NULL for a version
            that others wrote, or whose COMMIT was forgotten
            (``acidsql.txn.history.retention``).

        Raises:
            CatalogError: There is no such table.
        """
        self._need_open()
        with self._lock:
            return self._runner.history(self._table(table), limit)
