"""A call fails in a transaction of several statements, and the session lives on.

Then a user does one of two things: run the failed statement again, and the rest; or ROLLBACK, and
run everything again. Both end in the right state, or a clear error says that only ROLLBACK is
possible. Until then no other session sees anything of the transaction.

All calls of BEGIN, ROLLBACK, COMMIT and of undoing are tried, and every ninth of the other calls,
with one kind of fault after the other. ``ACIDSQL_FAULTS=all`` tries all faults at all calls, in
both ways.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from fault_points import Line, What
from fault_state import leftovers
from fault_statements import TRANSACTIONS, Kind
from fault_world import Course, World
from test_errors import LOOKS, OURS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"
BROKEN, UNKNOWN = "IN_FAILED_TRANSACTION", "COMMIT_OUTCOME_UNKNOWN"
FAULTS = (
    (What.ERROR, False), (What.INTERRUPT, True), (What.ERROR, True), (What.OUTAGE, False),
    (What.INTERRUPT, False), (What.OUTAGE, True),
)  # fmt: skip


@pytest.mark.parametrize("kind", TRANSACTIONS, ids=str)
def test_after_any_fault_the_rest_or_all_of_it_again_ends_in_the_right_state(
    world: World, kind: Kind
) -> None:
    course = world.rehearse(kind)
    assert course.once[0].outcome == "done"
    for number, (at, what, lost) in enumerate(_faults(kind, course)):
        for again in (True, False) if ALL else (number % 2 == 0,):
            _Try(world, kind, course, Line(at, what, lost), again=again).run()


def _faults(kind: Kind, course: Course) -> Iterator[tuple[int, What, bool]]:
    turn = 0
    for at, name in enumerate(course.calls, 1):
        decisive = _is_decisive(kind, course, at)
        if not (ALL or decisive or at % 9 == 4):
            continue
        # A lost reply to a call that only reads is the same as a failed call.
        possible = [fault for fault in FAULTS if not (fault[1] and name.startswith(LOOKS))]
        turn += 1
        chosen = possible if ALL or decisive else [possible[turn % len(possible)]]
        yield from ((at, *fault) for fault in chosen)


def _is_decisive(kind: Kind, course: Course, at: int) -> bool:
    step = course.step(at)
    text = kind.steps[step]
    if text.startswith(("BEGIN", "COMMIT", "ROLLBACK", "(")):
        return True
    # The last calls of a statement that must fail undo it.
    ends = [*course.begins, len(course.calls)][step + 1]
    return " -- " in text and at > ends - 4


class _Try:
    """One fault in one script, and the steps after it."""

    def __init__(
        self, world: World, kind: Kind, course: Course, line: Line, *, again: bool
    ) -> None:
        self.world, self.kind, self.course, self.line, self.again = world, kind, course, line, again
        self.only = None if ALL or line.at % 10 == 1 else course.touched
        self.story = ""

    def run(self) -> None:
        self.world.reset()
        outcome = self.world.run(self.kind, self.line)
        self.story = f"{self.line.failed} ({self.line.what.value}): {outcome}"
        if outcome == "done":
            self._need_state(once=True)
            self._all_again(once=True)
            return
        ours = OURS | {BROKEN, UNKNOWN, "Interrupt"} | self._own_errors()
        assert outcome in ours, self.story
        if self._happened(outcome):
            self._hear_of_it()
        elif self.again and self._in_transaction():
            self._rest()
        else:
            self._roll_back()

    def _happened(self, outcome: str) -> bool:
        """Whether the script has happened. Ask the store if the outcome is unknown; otherwise it
        must not have."""
        doubt = outcome in (UNKNOWN, "Interrupt") and self._step() == "COMMIT"
        if not doubt:
            self._need_state(once=False)
            return False
        session = self.world.session
        assert session is not None
        assert outcome == "Interrupt" or self.line.what is What.OUTAGE, self.story
        self.world._line = session.metastore._line = Line()
        state = session.txn_state(self.world.newest())
        assert state in ("open", "committed", "aborted"), self.story
        self._need_state(once=state == "committed")
        return state == "committed"

    def _hear_of_it(self) -> None:
        """The stop button came too late: the user says COMMIT again, and COMMIT succeeds."""
        if self._in_transaction():
            assert self.world.run("COMMIT", same_session=True) == "done", self.story
        self._need_state(once=True)
        self._end()

    def _rest(self) -> None:
        """Run the failed statement again, and the rest."""
        outcome = self.world.run(self.kind, same_session=True, start=self.world.stopped)
        self.story += f"; again: {outcome}"
        if outcome == "done":
            self._need_state(once=True)
            self._end()
            return
        assert outcome == BROKEN, self.story
        self._need_state(once=False)
        self._roll_back()

    def _roll_back(self) -> None:
        """ROLLBACK, and run everything again."""
        if self._in_transaction():
            assert self.world.run("ROLLBACK", same_session=True) == "done", self.story
        self._need_state(once=False)
        if self.line.what is What.ERROR and not self.line.failed.startswith("delete"):
            assert leftovers(self.world.warehouse) == [], self.story
        self._end()
        if ALL or self.line.at % 4 == 0:
            self._all_again(once=False)

    def _all_again(self, *, once: bool) -> None:
        expected = self.course.twice if once else self.course.once
        self.world.clock.past_the_time_out()  # BEGIN or ROLLBACK may not have reached the store
        assert self.world.run(self.kind, same_session=True) == expected[0].outcome, self.story
        assert self.world.sees(expected[0].state, self.only), self.story

    def _end(self) -> None:
        assert not self._in_transaction(), self.story
        self.world.time_out()
        assert self.world.is_at_rest(), self.story

    def _need_state(self, *, once: bool) -> None:
        expected = self.course.once[0].state if once else self.course.before
        assert self.world.sees(expected, self.only), f"{self.story}, seen after: {once}"

    def _in_transaction(self) -> bool:
        assert self.world.session is not None
        return self.world.session.in_transaction

    def _step(self) -> str:
        return self.kind.steps[self.world.stopped]

    def _own_errors(self) -> set[str]:
        return {step.partition(" -- ")[2] for step in self.kind.steps} - {""}
