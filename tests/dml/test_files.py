"""``acid.files`` and ``acid.events``: the contents of a table's directory, and of a file."""

from __future__ import annotations

import shutil
import struct
from io import BytesIO
from pathlib import Path

import pyorc
import pytest
from kit import fill
from over_hive import HISTORY, beside, needs

from acidsql.errors import CatalogError, FormatError
from acidsql.storage.tables.file_info import read_file_info

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parent.parent / "golden"


def listed(acid, name="t"):
    """Directory, kind, rows and state of each file."""
    found = acid.files(name).collect()
    return {(f.directory, f.file): (f.kind, f.rows, f.state) for f in found}


def test_every_file_is_told_with_its_rows_and_its_state(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("UPDATE t SET v = 'B' WHERE id > 1")
    (Path(acid.warehouse) / "t" / "_left" / "deep").mkdir(parents=True)
    assert listed(acid) == {
        ("delta_0000001_0000001_0000", "bucket_00000"): ("delta", 3, "visible"),
        ("delete_delta_0000002_0000002_0000", "bucket_00000"): ("delete_delta", 2, "visible"),
        ("delta_0000002_0000002_0001", "bucket_00000"): ("delta", 2, "visible"),
        ("_left/deep", None): ("litter", None, "unknown"),
    }
    acid.sql("INSERT OVERWRITE t SELECT 7, 'x'")
    now = listed(acid)
    assert now["base_0000003", "bucket_00000"] == ("base", 1, "visible")
    assert {state for _, _, state in now.values()} == {"visible", HISTORY, "unknown"}
    (one,) = acid.files("t").where("kind = 'base'").collect()
    assert one.asDict() == {
        "partition": "", "directory": "base_0000003", "kind": "base", "min_write_id": 3,
        "max_write_id": 3, "statement_id": None, "visibility_txn_id": None,
        "file": "bucket_00000", "bucket": 0, "rows": 1, "bytes": Path(one.path).stat().st_size,
        "state": "visible", "path": f"{acid.warehouse}/t/base_0000003/bucket_00000",
        "problem": None,
    }  # fmt: skip


def test_files_of_an_open_transaction_are_open_to_others(acid, spark):

    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    with beside(acid) as other, other.transaction() as txn:
        other.sql("INSERT INTO t VALUES (2, 1), (3, 5)")
        theirs = {(f.partition, f.state) for f in acid.files("t").collect()}
        assert theirs == {("p=1", "visible"), ("p=1", "open"), ("p=5", "open")}
        own = {(f.partition, f.state) for f in other.files("t").collect()}
        assert own == {("p=1", "visible"), ("p=5", "visible")}
        txn.rollback()
    assert {f.state for f in acid.files("t").collect()} <= {"visible", "aborted"}


def test_a_file_that_is_damaged_or_gone_has_no_number_of_rows(acid):
    fill(acid, "t (id INT)", "1", "2")
    acid.sql("INSERT INTO t VALUES (3)")
    files = acid.files("t")
    paths = [Path(f.path) for f in files.collect()]
    paths[0].write_bytes(b"no ORC at all")
    paths[1].unlink()
    found = files.collect()
    assert [f.rows for f in found] == [None, None]
    assert f"'{paths[0]}' cannot be read: not an ORC file" in found[0].problem
    assert "No such file" in found[1].problem


@needs("can_work")
@pytest.mark.classic
def test_who_reads_a_damaged_file_is_told_which(acid):
    """By Spark's reader, by acidsql's in the driver, and in a Python task. It is never a write
    error."""
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), concat('x', id) FROM range(2000)")
    acid.sql("DELETE FROM t WHERE id % 3 = 0")
    deletes, inserts = (Path(f.path) for f in acid.files("t").collect())
    statements = ("SELECT sum(length(v)) FROM t", "UPDATE t SET v = 'y' WHERE id = 4",
                  "ALTER TABLE t COMPACT 'major' AND WAIT")  # fmt: skip
    for path in (deletes, inserts):
        before = path.read_bytes()
        half = len(before) // 2
        for damaged in (before[:half], before[:3] + b"\xff" * half + before[3 + half :]):
            path.write_bytes(damaged)
            for text in statements:
                with pytest.raises(FormatError) as error:
                    acid.sql(text).collect()
                assert error.value.parameters.get("path", str(path)) == str(path)
                assert f"'{path}' cannot be read" in error.value.message, text
            assert [f.problem is None for f in acid.files("t").collect()].count(False) <= 1
        path.write_bytes(before)
    assert acid.sql("SELECT count(*) AS n FROM t").first().n == 1333


