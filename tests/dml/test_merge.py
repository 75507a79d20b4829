"""MERGE: which clause applies, what it may do, and what is refused."""

from __future__ import annotations

import re

import pytest
from kit import counts, directories, fill, refused, row_ids_are_unique, rows, table
from over_hive import on_a_disk

from acidsql.errors import AcidSqlError, MergeCardinalityError

pytestmark = pytest.mark.usefixtures("by_jobs")


@pytest.fixture
def t(acid):
    """A target with four rows and a source with four; ids 2, 3 and NULL are in both."""
    fill(acid, "t (id INT, v STRING, n INT)", "1, 'a', 10", "2, 'b', 20", "3, NULL, 0",
         "NULL, 'z', NULL")  # fmt: skip
    fill(acid, "s (id INT, v STRING, n INT)", "2, 'B', 2", "3, 'C', 0", "4, 'D', 4",
         "NULL, 'Z', 9")  # fmt: skip
    return acid


def test_the_first_clause_that_is_true_wins(t):
    done = counts(t, """
        MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND s.n > 100 THEN DELETE
        WHEN MATCHED AND s.n > 1 THEN UPDATE SET v = 'first'
        WHEN MATCHED THEN UPDATE SET v = 'second', n = s.n - 1
        WHEN NOT MATCHED AND s.n > 5 THEN INSERT VALUES (s.id, 'big', s.n)
        WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)""")  # fmt: skip
    assert done == (2, 2, 0)
    assert table(t) == [
        (1, "a", 10), (2, "first", 20), (3, "second", -1), (4, None, None),
        (None, "big", 9), (None, "z", None),
    ]  # fmt: skip


def test_null_never_equals_null_in_on_but_does_with_the_null_safe_operator(t):
    merge = "MERGE INTO t USING s ON t.id {} s.id WHEN MATCHED THEN UPDATE SET v = 'm'"
    assert counts(t, merge.format("=")) == (0, 2, 0)
    assert counts(t, merge.format("<=>")) == (0, 3, 0)


def test_a_condition_that_is_null_is_not_true(t):
    assert counts(
        t,
        """MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND t.v = 'b' THEN DELETE
        WHEN MATCHED AND t.v <> 'b' THEN UPDATE SET v = 'never'""",
    ) == (0, 0, 1)
    assert (3, None, 0) in table(t)


def test_rows_of_the_target_without_a_source_row(t):
    assert counts(
        t,
        """MERGE INTO t USING s ON t.id = s.id
        WHEN NOT MATCHED BY SOURCE AND t.id IS NULL THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = t.n + 1""",
    ) == (0, 1, 1)
    assert table(t) == [(1, "a", 11), (2, "b", 20), (3, None, 0)]


def test_all_kinds_of_clauses_together(t):
    assert counts(
        t,
        """MERGE INTO t AS x USING s AS y ON x.id = y.id
        WHEN MATCHED AND y.id = 2 THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY TARGET AND y.id = 4 THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND x.id = 1 THEN UPDATE SET v = upper(x.v)""",
    ) == (1, 2, 1)
    assert table(t) == [(1, "A", 10), (3, "C", 0), (4, "D", 4), (None, "z", None)]
    row_ids_are_unique(t, "t")


def test_two_source_rows_for_one_target_row_are_a_violation_and_change_nothing(t):
    before = table(t), directories(t)
    double = "(SELECT * FROM s UNION ALL SELECT * FROM s WHERE id = 2) AS s"
    for clauses in (
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        "WHEN MATCHED AND s.v = 'B' THEN DELETE",
        "WHEN MATCHED AND false THEN UPDATE SET v = 'x' WHEN NOT MATCHED THEN INSERT *",
        "WHEN MATCHED AND t.n = 20 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'x'",
    ):
        with pytest.raises(MergeCardinalityError) as caught:
            t.sql(f"MERGE INTO t USING {double} ON t.id = s.id {clauses}")
        assert caught.value.getSqlState() == "23K01"
        assert caught.value.getCondition() == "MERGE_CARDINALITY_VIOLATION"
        assert (table(t), directories(t)) == before


