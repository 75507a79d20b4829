"""Tables move between acidsql's own metastore and a Hive Metastore; rows and row ids stay."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from kit import rows

import acidsql
from acidsql.errors import (
    CatalogError,
    LockTimeoutError,
    MetastoreError,
    SettingError,
    TxnAbortedError,
    UnsupportedError,
)
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.hive.catalog.alterations import HiveAlterations
from acidsql.metastore.hive.catalog.cdc_tables import HiveCdcTables
from acidsql.metastore.hive.catalog.databases import HiveDatabases
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.commit import HiveCommit
from acidsql.metastore.hive.locking.locks import HiveLocks
from acidsql.metastore.hive.txns import HiveTxns
from acidsql.metastore.hive.wire.idl import hive as idl

_numbers = itertools.count(1)


pytestmark = pytest.mark.skipif(
    "ACIDSQL_OVER_HIVE" in os.environ, reason="these tests need acidsql's own metastore, too"
)


@pytest.fixture
def acid(spark, hive_metastore):
    """A session on a metastore of its own, in the server's warehouse: Hive 4 demands that."""
    place = hive_metastore.warehouse / f"own{next(_numbers)}"
    with acidsql.connect(spark, warehouse=str(place), compactor="off") as session:
        yield session
    spark.catalog.setCurrentDatabase("default")


@pytest.fixture
def hive(spark, hive_metastore):
    """A session on the Hive Metastore."""
    with acidsql.connect(spark, metastore=hive_metastore.url) as session:
        yield session


@pytest.fixture
def db(hive):
    """The name of a database that no other test uses."""
    name = f"moved{next(_numbers)}"
    yield name
    if hive.metastore.get_database(name) is not None:
        hive.metastore.drop_database(name, cascade=True)


@pytest.fixture
def export(acid, hive_metastore, db):
    def export(table="t"):
        acid.export_to_hive(table, metastore=hive_metastore.url, name=f"{db}.{table}")
        return f"{db}.{table}"

    return export


@pytest.fixture
def back(acid, hive_metastore, db):
    def back(table="t"):
        acid.import_from_hive(f"{db}.{table}", metastore=hive_metastore.url, name=table)

    return back


def ids(session, name):
    return rows(session, f"SELECT row__id, * FROM {name}")


def full_table(acid):
    """A table with partitions, buckets, constraints, several kinds of directories."""
    acid.sql(
        "CREATE TABLE t (a INT NOT NULL COMMENT 'c', b STRING DEFAULT 'x') "
        "PARTITIONED BY (p INT, q STRING) CLUSTERED BY (a) INTO 2 BUCKETS "
        "COMMENT 'a table' TBLPROPERTIES ('k'='v')"
    )
    acid.sql("INSERT INTO t VALUES (1, 'a', 1, 'A b'), (2, 'b', 1, 'A b'), (3, 'c', 2, NULL)")
    acid.sql("UPDATE t SET b = 'u' WHERE a = 1")
    acid.sql("DELETE FROM t WHERE a = 2")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 3, q = 'x/y') VALUES (4, 'd')")


def test_a_table_goes_to_hive_as_it_is_and_comes_back(acid, hive, export, back, hive_metastore):
    full_table(acid)
    before, made = ids(acid, "t"), rows(acid, "SHOW CREATE TABLE t")[0][0]
    files = {str(one) for one in Path(acid.warehouse, "t").rglob("*")}
    name = export()
    assert rows(acid, "SHOW TABLES") == []
    label = {f"{acid.warehouse}/t/_acidsql_moved"}
    assert {str(one) for one in Path(acid.warehouse, "t").rglob("*")} == files | label
    assert ids(hive, name) == before
    there = rows(hive, f"SHOW CREATE TABLE {name}")[0][0]
    for part in ("NOT NULL", "DEFAULT 'x'", "COMMENT 'c'", "INTO 2 BUCKETS", "'k'", "'a table'"):
        assert part in made and part in there, part
    assert "acidsql.moving" not in there
    hive.sql(f"UPDATE {name} SET b = 'h' WHERE a = 3")
    hive.sql(f"INSERT INTO {name} (a, p, q) VALUES (5, 4, 'new')")
    changed = ids(hive, name)
    assert [row[1:] for row in changed if row[1] in (3, 5)] == [
        (3, "h", 2, None), (5, "x", 4, "new")
    ]  # fmt: skip
    back()
    assert ids(acid, "t") == changed
    assert rows(hive, f"SHOW TABLES IN {name.partition('.')[0]}") == []
    acid.sql("MERGE INTO t USING (SELECT 5 a) s ON t.a = s.a WHEN MATCHED THEN DELETE")
    acid.sql("INSERT INTO t VALUES (6, 'f', 1, 'A b')")
    acid.compact("t", kind="major", wait=True)
    assert [row[0] for row in rows(acid, "SELECT a FROM t")] == [1, 3, 4, 6]


