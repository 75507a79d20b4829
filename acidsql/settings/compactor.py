"""The settings of compaction: when it begins, which workers run it, how long results are kept.

Source: Hive ``HiveConf`` and ``MetastoreConf``, ``hive.compactor.…``.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.settings.kinds import boolean, choice, count, duration, fraction


@dataclass(frozen=True, slots=True)
class CompactorSettings:
    """The part of ``Settings`` about compaction."""

    compactor_check_interval_ms: int = duration(
        "hive.compactor.check.interval",
        "300s",
        "How often the compactor service looks for tables to compact.",
    )
    compactor_delta_num_threshold: int = count(
        "hive.compactor.delta.num.threshold",
        "10",
        "A table or partition with more deltas than this gets a minor compaction, or a major one "
        "if it has no base yet.",
        least=0,
    )
    compactor_delta_pct_threshold: float = fraction(
        "hive.compactor.delta.pct.threshold",
        "0.1",
        "A major compaction begins if the deltas' bytes are more than this fraction of the base's "
        "bytes.",
    )
    compactor_size_tiered: bool = choice(
        "acidsql.compactor.strategy",
        "size_tiered",
        "Which deltas a minor compaction takes that begins by itself. 'size_tiered': the newest "
        "ones of similar size, so that frequent small writes do not rewrite all earlier ones. "
        "'hive': all of them, as always over a Hive Metastore.",
        {"size_tiered": True, "hive": False},
    )
    compactor_abortedtxn_threshold: int = count(
        "hive.compactor.abortedtxn.threshold",
        "1000",
        "A table or partition with more aborted transactions than this gets a major compaction.",
        least=0,
    )
    compactor_aborted_time_threshold_ms: int = duration(
        "hive.compactor.aborted.txn.time.threshold",
        "12h",
        "A table or partition with an aborted transaction that began longer ago than this gets a "
        "minor compaction.",
        unit="h",
    )
    compactor_quiet_time_ms: int = duration(
        "acidsql.compactor.quiet.time",
        "0s",
        "A table or partition to which nobody has written for this time gets a major compaction by "
        "the service, even if it has few deltas. 0: never.",
        least_ms=0,
    )
    compactor_compact_insert_only: bool = boolean(
        "hive.compactor.compact.insert.only", "true", "true: insert-only tables are compacted, too."
    )
    compactor_visibility_id: bool = boolean(
        "acidsql.compactor.visibility.id",
        "false",
        "true: compacted directories are named as in Hive 4 (base_5_v17), so that readers see them "
        "only after the compaction's commit. Hive 3.1 cannot read such a table.",
    )
    compactor_of_hive: str = choice(
        "acidsql.hive.compactor",
        "server",
        "Who compacts the tables of a Hive Metastore. 'server': Hive's initiator and workers. "
        "'session': also the sessions that write them, as with the embedded metastore; say so if "
        "the server's initiator is off. Hive's cleaner deletes the old files in both cases.",
        {word: word for word in ("server", "session")},
    )
    compactor_worker_timeout_ms: int = duration(
        "hive.compactor.worker.timeout",
        "86400s",
        "A compaction that began longer ago than this is queued again for another worker.",
    )
    compactor_worker_pool_timeout_ms: int = duration(
        "hive.compactor.worker.pool.timeout",
        "12h",
        "Workers without a pool take a compaction that has waited for the workers of its pool for "
        "this time.",
        unit="h",
    )
    compactor_worker_sleep_ms: int = duration(
        "hive.compactor.worker.sleep.time",
        "10800ms",
        "How long a worker of the compactor service pauses if the queue has no work.",
        unit="ms",
    )
    compactor_wait_timeout_ms: int = duration(
        "hive.compactor.wait.timeout",
        "300000ms",
        "The longest pause between two checks of AND WAIT whether another session's compaction has "
        "ended.",
        unit="ms",
    )
    compactor_failed_threshold: int = count(
        "hive.compactor.initiator.failed.compacts.threshold",
        "2",
        "After this many failures in a row, a table or partition is compacted only by ALTER TABLE "
        "… COMPACT.",
    )
    compactor_failed_retry_time_ms: int = duration(
        "hive.compactor.initiator.failed.retry.time",
        "7d",
        "How long after such failures automatic compaction is tried again.",
        unit="d",
    )
    compactor_cleaner_interval_ms: int = duration(
        "hive.compactor.cleaner.run.interval",
        "5000ms",
        "How often the cleaner looks for files that nobody can read any more.",
        unit="ms",
    )
    compactor_cleaner_retention_ms: int = duration(
        "hive.compactor.cleaner.retention.time.seconds",
        "0s",
        "How long after a compaction its old files are kept at least. Hive's default is 300 s, but "
        "Hive uses it only with hive.compactor.delayed.cleanup.enabled.",
        least_ms=0,
    )
    history_retention_ms: int = duration(
        "acidsql.history.retention",
        "24h",
        "How long files that a compaction has replaced are kept for older versions of the table. "
        "A table property of the same name goes first. 0s: as Hive.",
        unit="h",
        least_ms=0,
    )
    history_max_ratio: float = fraction(
        "acidsql.history.max.ratio",
        "1.0",
        "Files are kept for older versions only while they have at most so many times as many "
        "bytes as the live files of the table or partition. The oldest go first. A table property "
        "of the same name goes first.",
    )
    compactor_cleaner_max_attempts: int = count(
        "hive.compactor.cleaner.retry.maxattempts",
        "5",
        "After this many failures to delete a compaction's old files, the compaction is FAILED.",
    )
    compactor_cleaner_retry_retention_ms: int = duration(
        "hive.compactor.cleaner.retry.retention.time",
        "300s",
        "The cleaner's pause after its first failure; each further failure doubles the pause.",
    )
    compactor_history_succeeded: int = count(
        "hive.compactor.history.retention.succeeded",
        "3",
        "How many compactions that succeeded the history keeps for each table or partition.",
        least=0,
    )
    compactor_history_failed: int = count(
        "hive.compactor.history.retention.failed", "3", "How many that failed it keeps.", least=0
    )
    compactor_history_refused: int = count(
        "hive.compactor.history.retention.refused",
        "3",
        "How many that found nothing to do the history keeps.",
        least=0,
    )
    compactor_history_did_not_initiate: int = count(
        "hive.compactor.history.retention.did.not.initiate",
        "2",
        "How many that were not begun the history keeps.",
        least=0,
    )
    compactor_history_timeout_ms: int = duration(
        "hive.compactor.history.retention.timeout",
        "7d",
        "Compactions that did not succeed are deleted from the history after this time, if another "
        "one has succeeded since.",
        unit="d",
    )