@pytest.mark.parametrize("fast_paths", ["true", "false"])
@pytest.mark.parametrize("rest", ["", " PARTITIONED BY (p STRING)"])
def test_the_rows_that_are_matched_twice_are_named_and_a_query_finds_them_all(
    acid, fast_paths, rest
):
    acid.sql(f"SET acidsql.fast.paths = {fast_paths}")
    fill(acid, f"t (`a key` INT, n INT, v STRING){rest}")
    p = ", concat('p ', id % 2)" if rest else ""
    acid.sql(f"INSERT INTO t SELECT id, 0, 'it''s'{p} FROM range(1, 10)")
    acid.sql("CREATE TABLE s (id INT, x INT)")
    acid.sql("INSERT INTO s SELECT id, x FROM range(1, 10) CROSS JOIN (VALUES (1), (2)) AS two(x) "
             "WHERE id <= 5 OR x = 1")  # fmt: skip
    with pytest.raises(MergeCardinalityError) as caught:
        acid.sql("MERGE INTO t AS target USING s source ON target.`a key` = source.id -- its key\n"
                 "AND v = 'it''s' WHEN MATCHED THEN UPDATE SET n = source.x")  # fmt: skip
    message = caught.value.message
    examples = re.findall(r"a key = (\d), v = (\"it's\"|'its')", message)
    assert len(examples) == 3 and {int(key) for key, _ in examples} < {1, 2, 3, 4, 5}
    assert message.startswith("Several rows of the source match one row of default.t: a key = ")
    query = message.partition("finds all such rows: ")[2]
    assert query.startswith("SELECT target.`a key`, target.v, count(*) AS matches FROM t AS target")
    found = acid.sql(query).collect()
    assert sorted((row["a key"], row.matches) for row in found) == [(n, 2) for n in range(1, 6)]


