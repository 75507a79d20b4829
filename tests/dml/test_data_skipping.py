"""Data that a query's condition rules out is not read (counted, not timed), and no row is lost."""

from __future__ import annotations

import json
import random

import pytest
from kit import ordered, rows

from acidsql.acid.table import TableName
from acidsql.acid.values.predicate import VALUES_MAX, Comparison, TypedValue
from acidsql.storage.reading import read as reading
from acidsql.storage.reading import scan
from acidsql.storage.reading.pruning import sargs
from acidsql.storage.spark.session import jvm

ROWS = 60_000  # six row groups


@pytest.fixture(autouse=True)
def any_size_is_worth_it(monkeypatch):
    monkeypatch.setattr(reading, "MUCH_DATA", 0)
    monkeypatch.setattr(reading, "MANY_PARTITIONS", 0)


@pytest.fixture
def t(acid):
    acid.sql(
        "CREATE TABLE t (id BIGINT, small INT, name STRING, day DATE, price DECIMAL(12,2), "
        "ratio DOUBLE, code VARCHAR(10), late BOOLEAN, old BOOLEAN) "
        "TBLPROPERTIES ('orc.bloom.filter.columns'='name')"
    )
    acid.sql(
        "INSERT INTO t SELECT id, CAST(id AS INT), concat('n', id * 7919 % 60000), "
        "date_add(DATE'2020-01-01', CAST(id / 1000 AS INT)), CAST(id AS DECIMAL(12,2)) / 4, "
        f"id / 3.0D, lpad(id, 10, '0'), id >= 55000, IF(id = 9, NULL, id < 50000) "
        f"FROM range(0, {ROWS}, 1, 1)"
    )
    return acid


def rows_read(frame):
    """The number of rows that the readers of files gave, before any condition was evaluated."""
    frame.collect()
    return _rows_read(frame._jdf.queryExecution().executedPlan())


def _rows_read(plan):
    return sum(scan.metrics().apply("numOutputRows").value() for scan in _file_scans(plan))


def columns_read(frame):
    """The user's columns that the readers of files are asked for."""
    frame.collect()
    (one,) = _file_scans(frame._jdf.queryExecution().executedPlan())
    row = json.loads(one.requiredSchema().apply("row").dataType().json())
    return {field["name"] for field in row["fields"]} - {"__acidsql_none"}


def _file_scans(plan):
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return _file_scans(plan.executedPlan())
    if name.endswith("QueryStageExec"):
        return _file_scans(plan.plan())
    if name == "FileSourceScanExec":
        return [plan]
    children = plan.children()
    return [one for at in range(children.size()) for one in _file_scans(children.apply(at))]


def test_only_the_columns_that_a_query_mentions_are_read(t):
    every = {"id", "small", "name", "day", "price", "ratio", "code", "late", "old"}
    assert columns_read(t.sql("SELECT * FROM t")) == every
    assert columns_read(t.sql("SELECT sum(price), max(code) FROM t")) == {"price", "code"}
    assert columns_read(t.sql("SELECT row__id FROM t WHERE small = 3")) == {"small"}
    assert columns_read(t.sql("SELECT count(*) FROM t")) == set()
    assert t.sql("SELECT count(*) FROM t").first()[0] == ROWS


SKIPPING = [
    "id = 5000",
    "id IN (7, 45000)",
    "id IN (" + ", ".join(str(number) for number in range(20)) + ")",
    "id BETWEEN 100 AND 300",
    "100 > id",
    "small >= 59000",
    "day = DATE'2020-01-20'",
    "price < 2.5",
    "code = '0000012345'",
    "late",
    "late = true AND ratio > 0",
    "NOT old",
    "id < 10 OR id > 59990",
    "id = 12345 AND ratio > 0 AND name LIKE 'n%'",
    "id = :one",
]


def test_row_groups_that_cannot_hold_such_rows_are_not_read(t):
    assert rows_read(t.sql("SELECT * FROM t WHERE coalesce(id, 0) >= 0")) == ROWS
    whole = t.sql("SELECT * FROM t").persist()
    for condition in SKIPPING:
        args = {"one": 77} if ":one" in condition else None
        found = t.sql(f"SELECT * FROM t WHERE {condition}", args)
        assert rows_read(found) <= ROWS // 3, condition
        expected = whole.where(condition.replace(":one", "77"))
        assert ordered(found.collect()) == ordered(expected.collect()) != [], condition
    whole.unpersist()


