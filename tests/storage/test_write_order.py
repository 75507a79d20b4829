"""Delete keys reach the delete stage in the order of its files."""

from __future__ import annotations

from itertools import groupby, product

import pyarrow as pa

from acidsql.acid.bucket_codec import encode
from acidsql.storage import event_records as ew
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.writing.job import _arrange_keys

# Before Hive 3 the bucket property is the bare bucket id.
OLD = [(bucket, bucket) for bucket in (0, 3, 4095)]
NEW = [(b, encode(b, s)) for b, s in product((0, 3, 4095), (0, 1, 2, 3, 4, 4095))]
WRITE_IDS = [0, 1, 20, 40, 2**31, 2**45, 2**62]
ROWS = [0, 1, 2**13, 2**27, 2**28 + 1, 2**33, 2**62]
NAMES = (ew.PARTITION, ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID, ew.ACTION)
SCHEMA = pa.schema([ew.KEY_SCHEMA.field(name) for name in NAMES])


def test_the_keys_of_a_file_come_together_and_ascend(spark):
    """Of equal keys, the one that deletes comes first."""
    keys = sorted(
        (partition, bucket, write_id, bucket_property, row)
        for partition in ("", "p=1", "p=é")
        for (bucket, bucket_property), write_id, row in product(OLD + NEW, WRITE_IDS, ROWS)
    )
    expected = [(*key, action) for key in keys for action in (ew.DELETE, ew.MATCHED)]
    columns = zip(SCHEMA.names, zip(*expected[::-1], strict=True), strict=True)
    rows = _arrange_keys(local_rows(spark, pa.table(dict(columns), SCHEMA))).collect()
    files = [(file, list(keys)) for file, keys in groupby(map(tuple, rows), lambda key: key[:2])]
    assert sorted(file for file, _ in files) == sorted({key[:2] for key in keys})
    for file, found in files:
        assert found == [key for key in expected if key[:2] == file]
