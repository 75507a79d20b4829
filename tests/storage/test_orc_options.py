"""A table's ``orc.…`` properties: their meaning, and the files that are written with them."""

from __future__ import annotations

import datetime as dt
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyorc
import pytest

from acidsql.errors import SettingError
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.options import OrcOptions, check_bloom_filter_columns
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables.file_info import read_file_info

BUCKET = 536870912
SCHEMA = RowSchema.from_fields(
    [
        ("id", "int"),
        ("s", "struct<a:bigint,f:struct<x:string,y:boolean>>"),
        ("m", "map<string,int>"),
        ("name", "string"),
    ]
)
# 0 root, 1–5 the event columns, 6 row, 7 id, 8 s, 9 a, 10 f, 11 x, 12 y, 13 m, 14–15, 16 name


def write(path, options, rows=20_000, batch_rows=1000):
    writer = EventFileWriter(
        LocalFileSystem().open_output(str(path)), SCHEMA, options, batch_rows=batch_rows
    )
    inner = {"a": 1, "f": {"x": "x", "y": True}}
    columns = [
        pa.array(np.arange(rows, dtype=np.int32)),
        pa.array([inner] * rows, SCHEMA.arrow.field("s").type),
        pa.array([[("k", 1)]] * rows, SCHEMA.arrow.field("m").type),
        pa.array([f"name {number * 7919 % 100_003}" for number in range(rows)]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=SCHEMA.names)
    for start in range(0, rows, batch_rows):
        part = batch.slice(start, batch_rows)
        writer.write_inserts(part, 1, BUCKET, start)
    writer.close()
    return opened(path)


def opened(path):
    return pyorc.Reader(BytesIO(path.read_bytes()))


def bloom_filters(reader):
    return [set(stripe.bloom_filter_columns) for stripe in reader.iter_stripes()]


def test_properties_of_others_are_passed_over():
    assert OrcOptions.from_properties({"transactional": "true", "made.by": "hand"}) == OrcOptions()
    assert OrcOptions.from_properties({"orc.block.padding": "false"}) == OrcOptions()


def test_every_property_is_read():
    assert OrcOptions.from_properties(
        {
            "orc.compress": "SNAPPY",
            "orc.stripe.size": "1000",
            "orc.compress.size": "262144",
            "orc.row.index.stride": "5000",
            "orc.bloom.filter.columns": "Id, s.f.x",
            "orc.bloom.filter.fpp": "0.25",
        }
    ) == OrcOptions("snappy", 1000, 262144, 5000, ("Id", "s.f.x"), 0.25)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("orc.compress", "brotli", "'brotli' is none of ZSTD, ZLIB, SNAPPY, LZ4, NONE"),
        ("orc.compress", "lzo", "none of"),
        ("orc.compress", "", "none of"),
        ("orc.stripe.size", "64MB", "no whole number from 1 to 2147483647"),
        ("orc.stripe.size", "-1", "no whole number"),
        ("orc.stripe.size", "0", "no whole number"),
        ("orc.compress.size", "8388608", "no whole number from 1 to 8388607"),
        ("orc.row.index.stride", "999", "from 1000 to 10000000, or 0 for none"),
        ("orc.create.index", "yes", "none of TRUE, FALSE"),
        ("orc.bloom.filter.fpp", "1", "no number between 0 and 1"),
        ("orc.bloom.filter.fpp", "nan", "no number between 0 and 1"),
        ("orc.bloom.filter.fpp", "low", "no number between 0 and 1"),
        ("orc.compres", "zlib", "no such property; did you mean orc.compress?"),
        ("ORC.COMPRESS", "zlib", "did you mean orc.compress?"),
        ("orc.encrypt", "pii:ssn", "cannot be encrypted"),
    ],
)
def test_what_orc_does_not_know_is_refused(key, value, words):
    with pytest.raises(SettingError, match=words) as caught:
        OrcOptions.from_properties({key: value})
    assert caught.value.parameters["key"] == key


