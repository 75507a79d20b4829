"""The transaction layer without Spark: at every call of every step, the call fails, its reply is
lost, or the session dies.

``fault_worlds`` says which states are possible then; all later steps must agree with one of them.
``ACIDSQL_FAULTS=all`` tries every fault at every call with all possible next steps. By default they
take turns. ``ACIDSQL_FAULT_EXAMPLES`` sets the number of random sessions; with more than the
default number they differ from run to run.
"""

from __future__ import annotations

import dataclasses
import itertools
import os

import pytest
from fault_checked import Checked
from fault_layer import P, Step, T, Write, insert
from fault_place import Deaths
from fault_points import Line, What
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"
FAULTS = (
    *itertools.product((What.ERROR, What.INTERRUPT, What.OUTAGE), (False, True)),
    (What.LATE, False),
)
EXAMPLES = int(os.environ.get("ACIDSQL_FAULT_EXAMPLES", "80"))


def overwrite(table, *values, partition="1"):
    return Write(insert(table, *values, partition=partition).rows, overwrite=True)


def both(value, *, fails=False):
    """One statement that writes to two tables, and to a new partition."""
    return Write(insert(T, value).rows + insert(P, value, partition=f"n{value}").rows, fails=fails)


SCRIPTS = {
    "savepoint": ("BEGIN", insert(T, 1), "SAVEPOINT a", both(2), "ROLLBACK TO a", insert(T, 3),
                  "COMMIT"),
    "commit": ("BEGIN", "SAVEPOINT a", insert(T, 1), "COMMIT"),
    "failing": ("BEGIN", insert(P, 1, partition="x"), both(2, fails=True), overwrite(T, 3),
                "COMMIT"),
    "rolled back": ("BEGIN", both(1), "(beat)", "ROLLBACK"),
    "closed": ("BEGIN", insert(T, 1), "(close)"),
    "alone": (both(1),),
    "alone and failing": (both(1, fails=True),),
}  # fmt: skip


def next_steps(script: tuple[Step, ...], number: int) -> dict[str, tuple[Step, ...]]:
    """The steps that may follow a failed step."""
    rest = script[number + 1 :]
    return {
        "it again, and the rest": (script[number], *rest),
        "the rest": rest,
        "all again": ("ROLLBACK", *script),
        "COMMIT": ("COMMIT", *script),
        "COMMIT after a heartbeat": ("(beat)", "COMMIT"),
        "a savepoint, and back to it": ("SAVEPOINT z", "ROLLBACK TO z", "COMMIT"),
        "back to the first savepoint": ("ROLLBACK TO a", "COMMIT"),
        "others abort it": ("(abort)", script[number], *rest),
    }


@pytest.mark.parametrize("name", SCRIPTS)
def test_whatever_fails_and_whatever_is_said_next_only_whole_statements_count(layer, name):
    script, turns = SCRIPTS[name], itertools.count()
    for number, line in faults_of(layer, script):
        then = list(next_steps(script, number).values())
        for steps in then if ALL else [then[next(turns) % len(then)]]:
            run = Checked(layer)
            for step in script[:number]:
                run.do(step, look=False)
            run.do(script[number], dataclasses.replace(line, calls=[]))
            for step in steps:
                run.do(step)
            run.end()


def faults_of(layer, script):
    """The number of the step that fails, and the line that makes it fail."""
    layer.reset()
    turn = 0
    for number, step in enumerate(script):
        line = Line()
        layer.run(step, line, same_session=number > 0)
        placing = ("rename", "copy_file")
        placed = [at for at, name in enumerate(line.calls, 1) if name.startswith(placing)]
        for at, name in enumerate(line.calls, 1):
            # At COMMIT all faults are tried, with all next steps. The other calls fail in one way
            # each. Calls that only prepare a statement's files are mostly left out.
            prepares = "_tmp" in name and at < max(placed, default=0)
            is_commit = name == "store.commit_txn" and script is SCRIPTS["commit"]
            for _ in next_steps(script, number) if is_commit else [None]:
                for what, lost in FAULTS:
                    turn += 1
                    if what is What.LATE and layer.disk is None:
                        continue  # a disk puts nothing off
                    is_late = what is What.LATE and name.startswith("copy_file")
                    if ALL or is_commit or is_late or turn * 5 % (24 if prepares else 6) == 0:
                        yield number, Line(at, what, lost)


@pytest.mark.parametrize("name", SCRIPTS)
def test_after_a_death_at_any_moment_others_find_all_or_nothing(layer, copies, name):
    script = SCRIPTS[name]
    layer.reset()
    before, deaths = layer.rows(), Deaths(layer, copies)
    say_all(layer, script, deaths)
    deaths(0, "the end")
    once = layer.rows()
    say_all(layer, script)
    twice = layer.rows()
    for _, call, copy in deaths.found:
        layer.put_back(copy)
        found = layer.rows()
        assert found in (before, once), call
        layer.time_out()
        assert layer.is_at_rest(), call
        say_all(layer, script)
        assert layer.rows() == (once if found == before else twice), call


def say_all(layer, script, watch=None):
    for number, step in enumerate(script):
        layer.run(step, Line(watch=watch), same_session=number > 0)


values = st.integers(1, 9)
one_table = st.builds(
    lambda table, value, place: insert(table, value, partition=place).rows,
    st.sampled_from([T, P]), values, st.sampled_from(["1", "x", "y"]),
)  # fmt: skip
statements = st.builds(Write, one_table, st.booleans(), st.booleans()) | st.builds(
    lambda value, fails: both(value, fails=fails), values, st.booleans()
)
words = st.sampled_from(
    ["BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a",
     "ROLLBACK TO a", "ROLLBACK TO b", "(beat)", "(abort)"]
)  # fmt: skip
lines = st.builds(
    Line, st.integers(1, 6) | st.integers(1, 26), st.sampled_from(What), st.booleans()
)


@settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES <= 80,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(sequence=st.lists(
    st.tuples(statements | words, st.none() | st.none() | lines), min_size=3, max_size=9
))  # fmt: skip
def test_random_sessions_with_random_faults_see_and_leave_whole_statements(layer, sequence):
    run = Checked(layer)
    run.do("BEGIN")
    for step, found in sequence:
        run.do(step, dataclasses.replace(found, calls=[]) if found else None)
    run.end()