def test_bloom_filters_leave_row_groups_out(t):
    assert rows_read(t.sql("SELECT id FROM t WHERE name = 'n42'")) <= ROWS // 3
    assert rows_read(t.sql("SELECT id FROM t WHERE name = 'none of them'")) == 0
    assert rows(t, "SELECT name FROM t WHERE name = 'n42'") == [("n42",)]


READING = [
    "ratio < 1",  # NaN
    "id = (SELECT max(id) FROM t)",
    "id % 1000 = 5",
    "id = 5 OR rand() > 0.5",
    "day = current_date()",
    "day > CAST('today' AS DATE) OR id = 1",
    "name > '\U0001f600'",
]


def test_what_orc_may_decide_otherwise_or_another_time_is_read(t):
    for condition in READING:
        found = t.sql(f"SELECT id FROM t WHERE {condition}")
        assert rows_read(found) >= ROWS, condition


def test_a_table_that_is_read_twice_shows_what_either_reading_needs(t):
    assert rows(
        t, "WITH w AS (SELECT id FROM t) "
        "SELECT a.id, b.id FROM w a JOIN w b ON a.id + 50000 = b.id WHERE a.id = 5 AND b.id > 6"
    ) == [(5, 50005)]  # fmt: skip
    assert rows(t, "SELECT count(*) FROM t WHERE id = 3 UNION ALL SELECT count(*) FROM t") == [
        (1,), (ROWS,),
    ]  # fmt: skip


def test_changes_are_found_where_files_are_passed_over(t):
    t.sql("UPDATE t SET name = 'changed' WHERE id = 50000")
    t.sql("DELETE FROM t WHERE id BETWEEN 10 AND 19")
    t.sql("MERGE INTO t USING (SELECT 5 AS id) s ON t.id = s.id AND t.id < 100 "
          "WHEN MATCHED THEN UPDATE SET name = 'merged'")  # fmt: skip
    assert rows(t, "SELECT id, name FROM t WHERE id = 50000 OR name = 'merged'") == [
        (5, "merged"), (50000, "changed"),
    ]  # fmt: skip
    assert rows(t, "SELECT count(*) FROM t WHERE id < 20") == [(10,)]
    assert rows(t, "SELECT count(*), count(DISTINCT id) FROM t") == [(ROWS - 10, ROWS - 10)]


def test_few_rows_are_looked_for_by_the_driver_if_it_can_tell_what_a_row_needs(t, searches):
    t.sql("UPDATE t SET name = 'one' WHERE id = 7 AND small % 7 = 0")
    t.sql("UPDATE t SET name = 'none' WHERE id = 8 AND small % 7 = 0")
    t.sql("DELETE FROM t WHERE day = DATE'2020-01-02' AND id < 1010")
    assert [found.num_rows for found in searches] == [1, 1, 10]
    # A function that needs Spark's scan of files; and more rows than the driver takes.
    t.sql("UPDATE t SET name = input_file_name() WHERE id = 9")
    t.sql("UPDATE t SET name = 'many' WHERE id > 20000")
    assert searches[3:] == [None]
    assert rows(t, "SELECT id FROM t WHERE name = 'one' OR name LIKE 'file:%bucket_00000'") == [
        (7,), (9,),
    ]  # fmt: skip
    left = ROWS - 10
    assert rows(t, "SELECT count(*), sum(if(name = 'many', 1, 0)) FROM t") == [(left, ROWS - 20001)]


