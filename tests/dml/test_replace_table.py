"""CREATE OR REPLACE TABLE: others see the old table or the new one."""

from __future__ import annotations

import os

import pytest
from kit import directories, fill, ordered, refused, rows, table
from over_hive import OVER_HIVE, beside, needs

from acidsql.errors import AcidSqlError, CatalogError, SnapshotTooOldError, TableChangedError
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.queries import table_rows

replaces = needs("replaces_tables")


@pytest.fixture
def other(acid):
    with beside(acid, compactor="off") as session:
        yield session


def end_leases(acid, monkeypatch):
    """Let the session's own leases be old, so that its cleaner ends them."""
    leases = acid._runner._txns._leases
    now = leases._elapsed() + leases.timeout_ms / 1000
    monkeypatch.setattr(leases, "_elapsed", lambda: now)


@replaces
def test_the_new_table_has_nothing_of_the_old_one_and_may_be_made_of_its_rows(acid, monkeypatch):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p INT)", "1, 'a', 1", "2, 'b', 2")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')")
    acid.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (v) AS SELECT id + p AS id, v FROM t")
    with beside(acid, compactor="off") as other:
        assert table(acid) == table(other) == [(2, "a"), (4, "b")]
    assert rows(acid, "SHOW PARTITIONS t") == [("v=a",), ("v=b",)]
    assert ("k", "v") not in rows(acid, "SHOW TBLPROPERTIES t")
    acid.sql("UPDATE t SET id = 7 WHERE v = 'a'")
    acid.sql("CREATE OR REPLACE TABLE t (a DATE)")  # without rows
    assert table(acid) == [] and acid.table("t").columns == ["a"]
    acid.sql("CREATE OR REPLACE TABLE t LIKE t TBLPROPERTIES ('l' = 'm')")
    acid.sql("INSERT INTO t VALUES (DATE'2024-01-02')")
    assert acid.table("t").count() == 1
    end_leases(acid, monkeypatch)
    acid.clean()
    assert [one for one in os.listdir(acid.warehouse) if one.startswith("t")] == [
        os.path.basename(acid._table("t").location)
    ]
    assert acid.table("t").count() == 1


@replaces
def test_a_dataframe_of_the_old_table_keeps_its_rows_until_its_session_ends(acid, monkeypatch):
    fill(acid, "t (id INT)", "1", "2")
    with beside(acid, compactor="off") as reader:
        late = reader.sql("SELECT id FROM t")
        acid.sql("CREATE OR REPLACE TABLE t AS SELECT 'new' AS id")
        acid.sql("CREATE OR REPLACE TABLE t AS SELECT id || 'er' AS id FROM t")
        acid.clean()
        assert ordered(late.collect()) == [(1,), (2,)]
        assert table(reader) == [("newer",)]
        acid.sql("DROP TABLE t")
        acid.sql("CREATE TABLE t (id INT)")
        acid.sql("INSERT INTO t VALUES (3)")
        assert ordered(late.collect()) == [(1,), (2,)]
    end_leases(acid, monkeypatch)
    acid.clean()
    assert acid.metastore.pending_cleanups() == []
    assert table(acid) == [(3,)]


@replaces
def test_the_compactor_of_a_session_deletes_the_old_directory(acid):
    fill(acid, "t (id INT)", "1")
    with beside(acid, compactor="inline") as session:
        session.sql("CREATE OR REPLACE TABLE t AS SELECT 2 AS id")
    assert acid.metastore.pending_cleanups() == []
    assert [one for one in os.listdir(acid.warehouse) if one.startswith("t")] != ["t"]
    assert table(acid) == [(2,)]


@replaces
def test_a_reader_that_finds_the_table_replaced_reads_the_new_one(acid, other, monkeypatch):
    fill(acid, "t (id INT)", "1")
    real = table_rows.read_rows

    def replaced_meanwhile(*args, **options):
        monkeypatch.undo()
        other.sql("CREATE OR REPLACE TABLE t AS SELECT 'new' AS id")
        return real(*args, **options)

    monkeypatch.setattr(table_rows, "read_rows", replaced_meanwhile)
    assert table(acid) == [("new",)]
    monkeypatch.setattr(table_rows, "read_rows", replaced_meanwhile)
    with pytest.raises(TableChangedError, match="was replaced meanwhile"):
        acid.table("t")  # the caller may have asked for its columns


