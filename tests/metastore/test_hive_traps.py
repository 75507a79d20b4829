"""Traps of a Hive Metastore's calls, by number, against a real one.

Each test shows the trap by a call of its own, then that the store does not step into it. Traps that
statements meet are in ``tests/dml/test_hive_metastore.py``.
"""

import shutil
import socket

import hive_metastore as servers
import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from acidsql.acid.layout import partition_name
from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.errors import CatalogError, MetastoreError
from acidsql.metastore.compaction_queue import (
    Compacted,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.interface import Commit, LockComponent, LockType, Operation, TxnType

T = TableName("default", "trapped")
BEHIND = TableName("default", "behind")
MANY = 60  # numbers of transactions that nobody has


@pytest.fixture
def connect(hive_metastore):
    """Open sessions on the server."""
    opened = []

    def again():
        opened.append(HiveMetastore(hive_metastore.url, list_names=lambda _: []))
        return opened[-1]

    yield again
    for one in opened:
        one.close()


@pytest.fixture
def store(connect):
    store = connect()
    store.create_table(small_table(store))
    yield store
    store.drop_table(T)


def small_table(store, name=T):
    acid = {"transactional": "true"}
    return Table(name, f"{store.warehouse}/{name.name}", (Column("a", "int"),), properties=acid)


def begin(store, txn_type=TxnType.DEFAULT):
    return store.open_txn(user="ann", host="h1", txn_type=txn_type)


def ended(store, txns):
    for one in txns:
        store.abort_txn(one)


def test_t7_a_database_is_asked_for_with_its_catalog(store):
    with pytest.raises(CatalogError):
        store.parts.server.call("get_database_req", hive.GetDatabaseRequest(name="default"))
    assert store.get_database("default").location == store.warehouse


def test_t9_after_a_refusal_without_a_word_the_next_call_has_a_new_connection(store):
    """The server closes the connection if a request lacks what it needs."""
    txn = begin(store)
    with pytest.raises(MetastoreError):
        store.parts.server.call("get_open_txns_req", hive.GetOpenTxnsRequest())
    store.heartbeat(txn)
    assert store.find(T).name == T
    ended(store, [txn])


def test_t10_numbers_that_nobody_has_are_open_for_snapshots_and_are_not_shown(
    store, hive_metastore
):
    """For a second after a gap, the server reports its numbers as open transactions, and cannot
    list open transactions."""
    first = begin(store)
    hive_metastore.query(f"ALTER TABLE TXNS ALTER COLUMN TXN_ID RESTART WITH {first + MANY}")
    last = begin(store)
    assert last == first + MANY
    nobodys = set(range(first + 1, last))
    assert nobodys <= set(store.valid_txns().open)
    with pytest.raises(MetastoreError):
        store.parts.server.client.call("get_open_txns_info", repeats=0)
    assert {first, last} <= {one.txn_id for one in store.show_txns()}
    assert not nobodys & {one.txn_id for one in store.show_txns()}
    ended(store, [first, last])


def test_t11_what_another_session_changed_in_between_is_not_lost(store, connect):
    """A table's struct is replaced as a whole. The server could compare a parameter first, but over
    Derby it then fails, even if the parameter is as expected. So the store compares nothing: each
    change reads the struct again, and callers hold the table's EXCLUSIVE lock."""
    other = connect()
    old = other.parts.raw_tables.need(T)
    store.alter_table(T, set_properties={"mine": "1"})
    for value in ("0", "1"):
        request = hive.AlterTableRequest(
            catName="hive", dbName=T.database, tableName=T.name, table=old,
            expectedParameterKey="mine", expectedParameterValue=value,
        )  # fmt: skip
        with pytest.raises((CatalogError, MetastoreError)):
            other.parts.server.call("alter_table_req", request)
    other.alter_table(T, set_properties={"yours": "2"})
    properties = store.find(T).properties
    assert (properties["mine"], properties["yours"]) == ("1", "2")


def test_t16_partitions_have_the_names_that_the_server_gives_them(store):
    """Its names have keys in lower case, and characters that Hive escapes; the letters of values
    stay as they are."""
    columns = (Column("K 1", "string"), Column("k2", "string"))
    made = Table(
        TableName("default", "named"), f"{store.warehouse}/named", (Column("a", "int"),), columns,
        properties={"transactional": "true"},
    )  # fmt: skip
    store.create_table(made)
    texts = [chr(number) for number in range(1, 128)] + ["A b", "ÄÖ", "%41", "a=b/c=d"]
    values = [(text, f"x{text}Y") for text in texts if text.strip()]
    txn = begin(store)
    partitions = [
        Partition(one, f"{made.location}/{partition_name(['k 1', 'k2'], one)}") for one in values
    ]
    store.commit_txn(txn, Commit(added_partitions={made.name: partitions}))
    names = store.parts.server.call("get_partition_names", "default", "named", -1)
    assert sorted(names) == sorted(partition_name(["K 1", "k2"], one) for one in values)
    assert sorted(one.values for one in store.partitions(made.name)) == sorted(values)
    store.drop_table(made.name)


def test_t15_an_entry_of_a_dead_worker_is_queued_again_by_acidsql(store, connect):
    """The server leaves it as ``working`` when its transaction is aborted. Others get it only after
    a day, or when a server starts on the host with whose name the worker's begins."""
    asked = store.compact(CompactionRequest(T, None, CompactionType.MAJOR, "h1-manual"))
    txn = begin(store, TxnType.COMPACTION)
    me = f"{socket.gethostname()}-17"
    taken = store.take_next(txn, me, only=asked.id)
    store.begin_compaction(taken.id, txn, 1)
    store.abort_txn(txn)
    state = {one.id: one for one in store.compactions()}[asked.id]
    assert (state.state, state.worker_id) == (CompactionState.WORKING, me)
    other = connect()
    again = other.compact(CompactionRequest(T, None, CompactionType.MAJOR, "h1-manual"))
    assert again.id != asked.id and again.state is CompactionState.INITIATED
    txn = begin(other, TxnType.COMPACTION)
    assert other.take_next(txn, me, only=again.id).id == again.id
    other.begin_compaction(again.id, txn, 1)
    other.commit_txn(txn, Commit(compacted=Compacted(again.id, 1, "")))


def test_a_rebalance_and_what_is_queued_behind_it_are_left_to_hives_workers(store):
    """The server gives the oldest entry, of any type."""
    rebalance = store.compact(CompactionRequest(T, None, CompactionType.REBALANCE, "h1-manual"))
    store.create_table(small_table(store, BEHIND))
    behind = store.compact(CompactionRequest(BEHIND, None, CompactionType.MAJOR, "h1-manual"))
    txn = begin(store, TxnType.COMPACTION)
    assert not store.has_work()
    for only in (None, rebalance.id, behind.id):
        assert store.take_next(txn, "h1-7", only=only) is None
    assert {one.state for one in store.compactions()} == {CompactionState.INITIATED}
    store.abort_compactions([rebalance.id])
    assert store.has_work()
    assert store.take_next(txn, "h1-7").id == behind.id
    ended(store, [txn])
    store.drop_table(BEHIND)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (CompactionType.MAJOR, {"table_type": "ICEBERG"}),
        (CompactionType.MAJOR, {}),
        (CompactionType.ABORT_TXN_CLEANUP, None),
    ],
)
def test_entries_of_other_engines_tables_are_left_to_hive(store, kind, parameters):
    """A worker that takes such an entry could only refuse it, and Hive would never do it."""
    foreign = T if parameters is None else BEHIND
    if parameters is not None:
        make_plain(store, BEHIND, parameters)
    entry = store.compact(CompactionRequest(foreign, None, kind, "h1-manual"))
    own = store.compact(CompactionRequest(T, None, CompactionType.MAJOR, "h1-manual"))
    txn = begin(store, TxnType.COMPACTION)
    assert not store.has_work()
    for only in (None, entry.id, own.id):
        assert store.take_next(txn, "h1-7", only=only) is None
    shown = {compaction.id: compaction for compaction in store.compactions()}
    assert (shown[entry.id].type, shown[entry.id].state) == (kind, CompactionState.INITIATED)
    store.abort_compactions([entry.id, own.id])
    ended(store, [txn])
    if parameters is not None:
        store.parts.server.call(
            "drop_table_req",
            hive.DropTableRequest(catalogName="hive", dbName="default", tableName=BEHIND.name),
        )


