"""``Session.changes_from``: the records of a tool of replication as rows for AUTO CDC.

Steps, each a projection:

1. Read the envelope: the operation, its order value, and the images of the row before and after.
2. Convert the images' columns to the types of the table, and note what is wrong with them.
3. Make one row of each record, or two rows of an update that changes the key: a delete and an
   update.
4. Filter out records that are no changes. The filter fails the query at a record that cannot be
   read. An expression in a column could not do this: Spark leaves out columns that nobody selects.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from types import ModuleType

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from acidsql.errors import AnalysisError, SettingError
from acidsql.plan.values.assignment import raise_dynamic_sql
from acidsql.sql.grammar.cdc import is_expression
from acidsql.storage.columns import literal, quote
from acidsql.storage.spark.type_sql import type_sql
from acidsql.streams.envelopes import debezium, dms, goldengate, maxwell
from acidsql.streams.envelopes.parts import (
    ROOT,
    TEXT,
    Envelope,
    RecordFields,
    RowImage,
    parsed_json,
)
from acidsql.streams.envelopes.values import ValueConverter, text_sql

FORMATS: dict[str, ModuleType] = {
    "debezium": debezium, "dms": dms, "goldengate": goldengate, "maxwell": maxwell,
}  # fmt: skip
_KEYS_CHANGE = ("goldengate", "maxwell")  # one record can change a key; other formats send two
_NAMES = ("_op", "_sequence", "_table", "_source_txn")
_PREFIX = "__acidsql_"
_PARSED = f"{_PREFIX}parsed"  # the text as a VARIANT: the record and what may be wrapped around it


def change_rows(
    format: str,
    records: DataFrame,
    schema: str | StructType | None,
    *,
    keys: Sequence[str] | None,
    sequence: str | None,
    absent: str,
) -> DataFrame:
    """Return a tool's change records as rows for AUTO CDC, lazily (see ``Session.changes_from``):
    the table's columns, ``_op``, ``_sequence``, ``_table``, ``_source_txn``. No change (a
    heartbeat) gives no row; a change of ``keys`` gives a delete and an update; a bad record fails
    the query. ``absent``: "error" or "null", for a column that a record lacks. Raise SettingError
    for a wrong argument, AnalysisError if rows are no records of the format or lack a column."""
    if format not in FORMATS:
        format_names = ", ".join(FORMATS)
        raise SettingError(f"format='{format}' is not one of {format_names}.", name="format")
    if absent not in ("error", "null"):
        raise SettingError(f"absent='{absent}' is not one of error, null.", name="absent")
    if format in _KEYS_CHANGE and not keys:
        raise SettingError(
            f"changes_from('{format}', …) needs keys=[…]: an update may change the key, and then "
            "the row of the old key must go.", name="keys",
        )  # fmt: skip
    if sequence is not None and not is_expression(sequence):
        raise SettingError(f"sequence={sequence!r} is not one SQL expression.", name="sequence")
    records, fields = records_and_fields(format, records)
    envelope: Envelope = FORMATS[format].envelope(fields)
    columns = _table_columns(format, envelope, schema)
    key_indexes = [_column_index(columns, key) for key in keys or ()]
    images = _images(envelope)
    envelope_rows = records.selectExpr(
        f"{envelope.op} AS {_PREFIX}op",
        *(f"{image.sql} AS {_PREFIX}{name}" for name, image in images.items()),
        *(f"{image.is_present} AS {_PREFIX}{name}_there" for name, image in images.items()),
        f"{sequence or envelope.sequence} AS _sequence",
        f"{envelope.table} AS _table",
        f"{envelope.txn} AS _source_txn",
        f"{'CAST(NULL AS STRING)' if sequence else envelope.fault} AS {_PREFIX}fault",
        f"left({TEXT if fields.is_text else 'CAST(NULL AS STRING)'}, 200) AS {_PREFIX}excerpt",
        f"{is_unparsed_sql(fields)} AS {_PREFIX}unparsed",
        f"{fields.has_long_numbers_sql()} AS {_PREFIX}long",
    )
    row_images = {name: RowImage(f"{_PREFIX}{name}", image.kind) for name, image in images.items()}
    table_row = _RowSql(columns, envelope, absent)
    typed_rows = envelope_rows.selectExpr(
        f"{_PREFIX}op", "_sequence", "_table", "_source_txn", f"{_PREFIX}excerpt",
        f"{_record_fault_sql(format, row_images)} AS {_PREFIX}fault",
        f"{table_row.row_sql(row_images['after'], None)} AS {_PREFIX}after",
        f"{table_row.row_sql(row_images['before'], row_images.get('same'), is_old=True)} "
        f"AS {_PREFIX}before",
    )  # fmt: skip
    split_rows = typed_rows.selectExpr(
        "*", f"explode({_record_rows_sql(columns, key_indexes)}) AS {_PREFIX}row"
    )
    good_rows = split_rows.where(_is_good_sql(format, absent))
    return good_rows.selectExpr(
        *(f"{_PREFIX}row.r.c{i} AS {quote(column.name)}" for i, column in enumerate(columns)),
        f"{_PREFIX}row.op AS _op", *_NAMES[1:],
    )  # fmt: skip


# ── the records and the table's columns ──────────────────────────────────────────────────────


def records_and_fields(format: str, rows: DataFrame) -> tuple[DataFrame, RecordFields]:
    """Return the rows, and the object that makes SQL of their records' fields. Texts (STRING or
    BINARY), in the only column or in ``value``, are parsed as JSON, lazily, into added columns.
    Parsed records stay as they are: rows with the format's column ``MARK``, or of DMS with several
    columns.

    Raises:
        AnalysisError: The rows are neither texts nor records of this format.
    """
    mark_column = FORMATS[format].MARK
    names = {name.lower() for name in rows.columns}
    if mark_column.lower() in names:
        return rows, RecordFields(rows.schema)
    text_columns = [
        column.name
        for column in rows.schema
        if isinstance(column.dataType, StringType | BinaryType)
    ]
    if format == "dms" and len(rows.columns) > 1:
        return rows, RecordFields(rows.schema)  # files of a full load, which have no column Op
    text_column = text_columns[0] if len(rows.columns) == len(text_columns) == 1 else "value"
    if text_column not in text_columns:
        raise AnalysisError(
            f"These are no records of '{format}': there is no column '{mark_column}' of parsed "
            "records, and no column 'value' with texts of JSON. Parsed structs in one column are "
            "opened by select('value.*').",
            condition="UNRESOLVED_COLUMN", sqlstate="42703", column=mark_column,
        )  # fmt: skip
    root: Callable[[str], str] = getattr(FORMATS[format], "root", lambda parsed: parsed)
    text_rows = rows.selectExpr("*", f"CAST({quote(text_column)} AS STRING) AS {TEXT}")
    variant_rows = text_rows.selectExpr("*", f"{parsed_json(TEXT)} AS {_PARSED}")
    return variant_rows.selectExpr("*", f"{root(_PARSED)} AS {ROOT}"), RecordFields(None)


def _table_columns(
    format: str, envelope: Envelope, schema: str | StructType | None
) -> list[StructField]:
    """Return the table's columns: those of ``schema`` or, without it, those of the row after the
    change, in parsed records (for DMS without its headers).

    Raises:
        SettingError: Texts have no schema, or a column is there twice or has a name of
            ``changes_from``.
        AnalysisError: The records lack a column of the schema.
    """
    if schema is None:
        if envelope.after.kind is None:
            raise SettingError("Texts need schema=…, the columns of the table.", name="schema")
        left_out = {name.lower() for name in dms.HEADERS} if format == "dms" else set()
        columns = [column for column in envelope.after.kind if column.name.lower() not in left_out]
    else:
        columns = list(_schema_struct(schema))
    names = [column.name.lower() for column in columns]
    for column in columns:
        if names.count(column.name.lower()) > 1 or column.name.lower() in _NAMES:
            raise SettingError(
                f"The column '{column.name}' is there twice, or has a name of changes_from().",
                name="schema",
            )
        if envelope.after.raw_value(column.name) is None:
            raise AnalysisError(
                f"The records have no column '{column.name}'.",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=column.name,
            )  # fmt: skip
    return columns


def _schema_struct(schema: str | StructType) -> StructType:
    """Return a schema as a struct. DDL is parsed by Spark, whose errors it raises. Raise
    SettingError if it is no list of columns."""
    if isinstance(schema, StructType):
        return schema
    parsed_schema = StructType.fromDDL(schema)
    if not isinstance(parsed_schema, StructType):
        raise SettingError(f"schema={schema!r} is no list of columns.", name="schema")
    return parsed_schema


def _column_index(columns: Sequence[StructField], key: str) -> int:
    """Return the position of a key among the columns, whatever the case. Raise SettingError if it
    is none of them."""
    for number, column in enumerate(columns):
        if column.name.lower() == key.lower():
            return number
    raise SettingError(f"The key '{key}' is not among the columns of schema=….", name="keys")


# ── the steps ────────────────────────────────────────────────────────────────────────────────


def _images(envelope: Envelope) -> dict[str, RowImage]:
    """Return an envelope's images by name: ``before``, ``after`` and, if it has one, ``same``."""
    images = {"before": envelope.before, "after": envelope.after}
    return images if envelope.same is None else images | {"same": envelope.same}


