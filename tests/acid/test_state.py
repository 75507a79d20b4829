"""Which directories a snapshot reads: Hive's own vectors (hive-format.md §2.2), and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.acid.layout import base_name, delete_delta_name, delta_name, parse_directory
from acidsql.acid.state import Child, acid_state
from acidsql.acid.write_ids import ALL_TXNS, ValidTxnList, ValidWriteIdList
from acidsql.errors import FormatError

ALL = ValidWriteIdList(100)
OPEN_4 = ValidWriteIdList(100, open=(4,))


def state_of(names, write_ids=ALL, txns=ALL_TXNS):
    names = names.split() if isinstance(names, str) else names
    return acid_state(map(Child, names), write_ids, txns)


def expand(text):
    """``25_30 d63_63 62_62_3`` → directory names; ``d`` marks a delete delta, ``b`` a base."""
    found = []
    for word in text.split():
        kind = {"d": "delete_delta_", "b": "base_"}.get(word[0], "delta_")
        found.append(kind + word.lstrip("db"))
    return found


# Hive's TestAcidUtils: the children, those that are taken (in order), the obsolete ones, the write
# ids.
VECTORS = [
    ("25_25 29_29 25_30 50_100 101_101", "25_30 50_100", "25_25 29_29", ALL),
    ("b5 b10 b49 25_25 29_29 25_30 50_105 90_120", "b49 50_105", "b5 b10 25_25 25_30 29_29", ALL),
    ("b50 63_63 62_62 61_61 40_60 60_60 52_55", "b50 40_60 61_61 62_62 63_63", "52_55 60_60", ALL),
    (
        "b50 63_63_0 62_62_0 62_62_3 61_61_0 40_60 60_60_1 60_60_4 60_60_7 52_55 58_58",
        "b50 40_60 61_61_0 62_62_0 62_62_3 63_63_0",
        "52_55 58_58 60_60_1 60_60_4 60_60_7",
        ALL,
    ),
    ("1_1 2_5 4_4_1 4_4_3 101_101_1", "1_1 2_5", "4_4_1 4_4_3", OPEN_4),
    (
        "b5 b10 b49 25_30 d25_30 29_29 d29_29 50_105 d50_105 d110_110",
        "b49 d50_105 50_105",
        "b5 b10 25_30 d25_30 29_29 d29_29",
        ALL,
    ),
    (
        "b50 d64_64 63_63 62_62 61_61 40_60 d40_60 60_60 52_55 d52_55",
        "b50 d40_60 40_60 61_61 62_62 63_63 d64_64",
        "52_55 d52_55 60_60",
        ALL,
    ),
    ("40_60 d50_50", "40_60", "d50_50", ALL),
    (
        "1_1 2_5 d2_5 d3_3 4_4_1 4_4_3 101_101_1",
        "1_1 d2_5 2_5",
        "d3_3 4_4_1 4_4_3",
        OPEN_4,
    ),
    ("5_5_0 5_5_3 d5_5_2", "5_5_0 d5_5_2 5_5_3", "", ALL),
]


@pytest.mark.parametrize(("children", "taken", "obsolete", "write_ids"), VECTORS)
def test_hives_own_vectors(children, taken, obsolete, write_ids):
    state = state_of(expand(children), write_ids)
    base = [state.base.name] if state.base else []
    assert [*base, *(delta.name for delta in state.deltas)] == expand(taken)
    # A delta with invisible write ids only is never read. Hive's vectors do not say whether it is
    # obsolete.
    invisible = {name for name in expand(children) if parse_directory(name).min_write_id == 4}
    assert set(state.obsolete) - invisible == set(expand(obsolete)) - (
        invisible if write_ids is OPEN_4 else set()
    )


def test_a_compacted_base_needs_all_write_ids_below_it_decided():
    """Hive's compactor uses such lists: a base over an open write id would hide its delta."""
    assert ALL.is_base_valid(50)
    assert not ValidWriteIdList(100, open=(50,)).is_base_valid(50)
    assert not ValidWriteIdList(100, open=(4,)).is_base_valid(50)
    assert ValidWriteIdList(100, open=(60,), aborted=(4,)).is_base_valid(50)
    assert not ValidWriteIdList(49).is_base_valid(50)


def test_an_overwrites_base_is_read_over_an_open_write_id_but_a_compacted_one_is_not():
    children = [Child("base_0000050"), Child("delta_0000004_0000004_0000")]
    assert acid_state(children, OPEN_4, ALL_TXNS).base.name == "base_0000050"
    marked = [Child("base_0000050", is_compacted=True)]
    for compacted in (marked, [Child("base_0000050_v0000007")]):
        with pytest.raises(FormatError, match="files of this snapshot are gone") as error:
            acid_state(compacted, OPEN_4, ALL_TXNS)
        assert error.value.getCondition() == "ACID_NOT_ENOUGH_HISTORY"


def test_the_base_of_a_still_open_overwrite_is_not_read():
    """Hive 4 has a shortcut that reads it, which its locks make harmless. A reader must not copy
    that."""
    open_5 = ValidWriteIdList(5, open=(5,))
    state = state_of("base_0000005 delta_0000004_0000004_0000", open_5)
    assert state.base is None
    assert [delta.name for delta in state.deltas] == ["delta_0000004_0000004_0000"]


