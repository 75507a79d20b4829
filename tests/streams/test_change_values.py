"""A value of a record becomes exactly the value of its column, or it is refused.

Hardly any of these values fails in Spark's own casts: they round, cut, shift or guess.
"""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.types import StructType, VariantType
from test_changes import ID_AND_NAME, debezium, goldengate, maxwell, read, texts

from acidsql.errors import AnalysisError
from acidsql.storage.columns import literal
from acidsql.storage.spark.type_sql import type_sql
from acidsql.streams.envelopes.parts import parsed_json
from acidsql.streams.envelopes.values import ValueConverter

pytestmark = pytest.mark.spark
REFUSED = None  # NULL, which changes_from() tells apart from a NULL in the record

# (the column's type, the value in JSON, the value in the table)
FROM_JSON = [
    ("INT", "7", 7),
    ("INT", '"7"', 7),
    ("INT", "7.0", 7),
    ("INT", "1e3", 1000),
    ("INT", "1.5", REFUSED),
    ("INT", '""', REFUSED),
    ("INT", "true", REFUSED),
    ("INT", "2147483648", REFUSED),
    ("BIGINT", "9007199254740993", (1 << 53) + 1),
    ("BIGINT", "9223372036854775807", (1 << 63) - 1),
    ("BIGINT", "18446744073709551615", REFUSED),
    ("DECIMAL(20,0)", "18446744073709551615", Decimal(18446744073709551615)),
    ("DECIMAL(10,2)", "1.20", Decimal("1.20")),
    ("DECIMAL(10,2)", "1.2300", Decimal("1.23")),
    ("DECIMAL(10,2)", '"1.239"', REFUSED),
    ("DECIMAL(10,2)", "1.239", REFUSED),
    ("DECIMAL(10,2)", "1.2E1", Decimal("12.00")),
    ("DECIMAL(10,2)", "1.2E-3", REFUSED),
    ("DECIMAL(10,2)", "123456789.00", REFUSED),
    ("DECIMAL(38,0)", "99999999999999999999999999999999999999", Decimal("9" * 38)),
    ("DOUBLE", "4.2341", 4.2341),
    ("DOUBLE", '"NaN"', float("nan")),
    ("DOUBLE", '"-Infinity"', float("-inf")),
    ("DOUBLE", '"1e400"', REFUSED),
    ("FLOAT", "1e39", REFUSED),
    ("DOUBLE", '"1d"', REFUSED),
    ("BOOLEAN", "1", True),
    ("BOOLEAN", "0", False),
    ("BOOLEAN", "2", REFUSED),
    ("STRING", '"é\\u0001"', "é\x01"),
    ("STRING", '{"b": [1, null], "a": "x"}', '{"a":"x","b":[1,null]}'),
    ("BINARY", '"AQID"', b"\1\2\3"),
    ("BINARY", '"a b!"', REFUSED),
    ("BINARY", "1234", REFUSED),
    ("DATE", "19675", date(2023, 11, 14)),
    ("DATE", "-1", date(1969, 12, 31)),
    ("DATE", "1700000000", REFUSED),  # seconds, not days
    ("DATE", '"2023-11-14"', date(2023, 11, 14)),
    ("DATE", '"2023-11-14T00:00:00Z"', date(2023, 11, 14)),
    ("DATE", '"2023-11-14T22:13:20Z"', REFUSED),
    ("DATE", '"2023-11"', REFUSED),
    ("TIMESTAMP_NTZ", '"2023-11-14 22:13:20"', datetime(2023, 11, 14, 22, 13, 20)),
    ("TIMESTAMP_NTZ", '"2023-11-14T22:13:20.5Z"', datetime(2023, 11, 14, 22, 13, 20, 500000)),
    ("TIMESTAMP_NTZ", '"2023-11-14T22:13:20+05:00"', REFUSED),
    ("TIMESTAMP_NTZ", '"2023-11-14 22:13:20.123456000"',
     datetime(2023, 11, 14, 22, 13, 20, 123456)),
    ("TIMESTAMP_NTZ", '"2023-11-14 22:13:20.123456789"', REFUSED),
    ("TIMESTAMP_NTZ", '"22:13:20"', REFUSED),  # Spark takes today
    ("TIMESTAMP_NTZ", "1700000000", REFUSED),
    ("TIMESTAMP_NTZ", '"epoch"', REFUSED),
    ("TIMESTAMP_NTZ", '"0000-00-00 00:00:00"', REFUSED),
    ("TIMESTAMP", '"2023-11-14T22:13:20+05:00"', datetime(2023, 11, 14, 17, 13, 20)),
    ("TIMESTAMP", '"2023-11-14T22:13:20.1234567Z"', REFUSED),
    ("TIMESTAMP", '"22:13:20"', REFUSED),
    ("ARRAY<INT>", '[1, "2", null]', [1, 2, None]),
    ("ARRAY<INT>", "[1.5]", REFUSED),
    ("ARRAY<INT>", '[1, "x"]', REFUSED),
    ("ARRAY<INT>", "{}", REFUSED),
    ("ARRAY<DATE>", "[19675]", [date(2023, 11, 14)]),
    ("ARRAY<ARRAY<DECIMAL(3,1)>>", "[[1.5], []]", [[Decimal("1.5")], []]),
    ("ARRAY<ARRAY<DECIMAL(3,1)>>", "[[1.55], []]", REFUSED),
    ("STRUCT<`a b`: INT, c: STRING>", '{"A b": 1}', {"a b": 1, "c": None}),
    ("STRUCT<a: INT>", '{"a": "x"}', REFUSED),
    ("STRUCT<a: INT>", '{"a": 1, "A": 2}', REFUSED),
    ("STRUCT<a: INT>", "[1]", REFUSED),
    ("MAP<STRING, INT>", '{"k": 1, "K": null}', {"k": 1, "K": None}),
    ("MAP<STRING, INT>", '{"k": 1.5}', REFUSED),
    ("MAP<INT, STRING>", '{"1": "x"}', {1: "x"}),
    ("MAP<INT, STRING>", '{"y": "x"}', REFUSED),
]  # fmt: skip

