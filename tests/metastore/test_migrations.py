"""Making and upgrading the schema: from nothing, from half a schema, from versions 1 and 3."""

import sqlite3
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import servers
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from compaction_steps import queue, take
from contract_base import begin, seen
from kinds import KINDS, open_store, store_url
from sqlalchemy import Engine, String, column, event, insert, inspect, select, update
from sqlalchemy import table as sql_table

import acidsql
from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.errors import MetastoreError
from acidsql.metastore.compaction_queue import Compacted, CompactionState
from acidsql.metastore.embedded import EmbeddedMetastore, migrations, sqlite_url
from acidsql.metastore.embedded.migrations import run as run_revisions
from acidsql.metastore.embedded.migrations import steps
from acidsql.metastore.embedded.schema import (
    MIN_HISTORY_LEVEL,
    NEXT_COMPACTION_QUEUE_ID,
    SCHEMA_VERSION,
    metadata,
)
from acidsql.metastore.interface import Database
from acidsql.metastore.owners import PendingCleanup
from acidsql.metastore.versions import Change

T, U, V = TableName("default", "t"), TableName("default", "u"), TableName("sales", "größe")
V1 = Path(__file__).with_name("store_v1.sql")
every_kind = pytest.mark.parametrize("kind", KINDS)


class Crash(BaseException):
    """It is no Exception, so no code swallows it by accident."""


@contextmanager
def statements():
    """All statements that any engine executes inside the block."""
    seen = []

    def note(_connection, _cursor, statement, *_others):
        seen.append(" ".join(statement.split()))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def difference(store):
    """What Alembic would change to get from the database to ``schema.metadata``."""
    with store._store.read() as connection:
        wanted = steps.dressed(metadata, connection.dialect)
        found = compare_metadata(MigrationContext.configure(connection), wanted)
        if connection.dialect.name in steps.MYSQLS:
            found = [change for change in found if not is_overlooked(change)]
        return found


def is_overlooked(change):
    """SQLAlchemy reads no line of SHOW CREATE TABLE that contains PARTITION; a test below checks
    these."""
    return change[0] in ("add_fk", "add_index") and "PARTITION" in repr(change)


def rows(store):
    with store._store.read() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(found)).all()))
            for name, found in metadata.tables.items()
            if name != "DBS"  # a number that was given out in vain is not used again
        }


# ── from nothing ─────────────────────────────────────────────────────────────────────────────


@every_kind
def test_what_the_revisions_make_is_the_schema(tmp_path, kind):
    store = open_store(kind, tmp_path)
    assert difference(store) == []
    store.close()


def test_the_last_revision_is_the_schemas_version():
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert scripts.get_current_head() == f"{SCHEMA_VERSION:04d}"


@every_kind
def test_a_difference_would_be_found(tmp_path, kind, monkeypatch):
    """The comparison works: it notices a different type, index, column or table."""
    store = open_store(kind, tmp_path)
    with store._store.read() as connection:
        changed = steps.dressed(metadata, connection.dialect)
        if changed is metadata:
            changed = type(metadata)()
            for found in metadata.sorted_tables:
                found.to_metadata(changed)
        changed.tables["TXNS"].c.TXN_USER.type = String(129)
        changed.tables["TXNS"].indexes.clear()
        changed.remove(changed.tables["AUX_TABLE"])
        found = compare_metadata(MigrationContext.configure(connection), changed)
    flat = [change[0] if isinstance(change, list) else change for change in found]
    assert {change[0] for change in flat} >= {"modify_type", "remove_index", "remove_table"}
    store.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in steps.MYSQLS])
def test_what_sqlalchemy_overlooks_on_mysql_is_there(tmp_path, kind):
    open_store(kind, tmp_path).close()
    sql = servers.server(kind).sql
    assert sql(
        "SELECT TABLE_NAME, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS "
        "WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'PARTITION%%' ORDER BY 1",
        tmp_path,
    ) == [(name, "CASCADE") for name in ("PARTITIONS", "PARTITION_KEYS", "PARTITION_KEY_VALS")]
    assert sql(
        "SELECT COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE "
        "TABLE_SCHEMA = DATABASE() AND INDEX_NAME = 'COMPLETED_TXN_COMPONENTS_IDX' "
        "ORDER BY SEQ_IN_INDEX",
        tmp_path,
    ) == [("CTC_DATABASE", None), ("CTC_TABLE", None), ("CTC_PARTITION", 255)]


