"""``Session.changes_from``: the records of a tool of replication as rows for AUTO CDC.

Steps, each a projection:

1. the envelope: what happened, in which order, and the images of the row before and after it;
2. the images' columns in the types of the table, with what is wrong with them;
3. a row for each record, and two for an update that changes the key: a delete and an update;
4. a filter drops what is no change, and fails the query at a record that cannot be read.

The filter fails, and not a column: Spark leaves out columns that nobody selects.
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
from acidsql.plan.assignment import raise_dynamic_sql
from acidsql.sql.cdc import is_expression
from acidsql.storage.columns import literal, quote
from acidsql.storage.spark.type_sql import type_sql
from acidsql.streams.envelopes import debezium, dms, goldengate, maxwell
from acidsql.streams.envelopes.parts import ROOT, TEXT, Envelope, Fields, Image, parsed
from acidsql.streams.envelopes.values import Values, text_of

FORMATS: dict[str, ModuleType] = {
    "debezium": debezium, "dms": dms, "goldengate": goldengate, "maxwell": maxwell,
}  # fmt: skip
_KEYS_CHANGE = ("goldengate", "maxwell")  # in one record, not in two
_NAMES = ("_op", "_sequence", "_table", "_source_txn")
_PREFIX = "__acidsql_"
_PARSED = f"{_PREFIX}parsed"  # the text as a VARIANT, with what is around the record


def changes(
    format: str,
    rows: DataFrame,
    schema: str | StructType | None,
    *,
    keys: Sequence[str] | None,
    sequence: str | None,
    absent: str,
) -> DataFrame:
    """See ``Session.changes_from``."""
    if format not in FORMATS:
        known = ", ".join(FORMATS)
        raise SettingError(f"format='{format}' is not one of {known}.", name="format")
    if absent not in ("error", "null"):
        raise SettingError(f"absent='{absent}' is not one of error, null.", name="absent")
    if format in _KEYS_CHANGE and not keys:
        raise SettingError(
            f"changes_from('{format}', …) needs keys=[…]: an update may change the key, and then "
            "the row of the old key must go.",
            name="keys",
        )
    if sequence is not None and not is_expression(sequence):
        raise SettingError(f"sequence={sequence!r} is not one SQL expression.", name="sequence")
    rows, fields = fields_of(format, rows)
    found: Envelope = FORMATS[format].envelope(fields)
    columns = _columns(format, found, schema)
    named = [_named(columns, key) for key in keys or ()]
    images = _images(found)
    first = rows.selectExpr(
        f"{found.op} AS {_PREFIX}op",
        *(f"{image.sql} AS {_PREFIX}{name}" for name, image in images.items()),
        *(f"{image.there} AS {_PREFIX}{name}_there" for name, image in images.items()),
        f"{sequence or found.sequence} AS _sequence",
        f"{found.table} AS _table",
        f"{found.txn} AS _source_txn",
        f"{'CAST(NULL AS STRING)' if sequence else found.fault} AS {_PREFIX}fault",
        f"left({TEXT if fields.is_text else 'CAST(NULL AS STRING)'}, 200) AS {_PREFIX}excerpt",
        f"{unparsed(fields)} AS {_PREFIX}unparsed",
        f"{fields.has_long_numbers()} AS {_PREFIX}long",
    )
    held = {name: Image(f"{_PREFIX}{name}", one.kind) for name, one in images.items()}
    row = _RowSql(columns, found, absent)
    second = first.selectExpr(
        f"{_PREFIX}op", "_sequence", "_table", "_source_txn", f"{_PREFIX}excerpt",
        f"{_fault(format, held)} AS {_PREFIX}fault",
        f"{row.of(held['after'], None)} AS {_PREFIX}after",
        f"{row.of(held['before'], held.get('same'), is_old=True)} AS {_PREFIX}before",
    )  # fmt: skip
    third = second.selectExpr("*", f"explode({_split(columns, named)}) AS {_PREFIX}row")
    good = third.where(_is_good(format, absent))
    return good.selectExpr(
        *(f"{_PREFIX}row.r.c{i} AS {quote(one.name)}" for i, one in enumerate(columns)),
        f"{_PREFIX}row.op AS _op",
        *_NAMES[1:],
    )


# ── what is given ────────────────────────────────────────────────────────────────────────────


def fields_of(format: str, rows: DataFrame) -> tuple[DataFrame, Fields]:
    """The rows, with their texts parsed, and the fields of their records.

    Raises:
        AnalysisError: The rows are neither texts nor records of this format.
    """
    mark = FORMATS[format].MARK
    names = {name.lower() for name in rows.columns}
    if mark.lower() in names:
        return rows, Fields(rows.schema)
    texts = [one.name for one in rows.schema if isinstance(one.dataType, StringType | BinaryType)]
    if format == "dms" and len(rows.columns) > 1:
        return rows, Fields(rows.schema)  # files of a full load, which have no column Op
    given = texts[0] if len(rows.columns) == len(texts) == 1 else "value"
    if given not in texts:
        raise AnalysisError(
            f"These are no records of '{format}': there is no column '{mark}' of parsed records, "
            "and no column 'value' with texts of JSON. Parsed structs in one column are opened by "
            "select('value.*').",
            condition="UNRESOLVED_COLUMN", sqlstate="42703", column=mark,
        )  # fmt: skip
    root: Callable[[str], str] = getattr(FORMATS[format], "root", lambda parsed: parsed)
    texted = rows.selectExpr("*", f"CAST({quote(given)} AS STRING) AS {TEXT}")
    variants = texted.selectExpr("*", f"{parsed(TEXT)} AS {_PARSED}")
    return variants.selectExpr("*", f"{root(_PARSED)} AS {ROOT}"), Fields(None)


def _columns(format: str, found: Envelope, schema: str | StructType | None) -> list[StructField]:
    """The table's columns.

    Raises:
        SettingError: The schema is missing, or has a column twice.
        AnalysisError: The records have no such column.
    """
    if schema is None:
        if found.after.kind is None:
            raise SettingError("Texts need schema=…, the columns of the table.", name="schema")
        left_out = {name.lower() for name in dms.HEADERS} if format == "dms" else set()
        columns = [one for one in found.after.kind if one.name.lower() not in left_out]
    else:
        columns = list(_struct(schema))
    names = [one.name.lower() for one in columns]
    for one in columns:
        if names.count(one.name.lower()) > 1 or one.name.lower() in _NAMES:
            raise SettingError(
                f"The column '{one.name}' is there twice, or has a name of changes_from().",
                name="schema",
            )
        if found.after.raw(one.name) is None:
            raise AnalysisError(
                f"The records have no column '{one.name}'.",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=one.name,
            )  # fmt: skip
    return columns


def _struct(schema: str | StructType) -> StructType:
    if isinstance(schema, StructType):
        return schema
    found = StructType.fromDDL(schema)
    if not isinstance(found, StructType):
        raise SettingError(f"schema={schema!r} is no list of columns.", name="schema")
    return found


def _named(columns: Sequence[StructField], key: str) -> int:
    for number, one in enumerate(columns):
        if one.name.lower() == key.lower():
            return number
    raise SettingError(f"The key '{key}' is not among the columns of schema=….", name="keys")


# ── the steps ────────────────────────────────────────────────────────────────────────────────


def _images(found: Envelope) -> dict[str, Image]:
    images = {"before": found.before, "after": found.after}
    return images if found.same is None else images | {"same": found.same}


def unparsed(fields: Fields) -> str:
    """SQL: whether a text is no JSON."""
    return f"{_PARSED} IS NULL" if fields.is_text else "false"


class _RowSql:
    """SQL of a row in the table's types: ``c0`` …, and ``bad``, what is wrong with it."""

    def __init__(self, columns: Sequence[StructField], found: Envelope, absent: str) -> None:
        self._columns, self._found, self._absent = columns, found, absent
        self._values = Values(found.days, found.binary)

    def of(self, image: Image, otherwise: Image | None, *, is_old: bool = False) -> str:
        """SQL of the row of an image; ``otherwise`` has the columns that the image lacks.

        ``is_old``: Nothing but the key will be taken from the row, so other columns may be absent.
        """
        values, faults = [], []
        for number, one in enumerate(self._columns):
            value, fault = self._column(image, otherwise, one, is_old=is_old)
            values.append(f"'c{number}', {value}")
            faults += fault
        bad = f"CASE {' '.join(faults)} END" if faults else "CAST(NULL AS STRING)"
        there = f"{image.sql} IS NOT NULL"
        if otherwise is not None:
            there += f" OR {otherwise.sql} IS NOT NULL"
        return f"CASE WHEN {there} THEN named_struct('bad', {bad}, {', '.join(values)}) END"

    def _column(
        self, image: Image, otherwise: Image | None, one: StructField, *, is_old: bool
    ) -> tuple[str, list[str]]:
        """SQL of a column's value, and the branches of CASE that say what is wrong with it."""
        name, kind = one.name, one.dataType
        empty = f"CAST(NULL AS {type_sql(kind)})"
        raw = image.raw(name)
        if otherwise is not None:
            under = otherwise.raw(name)
            if raw is None:
                raw = under
            elif under is not None:
                raw = f"coalesce({raw[0]}, {under[0]})", raw[1]
        if raw is None:
            return empty, []
        sql, given = raw
        text = text_of(sql, given)
        value = self._values.convert(sql, given, kind)
        faults = [] if is_old or self._absent == "null" else [
            f"WHEN {image.lacks(name)} THEN {literal(f'it has no column {name}')}"
        ]  # fmt: skip
        if self._found.unavailable:
            unknown = f"coalesce({_is_unavailable(self._found.unavailable, text)}, false)"
            value = f"CASE WHEN {unknown} THEN {empty} ELSE {value} END"
            if not is_old and self._absent == "error":
                faults.append(
                    f"WHEN {unknown} THEN "
                    + literal(f"its value of the column {name} is not available")
                )
            text = f"CASE WHEN NOT {unknown} THEN {text} END"
        if isinstance(given, VariantType):
            rounded = literal(f"a number of the column {name} has more digits than Spark reads: ")
            faults.append(f"WHEN {_is_rounded(sql, text, kind)} THEN concat({rounded}, {text})")
        said = literal(f"the value of the column {name} is no {kind.simpleString().upper()}: ")
        bad = f"{text} IS NOT NULL AND {value} IS NULL"
        return value, [*faults, f"WHEN {bad} THEN concat({said}, left({text}, 100))"]


