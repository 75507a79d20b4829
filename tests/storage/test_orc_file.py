"""Event files: read back by pyorc and pyarrow, footers included."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal, localcontext
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.orc as pa_orc
import pyorc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql.acid import event
from acidsql.acid.layout import bucket_id_of_original
from acidsql.acid.values.types import HiveType, parse_type, spark_ddl
from acidsql.errors import FormatError, WriteError
from acidsql.plan.rows.evolution import storable_type
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.orc import batches as orc_batches
from acidsql.storage.orc import event_file as orc_file
from acidsql.storage.orc.encoding import rle as orc_rle
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema, arrow_type
from acidsql.storage.reading.events import orc_reader
from acidsql.storage.reading.events.originals import original_files, read_originals
from acidsql.storage.tables import file_info

BUCKET = 536870912
COMPRESSIONS = ["none", "zlib", "snappy", "lz4", "zstd"]
UTC = ZoneInfo("UTC")  # as pyorc gives it, so that values can be compared by repr (NaN, -0.0)
EVERY_TYPE = RowSchema.from_fields(
    [
        ("operation", "boolean"),
        ("bucket", "tinyint"),
        ("row", "smallint"),
        ("rowid", "int"),
        ("with.dot", "bigint"),
        ("with space", "float"),
        ("back`quote", "double"),
        ("UPPER", "decimal(38,18)"),
        ("日本", "string"),
        ("b", "binary"),
        ("d", "date"),
        ("t", "timestamp"),
        ("c", "char(4)"),
        ("v", "varchar(7)"),
        ("a", "array<varchar(3)>"),
        ("m", "map<varchar(5),struct<x:char(2),`y.z`:array<int>>>"),
        ("s", "struct<d:decimal(5,2),t:timestamp,l:array<array<date>>>"),
    ]
)


def make_writer(path, schema, compression="zstd", *, batch_rows=orc_file.BATCH_ROWS, **options):
    chosen = OrcOptions(compression, **options)
    file = LocalFileSystem().open_output(str(path))
    return EventFileWriter(file, schema, chosen, batch_rows=batch_rows)


def make_batch(schema, rows):
    columns = [
        pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema.arrow)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


def write(path, schema, rows, compression="zstd", **options):
    writer = make_writer(path, schema, compression, **options)
    writer.write_inserts(make_batch(schema, rows), 1, BUCKET, 0)
    return writer.close()


def pyorc_rows(path):
    with open(path, "rb") as file:
        return list(pyorc.Reader(file))


def stripes_of(path):
    with open(path, "rb") as file:
        return [list(stripe) for stripe in pyorc.Reader(file).iter_stripes()]


def check_footer(path, inserts, deletes):
    """Exact key index, statistics, version, and the schema's six columns."""
    with open(path, "rb") as file:
        reader = pyorc.Reader(file)
        metadata = {key: value.decode() for key, value in reader.user_metadata.items()}
        assert list(reader.schema.fields) == list(event.EVENT_COLUMNS)
    last = [stripe[-1][1:4] for stripe in stripes_of(path)]
    assert metadata == event.footer_metadata(last, inserts, deletes)
    info = file_info.read_file_info(str(path))
    assert info.is_acid
    assert info.rows == inserts + deletes
    assert info.calendar == 2
    assert {key: value.decode() for key, value in info.user_metadata.items()} == metadata
    assert file_info.read_file_info(str(path)).stripe_rows == tuple(
        len(s) for s in stripes_of(path)
    )


