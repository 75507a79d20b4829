"""The settings of compaction: when, by whom, and how long what it leaves is kept.

Source: Hive ``HiveConf`` and ``MetastoreConf``, ``hive.compactor.…``.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.setting_kinds import boolean, count, duration, fraction


@dataclass(frozen=True, slots=True)
class CompactorSettings:
    """Part of ``Settings``."""

    compactor_check_interval_ms: int = duration(
        "hive.compactor.check.interval",
        "300s",
        "How often the compactor service looks for tables to compact.",
    )
    compactor_delta_num_threshold: int = count(
        "hive.compactor.delta.num.threshold",
        "10",
        "More deltas than this are compacted: minor, or major where there is no base yet.",
        least=0,
    )
    compactor_delta_pct_threshold: float = fraction(
        "hive.compactor.delta.pct.threshold",
        "0.1",
        "Deltas that hold a larger part of the base's bytes are compacted into it: major.",
    )
    compactor_abortedtxn_threshold: int = count(
        "hive.compactor.abortedtxn.threshold",
        "1000",
        "More aborted transactions than this in a table or partition: major.",
        least=0,
    )
    compactor_aborted_time_threshold_ms: int = duration(
        "hive.compactor.aborted.txn.time.threshold",
        "12h",
        "An aborted transaction that began longer ago than this: minor.",
        unit="h",
    )
    compactor_quiet_time_ms: int = duration(
        "acidsql.compactor.quiet.time",
        "0s",
        "A table that nobody has written to for so long is compacted, however few its deltas: "
        "major; 0: never.",
        least_ms=0,
    )
    compactor_compact_insert_only: bool = boolean(
        "hive.compactor.compact.insert.only", "true", "Insert-only tables are compacted, too."
    )
    compactor_visibility_id: bool = boolean(
        "acidsql.compactor.visibility.id",
        "false",
        "Name what is compacted as Hive 4 does (base_5_v17), so that it is seen only when the "
        "compaction has committed. Hive 3.1 cannot read such a table.",
    )
    compactor_worker_timeout_ms: int = duration(
        "hive.compactor.worker.timeout",
        "86400s",
        "A compaction that was begun longer ago is given to another worker.",
    )
    compactor_worker_pool_timeout_ms: int = duration(
        "hive.compactor.worker.pool.timeout",
        "12h",
        "Workers of no pool take what has waited for a pool's workers for so long.",
        unit="h",
    )
    compactor_worker_sleep_ms: int = duration(
        "hive.compactor.worker.sleep.time",
        "10800ms",
        "How long a worker of the compactor service waits when there is nothing to do.",
        unit="ms",
    )
    compactor_wait_timeout_ms: int = duration(
        "hive.compactor.wait.timeout",
        "300000ms",
        "The longest pause between two looks of AND WAIT at a compaction that another runs.",
        unit="ms",
    )
    compactor_failed_threshold: int = count(
        "hive.compactor.initiator.failed.compacts.threshold",
        "2",
        "After so many failures in a row nothing is compacted unasked.",
    )
    compactor_failed_retry_time_ms: int = duration(
        "hive.compactor.initiator.failed.retry.time",
        "7d",
        "Then it is tried again.",
        unit="d",
    )
    compactor_cleaner_interval_ms: int = duration(
        "hive.compactor.cleaner.run.interval",
        "5000ms",
        "How often it is looked for files that nobody can read any more.",
        unit="ms",
    )
    compactor_cleaner_retention_ms: int = duration(
        "hive.compactor.cleaner.retention.time.seconds",
        "0s",
        "How long after a compaction its old files are kept in any case. Hive's default is 300 s, "
        "which holds only with hive.compactor.delayed.cleanup.enabled.",
        least_ms=0,
    )
    compactor_cleaner_max_attempts: int = count(
        "hive.compactor.cleaner.retry.maxattempts",
        "5",
        "After so many failures to clean up after a compaction it has failed.",
    )
    compactor_cleaner_retry_retention_ms: int = duration(
        "hive.compactor.cleaner.retry.retention.time",
        "300s",
        "The pause after the first of them; it doubles each time.",
    )
    compactor_history_succeeded: int = count(
        "hive.compactor.history.retention.succeeded",
        "3",
        "So many are kept in the history of each table or partition.",
        least=0,
    )
    compactor_history_failed: int = count(
        "hive.compactor.history.retention.failed", "3", "The same of those that failed.", least=0
    )
    compactor_history_refused: int = count(
        "hive.compactor.history.retention.refused",
        "3",
        "The same of those that found nothing to do.",
        least=0,
    )
    compactor_history_did_not_initiate: int = count(
        "hive.compactor.history.retention.did.not.initiate",
        "2",
        "The same of those that were not begun.",
        least=0,
    )
    compactor_history_timeout_ms: int = duration(
        "hive.compactor.history.retention.timeout",
        "7d",
        "What did not succeed is forgotten after so long, if another has succeeded since.",
        unit="d",
    )
