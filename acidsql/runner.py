"""One statement, start to finish: the story of the whole package.

*Say*: parse, bind, analyse, rewrite; nothing is open yet, so a wrong text costs nothing. *Hold*:
open the transaction, wait for its locks, then look (I6). *Do*: one Spark job writes the events
into a hidden directory. *Keep*: move the files into their directories, commit in the store; that
commit is the only commit point. Whatever fails before it leaves the table as it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import parse_partition_name, partition_name
from acidsql.acid.table import Partition, Table, TableName
from acidsql.commands import Commands
from acidsql.errors import TransientTxnError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.plan import lower
from acidsql.plan.event_query import EventQuery, Fields
from acidsql.plan.locking import locks_of
from acidsql.plan.names import Names
from acidsql.plan.query import StandIn, argument_name, placeholders, rewrite
from acidsql.plan.rewrite import Derived, Prepared, plan_dml
from acidsql.plan.sqltext import Text
from acidsql.result import Counts, Receipt, counts_frame, rows_frame
from acidsql.settings import Settings
from acidsql.shows import Shows
from acidsql.sql.parser import parse
from acidsql.sql.references import mentioned_tables
from acidsql.sql.statements import Dml, Explain, Reads, SparkStatement, Statement
from acidsql.sql.tokens import Span
from acidsql.storage import jvm
from acidsql.storage.event_writer import PARTITION
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.publish import Published, discard
from acidsql.storage.read import read_rows
from acidsql.storage.save import Save, Writing
from acidsql.storage.scan import ROW__ID, empty
from acidsql.storage.staging import staged
from acidsql.txn import Snapshot, Txn, TxnManager
from acidsql.txn.manager import Phase, abort_quietly

Args = Mapping[str, Any] | Sequence[Any] | None


@dataclass(slots=True)
class _Clock:
    """Seconds spent in each phase."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = self.seconds.get(phase, 0.0) + spent


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement's text and what was bound to it."""

    text: str
    args: dict[str, Any] | None
    double_quoted: bool


