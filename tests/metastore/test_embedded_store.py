"""What only the embedded store can get wrong: files, other programs, other processes, names."""

import multiprocessing
import sqlite3
import threading
import time

import hammer
import pytest
from contract_base import ACID, T, begin, exclusive, table
from kinds import KINDS, open_store, store_url
from sqlalchemy import event, insert, select

from acidsql.acid.table import Column, Partition, TableName
from acidsql.errors import MetastoreError
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.embedded.database.schema import AUX_TABLE, HIVE_LOCKS, MIN_HISTORY_LEVEL
from acidsql.metastore.interface import Commit, Database
from acidsql.settings import Settings

IMPATIENT = Settings.of({"acidsql.metastore.busy.timeout": "1s"})
every_kind = pytest.mark.parametrize("kind", KINDS)


def connect(path, **keywords):
    return EmbeddedMetastore(sqlite_url(path), warehouse="/wh", **keywords)


# ── SQLite files ─────────────────────────────────────────────────────────────────────────────


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


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_url_that_names_no_file_is_refused(url):
    with pytest.raises(MetastoreError, match="names no file"):
        EmbeddedMetastore(url, warehouse="/wh")


def test_the_file_is_as_safe_as_sqlite_can_make_it(tmp_path):
    store = connect(tmp_path / "s.db")
    with store._store.read() as connection:
        pragma = connection.exec_driver_sql
        assert pragma("PRAGMA journal_mode").scalar() == "wal"
        assert pragma("PRAGMA synchronous").scalar() == 2  # FULL
        assert pragma("PRAGMA foreign_keys").scalar() == 1
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


def test_a_snapshot_reads_only_the_rows_of_open_and_aborted_transactions(tmp_path):
    """However long the history is: no query scans or sorts all write ids of a table."""
    store, plans = connect(tmp_path / "s.db"), []

    @event.listens_for(store._store.engine, "before_cursor_execute")
    def explain(connection, _cursor, statement, parameters, *_others):
        if statement.startswith("SELECT"):
            raw = connection.connection.driver_connection
            rows = raw.execute("EXPLAIN QUERY PLAN " + statement, parameters)
            plans.append("; ".join(row[3] for row in rows))

    store.valid_write_ids(store.valid_txns(), [T])
    about_write_ids = [plan for plan in plans if "TXN_TO_WRITE_ID" in plan]
    assert about_write_ids
    assert not [plan for plan in about_write_ids if "SCAN" in plan or "ORDER BY" in plan]
    store.close()


def test_a_blocker_that_holds_its_lock_is_named_before_one_that_waits(tmp_path):
    """To end the holder helps. To end a transaction in the queue may not help."""
    store = connect(tmp_path / "s.db")
    store.create_table(table())
    holder, waiter, asker = begin(store), begin(store), begin(store)
    store.lock(holder, [exclusive()])
    store.lock(waiter, [exclusive()])
    assert store.lock(asker, [exclusive()]).blocked_by.txn_id == holder
    store.close()


# ── every kind of database ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "oracle://u:secret@h/db",
        "postgresql+asyncpg://h/db",
        "mysql+mysqldb://h/db",
        "postgresql//u:secret@h/db",
        "mysql:u:secret@h/db",
        "u:secret@h/db",
        "postgresql//u:secret?x@h/db",
    ],
)
def test_a_database_that_cannot_be_a_metastore_is_refused_by_name(url):
    with pytest.raises(MetastoreError, match=r"it can be sqlite.*postgresql\+psycopg") as caught:
        EmbeddedMetastore(url, warehouse="/wh")
    assert caught.value.getCondition() == "UNSUPPORTED_METASTORE"
    assert "secret" not in str(caught.value)


@every_kind
def test_the_stores_own_clock_is_that_of_the_world(tmp_path, kind):
    store = open_store(kind, tmp_path)
    begin(store)
    assert abs(store.show_txns()[0].started_ms - time.time() * 1000) < 5000
    assert store.abort_timed_out(3_600_000) == []
    store.close()


@every_kind
def test_who_waits_for_too_long_is_told_why_and_nothing_changes(tmp_path, kind):
    store, other = open_store(kind, tmp_path, settings=IMPATIENT), open_store(kind, tmp_path)
    with other._store.write() as connection:
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="x", MT_KEY2=1))
        with pytest.raises(MetastoreError, match=r"acidsql\.metastore\.busy\.timeout"):
            begin(store)
        assert store.show_txns() == []  # readers do not wait
    assert begin(store) == 1
    other.close()
    store.close()


