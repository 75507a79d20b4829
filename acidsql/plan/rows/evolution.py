"""WITH SCHEMA EVOLUTION: the columns that a table gets from the source of an INSERT or MERGE; and
those that it gets by ADD COLUMNS … WITH VALUES.

A column of the source that the table does not have becomes the table's last column. A column of an
integer type, of FLOAT or of DECIMAL becomes wider if the source's column of this name is wider and
of the same family. Texts stay as they are: Spark's strings have no length that could be compared.
Fields of a STRUCT that the table does not have become its last fields, also inside of STRUCT, ARRAY
and MAP; fields that the source does not have are NULL.

The target's stand-in is a temporary view in the place of the table; here it becomes a query over
this view, with the new columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from acidsql.acid.table import PARQUET, Column, Table
from acidsql.acid.values.evolution import can_widen, keeps_bucket
from acidsql.acid.values.types import HiveType, parse_type, type_text
from acidsql.acid.virtual_columns import TYPES
from acidsql.errors import AnalysisError, FormatError, UnsupportedError
from acidsql.plan.rows.event_query import Fields, RewriteContext
from acidsql.plan.rows.insert import source_query
from acidsql.plan.rows.merge_clauses import PRESENT
from acidsql.plan.values.assignment import assignment_sql
from acidsql.plan.values.struct_fields import FieldRules, parts_of, shown_path
from acidsql.sql.binder import column_part
from acidsql.sql.parsed.statements import (
    Action,
    Insert,
    InsertAction,
    Merge,
    MergeClause,
    Name,
    Update,
    UpdateAction,
    Value,
)
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.event_records import PREFIX

_FAMILIES = ({"tinyint", "smallint", "int", "bigint"}, {"float", "double"}, {"decimal"})


def evolve_for_insert(statement: Insert, context: RewriteContext) -> RewriteContext:
    """Return the context of an INSERT WITH SCHEMA EVOLUTION, whose target also has the columns,
    wider types and new fields of the source, which Spark analyses; without that clause, the same
    context. The catalog is not changed.

    Raises:
        AnalysisError: A new column or field has a type or name that cannot be stored, or a struct
            of a Parquet table or of CLUSTERED BY would get new fields.
        UnsupportedError: A new column has a name that acidsql itself uses, or an İ in its name.
    """
    if not statement.evolves:
        return context
    context = replace(context, evolves=True)
    return _evolve(
        context, context.analyse(source_query(statement, context)), statement.source.span
    )


def evolve_for_merge(statement: Merge, context: RewriteContext, source: Fields) -> RewriteContext:
    """Return the context of a MERGE WITH SCHEMA EVOLUTION, whose target also has the columns that
    its clauses name, and new fields of structs; without that clause, the same context. The catalog
    is not changed.

    A clause with ``*`` names all columns of the source, and columns then also get wider types.
    Without ``*``, SET and the list of an INSERT add a column if the source has a column of the same
    name. They add fields to a column if its new value is just the source's column of its name.

    Raises:
        AnalysisError: A new column or field has a type or name that cannot be stored, a struct of a
            Parquet table or of CLUSTERED BY would get new fields, or ``*`` gives two columns of one
            name.
        UnsupportedError: A new column has a name that acidsql itself uses, or an İ in its name.
    """
    if not statement.evolves:
        return context
    context = replace(context, evolves=True)
    fields = [field for field in source if field[0].lower() not in (PRESENT, *TYPES)]
    for clause in statement.clauses:
        if clause.action in (Action.UPDATE_ALL, Action.INSERT_ALL):
            _need_distinct_names(context, fields, clause.span)
            return _evolve(context, fields, clause.span)
    table_columns = {column.name for column in context.table.all_columns}
    assigned_columns = {
        column_part(context.table, statement.qualifier, name)[0]
        for clause in statement.clauses
        for name in _assigned_names(clause)
    }
    new = [field for field in fields if field[0].lower() in assigned_columns - table_columns]
    same_name_columns = {
        name
        for clause in statement.clauses
        for name in _same_name_columns(clause, statement, context)
    }
    new += [
        field
        for field in fields
        if field[0].lower() in same_name_columns & table_columns and field[1].children
    ]
    return _evolve(context, new, statement.clauses[0].span)


def evolve_for_update(statement: Update, context: RewriteContext) -> RewriteContext:
    """Return the context of an UPDATE whose target also has the columns of ADD COLUMNS … WITH
    VALUES, as its last data columns, NULL in all rows; for any other UPDATE, the same context. The
    catalog is not changed.

    Raises:
        AnalysisError: The table has a column of this name: another session has added it meanwhile.
    """
    if not statement.new_columns:
        return context
    old = context.table
    for column in statement.new_columns:
        if column.name in [existing.name for existing in old.all_columns]:
            raise AnalysisError(
                f"{old.name} has a column '{column.name}' already (Hive 10036).",
                condition="COLUMN_ALREADY_EXISTS",
                sqlstate="42711",
            )
    return _with_table(context, replace(old, columns=(*old.columns, *statement.new_columns)))


def _same_name_columns(
    clause: MergeClause, statement: Merge, context: RewriteContext
) -> Iterable[str]:
    """Yield the columns that a clause of MERGE sets, in lower case, whose new value is just the
    source's column of the same name. Fields of columns, DEFAULT, and clauses with ``*`` or DELETE
    yield none."""
    pairs: list[tuple[Name, Value]] = []
    if isinstance(clause.action, UpdateAction):
        pairs = [(assignment.target, assignment.value) for assignment in clause.action.assignments]
    elif isinstance(clause.action, InsertAction):
        pairs = [*zip(clause.action.columns or (), clause.action.values, strict=False)]
    for target, value in pairs:
        column, fields = column_part(context.table, statement.qualifier, target)
        if fields or not isinstance(value, Span):
            continue
        if _is_of_source(value, column, statement.qualifier, context):
            yield column


def _is_of_source(value: Span, column: str, target: str, context: RewriteContext) -> bool:
    """Whether a value is ``column`` or ``alias.column``, in any case, where the alias is any but
    the target's. Whether the source has the alias is not checked."""
    tokens = tokenize(context.text, value, double_quoted_identifiers=context.double_quoted)
    names = [token.value.lower() for token in tokens if token.is_name]
    texts = [token.text for token in tokens if not token.is_name]
    is_path = (len(names), texts) in ((1, []), (2, ["."]))
    return is_path and names[-1] == column and names[0] != target.lower()


