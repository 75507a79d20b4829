"""The contract of ``house_keep``: it forgets facts that no session can ask for any more, no
others."""

import pytest
from contract_base import T, U, begin, each_needs, on, seen, shared_read, table, write

from acidsql.errors import NoSuchTxnError, WriteConflictError
from acidsql.metastore.interface import Commit, LockType, Operation, TxnState, TxnType

TIMEOUT, INTERVAL, RETENTION = 10_000, 60_000, 1_000_000


def keep(store, *, timeout=10**9, interval=0, retention=0):
    return store.house_keep(timeout, interval, retention)


def lease(store):
    return store.open_txn(user="u", host="h", txn_type=TxnType.READ_ONLY)


@each_needs("house keeping by sessions")
class HousekeepingContract:
    # ── when ─────────────────────────────────────────────────────────────────────────────────

    def test_it_is_done_once_in_an_interval_by_whichever_session_is_first(
        self, store, reopen, clock
    ):
        assert store.house_keep(TIMEOUT, INTERVAL, RETENTION)
        clock.now += INTERVAL - 1
        assert not reopen().house_keep(TIMEOUT, INTERVAL, RETENTION)
        clock.now += 1
        assert reopen().house_keep(TIMEOUT, INTERVAL, RETENTION)
        assert not store.house_keep(TIMEOUT, INTERVAL, RETENTION)

    def test_nothing_is_done_before_the_interval_is_over(self, store, clock):
        store.house_keep(TIMEOUT, INTERVAL, RETENTION)
        dead = begin(store)
        clock.now += TIMEOUT + 1
        assert not store.house_keep(TIMEOUT, INTERVAL, RETENTION)
        assert store.txn_state(dead) is TxnState.OPEN

    def test_a_clock_that_was_set_back_does_not_stop_it(self, store, clock):
        store.house_keep(TIMEOUT, INTERVAL, RETENTION)
        clock.now -= 10 * INTERVAL
        assert store.house_keep(TIMEOUT, INTERVAL, RETENTION)

    def test_it_aborts_the_dead_by_their_own_time_outs(self, store, clock):
        dead, patient = begin(store), store.open_txn(user="u", host="h", timeout_ms=10**9)
        store.lock(dead, [shared_read()])
        clock.now += TIMEOUT + 1
        assert store.house_keep(TIMEOUT, INTERVAL, RETENTION)
        assert store.txn_state(dead) is TxnState.ABORTED
        assert store.txn_state(patient) is TxnState.OPEN
        assert store.show_locks() == []

    # ── what became of transactions ──────────────────────────────────────────────────────────

    def test_what_became_of_a_transaction_can_be_asked_for_a_while(self, store, clock):
        txn = begin(store)
        store.commit_txn(txn)
        clock.now += 100
        keep(store, retention=100)
        assert store.txn_state(txn) is TxnState.COMMITTED
        clock.now += 1
        keep(store, retention=100)
        assert store.txn_state(txn) is None
        with pytest.raises(NoSuchTxnError, match=r"acidsql\.txn\.history\.retention"):
            store.commit_txn(txn)

    def test_numbers_go_on_where_transactions_are_forgotten(self, store, clock):
        numbers = [write(store), write(store)]
        txn = begin(store)
        store.commit_txn(txn)
        clock.now += 1
        keep(store)
        assert [*numbers, write(store)] == [1, 2, 3]
        assert begin(store) > txn

    def test_an_aborted_transaction_that_wrote_is_never_forgotten(self, store, clock):
        """Its files may exist, or may still be published."""
        store.create_table(table())
        hidden = write(store, commit=False)
        clock.now += 10**9
        keep(store)
        assert [shown.state for shown in store.show_txns()] == [TxnState.ABORTED]
        assert not seen(store).is_valid(hidden)

    def test_an_aborted_transaction_without_data_is_forgotten(self, store, clock):
        txn = begin(store)
        store.lock(txn, [shared_read(operation=Operation.SELECT)])
        store.abort_txn(txn)
        clock.now += 1
        keep(store)
        assert store.show_txns() == []

    def test_an_aborted_writer_of_a_dropped_table_is_forgotten_when_its_ids_are_retired(
        self, store, clock
    ):
        store.create_table(table())
        zombie = write(store, commit=False)
        store.mark_cleaned(store.drop_table(T).id)
        store.create_table(table())
        clock.now += 1
        keep(store)
        assert store.show_txns() == []
        own = write(store)
        assert own > zombie and seen(store).is_valid(own)
        assert not seen(store).is_valid(zombie)

    # ── snapshots ────────────────────────────────────────────────────────────────────────────

    def test_new_snapshots_see_what_they_saw(self, store, clock):
        store.create_table(table())
        ids = [write(store), write(store, commit=False), write(store), write(store, U)]
        before = str(seen(store)), str(seen(store, U))
        clock.now += 1
        keep(store)
        assert (str(seen(store)), str(seen(store, U))) == before
        assert [seen(store).is_valid(number) for number in ids[:3]] == [True, False, True]

    @pytest.mark.parametrize("holder", [begin, lease])
    def test_an_old_snapshot_goes_on_hiding_what_was_open_when_it_was_taken(
        self, store, clock, holder
    ):
        store.create_table(table())
        early = begin(store)
        late = begin(store)
        store.allocate_write_id(late, T)  # write ids do not follow the order of transactions
        store.allocate_write_id(early, T)
        old = holder(store)
        snapshot = store.valid_txns(old)
        store.commit_txn(early)
        store.commit_txn(late)
        later = write(store)
        for _ in range(2):
            clock.now += 10
            keep(store)
            valid = store.valid_write_ids(snapshot, [T])[T]
            assert [valid.is_valid(number) for number in (1, 2, later)] == [False] * 3
        assert [seen(store).is_valid(number) for number in (1, 2, later)] == [True] * 3

    def test_a_snapshot_that_is_taken_later_under_a_lease_is_kept_too(self, store, clock):
        """A session has one lease for many snapshots."""
        store.create_table(table())
        lease(store)
        writer = begin(store)
        number = store.allocate_write_id(writer, T)
        snapshot = store.valid_txns()
        store.commit_txn(writer)
        clock.now += 1
        keep(store)
        assert not store.valid_write_ids(snapshot, [T])[T].is_valid(number)

    def test_a_write_id_below_an_aborted_one_stays_visible_when_its_row_is_gone(self, store, clock):
        """The highest row that is left says nothing about write ids above it."""
        store.create_table(table())
        aborted = write(store, commit=False)
        committed = [write(store), write(store)]
        clock.now += 1
        keep(store)
        valid = seen(store)
        assert [valid.is_valid(number) for number in committed] == [True, True]
        assert not valid.is_valid(aborted) and not valid.is_valid(committed[-1] + 1)

    # ── conflicts ────────────────────────────────────────────────────────────────────────────

    def test_a_rival_of_an_open_transaction_is_remembered_with_its_name(self, store, clock):
        change = on(LockType.SHARED_WRITE, operation=Operation.UPDATE)
        ours = begin(store)
        snapshot = store.valid_txns(ours)
        rival = begin(store, "UPDATE t")
        store.lock(rival, [change])
        write_id = store.allocate_write_id(rival, T)
        store.commit_txn(rival)
        clock.now += 10**6
        keep(store)
        store.lock(ours, [change])
        with pytest.raises(WriteConflictError, match="of user ann on host h1"):
            store.commit_txn(ours, Commit(snapshot=snapshot))
        (found,) = store.write_conflicts(ours, snapshot)
        assert (found.txn_id, found.write_id, found.agent_info) == (rival, write_id, "UPDATE t")
