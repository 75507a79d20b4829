"""Hive's plain and external tables, views and tables of other engines beside ACID tables."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import datetime

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import pyorc
from kit import rows

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import (
    AcidSqlError,
    AnalysisError,
    FormatError,
    SnapshotTooOldError,
    SqlError,
    UnsupportedError,
)
from acidsql.metastore.hive.wire.idl import hive

ORC = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
TEXT = "org.apache.hadoop.mapred.TextInputFormat"
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


@pytest.fixture
def acid(acid_over_hive):
    return acid_over_hive


@pytest.fixture
def place(acid, hive_metastore):
    """The directory of the test's external tables."""
    found = hive_metastore.work / "external" / acid.spark.catalog.currentDatabase()
    found.mkdir(parents=True, exist_ok=True)
    return found


def fields(ddl):
    pairs = (one.split(" ", 1) for one in ddl.split(", ") if one)
    return [hive.FieldSchema(name=name, type=kind) for name, kind in pairs]


@pytest.fixture
def put(acid, place):
    """Make a table that is none of acidsql's."""

    def put(name, columns="a int", inputs=ORC, by="", serde=LAZY, view=None, of_rows=None, **more):
        sd = hive.StorageDescriptor(
            cols=fields(columns), location=None if view else f"file:{place}/{name}",
            inputFormat=inputs, outputFormat="x", numBuckets=-1, bucketCols=[], sortCols=[],
            parameters={},
            serdeInfo=hive.SerDeInfo(name=name, serializationLib=serde, parameters=of_rows or {}),
        )  # fmt: skip
        table = hive.Table(
            tableName=name, dbName=acid.spark.catalog.currentDatabase(), owner="ann",
            createTime=0, lastAccessTime=0, retention=0, sd=sd, partitionKeys=fields(by),
            tableType="VIRTUAL_VIEW" if view else "EXTERNAL_TABLE", catName="hive",
            parameters=more if view else {"EXTERNAL": "TRUE", **more},
            viewOriginalText=view, viewExpandedText=view,
        )  # fmt: skip
        acid.metastore.parts.server.call("create_table_req", hive.CreateTableRequest(table=table))
        return table

    return put


@pytest.fixture
def add(acid):
    """Add a partition to such a table."""

    def add(table, location, *values):
        sd = table.sd
        made = hive.StorageDescriptor(**{one: getattr(sd, one) for one in sd.__slots__})
        made.location = f"file:{location}"
        partition = hive.Partition(
            values=list(values), dbName=table.dbName, tableName=table.tableName, sd=made,
            createTime=0, lastAccessTime=0, parameters={}, catName="hive",
        )  # fmt: skip
        request = hive.AddPartitionsRequest(
            dbName=table.dbName, tblName=table.tableName, parts=[partition], ifNotExists=True
        )
        acid.metastore.parts.server.call("add_partitions_req", request)

    return add


# ── what is read ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("inputs", "form"), [(ORC, "orc"), (PARQUET, "parquet")])
def test_an_external_table_is_read_beside_an_acid_table(acid, put, place, inputs, form):
    acid.spark.sql("SELECT CAST(id AS INT) a, concat('n', id) b FROM range(5)").write.format(
        form
    ).save(f"{place}/ext")
    put("ext", "a int, b string", inputs)
    acid.sql("CREATE TABLE t (a INT, c STRING)")
    acid.sql("INSERT INTO t SELECT a, upper(b) FROM ext WHERE a < 3")
    joined = "SELECT e.b, t.c FROM ext e JOIN t ON e.a = t.a"
    assert rows(acid, joined) == [("n0", "N0"), ("n1", "N1"), ("n2", "N2")]
    assert rows(acid, "SELECT max(a) FROM ext") == [(4,)]
    acid.sql(
        "MERGE INTO t USING ext ON t.a = ext.a WHEN MATCHED THEN UPDATE SET c = ext.b "
        "WHEN NOT MATCHED THEN INSERT VALUES (ext.a, 'new')"
    )
    assert rows(acid, "SELECT * FROM t") == [
        (0, "n0"), (1, "n1"), (2, "n2"), (3, "new"), (4, "new")
    ]  # fmt: skip
    acid.sql("DELETE FROM t WHERE a IN (SELECT a FROM ext WHERE b = 'n1')")
    acid.sql("CREATE TABLE c AS SELECT * FROM ext")
    assert rows(acid, "SELECT count(*) FROM c") == [(5,)]
    database = acid.spark.catalog.currentDatabase()
    assert rows(acid, f"SELECT count(*) FROM {database}.ext JOIN t USING (a)") == [(4,)]
    assert "== Physical Plan ==" in acid.sql("EXPLAIN SELECT * FROM ext, t").first()[0]
    assert acid.sql("SELECT *, row__id FROM t").columns == ["a", "c", "row__id"]


