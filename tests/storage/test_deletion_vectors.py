"""Delete events as bits leave out exactly the rows that they name, and no similar row."""

from __future__ import annotations

import itertools
import random
import zlib

import numpy as np
import pyarrow as pa
import pytest

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import parse_directory
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import FormatError, SnapshotTooOldError
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events import deletion_vectors as vectors
from acidsql.storage.spark.session import jvm
from acidsql.storage.tables.listing import EventFile, Listing

SCHEMA = RowSchema.from_fields([("v", "string")])
PARTITIONS = ["", "p=1", "p=2"]
NUMBERS = {name: number for number, name in enumerate(PARTITIONS)}
# Write id, bucket property, row id: the limits of each number, and values beyond them.
PROPERTIES = [encode(b, s) for b, s in itertools.product((0, 1, 63), (0, 1, 64))]
KEYS = list(
    itertools.product(
        (1, 2, 3, 64, 65),
        PROPERTIES,
        (0, 1, 62, 63, 64, 65535, 65536, 65537, 131071, 1 << 20),
    )
)


def delete_file(path, keys, write_id=9):
    """A file of delete events, listed as in the given directory."""
    writer = EventFileWriter(LocalFileSystem().open_output(str(path)), SCHEMA)
    if keys:
        writer.write_deletes(*np.array(sorted(keys), np.int64).T, write_id)
    writer.close()
    directory = parse_directory(f"delete_delta_{write_id}_{write_id}_0000")
    return EventFile(str(path), directory, path.stat().st_size)


def listings_of(tmp_path, deleted):
    """Each partition's delete events, with one file for each write id."""
    found = []
    for number, name in enumerate(PARTITIONS):
        of_each = itertools.groupby(sorted(deleted[name]), key=lambda key: key[0])
        files = [delete_file(tmp_path / f"{number}-{of}", list(keys)) for of, keys in of_each]
        found.append(Listing(name, deletes=tuple(files)))
    return found


SEEN = ValidWriteIdList(100)


def vectors_of(listings, write_ids=SEEN):
    return vectors.deletion_vectors(listings, write_ids, NUMBERS)


def one(tmp_path, *keys, write_id=9):
    return [Listing("", deletes=(delete_file(tmp_path / "file", keys, write_id),))]


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_is_what_no_delete_event_names(spark, tmp_path, seed, ansi):
    rng = random.Random(seed)
    # Some have forms that Hive does not write. Some fall on the same number as others if bits are
    # lost.
    unlike = [(2, 1, 0), (2, 0, 0), (2, encode(0) | 1 << 28, 0), (2, encode(0) | 1 << 12, 0)]
    far = [(2, encode(0), 1 << 46), (2, encode(0), 2**63 - 2), (2**62, encode(0), 0)]
    alike = [(2 + (1 << 14), encode(0), 0), (2, encode(0), 1 << 26), (2, encode(0) ^ 1, 1 << 26)]
    below = [(2, encode(1), -1), (2, encode(1), -65536), (2, -1, 5)]
    near = [*KEYS, *unlike, *alike, *below]
    keys = [*near, *far]
    deleted = {
        name: rng.sample(near, (0, 1, 90)[(seed + at) % 3]) for at, name in enumerate(PARTITIONS)
    }
    none = [(None, encode(0), 0), (2, None, 0), (2, encode(0), None)]
    rows = [(NUMBERS[n], *key) for n in PARTITIONS for key in [*keys, *none]]
    names = [vectors.PARTITION_NUMBER, vectors.WRITE_ID, vectors.BUCKET_PROPERTY, vectors.ROW_ID]
    kinds = [pa.int32(), pa.int64(), pa.int32(), pa.int64()]
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    events = spark.createDataFrame(pa.table(columns, names=names))
    found = vectors_of(listings_of(tmp_path, deleted))
    with jvm.changed_conf(spark, {"spark.sql.ansi.enabled": ansi}):
        left = found.remove_deleted(events)
        shown = [tuple(row) for row in left.collect()]
    assert left.columns == names
    gone = {(NUMBERS[name], *key) for name, keys in deleted.items() for key in keys}
    assert set(shown) == set(rows) - gone
    assert len(shown) == len(rows) - len(gone)
    whole = [row for row in rows if None not in row]
    at_hand = found.are_deleted(list(np.array(whole, np.int64).T))
    assert {row for row, is_gone in zip(whole, at_hand.tolist(), strict=True) if is_gone} == gone


