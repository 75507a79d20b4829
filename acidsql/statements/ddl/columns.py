"""Computes the new columns of a table from ALTER TABLE … COLUMNS.

These statements change only the catalog, and never a file: readers match the columns of old files
by position, as Hive 4 does. A change after which old files would show wrong values is refused, even
if Hive allows the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from acidsql.acid.table import ORC, PARQUET, Column, SortColumn, Table
from acidsql.acid.values.evolution import TEXTS, adds_fields, can_change, can_widen, keeps_bucket
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.plan.rows.evolution import check_name
from acidsql.plan.values.checks import constraints_that_mention
from acidsql.sql.parsed.statements import (
    AddColumns,
    AddFilledColumns,
    ChangeColumns,
    ColumnChange,
    ColumnDef,
    ReplaceColumns,
)
from acidsql.sql.text.tokens import Span, TokenKind, tokenize
from acidsql.statements.ddl.column_references import (
    NewName,
    quoted_if_needed,
    reason_to_keep_name,
    rename_error,
    renamed_properties,
    renamed_sort_columns,
)
from acidsql.statements.ddl.create import TypeOf, bind_column, bind_default
from acidsql.storage.columns import quote
from acidsql.suggestions import names_sentence

_CONDITION = "NOT_SUPPORTED_CHANGE_COLUMN"


@dataclass(frozen=True, slots=True)
class AlteredColumns:
    """The new columns of a table, and all references to its columns by their new names.

    Attributes:
        columns: The data columns.
        bucket_columns: The columns of CLUSTERED BY, by their new names.
        sort_columns: The columns of SORTED BY, by their new names.
        newly_required: The old columns that become NOT NULL.
        properties: The table properties that name columns, with the new names.
        new_names: The columns that are renamed.
    """

    columns: tuple[Column, ...]
    bucket_columns: tuple[str, ...]
    sort_columns: tuple[SortColumn, ...]
    newly_required: tuple[Column, ...]
    properties: dict[str, str]
    new_names: tuple[NewName, ...]

    @property
    def names(self) -> dict[str, str]:
        """The new name of each renamed column, by its old name."""
        return {name.old: name.new for name in self.new_names}


def altered_columns(
    table: Table, statement: ChangeColumns | ReplaceColumns, text: str, type_of: TypeOf
) -> AlteredColumns:
    """Return the columns that a statement gives a table, and the references to them by their new
    names. Nothing is changed. Only the text and the table are read, no rows; views and other tables
    are not asked.

    Raises:
        AnalysisError: A column does not exist, or exists already; or a type is unknown.
        UnsupportedError: A partition column is to change; a column is dropped or moved, or a new
            one is NOT NULL; with a new type, old files would show wrong values, or a bucket, a sort
            order, a constraint, a DEFAULT or NOT NULL may break; a column of a Parquet table gets
            another name or type; or the table itself keeps a column from its new name.
    """
    if isinstance(statement, ChangeColumns):
        columns = list(table.columns)
        for change in statement.changes:
            position = _column_position(table, columns, change, text)
            columns[position] = _changed_column(table, columns[position], change, text, type_of)
            _refuse_duplicate_name(table, columns, position, (change.new_name or change).span, text)
    else:
        columns = _replaced_columns(table, statement, text, type_of)
    if table.file_format == PARQUET:
        _refuse_parquet_changes(table, columns, statement, text)
    # A column keeps its position, so the position tells a column's old and new name.
    pairs = [*zip(table.columns, columns, strict=False)]
    new_names = tuple(
        NewName(old.name, new.name, _rename_span(statement, position))
        for position, (old, new) in enumerate(pairs)
        if old.name != new.name
    )
    for name in new_names:
        if reason := reason_to_keep_name(table, name.old, name.new):
            raise rename_error(name, reason, text)
    names = {name.old: name.new for name in new_names}
    return AlteredColumns(
        tuple(columns),
        tuple(names.get(name, name) for name in table.bucket_columns),
        renamed_sort_columns(table, names),
        tuple(old for old, new in pairs if old.nullable and not new.nullable),
        renamed_properties(table, names),
        new_names,
    )


def _rename_span(statement: ChangeColumns | ReplaceColumns, position: int) -> Span:
    """Return the span in the statement that names the renamed column. ``position``: its position
    among the table's columns."""
    if isinstance(statement, ReplaceColumns):
        return statement.columns[position].span
    return next(change.column.span for change in statement.changes if change.new_name)


