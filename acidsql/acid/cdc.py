"""Change data capture: the properties of its targets, and the table beside each target.

This *state table* keeps what the target cannot: the order value of each deleted key and, if the
target has no columns for order values, of each live key, too. A row whose keys are NULL is the
*floor*: the order value of the newest truncation. All records up to the floor are stale.

The columns of a state table are the keys, then the order value, whether the key is deleted, and
since when. With SCD type 2 the values of the record follow: then the table has one row for each
record that the target cannot tell, and not one for each key.
"""

from __future__ import annotations

from acidsql.acid.table import Column, Table, TableName

# Declared with the target. Each takes the place of a clause of AUTO CDC.
KEYS = "acidsql.cdc.keys"
SEQUENCE_BY = "acidsql.cdc.sequence.by"
DELETE_WHEN = "acidsql.cdc.delete.when"
TRUNCATE_WHEN = "acidsql.cdc.truncate.when"
# Of the state table: the names of the target's columns that hold order values; "" if none do.
ORDER = "acidsql.cdc.order"
# Of the state table of versions (SCD type 2): the type, and the number of keys, which come first.
SCD_TYPE = "acidsql.cdc.scd.type"
NUM_KEYS = "acidsql.cdc.num.keys"
# The columns of a target of SCD type 2: the order values that begin and end a version.
VERSION = ("__start_at", "__end_at")

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


def keys_of(state: Table) -> tuple[Column, ...]:
    """The keys of a state table."""
    count = int(state.properties.get(NUM_KEYS, len(state.columns) - 3))
    return state.columns[:count]


def state_columns(state: Table) -> tuple[Column, Column, Column]:
    """The order value, whether the key is deleted, and since when."""
    sequence, deleted, at = state.columns[len(keys_of(state)) :][:3]
    return sequence, deleted, at


def values_of(state: Table) -> tuple[Column, ...]:
    """The columns of the records of a state table of versions; else none."""
    return state.columns[len(keys_of(state)) + 3 :]
