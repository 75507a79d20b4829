"""Is a batch the next one, a repeated one, or out of order?"""

from dataclasses import replace

import pytest

from acidsql.errors import StreamError
from acidsql.metastore.stream_rules import is_replay
from acidsql.metastore.streams import Batch, StreamEntry

LAST = Batch("app", 7, "db.t", "query", "run", "print")
ENTRY = StreamEntry(LAST, 812, 0, "u", "h")


def batch(version, run="run", **fields):
    return replace(LAST, version=version, run_id=run, **fields)


@pytest.mark.parametrize("first", [True, False])
def test_without_an_entry_any_batch_is_the_next(first):
    assert not is_replay(None, batch(7), first=first)
    assert not is_replay(None, batch(0), first=first)


def test_the_next_number_is_the_next_batch():
    assert not is_replay(ENTRY, batch(8), first=False)
    assert not is_replay(ENTRY, batch(8, run="new"), first=True)


def test_the_newest_batch_may_come_again_as_the_first_of_a_run():
    assert is_replay(ENTRY, batch(7, run="new"), first=True)
    assert is_replay(ENTRY, batch(7, run="new", fingerprint=""), first=True)


@pytest.mark.parametrize(
    ("condition", "given", "first"),
    [
        ("STREAM_TAKEN_OVER", batch(8, run="old"), False),
        ("STREAM_TAKEN_OVER", batch(7, run="old"), False),
        ("STREAM_REWOUND", batch(6, run="new"), True),
        ("STREAM_REWOUND", batch(3), False),
        ("STREAM_GAP", batch(9), False),
        ("STREAM_GAP", batch(10, run="new"), True),
        ("STREAM_GAP", batch(9, run="new", query_id="other"), True),
        ("STREAM_SHARED", batch(7, run="new", fingerprint="another"), True),
        ("STREAM_BATCH_REPEATED", batch(7), False),
        ("STREAM_BATCH_REPEATED", batch(7), True),
        ("STREAM_RESTARTED", batch(0, run="new", query_id="other"), True),
        ("STREAM_RESTARTED", batch(7, run="new", query_id="other"), True),
    ],
)
def test_any_other_batch_is_an_error_with_a_name(condition, given, first):
    with pytest.raises(StreamError) as caught:
        is_replay(ENTRY, given, first=first)
    error = caught.value
    assert error.getCondition() == condition
    assert error.getSqlState() == "55000"
    assert "{" not in str(error) and "db.t" in str(error)


def test_names_with_braces_are_shown_as_they_are():
    entry = replace(ENTRY, batch=replace(LAST, app_id="{x}"))
    with pytest.raises(StreamError, match=r"'\{x\}'"):
        is_replay(entry, replace(batch(9), app_id="{x}"), first=False)
