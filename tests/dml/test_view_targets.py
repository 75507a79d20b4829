"""Targets that are no ACID table: the refusal says what the name is, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import fill, refused, rows, table
from over_hive import beside

from acidsql.errors import AcidSqlError, CatalogError

# Statements that need a table, {n} stands for its name.
CHANGES = [
    "UPDATE {n} SET v = 'z' WHERE id = 1",
    "DELETE FROM {n} WHERE id = 1",
    "WITH a AS (SELECT 1 AS id) DELETE FROM {n} WHERE id IN (SELECT id FROM a)",
    "DELETE FROM {n} USING t WHERE t.id = {n}.id",
    "DELETE FROM {n} RETURNING id",
    "MERGE INTO {n} USING (SELECT 1 AS id) s ON {n}.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO {n} USING t ON {n}.id = t.id WHEN MATCHED THEN UPDATE SET *",
    "INSERT INTO {n} REPLACE WHERE id = 1 SELECT 1, 'q'",
    "INSERT INTO {n} REPLACE USING (id) SELECT 1, 'q'",
    "AUTO CDC INTO {n} FROM t KEYS (id) SEQUENCE BY id",
]
INSERTS = [
    "INSERT INTO {n} VALUES (9, 'n')",
    "INSERT OVERWRITE {n} SELECT * FROM t",
    "FROM t INSERT INTO {n} SELECT id, v INSERT INTO {n} SELECT id, v",
]
OTHERS = [
    "ALTER TABLE {n} COMPACT 'major'",
    "RESTORE TABLE {n} TO VERSION AS OF 1",
    "LOCK TABLE {n} SHARED",
]
# Spark has these for its tables, too.
OF_TABLES = [
    "TRUNCATE TABLE {n}",
    "ALTER TABLE {n} ADD COLUMNS (q INT)",
    "ALTER TABLE {n} ADD CONSTRAINT c CHECK (id > 0)",
    "LOAD DATA INPATH '/tmp/x' INTO TABLE {n}",
]
A_VIEW, A_TABLE = "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "UNSUPPORTED_FEATURE.TABLE_OPERATION"


@pytest.fixture
def named(acid: Any, spark: Any) -> Iterator[Any]:
    """A session with an ACID table ``t``, views over it, and a table and a view of Spark's."""
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'")
    acid.sql("CREATE VIEW kept AS SELECT * FROM t")
    acid.sql("CREATE TEMP VIEW seen AS SELECT id, v FROM t WHERE id > 1")
    acid.table("t").createOrReplaceGlobalTempView("everywhere")
    spark.sql("CREATE TABLE plain (id INT, v STRING) USING parquet")
    spark.sql("CREATE VIEW plainly AS SELECT * FROM plain")
    yield acid
    spark.catalog.dropTempView("seen")
    spark.catalog.dropGlobalTempView("everywhere")
    spark.sql("DROP VIEW plainly")
    spark.sql("DROP TABLE plain")


def test_a_view_is_refused_as_a_target_in_words(named):
    of_views = [*CHANGES, *INSERTS, *OTHERS, *OF_TABLES]
    for text in of_views:
        error = refused(named, text.format(n="seen"), A_VIEW, "seen")
        assert "`seen` is a temporary view" in error.message, text
    for text in of_views[:8]:
        error = refused(named, text.format(n="kept"), A_VIEW, "kept")
        assert "is a view" in error.message, text
        name = "global_temp.everywhere"
        error = refused(named, text.format(n=name), A_VIEW, name)
        assert "`global_temp`.`everywhere` is a temporary view" in error.message, text
        error = refused(named, text.format(n="plainly"), A_VIEW, "plainly")
        assert "`plainly` is a view of Spark's" in error.message, text
    frame = named.spark.range(1)
    for text in (*CHANGES, *INSERTS, *OTHERS):
        with pytest.raises(AcidSqlError, match="DataFrame can only be|is no ACID table"):
            named.sql(text.format(n="{frame}"), frame=frame)
    assert table(named) == [(1, "a"), (2, "b")]


