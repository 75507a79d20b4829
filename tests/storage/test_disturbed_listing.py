"""A disturbed listing never counts as empty: if a needed file is gone, that is an error."""

from __future__ import annotations

import os
import threading

import pyarrow.fs as pafs
import pytest
from pyspark.sql import SparkSession

from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ALL_TXNS, ValidWriteIdList
from acidsql.errors import FormatError, SnapshotTooOldError
from acidsql.storage.files import local as local_files
from acidsql.storage.files.filesystem import ArrowFileSystem, LocalFileSystem, wrap_filesystems
from acidsql.storage.files.partition_tree import discover_partitions
from acidsql.storage.reading.pruning.inventory import inventory
from acidsql.storage.reading.read import read
from acidsql.storage.reading.row_conflicts import changed_a_common_row
from acidsql.storage.tables.listing import list_table

ALL = ValidWriteIdList(100)
LOCAL = LocalFileSystem()


def listed(fs, root, partitions=("",), **keywords):
    return list_table(fs, str(root), list(partitions), ALL, ALL_TXNS, **keywords)


def names_of(listings, root):
    paths = [
        path
        for listing in listings
        for path in [
            *(file.path for file in (*listing.data, *listing.deletes)),
            *(path for group in listing.originals for path in group.paths),
        ]
    ]
    return sorted(path.removeprefix(f"{root}/") for path in paths)


# ── a file system's own listing ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("links_to", ["nowhere", "link"], ids=["missing", "itself"])
def test_a_link_that_leads_nowhere_is_a_file_among_others(tmp_path, links_to):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(links_to)
    assert [entry.name for entry in LOCAL.list(str(tmp_path))] == ["file", "link"]
    with pytest.raises(OSError):
        LOCAL.open_input(f"{tmp_path}/link")


def test_a_file_that_has_gone_is_left_out_alone(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"x")
    scandir = os.scandir

    class Disturbed:
        def __init__(self, path):
            self._found = scandir(path)

        def __enter__(self):
            items = list(self._found)
            (tmp_path / "b").unlink()
            return iter(items)

        def __exit__(self, *_):
            self._found.close()

    monkeypatch.setattr(local_files.os, "scandir", Disturbed)
    assert [entry.name for entry in LOCAL.list(str(tmp_path))] == ["a", "c"]


@pytest.mark.parametrize(
    "fs", [LOCAL, ArrowFileSystem(pafs.LocalFileSystem())], ids=["os", "arrow"]
)
def test_a_missing_directory_is_an_error_unless_it_may_be_missing(fs, tmp_path):
    with pytest.raises(FileNotFoundError):
        fs.list(f"{tmp_path}/nothing")
    assert fs.list_if_there(f"{tmp_path}/nothing") == []
    assert fs.remove_empty_directory(f"{tmp_path}/nothing") is False
    fs.delete_file_if_there(f"{tmp_path}/nothing")
    fs.delete_directory(f"{tmp_path}/nothing")


def test_what_cannot_be_looked_at_is_not_taken_for_missing(tmp_path):
    with pytest.raises(OSError, match="too long"):
        LOCAL.exists(f"{tmp_path}/{'x' * 300}")


def test_two_may_delete_one_directory(tmp_path):
    for number in range(200):
        (tmp_path / f"d/{number % 10}/{number}").mkdir(parents=True)
    errors = []

    def delete():
        try:
            LOCAL.delete_directory(f"{tmp_path}/d")
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=delete) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert not LOCAL.exists(f"{tmp_path}/d")


# ── a snapshot's listing ─────────────────────────────────────────────────────────────────────


def test_originals_that_the_cleaner_deletes_do_not_hide_the_base(put, tmp_path):
    for number in range(300):
        put(f"{number:06}_0")
    put("base_0000005/bucket_00000")
    done = threading.Event()

    def clean():
        for number in range(300):
            LOCAL.delete_file(f"{tmp_path}/{number:06}_0")
        done.set()

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    while not done.is_set():
        assert names_of(listed(LOCAL, tmp_path), tmp_path) == ["base_0000005/bucket_00000"]
    cleaner.join()


@pytest.mark.parametrize("plain", [False, True])
def test_a_missing_table_is_an_error(tmp_path, plain):
    with pytest.raises(SnapshotTooOldError, match=r"nothing' is gone") as error:
        listed(LOCAL, tmp_path / "nothing", plain=plain)
    assert error.value.condition == "ACID_NOT_ENOUGH_HISTORY"


def test_a_missing_partition_is_an_error(put, tmp_path):
    put("p=1/delta_0000001_0000001_0000/bucket_00000")
    with pytest.raises(SnapshotTooOldError, match=r"p=2' is gone"):
        listed(LOCAL, tmp_path, ["p=1", "p=2"])


