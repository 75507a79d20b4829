"""Waiting for locks: growing pauses, dead holders, the longest wait, and the error message."""

import logging
import subprocess
import sys

import pytest

from acidsql.errors import LockTimeoutError, TxnAbortedError
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.txn.waits import duration_text, waits_shown_by

EXCLUSIVE = LockComponent(LockType.EXCLUSIVE, "default", "t")
UPDATE_PARTITION = LockComponent(LockType.EXCL_WRITE, "default", "t", "p=1", Operation.UPDATE)
SHORT = {"hive.lock.numretries": 3}  # 100 + 200 + 400 ms


class Sleeper:
    """Replaces ``sleep``: it notes the pauses, and calls a function after the n-th one. Its clock
    goes on by each pause."""

    def __init__(self, **after):
        self.slept, self.after, self.now_s = [], after, 0.0

    def elapsed(self):
        return self.now_s

    def __call__(self, seconds):
        self.slept.append(round(seconds, 3))
        self.now_s += seconds
        self.after.get(f"n{len(self.slept)}", lambda: None)()


def test_a_free_lock_is_granted_without_sleeping(managers):
    sleeper = Sleeper()
    acquired = managers(sleep=sleeper).open().lock([EXCLUSIVE])
    assert (acquired.waited, sleeper.slept) == (False, [])


def test_a_lock_that_becomes_free_is_granted_after_some_doubling_pauses(managers):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    sleeper = Sleeper(n7=holder.commit)
    acquired = managers(sleep=sleeper, elapsed=sleeper.elapsed).open().lock([EXCLUSIVE])
    assert acquired.waited
    # The fifth pause ends early, when the wait is reported; then acidsql.lock.poll.interval.
    assert sleeper.slept == [0.1, 0.2, 0.4, 0.8, 0.5, 2.0, 2.0]


def test_the_wait_ends_in_time_and_tells_who_is_in_the_way_and_what_to_do(managers):
    holder = managers(user="bob").open(agent_info="UPDATE t\n  SET a = 1")
    holder.lock([UPDATE_PARTITION])
    txn = managers(settings=SHORT).open()
    with pytest.raises(LockTimeoutError) as caught:
        txn.lock([EXCLUSIVE])
    for part in (
        "EXCLUSIVE on default.t in 0.7 s",
        f"Transaction {holder.id} of user bob on host h1",
        "holds EXCL_WRITE on default.t/p=1",
        "statement: UPDATE t SET a = 1",
        f"ABORT TRANSACTIONS {holder.id}",
        "hive.lock.numretries",
    ):
        assert part in str(caught.value)
    assert caught.value.getMessageParameters()["blockerUser"] == "bob"
    assert caught.value.getSqlState() == "40001"


def test_a_lock_that_was_given_up_is_in_nobodys_way_and_the_transaction_goes_on(managers, store):
    holder = managers().open()
    holder.lock([UPDATE_PARTITION])
    txn = managers(settings=SHORT).open()
    with pytest.raises(LockTimeoutError):
        txn.lock([EXCLUSIVE])
    assert [lock.txn_id for lock in store.show_locks()] == [holder.id]
    txn.commit()


def test_a_lock_whose_wait_is_interrupted_is_given_up(managers, store):
    def interrupt():
        raise KeyboardInterrupt

    holder = managers().open()
    holder.lock([EXCLUSIVE])
    txn = managers(sleep=Sleeper(n2=interrupt)).open()
    with pytest.raises(KeyboardInterrupt):
        txn.lock([EXCLUSIVE])
    assert len(store.show_locks()) == 1


def test_the_locks_of_a_dead_session_go_away_while_others_wait(managers, store, clock):
    dead = managers().open()
    dead.lock([EXCLUSIVE])

    def pass_time():
        clock.now += 301_000  # hive.txn.timeout, by the store's clock
        store.heartbeat(txn.id)

    txn = managers(sleep=Sleeper(n2=pass_time)).open()
    assert txn.lock([EXCLUSIVE]).waited
    with pytest.raises(TxnAbortedError):
        dead.commit()


def test_a_waiter_that_is_aborted_is_told(managers, store):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    sleeper = Sleeper(n2=lambda: store.abort_txn(txn.id, "by hand"))
    txn = managers(sleep=sleeper).open()
    with pytest.raises(TxnAbortedError, match="by hand"):
        txn.lock([EXCLUSIVE])


def test_a_long_statement_is_cut_in_a_message(managers):
    managers().open(agent_info="SELECT " + "x" * 5000).lock([EXCLUSIVE])
    with pytest.raises(LockTimeoutError) as caught:
        managers(settings=SHORT).open().lock([EXCLUSIVE])
    assert len(str(caught.value)) < 800 and "…" in str(caught.value)