@every_kind
def test_a_reader_sees_one_moment(tmp_path, kind):
    store, other = open_store(kind, tmp_path), open_store(kind, tmp_path)
    with store._store.read() as connection:
        before = connection.execute(select(AUX_TABLE)).all()
        with other._store.write() as writer:
            writer.execute(insert(AUX_TABLE).values(MT_KEY1="x", MT_KEY2=1))
        assert connection.execute(select(AUX_TABLE)).all() == before == []
    with store._store.read() as connection:
        assert len(connection.execute(select(AUX_TABLE)).all()) == 1
    other.close()
    store.close()


@every_kind
def test_a_writer_sees_all_that_the_one_before_it_left(tmp_path, kind):
    """However early its store transaction began to wait."""
    store, other, found = open_store(kind, tmp_path), open_store(kind, tmp_path), []

    def look():
        with other._store.write() as connection:
            found.extend(connection.execute(select(AUX_TABLE.c.MT_KEY1)).scalars())

    with store._store.write() as connection:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="x", MT_KEY2=1))
    thread.join()
    assert found == ["x"]
    other.close()
    store.close()


@every_kind
def test_threads_share_a_store(tmp_path, kind):
    store, numbers = open_store(kind, tmp_path), []
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


def test_threads_that_wait_to_write_leave_connections_for_readers(tmp_path):
    store, numbers = connect(tmp_path / "s.db"), []
    threads = [threading.Thread(target=lambda: numbers.append(begin(store))) for _ in range(40)]
    with store._store.write():
        for thread in threads:
            thread.start()
        threads[-1].join(0.3)
        assert store.show_txns() == []
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 41))
    store.close()


def test_a_thread_that_waits_for_its_siblings_too_long_is_told_why(tmp_path):
    store = connect(tmp_path / "s.db", settings=IMPATIENT)
    with store._store.write(), pytest.raises(MetastoreError, match="Other threads wrote"):
        begin(store)
    assert begin(store) == 1
    store.close()


# ── names and texts ──────────────────────────────────────────────────────────────────────────

NAMES = ["A", "Z", "a", "a ", "ab", "b", "zoë", "zoé", "ß", "ss", "名", "😀"]


@every_kind
def test_names_are_told_apart_and_sorted_by_code_point(tmp_path, kind):
    """No database's collation may matter: 'a' is not 'A', nor 'a ', nor 'á'."""
    store = open_store(kind, tmp_path)
    for name in NAMES:
        store.create_database(Database(name, f"/wh/{name}.db"))
        store.create_table(table(TableName("default", name), f"/wh/t-{name}-"))
    assert [database.name for database in store.databases()] == sorted([*NAMES, "default"])
    assert store.tables("default") == sorted(NAMES)
    txn = begin(store)
    for number, name in enumerate(NAMES):
        assert store.allocate_write_id(txn, TableName("default", name)) == 1, number
        assert store.find(TableName("default", name)).location == f"/wh/t-{name}-"
    store.drop_table(TableName("default", "a"))
    assert store.tables("default") == sorted(set(NAMES) - {"a"})
    store.close()


@every_kind
def test_partitions_and_properties_are_told_apart_by_code_point(tmp_path, kind):
    store = open_store(kind, tmp_path)
    properties = {name: name.upper() for name in NAMES}
    store.create_table(table(partitioned=True, properties=properties))
    added = [Partition((name,), f"/wh/t/p={name}") for name in NAMES]
    store.commit_txn(begin(store), Commit(added_partitions={T: added}))
    assert [values for (values,) in (made.values for made in store.partitions(T))] == sorted(NAMES)
    store.commit_txn(begin(store), Commit(dropped_partitions={T: [("a",)]}))
    assert len(store.partitions(T)) == len(NAMES) - 1
    assert store.find(T).properties == {**ACID, **properties}
    store.close()


