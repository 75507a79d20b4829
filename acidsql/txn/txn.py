"""The life of a transaction, as the session's own thread leads it.

::

              TxnManager.open
                     │
                     ▼        heartbeat, or any call: the store says it was aborted
        ┌────────── OPEN ───────────────────────────────────────────────┐
        │            │ │                                                │
        │ Txn.commit │ │ Txn.abort (leaving ``with`` without commit)    │
        │            │ └─────────────────────────────────────────────┐  │
        │            │                                               ▼  ▼
        │            │ Txn._ask_what_became: the reply was lost  → ABORTED
        │            │          │             │
        │            ▼          ▼             │ not even that was answered
        └──────► COMMITTED ◄────┘             ▼
                                           UNKNOWN (CommitUnknownError; it is left to time out)

Inside OPEN the order is *lock, then look* (I6): ``lock`` → ``snapshot`` → ``write_id``, files are
written and published by others → ``commit``, the only commit point. In a transaction of several
statements each goes through the same steps, in the snapshot of the first: so ``lock`` looks
whether somebody has committed a change to the same thing since then, and ``undo`` forgets one
statement. The store decides every transition; what is kept here only saves asking.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType

from acidsql.acid.table import Partition, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import (
    AcidSqlError,
    CommitUnknownError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnError,
)
from acidsql.metastore import conflict_rules
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.compaction_queue import Compacted
from acidsql.metastore.interface import (
    LockComponent,
    TxnState,
    TxnStore,
)
from acidsql.txn.heartbeat import Heartbeat
from acidsql.txn.locks import Acquired, LockWaiter

_log = logging.getLogger(__name__)

MAX_STATEMENT_ID = 4095  # twelve bits of the bucket property (Hive: BucketCodec.V1)


class Phase(Enum):
    """The states of the diagram above."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a statement sees.

    Attributes:
        valid_txns: The committed transactions.
        write_ids: For each table the visible write ids.
        held_by: The open transaction, or lease, for which the cleaner keeps what it needs.
    """

    valid_txns: ValidTxnList
    write_ids: Mapping[TableName, ValidWriteIdList] = field(default_factory=dict)
    held_by: int | None = None


class Txn:
    """One transaction; made by ``TxnManager.open``. Not for use by several threads at once.

    As a context manager it aborts what was not committed when the block ends.

    Attributes:
        id: Its number.
    """

    def __init__(
        self, txn_id: int, store: TxnStore, heartbeat: Heartbeat, waiter: LockWaiter
    ) -> None:
        self.id = txn_id
        self._store, self._heartbeat, self._waiter = store, heartbeat, waiter
        self._phase = Phase.OPEN
        self._valid_txns: ValidTxnList | None = None
        self._recorded: list[LockComponent] = []
        self._in_doubt = self._unheard = False
        self._next_statement_id = 0

    @property
    def phase(self) -> Phase:
        """Where it stands in the diagram, as far as this side knows."""
        return self._phase

    @property
    def has_looked(self) -> bool:
        """Its snapshot is taken, for good."""
        return self._valid_txns is not None

    def forget_snapshot(self) -> None:
        """Look again: only for a statement that has read and written nothing yet (I6)."""
        self._valid_txns = None

    @property
    def mark(self) -> int:
        """How much it has recorded so far; for ``undo``."""
        return len(self._recorded)

    def lock(
        self, components: Sequence[LockComponent], *, agent_info: str | None = None
    ) -> Acquired:
        """Wait for all of these locks; they are held to the end.

        Args:
            components: What to lock.
            agent_info: The statement that asks, for those who will wait for it.

        Returns:
            Whether it had to wait: then names and types must be looked up again.

        Raises:
            LockTimeoutError: It names who is in the way. The transaction is still open.
            WriteConflictError: The transaction has looked already, and somebody has committed a
                change since then to what these components change.
            TxnAbortedError: It was aborted, perhaps to end a deadlock.
            NoSuchTxnError, MetastoreError
        """
        with self._while_open():
            self._recorded += components
            acquired = self._waiter.acquire(self.id, components, agent_info)
            self._refuse_outdated(components)
            return acquired

    def undo(self, mark: int) -> None:
        """Forget what it has recorded since ``mark``; locks stay. May be called again.

        Raises:
            TxnAbortedError, NoSuchTxnError, MetastoreError
        """
        with self._while_open():
            self._store.restore_components(self.id, self._recorded[:mark])
            del self._recorded[mark:]

    def snapshot(self, tables: Sequence[TableName]) -> Snapshot:
        """I6: what the transaction sees; call it after the first locks.

        The committed transactions are those of the first call, for all later statements too.
        """
        with self._while_open():
            if self._valid_txns is None:
                self._valid_txns = self._store.valid_txns(self.id)
            return snapshot_of(self._store, self._valid_txns, tables, self.id)

    def catalog_changes(self, table: TableName) -> list[CatalogChange]:
        """What others have changed of a name in the catalog since the snapshot was taken.

        Ask after looking into the catalog: then what was found is as the snapshot has it, unless
        this tells otherwise.

        Raises:
            TxnAbortedError, NoSuchTxnError, MetastoreError
        """
        if self._valid_txns is None:
            return []
        with self._while_open():
            return self._store.catalog_changes(self.id, self._valid_txns, table)

    def write_id(self, table: TableName) -> int:
        """Its write id in a table: the same at every call."""
        with self._while_open():
            return self._store.allocate_write_id(self.id, table)

    def next_statement_id(self) -> int:
        """0, 1, 2, …: numbers the writes of one transaction. Raises TxnError after 4095."""
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

    def commit(
        self,
        *,
        resolved: Collection[int] = (),
        add_partitions: Mapping[TableName, Sequence[Partition]] | None = None,
        drop_partitions: Mapping[TableName, Sequence[tuple[str | None, ...]]] | None = None,
        create_table: Table | None = None,
        first_write_id: int = 1,
        cleaned: int | None = None,
        compacted: Compacted | None = None,
    ) -> None:
        """The commit point. Returns only if it is committed. Arguments as ``TxnStore.commit_txn``.

        Raises:
            TxnAbortedError: It was aborted before.
            TxnError: COMPACTION_LOST: what it compacted is not its own any more; the transaction
                is still open.
            WriteConflictError: Somebody else committed a change to the same thing first; the
                transaction is still open.
            CommitUnknownError: Nobody can tell now. Ask ``txn_state`` of this number later.
            MetastoreError: The store did not do it; the transaction is still open.
        """
        with self._while_open():
            self._in_doubt = True  # whatever stops us now, it may have happened
            try:
                self._store.commit_txn(
                    self.id,
                    snapshot=self._valid_txns,
                    resolved=resolved,
                    add_partitions=add_partitions,
                    drop_partitions=drop_partitions,
                    create_table=create_table,
                    first_write_id=first_write_id,
                    cleaned=cleaned,
                    compacted=compacted,
                )
            except MetastoreError as lost:
                self._ask_what_became(lost)
            except AcidSqlError:
                self._in_doubt = False
                raise
            self._end(Phase.COMMITTED)

    def abort(self, reason: str = "") -> None:
        """Give it up: nothing that it wrote will ever be seen. An aborted one stays so.

        Raises:
            TxnError: It is committed.
            MetastoreError: The store cannot be reached: it will time out.
        """
        if self._phase is Phase.COMMITTED:
            raise _not_open(self.id, self._phase)
        if self._phase is not Phase.OPEN and not self._unheard:
            return
        # First of all: if the store does not answer now, it must at least time out.
        self._end(Phase.ABORTED)
        self._unheard = True  # until it has answered: whoever calls again tries again
        try:
            self._store.abort_txn(self.id, reason)
            self._unheard = False
        except NoSuchTxnError:
            self._phase = self._ended_elsewhere()
            raise
        except MetastoreError:
            if self._in_doubt:
                self._phase = Phase.UNKNOWN
            raise

    @property
    def is_alive(self) -> bool:
        """It is open here, and the store says so, too: others may have aborted it."""
        return self._phase is Phase.OPEN and self._store.txn_state(self.id) is TxnState.OPEN

    def end_quietly(self) -> None:
        """Commit one that only read. Where that fails it is left to time out."""
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

    def _refuse_outdated(self, components: Sequence[LockComponent]) -> None:
        """Its snapshot is never refreshed (I6), so a change to a newer row would be lost."""
        if self._valid_txns is None:
            return
        found = self._store.write_conflicts(self.id, self._valid_txns, components)
        # Whether two changed the same rows is known, and told, at COMMIT.
        by_row = self._waiter.settings.conflicts_by_row
        certain = [one for one in found if not (by_row and one.by_row)]
        if certain:
            raise conflict_rules.error(self.id, certain)

    def _ended_elsewhere(self) -> Phase:
        """How it ended, where the store has no open one of this number.

        It may be committed, if somebody pressed the stop button just before COMMIT came back; then
        nothing of it may be deleted.
        """
        try:
            state = self._store.txn_state(self.id)
        except MetastoreError:
            return Phase.UNKNOWN
        known = {TxnState.COMMITTED: Phase.COMMITTED, TxnState.ABORTED: Phase.ABORTED}
        return Phase.UNKNOWN if state is None else known.get(state, Phase.UNKNOWN)

    def _ask_what_became(self, lost: MetastoreError) -> None:
        """The reply to COMMIT was lost: return if it happened, else raise what is known."""
        try:
            state = self._store.txn_state(self.id)
        except MetastoreError:
            state = None
        if state is TxnState.COMMITTED:
            return
        if state is TxnState.OPEN:
            self._in_doubt = False
            raise lost
        if state is TxnState.ABORTED:
            raise TxnAbortedError(
                f"Transaction {self.id} was aborted before its COMMIT.", txnId=self.id
            ) from lost
        self._end(Phase.UNKNOWN)
        raise CommitUnknownError(
            f"The metastore did not answer the COMMIT of transaction {self.id}: it may have "
            "happened or not. Do not run the statement again before you know: when the metastore "
            f"answers, SHOW TRANSACTIONS lists {self.id} as OPEN or ABORTED if it did not happen.",
            txnId=self.id,
        ) from lost

    @contextmanager
    def _while_open(self) -> Iterator[None]:
        """Refuse what needs an open transaction, and learn from the store that it is not."""
        if self._phase is not Phase.OPEN:
            raise _not_open(self.id, self._phase)
        try:
            self._heartbeat.check(self.id)
            yield
        except TxnAbortedError:
            self._end(Phase.ABORTED)
            raise
        except NoSuchTxnError:
            self._end(self._ended_elsewhere())
            raise

    def _end(self, phase: Phase) -> None:
        self._phase = phase
        self._heartbeat.forget(self.id)


def abort_quietly(txn: Txn, reason: str) -> bool:
    """Abort where another error is on its way or nobody listens: a failure is only logged.

    What cannot be aborted now has no heartbeat any more, and times out.

    Returns:
        True if the store says that it is aborted. False: it may be committed, if somebody pressed
        the stop button just then.
    """
    try:
        txn.abort(reason)
    except AcidSqlError as error:
        _log.warning("Transaction %d could not be aborted: %s", txn.id, error)
        return False
    return txn.phase is Phase.ABORTED


def snapshot_of(
    store: TxnStore, valid: ValidTxnList, tables: Sequence[TableName], held_by: int | None = None
) -> Snapshot:
    """What these transactions have committed to the tables; ``held_by`` keeps its files."""
    return Snapshot(valid, store.valid_write_ids(valid, tables), held_by)


def _not_open(txn_id: int, phase: Phase) -> TxnError:
    if phase is Phase.ABORTED:
        return TxnAbortedError(f"Transaction {txn_id} was aborted.", txnId=txn_id)
    return TxnError(f"Transaction {txn_id} is {phase.value}.", txnId=txn_id)
