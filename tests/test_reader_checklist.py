"""Unusual files that a reader must accept, written by pyorc: the format's checklist, item by item.

They are not in the golden tables or in the tests of single modules: bucket properties of version 0,
footers without Hive's keys, files without row indexes or with attempts in their names, originals of
all forms, raw files of LOAD DATA, and deletes that only some snapshots see.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyorc
import pytest

import acidsql

pytestmark = pytest.mark.spark

V1 = 536870912  # bucket 0, statement 0
ROW = "struct<id:int,v:string>"
EVENTS = (
    "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,"
    f"currentTransaction:bigint,row:{ROW}>"
)
SCHEMA = "id int, v string"


@pytest.fixture
def put(tmp_path):
    """Write a file of events below the table's directory, without Hive's keys in its footer."""

    def write(path, events, schema=EVENTS, **options):
        file = tmp_path / "t" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out, pyorc.Writer(out, schema, **options) as writer:
            for one in events:
                writer.write(one)

    return write


@pytest.fixture
def read(spark, tmp_path):
    """The rows as (write id, bucket property, row id, id, v)."""

    def rows(valid_write_ids=None, where="true"):
        found = acidsql.read(
            spark, str(tmp_path / "t"), SCHEMA, valid_write_ids=valid_write_ids
        ).where(where)
        return sorted((*row.row__id, row.id, row.v) for row in found.collect())

    return rows


def inserted(write_id, rows, bucket=V1, first=0):
    return [(0, write_id, bucket, first + number, write_id, row) for number, row in enumerate(rows)]


def deleted(write_id, *keys):
    return [(2, *key, write_id, None) for key in sorted(keys)]


def test_files_without_hives_keys_without_indexes_and_with_attempts(put, read):
    many = [(number, f"v{number}") for number in range(3000)]
    put("delta_0000001_0000001_0000/bucket_00000_0", inserted(1, many), row_index_stride=0)
    keys = [(1, V1, number) for number in range(0, 3000, 2)]
    put("delete_delta_0000002_0000002_0000/bucket_00000_3", deleted(2, *keys), row_index_stride=0)
    assert len(read()) == 1500
    assert read(where="id BETWEEN 10 AND 13") == [(1, V1, 11, 11, "v11"), (1, V1, 13, 13, "v13")]


def test_bucket_properties_of_version_0(put, read):
    put("delta_0000001_0000001/bucket_00002", inserted(1, [(1, "a"), (2, "b")], bucket=2))
    put("delete_delta_0000002_0000002_0000/bucket_00002", deleted(2, (1, 2, 1)))
    assert read() == [(1, 2, 0, 1, "a")]


def test_rows_of_version_0_can_be_changed(put, acid, tmp_path):
    """The delete event goes into the file of the bucket id, with the unchanged property."""
    put("delta_0000001_0000001/bucket_00003", inserted(1, [(1, "a"), (2, "b"), (3, "c")], bucket=3))
    acid.sql(f"CREATE TABLE z (id INT, v STRING) LOCATION '{tmp_path / 't'}'")
    acid.sql("UPDATE z SET v = 'B' WHERE id = 2")
    acid.sql("DELETE FROM z WHERE id = 3")
    assert sorted(map(tuple, acid.sql("SELECT * FROM z").collect())) == [(1, "a"), (2, "B")]
    deletes = sorted((tmp_path / "t").glob("delete_delta_*/bucket_*"))
    assert [file.name for file in deletes] == ["bucket_00003", "bucket_00003"]
    readers = [pyorc.Reader(BytesIO(file.read_bytes())) for file in deletes]
    assert [row[2] for reader in readers for row in reader] == [3, 3]


def test_all_three_parts_of_a_row_id_are_compared(put, read):
    other_bucket, other_statement = V1 | 1 << 16, V1 | 1
    put("delta_0000001_0000001_0000/bucket_00000", inserted(1, [(1, "a"), (2, "b")]))
    put("delta_0000001_0000001_0000/bucket_00001", inserted(1, [(3, "c")], bucket=other_bucket))
    put("delta_0000001_0000001_0001/bucket_00000", inserted(1, [(4, "d")], bucket=other_statement))
    put("delta_0000002_0000002_0000/bucket_00000", inserted(2, [(5, "e")]))
    put("delete_delta_0000003_0000003_0000/bucket_00000", deleted(3, (1, V1, 0)))
    assert [row[3] for row in read()] == [2, 4, 3, 5]


def test_a_snapshot_takes_from_a_range_what_it_sees_deletes_too(put, read):
    rows = [*inserted(1, [(1, "a"), (2, "b")]), *inserted(3, [(3, "c")])]
    put("delta_0000001_0000004/bucket_00000", rows)
    deletes = [(2, 1, V1, 0, 2, None), (2, 1, V1, 1, 4, None)]
    put("delete_delta_0000001_0000004/bucket_00000", deletes)
    everything = "t:4:9223372036854775807::"
    assert [row[3] for row in read(everything)] == [3]
    assert [row[3] for row in read("t:4:9223372036854775807::3")] == []
    assert [row[3] for row in read("t:4:9223372036854775807::4")] == [2, 3]
    assert [row[3] for row in read("t:4:2:2:")] == [1, 3]
    assert [row[3] for row in read("t:1:9223372036854775807::")] == [1, 2]


def test_originals_in_every_form_are_numbered_by_bucket_and_path(put, read):
    for path, ids in {
        "000000_0": (1, 2),
        "000000_0_copy_1": (3,),
        "000000_0_copy_10": (4,),
        "000000_0_copy_2": (5,),
        "HIVE_UNION_SUBDIR_15/000000_0": (6, 7),
        "HIVE_UNION_SUBDIR_16/000000_0": (8,),
        "000001_0": (9,),
        "HIVE_UNION_SUBDIR_16/000001_0": (10,),
        "_SUCCESS_/000000_0": (99,),
    }.items():
        put(path, [(number, "o") for number in ids], ROW)
    keys = [(0, V1, 1), (0, V1, 6), (0, V1 | 1 << 16, 1)]
    put("delete_delta_10000001_10000001_0000/bucket_00000", deleted(10000001, *keys[:2]))
    put("delete_delta_10000001_10000001_0000/bucket_00001", deleted(10000001, keys[2]))
    assert read() == [
        (0, V1, 0, 1, "o"), (0, V1, 2, 3, "o"), (0, V1, 3, 4, "o"), (0, V1, 4, 5, "o"),
        (0, V1, 5, 6, "o"), (0, V1, 7, 8, "o"), (0, V1 | 1 << 16, 0, 9, "o"),
    ]  # fmt: skip


def test_raw_files_that_load_data_left(put, read):
    put("base_0000002/000000_0", [(1, "a"), (2, "b")], ROW)
    put("delta_0000001_0000001_0000/bucket_00000", inserted(1, [(99, "hidden")]))
    put("delta_0000003_0000003_0002/000000_0", [(3, "c")], ROW)
    put("delta_0000003_0000003_0002/000001_0", [(4, "d")], ROW)
    put("delete_delta_0000004_0000004_0000/bucket_00000", deleted(4, (2, V1, 0)))
    assert read() == [(2, V1, 1, 2, "b"), (3, V1 | 2, 0, 3, "c"), (3, V1 | 1 << 16 | 2, 0, 4, "d")]


def test_a_truncated_base_hides_all_and_what_comes_after_is_seen(put, read, tmp_path):
    put("000000_0", [(1, "old")], ROW)
    put("delta_0000001_0000001_0000/bucket_00000", inserted(1, [(2, "old")]))
    base = tmp_path / "t" / "base_0000002"
    base.mkdir()
    (base / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')
    assert read() == []
    put("delta_0000003_0000003_0000/bucket_00000", inserted(3, [(3, "new")]))
    assert [row[3] for row in read()] == [3]
    assert [row[3] for row in read("t:1:9223372036854775807::")] == [1, 2]


def test_columns_without_names_and_a_column_too_few(put, read):
    nameless = EVENTS.replace(ROW, "struct<_col0:int,_col1:string>")
    put("delta_0000001_0000001_0000/bucket_00000", inserted(1, [(1, "a")]), nameless)
    short = EVENTS.replace(ROW, "struct<id:int>")
    put("delta_0000002_0000002_0000/bucket_00000", inserted(2, [(2,)]), short)
    put("delta_0000003_0000003_0000/bucket_00000", inserted(3, [(3, "c")]))
    assert [row[3:] for row in read()] == [(1, "a"), (2, None), (3, "c")]
    assert [row[3:] for row in read(where="v IS NULL")] == [(2, None)]


def test_litter_changes_nothing(put, read, tmp_path):
    put("delta_0000001_0000001_0000/bucket_00000", inserted(1, [(1, "a")]))
    stray = inserted(1, [(99, "stray")])
    put("delta_0000001_0000001_0000/delta_0000001_0000001_0000/bucket_00000", stray)
    put(".hive-staging_hive_1/bucket_00000", stray)
    put("_tmp.delta_0000002_0000002_0000/000000_0", stray)
    (tmp_path / "t/delta_0000001_0000001_0000/bucket_00001").write_bytes(b"")
    assert [row[3] for row in read()] == [1]


def test_the_schema_is_found_in_the_files_themselves(put, spark, tmp_path):
    put("delta_0000001_0000001_0000/bucket_00000", inserted(1, [(1, "a")]))
    frame = acidsql.read(spark, str(Path(tmp_path) / "t"))
    assert frame.columns == ["row__id", "id", "v"]
