"""A process with its own Spark that appends to lists in SQL, and writes its history.

``python spark_worker.py <JSON>``: see ``Job``. Its tables have the columns ``key INT, list
STRING``; the text ``,3,17`` is the list (3 17).
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from history import FAIL, INFO, OK, Log
from small_spark import small_spark

import acidsql
from acidsql.errors import AcidSqlError, CommitUnknownError, MetastoreError
from acidsql.java import use_java

TABLES, KEYS = ("a", "b"), range(2)


@dataclass(frozen=True)
class Job:
    """The job of a process.

    Attributes:
        where: ``warehouse`` or ``metastore``, as ``connect`` takes them.
        log: The file of its history.
        number: The number of the process.
        seed: The random numbers depend on it and on the process's number only.
        txns: The number of transactions.
        start: The process waits until this file exists, so that all processes begin together.
        settings: acidsql's settings.
    """

    where: dict[str, str]
    log: str
    number: int
    seed: int
    txns: int
    start: str
    settings: dict[str, str] = field(default_factory=dict)


def read(acid: Any, log: Log) -> int:
    """Read all lists of all tables, and return the number of lists."""
    count = 0
    for table in TABLES:
        found: dict[int, list[list[int]]] = {key: [] for key in KEYS}
        for key, text in acid.sql(f"SELECT key, list FROM {table}").collect():
            found[key].append([int(value) for value in text.split(",") if value])
        for key, lists in found.items():
            log.read((table, key), lists)
            count += 1
    return count


def run(acid: Any, job: Job) -> None:
    """Run all transactions, one after the other."""
    log = Log(Path(job.log), f"s{job.number}")
    chance, value = random.Random(f"{job.seed} {job.number}"), (job.number + 1) * 1000
    for _ in range(job.txns):
        log.begin()
        committing = False
        try:
            acid.sql("BEGIN")
            if chance.random() < 0.5:
                read(acid, log)
            for _ in range(chance.randint(1, 2)):
                value += 1
                table, key = chance.choice(TABLES), chance.choice(KEYS)
                log.append((table, key), value)
                acid.sql(f"UPDATE {table} SET list = concat(list, ',{value}') WHERE key = {key}")
            if chance.random() < 0.5:
                read(acid, log)
            log.commit()
            committing = True
            acid.sql("COMMIT")
            log.end(OK)
        except AcidSqlError as error:
            if acid.in_transaction:
                acid.sql("ROLLBACK")
            unknown = committing and isinstance(error, CommitUnknownError | MetastoreError)
            log.end(INFO if unknown else FAIL, error.condition)


def main(job: Job) -> None:
    """Start Spark, wait for the other processes, and run the job."""
    use_java()
    spark = small_spark(f"{job.log}-spark")
    with acidsql.connect(spark, settings=job.settings, **job.where) as acid:
        while not Path(job.start).exists():
            time.sleep(0.01)
        run(acid, job)
    spark.stop()


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
