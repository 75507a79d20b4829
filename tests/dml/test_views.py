"""Views over ACID tables: what they show, what changes around them, and what is refused."""

import pytest
from kit import counts, fill, refused, rows, table
from over_hive import beside, needs

from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, CatalogError, SnapshotTooOldError, TxnError

LIVE = [(1, "a"), (3, "c")]


@pytest.fixture
def v(acid):
    """A view of a table with a delete event, and a view of the view, with names of its own."""
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("DELETE FROM t WHERE id = 2")
    acid.sql("CREATE VIEW v AS SELECT * FROM t")
    acid.sql("CREATE VIEW w (n COMMENT 'how many', v) AS SELECT count(*), v.v FROM v GROUP BY v.v")
    return acid


@pytest.fixture
def spark_table(spark):
    spark.sql("CREATE TABLE plain (id INT, z STRING) USING parquet")
    spark.sql("INSERT INTO plain VALUES (1, 'p')")
    yield
    spark.sql("DROP TABLE plain")


@pytest.fixture
def other(spark, acid):
    """A second session on the same tables."""
    with beside(acid, compactor="off") as session:
        yield session


def columns(acid, query):
    return [(field.name, field.dataType.simpleString()) for field in acid.sql(query).schema]


def view_of(acid, name):
    return acid.metastore.find(TableName(acid.spark.catalog.currentDatabase(), name))


def test_a_query_reads_a_view_wherever_it_reads_a_table(v):
    database = v.spark.catalog.currentDatabase()
    assert table(v, "v") == rows(v, "TABLE v") == v.table("v").collect() == LIVE
    assert table(v, "w") == [(1, "a"), (1, "c")]
    assert rows(v, f"SELECT {database}.v.id FROM {database}.v WHERE v.v = 'c'") == [(3,)]
    assert rows(v, "WITH v AS (SELECT 7 AS id) SELECT * FROM v") == [(7,)]
    twice = "SELECT x.id, t.id FROM v x JOIN t ON x.v = t.v JOIN v ON v.id = x.id WHERE t.id > 1"
    assert rows(v, twice) == [(3, 3)]
    inside = "SELECT id FROM t o WHERE EXISTS (SELECT 1 FROM w WHERE w.v < o.v AND n = 1)"
    assert rows(v, inside) == [(3,)]
    assert columns(v, "SELECT * FROM w") == [("n", "bigint"), ("v", "string")]
    odd = "WITH t AS (SELECT * FROM t WHERE id = 3) SELECT struct(v AS `y z`), 2 FROM t -- all"
    v.sql(f"CREATE VIEW odd (`a b`, `c``d`) AS {odd}")
    assert rows(v, "SELECT `a b`.`y z`, `c``d` FROM odd") == [("c", 2)]
    v.sql("CREATE TEMP VIEW kept AS SELECT v FROM w")
    try:
        assert table(v, "kept") == [("a",), ("c",)]
    finally:
        v.spark.catalog.dropTempView("kept")


def test_statements_that_change_rows_read_views(v):
    v.sql("CREATE TABLE made AS SELECT n, v FROM w WHERE v = 'a'")
    assert table(v, "made") == [(1, "a")]
    assert counts(v, "INSERT INTO t SELECT id + 10, v FROM v") == (2, 0, 0)
    assert counts(v, "UPDATE t SET v = 'x' WHERE id = (SELECT max(id) FROM v)") == (0, 1, 0)
    merge = "MERGE INTO t USING v ON t.id = v.id + 10 WHEN MATCHED THEN UPDATE SET v = upper(v.v)"
    assert counts(v, merge) == (0, 2, 0)
    assert counts(v, "DELETE FROM t USING w WHERE t.v = w.v AND w.v = 'c'") == (0, 0, 1)
    v.sql("FROM v INSERT INTO made SELECT id, v WHERE id = 1")
    assert (table(v), table(v, "made")) == ([(1, "a"), (11, "A"), (13, "C")], [(1, "a")] * 2)
    plan = v.sql("EXPLAIN INSERT INTO made SELECT n, v FROM w").first().plan
    direct = v.sql("EXPLAIN INSERT INTO made SELECT id, v FROM t").first().plan
    assert plan.split("== ")[2] == direct.split("== ")[2] and ".t" in plan.split("== ")[2]


