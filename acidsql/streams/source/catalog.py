"""What a stream and a batch of a table ask the metastore's catalog."""

from __future__ import annotations

from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.interface import Metastore
from acidsql.suggestions import names_question


def partition_names(store: Metastore, table: Table) -> list[str]:
    """Return the names of the table's partitions, like ``p1=a/p2=1``; [""] for an unpartitioned
    table."""
    if not table.partition_columns:
        return [""]
    return table.directory_names(store.partitions(table.name))


def missing_table_error(store: Metastore, name: TableName) -> CatalogError:
    """Return the error that there is no table of a name, with similar names of the database."""
    hint = names_question(name.name, store.tables(name.database))
    return CatalogError(f"There is no table '{name}'.{hint}", relationName=name)
