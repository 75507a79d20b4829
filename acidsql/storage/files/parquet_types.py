"""Which types of a Parquet file fit which types of a table.

Those that Spark's reader and a compaction read alike. For other pairs the reader fails, or it shows
wrong values: the last byte of an INT for a TINYINT, days for an INT. This module runs in workers.
"""

from __future__ import annotations

import pyarrow as pa

from acidsql.errors import FormatError
from acidsql.storage.orc.row_schema import RowSchema, places_of_fields

_HIVE_TYPES = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", pa.date32(): "date",
    pa.timestamp("us"): "timestamp", pa.timestamp("ms"): "timestamp",
}  # fmt: skip
_DIGITS = {32: 10, 64: 20}  # of an integer's bits, as Spark counts them


def plain(kind: pa.DataType) -> pa.DataType:
    """The type as Parquet stores it. Arrow has several types for one, and the file notes which."""
    is_a = pa.types
    if is_a.is_dictionary(kind):
        return plain(kind.value_type)
    if is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return pa.string()
    if is_a.is_large_binary(kind) or is_a.is_binary_view(kind):
        return pa.binary()
    if is_a.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if is_a.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    return pa.list_(plain(kind.value_type)) if _is_list(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    is_a = pa.types
    some = (is_a.is_list, is_a.is_large_list, is_a.is_fixed_size_list, is_a.is_list_view)
    return any(is_one(kind) for is_one in (*some, is_a.is_large_list_view))


def hive_type(kind: pa.DataType) -> str | None:
    """Hive's type for a plain type; None if Hive has no such type."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    below = [hive_type(kind.field(i).type) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        below = [hive_type(kind.key_type), hive_type(kind.item_type)]
    if None in below or not below:
        return None if below else _HIVE_TYPES.get(kind)
    if pa.types.is_struct(kind):
        pairs = zip(kind, below, strict=True)
        return f"struct<{','.join(f'{field.name}:{text}' for field, text in pairs)}>"
    return f"{'map' if pa.types.is_map(kind) else 'array'}<{','.join(map(str, below))}>"


def misfit(file: pa.Schema, table: RowSchema) -> str | None:
    """Why a file with these columns does not fit the table; None if it fits.

    Columns are matched by name, ignoring case. Missing columns fit: their values are NULL.
    """
    try:
        places = places_of_fields(table.names, file.names)
    except FormatError as error:
        return error.message
    for place, field, wanted in zip(places, table.struct, table.types, strict=True):
        if place is not None:
            found = plain(file.field(place).type)
            if not _fits(found, field.type):
                own = hive_type(found) or str(found)
                return f"its column '{file.names[place]}' is of type {own}, the table's of {wanted}"
    return None


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    is_a = pa.types
    if found == wanted:
        return True
    if is_a.is_struct(found) and is_a.is_struct(wanted):
        try:
            places = places_of_fields([f.name for f in wanted], [f.name for f in found])
        except FormatError:
            return False
        pairs = [
            (found.field(i), one) for i, one in zip(places, wanted, strict=True) if i is not None
        ]
        return all(_fits(own.type, one.type) for own, one in pairs)
    if is_a.is_map(found) and is_a.is_map(wanted):
        return _fits(found.key_type, wanted.key_type) and _fits(found.item_type, wanted.item_type)
    if is_a.is_list(found) and is_a.is_list(wanted):
        return _fits(found.value_type, wanted.value_type)
    if is_a.is_integer(found):
        return _fits_integer(found, wanted)
    if is_a.is_decimal(found) and is_a.is_decimal(wanted):
        more = wanted.scale - found.scale
        return bool(0 <= more <= wanted.precision - found.precision)
    texts = (pa.string(), pa.binary())
    wider = {
        pa.float32(): (pa.float64(),),
        pa.string(): texts,
        pa.binary(): texts,
        pa.date32(): (pa.timestamp("us"),),
        pa.timestamp("ms"): (pa.timestamp("us"),),
    }
    return wanted in wider.get(found, ()) or (
        is_a.is_fixed_size_binary(found) and wanted == pa.binary()
    )


def _fits_integer(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether integers can be read as a wider type; unsigned ones need one bit more."""
    is_signed = pa.types.is_signed_integer(found)
    if pa.types.is_integer(wanted):
        return bool(found.bit_width + (not is_signed) <= wanted.bit_width)
    if not is_signed:
        return False
    if pa.types.is_decimal(wanted):
        return bool(wanted.precision - wanted.scale >= _DIGITS[max(found.bit_width, 32)])
    return bool(wanted == pa.float64() and found.bit_width <= 32)