@every_kind
def test_long_names_and_texts_come_back_whole(tmp_path, kind):
    """A type, comment or property may be longer than MySQL's TEXT; a partition's name may have 766
    characters."""
    store, long = open_store(kind, tmp_path), "é😀" * 50_000
    name = TableName("default", "t" * 256)
    columns = [Column("c" * 766, f"struct<{long}:int>", comment=long)]
    store.create_table(table(name, "/" + "x" * 3999, partitioned=True, properties={"k": long}))
    store.alter_table(name, add_columns=columns)
    found = store.find(name)
    assert list(found.columns[-1:]) == columns
    assert found.properties == {**ACID, "k": long}
    value = "ü" * 127  # escaped: p=%C3%BC…
    store.commit_txn(begin(store), Commit(added_partitions={name: [Partition((value,), "/x")]}))
    assert store.partitions(name) == [Partition((value,), "/x")]
    store.close()


@every_kind
def test_what_is_too_long_for_a_name_is_an_error_and_never_cut_off(tmp_path, kind):
    store = open_store(kind, tmp_path)
    if kind == "sqlite":  # SQLite has no limits of lengths
        store.create_database(Database("d" * 300, "/wh/d.db"))
        assert store.get_database("d" * 300) is not None
    else:
        with pytest.raises(MetastoreError, match=r"(?i)too long.*Nothing was changed"):
            store.create_database(Database("d" * 300, "/wh/d.db"))
        assert [database.name for database in store.databases()] == ["default"]
    store.close()


# ── many processes ───────────────────────────────────────────────────────────────────────────


@every_kind
def test_processes_never_lose_or_double_an_id_nor_enter_a_lock_together(tmp_path, kind):
    """Two real processes begin at one moment, on a store that does not exist yet."""
    rounds, counter = 30, tmp_path / "counter"
    counter.write_text("0")
    done = in_processes(2, hammer.take_turns, store_url(kind, tmp_path), str(counter), rounds)
    assert counter.read_text() == str(2 * rounds), "two were inside the lock at once"
    assert len({txn for txn, _ in done}) == 2 * rounds
    assert sorted(write_id for _, write_id in done) == list(range(1, 2 * rounds + 1))
    store = open_store(kind, tmp_path)
    assert store.show_txns() == [] and store.show_locks() == []
    (valid,) = store.valid_write_ids(store.valid_txns(), [T]).values()
    assert str(valid).startswith(f"default.t:{2 * rounds}:") and not valid.exceptions
    store.close()


@pytest.mark.slow
@every_kind
def test_under_load_every_transaction_is_accounted_for_and_nobody_sees_an_error(tmp_path, kind):
    processes, rounds = (8, 200) if kind in ("sqlite", "postgresql") else (4, 50)
    done = in_processes(processes, hammer.rush, store_url(kind, tmp_path), rounds)
    numbers = list(range(1, processes * rounds + 1))
    assert sorted(txn for txn, _, _ in done) == numbers
    assert sorted(write_id for _, write_id, _ in done) == numbers
    store = open_store(kind, tmp_path)
    (valid,) = store.valid_write_ids(store.valid_txns(), [T]).values()
    assert [write_id for _, write_id, _ in done if not valid.is_valid(write_id)] == [
        write_id for _, write_id, commits in done if not commits
    ]
    assert valid.high_water_mark == len(numbers)
    assert [txn.txn_id for txn in store.show_txns()] == sorted(
        txn for txn, _, commits in done if not commits
    )
    assert {txn.state.value for txn in store.show_txns()} == {"a"}
    with store._store.read() as connection:
        for empty in (HIVE_LOCKS, MIN_HISTORY_LEVEL):
            assert connection.execute(select(empty)).all() == []
    store.close()


@every_kind
def test_of_two_workers_never_both_get_one_compaction(tmp_path, kind):
    """When a compaction has ended, the process that comes later may queue it again."""
    tables = 20
    done = in_processes(2, hammer.compact, store_url(kind, tmp_path), tables)
    assert len(done) == len(set(done)) >= tables
    store = open_store(kind, tmp_path)
    assert sorted(one.id for one in store.compactions()) == sorted(done)
    store.close()


def in_processes(count, work, *args):
    """The results of several processes that do the same at the same time, one after the other."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["acidsql.metastore.embedded", "acidsql.txn"])
    with context.Pool(count) as pool:
        done = pool.starmap(work, [args] * count, chunksize=1)
    return [result for results in done for result in results]