def test_events_of_others_than_the_snapshot_sees_set_no_bit(tmp_path):
    listings = one(tmp_path, (1, encode(0), 5))
    assert len(vectors_of(listings).words)
    assert not len(vectors_of(listings, ValidWriteIdList(8)).words)
    assert not len(vectors_of(listings, ValidWriteIdList(10, aborted=(9,))).words)


def test_a_file_without_events_sets_no_bit(tmp_path):
    assert not len(vectors_of(one(tmp_path)).words)


def test_many_rows_of_a_page_take_one_page(tmp_path):
    keys = [(1, encode(0), row) for row in range(8192)]
    found = vectors_of(one(tmp_path, *keys))
    assert found.words.tolist() == [[-1] * 128]
    assert found.pages.T.tolist() == [[0, 1, encode(0), 0]]


def test_rows_far_apart_are_left_to_a_join(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "PAGES_MAX", 3)
    near = [(1, encode(0), row << 13) for row in range(2)]
    assert vectors_of(one(tmp_path, *near)) is not None
    assert (
        vectors_of(one(tmp_path, *near, (1, encode(0), 2 << 13), (1, encode(0), 3 << 13))) is None
    )


def test_rows_far_apart_in_several_files_are_left_to_a_join(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "PAGES_MAX", 3)
    deleted = {"": [(1, encode(0), 0), (2, encode(0), 0)], "p=1": [(1, encode(0), 0)], "p=2": []}
    assert vectors_of(listings_of(tmp_path, deleted)) is not None
    deleted["p=2"] = [(1, encode(0), 0)]
    assert vectors_of(listings_of(tmp_path, deleted)) is None


def test_many_events_are_left_to_a_join(tmp_path, monkeypatch):
    keys = [(1, encode(0), row) for row in range(11)]
    assert vectors_of(one(tmp_path, *keys)) is not None
    monkeypatch.setattr(vectors, "SENT_MAX", 10)
    assert vectors_of(one(tmp_path, *keys)) is None


@pytest.mark.parametrize("key", [(2**62, encode(0), 0), (1, encode(0), 1 << 46)])
def test_numbers_far_apart_are_left_to_a_join_but_the_driver_can_look_them_up(tmp_path, key):
    found = vectors_of(one(tmp_path, (1, encode(0), 0), key))
    assert found.index is None
    asked = np.array([(0, *key), (0, 1, encode(0), 0), (0, 1, encode(0), 1)], np.int64)
    assert found.are_deleted(list(asked.T)).tolist() == [True, True, False]


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_many_write_ids_of_few_pages_each_have_one_index(spark, tmp_path, monkeypatch, seed):
    """As in a partitioned table of one large INSERT, after many small changes of all partitions."""
    rng = random.Random(seed)
    keys = [(1, encode(b), page << 13 | 5) for b in (0, 1) for page in range(-1, 72)]
    keys += [(w, encode(0, 1), row) for w in (0, *range(2, 62), 127, 128, 129) for row in (0, 5)]
    keys += [(w, encode(0, 1), page << 13) for w in (2, 40) for page in (1, 71, 127, 128)]
    likely = [key for key in keys if key[0] in range(62) and key[2] in range(70 << 13)]
    deleted = {name: rng.sample(likely, 180) for name in PARTITIONS}
    listings = listings_of(tmp_path, deleted)
    monkeypatch.setattr(vectors, "INDEX_MAX", 30_000)  # below 70 * 61 * 3 * 2 * 2
    found = vectors_of(listings)
    assert "* 130L" in found.index.is_alive and len(found.index.numbers) < 30_000
    rows = [(NUMBERS[name], *key) for name in PARTITIONS for key in keys]
    names = [vectors.PARTITION_NUMBER, vectors.WRITE_ID, vectors.BUCKET_PROPERTY, vectors.ROW_ID]
    schema = pa.schema(zip(names, [pa.int32(), pa.int64(), pa.int32(), pa.int64()], strict=True))
    events = spark.createDataFrame(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    )
    left = {tuple(row) for row in found.remove_deleted(events).collect()}
    gone = {(NUMBERS[name], *key) for name, keys in deleted.items() for key in keys}
    assert left == set(rows) - gone
    monkeypatch.setattr(vectors, "INDEX_MAX", 15_000)
    assert vectors_of(listings).index is None


