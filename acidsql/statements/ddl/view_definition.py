"""CREATE VIEW and ALTER VIEW → the view, as the metastore keeps it.

The metastore keeps the text of the query. So nothing in the query may belong to the session alone.
A stand-in is a temporary view in the place of a table, here without rows, to analyse the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from acidsql.acid.table import Column, Table, TableName, ViewText
from acidsql.errors import AnalysisError, FormatError, SqlError, UnsupportedError
from acidsql.metastore.foreign import view_of
from acidsql.plan.analysis import lower
from acidsql.plan.rows.evolution import check_name
from acidsql.plan.standins.query import rewrite, view_standins
from acidsql.plan.standins.view_text import QUERY_SETTINGS, SETTING, Definition, users_properties
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed import statements as st
from acidsql.sql.queries.references import Obstacle, references
from acidsql.sql.queries.table_changes import parse_table_changes
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import has_double_quoted_names
from acidsql.statements.queries.filler import Filler
from acidsql.statements.queries.view_rows import NO_ALIAS, view_type
from acidsql.storage.spark.session import temporary
from acidsql.storage.spark.session.jvm import without_own_catalog

_GLOBAL_DATABASE = "spark.sql.globalTempDatabase"


class ViewDefinitions:
    """Makes the views that the statements of one session define."""

    def __init__(self, context: Context) -> None:
        self._spark, self._names = context.spark, context.names
        self._catalog, self._filler = context.catalog, Filler(context)

    def define_view(
        self, statement: st.CreateView | st.AlterView, text: str, name: TableName
    ) -> Table:
        """Return the view that CREATE VIEW would make, or the view after ALTER VIEW: a ``Table``
        without a location, with the query's columns, its text (as written, and with full names),
        and, as properties, the confs that its meaning depends on. Nothing is stored, and no job
        runs.

        Raises:
            SqlError: The query is wrong, has a parameter or a column without a name, needs
                something of the session, or would read the view.
        """
        query, double_quoted = statement.query.span, has_double_quoted_names(self._spark, text)
        self._refuse_temporary(text, query, double_quoted=double_quoted)
        rows = self._analyse_query(statement, text, double_quoted=double_quoted)
        listed_columns = statement.columns if isinstance(statement, st.CreateView) else ()
        columns = _columns(rows, listed_columns, text, statement)
        names = None if _has_unknown_names(rows) else rows.columns
        if names is None and not listed_columns:
            raise _unnamed_column_error(rows, text, query)
        definition = Definition(text, query, self._full_name, double_quoted)
        comment, properties = self._comment_and_properties(statement, name)
        query_settings = {
            SETTING + key: value for key in QUERY_SETTINGS if (value := self._spark.conf.get(key))
        }
        view = Table(
            name,
            "",
            columns,
            properties={**properties, **query_settings},
            comment=comment,
            is_transactional=False,
            view=ViewText(query.slice(text), definition.expanded(name.name, columns, names)),
        )
        # A reader must resolve the same names. This also finds a view that would read itself.
        self._filler.empty_views(view_standins(view, self._names.find_readable))
        return view

    def _comment_and_properties(
        self, statement: st.CreateView | st.AlterView, name: TableName
    ) -> tuple[str | None, Mapping[str, str]]:
        """Return the comment and the user's properties of a view: for CREATE VIEW those of the
        statement, for ALTER VIEW those that the view has now (None and {} if it is gone)."""
        if isinstance(statement, st.CreateView):
            return statement.comment, dict(statement.properties)
        old = view_of(self._catalog.find(name))
        return (None, {}) if old is None else (old.comment, users_properties(old))

    def _full_name(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return a table's name with its database, as other readers of the metastore know it."""
        parts = without_own_catalog(parts)
        return (self._names.current_database, *parts) if len(parts) == 1 else parts

    def _analyse_query(
        self, statement: st.CreateView | st.AlterView, text: str, *, double_quoted: bool
    ) -> DataFrame:
        """Analyse the view's query over stand-ins without rows, and return it as a DataFrame; no
        job runs. Raise SqlError, which points into the user's text: UnsupportedError for a
        parameter, AnalysisError for a variable of the session."""
        query = statement.query.span
        rewritten = rewrite(text, statement, self._names.find_readable, double_quoted=double_quoted)
        query_text = Text(text, rewritten.edits).verbatim(query)
        try:
            rows = lower.frame(
                self._spark, query_text, self._filler.empty_views(rewritten.standins)
            )
        except SqlError as error:
            if error.condition != "UNBOUND_SQL_PARAMETER":
                raise
            raise UnsupportedError(
                "The query of a view has no parameters, because the view keeps its text.",
                text, error.start, error.end,
                condition="UNSUPPORTED_FEATURE.PARAMETER_MARKER_IN_UNEXPECTED_STATEMENT",
            ) from None  # fmt: skip
        if temporary.reads_variables(rows):
            raise _temporary_object_error("a variable of this session", text, query)
        return rows

    def _refuse_temporary(self, text: str, query: Span, *, double_quoted: bool) -> None:
        """Refuse a query that names a temporary view, table or function, or uses IDENTIFIER(…) as a
        table.

        Raises:
            AnalysisError: INVALID_TEMP_OBJ_REFERENCE: the query names such an object.
            UnsupportedError: IDENTIFIER(…) is used as a table: its value may change.
        """
        query_references = references(text, query, double_quoted_identifiers=double_quoted)
        global_database = str(self._spark.conf.get(_GLOBAL_DATABASE)).lower()
        for reference in query_references.references:
            is_temporary_view = len(reference.parts) == 1 and temporary.is_temp_view(
                self._spark, reference.parts[0]
            )
            if is_temporary_view or (
                len(reference.parts) == 2 and reference.parts[0].lower() == global_database
            ):
                raise _temporary_object_error(
                    f"the temporary view {'.'.join(reference.parts)}", text, reference.span
                )
        calls = [parse_table_changes(text, place) for place in query_references.changes]
        named_relations = [
            (reference.parts, reference.span) for reference in query_references.references
        ]
        for parts, place in [*named_relations, *((call.parts, call.name_span) for call in calls)]:
            if (name := self._names.qualify(parts)) is not None and name.session_txn_id is not None:
                raise _temporary_object_error(f"the temporary table {name}", text, place)
        for doubt in query_references.doubts:
            if doubt.obstacle is Obstacle.IDENTIFIER:
                raise UnsupportedError(
                    "IDENTIFIER(…) as a table is not supported in a view: name the table.",
                    text, doubt.span.start, doubt.span.end,
                )  # fmt: skip
        tokens = tokenize(text, query, double_quoted_identifiers=double_quoted)
        for token_before, token, token_after in zip(
            [None, *tokens], tokens, tokens[1:], strict=False
        ):
            is_call = (
                token.is_name
                and token_after.text == "("
                and (not token_before or token_before.text != ".")
            )
            if is_call and temporary.is_temp_function(self._spark, token.value):
                function = f"the temporary function {token.value}"
                raise _temporary_object_error(function, text, token.span)


