"""Which older snapshots can still be read, by a table of cases and by random histories."""

from __future__ import annotations

import random

import pytest

from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.metastore.older_versions import is_kept


def ids(mark: int, open_ids: tuple[int, ...] = (), aborted: tuple[int, ...] = ()):
    return ValidWriteIdList(mark, open_ids, aborted)


@pytest.mark.parametrize(
    ("shown", "oldest", "now", "kept"),
    [
        # Nothing was deleted, or only what older versions need.
        (ids(0), 0, ids(0), True),
        (ids(4), 4, ids(9), True),
        (ids(4, (), (4,)), 4, ids(9, (), (4,)), True),
        # A compaction up to 5, or a drop by 5: all was decided by then.
        (ids(4), 5, ids(5), False),
        (ids(6, (3,)), 5, ids(6), False),
        (ids(6, (3,)), 5, ids(6, (), (3,)), False),
        # A drop by 5, while 3 was open, and it still is.
        (ids(5, (3,)), 5, ids(5, (3,)), True),
        (ids(7, (3, 6)), 5, ids(9, (3,)), True),
        (ids(4, (3,)), 5, ids(5, (3,)), False),
        (ids(5, (3, 5)), 5, ids(5, (3,)), False),
        # … and 4 may be another drop, or may have been rolled back.
        (ids(5, (3, 4)), 5, ids(5, (3,)), False),
        (ids(5, (3, 4)), 5, ids(5, (3,), (4,)), True),
        # … and a base up to 2 may have been cleaned.
        (ids(5, (2, 3)), 5, ids(5, (3,)), False),
        (ids(1), 5, ids(5, (3,)), False),
        # A transaction sees its own write id, which is open for all others.
        (ids(5), 5, ids(5, (3,)), True),
        # 3 was committed, and compacted, before the question.
        (ids(5, (3,)), 5, ids(5), False),
    ],
)
def test_a_snapshot_is_kept_if_it_lacks_nothing_that_a_deletion_needs(shown, oldest, now, kept):
    assert is_kept(shown, oldest, now) is kept


class Table:
    """What happens to a table: it remembers each deletion."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.mark, self.open, self.aborted = 0, set(), set()
        self.bases, self.drops, self.snapshots = [], [], [ids(0)]

    @property
    def now(self) -> ValidWriteIdList:
        return ids(self.mark, tuple(self.open), tuple(self.aborted))

    @property
    def oldest(self) -> int:
        return max([0, *self.bases, *self.drops])

    def happens(self) -> None:
        what = self.chance.choice(["begin", "begin", "commit", "drop", "abort", "clean", "look"])
        if what == "begin":
            self.mark += 1
            self.open.add(self.mark)
        elif what == "clean":
            self.bases.append(self.now.complete_up_to)
        elif what == "look":
            self.snapshots.append(self.now)
            some = self.chance.sample(range(self.mark + 1), min(self.mark, 2))
            self.snapshots.append(self.now.up_to(max(some, default=0)).hide(some[:1]))
        elif self.open:
            number = self.chance.choice(sorted(self.open))
            self.open.discard(number)
            if what == "abort":
                self.aborted.add(number)
            elif what == "drop":
                self.drops.append(number)

    def can_be_read(self, shown: ValidWriteIdList) -> bool:
        """It can use every base for which files were deleted, and shows every drop."""
        has_bases = all(shown.is_base_valid(base) for base in self.bases if base)
        return has_bases and all(shown.is_valid(number) for number in self.drops)


def test_no_snapshot_that_lacks_files_is_read_and_that_of_now_always_is():
    read, refused = 0, 0
    for seed in range(200):
        table = Table(seed)
        for _ in range(25):
            table.happens()
            assert is_kept(table.now, table.oldest, table.now)
            for shown in table.snapshots:
                if is_kept(shown, table.oldest, table.now):
                    assert table.can_be_read(shown), (seed, shown, table.bases, table.drops)
                    read += 1
                else:
                    refused += not table.can_be_read(shown)
    assert read > 1000 and refused > 1000
