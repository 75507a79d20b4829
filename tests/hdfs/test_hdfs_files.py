"""Files on a real HDFS: syncs, errors, dead data nodes, permissions, forks. Without Spark."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import time
import zipfile

import pytest
from mini_hdfs import MiniHdfs, missing
from running_server import running_server

from acidsql.errors import SettingError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.hdfs import HdfsFileSystem
from acidsql.storage.files.options import hdfs_options
from acidsql.storage.files.options.hdfs_options import SHIPPED_CLIENT
from acidsql.storage.spark.session.python_workers import _hdfs_client


@pytest.fixture
def files(hdfs):
    return filesystem_for(hdfs)


@pytest.fixture
def own_hdfs(tmp_path_factory):
    """An HDFS that the test may damage."""
    work = tmp_path_factory.mktemp("own-hdfs")
    yield from running_server(missing(), lambda: MiniHdfs(work))


def read(files, path):
    with files.open_input(path) as file:
        return file.read()


def test_each_file_is_synced_to_the_disks_of_the_data_nodes(files, hdfs, mini_hdfs):
    before = mini_hdfs.syncs
    for number in range(10):
        files.write_file(f"{hdfs}/{number}", b"x" * 1000)
    assert mini_hdfs.syncs - before >= 20  # two replicas of each


def test_a_file_of_several_blocks_comes_back(files, hdfs):
    piece = os.urandom(1 << 20)
    with files.open_output(f"{hdfs}/f") as file:
        for _ in range(150):  # a block has 128 MiB
            file.write(piece)
    assert files.size(f"{hdfs}/f") == 150 << 20
    with files.open_input(f"{hdfs}/f") as file:
        file.seek((140 << 20) + 17)
        assert file.read(1 << 20) == piece[17:] + piece[:17]
        assert file.size() == 150 << 20
        file.seek(-5, os.SEEK_END)
        assert file.read(100) == piece[-5:]
        assert file.read(100) == b""
        file.seek(1 << 40)
        assert file.read() == b""


def test_errors_are_those_of_an_operating_system(files, hdfs):
    files.write_file(f"{hdfs}/file", b"x")
    files.create_directory(f"{hdfs}/full/inner")
    for call, expected in (
        (lambda: files.list(f"{hdfs}/file"), NotADirectoryError),
        (lambda: files.list(f"{hdfs}/no"), FileNotFoundError),
        (lambda: files.open_input(f"{hdfs}/full"), FileNotFoundError),
        (lambda: files.write_file(f"{hdfs}/no/file", b""), FileNotFoundError),
        (lambda: files.write_file(f"{hdfs}/full", b""), FileExistsError),
        (lambda: files.create_directory(f"{hdfs}/file"), FileExistsError),
        (lambda: files.create_directory(f"{hdfs}/file/x"), NotADirectoryError),
        (lambda: files.remove_empty_directory(f"{hdfs}/file"), NotADirectoryError),
        (lambda: files.rename(f"{hdfs}/no", f"{hdfs}/new"), FileNotFoundError),
    ):
        with pytest.raises(expected) as error:
            call()
        assert error.value.filename.startswith(hdfs) and "\\n" not in str(error.value)
    assert not files.exists(f"{hdfs}/file/x")
    assert files.remove_empty_directory(f"{hdfs}/full") is False
    assert read(files, f"{hdfs}/file") == b"x"


def test_safe_mode_and_quotas_are_said(files, hdfs, mini_hdfs):
    path = hdfs.removeprefix(mini_hdfs.root)
    files.create_directory(f"{hdfs}/d")
    mini_hdfs.run("safe")
    try:
        with pytest.raises(OSError, match="SafeModeException") as error:
            files.create_directory(f"{hdfs}/e")
        assert error.value.errno == errno.EROFS
        with pytest.raises(OSError, match="SafeModeException"):
            files.write_file(f"{hdfs}/f", b"x")
    finally:
        mini_hdfs.run("unsafe")
    mini_hdfs.run(f"quota {path}/d -1 1000")
    with pytest.raises(OSError, match="DSQuotaExceeded") as error:
        files.write_file(f"{hdfs}/d/f", b"x" * 5000)
    assert error.value.errno == errno.EDQUOT
    assert files.list(f"{hdfs}/d") == []
    mini_hdfs.run(f"quota {path}/d 1 -1")
    with pytest.raises(OSError, match="NSQuotaExceeded"):
        files.write_file(f"{hdfs}/d/f", b"x")
    assert [entry.name for entry in files.list(hdfs)] == ["d"]


@pytest.mark.slow
def test_a_dead_data_node_stops_no_writer_and_no_reader(own_hdfs):
    root, files = own_hdfs.root, filesystem_for(own_hdfs.root)
    files.create_directory(f"{root}/d")
    for number in range(6):
        files.write_file(f"{root}/d/old{number}", b"%d" % number)
    streamed = files.open_output(f"{root}/d/streamed")
    streamed.write(b"a" * (3 << 20))
    own_hdfs.run("stop 0")
    streamed.write(b"b" * (3 << 20))
    streamed.close()
    assert read(files, f"{root}/d/streamed") == b"a" * (3 << 20) + b"b" * (3 << 20)
    began = time.monotonic()
    for number in range(6):
        files.write_file(f"{root}/d/new{number}", b"%d" % number * 100_000)
        assert read(files, f"{root}/d/old{number}") == b"%d" % number
        assert read(files, f"{root}/d/new{number}") == b"%d" % number * 100_000
    assert time.monotonic() - began < 60
    # The name node will make the second replica when it can.
    statuses = files._client().list_status("/d")
    assert {status.replication for status in statuses} == {2}


def test_a_writer_that_was_given_up_is_not_closed_by_the_garbage_collector(files, hdfs):
    """It would wait for a name node that may be gone."""
    with files.open_output(f"{hdfs}/f") as file:
        library_file = file.raw._file
    assert not isinstance(library_file, io.IOBase)


@pytest.mark.slow
def test_without_any_data_node_a_file_fails_and_none_is_left(own_hdfs):
    root, files = own_hdfs.root, filesystem_for(own_hdfs.root)
    files.create_directory(f"{root}/d")
    own_hdfs.run("stop 0")
    own_hdfs.run("stop 0")
    with pytest.raises(OSError) as error:
        files.write_file(f"{root}/d/f", b"x" * 10)
    assert error.value.filename == f"{root}/d/f"
    assert files.list(f"{root}/d") == []


def test_a_child_of_a_fork_has_a_client_of_its_own(files, hdfs):
    files.write_file(f"{hdfs}/f", b"parent")
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            files.write_file(f"{hdfs}/g", b"child")
            os.write(writing, read(files, f"{hdfs}/f"))
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b"parent"
    os.close(reading)
    os.waitpid(child, 0)
    assert read(files, f"{hdfs}/g") == b"child"


AS_BOB = """
import sys
from acidsql.storage.files.hdfs import HdfsFileSystem
files = HdfsFileSystem(sys.argv[1], {"fs.permissions.umask-mode": sys.argv[3]})
place = sys.argv[2]
try:
    files.create_directory(f"{place}/d")
    files.write_file(f"{place}/d/f", b"x")
