"""A statement that only deletes writes no rows: Spark makes the keys if its query is repeatable."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kit import rows

from acidsql.acid.bucket_codec import encode
from acidsql.costs import FastPath
from acidsql.errors import TransientTxnError
from acidsql.storage import event_records as ew
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.writing import job as write
from acidsql.storage.writing.event_writer import write_inserts_pass_deletes
from acidsql.storage.writing.save import TableWrite

pytestmark = pytest.mark.usefixtures("by_jobs")


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'old' FROM range(1, 1001)")
    acid.sql("UPDATE t SET v = 'new' WHERE id % 10 = 0")
    return acid


@pytest.fixture
def keys(spark, tmp_path):
    path = str(tmp_path / "keys")
    spark.range(901, 2000).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("keys")
    yield path
    spark.catalog.dropTempView("keys")


def delete_by_keys(acid, statement):
    """Run a statement, and check that it had no insert stage. Returns its row of counts."""
    row = acid.sql(statement).first()
    assert FastPath.KEYS_ALONE in acid.last.costs.fast_paths
    return row


@pytest.mark.classic
def test_files_and_tables_of_keys_are_the_same_each_time(t, keys):
    delete_by_keys(t, "DELETE FROM t WHERE id IN (SELECT id FROM keys)")
    assert rows(t, "SELECT count(*), max(id) FROM t") == [(900, 900)]
    t.sql("CREATE TABLE gone (id INT)")
    t.sql("INSERT INTO gone SELECT id FROM t WHERE id > 800")
    delete_by_keys(t, "DELETE FROM t WHERE EXISTS (SELECT * FROM gone g WHERE g.id = t.id)")
    assert rows(t, "SELECT count(*), max(id) FROM t") == [(800, 800)]
    delete_by_keys(t, "MERGE INTO t USING keys k ON t.id = k.id - 200 WHEN MATCHED THEN DELETE")
    delete_by_keys(t, "DELETE FROM t WHERE id < 11 OR v = 'new'")
    assert rows(t, "SELECT min(id), max(id), count(*) FROM t") == [(11, 699, 690 - 69)]


@pytest.mark.parametrize("chosen", ["LIMIT 5", "ORDER BY rand() LIMIT 5"])
def test_what_might_be_others_the_second_time_is_followed_from_task_to_task(t, keys, chosen):
    t.sql(f"DELETE FROM t WHERE id IN (SELECT id - 900 FROM keys WHERE id < 1900 {chosen})")
    assert FastPath.KEYS_ALONE not in t.last.costs.fast_paths
    assert rows(t, "SELECT count(*) FROM t") == [(995,)]
    t.sql("DELETE FROM t WHERE rand() < 0.5")
    assert FastPath.KEYS_ALONE not in t.last.costs.fast_paths


@pytest.mark.classic
def test_keys_that_others_change_meanwhile_fail_and_delete_nothing(t, keys, monkeypatch):
    events = TableWrite.events

    def changed_before(self, frame, *args, **options):
        monkeypatch.setattr(write, "_records_of_deletes", change_and(write._records_of_deletes))
        events(self, frame, *args, **options)

    def change_and(real):
        def run(*args):
            for name in os.listdir(keys):
                if name.endswith(".parquet"):
                    os.utime(f"{keys}/{name}", (1, 1))
            return real(*args)

        return run

    monkeypatch.setattr(TableWrite, "events", changed_before)
    with pytest.raises(TransientTxnError, match="was changed while"):
        t.sql("DELETE FROM t WHERE id IN (SELECT id FROM keys)")
    monkeypatch.undo()
    assert rows(t, "SELECT count(*) FROM t") == [(1000,)]


@pytest.mark.classic
def test_a_row_that_is_matched_twice_is_deleted_once(t, keys):
    twice = "(SELECT id FROM keys UNION ALL SELECT id FROM keys)"
    merge = f"MERGE INTO t USING {twice} k ON t.id = k.id WHEN MATCHED THEN DELETE"
    done = delete_by_keys(t, merge)
    assert (done.num_affected_rows, done.num_deleted_rows) == (100, 100)
    assert rows(t, "SELECT count(*) FROM t") == [(900,)]


def test_spark_makes_the_keys_that_a_task_would(spark):
    """Also bucket ids of version 0. An event that deletes nothing gives no key, a match does."""
    properties = [0, 3, 4095, encode(0), encode(3, 5), encode(4095, 4095)]
    events = pa.table(
        {
            ew.PARTITION: [f"p={number}" for number in range(6) for _ in range(3)],
            ew.WRITE_ID: pa.array([7] * 18),
            ew.BUCKET_PROPERTY: pa.array([one for one in properties for _ in range(3)], pa.int32()),
            ew.ROW_ID: pa.array(range(18)),
            ew.ACTION: pa.array([ew.INSERT, ew.DELETE, ew.MATCHED] * 6, pa.int32()),
        }
    )
    spec = ew.WriteSpec(
        staging="", write_id=9, insert_statement_id=1, delete_statement_id=0,
        row=RowSchema.from_fields([("v", "string")]),
    )  # fmt: skip
    keys = events.filter(pc.greater_equal(events[ew.ACTION], ew.DELETE)).combine_chunks()
    by_task = write_inserts_pass_deletes(spec, ew.Task(0, 0), keys.to_batches())
    of_task = [ew.SOURCE_TASK, ew.SOURCE_ATTEMPT]
    expected = pa.Table.from_batches([next(by_task)]).drop_columns(of_task)
    found = write._delete_keys(local_rows(spark, events)).toArrow()
    assert found.column_names == ew.KEY_SCHEMA.names
    found = found.drop_columns(of_task).sort_by(ew.ROW_ID)
    assert found.to_pylist() == expected.to_pylist()