def test_the_base_of_an_aborted_overwrite_is_passed_over():
    state = state_of("base_0000005 delta_0000006_0000006_0000", ValidWriteIdList(6, aborted=(5,)))
    assert (state.base, state.aborted) == (None, ("base_0000005",))
    assert len(state.deltas) == 1


@pytest.mark.parametrize(
    ("txns", "base"), [(ALL_TXNS, 7), (ValidTxnList(9, open=(9,)), 3), (ValidTxnList(8), 3)]
)
def test_what_a_compaction_wrote_is_there_once_its_transaction_is(txns, base):
    state = state_of("base_0000003 base_0000007_v0000009", ALL, txns)
    assert state.base.min_write_id == base


def test_what_an_aborted_compaction_wrote_is_left_to_the_cleaner():
    aborted = ValidTxnList(9, aborted=(9,))
    names = "delta_0000001_0000005_v0000009 base_0000005_v0000009 delta_0000001_0000001_0000"
    state = state_of(names, ALL, aborted)
    assert state.base is None
    assert [delta.name for delta in state.deltas] == ["delta_0000001_0000001_0000"]
    assert set(state.aborted) == {"delta_0000001_0000005_v0000009", "base_0000005_v0000009"}


def test_of_two_bases_of_one_write_id_the_compacted_one_is_read():
    state = state_of("base_0000007 base_0000007_v0000009")
    assert (state.base.name, state.obsolete) == ("base_0000007_v0000009", ("base_0000007",))


def test_originals_are_read_only_without_a_base():
    children = [Child("000000_0", is_directory=False), Child("HIVE_UNION_SUBDIR_1")]
    state = acid_state(children, ALL, ALL_TXNS)
    assert state.originals == ("000000_0", "HIVE_UNION_SUBDIR_1")
    state = acid_state([*children, Child("base_-9223372036854775808_v0000002")], ALL, ALL_TXNS)
    assert (state.originals, len(state.obsolete)) == ((), 2)


def test_a_plain_file_named_like_a_delta_is_an_original():
    state = acid_state([Child("delta_1_1", is_directory=False)], ALL, ALL_TXNS)
    assert (state.originals, state.deltas) == (("delta_1_1",), ())


# ── properties ───────────────────────────────────────────────────────────────────────────────

write_id = st.integers(1, 12)


@st.composite
def directories(draw):
    kind = draw(st.sampled_from(["delta", "delete_delta", "range", "base"]))
    first, second = sorted((draw(write_id), draw(write_id)))
    if kind == "base":
        return base_name(first)
    if kind == "range":
        return f"{draw(st.sampled_from(['', 'delete_']))}delta_{first:07d}_{second:07d}"
    name = delta_name if kind == "delta" else delete_delta_name
    return name(first, draw(st.integers(0, 3)))


@st.composite
def snapshots(draw):
    mark = draw(st.integers(1, 12))
    hidden = draw(st.sets(st.integers(1, mark), max_size=3))
    opened = draw(st.sets(st.sampled_from(sorted(hidden)))) if hidden else set()
    return ValidWriteIdList(mark, tuple(opened), tuple(hidden - opened))


@given(st.lists(directories(), unique=True), snapshots(), st.randoms())
def test_the_order_of_the_listing_does_not_matter(names, write_ids, random):
    shuffled = random.sample(names, len(names))
    assert state_of(names, write_ids) == state_of(shuffled, write_ids)


@given(st.lists(directories(), unique=True), snapshots())
def test_nothing_is_both_read_and_thrown_away(names, write_ids):
    state = state_of(names, write_ids)
    read = {delta.name for delta in state.deltas} | ({state.base.name} if state.base else set())
    assert not read & {*state.obsolete, *state.aborted}
    assert read <= set(names)


@given(st.lists(directories(), unique=True), snapshots())
def test_no_delta_is_read_inside_a_wider_one_or_below_the_base(names, write_ids):
    state = state_of(names, write_ids)
    for one in state.deltas:
        assert state.base is None or one.max_write_id > state.base.min_write_id
        for other in state.deltas:
            begins_first = (other.min_write_id, -other.max_write_id)
            wider = begins_first < (one.min_write_id, -one.max_write_id)
            assert not (wider and other.max_write_id >= one.max_write_id) or (
                other.max_write_id == one.max_write_id and other.statement_id is not None
            )


@given(st.lists(st.tuples(write_id, st.integers(0, 3), st.booleans()), unique=True), snapshots())
def test_i1_without_compaction_each_visible_statement_is_read_exactly_once(writes, write_ids):
    names = {
        (delete_delta_name if deletes else delta_name)(number, statement): number
        for number, statement, deletes in writes
    }
    read = [delta.name for delta in state_of(list(names), write_ids).deltas]
    assert sorted(read) == sorted(n for n, number in names.items() if write_ids.is_valid(number))


@given(st.sets(write_id, min_size=2), st.data())
def test_a_minor_compaction_changes_no_write_id_that_is_read(ids, data):
    """I10 for directories: each visible write id is covered exactly once, before and after a
    compacted delta spans a run of deltas."""
    plain = [delta_name(number, 0) for number in ids]
    first, last = sorted((data.draw(st.sampled_from(sorted(ids))), data.draw(write_id)))
    after = state_of([*plain, f"delta_{first:07d}_{last:07d}"])
    covered = [
        number
        for number in ids
        for delta in after.deltas
        if delta.min_write_id <= number <= delta.max_write_id
    ]
    assert sorted(covered) == sorted(ids)
