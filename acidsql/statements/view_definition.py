"""CREATE VIEW and ALTER VIEW → the view, as the metastore keeps it.

The metastore keeps the text of the query. So nothing in the query may belong to the session alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from acidsql.acid.table import Column, Table, TableName, ViewText
from acidsql.errors import AnalysisError, FormatError, SqlError, UnsupportedError
from acidsql.metastore.foreign import view_of
from acidsql.plan import lower
from acidsql.plan.evolution import check_name
from acidsql.plan.query import rewrite, view_standins
from acidsql.plan.sqltext import Text
from acidsql.plan.view_text import QUERY_SETTINGS, SETTING, Definition, users_properties
from acidsql.sql import statements as st
from acidsql.sql.references import Obstacle, references
from acidsql.sql.table_changes import parse_table_changes
from acidsql.sql.tokens import Span, tokenize
from acidsql.statements.family import Context
from acidsql.statements.reader import Reader
from acidsql.statements.statement_text import has_double_quoted_names
from acidsql.statements.view_rows import NO_ALIAS, view_type
from acidsql.storage.spark import temporary

_GLOBAL_DATABASE = "spark.sql.globalTempDatabase"


class ViewDefinitions:
    """Finds what the statements of one session make."""

    def __init__(self, context: Context) -> None:
        self._spark, self._names = context.spark, context.names
        self._transactions = context.transactions
        self._reader = Reader(context)

    def of(self, statement: st.CreateView | st.AlterView, text: str, name: TableName) -> Table:
        """The view that a statement makes, or what it makes of a view.

        Raises:
            SqlError: The query is wrong, needs something of the session, or would read the view.
        """
        query, double_quoted = statement.query.span, has_double_quoted_names(self._spark, text)
        self._refuse_temporary(text, query, double_quoted=double_quoted)
        rows = self._analysed(statement, text, double_quoted=double_quoted)
        listed = statement.columns if isinstance(statement, st.CreateView) else ()
        columns = _columns(rows, listed, text, statement)
        names = None if _has_unknown_names(rows) else rows.columns
        if names is None and not listed:
            raise _no_names(rows, text, query)
        full = Definition(text, query, self._full, double_quoted)
        comment, properties = self._told(statement, name)
        kept = {
            SETTING + key: value for key in QUERY_SETTINGS if (value := self._spark.conf.get(key))
        }
        view = Table(
            name,
            "",
            columns,
            properties={**properties, **kept},
            comment=comment,
            is_transactional=False,
            view=ViewText(query.of(text), full.expanded(name.name, columns, names)),
        )
        # A reader must find what was found here. This also finds a view that would read itself.
        self._reader.empty_views(view_standins(view, self._names.find_readable))
        return view

    def _told(
        self, statement: st.CreateView | st.AlterView, name: TableName
    ) -> tuple[str | None, Mapping[str, str]]:
        """The comment and the properties of the user: a view keeps them if its query changes."""
        if isinstance(statement, st.CreateView):
            return statement.comment, dict(statement.properties)
        old = view_of(self._transactions.find(name))
        return (None, {}) if old is None else (old.comment, users_properties(old))

    def _full(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        return (self._names.current_database, *parts) if len(parts) == 1 else parts

    def _analysed(
        self, statement: st.CreateView | st.AlterView, text: str, *, double_quoted: bool
    ) -> DataFrame:
        """The query over views without rows. The errors have a caret in the user's text."""
        query = statement.query.span
        found = rewrite(text, statement, self._names.find_readable, double_quoted=double_quoted)
        composed = Text(text, found.edits).verbatim(query)
        try:
            rows = lower.frame(self._spark, composed, self._reader.empty_views(found.standins))
        except SqlError as error:
            if error.condition != "UNBOUND_SQL_PARAMETER":
                raise
            raise UnsupportedError(
                "The query of a view has no parameters, because the view keeps its text.",
                text, error.start, error.end,
                condition="UNSUPPORTED_FEATURE.PARAMETER_MARKER_IN_UNEXPECTED_STATEMENT",
            ) from None  # fmt: skip
        if temporary.reads_variables(rows):
            raise _temporary("a variable of this session", text, query)
        return rows

    def _refuse_temporary(self, text: str, query: Span, *, double_quoted: bool) -> None:
        """Refuse temporary views, tables and functions in the query.

        Raises:
            AnalysisError: INVALID_TEMP_OBJ_REFERENCE: there is one.
            UnsupportedError: A table is named by an expression, whose meaning may change.
        """
        found = references(text, query, double_quoted_identifiers=double_quoted)
        of_all = str(self._spark.conf.get(_GLOBAL_DATABASE)).lower()
        for one in found.references:
            is_own = len(one.parts) == 1 and temporary.is_temp_view(self._spark, one.parts[0])
            if is_own or (len(one.parts) == 2 and one.parts[0].lower() == of_all):
                raise _temporary(f"the temporary view {'.'.join(one.parts)}", text, one.span)
        calls = [parse_table_changes(text, place) for place in found.changes]
        named = [(one.parts, one.span) for one in found.references]
        for parts, place in [*named, *((call.parts, call.name_span) for call in calls)]:
            if (name := self._names.qualify(parts)) is not None and name.holder is not None:
                raise _temporary(f"the temporary table {name}", text, place)
        for doubt in found.doubts:
            if doubt.obstacle is Obstacle.IDENTIFIER:
                raise UnsupportedError(
                    "IDENTIFIER(…) as a table is not supported in a view: name the table.",
                    text, doubt.span.start, doubt.span.end,
                )  # fmt: skip
        tokens = tokenize(query.of(text), double_quoted_identifiers=double_quoted)
        for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
            is_call = token.is_name and after.text == "(" and (not before or before.text != ".")
            if is_call and temporary.is_temp_function(self._spark, token.value):
                place = Span(query.start + token.start, query.start + token.end)
                raise _temporary(f"the temporary function {token.value}", text, place)


