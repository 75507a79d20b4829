"""AUTO CDC from Python: as the sink of a stream, and for DataFrames."""

from __future__ import annotations

import json

import pytest
from kit_cdc import COLUMNS, Change, deleted, live, put
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.errors import SettingError, TxnError, UnsupportedError

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]


@pytest.fixture
def cdc(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    return acid.auto_cdc(
        "t",
        keys="id",
        sequence_by="struct(ts, batch)",
        apply_as_deletes="op = 'd'",
        except_column_list=["op", "ts", "batch"],
    )


def frame(acid, *changes):
    return acid.spark.createDataFrame([one.row for one in changes], COLUMNS)


def test_a_stream_of_changes_is_applied_once_and_noted_in_the_ledger(acid, cdc, tmp_path):
    names = [part.split()[0] for part in COLUMNS.split(", ")]
    source = tmp_path / "source"
    source.mkdir()

    def add(name, *changes):
        lines = [json.dumps(dict(zip(names, one.row, strict=True))) for one in changes]
        (source / f"{name}.json").write_text("\n".join(lines))

    def run():
        rows = acid.spark.readStream.schema(COLUMNS).json(str(source))
        query = (
            rows.writeStream.foreachBatch(cdc)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    add("1", Change(1, "a", 1), Change(2, "b", 1))
    query = run()
    add("2", Change(1, "b", 2), Change(2, None, 3, op="d"))
    run()
    assert live(acid) == {1: ("b", "x")} and deleted(acid) == {2}
    (entry,) = acid.streams().collect()
    assert (entry.txnAppId, entry.sink, entry.txnVersion) == (query.id, "default.t", 1)
    assert entry.numWaiting is None  # it has no commit points
    assert entry.numRows == 2
    # As after a crash between COMMIT and Spark's note that the batch is done.
    for path in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        path.unlink()
    acid.sql("UPDATE t SET v = 'by hand'")
    run()
    assert live(acid) == {1: ("by hand", "x")}
    assert "skipped: batch 1" in str(cdc.last)


def test_a_dataframe_is_applied_and_a_numbered_one_only_once(acid, cdc):
    rows = frame(acid, Change(1, "a", 1), Change(2, None, 1, op="d"))
    receipt = cdc.apply(rows, txn_app_id="load", txn_version=7)
    assert receipt.counts[0].inserted == 1 and "2 records" in str(receipt)
    assert "skipped: batch 7" in str(cdc.apply(rows, txn_app_id="load", txn_version=7))
    assert "1 stale" in str(cdc.apply(frame(acid, Change(2, "late", 0), Change(3, "c", 1))))
    assert live(acid) == {1: ("a", "x"), 3: ("c", "x")}


def test_in_a_transaction_of_the_session_a_batch_would_wait_for_its_own_caller(acid, cdc):
    frame = acid.spark.range(0)
    direct = acid.sink("t", txn_app_id="app")
    acid.sql("BEGIN")
    acid.sql("LOCK TABLE t EXCLUSIVE")
    for call in (lambda: cdc.apply(frame), lambda: direct(frame, 1)):
        with pytest.raises(TxnError, match="its own, inside of a transaction") as caught:
            call()
        assert caught.value.condition == "ACTIVE_SQL_TRANSACTION"
    acid.sql("ROLLBACK")


def test_the_source_is_evaluated_once(acid, cdc):
    seen = acid.spark.sparkContext.accumulator(0)

    def count(value):
        seen.add(1)
        return value

    changes = [*(Change(key, "a", 1) for key in range(7)), Change(0, None, 2, op="d")]
    rows = frame(acid, *changes).withColumn("v", F.udf(count, "string")("v"))
    cdc.apply(rows)
    assert seen.value == 8 and len(live(acid)) == 6


def test_a_source_that_looks_small_and_gives_many_records_is_evaluated_anew(acid, cdc):
    """The driver gives up what it has collected, and the records are those of one evaluation."""
    seen = acid.spark.sparkContext.accumulator(0)

    def count(value):
        seen.add(1)
        return value

    noted = acid.spark.range(3).select(F.udf(count, "bigint")("id").alias("id"))
    few = noted.selectExpr("explode(sequence(id * 2000, id * 2000 + 1999)) AS id", "uuid() AS v")
    rows = few.selectExpr("int(id) AS id", "v", "v AS p", "1 AS ts", "0 AS batch", "'u' AS op")
    cdc.apply(rows)
    found = live(acid)
    assert sorted(found) == list(range(6000)) and all(v == p for v, p in found.values())
    assert seen.value == 2 * 3


def test_a_numbered_statement_is_applied_once(acid, cdc):
    put(acid, "s", [Change(1, "a", 1)])
    text = "AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY ts COLUMNS (v, p)"
    acid.sql(text, txn_app_id="load", txn_version=1)
    acid.sql("DELETE FROM t")
    acid.sql("DROP TABLE t__acidsql_cdc")
    acid.sql(text, txn_app_id="load", txn_version=1)
    assert live(acid) == {}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"stored_as_scd_type": 3}, UnsupportedError),
        ({"column_list": ["v"], "except_column_list": ["op"]}, SettingError),
        ({"sequence_by": "ts COLUMNS (v)"}, SettingError),
        ({"apply_as_deletes": "op = 'd'; DROP TABLE t"}, SettingError),
        ({"txn_app_id": ""}, SettingError),
        ({"retries": -1}, SettingError),
    ],
)
def test_wrong_arguments_are_refused_at_once(acid, given, error):
    with pytest.raises(error):
        acid.auto_cdc("t", **{"keys": ["id"], **given})
