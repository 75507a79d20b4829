"""Turns a CREATE TABLE into a ``Table``: checks its columns, and completes its properties.

The caller chooses the location and makes the directory (``tables``, ``places``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from acidsql.acid.layout import is_hidden
from acidsql.acid.table import (
    BUCKETING_VERSION,
    FIXED_PROPERTIES,
    FULL_ACID,
    INSERT_ONLY,
    ORC,
    PARQUET,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    Column,
    SortColumn,
    Table,
    TableName,
)
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import (
    AnalysisError,
    FormatError,
    SqlError,
    UnsupportedError,
)
from acidsql.plan.rows.event_query import Fields
from acidsql.plan.rows.evolution import check_fields, check_name, new_column
from acidsql.plan.values.assignment import can_assign
from acidsql.plan.values.struct_fields import FieldMatching, FieldRules
from acidsql.sql.parsed.statements import ColumnDef, CreateTable
from acidsql.sql.text.tokens import Span
from acidsql.statements.ddl.table_properties import (
    check_column_lists,
    check_file_properties,
    check_kind,
    check_own_names,
)
from acidsql.suggestions import names_sentence

# Returns the type of an expression, by Spark's analysis.
TypeOf = Callable[[Span], HiveType]
BUCKETS_MAX = 4096  # 12 bits of the bucket property


def define_table(
    statement: CreateTable,
    text: str,
    name: TableName,
    location: str,
    *,
    type_of: TypeOf,
    fields: Fields = (),
) -> Table:
    """Return the table that a CREATE TABLE with columns, or a CREATE TABLE … AS SELECT, defines,
    without its constraints. Nothing is created.

    Args:
        statement: The statement.
        text: The statement's text.
        name: The new table's name.
        location: The new table's directory.
        type_of: Asks Spark for the type of a DEFAULT.
        fields: The columns of the query after AS SELECT; none without a query. They are the table's
            columns, unless the statement has a list of them.

    Raises:
        AnalysisError: A column is defined twice, is named but not defined, or has an unknown type
            or an empty name; there is none; a DEFAULT does not fit; or a property is wrong.
        UnsupportedError: SORTED BY of a full-ACID table, too many buckets, a column with a reserved
            name, or one that cannot be in PARTITIONED BY, CLUSTERED BY or SORTED BY.
    """
    _check_layout(statement, text)
    columns = tuple(bind_column(column, text, type_of) for column in statement.columns)
    partitions = tuple(bind_column(column, text, type_of) for column in statement.partitioned_by)
    if statement.query is not None and not columns:
        place = statement.query.span
        columns = tuple(new_column(name, kind, text, place) for name, kind in fields)
    if statement.partition_names:
        columns, partitions = _split_partition_columns(columns, statement, text)
    _check_names(columns + partitions, statement, text)
    _check_partition_columns(partitions, statement, text)
    check_own_names(None, statement, text)
    check_file_properties(dict(statement.properties), columns, statement, text)
    check_column_lists(dict(statement.properties), columns + partitions, statement, text)
    return Table(
        name,
        location,
        columns,
        partitions,
        _bucket_columns(columns, statement, text),
        statement.num_buckets,
        _properties(statement, text),
        statement.comment,
        sort_columns=_sort_columns(columns, statement, text),
        file_format=(statement.stored_as or ORC).lower(),
    )


def bind_column(column: ColumnDef, text: str, type_of: TypeOf) -> Column:
    """Return the column that a definition in CREATE TABLE or ADD COLUMNS defines, its name in lower
    case.

    Raises:
        AnalysisError: The type is unknown or not supported, or has a field that is not allowed; or
            the DEFAULT does not fit the type.
    """
    try:
        kind = parse_type(column.type.slice(text))
    except FormatError as error:
        end = "" if error.message.endswith("?") else "."
        raise AnalysisError(
            f"The type of column '{column.name}' cannot be used: {error.message}{end}",
            text, column.type.start, column.type.end,
            condition="UNSUPPORTED_DATATYPE", sqlstate="0A000",
        ) from None  # fmt: skip
    check_fields(column.name.lower(), kind, text, column.type)
    default = _default_text(column, kind, text, type_of)
    return Column(column.name.lower(), str(kind), column.nullable, default, column.comment)


def bind_default(old: Column, column: ColumnDef, text: str, type_of: TypeOf) -> Column:
    """Return the column ``old`` with the DEFAULT of the definition ``column``, or without a DEFAULT
    if the definition has none. Raise AnalysisError if the DEFAULT does not fit the type of
    ``old``."""
    return replace(old, default=_default_text(column, parse_type(old.type), text, type_of))


def _default_text(
    column: ColumnDef, column_type: HiveType, text: str, type_of: TypeOf
) -> str | None:
    """Return the SQL of a DEFAULT as the user wrote it; None without a DEFAULT. Raise AnalysisError
    if a value of its type cannot be stored in the column."""
    if column.default is None:
        return None
    default_type = type_of(column.default)
    if not can_assign(default_type, column_type, field_rules=FieldRules(FieldMatching.BY_POSITION)):
        raise AnalysisError(
            f"The DEFAULT of column '{column.name}' is of type {default_type}, the column of "
            f"{column_type}.",
            text, column.default.start, column.default.end,
            condition="INVALID_DEFAULT_VALUE.DATA_TYPE", sqlstate="42623",
        )  # fmt: skip
    return column.default.slice(text)


def define_table_like(
    source: Table, statement: CreateTable, text: str, name: TableName, location: str
) -> Table:
    """Return the table that ``CREATE TABLE … LIKE`` defines: with the source's columns (also their
    enforced NOT NULL and DEFAULT), layout and comment, but without its constraints. The properties
    and the file format are the statement's, before the source's. Nothing is created.

    Raises:
        AnalysisError: A property is wrong: of an unknown kind, misspelt, or with an impossible
            value.
        UnsupportedError: The new table would be full-ACID, and sorted or stored as Parquet.
    """
    properties = _properties(statement, text, source.properties)
    check_own_names(source, statement, text)
    check_file_properties(properties, source.columns, statement, text)
    check_column_lists(dict(statement.properties), source.all_columns, statement, text)
    new_table = replace(
        source,
        name=name,
        location=location,
        properties=properties,
        constraints=(),
        identity="",
        file_format=(statement.stored_as or source.file_format).lower(),
    )
    if new_table.file_format == PARQUET and not new_table.is_insert_only:
        raise _unsupported_error(
            "A full-ACID table is stored as ORC: add STORED AS ORC to the statement.",
            text, statement.name.span, "FILE_FORMAT",
        )  # fmt: skip
    if new_table.sort_columns and not new_table.is_insert_only:
        raise _sorted_buckets_error(text, statement.name.span)
    return new_table


def _check_layout(statement: CreateTable, text: str) -> None:
    """Raise UnsupportedError for SORTED BY of a full-ACID table, or more than 4096 buckets;
    AnalysisError for an unknown kind of table."""
    is_insert_only = _properties(statement, text)[TRANSACTIONAL_PROPERTIES] == INSERT_ONLY
    if statement.sorted_by and not is_insert_only:
        first, last = statement.sorted_by[0].span, statement.sorted_by[-1].span
        raise _sorted_buckets_error(text, Span(first.start, last.end))
    if statement.num_buckets > BUCKETS_MAX:
        raise _unsupported_error(
            f"A table has at most {BUCKETS_MAX} buckets.", text, statement.name.span, "BUCKETS"
        )


def _split_partition_columns(
    columns: Sequence[Column], statement: CreateTable, text: str
) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Take the columns that ``PARTITIONED BY (a) … AS SELECT`` names out of the query's columns:
    return the data columns, in the query's order, and the partition columns, in the clause's order.
    Raise AnalysisError if the query has no column ``a``."""
    by_name = {column.name: column for column in columns}
    partitions = []
    for name in statement.partition_names:
        column = by_name.get(name.parts[-1].lower())
        if column is None:
            raise _missing_column_error(name.parts[-1], list(by_name), text, name.span)
        partitions.append(column)
    return tuple(c for c in columns if c not in partitions), tuple(partitions)