def _columns(
    rows: DataFrame,
    listed: Sequence[st.ViewColumn],
    text: str,
    statement: st.CreateView | st.AlterView,
) -> tuple[Column, ...]:
    """The columns of a view: the query's, under the names of the list, if there is one."""
    fields, query = lower.fields_of(rows), statement.query.span
    if listed and len(listed) != len(fields):
        raise AnalysisError(
            f"The view has {len(listed)} columns, and its query has {len(fields)}.",
            text, listed[0].name.span.start, listed[-1].name.span.end,
            condition="CREATE_VIEW_COLUMN_ARITY_MISMATCH", sqlstate="21S01",
        )  # fmt: skip
    named = [(one.name.parts[-1].lower(), one.comment, one.name.span) for one in listed]
    named = named or [(name.lower(), None, query) for name, _ in fields]
    found: dict[str, Column] = {}
    for (name, kind), (new, comment, place) in zip(fields, named, strict=True):
        try:
            column = Column(new, view_type(kind), comment=comment)
        except FormatError as error:
            raise AnalysisError(
                f"The query's column '{name}' cannot be a column of a view: {error.message}. CAST "
                "it to another type.",
                text, place.start, place.end,
                condition="UNSUPPORTED_DATATYPE", sqlstate="0A000",
            ) from None  # fmt: skip
        if new in found:
            raise AnalysisError(
                f"Column '{new}' is there twice; the case of letters does not matter.",
                text, place.start, place.end,
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711",
            )  # fmt: skip
        check_name(column, text, place)
        found[new] = column
    return tuple(found.values())


def _has_unknown_names(rows: DataFrame) -> bool:
    """Whether the query's columns cannot be told by names that the user gave or knows."""
    names = [name.lower() for name in rows.columns]
    return len(set(names)) < len(names) or any(NO_ALIAS in one.metadata for one in rows.schema)


def _no_names(rows: DataFrame, text: str, query: Span) -> AnalysisError:
    """The error of a query with a column that has no name. Of names that are there twice no error
    comes here."""
    name = next(one.name for one in rows.schema if NO_ALIAS in one.metadata)
    return AnalysisError(
        f"The query's column {name} has no name: write AS behind it, or list the view's columns "
        "behind the view's name.",
        text, query.start, query.end,
        condition="CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", sqlstate="0A000",
    )  # fmt: skip


def _temporary(what: str, text: str, place: Span) -> AnalysisError:
    return AnalysisError(
        f"A view cannot read {what}, because the view lasts longer: CREATE TEMPORARY VIEW … can.",
        text, place.start, place.end,
        condition="INVALID_TEMP_OBJ_REFERENCE", sqlstate="42K0F",
    )  # fmt: skip
