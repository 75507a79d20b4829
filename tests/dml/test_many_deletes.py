"""Reads leave out what is deleted, however many delete events there are and wherever they lie."""

from __future__ import annotations

import re

import pytest
from kit import ordered, rows

from acidsql.acid.layout import parse_directory
from acidsql.storage.files.listing import EventFile, Listing
from acidsql.storage.reading import deletes, deletion_vectors


@pytest.mark.parametrize("how", ["bits", "events sent", "events sorted"])
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p STRING)"])
def test_deleted_rows_stay_away_however_they_are_told_from_the_others(
    acid, monkeypatch, how, partitioned
):
    if how == "events sent":  # the bits would take too much memory
        monkeypatch.setattr(deletion_vectors, "PAGES_MAX", 0)
    if how == "events sorted":  # there are too many events to be sent to every task
        monkeypatch.setattr(deletes, "SENT_MAX", 10)
        monkeypatch.setattr(deletion_vectors, "SENT_MAX", 10)
        monkeypatch.setattr(deletes, "_SURELY_FEW_BYTES", 0)
    acid.sql(f"CREATE TABLE t (id INT{'' if partitioned else ', p STRING'}) {partitioned}")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), concat('p', id % 3) FROM range(0, 3000, 1, 3)")
    acid.sql("DELETE FROM t WHERE id % 2 = 0")
    acid.sql("UPDATE t SET id = id + 10000 WHERE id % 5 = 0")
    acid.sql("DELETE FROM t WHERE id > 12000")
    kept = [i for i in range(3000) if i % 2 and i % 5]
    moved = [i + 10000 for i in range(3000) if i % 2 and not i % 5 and i + 10000 <= 12000]
    assert rows(acid, "SELECT id, p FROM t") == ordered(
        [(i, f"p{i % 3}") for i in kept] + [(i, f"p{(i - 10000) % 3}") for i in moved]
    )
    plan = acid.sql("EXPLAIN SELECT * FROM t").first()[0]
    joins = {"bits": [], "events sent": ["BroadcastHashJoin"], "events sorted": ["SortMergeJoin"]}
    assert re.findall(r"(\w+Join) [\[B]", plan) == joins[how]
    assert ("LocalTableScan [__acidsql_sent" in plan) == (how == "bits")


def test_what_was_written_after_all_deletes_is_read_without_the_join(acid, monkeypatch):
    monkeypatch.setattr(deletion_vectors, "PAGES_MAX", 0)
    monkeypatch.setattr(deletes, "MUCH_LATER", 1)
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t SELECT id, id % 2 FROM range(20)")
    acid.sql("UPDATE t SET id = id + 100 WHERE id > 17")
    assert "LeftAnti" in acid.sql("EXPLAIN SELECT * FROM t").first()[0]
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t SELECT id + 200, 0 FROM range(5)")
    acid.sql("DELETE FROM t WHERE id IN (1, 201)")
    acid.sql("INSERT INTO t SELECT id + 300, 0 FROM range(5)")
    acid.sql("COMMIT")
    ids = [*range(18), 118, 119, *range(200, 205), *range(300, 305)]
    assert rows(acid, "SELECT id FROM t") == ordered((i,) for i in ids if i not in (1, 201))


def _files(*directories):
    return tuple(EventFile(f"/t/{d}/bucket_00000", parse_directory(d), 1) for d in directories)


@pytest.mark.parametrize(
    ("data", "named", "is_later"),
    [
        ("delta_2_2_0001", "delete_delta_2_2_0000", True),
        ("delta_2_2_0000", "delete_delta_2_2_0000", False),
        ("delta_2_2_0000", "delete_delta_2_2_0001", False),
        ("delta_3_3_0000", "delete_delta_2_2_0007", True),
        ("delta_3_3_0000", "delete_delta_2_3", False),
        ("delta_3_9", "delete_delta_1_2", True),
        ("delta_2_9", "delete_delta_2_2_0000", False),
        ("base_9_v7", "delete_delta_2_2_0000", False),
    ],
)
def test_no_delete_event_names_a_row_of_a_later_statement(monkeypatch, data, named, is_later):
    monkeypatch.setattr(deletes, "MUCH_LATER", 1)
    before = _files("delta_1_1_0000")
    listing = Listing("", before + _files(data), _files(named))
    changed, unchanged = deletes.parted([listing], by_time=True)
    assert [one.data for one in unchanged] == ([_files(data)] if is_later else [])
    assert changed[0].data == (before if is_later else listing.data)
    assert changed[0].deletes == listing.deletes


def test_row_ids_that_mix_to_the_same_number_are_still_told_apart(spark):
    def row(write_id, bucket, row_id):
        return (write_id, bucket, row_id)

    columns = "__acidsql_writeid bigint, __acidsql_bucketid int, __acidsql_rowid bigint"
    # All four mix to one number: write ids count modulo 2**16, statement ids lie over row ids.
    same = [row(1, 536870912, 1 << 20), row(1, 536870913, 0), row(65537, 536870913, 0)]
    events = spark.createDataFrame([*same, row(2, 536870912, 0)], columns)
    gone = spark.createDataFrame([same[1]], columns)
    left = deletes.without_deleted(events, gone, [])
    assert sorted(map(tuple, left.collect())) == sorted([same[0], same[2], row(2, 536870912, 0)])
