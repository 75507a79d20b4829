"""Replaces rows by their keys: the MERGE of a batch.

The batch's keys are converted to the types of the table's columns before anything is compared.
Otherwise two timestamps of a day would be two keys for a DATE column, and one row in the table; and
a partition's '' would be a key, and NULL in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from acidsql.acid.table import Column, Table
from acidsql.errors import AnalysisError, ConstraintError
from acidsql.plan.analysis.lower import hive_type
from acidsql.plan.values.assignment import assignment_sql, read_back_sql
from acidsql.plan.values.struct_fields import FieldRules
from acidsql.sql.text.tokens import Span
from acidsql.statements.context.statement_text import is_case_sensitive
from acidsql.storage.columns import quote
from acidsql.suggestions import names_sentence


def with_typed_keys(table: Table, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows of a batch, lazily, with the key columns, and columns of type VOID, cast to
    the table's types. All columns keep their order; others, also VOID columns that the table does
    not have, stay as they are. Names match only in the same case.

    Raises:
        AnalysisError: A key is not among the batch's columns, or has a type that its column does
            not take.
    """
    for key in keys:
        if key not in rows.columns:
            raise AnalysisError(
                f"The key column '{key}' is not among the columns of the batch for {table.name}. "
                f"{names_sentence(key, rows.columns, owner='the batch')}",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=key,
            )  # fmt: skip
    untyped = {name for name, kind in rows.dtypes if kind == "void"}  # files have no such columns
    converted = {*keys, *untyped}
    values = {
        column.name: _typed_value(rows, column, is_partition=column in table.partition_columns)
        for column in (*table.columns, *table.partition_columns)
        if column.name in converted and column.name in rows.columns
    }
    return rows.selectExpr(
        *(f"{values.get(name, quote(name))} AS {quote(name)}" for name in rows.columns)
    )


def refuse_bad_keys(rows: DataFrame, keys: Sequence[str]) -> None:
    """Raise an error if a key is NULL, or two rows have one key. This runs a job.

    A NULL never matches a row of the table. Two rows with one new key would both be inserted.

    Raises:
        ConstraintError: UPSERT_KEY_INVALID, with one of the keys.
    """
    # The columns are named by number, because a key may have any name, even ``count``.
    key_rows = rows.select(*(rows[quote(key)].alias(f"k{i}") for i, key in enumerate(keys)))
    names = key_rows.columns
    nulls = " OR ".join(f"{name} IS NULL" for name in names)
    bad_keys = key_rows.groupBy(*names).count().where(f"count > 1 OR {nulls}").head(1)
    if bad_keys:
        values = ", ".join("NULL" if value is None else str(value) for value in bad_keys[0][:-1])
        raise ConstraintError(
            f"The batch has {bad_keys[0][-1]} row(s) with the key ({', '.join(keys)}) = "
            f"({values}). An upsert needs keys that are not NULL, and one row for each key.",
            condition="UPSERT_KEY_INVALID", sqlstate="23000", key=values,
        )  # fmt: skip


def merge_text(target: str, view: str, rows: DataFrame, keys: Sequence[str]) -> str:
    """Return the text of a MERGE that updates the rows with the same keys, and inserts the others.
    ``target`` is SQL; ``view`` has the batch, of which ``rows`` only tells the columns. If all
    columns are keys, nothing is updated."""
    columns = [quote(name) for name in rows.columns]
    on = " AND ".join(f"t.{quote(key)} = s.{quote(key)}" for key in keys)
    values = ", ".join(f"s.{column}" for column in columns)
    changed = [quote(name) for name in rows.columns if name not in keys]
    update = ", ".join(f"{column} = s.{column}" for column in changed)
    matched = f"WHEN MATCHED THEN UPDATE SET {update} " if changed else ""
    return (
        f"MERGE INTO {target} t USING {view} s ON {on} {matched}"
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def _typed_value(rows: DataFrame, column: Column, *, is_partition: bool) -> str:
    """Return SQL of a batch's column in the type of the table's column, as INSERT casts it and a
    reader reads it back (in a partition, '' is NULL). Raise AnalysisError if the types do not
    fit."""
    source_type, name = hive_type(rows.schema[column.name].dataType), quote(column.name)
    by_case = FieldRules(is_case_sensitive=is_case_sensitive(rows.sparkSession))
    sql = assignment_sql(
        name, source_type, column.name, column.type, "", Span(0, 0), field_rules=by_case
    )
    return read_back_sql(sql, column, is_partition=is_partition)