class Runner:
    """Runs the statements of one session.

    Args:
        spark: The Spark session.
        metastore: Tables and transactions.
        settings: Limits and time-outs.
        user: Shown to others who wait for our locks; so is the host.
        host: Of this process.

    Attributes:
        last: What the last statement that changed something did.
    """

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        settings: Settings,
        *,
        user: str,
        host: str,
    ) -> None:
        self._spark, self._metastore, self._settings = spark, metastore, settings
        self._names = Names(spark, metastore)
        self._txns = TxnManager(metastore, settings, user=user, host=host)
        self._commands = Commands(spark, metastore, self._txns, self._names)
        self._shows = Shows(spark, metastore, self._names)
        self.last: Receipt | None = None

    def run(self, text: str, args: Args, retries: int) -> DataFrame:
        """Run one statement; see ``Session.sql``."""
        for left in range(retries, -1, -1):
            try:
                return self._run(text, args)
            except TransientTxnError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table of a name, or None."""
        return self._names.resolve(parts)

    def read_table(self, table: Table, *, row_id: bool) -> DataFrame:
        """A table's live rows in a snapshot of now."""
        snapshot = self._txns.snapshot([table.name])
        return self._rows(StandIn("", table, row_id), snapshot)

    def files(self, table: Table) -> DataFrame:
        """See ``Session.files``."""
        return self._shows.files(table)

    def close(self) -> None:
        """Abort what is open."""
        self._txns.close()

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _run(self, text: str, args: Args) -> DataFrame:
        clock = _Clock()
        with clock("say"):
            text = jvm.substitute_variables(self._spark, text)
            double_quoted = _is_true(self._spark, "spark.sql.ansi.doubleQuotedIdentifiers")
            double_quoted &= _is_true(self._spark, "spark.sql.ansi.enabled")
            statement = parse(
                text, is_acid=self._names.is_acid, double_quoted_identifiers=double_quoted
            )
            said = _Said(text, _named(args), double_quoted)
        if isinstance(statement, Dml):
            return self._change(statement, said, clock)
        if isinstance(statement, SparkStatement):
            return self._pass_on(statement, said, args)
        if isinstance(statement, Explain):
            return self._explain(statement, said)
        result, receipt = self._commands.run(statement, text)
        self.last = receipt or self.last
        return result

    def _prepare(self, statement: Dml, said: _Said) -> Prepared:
        def analyse(query: Text, standins: tuple[StandIn, ...], derived: Derived | None) -> Fields:
            views = {standin.view: _empty(self._spark, standin) for standin in standins}
            if derived is not None:
                views[derived.view] = lower.frame(self._spark, derived.query, views, said.args)
            used = {name: view for name, view in views.items() if name in query.sql}
            return lower.fields(self._spark, query, used, said.args)

        return plan_dml(
            said.text, statement, self._names.resolve, analyse, double_quoted=said.double_quoted
        )

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _change(self, statement: Dml, said: _Said, clock: _Clock) -> DataFrame:
        """A statement that changes rows, in a transaction of its own."""
        with clock("say"):
            prepared = self._prepare(statement, said)
        with self._txns.open(agent_info=said.text) as txn:
            with clock("hold"):
                prepared = self._hold(txn, statement, said, prepared)
                snapshot = txn.snapshot(prepared.reads)
            published: list[Published] = []
            try:
                self._do(txn, prepared, said, snapshot, clock, published)
                with clock("keep"):
                    txn.commit(add_partitions=_new_partitions(prepared, published))
            except BaseException:
                _undo(txn, prepared, published)
                raise
        self.last = _receipt(said, txn, prepared, published, clock)
        return counts_frame(self._spark, self.last)

    def _hold(self, txn: Txn, statement: Dml, said: _Said, prepared: Prepared) -> Prepared:
        """Lock; if a table changed while we did not hold it, say everything again."""
        txn.lock(locks_of(statement, prepared.queries, prepared.reads))
        if all(self._metastore.get_table(t.name) == t for t in prepared.tables):
            return prepared
        again = self._prepare(statement, said)
        txn.lock(locks_of(statement, again.queries, again.reads))
        return again

    def _do(
        self,
        txn: Txn,
        prepared: Prepared,
        said: _Said,
        snapshot: Snapshot,
        clock: _Clock,
        published: list[Published],
    ) -> None:
        with clock("do"):
            views = {s.view: self._rows(s, snapshot) for s in prepared.standins}
        with self._source(txn, prepared, views, said):
            for query in prepared.queries:
                with self._writing(txn, query, said) as writing:
                    with clock("do"):
                        self._write(writing, query, views, said)
                    with clock("keep"):
                        published.append(writing.publish())

    @contextmanager
    def _source(
        self,
        txn: Txn,
        prepared: Prepared,
        views: dict[str, DataFrame],
        said: _Said,
    ) -> Iterator[None]:
        """The source of a multi-insert, evaluated once (I9) into files of our own."""
        if prepared.source is None:
            yield
            return
        source = lower.frame(self._spark, prepared.source.query, views, said.args)
        location = prepared.queries[0].table.location
        with staged(source, location, txn.id) as rows:
            views[prepared.source.view] = rows
            yield

    def _writing(self, txn: Txn, query: EventQuery, said: _Said) -> Writing:
        table = query.table
        first = txn.next_statement_id()
        return Writing(
            filesystem_for(table.location),
            Save(
                table,
                txn.write_id(table.name),
                # Deletes come first, so that Hive does not apply them to this write's own rows.
                (first, txn.next_statement_id() if query.deletes else first),
                self._static_partition(query, said),
                query.overwrite,
                query.merge,
                query.allow_duplicate_deletes,
                self._settings.max_dynamic_partitions,
            ),
        )

    def _write(
        self, writing: Writing, query: EventQuery, views: Mapping[str, DataFrame], said: _Said
    ) -> None:
        used = {name: view for name, view in views.items() if name in query.query.sql}
        events = lower.frame(self._spark, query.query, used, said.args)
        with lower.mapped_errors(query.query):
            if query.literal_rows is not None and (
                query.literal_rows <= self._settings.values_max_rows
            ):
                writing.literal_rows(events)
            else:
                writing.events(events)
        if query.overwrite and (partition := self._static_partition(query, said)) is not None:
            writing.empty(partition)

    def _static_partition(self, query: EventQuery, said: _Said) -> str | None:
        """The directory of all new rows, where the statement names it; "" if unpartitioned."""
        names = [column.name for column in query.table.partition_columns]
        if not names:
            return ""
        if query.static_partition is None:
            return None
        with lower.mapped_errors(query.static_partition):
            row = lower.frame(self._spark, query.static_partition, {}, said.args).collect()[0]
        return partition_name(names, list(row))

    def _rows(self, standin: StandIn, snapshot: Snapshot) -> DataFrame:
        """What a stand-in shows."""
        table = standin.table
        rows = read_rows(
            self._spark,
            table,
            [
                partition.location.removeprefix(f"{table.location}/")
                for partition in self._metastore.partitions(table.name)
            ],
            snapshot.write_ids[table.name],
            snapshot.valid_txns,
        )
        return _shaped(rows, standin)

    # ── statements that are Spark's ──────────────────────────────────────────────────────────

    def _pass_on(self, statement: SparkStatement, said: _Said, args: Args) -> DataFrame:
        """A statement of Spark's; the ACID tables that it reads are replaced by stand-ins."""
        if statement.reads is Reads.NOTHING:
            self._refuse_acid_tables(said)
            return self._verbatim(said.text, args)
        found = rewrite(
            said.text, statement, self._names.resolve, double_quoted=said.double_quoted
        )
        if not found.standins:
            return self._verbatim(said.text, args)
        snapshot = self._txns.snapshot([standin.table.name for standin in found.standins])
        views = {standin.view: self._rows(standin, snapshot) for standin in found.standins}
        text = Text(said.text, [*found.edits, *placeholders(said.text)])
        with _views_keep_their_plan(self._spark):
            return lower.frame(self._spark, text.verbatim(statement.span), views, said.args)

    def _verbatim(self, text: str, args: Args) -> DataFrame:
        if not args:
            return self._spark.sql(text)
        return self._spark.sql(text, args=dict(args) if isinstance(args, Mapping) else list(args))

    def _refuse_acid_tables(self, said: _Said) -> None:
        found = mentioned_tables(said.text, double_quoted_identifiers=said.double_quoted)
        for reference in found:
            table = self._names.resolve(reference.parts)
            if table is not None:
                raise UnsupportedError(
                    f"{table.name} is an ACID table, and Spark alone would misread it: this "
                    "statement is not supported for ACID tables.",
                    said.text, reference.span.start, reference.span.end,
                    condition="UNSUPPORTED_FEATURE.TABLE_OPERATION",
                )  # fmt: skip

    def _explain(self, explain: Explain, said: _Said) -> DataFrame:
        """What would run: the composed query, and Spark's plan of it."""
        statement: Statement = explain.statement
        if not isinstance(statement, Dml):
            return rows_frame(self._spark, "plan string", [(type(statement).__name__,)])
        prepared = self._prepare(statement, said)
        snapshot = self._txns.snapshot(prepared.reads)
        views = {s.view: self._rows(s, snapshot) for s in prepared.standins}
        if prepared.source is not None:
            source = prepared.source
            views[source.view] = lower.frame(self._spark, source.query, views, said.args)
        plans = []
        for query in prepared.queries:
            used = {name: view for name, view in views.items() if name in query.query.sql}
            events = lower.frame(self._spark, query.query, used, said.args)
            plans.append((jvm.explain(events, explain.mode),))
        return rows_frame(self._spark, "plan string", plans)


