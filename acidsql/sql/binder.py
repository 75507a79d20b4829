"""Binds a statement to its table: resolves column names, and finds each column's value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.sql.parsed.statements import Assignment, Default, Name, PartitionItem, Value
from acidsql.sql.text.tokens import Span
from acidsql.suggestions import names_sentence

# Spark's condition for fields that cannot be assigned, or not together.
NO_FIELD = "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS"


@dataclass(frozen=True, slots=True)
class BoundAssignment:
    """A column, or a field of a struct, and its new value.

    ``fields`` are the names that lead from the column to the field, as the column's type has them.
    """

    column: Column
    value: Value
    fields: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The column or field in messages."""
        return ".".join((self.column.name, *self.fields))


@dataclass(frozen=True, slots=True)
class InsertColumns:
    """The columns that an INSERT's values go to.

    Attributes:
        from_source: The table's columns that get the source's columns, in the source's order.
        static: The partition columns with a value in PARTITION (…), and the value's place.
        omitted: The columns that get their default, or NULL.
    """

    from_source: tuple[Column, ...]
    static: tuple[tuple[Column, Span], ...]
    omitted: tuple[Column, ...]


def bind_insert(
    text: str,
    table: Table,
    columns: Sequence[Name] | None,
    partition: Sequence[PartitionItem],
    *,
    alias: str | None = None,
) -> InsertColumns:
    """Resolve an INSERT's column list and PARTITION clause.

    Args:
        text: The user's statement.
        table: The target.
        columns: The column list; None means all columns without a static partition value, in order.
        partition: The PARTITION clause.
        alias: The target's alias, which may stand before a column. Default: the table's name.

    Returns:
        The columns that the source's values go to, the columns with a static partition value, and
        the columns that the INSERT omits (none without a column list).

    Raises:
        AnalysisError: A column does not exist or is named twice (also if PARTITION gives it a
            value), the list names a field of a struct, or PARTITION (…) names only some of the
            partition columns.
    """
    static = bind_partition(text, table, partition)
    bound_names = {column.name for column, _ in static}
    if columns is None:
        remaining_columns = [
            column for column in table.all_columns if column.name not in bound_names
        ]
        return InsertColumns(tuple(remaining_columns), static, ())
    named: list[Column] = []
    for name in columns:
        column, fields = _resolve_column(text, table, alias or table.name.shown, name)
        if fields:
            raise _error(
                text, name.span, NO_FIELD, "42K09",
                f"INSERT names whole columns: '{column.name}' is one, "
                f"'{'.'.join((column.name, *fields))}' is a part of it.",
            )  # fmt: skip
        if column.name in bound_names:
            raise _error(
                text, name.span, "DUPLICATE_ASSIGNMENTS", "42701",
                f"Column '{column.name}' is given twice.",
            )  # fmt: skip
        bound_names.add(column.name)
        named.append(column)
    omitted = tuple(column for column in table.all_columns if column.name not in bound_names)
    return InsertColumns(tuple(named), static, omitted)


def bind_assignments(
    text: str, table: Table, alias: str, assignments: Sequence[Assignment]
) -> tuple[BoundAssignment, ...]:
    """Resolve the columns and fields that SET names, in the order of the assignments.

    Raises:
        AnalysisError: A column or field does not exist or is assigned twice, or a column is
            assigned beside one of its fields.
        UnsupportedError: A field is assigned DEFAULT.
    """
    bound: list[BoundAssignment] = []
    for assignment in assignments:
        target = assignment.target
        column, names = _resolve_column(text, table, alias, target)
        fields = _resolve_fields(text, column, names, target.span)
        new = BoundAssignment(column, assignment.value, fields)
        if fields and isinstance(new.value, Default):
            raise UnsupportedError(
                f"A field has no DEFAULT: '{new.path}' is a part of the column '{column.name}'.",
                text, new.value.span.start, new.value.span.end,
                condition="UNSUPPORTED_FEATURE.DEFAULT_OF_FIELD",
            )  # fmt: skip
        for earlier in bound:
            _need_apart(text, new, earlier, target.span)
        bound.append(new)
    return tuple(bound)


