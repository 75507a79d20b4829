"""Batches of rows for Python: Spark does not measure them if no row is long, and they stay
bounded."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest
from kit import calls_of, counts, rows
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812

import acidsql
from acidsql.costs import FastPath
from acidsql.storage.spark.session.jvm import changed_conf, users_conf
from acidsql.storage.writing import job as write
from acidsql.storage.writing.batches import is_long_row, measured_batches, unmeasured_batches

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# One row is long, and its first text is NULL.
_SOURCE = "SELECT id, if(id = 7, NULL, 'x') AS a, repeat('ü', if(id = 7, 10000, 3)) AS b FROM "


# Without a JVM, each row is measured.
pytestmark = [pytest.mark.usefixtures("by_jobs"), pytest.mark.classic]


@pytest.fixture
def t(acid, monkeypatch):
    monkeypatch.setattr(write, "_HAVE_LONG_ROWS", set())  # an earlier test's table lay here, too
    acid.sql("CREATE TABLE t (id BIGINT, a STRING, b STRING)")
    return acid


def _unmeasured(acid):
    """Whether each job of the last statement, in order, had unmeasured batches."""
    is_last_unmeasured = FastPath.UNMEASURED_BATCHES in acid.last.costs.fast_paths
    return [True] * (acid.last.costs.write_jobs - 1) + [is_last_unmeasured]


def _lengths(acid):
    return rows(acid, "SELECT id, a, length(b) FROM t")


def test_short_rows_go_to_python_in_batches_that_are_not_measured(t):
    assert counts(t, _insert(7)) == (7, 0, 0)
    assert _unmeasured(t) == [True]


def test_a_long_row_makes_the_statement_run_again_with_measured_batches(t, spark):
    before = [spark.conf.get(name) for name in (_BYTES, _RECORDS)]
    assert counts(t, _insert(10)) == (10, 0, 0)
    assert _unmeasured(t) == [True, False]
    assert _lengths(t) == [(i, None if i == 7 else "x", 10000 if i == 7 else 3) for i in range(10)]
    assert [spark.conf.get(name) for name in (_BYTES, _RECORDS)] == before


def test_a_table_that_has_got_a_long_row_is_not_tried_again(t):
    t.sql(_insert(10))
    assert _unmeasured(t) == [True, False]
    assert counts(t, "UPDATE t SET b = concat(b, 'z')") == (0, 10, 0)
    assert _unmeasured(t) == [False]
    t.sql("CREATE TABLE u (id BIGINT, a STRING, b STRING)")
    t.sql("INSERT INTO u SELECT id, 'x', 'y' FROM range(10)")
    assert _unmeasured(t) == [True]


@pytest.mark.parametrize("kind", ["UPDATE", "MERGE"])
def test_an_update_or_a_merge_that_makes_a_long_row_changes_each_row_once(t, kind):
    t.sql(_insert(7))
    if kind == "UPDATE":
        longer = "repeat('z', if(id = 3, 20000, 2))"
        assert counts(t, f"UPDATE t SET b = {longer} WHERE id < 5") == (0, 5, 0)
        lengths = [2, 2, 2, 20000, 2, 3, 3]
    else:
        merge = (
            f"MERGE INTO t USING ({_SOURCE} range(5, 9)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT *"
        )
        assert counts(t, merge) == (2, 2, 0)
        lengths = [3, 3, 3, 3, 3, 3, 3, 10000, 3]
    assert _unmeasured(t) == [True, False]
    assert [length for _, _, length in _lengths(t)] == lengths


def test_nothing_of_the_first_try_is_left_in_the_table(t):
    t.sql(_insert(10))
    [file] = {os.path.dirname(row.path) for row in t.files("t").collect()}
    assert os.listdir(os.path.dirname(file)) == [os.path.basename(file)]
    assert sum(row.rows for row in t.files("t").collect()) == 10


def test_keys_alone_need_no_guard(t, monkeypatch):
    t.sql(_insert(7))
    jobs = calls_of(monkeypatch, write, "_write_batches")
    t.sql("DELETE FROM t WHERE id IN (SELECT id FROM range(5, 20))")
    assert _unmeasured(t) == [True]
    assert "raise_error" not in jobs[0][0].rows._jdf.queryExecution().toString()
    assert [id for id, *_ in _lengths(t)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("query", "is_measured"),
    [
        ("SELECT id, CAST(id AS STRING) s, CAST(id AS DECIMAL(38,2)) d FROM range(3)", False),
        (
            "SELECT id, DATE'2024-01-01' d, TIMESTAMP_NTZ'2024-01-01 00:00:00' n FROM range(3)",
            False,
        ),
        ("SELECT X'0001' b, CAST('a' AS VARCHAR(3)) v FROM range(3)", False),
        ("SELECT id, array(id) a FROM range(3)", True),
        ("SELECT id, named_struct('s', 'x') FROM range(3)", True),
        ("SELECT explode(sequence(1, 3))", True),
        ("SELECT length(twice(CAST(id AS STRING))) FROM range(3)", True),
        ("SELECT id FROM range(3) WHERE id = (SELECT max(length(twice('a'))))", True),
    ],
)
def test_rows_are_measured_where_their_length_or_what_makes_them_is_not_known(
    spark, query, is_measured
):
    spark.udf.register("twice", lambda text: text * 2)
    assert (unmeasured_batches(spark.sql(query)) is None) is is_measured


@pytest.mark.parametrize(("name", "value"), [(_BYTES, "1m"), (_RECORDS, "10"), (_RECORDS, "0")])
def test_what_somebody_has_chosen_stays(spark, conf, name, value):
    conf(name, value)
    frame = spark.range(3)
    assert unmeasured_batches(frame) is None
    assert (measured_batches(frame).settings == {}) is (name == _RECORDS)


def test_the_bound_is_of_all_texts_of_a_row_together(spark):
    text = spark.range(3).select(
        "id",
        F.expr("repeat('x', 16384 - 2 * int(id))").alias("a.b"),
        F.expr("repeat('y', int(id))"),
    )
    batches = unmeasured_batches(text)
    assert batches.rows.columns == text.columns
    assert batches.rows.collect() == text.collect()
    longer = unmeasured_batches(text.select("*", F.expr("X'00'").alias("bytes")))
    with pytest.raises(Exception, match="more than 16384 bytes of text") as error:
        longer.rows.collect()
    assert is_long_row(error.value)


def test_spark_makes_no_method_that_java_would_never_compile(t, spark):
    limit = "spark.sql.codegen.hugeMethodLimit"
    before = spark.conf.get(limit)
    spark.udf.register("told", lambda: TaskContext.get().getLocalProperty(limit))
    t.sql("INSERT INTO t SELECT id, told(), '' FROM range(2)")
    source = "SELECT 7L AS id, told() AS a, 1 AS n"
    if t.metastore.abilities.keeps_state_tables:
        # Its source is evaluated once, into temporary files.
        t.sql(f"AUTO CDC INTO t FROM ({source}) KEYS (id) SEQUENCE BY n COLUMNS (id, a)")
    else:
        t.sql(f"INSERT INTO t SELECT id, a, '' FROM ({source})")
    t.sql("INSERT INTO t VALUES (8, '', '')")
    t.sql("SET acidsql.driver.max.rows = 1000")  # the driver writes few rows
    t.sql("UPDATE t SET a = told() WHERE id = 8")
    assert t.last.costs.write_jobs == 0
    assert {(row.id, row.a) for row in t.table("t").collect()} == {
        (id, "8000") for id in (0, 1, 7, 8)
    }
    assert spark.conf.get(limit) == before


def test_two_statements_at_a_time_put_the_users_settings_back(spark):
    first, second = unmeasured_batches(spark.range(3)), ExitStack()
    with ExitStack() as other:
        second.enter_context(changed_conf(spark, first.settings))
        other.enter_context(changed_conf(spark, measured_batches(spark.range(3)).settings))
        # A value that the first block has set does not count as set by the user.
        other.enter_context(changed_conf(spark, unmeasured_batches(spark.range(3)).settings))
        second.close()
    assert [spark.conf.get(name) for name in (_BYTES, _RECORDS)] == ["67108864b", "10000"]


def test_who_leaves_first_takes_nothing_from_the_other(spark):
    first, second = ExitStack(), ExitStack()
    first.enter_context(changed_conf(spark, {_RECORDS: "7", _BYTES: "1000"}))
    second.enter_context(changed_conf(spark, {_RECORDS: "7"}))
    first.close()
    assert [spark.conf.get(name) for name in (_BYTES, _RECORDS)] == ["67108864b", "7"]
    second.close()
    assert spark.conf.get(_RECORDS) == "10000"


def test_settings_changed_within_others_are_those_of_the_outer_again(spark):
    with changed_conf(spark, {_RECORDS: "7"}):
        with changed_conf(spark, {_RECORDS: "8"}):
            assert spark.conf.get(_RECORDS) == "8"
        assert spark.conf.get(_RECORDS) == "7"
        assert users_conf(spark, _RECORDS) is None
    assert (spark.conf.get(_RECORDS), users_conf(spark, _RECORDS)) == ("10000", None)


@pytest.mark.parametrize("name", ["octet_length", "raise_error"])
def test_a_function_of_the_sessions_own_does_no_harm(spark, tmp_path, name):
    """In Spark 4.1 a session's own functions hide Spark's, and cannot be dropped again."""
    session = spark.newSession()
    session.udf.register(name, lambda *_: None, "int")
    with acidsql.connect(session, warehouse=str(tmp_path), compactor="off") as acid:
        acid.sql("SET acidsql.driver.max.rows = 0")
        acid.sql("CREATE TABLE t (id BIGINT, a STRING, b STRING)")
        acid.sql(_insert(10))
        assert _unmeasured(acid) == ([False] if session.version < "4.2" else [True, False])
        assert len(_lengths(acid)) == 10


def _insert(count):
    return f"INSERT INTO t {_SOURCE} range(0, {count})"
