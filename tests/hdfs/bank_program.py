"""A client of a bank whose tables are on HDFS. It transfers money until it is killed.

``python bank_program.py <warehouse> <metastore> <name> <diary> <settings of HDFS as JSON>``. Each
transfer has a name. The diary, a file on this machine's disk, gets a line for it when it has ended:

- ``done NAME``: it is committed.
- ``failed NAME ERROR``: the error says that it is not committed.
- ``unknown NAME``: the error says that nobody knows.
"""

from __future__ import annotations

import json
import os
import random
import sys
from itertools import count
from typing import TextIO

from small_spark import small_spark

import acidsql
from acidsql.errors import AcidSqlError, CommitUnknownError
from acidsql.java import use_java

ACCOUNTS = 6
# A killed client is noticed soon.
SETTINGS = {
    "hive.txn.timeout": "8s", "acidsql.lock.poll.interval": "200ms", "acidsql.lease.timeout": "5s",
}  # fmt: skip


def main(warehouse: str, metastore: str, name: str, diary: str, hdfs_settings: str) -> None:
    """Transfer money for ever."""
    use_java()
    conf = {f"spark.hadoop.{key}": value for key, value in json.loads(hdfs_settings).items()}
    spark = small_spark(f"{diary}-spark", memory="600m", conf=conf)
    with (
        acidsql.connect(
            spark, warehouse=warehouse, metastore=metastore, settings=SETTINGS, compactor="off"
        ) as acid,
        open(diary, "a") as file,
    ):
        for number in count():
            _note(file, _transfer(acid, f"{name}-{number}"))


def _transfer(acid: acidsql.Session, name: str) -> str:
    """Transfer 1 in one transaction over three tables, and return the line for the diary."""
    giver, taker = random.randrange(ACCOUNTS), random.randrange(ACCOUNTS)
    try:
        with acid.transaction():
            acid.sql(f"UPDATE giro SET n = n - 1 WHERE id = {giver}")
            acid.sql(f"UPDATE savings SET n = n + 1 WHERE id = {taker}")
            acid.sql(f"INSERT INTO transfers VALUES ('{name}')")
    except CommitUnknownError:
        return f"unknown {name}"
    except AcidSqlError as error:
        return f"failed {name} {error.condition} {error.message}"
    return f"done {name}"


def _note(file: TextIO, line: str) -> None:
    print(line.replace("\n", " "), file=file, flush=True)
    os.fsync(file.fileno())


if __name__ == "__main__":
    main(*sys.argv[1:])