@pytest.mark.classic
def test_of_what_is_deleted_only_what_decides_is_read(t, searches):
    t.sql("DELETE FROM t WHERE id BETWEEN 100 AND 199")
    t.sql("DELETE FROM t WHERE id BETWEEN 200 AND 299 AND ratio > 70 AND T.`Name` IS NOT NULL")
    t.sql("DELETE FROM t WHERE id BETWEEN 300 AND 399 AND to_json(struct(*)) LIKE '%\"small\":35%'")
    t.sql("UPDATE t SET small = 0, name = 'new' WHERE id BETWEEN 400 AND 499")
    names = t.table("t").columns
    known = [{names[int(name[-1])] for name in found.column_names[4:]} for found in searches]
    everything = set(names)
    assert known == [{"id"}, {"id", "ratio", "name"}, everything, everything - {"small", "name"}]
    assert [found.num_rows for found in searches] == [100, 100, 100, 100]
    assert rows(t, "SELECT count(*) FROM t WHERE id < 200") == [(100,)]
    assert rows(t, "SELECT min(id), max(id) FROM t WHERE id BETWEEN 200 AND 299") == [(200, 210)]
    assert rows(t, "SELECT count(*) FROM t WHERE id BETWEEN 300 AND 399") == [(90,)]
    assert rows(t, "SELECT count(*) FROM t WHERE id BETWEEN 350 AND 359") == [(0,)]
    assert rows(t, "SELECT id, small, name, code FROM t WHERE id = 450") == [
        (450, 0, "new", "0000000450"),
    ]  # fmt: skip


@pytest.mark.classic
def test_the_driver_finds_ten_times_as_many_row_ids_as_rows(t, searches):
    t.sql("DELETE FROM t WHERE id >= 40000")
    t.sql("DELETE FROM t WHERE id >= 10000 AND ratio >= 0")
    assert [found and found.num_rows for found in searches] == [20_000, None]
    assert rows(t, "SELECT count(*), max(id) FROM t") == [(10_000, 9999)]


@pytest.fixture
def searches(monkeypatch):
    """The rows that the driver found, for each statement."""
    found, search = [], scan.search

    def kept(*args):
        found.append(search(*args))
        return found[-1]

    monkeypatch.setattr(scan, "search", kept)
    return found


def test_what_is_deleted_of_one_partition_is_found_in_another(acid, searches):
    acid.sql("CREATE TABLE u (id INT, v STRING) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO u SELECT /*+ COALESCE(1) */ id, 'old', p FROM VALUES (1, 'a'), (1, 'b'), "
             "(1, 'c') AS x(id, p)")  # fmt: skip
    acid.sql("DELETE FROM u WHERE id = 1 AND p = 'b'")
    acid.sql("UPDATE u SET v = 'new' WHERE id = 1")
    assert rows(acid, "SELECT * FROM u") == [(1, "new", "a"), (1, "new", "c")]
    acid.sql("DELETE FROM u WHERE id = 1 AND v = 'new'")
    assert rows(acid, "SELECT * FROM u") == []
    assert [found.num_rows for found in searches] == [1, 2, 2]


@pytest.mark.parametrize("kind", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_rows_that_are_found_keep_their_values(spark, acid, searches, kind):
    settings = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.timestampType": kind,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
    }
    with jvm.changed_conf(spark, settings):
        acid.sql(
            "CREATE TABLE w (id INT, at TIMESTAMP, many ARRAY<TIMESTAMP>, m MAP<STRING, "
            "STRUCT<at: TIMESTAMP, d: DATE>>, c CHAR(3), x BINARY, f FLOAT, n DECIMAL(38,18))"
        )
        # A clock time that New York skipped, one that it had twice, and one before 1900.
        clocks = ["2024-03-10 02:30:00", "2024-11-03 01:30:00", "1883-11-18 12:00:00.123456"]
        for number, clock in enumerate(clocks):
            at = f"TIMESTAMP_NTZ'{clock}'"
            acid.sql(
                f"INSERT INTO w SELECT {number}, {at}, array({at}, NULL), map('k', named_struct("
                f"'at', {at}, 'd', DATE'1500-03-01')), 'a', X'00FF', CAST('NaN' AS FLOAT), "
                "CAST(0.000000000000000001 AS DECIMAL(38,18))"
            )
        read = "SELECT id % 10, CAST(at AS STRING), to_json(struct(*)) FROM (SELECT id % 10 AS id, "
        read += "at, many, m, c, hex(x) AS x, f, n FROM w)"
        before = rows(acid, read)
        assert [row[1][:16] for row in before] == [clock[:16] for clock in clocks]
        for number in range(len(clocks)):
            acid.sql(f"UPDATE w SET id = id + 10 WHERE id = {number}")
        assert [found.num_rows for found in searches] == [1, 1, 1]
        assert rows(acid, read) == before
        assert rows(acid, "SELECT id FROM w") == [(10,), (11,), (12,)]