EXTREMES = [
    [True, 127, 32767, 2**31 - 1, 2**63 - 1, math.inf, math.nan,
     Decimal("99999999999999999999.999999999999999999"), "日本\0", b"\0\xff",
     dt.date(9999, 12, 31), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), "日本 x", "1234567",
     ["abc", None, ""], [("k", {"x": "q", "y.z": [1, None]}), ("l", None)],
     {"d": Decimal("-999.99"), "t": dt.datetime(1, 1, 1), "l": [[dt.date(1, 1, 1)], [], None]}],
    [False, -128, -32768, -(2**31), -(2**63), -math.inf, -0.0,
     Decimal("-99999999999999999999.999999999999999999"), "", b"",
     dt.date(1, 1, 1), dt.datetime(1, 1, 1), "", "", [], [], {"d": None, "t": None, "l": None}],
    [None] * 17,
    [True, 0, 0, 0, 0, math.nan, 5e-324, Decimal(0), " ", b"x", dt.date(1582, 10, 4),
     dt.datetime(1582, 10, 15), "ab", "v ", None, None, None],
]  # fmt: skip


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_type(tmp_path, compression):
    path = tmp_path / "bucket_00000"
    stats = write(path, EVERY_TYPE, EXTREMES, compression)
    assert (stats.rows, stats.inserts, stats.deletes, stats.stripes) == (4, 4, 0, 1)
    assert stats.bytes == path.stat().st_size
    check_footer(path, 4, 0)
    with open(path, "rb") as file:
        row = pyorc.Reader(file).schema["row"]
    as_java_reads = {"back`quote": "`back``quote`"}
    assert list(row.fields) == [as_java_reads.get(name, name) for name in EVERY_TYPE.names]
    declared = "".join(str(row).split()).replace("`", "").lower()
    assert "char(4)" in declared
    assert "varchar(7)" in declared
    assert "array<varchar(3)>" in declared
    assert "map<varchar(5),struct<x:char(2),y.z:array<int>>>" in declared
    got = pyorc_rows(path)
    for number, (given_row, read) in enumerate(zip(EXTREMES, got, strict=True)):
        assert read[:5] == (0, 1, BUCKET, number, 1)
        assert repr(read[5]) == repr(as_pyorc(EVERY_TYPE, given_row))


def as_pyorc(schema, row):
    """A row as pyorc returns it."""
    nodes = [parse_type(text) for text in schema.types]
    return tuple(_plain(node, value) for node, value in zip(nodes, row, strict=True))


def _plain(node, value):
    """A value as pyorc returns it: CHAR padded, maps as dicts, structs as tuples, in UTC."""
    if value is None:
        return None
    if node.kind == "char":
        return value.ljust(node.parameters[0])
    if node.kind == "timestamp":
        return value.replace(tzinfo=UTC, fold=0)
    if node.kind == "array":
        return [_plain(node.children[0], item) for item in value]
    if node.kind == "map":
        key, item = node.children
        return {_plain(key, k): _plain(item, v) for k, v in value}
    if node.kind == "struct":
        pairs = zip(node.names, node.children, strict=True)
        return tuple(_plain(child, value[name]) for name, child in pairs)
    if node.kind == "decimal":
        with localcontext() as context:
            context.prec = 38
            return value.quantize(Decimal(1).scaleb(-node.parameters[1]))
    if node.kind == "float":
        return float(np.float32(value))
    return value


def test_deletes_have_a_null_row_of_the_whole_type(tmp_path):
    path = tmp_path / "bucket_00003"
    writer = make_writer(path, EVERY_TYPE)
    keys = [(1, BUCKET, 0), (1, BUCKET, 7), (2, BUCKET + 1, 0)]
    arrays = [pa.array([k[i] for k in keys]) for i in range(3)]
    writer.write_deletes(*(a.slice(0, 2) for a in arrays), 9)
    writer.write_deletes(*(a.slice(2).to_numpy() for a in arrays), 9)
    stats = writer.close()
    assert (stats.inserts, stats.deletes) == (0, 3)
    check_footer(path, 0, 3)
    assert pyorc_rows(path) == [(2, *key, 9, None) for key in keys]
    assert file_info.read_file_info(str(path)).row_names == EVERY_TYPE.names