def test_a_database_is_named_as_one(managers):
    managers().open().lock([LockComponent(LockType.EXCLUSIVE, "default")])
    with pytest.raises(LockTimeoutError, match="EXCLUSIVE on database default"):
        managers(settings=SHORT).open().lock([EXCLUSIVE])


class Waits:
    """The warnings of a session that waits until the n-th pause, and when each of them came."""

    def __init__(self, caplog, managers, pauses, holder, settings=None):
        self.sleeper = sleeper = Sleeper(**{f"n{pauses}": holder.commit})
        self.moments = []
        handler = Handler(lambda: self.moments.append(round(sleeper.now_s, 1)))
        logger = logging.getLogger("acidsql")
        logger.addHandler(handler)
        waiter = managers(sleep=sleeper, elapsed=sleeper.elapsed, settings=settings)
        try:
            waiter.open().lock([EXCLUSIVE], agent_info="DROP TABLE t")
        finally:
            logger.removeHandler(handler)
        self.warnings = [
            record.getMessage() for record in caplog.records if record.levelname == "WARNING"
        ]


class Handler(logging.Handler):
    """Calls a function at each record."""

    def __init__(self, call):
        super().__init__()
        self.emit = lambda record: call()


def test_a_wait_is_logged_after_two_seconds_and_then_ever_more_rarely(caplog, managers):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    waits = Waits(caplog, managers, 120, holder)
    assert waits.moments == [2, 10, 30, 90, 150, 210]


def test_a_rare_check_of_the_lock_does_not_make_the_reports_late(caplog, managers):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    waits = Waits(caplog, managers, 14, holder, {"acidsql.lock.poll.interval": "1h"})
    assert waits.moments[:4] == [2, 10, 30, 90]


def test_a_short_wait_is_not_logged(caplog, managers):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    assert Waits(caplog, managers, 4, holder).warnings == []  # 1.5 seconds


def test_a_logged_wait_says_who_holds_which_lock_since_when_and_how_long_it_can_last(
    caplog, managers
):
    holder = managers(user="bob").open(agent_info="UPDATE t\n  SET a = 1")
    holder.lock([UPDATE_PARTITION])
    warning = Waits(caplog, managers, 6, holder).warnings[0]
    for part in (
        "(DROP TABLE t) has waited for 2 s for EXCLUSIVE on default.t.",
        f"Transaction {holder.id} of user bob on host h1 holds EXCL_WRITE on default.t/p=1 since "
        "1970-01-01 00:16:40 UTC (statement: UPDATE t SET a = 1)",
        "The wait ends after 91 min 42 s at the latest (hive.lock.numretries, "
        "hive.lock.sleep.between.retries)",
        f"ABORT TRANSACTIONS {holder.id} ends transaction {holder.id}",
    ):
        assert part in warning


def test_a_wait_that_a_terminal_shows_is_not_logged_and_goes_when_it_ends(caplog, managers):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    shown = []
    with waits_shown_by(shown.append):
        waits = Waits(caplog, managers, 8, holder)
    assert waits.warnings == []
    assert shown[0].startswith("Transaction") and "has waited for 0.0 s" in shown[0]
    assert "has waited for 2 s" in shown[5] and shown[-1] is None
    assert waits.sleeper.slept == [0.1, 0.2, 0.4, 0.8, 0.5, 2, 2, 2]


def test_a_wait_that_fails_is_not_shown_any_more(managers):
    managers().open().lock([EXCLUSIVE])
    shown = []
    with waits_shown_by(shown.append), pytest.raises(LockTimeoutError):
        managers(settings=SHORT).open().lock([EXCLUSIVE])
    assert shown[-1] is None and len(shown) > 1


def test_a_plain_program_sees_on_standard_error_whom_it_waits_for():
    """Python shows warnings of loggers without handlers there."""
    program = (
        "from acidsql.txn.waits import Wait\n"
        "clock = [0.0]\n"
        "wait = Wait(lambda: clock[0])\n"
        "clock[0] = 2.0\n"
        "wait.report(lambda waited_time: f'It has waited for {waited_time}.')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "It has waited for 2 s.\n")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.7, "0.7 s"), (2, "2 s"), (60, "1 min"), (61.9, "1 min 1 s"), (5502.1, "91 min 42 s"),
        (93_900, "26 h 5 min"),
    ],
)  # fmt: skip
def test_times_in_words(seconds, text):
    assert duration_text(seconds) == text
