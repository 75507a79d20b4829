"""The statements that Spark runs, with stand-ins for the ACID tables that they read.

A stand-in is a temporary view in the place of a table, over the rows that the statement sees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from acidsql.errors import AnalysisError, CatalogError
from acidsql.plan.analysis import lower
from acidsql.plan.rows.targets import place_of_name
from acidsql.plan.standins.foreign import (
    dropped_name,
    made_name,
    nothing_to_drop_error,
    refuse_acid_tables,
    refuse_new_location,
)
from acidsql.plan.standins.names import Glance
from acidsql.plan.standins.query import StandIn, acid_tables, placeholders, rewrite
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import Effect, Reads, SparkStatement
from acidsql.sql.text.frames import need_relations
from acidsql.sql.text.tokens import Span
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import as_spark_shows, empty_frame, text_frame
from acidsql.statements.context.statement_text import Args, StatementText
from acidsql.statements.directories.directories import refuse_owned_directory
from acidsql.statements.queries.explain import Explainer
from acidsql.statements.queries.filler import Filler
from acidsql.statements.queries.statement_demands import StatementDemands
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.views import settle

_MISSING_SOURCE = re.compile(r"\[DATA_SOURCE_NOT_FOUND\].* data source: ([\w.-]+)\.")
# A temporary view keeps its plan: its text names stand-ins, or DataFrames, which are dropped soon.
_KEPT_PLANS = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}


class SparkStatements:
    """Runs the statements of one session that are Spark's."""

    def __init__(self, context: Context, filler: Filler, explainer: Explainer) -> None:
        self._context, self._spark, self._names = context, context.spark, context.names
        self._filler, self._explainer = filler, explainer

    def run(
        self, statement: SparkStatement, statement_text: StatementText, args: Args, glance: Glance
    ) -> DataFrame:
        """Run a statement that is Spark's, over the rows that it reads of ACID tables. ``args`` has
        the arguments as the user gave them. A person sees the text of EXPLAIN whole, and nothing of
        a command without columns.

        A query is returned lazily, and EXPLAIN as one row of text; another statement runs now.
        Before that, ACID databases whose names are in its text are created in Spark's catalog.

        Raises:
            UnsupportedError: Spark's statement would change an ACID table or its directory.
            SqlError: Spark refuses the text, or it names a missing table.
        """
        rows = self._rows(statement, statement_text, args, glance)
        is_query = statement.effect is Effect.READS and statement.reads is not Reads.NOTHING
        return rows if is_query and statement.explained is None else as_spark_shows(rows)

    def _rows(
        self, statement: SparkStatement, statement_text: StatementText, args: Args, glance: Glance
    ) -> DataFrame:
        """Run a statement as ``run`` does, and return its rows."""
        text, double_quoted = statement_text.text, statement_text.double_quoted
        if statement.reads is Reads.NOTHING or statement.effect is not Effect.READS:
            is_ours = self._context.databases.is_acid_database
            refuse_new_location(text, is_ours, double_quoted=double_quoted)
            refuse_owned_directory(self._context.metastore, text, double_quoted=double_quoted)
            self._context.databases.share_named(text)
        if statement.explained is None and self._makes_nothing(text, double_quoted=double_quoted):
            return empty_frame(self._spark)
        if statement.reads is Reads.NOTHING:
            return self._run_without_tables(statement_text, args, glance)
        rewritten = rewrite(text, statement, glance.find_readable, double_quoted=double_quoted)
        if not rewritten.edits:
            return self._run_verbatim(text, args)
        composed = Text(text, [*rewritten.edits, *placeholders(text)])
        if not rewritten.standins:
            return self._run_over_frames(composed.verbatim(Span(0, len(text))), statement_text)
        with jvm.composed_text_conf(self._spark):
            return self._run_over_standins(statement, statement_text, composed, rewritten.standins)

    def _makes_nothing(self, text: str, *, double_quoted: bool) -> bool:
        """Whether a statement makes no table of Spark's, because an ACID table or view has the
        name, and the statement says IF NOT EXISTS. Such a table would be hidden by the ACID table:
        nobody could read its rows.

        Raises:
            CatalogError: The name is taken, and there is no IF NOT EXISTS.
        """
        made = made_name(text, double_quoted=double_quoted)
        table = None if made is None else self._names.find_hidden(made.parts)
        if made is None or table is None or made.if_not_exists:
            return table is not None
        kind = "an ACID table" if table.view is None else "a view"
        raise CatalogError(
            f"There is {kind} {table.name} already, and Spark cannot make another one of this "
            "name.",
            condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=table.name,
        )  # fmt: skip

    def _run_over_standins(
        self,
        statement: SparkStatement,
        statement_text: StatementText,
        composed: Text,
        standins: Sequence[StandIn],
    ) -> DataFrame:
        """Run a statement that reads ACID tables, or explain it as one row of text; a query is
        returned lazily. ``composed``: the statement's text, which names the stand-ins in the place
        of the tables."""
        snapshot = self._context.transactions.read_snapshot([*acid_tables(standins)])
        mode, span = statement.explained or (None, statement.span)
        query = composed.verbatim(span)
        # Spark runs a statement that is not a query when it is asked for the statement's plan.
        is_query = statement.effect is Effect.READS
        queries = [query] if is_query else []
        demands = StatementDemands(self._context, standins, queries, statement_text)
        views = self._filler.fill(demands, snapshot)
        if statement.explained is not None:
            rows = lower.frame(self._spark, query, views, statement_text.args)
            plan = self._explainer.plan(rows, standins, snapshot, mode, statement_text)
            return text_frame(self._spark, "plan", [plan])
        with jvm.changed_conf(self._spark, _KEPT_PLANS):
            return lower.frame(self._spark, query, views, statement_text.args, runs=not is_query)

    def _run_without_tables(
        self, statement_text: StatementText, args: Args, glance: Glance
    ) -> DataFrame:
        """Run a statement in which no query reads a table. Raise an error if it names an ACID
        table, which Spark's statement cannot change. A DROP, without IF EXISTS, of what Spark does
        not have is an error or, if the setting ``ignores_missing`` is on, has an empty result; of a
        plain table of the metastore it is always an error."""
        text, double_quoted = statement_text.text, statement_text.double_quoted
        is_in_spark = self._names.is_in_spark
        need_relations(text, double_quoted=double_quoted)
        refuse_acid_tables(text, glance.find, is_in_spark, double_quoted=double_quoted)
        name = dropped_name(text, double_quoted=double_quoted)
        if name is not None and self._names.qualify(name.parts) and not is_in_spark(name.parts):
            settings = self._context.txns.settings
            if settings.ignores_missing and not self._names.find_foreign(name.parts):
                return empty_frame(self._spark)
            raise nothing_to_drop_error(name, text)
        return self._run_verbatim(text, args)

    def _run_over_frames(self, text: Text, statement_text: StatementText) -> DataFrame:
        """Run ``text``, a statement that names DataFrames but no ACID tables; a query is returned
        lazily. Errors point into the user's text."""
        with lower.mapped_errors(text), jvm.changed_conf(self._spark, _KEPT_PLANS):
            return settle(self._run_verbatim(text.sql, statement_text.args))

    def _run_verbatim(self, text: str, args: Args) -> DataFrame:
        spark_args = dict(args) if isinstance(args, Mapping) else list(args or ())
        try:
            return self._spark.sql(text, args=spark_args or None)
        except Exception as error:  # Py4J's class is missing where there is no JVM
            missing_source = _MISSING_SOURCE.search(str(error))
            if missing_source is None:
                raise
            raise _missing_source_error(missing_source[1], text) from None


def _missing_source_error(name: str, text: str) -> AnalysisError:
    """Return the error that Spark has no data source of a name, with a caret at the name."""
    place = place_of_name((name,), text)
    return AnalysisError(
        f"Spark has no data source '{name}' here. CREATE TABLE without USING makes an ACID table.",
        text, place.start, place.end,
        condition="DATA_SOURCE_NOT_FOUND", sqlstate="42K02",
    )  # fmt: skip
