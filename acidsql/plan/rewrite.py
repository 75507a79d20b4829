"""Rewrites a statement that changes rows to event queries, which run under any snapshot.

An event query is a query whose rows are the insert and delete events of one table. A stand-in is a
temporary view that takes the place of a table in the user's text. This module puts the stand-ins in
place and calls the rewrite of the statement's kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError, UnsupportedError
from acidsql.plan.merging.merge import derived_source, plan_merge
from acidsql.plan.rows import evolution
from acidsql.plan.rows.delete import plan_delete
from acidsql.plan.rows.event_query import (
    DerivedView,
    EventQuery,
    Fields,
    RewriteContext,
    may_be_few,
)
from acidsql.plan.rows.insert import plan_insert, plan_source
from acidsql.plan.rows.plain_values import plan_plain
from acidsql.plan.rows.replace import plan_replace
from acidsql.plan.rows.returning import ReturningQuery, plan_returning
from acidsql.plan.rows.stars import star_edits
from acidsql.plan.rows.update import plan_update
from acidsql.plan.standins.query import (
    Resolve,
    StandIn,
    acid_tables,
    database_prefix_edits,
    new_standin,
    placeholders,
    refuse_reserved_names,
    rewrite,
    target_virtual_columns,
    view_name,
)
from acidsql.plan.standins.view_text import need_table
from acidsql.plan.values.assignment import Policy
from acidsql.plan.values.sqltext import Edit, Text
from acidsql.sql.binder import bind_insert
from acidsql.sql.parsed.statements import (
    Delete,
    Dml,
    Insert,
    InsertBranch,
    Literals,
    Merge,
    MultiInsert,
    Query,
    Undo,
    Update,
)
from acidsql.sql.parser import parse
from acidsql.sql.text.frames import frame_name
from acidsql.sql.text.tokens import Span, Token, bracket_length, tokenize
from acidsql.storage.columns import quote
from acidsql.storage.event_records import WriteMode

# Asks Spark for the columns of a query over these stand-ins and this view.
AnalyseOver = Callable[[Text, tuple[StandIn, ...], DerivedView | None], Fields]


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A parsed, bound and rewritten statement. No transaction is needed to prepare a statement.

    Attributes:
        queries: One event query for each target; a multi-insert has one for each branch.
        standins: The views that the queries read. A stand-in for a view comes after the stand-ins
            that the view reads; otherwise the order means nothing.
        source: The query that is evaluated once and read several times: the source of a
            multi-insert, or the new rows of REPLACE USING.
        table_before: The target as it is now, if the statement gives it other columns, by WITH
            SCHEMA EVOLUTION or ADD COLUMNS … WITH VALUES; else None.
        returning: The query of RETURNING; None without RETURNING.
        reverted_txn_id: The transaction that REVERT TRANSACTION undoes; None: another statement.
    """

    queries: tuple[EventQuery, ...]
    standins: tuple[StandIn, ...]
    source: DerivedView | None = None
    returning: ReturningQuery | None = None
    table_before: Table | None = None
    reverted_txn_id: int | None = None

    @property
    def texts(self) -> list[Text]:
        """The SQL of ``queries``, without that of RETURNING, if each query can be analysed with the
        stand-ins alone.

        Empty with a ``source``: then the queries read a view over its rows.
        """
        return [] if self.source else [query.query for query in self.queries]

    @property
    def reads(self) -> list[TableName]:
        """The names of the ACID tables that stand-ins show, each once: those that are read,
        including the target of an UPDATE, DELETE, MERGE or INSERT … REPLACE, but not that of
        another INSERT that does not read it."""
        return list(acid_tables(self.standins))

    @property
    def tables(self) -> list[Table]:
        """All tables that the statement reads or writes, each once, as they are before it adds
        columns."""
        tables_by_name = {
            query.table.name: self.table_before or query.table for query in self.queries
        }
        tables_by_name.update({standin.table.name: standin.table for standin in self.standins})
        return list(tables_by_name.values())


