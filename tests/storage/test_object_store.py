"""Files on an object store, by S3's protocol: what is listed, and how files get their names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from object_store import Rule
from pyarrow import orc

from acidsql.acid.layout import ACID_VERSION, ACID_VERSION_FILE
from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import ALL_TXNS, ValidWriteIdList
from acidsql.errors import FormatError, UnsupportedError, WriteError
from acidsql.statements.directories.places import Places
from acidsql.storage.checking.contents import CheckedFile, CheckSpec, check_file
from acidsql.storage.event_records import Record
from acidsql.storage.files.filesystem import Entry, filesystem_for, length_of, wrap_filesystems
from acidsql.storage.files.memory import MEMORY, new_directory
from acidsql.storage.files.missing import _translated_error
from acidsql.storage.files.object_store import GoogleStore
from acidsql.storage.files.options import store_options
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc import batches as orc_batches
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.orc_reader import read_batches, row_count
from acidsql.storage.tables.listing import list_table
from acidsql.storage.writing.placing import NewDirectory, place_directories

HOSTILE = ["with space", "per%20cent", "ha#sh", "päth-日本", "a:b", "qu?ery", "p=x%3Ay", "st*r"]
ROW = RowSchema.from_fields([("id", "int")])
ALWAYS = 1000  # more often than the client asks again


@pytest.fixture
def table(s3, bucket, monkeypatch):
    """The location of a table, and its file system."""
    monkeypatch.setattr(store_options, "_registered_settings", [dict(s3.hadoop)])
    location = f"s3a://{bucket}/warehouse/t"
    files = filesystem_for(location)
    files.create_directory(location)
    s3.mark()
    return files, location


def staged(files, location, name="insert-0-0-x", data=b"rows", claimed=None):
    path = f"{location}/_tmp_0000001_0000_x/{name}"
    files.write_file(path, data)
    size = len(data) if claimed is None else claimed
    return Record("insert", 0, 0, "", 0, path, 1, 0, size)


def new(location, file, name="delta_0000001_0000001_0000"):
    return NewDirectory(location, name, {"bucket_00000": file}, {ACID_VERSION_FILE: ACID_VERSION})


def put(files, location, directories, placed=None):
    place_directories(
        files,
        location,
        f"{location}/_tmp_0000001_0000_x",
        directories,
        [] if placed is None else placed,
    )


# ── looking ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", HOSTILE)
def test_every_name_stands_for_itself(table, name):
    files, root = table
    files.write_file(f"{root}/{name}/file {name}", b"abc")
    found = [Entry(f"file {name}", f"{root}/{name}/file {name}", False, 3)]
    for looked in (files, files.cached_listings(root)):
        assert looked.list(root) == [Entry(name, f"{root}/{name}", True, 0)]
        assert looked.list(f"{root}/{name}") == found
    files.copy_file(f"{root}/{name}/file {name}", f"{root}/copy {name}")
    with files.open_input(f"{root}/copy {name}") as file:
        file.seek(1)
        assert file.read() == b"bc"
    files.delete_directory(f"{root}/{name}")
    assert not files.exists(f"{root}/{name}")


def test_what_is_missing_is_an_error_by_its_path(table):
    files, root = table
    assert files.list_if_there(f"{root}/no") == []
    assert not files.exists(f"{root}/no")
    files.delete_directory(f"{root}/no")
    assert files.remove_empty_directory(f"{root}/no") is False
    for call in (
        files.list, files.cached_listings, files.size, files.open_input, files.delete_file,
        lambda path: files.copy_file(path, f"{root}/other"),
    ):  # fmt: skip
        with pytest.raises(FileNotFoundError) as error:
            call(f"{root}/no")
        assert error.value.filename == f"{root}/no"


@pytest.mark.parametrize(("size", "requests"), [(1000, 2), (1000_000, 3)])
def test_a_small_file_is_read_at_once(table, s3, size, requests):
    files, root = table
    files.write_file(f"{root}/file", bytes(size - 3) + b"end")
    s3.mark()
    with files.open_input(f"{root}/file") as file:
        assert length_of(file) == size
        file.seek(size - 3)
        assert file.read() == b"end"
        file.seek(0)
        assert file.read(1) == bytes(1)
    assert s3.counts().total() == requests


def test_a_large_file_is_read_in_blocks_and_not_in_the_pieces_that_orc_reads(table, s3):
    files, root = table
    numbers = np.random.default_rng(7).integers(0, 1 << 40, (5, 100_000))
    written, sink = pa.table(dict(zip("abcde", numbers, strict=True))), pa.BufferOutputStream()
    orc.write_table(written, sink)
    files.write_file(f"{root}/file", sink.getvalue().to_pybytes())
    s3.mark()
    read = pa.Table.from_batches([batch for batch, _ in read_batches(f"{root}/file")])
    assert read == written
    blocks = -(-files.size(f"{root}/file") // orc_batches._BLOCK)
    assert 4 < blocks < s3.counts()["GET"] <= blocks + 2  # the tail, and the stripe's footer


def test_one_listing_answers_for_the_whole_table(table, s3):
    files, root = table
    for partition in ("p=1", "p=2"):
        for name in ("_orc_acid_version", "bucket_00000"):
            files.write_file(f"{root}/{partition}/delta_0000001_0000001_0000/{name}", b"x")
    s3.mark()
    ids = ValidWriteIdList(1)
    one, two = list_table(files, root, ["p=1", "p=2"], ids, ALL_TXNS)
    assert [file.path for file in one.data + two.data] == [
        f"{root}/{partition}/delta_0000001_0000001_0000/bucket_00000"
        for partition in ("p=1", "p=2")
    ]
    assert s3.counts() == {"LIST": 2}  # few partitions: one each
    s3.mark()
    many = [f"p={number}" for number in range(3, 60)]
    for partition in many:
        files.create_directory(f"{root}/{partition}")
    s3.mark()
    list_table(files, root, ["p=1", "p=2", *many], ids, ALL_TXNS)
    assert s3.counts() == {"LIST": 1}


@pytest.mark.slow
def test_a_listing_of_more_than_a_page_is_whole(table):
    files, root = table
    names = [f"{number:05d}" for number in range(1003)]
    write_all(files, [f"{root}/d/{name}" for name in names])
    for looked in (files, files.cached_listings(root)):
        assert [entry.name for entry in looked.list(f"{root}/d")] == names


def write_all(files, paths):
    run_in_threads(lambda path: files.write_file(path, b"x"), paths)


def test_an_object_that_stands_for_a_directory_is_no_delta(table):
    """A tool that has made a directory and died before its first file hides nobody's rows."""
    files, root = table
    files.write_file(f"{root}/delta_0000001_0000001_0000/bucket_00000", b"x")
    files.create_directory(f"{root}/base_0000009")
    (listing,) = list_table(files, root, [""], ValidWriteIdList(9), ALL_TXNS)
    assert [file.directory.name for file in listing.data] == ["delta_0000001_0000001_0000"]


