"""Parquet files of other writers: queries and compactions read them alike, or refuse them by
name."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit import rows, table
from over_hive import needs

import acidsql
from acidsql.errors import AcidSqlError, FormatError
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables.parquet import read_parquet

PARQUET = "STORED AS PARQUET TBLPROPERTIES ('transactional_properties' = 'insert_only')"
OLD = dt.date(1500, 3, 1)


def put(directory: Path, columns: pa.Table, write_id: int = 1) -> Path:
    file = directory / f"delta_000000{write_id}_000000{write_id}_0000" / "000000_0"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(columns, file)
    return file


def adopt(acid, path: Path, columns: str) -> None:
    acid.sql(f"CREATE TABLE t ({columns}) LOCATION '{path}' {PARQUET}")


def test_a_delta_with_a_column_of_another_type_is_not_adopted(acid, tmp_path):
    put(tmp_path / "x", pa.table({"a": pa.array([1], pa.int32())}))
    file = put(tmp_path / "x", pa.table({"a": pa.array([1], pa.int64())}), 2)
    with pytest.raises(AcidSqlError, match="'a' is of type bigint, the table's of int") as caught:
        adopt(acid, tmp_path / "x", "a INT")
    assert caught.value.getCondition() == "LOCATION_CANNOT_BE_ADOPTED" and str(file) in str(
        caught.value
    )
    with pytest.raises(AcidSqlError, match="none of the table's"):
        adopt(acid, tmp_path / "x", "b BIGINT")
    adopt(acid, tmp_path / "x", "a BIGINT, later STRING")
    assert table(acid) == [(1, None), (1, None)]


def test_a_delta_with_instants_is_not_adopted(acid, tmp_path):
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    put(tmp_path / "x", pa.table({"w": pa.array([moment], pa.timestamp("us", "UTC"))}))
    with pytest.raises(AcidSqlError, match="wall clock"):
        adopt(acid, tmp_path / "x", "w TIMESTAMP")


@needs("can_work")
def test_days_that_spark_counted_in_the_hybrid_calendar_are_compacted_as_they_are_shown(
    acid, spark, conf, tmp_path
):
    conf("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    # Spark does not rebase a TIMESTAMP_NTZ.
    what = f"SELECT 1 id, DATE'{OLD}' d, array(DATE'0001-01-01') l, TIMESTAMP_NTZ'{OLD} 01:02:03' w"
    spark.sql(what).coalesce(1).write.parquet(str(tmp_path / "spark"))
    (file,) = (tmp_path / "spark").glob("part-*")
    place = tmp_path / "x" / "delta_0000001_0000001_0000"
    place.mkdir(parents=True)
    file.rename(place / "000000_0")
    stored = pq.read_table(place / "000000_0").column("d")[0].as_py()
    assert stored != OLD, "Spark wrote a day of the hybrid calendar"
    adopt(acid, tmp_path / "x", "id INT, d DATE, l ARRAY<DATE>, w TIMESTAMP")
    expected = [(1, OLD, [dt.date(1, 1, 1)], dt.datetime(1500, 3, 1, 1, 2, 3))]
    assert table(acid) == expected
    acid.sql("INSERT INTO t SELECT * FROM t")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert table(acid) == expected * 2


@needs("can_work")
def test_days_that_only_hive_knows_to_be_hybrid_are_shown_as_hive_means_them(acid, tmp_path):
    julian = dt.date(1500, 3, 11)  # the day that was 1500-03-01 in the Julian calendar
    for write_id, days in ((1, [julian, None]), (2, [dt.date(1582, 10, 15)])):
        file = put(tmp_path / "x", pa.table({"d": days}), write_id)
        columns = pq.read_table(file).replace_schema_metadata({"writer.date.proleptic": "false"})
        pq.write_table(columns, file)
    expected = [(OLD,), (dt.date(1582, 10, 15),), (None,)]
    found = acidsql.read(acid.spark, str(tmp_path / "x"), insert_only=True, file_format="parquet")
    assert sorted(map(tuple, found.collect()), key=repr) == sorted(expected, key=repr)
    adopt(acid, tmp_path / "x", "d DATE")
    assert table(acid) == sorted(expected, key=repr)
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert table(acid) == sorted(expected, key=repr)


# ── INT96 ────────────────────────────────────────────────────────────────────────────────────

CLOCKS = Path(__file__).parents[1] / "parquet_clocks"
SHOWN = json.loads((CLOCKS / "shown.json").read_text())
COLUMNS = "k INT, ts TIMESTAMP, d DATE, many ARRAY<TIMESTAMP>, s STRUCT<x: TIMESTAMP>"


def shown(name):
    """What the writer of a file has shown, timestamps with microseconds."""

    def clock(text):
        return text and f"{text[:19]}.{(text[20:] + '000000')[:6]}"

    return [
        (k, clock(at), day, clock(first), clock(field), size)
        for k, at, day, first, field, size in SHOWN[name]
    ]


def as_text(frame):
    """The same columns of a DataFrame."""
    pattern = "'yyyy-MM-dd HH:mm:ss.SSSSSS'"
    found = frame.selectExpr(
        "k", f"date_format(ts, {pattern})", "string(d)", f"date_format(many[0], {pattern})",
        f"date_format(s.x, {pattern})", "IF(many[1] IS NULL, size(many), -1)",
    )  # fmt: skip
    return sorted((*row[:5], None if row[1] is None else row[5]) for row in found.collect())


@needs("can_work")
@pytest.mark.parametrize("name", SHOWN)
def test_timestamps_of_hive_and_trino_are_shown_and_compacted_as_their_writers_show_them(
    acid, tmp_path, name
):
    place = tmp_path / "x" / "delta_0000001_0000001_0000"
    place.mkdir(parents=True)
    shutil.copy(CLOCKS / f"{name}.parquet", place / "000000_0")
    found = acidsql.read(acid.spark, str(tmp_path / "x"), insert_only=True, file_format="parquet")
    assert as_text(found) == shown(name)
    adopt(acid, tmp_path / "x", COLUMNS)
    assert as_text(acid.table("t")) == shown(name)
    first = shown(name)[0][1]
    assert rows(acid, f"SELECT k FROM t WHERE ts = TIMESTAMP_NTZ'{first}'") == [(0,)]
    acid.sql("INSERT INTO t VALUES (99, NULL, NULL, NULL, NULL)")  # a file that Spark reads
    assert as_text(acid.table("t").where("k < 99")) == shown(name)
    assert acid.table("t").count() == len(shown(name)) + 1
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert as_text(acid.table("t").where("k < 99")) == shown(name)


@needs("can_work")
def test_files_of_both_kinds_lie_in_partitions_beside_each_other(acid, tmp_path):
    for day, name in (("mon", "hive_berlin"), ("tue", "trino_berlin")):
        place = tmp_path / "x" / f"day={day}" / "delta_0000001_0000001_0000"
        place.mkdir(parents=True)
        shutil.copy(CLOCKS / f"{name}.parquet", place / "000000_0")
    acid.sql(
        f"CREATE TABLE t ({COLUMNS}) PARTITIONED BY (day STRING) LOCATION '{tmp_path}/x' {PARQUET}"
    )
    acid.sql("INSERT INTO t PARTITION (day = 'tue') VALUES (99, NULL, NULL, NULL, NULL)")
    for day, name in (("mon", "hive_berlin"), ("tue", "trino_berlin")):
        assert as_text(acid.table("t").where(f"day = '{day}' AND k < 99")) == shown(name)
    paths = rows(acid, "SELECT DISTINCT day, `input__file__name` FROM t WHERE k IN (1, 99)")
    assert sorted(day for day, _ in paths) == ["mon", "tue", "tue"]


def put_int96(directory, moments, **footer):
    """A file of nanoseconds since 1970, with these keys in its footer."""
    file = directory / "delta_0000001_0000001_0000" / "000000_0"
    file.parent.mkdir(parents=True)
    columns = pa.table({"w": pa.array(moments, pa.int64()).cast(pa.timestamp("ns"))})
    columns = columns.replace_schema_metadata(footer)
    pq.write_table(columns, file, use_deprecated_int96_timestamps=True)
    return file


@needs("can_work")
def test_nanoseconds_are_cut_by_a_query_and_refused_by_a_compaction(acid, tmp_path):
    moments = [0, None, -1, 1_700_000_000_123_456_789]
    put_int96(tmp_path / "x", moments, **{"writer.time.zone": "Asia/Tokyo"})
    adopt(acid, tmp_path / "x", "w TIMESTAMP")
    before = [
        ("1970-01-01 08:59:59.999999",), ("1970-01-01 09:00:00",),
        ("2023-11-15 07:13:20.123456",), (None,),
    ]  # fmt: skip
    query = "SELECT string(w) FROM t ORDER BY w NULLS LAST"
    assert rows(acid, query) == before
    acid.sql("INSERT INTO t VALUES (TIMESTAMP'2030-01-01 00:00:00')")
    with pytest.raises(AcidSqlError, match="finer than a microsecond"):
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, query) == [*before[:3], ("2030-01-01 00:00:00",), (None,)]


def test_int96_is_refused_if_nobody_knows_which_wall_clock_it_is(acid, spark, conf, tmp_path):
    conf("spark.sql.parquet.outputTimestampType", "INT96")
    spark.sql("SELECT TIMESTAMP'2024-01-01 00:00:00' w").write.parquet(str(tmp_path / "spark"))
    (file,) = (tmp_path / "spark").glob("part-*")
    place = tmp_path / "x" / "delta_0000001_0000001_0000"
    place.mkdir(parents=True)
    file.rename(place / "000000_0")
    put_int96(tmp_path / "y", [0], **{"writer.time.zone": "Middle/Earth"})
    for name, words in (("x", "does not name the time zone"), ("y", "Middle/Earth")):
        with pytest.raises(FormatError, match=words):
            acidsql.read(spark, str(tmp_path / name), insert_only=True, file_format="parquet")
        with pytest.raises(AcidSqlError, match=words):
            adopt(acid, tmp_path / name, "w TIMESTAMP")


@needs("can_work")
def test_all_types_of_arrows_for_one_of_parquets_are_compacted(acid, tmp_path):
    lists = [pa.large_list(pa.large_string()), pa.list_(pa.string(), 1)]
    kinds = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    arrays = [pa.array(["é", None, ""], kind) for kind in kinds]
    arrays += [
        pa.array([b"\xff", None, b""], kind) for kind in (pa.large_binary(), pa.binary_view())
    ]
    arrays += [pa.array([["a"], None, ["b"]], kind) for kind in lists]
    arrays += [pa.array([{"x": "a"}, None, {"x": None}], pa.struct([("x", pa.large_string())]))]
    put(tmp_path / "x", pa.table(arrays, names=list("abcdefgh")))
    columns = (
        "a STRING, b STRING, c STRING, d BINARY, e BINARY, f ARRAY<STRING>, g ARRAY<STRING>, "
        "h STRUCT<x: STRING>"
    )
    found = acidsql.read(acid.spark, str(tmp_path / "x"), insert_only=True, file_format="parquet")
    adopt(acid, tmp_path / "x", columns)
    before = table(acid)
    assert sorted(map(tuple, found.collect()), key=repr) == before
    assert [row[0] for row in before] == ["", "é", None]
    acid.sql("INSERT INTO t SELECT * FROM t")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert table(acid) == sorted(before * 2, key=repr)


ONE = dt.date(1970, 1, 2)
PAIRS = [
    (pa.array([1], pa.int8()), "bigint", 1),
    (pa.array([1], pa.int16()), "double", 1.0),
    (pa.array([1], pa.uint8()), "smallint", 1),
    (pa.array([1], pa.uint32()), "double", None),
    (pa.array([300], pa.int16()), "tinyint", None),
    (pa.array([1], pa.int64()), "double", None),
    (pa.array([1], pa.int32()), "decimal(12,2)", Decimal(1)),
    (pa.array([1], pa.int32()), "decimal(9,2)", None),
    (pa.array([1], pa.int32()), "date", None),
    (pa.array([1], pa.int32()), "string", None),
    (pa.array([0.5], pa.float32()), "double", 0.5),
    (pa.array([0.5]), "float", None),
    (pa.array([Decimal("1.5")], pa.decimal128(9, 2)), "decimal(12,4)", Decimal("1.5")),
    (pa.array([Decimal("1.5")], pa.decimal128(9, 2)), "decimal(9,4)", None),
    (pa.array([ONE]), "timestamp", dt.datetime(1970, 1, 2)),
    (pa.array([ONE]), "int", None),
    (pa.array([dt.datetime(1970, 1, 2)], pa.timestamp("ms")), "bigint", None),
    (pa.array([dt.datetime(1970, 1, 2)], pa.timestamp("us")), "date", None),
    (pa.array([b"a"]), "string", "a"),
    (pa.array([b"a"], pa.binary(1)), "string", None),
    (pa.array([[300]], pa.list_(pa.int16())), "array<tinyint>", None),
    (pa.array([[1]], pa.list_(pa.int16())), "array<int>", [1]),
    (pa.array([True]), "int", None),
]


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    PAIRS,
    ids=[f"{column.type}-{kind}" for column, kind, _ in PAIRS],
)
def test_queries_and_compactions_read_a_type_as_another_alike_or_refuse(
    spark, tmp_path, column, kind, expected
):
    file = put(tmp_path, pa.table({"c": column}))
    try:
        found = acidsql.read(
            spark, str(tmp_path), f"c {kind}", insert_only=True, file_format="parquet"
        ).first()[0]
    except FormatError as error:
        found = None
        assert "its column 'c' is of type" in str(error) and f"the table's of {kind}" in str(error)
    assert found == expected
    try:
        (batch,) = read_parquet(str(file), RowSchema.from_fields([("c", kind)]))
        assert batch.column(0)[0].as_py() == expected
    except FormatError as error:
        assert expected is None and "its column 'c' is of type" in str(error)


@needs("can_work")
def test_a_file_that_does_not_fit_is_not_called_damaged(acid, tmp_path):
    file = put(tmp_path / "x", pa.table({"id": [1], "v": ["a"]}))
    adopt(acid, tmp_path / "x", "id BIGINT, v STRING")
    acid.sql("INSERT INTO t VALUES (2, 'b')")
    put(tmp_path / "x", pa.table({"id": [1], "v": [1.5]}))
    with pytest.raises(
        FormatError, match="column 'v' is of Parquet's type DOUBLE.* string"
    ) as caught:
        acid.sql("SELECT * FROM t").collect()
    assert "damage" not in str(caught.value) and str(file) in str(caught.value)
    with pytest.raises(AcidSqlError, match="'v' is of type double, the table's of") as caught:
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert "damage" not in str(caught.value)
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,)]
