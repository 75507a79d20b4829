"""Changes of the catalog since a snapshot, by the notification log of a Hive Metastore."""

import base64
import gzip
import json
from dataclasses import replace

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from contract_base import Column, Table, TableName
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer

from acidsql.acid.table import Partition
from acidsql.errors import SnapshotTooOldError
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.notifications import LoggedChange, event_changes
from acidsql.metastore.interface import Commit, Database, RowChange

T, U = TableName("looked_at", "t"), TableName("looked_at", "u")


@pytest.fixture
def store(hive_metastore):
    store = HiveMetastore(hive_metastore.url, list_names=lambda _: [])
    store.create_database(Database(T.database, f"{store.warehouse}/{T.database}.db"))
    yield store
    store.drop_database(T.database, cascade=True)
    store.close()


def make(store, name=T):
    place = f"{store.warehouse}/{name.database}.db/{name.name}"
    store.create_table(
        Table(name, place, (Column("a", "int"),), (Column("p", "string"),),
              properties={"transactional": "true"})
    )  # fmt: skip
    return place


def look(store):
    txn = store.open_txn(user="u", host="h")
    store.watch_catalog(txn)
    snapshot = store.valid_txns(txn)
    return lambda name=T: [
        one.partition for one in store.catalog_changes(txn, snapshot, name)
    ]  # fmt: skip


def add_partition(store, place, value):
    txn = store.open_txn(user="u", host="h")
    store.commit_txn(txn, Commit(added_partitions={T: [Partition((value,), f"{place}/p={value}")]}))


def test_a_partition_that_goes_and_comes_again_is_told(store):
    """Two looks, before and after, see no difference."""
    place = make(store)
    add_partition(store, place, "a b")
    told = look(store)
    assert told() == []
    drops = store.open_txn(user="u", host="h")
    store.commit_txn(drops, Commit(dropped_partitions={T: [("a b",)]}))
    add_partition(store, place, "a b")
    assert told() == ["p=a b"]


def test_entries_that_the_server_has_deleted_are_missed(store, hive_metastore):
    make(store)
    told, later = look(store), look(store)
    store.drop_table(T)
    make(store)
    assert told() == [None, None]
    newest = "SELECT MAX(EVENT_ID) FROM NOTIFICATION_LOG"
    for which in ("= ({}) - 1", "= ({})"):
        assert told() == [None, None]  # it has read them
        hive_metastore.query(f"DELETE FROM NOTIFICATION_LOG WHERE EVENT_ID {which}".format(newest))
        with pytest.raises(SnapshotTooOldError, match="notification log"):
            later()


def test_without_a_log_what_was_seen_is_compared(store):
    place = make(store)
    add_partition(store, place, "1")
    store.parts.server.features = replace(store.features, logs_changes=False)
    first, second = look(store), look(store)
    assert first() == []
    drops = store.open_txn(user="u", host="h")
    store.commit_txn(drops, Commit(dropped_partitions={T: [("1",)]}))
    assert first() == ["p=1"]
    assert second() == []  # it did not look before
    store.drop_table(T)
    make(store)
    assert first() == second() == [None]


def test_a_lease_and_a_single_statement_do_not_ask(store, monkeypatch):
    make(store)
    txn = store.open_txn(user="u", host="h")
    snapshot = store.valid_txns(txn)
    monkeypatch.setattr(store.parts.server.client, "call", None)
    assert store.catalog_changes(txn, snapshot, T) == []


def test_an_insert_of_another_session_is_no_change_although_it_alters_statistics(store):
    place = make(store)
    add_partition(store, place, "1")
    store.create_table(replace(store.find(T), name=U, location=f"{place}2",
                               partition_columns=()))  # fmt: skip
    told, before = look(store), store.parts.history._last_entry()
    for table, partition in ((T, "p=1"), (U, "")):
        txn = store.open_txn(user="u", host="h")
        store.allocate_write_id(txn, table)
        store.commit_txn(txn, Commit(row_changes={table: {partition: RowChange(3, is_all=True)}}))
    assert store.parts.raw_tables.need(U).parameters["numRows"] == "3"
    assert store.parts.history._last_entry() == before + 2  # ALTER_PARTITION, ALTER_TABLE
    assert told() == told(U) == []


