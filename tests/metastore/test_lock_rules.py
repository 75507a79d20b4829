"""``lock_rules`` compared with the simplest way to compute the same."""

import itertools

import pytest
from hypothesis import given, settings, strategies
from lock_graph import has_as_much, in_circles, waits

from acidsql.metastore.interface import LockComponent, LockInfo, LockState, LockType
from acidsql.metastore.lock_rules import (
    LocksByObject,
    blockers,
    circle_in_words,
    find_circle,
    must_wait,
    overlaps,
)

THINGS = [
    (database, *inside)
    for database in ("d", "e")
    for inside in [(None, None), ("t", None), ("t", "p=1"), ("t", "p=2"), ("u", None)]
]
things = strategies.sampled_from(THINGS)
components = strategies.builds(
    lambda kind, thing: LockComponent(kind, *thing), strategies.sampled_from(LockType), things
)


@strategies.composite
def locks_of_transactions(draw):
    """Locks in the order of their numbers, in any state: more states than a store would allow.

    The transactions 1 and 2 may hold the locks of sessions, of which the others are statements.
    """
    found = []
    sessions = draw(strategies.lists(strategies.sampled_from([None, 1, 2]), min_size=3, max_size=3))
    session_of = dict(zip((3, 4, 5), sessions, strict=True))
    for lock_id in range(1, draw(strategies.integers(1, 8)) + 1):
        txn_id, state = draw(strategies.integers(1, 5)), draw(strategies.sampled_from(LockState))
        wanted = draw(strategies.lists(components, min_size=1, max_size=2))
        found += [
            lock_of(lock_id, txn_id, one, state, number, session_of.get(txn_id))
            for number, one in enumerate(wanted, 1)
        ]
    return found


def lock_of(lock_id, txn_id, component, state=LockState.WAITING, number=1, session=None):
    thing = (component.database, component.table, component.partition)
    who = (None, "u", "h", "")
    held = (state, component.lock_type, *who)
    return LockInfo(lock_id, number, txn_id, *thing, *held, session=session)


@given(strategies.lists(things, max_size=8), things)
def test_what_is_filed_by_thing_is_found_exactly_where_things_overlap(filed, asked):
    def lock(thing):
        return LockComponent(LockType.SHARED_READ, *thing)

    found = LocksByObject((lock(thing), number) for number, thing in enumerate(filed))
    expected = [n for n, thing in enumerate(filed) if overlaps(lock(thing), lock(asked))]
    assert sorted(found.overlapping(lock(asked))) == expected


@settings(max_examples=500)
@given(locks_of_transactions())
def test_a_circle_is_found_exactly_for_those_that_wait_for_themselves(locks):
    edges = waits(locks)
    doomed = in_circles(edges)
    for txn_id in {lock.txn_id for lock in locks}:
        circle = find_circle(txn_id, locks)
        assert bool(circle) is (txn_id in doomed)
        if circle:
            assert circle[0] == txn_id and len(set(circle)) == len(circle) > 1
            assert set(zip(circle, [*circle[1:], circle[0]], strict=True)) <= edges


@pytest.mark.parametrize("holder", [1, 9], ids=["the transaction", "its session"])
def test_who_has_as_much_already_waits_only_for_those_who_wait_for_him_anyway(holder):
    """So overtaking harms no waiter. All pairs of locks are tried, with all that may be between
    them."""
    every = [LockComponent(kind, *thing) for kind in LockType for thing in THINGS]
    overtaken = 0
    for had, wanted in itertools.product(every, every):
        held = lock_of(1, holder, had, LockState.ACQUIRED)
        again = lock_of(3, 1, wanted, session=9)
        for other in (lock_of(2, 2, one) for one in every):
            if not must_wait(again, other):
                continue
            overtakes = not blockers(again, LocksByObject((one, one) for one in (held, other)))
            assert overtakes is has_as_much(held, again)
            if overtakes:
                overtaken += 1
                assert must_wait(other, held) and must_wait(held, other)
    assert overtaken > 0


@pytest.mark.parametrize(
    "circle, victim, words",
    [
        ([3, 5], 5, "it waited for transaction 3 and transaction 3 for it"),
        ([5, 3], 5, "it waited for transaction 3 and transaction 3 for it"),
        (
            [2, 9, 4],
            9,
            "it waited for transaction 4, transaction 4 for transaction 2 and transaction 2 for it",
        ),
    ],
)
def test_a_circle_is_told_from_its_victims_side(circle, victim, words):
    assert circle_in_words(circle, victim) == f"deadlock: {words}"