def test_text_is_read_with_its_delimiter_and_its_null(acid, put, place):
    (place / "lines").mkdir()
    (place / "lines" / "one").write_text("1|a|2020-01-02|t\n2|NONE||t\nx|c\n")
    with gzip.open(place / "lines" / "two.gz", "wb") as file:
        file.write(b"3|d.*|2021-01-01|f|more\n")
    (place / "lines" / "_hidden").write_text("9|z\n")
    put("lines", "a int, b string, d date, e string", TEXT,
        of_rows={"field.delim": "|", "serialization.format": "|",
                 "serialization.null.format": "NONE"})  # fmt: skip
    assert rows(acid, "SELECT a, b, string(d), e FROM lines") == [
        (1, "a", "2020-01-02", "t"), (2, None, None, "t"), (3, "d.*", "2021-01-01", "f"),
        (None, "c", None, None),
    ]  # fmt: skip


def test_partitions_may_lie_anywhere_and_have_fewer_columns(acid, put, add, place, tmp_path):
    def write(path, query):
        acid.spark.sql(query).coalesce(1).write.orc(str(path))

    write(place / "p" / "p=1" / "q=x", "SELECT 1 a, 'b' b")
    write(place / "p" / "p=2" / "q=__HIVE_DEFAULT_PARTITION__", "SELECT 2 a, 'c' b")
    write(tmp_path / "old", "SELECT 3 a")
    write(tmp_path / "unusual", "SELECT 5 a")
    write(place / "p" / "p=4" / "q=y" / "HIVE_UNION_SUBDIR_1", "SELECT 4 a, 'd' b")
    table = put("p", "a int, b string", by="p int, q string")
    add(table, place / "p" / "p=1" / "q=x", "1", "x")
    add(table, place / "p" / "p=2" / "q=__HIVE_DEFAULT_PARTITION__", "2",
        "__HIVE_DEFAULT_PARTITION__")  # fmt: skip
    add(table, tmp_path / "old", "3", "A/b")
    add(table, place / "p" / "p=4" / "q=y", "4", "y")
    add(table, tmp_path / "unusual", "five", "z")
    assert rows(acid, "SELECT * FROM p") == [
        (1, "b", 1, "x"), (2, "c", 2, None), (3, None, 3, "A/b"), (4, "d", 4, "y"),
        (5, None, None, "z"),
    ]  # fmt: skip
    assert rows(acid, "SELECT a FROM p WHERE p > 2 AND q = 'y'") == [(4,)]
    files = dict(rows(acid, "SELECT p.a, p.INPUT__FILE__NAME FROM p"))
    assert files[1].startswith(f"file://{place}/p/p=1/q=x/part-")
    assert files[3].startswith(f"file://{tmp_path}/old/part-")


def test_a_plain_table_of_spark_goes_first(acid, put, place, spark):
    """Spark's name means the same in ``acid.sql`` as in ``spark.sql``."""
    put("both")
    database = acid.spark.catalog.currentDatabase()
    spark.sql(f"CREATE TABLE {database}.both USING parquet AS SELECT 7 a")
    assert rows(acid, "SELECT * FROM both") == [(7,)]
    spark.sql(f"DROP TABLE {database}.both")


def test_a_view_that_spark_has_too_is_sparks_unless_it_names_acid_tables(acid, put, spark):
    """Spark would read the directory of an ACID table as plain files, or find none."""
    database = acid.spark.catalog.currentDatabase()
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (5)")
    put("over_plain", view="SELECT 1 a")
    put("over_acid", view=f"SELECT `t`.`a` FROM `{database}`.`t`")
    put("over_view", view=f"SELECT `v`.`a` FROM `{database}`.`over_acid` `v`")
    for name in ("over_plain", "over_acid", "over_view"):
        spark.sql(f"CREATE VIEW {database}.{name} AS SELECT 7 a")
    assert rows(acid, "SELECT * FROM over_plain") == [(7,)]
    for name in ("over_acid", "over_view"):
        assert rows(acid, f"SELECT * FROM {name}") == [(5,)]
    for name in ("over_plain", "over_acid", "over_view"):
        spark.sql(f"DROP VIEW {database}.{name}")