except PermissionError as error:
    print("PermissionError", error)
"""


def run_as(user, root, place, umask):
    """Make a directory and a file in it as another user of HDFS; return what is printed."""
    environment = {**os.environ, "HADOOP_USER_NAME": user}
    return subprocess.run(
        [sys.executable, "-c", AS_BOB, root, place, umask],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_permissions_follow_the_umask_and_the_group_is_the_parents(hdfs, mini_hdfs):
    path = hdfs.removeprefix(mini_hdfs.root)
    mini_hdfs.run(f"own {path}/w hive hadoop 775")
    assert "Permission denied" in run_as("bob", mini_hdfs.root, f"{hdfs}/w", "022")
    mini_hdfs.run(f"own {path}/w bob hadoop 775")
    for umask, modes in (
        ("", ("rwxr-xr-x", "rw-r--r--")),
        ("002", ("rwxrwxr-x", "rw-rw-r--")),
        ("u=rwx,g=rx,o=", ("rwxr-x---", "rw-r-----")),
    ):
        assert run_as("bob", mini_hdfs.root, f"{hdfs}/w", umask) == ""
        for below, mode in zip(("d", "d/f"), modes, strict=True):
            assert mini_hdfs.run(f"status {path}/w/{below}") == f"bob hadoop {mode}"
        filesystem_for(hdfs).delete_directory(f"{hdfs}/w/d")


def test_a_default_acl_holds_as_far_as_the_umask_leaves_it(hdfs, mini_hdfs):
    path = hdfs.removeprefix(mini_hdfs.root)
    mini_hdfs.run(f"own {path}/w bob hadoop 775")
    mini_hdfs.run(f"acl {path}/w default:group:etl:rwx")
    for umask, may_write in (("022", False), ("002", True)):
        assert run_as("bob", mini_hdfs.root, f"{hdfs}/w", umask) == ""
        mode = mini_hdfs.run(f"status {path}/w/d").split()[2]  # the mask is in the group's place
        assert (mode[4] == "w") is may_write, mode
        filesystem_for(hdfs).delete_directory(f"{hdfs}/w/d")


def test_a_wrong_umask_is_refused(mini_hdfs):
    with pytest.raises(SettingError, match="umask-mode=rwx is neither octal"):
        HdfsFileSystem(mini_hdfs.root, {"fs.permissions.umask-mode": "rwx"})


def test_a_host_without_a_port_has_hadoops_default_port(hdfs, mini_hdfs, monkeypatch):
    with pytest.raises(SettingError, match=r"nowhere\.invalid:8020 does not answer") as error:
        HdfsFileSystem("hdfs://nowhere.invalid", {})
    assert error.value.condition == "HDFS_UNAVAILABLE"
    host, _, port = mini_hdfs.root.removeprefix("hdfs://").partition(":")
    monkeypatch.setattr(hdfs_options, "_DEFAULT_PORT", int(port))
    files, path = HdfsFileSystem(f"hdfs://{host}", {}), hdfs.removeprefix(mini_hdfs.root)
    files.write_file(f"hdfs://{host}{path}/f", b"x")
    assert [entry.path for entry in files.list(f"hdfs://{host}{path}")] == [
        f"hdfs://{host}{path}/f"
    ]
    assert read(filesystem_for(hdfs), f"{hdfs}/f") == b"x"


WITHOUT_CLIENT = """
import importlib.abc, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "hdfs_native" and not any("acidsql-hdfs-native" in place for place in sys.path):
            raise ImportError(f"no {name} here")

sys.meta_path.insert(0, Block())
sys.path += sys.argv[2:]
from acidsql.storage.files.filesystem import filesystem_for
print([entry.name for entry in filesystem_for(sys.argv[1]).list(sys.argv[1])])
"""


def test_a_worker_without_the_client_takes_the_one_that_the_driver_has_sent(files, hdfs, tmp_path):
    """Spark unpacks it into a directory of this name, below one that is on the workers' path."""
    with zipfile.ZipFile(_hdfs_client()) as archive:
        archive.extractall(tmp_path / SHIPPED_CLIENT)
    files.create_directory(f"{hdfs}/seen")
    command = [sys.executable, "-c", WITHOUT_CLIENT, hdfs]
    ended = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "['seen']"
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "pip install 'acidsql[hdfs]', on executors, too" in ended.stderr
