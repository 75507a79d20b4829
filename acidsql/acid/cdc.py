"""Change data capture: the properties of its targets, and the tables beside each target.

The *state table* keeps what the target cannot: the order value of each deleted key and, if the
target has no columns for order values, of each live key, too. A row whose keys are NULL is the
*floor*: the order value of the newest truncation. All records up to the floor are stale.

The columns of a state table are the keys, then the order value, whether the key is deleted, and
since when. With SCD type 2 the values of the record follow: then the table has one row for each
record that the target cannot tell, and not one for each key.

In the *pending table* records wait for the rest of their source transaction, if a batch has cut it
in two. The records are texts, so any columns may wait.

A metastore may be unable to drop or rename a table together with those beside it, and others, who
do not know them, may drop and rename each alone. Then a *bond* tells which belong together: a text
that both tables have in their properties. It begins with the target's number, so it means nothing
in a copy of the target. The rest is new for each table beside it.
"""

from __future__ import annotations

from uuid import uuid4

from acidsql.acid.table import (
    FULL_ACID,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    Column,
    Table,
    TableName,
)

# Declared with the target. Each takes the place of a clause of AUTO CDC.
KEYS = "acidsql.cdc.keys"
SEQUENCE_BY = "acidsql.cdc.sequence.by"
DELETE_WHEN = "acidsql.cdc.delete.when"
TRUNCATE_WHEN = "acidsql.cdc.truncate.when"
# Declared with the target, too: how long its state table keeps deletes. Default: for ever.
TOMBSTONE_RETENTION = "acidsql.cdc.tombstone.retention"
# Of the state table: the names of the target's columns that hold order values; "" if none do.
ORDER = "acidsql.cdc.order"
# Of the state table of versions (SCD type 2): the type, and the number of keys, which come first.
SCD_TYPE = "acidsql.cdc.scd.type"
NUM_KEYS = "acidsql.cdc.num.keys"
# The columns of a target of SCD type 2: the order values that begin and end a version.
VERSION = ("__start_at", "__end_at")

# Of the pending table.
PENDING = "acidsql.cdc.pending"

# What bonds are called in properties, and in ``Table.bonds`` without this beginning. A target has
# one for each table beside it, which has one of its own.
BOND = "acidsql.cdc.bond."
_OWN = "target"

_SUFFIX, _PENDING_SUFFIX = _SUFFIXES = "__acidsql_cdc", "__acidsql_pending"


def state_name(target: TableName) -> TableName:
    """Return ``<target>__acidsql_cdc``, the name of the state table of a target. The table need not
    exist."""
    return TableName(target.database, f"{target.name}{_SUFFIX}")


def pending_name(target: TableName) -> TableName:
    """Return ``<target>__acidsql_pending``, the name of the pending table of a target. The table
    need not exist."""
    return TableName(target.database, f"{target.name}{_PENDING_SUFFIX}")


def cdc_table_names(target: TableName) -> tuple[TableName, TableName]:
    """Return the names of a target's state table and pending table, which are dropped and renamed
    with the target. The tables need not exist."""
    return state_name(target), pending_name(target)


def target_name(state_table: TableName) -> TableName | None:
    """Return the name of the target whose state or pending table would have this name, by the end
    of the name alone: no table need exist. None if the name has no such end, or nothing before
    it."""
    for suffix in _SUFFIXES:
        if state_table.name.endswith(suffix) and state_table.name != suffix:
            return TableName(state_table.database, state_table.name.removesuffix(suffix))
    return None


def is_cdc_table_name(name: str, targets: frozenset[str]) -> bool:
    """Whether a name is that of the state or pending table of one of ``targets``. All names are
    without a database."""
    target = target_name(TableName("", name))
    return target is not None and target.name in targets


def is_state(table: Table) -> bool:
    """Whether a table is a state table: its name ends as the name of one, and it has the property
    ``acidsql.cdc.order``. Its target need not exist."""
    return table.name.name.endswith(_SUFFIX) and ORDER in table.properties


def is_pending(table: Table) -> bool:
    """Whether a table is a pending table: its name ends as the name of one, and it has the property
    ``acidsql.cdc.pending``. Its target need not exist."""
    return table.name.name.endswith(_PENDING_SUFFIX) and PENDING in table.properties


