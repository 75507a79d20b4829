"""Leases: there are few, each is older than the snapshot, and none lasts longer than its
time-out."""

import pytest

from acidsql.acid.table import TableName
from acidsql.errors import MetastoreError
from acidsql.metastore.interface import TxnState
from acidsql.txn.leases import Leases

T = TableName("default", "t")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Lease:
    id = 7

    def __init__(self):
        self.is_alive, self.ended = True, False

    def end_quietly(self):
        self.is_alive, self.ended = False, True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened():
    return []


@pytest.fixture
def leases(clock, opened):
    def open_lease():
        opened.append(Lease())
        return opened[-1]

    return Leases(open_lease, 1000, clock)


def test_a_session_that_reads_all_day_has_at_most_eleven_leases(leases, clock, opened):
    for tick in range(1000):
        clock.now = tick / 100  # ten reads in a tenth of the time-out
        leases.hold()
        assert sum(lease.is_alive for lease in opened) <= 11
    assert 90 <= len(opened) <= 100


def test_every_snapshot_is_protected_for_nine_tenths_of_the_time_out(leases, clock, opened):
    for tick in range(200):
        clock.now = tick / 100
        leases.hold()
        protecting = [lease for lease in opened if lease.is_alive]
        clock.now += 0.89
        leases.end_old()
        assert any(lease.is_alive for lease in protecting)
        clock.now -= 0.89


def test_a_lease_that_others_aborted_is_replaced(leases, opened):
    leases.hold()
    opened[0].is_alive = False
    leases.hold()
    assert len(opened) == 2


def test_closing_ends_them_all_and_twice_is_no_error(leases, clock, opened):
    leases.hold()
    clock.now = 0.5
    leases.hold()
    leases.close()
    leases.close()
    assert [lease.ended for lease in opened] == [True, True]


def test_a_snapshot_outside_of_a_transaction_holds_a_lease(manager, store):
    manager.snapshot([T])
    manager.snapshot([T])
    (lease,) = store.show_txns()
    assert lease.state is TxnState.OPEN and "lease" in lease.agent_info
    manager.close()
    assert store.show_txns() == []


def test_a_lease_is_opened_before_the_snapshot_is_taken(manager, store):
    manager.snapshot([T])
    assert store.calls.index("open_txn") < store.calls.index("valid_txns")


def test_a_lease_that_others_have_aborted_protects_no_snapshot(manager, store):
    first = manager.snapshot([T]).held_by
    assert manager.snapshot([T]).held_by == first
    store.abort_txn(first, "")
    second = manager.snapshot([T]).held_by
    assert second != first and store.txn_state(second) is TxnState.OPEN


def test_a_lease_hides_nothing_from_others_and_is_in_no_snapshot(managers, store):
    managers().snapshot([T])
    with managers().open() as txn:
        assert txn.snapshot([T]).valid_txns.open == ()


def test_where_no_lease_can_be_had_the_read_fails_and_not_later(manager, store):
    store.lose_call["open_txn"] = 1
    with pytest.raises(MetastoreError):
        manager.snapshot([T])


def test_leases_that_cannot_be_ended_are_left_to_time_out(manager, store, clock):
    manager.snapshot([T])
    store.lose_call.update(commit_txn=1, abort_txn=1)
    manager.close()
    (lease,) = store.show_txns()
    clock.now += 300_001
    assert store.abort_timed_out(300_000) == [lease.txn_id]
