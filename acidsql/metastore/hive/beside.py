"""DROP and RENAME of tables that have others beside them (``acid.cdc``) in a Hive Metastore.

The server changes one table in a call. So a session may die between two of them, and Hive drops and
renames each table alone. The bonds of the tables tell afterwards what has happened. The caller has
locked all of these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from acidsql.acid import cdc
from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.hive import convert
from acidsql.metastore.hive.catalog import HiveCatalog
from acidsql.metastore.hive.idl import hive


class HiveBeside(HiveCatalog):
    """``Catalog.drop_table`` and ``rename_table`` of a table and those beside it."""

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> None:
        """The tables beside it go last: if the table itself cannot be dropped, nothing is lost."""
        beside = self._beside(name)
        self._unbind(name, txn_id)
        super().drop_table(name, txn_id=txn_id, delete_data=delete_data)
        for one in beside:
            super().drop_table(one, delete_data=delete_data)

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """The tables beside it go first: so the same call, after a crash, goes on."""
        beside = self._beside(name)
        pairs = zip(cdc.names_beside(name), cdc.names_beside(new_name), strict=True)
        moved = list[tuple[TableName, TableName]]()
        self._unbind(name, txn_id)
        try:
            for old, new in pairs:
                if old in beside:
                    super().rename_table(old, new, txn_id=txn_id)
                    moved.append((old, new))
            super().rename_table(name, new_name, txn_id=txn_id)
        except CatalogError:  # the server has refused
            for old, new in moved:
                with suppress(CatalogError):
                    super().rename_table(new, old)
            raise

    def _beside(self, name: TableName) -> list[TableName]:
        """The tables beside this one, without those that only have such names."""
        found = self._seen([name, *cdc.names_beside(name)])
        if (target := found.pop(name, None)) is None:
            return []
        return [one.name for one in found.values() if _is_beside(one, target)]

    def _unbind(self, name: TableName, txn_id: int | None) -> None:
        """Take the bond with a table beside it from its target: who drops or renames such a table
        by its name means it."""
        if (target_name := cdc.target_name(name)) is None:
            return
        found = self._seen([target_name, name])
        if len(found) == 2 and _is_beside(found[name], found[target_name]):
            self._need_open(txn_id)
            raw = self._need_raw(target_name)
            convert.changed(raw, {}, [cdc.bond_key(name)])
            self._alter(target_name, raw)

    def _seen(self, names: Sequence[TableName]) -> dict[TableName, Table]:
        """Those of these tables of one database that are ACID tables, without their constraints."""
        raws = self._raws_of(names[0].database, [one.name for one in names])
        tables = (
            convert.table_of(raw, hive.SQLAllTableConstraints())
            for raw in raws
            if convert.is_transactional(raw)
        )
        return {table.name: table for table in tables}


def _is_beside(one: Table, target: Table) -> bool:
    return cdc.is_beside(one) and cdc.belongs(one, target)
