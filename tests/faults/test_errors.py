"""A call fails, or the user presses the stop button, and the session lives on.

The statement fails with an error of acidsql and changes nothing; or, once the store has decided, it
succeeds, whatever fails after that. Its files are cleared away, its transaction has ended, and the
same session can run the statement again. ``ACIDSQL_FAULTS=all`` tries every call. By default every
fifth call is tried, and every call from COMMIT on.
"""

from __future__ import annotations

import os

import pytest
from fault_points import Line, What
from fault_state import leftovers
from fault_statements import BY_NAME, KINDS, Kind
from fault_world import Course, World

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"
# Statements that write in all the ways that exist. Others of their kinds take the same way.
_CHOSEN = (
    "insert_new_partitions", "update", "update_by_jobs", "delete", "delete_by_jobs",
    "update_few_partitions", "merge", "multi_insert", "overwrite_partition", "create_table",
    "create_temporary", "create_table_on_files", "create_partitioned_as_select", "replace_table",
    "replace_as_select", "replace_with_state_table", "drop_table", "add_partitions",
    "drop_partition", "rename_partition", "truncate", "add_columns", "rename", "create_database",
    "drop_database_cascade", "abort_transactions", "compact_minor", "compact_major",
)  # fmt: skip
SOME = KINDS if ALL else tuple(BY_NAME[name] for name in _CHOSEN)
# Calls that clear away. If one of these fails, files are left, and that is allowed.
_CLEARING = ("delete_directory", "delete_file", "remove_empty_directory", "list", "exists")
LOOKS = (
    "list(", "exists(", "size(", "open_input(", "store.get_", "store.valid_", "store.partitions",
    "store.pending_", "store.tables", "store.databases", "store.txn_state", "store.show_",
    "store.write_conflicts",
)  # fmt: skip
OURS = {"WRITE_FAILED", "METASTORE_UNAVAILABLE", "LOCK_ACQUIRE_TIMEDOUT"}


@pytest.mark.parametrize("kind", SOME, ids=str)
def test_where_a_call_fails_nothing_happened_and_the_session_goes_on(
    world: World, kind: Kind
) -> None:
    course = world.rehearse(kind)
    for at in _points(course):
        _error(world, kind, course, at)


@pytest.mark.parametrize("kind", SOME, ids=str)
def test_where_a_reply_is_lost_the_statement_happened_or_did_not(world: World, kind: Kind) -> None:
    course = world.rehearse(kind)
    for at in _points(course):
        _lost(world, kind, course, at)


@pytest.mark.parametrize("kind", SOME, ids=str)
@pytest.mark.parametrize("lost", [False, True], ids=["before", "after"])
def test_the_stop_button_leaves_the_state_before_or_after(
    world: World, kind: Kind, lost: bool
) -> None:
    course = world.rehearse(kind)
    for at in _points(course):
        _stop(world, kind, course, at, lost)


def _error(world: World, kind: Kind, course: Course, at: int) -> None:
    line = Line(at, What.ERROR)
    outcome = _fail(world, kind, line)
    assert outcome in OURS | {"done"}, f"{outcome} {line.failed}"
    expected = course.once[0].state if outcome == "done" else course.before
    assert world.sees(expected, _of(course, at)), f"{outcome} {line.failed}"
    if outcome != "done" and not line.calls[at - 1].startswith(_CLEARING):
        assert leftovers(world.warehouse) == [], line.failed
    _go_on(world, kind, course, line)


def _lost(world: World, kind: Kind, course: Course, at: int) -> None:
    line = Line(at, What.ERROR, lost=True)
    outcome = _fail(world, kind, line)
    assert outcome in OURS | {"done"}, f"{outcome} {line.failed}"
    if outcome == "done":
        assert world.sees(course.once[0].state, _of(course, at)), line.failed
    _go_on(world, kind, course, line)


def _stop(world: World, kind: Kind, course: Course, at: int, lost: bool) -> None:
    line = Line(at, What.INTERRUPT, lost)
    outcome = _fail(world, kind, line)
    # Within a write pyarrow is interrupted, and it raises an error of its own.
    allowed = ["Interrupt", "WRITE_FAILED"] if "write(" in line.failed else ["Interrupt"]
    assert outcome in [*allowed, "done"], f"{outcome} {line.failed}"
    _go_on(world, kind, course, line)


def _points(course: Course) -> list[int]:
    calls = course.calls
    commit = max((at for at, name in enumerate(calls, 1) if name == "store.commit_txn"), default=1)
    return [at for at in range(1, len(calls) + 1) if ALL or at % 5 == 1 or at >= commit]


def _of(course: Course, at: int) -> frozenset[str] | None:
    """The tables to check: always those that the statement touches, and now and then all."""
    return None if ALL or at % 10 == 1 else course.touched


def _fail(world: World, kind: Kind, line: Line) -> str:
    world.reset()
    outcome = world.run(kind, line)
    # If the reply with the transaction's number was lost, no session knows it: it times out.
    nobodys = line.lost and line.calls[line.at - 1] == "store.open_txn"
    assert world.open_txns() == [] or nobodys, line.failed
    return outcome


def _go_on(world: World, kind: Kind, course: Course, line: Line) -> None:
    """The state is before or after. Then the same session runs the statement, and another
    statement."""
    only = _of(course, line.at)
    is_before = world.sees(course.before, only) and not world.committed()
    assert is_before or world.sees(course.once[0].state, only), line.failed
    again, probed = course.once if is_before else course.twice
    allowed = kind.endings(again.outcome, happened=not is_before)
    assert world.run(kind, same_session=True) in allowed, line.failed
    assert world.sees(again.state, only), line.failed
    if ALL or line.at % 3 == 0:
        assert world.run(kind.probe, same_session=True) == probed.outcome, line.failed
        assert world.sees(probed.state, only), line.failed
