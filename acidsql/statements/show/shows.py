"""SHOW, DESCRIBE, and the lists of a table's files and events, all as DataFrames.

ABORT COMPACTIONS is in this module, too, because its result is rows.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid import cdc
from acidsql.acid.layout import parse_partition_name
from acidsql.acid.statistics import column_facts, table_facts
from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import AnalysisError
from acidsql.metastore.catalog import missing_database_text
from acidsql.metastore.compaction_queue import CompactionInfo
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import LockInfo, TxnState
from acidsql.metastore.lock_rules import strength
from acidsql.sql.binder import require_column_of_ddl
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import rows_frame, text_frame
from acidsql.statements.maintenance.compaction_rows import (
    ABORTED,
    COMPACTIONS,
    aborted_rows,
    compaction_rows,
)
from acidsql.statements.queries.table_rows import TableRows
from acidsql.statements.show.described import column_row, create_statement, detail_rows
from acidsql.statements.show.waiting import WaitingRecords
from acidsql.storage.reading.events.event_dump import dump_events
from acidsql.storage.reading.pruning.inventory import files_frame
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.views import SETTLED

_ACID_CATALOG = "acidsql"
_STREAMS = (
    "txnAppId string, sink string, txnVersion bigint, txnId bigint, numRows bigint, "
    "committed bigint, queryId string, runId string, user string, host string, "
    "numWaiting bigint, oldestWaitingTxn string"
)
_LOCKS = (
    "lockid string, database string, table string, partition string, lock_state string, "
    "blocked_by string, lock_type string, transaction_id string, last_heartbeat string, "
    "acquired_at string, user string, hostname string, agent_info string"
)


class ShowStatements(Family):
    """Runs SHOW, DESCRIBE and ABORT COMPACTIONS for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waiting, self._rows = WaitingRecords(context), TableRows(context)

    def files(self, table: Table) -> DataFrame:
        """Return a row for each file and directory below a table's directory, also those that no
        reader sees, with its state in a snapshot. Raise SnapshotTooOldError if a partition was
        dropped since."""
        files = self._rows.inventory(table, self._transactions.read_snapshot([table.name]))
        return files_frame(self._spark, files)

    def events(self, path: str) -> DataFrame:
        """Return the events of a file, or of a base, delta or delete_delta directory, as rows,
        lazily."""
        return dump_events(self._spark, path)

    @runs(st.ShowDatabases)
    def _show_databases(self, statement: st.ShowDatabases, text: str) -> DataFrame:
        """Run SHOW DATABASES: the ACID databases and Spark's, sorted and filtered by the pattern,
        in the columns ``namespace`` and ``catalog``. A name that both have is there twice; the
        column ``catalog`` tells them apart.

        While another catalog than Spark's own is current, the rows are that catalog's namespaces.
        """
        if self._spark_databases.is_elsewhere(None):
            return self._spark.sql(text)
        rows = [(database.name, _ACID_CATALOG) for database in self._metastore.databases()]
        rows += [
            (database.name, jvm.OWN_CATALOG) for database in self._spark.catalog.listDatabases()
        ]
        matching_rows = [row for row in rows if _is_like(row[0], statement.pattern)]
        return self._frame("namespace string, catalog string", sorted(matching_rows))

    @runs(st.ShowTables, st.ShowViews)
    def _show_tables(self, statement: st.ShowTables | st.ShowViews, text: str) -> DataFrame:
        """Run SHOW TABLES or SHOW VIEWS of a database, both of acidsql's and Spark's, sorted and
        filtered by the pattern: rows of ``namespace``, ``tableName`` (or ``viewName``),
        ``isTemporary`` and ``catalog``. SHOW TABLES also has the views and the session's temporary
        tables, but not the tables that AUTO CDC has made beside others. Spark's temporary views are
        listed, too, but for those of acidsql (``SETTLED``). Spark answers for another catalog.

        Raises:
            AnalysisError: There is no such database.
        """
        if self._spark_databases.is_elsewhere(statement.database):
            return self._spark.sql(text)
        database = self._names.current_database
        if statement.database is not None:
            database = statement.database.parts[-1].lower()
        is_acid_database = self._metastore.get_database(database) is not None
        is_spark_database = self._spark.catalog.databaseExists(database)
        if not is_acid_database and not is_spark_database:
            raise AnalysisError(
                missing_database_text(self._metastore, database),
                condition="SCHEMA_NOT_FOUND",
                sqlstate="42704",
            )
        only_views = isinstance(statement, st.ShowViews)
        rows = []
        if is_acid_database:
            names = [] if only_views else self._shown_tables(database)
            names += self._metastore.views(database)
            rows += [(database, name, False, _ACID_CATALOG) for name in names]
        if not only_views:
            temporary_names = [name for name in self._temporary.names if name.database == database]
            rows += [(database, name.name, True, _ACID_CATALOG) for name in temporary_names]
        if is_spark_database:
            rows += [
                (".".join(table.namespace or []), table.name, table.isTemporary, jvm.OWN_CATALOG)
                for table in self._spark.catalog.listTables(database)
                if not only_views or table.isTemporary or table.tableType == "VIEW"
                if not table.name.startswith(SETTLED)
            ]
        matching_rows = [row for row in rows if _is_like(row[1], statement.pattern)]
        name_column = "viewName" if only_views else "tableName"
        return self._frame(
            f"namespace string, {name_column} string, isTemporary boolean, catalog string",
            sorted(matching_rows),
        )

    def acid_names(self, database: str, pattern: str | None = None) -> list[str]:
        """Return the names of the ACID tables, temporary tables and views of a database that SHOW
        TABLES LIKE the pattern shows; [] if there is no such database."""
        if self._metastore.get_database(database) is None:
            return []
        temporary_names = [name.name for name in self._temporary.names if name.database == database]
        names = [*self._shown_tables(database), *self._metastore.views(database), *temporary_names]
        return [name for name in names if _is_like(name, pattern)]

    def _shown_tables(self, database: str) -> list[str]:
        """Return the names of the ACID tables of a database that are neither temporary nor made by
        AUTO CDC beside other tables."""
        tables = self._metastore.tables(database)
        table_names = frozenset(tables)
        return [
            name
            for name in tables
            if not (
                cdc.is_cdc_table_name(name, table_names)
                and self._is_made_by_auto_cdc(database, name)
            )
        ]

    def _is_made_by_auto_cdc(self, database: str, name: str) -> bool:
        """Whether AUTO CDC made this table beside another one, by its properties: the name alone
        does not tell. False for a table that is gone."""
        table = acid_table(self._metastore.find(TableName(database, name)))
        return table is not None and cdc.is_cdc_table(table)

    @runs(st.ShowPartitions)
    def _show_partitions(self, statement: st.ShowPartitions, text: str) -> DataFrame:
        """Run SHOW PARTITIONS: a row for each partition's name, or for each that PARTITION means;
        perhaps none. Raise AnalysisError if the table is unpartitioned."""
        table = self._names.require_table(statement.name, text)
        if not table.partition_columns:
            raise AnalysisError(
                f"{table.name} is not partitioned.",
                text, statement.name.span.start, statement.name.span.end,
                condition="INVALID_PARTITION_OPERATION.PARTITION_SCHEMA_IS_EMPTY",
                sqlstate="42601",
            )  # fmt: skip
        partitions = self._catalog.partition_names(table)
        if statement.partition:
            partitions = self._partitions.filter_partitions(
                table, statement.partition, partitions, text
            )
        return self._frame("partition string", [(name,) for name in partitions])

    @runs(st.ShowCreateTable)
    def _show_create_table(self, statement: st.ShowCreateTable, text: str) -> DataFrame:
        table = self._names.require_table_or_view(statement.name, text)
        return text_frame(self._spark, "createtab_stmt", [create_statement(table)])

    @runs(st.ShowTableProperties)
    def _show_table_properties(self, statement: st.ShowTableProperties, text: str) -> DataFrame:
        """Run SHOW TBLPROPERTIES of a table or view: a row of key and value for each property,
        sorted by key, or only for the stated key. If this key is missing, the value is a message,
        as in Spark."""
        table = self._names.require_table_or_view(statement.name, text)
        rows = sorted(table.properties.items())
        if statement.key is not None:
            missing = f"Table {table.name} does not have property: {statement.key}"
            rows = [(statement.key, table.properties.get(statement.key, missing))]
        return self._frame("key string, value string", rows)

    @runs(st.ShowColumns)
    def _show_columns(self, statement: st.ShowColumns, text: str) -> DataFrame:
        table = self._names.require_table_or_view(statement.name, text)
        return self._frame("col_name string", [(column.name,) for column in table.all_columns])

    @runs(st.DescribeTable)
    def _describe_table_or_column(self, statement: st.DescribeTable, text: str) -> DataFrame:
        """Run DESCRIBE. A table or view gives a row of name, type and comment for each column,
        partition columns once more under a heading, and with EXTENDED facts and statistics. For one
        column the rows are pairs of ``info_name`` and ``info_value``."""
        table = self._names.require_table_or_view(statement.name, text)
        if statement.column is not None:
            return self._describe_column(table, statement, text)
        rows = [column_row(column) for column in table.all_columns]
        if table.partition_columns:
            rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
            rows += [column_row(column) for column in table.partition_columns]
        if statement.extended:
            rows += [("", "", ""), ("# Detailed Table Information", "", "")]
            facts = [*detail_rows(table), *table_facts(self._statistics(table))]
            rows += [(key, value, "") for key, value in facts]
        return self._frame("col_name string, data_type string, comment string", rows)

    def _describe_column(self, table: Table, statement: st.DescribeTable, text: str) -> DataFrame:
        """Return what DESCRIBE says of one column, as rows of ``info_name`` and ``info_value``: its
        name, type, comment, and with EXTENDED its statistics. As in Spark, NULL is the text "NULL".
        Raise AnalysisError if there is no such column."""
        assert statement.column is not None
        column = require_column_of_ddl(text, table, statement.column)
        rows: list[tuple[str, str | None]] = [
            ("col_name", column.name), ("data_type", column.type), ("comment", column.comment)
        ]  # fmt: skip
        if statement.extended:
            rows += column_facts(table, column, self._statistics(table))
        shown_rows = [(name, "NULL" if value is None else value) for name, value in rows]
        return self._frame("info_name string, info_value string", shown_rows)

    def _statistics(self, table: Table) -> Mapping[str, str]:
        """Return what ANALYZE has noted about a table, as texts by key; {} for a view."""
        return {} if table.view is not None else self._metastore.statistics(table.name)

    @runs(st.DescribeDatabase)
    def _describe_database(self, statement: st.DescribeDatabase, text: str) -> DataFrame:
        """Run DESCRIBE DATABASE, with rows as Spark shows them of its own databases: the catalog's
        name, which is Spark's, then name, comment, location and, with EXTENDED, the properties.
        Spark answers if this is no ACID database. An ACID database is created in Spark's catalog,
        if it is missing there."""
        if (database := self._spark_databases.find_and_share(statement.name)) is None:
            return self._spark.sql(text)
        rows = [
            ("Catalog Name", jvm.OWN_CATALOG),
            ("Namespace Name", database.name),
            ("Comment", database.comment or ""),
            ("Location", database.location),
        ]
        if statement.extended:
            pairs = ", ".join(
                f"({key},{value})" for key, value in sorted(database.properties.items())
            )
            rows.append(("Properties", f"({pairs})" if pairs else ""))
        return self._frame("info_name string, info_value string", rows)

    @runs(st.ShowTransactions)
    def _show_transactions(self, _: st.ShowTransactions, __: str) -> DataFrame:
        """Run SHOW TRANSACTIONS: a row for each open or aborted transaction, in Hive's columns, all
        texts; times are milliseconds since the epoch."""
        rows = [
            (
                str(txn.txn_id),
                "OPEN" if txn.state is TxnState.OPEN else "ABORTED",
                str(txn.started_ms),
                str(txn.last_heartbeat_ms),
                txn.user,
                txn.host,
            )
            for txn in self._metastore.show_txns()
        ]
        return self._frame(
            "txnid string, state string, startedtime string, lastheartbeattime string, "
            "user string, host string",
            rows,
        )

    @runs(st.ShowStreams)
    def _show_streams(self, _: st.ShowStreams, __: str) -> DataFrame:
        """Run SHOW STREAMS: a row for the newest batch of each application and sink (the tables
        that it writes to). A job may count the records that wait for the rest of their source's
        transactions."""
        entries = self._metastore.streams()
        rows = [
            (
                entry.batch.app_id, entry.batch.sink or None, entry.batch.version, entry.txn_id,
                entry.batch.rows, entry.committed_ms, entry.batch.query_id or None,
                entry.batch.run_id or None, entry.user, entry.host,
                *((None, None) if waiting is None else (waiting.records, waiting.oldest)),
            )
            for entry, waiting in zip(entries, self._waiting.count_waiting(entries), strict=True)
        ]  # fmt: skip
        return self._frame(_STREAMS, rows).selectExpr(
            "txnAppId", "sink", "txnVersion", "txnId", "numRows",
            "timestamp_millis(committed) AS committedAt", "queryId", "runId", "user", "host",
            "numWaiting", "oldestWaitingTxn",
        )  # fmt: skip

    @runs(st.ShowLocks)
    def _show_locks(self, statement: st.ShowLocks, text: str) -> DataFrame:
        """Run SHOW LOCKS of all tables, a database, or a table with its partitions (with PARTITION:
        only of those that it means), in Hive's columns, all texts; granted and waiting ones, sorted
        by state, then strength. EXTENDED has no effect, as in Hive's DbTxnManager."""
        table = None if statement.name is None else self._names.require_table(statement.name, text)
        database = statement.database and self._spark_databases.require_acid_name(
            statement.database, text
        )
        locks = [
            lock
            for lock in self._metastore.show_locks()
            if database is None or lock.database == database
        ]
        if table is not None:
            locks = self._partitions.locks_on(table, statement.partition, locks, text)
        locks.sort(key=lambda lock: (lock.state.value, strength(lock.lock_type)))
        return self._frame(_LOCKS, map(_lock_row, locks))

    @runs(st.ShowCompactions)
    def _show_compactions(self, statement: st.ShowCompactions, text: str) -> DataFrame:
        """Run SHOW COMPACTIONS: the queue and the history, with the statement's filters, order and
        limit. A dropped table may be named as long as there are entries of it; otherwise raise
        AnalysisError."""
        if statement.database is not None:
            self._spark_databases.require_acid_name(statement.database, text)
        compactions = self._metastore.compactions()
        table = (
            None
            if statement.name is None
            else self._compacted_table(statement.name, compactions, text)
        )
        if statement.partition and table is not None:
            partitions = [
                compaction.partition
                for compaction in compactions
                if compaction.table == table and compaction.partition
            ]
            described_table = acid_table(self._metastore.find(table)) or _dropped_table(
                table, partitions
            )
            named_partitions = self._partitions.filter_partitions(
                described_table, statement.partition, partitions, text
            )
            compactions = [
                compaction for compaction in compactions if compaction.partition in named_partitions
            ]
        return self._frame(COMPACTIONS, compaction_rows(compactions, statement, table=table))

    def _compacted_table(
        self, name: st.Name, compactions: list[CompactionInfo], text: str
    ) -> TableName:
        """Return the full name of the table that SHOW COMPACTIONS names. A dropped table counts
        while the store has its compactions; otherwise raise AnalysisError."""
        table = self._names.qualify(name.parts)
        if table is not None and any(compaction.table == table for compaction in compactions):
            return table
        return self._names.require_table(name, text).name

    @runs(st.AbortCompactions)
    def _abort_compactions(self, statement: st.AbortCompactions, _: str) -> DataFrame:
        """Run ABORT COMPACTIONS: abort those of the compactions that have not begun, and return a
        row of id, status and message for each."""
        aborted_compactions = self._metastore.abort_compactions(statement.ids)
        return self._frame(ABORTED, aborted_rows(statement.ids, aborted_compactions))

    def _frame(self, schema: str, rows: Iterable[Sequence[Any]]) -> DataFrame:
        return rows_frame(self._spark, schema, rows)


