"""Delete keys reach the files in their order, although Spark sorts them by one number."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from acidsql.acid.bucket_codec import encode
from acidsql.acid.partition_names import PartitionNames
from acidsql.acid.table import Column
from acidsql.storage import event_records as ew
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.writing.job import _sort_prefix

# Before Hive 3 the bucket property is the bare bucket id.
OLD = [(bucket, bucket) for bucket in (0, 3, 4095)]
NEW = [(b, encode(b, s)) for b, s in itertools.product((0, 3, 4095), (0, 1, 2, 3, 4, 4095))]
NAMES = (ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID)
ROWS = [0, 1, 2**13, 2**27, 2**28 + 1, 2**33, 2**62]


def keys_up_to(write_id):
    """Bucket id, write id, property and row id: the limits of their values, in order."""
    ids = sorted({0, 1, write_id // 2, write_id})
    return sorted(
        (bucket, write, prop, row)
        for (bucket, prop), write, row in itertools.product(OLD + NEW, ids, ROWS)
    )


def frame(spark, keys, partition):
    columns = dict(zip(NAMES, map(pa.array, zip(*keys, strict=True)), strict=True))
    rows = pa.table({**columns, ew.PARTITION: pa.array([partition] * len(keys))})
    return local_rows(spark, rows)


def prefixes(spark, spec, keys, partition):
    return [row[0] for row in frame(spark, keys, partition).select(*_sort_prefix(spec)).collect()]


@pytest.mark.parametrize("write_id", [40, 2**31, 2**45, 2**62])
def test_spark_sorts_by_it(spark, write_id):
    keys = keys_up_to(write_id)
    rows = frame(spark, keys[::-1], "p=1")
    for partitioned in ((), ("p",)):
        by = [*_sort_prefix(spec(write_id, partitioned)), *NAMES]
        found = rows.coalesce(1).sortWithinPartitions(*by).select(*NAMES).collect()
        assert [tuple(row) for row in found] == keys


def spec(write_id, partitioned_by=()):
    return ew.WriteSpec(
        staging="", write_id=write_id, insert_statement_id=1, delete_statement_id=0,
        row=RowSchema.from_fields([("v", "string")]), 
        partitions=PartitionNames(tuple(Column(name, "string") for name in partitioned_by)),
    )  # fmt: skip


@pytest.mark.parametrize("write_id", [1, 7, 40, 2**20, 2**27])
def test_the_number_ascends_with_the_key(spark, write_id):
    keys = keys_up_to(write_id)
    for partition, columns in (("", ()), ("p=1", ("p",)), ("p=é", ("p",))):
        found = prefixes(spark, spec(write_id, columns), keys, partition)
        assert None not in found
        assert found == sorted(found)


def test_it_tells_most_keys_apart(spark):
    """Otherwise Spark would compare the keys themselves, and the number would be useless."""
    keys = sorted(itertools.product((0, 1), (1, 30), (encode(0), encode(0, 1)), range(1000)))
    for partition, columns in (("", ()), ("p=1", ("p",))):
        found = prefixes(spark, spec(40, columns), keys, partition)
        assert len(set(found)) == len(keys)


def test_partitions_mostly_differ_in_it(spark):
    found = [
        prefixes(spark, spec(40, ("p",)), [(0, 1, encode(0), 1)], f"p={number}")[0]
        for number in range(20)
    ]
    assert len(set(found)) == 20
