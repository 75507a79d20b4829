"""The methods beside ``Session.sql``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.api.core import SessionCore
from acidsql.api.dataframes.advice import advising_quotes
from acidsql.api.dataframes.merge import SOURCE, MergeIntoWriter
from acidsql.api.dataframes.text import (
    SqlOrColumn,
    assignments_sql,
    name_list,
    table_and_alias,
    table_name,
    where_clause,
)
from acidsql.arguments import checked_while_open
from acidsql.errors import SettingError
from acidsql.plan.analysis.lower import hive_type
from acidsql.plan.rows.evolution import storable_type
from acidsql.sql.text.given_names import column_names
from acidsql.sql.text.tokens import split_statements
from acidsql.statements.show.described import tblproperties_clause
from acidsql.storage.columns import quote, string_literal
from acidsql.storage.spark.columns.column_sql import column_sql
from acidsql.storage.spark.given_rows import Rows, to_frame
from acidsql.suggestions import names_sentence


class DataFrameMethods(SessionCore):
    """What a ``Session`` offers beside SQL text."""

    @checked_while_open
    def update(
        self,
        table: str,
        set: Mapping[str, SqlOrColumn],
        where: SqlOrColumn | None = None,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> DataFrame:
        """Change rows: ``UPDATE table SET … WHERE …``.

        Args:
            table: ``table`` or ``database.table``, perhaps with an alias: ``t AS x``.
            set: The new value of each column, or field of a struct (``s.f``), as SQL text or as a
                Column. ``F.lit("x")`` is the Column of a value. A column's name may have the
                table's name or alias before it; a part of a name that has a dot is in backticks:
                ``t.`a.b```.
            where: Which rows to change, as SQL text or as a Column. Default: all.
            args: Values of parameters in SQL text, as for ``sql``.

        Returns:
            One row of counts: num_affected_rows, num_inserted_rows, num_updated_rows,
            num_deleted_rows, txn_id and write_id.

        Raises:
            SqlError: The text is wrong, or a Column cannot be written as SQL. Nothing was done.
            SettingError: ``set`` is empty.
            TxnError: The transaction failed, for example by a write conflict.
            AcidSqlError: Any other error. The table is as it was.
        """
        with column_sql(self.spark) as columns, advising_quotes(set.values(), [where]):
            text = f"UPDATE {table_and_alias(table)} SET {assignments_sql(set, columns)}"
            return self.sql(text + where_clause(where, columns), args)

    @checked_while_open
    def delete(
        self,
        table: str,
        where: SqlOrColumn | None = None,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> DataFrame:
        """Delete rows: ``DELETE FROM table WHERE …``.

        Args:
            table: ``table`` or ``database.table``, perhaps with an alias: ``t AS x``.
            where: Which rows to delete, as SQL text or as a Column. Default: all.
            args: Values of parameters in SQL text, as for ``sql``.

        Returns:
            One row of counts, with the columns of ``update``.

        Raises:
            SqlError: The text is wrong, or a Column cannot be written as SQL. Nothing was done.
            TxnError: The transaction failed, for example by a write conflict.
            AcidSqlError: Any other error. The table is as it was.
        """
        with column_sql(self.spark) as columns, advising_quotes([], [where]):
            return self.sql(
                f"DELETE FROM {table_and_alias(table)}" + where_clause(where, columns), args
            )

    @checked_while_open
    def merge_into(self, source: Rows, table: str, on: SqlOrColumn) -> MergeIntoWriter:
        """Merge a DataFrame into a table, as PySpark's ``DataFrame.mergeInto`` does.

        ::

            (acid.merge_into(news.alias("n"), "planes", "planes.tailnum = n.tailnum")
                .whenMatched("n.seats IS NULL").delete()
                .whenMatched().updateAll()
                .whenNotMatched().insertAll()
                .merge())

        Args:
            source: The DataFrame, or what ``spark.createDataFrame`` takes: of pandas, of pyarrow,
                or a list of dicts. Conditions and values name it by ``df.alias("n")``; without an
                alias its name is ``source``. Its own Columns (``df["id"]``) may be used, too.
            table: ``table`` or ``database.table``. Conditions and values name it as ``table``, or
                by its alias: ``database.table AS t``.
            on: When a row of the source matches a row of the table, as SQL text or as a Column.

        Returns:
            A writer, which runs nothing before ``merge()``.
        """
        return MergeIntoWriter(self.spark, self.sql, to_frame(self.spark, source), table, on)

    @checked_while_open
    def insert_into(
        self,
        table: str,
        rows: Rows,
        *,
        overwrite: bool = False,
        by_name: bool = True,
        partition: Mapping[str, Any] | None = None,
    ) -> DataFrame:
        """Insert the rows of a DataFrame: ``INSERT INTO table … SELECT * FROM rows``.

        Args:
            table: ``table`` or ``database.table``.
            rows: The rows: a DataFrame, or what ``spark.createDataFrame`` takes: of pandas, of
                pyarrow, or a list of dicts.
            overwrite: Replace the table's rows, or those of the partitions that get rows, as
                INSERT OVERWRITE does.
            by_name: The columns correspond by name, as with ``df.writeTo``. False: by position.
            partition: Values of partition columns that the rows do not have.

        Returns:
            One row of counts, with the columns of ``update``.

        Raises:
            SqlError: There is no such table, or the columns do not fit. Nothing was done.
            TxnError: The transaction failed, for example by a write conflict.
            AcidSqlError: Any other error, such as a NULL in a NOT NULL column. The table is as it
                was.
        """
        values = dict(partition or {})
        names = column_names(list(values), "partition=…")
        static = ", ".join(f"{quote(name)} = :value_{i}" for i, name in enumerate(names))
        text = (
            f"INSERT {'OVERWRITE' if overwrite else 'INTO'} {table_name(table)}"
            f"{f' PARTITION ({static})' if static else ''}{' BY NAME' if by_name else ''} "
            f"SELECT * FROM {{{SOURCE}}}"
        )
        args = {f"value_{i}": value for i, value in enumerate(values.values())}
        return self.sql(text, args, **{SOURCE: rows})

    @checked_while_open
    def create_table(
        self,
        table: str,
        rows_or_schema: Rows | T.StructType | str,
        *,
        partitioned_by: Sequence[str] | str = (),
        clustered_by: Sequence[str] | str = (),
        buckets: int | None = None,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> DataFrame:
        """Create an ACID table.

        Args:
            table: ``table`` or ``database.table``.
            rows_or_schema: Rows, as in ``insert_into``: the table gets their columns and the rows,
                as by CREATE TABLE … AS SELECT. A schema, as for ``spark.createDataFrame`` (a
                StructType, or ``"id INT, name STRING"``): an empty table. A TIMESTAMP is Hive's,
                a wall clock.
            partitioned_by: The partition columns. They become the table's last columns.
            clustered_by: The bucketing columns.
            buckets: How many buckets; needed with ``clustered_by``.
            properties: Table properties.
            if_not_exists: Do nothing if there is such a table.

        Returns:
            No rows.

        Raises:
            CatalogError: There is such a table.
            SettingError: A partition column is missing, or ``clustered_by`` and ``buckets`` do not
                belong together.
            AcidSqlError: Any other error. There is no table then.
        """
        head = f"CREATE TABLE {'IF NOT EXISTS ' if if_not_exists else ''}{table_name(table)}"
        clauses = _layout_clauses(clustered_by, buckets, properties or {})
        partition_names = column_names(partitioned_by, "partitioned_by=…")
        if not isinstance(rows_or_schema, T.StructType | str):
            parts = (
                f" PARTITIONED BY ({', '.join(map(quote, partition_names))})"
                if partition_names
                else ""
            )
            text = f"{head}{parts}{clauses} AS SELECT * FROM {{{SOURCE}}}"
            return self.sql(text, **{SOURCE: rows_or_schema})
        fields = _schema_fields(rows_or_schema)
        partition_fields = [_require_field(fields, name) for name in partition_names]
        data_fields = [field for field in fields if field not in partition_fields]
        parts = (
            f" PARTITIONED BY ({_column_definitions(partition_fields)})" if partition_fields else ""
        )
        return self.sql(f"{head} ({_column_definitions(data_fields)}){parts}{clauses}")

    @checked_while_open
    def script(self, text_or_path: str | Path) -> list[DataFrame]:
        """Run the statements of a script, one after another, each with a ``;`` behind it.

        Each statement is a transaction of its own, unless the script has BEGIN and COMMIT. After an
        error the rest is not run; a transaction that the script has begun stays open.

        Args:
            text_or_path: The script, or the path of its file (a ``pathlib.Path``).

        Returns:
            The result of each statement.

        Raises:
            AcidSqlError: A statement failed. A note on the error tells which one.
            OSError: The file cannot be read.
        """
        is_file = isinstance(text_or_path, Path)
        text = text_or_path.read_text("utf-8") if isinstance(text_or_path, Path) else text_or_path
        where = f" of {text_or_path}" if is_file else " of the script"
        results: list[DataFrame] = []
        for number, span in enumerate(split_statements(text), 1):
            try:
                results.append(self.sql(span.slice(text)))
            except Exception as error:
                line = text.count("\n", 0, span.start) + 1
                error.add_note(f"This is statement {number}{where}, in line {line}.")
                raise
        return results


def _layout_clauses(
    clustered_by: Sequence[str] | str, buckets: int | None, properties: Mapping[str, str]
) -> str:
    """Return the SQL of CLUSTERED BY … INTO … BUCKETS and TBLPROPERTIES of a CREATE TABLE, each
    with a blank before it; each is "" without its arguments. Raise SettingError for
    ``clustered_by`` without ``buckets``, or the reverse."""
    if bool(clustered_by) != (buckets is not None):
        raise SettingError("clustered_by and buckets belong together.", name="buckets")
    text = (
        f" CLUSTERED BY ({name_list(clustered_by, 'clustered_by=…')}) INTO {buckets} BUCKETS"
        if clustered_by
        else ""
    )
    return f"{text} {tblproperties_clause(properties)}" if properties else text


def _schema_fields(schema: T.StructType | str) -> list[T.StructField]:
    """Return the fields of a schema, which is a StructType or DDL; [] for DDL of a type that is no
    struct (``INT``). Spark raises its own error for wrong DDL."""
    if isinstance(schema, str):
        parsed = T.DataType.fromDDL(schema)
        schema = parsed if isinstance(parsed, T.StructType) else T.StructType()
    return list(schema.fields)


def _require_field(fields: Sequence[T.StructField], name: str) -> T.StructField:
    """Return the field of this name, whatever the case. Raise SettingError if there is none."""
    for field in fields:
        if field.name.lower() == name.lower():
            return field
    columns = names_sentence(name, [field.name for field in fields], owner="the table")
    raise SettingError(f"partitioned_by names '{name}', which is no column. {columns}")


def _column_definitions(fields: Sequence[T.StructField]) -> str:
    return ", ".join(map(_column_definition, fields))


def _column_definition(field: T.StructField) -> str:
    """Return a column's definition in CREATE TABLE, with NOT NULL and COMMENT, and with Hive's name
    of the type. Spark's TIMESTAMP and TIMESTAMP_NTZ are both TIMESTAMP there, a wall clock."""
    not_null = "" if field.nullable else " NOT NULL"
    comment = field.metadata.get("comment")
    comment_clause = "" if comment is None else f" COMMENT {string_literal(comment)}"
    return (
        f"{quote(field.name)} {storable_type(hive_type(field.dataType))}{not_null}{comment_clause}"
    )
