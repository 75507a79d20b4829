"""Parquet files of other writers: queries and compactions read them alike, or refuse them by
name."""

from __future__ import annotations

import datetime as dt
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


@pytest.mark.parametrize("day", [OLD, dt.date(1582, 10, 15)])
def test_days_that_only_hive_knows_to_be_hybrid_are_refused(acid, spark, tmp_path, day):
    file = put(tmp_path / "x", pa.table({"d": [day]}))
    columns = pq.read_table(file).replace_schema_metadata({"writer.date.proleptic": "false"})
    pq.write_table(columns, file)
    if day < dt.date(1582, 10, 15):
        with pytest.raises(AcidSqlError, match="hybrid calendar"):
            adopt(acid, tmp_path / "x", "d DATE")
        with pytest.raises(FormatError, match="hybrid calendar"):
            acidsql.read(spark, str(tmp_path / "x"), insert_only=True, file_format="parquet")
    else:
        adopt(acid, tmp_path / "x", "d DATE")
        assert table(acid) == [(day,)]


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
