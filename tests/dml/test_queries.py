"""Queries over ACID tables, Spark's tables and views together."""

from __future__ import annotations

import pytest
from kit import fill, refused, rows, table
from pyspark.errors import AnalysisException

from acidsql.errors import AcidSqlError, SqlError


@pytest.fixture
def t(acid):
    """An ACID table with delete events, and another ACID table."""
    fill(acid, "t (id INT, v STRING, n INT)", "1, 'a', 10", "2, 'b', 20", "3, 'c', 30")
    fill(acid, "u (id INT, w STRING)", "1, 'x'", "2, 'y'")
    acid.sql("DELETE FROM t WHERE id = 3")
    return acid


@pytest.fixture
def spark_table(spark):
    """A table of Spark's own."""
    spark.sql("DROP TABLE IF EXISTS plain")
    spark.sql("CREATE TABLE plain (id INT, z STRING) USING parquet")
    spark.sql("INSERT INTO plain VALUES (1, 'p'), (5, 'q')")
    yield "plain"
    spark.sql("DROP TABLE IF EXISTS plain")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT n FROM t", [(10,), (20,)]),
        ("SELECT v, id FROM t WHERE n = 20", [("b", 2)]),
        ("SELECT count(*), sum(n) FROM t", [(2, 30)]),
        ("SELECT count(*) FROM t", [(2,)]),
        ("TABLE u", [(1, "x"), (2, "y")]),
        ("FROM t SELECT v", [("a",), ("b",)]),
        ("SELECT t.v, w FROM t JOIN u USING (id)", [("a", "x"), ("b", "y")]),
        ("SELECT default.t.id FROM default.t WHERE default.t.n > 10", [(2,)]),
        ("SELECT a.v, b.v FROM t a JOIN t b ON a.id < b.id", [("a", "b")]),
        ("SELECT z, v FROM plain LEFT JOIN t ON plain.id = t.id", [("p", "a"), ("q", None)]),
        ("SELECT (SELECT max(w) FROM u WHERE u.id = t.id) FROM t", [("x",), ("y",)]),
        ("SELECT id FROM t UNION SELECT id FROM u UNION SELECT id FROM plain", [(1,), (2,), (5,)]),
        ("WITH t AS (SELECT 7 AS id) SELECT * FROM t", [(7,)]),
        ("WITH c AS (SELECT * FROM t), u AS (SELECT * FROM c) SELECT id FROM u", [(1,), (2,)]),
        ("SELECT * FROM (SELECT * FROM u WHERE id = 1)", [(1, "x")]),
        ("SELECT * FROM u WHERE (id, w) IN (SELECT id, 'x' FROM t)", [(1, "x")]),
        ("SELECT id, sum(n) OVER (ORDER BY id) FROM t", [(1, 10), (2, 30)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
    ],
)
def test_all_of_sparks_sql_reads_them(t, spark_table, query, expected):
    assert rows(t, query) == expected


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM t", ["id", "v", "n"]),
        ("SELECT row__id, * FROM t", ["row__id", "id", "v", "n"]),
        ("SELECT *, row__id.writeid FROM t", ["id", "v", "n", "writeid"]),
        ("SELECT t.*, u.row__id FROM t JOIN u ON t.id = u.id", ["id", "v", "n", "row__id"]),
        ("SELECT * FROM t JOIN u ON t.id = u.id AND t.row__id.rowid >= 0",
         ["id", "v", "n", "id", "w"]),
        ("SELECT * FROM (SELECT row__id AS r, * FROM u) WHERE r.rowid = 0", ["r", "id", "w"]),
        ("SELECT * FROM u WHERE row__id IN (SELECT row__id FROM u)", ["id", "w"]),
        ("SELECT x.* FROM t AS x WHERE x.row__id.rowid = 1", ["id", "v", "n"]),
        ("SELECT count(DISTINCT ROW__ID) AS k FROM t", ["k"]),
    ],
)  # fmt: skip
def test_row_id_is_shown_only_where_it_is_named(t, query, columns):
    found = t.sql(query)
    assert found.columns == columns
    assert found.count() > 0


def test_row_id_is_the_struct_that_hive_has(t):
    kind = t.sql("SELECT row__id FROM t").schema["row__id"].dataType
    assert kind.simpleString() == "struct<writeid:bigint,bucketid:int,rowid:bigint>"
    assert rows(t, "SELECT row__id.writeid, row__id.rowid, id FROM t") == [(1, 0, 1), (1, 1, 2)]