def _is_unavailable(mark: str, text: str) -> str:
    """SQL: whether a text is the mark of an unchanged value, in the form of any column type.

    Columns may be texts, bytes, UUIDs, arrays of these and of integers, and maps (hstore).
    """
    data = mark.encode()
    of_bytes = base64.b64encode(data).decode()
    of_uuid = uuid.UUID(bytes=hashlib.md5(data).digest(), version=3)
    arrays = ([mark], [of_bytes], [str(of_uuid)], list(data), {mark: mark})
    nested = (json.dumps(one, separators=(",", ":")) for one in arrays)
    forms = (mark, of_bytes, data.hex(), *nested)
    return f"{text} IN ({', '.join(map(literal, forms))})"


def _is_rounded(sql: str, text: str, kind: DataType) -> str:
    """SQL: whether a number that Spark may have rounded is in a value that must be exact.

    A FLOAT or DOUBLE rounds every number, but must not become infinite.
    """
    rounded = f"{_PREFIX}long AND schema_of_variant({sql}) RLIKE 'DOUBLE'"
    if isinstance(kind, FloatType | DoubleType):
        rounded += f" AND {text} RLIKE 'Infinity'"
    return rounded


def _split(columns: Sequence[StructField], keys: Sequence[int]) -> str:
    """SQL of the rows of a record: two if it changes the key, else one."""
    op, before, after = f"{_PREFIX}op", f"{_PREFIX}before", f"{_PREFIX}after"
    one = f"named_struct('op', {op}, 'r', CASE WHEN {op} = 'delete' THEN {before} ELSE {after} END)"
    if not keys:
        return f"array({one})"
    # A key that the image before lacks has not changed.
    moved = " OR ".join(
        f"({before}.c{key} IS NOT NULL AND NOT {before}.c{key} <=> {after}.c{key})" for key in keys
    )
    parts = ", ".join(
        f"'c{i}', {f'coalesce({before}.c{i}, {after}.c{i})' if i in keys else f'{before}.c{i}'}"
        for i in range(len(columns))
    )
    old = f"named_struct('op', 'delete', 'r', named_struct('bad', {before}.bad, {parts}))"
    return f"CASE WHEN {op} = 'update' AND ({moved}) THEN array({old}, {one}) ELSE array({one}) END"