def test_a_dangling_partition_is_an_error_of_a_reader(put, tmp_path):
    put("p=1/delta_0000001_0000001_0000/bucket_00000")
    (tmp_path / "p=2").symlink_to("/nowhere")
    found = discover_partitions(LOCAL.list, str(tmp_path), ["p"])
    assert found == ["p=1", "p=2"]
    with pytest.raises(SnapshotTooOldError, match=r"p=2' is gone"):
        listed(LOCAL, tmp_path, found)


def test_without_a_metastore_a_missing_directory_is_no_table(tmp_path):
    """Of a path on this machine's disk nobody asks Spark: here is no session."""
    with pytest.raises(FormatError, match="There is no directory"):
        read(object.__new__(SparkSession), f"file:{tmp_path}/nothing", [("id", "int")])


class _Gone(LocalFileSystem):
    """A file system that says "gone" at the n-th call."""

    def __init__(self, at=0):
        self.at, self.calls = at, 0

    def _is_gone(self, path):
        self.calls += 1
        return self.calls == self.at

    def list(self, path):
        if self._is_gone(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().list(path)

    def exists(self, path):
        return not self._is_gone(path) and super().exists(path)

    def size(self, path):
        if self._is_gone(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().size(path)

    def open_input(self, path):
        if self._is_gone(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().open_input(path)


@pytest.fixture
def odd_table(put, tmp_path):
    """Everything that a listing looks at: marks of Hive 3.1, pairs, a half, streamed files,
    originals."""
    put("p=1/base_0000003/bucket_00000")
    put("p=1/base_0000003/_metadata_acid", b'{"dataFormat":"compacted"}')
    put("p=1/base_0000002/bucket_00000")
    put("p=1/delta_0000004_0000005/bucket_00000", b"12345")
    put("p=1/delta_0000004_0000005/bucket_00000_flush_length", (4).to_bytes(8, "big"))
    put("p=1/delete_delta_0000006_0000006_0000/bucket_00000")
    put("p=1/delta_0000006_0000009/bucket_00000")  # a half
    put("p=1/delta_0000006_0000009/_acidsql_paired", b"")
    put("p=1/delta_0000007_0000007_0000/bucket_00000")
    put("p=2/000000_0")
    put("p=2/HIVE_UNION_SUBDIR_1/000000_0")
    put("p=2/delta_0000008_0000008/bucket_00001")
    return tmp_path


def test_whatever_answers_gone_a_listing_is_whole_or_an_error(odd_table):
    fs = _Gone()
    whole = names_of(listed(fs, odd_table, ["p=1", "p=2"]), odd_table)
    assert len(whole) == 7
    outcomes = {"whole": 0, "error": 0}
    for at in range(1, fs.calls + 1):
        try:
            found = listed(_Gone(at), odd_table, ["p=1", "p=2"])
        except SnapshotTooOldError:
            outcomes["error"] += 1
            continue
        assert names_of(found, odd_table) == whole, f"call {at}"
        outcomes["whole"] += 1
    assert min(outcomes.values()) > 0


def test_what_a_person_looks_at_does_not_fail(odd_table):
    fs = _Gone()

    def look(at):
        return inventory(
            _Gone(at) if at else fs, str(odd_table), ["p=1", "p=2"], ALL, ALL_TXNS, columns=["p"]
        )

    assert len(look(0)) == 9
    for at in range(1, fs.calls + 1):
        look(at)
    (odd_table / "p=3").symlink_to("/nowhere")
    (odd_table / "p=1/base_9").symlink_to("/nowhere")
    paths = {one.path for one in look(0)}
    assert {f"{odd_table}/p=3", f"{odd_table}/p=1/base_9"} <= paths


# ── who else looks ───────────────────────────────────────────────────────────────────────────


def test_delete_events_that_have_gone_count_as_a_conflict(put, tmp_path):
    """Otherwise the second of two transactions that deleted one row would commit."""
    put("delete_delta_0000001_0000001_0000/bucket_00000")
    put("delete_delta_0000002_0000002_0000/bucket_00000")
    table = Table(TableName("d", "t"), str(tmp_path), (Column("id", "int"),))
    own = [f"{tmp_path}/delete_delta_0000002_0000002_0000"]

    class CleanedMeanwhile(LocalFileSystem):
        def list(self, path):
            found = super().list(path)
            self.delete_directory(f"{tmp_path}/delete_delta_0000001_0000001_0000")
            return found

    with wrap_filesystems(lambda _: CleanedMeanwhile()):
        assert changed_a_common_row(None, table, "", 1, own)
