"""CREATE TEMPORARY TABLE: a table that one session names, and that ends with it."""

from pathlib import Path

import pytest
from kit import counts, fill, refused, rows, table
from over_hive import beside, needs

from acidsql.errors import AcidSqlError, CatalogError, TxnError, UnsupportedError

pytestmark = needs("keeps_temporary_tables")
ROWS = "SELECT id AS a, id % 2 AS p FROM range(4)"


@pytest.fixture
def other(acid):
    session = beside(acid)
    yield session
    session.close()


def shown(session, what="SHOW TABLES"):
    return [(row.tableName, row.isTemporary) for row in session.sql(what).collect()]


def holder(session):
    (txn,) = (one for one in session.metastore.show_txns() if "temporary" in one.agent_info)
    return txn.txn_id


def of_warehouse(session):
    return sorted(path.name for path in Path(session.warehouse).iterdir() if path.name[0] != ".")


def test_it_hides_a_table_from_its_own_session_alone_and_is_gone_when_that_closes(acid, other):
    fill(acid, "t (a INT)", "7")
    acid.sql("CREATE VIEW v AS SELECT a FROM t")
    with beside(acid) as session:
        session.sql("CREATE TEMPORARY TABLE `T` (a INT, p INT) COMMENT 'mine'")
        session.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        assert session.last.counts[0].table == "default.t"
        assert table(session) == rows(session, "SELECT default.t.* FROM default.t") != table(other)
        assert table(session, "v") == table(other) == table(other, "v") == [(7,)]
        assert shown(session) == [("t", False), ("t", True), ("v", False)]
        assert shown(other) == shown(acid) == [("t", False), ("v", False)]
        session.sql("CREATE TEMPORARY TABLE v (b INT)")
        error = refused(session, "DROP VIEW IF EXISTS v", "EXPECT_VIEW_NOT_TABLE", "v")
        assert "default.v is a temporary table" in error.message
        session.sql("DROP TABLE v")
        assert table(session, "v") == [(7,)]
        made = session.sql("SHOW CREATE TABLE t").first()[0]
        assert made.startswith("CREATE TEMPORARY TABLE `default`.`t` (")
        facts = {row[0]: row[1] for row in session.sql("DESCRIBE EXTENDED t").collect()}
        assert (facts["Table"], facts["Type"], facts["Comment"]) == ("t", "TEMPORARY", "mine")
        kept = Path(facts["Location"]).name
        error = refused(session, f"SELECT * FROM `{kept}`", "TABLE_OR_VIEW_NOT_FOUND")
        assert "@" in kept and "Did you mean" not in error.message
        with pytest.raises(AcidSqlError) as caught:
            session.sql("INSERT INTO t VALUES ('x', 1)")
        assert "@" not in str(caught.value)
        for name in ("", ".t", "default."):
            with pytest.raises(CatalogError, match="is no name of a table"):
                session.files(name)
        plan = session.sql("EXPLAIN DELETE FROM t WHERE a = 1").first()[0]
        assert plan.startswith("== Locks ==\nEXCL_WRITE on default.t\n")
        assert rows(other, "SHOW LOCKS") == []
        session.sql("LOCK TABLE t EXCLUSIVE")
        assert [row.table for row in other.sql("SHOW LOCKS").collect()] == ["t"]
        other.sql("INSERT INTO t VALUES (8)")
    assert of_warehouse(acid) == ["t"]
    assert not acid.metastore.temporary_tables() and table(acid) == [(7,), (8,)]


def test_statements_do_with_it_what_they_do_with_any_table(acid, other):
    acid.sql(f"CREATE TEMPORARY TABLE t PARTITIONED BY (p) AS {ROWS}")
    acid.sql(f"CREATE TABLE plain PARTITIONED BY (p) AS {ROWS}")
    for statement in (
        "UPDATE {t} SET a = {t}.a + 10 WHERE default.{t}.p = 1",
        "DELETE FROM {t} WHERE a = 0",
        "MERGE INTO {t} USING (SELECT 2 AS a, 0 AS p) s ON {t}.a = s.a WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = {t}.a + 1",
        "ALTER TABLE {t} ADD COLUMNS (b STRING DEFAULT 'x')",
        "INSERT INTO {t} (a, p) VALUES (5, 5)",
        "ALTER TABLE {t} COMPACT 'major' AND WAIT",
        "ANALYZE TABLE {t} COMPUTE STATISTICS",
    ):
        for name in ("t", "plain"):
            acid.sql(statement.format(t=name))
    assert table(acid) == table(acid, "plain")
    assert rows(acid, "SHOW PARTITIONS t") == rows(acid, "SHOW PARTITIONS plain")
    assert {row.tabname for row in other.sql("SHOW COMPACTIONS").collect()} == {"t", "plain"}
    with acid.transaction() as txn:
        acid.sql("INSERT INTO t VALUES (6, 'y', 6)")
        txn.rollback()
    assert counts(acid, "DELETE FROM t WHERE p = 5") == (0, 0, 1)
    acid.sql("ALTER TABLE t RENAME TO u")
    assert shown(acid) == [("plain", False), ("u", True)]
    versions = [row.version for row in acid.history("u").collect() if row.version is not None]
    last, before, *_ = versions
    assert table(acid, f"u VERSION AS OF {before}") == table(acid, "plain")
    assert rows(acid, f"SELECT a FROM table_changes('u', {last})") == [(5,)]
    acid.sql("CREATE TABLE of_u LIKE u")
    assert shown(other) == [("of_u", False), ("plain", False)]
    acid.sql("DROP TABLE u")
    assert shown(acid) == shown(other)