def _need_distinct_names(context: RewriteContext, fields: Fields, place: Span) -> None:
    """Raise AnalysisError if two columns of the source have the same name but for case: a source
    may have such columns in a case-sensitive session, but a table may not."""
    names = [name.lower() for name, _ in fields]
    for name in names:
        if names.count(name) > 1:
            raise AnalysisError(
                f"The source has two columns '{name}', of which {context.table.name} can have one.",
                context.text, place.start, place.end,
                condition="AMBIGUOUS_COLUMN_REFERENCE", sqlstate="42702",
            )  # fmt: skip


def _assigned_names(clause: MergeClause) -> Iterable[Name]:
    """Return the names that a clause of MERGE assigns, by SET or by the list of an INSERT; () for
    other clauses."""
    if isinstance(clause.action, UpdateAction):
        return [assignment.target for assignment in clause.action.assignments]
    return (clause.action.columns or ()) if isinstance(clause.action, InsertAction) else ()


def _evolve(context: RewriteContext, source: Fields, place: Span) -> RewriteContext:
    """Return a context in which the target and its stand-in have the source's columns: new ones
    come last, in the source's order, others get wider types and new fields. Partition columns stay
    as they are. If nothing changes, it is the same context. ``place``: for errors."""
    old = context.table
    columns = {column.name: column for column in old.columns}
    partitions = {column.name for column in old.partition_columns}
    for name, kind in source:
        if (existing := columns.get(name.lower())) is not None:
            columns[existing.name] = _widen(
                old, _with_new_fields(context, existing, kind, place), kind
            )
        elif name.lower() not in partitions:
            column = new_column(name, kind, context.text, place)
            check_name(column, context.text, place)
            columns[column.name] = column
    table = replace(old, columns=tuple(columns.values()))
    return context if table == old else _with_table(context, table)


