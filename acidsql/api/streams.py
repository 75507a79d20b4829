"""The public methods of a session about streams.

The ledger has, for each application and table, the number of the batch that was committed last; the
COMMIT itself notes it. A receipt tells what a statement has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from acidsql.api.core import SessionCore
from acidsql.arguments import checked_while_open, need_count
from acidsql.errors import SettingError, UnsupportedError
from acidsql.metastore.streams import next_batch
from acidsql.plan.standins.names import refuse_temporary
from acidsql.sql.text.given_names import column_name, column_names, table_parts
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.runner import Runner
from acidsql.storage.spark.given_rows import Rows, to_frame
from acidsql.storage.spark.session.jvm import is_remote
from acidsql.streams.auto_cdc import AutoCdc, CdcClauses
from acidsql.streams.bad_records import BadRecords
from acidsql.streams.batches import Setup, no_sinks_error
from acidsql.streams.changes import change_rows
from acidsql.streams.commit_points import CommitPoints, WholeTransactions, with_commit_points
from acidsql.streams.identity import check_app_id, numbered_batch
from acidsql.streams.several import SeveralCdc, Transform, appliers_by_value
from acidsql.streams.sink import MODES, Sink
from acidsql.streams.source_transactions import source_transactions
from acidsql.streams.writer import AcidStreamWriter
from acidsql.txn.retry import retry_transient


class StreamMethods(SessionCore):
    """The methods of a ``Session`` for streams."""

    @checked_while_open
    def sink(
        self,
        table: str,
        *,
        mode: str = "append",
        keys: Sequence[str] | str | None = None,
        txn_app_id: str | None = None,
        retries: int = 3,
    ) -> Sink:
        """A function for ``foreachBatch`` that writes each micro-batch in one transaction, once.

        Args:
            table: ``table`` or ``database.table``. Columns go by name, as in INSERT with a list of
                columns; a column that the batch lacks gets its DEFAULT, or NULL.
            mode: ``append``: insert the rows. ``complete``: the batch replaces all rows of the
                table. ``upsert``: a row replaces the row with the same keys, or is inserted.
            keys: For ``upsert``, the columns that name a row.
            txn_app_id: The application's name in the ledger (``Session.streams``). Default: the id
                of the streaming query, which is in its checkpoint.
            retries: How often to write a batch again after a conflict with another transaction.

        Returns:
            The function. Its attribute ``last`` is the receipt of the newest batch. After a restart
            Spark may run the newest batch again; the sink skips it if it was committed.

        Raises:
            SettingError: ``mode`` is unknown, or ``keys`` are missing or out of place.
            UnsupportedError: The metastore keeps no streams.
        """
        setup = self._setup(txn_app_id, retries)
        if is_remote(self.spark):
            raise no_sinks_error()
        if mode not in MODES:
            raise SettingError(f"mode='{mode}' is not one of {', '.join(MODES)}.", name="mode")
        key_columns = [] if keys is None else column_names(keys, "keys=…")
        if (mode == "upsert") != bool(key_columns):
            raise SettingError(
                "mode='upsert' needs keys=[…], the columns that name a row; other modes take none.",
                name="keys",
            )
        return Sink(setup, self._full_name(table), mode=mode, keys=key_columns)

    @checked_while_open
    def auto_cdc(
        self, target: str | Sequence[AutoCdc] | Mapping[str, AutoCdc], *,
        by: str | None = None, transform: Transform | None = None,
        keys: Sequence[str] | str | None = None,
        sequence_by: str | None = None, ignore_null_updates: bool = False,
        ignore_null_updates_column_list: Sequence[str] | None = None,
        ignore_null_updates_except_column_list: Sequence[str] | None = None,
        apply_as_deletes: str | None = None, apply_as_truncates: str | None = None,
        column_list: Sequence[str] | None = None, except_column_list: Sequence[str] | None = None,
        stored_as_scd_type: int | str = 1, track_history_column_list: Sequence[str] | None = None,
        track_history_except_column_list: Sequence[str] | None = None,
        bad_records: str | None = None, commit_points: CommitPoints | str | None = None,
        txn_app_id: str | None = None, retries: int = 3,
    ) -> AutoCdc | SeveralCdc | WholeTransactions[Any]:  # fmt: skip
        """A function for ``foreachBatch``, or for DataFrames, that applies change records to a
        table as the statement AUTO CDC does. Nothing is applied yet.

        The names are those of Spark's ``create_auto_cdc_flow``. The records may come in any order.

        Args:
            target: ``table`` or ``database.table``; or several results of this method, to change
                their tables in one transaction. A dict has the values of ``by`` as keys. In a list
                these are the tables' names without database.
            by: The column that says which target a record is for.
            transform: Makes a target's records, from its value of ``by`` and the rows with it.
            keys: The columns that name a row. Default: the property ``acidsql.cdc.keys``.
            sequence_by: SQL of a record's order value. Default: ``acidsql.cdc.sequence.by``.
            ignore_null_updates: A NULL leaves a column, or a field of a struct, as it is.
            ignore_null_updates_column_list: This holds for these columns.
            ignore_null_updates_except_column_list: This holds for all columns but these.
            apply_as_deletes: SQL: the record deletes its row. Default: ``acidsql.cdc.delete.when``.
            apply_as_truncates: SQL: the record deletes all rows, but newer ones. Default:
                ``acidsql.cdc.truncate.when``.
            column_list: The columns that a record sets. Default: all columns of the records.
            except_column_list: Columns of the records to leave out.
            stored_as_scd_type: 1, or 2: the target has a row for each version of a key.
            track_history_column_list: A new value of these makes a new version. Default: of any.
            track_history_except_column_list: A new value of all columns but these does.
            bad_records: An ACID table for the records with a NULL in their key or order value, and
                for those of no target. It is created if it is missing. Default: they are an error.
            commit_points: Apply each transaction of the source as a whole: see ``CommitPoints``.
            txn_app_id: As in ``sink``.
            retries: As in ``sink``.

        Returns:
            A function as that of ``sink``. Its method ``apply(rows, txn_app_id=None,
            txn_version=None)`` applies rows as ``insert_into`` takes them, and returns the receipt.

        Raises:
            SettingError, UnsupportedError: An argument is wrong, or the metastore keeps no streams.
        """
        setup = self._setup(txn_app_id, retries)
        clauses = CdcClauses(
            keys, sequence_by, ignore_null_updates, ignore_null_updates_column_list,
            ignore_null_updates_except_column_list, apply_as_deletes, apply_as_truncates,
            column_list, except_column_list, stored_as_scd_type, track_history_column_list,
            track_history_except_column_list,
        )  # fmt: skip
        applier = self._applier(setup, target, by, transform, clauses, bad_records)
        return with_commit_points(setup, applier, commit_points)

    def _applier(
        self,
        setup: Setup,
        target: str | Sequence[AutoCdc] | Mapping[str, AutoCdc],
        by: str | None,
        transform: Transform | None,
        clauses: CdcClauses,
        bad_records: str | None,
    ) -> AutoCdc | SeveralCdc:
        """Return the function of ``auto_cdc`` without commit points: an `AutoCdc` if ``target`` is
        a text, otherwise a `SeveralCdc`, which splits the records by the column ``by``. The clauses
        of the one target are checked. Nothing is applied or created.

        Raises:
            SettingError, AnalysisError, UnsupportedError: Arguments do not belong together, or a
                clause is wrong.
        """
        bad = None if bad_records is None else BadRecords(self._full_name(bad_records))
        if isinstance(target, str):
            if by is not None or transform is not None:
                raise SettingError("by=… and transform=… are for several targets.", name="by")
            clauses.check()
            return AutoCdc(setup, self._full_name(target), clauses, bad)
        if clauses != CdcClauses():
            raise SettingError("Each of several targets has its own clauses.", name="target")
        if not isinstance(by, str):
            raise SettingError("Several targets need by=…, a column of the records.", name="by")
        column = column_name(by, "by=…")
        return SeveralCdc(setup, appliers_by_value(target), column, transform, bad)

    @checked_while_open
    def changes_from(
        self,
        format: str,
        rows: Rows,
        schema: str | StructType | None = None,
        *,
        keys: Sequence[str] | str | None = None,
        sequence: str | None = None,
        absent: str = "error",
    ) -> DataFrame:
        """The change records of a tool of replication, as rows for ``auto_cdc``, lazily.

        Records that are no changes are left out: Debezium's tombstones, heartbeats and messages,
        and DDL. A record that cannot be read fails the query that reads it. So does a value that is
        not exactly one of its column's type: nothing is rounded, cut, or shifted in time.

        Args:
            format: ``debezium``, ``dms`` (files in S3), ``goldengate`` or ``maxwell``.
            rows: A DataFrame, perhaps a streaming one, or other rows that ``insert_into`` takes.
                The records are texts of JSON in the column ``value``, as Kafka's source gives
                them, or have been parsed: then the fields of the envelope are columns, and the
                images in them are structs.
            schema: The columns of the table, as DDL or as a struct. They go by name, whatever the
                case. Parsed records do not need it.
            keys: The columns that name a row. An update that changes them becomes a delete and an
                update with one order value. Needed for ``goldengate`` and ``maxwell``; Debezium
                itself writes two records.
            sequence: SQL of the order value over the columns of ``rows``, if the format has none
                (``dms`` without AR_H_CHANGE_SEQ), or if another one is wanted. The format's own one
                is a struct: the place of the transaction's commit in the source's log, 0 for a row
                of a snapshot or else 1, and the place within the transaction.
            absent: What a column becomes that a record leaves out because it did not change, or
                that is not available: ``error``, or ``null``. Then IGNORE NULL UPDATES keeps the
                old value; without this clause AUTO CDC writes the NULL like any other value.

        Returns:
            The columns of the table, and ``_op`` string (insert, update, delete, truncate, and
            snapshot: a row that was there when the feed began), ``_sequence``, ``_table`` string
            (as the records name it), ``_source_txn`` string. A delete has the columns of the row
            before it that the record tells, at least its key.

        Raises:
            SettingError: An argument is wrong, or one is missing.
            AnalysisError: The rows are no records of this format, or lack a column.
        """
        key_columns = None if keys is None else column_names(keys, "keys=…")
        records = to_frame(self.spark, rows)
        return change_rows(
            format, records, schema, keys=key_columns, sequence=sequence, absent=absent
        )

    @checked_while_open
    def transactions_from(self, format: str, rows: Rows) -> DataFrame:
        """The records of several tables, with what ``commit_points`` needs to know, lazily.

        Records that are neither changes nor commit points are left out. A record that cannot be
        read fails the query that reads it; so does a change without a transaction, other than a row
        of a snapshot.

        Args:
            format: ``debezium`` (with ``provide.transaction.metadata``; ``rows`` has the topic of
                transactions, too) or ``maxwell``.
            rows: As for ``changes_from``, which makes the rows of a table of the result's records:
                in ``transform`` of ``auto_cdc``.

        Returns:
            The columns of ``rows``, and ``_table`` string (as ``changes_from`` gives it; NULL: the
            record is a commit point and no change), ``_source_txn`` string, ``_place`` string (the
            place in the transaction: Debezium's ``total_order``, Maxwell's ``xoffset`` or
            ``last``), ``_is_last`` boolean (Maxwell's ``commit``; else NULL), ``_num_records``
            bigint (the ``event_count`` of Debezium's END; else NULL).

        Raises:
            SettingError: The format is another one.
            AnalysisError: The rows are no records of this format, or have such a column.
        """
        return source_transactions(format, to_frame(self.spark, rows))

    @checked_while_open
    def write_stream(
        self,
        rows: DataFrame,
        *,
        keys: Sequence[str] | str | None = None,
        txn_app_id: str | None = None,
        retries: int = 3,
    ) -> AcidStreamWriter:
        """Return a ``DataStreamWriter`` for an ACID table:
        ``acid.write_stream(df)….toTable("db.t")``.

        Nothing runs before ``toTable`` or ``start``.

        Args:
            rows: A streaming DataFrame.
            keys: The columns that name a row; only for the output mode ``update``, which is an
                upsert.
            txn_app_id: The application's name in the ledger. Default: the id of the streaming
                query.
            retries: How often to write a batch again after a conflict with another transaction.

        Raises:
            UnsupportedError: The metastore keeps no streams, or this is Spark Connect.
        """
        self._need_ledger()
        if is_remote(self.spark):
            raise no_sinks_error()  # PySpark's writer there is another class

        def make_sink(table: str, mode: str) -> Sink:
            return self.sink(table, mode=mode, keys=keys, txn_app_id=txn_app_id, retries=retries)

        return AcidStreamWriter(rows, make_sink)

    @checked_while_open
    def streams(self) -> DataFrame:
        """The newest committed batch of each stream, as SHOW STREAMS.

        Returns:
            One row for each application and sink, in this order: ``txnAppId`` string, ``sink``
            string (the table; NULL for ``acid.transaction``), ``txnVersion`` bigint (the batch id),
            ``txnId`` bigint, ``numRows`` bigint (inserted, updated and deleted), ``committedAt``
            timestamp, ``queryId`` string, ``runId`` string, ``user`` string, ``host`` string,
            ``numWaiting`` bigint (the records that wait at commit points, with repeated ones;
            NULL: none can wait beside the sink's tables, or a transaction is open),
            ``oldestWaitingTxn`` string (the source's transaction that has waited longest).
        """
        return self._runner.run("SHOW STREAMS", None, 0)

    @checked_while_open
    def forget_stream(self, txn_app_id: str, table: str | None = None) -> int:
        """Forget which batch of an application was committed last.

        The next batch is written whatever its number is. So a batch that runs again is doubled.

        Args:
            txn_app_id: The application.
            table: Forget only its entry for this table, which may be dropped; then its name needs
                the database. Default: all of its entries.

        Returns:
            The number of entries that were deleted; 0 if there was none.
        """
        sink = None
        if table is not None:
            resolved_table = self._runner.resolve(table_parts(table))
            sink = table.lower() if resolved_table is None else str(resolved_table.name)
        return self.metastore.forget_stream(txn_app_id, sink)

    def _setup(self, txn_app_id: str | None, retries: int) -> Setup:
        """Return the parts of this session that all sinks need, after the checks that all of them
        need. ``txn_app_id`` and ``retries``: as in ``sink``.

        Raises:
            SettingError: The session is closed, or an argument is wrong.
            UnsupportedError: The metastore keeps no streams.
        """
        self._need_open()
        self._need_ledger()
        need_count(retries, "retries")
        if txn_app_id is not None:
            check_app_id(txn_app_id)
        require_no_transaction = self._runner.transactions.require_autocommit_in_thread
        make_runner = self._runner_for_batch
        return Setup(
            self.spark, self.metastore, make_runner, txn_app_id, retries, require_no_transaction
        )

    def _need_ledger(self) -> None:
        """Raise UnsupportedError if the metastore cannot note batches in its COMMIT."""
        if not self.metastore.abilities.keeps_streams:
            raise UnsupportedError(
                "This Hive Metastore cannot note in its COMMIT which batch was committed, so a "
                "batch could be written twice. Streams and txn_app_id need acidsql's own "
                "metastore, or a Hive Metastore 4 without CachedStore (metastore.rawstore.impl).",
                condition="UNSUPPORTED_FEATURE.STREAMS",
            )

    def _full_name(self, table: str) -> str:
        """Return a table's name as ``database.table``, because USE may change the current one; a
        name of Spark's as it is given. Whether there is such a table is not checked. Raise
        UnsupportedError for a temporary table."""
        full_name = self._runner.qualify(table_parts(table))
        refuse_temporary(full_name, "A stream")
        return table if full_name is None else str(full_name)

    def _runner_for_batch(self, spark: SparkSession) -> Runner:
        """Return a new runner of statements on a batch's own Spark session, with this session's
        metastore and settings. Raise SettingError if the session is closed."""
        self._need_open()
        return self._runner.runner_for(spark)

    def _run_numbered(
        self,
        text: str,
        args: Any,
        retries: int,
        txn_app_id: str | None,
        txn_version: int | None,
        frames: Mapping[str, Rows],
    ) -> DataFrame:
        """Run one statement in a transaction of its own with this ``txn_app_id`` and
        ``txn_version``: it is skipped if this number, or a higher one, was committed before.
        ``retries``: how often to try again after a TransientTxnError."""

        def once() -> DataFrame:
            with self.transaction(txn_app_id=txn_app_id, txn_version=txn_version):
                return self.sql(text, args, **frames)

        return retry_transient(once, retries)

    def _begin(self, txn_app_id: str | None, txn_version: int | None) -> Transaction:
        """Begin the transaction of a ``with acid.transaction()`` block, and return it; without both
        arguments, an unnumbered one. If its number, or a higher one, was committed before, it is
        ``replayed``: its changes will be skipped. Raise TxnError if a transaction is open,
        SettingError for a wrong name or number, UnsupportedError if the metastore cannot note a
        ``txn_app_id``."""
        begin, text = self._runner.transactions.begin, "acid.transaction()"
        batch = numbered_batch(txn_app_id, txn_version)
        if batch is None:
            return begin(text, in_block=True)
        self._need_ledger()
        entry = self.metastore.stream(batch.app_id, batch.sink)
        if entry is not None and batch.version <= entry.batch.version:
            return begin(text, in_block=True, replayed=entry)
        return begin(text, in_block=True, batch=next_batch(batch, entry))
