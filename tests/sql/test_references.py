"""References: blocks, stars, prefixes, and uncertain cases."""

from __future__ import annotations

import pytest

from acidsql.sql.queries.references import (
    Obstacle,
    References,
    StarKind,
    cte_names,
    mentioned_tables,
    references,
)
from acidsql.sql.text.tokens import Span


def names(found: References) -> list[str]:
    return [".".join(r.parts) for r in found.references]


def spliced(text: str) -> str:
    """The text as the caller changes it: each table becomes `S AS its name`, prefixes are
    dropped."""
    edits: list[tuple[int, int, str]] = []
    for r in references(text).references:
        edits.append((r.span.start, r.span.end, "S"))
        if r.alias is None and r.alias_at is not None:
            edits.append((r.alias_at, r.alias_at, f" AS {r.parts[-1]}"))
        edits.extend((p.start, p.end, "") for p in r.prefixes)
    # At one place the table's name comes first, then its alias.
    for start, end, new in sorted(edits, key=lambda e: (e[0], e[1]), reverse=True):
        text = text[:start] + new + text[end:]
    return text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM A, b, db.a", ["db.a"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM b", ["b"]),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", []),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, a", ["a"]),
        ("SELECT (WITH a AS (SELECT 1) SELECT * FROM a) FROM c WHERE d IN (TABLE a)", ["c", "a"]),
        ("WITH a AS (SELECT 1) SELECT (SELECT max(x) FROM a), (SELECT 1 FROM t)", ["t"]),
    ],
)
def test_a_name_of_a_cte_is_no_table_where_it_is_visible(query: str, expected: list[str]) -> None:
    assert names(references(query)) == expected


def test_a_with_clause_may_stand_outside_the_slice() -> None:
    text = "WITH c AS (SELECT * FROM t) UPDATE u SET a = 1 WHERE b IN (SELECT b FROM C JOIN s)"
    clause, where = Span(0, 27), Span(text.index("b IN"), len(text))
    assert cte_names(text, clause) == {"c"}
    assert names(references(text, clause)) == ["t"]
    inside = references(text, where, visible=cte_names(text, clause))
    assert names(inside) == ["s"]
    assert inside.references[0].span.slice(text) == "s"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT t.a FROM t WHERE t.b", "SELECT t.a FROM S AS t WHERE t.b"),
        ("SELECT db.t.a, db.t.* FROM db.t", "SELECT t.a, t.* FROM S AS t"),
        ("SELECT x.a FROM db.t AS x", "SELECT x.a FROM S AS x"),
        (
            "SELECT 1 FROM db.t WHERE EXISTS (SELECT 1 FROM s WHERE s.a = DB.`t`.a)",
            "SELECT 1 FROM S AS t WHERE EXISTS (SELECT 1 FROM S AS s WHERE s.a = `t`.a)",
        ),
        (
            "SELECT * FROM t TABLESAMPLE (5 ROWS) WHERE a",
            "SELECT * FROM S TABLESAMPLE (5 ROWS) AS t WHERE a",
        ),
        ("TABLE t", "TABLE S"),
        (
            "SELECT db.f(a) FROM db.t JOIN db.u ON db.t.a = db.u.a",
            "SELECT db.f(a) FROM S AS t JOIN S AS u ON t.a = u.a",
        ),
        ("CREATE TEMP VIEW v AS SELECT * FROM t", "CREATE TEMP VIEW v AS SELECT * FROM S AS t"),
        ("INSERT INTO u (a) SELECT a FROM u", "INSERT INTO u (a) SELECT a FROM S AS u"),
    ],
)
def test_a_stand_in_takes_a_tables_place(query: str, expected: str) -> None:
    assert spliced(query) == expected


def test_stars_are_told_from_products_and_counts() -> None:
    text = "SELECT *, t.*, a * b, count(*), * EXCEPT (c), (SELECT * FROM s) FROM t"
    outer, inner = references(text).blocks
    assert [(s.span.slice(text), s.qualifier, s.kind) for s in outer.stars] == [
        ("*", None, StarKind.PLAIN),
        ("t.*", ("t",), StarKind.PLAIN),
        ("* EXCEPT (c)", None, StarKind.EXCEPT),
    ]
    excepted = outer.stars[2].excepted
    assert excepted is not None
    assert excepted.slice(text) == "c"
    assert [s.span.slice(text) for s in inner.stars] == ["*"]


def test_row_id_shows_in_the_block_that_names_it_and_around_it() -> None:
    text = (
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.ROW__ID.rowid) "
        "AND a IN (SELECT b FROM u)"
    )
    found = references(text)
    assert [b.mentions for b in found.blocks] == [set(), {"row__id"}, set()]
    assert found.virtual_columns_by_block() == {0: {"row__id"}, 1: {"row__id"}}
    assert references("SELECT 'row__id' /* row__id */ FROM t").virtual_columns_by_block() == {}


