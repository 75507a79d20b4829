"""Stand-ins: temporary views that take the places of tables and views of the metastore in a query.

A table's stand-in shows rows of its files. A view's stand-in shows its query over other stand-ins.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from acidsql.acid.table import Table, TableName
from acidsql.acid.virtual_columns import virtual_columns
from acidsql.plan.standins.changes_to_undo import ChangesToUndo
from acidsql.plan.standins.view_text import ViewQuery
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.time_travel import AsOf
from acidsql.sql.queries.references import Reference
from acidsql.sql.queries.table_changes import TableChanges
from acidsql.storage.reading.returned import ReturnedColumns

VIEW_PREFIX = "__acidsql_"
_unique = itertools.count()
_process = uuid.uuid4().hex[:8]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A view that takes the place of one reference to an ACID table.

    Attributes:
        view: The view's name, unique in the Spark session.
        table: The table, or view of the metastore, whose rows the view shows.
        virtual: The virtual columns that the view has, before the table's columns.
        is_target: The view has all columns of ``reading.scan``, because the statement changes the
            table.
        with_deleted: The view shows deleted rows, too.
        as_of: The view shows an older version. None: what the transaction sees.
        changes: The view shows changes of the table, and not its rows.
        returned: The view shows the rows that a statement has changed, and not the table's rows.
        enclosing_view: The view of the metastore whose query names the table. None: the statement
            names the table.
        query: The query of a view of the metastore, over stand-ins that come before this one.
        text_and_reference: The text that names the table in FROM, and the reference in it.
    """

    view: str
    table: Table
    virtual: tuple[str, ...] = ()
    is_target: bool = False
    as_of: AsOf | None = None
    changes: TableChanges | ChangesToUndo | None = None
    returned: ReturnedColumns | None = None
    enclosing_view: ViewQuery | None = None
    query: Text | None = None
    with_deleted: bool = False
    text_and_reference: tuple[str, Reference] | None = None


def new_standin(
    table: Table,
    virtual_names: Collection[str] = (),
    *,
    is_target: bool = False,
    as_of: AsOf | None = None,
    enclosing_view: ViewQuery | None = None,
    with_deleted: bool = False,
    text_and_reference: tuple[str, Reference] | None = None,
) -> StandIn:
    """Return a stand-in, a view that takes the place of a table in a query, under a new, unique
    name. Of the requested virtual columns it has those that the table has. Nothing is created in
    Spark."""
    virtual = virtual_columns(table, virtual_names)
    return StandIn(
        view_name(),
        table,
        virtual,
        is_target,
        as_of,
        enclosing_view=enclosing_view,
        with_deleted=with_deleted,
        text_and_reference=text_and_reference,
    )


def acid_tables(standins: Iterable[StandIn]) -> dict[TableName, Table]:
    """Return the ACID tables among those that stand-ins show, by name."""
    tables = (standin.table for standin in standins)
    return {table.name: table for table in tables if table.is_transactional}


def standins_in(sql: str, standins: Iterable[StandIn]) -> list[StandIn]:
    """Return the stand-ins whose names are in a text, and those that the queries of these views
    read in turn: each once, what a view reads before the view."""
    used: list[StandIn] = []
    for standin in reversed([*standins]):  # the stand-ins that a view reads come before the view's
        if standin.view in sql:
            used.insert(0, standin)
            sql += standin.query.sql if standin.query is not None else ""
    return used


def view_name() -> str:
    """Return a name for a temporary view, unique in the Spark session."""
    return f"{VIEW_PREFIX}{_process}_{next(_unique)}"
