"""UPDATE and DELETE: which rows they change, the new values, and what is refused."""

from __future__ import annotations

import pytest
from kit import counts, directories, fill, ordered, refused, row_ids_are_unique, rows, table

from acidsql.errors import AcidSqlError, ConstraintError, SqlError


@pytest.fixture
def t(acid):
    """A table with four rows, one with nulls; and a table for subqueries."""
    fill(acid, "t (id INT, v STRING, n INT)", "1, 'a', 10", "2, 'b', 20", "3, NULL, 0",
         "NULL, 'z', NULL")  # fmt: skip
    fill(acid, "u (k INT, w STRING)", "1, 'one'", "2, 'two'", "NULL, 'null'")
    return acid


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("n > 5", {1, 2}),
        ("NOT (n > 5)", {3}),
        ("id IN (SELECT k FROM u)", {1, 2}),
        ("id NOT IN (SELECT k FROM u)", set()),
        ("id NOT IN (SELECT k FROM u WHERE k IS NOT NULL)", {3}),
        ("EXISTS (SELECT 1 FROM u WHERE u.k = t.id)", {1, 2}),
        ("NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.id)", {3, None}),
        ("n = (SELECT max(n) FROM t)", {2}),
        ("n > (SELECT avg(n) FROM t AS o WHERE o.id <= t.id)", {2}),
        ("v LIKE 'a%' OR id IS NULL", {1, None}),
        ("default.t.id = 1", {1}),
        ("id = 1 /* ) */ -- OR true", {1}),
        ("row__id.rowid = 1", {2}),
        ("id + 1 = 3 AND array_contains(transform(array(id), x -> x + 1), 3)", {2}),
    ],
)
def test_where_says_which_rows(t, where, ids):
    done = counts(t, f"UPDATE t SET v = 'hit' WHERE {where}")
    assert done == (0, len(ids), 0)
    assert {row[0] for row in table(t) if row[1] == "hit"} == ids
    row_ids_are_unique(t, "t")
    again = where.replace("v LIKE 'a%'", "v = 'hit'").replace("row__id.rowid = 1", "id = 2")
    assert counts(t, f"DELETE FROM t WHERE {again}") == (0, 0, len(ids))
    assert {row[0] for row in table(t)} == {1, 2, 3, None} - ids


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("(SELECT max(w) FROM u)", ["two"] * 4),
        ("(SELECT w FROM u WHERE u.k = t.id)", ["one", "two", None, None]),
        ("CASE WHEN id IN (SELECT k FROM u) THEN 'in' END", ["in", "in", None, None]),
        ("CASE WHEN EXISTS (SELECT 1 FROM u WHERE k = t.id) THEN 'x' ELSE v END",
         ["x", "x", None, "z"]),
        ("(SELECT max(x) FROM (SELECT w, max(w) OVER (PARTITION BY k) AS x FROM u))",
         ["two"] * 4),
        ("n", ["10", "20", "0", None]),
        ("DEFAULT", [None] * 4),
        ("concat(x.v, 'it''s', \"q\")", ["ait'sq", "bit'sq", None, "zit'sq"]),
    ],
)  # fmt: skip
def test_set_takes_any_value_of_the_row(t, value, expected):
    assert counts(t, f"UPDATE t AS x SET x.v = {value.replace('t.id', 'x.id')}") == (0, 4, 0)
    by_id = {row[0]: row[1] for row in table(t)}
    assert [by_id[key] for key in (1, 2, 3, None)] == expected


def test_all_values_are_of_before_the_statement(t):
    counts(t, "UPDATE t SET id = n, n = id")
    assert table(t) == [(0, None, 3), (10, "a", 1), (20, "b", 2), (None, "z", None)]


