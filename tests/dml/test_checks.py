"""CHECK constraints: no statement writes a row for which a condition is false."""

from __future__ import annotations

import pytest
from kit import counts, directories, fill, refused, table
from over_hive import needs

from acidsql.errors import ConstraintError, EvaluationError

ODD = "`a``b.c d`"


@pytest.fixture(params=["fast", "jobs"])
def paths(request, acid):
    if request.param == "jobs":
        acid.sql("SET acidsql.fast.paths = false")
    return acid


def broken(acid, statement, constraint, *words, args=None, of="t"):
    """Check that a statement fails for a constraint, and leaves the table and its directory."""
    before, files = table(acid, of), directories(acid, of)
    with pytest.raises(ConstraintError) as caught:
        acid.sql(statement, args)
    error = caught.value
    assert (error.condition, error.sqlstate) == ("CHECK_CONSTRAINT_VIOLATION", "23001"), error
    for word in (f"'{constraint}'", f"default.{of}", *words):
        assert word in error.message, error
    assert table(acid, of) == before
    assert directories(acid, of) == files


def test_every_statement_that_writes_rows_keeps_the_condition(paths):
    acid = paths
    fill(
        acid,
        "t (id INT, n INT CHECK (n > 0), s STRING, "
        "CONSTRAINT Both CHECK (n < 10 || '' OR s = 'a|b')) PARTITIONED BY (p STRING)",
        "1, 1, 'a', 'x'", "2, NULL, NULL, 'x'", "3, 20, 'a|b', NULL",
    )  # fmt: skip
    broken(acid, "INSERT INTO t VALUES (4, 1, 'a', 'x'), (5, -1, 'b', 'y')", "t_chk_1",
           "n > 0 is false for n = -1")  # fmt: skip
    broken(acid, "INSERT INTO t SELECT id + 10, n * 10, s, p FROM t WHERE id = 1", "both",
           "n < 10 || '' OR s = 'a|b' is false for n = 10, s = 'a'")  # fmt: skip
    broken(acid, "INSERT OVERWRITE t PARTITION (p = 'x') SELECT 1, 0, 's'", "t_chk_1")
    broken(acid, "UPDATE t SET n = n - 1 WHERE p = 'x'", "t_chk_1", "n = 0")
    broken(acid, "UPDATE t SET n = :n WHERE id = 1", "t_chk_1", "n = -7", args={"n": -7})
    broken(acid, "UPDATE t SET s = 'c' RETURNING *", "both", "n = 20, s = 'c'")
    broken(acid, "MERGE INTO t USING (VALUES (1, -2), (9, 2)) AS s(k, v) ON id = k "
           "WHEN MATCHED THEN UPDATE SET n = v "
           "WHEN NOT MATCHED THEN INSERT (id, n, p) VALUES (k, v, 'x')",
           "t_chk_1", "n = -2")  # fmt: skip
    broken(acid, "MERGE INTO t USING (VALUES (8, -3)) AS s(k, v) ON id = k "
           "WHEN NOT MATCHED THEN INSERT (id, n, p) VALUES (k, v, 'x')", "t_chk_1")  # fmt: skip
    broken(acid, "FROM (SELECT 1 AS i, 0 AS j) AS s INSERT INTO t SELECT i, 1, 's', 'x' "
           "INSERT INTO t SELECT i, j, 's', 'x'", "t_chk_1", "n = 0")  # fmt: skip
    # NULL passes; a deleted row, and a row that no clause changes, is not checked.
    assert counts(acid, "INSERT INTO t VALUES (6, NULL, 'z', 'x'), (7, 9, NULL, NULL)") == (2, 0, 0)
    assert counts(acid, "UPDATE t SET n = NULL WHERE id = 1") == (0, 1, 0)
    assert counts(
        acid,
        "MERGE INTO t USING (VALUES (2, -5), (6, 5)) AS s(k, v) ON id = k "
        "WHEN MATCHED AND v > 0 THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, n, p) VALUES (k, v, 'x')",
    ) == (0, 0, 1)
    assert counts(acid, "DELETE FROM t WHERE id < 3") == (0, 0, 2)
    assert table(acid) == [(3, 20, "a|b", None), (7, 9, None, None)]