@every_kind
def test_an_opened_store_is_asked_one_question_and_alembic_stays_away(tmp_path, kind):
    open_store(kind, tmp_path).close()
    with statements() as executed:
        open_store(kind, tmp_path).close()
    assert [text for text in executed if "VERSION" in text] == executed[-1:]
    assert not [text for text in executed[:-1] if not text.startswith(("BEGIN", "S"))]  # SET, START
    program = (
        "import sys; from acidsql.metastore.embedded import EmbeddedMetastore;"
        f"EmbeddedMetastore({store_url(kind, tmp_path)!r}, warehouse='/wh').close();"
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@every_kind
def test_of_several_that_open_a_new_store_at_once_one_makes_it(tmp_path, kind):
    """Alembic works with global variables, so only one thread uses it at a time."""
    (tmp_path / "other").mkdir()
    paths, opened = [tmp_path, tmp_path / "other"] * 3, []
    for path in paths:
        store_url(kind, path)  # to make the database itself is not tested here
    threads = [
        threading.Thread(target=lambda path=path: opened.append(open_store(kind, path)))
        for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == len(paths)
    assert [difference(store) for store in opened] == [[]] * len(paths)
    assert sorted(begin(store) for store in opened) == [1, 1, 2, 2, 3, 3]
    for store in opened:
        store.close()


def test_a_store_can_be_made_by_code_in_a_zip(tmp_path):
    """As with ``spark-submit --py-files``."""
    root = Path(acidsql.__file__).parent
    with zipfile.ZipFile(tmp_path / "acidsql.zip", "w") as archive:
        for path in root.rglob("*.py"):
            archive.write(path, path.relative_to(root.parent))
    program = (
        f"import sys; sys.path[:] = [{str(tmp_path / 'acidsql.zip')!r}, *sys.path];"
        "from acidsql.metastore import embedded; assert 'acidsql.zip' in embedded.__file__;"
        f"embedded.EmbeddedMetastore({store_url('sqlite', tmp_path)!r}, warehouse='/wh').close()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    store = open_store("sqlite", tmp_path)
    assert difference(store) == []
    store.close()


def crash_at(number, prefix):
    """A listener that lets the process die just before the number-th statement of a kind."""
    count = 0

    def strike(_connection, _cursor, statement, *_others):
        nonlocal count
        count += statement.lstrip().startswith(prefix)
        if count == number:
            raise Crash(statement)

    return strike


@every_kind
@pytest.mark.parametrize("prefix", ["CREATE", "ALTER", "INSERT", "UPDATE"])
def test_a_store_whose_making_died_anywhere_is_made_by_the_next_attempt(tmp_path, kind, prefix):
    """If DDL commits by itself, each attempt adds one table or index, and the next attempt finds
    it."""
    for attempt in range(1, 100):
        # On MySQL existing tables are not created again: the second one is always the new one.
        once = kind in ("sqlite", "postgresql") or prefix not in ("CREATE", "ALTER")
        number = attempt if once else 2
        strike = crash_at(number, prefix)
        event.listen(Engine, "before_cursor_execute", strike)
        try:
            store = open_store(kind, tmp_path)
        except Crash:
            continue
        finally:
            event.remove(Engine, "before_cursor_execute", strike)
        break
    assert attempt > 2
    assert difference(store) == []
    (tmp_path / "fresh").mkdir()
    fresh = open_store(kind, tmp_path / "fresh")
    assert rows(store) == rows(fresh)
    assert store.databases() == fresh.databases()
    assert begin(store) == 1
    store.close()
    fresh.close()


# ── from version 1 ───────────────────────────────────────────────────────────────────────────


@pytest.fixture
def old_store(tmp_path):
    """A file that acidsql made before it used Alembic; the dump says what is in it."""
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.executescript(V1.read_text())
    connection.close()
    store = EmbeddedMetastore(sqlite_url(tmp_path / "s.db"), warehouse="/elsewhere", clock=int)
    yield store
    store.close()


def test_a_store_of_version_1_gets_the_present_schema(old_store):
    assert difference(old_store) == []
    with old_store._store.read() as connection:
        assert connection.exec_driver_sql('SELECT "SCHEMA_VERSION" FROM "VERSION"').all() == [
            (SCHEMA_VERSION,)
        ]


def test_a_store_of_version_1_keeps_its_tables(old_store):
    assert old_store.databases() == [
        Database("default", "/wh"),
        Database("sales", "/wh/sales.db", "of the sales people"),
    ]
    assert old_store.find(T) == Table(
        T,
        "/wh/t",
        (Column("a", "int"), Column("b", "string", comment="the b")),
        (Column("p", "int"),),
        ("a",),
        4,
        {"transactional": "true"},
    )
    assert old_store.find(V).comment == "it's"
    assert old_store.partitions(T) == [
        Partition((None,), "/wh/t/p=__HIVE_DEFAULT_PARTITION__"),
        Partition(("1",), "/wh/t/p=1"),
    ]
    assert old_store.pending_cleanups() == [PendingCleanup(1, U, "/wh/u")]


def test_a_store_of_version_1_keeps_its_transactions_and_they_go_on(old_store):
    """1 committed, 2 was aborted, 3 holds a lock that 4 waits for."""
    assert str(old_store.valid_txns()) == "4:3:3,4:2"
    assert [str(seen(old_store, name)) for name in (T, V)] == [
        "default.t:2:9223372036854775807::2",
        "sales.größe:1:1:1:",
    ]
    assert [(lock.txn_id, lock.state.value) for lock in old_store.show_locks()] == [
        (3, "a"),
        (4, "w"),
    ]
    old_store.commit_txn(3)
    assert old_store.check_lock(4, 4).state.value == "a"
    old_store.commit_txn(4)
    assert begin(old_store) == 5
    assert old_store.allocate_write_id(5, T) == 3


def test_the_history_of_an_old_store_s_tables_begins_with_the_upgrade(old_store):
    """Nobody noted which files were deleted before."""
    assert [old_store.oldest_version(name) for name in (T, V)] == [2, 1]
    assert [*old_store.versions(T), *old_store.versions(V)] == []
    old_store.commit_txn(3, changed=[Change(V, "INSERT", "…")])
    assert [one.write_id for one in old_store.versions(V)] == [1]


def test_what_the_open_transactions_of_version_1_see_is_not_forgotten(old_store):
    """It is unknown what was open when these transactions began. So nothing is forgotten until they
    end."""
    with old_store._store.read() as connection:
        assert connection.execute(select(MIN_HISTORY_LEVEL)).all() == [(3, 1), (4, 1)]
    snapshot = old_store.valid_txns()
    before = old_store.valid_write_ids(snapshot, [T, V])
    old_store.commit_txn(3)
    assert old_store.house_keep(10**9, 0, 0)
    assert old_store.valid_write_ids(snapshot, [T, V]) == before


def test_an_upgrade_that_dies_leaves_a_store_of_version_1(tmp_path):
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(V1.read_text())
    connection.close()
    before = dump(path)
    for number in range(1, 1000):
        strike = crash_at(number, "")
        event.listen(Engine, "before_cursor_execute", strike)
        try:
            EmbeddedMetastore(sqlite_url(path), warehouse="/wh").close()
        except Crash:
            assert dump(path) == before
        else:
            break
        finally:
            event.remove(Engine, "before_cursor_execute", strike)
    assert number > 10
    assert dump(path) != before


def dump(path):
    connection = sqlite3.connect(path)
    found = list(connection.iterdump())
    connection.close()
    return found


# ── from version 3 ───────────────────────────────────────────────────────────────────────────

GONE = [
    ("/wh/größe: 1:2", "1:8:location14:/wh/größe: 1:2"),
    ("/wh/🐘", "1:8:location5:/wh/🐘"),  # counted in characters; Java counts an elephant as two
    ("/wh/a🐘b:c/🐘", "1:8:location11:/wh/a🐘b:c/🐘"),
]
OLD_COLUMNS = (
    "ID",
    "DATABASE",
    "TABLE",
    "PARTITION",
    "STATE",
    "TYPE",
    "TBLPROPERTIES",
    "ENQUEUE_TIME",
)


@pytest.fixture
def version_3(tmp_path, monkeypatch):
    """Makes a store of version 3 of this kind, with directories of dropped tables."""

    def make(kind):
        up = run_revisions.command.upgrade
        with monkeypatch.context() as patch:
            patch.setattr(run_revisions.command, "upgrade", lambda config, _: up(config, "0003"))
            store = open_store(kind, tmp_path)
        old = sql_table("COMPACTION_QUEUE", *(column(f"CQ_{name}") for name in OLD_COLUMNS))
        with store._store.write() as connection:
            for number, (_, properties) in enumerate(GONE, 1):
                values = (number, "default", f"t{number}", None, "r", "a", properties, 1000)
                connection.execute(insert(old).values(values))
            connection.execute(update(NEXT_COMPACTION_QUEUE_ID).values(NCQ_NEXT=len(GONE) + 1))
        assert columns(store, "COMPACTION_QUEUE") == {f"CQ_{name}" for name in OLD_COLUMNS}
        store.close()
        return store

    return make


def columns(store, name):
    with store._store.read() as connection:
        return {found["name"] for found in inspect(connection).get_columns(name)}


def pending():
    return [
        PendingCleanup(number, TableName("default", f"t{number}"), location)
        for number, (location, _) in enumerate(GONE, 1)
    ]


@every_kind
def test_a_store_of_version_3_gets_the_present_schema_and_its_queue_goes_on(
    tmp_path, kind, version_3
):
    version_3(kind)
    store = open_store(kind, tmp_path)
    assert difference(store) == []
    assert store.pending_cleanups() == pending()
    shown = store.compactions()
    assert [one.properties for one in shown] == [{"location": location} for location, _ in GONE]
    assert {(one.state, one.enqueued_ms, one.retry_retention_ms) for one in shown} == {
        (CompactionState.READY_FOR_CLEANING, 1000, 0)
    }
    assert store.ready_to_clean(0) == []
    number = queue(store, T)
    assert number == len(GONE) + 1
    txn, _ = take(store)
    store.commit_txn(txn, compacted=Compacted(number, 1, ""))
    assert [one.id for one in store.ready_to_clean(0)] == [number]
    store.mark_compaction_cleaned(number)
    for gone in pending():
        store.mark_cleaned(gone.id)
    assert [one.id for one in store.compactions()] == [number]
    store.close()


@every_kind
def test_an_upgrade_from_version_3_that_died_anywhere_is_done_by_the_next_attempt(
    tmp_path, kind, version_3
):
    version_3(kind)
    for attempt in range(1, 100):
        # On MySQL each attempt adds one more column, and repeats the statements after the columns.
        number = attempt if kind in ("sqlite", "postgresql") else 2 + max(0, attempt - 14)
        strike = crash_at(number, ("ALTER", "CREATE", "UPDATE", "INSERT"))
        event.listen(Engine, "before_cursor_execute", strike)
        try:
            store = open_store(kind, tmp_path)
        except Crash:
            continue
        finally:
            event.remove(Engine, "before_cursor_execute", strike)
        break
    assert attempt > 15
    assert difference(store) == []
    assert store.pending_cleanups() == pending()
    store.close()


# ── from version 12 ──────────────────────────────────────────────────────────────────────────

NOTED = {  # statements as they were noted, and the transactions that they reverted
    "REVERT TRANSACTION 7": 7,
    "/* back */ revert -- it\n transaction 12 SKIP CONFLICTS": 12,
    f"/* {'x' * 997} */ REVERT TRANSACTION 3": None,  # another digit may have followed
    "/* long": None,
}


@every_kind
def test_a_store_of_version_12_keeps_which_transactions_were_reverted(tmp_path, kind, monkeypatch):
    up = run_revisions.command.upgrade
    with monkeypatch.context() as patch:
        patch.setattr(run_revisions.command, "upgrade", lambda config, _: up(config, "0012"))
        store = open_store(kind, tmp_path)
    noted = ("ID", "TXNID", "OPERATION", "STATEMENT")
    numbers = ("WRITEID", "COMMITTED_AT", "INSERTED", "UPDATED", "DELETED", "FILES", "BYTES")
    names = (*noted, *numbers, "PARTITIONS", "USER", "HOST")
    old = sql_table("TABLE_VERSIONS", *(column(f"TV_{name}") for name in names), column("TBL_ID"))
    columns = ("TBL_ID", "DB_ID", "TBL_NAME", "TBL_TYPE", "LOCATION", "NUM_BUCKETS")
    of_tables = sql_table("TBLS", *map(column, (*columns, "FIRST_WRITE_ID")))
    with store._store.write() as connection:
        connection.execute(insert(of_tables).values((1, 1, T.name, "MANAGED_TABLE", "/wh/t", 0, 1)))
        for number, statement in enumerate(NOTED, 1):
            values = (number, 20, "REVERT TRANSACTION", statement, *[0] * 8, "ann", "h1", 1)
            connection.execute(insert(old).values(values))
    store.close()
    store = open_store(kind, tmp_path)
    assert difference(store) == []
    assert {one.change.statement: one.change.reverted for one in store.versions(T)} == NOTED
    assert store.first_version(T) is None  # nobody has noted it
    store.close()


# ── what is not ours, or not yet ─────────────────────────────────────────────────────────────


def condition_of_opening(kind, path):
    with pytest.raises(MetastoreError) as caught:
        open_store(kind, path)
    return caught.value.getCondition()


def run(kind, path, statement):
    """Run a statement of another program in the database."""
    if kind == "sqlite":
        connection = sqlite3.connect(path / "store.db")
        connection.execute(statement)
        connection.commit()
        connection.close()
    else:
        if kind != "postgresql":
            statement = statement.replace('"', "`")
        servers.server(kind).sql(statement, path)


@every_kind
def test_a_newer_store_is_refused_and_not_changed(tmp_path, kind):
    open_store(kind, tmp_path).close()
    run(kind, tmp_path, 'UPDATE "VERSION" SET "SCHEMA_VERSION" = 99')
    with pytest.raises(MetastoreError, match="version 99"):
        open_store(kind, tmp_path)
    assert condition_of_opening(kind, tmp_path) == "METASTORE_VERSION_MISMATCH"


OURS = '"VER_ID" INT, "SCHEMA_VERSION" VARCHAR(127), "VERSION_COMMENT" VARCHAR(255)'


@every_kind
@pytest.mark.parametrize(
    "others",
    [
        ["CREATE TABLE mine (x INT)"],
        ["CREATE TABLE alembic_version (x INT)", "INSERT INTO alembic_version VALUES (1)"],
        ['CREATE TABLE "VERSION" (x INT)', 'INSERT INTO "VERSION" VALUES (1)'],
        [f'CREATE TABLE "VERSION" ({OURS})', "CREATE TABLE mine (x INT)"],
        [
            f'CREATE TABLE "VERSION" ({OURS})',
            "INSERT INTO \"VERSION\" VALUES (1, '3.1.0', 'Hive release version 3.1.0')",
        ],
    ],
    ids=["tables", "alembic", "version", "version and tables", "hive"],
)
def test_another_programs_database_is_refused(tmp_path, kind, others):
    for statement in others:
        run(kind, tmp_path, statement)
    assert condition_of_opening(kind, tmp_path) == "NOT_A_METASTORE"
