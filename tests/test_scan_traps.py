"""Tables that Spark's ORC reader would misread if ``scan`` did not know its traps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from foreign_orc import as_another_writers

from acidsql.acid import bucket_codec
from acidsql.acid.layout import bucket_name, delete_delta_name, delta_name
from acidsql.errors import SnapshotTooOldError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading import scan
from acidsql.storage.reading.events import deletion_vectors
from acidsql.storage.reading.read import read

pytestmark = pytest.mark.spark

# Each is the name of an event column, or of a column that the scan itself uses.
NAMES = (
    "operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row", "_metadata"
)  # fmt: skip
TRAPS = RowSchema.from_fields((name, "bigint") for name in NAMES)
GOLDEN_INSERT_ONLY = str(Path(__file__).parent / "golden" / "insert_only" / "data")
PLAIN = RowSchema.from_fields([("id", "int")])
BUCKET = bucket_codec.encode(0, 0)


def write_file(directory, schema=TRAPS, inserts=(), deletes=(), write_id=1, property_=BUCKET):
    """Write one bucket file; ``inserts`` are rows, ``deletes`` are row ids of write id 1."""
    files = filesystem_for(str(directory))
    files.create_directory(str(directory))
    writer = EventFileWriter(files.open_output(f"{directory}/{bucket_name(0)}"), schema)
    if inserts:
        pairs = zip(zip(*inserts, strict=True), schema.struct, strict=True)
        columns = [pa.array(column, field.type) for column, field in pairs]
        batch = pa.RecordBatch.from_arrays(columns, names=list(schema.names))
        writer.write_inserts(batch, write_id, property_, 0)
    if deletes:
        count = len(deletes)
        writer.write_deletes([1] * count, [property_] * count, deletes, write_id)
    writer.close()


@pytest.fixture(scope="module")
def traps(spark, tmp_path_factory):
    """Two partitions; 20 rows of seven columns n, n+1, …; every third row of p=1 is deleted."""
    location = tmp_path_factory.mktemp("tables") / "traps"
    rows = [tuple(n + i if i != 5 else None for i in range(7)) for n in range(20)]
    for partition in ("p=1", "p=2"):
        write_file(location / partition / delta_name(1, 0), inserts=rows)
    deleted = list(range(0, 20, 3))
    write_file(location / "p=1" / delete_delta_name(2, 0), deletes=deleted, write_id=2)
    schema = [(name, "bigint") for name in NAMES]
    return read(spark, str(location), schema, "p int")


def test_the_rows_are_counted(traps):
    assert traps.count() == 13 + 20


@pytest.mark.parametrize(("offset", "name"), [p for p in enumerate(NAMES) if p[1] != "row"])
def test_a_filter_on_a_user_column_named_like_an_event_column_means_the_users(traps, offset, name):
    found = traps.where(f"`{name}` = {4 + offset}").select("p", "operation").collect()
    assert sorted(found) == [(1, 4), (2, 4)]


def test_a_column_called_row_that_is_always_null_loses_no_rows(traps):
    assert traps.where("`row` IS NULL").count() == 33
    assert traps.where("`row` IS NOT NULL").count() == 0


def test_partition_columns_alone_can_be_read_grouped_and_filtered(traps):
    assert sorted(traps.select("p").groupBy("p").count().collect()) == [(1, 13), (2, 20)]
    assert traps.where("p = 1").count() == 13


def test_row_ids_alone_can_be_read(traps):
    ids = traps.where("p = 1").select("row__id.rowid").collect()
    assert sorted(row.rowid for row in ids) == [n for n in range(20) if n % 3]


@pytest.mark.parametrize("name", ["a{b}", "[u]", "*", "what?", "50%", "a blank ü"])
def test_a_location_is_a_name_and_no_pattern(spark, tmp_path, name):
    """Spark's __globPaths__=false lists all files again for each path that looks like a pattern."""
    location = tmp_path / name
    for write_id in (1, 2, 3):
        write_file(location / delta_name(write_id, 0), PLAIN, [(write_id,)], write_id=write_id)
    rows = read(spark, str(location), "id int").collect()
    assert sorted(row.id for row in rows) == [1, 2, 3]


def test_a_deleted_row_does_not_hide_its_namesake_of_another_partition(spark, tmp_path):
    for partition in ("p=1", "p=2"):
        write_file(tmp_path / partition / delta_name(1, 0), PLAIN, [(7,)])
    write_file(tmp_path / "p=2" / delete_delta_name(2, 0), PLAIN, deletes=[0], write_id=2)
    rows = read(spark, str(tmp_path), "id int", "p int")
    assert rows.select("id", "p").collect() == [(7, 1)]


def test_a_file_that_is_gone_is_an_error_and_never_missing_rows(spark, tmp_path):
    write_file(tmp_path / delta_name(1, 0), PLAIN, [(7,)])
    with_lenient_session = {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
    }
    for name, value in with_lenient_session.items():
        spark.conf.set(name, value)
    try:
        rows = read(spark, str(tmp_path), "id int")
        (tmp_path / delta_name(1, 0) / bucket_name(0)).unlink()
        with pytest.raises(SnapshotTooOldError, match="is gone, and with it rows"):
            rows.collect()
    finally:
        for name in with_lenient_session:
            spark.conf.unset(name)


