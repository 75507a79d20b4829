"""Tries whether executors reach directories, as the Python tasks of reads and writes do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from acidsql.errors import AcidSqlError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.session.jobs import task_slots
from acidsql.storage.spark.session.python_workers import prepare_workers

_DDL = "location string, host string, problem string"


def listing_problem(location: str) -> str:
    """Return why this process cannot list a directory, as a text for people; "" if it can."""
    try:
        filesystem_for(location).list(location)
    except FileNotFoundError:
        return "there is no such directory"
    except (OSError, AcidSqlError) as error:
        return getattr(error, "message", None) or str(error)
    return ""


def list_on_executors(spark: SparkSession, locations: Sequence[str]) -> list[tuple[str, str, str]]:
    """Run a small job that lists each directory in every task slot, as far as Spark spreads it. The
    workers get our code before.

    Returns:
        Location, host and problem for each location and host, sorted; an empty problem is none.

    Raises:
        SettingError: Spark's Python workers cannot run our code.
    """
    prepare_workers(spark)
    tasks = max(1, task_slots(spark))
    frame = spark.range(0, tasks, 1, tasks).mapInArrow(_directory_probe(tuple(locations)), _DDL)
    problems = {(row.location, row.host): row.problem for row in frame.collect()}
    return [(location, host, problem) for (location, host), problem in sorted(problems.items())]


def _directory_probe(
    locations: Sequence[str],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that tries to list directories. For each batch it yields
    a row (location, host, problem) for each location; an empty problem is none."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield, for each batch, a row for each location, with this host and the problem."""
        for _ in batches:
            host = socket.gethostname()
            problems = [listing_problem(location) for location in locations]
            yield pa.RecordBatch.from_pydict(
                {"location": list(locations), "host": [host] * len(problems), "problem": problems}
            )

    return probe
