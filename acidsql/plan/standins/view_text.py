"""The query of a view: the text that the metastore keeps, and the settings that decide its meaning.

Spark keeps the settings of the session that made a view in the view's properties, under names of
its own. A view of acidsql's keeps those that decide what a text means, under the same names. So its
rows do not depend on who reads them. A view that Hive made has none: Hive knows no ANSI mode, its
TIMESTAMP is a wall clock, and a text in double quotes is a string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import AnalysisError, SqlError
from acidsql.plan.values.sqltext import Edit, Text
from acidsql.sql.parsed.statements import Name
from acidsql.sql.queries.references import references
from acidsql.sql.queries.table_changes import parse_table_changes
from acidsql.sql.text.tokens import Span, SqlText
from acidsql.storage.columns import quote, quoted_path

ANSI, TIME_ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
DOUBLE_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
TIMESTAMP_TYPE = "spark.sql.timestampType"
# The settings that decide the meaning of a query's text, or the values of its expressions.
QUERY_SETTINGS = (
    ANSI, TIME_ZONE, DOUBLE_QUOTES, TIMESTAMP_TYPE, "spark.sql.caseSensitive",
    "spark.sql.parser.escapedStringLiterals", "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.groupByOrdinal", "spark.sql.orderByOrdinal",
)  # fmt: skip
_HIVE_SETTINGS = {ANSI: "false", DOUBLE_QUOTES: "false", TIMESTAMP_TYPE: "TIMESTAMP_NTZ"}
# Spark's names for the settings and for the current database, in a view's properties.
SETTING, _DATABASE = "view.sqlConfig.", "view.catalogAndNamespace.part.1"
_VIEW_MARK = ""  # before the parts of a name; no text has such a part


def mark_view_name(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name marked as one in the query of a view: it never means a session's temporary
    table."""
    return (_VIEW_MARK, *parts)


