"""TBLPROPERTIES ``orc.…`` of CREATE TABLE: every file of the table is written with them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyorc
import pytest
from kit import fill, refused, rows

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import SettingError

pytestmark = pytest.mark.spark


def readers(acid, name="t"):
    """pyorc's reader of each bucket file of a table, by the file's directory."""
    root = Path(acid.warehouse) / name
    found = sorted(root.rglob("bucket_*"))
    return {path.parent.name: pyorc.Reader(BytesIO(path.read_bytes())) for path in found}


def rows_that_java_reads(spark, path, column, value):
    """The number of rows that ORC's Java reader does not skip for ``column = value``, a string."""
    jvm, java = spark._jvm, spark._jvm.java
    kinds = jvm.org.apache.hadoop.hive.ql.io.sarg
    kind = getattr(kinds, "PredicateLeaf$Type").STRING
    builder = kinds.SearchArgumentFactory.newBuilder().startAnd()
    sarg = builder.equals(column, kind, value).end().build()
    conf = spark._jsc.hadoopConfiguration()
    orc = jvm.org.apache.orc.OrcFile
    reader = orc.createReader(jvm.org.apache.hadoop.fs.Path(str(path)), orc.readerOptions(conf))
    # A list of names, as Spark gives it: ORC looks the names up among the columns of ``row``.
    names = spark.sparkContext._gateway.new_array(java.lang.String, 1)
    names[0] = column
    options = reader.options().searchArgument(sarg, names)
    batches = reader.rows(options)
    batch = reader.getSchema().createRowBatch()
    found = 0
    while batches.nextBatch(batch):
        found += batch.count()
    return found


