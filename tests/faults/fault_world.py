"""A warehouse that is put back in a moment, with sessions that can be made to fail."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fault_points import Crash, FaultyFileSystem, FaultyStore, Interrupt, Line, sql_faults
from fault_state import State, narrowed, state_of, touched
from fault_statements import SETUP, Kind
from pyspark.errors import PySparkException
from sqlalchemy import event

from acidsql.errors import AcidSqlError
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, TxnState
from acidsql.session import Session
from acidsql.settings import Settings
from acidsql.storage.filesystem import wrap_filesystems

_START_MS = 1_700_000_000_000
_NEVER_MS = 10**15
SETTINGS = Settings.of({"hive.lock.numretries": "3"})


@dataclass
class Clock:
    """The store's clock, moved by hand."""

    now_ms: int = _START_MS

    def __call__(self) -> int:
        return self.now_ms

    def past_the_time_out(self) -> None:
        """Who has not beaten until now is dead."""
        self.now_ms += SETTINGS.txn_timeout_ms + 1000


@dataclass(frozen=True)
class Ending:
    """How a statement ended: ``done`` or the error's condition, and what is seen then."""

    outcome: str
    state: State


@dataclass(frozen=True)
class Course:
    """A statement's course without any fault.

    Attributes:
        before: What is seen first.
        once: After the statement, then after its probe.
        twice: After it was run again, then after its probe.
        calls: What it called.
    """

    before: State
    once: tuple[Ending, Ending]
    twice: tuple[Ending, Ending]
    calls: list[str]

    @cached_property
    def touched(self) -> frozenset[str]:
        """The tables that the statement, or its probe, changes."""
        endings = (*self.once, *self.twice)
        return touched(self.before, *(ending.state for ending in endings))


def _with_foreign(only: frozenset[str] | None) -> frozenset[str] | None:
    return None if only is None else only | {"is open", "locks"}


class World:
    """One warehouse at one place.

    Attributes:
        warehouse: Its directory.
        clock: The store's.
        foreign: A transaction of somebody else that is open, and holds a lock nobody wants.
    """

    def __init__(self, spark: Any, root: Path) -> None:
        self._spark, self._template, self._line = spark, root / "template", Line()
        self.warehouse, self.clock = root / "warehouse", Clock()
        self.warehouse.mkdir()
        self._mine, self._theirs = self._open(), self._open()
        self.session: Session | None = None
        self._courses: dict[Kind, Course] = {}
        for text in SETUP:
            self.run(text)
        # Files of a table that nobody knows, for CREATE TABLE … LOCATION.
        shutil.copytree(self.warehouse / "p", self.warehouse / "found")
        self.foreign = self._open_foreign()
        self._let_go()
        shutil.copytree(self.warehouse, self._template)

    def reset(self) -> None:
        """Put everything back."""
        self._let_go()
        shutil.rmtree(self.warehouse)
        shutil.copytree(self._template, self.warehouse)
        self.clock.now_ms = _START_MS

    def run(self, text: str, line: Line | None = None, *, same_session: bool = False) -> str:
        """Run a statement in a new session, or in the last one; returns how it ended."""
        self._line = line or Line()
        if not same_session or self.session is None:
            store = FaultyStore(self._mine, self._line)
            self.session = Session(self._spark, str(self.warehouse), store, SETTINGS, 0)
            self.session._runner._txns._sleep = lambda _: None
        else:
            self.session.metastore._line = self._line  # the session keeps its store
        with wrap_filesystems(self._wrap), sql_faults(self._mine, self._line):
            try:
                self.session.sql(text.format(warehouse=self.warehouse, foreign=self._foreign()))
            except (Crash, Interrupt) as error:
                return type(error).__name__
            except AcidSqlError as error:
                return error.condition
            except PySparkException as error:  # what is no table of ours is passed on to Spark
                return f"Spark: {error.getCondition()}"
        return "done"

    def state(self, only: frozenset[str] | None = None) -> State:
        """What anybody else sees now; ``only`` as in ``state_of``."""
        found = state_of(self._theirs, only)
        if self._foreign():
            is_open = self._theirs.txn_state(self.foreign) is TxnState.OPEN
            locks = [lock for lock in self._theirs.show_locks() if lock.txn_id == self.foreign]
            found["(foreign transaction)"] = {"is open": is_open, "locks": len(locks)}
        return found

    def sees(self, state: State, only: frozenset[str] | None = None) -> bool:
        """True if this is what anybody else sees now."""
        return self.state(only) == narrowed(state, _with_foreign(only))

    def open_txns(self) -> list[int]:
        """Numbers of the open transactions, but for the foreign one."""
        return [
            txn.txn_id
            for txn in self._theirs.show_txns()
            if txn.state is TxnState.OPEN and txn.txn_id != self.foreign
        ]

    def committed(self) -> bool:
        """True if the newest transaction is committed: nobody may take that back."""
        newest = self.foreign
        while self._theirs.txn_state(newest + 1) is not None:
            newest += 1
        return newest > self.foreign and self._theirs.txn_state(newest) is TxnState.COMMITTED

    def rehearse(self, kind: Kind) -> Course:
        """Run a statement without faults; once for all tests."""
        if kind not in self._courses:
            self._courses[kind] = self._rehearse(kind)
        return self._courses[kind]

    def _rehearse(self, kind: Kind) -> Course:
        self.reset()
        before = self.state()
        once = Ending(self.run(kind.text), self.state())
        then = Ending(self.run(kind.probe), self.state())
        self.reset()
        line = Line()  # only now: the first time, Spark had to be asked
        self.run(kind.text, line)
        twice = Ending(self.run(kind.text), self.state())
        last = Ending(self.run(kind.probe), self.state())
        return Course(before, (once, then), (twice, last), line.calls)

    def close(self) -> None:
        """Let go of the store."""
        self._let_go()

    def _wrap(self, inner: Any) -> FaultyFileSystem:
        return FaultyFileSystem(inner, self._line)

    def _foreign(self) -> int:
        return getattr(self, "foreign", 0)

    def _open(self) -> EmbeddedMetastore:
        path = self.warehouse / ".acidsql" / "metastore.db"
        path.parent.mkdir(exist_ok=True)
        store = EmbeddedMetastore(sqlite_url(path), warehouse=str(self.warehouse), clock=self.clock)
        # A crash in process loses nothing that was written: there is no need to sync.
        event.listen(
            store._store.engine, "connect", lambda c, _: c.execute("PRAGMA synchronous = OFF")
        )
        store._store.engine.dispose()
        return store

    def _let_go(self) -> None:
        for store in (self._mine, self._theirs):
            store._store.engine.dispose()

    def _open_foreign(self) -> int:
        self.clock.now_ms = _NEVER_MS
        txn_id = self._theirs.open_txn(user="somebody", host="else")
        self._theirs.lock(txn_id, [LockComponent(LockType.SHARED_READ, "elsewhere", "z")])
        self.clock.now_ms = _START_MS
        return txn_id