def test_rows_of_one_row_id_in_several_partitions_are_told_apart(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2", "3, NULL")
    for key in (1, 3):
        with pytest.raises(MergeCardinalityError) as caught:
            acid.sql(f"MERGE INTO t USING (VALUES (1), (2)) ON id = {key} "
                     "WHEN MATCHED AND id > 0 THEN DELETE")  # fmt: skip
        assert f"match one row of default.t: id = {key}. Make" in caught.value.message


def test_the_repeated_matches_of_an_update_with_from_are_explained(t):
    with pytest.raises(MergeCardinalityError) as caught:
        t.sql("UPDATE t SET v = x.v FROM (SELECT 2 AS k, 'a' AS v UNION ALL SELECT 2, 'b') x "
              "WHERE t.id = x.k")  # fmt: skip
    message = caught.value.message
    assert "default.t: id = 2. Make" in message
    found = t.sql(message.partition("finds all such rows: ")[2]).collect()
    assert [tuple(row) for row in found] == [(2, 2)]


def test_an_only_unconditional_delete_may_match_twice(t):
    double = "(SELECT * FROM s UNION ALL SELECT * FROM s) AS s"
    assert counts(t, f"MERGE INTO t USING {double} ON t.id = s.id WHEN MATCHED THEN DELETE "
                     "WHEN NOT MATCHED AND s.id = 4 THEN INSERT *") == (2, 0, 2)  # fmt: skip
    assert table(t) == [
        (1, "a", 10), (4, "D", 4), (4, "D", 4), (None, "z", None)]  # fmt: skip


def test_what_is_matched_twice_matters_only_to_matched_clauses(t):
    double = "(SELECT * FROM s UNION ALL SELECT * FROM s) AS s"
    assert counts(t, f"MERGE INTO t USING {double} ON t.id = s.id "
                     "WHEN NOT MATCHED THEN INSERT *") == (4, 0, 0)  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_clause_is_evaluated_only_for_its_own_rows(t, conf, ansi):
    conf("spark.sql.ansi.enabled", ansi)
    assert counts(t, """MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND s.n <> 0 AND 100 / s.n > 1 THEN UPDATE SET n = 100 div s.n
        WHEN MATCHED AND s.n = 0 THEN UPDATE SET n = CAST('7' AS INT)
        WHEN NOT MATCHED AND s.n = 4 THEN INSERT (id, n) VALUES (4, 8 div (s.n - 2))""") == (
        1, 2, 0)  # fmt: skip
    assert {(2, 50), (3, 7), (4, 4)} <= set(rows(t, "SELECT id, n FROM t"))


def test_subqueries_in_conditions_and_values(t):
    fill(t, "u (k INT, w STRING)", "2, 'two'", "3, 'three'", "4, 'four'")
    assert counts(
        t,
        """MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND EXISTS (SELECT 1 FROM u WHERE u.k = s.id AND u.w LIKE 'tw%')
          THEN UPDATE SET v = (SELECT max(w) FROM u WHERE u.k = t.id)
        WHEN MATCHED AND s.id IN (SELECT k FROM u)
          THEN UPDATE SET n = (SELECT count(*) FROM u), v = concat(s.v, (SELECT min(w) FROM u))
        WHEN NOT MATCHED AND s.id = (SELECT max(k) FROM u)
          THEN INSERT (id, v) VALUES (s.id, (SELECT w FROM u WHERE u.k = s.id))""",
    ) == (1, 2, 0)
    assert table(t) == [
        (1, "a", 10), (2, "two", 20), (3, "Cfour", 3), (4, "four", None), (None, "z", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "s",
        "default.s AS s",
        "(SELECT id, v, n FROM s) s",
        "(WITH c AS (SELECT * FROM s) SELECT * FROM c) AS s",
        "(VALUES (2,'B',2), (3,'C',0), (4,'D',4), (CAST(NULL AS INT),'Z',9)) AS s(id, v, n)",
        "VALUES (2,'B',2), (3,'C',0), (4,'D',4), (CAST(NULL AS INT),'Z',9) AS s(id, v, n)",
        "source_view AS s",
        "spark_source s",
    ],
)
def test_every_kind_of_source(t, spark, source):
    t.sql("SELECT * FROM s").createOrReplaceTempView("source_view")
    spark.sql("DROP TABLE IF EXISTS spark_source")
    t.sql("CREATE TABLE spark_source USING parquet AS SELECT * FROM s")
    try:
        t.sql(f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
              "WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    finally:
        spark.sql("DROP TABLE spark_source")
        spark.catalog.dropTempView("source_view")
    assert [row[:2] for row in table(t)] == [
        (1, "a"), (2, "B"), (3, "C"), (4, "D"), (None, "Z"), (None, "z")]  # fmt: skip


def test_a_cte_is_a_source(t):
    assert counts(
        t,
        """WITH c AS (SELECT id, max(v) AS v FROM s GROUP BY id)
        MERGE INTO t USING c ON t.id = c.id AND c.id IN (SELECT id FROM c)
        WHEN MATCHED THEN UPDATE SET v = c.v""",
    ) in {(0, 2, 0)}


def test_a_table_is_merged_into_itself(t):
    assert counts(
        t,
        """MERGE INTO t USING t AS o ON t.id = o.id + 1
        WHEN MATCHED THEN UPDATE SET v = concat(o.v, '!')
        WHEN NOT MATCHED THEN INSERT VALUES (o.id + 100, o.v, o.n)""",
    ) == (2, 2, 0)
    assert table(t) == [
        (1, "a", 10), (103, None, 0), (2, "a!", 20), (3, "b!", 0), (None, "z", None),
        (None, "z", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("on", "touched"),
    [
        ("t.n > s.n AND s.n > 5", 2),
        ("false", 0),
        ("t.id = s.id OR t.v = lower(s.v)", 3),
        ("t.id + 1 = s.id + 1 AND t.v IS NOT NULL", 1),
        ("coalesce(t.id, -1) = coalesce(s.id, -1)", 3),
    ],
)
def test_any_condition_may_stand_in_on(t, on, touched):
    done = counts(
        t,
        f"""MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET v = 'x'
        WHEN NOT MATCHED AND false THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE""",
    )
    assert done == (0, touched, 4 - touched)


@on_a_disk
def test_a_row_moves_to_another_partition_by_delete_and_insert(acid):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p STRING)", "1, 'a', 'x'", "2, 'b', 'y'")
    fill(acid, "s (id INT, p STRING)", "1, 'y'", "3, 'z'", "4, NULL")
    assert counts(
        acid,
        """MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'new', s.p)""",
    ) == (2, 0, 1)
    assert counts(acid, "INSERT INTO t VALUES (1, 'a', 'y')") == (1, 0, 0)
    assert table(acid) == [
        (1, "a", "y"), (2, "b", "y"), (3, "new", "z"),
        (4, "new", None),
    ]  # fmt: skip
    assert "p=x" in directories(acid)


def test_a_source_with_rand_gives_one_answer(acid):
    fill(acid, "t (id INT, v DOUBLE, w DOUBLE)", *[f"{i}, 0, 0" for i in range(40)])
    acid.sql("""MERGE INTO t USING (SELECT id, rand() AS r FROM range(80)) s ON t.id = s.id
        WHEN MATCHED AND s.r < 0.5 THEN UPDATE SET v = s.r, w = s.r
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED AND s.r < 0.5 THEN INSERT VALUES (s.id, s.r, s.r)""")
    found = table(acid)
    assert all(v == w and 0 < v < 0.5 for _, v, w in found)
    assert len({row[0] for row in found}) == len(found)
    inserted, updated, deleted = (
        acid.last.counts[0].inserted,
        acid.last.counts[0].updated,
        acid.last.counts[0].deleted,
    )
    assert (updated + deleted, inserted + updated) == (40, len(found))


def test_a_condition_with_rand_is_evaluated_once(acid):
    fill(acid, "t (id INT, v STRING)", *[f"{i}, 'old'" for i in range(60)])
    acid.sql("""MERGE INTO t USING (SELECT * FROM range(60)) s ON t.id = s.id
        WHEN MATCHED AND rand() < 0.5 THEN UPDATE SET v = 'one'
        WHEN MATCHED THEN UPDATE SET v = 'two'""")
    assert {row[1] for row in table(acid)} == {"one", "two"}
    assert len(table(acid)) == 60


def test_star_takes_columns_by_name(acid):
    fill(acid, "t (id INT, a STRING, b INT DEFAULT 7) PARTITIONED BY (p INT)", "1, 'a', 1, 1")
    fill(acid, "s (P INT, A STRING, id INT)", "1, 'A', 1", "2, 'B', 2")
    acid.sql("MERGE INTO t USING s ON t.id = s.id AND t.p = s.p WHEN NOT MATCHED THEN INSERT *")
    assert table(acid) == [(1, "a", 1, 1), (2, "B", 7, 2)]
    refused(acid, "MERGE INTO t USING s ON t.id = s.id AND t.p = s.p "
            "WHEN MATCHED THEN UPDATE SET *", "UNRESOLVED_COLUMN")  # fmt: skip


def test_update_from_and_delete_using_change_the_rows_with_partners(acid):
    fill(acid, "t (id INT, v STRING, n INT)", "1, 'a', 1", "2, 'b', 2", "3, 'c', NULL", "4, 'd', 4")
    fill(acid, "s (id INT, v STRING, n INT)", "1, 'A', 9", "3, 'C', 9", "5, 'E', 9", "4, 'D', 0")
    update = (
        "UPDATE t x SET v = s.v, n = coalesce(x.n, 0) + s.n FROM s WHERE x.id = s.id AND s.n > 0"
    )
    assert counts(acid, update) == (0, 2, 0)
    assert acid.last.statement.startswith("UPDATE")
    assert table(acid) == [(1, "A", 10), (2, "b", 2), (3, "C", 9), (4, "d", 4)]
    twice = "(SELECT * FROM s UNION ALL SELECT * FROM s) u WHERE t.id = u.id"
    with pytest.raises(MergeCardinalityError):
        acid.sql(f"UPDATE t SET v = u.v FROM {twice}")
    assert counts(acid, f"DELETE FROM t USING {twice} AND u.id > 1") == (0, 0, 2)
    assert table(acid) == [(1, "A", 10), (2, "b", 2)]
    if acid.metastore.abilities.keeps_versions:
        history = acid.sql("DESCRIBE HISTORY t").select("operation").limit(2).collect()
        assert [row.operation for row in history] == ["DELETE", "UPDATE"]


def test_update_star_moves_rows(acid):
    layout = "PARTITIONED BY (p INT) CLUSTERED BY (b) INTO 2 BUCKETS"
    fill(acid, f"t (id INT, a STRING, b INT) {layout}",
         "1, 'a', 5, 1", "2, 'b', 6, 1", "3, 'c', 7, 1")  # fmt: skip
    fill(acid, "s (id INT, a STRING, b INT, p INT)", "1, 'A', 5, 1", "2, 'B', 7, 2", "3, 'C', 7, 2")
    merge = "MERGE INTO t USING s ON t.id = s.id AND {} WHEN MATCHED THEN UPDATE SET *"
    assert counts(acid, merge.format("t.b = s.b AND s.p = t.p")) == (0, 1, 0)
    assert table(acid) == [(1, "A", 5, 1), (2, "b", 6, 1), (3, "c", 7, 1)]
    assert counts(acid, merge.format("t.b = s.b AND t.id > 1")) == (0, 1, 0)
    assert table(acid) == [(1, "A", 5, 1), (2, "b", 6, 1), (3, "C", 7, 2)]
    both = merge.format("t.id = 2") + " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET p = 9, b = 0"
    assert counts(acid, both) == (0, 3, 0)
    assert table(acid) == [(1, "A", 0, 9), (2, "B", 7, 2), (3, "C", 0, 9)]


@pytest.mark.parametrize(
    ("kind", "old", "value", "new"),
    [
        ("STRING", "'01'", "1", "1"),
        ("STRING", "'1.0'", "1.00BD", "1.00"),
        ("STRING", "'2024-1-1'", "DATE '2024-01-01'", "2024-01-01"),
        ("STRING", "'yes'", "true", "true"),
        ("DOUBLE", "1.0D", "1.0D", 1.0),
        ("STRING", "'a'", "'a'", "a"),
    ],
)
def test_update_star_sets_a_partition_column_that_equals_only_after_a_cast(
    acid, kind, old, value, new
):
    """ON is true for '01' and 1, but the row's new value is '1'."""
    fill(acid, f"t (id INT) PARTITIONED BY (p {kind})", f"1, {old}")
    merge = f"MERGE INTO t USING (SELECT 1 AS id, {value} AS p) s ON t.id = s.id AND t.p = s.p"
    assert counts(acid, f"{merge} WHEN MATCHED THEN UPDATE SET *") == (0, 1, 0)
    assert table(acid) == [(1, new)]


@pytest.mark.parametrize(
    ("clause", "condition", "at"),
    [
        ("WHEN MATCHED THEN UPDATE SET nope = 1", "UNRESOLVED_COLUMN", "nope"),
        ("WHEN MATCHED THEN UPDATE SET v = s.nope", "UNRESOLVED_COLUMN", "s.nope"),
        ("WHEN MATCHED AND nope THEN DELETE", "UNRESOLVED_COLUMN", "nope"),
        (
            "WHEN MATCHED THEN UPDATE SET id = upper('x')",
            "INCOMPATIBLE_DATA_FOR_TABLE",
            "upper('x')",
        ),
        ("WHEN MATCHED THEN UPDATE SET v = 'a', v = 'b'", "DUPLICATE_ASSIGNMENTS", "v"),
        ("WHEN MATCHED THEN UPDATE SET v = explode(array(1))", "UNSUPPORTED_GENERATOR", None),
        ("WHEN MATCHED THEN UPDATE SET n = sum(s.n)", "", None),
        ("WHEN MATCHED THEN UPDATE SET n = sum(s.n) OVER ()", "UNSUPPORTED_EXPR", "OVER"),
        (
            "WHEN MATCHED AND row_number() OVER (ORDER BY s.n) = 1 THEN DELETE",
            "UNSUPPORTED_EXPR",
            "OVER",
        ),
        ("WHEN MATCHED AND 'true' THEN DELETE", "DATATYPE_MISMATCH", "'true'"),
        ("WHEN MATCHED AND s.n THEN DELETE", "DATATYPE_MISMATCH", "s.n"),
        ("WHEN NOT MATCHED AND s.v THEN INSERT *", "DATATYPE_MISMATCH", "s.v"),
        ("WHEN NOT MATCHED BY SOURCE AND t.n THEN DELETE", "DATATYPE_MISMATCH", "t.n"),
        ("WHEN NOT MATCHED THEN INSERT VALUES (1, 'a')", "MERGE_INSERT_VALUE_COUNT", None),
        ("WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 'a')", "MERGE_INSERT_VALUE_COUNT", None),
        ("WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)", "DUPLICATE_ASSIGNMENTS", "id"),
        ("WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, t.v)", "UNRESOLVED_COLUMN", "t.v"),
        ("WHEN NOT MATCHED AND t.id = 1 THEN INSERT *", "UNRESOLVED_COLUMN", "t.id"),
        ("WHEN NOT MATCHED BY SOURCE AND s.id = 1 THEN DELETE", "UNRESOLVED_COLUMN", "s.id"),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v", "UNRESOLVED_COLUMN", "s.v"),
    ],
)
def test_a_wrong_clause_is_refused_where_it_is_wrong(t, clause, condition, at):
    error = refused(t, f"MERGE INTO t USING s ON t.id = s.id {clause}", condition, at)
    assert "__acidsql" not in str(error)


def test_not_null_and_defaults_hold_in_merge(acid):
    fill(acid, "t (id INT NOT NULL, v STRING DEFAULT 'd')", "1, 'a'")
    fill(acid, "s (id INT)", "1", "2", "NULL")
    merge = "MERGE INTO t USING s ON t.id = s.id "
    with pytest.raises(AcidSqlError, match="NOT NULL"):
        acid.sql(merge + "WHEN NOT MATCHED THEN INSERT *")
    with pytest.raises(AcidSqlError, match="NOT NULL"):
        acid.sql(merge + "WHEN MATCHED THEN UPDATE SET id = NULL")
    acid.sql(
        merge + "AND t.id IS NOT NULL WHEN MATCHED THEN UPDATE SET v = DEFAULT "
        "WHEN NOT MATCHED AND s.id = 2 THEN INSERT (id, v) VALUES (s.id, DEFAULT)"
    )
    assert table(acid) == [(1, "d"), (2, "d")]


def test_a_merge_that_changes_nothing_publishes_nothing(t):
    before = directories(t)
    row = t.sql("MERGE INTO t USING s ON t.id = s.id + 1000 WHEN MATCHED THEN DELETE").collect()[0]
    assert (row.num_affected_rows, row.write_id) == (0, None)
    assert directories(t) == before


def test_row_ids_may_be_merged_by(t):
    """Every table has the key row id, also a table in a subquery."""
    assert counts(
        t,
        """MERGE INTO t USING (SELECT row__id AS r FROM t WHERE id = 2) AS s
        ON t.row__id = s.r WHEN MATCHED THEN UPDATE SET v = 'by id'""",
    ) == (0, 1, 0)
    assert (2, "by id", 20) in table(t)
