"""The parser: which statements are acidsql's, and what they contain."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from acidsql.errors import SqlError
from acidsql.sql.parsed.statements import (
    CreateTable,
    Default,
    Explain,
    Insert,
    Merge,
    MultiInsert,
    Query,
    Reads,
    SparkStatement,
    Statement,
    Update,
    Values,
)

Read = Callable[..., Statement]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "FROM t SELECT a",
        "TABLE t",
        "VALUES (1)",
        "(SELECT 1) UNION SELECT 2",
        "INSERT INTO u SELECT * FROM t",
        "INSERT OVERWRITE LOCAL DIRECTORY '/x' STORED AS orc SELECT * FROM t",
        "WITH a AS (SELECT 1) INSERT INTO u SELECT * FROM a",
        "FROM t INSERT INTO u SELECT a",
        "INSERT INTO u PARTITION (p = 1) IF NOT EXISTS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT * FROM t",
        "CREATE OR REPLACE GLOBAL TEMPORARY VIEW v AS TABLE t",
        "CREATE TABLE n USING parquet AS SELECT * FROM t",
        "CREATE TABLE n (a INT) USING csv",
        "CREATE TABLE n (a INT) STORED AS PARQUET",
        "CREATE EXTERNAL TABLE n (a INT) LOCATION '/x'",
        "CREATE TABLE n (a INT) TBLPROPERTIES ('transactional' = 'false')",
        "CREATE TABLE n (a INT) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','",
        "CREATE OR REPLACE TABLE n USING delta AS SELECT * FROM t",
        "CACHE TABLE n AS SELECT * FROM t",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN INSERT INTO u SELECT * FROM t",
        "DESCRIBE QUERY SELECT * FROM t",
        "/* a */ select 1 ; -- b",
    ],
)
def test_a_statement_of_sparks_that_holds_a_query_may_read_acid_tables(
    text: str, read: Read
) -> None:
    statement = read(text)
    assert isinstance(statement, SparkStatement)
    assert statement.reads is Reads.QUERY


@pytest.mark.parametrize(
    "text",
    [
        "ANALYZE TABLE u COMPUTE STATISTICS",
        "CREATE VIEW v AS SELECT * FROM u",
        "CREATE VIEW v WITH SCHEMA EVOLUTION AS SELECT t.a FROM (SELECT 1 AS t)",
        "REFRESH TABLE t",
        "UPDATE u SET a = 1",
        "DELETE FROM u USING t",
        "DELETE FROM u LIMIT 1",
        "MERGE INTO u USING t ON a WHEN MATCHED THEN DELETE",
        "DROP TABLE u",
        "DROP VIEW v",
        "WITH a AS (SELECT 1) DELETE FROM u",
        "TRUNCATE TABLE u",
        "ALTER TABLE u CHANGE a b INT",
        "ALTER VIEW v AS SELECT 1",
        "SHOW PARTITIONS u",
        "SHOW CREATE TABLE u",
        "SHOW TABLE EXTENDED LIKE 'x'",
        "SHOW FUNCTIONS",
        "DESCRIBE u",
        "DESC FUNCTION f",
        "CACHE TABLE t",
        "CREATE TABLE n LIKE u",
        "CREATE FUNCTION f AS 'x'",
        "SET a=it's",
        "SET spark.sql.x",
        "ADD JAR /tmp/it's.jar",
        "RESET",
        "LOAD DATA INPATH 'x' INTO TABLE u",
        "EXPLAIN DROP TABLE u",
        "frobnicate t",
        "CALL p(1)",
        "DROP FUNCTION f",
        "SET a = 1;",
    ],
)
def test_any_other_statement_of_sparks_may_not(text: str, read: Read) -> None:
    statement = read(text)
    assert isinstance(statement, SparkStatement)
    assert statement.reads is Reads.NOTHING


@pytest.mark.parametrize(
    "text", ["SET a=1; DELETE FROM t", "SELECT 1; SELECT 2", "ADD JAR x; RESET"]
)
def test_two_statements_are_refused_whoever_owns_them(text: str, read: Read) -> None:
    with pytest.raises(SqlError, match="second one") as caught:
        read(text)
    assert caught.value.start == text.index(";") + 2


def test_a_spark_statement_spans_the_text_without_comments_and_semicolon(read: Read) -> None:
    text = " -- a\n SELECT 1 /* b */ ; "
    statement = read(text)
    assert isinstance(statement, SparkStatement)
    assert statement.span.slice(text) == "SELECT 1"


@pytest.mark.parametrize("source", ["(SELECT 1)", "(SELECT 1) UNION SELECT 2", "(VALUES (1))"])
def test_a_query_in_brackets_may_follow_a_table_that_is_called_table(
    source: str, read: Read
) -> None:
    def is_ours(parts: tuple[str, ...]) -> bool:
        return parts == ("table",)

    for text, name in ((f"INSERT INTO table {source}", "table"), ("INSERT INTO TABLE t {}", None)):
        statement = read(text.format(source), is_ours=is_ours)
        assert isinstance(statement, Insert) == (name is not None)
        if isinstance(statement, Insert):
            assert statement.target.parts == ("table",) and isinstance(statement.source, Query)


def test_values_are_rows_of_slices(read: Read) -> None:
    text = "INSERT INTO t VALUES (f(1, 2), default), (NULL, (SELECT 1))"
    statement = read(text)
    assert isinstance(statement, Insert)
    assert isinstance(statement.source, Values)
    shown = [
        ["DEFAULT" if isinstance(v, Default) else v.slice(text) for v in row]
        for row in statement.source.rows
    ]
    assert shown == [["f(1, 2)", "DEFAULT"], ["NULL", "(SELECT 1)"]]
    assert statement.source.span.slice(text) == text[14:]


@pytest.mark.parametrize(
    "source",
    [
        "VALUES (1), (2) v",
        "VALUES (1) UNION ALL VALUES (2)",
        "VALUES 1, 2 LIMIT 1",
        "(VALUES (1))",
        "VALUES (1), (2) ORDER BY 1",
    ],
)
def test_values_with_more_behind_them_are_a_query(source: str, read: Read) -> None:
    text = f"INSERT INTO t {source}"
    statement = read(text)
    assert isinstance(statement, Insert)
    assert isinstance(statement.source, Query)
    assert statement.source.span.slice(text) == source


def test_expressions_are_sliced_exactly(read: Read) -> None:
    text = (
        "UPDATE t SET a = CASE WHEN b THEN 'WHERE' END, c = f(x, (SELECT 1 WHERE d)), "
        "`s`.e = -1 -- WHERE\n WHERE g IN (SELECT 1 WHERE h) AND i"
    )
    statement = read(text)
    assert isinstance(statement, Update)
    assert [
        (a.target.parts, a.value.slice(text))
        for a in statement.assignments  # type: ignore[union-attr]
    ] == [
        (("a",), "CASE WHEN b THEN 'WHERE' END"),
        (("c",), "f(x, (SELECT 1 WHERE d))"),
        (("s", "e"), "-1"),
    ]
    assert statement.where is not None
    assert statement.where.slice(text) == "g IN (SELECT 1 WHERE h) AND i"


def test_merge_knows_its_source(read: Read) -> None:
    tail = " ON a WHEN MATCHED THEN DELETE"
    facts = {}
    for source in ("db.s", "s AS x", "(SELECT 1) u (a, b)", "(SELECT 1)", "VALUES (1), (2) v(c)"):
        text = f"MERGE INTO t USING {source}{tail}"
        m = read(text)
        assert isinstance(m, Merge)
        facts[source] = (m.source.slice(text), m.source_alias, m.source_columns)
    assert facts == {
        "db.s": ("db.s", "s", None),
        "s AS x": ("s", "x", None),
        "(SELECT 1) u (a, b)": ("(SELECT 1)", "u", ("a", "b")),
        "(SELECT 1)": ("(SELECT 1)", None, None),
        "VALUES (1), (2) v(c)": ("VALUES (1), (2)", "v", ("c",)),
    }


def test_case_expressions_hide_whens_and_columns_called_case_do_not(read: Read) -> None:
    text = (
        "MERGE INTO t USING s ON CASE a WHEN 1 THEN CASE WHEN b THEN c END END = case "
        "WHEN MATCHED AND CASE WHEN d THEN e ELSE f END THEN UPDATE SET case = s.case, "
        "g = CASE WHEN h THEN i END WHEN NOT MATCHED AND then = 1 THEN INSERT *"
    )
    m = read(text)
    assert isinstance(m, Merge)
    assert m.on.slice(text) == "CASE a WHEN 1 THEN CASE WHEN b THEN c END END = case"
    assert [c.condition.slice(text) for c in m.clauses if c.condition] == [
        "CASE WHEN d THEN e ELSE f END",
        "then = 1",
    ]


def test_multi_insert_keeps_each_branch(read: Read) -> None:
    text = (
        "FROM s JOIN u INSERT INTO t SELECT a WHERE b "
        "INSERT OVERWRITE TABLE t2 PARTITION (p) SELECT c"
    )
    m = read(text)
    assert isinstance(m, MultiInsert)
    assert m.source.slice(text) == "s JOIN u"
    assert [(b.target.parts, b.overwrite, b.body.slice(text)) for b in m.branches] == [
        (("t",), False, "SELECT a WHERE b"),
        (("t2",), True, "SELECT c"),
    ]


def test_create_transactional_table_says_so(read: Read) -> None:
    statement = read("CREATE TRANSACTIONAL TABLE n (a INT)")
    assert isinstance(statement, CreateTable)
    assert dict(statement.properties) == {"transactional": "true"}


@pytest.mark.parametrize("name", ["external", "temp", "managed", "transactional"])
def test_a_word_of_create_table_can_be_the_name_of_the_table(read: Read, name: str) -> None:
    statement = read(f"CREATE TABLE {name} (a INT) TBLPROPERTIES ('transactional' = 'true')")
    assert isinstance(statement, CreateTable)
    assert statement.name.parts == (name,)


def test_five_words_before_table_are_read_to_their_end(read: Read) -> None:
    text = "CREATE OR REPLACE TEMPORARY EXTERNAL TRANSACTIONAL"
    with pytest.raises(SqlError):
        read(f"{text} TABLE t (a INT)")
    assert isinstance(read(text), SparkStatement)


def test_double_quotes_are_names_where_the_session_says_so(read: Read) -> None:
    text = 'UPDATE "my t" SET "a b" = "c"'
    statement = read(text, double_quoted_identifiers=True)
    assert isinstance(statement, Update)
    assert (statement.target.parts, statement.assignments[0].target.parts) == (("my t",), ("a b",))
    with pytest.raises(SqlError, match="name of a table"):
        read(text)


def test_explain_holds_the_statement(read: Read) -> None:
    statement = read("EXPLAIN EXTENDED UPDATE t SET a = 1")
    assert isinstance(statement, Explain)
    assert isinstance(statement.statement, Update)
    assert statement.mode == "EXTENDED"


def test_ten_times_the_rows_take_ten_times_the_calls(read: Read) -> None:
    def calls(rows: int) -> int:
        text = "INSERT INTO t VALUES " + ", ".join(
            f"({i}, 'name {i}', {i}.5, NULL, DATE '2024-01-01')" for i in range(rows)
        )
        made = 0

        def count(_frame: object, what: str, _argument: object) -> None:
            nonlocal made
            made += what == "call"

        sys.setprofile(count)
        try:
            statement = read(text)
        finally:
            sys.setprofile(None)
        assert isinstance(statement, Insert)
        assert isinstance(statement.source, Values)
        assert len(statement.source.rows) == rows
        return made

    assert calls(4_000) < 11 * calls(400)


@pytest.mark.parametrize("depth", [50, 5_000])
def test_deep_brackets_are_no_trouble(depth: int, read: Read) -> None:
    text = f"DELETE FROM t WHERE {'(' * depth}a{')' * depth}"
    read(text)
    with pytest.raises(SqlError, match="not closed"):
        read(text[:-1])
