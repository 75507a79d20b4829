"""LOAD DATA without LOCAL deletes the source files: at every moment their rows are somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_place import Deaths
from fault_points import Line, What
from fault_state import rows_of
from fault_world import World

pytestmark = pytest.mark.spark
LOAD = "LOAD DATA INPATH '{warehouse}/incoming' INTO TABLE t"
LOADED = {(21, "p"), (22, "q"), (23, "r")}
FILES = {"part-00000.orc", "part-00001.orc"}


def loaded(world: World) -> set[tuple[int, str]]:
    return LOADED & set(rows_of(world.state(frozenset({"t"})), "t"))


def waiting(world: World) -> set[str]:
    return {path.name for path in (world.warehouse / "incoming").glob("*.orc")}


def test_a_session_that_dies_at_any_moment_loses_no_file(world: World, copies: Path) -> None:
    world.reset()
    deaths = Deaths(world, copies)
    assert world.run(LOAD, Line(watch=deaths)) == "done"
    deaths(0, "the end")
    seen = []
    for at, name, copy in deaths.found:
        world.put_back(copy)
        world.time_out()
        rows, files = loaded(world), waiting(world)
        # All rows or none are in the table. While there are none, every source file is in its
        # place.
        assert rows in (set(), LOADED), f"before call {at}, {name}"
        assert rows or files == FILES, f"before call {at}, {name}"
        seen.append((bool(rows), len(files)))
    assert seen[0] == (False, 2)
    assert seen[-1] == (True, 0)
    assert (True, 2) in seen, "it was committed before anything was deleted"


@pytest.mark.parametrize("what", [What.ERROR, What.OUTAGE, What.INTERRUPT], ids=lambda w: w.name)
@pytest.mark.parametrize("lost", [False, True])
def test_a_call_that_fails_at_any_point_loses_no_file(world: World, what: What, lost: bool) -> None:
    world.reset()
    line = Line()
    assert world.run(LOAD, line) == "done"
    calls = len(line.calls)
    for at in range(1, calls + 1):
        world.reset()
        line = Line(at=at, what=what, lost=lost)
        outcome = world.run(LOAD, line)
        world.time_out()
        rows, files = loaded(world), waiting(world)
        assert rows in (set(), LOADED), line.failed
        assert rows or files == FILES, (outcome, line.failed)
        if outcome == "done":
            assert rows, line.failed
