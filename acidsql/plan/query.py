"""Replaces the ACID tables in the user's queries by stand-ins: views that Spark can read.

A view of the metastore is replaced by a stand-in, too: its query, with the tables replaced in turn.
Only the names of the tables are replaced; the rest stays the user's text. A stand-in has a virtual
column, as ``row__id``, only if the text names this column. Then every ``*`` gets an EXCEPT that
leaves the column out. If this is not certain to be right, the statement is refused. This module
also exports ``standins``' names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from acidsql.acid.table import Table, TableName
from acidsql.acid.virtual_columns import ROW__ID, TYPES, virtual_columns
from acidsql.errors import AnalysisError, SqlError, UnsupportedError
from acidsql.plan.left_out import without_virtual
from acidsql.plan.namesakes import Namesakes, hidden
from acidsql.plan.said_of_table import as_of, fetches_deleted
from acidsql.plan.sqltext import Edit, Text
from acidsql.plan.standins import VIEW_PREFIX as VIEW_PREFIX
from acidsql.plan.standins import StandIn as StandIn
from acidsql.plan.standins import acid_tables as acid_tables
from acidsql.plan.standins import new_standin as new_standin
from acidsql.plan.standins import view_name as view_name
from acidsql.plan.view_text import (
    ViewQuery,
    mark_view_name,
    unreadable_view_error,
    view_cycle_error,
)
from acidsql.sql.frames import frame_name, is_frame, need_relations, relation
from acidsql.sql.references import (
    Reference,
    References,
    cte_names,
    references,
)
from acidsql.sql.statements import (
    AutoCdc,
    Delete,
    Insert,
    InsertAction,
    Merge,
    Statement,
    Update,
    UpdateAction,
)
from acidsql.sql.table_changes import parse_table_changes
from acidsql.sql.time_travel import AsOf
from acidsql.sql.tokens import Kind, Span, tokenize
from acidsql.storage.columns import quote

Resolve = Callable[[tuple[str, ...]], Table | None]

_DEEPEST = 100  # views in views, as Spark's spark.sql.view.maxNestedViewDepth


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The edits that put stand-ins into a statement, and the stand-ins.

    ``source_view`` is the stand-in of the source of MERGE or AUTO CDC, if it is the name of an ACID
    table.
    """

    edits: tuple[Edit, ...]
    standins: tuple[StandIn, ...]
    source_view: str | None = None


def rewrite(
    text: str, statement: Statement, resolve: Resolve, *, double_quoted: bool = False
) -> Rewritten:
    """Find a statement's references to ACID tables, and make a stand-in for each.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        resolve: Gives the ACID table of a name, or None.
        double_quoted: ``"…"`` is a name in this session.

    Raises:
        SqlSyntaxError: What follows AS OF is no version, or a call of table_changes is wrong.
        AnalysisError: There is no ACID table whose changes the statement asks for, or a DataFrame
            is named where no query reads a table.
        UnsupportedError: The statement travels in time in a table without versions, or names
            a virtual column beside something from which it cannot be left out.
    """
    draft = _Draft(text, resolve)
    parts = [
        draft.rewrite(found, _taken(statement))
        for found in _references(text, statement, double_quoted)
    ]
    source_view = None
    if isinstance(statement, Merge | AutoCdc) and statement.source_name is not None:
        table = resolve(statement.source_name.parts)
        if is_frame(statement.source_name.parts):
            span = statement.source_name.span
            draft.edits.append(Edit(span.start, span.end, relation(text, span)))
        elif table is not None:
            source_view = draft.stand_in(table, of_source(text, statement, resolve)).view
    edits = draft.edits
    if isinstance(statement, Update | Delete | Merge):
        edits += _database_prefixes(text, statement, resolve, edits, parts)
    need_relations(text, {edit.start for edit in edits}, double_quoted=double_quoted)
    return Rewritten(tuple(edits), tuple(draft.standins), source_view)


def view_standins(view: Table, resolve: Resolve) -> tuple[StandIn, ...]:
    """The stand-in of a view, and before it those of all that the view reads. Raises as
    ``rewrite``."""
    draft = _Draft("", resolve)
    draft.stand_in(view)
    return tuple(draft.standins)


def placeholders(text: str) -> list[Edit]:
    """Edits that name each ``?`` (``:__acidsql_arg0`` …): composed text may change their order."""
    if "?" not in text:  # cutting a long VALUES list into tokens is slow
        return []
    marks = [token for token in tokenize(text) if token.kind is Kind.SYMBOL and token.text == "?"]
    return [
        Edit(token.start, token.end, f":{argument_name(number)}")
        for number, token in enumerate(marks)
    ]


