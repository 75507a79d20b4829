"""Values of old files under a changed type, one array at a time; Java's own answers as literals."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from acidsql.acid.values.types import parse_type
from acidsql.storage.orc.casts import cast_values, java_text, parse_double
from acidsql.storage.orc.row_schema import arrow_type


def changed(values, old, new):
    array = pa.array(values, arrow_type(old))
    return cast_values(array, parse_type(new), arrow_type(new), parse_type(old)).to_pylist()


# What Double.toString of Java prints.
DOUBLES = {
    0.1: "0.1", 100.0: "100.0", 0.001: "0.001", 9999999.0: "9999999.0", 1e7: "1.0E7",
    123456789.125: "1.23456789125E8", 9.5e-5: "9.5E-5", 5e-324: "4.9E-324", 2e-323: "2.0E-323",
    2.2250738585072014e-308: "2.2250738585072014E-308", 1.7976931348623157e308:
    "1.7976931348623157E308", -0.0: "-0.0", 1234567.0: "1234567.0", 1.25: "1.25",
    float("inf"): "Infinity", float("-inf"): "-Infinity", -1e-3: "-0.001", 1e22: "1.0E22",
}  # fmt: skip


def test_a_double_becomes_the_text_that_java_writes():
    assert {value: java_text(value) for value in DOUBLES} == DOUBLES
    assert java_text(0.0) == "0.0"
    assert java_text(float("nan")) is None


# What Double.parseDouble of Java makes of a text; None if it throws.
TEXTS = {
    "1": 1.0, " 1.5 ": 1.5, "\t7\n": 7.0, "1d": 1.0, "1e5f": 1e5, "0x1p3": 8.0, "-0X.8P1D": -1.0,
    "0x1p99999": float("inf"), "-Infinity": float("-inf"), "+1.": 1.0, ".5": 0.5, "1e400":
    float("inf"), "1e-400": 0.0, "abc": None, "": None, ".": None, "1_0": None, "inf": None,
    "infinity": None, "nan": None, "\u0661": None, "\u00a05": None, "1 2": None, "0x10": None,
    "1L": None, "1e": None, "--1": None, "+NaNd": None,
}  # fmt: skip


def test_a_text_becomes_the_double_that_java_reads_or_null():
    assert {text: parse_double(text) for text in TEXTS} == TEXTS
    assert str(parse_double("-0")) == "-0.0"
    assert str(parse_double(" -NaN")) == "nan"


def test_numbers_days_and_times_become_texts_without_what_says_nothing():
    assert changed([-128, 0, None], "tinyint", "string") == ["-128", "0", None]
    assert changed([2**63 - 1], "bigint", "varchar(5)") == ["92233"]
    # A FLOAT is widened first, and so shows what it really is.
    assert changed([0.1, float("nan")], "float", "string") == ["0.10000000149011612", None]
    assert changed([True, False, None], "boolean", "varchar(4)") == ["TRUE", "FALS", None]
    decimals = [Decimal(text) for text in ("1.500", "-0.001", "100", "0", "1200.000")]
    assert changed(decimals, "decimal(10,3)", "string") == ["1.5", "-0.001", "100", "0", "1200"]
    days = [19782, -719162, -141428, 2932896, 2932897, -719529, None]
    assert changed(days, "date", "string") == [
        "2024-02-29", "0001-01-01", "1582-10-14", "9999-12-31", "+10000-01-01", "-0001-12-31", None,
    ]  # fmt: skip
    micros = [1_709_168_523_456_000, -1_000_001, 0, None]
    assert changed(micros, "timestamp", "string") == [
        "2024-02-29 01:02:03.456", "1969-12-31 23:59:58.999999", "1970-01-01 00:00:00", None,
    ]  # fmt: skip


def test_a_text_loses_what_its_new_type_has_no_room_for():
    assert changed(["é€😀x", "abcd", "ab", None], "string", "varchar(3)") == [
        "é€😀", "abc", "ab", None,
    ]  # fmt: skip
    # A CHAR's padding is no part of its value.
    assert changed(["ab  ", None], "char(4)", "string") == ["ab", None]
    assert changed(["ab  "], "varchar(4)", "string") == ["ab  "]
    assert changed([], "string", "varchar(3)") == []


def test_numbers_become_the_nearest_float_or_double():
    assert changed([9007199254740993, None], "bigint", "double") == [9007199254740992.0, None]
    assert changed([16777217, -(2**31)], "int", "float") == [16777216.0, -2147483648.0]
    exact = "1234567890123456789012345678.0123456789"
    assert changed([Decimal(exact)], "decimal(38,10)", "double") == [float(exact)]
    assert changed([Decimal("0.1")], "decimal(3,1)", "float") == [0.10000000149011612]
    assert changed(["1.5", "x"], "string", "double") == [1.5, None]
    assert changed([True, False], "boolean", "double") == [1.0, 0.0]  # by way of a text


def test_a_day_is_no_number():
    with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
        changed([1], "date", "double")