def added_columns(table: Table, statement: AddColumns, text: str, type_of: TypeOf) -> list[Column]:
    """Return the columns that ADD COLUMNS would add, without the old ones. Nothing is changed.

    Raises:
        AnalysisError: The table has a column of this name already; or a type is unknown.
        UnsupportedError: A name is reserved; or a column is NOT NULL, without WITH VALUES.
    """
    is_filled = isinstance(statement, AddFilledColumns)
    columns = list(table.columns)
    for definition in statement.columns:
        columns.append(bind_column(definition, text, type_of))
        check_name(columns[-1], text, definition.span)
        _refuse_duplicate_name(table, columns, len(columns) - 1, definition.span, text)
        if not columns[-1].nullable and not is_filled:
            raise _not_null_error(columns[-1], text, definition.span)
    return columns[len(table.columns) :]


def added_columns_notes(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the notes in the receipt of ADD COLUMNS: one that old rows show NULL in the new
    columns that have a DEFAULT other than NULL; () if there are no such columns."""
    filled = [quoted_if_needed(column.name) for column in columns if has_default(column)]
    if not filled:
        return ()
    sets = ", ".join(f"{name} = DEFAULT" for name in filled)
    return (
        f"rows that are there show NULL in {', '.join(filled)}: UPDATE … SET {sets} fills them "
        "(so does ADD COLUMNS … WITH VALUES, in the same transaction)",
    )


def has_default(column: Column) -> bool:
    """Whether a column has a DEFAULT other than NULL."""
    return (column.default or "NULL").strip().upper() != "NULL"


# ── CHANGE, RENAME COLUMN, ALTER COLUMN ──────────────────────────────────────────────────────


def _column_position(
    table: Table, columns: Sequence[Column], change: ColumnChange, text: str
) -> int:
    """Return the position of the column that a change names.

    Raises:
        UnsupportedError: It is a partition column.
        AnalysisError: There is no such column.
    """
    name, span = change.column.parts[-1].lower(), change.column.span
    for position, column in enumerate(columns):
        if column.name == name:
            return position
    if any(column.name == name for column in table.partition_columns):
        raise _change_error(
            f"The partition column '{name}' cannot be changed: directories are named by it.",
            text,
            span,
        )
    names = names_sentence(name, [column.name for column in columns])
    raise AnalysisError(
        f"There is no column '{change.column.parts[-1]}' in {table.name} (Hive 10002). {names}",
        text, span.start, span.end, condition="COLUMN_NOT_FOUND", sqlstate="42703",
    )  # fmt: skip


def _changed_column(
    table: Table, old: Column, change: ColumnChange, text: str, type_of: TypeOf
) -> Column:
    """Return a column as a change makes it: its name in lower case, type, comment, DEFAULT and
    nullability. What the change does not state stays as it is.

    Raises:
        AnalysisError: The type is unknown, or the DEFAULT does not fit it.
        UnsupportedError: The column cannot have this type or name.
    """
    name = old.name if change.new_name is None else change.new_name.parts[-1]
    new = old
    if change.type is not None or change.default is not None:
        type_span = change.type or change.span
        definition = ColumnDef(name, type_span, True, change.default, None, change.span)
        new = _redefined_column(old, definition, change.type is not None, text, type_of)
    new = replace(
        new,
        name=name.lower(),
        comment=old.comment if change.comment is None else change.comment,
        nullable=(old.nullable or change.drops_not_null) and not change.must_not_be_null,
        default=None if change.drops_default else new.default,
    )
    _check_type_change(table, old, new, change.type or change.span, text)
    if new.name != old.name:
        check_name(new, text, change.new_name.span if change.new_name else change.span)
    return new


def _redefined_column(
    old: Column, definition: ColumnDef, has_type: bool, text: str, type_of: TypeOf
) -> Column:
    """Return the old column with the DEFAULT of a definition, if it has one, and with its type if
    ``has_type``. Name, comment and nullability stay the old ones."""
    if has_type:
        bound = bind_column(definition, text, type_of)
    else:
        bound = bind_default(old, definition, text, type_of)
    return replace(old, type=bound.type, default=bound.default or old.default)


# ── REPLACE COLUMNS ──────────────────────────────────────────────────────────────────────────


def _replaced_columns(
    table: Table, statement: ReplaceColumns, text: str, type_of: TypeOf
) -> list[Column]:
    """Return all data columns of a table after REPLACE COLUMNS. As in Hive, the old columns keep
    their positions, and new columns may follow. NOT NULL of an old column stays, and so does its
    DEFAULT if the statement gives it none; its comment does not.

    Raises:
        AnalysisError: A type is unknown, or a name is there twice.
        UnsupportedError: A column is dropped, moved, or cannot have its new type, or a new one is
            NOT NULL.
    """
    definitions = statement.columns
    if len(definitions) < len(table.columns):
        raise _change_error(
            f"REPLACE COLUMNS cannot drop columns (Hive 10313): {table.name} has "
            f"{len(table.columns)}, {len(definitions)} are given. Files hold columns by position; "
            "use CREATE TABLE … AS SELECT the columns to keep.",
            text,
            Span(definitions[0].span.start, definitions[-1].span.end),
        )
    old_names = {column.name for column in table.columns}
    columns: list[Column] = []
    for position, definition in enumerate(definitions):
        new = bind_column(definition, text, type_of)
        check_name(new, text, definition.span)
        if position >= len(table.columns):
            if not new.nullable:
                raise _not_null_error(new, text, definition.span)
        else:
            old = table.columns[position]
            if new.name != old.name and new.name in old_names:
                raise _change_error(
                    f"REPLACE COLUMNS cannot move column '{new.name}' (Hive 10311): files hold "
                    f"columns by position, and '{old.name}' has this position.",
                    text,
                    definition.span,
                )
            new = replace(
                new, nullable=old.nullable and new.nullable, default=new.default or old.default
            )
            _check_type_change(table, old, new, definition.type, text)
        columns.append(new)
        _refuse_duplicate_name(table, columns, position, definition.span, text)
    return columns


# ── checks of all statements ─────────────────────────────────────────────────────────────────


def _check_type_change(table: Table, old: Column, new: Column, place: Span, text: str) -> None:
    """Raise UnsupportedError if a column cannot get its new type: old files would show other
    values, rows would belong to other buckets or sort otherwise, or a constraint, a DEFAULT or NOT
    NULL may break. The same type is never refused."""
    before, after = parse_type(old.type), parse_type(new.type)
    if before == after:
        return
    change = f"from {old.type.upper()} to {new.type.upper()}"
    if not can_change(before, after):
        raise _change_error(
            f"Column '{old.name}' cannot be changed {change} (Hive 10312): not every value in the "
            "existing files would fit, or be read alike by all readers. Add a column and fill it "
            "by UPDATE.",
            text,
            place,
        )
    if old.name in table.bucket_columns and not keeps_bucket(before, after):
        raise _change_error(
            f"The table is CLUSTERED BY '{old.name}': as {new.type.upper()} its values would "
            "belong to other buckets.",
            text,
            place,
        )
    if old.name in [by.name for by in table.sort_columns] and not can_widen(before, after):
        raise _change_error(
            f"The table is SORTED BY '{old.name}': as {new.type.upper()} its values would sort "
            "otherwise.",
            text,
            place,
        )
    is_same = can_widen(before, after) or adds_fields(before, after)
    if not is_same and (reason := _reason_to_keep_type(table, old, new)):
        raise _change_error(
            f"Column '{old.name}' cannot be changed {change}: {reason}", text, place
        )


def _reason_to_keep_type(table: Table, old: Column, new: Column) -> str | None:
    """Return why a column must keep its type, although readers could cast the old values, for a
    message: not ORC, a constraint, a DEFAULT that does not fit, or NOT NULL while values may become
    NULL. None: no reason."""
    before, after, name = parse_type(old.type), parse_type(new.type), quote(old.name)
    if table.file_format != ORC:
        return "only ORC files are read as another type. Use CREATE TABLE … AS SELECT."
    if names := constraints_that_mention(table, old.name):
        return (
            f"the constraint {names[0]} names it, and values may change. ALTER TABLE … DROP "
            f"CONSTRAINT {quote(names[0])}, and add it again afterwards."
        )
    becomes_number = before.kind in TEXTS and after.kind not in TEXTS
    default = new.default if (new.default or "NULL").upper() != "NULL" else None
    if becomes_number and default is not None and default == old.default:
        return f"its DEFAULT is a text. First ALTER TABLE … ALTER COLUMN {name} DROP DEFAULT."
    if default is not None and _is_too_long(default, after):
        drop = f"ALTER TABLE … ALTER COLUMN {name} DROP DEFAULT"
        return f"its DEFAULT {default} is longer. First {drop}."
    may_be_null = becomes_number or before.kind in ("float", "double")
    if may_be_null and not (old.nullable and new.nullable):
        return (
            "it is NOT NULL, and NaN and texts that are no numbers become NULL. First ALTER TABLE "
            f"… ALTER COLUMN {name} DROP NOT NULL; SET NOT NULL afterwards looks at the rows."
        )
    return None


def _is_too_long(default_sql: str, column_type: HiveType) -> bool:
    """Whether a text literal is too long for a CHAR or VARCHAR. Spaces at its end do not count.
    False for other types, and for an expression."""
    tokens = tokenize(default_sql)
    if column_type.kind not in ("char", "varchar") or [token.kind for token in tokens] != [
        TokenKind.STRING
    ]:
        return False
    return len(tokens[0].value.rstrip(" ")) > column_type.parameters[0]


def _refuse_parquet_changes(
    table: Table, columns: Sequence[Column], statement: ChangeColumns | ReplaceColumns, text: str
) -> None:
    """Raise UnsupportedError if an existing column of a Parquet table gets another name or type.
    Columns may be added.

    Readers match the columns of Parquet by name, and not every reader converts types.
    """
    if isinstance(statement, ChangeColumns):
        start, end = statement.changes[0].span.start, statement.changes[-1].span.end
    else:
        start, end = statement.columns[0].span.start, statement.columns[-1].span.end
    for old, new in zip(table.columns, columns, strict=False):
        change = "a new name" if old.name != new.name else "another type"
        if (old.name, old.type) != (new.name, new.type):
            raise _change_error(
                f"Column '{old.name}' cannot get {change}: {table.name} is STORED AS PARQUET, "
                "whose columns are matched by name and read in the type that they were written in. "
                "Add a column, or use CREATE TABLE … AS SELECT.",
                text,
                Span(start, end),
            )


def _refuse_duplicate_name(
    table: Table, columns: Sequence[Column], position: int, span: Span, text: str
) -> None:
    """Raise AnalysisError if the column at ``position`` has the name of another column, or of a
    partition column."""
    other_names = [column.name for index, column in enumerate(columns) if index != position]
    if columns[position].name in (
        *other_names,
        *(column.name for column in table.partition_columns),
    ):
        raise AnalysisError(
            f"{table.name} has a column '{columns[position].name}' already (Hive 10036).",
            text, span.start, span.end, condition="COLUMN_ALREADY_EXISTS", sqlstate="42711",
        )  # fmt: skip


def _not_null_error(column: Column, text: str, span: Span) -> UnsupportedError:
    """Return the error of a new column that is NOT NULL."""
    return UnsupportedError(
        f"Column '{column.name}' cannot be NOT NULL: existing rows have no value for it.",
        text, span.start, span.end,
    )  # fmt: skip


def _change_error(message: str, text: str, span: Span) -> UnsupportedError:
    return UnsupportedError(message, text, span.start, span.end, condition=_CONDITION)