def test_a_view_keeps_the_columns_and_the_meaning_that_it_was_made_with(v, conf):
    v.sql("CREATE VIEW late AS SELECT id / (id - 1) AS q, date_format(timestamp_millis(0), 'HH')"
          " AS h FROM t WHERE id = 1")  # fmt: skip
    v.sql("ALTER TABLE t ADD COLUMNS (more INT)")
    assert table(v, "v") == LIVE and len(table(v)[0]) == 3
    conf("spark.sql.ansi.enabled", "false")
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    assert rows(v, "SELECT h FROM late") == [("00",)]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        v.sql("SELECT q FROM late").collect()
    v.sql("CREATE VIEW halves AS SELECT id / (id - 1) AS q FROM t")
    v.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    error = refused_view(v, "SELECT * FROM v", "INCOMPATIBLE_VIEW_SCHEMA_CHANGE", ".v cannot be")
    assert "id was made with the type INT" in error.message
    v.sql("ALTER VIEW v AS SELECT id, v FROM t")
    assert table(v, "w") == [(1, "a"), (1, "c")] and rows(v, "SELECT * FROM halves")[0] == (1.5,)
    refused(v, "ALTER TABLE t RENAME COLUMN v TO u", "NOT_SUPPORTED_CHANGE_COLUMN", "v")
    v.sql("DROP TABLE t")
    v.sql("CREATE TABLE t (id BIGINT, u STRING)")
    refused_view(v, "SELECT n FROM w", "UNRESOLVED_COLUMN", ".v cannot be read")
    v.sql("DROP TABLE t")
    refused_view(v, "SELECT 1 FROM w", "TABLE_OR_VIEW_NOT_FOUND", ".v cannot be read")


def refused_view(acid, query, condition, words):
    """Check that a view is named which cannot be read, without a caret in the user's text."""
    with pytest.raises(AcidSqlError) as caught:
        acid.sql(query)
    error = caught.value
    assert error.condition.startswith(condition) and words in error.message, error
    assert error.text is None and query not in error.message
    return error


def test_a_view_means_the_same_from_every_database_and_beside_every_temporary_view(v, conf):
    own = v.spark.catalog.currentDatabase()
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    v.sql('CREATE VIEW quoted AS SELECT "id" FROM t WHERE t."v" = \'c\'')
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "false")
    v.sql("CREATE DATABASE elsewhere_of_views")
    try:
        v.sql("USE elsewhere_of_views")
        v.spark.sql("SELECT 9 AS id, 'z' AS v").createOrReplaceTempView("t")
        assert table(v, f"{own}.v") == LIVE
        assert table(v, f"{own}.quoted") == [(3,)]
        v.sql(f"CREATE VIEW here AS SELECT id FROM {own}.v")
        with pytest.raises(CatalogError, match="has the view 'here'|is not empty"):
            v.sql("DROP DATABASE elsewhere_of_views")
    finally:
        v.spark.catalog.dropTempView("t")
        v.sql(f"USE {own}")
        v.sql("DROP DATABASE elsewhere_of_views CASCADE")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        v.sql("SELECT * FROM elsewhere_of_views.here")


def test_a_transaction_sees_the_views_and_the_tables_of_its_snapshot(v, other):
    with v.transaction():
        assert table(v, "v") == LIVE
        v.sql("UPDATE t SET v = 'mine' WHERE id = 1")
        other.sql("INSERT INTO t VALUES (4, 'd')")
        assert table(v, "v") == [(1, "mine"), (3, "c")]
        with pytest.raises(AcidSqlError, match="OP_NOT_ALLOWED_IN_TXN"):
            v.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS one FROM t")
        other.sql("ALTER VIEW w AS SELECT 5 AS five FROM t")
        for read in ("SELECT * FROM w", "INSERT INTO t SELECT 1, v FROM w"):
            with pytest.raises(SnapshotTooOldError):
                v.sql(read)
    with v.snapshot():
        assert len(table(v, "v")) == 3
        other.sql("DROP VIEW v")
        with pytest.raises(SnapshotTooOldError):
            v.sql("SELECT * FROM v")
        with pytest.raises(TxnError):
            v.sql("DROP VIEW w")
    assert table(v, "w") == [(5,)] * 3