def test_a_directory_of_google_is_there_if_an_object_stands_for_it_or_is_below_it():
    class Arrow:  # as it lists there
        def get_file_info(self, selector):
            directory = [pafs.FileInfo(f"{selector.base_dir}/p=2", pafs.FileType.Directory)]
            names = ("file", "p=1/delta/a", "p=1/delta/b") if selector.recursive else ("file",)
            paths = (f"{selector.base_dir}/{name}" for name in names)
            return directory + [pafs.FileInfo(one, pafs.FileType.File, size=3) for one in paths]

    store, root = GoogleStore(Arrow(), "gs://b", "b"), "gs://b/t"
    assert store.list(root) == [
        Entry("file", f"{root}/file", False, 3),
        Entry("p=1", f"{root}/p=1", True, 0),
        Entry("p=2", f"{root}/p=2", True, 0),
    ]


def test_a_name_that_is_a_file_and_a_directory_shows_both(table):
    files, root = table
    files.write_file(f"{root}/delta_0000001_0000001_0000/bucket_00000", b"x")
    files.write_file(f"{root}/odd", b"x")
    files.write_file(f"{root}/odd/inside", b"x")
    assert {entry.name for entry in files.cached_listings(root).list(root)} == {
        "delta_0000001_0000001_0000", "odd",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["HEAD", "GET"])
