"""Views: rows of TBLS with a query and without a directory. ``Catalog`` describes the methods."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import Connection, delete, update

from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.embedded import tables
from acidsql.metastore.embedded.database import rows
from acidsql.metastore.embedded.database.engine import Store
from acidsql.metastore.embedded.database.schema import TBLS, VIRTUAL_VIEW
from acidsql.metastore.embedded.records import catalog_history


class EmbeddedViews:
    """The part of the ``Catalog`` about views."""

    _store: Store
    _write: Callable[[int | None], AbstractContextManager[Connection]]

    def views(self, database: str) -> list[str]:
        """Return the names of a database's views, sorted."""
        with self._store.read() as connection:
            return rows.table_names(connection, database, VIRTUAL_VIEW)

    def create_view(self, view: Table, *, replace: bool = False, txn_id: int | None = None) -> None:
        """Add a view, and note this for open snapshots. With ``replace`` it takes the place of a
        view of its name. Raise CatalogError if the name is that of a table, or without ``replace``
        of a view, or there is no such database."""
        with self._write(txn_id) as connection:
            db_id = tables.need_database(connection, view.name.database)
            old = rows.table_id(connection, view.name, VIRTUAL_VIEW)
            if replace and old is not None:
                connection.execute(delete(TBLS).where(TBLS.c.TBL_ID == old))
            tables.need_no_table(connection, view.name)
            rows.write_table(connection, db_id, view, first_write_id=1)
            catalog_history.note(connection, txn_id, view.name)

    def drop_view(self, name: TableName, *, txn_id: int | None = None) -> None:
        """Remove a view, and note this for open snapshots. Raise CatalogError if there is no such
        view."""
        with self._write(txn_id) as connection:
            drop(connection, name, txn_id)

    def rename_view(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """Change a view's name, and note both names for open snapshots. Raise CatalogError if there
        is no such view, no such database, or a table or view has the new name."""
        with self._write(txn_id) as connection:
            view_id = _need_view_id(connection, name)
            db_id = tables.need_database(connection, new_name.database)
            tables.need_no_table(connection, new_name)
            connection.execute(
                update(TBLS)
                .where(TBLS.c.TBL_ID == view_id)
                .values(DB_ID=db_id, TBL_NAME=new_name.name)
            )
            for changed in (name, new_name):
                catalog_history.note(connection, txn_id, changed)


def drop(connection: Connection, name: TableName, txn_id: int | None) -> None:
    """Remove a view, and note this for open snapshots. Raise CatalogError if there is none."""
    connection.execute(delete(TBLS).where(TBLS.c.TBL_ID == _need_view_id(connection, name)))
    catalog_history.note(connection, txn_id, name)


def _need_view_id(connection: Connection, name: TableName) -> int:
    """Return the TBL_ID of a view. Raise CatalogError if there is none."""
    view_id = rows.table_id(connection, name, VIRTUAL_VIEW)
    if view_id is None:
        raise CatalogError(f"There is no view '{name}'.", relationName=name)
    return view_id
