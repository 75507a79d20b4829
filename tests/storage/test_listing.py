"""The files that a snapshot finds in unusual directories."""

from __future__ import annotations

import errno

import pyorc
import pytest

from acidsql.acid.write_ids import ALL_TXNS, ValidTxnList, ValidWriteIdList
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.partition_tree import discover_partitions
from acidsql.storage.reading.pruning.inventory import inventory
from acidsql.storage.tables import hive2
from acidsql.storage.tables.listing import list_directory, list_plain, list_table

ALL = ValidWriteIdList(100)


@pytest.fixture
def listed(tmp_path):
    """The table's listing in a snapshot."""

    def look(write_ids=ALL, txns=ALL_TXNS):
        fs = filesystem_for(str(tmp_path))
        return list_directory(fs, str(tmp_path), "", write_ids, txns)

    return look


def names(files, root):
    return [file.path.removeprefix(f"{root}/") for file in files]


def test_an_empty_directory_has_no_rows_and_a_missing_one_is_an_error(tmp_path):
    fs = filesystem_for(str(tmp_path))
    listing = list_directory(fs, str(tmp_path), "", ALL, ALL_TXNS)
    assert (listing.data, listing.deletes, listing.originals) == ((), (), ())
    with pytest.raises(FileNotFoundError):
        list_directory(fs, f"{tmp_path}/nothing", "", ALL, ALL_TXNS)


def test_inserts_and_deletes_are_told_apart(put, listed, tmp_path):
    put("delta_0000001_0000001_0000/bucket_00000")
    put("delete_delta_0000002_0000002_0000/bucket_00000_0")
    put("base_0000000/bucket_00001")
    found = listed()
    assert names(found.data, tmp_path) == [
        "base_0000000/bucket_00001", "delta_0000001_0000001_0000/bucket_00000"
    ]  # fmt: skip
    assert names(found.deletes, tmp_path) == ["delete_delta_0000002_0000002_0000/bucket_00000_0"]


def test_hidden_files_side_files_and_empty_files_are_passed_over(put, listed, tmp_path):
    for name in ("_orc_acid_version", "_metadata_acid", ".bucket_00000.crc", "bucket_00001.tmp"):
        put(f"delta_0000001_0000001_0000/{name}")
    put("delta_0000001_0000001_0000/bucket_00002", b"")
    put("delta_0000001_0000001_0000/bucket_00003")
    put(".hive-staging_1/bucket_00000")
    put("_tmp.delta_0000001/000000_0.manifest")
    found = listed()
    assert names(found.data, tmp_path) == ["delta_0000001_0000001_0000/bucket_00003"]
    assert found.originals == ()


def test_a_delta_inside_a_delta_is_passed_over(put, listed, tmp_path):
    """It comes from a rename onto an existing directory (trino#8920)."""
    put("delta_0000001_0000005/bucket_00000")
    put("delta_0000001_0000005/delta_0000001_0000005/bucket_00000")
    assert names(listed().data, tmp_path) == ["delta_0000001_0000005/bucket_00000"]


def test_a_file_that_hive_would_read_is_never_passed_over(put, listed):
    put("base_0000001/part-00000.orc")
    with pytest.raises(FormatError, match="is no name of a file in a base"):
        listed()


def test_files_without_event_columns_are_numbered_by_their_directory(put, listed):
    put("delta_0000003_0000003_0002/000001_0")
    put("delta_0000003_0000003_0002/000000_0")
    (group,) = listed().originals
    assert [path.rpartition("/")[2] for path in group.paths] == ["000000_0", "000001_0"]
    assert (group.write_id, group.statement_id) == (3, 2)


def test_originals_are_found_in_deeper_directories_in_the_order_of_their_paths(put, listed):
    for path in ("000000_0", "000000_0_copy_10", "000000_0_copy_2", "HIVE_UNION_SUBDIR_1/000000_0"):
        put(path)
    put("000001_0", b"")
    (group,) = listed().originals
    assert [path.rpartition("/")[2] for path in group.paths] == [
        "000000_0", "000000_0_copy_10", "000000_0_copy_2", "000000_0"
    ]  # fmt: skip
    assert (group.write_id, group.statement_id) == (0, 0)


def test_a_partition_that_was_not_asked_for_is_refused_not_read_as_nothing(put, listed):
    put("p=1/delta_0000001_0000001_0000/bucket_00000")
    with pytest.raises(FormatError, match="looks like a partition"):
        listed()


def longs(*numbers):
    return b"".join(number.to_bytes(8, "big", signed=True) for number in numbers)


@pytest.mark.parametrize(
    ("side_file", "length"),
    [(longs(0, 4, 7), 7), (longs(0, 4) + b"\x00\x00", 4), (longs(10**6), 10**6)],
)
def test_a_streamed_file_ends_where_its_side_file_says_last(put, listed, side_file, length):
    put("delta_0000001_0000005/bucket_00000", b"0123456789")
    put("delta_0000001_0000005/bucket_00000_flush_length", side_file)
    assert [file.length for file in listed().data] == [length]


@pytest.mark.parametrize("side_file", [b"", longs(0), b"\x00\x00\x00"])
def test_a_streamed_file_without_a_commit_has_no_rows(put, listed, side_file):
    put("delta_0000001_0000005/bucket_00000", b"0123456789")
    put("delta_0000001_0000005/bucket_00000_flush_length", side_file)
    assert listed().data == ()


