"""Columns of PySpark's beside SQL text: both must be the same to Spark, in each kind of session."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

import numpy
import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql import types as T  # noqa: N812

from acidsql.errors import UnsupportedError
from acidsql.storage.spark.columns.column_sql import column_sql


# Each Column, and the SQL text that a person would write for it.
def columns_with_sql():
    return [
        (F.col("i") * 2 + 1, "i * 2 + 1"),
        ((F.col("i") > 1) & ~F.col("b") | F.col("s").isNull(), "(i > 1 AND NOT b) OR s IS NULL"),
        (-F.col("i") % F.lit(7), "(-i) % 7"),
        (
            F.when(F.col("i") > 1, "x").when(F.col("b"), "y"),
            "CASE WHEN i > 1 THEN 'x' WHEN b THEN 'y' END",
        ),
        (F.when(F.col("b"), 1).otherwise(F.lit(None)), "CASE WHEN b THEN 1 ELSE NULL END"),
        (F.col("i").isin(1, 2), "i IN (1, 2)"),
        (F.col("i").between(1, 2), "i >= 1 AND i <= 2"),
        (F.col("s").like("a%") | F.col("s").startswith("b"), "s LIKE 'a%' OR startswith(s, 'b')"),
        (F.col("s").cast("int"), "CAST(s AS INT)"),
        (F.col("s").try_cast("int"), "TRY_CAST(s AS INT)"),
        (F.col("a.f") + F.col("a").getField("f"), "a.f + a['f']"),
        (F.col("l")[0] + F.col("m")["k"], "l[0] + m['k']"),
        (F.transform("l", lambda x: x + F.col("i")), "transform(l, x -> x + i)"),
        (F.aggregate("l", F.lit(0), lambda x, y: x + y), "aggregate(l, 0, (x, y) -> x + y)"),
        (F.expr("i + 1 -- a comment"), "i + 1"),
        (F.concat_ws("-", "s", F.lit("x y")), "concat_ws('-', s, 'x y')"),
        (F.lit(datetime.date(2024, 1, 2)), "DATE '2024-01-02'"),
        (F.lit(2**40), "1099511627776"),
        (F.lit(1.5).cast(T.DecimalType(5, 2)), "CAST(1.5D AS DECIMAL(5, 2))"),
        (F.col("`odd name`").alias("z"), "`odd name`"),
        (F.col("i").eqNullSafe(None), "i <=> NULL"),
        (F.col("s").substr(1, 2), "substr(s, 1, 2)"),
        (F.count_distinct("i", "s"), "count(DISTINCT i, s)"),
        (F.struct("i", F.col("s").alias("t")), "struct(i, s AS t)"),
        (F.col("s").rlike("a+b"), "s RLIKE 'a+b'"),
        (F.col("i").bitwiseAND(3), "i & 3"),
        ((F.col("s") == "x") & (F.col("i") != 1), "s = 'x' AND NOT (i = 1)"),
        (F.call_function("concat", F.col("s"), F.lit("y")), "concat(s, 'y')"),
        (F.upper(F.col("s").alias("z")), "upper(s)"),
        (F.col("a")["größe"] + F.col("m")["größe"], "a['größe'] + m['größe']"),
        (F.current_date(), "current_date"),
    ]


VALUES = [
    None, True, -5, 2**31 - 1, -(2**31), 2**40, -(2**63), 1.5, -1e-300, 1e300, -0.0, math.nan,
    math.inf, -math.inf, Decimal("1.50"), Decimal("-0.001"), Decimal("1E+3"), Decimal("9" * 38),
    b"\x00\xff", "", datetime.date(1000, 1, 2),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.timedelta(days=-1, microseconds=1), datetime.timedelta(hours=25),
    numpy.int8(-3), numpy.int16(300), numpy.float32(0.1), [1, None, 3], ["a", "it's"],
    [0.5, math.nan],
]  # fmt: skip


def columns_become_the_sql_that_spark_reads_as_the_same(spark):
    """Of each Column, the SQL that is written, and the text of a person."""
    nested = "a STRUCT<f: INT, `größe`: INT>, l ARRAY<INT>, m MAP<STRING, INT>"
    columns = f"i INT, b BOOLEAN, s STRING, {nested}, `odd name` INT"
    frame = spark.createDataFrame([], columns)
    for column, text in columns_with_sql():
        with column_sql(spark) as write:
            sql = write(column)
        written = frame.selectExpr(f"{sql} AS c")
        assert frame.select(column.alias("c")).sameSemantics(written), sql
        assert written.sameSemantics(frame.selectExpr(f"{text} AS c")), sql


def literals_stay_the_same_values_of_the_same_types(spark):
    """Whatever ``spark.sql.timestampType`` is."""
    literals = [F.lit(value) for value in VALUES]
    with column_sql(spark) as write:
        found = spark.range(1).selectExpr(*(f"{write(one)} AS c" for one in literals))
    expected = spark.range(1).select(*(one.alias("c") for one in literals))
    assert found.dtypes == expected.dtypes
    assert list(map(repr, found.first())) == list(map(repr, expected.first()))


def variables_of_lambda_functions_hide_no_column(spark):
    """PySpark numbers the variables. The next one gets the name of a column."""
    number = int(re.search(r"x_(\d+)", str(F.transform("l", lambda x: x)))[1]) + 1
    frame = spark.sql(f"SELECT array(1, 2) AS l, 1000 AS x_{number}")
    column = F.transform("l", lambda x: x + F.col(f"x_{number}"))
    with column_sql(spark) as write:
        assert frame.selectExpr(write(column)).first()[0] == [1001, 1002]
    assert frame.select(column).first()[0] == [1001, 1002]


def an_element_without_a_name_is_no_field_of_a_struct(spark):
    """In SQL, a value of a map would be a field with the name of its key."""
    frame = spark.sql("SELECT map('k', 1) AS m")
    with column_sql(spark) as write:
        with pytest.raises(UnsupportedError, match="give one by .alias"):
            write(F.struct(F.col("m")["k"]))
        named = F.struct(F.col("m")["k"].alias("v")).alias("c")
        written = frame.selectExpr(f"{write(named)} AS c")
    assert written.schema == frame.select(named).schema