@replaces
def test_of_two_that_replace_a_table_by_its_own_rows_the_second_takes_the_firsts(
    acid, other, monkeypatch
):
    fill(acid, "t (id INT)", "1")
    real = TableStatements.lock_new

    def is_second(*args):
        monkeypatch.undo()
        other.sql("CREATE OR REPLACE TABLE t AS SELECT id + 1L AS id, 'x' AS v FROM t")
        return real(*args)

    monkeypatch.setattr(TableStatements, "lock_new", is_second)
    acid.sql("CREATE OR REPLACE TABLE t AS SELECT *, id * 10 AS ten FROM t")
    assert table(acid) == [(2, "x", 20)]


@replaces
def test_a_table_that_is_not_there_yet_is_made(acid):
    acid.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS a")
    assert table(acid) == [(1,)] and directories(acid) == ["delta_0000001_0000001_0000"]


@replaces
def test_a_query_that_fails_leaves_the_old_table(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("SET acidsql.driver.max.rows = 0")
    with pytest.raises(AcidSqlError):
        acid.sql("CREATE OR REPLACE TABLE t AS SELECT id / 0 AS a, raise_error('x') AS b FROM t")
    refused(acid, "CREATE OR REPLACE TABLE t AS SELECT nope FROM t", "UNRESOLVED_COLUMN")
    acid.sql("INSERT INTO t VALUES (2)")
    assert table(acid) == [(1,), (2,)]
    assert [row.location for row in acid.metastore.owners()] == [acid._table("t").location]


@replaces
def test_write_ids_go_on_and_older_versions_end(acid):
    fill(acid, "t (id INT)", "1", "2")
    acid.sql("DELETE FROM t WHERE id = 1")
    acid.sql("CREATE OR REPLACE TABLE t AS SELECT id FROM t")
    (version,) = acid.history("t").select("version", "operation").collect()
    assert version == (3, "CREATE TABLE AS SELECT")
    with pytest.raises(AcidSqlError):
        acid.sql("SELECT * FROM t VERSION AS OF 1").collect()
    assert rows(acid, "SELECT * FROM t VERSION AS OF 3") == [(2,)]


@replaces
def test_a_transaction_does_not_see_a_table_that_replaced_its_own(acid, other):
    fill(acid, "t (id INT)", "1")
    with acid.transaction():
        assert table(acid) == [(1,)]
        other.sql("CREATE OR REPLACE TABLE t (id INT)")
        with pytest.raises(SnapshotTooOldError, match="OR REPLACE"):
            table(acid)
    assert table(acid) == []


@replaces
def test_a_stream_of_changes_from_auto_cdc_begins_anew(acid):
    fill(acid, "t (id INT, v STRING)")
    acid.sql("CREATE TABLE s AS SELECT 1 AS id, 'a' AS v, 5 AS at")
    cdc = "AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY at COLUMNS * EXCEPT (at)"
    acid.sql(cdc)
    acid.sink("t", txn_app_id="app")(acid.sql("SELECT 2 AS id, 'b' AS v"), 1)
    assert acid.streams().count() == 1
    acid.sql("CREATE OR REPLACE TABLE t (id INT, v STRING)")
    assert acid.streams().count() == 0
    assert acid.metastore.tables("default") == ["s", "t"]  # the order values went with the rows
    acid.sql(cdc)
    assert table(acid) == [(1, "a")]


@replaces
def test_what_is_sparks_is_not_replaced(acid, spark):
    acid.sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1 AS a")
    try:
        with pytest.raises(CatalogError, match="Spark has a table or view"):
            acid.sql("CREATE OR REPLACE TABLE v (a INT)")
    finally:
        spark.catalog.dropTempView("v")


@pytest.mark.skipif(not OVER_HIVE, reason="acidsql's own metastore replaces tables")
def test_a_hive_metastore_replaces_no_table(acid):
    for statement in ("(a INT)", "AS SELECT 1 AS a"):
        with pytest.raises(AcidSqlError) as error:
            acid.sql(f"CREATE OR REPLACE TABLE t {statement}")
        assert error.value.condition == "UNSUPPORTED_FEATURE.REPLACE_TABLE"
