"""Every kind of database in which the embedded metastore can be."""

import functools
import tempfile
from pathlib import Path

import servers
from sqlalchemy import delete, insert, select

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.embedded.database.schema import metadata

# The kinds that exist here. ``test_embedded_contract`` says once which are missing.
KINDS = ["sqlite", *(kind for kind in servers.KINDS if not servers.missing(kind))]


def store_url(kind, path):
    """The URL of a new store of this kind; one for each directory."""
    if kind == "sqlite":
        return sqlite_url(path / "store.db")
    return servers.server(kind).url(path)


def open_store(kind, path, **keywords):
    return EmbeddedMetastore(store_url(kind, path), warehouse="/wh", **keywords)


def open_recycled(kind, path, **keywords):
    """Open a store that is like new for each new directory. It is reused, because to make 26 tables
    takes longer than most tests."""
    if kind != "sqlite":
        return EmbeddedMetastore(_recycled(kind).url(path), warehouse="/wh", **keywords)
    if not (path / "store.db").exists():
        (path / "store.db").write_bytes(_ready_made())
    return open_store(kind, path, **keywords)


@functools.cache
def _ready_made():
    with tempfile.TemporaryDirectory() as directory:
        open_store("sqlite", Path(directory)).close()
        return Path(directory, "store.db").read_bytes()


@functools.cache
def _recycled(kind):
    return Recycled(kind)


class Recycled:
    """One store on a server that many tests use, one after the other."""

    def __init__(self, kind):
        self._url, self._path = servers.server(kind).url(self), None
        self._store = EmbeddedMetastore(self._url, warehouse="/wh")._store
        self._tables = metadata.sorted_tables
        with self._store.read() as connection:
            found = [connection.execute(select(table)).all() for table in self._tables]
        self._rows = [[row._asdict() for row in rows] for rows in found]

    def url(self, path):
        if path != self._path:
            self._path = path
            self._empty()
        return self._url

    def _empty(self):
        """Restore the rows with which the store was made."""
        with self._store.write() as connection:
            for table in reversed(self._tables):
                connection.execute(delete(table))
            for table, rows in zip(self._tables, self._rows, strict=True):
                if rows:
                    connection.execute(insert(table), rows)