def test_a_new_table_may_read_what_it_hides_and_come_again(acid, other):
    fill(acid, "t (a INT)", "7")
    acid.sql("CREATE TEMPORARY TABLE t AS SELECT a + 1 AS a FROM t")
    acid.sql("CREATE TEMPORARY TABLE IF NOT EXISTS t (b INT)")
    with pytest.raises(CatalogError, match="There is an ACID table default.t already"):
        acid.sql("CREATE TEMPORARY TABLE t (b INT)")
    acid.sql("CREATE OR REPLACE TEMPORARY TABLE t AS SELECT a + 1 AS a FROM t")
    assert table(acid) == [(9,)]
    acid.sql("DROP TABLE t")
    assert table(acid) == [(7,)]
    acid.sql("CREATE TEMPORARY TABLE t (a INT)")
    acid.sql("CREATE DATABASE d")
    acid.sql("CREATE TEMPORARY TABLE d.t (a INT)")
    with pytest.raises(CatalogError, match="table 't', a temporary table of session"):
        acid.sql("DROP DATABASE d")
    acid.sql("DROP DATABASE d CASCADE")
    assert table(acid) == []
    acid.sql("CREATE DATABASE d")
    acid.sql("CREATE TEMPORARY TABLE d.t (a INT)")
    other.sql("DROP DATABASE d CASCADE")
    with pytest.raises(TxnError, match="temporary tables d.t"):
        acid.sql("SELECT 1")
    assert table(acid) == []


def test_the_cleaner_drops_the_tables_of_a_session_that_has_died_and_the_session_is_told(
    acid, other
):
    fill(acid, "t (a INT)", "7")
    acid.sql("CREATE TEMPORARY TABLE t (a INT)")
    acid.sql("CREATE TEMPORARY TABLE u AS SELECT 1 AS a")
    assert [row for row in other.clean().collect() if row.kind == "dropped"] == []
    assert len(of_warehouse(acid)) == 3
    other.sql(f"ABORT TRANSACTIONS {holder(acid)}")
    dropped = [row.table for row in other.clean().collect() if row.kind == "dropped"]
    assert dropped == ["default.t", "default.u"] and of_warehouse(acid) == ["t"]
    with pytest.raises(TxnError, match="temporary tables default.t, default.u") as caught:
        acid.sql("INSERT INTO t VALUES (1)")
    assert caught.value.condition == "TEMPORARY_TABLES_LOST"
    assert table(acid) == [(7,)]
    acid.sql("CREATE TEMPORARY TABLE t (a INT)")
    assert table(acid) == [] and shown(acid) == [("t", False), ("t", True)]


def test_a_lost_reply_leaves_the_session_knowing_what_the_store_has(acid, monkeypatch):
    def lost(*args, **options):
        real(*args, **options)
        raise KeyboardInterrupt

    real = acid.metastore.commit_txn
    monkeypatch.setattr(acid.metastore, "commit_txn", lost)
    with pytest.raises(KeyboardInterrupt):
        acid.sql("CREATE TEMPORARY TABLE t (a INT)")
    monkeypatch.undo()
    assert shown(acid) == [("t", True)] and table(acid) == []
    real = acid.metastore.drop_table
    monkeypatch.setattr(acid.metastore, "drop_table", lost)
    with pytest.raises(KeyboardInterrupt):
        acid.sql("DROP TABLE t")
    monkeypatch.undo()
    acid.sql("DROP TABLE IF EXISTS t")
    assert shown(acid) == []


@pytest.mark.classic
def test_what_needs_a_table_that_lasts_refuses_it(acid, spark):
    acid.sql("CREATE TEMPORARY TABLE t (a INT)")
    for query in ("SELECT * FROM t", "SELECT a FROM table_changes('t', 1)"):
        refused(acid, f"CREATE VIEW v AS {query}", "INVALID_TEMP_OBJ_REFERENCE")
    for call in (
        lambda: acid.sql("AUTO CDC INTO t FROM (SELECT 1 AS a) KEYS (a) SEQUENCE BY a"),
        lambda: acid.sink("t"),
        lambda: acid.export_to_hive("t", metastore="thrift://nowhere:1"),
    ):
        with pytest.raises(UnsupportedError, match="default.t is a temporary table") as caught:
            call()
        assert caught.value.condition == "UNSUPPORTED_FEATURE.TEMPORARY_TABLE"
    key = "PRIMARY KEY (a) DISABLE NOVALIDATE"
    refers = "FOREIGN KEY (a) REFERENCES {} (a) DISABLE NOVALIDATE"
    for start, end in (("CREATE TABLE c (a INT,", ")"), ("ALTER TABLE p ADD CONSTRAINT k", "")):
        acid.sql(f"CREATE TABLE IF NOT EXISTS p (a INT, {key})")
        with pytest.raises(UnsupportedError, match="default.t is a temporary table"):
            acid.sql(f"{start} {refers.format('t')}{end}")
    acid.sql(f"CREATE TEMPORARY TABLE c (a INT, {refers.format('t')})")
    acid.sql(f"CREATE TEMPORARY TABLE self (a INT, {refers.format('self')})")
    assert "REFERENCES `default`.`self`" in acid.sql("SHOW CREATE TABLE self").first()[0]
    spark.range(1).createOrReplaceTempView("seen")
    with pytest.raises(CatalogError, match="Spark has a table or view `seen` already"):
        acid.sql("CREATE TEMPORARY TABLE seen (a INT)")
    spark.catalog.dropTempView("seen")
    acid.sql("BEGIN")
    with pytest.raises(UnsupportedError, match="cannot be part of a transaction"):
        acid.sql("CREATE TEMPORARY TABLE u (a INT)")
    acid.sql("ROLLBACK")
