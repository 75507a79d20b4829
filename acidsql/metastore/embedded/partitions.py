"""PARTITIONS and PARTITION_KEY_VALS: reads, adds and drops partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from acidsql.acid.layout import partition_name
from acidsql.acid.table import Partition, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.embedded.database import rows
from acidsql.metastore.embedded.database.schema import (
    PARTITION_KEY_VALS,
    PARTITION_KEYS,
    PARTITIONS,
)
from acidsql.metastore.embedded.records import catalog_history, compaction_rows

PartitionValues = tuple[str | None, ...]
_NAMES_AT_ONCE = 500  # SQLite before 3.32 takes at most 999 parameters


def read(connection: Connection, table_id: int) -> list[Partition]:
    """Return a table's partitions, sorted by values, NULL first; none if it is unpartitioned."""
    query = (
        select(PARTITIONS.c.PART_ID, PARTITIONS.c.LOCATION, PARTITION_KEY_VALS.c.PART_KEY_VAL)
        .join(PARTITION_KEY_VALS)
        .where(PARTITIONS.c.TBL_ID == table_id)
        .order_by(PARTITIONS.c.PART_ID, PARTITION_KEY_VALS.c.INTEGER_IDX)
    )
    values: dict[tuple[int, str], list[str | None]] = {}
    for part_id, location, value in connection.execute(query):
        values.setdefault((part_id, location), []).append(value)
    partitions = [Partition(tuple(parts), location) for (_, location), parts in values.items()]
    return sorted(
        partitions,
        key=lambda partition: [(value is not None, value or "") for value in partition.values],
    )


def add(connection: Connection, added: Mapping[TableName, Sequence[Partition]]) -> None:
    """Insert the rows of partitions into the catalog; those that exist already are skipped. No
    directory is made.

    Raises:
        CatalogError: There is no such table, or it has another number of partition columns.
    """
    for name, partitions in added.items():
        table_id = rows.need_table(connection, name)
        keys = _partition_column_names(connection, table_id)
        named = {_name_of_partition(name, keys, added.values): added for added in partitions}
        existing_ids = _partition_ids(connection, table_id, list(named))
        _insert_partitions(
            connection, table_id, {n: p for n, p in named.items() if n not in existing_ids}
        )


def drop(
    connection: Connection, txn_id: int, dropped: Mapping[TableName, Sequence[PartitionValues]]
) -> None:
    """Delete the rows of partitions and of their compactions, and note the drop for open snapshots
    (``catalog_history``). A partition that does not exist is no error, and is noted, too. No file
    is deleted.

    Raises:
        CatalogError: There is no such table, or it has another number of partition columns.
    """
    for name, dropped_values in dropped.items():
        table_id = rows.need_table(connection, name)
        keys = _partition_column_names(connection, table_id)
        for values in dropped_values:
            part_name = _name_of_partition(name, keys, values)
            connection.execute(
                delete(PARTITIONS).where(
                    PARTITIONS.c.TBL_ID == table_id, PARTITIONS.c.PART_NAME == part_name
                )
            )
            compaction_rows.forget_partition(connection, name, part_name)
            catalog_history.note(connection, txn_id, name, part_name)


def _insert_partitions(connection: Connection, table_id: int, new: Mapping[str, Partition]) -> None:
    """Insert the rows of partitions (name → partition) that must not exist yet, with their values;
    the empty text becomes NULL. Without partitions do nothing."""
    if not new:
        return
    connection.execute(
        insert(PARTITIONS),
        [{"TBL_ID": table_id, "PART_NAME": n, "LOCATION": p.location} for n, p in new.items()],
    )
    ids = _partition_ids(connection, table_id, list(new))
    connection.execute(
        insert(PARTITION_KEY_VALS),
        [
            # NULL and the empty string share one directory.
            {"PART_ID": ids[name], "INTEGER_IDX": index, "PART_KEY_VAL": value or None}
            for name, partition in new.items()
            for index, value in enumerate(partition.values)
        ],
    )


def _name_of_partition(name: TableName, keys: Sequence[str], values: PartitionValues) -> str:
    """Return the name ``p1=a/p2=1``. Raise CatalogError if there are more or fewer values than
    partition columns, or the table has none. Types are not looked at."""
    if not keys or len(keys) != len(values):
        raise CatalogError(
            f"The table '{name}' is partitioned by ({', '.join(keys)}); {values} does not fit.",
            condition="PARTITION_SPEC_MISMATCH",
            sqlstate="42000",
            relationName=name,
        )
    return partition_name(keys, values)


def _partition_column_names(connection: Connection, table_id: int) -> Sequence[str]:
    """Read the names of a table's partition columns, in order."""
    query = select(PARTITION_KEYS.c.PKEY_NAME).where(PARTITION_KEYS.c.TBL_ID == table_id)
    return connection.execute(query.order_by(PARTITION_KEYS.c.INTEGER_IDX)).scalars().all()


def _partition_ids(connection: Connection, table_id: int, names: Sequence[str]) -> dict[str, int]:
    """Return name → PART_ID of those of these partitions that exist; the others are left out."""
    ids_by_name: dict[str, int] = {}
    for start in range(0, len(names), _NAMES_AT_ONCE):
        query = select(PARTITIONS.c.PART_NAME, PARTITIONS.c.PART_ID).where(
            PARTITIONS.c.TBL_ID == table_id,
            PARTITIONS.c.PART_NAME.in_(names[start : start + _NAMES_AT_ONCE]),
        )
        ids_by_name.update((name, part_id) for name, part_id in connection.execute(query))
    return ids_by_name
