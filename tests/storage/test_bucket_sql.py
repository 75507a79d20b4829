"""Spark finds the bucket that Hive's own hash says, or is not asked."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest

from acidsql.storage.bucket_sql import bucket_sql
from acidsql.storage.bucketing import bucket_ids
from acidsql.storage.local_rows import local_rows
from acidsql.storage.row_schema import arrow_type

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


def test_what_spark_cannot_tell_it_is_not_asked():
    for kind in ("string", "smallint", "double", "timestamp", "decimal(9,2)", "array<int>"):
        assert bucket_sql(["c"], [kind], 4, 2) is None
        assert bucket_sql(["a", "c"], ["int", kind], 4, 2) is None
    assert bucket_sql(["c"], ["int"], 4, 3) is None