def make_plain(store, name, parameters):
    """Make an external table, which is none of acidsql's."""
    storage = hive.StorageDescriptor(
        cols=[hive.FieldSchema(name="a", type="int")],
        location=f"file:{store.warehouse}_outside/plain",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        numBuckets=-1, bucketCols=[], sortCols=[], parameters={},
        serdeInfo=hive.SerDeInfo(name="s", serializationLib="s", parameters={}),
    )  # fmt: skip
    table = hive.Table(
        tableName=name.name, dbName=name.database, owner="ann", createTime=0, lastAccessTime=0,
        retention=0, sd=storage, partitionKeys=[], tableType="EXTERNAL_TABLE", catName="hive",
        parameters={"EXTERNAL": "TRUE", **parameters},
    )  # fmt: skip
    store.parts.server.call("create_table_req", hive.CreateTableRequest(table=table))


@pytest.mark.parametrize(
    ("kind", "is_known", "conflicts"),
    [
        (CompactionType.REBALANCE, True, True),
        (CompactionType.MAJOR, True, False),
        (CompactionType.MAJOR, False, True),
    ],
)
def test_changed_rows_conflict_with_a_rebalance_which_has_no_write_id(
    store, monkeypatch, kind, is_known, conflicts
):
    """The row ids of an older snapshot would delete other rows, or none."""
    reader = begin(store)
    snapshot = store.valid_txns()
    worker = begin(store, TxnType.COMPACTION)
    monkeypatch.setattr(store.parts.server, "list_names", lambda _: [f"base_0000001_v{worker:07d}"])
    if is_known:
        store.compact(CompactionRequest(T, None, kind, "h1-manual"))
        taken = store.parts.server.call(
            "find_next_compact2", hive.FindNextCompactRequest(workerId="h1-7")
        ).ci
        store.parts.workers._taken_entries[taken.id] = taken
        store.begin_compaction(taken.id, worker, 1)
        store.parts.server.call("mark_compacted", taken)
    store.parts.server.call("commit_txn", hive.CommitTxnRequest(txnid=worker))
    for operation in (Operation.UPDATE, Operation.DELETE, Operation.INSERT):
        lock = LockComponent(LockType.EXCL_WRITE, T.database, T.name, None, operation)
        found = store.write_conflicts(reader, snapshot, [lock])
        assert bool(found) is (conflicts and operation is not Operation.INSERT)
    ended(store, [reader])


