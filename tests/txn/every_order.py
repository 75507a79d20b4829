"""Tries every interleaving of two scripts' store calls, and visits each state once.

Two orders of calls can lead to the same store, the same answers for both sides and the same demands
of the specification. Then they have the same future, so they are followed as one, and their number
is counted. So some hundred thousand orders are tried in a thousand steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dict_store import DictStore, said
from si_spec import Spec, alone, start
from two_scripts import FIRST, Event, Script, Side, T, as_rows, live

Scripts = tuple[Script, Script]
# How both scripts ended; which scripts have had to wait.
Ends = tuple[tuple[str, str], frozenset[str]]
# (a number for the answers so far, a call, its answer) → a number for the answers with this one
NUMBERS: dict[object, int] = {}


@dataclass
class State:
    """A state of two running transactions.

    Attributes:
        store: The store of both.
        spec: The specification, which says what the store must do.
        answers: For each side, the store's answers so far.
        told: For each side, a number that is equal for equal answers.
        sides: The state of each script; None: it has not begun.
        trace: Which side made which call. If several orders lead here, the trace of one of them.
    """

    store: Any
    spec: Spec
    answers: tuple[Any, Any] = ((), ())
    told: tuple[int, int] = (0, 0)
    sides: tuple[Side | None, Side | None] = (None, None)
    trace: tuple[str, ...] = ()

    def key(self) -> object:
        """A key that is equal for states with the same future."""
        return self.store.key(), self.spec.key(), self.told

    def copy(self) -> State:
        """The same state, on its own copy of the store."""
        return State(
            self.store.copy(), self.spec.copy(), self.answers, self.told, self.sides, self.trace
        )

    def enabled(self) -> list[int]:
        """The sides that can make a call. A side that waits for a lock tries again when the store
        has changed, or when the other side cannot go on either."""
        going = [number for number in (0, 1) if self._next(number) is not None]
        ready = [
            number
            for number in going
            if self._next(number) != "sleep" or not self.spec.must_wait(number)
        ]
        return ready or going

    def step(self, number: int) -> None:
        """Let a side make its next call, and check the answer and the rows that the side sees."""
        script, other = self.spec.scripts[number], self.sides[1 - number]
        others: list[Event] = other.events if other else []
        name = self._next(number)
        self.trace += (f"{script.who}.{name}",)
        try:
            side = script.step(self.store, self.answers[number], others)
            self.spec.hear(number, side.made)
            views = tuple(frozenset(view.items()) for view in side.views)
            expected = self.spec.halves[number].views
            assert views == expected, f"{script.who} sees {side.views}, not {expected}"
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter {' '.join(self.trace)}\nin {script}") from None
        _, answer = side.made
        self.answers = _with(self.answers, number, (*self.answers[number], answer))
        told = (self.told[number], name, said(answer))
        self.told = _with(self.told, number, NUMBERS.setdefault(told, len(NUMBERS) + 1))
        self.sides = _with(self.sides, number, side)

    def ends(self) -> Ends:
        """Check the rows that are left, and tell how both transactions ended."""
        valid = self.store.valid_write_ids(self.store.valid_txns(), [T])[T]
        first, second = self.sides
        assert first and second and first.end and second.end
        rows = as_rows(live([*FIRST, *first.events, *second.events], valid))
        assert rows == self.spec.rows, f"{rows} are left, not {self.spec.rows}\nin {self.trace}"
        names = [script.who for script in self.spec.scripts if f"{script.who}.sleep" in self.trace]
        return (first.end, second.end), frozenset(names)

    def is_serial(self) -> bool:
        """Whether the committed transactions, run one after the other, would have left the same
        rows."""
        pairs = zip(self.spec.scripts, self.sides, strict=True)
        done = [script for script, side in pairs if side and side.end == "committed"]
        for order in (done, done[::-1]):
            rows = start()
            for script in order:
                rows = alone(script, rows)
            if rows == self.spec.rows:
                return True
        return False

    def _next(self, number: int) -> str | None:
        side = self.sides[number]
        return side.next if side else "open_txn"


@dataclass
class Found:
    """The results of all orders of two scripts.

    Attributes:
        orders: The number of orders.
        steps: The number of calls that were made to try them.
        ends: The number of orders that ended in each way.
        not_serial: The orders whose rows no serial execution leaves.
    """

    orders: int = 0
    steps: int = 0
    ends: Counter[Ends] = field(default_factory=Counter)
    not_serial: int = 0


def every_order(
    scripts: Scripts, store: Callable[[], DictStore] = DictStore, *, merging: bool = True
) -> Found:
    """Try all orders of two scripts.

    Args:
        scripts: The two scripts.
        store: Makes their store.
        merging: False: follow each order separately, also if states are equal.
    """
    found, first = Found(), State(store(), Spec(scripts))
    layer: dict[object, tuple[State, int]] = {None: (first, 1)}
    while layer:
        below: dict[object, tuple[State, int]] = {}
        for state, ways in layer.values():
            enabled = state.enabled()
            if not enabled:
                found.orders += ways
                found.ends[state.ends()] += ways
                found.not_serial += 0 if state.is_serial() else ways
            for number in enabled:
                after = state if number == enabled[-1] else state.copy()
                after.step(number)
                found.steps += 1
                key = after.key() if merging else after.trace
                known, others = below.get(key, (after, 0))
                below[key] = (known, others + ways)
        layer = below
    return found


def _with(pair: tuple[Any, Any], number: int, value: Any) -> tuple[Any, Any]:
    return (value, pair[1]) if number == 0 else (pair[0], value)
