"""What only a store on a server can get wrong: connections that break, hang, or are refused."""

import os
import re
import signal
import subprocess
import sys

import pytest
import servers
from contract_base import begin
from kinds import KINDS, open_store, store_url
from sqlalchemy import insert, select, text

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.embedded.database.schema import AUX_TABLE

every_server = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sqlite"])
MYSQLS = [kind for kind in KINDS if kind in ("mariadb", "mysql")]

HANG = """
import os, sys
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.settings import Settings
store = EmbeddedMetastore(
    sys.argv[1], warehouse="/wh", settings=Settings.of({"acidsql.metastore.busy.timeout": "2s"})
)
with store._store.write():
    print("inside", flush=True)
    sys.stdin.read()
"""


def disconnect_all(kind, path):
    """Break all connections, as a restart of the server or a firewall does."""
    sql = servers.server(kind).sql
    if kind == "postgresql":
        ours = "datname = current_database() AND pid <> pg_backend_pid()"
        sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}", path)
        return
    name = sql("SELECT DATABASE()", path)[0][0]
    for number, _user, _host, database, *_rest in sql("SHOW PROCESSLIST"):
        if database == name:
            sql(f"KILL {number}")


# ── connections that break ───────────────────────────────────────────────────────────────────


@every_server
def test_connections_that_broke_while_nobody_used_them_are_replaced(tmp_path, kind):
    store = open_store(kind, tmp_path)
    begin(store)
    disconnect_all(kind, tmp_path)
    assert begin(store) == 2
    store.close()


@every_server
def test_a_connection_that_breaks_in_the_middle_changed_nothing(tmp_path, kind):
    store = open_store(kind, tmp_path)
    with (
        pytest.raises(MetastoreError, match=r"Nothing was changed\."),
        store._store.write() as connection,
    ):
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="x", MT_KEY2=1))
        disconnect_all(kind, tmp_path)
        connection.execute(select(AUX_TABLE))
    with store._store.read() as connection:
        assert connection.execute(select(AUX_TABLE)).all() == []
    store.close()


@every_server
def test_a_connection_that_breaks_at_commit_is_an_unknown_outcome_and_said_to_be(tmp_path, kind):
    store = open_store(kind, tmp_path)
    with (
        pytest.raises(MetastoreError, match=r"did not answer to COMMIT.*It may have"),
        store._store.write() as connection,
    ):
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="x", MT_KEY2=1))
        disconnect_all(kind, tmp_path)
    assert begin(store) == 1
    store.close()


