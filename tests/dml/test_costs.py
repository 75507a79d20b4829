"""The costs of one statement of each kind: messages to the JVM, SQL statements, jobs.

A message to the JVM takes some 0.2 ms, and a SQL statement is a round trip to a database server.
A one-row INSERT takes 30 ms, so a dozen more of either can be felt. Clocks would tell about the
machine, too; counts do not.
"""

from __future__ import annotations

import threading

import pytest
from over_hive import OVER_HIVE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(OVER_HIVE, reason="a Hive Metastore gets calls, which other tests count"),
]

# Py4J's message that the driver has dropped a reference: Python's garbage collector sends it.
_DROPPED = "m\nd\n"
# Each kind of statement, and the most that it may cost: messages to the JVM, SQL statements of the
# store (BEGIN counts, too), Spark jobs. Who makes one of them cheaper lowers its number. Each plan
# is asked for clocks, and MERGE's source for the user's functions: a statement has one time.
MOST = {
    # Three messages tell what the name means to Spark, the others run the query.
    "SELECT * FROM t WHERE id = 1": (44, 26, 1),
    # The rows are plain literals, so only the name and the result are Spark's.
    "INSERT INTO t VALUES (7, 'g')": (18, 57, 0),
    # Spark analyses the query, then runs it.
    "INSERT INTO t SELECT 8, 'h'": (68, 57, 1),
    # The query's columns are asked for once, too.
    "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 9 AS id, 'i' AS v": (68, 57, 1),
    # The same, over a scan with files and demands. Two scalar subqueries bring the deletion bits.
    "UPDATE t SET v = upper(v) WHERE id = {n}": (148, 71, 1),
    "DELETE FROM t WHERE id = {n}": (148, 71, 1),
    # Two queries: the source's and the one that joins it.
    "MERGE INTO t USING (SELECT {n} + 2 AS i) s ON id = i WHEN MATCHED THEN DELETE": (255, 71, 2),
    # Two tables: the driver keeps the record, finds its key, and writes both.
    "AUTO CDC INTO t FROM (SELECT {n} AS id, 'k' AS v, {n} AS at) KEYS (id) SEQUENCE BY at "
    "COLUMNS (id, v)": (518, 110, 4),
}


class Meter:
    """Counts what this thread does."""

    def __init__(self, acid, monkeypatch):
        self._acid, self._messages, self._thread = acid, 0, threading.get_ident()
        self._scheduler = acid.spark.sparkContext._jsc.sc().dagScheduler()
        client = acid.spark.sparkContext._gateway._gateway_client
        send = client.send_command

        def counted(command, *args, **options):
            is_own = threading.get_ident() == self._thread
            self._messages += is_own and not command.startswith(_DROPPED)
            return send(command, *args, **options)

        monkeypatch.setattr(client, "send_command", counted)

    def cost(self, text):
        """The messages, SQL statements and jobs of a statement, and of the scan of its rows."""
        before, self._messages = self._scheduler.numTotalJobs(), 0
        self._acid.sql(text).collect()
        messages, sql = self._messages, self._acid.costs.metastore_calls
        return messages, sql, self._scheduler.numTotalJobs() - before


def test_a_statement_of_each_kind_costs_few_messages_and_sql_statements(acid, monkeypatch):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'a' FROM range(0, 6, 1, 1)")
    meter, found = Meter(acid, monkeypatch), {}
    for statement in MOST:
        for n in (2, 3):  # the first statement of its kind loads classes, and takes a lease
            found[statement] = meter.cost(statement.format(n=n))
    too_much = {
        one: (cost, MOST[one])
        for one, cost in found.items()
        if any(made > most for made, most in zip(cost, MOST[one], strict=True))
    }
    assert too_much == {}


def test_auto_cdc_of_thousands_of_keys_runs_few_jobs(acid, monkeypatch):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'a' FROM range(9000)")
    records = "SELECT CAST(id * 3 AS INT) AS id, 'k' AS v, {n} AS at FROM range(0, 3000, 1, 1)"
    text = f"AUTO CDC INTO t FROM ({records}) KEYS (id) SEQUENCE BY at COLUMNS (id, v)"
    meter = Meter(acid, monkeypatch)
    costs = [meter.cost(text.format(n=n)) for n in (1, 2)]
    assert acid.sql("SELECT count(*) FROM t WHERE v = 'k' AND id % 3 = 0").first()[0] == 3000
    assert acid.sql("SELECT count(*) FROM t").first()[0] == 9000
    assert costs[1][2] <= 6