def _columns(
    rows: DataFrame,
    listed_columns: Sequence[st.ViewColumn],
    text: str,
    statement: st.CreateView | st.AlterView,
) -> tuple[Column, ...]:
    """Return the columns of a view: the query's columns, with the names and comments of the list if
    there is one; names in lower case.

    Raises:
        AnalysisError: The list has another length, a name is there twice or not allowed, or Hive
            has no such type.
    """
    fields, query = lower.fields_of(rows), statement.query.span
    if listed_columns and len(listed_columns) != len(fields):
        raise AnalysisError(
            f"The view has {len(listed_columns)} columns, and its query has {len(fields)}.",
            text, listed_columns[0].name.span.start, listed_columns[-1].name.span.end,
            condition="CREATE_VIEW_COLUMN_ARITY_MISMATCH", sqlstate="21S01",
        )  # fmt: skip
    names = [
        (listed_column.name.parts[-1].lower(), listed_column.comment, listed_column.name.span)
        for listed_column in listed_columns
    ]
    names = names or [(name.lower(), None, query) for name, _ in fields]
    columns_by_name: dict[str, Column] = {}
    for (name, kind), (column_name, comment, place) in zip(fields, names, strict=True):
        try:
            column = Column(column_name, view_type(kind), comment=comment)
        except FormatError as error:
            raise AnalysisError(
                f"The query's column '{name}' cannot be a column of a view: {error.message}. CAST "
                "it to another type.",
                text, place.start, place.end,
                condition="UNSUPPORTED_DATATYPE", sqlstate="0A000",
            ) from None  # fmt: skip
        if column_name in columns_by_name:
            raise AnalysisError(
                f"Column '{column_name}' is there twice; the case of letters does not matter.",
                text, place.start, place.end,
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711",
            )  # fmt: skip
        check_name(column, text, place)
        columns_by_name[column_name] = column
    return tuple(columns_by_name.values())


def _has_unknown_names(rows: DataFrame) -> bool:
    """Whether two columns of the query have one name, or Spark has chosen a column's name."""
    names = [name.lower() for name in rows.columns]
    return len(set(names)) < len(names) or any(NO_ALIAS in field.metadata for field in rows.schema)


def _unnamed_column_error(rows: DataFrame, text: str, query: Span) -> AnalysisError:
    """Return the error of a query with a column that has no name.

    Two columns of one name cause no error here: ``_columns`` has refused them.
    """
    name = next(field.name for field in rows.schema if NO_ALIAS in field.metadata)
    return AnalysisError(
        f"The query's column {name} has no name: write AS behind it, or list the view's columns "
        "behind the view's name.",
        text, query.start, query.end,
        condition="CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", sqlstate="0A000",
    )  # fmt: skip


def _temporary_object_error(label: str, text: str, place: Span) -> AnalysisError:
    """Return the error of a view that would read something temporary, named in ``label``."""
    return AnalysisError(
        f"A view cannot read {label}, because the view lasts longer: CREATE TEMPORARY VIEW … can.",
        text, place.start, place.end,
        condition="INVALID_TEMP_OBJ_REFERENCE", sqlstate="42K0F",
    )  # fmt: skip