@pytest.mark.classic
def test_a_partition_of_no_such_rows_is_not_opened(acid):
    acid.sql("CREATE TABLE p (id INT) PARTITIONED BY (day DATE, kind STRING)")
    acid.sql(
        "INSERT INTO p SELECT CAST(id AS INT), date_add(DATE'2024-01-01', CAST(id % 10 AS INT)), "
        "IF(id % 2 = 0, 'even', NULL) FROM range(0, 100)"
    )
    for condition in (
        "day = DATE'2024-01-03'",
        "day IN (DATE'2024-01-03', DATE'2030-01-01') AND kind IS NOT NULL",
        "NOT (kind = 'odd') AND day < DATE'2024-01-02'",
        "kind IS NULL AND day = DATE'2024-01-04'",
    ):
        plan = acid.sql(f"EXPLAIN FORMATTED SELECT * FROM p WHERE {condition}").first()[0]
        assert "partitions: 1 of 10" in plan
        assert rows(acid, f"SELECT count(*) FROM p WHERE {condition}") == [(10,)]


@pytest.mark.classic
def test_of_few_partitions_a_merge_opens_those_that_its_source_has_rows_for(acid, monkeypatch):
    monkeypatch.setattr(reading, "MANY_PARTITIONS", 8)
    acid.sql("CREATE TABLE p (id BIGINT, v STRING) PARTITIONED BY (n BIGINT)")
    acid.sql("INSERT INTO p SELECT id, 'old', id % 5 FROM range(0, 100)")
    merge = (
        "MERGE INTO p USING (SELECT id, id % 5 AS n FROM range(3, 14, 5)) s ON p.id = s.id "
        "AND p.n = s.n WHEN MATCHED THEN UPDATE SET v = 'new'"
    )
    assert "partitions: 1 of 5" in acid.sql(f"EXPLAIN {merge}").first()[0]
    acid.sql(merge)
    assert rows(acid, "SELECT id FROM p WHERE v = 'new'") == ordered([(3,), (8,), (13,)])
    assert rows(acid, "SELECT count(*) FROM p") == [(100,)]


@pytest.mark.parametrize(
    ("kind", "version"), [("INT", 1), ("STRING", 2), ("DECIMAL(10,2)", 2), ("VARCHAR(9)", 1)]
)
@pytest.mark.classic
def test_of_a_bucketed_table_only_the_buckets_files_are_opened(acid, kind, version):
    acid.sql(
        f"CREATE TABLE b (k {kind}, v INT) CLUSTERED BY (k, v) INTO 4 BUCKETS "
        f"TBLPROPERTIES ('bucketing_version'='{version}')"
    )
    acid.sql("INSERT INTO b SELECT id, CAST(id % 3 AS INT) FROM range(0, 60, 1, 1)")
    acid.sql("DELETE FROM b WHERE v = 2 AND k > 30")
    for value in (0, 14, 35, 59):
        literal = f"CAST({value} AS {kind.replace('VARCHAR(9)', 'STRING')})"
        query = f"SELECT k, v FROM b WHERE k = {literal} AND v IN ({value % 3})"
        found = acid.sql(query)
        assert len(found.collect()) == (0 if value % 3 == 2 and value > 30 else 1)
        files = {path.rpartition("/")[2] for path in found.inputFiles()}
        assert len(files) == 1