def _fault(format: str, held: dict[str, Image]) -> str:
    """SQL that says what is wrong with a record as a whole, or NULL."""
    op = f"{_PREFIX}op"
    old = " AND ".join(f"{one.sql} IS NULL" for name, one in held.items() if name != "after")
    broken = " OR ".join(f"({one.sql}_there AND {one.sql} IS NULL)" for one in held.values())
    return (
        f"CASE WHEN {op} = '' THEN NULL "
        f"WHEN {_PREFIX}unparsed THEN 'it is no JSON' "
        f"WHEN {broken} THEN 'the image of its row is no object, or has two names that differ in "
        "case only' "
        f"WHEN {op} IS NULL THEN {literal(f'it has no {FORMATS[format].MARK} that is known')} "
        f"WHEN {op} = 'delete' AND {old} THEN 'it is a delete without the row before it' "
        f"WHEN {op} IN ('insert', 'update', 'snapshot') AND {held['after'].sql} IS NULL "
        f"THEN 'it has no row' ELSE {_PREFIX}fault END"
    )


def _is_good(format: str, absent: str) -> str:
    """SQL of the filter: false for what is no change; it fails at a record that is bad."""
    advice = "" if absent == "null" else (
        " (if the tool leaves out columns that did not change, absent='null' makes them NULL, and "
        "IGNORE NULL UPDATES of AUTO CDC keeps their old values)"
    )  # fmt: skip
    fault = f"coalesce({_PREFIX}fault, {_PREFIX}before.bad, {_PREFIX}row.r.bad)"
    record = f"coalesce(concat(': ', {_PREFIX}excerpt), '')"
    told = f"concat({fault}, {literal(advice)}, {record})"
    return (
        f"CASE WHEN {_PREFIX}op = '' THEN false WHEN {fault} IS NOT NULL "
        f"THEN {malformed(format, told)} ELSE true END"
    )


def malformed(format: str, told: str) -> str:
    """SQL that fails the query at a record. ``told``: SQL of what is wrong."""
    start = literal(f"A record of {format} cannot be read: ")
    return raise_dynamic_sql("CHANGE_RECORD_MALFORMED", "22023", f"concat({start}, {told})")
