"""Scopes: a WITH clause may declare the name of a table. Then the name means the CTE in every query
of the statement, and nowhere else. What Spark has, too, is compared with Spark on plain tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kit import fill, ordered, refused, rows, table

from acidsql.errors import AcidSqlError

WITH = "WITH orders AS (SELECT id FROM orders WHERE id = 2)"
OF_R = "WITH r AS (SELECT id FROM r WHERE id = 2)"
TABLES = {"orders": (1, 2, 3), "r": (1, 2, 3, 4), "z": ()}


@pytest.fixture
def t(acid: Any) -> Any:
    """A session with tables ``orders``, ``r`` and ``z``."""
    for name, ids in TABLES.items():
        fill(acid, f"{name} (id INT)", *map(str, ids))
    return acid


@pytest.fixture
def plainly(spark: Any) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    """Runs a query of Spark's on plain tables of the same names, in another database."""
    before = spark.catalog.currentDatabase()
    spark.sql("CREATE DATABASE plain_scopes")
    for name, ids in TABLES.items():
        some = ", ".join(map(str, ids))
        made = f"VIEW plain_scopes.{name} AS SELECT explode(array({some})) AS id"
        spark.sql(f"CREATE {made if ids else f'TABLE plain_scopes.{name} (id INT) USING parquet'}")

    def run(text: str) -> list[tuple[Any, ...]]:
        spark.catalog.setCurrentDatabase("plain_scopes")
        try:
            return ordered(spark.sql(text).collect())
        finally:
            spark.catalog.setCurrentDatabase(before)

    yield run
    spark.sql("DROP DATABASE plain_scopes CASCADE")


def test_queries_mean_by_a_name_what_spark_means(t, plainly):
    own = t.spark.catalog.currentDatabase()
    for query in (
        f"{WITH} SELECT o.id, p.id FROM Orders o JOIN {{db}}.orders p ON o.id <= p.id",
        f"{WITH}, a AS (WITH orders AS (SELECT id + 9 AS id FROM orders) TABLE orders) TABLE a",
        "WITH a AS (WITH orders AS (SELECT 9 AS id) TABLE orders) TABLE a UNION ALL TABLE orders",
        "WITH a AS (TABLE orders), orders AS (SELECT 7 AS id) TABLE a UNION ALL TABLE orders",
        f"{WITH} SELECT id FROM r WHERE id IN (WITH orders AS (SELECT 3 AS id) TABLE orders) "
        "OR id = (SELECT max(id) FROM `orders`)",
        "WITH RECURSIVE orders AS (SELECT 5 AS id UNION ALL SELECT id + 1 FROM orders WHERE id < 7)"
        " FROM orders |> JOIN LATERAL (SELECT count(*) AS n FROM r WHERE r.id < orders.id)",
        f"SELECT * FROM ({WITH} TABLE orders) x JOIN orders ON x.id <> orders.id",
    ):
        expected = plainly(query.format(db="plain_scopes"))
        assert rows(t, query.format(db=own)) == expected and expected, query


def test_an_insert_behind_with_may_have_a_with_of_its_own(t, plainly):
    for clause, query in (
        ("WITH a AS (SELECT 1 AS id)", f"{WITH} TABLE orders"),
        (WITH, "WITH orders AS (SELECT id + 10 AS id FROM orders) TABLE orders -- all"),
        ("WITH a AS (SELECT 1 AS id)", "TABLE orders"),
        (WITH, "TABLE orders"),
        ("WITH z AS (SELECT 3 AS id)", "SELECT * FROM z, orders WHERE z.id = orders.id"),
    ):
        query = query.replace("*", "z.id")
        t.sql(f"{clause} INSERT OVERWRITE z {query}")
        plainly(f"{clause} INSERT OVERWRITE z {query}")
        assert table(t, "z") == plainly("TABLE z") != [], (clause, query)
        if "z" not in clause:  # an INSERT into a table of Spark's
            t.sql(f"{clause} INSERT OVERWRITE plain_scopes.z {query}")
            assert plainly("TABLE z") == table(t, "z"), (clause, query)


