"""What the compactor and the cleaner will do next, and what they wait for. Nothing is changed.

The decisions are those of the initiator and of the queue. This module only puts them into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.properties import HISTORY_RETENTION
from acidsql.acid.table import Table, TableName
from acidsql.compaction.decision import Decision
from acidsql.compaction.initiator import Initiator, entries_by_place
from acidsql.compaction.kept_history import with_history_properties
from acidsql.errors import SettingError
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.metastore.conflict_rules import author_text
from acidsql.metastore.interface import (
    LockComponent,
    LockState,
    LockType,
    Metastore,
    TxnInfo,
    TxnState,
)
from acidsql.metastore.lock_rules import LocksByObject
from acidsql.settings import Settings

_QUEUED = (CompactionState.INITIATED, CompactionState.WORKING)
_NOTHING = "nothing: the cleaner deletes them when it runs next"


@dataclass(frozen=True, slots=True)
class ObsoleteKeeper:
    """The reason why files still exist that readers of now do not need.

    Attributes:
        description: In words for a person.
        since_ms: Since when; None: not known.
    """

    description: str
    since_ms: int | None = None


class Outlook:
    """One look at a metastore's queue, transactions and locks. The constructor reads them all.

    Args:
        metastore: The metastore.
        settings: The thresholds and times.
    """

    def __init__(self, metastore: Metastore, settings: Settings) -> None:
        self._abilities, self._settings = metastore.abilities, settings
        # Ask for what is ready first: a compaction that ends in between is not ready yet.
        ready = metastore.ready_to_clean(settings.compactor_cleaner_retention_ms)
        self._ready = {compaction.id for compaction in ready}
        self._entries = entries_by_place(metastore.compactions())
        open_txns = [txn for txn in metastore.show_txns() if txn.state is TxnState.OPEN]
        self._open = {txn.txn_id: txn for txn in open_txns}
        acquired = [lock for lock in metastore.show_locks() if lock.state is LockState.ACQUIRED]
        self._locks = LocksByObject((lock, lock) for lock in acquired)
        self._candidates = {
            (candidate.table, candidate.partition): candidate
            for candidate in metastore.candidates()
        }
        self._initiator = Initiator(metastore, settings, "", self._entries)
        self._now_ms = metastore.now_ms()

    def next_compaction(self, table: Table, partition: str | None) -> Decision:
        """Return the next compaction of a table or partition, and why: the queued or running one,
        with number, state and progress as the reason; else the one that a check would queue now.
        The type is None if none is due, if nothing has changed since the last one, or if Hive
        decides."""
        for compaction in self._entries.get((table.name, partition), ()):
            if compaction.state in _QUEUED:
                now = f" ({compaction.progress})" if compaction.progress else ""
                state = f"{compaction.state.shown}{now}: {compaction.message or ''}"
                why = f"compaction {compaction.id} is {state}"
                return Decision(compaction.type, why.rstrip(": "))
        if not self._abilities.can_initiate:
            return Decision(None, "Hive's initiator decides")
        candidate = self._candidates.get((table.name, partition))
        if candidate is None:
            return Decision(None, "every change is compacted")
        return self._initiator.preview_check(table, candidate)

    def oldest_txn(self, name: TableName, partition: str | None) -> TxnInfo | None:
        """Return the open transaction with the lowest id among those that hold a lock on a table or
        partition, or on a place that overlaps with it; None if there is none. A transaction that
        writes there holds such a lock."""
        place = LockComponent(LockType.SHARED_READ, name.database, name.name, partition)
        numbers = {lock.txn_id for lock in self._locks.overlapping(place)} & self._open.keys()
        return self._open[min(numbers)] if numbers else None

    def keeper_of_obsolete(
        self, table: Table, partition: str | None, states: frozenset[str]
    ) -> ObsoleteKeeper | None:
        """Return the reason why files still exist that no reader of now needs.

        Args:
            table: The table.
            partition: The partition; None: the table is unpartitioned.
            states: The states of these files, as in ``Session.files``.

        Returns:
            The first of these that holds: the oldest compaction that may not be cleaned up yet, and
            why not; the cleaner fails by a wrong property; older versions need the files; no
            compaction has replaced the files yet (aborted ones need none); nothing but the
            cleaner's next run. None if only Hive knows it, because its cleaner cleans.
        """
        if not self._abilities.can_clean:
            return None
        entries = self._entries.get((table.name, partition), ())
        waiting = [
            compaction
            for compaction in entries
            if compaction.state is CompactionState.READY_FOR_CLEANING
        ]
        blocked = [compaction for compaction in waiting if compaction.id not in self._ready]
        if blocked:
            return self._why_not_ready(min(blocked, key=lambda compaction: compaction.id))
        try:
            since_ms = self._oldest_kept_history(table, waiting) if "history" in states else None
        except SettingError as error:
            return ObsoleteKeeper(f"the cleaner fails: {error}")
        if since_ms is not None:
            return ObsoleteKeeper(f"older versions ({HISTORY_RETENTION})", since_ms)
        if not waiting and states != {"aborted"}:
            return ObsoleteKeeper("they wait for the next compaction")
        return ObsoleteKeeper(_NOTHING)

    def _oldest_kept_history(self, table: Table, waiting: Sequence[CompactionInfo]) -> int | None:
        """Return when the oldest of those compactions in ``waiting`` committed whose files the
        retention time still keeps for older versions, in ms since 1970; None: the cleaner keeps
        none any longer.

        If they are too many (``acidsql.history.max.ratio``), it deletes some when it runs next.

        Raises:
            SettingError: A property of the table has a wrong value.
        """
        retention_ms = with_history_properties(
            table.properties, self._settings
        ).history_retention_ms
        times = [compaction.committed_ms or 0 for compaction in waiting]
        return min(
            (committed_ms for committed_ms in times if committed_ms + retention_ms > self._now_ms),
            default=None,
        )

    def _why_not_ready(self, entry: CompactionInfo) -> ObsoleteKeeper:
        """Return why the cleaner may not delete a compaction's old files yet: an open transaction,
        the retention time, or a failed cleaning that is tried again; if it is none of these, that
        the cleaner deletes them when it runs next."""
        readers = [txn for txn in self._open.values() if not txn.is_session]
        oldest = min(readers, key=lambda txn: txn.txn_id, default=None)
        if oldest is not None and oldest.txn_id < (entry.next_txn_id or 0):
            return ObsoleteKeeper(author_text(oldest), oldest.started_ms)
        retention_ms, since_ms = self._settings.compactor_cleaner_retention_ms, entry.committed_ms
        if (since_ms or 0) + retention_ms > self._now_ms:
            return ObsoleteKeeper("hive.compactor.cleaner.retention.time.seconds", since_ms)
        if entry.retry_retention_ms:
            return ObsoleteKeeper(
                f"a cleaning failed, and is tried again: {entry.message}", since_ms
            )
        return ObsoleteKeeper(_NOTHING)
