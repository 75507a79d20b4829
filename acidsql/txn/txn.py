"""One transaction, from ``TxnManager.open`` to its end; the session's own thread uses it.

=========  ==========================================================================
phase      a transaction gets into this phase when …
=========  ==========================================================================
OPEN       ``TxnManager.open`` opens it. It stays OPEN after a COMMIT that the store
           refuses (WriteConflictError), or did not carry out (MetastoreError).
COMMITTED  ``commit`` succeeds. If the reply to COMMIT is lost, ``commit`` asks the
           store for the transaction's state.
ABORTED    ``abort`` is called, a ``with`` block ends without ``commit``, or the store
           tells the heartbeat or a call that others have aborted the transaction.
UNKNOWN    The reply to COMMIT is lost, and the store does not answer the question
           either (CommitUnknownError). The same if COMMIT was interrupted and the
           store does not answer ``abort``. There are no more heartbeats: if the
           transaction is not committed, it will time out.
=========  ==========================================================================

Inside OPEN the order is *lock, then look* (I6): ``lock`` → ``snapshot`` → ``write_id`` → other
modules write and publish files → ``commit``, the only commit point.

In a transaction of several statements each statement goes through the same steps, but all of them
use the snapshot of the first. So ``lock`` checks whether another transaction has committed a
change to the same thing since the snapshot, and ``undo`` forgets one statement. The store decides
every transition. The phase that is kept here only saves questions to the store.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from types import TracebackType

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import (
    AcidSqlError,
    CommitUnknownError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnError,
    WriteConflictError,
)
from acidsql.metastore import conflict_rules
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.interface import (
    PLAIN_COMMIT,
    Commit,
    LockComponent,
    TxnState,
    TxnStore,
)
from acidsql.txn.heartbeat import Heartbeat
from acidsql.txn.locks import AcquiredLock, LockWaiter
from acidsql.txn.snapshot import Snapshot, snapshot_of

_log = logging.getLogger(__name__)

MAX_STATEMENT_ID = 4095  # twelve bits of the bucket property (Hive: BucketCodec.V1)


class Phase(Enum):
    """The phases in the table above."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"


