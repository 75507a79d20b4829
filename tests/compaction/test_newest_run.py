"""Which deltas a size-tiered minor compaction takes, and how much work that is over a long time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.acid.layout import AcidDirectory, DirectoryKind, compacted_delta_name, delta_name
from acidsql.acid.state import AcidState
from acidsql.compaction.decision import DirectorySizes, decide
from acidsql.metastore.compaction_queue import CompactionType
from acidsql.settings import Settings
from acidsql.storage.folding.newest_run import SIZE_RATIO, DeltaRun, newest_run
from acidsql.storage.tables.listing import EventFile, Listing, OriginalFiles

BOTH = (DirectoryKind.DELTA, DirectoryKind.DELETE_DELTA)


def directory(first, last, kind=DirectoryKind.DELTA, statement=None):
    named = compacted_delta_name(first, last) if statement is None else delta_name(first, statement)
    name = f"delete_{named}" if kind is DirectoryKind.DELETE_DELTA else named
    return AcidDirectory(name, kind, first, last, statement)


def listing_of(sized):
    """What a compactor sees of these directories, each with one file."""
    files = [EventFile(f"/t/{one.name}/bucket_00000", one, size) for one, size in sized]
    base = AcidDirectory("base_0000001", DirectoryKind.BASE, 1, 1)
    return Listing(
        "",
        (
            EventFile("/t/base_0000001/bucket_00000", base, 1 << 40),
            *(file for file in files if file.directory.kind is DirectoryKind.DELTA),
        ),
        tuple(file for file in files if file.directory.kind is DirectoryKind.DELETE_DELTA),
        state=AcidState(base, tuple(one for one, _ in sized)),
    )


@st.composite
def histories(draw):
    """Deltas as commits and compactions leave them: ranges with gaps, kinds, statements."""
    sized, last = [], 1
    for _ in range(draw(st.integers(1, 14))):
        first = last + draw(st.integers(1, 3))
        last = first + draw(st.sampled_from([0, 0, 0, 7]))
        kinds = draw(st.sampled_from([BOTH, BOTH[:1], BOTH[1:]]))
        statements = [None] if last > first else range(draw(st.integers(1, 3)))
        for statement in statements:
            for kind in kinds:
                size = draw(st.sampled_from([1, 3, 10, 100, 1000]))
                sized.append((directory(first, last, kind, statement), size))
    return sized


def steps_of(sized):
    """The directories by their range, the oldest first."""
    ranges = sorted({(one.min_write_id, one.max_write_id) for one, _ in sized})
    return [
        [(one, size) for one, size in sized if (one.min_write_id, one.max_write_id) == span]
        for span in ranges
    ]


def bytes_of(steps):
    return sum(size for step in steps for _, size in step)


def directories_of(steps):
    return [one for step in steps for one, _ in step]


def may_begin_at(steps, start, most):
    """Every older step is small beside all newer ones, or there would be too many directories."""
    for n in range(start, len(steps) - 1):
        newer = steps[n + 1 :]
        kinds = {one.kind for one in directories_of(newer)}
        too_many = len(directories_of(steps[: n + 1])) + len(kinds) > most
        if bytes_of(steps[n : n + 1]) > SIZE_RATIO * bytes_of(newer) and not too_many:
            return False
    return True


@given(histories(), st.integers(0, 12))
def test_it_is_the_longest_run_of_similar_deltas_up_to_the_newest(sized, most):
    steps = steps_of(sized)
    start = min(n for n in range(len(steps)) if may_begin_at(steps, n, most))
    run = newest_run(listing_of(sized), most)
    taken = directories_of(steps[start:])
    assert run == DeltaRun(
        min(one.min_write_id for one in taken),
        len(taken),
        bytes_of(steps[start:]),
        len(sized) - len(taken),
    )
    # It cuts no directory, and no pair of a delta and a delete_delta.
    assert all((one.min_write_id >= run.first) == (one.max_write_id >= run.first)
               for one, _ in sized)  # fmt: skip
    # What is left does not exceed the threshold, unless the results of all deltas do.
    kinds = {directory.kind for directory in taken}
    assert not run.directories_left or run.directories_left + len(kinds) <= most


@given(histories(), histories(), st.integers(0, 12))
def test_when_more_deltas_have_come_it_lies_around_what_was_taken_before_or_behind(
    sized, more, most
):
    """Two results that overlap would show rows twice."""
    run = newest_run(listing_of(sized), most)
    last = max(one.max_write_id for one, _ in sized)
    later = [
        (directory(one.min_write_id + last, one.max_write_id + last, one.kind, one.statement_id), n)
        for one, n in more
    ]
    again = newest_run(listing_of(sized + later), most)
    assert again.first <= run.first or again.first > last


def test_ranges_that_overlap_are_taken_together():
    """acidsql makes no such ranges; whoever did, no row may be read twice."""
    sized = [(directory(2, 6), 1000), (directory(4, 9), 1), (directory(10, 10, statement=0), 1)]
    assert newest_run(listing_of(sized), 10).first == 10
    sized[0] = (directory(2, 6), 1)
    assert newest_run(listing_of(sized), 10).first == 2


def test_loaded_files_have_bytes_too():
    sized = [(directory(2, 2, statement=0), 1), (directory(3, 3, statement=0), 1)]
    seen = listing_of(sized[1:])
    loaded = OriginalFiles(("/t/delta_0000002_0000002_0000/000000_0",), 2, 0, True, (100,))
    seen = Listing("", seen.data, (), (loaded,), AcidState(None, tuple(one for one, _ in sized)))
    assert newest_run(seen, 10) == DeltaRun(3, 1, 1, 1)


def test_without_deltas_there_is_no_run():
    assert newest_run(listing_of([]), 10) is None


def test_it_says_what_it_takes_and_what_it_leaves():
    sized = [(directory(2, 3), 5000), (directory(4, 4, statement=0), 1000)]
    assert str(newest_run(listing_of(sized), 10)) == (
        "the newest 1 of 2 directories, from write id 4 on, 1.0 kB: the next is more than 4 times "
        "as large"
    )
    assert str(newest_run(listing_of(sized), 0)) == "all 2 directories, 6.0 kB"


class Table:
    """A table to which a stream writes; the initiator's rules are asked after each batch."""

    def __init__(self, base, kinds, strategy):
        self.base, self.kinds = base, kinds
        self.settings = Settings.of({"acidsql.compactor.strategy": strategy})
        self.deltas: list[tuple[AcidDirectory, int]] = []
        self.came = self.written = self.most = 0

    def batch(self, write_id):
        self.deltas += [(directory(write_id, write_id, kind, 0), 1000) for kind in self.kinds]
        self.came += 1000 * len(self.kinds)
        self.most = max(self.most, len(self.deltas))
        all_bytes = sum(size for _, size in self.deltas)
        found = decide(DirectorySizes(self.base, all_bytes, len(self.deltas)), self.settings)
        if found.type is CompactionType.MAJOR:
            self.base += all_bytes
            self.written += self.base
            self.deltas = []
        elif found.type is CompactionType.MINOR:
            first = self.deltas[0][0].min_write_id
            if found.size_tiered:
                most = self.settings.compactor_delta_num_threshold
                first = newest_run(listing_of(self.deltas), most).first
            taken = [(one, size) for one, size in self.deltas if one.min_write_id >= first]
            self.deltas = self.deltas[: len(self.deltas) - len(taken)]
            for kind in self.kinds:
                merged = sum(size for one, size in taken if one.kind is kind)
                self.deltas.append((directory(first, write_id, kind), merged))
                self.written += merged


@pytest.mark.parametrize(
    ("base", "kinds", "as_hive", "tiered"),
    [
        (0, BOTH[:1], 30, 15),
        (10_000, BOTH[:1], 74, 17),
        (100_000, BOTH[:1], 432, 10),
        (100_000, BOTH, 864, 12),
    ],
)  # fmt: skip
def test_over_a_day_of_batches_the_work_stays_in_proportion(base, kinds, as_hive, tiered):
    for strategy, expected in (("hive", as_hive), ("size_tiered", tiered)):
        table = Table(base * 1000 * len(kinds), kinds, strategy)
        for write_id in range(2, 2 + 8640):
            table.batch(write_id)
        assert round(table.written / table.came) == expected
        assert table.most <= 12
