"""Runs ANALYZE TABLE: counts what is in one snapshot of a table, and notes it in the metastore.

The statement holds a lock as a statement that reads the table does. So nobody drops or replaces the
table before its numbers are noted, and writers do not wait. Nothing is planned by these numbers:
Spark plans by the sizes of the files that a snapshot reads.
"""

from __future__ import annotations

from datetime import UTC, datetime

from acidsql.acid.statistics import Counted
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.types import HiveType, parse_type
from acidsql.errors import UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.plan import lower
from acidsql.plan.locking import read_lock
from acidsql.plan.query import StandIn, view_name
from acidsql.sql import statements as st
from acidsql.sql.binder import column_of
from acidsql.statements.family import Context, Family, runs
from acidsql.statements.result import Receipt
from acidsql.statements.table_rows import TableRows
from acidsql.storage.columns import quote
from acidsql.txn import Txn

# The sizes with which Spark counts values, in bytes; of texts, when there is none.
_SIZES = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "date": 4, "timestamp": 8, "string": 20, "char": 20, "varchar": 20, "binary": 100,
}  # fmt: skip
_LONG_DECIMAL = 18  # digits: more do not fit into 8 bytes
_TEXTS = ("string", "char", "varchar", "binary")


class StatisticsStatements(Family):
    """Runs these statements for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows = TableRows(context)

    @runs(st.AnalyzeTable)
    def _analyze(self, statement: st.AnalyzeTable, text: str) -> Receipt:
        table = self._names.require_table(statement.name, text)
        _columns(table, statement, text)  # raises before a transaction is opened
        with self._locked_transaction(text, read_lock(table.name)) as txn:
            table = self._look_up_again(table.name)
            columns = _columns(table, statement, text)
            note = self._keep(table, columns, txn, reads_rows=statement.reads_rows)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id, notes=(note,))

    @runs(st.AnalyzeTables)
    def _analyze_all(self, statement: st.AnalyzeTables, text: str) -> Receipt | None:
        """Analyze the ACID tables of a database, and Spark's tables of its name."""
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
                table = acid_table(self._transactions.find(TableName(database, name)))
                if table is not None:
                    notes.append(self._keep(table, [], txn, reads_rows=statement.reads_rows))
                txn.end_quietly()
        return Receipt(text, notes=tuple(notes))

    def _keep(self, table: Table, columns: list[Column], txn: Txn, *, reads_rows: bool) -> str:
        """Count, and note the numbers. Returns them for the receipt."""
        counted = self._count(table, columns, txn, reads_rows=reads_rows)
        self._metastore.keep_statistics(table.name, counted.entries(table), txn_id=txn.id)
        rows = "" if counted.rows is None else f"{counted.rows} rows, "
        return f"{table.name}: {rows}{counted.bytes} bytes"

    def _count(self, table: Table, columns: list[Column], txn: Txn, *, reads_rows: bool) -> Counted:
        snapshot = txn.snapshot([table.name])
        listings, seen = self._rows.listed(table, snapshot)
        sizes = [one.size for listing in listings for one in (*listing.data, *listing.deletes)]
        sizes += [size for one in listings for files in one.originals for size in files.sizes]
        version, at = seen.without(()).high_water_mark, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        counted = Counted(version, at, sum(sizes), len(sizes))
        if not reads_rows:
            return counted
        facts = [fact for column in columns for fact in _facts(column)]
        rows = self._rows.rows(StandIn(view_name(), table), snapshot)
        with lower.job_errors():
            (found,) = lower.select_expressions(rows, "count(*)", *facts).collect()
        number, *values = found
        step = len(values) // max(1, len(columns))
        by_column = {one: values[n * step : (n + 1) * step] for n, one in enumerate(columns)}
        return Counted(version, at, sum(sizes), len(sizes), number, by_column)


def _columns(table: Table, statement: st.AnalyzeTable, text: str) -> list[Column]:
    """The columns to look at. FOR ALL COLUMNS leaves out those that have no such facts.

    Raises:
        AnalysisError: There is no such column.
        UnsupportedError: Spark counts nothing of a column of this type.
    """
    if statement.columns is None:
        return [one for one in table.all_columns if parse_type(one.type).children == ()]
    found = {column_of(text, table, name): name.span for name in statement.columns}
    for column, place in found.items():
        if parse_type(column.type).children:
            raise UnsupportedError(
                f"Nothing is counted of the column '{column.name}', because its type is "
                f"{column.type.upper()}. FOR ALL COLUMNS leaves such columns out.",
                text, place.start, place.end,
                condition="UNSUPPORTED_FEATURE.ANALYZE_UNSUPPORTED_COLUMN_TYPE",
            )  # fmt: skip
    return list(found)


def _facts(column: Column) -> list[str]:
    """SQL of the facts about a column, in the order of ``COLUMN_FACTS``, as Spark counts them."""
    name, kind = quote(column.name), parse_type(column.type)
    nulls = f"count(*) - count({name})"
    distinct = f"least(approx_count_distinct({name}), count({name}))"
    size = str(_size(kind))
    if kind.kind not in _TEXTS:
        found = [f"min({name})", f"max({name})", nulls, distinct, size, size]
    else:
        average, longest = f"ceil(avg(length({name})))", f"max(length({name}))"
        lengths = [f"coalesce({one}, {size})" for one in (average, longest)]
        found = ["NULL", "NULL", nulls, distinct, *lengths]
    return [f"CAST({one} AS STRING)" for one in found]


def _size(kind: HiveType) -> int:
    if kind.kind == "decimal":
        return 8 if kind.parameters[0] <= _LONG_DECIMAL else 16
    return _SIZES[kind.kind]
