"""Runs AUTO CDC.

1. *Fold*: one job evaluates the source and writes the newest record of each key to temporary files.
   If a record is bad, the statement fails here.
2. *Decide*: one job joins these records with the target and the state table, and writes what
   becomes of each of them to temporary files.
3. The events of both tables are written from these decisions, as those of any statement.

If there are no rows yet, there is nothing to join: the records are the decision. Few records stay
in the driver. Then their keys tell which rows to join, and if these are few, too, the driver has
the decision without files. It writes the events of a decision that it has.

All of it is one statement of one transaction. The state table is made before the first one, in a
transaction of its own; old deletes are forgotten after it, in another one (``tombstones``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from acidsql.acid.cdc import is_pending, pending_table
from acidsql.acid.paths import is_name
from acidsql.acid.predicate import ANYTHING, Comparison, Demand, some_of
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
from acidsql.plan import lower
from acidsql.plan.cdc import PreparedCdc
from acidsql.plan.cdc_decision import Act
from acidsql.plan.cdc_state import declared_retention, need_own
from acidsql.plan.event_query import EventQuery
from acidsql.plan.locking import reserving
from acidsql.plan.query import Resolve
from acidsql.plan.rewrite import Prepared
from acidsql.sql.parser import parse
from acidsql.sql.statements import AutoCdc
from acidsql.statements.cdc_records import Tally, check_records, refuse_twice, tally_of
from acidsql.statements.events import Views
from acidsql.statements.family import Context
from acidsql.statements.hold import Held, Holder
from acidsql.statements.prepare import Preparer
from acidsql.statements.reader import Reader
from acidsql.statements.result import (
    COUNT_COLUMNS,
    Clock,
    Receipt,
    numbers_frame,
    receipt,
    rows_frame,
)
from acidsql.statements.state_tables import StateTables
from acidsql.statements.statement_text import StatementText, new_statement_text
from acidsql.statements.tombstones import Tombstones
from acidsql.statements.unit_of_work import Transaction
from acidsql.statements.work import Work
from acidsql.statements.write import Writer
from acidsql.storage.reading.source_partitions import demanded_by_source
from acidsql.storage.spark.jvm import SEND_NOTHING, changed_conf, is_too_large_to_send
from acidsql.storage.spark.repeatable import is_of_literals
from acidsql.storage.spark.views import temp_views
from acidsql.storage.writing.staging import Evaluated, evaluated

_MORE_COLUMNS = ("num_records", "num_stale_records", "num_duplicate_records")


class AutoCdcStatements:
    """Runs the AUTO CDC statements of one session.

    Attributes:
        tombstones: Forgets old deletes.
    """

    def __init__(
        self,
        context: Context,
        preparer: Preparer,
        holder: Holder,
        reader: Reader,
        writer: Writer,
        tables: StateTables,
    ) -> None:
        self._context, self._spark = context, context.spark
        self._preparer, self._holder = preparer, holder
        self._reader, self._writer, self._tables = reader, writer, tables
        self.tombstones = Tombstones(context, preparer, holder, writer)

    def run(
        self, statement: AutoCdc, said: StatementText, clock: Clock, resolve: Resolve
    ) -> tuple[Receipt, DataFrame]:
        """Run a statement, in the session's transaction or in its own.

        Returns:
            Its receipt, and the counts as one row.

        Raises:
            SqlError, TxnError: As any statement that changes rows.
            ConstraintError: A record has a NULL in its key or its order value, different records
                have one key and one order value, or the target has a key twice.
        """
        with clock("say"):
            prepared = self._prepared(statement, said, resolve)
        with (
            self._with_state(prepared, statement, said) as prepared,
            self._context.transactions.changing(said.text) as transaction,
        ):
            with transaction.statement("AUTO CDC", said.text) as work:
                with clock("hold"):
                    held = self._holder.hold(transaction.txn, statement, said, prepared)
                tally = self._apply(transaction, held, said, clock, work)
            with clock("keep"):
                self._context.transactions.end_of_statement(transaction)
        done = receipt(said.text, transaction.id, work.published, clock.seconds,
                       transaction.compaction)  # fmt: skip
        target = str(prepared.queries[0].table.name)
        counts = tally.counts(target, done.write_ids.get(target))
        done = replace(done, counts=(counts,), notes=(str(tally), *_warnings(prepared)))
        if self._context.transactions.is_plain:
            done = done.with_note(self.tombstones.forget(prepared.queries[0].table))
        return done, self._frame(done, tally)

    def explain(
        self,
        prepared: Prepared,
        said: StatementText,
        mode: str | None,
        locks: Iterable[LockComponent],
    ) -> DataFrame:
        """EXPLAIN: the rules, the locks, and the plan of the decision over the folded records."""
        assert isinstance(prepared, PreparedCdc)
        shown = prepared.unwritten(prepared.ways.join)
        (plan,) = self._reader.explain(shown, said, mode, locks).collect()
        return rows_frame(self._spark, "plan string", [(f"{_rules(prepared)}\n{plan[0]}",)])

    def faults(self, text: str) -> DataFrame:
        """The records of a statement over a temporary view, as they are, lazily.

        The column ``cdc_fold.FAULT`` says for which condition the statement would refuse a record.
        """
        said = new_statement_text(self._spark, text, None)
        names = self._context.names
        statement = parse(
            said.text,
            is_acid=lambda parts: names.peek_acid_table(parts) is not None,
            double_quoted_identifiers=said.double_quoted,
        )
        assert isinstance(statement, AutoCdc)
        return lower.frame(self._spark, self._again(statement, said).faults, {})

    def make_pending(self, target: Table) -> Table:
        """The pending table beside a target. It is created if it is missing.

        Raises:
            AnalysisError: Another table has its name, or others have dropped or renamed it.
            UnsupportedError: Its name would be too long.
            CatalogError: The target was dropped meanwhile.
        """
        wanted, store = pending_table(target.name), self._context.metastore
        if not is_name(wanted.name.name):
            raise UnsupportedError(
                f"The name of {target.name} is too long: {wanted.name} must be beside it."
            )
        text = f"commit points of {target.name}"
        if acid_table(store.find(wanted.name)) is None:
            need_own(target, wanted.name, None)
            self._tables.create(target, wanted, text)
        found = acid_table(store.find(wanted.name))
        if found is None:
            raise CatalogError(f"{target.name} was dropped meanwhile.")
        types = [[(c.name, c.type) for c in one.columns] for one in (found, wanted)]
        if not is_pending(found) or types[0] != types[1]:
            raise AnalysisError(
                f"{found.name} is no pending table of AUTO CDC. Rename it: the name is needed.",
                condition="AUTOCDC_INVALID_STATE.NAME_TAKEN", sqlstate="55000",
            )  # fmt: skip
        need_own(target, found.name, found)
        self._tables.bind(target, found, text)
        return found

    def reserve(self, targets: Sequence[Table]) -> None:
        """Lock the targets of later statements, before anything is read: the snapshot is taken
        after the locks (I6), so that other appliers of these tables are waited for."""
        txn, names = self._context.transactions.need().txn, [one.name for one in targets]
        if names:
            text = f"AUTO CDC INTO {', '.join(map(str, names))}"
            txn.lock([reserving(name) for name in names], agent_info=text)

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _prepared(self, statement: AutoCdc, said: StatementText, resolve: Resolve) -> PreparedCdc:
        prepared = self._preparer.at_a_glance(statement, said, resolve)
        assert isinstance(prepared, PreparedCdc)
        current = self._context.transactions.current
        if prepared.is_new and current is not None and current.txn.has_looked:
            raise TxnError(
                f"The first AUTO CDC INTO {prepared.queries[0].table.name} creates "
                f"{prepared.state.name}, which this transaction's snapshot cannot see. Begin "
                "the transaction with it, or run it once outside, perhaps without records.",
                condition="OP_NOT_ALLOWED_IN_TXN", sqlstate="25001",
            )  # fmt: skip
        return prepared

    @contextmanager
    def _with_state(
        self, prepared: PreparedCdc, statement: AutoCdc, said: StatementText
    ) -> Iterator[PreparedCdc]:
        """Create the state table for the first statement, and drop it if this statement fails.

        Between BEGIN and COMMIT the table stays: later statements of the transaction may use it.

        Yields:
            The statement over the state table.
        """
        made = False
        if prepared.is_new:
            made = self._tables.create(prepared.queries[0].table, prepared.state, said.text)
        try:
            if prepared.is_new:
                prepared = self._again(statement, said)
            if self._tables.bind(prepared.queries[0].table, prepared.state, said.text):
                prepared = self._again(statement, said)
            yield prepared
        except CommitUnknownError:
            raise
        except BaseException:
            if made and self._context.transactions.current is None:
                self._tables.drop_unwritten(prepared.state, said.text)
            raise

    def _again(self, statement: AutoCdc, said: StatementText) -> PreparedCdc:
        prepared = self._preparer.change(statement, said)
        assert isinstance(prepared, PreparedCdc)
        return prepared

    # ── do ───────────────────────────────────────────────────────────────────────────────────

    def _apply(
        self, transaction: Transaction, held: Held, said: StatementText, clock: Clock, work: Work
    ) -> Tally:
        prepared = held.prepared
        assert isinstance(prepared, PreparedCdc)
        if prepared.is_new:
            raise TableChangedError(
                f"{prepared.state.name} was dropped meanwhile. Run the statement again.",
                table=prepared.state.name,
            )
        with ExitStack() as files:
            with clock("do"):
                folded = self._kept(files, prepared.fold, transaction, held, said, {})
                found = check_records(prepared, folded)
                decide, queries = self._way(prepared, held, found)
                with temp_views({prepared.files: folded.rows}):
                    if decide is prepared.ways.first:  # a projection of the folded records
                        (query,) = decide.queries
                        rows = lower.frame(self._spark, query.query, {}, said.args, said.time)
                        decided = replace(folded, rows=rows)
                    else:
                        needed = _needed(prepared, folded) if decide is prepared.ways.join else {}
                        decided = self._kept(files, decide, transaction, held, said, needed)
                tally = tally_of(decided)
                is_history = prepared.rules.history is not None
                records = found["orders" if is_history else "keys"]
                if tally.keys != records or tally.twice or found["truncations"]:
                    refuse_twice(prepared, decided.rows)
            targets = zip(queries, held.touched, strict=True)
            changed = (sum(tally.acts.values()), tally.notes)
            written = [
                (replace(query, literal_rows=decided.few), touched)
                for (query, touched), rows in zip(targets, changed, strict=True)
                if rows
            ]
            views = Views({prepared.decided: decided.rows})
            self._writer.write_each(transaction, written, views, said, clock, work)
        return tally

    def _way(
        self, prepared: PreparedCdc, held: Held, found: Mapping[str, int]
    ) -> tuple[Prepared, Sequence[EventQuery]]:
        """The decision for these records, and the queries of events for its result."""
        ways = prepared.ways
        if ways.first and not held.snapshot.write_ids[prepared.state.name].is_any_valid:
            listings, _ = self._reader.listed(prepared.queries[0].table, held.snapshot)
            if not any(one.data or one.originals for one in listings):
                return ways.first, prepared.loads
        chosen = ways.truncate if found["truncations"] else None
        return chosen or ways.join, prepared.queries

    def _kept(
        self,
        files: ExitStack,
        part: Prepared,
        transaction: Transaction,
        held: Held,
        said: StatementText,
        needed: Mapping[str, Demand],
    ) -> Evaluated:
        """The rows of the query of a part, in temporary files or in the driver.

        All that follows sees one evaluation of the source. A decision over literals may be
        evaluated anew.
        """
        (query,) = part.queries
        few = self._context.txns.settings.few_rows
        few_of_tables = few if needed else 0
        views = self._reader.views(
            part, held.snapshot, said, few=few_of_tables, explicit_demands=needed
        )
        if needed and all(map(is_of_literals, views.values())):  # there is nothing to reduce
            query = replace(query, reduced=None)
        events = self._reader.events(query, views, said)

        def keep(rows: DataFrame) -> Evaluated:
            place = query.table.location
            may_repeat = bool(needed) and is_of_literals(rows)
            kept = evaluated(rows, place, transaction.id, few, may_repeat=may_repeat)
            return files.enter_context(kept)

        with lower.mapped_errors(query.query):
            try:
                return keep(events.rows)
            except Exception as error:
                if events.otherwise is None or not is_too_large_to_send(error):
                    raise
            with changed_conf(self._spark, SEND_NOTHING):
                return keep(events.otherwise())

    def skipped(self, done: Receipt) -> DataFrame:
        """The row of counts of a statement that is a replay: there were no records."""
        return self._frame(done, Tally(0, 0, 0, dict.fromkeys(Act, 0), 0, 0, 0))

    def _frame(self, done: Receipt, tally: Tally) -> DataFrame:
        (counts,) = done.counts
        row = (
            counts.affected, counts.inserted, counts.updated, counts.deleted, done.txn_id,
            counts.write_id, tally.records, tally.stale, tally.duplicates,
        )  # fmt: skip
        return numbers_frame(self._spark, (*COUNT_COLUMNS, *_MORE_COLUMNS), [row])


def _needed(prepared: PreparedCdc, folded: Evaluated) -> Mapping[str, Demand]:
    """The rows that few records need of the target and of the state table: those of their keys.

    By view. Empty if the records are many, or if the values of no key tell which rows these are.
    """
    keys = prepared.rules.keys
    if folded.few is None:
        return {}
    equated = [(key, f"k{i}") for i, key in enumerate(keys)]
    of_keys = demanded_by_source(folded.rows, equated, is_distinct=True, most=folded.few)
    if of_keys == ANYTHING:
        return {}
    noted = some_of([of_keys, Comparison(keys[0].name, "is null")])  # and the floor
    return {
        one.view: Demand(of_keys if one.is_target else noted) for one in prepared.ways.join.standins
    }


def _warnings(prepared: PreparedCdc) -> list[str]:
    if not prepared.sequence.holds("string"):
        return []
    return ["the order values are texts, which compare letter by letter ('10' is below '9')"]


def _rules(prepared: PreparedCdc) -> str:
    """The section of EXPLAIN that says what the records will do."""
    rules, table = prepared.rules, prepared.queries[0].table
    keys = ", ".join(key.name for key in rules.keys)
    order = ", ".join(column.name for column in rules.order)
    kept = f"{table.name} in {order}; deleted keys: " if order else ""
    lines = [
        f"target: {table.name}, keys {keys}",
        f"order: {rules.sequence.text}, kept by {kept}{prepared.state.name}"
        + (" (to be created)" if prepared.is_new else ""),
        f"deletes: {rules.delete_when.text if rules.delete_when else 'none'}",
        *([f"truncates: {rules.truncate_when.text}"] if rules.truncate_when else []),
        f"sets: {', '.join(column.name for column in rules.columns) or 'nothing but keys'}",
    ]
    if rules.history is not None:
        tracked = ", ".join(column.name for column in rules.history)
        lines.append(f"new versions (SCD type 2) by: {tracked or 'deletes alone'}")
    if (retention := declared_retention(table.properties)) is not None:
        lines.append(f"forgets deletes after: {retention}")
    if rules.ignoring:
        lines.append(f"keeps at NULL: {', '.join(column.name for column in rules.ignoring)}")
    if rules.kept:
        lines.append(f"keeps: {', '.join(column.name for column in rules.kept)}")
    return "\n".join(["== AUTO CDC ==", *lines, ""])
