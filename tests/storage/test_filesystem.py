"""File systems: the local one, Arrow's behind the same methods, refusals, and the test hook."""

from __future__ import annotations

import glob
import os

import pyarrow.fs as pafs
import pytest

from acidsql.acid.table import Table, TableName
from acidsql.errors import AcidSqlError, SettingError, UnsupportedError
from acidsql.statements.directories.places import Places
from acidsql.storage.files import filesystem
from acidsql.storage.files.filesystem import (
    ArrowFileSystem,
    Entry,
    FileSystem,
    LocalFileSystem,
    filesystem_for,
    wrap_filesystems,
)
from acidsql.storage.files.options.store_options import register

HOSTILE = ["with space", "per%20cent", "ha#sh", "päth-日本", "a:b", "qu?ery", "p=x%3Ay", "st*r"]


@pytest.fixture(params=["local", "arrow", "arrow-uri", "hdfs"])
def place(request, tmp_path):
    """A file system, and a directory on it as a path in its form."""
    if request.param == "hdfs":
        root = request.getfixturevalue("hdfs")
        return filesystem_for(root), root
    if request.param == "local":
        return LocalFileSystem(), str(tmp_path)
    if request.param == "arrow":
        return ArrowFileSystem(pafs.LocalFileSystem()), str(tmp_path)
    # Replaces HDFS: paths are URIs, and the part behind the root goes to Arrow.
    return ArrowFileSystem(
        pafs.LocalFileSystem(), "hdfs://name:8020"
    ), f"hdfs://name:8020{tmp_path}"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(place, name, request):
    files, root = place
    if ":" in name and request.node.callspec.params["place"] == "hdfs":
        pytest.skip("HDFS has no names with a colon; Hive writes one in a partition's as %3A")
    files.create_directory(f"{root}/{name}/{name}")
    files.write_file(f"{root}/{name}/file {name}", b"abc")
    assert files.list(f"{root}/{name}") == sorted(
        [
            Entry(name, f"{root}/{name}/{name}", True, 0),
            Entry(f"file {name}", f"{root}/{name}/file {name}", False, 3),
        ]
    )
    files.rename(f"{root}/{name}", f"{root}/moved {name}")
    with files.open_input(f"{root}/moved {name}/file {name}") as file:
        file.seek(1)
        assert file.read() == b"bc"
    assert not files.exists(f"{root}/{name}")


def test_what_is_missing(place):
    files, root = place
    assert files.list_if_there(f"{root}/no") == []
    with pytest.raises(FileNotFoundError):
        files.list(f"{root}/no")
    assert not files.exists(f"{root}/no")
    files.delete_directory(f"{root}/no")
    assert files.remove_empty_directory(f"{root}/no") is False
    for call in (files.size, files.open_input, files.delete_file):
        with pytest.raises(FileNotFoundError):
            call(f"{root}/no")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{root}/no", f"{root}/other")


def test_rename_never_overwrites(place):
    files, root = place
    for name in ("a", "b"):
        files.write_file(f"{root}/{name}", name.encode())
        files.create_directory(f"{root}/{name}.dir")
    for source, target in (("a", "b"), ("a.dir", "b.dir"), ("a", "b.dir"), ("a.dir", "b")):
        with pytest.raises(FileExistsError):
            files.rename(f"{root}/{source}", f"{root}/{target}")
    assert [entry.name for entry in files.list(root)] == ["a", "a.dir", "b", "b.dir"]
    with files.open_input(f"{root}/b") as file:
        assert file.read() == b"b"


def test_deleting(place):
    files, root = place
    files.create_directory(f"{root}/d/e")
    files.create_directory(f"{root}/d/e")
    files.write_file(f"{root}/d/e/f", b"x")
    assert files.size(f"{root}/d/e/f") == 1
    assert files.remove_empty_directory(f"{root}/d/e") is False
    files.delete_file(f"{root}/d/e/f")
    files.sync_directory(f"{root}/d/e")
    assert files.remove_empty_directory(f"{root}/d/e") is True
    files.write_file(f"{root}/d/g", b"y")
    files.delete_directory(f"{root}/d")
    assert files.list(root) == []


@pytest.mark.parametrize("files", [LocalFileSystem(), ArrowFileSystem(pafs.LocalFileSystem())])
def test_a_dropped_partition_keeps_its_directory_where_its_removal_could_take_a_new_file(
    files, tmp_path
):
    """A DROP PARTITION cleans up after its commit, when it has no lock any more."""
    old = f"{tmp_path}/p=1/delta_0000001_0000001_0000"
    files.create_directory(old)
    dropped = Table(TableName("default", "t"), str(tmp_path), ())
    with wrap_filesystems(lambda _: files):
        Places(None).remove(dropped, ["p=1"], [old])
    left = [] if isinstance(files, LocalFileSystem) else ["p=1"]
    assert [entry.name for entry in files.list(str(tmp_path))] == left
    assert files.list_if_there(f"{tmp_path}/p=1") == []


