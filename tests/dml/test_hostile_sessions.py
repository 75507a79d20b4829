"""A session's settings change how Spark reads and computes. They must not change acidsql's
results."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack

import pytest
from kit import counts, fill, ordered, refused
from over_hive import needs
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from acidsql.plan.analysis.lower import mapped_errors
from acidsql.plan.values.sqltext import Text
from acidsql.storage.spark.session.jvm import changed_conf, users_conf
from acidsql.storage.writing.staging import stage_rows

# Each session has several settings that do not affect each other: a session takes ten seconds.
SESSIONS = {
    "ansi off, no aliases sideways, quoted patterns": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
    },
    "case sensitive, raw literals": {
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
    },
    "double-quoted names, small batches": {
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
        "spark.sql.orc.columnarReaderBatchSize": "3",
        "spark.sql.shuffle.partitions": "5",
    },
    "elsewhere, row by row": {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.orc.enableVectorizedReader": "false",
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
    },
    "legacy, not adaptive": {
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "spark.sql.optimizer.excludedRules":
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
        "spark.sql.adaptive.enabled": "false",
    },
}  # fmt: skip


def test_a_quoted_name_is_a_name_where_a_session_has_patterns_of_names(acid, conf, spark):
    patterns = "spark.sql.parser.quotedRegexColumnNames"
    conf(patterns, "true")
    fill(acid, "t (id INT, `a.b` INT, axb INT, c CHAR(3)) PARTITIONED BY (`p q` INT)",
         "1, 10, 100, 'x', 7", "2, 20, 200, 'y', 7")  # fmt: skip
    acid.sql("UPDATE t SET `a.b` = `a.b` + 1, c = 'z' WHERE `a.b` = 10 AND `p q` = 7")
    acid.sql("MERGE INTO t USING (SELECT 2 AS id, 5 AS `a.b`) s ON t.id = s.id "
             "WHEN MATCHED THEN UPDATE SET `a.b` = s.`a.b`")  # fmt: skip
    acid.sql("DELETE FROM t WHERE axb = 300")
    rows = [(1, 11, 100, "z  ", 7), (2, 5, 200, "y  ", 7)]
    assert sorted(map(tuple, acid.sql("SELECT * FROM t").collect())) == rows
    assert sorted(map(tuple, acid.table("t").collect())) == rows
    assert [row[0] for row in acid.sql("SELECT `a.b` FROM t ORDER BY id").collect()] == [11, 5]
    acid.sql("ALTER TABLE t PARTITION (`p q` = 7) COMPACT 'major' AND WAIT")
    assert sorted(map(tuple, acid.sql("TABLE t").collect())) == rows
    error = refused(acid, "SELECT `(id|c)?+.+` FROM t", "UNRESOLVED_COLUMN", "`(id|c)?+.+`")
    assert "a quoted name is a name" in error.message
    assert spark.conf.get(patterns) == "true"


@pytest.mark.parametrize("name, other", [
    ("spark.sql.parser.quotedRegexColumnNames", "true"),
    ("spark.sql.lateralColumnAlias.enableImplicitResolution", "false"),
])  # fmt: skip
def test_set_and_reset_reach_the_settings_that_statements_change(acid, conf, spark, name, other):
    default = spark.conf.get(name)
    conf(name, other)
    assert acid.sql(f"SET {name}").collect()[0].value == other
    acid.sql(f"SET {name} = {default}")
    assert spark.conf.get(name) == default
    acid.sql(f"SET {name} = {other}")
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    assert spark.conf.get(name) == other
    acid.sql(f"RESET {name}")
    assert spark.conf.get(name) == default


@pytest.mark.parametrize("name", SESSIONS)
def test_a_mixed_script_gives_the_same_in_every_session(acid, conf, name):
    for key, value in SESSIONS[name].items():
        conf(key, value)
    fill(
        acid,
        "t (id INT, v VARCHAR(5), d DECIMAL(8,2), at TIMESTAMP, b TINYINT, "
        "m MAP<STRING, TIMESTAMP>) PARTITIONED BY (p STRING) CLUSTERED BY (id) INTO 2 BUCKETS",
    )
    ntz = "TIMESTAMP_NTZ'2024-03-10 02:30:00'"  # does not exist in New York
    done = [
        counts(acid, f"INSERT INTO t VALUES (1, 'a', 1.005, {ntz}, 1, map('k', {ntz}), 'x y'), "
               "(2, 'b', NULL, TIMESTAMP_NTZ'0001-01-01 00:00:00.000001', -128, NULL, NULL)"),
        counts(acid, f"INSERT INTO t SELECT id + 3, concat('v', id), id / 3.0, {ntz}, id, map(), "
               "concat('p/', id % 2) FROM range(6)"),
        counts(acid, "UPDATE t SET d = id + 0.5, v = concat(v, '!') WHERE id IN "
               "(SELECT id FROM t WHERE b >= 1) AND p <> 'p/0'"),
        counts(acid, "DELETE FROM t WHERE id = 4 OR v = 'nobody'"),
        counts(acid, "MERGE INTO t USING (SELECT id, 9 AS b FROM range(1, 10)) s ON t.id = s.id "
               "WHEN MATCHED AND t.b = 1 THEN UPDATE SET b = s.b + 1 "
               "WHEN MATCHED AND t.id = 5 THEN DELETE "
               "WHEN NOT MATCHED THEN INSERT (id, b, p) VALUES (s.id, s.b, 'new')"),
    ]  # fmt: skip
    assert done == [(2, 0, 0), (6, 0, 0), (0, 4, 0), (0, 0, 1), (2, 1, 1)]
    for overflow in ("INSERT INTO t (id, b, p) VALUES (1, 300, 'x')", "UPDATE t SET b = id + 300",
                     "INSERT INTO t (id, v, p) SELECT 1, 'too long', 'x'"):  # fmt: skip
        with pytest.raises(Exception, match=r"CAST_OVERFLOW_IN_TABLE_INSERT|EXCEED_LIMIT_LENGTH"):
            acid.sql(overflow)
    shown = "id, v, string(d), string(at), b, string(m['k']), p"
    found = ordered(acid.sql(f"SELECT {shown} FROM t").collect())
    gap = "2024-03-10 02:30:00"
    assert found == ordered([
        (1, "a!", "1.50", gap, 10, gap, "x y"),
        (2, "b", None, "0001-01-01 00:00:00.000001", -128, None, None),
        (3, "v0", "0.00", gap, 0, None, "p/0"),
        (6, "v3!", "6.50", gap, 3, None, "p/1"),
        (7, "v4", "1.33", gap, 4, None, "p/0"),
        (8, "v5!", "8.50", gap, 5, None, "p/1"),
        (4, None, None, None, 9, None, "new"),
        (9, None, None, None, 9, None, "new"),
    ])  # fmt: skip


@needs("keeps_state_tables")
@pytest.mark.parametrize("name", SESSIONS)
def test_changes_are_applied_alike_in_every_session(acid, conf, name):
    for key, value in SESSIONS[name].items():
        conf(key, value)
    acid.sql(
        "CREATE TABLE t (id INT, v CHAR(3), d DECIMAL(8,2), at TIMESTAMP, "
        "m MAP<STRING, TIMESTAMP>) PARTITIONED BY (p STRING) CLUSTERED BY (v) INTO 2 BUCKETS"
    )
    at = "TIMESTAMP_NTZ'2024-03-10 02:30:0"  # does not exist in New York

    def apply(*records: str) -> tuple[int, ...]:
        (row,) = acid.sql(
            f"AUTO CDC INTO t FROM (SELECT * FROM VALUES {', '.join(records)} AS "
            "s (ID, v, d, At, m, p, op)) KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY At "
            "COLUMNS * EXCEPT (op)"
        ).collect()
        return tuple(row[1:4] + row[6:])

    acid.sql("SET acidsql.driver.max.rows = 0")
    first = apply(
        f"(1, 'a', 1.005, {at}1', map('k', {at}1'), 'x y', 'u')",
        f"(1, 'b', 2.5, {at}0', NULL, NULL, 'u')",
        f"(2, 'c', NULL, {at}1', NULL, NULL, 'u')",
        f"(3, NULL, NULL, {at}1', NULL, NULL, 'd')",
    )
    acid.sql("RESET acidsql.driver.max.rows")
    second = apply(
        f"(1, 'z', 9.5, {at}1', map('k', {at}1'), 'z', 'u')",
        f"(2, 'é', 3.5, {at}1.000001', map(), 'p/1', 'u')",
        f"(3, 'd', NULL, {at}0', NULL, NULL, 'u')",
    )
    assert (first, second) == ((2, 0, 0, 4, 1, 0), (0, 1, 0, 3, 1, 1))
    found = ordered(acid.sql("SELECT id, v, string(d), string(m['k']), p FROM t").collect())
    gap = "2024-03-10 02:30:01"
    assert found == ordered([(1, "a  ", "1.01", gap, "x y"), (2, "é  ", "3.50", None, "p/1")])


@pytest.mark.parametrize("name", SESSIONS)
def test_few_rows_become_the_same_in_every_session(acid, conf, name):
    """Whether the driver writes them, from Python values, or a job writes them."""
    for key, value in SESSIONS[name].items():
        conf(key, value)
    ntz = "TIMESTAMP_NTZ'2024-03-10 02:30:00.000001'"  # does not exist in New York
    shown = "id, v, string(d), hex(b), string(at), to_json(a), to_json(s), string(f), p"
    found = []
    for limit, table in ((0, "by_jobs"), (1000, "by_the_driver")):
        acid.sql(f"SET acidsql.driver.max.rows = {limit}")
        acid.sql(
            f"CREATE TABLE {table} (id INT, v CHAR(4), d DECIMAL(8,2), b BINARY, at TIMESTAMP, "
            "a ARRAY<DATE>, s STRUCT<x: TIMESTAMP, Y: TINYINT>, f FLOAT) "
            "PARTITIONED BY (p STRING) CLUSTERED BY (id) INTO 2 BUCKETS"
        )
        acid.sql(
            f"INSERT INTO {table} SELECT id, concat('ü', id), id / 3.0, X'00FF80', {ntz}, "
            f"array(DATE'0001-01-01', NULL), named_struct('x', {ntz}, 'Y', id), "
            "if(id = 2, float('NaN'), 1 / 3), concat('p/', id % 2) FROM range(0, 6, 1, 1)"
        )
        acid.sql(f"INSERT INTO {table} (id, p) VALUES (6, NULL)")
        done = [
            counts(acid, f"UPDATE {table} SET d = d + 1, v = nullif(v, 'ü3') WHERE id > 1"),
            counts(acid, f"DELETE FROM {table} WHERE id = 0 OR p = 'p/1' AND id > 4"),
        ]
        assert done == [(0, 5, 0), (0, 0, 2)]
        found.append(ordered(acid.sql(f"SELECT {shown} FROM {table}").collect()))
    assert found[0] == found[1]
    assert len(found[0]) == 5


@pytest.mark.classic
def test_rows_in_temporary_files_are_those_that_were_written(spark, conf, tmp_path):
    """Whatever Parquet files the session writes for other programs."""
    for name, value in {
        "outputTimestampType": "TIMESTAMP_MILLIS",
        "datetimeRebaseModeInWrite": "EXCEPTION",
        "writeLegacyFormat": "true",
        "compression.codec": "lzo",  # needs a library that Spark does not bring
    }.items():
        conf(f"spark.sql.parquet.{name}", value)
    rows = spark.sql(
        "SELECT TIMESTAMP_LTZ'1500-01-01 00:00:00.123456' AS at, DATE'0001-01-01' AS d, "
        "array(1.5BD, NULL) AS a, TIMESTAMP_NTZ'0001-01-01 00:00:00.000001' AS n, "
        "DATE'+12000-01-01' AS late, named_struct('x', cast(X'FF' AS STRING), 'Y', NULL :: INT) "
        "AS s, map('k', X'00FF', 'l', NULL) AS m, float('NaN') AS f"
    )
    wall_clocks = rows.drop("at")  # the driver brings these back itself
    found = []
    for given, few in ((rows, 0), (rows, 9), (wall_clocks, 0), (wall_clocks, 9)):
        shown = [f"string({name})" for name in given.columns] + ["hex(s.x)", "hex(m['k'])"]
        with stage_rows(given, str(tmp_path), 1, few) as kept:
            assert kept.selectExpr(shown).collect() == given.selectExpr(shown).collect()
            found.append(kept.schema)
    assert found[:3:2] == found[1::2]


def test_quotes_and_backslashes_mean_what_the_session_says(acid, conf):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t VALUES (1, \"double\"), (2, 'back\\\\slash'), (3, r'raw\\n')")
    conf("spark.sql.parser.escapedStringLiterals", "true")
    acid.sql("INSERT INTO t VALUES (4, 'back\\slash')")
    conf("spark.sql.ansi.enabled", "true")
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    assert counts(acid, """UPDATE "t" SET "v" = 'quoted' WHERE "t"."id" = 1""") == (0, 1, 0)
    assert ordered(acid.sql('SELECT * FROM "t"').collect()) == [
        (1, "quoted"), (2, "back\\slash"), (3, "raw\\n"), (4, "back\\slash")]  # fmt: skip


def test_two_python_objects_of_one_session_share_what_is_changed_for_a_while(spark):
    twin = SparkSession(spark.sparkContext, spark._jsparkSession)
    stranger = spark.newSession()
    name, first, second = "spark.sql.shuffle.partitions", ExitStack(), ExitStack()
    before = spark.conf.get(name)
    with first, second:
        first.enter_context(changed_conf(spark, {name: "31"}))
        second.enter_context(changed_conf(twin, {name: "32"}))
        assert users_conf(spark, name) == users_conf(twin, name) == before
        assert users_conf(stranger, name) == stranger.conf.get(name) == before
        first.close()
        assert spark.conf.get(name) == "32"
        second.close()
        assert spark.conf.get(name) == before


def test_an_error_of_one_thread_silences_no_other(spark):
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    seen = []

    class Seeing(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())

    handler = Seeing()
    logger.addHandler(handler)
    first, second = ExitStack(), ExitStack()
    try:
        with first, second:
            first.enter_context(mapped_errors(Text("SELECT 1")))
            second.enter_context(mapped_errors(Text("SELECT 1")))
            logger.error("ours")
            thread = threading.Thread(target=lambda: logger.error("another's"))
            thread.start()
            thread.join()
            first.close()
            second.close()
            logger.error("afterwards")
    finally:
        logger.removeHandler(handler)
    assert seen == ["another's", "afterwards"]
