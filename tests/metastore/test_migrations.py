"""Making the schema from nothing and from half a schema, and upgrading it."""

import shutil
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
from contract_base import begin
from kinds import KINDS, open_store, store_url
from sqlalchemy import Engine, String, event, select

import acidsql
from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.database import migrations, upgrade
from acidsql.metastore.embedded.database.migrations import run as run_revisions
from acidsql.metastore.embedded.database.migrations import steps
from acidsql.metastore.embedded.database.schema import SCHEMA_VERSION, metadata

T, U, V = TableName("default", "t"), TableName("default", "u"), TableName("sales", "größe")
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
        wanted = steps.adapted_metadata(metadata, connection.dialect)
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
        changed = steps.adapted_metadata(metadata, connection.dialect)
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
@pytest.mark.parametrize("prefix", ["CREATE", "INSERT", "UPDATE"])
def test_a_store_whose_making_died_anywhere_is_made_by_the_next_attempt(tmp_path, kind, prefix):
    """If DDL commits by itself, each attempt adds one table or index, and the next attempt finds
    it."""
    for attempt in range(1, 100):
        # On MySQL existing tables are not created again: the second one is always the new one.
        once = kind in ("sqlite", "postgresql") or prefix != "CREATE"
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
    assert attempt > (1 if prefix == "UPDATE" else 2)  # one UPDATE sets the version
    assert difference(store) == []
    (tmp_path / "fresh").mkdir()
    fresh = open_store(kind, tmp_path / "fresh")
    assert rows(store) == rows(fresh)
    assert store.databases() == fresh.databases()
    assert begin(store) == 1
    store.close()
    fresh.close()


# ── to the next version ──────────────────────────────────────────────────────────────────────

NEXT_REVISION = f"""
from sqlalchemy import text
from acidsql.metastore.embedded.database.migrations.steps import set_version

revision, down_revision = "{SCHEMA_VERSION + 1:04d}", "{SCHEMA_VERSION:04d}"

def upgrade(connection, warehouse):
    connection.execute(text("UPDATE " + connection.dialect.identifier_preparer.quote("DBS")
                            + " SET " + connection.dialect.identifier_preparer.quote("DESC")
                            + " = 'upgraded'"))
    set_version(connection, {SCHEMA_VERSION + 1})
"""


@every_kind
def test_a_revision_that_a_store_lacks_is_run_once(tmp_path, kind, monkeypatch):
    store = open_store(kind, tmp_path)
    txn = begin(store)
    store.create_table(Table(T, "/wh/t", (Column("a", "int"),)))
    store.close()
    scripts = tmp_path / "scripts"
    shutil.copytree(Path(migrations.__file__).parent, scripts)
    (scripts / "versions" / "next.py").write_text(NEXT_REVISION)
    monkeypatch.setattr(run_revisions.resources, "files", lambda _: scripts)
    monkeypatch.setattr(upgrade, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    for attempt in range(2):
        with statements() as executed:
            store = open_store(kind, tmp_path)
        assert any("upgraded" in text for text in executed) == (attempt == 0)
        assert [database.comment for database in store.databases()] == ["upgraded"]
        assert store.find(T).columns == (Column("a", "int"),)
        store.close()
    store = open_store(kind, tmp_path)
    assert begin(store) == txn + 1
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
@pytest.mark.parametrize(
    ("version", "advice"), [(99, "or a newer one"), (1, "LOCATION"), (13, "development build")]
)
def test_a_newer_store_or_one_of_a_development_build_is_refused_and_not_changed(
    tmp_path, kind, version, advice
):
    open_store(kind, tmp_path).close()
    run(kind, tmp_path, f'UPDATE "VERSION" SET "SCHEMA_VERSION" = {version}')
    with statements() as executed, pytest.raises(MetastoreError) as caught:
        open_store(kind, tmp_path)
    assert caught.value.getCondition() == "METASTORE_VERSION_MISMATCH"
    assert f"version {version}," in str(caught.value) and advice in str(caught.value)
    assert not [text for text in executed if text.startswith(("CREATE", "INSERT", "UPDATE"))]


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