def test_views_are_listed_and_described(v):
    database = v.spark.catalog.currentDatabase()
    of_view = {"namespace": database, "isTemporary": False, "catalog": "acidsql"}
    found = [row.asDict() for row in v.sql("SHOW VIEWS").collect() if not row.isTemporary]
    assert found == [{**of_view, "viewName": "v"}, {**of_view, "viewName": "w"}]
    assert [row.viewName for row in v.sql(f"SHOW VIEWS IN {database} LIKE 'w*|x'").collect()] == [
        "w"
    ]
    names = [row.tableName for row in v.sql("SHOW TABLES").collect() if row.catalog == "acidsql"]
    assert names == ["t", "v", "w"] and v.metastore.tables(database) == ["t"]
    assert table_rows(v, "DESCRIBE w") == [("n", "bigint", "how many"), ("v", "string", "")]
    told = dict(row[:2] for row in table_rows(v, "DESCRIBE EXTENDED w"))
    assert told["Type"] == "VIEW"
    assert told["View Original Text"] == "SELECT count(*), v.v FROM v GROUP BY v.v"
    assert (
        told["View Text"] == view_of(v, "w").view.expanded
        and f"`{database}`.`v`" in told["View Text"]
    )
    assert table_rows(v, "SHOW COLUMNS IN w") == [("n",), ("v",)]


def table_rows(acid, statement):
    return [tuple(row) for row in acid.sql(statement).collect()]


def test_the_statement_that_show_create_table_gives_makes_the_same_view(v):
    v.sql("CREATE OR REPLACE VIEW w (a COMMENT 'it''s', b) COMMENT 'c' TBLPROPERTIES ('k' = 'x')"
          " AS SELECT v, id FROM v WHERE id > 1 -- not all")  # fmt: skip
    before = view_of(v, "w")
    (made,) = v.sql("SHOW CREATE TABLE w").first()
    v.sql("DROP VIEW w")
    v.sql(made)
    after = view_of(v, "w")
    assert (after.columns, after.comment) == (before.columns, before.comment)
    assert after.properties["k"] == "x" and table(v, "w") == [("c", 3)]
    v.sql("ALTER VIEW w RENAME TO x")
    v.sql("ALTER VIEW x AS SELECT id AS only FROM v")
    altered = view_of(v, "x")
    assert (altered.comment, altered.properties["k"]) == ("c", "x")
    assert table(v, "x") == [(1,), (3,)]


def test_a_view_of_both_kinds_of_tables_is_ours_and_one_of_sparks_tables_is_sparks(v, spark_table):
    v.sql("CREATE VIEW both AS SELECT z, v FROM plain JOIN v USING (id)")
    assert table(v, "both") == [("p", "a")]
    v.sql("CREATE VIEW sparks AS SELECT * FROM plain")
    try:
        catalogs = {row.viewName: row.catalog for row in v.sql("SHOW VIEWS").collect()}
        assert (catalogs["both"], catalogs["sparks"]) == ("acidsql", "spark_catalog")
        refused(v, "ALTER VIEW sparks AS SELECT * FROM t", "UNSUPPORTED_FEATURE", "sparks")
        with pytest.raises(CatalogError, match="Spark has a table or view"):
            v.sql("CREATE OR REPLACE VIEW sparks AS SELECT * FROM t")
    finally:
        v.sql("DROP VIEW sparks")


