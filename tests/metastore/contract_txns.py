"""The contract of ``TxnStore`` without locks: numbers, states, snapshots, time-outs."""

import pytest
from contract_base import (
    INSERT,
    UPDATE,
    T,
    U,
    begin,
    every_day,
    exclusive,
    on,
    seen,
    shared_read,
    table,
    write,
)
from over_hive import needs

from acidsql.acid.write_ids import NONE_OPEN
from acidsql.errors import NoSuchTxnError, TxnAbortedError, TxnError
from acidsql.metastore.interface import Commit, LockType, TxnState, TxnType


@every_day
class TxnContract:
    # ── life ─────────────────────────────────────────────────────────────────────────────────

    @needs("numbers from one")
    def test_transactions_are_numbered_from_one_without_gaps(self, store, reopen):
        assert [begin(store), begin(reopen()), begin(store)] == [1, 2, 3]

    @needs("the statement of a transaction")
    def test_an_open_transaction_is_shown_with_who_and_what(self, store, clock):
        txn = begin(store, "UPDATE t SET a = 1")
        clock.now += 5
        store.heartbeat(txn)
        (shown,) = store.show_txns()
        assert (shown.txn_id, shown.state) == (txn, TxnState.OPEN)
        assert (shown.user, shown.host, shown.agent_info) == ("ann", "h1", "UPDATE t SET a = 1")
        assert (shown.started_ms, shown.last_heartbeat_ms) == (1_000_000, 1_000_005)

    def test_names_and_statements_of_any_length_can_be_opened(self, store):
        store.open_txn(user="u" * 500, host="h" * 500, agent_info="s" * 100_000)

    def test_a_transaction_goes_on_under_the_number_that_it_gets_before_its_snapshot(self, store):
        first = begin(store)
        others = write(store)
        store.lock(first, [on(LockType.EXCL_WRITE, operation=UPDATE)])
        txn = store.renew(first)
        assert seen(store, txn_id=txn).is_valid(others)
        own = store.allocate_write_id(txn, T)
        store.heartbeat(txn)
        store.record_partitions(txn, T, [""])
        store.commit_txn(txn, Commit(snapshot=store.valid_txns(txn)))
        assert seen(store).is_valid(own)
        assert store.show_locks() == []

    def test_a_snapshot_under_a_lease_is_that_of_all_while_the_lease_is_open(self, store):
        mine, others = (
            store.open_txn(user="ann", host="h1", txn_type=TxnType.READ_ONLY) for _ in range(2)
        )
        done, writer = write(store), begin(store)
        store.lock(writer, [shared_read(operation=INSERT)])
        open_id = store.allocate_write_id(writer, T)
        valid = store.valid_txns_under(mine)
        assert writer in valid.open
        assert valid.high_water_mark == store.valid_txns().high_water_mark
        found = store.valid_write_ids(valid, [T])[T]
        assert found.is_valid(done) and not found.is_valid(open_id)
        for lease, end in ((mine, store.commit_txn), (others, store.abort_txn)):
            end(lease)
            assert store.valid_txns_under(lease) is None

    @needs("how a transaction ended")
    def test_a_commit_can_be_repeated_when_its_reply_was_lost(self, store):
        txn = begin(store)
        store.allocate_write_id(txn, T)
        store.commit_txn(txn)
        store.commit_txn(txn)
        assert store.txn_state(txn) is TxnState.COMMITTED
        assert store.show_txns() == []

    @needs("reasons of aborts")
    def test_an_abort_can_be_repeated_and_keeps_its_first_reason(self, store):
        txn = begin(store)
        store.abort_txn(txn, "first")
        store.abort_txn(txn, "second")
        assert store.txn_state(txn) is TxnState.ABORTED
        assert [shown.meta_info for shown in store.show_txns()] == ["first"]

    @needs("reasons of aborts")
    def test_an_aborted_transaction_can_do_nothing_more_and_is_told_why(self, store):
        txn = begin(store)
        store.abort_txn(txn, "the reason")
        for call in (
            lambda: store.heartbeat(txn),
            lambda: store.lock(txn, [shared_read()]),
            lambda: store.check_lock(txn, 1),
            lambda: store.allocate_write_id(txn, T),
            lambda: store.restore_components(txn, []),
            lambda: store.commit_txn(txn),
        ):
            with pytest.raises(TxnAbortedError, match="the reason"):
                call()

    @needs("how a transaction ended")
    @pytest.mark.parametrize("number", [0, -1, 2, 10**15])
    def test_an_unknown_number_is_no_transaction(self, store, number):
        begin(store)
        for call in (
            lambda: store.heartbeat(number),
            lambda: store.lock(number, [shared_read()]),
            lambda: store.allocate_write_id(number, T),
            lambda: store.restore_components(number, []),
            lambda: store.commit_txn(number),
            lambda: store.abort_txn(number),
        ):
            with pytest.raises(NoSuchTxnError, match="never opened"):
                call()
        assert store.txn_state(number) is None

    @needs("how a transaction ended")
    def test_a_committed_transaction_can_do_nothing_more(self, store):
        txn = begin(store)
        store.commit_txn(txn)
        for call in (
            lambda: store.heartbeat(txn),
            lambda: store.lock(txn, [shared_read()]),
            lambda: store.allocate_write_id(txn, T),
            lambda: store.abort_txn(txn),
        ):
            with pytest.raises(NoSuchTxnError, match="committed"):
                call()

    @needs("limits of a session")
    def test_no_more_transactions_are_opened_than_are_allowed(self, store):
        first, _ = begin(store), begin(store)
        with pytest.raises(TxnError, match=r"hive\.max\.open\.txns") as caught:
            store.open_txn(user="u", host="h", max_open_txns=2)
        assert caught.value.getCondition() == "TOO_MANY_OPEN_TXNS"
        assert caught.value.getSqlState() == "53400"
        store.commit_txn(first)
        assert store.open_txn(user="u", host="h", max_open_txns=2) == 3

    # ── write ids ────────────────────────────────────────────────────────────────────────────

    def test_a_transaction_has_one_write_id_for_each_table(self, store):
        one, two = begin(store), begin(store)
        assert store.allocate_write_id(two, T) == 1
        assert store.allocate_write_id(one, T) == 2
        assert store.allocate_write_id(two, T) == 1
        assert store.allocate_write_id(one, U) == 1

    def test_write_ids_are_not_used_again_after_an_abort(self, store):
        assert [write(store, commit=False), write(store)] == [1, 2]

    def test_a_read_only_transaction_cannot_write(self, store):
        txn = store.open_txn(user="u", host="h", txn_type=TxnType.READ_ONLY)
        with pytest.raises(TxnError, match="read-only"):
            store.allocate_write_id(txn, T)

    # ── snapshots ────────────────────────────────────────────────────────────────────────────

    @needs("numbers from one")
    def test_a_new_store_has_an_empty_snapshot(self, store):
        assert str(store.valid_txns()) == f"0:{NONE_OPEN}::"
        assert str(seen(store)) == f"default.t:0:{NONE_OPEN}::"

    @needs("numbers from one")
    def test_a_snapshot_is_written_as_hive_writes_it(self, store):
        """hive-transactions.md §2.3: hwm:minOpen:open,…:aborted,…"""
        one, two, three, four = (begin(store) for _ in range(4))
        store.commit_txn(one)
        store.abort_txn(two)
        assert str(store.valid_txns()) == "4:3:3,4:2"
        assert str(store.valid_txns(three)) == "4:4:4:2"
        store.commit_txn(four)
        assert str(store.valid_txns(three)) == f"4:{NONE_OPEN}::2"

    def test_write_ids_of_open_and_aborted_transactions_are_not_valid(self, store):
        """hive-transactions.md §2.4."""
        one, two, three = (begin(store) for _ in range(3))
        for txn in (three, one, two):  # write ids do not follow the order of transactions
            store.allocate_write_id(txn, T)
        store.commit_txn(one)
        store.abort_txn(two)
        assert str(seen(store)) == "default.t:3:1:1:3"
        assert str(seen(store, txn_id=three)) == f"default.t:3:{NONE_OPEN}::3"

    def test_a_snapshot_stays_what_it_was_when_others_commit(self, store):
        early = begin(store)
        store.allocate_write_id(early, T)
        snapshot = store.valid_txns()
        store.commit_txn(early)
        late = write(store)
        (valid,) = store.valid_write_ids(snapshot, [T]).values()
        assert not valid.is_valid(1) and not valid.is_valid(late)

    def test_a_younger_transaction_that_has_committed_is_seen(self, store):
        """It may have held the lock that we waited for. "Lock, then look" must show its changes."""
        early = begin(store)
        late = write(store)
        assert seen(store, txn_id=early).is_valid(late)

    def test_a_transaction_sees_its_own_write_id(self, store):
        txn = begin(store)
        snapshot = store.valid_txns(txn)
        write_id = store.allocate_write_id(txn, T)
        assert store.valid_write_ids(snapshot, [T])[T].is_valid(write_id)

    @needs("numbers from one")
    def test_readers_without_writes_do_not_lengthen_snapshots(self, store):
        store.open_txn(user="u", host="h", txn_type=TxnType.READ_ONLY)
        assert str(store.valid_txns()) == f"1:{NONE_OPEN}::"

    # ── time-outs ────────────────────────────────────────────────────────────────────────────

    @needs("a clock for tests")
    def test_a_transaction_without_heartbeat_is_aborted_by_the_stores_clock(self, store, clock):
        store.create_table(table())
        quiet, lively = begin(store), begin(store)
        store.lock(quiet, [shared_read(operation=INSERT)])
        clock.now += 60
        store.heartbeat(lively)
        clock.now += 50
        assert store.abort_timed_out(200) == []
        assert store.abort_timed_out(100) == [quiet]
        assert store.abort_timed_out(100) == []
        assert store.show_locks() == []
        with pytest.raises(TxnAbortedError, match=r"hive\.txn\.timeout"):
            store.commit_txn(quiet)
        store.commit_txn(lively)

    @needs("a clock for tests")
    def test_a_late_heartbeat_does_not_raise_the_dead(self, store, clock):
        txn = begin(store)
        clock.now += 1000
        store.abort_timed_out(100)
        with pytest.raises(TxnAbortedError):
            store.heartbeat(txn)
        assert store.txn_state(txn) is TxnState.ABORTED

    @needs("a clock for tests")
    def test_a_transaction_is_measured_by_its_own_sessions_time_out(self, store, clock):
        patient = store.open_txn(user="u", host="h", timeout_ms=1000)
        hasty = store.open_txn(user="u", host="h", timeout_ms=10)
        clock.now += 50
        assert store.abort_timed_out(20) == [hasty]
        clock.now += 1000
        assert store.abort_timed_out(5000) == [patient]

    @needs("a clock for tests")
    def test_looking_at_a_lock_is_a_heartbeat(self, store, clock):
        holder, waiter = begin(store), begin(store)
        store.lock(holder, [exclusive()])
        lock_id = store.lock(waiter, [exclusive()]).lock_id
        clock.now += 100
        store.check_lock(waiter, lock_id)
        assert store.abort_timed_out(50) == [holder]

    @needs("a clock for tests")
    def test_a_clock_that_goes_back_aborts_nobody(self, store, clock):
        begin(store)
        clock.now -= 10_000
        assert store.abort_timed_out(100) == []
