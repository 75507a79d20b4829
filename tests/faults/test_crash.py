"""The session dies at any one call: the table is as it was, or as it was to be, and goes on.

Each statement is run once to count its calls of files and store. Then it is run again for each of
them, on a fresh warehouse, and dies there. For everybody else, to die after a call is to die
before the next, and to die before a call that follows a mere look is to die before that look: by
default each such death is tried once, and one in 25 SQL statements inside the store.
``ACIDSQL_FAULTS=all`` tries every call, before and after, every SQL statement, and after each
death, instead of after one in three, the next statement of another kind.
"""

from __future__ import annotations

import os

import pytest
from fault_points import Line, What
from fault_statements import KINDS, Kind
from fault_world import Course, World

# Who dies closes no files.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LOOKS = (
    "list(", "exists(", "size(", "open_input(", "store.get_", "store.valid_", "store.partitions",
    "store.pending_", "store.tables", "store.databases", "store.txn_state", "store.show_",
)  # fmt: skip
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_session_that_dies_at_any_call_leaves_the_state_before_or_after(
    world: World, kind: Kind
) -> None:
    course = world.rehearse(kind)
    assert course.once[0].outcome == "done", course.once[0].outcome
    last = len(course.calls)
    for at in range(1, last + 1):
        if ALL or at == 1 or not course.calls[at - 2].startswith(LOOKS):
            _die_and_go_on(world, kind, course, Line(at, What.CRASH))
        if ALL or at == last:
            _die_and_go_on(world, kind, course, Line(at, What.CRASH, lost=True))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_session_that_dies_within_a_call_of_the_store_leaves_the_state_before_or_after(
    world: World, kind: Kind
) -> None:
    course = world.rehearse(kind)
    world.reset()
    line = Line(in_sql=True)
    world.run(kind.text, line)
    for at in range(1, len(line.calls) + 1, 1 if ALL else 25):
        _die_and_go_on(world, kind, course, Line(at, What.CRASH, in_sql=True))


def _die_and_go_on(world: World, kind: Kind, course: Course, line: Line) -> None:
    """Die on a fresh warehouse; look; after the time-out run the statement and another one."""
    # What the statement does not touch is looked into now and then.
    only = None if ALL or line.at % 10 == 1 else course.touched
    world.reset()
    assert world.run(kind.text, line) == "Crash", line.failed
    is_before = world.sees(course.before, only) and not world.committed()
    assert is_before or world.sees(course.once[0].state, only), line.failed
    world.clock.past_the_time_out()
    again, probed = course.once if is_before else course.twice
    assert world.run(kind.text) == again.outcome, line.failed
    assert world.sees(again.state, only), line.failed
    if not ALL and line.at % 3:
        return
    assert world.run(kind.probe) == probed.outcome, line.failed
    assert world.sees(probed.state, only), line.failed