def _with_table(context: RewriteContext, table: Table) -> RewriteContext:
    """Return the context with ``table`` as its target; the stand-in, if there is one, gets the
    columns of ``table``, and ``table_before`` is the target so far."""
    standin = context.standin and _evolved_standin(table, context)
    return replace(context, table=table, standin=standin, table_before=context.table)


def _with_new_fields(
    context: RewriteContext, column: Column, source_type: HiveType, place: Span
) -> Column:
    """Return a column with the additional fields of the source's column, in structs at any depth;
    the column itself if there are none, or the two are of different kinds. Types of fields that the
    column has stay as they are. A name that differs from another only in case adds no field.

    Raises:
        AnalysisError: There are some, but the table is Parquet, or is clustered by the column: the
            hash of a row's value would change with its fields.
    """
    old_type, table = parse_type(column.type), context.table
    united = FieldRules(is_case_sensitive=context.is_case_sensitive).unite(source_type, old_type)
    if united == old_type:
        return column
    reason = ""
    if column.name in table.bucket_columns:
        reason = "it is a column of CLUSTERED BY, and other fields put rows into other buckets"
    elif table.file_format == PARQUET:
        reason = f"{table.name} is stored as Parquet, and only ORC tables get new fields"
    if reason:
        raise AnalysisError(
            f"WITH SCHEMA EVOLUTION adds no field to '{column.name}': {reason}. The value's type "
            f"is {shown_type(str(source_type))}, and the column's {shown_type(column.type)}.",
            context.text, place.start, place.end,
            condition="INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS", sqlstate="KD000",
        )  # fmt: skip
    return replace(column, type=new_column(column.name, united, context.text, place).type)


def _widen(table: Table, column: Column, source_type: HiveType) -> Column:
    """Return a column with the type of the source's values, if it is wider and of the same family
    (integers, floats, decimals). The column itself otherwise, if the table is Parquet, or if rows
    would belong to other buckets."""
    old_type = parse_type(column.type)
    same_family = any({old_type.kind, source_type.kind} <= family for family in _FAMILIES)
    if not same_family or not can_widen(old_type, source_type):
        return column
    is_fixed = table.file_format == PARQUET or (
        column.name in table.bucket_columns and not keeps_bucket(old_type, source_type)
    )
    return column if is_fixed else replace(column, type=str(source_type))


def _evolved_standin(table: Table, context: RewriteContext) -> str:
    """Return SQL of a relation in brackets over the target's stand-in: its unchanged columns, then
    the new and changed ones, in their order. Its rows have NULLs in the new columns, and values
    converted to the new types."""
    old_columns = {column.name: column for column in context.table.columns}
    changed = [c for c in table.columns if c.name in old_columns and c != old_columns[c.name]]
    new_values = [
        f"{_old_value(old_columns.get(c.name), c)} AS {quote(c.name)}"
        for c in table.columns
        if c in changed or c.name not in old_columns
    ]
    except_clause = f" EXCEPT ({', '.join(quote(c.name) for c in changed)})" if changed else ""
    return f"(SELECT *{except_clause}, {', '.join(new_values)} FROM {context.standin})"


def _old_value(old: Column | None, new: Column) -> str:
    """Return SQL of an old row's value in the new column: NULL of its type if the column is new
    (``old`` is None), else the old value converted to the new type, where fields of structs go by
    name and new fields are NULL."""
    if old is None:
        return f"CAST(NULL AS {shown_type(new.type)})"
    fields = FieldRules(is_case_sensitive=True, fills_missing=True)
    kind, place = parse_type(old.type), Span(0, 0)
    return assignment_sql(quote(old.name), kind, new.name, new.type, "", place, field_rules=fields)