def _lock_row(lock: LockInfo) -> tuple[str | None, ...]:
    """Return a lock as a row of SHOW LOCKS, all values as texts; None is NULL. The ids are
    ``lock.part``; a temporary table has its user's name; the time is in ms since 1970; the last
    heartbeat is always "0"."""
    blocker, acquired = lock.blocked_by, lock.acquired_at_ms
    return (
        f"{lock.lock_id}.{lock.internal_id}",
        lock.database,
        None if lock.table is None else TableName(lock.database, lock.table).shown,
        lock.partition,
        lock.state.name,
        None if blocker is None else f"{blocker[0]}.{blocker[1]}",
        lock.lock_type.name,
        str(lock.txn_id),
        "0",  # a lock has no heartbeat of its own, only its transaction's
        None if acquired is None else str(acquired),
        lock.user,
        lock.host,
        lock.agent_info,
    )


def _dropped_table(name: TableName, partitions: Sequence[str]) -> Table:
    """Return a ``Table`` for a dropped table. It has only the partition columns that the first of
    its partitions' names tells, all of type STRING."""
    pairs = parse_partition_name(partitions[0]) if partitions else []
    return Table(name, "", (), tuple(Column(column, "string") for column, _ in pairs))


def _is_like(name: str, pattern: str | None) -> bool:
    """Whether a name matches a pattern of Hive's, whatever the case; None matches all.

    In a pattern, ``*`` and ``%`` stand for any text, ``?`` for one character, ``[…]`` for one of
    some characters (``[!…]``: one of all others), and ``|`` separates choices, also within ``[…]``.
    The whole name must match.
    """
    if pattern is None:
        return True
    choices = re.split(r"\|", pattern.lower().replace("%", "*"))
    return any(fnmatch.fnmatchcase(name.lower(), choice) for choice in choices)