def may_need_workers(text: str, statement: Dml | Undo) -> bool:
    """Whether Python workers may have to write the rows, as far as the statement's text tells.
    False for an INSERT of VALUES, and for an UPDATE or DELETE with a WHERE that has no subquery.
    True for all others, also for an UPDATE or DELETE without WHERE."""
    match statement:
        case Insert():
            return isinstance(statement.source, Query)
        case Update() | Delete():
            return not may_be_few(text, statement.where)
    return True


def plan_dml(
    text: str,
    statement: Dml,
    resolve: Resolve,
    analyse: AnalyseOver,
    *,
    double_quoted: bool,
    policy: Policy,
    is_case_sensitive: bool = False,
) -> PreparedStatement:
    """Rewrite a statement to event queries over stand-ins. Spark analyses them, but nothing runs.
    For VALUES whose rows are known without Spark, except with the policy STRICT, Spark is not
    asked, and the one event query has the rows instead of SQL, and no stand-ins. Raise SqlError if
    something is wrong or not supported, and CatalogError if the target was dropped.

    Args:
        text: The user's statement.
        statement: The parsed statement; its targets are ACID tables.
        resolve: Gives the ACID table of a name, or None.
        analyse: Asks Spark for the columns of a query.
        double_quoted: ``"…"`` is a name in this session.
        policy: The session's rules of store assignment.
        is_case_sensitive: The session tells names apart by case.
    """
    if isinstance(statement, Insert) and isinstance(statement.source, Literals):
        plain = plan_plain(text, statement, _resolve_target(text, statement, resolve))
        if plain is not None and policy is not Policy.STRICT:
            return PreparedStatement((plain,), ())
        statement = _parse_as_expressions(text, double_quoted)
    refuse_reserved_names(text)
    rewritten = rewrite(text, statement, resolve, double_quoted=double_quoted)

    def blank_hiding(names: Sequence[str]) -> Text:
        """Return an empty text with stand-ins, in which no ``*`` shows the columns ``names``."""
        target_edits = _target_edits(text, statement, resolve, double_quoted, names)
        return Text(text, [*rewritten.edits, *placeholders(text), *target_edits])

    blank = blank_hiding(())
    if isinstance(statement, MultiInsert):
        return _multi_insert(text, statement, resolve, analyse, blank, rewritten.standins, policy)
    table = _resolve_target(text, statement, resolve)
    standins, view, source = rewritten.standins, "", None
    if not isinstance(statement, Insert) or statement.replacing is not None:
        _refuse_insert_only(text, statement, table)
        virtual = target_virtual_columns(text, table)
        standins = (*standins, new_standin(table, virtual, is_target=True))
        view = standins[-1].view
    if isinstance(statement, Merge):
        source = derived_source(statement, blank, rewritten.source_view)

    def analyse_here(query: Text) -> Fields:
        return analyse(query, standins, source)

    context = RewriteContext(
        text, table, view, blank, analyse_here, double_quoted, policy,
        blank_hiding=blank_hiding, is_case_sensitive=is_case_sensitive,
    )  # fmt: skip
    if isinstance(statement, Insert) and statement.replacing is not None:
        return _prepare_replace(statement, context, standins, analyse)
    return _prepare_change(statement, context, standins, source, rewritten.source_view, analyse)


def _prepare_change(
    statement: Insert | Update | Delete | Merge,
    context: RewriteContext,
    standins: tuple[StandIn, ...],
    merge_source: DerivedView | None,
    source_view: str | None,
    analyse: AnalyseOver,
) -> PreparedStatement:
    """Rewrite a statement with one target, other than INSERT … REPLACE, and its RETURNING. The
    result has one event query and no ``source``; its ``table_before`` is the target if the event
    query's table has other columns, else None."""
    event_query = _event_query(statement, context, source_view, merge_source)
    returning = plan_returning(
        context.text, statement, event_query.table,
        lambda query, shown: analyse(query, shown, None), double_quoted=context.double_quoted,
    )  # fmt: skip
    table_before = None if event_query.table == context.table else context.table
    return PreparedStatement(
        (event_query,), standins, returning=returning, table_before=table_before
    )


