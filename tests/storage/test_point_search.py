"""The driver finds exactly the live rows for which a condition holds, as plain Python says."""

from __future__ import annotations

import datetime as dt
import tempfile
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import parse_directory
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.values.predicate import ANYTHING, And, Comparison, Not, Or, TypedValue
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import SnapshotTooOldError
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events import point_search
from acidsql.storage.reading.events.deletion_vectors import deletion_vectors
from acidsql.storage.reading.events.point_search import (
    BYTES_MAX,
    Search,
    decider,
    numbered_reads,
    search,
    searchable_condition,
)
from acidsql.storage.reading.scan import Scan
from acidsql.storage.tables.listing import EventFile, Listing, OriginalFiles

VALUES = {
    "bigint": [-(2**63), -1, 0, 1, 7, 2**63 - 1],
    "tinyint": [-128, 0, 127],
    "string": ["", "a", "ab", "b", "ü", "\ud7ff"],
    "varchar(3)": ["", "a", "abc"],
    "date": [
        dt.date(1582, 10, 16),
        dt.date(1970, 1, 1),
        dt.date(2024, 2, 29),
        dt.date(9999, 12, 31),
    ],
    "boolean": [True, False],
    "decimal(5,2)": [Decimal("-999.99"), Decimal("0.00"), Decimal("1.50")],
}
COLUMNS = tuple(Column(f"C {kind}".lower(), kind) for kind in VALUES)
TABLE = Table(TableName("default", "t"), "/nowhere", COLUMNS)
SEEN = ValidWriteIdList(9, aborted=(4,))

rows = st.lists(
    st.tuples(*(st.sampled_from([None, *values]) for values in VALUES.values())),
    min_size=1, max_size=8,
)  # fmt: skip


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


@st.composite
def comparisons(draw):
    column = draw(st.sampled_from(COLUMNS))
    kind = "string" if column.type.startswith("varchar") else column.type
    values = [TypedValue(kind, text_of(value)) for value in VALUES[column.type]]
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "in", "is null"]))
    if operator == "is null":
        return Comparison(column.name, operator)
    most = 3 if operator == "in" else 1
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True))
    return Comparison(column.name, operator, tuple(chosen))


conditions = st.recursive(
    comparisons() | comparisons().map(Not),
    lambda terms: st.lists(terms, min_size=1, max_size=3).flatmap(
        lambda some: st.sampled_from([And(tuple(some)), Or(tuple(some))])
    ),
    max_leaves=5,
)


def says(condition, row):
    """True, False or None, as in SQL."""
    match condition:
        case And(terms):
            found = [says(term, row) for term in terms]
            return False if False in found else None if None in found else True
        case Or(terms):
            found = [says(term, row) for term in terms]
            return True if True in found else None if None in found else False
        case Not(term):
            found = says(term, row)
            return None if found is None else not found
        case Comparison(name, operator, values):
            place = [column.name for column in COLUMNS].index(name)
            value = row[place]
            if operator == "is null":
                return value is None
            if value is None:
                return None
            # Texts could only be compared for equality, so the values are compared by their place
            # in order.
            texts = [text_of(one) for one in sorted(VALUES[COLUMNS[place].type])]
            at, others = texts.index(text_of(value)), [texts.index(v.text) for v in values]
            return {
                "=": at == others[0], "<": at < others[0], "<=": at <= others[0],
                ">": at > others[0], ">=": at >= others[0], "in": at in others,
            }[operator]  # fmt: skip