@pytest.mark.parametrize("codec", ["NONE", "zlib", "SNAPPY", "LZ4", "zstd"])
def test_every_writer_takes_the_tables_compression(acid, codec):
    fill(
        acid,
        f"t (id INT, v STRING) TBLPROPERTIES ('orc.compress'='{codec}')",
        "1, 'a'", "2, 'b'", "3, 'c'",
    )  # fmt: skip
    acid.sql("UPDATE t SET v = concat(v, '!') WHERE id > 1")
    acid.sql("MERGE INTO t USING (SELECT 9 AS id, 'new' AS v) s ON t.id = s.id "
             "WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    acid.sql("INSERT OVERWRITE t SELECT id, v FROM t WHERE id < 3")
    acid.sql("TRUNCATE TABLE t")
    acid.sql("INSERT INTO t SELECT 7, 'seven'")
    found = readers(acid)
    assert len(found) == 7
    for name, reader in found.items():
        assert reader.compression.name == codec.upper(), name
    assert rows(acid, "SELECT * FROM t") == [(7, "seven")]


def test_a_table_without_properties_is_written_with_zstd(acid):
    acid.sql("CREATE TABLE t AS SELECT 1 AS id")
    (reader,) = readers(acid).values()
    assert reader.compression.name == "ZSTD"
    assert reader.row_index_stride == 10_000


def test_a_bloom_filter_lets_readers_skip_and_keeps_every_row(acid, spark):
    acid.sql(
        "CREATE TABLE t TBLPROPERTIES ('orc.bloom.filter.columns'='name', "
        "'orc.bloom.filter.fpp'='0.001', 'orc.row.index.stride'='1000') AS "
        "SELECT id, sha2(CAST(id AS STRING), 256) AS name, sha2(CAST(id AS STRING), 256) AS other "
        "FROM range(0, 20000, 1, 1)"
    )
    (path,) = (Path(acid.warehouse) / "t").rglob("bucket_*")
    names = [
        row.name for row in acid.sql("SELECT name FROM t WHERE id IN (0, 777, 19999)").collect()
    ]
    absent = "7" * 64  # between the smallest and the largest
    assert rows_that_java_reads(spark, path, "name", absent) == 0
    assert rows_that_java_reads(spark, path, "other", absent) == 20_000
    for name in names:
        assert rows_that_java_reads(spark, path, "name", name) == 1000
        assert acid.sql("SELECT id FROM t WHERE name = :n", {"n": name}).count() == 1
    assert acid.sql("SELECT id FROM t WHERE name = :n", {"n": absent}).count() == 0


def test_bloom_filters_of_every_type_lose_no_row(acid):
    columns = {
        "ti": ("TINYINT", "CAST(id % 100 AS TINYINT)"),
        "si": ("SMALLINT", "CAST(id AS SMALLINT)"),
        "i": ("INT", "CAST(id AS INT)"),
        "l": ("BIGINT", "id * 10000000000"),
        "f": ("FLOAT", "CAST(id AS FLOAT) / 3"),
        "d": ("DOUBLE", "id / 7D"),
        "de": ("DECIMAL(20,3)", "CAST(id AS DECIMAL(20,3)) / 4"),
        "s": ("STRING", "concat('é', id)"),
        "v": ("VARCHAR(9)", "concat('v', id)"),
        "c": ("CHAR(9)", "concat('c', id)"),
        "b": ("BINARY", "CAST(concat('b', id) AS BINARY)"),
        "dt": ("DATE", "date_add(DATE'1955-01-01', CAST(id AS INT) * 20)"),
        "ts": ("TIMESTAMP", "TIMESTAMP_NTZ'1999-12-31 23:00:00' + make_interval(0,0,0,0,0,0,id)"),
    }
    ddl = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    acid.sql(
        f"CREATE TABLE t (id BIGINT, {ddl}) "
        f"TBLPROPERTIES ('orc.bloom.filter.columns'='{','.join(columns)}')"
    )
    values = ", ".join(value for _, value in columns.values())
    acid.sql(f"INSERT INTO t SELECT id, {values} FROM range(0, 3000, 1, 1)")
    (reader,) = readers(acid).values()
    assert [set(stripe.bloom_filter_columns) for stripe in reader.iter_stripes()] == [
        set(range(8, 21))
    ]
    (row,) = acid.sql("SELECT * FROM t WHERE id = 2345").collect()
    for name in columns:
        found = [one.id for one in acid.sql(
            f"SELECT id FROM t WHERE {name} = :value AND id > 2300", {"value": row[name]}
        ).collect()]  # fmt: skip
        assert 2345 in found, name


def test_stripes_are_as_small_as_the_table_says(acid):
    acid.sql(
        "CREATE TABLE t (id BIGINT, v STRING) TBLPROPERTIES ('orc.stripe.size' = 100000, "
        "'orc.create.index' = false)"
    )
    acid.sql("INSERT INTO t SELECT id, sha2(CAST(id AS STRING), 256) FROM range(0, 200000, 1, 1)")
    acid.sql("DELETE FROM t WHERE id % 3 = 0")
    data = readers(acid)["delta_0000001_0000001_0000"]
    assert data.num_of_stripes > 2
    assert data.row_index_stride == 0
    assert rows(acid, "SELECT count(*), sum(id) FROM t WHERE id > 1000") == [
        (132_666, sum(n for n in range(1001, 200_000) if n % 3))
    ]


@pytest.mark.parametrize(
    ("pair", "condition", "words"),
    [
        ("'orc.compress' = 'brotli'", "INVALID_PROPERTY_VALUE", "is none of ZSTD"),
        ("'orc.compres' = 'zlib'", "INVALID_PROPERTY_KEY", "did you mean orc.compress"),
        ("orc.stripe.size = '1 MB'", "INVALID_PROPERTY_VALUE", "no whole number"),
        ("'orc.bloom.filter.columns' = 'v,nope'", "INVALID_PROPERTY_VALUE", "'nope' is none"),
        ("'orc.bloom.filter.columns' = 'p'", "INVALID_PROPERTY_VALUE", "'p' is none"),
        ("'acidsql.kei' = 'id'", "INVALID_PROPERTY_KEY", "Did you mean 'acidsql.key'"),
        (
            "'acidsql.bbbbbbbbbbbbbbbbbbbb' = '1'",
            "INVALID_PROPERTY_KEY",
            "Known are: acidsql",
        ),
        ("'orc.mask' = 'x'", "UNSUPPORTED_FEATURE", "encrypted or masked"),
        ("'acidsql.history.retention' = 'xyz'", "INVALID_CONF_VALUE", "cannot be 'xyz'"),
        ("'acidsql.History.max.ratio' = '-1'", "INVALID_CONF_VALUE", "cannot be '-1'"),
        ("'acidsql.cdc.Tombstone.retention' = '0s'", "INVALID_CONF_VALUE", "such as 30d"),
        ("'compactorthreshold.acidsql.compactor.strategy' = 'x'", "INVALID_CONF_VALUE", "be 'x'"),
    ],
)
def test_a_wrong_property_is_refused_where_it_stands(acid, pair, condition, words):
    statement = (
        f"CREATE TABLE n (id INT, v STRING) PARTITIONED BY (p INT) TBLPROPERTIES ('a'='b', {pair})"
    )
    assert words in refused(acid, statement, condition, at=pair).message


def test_the_properties_of_like_and_as_select_are_looked_at_too(acid):
    fill(acid, "t (id INT) TBLPROPERTIES ('orc.compress'='ZLIB')")
    acid.sql("CREATE TABLE u LIKE t")
    acid.sql("INSERT INTO u VALUES (1)")
    (reader,) = readers(acid, "u").values()
    assert reader.compression.name == "ZLIB"
    for rest in ("LIKE t TBLPROPERTIES ({})", "TBLPROPERTIES ({}) AS SELECT 1 AS id"):
        pair = "'orc.bloom.filter.columns'='v'"
        refused(acid, f"CREATE TABLE n {rest.format(pair)}", "INVALID_PROPERTY_VALUE", at=pair)
        pair = "'acidsql.kei'='id'"
        refused(acid, f"CREATE TABLE n {rest.format(pair)}", "INVALID_PROPERTY_KEY", at=pair)


def test_a_property_that_is_set_later_is_checked_and_holds_from_then_on(acid):
    fill(acid, "t (id INT) TBLPROPERTIES ('orc.compress'='ZLIB')", "1")
    refused(
        acid, "ALTER TABLE t SET TBLPROPERTIES ('orc.compress'='brotli')",
        "INVALID_PROPERTY_VALUE", "'orc.compress'='brotli'",
    )  # fmt: skip
    refused(
        acid, "ALTER TABLE t SET TBLPROPERTIES ('acidsql.history.retention'='')",
        "INVALID_CONF_VALUE", "'acidsql.history.retention'=''",
    )  # fmt: skip
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('orc.compress'='SNAPPY')")
    acid.sql("INSERT INTO t VALUES (100)")
    assert {reader.compression.name for reader in readers(acid).values()} == {"ZLIB", "SNAPPY"}


def test_a_table_with_a_property_that_acidsql_does_not_know_stays_usable(acid):
    """As a table that another version of acidsql has made."""
    fill(acid, "t (id INT)", "1")
    acid.metastore.alter_table(TableName("default", "t"), set_properties={"acidsql.of.old": "1"})
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.of.old' = '2', 'acidsql.key' = 'id')")
    pair = "'acidsql.of.older' = '2'"
    statement = f"ALTER TABLE t SET TBLPROPERTIES ('x' = '1', {pair})"
    refused(acid, statement, "INVALID_PROPERTY_KEY", at=pair)
    acid.sql("CREATE TABLE u LIKE t")
    acid.sql("ALTER TABLE t UNSET TBLPROPERTIES ('acidsql.of.old')")
    assert acid.table("t").count() == 2


def test_a_misspelt_property_that_is_unset_is_refused_with_the_nearest_name(acid):
    fill(acid, "t (id INT) TBLPROPERTIES ('acidsql.key' = 'id')")
    statement = "ALTER TABLE t UNSET TBLPROPERTIES ('acidsql.kei')"
    error = refused(acid, statement, "UNSET_NONEXISTENT_PROPERTIES", at="('acidsql.kei')")
    assert "Did you mean 'acidsql.key'?" in error.message


def test_a_misspelt_setting_in_the_spark_conf_is_refused_when_a_session_is_opened(acid, spark):
    other = spark.newSession()
    other.conf.set("spark.acidsql.lock.pol.interval", "1s")
    with pytest.raises(SettingError, match=r"'spark\.acidsql\.lock\.pol\.interval'.*Did you mean"):
        acidsql.connect(other, warehouse=acid.warehouse, metastore=acid.metastore.url)
    other.conf.unset("spark.acidsql.lock.pol.interval")
    other.conf.set("spark.acidsql.lock.poll.interval", "1s")
    with acidsql.connect(other, warehouse=acid.warehouse, metastore=acid.metastore.url) as session:
        assert session.sql("SET acidsql.lock.poll.interval").first().value == "1000ms"
        session.sql("SET spark.acidsql.lock.poll.interval = 3s")
        assert session.sql("SET acidsql.lock.poll.interval").first().value == "3000ms"
        with pytest.raises(SettingError, match="lock.poll.interval = soon\n  .*\\^\\^\\^"):
            session.sql("SET acidsql.lock.poll.interval = soon")
