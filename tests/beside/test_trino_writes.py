"""Trino changes tables of acidsql: by turns, in ways that a compaction mends, and at once. `make
test-trino` runs it.
"""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

import acidsql

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ACIDSQL_TRINO" not in os.environ, reason="ACIDSQL_TRINO is not set"),
]
KEYS, TURNS = 40, int(os.environ.get("ACIDSQL_TRINO_TURNS", "24"))
SECONDS = float(os.environ.get("ACIDSQL_TRINO_SECONDS", "20"))  # of two writers at once


def refuses(session, statement):
    """The error by which Trino refuses a statement."""
    import trino

    with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
        session.sql(statement)
    return caught.value.message


# ── by turns ─────────────────────────────────────────────────────────────────────────────────


class Turns:
    """Random statements of acidsql and Trino by turns, with a dictionary of what the table ``t``
    must hold."""

    def __init__(self, beside_trino, seed):
        self.sessions = {"acidsql": beside_trino.acid, "Trino": beside_trino.trino}
        self.rows, self.statements = {}, []
        self._dice = random.Random(seed)

    def run(self, who, statement):
        self.statements.append(f"{who}: {statement}")
        self.sessions[who].sql(statement)

    def take(self, number):
        """Let one of both change the table, and return who did."""
        who = ("acidsql", "Trino")[number % 2]
        changes = [self.insert, self.insert, self.update, self.delete, self.merge, self.compact]
        self._dice.choice(changes)(who, number)
        return who

    def insert(self, who, number):
        keys = [key for key in self._dice.sample(range(KEYS), 4) if key not in self.rows]
        if keys:
            values = ", ".join(f"({key}, '{who}{number}', {key % 3})" for key in keys)
            self.run(who, f"INSERT INTO t VALUES {values}")
            self.rows |= dict.fromkeys(keys, f"{who}{number}")

    def update(self, who, number):
        step = self._dice.randrange(2, 5)
        self.run(who, f"UPDATE t SET v = concat(v, '{who[0]}') WHERE k % {step} = 0")
        self.rows |= {key: v + who[0] for key, v in self.rows.items() if key % step == 0}

    def delete(self, who, number):
        low = self._dice.randrange(KEYS)
        self.run(who, f"DELETE FROM t WHERE k BETWEEN {low} AND {low + 4}")
        self.rows = {key: v for key, v in self.rows.items() if not low <= key <= low + 4}

    def merge(self, who, number):
        keys = self._dice.sample(range(KEYS), 4)
        values = ", ".join(f"({key}, 'm{number}')" for key in keys)
        self.run(
            who,
            f"MERGE INTO t USING (VALUES {values}) x(k, v) ON t.k = x.k "
            "WHEN MATCHED AND x.k % 5 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = x.v "
            "WHEN NOT MATCHED THEN INSERT (k, v, d) VALUES (x.k, x.v, x.k % 3)",
        )
        for key in keys:
            if key in self.rows and key % 5 == 0:
                del self.rows[key]
            else:
                self.rows[key] = f"m{number}"

    def compact(self, who, number):
        kind = self._dice.choice(["minor", "major"])
        self.run("acidsql", f"ALTER TABLE t COMPACT '{kind}' AND WAIT")


@pytest.mark.parametrize("clause", ["CLUSTERED BY (k) INTO 2 BUCKETS", "PARTITIONED BY (d INT)"])
def test_random_turns_leave_what_a_dictionary_says(beside_trino, clause):
    columns = "k INT, v STRING" + (", d INT" if "CLUSTERED" in clause else "")
    beside_trino.acid.sql(f"CREATE TABLE t ({columns}) {clause}")
    turns = Turns(beside_trino, clause)
    for number in range(TURNS):
        who = turns.take(number)
        other = turns.sessions["Trino" if who == "acidsql" else "acidsql"]
        answer = other.sql("SELECT k, v FROM t")
        rows = map(tuple, answer if isinstance(answer, list) else answer.collect())
        assert sorted(rows) == sorted(turns.rows.items()), "\n".join(turns.statements)
    beside_trino.rows("t")


# ── what a compaction mends ──────────────────────────────────────────────────────────────────


