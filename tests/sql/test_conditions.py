"""The partitions that a WHERE certainly rules out: sometimes too few, never too many."""

import pytest

from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.values.predicate import ANYTHING, And, Comparison, TypedValue
from acidsql.plan.standins.standins import StandIn
from acidsql.plan.standins.text_predicates import condition_predicate, where_predicate
from acidsql.sql.queries.conditions import (
    has_subquery,
    may_correlate,
    plain_comparisons,
    terms_and_equated_pairs,
    terms_decided_by,
)
from acidsql.sql.queries.references import references
from acidsql.sql.text.tokens import Span

COLUMNS, QUALIFIERS = {"p", "day"}, {"t"}


def terms(condition):
    text = f"DELETE FROM t WHERE {condition}"
    span = Span(text.index("WHERE") + 6, len(text))
    return [term.slice(text) for term in terms_decided_by(text, span, COLUMNS, QUALIFIERS)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("p = 1", ["p = 1"]),
        ("P = 1 AND id = 2", ["P = 1"]),
        ("id = 2 AND (t.p = 1 OR t.`p` IN (2, 3)) AND day < '2024'",
         ["(t.p = 1 OR t.`p` IN (2, 3))", "day < '2024'"]),
        ("p BETWEEN 1 AND 3 AND id BETWEEN 4 AND 5", ["p BETWEEN 1 AND 3"]),
        ("NOT p BETWEEN 1 AND 3 AND p <> -2", ["NOT p BETWEEN 1 AND 3", "p <> -2"]),
        ("((p = 1 AND id = 1))", ["p = 1"]),
        ("day = DATE '2024-01-01' AND p IS NOT NULL", ["day = DATE '2024-01-01'", "p IS NOT NULL"]),
        ("p = :value AND day LIKE '2024%'", ["p = :value", "day LIKE '2024%'"]),
        ("p = ? AND p = 'a''b'", ["p = ?", "p = 'a''b'"]),
        ("(CASE WHEN p = 1 AND p = 2 THEN true END) AND p = 3", ["p = 3"]),
        ("t.or = 1 AND t.case = :or AND `case` = 1 AND p = 3", ["p = 3"]),
    ],
)  # fmt: skip
def test_terms_that_only_partition_columns_decide(condition, expected):
    assert terms(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "id = 1",
        "p = 1 OR id = 2",
        "NOT (p = 1 AND id = 2)",
        "p = id",
        "p = rand()",
        "p IN (SELECT 1)",
        "p = (SELECT max(p) FROM t)",
        "EXISTS (SELECT 1 FROM u WHERE p = 1)",
        "u.p = 1",
        "t.p.q = 1",
        "p.q = 1",
        "p(1) = 1",
        "p[0] = 1",
        "p = current_date",
        "upper(p) = 'A'",
        "CASE WHEN p = 1 THEN true END",
        "CASE WHEN id = 1 AND p = 1 AND id = 2 THEN false ELSE true END",
        "end = 1 OR id = 1 AND case = 1 AND p = 1",
        "t.end = 1 OR id = 1 AND t.case = 1 AND p = 1",
        "id = 1 AND case = 1 OR end = 8 AND p = 1",
        "id > :case OR id = :end AND p = 1",
        "CASE WHEN end = 1 AND p = 1 AND case = 1 THEN false ELSE true END",
        "m[id = 1 AND p = 1 AND id = 2]",
        "p = x -> x",
        "p = 1 + id",
        "1 = 1",
        "true",
    ],
)
def test_all_other_terms_say_nothing(condition):
    assert terms(condition) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.a = s.b", [("a", "b")]),
        ("(t.a = s.b AND t.C = s.`D`)", [("a", "b"), ("c", "d")]),
        ("t.a = s.b AND t.x > 1", [("a", "b")]),
        ("t.a = s.b OR t.c = s.d", []),
        ("NOT t.a = s.b", []),
        ("t.a = s.b IS NOT NULL", []),
        ("CASE WHEN t.x = 1 AND t.a = s.b AND s.y = 2 THEN false ELSE true END", []),
    ],
)
def test_columns_that_a_condition_wants_to_be_equal(condition, expected):
    pairs = [
        pair for _, pair in terms_and_equated_pairs(condition, Span(0, len(condition))) if pair
    ]
    assert pairs == [{("t", a), ("s", b)} for a, b in expected]


