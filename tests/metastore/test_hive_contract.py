"""The contract suite over a real Hive Metastore. A test is skipped if it needs what that lacks."""

from dataclasses import replace

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from contract import MetastoreContract
from over_hive import hive_lacks

from acidsql.acid.table import TableName
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive

FORGOTTEN = (
    "TXN_COMPONENTS", "COMPLETED_TXN_COMPONENTS", "TXN_TO_WRITE_ID", "NEXT_WRITE_ID", "HIVE_LOCKS",
    "WRITE_SET", "MIN_HISTORY_LEVEL", "COMPACTION_QUEUE", "COMPLETED_COMPACTIONS",
)  # fmt: skip
ADDED = {"transactional_properties", "bucketing_version", "orc.compress"}
WAREHOUSE = "/wh"  # where the contract puts its tables


@pytest.mark.rotating(4)  # the contract of locks, conflicts, transactions, streams: every day
class TestHive(MetastoreContract):
    lacks = hive_lacks() | {
        "locks of their transaction alone", "numbers from one", "limits of a session",
        "a clock for tests", "house keeping by sessions", "conflicts by records",
        "things just as they were given", "commits in one step",
        "who changed the catalog", "what happened under an old name",
        "entries for open transactions alone", "entries that are queued again as they were",
        "pools in letters of any case", "a second call of COMMIT",
    }  # fmt: skip

    server, end_txns = "hive_metastore", "UPDATE TXNS SET TXN_STATE = 'c' WHERE TXN_ID > 0"

    @pytest.fixture(autouse=True)
    def fresh(self, request, monkeypatch):
        """Nothing is open, no table is there, and no write id is taken; only numbers of
        transactions go on."""
        hive_metastore = request.getfixturevalue(self.server)
        self._server, real = hive_metastore, str(hive_metastore.warehouse)
        ours, theirs = convert.from_server_location, convert.to_server_location
        monkeypatch.setattr(
            convert, "from_server_location", lambda one: _moved(ours(one), real, WAREHOUSE)
        )
        monkeypatch.setattr(
            convert, "to_server_location", lambda one: theirs(_moved(one, WAREHOUSE, real))
        )
        yield
        hive_metastore.query(self.end_txns)
        store = self.open(None, None)
        for database in store.databases():
            for name in store.tables(database.name):
                store.parts.server.call("drop_table_req", _drop(database.name, name))
            for name in store.views(database.name):
                store.drop_view(TableName(database.name, name))
            if database.name != "default":
                store.parts.server.call("drop_database", database.name, True, True)
        store.close()
        for table in FORGOTTEN:
            hive_metastore.query(f"DELETE FROM {table}")

    def open(self, path, clock):
        store = HiveMetastore(self._server.url, list_names=lambda _: [])
        tables = store.parts.tables
        entry = tables._catalog_entry
        tables._catalog_entry = lambda *values: _as_given(entry(*values))
        store.parts.server.features = replace(store.features, warehouse=WAREHOUSE)
        return store


@pytest.mark.rare
class TestHive42(TestHive):
    """The same over a metastore of Hive 4.2.0."""

    server = "hive42_metastore"


class TestHive3(TestHive):
    """The same over a metastore of Hive 3.1.3."""

    lacks = TestHive.lacks | {
        "writers side by side", "can_work", "keeps_streams", "keeps_state_tables",
    }  # fmt: skip
    server, end_txns = "hive3_metastore", "DELETE FROM TXNS"


def _as_given(entry):
    """An entry of the catalog without the properties that the server adds."""
    if entry is None:
        return None
    kept = {key: value for key, value in entry.properties.items() if key not in ADDED}
    return replace(entry, properties=kept)


def _moved(location, source, target):
    return target + location[len(source) :] if location.startswith(source) else location


def _drop(database, name):
    return hive.DropTableRequest(
        catalogName="hive", dbName=database, tableName=name, deleteData=True, dropPartitions=True
    )
