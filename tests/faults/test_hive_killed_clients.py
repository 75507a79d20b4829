"""Clients of a Hive Metastore that are killed at any one call of their statements.

The client is a fork of the test's process: it has the session, the connection to Spark's JVM and
the files, and dies of SIGKILL, so that no line of Python runs afterwards. The parent waits, and so
does not use the JVM. Then the server's reaper aborts what the client left open.

With ``ACIDSQL_HIVE_KILLS=all`` the client dies before and after each call of each kind of
statements, which takes minutes; else where something has become true that others could see.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from typing import NamedTuple

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import hive_version

import acidsql
from acidsql.metastore.hive.wire.client import Client

servers = hive_version.servers()

ALL = os.environ.get("ACIDSQL_HIVE_KILLS") == "all"


class Death(NamedTuple):
    """When a client dies: before or after the call of this name and number.

    Attributes:
        is_done: Its transaction has committed.
    """

    call: str
    number: int
    when: str
    is_done: bool = False


class Kind(NamedTuple):
    """What a client says, with {t} for a name, and the rows of the tables of this name.

    Attributes:
        statements: What it says.
        old: The rows before, by the end of the table's name.
        new: The rows once it has committed.
        deaths: When it dies, unless it dies everywhere.
    """

    statements: tuple[str, ...]
    old: dict[str, list[tuple[int, int]]]
    new: dict[str, list[tuple[int, int]]]
    deaths: tuple[Death, ...] = ()


OLD = [(1, 1), (2, 2)]
KINDS = {
    "insert": Kind(
        ("INSERT INTO {t} VALUES (3, 1)",), {"": OLD}, {"": [(1, 1), (2, 2), (3, 1)]}
    ),
    "update": Kind(
        ("UPDATE {t} SET a = a + 10 WHERE p = 2",), {"": OLD}, {"": [(1, 1), (12, 2)]},
        (
            Death("lock", 1, "before"), Death("lock", 1, "after"),
            Death("lock", 2, "before"), Death("lock", 2, "after"),
            Death("commit_txn", 1, "after", True),
        ),
    ),
    "merge": Kind(
        ("MERGE INTO {t} t USING (VALUES (1, 1), (9, 3)) s(a, p) ON t.a = s.a "
         "WHEN MATCHED THEN UPDATE SET a = 11 WHEN NOT MATCHED THEN INSERT *",),
        {"": OLD}, {"": [(2, 2), (9, 3), (11, 1)]},
    ),
    "transaction": Kind(
        (
            "BEGIN", "UPDATE {t} SET a = a + 10 WHERE p = 2", "INSERT INTO {t}_2 VALUES (3, 3)",
            "DELETE FROM {t} WHERE a = 1", "COMMIT",
        ),
        {"": OLD, "_2": OLD}, {"": [(12, 2)], "_2": [(1, 1), (2, 2), (3, 3)]},
        (
            Death("add_partitions_req", 1, "after"), Death("add_dynamic_partitions", 2, "before"),
            Death("commit_txn", 1, "before"), Death("commit_txn", 1, "after", True),
        ),
    ),
    "rename": Kind(
        ("ALTER TABLE {t} PARTITION (p = 2) RENAME TO PARTITION (p = 7)",),
        {"": OLD}, {"": [(1, 1), (2, 7)]}, (Death("commit_txn", 1, "before"),),
    ),
    "create": Kind(
        ("CREATE TABLE {t} PARTITIONED BY (p) AS SELECT 1 AS a, 1 AS p UNION ALL SELECT 2, 2",),
        {}, {"": OLD},
        (
            Death("create_table_req", 1, "before"), Death("create_table_req", 1, "after"),
            Death("commit_txn", 1, "before"), Death("commit_txn", 1, "after", True),
        ),
    ),
}  # fmt: skip
TRIED = [[one] for one in KINDS] if ALL else [[one for one in KINDS if KINDS[one].deaths]]
QUICK = {
    "metastore.txn.timeout": "3s",
    "metastore.timedout.txn.reaper.interval": "1s",
    "metastore.timedout.txn.reaper.start": "1s",
}
PATIENCE_S = 60
MISSING = "there is no such table"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that soon aborts the transactions of a client that is gone."""
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    started = servers.HiveMetastoreServer(tmp_path_factory.mktemp("hms"), settings=QUICK)
    yield started
    started.close()