def test_no_rows_at_all(tmp_path):
    path = tmp_path / "bucket_00000"
    stats = make_writer(path, EVERY_TYPE).close()
    assert (stats.rows, stats.stripes) == (0, 0)
    check_footer(path, 0, 0)
    assert file_info.read_file_info(str(path)).user_metadata[event.KEY_INDEX_KEY] == b""
    assert list(orc_reader.read_events(str(path), EVERY_TYPE)) == []


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("batch_rows", [300, 5000, 65536])
def test_the_key_index_is_exact_with_many_stripes(tmp_path, compression, batch_rows):
    schema = RowSchema.from_fields([("id", "bigint"), ("noise", "binary")])
    noise = np.random.default_rng(1).bytes
    path = tmp_path / "bucket_00000"
    writer = make_writer(path, schema, compression, stripe_size=100_000, batch_rows=batch_rows)
    at = 0
    for size in (1, 700, 0, 9000, 3):
        rows = [[i, noise(60)] for i in range(size)]
        writer.write_inserts(make_batch(schema, rows), 5, BUCKET, at)
        at += size
    stats = writer.close()
    assert stats.stripes > 2
    check_footer(path, at, 0)
    assert [row[3] for row in pyorc_rows(path)] == list(range(at))


def test_many_stripes_of_deletes(tmp_path):
    path = tmp_path / "bucket_00000"
    random = np.random.default_rng(2)
    writer = make_writer(path, EVERY_TYPE, "none", stripe_size=20_000, batch_rows=2000)
    row_ids = np.cumsum(random.integers(1, 2**40, 30_000))
    for at in range(0, 30_000, 1700):
        part = row_ids[at : at + 1700]
        writer.write_deletes(np.full(len(part), 3), np.full(len(part), BUCKET), part, 8)
    assert writer.close().stripes > 2
    check_footer(path, 0, 30_000)


def test_a_footer_larger_than_a_compression_block(tmp_path):
    schema = RowSchema.from_fields(
        [(f"a_rather_long_column_name_{i:05}", "varchar(9)") for i in range(3000)]
    )
    path = tmp_path / "bucket_00000"
    write(path, schema, [["x"] * 3000], "zlib")
    check_footer(path, 1, 0)
    assert pa_orc.ORCFile(path).read().num_rows == 1


# ── timestamps before 1970 ───────────────────────────────────────────────────────────────────

MICRO = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1)
TIMES = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)).filter(
    lambda t: not EPOCH - 999_000 * MICRO <= t < EPOCH
)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_fractions_before_1970(tmp_path, compression):
    schema = RowSchema.from_fields([("t", "timestamp"), ("l", "array<timestamp>"), ("s", "binary")])
    noise = np.random.default_rng(3).bytes
    old = [EPOCH - dt.timedelta(days=i * 37, microseconds=i * 13 + 1) for i in range(1, 3000)]
    old += [EPOCH - MICRO * 1_000_001, EPOCH - MICRO * 999_001, dt.datetime(1, 1, 1, 0, 0, 0, 1)]
    new = [EPOCH + dt.timedelta(days=i, microseconds=i) for i in range(3000)]
    rows = [[t, [t, None, t], noise(200)] for t in new + old] + [[None, None, None]] + [
        [t, [t], b"y"] for t in new
    ]  # fmt: skip
    path = tmp_path / "bucket_00000"
    writer = make_writer(path, schema, compression, stripe_size=400_000, batch_rows=1000)
    for at in range(0, len(rows), 500):
        writer.write_inserts(make_batch(schema, rows[at : at + 500]), 1, BUCKET, at)
    stats = writer.close()
    assert stats.stripes > 2
    assert stats.bytes == path.stat().st_size
    check_footer(path, len(rows), 0)
    got = [row[5] for row in pyorc_rows(path)]
    assert got == [as_pyorc(schema, row) for row in rows]


