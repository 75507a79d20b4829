"""Reads leave out deleted rows, however many delete events there are and whatever their row ids
are."""

from __future__ import annotations

import re

import pytest
from kit import ordered, rows

from acidsql.storage.reading.events import deletes, deletion_vectors


@pytest.mark.parametrize("how", ["bits", "events sent", "events sorted"])
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p STRING)"])
def test_deleted_rows_stay_away_however_they_are_told_from_the_others(
    acid, monkeypatch, how, partitioned
):
    if how == "events sent":  # the bits would take too much memory
        monkeypatch.setattr(deletion_vectors, "PAGES_MAX", 0)
    if how == "events sorted":  # there are too many events to send them to every task
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


def test_row_ids_that_mix_to_the_same_number_are_still_told_apart(spark):
    def row(write_id, bucket, row_id):
        return (write_id, bucket, row_id)

    columns = "__acidsql_writeid bigint, __acidsql_bucketid int, __acidsql_rowid bigint"
    # The first three mix to one number: write ids count modulo 2**16, and statement ids overlap
    # with row ids.
    same = [row(1, 536870912, 1 << 20), row(1, 536870913, 0), row(65537, 536870913, 0)]
    events = spark.createDataFrame([*same, row(2, 536870912, 0)], columns)
    gone = spark.createDataFrame([same[1]], columns)
    left = deletes.remove_deleted(events, gone, [])
    assert sorted(map(tuple, left.collect())) == sorted([same[0], same[2], row(2, 536870912, 0)])
