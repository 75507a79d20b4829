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

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import parse_partition_name, partition_name
from acidsql.acid.table import Partition, Table, TableName
from acidsql.commands import Commands
from acidsql.errors import TransientTxnError, WriteError
from acidsql.metastore.interface import Metastore
from acidsql.plan import lower
from acidsql.plan.event_query import EventQuery, Fields
from acidsql.plan.insert import plan_create_as_select
from acidsql.plan.locking import exclusive, locks_of, read_lock
from acidsql.plan.names import Names
from acidsql.plan.query import StandIn, rewrite
from acidsql.plan.rewrite import Derived, Prepared, plan_dml
from acidsql.plan.sqltext import Text
from acidsql.reader import Args, Reader, Said, by_name, used
from acidsql.result import Counts, Receipt, counts_frame, nothing, rows_frame
from acidsql.settings import Settings
from acidsql.shows import Shows
from acidsql.sql.parser import parse
from acidsql.sql.statements import CreateTable, Dml, Explain, SparkStatement, Statement
from acidsql.storage import jvm
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.publish import Published, discard
from acidsql.storage.save import Save, Writing
from acidsql.storage.staging import staged
from acidsql.txn import Snapshot, Txn, TxnManager
from acidsql.txn.manager import Phase, abort_quietly


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
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + spent, 3)


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
        self._reader = Reader(spark, metastore, self._txns, self._names)
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
            except ConnectionError:
                raise  # it is Spark that is gone
            except OSError as error:
                raise WriteError(
                    f"A file could not be read or written: {error}.", path=error.filename
                ) from error
        raise AssertionError("unreachable")

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table of a name, or None."""
        return self._names.resolve(parts)

    def read_table(self, table: Table, *, row_id: bool) -> DataFrame:
        """A table's live rows in a snapshot of now."""
        return self._reader.rows(StandIn("", table, row_id), self._txns.snapshot([table.name]))

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
            quoted = _is_true(self._spark, "spark.sql.ansi.doubleQuotedIdentifiers")
            said = Said(
                text, by_name(args), quoted and _is_true(self._spark, "spark.sql.ansi.enabled")
            )
            statement = parse(
                text, is_acid=self._names.is_acid, double_quoted_identifiers=said.double_quoted
            )
        match statement:
            case SparkStatement():
                return self._reader.pass_on(statement, said, args)
            case Explain():
                return self._explain(statement, said)
            case CreateTable() if statement.query is not None:
                return self._create_as_select(statement, said, clock)
        if isinstance(statement, Dml):
            return self._change(statement, said, clock)
        result, receipt = self._commands.run(statement, text)
        self.last = receipt or self.last
        return result

    def _prepare(self, statement: Dml, said: Said) -> Prepared:
        def analyse(query: Text, standins: tuple[StandIn, ...], derived: Derived | None) -> Fields:
            views = self._reader.empty_views(standins)
            if derived is not None:
                views[derived.view] = lower.frame(self._spark, derived.query, views, said.args)
            return lower.fields(self._spark, query, used(query, views), said.args)

        return plan_dml(
            said.text, statement, self._names.resolve, analyse, double_quoted=said.double_quoted
        )

    def _prepare_create(self, statement: CreateTable, said: Said) -> Prepared:
        assert statement.query is not None
        found = rewrite(said.text, statement, self._names.resolve, double_quoted=said.double_quoted)
        query = Text(said.text, found.edits).verbatim(statement.query.span)
        fields = lower.fields(self._spark, query, self._reader.empty_views(found.standins))
        name = self._names.new(statement.name, said.text)
        table = self._commands.define(statement, said.text, name, fields)
        planned = plan_create_as_select(said.text, table, query, fields, statement.query.span)
        return Prepared((planned,), found.standins)

    def _explain(self, explain: Explain, said: Said) -> DataFrame:
        statement: Statement = explain.statement
        if isinstance(statement, Dml):
            return self._reader.explain(self._prepare(statement, said), said, explain.mode)
        # As Spark explains its own commands: by name, for no job will run.
        plan = f"== Physical Plan ==\nExecute {type(statement).__name__}"
        return rows_frame(self._spark, "plan string", [(plan,)])

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _change(self, statement: Dml, said: Said, clock: _Clock) -> DataFrame:
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
                    txn.commit(add_partitions=_partitions(prepared, published))
            except BaseException:
                _undo(txn, prepared, published)
                raise
        self.last = _receipt(said, txn, prepared, published, clock)
        return counts_frame(self._spark, self.last)

    def _create_as_select(self, statement: CreateTable, said: Said, clock: _Clock) -> DataFrame:
        """CREATE TABLE … AS SELECT: the table comes into being, rows and all, with the commit."""
        with clock("say"):
            prepared = self._prepare_create(statement, said)
            table = prepared.queries[0].table
            if self._commands.exists(statement, table.name):
                return nothing(self._spark)
        with self._txns.open(agent_info=said.text) as txn:
            with clock("hold"):
                txn.lock([exclusive(table.name), *map(read_lock, prepared.reads)])
                if self._commands.exists(statement, table.name):
                    return nothing(self._spark)
                place = self._commands.take_place(table, txn)
                snapshot = txn.snapshot(prepared.reads)
            published: list[Published] = []
            try:
                self._do(txn, prepared, said, snapshot, clock, published)
                with clock("keep"):
                    partitions = _partitions(prepared, published)
                    txn.commit(add_partitions=partitions, create_table=table, cleaned=place.id)
            except BaseException:
                if _undo(txn, prepared, published):
                    self._commands.give_back(place)
                raise
        self.last = _receipt(said, txn, prepared, published, clock)
        return nothing(self._spark)

    def _hold(self, txn: Txn, statement: Dml, said: Said, prepared: Prepared) -> Prepared:
        """Lock; if a table changed while we did not hold it, say everything again."""
        txn.lock(locks_of(statement, prepared.queries, prepared.reads))
        if all(self._metastore.get_table(table.name) == table for table in prepared.tables):
            return prepared
        again = self._prepare(statement, said)
        txn.lock(locks_of(statement, again.queries, again.reads))
        return again

    def _do(
        self,
        txn: Txn,
        prepared: Prepared,
        said: Said,
        snapshot: Snapshot,
        clock: _Clock,
        published: list[Published],
    ) -> None:
        """Write and publish each target's events; what is published is added to the list."""
        with clock("do"):
            views = self._reader.views(prepared.standins, snapshot)
        with self._source(txn, prepared, views, said):
            for query in prepared.queries:
                with self._writing(txn, query, said) as writing:
                    with clock("do"):
                        self._write(writing, query, views, said)
                    with clock("keep"):
                        published.append(writing.publish())

    @contextmanager
    def _source(
        self, txn: Txn, prepared: Prepared, views: dict[str, DataFrame], said: Said
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

    def _writing(self, txn: Txn, query: EventQuery, said: Said) -> Writing:
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
        self, writing: Writing, query: EventQuery, views: Mapping[str, DataFrame], said: Said
    ) -> None:
        events = self._reader.events(query, views, said)
        with lower.mapped_errors(query.query):
            rows = query.literal_rows
            if rows is not None and rows <= self._settings.values_max_rows:
                writing.literal_rows(events)
            else:
                writing.events(events)
        if query.overwrite:
            writing.replace_static_partition()

    def _static_partition(self, query: EventQuery, said: Said) -> str | None:
        """The directory of all new rows, where the statement names it; "" if unpartitioned."""
        names = [column.name for column in query.table.partition_columns]
        if not names:
            return ""
        if query.static_partition is None:
            return None
        with lower.mapped_errors(query.static_partition):
            row = lower.frame(self._spark, query.static_partition, {}, said.args).collect()[0]
        return partition_name(names, list(row))


def _is_true(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name, "false")).lower() == "true"


def _partitions(
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


def _undo(txn: Txn, prepared: Prepared, published: Sequence[Published]) -> bool:
    """Abort, and delete what can never be seen; not where COMMIT may have happened.

    Returns:
        False if it may have happened.
    """
    if txn.phase in (Phase.UNKNOWN, Phase.COMMITTED):
        return False
    if not abort_quietly(txn, "the statement failed"):
        return False
    for query, done in zip(prepared.queries, published, strict=False):
        discard(filesystem_for(query.table.location), done.directories)
    return True


def _receipt(
    said: Said, txn: Txn, prepared: Prepared, published: Sequence[Published], clock: _Clock
) -> Receipt:
    counts = tuple(
        Counts(str(query.table.name), done.inserted, done.updated, done.deleted, done.write_id)
        for query, done in zip(prepared.queries, published, strict=True)
    )
    return Receipt(
        said.text,
        counts,
        txn.id,
        clock.seconds,
        sum(done.files for done in published),
        sum(done.bytes for done in published),
        tuple(path for done in published for path in done.directories),
    )
