"""I12: an operation of the embedded store happens wholly or not at all."""

from dataclasses import dataclass, field, replace

import pytest
from compaction_steps import done, failed, queue, request, take
from contract_base import (
    INSERT,
    UPDATE,
    Clock,
    T,
    U,
    begin,
    exclusive,
    on,
    shared_read,
    table,
    view,
    write,
)
from sqlalchemy import event, select

from acidsql.acid.constraints import check_constraint
from acidsql.acid.table import Column, Partition, TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import TxnAbortedError
from acidsql.metastore.compaction_queue import Compacted, HistoryRetention
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.embedded.database.schema import metadata
from acidsql.metastore.interface import Commit, Database, LockType
from acidsql.metastore.streams import Batch, NextBatch
from acidsql.metastore.versions import Change

V, W = TableName("sales", "v"), TableName("sales", "w")
PARTITIONS = {T: [Partition(("1",), "/wh/t/p=1"), Partition(("2",), "/wh/t/p=2")]}
BEFORE_ALL = ValidTxnList(0)  # no other session is open

CHECKS = (check_constraint("c", "a > 0"),)


class Crash(BaseException):
    """It is no Exception, so no code swallows it by accident."""


@dataclass
class Fault:
    """Counts the statements of a store, COMMIT included, and fails at one of them."""

    store: EmbeddedMetastore
    at: int = 0
    seen: int = 0
    statements: list[str] = field(default_factory=list)

    def __post_init__(self):
        engine = self.store._store.engine
        event.listen(engine, "before_cursor_execute", self.statement)
        event.listen(engine, "commit", self.commit)

    def statement(self, _connection, _cursor, statement, *_others):
        self.count(statement)

    def commit(self, _connection):
        self.count("COMMIT")

    def count(self, statement):
        self.seen += 1
        self.statements.append(statement)
        if self.seen == self.at:
            raise Crash(statement)

    def arm(self, at):
        self.at, self.seen, self.statements = at, 0, []


def dump(store):
    """Everything in the store."""
    with store._store.read() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(sql_table)).all()))
            for name, sql_table in metadata.tables.items()
        }


def prepared(tmp_path):
    """A store with some rows of every kind; transactions 1 (holds locks, wrote) and 2 (waits)."""
    clock = Clock()
    store = EmbeddedMetastore(sqlite_url(tmp_path / "s.db"), warehouse="/wh", clock=clock)
    store.create_database(Database("sales", "/wh/sales.db"))
    store.create_database(Database("empty", "/wh/empty.db"))
    store.create_table(table(partitioned=True, properties={"a": "b"}, constraints=CHECKS))
    store.create_table(table(U))
    store.drop_table(U)
    store.create_view(view(W))
    one, two = begin(store), begin(store)
    store.lock(one, [shared_read(operation=INSERT), shared_read(V, INSERT)])
    store.allocate_write_id(one, T)
    store.lock(two, [exclusive(V), exclusive(T)])
    clock.now += 50
    return store


def with_a_circle(store):
    """Transaction 1 wants to write (lock 3) a table that it reads, and 2 waits for 1 to end."""
    store.lock(1, [exclusive(T)])


def with_a_winner(store):
    """Transaction 3 has committed an update of something that 1 changes, too."""
    winner = begin(store)
    for txn in (winner, 1):
        store.lock(txn, [on(LockType.SHARED_WRITE, U, operation=UPDATE)])
    store.commit_txn(winner)


def with_a_past(store):
    """Transactions that ended long ago, with and without data. 2 has timed out, and its session
    does not know."""
    for end in (store.commit_txn, store.abort_txn):
        end(begin(store))
        writer = begin(store)
        store.lock(writer, [shared_read(U, INSERT)])
        store.allocate_write_id(writer, U)
        end(writer)
    store.abort_txn(1)
    for _ in range(2):  # of the versions of a table the newest one is kept
        store.commit_txn(begin(store), Commit(table_changes=[CHANGE]))
    store._store._clock.now += 1000


def with_compactions(store):
    """Entries 2 (of a dead worker), 3 (being compacted), 4 (waiting), 5 (ready) and 6 (failed)."""
    for name in ("a", "b", "c"):
        queue(store, TableName("default", name))
    dead, _ = take(store)
    take(store)
    store.abort_txn(dead)
    done(store)
    failed(store)
    store._store._clock.now += 1000


def with_more_to_compact(store):
    with_compactions(store)
    write(store, U)
    store.lock(1, [shared_read(T, INSERT)])
    store.abort_txn(1)


def worker_of(store, number):
    return next(one.txn_id for one in store.compactions() if one.id == number)