def _shaped(rows: DataFrame, standin: StandIn) -> DataFrame:
    if standin.is_target:
        return rows
    return rows.drop(PARTITION) if standin.row_id else rows.drop(PARTITION, ROW__ID)


def _empty(spark: SparkSession, standin: StandIn) -> DataFrame:
    return _shaped(empty(spark, standin.table), standin)


def _named(args: Args) -> dict[str, Any] | None:
    """Arguments by name; those of ``?`` under the names that composed text has for them."""
    if not args:
        return None
    if isinstance(args, Mapping):
        return dict(args)
    return {argument_name(number): value for number, value in enumerate(args)}


def _is_true(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name, "false")).lower() == "true"


@contextmanager
def _views_keep_their_plan(spark: SparkSession) -> Iterator[None]:
    """A temporary view keeps the plan, not the text, which names stand-ins that will be gone."""
    name = "spark.sql.legacy.storeAnalyzedPlanForView"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _new_partitions(
    prepared: Prepared, published: Sequence[Published]
) -> dict[TableName, list[Partition]]:
    """The partitions that were written to; the store passes over those that it knows."""
    found: dict[TableName, list[Partition]] = {}
    for query, done in zip(prepared.queries, published, strict=True):
        if query.table.partition_columns:
            found.setdefault(query.table.name, []).extend(
                Partition(
                    tuple(value for _, value in parse_partition_name(name)),
                    f"{query.table.location}/{name}",
                )
                for name in done.partitions
            )
    return found


def _undo(txn: Txn, prepared: Prepared, published: Sequence[Published]) -> None:
    """Abort, and delete what can never be seen; not where COMMIT may have happened."""
    if txn.phase in (Phase.UNKNOWN, Phase.COMMITTED):
        return
    abort_quietly(txn, "the statement failed")
    for query, done in zip(prepared.queries, published, strict=False):
        discard(filesystem_for(query.table.location), done.directories)


def _receipt(
    said: _Said,
    txn: Txn,
    prepared: Prepared,
    published: Sequence[Published],
    clock: _Clock,
) -> Receipt:
    counts = tuple(
        Counts(
            str(query.table.name),
            done.inserted,
            done.updated,
            done.deleted,
            done.write_id,
        )
        for query, done in zip(prepared.queries, published, strict=True)
    )
    return Receipt(
        said.text,
        counts,
        txn.id,
        {name: round(value, 3) for name, value in clock.seconds.items()},
        sum(done.files for done in published),
        sum(done.bytes for done in published),
        tuple(path for done in published for path in done.directories),
    )