def test_a_view_of_hives_is_read_in_hives_words(acid, put):
    """Without ANSI mode, with wall clocks, and with texts in double quotes."""
    database = acid.spark.catalog.currentDatabase()
    acid.sql("CREATE TABLE t (a INT, s STRING)")
    acid.sql("INSERT INTO t VALUES (0, '2024-06-01 12:00:00'), (2, 'x')")
    put("plain")
    put("hives", "a int, b double, c timestamp, d char(3)", view=(
        f'select `t`.`a`, 1/`t`.`a`, cast(`t`.`s` as timestamp), "b" from `{database}`.`t`'
    ))  # fmt: skip
    put("over", "n bigint", view=f"SELECT count(*) FROM `{database}`.`hives` LEFT JOIN"
        f" `{database}`.`plain` USING (a)")  # fmt: skip
    found = acid.sql("SELECT * FROM hives")
    noon = datetime(2024, 6, 1, 12)
    assert sorted(map(tuple, found.collect())) == [(0, None, noon, "b"), (2, 0.5, None, "b")]
    assert rows(acid, "SELECT * FROM over") == [(2,)]
    assert [row.viewName for row in acid.sql("SHOW VIEWS").collect()] == ["hives", "over"]
    put("dialect", view=f"SELECT a FROM {database}.t TABLESAMPLE(1 MAPJOINS) WHERE a !<> 1")
    with pytest.raises(SqlError, match=f"The view {database}.dialect cannot be read"):
        acid.sql("SELECT * FROM dialect")
    put("round", view=f"SELECT a FROM {database}.round2")
    put("round2", view=f"SELECT a FROM {database}.round")
    with pytest.raises(SqlError, match=f"{database}.round → {database}.round2 → {database}.round"):
        acid.sql("SELECT * FROM round")
    acid.sql("DROP VIEW round2")
    with pytest.raises(SqlError, match="EXPECT_TABLE_NOT_VIEW"):
        acid.sql("DROP TABLE round")


def test_the_server_has_a_view_as_hive_has_its_own(acid):
    database = acid.spark.catalog.currentDatabase()
    acid.sql("CREATE TABLE t (a INT, s STRING)")
    acid.sql("CREATE VIEW v (n COMMENT 'one', s) COMMENT 'c' AS SELECT t.a, t.s FROM t")

    def theirs():
        request = hive.GetTableRequest(dbName=database, tblName="v", catName="hive")
        return acid.metastore.parts.server.call("get_table_req", request).table

    found = theirs()
    assert (found.tableType, found.parameters["comment"]) == ("VIRTUAL_VIEW", "c")
    assert found.viewOriginalText == "SELECT t.a, t.s FROM t"
    assert found.viewExpandedText == (
        f"SELECT `a` AS `n`, `s` AS `s` FROM (\nSELECT t.a, t.s FROM `{database}`.`t`\n) AS `v`"
    )
    assert [(one.name, one.type, one.comment) for one in found.sd.cols] == [
        ("n", "int", "one"), ("s", "string", None),
    ]  # fmt: skip
    assert not found.sd.location
    acid.sql("ALTER VIEW v AS SELECT s FROM t")
    changed = theirs()
    assert (changed.id, changed.parameters["comment"]) == (found.id, "c")
    assert [one.name for one in changed.sd.cols] == ["s"]
    assert changed.viewExpandedText == f"SELECT s FROM `{database}`.`t`"
    with acid.transaction():
        assert rows(acid, "SELECT * FROM v") == []
        with acidsql.connect(acid.spark, metastore=acid.metastore.url) as other:
            other.sql("CREATE OR REPLACE VIEW v AS SELECT concat(s, '') AS s FROM t")
        with pytest.raises(SnapshotTooOldError):
            acid.sql("SELECT * FROM v")


