"""``spark.read.format("acidsql")`` over a Hive Metastore, which keeps no versions."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

import pyspark_acidsql
from acidsql.errors import SnapshotTooOldError, TableChangedError, UnsupportedError
from acidsql.streams.source.batch_options import batch_options
from acidsql.streams.source.table_reader import TableReader

pytestmark = pytest.mark.spark


@pytest.fixture
def loaded(acid_over_hive, hive_metastore):
    """A function that takes a snapshot of the table ``t``, as Spark does when a DataFrame is
    loaded, and returns the reader that Spark asks later."""
    acid = acid_over_hive
    acid.sql("CREATE TABLE t (id INT, c CHAR(3)) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 2)")
    acid.sql("DELETE FROM t WHERE id = 3")
    database = acid.sql("SELECT current_database()").first()[0]
    open_store = partial(pyspark_acidsql._open_metastore, {"metastore": hive_metastore.url})

    def load(**options):
        batch = batch_options({"table": f"{database}.t", **options})
        taken = TableReader(open_store, batch).take_snapshot()
        return TableReader(open_store, batch, pickle.loads(pickle.dumps(taken)))

    return load


def rows(reader):
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_a_reader_shows_the_rows_of_its_snapshot(acid_over_hive, loaded):
    reader = loaded()
    acid_over_hive.sql("UPDATE t SET c = 'new'")
    acid_over_hive.sql("INSERT INTO t VALUES (9, 'n', 9)")
    assert rows(reader) == [(1, "a  ", 1), (2, "b  ", 2)]
    assert rows(loaded(columns="id")) == [(1,), (2,), (9,)]
    with pytest.raises(UnsupportedError, match="Time travel needs"):
        loaded(version="1")


def test_a_table_that_lost_a_partition_since_it_was_loaded_is_refused(acid_over_hive, loaded):
    reader = loaded()
    acid_over_hive.sql("ALTER TABLE t DROP PARTITION (p = 1)")
    with pytest.raises((TableChangedError, SnapshotTooOldError)):
        reader.partitions()


def test_a_table_whose_lease_has_ended_is_refused(acid_over_hive, loaded):
    reader = loaded()
    acid_over_hive.sql(f"ABORT TRANSACTIONS {reader._snapshot.snapshot.held_by}")
    with pytest.raises(SnapshotTooOldError, match="its lease has ended"):
        reader.partitions()
