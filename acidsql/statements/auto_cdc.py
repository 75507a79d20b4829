"""Runs AUTO CDC.

1. *Fold*: one job evaluates the source and writes the newest record of each key to temporary files.
   If a record is bad, the statement fails here.
2. *Decide*: one job joins these records with the target and the state table, and writes what
   becomes of each of them to temporary files.
3. The events of both tables are written from these decisions, as those of any statement.

All of it is one statement of one transaction. The state table is made before the first one, in a
transaction of its own.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import NoReturn

from pyspark.sql import DataFrame, Row

from acidsql.errors import CatalogError, ConstraintError, TxnError, UnsupportedError
from acidsql.plan import lower
from acidsql.plan.cdc import PreparedCdc
from acidsql.plan.cdc_decision import DUPLICATE, STALE, Act
from acidsql.plan.event_query import Derived
from acidsql.plan.query import Resolve
from acidsql.plan.rewrite import Prepared
from acidsql.sql.statements import AutoCdc
from acidsql.statements.family import Context
from acidsql.statements.hold import Held, Holder
from acidsql.statements.prepare import Preparer
from acidsql.statements.reader import Reader, Views
from acidsql.statements.result import COUNT_COLUMNS, Clock, Counts, Receipt, receipt, rows_frame
from acidsql.statements.said import Said
from acidsql.statements.tables import TableStatements
from acidsql.statements.unit_of_work import Transaction
from acidsql.statements.work import Work
from acidsql.statements.write import Writer
from acidsql.storage.spark.jvm import SEND_NOTHING, changed_conf, is_too_large_to_send
from acidsql.storage.spark.views import temp_views
from acidsql.storage.writing.staging import staged

_SAMPLES = 3
_MORE_COLUMNS = ("num_records", "num_stale_records", "num_duplicate_records")


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the records.

    Attributes:
        records: The number of records.
        stale: Those that a newer record, or a newer row, has overtaken.
        duplicates: Those that were there already, in the table or in the source.
        acts: The number of rows of the target for each kind of act.
        notes: The number of rows of the state table that change.
        rows: The number of decisions.
    """

    records: int
    stale: int
    duplicates: int
    acts: dict[Act, int]
    notes: int
    rows: int

    def counts(self, table: str, write_id: int | None) -> Counts:
        """The changed rows. A row that moves is one updated row."""
        acts = self.acts
        updated = acts[Act.UPDATE] + acts[Act.MOVE]
        return Counts(table, acts[Act.INSERT], updated, acts[Act.DELETE], write_id)

    def __str__(self) -> str:
        parts = [f"{self.records:,} record{'s' * (self.records != 1)}"]
        parts += [f"{self.stale:,} stale"] if self.stale else []
        parts += [f"{self.duplicates:,} duplicate"] if self.duplicates else []
        return ", ".join(parts)


