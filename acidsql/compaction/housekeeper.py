"""The housekeeper: gives what dead workers had to others, and forgets old history.

Source: Hive ``AcidHouseKeeperService``, ``CompactionTxnHandler.revokeTimedoutWorkers``,
``PurgeCompactionHistoryFunction``.
"""

from __future__ import annotations

from acidsql.metastore.compaction_queue import HistoryRetention
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings


def keep_house(metastore: Metastore, settings: Settings) -> None:
    """Do it once; as often as one likes."""
    metastore.abort_timed_out(settings.txn_timeout_ms)
    metastore.revoke(settings.compactor_worker_timeout_ms)
    metastore.purge_compaction_history(retention(settings))


def retention(settings: Settings) -> HistoryRetention:
    """How much of the history is kept."""
    return HistoryRetention(
        settings.compactor_history_succeeded,
        # What stops compactions after failures must be seen.
        max(settings.compactor_history_failed, settings.compactor_failed_threshold),
        settings.compactor_history_refused,
        settings.compactor_history_did_not_initiate,
        settings.compactor_history_timeout_ms,
    )
