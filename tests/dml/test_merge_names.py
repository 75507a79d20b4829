"""MERGE: what a name means in each clause, and which column of the source ``*`` takes."""

from __future__ import annotations

from typing import Any

import pytest
from kit import counts, fill, ordered, refused, rows, table
from over_hive import needs
from pyspark.sql import functions as F  # noqa: N812

from acidsql.errors import AcidSqlError

R = "r STRUCT<v: STRING, k: INT>"


@pytest.fixture
def t(acid):
    """A target and a source with the same names; id 2 is in both."""
    cells = ", ".join(f"c{i} STRING" for i in range(9))
    fill(acid, f"t (id INT, v STRING, n INT, {R}, {cells})")
    acid.sql("INSERT INTO t (id, v, n, r) VALUES (1, 'a', 10, named_struct('v', 'ta', 'k', 1)), "
             "(2, 'b', 20, named_struct('v', 'tb', 'k', 2))")  # fmt: skip
    fill(acid, f"s (id INT, v STRING, n INT, {R})", "2, 'B', 2, named_struct('v', 'sb', 'k', 0)",
         "3, 'C', 3, named_struct('v', 'sc', 'k', 0)",
         "4, 'D', 4, named_struct('v', 'sd', 'k', 0)")  # fmt: skip
    fill(acid, "u (id INT, w STRING)", "1, 'one'", "2, 'two'", "3, 'three'")
    return acid


def cells(acid: Any, key: int) -> list[str]:
    """What a row of t has behind its struct."""
    (row,) = rows(acid, f"SELECT * EXCEPT (n, r) FROM t WHERE id = {key}")
    return [value for value in row[1:] if value is not None]


def test_only_the_source_is_in_scope_where_no_row_of_the_target_is(t):
    of_source = {
        "v": "C",
        "concat(v, s.v, `V`)": "CCC",
        "concat(r.v, s.r.v)": "scsc",
        "(SELECT max(w) FROM u WHERE u.id = n)": "three",
        "(SELECT max(w) FROM u WHERE id = n AND u.id < 9)": "three",
        "(SELECT max(v) FROM t)": "b",
        "array_join(transform(array(1), v -> v + n), '')": "4",
        "aggregate(array(1, n), 0, (id, n) -> id + n)": "4",
        "to_json(struct(s.* EXCEPT (r)))": '{"id":3,"v":"C","n":3}',
        "to_json(struct(r.*, mask(str => v, upperChar => 'Q') AS v))": '{"v":"sc","k":0,"v":"Q"}',
    }
    columns = ", ".join(f"c{i}" for i in range(len(of_source) - 1))
    assert counts(t, f"""
        MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND t.v = lower(s.v) THEN UPDATE SET n = s.n + t.n
        WHEN NOT MATCHED AND id = 3 AND n > 2 AND EXISTS (SELECT 1 FROM u WHERE u.id = n)
          THEN INSERT (id, v, {columns}) VALUES (id, {", ".join(of_source)})
        WHEN NOT MATCHED AND n NOT IN (SELECT k.id FROM u AS k WHERE k.w <> v)
          THEN INSERT (id, v) VALUES (id, lower(v))
        WHEN NOT MATCHED BY SOURCE AND v = 'q' THEN DELETE""") == (2, 1, 0)  # fmt: skip
    assert cells(t, 3) == [*of_source.values()]
    assert cells(t, 4) == ["d"]
    assert rows(t, "SELECT n FROM t WHERE id = 2") == [(22,)]


def test_only_the_target_is_in_scope_where_no_row_of_the_source_is(t):
    of_target = {
        "concat(v, n)": "a10",
        "concat(r.v, t.r.v, t.v)": "tataa",
        "(SELECT max(w) FROM u WHERE u.id = r.k)": "one",
        "(SELECT count(*) FROM s WHERE s.n < n)": "0",
        "array_join(transform(array(1), v -> v + n), '')": "11",
        "to_json(struct(t.* EXCEPT (r, c0, c1, c2, c3, c4, c5, c6, c7, c8)))":
            '{"id":1,"v":"a","n":10}',
    }  # fmt: skip
    sets = ", ".join(f"c{i} = {value}" for i, value in enumerate(of_target))
    assert counts(t, f"""
        MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND t.v = s.v THEN UPDATE SET v = s.v
        WHEN NOT MATCHED AND v = 'q' THEN INSERT (id) VALUES (id)
        WHEN NOT MATCHED BY SOURCE AND n <> 10 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND row__id.rowid >= 0 AND t.row__id.writeid > 0
          AND EXISTS (SELECT 1 FROM u WHERE u.id = n / 10)
          THEN UPDATE SET {sets}, v = upper(v)""") == (0, 1, 0)  # fmt: skip
    assert cells(t, 1) == ["A", *of_target.values()]