@pytest.mark.parametrize(
    ("status", "code"), [(400, "ExpiredToken"), (403, "AccessDenied"), (503, "SlowDown")]
)
def test_a_file_that_the_store_does_not_give_out_is_not_called_damaged(
    table, s3, kind, status, code
):
    files, root = table
    path = f"{root}/delta_0000001_0000001_0000/bucket_00000"
    files.write_file(path, b"rows")
    failing = s3.failing(Rule("status", kind, times=ALWAYS, status=status, code=code))
    with failing, pytest.raises(OSError, match="AWS Error"):
        row_count(path)
    with s3.failing(Rule("status", kind, times=ALWAYS, status=status, code=code)):
        found = check_file(CheckedFile(path, 4), CheckSpec(ROW, False, None, all_rows=False))
    assert [(one.path, one.condition) for one in found] == [(path, "UNREACHABLE_FILE")]
    with pytest.raises(FormatError):
        row_count(path)  # for these bytes are no ORC file


def test_a_file_that_goes_while_it_is_read_is_missing_and_not_damaged(table, s3):
    files, root = table
    path = f"{root}/delta_0000001_0000001_0000/bucket_00000"
    files.write_file(path, b"rows" * 1000)
    failing = s3.failing(Rule("status", "GET", times=ALWAYS, status=404, code="NoSuchKey"))
    with failing, pytest.raises(FileNotFoundError) as error:
        row_count(path)
    assert error.value.filename == path


class JavaError:
    """As Py4J shows an exception of Java's."""

    def __init__(self, kind, message, cause=None):
        self.getMessage, self.getCause = lambda: message, lambda: cause
        self.getClass = lambda: self
        self.getName = lambda: kind


@pytest.mark.parametrize(
    ("kind", "message", "is_damage"),
    [
        ("java.io.IOException", "t/bucket_00000: Stream is closed!", False),
        ("java.nio.file.AccessDeniedException", "s3a://b/t: 403", False),
        ("software.amazon.awssdk.services.s3.model.S3Exception", "Expired", False),
        ("org.apache.hadoop.fs.s3a.AWSServiceIOException", "SlowDown", False),
        ("com.google.protobuf.InvalidProtocolBufferException", "a tag is wrong", True),
        ("java.io.IOException", "Malformed ORC file", True),
    ],
)
def test_what_spark_cannot_read_is_damaged_only_if_the_store_has_given_it_out(
    kind, message, is_damage
):
    said = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "s3a://b/t/delta_0000001_0000001_0000/bucket_00000.  SQLSTATE: KD001"
    )
    inner = JavaError("java.io.IOException", "later", None) if not is_damage else None
    found = _translated_error(
        JavaError("org.apache.spark.SparkException", said, JavaError(kind, message, inner))
    )
    assert (found is not None) == is_damage


# ── putting into place ───────────────────────────────────────────────────────────────────────


def test_a_directory_is_put_into_place_by_copies_and_looked_at_before_and_after(table, s3):
    files, root = table
    file = staged(files, root)
    s3.mark()
    placed = []
    put(files, root, [new(root, file)], placed)
    assert placed == [f"{root}/delta_0000001_0000001_0000"]
    assert [(entry.name, entry.size) for entry in files.list(placed[0])] == [
        (ACID_VERSION_FILE, 1), ("bucket_00000", 4),
    ]  # fmt: skip
    assert s3.counts() == {"LIST": 3, "PUT": 1, "COPY": 1}  # one LIST is this test's


def test_what_the_driver_has_in_memory_goes_out_as_one_object(table, s3):
    files, root = table
    directory = new_directory()
    try:
        path = f"{directory}/insert"
        MEMORY.write_file(path, b"rows")
        put(files, root, [new(root, Record("insert", 0, 0, "", 0, path, 1, 0, 4))])
    finally:
        MEMORY.delete_directory(directory)
    assert s3.counts() == {"LIST": 2, "PUT": 2}


