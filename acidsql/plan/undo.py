"""Rewrites RESTORE and REVERT TRANSACTION: changes become the events that undo them.

The query reads a stand-in, a temporary view, with the changes. An inserted row becomes a delete
event, a deleted row becomes an insert event, which has a new row id.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.table import Table
from acidsql.errors import UnsupportedError
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import Collecting, EventQuery, Hints, partition_text
from acidsql.plan.standins.changes_to_undo import ChangesOfVersion, ChangesToUndo
from acidsql.plan.standins.query import StandIn, view_name
from acidsql.plan.values.sqltext import Text
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote
from acidsql.storage.reading.change_columns import CHANGE_TYPE, INSERT


def plan_undo(
    text: str, tables_and_changes: Sequence[tuple[Table, ChangesToUndo]]
) -> PreparedStatement:
    """Return the statement that undoes some changes: an event query for each table, in order, which
    reads the table's changes through a stand-in (a view). Nothing runs. The ``reverted_txn_id`` is
    the greatest transaction among the changes of REVERT (`ChangesOfVersion`); None for RESTORE.

    Raises:
        UnsupportedError: A table is insert-only.
    """
    standins = []
    queries = []
    reverted = {
        changes.txn_id for _, changes in tables_and_changes if isinstance(changes, ChangesOfVersion)
    }
    for table, changes in tables_and_changes:
        need_row_ids(table)
        standins.append(StandIn(view_name(), table, changes=changes))
        queries.append(_undo_query(text, table, standins[-1].view))
    return PreparedStatement(
        tuple(queries), tuple(standins), reverted_txn_id=max(reverted, default=None)
    )


def need_row_ids(table: Table) -> None:
    """Raise UnsupportedError if a table is insert-only: its rows have no row ids, so no changes of
    it are known."""
    if table.is_insert_only:
        raise UnsupportedError(
            f"{table.name} is an insert-only table: its rows have no row ids, so nothing tells "
            "which of them a version has changed.",
            condition="UNSUPPORTED_FEATURE.CHANGES",
        )


def _undo_query(text: str, table: Table, view: str) -> EventQuery:
    """Return the event query (mode MERGE) whose events undo the changes that ``view`` shows: each
    inserted row gives a delete event with its key, and each deleted row gives an insert event,
    without a key, under a new row id. ``text``: the user's statement. Nothing runs."""
    is_new = f"{CHANGE_TYPE} = '{INSERT}'"
    columns = [
        *(f"CASE WHEN {is_new} THEN {key} END AS {key}" for key in ew.KEYS),
        f"CASE WHEN {is_new} THEN {ew.DELETE} ELSE {ew.INSERT} END AS {ew.ACTION}",
        *(quote(column.name) for column in table.columns),
        *(
            partition_text(quote(column.name), column, ordinal)
            for ordinal, column in enumerate(table.partition_columns)
        ),
    ]
    query = Text(text, ()).raw("SELECT ").commas(columns).raw(f" FROM {view}")
    hints = Hints(collecting=Collecting.IF_SMALL)
    return EventQuery(table, query, ew.WriteMode.MERGE, hints=hints)
