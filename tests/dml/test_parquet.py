"""Insert-only tables with Parquet files: written, read, compacted, and distinguished from ORC."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit import counts, directories, refused, rows, table
from over_hive import needs

import acidsql
from acidsql.errors import AcidSqlError

INSERT_ONLY = "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
PARQUET = f"STORED AS PARQUET {INSERT_ONLY}"


def files(acid: Any, name: str = "t") -> list[Path]:
    return sorted(p for p in Path(acid.warehouse, name).rglob("0*_0") if p.is_file())


def test_rows_of_every_type_come_back_and_other_readers_see_the_same(acid, spark):
    kinds = (
        "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c DECIMAL(20, 3), "
        "x STRING, h CHAR(3), v VARCHAR(4), n BINARY, a DATE, w TIMESTAMP, "
        "e ARRAY<STRUCT<p: INT, q: TIMESTAMP>>, m MAP<STRING, DATE>"
    )
    acid.sql(f"CREATE TABLE t ({kinds}) {PARQUET}")
    acid.sql(
        "INSERT INTO t SELECT true, 1Y, 2S, 3, 4L, float(0.5), 1e300D, 12345678901234567.125, "
        "'é\\0x', 'ab', 'abcd', x'00ff', DATE'0001-01-01', "
        "TIMESTAMP_NTZ'1500-03-01 12:00:00.123456', "
        "array(named_struct('p', 1, 'q', TIMESTAMP_NTZ'2024-03-31 02:30:00'), NULL), "
        "map('k', DATE'1582-10-04')"
    )
    acid.sql("INSERT INTO t SELECT " + ", ".join(["NULL"] * 16))
    found = acid.sql("SELECT * FROM t WHERE b").first().asDict(recursive=True)
    assert found == {
        "b": True, "t": 1, "s": 2, "i": 3, "l": 4, "f": 0.5, "d": 1e300,
        "c": Decimal("12345678901234567.125"), "x": "é\0x", "h": "ab ", "v": "abcd",
        "n": bytearray(b"\x00\xff"), "a": datetime.date(1, 1, 1),
        "w": datetime.datetime(1500, 3, 1, 12, 0, 0, 123456),
        "e": [{"p": 1, "q": datetime.datetime(2024, 3, 31, 2, 30)}, None],
        "m": {"k": datetime.date(1582, 10, 4)},
    }  # fmt: skip
    assert acid.sql("SELECT count(*), count(b), count(m) FROM t").first() == (2, 1, 1)
    first = next(path for path in files(acid) if pq.read_table(path).column("b")[0].as_py())
    assert pq.read_schema(first).field("w").type == pa.timestamp("us")
    theirs = pq.read_table(first).to_pylist()[0]
    assert theirs["w"] == found["w"] and theirs["c"] == found["c"] and theirs["a"] == found["a"]
    ours = spark.read.parquet(*map(str, files(acid)))
    assert ours.where("b").first().w == found["w"]


@pytest.fixture
def sales(acid):
    acid.sql(f"CREATE TABLE t (id INT, name STRING) PARTITIONED BY (day STRING) {PARQUET}")
    acid.sql("INSERT INTO t VALUES (1, 'a', 'mon'), (2, NULL, NULL)")
    acid.sql("INSERT INTO t SELECT id, concat('n', id), 'tue' FROM range(3, 6)")
    return acid


ALL = [(1, "a", "mon"), (2, None, None), (3, "n3", "tue"), (4, "n4", "tue"), (5, "n5", "tue")]


def test_partitions_conditions_and_transactions_are_as_of_orc(sales):
    assert [row[:2] for row in table(sales)] == [row[:2] for row in ALL]
    assert rows(sales, "SELECT id FROM t WHERE day = 'tue' AND id > 3") == [(4,), (5,)]
    with pytest.raises(ZeroDivisionError), sales.transaction():
        sales.sql("INSERT INTO t VALUES (9, 'x', 'mon')")
        assert rows(sales, "SELECT id FROM t WHERE day = 'mon'") == [(1,), (9,)]
        raise ZeroDivisionError
    assert rows(sales, "SELECT id FROM t WHERE day = 'mon'") == [(1,)]
    assert counts(sales, "INSERT OVERWRITE t PARTITION (day = 'tue') VALUES (7, 'y')")[0] == 1
    assert rows(sales, "SELECT id FROM t WHERE day = 'tue'") == [(7,)]
    sales.sql("TRUNCATE TABLE t PARTITION (day = 'tue')")
    assert rows(sales, "SELECT id FROM t WHERE day = 'tue'") == []


@needs("can_work")
def test_a_compaction_makes_one_base_of_the_same_rows(sales):
    sales.sql("INSERT INTO t VALUES (6, 'n6', 'tue')")
    before = table(sales)
    sales.sql("ALTER TABLE t PARTITION (day = 'tue') COMPACT 'major' AND WAIT")
    assert sales.sql("SHOW COMPACTIONS t").first().state in ("ready for cleaning", "succeeded")
    assert table(sales) == before
    (base,) = Path(sales.warehouse, "t", "day=tue").glob("base_*")
    assert sum(pq.read_metadata(path).num_rows for path in base.glob("0*")) == 4


@needs("can_work")
def test_columns_that_come_later_are_null_in_older_files_and_stay_so_when_compacted(sales):
    sales.sql("ALTER TABLE t ADD COLUMNS (more STRUCT<a: INT>)")
    sales.sql("INSERT INTO t VALUES (6, 'n6', named_struct('a', 1), 'tue')")
    found = rows(sales, "SELECT id, more.a FROM t WHERE day = 'tue'")
    assert found == [(3, None), (4, None), (5, None), (6, 1)]
    sales.sql("ALTER TABLE t PARTITION (day = 'tue') COMPACT 'major' AND WAIT")
    assert rows(sales, "SELECT id, more.a FROM t WHERE day = 'tue'") == found


def test_buckets_sorting_ctas_and_like(acid):
    acid.sql(
        "CREATE TABLE t (id INT, s STRING) CLUSTERED BY (id) SORTED BY (id DESC) INTO 2 BUCKETS "
        + PARQUET
    )
    acid.sql("INSERT INTO t SELECT id, 'x' FROM range(20)")
    ids = [pq.read_table(path).column("id").to_pylist() for path in files(acid)]
    assert len(ids) == 2 and all(one == sorted(one, reverse=True) for one in ids)
    acid.sql(f"CREATE TABLE c {PARQUET} AS SELECT id FROM t WHERE id < 3")
    acid.sql("CREATE TABLE l LIKE c")
    acid.sql("INSERT INTO l SELECT * FROM c")
    assert rows(acid, "SELECT * FROM l") == [(0,), (1,), (2,)]
    assert all(pq.read_metadata(path).num_columns == 1 for path in files(acid, "l"))
    shown = acid.sql("SHOW CREATE TABLE l").first()[0]
    assert "STORED AS PARQUET" in shown
    acid.sql(shown.replace("`l`", "`again`"))
    assert acid.metastore.find(acidsql_name("again")).file_format == "parquet"


def acidsql_name(name: str) -> Any:
    from acidsql.acid.table import TableName

    return TableName("default", name)


@pytest.mark.classic
def test_files_are_listed_with_their_rows(sales):
    found = sales.files("t").where("kind = 'delta'").select("rows", "state").collect()
    assert sorted(tuple(row) for row in found) == [(1, "visible"), (1, "visible"), (3, "visible")]


def test_a_directory_is_read_without_a_metastore(sales, spark):
    path = f"{sales.warehouse}/t"
    found = acidsql.read(
        spark, path, partitioned_by="day string", insert_only=True, file_format="parquet"
    )
    assert found.columns == ["id", "name", "day"]
    assert [tuple(r)[:2] for r in sorted(found.collect())] == [row[:2] for row in ALL]


@pytest.mark.parametrize("codec", ["GZIP", "ZSTD", "UNCOMPRESSED", None])
def test_the_compression_is_what_the_property_says(acid, codec):
    more = "" if codec is None else f", 'parquet.compression' = '{codec}'"
    acid.sql(f"CREATE TABLE t (a INT) {PARQUET[:-1]}{more})")
    acid.sql("INSERT INTO t VALUES (1)")
    (path,) = files(acid)
    group = pq.read_metadata(path).row_group(0)
    assert group.column(0).compression == (codec or "SNAPPY")


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        (f"CREATE TABLE u (a INT) {PARQUET[:-1]}, 'parquet.compression' = 'LZO')", "INVALID"),
        ("CREATE TABLE u LIKE t TBLPROPERTIES ('transactional_properties' = 'default')", "UNSUPP"),
        ("ALTER TABLE t SET TBLPROPERTIES ('transactional_properties' = 'default')", "UNSUPP"),
        ("ALTER TABLE t RENAME COLUMN a TO z", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER TABLE t CHANGE a a BIGINT", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER TABLE t REPLACE COLUMNS (z INT)", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("LOAD DATA INPATH '/nowhere' INTO TABLE t", "UNSUPPORTED_FEATURE.LOAD_DATA"),
        ("UPDATE t SET a = 1", "UNSUPPORTED"),
        (f"CREATE TABLE u (a INT) STORED AS AVRO {INSERT_ONLY}", "UNSUPPORTED_FEATURE"),
    ],
)
def test_what_parquet_cannot_be_is_refused_by_name(acid, statement, condition):
    acid.sql(f"CREATE TABLE t (a INT) {PARQUET}")
    refused(acid, statement, condition)
    assert directories(acid) == []


def test_instants_of_others_are_refused_and_never_shown_as_wall_clocks(acid, spark, tmp_path):
    """Timestamps adjusted to UTC: the file does not tell which wall clock they are."""
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    place = tmp_path / "x" / "delta_0000001_0000001_0000"
    place.mkdir(parents=True)
    instants = pa.table({"w": pa.array([moment], pa.timestamp("us", "UTC"))})
    pq.write_table(instants, place / "000000_0")
    for columns in (None, "w timestamp"):
        with pytest.raises(AcidSqlError, match="wall clock"):
            acidsql.read(
                spark, str(tmp_path / "x"), columns, insert_only=True, file_format="parquet"
            )


@needs("can_work")
def test_names_that_differ_by_case_are_found_or_refused_never_null(acid, spark, tmp_path):
    place = tmp_path / "x" / "delta_0000001_0000001_0000"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"Id": [1], "S": [{"Aa": 2}]}), place / "000000_0")
    columns = "id BIGINT, s STRUCT<aa: BIGINT>"
    acid.sql(f"CREATE TABLE t ({columns}) LOCATION '{tmp_path}/x' {PARQUET}")
    assert rows(acid, "SELECT id, s.aa FROM t") == [(1, 2)]
    spark.conf.set("spark.sql.caseSensitive", "TRUE")  # Spark takes any case
    try:
        with pytest.raises(AcidSqlError, match="caseSensitive"):
            acid.sql("SELECT id FROM t")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    acid.sql("INSERT INTO t VALUES (5, named_struct('aa', 6))")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT id, s.aa FROM t") == [(1, 2), (5, 6)]
