"""Runs AUTO CDC.

1. *Fold*: one job evaluates the source and writes the newest record of each key to temporary files.
   If a record is bad, the statement fails here.
2. *Decide*: one job joins these records with the target and the state table, and writes its
   decision about each record to temporary files.
3. *Write*: the events of both tables are written from these decisions, as the events of any
   statement are.

There are three ways to decide (``strategies``). If both tables are empty, there is nothing to join:
the records are the decisions. Few records stay in the driver. Then their keys tell which rows to
join. If these rows are few, too, the driver has the decisions without files, and writes their
events itself.

All of these steps are one statement of one transaction. The first statement creates the state table
before, in a transaction of its own. Old deletes are forgotten afterwards, in another transaction
(``tombstones``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from acidsql.acid.cdc import is_pending, pending_table
from acidsql.acid.paths import is_name
from acidsql.acid.table import Table
from acidsql.errors import (
    AnalysisError,
    CatalogError,
    CommitUnknownError,
    TableChangedError,
    TxnError,
    UnsupportedError,
)
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import LockComponent
from acidsql.plan.analysis import lower
from acidsql.plan.cdc.decision import RowAct
from acidsql.plan.cdc.queries import PreparedCdc
from acidsql.plan.cdc.state import declared_retention, need_own_table
from acidsql.plan.locking import reserve_lock
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.standins.query import Resolve
from acidsql.sql.parsed.statements import AutoCdc
from acidsql.sql.parser import parse
from acidsql.statements.cdc.evaluation import Evaluator
from acidsql.statements.cdc.records import Tally, check_decisions, check_records
from acidsql.statements.cdc.strategies import choose_strategy
from acidsql.statements.cdc.tombstones import Tombstones
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import (
    COUNT_COLUMNS,
    Clock,
    Receipt,
    bigint_frame,
    receipt,
    text_frame,
)
from acidsql.statements.context.statement_text import StatementText, new_statement_text
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.context.work import Work
from acidsql.statements.ddl.state_tables import StateTables
from acidsql.statements.dml.hold import LockedStatement
from acidsql.statements.dml.phases import Phases
from acidsql.statements.queries.events import Views
from acidsql.statements.queries.explain import Explainer
from acidsql.statements.queries.filler import Filler
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.spark.views import temp_views

_MORE_COLUMNS = ("num_records", "num_stale_records", "num_duplicate_records")


class AutoCdcStatements:
    """Runs the AUTO CDC statements of one session.

    Attributes:
        tombstones: Forgets old deletes.
    """

    def __init__(
        self, context: Context, tables: StateTables, filler: Filler, explainer: Explainer,
        phases: Phases,
    ) -> None:  # fmt: skip
        self._context, self._spark = context, context.spark
        self._filler, self._explainer, self._phases = filler, explainer, phases
        self._rows, self._tables = TableRows(context), tables
        self.tombstones = Tombstones(context, phases)

    def run(
        self, statement: AutoCdc, statement_text: StatementText, clock: Clock, resolve: Resolve
    ) -> tuple[Receipt, DataFrame]:
        """Run a statement, in the session's transaction or in a transaction of its own.

        If the state table is missing, it is created before, in a transaction of its own. Outside of
        the session's transaction, old deletes are forgotten afterwards.

        Returns:
            The statement's receipt, and its counts as one row.

        Raises:
            SqlError: The text is wrong, or names what does not exist.
            TxnError: The transaction failed, for example by a write conflict or a lock time-out; or
                the state table is to be created, and the session's transaction cannot see it.
            ConstraintError: A record has a NULL in its key or its order value, different records
                have one key and one order value, or the target has a key twice.
            TableChangedError: Others dropped the state table meanwhile.
        """
        self._context.warm_workers()
        with clock("say"):
            prepared = self._prepare(statement, statement_text, resolve)
        with (
            self._ensure_state_table(prepared, statement, statement_text) as prepared,
            self._context.transactions.changing_transaction(statement_text.text) as transaction,
        ):
            with transaction.statement("AUTO CDC", statement_text.text) as work:
                with clock("hold"):
                    locked = self._phases.holder.hold(
                        transaction.txn, statement, statement_text, prepared
                    )
                tally = self._apply(transaction, locked, statement_text, clock, work)
            with clock("keep"):
                self._context.transactions.end_statement(transaction)
        text, txn_id, published = statement_text.text, transaction.id, work.published
        statement_receipt = receipt(text, txn_id, published, clock.seconds, transaction.compaction)
        cdc_receipt = _with_tally(statement_receipt, prepared, tally)
        if self._context.transactions.is_autocommit:
            cdc_receipt = cdc_receipt.with_note(self.tombstones.forget(prepared.queries[0].table))
        return cdc_receipt, self._counts_frame(cdc_receipt, tally)

    def explain(
        self,
        prepared: PreparedStatement,
        statement_text: StatementText,
        mode: str | None,
        locks: Iterable[LockComponent],
    ) -> DataFrame:
        """Return EXPLAIN as one row of text: the rules by which records are applied, ``locks``, and
        the plan of the query that joins the folded records with both tables and decides, although
        the statement may decide otherwise (``strategies``). Nothing is written or locked.
        """
        assert isinstance(prepared, PreparedCdc)
        decision_plan = prepared.decide_without_files(prepared.decisions.join)
        rows = self._explainer.explain(decision_plan, statement_text, mode, locks)
        (plan,) = rows.collect()
        return text_frame(self._spark, "plan", [f"{_rules_section(prepared)}\n{plan[0]}"])

    def records_with_faults(self, text: str) -> DataFrame:
        """Return the source's records of the AUTO CDC statement ``text``, whose source is a
        temporary view, lazily. Nothing is applied.

        The records have all of their columns, and one more, ``cdc_fold.FAULT``: the error condition
        with which the statement would refuse the record; NULL for a good record.
        """
        statement_text = new_statement_text(self._spark, text, None)
        names = self._context.names
        statement = parse(
            statement_text.text,
            is_ours=lambda parts: acid_table(names.find_entry(parts, at_a_glance=True)) is not None,
            double_quoted_identifiers=statement_text.double_quoted,
        )
        assert isinstance(statement, AutoCdc)
        return lower.frame(self._spark, self._prepare_again(statement, statement_text).faults, {})

    def make_pending_table(self, target: Table) -> Table:
        """Return the pending table of a target, in which records wait for the rest of their
        source's transaction. If it is missing, it is created, in a transaction of its own; the
        target's properties get the bond with it.

        Raises:
            AnalysisError: A table of another kind has the pending table's name, or the pending
                table was dropped or renamed by others.
            UnsupportedError: The pending table's name would be too long.
            CatalogError: The target was dropped meanwhile.
        """
        expected, metastore = pending_table(target.name), self._context.metastore
        if not is_name(expected.name.name):
            raise UnsupportedError(
                f"The name of {target.name} is too long: {expected.name} must be beside it."
            )
        text = f"commit points of {target.name}"
        if acid_table(metastore.find(expected.name)) is None:
            need_own_table(target, expected.name, None)
            self._tables.create(target, expected, text)
        pending = acid_table(metastore.find(expected.name))
        if pending is None:
            raise CatalogError(f"{target.name} was dropped meanwhile.")
        types = [[(c.name, c.type) for c in table.columns] for table in (pending, expected)]
        if not is_pending(pending) or types[0] != types[1]:
            raise AnalysisError(
                f"{pending.name} is no pending table of AUTO CDC. Rename it: the name is needed.",
                condition="AUTOCDC_INVALID_STATE.NAME_TAKEN",
                sqlstate="55000",
            )
        need_own_table(target, pending.name, pending)
        self._tables.note_bond(target, pending, text)
        return pending

    def lock_targets(self, targets: Sequence[Table]) -> None:
        """Take an EXCL_WRITE lock on each target of later statements, for the open transaction,
        before anything is read. An empty list takes no lock.

        A later statement takes the snapshot (I6: lock, then look), so the transaction waits here
        for other appliers of these tables.

        Raises:
            TxnError: No transaction is open, or a lock was not granted in time.
        """
        txn = self._context.transactions.require_transaction().txn
        target_names = [target.name for target in targets]
        if target_names:
            text = f"AUTO CDC INTO {', '.join(map(str, target_names))}"
            txn.lock([reserve_lock(name) for name in target_names], agent_info=text)

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _prepare(
        self, statement: AutoCdc, statement_text: StatementText, resolve: Resolve
    ) -> PreparedCdc:
        """Prepare a statement, before its transaction begins; nothing is locked or written. Raise
        SqlError if the text is wrong, TxnError if the state table is missing and the session's
        transaction, whose snapshot is taken already, would not see a new one."""
        prepared = self._phases.preparer.prepare_at_a_glance(statement, statement_text, resolve)
        assert isinstance(prepared, PreparedCdc)
        current = self._context.transactions.current
        if prepared.is_new and current is not None and current.txn.has_snapshot:
            raise TxnError(
                f"The first AUTO CDC INTO {prepared.queries[0].table.name} creates "
                f"{prepared.state.name}, which this transaction's snapshot cannot see. Begin "
                "the transaction with it, or run it once outside, perhaps without records.",
                condition="OP_NOT_ALLOWED_IN_TXN",
                sqlstate="25001",
            )
        return prepared

    @contextmanager
    def _ensure_state_table(
        self, prepared: PreparedCdc, statement: AutoCdc, statement_text: StatementText
    ) -> Iterator[PreparedCdc]:
        """Create a missing state table before the block, and drop it if the block fails, unless it
        has files or nobody knows whether the block's transaction is committed. Note the bond
        between the two tables in the target's properties.

        Between BEGIN and COMMIT the state table stays: later statements of the transaction may use
        it.

        Yields:
            The statement, prepared over the existing state table.
        """
        is_created = False
        if prepared.is_new:
            is_created = self._tables.create(
                prepared.queries[0].table, prepared.state, statement_text.text
            )
        try:
            if prepared.is_new:
                prepared = self._prepare_again(statement, statement_text)
            if self._tables.note_bond(
                prepared.queries[0].table, prepared.state, statement_text.text
            ):
                prepared = self._prepare_again(statement, statement_text)
            yield prepared
        except CommitUnknownError:
            raise
        except BaseException:
            if is_created and self._context.transactions.current is None:
                self._tables.drop_unwritten(prepared.state, statement_text.text)
            raise

    def _prepare_again(self, statement: AutoCdc, statement_text: StatementText) -> PreparedCdc:
        """Prepare the statement with the tables as the metastore has them now; nothing is
        locked."""
        prepared = self._phases.preparer.prepare_change(statement, statement_text)
        assert isinstance(prepared, PreparedCdc)
        return prepared

    # ── do ───────────────────────────────────────────────────────────────────────────────────

    def _apply(
        self,
        transaction: Transaction,
        locked: LockedStatement,
        statement_text: StatementText,
        clock: Clock,
        work: Work,
    ) -> Tally:
        """Fold the records (the newest of each key), decide about them, and write and publish the
        events of the target and of the state table; nothing is committed. Return the numbers of
        records and decisions. Raise ConstraintError for a bad record or a key that the target has
        twice, TableChangedError if others dropped the state table."""
        prepared = locked.prepared
        assert isinstance(prepared, PreparedCdc)
        if prepared.is_new:
            raise TableChangedError(
                f"{prepared.state.name} was dropped meanwhile. Run the statement again.",
                table=prepared.state.name,
            )
        with ExitStack() as temporary_files:
            txn_id, snapshot = transaction.id, locked.snapshot
            evaluator = Evaluator(
                self._context, self._filler, temporary_files, txn_id, snapshot, statement_text
            )
            with clock("do"):
                records = evaluator.evaluate(prepared.fold, {})
                counts = check_records(prepared, records)
                strategy = choose_strategy(prepared, counts, snapshot, self._rows)
                with temp_views({prepared.files: records.rows}):
                    decisions = strategy.decide(records, evaluator)
                tally = check_decisions(prepared, decisions, counts)
            partitions_by_query, row_counts = locked.possible_partitions, tally.row_counts
            targets = zip(strategy.event_queries, partitions_by_query, row_counts, strict=True)
            changed_queries = [
                (replace(query, hints=replace(query.hints, literal_rows=decisions.few)), partitions)
                for query, partitions, row_count in targets
                if row_count
            ]
            views = Views({prepared.decision_view: decisions.rows})
            self._phases.writer.write_each(
                transaction, changed_queries, views, statement_text, clock, work
            )
        return tally

    def replay_counts_frame(self, cdc_receipt: Receipt) -> DataFrame:
        """Return the row of counts of a statement that is not run, because an earlier run has
        committed it. The numbers of records are 0; the other counts are those of the receipt."""
        return self._counts_frame(cdc_receipt, Tally(0, 0, 0, dict.fromkeys(RowAct, 0), 0, 0, 0))

    def _counts_frame(self, cdc_receipt: Receipt, tally: Tally) -> DataFrame:
        """Return a statement's counts as a DataFrame of one row of BIGINTs: ``COUNT_COLUMNS``, then
        the numbers of records, of stale ones and of duplicates."""
        (counts,) = cdc_receipt.counts
        row = (
            counts.affected, counts.inserted, counts.updated, counts.deleted, cdc_receipt.txn_id,
            counts.write_id, tally.records, tally.stale, tally.duplicates,
        )  # fmt: skip
        return bigint_frame(self._spark, (*COUNT_COLUMNS, *_MORE_COLUMNS), [row])


def _with_tally(statement_receipt: Receipt, prepared: PreparedCdc, tally: Tally) -> Receipt:
    """Return a copy of a statement's receipt with the counts of the target alone, by the tally,
    and, in the place of its notes, the tally's text and ``_order_warnings``."""
    target = str(prepared.queries[0].table.name)
    counts = tally.counts(target, statement_receipt.write_ids.get(target))
    notes = (str(tally), *_order_warnings(prepared))
    return replace(statement_receipt, counts=(counts,), notes=notes)