def _need_apart(text: str, new: BoundAssignment, earlier: BoundAssignment, span: Span) -> None:
    """Raise AnalysisError if two assignments give the same column or field a value, or if one
    assigns a field inside what the other assigns; return None otherwise."""
    length = min(len(new.fields), len(earlier.fields))
    if new.column is not earlier.column or new.fields[:length] != earlier.fields[:length]:
        return
    if new.fields == earlier.fields:
        kind = "Field" if new.fields else "Column"
        raise _error(
            text, span, "DUPLICATE_ASSIGNMENTS", "42701", f"{kind} '{new.path}' is assigned twice."
        )
    outer, inner = sorted((new, earlier), key=lambda assignment: len(assignment.fields))
    raise _error(
        text, span, NO_FIELD, "42K09",
        f"Conflicting assignments for '{outer.path}': '{inner.path}', a part of it, is assigned, "
        "too.",
    )  # fmt: skip


def default_sql(column: Column) -> str:
    """Return the SQL of DEFAULT for a column: the column's default in brackets, or NULL."""
    return f"({column.default}\n)" if column.default else "NULL"


def is_default(value: Value) -> bool:
    """Whether a value is the word DEFAULT."""
    return isinstance(value, Default)


def value_span(value: Value) -> Span:
    """Return the place of a value in the user's text."""
    return value.span if isinstance(value, Default) else value


def bind_partition(
    text: str, table: Table, partition: Sequence[PartitionItem], *, is_whole: bool = True
) -> tuple[tuple[Column, Span], ...]:
    """Resolve a PARTITION clause: return the columns that it gives a value, with the places of the
    values, in the clause's order. Columns without a value are checked, but not returned.

    ``is_whole``: a PARTITION clause must name all partition columns; () for no clause passes.

    Raises:
        AnalysisError: A column is no partition column, is named twice, or is missing.
    """
    names = {column.name: column for column in table.partition_columns}
    static: list[tuple[Column, Span]] = []
    clause_names: set[str] = set()
    for item in partition:
        column = names.get(item.name.lower())
        if column is None:
            raise _error(
                text, item.span, "PARTITION_COLUMN_NOT_FOUND", "42703",
                f"'{item.name}' is not a partition column of {table.name}"
                + (f". {names_sentence(item.name, list(names), 'partition columns')}"
                   if names else ", which is not partitioned."),
            )  # fmt: skip
        if column.name in clause_names:
            raise _error(
                text, item.span, "DUPLICATE_KEY", "23505",
                f"Partition column '{column.name}' is named twice.",
            )  # fmt: skip
        clause_names.add(column.name)
        if item.value is not None:
            static.append((column, item.value))
    if partition and is_whole and (missing := [name for name in names if name not in clause_names]):
        raise _error(
            text, partition[0].span, "NEED_PARTITION", "42000",
            f"PARTITION (…) must name every partition column; '{missing[0]}' is missing.",
        )  # fmt: skip
    return tuple(static)


def _resolve_column(
    text: str, table: Table, alias: str, name: Name
) -> tuple[Column, tuple[str, ...]]:
    """Return the column that a name means, and the names of fields behind the column, which are not
    checked. Raise AnalysisError if the table has no such column."""
    column, fields = column_part(table, alias, name)
    if any(column == table_column.name for table_column in table.all_columns):
        return require_column(text, table, Name((column,), name.span)), fields
    raise _no_column_error(text, table, ".".join((column, *fields)), name.span)


def column_part(table: Table, alias: str, name: Name) -> tuple[str, tuple[str, ...]]:
    """Return the part of a name that is a column, in lower case, and the parts behind it as they
    are, its fields.

    As in Spark, ``s.f`` is the column f of a table that is called s. If this table has no column f,
    it is the field f of the column s. If there is no such column at all, the first part behind the
    qualifier counts as the column: no error is raised.
    """
    parts, starts = name.parts, [0]
    if len(parts) > 1 and parts[0].lower() == alias.lower():
        starts.insert(0, 1)
    elif len(parts) > 2 and f"{parts[0]}.{parts[1]}".lower() == str(table.name):
        starts.insert(0, 2)
    columns = {column.name for column in table.all_columns}
    start = next((at for at in starts if parts[at].lower() in columns), starts[0])
    return parts[start].lower(), parts[start + 1 :]