def test_no_negative_nanoseconds_reach_the_file(tmp_path):
    """pyorc reads them without an error, but Java does not. So the test reads the stream itself."""
    schema = RowSchema.from_fields([("t", "timestamp")])
    path = tmp_path / "bucket_00000"
    times = [EPOCH - MICRO * n for n in (1_500_001, 1_999_999, 1_000_001, 7_000_501)]
    write(path, schema, [[t] for t in times], "none")
    nanos = np.array([t.microsecond * 1000 << 3 for t in times])
    assert orc_rle.encode(nanos, signed=False) in path.read_bytes()
    with open(path, "rb") as file:
        assert pyorc.Reader(file).row_index_stride == 0


def test_the_second_that_orc_cannot_tell_is_refused(tmp_path):
    schema = RowSchema.from_fields([("m", "map<int,timestamp>")])
    for lost in (EPOCH - MICRO, EPOCH - 999_000 * MICRO):
        with pytest.raises(WriteError, match="1969-12-31 23:59:59"):
            write(tmp_path / "f", schema, [[[(1, lost)]]])


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=1200), st.booleans()
)
def test_integers_there_and_back(values, signed):
    array = np.array(values, dtype=np.int64)
    assert orc_rle.decode(orc_rle.encode(array, signed), signed).tolist() == values


def test_runs_of_the_specification():
    """The examples of ORC's specification, one for each kind of run."""
    assert orc_rle.decode(bytes.fromhex("0a2710"), signed=False).tolist() == [10000] * 5
    direct = orc_rle.decode(bytes.fromhex("5e035ca1ab1edeadbeef"), signed=False)
    assert direct.tolist() == [23713, 43806, 57005, 48879]
    patched = bytes.fromhex("8e132b2107d01e00147028323c46505a646e78828c96a0aab4be00c8d2dce6f0fa04")
    patched = bytes([0x8E, 0x09, 0x2B, 0x21, 0x07, 0xD0, 0x1E, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3C,
                     0x46, 0x50, 0x5A, 0xFC, 0xE8])  # fmt: skip
    assert orc_rle.decode(patched, signed=False).tolist() == [
        2030, 2000, 2020, 1000000, 2040, 2050, 2060, 2070, 2080, 2090,
    ]  # fmt: skip
    delta = bytes([0xC6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46])
    assert orc_rle.decode(delta, signed=False).tolist() == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]


# ── any types, any values ────────────────────────────────────────────────────────────────────

LEAVES = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-128, 127),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(),
    "float": st.floats(width=32),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "varchar(4)": st.text("aé日", max_size=4),
    "char(3)": st.text("aé日", max_size=3),
    "binary": st.binary(max_size=5),
    "date": st.dates(),
    "timestamp": TIMES,
    "decimal(38,18)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((int(n < 0), Decimal(abs(n)).as_tuple().digits, -18))
    ),
    "decimal(7,2)": st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: Decimal(n).scaleb(-2)),
}


@st.composite
def typed(draw, depth=2):
    """A type text, and a strategy for its values."""
    kind = draw(st.sampled_from(["leaf"] * 3 + (["array", "map", "struct"] if depth else [])))
    if kind == "leaf":
        text = draw(st.sampled_from(sorted(LEAVES)))
        return text, st.none() | LEAVES[text]
    below, values = draw(typed(depth - 1))
    if kind == "array":
        return f"array<{below}>", st.none() | st.lists(values, max_size=3)
    if kind == "map":
        pairs = st.dictionaries(st.integers(0, 9), values, max_size=3).map(
            lambda d: list(d.items())
        )
        return f"map<int,{below}>", st.none() | pairs
    other, more = draw(typed(depth - 1))
    both = st.fixed_dictionaries({"x": values, "Y z": more})
    return f"struct<x:{below},`Y z`:{other}>", st.none() | both


@st.composite
def tables(draw):
    columns = draw(st.lists(typed(), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(values for _, values in columns)), max_size=20))
    return RowSchema.from_fields([(f"c{i}", text) for i, (text, _) in enumerate(columns)]), rows