def _target_edits(
    text: str, statement: Dml, resolve: Resolve, double_quoted: bool, hidden_columns: Sequence[str]
) -> list[Edit]:
    """Return edits for the differences between the target's stand-in and the table.

    For UPDATE, DELETE and MERGE they keep the stand-in's own columns and the ``hidden_columns`` out
    of each ``*``. The stand-in has no database, so for REPLACE WHERE they turn ``db.t.c`` in the
    condition into ``t.c``. For REPLACE USING, other INSERTs and a multi-insert there are none: [].
    """
    if isinstance(statement, Update | Delete | Merge):
        return star_edits(text, statement, resolve, hidden_columns, double_quoted=double_quoted)
    if not isinstance(statement, Insert) or statement.replacing is None:
        return []
    where = [] if statement.replacing.where is None else [statement.replacing.where]
    name = _resolve_target(text, statement, resolve).name
    return [edit for edit, _ in database_prefix_edits(text, where, [name])]


def _parse_as_expressions(text: str, double_quoted: bool) -> Insert:
    """Parse an INSERT that was read as plain literals again, by the grammar: its values become
    expressions that Spark evaluates."""
    statement = parse(text, is_ours=lambda _: True, double_quoted_identifiers=double_quoted)
    assert isinstance(statement, Insert)
    return statement


def _event_query(
    statement: Dml,
    context: RewriteContext,
    source_view: str | None,
    merge_source: DerivedView | None,
) -> EventQuery:
    """Rewrite a statement with one target to its event query. The query's table has the columns
    that WITH SCHEMA EVOLUTION, or ADD COLUMNS … WITH VALUES, adds to the target; the catalog is not
    changed here."""
    match statement:
        case Insert():
            return plan_insert(statement, evolution.evolve_for_insert(statement, context))
        case Update():
            return plan_update(statement, evolution.evolve_for_update(statement, context))
        case Delete():
            return plan_delete(statement, context)
        case Merge():
            return plan_merge(statement, context, source_view, merge_source)
    raise AssertionError(statement)


def _prepare_replace(
    statement: Insert, context: RewriteContext, standins: tuple[StandIn, ...], analyse: AnalyseOver
) -> PreparedStatement:
    """Rewrite an INSERT … REPLACE, and let Spark analyse it, which raises the errors of the query
    now. The result has one event query and no RETURNING; its ``source`` is the view over the new
    rows for REPLACE USING, and None for REPLACE WHERE; ``table_before`` is the target if WITH
    SCHEMA EVOLUTION gives it other columns, else None."""
    evolved = evolution.evolve_for_insert(statement, context)
    query, new_rows = plan_replace(statement, evolved)
    analyse(query.query, standins, query.source or new_rows)  # raises errors of the query now
    return PreparedStatement((query,), standins, new_rows, table_before=evolved.table_before)


def _multi_insert(
    text: str,
    statement: MultiInsert,
    resolve: Resolve,
    analyse: AnalyseOver,
    blank: Text,
    standins: tuple[StandIn, ...],
    policy: Policy,
) -> PreparedStatement:
    """Rewrite ``FROM s INSERT … INSERT …``: an event query for each branch, in order. All branches
    read one evaluation of the source, which is the result's ``source``. Raise UnsupportedError for
    a join as the source, and for an overwrite of an unpartitioned table that another branch writes
    to."""
    relation, alias = _source_relation_and_alias(text, statement.source)
    source = blank.new(statement.ctes).raw("SELECT * FROM ").verbatim(relation)
    view = view_name()
    derived = DerivedView(view, source)

    def analyse_here(query: Text) -> Fields:
        """Return the columns of a query over this statement's stand-ins and its source."""
        return analyse(query, standins, derived)

    queries: list[EventQuery] = []
    for branch in statement.branches:
        table = _resolve_target(text, branch, resolve)
        _refuse_hiding_overwrite(text, branch, table, queries)
        query = blank.new(statement.ctes).raw(f"FROM {view}")
        if alias is not None:
            query.raw(f" AS {quote(alias)}")
        query.raw("\n").verbatim(branch.body)
        context = RewriteContext(text, table, "", blank, analyse_here, policy=policy)
        bound = bind_insert(text, table, branch.columns, branch.partition)
        mode = WriteMode.of_insert(is_overwrite=branch.overwrite)
        queries.append(plan_source(context, bound, query, branch.body, mode))
    return PreparedStatement(tuple(queries), standins, derived)


