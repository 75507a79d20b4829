"""Files of insert-only tables, read by pyorc, which is independent of acidsql."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyorc

from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables.file_info import read_file_info
from acidsql.storage.tables.orc_schema import columns_of
from acidsql.storage.writing.plain_file import PlainFileWriter

SCHEMA = RowSchema.from_fields(
    [
        ("id", "int"), ("c", "char(4)"), ("v", "varchar(9)"), ("d", "decimal(10,2)"), ("t", "date"),
        ("ts", "timestamp"), ("a", "array<char(2)>"), ("s", "struct<x:bigint,y:varchar(3)>"),
    ]
)  # fmt: skip
ROW = {
    "id": 1, "c": "ab", "v": "cd", "d": Decimal("1.50"), "t": date(1999, 12, 31),
    "ts": datetime(1960, 2, 3, 4, 5, 6, 700_000), "a": ["x"], "s": {"x": 5, "y": "z"},
}  # fmt: skip


def write(path, *batches, schema=SCHEMA):
    writer = PlainFileWriter(LocalFileSystem().open_output(str(path)), schema)
    for batch in batches:
        writer.write_inserts(batch, write_id=1, bucket_property=0, first_row_id=0)
    return writer.close()


def batch_of(*rows):
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA.arrow)


def test_the_users_columns_and_nothing_else_in_hives_types(tmp_path):
    nulls = dict.fromkeys(ROW)
    stats = write(tmp_path / "000000_0", batch_of(ROW, nulls), batch_of(ROW))
    with (tmp_path / "000000_0").open("rb") as file:
        reader = pyorc.Reader(file)
        assert str(reader.schema) == (
            "struct<id:int,c:char(4),v:varchar(9),d:decimal(10,2),t:date,ts:timestamp,"
            "a:array<char(2)>,s:struct<x:bigint,y:varchar(3)>>"
        )
        rows = list(reader)
    assert rows[1] == (None,) * 8
    first = (1, "ab  ", "cd", Decimal("1.50"), date(1999, 12, 31))
    assert rows[0] == rows[2]
    assert rows[0][:5] == first
    assert rows[0][6:] == (["x "], (5, "z"))
    assert (stats.rows, stats.inserts, stats.stripes) == (3, 3, 1)
    assert stats.bytes == (tmp_path / "000000_0").stat().st_size


def test_an_empty_file_has_columns_and_no_rows(tmp_path):
    assert write(tmp_path / "000000_0").rows == 0
    info = read_file_info(str(tmp_path / "000000_0"))
    assert (info.rows, info.is_acid, info.column_names) == (0, False, SCHEMA.names)
    assert columns_of(str(tmp_path / "000000_0")) == list(
        zip(SCHEMA.names, SCHEMA.types, strict=True)
    )
    with (tmp_path / "000000_0").open("rb") as file:
        assert list(pyorc.Reader(file)) == []


def test_it_says_nothing_of_events_and_that_its_days_are_gregorian(tmp_path):
    write(tmp_path / "000000_0", batch_of(ROW))
    info = read_file_info(str(tmp_path / "000000_0"))
    assert info.user_metadata == {}
    assert info.calendar == 2


def test_columns_called_like_an_events_are_the_users(tmp_path):
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
    schema = RowSchema.from_fields((name, "int") for name in names)
    batch = pa.RecordBatch.from_pylist([dict.fromkeys(names, 7)], schema=schema.arrow)
    write(tmp_path / "000000_0", batch, schema=schema)
    with (tmp_path / "000000_0").open("rb") as file:
        assert list(pyorc.Reader(file)) == [(7,) * 6]
