"""``spark.read.format("acidsql")`` with a path: a directory without a metastore."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hive_values import rows_of
from test_golden import (
    GOLDEN,
    case_of,
    expected_rows,
    readable,
    types_of,
)

import acidsql
from acidsql.errors import AcidSqlError, FormatError, SettingError, UnsupportedError
from acidsql.streams.source.directory_reader import DirectoryReader


def options_of(case):
    """The options that show a golden table."""
    options = {
        "path": str(GOLDEN / case["name"] / "data"),
        "schema": ddl(case["columns"]),
        "insert_only": str(case["acid"] == "insert_only"),
        "file_format": "text" if case["name"] == "insert_only_text" else "orc",
        "valid_write_ids": case["valid_write_ids"],
        "valid_txns": case["valid_txns"],
    }
    if case["partition_columns"]:
        options["partitioned_by"] = ddl(case["partition_columns"])
    return {name: value for name, value in options.items() if value is not None}


def ddl(columns):
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def arrow_table(options):
    """What tasks read in other processes."""
    taken = pickle.loads(pickle.dumps(DirectoryReader(options).take_snapshot()))
    reader = DirectoryReader(options, taken)
    splits = pickle.loads(pickle.dumps(reader.partitions()))
    batches = [batch for split in splits for batch in reader.read(split)]
    schema = pa.schema([(column.name, pa.null()) for column in taken.shown.columns])
    return pa.Table.from_batches(batches) if batches else schema.empty_table()


@pytest.mark.parametrize("name", readable)
def test_a_golden_table_gives_the_rows_that_hive_returned(name):
    case = case_of(name)
    try:
        rows = rows_of(arrow_table(options_of(case)), types_of(case))
    except UnsupportedError as error:
        assert "acidsql.read(spark, '" in error.message
        assert name in {"insert_only_text", "partition_date_types"}
        return
    expected = sorted(([None, values] for _, values in expected_rows(case)), key=repr)
    assert sorted(([None, values] for _, values in rows), key=repr) == expected


def test_the_columns_are_those_of_the_newest_file_unless_the_option_names_them():
    path = str(GOLDEN / "update" / "data")
    columns = DirectoryReader({"path": path}).take_snapshot().shown.columns
    assert [(column.name, column.type) for column in columns] == [
        tuple(pair) for pair in case_of("update")["columns"]
    ]
    name = columns[-1].name
    options = {"path": path, "columns": name.upper()}
    assert arrow_table(options).column_names == [name]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": "/no/such/place"}, FormatError, "no directory '/no/such/place'"),
        ({"insert_only": "perhaps"}, SettingError, "neither true nor false"),
        ({"schema": "id INT,"}, SettingError, "no list of columns"),
        ({"schema": "id INT) x ("}, SettingError, "no list of columns"),
        ({"schema": "id HUGE"}, AcidSqlError, "(?i)huge"),
        ({"version": "1"}, SettingError, "with a path has no option 'version'"),
        ({"columns": "nothing"}, AcidSqlError, "has no column 'nothing'"),
        ({"valid_write_ids": "x"}, AcidSqlError, "x"),
    ],
)
def test_a_wrong_option_is_an_error_by_name(options, error, message):
    path = str(GOLDEN / "update" / "data")
    with pytest.raises(error, match=message):
        DirectoryReader({"path": path, **options}).take_snapshot()


@pytest.mark.spark
@pytest.mark.classic
def test_spark_and_pure_sql_read_a_directory_as_acidsql_does(acid, spark):
    acid.sql("CREATE TABLE t (id INT, `a b` STRING) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'x', 'ä/ö'), (2, 'y', NULL), (3, 'z', 'q')")
    acid.sql("UPDATE t SET `a b` = 'new' WHERE id = 1")
    acid.sql("DELETE FROM t WHERE id = 3")
    path = f"{acid.warehouse}/t"
    expected = acidsql.read(spark, path, partitioned_by="p string").drop("row__id")
    frame = spark.read.format("acidsql").option("partitioned_by", "p STRING").load(path)
    assert frame.schema == expected.schema
    assert sorted(frame.collect()) == sorted(expected.collect())
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW v USING acidsql "
        f"OPTIONS (path '{path}', partitioned_by 'p STRING', columns 'id')"
    )
    acid.sql("INSERT INTO t VALUES (4, 'later', 'q')")
    assert sorted(spark.sql("SELECT * FROM v").collect()) == [(1,), (2,)]
    spark.catalog.dropTempView("v")


@pytest.mark.spark
@pytest.mark.classic
def test_a_stream_reads_no_directory(spark, acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    with pytest.raises(Exception, match="a stream reads no bare directory"):
        spark.readStream.format("acidsql").option("keys", "id").load(f"{acid.warehouse}/t")
