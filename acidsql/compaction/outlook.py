"""What the compactor and the cleaner will do next, and what they wait for. Nothing is changed.

The decisions are those of the initiator and of the queue. This module only puts them into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.properties import HISTORY_RETENTION
from acidsql.acid.table import Table, TableName
from acidsql.compaction.decision import Decision
from acidsql.compaction.initiator import Initiator, by_place
from acidsql.compaction.kept_history import settings_of
from acidsql.errors import SettingError
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.metastore.conflict_rules import who
from acidsql.metastore.interface import (
    LockComponent,
    LockState,
    LockType,
    Metastore,
    TxnInfo,
    TxnState,
)
from acidsql.metastore.lock_rules import ByThing
from acidsql.settings import Settings

_QUEUED = (CompactionState.INITIATED, CompactionState.WORKING)
_NOTHING = "nothing: the cleaner deletes them when it runs next"


@dataclass(frozen=True, slots=True)
class Holder:
    """What keeps files that readers of now do not need.

    Attributes:
        what: In words for a person.
        since_ms: Since when; None: not known.
    """

    what: str
    since_ms: int | None = None


class Outlook:
    """One look at a metastore's queue, transactions and locks.

    Args:
        metastore: The metastore.
        settings: The thresholds and times.
    """

    def __init__(self, metastore: Metastore, settings: Settings) -> None:
        self._abilities, self._settings = metastore.abilities, settings
        # Ask for what is ready first: a compaction that ends in between is not ready yet.
        ready = metastore.ready_to_clean(settings.compactor_cleaner_retention_ms)
        self._ready = {one.id for one in ready}
        self._entries = by_place(metastore.compactions())
        found = [one for one in metastore.show_txns() if one.state is TxnState.OPEN]
        self._open = {one.txn_id: one for one in found}
        held = [one for one in metastore.show_locks() if one.state is LockState.ACQUIRED]
        self._locks = ByThing((one, one) for one in held)
        self._candidates = {(one.table, one.partition): one for one in metastore.candidates()}
        self._initiator = Initiator(metastore, settings, "", self._entries)
        self._now_ms = metastore.now_ms()

    def next(self, table: Table, partition: str | None) -> Decision:
        """The next compaction of a table or partition, and why; or why there will be none."""
        for one in self._entries.get((table.name, partition), ()):
            if one.state in _QUEUED:
                now = f" ({one.progress})" if one.progress else ""
                why = f"compaction {one.id} is {one.state.shown}{now}: {one.message or ''}"
                return Decision(one.type, why.rstrip(": "))
        if not self._abilities.can_initiate:
            return Decision(None, "Hive's initiator decides")
        candidate = self._candidates.get((table.name, partition))
        if candidate is None:
            return Decision(None, "every change is compacted")
        return self._initiator.would(table, candidate)

    def oldest_txn(self, name: TableName, partition: str | None) -> TxnInfo | None:
        """The oldest open transaction that holds a lock there. Each one that writes does."""
        place = LockComponent(LockType.SHARED_READ, name.database, name.name, partition)
        numbers = {one.txn_id for one in self._locks.overlapping(place)} & self._open.keys()
        return self._open[min(numbers)] if numbers else None

    def holder(self, table: Table, partition: str | None, states: frozenset[str]) -> Holder | None:
        """What keeps the files that no reader of now needs.

        Args:
            table: The table.
            partition: The partition; None: the table is unpartitioned.
            states: The states of these files, as in ``Session.files``.

        Returns:
            The holder; None if only Hive knows it.
        """
        if not self._abilities.can_clean:
            return None
        entries = self._entries.get((table.name, partition), ())
        waiting = [one for one in entries if one.state is CompactionState.READY_FOR_CLEANING]
        blocked = [one for one in waiting if one.id not in self._ready]
        if blocked:
            return self._blocker(min(blocked, key=lambda one: one.id))
        try:
            since_ms = self._history(table, waiting) if "history" in states else None
        except SettingError as error:
            return Holder(f"the cleaner fails: {error}")
        if since_ms is not None:
            return Holder(f"older versions ({HISTORY_RETENTION})", since_ms)
        if not waiting and states != {"aborted"}:
            return Holder("they wait for the next compaction")
        return Holder(_NOTHING)

    def _history(self, table: Table, waiting: Sequence[CompactionInfo]) -> int | None:
        """Since when files are kept for older versions; None: the cleaner keeps none any longer.

        If they are too many (``acidsql.history.max.ratio``), it deletes some when it runs next.

        Raises:
            SettingError: A property of the table has a wrong value.
        """
        retention_ms = settings_of(table.properties, self._settings).history_retention_ms
        times = [one.committed_ms or 0 for one in waiting]
        return min((one for one in times if one + retention_ms > self._now_ms), default=None)

    def _blocker(self, entry: CompactionInfo) -> Holder:
        """Why a compaction's old files are not ready for the cleaner."""
        readers = [one for one in self._open.values() if not one.is_session]
        oldest = min(readers, key=lambda one: one.txn_id, default=None)
        if oldest is not None and oldest.txn_id < (entry.next_txn_id or 0):
            return Holder(who(oldest), oldest.started_ms)
        retention_ms, since_ms = self._settings.compactor_cleaner_retention_ms, entry.committed_ms
        if (since_ms or 0) + retention_ms > self._now_ms:
            return Holder("hive.compactor.cleaner.retention.time.seconds", since_ms)
        if entry.retry_retention_ms:
            return Holder(f"a cleaning failed, and is tried again: {entry.message}", since_ms)
        return Holder(_NOTHING)
