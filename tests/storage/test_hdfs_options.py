"""Hadoop's settings of HDFS, and the writer that goes on without a data node. Without an HDFS."""

from __future__ import annotations

import errno
import threading
from contextlib import nullcontext

import pytest

from acidsql.errors import CatalogError, SettingError, SnapshotTooOldError
from acidsql.storage.files import hdfs_file
from acidsql.storage.files.filesystem import sparks_location
from acidsql.storage.files.hdfs_file import HdfsWriter
from acidsql.storage.files.missing import _translated_error
from acidsql.storage.files.options import hdfs_options
from acidsql.storage.files.options.store_options import register

HA = {
    "fs.defaultFS": "hdfs://both",
    "dfs.nameservices": "both",
    "dfs.ha.namenodes.both": "a, b",
    "dfs.namenode.rpc-address.both.a": "one:8020",
    "dfs.namenode.rpc-address.both.b": "two:9000",
}


@pytest.mark.parametrize(
    ("umask", "file", "directory"),
    [
        ("", 0o644, 0o755),
        ("022", 0o644, 0o755),
        ("0002", 0o664, 0o775),
        ("77", 0o600, 0o700),
        ("u=rwx,g=rx,o=", 0o640, 0o750),
        ("ug=rwx,o=rx", 0o664, 0o775),
        ("a=rwx", 0o666, 0o777),
        ("u=rwx", 0o600, 0o700),
    ],
)
def test_a_umask_leaves_these_permissions(umask, file, directory):
    modes = hdfs_options.modes({"fs.permissions.umask-mode": umask})
    assert modes == (file, directory)


@pytest.mark.parametrize("umask", ["9", "rwx", "u+w", "00022"])
def test_another_umask_is_refused(umask):
    with pytest.raises(SettingError, match="neither octal"):
        hdfs_options.modes({"fs.permissions.umask-mode": umask})


def test_the_name_nodes_of_an_address():
    assert hdfs_options.name_nodes("both", HA) == [("one", 8020), ("two", 9000)]
    assert hdfs_options.name_nodes("one:8020", {}) == [("one", 8020)]
    assert hdfs_options.name_nodes("unknown", HA) == []


def test_the_client_gets_no_settings_of_others():
    conf = hdfs_options.client_conf({**HA, "fs.s3a.secret.key": "s", "dfs.replication": "1"})
    assert conf == {**HA, "dfs.client.failover.max.attempts": "6"}
    assert hdfs_options.client_conf({"dfs.client.failover.max.attempts": "2"}) == {
        "dfs.client.failover.max.attempts": "2"
    }


@pytest.mark.parametrize(
    ("default", "path", "expected"),
    [
        (None, "/x", "/x"),
        ("file:///", "/x", "/x"),
        ("file:///", "x", "x"),
        ("hdfs://both", "/x", "hdfs://both/x"),
        ("hdfs://h:8020/", "/x", "hdfs://h:8020/x"),
        ("hdfs://both", "file:/x", "file:/x"),
        ("hdfs://both", "s3a://b/x", "s3a://b/x"),
    ],
)
def test_a_path_without_a_scheme_is_on_the_default_file_system(default, path, expected):
    register({} if default is None else {"fs.defaultFS": default})
    try:
        assert sparks_location(path) == expected
    finally:
        register({})


def test_a_relative_path_is_only_a_local_one():
    register({"fs.defaultFS": "hdfs://both"})
    try:
        with pytest.raises(CatalogError, match="'x' is relative"):
            sparks_location("x")
    finally:
        register({})


class Library:
    """A client of two replicas, whose files fail as often as told, each at its n-th call.

    Args:
        failures: For each attempt its failing call (``write`` or ``close``) and the error; None: it
            succeeds.
    """

    replication = 2

    def __init__(self, *failures):
        self.failures, self.asked, self.files, self.replicas = list(failures), [], [], None

    def create(self, replicas):
        self.asked.append(replicas)
        self.files.append(LibrarysFile(self.failures.pop(0) if self.failures else None))
        return self.files[-1]

    def get_file_info(self, path):
        return self

    def set_replication(self, path, replicas):
        self.replicas = replicas

    def delete(self, path, recursive):
        self.files = []
        return True


class LibrarysFile:
    def __init__(self, failure):
        self.failure, self.data, self.is_closed = failure, b"", False

    def write(self, data):
        self.fail_at("write")
        self.data += data

    def close(self):
        self.fail_at("close")
        self.is_closed = True

    def fail_at(self, call):
        if self.failure is not None and self.failure[0] == call:
            if self.failure[1] is HANGS:
                threading.Event().wait(5)  # a mutant must end
            raise self.failure[1]


