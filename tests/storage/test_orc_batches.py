"""Files of other writers that Arrow alone cannot read: time zones, far timestamps, large
stripes."""

from __future__ import annotations

import datetime as dt
import random
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyorc
import pytest
from pyarrow import orc

from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.files.filesystem import (
    ArrowFileSystem,
    LocalFileSystem,
    wrap_filesystems,
)
from acidsql.storage.orc import batches as orc_batches
from acidsql.storage.orc.encoding import rle as orc_rle
from acidsql.storage.orc.encoding.zones import zone_of
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.orc_reader import read_batches
from acidsql.storage.reading.events.originals import original_files, read_originals
from acidsql.storage.writing.plain_file import PlainFileWriter

ZONES = [
    "US/Pacific", "America/New_York", "America/St_Johns", "Asia/Tokyo", "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "Africa/Monrovia",  # seconds in its offset, until 1972
    "Pacific/Apia",  # skipped a day
    "Europe/Dublin",  # its daylight saving is in winter
    "UTC", "Etc/GMT+5",
]  # fmt: skip
# The rules of other zones may change, and Java and Python do not learn of it at the same time.
STEADY = {"Asia/Tokyo", "Asia/Kolkata", "Africa/Monrovia", "UTC", "Etc/GMT+5"}
BEFORE_AND_AFTER = {-2_208_988_800, 4_102_444_800, 32_503_680_000}  # 1900, 2100, 3000
FRACTIONS = (0, 999_000, 1_000_000, 500_000_000, 999_999_000)  # nanoseconds
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class AsStored:
    """Timestamps as seconds since 1970 and nanoseconds."""

    from_orc = None

    @staticmethod
    def to_orc(value, _):
        return value


def write_plain(path, types, rows, zone="UTC"):
    converters = {pyorc.TypeKind.TIMESTAMP: AsStored}
    with (
        open(path, "wb") as file,
        pyorc.Writer(file, types, timezone=ZoneInfo(zone), converters=converters) as writer,
    ):
        writer.writerows(rows)


def moments_of(zone):
    """Moments around 1970, around 1970 as a wall clock, around each change of the clocks, and
    others."""
    rules = ZoneInfo(zone)

    def offset(at):
        return dt.datetime.fromtimestamp(at, rules).utcoffset().total_seconds()

    found = {0, 1_420_070_400} | (BEFORE_AND_AFTER if zone in STEADY else set())
    week = 7 * 86_400
    # A year of the war, the years around 1970, and recent ones.
    for year in (1942, 1945, 1967, 1969, 1970, 1971, 2011, 2024):
        start = int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp())
        for low in range(start, start + 53 * week, week):
            high = low + week
            if offset(low) != offset(high):
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if offset(middle) != offset(low) else (middle, high)
                found.add(high)
    found |= {int(sign * offset(0)) for sign in (1, -1)}
    return sorted({at + by for at in found for by in (-3601, -3600, -2, -1, 0, 1, 3599, 3600)})


def micros_of(path):
    found = [batch.column(1).cast(pa.int64()) for batch, _ in read_batches(str(path))]
    return pa.chunked_array(found).to_pylist()


@pytest.mark.spark
def test_timestamps_of_other_zones_are_what_spark_reads(spark, tmp_path):
    own = {}
    for number, zone in enumerate(ZONES):
        values = [(at, nanos) for at in moments_of(zone) for nanos in FRACTIONS]
        path = tmp_path / f"{number}.orc"
        rows = [(number * 100_000 + i, value) for i, value in enumerate(values)]
        write_plain(path, "struct<id:bigint,t:timestamp>", rows, zone)
        own |= zip((row[0] for row in rows), micros_of(path), strict=True)
    read = spark.read.schema("id bigint, t timestamp").orc(str(tmp_path))
    sparks = {row.id: row.t for row in read.selectExpr("id", "unix_micros(t) AS t").collect()}
    assert {i: own[i] for i in own if own[i] != sparks[i]} == {}


