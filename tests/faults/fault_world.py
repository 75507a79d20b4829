"""A warehouse with sessions that run scripts and can be made to fail at any call."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from fault_place import SETTINGS, Place
from fault_points import Crash, FaultyStore, Interrupt, Line, sql_faults
from fault_state import State, touched
from fault_statements import SETUP, Kind, expected
from pyarrow import orc
from pyspark.errors import PySparkException

from acidsql.api.session import Session
from acidsql.errors import AcidSqlError
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import wrap_filesystems

DRIVER_ROWS = "acidsql.driver.max.rows"


@dataclass(frozen=True)
class Ending:
    """How a script ended (``done`` or the error's condition), and the state afterwards."""

    outcome: str
    state: State


@dataclass(frozen=True)
class Course:
    """The run of a script without faults.

    Attributes:
        before: The state before.
        once: The endings of the script and of its probe.
        twice: The same after the script has run a second time.
        calls: The names of its calls.
        begins: The number of calls before each of its steps.
    """

    before: State
    once: tuple[Ending, Ending]
    twice: tuple[Ending, Ending]
    calls: list[str]
    begins: list[int]

    @cached_property
    def touched(self) -> frozenset[str]:
        """The tables that the script, or its probe, changes."""
        endings = (*self.once, *self.twice)
        return touched(self.before, *(ending.state for ending in endings))

    def step(self, at: int) -> int:
        """The number of the step that a call belongs to."""
        return max(number for number, begin in enumerate(self.begins) if begin < at)


class _LeftError(Exception):
    """Leaves a block, because a step did not end as it must."""


class World(Place):
    """A warehouse with a session in it.

    Attributes:
        session: The newest session.
        stopped: The step at which the last script ended.
        begins: The number of calls before each step of the last script.
    """

    def __init__(self, spark: Any, root: Path) -> None:
        super().__init__(root)
        self._spark = spark
        self.session: Session | None = None
        self.stopped, self.begins = 0, list[int]()
        self._courses: dict[Kind, Course] = {}
        for text in SETUP:
            assert self.run(text) == "done", text
        # Files that belong to no table, for CREATE TABLE … LOCATION.
        self.copy(self.warehouse / "p", self.warehouse / "found")
        write_incoming(self.warehouse / "incoming")
        self.is_ready()

    def run(
        self,
        what: Kind | str,
        line: Line | None = None,
        *,
        same_session: bool = False,
        start: int = 0,
    ) -> str:
        """Run a script, or one statement, in a new session or in the last one.

        Returns:
            ``done`` if every step ended as it must; otherwise the outcome of the first other step.
        """
        kind = Kind("", what) if isinstance(what, str) else what
        self._line = line or Line()
        self._use_session(
            same_session, SETTINGS.with_(DRIVER_ROWS, 0) if kind.by_jobs else SETTINGS
        )
        self.begins = []
        with wrap_filesystems(self.wrap), sql_faults(self.mine, self._line):
            return self._block(kind) if kind.block else self._steps(kind.steps, start)

    def _use_session(self, same: bool, settings: Settings) -> None:
        if same and self.session is not None:
            self.session.metastore._line = self._line  # the session goes on using its store
            return
        store = FaultyStore(self.mine, self._line)
        self.session = Session(self._spark, str(self.warehouse), store, settings, 0)
        self.session._runner._txns._sleep = lambda _: None
        # The heartbeat has no thread, which would make calls at random times. "(beat)" is a
        # heartbeat.
        self.session._runner._txns.heartbeat._thread = threading.current_thread()

    def _steps(self, steps: tuple[str, ...], start: int = 0) -> str:
        for number, step in enumerate(steps[start:], start):
            self._at(number)
            outcome = self._say(step)
            if outcome != expected(step):
                return outcome
        return "done"

    def _block(self, kind: Kind) -> str:
        assert self.session is not None
        session, outcome = self.session, "done"

        def block() -> None:
            nonlocal outcome
            with session.transaction():
                outcome = self._steps(kind.steps[:-1], 1)
                if outcome == "done":
                    self._at(len(kind.steps) - 1)
                if outcome != "done" or kind.steps[-1] == "ROLLBACK":
                    raise _LeftError

        self._at(0)
        try:
            found = _outcome(block)
        except _LeftError:
            return outcome
        return found

    def _at(self, number: int) -> None:
        self.stopped = number
        self.begins.append(len(self._line.calls))

    def _say(self, step: str) -> str:
        session = self.session
        assert session is not None
        if step == "(beat)":
            txns = session._runner._txns
            return _outcome(lambda: (txns.heartbeat.beat(), txns._on_beat()))
        text = step.format(warehouse=self.warehouse, foreign=self.foreign)
        return _outcome(lambda: session.sql(text))

    def rehearse(self, kind: Kind) -> Course:
        """Run a script without faults. The result is remembered for all tests."""
        if kind not in self._courses:
            self._courses[kind] = self._rehearse(kind)
        return self._courses[kind]

    def _rehearse(self, kind: Kind) -> Course:
        self.reset()
        before = self.state()
        once = Ending(self.run(kind), self.state())
        then = Ending(self.run(kind.probe), self.state())
        self.reset()
        line = Line()  # only now, because the first run also had to ask Spark
        self.run(kind, line)
        begins = self.begins
        twice = Ending(self.run(kind), self.state())
        last = Ending(self.run(kind.probe), self.state())
        return Course(before, (once, then), (twice, last), line.calls, begins)


def write_incoming(directory: Path) -> None:
    """Write files as another writer does, for LOAD DATA."""
    directory.mkdir()
    for number, values in enumerate([{"id": [21, 22], "v": ["p", "q"]}, {"id": [23], "v": ["r"]}]):
        arrays = [pa.array(values["id"], pa.int32()), pa.array(values["v"])]
        orc.write_table(pa.table(arrays, names=["id", "v"]), directory / f"part-0000{number}.orc")


def _outcome(do: Any) -> str:
    try:
        do()
    except (Crash, Interrupt) as error:
        return type(error).__name__
    except AcidSqlError as error:
        return error.condition
    except OSError:
        return "OSError"  # no test expects this outcome: it should be a WriteError
    except PySparkException as error:  # a name that is not an ACID table's goes to Spark
        return f"Spark: {error.getCondition()}"
    return "done"
