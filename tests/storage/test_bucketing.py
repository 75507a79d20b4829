"""Bucket hashes compared with vectors of Hive's own classes, and with tables that Hive wrote."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.acid import bucket_codec
from acidsql.acid.values.types import parse_type
from acidsql.errors import FormatError
from acidsql.storage.orc.row_schema import arrow_type
from acidsql.storage.writing.buckets.bucket_bytes import murmur3, string_bytes
from acidsql.storage.writing.buckets.bucketing import bucket_ids, hashes

GOLDEN = Path(__file__).parent.parent / "golden"
NAN, INF = float("nan"), math.inf
SUPPLEMENTARY = "\U00020ffc\U00020ffd\U00020ffe\U00020fff"

# (type, value, version 1, version 2): hive-format §5.
VECTORS = [
    ("string", "Trino rocks", 1132136730, -399107423),
    ("string", "", 0, -965378730),
    ("varchar(5)", "", 1, -965378730),
    ("string", "test string", -318923937, -138301454),
    ("varchar(15)", "test string", -189841218, -138301454),
    ("string", "强大的Trino引擎", 1688501507, 1784416344),
    ("varchar(20)", "强大的Trino引擎", 1899852420, 1784416344),
    ("string", SUPPLEMENTARY, -1810797254, -697348811),
    ("varchar(20)", SUPPLEMENTARY, -457487557, -697348811),
    ("string", "héllo", -1376354943, 1190235422),
    ("varchar(20)", "trail  ", 675592549, -888616734),
    ("char(20)", "trail  ", 139250341, -1503449657),
    ("smallint", 300, 300, 2107031704),
    ("smallint", -32768, -32768, 1342976838),
    ("smallint", 32767, 32767, -684075052),
    ("tinyint", -7, -7, -7),
    ("boolean", True, 1, 1),
    ("boolean", False, 0, 0),
    ("int", 0, 0, 1362653161),
    ("int", 1, 1, 1321152925),
    ("int", 2, 2, -249917244),
    ("int", 3, 3, 1183246022),
    ("int", -1, -1, 1626716813),
    ("int", 42, 42, 1960085659),
    ("int", 300000, 300000, -678663480),
    ("int", -(2**31), -(2**31), 1194881028),
    ("int", 2**31 - 1, 2**31 - 1, 1133859967),
    ("bigint", 0, 0, 1754797035),
    ("bigint", 1, 1, -913662660),
    ("bigint", -1, 0, -237789309),
    ("bigint", 42, 42, -1236600470),
    ("bigint", 300000000000, -647710651, -888935297),
    ("bigint", -(2**63), -2147483648, 1728983947),
    ("bigint", 2**63 - 1, -2147483648, -536577852),
    ("float", 12.34, 1095069860, -381747602),
    ("float", NAN, 2143289344, -480354314),
    ("float", INF, 2139095040, -292175804),
    ("double", 12.34, 986311098, -2070733568),
    ("double", NAN, 2146959360, 1138026565),
    ("double", INF, 2146435072, 1614292060),
    ("double", 1.5, 1073217536, 76905473),
    ("double", -0.0, -2147483648, -1757926548),
    ("date", dt.date(1970, 1, 1), 0, 1362653161),
    ("date", dt.date(2015, 11, 19), 16758, 8542395),
    ("date", dt.date(1950, 11, 19), -6983, -431619185),
    ("decimal(10,3)", Decimal("0"), 0, 500407381),
    ("decimal(10,3)", Decimal("1"), 31, -1089647197),
    ("decimal(10,3)", Decimal("1.50"), 466, 864210675),
    ("decimal(10,3)", Decimal("12.345"), 382698, -282817729),
    ("decimal(10,3)", Decimal("100"), 3100, 275017581),
    ("decimal(10,3)", Decimal("-100"), -3100, 1878954957),
    ("decimal(10,3)", Decimal("-0.01"), -29, -1036465288),
    ("decimal(38,18)", Decimal("-0.01"), -29, -1036465288),
    (
        "decimal(38,8)",
        Decimal("123456789012345678901234567890.12345678"),
        -880932659,
        -1654905817,
    ),
    ("timestamp", dt.datetime(2000, 1, 1), 236671200, -1603642017),
    ("timestamp", dt.datetime(2020, 2, 29, 12, 34, 56, 789000), 949074396, 563540027),
    ("timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 500000), 573741823, 171279716),
    ("timestamp", dt.datetime(1900, 1, 1), -552247200, 308893128),
    ("array<smallint>", [5, 8, 13], 5066, -905011156),
    (
        "map<string,bigint>",
        [("key", 123), ("key2", 123456789), ("key3", -123456)],
        127880789,
        -1910999650,
    ),
]


@pytest.mark.parametrize(("text", "value", "first", "second"), VECTORS)
@pytest.mark.parametrize("version", [1, 2])
def test_vectors(text, value, first, second, version):
    # In a slice of an array, so that offsets and neighbours matter.
    array = pa.array([value, None, value, value], arrow_type(text)).slice(1)
    wanted = first if version == 1 else second
    assert hashes(array, parse_type(text), version).tolist() == [0, wanted, wanted]


def test_a_struct_and_several_columns_are_polynomials():
    kind = "struct<a:int,b:string>"
    struct = pa.array([{"a": 7, "b": "test string"}], arrow_type(kind))
    wanted = np.int32(31 * 7 + -318923937)
    assert hashes(struct, parse_type(kind), 1)[0] == wanted
    columns = [pa.array([7], pa.int32()), pa.array(["test string"])]
    assert bucket_ids(columns, ["int", "string"], 97, 1)[0] == (int(wanted) & 0x7FFFFFFF) % 97


def test_binary():
    array = pa.array([b"", b"\xff\x01"])
    assert hashes(array, parse_type("binary"), 1).tolist() == [1, 31 * (31 - 1) + 1]
    with pytest.raises(FormatError, match="BINARY"):
        bucket_ids([array], ["binary"], 4, 2)


def java_big_integer_hash(number: int) -> int:
    """Java's BigInteger.hashCode, word by word."""
    found, magnitude = 0, abs(number)
    for word in range((magnitude.bit_length() + 31) // 32 - 1, -1, -1):
        found = (31 * found + (magnitude >> 32 * word & 0xFFFFFFFF)) & 0xFFFFFFFF
    found = -found if number < 0 else found
    return (found + 2**31) % 2**32 - 2**31


EXTREMES = st.integers(-(10**38) + 1, 10**38 - 1)


@given(st.lists(st.one_of(EXTREMES, st.integers(-(2**65), 2**65), st.integers(-999, 999)),
                max_size=8), st.integers(0, 5))  # fmt: skip
def test_decimals_hash_as_java_big_decimals(numbers, zeros):
    numbers = [n // 10**zeros * 10**zeros for n in numbers]
    numbers = [n for n in numbers if abs(n) < 10**38]
    with localcontext() as context:
        context.prec = 40
        array = pa.array([Decimal(n).scaleb(-5) for n in numbers], pa.decimal128(38, 5))
    kind = parse_type("decimal(38,5)")
    first, second = hashes(array, kind, 1), hashes(array, kind, 2)
    for number, got, murmured in zip(numbers, first, second, strict=True):
        unscaled, scale = number, 5
        while scale and unscaled % 10 == 0:
            unscaled, scale = unscaled // 10, scale - 1
        wanted = 31 * java_big_integer_hash(unscaled) + scale
        assert got == (wanted + 2**31) % 2**32 - 2**31
        size = (~unscaled if unscaled < 0 else unscaled).bit_length() // 8 + 1
        minimal = unscaled.to_bytes(size, "big", signed=True)
        assert murmured == murmur3(string_bytes(pa.array([minimal])))[0]


# ── tables that Hive wrote ───────────────────────────────────────────────────────────────────

CASES = sorted(path.parent for path in GOLDEN.glob("*bucketed_*/case.json"))


@pytest.mark.skipif(not CASES, reason="tests/golden is not there")
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_every_row_of_hive_lies_in_its_bucket(case):
    table = json.loads((case / "case.json").read_text())
    names = [name for name, _ in table["columns"]]
    positions = [names.index(name) for name in table["bucket_columns"]]
    types = [table["columns"][position][1] for position in positions]
    columns = [
        pa.array([_value(row["values"][p], t) for row in table["expected"]], arrow_type(t))
        for p, t in zip(positions, types, strict=True)
    ]
    found = bucket_ids(columns, types, table["num_buckets"], 2)
    properties = [row["row__id"]["bucketid"] for row in table["expected"]]
    assert found.tolist() == [bucket_codec.decode(p).bucket_id for p in properties]
    assert len(found) > 0


def _value(value, hive_type):
    if value is None:
        return None
    if hive_type == "date":
        return dt.date.fromisoformat(value)
    if hive_type in ("float", "double"):
        return float(value)
    return value
