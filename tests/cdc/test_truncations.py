"""APPLY AS TRUNCATE WHEN: a record deletes all rows that are not newer than the record."""

from __future__ import annotations

import pytest
from kit_cdc import Change, deleted, live, put

from acidsql.errors import ConstraintError, SettingError, SqlError

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

CDC = (
    "AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' "
    "APPLY AS TRUNCATE WHEN op = 't' SEQUENCE BY ts COLUMNS * EXCEPT (op, batch{})"
)
TARGETS = {
    "order in": ("id INT, v STRING, ts INT, kept STRING DEFAULT 'new') PARTITIONED BY (p STRING",
                 CDC.format("")),
    "order beside": ("id INT, v STRING, p STRING, kept STRING DEFAULT 'new'", CDC.format(", ts")),
}  # fmt: skip


def truncation(ts):
    """A record that truncates. It has no key, and nothing that fits a column."""
    return Change(None, None, ts, op="t")


@pytest.mark.parametrize("kind", TARGETS)
def test_older_rows_go_newer_rows_stay_and_older_records_stay_out(acid, kind):
    columns, text = TARGETS[kind]
    acid.sql(f"CREATE TABLE t ({columns})")

    def apply(*changes):
        put(acid, "s", changes)
        return acid.sql(text).collect()[0]

    apply(
        *(Change(key, "first", 2) for key in (1, 2, 3)),
        Change(4, "newer", 9), Change(5, None, 2, op="d"), Change(6, None, 9, op="d"),
    )  # fmt: skip
    acid.sql("UPDATE t SET kept = 'mine'")
    acid.sql("INSERT INTO t (id, v, p) VALUES (7, 'by hand', 'x'), (NULL, 'no key', 'x')")
    counts = apply(Change(1, "after", 6), Change(2, "before", 4), truncation(5), truncation(3))
    assert live(acid) == {1: ("after", "x"), 4: ("newer", "x")}
    kept = acid.sql("SELECT id, kept FROM t").collect()
    assert {tuple(row) for row in kept} == {(1, "new"), (4, "mine")}
    assert deleted(acid) == {6}
    assert (counts.num_updated_rows, counts.num_deleted_rows) == (1, 4)
    assert (counts.num_records, counts.num_stale_records) == (4, 2)
    # The floor holds whether a later statement has the clause or not.
    late = [Change(2, "late", 5), Change(5, "late", 3), Change(6, "late", 9)]
    put(acid, "s", [*late, Change(8, "in time", 6)])
    acid.sql(text.replace("APPLY AS TRUNCATE WHEN op = 't' ", ""))
    assert live(acid) == {1: ("after", "x"), 4: ("newer", "x"), 8: ("in time", "x")}
    # A truncation that comes again, or late, changes nothing; not even a row of an unknown age.
    acid.sql("INSERT INTO t (id, v, p) VALUES (9, 'by hand', 'x')")
    assert apply(truncation(5), truncation(4)).num_affected_rows == 0
    assert live(acid).keys() == {1, 4, 8, 9}
    apply(truncation(20))
    assert live(acid) == {} and deleted(acid) == set()
    state = acid.sql("SELECT id, sequence FROM t__acidsql_cdc").collect()
    assert [tuple(row) for row in state] == [(None, 20)]


def test_a_condition_may_be_the_word_null(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    text = CDC.format(", ts").replace("op = 't'", "NULL")
    put(acid, "s", [Change(1, "a", 1), Change(2, "b", 1, op="d")])
    acid.sql(text)
    assert live(acid) == {1: ("a", "x")}
    put(acid, "s", [Change(1, "c", 2, op="t"), Change(2, "d", 2, op="d")])
    acid.sql(text.replace("op = 'd'", "NULL"))
    assert live(acid) == {1: ("c", "x"), 2: ("d", "x")}


def test_a_truncation_can_be_declared_with_the_table_and_needs_an_order(acid):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, p STRING) TBLPROPERTIES ('acidsql.cdc.keys' = 'id', "
        "'acidsql.cdc.sequence.by' = 'ts', \"acidsql.cdc.truncate.when\" = \"op = 't'\")"
    )
    put(acid, "s", [Change(1, "a", 1), truncation(1), Change(2, "b", 2)])
    acid.sql("AUTO CDC INTO t FROM s COLUMNS (id, v, p)")
    assert live(acid) == {2: ("b", "x")}
    assert (
        "truncates: op = 't'"
        in (acid.sql("EXPLAIN AUTO CDC INTO t FROM s COLUMNS (id, v, p)").collect()[0][0])
    )
    put(acid, "s", [truncation(None)])
    with pytest.raises(ConstraintError) as caught:
        acid.sql("AUTO CDC INTO t FROM s COLUMNS (id, v, p)")
    assert caught.value.condition == "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE"
    text = "AUTO CDC INTO t FROM s APPLY AS TRUNCATE WHEN op COLUMNS (id, v, p)"
    with pytest.raises(SqlError) as caught:
        acid.sql(text)
    assert caught.value.condition == "AUTOCDC_DECLARATION_DRIFT"


def test_a_target_with_a_key_twice_is_refused_by_a_truncation_too(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 'x'), (1, 'b', 'x')")
    put(acid, "s", [truncation(1)])
    with pytest.raises(ConstraintError) as caught:
        acid.sql(CDC.format(", ts"))
    assert caught.value.condition == "AUTOCDC_TARGET_KEY_NOT_UNIQUE"


def test_a_partial_record_after_a_truncation_finds_no_old_value(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    text = CDC.format(", ts").replace("KEYS (id)", "KEYS (id) IGNORE NULL UPDATES")
    for batch in (
        [Change(1, "a", 1, p="x"), Change(2, "b", 1, p="x")],
        [Change(1, None, 3, p="y"), truncation(2), Change(2, "late", 2), Change(2, None, 4, p="z")],
    ):
        put(acid, "s", batch)
        acid.sql(text)
    assert live(acid) == {1: (None, "y"), 2: (None, "z")}


def test_python_has_the_same_word(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    clauses = {"keys": "id", "sequence_by": "ts", "column_list": ["id", "v", "p"]}
    put(acid, "s", [Change(1, "a", 1), Change(2, "b", 3), truncation(2)])
    acid.auto_cdc("t", apply_as_truncates="op = 't'", **clauses).apply(acid.spark.table("s"))
    assert live(acid) == {2: ("b", "x")}
    with pytest.raises(SettingError, match="is not one SQL expression"):
        acid.auto_cdc("t", apply_as_truncates="op = 't' SEQUENCE BY x", **clauses)


def test_the_truncations_of_a_feed_are_applied(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    source = '"source": {"connector": "mysql", "file": "b.1", "pos": %d, "row": 0, "table": "t"}'
    texts = [
        '{"op": "c", "before": null, "after": {"id": 1, "v": "a"}, %s}' % (source % 1),
        '{"op": "t", "before": null, "after": null, %s}' % (source % 2),
        '{"op": "c", "before": null, "after": {"id": 2, "v": "b"}, %s}' % (source % 3),
    ]
    feed = acid.spark.createDataFrame([(text,) for text in texts], "value STRING")
    cdc = acid.auto_cdc(
        "t", keys="id", sequence_by="_sequence", apply_as_deletes="_op = 'delete'",
        apply_as_truncates="_op = 'truncate'", column_list=["id", "v"],
    )  # fmt: skip
    cdc.apply(acid.changes_from("debezium", feed, "id INT, v STRING"))
    assert [tuple(row) for row in acid.sql("SELECT * FROM t").collect()] == [(2, "b")]
