"""PARTITIONS and PARTITION_KEY_VALS: reads, adds and drops partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from acidsql.acid.layout import partition_name
from acidsql.acid.table import Partition, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.embedded import catalog_history, compaction_rows, rows
from acidsql.metastore.embedded.schema import (
    PARTITION_KEY_VALS,
    PARTITION_KEYS,
    PARTITIONS,
)

Values = tuple[str | None, ...]


def read(connection: Connection, table_id: int) -> list[Partition]:
    """A table's partitions, sorted by values, NULL first."""
    found = (
        select(PARTITIONS.c.PART_ID, PARTITIONS.c.LOCATION, PARTITION_KEY_VALS.c.PART_KEY_VAL)
        .join(PARTITION_KEY_VALS)
        .where(PARTITIONS.c.TBL_ID == table_id)
        .order_by(PARTITIONS.c.PART_ID, PARTITION_KEY_VALS.c.INTEGER_IDX)
    )
    values: dict[tuple[int, str], list[str | None]] = {}
    for part_id, location, value in connection.execute(found):
        values.setdefault((part_id, location), []).append(value)
    made = [Partition(tuple(parts), location) for (_, location), parts in values.items()]
    return sorted(
        made, key=lambda made: [(value is not None, value or "") for value in made.values]
    )


def add(connection: Connection, added: Mapping[TableName, Sequence[Partition]]) -> None:
    """Add partitions; those that exist already are skipped.

    Raises:
        CatalogError: There is no such table, or it has another number of partition columns.
    """
    for name, new in added.items():
        table_id = rows.need_table(connection, name)
        keys, known = _keys(connection, table_id), _names(connection, table_id)
        for partition in new:
            part_name = _part_name(name, keys, partition.values)
            if part_name not in known:
                known.add(part_name)
                _insert(connection, table_id, part_name, partition)


def drop(
    connection: Connection, txn_id: int, dropped: Mapping[TableName, Sequence[Values]]
) -> None:
    """Delete partitions and their compaction entries; a partition that does not exist is no error.

    Raises as ``add``.
    """
    for name, gone in dropped.items():
        table_id = rows.need_table(connection, name)
        keys = _keys(connection, table_id)
        for values in gone:
            part_name = _part_name(name, keys, values)
            connection.execute(
                delete(PARTITIONS).where(
                    PARTITIONS.c.TBL_ID == table_id, PARTITIONS.c.PART_NAME == part_name
                )
            )
            compaction_rows.forget_partition(connection, name, part_name)
            catalog_history.note(connection, txn_id, name, part_name)


def _insert(connection: Connection, table_id: int, part_name: str, partition: Partition) -> None:
    part_id = rows.insert_one(
        connection, PARTITIONS, TBL_ID=table_id, PART_NAME=part_name, LOCATION=partition.location
    )
    connection.execute(
        insert(PARTITION_KEY_VALS),
        [
            # NULL and the empty string share one directory.
            {"PART_ID": part_id, "INTEGER_IDX": index, "PART_KEY_VAL": value or None}
            for index, value in enumerate(partition.values)
        ],
    )


def _part_name(name: TableName, keys: Sequence[str], values: Values) -> str:
    if not keys or len(keys) != len(values):
        raise CatalogError(
            f"The table '{name}' is partitioned by ({', '.join(keys)}); {values} does not fit.",
            condition="PARTITION_SPEC_MISMATCH",
            sqlstate="42000",
            relationName=name,
        )
    return partition_name(keys, values)


def _keys(connection: Connection, table_id: int) -> Sequence[str]:
    found = select(PARTITION_KEYS.c.PKEY_NAME).where(PARTITION_KEYS.c.TBL_ID == table_id)
    return connection.execute(found.order_by(PARTITION_KEYS.c.INTEGER_IDX)).scalars().all()


def _names(connection: Connection, table_id: int) -> set[str]:
    found = select(PARTITIONS.c.PART_NAME).where(PARTITIONS.c.TBL_ID == table_id)
    return set(connection.execute(found).scalars())