@pytest.mark.parametrize(
    ("query", "obstacle"),
    [
        ("TABLE t", Obstacle.TABLE_QUERY),
        ("SELECT * FROM t |> WHERE a", Obstacle.PIPE),
        ("SELECT * FROM t NATURAL JOIN s", Obstacle.NATURAL_JOIN),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN (1))", Obstacle.PIVOT),
        ("SELECT * FROM t UNPIVOT (a FOR b IN (c))", Obstacle.UNPIVOT),
        ("SELECT struct(*) FROM t", Obstacle.STAR_ARGUMENT),
        ("SELECT count(t.*) FROM t", Obstacle.STAR_ARGUMENT),
        ("SELECT * FROM IDENTIFIER(:x)", Obstacle.IDENTIFIER),
    ],
)
def test_what_is_uncertain_is_said(query: str, obstacle: Obstacle) -> None:
    assert [doubt.obstacle for doubt in references(query).doubts] == [obstacle]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t JOIN s USING (a) LATERAL VIEW explode(b) e AS c, d",
        "SELECT count(*), sum(a * b) FROM t GROUP BY c",
        "SELECT natural, pivot FROM t",
    ],
)
def test_what_is_certain_raises_no_doubt(query: str) -> None:
    assert references(query).doubts == ()


def test_time_travel_is_reported() -> None:
    text = "SELECT * FROM t VERSION AS OF 3 x, s TIMESTAMP AS OF '2024' , u"
    found = references(text).references
    spans = [r.time_travel.slice(text) if r.time_travel else None for r in found]
    assert spans == ["VERSION AS OF 3", "TIMESTAMP AS OF '2024'", None]
    assert [r.alias for r in found] == ["x", None, None]


@pytest.mark.parametrize(
    "time",
    [
        "'2024-01-01'",
        "DATE'2024-01-01'",
        "TIMESTAMP '2024-01-01 00:00:00'",
        "now()",
        "(now())",
        ":time",
        "?",
        "now() - INTERVAL 1 DAY",
        "now() - INTERVAL '1-2' YEAR TO MONTH",
        "now() - INTERVAL 1 DAY 2 HOURS",
        "date_sub(now(), 1)",
    ],
)
@pytest.mark.parametrize("behind", ["", " x", " AS x", " JOIN u", " WHERE a", ", u", " x JOIN u"])
def test_time_travel_ends_where_the_time_ends(time: str, behind: str) -> None:
    text = f"SELECT * FROM t TIMESTAMP AS OF {time}{behind}"
    found = references(text).references[0]
    assert found.time_travel is not None
    assert found.time_travel.slice(text) == f"TIMESTAMP AS OF {time}"
    assert found.alias == ("x" if "x" in behind else None)


@pytest.mark.parametrize(
    "statement",
    [
        "ANALYZE TABLE db.t COMPUTE STATISTICS",
        "MSCK REPAIR TABLE db.t",
        "CREATE VIEW v AS SELECT * FROM a JOIN db.t",
        "CREATE OR REPLACE VIEW v (x) AS WITH c AS (SELECT * FROM db.t) SELECT * FROM c",
        "ALTER VIEW v AS SELECT * FROM db.t",
        "REFRESH TABLE db.t",
        "UNCACHE TABLE IF EXISTS db.t",
        "COMMENT ON TABLE db.t IS 'x'",
        "CREATE TABLE n LIKE db.t USING parquet",
        "DELETE FROM u WHERE a IN (SELECT a FROM db.t)",
        "UPDATE u SET a = (SELECT max(a) FROM db.t)",
        "MERGE INTO u USING db.t ON a WHEN MATCHED THEN DELETE",
        "MERGE INTO u USING (SELECT * FROM db.t) s ON a WHEN MATCHED THEN DELETE",
        "WITH c AS (SELECT * FROM db.t) DELETE FROM u WHERE a IN (SELECT a FROM c)",
        "LOAD DATA INPATH 'x' INTO TABLE db.t",
        "CACHE TABLE db.t",
        "DESCRIBE db.t a",
        "CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(a) FROM db.t)",
        "CREATE FUNCTION f() RETURNS INT RETURN SELECT max(a) FROM db.t",
        "ALTER TABLE u EXCHANGE PARTITION (a = 1) WITH TABLE db.t",
        "DROP VIEW IF EXISTS db.t",
        "EXPLAIN ANALYZE TABLE db.t COMPUTE STATISTICS",
    ],
)
def test_a_table_that_spark_would_misread_is_mentioned(statement: str) -> None:
    assert ("db", "t") in [r.parts for r in mentioned_tables(statement)]


def test_properties_behind_a_name_are_a_tables_and_arguments_a_functions() -> None:
    text = (
        "SELECT * FROM d.t('a'='b', 'c'='d') VERSION AS OF 1 x JOIN t(\"a\" = 'b') JOIN f('a', 'b')"
    )
    first, second = references(text).references
    assert (first.parts, first.alias, second.parts) == (("d", "t"), "x", ("t",))
    assert first.properties is not None
    assert first.properties.slice(text) == "('a'='b', 'c'='d')"
    assert second.properties is not None