def test_a_name_of_a_side_without_a_row_and_one_of_both_sides_are_refused(t):
    of_t = "(SELECT max(w) FROM u WHERE u.id = t.id)"
    for clause, condition, at in (
        ("NOT MATCHED THEN INSERT (v) VALUES (t.v)", "UNRESOLVED_COLUMN", "t.v"),
        (f"NOT MATCHED THEN INSERT (v) VALUES ({of_t})", "UNRESOLVED_COLUMN", "t.id"),
        ("NOT MATCHED AND t.id = 1 THEN INSERT (id) VALUES (id)", "UNRESOLVED_COLUMN", "t.id"),
        ("NOT MATCHED AND c0 = 1 THEN INSERT (id) VALUES (id)", "UNRESOLVED_COLUMN", "c0"),
        ("NOT MATCHED AND hash(t.*) = 1 THEN INSERT (id) VALUES (id)", "", None),
        ("NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v", "UNRESOLVED_COLUMN", "s.v"),
        ("NOT MATCHED BY SOURCE AND s.id = 1 THEN DELETE", "UNRESOLVED_COLUMN", "s.id"),
        ("MATCHED THEN UPDATE SET v = v", "AMBIGUOUS_REFERENCE", "v"),
        ("MATCHED AND n = 2 THEN DELETE", "AMBIGUOUS_REFERENCE", "n"),
    ):
        error = refused(t, f"MERGE INTO t USING s ON t.id = s.id WHEN {clause}", condition, at)
        assert "acidsql" not in error.message


def test_an_alias_is_advised_if_both_sides_have_one_name(t):
    t.sql("CREATE DATABASE d2")
    t.sql("CREATE TABLE d2.t (id INT, v STRING)")
    for statement in (
        "MERGE INTO t USING d2.t ON default.t.id = d2.t.id WHEN MATCHED THEN DELETE",
        "UPDATE t SET v = d2.t.v FROM d2.t WHERE t.id = d2.t.id",
        "DELETE FROM t USING d2.t WHERE t.id = d2.t.id",
    ):
        error = refused(t, statement, "AMBIGUOUS_REFERENCE", None)
        assert "If two relations are called `t` here, give one an alias" in error.message
    t.sql("MERGE INTO t USING d2.t AS s ON t.id = s.id WHEN MATCHED THEN DELETE")


def test_a_side_is_in_scope_whatever_it_is_called(t, conf):
    """A query without an alias, aliases of columns, a WITH clause, two columns of one name."""
    insert = "WHEN NOT MATCHED THEN INSERT (id, v) VALUES"
    fill(t, "w (id INT, v STRING)", "1, 'a'")
    for statement in (
        f"MERGE INTO w USING (SELECT 11 AS id, 'x' AS v) ON false {insert} (id, v)",
        "MERGE INTO w USING (SELECT 12 AS id, 'x' AS v) ON false WHEN NOT MATCHED THEN INSERT *",
        f"MERGE INTO w AS t USING VALUES (13, 'x') AS w (id, v) ON t.id = w.id {insert} (w.id, v)",
        f"WITH c AS (SELECT 14 AS id, 'x' AS v) MERGE INTO w USING c ON w.id = c.id {insert} "
        "((SELECT max(id) FROM c WHERE c.v = v), v)",
        f"MERGE INTO w USING (SELECT 1 AS n, 2 AS n, 15 AS id, 'x' AS v) AS s ON w.id = s.id "
        f"{insert} (id, v)",
        "MERGE INTO w AS `a.b` USING default.u ON `a.b`.id = u.id + 15 AND u.id < 2 "
        "WHEN NOT MATCHED AND default.u.id = 1 THEN INSERT (id, v) VALUES (id + 15, 'x') "
        "WHEN NOT MATCHED BY SOURCE AND `a.b`.v = 'a' AND id = 1 THEN UPDATE SET v = concat(v, id)",
    ):
        counts(t, statement)
    news = t.spark.sql("SELECT 17 AS id, 'x' AS v")
    merge = t.merge_into(news, "w", "w.id = source.id").whenNotMatched(F.col("id") > 16)
    merge.insert({"id": "id", "v": F.col("v")}).whenNotMatchedBySource("v = 'q'").delete().merge()
    assert table(t, "w") == ordered([(1, "a1"), *((n, "x") for n in range(11, 18))])


def test_what_does_not_apply_is_not_evaluated_and_chance_is_asked_once(t, conf):
    conf("spark.sql.ansi.enabled", "true")
    assert counts(t, """
        MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET n = 6 / (s.id - 1)
        WHEN NOT MATCHED AND 1 / (id - 2) > 0.9 THEN INSERT (id, n) VALUES (id, 1 / (id - 2))
        WHEN NOT MATCHED BY SOURCE AND 1 / (id - 2) < 0 THEN UPDATE SET n = 1 / (id - 2)""",
    ) == (1, 2, 0)  # fmt: skip
    assert rows(t, "SELECT id, n FROM t") == [(1, -1), (2, 6), (3, 1)]
    merge = "MERGE INTO t USING (SELECT id FROM range(1000, 1200)) AS s ON t.id = s.id "
    inserted = counts(
        t,
        merge + "WHEN NOT MATCHED AND rand() < 0.5 THEN INSERT (id, n) VALUES (id, 1) "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, 2)",
    )
    assert inserted == (200, 0, 0)
    assert [row[0] for row in rows(t, "SELECT DISTINCT n FROM t WHERE id >= 1000")] == [1, 2]


