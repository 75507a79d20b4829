"""The initiator: it checks whether changed tables and partitions need a compaction, and queues it.

Source: Hive ``Initiator``, ``InitiatorBase``.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from acidsql.acid.layout import DirectoryKind
from acidsql.acid.state import AcidState
from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import CompactorWriteIdList
from acidsql.compaction.decision import (
    Decision,
    DirectorySizes,
    decide,
    has_failed_too_often,
    has_partition,
    is_left_alone,
    may_tier,
    pool_of,
    size_tiered_request,
    thresholds_of,
)
from acidsql.errors import AcidSqlError
from acidsql.metastore.compaction_queue import (
    Candidate,
    CompactionInfo,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.folding.newest_run import newest_run
from acidsql.storage.tables.listing import list_table
from acidsql.txn import snapshot_of
from acidsql.txn.locks import lock_object_name

_log = logging.getLogger(__name__)

FAILED_TOO_OFTEN = (
    "the last {} compactions failed; ALTER TABLE … COMPACT tries again, and so does this in {}"
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result for one table or partition.

    Attributes:
        table: The table.
        partition: The partition; None for an unpartitioned table.
        why: The reason, in words for a person.
        id: The number of the queue's entry; None if nothing was queued.
    """

    table: TableName
    partition: str | None
    why: str
    id: int | None = None

    @property
    def place(self) -> str:
        """``db.table`` or ``db.table/p=1``."""
        return lock_object_name(self.table.database, self.table.name, self.partition)


Entries = Mapping[tuple[TableName, str | None], Sequence[CompactionInfo]]


def entries_by_place(entries: Iterable[CompactionInfo]) -> Entries:
    """Group the entries of the compaction queue and its history by table and partition (None:
    unpartitioned), in the order given. Places without entries are left out."""
    entries_by_place = defaultdict[tuple[TableName, str | None], list[CompactionInfo]](list)
    for entry in entries:
        entries_by_place[entry.table, entry.partition].append(entry)
    return entries_by_place


