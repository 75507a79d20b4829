"""Whatever is damaged in a file, every reader gets its rows, or one FormatError that names the
file.

ORC has no checksums, so a reader may also get wrong values; that cannot be prevented.
``ACIDSQL_DAMAGE=10000`` tries this number of damages instead of some hundred.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import orc

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import METADATA_FILE
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ALL_TXNS, CompactorWriteIdList, ValidWriteIdList
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.event_records import Task
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.folding.compact import CompactionRun
from acidsql.storage.folding.fold import fold_bucket
from acidsql.storage.folding.plan import plan_compaction
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events import event_dump, orc_reader
from acidsql.storage.reading.events.deletion_vectors import deletion_vectors
from acidsql.storage.reading.events.event_reader import (
    dump_file,
    flat_schema,
    plan_deletes,
    plan_reads,
    read_deletes,
    read_file,
)
from acidsql.storage.reading.pruning import inventory
from acidsql.storage.tables import file_info, orc_schema
from acidsql.storage.tables.listing import list_table
from acidsql.storage.writing import adopt, load

TRIES = int(os.environ.get("ACIDSQL_DAMAGE", "250"))
FS, SEEN = LocalFileSystem(), ValidWriteIdList(9)
COLUMNS = (
    Column("i", "int"), Column("s", "string"), Column("t", "timestamp"), Column("d", "date"),
    Column("n", "decimal(20,2)"), Column("a", "array<int>"), Column("r", "struct<x:double>"),
)  # fmt: skip
ROWS = 300
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
FILES = {
    "insert events": "delta_0000001_0000001_0000/bucket_00000",
    "delete events": "delete_delta_0000002_0000002_0000/bucket_00000",
    "originals": "000000_0",
    "streamed": "delta_0000003_0000004/bucket_00001",
    "side file": "delta_0000003_0000004/bucket_00001_flush_length",
    "marker": f"base_0000000/{METADATA_FILE}",
}


def batch():
    arrays = [
        pa.array(range(ROWS), pa.int32()),
        pa.array([f"text {n % 7}" if n % 5 else None for n in range(ROWS)]),
        pa.array([datetime(2020, 1, 1, n % 24) for n in range(ROWS)], pa.timestamp("us")),
        pa.array([date(2020, 1, 1 + n % 28) for n in range(ROWS)]),
        pa.array([Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(20, 2)),
        pa.array([[n, None] for n in range(ROWS)], pa.list_(pa.int32())),
        pa.array([{"x": n / 3} for n in range(ROWS)], pa.struct([("x", pa.float64())])),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in COLUMNS])


def make(root, codec):
    """A table with one file of each kind."""
    schema = RowSchema.from_fields((column.name, column.type) for column in COLUMNS)
    options = OrcOptions(compression=codec)

    def writer(kind):
        path = root / FILES[kind]
        path.parent.mkdir(parents=True, exist_ok=True)
        return EventFileWriter(FS.open_output(str(path)), schema, options)

    for kind, write_id, bucket in (("insert events", 1, 0), ("streamed", 3, 1)):
        events = writer(kind)
        events.write_inserts(batch(), write_id, encode(bucket, 0), 0)
        events.close()
    deletes = writer("delete events")
    keys = [[1] * 9, [encode(0, 0)] * 9, list(range(9))]
    deletes.write_deletes(*(pa.array(column, pa.int64()).to_numpy() for column in keys), 2)
    deletes.close()
    streamed = root / FILES["streamed"]
    length = streamed.stat().st_size
    (root / FILES["side file"]).write_bytes((77).to_bytes(8, "big") + length.to_bytes(8, "big"))
    with streamed.open("ab") as file:
        file.write(b"ORC and what is not committed yet")
    orc.write_table(pa.Table.from_batches([batch()]), root / FILES["originals"], compression=codec)


@pytest.fixture(scope="module", params=CODECS)
def whole(request, tmp_path_factory):
    """A table without damage, and its codec."""
    root = tmp_path_factory.mktemp(request.param)
    make(root, request.param)
    return root


def marked(root):
    """A table with one base, which has Hive 3.1's mark."""
    place = root.parent / f"{root.name}-marked"
    (place / "base_0000000").mkdir(parents=True, exist_ok=True)
    shutil.copy(root / FILES["insert events"], place / "base_0000000" / "bucket_00000")
    said = {"thisFileVersion": "0", "dataFormat": "compacted"}
    (place / FILES["marker"]).write_text(json.dumps(said))
    return place


