"""A ``*`` in a condition or a value means the table's own columns, in Spark's order."""

from __future__ import annotations

import pytest
from kit import counts, fill, refused, table


@pytest.fixture
def t(acid):
    """A partitioned table, and changes to it: one equal row, one changed row, one new row."""
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, NULL, 2)")
    fill(acid, "s (id INT, v STRING, p INT)", "1, 'a', 1", "2, 'new', 1", "4, 'd', 2")
    return acid


@pytest.mark.parametrize("star", ["*", "t.*", "default.t.*", "T.*"])
def test_it_is_all_columns_of_the_table_in_update(t, star):
    counts(t, f"UPDATE t SET v = to_json(struct({star})) WHERE id = 2")
    assert table(t)[1] == (2, '{"id":2,"v":"b","p":1}', 1)


@pytest.mark.parametrize("star", ["*", "x.*", "x.* EXCEPT (v)", "* EXCEPT (x.v, p)"])
def test_no_row_has_a_column_of_ours_in_a_condition(t, star):
    hidden = f"to_json(struct({star})) RLIKE 'row__id|acidsql'"
    assert counts(t, f"DELETE FROM t AS x WHERE {hidden}") == (0, 0, 0)
    assert counts(t, f"DELETE FROM t AS x WHERE NOT ({hidden})") == (0, 0, 3)


def test_it_may_be_in_except_already(t):
    counts(t, "UPDATE t SET v = to_json(struct(* EXCEPT (v, p))) WHERE p = 2")
    assert table(t)[2] == (3, '{"id":3}', 2)


@pytest.mark.parametrize("source", ["s", "(SELECT * FROM s) AS s", "s AS s (id, v, p)"])
def test_merge_may_change_only_the_rows_that_differ(t, source):
    done = counts(
        t,
        f"MERGE INTO t USING {source} ON t.id = s.id "
        "WHEN MATCHED AND hash(t.*) <> hash(s.*) THEN UPDATE SET v = s.v "
        'WHEN NOT MATCHED AND to_json(struct(s.*)) = \'{"id":4,"v":"d","p":2}\' '
        "THEN INSERT *",
    )
    assert done == (1, 1, 0)
    assert table(t) == [(1, "a", 1), (2, "new", 1), (3, None, 2), (4, "d", 2)]


def test_merge_takes_the_database_before_it(t):
    condition = "struct(default.t.*) = struct(default.s.*)"
    merge = f"MERGE INTO t USING default.s ON t.id = s.id WHEN MATCHED AND {condition} THEN DELETE"
    assert counts(t, merge) == (0, 0, 1)
    assert [row[0] for row in table(t)] == [2, 3]


def test_merge_wants_to_know_whose(t):
    merge = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND hash(*) > 0 THEN DELETE"
    refused(t, merge, "UNSUPPORTED_FEATURE.STAR", at="*")


def test_spark_takes_none_in_on(t):
    merge = "MERGE INTO t USING s ON hash(t.*) = hash(s.*) WHEN MATCHED THEN DELETE"
    refused(t, merge, "INVALID_USAGE_OF_STAR_OR_REGEX")


def test_that_of_a_subquery_is_the_subquerys(t):
    counts(
        t,
        "UPDATE t SET v = (SELECT * FROM (SELECT max(v) FROM s)) "
        "WHERE (SELECT to_json(struct(*)) FROM s WHERE id = 4) LIKE '{\"id\":4,%' "
        "AND id IN (SELECT x.id FROM (SELECT * FROM s) AS x) AND 2 * id = 4",
    )
    assert table(t) == [(1, "a", 1), (2, "new", 1), (3, None, 2)]


def test_a_struct_column_has_its_own_fields(acid):
    fill(acid, "n (id INT, r STRUCT<a: INT, b: INT>)", "1, named_struct('a', 1, 'b', 2)",
         "2, named_struct('a', 3, 'b', 3)")  # fmt: skip
    assert counts(acid, "DELETE FROM n WHERE array(r.*) = array(3, 3)") == (0, 0, 1)
    assert counts(acid, "DELETE FROM n WHERE array(n.r.*) = array(1, 2)") == (0, 0, 1)


def test_what_multiplies_is_none(acid):
    fill(acid, "m (all INT, extend INT, `distinct` INT)", "1, 2, 3")
    counts(acid, "UPDATE m SET all = all * 2, extend = abs(extend * 2) + all * 3 WHERE all * 2 = 2")
    assert table(acid, "m") == [(2, 7, 3)]
    merge = "MERGE INTO m USING (SELECT 7 AS k) s ON m.extend = s.k WHEN MATCHED AND all * 2 > 3"
    assert counts(acid, f"{merge} THEN UPDATE SET all = (extend * k)") == (0, 1, 0)
    assert table(acid, "m") == [(49, 7, 3)]
