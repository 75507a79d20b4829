"""Files that break rules which queries do not need, as Trino writes them, and their compaction."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyorc
import pytest
from kit import clean, directories, ordered, rows
from over_hive import OVER_HIVE, beside, needs, on_a_disk

import pyspark_acidsql
from acidsql.acid.bucket_codec import decode
from acidsql.errors import AcidSqlError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.damage import MISPLACED_EVENTS
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.streams.source.source import TableStream

pytestmark = [pytest.mark.spark, needs("can_work"), on_a_disk]

COLUMNS = [
    ("id", "int"), ("c", "char(3)"), ("at", "timestamp"), ("price", "decimal(9,2)"),
    ("tags", "array<string>"),
]  # fmt: skip
VALUES = (
    "SELECT CAST(id AS INT), CAST(id AS CHAR(3)), TIMESTAMP'1960-01-01 00:00:00.000001', "
    "CAST(id AS DECIMAL(9,2)), IF(id % 5 = 0, NULL, array('x', NULL))"
)


def create(acid, clause=""):
    """A table ``t`` of two inserts into three bucket ids each, with deleted rows in all of them."""
    acid.sql("SET acidsql.driver.max.rows = 0")  # so that tasks write, each its own bucket id
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    acid.sql(f"CREATE TABLE t ({columns}) {clause}")
    partition = ", 'a'" if "PARTITIONED" in clause else ""
    for first in (0, 60):
        insert(acid, first, partition)
    acid.sql("DELETE FROM t WHERE id % 4 = 1")
    acid.sql("RESET acidsql.driver.max.rows")


def insert(acid, first, partition=""):
    """Insert 60 rows into three bucket ids."""
    acid.sql(
        f"INSERT INTO t {VALUES}{partition} FROM "
        f"(SELECT /*+ REPARTITION(3) */ id FROM range({first}, {first + 60}))"
    )


def files_of(acid, directory):
    """The bucket files of the directories whose names begin so, sorted."""
    return sorted(Path(acid.warehouse).glob(f"t/**/{directory}*/bucket_*"))


def events_in(paths):
    """The events of files, as pyarrow reads them."""
    tables = [pyarrow.orc.read_table(path) for path in paths]
    return pa.concat_tables(tables, promote_options="permissive")


def write_deletes(path, events):
    """Write a file of these delete events, in this order."""
    file = filesystem_for(str(path)).open_output(str(path))
    writer = EventFileWriter(file, RowSchema.from_fields(COLUMNS))
    names = ("originalTransaction", "bucket", "rowId", "currentTransaction")
    writer.write_deletes(*(events.column(name).to_numpy() for name in names))
    writer.close()


def put_deletes_of_all_buckets_into_one_file(acid, directory="delete_delta_"):
    """Write the delete events of each directory as Trino does for a table without buckets."""
    keys = [("originalTransaction", "ascending"), ("bucket", "ascending"), ("rowId", "ascending")]
    for _, group in groupby(files_of(acid, directory), lambda path: path.parent):
        paths = list(group)
        assert len(paths) == 3
        events = events_in(paths).sort_by(keys)
        for path in paths:
            path.unlink()
        write_deletes(paths[0], events)


def turn_deletes_round(acid):
    """Write each file of delete events from its last event to its first."""
    for path in files_of(acid, "delete_delta_"):
        events = events_in([path])
        path.unlink()
        write_deletes(path, events.take(list(reversed(range(events.num_rows)))))


def bucket_ids_in(path):
    """The bucket ids of the rows in a file, as pyorc reads them."""
    with path.open("rb") as file:
        return {decode(event[2]).bucket_id for event in pyorc.Reader(file)}


def rows_with_ids(acid):
    """The rows, read by another session, whose lease keeps no file after this."""
    with beside(acid, compactor="off") as reader:
        return ordered(reader.table("t", row_id=True).collect())


def compact(acid, kind, partition=""):
    acid.sql(f"ALTER TABLE t {partition} COMPACT '{kind}' AND WAIT")


def findings(acid):
    """What the check finds, but that the files are not those that the statements wrote."""
    with beside(acid, compactor="off") as reader:
        found = {row.finding for row in reader.check("t", level="rows").collect()}
    return found - {"FILES_NOT_AS_COMMITTED"}


def rows_of_stream(acid, **options):
    """The rows of a stream's first batch, as dicts."""
    options = {"table": "t", "warehouse": acid.warehouse, **options}
    stream = TableStream(partial(pyspark_acidsql._open_metastore, options), options)
    splits = stream.partitions(stream.initialOffset(), stream.latestOffset())
    batches = [batch for split in splits for batch in stream.read(split)]
    stream.stop()
    return [row for batch in batches for row in batch.to_pylist()]


def ids_of_stream(acid, **options):
    return sorted(row["id"] for row in rows_of_stream(acid, **options))


BREACHES = {
    "one file for all buckets": (put_deletes_of_all_buckets_into_one_file, "WRONG_BUCKET_ID"),
    "not sorted": (turn_deletes_round, "ROWS_OUT_OF_ORDER"),
}


