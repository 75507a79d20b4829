"""The same test with Spark: two processes append to lists in SQL, between BEGIN and COMMIT.

With ``ACIDSQL_OVER_HIVE=4``, over a Hive Metastore.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import spark_worker
from checker import check
from history import OK, Append, Log, load
from over_hive import OVER_HIVE
from spark_worker import KEYS, TABLES, Job

import acidsql

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TXNS = int(os.environ.get("ACIDSQL_HISTORY_TXNS", "8"))
SEED = int(os.environ.get("ACIDSQL_HISTORY_SEED", "1"))
SECONDS = 900
HERE = Path(__file__).parent
SETTINGS = {"acidsql.lock.poll.interval": "100ms", "hive.lock.numretries": "8"}
# In one mode updates wait for each other, in the other mode COMMIT finds conflicts.
MODES = [{}, {"hive.txn.xlock.write": "false"}]


def start(job: Job) -> Any:
    paths = [str(Path(acidsql.__file__).parents[1]), str(HERE), str(HERE.parent)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_GATEWAY")}
    return subprocess.Popen(
        [sys.executable, str(HERE / "spark_worker.py"), json.dumps(asdict(job))],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**kept, "PYTHONPATH": os.pathsep.join(paths)},
    )


@pytest.fixture
def where(request, tmp_path):
    """Where the tables are."""
    if OVER_HIVE:
        return {"metastore": request.getfixturevalue("hive_metastore").url}
    return {"warehouse": str(tmp_path / "warehouse")}


@pytest.mark.classic
def test_two_spark_sessions_on_the_same_rows_are_snapshot_isolation(spark, tmp_path, where):
    now = tmp_path / "now"
    with acidsql.connect(spark, **where) as acid:
        for table in TABLES:
            acid.sql(f"CREATE TABLE {table} (key INT, list STRING)")
            acid.sql(f"INSERT INTO {table} VALUES " + ", ".join(f"({key}, '')" for key in KEYS))
        jobs = [
            Job(where, str(tmp_path / f"{number}.jsonl"), number, SEED, TXNS, str(now),
                {**SETTINGS, **mode})
            for number, mode in enumerate(MODES)
        ]  # fmt: skip
        processes = [start(job) for job in jobs]
        now.touch()
        for process in processes:
            _, errors = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, errors
        log = Log(tmp_path / "last.jsonl", "last")
        log.begin()
        spark_worker.read(acid, log)
        log.end(OK)
        for table in TABLES:
            acid.sql(f"DROP TABLE {table}")
    history = [txn for job in jobs for txn in load(Path(job.log))]
    history += load(tmp_path / "last.jsonl")
    told = f"seed {SEED}: {Counter(txn.why or txn.outcome for txn in history)}"
    assert check(history) == [], told
    assert len(history) == 2 * TXNS + 1
    done = [one for txn in history if txn.outcome == OK for one in txn.operations]
    assert sum(isinstance(one, Append) for one in done) > TXNS / 2, told
    print(told)