def test_a_conditions_terms_are_all_of_it():
    condition = (
        " t.a = s.b AND (CASE WHEN t.x = 1 AND s.y = 2 THEN true END)\nAND t.c BETWEEN 1 AND 2 "
    )
    found = [
        place.slice(condition)
        for place, _ in terms_and_equated_pairs(condition, Span(0, len(condition)))
    ]
    assert " AND ".join(found) == " ".join(condition.split())


def comparisons(condition):
    text = f"DELETE FROM t WHERE {condition}"
    return plain_comparisons(text, Span(text.index("WHERE") + 6, len(text)), QUALIFIERS)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ID = 1 AND t.`n` <= -2", [("id", "=", ["1"]), ("n", "<=", ["-2"])]),
        ("5 < id AND DATE '2024-01-01' == day",
         [("id", ">", ["5"]), ("day", "=", ["date '2024-01-01'"])]),
        ("id BETWEEN 1 AND 3 AND s IN ('a', 'ü ')",
         [("id", ">=", ["1"]), ("id", "<=", ["3"]), ("s", "in", ["'a'", "'ü '"])]),
        ("f(id) AND (id = 2 OR true) AND s = 'x'", [("s", "=", ["'x'"])]),
        ("`user` = 'ann' AND t.user = 'bob'", [("user", "=", ["'ann'"]), ("user", "=", ["'bob'"])]),
    ],
)  # fmt: skip
def test_names_that_are_compared_with_literals(condition, expected):
    assert comparisons(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "id = 1 OR id = 2", "NOT id = 1", "id <> 1", "id <=> 1", "id = 1.5", "id = 1L",
        "id = 1 + 1", "s = 'a' 'b'", r"s = 'a\n'", 's = "a"', "s = r'a'", "s = 'a' || x",
        "u.id = 1", "id + 1 = 2",
        "db.t.id = 1", "t.id.x = 1", "id[0] = 1", "id(0) = 1", "id = :a", "id = ?", "id IN (1, x)",
        "id IN (SELECT 1)", "id IN (1) IS NULL", "id NOT IN (1)", "s LIKE 'a'", "id = 1 IS NULL",
        "id = (1)", "id = 12345678901234567890", "id BETWEEN 1 AND x", "id NOT BETWEEN 1 AND 2",
        "CASE WHEN a THEN b END = 1", "1 = 1", "id = 1::string", "id = -x", "id = 1 = true",
        "s = 'a' COLLATE UNICODE_CI", "s = x'00'", "day = TIMESTAMP '2024-01-01'", "id > = 1",
        "USER = 'ann'", "true = 1", "1 = NULL",
        "current_date = DATE '2024-01-01'", f"id IN ({', '.join('1' * 1001)})",
        "id IN (1, 2", "EXISTS (SELECT 1 FROM u WHERE id = 1)", "id IN (1 2)", "id BETWEEN 1 OR 2",
    ],
)  # fmt: skip
def test_nothing_that_a_session_may_mean_otherwise_is_such_a_comparison(condition):
    assert comparisons(condition) == []


def test_a_subquery_behind_from_names_no_columns_around_it():
    for query in (
        "SELECT a FROM t WHERE a IN (1)", "SELECT a\nFROM (\nSELECT b) JOIN (SELECT 1) ON a = b",
        "WITH c AS (SELECT 1) SELECT * FROM(VALUES (1))", "SELECT a FROM (VALUES ('it is from x'))",
    ):  # fmt: skip
        assert not may_correlate(query)
    for query in (
        "SELECT a IS DISTINCT FROM (SELECT 1)", "SELECT trim('x' FROM (SELECT 1)) FROM t",
        "SELECT a FROM t WHERE a < (-- the newest\nSELECT 1)", "SELECT -- from\n(SELECT 1)",
        "SELECT (SELECT ' from ')",
        "SELECT a FROM (SELECT b) WHERE EXISTS (SELECT 1 FROM (SELECT 2))", "SELECT (SELECT 1)",
        "SELECT 1 FROM t JOIN LATERAL (SELECT t.a)", "SELECT 1 FROM t, (SELECT 1)", "(SELECT 1)",
        "SELECT 1 FROM t WHERE a = ( FROM u SELECT b)", "SELECT x_from(SELECT 1)",
        "SELECT 1 FROM t WHERE EXISTS -- rows from\n(SELECT 1)",
        "SELECT 1 WHERE (/* FROM */(SELECT 1))",
    ):  # fmt: skip
        assert may_correlate(query)