@pytest.mark.classic
def test_a_temporary_view_keeps_its_snapshot(t, spark):
    t.sql("CREATE TEMPORARY VIEW kept AS SELECT id, w FROM u")
    before = t.sql("SELECT * FROM u")
    t.sql("INSERT INTO u VALUES (3, 'z')")
    t.sql("UPDATE u SET w = 'new'")
    try:
        assert rows(t, "SELECT * FROM kept") == [(1, "x"), (2, "y")]
        assert len(before.collect()) == 2
        assert table(t, "u") == [(1, "new"), (2, "new"), (3, "new")]
        assert not [v.name for v in spark.catalog.listTables() if "acidsql" in v.name]
    finally:
        spark.catalog.dropTempView("kept")


def test_a_temporary_view_hides_a_table_of_its_name(t, spark):
    spark.sql("SELECT 42 AS id").createOrReplaceTempView("u")
    try:
        assert table(t, "u") == [(42,)]
        assert table(t, "default.u") == [(1, "x"), (2, "y")]
    finally:
        spark.catalog.dropTempView("u")
    assert table(t, "u") == [(1, "x"), (2, "y")]


def test_spark_tables_are_written_from_acid_tables(t, spark, spark_table):
    spark.sql("DROP TABLE IF EXISTS copy")
    t.sql("CREATE TABLE copy USING parquet AS SELECT u.*, n FROM t JOIN u ON t.id = u.id")
    try:
        assert sorted(spark.table("copy").collect()) == [(1, "x", 10), (2, "y", 20)]
    finally:
        spark.sql("DROP TABLE copy")
    t.sql("INSERT INTO plain SELECT * FROM u")
    assert spark.table("plain").count() == 4
    t.sql("CREATE TABLE mine (id INT, z STRING)")
    t.sql("INSERT INTO mine SELECT * FROM plain WHERE id IN (SELECT id FROM t)")
    assert [row[0] for row in table(t, "mine")] == [1, 1, 2]


@pytest.mark.parametrize(
    "statement",
    [
        "MSCK REPAIR TABLE t",
        "REFRESH TABLE t",
        "ALTER TABLE t EXCHANGE PARTITION (p = 1) WITH TABLE u",
    ],
)
def test_what_spark_would_misread_is_refused_by_name(t, statement):
    with pytest.raises(AcidSqlError) as caught:
        t.sql(statement)
    assert "t" in str(caught.value)
    assert caught.value.getSqlState() in ("0A000", "42601"), caught.value


def test_row__id_beside_a_natural_join_is_refused(t):
    query = "SELECT * FROM t NATURAL JOIN u WHERE t.row__id.rowid = 0"
    refused(t, query, "UNSUPPORTED_FEATURE")


def test_errors_point_at_the_users_words(t):
    refused(t, "SELECT nope\nFROM t", "UNRESOLVED_COLUMN", "nope")
    refused(t, "SELECT v + FROM t", "PARSE_SYNTAX_ERROR")


def test_a_database_of_ones_own(t):
    t.sql("CREATE DATABASE d")
    fill(t, "d.t (id INT)", "7")
    assert rows(t, "SELECT d.t.id, x.id FROM d.t, default.t AS x WHERE x.id = 1") == [(7, 1)]
    t.sql("USE d")
    t.sql("UPDATE t SET id = d.t.id + 1 WHERE d.t.id IN (SELECT 6 + id FROM default.t)")
    t.sql("MERGE INTO d.t USING default.u ON d.t.id = default.u.id + 7 "
          "WHEN NOT MATCHED THEN INSERT VALUES (default.u.id)")  # fmt: skip
    assert table(t) == [(2,), (8,)]
    assert len(table(t, "default.t")) == 2


