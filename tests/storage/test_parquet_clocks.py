"""INT96 timestamps of Parquet files, as a compaction reads them: files of Hive and of Trino."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables.parquet import columns_of_parquet, misread_by_spark, read_parquet

CLOCKS = Path(__file__).parents[1] / "parquet_clocks"
SHOWN = json.loads((CLOCKS / "shown.json").read_text())
COLUMNS = {
    "k": "int", "ts": "timestamp", "d": "date", "many": "array<timestamp>",
    "s": "struct<x:timestamp>",
}  # fmt: skip
ROW = RowSchema.from_fields(COLUMNS.items())
YEAR_9999 = 253_402_300_799_999_999  # the last microsecond


def with_micros(text):
    """A text of a timestamp with six digits after the point."""
    return text and f"{text[:19]}.{(text[20:] + '000000')[:6]}"


@pytest.mark.parametrize("name", SHOWN)
def test_a_file_has_the_wall_clocks_and_days_that_its_writer_has_shown(name):
    path = str(CLOCKS / f"{name}.parquet")
    rows = pa.Table.from_batches(list(read_parquet(path, ROW, exact=True)))
    first = pc.list_element(rows.column("many"), 0)
    columns = (rows.column("ts"), rows.column("d"), first, pc.struct_field(rows.column("s"), "x"))
    texts = [pc.cast(column, pa.string()).to_pylist() for column in columns]
    expected = [
        (k, with_micros(at), day, with_micros(in_list), with_micros(field))
        for k, at, day, in_list, field, _ in SHOWN[name]
    ]
    assert sorted(zip(rows.column("k").to_pylist(), *texts, strict=True)) == expected
    assert misread_by_spark([path]) == {path}
    assert dict(columns_of_parquet(path)) == COLUMNS


def write(path, columns, footer):
    """A file with INT96 timestamps, which Arrow writes."""
    table = pa.table(columns).replace_schema_metadata(footer)
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    return str(path)


ROW_OF_W = RowSchema.from_fields([("w", "timestamp"), ("l", "array<timestamp>")])


def lists(moments, unit):
    kind = pa.timestamp(unit)
    return {
        "w": pa.array([moments[0]], pa.int64()).cast(kind),
        "l": pa.array([moments[1:]], pa.list_(pa.int64())).cast(pa.list_(kind)),
    }


@pytest.mark.parametrize("moments", [[1, None, 0], [0, None, -1], [0, 1_700_000_000_000_000_999]])
def test_a_timestamp_finer_than_a_microsecond_is_refused_if_rows_are_written_again(
    tmp_path, moments
):
    path = write(tmp_path / "f", lists(moments, "ns"), {"writer.time.zone": "UTC"})
    list(read_parquet(path, ROW_OF_W))
    with pytest.raises(UnsupportedError, match="finer than a microsecond"):
        list(read_parquet(path, ROW_OF_W, exact=True))


def test_years_that_do_not_fit_into_nanoseconds_are_no_reason_to_refuse(tmp_path):
    moments = [YEAR_9999, -62_135_596_800_000_000, None, -15_000_000_000_000_001]
    path = write(tmp_path / "f", lists(moments, "us"), {"writer.time.zone": "UTC"})
    (batch,) = read_parquet(path, ROW_OF_W, exact=True)
    values = [batch.column("w")[0].value, *(m.value for m in batch.column("l")[0])]
    assert values == moments


def test_without_a_zone_the_wall_clocks_are_those_of_utc_unless_java_wrote_the_file(tmp_path):
    path = write(tmp_path / "f", lists([0, -1], "us"), {})
    (batch,) = read_parquet(path, ROW_OF_W)
    assert batch.column("w")[0].value == 0
    data = Path(path).read_bytes()
    assert data.count(b"parquet-cpp-arrow") == 1
    Path(path).write_bytes(data.replace(b"parquet-cpp-arrow", b"parquet-mr of old"))
    with pytest.raises(FormatError, match="does not name the time zone"):
        list(read_parquet(path, ROW_OF_W))


def test_a_zone_that_nobody_knows_is_an_error_that_names_file_and_zone(tmp_path):
    path = write(tmp_path / "f", lists([0, 1], "us"), {"writer.time.zone": "Middle/Earth"})
    with pytest.raises(FormatError, match="Middle/Earth") as caught:
        misread_by_spark([path])
    assert path in str(caught.value) and "damage" not in str(caught.value)
