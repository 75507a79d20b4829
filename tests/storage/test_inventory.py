"""All directories and files of a table are listed with their state, without exception."""

from __future__ import annotations

import time

import pytest

from acidsql.acid.write_ids import ALL_TXNS, ValidTxnList, ValidWriteIdList
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.pruning.inventory import inventory

WRITE_IDS = ValidWriteIdList(6, open=(6,), aborted=(5,))


@pytest.fixture
def found(tmp_path):
    """The inventory, by path below the table's directory."""

    def look(partitions=None, columns=(), write_ids=WRITE_IDS, txns=ALL_TXNS):
        fs = filesystem_for(str(tmp_path))
        files = inventory(fs, str(tmp_path), partitions, write_ids, txns, columns=columns)
        by_path = {one.path.removeprefix(f"{tmp_path}/"): one for one in files}
        assert len(by_path) == len(files)
        return by_path

    return look


def test_files_are_told_with_all_that_their_names_say(put, found):
    put("base_0000002_v0000007/bucket_00003_0", b"123")
    put("delta_0000003_0000004/bucket_00000")
    put("delete_delta_0000004_0000004_0001/bucket_00012")
    one = found()
    base = one["base_0000002_v0000007/bucket_00003_0"]
    assert (base.kind, base.write_ids, base.bucket, base.bytes) == ("base", (2, 2), 3, 3)
    assert base.acid.visibility_txn_id == 7
    assert base.state == "visible"
    wide = one["delta_0000003_0000004/bucket_00000"]
    assert (wide.kind, wide.write_ids, wide.acid.statement_id) == ("delta", (3, 4), None)
    delete = one["delete_delta_0000004_0000004_0001/bucket_00012"]
    assert (delete.kind, delete.acid.statement_id, delete.bucket) == ("delete_delta", 1, 12)


def test_side_files_are_left_out_and_the_committed_length_is_told(put, found):
    put("delta_0000003_0000004/_orc_acid_version", b"2")
    put("delta_0000003_0000004/bucket_00000", b"12345")
    lengths = (0).to_bytes(8, "big") + (4).to_bytes(8, "big")
    put("delta_0000003_0000004/bucket_00000_flush_length", lengths)
    put("base_0000002/_metadata_acid", b"{}")
    one = found()
    assert set(one) == {"delta_0000003_0000004/bucket_00000", "base_0000002"}
    assert one["delta_0000003_0000004/bucket_00000"].length == 4
    assert one["base_0000002"].file is None
    assert one["base_0000002"].kind == "base"


def test_originals_are_told_however_deep_they_lie(put, found):
    put("000000_0")
    put("000001_0_copy_2")
    put("HIVE_UNION_SUBDIR_1/000000_0")
    put("HIVE_UNION_SUBDIR_1/_SUCCESS")
    put("delta_0000003_0000003_0000/000000_0")
    one = found()
    assert {path: (file.kind, file.state, file.bucket) for path, file in one.items()} == {
        "000000_0": ("original", "visible", 0),
        "000001_0_copy_2": ("original", "visible", 1),
        "HIVE_UNION_SUBDIR_1/000000_0": ("original", "visible", 0),
        "HIVE_UNION_SUBDIR_1/_SUCCESS": ("litter", "unknown", None),
        "delta_0000003_0000003_0000/000000_0": ("delta", "visible", 0),
    }
    put("base_0000004/bucket_00000")
    assert found()["000000_0"].state == "obsolete"


def test_litter_is_told_and_a_running_statements_files_are_not_called_so(put, found):
    put("_tmp_0000006_0000_abc/insert-0")  # write id 6 is open
    put("_tmp_0000007_0000_abc/insert-0")  # after the snapshot
    put("_tmp_0000005_0000_abc/insert-0")  # aborted
    put("_tmp_source_0000012_abc/part-0")
    put(".hive-staging_1/x/000000_0")
    put("delta_0000003_0000003_0000/bucket_00000.tmp")
    put("delta_0000003_0000003_0000/delta_0000003_0000003_0000/bucket_00000")
    one = found()
    assert {file.kind for file in one.values()} == {"litter"}
    assert {path for path, file in one.items() if file.state == "open"} == {
        "_tmp_0000006_0000_abc/insert-0", "_tmp_0000007_0000_abc/insert-0"
    }  # fmt: skip
    assert {file.state for file in one.values()} == {"open", "unknown"}
    assert len(one) == 7
    assert {file.write_ids for file in one.values()} == {(None, None)}


def test_partitions_that_the_catalog_does_not_know_are_told(put, found):
    put("p=1/q=x/delta_0000003_0000003_0000/bucket_00000")
    put("p=1/q=y/delta_0000003_0000003_0000/bucket_00000")
    put("p=2/q=x/delta_0000006_0000006_0000/bucket_00000")
    put("p=2/stray")
    put("_tmp_0000006_0000_abc/insert-0")
    one = found(["p=1/q=x", "p=9/q=x"], ["p", "q"])
    assert {path: (file.partition, file.directory, file.state) for path, file in one.items()} == {
        "_tmp_0000006_0000_abc/insert-0": ("", "_tmp_0000006_0000_abc", "open"),
        "p=1/q=x/delta_0000003_0000003_0000/bucket_00000": (
            "p=1/q=x", "delta_0000003_0000003_0000", "visible"
        ),
        "p=1/q=y/delta_0000003_0000003_0000/bucket_00000": (
            "p=1/q=y", "delta_0000003_0000003_0000", "unknown"
        ),
        "p=2/q=x/delta_0000006_0000006_0000/bucket_00000": (
            "p=2/q=x", "delta_0000006_0000006_0000", "open"
        ),
        "p=2/stray": ("", "p=2", "unknown"),
    }  # fmt: skip


def test_a_snapshot_that_is_too_old_is_no_error_here(put, found):
    put("base_0000009_v0000003/bucket_00000")
    one = found(txns=ValidTxnList(5))
    assert one["base_0000009_v0000003/bucket_00000"].state == "unknown"


def test_a_directory_that_is_missing_has_no_files(found):
    assert found(["p=1"], ["p"]) == {}


def test_many_directories_are_listed_together(tmp_path):
    """Sixteen threads list them: one by one, 400 listings of 5 ms would take two seconds."""

    class Slow:
        def __init__(self, inner):
            self.inner = inner

        def list(self, path):
            time.sleep(0.005)
            return self.inner.list(path)

        def __getattr__(self, name):
            return getattr(self.inner, name)

    for number in range(200):
        directory = tmp_path / f"p={number}" / "delta_0000001_0000001_0000"
        directory.mkdir(parents=True)
        (directory / "bucket_00000").write_bytes(b"x")
    fs = Slow(filesystem_for(str(tmp_path)))
    start = time.monotonic()
    files = inventory(fs, str(tmp_path), [], WRITE_IDS, ALL_TXNS, columns=["p"])
    assert len(files) == 200
    assert time.monotonic() - start < 1.5