def be_aborted(store):
    with pytest.raises(TxnAbortedError, match="deadlock"):
        store.check_lock(2, 2)


CHANGE = Change(T, "INSERT", "INSERT INTO t VALUES (1)", inserted=1)
BATCH = Batch("app", 0, "default.t", run_id="run")


def with_a_batch(store):
    """A stream has committed a batch."""
    store.commit_txn(begin(store), Commit(batch=NextBatch(BATCH, None)))


def with_a_dead_run(store):
    """A process that wrote a batch has died."""
    store.open_txn(user="ann", host="h", batch=BATCH)


PREPARE = {
    "end_other_runs": with_a_dead_run,
    "commit_batch": with_a_batch,
    "take_over_stream": with_a_batch,
    "forget_stream": with_a_batch,
    "break_a_circle": with_a_circle,
    "be_the_victim": with_a_circle,
    "commit_after_all": with_a_winner,
    "house_keep": with_a_past,
    "commit_compaction": with_compactions,
    "drop_compacted": with_compactions,
    "rename_compacted": with_compactions,
    "mark_failed": with_compactions,
    "mark_refused": with_compactions,
    "queue_again": with_compactions,
    "note_progress": with_compactions,
    "revoke": with_compactions,
    "revoke_slow": with_compactions,
    "take_next": with_compactions,
    "abort_compactions": with_compactions,
    "mark_compaction_cleaned": with_compactions,
    "retry_cleaning_later": with_compactions,
    "give_up_cleaning": with_compactions,
    "forget_aborted": with_more_to_compact,
    "purge_compaction_history": with_compactions,
}
OPERATIONS = {
    "create_database": lambda s: s.create_database(Database("d", "/d", properties={"k": "v"})),
    "alter_database": lambda s: s.alter_database(
        "sales", set_properties={"k": "w", "l": ""}, unset_properties=["m"]
    ),
    "drop_database": lambda s: s.drop_database("empty"),
    "drop_full_database": lambda s: s.drop_database("sales", cascade=True),
    "create_table": lambda s: s.create_table(table(V, constraints=CHECKS, properties={"k": "v"})),
    "adopt_table": lambda s: s.create_table(table(V), first_write_id=9),
    "drop_table": lambda s: s.drop_table(T),
    "rename_table": lambda s: s.rename_table(T, U),
    "alter_table": lambda s: s.alter_table(
        T,
        add_columns=[Column("c", "int")],
        set_properties={"a": "x", "n": "y"},
        constraints=[check_constraint("d", "a > 1")],
    ),
    "keep_statistics": lambda s: s.keep_statistics(T, {"size": "1", "rows": "2"}, txn_id=1),
    "create_view": lambda s: s.create_view(view(V, properties={"k": "v"})),
    "replace_view": lambda s: s.create_view(view(W, properties={"k": "v"}), replace=True),
    "drop_view": lambda s: s.drop_view(W),
    "rename_view": lambda s: s.rename_view(W, V),
    "queue_cleanup": lambda s: s.queue_cleanup(V, "/wh/v"),
    "mark_cleaned": lambda s: s.mark_cleaned(1),
    "open_txn": begin,
    "heartbeat": lambda s: s.heartbeat(1),
    "lock": lambda s: s.lock(1, [shared_read(U, INSERT), exclusive(V)], agent_info="DROP TABLE v"),
    "check_lock": lambda s: s.check_lock(2, 2),
    "break_a_circle": lambda s: s.check_lock(1, 3),
    "be_the_victim": be_aborted,
    "unlock": lambda s: s.unlock(2, 2),
    "restore_components": lambda s: s.restore_components(1, [shared_read(U, INSERT)]),
    "allocate_write_id": lambda s: s.allocate_write_id(1, V),
    "commit_txn": lambda s: s.commit_txn(
        1, Commit(added_partitions=PARTITIONS, dropped_partitions={T: []})
    ),
    "commit_new_table": lambda s: s.commit_txn(1, Commit(created_table=table(V), cleanup_id=1)),
    "commit_replaced": lambda s: s.commit_txn(
        1, Commit(created_table=replace(table(), location="/wh/t_1"), is_replacement=True)
    ),
    "commit_after_all": lambda s: s.commit_txn(
        1, Commit(snapshot=BEFORE_ALL, resolved_txns=[3], added_partitions=PARTITIONS)
    ),
    "commit_adopted": lambda s: s.commit_txn(1, Commit(created_table=table(V), first_write_id=9)),
    "commit_changes": lambda s: s.commit_txn(
        1, Commit(table_changes=[CHANGE], dropped_partitions={T: [("1",)]})
    ),
    "commit_batch": lambda s: s.commit_txn(
        1, Commit(batch=NextBatch(replace(BATCH, version=1), BATCH))
    ),
    "commit_first_batch": lambda s: s.commit_txn(1, Commit(batch=NextBatch(BATCH, None))),
    "take_over_stream": lambda s: s.take_over_stream(replace(BATCH, run_id="new"), BATCH),
    "end_other_runs": lambda s: s.end_other_runs(replace(BATCH, run_id="new")),
    "forget_stream": lambda s: s.forget_stream("app"),
    "abort_txn": lambda s: s.abort_txn(1, "why"),
    "abort_timed_out": lambda s: s.abort_timed_out(10),
    "house_keep": lambda s: s.house_keep(10, 0, 100),
    "compact": lambda s: s.compact(request()),
    "take_next": lambda s: s.take_next(2, "h1-7"),
    "commit_compaction": lambda s: s.commit_txn(
        worker_of(s, 3), Commit(compacted=Compacted(3, 1, "read"))
    ),
    "drop_compacted": lambda s: s.drop_table(T),
    "rename_compacted": lambda s: s.rename_table(T, U),
    "mark_failed": lambda s: s.mark_failed(3, worker_of(s, 3), "broken"),
    "mark_refused": lambda s: s.mark_refused(3, worker_of(s, 3), "nothing to do"),
    "queue_again": lambda s: s.queue_again(3, worker_of(s, 3)),
    "note_progress": lambda s: s.note_progress(3, worker_of(s, 3), "merge 1/2"),
    "revoke": lambda s: s.revoke(10**9),
    "revoke_slow": lambda s: s.revoke(0),
    "did_not_initiate": lambda s: s.did_not_initiate(request(), "no"),
    "abort_compactions": lambda s: s.abort_compactions([3, 4, 5]),
    "mark_compaction_cleaned": lambda s: s.mark_compaction_cleaned(5),
    "retry_cleaning_later": lambda s: s.retry_cleaning_later(5, 10, 1, "disk full"),
    "give_up_cleaning": lambda s: s.retry_cleaning_later(5, 10, 0, "disk full"),
    "forget_aborted": lambda s: s.forget_aborted(T, [1]),
    "forget_versions": lambda s: s.forget_versions(T, 5),
    "purge_compaction_history": lambda s: s.purge_compaction_history(HistoryRetention(failed=0)),
}
VARIANTS = {
    "replace_view": "create_view",
    "drop_full_database": "drop_database",
    "adopt_table": "create_table",
    "break_a_circle": "check_lock",
    "be_the_victim": "check_lock",
    "commit_new_table": "commit_txn",
    "commit_replaced": "commit_txn",
    "commit_after_all": "commit_txn",
    "commit_adopted": "commit_txn",
    "commit_changes": "commit_txn",
    "commit_compaction": "commit_txn",
    "commit_batch": "commit_txn",
    "commit_first_batch": "commit_txn",
    "drop_compacted": "drop_table",
    "rename_compacted": "rename_table",
    "revoke_slow": "revoke",
    "give_up_cleaning": "retry_cleaning_later",
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_i12_a_crash_at_any_statement_leaves_the_store_as_it_was(tmp_path, name):
    store, operation = prepared(tmp_path), OPERATIONS[name]
    PREPARE.get(name, lambda _: None)(store)
    before, fault = dump(store), Fault(store)
    at = 0
    while True:
        at += 1
        fault.arm(at)
        try:
            operation(store)
        except Crash:
            fault.arm(0)
            assert dump(store) == before, f"after a crash at {fault.statements}"
        else:
            break
    assert at > 3  # BEGIN, one statement, COMMIT
    fault.arm(0)
    assert dump(store) != before
    begin(store)
    store.close()


NO_CHANGE = {
    "close", "url", "abilities", "glance", "write_conflicts", "catalog_changes",
    "watch_catalog", "record_partitions", "begin_compaction", "renew",
    "make_transactional", "keep_files", "kind",
}  # fmt: skip


def test_every_operation_that_writes_is_among_those_tried():
    reads = (
        "databases", "get_", "find", "tables", "views", "with_", "partitions", "pending", "valid_",
        "txn_", "show_", "has_", "compactions", "ready_", "candidates", "aborted_", "now_ms",
        "owners", "stream", "statistics", "versions", "oldest_", "last_", "changed_", "identity",
        "temporary_", "first_version", "foreign_keys_to", "sink",
    )  # fmt: skip
    public = {name for name in dir(EmbeddedMetastore) if not name.startswith(("_", *reads))}
    tried = {VARIANTS.get(name, name) for name in OPERATIONS}
    assert public - NO_CHANGE == tried
