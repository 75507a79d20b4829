"""The contract of the ledger of streams: it changes with the COMMIT of a batch, or not at all."""

from dataclasses import replace

import pytest
from contract_base import INSERT, T, U, begin, each_needs, every_day, seen, shared_read, table
from contract_catalog import SALES
from over_hive import needs

from acidsql.acid.table import TableName
from acidsql.errors import StreamError, TxnAbortedError
from acidsql.metastore.interface import Commit, TxnState
from acidsql.metastore.streams import Batch, NextBatch, next_batch

FIRST = Batch("app", 0, "default.t", "query", "run", "print", 5)
NEXT = replace(FIRST, version=1, rows=2)
NEXT_OF_SEVERAL = replace(NEXT, sink="default.t, default.z")


def commit(store, batch, after=None):
    txn = begin(store)
    store.commit_txn(txn, Commit(batch=NextBatch(batch, after)))
    return txn


def taken_over(call):
    with pytest.raises(StreamError) as caught:
        call()
    return caught.value.condition == "STREAM_TAKEN_OVER"


@each_needs("keeps_streams")
@every_day
class StreamContract:
    def test_a_commit_notes_its_batch_and_who_committed_it(self, store, reopen):
        txn = commit(store, FIRST)
        (entry,) = reopen().streams()
        assert (entry.batch, entry.txn_id) == (FIRST, txn)
        assert (entry.user, entry.host) == ("ann", "h1")
        again = commit(store, NEXT, FIRST)
        (entry,) = store.streams("app")
        assert (entry.batch, entry.txn_id) == (NEXT, again)
        assert store.stream("app", "default.t") == entry
        assert store.stream("app", "default.u") is None and store.streams("other") == []

    @needs("a clock for tests")
    def test_an_entry_tells_when_its_batch_was_committed(self, store, clock):
        commit(store, FIRST)
        clock.now += 7
        commit(store, NEXT, FIRST)
        assert store.streams()[0].committed_ms == clock.now

    def test_each_sink_of_an_application_has_its_own_entry(self, store):
        commit(store, FIRST)
        commit(store, replace(FIRST, sink="default.u"))
        commit(store, replace(FIRST, app_id="App", sink=""))
        assert [(e.batch.app_id, e.batch.sink) for e in store.streams()] == [
            ("App", ""), ("app", "default.t"), ("app", "default.u"),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "looked_up", [None, NEXT, replace(FIRST, run_id="older")], ids=["none", "version", "run"]
    )
    def test_a_commit_fails_if_the_entry_is_not_what_was_seen(self, store, looked_up):
        commit(store, FIRST)
        txn = begin(store)
        assert taken_over(lambda: store.commit_txn(txn, Commit(batch=NextBatch(NEXT, looked_up))))
        assert store.txn_state(txn) is TxnState.OPEN
        assert store.streams()[0].batch == FIRST

    def test_a_commit_fails_if_the_entry_is_gone(self, store):
        txn = begin(store)
        assert taken_over(lambda: store.commit_txn(txn, Commit(batch=NextBatch(NEXT, FIRST))))
        assert store.streams() == []

    def test_the_rows_of_a_failed_commit_stay_hidden(self, store):
        store.create_table(table())
        commit(store, FIRST)
        txn = begin(store)
        store.lock(txn, [shared_read(T, INSERT)])
        write_id = store.allocate_write_id(txn, T)
        assert taken_over(lambda: store.commit_txn(txn, Commit(batch=NextBatch(NEXT, None))))
        assert not seen(store).is_valid(write_id)

    @needs("a second call of COMMIT")
    def test_a_repeated_commit_changes_nothing(self, store):
        txn = commit(store, FIRST)
        commit(store, NEXT, FIRST)
        store.commit_txn(txn, Commit(batch=NextBatch(FIRST, None)))  # the first reply was lost
        assert store.streams()[0].batch == NEXT

    def test_another_run_takes_over_without_a_batch(self, store):
        commit(store, FIRST)
        new = replace(FIRST, run_id="new")
        for _ in range(2):  # the reply to the first call may be lost
            store.take_over_stream(new, FIRST)
        assert store.streams()[0].batch == new
        txn = begin(store)
        assert taken_over(lambda: store.commit_txn(txn, Commit(batch=NextBatch(NEXT, FIRST))))
        store.abort_txn(txn)
        assert taken_over(lambda: store.take_over_stream(replace(FIRST, run_id="third"), FIRST))
        commit(store, replace(NEXT, run_id="new"), new)

    def test_a_new_run_aborts_what_other_runs_of_its_stream_have_left_open(self, store):
        def working(**changes):
            return store.open_txn(user="u", host="h", batch=replace(FIRST, **changes))

        dead, later = working(), working(version=7)
        others = [
            begin(store), working(run_id="new"), working(sink="default.u"), working(app_id="App"),
            working(query_id="copy"),
        ]  # fmt: skip
        for txn in (dead, later, *others):
            store.lock(txn, [shared_read(T, INSERT)])
        assert store.end_other_runs(replace(FIRST, run_id="new")) == [dead, later]
        assert store.end_other_runs(replace(FIRST, run_id="new")) == []
        assert {one.txn_id for one in store.show_locks()} == set(others)
        with pytest.raises(TxnAbortedError):
            store.commit_txn(dead, Commit(batch=NextBatch(FIRST, None)))
        assert {store.txn_state(txn) for txn in others} == {TxnState.OPEN}
        store.commit_txn(others[1])
        assert store.end_other_runs(FIRST) == []

    @needs("reasons of aborts")
    def test_a_run_that_was_ended_is_told_why(self, store):
        dead = store.open_txn(user="u", host="h", batch=FIRST)
        store.end_other_runs(replace(FIRST, run_id="new"))
        with pytest.raises(TxnAbortedError, match="the run new of its stream has begun"):
            store.commit_txn(dead, Commit(batch=NextBatch(FIRST, None)))

    def test_an_entry_goes_with_its_table_and_follows_its_name(self, store):
        store.create_table(table())
        commit(store, FIRST)
        commit(store, replace(FIRST, app_id="whole", sink=""))
        store.rename_table(T, U)
        assert [e.batch.sink for e in store.streams()] == ["default.u", ""]
        store.drop_table(U)
        assert [e.batch.sink for e in store.streams()] == [""]

    def test_an_entry_about_several_tables_follows_each_of_them(self, store):
        several, like_it = "default.t, default.z", "default.a, default.t2"
        for name in (T, U, TableName("default", "z")):
            store.create_table(table(name))
        for sink in (several, like_it, "default.u, default.z"):
            commit(store, replace(FIRST, sink=sink))
        store.drop_table(U)
        commit(store, NEXT_OF_SEVERAL, replace(FIRST, sink=several))
        store.rename_table(T, U)
        found = {e.batch.sink: e.batch.version for e in store.streams()}
        assert found == {like_it: 0, "default.u, default.z": 1}

    def test_an_entry_about_several_tables_goes_with_each_of_them(self, store):
        several = "default.t, default.z"
        for name in (T, U, TableName("default", "z")):
            store.create_table(table(name))
        for sink in (several, "default.t", "default.u, default.z"):
            commit(store, replace(FIRST, sink=sink))
        store.drop_table(T)
        assert [e.batch.sink for e in store.streams()] == ["default.u, default.z"]
        assert store.stream("app", several) is None

    def test_an_entry_about_several_tables_goes_with_a_database_of_one_of_them(self, store):
        store.create_database(SALES)
        names = [T, TableName("sales", "t"), TableName("sales", "u")]
        for name in names:
            store.create_table(table(name, f"/wh/{name.key}"))
        for tables in (names[:2], names[1:], names[:1]):
            commit(store, replace(FIRST, sink=store.sink(tables)))
        store.drop_database("sales", cascade=True)
        assert [e.batch.sink for e in store.streams()] == ["default.t"]
        store.create_database(SALES)
        store.create_table(table(names[1], "/wh/again"))
        assert store.stream("app", store.sink(names[:2])) is None

    @needs("replaces_tables")
    def test_an_entry_about_several_tables_goes_with_one_that_is_replaced(self, store):
        for name in (T, U):
            store.create_table(table(name))
        commit(store, replace(FIRST, sink=store.sink([T, U])))
        store.commit_txn(
            begin(store), Commit(created_table=table(location="/wh/t_1"), is_replacement=True)
        )
        assert store.streams() == []

    def test_an_entry_about_tables_with_long_names_follows_them_and_goes_with_them(self, store):
        long_names = [TableName("default", f"{'t' * 120}{number}") for number in range(5)]
        short_names = [TableName("default", f"s{number}") for number in range(5)]
        for name in long_names:
            store.create_table(table(name, f"/wh/{name.name}"))
        sink = store.sink(long_names)
        assert "default" not in sink
        batch = replace(FIRST, sink=sink)
        commit(store, batch)
        renamed = TableName("default", "u" * 128)
        store.rename_table(long_names[0], renamed)
        names = [renamed, *long_names[1:]]
        for new_names in (names, short_names, long_names):  # the short ones fit into a sink's name
            for name, new_name in zip(names, new_names, strict=True):
                if name != new_name:
                    store.rename_table(name, new_name)
            names = new_names
            sink = store.sink(names)
            entry = store.stream("app", sink)
            assert entry.batch.version == batch.version
            batch = replace(batch, sink=sink, version=batch.version + 1, run_id=sink)
            store.take_over_stream(replace(entry.batch, sink=sink, run_id=sink), entry.batch)
            commit(store, batch, replace(entry.batch, run_id=sink))
            assert len(store.streams("app")) == 1
        assert store.sink(short_names) == ", ".join(map(str, short_names))
        store.drop_table(long_names[1])
        store.create_table(table(long_names[1], "/wh/again"))
        assert store.stream("app", store.sink(long_names)) is None

    def test_a_stream_can_be_forgotten_by_sink_or_as_a_whole(self, store):
        for sink in ("default.t", "default.u", ""):
            commit(store, replace(FIRST, sink=sink))
        assert store.forget_stream("app", "default.u") == 1
        assert store.forget_stream("app") == 2
        assert store.forget_stream("app") == 0

    def test_following_hands_on_what_was_seen(self, store):
        commit(store, FIRST)
        (entry,) = store.streams()
        assert next_batch(NEXT, entry) == NextBatch(NEXT, FIRST)
        assert next_batch(FIRST, None) == NextBatch(FIRST, None)
