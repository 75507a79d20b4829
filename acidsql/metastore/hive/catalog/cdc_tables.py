"""DROP and RENAME of a table with its tables of AUTO CDC (``acid.cdc``) in a Hive Metastore.

The server changes one table in a call. So a session may die between two calls, and Hive itself
drops and renames each table alone. The bonds of the tables show afterwards what has happened. The
caller has locked all of these tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from acidsql.acid import cdc
from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, CatalogError
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.raw_tables import RawTables


class HiveCdcTables:
    """``Catalog.drop_table`` and ``rename_table`` of a table with its tables of AUTO CDC."""

    def __init__(self, raw_tables: RawTables, numbers: HiveNumbers, tables: HiveTables) -> None:
        self._raw_tables, self._numbers, self._tables = raw_tables, numbers, tables

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> None:
        """Drop a table, then its tables of AUTO CDC; with ``delete_data`` their files, too. If it
        is itself a table of AUTO CDC, its target forgets it first. Raise CatalogError if there is
        no such table, or the name is that of a view.

        If the table itself cannot be dropped, its tables of AUTO CDC stay.
        """
        raw_tables = self._find_acid_tables([name, *cdc.cdc_table_names(name)])
        cdc_tables = _cdc_tables_of(raw_tables, name)
        with self._unbound(name, txn_id):
            if name in raw_tables:
                self._tables.drop_existing(name, txn_id, delete_data)
            else:
                self._tables.drop_table(name, txn_id=txn_id, delete_data=delete_data)
        for cdc_table in cdc_tables:
            self._tables.drop_existing(cdc_table, None, delete_data)

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """Rename the tables of AUTO CDC of a table, then the table. So the same call goes on after
        a crash. If the server refuses, they get their old names back. If the table is itself one of
        AUTO CDC, its target forgets it first, unless the server refuses.

        Raises:
            CatalogError: There is no such table or database, or the new name is taken.
        """
        raw_tables = self._find_acid_tables([name, *cdc.cdc_table_names(name)])
        cdc_tables = _cdc_tables_of(raw_tables, name)
        pairs = zip(cdc.cdc_table_names(name), cdc.cdc_table_names(new_name), strict=True)
        moved = list[tuple[TableName, TableName]]()
        try:
            with self._unbound(name, txn_id):
                for old, new in pairs:
                    if old in cdc_tables:
                        self._tables.rename_existing(raw_tables[old], new, txn_id)
                        moved.append((old, new))
                if name in raw_tables:
                    self._tables.rename_existing(raw_tables[name], new_name, txn_id)
                else:
                    self._tables.rename_table(name, new_name, txn_id=txn_id)
        except CatalogError:  # the server has refused
            for old, new in moved:
                with suppress(CatalogError):
                    self._tables.rename_table(new, old)
            raise

    @contextmanager
    def _unbound(self, name: TableName, txn_id: int | None) -> Iterator[None]:
        """If a table is a table of AUTO CDC, remove its bond from its target, the property by which
        the target knows it, before the block drops or renames it; otherwise do nothing. If the
        server refuses the block's change, the target gets the bond back.

        A user who drops or renames such a table by its own name wants to part it from the target.

        Raises:
            TxnAbortedError: The transaction has ended (or NoSuchTxnError).
        """
        if (target_name := cdc.target_name(name)) is None:
            yield
            return
        raw_tables = self._find_acid_tables([target_name, name])
        if name not in _cdc_tables_of(raw_tables, target_name):
            yield
            return
        self._numbers.need_open(txn_id)
        target, key = raw_tables[target_name], cdc.bond_key(name)
        bond = target.parameters.get(key)
        self._change_property(target_name, target, key, None)
        try:
            yield
        except CatalogError:
            with suppress(AcidSqlError):  # the refusal is more important
                self._change_property(target_name, self._raw_tables.need(target_name), key, bond)
            raise

    def _change_property(self, name: TableName, raw: Any, key: str, value: str | None) -> None:
        """Set a property of a table, or remove it (None). ``raw``: the server's struct."""
        set_properties = {} if value is None else {key: value}
        convert.change_properties(raw, set_properties, [key] if value is None else [])
        self._raw_tables.alter(name, raw)

    def _find_acid_tables(self, names: Sequence[TableName]) -> dict[TableName, Any]:
        """Return those of these names, all of one database, that are ACID tables: name → the
        server's struct."""
        raws = self._raw_tables.named_tables(names[0].database, [name.name for name in names])
        return {
            TableName(raw.dbName, raw.tableName): raw
            for raw in raws
            if convert.is_transactional(raw)
        }


def _cdc_tables_of(raw_tables: Mapping[TableName, Any], name: TableName) -> list[TableName]:
    """Return the names of those of the tables that are tables of AUTO CDC of the target ``name``;
    none if the target is not among the tables.

    The name of a table alone does not make it one: its bond must fit the target, too
    (``cdc.belongs_to``).
    """
    tables = [convert.table_of(raw, hive.SQLAllTableConstraints()) for raw in raw_tables.values()]
    target = next((table for table in tables if table.name == name), None)
    if target is None:
        return []
    return [
        table.name for table in tables if cdc.is_cdc_table(table) and cdc.belongs_to(table, target)
    ]