def test_a_negative_length_is_an_error(put, listed):
    put("delta_0000001_0000005/bucket_00000")
    put("delta_0000001_0000005/bucket_00000_flush_length", longs(-1))
    with pytest.raises(FormatError, match="says -1 bytes"):
        listed()


@pytest.mark.parametrize(
    ("write_ids", "needed"),
    [(ALL, False), (ValidWriteIdList(4), True), (ValidWriteIdList(9, aborted=(3,)), True),
     (ValidWriteIdList(9, open=(7,)), False)],
)  # fmt: skip
def test_events_are_filtered_only_where_some_of_them_are_invisible(put, listed, write_ids, needed):
    put("delta_0000001_0000005/bucket_00000")
    assert listed(write_ids).needs_filter is needed


@pytest.mark.parametrize(("text", "compacted"), [(b'"compacted"', True), (b'"truncated"', False)])
def test_hive_3_marks_a_compacted_base_by_a_file(put, listed, text, compacted):
    put("base_0000005/_metadata_acid", b'{"thisFileVersion":"0","dataFormat":' + text + b"}")
    put("base_0000005/bucket_00000")
    open_4 = ValidWriteIdList(9, open=(4,))
    if compacted:
        with pytest.raises(FormatError, match="files of this snapshot are gone"):
            listed(open_4)
    else:
        assert len(listed(open_4).data) == 1


def test_partitions_are_discovered_by_their_names(put, tmp_path):
    for path in ("P=b/q=1", "p=a/q=2", "p=a/x=3", "_p=c/q=1", "other/q=1"):
        put(f"{path}/delta_0000001_0000001_0000/bucket_00000")
    fs = filesystem_for(str(tmp_path))
    found = discover_partitions(fs.list, str(tmp_path), ["p", "q"])
    assert found == ["P=b/q=1", "p=a/q=2"]
    assert [one.partition for one in list_table(fs, str(tmp_path), found, ALL, ALL_TXNS)] == found


def test_an_insert_only_table_has_files_in_deeper_directories(put, tmp_path):
    put("delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_1/000000_0")
    put("delta_0000001_0000001_0000/delta_0000001_0000001_0000/000000_0")
    put("delta_0000002_0000002_0000/000000_0")
    put("000000_0")  # written before the table was transactional: Hive does not read it either
    fs = filesystem_for(str(tmp_path))
    listing = list_plain(fs, str(tmp_path), "", ValidWriteIdList(1), ALL_TXNS)
    found = [path for group in listing.originals for path in group.paths]
    assert [path.removeprefix(f"{tmp_path}/") for path in found] == [
        "delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_1/000000_0"
    ]


def test_the_inventory_says_what_becomes_of_each_file(put, tmp_path):
    for directory in ("base_0000003", "delta_0000002_0000002_0000", "delta_0000004_0000004_0000",
                      "delta_0000005_0000005_0000", "delta_0000006_0000006_0000",
                      "delta_0000001_0000004_v0000008"):  # fmt: skip
        put(f"{directory}/bucket_00000")
    fs = filesystem_for(str(tmp_path))
    write_ids = ValidWriteIdList(6, open=(6,), aborted=(5,))
    found = inventory(fs, str(tmp_path), None, write_ids, ValidTxnList(7))
    assert {one.directory: one.state for one in found} == {
        "base_0000003": "visible",
        "delta_0000001_0000004_v0000008": "open",
        "delta_0000002_0000002_0000": "obsolete",
        "delta_0000004_0000004_0000": "visible",
        "delta_0000005_0000005_0000": "aborted",
        "delta_0000006_0000006_0000": "open",
    }


# ── deltas of Hive 2 ─────────────────────────────────────────────────────────────────────────


def events(path, *operations):
    """A file of events of these operations, as pyorc writes it."""
    row = pyorc.Struct(id=pyorc.Int())
    kinds = {"operation": pyorc.Int(), "originalTransaction": pyorc.BigInt(),
             "bucket": pyorc.Int(), "rowId": pyorc.BigInt(),
             "currentTransaction": pyorc.BigInt(), "row": row}  # fmt: skip
    path.parent.mkdir(parents=True)
    with path.open("wb") as file, pyorc.Writer(file, pyorc.Struct(**kinds)) as writer:
        for number, operation in enumerate(operations):
            writer.write((operation, 1, 0, number, 1, (number,)))


@pytest.mark.parametrize("operations", [(0, 1), (2,), (0, 0, 2)], ids=str)
def test_updates_in_place_as_hive_2_wrote_them_are_refused(listed, tmp_path, operations):
    """No reader since Hive 3 applies them: the old row would be shown."""
    events(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", *operations)
    with pytest.raises(UnsupportedError, match="major compaction"):
        listed()


def test_a_footer_that_cannot_be_read_now_is_no_proof_of_inserts(listed, tmp_path, monkeypatch):
    """Otherwise deleted rows would be shown, now or whenever the file is listed again."""
    events(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", 0, 2)

    def unreachable(*_):
        raise OSError(errno.EIO, "the disk does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(hive2, "read_footer", unreachable)
        with pytest.raises(OSError, match="does not answer"):
            listed()
    with pytest.raises(UnsupportedError, match="major compaction"):
        listed()


def test_inserts_of_hive_2_are_read(listed, tmp_path):
    events(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", 0, 0)
    assert len(listed().data) == 1
    events(tmp_path / "delete_delta_0000002_0000002_0000" / "bucket_00000", 2)
    assert len(listed().deletes) == 1
