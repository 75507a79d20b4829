"""A small model: the possible states of a session and its tables after some of its calls failed.

A fault leaves more than one possibility: the statement happened, or it did not, or the transaction
can only be rolled back. So the model is a set of worlds. Each step makes new worlds from each
world. Worlds that do not agree with what is seen are removed. If no world is left, there is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fault_layer import Found, Rows, Step, Write

from acidsql.acid.table import TableName

Closed = frozenset[tuple[str, str]]  # an overwritten table and partition

CLOSED, BROKEN = "UNSUPPORTED_FEATURE.CHANGE_AFTER_OVERWRITE", "IN_FAILED_TRANSACTION"
NO_TXN, ACTIVE = "NO_ACTIVE_TRANSACTION", "ACTIVE_SQL_TRANSACTION"
UNKNOWN, GONE, NOT_OPEN = "COMMIT_OUTCOME_UNKNOWN", "TXN_ABORTED", "TXN_NO_SUCH_TRANSACTION"
WRONG, NO_SAVEPOINT = "CONSTRAINT_VIOLATION", "NO_SUCH_SAVEPOINT"
# The outcomes of a failed call. The first two also say that nothing of it was committed.
FAULTS = frozenset({"WRITE_FAILED", "METASTORE_UNAVAILABLE", "Interrupt", UNKNOWN})
_REFUSALS = {
    "broken": [BROKEN],
    "aborted": [GONE, BROKEN],
    "committed": [NOT_OPEN, "TRANSACTION_FAILED"],
}


@dataclass(frozen=True)
class Inside:
    """An open transaction, or one that its session believes to be open.

    Attributes:
        rows: The rows that it sees.
        closed: The partitions that it has overwritten.
        savepoints: The savepoints in order, each with the state to go back to.
        end: ``broken``: it can only be rolled back. ``aborted``: others have aborted it.
            ``committed``: the stop button was pressed after COMMIT had happened.
    """

    rows: Found
    closed: Closed = frozenset()
    savepoints: tuple[tuple[str, Inside], ...] = ()
    end: str = ""

    def savepoint(self, name: str) -> Inside:
        """The transaction with one more savepoint. An older savepoint of this name is replaced."""
        others = tuple(one for one in self.savepoints if one[0] != name)
        return replace(self, savepoints=(*others, (name, replace(self, savepoints=()))))

    def back_to(self, name: str) -> Inside | None:
        """The transaction as it was at a savepoint, without later savepoints; None if there is
        none."""
        names = [one for one, _ in self.savepoints]
        if name not in names:
            return None
        kept = self.savepoints[: names.index(name) + 1]
        return replace(kept[-1][1], savepoints=kept)


@dataclass(frozen=True)
class World:
    """One possibility: the committed rows, and the session's transaction."""

    committed: Found
    inside: Inside | None = None


def after(worlds: Iterable[World], step: Step, outcome: str, *, faulty: bool) -> set[World]:
    """The worlds that are possible after a step with this outcome.

    Args:
        worlds: The worlds before the step.
        step: The step.
        outcome: ``done``, the condition of an error, ``Interrupt`` or ``Crash``.
        faulty: Some of its calls failed.
    """
    found: set[World] = set()
    for world in worlds:
        found |= {then for said, then in _without_fault(world, step) if said == outcome}
        if faulty:
            found |= set(_with_fault(world, step, outcome))
    return found


def write(rows: Found, step: Write) -> Found:
    """The rows after a statement."""
    for table, new in step.rows:
        replaced = _places(table, new) if step.overwrite else frozenset()
        kept = [row for row in rows if (row[0], row[2]) not in replaced]
        rows = tuple(sorted([*kept, *((table.name, *row) for row in _stored(table, new))]))
    return rows


def _stored(table: TableName, rows: Rows) -> list[tuple[int, str]]:
    return [(value, partition if table.name == "p" else "1") for value, partition in rows]


def _places(table: TableName, rows: Rows) -> frozenset[tuple[str, str]]:
    return frozenset((table.name, partition) for _, partition in _stored(table, rows))


def _touched(step: Write) -> Closed:
    return frozenset(place for table, rows in step.rows for place in _places(table, rows))