class Txn:
    """One transaction. ``TxnManager.open`` makes it. Several threads must not use it at once.

    As a context manager, the transaction aborts at the end of the block if it was not committed.

    Attributes:
        id: The transaction's number. ``snapshot`` may change it (see ``TxnStore.renew``).
    """

    def __init__(
        self,
        txn_id: int,
        store: TxnStore,
        heartbeat: Heartbeat,
        waiter: LockWaiter,
        *,
        multi_statement: bool = False,
    ) -> None:
        self.id, self._multi_statement = txn_id, multi_statement
        self._store, self._heartbeat, self._waiter = store, heartbeat, waiter
        self._phase = Phase.OPEN
        self._valid_txns: ValidTxnList | None = None
        self._recorded: list[LockComponent] = []
        self._in_doubt = self._unheard = False
        self._next_statement_id = 0

    @property
    def phase(self) -> Phase:
        """The transaction's phase in the table above, as far as this process knows."""
        return self._phase

    @property
    def has_snapshot(self) -> bool:
        """Whether the snapshot is taken; it is never refreshed (I6)."""
        return self._valid_txns is not None

    def forget_snapshot(self) -> None:
        """Drop the snapshot, so that the next call of ``snapshot`` takes a new one. Call this only
        before the first read or write (I6), which is not checked here."""
        self._valid_txns = None

    @property
    def mark(self) -> int:
        """How many lock components the transaction has recorded so far; an argument for
        ``undo``."""
        return len(self._recorded)

    def lock(
        self, components: Sequence[LockComponent], *, agent_info: str | None = None
    ) -> AcquiredLock:
        """Record the components, for ``undo`` even if the wait fails, and wait for all of
        these locks. The transaction holds the locks until it ends.

        Args:
            components: What to lock.
            agent_info: The statement that asks for the locks. Transactions that wait for these
                locks see its text.

        Returns:
            The lock's number, and whether the transaction had to wait. If so, look up names and
            types again.

        Raises:
            LockTimeoutError: The locks were not granted in time; the error names the transaction
                that is in the way. This transaction is still open.
            WriteConflictError: This transaction has its snapshot already, and since then another
                transaction has committed a change to something that these components change. The
                locks are held.
            TxnAbortedError: The transaction was aborted, perhaps to end a deadlock.
            NoSuchTxnError: The transaction has ended.
            MetastoreError: The store did not answer.
        """
        with self._while_open():
            self._recorded += components
            acquired = self._waiter.acquire(self.id, components, agent_info)
            self._refuse_changed_since_snapshot(components)
            return acquired

    def undo(self, mark: int) -> None:
        """Forget, here and in the store, the lock components that were recorded since ``mark``, so
        that COMMIT does not count them as changes; the locks stay. May be repeated.

        Raises:
            TxnAbortedError: The transaction was aborted.
            NoSuchTxnError: The transaction has ended.
            MetastoreError: The store did not answer.
        """
        with self._while_open():
            self._store.restore_components(self.id, self._recorded[:mark])
            del self._recorded[mark:]

    def snapshot(self, tables: Sequence[TableName]) -> Snapshot:
        """Return what the transaction sees in these tables. Call it after the first locks (I6).

        The first call decides which transactions count as committed, for all later calls, too; it
        may change ``id``. If the transaction may have several statements, the store remembers
        changes of the catalog for it from now on.

        A call without tables decides nothing, and returns a snapshot in which nothing is valid, if
        the transaction has one statement and the metastore compares no snapshots at COMMIT.

        Raises:
            TxnAbortedError: The transaction was aborted.
            NoSuchTxnError: The transaction has ended.
            MetastoreError: The store did not answer.
        """
        with self._while_open():
            if self._valid_txns is None:
                is_blind = not tables and not self._multi_statement
                if is_blind and not self._store.abilities.compares_snapshots:
                    return Snapshot(ValidTxnList(0), held_by=self.id)
                self._renew()
                self._store.keep_files(self.id, tables)
                if self._multi_statement:  # they will ask for ``catalog_changes``
                    self._store.watch_catalog(self.id)
                self._valid_txns = self._store.valid_txns(self.id)
            else:
                self._store.keep_files(self.id, tables)
            return snapshot_of(self._store, self._valid_txns, tables, self.id)

    def _renew(self) -> None:
        """Let the store renew the transaction right before its snapshot, and take the number that
        the store gives. If it is another one, heartbeats go to it, and no more to the old one. The
        store's errors pass."""
        old_id, self.id = self.id, self._store.renew(self.id)
        if self.id != old_id:
            self._heartbeat.watch(self)
            self._heartbeat.forget(old_id)

    def catalog_changes(self, table: TableName) -> list[CatalogChange]:
        """Return the changes that others have made to a name in the catalog since the snapshot;
        none before the snapshot is taken.

        Read the catalog first, then call this method: if the list is empty, the catalog's answer
        holds for the snapshot, too.

        Raises:
            TxnAbortedError: The transaction was aborted.
            NoSuchTxnError: The transaction has ended.
            MetastoreError: The store did not answer.
        """
        if self._valid_txns is None:
            return []
        with self._while_open():
            return self._store.catalog_changes(self.id, self._valid_txns, table)

    def write_id(self, table: TableName) -> int:
        """Return the transaction's write id in a table. The store allocates it at the first call,
        and gives the same at every other call."""
        with self._while_open():
            return self._store.allocate_write_id(self.id, table)

    def record_partitions(self, table: TableName, partitions: Collection[str]) -> None:
        """Tell the store in which partitions (names) of a table a statement is about to publish
        directories."""
        with self._while_open():
            self._store.record_partitions(self.id, table, partitions)

    def next_statement_id(self) -> int:
        """Use up and return the next statement id: 0, 1, 2, …. Raises TxnError TOO_MANY_STATEMENTS
        after 4095, and as other methods if the transaction has ended."""
        with self._while_open():
            if self._next_statement_id > MAX_STATEMENT_ID:
                raise TxnError(
                    f"Transaction {self.id} has {MAX_STATEMENT_ID + 1} writing statements, the "
                    "most that Hive's format can number. Commit and go on in another one.",
                    condition="TOO_MANY_STATEMENTS",
                    sqlstate="54000",
                    txnId=self.id,
                )
            self._next_statement_id += 1
            return self._next_statement_id - 1

    def commit(self, commit: Commit = PLAIN_COMMIT) -> None:
        """The commit point: returns only if the transaction is committed.

        Args:
            commit: What changes in the same step. The snapshot is the transaction's own.

        Raises:
            TxnAbortedError: The transaction was aborted before.
            TxnError: COMPACTION_LOST: the entry of the compaction queue belongs to another
                transaction now. This transaction is still open.
            WriteConflictError: Another transaction committed a change to the same thing first.
                This transaction is still open, unless the error says that it has ``ended``.
            StreamError, CatalogError: The store refuses what ``commit`` names. This transaction is
                still open.
            CommitUnknownError: Nobody knows now whether the transaction is committed. Ask
                ``TxnStore.txn_state`` for its number later.
            MetastoreError: The store did not commit. The transaction is still open.
        """
        with self._while_open():
            self._in_doubt = True  # after any interruption from here on it may be committed
            try:
                self._store.commit_txn(self.id, replace(commit, snapshot=self._valid_txns))
            except MetastoreError as lost:
                self._need_committed(lost)
            except WriteConflictError as error:
                self._in_doubt = False
                if error.ended:
                    self._end(Phase.ABORTED)
                raise
            except AcidSqlError:
                self._in_doubt = False
                raise
            self._end(Phase.COMMITTED)

    def abort(self, reason: str = "") -> None:
        """Abort the transaction: nobody will ever see its writes. Its heartbeat stops, whatever the
        store answers. Nothing happens if it has ended otherwise than by COMMIT. May be repeated:
        the store is asked again if it has not answered yet.

        Raises:
            TxnError: The transaction is committed.
            NoSuchTxnError: The store does not know it any more; ``phase`` says how it ended.
            MetastoreError: The store cannot be reached. The transaction will time out. ``phase`` is
                UNKNOWN if COMMIT was interrupted before, otherwise ABORTED.
        """
        if self._phase is Phase.COMMITTED:
            raise _not_open_error(self.id, self._phase)
        if self._phase is not Phase.OPEN and not self._unheard:
            return
        # First stop the heartbeat: if the store does not answer now, the transaction times out.
        self._end(Phase.ABORTED)
        self._unheard = True  # until the store has answered; so a repeated call asks it again
        try:
            self._store.abort_txn(self.id, reason)
            self._unheard = False
        except NoSuchTxnError:
            self._phase = self._phase_in_store()
            raise
        except MetastoreError:
            if self._in_doubt:
                self._phase = Phase.UNKNOWN
            raise

    @property
    def is_alive(self) -> bool:
        """True if the transaction is open here and in the store: others may have aborted it."""
        return self._phase is Phase.OPEN and self._store.txn_state(self.id) is TxnState.OPEN

    def end_quietly(self) -> None:
        """Commit a transaction that only read. If COMMIT fails, this is only logged, and the
        transaction gets no more heartbeats, so it times out."""
        try:
            self.commit()
        except AcidSqlError as error:
            _log.warning("Transaction %d could not be ended: %s", self.id, error)
            self._heartbeat.forget(self.id)

    def __enter__(self) -> Txn:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._phase is Phase.OPEN:
            reason = f"{kind.__name__}: {error}" if kind else "it was left without COMMIT"
            abort_quietly(self, reason)

    def _refuse_changed_since_snapshot(self, components: Sequence[LockComponent]) -> None:
        """Raise WriteConflictError if another transaction has committed a conflicting change to
        what these components change since this transaction's snapshot; without a snapshot there is
        nothing to check. If rows are compared (``acidsql.conflict.detection``), conflicts that may
        be about different rows are left to COMMIT."""
        if self._valid_txns is None:
            return
        conflicts = self._store.write_conflicts(self.id, self._valid_txns, components)
        # Only COMMIT can tell whether the two transactions changed a common row.
        by_row = self._waiter.settings.conflicts_by_row
        certain = [conflict for conflict in conflicts if not (by_row and conflict.by_row)]
        if certain:
            raise conflict_rules.conflict_error(self.id, certain)

    def _phase_in_store(self) -> Phase:
        """Ask the store how the transaction ended, after it has said that no open one has this
        number: COMMITTED or ABORTED; UNKNOWN if it does not answer, does not know it, or says
        otherwise.

        It may be committed, if the user interrupted COMMIT; then no file of it may be deleted.
        """
        try:
            state = self._store.txn_state(self.id)
        except MetastoreError:
            return Phase.UNKNOWN
        phases = {TxnState.COMMITTED: Phase.COMMITTED, TxnState.ABORTED: Phase.ABORTED}
        return Phase.UNKNOWN if state is None else phases.get(state, Phase.UNKNOWN)

    def _need_committed(self, lost_reply_error: MetastoreError) -> None:
        """Return if the store has committed although the reply to COMMIT was lost; raise otherwise.
        After a CommitUnknownError the phase is UNKNOWN.

        Raises:
            MetastoreError: The error ``lost_reply_error``: the transaction is still open.
            TxnAbortedError: It was aborted before.
            CommitUnknownError: The store does not answer, or does not know the transaction.
        """
        try:
            state = self._store.txn_state(self.id)
        except MetastoreError:
            state = None
        if state is TxnState.COMMITTED:
            return
        if state is TxnState.OPEN:
            self._in_doubt = False
            raise lost_reply_error
        if state is TxnState.ABORTED:
            raise TxnAbortedError(
                f"Transaction {self.id} was aborted before its COMMIT.", txnId=self.id
            ) from lost_reply_error
        self._end(Phase.UNKNOWN)
        raise CommitUnknownError(
            f"The metastore did not answer the COMMIT of transaction {self.id}: it may have "
            "happened or not. Do not run the statement again before you know: when the metastore "
            f"answers, SHOW TRANSACTIONS lists {self.id} as OPEN or ABORTED if it did not happen.",
            txnId=self.id,
        ) from lost_reply_error

    @contextmanager
    def _while_open(self) -> Iterator[None]:
        """Run a block that needs an open transaction. If the block's error, or an earlier
        heartbeat, says that the transaction has ended, note this and raise the error.

        Raises:
            TxnError: The transaction has ended; TxnAbortedError if it was aborted.
        """
        if self._phase is not Phase.OPEN:
            raise _not_open_error(self.id, self._phase)
        try:
            self._heartbeat.check(self.id)
            yield
        except TxnAbortedError:
            self._end(Phase.ABORTED)
            raise
        except NoSuchTxnError:
            self._end(self._phase_in_store())
            raise

    def _end(self, phase: Phase) -> None:
        """Note the phase, and send no more heartbeats. The store is told nothing."""
        self._phase = phase
        self._heartbeat.forget(self.id)


def abort_quietly(txn: Txn, reason: str) -> bool:
    """Abort, and only log a failure: for callers that are raising another error already.

    A transaction that cannot be aborted now has no heartbeat any more, so it times out.

    Returns:
        True if the transaction is aborted. False: the store did not answer or the transaction may
        be committed, if the user interrupted COMMIT.
    """
    try:
        txn.abort(reason)
    except AcidSqlError as error:
        _log.warning("Transaction %d could not be aborted: %s", txn.id, error)
        return False
    return txn.phase is Phase.ABORTED


def _not_open_error(txn_id: int, phase: Phase) -> TxnError:
    """Make the error for the use of a transaction that has ended: TxnAbortedError if it was
    aborted, otherwise TxnError."""
    if phase is Phase.ABORTED:
        return TxnAbortedError(f"Transaction {txn_id} was aborted.", txnId=txn_id)
    return TxnError(f"Transaction {txn_id} is {phase.value}.", txnId=txn_id)