@pytest.mark.parametrize("in_driver", [True, False], ids=["in the driver", "in tasks"])
@pytest.mark.parametrize("kind", ["minor", "major"])
@pytest.mark.parametrize("breach", BREACHES)
def test_a_compaction_writes_sound_files_in_the_place_of_misplaced_events(
    acid, breach, kind, in_driver
):
    create(acid)
    expected = rows_with_ids(acid)
    assert len(expected) == 90
    break_rule, finding = BREACHES[breach]
    break_rule(acid)
    assert rows_with_ids(acid) == expected
    assert finding in findings(acid)

    if not in_driver:
        acid.sql("SET acidsql.driver.max.rows = 0")
    compact(acid, kind)

    assert rows_with_ids(acid) == expected
    clean(acid)
    assert findings(acid) == set()
    cleaned_by_hive = "delta_", "delete_delta_"
    (base,) = [
        name
        for name in directories(acid)
        if not name.startswith(("_", *(cleaned_by_hive if OVER_HIVE else ())))
    ]
    assert base.startswith("base_0000003")
    paths = files_of(acid, "base_")
    assert [bucket_ids_in(path) for path in paths] == [{0}, {1}, {2}]
    keys = list(zip(*(events_in(paths).column(i).to_pylist() for i in (1, 2, 3)), strict=True))
    assert keys == sorted(keys, key=lambda key: (decode(key[1]).bucket_id, key))
    acid.sql("DELETE FROM t WHERE id < 10")
    assert rows(acid, "SELECT count(*), min(id) FROM t") == [(83, 10)]


def test_only_the_partition_with_misplaced_events_is_rewritten(acid):
    create(acid, "PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO t SELECT id, c, at, price, tags, 'b' FROM t")
    expected = rows_with_ids(acid)
    put_deletes_of_all_buckets_into_one_file(acid)
    compact(acid, "minor", "PARTITION (p = 'a')")
    assert rows_with_ids(acid) == expected
    clean(acid)
    assert findings(acid) == set()


def test_a_version_before_the_mending_is_still_read(acid):
    create(acid)
    put_deletes_of_all_buckets_into_one_file(acid)
    older = acid.table("t")
    acid.sql("DELETE FROM t WHERE id >= 60")
    compact(acid, "major")
    assert len(older.collect()) == 90
    assert rows(acid, "SELECT count(*), max(id) FROM t") == [(45, 59)]


def test_a_table_whose_rows_are_all_deleted_gets_an_empty_base(acid):
    create(acid)
    acid.sql("DELETE FROM t")
    put_deletes_of_all_buckets_into_one_file(acid, "delete_delta_0000003")
    compact(acid, "major")
    assert rows(acid, "SELECT count(*) FROM t") == [(0,)]
    assert len(files_of(acid, "base_")) == 1


def write_with_nanoseconds(path):
    """Write a file of insert events again, as another writer does, each ``at`` a nanosecond after a
    second."""
    events = pyarrow.orc.read_table(path)
    row = events.column("row").combine_chunks()
    moment = pa.repeat(pa.scalar(1_600_000_000_000_000_001, pa.timestamp("ns")), len(row))
    fields = {name: row.field(name) for name in row.type.names} | {"at": moment}
    row = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    pyarrow.orc.write_table(events.set_column(5, "row", row), path)


def test_timestamps_finer_than_a_microsecond_are_refused_and_not_cut(acid):
    create(acid)
    write_with_nanoseconds(files_of(acid, "delta_")[0])
    expected = rows_with_ids(acid)
    put_deletes_of_all_buckets_into_one_file(acid)
    before = directories(acid)
    with pytest.raises(AcidSqlError, match="finer than a microsecond"):
        compact(acid, "major")
    assert directories(acid) == before
    assert rows_with_ids(acid) == expected


def test_a_bucketed_table_s_file_under_a_wrong_name_is_left_as_it_is(acid):
    create(acid, "CLUSTERED BY (id) INTO 3 BUCKETS")
    expected = rows_with_ids(acid)
    put_deletes_of_all_buckets_into_one_file(acid)
    before = directories(acid)
    with pytest.raises(AcidSqlError, match="holds rows of bucket 1.*No row is lost") as caught:
        compact(acid, "major")
    assert caught.value.condition == MISPLACED_EVENTS
    assert directories(acid) == before
    assert rows_with_ids(acid) == expected


@pytest.mark.classic
@pytest.mark.parametrize("breach", BREACHES)
def test_the_format_acidsql_reads_such_files_as_queries_do(acid, breach):
    create(acid)
    expected = ordered(acid.table("t").collect())
    BREACHES[breach][0](acid)
    reader = acid.spark.read.format("acidsql").option("table", "t")
    assert ordered(reader.load().collect()) == expected


@needs("keeps_versions")
@pytest.mark.parametrize("breach", BREACHES)
def test_a_stream_reads_such_files_as_queries_do(acid, breach):
    """The rows that are there; and what is there and what goes, as changes."""
    create(acid)
    acid.sql("SET acidsql.driver.max.rows = 0")
    with acid.transaction():
        insert(acid, 120)
        acid.sql("DELETE FROM t WHERE id % 4 = 2")  # own rows, too
    acid.sql("RESET acidsql.driver.max.rows")
    expected_ids = sorted(row.id for row in acid.table("t").collect())
    changes = acid.changes("t", 2).select("_change_type", "id").collect()
    BREACHES[breach][0](acid)
    assert ids_of_stream(acid) == expected_ids
    inserted = sorted(row.id for row in changes if row._change_type == "insert")
    assert ids_of_stream(acid, startingVersion="2") == inserted
    changes_of_stream = rows_of_stream(acid, startingVersion="2", readChangeFeed="true")
    assert sorted((row["_change_type"], row["id"]) for row in changes_of_stream) == sorted(changes)
