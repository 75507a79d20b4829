"""The three ways in which AUTO CDC decides about its folded records.

The folded records are the newest record of each key, a row for each. A decision says what the
record does to the target and to the state table, which keeps order values beside the target. The
floor, in the state table's row with a NULL key, is the order value of the newest truncation. A
stand-in is the view in the place of a table, and a demand which of its rows are needed.
``choose_strategy`` chooses a way, once the records are counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from acidsql.acid.table import Column
from acidsql.acid.values.predicate import ANYTHING, Comparison, Demand, disjunction
from acidsql.plan.cdc.queries import PreparedCdc
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import EventQuery
from acidsql.statements.cdc.evaluation import Evaluator
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.reading.pruning.source_partitions import source_predicate
from acidsql.storage.writing.staging import EvaluatedRows
from acidsql.txn import Snapshot


@dataclass(frozen=True, slots=True)
class Strategy(ABC):
    """A way to decide about the folded records.

    Attributes:
        decision: The query that decides, with the stand-ins that it reads.
        event_queries: The queries of the events of the target and of the state table, over the
            decisions.
    """

    decision: PreparedStatement
    event_queries: Sequence[EventQuery]

    @abstractmethod
    def decide(self, records: EvaluatedRows, evaluator: Evaluator) -> EvaluatedRows:
        """Decide about the folded records, and return the decisions. A job may run and write
        temporary files; nothing else is written. Call this method while the temporary view over the
        records exists."""


class FirstLoad(Strategy):
    """Both tables have no rows, so the decisions are a projection of the records, for which no job
    runs. All events are inserts."""

    def decide(self, records: EvaluatedRows, evaluator: Evaluator) -> EvaluatedRows:
        (query,) = self.decision.queries
        return replace(records, rows=evaluator.lazy_rows(query.query))


class Truncation(Strategy):
    """A record truncates the target, so all rows of both tables are joined with the records."""

    def decide(self, records: EvaluatedRows, evaluator: Evaluator) -> EvaluatedRows:
        return evaluator.evaluate(self.decision, {})


@dataclass(frozen=True, slots=True)
class Join(Strategy):
    """The records are joined with the rows of their keys.

    Attributes:
        keys: The columns that name a row.
    """

    keys: Sequence[Column]

    def decide(self, records: EvaluatedRows, evaluator: Evaluator) -> EvaluatedRows:
        return evaluator.evaluate(self.decision, self._demands_by_view(records))

    def _demands_by_view(self, records: EvaluatedRows) -> Mapping[str, Demand]:
        """Return which rows the decision needs of the target and of the state table, by the view's
        name: the rows of the records' keys and, in the state table, the row with a NULL key, which
        has the order value of the newest truncation.

        The result is {}, which means all rows, if the records are many, or if their keys' values
        tell no predicate.
        """
        if records.few is None:
            return {}
        key_pairs = [(key, f"k{i}") for i, key in enumerate(self.keys)]
        key_demand = source_predicate(records.rows, key_pairs, is_distinct=True, most=records.few)
        if key_demand == ANYTHING:
            return {}
        # The floor's row in the state table has a NULL key.
        key_or_floor_demand = disjunction([key_demand, Comparison(self.keys[0].name, "is null")])
        return {
            standin.view: Demand(key_demand if standin.is_target else key_or_floor_demand)
            for standin in self.decision.standins
        }


def choose_strategy(
    prepared: PreparedCdc, counts: Mapping[str, int], snapshot: Snapshot, tables: TableRows
) -> Strategy:
    """Return the strategy for the folded records of a statement: ``FirstLoad`` if the state table
    has no visible write and the target no files of rows; or else ``Truncation`` if a record
    truncates the target; or else ``Join``. The first two only if the statement has decisions for
    them. The target's files may be listed.

    Args:
        prepared: The statement.
        counts: The numbers of its records; ``truncations`` is the number of those that truncate.
        snapshot: What the transaction sees.
        tables: Lists the target's files, to find out whether there are any.
    """
    decisions = prepared.decisions
    if decisions.first is not None and _is_first_load(prepared, snapshot, tables):
        return FirstLoad(decisions.first, prepared.first_queries)
    if decisions.truncate is not None and counts["truncations"]:
        return Truncation(decisions.truncate, prepared.queries)
    return Join(decisions.join, prepared.queries, prepared.rules.keys)


def _is_first_load(prepared: PreparedCdc, snapshot: Snapshot, tables: TableRows) -> bool:
    """Whether the state table has no visible write, and a reader of the snapshot finds no files of
    rows in the target; files of delete events do not count."""
    if snapshot.write_ids[prepared.state.name].is_any_valid:
        return False
    listings, _ = tables.list_files(prepared.queries[0].table, snapshot)
    return not any(listing.data or listing.originals for listing in listings)