def damage(data, dice):
    """The bytes, cut off or changed, mostly near the end, where the footer is."""
    size = len(data)
    near_end = size - 1 - min(size - 1, int(dice.expovariate(1 / 60)))
    at = dice.choice([near_end, dice.randrange(size)])
    changed = bytearray(data)
    match dice.randrange(6):
        case 0:
            return bytes(changed[:at])
        case 1:
            for _ in range(dice.randrange(1, 4)):
                changed[dice.choice([at, dice.randrange(size)])] ^= 1 << dice.randrange(8)
        case 2:
            changed[at] = dice.choice([0, 1, 0x7F, 0x80, 0xFF])
        case 3:
            changed[at : at + dice.randrange(1, 40)] = dice.randbytes(dice.randrange(1, 40))
        case 4:
            changed[at : at + 64] = bytes(len(changed[at : at + 64]))
        case _:
            changed[at : at + 12] = b"\xff" * dice.choice([5, 9, 10, 12])
    return bytes(changed)


def table_at(root):
    return Table(TableName("d", "t"), str(root), COLUMNS)


def drain(batches):
    return sum(1 for _ in batches)


def readers_of_table(root):
    """Everything that reads a table's files without Spark."""
    table = table_at(root)
    schema, names = flat_schema(table), [column.name for column in COLUMNS]

    def listings():
        return list_table(FS, str(root), [""], SEEN, ALL_TXNS)

    def live_rows():
        for read in plan_reads(listings(), SEEN):
            drain(read_file(read, schema, names, exact=True))

    def delete_events():
        for read in plan_deletes(listings()[0], SEEN):
            drain(read_deletes(read))

    def compacted():
        decided = CompactorWriteIdList.from_snapshot(SEEN)
        plan, _ = plan_compaction(FS, table, "", decided, ALL_TXNS, major=True)
        if plan is not None:
            with CompactionRun(FS, plan, 1) as work:
                for number, one in enumerate(plan.folds):
                    fold_bucket(one, work.spec, Task(number, number))

    yield live_rows
    yield delete_events
    yield lambda: deletion_vectors(listings(), SEEN, {"": 0})
    yield compacted
    yield lambda: inventory.inventory(FS, str(root), None, SEEN, ALL_TXNS)
    for directory in sorted(root.glob("*delta_*")):
        yield lambda path=str(directory): event_dump._event_files(FS, path)


def readers_of_file(path):
    """Everything that reads one file."""
    schema = flat_schema(table_at(path.parent))
    entry = next(one for one in FS.list(str(path.parent)) if one.name == path.name)
    name = str(path)
    yield lambda: file_info.read_file_info(name)
    yield lambda: orc_schema.columns_of(name)
    yield lambda: drain(orc_reader.read_batches(name))
    yield lambda: drain(orc_reader.read_events(name, schema))
    yield lambda: drain(orc_reader.read_row_ids(name))
    yield lambda: orc_reader.row_count(name)
    yield lambda: drain(dump_file(name, None, schema))
    yield lambda: load.examine([entry], COLUMNS)
    yield lambda: adopt.columns_of_originals([entry])
    yield lambda: drain(file_info.count_rows(iter([asked(name)])))


def asked(path):
    names = ["file", "path", "rows", "kind", "problem"]
    values = ["bucket_00000", path, None, "delta", None]
    arrays = [pa.array([v], pa.int64() if n == "rows" else pa.string())
              for n, v in zip(names, values, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, names=names)


def test_what_is_not_damaged_is_read(whole):
    for root in (whole, marked(whole)):
        for read in readers_of_table(root):
            read()
    reads = plan_reads(list_table(FS, str(whole), [""], SEEN, ALL_TXNS), SEEN)
    names = [column.name for column in COLUMNS]
    schema = flat_schema(table_at(whole))
    found = [sum(len(b) for b in read_file(read, schema, names)) for read in reads]
    assert found == [ROWS] * 3


def attempt(read, root):
    """Read. If the reader fails, the only error is a FormatError that names a file of the table."""
    try:
        read()
    except (FormatError, UnsupportedError) as error:
        assert str(root) in error.parameters.get("path", ""), error
        assert str(root) in error.message


@pytest.mark.parametrize("kind", FILES)
def test_any_damage_is_one_error_that_names_the_file(whole, kind):
    root = marked(whole) if kind == "marker" else whole
    path = root / FILES[kind]
    before = path.read_bytes()
    dice = random.Random(f"{whole.name} {kind}")
    try:
        for number in range(TRIES // (len(CODECS) * len(FILES)) + 1):
            path.write_bytes(damage(before, dice))
            kept = path.read_bytes()
            try:
                for read in readers_of_table(root):
                    attempt(read, root)
                if kind not in ("side file", "marker"):
                    for read in readers_of_file(path):
                        attempt(read, root)
            except Exception:
                (root.parent / f"{whole.name}-{kind}-{number}".replace(" ", "_")).write_bytes(kept)
                raise
    finally:
        path.write_bytes(before)
