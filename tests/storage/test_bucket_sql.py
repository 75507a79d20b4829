"""Spark's SQL finds the same bucket as Hive's own hash, or it is not used."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest

import acidsql
from acidsql.acid.bucket_codec import decode
from acidsql.acid.table import Column, Table, TableName
from acidsql.storage.orc.row_schema import arrow_type
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.spark.session.jvm import changed_conf
from acidsql.storage.writing import job as write
from acidsql.storage.writing.buckets.bucket_sql import bucket_sql
from acidsql.storage.writing.buckets.bucketing import bucket_ids
from acidsql.storage.writing.job import _knows_buckets

RANDOM = random.Random(11)


def integers(bits):
    most = 2 ** (bits - 1)
    some = [0, 1, -1, 255, 256, most - 1, -most, most // 2, None]
    return [*some, *(RANDOM.randrange(-most, most) for _ in range(200))]


VALUES = {
    "tinyint": [0, 1, -1, 127, -128, None, *range(-100, 103)],
    "int": integers(32),
    "bigint": integers(64),
    "date": [
        None if days is None else dt.date(1970, 1, 1) + dt.timedelta(days=days % 40_000 - 20_000)
        for days in integers(32)
    ],
}


def by_spark(spark, arrays, types, buckets, version):
    names = [f"c{i}" for i in range(len(arrays))]
    rows = local_rows(spark, pa.table(dict(zip(names, arrays, strict=True))))
    sql = bucket_sql(names, types, buckets, version)
    return [row[0] for row in rows.selectExpr(sql).collect()]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "types", [[kind] for kind in VALUES] + [["bigint", "int", "date"], ["date", "bigint"]]
)
def test_spark_and_hive_agree(spark, types, version):
    columns = [RANDOM.sample(VALUES[kind], 200) for kind in types]
    arrays = [pa.array(c, arrow_type(k)) for c, k in zip(columns, types, strict=True)]
    for buckets in (1, 4, 7, 4096):
        expected = bucket_ids(arrays, types, buckets, version).tolist()
        assert by_spark(spark, arrays, types, buckets, version) == expected


@pytest.mark.parametrize("version", [1, 2])
def test_no_values_are_too_large_together(spark, version):
    ends = [-(2**63), -(2**31), -1, 0, 1, 2**31 - 1, 2**63 - 2, 2**63 - 1]
    small = [number for number in ends if -(2**31) <= number < 2**31]
    pairs = [(one, other) for one in small for other in ends]
    ints, longs = zip(*pairs, strict=True)
    arrays = [pa.array(ints, pa.int32()), pa.array(longs, pa.int64())]
    with changed_conf(spark, {"spark.sql.ansi.enabled": "true"}):
        found = by_spark(spark, arrays, ["int", "bigint"], 4, version)
    assert found == bucket_ids(arrays, ["int", "bigint"], 4, version).tolist()


def test_a_session_with_a_function_of_that_name_puts_rows_where_they_belong(spark, tmp_path):
    """In Spark 4.1 a session's own functions hide Spark's, and cannot be dropped again."""
    session = spark.newSession()
    session.udf.register("hash", lambda *values: 3, "int")
    is_hidden = session.sql("SELECT hash(1) = 3").first()[0]
    assert _knows_buckets(session, ["int"], 4, 2) is not is_hidden
    with acidsql.connect(session, warehouse=str(tmp_path), compactor="off") as acid:
        acid.sql("SET acidsql.driver.max.rows = 0")
        acid.sql("CREATE TABLE k (id INT) CLUSTERED BY (id) INTO 4 BUCKETS")
        acid.sql("INSERT INTO k SELECT CAST(id AS INT) FROM range(40)")
        found = [(row.id, decode(row.row__id.bucketid).bucket_id)
                 for row in acid.sql("SELECT id, row__id FROM k").collect()]  # fmt: skip
    expected = bucket_ids([pa.array(range(40), pa.int32())], ["int"], 4, 2).tolist()
    assert sorted(found) == list(enumerate(expected))


@pytest.mark.classic
def test_where_spark_finds_other_buckets_it_is_not_asked(spark, monkeypatch):
    """For any reason, and in any version."""
    assert _knows_buckets(spark, ["int"], 4, 2)
    monkeypatch.setattr(write, "bucket_sql", lambda *_: "CAST(3 AS INT)")
    assert not _knows_buckets(spark, ["int"], 4, 2)
    table = Table(
        TableName("default", "k"), "/k", (Column("id", "int"),),
        bucket_columns=("id",), num_buckets=4,
    )  # fmt: skip
    ids = pa.array(range(40), pa.int32())
    rows = local_rows(spark, pa.table({"id": ids}))
    found = rows.select(write._bucket_expression(spark, table, may_use_sql=True)).collect()
    expected = bucket_ids([ids], ["int"], 4, table.bucketing_version)
    assert [row[0] for row in found] == expected.tolist()


def test_what_spark_cannot_tell_it_is_not_asked():
    for kind in ("string", "smallint", "double", "timestamp", "decimal(9,2)", "array<int>"):
        assert bucket_sql(["c"], [kind], 4, 2) is None
        assert bucket_sql(["a", "c"], ["int", kind], 4, 2) is None
    assert bucket_sql(["c"], ["int"], 4, 3) is None
