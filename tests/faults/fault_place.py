"""A warehouse that can be reset quickly. The test moves its store's clock."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_points import FaultyFileSystem, Line
from fault_state import State, differences, narrowed, state_of
from sqlalchemy import event

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, TxnInfo, TxnState
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import FileSystem

_START_MS = 1_700_000_000_000
_NEVER_MS = 10**15
SETTINGS = Settings.of({"hive.lock.numretries": "3"})
LEASE = "a lease"  # the agent_info of leases


@dataclass
class Clock:
    """The store's clock, which the test moves."""

    now_ms: int = _START_MS

    def __call__(self) -> int:
        return self.now_ms

    def past_the_time_out(self) -> None:
        """Move the clock so far that every transaction without a new heartbeat has timed out."""
        self.now_ms += SETTINGS.txn_timeout_ms + 1000


def _with_foreign(only: frozenset[str] | None) -> frozenset[str] | None:
    return None if only is None else only | {"is open", "locks"}


@dataclass(frozen=True)
class Seen:
    """True if nothing differs. An assertion that fails shows what differs."""

    differs: dict[str, tuple[Any, Any]]

    def __bool__(self) -> bool:
        return not self.differs


class Place:
    """A warehouse in one directory. Two processes have its store open.

    Attributes:
        warehouse: The directory.
        clock: The store's clock.
        mine: The store of the session that fails.
        theirs: The store of all other sessions.
        foreign: An open transaction of another session. It holds a lock that no test asks for.
        disk: A disk between the sessions' file systems and the real one, or None.
    """

    disk: Callable[[FileSystem], FileSystem] | None = None

    def __init__(self, root: Path) -> None:
        self._template, self._root = root / "template", root
        self.warehouse, self.clock, self.foreign = root / "warehouse", Clock(), 0
        self.warehouse.mkdir(parents=True)
        self.mine, self.theirs = self._open(), self._open()
        self._line = Line()

    def is_ready(self) -> None:
        """``reset`` shall restore the present state."""
        self.clock.now_ms = _NEVER_MS
        self.foreign = self.theirs.open_txn(user="somebody", host="else")
        self.theirs.lock(self.foreign, [LockComponent(LockType.SHARED_READ, "elsewhere", "z")])
        self.let_go()
        self.copy(self.warehouse, self._template)
        self.reset()

    def reset(self) -> None:
        """Restore the whole warehouse."""
        self.put_back(self._template)

    def put_back(self, copy: Path) -> None:
        """Restore the warehouse from this copy."""
        self.let_go()
        shutil.rmtree(self.warehouse)
        self.copy(copy, self.warehouse)
        self.clock.now_ms = _START_MS

    @staticmethod
    def copy(source: Path, target: Path) -> None:
        """Copy a directory without the index of SQLite's log, which SQLite makes again."""
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*-shm"))

    def let_go(self) -> None:
        """Close all connections, so that files can be replaced."""
        for store in (self.mine, self.theirs):
            store._store.engine.dispose()

    # ── what is seen ─────────────────────────────────────────────────────────────────────────

    def state(self, only: frozenset[str] | None = None) -> State:
        """The state that other sessions see now; ``only`` as in ``state_of``."""
        found = state_of(self.theirs, only)
        if self.foreign:
            is_open = self.theirs.txn_state(self.foreign) is TxnState.OPEN
            locks = [lock for lock in self.theirs.show_locks() if lock.txn_id == self.foreign]
            found["(foreign transaction)"] = {"is open": is_open, "locks": len(locks)}
        return found

    def sees(self, state: State, only: frozenset[str] | None = None) -> Seen:
        """True if other sessions see this state now."""
        return Seen(differences(self.state(only), narrowed(state, _with_foreign(only))))

    def open_txns(self) -> list[int]:
        """The numbers of the open transactions, without the foreign one, and without those that
        live as long as their session: leases, and those that hold temporary tables."""
        return [
            txn.txn_id
            for txn in self._open_txns()
            if not (txn.is_session or txn.agent_info.startswith(LEASE))
        ]

    def is_at_rest(self) -> bool:
        """No transaction but the foreign one is open, and none holds or waits for a lock."""
        locks = {lock.txn_id for lock in self.theirs.show_locks()} - {self.foreign}
        return not locks and not self.open_txns()

    def time_out(self) -> None:
        """Abort the transactions of dead sessions, as any session does that waits for a lock."""
        self.clock.past_the_time_out()
        self.theirs.abort_timed_out(SETTINGS.txn_timeout_ms)

    def newest(self) -> int:
        """The number of the newest transaction."""
        newest = self.foreign
        while self.theirs.txn_state(newest + 1) is not None:
            newest += 1
        return newest

    def committed(self) -> bool:
        """True if the newest transaction is committed. Then nothing may undo it."""
        newest = self.newest()
        return newest > self.foreign and self.theirs.txn_state(newest) is TxnState.COMMITTED

    def _open_txns(self) -> Iterator[TxnInfo]:
        for txn in self.theirs.show_txns():
            if txn.state is TxnState.OPEN and txn.txn_id != self.foreign:
                yield txn

    def wrap(self, inner: Any) -> FaultyFileSystem:
        """Put the present line between a session and its file system."""
        return FaultyFileSystem(self.disk(inner) if self.disk else inner, self._line)

    def _open(self) -> EmbeddedMetastore:
        path = self.warehouse / ".acidsql" / "metastore.db"
        path.parent.mkdir(exist_ok=True)
        store = EmbeddedMetastore(sqlite_url(path), warehouse=str(self.warehouse), clock=self.clock)
        # A process that dies loses nothing that was written, so syncs are left out.
        event.listen(
            store._store.engine, "connect", lambda c, _: c.execute("PRAGMA synchronous = OFF")
        )
        store._store.engine.dispose()
        return store


@dataclass
class Deaths:
    """Copies of the warehouse before each call of a session, if something has changed since the
    copy before.

    A session that dies at a call makes no later call. So such a copy is what the death leaves, and
    the session itself can run on. (Data that it has not yet handed to the operating system is lost,
    as after a real death.)

    Attributes:
        place: The warehouse to watch.
        found: For each copy: the number of the call, its name, and the copy.
    """

    place: Place
    directory: Path
    found: list[tuple[int, str, Path]] = field(default_factory=list)
    _last: str = ""

    def __call__(self, number: int, name: str) -> None:
        """Called before each call: make a copy if the warehouse has changed."""
        now = self._print()
        if now != self._last:
            self._last = now
            copy = self.directory / str(len(self.found))
            self.place.copy(self.place.warehouse, copy)
            self.found.append((number, name, copy))

    def _print(self) -> str:
        """A fingerprint of everything that a reader can tell apart."""
        found = hashlib.md5()
        for path in sorted(self.place.warehouse.rglob("*")):
            if path.name.endswith("-shm"):
                continue
            stat = path.stat()
            found.update(f"{path} {stat.st_ino} {stat.st_size if path.is_file() else ''}".encode())
            if path.parent.name == ".acidsql":
                found.update(path.read_bytes())
        return found.hexdigest()