# (the column's type, SQL of the parsed value, the value in the table)
FROM_SQL = [
    ("INT", "1.5D", REFUSED),
    ("INT", "1E7D", 10000000),
    ("INT", "true", 1),
    ("BOOLEAN", "2", REFUSED),
    ("DECIMAL(5,2)", "1.239BD", REFUSED),
    ("DECIMAL(5,2)", "1.230BD", Decimal("1.23")),
    ("TIMESTAMP", "1700000000000L", REFUSED),  # Spark takes a number for seconds
    ("BIGINT", "TIMESTAMP '2023-11-14 22:13:20.5'", REFUSED),
    ("DATE", "TIMESTAMP_NTZ '2023-11-14 22:13:20'", REFUSED),
    ("DATE", "TIMESTAMP_NTZ '2023-11-14 00:00:00'", date(2023, 11, 14)),
    ("TIMESTAMP_NTZ", "DATE '2023-11-14'", datetime(2023, 11, 14)),
    ("STRING", "x'fffe'", REFUSED),
    ("STRING", "x'c3a9'", "é"),
    ("INT", "x'31'", REFUSED),
    ("BINARY", "'AQID'", b"\1\2\3"),
    ("BINARY", "12", REFUSED),
    ("STRING", "named_struct('a', 1, 'b', CAST(NULL AS INT))", '{"a":1,"b":null}'),
    ("ARRAY<INT>", "array(1.0D, 2.0D)", [1, 2]),
    ("ARRAY<INT>", "array(1.5D)", REFUSED),
    ("ARRAY<INT>", "'[1, 2]'", [1, 2]),
    ("ARRAY<INT>", "'[1, 2] [3]'", REFUSED),
    ("STRUCT<a: INT>", "named_struct('A', '1', 'b', 2)", {"a": 1}),
    ("STRUCT<a: INT>", "named_struct('b', 2)", REFUSED),
]