def is_unparsed_sql(fields: RecordFields) -> str:
    """Return SQL that is true if the text of a record is no JSON; false for parsed records."""
    return f"{_PARSED} IS NULL" if fields.is_text else "false"


class _RowSql:
    """Makes SQL of a row in the table's types.

    The row is a struct. ``c0``, ``c1`` … are the table's columns; ``bad`` says what is wrong with
    the row, or is NULL.
    """

    def __init__(self, columns: Sequence[StructField], envelope: Envelope, absent: str) -> None:
        self._columns, self._envelope, self._absent = columns, envelope, absent
        self._values = ValueConverter(envelope.days, envelope.binary)

    def row_sql(self, image: RowImage, fallback: RowImage | None, *, is_old: bool = False) -> str:
        """Return SQL of an image (the record's copy of a row) as a struct of ``bad`` and ``c0`` …;
        NULL if the record has neither this image nor the other one.

        Args:
            image: The image.
            fallback: Another image of the row, for the columns that ``image`` lacks or has as NULL;
                or None.
            is_old: The image is of the row before the change. AUTO CDC reads only the key of such a
                row, so the image may lack other columns.
        """
        values, faults = [], []
        for number, column in enumerate(self._columns):
            value, fault = self._column_sql(image, fallback, column, is_old=is_old)
            values.append(f"'c{number}', {value}")
            faults += fault
        bad = f"CASE {' '.join(faults)} END" if faults else "CAST(NULL AS STRING)"
        is_present = f"{image.sql} IS NOT NULL"
        if fallback is not None:
            is_present += f" OR {fallback.sql} IS NOT NULL"
        return f"CASE WHEN {is_present} THEN named_struct('bad', {bad}, {', '.join(values)}) END"

    def _column_sql(
        self, image: RowImage, fallback: RowImage | None, column: StructField, *, is_old: bool
    ) -> tuple[str, list[str]]:
        """Return SQL of a column's value in the table's type, NULL if it does not fit, and the
        branches of a CASE that say what is wrong with it. NULL and [] if all images are structs
        without the column.

        ``fallback``: another image for a value that ``image`` lacks or has as NULL; or None.
        ``is_old``: the image is of the row before the change, and may lack columns.
        """
        name, target_type = column.name, column.dataType
        null = f"CAST(NULL AS {type_sql(target_type)})"
        source_value = image.raw_value(name)
        if fallback is not None:
            fallback_value = fallback.raw_value(name)
            if source_value is None:
                source_value = fallback_value
            elif fallback_value is not None:
                source_value = f"coalesce({source_value[0]}, {fallback_value[0]})", source_value[1]
        if source_value is None:
            return null, []
        sql, source_type = source_value
        text = text_sql(sql, source_type)
        value = self._values.convert(sql, source_type, target_type)
        faults = [] if is_old or self._absent == "null" else [
            f"WHEN {image.lacks_column_sql(name)} THEN {literal(f'it has no column {name}')}"
        ]  # fmt: skip
        if self._envelope.unavailable:
            is_unavailable = (
                f"coalesce({_is_unavailable_sql(self._envelope.unavailable, text)}, false)"
            )
            value = f"CASE WHEN {is_unavailable} THEN {null} ELSE {value} END"
            if not is_old and self._absent == "error":
                faults.append(
                    f"WHEN {is_unavailable} THEN "
                    + literal(f"its value of the column {name} is not available")
                )
            text = f"CASE WHEN NOT {is_unavailable} THEN {text} END"
        if isinstance(source_type, VariantType):
            rounded = literal(f"a number of the column {name} has more digits than Spark reads: ")
            faults.append(
                f"WHEN {_is_rounded_sql(sql, text, target_type)} THEN concat({rounded}, {text})"
            )
        message = literal(
            f"the value of the column {name} is no {target_type.simpleString().upper()}: "
        )
        bad = f"{text} IS NOT NULL AND {value} IS NULL"
        return value, [*faults, f"WHEN {bad} THEN concat({message}, left({text}, 100))"]