def _resolve_fields(text: str, column: Column, names: Sequence[str], span: Span) -> tuple[str, ...]:
    """Return the names of nested fields as a column's type spells them; () for no names. Raise
    AnalysisError if there is no such field, or no struct."""
    field_names: list[str] = []
    node = parse_type(column.type) if names else HiveType("void")
    for name in names:
        path = ".".join((column.name, *field_names))
        if node.kind != "struct":
            raise _no_struct_error(text, path, node, span)
        field = _resolve_field(text, path, node, name, span)
        field_names.append(field)
        node = node.children[node.names.index(field)]
    return tuple(field_names)


def _resolve_field(text: str, path: str, struct_type: HiveType, name: str, span: Span) -> str:
    """Return a struct's field name as its type spells it: the exact name, or else the only one that
    is the same but for case. Raise AnalysisError if there is none, or several."""
    if name in struct_type.names:
        return name
    similar = [field for field in struct_type.names if field.lower() == name.lower()]
    if len(similar) == 1:
        return similar[0]
    if similar:
        names = ", ".join(f"`{field.replace('`', '``')}`" for field in struct_type.names)
        raise _error(
            text, span, "AMBIGUOUS_REFERENCE_TO_FIELDS", "42000",
            f"'{path}' has {len(similar)} fields '{name}': {names}.",
        )  # fmt: skip
    raise _error(
        text, span, "FIELD_NOT_FOUND", "42704",
        f"'{path}' has no field '{name}'. {names_sentence(name, struct_type.names, 'fields')}",
    )  # fmt: skip


def _no_struct_error(text: str, path: str, value_type: HiveType, span: Span) -> AnalysisError:
    """Return the error for a SET that names a field of a value that is no struct: for an array or a
    map with the condition NO_FIELD and advice, else INVALID_EXTRACT_BASE_FIELD_TYPE."""
    kind = str(value_type).upper()
    if value_type.kind in ("array", "map"):
        return _error(
            text, span, NO_FIELD, "42K09",
            f"SET assigns fields of structs only, and '{path}' is of type {kind}. Assign the whole "
            f"{value_type.kind}.",
        )  # fmt: skip
    return _error(
        text, span, "INVALID_EXTRACT_BASE_FIELD_TYPE", "42000",
        f"'{path}' has no fields: it is of type {kind}.",
    )  # fmt: skip


def _unqualified_parts(table: Table, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a column's name without the table's name before it, which is ``table`` or
    ``database.table``; any other name as it is."""
    if len(parts) > 1 and parts[0].lower() == table.name.shown.lower():
        return parts[1:]
    if len(parts) > 2 and f"{parts[0]}.{parts[1]}".lower() == str(table.name):
        return parts[2:]
    return parts


def require_column(text: str, table: Table, name: Name) -> Column:
    """Return the column of that name, whatever its case; the table's name may stand before it.

    Raises:
        AnalysisError: The table has no such column, or the name goes on with a field.
    """
    parts = _unqualified_parts(table, name.parts)
    for column in table.all_columns:
        if len(parts) == 1 and column.name == parts[0].lower():
            return column
    raise _no_column_error(text, table, ".".join(parts), name.span)


def _no_column_error(text: str, table: Table, name: str, span: Span) -> AnalysisError:
    """Return the UNRESOLVED_COLUMN.WITH_SUGGESTION for a column that a table lacks; the message
    lists the table's columns, of many the nearest."""
    return _error(
        text, span, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703",
        f"{table.name} has no column '{name}'. {names_sentence(name, _column_names(table))}",
    )  # fmt: skip


def _column_names(table: Table) -> list[str]:
    """Return the names of a table's columns, those of partition columns last."""
    return [column.name for column in table.all_columns]


def require_column_of_ddl(text: str, table: Table, name: Name) -> Column:
    """Return the column that a statement of DDL names, whatever its case. A qualifier is not
    removed: ``t.c`` can only be a column that is called ``t.c``.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND: the table has no such column.
    """
    stated = ".".join(name.parts)
    for column in table.all_columns:
        if column.name == stated.lower():
            return column
    columns = names_sentence(stated, _column_names(table))
    message = f"There is no column '{stated}' in {table.name}. {columns}"
    raise _error(text, name.span, "COLUMN_NOT_FOUND", "42703", message)


def _error(text: str, span: Span, condition: str, sqlstate: str, message: str) -> AnalysisError:
    """Return an AnalysisError whose caret is at ``span``."""
    return AnalysisError(
        message, text, span.start, span.end, condition=condition, sqlstate=sqlstate
    )