@every_server
def test_a_client_that_hangs_in_the_middle_is_thrown_out_and_the_others_go_on(tmp_path, kind):
    store = open_store(kind, tmp_path)
    hung = subprocess.Popen(
        [sys.executable, "-c", HANG, store_url(kind, tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert hung.stdout.readline() == b"inside\n"
        os.kill(hung.pid, signal.SIGSTOP)
        assert begin(store) == 1
        os.kill(hung.pid, signal.SIGCONT)
        _, said = hung.communicate(timeout=60)
        assert b"MetastoreError" in said
    finally:
        hung.kill()
        hung.wait()
    store.close()


# ── what a connection is given ───────────────────────────────────────────────────────────────


@pytest.mark.skipif("postgresql" not in KINDS, reason="no PostgreSQL")
def test_a_session_on_postgresql_is_durable_and_bounded(tmp_path):
    servers.server("postgresql").url(tmp_path)
    (name,) = servers.server("postgresql").sql("SELECT current_database()", tmp_path)[0]
    alter = f"ALTER DATABASE {name} SET "
    servers.server("postgresql").sql(alter + "synchronous_commit = off")
    servers.server("postgresql").sql(alter + "default_transaction_isolation = 'serializable'")
    store = open_store("postgresql", tmp_path)
    shown = {
        "synchronous_commit": "on",
        "lock_timeout": "1min",
        "idle_in_transaction_session_timeout": "30s",
        "application_name": "acidsql",
    }
    with store._store.write() as connection:
        for name, value in {**shown, "transaction_isolation": "read committed"}.items():
            assert connection.execute(text(f"SHOW {name}")).scalar_one() == value
    with store._store.read() as connection:
        assert connection.execute(text("SHOW transaction_isolation")).scalar() == "repeatable read"
        assert connection.execute(text("SHOW transaction_read_only")).scalar() == "on"
    store.close()


@pytest.mark.parametrize("kind", MYSQLS)
def test_a_session_on_mysql_is_strict_and_bounded(tmp_path, kind):
    store = open_store(kind, tmp_path)
    idle = "idle_transaction_timeout" if kind == "mariadb" else "wait_timeout"
    with store._store.write() as connection:
        names = ("innodb_lock_wait_timeout", "lock_wait_timeout", idle, "time_zone")
        found = [connection.execute(text(f"SELECT @@SESSION.{name}")).scalar() for name in names]
        assert found == [60, 60, 30, "+00:00"]
        assert "STRICT_ALL_TABLES" in connection.execute(text("SELECT @@sql_mode")).scalar()
    store.close()


@pytest.mark.parametrize("kind", MYSQLS)
def test_tables_on_mysql_are_innodb_and_compare_byte_by_byte(tmp_path, kind):
    """Whatever the database's defaults are, and whether the URL says mysql or mariadb."""
    url = store_url(kind, tmp_path).replace("mariadb+", "mysql+")
    EmbeddedMetastore(url, warehouse="/wh").close()
    found = servers.server(kind).sql(
        "SELECT DISTINCT ENGINE, TABLE_COLLATION FROM information_schema.TABLES "
        "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME <> 'alembic_version'",
        tmp_path,
    )
    binary = "utf8mb4_nopad_bin" if kind == "mariadb" else "utf8mb4_0900_bin"
    assert found == [("InnoDB", binary)]


@every_server
def test_a_store_without_its_lock_row_is_never_written_to(tmp_path, kind):
    store = open_store(kind, tmp_path)
    quoted = '"TXN_LOCK_TBL"' if kind == "postgresql" else "TXN_LOCK_TBL"
    servers.server(kind).sql(f"DELETE FROM {quoted}", tmp_path)
    with pytest.raises(MetastoreError, match="gave no lock"):
        begin(store)
    assert store.show_txns() == []
    store.close()


# ── URLs ─────────────────────────────────────────────────────────────────────────────────────


@every_server
def test_the_driver_need_not_be_named(tmp_path, kind):
    url = store_url(kind, tmp_path).replace("+psycopg", "").replace("+pymysql", "")
    store = EmbeddedMetastore(url, warehouse="/wh")
    assert begin(store) == 1
    store.close()


NOBODY_THERE = [
    "postgresql+psycopg://ann:s3cret@localhost:1/db?sslpassword=s3cret",
    "postgresql+psycopg://ann@localhost:1/db?password=s3cret",
    "mysql+pymysql://ann:s3cret@localhost:1/db",
    "mysql+pymysql://ann:s3cret@localhost:1/db?nonsense=s3cret",
    "mariadb+pymysql://ann:s3cret@localhost:port/db",
    "postgresql://ann:s3cr@et@[broken/db",
]


@pytest.mark.parametrize("url", NOBODY_THERE)
def test_a_server_that_cannot_be_reached_is_named_without_its_password(url):
    with pytest.raises(MetastoreError, match=r"://(ann:)?(\*\*\*|ann)@") as caught:
        EmbeddedMetastore(url, warehouse="/wh")
    assert "s3cr" not in str(caught.value)
    assert "s3cr" not in str(caught.value.getMessageParameters())


@every_server
def test_an_opened_store_does_not_show_its_password(tmp_path, kind):
    url, sql = store_url(kind, tmp_path), servers.server(kind).sql
    if kind == "postgresql":
        sql("CREATE ROLE ann SUPERUSER LOGIN PASSWORD 's3cret'")
    else:
        sql("CREATE USER ann@localhost IDENTIFIED BY 's3cret'")
        sql("GRANT ALL ON *.* TO ann@localhost")
    store = EmbeddedMetastore(re.sub(r"//\w+@", "//ann:s3cret@", url), warehouse="/wh")
    assert begin(store) == 1
    assert "s3cret" not in store.url and "//ann:***@" in store.url
    store.close()


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [
        ("postgresql+psycopg://h/db", "psycopg", "postgresql"),
        ("mariadb+pymysql://h/db", "pymysql", "mysql"),
    ],
)
def test_a_missing_driver_is_named_with_what_to_install(monkeypatch, url, driver, extra):
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(MetastoreError, match=rf"pip install 'acidsql\[{extra}\]'") as caught:
        EmbeddedMetastore(url, warehouse="/wh")
    assert caught.value.getCondition() == "DRIVER_NOT_INSTALLED"


@pytest.mark.skipif("postgresql" not in KINDS, reason="no PostgreSQL")
def test_what_the_url_says_comes_before_our_defaults(tmp_path):
    url = store_url("postgresql", tmp_path) + "&application_name=mine&connect_timeout=3"
    store = EmbeddedMetastore(url, warehouse="/wh")
    with store._store.read() as connection:
        assert connection.execute(text("SHOW application_name")).scalar() == "mine"
    store.close()
