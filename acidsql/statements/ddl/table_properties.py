"""ALTER TABLE … [UN]SET TBLPROPERTIES: which properties may change, and the effect of a change.

As in Hive, a full-ACID table stays full-ACID. An insert-only table may become full-ACID: then its
plain files are read as the files of LOAD DATA are, and their rows have row ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acidsql.acid.properties import need_known_name
from acidsql.acid.table import (
    FIXED_PROPERTIES,
    FULL_ACID,
    ORC,
    STATISTICS,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    Column,
    Table,
)
from acidsql.compaction.decision import apply_thresholds
from acidsql.compaction.kept_history import with_history_properties
from acidsql.errors import AnalysisError, SettingError, UnsupportedError, suggestion
from acidsql.metastore.foreign import ForeignTable
from acidsql.plan.cdc.state import tombstone_retention
from acidsql.settings import Settings
from acidsql.sql.parsed.statements import (
    ConvertTable,
    CreateTable,
    SetTableProperties,
    UnsetTableProperties,
)
from acidsql.sql.text.tokens import Span
from acidsql.statements.ddl import column_references
from acidsql.storage.orc.options import OrcOptions, check_bloom_filter_columns
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables.parquet import compression_of

TRANSACTIONAL_KINDS = (FULL_ACID, "insert_only")
_EXTERNAL = "external"  # Hive's property of a table that is not managed


@dataclass(frozen=True, slots=True)
class PropertyChanges:
    """The properties that a SET TBLPROPERTIES sets.

    Attributes:
        values: The properties.
        becomes_full_acid: Whether an insert-only table becomes full-ACID.
    """

    values: Mapping[str, str]
    becomes_full_acid: bool = False


def property_changes(table: Table, statement: SetTableProperties, text: str) -> PropertyChanges:
    """Return the properties that SET TBLPROPERTIES states, as they are to be set, and whether the
    table becomes full-ACID; check that the table may have them. Keys that describe the files, and
    the value of ``transactional_properties``, are in lower case; ``transactional`` is left out.
    Nothing is changed, and no file is read.

    Raises:
        AnalysisError: A property has an unknown or impossible value, or a misspelt name.
        UnsupportedError: The table would not be transactional any more; a property that describes
            its files would change, but for insert-only to full-ACID; or a full-ACID table would be
            sorted, or not ORC.
    """
    span = statement.place
    values = {
        key.lower() if key.lower() in FIXED_PROPERTIES else key: value
        for key, value in statement.properties
    }
    if values.get(TRANSACTIONAL, "true").lower() != "true":
        raise _refusal_error("A transactional table stays transactional (as in Hive).", text, span)
    values.pop(TRANSACTIONAL, None)
    kind = values.get(TRANSACTIONAL_PROPERTIES, "").lower()
    if TRANSACTIONAL_PROPERTIES in values:
        check_kind(kind, text, span)
        values[TRANSACTIONAL_PROPERTIES] = kind
    current_properties = {TRANSACTIONAL_PROPERTIES: FULL_ACID, **table.properties}
    changed_fixed_keys = [
        key
        for key in FIXED_PROPERTIES
        if values.get(key, current_properties.get(key)) != current_properties.get(key)
    ]
    becomes_full_acid = changed_fixed_keys == [TRANSACTIONAL_PROPERTIES] and table.is_insert_only
    if changed_fixed_keys and not becomes_full_acid:
        raise _refusal_error(
            f"'{changed_fixed_keys[0]}' cannot be changed: it describes the table's files.",
            text,
            span,
        )
    if becomes_full_acid and table.sort_columns:
        raise _refusal_error(
            "This table is SORTED BY, and a full-ACID table cannot be (Hive 10298).", text, span
        )
    if becomes_full_acid and table.file_format != ORC:
        raise _refusal_error(
            f"A full-ACID table is stored as ORC, this one as {table.file_format.upper()}. CREATE "
            f"TABLE … AS SELECT * FROM {table.name} copies its rows into one.", text, span
        )  # fmt: skip
    check_own_names(table, statement, text)
    check_file_properties({**table.properties, **values}, table.columns, statement, text)
    check_column_lists(values, table.all_columns, statement, text)
    return PropertyChanges(values, becomes_full_acid)


def require_convertible(
    foreign_table: ForeignTable | None, is_acid: bool, statement: ConvertTable, text: str
) -> ForeignTable:
    """Return ``foreign_table``, the plain table that a statement converts into an ACID table, if it
    can become an ACID table in place; otherwise raise an error. Nothing is changed.

    Args:
        foreign_table: The metastore's plain table of this name; None: there is none.
        is_acid: The name is that of an ACID table.
        statement: The statement.
        text: The statement's text.

    Raises:
        UnsupportedError: There is no such plain table, it is an ACID table already, or it cannot
            become one in place: other properties are set too, or it would be insert-only, is
            EXTERNAL, not ORC, or sorted.
    """
    name, span = ".".join(statement.name.parts), statement.name.span
    if is_acid:
        raise _refusal_error(
            f"'{name}' is an ACID table already. TBLPROPERTIES ('{TRANSACTIONAL_PROPERTIES}'="
            f"'{FULL_ACID}') makes an insert-only table full-ACID.", text, span
        )  # fmt: skip
    if foreign_table is None:
        raise _refusal_error(
            f"'{name}' is not an ACID table and cannot become one in place: CREATE TABLE … "
            "(columns) LOCATION '…' makes an ACID table of a directory of ORC files.", text, span
        )  # fmt: skip
    table, properties = (
        foreign_table.need_table(),
        {key.lower(): value.lower() for key, value in statement.properties},
    )
    for is_obstacle, reason in _obstacles(foreign_table, table, properties):
        if is_obstacle:
            raise _refusal_error(
                f"{table.name} cannot become a full-ACID table: {reason}.", text, span
            )
    return foreign_table


def _obstacles(
    foreign_table: ForeignTable, table: Table, properties: Mapping[str, str]
) -> Iterator[tuple[bool, str]]:
    """Yield each possible obstacle to a conversion, lazily, as a pair: whether this table has it,
    and the reason for a message. Obstacles are other properties in the statement, insert-only,
    EXTERNAL, not ORC, and SORTED BY.

    Args:
        foreign_table: The plain table in the metastore.
        table: The same table, as acidsql sees it.
        properties: The properties of the statement, in lower case.
    """
    other_keys = properties.keys() - {TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, _EXTERNAL}
    yield bool(other_keys), f"set '{min(other_keys, default='')}' afterwards, by another statement"
    is_full_acid = properties.get(TRANSACTIONAL_PROPERTIES, FULL_ACID) == FULL_ACID
    reason = (
        "an insert-only table would not see its files. CREATE TABLE … AS SELECT copies the rows"
    )
    yield not is_full_acid, reason
    is_managed = (
        properties.get(_EXTERNAL, "true" if foreign_table.is_external else "false") == "false"
    )
    reason = "it is EXTERNAL, and DROP TABLE deletes the files of an ACID table. If you want that: "
    yield not is_managed, f"{reason}SET TBLPROPERTIES ('EXTERNAL'='FALSE', 'transactional'='true')"
    reason = f"its files are {table.file_format.upper()}, and those of a full-ACID table are ORC. "
    yield table.file_format != ORC, f"{reason}CREATE TABLE … AS SELECT copies the rows"
    reason = "it is SORTED BY, and a full-ACID table cannot be (Hive 10298)"
    yield bool(table.sort_columns), reason


def check_unset(table: Table, statement: UnsetTableProperties, text: str) -> None:
    """Check that the table may lose the properties that UNSET TBLPROPERTIES names.

    Raises:
        AnalysisError: The table has no such property, and the statement has no IF EXISTS. The case
            of letters matters.
        UnsupportedError: The property describes the table's files, so the table needs it. The case
            of letters does not matter.
    """
    for key in statement.keys:
        if key.lower() in FIXED_PROPERTIES:
            raise _refusal_error(
                f"'{key}' cannot be unset: it describes the table's files.", text, statement.place
            )
        if key not in table.properties and not statement.if_exists:
            hint = suggestion(key, table.properties)
            raise AnalysisError(
                f"{table.name} has no property '{key}' (UNSET TBLPROPERTIES IF EXISTS allows "
                f"that).{hint}", text, statement.place.start, statement.place.end,
                condition="UNSET_NONEXISTENT_PROPERTIES", sqlstate="42K0J",
            )  # fmt: skip


def check_file_properties(
    properties: Mapping[str, str],
    columns: Sequence[Column],
    statement: CreateTable | SetTableProperties,
    text: str,
) -> None:
    """Raise AnalysisError unless files can be written with the ``orc.…`` and ``parquet.…``
    properties.

    The statement's properties for compactions, history and AUTO CDC are checked, too. Otherwise the
    initiator or the cleaner would pass the table by, and nobody would notice.

    Args:
        properties: All properties that the table will have.
        columns: The table's data columns.
        statement: The statement with the properties.
        text: The statement's text.

    Raises:
        AnalysisError: A property is misspelt or has an impossible value.
    """
    _check_settings(statement, text)
    try:
        compression_of(properties)
        options = OrcOptions.from_properties(properties)
        row = RowSchema.from_fields((column.name, column.type) for column in columns)
        check_bloom_filter_columns(options, row.hive)
    except SettingError as error:
        raise _error_at_key(error, error.parameters["key"], statement, text) from None


def check_column_lists(
    properties: Mapping[str, str],
    columns: Sequence[Column],
    statement: CreateTable | SetTableProperties,
    text: str,
) -> None:
    """Raise AnalysisError unless the properties ``acidsql.key`` and ``acidsql.cdc.keys``, if they
    are there, list columns of the table, and none twice.

    Args:
        properties: The properties that the statement sets.
        columns: All columns of the table.
        statement: The statement with the properties.
        text: The statement's text.

    Raises:
        AnalysisError: A name is no column's or occurs twice, or the keys of AUTO CDC are no list of
            columns in SQL. The error points to the property.
    """
    try:
        column_references.check_lists(properties, [column.name for column in columns])
    except SettingError as error:
        raise _error_at_key(error, error.parameters["key"], statement, text) from None


def check_own_names(
    table: Table | None, statement: CreateTable | SetTableProperties, text: str
) -> None:
    """Raise AnalysisError INVALID_PROPERTY_KEY, which points to the property, if the statement sets
    a property whose name begins with ``acidsql.`` and is not known. The table may have such
    properties already, as of another version of acidsql: these may be set again.

    Args:
        table: The table; None if the statement creates it.
        statement: The statement with the properties.
        text: The statement's text.
    """
    for key, _ in statement.properties:
        if table is not None and key in table.properties:
            continue
        try:
            need_known_name(key)
        except SettingError as error:
            raise _error_at_key(error, key, statement, text) from None


def _check_settings(statement: CreateTable | SetTableProperties, text: str) -> None:
    """Check those of the statement's properties that set compactions, history or AUTO CDC. Raise
    AnalysisError for a wrong value, or for a key that ANALYZE uses for its counts."""
    for key, value in statement.properties:
        if key.lower().startswith(STATISTICS):
            span = _span_of_key(key, statement)
            raise AnalysisError(
                f"'{key}' is no property: ANALYZE TABLE … COMPUTE STATISTICS notes what it counts "
                "under such names.",
                text, span.start, span.end,
                condition="INVALID_PROPERTY_KEY", sqlstate="42602",
            )  # fmt: skip
        try:
            apply_thresholds(with_history_properties({key: value}, Settings()), {key: value})
            tombstone_retention({key: value})
        except SettingError as error:
            raise _error_at_key(error, key, statement, text) from None


def _error_at_key(
    error: SettingError, key: str, statement: CreateTable | SetTableProperties, text: str
) -> AnalysisError:
    """Return an AnalysisError with the message of an error about a property, which points to the
    property in the statement."""
    span = _span_of_key(key, statement)
    return AnalysisError(
        error.message, text, span.start, span.end,
        condition=error.condition, sqlstate=error.sqlstate,
    )  # fmt: skip


def _span_of_key(key: str, statement: CreateTable | SetTableProperties) -> Span:
    """Return the place of a property in the statement; if the property is not stated there, that of
    the table's name or, in SET TBLPROPERTIES, of the whole list."""
    places = zip(statement.properties, statement.property_spans, strict=False)
    default = statement.name.span
    if isinstance(statement, SetTableProperties):
        default = statement.place
    return next((span for (name, _), span in places if name == key), default)


def check_kind(kind: str, text: str, span: Span) -> None:
    """Raise AnalysisError for a value of ``transactional_properties`` other than ``default`` (full
    ACID) and ``insert_only``. ``kind`` is in lower case."""
    if kind not in TRANSACTIONAL_KINDS:
        raise AnalysisError(
            f"'{TRANSACTIONAL_PROPERTIES}' is '{TRANSACTIONAL_KINDS[0]}' (full ACID) or "
            f"'{TRANSACTIONAL_KINDS[1]}', not "
            f"'{kind}'.", text, span.start, span.end,
            condition="INVALID_PROPERTY_VALUE", sqlstate="22023",
        )  # fmt: skip


def _refusal_error(message: str, text: str, span: Span) -> UnsupportedError:
    return UnsupportedError(
        message, text, span.start, span.end, condition="UNSUPPORTED_FEATURE.SET_TRANSACTIONAL"
    )
