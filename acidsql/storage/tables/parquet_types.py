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


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type as Parquet stores it, nested types too: no dictionaries, no large or view
    types, each kind of list as ``list``. Other types are returned as they are. Arrow has several
    types for one (``large_string``, dictionaries …), and the file notes which.
    """
    is_a = pa.types
    if is_a.is_dictionary(kind):
        return plain_type(kind.value_type)
    if is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return pa.string()
    if is_a.is_large_binary(kind) or is_a.is_binary_view(kind):
        return pa.binary()
    if is_a.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if is_a.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    return pa.list_(plain_type(kind.value_type)) if _is_list(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    is_a = pa.types
    list_checks = (is_a.is_list, is_a.is_large_list, is_a.is_fixed_size_list, is_a.is_list_view)
    return any(is_list(kind) for is_list in (*list_checks, is_a.is_large_list_view))


def hive_type(kind: pa.DataType) -> str | None:
    """Return Hive's type text for a result of ``plain_type``; None if Hive has no such type, also
    inside of a nested one. Timestamps are of milliseconds or microseconds.
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    child_types = [hive_type(kind.field(i).type) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        child_types = [hive_type(kind.key_type), hive_type(kind.item_type)]
    if None in child_types or not child_types:
        return None if child_types else _HIVE_TYPES.get(kind)
    if pa.types.is_struct(kind):
        pairs = zip(kind, child_types, strict=True)
        return f"struct<{','.join(f'{field.name}:{text}' for field, text in pairs)}>"
    return f"{'map' if pa.types.is_map(kind) else 'array'}<{','.join(map(str, child_types))}>"


def parquet_misfit(file: pa.Schema, table: RowSchema) -> str | None:
    """Return why a file with these columns does not fit the table; None if it fits. The reason is
    that of the first column whose type does not fit (``_fits``), or of the names.

    Columns are matched by name, ignoring case. Missing columns fit: their values are NULL. But two
    columns of one name do not fit, nor does a file that has columns, and none of the table's.
    """
    try:
        places = places_of_fields(table.names, file.names)
    except FormatError as error:
        return error.message
    for place, field, column_type in zip(places, table.struct, table.types, strict=True):
        if place is not None:
            file_type = plain_type(file.field(place).type)
            if not _fits(file_type, field.type):
                file_type_name = hive_type(file_type) or str(file_type)
                column = file.names[place]
                return (
                    f"its column '{column}' is of type {file_type_name}, "
                    f"the table's of {column_type}"
                )
    return None


def _fits(file_type: pa.DataType, table_type: pa.DataType) -> bool:
    """Whether Spark's reader and a compaction read values of a file's type as the table's type
    alike.

    The same type fits, and integers as ``_fits_integer`` says. A decimal fits one with no fewer
    digits on either side of the point, FLOAT fits DOUBLE, STRING and BINARY fit each other, DATE
    and milliseconds fit a timestamp of microseconds, and bytes of a fixed size fit BINARY. Of
    lists, maps and structs the parts must fit. Fields of structs are matched by name, ignoring
    case; missing ones fit unless all are missing.
    """
    is_a = pa.types
    if file_type == table_type:
        return True
    if is_a.is_struct(file_type) and is_a.is_struct(table_type):
        try:
            places = places_of_fields([f.name for f in table_type], [f.name for f in file_type])
        except FormatError:
            return False
        pairs = [
            (file_type.field(i), table_field)
            for i, table_field in zip(places, table_type, strict=True)
            if i is not None
        ]
        return all(_fits(file_field.type, table_field.type) for file_field, table_field in pairs)
    if is_a.is_map(file_type) and is_a.is_map(table_type):
        return _fits(file_type.key_type, table_type.key_type) and _fits(
            file_type.item_type, table_type.item_type
        )
    if is_a.is_list(file_type) and is_a.is_list(table_type):
        return _fits(file_type.value_type, table_type.value_type)
    if is_a.is_integer(file_type):
        return _fits_integer(file_type, table_type)
    if is_a.is_decimal(file_type) and is_a.is_decimal(table_type):
        more = table_type.scale - file_type.scale
        return bool(0 <= more <= table_type.precision - file_type.precision)
    texts = (pa.string(), pa.binary())
    wider = {
        pa.float32(): (pa.float64(),),
        pa.string(): texts,
        pa.binary(): texts,
        pa.date32(): (pa.timestamp("us"),),
        pa.timestamp("ms"): (pa.timestamp("us"),),
    }
    return table_type in wider.get(file_type, ()) or (
        is_a.is_fixed_size_binary(file_type) and table_type == pa.binary()
    )


def _fits_integer(file_type: pa.DataType, table_type: pa.DataType) -> bool:
    """Whether integers can be read as the table's type: an integer as wide, where unsigned ones
    need one bit more; for signed ones also a decimal with 10 digits before the point (20 for 64
    bits), or for up to 32 bits DOUBLE.
    """
    is_signed = pa.types.is_signed_integer(file_type)
    if pa.types.is_integer(table_type):
        return bool(file_type.bit_width + (not is_signed) <= table_type.bit_width)
    if not is_signed:
        return False
    if pa.types.is_decimal(table_type):
        return bool(
            table_type.precision - table_type.scale >= _DIGITS[max(file_type.bit_width, 32)]
        )
    return bool(table_type == pa.float64() and file_type.bit_width <= 32)