def _check_names(columns: Sequence[Column], statement: CreateTable, text: str) -> None:
    """Raise AnalysisError if there is no column, a name is empty, or a name is there twice;
    UnsupportedError if a name is reserved. The names are in lower case."""
    seen_names: set[str] = set()
    for column in columns:
        if column.name in seen_names:
            raise AnalysisError(
                f"Column '{column.name}' is defined twice; the case of letters does not matter.",
                text, statement.name.span.start, statement.name.span.end,
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711",
            )  # fmt: skip
        check_name(column, text, statement.name.span)
        seen_names.add(column.name)
    if not columns:
        raise AnalysisError(
            "A table needs a column.", text, statement.name.span.start, statement.name.span.end,
            condition="NO_COLUMNS", sqlstate="42601",
        )  # fmt: skip


def _check_partition_columns(columns: Sequence[Column], statement: CreateTable, text: str) -> None:
    """Raise UnsupportedError for a partition column that is BINARY or nested, or whose directories
    readers would pass over because of its name."""
    for column in columns:
        if is_hidden(column.name):
            raise _unsupported_error(
                f"A partition column cannot be called '{column.name}': readers pass over the "
                f"directories '{column.name}=…', because of their first character.",
                text, statement.name.span, "PARTITION_COLUMN_NAME",
            )  # fmt: skip
        kind = parse_type(column.type)
        if kind.children or kind.kind == "binary":
            raise _unsupported_error(
                f"A partition column cannot be of type {column.type.upper()}.",
                text, statement.name.span, "PARTITION_COLUMN_TYPE",
            )  # fmt: skip


