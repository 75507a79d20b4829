"""A bank on HDFS: clients transfer money, while clients, data nodes and name nodes die at random,
and the tables are compacted and cleaned.

``ACIDSQL_SOAK_SECONDS`` sets the time; twenty minutes make a good test.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from bank_program import ACCOUNTS, SETTINGS
from mini_hdfs import MiniHdfs, missing
from running_server import running_server

import acidsql
from acidsql.errors import AcidSqlError
from acidsql.storage.spark.session.store_conf import hand_over_store_settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.rare, pytest.mark.classic]

SECONDS = int(os.environ.get("ACIDSQL_SOAK_SECONDS", "60"))
LONGEST_S = 300  # a busy machine needs longer for the first transfers
CLIENTS, EACH = 2, 1000
PROGRAM = Path(__file__).with_name("bank_program.py")
THRESHOLDS = {"hive.compactor.delta.num.threshold": "4", "acidsql.history.retention": "0s"}


@pytest.fixture(scope="module")
def ha(tmp_path_factory):
    work = tmp_path_factory.mktemp("bank")
    yield from running_server(missing(), lambda: MiniHdfs(work, data_nodes=3, has_standby=True))


@pytest.fixture
def settings_of_ha(spark, ha):
    """The name nodes' settings, which Spark has while the test runs."""
    settings = {name: value for name, value in ha.settings.items() if name != "fs.defaultFS"}
    conf = spark._jsc.hadoopConfiguration()
    for name, value in settings.items():
        conf.set(name, value)
    yield settings
    for name in settings:
        conf.unset(name)
    hand_over_store_settings(spark)


class Client:
    """A process that transfers money. After its death a new one takes its place.

    Attributes:
        diary: The file with a line for each transfer that has ended.
    """

    def __init__(self, number: int, directory: Path, *arguments: str) -> None:
        self.diary = directory / f"diary-{number}"
        self._arguments, self._lives, self._number = arguments, 0, number
        self.start()

    def start(self) -> None:
        """Start the process."""
        warehouse, metastore, settings = self._arguments
        self._lives += 1
        with Path(f"{self.diary}-errors").open("a") as errors:
            self._process = subprocess.Popen(
                [
                    sys.executable, PROGRAM, warehouse, metastore,
                    f"{self._number}-{self._lives}", self.diary, settings,
                ],
                stderr=errors, start_new_session=True,
                env={
                    **{k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_GATEWAY")},
                    "PYTHONPATH": os.pathsep.join(
                        map(str, [Path(acidsql.__file__).parents[1], PROGRAM.parents[1]])
                    ),
                },
            )  # fmt: skip

    def kill(self) -> None:
        """Kill the process, its JVM and its workers. It must have been alive."""
        assert self._process.poll() is None, Path(f"{self.diary}-errors").read_text()[-3000:]
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def entries(self) -> list[tuple[str, str]]:
        """What has become of each transfer that has ended, and its name."""
        if not self.diary.exists():
            return []
        lines = self.diary.read_text().split("\n")[:-1]
        return [(line.split(" ", 2)[0], line.split(" ", 2)[1]) for line in lines]


class Bank:
    """What the test does to the clients and the HDFS, and how it reads the tables."""

    def __init__(self, acid: acidsql.Session, server: MiniHdfs, clients: list[Client]) -> None:
        self._acid, self._server, self._clients = acid, server, clients
        self._stopped_node: int | None = None
        self.faults: Counter[str] = Counter()
        self.reads = 0

    def do_harm(self) -> None:
        """Do one thing by chance."""
        harm = random.choice([self._kill_client, self._change_name_node, self._change_data_node])
        harm()
        self.faults[harm.__name__.strip("_")] += 1

    def _kill_client(self) -> None:
        client = random.choice(self._clients)
        client.kill()
        client.start()

    def _change_name_node(self) -> None:
        self._server.run("failover")

    def _change_data_node(self) -> None:
        """Stop a data node, or start the one that is stopped."""
        if self._stopped_node is None:
            self._stopped_node = random.randrange(3)
            self._server.run(f"stop {self._stopped_node}")
        else:
            self._server.run("start")
            self._stopped_node = None

    def read(self) -> None:
        """Check that a snapshot has as much money as there was, and as many transfers as money has
        moved."""
        acknowledged = sum(
            outcome == "done" for client in self._clients for outcome, _ in client.entries()
        )
        with self._acid.snapshot():
            giro, accounts = self._acid.sql("SELECT sum(n), count(*) FROM giro").first()
            savings, others = self._acid.sql("SELECT sum(n), count(*) FROM savings").first()
            transfers, names = self._acid.sql(
                "SELECT count(*), count(DISTINCT name) FROM transfers"
            ).first()
        assert (accounts, others) == (ACCOUNTS, ACCOUNTS)
        assert giro + savings == ACCOUNTS * EACH
        assert transfers == names == savings
        assert transfers >= acknowledged
        self.reads += 1

    def compact(self) -> None:
        """Compact and clean what is due. A compaction may fail while nodes are away."""
        try:
            self._acid.run_compactor(once=True, tell=lambda _: None)
            self._acid.clean()
        except AcidSqlError as error:
            self.faults[f"compactor: {error.condition}"] += 1


def test_a_bank_loses_no_transfer(spark, ha, settings_of_ha, tmp_path):
    warehouse, metastore = f"{ha.root}/{tmp_path.name}", f"sqlite:///{tmp_path}/metastore.db"
    with acidsql.connect(
        spark, warehouse=warehouse, metastore=metastore, compactor="off",
        settings={**SETTINGS, **THRESHOLDS},
    ) as acid:  # fmt: skip
        acid.sql("CREATE TABLE giro (id INT, n INT)")
        acid.sql(f"INSERT INTO giro SELECT INT(id), {EACH} FROM range({ACCOUNTS})")
        acid.sql("CREATE TABLE savings (id INT, n INT) CLUSTERED BY (id) INTO 2 BUCKETS")
        acid.sql(f"INSERT INTO savings SELECT INT(id), 0 FROM range({ACCOUNTS})")
        acid.sql("CREATE TABLE transfers (name STRING)")
        arguments = (warehouse, metastore, json.dumps(settings_of_ha))
        clients = [Client(number, tmp_path, *arguments) for number in range(CLIENTS)]
        bank = Bank(acid, ha, clients)
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < SECONDS or not all(
            any(outcome == "done" for outcome, _ in client.entries()) for client in clients
        ):
            assert elapsed < SECONDS + LONGEST_S, bank.faults
            time.sleep(random.uniform(1, 12))
            bank.do_harm()
            bank.read()
            bank.compact()
        for client in clients:
            client.kill()
        ha.run("start")
        bank.read()
        rows = {row.name for row in acid.sql("SELECT name FROM transfers").collect()}
        fates = {name: outcome for client in clients for outcome, name in client.entries()}
        assert {name for name, fate in fates.items() if fate == "done"} - rows == set()
        assert {name for name, fate in fates.items() if fate == "failed"} & rows == set()
        for table in ("giro", "savings", "transfers"):
            assert acid.check(table).count() == 0
        print(
            f"{len(rows)} transfers, {Counter(fates.values())}, {bank.reads} reads, {bank.faults}"
        )
