"""What becomes of each record, by its order value. One story of three batches, in two tables: one
has columns for order values, the other has not."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pyorc
import pytest
from kit_cdc import Change, deleted, live, put

import acidsql

pytestmark = pytest.mark.spark

# (columns of the target, columns of the records that it leaves out)
TARGETS = {
    "order in the target": (
        "id INT NOT NULL, v STRING NOT NULL, ts INT, batch INT) PARTITIONED BY (p STRING", "op"),
    "order beside the target": (
        "id INT, v STRING) PARTITIONED BY (p STRING) CLUSTERED BY (id) INTO 2 BUCKETS --",
        "op, ts, batch"),
}  # fmt: skip

FIRST = [
    *(Change(key, "first", 5) for key in (1, 2, 3, 4)),
    Change(5, None, 3, op="d"),
    Change(6, "late", 3), Change(6, "early", 1), Change(6, "middle", 2),
    Change(7, "same", 4), Change(7, "same", 4),
    Change(8, "short", 2), Change(8, None, 3, op="d"),
    Change(9, "moves", 1, p="x"),
    Change(10, "goes", 1),
    Change(11, "second batch wins", 1, 2), Change(11, "first batch", 1, 1),
]  # fmt: skip
SECOND = [
    Change(1, "newer", 6),
    Change(2, "first", 5),
    Change(3, "stale", 4),
    Change(4, "stale", 4),
    Change(5, "late", 2),
    Change(8, "not newer", 3),
    Change(9, "moved", 2, p="y"),
    Change(10, None, 9, op="d"),
    Change(12, "an update of an unknown key", 1),
]
THIRD = [Change(4, "newest", 9), Change(5, "revived", 4), Change(10, "not revived", 9)]


@pytest.fixture(scope="module", params=TARGETS)
def story(request, spark, tmp_path_factory):
    """The tables and receipts after each batch."""
    columns, left_out = TARGETS[request.param]
    warehouse = tmp_path_factory.mktemp("warehouse")
    with acidsql.connect(spark, warehouse=str(warehouse), compactor="off") as acid:
        acid.sql(f"CREATE TABLE t ({columns})")
        told = SimpleNamespace(rows=[], gone=[], counts=[], receipts=[], acid=acid)
        for batch in (FIRST, SECOND, THIRD):
            put(acid, "s", batch)
            counts = acid.sql(
                f"AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' "
                f"SEQUENCE BY struct(ts, batch) COLUMNS * EXCEPT ({left_out})"
            )
            told.counts.append(counts.collect()[0])
            told.receipts.append(str(acid.last))
            told.rows.append(live(acid))
            told.gone.append(deleted(acid))
            if batch is FIRST:
                acid.sql("UPDATE t SET v = 'by hand' WHERE id = 4")
        yield told


def test_a_record_of_an_unknown_key_becomes_a_row(story):
    assert story.rows[0][1] == ("first", "x")
    assert story.rows[1][12] == ("an update of an unknown key", "x")


def test_a_newer_record_replaces_the_row(story):
    assert story.rows[1][1] == ("newer", "x")


def test_a_delete_removes_the_row_and_is_remembered(story):
    assert 10 in story.rows[0] and 10 not in story.rows[1]
    assert 10 in story.gone[1]


def test_a_delete_of_an_unknown_key_is_no_error_and_is_remembered(story):
    assert 5 not in story.rows[0]
    assert 5 in story.gone[0]


def test_of_several_records_of_a_key_the_one_with_the_highest_order_wins(story):
    assert story.rows[0][6] == ("late", "x")
    assert story.rows[0][11] == ("second batch wins", "x")
    assert 8 not in story.rows[0] and 8 in story.gone[0]


def test_equal_records_count_once_and_again_change_nothing(story):
    assert story.rows[0][7] == ("same", "x")
    assert story.rows[1][2] == ("first", "x")


def test_a_stale_record_changes_nothing_not_even_after_an_update_by_hand(story):
    assert story.rows[1][3] == ("first", "x")
    assert story.rows[1][4] == ("by hand", "x")
    assert story.rows[2][4] == ("newest", "x")


def test_no_record_brings_a_row_back_unless_it_is_newer_than_the_delete(story):
    assert 5 not in story.rows[1] and 8 not in story.rows[1]
    assert 10 not in story.rows[2]
    assert story.rows[2][5] == ("revived", "x")


def test_a_revived_key_is_no_deleted_key_any_more(story):
    assert story.gone[2] == {8, 10}
    assert story.gone[2].isdisjoint(story.rows[2])


def test_a_row_moves_to_its_new_partition_and_is_nowhere_else(story):
    assert story.rows[0][9] == ("moves", "x")
    assert story.rows[1][9] == ("moved", "y")


def test_the_counts_say_what_became_of_the_records(story):
    first, second, _ = story.counts
    assert (first.num_inserted_rows, first.num_updated_rows, first.num_deleted_rows) == (9, 0, 0)
    assert (first.num_records, first.num_stale_records, first.num_duplicate_records) == (16, 4, 1)
    assert (second.num_inserted_rows, second.num_updated_rows, second.num_deleted_rows) == (1, 2, 1)
    assert (second.num_records, second.num_stale_records, second.num_duplicate_records) == (9, 3, 2)
    assert "9 records, 3 stale, 2 duplicate" in story.receipts[1]


def test_other_readers_see_the_same(story):
    acid, place = story.acid, f"{story.acid.warehouse}/t"
    table = acid.sql("SELECT id, v, p FROM t")
    found = acidsql.read(acid.spark, place, partitioned_by="p string").select("id", "v", "p")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, table.collect()))
    state = Path(f"{place}__acidsql_cdc")
    events = [
        event
        for path in state.rglob("bucket_*")
        for event in pyorc.Reader(BytesIO(path.read_bytes()))
    ]
    gone = {event[1:4] for event in events if event[0] == 2}
    kept = [event[5] for event in events if event[0] == 0 and event[1:4] not in gone]
    assert {row[0] for row in kept if row[2]} == {8, 10}
