"""SQL that converts a value of a record to the type of a column: exactly, or to NULL.

A value becomes NULL if the column's type does not have exactly this value; the caller reports an
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
from acidsql.streams.envelopes.parts import find_field, image_by_lower_names, parsed_json

_DAY = "[-+]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = "[ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]{0,6}0*)?)?"  # Spark has microseconds
_MIDNIGHT = "[ T]0{1,2}:0{1,2}(:0{1,2}([.]0*)?)?"
_UTC = " ?(Z|UTC|GMT|[-+]00:?00)"
_ZONE = " ?([A-Za-z]|[-+][0-9]).*"
_DAYS = (-719162, 2932896)  # from the year 1 to 9999; a number beyond is no number of days
_NESTED = ArrayType | MapType | StructType


def text_sql(sql: str, source_type: DataType) -> str:
    """Return SQL of a value as a text; a nested value as JSON."""
    if isinstance(source_type, _NESTED):
        return f"to_json({sql}, map('ignoreNullFields', 'false'))"
    return f"CAST({sql} AS STRING)"


@dataclass(frozen=True, slots=True)
class ValueConverter:
    """Converts the values of one format to the types of columns.

    Attributes:
        days: Whether a whole number for a DATE is the days since 1970.
        binary: The encoding of bytes as a text: ``base64`` or ``hex``.
    """

    days: bool
    binary: str

    def convert(
        self, sql: str, source_type: DataType, target_type: DataType, depth: int = 0
    ) -> str:
        """Return SQL of a value in another type; NULL if that type does not have exactly this value
        (a FLOAT or DOUBLE may be rounded). The same type is not converted. A BOOLEAN as a number is
        0 or 1. A BINARY becomes a STRING (if it is valid UTF-8) or a VARIANT, nothing else.

        Args:
            sql: SQL of the value.
            source_type: The type of ``sql``.
            target_type: The type to convert to.
            depth: How many lambda functions of SQL are around the value.
        """
        if source_type == target_type:
            return sql
        if isinstance(target_type, _NESTED):
            return self._nested_sql(sql, source_type, target_type, depth)
        if isinstance(target_type, VariantType):
            return f"try_cast({sql} AS VARIANT)"
        text = text_sql(sql, source_type)
        if isinstance(target_type, BinaryType):
            return self._binary_sql(sql, source_type, text)
        if isinstance(source_type, BinaryType):
            is_string = isinstance(target_type, StringType)
            return (
                f"CASE WHEN is_valid_utf8({text}) THEN {text} END"
                if is_string
                else _null_sql(target_type)
            )
        if isinstance(target_type, NumericType):
            if isinstance(source_type, BooleanType):
                text = f"CAST(CAST({sql} AS INT) AS STRING)"
            return (
                _float_sql(text, target_type)
                if isinstance(target_type, FractionalType)
                and not isinstance(target_type, DecimalType)
                else _number_sql(text, target_type)
            )
        if isinstance(target_type, DateType):
            return self._date_sql(text)
        if isinstance(target_type, TimestampType | TimestampNTZType):
            return _timestamp_sql(text, target_type)
        return f"try_cast({text} AS {type_sql(target_type)})"

    def _binary_sql(self, sql: str, source_type: DataType, text: str) -> str:
        """Return SQL of the bytes that ``text`` is when decoded from base64 or hex; NULL if the
        value ``sql`` is neither a STRING nor a text of JSON, or ``text`` cannot be decoded.
        ``text``: SQL of the value as a STRING."""
        is_text = "true" if isinstance(source_type, StringType) else "false"
        if isinstance(source_type, VariantType):
            is_text = f"schema_of_variant({sql}) = 'STRING'"
        return f"CASE WHEN {is_text} THEN try_to_binary({text}, '{self.binary}') END"

    def _date_sql(self, text: str) -> str:
        """Return SQL of a text as a DATE: a day, perhaps with a midnight, or a number of days since
        1970 if the format has such. NULL for all else."""
        days = f"try_cast({text} AS INT)"
        low, high = _DAYS
        number = f"CASE WHEN {days} BETWEEN {low} AND {high} THEN date_from_unix_date({days}) END"
        return (
            f"CASE WHEN {_matches_sql(text, '[-+]?[0-9]+')} "
            f"THEN {number if self.days else 'CAST(NULL AS DATE)'} "
            f"WHEN {_matches_sql(text, f'{_DAY}({_MIDNIGHT}({_UTC})?)?')} "
            f"THEN try_cast({text} AS DATE) END"
        )

    # ── nested values ────────────────────────────────────────────────────────────────────────

    def _nested_sql(
        self, sql: str, source_type: DataType, target_type: DataType, depth: int
    ) -> str:
        """Return SQL of a value as an array, map or struct; a text is parsed as JSON into a
        VARIANT. NULL of the target type if the value does not fit, or one of its parts does not."""
        if isinstance(source_type, StringType):
            sql, source_type = parsed_json(sql), VariantType()
        if isinstance(target_type, ArrayType):
            return self._array_sql(sql, source_type, target_type, depth)
        if isinstance(target_type, MapType):
            return self._map_sql(sql, source_type, target_type, depth)
        assert isinstance(target_type, StructType)
        return self._struct_sql(sql, source_type, target_type, depth)

    def _array_sql(
        self, sql: str, source_type: DataType, target_type: ArrayType, depth: int
    ) -> str:
        """Return SQL of a value as an array. A VARIANT, the form of JSON, is converted if it is an
        array. NULL of the target type if ``source_type`` is neither ARRAY nor VARIANT, or an
        element does not fit; a NULL element fits."""
        if isinstance(source_type, VariantType):
            sql, source_type = f"try_cast({sql} AS ARRAY<VARIANT>)", ArrayType(VariantType())
        if not isinstance(source_type, ArrayType):
            return _null_sql(target_type)
        element, element_type = f"__acidsql_x{depth}", source_type.elementType
        value = self.convert(element, element_type, target_type.elementType, depth + 1)
        return (
            f"CASE WHEN "
            f"forall({sql}, {element} -> {_is_convertible_sql(element, element_type, value)}) "
            f"THEN transform({sql}, {element} -> {value}) END"
        )

    def _map_sql(self, sql: str, source_type: DataType, target_type: MapType, depth: int) -> str:
        """Return SQL of a value as a map. A VARIANT, the form of JSON, is converted if it is an
        object. NULL of the target type if ``source_type`` is neither MAP nor VARIANT, a key becomes
        NULL, or a value does not fit; a NULL value fits. Two keys that become equal are as in
        Spark's ``map_from_entries``, by default an error of the query."""
        if isinstance(source_type, VariantType):
            sql, source_type = (
                f"try_cast({sql} AS MAP<STRING, VARIANT>)",
                MapType(StringType(), VariantType()),
            )
        if not isinstance(source_type, MapType):
            return _null_sql(target_type)
        entry = f"__acidsql_x{depth}"
        key = self.convert(f"{entry}.key", source_type.keyType, target_type.keyType, depth + 1)
        value = self.convert(
            f"{entry}.value", source_type.valueType, target_type.valueType, depth + 1
        )
        is_convertible = (
            f"{key} IS NOT NULL AND "
            f"{_is_convertible_sql(f'{entry}.value', source_type.valueType, value)}"
        )
        entries = f"transform(map_entries({sql}), {entry} -> struct({key}, {value}))"
        return (
            f"CASE WHEN forall(map_entries({sql}), {entry} -> {is_convertible}) "
            f"THEN map_from_entries({entries}) END"
        )

    def _struct_sql(
        self, sql: str, source_type: DataType, target_type: StructType, depth: int
    ) -> str:
        """Return SQL of a value as a struct. NULL of the target type if ``source_type`` is neither
        STRUCT nor VARIANT (the form of JSON), or a field does not fit; a NULL field fits. Fields
        are matched by name in any case. A field that JSON leaves out becomes NULL; a field that a
        struct lacks makes the whole value NULL."""
        conditions, fields = [f"{sql} IS NOT NULL"], []
        if isinstance(source_type, VariantType):
            sql = image_by_lower_names(sql)
            conditions = [f"{sql} IS NOT NULL"]
        elif not isinstance(source_type, StructType):
            return _null_sql(target_type)
        for target_field in target_type:
            if isinstance(source_type, StructType):
                source_field = find_field(source_type, target_field.name)
                if source_field is None:
                    return _null_sql(target_type)
                value_sql, value_type = f"{sql}.{quote(source_field.name)}", source_field.dataType
            else:
                value_sql, value_type = (
                    f"try_element_at({sql}, {literal(target_field.name.lower())})",
                    VariantType(),
                )
            converted = self.convert(value_sql, value_type, target_field.dataType, depth + 1)
            conditions.append(_is_convertible_sql(value_sql, value_type, converted))
            fields.append(f"{literal(target_field.name)}, {converted}")
        return f"CASE WHEN {' AND '.join(conditions)} THEN named_struct({', '.join(fields)}) END"