HANGS = object()
DEAD = OSError(errno.EIO, "Connection refused")


def write(library, *pieces):
    writer = HdfsWriter(library, "/f", library.create, nullcontext)
    try:
        for piece in pieces:
            writer.write(piece)
    finally:
        writer.close()


@pytest.mark.parametrize("call", ["write", "close"])
def test_a_file_is_written_again_as_a_whole_if_data_nodes_fail(call):
    library = Library((call, DEAD), (call, DEAD))
    write(library, b"ab", b"c" * 5_000_000)  # more than is kept in memory
    assert library.asked == [None, None, None] and library.replicas == 2
    assert library.files[-1].data == b"ab" + b"c" * 5_000_000 and library.files[-1].is_closed
    assert not any(file.is_closed for file in library.files[:-1])


@pytest.mark.parametrize("call", ["write", "close"])
def test_a_call_that_never_ends_is_a_failure_of_the_data_nodes(call, monkeypatch):
    monkeypatch.setattr(hdfs_file, "_LONGEST_CALL_S", 0.2)
    library = Library((call, HANGS))
    write(library, b"ab", b"cd")
    assert library.asked == [None, None]
    assert library.files[-1].data == b"abcd" and library.files[-1].is_closed


def test_an_attempt_that_was_given_up_disturbs_no_later_one(monkeypatch):
    """It goes on while the next attempt writes the file."""
    monkeypatch.setattr(hdfs_file, "_LONGEST_CALL_S", 0.5)
    monkeypatch.setattr(hdfs_file, "_PIECE", 2)
    given_up, may_go_on = [], threading.Event()

    class Slow(LibrarysFile):
        def write(self, data):
            given_up.append(threading.current_thread())
            may_go_on.wait(5)
            super().write(data)

    class Next(LibrarysFile):
        def write(self, data):
            may_go_on.set()
            if threading.current_thread() is not given_up[0]:
                given_up[0].join(5)
            super().write(data)

    library = Library()
    kinds = iter([LibrarysFile(("write", DEAD)), Slow(None), Next(None)])

    def create(_):
        library.files.append(next(kinds))
        return library.files[-1]

    library.create = create
    write(library, b"abcdefgh", b"ij")
    assert not given_up[0].is_alive()
    assert library.files[-1].data == b"abcdefghij" and library.files[-1].is_closed


def test_fewer_replicas_are_asked_for_in_the_end_and_then_all():
    library = Library(*[("close", DEAD)] * 5)
    write(library, b"ab")
    assert library.asked == [None, None, None, 2, 1, 1] and library.replicas == 2
    assert library.files[-1].data == b"ab"


def test_a_file_without_failures_is_left_as_it_is():
    library = Library()
    write(library, b"ab", b"cd")
    assert library.asked == [None] and library.replicas is None
    assert library.files[-1].data == b"abcd" and library.files[-1].is_closed


@pytest.mark.parametrize("call", ["write", "close"])
@pytest.mark.parametrize(
    "failure", [OSError(errno.EDQUOT, "quota"), OSError(errno.EACCES, "no")], ids=str
)
def test_what_the_name_node_refuses_is_not_tried_again(call, failure):
    library = Library((call, failure))
    with pytest.raises(type(failure)) as error:
        write(library, b"ab")
    assert error.value is failure
    assert library.asked == [None] and library.files == []


def test_a_file_that_no_data_node_takes_is_deleted():
    library = Library(*[("write", DEAD)] * 100)
    with pytest.raises(OSError, match="refused"):
        write(library, b"ab")
    assert library.files == [] and len(library.asked) == 14


class TaskError:
    """Spark's error of a Python task."""

    def __init__(self, message):
        self._message = message

    def getMessage(self):  # noqa: N802 - Java's name
        return self._message

    def getCause(self):  # noqa: N802
        return None


@pytest.mark.parametrize(
    "words", ["No such file or directory", "File does not exist: /t/delta_0000001_0000001_0000/b"]
)
def test_a_file_that_is_gone_when_a_task_reads_it_is_said_so(words):
    path = "hdfs://name:8020/t/delta_0000001_0000001_0000/b"
    lines = f"Traceback (most recent call last):\nFileNotFoundError: [Errno 2] {words}: '{path}'\n"
    error = _translated_error(TaskError(lines))
    assert isinstance(error, SnapshotTooOldError) and path in error.message
