"""Whether a table or partition needs to be compacted: Hive's rules, as pure functions.

Source: Hive ``InitiatorBase.determineCompactionType``, ``Initiator.isEligibleForCompaction``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from acidsql.acid.properties import NO_AUTO_COMPACTION, THRESHOLD, WORKER_POOL
from acidsql.acid.table import Table
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState, CompactionType
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings

_STRATEGY = "acidsql.compactor.strategy"
SIZE_TIERED = {_STRATEGY: "size_tiered"}  # the properties of such a request
_MOST_DELTAS = f"{THRESHOLD}hive.compactor.delta.num.threshold"
# The states that count for ``has_failed_too_often``. Refused compactions, and compactions that did
# not begin, count neither as success nor as failure.
_TRIED = (CompactionState.SUCCEEDED, CompactionState.READY_FOR_CLEANING, CompactionState.FAILED)


@dataclass(frozen=True, slots=True)
class DirectorySizes:
    """The facts about a table's or partition's directory that the thresholds are compared with.

    Attributes:
        base_bytes: The size of the base, or of the original files; 0 if there are none.
        delta_bytes: The size of the deltas and delete deltas that a reader takes.
        deltas: The number of these deltas and delete deltas.
        has_obsolete_bases: There are bases that no reader takes.
        aborted_txns: The number of aborted transactions that wrote there.
        oldest_abort_ms: The time since the oldest of these transactions began; None without any.
        quiet_ms: The time since the last write; None if it is not known.
    """

    base_bytes: int
    delta_bytes: int
    deltas: int
    has_obsolete_bases: bool = False
    aborted_txns: int = 0
    oldest_abort_ms: int | None = None
    quiet_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Which compaction is needed, and why.

    Attributes:
        type: The type; None if no compaction is needed.
        why: The reason, in words for a person, also if no compaction is needed.
        size_tiered: A minor compaction takes only the newest deltas of similar size.
    """

    type: CompactionType | None
    why: str
    size_tiered: bool = False


def decide(sizes: DirectorySizes, settings: Settings) -> Decision:
    """Return which compaction the thresholds in ``settings`` demand; the first rule that holds
    counts: aborts, size, number, quiet time. The type is None if none holds."""
    for rule in (_decide_by_aborts, _decide_by_size, _decide_by_number, _decide_by_quiet_time):
        if (decision := rule(sizes, settings)) is not None:
            return decision
    return Decision(None, f"{_delta_facts(sizes)}; below the thresholds")


def _decide_by_aborts(sizes: DirectorySizes, settings: Settings) -> Decision | None:
    """Return a decision for a major compaction if there are too many aborted transactions, or for a
    minor one if one of them is too old and there are deltas; else None."""
    if sizes.aborted_txns > (most := settings.compactor_abortedtxn_threshold):
        return Decision(
            CompactionType.MAJOR, f"{sizes.aborted_txns} aborted transactions, more than {most}"
        )
    longest = settings.compactor_aborted_time_threshold_ms
    if sizes.oldest_abort_ms is not None and sizes.oldest_abort_ms > longest and sizes.deltas:
        hours = sizes.oldest_abort_ms / 3_600_000
        return Decision(
            CompactionType.MINOR, f"a transaction that began {hours:.0f} h ago was aborted"
        )
    return None


def _decide_by_size(sizes: DirectorySizes, settings: Settings) -> Decision | None:
    """Return a decision for a major compaction if there is a base with bytes and the deltas have
    more than ``compactor_delta_pct_threshold`` times as many, or there is a replaced base and no
    delta; else None."""
    most = settings.compactor_delta_pct_threshold
    if sizes.base_bytes and sizes.delta_bytes / sizes.base_bytes > most:
        return Decision(CompactionType.MAJOR, f"{_delta_facts(sizes)}, more than {most:.1%}")
    if sizes.has_obsolete_bases and not sizes.deltas:
        return Decision(CompactionType.MAJOR, "a base that another has replaced")
    return None


def _decide_by_number(sizes: DirectorySizes, settings: Settings) -> Decision | None:
    """Return a decision to compact if there are too many deltas: major without a base, else minor,
    perhaps size-tiered; else None."""
    if sizes.deltas <= (most := settings.compactor_delta_num_threshold):
        return None
    if not sizes.base_bytes:
        return Decision(CompactionType.MAJOR, f"{sizes.deltas} deltas, more than {most}, no base")
    why = f"{_delta_facts(sizes)}; more than {most} deltas"
    return Decision(CompactionType.MINOR, why, settings.compactor_size_tiered)


def _decide_by_quiet_time(sizes: DirectorySizes, settings: Settings) -> Decision | None:
    """Return a decision for a major compaction if nothing was written for long and there is a delta
    beside a base, or two deltas without one; else None. The setting 0 turns this off."""
    least = settings.compactor_quiet_time_ms
    if not least or sizes.quiet_ms is None or sizes.quiet_ms < least or not sizes.deltas:
        return None
    if not sizes.base_bytes and sizes.deltas < 2:
        return None
    minutes = sizes.quiet_ms / 60_000
    return Decision(CompactionType.MAJOR, f"{_delta_facts(sizes)}; quiet for {minutes:.0f} min")