class Killer:
    """Stands for ``Client.call``, and kills the process."""

    def __init__(self, death):
        self.death, self.calls = death, Counter()

    def __call__(self, real, client, name, *values, **options):
        self.calls[name] += 1
        is_now = (name, self.calls[name]) == (self.death.call, self.death.number)
        if is_now and self.death.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return real(client, name, *values, **options)
        finally:  # an answer may be an error: there is no such table
            if is_now:
                os.kill(os.getpid(), signal.SIGKILL)


def kill(acid, statements, death):
    """Run statements in a client that dies."""
    child = os.fork()
    if child == 0:
        killer, real = Killer(death), Client.call
        Client.call = lambda self, *args, **options: killer(real, self, *args, **options)
        try:
            for statement in statements:
                acid.sql(statement)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), f"the client has lived: {death}"


def everywhere(monkeypatch, acid, name):
    """A death before and after each call of statements of this kind."""
    made, real = [], Client.call

    def call(self, name, *values, **options):
        made.append(name)
        return real(self, name, *values, **options)

    for number in range(2):  # the first time Spark is asked more
        alive = f"{name}_alive_{number}"
        make(acid, KINDS[name], alive)
        made.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Client, "call", call)
            for statement in KINDS[name].statements:
                acid.sql(statement.format(t=alive))
        for end in KINDS[name].new:
            acid.sql(f"DROP TABLE {alive}{end}")
    calls = Counter()
    for one in made:
        if one != "heartbeat":
            is_done = calls["commit_txn"] > 0
            calls[one] += 1
            yield Death(one, calls[one], "before", is_done)
            yield Death(one, calls[one], "after", is_done or one == "commit_txn")


def make(acid, kind, name):
    for end in kind.old:
        acid.sql(f"CREATE TABLE {name}{end} (a INT) PARTITIONED BY (p INT)")
        acid.sql(f"INSERT INTO {name}{end} VALUES (1, 1), (2, 2)")


def rows(acid, names):
    """The rows of tables, by one query."""
    there = {row.tableName for row in acid.sql("SHOW TABLES").collect()}.intersection(names)
    found = {name: [] if name in there else MISSING for name in names}
    each = (f"SELECT '{name}' AS name, a, p FROM {name}" for name in there)
    for name, a, p in acid.sql(" UNION ALL ".join(each)).collect() if there else ():
        found[name] = sorted([*found[name], (a, p)])
    return found


class Left(NamedTuple):
    """What a killed client has left of a table: its rows, and the partitions in which it has
    published something."""

    rows: object
    published: set[str]


@pytest.mark.slow
@pytest.mark.parametrize("kinds", TRIED, ids="-".join)
def test_what_a_killed_client_did_is_there_as_a_whole_or_not_at_all(
    spark, server, monkeypatch, kinds
):
    with acidsql.connect(spark, metastore=server.url) as acid:
        tables = {}
        for kind in kinds:
            deaths = list(everywhere(monkeypatch, acid, kind)) if ALL else KINDS[kind].deaths
            for death in deaths:
                tables |= killed(acid, server, kind, death)
        check_rows(acid, tables)
        wait_for_the_reaper(acid, server)
        check_rows(acid, tables)
        compact(acid, server, tables)
        check_rows(acid, tables)
        check_records(acid, server, tables)
        rename_again(acid, [name for name in tables if tables[name].rows == OLD])


def rename_again(acid, names):
    """The new partition may be in the catalog, without rows."""
    kind = KINDS["rename"]
    for name in names:
        if name.startswith("rename_"):
            acid.sql(f"ALTER TABLE {name} DROP IF EXISTS PARTITION (p = 7)")
            acid.sql(kind.statements[0].format(t=name))
            assert rows(acid, [name]) == {name: kind.new[""]}