def test_a_view_that_reads_no_acid_table_is_ours_if_it_says_so(v, other, spark_table):
    """Without the property, a view of literals is Spark's, and other processes do not see it."""
    ours = "TBLPROPERTIES ('Transactional' = 'TRUE', 'k' = 'x')"
    v.sql(f"CREATE VIEW literal (n COMMENT 'one', c) {ours} AS SELECT 1 AS a, 'b' AS c")
    v.sql(f"CREATE OR REPLACE VIEW sparks {ours} AS SELECT id FROM plain")
    assert table(other, "literal") == [(1, "b")] and table(other, "sparks") == [(1,)]
    assert "transactional" not in view_of(v, "literal").properties  # Hive would refuse it
    assert view_of(v, "literal").properties["k"] == "x"
    (statement,) = v.sql("SHOW CREATE TABLE literal").first()
    v.sql("DROP VIEW literal")
    v.sql(statement)
    assert table(other, "literal") == [(1, "b")]
    v.sql("CREATE OR REPLACE VIEW literal AS SELECT 2 AS n")  # the name is ours now
    assert table(other, "literal") == [(2,)]
    v.sql("CREATE VIEW sparks_own TBLPROPERTIES ('transactional' = 'false') AS SELECT 1 AS a")
    try:
        catalogs = {row.viewName: row.catalog for row in v.sql("SHOW VIEWS").collect()}
        assert catalogs["literal"] == "acidsql" and catalogs["sparks_own"] == "spark_catalog"
    finally:
        v.sql("DROP VIEW sparks_own")


@needs("keeps_versions")
def test_older_versions_inside_of_a_view_are_read_and_a_view_has_none(v):
    v.sql("CREATE VIEW before AS SELECT id FROM t VERSION AS OF 1")
    v.sql("CREATE VIEW feed AS SELECT id, _change_type AS kind FROM table_changes('t', 2)")
    assert table(v, "before") == [(1,), (2,), (3,)]
    assert table(v, "feed") == [(2, "delete")]
    refused(v, "SELECT * FROM v VERSION AS OF 1", "UNSUPPORTED_FEATURE.TIME_TRAVEL")
    with pytest.raises(AcidSqlError, match="is a view"):
        v.table("v", version=1)
    first = v.history("t").where("version = 1").first().timestamp
    v.sql("ALTER VIEW w AS SELECT id + 1 AS next FROM v")
    with v.snapshot(timestamp=first):
        assert table(v, "v") == [(1, "a"), (2, "b"), (3, "c")]
        assert table(v, "w") == [(2,), (3,), (4,)]  # by its query of today