@pytest.fixture
def namesakes(spark, t):
    t.sql("CREATE DATABASE d")
    fill(t, "d.t (id INT)", "7", "1")
    spark.sql("SELECT 7 AS id").createOrReplaceTempView("sevens")
    yield t
    spark.catalog.dropTempView("sevens")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT d.t.id, default.t.id FROM d.t, default.t WHERE default.t.id = 2",
         [(1, 2), (7, 2)]),
        ("SELECT D.T.id, `default`.t.* FROM d.t JOIN t ON d.t.id = default.t.id",
         [(1, 1, "a", 10)]),
        ("SELECT spark_catalog.d.t.id FROM d.t, t WHERE default.t.id = 1", [(1,), (7,)]),
        ("SELECT default.t.row__id.rowid, * FROM d.t JOIN default.t USING (id)", [(0, 1, "a", 10)]),
        ("SELECT count(*), max(d.t.id) FROM d.t, t GROUP BY default.t.id", [(2, 7)] * 2),
        ("SELECT * FROM d.t WHERE EXISTS (SELECT 1 FROM t WHERE default.t.id = d.t.id)", [(1,)]),
        ("SELECT t.id FROM d.t WHERE EXISTS "
         "(SELECT 1 FROM default.t WHERE default.t.id = d.t.id AND t.v = 'a')", [(1,)]),
        ("SELECT * FROM d.t WHERE EXISTS (SELECT 1 FROM sevens AS t WHERE t.id = d.t.id)", [(7,)]),
        ("SELECT * FROM d.t WHERE EXISTS (SELECT 1 FROM (SELECT 7 AS id) t WHERE t.id = d.t.id)",
         [(7,)]),
        ("WITH t AS (SELECT 7 AS id) "
         "SELECT * FROM d.t WHERE EXISTS (SELECT 1 FROM t WHERE t.id = d.t.id)", [(7,)]),
        ("SELECT * FROM d.t WHERE EXISTS "
         "(SELECT 1 FROM sevens LATERAL VIEW explode(array(id)) t AS id WHERE t.id = d.t.id)",
         [(7,)]),
        ("SELECT * FROM d.t WHERE EXISTS (SELECT 1 FROM (SELECT 7 AS a, 8 AS b) "
         "UNPIVOT (id FOR n IN (a, b)) t WHERE t.id = d.t.id)", [(7,)]),
        ("SELECT * FROM d.t WHERE EXISTS "
         "(SELECT 1 FROM sevens PIVOT (max(id) FOR id IN (7 AS id)) AS t WHERE t.id = d.t.id)",
         [(7,)]),
        ("SELECT * FROM d.t WHERE EXISTS (FROM sevens |> AS t |> WHERE t.id = d.t.id)", [(7,)]),
        ("SELECT t.id FROM d.t WHERE exists(array(struct(7 AS id)), t -> t.id = d.t.id)", [(7,)]),
        ("SELECT id FROM d.t WHERE aggregate(array(6), 0, (acc, t) -> acc + t + d.t.id) > 7",
         [(7,)]),
    ],
)  # fmt: skip
def test_namesakes_of_several_databases_in_one_query(namesakes, query, expected):
    assert rows(namesakes, query) == expected


def test_namesakes_that_only_their_last_name_tells_apart_are_refused(namesakes):
    refused(namesakes, "SELECT t.id FROM d.t, default.t", "AMBIGUOUS_REFERENCE", "t.id")


def test_the_target_of_a_statement_has_a_namesake_in_a_subquery(namesakes):
    where = "EXISTS (SELECT 1 FROM {} WHERE {}.id = d.t.id)"
    for relation in ("sevens AS t", "(SELECT 7 AS id) t"):
        statement = f"DELETE FROM d.t WHERE {where.format(relation, 't')}"
        refused(namesakes, statement, "UNSUPPORTED_FEATURE.AMBIGUOUS_TABLE_NAME", "d.t")
    namesakes.sql(f"UPDATE d.t SET id = 9 WHERE {where.format('default.t', 'default.t')}")
    assert table(namesakes, "d.t") == [(7,), (9,)]
    namesakes.sql(
        f"DELETE FROM d.t AS x WHERE {where.format('sevens t', 't')}".replace("d.t.", "x.")
    )
    assert table(namesakes, "d.t") == [(9,)]
    assert len(table(namesakes, "default.t")) == 2


@pytest.fixture
def structs(spark, namesakes):
    spark.sql("SELECT struct(7 AS id) AS t").createOrReplaceTempView("structs")
    yield namesakes
    spark.catalog.dropTempView("structs")


def test_a_column_qualified_in_full_is_no_field_of_a_struct_called_like_its_table(structs):
    for query in (
        "SELECT d.t.id FROM d.t WHERE EXISTS (SELECT 1 FROM structs s WHERE s.t.id = d.t.id)",
        "SELECT t.id FROM d.t WHERE EXISTS (SELECT 1 FROM structs WHERE t.id = d.t.id)",
    ):
        assert rows(structs, query) == [(7,)]
    assert rows(structs, "SELECT default.t.id, t.v FROM t WHERE default.t.id = 1") == [(1, "a")]