def _is_unavailable_sql(mark: str, text: str) -> str:
    """Return SQL that is true if a value's text is the ``mark`` by which a tool says that it does
    not know the value; NULL if the text is NULL.

    The mark has another form for each type of a column: text, bytes, UUID, arrays of these types,
    arrays of integers, and maps (hstore).
    """
    mark_bytes = mark.encode()
    bytes_text = base64.b64encode(mark_bytes).decode()
    uuid_text = uuid.UUID(bytes=hashlib.md5(mark_bytes).digest(), version=3)
    arrays = ([mark], [bytes_text], [str(uuid_text)], list(mark_bytes), {mark: mark})
    nested = (json.dumps(value, separators=(",", ":")) for value in arrays)
    forms = (mark, bytes_text, mark_bytes.hex(), *nested)
    return f"{text} IN ({', '.join(map(literal, forms))})"


def _is_rounded_sql(sql: str, text: str, target_type: DataType) -> str:
    """Return SQL that is true if Spark may have rounded a number when it parsed a record's JSON,
    and the column's type is exact. ``sql``: the value, a VARIANT; ``text``: the value as a text.

    A FLOAT or DOUBLE column rounds every number, so there only an infinite value counts.
    """
    rounded = f"{_PREFIX}long AND schema_of_variant({sql}) RLIKE 'DOUBLE'"
    if isinstance(target_type, FloatType | DoubleType):
        rounded += f" AND {text} RLIKE 'Infinity'"
    return rounded