def test_a_fraction_around_the_epoch_is_not_a_second_off(tmp_path):
    path = tmp_path / "000000_0"
    wall_clocks = {"US/Pacific": "1969-12-31 16:00:08.451", "Asia/Tokyo": "1970-01-01 03:00:00.5"}
    for zone, text in wall_clocks.items():
        clock = dt.datetime.fromisoformat(text)
        at = clock.replace(tzinfo=ZoneInfo(zone)).timestamp()
        stored = (int(at // 1), clock.microsecond * 1000)
        write_plain(path, "struct<id:int,t:timestamp>", [(1, stored)], zone)
        assert micros_of(path) == [(clock.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(0, 0, 1)]


def test_zones_that_java_names_in_its_own_way():
    at = np.array([0], np.int64)
    for name, hours in (("GMT-08:00", -8), ("GMT+5:30", 5.5), ("UTC+02", 2), ("", 0), ("Z", 0)):
        assert zone_of(name).offsets(at).tolist() == [hours * 3600]
    for name in ("Middle/Earth", "../UTC", "\0", "US"):
        with pytest.raises(FormatError, match="time zone"):
            zone_of(name)


@pytest.mark.parametrize("name", [*ZONES, "Europe/Berlin", "Europe/London"])
def test_with_mean_time_a_zone_has_its_own_offsets_before_1900_too(name):
    dice = random.Random(name)
    at = [dice.randrange(-9_000_000_000, 8_000_000_000) for _ in range(200)]
    expected = [
        dt.datetime.fromtimestamp(second, ZoneInfo(name)).utcoffset().total_seconds()
        for second in at
    ]
    offsets = zone_of(name).offsets(np.array(at, np.int64), has_mean_time=True)
    assert offsets.tolist() == expected


FAR = RowSchema.from_fields(
    [("t", "timestamp"), ("s", "string"), ("m", "map<array<int>,string>"),
     ("n", "array<struct<s:string,t:timestamp>>")]
)  # fmt: skip
# The shift of the calendar, in microseconds.
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def written(path, schema, columns):
    file = LocalFileSystem().open_output(str(path))
    writer = PlainFileWriter(file, schema)
    batch = pa.RecordBatch.from_arrays(columns, schema=schema.arrow)
    writer.write_inserts(batch, 0, 0, 0)
    return writer.close()


def test_a_far_timestamp_beside_what_is_no_text_or_has_lists_for_keys(tmp_path):
    """pyorc fails on these columns, and Arrow's ORC reader on the timestamp."""
    path = tmp_path / "000000_0"
    no_text = pa.array([b"\xff\xfe", b"plain", None]).view(pa.string())
    maps = [[([1, 2], "x")], [], None]
    inner = pa.StructArray.from_arrays(
        [
            pa.array([b"\x80", None, None, b""]).view(pa.string()),
            pa.array([FIRST, None, None, 9_000_000], pa.timestamp("us")),
        ],
        fields=list(FAR.struct.field("n").type.value_type),
        mask=pa.array([False, True, False, False]),
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 3, None, 4], pa.int32()), inner)
    columns = [
        pa.array([LAST, None, 5_000_000], pa.timestamp("us")), no_text,
        pa.array(maps, FAR.struct.field("m").type), lists,
    ]  # fmt: skip
    written(path, FAR, columns)
    with open(path, "rb") as file, pytest.raises(UnicodeDecodeError):
        list(pyorc.Reader(file, column_names=["s"]))
    with pytest.raises(pa.ArrowException):
        orc.read_table(path, columns=["t"])
    (batch,) = read_originals(original_files([str(path)])[0], FAR, exact=True)
    for name, column in zip(FAR.names, columns, strict=True):
        assert batch.column(name).equals(column), name


def test_what_is_finer_than_a_microsecond_is_refused_where_it_would_be_written_again(tmp_path):
    path = tmp_path / "000000_0"
    write_plain(path, "struct<i:int,t:timestamp>", [(1, (5, 1001)), (2, (-5, 999_999_999))])
    assert micros_of(path) == [5_000_001, -4_000_001]
    with pytest.raises(UnsupportedError, match="finer"):
        list(read_batches(str(path), exact=True))


def test_columns_and_fields_may_have_any_names(tmp_path):
    path = tmp_path / "000000_0"
    names = ["a", "A", "a.b", "c0", " ", "日本"]
    arrays = [pa.array([i, None]) for i in range(len(names) - 1)]
    arrays.append(pa.array([{"x.y": 1, "c1": 2}, None]))
    orc.write_table(pa.Table.from_arrays(arrays, names=names), path)
    ((batch, _),) = read_batches(str(path))
    assert batch.schema.names == names
    assert batch.to_struct_array().field(5).to_pylist() == [{"x.y": 1, "c1": 2}, None]
    assert [column.to_pylist() for column in batch.columns[:5]] == [[i, None] for i in range(5)]


@pytest.mark.parametrize(
    ("at_once", "files"),
    [
        (0, LocalFileSystem()),
        (0, ArrowFileSystem(pafs.LocalFileSystem())),  # in blocks
        (1 << 20, LocalFileSystem()),
    ],
)
def test_a_stripe_is_read_in_batches_by_what_its_texts_weigh(tmp_path, monkeypatch, at_once, files):
    monkeypatch.setattr(orc_batches, "READ_WHOLE", at_once)
    monkeypatch.setattr(orc_batches, "_BLOCK", 1000)
    monkeypatch.setattr(orc_batches, "_BLOCKS_KEPT", 2)
    monkeypatch.setattr(orc_batches, "BATCH_BYTES", 100_000)
    schema = RowSchema.from_fields([("s", "string"), ("t", "timestamp"), ("l", "array<timestamp>")])
    moments = pa.array([None if i % 7 == 0 else i * 1_000_001 for i in range(5000)], pa.int64())
    moments = moments.cast(pa.timestamp("us"))
    lists = pa.ListArray.from_arrays(pa.array(range(5001), pa.int32()), moments)
    columns = [pa.array(["x" * 1000] * 5000), moments, lists]
    stats = written(tmp_path / "000000_0", schema, columns)
    assert stats.stripes == 1
    with wrap_filesystems(lambda _: files):
        batches = [batch for batch, _ in read_batches(str(tmp_path / "000000_0"))]
    assert max(batch.nbytes for batch in batches) < 200_000
    for i, column in enumerate(columns):
        assert pa.chunked_array([batch.column(i) for batch in batches]).combine_chunks() == (
            pa.chunked_array([column]).combine_chunks()
        )


def test_runs_of_integers_as_hive_0_11_wrote_them():
    """The examples of the specification, with both signs."""
    old = orc_rle.decode_old
    assert old(b"\x61\x00\x07", signed=False).tolist() == [7] * 100
    assert old(b"\x61\xff\x64", signed=False).tolist() == list(range(100, 0, -1))
    assert old(b"\xfb\x02\x03\x06\x07\x0b", signed=False).tolist() == [2, 3, 6, 7, 11]
    assert old(b"\xfe\x01\x02\x00\x01\x03", signed=True).tolist() == [-1, 1, -2, -1, 0]
    with pytest.raises(FormatError):
        old(b"\xfb\x02", signed=False)