def test_a_condition_sees_a_row_as_readers_will_see_it(acid):
    fill(
        acid,
        f"t (id INT, {ODD} CHAR(4) CHECK (length({ODD}) = 4), st STRUCT<n: INT, `x.y`: STRING>, "
        "d DATE DEFAULT DATE'2024-01-01', ts TIMESTAMP, b BINARY, m MAP<STRING, INT>, "
        "CHECK (st.n IS NULL OR st.`x.y` LIKE 'a%'), "
        "CONSTRAINT `d of ``t` CHECK (d > '2000-01-01'), "
        "CONSTRAINT zone CHECK (ts < TIMESTAMP_NTZ'2024-03-31 02:30:00'), CHECK (p % 2 = 0), "
        "CONSTRAINT bytes CHECK (b <> X'01' -- 'no'\n), CHECK (m[\"k\"] >= 0)) "
        "PARTITIONED BY (p INT)",
    )
    good = "INSERT INTO t (id, {}, p) VALUES (1, {}, {})"
    acid.sql(good.format(ODD, "'a'", 2))
    acid.sql(good.format("ts", "TIMESTAMP_NTZ'2024-03-31 02:29:59'", "'4'"))
    bad = {
        "t_chk_2": ("st", "named_struct('n', 1, 'x.y', 'b')", 2, "st = {1, b}"),
        "d of `t": ("d", "DATE'1999-12-31'", 2, "d = 1999-12-31"),
        "zone": ("ts", "TIMESTAMP_NTZ'2024-03-31 02:30:00'", 2, "ts = 2024-03-31 02:30:00"),
        "t_chk_3": ("id", "1", 3, "p = 3"),
        "bytes": ("b", "X'01'", 2, "b = 0x01"),
        "t_chk_4": ("m", "map('k', -1)", 2, "m = {k -> -1}"),
    }
    for name, (column, value, p, words) in bad.items():
        columns = f"({column}, p)" if column != "id" else "(id, p)"
        broken(acid, f"INSERT INTO t {columns} VALUES ({value}, {p})", name, words)
    made = acid.sql("SHOW CREATE TABLE t").collect()[0][0]
    acid.sql("DROP TABLE t")
    acid.sql(made)
    assert acid.sql("SHOW CREATE TABLE t").collect()[0][0] == made
    broken(acid, f"INSERT INTO t ({bad['bytes'][0]}, p) VALUES (X'01', 2)", "bytes")


def test_a_condition_means_the_same_in_every_session(acid, conf):
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    conf("spark.sql.caseSensitive", "true")
    fill(acid, "t (s STRING, CHECK (\"s\" <> 's' AND CAST(S AS INT) > 0))", "'1'")
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "false")
    conf("spark.sql.ansi.enabled", "false")
    broken(acid, "INSERT INTO t SELECT '-1'", "t_chk_1", "s = '-1'")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        acid.sql("INSERT INTO t SELECT 'no number'")
    assert table(acid) == [("1",)]


@pytest.mark.parametrize(
    ("element", "condition", "at"),
    [
        ("CHECK (b > 0)", "UNRESOLVED_COLUMN", "b"),
        ("CHECK (t.a > 0)", "UNRESOLVED_COLUMN", "t.a"),
        ("CHECK (a)", "INVALID_CHECK_CONSTRAINT", "a"),
        ("CHECK (a > 0, true)", "INVALID_CHECK_CONSTRAINT", "a > 0, true"),
        ("CHECK (a > 0 AND rand() < 1)", "NON_DETERMINISTIC", "a > 0 AND rand() < 1"),
        ("CHECK (a > (SELECT 1))", "INVALID_CHECK_CONSTRAINT", "a > (SELECT 1)"),
        ("CHECK (sum(a) > 1)", "INVALID_CHECK_CONSTRAINT", "sum(a) > 1"),
        ("CHECK (row_number() OVER (ORDER BY a) > 1)", "INVALID_CHECK_CONSTRAINT", None),
        ("CHECK (explode(array(a)) > 1)", "INVALID_CHECK_CONSTRAINT", None),
        pytest.param(
            "CHECK (session_own(a) > 1)", "INVALID_CHECK_CONSTRAINT", "session_own(a) > 1",
            marks=pytest.mark.classic,
        ),
        pytest.param(
            "CHECK (a > session_variable)", "INVALID_CHECK_CONSTRAINT", "a > session_variable",
            marks=pytest.mark.classic,
        ),
        ("CHECK (row__id.writeid > 1)", "UNRESOLVED_COLUMN", "row__id.writeid"),
        ("CHECK (a > )", "PARSE_SYNTAX_ERROR", None),
        ("CONSTRAINT x CHECK (a > 0), CONSTRAINT X CHECK (a > 1)", "CONSTRAINT_ALREADY", "X"),
        (f"CONSTRAINT {'x' * 129} CHECK (a > 0)", "INVALID_IDENTIFIER", "x" * 129),
    ],
)  # fmt: skip
def test_a_condition_that_no_constraint_can_have_is_refused(acid, spark, element, condition, at):
    spark.udf.register("session_own", lambda a: a, "int")
    spark.sql("DECLARE OR REPLACE VARIABLE session_variable INT DEFAULT 3")
    try:
        refused(acid, f"CREATE TABLE t (a INT, {element})", condition, at)
    finally:
        spark.sql("DROP TEMPORARY FUNCTION session_own")
        spark.sql("DROP TEMPORARY VARIABLE session_variable")