def _without_fault(world: World, step: Step) -> Iterator[tuple[str, World]]:
    """The outcomes that a step can have without faults, each with the world after it."""
    inside = world.inside
    if step == "(beat)":
        yield "done", world
    elif step == "(close)":
        yield "done", World(world.committed)
    elif step == "(abort)":
        is_open = inside is not None and inside.end != "committed"
        yield "done", replace(world, inside=replace(inside, end="aborted")) if is_open else world
    elif inside is None:
        yield from _plain(world, step)
    elif step == "BEGIN":
        yield ACTIVE, world
    elif inside.end:
        yield from _ended(world, inside, step)
    elif isinstance(step, Write):
        if inside.closed & _touched(step):
            yield CLOSED, world
        elif step.fails:
            yield WRONG, world
        else:
            closed = inside.closed | (_touched(step) if step.overwrite else frozenset())
            then = replace(inside, rows=write(inside.rows, step), closed=closed)
            yield "done", replace(world, inside=then)
    elif step == "COMMIT":
        yield "done", World(inside.rows)
    elif step == "ROLLBACK":
        yield "done", World(world.committed)
    elif step.startswith("SAVEPOINT"):
        yield "done", replace(world, inside=inside.savepoint(step.split()[-1]))
    else:
        back = inside.back_to(step.split()[-1])
        yield ("done", replace(world, inside=back)) if back else (NO_SAVEPOINT, world)


def _plain(world: World, step: Step) -> Iterator[tuple[str, World]]:
    """A step while no transaction is open: a statement is a transaction of its own."""
    if isinstance(step, Write):
        yield (WRONG, world) if step.fails else ("done", World(write(world.committed, step)))
    elif step == "BEGIN":
        yield "done", replace(world, inside=Inside(world.committed))
    else:
        yield NO_TXN, world


def _ended(world: World, inside: Inside, step: Step) -> Iterator[tuple[str, World]]:
    """A transaction that has ended raises an error, and nothing changes."""
    over = World(world.committed)
    if step == "ROLLBACK" and inside.end != "committed":
        yield "done", over
        return
    # After the error that a committed transaction cannot be rolled back, a user runs all of it
    # again.
    for refusal in _REFUSALS[inside.end]:
        yield refusal, over if step in ("COMMIT", "ROLLBACK") else world
    if step == "COMMIT" and inside.end == "committed":
        yield "done", over
    elif isinstance(step, Write):
        return
    elif step.startswith("SAVEPOINT"):
        yield "done", replace(world, inside=inside.savepoint(step.split()[-1]))
    elif step.startswith("ROLLBACK TO"):
        back = inside.back_to(step.split()[-1])
        if back is None:
            yield NO_SAVEPOINT, world
        elif inside.end == "broken":
            yield "done", replace(world, inside=back)


def _with_fault(world: World, step: Step, outcome: str) -> Iterator[World]:
    """Further worlds that are possible if some calls of the step failed."""
    normal = dict(_without_fault(world, step))
    inside, changed = world.inside, normal.get("done", world)
    in_doubt = outcome in ("Interrupt", "Crash", UNKNOWN)
    if outcome == "Crash":
        yield World(world.committed)
        if inside is None or step == "COMMIT":
            yield World(changed.committed)
    elif outcome not in FAULTS and outcome not in normal:
        return
    elif step == "(close)":
        yield World(world.committed)
    elif inside is None:
        if outcome in FAULTS and step != "BEGIN":
            yield from [world, changed] if in_doubt else [world]
        elif outcome in FAULTS:
            yield world
    elif step == "COMMIT":
        yield from _commit_failed(world, inside, changed, outcome)
    elif step == "ROLLBACK":
        if outcome in FAULTS:
            yield from (world, World(world.committed))
    elif isinstance(step, Write) or step.startswith(("ROLLBACK TO", "SAVEPOINT")):
        if outcome == "done":
            return
        # The statement may raise its own error although it could not be undone.
        yield from (world, replace(world, inside=replace(inside, end=inside.end or "broken")))
        if not isinstance(step, Write):
            yield changed


def _commit_failed(world: World, inside: Inside, changed: World, outcome: str) -> Iterator[World]:
    if outcome == UNKNOWN:
        yield from (changed, World(world.committed))
    elif outcome in FAULTS:
        yield world
    if outcome == "Interrupt":
        yield replace(changed, inside=replace(inside, end=inside.end or "committed"))
        yield World(world.committed)
        if inside.end:  # COMMIT was refused, and the transaction was about to be rolled back
            yield replace(world, inside=replace(inside, end="aborted"))
