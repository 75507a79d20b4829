"""Change data capture: the properties of its targets, and the table beside each target.

This *state table* keeps what the target cannot: the order value of each deleted key and, if the
target has no columns for order values, of each live key, too.
"""

from __future__ import annotations

from acidsql.acid.table import Table, TableName

# Declared with the target. Each takes the place of a clause of AUTO CDC.
KEYS = "acidsql.cdc.keys"
SEQUENCE_BY = "acidsql.cdc.sequence.by"
DELETE_WHEN = "acidsql.cdc.delete.when"
# Of the state table: the names of the target's columns that hold order values; "" if none do.
ORDER = "acidsql.cdc.order"

_SUFFIX = "__acidsql_cdc"


def state_name(target: TableName) -> TableName:
    """The name of the state table beside a target."""
    return TableName(target.database, f"{target.name}{_SUFFIX}")


def is_state_of(name: str, others: frozenset[str]) -> bool:
    """Whether a table's name is that of the state table of one of these others."""
    return name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX) in others


def is_state(table: Table) -> bool:
    """Whether a table is a state table, and does not just have the name of one."""
    return table.name.name.endswith(_SUFFIX) and ORDER in table.properties