def killed(acid, server, name, death):
    """Kill a client. Returns what must be left of its tables."""
    # In lower case, as the server keeps it: calls may have capitals.
    kind, table = KINDS[name], f"{name}_{'_'.join(map(str, death[:3]))}".lower()
    make(acid, kind, table)
    before = {end: deltas(server, table + end) for end in kind.new}
    kill(acid, [one.format(t=table) for one in kind.statements], death)
    if death.is_done:
        must = kind.new
    else:  # COMMIT is not one step with the catalog: a new table may be there, without rows
        must = kind.old or {"": [] if rows(acid, [table]) == {table: []} else MISSING}
    new = {end: deltas(server, table + end) - before[end] for end in must}
    return {
        table + end: Left(there, {path.parent.name for path in new[end]})
        for end, there in must.items()
    }


def deltas(server, name):
    return set((server.warehouse / name).glob("p=*/*delta_*"))


def partitions(acid, name):
    return {row.partition for row in acid.sql(f"SHOW PARTITIONS {name}").collect()}


def check_rows(acid, tables):
    assert rows(acid, tables) == {name: left.rows for name, left in tables.items()}


def wait_for_the_reaper(acid, server):
    """Until only the reader's lease is open. So transactions do not pile up if clients
    die while they open them (T19)."""
    lease = acid._runner._txns.hold_lease()
    deadline = time.monotonic() + PATIENCE_S
    while opened := server.query(
        f"SELECT TXN_ID FROM TXNS WHERE TXN_STATE = 'o' AND TXN_ID <> {lease}"
    ):
        assert time.monotonic() < deadline, opened
        time.sleep(0.2)
    # Locks without a transaction are those by which Hive's servers elect a leader.
    assert server.query("SELECT HL_LOCK_EXT_ID FROM HIVE_LOCKS WHERE HL_TXNID > 0") == []


def compact(acid, server, tables):
    """The compactor's service compacts where clients have published something, and deletes what
    they had not published yet, and nothing else."""
    there = {name: left for name, left in tables.items() if left.rows is not MISSING}
    before = {path for name in there for path in (server.warehouse / name).rglob("*")}
    unpublished = {path for path in before if path.name.startswith("_tmp_")}
    for name, left in there.items():
        for partition in left.published & partitions(acid, name):
            acid.compact(name, partition)
    told: list[str] = []
    acid.run_compactor(once=True, tell=told.append)
    assert any(line.endswith("is done") for line in told), told
    removed = {line.split()[1].removeprefix("file:") for line in told if "(litter" in line}
    # A CREATE TABLE AS SELECT has no table while its files are unpublished.
    assert unpublished or all(name.startswith("create_") for name in there)
    assert removed == set(map(str, unpublished))
    assert acid.clean().count() == 0
    assert {path for path in before if path.exists()} == {
        path for path in before if unpublished.isdisjoint([path, *path.parents])
    }


def check_records(acid, server, tables):
    """Each write id that has a directory is recorded as aborted or as committed, in each partition
    with such a directory, or (aborted) in some partition: else a cleaner never finds the rows, or
    the server forgets that the transaction was aborted, and they count as committed.

    With a partition, the server drops its records. A RENAME that dies between that and the files
    leaves rows and their deletions, both committed.
    """
    known = {
        tuple(row)
        for columns, table in (("TC", "TXN_COMPONENTS"), ("CTC", "COMPLETED_TXN_COMPONENTS"))
        for row in server.query(
            f"SELECT {columns}_TABLE, {columns}_PARTITION, {columns}_WRITEID FROM {table}"
        )
    }
    for name, left in tables.items():
        found = deltas(server, name)
        if left.rows is not MISSING:
            there = partitions(acid, name)
            found = {path for path in found if path.parent.name in there}
        for path in found:
            first, last = map(int, re.match(r".*delta_(\d+)_(\d+)", path.name).groups())
            if first == last:
                recorded = {(name, one, str(first)) for one in (path.parent.name, None)}
                assert recorded & known, path
