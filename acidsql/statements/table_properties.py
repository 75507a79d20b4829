"""ALTER TABLE … [UN]SET TBLPROPERTIES: which properties may change, and what a change means.

As in Hive, a full-ACID table stays full-ACID. An insert-only table may become full-ACID: then its
plain files are read as the files of LOAD DATA are, and their rows have row ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from acidsql.compaction.decision import with_thresholds
from acidsql.compaction.kept_history import settings_of
from acidsql.errors import AnalysisError, SettingError, UnsupportedError
from acidsql.metastore.foreign import ForeignTable
from acidsql.plan.cdc_state import tombstone_retention
from acidsql.settings import Settings
from acidsql.sql.statements import (
    ConvertTable,
    CreateTable,
    SetTableProperties,
    UnsetTableProperties,
)
from acidsql.sql.tokens import Span
from acidsql.statements import column_references
from acidsql.storage.files.parquet import compression_of
from acidsql.storage.orc.options import OrcOptions, check_bloom_filter_columns
from acidsql.storage.orc.row_schema import RowSchema

KINDS = (FULL_ACID, "insert_only")
_EXTERNAL = "external"  # Hive's property; a managed table has not


@dataclass(frozen=True, slots=True)
class Changes:
    """The properties that a SET TBLPROPERTIES sets.

    Attributes:
        values: The properties.
        becomes_full_acid: Whether an insert-only table becomes full-ACID.
    """

    values: Mapping[str, str]
    becomes_full_acid: bool = False


def to_set(table: Table, statement: SetTableProperties, text: str) -> Changes:
    """The properties that SET TBLPROPERTIES changes in a table.

    Raises:
        AnalysisError: Hive does not know the value of a property.
        UnsupportedError: The table cannot become what the properties say.
    """
    place = statement.place
    values = {
        key.lower() if key.lower() in FIXED_PROPERTIES else key: value
        for key, value in statement.properties
    }
    if values.get(TRANSACTIONAL, "true").lower() != "true":
        raise _refusal("A transactional table stays transactional (as in Hive).", text, place)
    values.pop(TRANSACTIONAL, None)
    kind = values.get(TRANSACTIONAL_PROPERTIES, "").lower()
    if TRANSACTIONAL_PROPERTIES in values:
        check_kind(kind, text, place)
        values[TRANSACTIONAL_PROPERTIES] = kind
    ours = {TRANSACTIONAL_PROPERTIES: FULL_ACID, **table.properties}
    fixed = [key for key in FIXED_PROPERTIES if values.get(key, ours.get(key)) != ours.get(key)]
    converted = fixed == [TRANSACTIONAL_PROPERTIES] and table.is_insert_only
    if fixed and not converted:
        raise _refusal(
            f"'{fixed[0]}' cannot be changed: it describes the table's files.", text, place
        )
    if converted and table.sort_columns:
        raise _refusal(
            "This table is SORTED BY, and a full-ACID table cannot be (Hive 10298).", text, place
        )
    if converted and table.file_format != ORC:
        raise _refusal(
            f"A full-ACID table is stored as ORC, this one as {table.file_format.upper()}. CREATE "
            f"TABLE … AS SELECT * FROM {table.name} copies its rows into one.", text, place
        )  # fmt: skip
    check_files({**table.properties, **values}, table.columns, statement, text)
    check_lists(values, table.all_columns, statement, text)
    return Changes(values, converted)


def convertible(
    found: ForeignTable | None, is_acid: bool, statement: ConvertTable, text: str
) -> ForeignTable:
    """The plain table that a statement makes an ACID table.

    Args:
        found: The table in the metastore; None: it has no plain table of this name.
        is_acid: The name is that of an ACID table.
        statement: The statement.
        text: The statement's text.

    Raises:
        UnsupportedError: It cannot become one in place.
    """
    name, place = ".".join(statement.name.parts), statement.name.span
    if is_acid:
        raise _refusal(
            f"'{name}' is an ACID table already. TBLPROPERTIES ('{TRANSACTIONAL_PROPERTIES}'="
            f"'{FULL_ACID}') makes an insert-only table full-ACID.", text, place
        )  # fmt: skip
    if found is None:
        raise _refusal(
            f"'{name}' is not an ACID table and cannot become one in place: CREATE TABLE … "
            "(columns) LOCATION '…' makes an ACID table of a directory of ORC files.", text, place
        )  # fmt: skip
    table, said = found.need_table(), {k.lower(): v.lower() for k, v in statement.properties}
    for holds, why in _obstacles(found, table, said):
        if holds:
            raise _refusal(f"{table.name} cannot become a full-ACID table: {why}.", text, place)
    return found


def _obstacles(
    found: ForeignTable, table: Table, said: Mapping[str, str]
) -> Iterator[tuple[bool, str]]:
    """Why a plain table may not become an ACID table, each with whether that is so.

    ``said``: the properties of the statement, in lower case.
    """
    others = said.keys() - {TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, _EXTERNAL}
    yield bool(others), f"set '{min(others, default='')}' afterwards, by another statement"
    is_full_acid = said.get(TRANSACTIONAL_PROPERTIES, FULL_ACID) == FULL_ACID
    why = "an insert-only table would not see its files. CREATE TABLE … AS SELECT copies the rows"
    yield not is_full_acid, why
    is_managed = said.get(_EXTERNAL, "true" if found.is_external else "false") == "false"
    why = "it is EXTERNAL, and DROP TABLE deletes the files of an ACID table. If you want that: "
    yield not is_managed, f"{why}SET TBLPROPERTIES ('EXTERNAL'='FALSE', 'transactional'='true')"
    why = f"its files are {table.file_format.upper()}, and those of a full-ACID table are ORC. "
    yield table.file_format != ORC, f"{why}CREATE TABLE … AS SELECT copies the rows"
    why = "it is SORTED BY, and a full-ACID table cannot be (Hive 10298)"
    yield bool(table.sort_columns), why


def check_unset(table: Table, statement: UnsetTableProperties, text: str) -> None:
    """Check that properties can be unset.

    Raises:
        AnalysisError: The table has no such property, and the statement has no IF EXISTS.
        UnsupportedError: The property says what the table's files are, so the table needs it.
    """
    for key in statement.keys:
        if key.lower() in FIXED_PROPERTIES:
            raise _refusal(
                f"'{key}' cannot be unset: it describes the table's files.",
                text, statement.place,
            )  # fmt: skip
        if key not in table.properties and not statement.if_exists:
            raise AnalysisError(
                f"{table.name} has no property '{key}' (UNSET TBLPROPERTIES IF EXISTS allows "
                "that).", text, statement.place.start, statement.place.end,
                condition="UNSET_NONEXISTENT_PROPERTIES", sqlstate="42K0J",
            )  # fmt: skip


def check_files(
    properties: Mapping[str, str],
    columns: Sequence[Column],
    statement: CreateTable | SetTableProperties,
    text: str,
) -> None:
    """Check that files can be written with the ``orc.…`` and ``parquet.…`` properties.

    The statement's properties for compactions, history and AUTO CDC are checked, too: nobody sees
    it if the initiator or the cleaner passes a table by.

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
        options = OrcOptions.of(properties)
        row = RowSchema.of((column.name, column.type) for column in columns)
        check_bloom_filter_columns(options, row.hive)
    except SettingError as error:
        raise _at(error, error.parameters["key"], statement, text) from None


