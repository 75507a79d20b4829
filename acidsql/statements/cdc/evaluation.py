"""Evaluates the queries of an AUTO CDC statement, each once, so that all later steps see the same
rows. A demand is which rows of a view (in the place of a table) a query needs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from acidsql.acid.values.predicate import Demand
from acidsql.plan.analysis import lower
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.values.sqltext import Text
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.queries.filler import Filler
from acidsql.storage.spark.repeatable import is_of_literals
from acidsql.storage.spark.session.jvm import SEND_NOTHING, changed_conf, is_too_large_to_send
from acidsql.storage.writing.staging import EvaluatedRows, evaluate
from acidsql.txn import Snapshot


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates the queries of one AUTO CDC statement.

    Attributes:
        context: The session.
        filler: Makes the views that the queries read.
        temporary_files: Deletes the temporary files of the evaluated rows when it closes.
        txn_id: The transaction of the statement.
        snapshot: What the transaction sees.
        statement_text: The statement's text, arguments and time.
    """

    context: Context
    filler: Filler
    temporary_files: ExitStack
    txn_id: int
    snapshot: Snapshot
    statement_text: StatementText

    def lazy_rows(self, query: Text) -> DataFrame:
        """Return the rows of a query over temporary views that exist, lazily."""
        return query_rows(self.context.spark, query, {}, self.statement_text)

    def evaluate(self, part: PreparedStatement, demands: Mapping[str, Demand]) -> EvaluatedRows:
        """Evaluate the one query of a part of the statement: up to ``Settings.driver_row_limit``
        rows into the driver, more by a job into temporary files. Return the rows from there.

        If ``demands`` are given and all rows are literals, later steps may evaluate them again.
        ``demands``: which rows the query needs of its views; {}: all. If a table is too large to be
        broadcast, another query of the same rows is evaluated (``Events.otherwise``), without
        broadcasts. Errors of Spark point into the statement.
        """
        (query,) = part.queries
        few_rows = self.context.txns.settings.driver_row_limit
        few_table_rows = few_rows if demands else 0
        views = self.filler.views(
            part, self.snapshot, self.statement_text, few=few_table_rows, explicit_demands=demands
        )
        if demands and all(map(is_of_literals, views.values())):  # there is nothing to reduce
            query = replace(query, hints=replace(query.hints, reduced=None))
        events = self.filler.events(query, views, self.statement_text)

        def evaluate_rows(rows: DataFrame) -> EvaluatedRows:
            """Evaluate these rows, and let ``temporary_files`` delete their files in the end."""
            location = query.table.location
            may_repeat = bool(demands) and is_of_literals(rows)
            evaluation = evaluate(rows, location, self.txn_id, few_rows, may_repeat=may_repeat)
            return self.temporary_files.enter_context(evaluation)

        with lower.mapped_errors(query.query):
            try:
                return evaluate_rows(events.rows)
            except Exception as error:
                if events.otherwise is None or not is_too_large_to_send(error):
                    raise
            with changed_conf(self.context.spark, SEND_NOTHING):
                return evaluate_rows(events.otherwise())