@pytest.mark.parametrize(
    ("columns", "words"),
    [("nope", "'nope' is none"), ("id,s.f.y", "'s.f.y' is BOOLEAN"), ("s.b", "'s.b' is none")],
)
def test_a_bloom_filter_needs_a_column(columns, words):
    options = OrcOptions.from_properties({"orc.bloom.filter.columns": columns})
    with pytest.raises(SettingError, match=words):
        check_bloom_filter_columns(options, SCHEMA.hive)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ("id", {7}),
        ("NAME,id", {7, 16}),
        ("s", {9, 11}),  # the columns below it, without the boolean
        ("s.f.x", {11}),
        ("m", {14, 15}),
        ("gone", set()),
    ],
)
def test_a_bloom_filter_is_on_the_column_that_was_meant(tmp_path, columns, wanted):
    options = OrcOptions.from_properties({"orc.bloom.filter.columns": columns})
    reader = write(tmp_path / "f", options, rows=2000)
    assert bloom_filters(reader) == [wanted]


def test_names_have_the_numbers_that_pyorc_gives_them(tmp_path):
    reader = write(tmp_path / "f", OrcOptions(), rows=10)
    for name in ("id", "s.a", "s.f.x", "name"):
        found = OrcOptions(bloom_filter_columns=(name,)).bloom_filter_ids(SCHEMA.hive, 6)
        assert found == {reader.schema.find_column_id(f"row.{name}")}


def test_stripes_blocks_and_strides_are_as_wide_as_was_said(tmp_path):
    options = OrcOptions.from_properties(
        {
            "orc.stripe.size": "20000",
            "orc.compress": "zlib",
            "orc.compress.size": "8192",
            "orc.row.index.stride": "2000",
        }
    )
    reader = write(tmp_path / "f", options)
    assert reader.num_of_stripes > 2
    assert reader.row_index_stride == 2000
    assert reader.compression == pyorc.CompressionKind.ZLIB
    assert reader.compression_block_size == 65536  # the smallest that the writer makes
    wide = write(
        tmp_path / "g", OrcOptions.from_properties({"orc.compress.size": "8388607"}), rows=10
    )
    assert wide.compression_block_size == 8323072
    assert len(list(wide)) == 10


@pytest.mark.parametrize(
    "properties", [{"orc.row.index.stride": "0"}, {"orc.create.index": "FALSE"}]
)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_without_indexes_there_are_none(tmp_path, properties, compression):
    given = {"orc.compress": compression, "orc.bloom.filter.columns": "id", **properties}
    options = OrcOptions.from_properties({**given, "orc.stripe.size": "20000"})
    reader = write(tmp_path / "f", options)
    assert reader.row_index_stride == 0
    assert all(not columns for columns in bloom_filters(reader))
    info = read_file_info(str(tmp_path / "f"))
    ends = np.cumsum(info.stripe_rows) - 1
    assert len(ends) >= 2
    index = "".join(f"1,{BUCKET},{end};" for end in ends)
    assert info.user_metadata["hive.acid.key.index"].decode() == index
    reader = opened(tmp_path / "f")
    assert [row[3] for row in reader] == list(range(20_000))


def test_timestamps_that_are_mended_may_have_a_bloom_filter_too(tmp_path):
    schema = RowSchema.from_fields([("t", "timestamp"), ("n", "int")])
    options = OrcOptions(bloom_filter_columns=("t", "n"))
    file = LocalFileSystem().open_output(str(tmp_path / "f"))
    writer = EventFileWriter(file, schema, options)
    times = [dt.datetime(1950, 1, 1, 0, 0, 0, 500_000), dt.datetime(2000, 1, 1)]
    arrays = [pa.array(times, pa.timestamp("us")), pa.array([1, 2], pa.int32())]
    writer.write_inserts(pa.RecordBatch.from_arrays(arrays, names=["t", "n"]), 1, BUCKET, 0)
    writer.close()
    reader = opened(tmp_path / "f")
    assert bloom_filters(reader) == [set()]
    assert [row[5][1] for row in reader] == [1, 2]