# ── what is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table_type": "ICEBERG"}, "Iceberg"),
        ({"storage_handler": "org.apache.hadoop.hive.kudu.KuduStorageHandler"}, "Kudu"),
        ({"storage_handler": "org.apache.hive.storage.jdbc.JdbcStorageHandler"}, "JDBC"),
        ({"inputs": "org.apache.hudi.hadoop.HoodieParquetInputFormat"}, "Hudi"),
        ({"inputs": "org.apache.hadoop.mapred.SequenceFileInputFormat"}, "SequenceFile"),
        ({"inputs": TEXT, "serde": "org.apache.hadoop.hive.serde2.OpenCSVSerde"}, "OpenCSVSerde"),
        ({"inputs": TEXT, "of_rows": {"escape.delim": "\\"}}, "escape.delim"),
        ({"inputs": TEXT, "skip.header.line.count": "1"}, "skip.header.line.count"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_what_acidsql_cannot_read_is_refused_by_name(acid, put, options, said):
    put("odd", **options)
    acid.sql("CREATE TABLE t (a INT)")
    for statement in ("SELECT * FROM odd JOIN t USING (a)", "INSERT INTO t SELECT * FROM odd"):
        with pytest.raises(UnsupportedError, match=said) as caught:
            acid.sql(statement)
        assert f"{acid.spark.catalog.currentDatabase()}.odd" in str(caught.value)
    assert rows(acid, "SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table_type": "ICEBERG"}, "odd is a table of Iceberg, .*: use Iceberg for Spark"),
        ({}, "odd is no ACID table, so acidsql only reads it in queries.*use Hive"),
    ],
    ids=["Iceberg", "plain"],
)
def test_a_change_of_what_is_no_acid_table_says_what_it_is(acid, put, options, said):
    """Spark alone would say that there is no such table."""
    put("odd", **options)
    acid.sql("CREATE TABLE t (a INT)")
    database = acid.spark.catalog.currentDatabase()
    for statement in (
        "INSERT INTO {} VALUES (1)", "INSERT OVERWRITE {} VALUES (1)", "UPDATE {} SET a = 1",
        "DELETE FROM {}", "TRUNCATE TABLE {}", "DROP TABLE {}", "DESCRIBE {}",
        "MERGE INTO {} o USING t ON o.a = t.a WHEN MATCHED THEN DELETE",
    ):  # fmt: skip
        for name in ("odd", f"{database}.odd"):
            with pytest.raises(UnsupportedError, match=said) as caught:
                acid.sql(statement.format(name))
            assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.FOREIGN_TABLE"
    with pytest.raises(AnalysisError, match="TABLE_OR_VIEW_NOT_FOUND"):
        acid.sql("DELETE FROM nowhere")
    acid.sql("SET hive.exec.drop.ignorenonexistent = true")
    acid.sql("DROP TABLE nowhere")
    with pytest.raises(UnsupportedError, match=said):
        acid.sql("DROP TABLE odd")


def test_a_partition_in_another_format_is_refused(acid, put, add, place):
    table = put("p", by="p int")
    table.sd.inputFormat = PARQUET
    add(table, place / "x", "1")
    with pytest.raises(UnsupportedError, match="another format"):
        acid.sql("SELECT * FROM p")


def test_files_with_other_columns_or_of_transactions_are_refused(acid, put, place):
    """Hive matches the columns of a plain ORC file by name, Spark's reader by position."""
    put("odd", "a int, b int")
    (place / "odd").mkdir(exist_ok=True)
    with (place / "odd" / "f").open("wb") as file, pyorc.Writer(file, "struct<b:int,a:int>"):
        pass
    with pytest.raises(FormatError, match="has the columns b, a"):
        acid.sql("SELECT * FROM odd").collect()
    (place / "odd" / "f").unlink()
    (place / "odd" / "delta_0000001_0000001_0000").mkdir()
    with pytest.raises(FormatError, match="transactions"):
        acid.sql("SELECT * FROM odd").collect()
    (place / "odd" / "delta_0000001_0000001_0000").rmdir()
    assert rows(acid, "SELECT * FROM odd") == []
    (place / "odd").rmdir()
    with pytest.raises(FormatError, match="no directory"):
        acid.sql("SELECT * FROM odd").collect()


def test_a_plain_table_is_not_changed(acid, put):
    put("ext")
    for statement in (
        "INSERT INTO ext VALUES (1)", "UPDATE ext SET a = 1", "DELETE FROM ext",
        "DROP TABLE ext",
    ):  # fmt: skip
        with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|no ACID table|no table"):
            acid.sql(statement)