def _delta_facts(sizes: DirectorySizes) -> str:
    """Return the number of deltas and their share of the base's bytes, in words: ``3 deltas, 12.5%
    of the base's bytes``, or ``3 deltas, no base``."""
    deltas = f"{sizes.deltas} delta{'' if sizes.deltas == 1 else 's'}"
    if not sizes.base_bytes:
        return f"{deltas}, no base"
    return f"{deltas}, {sizes.delta_bytes / sizes.base_bytes:.1%} of the base's bytes"


# ── properties and history of tables ─────────────────────────────────────────────────────────


def thresholds_of(table: Table, settings: Settings) -> Settings:
    """Return the settings, with the changes by the table's ``compactorthreshold.…`` properties.

    Raises:
        SettingError: A property has an unknown name or a wrong value.
    """
    return apply_thresholds(settings, table.properties)


def may_tier(metastore: Metastore, table: Table) -> bool:
    """Whether a minor compaction of a table may be size-tiered: take only some of the deltas. False
    beside Hive, and for an insert-only table.

    A worker of Hive's that was believed dead may commit a compaction of all deltas at any time.
    Readers would read both that one and another that begins in the middle of it. And each
    compaction of an insert-only table makes a base.
    """
    return not metastore.abilities.shared_with_hive and not table.is_insert_only


def size_tiered_request(settings: Settings) -> dict[str, str]:
    """Return the properties by which a request asks for a size-tiered minor compaction, one that
    takes only the newest deltas of similar size.

    They name the number of deltas that is too many. A worker whose own settings allow more could
    find that there is nothing to merge, and the initiator would ask again for ever.
    """
    return {**SIZE_TIERED, _MOST_DELTAS: str(settings.compactor_delta_num_threshold)}


def max_remaining_deltas(
    metastore: Metastore, table: Table, requested: Mapping[str, str], settings: Settings
) -> int | None:
    """Return the number of deltas that a size-tiered minor compaction may leave. None: compact all,
    as the request is no size-tiered one, or the table takes none (`may_tier`).

    Args:
        metastore: The table's metastore.
        table: The table.
        requested: The request's properties. Only they say that a compaction is size-tiered: a user
            who asks for a minor compaction without them gets one of all deltas. They may have
            thresholds, as a table's properties may.
        settings: The thresholds.

    Raises:
        SettingError: A property of the table or of the request has an unknown name or a wrong
            value; or the request names an unknown strategy.
    """
    request_settings = settings.with_(_STRATEGY, requested.get(_STRATEGY, "hive"))
    if not request_settings.compactor_size_tiered or not may_tier(metastore, table):
        return None
    effective_thresholds = apply_thresholds(thresholds_of(table, settings), requested)
    return effective_thresholds.compactor_delta_num_threshold


def compaction_table(table: Table, requested: Mapping[str, str]) -> Table:
    """Return the table with the properties that hold for a compaction: the request's
    ``tblprops.…`` (``requested``: the request's properties) override the table's own."""
    changed = {**table.properties, **_properties_with_prefix(requested, "tblprops.")}
    return replace(table, properties=changed)


def pool_of(table: Table, requested: str | None = None) -> str | None:
    """Return the pool whose workers compact the table, in lower case: the request's pool, else that
    in the table's properties; None: neither names one."""
    pool = requested or table.properties.get(WORKER_POOL)
    return pool.lower() if pool else None


def has_partition(metastore: Metastore, table: Table, partition: str | None) -> bool:
    """Whether the catalog still has a partition; True for an unpartitioned table. Lists the table's
    partitions."""
    if not table.partition_columns:
        return True
    locations = {
        catalog_partition.location for catalog_partition in metastore.partitions(table.name)
    }
    return f"{table.location}/{partition}" in locations


def is_left_alone(table: Table) -> bool:
    """Whether the table has the property ``NO_AUTO_COMPACTION=true``, in any case: then no
    compaction is queued by itself."""
    return any(
        name.lower() == NO_AUTO_COMPACTION.lower() and value.lower() == "true"
        for name, value in table.properties.items()
    )


def has_failed_too_often(
    newest_first: Sequence[CompactionInfo], now_ms: int, settings: Settings
) -> bool:
    """Whether the last compactions of a table or partition, as many as the threshold in
    ``settings`` says, all failed, and the last of them was queued not long ago. Refused ones and
    those that did not begin are skipped; False if there are fewer."""
    last = [compaction for compaction in newest_first if compaction.state in _TRIED][
        : settings.compactor_failed_threshold
    ]
    if len(last) < settings.compactor_failed_threshold:
        return False
    if any(compaction.state is not CompactionState.FAILED for compaction in last):
        return False
    return now_ms - (last[0].enqueued_ms or 0) < settings.compactor_failed_retry_time_ms


def apply_thresholds(settings: Settings, properties: Mapping[str, str]) -> Settings:
    """Return the settings, with the changes by ``compactorthreshold.…`` properties.

    Raises:
        SettingError: A property has an unknown name or a wrong value.
    """
    for name, value in _properties_with_prefix(properties, THRESHOLD).items():
        settings = settings.with_(name, value)
    return settings


def _properties_with_prefix(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties whose names begin with ``prefix``, in whatever case, by their names
    without it. ``prefix`` is in lower case."""
    return {
        name[len(prefix) :]: value
        for name, value in properties.items()
        if name.lower().startswith(prefix)
    }