@pytest.mark.parametrize(
    "names", [("old", "b", "c"), ("b", "a", "c"), ("_col0", "_col1", "_col2"), ("c",)]
)
def test_columns_are_matched_by_position_whatever_is_pruned(spark, tmp_path, names):
    schema = RowSchema.from_fields((name, "int") for name in names)
    write_file(tmp_path / delta_name(1, 0), schema, [(1, 2, 3)[: len(names)]])
    own = RowSchema.from_fields((name, "int") for name in "abc")
    write_file(tmp_path / delta_name(2, 0), own, [(1, 2, 3)], write_id=2)
    table = read(spark, str(tmp_path), "a int, b int, c int")
    for number, name in enumerate("abc", 1):
        old = number if number <= len(names) else None
        rows = table.select("row__id.writeid", name).collect()
        assert sorted(map(tuple, rows)) == [(1, old), (2, number)]
        assert table.where(f"{name} = {number}").count() == (1 if old is None else 2)


def test_a_tables_own_columns_may_be_called_like_hives_nameless_ones(spark, tmp_path):
    names = ("_col2", "_col0", "_col1")
    schema = RowSchema.from_fields((name, "int") for name in names)
    write_file(tmp_path / delta_name(1, 0), schema, [(1, 2, 3), (4, 5, 6)])
    table = read(spark, str(tmp_path), "_col2 int, _col0 int, _col1 int")
    assert table.count() == 2
    assert table.where("_col1 = 6").select("_col1", "_col2").collect() == [(6, 4)]


@pytest.mark.parametrize("kind", ["int", "array<int>", "struct<a:int>", "timestamp", "char(3)"])
def test_delete_events_of_files_without_names_are_joined(spark, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(deletion_vectors, "SENT_MAX", -1)  # too many for bits
    schema = RowSchema.from_fields([("_col0", kind), ("_col1", "int")])
    write_file(tmp_path / delta_name(1, 0), schema, [(None, 1), (None, 2), (None, 3)])
    write_file(tmp_path / delete_delta_name(2, 0), schema, deletes=[1], write_id=2)
    rows = read(spark, str(tmp_path), [("a", kind), ("b", "int")])
    assert sorted(row.b for row in rows.select("b").collect()) == [1, 3]


def test_columns_of_an_insert_only_table_are_matched_by_position_whatever_is_pruned(spark):
    case = GOLDEN_INSERT_ONLY
    table = read(spark, case, "renamed int, name string", insert_only=True)
    names = [row.name for row in table.select("name").collect()]
    assert sorted(names) == ["a", "a", "b", "c", "c", "d", "u"]
    assert table.where("name = 'u'").select("renamed").collect() == [(99,)]


def moments(spark, path):
    rows = read(spark, str(path), "d date, t timestamp").selectExpr("string(d)", "string(t)")
    return sorted(map(tuple, rows.collect()))


@pytest.mark.parametrize("statistics", [True, False])
def test_a_day_that_sparks_reader_loses_is_read_from_files_of_others(spark, tmp_path, statistics):
    schema = RowSchema.from_fields([("d", "date"), ("t", "timestamp")])
    day = 86_400_000_000
    for write_id, (d, t) in enumerate([(-141_432, 0), (0, -141_432 * day), (7, 8 * day)], 1):
        place = tmp_path / delta_name(write_id, 0)
        write_file(place, schema, [(d, t)], write_id=write_id)
        as_another_writers(place / bucket_name(0), statistics=statistics)
    assert moments(spark, tmp_path) == [
        ("1582-10-10", "1970-01-01 00:00:00"),
        ("1970-01-01", "1582-10-10 00:00:00"),
        ("1970-01-08", "1970-01-09 00:00:00"),
    ]


def test_only_files_of_others_that_may_hold_lost_days_are_read_by_python(spark, tmp_path):
    schema = RowSchema.from_fields([("d", "date")])
    for write_id, days in enumerate(([0, 7], [-719_162, -141_438], [-141_433, None]), 1):
        place = tmp_path / delta_name(write_id, 0)
        write_file(place, schema, [(day,) for day in days], write_id=write_id)
        as_another_writers(place / bucket_name(0))
    table = read(spark, str(tmp_path), "d date")
    native = [Path(name).parent.name for name in table.inputFiles()]
    assert sorted(native) == [delta_name(1, 0), delta_name(2, 0)]
    assert sorted(str(row.d) for row in table.collect()) == [
        "0001-01-01", "1582-10-04", "1582-10-09", "1970-01-01", "1970-01-08", "None",
    ]  # fmt: skip


def test_each_file_of_a_statement_of_others_is_asked_for_lost_days(spark, tmp_path):
    schema = RowSchema.from_fields([("d", "date")])
    for p, day in enumerate((0, -141_432)):
        place = tmp_path / f"p={p}" / delta_name(1, 0)
        write_file(place, schema, [(day,)])
        as_another_writers(place / bucket_name(0))
    rows = read(spark, str(tmp_path), "d date", "p int").selectExpr("p", "string(d)").collect()
    assert sorted(rows) == [(0, "1970-01-01"), (1, "1582-10-10")]


def test_no_more_footers_are_read_of_files_of_ours(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "files_with_lost_days", lambda paths: {0: set()}[len(paths)])
    write_file(
        tmp_path / delta_name(1, 0), RowSchema.from_fields([("d", "date")]), [(-719_162,), (7,)]
    )
    rows = read(spark, str(tmp_path), "d date")
    assert sorted(str(row.d) for row in rows.collect()) == ["0001-01-01", "1970-01-08"]