def refuse_reserved_names(text: str) -> None:
    """Refuse names with the prefix of our own columns and views, which composed text contains.

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
    """The parameter name that replaces the n-th ``?``, counted from 0."""
    return f"{VIEW_PREFIX}arg{number}"


def _references(text: str, statement: Statement, double_quoted: bool) -> Iterator[References]:
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
    """The places of a statement's conditions and values. Each of them may contain queries."""
    if isinstance(statement, Merge):
        yield statement.on
        for clause in statement.clauses:
            if clause.condition is not None:
                yield clause.condition
            if isinstance(clause.action, UpdateAction):
                yield from _spans(item.value for item in clause.action.assignments)
            elif isinstance(clause.action, InsertAction):
                yield from _spans(clause.action.values)
        return
    if isinstance(statement, Update):
        yield from _spans(item.value for item in statement.assignments)
    if statement.where is not None:
        yield statement.where


def _database_prefixes(
    text: str,
    statement: Update | Delete | Merge,
    resolve: Resolve,
    edits: Sequence[Edit],
    parts: Sequence[Namesakes],
) -> Iterator[Edit]:
    """Edits ``db.t.c`` → ``t.c``, where t is the target or source: a stand-in has no database.

    Raises:
        UnsupportedError: At this place ``t.c`` would be a column of another relation, or a field.
    """
    names = [] if statement.alias is not None else [statement.target]
    if isinstance(statement, Merge) and statement.source_name is not None:
        plain = statement.source_alias == statement.source_name.parts[-1]
        names += [statement.source_name] if plain else []
    tables = [table.name for name in names if (table := resolve(name.parts)) is not None]
    done = {edit.start for edit in edits}
    for edit, said in without_database(text, expressions(statement), tables):
        if edit.start not in done:
            if any(part.hides(edit.start, said) for part in parts):
                raise hidden(text, Span(edit.start, edit.end + len(said[1])))
            yield edit


def without_database(
    text: str, spans: Iterable[Span], tables: Collection[TableName]
) -> Iterator[tuple[Edit, tuple[str, str]]]:
    """The edits ``db.t.c`` → ``t.c`` for these tables, each with both names in lower case."""
    known = {(table.database, table.shown) for table in tables}
    for span in spans:
        tokens = tokenize(span.of(text))
        for i in range(len(tokens) - 3):
            first, dot, second, after = tokens[i : i + 4]
            if [dot.text, after.text] != [".", "."] or (i and tokens[i - 1].text == "."):
                continue
            said = (first.value.lower(), second.value.lower())
            if said in known:
                yield Edit(span.start + first.start, span.start + second.start, ""), said


def _spans(values) -> Iterator[Span]:  # type: ignore[no-untyped-def]
    return (value for value in values if isinstance(value, Span))