class Place:
    """Files of events, and the rows in them."""

    def __init__(self, root):
        self.root, self.data, self.deletes, self.live = Path(root), [], [], {}

    def write(self, write_id, written, columns=None):
        """Insert rows. An older file has only the first columns."""
        schema = RowSchema.from_fields((c.name, c.type) for c in COLUMNS[:columns])
        writer, file = self._writer(f"delta_{write_id}_{write_id}_0000", schema)
        arrays = [
            pa.array([row[i] for row in written], field.type)
            for i, field in enumerate(schema.struct)
        ]
        writer.write_inserts(
            pa.RecordBatch.from_arrays(arrays, names=list(schema.names)), write_id, encode(0), 0
        )
        writer.close()
        self.data.append(file)
        if SEEN.is_valid(write_id):
            rest = (None,) * (len(COLUMNS) - len(schema.names))
            for number, row in enumerate(written):
                self.live[write_id, encode(0), number] = (*row[:columns], *rest)

    def delete(self, write_id, keys):
        writer, file = self._writer(
            f"delete_delta_{write_id}_{write_id}_0000", RowSchema.from_fields([("a", "int")])
        )
        if keys:
            writer.write_deletes(*np.array(sorted(keys), np.int64).T, write_id)
        writer.close()
        self.deletes.append(file)
        for key in keys:
            self.live.pop(key, None)

    def _writer(self, name, schema):
        path = self.root / name
        writer = EventFileWriter(LocalFileSystem().open_output(str(path)), schema)
        return writer, EventFile(str(path), parse_directory(name), 1)

    def listing(self):
        return Listing("", tuple(self.data), tuple(self.deletes), needs_filter=True)

    def search(self, condition, limit=1000, wanted=None):
        known = searchable_condition(TABLE, [self.listing()], condition)
        assert known != ANYTHING
        deleted = deletion_vectors([self.listing()], SEEN, {"": 0})
        reads = numbered_reads([self.listing()], SEEN, {"": 0})
        ordinals = range(len(COLUMNS)) if wanted is None else wanted
        return search(reads, Search(TABLE, known, ordinals, limit, deleted))


@settings(deadline=None, max_examples=60)
@given(rows, rows, rows, st.integers(1, len(COLUMNS)), st.data())
def test_what_is_found_is_what_the_condition_holds_of(first, old, aborted, columns, data):
    with tempfile.TemporaryDirectory() as root:
        place = Place(root)
        place.write(1, old, columns)
        place.write(2, first)
        place.write(4, aborted)
        gone = data.draw(st.lists(st.sampled_from(sorted(place.live)), unique=True))
        place.delete(5, gone)
        condition = data.draw(conditions)
        wanted = data.draw(st.sets(st.sampled_from(range(len(COLUMNS)))).map(sorted))
        found = place.search(condition, wanted=wanted).to_pylist()
        shown = {tuple(row.values())[:3]: tuple(row.values())[4:] for row in found}
        assert len(shown) == len(found)
        assert shown == {
            key: tuple(row[i] for i in wanted)
            for key, row in place.live.items()
            if says(condition, row)
        }


def test_a_row_is_not_deleted_by_the_delete_events_of_another_partition(tmp_path):
    """Hive numbers rows anew in each partition, so the same row ids occur in all of them."""
    row = tuple(values[0] for values in VALUES.values())
    listings = []
    for name in ("p=1", "p=2", "p=3"):
        (tmp_path / name).mkdir()
        place = Place(tmp_path / name)
        place.write(1, [row])
        if name == "p=2":
            place.delete(5, place.live.copy())
        listings.append(replace(place.listing(), partition=name))
    numbers = Scan(TABLE, listings, SEEN).numbers
    condition = Comparison(COLUMNS[0].name, "=", (TypedValue("bigint", str(-(2**63))),))
    what = Search(TABLE, condition, [], 9, deletion_vectors(listings, SEEN, numbers))
    found = search(numbered_reads(listings, SEEN, numbers), what)
    assert found.column(3).to_pylist() == ["p=1", "p=3"]


def test_more_rows_than_the_limit_are_not_brought(tmp_path):
    place = Place(tmp_path)
    row = tuple(values[0] for values in VALUES.values())
    place.write(1, [row] * 3)
    place.write(2, [row] * 3)
    everywhere = Comparison(COLUMNS[0].name, "=", (TypedValue("bigint", str(-(2**63))),))
    assert place.search(everywhere, limit=6).num_rows == 6
    assert place.search(everywhere, limit=5) is None
    assert place.search(everywhere, limit=2) is None


def test_a_file_that_is_gone_is_named(tmp_path):
    place = Place(tmp_path)
    place.write(1, [(None,) * len(COLUMNS)])
    (tmp_path / "delta_1_1_0000").unlink()
    with pytest.raises(SnapshotTooOldError, match="delta_1_1_0000' is gone"):
        place.search(Comparison(COLUMNS[0].name, "is null"))


