"""Runs ALTER TABLE … COMPACT and its relatives: wait for compactions, explain them, clean up.

Source: Hive ``AlterTableCompactOperation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from acidsql.acid.state import AcidState
from acidsql.acid.table import Table
from acidsql.acid.write_ids import CompactorWriteIdList
from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.decision import compaction_table, max_remaining_deltas, pool_of
from acidsql.compaction.housekeeper import keep_house
from acidsql.compaction.plan_text import nothing_text, plan_text
from acidsql.compaction.worker import NOTHING_TO_DO, Worker, WorkerResources
from acidsql.errors import AcidSqlError, UnsupportedError
from acidsql.metastore.compaction_queue import (
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Receipt, ReceiptWithRows, rows_frame, text_frame
from acidsql.statements.maintenance.compaction_rows import (
    COMPACTIONS,
    REQUESTED,
    RequestOutcome,
    compaction_rows,
    requested_rows,
)
from acidsql.statements.maintenance.compaction_wait import CompactionWaiter
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.folding.plan import CompactionPlan, plan_compaction
from acidsql.txn import Snapshot, snapshot_of

_DEFAULT_POOL = "default"
_EXPLAINED = 10  # of many compactions, so many have a note in the receipt, and a reason


class CompactionStatements(Family):
    """Runs ALTER TABLE … COMPACT, and the session's methods about compactions."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._host = host = context.host
        # A person waits for the compaction, so it uses all task slots.
        resources = WorkerResources(f"acidsql-compact-{id(self)}")
        self._worker = Worker(
            self._spark, self._metastore, self._txns, f"{host}-session{id(self)}", resources
        )
        self._waiter = CompactionWaiter(
            self._metastore, self._worker.run_next, lambda: self._txns.settings
        )

    @runs(st.CompactTable)
    def compact_table(self, statement: st.CompactTable, text: str) -> ReceiptWithRows:
        """Run ALTER TABLE … COMPACT: queue a compaction of each partition that PARTITION means, or
        of all, and, if the statement has AND WAIT, wait until all have ended; this session runs
        them if no other worker does. The result has a row for each (``REQUESTED``), the receipt a
        note for each of the first ten: number, state and message; if there are N others, a last
        note ``… and N more: SHOW COMPACTIONS``. Of these ten, the message says if there is nothing
        to compact.

        Raises:
            AnalysisError: PARTITION names no partition.
            UnsupportedError: The table cannot have a compaction of this kind.
            WriteError: The statement has AND WAIT, and a compaction failed; the others have ended.
        """
        table, partitions = self._table_and_partitions(statement, text)
        request = CompactionRequest(
            table.name,
            None,
            statement.type,
            f"{self._host}-manual",
            dict(statement.properties),
            self._pool(table, statement.pool),
            statement.buckets,
            None if statement.order_by is None else statement.order_by.slice(text),
            "asked for",
        )
        outcomes = self._request_compactions(request, partitions, wait=statement.and_wait)
        explained_outcomes = [
            self._explained_outcome(outcome, statement, table) for outcome in outcomes[:_EXPLAINED]
        ]
        more = len(outcomes) - _EXPLAINED
        omission = [f"… and {more} more: SHOW COMPACTIONS"] if more > 0 else []
        outcomes[:_EXPLAINED] = explained_outcomes
        return ReceiptWithRows(
            Receipt(text, notes=(*map(str, explained_outcomes), *omission)),
            rows_frame(self._spark, REQUESTED, requested_rows(outcomes, statement.type)),
        )

    def _explained_outcome(
        self, outcome: RequestOutcome, statement: st.CompactTable, table: Table
    ) -> RequestOutcome:
        """Return the outcome of a request with the reason why there is nothing to compact, by a
        listing of the directories; as it is, if there is something. A compaction that has begun is
        only looked at if it was refused for this."""
        entry = outcome.entry
        is_refused = entry is not None and entry.message == NOTHING_TO_DO
        if entry is None or not (is_refused or entry.state is CompactionState.INITIATED):
            return outcome
        snapshot = snapshot_of(self._metastore, self._metastore.valid_txns(), [table.name])
        try:
            plan, state = self._plan(statement, table, outcome.partition, snapshot)
        except AcidSqlError:  # as a partition that is dropped now
            return outcome
        if not is_refused and (plan is not None or state.obsolete or state.aborted):
            return outcome
        write_ids = snapshot.write_ids[table.name]
        reason = nothing_text(table, outcome.partition, entry.type, state, write_ids)
        return replace(outcome, reason=reason)

    def compact(
        self, table: Table, partition: str | None, kind: CompactionType, *, wait: bool
    ) -> DataFrame:
        """Queue compactions of a table or of one partition, and return their entries as rows of
        SHOW COMPACTIONS. With ``wait``, wait until all have ended first; this session runs them if
        no other worker does.

        Raises:
            CatalogError: There is no such partition.
            WriteError: ``wait`` is true, and a compaction failed.
            TxnError: A transaction is open.
        """
        self._transactions.require_autocommit("compact")
        request = CompactionRequest(
            table.name, None, kind, f"{self._host}-manual", pool=pool_of(table), why="asked for"
        )
        outcomes = self._request_compactions(
            request, self._target_partitions(table, partition), wait=wait
        )
        entries = [outcome.entry for outcome in outcomes if outcome.entry is not None]
        return rows_frame(self._spark, COMPACTIONS, compaction_rows(entries, st.ShowCompactions()))

    def _request_compactions(
        self, template: CompactionRequest, partitions: Sequence[str | None], *, wait: bool
    ) -> list[RequestOutcome]:
        """Queue a compaction of each partition; one that is queued already is not queued again.
        With ``wait``, wait for all of them, running those that no worker takes, and then raise the
        first failure. Return what has become of each, in the partitions' order, without reasons."""
        answers = [
            self._metastore.compact(replace(template, partition=partition))
            for partition in partitions
        ]
        failures: list[AcidSqlError] = []
        for answer in answers if wait else ():
            try:
                self._waiter.wait(answer.id)
            except AcidSqlError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        entry_by_id = {entry.id: entry for entry in self._metastore.compactions()}
        return [
            RequestOutcome(partition, answer, entry_by_id.get(answer.id))
            for partition, answer in zip(partitions, answers, strict=True)
        ]

    def clean(self) -> DataFrame:
        """Delete what no reader can see any more, in all tables, and abort transactions that timed
        out. Return a row for each deleted directory or file: table, path, kind, bytes. An error in
        one table is only logged. Raise TxnError if a transaction is open."""
        self._transactions.require_autocommit("clean")
        # Transactions of dead processes would hold back the cleaner.
        keep_house(self._metastore, self._txns.settings)
        end_leases = self._txns.end_old_leases
        removals = Cleaner(self._metastore, self._txns, end_leases, self._spark).run()
        rows = [
            (str(removal.table), removal.path, removal.kind, removal.bytes) for removal in removals
        ]
        return rows_frame(self._spark, "table string, path string, kind string, bytes bigint", rows)

    def require_worker(self) -> None:
        """Raise UnsupportedError if sessions cannot compact over this metastore."""
        if not self._metastore.abilities.can_work:
            raise UnsupportedError(
                "Only Hive compacts the tables of this metastore. ALTER TABLE … COMPACT asks for a "
                "compaction.",
                condition="UNSUPPORTED_FEATURE.COMPACTOR",
            )

    def explain(self, statement: st.CompactTable, text: str) -> DataFrame:
        """Return what ALTER TABLE … COMPACT would do now, as one row of text, which has a part for
        each partition. Nothing is queued."""
        table, partitions = self._table_and_partitions(statement, text)
        snapshot = snapshot_of(self._metastore, self._metastore.valid_txns(), [table.name])
        plan_texts = [
            self._plan_text(statement, table, partition, snapshot) for partition in partitions
        ]
        return text_frame(self._spark, "plan", ["\n".join(plan_texts)])

    def _plan_text(
        self, statement: st.CompactTable, table: Table, partition: str | None, snapshot: Snapshot
    ) -> str:
        """Return, as text, what a compaction of one partition would do now, by a listing of its
        directories. ``partition``: None for an unpartitioned table."""
        plan, state = self._plan(statement, table, partition, snapshot)
        write_ids = snapshot.write_ids[table.name]
        return plan_text(table, partition, statement.type, plan, state, write_ids)

    def _plan(
        self, statement: st.CompactTable, table: Table, partition: str | None, snapshot: Snapshot
    ) -> tuple[CompactionPlan | None, AcidState]:
        """List the directories of one partition, and return the plan of a compaction, None if there
        is nothing to merge, and the state of the directories. ``partition``: None for an
        unpartitioned table."""
        return plan_compaction(
            filesystem_for(table.location),
            compaction_table(table, dict(statement.properties)),
            partition or "",
            CompactorWriteIdList.from_snapshot(snapshot.write_ids[table.name]),
            snapshot.valid_txns,
            major=statement.type is not CompactionType.MINOR,
            anyway=statement.type is CompactionType.REBALANCE,
            most_left=max_remaining_deltas(
                self._metastore, table, dict(statement.properties), self._txns.settings
            ),
        )

    def _table_and_partitions(
        self, statement: st.CompactTable, text: str
    ) -> tuple[Table, Sequence[str | None]]:
        """Return the table, and the partitions that PARTITION (…) means, by name; without PARTITION
        all of them, or [None] if unpartitioned. Raise AnalysisError if there is no such table or
        partition."""
        table = self._names.require_table(statement.name, text)
        if not statement.partition:
            return table, self._target_partitions(table, None)
        return table, self._partitions.matching_partitions(table, [statement.partition], text)

    def _pool(self, table: Table, requested_pool: str | None) -> str | None:
        """Return the requested pool or, if it is None, the table's. None stands for the pool
        ``default``."""
        return None if requested_pool == _DEFAULT_POOL else pool_of(table, requested_pool)