def test_many_directories_are_looked_at_in_one_listing(table, s3):
    files, root = table
    made = [
        NewDirectory(f"{root}/p={number}", "delta_0000001_0000001_0000", {},
                     {ACID_VERSION_FILE: ACID_VERSION})
        for number in range(40)
    ]  # fmt: skip
    put(files, root, made)
    assert s3.counts() == {"LIST": 2, "PUT": 40}


def test_somebody_elses_directory_stays_and_is_not_noted(table, s3):
    files, root = table
    theirs = f"{root}/delta_0000001_0000001_0000/bucket_00007"
    files.write_file(theirs, b"theirs")
    placed = []
    with pytest.raises(FileExistsError):
        put(files, root, [new(root, staged(files, root))], placed)
    assert placed == [] and files.exists(theirs)


@pytest.mark.parametrize("claimed", [3, 5])
def test_a_file_of_another_length_than_its_writer_said_is_refused(table, claimed):
    files, root = table
    placed = []
    with pytest.raises(WriteError, match=f"should have {claimed} bytes and has 4"):
        put(files, root, [new(root, staged(files, root, claimed=claimed))], placed)
    assert placed


def test_a_file_that_came_meanwhile_is_refused(table, s3):
    files, root = table

    class Meddling(type(files)):
        def copy_file(self, source, target):
            super().copy_file(source, target)
            self.write_file(f"{target}_of_another_attempt", b"rows")

    meddled = Meddling(files._arrow, files._root, files._bucket)
    with pytest.raises(WriteError, match="put there by somebody else"):
        put(meddled, root, [new(root, staged(files, root))])


def test_a_missing_staged_file_is_an_error(table):
    files, root = table
    file = staged(files, root)
    files.delete_file(file.path)
    with pytest.raises(FileNotFoundError):
        put(files, root, [new(root, file)])


def test_a_file_that_is_too_large_for_one_copy_is_refused_before_anything_is_there(table, s3):
    files, root = table
    huge = Record("insert", 0, 0, "", 0, f"{root}/_tmp_x/huge", 1, 0, 5 * 1024**3 + 1)
    with pytest.raises(WriteError, match="REPARTITION"):
        put(files, root, [new(root, huge)])
    assert s3.requests() == []


@pytest.mark.parametrize("how", ["status", "reset", "lost"])
@pytest.mark.parametrize("kind", ["LIST", "PUT", "COPY"])
def test_a_request_that_fails_once_is_asked_again(table, s3, kind, how):
    files, root = table
    file = staged(files, root)
    with s3.failing(Rule(how, kind)):
        put(files, root, [new(root, file)])
    assert len(files.list(f"{root}/delta_0000001_0000001_0000")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["PUT", "COPY"])
def test_a_request_that_fails_for_ever_leaves_a_note_of_the_directory(table, s3, kind):
    files, root = table
    file, placed = staged(files, root), []
    with s3.failing(Rule("status", kind, times=ALWAYS)), pytest.raises(OSError):
        put(files, root, [new(root, file)], placed)
    assert placed == [f"{root}/delta_0000001_0000001_0000"]


def test_what_another_session_puts_into_a_dropped_partition_stays(table):
    """A DROP PARTITION cleans up after its commit, when it has no lock any more."""
    files, root = table
    theirs = f"{root}/p=1/delta_0000009_0000009_0000/bucket_00000"

    class Meanwhile(type(files)):
        def list(self, path):
            found = super().list(path)
            if path == f"{root}/p=1":
                self.write_file(theirs, b"rows")
            return found

    meddled = Meanwhile(files._arrow, files._root, files._bucket)
    old = f"{root}/p=1/delta_0000001_0000001_0000"
    files.write_file(f"{old}/bucket_00000", b"rows")
    dropped = Table(TableName("default", "t"), root, ())
    with wrap_filesystems(lambda _: meddled):
        Places(None).remove(dropped, ["p=1"], [old])
        assert not files.exists(old)
    files.list(f"{root}/p=1")


def test_nothing_is_renamed(table):
    files, root = table
    with pytest.raises(UnsupportedError) as error:
        files.rename(f"{root}/a", f"{root}/b")
    assert error.value.condition == "UNSUPPORTED_FEATURE.RENAME_ON_OBJECT_STORE"