def test_a_table_of_sparks_is_refused_where_only_acid_tables_are_changed(named):
    for text in (*CHANGES, *OTHERS):
        error = refused(named, text.format(n="plain"), A_TABLE, "plain")
        assert "`plain` is a table of Spark's" in error.message, text
        assert "CREATE TABLE new AS SELECT * FROM `plain` makes an ACID table" in error.message
    for text in INSERTS[:2]:
        named.sql(text.format(n="plain"))
    assert rows(named, "SELECT * FROM plain") == [(1, "a"), (2, "b")]
    named.sql("CREATE TABLE new AS SELECT * FROM `plain`")
    named.sql("DELETE FROM new WHERE id = 1")
    assert table(named, "new") == [(2, "b")]


def test_a_name_of_nothing_is_no_syntax_error(named):
    for text in OTHERS:
        refused(named, text.format(n="nothing"), "TABLE_OR_VIEW_NOT_FOUND", "nothing")


def test_other_faults_keep_their_own_words(named):
    """Also where the target is no ACID table, and the fault is in the query."""
    for text, condition in (
        ("INSERT INTO plain SELECT id, w FROM t", "UNRESOLVED_COLUMN"),
        ("INSERT INTO plain SELCT 1, 'a'", "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO seen SELECT * FROM nothing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("UPDATE plain SE v = 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT id FROM seen WHERE w = 1", "UNRESOLVED_COLUMN"),
        ("CREATE VIEW new AS SELECT returning FROM t", "UNRESOLVED_COLUMN"),
        ("DELETE FROM t WHERE w = 1", "UNRESOLVED_COLUMN"),
        ("ALTER VIEW plainly AS SELECT * FROM t", "UNSUPPORTED_FEATURE"),
        ("ALTER VIEW seen AS SELCT 1", "PARSE_SYNTAX_ERROR"),
        ("ALTER TABLE plainly RENAME TO t2", "EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW"),
    ):
        with pytest.raises(Exception, match=condition) as caught:
            named.sql(text)
        assert "is a t" not in str(caught.value), text


def test_a_temporary_view_may_be_a_target_that_spark_writes_to(named, tmp_path):
    place = tmp_path / "files"
    place.mkdir()
    named.sql(f"CREATE TEMP VIEW csv (id INT, v STRING) USING csv OPTIONS (path '{place}')")
    try:
        named.sql("INSERT INTO csv SELECT * FROM t")
        assert rows(named, "SELECT * FROM csv") == [(1, "a"), (2, "b")]
    finally:
        named.spark.catalog.dropTempView("csv")


def test_methods_say_what_a_name_is_that_is_no_acid_table(named):
    with pytest.raises(AcidSqlError, match=A_VIEW):
        named.update("seen", {"v": "'z'"})
    with pytest.raises(AcidSqlError, match=A_VIEW):
        named.insert_into("seen", named.spark.sql("SELECT 1 AS id, 'a' AS v"))
    with pytest.raises(AcidSqlError, match=A_TABLE):
        named.delete("plain")
    with pytest.raises(CatalogError, match="'seen': it is a temporary view"):
        named.history("seen")
    with pytest.raises(CatalogError, match="'plain': it is a table of Spark's"):
        named.table("plain")
    with pytest.raises(CatalogError, match=r"There is no ACID table 'nothing'\."):
        named.history("nothing")


def test_a_temporary_view_hides_a_table_as_a_target_too(named):
    """As in Spark: the name means the view, and the table's rows stay."""
    named.spark.range(3).createOrReplaceTempView("t")
    try:
        refused(named, "DELETE FROM t", A_VIEW, "t")
    finally:
        named.spark.catalog.dropTempView("t")
    with beside(named, compactor="off") as other:
        assert len(table(other)) == 2