def _source_relation_and_alias(text: str, source_span: Span) -> tuple[Span, str | None]:
    """Return the place of the relation in a multi-insert's FROM, and its alias without quotes, or
    else the last part of its name (None for a subquery without an alias). Raise UnsupportedError if
    anything but an alias follows the first name or bracket, or the bracket is not closed."""
    tokens = tokenize(text, source_span)
    length = _relation_length(tokens)
    alias_tokens = [token for token in tokens[length:] if token.upper != "AS"]
    if length == 0 or len(alias_tokens) > 1 or any(not token.is_name for token in alias_tokens):
        raise UnsupportedError(
            "The source of a multi-insert is one table, view or subquery, because it is evaluated "
            "once for all branches. Put a join into a subquery: FROM (SELECT …) AS s INSERT ….",
            text, source_span.start, source_span.end,
            condition="UNSUPPORTED_FEATURE.MULTI_INSERT_SOURCE",
        )  # fmt: skip
    last = tokens[length - 1]
    alias = (
        alias_tokens[0].value
        if alias_tokens
        else (frame_name((last.value,)) if last.is_name else None)
    )
    return Span(source_span.start, last.end), alias


def _relation_length(tokens: list[Token]) -> int:
    """Return how many of the tokens behind FROM belong to the first relation, a name with its dots
    or a bracket, without its alias; 0 if the bracket is not closed."""
    if tokens[0].text == "(":
        return bracket_length(tokens)
    length = 1
    while len(tokens) > length + 1 and tokens[length].text == ".":
        length += 2
    return length


def _resolve_target(text: str, statement: Dml | InsertBranch, resolve: Resolve) -> Table:
    """Return the target's table. Raise CatalogError if there is no ACID table of the name: it was
    dropped after the text was parsed. Raise AnalysisError if it is a view."""
    assert not isinstance(statement, MultiInsert)
    table = resolve(statement.target.parts)
    if table is None:
        # The parser found this table, so it was dropped after that.
        raise CatalogError(f"There is no ACID table '{'.'.join(statement.target.parts)}'.")
    need_table(table, statement.target, text)
    return table


def _refuse_insert_only(
    text: str, statement: Insert | Update | Delete | Merge, table: Table
) -> None:
    """Raise UnsupportedError if the table is insert-only, so that its rows cannot be changed."""
    if table.is_insert_only:
        kind = "REPLACE" if isinstance(statement, Insert) else type(statement).__name__.upper()
        operation = f"{kind} of an insert-only table (Hive 10414)"
        raise _unsupported_error(text, statement.target.span, operation)


def _refuse_hiding_overwrite(
    text: str, branch: InsertBranch, table: Table, branch_queries: list[EventQuery]
) -> None:
    """Raise UnsupportedError if this branch of a multi-insert and one before it write to the same
    unpartitioned table, and one of the two overwrites it. ``branch_queries``: those of the branches
    before this one.

    The branches have one write id, and the base would hide the other branch's delta. The writer
    refuses the same for each partition (``Transaction.refuse_overwritten``).
    """
    if table.partition_columns:
        return
    earlier_queries = [query for query in branch_queries if query.table.name == table.name]
    overwrites = any(query.mode is WriteMode.OVERWRITE for query in earlier_queries)
    if earlier_queries and (branch.overwrite or overwrites):
        operation = "INSERT OVERWRITE of a table that another branch writes to (Hive 10087)"
        raise _unsupported_error(text, branch.target.span, operation)


def _unsupported_error(text: str, span: Span, operation: str) -> UnsupportedError:
    """Return the error ``operation`` "is not supported", at ``span``."""
    return UnsupportedError(f"{operation} is not supported.", text, span.start, span.end)