class AutoCdcStatements:
    """Runs the AUTO CDC statements of one session."""

    def __init__(
        self,
        context: Context,
        preparer: Preparer,
        holder: Holder,
        reader: Reader,
        writer: Writer,
        tables: TableStatements,
    ) -> None:
        self._context, self._spark = context, context.spark
        self._preparer, self._holder = preparer, holder
        self._reader, self._writer, self._tables = reader, writer, tables

    def run(
        self, statement: AutoCdc, said: Said, clock: Clock, resolve: Resolve
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
        with self._context.transactions.changing(said.text) as transaction:
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
        return done, self._frame(done, tally)

    def explain(self, statement: AutoCdc, said: Said, mode: str | None) -> DataFrame:
        """EXPLAIN: the rules, the locks, and the plan of the decision over the folded records."""
        prepared = self._preparer.change(statement, said)
        assert isinstance(prepared, PreparedCdc)
        locks = self._holder.locks(statement, prepared, said)
        shown = prepared.fold
        if not prepared.is_new:
            (decide,) = prepared.decide.queries
            assert decide.source is not None
            source = Derived(decide.source.view, shown.queries[0].query)
            standins = (*shown.standins, *prepared.decide.standins)
            shown = replace(shown, queries=(replace(decide, source=source),), standins=standins)
        (plan,) = self._reader.explain(shown, said, mode, locks).collect()
        return rows_frame(self._spark, "plan string", [(f"{_rules(prepared)}\n{plan[0]}",)])

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _prepared(self, statement: AutoCdc, said: Said, resolve: Resolve) -> PreparedCdc:
        if not self._context.metastore.abilities.keeps_state_tables:
            raise UnsupportedError(
                "AUTO CDC needs acidsql's own metastore: this one cannot drop or rename a table "
                "and its state table in one step.",
                said.text, statement.target.span.start, statement.target.span.end,
                condition="UNSUPPORTED_FEATURE.AUTO_CDC",
            )  # fmt: skip
        prepared = self._preparer.at_a_glance(statement, said, resolve)
        assert isinstance(prepared, PreparedCdc)
        if prepared.is_new:
            current = self._context.transactions.current
            if current is not None and current.txn.has_looked:
                raise TxnError(
                    f"The first AUTO CDC INTO {prepared.queries[0].table.name} creates "
                    f"{prepared.state.name}, which this transaction's snapshot cannot see. Begin "
                    "the transaction with it, or run it once outside, perhaps without records.",
                    condition="OP_NOT_ALLOWED_IN_TXN", sqlstate="25001",
                )  # fmt: skip
            self._tables.create_beside(prepared.queries[0].table, prepared.state, said.text)
            again = self._preparer.change(statement, said)
            assert isinstance(again, PreparedCdc)
            return again
        return prepared

    # ── do ───────────────────────────────────────────────────────────────────────────────────

    def _apply(
        self, transaction: Transaction, held: Held, said: Said, clock: Clock, work: Work
    ) -> Tally:
        prepared = held.prepared
        assert isinstance(prepared, PreparedCdc)
        if prepared.is_new:
            raise CatalogError(
                f"{prepared.state.name} was dropped meanwhile. Run the statement again.",
                condition="TABLE_CHANGED_MEANWHILE", sqlstate="40001", table=prepared.state.name,
            )  # fmt: skip
        with ExitStack() as files:
            with clock("do"):
                folded = self._kept(files, prepared.fold, transaction, held, said)
                keys = _check(prepared, folded)
                with temp_views({prepared.files: folded}):
                    decided = self._kept(files, prepared.decide, transaction, held, said)
                tally = _tally(decided)
                if tally.rows != keys:
                    _refuse_twice(prepared, decided)
            targets = zip(prepared.queries, held.touched, strict=True)
            changed = (sum(tally.acts.values()), tally.notes)
            needed = [target for target, rows in zip(targets, changed, strict=True) if rows]
            views = Views({prepared.decided: decided})
            self._writer.write_each(transaction, needed, views, said, clock, work)
        return tally

    def _kept(
        self, files: ExitStack, part: Prepared, transaction: Transaction, held: Held, said: Said
    ) -> DataFrame:
        """The rows of the query of a part, in temporary files. The query is evaluated once."""
        (query,) = part.queries
        views = self._reader.views(part, held.snapshot, said)
        events = self._reader.events(query, views, said)

        def keep(rows: DataFrame) -> DataFrame:
            return files.enter_context(staged(rows, query.table.location, transaction.id))

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
        return self._frame(done, Tally(0, 0, 0, dict.fromkeys(Act, 0), 0, 0))

    def _frame(self, done: Receipt, tally: Tally) -> DataFrame:
        (counts,) = done.counts
        names = [f"{name} bigint" for name in (*COUNT_COLUMNS, *_MORE_COLUMNS)]
        row = (
            counts.affected, counts.inserted, counts.updated, counts.deleted, done.txn_id,
            counts.write_id, tally.records, tally.stale, tally.duplicates,
        )  # fmt: skip
        return rows_frame(self._spark, ", ".join(names), [row])


def _check(prepared: PreparedCdc, folded: DataFrame) -> int:
    """Refuse bad records, before anything is changed. Returns the number of keys.

    Raises:
        ConstraintError: AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY, .NULL_SEQUENCE or
            .CONFLICTING_RECORDS, with a few keys.
    """
    names = [f"k{i}" for i in range(len(prepared.rules.keys))]
    no_key = " OR ".join(f"{name} IS NULL" for name in names)
    (found,) = folded.selectExpr(
        "count(*) AS keys", "coalesce(sum(n), 0) AS records", "coalesce(sum(nulls), 0) AS nulls",
        f"coalesce(sum(CASE WHEN {no_key} THEN n END), 0) AS no_keys",
        "coalesce(sum(ties), 0) AS ties",
    ).collect()  # fmt: skip
    of = f"of {found.records:,} records"
    faults = (
        ("NULL_KEY", found.no_keys, no_key, f"{found.no_keys:,} {of} have a NULL in their key"),
        ("NULL_SEQUENCE", found.nulls, "nulls > 0",
         f"{found.nulls:,} {of} have a NULL in their order value"),
        ("CONFLICTING_RECORDS", found.ties, "ties > 0",
         f"Different records have one key and one order value ({found.ties:,} times)"),
    )  # fmt: skip
    for condition, count, where, message in faults:
        if count:
            keys = _samples(prepared, folded.where(where), is_tie=condition.endswith("RECORDS"))
            raise ConstraintError(
                f"{message}: {keys}. Nothing of them was applied.",
                condition=f"AUTOCDC_MICROBATCH_VALIDATION.{condition}", keys=keys,
            )  # fmt: skip
    return int(found.keys)


def _refuse_twice(prepared: PreparedCdc, decided: DataFrame) -> NoReturn:
    """Refuse a target with two rows of one key.

    Raises:
        ConstraintError: AUTOCDC_TARGET_KEY_NOT_UNIQUE, with a few keys.
    """
    names = [f"k{i}" for i in range(len(prepared.rules.keys))]
    twice = decided.groupBy(*names).count().where("count > 1")
    found = _samples(prepared, twice)
    raise ConstraintError(
        f"{prepared.queries[0].table.name}, or its table of order values, has several rows of one "
        f"key: {found}. So it cannot follow changes. Delete all but one of them.",
        condition="AUTOCDC_TARGET_KEY_NOT_UNIQUE", keys=found,
    )  # fmt: skip


def _samples(prepared: PreparedCdc, rows: DataFrame, *, is_tie: bool = False) -> str:
    """A few keys as text, each with an order value that several records have."""
    keys = prepared.rules.keys
    columns = [f"CAST(k{i} AS STRING)" for i in range(len(keys))]
    found = rows.selectExpr(*columns, *(["tie"] if is_tie else [])).head(_SAMPLES)
    names = ", ".join(key.name for key in keys)

    def shown(row: Row) -> str:
        values = ", ".join("NULL" if one is None else one for one in row[: len(keys)])
        return f"({values})" + (f" at {row[-1]}" if is_tie else "")

    return f"({names}) = {', '.join(map(shown, found))}"


def _tally(decided: DataFrame) -> Tally:
    columns = {act.name: f"count_if(act = {act.value}) AS {act.name}" for act in list(Act)[1:]}
    (found,) = decided.selectExpr(
        *columns.values(),
        "count(*) AS rows",
        f"count_if(note <> {Act.NOTHING.value}) AS notes",
        "coalesce(sum(n), 0) AS records",
        # A key's newest record is applied, or is a duplicate, or is stale. The older ones are
        # stale, and further copies of each are duplicates.
        f"coalesce(sum(n - m), 0) + count_if(fate = '{DUPLICATE}') AS duplicates",
        f"coalesce(sum(m - 1), 0) + count_if(fate = '{STALE}') AS stale",
    ).collect()
    acts = {act: int(found[act.name]) for act in Act if act.name in columns}
    return Tally(found.records, found.stale, found.duplicates, acts, found.notes, found.rows)


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
        f"sets: {', '.join(column.name for column in rules.columns) or 'nothing but keys'}",
    ]
    if rules.kept:
        lines.append(f"keeps: {', '.join(column.name for column in rules.kept)}")
    return "\n".join(["== AUTO CDC ==", *lines, ""])