def test_loads_and_undone_changes_keep_the_condition(acid, spark, tmp_path):
    fill(acid, "t (id INT, n INT)", "1, -1", "2, 2")
    acid.sql("DELETE FROM t WHERE n < 0")
    with pytest.raises(ConstraintError, match="'positive'"):
        fill(acid, "u (id INT, n INT, CONSTRAINT positive CHECK (n > 0))", "1, -1")
    for name, n in {"good": 5, "bad": -5}.items():
        spark.range(3).selectExpr("CAST(id AS INT) id", f"{n} AS n").write.orc(f"{tmp_path}/{name}")
    with pytest.raises(ConstraintError, match="'positive' of default.u: n > 0 is false for n = -5"):
        acid.sql(f"LOAD DATA INPATH '{tmp_path}/bad' INTO TABLE u")
    assert len(list(tmp_path.glob("bad/*.orc"))) > 0  # the files stay where they were
    acid.sql(f"LOAD DATA INPATH '{tmp_path}/good' OVERWRITE INTO TABLE u")
    assert counts(acid, "UPDATE u SET n = n + 1") == (0, 3, 0)
    broken(acid, "INSERT INTO u REPLACE WHERE id = 0 VALUES (0, -4)", "positive", of="u")
    acid.sql("INSERT INTO u REPLACE USING (id) VALUES (0, 4)")
    acid.sql("BEGIN")
    acid.sql("DELETE FROM u WHERE id = 1")
    broken(acid, "MERGE INTO u USING t ON u.id = t.id WHEN MATCHED THEN UPDATE SET n = -t.n",
           "positive", of="u")  # fmt: skip
    acid.sql("INSERT INTO u VALUES (9, 9)")
    acid.sql("COMMIT")
    assert table(acid, "u") == [(0, 4), (2, 6), (9, 9)]
    changes = acid.preview("UPDATE u SET n = 0 WHERE id = 9").collect()  # a preview does not check
    assert [(row.n, row._change_type) for row in changes if "post" in row._change_type] == [
        (0, "update_postimage")
    ]


def test_a_condition_that_cannot_be_evaluated_for_a_row_is_an_error(acid, conf):
    fill(acid, "t (n INT, CHECK (n < 9), CONSTRAINT `é😀` CHECK ('é😀' = '' OR 1 / n > 0))", "1")
    conf("spark.sql.ansi.enabled", "false")
    for statement in ("INSERT INTO t VALUES (0)", "UPDATE t SET n = n - 1"):
        with pytest.raises(ConstraintError, match="'é😀' of default.t.*for a row: Div") as caught:
            acid.sql(statement)
        assert caught.value.getCondition() == "DIVIDE_BY_ZERO"
        assert caught.value.getSqlState() == "22012" and "CASE" not in str(caught.value)
    conf("spark.sql.ansi.enabled", "true")
    with pytest.raises(EvaluationError) as caught:  # the statement's own, not the constraint's
        acid.sql("UPDATE t SET n = IF('é😀' = '' OR 1 / (n - 1) > 0, 1, 2)")
    assert not isinstance(caught.value, ConstraintError)
    assert table(acid) == [(1,)]


@needs("keeps_state_tables")
def test_records_of_changes_keep_the_condition(acid):
    fill(acid, "t (id INT, n INT CHECK (n > 0))", "1, 1")
    follow = (
        "AUTO CDC INTO t FROM (SELECT * FROM VALUES {} AS s(id, n, at)) KEYS (id) "
        "SEQUENCE BY at COLUMNS * EXCEPT (at)"
    )
    acid.sql(follow.format("(2, 2, 1)"))
    broken(acid, follow.format("(2, -2, 2), (3, 3, 1)"), "t_chk_1", "n > 0 is false for n = -2")
    acid.sql(follow.format("(2, 5, 2)"))  # no trace is left of the record that was refused
    assert table(acid) == [(1, 1), (2, 5)]


def test_a_char_is_compared_as_readers_compare_it(acid):
    acid.sql("CREATE TABLE t (a INT, c CHAR(3), CONSTRAINT k CHECK (c <> 'no' AND c <> 'bad'))")
    for wrong in ("no", "bad"):
        with pytest.raises(ConstraintError, match="CHECK_CONSTRAINT_VIOLATION"):
            acid.sql(f"INSERT INTO t VALUES (1, '{wrong}')")
    acid.sql("INSERT INTO t VALUES (1, 'ok')")
    acid.sql("ALTER TABLE t ADD CONSTRAINT some CHECK (c IN ('ok', 'a'))")
    acid.sql("UPDATE t SET a = a + 1")
    assert acid.sql("SELECT a FROM t WHERE c = 'ok'").collect() == [(2,)]


def test_a_condition_means_the_same_in_every_time_zone_and_with_raw_literals(acid, conf):
    acid.sql(
        "CREATE TABLE t (ts TIMESTAMP CHECK (ts < TIMESTAMP'2024-06-01 00:00:00Z'), "
        "s STRING CHECK (s RLIKE '^\\\\d+$'))"
    )
    for zone, escaped in (("UTC", "false"), ("Asia/Tokyo", "true")):
        conf("spark.sql.session.timeZone", zone)
        conf("spark.sql.parser.escapedStringLiterals", escaped)
        with pytest.raises(ConstraintError, match="CHECK_CONSTRAINT_VIOLATION"):
            acid.sql("INSERT INTO t (ts) SELECT TIMESTAMP_NTZ'2024-06-01 03:00:00'")
        acid.sql("INSERT INTO t SELECT TIMESTAMP_NTZ'2024-05-31 23:00:00', '13'")
