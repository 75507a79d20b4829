"""A Hive Metastore that fails at any one call of a statement, or is restarted."""

from __future__ import annotations

import itertools
import random
import socket
import time

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import hive_version

import acidsql
from acidsql.errors import AcidSqlError, CommitUnknownError, MetastoreError
from acidsql.metastore.hive.wire.client import Client

servers = hive_version.servers()

BEFORE = "INSERT INTO t VALUES (1, 1), (2, 2)"
OLD = [(1, 1), (2, 2)]
STATEMENTS = {
    "INSERT INTO t VALUES (3, 1)": [(1, 1), (2, 2), (3, 1)],
    "UPDATE t SET a = a + 10 WHERE p = 2": [(1, 1), (12, 2)],
}


_numbers = itertools.count(1)


class Fault:
    """Counts the calls of statements, and loses one of them: its request, or its reply."""

    def __init__(self) -> None:
        self.calls, self.at, self.lose_reply, self.stays = 0, 0, False, False
        self.is_on = False

    def __call__(self, real, client, name, *values, **options):
        if not self.is_on or name in ("heartbeat", "get_config_value"):
            return real(client, name, *values, **options)
        self.calls += 1
        hit = self.calls >= self.at if self.stays else self.calls == self.at
        if hit and not self.lose_reply:
            raise MetastoreError(f"the request {name} is lost")
        answer = real(client, name, *values, **options)
        if hit:
            raise MetastoreError(f"the reply to {name} is lost")
        return answer


@pytest.fixture
def fault(monkeypatch):
    fault, real = Fault(), Client.call
    monkeypatch.setattr(
        Client, "call", lambda self, *args, **options: fault(real, self, *args, **options)
    )
    monkeypatch.setattr(time, "sleep", lambda _, sleep=time.sleep: sleep(0.01))
    return fault


def rows(acid):
    return sorted(map(tuple, acid.sql("SELECT * FROM t").collect()))


def expected(acid, fault, statement):
    """Run the statement with its fault. Returns the rows that may be there afterwards."""
    fault.calls, fault.is_on = 0, True
    try:
        acid.sql(statement)
    except CommitUnknownError:
        return [OLD, STATEMENTS[statement]]
    except AcidSqlError:
        return [OLD]
    finally:
        fault.is_on = False
    return [STATEMENTS[statement]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lose_reply", "stays"), [(True, False), (False, True)], ids=["reply, once", "all from then on"]
)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_whose_calls_are_lost_happens_or_does_not(
    spark, hive_metastore, fault, statement, stays, lose_reply
):
    """What the statement said decides: after success all of its rows are there, after an error none
    of them. A later reader, who waits for nobody's locks, sees the same."""
    fault.lose_reply, fault.stays = lose_reply, stays
    database = f"faults{next(_numbers)}"
    with acidsql.connect(spark, metastore=hive_metastore.url) as reader:
        reader.sql(f"CREATE DATABASE {database}")
        reader.sql(f"USE {database}")
        try:
            found = None
            for at in range(1, 40):
                fault.at = at
                if found != OLD:
                    reader.sql("CREATE TABLE t (a INT) PARTITIONED BY (p INT)")
                    reader.sql(BEFORE)
                with acidsql.connect(spark, metastore=hive_metastore.url) as acid:
                    allowed = expected(acid, fault, statement)
                    was_hit = fault.calls >= at
                assert rows(reader) in allowed, f"after a fault at call {at}"
                _abort_all(reader)
                found = rows(reader)
                assert found in allowed, f"later, after a fault at call {at}"
                if not was_hit:
                    return
                if found != OLD:  # else the next fault meets what this one has left
                    reader.sql("DROP TABLE t")
            raise AssertionError("a statement makes fewer calls")
        finally:
            spark.catalog.setCurrentDatabase("default")
            reader.sql(f"DROP DATABASE {database} CASCADE")


def _abort_all(reader):
    """As the server does after a time-out, with transactions that nobody ended."""
    lease = reader._runner._txns.hold_lease()
    for row in reader.sql("SHOW TRANSACTIONS").collect():
        if row.state == "OPEN" and int(row.txnid) != lease:
            reader.sql(f"ABORT TRANSACTIONS {row.txnid}")


@pytest.mark.slow
@pytest.mark.skipif(hive_version.IS_42, reason="the jars of Hive 4.2 have no client of Derby's")
def test_if_one_of_two_servers_dies_a_transaction_goes_on_with_the_other(
    spark, tmp_path_factory, monkeypatch
):
    """Both have the first one's database, of which Derby makes a service of the network."""
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    monkeypatch.setattr(random, "shuffle", lambda _: None)  # the first of the URL is asked first
    work, port = tmp_path_factory.mktemp("hms"), free_port()
    # Without a rollback to a savepoint: when two servers wait for each other, Derby rolls back the
    # whole transaction. The server then takes the missing savepoint for a missing table.
    plain = {"metastore.try.direct.sql": "false", "metastore.housekeeping.threads.on": "false"}
    served = {"derby.drda.startNetworkServer": "true", "derby.drda.portNumber": str(port), **plain}
    first = servers.HiveMetastoreServer(work, settings=served)
    shared = {
        "hms.work": str(work),
        "javax.jdo.option.ConnectionURL": f"jdbc:derby://127.0.0.1:{port}/{work}/db",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.ClientDriver",
        **plain,
    }
    second = servers.HiveMetastoreServer(tmp_path_factory.mktemp("hms"), settings=shared)
    url = f"{second.url},127.0.0.1:{first.port}"
    with acidsql.connect(spark, metastore=url) as acid:
        acid.sql("CREATE TABLE t (a INT)")
        acid.sql("INSERT INTO t VALUES (1)")
        acid.sql("BEGIN")
        acid.sql("UPDATE t SET a = 10")
        second.kill()
        acid.sql("INSERT INTO t VALUES (2)")
        acid.sql("COMMIT")
        assert rows(acid) == [(2,), (10,)]
        acid.sql("DELETE FROM t WHERE a = 2")
        assert rows(acid) == [(10,)]
        acid.sql("DROP TABLE t")
    first.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.mark.slow
def test_a_transaction_survives_a_restart_of_the_server(spark, tmp_path_factory):
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    work = tmp_path_factory.mktemp("hms")
    first = servers.HiveMetastoreServer(work, settings={"derby.system.durability": "default"})
    with acidsql.connect(spark, metastore=first.url) as acid:
        acid.sql("CREATE TABLE t (a INT)")
        acid.sql("BEGIN")
        acid.sql("INSERT INTO t VALUES (1)")
        first.kill()
        with pytest.raises(MetastoreError):
            acid.sql("SELECT * FROM t").collect()
        (work / "db" / "db.lck").unlink(missing_ok=True)
        second = servers.HiveMetastoreServer(work, port=first.port)
        acid.sql("INSERT INTO t VALUES (2)")
        acid.sql("COMMIT")
        assert rows(acid) == [(1,), (2,)]
        acid.sql("DROP TABLE t")
    second.close()