@dataclass
class _Draft:
    """A text in which stand-ins are put into the places of tables and views.

    Attributes:
        text: The user's statement, or the query of a view.
        resolve: Gives the ACID table, or view, of a name, or None.
        within: The views whose queries are being read, the innermost last.
        standins: The stand-ins of the statement so far; those that a view reads come before it.
        edits: The edits of the text so far.
    """

    text: str
    resolve: Resolve
    within: tuple[ViewQuery, ...] = ()
    standins: list[StandIn] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def rewrite(self, found: References, taken: Collection[str] = ()) -> Namesakes:
        """Put stand-ins into a slice of the text. ``taken``: see ``Namesakes``."""
        shown, text = found.virtual_columns(), self.text
        visible: dict[int, list[tuple[Reference, tuple[str, ...]]]] = {}
        resolved = {one.span.start: self._meant(one.parts) for one in found.references}
        tables = {place: table for place, table in resolved.items() if table is not None}
        namesakes = Namesakes(text, found, tables, taken)
        for reference in found.references:
            table = tables.get(reference.span.start)
            if is_frame(reference.parts):
                new, name = relation(text, reference.span), frame_name(reference.parts)
                self.edits += _named(reference, new, name)
            if table is None:
                continue
            named = shown.get(reference.block, ())
            made = self.stand_in(
                table,
                named,
                as_of=as_of(text, table, reference),
                with_deleted=fetches_deleted(text, table, reference),
                at=(text, reference),
            )
            alias = namesakes.alias(reference)
            self.edits += _replaced(reference, made.view, alias)
            if made.virtual:
                called = reference if alias is None else replace(reference, alias=alias)
                visible.setdefault(reference.block, []).append((called, made.virtual))
        self.edits += [self._changes(span) for span in found.changes]
        self.edits += namesakes.edits()
        self.edits += without_virtual(text, found, visible)
        return namesakes

    def _meant(self, parts: tuple[str, ...]) -> Table | None:
        return self.resolve(mark_view_name(parts) if self.within else parts)

    def stand_in(
        self,
        table: Table,
        named: Collection[str] = (),
        *,
        as_of: AsOf | None = None,
        with_deleted: bool = False,
        at: tuple[str, Reference] | None = None,
    ) -> StandIn:
        """Add a stand-in for a table or view, and return it.

        ``named``: the virtual columns that are named where the table is.
        """
        if table.view is not None:
            return self._view(table)
        within = self.within[-1] if self.within else None
        made = new_standin(
            table, named, as_of=as_of, with_deleted=with_deleted, within=within, at=at
        )
        self.standins.append(made)
        return made

    def _view(self, view: Table) -> StandIn:
        """Add the stand-in for a view, after those of the tables and views that it reads. A view
        that is read twice has one stand-in, so that views of views do not become too many."""
        around = [one.view.name for one in self.within]
        if view.name in around:
            raise view_cycle_error(view.name, around)
        if len(around) >= _DEEPEST:
            raise UnsupportedError(
                f"More than {_DEEPEST} views read each other: {around[0]} is one of them.",
                condition="VIEW_EXCEED_MAX_NESTED_DEPTH", sqlstate="54K00", view=around[0],
            )  # fmt: skip
        for one in self.standins:
            if one.query is not None and one.table == view:
                return one
        inside = ViewQuery(view)
        try:
            text, double_quoted = inside.text, inside.double_quoted
            draft = _Draft(text, self.resolve, (*self.within, inside), self.standins)
            draft.rewrite(references(text, double_quoted_identifiers=double_quoted))
        except SqlError as error:
            raise unreadable_view_error(view.name, error) from None
        query = Text(text, draft.edits).verbatim(Span(0, len(text)))
        self.standins.append(StandIn(view_name(), view, query=query))
        return self.standins[-1]

    def _changes(self, span: Span) -> Edit:
        """The edit that replaces a call of ``table_changes`` by a new stand-in."""
        call = parse_table_changes(self.text, span)
        table = self._meant(call.parts)
        if table is None or not table.is_transactional:
            raise no_acid_table(call.name, self.text, call.name_span)
        within = self.within[-1] if self.within else None
        self.standins.append(StandIn(view_name(), table, changes=call, within=within))
        return Edit(span.start, span.end, self.standins[-1].view)


def no_acid_table(name: str, text: str, span: Span) -> AnalysisError:
    """The error for a name that a statement has, and no ACID table."""
    return AnalysisError(
        f"There is no ACID table '{name}'.",
        text, span.start, span.end,
        condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
    )  # fmt: skip


def _named(reference: Reference, new: str, name: str) -> list[Edit]:
    """The edits that put a relation in the place of a table. It keeps the alias, or gets one."""
    edits = [Edit(reference.span.start, reference.span.end, new)]
    if reference.alias is None and reference.alias_at is not None:
        edits.append(Edit(reference.alias_at, reference.alias_at, f" AS {quote(name)}"))
    return edits


def _replaced(reference: Reference, view: str, alias: str | None) -> list[Edit]:
    edits = _named(reference, view, alias or reference.parts[-1])
    for clause in filter(None, (reference.time_travel, reference.properties)):
        edits.append(Edit(clause.start, clause.end, ""))
    if alias is not None:
        return edits
    return edits + [Edit(span.start, span.end, "") for span in reference.prefixes]


def _taken(statement: Statement) -> list[str]:
    """The names of target and source in lower case: subqueries of the statement can use them."""
    if not isinstance(statement, Update | Delete | Merge):
        return []
    names = [statement.qualifier]
    if isinstance(statement, Merge) and statement.source_alias is not None:
        names.append(statement.source_alias)
    return [name.lower() for name in names]


def of_target(text: str, table: Table) -> tuple[str, ...]:
    """The virtual columns of the stand-in for the target of a statement."""
    return virtual_columns(table, {ROW__ID, *_mentioned(text)})


def of_source(text: str, statement: Merge | AutoCdc, resolve: Resolve) -> tuple[str, ...]:
    """The virtual columns of the stand-in for a source that is the name of a table.

    There are none if the statement gives the source's columns other names.
    """
    name = statement.source_name
    table = None if name is None else resolve(name.parts)
    if table is None or (isinstance(statement, Merge) and statement.source_columns is not None):
        return ()
    return virtual_columns(table, _mentioned(text))


def _mentioned(text: str) -> set[str]:
    """The virtual columns that a statement names; ``"…"`` may be a name, too."""
    found = (one for one in tokenize(text) if one.is_name or one.text.startswith('"'))
    return {one.value.lower() for one in found} & TYPES.keys()