class Initiator:
    """Checks tables and partitions, and queues compactions.

    A *candidate* is a table or partition to check, with the facts that the metastore has of it:
    aborted transactions, and the time since the last write. The queue is read once, when a check
    first needs it, and again by ``run``.

    Args:
        metastore: The metastore with the queue.
        settings: The thresholds.
        initiator_id: ``<host>-<id>``, shown to others.
        entries: The queue, if the caller has read it.
    """

    def __init__(
        self,
        metastore: Metastore,
        settings: Settings,
        initiator_id: str,
        entries: Entries | None = None,
    ) -> None:
        self._metastore, self._settings, self._id = metastore, settings, initiator_id
        self._entries = entries

    def _entries_of(self, candidate: Candidate) -> Sequence[CompactionInfo]:
        """Return the entries of the queue and its history for a table or partition."""
        if self._entries is None:
            self._entries = entries_by_place(self._metastore.compactions())
        return self._entries.get((candidate.table, candidate.partition), ())

    def run(self) -> list[CheckResult]:
        """Check all tables and partitions that changed since their last compaction, and queue the
        compactions that are due. Return one result for each place, also where none is due; places
        that are gone, or cannot be compacted, have none."""
        self._entries = None
        checked = []
        for candidate in self._metastore.candidates():
            outcome = self.check(candidate)
            if outcome is not None:
                checked.append(outcome)
        return checked

    def check(self, candidate: Candidate) -> CheckResult | None:
        """Check one table or partition, and queue a compaction if it is due. Return why it is due
        or not, with the number of the queue's entry if there is one.

        None: there is no such ACID table; the candidate names a partition of an unpartitioned
        table, or none of a partitioned one; or the partition was dropped during the check. An error
        of the decision is not raised: it is noted in the compaction history, and is the reason."""
        table = acid_table(self._metastore.find(candidate.table))
        # A change of a partitioned table without a partition changed no rows.
        if table is None or bool(table.partition_columns) != (candidate.partition is not None):
            return None
        where = candidate.table, candidate.partition
        try:
            decision = self._decision(table, candidate)
        except (AcidSqlError, OSError) as error:
            if not has_partition(self._metastore, table, candidate.partition):
                return None  # dropped meanwhile
            self._metastore.did_not_initiate(
                self._request(table, candidate, CompactionType.MAJOR, ""), str(error)
            )
            return CheckResult(*where, str(error))
        if decision.type is None:
            return CheckResult(*where, decision.why)
        return self._queue(table, candidate, decision)

    def preview_check(self, table: Table, candidate: Candidate) -> Decision:
        """Return the decision that ``check`` would make now; one without a type if there is an
        error, or the last compactions failed too often. Nothing is queued or noted; what is queued
        already does not count."""
        try:
            decision = self._decision(table, candidate)
        except (AcidSqlError, OSError) as error:
            return Decision(None, str(error))
        if decision.type is not None and (why := self._why_given_up(candidate)) is not None:
            return Decision(None, why)
        return decision

    def _decision(self, table: Table, candidate: Candidate) -> Decision:
        """Return which compaction a table or partition needs, and why, by the settings and the
        table's own thresholds. The type is None, and no directory is listed, if the table has
        NO_AUTO_COMPACTION, is SORTED BY, or is insert-only and the settings do not let such tables
        be compacted."""
        if is_left_alone(table):
            return Decision(None, "NO_AUTO_COMPACTION is set")
        if table.sort_columns:
            why = "the table is SORTED BY, which a compaction would not keep"
            return Decision(None, why)
        if table.is_insert_only and not self._settings.compactor_compact_insert_only:
            why = "insert-only, and hive.compactor.compact.insert.only is false"
            return Decision(None, why)
        return self.decide_by_thresholds(table, candidate, thresholds_of(table, self._settings))

    def decide_by_thresholds(
        self, table: Table, candidate: Candidate, settings: Settings
    ) -> Decision:
        """List the directory, and return the compaction that is due by the thresholds in
        ``settings`` alone; NO_AUTO_COMPACTION and the table's own thresholds do not count. Only a
        table that may be size-tiered (``may_tier``) gets such a decision; the reason then says
        which deltas are taken."""
        snapshot = snapshot_of(self._metastore, self._metastore.valid_txns(), [table.name])
        write_ids = CompactorWriteIdList.from_snapshot(snapshot.write_ids[table.name])
        fs = filesystem_for(table.location)
        (listing,) = list_table(
            fs, table.location, [candidate.partition or ""], write_ids, snapshot.valid_txns,
            plain=table.is_insert_only,
        )  # fmt: skip
        state = listing.state
        in_base = [file.size for file in listing.data if file.directory.kind is DirectoryKind.BASE]
        in_deltas = [
            file.size for file in listing.data if file.directory.kind is not DirectoryKind.BASE
        ]
        plain = {
            in_delta: [
                p for group in listing.originals if group.in_delta == in_delta for p in group.paths
            ]
            for in_delta in (False, True)
        }
        decision = decide(
            DirectorySizes(
                base_bytes=sum(in_base) + _bytes(fs, plain[False]),
                delta_bytes=sum(in_deltas)
                + sum(file.size for file in listing.deletes)
                + _bytes(fs, plain[True]),
                deltas=len(state.deltas),
                has_obsolete_bases=any(name.startswith("base_") for name in state.obsolete)
                and not self._waits_for_cleaning(candidate, state),
                aborted_txns=candidate.aborted_txns,
                oldest_abort_ms=candidate.oldest_abort_ms,
                quiet_ms=candidate.quiet_ms,
            ),
            settings,
        )
        if not decision.size_tiered or not may_tier(self._metastore, table):
            return replace(decision, size_tiered=False)
        run = newest_run(listing, settings.compactor_delta_num_threshold)
        return replace(decision, why=f"{decision.why}; takes {run}")

    def _waits_for_cleaning(self, candidate: Candidate, state: AcidState) -> bool:
        """Whether a compaction of the newest base, or a later one, waits for the cleaner, which
        then knows of the obsolete bases and may keep them as history. Without a base, each
        compaction that waits counts."""
        newest = 0 if state.base is None else state.base.min_write_id
        return any(
            compaction.state is CompactionState.READY_FOR_CLEANING
            and (compaction.highest_write_id or 0) >= newest
            for compaction in self._entries_of(candidate)
        )

    def _queue(self, table: Table, candidate: Candidate, decision: Decision) -> CheckResult:
        """Queue the compaction that is due, and return the reason and the entry's number. If the
        last compactions have failed too often, only note in the history that none began: the result
        has no number. If a compaction is queued already, return its number, and its state as the
        reason."""
        assert decision.type is not None
        where = candidate.table, candidate.partition
        properties = {}
        if decision.size_tiered:
            properties = size_tiered_request(thresholds_of(table, self._settings))
        request = self._request(table, candidate, decision.type, decision.why, properties)
        if (why := self._why_given_up(candidate)) is not None:
            self._metastore.did_not_initiate(request, why)
            return CheckResult(*where, why)
        answer = self._metastore.compact(request)
        if answer.accepted:
            _log.info("Compaction %d of %s is queued: %s", answer.id, where, decision.why)
            return CheckResult(*where, decision.why, answer.id)
        return CheckResult(*where, f"compaction {answer.id} is {answer.state.shown}", answer.id)

    def _why_given_up(self, candidate: Candidate) -> str | None:
        """Return the message that no compaction of the place is tried any more, because the last
        ones failed; None if one may be tried."""
        newest_first = sorted(self._entries_of(candidate), key=lambda compaction: -compaction.id)
        if not newest_first or not has_failed_too_often(
            newest_first, self._metastore.now_ms(), self._settings
        ):
            return None
        days = self._settings.compactor_failed_retry_time_ms / 86_400_000
        return FAILED_TOO_OFTEN.format(self._settings.compactor_failed_threshold, f"{days:g} days")

    def _request(
        self,
        table: Table,
        candidate: Candidate,
        compaction_type: CompactionType,
        why: str,
        properties: Mapping[str, str] | None = None,
    ) -> CompactionRequest:
        """Return the request for a compaction of a place, in the table's pool. Nothing is
        queued."""
        return CompactionRequest(
            candidate.table, candidate.partition, compaction_type, self._id, properties or {},
            pool=pool_of(table), why=why,
        )  # fmt: skip


def _bytes(fs: FileSystem, paths: list[str]) -> int:
    """Return the size of these files together, in bytes."""
    return sum(run_in_threads(fs.size, paths))