# A statement that deletes or updates, and the ids of its rows.
CHANGED = [
    (f"{WITH} DELETE FROM r USING `ORDERS` WHERE r.id = orders.id", [2]),
    (f"{WITH} UPDATE r SET id = r.id FROM orders o WHERE r.id = o.id", [2]),
    (
        f"{WITH} MERGE INTO r USING orders ON r.id = orders.id WHEN MATCHED AND r.id IN "
        "(SELECT id FROM orders) THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE",
        [1, 2, 3, 4],
    ),
    (f"{OF_R} DELETE FROM r USING r o WHERE r.id = o.id", [2]),
    (f"{OF_R} MERGE INTO r USING r s ON r.id <= s.id WHEN MATCHED THEN DELETE", [1, 2]),
    (f"{OF_R} UPDATE r SET id = (SELECT max(id) FROM r) WHERE id IN (SELECT id FROM r)", [2]),
    ("WITH a AS (TABLE orders), orders AS (SELECT * FROM a WHERE id > 2) "
     "DELETE FROM r USING orders WHERE r.id = orders.id", [3]),
    ("WITH a AS (WITH orders AS (SELECT 9 AS id) TABLE orders) "
     "DELETE FROM r USING orders WHERE r.id = orders.id", [1, 2, 3]),
    ("WITH RECURSIVE orders AS (SELECT 3 AS id UNION ALL SELECT id + 1 FROM orders WHERE id < 4) "
     "DELETE FROM r USING orders WHERE r.id = orders.id", [3, 4]),
    (f"DELETE FROM r USING ({WITH} TABLE orders) o WHERE r.id = o.id", [2]),
    ("WITH orders AS (SELECT id, row__id FROM orders WHERE row__id.rowid = 1) DELETE FROM r "
     "USING orders o WHERE r.row__id.rowid = o.row__id.rowid AND o.id > 0", [2]),
    ("WITH seen AS (SELECT 4 AS id) DELETE FROM r USING seen WHERE r.id = seen.id", [4]),
    ("WITH df AS (SELECT 4 AS id) DELETE FROM r USING {df} WHERE r.id = df.id", [1]),
    ("WITH orders AS (SELECT id FROM {df}) DELETE FROM r USING orders WHERE r.id = orders.id", [1]),
]  # fmt: skip


def test_a_cte_is_the_source_of_a_change_even_if_a_table_has_its_name(t):
    own = t.spark.catalog.currentDatabase()
    of_database = f"{WITH} DELETE FROM r USING {own}.orders WHERE r.id = orders.id"
    t.sql("CREATE TEMP VIEW seen AS SELECT 1 AS id")
    try:
        for text, ids in [*CHANGED, (of_database, [1, 2, 3])]:
            frames = {"df": t.spark.range(1, 2)} if "{df}" in text else {}
            t.sql("BEGIN")
            found = t.sql(f"{text} RETURNING r.id", **frames).collect()
            t.sql("ROLLBACK")
            assert ordered(found) == [(one,) for one in ids], text
    finally:
        t.spark.catalog.dropTempView("seen")


def test_only_tables_that_a_statement_reads_are_locked(t):
    """The CTE reads ``z``, and the table that has its name is not touched."""
    text = "WITH orders AS (SELECT id FROM z) DELETE FROM r USING orders o WHERE r.id = o.id"
    plan = t.sql(f"EXPLAIN {text}").first()[0]
    locks = plan.split("== Locks ==")[1].split("==")[0]
    assert ".z" in locks and ".r" in locks and "orders" not in locks


def test_a_cte_may_have_a_tables_name_wherever_a_statement_is_run_or_shown(t):
    text = f"{WITH} DELETE FROM r USING orders o WHERE r.id = o.id"
    assert [one.id for one in t.sql(f"EXPLAIN CHANGES {text}").collect()] == [2]
    t.sql("BEGIN")
    t.sql("INSERT INTO orders VALUES (4)")
    t.sql(text.replace("= 2", "> 3"))
    assert table(t, "r") == [(1,), (2,), (3,)]
    t.sql("COMMIT")
    t.sql(f"CREATE VIEW v AS {WITH} SELECT r.id FROM r, orders WHERE r.id <> orders.id")
    assert table(t, "v") == [(1,), (3,)]
    t.sql(f"CREATE TABLE made AS {WITH} TABLE orders")
    assert table(t, "made") == [(2,)]
    t.sql("WITH r AS (SELECT id, 'x' AS more FROM r) INSERT INTO made BY NAME SELECT id FROM r")
    assert table(t, "made") == [(1,), (2,), (2,), (3,)]


def test_a_name_of_a_cte_has_no_versions_as_in_spark(t, plainly):
    text = f"{WITH} SELECT * FROM orders VERSION AS OF 1"
    with pytest.raises(Exception, match="UNSUPPORTED_FEATURE.TIME_TRAVEL"):
        plainly(text)
    refused(t, text, "UNSUPPORTED_FEATURE.TIME_TRAVEL")


def test_in_a_session_that_tells_names_by_case_no_other_table_is_read(t, conf):
    conf("spark.sql.caseSensitive", "true")
    text = "WITH Orders AS (SELECT 1 AS id) DELETE FROM r USING orders o WHERE r.id = o.id"
    with pytest.raises(AcidSqlError, match="orders"):
        t.sql(text)
    assert len(table(t, "r")) == 4