def test_a_client_may_write_names_in_capitals(store):
    make(store)
    told = look(store)
    raw = store.parts.raw_tables.need(T)
    raw.dbName, raw.tableName = T.database.upper(), T.name.upper()
    store.parts.raw_tables.alter(T, raw)
    assert told() == told(U) == []
    raw.tableName = U.name.upper()
    store.parts.raw_tables.alter(T, raw)
    assert told() == told(U) == [None]


# ── entries ──────────────────────────────────────────────────────────────────────────────────

RAW = hive.Table(
    dbName="d", tableName="t", partitionKeys=[hive.FieldSchema(name="p", type="int")],
    sd=hive.StorageDescriptor(cols=[hive.FieldSchema(name="a", type="int")], location="/wh/t"),
)  # fmt: skip


def as_json(struct):
    memory = TMemoryBuffer()
    struct.write(TJSONProtocol(memory))
    return memory.getvalue().decode()


def entry(kind, message, *, zipped=False, **fields):
    text = json.dumps(message)
    if zipped:
        text = base64.b64encode(gzip.compress(text.encode())).decode()
    known = {
        "catName": "hive", "dbName": "d", "tableName": "t",
        "messageFormat": "gzip(json-2.0)" if zipped else "json-0.2", **fields,
    }  # fmt: skip
    return hive.NotificationEvent(eventId=1, eventTime=0, eventType=kind, message=text, **known)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_partition_that_hive_renames_is_gone(zipped):
    before, after = (hive.Partition(values=[value]) for value in "12")
    message = {
        "tableObjJson": as_json(RAW),
        "partitionObjBeforeJson": as_json(before),
        "partitionObjAfterJson": as_json(after),
    }
    renamed = entry("ALTER_PARTITION", message, zipped=zipped)
    assert list(event_changes(renamed, "hive")) == [LoggedChange("d", "t", "p=1")]
    changed = entry("ALTER_PARTITION", message | {"partitionObjAfterJson": as_json(before)})
    assert list(event_changes(changed, "hive")) == []


@pytest.mark.parametrize("kind", ["ALTER_TABLE", "DROP_PARTITION", "ALTER_PARTITION"])
def test_an_entry_that_cannot_be_read_may_be_any_change(kind):
    (change,) = event_changes(entry(kind, {"new": "format"}), "hive")
    assert change.concerns(TableName("any", "table"))


def test_what_snapshots_do_not_mind_is_no_change():
    for kind in ("OPEN_TXN", "ADD_PARTITION", "INSERT", "ADD_NOTNULLCONSTRAINT", "ALLOC_WRITE_ID"):
        assert list(event_changes(entry(kind, {}), "hive")) == []
    assert list(event_changes(entry("DROP_TABLE", {}, catName="spark"), "hive")) == []


def test_a_database_takes_all_its_tables_along():
    (change,) = event_changes(entry("DROP_DATABASE", {}, tableName=None), "hive")
    assert change.concerns(TableName("d", "any")) and not change.concerns(TableName("e", "any"))


def test_names_are_compared_without_regard_to_case():
    other = hive.Table(dbName="D", tableName="U", partitionKeys=[], sd=RAW.sd)
    message = {"tableObjBeforeJson": as_json(RAW), "tableObjAfterJson": as_json(other)}
    renamed = entry("ALTER_TABLE", message, catName="HIVE", tableName="U")
    assert list(event_changes(renamed, "Hive")) == [LoggedChange("d", "t"), LoggedChange("d", "u")]
    other.tableName = "T"
    message["tableObjAfterJson"] = as_json(other)
    assert list(event_changes(entry("ALTER_TABLE", message), "hive")) == []