def test_t19_a_transaction_whose_number_was_lost_is_not_waited_for(store, connect):
    """If the reply to ``open_txns`` is lost, its transaction stays open until it times out. It has
    no locks, and hides no row that others commit."""
    lost = begin(connect())
    lock = LockComponent(LockType.EXCLUSIVE, T.database, T.name, None, Operation.INSERT)
    txn = begin(store)
    assert store.lock(txn, [lock]).state.value == "a"
    write_id = store.allocate_write_id(txn, T)
    store.record_partitions(txn, T, [""])
    store.commit_txn(txn)
    snapshot = store.valid_txns()
    assert lost in snapshot.open
    assert store.valid_write_ids(snapshot, [T])[T].is_valid(write_id)
    ended(store, [lost])


class Bare(servers.HiveMetastoreServer):
    """A server whose class path has no ``hive-exec``, and nothing that stands for it."""

    def classpath(self):
        return [self.work / "classes", *super().classpath()[1:]]


@pytest.mark.slow
def test_t20_a_server_without_hives_formats_refuses_tables_and_the_error_names_the_jar(
    tmp_path_factory,
):
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    work = tmp_path_factory.mktemp("hms")
    without = shutil.ignore_patterns("ql")
    shutil.copytree(servers.build() / "classes", work / "classes", ignore=without)
    server = Bare(work)
    store = HiveMetastore(server.url, list_names=lambda _: [])
    with pytest.raises(CatalogError, match="class path of the metastore.*hive-exec"):
        store.create_table(small_table(store))
    assert store.tables("default") == []
    store.close()
    server.close()