# ── columns of queries ───────────────────────────────────────────────────────────────────────


def new_column(name: str, kind: HiveType, text: str, place: Span) -> Column:
    """Return the table column, with a name in lower case, for a column of a query.

    Raises:
        AnalysisError: The type cannot be stored, or has a field that cannot.
    """
    check_fields(name.lower(), kind, text, place)
    try:
        return Column(name.lower(), storable_type(kind))
    except FormatError as error:
        raise AnalysisError(
            f"The query's column '{name}' cannot be stored: {error.message}.",
            text, place.start, place.end,
            condition="UNSUPPORTED_DATATYPE", sqlstate="0A000",
        ) from None  # fmt: skip


def storable_type(kind: HiveType) -> str:
    """Return the column type for a query's type. Spark's TIMESTAMP is stored as a wall clock, also
    inside of other types. Raise FormatError if the type cannot be stored."""
    return str(parse_type(type_text(kind, {"timestamp_ltz": "timestamp"})))


def check_fields(column: str, kind: HiveType, text: str, place: Span) -> None:
    """Refuse fields of a STRUCT, at any depth, that nobody could read again: two whose names differ
    at most in case, which only some sessions tell apart; and names that readers of ORC refuse,
    which are empty or have the character of the number 0.

    Raises:
        AnalysisError: COLUMN_ALREADY_EXISTS, as in Spark, or INVALID_IDENTIFIER.
    """
    for path, node in _structs(kind, (column,)):
        lowered = [name.lower() for name in node.names]
        twins = [name for name in node.names if lowered.count(name.lower()) > 1]
        if twins:
            raise AnalysisError(
                f"'{shown_path(path)}' cannot have the fields {', '.join(map(repr, twins))}: the "
                "name of each field may be there once, in whatever letters.",
                text, place.start, place.end,
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711",
            )  # fmt: skip
        for name in node.names:
            if not name or "\0" in name:
                raise AnalysisError(
                    f"'{shown_path(path)}' cannot have the field {name!r}: a field needs a name, "
                    "without the character of the number 0.",
                    text, place.start, place.end,
                    condition="INVALID_IDENTIFIER", sqlstate="42602",
                )  # fmt: skip


def _structs(
    column_type: HiveType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], HiveType]]:
    """Yield the STRUCTs in a type, the outer ones first, each with the names that lead to it."""
    if column_type.kind == "struct":
        yield path, column_type
    names = column_type.names or parts_of(column_type)
    for name, child in zip(names, column_type.children, strict=False):
        yield from _structs(child, (*path, name))


def check_name(column: Column, text: str, place: Span) -> None:
    """Refuse names that acidsql itself uses (virtual columns, and names with its prefix), and names
    that Spark would not find.

    Raises:
        UnsupportedError: The name is reserved, or has an İ in it.
        AnalysisError: The name is empty, or has the character of the number 0.
    """
    if column.name in TYPES or column.name.startswith(PREFIX):
        raise UnsupportedError(
            f"A column cannot be called '{column.name}': the name is taken.",
            text, place.start, place.end,
            condition="UNSUPPORTED_FEATURE.RESERVED_COLUMN_NAME",
        )  # fmt: skip
    if not column.name or "\0" in column.name:
        raise AnalysisError(
            "A column needs a name, without the character of the number 0.",
            text, place.start, place.end,
            condition="INVALID_IDENTIFIER", sqlstate="42602",
        )  # fmt: skip
    if "i\u0307" in column.name:
        # The lower case of İ; Spark takes it for another letter.
        raise UnsupportedError(
            f"A column's name cannot have an İ in it ({column.name}): Spark would not find it.",
            text, place.start, place.end, condition="UNSUPPORTED_FEATURE.COLUMN_NAME",
        )  # fmt: skip