def _record_rows_sql(columns: Sequence[StructField], keys: Sequence[int]) -> str:
    """Return SQL of the array of a record's rows, structs of ``op`` and ``r``: a delete of the row
    before and an update if the record is an update that changes the key, else one row. A key column
    that the row before lacks has not changed.

    ``keys``: the positions of the key columns; empty: no record changes the key.
    """
    op, before, after = f"{_PREFIX}op", f"{_PREFIX}before", f"{_PREFIX}after"
    single_row = (
        f"named_struct('op', {op}, 'r', CASE WHEN {op} = 'delete' THEN {before} ELSE {after} END)"
    )
    if not keys:
        return f"array({single_row})"
    # A key that the image before lacks has not changed.
    key_changes = " OR ".join(
        f"({before}.c{key} IS NOT NULL AND NOT {before}.c{key} <=> {after}.c{key})" for key in keys
    )
    old_fields = ", ".join(
        f"'c{i}', {f'coalesce({before}.c{i}, {after}.c{i})' if i in keys else f'{before}.c{i}'}"
        for i in range(len(columns))
    )
    delete_row = (
        f"named_struct('op', 'delete', 'r', named_struct('bad', {before}.bad, {old_fields}))"
    )
    return (
        f"CASE WHEN {op} = 'update' AND ({key_changes}) THEN array({delete_row}, {single_row}) "
        f"ELSE array({single_row}) END"
    )


def _record_fault_sql(format: str, row_images: dict[str, RowImage]) -> str:
    """Return SQL of the text that says what is wrong with a record as a whole, the first of these:
    no JSON, an image that is no object or has two names that differ only in case, no known
    operation, no image of the row that its operation needs, or what the format itself finds. NULL
    for a good record, and for one that is no change."""
    op = f"{_PREFIX}op"
    has_no_old_image = " AND ".join(
        f"{image.sql} IS NULL" for name, image in row_images.items() if name != "after"
    )
    is_broken = " OR ".join(
        f"({image.sql}_there AND {image.sql} IS NULL)" for image in row_images.values()
    )
    return (
        f"CASE WHEN {op} = '' THEN NULL "
        f"WHEN {_PREFIX}unparsed THEN 'it is no JSON' "
        f"WHEN {is_broken} THEN 'the image of its row is no object, or has two names that differ "
        "in case only' "
        f"WHEN {op} IS NULL THEN {literal(f'it has no {FORMATS[format].MARK} that is known')} "
        f"WHEN {op} = 'delete' AND {has_no_old_image} "
        "THEN 'it is a delete without the row before it' "
        f"WHEN {op} IN ('insert', 'update', 'snapshot') AND {row_images['after'].sql} IS NULL "
        f"THEN 'it has no row' ELSE {_PREFIX}fault END"
    )


def _is_good_sql(format: str, absent: str) -> str:
    """Return SQL of the filter: true for a change, false for a record that is no change.

    The SQL fails the query at a bad record: its first fault is that of the whole record, then that
    of the row before, then that of the row itself. The error has the fault and the record's text.
    """
    advice = "" if absent == "null" else (
        " (if the tool leaves out columns that did not change, absent='null' makes them NULL, and "
        "IGNORE NULL UPDATES of AUTO CDC keeps their old values)"
    )  # fmt: skip
    fault = f"coalesce({_PREFIX}fault, {_PREFIX}before.bad, {_PREFIX}row.r.bad)"
    record = f"coalesce(concat(': ', {_PREFIX}excerpt), '')"
    message = f"concat({fault}, {literal(advice)}, {record})"
    return (
        f"CASE WHEN {_PREFIX}op = '' THEN false WHEN {fault} IS NOT NULL "
        f"THEN {failure_sql(format, message)} ELSE true END"
    )


def failure_sql(format: str, message: str) -> str:
    """Return SQL that fails the query at a record, with CHANGE_RECORD_MALFORMED.

    Args:
        format: The format of the record.
        message: SQL of the text that says what is wrong with the record.
    """
    start = literal(f"A record of {format} cannot be read: ")
    return raise_dynamic_sql("CHANGE_RECORD_MALFORMED", "22023", f"concat({start}, {message})")