@pytest.mark.spark
def test_many_partitions_are_told_apart_by_their_checksums(spark, tmp_path):
    names = [f"p={number}" for number in range(700)]
    numbers = {name: zlib.crc32(name.encode()) for name in names}
    file = delete_file(tmp_path / "file", [(1, encode(0), 5)])
    listings = [Listing(name, deletes=(file,)) for name in names[::7]]
    found = vectors.deletion_vectors(listings, SEEN, numbers)
    rows = [(number, 1, encode(0), row) for number in (0, *numbers.values()) for row in (5, 6)]
    kinds = [pa.int64(), pa.int64(), pa.int32(), pa.int64()]
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    keys = [vectors.PARTITION_NUMBER, vectors.WRITE_ID, vectors.BUCKET_PROPERTY, vectors.ROW_ID]
    left = found.remove_deleted(spark.createDataFrame(pa.table(columns, names=keys))).collect()
    gone = {numbers[name] for name in names[::7]}
    assert {tuple(row) for row in left} == {r for r in rows if r[0] not in gone or r[3] == 6}


def test_a_partition_may_be_known_by_a_checksum(tmp_path):
    listings = one(tmp_path, (1, encode(0), 0))
    found = vectors.deletion_vectors(listings, SEEN, {"": 4_000_000_000})
    keys = np.array([[4_000_000_000, 1, encode(0), 0], [0, 1, encode(0), 0]], np.int64)
    assert found.are_deleted(list(keys.T)).tolist() == [True, False]


def test_events_that_do_not_come_sorted_set_the_same_bits(tmp_path):
    keys = [(1, encode(0), row) for row in (70000, 5, 140000, 6, 70001)]
    writer = EventFileWriter(LocalFileSystem().open_output(str(tmp_path / "file")), SCHEMA)
    writer.write_deletes(*np.array(keys, np.int64).T, 9)
    writer.close()
    directory = parse_directory("delete_delta_9_9_0000")
    found = vectors_of([Listing("", deletes=(EventFile(str(tmp_path / "file"), directory, 1),))])
    rows = [
        page << 13 | word << 6 | bit
        for (_, _, _, page), words in zip(found.pages.T.tolist(), found.words.tolist(), strict=True)
        for word, bit in itertools.product(range(128), range(64))
        if words[word] >> bit & 1
    ]
    assert sorted(rows) == sorted(key[2] for key in keys)


def test_a_file_that_is_gone_is_named(tmp_path):
    listings = one(tmp_path, (1, encode(0), 0))
    (tmp_path / "file").unlink()
    with pytest.raises(SnapshotTooOldError, match="file' is gone"):
        vectors_of(listings)


@pytest.mark.parametrize("damage", ["text", "zeros", "a half", "stripe", "footer"])
def test_a_file_that_is_damaged_is_named(tmp_path, damage):
    listings = one(tmp_path, *((1, encode(0), row * row) for row in range(3000)))
    path = tmp_path / "file"
    whole = path.read_bytes()
    path.write_bytes(
        {
            "text": b"no ORC file at all, but a text",
            "zeros": bytes(1000),
            "a half": whole[: len(whole) // 2],
            "stripe": whole[:3] + b"\xff" * 400 + whole[403:],
            "footer": whole[:-200] + b"\xff" * 150 + whole[-50:],
        }[damage]
    )
    with pytest.raises(FormatError, match="file' cannot be read"):
        vectors_of(listings)