def _bucket_columns(
    columns: Sequence[Column], statement: CreateTable, text: str
) -> tuple[str, ...]:
    """Return the names of the CLUSTERED BY columns, in lower case.

    Raises:
        AnalysisError: There is no such column.
        UnsupportedError: A column is BINARY.
    """
    type_by_name = {column.name: parse_type(column.type) for column in columns}
    bucket_columns = []
    for name in statement.bucket_columns:
        column = name.parts[-1].lower()
        if column not in type_by_name:
            raise _missing_column_error(name.parts[-1], list(type_by_name), text, name.span)
        if type_by_name[column].kind == "binary":
            raise _unsupported_error(
                "A table cannot be CLUSTERED BY a BINARY column: Hive's hash of it is not defined.",
                text, name.span, "BUCKET_COLUMN_TYPE",
            )  # fmt: skip
        bucket_columns.append(column)
    return tuple(bucket_columns)


def _sort_columns(
    columns: Sequence[Column], statement: CreateTable, text: str
) -> tuple[SortColumn, ...]:
    """Return the SORTED BY columns, their names in lower case.

    Raises:
        AnalysisError: There is no such column.
        UnsupportedError: A column has a nested type.
    """
    type_by_name = {column.name: parse_type(column.type) for column in columns}
    sort_columns = []
    for by in statement.sorted_by:
        column = by.name.parts[-1].lower()
        if column not in type_by_name:
            raise _missing_column_error(by.name.parts[-1], list(type_by_name), text, by.name.span)
        if type_by_name[column].children:
            raise _unsupported_error(
                f"Rows cannot be SORTED BY a column of type {type_by_name[column]}.",
                text, by.name.span, "SORT_COLUMN_TYPE",
            )  # fmt: skip
        sort_columns.append(SortColumn(column, by.descending))
    return tuple(sort_columns)


def _properties(
    statement: CreateTable, text: str, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return a new table's TBLPROPERTIES: the statement's own, before the inherited ones, before
    the defaults (full-ACID); "transactional" is always "true". The keys that fix the table's kind
    are in lower case. Raise AnalysisError for an unknown kind."""
    stated = {
        key.lower() if key.lower() in FIXED_PROPERTIES else key: value
        for key, value in statement.properties
    }
    kind = stated.get(TRANSACTIONAL_PROPERTIES, "").lower()
    if TRANSACTIONAL_PROPERTIES in stated:
        check_kind(kind, text, statement.name.span)
        stated[TRANSACTIONAL_PROPERTIES] = kind
    return {
        TRANSACTIONAL_PROPERTIES: FULL_ACID,
        BUCKETING_VERSION: "2",
        **(inherited or {}),
        **stated,
        TRANSACTIONAL: "true",
    }


def _sorted_buckets_error(text: str, place: Span) -> UnsupportedError:
    """Return the error of SORTED BY for a full-ACID table."""
    return _unsupported_error(
        "A full-ACID table cannot be SORTED BY (Hive 10298): its files are sorted by row id. An "
        f"insert-only table can: TBLPROPERTIES ('{TRANSACTIONAL_PROPERTIES}'='{INSERT_ONLY}').",
        text, place, "SORTED_BUCKETS",
    )  # fmt: skip


def _missing_column_error(name: str, columns: Sequence[str], text: str, span: Span) -> SqlError:
    """Return the error of a clause of CREATE TABLE that names a column which is not among the
    table's columns."""
    return AnalysisError(
        f"There is no column '{name}'. {names_sentence(name, columns, owner='the table')}",
        text, span.start, span.end,
        condition="COLUMN_NOT_FOUND", sqlstate="42703",
    )  # fmt: skip


def _unsupported_error(message: str, text: str, span: Span, feature: str) -> UnsupportedError:
    return UnsupportedError(
        message, text, span.start, span.end, condition=f"UNSUPPORTED_FEATURE.{feature}"
    )