@pytest.mark.parametrize(
    ("statement", "condition", "at"),
    [
        ("UPDATE t SET n = explode(array(1, 2))", "UNSUPPORTED_GENERATOR", None),
        ("UPDATE t SET n = sum(n)", "", None),
        ("UPDATE t SET n = row_number() OVER (ORDER BY id)", "UNSUPPORTED_EXPR", "OVER"),
        ("UPDATE t SET n = first(n) IGNORE NULLS OVER (ORDER BY id)", "UNSUPPORTED_EXPR", "OVER"),
        ("UPDATE t SET n = nope", "UNRESOLVED_COLUMN", "nope"),
        ("UPDATE t SET nope = 1", "UNRESOLVED_COLUMN", "nope"),
        ("UPDATE t SET n = 1, N = 2", "DUPLICATE_ASSIGNMENTS", "N"),
        ("UPDATE t SET n = v", "INCOMPATIBLE_DATA_FOR_TABLE", "v"),
        ("UPDATE t SET n = true", "INCOMPATIBLE_DATA_FOR_TABLE", "true"),
        ("UPDATE t SET n = 1 WHERE nope", "UNRESOLVED_COLUMN", "nope"),
        ("UPDATE t SET n = 1 WHERE id", "", None),
        ("UPDATE t SET n = 1 WHERE sum(n) > 1", "INVALID_WHERE_CONDITION", None),
        ("UPDATE t SET row__id = NULL", "UNRESOLVED_COLUMN", "row__id"),
        ("UPDATE t SET n = (SELECT k, w FROM u)", "", None),
        ("DELETE FROM t WHERE row_number() OVER (ORDER BY id) = 1", "", None),
        ("DELETE FROM t WHERE id = 1 LIMIT 1", "UNSUPPORTED_FEATURE", "LIMIT"),
        ("DELETE FROM t WHERE id = 1) OR (true", "PARSE_SYNTAX_ERROR", None),
        ("DELETE FROM t WHERE id = 1; DELETE FROM t", "", None),
        ("UPDATE t SET n = 1 FROM u", "", None),
        ("UPDATE t SET n = __acidsql_writeid", "", None),
    ],
)
def test_a_wrong_statement_is_refused_where_it_is_wrong(t, statement, condition, at):
    before = table(t)
    refused(t, statement, condition, at)
    assert table(t) == before


def test_a_row_moves_if_its_partition_or_bucketing_columns_change(acid):
    fill(acid, "t (id INT, b INT) PARTITIONED BY (p INT) CLUSTERED BY (b) INTO 2 BUCKETS",
         "1, 1, 1", "2, 2, 2", "3, 3, 3")  # fmt: skip
    assert counts(acid, "UPDATE t SET p = p + 1 WHERE p < 3") == (0, 2, 0)
    assert table(acid) == [(1, 1, 2), (2, 2, 3), (3, 3, 3)]
    assert counts(acid, "UPDATE t AS x SET x.b = 7 - b, p = NULL WHERE id > 1") == (0, 2, 0)
    assert table(acid) == [(1, 1, 2), (2, 5, None), (3, 4, None)]
    acid.compact("t", wait=acid.metastore.abilities.can_work)
    assert rows(acid, "SELECT id FROM t WHERE b = 5 AND p IS NULL") == [(2,)]  # by bucket, too
    moved = acid.sql("UPDATE t SET p = id RETURNING old.p, new.p AS now, id").collect()
    assert ordered(moved) == [(2, 1, 1), (None, 2, 2), (None, 3, 3)]
    with pytest.raises(ConstraintError, match="This text is no INT"):
        acid.sql("UPDATE t SET p = 'x'")


@pytest.mark.parametrize("text", [
    "UPDATE t SET v = (SELECT w FROM u)",
    "DELETE FROM t WHERE v = (SELECT w FROM u)",
    "INSERT INTO t (v) SELECT (SELECT w FROM u)",
    "MERGE INTO t USING u ON id = k WHEN MATCHED THEN UPDATE SET v = (SELECT w FROM u)",
])  # fmt: skip
def test_a_scalar_subquery_of_two_rows_fails_and_changes_nothing(t, text):
    before = table(t), directories(t)
    with pytest.raises(AcidSqlError, match="More than one row") as caught:
        t.sql(text)
    assert caught.value.condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    assert "apache" not in str(caught.value)
    assert (table(t), directories(t)) == before


def test_not_null_holds_for_every_statement(acid):
    acid.sql("CREATE TABLE t (id INT NOT NULL, v STRING) PARTITIONED BY (p STRING NOT NULL)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 'x')")
    before = directories(acid)
    for statement in (
        "INSERT INTO t VALUES (NULL, 'b', 'x')",
        "INSERT INTO t (v, p) VALUES ('b', 'x')",
        "INSERT INTO t SELECT nullif(id, 1), v, p FROM t",
        "INSERT OVERWRITE t SELECT CAST(NULL AS INT), v, p FROM t",
        "FROM t INSERT INTO t SELECT NULL, v, p",
        "UPDATE t SET id = NULL",
        "UPDATE t SET id = (SELECT max(id) FROM t WHERE false)",
        "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = NULL",
        "MERGE INTO t USING t AS s ON t.id <> s.id WHEN NOT MATCHED THEN INSERT (p) VALUES ('y')",
        "INSERT INTO t VALUES (2, 'b', NULL)",
        "INSERT INTO t SELECT id, v, '' FROM t",
        "INSERT INTO t PARTITION (p = NULL) VALUES (2, 'b')",
    ):
        with pytest.raises(ConstraintError) as caught:
            acid.sql(statement)
        assert caught.value.condition == "NOT_NULL_CONSTRAINT_VIOLATION", statement
        assert (table(acid), directories(acid)) == ([(1, "a", "x")], before)


