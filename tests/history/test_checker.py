"""The checker itself: it finds each anomaly in the smallest history that has it, and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from checker import check
from history import FAIL, INFO, Append, Log, Read, Transaction, Undo, load

X, Y = ("x", 1), ("y", 1)
KEYS = {"x": X, "y": Y}


def txn(name: str, *said: Any, at: tuple[float, float | None] = (0, 9), **fields: Any):
    """``txn("A", "x+1", "y=1,2")`` appends 1 to x and reads y; a number is an Undo."""
    return Transaction(name, began=at[0], ended=at[1], operations=[*map(_parsed, said)], **fields)


def _parsed(said: Any) -> Append | Read | Undo:
    if isinstance(said, int):
        return Undo(said)
    key, sign, rest = re.fullmatch(r"(\w)([+=])([\d,|]*)", said).groups()
    if sign == "+":
        return Append(KEYS[key], int(rest))
    lists = [tuple(int(v) for v in part.split(",") if v) for part in rest.split("|")]
    return Read(KEYS[key], tuple(lists))


def kinds(*history):
    return sorted({anomaly.kind for anomaly in check(history)})


# ── anomalies ────────────────────────────────────────────────────────────────────────────────

FOUND = {
    "two rows of one key": (
        "lost update",
        [txn("A", "x+1"), txn("B", "x+2"), txn("R", "x=1|2")],
        "R found 2 rows [x/1]: (1) and (2)",
    ),
    "an append that is gone": (
        "lost update",
        [txn("A", "x+1", at=(0, 1)), txn("R", "x=", at=(2, 3))],
        "A has committed (1) to [x/1], and R, which began later, read ()",
    ),
    "a read that another append came after, before the reader's own": (
        "lost update",
        [txn("A", "x=", "x+1"), txn("B", "x=", "x+2"), txn("R", "x=1,2")],
        "B appended 2 to [x/1] after A's 1; B read [x/1] without A's 1",
    ),
    "an aborted append": (
        "G1a",
        [txn("A", "x+1", outcome=FAIL), txn("R", "x=1")],
        "R read [x/1] as (1): A, which appended 1, was aborted",
    ),
    "an undone append": (
        "G1a",
        [txn("A", "x+1", 0, "y+2"), txn("R", "x=1")],
        "A undid its 1",
    ),
    "a value from nowhere": ("garbage", [txn("R", "x=7")], "nobody appended 7"),
    "an append that took effect twice": (
        "duplicate",
        [txn("A", "x+1"), txn("R", "x=1,1")],
        "an append took effect twice",
    ),
    "half of a transaction": (
        "G1b",
        [txn("A", "x+1", "x+2"), txn("R", "x=1"), txn("S", "x=1,2")],
        "R read [x/1] as (1): A appended (2) in the same transaction",
    ),
    "appends in contrary orders": (
        "G0",
        [txn("A", "x+1", "y+2"), txn("B", "x+3", "y+4"), txn("R", "x=1,3", "y=4,2")],
        "appended 3 to [x/1] after A's 1",
    ),
    "two who see each other": (
        "G1c",
        [txn("A", "x+1", "y=2"), txn("B", "y+2", "x=1")],
        "A read [y/1] with B's 2",
    ),
    "one who appended before what she had read was there": (
        "G1c",
        [txn("A", "x+1", "y=2"), txn("B", "x+3", "y+2"), txn("R", "x=1,3")],
        "B appended 3 to [x/1] after A's 1",
    ),
    "one list before and one after a commit": (
        "G-single",
        [txn("A", "x+1", "y+2"), txn("R", "x=1", "y="), txn("S", "y=2")],
        "R read [y/1] without A's 2",
    ),
    "a part of a commit that nobody ever sees": (
        "G-single",
        [txn("A", "x+1", "y+2", at=(0, None), outcome=INFO), txn("R", "x=1", "y=")],
        "R read [y/1] without A's 2",
    ),
    "readers who see two commits in contrary orders": (
        "long fork",
        [
            txn("A", "x+1"),
            txn("B", "y+2"),
            txn("R", "x=1", "y="),
            txn("S", "x=", "y=2"),
            txn("Q", "x=1", "y=2"),
        ],
        "read [y/1] without B's 2",
    ),
    "a read of what is over": (
        "stale read",
        [txn("A", "x+1", at=(0, 1)), txn("R", "x=", at=(2, 3)), txn("S", "x=1", at=(0, 9))],
        "A had ended before R began",
    ),
    "a session whose snapshots go back": (
        "session went back",
        [
            txn("A", "x+1", at=(0, None), outcome=INFO),
            txn("R", "x=1", at=(1, 2), process="p"),
            txn("S", "x=", at=(3, 4), process="p"),
        ],
        "R had ended before S began",
    ),
    "a transaction that does not see its own append": (
        "internal",
        [txn("A", "x+1", "x=")],
        "A read [x/1] as () after it had appended (1)",
    ),
    "a transaction that sees its own append in the wrong place": (
        "internal",
        [txn("A", "x+1", "x=1,2"), txn("B", "x+2")],
        "after it had appended (1)",
    ),
    "a transaction that still sees what it has undone": (
        "G1a",
        [txn("A", "x+1", 0, "x=1")],
        "A undid its 1",
    ),
    "a read that does not repeat": (
        "internal",
        [txn("A", "x+1"), txn("R", "x=", "x=1")],
        "others' part as () before",
    ),
    "a read that does not repeat is a skew": (
        "G-single",
        [txn("A", "x+1"), txn("R", "x=", "x=1")],
        "R read [x/1] with A's 1; R read [x/1] without A's 1",
    ),
    "lists that do not agree": (
        "incompatible order",
        [txn("A", "x+1"), txn("B", "x+2"), txn("R", "x=1"), txn("S", "x=2")],
        "neither is the beginning of the other",
    ),
}


@pytest.mark.parametrize("kind, history, words", FOUND.values(), ids=FOUND)
def test_each_anomaly_is_found_and_explained(kind, history, words):
    found = [anomaly for anomaly in check(history) if anomaly.kind == kind]
    assert found, check(history)
    assert any(words in anomaly.text for anomaly in found), found


# ── none ─────────────────────────────────────────────────────────────────────────────────────

CLEAN = {
    "nothing": [],
    "appends and reads one after the other": [
        txn("A", "x=", "x+1", at=(0, 1)),
        txn("B", "x=1", "x+2", "x=1,2", at=(2, 3)),
        txn("R", "x=1,2", "y=", at=(4, 5)),
    ],
    "a reader of an older snapshot": [
        txn("A", "x+1", "y+2", at=(1, 2)),
        txn("R", "x=", "y=", at=(0, 9)),
        txn("S", "x=1", "y=2", at=(3, 4)),
    ],
    "two appends in one transaction": [txn("A", "x+1", "x+2"), txn("R", "x=1,2")],
    "an abort": [txn("A", "x+1", "x=1", outcome=FAIL), txn("R", "x=", at=(10, 11))],
    "an undone append": [
        txn("A", "x+1", "x=1", 0, "x=", "x+2"),
        txn("R", "x=2", at=(10, 11)),
    ],
    "unknown, and committed": [
        txn("A", "x+1", "y+2", at=(0, None), outcome=INFO),
        txn("R", "x=", at=(1, 2)),
        txn("S", "x=1", "y=2", at=(3, 4)),
    ],
    "unknown, and not committed": [
        txn("A", "x+1", "y+2", at=(0, None), outcome=INFO),
        txn("S", "x=", "y=", at=(3, 4)),
    ],
    "an aborted reader of a good snapshot": [
        txn("A", "x+1", "y+2"),
        txn("R", "x=1", "y=2", "x+3", outcome=FAIL),
        txn("S", "x=1", "y=2"),
    ],
}


@pytest.mark.parametrize("history", CLEAN.values(), ids=CLEAN)
def test_a_history_of_snapshot_isolation_has_no_anomaly(history):
    assert check(history) == []


def test_write_skew_is_snapshot_isolation_and_not_reported():
    """Both read both lists and append to one each. No serial order explains it; two snapshots do.
    Its circle has two rw facts one after the other; the one of ``long fork`` has not."""
    skew = [txn("A", "x=", "y=", "x+1"), txn("B", "x=", "y=", "y+2"), txn("R", "x=1", "y=2")]
    assert check(skew) == []


def test_a_read_only_transaction_may_see_write_skew_in_the_making():
    """Fekete's anomaly: three transactions, still snapshot isolation."""
    history = [
        txn("A", "x=", "y=", "x+1"),
        txn("B", "y=", "y+2", at=(0, 1)),
        txn("R", "x=", "y=2", at=(2, 3)),
        txn("S", "x=1", "y=2"),
    ]
    assert check(history) == []


