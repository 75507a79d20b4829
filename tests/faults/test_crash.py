"""The session dies at any moment: other sessions see the tables before or after, and can go on.

Each script (one statement, or a transaction of several) runs once. Before each call of files and
store, and before each SQL statement inside the store, the warehouse is copied if it has changed.
Such a copy is what a death at this moment leaves. In each copy, other sessions must see the state
before or the state after. When the time-out is over, another session runs the whole script, and
then a statement of another kind. By default, transactions of several statements are run again after
one death in three, and the other statement runs after one death in three. ``ACIDSQL_FAULTS=all``
does all of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fault_place import Deaths
from fault_points import Line
from fault_statements import KINDS, TRANSACTIONS, Kind
from fault_world import Course, World

pytestmark = pytest.mark.spark
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"


@pytest.mark.parametrize("kind", [*KINDS, *TRANSACTIONS], ids=str)
def test_a_session_that_dies_at_any_moment_leaves_the_state_before_or_after(
    world: World, kind: Kind, copies: Path
) -> None:
    course = world.rehearse(kind)
    assert course.once[0].outcome == "done", course.once[0].outcome
    world.reset()
    deaths = Deaths(world, copies)
    assert world.run(kind, Line(watch=deaths)) == "done"
    deaths(len(course.calls) + 1, "the end")
    for number, (at, name, copy) in enumerate(deaths.found):
        world.put_back(copy)
        _go_on(world, kind, course, number, f"before call {at}, {name}")


def _go_on(world: World, kind: Kind, course: Course, number: int, when: str) -> None:
    """Look. After the time-out another session runs the script, then another statement."""
    # Tables that the script does not touch are checked only now and then.
    only = None if ALL or number % 10 == 0 else course.touched
    is_before = world.sees(course.before, only) and not world.committed()
    assert is_before or world.sees(course.once[0].state, only), when
    again, probed = course.once if is_before else course.twice
    if ALL or len(kind.steps) == 1 or number % 3 == 0:
        world.clock.past_the_time_out()
        allowed = kind.endings(again.outcome, happened=not is_before)
        assert world.run(kind) in allowed, when
        assert world.sees(again.state, only), when
        if ALL or number % 3 == 0:
            assert world.run(kind.probe) == probed.outcome, when
            assert world.sees(probed.state, only), when
    world.time_out()
    assert world.is_at_rest(), when