def _order_warnings(prepared: PreparedCdc) -> list[str]:
    """Return a note for the receipt if the order values are, or contain, texts; else []."""
    if not prepared.sequence.holds("string"):
        return []
    return ["the order values are texts, which compare letter by letter ('10' is below '9')"]


def _rules_section(prepared: PreparedCdc) -> str:
    """Return the section of EXPLAIN that says how the records will be applied: target, keys, order,
    deletes, columns and so on, a line for each."""
    rules, table = prepared.rules, prepared.queries[0].table
    keys = ", ".join(key.name for key in rules.keys)
    order = ", ".join(column.name for column in rules.order)
    order_tables = f"{table.name} in {order}; deleted keys: " if order else ""
    lines = [
        f"target: {table.name}, keys {keys}",
        f"order: {rules.sequence.text}, kept by {order_tables}{prepared.state.name}"
        + (" (to be created)" if prepared.is_new else ""),
        f"deletes: {rules.delete_when.text if rules.delete_when else 'none'}",
        *([f"truncates: {rules.truncate_when.text}"] if rules.truncate_when else []),
        f"sets: {', '.join(column.name for column in rules.columns) or 'nothing but keys'}",
    ]
    if rules.tracked_columns is not None:
        tracked = ", ".join(column.name for column in rules.tracked_columns)
        lines.append(f"new versions (SCD type 2) by: {tracked or 'deletes alone'}")
    if (retention := declared_retention(table.properties)) is not None:
        lines.append(f"forgets deletes after: {retention}")
    if rules.ignore_null_columns:
        lines.append(
            f"keeps at NULL: {', '.join(column.name for column in rules.ignore_null_columns)}"
        )
    if rules.unset_columns:
        lines.append(f"keeps: {', '.join(column.name for column in rules.unset_columns)}")
    return "\n".join(["== AUTO CDC ==", *lines, ""])
