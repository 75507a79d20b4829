"""The costs of the embedded store's operations: SQL statements, without BEGIN and COMMIT.

A statement is a round trip to a database server, and a store transaction that writes keeps all
others waiting.
"""

import pytest
from compaction_steps import queue, request, worker
from contract_base import (
    INSERT,
    SELECT,
    UPDATE,
    Clock,
    T,
    U,
    begin,
    exclusive,
    on,
    shared_read,
    table,
)
from sqlalchemy import event

from acidsql.acid.table import TableName
from acidsql.metastore.compaction_queue import Compacted
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import Commit, LockType, TxnType
from acidsql.metastore.versions import Change

BOUNDARIES = ("BEGIN", "COMMIT")


class Meter:
    """The statements of a store, and how SQLite finds the rows of each."""

    def __init__(self, path):
        self.clock = Clock()
        self.store = EmbeddedMetastore(sqlite_url(path / "s.db"), warehouse="/wh", clock=self.clock)
        self.statements, self.plans = [], []
        event.listen(self.store._store.engine, "before_cursor_execute", self.note)

    def note(self, connection, _cursor, statement, parameters, _context, many):
        if not statement.startswith(BOUNDARIES):
            self.statements.append(statement)
            if not many and statement.startswith(("SELECT", "DELETE", "UPDATE")):
                raw = connection.connection.driver_connection
                plan = raw.execute("EXPLAIN QUERY PLAN " + statement, parameters)
                self.plans.append("; ".join(row[3] for row in plan))

    def cost(self, call, *args, **keywords):
        self.statements, self.plans = [], []
        call(*args, **keywords)
        return len(self.statements)


@pytest.fixture
def meter(tmp_path):
    meter = Meter(tmp_path)
    yield meter
    meter.store.close()


def insert_begun(store):
    txn = begin(store)
    store.lock(txn, [shared_read(operation=INSERT)])
    snapshot = store.valid_txns(txn)
    store.allocate_write_id(txn, T)
    return txn, snapshot


def test_a_transaction_of_one_insert_costs_few_statements(meter):
    store = meter.store
    assert meter.cost(begin, store) == 5
    assert meter.cost(store.lock, 1, [shared_read(operation=INSERT)]) == 10
    assert meter.cost(store.valid_txns, 1) == 2
    assert meter.cost(store.allocate_write_id, 1, T) == 7
    assert meter.cost(store.commit_txn, 1, Commit(snapshot=store.valid_txns(1))) == 10


def test_who_only_reads_costs_less(meter):
    store = meter.store
    txn = store.open_txn(user="u", host="h", txn_type=TxnType.READ_ONLY)
    assert meter.cost(store.lock, txn, [shared_read(operation=SELECT)]) == 7
    assert meter.cost(store.commit_txn, txn, Commit(snapshot=store.valid_txns(txn))) == 5


def test_a_commit_costs_the_same_however_much_there_is_to_compare(meter):
    store = meter.store
    ours, snapshot = insert_begun(store)
    store.lock(ours, [on(LockType.SHARED_WRITE, U, f"p={n}", UPDATE) for n in range(500)])
    for _ in range(20):
        store.commit_txn(insert_begun(store)[0])
    assert meter.cost(store.commit_txn, ours, Commit(snapshot=snapshot)) == 10


def test_a_look_at_a_table_costs_a_statement_for_each_kind_of_its_parts(meter):
    meter.store.create_table(table(partitioned=True))
    assert meter.cost(meter.store.find, T) == 6
    assert meter.cost(meter.store.find, U) == 1


def test_to_note_a_version_costs_two_statements(meter):
    store = meter.store
    store.create_table(table())
    txn, snapshot = insert_begun(store)
    change = Change(T, "INSERT", "…")
    assert (
        meter.cost(store.commit_txn, txn, Commit(snapshot=snapshot, table_changes=[change]))
        == 10 + 2
    )


def test_a_commit_of_many_statements_asks_once_for_each_table(meter):
    store = meter.store
    for name in (T, U):
        store.create_table(table(name))
    costs = []
    for statements in (1, 50):
        ours, _ = insert_begun(store)
        changed = [Change(name, "INSERT", "…") for name in (T, U)] * statements
        costs.append(meter.cost(store.commit_txn, ours, Commit(table_changes=changed)))
    assert costs[0] == costs[1]
    assert len(store.versions(T)) == 51


def test_a_committer_reads_only_what_was_committed_since_it_began(meter):
    txn, snapshot = insert_begun(meter.store)
    meter.cost(meter.store.write_conflicts, txn, snapshot)
    (plan,) = [plan for plan in meter.plans if "WRITE_SET" in plan]
    assert "WRITE_SET_INDEX (WS_DATABASE=? AND WS_TABLE=? AND WS_COMMIT_ID>?)" in plan
    assert "SCAN" not in plan


def test_looking_at_a_lock_costs_one_statement_more_while_somebody_else_is_in_the_way(meter):
    store = meter.store
    holder, waiter = begin(store), begin(store)
    store.lock(holder, [exclusive()])
    lock_id = store.lock(waiter, [exclusive()]).lock_id
    assert meter.cost(store.check_lock, waiter, lock_id) == 6
    another = begin(store)
    store.lock(another, [exclusive()])
    assert meter.cost(store.check_lock, waiter, lock_id) == 7
    store.commit_txn(holder)
    assert meter.cost(store.check_lock, waiter, lock_id) == 5


def test_ending_many_costs_what_ending_one_does(meter):
    for _ in range(50):
        begin(meter.store)
    meter.clock.now += 100
    assert meter.cost(meter.store.abort_timed_out, 10) == 5


def test_a_snapshot_costs_three_statements_for_each_table(meter):
    store = meter.store
    snapshot = store.valid_txns()
    assert meter.cost(store.valid_write_ids, snapshot, []) == 0
    assert meter.cost(store.valid_write_ids, snapshot, [T]) == 3
    assert meter.cost(store.valid_write_ids, snapshot, [T, U, TableName("d", "v")]) == 9


def test_housekeeping_costs_one_question_while_it_is_not_due(meter):
    store = meter.store
    for _ in range(30):
        store.commit_txn(insert_begun(store)[0])
    meter.clock.now += 100
    assert meter.cost(store.house_keep, 1000, 60_000, 10) == 11
    assert meter.cost(store.house_keep, 1000, 60_000, 10) == 1
    meter.clock.now += 60_000
    assert meter.cost(store.house_keep, 1000, 60_000, 10) == 10


def test_idle_workers_and_cleaners_cost_little_and_lock_nobody_out(meter):
    store = meter.store
    for look in (store.has_work, lambda: store.revoke(1000), store.compactions):
        assert meter.cost(look) <= 2
    assert meter.cost(store.ready_to_clean, 0) == 2
    assert meter.cost(store.candidates) == 3


def test_a_compaction_costs_few_statements(meter):
    store = meter.store
    assert meter.cost(store.compact, request()) == 4
    txn = worker(store)
    assert meter.cost(store.take_next, txn, "h1-7") == 4
    # Three more than a commit that changed nothing, however much else the store has.
    assert meter.cost(store.commit_txn, txn, Commit(compacted=Compacted(1, 1, ""))) == 5 + 3
    for number in range(50):
        queue(store, TableName("d", f"t{number}"))
    assert meter.cost(store.mark_compaction_cleaned, 1) == 4
