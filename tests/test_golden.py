"""Every golden table, written by a real Hive, gives the rows and row ids that Hive returned."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import pytest
from hive_values import rows_of
from over_connect import OVER_CONNECT

from acidsql.acid.layout import DEFAULT_PARTITION
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.reading.python_rows import _tasks
from acidsql.storage.reading.read import read
from acidsql.storage.reading.scan import Scan
from acidsql.storage.spark.repeatable import repeatable_query
from acidsql.storage.spark.session import jvm, zones

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/case.json"))
# Values finer than a microsecond, which Spark does not have: they are compared truncated.
FINER_THAN_A_MICROSECOND = {("types", "ts")}
# Tables with NULL in a string partition column: Hive shows the directory's text. NULL was inserted,
# and NULL is read, as by Spark, Trino and Impala.
HIVE_SHOWS_A_TEXT_FOR_NULL = {"partitioned", "partitioned_bucketed"}
UNREADABLE = {"types_ltz": "Hive 4.0.1 itself cannot read TIMESTAMP WITH LOCAL TIME ZONE back"}
HOSTILE = {
    "spark.sql.orc.enableVectorizedReader": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}


@cache
def case_of(name):
    return json.loads((GOLDEN / name / "case.json").read_text())


def expected_rows(case):
    rows = case["expected"]
    if rows is None:
        with gzip.open(GOLDEN / case["name"] / case["expected_file"], "rt") as file:
            rows = [json.loads(line) for line in file]
    names = [name for name, _ in case["columns"]]
    found = []
    for row in rows:
        row_id = tuple(row["row__id"].values()) if "row__id" in row else None
        values = [
            truncated(value) if (case["name"], name) in FINER_THAN_A_MICROSECOND else value
            for name, value in zip(names, row["values"], strict=False)
        ]
        partition = row["values"][len(names) :]
        if case["name"] in HIVE_SHOWS_A_TEXT_FOR_NULL:
            partition = [None if text == DEFAULT_PARTITION else text for text in partition]
        found.append((row_id, values + partition))
    return sorted(found, key=repr)


def truncated(text):
    """A timestamp's text cut after the sixth digit of the fraction."""
    if text is None or "." not in text:
        return text
    seconds, _, fraction = text.partition(".")
    fraction = fraction[:6].rstrip("0")
    return f"{seconds}.{fraction}" if fraction else seconds


def types_of(case):
    return [kind for _, kind in case["columns"] + case["partition_columns"]]


def read_case(spark, case, schema="given"):
    return read(
        spark,
        str(GOLDEN / case["name"] / "data"),
        [tuple(pair) for pair in case["columns"]] if schema == "given" else None,
        [tuple(pair) for pair in case["partition_columns"]] or None,
        insert_only=case["acid"] == "insert_only",
        file_format="text" if case["name"] == "insert_only_text" else "orc",
        valid_write_ids=case["valid_write_ids"],
        valid_txns=case["valid_txns"],
    )


@contextmanager
def configured(spark, settings):
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


readable = [name for name in CASES if name not in UNREADABLE]


@pytest.mark.parametrize("name", readable)
def test_a_golden_table_gives_the_rows_and_row_ids_that_hive_returned(spark, name):
    case = case_of(name)
    rows = read_case(spark, case)
    assert rows_of(rows.toArrow(), types_of(case)) == expected_rows(case)


@pytest.mark.parametrize("name", readable)
def test_a_hostile_session_reads_the_same(spark, name):
    case = case_of(name)
    with configured(spark, HOSTILE):
        rows = read_case(spark, case).toArrow()
    assert rows_of(rows, types_of(case)) == expected_rows(case)


# Tables with delete events, partitions, buckets, original files, aborted writers.
CHANGED = [
    "aborted_major", "bucketed_int", "compact_then_deltas", "delete_every_row", "merge", "minor_mr",
    "multi_writer", "nested", "original_files", "partitioned", "partitioned_bucketed",
    "streaming_batch", "update_nosplit",
]  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_the_reference_path_reads_the_same(spark, monkeypatch, name):
    monkeypatch.setattr("acidsql.storage.reading.read.Scan", partial(Scan, is_fast=False))
    case = case_of(name)
    rows = read_case(spark, case)
    assert "scalar-subquery" not in jvm.explain(rows, None)
    assert rows_of(rows.toArrow(), types_of(case)) == expected_rows(case)