def is_cdc_table(table: Table) -> bool:
    """Whether a table is a state table or a pending table."""
    return is_state(table) or is_pending(table)


def pending_table(target: TableName) -> Table:
    """Make the value of a target's pending table, and create nothing: a full-ACID table without a
    location, which is chosen when it is created. It has no partitions, and is marked by the
    property ``acidsql.cdc.pending``.

    A row is a record, or a commit point that came without one: then ``record`` is NULL. The columns
    are the application, the source's transaction, the record's place in it, whether the record is
    the last one, the number of records, and the record and its types, both as JSON.
    """
    columns = (
        Column("txn_app_id", "string", comment="The application, as in SHOW STREAMS"),
        Column("source_txn", "string", comment="The transaction of the source"),
        Column("place", "string", comment="The place of the record in it, if it is known"),
        Column("is_last", "boolean", comment="The record is the last one of its transaction"),
        Column("num_records", "bigint", comment="The number of records of the transaction"),
        Column("record", "string", comment="The columns of the record, as JSON of texts"),
        Column("schema", "string", comment="The types of the record, as JSON"),
    )
    properties = {TRANSACTIONAL: "true", TRANSACTIONAL_PROPERTIES: FULL_ACID, PENDING: "true"}
    return Table(
        pending_name(target), "", columns, properties=properties,
        comment=f"Records for {target.name} of source transactions that are not complete",
    )  # fmt: skip


def new_bond(target: Table) -> dict[str, str]:
    """Make a new bond, for a new table beside a target. Return it as the property of that table,
    ``acidsql.cdc.bond.target`` → the target's number, a blank and a random text; an empty dict if
    the target has no number."""
    return {f"{BOND}{_OWN}": f"{target.identity} {uuid4().hex}"} if target.identity else {}


def bond_key(state_table: TableName) -> str:
    """Return the key of the target's property with the bond to a table of this name:
    ``acidsql.cdc.bond.cdc`` for a state table, ``acidsql.cdc.bond.pending`` for a pending table."""
    return f"{BOND}{state_table.name.rpartition('__acidsql_')[2]}"


def bond_of(target: Table, state_table: TableName) -> str | None:
    """Return the bond that a target has with the table of this name. None if the target has none,
    or only a copy of another target's bond, which begins with another number."""
    bond = target.bonds.get(bond_key(state_table).removeprefix(BOND), "")
    return bond if bond.startswith(f"{target.identity} ") else None


def own_bond(state_table: Table) -> str:
    """Return the bond in a state or pending table's own properties; "" if the table has none."""
    return state_table.bonds.get(_OWN, "")


def belongs_to(state_table: Table, target: Table) -> bool:
    """Whether a state or pending table belongs to a target, and not to another or earlier target:
    both have the same bond, a text that begins with the target's number in the metastore.

    If the target has lost its bond or has not got it yet, any bond with its number will do. A state
    table without a bond belongs to no target that has a number. If no table has a number (the
    metastore needs none), there are no bonds, and the answer is always True.
    """
    bond = own_bond(state_table)
    expected_bond = bond_of(target, state_table.name) or bond
    return bond == expected_bond and bond.startswith(
        f"{target.identity} " if target.identity else ""
    )


def keys_of(state: Table) -> tuple[Column, ...]:
    """Return the key columns of a state table, which are its first columns: as many as its property
    ``acidsql.cdc.num.keys`` says, or all but the last three without the property."""
    count = int(state.properties.get(NUM_KEYS, len(state.columns) - 3))
    return state.columns[:count]


def state_columns(state: Table) -> tuple[Column, Column, Column]:
    """Return the three columns after the keys of a state table: the order value, whether the key is
    deleted, and since when."""
    sequence, deleted, at = state.columns[len(keys_of(state)) :][:3]
    return sequence, deleted, at


def values_of(state: Table) -> tuple[Column, ...]:
    """Return the columns of a state table after its keys and the three of ``state_columns``: the
    values of records. Only a state table of SCD type 2 has them; otherwise empty."""
    return state.columns[len(keys_of(state)) + 3 :]