@settings(max_examples=60, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(tables(), st.sampled_from(COMPRESSIONS), st.integers(1, 7))
def test_any_table(tmp_path, table, compression, batch_rows):
    schema, rows = table
    path = tmp_path / "bucket_00000"
    writer = make_writer(path, schema, compression, batch_rows=batch_rows)
    batch = make_batch(schema, rows)
    half = len(rows) // 2
    writer.write_inserts(batch.slice(0, half), 1, BUCKET, 0)
    writer.write_inserts(batch.slice(half), 1, BUCKET, half)
    writer.close()
    check_footer(path, len(rows), 0)
    for wanted, got in zip(rows, pyorc_rows(path), strict=True):
        assert repr(got[5]) == repr(as_pyorc(schema, wanted))


# ── schemas and refusals ─────────────────────────────────────────────────────────────────────


def test_types_there_and_back():
    for text in EVERY_TYPE.types:
        assert str(parse_type(text)) == text
        assert parse_type(f" {text.upper()} ").kind == parse_type(text).kind
    assert str(parse_type("STRUCT < `a``b` : Decimal , c : INTEGER >")) == (
        "struct<`a``b`:decimal(10,0),c:int>"
    )
    assert parse_type("struct<a b:int>").names == ("a b",)


def test_spark_ddl():
    text = "struct<a:char(3),`b.c`:map<varchar(2),timestamp>>"
    assert spark_ddl(text) == "struct<a:string,`b.c`:map<string,timestamp_ntz>>"
    assert spark_ddl("array<timestamp>", timestamp="timestamp") == "array<timestamp>"


def test_a_time_zone_is_left_out_of_types_and_not_of_the_names_of_fields():
    days = HiveType("array", children=(HiveType("timestamp_ltz"),))
    names = ("timestamp_ltz", "timestamp")
    kind = HiveType("struct", children=(days, HiveType("int")), names=names)
    assert storable_type(kind) == "struct<timestamp_ltz:array<timestamp>,timestamp:int>"


@pytest.mark.parametrize(
    "text",
    ["uniontype<int,string>", "timestamp with local time zone", "array<timestamp with time zone>",
     "interval_day_time", "interval year to month", "void", "variant"],
)  # fmt: skip
def test_types_refused_by_name(text):
    with pytest.raises(FormatError, match="is not supported") as caught:
        arrow_type(text)
    assert caught.value.getSqlState() == "0A000"


@pytest.mark.parametrize(
    "text",
    ["", "foo", "array<int", "array<>", "map<int>", "struct<>", "struct<a>", "char", "char(0)",
     "char(256)", "varchar(65536)", "decimal(39,1)", "decimal(2,3)", "int int", "struct<`a:int>"],
)  # fmt: skip
def test_text_that_is_no_type(text):
    with pytest.raises(FormatError):
        parse_type(text)


def test_a_schema_pickles_small():
    arrow = EVERY_TYPE.arrow  # fills the cache
    copy = pickle.loads(pickle.dumps(EVERY_TYPE))
    assert copy == EVERY_TYPE
    assert copy.arrow == arrow
    assert len(pickle.dumps(EVERY_TYPE)) < 1000


def test_what_does_not_fit_is_refused(tmp_path):
    schema = RowSchema.from_fields([("n", "tinyint")])
    writer = make_writer(tmp_path / "f", schema)
    batch = pa.RecordBatch.from_arrays([pa.array([300])], names=["n"])
    with pytest.raises(WriteError, match="column 'n'"):
        writer.write_inserts(batch, 1, BUCKET, 0)
    two = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1])], names=["n", "m"])
    with pytest.raises(WriteError, match="2 columns given for 1"):
        writer.write_inserts(two, 1, BUCKET, 0)
    zoned = pa.RecordBatch.from_arrays([pa.array([1], pa.timestamp("us", "UTC"))], names=["n"])
    with pytest.raises(WriteError, match="zone"):
        writer.write_inserts(zoned, 1, BUCKET, 0)
    writer.abort()


