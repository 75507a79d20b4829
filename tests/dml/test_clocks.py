"""A statement has one time, however many queries it runs: see ``StatementTime``."""

from __future__ import annotations

import time

import pytest
from kit import rows

from acidsql.sql.queries.conditions import has_lasting_conditions
from acidsql.storage.reading.pruning import source_partitions

SECOND = "CAST(CAST(date_format({}, 's') AS INT) % 12 AS STRING)"  # another one a second later
CLOCKS = [
    SECOND.format("current_timestamp()"),
    SECOND.format("CURRENT_TIMESTAMP"),
    SECOND.format("now()"),
    SECOND.format("localtimestamp()"),
    "CAST(CAST(right(CAST(current_time(0) AS STRING), 2) AS INT) % 12 AS STRING)",
    "CAST(unix_timestamp() % 12 AS STRING)",
    f"(SELECT max({SECOND.format('now()')}) FROM range(2))",
]


@pytest.fixture
def slow(monkeypatch):
    """More than a second goes by after a query has read the source's partitions."""
    real = source_partitions.source_predicate

    def slowly(*args, **options):
        found = real(*args, **options)
        time.sleep(1.1)
        return found

    monkeypatch.setattr("acidsql.statements.queries.statement_demands.source_predicate", slowly)


@pytest.fixture
def seconds(acid):
    """A table with a row in each partition."""
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO t SELECT 1, 'old', CAST(id AS STRING) FROM range(12)")
    return acid


MERGE = (
    "MERGE INTO t USING {source} s ON t.p = s.p AND t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'new' "
    "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'inserted', s.p)"
)


def merged(acid, source, **frames):
    """How many rows a MERGE inserted and updated."""
    row = acid.sql(MERGE.format(source=source), **frames).first()
    return row.num_inserted_rows, row.num_updated_rows


@pytest.mark.usefixtures("slow")
def test_a_merge_finds_the_row_of_its_time(seconds, spark):
    acid = seconds
    for clock in CLOCKS:
        assert merged(acid, f"(SELECT 1 AS id, {clock} AS p)") == (0, 1), clock
    query = f"SELECT 1 AS id, {CLOCKS[0]} AS p"
    acid.sql(f"CREATE VIEW stored AS {query}")
    spark.sql(query).createOrReplaceTempView("temporary")
    assert merged(acid, "stored") == (0, 1)
    acid.sql("DROP VIEW stored")  # Spark's, as it names no ACID table
    assert merged(acid, "temporary") == (0, 1)
    spark.catalog.dropTempView("temporary")
    assert merged(acid, "{given}", given=spark.sql(query)) == (0, 1)
    merge = acid.merge_into(spark.sql(query).alias("s"), "t", "t.p = s.p AND t.id = s.id")
    merge.whenMatched().update({"v": "'new'"}).whenNotMatched().insert(
        {"id": "s.id", "v": "'inserted'", "p": "s.p"}
    ).merge()
    (done,) = acid.last.counts
    assert (done.inserted, done.updated) == (0, 1)


@pytest.mark.usefixtures("slow")
def test_clauses_have_the_time_of_the_source(seconds):
    source = f"(SELECT 1 AS id, now() AS at, {CLOCKS[0]} AS p)"
    done = seconds.sql(
        f"MERGE INTO t USING {source} s ON t.p = s.p AND t.id = s.id "
        "WHEN MATCHED AND s.at = current_timestamp() THEN UPDATE SET v = 'new'"
    )
    assert done.first().num_updated_rows == 1


@pytest.mark.classic
def test_the_time_is_the_same_in_all_tables_of_a_multi_insert_and_in_returning(acid):
    acid.sql("CREATE TABLE a (id INT, at TIMESTAMP)")
    acid.sql("CREATE TABLE b (id INT, at TIMESTAMP DEFAULT current_timestamp())")
    acid.sql("CREATE TABLE c (id INT, at TIMESTAMP, was TIMESTAMP)")
    acid.sql(
        "FROM (SELECT CAST(id AS INT) AS id, now() AS at FROM range(3)) s "
        "INSERT INTO a SELECT id, current_timestamp() INSERT INTO b (id) SELECT id "
        "INSERT INTO c SELECT id, localtimestamp(), at"
    )
    every = "SELECT at FROM a UNION ALL SELECT at FROM b UNION ALL SELECT at FROM c"
    assert rows(acid, f"SELECT count(*), count(DISTINCT at) FROM ({every})") == [(9, 1)]
    assert rows(acid, "SELECT count(*) FROM c WHERE was = at") == [(3,)]
    new = acid.sql("UPDATE a SET at = now() WHERE id = 1 RETURNING at, localtimestamp() AS now")
    time.sleep(0.01)
    ((at, now),) = new.collect()
    assert at == now