def converted(spark, cases):
    """The values of (type, given type, SQL) in their types, by one query."""
    read = ValueConverter(days=True, binary="base64")
    columns = []
    for number, (kind, given, sql) in enumerate(cases):
        (field,) = StructType.fromDDL(f"v {kind}").fields
        value = read.convert(f"g{number}", given, field.dataType)
        columns.append((f"{sql} AS g{number}", f"{value} AS v{number}", type_sql(field.dataType)))
    rows = spark.range(1).selectExpr(*(given for given, _, _ in columns))
    rows = rows.selectExpr(*(value for _, value, _ in columns))
    kinds = [type_sql(field.dataType) for field in rows.schema]
    assert kinds == [kind for _, _, kind in columns]
    (row,) = rows.collect()
    return [one.asDict() if hasattr(one, "asDict") else one for one in row]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_value_is_exact_or_refused(acid, ansi):
    spark = acid.spark
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        given = spark.range(1).selectExpr(*(sql for _, sql, _ in FROM_SQL)).schema
        cases = [(kind, VariantType(), f"parse_json({literal(v)})") for kind, v, _ in FROM_JSON]
        cases += [(k, one.dataType, sql) for (k, sql, _), one in zip(FROM_SQL, given, strict=True)]
        found = converted(spark, cases)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    wrong = {
        (kind, value): one
        for (kind, value, wanted), one in zip([*FROM_JSON, *FROM_SQL], found, strict=True)
        if one != wanted and str(one) != str(wanted)  # NaN
    }
    assert wrong == {}


def test_a_wall_clock_that_the_session_s_zone_skips_is_not_shifted(acid):
    spark = acid.spark
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    clocks = ["2023-03-26 01:59:59", "2023-03-26 02:30:00", "2023-03-26T02:30:00Z"]
    try:
        for kind, kept in (("TIMESTAMP", [True, False, True]), ("TIMESTAMP_NTZ", [True] * 3)):
            cases = [(kind, VariantType(), f"parse_json('\"{one}\"')") for one in clocks]
            assert [one is not None for one in converted(spark, cases)] == kept
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


# ── numbers with more digits than Spark reads ────────────────────────────────────────────────

LONG = "12345678901234567890.123456789012345678901234567890"


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("DECIMAL(38,18)", LONG),
        ("STRING", f'{{"price": {LONG}}}'),
        ("DECIMAL(38,30)", "1.234567890123456789012E-7"),
        ("DOUBLE", "1e400"),
    ],
)
def test_a_number_that_spark_s_parser_rounds_is_refused(acid, kind, number):
    text = json.dumps(maxwell("insert", {"id": 1}, "b.1:4", commit=True))
    text = text.replace('"id": 1', f'"id": 1, "price": {number}')
    with pytest.raises(Exception, match="column price has more digits"):
        read(acid, "maxwell", [text], f"id INT, price {kind}", keys="id")


def test_long_numbers_elsewhere_and_long_texts_are_no_fault(acid):
    text = json.dumps(
        maxwell("insert", {"id": 1, "name": "7" * 50, "f": 1.5}, "b.1:4", commit=True)
    )
    text = text.replace('"id": 1', f'"other": {LONG}, "id": 1, "d": {LONG}')
    (row,) = read(acid, "maxwell", [text], "id INT, name STRING, f DECIMAL(3,1), d DOUBLE",
                  keys="id")  # fmt: skip
    assert (row.id, row.name, row.f, row.d) == (1, "7" * 50, Decimal("1.5"), float(LONG))


# ── texts that are not one record ────────────────────────────────────────────────────────────

ONE = json.dumps(debezium("c", None, {"id": 1, "name": "a"}))


def test_what_follows_a_record_in_its_text_is_not_lost(acid):
    ends = [ONE, f" {ONE}", f",{ONE}", f",{ONE}]", "]", "}", "}}x", f"] {ONE}", ",", "1"]
    rows = texts(
        acid.spark, *(ONE + end for end in ends), f" {ONE} \n", "1", "[1, 2]", "", "{", None
    )
    found = [row[0] for row in rows.selectExpr(f"{parsed_json('value')} IS NOT NULL").collect()]
    assert found == [False] * len(ends) + [True, True, True, False, False, False]
    with pytest.raises(Exception, match="it is no JSON"):
        read(acid, "debezium", [ONE + ONE])