@pytest.mark.parametrize(
    ("relation", "field"),
    [
        ("structs s", "s.t.id"),
        ("structs", "t.id"),
        ("sevens LATERAL VIEW explode(array(id)) t AS id", "t.id"),
    ],
)
def test_a_change_by_a_struct_called_like_its_target_is_refused(structs, relation, field):
    where = f"EXISTS (SELECT 1 FROM {relation} WHERE {field} = d.t.id)"
    for change in ("DELETE FROM d.t", "UPDATE d.t SET id = 0"):
        refused(structs, f"{change} WHERE {where}", "UNSUPPORTED_FEATURE.AMBIGUOUS_TABLE_NAME")
    structs.sql(f"DELETE FROM d.t AS x WHERE {where.replace('d.t.', 'x.')}")
    assert table(structs, "d.t") == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE n > (SELECT avg(n) FROM t AS o WHERE o.id <= t.id)",
        "SELECT id FROM (SELECT * FROM t WHERE n > (SELECT avg(n) FROM t o WHERE o.id <= t.id)) x",
        "SELECT id FROM t WHERE n > 10 AND 2 >= (SELECT count(*) FROM u WHERE u.id < t.id)",
    ],
)
def test_a_scalar_subquery_may_be_correlated_by_less_than(t, query):
    assert rows(t, query) == [(2,)]


def test_parameters_of_a_query(t):
    assert rows(t, "SELECT v FROM t WHERE id = :id", {"id": 2}) == [("b",)]
    assert rows(t, "SELECT ?, v FROM t WHERE id = ?", ["?", 1]) == [("?", "a")]


@pytest.fixture
def twins(spark, acid):
    """ACID tables, and Spark tables with the same names and rows, as the oracle."""
    acid.sql("CREATE DATABASE d")
    made = {
        "default.t": "SELECT 1 AS id, 5 AS s, named_struct('id', 9, 's', 8, 'zz', 7) AS t",
        "d.t": "SELECT 1 AS id, 6 AS e",
        "d.u": "SELECT 2 AS id, named_struct('id', 2, 'e', 3) AS t",
    }
    for name, query in made.items():
        columns = ", ".join(f"{c} {kind}" for c, kind in spark.sql(query).dtypes)
        acid.sql(f"CREATE TABLE {name} ({columns})")
        acid.sql(f"INSERT INTO {name} {query}")
        spark.sql(f"CREATE TABLE {name} USING parquet AS {query}")
    spark.sql("SELECT 1 AS id, named_struct('id', 1, 's', 1) AS t").createOrReplaceTempView("w")
    yield spark, acid
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.catalog.dropTempView("w")


def answered(run, query):
    try:
        return sorted(map(str, run(query).collect()))
    except (AcidSqlError, AnalysisException) as error:
        return error


COLUMNS = ("t.id", "t.s", "t.*")
FROMS = (
    "d.t, default.t",
    "d.t JOIN default.t USING (id)",
    "(SELECT 1 AS id, 4 AS zz) t, default.t",
    "(SELECT 4 AS zz) t, default.t",
    "w AS t, d.t",
    "d.t, d.u",
)
INNER = ("w", "d.u", "(SELECT 5 AS s) t")


def of_namesakes():
    """Queries in which ``t.c`` may mean columns of several relations, or fields of structs."""
    for found in COLUMNS:
        yield from (f"SELECT {found} FROM {relations}" for relations in FROMS)
    for found in ("t.id", "d.t.id"):
        for inner in INNER:
            where = f"(SELECT 1 FROM {inner} WHERE {found} = 1)"
            yield f"SELECT id FROM d.t WHERE EXISTS {where}"
            yield f"SELECT d.t.id FROM d.t, w WHERE EXISTS {where}"
            nested = f"EXISTS (SELECT 1 FROM default.t AS y WHERE {found} = 1)"
            yield f"SELECT s FROM default.t WHERE EXISTS (SELECT 1 FROM {inner} WHERE {nested})"
    yield "SELECT id FROM d.t, (SELECT array(1) AS a) WHERE exists(a, x -> x = t.id AND d.t.id = 1)"
    yield "WITH t AS (SELECT id FROM d.t) SELECT t.id FROM t, default.t"
    yield "WITH t AS (SELECT id AS zz FROM d.t) SELECT t.zz, t.s FROM t, default.t"


def test_no_namesake_is_taken_for_another(twins):
    """If acidsql cannot tell Spark which column is meant, the query is refused."""
    spark, acid = twins
    answers = {q: (answered(acid.sql, q), answered(spark.sql, q)) for q in of_namesakes()}
    wrong = {q: both for q, both in answers.items() if isinstance(both[0], list) and
             str(both[0]) != str(both[1])}  # fmt: skip
    assert wrong == {}
    refusals = [ours for ours, _ in answers.values() if not isinstance(ours, list)]
    assert all(isinstance(ours, SqlError) for ours in refusals)
