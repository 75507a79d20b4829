"""The contract suite, run on an SQLite file."""

from contract import MetastoreContract

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url


class TestSqlite(MetastoreContract):
    def open(self, path, clock):
        return EmbeddedMetastore(sqlite_url(path / "store.db"), warehouse="/wh", clock=clock)
