"""AUTO CDC dies, fails or is stopped at any call, as in ``test_crash`` and ``test_errors``.

It runs only with ``ACIDSQL_FAULTS=all``: AUTO CDC writes and commits as a multi-insert does, and
Spark answers more of its questions anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fault_replay
import pytest
import test_crash
import test_errors
from fault_statements import Kind
from fault_world import World

from acidsql.plan.cdc import state
from acidsql.statements.cdc import evaluation
from acidsql.storage.writing.staging import EvaluatedRows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not test_crash.ALL, reason="only with ACIDSQL_FAULTS=all"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_SOURCE = "(SELECT id, v, CAST(id AS BIGINT) AS n, id = 3 AS gone, id = 2 AS every FROM s)"
_PROBE = "INSERT INTO d VALUES (99)"
KINDS = [
    Kind(
        "auto_cdc",
        f"AUTO CDC INTO d FROM {_SOURCE} KEYS (id) "
        "APPLY AS DELETE WHEN gone SEQUENCE BY n COLUMNS (id)",
        _PROBE,
    ),
    Kind(
        "truncation",
        f"AUTO CDC INTO d FROM {_SOURCE} KEYS (id) APPLY AS DELETE WHEN gone "
        "APPLY AS TRUNCATE WHEN every SEQUENCE BY n COLUMNS (id)",
        _PROBE,
    ),
    Kind(
        "history",
        f"AUTO CDC INTO h FROM {_SOURCE} KEYS (id) APPLY AS DELETE WHEN gone SEQUENCE BY n "
        "COLUMNS (id, v) STORED AS SCD TYPE 2",
        "INSERT INTO h VALUES (99, 'probe', 1, NULL)",
    ),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


class _Noon:
    @staticmethod
    def now(_: object) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state table notes the time. Runs at different times must leave the same rows."""
    monkeypatch.setattr(state, "datetime", _Noon)
    monkeypatch.setattr(evaluation, "evaluate", _evaluated)


@contextmanager
def _evaluated(
    rows: Any, location: str, txn_id: int, *_: Any, **__: Any
) -> Iterator[EvaluatedRows]:
    with fault_replay._staged(rows, location, txn_id) as kept:
        yield EvaluatedRows(kept)


@each_kind
def test_a_session_that_dies_leaves_both_tables_before_or_after(
    world: World, kind: Kind, copies: Path
) -> None:
    test_crash.test_a_session_that_dies_at_any_moment_leaves_the_state_before_or_after(
        world, kind, copies
    )


@each_kind
def test_where_a_call_fails_nothing_happened_and_the_session_goes_on(
    world: World, kind: Kind
) -> None:
    test_errors.test_where_a_call_fails_nothing_happened_and_the_session_goes_on(world, kind)


@each_kind
def test_where_a_reply_is_lost_the_statement_happened_or_did_not(world: World, kind: Kind) -> None:
    test_errors.test_where_a_reply_is_lost_the_statement_happened_or_did_not(world, kind)


@each_kind
@pytest.mark.parametrize("lost", [False, True], ids=["before", "after"])
def test_the_stop_button_leaves_both_tables_before_or_after(
    world: World, kind: Kind, lost: bool
) -> None:
    test_errors.test_the_stop_button_leaves_the_state_before_or_after(world, kind, lost)