def test_write_ids_go_on_and_statistics_are_not_called_right(acid, hive, export, hive_metastore):
    """Hive answers ``count(*)`` from statistics that are called right, and a new table has none."""
    acid.sql("CREATE TABLE t (a INT)")
    for number in range(3):
        acid.sql(f"INSERT INTO t VALUES ({number})")
    name = export()
    assert hive.sql(f"INSERT INTO {name} VALUES (9)").first().write_id == 4
    marked = hive_metastore.query(
        "SELECT TBL_NAME FROM TABLE_PARAMS JOIN TBLS ON TABLE_PARAMS.TBL_ID = TBLS.TBL_ID JOIN "
        "DBS ON TBLS.DB_ID = DBS.DB_ID WHERE PARAM_KEY = 'COLUMN_STATS_ACCURATE' AND NAME = "
        f"'{name.partition('.')[0]}'"
    )
    assert marked == []


def test_write_ids_that_a_dead_move_has_left_are_no_obstacle(acid, hive, export, db):
    """The server seeds a table's write ids only once. Those that are missing are used up."""
    acid.sql("CREATE TABLE t (a INT)")
    for number in range(3):
        acid.sql(f"INSERT INTO t VALUES ({number})")
    seed = idl.SeedTableWriteIdsRequest(dbName=db, tableName="t", seedWriteId=1)
    hive.metastore.parts.server.call("seed_write_id", seed)
    name = export()
    assert rows(hive, f"SELECT * FROM {name}") == [(0,), (1,), (2,)]
    assert hive.sql(f"INSERT INTO {name} VALUES (9)").first().write_id == 4


def test_what_was_compacted_under_a_transactions_number_is_seen_there(acid, hive, export, back):
    """``_v0000007`` names a transaction of the old metastore. In the new one it means another."""
    acid.sql("SET acidsql.compactor.visibility.id = true")
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    acid.sql("DELETE FROM t WHERE a = 1")
    acid.compact("t", kind="major", wait=True)
    acid.sql("INSERT INTO t VALUES (3)")
    acid.sql("DELETE FROM t WHERE a = 3")
    acid.sql("INSERT INTO t VALUES (4)")
    acid.compact("t", kind="minor", wait=True)
    acid.clean()
    assert all("_v" in name for name in names(acid) if "base" in name)
    before = ids(acid, "t")
    name = export()
    assert ids(hive, name) == before
    hive.sql(f"UPDATE {name} SET a = 40 WHERE a = 4")
    back()
    assert rows(acid, "SELECT a FROM t") == [(2,), (40,)]


def names(acid):
    return [one.name for one in Path(acid.warehouse, "t").iterdir()]


def test_an_insert_only_table_moves(acid, hive, export, back):
    acid.sql("CREATE TABLE t (a INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("LOCK TABLE t EXCLUSIVE")  # our own lock is not in the way
    name = export()
    hive.sql(f"INSERT INTO {name} VALUES (2)")
    back()
    assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]


def test_an_adopted_table_moves_with_its_original_files(acid, hive, export, spark):
    spark.range(5).coalesce(1).write.orc(f"{acid.warehouse}/t")
    acid.sql(f"CREATE TABLE t (id BIGINT) LOCATION '{acid.warehouse}/t'")
    acid.sql("DELETE FROM t WHERE id > 2")
    before = ids(acid, "t")
    name = export()
    assert ids(hive, name) == before
    hive.sql(f"DELETE FROM {name} WHERE id = 0")
    assert rows(hive, f"SELECT id FROM {name}") == [(1,), (2,)]


@pytest.mark.slow
def test_hives_own_readers_see_the_same_rows(acid, hive, export, tmp_path_factory):
    from hive_reader import HiveReader, UnavailableError

    acid.sql("CREATE TABLE t (a INT, b STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    acid.sql("UPDATE t SET b = 'u' WHERE a = 1")
    acid.sql("DELETE FROM t WHERE a = 2")
    name = export()
    hive.sql(f"INSERT INTO {name} VALUES (4, 'd')")
    try:
        reader = HiveReader(tmp_path_factory.mktemp("hive"))
    except UnavailableError as error:
        pytest.skip(str(error))
    try:
        found = reader.rows(f"{acid.warehouse}/t", [("a", "int"), ("b", "string")])
    finally:
        reader.close()
    assert sorted((tuple(row_id), *values) for row_id, values in found) == ids(hive, name)


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def test_a_table_in_use_is_not_moved(acid, export, spark):
    acid.sql("CREATE TABLE t (a INT)")
    with acidsql.connect(spark, warehouse=acid.warehouse) as other:
        other.sql("BEGIN")
        other.sql("INSERT INTO t VALUES (1)")
        with pytest.raises(LockTimeoutError, match="INSERT INTO t"):
            export()
        other.sql("COMMIT")
    acid.sql("BEGIN")
    with pytest.raises(acidsql.TxnError, match="export_to_hive"):
        export()
    acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(1,)]