def test_random_conditions_give_what_reading_everything_gives(acid, monkeypatch):
    acid.sql("CREATE TABLE r (a INT, b STRING, c DATE, d DECIMAL(6,1), e BOOLEAN) "
             "CLUSTERED BY (a) INTO 3 BUCKETS")  # fmt: skip
    acid.sql(
        "INSERT INTO r SELECT IF(id % 11 = 0, NULL, CAST(id % 50 AS INT)), "
        "IF(id % 7 = 0, NULL, concat('s', id % 30)), date_add(DATE'1582-10-15', CAST(id AS INT)), "
        "CAST(id / 10 AS DECIMAL(6,1)), IF(id % 13 = 0, NULL, id < 700) FROM range(0, 3000, 1, 2)"
    )
    acid.sql("DELETE FROM r WHERE a % 5 = 1")
    whole = acid.sql("SELECT * FROM r").persist()
    chance = random.Random(5)
    terms = [
        "a = {n}", "a <> {n}", "{n} >= a", "a IN ({n}, 7, NULL)", "a NOT IN ({n}, 9)",
        "a IS NULL", "a <=> {n}", "b = 's{n}'", "b > 's{n}'", "b IS NOT NULL", "b LIKE 's1%'",
        "c < DATE'1583-{m}-05'", "c = DATE'1582-10-15'", "c > DATE'1582-10-11'", "d >= {n}.5",
        "NOT (d = {n} OR b IS NULL)", "a = d", "a + 1 = {n}", "e", "NOT e",
        "e = (a > {n})",
    ]  # fmt: skip
    for _ in range(15):
        parts = [
            chance.choice(terms).format(n=chance.randint(0, 50), m=f"{chance.randint(1, 12):02d}")
            for _ in range(chance.randint(1, 4))
        ]
        condition = parts[0]
        for part in parts[1:]:
            condition = f"({condition}) {chance.choice(['AND', 'OR', 'AND NOT'])} ({part})"
        found = acid.sql(f"SELECT * FROM r WHERE {condition}")
        assert ordered(found.collect()) == ordered(whole.where(condition).collect()), condition
    whole.unpersist()


def test_bloom_filters_of_every_type_find_what_is_there(acid):
    kinds = {
        "a": "INT", "b": "BIGINT", "c": "SMALLINT", "d": "DATE", "e": "DECIMAL(12,2)",
        "f": "DECIMAL(30,10)", "g": "VARCHAR(20)", "h": "STRING", "i": "TINYINT",
    }  # fmt: skip
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    acid.sql(
        f"CREATE TABLE bl ({columns}) "
        f"TBLPROPERTIES ('orc.bloom.filter.columns'='{','.join(kinds)}')"
    )
    # The values are scattered, so that minima and maxima rule nothing out.
    acid.sql(
        "INSERT INTO bl SELECT n, n * 1000003L, n % 30000, date_add(DATE'1990-01-01', n % 20000), "
        "n / 4, CAST(n AS DECIMAL(30,10)) / 8, concat('v', n), IF(n % 5 = 0, '', concat('é', n)), "
        "n % 100 FROM (SELECT CAST(id * 7919 % 30011 - 15000 AS INT) n FROM range(0, 30000, 1, 1))"
    )
    whole = acid.sql("SELECT * FROM bl").persist()
    for row in whole.where("a IN (0, -1, 8, 12500)").collect():
        for name, kind in kinds.items():
            literal = f"CAST('{row[name]}' AS {kind.replace('VARCHAR(20)', 'STRING')})"
            found = acid.sql(f"SELECT * FROM bl WHERE {name} = {literal}")
            same = whole.where(f"{name} = {literal}")
            assert found.count() == same.count() >= 1, (name, literal)
    assert rows_read(acid.sql("SELECT a FROM bl WHERE b = 5")) == 0
    whole.unpersist()


def test_a_multi_inserts_source_and_branches_have_conditions_of_their_own(acid):
    acid.sql("CREATE TABLE s (id INT)")
    acid.sql("CREATE TABLE low (id INT)")
    acid.sql("CREATE TABLE high (id INT)")
    acid.sql("INSERT INTO s SELECT CAST(id AS INT) FROM range(0, 100)")
    acid.sql(
        "FROM (SELECT id FROM s WHERE id < 50) x "
        "INSERT INTO low SELECT id WHERE id < 2 INSERT INTO high SELECT id WHERE id > 48"
    )
    assert rows(acid, "SELECT * FROM low") == [(0,), (1,)]
    assert rows(acid, "SELECT * FROM high") == [(49,)]


@pytest.mark.classic
def test_a_search_argument_has_no_thousands_of_values(t):
    table = t.metastore.find(TableName("default", "t"))
    names = [column.name for column in table.columns]

    def options(count):
        values = tuple(TypedValue("bigint", str(number)) for number in range(count))
        return sargs.read_options(t.spark, table, names, Comparison("id", "in", values))

    assert options(VALUES_MAX)["orc.sarg.column.names"] == ",".join(names)
    assert options(VALUES_MAX + 1) == {}