def test_a_char_is_compared_as_a_char_on_either_side(acid):
    fill(acid, "t (id INT, c CHAR(3))", "1, 'a'")
    fill(acid, "s (id INT, c CHAR(5))", "2, 'b'")
    assert counts(acid, """
        MERGE INTO t USING s ON t.id = s.id
        WHEN NOT MATCHED AND c = 'b' THEN INSERT (id, c) VALUES (id, c)
        WHEN NOT MATCHED BY SOURCE AND c = 'a' THEN UPDATE SET id = 7""",
    ) == (1, 1, 0)  # fmt: skip
    assert table(acid) == [(2, "b  "), (7, "a  ")]


# ── the columns that * takes ─────────────────────────────────────────────────────────────────

STAR = "MERGE INTO {} USING ({}) AS s ON {}.id = s.id "
BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def test_a_star_tells_columns_apart_by_case(acid, conf):
    conf("spark.sql.caseSensitive", "true")
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    for values in ("1 AS id, 'x' AS v, 7 AS ID, 'wrong' AS V",
                   "7 AS ID, 'wrong' AS V, 2 AS id, 'y' AS v", "3 AS id, 'z' AS V"):  # fmt: skip
        counts(acid, STAR.format("t", f"SELECT {values}", "t") + BOTH)
    assert table(acid) == [(1, "x"), (2, "y"), (3, "z")]
    several = STAR.format("t", "SELECT 1 AS id, 'p' AS V, 'q' AS `v`", "t") + BOTH
    counts(acid, several)
    assert table(acid)[0] == (1, "q")
    conf("spark.sql.caseSensitive", "false")
    refused(acid, several, "AMBIGUOUS")
    conf("spark.sql.caseSensitive", "true")
    fill(acid, "w (id INT, max STRING)", "1, 'a'")
    doubled = STAR.format("w", "SELECT 1 AS id, 'p' AS MAX, 'q' AS Max", "w")
    for clause in ("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"):
        refused(acid, doubled + clause, "AMBIGUOUS", clause)


def test_a_star_moves_a_row_whose_partition_on_equates_with_a_column_in_other_letters(acid, conf):
    conf("spark.sql.caseSensitive", "true")
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    counts(
        acid,
        "MERGE INTO t USING (SELECT 1 AS id, 1 AS P, 9 AS p) AS s ON t.id = s.id AND t.p = s.P "
        "WHEN MATCHED THEN UPDATE SET *",
    )
    assert table(acid) == [(1, 9), (2, 2)]


def test_a_star_needs_each_column_that_has_no_default(acid):
    fill(acid, "t (id INT, v STRING, d INT DEFAULT 7) PARTITIONED BY (p INT)", "1, 'a', 1, 1")
    insert, update = "WHEN NOT MATCHED THEN INSERT *", "WHEN MATCHED THEN UPDATE SET *"
    for source, clause, missing in (
        ("SELECT 2 AS id, 5 AS d, 1 AS p", insert, "'v'"),
        ("SELECT 2 AS id, 'b' AS v, 5 AS d", insert, "'p'"),
        ("SELECT 1 AS id, 'b' AS v, 1 AS p", update, "'d'"),
    ):
        error = refused(acid, STAR.format("t", source, "t") + clause, "UNRESOLVED_COLUMN", clause)
        assert missing in error.message
    counts(acid, STAR.format("t", "SELECT 2 AS id, 'b' AS v, 1 AS p", "t") + insert)
    source = acid.spark.sql("SELECT 3 AS id, 'c' AS v, 2 AS p").alias("s")
    merge = acid.merge_into(source, "t", "t.id = s.id").whenNotMatched().insertAll()
    assert merge.merge().first().num_inserted_rows == 1
    assert table(acid) == [(1, "a", 1, 1), (2, "b", 7, 1), (3, "c", 7, 2)]
    lacking = acid.spark.sql("SELECT 4 AS id, 2 AS p").alias("s")
    with pytest.raises(AcidSqlError, match="'v'"):
        acid.merge_into(lacking, "t", "t.id = s.id").whenNotMatched().insertAll().merge()


@needs("alters_in_commit")
def test_a_star_with_schema_evolution_keeps_or_leaves_null_what_the_source_lacks(acid):
    fill(acid, "t (id INT, v STRING, d INT DEFAULT 7)", "1, 'a', 1")
    merge = STAR.format("t", "SELECT id, id AS new FROM VALUES (1), (2) AS x (id)", "t")
    acid.sql(merge.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION") + BOTH)
    assert table(acid) == [(1, "a", 1, 1), (2, None, 7, 2)]