def test_deletes_of_several_buckets_in_one_file_are_mended_by_a_compaction(beside_trino, spark):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql("SET acidsql.driver.max.rows = 0")  # so that tasks write, each its own bucket id
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t SELECT /*+ REPARTITION(2) */ INT(id) FROM range(2000)")
    trino.sql("DELETE FROM t WHERE a < 100")
    expected = [(1900, 100)]
    assert list(map(tuple, acid.sql("SELECT count(*), min(a) FROM t").collect())) == expected
    findings = acid.check("t", level="rows").collect()
    assert "WRONG_BUCKET_ID" in {row.finding for row in findings}
    assert not any("backup" in row.advice for row in findings)
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert beside_trino.same_rows("SELECT count(*), min(a) FROM t") == expected
    assert beside_trino.hive.sql("SELECT count(*), min(a) FROM t") == [[1900, 100]]
    trino.sql("INSERT INTO t VALUES (5000)")
    assert beside_trino.same_rows("SELECT count(*), max(a) FROM t") == [(1901, 5000)]


# ── what Trino refuses ───────────────────────────────────────────────────────────────────────


def test_what_trino_and_the_server_refuse(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    refuses(trino, "CREATE TABLE n (a integer) WITH (format = 'ORC', transactional = true)")
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    refuses(trino, "TRUNCATE TABLE t")
    acid.sql(
        "CREATE TABLE o (a INT) TBLPROPERTIES ('transactional'='true', "
        "'transactional_properties'='insert_only')"
    )
    acid.sql("INSERT INTO o VALUES (1)")
    for statement in ("UPDATE o SET a = 2 WHERE a = 1", "DELETE FROM o WHERE a = 1"):
        refuses(trino, statement)
    assert beside_trino.rows("t") == [(1,), (2,)]
    assert beside_trino.rows("o") == [(1,)]


# ── at once ──────────────────────────────────────────────────────────────────────────────────


def test_trino_takes_its_snapshot_after_its_lock(beside_trino):
    """So an EXCLUSIVE lock keeps Trino from changing the old version of a row again."""
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql("CREATE TABLE t (k INT, n INT)")
    acid.sql("INSERT INTO t VALUES (1, 0)")
    acid.sql("BEGIN")
    acid.sql("LOCK TABLE t EXCLUSIVE")
    acid.sql("UPDATE t SET n = n + 1")
    update = threading.Thread(target=trino.sql, args=["UPDATE t SET n = n + 10 WHERE k = 1"])
    update.start()
    wait_for_a_waiting_lock(beside_trino.new_acid())
    acid.sql("COMMIT")
    update.join()
    assert beside_trino.rows("t") == [(1, 11)]


def test_updates_by_both_at_once_double_rows_and_the_check_says_so(beside_trino):
    import trino

    acid = beside_trino.acid
    acid.sql("CREATE TABLE t (k INT, n INT)")
    acid.sql("INSERT INTO t VALUES (1, 0)")
    commits, errors = {"acidsql": 0, "Trino": 0}, []
    sessions = {"acidsql": beside_trino.new_acid(), "Trino": beside_trino.new_trino()}
    end = time.monotonic() + SECONDS

    def count_on(who):
        while time.monotonic() < end:
            try:
                sessions[who].sql("UPDATE t SET n = n + 1 WHERE k = 1")
                commits[who] += 1
            except (acidsql.AcidSqlError, trino.exceptions.TrinoQueryError) as error:
                errors.append(error)

    threads = [threading.Thread(target=count_on, args=[who]) for who in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = sorted(map(tuple, acid.sql("SELECT k, n FROM t").collect()))
    checked = acid.check("t", level="rows").collect()
    findings = {row.finding for row in checked}
    assert min(commits.values()) > 0, errors
    assert rows != [(1, sum(commits.values()))], "Trino has mended it: change the documentation"
    assert "TWIN_DELETE" in findings, checked


def wait_for_a_waiting_lock(acid):
    """Wait until somebody waits for a lock."""
    deadline = time.monotonic() + 120
    while not any(row.lock_state == "WAITING" for row in acid.sql("SHOW LOCKS").collect()):
        assert time.monotonic() < deadline, "nobody waits for a lock"
        time.sleep(0.1)