def split_view_mark(parts: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Return whether a name is marked as one in the query of a view, and the name without the
    mark."""
    is_marked = parts[:1] == (_VIEW_MARK,)
    return is_marked, parts[1:] if is_marked else parts


@dataclass(frozen=True)
class ViewQuery:
    """A view whose query is read.

    Args:
        view: The view.
    """

    view: Table

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings under which Spark must analyse the query: name → value, those that the view
        stores. A view that stores none was made by Hive: no ANSI mode, strings in double quotes,
        TIMESTAMP without a zone."""
        properties = self.view.properties
        stored_settings = {
            name: value for name in QUERY_SETTINGS if (value := properties.get(SETTING + name))
        }
        return stored_settings or _HIVE_SETTINGS

    @property
    def double_quoted(self) -> bool:
        """Whether ``"…"`` is a name in the query."""
        return are_settings_true(self.settings, DOUBLE_QUOTES, ANSI)

    @cached_property
    def text(self) -> SqlText:
        """The query, in which each table's name has its database: the current one of the session
        that made the view, or else the view's. (Spark's own views do not name it.)"""
        assert self.view.view is not None
        database = self.view.properties.get(_DATABASE) or self.view.name.database
        stored = SqlText(self.view.view.expanded)
        text = qualify_tables(
            stored,
            lambda parts: (database, *parts) if len(parts) == 1 else parts,
            double_quoted=self.double_quoted,
        )
        return stored if text == stored else SqlText(text)


@dataclass(frozen=True, slots=True)
class Definition:
    """The query of a new view.

    Attributes:
        text: The statement that makes the view.
        query: The place of the query.
        full_name: Returns the full name of a table.
        double_quoted: ``"…"`` is a name.
    """

    text: str
    query: Span
    full_name: Callable[[tuple[str, ...]], tuple[str, ...]]
    double_quoted: bool

    def expanded(self, view: str, columns: Sequence[Column], names: Sequence[str] | None) -> str:
        """Return the text of the view's query that the metastore keeps for readers, with full names
        of tables. It is put into an outer SELECT if the view's columns have other names than the
        query's, or a ``*`` could get more columns.

        Args:
            view: The name of the view.
            columns: The view's columns.
            names: The names of the query's columns. None: names do not tell them apart, so the
                outer SELECT names them by position. Then the view can no longer be read if a ``*``
                in its query gets more columns.
        """
        double_quoted = self.double_quoted
        text = qualify_tables(self.text, self.full_name, self.query, double_quoted=double_quoted)
        query_references = references(
            self.text, self.query, double_quoted_identifiers=double_quoted
        )
        may_grow = bool(query_references.doubts) or any(
            block.stars for block in query_references.blocks
        )
        column_names = [column.name for column in columns]
        if not may_grow and names is not None and [name.lower() for name in names] == column_names:
            return text
        inner = f"(\n{text}\n) AS {quote(view)}"
        if names is None:
            column_list = ", ".join(map(quote, column_names))
            return f"SELECT {column_list} FROM {inner} ({column_list})"
        pairs = (f"{quote(a)} AS {quote(b)}" for a, b in zip(names, column_names, strict=True))
        return f"SELECT {', '.join(pairs)} FROM {inner}"


def users_properties(view: Table) -> dict[str, str]:
    """Return the properties of a view without those that say how to read it."""
    return {key: value for key, value in view.properties.items() if not key.startswith("view.")}


def are_settings_true(settings: Mapping[str, str], *names: str) -> bool:
    """Whether all of some settings are true."""
    return all(settings.get(name, "").lower() == "true" for name in names)


def qualify_tables(
    text: str,
    full_name: Callable[[tuple[str, ...]], tuple[str, ...]],
    span: Span | None = None,
    *,
    double_quoted: bool,
) -> str:
    """Replace the name of each table in a query, also in ``table_changes('t', …)``, by the table's
    full name; return the query's text. A replaced name is in backticks, and in
    ``table_changes`` in single quotes alone.

    Args:
        text: A text that contains the query.
        full_name: Returns the full name of a table. A full name stays as it is.
        span: The place of the query; default: the whole text.
        double_quoted: ``"…"`` is a name.
    """
    text, span = SqlText(text), span or Span(0, len(text))
    table_references = references(text, span, double_quoted_identifiers=double_quoted)
    edits = [
        Edit(reference.span.start, reference.span.end, quoted_path(name))
        for reference in table_references.references
        if (name := full_name(reference.parts)) != reference.parts
    ]
    for place in table_references.changes:
        call = parse_table_changes(text, place)
        if (name := full_name(call.parts)) != call.parts:
            edits.append(Edit(call.name_span.start, call.name_span.end, f"'{'.'.join(name)}'"))
    return Text(text, edits).verbatim(span).sql


def unreadable_view_error(view: TableName, error: SqlError) -> SqlError:
    """Return the error of a query that reads a view, if the view's own query has an error: of the
    same class, with the same condition, and a message that names the view. An error that already
    names a view, an inner one, stays as it is."""
    if "view" in error.parameters:
        return error
    return type(error)(
        f"The view {view} cannot be read. {error.message}",
        condition=error.condition, sqlstate=error.sqlstate, view=view,
    )  # fmt: skip


def need_table(table: Table, name: Name, text: str) -> None:
    """Raise AnalysisError, with the caret at ``name``, if ``table``, which a statement names and
    which must be a table, is a view. ``text``: the statement's."""
    if table.view is not None:
        raise AnalysisError(
            f"{table.name} is a view, and this statement needs a table. DROP VIEW, ALTER VIEW, "
            "CREATE OR REPLACE VIEW and DESCRIBE take views; rows are changed in the tables that a "
            "view reads.",
            text, name.span.start, name.span.end,
            condition="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", sqlstate="42809",
        )  # fmt: skip


def need_view(table: Table, name: Name, text: str) -> None:
    """Raise AnalysisError, with the caret at ``name``, if ``table``, which a statement names and
    which must be a view, is a table. ``text``: the statement's."""
    if table.view is None:
        kind = "an ACID" if table.name.session_txn_id is None else "a temporary"
        raise AnalysisError(
            f"{table.name} is {kind} table, and this statement needs a view. DROP TABLE and ALTER "
            "TABLE take tables.",
            text, name.span.start, name.span.end,
            condition="EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", sqlstate="42809",
        )  # fmt: skip


def view_cycle_error(view: TableName, enclosing_views: list[TableName]) -> AnalysisError:
    """Return the RECURSIVE_VIEW of a view that reads itself; it shows the way from view to view."""
    path = " → ".join(map(str, [*enclosing_views[enclosing_views.index(view) :], view]))
    return AnalysisError(
        f"The view {view} reads itself: {path}.",
        condition="RECURSIVE_VIEW", sqlstate="42K0H", view=view,
    )  # fmt: skip
