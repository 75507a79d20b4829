"""Faults outside of the session: others abort its transaction, or the power is cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fault_points import Line
from fault_power import Disk
from fault_statements import KINDS, TRANSACTIONS, Kind
from fault_world import Course, World

pytestmark = pytest.mark.spark
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"
REFUSALS = {"TXN_ABORTED", "IN_FAILED_TRANSACTION"}


@pytest.mark.parametrize("kind", TRANSACTIONS, ids=str)
def test_a_transaction_that_others_abort_at_any_moment_does_nothing_more(
    world: World, kind: Kind
) -> None:
    course = world.rehearse(kind)
    for at in _moments(course):
        world.reset()
        aborted: list[int] = []

        def abort(number: int, _name: str, at: int = at, aborted: list[int] = aborted) -> None:
            if number == at and not aborted:
                aborted += world.open_txns() or [0]
                for txn_id in world.open_txns():
                    world.theirs.abort_txn(txn_id, "ABORT TRANSACTIONS")

        outcome = world.run(kind, Line(watch=abort))
        _go_on(world, kind, course, at, outcome, happened=aborted == [0])


def _go_on(
    world: World, kind: Kind, course: Course, at: int, outcome: str, *, happened: bool
) -> None:
    when = f"aborted before call {at}, {course.calls[at - 1]}: {outcome}"
    assert world.session is not None
    if world.session.in_transaction:
        assert world.run("ROLLBACK", same_session=True) == "done", when
    if happened:  # no transaction was open yet
        assert outcome == "done", when
        assert world.sees(course.once[0].state, course.touched), when
        return
    assert outcome in REFUSALS or kind.steps[-1] == "ROLLBACK", when
    assert world.sees(course.before, course.touched), when
    assert world.is_at_rest(), when
    if ALL or at % 4 == 0:
        assert world.run(kind, same_session=True) == "done", when
        assert world.sees(course.once[0].state, course.touched), when


def _moments(course: Course) -> list[int]:
    """The first and the last call of each step, and some calls between them."""
    last = len(course.calls)
    ends = {*course.begins, *(begin + 1 for begin in course.begins), last}
    return [at for at in range(1, last + 1) if ALL or at in ends or at % 9 == 0]


@pytest.mark.parametrize("kind", (*KINDS, *TRANSACTIONS), ids=str)
def test_a_power_cut_after_the_end_takes_nothing_back_and_brings_nothing_back(
    world: World, kind: Kind, copies: Path
) -> None:
    course = world.rehearse(kind)
    world.reset()
    disk = world.disk = Disk(copies)
    try:
        assert world.run(kind) == "done"
    finally:
        world.disk = None
    disk.cut()
    assert world.sees(course.once[0].state)
    assert world.run(kind.probe) == course.once[1].outcome
    assert world.sees(course.once[1].state)