def test_default_is_a_value(acid):
    acid.sql("CREATE TABLE t (id INT DEFAULT 1 + 1, v STRING DEFAULT concat('it', '''s'), n INT)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1), (DEFAULT, DEFAULT, DEFAULT)")
    acid.sql("INSERT INTO t (n) VALUES (3)")
    acid.sql("INSERT INTO t (n, id) SELECT 4, 4")
    assert table(acid) == [(1, "a", 1), (2, "it's", 3), (2, "it's", None), (4, "it's", 4)]
    assert counts(acid, "UPDATE t SET v = DEFAULT, n = DEFAULT WHERE id = 1") == (0, 1, 0)
    assert (1, "it's", None) in table(acid)


def test_parameters_by_name_and_by_position(t):
    assert counts(t, "UPDATE t SET v = :v, n = n + :n WHERE id = :id",
                  {"v": "it's :id", "n": 1, "id": 1}) == (0, 1, 0)  # fmt: skip
    assert counts(t, "UPDATE t SET v = ?, n = ? + n WHERE id IN (?, ?)",
                  ["?", 100, 2, 3]) == (0, 2, 0)  # fmt: skip
    assert counts(t, "DELETE FROM t WHERE v = ? AND '?' = v AND id = ?", ["?", 3]) == (0, 0, 1)
    assert table(t) == [(1, "it's :id", 11), (2, "?", 120), (None, "z", None)]
    assert counts(t, "MERGE INTO t USING (SELECT ? AS id) s ON t.id = s.id AND t.n > ? "
                  "WHEN MATCHED THEN UPDATE SET v = ? WHEN NOT MATCHED THEN INSERT (v) VALUES (?)",
                  [1, 5, "m", "i"]) == (0, 1, 0)  # fmt: skip
    assert counts(t, "INSERT INTO t VALUES (?, :x, 1)".replace(":x", "?"), [9, "p"]) == (1, 0, 0)
    assert {(1, "m", 11), (9, "p", 1)} <= set(table(t))
    with pytest.raises(SqlError):
        t.sql("DELETE FROM t WHERE id = :missing", {"id": 1})


def test_variables_are_substituted_once(t, conf):
    conf("acidtest.where", "id = 1")
    conf("acidtest.text", "'${acidtest.where}'")
    assert counts(t, "DELETE FROM t WHERE ${acidtest.where}") == (0, 0, 1)
    assert counts(t, "UPDATE t SET v = ${acidtest.text} WHERE id = 2") == (0, 1, 0)
    assert (2, "id = 1", 20) in table(t)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = 'x' WHERE false",
        "UPDATE t SET v = 'x' WHERE id = 99",
        "DELETE FROM t WHERE v = 'nobody'",
        "DELETE FROM t WHERE CAST(NULL AS BOOLEAN)",
        "INSERT INTO t SELECT * FROM t WHERE id > 99",
    ],
)
def test_a_statement_that_changes_nothing_publishes_nothing(t, statement):
    before = directories(t)
    row = t.sql(statement).collect()[0]
    assert (row.num_affected_rows, row.write_id) == (0, None)
    assert row.txn_id is not None
    assert directories(t) == before


def test_a_row_that_fails_leaves_the_table_as_it_was(t, conf):
    conf("spark.sql.ansi.enabled", "true")
    before = table(t), directories(t)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        t.sql("UPDATE t SET n = 1 div n")
    with pytest.raises(AcidSqlError, match="out of the range"):
        t.sql("UPDATE t SET n = n + 2147483640L")
    assert (table(t), directories(t)) == before


def test_delete_without_where_empties_the_table(t):
    assert counts(t, "DELETE FROM t") == (0, 0, 4)
    assert table(t) == []
    assert counts(t, "DELETE FROM t") == (0, 0, 0)
    assert counts(t, "INSERT INTO t VALUES (1, 'again', 1)") == (1, 0, 0)
    assert table(t) == [(1, "again", 1)]


def test_a_cte_before_the_statement(t):
    assert counts(t, "WITH c AS (SELECT k FROM u WHERE w = 'two') "
                  "DELETE FROM t WHERE id IN (SELECT k FROM c)") == (0, 0, 1)  # fmt: skip
    assert counts(t, "WITH c AS (SELECT max(w) AS m FROM u) "
                  "UPDATE t SET v = (SELECT m FROM c) WHERE id = 1") == (0, 1, 0)  # fmt: skip
