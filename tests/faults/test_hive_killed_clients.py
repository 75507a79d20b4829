"""Clients of a Hive Metastore that are killed at any one call of a statement.

The client is a fork of the test's process: it has the session, the connection to Spark's JVM and
the files, and dies of SIGKILL, so that no line of Python runs afterwards. The parent waits, and so
does not use the JVM. Then the server's reaper aborts what the client left open.

With ``ACIDSQL_HIVE_KILLS=all`` the client dies before and after each call of each statement, which
takes minutes; else at some calls of an UPDATE.
"""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import hive_metastore as servers

import acidsql
from acidsql.metastore.hive.client import Client

ALL = os.environ.get("ACIDSQL_HIVE_KILLS") == "all"
OLD = [(1, 1), (2, 2)]
STATEMENTS = {
    "INSERT INTO {} VALUES (3, 1)": [(1, 1), (2, 2), (3, 1)],
    "UPDATE {} SET a = a + 10 WHERE p = 2": [(1, 1), (12, 2)],
    "MERGE INTO {} t USING (VALUES (1, 1), (9, 3)) s(a, p) ON t.a = s.a "
    "WHEN MATCHED THEN UPDATE SET a = 11 WHEN NOT MATCHED THEN INSERT *": [
        (2, 2), (9, 3), (11, 1),
    ],
}  # fmt: skip
SAMPLE = {
    "open_txns": "after", "lock": "both", "add_dynamic_partitions": "both", "commit_txn": "both",
}  # fmt: skip
QUICK = {
    "metastore.txn.timeout": "3s",
    "metastore.timedout.txn.reaper.interval": "1s",
    "metastore.timedout.txn.reaper.start": "1s",
}
PATIENCE_S = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that soon aborts the transactions of a client that is gone."""
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    started = servers.HiveMetastoreServer(tmp_path_factory.mktemp("hms"), settings=QUICK)
    yield started
    started.close()


class Death:
    """Kills the process before or after a call, which is told by its number among calls that do not
    depend on the time."""

    def __init__(self, at, when):
        self.calls, self.at, self.when = 0, at, when

    def __call__(self, real, client, name, *values, **options):
        self.calls += name != "heartbeat"
        is_now = self.calls == self.at and name != "heartbeat"
        if is_now and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(client, name, *values, **options)
        if is_now:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def killed(acid, statement, at, when):
    """Run a statement in a client that dies. Returns whether the client has died."""
    child = os.fork()
    if child == 0:
        death, real = Death(at, when), Client.call
        Client.call = lambda self, *args, **options: death(real, self, *args, **options)
        try:
            acid.sql(statement)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def calls_of(monkeypatch, acid, statement, kind):
    """The calls of a statement that lives, as the first of its kind on a table."""
    made, real = [], Client.call

    def call(self, name, *values, **options):
        made.append(name)
        return real(self, name, *values, **options)

    for number in range(2):  # the first time Spark is asked more
        name = make(acid, f"{kind}_alive_{number}")
        made.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Client, "call", call)
            acid.sql(statement.format(name))
        acid.sql(f"DROP TABLE {name}")
    return [name for name in made if name != "heartbeat"]


def deaths(calls):
    """When the client dies: the number of a call, and before or after it."""
    for number, name in enumerate(calls, 1):
        for when in ("before", "after"):
            if ALL or SAMPLE.get(name) in (when, "both"):
                yield number, when


def make(acid, name):
    acid.sql(f"CREATE TABLE {name} (a INT) PARTITIONED BY (p INT)")
    acid.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    return name


def rows(acid, name):
    return sorted(map(tuple, acid.sql(f"SELECT * FROM {name}").collect()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [text for text in STATEMENTS if ALL or text.startswith("UPDATE")],
    ids=lambda text: text.split()[0],
)
def test_what_a_killed_client_did_is_there_as_a_whole_or_not_at_all(
    spark, server, monkeypatch, statement
):
    kind = statement.split()[0].lower()
    with acidsql.connect(spark, metastore=server.url) as acid:
        calls = calls_of(monkeypatch, acid, statement, kind)
        commit, tables = calls.index("commit_txn") + 1, {}
        for at, when in deaths(calls):
            name = make(acid, f"{kind}_{at}_{when}")
            assert killed(acid, statement.format(name), at, when)
            is_committed = at > commit or (at, when) == (commit, "after")
            tables[name] = STATEMENTS[statement] if is_committed else OLD
        for look in (check_rows, wait_for_the_reaper, check_rows, compact, check_rows):
            look(acid, server, tables)
        check_records(server, tables)
        check_litter(acid, server, tables)
        for name in tables:
            acid.sql(f"DROP TABLE {name}")


def check_rows(acid, server, tables):
    assert {name: rows(acid, name) for name in tables} == tables


def wait_for_the_reaper(acid, server, tables):
    """Until only the reader's lease is open. So transactions do not pile up if clients
    die while they open them (T19)."""
    lease = acid._runner._txns.hold_lease()
    deadline = time.monotonic() + PATIENCE_S
    while opened := server.query(
        f"SELECT TXN_ID FROM TXNS WHERE TXN_STATE = 'o' AND TXN_ID <> {lease}"
    ):
        assert time.monotonic() < deadline, opened
        time.sleep(0.2)
    assert server.query("SELECT HL_LOCK_EXT_ID FROM HIVE_LOCKS") == []


def compact(acid, server, tables):
    if acid.metastore.abilities.can_work:
        for name in tables:
            acid.compact(name, wait=True)


def check_litter(acid, server, tables):
    """The compactor's service deletes what the clients had not published yet, and nothing else."""
    before = {path for name in tables for path in (server.warehouse / name).rglob("*")}
    left = {path for path in before if path.name.startswith("_tmp_")}
    told: list[str] = []
    acid.run_compactor(once=True, tell=told.append)
    removed = {line.split()[1].removeprefix("file:") for line in told if "(litter" in line}
    assert left and removed == set(map(str, left))
    assert acid.clean().count() == 0
    assert {path for path in before if path.exists()} == {
        path for path in before if left.isdisjoint([path, *path.parents])
    }
    check_rows(acid, server, tables)


def check_records(server, tables):
    """Each write id that has a directory is recorded as aborted or as committed, in each partition
    with such a directory, or (aborted) in some partition: else a cleaner never finds the rows, or
    the server forgets that the transaction was aborted, and they count as committed."""
    known = {
        tuple(row)
        for columns, table in (("TC", "TXN_COMPONENTS"), ("CTC", "COMPLETED_TXN_COMPONENTS"))
        for row in server.query(
            f"SELECT {columns}_TABLE, {columns}_PARTITION, {columns}_WRITEID FROM {table}"
        )
    }
    for name in tables:
        found = (server.warehouse / name).glob("p=*/*delta_*")
        for path in found:
            first, last = map(int, re.match(r".*delta_(\d+)_(\d+)", path.name).groups())
            if first == last:
                recorded = {(name, one, str(first)) for one in (path.parent.name, None)}
                assert recorded & known, path
