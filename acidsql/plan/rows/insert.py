"""Rewrites INSERT to a query whose rows are insert events.

CREATE TABLE … AS SELECT uses the same rewrite; LOAD DATA uses its PARTITION clause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import AnalysisError
from acidsql.plan.rows.event_query import (
    SOURCE,
    Collecting,
    EventQuery,
    Fields,
    Hints,
    RewriteContext,
    StaticPartition,
    assigned_sql,
    default_fields,
    default_value,
    is_text,
    omitted_value,
    partition_text,
)
from acidsql.plan.values.assignment import Policy, raise_sql, takes_literals
from acidsql.plan.values.sqltext import Text
from acidsql.plan.values.struct_fields import FieldMatching
from acidsql.sql.binder import InsertColumns, bind_insert, default_sql, is_default, value_span
from acidsql.sql.parsed.statements import Insert, Literals, PartitionItem, Value, Values
from acidsql.sql.text.tokens import Span
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.event_records import VALUE, WriteMode
from acidsql.suggestions import names_sentence


def plan_insert(statement: Insert, context: RewriteContext) -> EventQuery:
    """Rewrite one INSERT (INTO or OVERWRITE) to a query for the new rows, converted to the types of
    their columns. Spark analyses the source; a VALUES list also tells the number of rows.

    Raises:
        AnalysisError: A name, a type or a number of values is wrong.
    """
    bound = bind_insert(context.text, context.table, statement.columns, statement.partition)
    source, rows = _source_query_and_length(statement, bound, context)
    mode = WriteMode.of_insert(is_overwrite=statement.overwrite)
    return plan_source(context, bound, source, statement.source.span, mode, rows, statement.by_name,
                       lambda i: _is_literal(statement.source, i, bound, context))  # fmt: skip


def plan_source(
    context: RewriteContext,
    bound: InsertColumns,
    source: Text,
    place: Span,
    mode: WriteMode,
    literal_rows: int | None = None,
    by_name: bool = False,
    is_literal: Callable[[int], bool] = lambda _: False,
) -> EventQuery:
    """Rewrite the insertion of a query's rows to a query for the new rows, converted to the types
    of their columns: data columns, then the partition values as text. Columns that are left out get
    their DEFAULT or NULL. Spark analyses ``source``.

    Args:
        context: The context of the rewrite.
        bound: The columns that the values go to.
        source: The query.
        place: The query's place in the user's text.
        mode: NEW_TABLE, INSERT or OVERWRITE.
        literal_rows: The number of rows, if the query is a VALUES list.
        by_name: The query's columns, and the fields of structs in them, are matched with the
            table's by name, else by position.
        is_literal: Tells of the ordinal of a query's column whether the values are string literals.

    Raises:
        AnalysisError: The number of columns, a name or a type is wrong.
    """
    fields = context.analyse(source)
    columns = _columns_by_name(context, bound, fields, place) if by_name else bound.from_source
    _check_count(context, columns, fields, place)
    values = {
        column.name: assigned_sql(
            context, quote(f"c{i}"), kind, column, place,
            is_literal=takes_literals(parse_type(column.type)) and is_literal(i),
            matching=FieldMatching.BY_NAME if by_name else FieldMatching.BY_POSITION,
        )
        for i, (column, (_, kind)) in enumerate(zip(columns, fields, strict=True))
    }  # fmt: skip
    query = context.new().raw("SELECT\n").commas(_projection(context, bound, columns, values))
    names = ", ".join(quote(f"c{i}") for i in range(len(fields)))
    query.raw("\nFROM (").add(source).raw(f"\n) AS {SOURCE} ({names})")
    collecting = Collecting.IF_SMALL if literal_rows is None else Collecting.NEVER
    partition, hints = _static_partition(context, bound), Hints(literal_rows, collecting)
    return EventQuery(context.table, query, mode, partition, hints=hints)


def plan_create_as_select(
    text: str,
    table: Table,
    query: Text,
    analyse: Callable[[Text], Fields],
    place: Span,
    *,
    policy: Policy,
    is_case_sensitive: bool,
) -> EventQuery:
    """Rewrite the insertion of the rows of CREATE TABLE … AS SELECT into the new table (mode
    NEW_TABLE), as INSERT … BY NAME does: a column that the query lacks gets its DEFAULT or NULL.
    ``analyse``: tells a query's columns. Raise AnalysisError if the query has a column that the
    table lacks, or of a type that does not fit."""
    context = RewriteContext(
        text, table, "", query.new(), analyse, policy=policy, is_case_sensitive=is_case_sensitive
    )
    bound = bind_insert(text, table, None, ())
    return plan_source(context, bound, query, place, WriteMode.NEW_TABLE, by_name=True)


def plan_load(
    text: str, table: Table, partition: Sequence[PartitionItem]
) -> StaticPartition | None:
    """Return the partition of LOAD DATA, as a query of its values; None if the table has no
    partition columns, or the statement names no partition.

    Raises:
        AnalysisError: PARTITION (…) names a wrong column, or a partition column is missing.
    """
    bound = bind_insert(text, table, None, partition)
    return _static_partition(RewriteContext(text, table, "", Text(text), lambda _: ()), bound)


def _projection(
    context: RewriteContext,
    insert_columns: InsertColumns,
    columns: Sequence[Column],
    values: dict[str, str],
) -> list[Text | str]:
    """Return SQL of the columns of an INSERT's new rows: data columns, then the partition values as
    text, static ones from the PARTITION clause. ``values``: SQL by column name; those of omitted
    columns (DEFAULT or NULL) are added to it."""
    table = context.table
    omitted = [c for c in (*columns, *insert_columns.omitted) if c.name not in values]
    omitted += [c for c in insert_columns.from_source if c not in columns and c not in omitted]
    types = default_fields(context, omitted)
    for column in omitted:
        values[column.name] = omitted_value(context, column, types)
    static = {column.name: span for column, span in insert_columns.static}
    parts: list[Text | str] = [f"{values[c.name]} AS {quote(c.name)}" for c in table.columns]
    for ordinal, column in enumerate(table.partition_columns):
        if column.name in static:
            text = static_value(context.new(), column, static[column.name])
            parts.append(text.raw(f" AS {VALUE}{ordinal}"))
        else:
            parts.append(partition_text(values[column.name], column, ordinal))
    return parts


def static_value(empty: Text, column: Column, span: Span) -> Text:
    """Compose SQL that gives a value of a PARTITION clause as text; NULL stays NULL. ``empty`` is a
    text over the statement.

    As in Hive and Spark, a string is allowed for an INT column (``p = '1'``), if it is an INT. A
    value that is none of the column's type, or too long for its CHAR or VARCHAR, fails the job.
    """
    cast = empty.new().raw("try_cast(").user(span).raw(f" AS {shown_type(column.type)})")
    if column.type.startswith("char"):
        cast = empty.new().raw("rtrim(").add(cast).raw(")")  # padding is no part of a CHAR
    failure = raise_sql(
        "CAST_INVALID_INPUT",
        "22018",
        f"The value of partition column '{column.name}' is no {column.type.upper()}.",
    )
    text = empty.new().raw("CAST(CASE WHEN ").user(span).raw(" IS NOT NULL AND ").add(cast)
    text.raw(" IS NULL")
    if length := parse_type(column.type).parameters if "char" in column.type else ():
        text.raw(" OR char_length(").add(cast).raw(f") > {length[0]}")
    return text.raw(f" THEN {failure} ELSE ").add(cast).raw(" END AS STRING)")


def _static_partition(
    context: RewriteContext, insert_columns: InsertColumns
) -> StaticPartition | None:
    """Return the partition that a statement names, as a query of one row with the values as text;
    None if the table has no partition columns, or not all values are static."""
    if not context.table.partition_columns:
        return None
    if len(insert_columns.static) != len(context.table.partition_columns):
        return None
    static = {column.name: span for column, span in insert_columns.static}
    values = [
        static_value(context.new(), column, static[column.name]).raw(f" AS {quote(column.name)}")
        for column in context.table.partition_columns
    ]
    return StaticPartition(context.new().raw("SELECT ").commas(list(values)))


def _source_query_and_length(
    statement: Insert, insert_columns: InsertColumns, context: RewriteContext
) -> tuple[Text, int | None]:
    """Compose the INSERT's source as a query, with its WITH clause, and return it and the number of
    its rows, which is None unless it is a VALUES list."""
    assert not isinstance(statement.source, Literals), "read by the grammar"
    if not isinstance(statement.source, Values):
        return source_query(statement, context), None
    values = _values_query(statement.source, insert_columns, context)
    return context.new(statement.ctes).add(values), len(statement.source.rows)


def source_query(statement: Insert, context: RewriteContext) -> Text:
    """Return the query of an INSERT … SELECT, behind its WITH clause if it has one."""
    if statement.ctes is None:
        return context.new().verbatim(statement.source.span)
    return context.new(statement.ctes).user(statement.source.span)


def _is_literal(
    source: object, i: int, insert_columns: InsertColumns, context: RewriteContext
) -> bool:
    """Whether a VALUES list's values for the i-th column are all string literals, NULL, or DEFAULT
    of a column without a default; False for any other source."""
    return isinstance(source, Values) and all(
        _is_text_or_null(context, row[i], insert_columns.from_source[i]) for row in source.rows
    )


def _is_text_or_null(context: RewriteContext, value: Value, column: Column) -> bool:
    """Whether a value is a string literal, perhaps in brackets, or the word NULL; DEFAULT counts if
    the column has no default."""
    if is_default(value):
        return column.default is None
    span = value_span(value)
    return is_text(context, span) or span.slice(context.text).upper() == "NULL"


def _values_query(values: Values, insert_columns: InsertColumns, context: RewriteContext) -> Text:
    """Compose ``SELECT * FROM VALUES …``, with each DEFAULT replaced by its column's default. Raise
    AnalysisError for a row with more or fewer values than columns."""
    text = context.new().raw("SELECT * FROM VALUES\n")
    for number, row in enumerate(values.rows):
        _check_row(context, insert_columns, row, values)
        text.raw(",\n(" if number else "(")
        for i, value in enumerate(row):
            text.raw(", " if i else "")
            if is_default(value):
                text.raw(_default(context, insert_columns.from_source[i]))
            else:
                assert isinstance(value, Span)
                text.user(value)
        text.raw(")")
    return text


def _default(context: RewriteContext, column: Column) -> str:
    """Return SQL of a column's DEFAULT (NULL if it has none) as a value of a VALUES list. Only a
    nested one is converted to the column's type: Spark finds one type for all values of a column.
    """
    is_nested = column.default and parse_type(column.type).children
    return default_value(context, column) if is_nested else default_sql(column)


def _check_row(
    context: RewriteContext, insert_columns: InsertColumns, row: Sequence[object], values: Values
) -> None:
    """Raise AnalysisError if a row of VALUES has more or fewer values than the INSERT fills
    columns."""
    if len(row) != len(insert_columns.from_source):
        fields = [("", HiveType("void"))] * len(row)
        _check_count(context, insert_columns.from_source, fields, values.span)


def _check_count(
    context: RewriteContext, columns: Sequence[Column], fields: Fields, place: Span
) -> None:
    """Raise AnalysisError, at ``place``, if the source has more or fewer columns than the INSERT
    fills."""
    if len(columns) == len(fields):
        return
    few = len(fields) < len(columns)
    kind = "NOT_ENOUGH_DATA_COLUMNS" if few else "TOO_MANY_DATA_COLUMNS"
    names = ", ".join(f"`{column.name}`" for column in columns)
    raise AnalysisError(
        f"{context.table.name} takes {len(columns)} value(s) here ({names}), "
        f"the source gives {len(fields)}.",
        context.text,
        place.start,
        place.end,
        condition=f"INSERT_COLUMN_ARITY_MISMATCH.{kind}",
        sqlstate="21S01",
    )


def _columns_by_name(
    context: RewriteContext, insert_columns: InsertColumns, fields: Fields, place: Span
) -> tuple[Column, ...]:
    """Return, for each of the source's columns, in their order, the column of that name among those
    that the INSERT fills, whatever its case. Raise AnalysisError if there is none, or if a name
    comes twice. The source may lack columns."""
    columns_by_name = {column.name: column for column in insert_columns.from_source}
    columns = []
    for name, _ in fields:
        column = columns_by_name.get(name.lower())
        if column is None or column in columns:
            columns_there = names_sentence(name, list(columns_by_name), owner="the table")
            raise AnalysisError(
                f"{context.table.name} has no column for the source's column '{name}'"
                + (", which comes twice." if column else f". {columns_there}"),
                context.text, place.start, place.end,
                condition="INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS", sqlstate="KD000",
            )  # fmt: skip
        columns.append(column)
    return tuple(columns)
