"""At some call the file system says that a file or directory is missing.

A reader gets the right rows or an error, and a statement happens wholly or not at all.
``ACIDSQL_FAULTS=all`` tries every call of every statement. By default every call of reads is tried,
and every second call of some writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from fault_points import Line, What
from fault_statements import BY_NAME, KINDS, Kind
from fault_world import World

from acidsql.errors import AcidSqlError
from acidsql.storage.files.filesystem import wrap_filesystems

pytestmark = pytest.mark.spark
ALL = os.environ.get("ACIDSQL_FAULTS") == "all"
_CHOSEN = (
    "insert_new_partitions", "update_partitions", "update_by_jobs", "delete", "merge",
    "overwrite_partition", "load", "drop_partition", "drop_table", "compact_major",
    "compact_minor", "insert_only_overwrite", "create_table_on_files",
)  # fmt: skip
SOME = KINDS if ALL else tuple(BY_NAME[name] for name in _CHOSEN)
# Calls for which a missing file is a fault. To delete a missing file is none.
_ASKS = (
    "list(", "exists(", "size(", "open_input(", "rename(", "rename_file(", "delete_file(",
    "remove_empty_directory(", "sync_directory(",
)  # fmt: skip
# Conditions of acidsql that say what has happened; the outcome is never "done" with other rows.
_OURS = {"WRITE_FAILED", "ACID_NOT_ENOUGH_HISTORY", "LOAD_DATA_PATH_NOT_EXISTS"}
# If CREATE TABLE … LOCATION does not find the directory, it makes one: that is no error.
_MAY_BE_MISSING = {"create_table_on_files": "found)", "create_table_on_sparks_files": "incoming)"}
_READS = ("SELECT * FROM t", "SELECT * FROM p", "SELECT * FROM m", "SELECT * FROM c")


@pytest.mark.parametrize("text", _READS)
def test_a_reader_gets_the_right_rows_or_an_error(world: World, text: str) -> None:
    world.reset()
    world.run("BEGIN")  # opens a session
    line = Line()
    whole = _rows(world, text, line)
    outcomes = []
    for at in _points(line.calls):
        try:
            found = _rows(world, text, Line(at, What.GONE))
        except AcidSqlError as error:
            assert error.condition in _OURS, line.calls[at - 1]
            outcomes.append(error.condition)
        else:
            assert found == whole, line.calls[at - 1]
    assert outcomes


@pytest.mark.parametrize("kind", SOME, ids=str)
def test_a_statement_happens_wholly_or_not_at_all(world: World, kind: Kind) -> None:
    course = world.rehearse(kind)
    points = list(_points(course.calls))
    for at in points if ALL else points[::2]:
        line = Line(at, What.GONE)
        if course.calls[at - 1].endswith(_MAY_BE_MISSING.get(kind.name, "nothing")):
            continue
        world.reset()
        outcome = world.run(kind, line)
        assert outcome in _OURS | {"done"}, f"{outcome} {line.failed}"
        is_done = outcome == "done" or world.committed()
        expected = course.once[0].state if is_done else course.before
        assert world.sees(expected, course.touched), f"{outcome} {line.failed}"


def _rows(world: World, text: str, line: Line) -> list[Any]:
    world._line = line
    assert world.session is not None
    with wrap_filesystems(world.wrap):
        return sorted(world.session.sql(text).collect())


def _points(calls: list[str]) -> Iterator[int]:
    return (at for at, name in enumerate(calls, 1) if name.startswith(_ASKS))
