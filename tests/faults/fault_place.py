"""A warehouse that is put back in a moment, its store with a clock moved by hand."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_points import FaultyFileSystem, Line
from fault_state import State, narrowed, state_of
from sqlalchemy import event

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, TxnInfo, TxnState
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import FileSystem

_START_MS = 1_700_000_000_000
_NEVER_MS = 10**15
SETTINGS = Settings.of({"hive.lock.numretries": "3"})
LEASE = "a lease"  # what the open transactions that keep files for readers are called


@dataclass
class Clock:
    """The store's clock, moved by hand."""

    now_ms: int = _START_MS

    def __call__(self) -> int:
        return self.now_ms

    def past_the_time_out(self) -> None:
        """Who has not beaten until now is dead."""
        self.now_ms += SETTINGS.txn_timeout_ms + 1000


def _with_foreign(only: frozenset[str] | None) -> frozenset[str] | None:
    return None if only is None else only | {"is open", "locks"}


class Place:
    """One warehouse at one place, and its store as two processes have it open.

    Attributes:
        warehouse: Its directory.
        clock: The store's.
        mine: The store of the session that fails.
        theirs: The store of everybody else.
        foreign: A transaction of somebody else that is open, and holds a lock nobody wants.
        disk: What stands between the sessions' file systems and the real one, if anything does.
    """

    disk: Callable[[FileSystem], FileSystem] | None = None

    def __init__(self, root: Path) -> None:
        self._template, self._root = root / "template", root
        self.warehouse, self.clock, self.foreign = root / "warehouse", Clock(), 0
        self.warehouse.mkdir(parents=True)
        self.mine, self.theirs = self._open(), self._open()
        self._line = Line()

    def is_ready(self) -> None:
        """What is there now is what ``reset`` puts back."""
        self.clock.now_ms = _NEVER_MS
        self.foreign = self.theirs.open_txn(user="somebody", host="else")
        self.theirs.lock(self.foreign, [LockComponent(LockType.SHARED_READ, "elsewhere", "z")])
        self.let_go()
        self.copy(self.warehouse, self._template)
        self.reset()

    def reset(self) -> None:
        """Put everything back."""
        self.put_back(self._template)

    def put_back(self, copy: Path) -> None:
        """Let the warehouse be what it was when this copy was made."""
        self.let_go()
        shutil.rmtree(self.warehouse)
        self.copy(copy, self.warehouse)
        self.clock.now_ms = _START_MS

    @staticmethod
    def copy(source: Path, target: Path) -> None:
        """Copy a directory, but for SQLite's index of its log, which it makes anew."""
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*-shm"))

    def let_go(self) -> None:
        """Close all connections, so that files can be replaced."""
        for store in (self.mine, self.theirs):
            store._store.engine.dispose()

    # ── what is seen ─────────────────────────────────────────────────────────────────────────

    def state(self, only: frozenset[str] | None = None) -> State:
        """What anybody else sees now; ``only`` as in ``state_of``."""
        found = state_of(self.theirs, only)
        if self.foreign:
            is_open = self.theirs.txn_state(self.foreign) is TxnState.OPEN
            locks = [lock for lock in self.theirs.show_locks() if lock.txn_id == self.foreign]
            found["(foreign transaction)"] = {"is open": is_open, "locks": len(locks)}
        return found

    def sees(self, state: State, only: frozenset[str] | None = None) -> bool:
        """True if this is what anybody else sees now."""
        return self.state(only) == narrowed(state, _with_foreign(only))

    def open_txns(self) -> list[int]:
        """Numbers of the open transactions, but for the foreign one, and for leases: these live
        as long as their session."""
        return [txn.txn_id for txn in self._open_txns() if not txn.agent_info.startswith(LEASE)]

    def is_at_rest(self) -> bool:
        """Nobody holds or waits for a lock, but for the foreign transaction; none is open."""
        locks = {lock.txn_id for lock in self.theirs.show_locks()} - {self.foreign}
        return not locks and not self.open_txns()

    def time_out(self) -> None:
        """Those whose session is dead are found out, as by anybody who waits for a lock."""
        self.clock.past_the_time_out()
        self.theirs.abort_timed_out(SETTINGS.txn_timeout_ms)

    def newest(self) -> int:
        """The number of the newest transaction."""
        newest = self.foreign
        while self.theirs.txn_state(newest + 1) is not None:
            newest += 1
        return newest

    def committed(self) -> bool:
        """True if the newest transaction is committed: nobody may take that back."""
        newest = self.newest()
        return newest > self.foreign and self.theirs.txn_state(newest) is TxnState.COMMITTED

    def _open_txns(self) -> Iterator[TxnInfo]:
        for txn in self.theirs.show_txns():
            if txn.state is TxnState.OPEN and txn.txn_id != self.foreign:
                yield txn

    def wrap(self, inner: Any) -> FaultyFileSystem:
        """Put the present line in front of a file system."""
        return FaultyFileSystem(self.disk(inner) if self.disk else inner, self._line)

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


@dataclass
class Deaths:
    """What a session would leave if it died at any of its calls: a copy of the warehouse before
    each call that is not as it was before the one before.

    To die is to do nothing more, so the session need not really die: it is watched while it runs
    through, and what lies on the disk is kept. (What it has not yet handed to the system is lost
    with it, as it should be.)

    Attributes:
        place: What is watched.
        found: The number of a call, its name, and what there was before it.
    """

    place: Place
    directory: Path
    found: list[tuple[int, str, Path]] = field(default_factory=list)
    _last: str = ""

    def __call__(self, number: int, name: str) -> None:
        """Before a call: keep what there is, if it is new."""
        now = self._print()
        if now != self._last:
            self._last = now
            copy = self.directory / str(len(self.found))
            self.place.copy(self.place.warehouse, copy)
            self.found.append((number, name, copy))

    def _print(self) -> str:
        """A fingerprint of all that a reader can tell apart."""
        found = hashlib.md5()
        for path in sorted(self.place.warehouse.rglob("*")):
            if path.name.endswith("-shm"):
                continue
            stat = path.stat()
            found.update(f"{path} {stat.st_ino} {stat.st_size if path.is_file() else ''}".encode())
            if path.parent.name == ".acidsql":
                found.update(path.read_bytes())
        return found.hexdigest()