def test_paths_with_a_scheme_are_taken_literally(tmp_path):
    for prefix in ("file:", "file://", "file://localhost"):
        location = f"{prefix}{tmp_path}/a%20b"
        files = filesystem_for(location)
        files.write_file(location, b"1")
        assert os.path.exists(tmp_path / "a%20b")
        files.delete_file(location)
    assert filesystem.local_path_of(f"file://{tmp_path}/a%20b") == f"{tmp_path}/a b"
    with pytest.raises(AcidSqlError, match="another host"):
        filesystem_for("file://elsewhere/x").exists("file://elsewhere/x")


@pytest.mark.parametrize("location", ["wasb://c@a/x", "dbfs:/x", "oss://b/k", "x9:/y"])
def test_what_acidsql_does_not_know_is_refused_by_name(location):
    with pytest.raises(UnsupportedError, match=location.split(":")[0]):
        filesystem_for(location)


def test_a_file_is_synced_when_it_is_closed(tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    LocalFileSystem().write_file(str(tmp_path / "f"), b"x" * 3_000_000)
    LocalFileSystem().sync_directory(str(tmp_path))
    assert synced == [str(tmp_path / "f"), str(tmp_path)]
    assert os.path.getsize(tmp_path / "f") == 3_000_000


def test_a_wrapper_sees_every_call(tmp_path):
    calls: list[str] = []

    class Watched(FileSystem):
        def __init__(self, inner: FileSystem) -> None:
            self._inner = inner

        def __getattribute__(self, name: str):
            if name.startswith("_"):
                return object.__getattribute__(self, name)
            calls.append(name)
            return getattr(self._inner, name)

    with wrap_filesystems(Watched):
        files = filesystem_for(str(tmp_path))
        files.write_file(str(tmp_path / "f"), b"")
        assert files.exists(str(tmp_path / "f"))
    assert calls == ["write_file", "exists"]
    assert isinstance(filesystem_for(str(tmp_path)), LocalFileSystem)


@pytest.fixture
def arrows_hdfs():
    """HDFS is opened by Arrow."""
    register({"acidsql.hdfs.client": "arrow"})
    yield
    register({})


def test_what_hadoops_client_lacks_is_said(monkeypatch, arrows_hdfs):
    def missing(host, port, extra_conf):
        raise OSError("Unable to load libjvm\ndlopen(/usr/lib/jvm/libjvm.so) failed")

    monkeypatch.setattr(pafs, "HadoopFileSystem", missing)
    with pytest.raises(SettingError, match=r"Unable to load libjvm\. .*CLASSPATH") as error:
        filesystem_for("hdfs://no-such-name/warehouse")
    assert "dlopen" not in str(error.value)


def test_a_default_file_system_that_is_no_hdfs_is_not_written_to(monkeypatch, arrows_hdfs):
    """If Hadoop's configuration names no default, Arrow uses the local disk."""

    class LocalDisk:
        def __init__(self, host, port, extra_conf):
            assert (host, port) == ("default", 0)

        def get_file_info(self, selector):
            raise OSError("Unexpected HDFS working directory URI: file:/home/me")

    monkeypatch.setattr(pafs, "HadoopFileSystem", LocalDisk)
    for location in ("hdfs:///warehouse", "hdfs:/warehouse"):
        with pytest.raises(SettingError, match=r"names no host.*file:/home/me"):
            filesystem_for(location)


def test_hadoops_client_gets_sparks_jars(monkeypatch, arrows_hdfs):
    """Without a jar of Hadoop's it would end the process."""
    monkeypatch.setenv("CLASSPATH", "/my/conf")
    monkeypatch.setattr(pafs, "HadoopFileSystem", lambda *_, **__: pafs.LocalFileSystem())
    filesystem_for("hdfs://jars:8020/warehouse")
    mine, *_, jars = os.environ["CLASSPATH"].split(":")
    assert mine == "/my/conf" and glob.glob(f"{jars[:-1]}hadoop-client-api-*.jar")


def test_a_client_of_another_name_is_refused():
    register({"acidsql.hdfs.client": "java"})
    try:
        with pytest.raises(SettingError, match="java is neither native nor arrow"):
            filesystem_for("hdfs://name/x")
    finally:
        register({})


@pytest.mark.parametrize("location", ["hdfs:///warehouse", "hdfs:/warehouse"])
def test_hdfs_without_a_host_needs_a_default(location, monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(SettingError, match=r"hdfs:///.*fs\.defaultFS"):
        filesystem_for(location)


def test_a_name_node_that_does_not_answer_is_an_error_at_once():
    with pytest.raises(SettingError, match=r"127\.0\.0\.1:1: .*refused") as error:
        filesystem_for("hdfs://127.0.0.1:1/x")
    assert error.value.condition == "HDFS_UNAVAILABLE"
