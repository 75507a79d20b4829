"""One stream, or batch, changes several tables: all of them, or none."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from over_hive import OVER_HIVE, beside
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import TableName
from acidsql.errors import (
    AnalysisError,
    ConstraintError,
    LockTimeoutError,
    SettingError,
    WriteError,
)

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

COLUMNS = "tbl STRING, id INT, v STRING, n INT, op STRING"


@pytest.fixture
def both(acid):
    acid.sql("CREATE TABLE orders (id INT, v STRING)")
    acid.sql("CREATE TABLE lines (id INT, v STRING, tbl STRING) PARTITIONED BY (n INT)")
    common = {"sequence_by": "n", "apply_as_deletes": "op = 'd'"}
    orders = acid.auto_cdc("orders", keys="id", column_list=["id", "v"], **common)
    lines = acid.auto_cdc("lines", keys=["id"], except_column_list=["op"], **common)
    return acid.auto_cdc([lines, orders], by="TBL")


def frame(acid, *records):
    return acid.spark.createDataFrame(list(records), COLUMNS)


def rows(acid, name):
    return sorted(tuple(row) for row in acid.sql(f"SELECT * FROM {name}").collect())


@pytest.mark.needs("keeps_versions")
def test_each_record_goes_to_its_table_in_one_transaction(acid, both):
    done = both.apply(
        frame(
            acid, ("orders", 1, "a", 1, "u"), ("lines", 1, "b", 1, "u"), ("orders", 2, "c", 1, "u")
        )
    )
    assert Counter({one.table: one.inserted for one in done.counts}) == {
        "default.lines": 1, "default.orders": 2,
    }  # fmt: skip
    assert rows(acid, "orders") == [(1, "a"), (2, "c")]
    assert rows(acid, "lines") == [(1, "b", "lines", 1)]
    histories = [acid.history(name, 1).first().txnId for name in ("orders", "lines")]
    assert histories == [done.txn_id, done.txn_id]
    only = both.apply(frame(acid, ("orders", 2, None, 2, "d")))
    assert [one.table for one in only.counts] == ["default.orders"]
    assert rows(acid, "orders") == [(1, "a")]


def test_a_record_of_no_target_refuses_the_whole_batch(acid, both):
    for other in ("else", None, "Orders"):
        with pytest.raises(WriteError, match="no target has this name") as caught:
            both.apply(frame(acid, ("orders", 1, "a", 1, "u"), (other, 1, "b", 1, "u")))
        assert caught.value.condition == "CDC_UNKNOWN_TARGET"
    with pytest.raises(AnalysisError, match="no column 'TBL'"):
        both.apply(frame(acid).drop("tbl"))
    assert rows(acid, "orders") == []
    assert not acid.metastore.show_locks()


def test_if_one_table_cannot_be_changed_none_is(acid, both):
    both.apply(frame(acid, ("orders", 1, "a", 1, "u"), ("lines", 1, "a", 1, "u")))
    # Two records of one key and one order value disagree; the other table is changed before.
    bad = (("orders", 9, "x", 3, "u"), ("orders", 9, "y", 3, "u"))
    with pytest.raises(ConstraintError):
        both.apply(frame(acid, ("lines", 1, "b", 2, "u"), *bad), txn_app_id="a", txn_version=1)
    assert rows(acid, "lines") == [(1, "a", "lines", 1)]
    assert acid.streams().count() == 0
    both.apply(frame(acid, ("lines", 1, "b", 2, "u")), txn_app_id="a", txn_version=1)
    again = both.apply(frame(acid, ("lines", 1, "c", 5, "u")), txn_app_id="a", txn_version=1)
    assert "skipped" in str(again)
    assert rows(acid, "lines") == [(1, "b", "lines", 2)]
    (entry,) = acid.streams().collect()
    assert (entry.sink, entry.txnVersion) == ("default.lines, default.orders", 1)


def test_a_stream_feeds_both_tables_and_a_replay_changes_nothing(acid, tmp_path):
    """Random records in some batches, against the fold of all of them; a crash after a COMMIT."""
    acid.sql("CREATE TABLE a (id INT, v STRING)")
    acid.sql("CREATE TABLE b (id INT, v STRING)")
    clauses = {"keys": "id", "sequence_by": "n", "apply_as_deletes": "op = 'd'"}
    targets = {
        f"of {name}": acid.auto_cdc(name, column_list=["id", "v"], **clauses) for name in "ab"
    }
    chance, fold, source = random.Random(3), {}, tmp_path / "source"
    source.mkdir()
    seen = []

    def picked(name, records):
        seen.append(name)
        return records.withColumn("v", F.upper("v"))

    names = [part.split()[0] for part in COLUMNS.split(", ")]

    def run():
        query = (
            acid.spark.readStream.schema(COLUMNS).json(str(source)).writeStream
            .foreachBatch(acid.auto_cdc(targets, by="tbl", transform=picked))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    for batch in range(3):
        records = [
            (f"of {chance.choice('ab')}", chance.randrange(4), f"v{n}", 10 * batch + n,
             chance.choice("uud")) for n in range(8)
        ]  # fmt: skip
        lines = [json.dumps(dict(zip(names, one, strict=True))) for one in records]
        (source / f"{batch}.json").write_text("\n".join(lines))
        for table, key, value, _, op in records:
            fold[(table, key)] = None if op == "d" else value.upper()
        run()
        if batch == 1:
            for name in ("1", ".1.crc"):
                (tmp_path / "checkpoint/commits" / name).unlink()
            run()
    for name in "ab":
        expected = [(k, v) for (t, k), v in fold.items() if t == f"of {name}" and v is not None]
        assert rows(acid, name) == sorted(expected)
    assert set(seen) == set(targets)
    (entry,) = acid.streams().collect()
    assert (entry.sink, entry.txnVersion) == ("default.a, default.b", 2)


def test_wrong_arguments_are_refused_at_once(acid, both):
    one = acid.auto_cdc("orders", keys="id", sequence_by="n")
    for target, options in (
        ([one], {}),
        ([], {"by": "tbl"}),
        ([one, one], {"by": "tbl"}),
        ({"a": one, "b": one}, {"by": "tbl"}),
        (["orders"], {"by": "tbl"}),
        ([both], {"by": "tbl"}),
        ([one], {"by": "tbl", "keys": "id"}),
        ("orders", {"by": "tbl"}),
    ):
        with pytest.raises((SettingError, TypeError)):
            acid.auto_cdc(target, **options)
    assert repr(both) == "<acidsql auto_cdc into default.lines, default.orders, by TBL>"


def test_the_name_in_the_ledger_fits_into_the_ledger(acid, both):
    table = acid.metastore.find(TableName("default", "orders"))
    many = {str(i): replace(table, name=TableName("d", f"{'x' * 120}{i}")) for i in range(5)}
    assert both._sink_name(many).startswith("5 tables, ")
    assert both._sink_name(many) != both._sink_name({**many, "0": table})


@pytest.mark.parametrize("word", ["CREATE", "CREATE OR REPLACE"])
def test_a_batch_comes_again_for_a_target_that_was_made_anew(acid, both, word):
    """It changes nothing in the others, which have its order values."""
    batch = frame(acid, ("orders", 1, "a", 1, "u"), ("lines", 1, "b", 1, "u"))
    both.apply(batch, txn_app_id="app", txn_version=4)
    assert "skipped" in str(both.apply(batch, txn_app_id="app", txn_version=4))
    if word == "CREATE":
        acid.sql("DROP TABLE lines")
    acid.sql(f"{word} TABLE lines (id INT, v STRING, tbl STRING) PARTITIONED BY (n INT)")
    both.apply(batch, txn_app_id="app", txn_version=4)
    assert rows(acid, "lines") == [(1, "b", "lines", 1)]
    assert rows(acid, "orders") == [(1, "a")]
    assert "skipped" in str(both.apply(batch, txn_app_id="app", txn_version=4))


def test_a_batch_locks_its_tables_before_it_reads_any_of_them(acid):
    """Else it would conflict with each change of its second table meanwhile."""
    impatient = {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1ms"}
    refused = []
    for name in ("a", "b"):
        acid.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    targets = [
        acid.auto_cdc(name, keys="id", sequence_by="n", column_list=["id", "v"])
        for name in ("a", "b")
    ]

    def late(name, records):
        if name == "b" and records.count():
            with pytest.raises(LockTimeoutError) as caught:
                other.sql("UPDATE b SET v = 'z'")
            # Hive's server does not keep the statement of a transaction.
            assert OVER_HIVE or "AUTO CDC INTO default.a, default.b" in str(caught.value)
            refused.append(name)
        return records

    batch = frame(acid, ("a", 1, "a", 1, "u"), ("b", 2, "b", 1, "u"))
    with beside(acid, compactor="off", settings=impatient) as other:
        acid.auto_cdc(targets, by="tbl", transform=late).apply(batch)
    assert refused == ["b"]
    assert rows(acid, "a") == [(1, "a")] and rows(acid, "b") == [(2, "b")]
