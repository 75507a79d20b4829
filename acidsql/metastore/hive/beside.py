"""DROP and RENAME of tables that have others beside them (``acid.cdc``) in a Hive Metastore.

The server changes one table in a call. So a session may die between two of them, and Hive drops and
renames each table alone. The bonds of the tables tell afterwards what has happened. The caller has
locked all of these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from acidsql.acid import cdc
from acidsql.acid.table import TableName
from acidsql.errors import CatalogError
from acidsql.metastore.hive import convert
from acidsql.metastore.hive.alterations import HiveAlterations
from acidsql.metastore.hive.idl import hive


class HiveBeside(HiveAlterations):
    """``Catalog.drop_table`` and ``rename_table`` of a table and those beside it."""

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> None:
        """The tables beside it go last: if the table itself cannot be dropped, nothing is lost."""
        found = self._seen([name, *cdc.cdc_table_names(name)])
        beside = _beside(found, name)
        self._unbind(name, txn_id)
        if name in found:
            self._drop_found(name, txn_id, delete_data)
        else:
            super().drop_table(name, txn_id=txn_id, delete_data=delete_data)
        for one in beside:
            self._drop_found(one, None, delete_data)

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """The tables beside it go first: so the same call, after a crash, goes on."""
        found = self._seen([name, *cdc.cdc_table_names(name)])
        beside = _beside(found, name)
        pairs = zip(cdc.cdc_table_names(name), cdc.cdc_table_names(new_name), strict=True)
        moved = list[tuple[TableName, TableName]]()
        self._unbind(name, txn_id)
        try:
            for old, new in pairs:
                if old in beside:
                    self._rename_found(found[old], new, txn_id)
                    moved.append((old, new))
            if name in found:
                self._rename_found(found[name], new_name, txn_id)
            else:
                super().rename_table(name, new_name, txn_id=txn_id)
        except CatalogError:  # the server has refused
            for old, new in moved:
                with suppress(CatalogError):
                    super().rename_table(new, old)
            raise

    def _unbind(self, name: TableName, txn_id: int | None) -> None:
        """Take the bond with a table beside it from its target: who drops or renames such a table
        by its name means it."""
        if (target_name := cdc.target_name(name)) is None:
            return
        found = self._seen([target_name, name])
        if name in _beside(found, target_name):
            self._need_open(txn_id)
            raw = found[target_name]
            convert.changed(raw, {}, [cdc.bond_key(name)])
            self._alter(target_name, raw)

    def _seen(self, names: Sequence[TableName]) -> dict[TableName, Any]:
        """The server's structs of those of these tables of one database that are ACID tables."""
        raws = self._raws_of(names[0].database, [one.name for one in names])
        return {
            TableName(raw.dbName, raw.tableName): raw
            for raw in raws
            if convert.is_transactional(raw)
        }


def _beside(found: Mapping[TableName, Any], name: TableName) -> list[TableName]:
    """Those of the tables found that are beside this one, and do not only have such names."""
    tables = [convert.table_of(raw, hive.SQLAllTableConstraints()) for raw in found.values()]
    target = next((one for one in tables if one.name == name), None)
    if target is None:
        return []
    return [one.name for one in tables if cdc.is_cdc_table(one) and cdc.belongs_to(one, target)]