def _null_sql(target_type: DataType) -> str:
    """Return SQL of a NULL of this type."""
    return f"CAST(NULL AS {type_sql(target_type)})"


def _is_convertible_sql(sql: str, source_type: DataType, converted: str) -> str:
    """Return SQL that is true if a value is NULL (or the null of JSON), or its conversion is not.
    ``sql``: the value; ``converted``: the conversion."""
    null = f" OR is_variant_null({sql})" if isinstance(source_type, VariantType) else ""
    return f"({sql} IS NULL{null} OR {converted} IS NOT NULL)"


def _matches_sql(text: str, pattern: str) -> str:
    """Return SQL that is true if all of a text, but blanks around it, matches the pattern."""
    return f"{text} RLIKE {literal(f'^ *{pattern} *$')}"


# ── numbers and times ────────────────────────────────────────────────────────────────────────


def _number_sql(text: str, target_type: DataType) -> str:
    """Return SQL of a text as a decimal or whole number; NULL if digits would be lost.

    A number with an exponent is converted only if a DOUBLE has the same value.
    """
    scale = target_type.scale if isinstance(target_type, DecimalType) else 0
    value = f"try_cast({text} AS {type_sql(target_type)})"
    if isinstance(target_type, IntegralType):
        value = f"try_cast(try_cast({text} AS DECIMAL(38,0)) AS {type_sql(target_type)})"
    is_plain = _matches_sql(text, f"[-+]?[0-9]*([.][0-9]{{0,{scale}}}0*)?")
    is_same = f"CAST({value} AS DOUBLE) = try_cast({text} AS DOUBLE)"
    return f"CASE WHEN {is_plain} OR ({text} RLIKE '[eE]' AND {is_same}) THEN {value} END"


