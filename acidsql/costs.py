"""What a statement costs: the fast paths that it takes, and the work that it causes.

Code notes what it does at the place where it does it. The notes go to the recorder of the statement
that runs in this thread; without one, they go nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from threading import RLock
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class FastPath(StrEnum):
    """The short cuts that a statement may take. ``acidsql.fast.paths = false`` forbids them all.

    Attributes:
        PLAIN_LITERALS: The driver read the rows of VALUES from the text, and wrote them.
        LITERAL_ROWS: The driver wrote the rows of VALUES, after Spark had evaluated them.
        FEW_ROWS: The driver collected the changes of a query, and wrote them.
        POINT_SEARCH: The driver searched the files for the rows to change.
        DELETION_BITS: Deleted rows are found by arrays of bits, not by a join.
        PRUNED_BUCKETS: Only files of the buckets that can have the wanted rows are read.
        SOURCE_PARTITIONS: The rows of MERGE's source, or the records of AUTO CDC, told which values
            columns of the target must have.
        MERGE_PARTNERS: Of MERGE's target, only rows with a partner in the source were shuffled.
        BUCKET_SQL: Spark's SQL computed the buckets of the new rows.
        UNMEASURED_BATCHES: The new rows went to Python in batches of a fixed number of rows.
        KEYS_ALONE: Spark's SQL made the row ids to delete, without a stage that writes new rows.
        SMALL_FILES: Python tasks read small files of an object store.
    """

    PLAIN_LITERALS = "plain literals"
    LITERAL_ROWS = "literal rows"
    FEW_ROWS = "few rows"
    POINT_SEARCH = "point search"
    DELETION_BITS = "deletion bits"
    PRUNED_BUCKETS = "pruned buckets"
    SOURCE_PARTITIONS = "source partitions"
    MERGE_PARTNERS = "merge partners"
    BUCKET_SQL = "bucket sql"
    UNMEASURED_BATCHES = "unmeasured batches"
    KEYS_ALONE = "keys alone"
    SMALL_FILES = "small files"


@dataclass(frozen=True, slots=True)
class Costs:
    """What a statement did until it returned or failed, with its repetitions (``retries``).

    What Spark does later is not in it, such as the scan of a DataFrame that SELECT has returned;
    nor is what the session does beside the statement in threads of its own.

    Attributes:
        fast_paths: The short cuts that the statement took.
        write_jobs: How many Spark jobs wrote rows. 0: the driver wrote them, or there were none.
            2: a row was too long for unmeasured batches, for example, so the job ran again.
        listed_directories: How many directories were listed for their files: those of partitions,
            and those of tables without partitions. One that is listed twice counts twice.
        opened_files: How many ORC files the driver opened to read their footers or rows. One that
            is opened twice counts twice. Files that Spark's tasks open do not count.
        metastore_calls: How many SQL statements the store's database got, BEGIN included, or how
            many calls a Hive Metastore.
    """

    fast_paths: frozenset[FastPath] = frozenset()
    write_jobs: int = 0
    listed_directories: int = 0
    opened_files: int = 0
    metastore_calls: int = 0

    def __add__(self, other_costs: Costs) -> Costs:
        return Costs(
            self.fast_paths | other_costs.fast_paths,
            self.write_jobs + other_costs.write_jobs,
            self.listed_directories + other_costs.listed_directories,
            self.opened_files + other_costs.opened_files,
            self.metastore_calls + other_costs.metastore_calls,
        )


class CostRecorder:
    """Adds up what is noted inside a block of ``recorded_costs``. Any thread may call it."""

    def __init__(self, outer: CostRecorder | None) -> None:
        self._outer = outer
        self._lock = RLock()  # a handler of a signal may interrupt a note, and note something
        self._fast_paths, self._numbers = set[FastPath](), Counter[str]()

    @property
    def costs(self) -> Costs:
        """The costs until now."""
        with self._lock:
            return Costs(frozenset(self._fast_paths), **self._numbers)

    def take(self, fast_path: FastPath) -> None:
        """Add a fast path, here and to the blocks around this one."""
        with self._lock:
            self._fast_paths.add(fast_path)
        if self._outer is not None:
            self._outer.take(fast_path)

    def count(self, cost: str, number: int) -> None:
        """Add to a field of ``Costs``, here and in the blocks around this one."""
        with self._lock:
            self._numbers[cost] += number
        if self._outer is not None:
            self._outer.count(cost, number)


_recorder: ContextVar[CostRecorder | None] = ContextVar("acidsql_costs", default=None)


@contextmanager
def recorded_costs() -> Iterator[CostRecorder]:
    """Record what this thread does inside the block. Costs of a block inside count here, too."""
    token = _recorder.set(recorder := CostRecorder(_recorder.get()))
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def recorded_in_threads(work: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """Return a function for other threads that does the same work; its costs are recorded where
    this thread's are."""
    if (recorder := _recorder.get()) is None:
        return work

    def recorded_work(item: _Item) -> _Result:
        token = _recorder.set(recorder)
        try:
            return work(item)
        finally:
            _recorder.reset(token)

    return recorded_work


def note_fast_path(fast_path: FastPath) -> None:
    """Note that the running statement takes this short cut."""
    if (recorder := _recorder.get()) is not None:
        recorder.take(fast_path)


def note_write_job() -> None:
    """Note that a Spark job begins that writes rows."""
    _count("write_jobs")


def note_listed_directories(number: int) -> None:
    """Note that so many directories of partitions or tables are listed."""
    _count("listed_directories", number)


def note_opened_file() -> None:
    """Note that an ORC file is opened."""
    _count("opened_files")


def note_metastore_call() -> None:
    """Note a SQL statement to the store's database, or a call of a Hive Metastore."""
    _count("metastore_calls")


def _count(cost: str, number: int = 1) -> None:
    """Add to a field of the running statement's ``Costs``."""
    if (recorder := _recorder.get()) is not None:
        recorder.count(cost, number)