# Facts that are not in the files: a text file has no columns, a rename is in the metastore only,
# and the newest file of these tables was written before the column's type or name was changed.
NOT_FROM_FILES = {"insert_only_text", "schema_evolution_rename"}


@pytest.mark.parametrize("name", readable)
def test_one_column_is_read_alone_by_the_names_that_the_files_have(spark, name):
    """The columns are taken from the files if possible. Columns before the last one are pruned; the
    last one must still have its own values."""
    case = case_of(name)
    rows = read_case(spark, case, schema="given" if name in NOT_FROM_FILES else None)
    assert rows.columns[-len(types_of(case)) :] == [
        name for name, _ in case["columns"] + case["partition_columns"]
    ]
    last = len(case["columns"]) - 1
    kept = ["row__id"] if "row__id" in rows.columns else []
    alone = rows.select(*kept, f"`{case['columns'][last][0]}`").toArrow()
    wanted = [(row_id, [values[last]]) for row_id, values in expected_rows(case)]
    assert rows_of(alone, [case["columns"][last][1]]) == sorted(wanted, key=repr)


@pytest.mark.parametrize("name", ["types", "nested", "schema_evolution", "partitioned", "merge"])
def test_the_python_reader_gives_the_same(spark, monkeypatch, name):
    """It is used if the JVM's time zone has daylight saving and a column is a TIMESTAMP."""
    monkeypatch.setattr("acidsql.storage.reading.scan.has_timestamp", lambda types: True)
    monkeypatch.setattr(zones, "zone_offset_micros", lambda spark: None)
    case = case_of(name)
    rows = read_case(spark, case)
    assert "MapInArrow" in jvm.explain(rows, None)
    if name == "types" and not OVER_CONNECT:  # without delete events
        files = (GOLDEN / name / "data").rglob("bucket_*")
        size = sum(file.stat().st_size for file in files)
        assert size / 2 < repeatable_query(rows).bytes < 2 * size  # as if Spark had listed them
    assert rows_of(rows.toArrow(), types_of(case)) == expected_rows(case)


def test_each_task_that_python_reads_in_gets_one_of_the_largest_files(spark):
    """The files are numbered from the largest on. So much for eight tasks of Spark's size."""
    tasks = _tasks(spark, 12, 900 << 20)
    found = tasks.selectExpr("id", "spark_partition_id() AS task").collect()
    assert sorted(row.id for row in found) == list(range(12))
    assert len({row.task for row in found if row.id < 8}) == 8
    assert _tasks(spark, 0, 0).collect() == []


@pytest.mark.parametrize(
    "name", ["partitioned", "large_multi_stripe", "original_files", "insert_only"]
)
def test_rows_are_counted_without_reading_a_column(spark, name):
    case = case_of(name)
    assert read_case(spark, case).count() == len(expected_rows(case))


def test_only_partition_columns_can_be_read(spark):
    case = case_of("partitioned")
    rows = read_case(spark, case).select("p1", "p2").collect()
    wanted = [tuple(values[-2:]) for _, values in expected_rows(case)]
    assert sorted(map(tuple, rows), key=repr) == sorted(wanted, key=repr)


def test_a_filter_on_a_partition_column_keeps_its_rows(spark):
    case = case_of("partitioned")
    rows = read_case(spark, case).where("p2 = 1 AND p1 = 'a'").select("id").collect()
    assert sorted(row.id for row in rows) == [1, 2, 10]


def test_a_partitioned_table_that_is_not_said_to_be_one_is_refused(spark):
    with pytest.raises(FormatError, match="looks like a partition"):
        read(spark, str(GOLDEN / "partitioned" / "data"), "id int, name string")


def test_an_insert_only_table_of_another_format_is_refused(spark):
    with pytest.raises(UnsupportedError, match="stored as textfile are not supported"):
        read(
            spark, str(GOLDEN / "insert_only_text" / "data"), "id int",
            insert_only=True, file_format="textfile",
        )  # fmt: skip


@pytest.mark.parametrize("schema", ["given", None])
def test_a_timestamp_with_local_time_zone_is_refused_by_name(spark, schema):
    with pytest.raises(FormatError, match="TIMESTAMP WITH LOCAL TIME ZONE is not supported"):
        read_case(spark, case_of("types_ltz"), schema)


def test_there_are_all_the_golden_tables():
    assert len(CASES) == 54