def test_what_is_no_orc_file(tmp_path):
    path = tmp_path / "x"
    for data in (b"ORC", b"text", b"x" * 300):
        path.write_bytes(data)
        with pytest.raises(FormatError):
            file_info.read_file_info(str(path))
    path.write_bytes(b"")
    assert file_info.read_file_info(str(path)).rows == 0


# ── reading ──────────────────────────────────────────────────────────────────────────────────

PLAIN = RowSchema.from_fields(
    [("id", "bigint"), ("d", "date"), ("l", "array<struct<a:int,b:string>>")]
)


@pytest.mark.parametrize("at_once", [0, 1 << 20])
def test_a_file_ends_where_its_side_file_says(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(orc_batches, "READ_WHOLE", at_once)
    path = tmp_path / "bucket_00000"
    schema = RowSchema.from_fields([("id", "int")])
    write(path, schema, [[1], [2]])
    length = path.stat().st_size
    with open(path, "ab") as file:
        file.write(b"a stripe that is not complete")
    with pytest.raises(FormatError):
        file_info.read_file_info(str(path))
    assert file_info.read_file_info(str(path), length).rows == 2
    batches = list(orc_reader.read_events(str(path), schema, length))
    assert pa.Table.from_batches(batches).to_pylist() == [
        {
            "originalTransaction": 1,
            "bucket": BUCKET,
            "rowId": i,
            "currentTransaction": 1,
            "id": i + 1,
        }
        for i in range(2)
    ]


def test_read_events_leaves_out_the_other_kind(tmp_path):
    path, schema = tmp_path / "bucket_00000", RowSchema.from_fields([("id", "int")])
    writer = make_writer(path, schema)
    writer.write_deletes([1], [BUCKET], [4], 2)
    writer.close()
    assert sum(b.num_rows for b in orc_reader.read_events(str(path), schema)) == 0
    deletes = list(orc_reader.read_row_ids(str(path)))
    assert deletes[0].to_pylist()[0]["rowId"] == 4


def write_plain(path: Path, types: str, rows):
    with open(path, "wb") as file, pyorc.Writer(file, types) as writer:
        writer.writerows(rows)


def test_originals_are_numbered_as_in_hive(tmp_path):
    """The example of hive-format §7."""
    rows = {
        "000000_0": 2,
        "000000_0_copy_1": 1,
        "HIVE_UNION_SUBDIR_15/000000_0": 2,
        "HIVE_UNION_SUBDIR_16/000000_0": 1,
        "000001_0": 1,
        "HIVE_UNION_SUBDIR_16/000001_0": 1,
        "000002_0": 0,
    }
    for name, count in rows.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_plain(tmp_path / name, "struct<id:int>", [(i,) for i in range(count)])
    files = original_files([str(tmp_path / name) for name in reversed(rows)])
    found = {
        f.path.removeprefix(f"{tmp_path}/"): (f.bucket_property, f.first_row_id, f.rows)
        for f in files
    }
    assert found == {
        "000000_0": (536870912, 0, 2),
        "000000_0_copy_1": (536870912, 2, 1),
        "HIVE_UNION_SUBDIR_15/000000_0": (536870912, 3, 2),
        "HIVE_UNION_SUBDIR_16/000000_0": (536870912, 5, 1),
        "000001_0": (536936448, 0, 1),
        "HIVE_UNION_SUBDIR_16/000001_0": (536936448, 1, 1),
    }


def test_originals_take_the_tables_types_by_position(tmp_path):
    path = tmp_path / "000001_0_copy_3"
    # Fewer fields than in the table, also within structs; narrower types; days of the hybrid
    # calendar.
    write_plain(path, "struct<_col0:int,_col1:date,_col2:array<struct<z:int,a:tinyint>>>",
                [(7, dt.date(1582, 10, 4), [(9, 1), None]), (None, None, None)])  # fmt: skip
    schema = RowSchema.from_fields(
        [*zip(PLAIN.names, PLAIN.types, strict=True), ("new", "timestamp")]
    )
    (file,) = original_files([str(path)], write_id=4, statement_id=2)
    (batch,) = read_originals(file, schema)
    assert batch.schema.types[4:] == schema.arrow.types
    key = {"originalTransaction": 4, "bucket": 536936450, "currentTransaction": 4}
    # pyorc writes proleptic days. Hive 4 takes this 1582-10-04 for the Julian 1582-09-24, and shows
    # that.
    assert batch.to_pylist() == [
        {**key, "rowId": 0, "id": 7, "d": dt.date(1582, 9, 24),
         "l": [{"a": 1, "b": None}, None], "new": None},
        {**key, "rowId": 1, "id": None, "d": None, "l": None, "new": None},
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["part-00000-abc.orc", "bucket_00000", "x", "000000"])
def test_a_name_without_a_bucket_id(name):
    with pytest.raises(FormatError, match="bucket id"):
        bucket_id_of_original(f"/t/{name}")


def test_what_lies_behind_nulls_is_not_written(tmp_path):
    """Arrow leaves values under nulls undefined. Its ORC writer would store them and shift the
    others."""
    schema = RowSchema.from_fields([("s", "struct<x:bigint,l:array<int>>"), ("m", "map<int,int>")])
    one = pa.array([None, True, None, True])
    hidden = one.is_null()
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 4, 5], pa.int32()), pa.array([9, 1, 9, 9, 2], pa.int32())
    )
    structs = pa.StructArray.from_arrays(
        [pa.array([9, 1, 9, 2]), lists], fields=list(schema.arrow.field(0).type), mask=hidden
    )
    maps = pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 3, 4], pa.int32()), pa.array([9, 1, 9, 2], pa.int32()),
        pa.array([9, 1, 9, 2], pa.int32()), mask=hidden,
    )  # fmt: skip
    path = tmp_path / "bucket_00000"
    writer = make_writer(path, schema)
    writer.write_inserts(
        pa.RecordBatch.from_arrays([structs, maps], names=["s", "m"]), 1, BUCKET, 0
    )
    writer.close()
    assert [row[5] for row in pyorc_rows(path)] == [
        (None, None), ((1, [1]), {1: 1}), (None, None), ((2, [2]), {2: 2}),
    ]  # fmt: skip


