"""A real Kafka: records of Debezium reach a table once, though the driver dies in between.

`make test-kafka` runs it. It starts a broker and three drivers, which takes a minute or two.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_broker import KafkaBroker, missing, spark_jars

import acidsql

pytestmark = [
    pytest.mark.spark, pytest.mark.slow,
    pytest.mark.skipif("ACIDSQL_KAFKA" not in os.environ, reason="ACIDSQL_KAFKA is not set"),
]  # fmt: skip
ROOT = Path(__file__).parents[2]
TOPIC = "shop.public.customers"


@pytest.fixture
def broker(tmp_path):
    if reason := missing():
        pytest.skip(reason)
    (tmp_path / "kafka").mkdir()
    running = KafkaBroker(tmp_path / "kafka")
    yield running
    running.close()


class Shop:
    """A database, and the records that Debezium's connector for PostgreSQL makes of its log."""

    def __init__(self):
        self.rows, self._random, self._lsn = {}, random.Random(1), 1000

    def records(self, count):
        """Keys and values of so many changes; after a delete a tombstone; some come twice."""
        for _ in range(count):
            key = self._random.randrange(30)
            before, after = self.rows.pop(key, None), None
            if before is None or self._random.random() < 0.8:
                name, city = f"name {self._lsn}", self._random.choice("abc")
                after = self.rows[key] = {"id": key, "name": name, "city": city}
            record = key, json.dumps({"payload": self._payload(before, after)})
            yield from [record] * self._random.choice((1, 1, 1, 2))
            if after is None:
                yield key, None

    def _payload(self, before, after):
        self._lsn += 8
        op = "c" if before is None else "d" if after is None else "u"
        source = {
            "connector": "postgresql", "db": "shop", "schema": "public", "table": "customers",
            "lsn": self._lsn, "sequence": json.dumps([str(self._lsn - 8), str(self._lsn)]),
        }  # fmt: skip
        return {"op": op, "before": before, "after": after, "source": source}


def drive(place, broker, *death):
    program = Path(__file__).with_name("kafka_driver.py")
    jars = f"--jars {','.join(map(str, spark_jars()))} pyspark-shell"
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, program, place, broker.address, *map(str, death)],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": jars, "PYTHONPATH": path},
        capture_output=True, text=True, start_new_session=True, check=False,
    )  # fmt: skip
    assert done.returncode == (-signal.SIGKILL if death else 0), done.stderr[-3000:]


def test_a_topic_is_applied_once_though_the_driver_is_killed(spark, tmp_path, broker):
    shop, sent = Shop(), 0
    for death in ((1, "before"), (2, "after"), ()):
        records = [(str(key), value) for key, value in shop.records(60)]
        broker.send(TOPIC, records)
        sent += len(records)
        drive(tmp_path, broker, *death)
    with acidsql.connect(spark, warehouse=str(tmp_path / "warehouse"), compactor="off") as acid:
        found = acid.sql("SELECT * FROM customers").collect()
        (entry,) = acid.streams().collect()
        versions = acid.history("customers").where("operation <> 'CREATE TABLE'").collect()
    assert sorted(tuple(row) for row in found) == sorted(
        (row["id"], row["name"], row["city"]) for row in shop.rows.values()
    )
    assert entry.txnVersion >= 3 and len(versions) == entry.txnVersion + 1, versions
