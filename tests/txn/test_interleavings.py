"""Every interleaving of two transactions, call by call of the store, and the right outcome.

Two scripts run through ``Transaction`` and ``Txn``. Each stops before each store call, and the
chosen one goes on (``two_scripts``). All choices are tried on a store in dictionaries
(``every_order``, ``dict_store``). Some are also tried on the real store, which must give the same
answers. A specification in dictionaries of rows (``si_spec``) checks every call: which side waits,
which side loses, what each statement sees, and which rows are left. ``expected`` says how two kinds
of transactions may end; each of these ends must also be reached.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import pytest
from dict_store import DictStore, said
from every_order import Found, Scripts, State, every_order
from si_spec import Spec
from two_scripts import TABLE, Script

from acidsql.errors import AcidSqlError
from acidsql.metastore import conflict_rules
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import PLAIN_COMMIT, LockResponse, LockState, Operation
from acidsql.txn import Txn

# The statements that transactions consist of. "undo" is ROLLBACK TO before the first statement.
KINDS = {
    "read": ("read",),
    "insert": ("insert",),
    "update": ("update",),
    "delete": ("delete",),
    "merge": ("merge",),
    "overwrite": ("overwrite",),
    "read, update": ("read", "update"),
    "insert, update": ("insert", "update"),
    "update, undo, insert": ("update", "undo", "insert"),
}
LONG = {"insert, update", "update, undo, insert"}
KINDS_BY_ROW = {
    "update 1": ("update 1",),
    "update 2": ("update 2",),
    "delete": ("delete",),
    "merge": ("merge",),
    "overwrite": ("overwrite",),
    "read, update 1": ("read", "update 1"),
    "insert, update 1": ("insert", "update 1"),
}
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))
PAIRS_BY_ROW = list(itertools.combinations_with_replacement(KINDS_BY_ROW, 2))
# The partitions: the same one; different ones; different ones with locks on the whole table.
PLACES = ["same", "other", "unnamed"]
C, LOST, DEADLOCK = "committed", "WRITE_CONFLICT", "TXN_ABORTED"


@dataclass(frozen=True)
class Case:
    """Two kinds of transactions, and the kind of their locks."""

    kinds: tuple[str, str]
    mode: str
    place: str = "same"

    def scripts(self) -> Scripts:
        places = "p", "p" if self.place == "same" else "q"
        named = self.place != "unnamed"
        return tuple(  # type: ignore[return-value]
            Script(who, KINDS_BY_ROW[kind], (place,) * len(KINDS_BY_ROW[kind]), named, self.mode)
            if self.mode == "by row"
            else Script(who, KINDS[kind], (place,) * len(KINDS[kind]), named, self.mode)
            for who, kind, place in zip("AB", self.kinds, places, strict=True)
        )


def cases(kinds: tuple[str, str], modes: tuple[str, ...]) -> list[Case]:
    # More calls have many more orders. With different partitions these show nothing more.
    places = ["same"] if any(kind in LONG for kind in kinds) else PLACES
    return [Case(kinds, mode, place) for mode in modes for place in places]


# ── what may come of two kinds ───────────────────────────────────────────────────────────────


def clash(case: Case) -> bool:
    """Whether one of the two may have to wait for the other."""
    waiting = {"overwrite", "merge"} if case.mode == "by row" else {"overwrite"}
    both_write = not any(kind in ("read", "insert") for kind in case.kinds)
    one_excludes = case.mode == "pessimistic" or any(kind in waiting for kind in case.kinds)
    return case.place != "other" and both_write and one_excludes


def can_lose(me: str, other: str, case: Case) -> bool:
    """Whether the first can fail because the second has committed first."""
    both = {me, other}
    has_looked = "," in me and "undo" not in me  # before it requests its last lock
    change = not any(kind in ("read", "insert") or "undo" in kind for kind in both)
    if case.place == "other":
        return False
    if case.place == "unnamed":  # the lock is compared as requested: the whole table
        return has_looked and change
    if both == {"insert", "overwrite"}:
        return True  # the base hides the row, or would hide it
    if case.mode == "by row" and both <= {"update 1", "update 2", "delete", "read, update 1"}:
        change = ("2" in me) == ("2" in other)
    return change and (has_looked or not clash(case))


def expected(case: Case) -> set[tuple[str, str]]:
    a, b = case.kinds
    ends = {(C, C)}
    if can_lose(a, b, case):
        ends.add((LOST, C))
    if can_lose(b, a, case):
        ends.add((C, LOST))
    return ends


def length(script: Script) -> int:
    """The number of calls that a script makes if no other transaction runs."""
    answers: tuple[Any, ...] = ()
    store = DictStore()
    while True:
        side = script.step(store, answers, [])
        answers = (*answers, side.made[1])
        if side.next is None:
            return len(answers)


def judge(case: Case, found: Found) -> None:
    """Compare the ends of all orders with the ends that are allowed and those that must be
    reached."""
    assert {ends for ends, _ in found.ends} == expected(case), case
    who_waited = set().union(*(waited for _, waited in found.ends))
    assert who_waited == ({"A", "B"} if clash(case) else set()), case
    assert found.not_serial == 0, case
    if expected(case) == {(C, C)} and not clash(case):
        one, other = map(length, case.scripts())
        assert found.orders == comb(one + other, one), case
    assert found.steps > 100, case


@pytest.mark.parametrize("kinds", PAIRS, ids=" | ".join)
def test_every_order_of_two_transactions_comes_to_what_the_rules_say(kinds):
    for case in cases(kinds, ("pessimistic", "optimistic")):
        judge(case, every_order(case.scripts()))


@pytest.mark.parametrize("kinds", PAIRS_BY_ROW, ids=" | ".join)
def test_by_row_only_those_lose_who_changed_a_common_row(kinds):
    case = Case(kinds, "by row")
    judge(case, every_order(case.scripts()))


@pytest.mark.parametrize(
    "case, orders",
    [
        (Case(("read", "insert"), "optimistic"), comb(10, 4)),
        (Case(("update", "update"), "pessimistic"), 50),
        (Case(("update", "delete"), "optimistic"), comb(12, 6)),
        (Case(("overwrite", "read, update"), "pessimistic"), 240),
        (Case(("update 1", "update 2"), "by row"), comb(12, 6)),
    ],
    ids=str,
)
def test_to_merge_equal_states_leaves_no_order_out(case, orders):
    """Following each order separately, from its first call to its last, gives the same result."""
    merged, single = (every_order(case.scripts(), merging=merging) for merging in (True, False))
    assert (merged.orders, single.orders) == (orders, orders)
    assert merged.ends == single.ends
    assert merged.steps < single.steps


@pytest.mark.parametrize(
    "first, second, mode",
    [
        ("update", "merge", "pessimistic"),
        ("delete", "overwrite", "optimistic"),
        ("update 1", "merge", "by row"),
    ],
)
def test_two_that_lock_crosswise_are_a_deadlock_and_exactly_one_is_aborted(first, second, mode):
    scripts = (
        Script("A", (first, second), ("p", "q"), True, mode),
        Script("B", (first, second), ("q", "p"), True, mode),
    )
    ends = ends_by_waiting(every_order(scripts))
    assert ends.pop("AB") == {(C, DEADLOCK), (DEADLOCK, C)}
    assert set().union(*ends.values()) == {(C, C)}


def test_two_that_want_more_than_they_have_are_a_deadlock():
    """Both have SHARED_WRITE and then want EXCL_WRITE on the same: each waits for the other's
    lock."""
    scripts = tuple(
        Script(who, ("update", "overwrite"), ("p", "p"), True, "optimistic") for who in "AB"
    )
    ends = ends_by_waiting(every_order(scripts))
    assert ends.pop("AB") == {(C, DEADLOCK), (DEADLOCK, C)}
    assert set().union(*ends.values()) == {(C, C)}


def ends_by_waiting(found: Found) -> dict[str, set[tuple[str, str]]]:
    """The ends, by the scripts that had to wait."""
    names = {waited: "".join(sorted(waited)) for _, waited in found.ends}
    return {
        name: {ends for ends, who in found.ends if who == waited} for waited, name in names.items()
    }


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
@pytest.mark.parametrize("other", ["update", "merge", "overwrite", "read, update"])
def test_who_holds_a_lock_gets_it_again_though_others_wait_for_it(mode, other):
    """BEGIN; UPDATE t; UPDATE t; COMMIT is no deadlock with a transaction that waits for t."""
    again = Script("A", ("update", "update"), ("p", "p"), True, mode)
    kind = KINDS[other]
    found = every_order((again, Script("B", kind, ("p",) * len(kind), True, mode)))
    assert (C, C) in {ends for ends, _ in found.ends}
    assert not any(DEADLOCK in ends for ends, _ in found.ends)


def test_snapshot_isolation_permits_write_skew_and_nothing_forbids_it():
    """Each inserts the sum of all rows. A transaction that does not see the other's row inserts
    less."""
    scripts = tuple(
        Script(who, ("insert sum",), (place,), True, "pessimistic")
        for who, place in zip("AB", "pq", strict=True)
    )
    found = every_order(scripts)  # type: ignore[arg-type]
    assert {ends for ends, _ in found.ends} == {(C, C)}
    assert 0 < found.not_serial < found.orders == comb(12, 6)


# ── the real store ───────────────────────────────────────────────────────────────────────────


class Both:
    """The real store and the store in dictionaries: both get the same calls and must answer
    alike."""

    def __init__(self, real: EmbeddedMetastore) -> None:
        self._real, self._model = real, DictStore()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            answers = []
            for store in (self._real, self._model):
                try:
                    answers.append(getattr(store, name)(*args, **keywords))
                except AcidSqlError as error:
                    answers.append(error)
            real, model = answers
            assert said(real) == said(model), f"{name}{args}: {said(real)}, not {said(model)}"
            if isinstance(real, AcidSqlError):
                raise real
            return real

        return call


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    real = EmbeddedMetastore(
        sqlite_url(tmp_path_factory.mktemp("store") / "s.db"), warehouse="/wh", clock=lambda: 10**6
    )
    real.create_table(TABLE)
    yield Both(real)
    real.close()


def one_order(scripts: Scripts, store: Any, seed: object) -> State:
    """A random order. A script that has begun to run often goes on."""
    chance, state, last = random.Random(str(seed)), State(store, Spec(scripts)), 0
    while enabled := state.enabled():
        last = last if last in enabled and chance.random() < 0.6 else chance.choice(enabled)
        state.step(last)
    return state


@pytest.mark.parametrize("kinds", PAIRS, ids=" | ".join)
def test_the_real_store_answers_as_the_one_in_dictionaries(both, kinds):
    for mode in ("pessimistic", "optimistic"):
        place = random.Random(f"{kinds}{mode}").choice(PLACES)
        case = Case(kinds, mode, place)
        ends, _ = one_order(case.scripts(), both, case).ends()
        assert ends in expected(case), case


@pytest.mark.parametrize("kinds", PAIRS_BY_ROW, ids=" | ".join)
def test_the_real_store_answers_as_the_one_in_dictionaries_by_row(both, kinds):
    case = Case(kinds, "by row")
    assert one_order(case.scripts(), both, case).ends()[0] in expected(case)


@pytest.mark.parametrize("seed", range(8))
def test_the_real_store_ends_deadlocks_as_the_one_in_dictionaries(both, seed):
    a = Script("A", ("update", "update"), ("p", "q"), True, "pessimistic")
    b = Script("B", ("update", "update"), ("q", "p"), True, "pessimistic")
    ends, waited = one_order((a, b), both, seed).ends()
    assert (DEADLOCK in ends) is (waited == {"A", "B"})


@pytest.mark.parametrize("seed", range(8))
def test_the_real_store_grants_a_lock_again_as_the_one_in_dictionaries(both, seed):
    a = Script("A", ("update", "update"), ("p", "p"), True, "pessimistic")
    b = Script("B", ("update",), ("p",), True, "pessimistic")
    assert one_order((a, b), both, seed).ends()[0] == (C, C)


# ── what is broken is found ──────────────────────────────────────────────────────────────────


class CommitsBlindly(DictStore):
    def commit_txn(self, txn_id, commit=PLAIN_COMMIT):
        super().commit_txn(txn_id, replace(commit, snapshot=None))


class ReadsDirt(DictStore):
    def valid_write_ids(self, valid_txns, tables):
        return super().valid_write_ids(self.valid_txns(0) and type(valid_txns)(10**6), tables)


class KeepsWhatIsUndone(DictStore):
    def restore_components(self, txn_id, components):
        pass


class LetsOvertake(DictStore):
    def _try(self, lock_id):
        super()._try(lock_id)
        return LockResponse(lock_id, LockState.ACQUIRED)


def refresh_snapshots(patch):
    look = Txn.snapshot
    patch.setattr(Txn, "snapshot", lambda txn, t: (txn.forget_snapshot(), look(txn, t))[1])


def never_both(patch, operations):
    """Disable the conflict check for pairs of these operations."""
    real = conflict_rules.is_conflict

    def is_conflict(ours, theirs):
        return {ours.operation, theirs.operation} != operations and real(ours, theirs)

    patch.setattr(conflict_rules, "is_conflict", is_conflict)


def forget_hidden_inserts(patch):
    never_both(patch, {Operation.INSERT, Operation.OVERWRITE})


def let_updates_pass_deletes(patch):
    never_both(patch, {Operation.UPDATE, Operation.DELETE})


@pytest.mark.parametrize(
    "broken, case, said",
    [
        (CommitsBlindly, Case(("update", "update"), "optimistic"), "commit_txn is told None"),
        (ReadsDirt, Case(("read", "insert"), "pessimistic"), "sees"),
        (LetsOvertake, Case(("update", "update"), "pessimistic"), "WAITING"),
        (
            KeepsWhatIsUndone,
            Case(("update", "update, undo, insert"), "optimistic"),
            "WriteConflictError",
        ),
        (refresh_snapshots, Case(("update", "read, update"), "optimistic"), "second time"),
        (forget_hidden_inserts, Case(("insert", "overwrite"), "pessimistic"), "commit_txn"),
        (let_updates_pass_deletes, Case(("update", "delete"), "optimistic"), "commit_txn"),
    ],
)
def test_what_is_broken_is_found(broken, case, said, monkeypatch):
    store = DictStore
    if isinstance(broken, type):
        store = broken
    else:
        broken(monkeypatch)
    with pytest.raises(AssertionError, match=said):
        every_order(case.scripts(), store)
