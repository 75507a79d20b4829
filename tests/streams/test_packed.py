"""Rows become texts and come back as they were, whatever their types and the session."""

from __future__ import annotations

import pytest

from acidsql.errors import UnsupportedError
from acidsql.streams.packed import packed_row, unpacked_rows

pytestmark = pytest.mark.spark

VALUES = {
    "tiny": "CAST(-128 AS TINYINT)", "big": "9223372036854775807L",
    "exact": "CAST('-12345678901234567890.1234567890' AS DECIMAL(38,10))",
    "small": "CAST('0.0000000001' AS DECIMAL(20,10))",
    "real": "CAST('0.1' AS FLOAT)", "double": "5e-324D", "nan": "DOUBLE('NaN')",
    "minus": "DOUBLE('-Infinity')", "yes": "true", "day": "DATE '12345-06-07'",
    "wall": "TIMESTAMP_NTZ '2024-10-27 02:30:00.123456'",
    "instant": "timestamp_micros(1729992600123456)",  # the second 02:30 of a day in Berlin
    "early": "TIMESTAMP_NTZ '0001-01-01 00:00:00'", "bytes": "X'00FF22'",
    "text": """'a"b\\\\c\\nd \\u0001 é'""", "empty": "''",
    "broken": "array(CAST(X'41FF42' AS STRING), 'hex:41', 'hex:')", "void": "NULL",
    "voids": "array(NULL, NULL)", "collated": "'Aé' COLLATE UTF8_LCASE",
    "span": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "list": "array(1, NULL, 3)", "none": "CAST(NULL AS ARRAY<INT>)",
    "map": "map(DATE '2024-01-01', array(X'00'), DATE '2024-01-02', NULL)",
    "`a b`": "named_struct('x`y', 1, 'Z', named_struct('t', timestamp_micros(1), 'z', INT(NULL)))",
    "nothing": "CAST(NULL AS STRUCT<a: INT>)", "blank": "named_struct('a', CAST(NULL AS INT))",
}  # fmt: skip


def test_every_value_comes_back_in_a_session_of_any_time_zone(spark):
    columns = ", ".join(f"{sql} AS {name}" for name, sql in VALUES.items())
    given = spark.sql(f"SELECT {columns}")
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        texts = given.select(packed_row(given).alias("text")).collect()
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        made = spark.createDataFrame(texts, "text STRING")
        found = unpacked_rows(made, "text", given.schema)
        kinds = [(one.name, one.dataType.simpleString()) for one in given.schema]
        assert [(one.name, one.dataType.simpleString()) for one in found.schema] == kinds
        same = ", ".join(
            f"map_entries(a.{name}) <=> map_entries(b.{name})"
            if name == "map"
            else f"a.{name} <=> b.{name}"
            for name in VALUES
        )
        pair = given.alias("a").crossJoin(found.alias("b")).selectExpr(f"array({same})").first()[0]
        assert [name for name, one in zip(VALUES, pair, strict=True) if not one] == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_text_may_be_longer_than_spark_s_json_reads_by_default(spark):
    given = spark.sql("SELECT repeat('x', 20000001) AS v")
    found = unpacked_rows(given.select(packed_row(given).alias("text")), "text", given.schema)
    assert found.selectExpr("length(v)").first()[0] == 20_000_001


def test_a_variant_is_refused(spark):
    with pytest.raises(UnsupportedError, match="VARIANT"):
        packed_row(spark.sql("SELECT parse_json('1') AS v"))
