"""Writers, readers and the automatic compactor work at the same time, for a while.

``ACIDSQL_SOAK_SECONDS`` sets the time; ten minutes make a good test.
"""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

import acidsql
from acidsql.errors import TransientTxnError

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECONDS = int(os.environ.get("ACIDSQL_SOAK_SECONDS", "15"))
ACCOUNTS, EACH = 8, 100
SETTINGS = {
    "hive.compactor.delta.num.threshold": "4",
    "hive.compactor.cleaner.run.interval": "1s",
    # DataFrames are evaluated at once here, so their files need not be kept for an hour.
    "acidsql.lease.timeout": "2s",
    "acidsql.lock.poll.interval": "100ms",
}
# A writer begins a transfer at most so often: what a compaction has replaced stays for a while.
TRANSFER_S = 2.5
# The threads go on until the cleaner has removed a directory beside them, at most so long.
LONGEST_S = 180


class Soak:
    """The data that the threads share."""

    def __init__(self, spark, warehouse):
        self.spark, self.warehouse = spark, warehouse
        self.begin = time.monotonic()
        self.errors, self.logged, self.transfers, self.reads = [], 0, 0, 0
        self.listed, self.cleaned = set(), set()
        self.guard = threading.Lock()

    def goes_on(self):
        elapsed = time.monotonic() - self.begin
        return elapsed < (LONGEST_S if not self.cleaned else SECONDS) and not self.errors

    def connect(self):
        return acidsql.connect(self.spark, warehouse=self.warehouse, settings=SETTINGS)

    def thread(self, work):
        def run():
            try:
                with self.connect() as session:
                    while self.goes_on():
                        work(session)
            except BaseException as error:
                self.errors.append(error)

        return threading.Thread(target=run)

    def transfer(self, session):
        """Two updates in one transaction. Every reader sees the same sum."""
        here, there = random.sample(range(ACCOUNTS), 2)
        next_one = time.monotonic() + TRANSFER_S
        try:
            with session.transaction():
                session.sql(f"UPDATE account SET n = n - 1 WHERE id = {here}")
                session.sql(f"UPDATE account SET n = n + 1 WHERE id = {there}")
        except TransientTxnError:
            pass
        else:
            self.transfers += 1
        time.sleep(max(0.0, next_one - time.monotonic()))

    def log(self, session):
        with self.guard:
            number = self.logged
        session.sql(f"INSERT INTO log VALUES ({number}, {number % 2})")
        with self.guard:
            self.logged += 1

    def read(self, session):
        with self.guard:
            at_least = self.logged
        with session.snapshot():
            found = session.sql("SELECT sum(n), count(*), count(DISTINCT id) FROM account").first()
            assert tuple(found) == (ACCOUNTS * EACH, ACCOUNTS, ACCOUNTS), found
            rows = session.sql("SELECT count(*), count(DISTINCT id) FROM log").first()
            assert rows[0] == rows[1] >= at_least, (rows, at_least)
        self.reads += 1
        directories = self.directories()
        self.cleaned |= self.listed - directories
        self.listed |= directories

    def directories(self):
        return {
            os.path.join(parent, name)
            for table in ("account", "log")
            for parent, names, _ in os.walk(f"{self.warehouse}/{table}")
            for name in names
            if name.startswith(("base", "delta", "delete"))
        }


def test_writers_readers_and_the_compactor_do_not_meet(spark, acid):
    acid.sql("CREATE TABLE account (id INT, n INT)")
    acid.sql(f"INSERT INTO account SELECT INT(id), {EACH} FROM range({ACCOUNTS})")
    acid.sql("CREATE TABLE log (id INT) PARTITIONED BY (p INT)")
    warehouse = acid.warehouse
    acid.close()
    soak = Soak(spark, warehouse)
    threads = [soak.thread(work) for work in (soak.transfer, soak.transfer, soak.log, soak.read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert soak.errors == []
    assert soak.transfers > 0 and soak.logged > 0 and soak.reads > 0
    assert soak.cleaned, f"the cleaner removed nothing in {LONGEST_S} s"
    with acidsql.connect(spark, warehouse=warehouse, compactor="off") as last:
        history = {row.state for row in last.sql("SHOW COMPACTIONS").collect()}
        assert history & {"succeeded", "ready for cleaning"}, history
        assert not history & {"failed", "did not initiate"}, history
        last.run_compactor(once=True, tell=lambda _: None)
        last.clean()
        for table in ("account", "log"):
            left = last.files(table).where("state <> 'visible'").collect()
            assert left == [], (table, left)
        total, count = last.sql("SELECT sum(n), count(*) FROM account").first()
        assert (total, count) == (ACCOUNTS * EACH, ACCOUNTS)
        assert last.sql("SELECT count(DISTINCT id) FROM log").first()[0] == soak.logged