def test_bytes_that_are_no_utf_8_are_not_replaced(acid):
    good = ONE.replace('"a"', '"ü"')
    for text, fails in ((good.encode(), False), (good.encode("latin-1"), True)):
        rows = acid.spark.createDataFrame([(bytearray(text),)], "value BINARY")
        if fails:
            with pytest.raises(Exception, match="it is no JSON"):
                read(acid, "debezium", rows)
        else:
            assert read(acid, "debezium", rows)[0].name == "ü"


def test_names_that_differ_in_case_only_are_not_mixed_up(acid):
    spark = acid.spark
    both = debezium("c", None, {"id": 1, "name": "a", "NAME": "b"})
    spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        for records, format in (([both], "debezium"), ([goldengate("D", 1, "x")], "goldengate")):
            with pytest.raises(Exception, match="no object, or has two names"):
                read(acid, format, records, keys="id")
        rows = spark.createDataFrame(
            [("I", 1, "a", "b")], "Op STRING, id INT, name STRING, NAME STRING"
        )
        with pytest.raises(AnalysisError, match="differ in case only"):
            acid.changes_from("dms", rows, ID_AND_NAME)
    finally:
        spark.conf.unset("spark.sql.mapKeyDedupPolicy")
        spark.conf.unset("spark.sql.caseSensitive")


def test_images_that_are_texts_of_json_are_read_like_records(acid):
    schema = "op STRING, before STRING, after STRING, source STRUCT<connector: STRING, lsn: BIGINT>"
    source = ("postgresql", 5)
    good = [("u", "null", '{"ID": 1, "name": "a"}', source)]
    rows = acid.spark.createDataFrame(good, schema)
    assert [(row.id, row.name) for row in read(acid, "debezium", rows)] == [(1, "a")]
    for before, after in (('{"id"', good[0][2]), ("null", good[0][2] + "{}")):
        rows = acid.spark.createDataFrame([("u", before, after, source)], schema)
        with pytest.raises(Exception, match="no object"):
            read(acid, "debezium", rows)


# ── values that the tool does not know ───────────────────────────────────────────────────────


def test_an_unavailable_value_is_known_in_every_type(acid):
    # UnchangedToastedPlaceholder.java in Debezium's connector for PostgreSQL
    mark = "__debezium_unavailable_value"
    values = [
        ("STRING", mark),
        ("BINARY", base64.b64encode(mark.encode()).decode()),
        ("STRING", mark.encode().hex()),
        ("ARRAY<STRING>", [mark]),
        ("ARRAY<INT>", list(mark.encode())),
        ("STRING", {mark: mark}),
    ]
    record = debezium("u", None, {f"v{i}": value for i, (_, value) in enumerate(values)})
    schema = ", ".join(f"v{i} {kind}" for i, (kind, _) in enumerate(values))
    (row,) = read(acid, "debezium", [record], schema, absent="null")
    assert row[: len(values)] == (None,) * len(values)
    with pytest.raises(Exception, match="value of the column v4 is not available"):
        read(acid, "debezium", [record], "v4 ARRAY<INT>")


def test_binary_columns_of_dms_are_texts_of_hexadecimal_digits(acid):
    rows = acid.spark.createDataFrame(
        [("I", 1, "DEADBEEF"), ("I", 2, None)], "Op STRING, id INT, b STRING"
    )
    found = read(acid, "dms", rows, "id INT, b BINARY")
    assert [row.b and bytes(row.b) for row in found] == [b"\xde\xad\xbe\xef", None]


def test_an_order_that_was_parsed_as_a_floating_number_is_refused(acid):
    rows = acid.spark.createDataFrame(
        [("I", 1, 2.0e34)], "Op STRING, id INT, AR_H_CHANGE_SEQ DOUBLE"
    )
    with pytest.raises(AnalysisError, match="rounds long numbers"):
        acid.changes_from("dms", rows, "id INT")


def test_texts_are_read_by_a_name_with_dots_and_quotes(acid):
    name = "a.b'c\"d`e"
    records = [debezium("c", None, {"id": 1, name.upper(): "x"})]
    schema = StructType.fromDDL("id INT").add(name, "string")
    (row,) = acid.changes_from("debezium", texts(acid.spark, *records), schema).collect()
    assert row[name] == "x"
