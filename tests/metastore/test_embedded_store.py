"""What only the embedded store can get wrong: files, versions, other programs, other processes."""

import multiprocessing
import sqlite3
import threading
import time

import hammer
import pytest
from contract_base import T, begin, exclusive, table
from sqlalchemy import event

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.settings import Settings

IMPATIENT = Settings.of({"acidsql.metastore.busy.timeout": "100ms"})


def connect(path, **keywords):
    return EmbeddedMetastore(sqlite_url(path), warehouse="/wh", **keywords)


def test_any_character_may_stand_in_the_path(tmp_path):
    path = tmp_path / "a b?c#d%20é.db"
    connect(path).close()
    assert path.exists()


def test_a_missing_directory_is_said_to_be_missing(tmp_path):
    with pytest.raises(MetastoreError, match="Does its directory exist"):
        connect(tmp_path / "nowhere" / "s.db")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_something_else_is_refused_and_not_changed(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but a long enough text to be mistaken for one " * 20)
    before = path.read_bytes()
    with pytest.raises(MetastoreError, match="something else"):
        connect(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE mine (x)"],
        ["CREATE TABLE VERSION (VER_ID, SCHEMA_VERSION, VERSION_COMMENT)"],
        [
            "CREATE TABLE VERSION (VER_ID, SCHEMA_VERSION, VERSION_COMMENT)",
            "INSERT INTO VERSION VALUES (1, '3.1.0', 'Hive release version 3.1.0')",
        ],
    ],
)
def test_another_programs_database_is_refused(tmp_path, statements):
    with sqlite3.connect(tmp_path / "s.db") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    with pytest.raises(MetastoreError) as caught:
        connect(tmp_path / "s.db")
    assert caught.value.getCondition() == "NOT_A_METASTORE"


def test_a_newer_store_is_refused(tmp_path):
    connect(tmp_path / "s.db").close()
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("UPDATE VERSION SET SCHEMA_VERSION = 99")
    connection.close()
    with pytest.raises(MetastoreError, match="version 99"):
        connect(tmp_path / "s.db")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "postgresql://h/db", "nonsense", ""]
)
def test_a_url_that_is_no_sqlite_file_is_refused(url):
    with pytest.raises(MetastoreError):
        EmbeddedMetastore(url, warehouse="/wh")


def test_the_file_is_as_safe_as_sqlite_can_make_it(tmp_path):
    store = connect(tmp_path / "s.db")
    with store._store.read() as connection:
        pragma = connection.exec_driver_sql
        assert pragma("PRAGMA journal_mode").scalar() == "wal"
        assert pragma("PRAGMA synchronous").scalar() == 2  # FULL
        assert pragma("PRAGMA foreign_keys").scalar() == 1
    store.close()


def test_the_stores_own_clock_is_that_of_the_world(tmp_path):
    store = connect(tmp_path / "s.db")
    begin(store)
    assert abs(store.show_txns()[0].started_ms - time.time() * 1000) < 5000
    store.close()


def test_a_file_that_another_program_keeps_locked_is_an_error_and_nothing_changes(tmp_path):
    store = connect(tmp_path / "s.db", settings=IMPATIENT)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(MetastoreError, match=r"acidsql\.metastore\.busy\.timeout"):
        begin(store)
    assert store.show_txns() == []  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    assert begin(store) == 1
    store.close()


def test_a_writer_waits_for_another_instead_of_failing(tmp_path):
    store = connect(tmp_path / "s.db")
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    timer.start()
    assert begin(store) == 1
    timer.join()
    other.close()
    store.close()


def test_threads_share_a_store(tmp_path):
    store, numbers = connect(tmp_path / "s.db"), []
    threads = [
        threading.Thread(target=lambda: numbers.extend(begin(store) for _ in range(10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 41))
    store.close()


def test_a_snapshot_reads_only_the_rows_of_open_and_aborted_transactions(tmp_path):
    """However long the history: no question scans or sorts a table's write ids."""
    store, plans = connect(tmp_path / "s.db"), []

    @event.listens_for(store._store.engine, "before_cursor_execute")
    def explain(connection, _cursor, statement, parameters, *_others):
        if statement.startswith("SELECT"):
            raw = connection.connection.driver_connection
            rows = raw.execute("EXPLAIN QUERY PLAN " + statement, parameters)
            plans.append("; ".join(row[3] for row in rows))

    store.valid_write_ids(store.valid_txns(), [T])
    about_write_ids = [plan for plan in plans if "TXN_TO_WRITE_ID" in plan]
    assert len(about_write_ids) == 2
    assert not [plan for plan in about_write_ids if "SCAN" in plan or "ORDER BY" in plan]
    store.close()


def test_a_blocker_that_holds_its_lock_is_named_before_one_that_waits(tmp_path):
    """Ending it helps; ending the one in the queue may not."""
    store = connect(tmp_path / "s.db")
    store.create_table(table())
    holder, waiter, asker = begin(store), begin(store), begin(store)
    store.lock(holder, [exclusive()])
    store.lock(waiter, [exclusive()])
    assert store.lock(asker, [exclusive()]).blocked_by.txn_id == holder
    store.close()


def test_processes_never_lose_or_double_an_id_nor_enter_a_lock_together(tmp_path):
    """Two real processes, begun at one moment, on a store that neither has made yet."""
    rounds, spawn = 30, multiprocessing.get_context("spawn")
    counter = tmp_path / "counter"
    counter.write_text("0")
    with spawn.Pool(2) as pool:
        work = [(str(tmp_path / "s.db"), str(counter), rounds)] * 2
        done = [pair for pairs in pool.starmap(hammer.run, work) for pair in pairs]
    assert counter.read_text() == str(2 * rounds), "two were inside the lock at once"
    assert len({txn for txn, _ in done}) == 2 * rounds
    assert sorted(write_id for _, write_id in done) == list(range(1, 2 * rounds + 1))
    store = connect(tmp_path / "s.db")
    assert store.show_txns() == [] and store.show_locks() == []
    (valid,) = store.valid_write_ids(store.valid_txns(), [T]).values()
    assert str(valid).startswith(f"default.t:{2 * rounds}:") and not valid.exceptions
    store.close()