def test_a_select_reads_the_clock_when_it_runs(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    times = acid.sql("SELECT id, now() AS at FROM t")
    assert times.first().at < times.first().at
    acid.sql("CREATE TEMPORARY VIEW v AS SELECT id, now() AS at FROM t")
    assert acid.sql("SELECT at FROM v").first().at < acid.sql("SELECT at FROM v").first().at


def test_a_delete_by_the_time_takes_all_partitions_up_to_it(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p TIMESTAMP)")
    moments = "localtimestamp() + make_interval(0, 0, 0, 0, 0, 0, (id - 10) * 100) FROM range(20)"
    acid.sql(f"INSERT INTO t SELECT CAST(id AS INT), {moments}")
    before = {row.p for row in acid.sql("SELECT p FROM t").collect()}
    gone = acid.sql("DELETE FROM t WHERE p <= localtimestamp() RETURNING p, localtimestamp() AS t")
    gone, left = gone.collect(), {row.p for row in acid.sql("SELECT p FROM t").collect()}
    assert len(gone) > 10
    assert left == {p for p in before if p > gone[0].t}
    assert left == before - {row.p for row in gone}


OLD = "DELETE FROM t WHERE d < current_date() - INTERVAL 18 DAYS"


@pytest.mark.classic
def test_the_day_tells_which_partitions_a_statement_reads(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (d DATE)")
    days = "date_add(current_date(), CAST(id AS INT)) FROM range(-20, 20)"
    acid.sql(f"INSERT INTO t SELECT 1, {days}")
    plan = acid.sql(f"EXPLAIN {OLD}").first()[0]
    assert "2 of 40 directories" in plan and "partitions: 2 of 40" in plan
    acid.sql(OLD)
    assert rows(acid, "SELECT count(*) FROM t") == [(38,)]


def test_a_day_that_spark_reads_in_a_text_decides_on_no_lock(acid):
    assert has_lasting_conditions("SELECT * FROM t WHERE d < DATE'2021-01-01'")
    assert not has_lasting_conditions("SELECT * FROM t WHERE d < date 'Today'")
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (d DATE)")
    acid.sql("INSERT INTO t VALUES (1, DATE'2020-01-01'), (2, DATE'9999-01-01')")
    for day in ("DATE'2021-01-01'", "'2021-01-01'"):
        locks = acid.sql(f"EXPLAIN DELETE FROM t WHERE d < {day}").first()[0]
        assert "EXCL_WRITE on default.t partition d=2020-01-01" in locks, locks[:200]
    for day in ("DATE'today'", "'today'", "DATE ' Tomorrow '"):
        locks = acid.sql(f"EXPLAIN DELETE FROM t WHERE d < {day}").first()[0]
        assert "EXCL_WRITE on default.t\n" in locks, locks[:200]
    acid.sql("DELETE FROM t WHERE d < DATE'today'")
    assert rows(acid, "SELECT id FROM t") == [(2,)]


@pytest.mark.classic
def test_what_is_cached_keeps_its_time(acid, spark):
    acid.sql("CREATE TABLE t (id INT, at TIMESTAMP)")
    given = spark.sql("SELECT 1 AS id, localtimestamp() AS at").cache()
    cached = given.first().at
    for _ in range(2):
        acid.sql("MERGE INTO t USING {given} s ON t.at = s.at WHEN NOT MATCHED THEN INSERT *",
                 given=given)  # fmt: skip
    given.unpersist()
    assert rows(acid, "SELECT * FROM t") == [(1, cached)]