def _float_sql(text: str, target_type: DataType) -> str:
    """Return SQL of a text as a floating-point number, which may be rounded; NULL for what is none.

    Spark's cast would read a number that is too large as infinite, and ``1d`` as 1; here both are
    NULL. The text ``Infinity`` is infinite.
    """
    value = f"try_cast({text} AS {type_sql(target_type)})"
    is_infinite = f"abs({value}) = CAST('Infinity' AS DOUBLE) AND NOT {text} RLIKE '[iI][nN][fF]'"
    has_suffix = f"{text} RLIKE {literal('[0-9.][dDfF] *$')}"
    return f"CASE WHEN NOT ({has_suffix}) AND NOT coalesce({is_infinite}, false) THEN {value} END"


def _timestamp_sql(text: str, target_type: DataType) -> str:
    """Return SQL of a text as a TIMESTAMP or TIMESTAMP_NTZ; NULL if it is no such time exactly.

    A TIMESTAMP_NTZ takes a text with a zone only if the zone is UTC, because Spark drops the zone.
    A TIMESTAMP takes a text without a zone only if the session's time zone has this wall clock;
    Spark would shift a wall clock in a gap.
    """
    value, wall = (
        f"try_cast({text} AS {type_sql(target_type)})",
        f"try_cast({text} AS TIMESTAMP_NTZ)",
    )
    if isinstance(target_type, TimestampNTZType):
        return f"CASE WHEN {_matches_sql(text, f'{_DAY}({_CLOCK}({_UTC})?)?')} THEN {value} END"
    is_there = f"CAST({value} AS TIMESTAMP_NTZ) = {wall}"
    return (
        f"CASE WHEN {_matches_sql(text, f'{_DAY}{_CLOCK}{_ZONE}')} THEN {value} "
        f"WHEN {_matches_sql(text, f'{_DAY}({_CLOCK})?')} AND {is_there} THEN {value} END"
    )
