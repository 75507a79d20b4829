"""Rewrites RETURNING to a query over the rows that its statement has changed.

The names mean what they mean in PostgreSQL 18: a column is the new value, and of a deleted row the
old one; ``old.c`` and ``new.c`` are the values before and after. ``merge_action()`` is MERGE's.

The query reads a stand-in, a temporary view with the old and the new rows. It has columns of our
own beside the table's: a struct for the old row and one for the new row, ``row__id`` if the table
has row ids, and MERGE's action.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.plan.standins.query import StandIn, database_prefix_edits, placeholders, view_name
from acidsql.plan.standins.star_exceptions import except_edit
from acidsql.plan.values.sqltext import Edit, Text
from acidsql.sql.parsed.statements import Delete, Insert, Merge, Returning, Update
from acidsql.sql.queries.references import Star, StarKind, references
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.storage.columns import quote
from acidsql.storage.reading.returned import MERGE_ACTION, ReturnedColumns

_Statement = Insert | Update | Delete | Merge


@dataclass(frozen=True, slots=True)
class ReturningQuery:
    """The query of a RETURNING.

    Attributes:
        query: The query over the view.
        view: The name of the view over the changed rows.
        shown: The columns of the view.
    """

    query: Text
    view: str
    shown: ReturnedColumns

    @property
    def needs_pairs(self) -> bool:
        """Whether the writer must note which new row replaces which old one."""
        return self.shown.has_old and self.shown.has_new


def plan_returning(
    text: str,
    statement: _Statement,
    table: Table,
    analyse: Callable[[Text, tuple[StandIn, ...]], object],
    *,
    double_quoted: bool,
) -> ReturningQuery | None:
    """Rewrite a statement's RETURNING to a query over the changed rows, and let Spark analyse it;
    return None if the statement has none.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        table: The target.
        analyse: Asks Spark for the columns of a query over stand-ins.
        double_quoted: ``"…"`` is a name in this session.

    Raises:
        AnalysisError: A name or a type is wrong, or an item has an aggregate function.
        UnsupportedError: An item has a subquery, or names a column of MERGE's source by the
            source's alias.
    """
    if (clause := statement.returning) is None:
        return None
    scope = _Scope.of_statement(text, statement, clause, table)
    edits = [edit for item in clause.items for edit in scope.edits(item, double_quoted)]
    query = Text(text, [*edits, *placeholders(text)])
    items: list[Text | str] = [query.new().verbatim(item) for item in clause.items]
    standin = StandIn(view_name(), table, returned=scope.shown)
    rows = f"\nFROM {standin.view} AS {quote(scope.qualifier)}"
    # With a plain column beside it, Spark refuses an aggregate function.
    _analyse_without_aggregates(
        query.new().raw("SELECT\n").commas([*items, MERGE_ACTION]).raw(rows),
        clause,
        lambda checked: analyse(checked, (standin,)),
    )
    query.raw("SELECT\n").commas(items).raw(rows)
    return ReturningQuery(query, standin.view, scope.shown)


def _analyse_without_aggregates(
    query: Text, clause: Returning, analyse: Callable[[Text], object]
) -> None:
    """Let Spark analyse the RETURNING query, in which a plain column stands beside the items. Its
    error MISSING_GROUP_BY, which Spark raises for an aggregate function there, becomes an
    AnalysisError of this condition with our own message; Spark's other errors pass."""
    try:
        analyse(query)
    except AnalysisError as error:
        if error.condition != "MISSING_GROUP_BY":
            raise
        raise AnalysisError(
            "RETURNING gives one row for each changed row, so it has no aggregate functions. Call "
            "the DataFrame's agg(…).",
            query.source, clause.span.start, clause.span.end,
            condition="MISSING_GROUP_BY", sqlstate="42803",
        ) from None  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names that the items of one RETURNING may use.

    Attributes:
        text: The user's statement.
        statement: The parsed statement.
        qualifier: The name of the target's columns.
        has_alias: The name is an alias, so no database can stand before the name.
        shown: The columns of the view.
    """

    text: str
    statement: _Statement
    qualifier: str
    has_alias: bool
    shown: ReturnedColumns

    @classmethod
    def of_statement(
        cls, text: str, statement: _Statement, clause: Returning, table: Table
    ) -> _Scope:
        """Return the scope of a statement's RETURNING: its qualifier, and whether it shows old rows
        (DELETE, MERGE, or an UPDATE whose items have the name of the old row or the word
        IDENTIFIER), new rows (all but DELETE), and MERGE's action."""
        qualifier, has_alias = statement.target.parts[-1], False
        if not isinstance(statement, Insert):
            qualifier, has_alias = statement.qualifier, statement.alias is not None
        old, new = _row_names(text, clause, table, qualifier)
        has_old = isinstance(statement, Delete | Merge)
        if isinstance(statement, Update):
            words = {token.value.lower() for item in clause.items for token in tokenize(text, item)}
            # IDENTIFIER('old.c') names a column by a string, or by an expression.
            has_old = old is not None and not words.isdisjoint({old.lower(), "identifier"})
        is_merge, has_new = isinstance(statement, Merge), not isinstance(statement, Delete)
        shown = ReturnedColumns(table, has_old, has_new, old, new, is_merge)
        return cls(text, statement, qualifier, has_alias, shown)

    def edits(self, item: Span, double_quoted: bool) -> Iterator[Edit]:
        """Yield the edits of one item: they put columns in the place of ``merge_action()``, leave
        our own columns out of each ``*``, and drop ``db.`` in ``db.t.c`` if the target has no
        alias.

        Raises:
            UnsupportedError: The item has a subquery, or a column of MERGE's source by its alias.
            AnalysisError: ``merge_action()`` without MERGE, or an EXCEPT of our columns.
        """
        table, text = self.shown.table, self.text
        item_references = references(
            text, item, double_quoted_identifiers=double_quoted, is_value=True
        )
        lambdas = {
            qualifier_name.block
            for qualifier_name in item_references.qualifiers
            if qualifier_name.is_value
        }
        if len(item_references.blocks) > 1 + len(lambdas):
            raise self._unsupported_error(
                item, "A subquery in RETURNING", "Join the DataFrame instead"
            )
        if not self.has_alias:
            for edit, _ in database_prefix_edits(text, [item], [table.name]):
                yield edit
        source = self.statement.source_alias if isinstance(self.statement, Merge) else None
        for qualifier in [
            chain.names[0] for chain in item_references.chains if len(chain.names) > 1
        ]:
            if source is not None and qualifier == source.lower() != self.qualifier.lower():
                subject = f"A column of the source ({source}) in RETURNING"
                raise self._unsupported_error(item, subject, "The rows of the target are returned")
        ids = [ROW__ID] if table.has_row_ids else []
        own_columns = [
            *ids,
            *(quote(row_name) for row_name in (self.shown.old, self.shown.new) if row_name),
        ]
        structs = [row_name.lower() for row_name in (self.shown.old, self.shown.new) if row_name]
        row_qualifiers = ["", self.qualifier.lower()]
        for star in item_references.blocks[0].stars:
            qualifier = ".".join(star.qualifier or ()).lower()
            if not self.has_alias:
                qualifier = qualifier.removeprefix(f"{table.name.database}.")
            is_item = star.span.start == item.start
            if star.qualifier is None and not is_item and star.kind is not StarKind.ARGUMENT:
                continue  # a multiplication
            if qualifier in structs:
                self._need_listed_columns(star, ids)
                yield from [except_edit(star, ROW__ID)] if ids else []
            elif qualifier in row_qualifiers:  # not the fields of a column: s.*, old.s.*
                self._need_listed_columns(star, [*ids, *structs])
                yield except_edit(star, ", ".join([*own_columns, MERGE_ACTION]))
        yield from self._merge_action_edits(item)

    def _need_listed_columns(self, star: Star, own_names: Collection[str]) -> None:
        """Raise AnalysisError if an item of the EXCEPT of a ``*`` is one of ``own_names`` (in lower
        case), which the ``*`` does not have. Spark's error would list our own columns, too. Other
        names pass."""
        tokens = [] if star.excepted is None else tokenize(self.text, star.excepted)
        for i, token in enumerate(tokens):
            is_whole = (i == 0 or tokens[i - 1].text == ",") and (
                i + 1 == len(tokens) or tokens[i + 1].text == ","
            )
            if is_whole and token.value.lower() in own_names:
                raise AnalysisError(
                    f"A * of RETURNING has the columns of the table, so it has no "
                    f"'{token.value}' to leave out.",
                    self.text, token.start, token.end,
                    condition="UNRESOLVED_COLUMN", sqlstate="42703",
                )  # fmt: skip

    def _merge_action_edits(self, item_span: Span) -> Iterator[Edit]:
        """Yield the edits that replace each call of ``merge_action()``, in any case, in an item of
        RETURNING by the column of the action; an item that is only the call keeps its name. Raise
        AnalysisError if there is a call and the statement is no MERGE."""
        tokens = tokenize(self.text, item_span)
        for i in range(len(tokens) - 2):
            name, opening, closing = tokens[i : i + 3]
            if [name.upper, opening.text, closing.text] != ["MERGE_ACTION", "(", ")"]:
                continue
            place = Span(name.start, closing.end)
            if not isinstance(self.statement, Merge):
                raise AnalysisError(
                    "merge_action() is a function of MERGE's RETURNING.",
                    self.text, place.start, place.end,
                    condition="UNRESOLVED_ROUTINE", sqlstate="42883",
                )  # fmt: skip
            alias = " AS merge_action" if place == item_span else ""
            yield Edit(place.start, place.end, f"{MERGE_ACTION}{alias}")

    def _unsupported_error(self, place: Span, subject: str, instead: str) -> UnsupportedError:
        """Return an UnsupportedError at a place: ``subject`` is not supported, ``instead`` says
        what to do."""
        return UnsupportedError(
            f"{subject} is not supported. {instead}.",
            self.text, place.start, place.end,
            condition="UNSUPPORTED_FEATURE.RETURNING",
        )  # fmt: skip


def _row_names(
    text: str, clause: Returning, table: Table, qualifier: str
) -> tuple[str | None, str | None]:
    """Return the names of the old row and of the new row in RETURNING, as written; None for a row
    that is hidden.

    Without WITH, a column or table that is called OLD or NEW, in any case, hides the row, as in
    PostgreSQL. So does the name that WITH gives to the old row, if it is NEW.

    Raises:
        AnalysisError: WITH gives a name that is taken: a column's, the target's, ``row__id``, or
            the other row's.
    """
    taken_names = {column.name.lower() for column in table.all_columns} | {
        qualifier.lower(),
        ROW__ID,
    }
    names: list[str | None] = []
    for chosen_name, default in ((clause.old, "old"), (clause.new, "new")):
        name = chosen_name or default
        if name.lower() in taken_names and chosen_name is not None:
            raise AnalysisError(
                f"The name '{chosen_name}' is taken. WITH (OLD AS …, NEW AS …) gives new names.",
                text, clause.span.start, clause.items[0].start,
                condition="AMBIGUOUS_REFERENCE", sqlstate="42704",
            )  # fmt: skip
        names.append(None if name.lower() in taken_names else name)
        taken_names.add(name.lower())
    return names[0], names[1]
