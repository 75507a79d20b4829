"""The session's transaction: that of one statement, or BEGIN … COMMIT over several.

A statement publishes its directories when it ends; its write id is open still, so only its own
transaction sees them. ``Work`` notes what a statement has published, so that it can be undone:

* a statement that fails in a transaction of its own takes the transaction with it: abort, then
  delete what nobody will ever see;
* one that fails between BEGIN and COMMIT, or that ROLLBACK TO undoes, is taken out of a
  transaction that goes on: its directories must be gone, durably, before COMMIT can make the
  write id visible. While one of them is there, COMMIT is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import (
    AcidSqlError,
    TxnError,
    UnsupportedError,
    WriteConflictError,
    WriteError,
)
from acidsql.metastore.interface import WriteConflict
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.publish import Published, discard
from acidsql.storage.save import Writing
from acidsql.txn import Phase, Txn, abort_quietly

# Whether two transactions changed a common row: the conflict, the directories that we published.
SameRows = Callable[[WriteConflict, Sequence[str]], bool]


@dataclass(slots=True)
class Work:
    """What one statement has published so far.

    Attributes:
        mark: How much its transaction had recorded before it.
        published: Each table and what was put there.
        when_committed: Called once its transaction is committed.
    """

    mark: int
    published: list[tuple[Table, Published]] = field(default_factory=list)
    when_committed: list[Callable[[], None]] = field(default_factory=list)
    _moved: list[tuple[Table, Sequence[str]]] = field(default_factory=list)

    def publish(self, table: Table, writing: Writing) -> Published:
        """Publish what was written to a table, noting each directory even if it then fails."""
        self._moved.append((table, writing.directories))
        published = writing.publish()
        self.add(table, published)
        return published

    def add(self, table: Table, published: Published) -> None:
        """Note what was put into a table."""
        self.published.append((table, published))

    @property
    def directories(self) -> list[tuple[Table, str]]:
        """Each directory that it has put, or was about to put, into its place."""
        done = [(table, one.directories) for table, one in self.published]
        found = {path: table for table, paths in (*self._moved, *done) for path in paths}
        return [(table, path) for path, table in found.items()]


class Transaction:
    """One transaction of a session.

    Args:
        txn: The transaction.
        several: It is BEGIN's: a statement that fails is undone, and it goes on.
        read_only: Nothing may be changed in it.
        in_block: A ``with acid.transaction()`` block began it, and ends it.
        on_commit: Told when it is committed.

    Attributes:
        works: What its statements have published, but for those that were undone.
        rolled_back: Its own session has given it up.
        when_abandoned: Called once it is certain that it will never be committed.
        compaction: What the compactor has found about what it wrote, when it has looked.
    """

    def __init__(
        self,
        txn: Txn,
        *,
        several: bool = False,
        read_only: bool = False,
        in_block: bool = False,
        on_commit: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        self.txn, self.works = txn, list[Work]()
        self.when_abandoned: list[Callable[[], None]] = []
        self.rolled_back = False
        self.read_only, self.in_block = read_only, in_block
        self._several, self._on_commit = several, on_commit
        self.compaction: list[str] = []
        self._savepoints: dict[str, tuple[int, int]] = {}
        self._undone: list[str] = []  # directories that must be gone before COMMIT
        self._broken: str | None = None

    @property
    def id(self) -> int:
        """Its number, as SHOW TRANSACTIONS lists it."""
        return self.txn.id

    # ── statements ───────────────────────────────────────────────────────────────────────────

    @contextmanager
    def statement(self) -> Iterator[Work]:
        """Run one statement; what a failed one has published is undone."""
        self._refuse_broken()
        work = Work(self.txn.mark)
        self.works.append(work)
        try:
            yield work
        except BaseException:
            if self._several and self.txn.phase is Phase.OPEN:
                self._undo_quietly(len(self.works) - 1, work.mark)
            raise

    def refuse_hidden(self, table: Table, partitions: Iterable[str]) -> None:
        """An overwritten partition cannot be changed again: its base hides all that has the same
        write id.

        Raises:
            UnsupportedError: One of these was overwritten by an earlier statement.
        """
        overwritten = {
            partition
            for work in self.works[:-1]
            for changed, done in work.published
            if done.overwrote and changed.name == table.name
            for partition in done.partitions
        }
        for partition in partitions:
            if partition in overwritten:
                raise UnsupportedError(
                    f"This transaction has overwritten {table.name}"
                    + (f"/{partition}" if partition else "")
                    + ", and Hive's format cannot change it again under the same write id. COMMIT "
                    "first, or change it before INSERT OVERWRITE or TRUNCATE.",
                    condition="UNSUPPORTED_FEATURE.CHANGE_AFTER_OVERWRITE",
                )

    # ── savepoints ───────────────────────────────────────────────────────────────────────────

    def savepoint(self, name: str) -> None:
        """Mark this moment, to roll back to; a name that is used again moves.

        Raises:
            TxnError: An earlier statement could not be undone.
        """
        self._refuse_broken()
        self._savepoints.pop(name.lower(), None)
        self._savepoints[name.lower()] = (len(self.works), self.txn.mark)

    def release(self, name: str) -> None:
        """Forget a savepoint and those after it; what was done since stays."""
        self._find(name)
        self._forget_from(name.lower())

    def rollback(self, to: str | None = None) -> None:
        """Undo all of it, or all since a savepoint; locks stay in the latter case.

        Raises:
            TxnError: There is no such savepoint, or the transaction has ended otherwise.
            WriteError: What was written cannot be deleted: now all of it must be rolled back.
        """
        if to is None:
            self.rolled_back = True
            self.abandon("ROLLBACK")
            if self.txn.phase is not Phase.ABORTED:
                raise TxnError(f"Transaction {self.id} is {self.txn.phase.value}.")
            return
        count, mark = self._find(to)
        self._forget_from(to.lower())
        self._savepoints[to.lower()] = (count, mark)
        with file_errors():
            self._undo(count, mark)

    def _find(self, name: str) -> tuple[int, int]:
        found = self._savepoints.get(name.lower())
        if found is None:
            raise TxnError(
                f"Transaction {self.id} has no savepoint '{name}'.",
                condition="NO_SUCH_SAVEPOINT",
                sqlstate="3B001",
                savepoint=name,
            )
        return found

    def _forget_from(self, name: str) -> None:
        names = list(self._savepoints)
        for later in names[names.index(name) :]:
            del self._savepoints[later]

    # ── ends ─────────────────────────────────────────────────────────────────────────────────

    def commit(self, same_rows: SameRows | None = None, **keywords: Any) -> None:
        """The commit point of all statements; keywords as ``Txn.commit``.

        Args:
            same_rows: Looks at the rows where another transaction changed the same partition
                first; None: that alone is a conflict.
            **keywords: For ``Txn.commit``.

        Raises:
            WriteConflictError: Others were first. The transaction is still open.
            TxnError: It cannot be committed; roll it back.
            CommitUnknownError: Nobody can tell now.
        """
        with file_errors():
            self._refuse_broken()
        resolved: set[int] = set()
        while True:
            try:
                self.txn.commit(resolved=resolved, add_partitions=self.partitions(), **keywords)
                break
            except WriteConflictError as error:
                if same_rows is None:
                    raise
                ours = [path for _, path in self._directories(self.works)]
                if any(not one.by_row or same_rows(one, ours) for one in error.conflicts):
                    raise
                resolved |= {one.txn_id for one in error.conflicts}
        for act in (act for work in self.works for act in work.when_committed):
            act()
        self._on_commit(self)

    def abandon(self, reason: str) -> bool:
        """Abort, and delete what can never be seen.

        Returns:
            False, with nothing deleted, if COMMIT may have happened.
        """
        if self.txn.phase in (Phase.UNKNOWN, Phase.COMMITTED):
            return False
        if not abort_quietly(self.txn, reason):
            return False
        for table, directory in self._directories(self.works):
            discard(filesystem_for(table.location), [directory])
        for act in self.when_abandoned:
            act()
        return True

    @property
    def places(self) -> list[tuple[TableName, str | None]]:
        """The tables that it has written to, or their partitions (None: there are none)."""
        return [
            (table.name, partition or None)
            for work in self.works
            for table, done in work.published
            for partition in done.partitions
        ]

    def partitions(self) -> dict[TableName, list[Partition]]:
        """The partitions that it has written to, by table; the store may know them or not."""
        found: dict[TableName, dict[str, Partition]] = {}
        for work in self.works:
            for table, done in work.published:
                if table.partition_columns:
                    found.setdefault(table.name, {}).update(
                        (name, _partition(table, name)) for name in done.partitions
                    )
        return {name: list(partitions.values()) for name, partitions in found.items()}

    @staticmethod
    def _directories(works: Sequence[Work]) -> list[tuple[Table, str]]:
        return [found for work in works for found in work.directories]

    # ── undoing a part ───────────────────────────────────────────────────────────────────────

    def _undo(self, count: int, mark: int) -> None:
        """Take all works from ``count`` on out of a transaction that goes on."""
        # Whatever stops this half-way, COMMIT must not happen.
        self._broken = "an earlier statement of it could not be undone"
        # The store first: nothing may be deleted of a transaction that is not open any more.
        self.txn.undo(mark)
        for table, directory in self._directories(self.works[count:]):
            _delete(table, directory)
            self._undone.append(directory)
        del self.works[count:]
        self._broken = None

    def _undo_quietly(self, count: int, mark: int) -> None:
        """The statement's own error is on its way; that it is not undone is told by the next."""
        try:
            self._undo(count, mark)
        except (AcidSqlError, OSError) as error:
            self._broken = f"an earlier statement of it could not be undone ({error})"

    def _refuse_broken(self) -> None:
        if self.txn.phase is not Phase.OPEN:
            return  # that comes first, and the next call of the store says it
        # A later statement may have put a base where an undone one's was.
        kept = {path for _, path in self._directories(self.works)}
        gone = (path for path in self._undone if path not in kept)
        left = [path for path in gone if filesystem_for(path).exists(path)]
        reason = f"'{left[0]}' of an undone statement is there" if left else self._broken
        if reason is not None:
            raise TxnError(
                f"Transaction {self.id} can only be rolled back: {reason}. Say ROLLBACK.",
                condition="IN_FAILED_TRANSACTION",
                sqlstate="25P02",
                txnId=self.id,
            )


@contextmanager
def file_errors() -> Iterator[None]:
    """Raise WriteError where a file could not be read or written."""
    try:
        yield
    except ConnectionError:
        raise  # it is Spark that is gone
    except OSError as error:
        raise WriteError(
            f"A file could not be read or written: {error}.", path=error.filename
        ) from error


def _partition(table: Table, name: str) -> Partition:
    values = tuple(value for _, value in parse_partition_name(name))
    return Partition(values, f"{table.location}/{name}")


def _delete(table: Table, directory: str) -> None:
    """Delete a published directory so that not even a power cut brings it back."""
    fs, parent = filesystem_for(table.location), directory.rpartition("/")[0]
    fs.delete_directory(directory)
    if fs.exists(parent):
        fs.sync_directory(parent)
