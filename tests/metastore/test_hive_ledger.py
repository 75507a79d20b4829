"""The ledger of streams in a real Hive Metastore: what its contract does not say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from contract_base import begin

from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import CatalogError, MetastoreError, StreamError
from acidsql.metastore.hive import commit, commit_call, streams
from acidsql.metastore.hive.catalog.ledger import DATABASE
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.interface import Commit, Database, TxnState
from acidsql.metastore.streams import Batch, NextBatch


@pytest.fixture
def store(hive_metastore):
    store = HiveMetastore(hive_metastore.url, list_names=lambda _: [])
    yield store
    for app_id in {entry.batch.app_id for entry in store.streams()}:
        store.forget_stream(app_id)
    store.close()


ACID = "(a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
BATCH = Batch("app", 0, "", "query", "run")


def note(store, batch, after=None):
    txn = begin(store)
    try:
        store.commit_txn(txn, Commit(batch=NextBatch(batch, after)))
    except StreamError:
        store.abort_txn(txn)
        return False
    return True


def test_of_many_commits_of_one_batch_one_is_made(store):
    last = None
    for version in range(3):
        batch = replace(BATCH, version=version)
        runs = [replace(batch, run_id=f"run {number}") for number in range(4)]
        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(lambda one, last=last: note(store, one, last), runs))
        assert done.count(True) == 1
        (entry,) = store.streams()
        assert entry.batch == runs[done.index(True)]
        last = entry.batch


def test_batches_of_many_streams_do_not_meet(store):
    def run(app_id):
        last = None
        for version in range(3):
            batch = replace(BATCH, app_id=app_id, version=version)
            assert note(store, batch, last)
            last = batch

    names = ["a", "A", "ä", "a\n", "🦆", "a" * 250]
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(run, names))
    assert {(e.batch.app_id, e.batch.version) for e in store.streams()} == {(n, 2) for n in names}
    assert store.forget_stream("a") == 1
    assert store.stream("A", "").batch.version == 2


def test_a_commit_whose_reply_is_lost_notes_its_batch_once(store, monkeypatch):
    call, lost = store.parts.server.client.call, ["commit_txn"]

    def loses_a_reply(name, *values, **options):
        answer = call(name, *values, **options)
        if name in lost:
            lost.remove(name)
            raise MetastoreError("the reply was lost")
        return answer

    monkeypatch.setattr(store.parts.server.client, "call", loses_a_reply)
    assert note(store, BATCH) and not lost
    (entry,) = store.streams()
    assert entry.batch == BATCH
    assert not note(store, BATCH)


def test_a_failed_creation_of_an_entry_leaves_an_empty_one_that_the_next_commit_fills(
    store, monkeypatch
):
    monkeypatch.setattr(commit, "send_commit", lambda *_: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        note(store, BATCH)  # the process dies after it has made the view
    monkeypatch.undo()
    for one in store.show_txns():
        store.abort_txn(one.txn_id)
    assert len(store.views(DATABASE)) == 1 and store.streams() == []
    assert store.stream("app", "") is None
    assert note(store, BATCH)
    assert store.stream("app", "").batch == BATCH


def test_a_run_that_was_killed_while_it_took_over_is_ended_by_the_next_one(store, monkeypatch):
    assert note(store, BATCH)
    with monkeypatch.context() as killed:
        killed.setattr(streams, "send_commit", lambda *_: (_ for _ in ()).throw(SystemExit))
        killed.setattr(store.parts.server, "end_number", lambda _: None)
        with pytest.raises(SystemExit):
            store.take_over_stream(replace(BATCH, run_id="killed"), BATCH)
    (left,) = store.show_locks()
    new = replace(BATCH, run_id="new")
    assert store.end_other_runs(new) == [left.txn_id]
    store.take_over_stream(new, BATCH)
    assert store.stream("app", "").batch == new


def test_who_was_killed_while_it_forgot_a_stream_is_ended_by_the_next_run(store, monkeypatch):
    assert note(store, BATCH)
    with monkeypatch.context() as killed:
        killed.setattr(
            store.parts.views, "drop_view", lambda *_, **__: (_ for _ in ()).throw(SystemExit)
        )
        killed.setattr(store.parts.server, "end_number", lambda _: None)
        with pytest.raises(SystemExit):
            store.forget_stream("app")
    (left,) = store.show_locks()
    new = replace(BATCH, run_id="new")
    assert store.end_other_runs(new) == [left.txn_id]
    store.take_over_stream(new, BATCH)


def test_a_new_stream_takes_the_entries_about_dropped_tables_away(store, hive_metastore):
    store.create_database(Database("noted", f"{hive_metastore.warehouse}/noted.db"))
    names = [TableName("noted", name) for name in ("a", "b", "c")]
    for one in names:
        location, acid = (
            f"{hive_metastore.warehouse}/noted.db/{one.name}",
            {"transactional": "true"},
        )
        store.create_table(Table(one, location, (Column("n", "int"),), properties=acid))
        assert note(store, replace(BATCH, sink=str(one)))
    store.drop_table(names[0])
    store.rename_table(names[1], TableName("noted", "z"))
    assert len(store.views(DATABASE)) == 3
    assert note(store, replace(BATCH, app_id="new"))
    assert len(store.views(DATABASE)) == 3
    assert [one.batch.sink for one in store.streams()] == ["noted.c", "noted.z", ""]

    (view,) = [
        one.view for one in store.parts.ledger.entries() if one.entry.batch.sink == "noted.c"
    ]
    raw = store.parts.raw_tables.find(view)
    raw.owner = "another"  # who may see tables that this user may not see
    store.parts.raw_tables.alter(view, raw)
    store.drop_database("noted", cascade=True)
    assert note(store, replace(BATCH, app_id="newer"))
    assert len(store.views(DATABASE)) == 3 and store.parts.raw_tables.find(view) is not None
    assert [one.batch.app_id for one in store.streams()] == ["new", "newer"]
    store.drop_view(view)


def test_an_entry_that_somebody_drops_in_the_moment_of_a_commit_fails_the_commit(
    store, monkeypatch
):
    assert note(store, BATCH)
    (view,) = store.views(DATABASE)
    send = commit.send_commit

    def too_late(*values):
        store.drop_view(TableName(DATABASE, view))
        send(*values)

    monkeypatch.setattr(commit_call, "_PAUSES_S", ())
    txn = begin(store)
    with monkeypatch.context() as dropped:
        dropped.setattr(commit, "send_commit", too_late)
        with pytest.raises(MetastoreError):
            store.commit_txn(txn, Commit(batch=NextBatch(replace(BATCH, version=1), BATCH)))
    assert store.txn_state(txn) is TxnState.OPEN and store.streams() == []
    store.commit_txn(txn, Commit(batch=NextBatch(replace(BATCH, version=1), None)))
    assert store.stream("app", "").batch.version == 1


def test_a_server_may_leave_out_empty_properties(store):
    """A server on Oracle does, because Oracle has no empty texts."""
    assert note(store, BATCH)
    (view,) = store.views(DATABASE)
    raw = store.parts.raw_tables.find(TableName(DATABASE, view))
    del raw.parameters["acidsql.table"]
    store.parts.raw_tables.alter(TableName(DATABASE, view), raw)
    assert [one.batch for one in store.streams()] == [BATCH]
    assert store.forget_stream("app") == 1


def test_a_user_who_may_not_make_the_ledger_is_told_what_to_do(store, monkeypatch):
    if store.get_database(DATABASE) is not None:
        store.drop_database(DATABASE, cascade=True)

    def refuses(_):
        raise CatalogError("ann may not", condition="METASTORE_REFUSED", sqlstate="38000")

    monkeypatch.setattr(store.parts.databases, "create_database", refuses)
    txn = begin(store)
    with pytest.raises(CatalogError, match=f"CREATE DATABASE {DATABASE}. ann may not"):
        store.commit_txn(txn, Commit(batch=NextBatch(BATCH, None)))
    assert store.txn_state(txn) is TxnState.OPEN
    store.abort_txn(txn)


def test_whoever_drops_the_database_forgets_all_streams(store):
    assert note(store, BATCH) and note(store, replace(BATCH, app_id="other"))
    store.drop_database(DATABASE, cascade=True)
    assert store.streams() == [] and store.stream("app", "") is None
    assert note(store, BATCH)
    assert [one.batch for one in store.streams()] == [BATCH]


def test_hive_changes_a_table_and_its_name_without_the_entry(hive, tmp_path):
    """Hive writes all properties of a table back after each of its INSERTs."""
    store = HiveMetastore(hive.url, list_names=lambda _: [])
    session = hive.session()
    session.sql("CREATE DATABASE streamed")
    session.sql(
        "CREATE TABLE streamed.t (a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    )
    batch = replace(BATCH, sink="streamed.t")
    assert note(store, batch)
    session.sql("INSERT INTO streamed.t VALUES (1)")
    assert note(store, replace(batch, version=1), batch)
    session.sql("ALTER TABLE streamed.t SET TBLPROPERTIES ('x'='y')")
    session.sql("ALTER TABLE streamed.t RENAME TO streamed.u")
    assert store.stream("app", "streamed.t") is None
    assert store.stream("app", "streamed.u").batch.version == 1
    assert [one.batch.sink for one in store.streams()] == ["streamed.u"]
    session.sql("DROP TABLE streamed.u")
    session.sql(
        "CREATE TABLE streamed.u (a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    )
    assert store.stream("app", "streamed.u") is None and store.streams() == []
    session.sql("DROP DATABASE streamed CASCADE")
    session.close()
    store.close()
