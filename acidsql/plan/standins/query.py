"""Replaces the ACID tables in the user's queries by stand-ins: views that Spark can read.

A view of the metastore is replaced by a stand-in, too: its query, with the tables replaced in turn.
The names of the tables are replaced, with AS OF and the like behind them, and qualifiers of columns
where need be; so are DataFrames and calls of ``table_changes``. The rest stays the user's text.

A stand-in has a virtual column, as ``row__id``, only if the text names this column. Then every
``*`` gets an EXCEPT that leaves the column out. If this is not certain to be right, the statement
is refused. This module also exports ``standins``' names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from acidsql.acid.table import Table, TableName
from acidsql.acid.virtual_columns import ROW__ID, TYPES, virtual_columns
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan.standins.namesakes import Namesakes, ambiguous_table_name_error
from acidsql.plan.standins.standins import VIEW_PREFIX as VIEW_PREFIX
from acidsql.plan.standins.standins import StandIn as StandIn
from acidsql.plan.standins.standins import acid_tables as acid_tables
from acidsql.plan.standins.standins import new_standin as new_standin
from acidsql.plan.standins.standins import view_name as view_name
from acidsql.plan.standins.star_exceptions import virtual_column_exceptions
from acidsql.plan.standins.table_clauses import asks_for_deleted_rows, parse_as_of
from acidsql.plan.standins.view_text import (
    ViewQuery,
    mark_view_name,
    unreadable_view_error,
    view_cycle_error,
)
from acidsql.plan.values.sqltext import Edit, Text
from acidsql.sql.parsed.statements import (
    AutoCdc,
    Delete,
    Insert,
    InsertAction,
    Merge,
    Statement,
    Update,
    UpdateAction,
)
from acidsql.sql.parsed.time_travel import AsOf
from acidsql.sql.queries.references import (
    Reference,
    References,
    cte_names,
    references,
)
from acidsql.sql.queries.table_changes import parse_table_changes
from acidsql.sql.text.frames import frame_name, frame_sql, is_frame, need_relations
from acidsql.sql.text.tokens import Span, TokenKind, tokenize
from acidsql.storage.columns import quote

Resolve = Callable[[tuple[str, ...]], Table | None]

_MAX_DEPTH = 100  # views in views, as Spark's spark.sql.view.maxNestedViewDepth


@dataclass(frozen=True, slots=True)
class RewrittenStatement:
    """The edits that put stand-ins into a statement, and the stand-ins.

    ``source_view`` is the stand-in of the source of MERGE or AUTO CDC, if it is the name of an ACID
    table.
    """

    edits: tuple[Edit, ...]
    standins: tuple[StandIn, ...]
    source_view: str | None = None


def rewrite(
    text: str, statement: Statement, resolve: Resolve, *, double_quoted: bool = False
) -> RewrittenStatement:
    """Find a statement's references to ACID tables, and make a stand-in for each, a view that Spark
    reads in its place; the statement's target gets none here. Nothing is created in Spark.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        resolve: Gives the ACID table of a name, or None.
        double_quoted: ``"…"`` is a name in this session.

    Returns:
        The edits of the text, the stand-ins (those that a view reads before the view's), and the
        view in the place of a source that is a table's name.

    Raises:
        SqlSyntaxError: No version follows AS OF, or a call of table_changes is wrong.
        AnalysisError: There is no ACID table whose changes the statement asks for, or the statement
            names a DataFrame where no query reads a table.
        UnsupportedError: The statement travels in time in a table without versions, or names a
            virtual column beside a construct from which the column cannot be left out.
    """
    draft = _Draft(text, resolve)
    namesakes = [
        draft.rewrite(slice_references, _outer_names(statement))
        for slice_references in _references(text, statement, double_quoted)
    ]
    source_view = None
    if isinstance(statement, Merge | AutoCdc) and statement.source_name is not None:
        table = resolve(statement.source_name.parts)
        if is_frame(statement.source_name.parts):
            span = statement.source_name.span
            draft.edits.append(Edit(span.start, span.end, frame_sql(text, span)))
        elif table is not None:
            source_view = draft.add_standin(
                table, source_virtual_columns(text, statement, resolve)
            ).view
    edits = draft.edits
    if isinstance(statement, Update | Delete | Merge):
        edits += _target_prefix_edits(text, statement, resolve, edits, namesakes)
    need_relations(text, {edit.start for edit in edits}, double_quoted=double_quoted)
    return RewrittenStatement(tuple(edits), tuple(draft.standins), source_view)


def view_standins(view: Table, resolve: Resolve) -> tuple[StandIn, ...]:
    """Return the stand-ins of everything that a view reads, then the view's own.

    Raises:
        SqlError: A view's text cannot be read, a view reads itself, or views are nested too deeply.
    """
    draft = _Draft("", resolve)
    draft.add_standin(view)
    return tuple(draft.standins)


def placeholders(text: str) -> list[Edit]:
    """Return edits that give each ``?`` a name (``:__acidsql_arg0`` …, in the order of the text),
    since composed text may change the order of the parameters. [] without a ``?``."""
    if "?" not in text:  # cutting a long VALUES list into tokens is slow
        return []
    marks = [
        token for token in tokenize(text) if token.kind is TokenKind.SYMBOL and token.text == "?"
    ]
    return [
        Edit(token.start, token.end, f":{argument_name(number)}")
        for number, token in enumerate(marks)
    ]


def refuse_reserved_names(text: str) -> None:
    """Refuse names with the reserved prefix, which our own columns and views in composed text have.

    Raises:
        UnsupportedError: A name begins with the reserved prefix.
    """
    if VIEW_PREFIX not in text.lower():
        return
    for token in tokenize(text):
        if token.is_name and token.value.lower().startswith(VIEW_PREFIX):
            raise UnsupportedError(
                f"Names that begin with {VIEW_PREFIX} are reserved.",
                text, token.start, token.end,
                condition="UNSUPPORTED_FEATURE.RESERVED_NAME",
            )  # fmt: skip


def argument_name(number: int) -> str:
    """Return the parameter name that replaces the n-th ``?``, counted from 0."""
    return f"{VIEW_PREFIX}arg{number}"


def _references(text: str, statement: Statement, double_quoted: bool) -> Iterator[References]:
    """Yield the scan (relations, blocks, stars) of each part of a statement that may contain
    queries: the whole text, but of an INSERT not RETURNING; of UPDATE, DELETE and MERGE the WITH
    clause, each expression, and a source that is a query; of AUTO CDC only such a source."""
    if isinstance(statement, AutoCdc):  # its expressions have no subqueries
        if statement.source_name is None:
            yield references(text, statement.source, double_quoted_identifiers=double_quoted)
        return
    if not isinstance(statement, Update | Delete | Merge):
        clause = statement.returning if isinstance(statement, Insert) else None
        span = None if clause is None else Span(0, clause.span.start)
        yield references(text, span, double_quoted_identifiers=double_quoted)
        return
    visible: frozenset[str] = frozenset()
    if statement.ctes is not None:
        visible = cte_names(text, statement.ctes, double_quoted_identifiers=double_quoted)
        yield references(text, statement.ctes, double_quoted_identifiers=double_quoted)
    slices = [*expressions(statement)]
    if isinstance(statement, Merge) and statement.source_name is None:
        slices.append(statement.source)
    for span in slices:
        yield references(text, span, double_quoted_identifiers=double_quoted, visible=visible)


def expressions(statement: Update | Delete | Merge) -> Iterator[Span]:
    """Yield the places of a statement's conditions and values, each of which may contain queries.
    DEFAULT and RETURNING are left out."""
    if isinstance(statement, Merge):
        yield statement.on
        for clause in statement.clauses:
            if clause.condition is not None:
                yield clause.condition
            if isinstance(clause.action, UpdateAction):
                yield from _spans(assignment.value for assignment in clause.action.assignments)
            elif isinstance(clause.action, InsertAction):
                yield from _spans(clause.action.values)
        return
    if isinstance(statement, Update):
        yield from _spans(assignment.value for assignment in statement.assignments)
    if statement.where is not None:
        yield statement.where


def _target_prefix_edits(
    text: str,
    statement: Update | Delete | Merge,
    resolve: Resolve,
    edits: Sequence[Edit],
    namesakes: Sequence[Namesakes],
) -> Iterator[Edit]:
    """Yield edits ``db.t.c`` → ``t.c``, where t is the target or source of a statement that gives
    it no alias, since a stand-in has no database. Places where ``edits`` has one already are left
    out.

    Raises:
        UnsupportedError: At this place ``t.c`` would be a column of another relation, or a field.
    """
    names = [] if statement.alias is not None else [statement.target]
    if isinstance(statement, Merge) and statement.source_name is not None:
        has_own_name = statement.source_alias == statement.source_name.parts[-1]
        names += [statement.source_name] if has_own_name else []
    tables = [table.name for name in names if (table := resolve(name.parts)) is not None]
    edited_starts = {edit.start for edit in edits}
    for edit, qualifier in database_prefix_edits(text, expressions(statement), tables):
        if edit.start not in edited_starts:
            if any(
                slice_namesakes.hides_column(edit.start, qualifier) for slice_namesakes in namesakes
            ):
                raise ambiguous_table_name_error(
                    text, Span(edit.start, edit.end + len(qualifier[1]))
                )
            yield edit


def database_prefix_edits(
    text: str, spans: Iterable[Span], tables: Collection[TableName]
) -> Iterator[tuple[Edit, tuple[str, str]]]:
    """Yield the edits ``db.t.c`` → ``t.c`` for the columns of some tables in the slices ``spans``
    of the text, each with ``db`` and ``t`` in lower case. Names are compared without regard to
    case."""
    qualified_names = {(table.database, table.shown) for table in tables}
    for span in spans:
        tokens = tokenize(text, span)
        for i in range(len(tokens) - 3):
            first, dot, second, second_dot = tokens[i : i + 4]
            if [dot.text, second_dot.text] != [".", "."] or (i and tokens[i - 1].text == "."):
                continue
            qualifier = (first.value.lower(), second.value.lower())
            if qualifier in qualified_names:
                yield Edit(first.start, second.start, ""), qualifier


def _spans(values) -> Iterator[Span]:  # type: ignore[no-untyped-def]
    """Yield those of the values that are places in the text. DEFAULT is none."""
    return (value for value in values if isinstance(value, Span))


@dataclass
class _Draft:
    """A text in which stand-ins are put into the places of tables and views.

    Attributes:
        text: The user's statement, or the query of a view.
        resolve: Gives the ACID table, or view, of a name, or None.
        enclosing_views: The views whose queries are being read, the innermost last.
        standins: The stand-ins of the statement so far; those that a view reads come before it.
        edits: The edits of the text so far.
    """

    text: str
    resolve: Resolve
    enclosing_views: tuple[ViewQuery, ...] = ()
    standins: list[StandIn] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def rewrite(self, slice_references: References, outer_names: Collection[str] = ()) -> Namesakes:
        """Put stand-ins (views that Spark reads instead of tables) into a slice of the text: add
        the edits and the stand-ins to the draft, and return the slice's relations by their names.

        DataFrames and calls of ``table_changes`` are replaced, too, and the qualifiers of columns
        whose relation gets another alias. An alias differs from ``outer_names``: the names of
        relations outside of the slice that are visible in it, in lower case.
        """
        mentioned_by_block, text = slice_references.virtual_columns_by_block(), self.text
        virtual_by_block: dict[int, list[tuple[Reference, tuple[str, ...]]]] = {}
        resolved = {
            reference.span.start: self._find_table(reference.parts)
            for reference in slice_references.references
        }
        tables = {place: table for place, table in resolved.items() if table is not None}
        namesakes = Namesakes(text, slice_references, tables, outer_names)
        for reference in slice_references.references:
            table = tables.get(reference.span.start)
            if is_frame(reference.parts):
                relation_sql, name = frame_sql(text, reference.span), frame_name(reference.parts)
                self.edits += _relation_edits(reference, relation_sql, name)
            if table is None:
                continue
            virtual_names = mentioned_by_block.get(reference.block, ())
            standin = self.add_standin(
                table,
                virtual_names,
                as_of=parse_as_of(text, table, reference),
                with_deleted=asks_for_deleted_rows(text, table, reference),
                text_and_reference=(text, reference),
            )
            alias = namesakes.alias(reference)
            self.edits += _standin_edits(reference, standin.view, alias)
            if standin.virtual:
                aliased = reference if alias is None else replace(reference, alias=alias)
                virtual_by_block.setdefault(reference.block, []).append((aliased, standin.virtual))
        self.edits += [self._table_changes_edit(span) for span in slice_references.changes]
        self.edits += namesakes.qualifier_edits()
        self.edits += virtual_column_exceptions(text, slice_references, virtual_by_block)
        return namesakes

    def _find_table(self, parts: tuple[str, ...]) -> Table | None:
        """Return the ACID table, or view, of a name in this text, or None. In the query of a view
        it is no temporary table."""
        return self.resolve(mark_view_name(parts) if self.enclosing_views else parts)

    def add_standin(
        self,
        table: Table,
        virtual_names: Collection[str] = (),
        *,
        as_of: AsOf | None = None,
        with_deleted: bool = False,
        text_and_reference: tuple[str, Reference] | None = None,
    ) -> StandIn:
        """Add a stand-in for a table to the draft, and return it. For a view, return the one that
        there is already, or add it and those of what it reads; the other arguments are not used
        then.

        ``virtual_names``: the virtual columns that the block of the table mentions.
        """
        if table.view is not None:
            return self._find_or_add_view_standin(table)
        enclosing_view = self.enclosing_views[-1] if self.enclosing_views else None
        standin = new_standin(
            table,
            virtual_names,
            as_of=as_of,
            with_deleted=with_deleted,
            enclosing_view=enclosing_view,
            text_and_reference=text_and_reference,
        )
        self.standins.append(standin)
        return standin

    def _find_or_add_view_standin(self, view: Table) -> StandIn:
        """Return the stand-in for a view. If there is none yet, add it after the stand-ins of what
        the view reads.

        Raises:
            AnalysisError: RECURSIVE_VIEW: the view reads itself.
            UnsupportedError: Views are nested too deeply.
            SqlError: The view's text cannot be read; the error is of the same class as the text's.
        """
        view_names = [enclosing.view.name for enclosing in self.enclosing_views]
        if view.name in view_names:
            raise view_cycle_error(view.name, view_names)
        if len(view_names) >= _MAX_DEPTH:
            raise UnsupportedError(
                f"More than {_MAX_DEPTH} views read each other: {view_names[0]} is one of them.",
                condition="VIEW_EXCEED_MAX_NESTED_DEPTH", sqlstate="54K00", view=view_names[0],
            )  # fmt: skip
        for standin in self.standins:
            if standin.query is not None and standin.table == view:
                return standin
        view_query = ViewQuery(view)
        try:
            text, double_quoted = view_query.text, view_query.double_quoted
            draft = _Draft(text, self.resolve, (*self.enclosing_views, view_query), self.standins)
            draft.rewrite(references(text, double_quoted_identifiers=double_quoted))
        except SqlError as error:
            raise unreadable_view_error(view.name, error) from None
        query = Text(text, draft.edits).verbatim(Span(0, len(text)))
        self.standins.append(StandIn(view_name(), view, query=query))
        return self.standins[-1]

    def _table_changes_edit(self, span: Span) -> Edit:
        """Add a stand-in for a call of ``table_changes``, and return the edit that replaces the
        call by the view's name. Raise AnalysisError if there is no such ACID table (a view is
        none), and SqlSyntaxError if the call is wrong."""
        call = parse_table_changes(self.text, span)
        table = self._find_table(call.parts)
        if table is None or not table.is_transactional:
            raise no_acid_table_error(call.name, self.text, call.name_span)
        enclosing_view = self.enclosing_views[-1] if self.enclosing_views else None
        self.standins.append(
            StandIn(view_name(), table, changes=call, enclosing_view=enclosing_view)
        )
        return Edit(span.start, span.end, self.standins[-1].view)


def no_acid_table_error(name: str, text: str, span: Span) -> AnalysisError:
    """Return the TABLE_OR_VIEW_NOT_FOUND for a name in a statement that no ACID table has."""
    return AnalysisError(
        f"There is no ACID table '{name}'.",
        text, span.start, span.end,
        condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
    )  # fmt: skip


def _relation_edits(reference: Reference, relation_sql: str, name: str) -> list[Edit]:
    """Return the edits that replace a table by another relation, with the table's alias or, if it
    has none, ``name``; without an alias where none can stand (``TABLE t``)."""
    edits = [Edit(reference.span.start, reference.span.end, relation_sql)]
    if reference.alias is None and reference.alias_at is not None:
        edits.append(Edit(reference.alias_at, reference.alias_at, f" AS {quote(name)}"))
    return edits


def _standin_edits(reference: Reference, view: str, alias: str | None) -> list[Edit]:
    """Return the edits that put a stand-in in the place of a table. It gets the table's alias, or
    ``alias``, or the table's last name as alias; AS OF and properties go, and without ``alias`` so
    does the ``db.`` before columns."""
    edits = _relation_edits(reference, view, alias or reference.parts[-1])
    for clause in filter(None, (reference.time_travel, reference.properties)):
        edits.append(Edit(clause.start, clause.end, ""))
    if alias is not None:
        return edits
    return edits + [Edit(span.start, span.end, "") for span in reference.prefixes]


def _outer_names(statement: Statement) -> list[str]:
    """Return the names of target and source in lower case, which the statement's subqueries can
    use; [] for other statements than UPDATE, DELETE and MERGE."""
    if not isinstance(statement, Update | Delete | Merge):
        return []
    names = [statement.qualifier]
    if isinstance(statement, Merge) and statement.source_alias is not None:
        names.append(statement.source_alias)
    return [name.lower() for name in names]


def target_virtual_columns(text: str, table: Table) -> tuple[str, ...]:
    """Return the virtual columns of the stand-in for a statement's target: ``row__id``, and those
    that the text mentions, as far as the table has them."""
    return virtual_columns(table, {ROW__ID, *_mentioned_virtual_columns(text)})


def source_virtual_columns(
    text: str, statement: Merge | AutoCdc, resolve: Resolve
) -> tuple[str, ...]:
    """Return the virtual columns of the stand-in for a source that is the name of an ACID table:
    those that the table has and the statement mentions anywhere. () for any other source, and for a
    MERGE that gives the source's columns other names.
    """
    name = statement.source_name
    table = None if name is None else resolve(name.parts)
    if table is None or (isinstance(statement, Merge) and statement.source_columns is not None):
        return ()
    return virtual_columns(table, _mentioned_virtual_columns(text))


def _mentioned_virtual_columns(text: str) -> set[str]:
    """Return the virtual columns that a statement mentions. A ``"…"`` counts, since it may be a
    name."""
    name_tokens = (token for token in tokenize(text) if token.is_name or token.text.startswith('"'))
    return {token.value.lower() for token in name_tokens} & TYPES.keys()
