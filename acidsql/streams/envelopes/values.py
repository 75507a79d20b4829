"""SQL that turns a value of a record into the type of a column: exactly, or not at all.

A value becomes NULL if it is not exactly one of the column's type; the caller takes this for an
error. Spark's own casts would round ``1.239`` to ``1.24``, cut ``1.5`` to ``1``, drop the zone of a
time, and read a TIME as a time of today.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from acidsql.storage.columns import literal, quote
from acidsql.storage.spark.type_sql import type_sql
from acidsql.streams.envelopes.parts import lower_names, named, parsed

_DAY = "[-+]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = "[ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]{0,6}0*)?)?"  # Spark has microseconds
_MIDNIGHT = "[ T]0{1,2}:0{1,2}(:0{1,2}([.]0*)?)?"
_UTC = " ?(Z|UTC|GMT|[-+]00:?00)"
_ZONE = " ?([A-Za-z]|[-+][0-9]).*"
_DAYS = (-719162, 2932896)  # from the year 1 to 9999; a number beyond is no number of days
_NESTED = ArrayType | MapType | StructType


def text_of(sql: str, given: DataType) -> str:
    """SQL of a value as a text; a nested value as JSON."""
    if isinstance(given, _NESTED):
        return f"to_json({sql}, map('ignoreNullFields', 'false'))"
    return f"CAST({sql} AS STRING)"


@dataclass(frozen=True, slots=True)
class Values:
    """How the values of one format are read.

    Attributes:
        days: Whether a whole number for a DATE is the days since 1970.
        binary: How a text has bytes: ``base64`` or ``hex``.
    """

    days: bool
    binary: str

    def convert(self, sql: str, given: DataType, kind: DataType, depth: int = 0) -> str:
        """SQL of a value in another type; NULL if it is not exactly one of this type."""
        if given == kind:
            return sql
        if isinstance(kind, _NESTED):
            return self._nested(sql, given, kind, depth)
        if isinstance(kind, VariantType):
            return f"try_cast({sql} AS VARIANT)"
        text = text_of(sql, given)
        if isinstance(kind, BinaryType):
            return self._binary(sql, given, text)
        if isinstance(given, BinaryType):
            is_string = isinstance(kind, StringType)
            return f"CASE WHEN is_valid_utf8({text}) THEN {text} END" if is_string else _null(kind)
        if isinstance(kind, NumericType):
            if isinstance(given, BooleanType):
                text = f"CAST(CAST({sql} AS INT) AS STRING)"
            return _float(text, kind) if isinstance(kind, FractionalType) and not isinstance(
                kind, DecimalType
            ) else _exact(text, kind)  # fmt: skip
        if isinstance(kind, DateType):
            return self._date(text)
        if isinstance(kind, TimestampType | TimestampNTZType):
            return _timestamp(text, kind)
        return f"try_cast({text} AS {type_sql(kind)})"

    def _binary(self, sql: str, given: DataType, text: str) -> str:
        is_text = "true" if isinstance(given, StringType) else "false"
        if isinstance(given, VariantType):
            is_text = f"schema_of_variant({sql}) = 'STRING'"
        return f"CASE WHEN {is_text} THEN try_to_binary({text}, '{self.binary}') END"

    def _date(self, text: str) -> str:
        days = f"try_cast({text} AS INT)"
        low, high = _DAYS
        number = f"CASE WHEN {days} BETWEEN {low} AND {high} THEN date_from_unix_date({days}) END"
        return (
            f"CASE WHEN {_matches(text, '[-+]?[0-9]+')} "
            f"THEN {number if self.days else 'CAST(NULL AS DATE)'} "
            f"WHEN {_matches(text, f'{_DAY}({_MIDNIGHT}({_UTC})?)?')} "
            f"THEN try_cast({text} AS DATE) END"
        )

    # ── nested values ────────────────────────────────────────────────────────────────────────

    def _nested(self, sql: str, given: DataType, kind: DataType, depth: int) -> str:
        if isinstance(given, StringType):
            sql, given = parsed(sql), VariantType()
        if isinstance(kind, ArrayType):
            return self._array(sql, given, kind, depth)
        if isinstance(kind, MapType):
            return self._map(sql, given, kind, depth)
        assert isinstance(kind, StructType)
        return self._struct(sql, given, kind, depth)

    def _array(self, sql: str, given: DataType, kind: ArrayType, depth: int) -> str:
        if isinstance(given, VariantType):
            sql, given = f"try_cast({sql} AS ARRAY<VARIANT>)", ArrayType(VariantType())
        if not isinstance(given, ArrayType):
            return _null(kind)
        item, of = f"__acidsql_x{depth}", given.elementType
        value = self.convert(item, of, kind.elementType, depth + 1)
        return (
            f"CASE WHEN forall({sql}, {item} -> {_is_kept(item, of, value)}) "
            f"THEN transform({sql}, {item} -> {value}) END"
        )

    def _map(self, sql: str, given: DataType, kind: MapType, depth: int) -> str:
        if isinstance(given, VariantType):
            sql, given = f"try_cast({sql} AS MAP<STRING, VARIANT>)", MapType(
                StringType(), VariantType()
            )  # fmt: skip
        if not isinstance(given, MapType):
            return _null(kind)
        item = f"__acidsql_x{depth}"
        key = self.convert(f"{item}.key", given.keyType, kind.keyType, depth + 1)
        value = self.convert(f"{item}.value", given.valueType, kind.valueType, depth + 1)
        kept = f"{key} IS NOT NULL AND {_is_kept(f'{item}.value', given.valueType, value)}"
        entries = f"transform(map_entries({sql}), {item} -> struct({key}, {value}))"
        return (
            f"CASE WHEN forall(map_entries({sql}), {item} -> {kept}) "
            f"THEN map_from_entries({entries}) END"
        )

    def _struct(self, sql: str, given: DataType, kind: StructType, depth: int) -> str:
        """The fields go by name, whatever the case; one that JSON leaves out is NULL."""
        kept, values = [f"{sql} IS NOT NULL"], []
        if isinstance(given, VariantType):
            sql = lower_names(sql)
            kept = [f"{sql} IS NOT NULL"]
        elif not isinstance(given, StructType):
            return _null(kind)
        for one in kind:
            if isinstance(given, StructType):
                found = named(given, one.name)
                if found is None:
                    return _null(kind)
                field, of = f"{sql}.{quote(found.name)}", found.dataType
            else:
                field, of = f"try_element_at({sql}, {literal(one.name.lower())})", VariantType()
            value = self.convert(field, of, one.dataType, depth + 1)
            kept.append(_is_kept(field, of, value))
            values.append(f"{literal(one.name)}, {value}")
        return f"CASE WHEN {' AND '.join(kept)} THEN named_struct({', '.join(values)}) END"


def _null(kind: DataType) -> str:
    return f"CAST(NULL AS {type_sql(kind)})"


def _is_kept(sql: str, given: DataType, value: str) -> str:
    """SQL: whether a value is NULL, or is not NULL after its conversion."""
    null = f" OR is_variant_null({sql})" if isinstance(given, VariantType) else ""
    return f"({sql} IS NULL{null} OR {value} IS NOT NULL)"


def _matches(text: str, pattern: str) -> str:
    return f"{text} RLIKE {literal(f'^ *{pattern} *$')}"


# ── numbers and times ────────────────────────────────────────────────────────────────────────


def _exact(text: str, kind: DataType) -> str:
    """SQL of a decimal or a whole number. A number with an exponent has at most 17 digits."""
    scale = kind.scale if isinstance(kind, DecimalType) else 0
    value = f"try_cast({text} AS {type_sql(kind)})"
    if isinstance(kind, IntegralType):
        value = f"try_cast(try_cast({text} AS DECIMAL(38,0)) AS {type_sql(kind)})"
    plain = _matches(text, f"[-+]?[0-9]*([.][0-9]{{0,{scale}}}0*)?")
    same = f"CAST({value} AS DOUBLE) = try_cast({text} AS DOUBLE)"
    return f"CASE WHEN {plain} OR ({text} RLIKE '[eE]' AND {same}) THEN {value} END"


def _float(text: str, kind: DataType) -> str:
    """SQL of a floating number. Spark reads a number that is too large as infinite, and 1d as 1."""
    value = f"try_cast({text} AS {type_sql(kind)})"
    infinite = f"abs({value}) = CAST('Infinity' AS DOUBLE) AND NOT {text} RLIKE '[iI][nN][fF]'"
    suffixed = f"{text} RLIKE {literal('[0-9.][dDfF] *$')}"
    return f"CASE WHEN NOT ({suffixed}) AND NOT coalesce({infinite}, false) THEN {value} END"


def _timestamp(text: str, kind: DataType) -> str:
    """SQL of a time.

    A wall clock takes a zone only if it is UTC, because other zones would be dropped. A point in
    time takes a wall clock only if the session's zone has it: Spark would shift it.
    """
    value, wall = f"try_cast({text} AS {type_sql(kind)})", f"try_cast({text} AS TIMESTAMP_NTZ)"
    if isinstance(kind, TimestampNTZType):
        return f"CASE WHEN {_matches(text, f'{_DAY}({_CLOCK}({_UTC})?)?')} THEN {value} END"
    is_there = f"CAST({value} AS TIMESTAMP_NTZ) = {wall}"
    return (
        f"CASE WHEN {_matches(text, f'{_DAY}{_CLOCK}{_ZONE}')} THEN {value} "
        f"WHEN {_matches(text, f'{_DAY}({_CLOCK})?')} AND {is_there} THEN {value} END"
    )
