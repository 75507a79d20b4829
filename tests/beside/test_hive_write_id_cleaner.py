"""Hive's cleaner as Hive 4.2 runs it by default: it waits for registered write ids, not for open
transactions (``metastore.txn.use.minhistorywriteid``).
"""

from __future__ import annotations

import itertools
import threading

import hive_sql
import pytest
from both import Both
from running_server import running_server
from test_hive_workers import changed_by_both, directories

from acidsql.storage.folding.compact import CompactionRun

_numbers = itertools.count(1)
BY_WRITE_IDS = {
    "metastore.txn.use.minhistorywriteid": "true",
    "hms.min.history": "true",
    # With both, Hive 4.0 would forget the write ids of open transactions.
    "metastore.txn.use.minhistorylevel": "false",
    "hms.min.history.level": "false",
}


@pytest.fixture(scope="module")
def hive_by_write_ids(tmp_path_factory):
    work = tmp_path_factory.mktemp("by_write_ids")
    yield from running_server(
        hive_sql.missing(), lambda: hive_sql.Hive(work, settings=BY_WRITE_IDS)
    )


@pytest.fixture
def both(spark, hive_by_write_ids):
    shared = Both(spark, hive_by_write_ids, f"by_write_ids{next(_numbers)}")
    yield shared
    shared.close()


def clean(both):
    """Let Hive's cleaner pass until nothing is left that it would delete now."""
    for _ in range(3):
        both.hive.sql("!cleaner")


def values(frame):
    return sorted(map(tuple, frame.collect()))


def test_a_lazy_frame_keeps_its_files_until_its_session_ends(both):
    changed_by_both(both)
    reader = both.new_acid()
    assert reader.metastore.features.registers_readers
    frame = reader.table("t")
    both.compact_by_hive("t", "major")
    both.hive.sql("INSERT INTO t VALUES (9, 9)")
    clean(both)
    assert values(frame) == [(2, 20), (3, 3), (5, 5)]
    reader.close()
    both.acid.close()
    both.acid = both.new_acid()
    clean(both)
    assert len(directories(both)) == 2  # the base, and the last insert


def test_a_compaction_that_began_before_the_snapshot_is_not_cleaned_either(both, monkeypatch):
    changed_by_both(both)
    worker, reader = both.new_acid(), both.new_acid()
    is_written, may_publish = threading.Event(), threading.Event()
    publish = CompactionRun.publish

    def publish_later(self, still_ours):
        is_written.set()
        assert may_publish.wait(60)
        return publish(self, still_ours)

    monkeypatch.setattr(CompactionRun, "publish", publish_later)
    compaction = threading.Thread(
        target=lambda: worker.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    )
    compaction.start()
    assert is_written.wait(60)
    both.acid.sql("INSERT INTO t VALUES (9, 9)")
    frame = reader.table("t")
    may_publish.set()
    compaction.join()
    worker.close()
    both.acid.close()
    both.acid = both.new_acid()
    both.hive.sql("INSERT INTO t VALUES (10, 10)")
    clean(both)
    assert values(frame) == [(2, 20), (3, 3), (5, 5), (9, 9)]


def test_a_transaction_of_several_statements_keeps_the_files_of_each_table_that_it_reads(both):
    changed_by_both(both)
    both.hive.sql("CREATE TABLE u (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    both.hive.sql("INSERT INTO u VALUES (1)")
    both.hive.sql("INSERT INTO u VALUES (2)")
    reader, older = both.new_acid(), both.new_acid()
    older.sql("BEGIN")
    older.sql("INSERT INTO t VALUES (100, 100)")
    reader.sql("BEGIN")
    before = [values(reader.sql(f"SELECT * FROM {name}")) for name in "tu"]
    outlives = reader.sql("SELECT * FROM u")
    older.sql("COMMIT")
    both.acid.sql("DELETE FROM t")
    both.acid.sql("DELETE FROM u WHERE id = 1")
    both.acid.close()
    both.acid = both.new_acid()
    for name in "tu":
        both.compact_by_hive(name, "major")
    both.hive.sql("INSERT INTO u VALUES (3)")
    clean(both)
    both.hive.sql("!housekeeper")
    assert [values(reader.sql(f"SELECT * FROM {name}")) for name in "tu"] == before
    reader.sql("COMMIT")
    clean(both)
    assert values(outlives) == [(1,), (2,)]


def test_rows_that_returning_returns_stay_readable(both):
    changed_by_both(both)
    writer = both.new_acid()
    changed = writer.sql("UPDATE t SET v = 0 WHERE id = 3 RETURNING old.v, new.v")
    both.compact_by_hive("t", "major")
    both.hive.sql("INSERT INTO t VALUES (9, 9)")
    clean(both)
    assert values(changed) == [(3, 0)]


def test_other_tables_are_cleaned_while_a_lease_is_held(both):
    changed_by_both(both)
    both.hive.sql("CREATE TABLE u (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    both.hive.sql("INSERT INTO u VALUES (1)")
    both.hive.sql("INSERT INTO u VALUES (2)")
    frame = both.acid.table("t")
    both.compact_by_hive("u", "major")
    both.hive.sql("INSERT INTO t VALUES (9, 9)")
    clean(both)
    assert len(directories(both, "u")) == 1
    assert len(values(frame)) == 3
