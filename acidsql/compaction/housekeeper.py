"""The housekeeper: aborts timed-out transactions, queues entries of dead workers again, and deletes
old history.

Source: Hive ``AcidHouseKeeperService``, ``CompactionTxnHandler.revokeTimedoutWorkers``,
``PurgeCompactionHistoryFunction``.
"""

from __future__ import annotations

from acidsql.metastore.compaction_queue import HistoryRetention
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings


def keep_house(metastore: Metastore, settings: Settings) -> None:
    """Abort transactions whose heartbeat has stopped, queue the compactions of dead workers again,
    and delete old compaction history. The settings say after how long. Any process may call this
    at any time."""
    metastore.abort_timed_out(settings.txn_timeout_ms)
    metastore.revoke(settings.compactor_worker_timeout_ms)
    metastore.purge_compaction_history(history_retention(settings))


def history_retention(settings: Settings) -> HistoryRetention:
    """Return how many entries of each state the compaction history keeps, and for how long, from
    the settings. At least as many failures are kept as stop further compactions."""
    return HistoryRetention(
        settings.compactor_history_succeeded,
        # The failures that stop further compactions must stay in the history.
        max(settings.compactor_history_failed, settings.compactor_failed_threshold),
        settings.compactor_history_refused,
        settings.compactor_history_did_not_initiate,
        settings.compactor_history_timeout_ms,
    )
