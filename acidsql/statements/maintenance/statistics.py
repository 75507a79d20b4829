"""Runs ANALYZE TABLE: counts the rows of one snapshot, and notes statistics in the metastore.

The statement holds a read lock on the table. So nobody drops or replaces the table before its
statistics are noted, and writers do not wait. No query is planned by these statistics: Spark plans
by the sizes of the files that a snapshot reads.
"""

from __future__ import annotations

from datetime import UTC, datetime

from acidsql.acid.statistics import AnalyzedStatistics
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.plan.analysis import lower
from acidsql.plan.locking import read_lock
from acidsql.plan.standins.query import StandIn, view_name
from acidsql.sql.binder import require_column_of_ddl
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Receipt
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.columns import quote
from acidsql.txn import Txn

# The sizes that Spark assumes for values of each type, in bytes; of texts, if no text was counted.
_VALUE_SIZES = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "date": 4, "timestamp": 8, "string": 20, "char": 20, "varchar": 20, "binary": 100,
}  # fmt: skip
_LONG_DECIMAL = 18  # the greatest number of digits that fits into 8 bytes
_TEXT_TYPES = ("string", "char", "varchar", "binary")


class StatisticsStatements(Family):
    """Runs ANALYZE TABLE and ANALYZE TABLES for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows = TableRows(context)

    @runs(st.AnalyzeTable)
    def _analyze_table(self, statement: st.AnalyzeTable, text: str) -> Receipt:
        """Run ANALYZE TABLE under a read lock, and note the statistics in the metastore. A job
        reads the rows, unless the statement says NOSCAN. The receipt has no counts, but one note:
        rows (without NOSCAN) and bytes. A wrong column raises AnalysisError or UnsupportedError
        before a transaction begins."""
        table = self._names.require_table(statement.name, text)
        _columns_to_analyze(table, statement, text)  # raises before a transaction is opened
        with self._locked_transaction(text, read_lock(table.name)) as txn:
            table = self._look_up_again(table.name)
            columns = _columns_to_analyze(table, statement, text)
            note = self._note_statistics(table, columns, txn, reads_rows=statement.reads_rows)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id, notes=(note,))

    @runs(st.AnalyzeTables)
    def _analyze_tables(self, statement: st.AnalyzeTables, text: str) -> Receipt | None:
        """Analyze each ACID table of a database, each under a read lock in a transaction of its
        own, and let Spark analyze its own tables of this database. The receipt has a note for each
        ACID table. Return None for a database of another catalog, which is left to Spark."""
        if self._spark_databases.is_elsewhere(statement.database):
            self._spark.sql(text)
            return None
        database = self._names.current_database
        if statement.database is not None:
            database = statement.database.parts[-1].lower()
        is_ours = self._metastore.get_database(database) is not None
        if not is_ours or self._spark_databases.exists(database):
            self._spark.sql(text)
        notes = []
        for name in self._metastore.tables(database) if is_ours else ():
            with self._locked_transaction(text, read_lock(TableName(database, name))) as txn:
                table = acid_table(self._catalog.find(TableName(database, name)))
                if table is not None:
                    notes.append(
                        self._note_statistics(table, [], txn, reads_rows=statement.reads_rows)
                    )
                txn.end_quietly()
        return Receipt(text, notes=tuple(notes))

    def _note_statistics(
        self, table: Table, columns: list[Column], txn: Txn, *, reads_rows: bool
    ) -> str:
        """Count a table's bytes and files and, with ``reads_rows``, its rows and facts about these
        columns; store them in the metastore. Return a note for the receipt: ``db.t: 3 rows, 99
        bytes``, without the rows if they are not counted."""
        statistics = self._count_statistics(table, columns, txn, reads_rows=reads_rows)
        self._metastore.keep_statistics(table.name, statistics.entries(table), txn_id=txn.id)
        rows = "" if statistics.rows is None else f"{statistics.rows} rows, "
        return f"{table.name}: {rows}{statistics.bytes} bytes"

    def _count_statistics(
        self, table: Table, columns: list[Column], txn: Txn, *, reads_rows: bool
    ) -> AnalyzedStatistics:
        """Count the bytes and files that a snapshot reads of a table; with ``reads_rows`` also, in
        one job, its rows and the facts about these columns (``_fact_columns``). Without it the
        result has no rows and no facts. Nothing is stored."""
        snapshot = txn.snapshot([table.name])
        listings, write_ids = self._rows.list_files(table, snapshot)
        sizes = [file.size for listing in listings for file in (*listing.data, *listing.deletes)]
        sizes += [
            size for listing in listings for files in listing.originals for size in files.sizes
        ]
        version, counted_at = (
            write_ids.without_ids(()).high_water_mark,
            f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        )
        statistics = AnalyzedStatistics(version, counted_at, sum(sizes), len(sizes))
        if not reads_rows:
            return statistics
        fact_columns = [fact_column for column in columns for fact_column in _fact_columns(column)]
        rows = self._rows.rows(StandIn(view_name(), table), snapshot)
        with lower.job_errors():
            (row,) = lower.select_expressions(rows, "count(*)", *fact_columns).collect()
        row_count, *values = row
        step = len(values) // max(1, len(columns))
        by_column = {
            column: values[number * step : (number + 1) * step]
            for number, column in enumerate(columns)
        }
        return AnalyzedStatistics(version, counted_at, sum(sizes), len(sizes), row_count, by_column)


def _columns_to_analyze(table: Table, statement: st.AnalyzeTable, text: str) -> list[Column]:
    """Return the columns to analyze: those that the statement names, each once; [] if it names
    none. FOR ALL COLUMNS means all but nested columns, for which Spark has no statistics.

    Raises:
        AnalysisError: The table has no column of a name.
        UnsupportedError: Spark has no statistics for the type of a named column.
    """
    if statement.columns is None:
        return [column for column in table.all_columns if parse_type(column.type).children == ()]
    spans = {require_column_of_ddl(text, table, name): name.span for name in statement.columns}
    for column, span in spans.items():
        if parse_type(column.type).children:
            raise UnsupportedError(
                f"Nothing is counted of the column '{column.name}', because its type is "
                f"{column.type.upper()}. FOR ALL COLUMNS leaves such columns out.",
                text, span.start, span.end,
                condition="UNSUPPORTED_FEATURE.ANALYZE_UNSUPPORTED_COLUMN_TYPE",
            )  # fmt: skip
    return list(spans)


def _fact_columns(column: Column) -> list[str]:
    """Return six SQL expressions of a column's statistics, each cast to text: minimum, maximum,
    number of NULLs, number of distinct values, average length, longest length. A text has no
    minimum and maximum (NULL); another value has the length of its type."""
    name, column_type = quote(column.name), parse_type(column.type)
    nulls = f"count(*) - count({name})"
    distinct = f"least(approx_count_distinct({name}), count({name}))"
    size = str(_value_size(column_type))
    if column_type.kind not in _TEXT_TYPES:
        facts = [f"min({name})", f"max({name})", nulls, distinct, size, size]
    else:
        average, longest = f"ceil(avg(length({name})))", f"max(length({name}))"
        lengths = [f"coalesce({length}, {size})" for length in (average, longest)]
        facts = ["NULL", "NULL", nulls, distinct, *lengths]
    return [f"CAST({fact} AS STRING)" for fact in facts]


def _value_size(column_type: HiveType) -> int:
    """Return the bytes that Spark assumes for a value of this type, which is not nested."""
    if column_type.kind == "decimal":
        return 8 if column_type.parameters[0] <= _LONG_DECIMAL else 16
    return _VALUE_SIZES[column_type.kind]