def test_a_text_with_variables_of_a_session_says_nothing():
    table = Table(TableName("default", "t"), "/t", (Column("day", "string"),))
    for value, expected in (("2024", "2024"), ("${day}", None)):
        text = f"DELETE FROM t WHERE day = '{value}'"
        known = condition_predicate(text, table, "t", Span(text.index("WHERE") + 6, len(text)))
        assert known == (
            Comparison("day", "=", (TypedValue("string", value),)) if expected else ANYTHING
        )


ID_IS_1 = Comparison("id", "=", (TypedValue("int", "1"),))


def known_of_query(text):
    """What a query says about the first table that it names."""
    table = Table(TableName("default", "t"), "/t", (Column("id", "int"), Column("limit", "int")))
    return where_predicate(
        StandIn("v", table, text_and_reference=(text, references(text).references[0]))
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE id = 1", "select id from db.`T`\nwhere T.id = 1 order by id limit 3",
        "SELECT * FROM t AS x WHERE x.id = 1 AND f(id) AND id = 2",
        "SELECT * FROM t x WHERE (1 = ID) GROUP BY id HAVING count(*) > 1 OR max(id) > 3",
        "SELECT * FROM (SELECT * FROM t WHERE id = 1) WHERE id = 2 OR id = 3",
        "WITH c AS (SELECT * FROM t WHERE id = 1) SELECT * FROM c, u WHERE u.id = 2 OR c.id = 1",
        "SELECT * FROM t VERSION AS OF 3 WHERE id = 1 UNION SELECT * FROM u WHERE a OR b",
        "SELECT (SELECT max(id) FROM t WHERE id = 1), 1 FROM u WHERE a OR b",
        "INSERT INTO u SELECT * FROM t WHERE id IN (1) EXCEPT SELECT 1 WHERE a OR b",
        "SELECT * FROM t WHERE id = 1 /* OR */ -- OR",
    ],
)  # fmt: skip
def test_where_behind_the_only_table_of_a_query_says_which_rows_it_needs(query):
    expected = Comparison("id", "in", ID_IS_1.values) if " IN " in query else ID_IS_1
    assert known_of_query(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t", "SELECT * FROM t WHERE id = 1 OR true",
        "SELECT * FROM t, u WHERE id = 1", "SELECT * FROM t LEFT JOIN u WHERE id = 1",
        "SELECT * FROM t TABLESAMPLE (1 ROWS) WHERE id = 1",
        "SELECT * FROM t TABLESAMPLE (9 PERCENT) REPEATABLE (3) AS x WHERE x.id = 1",
        "SELECT * FROM (SELECT 1 AS id) LEFT ANTI JOIN -- all rows from\nt WHERE id = 1",
        "SELECT * FROM t AS x (a, id) WHERE id = 1", "SELECT * FROM t AS x WHERE t.id = 1",
        "SELECT * FROM t WHERE f(id) ORDER BY id LIMIT 3 UNION SELECT 1 FROM u WHERE u.id = 1",
        "SELECT * FROM t WHERE f(id) AND id = 1",
        "SELECT * FROM t WHERE id = 1 AND limit = 2 OR true",
        "SELECT * FROM t WHERE id = 1 GROUP BY '${x}'", "FROM t |> WHERE id = 1", "TABLE t",
        "SELECT * FROM t LATERAL VIEW explode(a) AS id WHERE id = 1",
        "SELECT * FROM t WHERE idx = 1",
        "SELECT * FROM t PIVOT (max(id) FOR k IN (1)) WHERE id = 1",
        "SELECT * FROM t WHERE NOT id = 1", "SELECT * FROM t WHERE (SELECT true) AND id = 1",
        "SELECT * FROM t WHERE id = 1 |> LIMIT 1",
    ],
)  # fmt: skip
def test_where_says_nothing_that_is_not_certain(query):
    assert known_of_query(query) == ANYTHING


def test_a_column_may_have_the_name_of_a_clause():
    query = "SELECT * FROM t WHERE id = 1 AND limit > 2 UNION SELECT * FROM u WHERE a OR limit"
    limit = Comparison("limit", ">", (TypedValue("int", "2"),))
    assert known_of_query(query) == And((ID_IS_1, limit))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a IN (SELECT 1)", True),
        ("a IN (VALUES 1, 2)", True),
        ("EXISTS (FROM t)", True),
        ("a IN (TABLE t)", True),
        ("a IN (1, 2) AND b = 'SELECT'", False),
        ("extract(YEAR FROM day) = 2024", False),
    ],
)
def test_a_subquery_is_seen_however_it_begins(condition, expected):
    assert has_subquery(condition, Span(0, len(condition))) is expected