def check_lists(
    properties: Mapping[str, str],
    columns: Sequence[Column],
    statement: CreateTable | SetTableProperties,
    text: str,
) -> None:
    """Check that the properties which are keys name columns of the table, each once.

    Args:
        properties: The properties of the statement.
        columns: All columns of the table.
        statement: The statement with the properties.
        text: The statement's text.

    Raises:
        AnalysisError: A name is no column's, or is there twice.
    """
    try:
        column_references.check_lists(properties, [column.name for column in columns])
    except SettingError as error:
        raise _at(error, error.parameters["key"], statement, text) from None


def _check_settings(statement: CreateTable | SetTableProperties, text: str) -> None:
    for key, value in statement.properties:
        if key.lower().startswith(STATISTICS):
            place = _place_of(key, statement)
            raise AnalysisError(
                f"'{key}' is no property: ANALYZE TABLE … COMPUTE STATISTICS notes what it counts "
                "under such names.",
                text, place.start, place.end,
                condition="INVALID_PROPERTY_KEY", sqlstate="42602",
            )  # fmt: skip
        try:
            with_thresholds(settings_of({key: value}, Settings()), {key: value})
            tombstone_retention({key: value})
        except SettingError as error:
            raise _at(error, key, statement, text) from None


def _at(
    error: SettingError, key: str, statement: CreateTable | SetTableProperties, text: str
) -> AnalysisError:
    place = _place_of(key, statement)
    return AnalysisError(
        error.message, text, place.start, place.end,
        condition=error.condition, sqlstate=error.sqlstate,
    )  # fmt: skip


def _place_of(key: str, statement: CreateTable | SetTableProperties) -> Span:
    if isinstance(statement, SetTableProperties):
        return statement.place
    places = zip(statement.properties, statement.property_spans, strict=False)
    return next((span for (name, _), span in places if name == key), statement.name.span)


def check_kind(kind: str, text: str, place: Span) -> None:
    """Refuse a value of ``transactional_properties`` that Hive does not know."""
    if kind not in KINDS:
        raise AnalysisError(
            f"'{TRANSACTIONAL_PROPERTIES}' is '{KINDS[0]}' (full ACID) or '{KINDS[1]}', not "
            f"'{kind}'.", text, place.start, place.end,
            condition="INVALID_PROPERTY_VALUE", sqlstate="22023",
        )  # fmt: skip


def _refusal(message: str, text: str, place: Span) -> UnsupportedError:
    return UnsupportedError(
        message, text, place.start, place.end, condition="UNSUPPORTED_FEATURE.SET_TRANSACTIONAL"
    )