def test_a_file_that_arrow_cannot_read_is_left_to_spark(tmp_path):
    place = Place(tmp_path)
    place.write(1, [(None,) * len(COLUMNS)])
    (tmp_path / "delta_1_1_0000").write_bytes(b"no ORC")
    assert place.search(Comparison(COLUMNS[0].name, "is null")) is None


@pytest.mark.parametrize(
    "condition",
    [
        ANYTHING,
        Comparison("p", "=", (TypedValue("int", "1"),)),  # not a column of the files
        Comparison("C bigint".lower(), "=", (TypedValue("int", "1"),)),  # of another type
        Or((Comparison("C bigint".lower(), "is null"), Comparison("x", "is null"))),
    ],
)
def test_what_arrow_and_spark_may_decide_otherwise_is_not_searched_for(condition):
    assert searchable_condition(TABLE, [Listing("")], condition) == ANYTHING


def test_large_tables_and_files_without_row_ids_are_not_searched():
    condition = Comparison(COLUMNS[0].name, "is null")
    directory = parse_directory("base_1")
    small = Listing("", (EventFile("f", directory, BYTES_MAX),))
    assert searchable_condition(TABLE, [small], condition) == condition
    large = Listing("", (EventFile("f", directory, BYTES_MAX + 1),))
    assert searchable_condition(TABLE, [large], condition) == ANYTHING
    original = Listing("", originals=(OriginalFiles(("000000_0",)),))
    assert searchable_condition(TABLE, [original], condition) == ANYTHING


def test_not_in_of_null_is_null():
    column = {"a": pa.array([1, None], pa.int32())}
    values = (TypedValue("int", "1"), TypedValue("int", "2"))
    assert decider(Not(Comparison("a", "in", values)))(column).to_pylist() == [False, None]


# ── when it ends early ───────────────────────────────────────────────────────────────────────

READS = [(0, SimpleNamespace(size=size)) for size in [100] * 50 + [1 << 20] * 50]


def found_in_each(monkeypatch, find):
    """Lets ``find`` take the place of reading a file. Returns the sizes of the files so far."""
    sizes = []

    def in_file(_, read, __):
        sizes.append(read.size)
        time.sleep(0.001)
        return find(read)

    monkeypatch.setattr(point_search, "search_file", in_file)
    return sizes


@pytest.mark.parametrize("limits", [(25, 1 << 20), (10_000, 200)])
def test_no_more_files_are_read_when_too_much_was_found(monkeypatch, limits):
    rows, size = limits
    monkeypatch.setattr(point_search, "_FOUND_MAX", size)
    table = pa.table({"v": pa.array(range(10), pa.int64())})
    sizes = found_in_each(monkeypatch, lambda _: [table])
    assert search(READS, SimpleNamespace(schema=table.schema, limit=rows)) is None
    assert len(sizes) < 15


def test_no_more_files_are_read_if_spark_must_search_one_of_them(monkeypatch):
    sizes = found_in_each(monkeypatch, lambda read: None if read.size == 100 else [])
    schema = pa.schema([("v", pa.int64())])
    assert search(READS, SimpleNamespace(schema=schema, limit=10)) is None
    assert len(sizes) < 15


def test_no_more_files_are_read_after_an_error(monkeypatch):
    def find(read):
        if read.size == 100:
            raise SnapshotTooOldError("gone")
        return []

    sizes = found_in_each(monkeypatch, find)
    schema = pa.schema([("v", pa.int64())])
    with pytest.raises(SnapshotTooOldError):
        search(READS, SimpleNamespace(schema=schema, limit=10))
    assert len(sizes) < 15


def test_all_files_are_read_if_little_is_found(monkeypatch):
    table = pa.table({"v": pa.array([1], pa.int64())})
    sizes = found_in_each(monkeypatch, lambda _: [table])
    found = search(READS, SimpleNamespace(schema=table.schema, limit=100))
    assert len(found) == len(sizes) == 100
