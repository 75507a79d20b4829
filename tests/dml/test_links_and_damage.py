"""A fault in a table's directory is an error that names it, never fewer rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kit import rows

from acidsql.errors import FormatError, SnapshotTooOldError

INSERT_ONLY = "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
KINDS = {"full ACID": "", "plain ORC": INSERT_ONLY, "Parquet": f"STORED AS PARQUET {INSERT_ONLY}"}


@pytest.fixture(params=KINDS)
def deltas(request, acid):
    """The directories of a table with two rows."""
    acid.sql(f"CREATE TABLE t (id INT) {KINDS[request.param]}")
    for number in (1, 2):
        acid.sql(f"INSERT INTO t VALUES ({number})")
    return sorted(Path(acid.warehouse, "t").glob("delta_*"))


def file_of(delta):
    return next(path for path in delta.iterdir() if path.name[0] in "0b")


def test_a_delta_that_is_a_dead_link_is_an_error(acid, deltas, tmp_path):
    shutil.rmtree(deltas[1])
    deltas[1].symlink_to(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="a dead link") as caught:
        acid.sql("SELECT * FROM t").collect()
    assert str(deltas[1]) in str(caught.value)
    assert {row.state for row in acid.files("t").collect() if row.file == "000000_0"} <= {"visible"}
    acid.sql("DROP TABLE t")
    assert not deltas[0].parent.exists()


def test_a_file_that_is_a_dead_link_is_gone(acid, deltas, tmp_path):
    file = file_of(deltas[1])
    file.unlink()
    file.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SnapshotTooOldError, match="is gone") as caught:
        acid.sql("SELECT * FROM t").collect()
    assert str(file) in str(caught.value)


def test_a_link_back_to_the_table_is_listed_once(acid, deltas):
    (deltas[0].parent / "delta_0000009_0000009_0000").symlink_to(deltas[0].parent)
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,)]
    assert acid.files("t").count() < 12


def test_a_damaged_files_problem_is_that_of_its_own_format(acid, deltas):
    file = file_of(deltas[1])
    file.write_bytes(file.read_bytes()[:-20])
    (problem,) = [row.problem for row in acid.files("t").collect() if row.problem]
    is_parquet = file.read_bytes()[:4] == b"PAR1"
    assert ("Parquet" in problem) is is_parquet and ("not an ORC file" in problem) is not is_parquet
    with pytest.raises(FormatError, match="cannot be read") as caught:
        acid.sql("SELECT * FROM t").collect()
    assert str(file) in str(caught.value)