@pytest.mark.parametrize(
    ("statement", "condition", "at"),
    [
        ("INSERT INTO v VALUES (1, 'a')", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("FROM t INSERT INTO v SELECT id, v", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("UPDATE v SET id = 1", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("DELETE FROM v WHERE id = 1", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("MERGE INTO v USING t ON v.id = t.id WHEN MATCHED THEN DELETE", "EXPECT_TABLE_NOT", "v"),
        ("AUTO CDC INTO v FROM t KEYS (id) SEQUENCE BY id", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("TRUNCATE TABLE v", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("DROP TABLE IF EXISTS v", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("ALTER TABLE v ADD COLUMNS (a INT)", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("LOAD DATA INPATH '/x' INTO TABLE v", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("CREATE TABLE x LIKE v", "EXPECT_TABLE_NOT_VIEW", "v"),
        ("CACHE TABLE v", "UNSUPPORTED_FEATURE", "v"),
        ("DROP VIEW t", "EXPECT_VIEW_NOT_TABLE", "t"),
        ("ALTER VIEW t AS SELECT 1 AS a", "EXPECT_VIEW_NOT_TABLE", "t"),
        ("CREATE VIEW x AS SELECT count(*) FROM t", "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", None),
        ("CREATE VIEW x (a) AS SELECT * FROM t", "CREATE_VIEW_COLUMN_ARITY_MISMATCH", "a"),
        ("CREATE VIEW x (a, A) AS SELECT * FROM t", "COLUMN_ALREADY_EXISTS", "A"),
        ("CREATE VIEW x AS SELECT id, id FROM t", "COLUMN_ALREADY_EXISTS", None),
        ("CREATE VIEW x AS SELECT row__id FROM t", "UNSUPPORTED_FEATURE", None),
        ("CREATE VIEW x AS SELECT nope FROM t", "UNRESOLVED_COLUMN", "nope"),
        ("CREATE VIEW x AS SELECT NULL AS a FROM t", "UNSUPPORTED_DATATYPE", None),
        ("CREATE VIEW x AS SELECT :a AS a FROM t", "UNSUPPORTED_FEATURE.PARAMETER", ":a"),
        ("CREATE VIEW x AS SELECT ? AS a FROM t", "UNSUPPORTED_FEATURE.PARAMETER", "?"),
        ("CREATE VIEW x AS SELECT id FROM IDENTIFIER('u') JOIN t", "UNSUPPORTED_FEATURE", None),
        ("CREATE VIEW x AS SELECT * FROM t, mine", "INVALID_TEMP_OBJ_REFERENCE", "mine"),
        ("CREATE VIEW x AS SELECT own(id) AS a FROM t", "INVALID_TEMP_OBJ_REFERENCE", "own"),
        ("CREATE VIEW x AS SELECT id + number AS a FROM t", "INVALID_TEMP_OBJ_REFERENCE", None),
        ("CREATE VIEW x AS SELECT id FROM t WHERE id IN (SELECT number)", "INVALID_TEMP_OBJ", None),
        ("CREATE VIEW x AS WITH c AS (SELECT number) SELECT id FROM t", "INVALID_TEMP_OBJ", None),
    ],
)
@pytest.mark.classic
def test_what_a_view_cannot_do_is_refused_by_name(refusing, statement, condition, at):
    refused(refusing, statement, condition, at)


@pytest.fixture(scope="module")
def refusing_session(spark):
    """Things of one session: a temporary view, a function, a variable."""
    spark.sql("SELECT 1 AS one").createOrReplaceTempView("mine")
    spark.udf.register("own", lambda value: value)
    spark.sql("DECLARE OR REPLACE VARIABLE number INT DEFAULT 1")
    yield
    spark.catalog.dropTempView("mine")
    spark.sql("DROP TEMPORARY FUNCTION own")
    spark.sql("DROP TEMPORARY VARIABLE number")


@pytest.fixture
def refusing(acid, refusing_session):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("CREATE VIEW v AS SELECT * FROM t")
    return acid


def test_a_name_is_taken_once_and_no_view_reads_itself(v):
    taken = "TABLE_OR_VIEW_ALREADY_EXISTS"
    for statement in (
        "CREATE TABLE v (a INT)",
        "CREATE OR REPLACE TABLE v AS SELECT 1 AS a",
        "CREATE VIEW t AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW t AS SELECT * FROM v",
        "CREATE VIEW v AS SELECT id FROM t",
        "ALTER TABLE t RENAME TO v",
        "ALTER VIEW w RENAME TO t",
    ):
        with pytest.raises(CatalogError, match=taken):
            v.sql(statement)
    before = view_of(v, "v")
    for name in ("v", "t"):
        v.sql(f"CREATE VIEW IF NOT EXISTS {name} AS SELECT id FROM t")
        v.sql(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT 1 AS a")
    for statement in (
        "CREATE OR REPLACE VIEW v AS SELECT n FROM w",
        "ALTER VIEW v AS SELECT id FROM t UNION SELECT n FROM w",
        "ALTER VIEW v AS SELECT id FROM v",
    ):
        with pytest.raises(AcidSqlError, match="RECURSIVE_VIEW"):
            v.sql(statement)
    assert view_of(v, "v") == before
    v.sql("DROP VIEW IF EXISTS nothing")
    with pytest.raises(AcidSqlError, match="TABLE_OR_VIEW_NOT_FOUND"):
        v.sql("DROP VIEW nothing")