def test_an_aborted_reader_of_a_bad_snapshot_is_an_anomaly_too():
    history = [txn("A", "x+1", "y+2"), txn("R", "x=1", "y=", outcome=FAIL), txn("S", "y=2")]
    assert kinds(*history) == ["G-single"]


def test_a_long_history_with_one_bad_read_has_one_anomaly():
    values = range(1, 301)
    history = [
        txn(f"A{v}", f"x={','.join(map(str, range(1, v)))}", f"x+{v}", at=(v, v + 0.5))
        for v in values
    ]
    everything = ",".join(map(str, values))
    history.append(txn("R", f"x={everything}", at=(301, 302)))
    assert check(history) == []
    history.append(txn("S", f"x={everything[:-4]}", at=(303, 304)))
    (anomaly,) = {anomaly.kind for anomaly in check(history)}
    assert anomaly in ("stale read", "lost update")


# ── logs ─────────────────────────────────────────────────────────────────────────────────────


def test_a_log_is_read_back_as_the_transactions_it_was_written_of(tmp_path):
    log = Log(tmp_path / "log", "p")
    log.begin()
    log.append(X, 1)
    log.read(X, [[1]])
    log.undo(1)
    log.commit()
    log.end("ok")
    log.begin()
    log.append(X, 2)
    log.end("fail", "why")
    one, two = load(tmp_path / "log")
    assert (one.name, one.process, one.outcome) == ("p.1", "p", "ok")
    assert one.operations == [Append(X, 1), Read(X, ((1,),)), Undo(1)]
    assert one.began <= one.ended <= two.began <= two.ended
    assert (two.outcome, two.why, two.operations) == ("fail", "why", [Append(X, 2)])


def test_what_a_killed_process_leaves_is_aborted_before_its_commit_and_unknown_after(tmp_path):
    log = Log(tmp_path / "log", "p")
    log.begin()
    log.append(X, 1)
    assert [one.outcome for one in load(tmp_path / "log")] == ["fail"]
    log.commit()
    (left,) = load(tmp_path / "log")
    assert (left.outcome, left.ended) == ("info", None)
