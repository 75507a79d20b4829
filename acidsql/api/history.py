"""The public methods of a session about older versions of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

from pyspark.sql import DataFrame

from acidsql.api.core import SessionCore
from acidsql.arguments import checked_while_open, need_count
from acidsql.sql.text.given_names import column_names, table_parts
from acidsql.sql.text.parameters import sql_values
from acidsql.sql.text.tokens import SqlText
from acidsql.statements.context.frames import named_frames
from acidsql.storage.spark.given_rows import Rows


class HistoryMethods(SessionCore):
    """What a ``Session`` offers for versions of tables."""

    @checked_while_open
    def table(
        self,
        name: str,
        *,
        row_id: bool = False,
        version: int | None = None,
        timestamp: date | str | None = None,
    ) -> DataFrame:
        """The live rows of a table or view, lazily: as a SELECT would see them now, or of an older
        version.

        The columns of a table are always those of today: columns correspond by position.

        Args:
            name: ``table`` or ``database.table``.
            row_id: Add ``row__id`` (struct of writeid, bucketid, rowid) as the first column.
            version: Show this version, as ``t VERSION AS OF n`` does: the changes of all committed
                write ids up to this one. ``history`` lists the versions.
            timestamp: Show what was committed until this time, as ``t TIMESTAMP AS OF …`` does. A
                text is read as Spark casts it to TIMESTAMP_LTZ: without a zone, in that of the
                Spark session. A datetime without a zone is in that of this process.

        Raises:
            CatalogError: There is no such table.
            VersionNotFoundError: There never was this version, or the time is before the first
                remembered version or after now.
            SnapshotTooOldError: Files of this version were deleted, for example after a
                compaction.
            UnsupportedError: ``row_id`` is true, and the table is insert-only; or a version is
                given, and the metastore does not keep versions; or either is, for a view.
        """
        return self._runner.read_table(
            table_parts(name), row_id=row_id, version=version, timestamp=timestamp
        )

    @checked_while_open
    @contextmanager
    def snapshot(
        self, *, timestamp: date | str | None = None, txn_id: int | None = None
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
        with self._runner.snapshot(timestamp, txn_id):
            yield

    @checked_while_open
    def changes(
        self,
        table: str,
        start: int | date | str,
        end: int | date | str | None = None,
        *,
        keys: Sequence[str] | str | None = None,
        net: bool = False,
    ) -> DataFrame:
        """The changes of a table between two versions or times, lazily, in no order.

        Nothing has to be switched on before. A version's changes lead from the rows of the version
        before to its own rows. An INSERT OVERWRITE deletes all rows of its partitions, and inserts
        its own.

        Args:
            table: ``table`` or ``database.table``.
            start: The first version, or the time from which on. Both ends belong to the range.
            end: The last version or time. Default: until now, with the changes of the open
                transaction.
            keys: Columns whose values tell that a deleted row and a new row are the same row. The
                two are shown as ``update_preimage`` and ``update_postimage``. Default: those of
                the table property ``acidsql.key`` (names, with commas between them); without it,
                an UPDATE shows as deletions and insertions. A row with NULL in a key is never the
                same as another.
            net: Show only what is different in the end: at most one change, or one pair, for a row,
                and none for a row that is as it was. Values are equal as in a GROUP BY: NULL to
                NULL, NaN to NaN, 0.0 to -0.0.

        Returns:
            The table's columns as they are today, then ``_change_type`` string (``insert``,
            ``delete``, ``update_preimage``, ``update_postimage``), ``_commit_version`` bigint (the
            write id), ``_commit_timestamp`` timestamp, ``_txn_id`` bigint (both NULL for a version
            that others wrote, whose COMMIT was forgotten, or that is not committed yet),
            ``row__id`` (struct of writeid bigint, bucketid int, rowid bigint).

        Raises:
            CatalogError: There is no such table, or no such key column.
            VersionNotFoundError: There never was such a version or time, or the range begins after
                its end.
            SnapshotTooOldError: Files that show a part of the changes were deleted, for example
                after a compaction; or a rebalance in between gave the rows new row ids.
            UnsupportedError: The table is insert-only, or the metastore does not keep versions.
            pyspark.errors.SparkRuntimeException: USER_RAISED_EXCEPTION, by an action on the result:
                two changes of one kind have the same key.
        """
        with self._lock:
            named = None if keys is None else column_names(keys, "keys=…")
            return self._runner.changes(self._table(table), start, end, named, net)

    @checked_while_open(frames="The values of parameters go into args.")
    def preview(
        self,
        statement: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        **frames: Rows,
    ) -> DataFrame:
        """The changes that a statement would make now, lazily. Nothing is written or locked.

        The same as ``EXPLAIN CHANGES statement``. Whether the statement would fail when it runs
        (NOT NULL, CHECK, a row that a MERGE matches twice, a bad record of AUTO CDC, a conflict) is
        not checked. An AUTO CDC shows its target's rows, not those of its state table.

        Args:
            statement: INSERT, UPDATE, DELETE, MERGE, AUTO CDC, RESTORE or REVERT TRANSACTION, of
                one table.
            args: As for ``sql``.
            **frames: As for ``sql``.

        Returns:
            The table's columns, ``_change_type`` string (as in ``changes``; an UPDATE has pairs),
            ``row__id`` (struct of writeid bigint, bucketid int, rowid bigint; NULL for new rows).

        Raises:
            SqlError: The text is wrong.
            UnsupportedError: The statement changes several tables.
        """
        text = SqlText(f"EXPLAIN CHANGES {statement}")
        with self._lock, named_frames(self.spark, text, sql_values(args), frames) as sql_args:
            return self._runner.run(text, sql_args, 0)

    @checked_while_open
    def history(self, table: str, limit: int | None = None) -> DataFrame:
        """The versions of a table, newest first, as DESCRIBE HISTORY shows them.

        Args:
            table: ``table`` or ``database.table``.
            limit: Show only so many of the newest.

        Returns:
            One row for each statement that changed the table: ``version`` bigint (the write id),
            ``timestamp`` timestamp (of the commit, by the metastore's clock), ``userName`` string,
            ``operation`` string, ``statement`` string (its first 1024 letters), ``txnId`` bigint,
            ``host`` string, ``numInsertedRows``, ``numUpdatedRows``, ``numDeletedRows``,
            ``numFiles``, ``numBytes`` and ``partitions`` bigint (how many were changed),
            ``isAvailable`` boolean (whether the version can still be read; NULL if the metastore
            does not keep versions). All but ``version`` and ``isAvailable`` are NULL for a version
            that others wrote, or whose COMMIT was forgotten
            (``acidsql.txn.history.retention``). A compaction changes no row, so its row has no
            ``version``, but ``timestamp``, ``operation`` (COMPACT MAJOR …), ``statement`` (what it
            covers) and ``txnId``. It stands above the newest version that it covers.

        Raises:
            CatalogError: There is no such table.
        """
        need_count(limit, "limit")
        with self._lock:
            return self._runner.history(self._table(table), limit)
