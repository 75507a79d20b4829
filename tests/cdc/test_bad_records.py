"""Records that cannot be applied go to a table of their own, in the transaction of the others."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from kit_cdc import COLUMNS, Change, live
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.errors import AnalysisError, ConstraintError, SettingError

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

CLAUSES = {
    "keys": "id",
    "sequence_by": "struct(ts, batch)",
    "apply_as_deletes": "op = 'd'",
    "apply_as_truncates": "op = 't'",
    "except_column_list": ["op", "ts", "batch"],
}
NULL_KEY, NULL_SEQUENCE, UNKNOWN = (
    "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY", "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE",
    "CDC_UNKNOWN_TARGET",
)  # fmt: skip


def frame(acid, *changes):
    return acid.spark.createDataFrame([one.row for one in changes], COLUMNS)


def aside(acid, name="bad"):
    """The records that were put aside: reason, target, record, application and number."""
    found = acid.sql(f"SELECT * FROM {name}").collect()
    assert all(abs(row.at - datetime.now(UTC).replace(tzinfo=None)).days == 0 for row in found)
    return sorted(
        ((row.reason, row.target, json.loads(row.record), row.txn_app_id, row.txn_version)
         for row in found),
        key=str,
    )  # fmt: skip


@pytest.fixture
def cdc(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    return acid.auto_cdc("t", bad_records="bad", **CLAUSES)


@pytest.mark.needs("keeps_versions")
def test_bad_records_are_put_aside_and_the_others_are_applied_once(acid, cdc):
    seen = acid.spark.sparkContext.accumulator(0)

    def count(value):
        seen.add(1)
        return value

    changes = [
        Change(0, "gone", 0), Change(None, None, 1, op="t"),  # a truncation needs no key
        Change(1, "a", 2), Change(None, "no key", 3), Change(2, "no order", None),
        Change(3, "half an order", 3, None), Change(None, "neither", None),
    ]  # fmt: skip
    rows = frame(acid, *changes).withColumn("v", F.udf(count, "string")("v"))
    done = cdc.apply(rows, txn_app_id="load", txn_version=7)
    assert seen.value == len(changes)
    assert live(acid) == {1: ("a", "x")}
    names = [part.split()[0] for part in COLUMNS.split(", ")]
    expected = [
        (reason, "default.t", dict(zip(names, changes[number].row, strict=True)), "load", 7)
        for number, reason in (
            (3, NULL_KEY), (4, NULL_SEQUENCE), (5, NULL_SEQUENCE), (6, NULL_KEY))
    ]  # fmt: skip
    assert aside(acid) == sorted(expected, key=str)
    assert {one.table: one.inserted for one in done.counts} == {"default.t": 1, "default.bad": 4}
    assert f"default.bad: put aside 2 {NULL_KEY}, 2 {NULL_SEQUENCE}" in done.notes
    assert acid.history("bad", 1).first().txnId == done.txn_id
    assert "skipped" in str(cdc.apply(rows, txn_app_id="load", txn_version=7))
    assert len(aside(acid)) == 4


def test_what_is_no_bad_record_refuses_the_batch_and_nothing_is_put_aside(acid, cdc):
    ties = [Change(1, "a", 1), Change(1, "b", 1), Change(None, "no key", 1)]
    with pytest.raises(ConstraintError) as caught:
        cdc.apply(frame(acid, *ties), txn_app_id="load", txn_version=1)
    assert caught.value.condition == "AUTOCDC_MICROBATCH_VALIDATION.CONFLICTING_RECORDS"
    assert aside(acid) == [] and live(acid) == {} and acid.streams().count() == 0
    done = cdc.apply(frame(acid, Change(1, "a", 1)))
    assert [one.table for one in done.counts] == ["default.t"]
    done = cdc.apply(frame(acid, Change(None, "no key", 1)))
    assert [one[3:] for one in aside(acid)] == [(None, None)]
    assert live(acid) == {1: ("a", "x")}


def test_keys_and_order_values_are_judged_as_the_table_has_them(acid):
    """An empty text is NULL in a partition; the order value is that of the table's column."""
    acid.sql("CREATE TABLE t (v STRING, ts INT) PARTITIONED BY (p STRING)")
    cdc = acid.auto_cdc("t", keys="p", sequence_by="ts", column_list=["v", "ts"], bad_records="bad")
    cdc.apply(frame(acid, Change(1, "a", 1, p=""), Change(2, "b", None, p="y"), Change(3, "c", 1)))
    assert [tuple(row) for row in acid.sql("SELECT p, v FROM t").collect()] == [("x", "c")]
    assert [(one[0], one[2]["id"]) for one in aside(acid)] == [(NULL_KEY, 1), (NULL_SEQUENCE, 2)]


def test_of_several_targets_also_the_records_of_none_are_put_aside(acid, cdc):
    acid.sql("CREATE TABLE u (id INT, v STRING, p STRING)")
    plain = acid.auto_cdc("u", **CLAUSES)
    both = acid.auto_cdc({"T": cdc, "U": plain}, by="tbl", bad_records="others")
    of = F.when(F.col("v").startswith("t"), "T").when(F.col("v").startswith("u"), "U")
    rows = frame(
        acid, Change(1, "t", 1), Change(2, "u", 1), Change(None, "t bad", 1),
        Change(None, "u bad", 1), Change(5, "w", 1),
    ).withColumn("tbl", F.when(F.col("v") == "w", "u").otherwise(of))  # fmt: skip
    done = both.apply(rows.unionByName(rows.limit(1).withColumn("tbl", F.lit(None))))
    assert (live(acid), live(acid, "u")) == ({1: ("t", "x")}, {2: ("u", "x")})
    assert [one[:2] for one in aside(acid)] == [(NULL_KEY, "default.t")]
    assert [(one[:2], one[2]["v"]) for one in aside(acid, "others")] == [
        ((NULL_KEY, "default.u"), "u bad"), ((UNKNOWN, "u"), "w"), ((UNKNOWN, None), "t"),
    ]  # fmt: skip
    assert f"default.others: put aside 2 {UNKNOWN}" in done.notes


def test_a_table_of_bad_records_is_an_acid_table_and_not_the_target(acid, cdc):
    with pytest.raises(SettingError, match="names the target"):
        acid.auto_cdc("t", bad_records="T", **CLAUSES)
    with pytest.raises(AnalysisError, match="database.table"):
        acid.auto_cdc("t", bad_records="c.d.e", **CLAUSES).apply(frame(acid, Change(1, "a", 1)))
    acid.sql("CREATE TABLE other (n INT)")
    with pytest.raises(AnalysisError, match="reason"):
        acid.auto_cdc("t", bad_records="other", **CLAUSES).apply(
            frame(acid, Change(1, "a", 1), Change(None, "a", 1))
        )
    assert live(acid) == {}