def test_a_table_that_hive_uses_is_not_taken_away(acid, hive, export, back):
    acid.sql("CREATE TABLE t (a INT)")
    name = export()
    hive.sql("BEGIN")
    hive.sql(f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(LockTimeoutError, match="INSERT INTO"):
        back()
    hive.sql("COMMIT")
    assert rows(hive, f"SELECT * FROM {name}") == [(1,)]


def test_rows_of_an_aborted_writer_are_cleaned_up_first(acid, hive, export, monkeypatch):
    """In the new metastore their write id counts as committed."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2)")
    store = acid.metastore
    txn = store.open_txn(user="u", host="h")
    name = acid._table("t").name
    write_id = store.allocate_write_id(txn, name)
    late = Path(acid.warehouse, "t", f"delta_{write_id:07d}_{write_id:07d}_0000")
    Path(acid.warehouse, "t", "delta_0000001_0000001_0000").rename(late)
    late.with_name("delta_0000001_0000001_0000").mkdir()
    store.abort_txn(txn)
    with pytest.raises(UnsupportedError, match="aborted"):
        export()
    assert rows(acid, "SELECT * FROM t") == [(2,)]
    late.rename(late.with_name(f"delta_{90:07d}_{90:07d}_0000"))
    with pytest.raises(UnsupportedError, match="never gave out"):
        export()
    assert rows(acid, "SELECT * FROM t") == [(2,)]


def test_half_of_a_compaction_is_not_shown_to_hive(acid, export):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2)")
    half = Path(acid.warehouse, "t", "delta_0000001_0000002")
    half.mkdir()
    (half / "_acidsql_paired").touch()
    with pytest.raises(UnsupportedError, match="half of a compaction"):
        export()


def test_a_name_that_is_taken_and_a_table_that_is_not_there(acid, export, db, hive_metastore):
    acid.sql("CREATE TABLE t (a INT)")
    export()
    acid.sql("CREATE TABLE t (a INT)")
    with pytest.raises(CatalogError, match="already"):
        export()
    assert rows(acid, "SELECT * FROM t") == []
    with pytest.raises(CatalogError, match="no ACID table"):
        acid.export_to_hive("nothing", metastore=hive_metastore.url)
    with pytest.raises(SettingError, match="thrift://"):
        acid.export_to_hive("t", metastore="sqlite:///x")


def test_a_directory_that_the_server_refuses_leaves_the_table_as_it_was(
    spark, hive_metastore, tmp_path
):
    with acidsql.connect(spark, warehouse=str(tmp_path), compactor="off") as acid:
        acid.sql("CREATE TABLE t (a INT)")
        acid.sql("INSERT INTO t VALUES (1)")
        with pytest.raises(CatalogError, match="managed"):
            acid.export_to_hive("t", metastore=hive_metastore.url, name=f"default.t{id(acid)}")
        assert rows(acid, "SELECT * FROM t") == [(1,)]
        acid.sql("INSERT INTO t VALUES (2)")


def test_a_new_table_of_the_old_name_gets_another_directory(acid, hive, export):
    """DROP of the new table would delete the rows of the one that has moved away."""
    acid.sql("CREATE TABLE t (a INT)")
    name = export()
    acid.sql("CREATE TABLE t (b STRING)")
    acid.sql("CREATE TABLE u (b STRING)")
    hive.sql(f"INSERT INTO {name} VALUES (1)")
    acid.sql("INSERT INTO t VALUES ('x')")
    acid.sql("DROP TABLE t")
    assert rows(hive, f"SELECT * FROM {name}") == [(1,)]
    with pytest.raises(CatalogError, match="another metastore"):
        acid.sql(f"CREATE TABLE v (a INT) LOCATION '{acid.warehouse}/t'")


def test_hive_drops_the_database_and_nothing_but_its_own_tables(acid, hive, export, db):
    """The server deletes a dropped database's directory with all that is in it."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("CREATE TABLE u (a INT)")
    acid.sql("INSERT INTO u VALUES (1)")
    export()
    hive.metastore.drop_database(db, cascade=True)
    assert rows(acid, "SELECT * FROM u") == [(1,)]


def test_a_session_of_a_hive_metastore_exports_nothing(hive, hive_metastore):
    for call in (hive.export_to_hive, hive.import_from_hive):
        with pytest.raises(SettingError, match="already"):
            call("t", metastore=hive_metastore.url)


# ── killed at each step ──────────────────────────────────────────────────────────────────────


class Killed(BaseException):
    """The process ends here: nothing is undone."""


# A store's calls, and the part of a Hive Metastore that has each.
CALLS = {
    "open_txn": HiveTxns, "lock": HiveLocks, "alter_table": HiveAlterations,
    "create_database": HiveDatabases, "commit_txn": HiveCommit, "drop_table": HiveCdcTables,
}  # fmt: skip


def killed_at(monkeypatch, point):
    """Let the process die before (even) or after (odd) a call of a store; None: it lives."""
    seen = itertools.count()
    for name, part in CALLS.items():
        for store in (EmbeddedMetastore, part):
            real = getattr(store, name)

            def call(self, *args, real=real, **options):
                if next(seen) == point:
                    raise Killed
                answer = real(self, *args, **options)
                if next(seen) == point:
                    raise Killed
                return answer

            monkeypatch.setattr(store, name, call)
    return seen


def move_and_die(monkeypatch, move, point):
    """Whether the move came to its end before the point."""
    with monkeypatch.context() as patched:
        # A dead process aborts nothing; its transactions end by a time-out, here at once.
        killed_at(patched, point)
        try:
            move()
        except Killed:
            return False
        return True


@pytest.mark.parametrize("to_hive", [True, False], ids=["export", "import"])
def test_killed_at_any_step_a_table_is_usable_in_one_place_at_most_and_the_call_again_ends_it(
    acid, hive, hive_metastore, db, monkeypatch, to_hive
):
    """Some of the steps; with ``ACIDSQL_ALL_KILLS=1``, all of them (it takes a minute)."""
    stride = 1 if os.environ.get("ACIDSQL_ALL_KILLS") else 4
    here, there = "t", f"{db}.t"
    acid.sql("CREATE TABLE t (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    expected = ids(acid, "t")

    def export():
        acid.export_to_hive(here, metastore=hive_metastore.url, name=there)

    def back():
        acid.import_from_hive(there, metastore=hive_metastore.url, name=here)

    move, undo = (export, back) if to_hive else (back, export)
    if not to_hive:
        export()
    old, new = (acid, hive) if to_hive else (hive, acid)
    old_name, new_name = (here, there) if to_hive else (there, here)
    ended, point = False, 0
    while not ended:
        ended = move_and_die(monkeypatch, move, point)
        found = [usable(old, old_name), usable(new, new_name)]
        assert all(one in (None, expected) for one in found), (point, found)
        assert found.count(expected) <= 1, point
        if found[1] is None:
            move()
        assert usable(old, old_name) is None, point
        assert usable(new, new_name) == expected, point
        undo()
        point += stride
    assert point > 12


def usable(session, name):
    """The rows of a table; None if there is none, or it is moving."""
    try:
        return ids(session, name)
    except CatalogError as error:
        assert error.condition == "TABLE_IS_MOVING", error
    except Exception as error:  # Spark's
        assert "TABLE_OR_VIEW_NOT_FOUND" in str(error), error
    return None


def test_a_metastore_that_does_not_answer_leaves_the_marks(acid, hive, export, monkeypatch):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")

    def lost(self, *args, **options):
        raise MetastoreError("the reply is lost")

    with monkeypatch.context() as patched:
        patched.setattr(HiveTables, "create_table", lost)
        with pytest.raises(MetastoreError):
            export()
    with pytest.raises(CatalogError, match="export_to_hive"):
        acid.sql("SELECT * FROM t")
    with pytest.raises(CatalogError, match="moving"):
        acid.sql("DROP TABLE t")
    assert rows(hive, f"SELECT * FROM {export()}") == [(1,)]


def test_a_commit_that_is_refused_deletes_no_file_of_the_table(acid, export, monkeypatch):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")

    def refused(self, own, entry):
        raise TxnAbortedError("the server has aborted the transaction")

    with monkeypatch.context() as patched:
        patched.setattr(HiveCommit, "_commit_and_release", refused)
        with pytest.raises(TxnAbortedError):
            export()
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    assert rows(acid, "SELECT count(*) FROM t") == [(1,)]
