"""Opens a session's transactions, keeps them alive, and takes snapshots outside of transactions."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Sequence

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import AcidSqlError, SettingError, SnapshotTooOldError, TxnError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.interface import TxnStore, TxnType
from acidsql.metastore.streams import Batch
from acidsql.settings import Settings
from acidsql.txn.heartbeat import Heartbeat
from acidsql.txn.leases import Leases
from acidsql.txn.locks import LockWaiter, OwnLocks
from acidsql.txn.session_locks import SessionLocks
from acidsql.txn.snapshot import Snapshot, snapshot_of
from acidsql.txn.txn import Phase, Txn, abort_quietly

_log = logging.getLogger(__name__)


class TxnManager:
    """Opens the transactions of one session and keeps them alive.

    Args:
        store: The store of transactions.
        settings: Limits and time-outs. ``SET`` replaces them (see the property).
        user: The session's user. Sessions that wait for our locks see ``user``, ``host`` and
            ``agent_info``.
        host: The host of this process.
        agent_info: The statement, if ``open`` gets none.
        sleep: Waits for some seconds between two checks of a lock; tests replace it.
        elapsed: The clock of these waits, in seconds; tests replace it.
        borrowed_locks: The locks of the session that asked for this work. These transactions do
            not wait for them.

    Attributes:
        session_locks: The locks that the session holds beyond its transactions.
        batch: The batch of a stream that the transactions opened from now on work for.
    """

    def __init__(
        self,
        store: TxnStore,
        settings: Settings,
        *,
        user: str,
        host: str,
        agent_info: str = "",
        sleep: Callable[[float], None] = time.sleep,
        elapsed: Callable[[], float] = time.monotonic,
        borrowed_locks: OwnLocks | None = None,
    ) -> None:
        _refuse_unsupported_settings(settings, store)
        self._settings, self._store = settings, store
        self._sleep, self._elapsed = sleep, elapsed
        self._user, self._host, self._agent_info = user, host, agent_info
        self._timeout_ms = store.abilities.txn_timeout_ms
        self._beat_ms = self._interval_ms(settings)
        self.heartbeat = Heartbeat(store, self._beat_ms, self._on_beat)
        self._leases = Leases(self._open_lease, settings.lease_timeout_ms)
        self._txns: weakref.WeakSet[Txn] = weakref.WeakSet()
        self.session_locks = SessionLocks(
            store, self._open_session, lambda: LockWaiter(store, self.settings, sleep, elapsed)
        )
        self._own = borrowed_locks or self.session_locks
        self.batch: Batch | None = None

    @property
    def settings(self) -> Settings:
        """Limits and time-outs. A new value holds at once.

        Two things of an open transaction keep the old values: its waits for locks, with the check
        for conflicts after each wait, and its time-out, which the store has noted.
        """
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        """Replace the settings at once; the heartbeat beats now, and does not become rarer by a
        longer time-out. Raises SettingError, and replaces nothing, for
        acidsql.conflict.detection=row if the metastore cannot compare rows."""
        _refuse_unsupported_settings(settings, self._store)
        # Leases and the heartbeat change at once, for open transactions, too: other sessions may
        # already use the shorter time-out.
        self._settings = settings
        self._leases.timeout_ms = settings.lease_timeout_ms
        # An open transaction keeps its time-out, so a longer one makes no heartbeat rarer.
        self._beat_ms = min(self._beat_ms, self._interval_ms(settings))
        self.heartbeat.change_interval(self._beat_ms)

    def _interval_ms(self, settings: Settings) -> int:
        """Return the milliseconds between heartbeats: half of the shorter time-out, ours or the
        store's."""
        own_interval_ms = settings.heartbeat_interval_ms
        return (
            own_interval_ms
            if self._timeout_ms is None
            else min(own_interval_ms, max(1, self._timeout_ms // 2))
        )

    def open(
        self,
        *,
        agent_info: str | None = None,
        txn_type: TxnType = TxnType.DEFAULT,
        multi_statement: bool = False,
        lock_settings: Settings | None = None,
    ) -> Txn:
        """Begin a transaction in the store, as work for ``batch``, send heartbeats for it, and
        return it. ``close`` aborts it if it is open then.

        Args:
            agent_info: The statement, which sessions that wait for the transaction see. None: that
                of the manager.
            txn_type: Its type.
            multi_statement: Whether it may have several statements, which share a snapshot.
            lock_settings: Other settings for its waits for locks.

        Raises:
            TxnError: TOO_MANY_OPEN_TXNS: ``hive.max.open.txns`` are open already.
            MetastoreError: The store did not answer.
        """
        info = self._agent_info if agent_info is None else agent_info
        txn_id = self._store.open_txn(
            user=self._user,
            host=self._host,
            agent_info=info,
            txn_type=txn_type,
            timeout_ms=self.settings.txn_timeout_ms,
            max_open_txns=self.settings.max_open_txns,
            batch=self.batch,
        )
        waiter = LockWaiter(
            self._store, lock_settings or self.settings, self._sleep, self._elapsed, self._own
        )
        txn = Txn(txn_id, self._store, self.heartbeat, waiter, multi_statement=multi_statement)
        self.heartbeat.watch(txn)
        self._txns.add(txn)
        return txn

    def snapshot(self, tables: Sequence[TableName]) -> Snapshot:
        """Return what is committed now in these tables, outside of any transaction.

        A lease, which was opened before the snapshot is taken, keeps the snapshot's files from the
        cleaner until the lease ends: the newest one, or a new one if that is too old.

        Raises:
            TxnError: SESSION_LOCKS_LOST: the locks of the session have ended.
        """
        lease = self._leases.newest()
        valid = None if lease is None else self._valid_txns_under(lease, tables)
        if valid is None:
            lease = self.hold_lease(tables)
            valid = self._store.valid_txns()
        self.session_locks.need_held()
        return snapshot_of(self._store, valid, tables, lease)

    def catalog_changes(self, snapshot: Snapshot, table: TableName) -> list[CatalogChange]:
        """Return the changes that others have made to a table's name in the catalog since a
        snapshot.

        The list is empty, too, if the metastore does not remember such changes.

        Raises:
            SnapshotTooOldError: The snapshot's lease has ended, so the store may have forgotten
                such changes.
        """
        if not self._store.abilities.remembers_changes:
            return []  # a lease did not ask before, so there is nothing to compare with
        try:
            assert snapshot.held_by is not None, "nobody keeps what this snapshot sees"
            return self._store.catalog_changes(snapshot.held_by, snapshot.valid_txns, table)
        except TxnError as error:
            raise SnapshotTooOldError(
                f"Nobody can tell any more whether {table} was changed, because the lease of this "
                f"read is over (acidsql.lease.timeout). Read it again. {error.message}",
                table=table,
            ) from error

    def _valid_txns_under(self, lease: int, tables: Sequence[TableName]) -> ValidTxnList | None:
        """Let a lease keep the files of these tables, and return the transactions that are
        committed now; None if the lease has ended in the store."""
        try:
            self._store.keep_files(lease, tables)
        except TxnError:
            return None
        return self._store.valid_txns_under(lease)

    def keep_files(self, tables: Sequence[TableName]) -> None:
        """Let the newest lease keep the files of these tables, or a new lease if that one is too
        old. Whether it is open is only asked if the metastore must be told the tables."""
        lease = self._leases.newest()
        try:
            self._store.keep_files(self._leases.hold() if lease is None else lease, tables)
        except TxnError:
            self.hold_lease(tables)

    def hold_lease(self, tables: Sequence[TableName] = ()) -> int:
        """Return the number of a lease that protects the files of the next snapshot of these
        tables, and open a new one if the newest is too old or has ended."""
        lease = self._leases.hold()
        self._store.keep_files(lease, tables)
        return lease

    def end_old_leases(self) -> None:
        """End leases that are older than ``acidsql.lease.timeout``."""
        self._leases.end_old()

    def close(self) -> None:
        """Stop the heartbeat, end leases, abort open transactions, that of the session's locks,
        too, and do the housekeeping; failures are only logged. May be called twice."""
        self.heartbeat.stop()
        self._leases.close()
        for txn in list(self._txns):
            if txn.phase is Phase.OPEN:
                abort_quietly(txn, "its session was closed")
        self._house_keep()

    def _open_session(self) -> Txn:
        """Open the SESSION transaction that holds the session's locks."""
        return self.open(agent_info="the locks of a session", txn_type=TxnType.SESSION)

    def _open_lease(self) -> Txn:
        """Open the READ_ONLY transaction of a lease."""
        return self.open(
            agent_info="a lease: DataFrames of this session may still be read",
            txn_type=TxnType.READ_ONLY,
        )

    def _on_beat(self) -> None:
        """End old leases, and do the housekeeping. The heartbeat's thread calls this."""
        self.end_old_leases()
        self._house_keep()

    def _house_keep(self) -> None:
        """Let the store abort what has timed out, and delete old rows, if this is due, as the store
        finds. A failure is only logged."""
        settings = self.settings
        try:
            self._store.house_keep(
                settings.txn_timeout_ms,
                settings.housekeeper_interval_ms,
                settings.txn_history_retention_ms,
            )
        except AcidSqlError as error:
            _log.warning("The metastore could not be tidied up: %s", error)


def _refuse_unsupported_settings(settings: Settings, store: TxnStore) -> None:
    """Raise SettingError for acidsql.conflict.detection=row if the metastore cannot compare
    rows."""
    if settings.conflicts_by_row and not store.abilities.conflicts_by_row:
        raise SettingError(
            "acidsql.conflict.detection=row is not possible with this metastore: nothing keeps "
            "others from committing between the comparison of the rows and the COMMIT.",
            name="acidsql.conflict.detection",
            value="row",
        )