def test_a_table_must_be_there(acid):
    with pytest.raises(CatalogError):
        acid.files("nothing")


# ── events ───────────────────────────────────────────────────────────────────────────────────


def test_the_events_of_a_file_are_told_as_they_stand_in_it(acid):
    fill(acid, "t (id INT, `with.dot` STRING, ts TIMESTAMP, c CHAR(3))",
         "1, 'a', TIMESTAMP_NTZ'2020-03-29 02:30:00', 'x'", "2, NULL, NULL, NULL")  # fmt: skip
    acid.sql("DELETE FROM t WHERE id = 1")
    paths = {f.kind: f.path for f in acid.files("t").collect()}
    inserts = acid.events(paths["delta"])
    assert inserts.columns == [
        "operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row", "path"
    ]  # fmt: skip
    with open(paths["delta"], "rb") as file:
        expected = [tuple(row[:5]) for row in pyorc.Reader(file)]
    assert [tuple(row[:5]) for row in inserts.collect()] == expected
    shown = inserts.selectExpr("row.id", "row.`with.dot`", "CAST(row.ts AS STRING)", "row.c")
    assert [tuple(row) for row in shown.collect()] == [
        (1, "a", "2020-03-29 02:30:00", "x  "), (2, None, None, None)
    ]  # fmt: skip
    (delete,) = acid.events(paths["delete_delta"]).collect()
    assert tuple(delete) == (2, 1, 536870912, 0, 2, None, paths["delete_delta"])
    # One column of it, and a count: columns that a reader needs must not be pruned away.
    assert [row.rowId for row in inserts.select("rowId").collect()] == [0, 1]
    assert inserts.where("operation = 2").count() == 0


def test_a_directory_stands_for_its_files(acid):
    acid.sql("CREATE TABLE t (id INT) CLUSTERED BY (id) INTO 4 BUCKETS")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT) FROM range(0, 100, 1, 2)")
    directory = f"{acid.warehouse}/t/delta_0000001_0000001_0000"
    found = acid.events(directory)
    assert found.count() == 100
    assert found.select("path").distinct().count() == 4
    assert sorted(row.id for row in found.select("row.id").collect()) == list(range(100))


@pytest.mark.parametrize("name", ["major_query", "aborted", "minor_mr", "update_nosplit"])
def test_events_of_files_that_hive_wrote(acid, name):
    """Names in lower case, files without a key index, aborted events: the same number as pyorc
    counts."""
    directories = {file.parent for file in (GOLDEN / name / "data").rglob("bucket_*")}
    for directory in sorted(directories):
        whole = sum(
            len(pyorc.Reader(BytesIO(file.read_bytes()))) for file in directory.glob("bucket_*")
        )
        assert acid.events(str(directory)).count() == whole


def test_of_a_streamed_file_what_is_committed_is_told(acid, tmp_path):
    (side,) = (GOLDEN / "streaming_open" / "data").rglob("*_flush_length")
    copied = tmp_path / side.parent.name
    shutil.copytree(side.parent, copied)
    path = str(copied / "bucket_00000")
    everything = acid.events(path).count()
    *_, before, _ = struct.unpack(f">{side.stat().st_size // 8}q", side.read_bytes())
    (copied / side.name).write_bytes(struct.pack(">2q", 0, before))
    rows = read_file_info(path, before).rows
    assert acid.events(path).count() == acid.events(str(copied)).count() == rows
    assert 0 < rows < everything


def test_what_holds_no_events_is_refused(acid):
    fill(acid, "t (id INT)", "1")
    root = f"{acid.warehouse}/t"
    for path, words in [
        (root, "no bucket file, and no base"),
        (f"{root}/nothing", "no bucket file"),
        (f"{root}/delta_0000001_0000001_0000/bucket_00007", "no file of events"),
        (f"{root}/delta_0000009_0000009_0000", "no file of events"),
    ]:
        with pytest.raises(FormatError, match=words):
            acid.events(path)
    acid.spark.range(3).coalesce(1).write.orc(f"{root}/plain")
    (plain,) = Path(f"{root}/plain").glob("*.orc")
    plain.rename(f"{root}/plain/bucket_00000")
    with pytest.raises(FormatError, match="spark.read.orc"):
        acid.events(f"{root}/plain/bucket_00000")