# ── ACID tables of other shapes ──────────────────────────────────────────────────────────────


def test_a_partition_with_an_older_list_of_columns_is_read_and_changed(acid):
    """Without CASCADE, Hive's ADD COLUMNS leaves the columns of old partitions as they were."""
    acid.sql("CREATE TABLE t (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 1)")
    store = acid.metastore
    name = acid._table("t").name
    raw = store.parts.raw_tables.need(name)
    raw.sd.cols = [hive.FieldSchema(name="a", type="bigint"),
                   hive.FieldSchema(name="b", type="string")]  # fmt: skip
    store.parts.raw_tables.alter(name, raw)
    (partition,) = store.parts.server.call("get_partitions", name.database, "t", -1)
    assert [one.type for one in partition.sd.cols] == ["int"]
    assert rows(acid, "SELECT * FROM t") == [(1, None, 1)]
    acid.sql(f"INSERT INTO t VALUES ({1 << 40}, 'x', 1)")
    acid.sql("UPDATE t SET b = 'y' WHERE a = 1")
    assert rows(acid, "SELECT * FROM t") == [(1, "y", 1), (1 << 40, "x", 1)]


def test_another_name_for_the_default_partition_is_refused(spark, acid, hive_metastore):
    """Else NULL would be shown as this name, and Hive would show acidsql's NULL as a text."""
    acid.sql("CREATE TABLE t (a INT) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'x')")
    acid.sql("CREATE TABLE u (a INT)")
    acid.sql("INSERT INTO u VALUES (1)")
    database, store = acid.spark.catalog.currentDatabase(), acid.metastore
    store.parts.server.features = replace(store.features, default_partition="__NOTHING__")
    for statement in (f"SELECT * FROM {database}.t", f"INSERT INTO {database}.t VALUES (1, 'y')"):
        with pytest.raises(UnsupportedError, match="hive.exec.default.partition.name"):
            acid.sql(statement).collect()
    assert rows(acid, f"SELECT * FROM {database}.u") == [(1,)]
    store.parts.server.features = replace(
        store.features, default_partition="__HIVE_DEFAULT_PARTITION__"
    )
    assert rows(acid, f"SELECT * FROM {database}.t") == [(1, "x")]


def test_what_cannot_become_an_acid_table_in_place_is_refused_and_stays_as_it_is(acid, put, place):
    put("out")
    put("sheet", inputs=PARQUET)
    put("parted", by="p int", TRANSLATED_TO_EXTERNAL="TRUE")
    (place / "out").mkdir(exist_ok=True)
    (place / "parted" / "stray").mkdir(parents=True)
    (place / "parted" / "stray" / "000000_0").write_bytes(b"x")
    for statement, why in [
        ("ALTER TABLE out CONVERT TO ACID", "EXTERNAL"),
        ("ALTER TABLE sheet SET TBLPROPERTIES ('transactional'='true')", "EXTERNAL"),
        (
            "ALTER TABLE sheet SET TBLPROPERTIES ('External'='false', 'transactional'='TRUE')",
            "PARQUET",
        ),
        ("ALTER TABLE out SET TBLPROPERTIES ('transactional'='true', 'k'='v')", "set 'k'"),
        (
            "ALTER TABLE out SET TBLPROPERTIES ('transactional'='true', "
            "'transactional_properties'='insert_only')",
            "insert-only",
        ),
        ("ALTER TABLE nowhere CONVERT TO ACID", "LOCATION"),
        (
            "ALTER TABLE parted SET TBLPROPERTIES ('EXTERNAL'='TRUE', 'transactional'='true')",
            "EXTERNAL",
        ),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            acid.sql(statement)
    with pytest.raises(AcidSqlError, match="in no partition|not both a directory"):
        acid.sql("ALTER TABLE parted CONVERT TO ACID")
    (place / "out" / "delta_0000001_0000001_0000").mkdir()
    with pytest.raises(AcidSqlError, match="would be taken as a part"):
        acid.sql("ALTER TABLE out SET TBLPROPERTIES ('EXTERNAL'='FALSE', 'transactional'='true')")
    for name in ("out", "sheet", "parted"):
        raw = acid.metastore.parts.raw_tables.find(
            TableName(acid.spark.catalog.currentDatabase(), name)
        )
        assert raw.tableType == "EXTERNAL_TABLE" and "transactional" not in raw.parameters