@pytest.mark.parametrize("offset", [-7, 5, 2**31 - 1])
def test_empty_lists_of_lists_and_maps_may_have_any_offset(tmp_path, offset):
    """Arrow need not set the one offset of an array without values; Spark 4.1 does not set it."""
    schema = RowSchema.from_fields([("l", "array<array<int>>"), ("m", "array<map<int,int>>")])
    undefined = [None, pa.py_buffer(np.array([offset], np.int32).tobytes())]
    numbers = pa.array([], pa.int32())
    pairs = pa.StructArray.from_arrays([numbers, numbers], ["key", "value"])
    entries = pa.map_(pa.int32(), pa.int32())
    inner = [
        pa.Array.from_buffers(pa.list_(pa.int32()), 0, undefined, children=[numbers]),
        pa.Array.from_buffers(entries, 0, undefined, children=[pairs]),
    ]
    columns = [pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), part) for part in inner]
    path = tmp_path / "bucket_00000"
    writer = make_writer(path, schema)
    writer.write_inserts(pa.RecordBatch.from_arrays(columns, names=["l", "m"]), 1, BUCKET, 0)
    writer.close()
    assert [row[5] for row in pyorc_rows(path)] == [([], []), ([], [])]


def test_a_value_that_does_not_fit_the_tables_type(tmp_path):
    path = tmp_path / "000000_0"
    write_plain(path, "struct<n:int>", [(300,)])
    (file,) = original_files([str(path)])
    with pytest.raises(FormatError, match="column 'x'"):
        list(read_originals(file, RowSchema.from_fields([("x", "tinyint")])))
