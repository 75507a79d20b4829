"""CLUSTERED BY: the bucket of each row, for whole Arrow arrays at a time.

``bucket = (hash & 0x7FFFFFFF) mod buckets``. For several columns ``h = 31·h + hash(column)``; NULL
hashes to 0. The table property ``bucketing_version`` says which of two hashes a table uses. Both
hashes must be exact: Hive 4 prunes by bucket, so it does not find a row in a wrong bucket.

Source: Hive ``ObjectInspectorUtils.getBucketNumber``, ``Murmur3``; vectors in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import FormatError
from acidsql.storage.writing.buckets.bucket_bytes import (
    big_endian,
    big_integer_hashes,
    decimal_bytes,
    java_polynomial,
    murmur3,
    normalized_decimals,
    split_micros,
    string_bytes,
    timestamp_bytes,
)

Hashes = npt.NDArray[np.int32]


def bucket_ids(
    columns: Sequence[pa.Array], hive_types: Sequence[str], num_buckets: int, version: int
) -> npt.NDArray[np.int32]:
    """Return the bucket id of each row.

    Args:
        columns: The CLUSTERED BY columns in order, in the Arrow types of ``row_schema.arrow_type``.
        hive_types: Their types in Hive's words.
        num_buckets: INTO n BUCKETS.
        version: The table's ``bucketing_version``, 1 or 2.

    Raises:
        FormatError: The version is unknown, or a type has no defined hash (binary in version 2).
    """
    combined: Hashes = np.zeros(len(columns[0]), dtype=np.int32)
    with np.errstate(over="ignore"):
        for column, text in zip(columns, hive_types, strict=True):
            combined = combined * np.int32(31) + hashes(column, parse_type(text), version)
    return (combined & np.int32(0x7FFFFFFF)) % np.int32(num_buckets)


def hashes(array: pa.Array, hive_type: HiveType, version: int) -> Hashes:
    """Return the 32-bit hash of each value, as Hive computes it for CLUSTERED BY; 0 for NULL.
    Raises FormatError for an unknown version, and for BINARY in version 2.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    with np.errstate(over="ignore"):
        hashes_of_values = _hash_function(hive_type.kind, version)(array, hive_type, version)
    hashes_of_values[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes_of_values


_Hash = Callable[[pa.Array, HiveType, int], Hashes]


def _hash_function(kind: str, version: int) -> _Hash:
    """Return the function that hashes values of a type. Raises FormatError for an unknown version,
    and for BINARY in version 2.
    """
    if version not in (1, 2):
        raise FormatError(f"bucketing version {version} is unknown", version=version)
    if kind == "binary" and version == 2:
        raise FormatError(
            "Hive's bucketing version 2 has no defined hash of BINARY: no table can be "
            "clustered by it",
            condition="UNSUPPORTED_DATATYPE",
            sqlstate="0A000",
        )
    return _HASHES[kind]


def _numpy_values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the values in numpy, as this type; days of dates and microseconds of timestamps. NULL
    gets any value, because its hash is set to 0 in the end.
    """
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False).astype(dtype)
    return values


def _fold_long(values: npt.NDArray[np.int64]) -> Hashes:
    """Return Java's ``(int) (v >>> 32 ^ v)`` of each value."""
    bits = values.view(np.uint64)
    return (bits >> np.uint64(32) ^ bits).astype(np.uint32).view(np.int32)


def _hash_small(array: pa.Array, _: HiveType, __: int) -> Hashes:
    """Return the hashes of BOOLEANs and TINYINTs: the numbers themselves."""
    return _numpy_values(array, np.int32).astype(np.int32)


def _hash_smallint(array: pa.Array, _: HiveType, version: int) -> Hashes:
    """Return the hashes of SMALLINTs: in version 1 the numbers, in version 2 Murmur3 of their two
    big-endian bytes.
    """
    values = _numpy_values(array, np.int16)
    return values.astype(np.int32) if version == 1 else murmur3(big_endian(values, ">i2"))


def _hash_int(array: pa.Array, _: HiveType, version: int) -> Hashes:
    """Return the hashes of INTs and DATEs: in version 1 the numbers, in version 2 Murmur3 of their
    four big-endian bytes.
    """
    values = _numpy_values(array, np.int32)
    return values.astype(np.int32) if version == 1 else murmur3(big_endian(values, ">i4"))


def _hash_bigint(array: pa.Array, _: HiveType, version: int) -> Hashes:
    """Return the hashes of BIGINTs: in version 1 folded (``_fold_long``), in version 2 Murmur3 of
    their eight big-endian bytes.
    """
    values = _numpy_values(array, np.int64).astype(np.int64)
    return _fold_long(values) if version == 1 else murmur3(big_endian(values, ">i8"))


def _hash_float(array: pa.Array, _: HiveType, version: int) -> Hashes:
    """Return the hashes of FLOATs: in version 1 their bits; in version 2 Murmur3 of the bits as an
    int converted to a float (Hive's quirk).
    """
    values = _numpy_values(array, np.float32)
    values[np.isnan(values)] = np.nan  # Java's floatToIntBits knows one NaN only
    bits = values.view(np.int32)
    if version == 1:
        return bits.copy()
    # Hive's quirk: it takes the bits as an int, and converts this int to a float.
    return murmur3(big_endian(bits.astype(np.float32), ">f4"))


def _hash_double(array: pa.Array, _: HiveType, version: int) -> Hashes:
    """Return the hashes of DOUBLEs: in version 1 their bits, folded; in version 2 Murmur3 of the
    bits as a long converted to a double (Hive's quirk).
    """
    values = _numpy_values(array, np.float64)
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    if version == 1:
        return _fold_long(bits)
    return murmur3(big_endian(bits.astype(np.float64), ">f8"))  # the same quirk


def _hash_text(array: pa.Array, hive_type: HiveType, version: int) -> Hashes:
    """Return the hashes of texts: in version 2 Murmur3 of the bytes; in version 1 Java's
    polynomial, which begins with 0 for STRING, and with 1 for CHAR and VARCHAR. The blanks at the
    end of a CHAR do not count.
    """
    if hive_type.kind == "char":
        array = pc.utf8_rtrim(array, characters=" ")
    rows = string_bytes(array)
    if version == 2:
        return murmur3(rows)
    return java_polynomial(rows, start=0 if hive_type.kind == "string" else 1)


def _hash_timestamp(array: pa.Array, _: HiveType, version: int) -> Hashes:
    """Return the hashes of timestamps: in version 2 Murmur3 of Hive's bytes; in version 1 the
    seconds, shifted by 30 bits, and the nanoseconds, folded. Version 1 takes the wall clock as UTC,
    where Hive takes the JVM's zone.
    """
    seconds, nanos = split_micros(_numpy_values(array, np.int64).astype(np.int64))
    if version == 2:
        return murmur3(timestamp_bytes(seconds, nanos))
    # Hive 3 and 4 take the seconds in the JVM's zone. We take UTC, the zone of stored wall clocks.
    return _fold_long(seconds << np.int64(30) | nanos)


def _hash_decimal(array: pa.Array, hive_type: HiveType, version: int) -> Hashes:
    """Return the hashes of decimals, without zeros at the end of the fraction: in version 2 Murmur3
    of the unscaled value's bytes; in version 1 Java's ``BigDecimal.hashCode``.
    """
    decimals = normalized_decimals(array, hive_type.parameters[1])
    if version == 2:
        return murmur3(decimal_bytes(decimals))
    # This is BigDecimal.hashCode of the normalised value.
    return big_integer_hashes(decimals) * np.int32(31) + decimals.scales


def _hash_binary(array: pa.Array, _: HiveType, __: int) -> Hashes:
    return java_polynomial(string_bytes(array), start=1)


def _hash_array(array: pa.Array, hive_type: HiveType, version: int) -> Hashes:
    """Return the hash of each array: ``h = 31·h + hash(element)`` from 0, in 32 bits; 0 for NULL
    and for an empty array. ``version``: which hash the elements get."""
    starts, lengths = _list_bounds(array)
    element_hashes = hashes(array.values, hive_type.children[0], version)
    combined = np.zeros(len(array), dtype=np.int32)
    active = np.nonzero(lengths > 0)[0]
    position = 0
    while len(active):
        combined[active] = (
            combined[active] * np.int32(31) + element_hashes[starts[active] + position]
        )
        position += 1
        active = active[lengths[active] > position]
    return combined


def _hash_map(array: pa.Array, hive_type: HiveType, version: int) -> Hashes:
    """Return the hashes of maps: the sum of key's hash XOR value's hash. Values are hashed by
    version 1 always, as in Hive.
    """
    starts, lengths = _list_bounds(array)
    keys = hashes(array.keys, hive_type.children[0], version)
    # As in Hive (an oversight there): a map's values are always hashed by version 1.
    pairs = keys ^ hashes(array.items, hive_type.children[1], 1)
    sums = np.concatenate(([0], np.cumsum(pairs.astype(np.int64))))
    total = sums[starts + lengths] - sums[starts]
    folded: Hashes = (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return folded


def _hash_struct(array: pa.Array, hive_type: HiveType, version: int) -> Hashes:
    """Return the hashes of structs: ``h = 31·h + hash(field)``."""
    combined = np.zeros(len(array), dtype=np.int32)
    for position, child in enumerate(hive_type.children):
        combined = combined * np.int32(31) + hashes(array.field(position), child, version)
    return combined


def _list_bounds(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the start of each list (or map) in the values, and its length (0 for NULL)."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(offsets)
    lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return offsets[:-1], lengths


_HASHES: dict[str, _Hash] = {
    "boolean": _hash_small,
    "tinyint": _hash_small,
    "smallint": _hash_smallint,
    "int": _hash_int,
    "date": _hash_int,
    "bigint": _hash_bigint,
    "float": _hash_float,
    "double": _hash_double,
    "string": _hash_text,
    "varchar": _hash_text,
    "char": _hash_text,
    "timestamp": _hash_timestamp,
    "decimal": _hash_decimal,
    "binary": _hash_binary,
    "array": _hash_array,
    "map": _hash_map,
    "struct": _hash_struct,
}
