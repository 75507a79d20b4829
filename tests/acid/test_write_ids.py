"""Snapshots and their texts, compared with Hive's rules (hive-transactions.md §2.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.acid.write_ids import (
    ALL_TXNS,
    NONE_OPEN,
    Range,
    ValidTxnList,
    ValidWriteIdList,
)
from acidsql.errors import FormatError

# hwm 10; 4 and 9 open, 2 and 5 aborted
EXAMPLE = ValidWriteIdList(10, (4, 9), (2, 5), table="d.t")


@st.composite
def lists(draw):
    mark = draw(st.integers(0, 30))
    ids = st.integers(1, max(1, mark))
    hidden = sorted(draw(st.sets(ids, max_size=mark)))
    is_open = [draw(st.booleans()) for _ in hidden]
    return ValidWriteIdList(
        mark,
        tuple(one for one, flag in zip(hidden, is_open, strict=True) if flag),
        tuple(one for one, flag in zip(hidden, is_open, strict=True) if not flag),
        table="d.t",
    )


def test_i1_an_id_is_valid_up_to_the_mark_unless_it_is_an_exception():
    assert [n for n in range(1, 13) if EXAMPLE.is_valid(n)] == [1, 3, 6, 7, 8, 10]


def test_write_id_zero_is_valid_it_is_that_of_files_written_before_acid():
    assert EXAMPLE.is_valid(0)


def test_the_texts_are_hives():
    assert str(EXAMPLE) == "d.t:10:4:4,9:2,5"
    assert str(ValidWriteIdList(3, table="d.t")) == f"d.t:3:{NONE_OPEN}::"
    assert str(ValidTxnList(7, (6,), ())) == "7:6:6:"


def test_runs_of_ids_are_understood_as_hive_4_writes_them():
    assert ValidTxnList.parse("30:2:2,10-14:20-21").open == (2, 10, 11, 12, 13, 14)
    assert ValidTxnList.parse("30:2:2,10-14:20-21").aborted == (20, 21)


@given(lists())
def test_a_text_is_read_back_as_it_was(valid):
    assert ValidWriteIdList.parse(str(valid)) == valid


@given(lists())
def test_whether_any_id_is_valid_is_known_without_looking_at_each(valid):
    ids = range(1, valid.high_water_mark + 1)
    assert valid.is_any_valid is any(valid.is_valid(number) for number in ids)


@given(lists(), st.integers(0, 35), st.integers(0, 10))
def test_a_range_is_judged_as_its_ids_are(valid, first, length):
    ids = range(first, first + length + 1)
    found = {valid.is_valid(number) for number in ids}
    expected = {
        frozenset({True}): Range.ALL,
        frozenset({False}): Range.NONE,
        frozenset({True, False}): Range.SOME,
    }[frozenset(found)]
    assert valid.range_validity(ids[0], ids[-1]) is expected
    aborted = all(number in valid.aborted for number in ids)
    assert valid.is_range_aborted(ids[0], ids[-1]) is aborted


@pytest.mark.parametrize("number, usable", [(3, True), (4, False), (10, False)])
def test_a_base_is_usable_only_below_everything_open(number, usable):
    assert EXAMPLE.is_base_valid(number) is usable


def test_a_base_above_the_mark_is_not_usable():
    assert ValidWriteIdList(10).is_base_valid(10)
    assert not ValidWriteIdList(10).is_base_valid(11)


@pytest.mark.parametrize("text", ["", "7", "7:6:6", "7:6:6:x", "a:7:6:6", "7:6:6::"])
def test_a_text_that_is_no_snapshot_is_refused(text):
    """Hive reads the empty text as "everything is visible"."""
    with pytest.raises(FormatError):
        ValidTxnList.parse(text)


def test_without_a_snapshot_everything_is_visible():
    assert ALL_TXNS.is_valid(10**18)


def test_exceptions_are_sorted_once_however_often_directories_ask():
    snapshot = ValidWriteIdList(9, open=(7, 3), aborted=(5, 2))
    assert snapshot.exceptions == (2, 3, 5, 7)
    assert snapshot.exceptions is snapshot.exceptions
    assert [n for n in range(1, 12) if snapshot.is_valid(n)] == [1, 4, 6, 8, 9]
    assert [n for n in range(1, 12) if snapshot.is_aborted(n)] == [2, 5]
