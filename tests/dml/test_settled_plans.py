"""Spark's optimiser reaches a fixed point for every statement of acidsql."""

from __future__ import annotations

import pytest
from kit import rows

LAYOUTS = {
    "unpartitioned": "id INT, item STRING)",
    "partitioned": "id INT, item STRING) PARTITIONED BY (p INT)",
    "bucketed": "id INT, item STRING) CLUSTERED BY (id) INTO 2 BUCKETS",
}
SOURCES = [
    "(SELECT 3 AS id, 'gear' AS item, 1 AS p)",
    "VALUES (3, 'gear', 1)",
    "(SELECT * FROM VALUES (3, 'gear', 1), (4, 'wheel', 1) AS x (id, item, p))",
    "(SELECT 3 AS id, 'gear' AS item, 1 AS p UNION ALL SELECT 4, 'wheel', 1)",
    "(SELECT CAST(id AS INT) AS id, 'gear' AS item, 1 AS p FROM range(3, 4))",
    "(SELECT 3 AS id, item, 1 AS p FROM others)",
    "(SELECT a.id, b.item, a.p FROM (SELECT 3 AS id, 1 AS p) a CROSS JOIN others b)",
    "literals",
    "others",
]
CLAUSES = [
    "WHEN MATCHED THEN UPDATE SET item = s.item "
    "WHEN NOT MATCHED THEN INSERT (id, item{p}) VALUES (s.id, s.item{value})",
    "WHEN MATCHED THEN DELETE",
]
OTHERS = [
    "UPDATE t SET item = 'x' WHERE id IN (SELECT id FROM {source})",
    "UPDATE t SET item = (SELECT max(item) FROM {source} WHERE s.id = t.id)",
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM {source} WHERE s.id = t.id)",
    "INSERT INTO t SELECT t.* FROM t JOIN {source} ON t.id = s.id",
]


class Warnings:
    """The warnings of Spark's planner in the JVM's log."""

    def __init__(self, jvm):
        self._log4j = jvm.org.apache.logging.log4j
        self._text = jvm.java.io.StringWriter()
        layout = self._log4j.core.layout.PatternLayout.createDefaultLayout()
        self._appender = self._log4j.core.appender.WriterAppender.createAppender(
            layout, None, self._text, "acidsql-tests", False, True
        )
        self._appender.start()

    def __enter__(self):
        self._set("WARN").addAppender(self._appender)
        return self

    def __exit__(self, *_):
        self._set("ERROR").removeAppender(self._appender)
        self._appender.stop()

    def _set(self, level):
        name = "org.apache.spark.sql"
        known = getattr(self._log4j.Level, level)
        self._log4j.core.config.Configurator.setLevel(name, known)
        return self._log4j.LogManager.getLogger(name)

    def of_limits(self):
        return [line for line in self._text.toString().splitlines() if "Max iterations" in line]


@pytest.fixture
def warnings(spark):
    with Warnings(spark._jvm) as found:
        yield found


@pytest.fixture
def others(spark, acid):
    acid.sql("CREATE TABLE others (id INT, item STRING, p INT)")
    acid.sql("INSERT INTO others VALUES (3, 'gear', 1)")
    spark.sql("CREATE TEMPORARY VIEW literals AS SELECT 3 AS id, 'gear' AS item, 1 AS p")
    yield
    spark.catalog.dropTempView("literals")


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    ("layout", "sent_unasked"),
    [("unpartitioned", "10MB"), ("unpartitioned", "300"), ("partitioned", "300"),
     ("bucketed", "10MB")],
)  # fmt: skip
def test_no_merge_reaches_the_optimisers_limit(acid, warnings, conf, layout, sent_unasked):
    conf("spark.sql.autoBroadcastJoinThreshold", sent_unasked)
    acid.sql(f"CREATE TABLE t ({LAYOUTS[layout]}")
    is_partitioned = layout == "partitioned"
    p, value = (", p", ", s.p") if is_partitioned else ("", "")
    acid.sql(f"INSERT INTO t VALUES (3, 'a'{', 1' if is_partitioned else ''})")
    reached = []
    for source in SOURCES:
        alias = "s (id, item, p)" if source.startswith("VALUES") else "s"
        for clauses in CLAUSES:
            statement = f"MERGE INTO t USING {source} AS {alias} ON t.id = s.id " + clauses.format(
                p=p, value=value
            )
            before = len(warnings.of_limits())
            plan = acid.sql(f"EXPLAIN {statement}").first()[0]
            if source == SOURCES[0]:
                assert ("LeftSemi" in plan) == (sent_unasked == "300")
            if len(warnings.of_limits()) > before:
                reached.append(statement)
    assert reached == []
    acid.sql(statement.replace("WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN UPDATE SET item='b'"))
    assert rows(acid, "SELECT id, item FROM t") == [(3, "b")]


@pytest.mark.usefixtures("others")
def test_no_other_statement_reaches_the_optimisers_limit(acid, warnings):
    acid.sql("CREATE TABLE t (id INT, item STRING)")
    acid.sql("INSERT INTO t VALUES (3, 'a')")
    for source in (SOURCES[0], SOURCES[2], SOURCES[5], "literals"):
        for statement in OTHERS:
            acid.sql(f"EXPLAIN {statement.format(source=f'{source} AS s')}")
            assert warnings.of_limits() == [], statement


@pytest.mark.usefixtures("others")
def test_an_on_that_joins_nothing_is_not_looked_for_beforehand(acid, warnings):
    acid.sql("CREATE TABLE t (id INT, item STRING)")
    acid.sql("INSERT INTO t VALUES (3, 'a')")
    for on in ("t.id = 3", "t.id = 3 AND s.id = 3", "true"):
        merge = f"MERGE INTO t USING {SOURCES[0]} s ON {on} WHEN MATCHED THEN UPDATE SET item = 'b'"
        assert "LeftSemi" not in acid.sql(f"EXPLAIN {merge}").first()[0]
    assert warnings.of_limits() == []
    acid.sql(merge)
    assert rows(acid, "SELECT * FROM t") == [(3, "b")]
