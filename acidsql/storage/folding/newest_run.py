"""Which deltas a size-tiered minor compaction takes: the newest ones, of similar size.

Hive's minor compaction merges all deltas whenever there are more than ten. A stream adds a small
delta every few seconds, and each time the rows of all deltas since the last major compaction are
written again: the work grows with the square of their number. A size-tiered compaction leaves an
older delta alone while it is much larger than all newer ones together (as Cassandra's
SizeTieredCompactionStrategy and RocksDB's universal compaction do). How many bytes all compactions
write for each byte that comes, with a delta every 10 seconds, and Hive's thresholds:

    ==========================================  ===========  ===========
    the table                                   Hive's rule  size-tiered
    ==========================================  ===========  ===========
    empty at first, a day (8,640 deltas)                 30           15
    empty at first, a week (60,480)                     152           19
    a base as large as 10,000 deltas, a day              74           17
    a base as large as 100,000 deltas, a day            432           10
    the same, each time with a delete_delta             864           12
    ==========================================  ===========  ===========

By both rules there are never more than 12 directories beside the base.

Results of two compactions must lie one in the other, or apart. If they overlapped, readers would
take both. So a compaction takes whole directories, up to the newest. If the same rule chooses again
when more deltas have come, it begins at the same delta, at an older one, or behind all that were
taken before. Of the other compactions see ``compact.rename_dead_staging``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from acidsql.acid.layout import DirectoryKind
from acidsql.storage.files.sizes import size_text
from acidsql.storage.tables.listing import Listing

SIZE_RATIO = 4


@dataclass(frozen=True, slots=True)
class DeltaRun:
    """The deltas that a size-tiered minor compaction takes: all from a write id on.

    Attributes:
        first: The lowest write id.
        directories: The number of directories.
        bytes: The bytes of their files.
        directories_left: The number of older deltas and delete deltas, which stay.
    """

    first: int
    directories: int
    bytes: int
    directories_left: int

    def __str__(self) -> str:
        """Return a text for people: how many directories, of how many, how many bytes they have,
        and, unless these are all, the first write id and why the next delta stays.
        """
        if not self.directories_left:
            return f"all {self.directories} directories, {size_text(self.bytes)}"
        share = f"{self.directories} of {self.directories + self.directories_left} directories"
        return (
            f"the newest {share}, from write id {self.first} on, {size_text(self.bytes)}: "
            f"the next is more than {SIZE_RATIO} times as large"
        )


@dataclass(slots=True)
class _DeltaStep:
    """Directories that are taken together, because their ranges of write ids are one or overlap."""

    first: int
    last: int
    directories: int = 0
    bytes: int = 0
    kinds: set[DirectoryKind] = field(default_factory=set)

    def add(self, older: _DeltaStep) -> None:
        """Add an older group of deltas to this one, which then begins at the older one's write id
        and has the directories, bytes and kinds of both.
        """
        self.first = older.first
        self.directories += older.directories
        self.bytes += older.bytes
        self.kinds |= older.kinds


def newest_run(listing: Listing, max_directories: int) -> DeltaRun | None:
    """Choose the newest deltas and delete deltas for a size-tiered minor compaction.

    The run begins with the newest and grows towards the older ones, as long as the next one has at
    most ``SIZE_RATIO`` times the bytes of the run, or the compaction would otherwise leave more
    than ``max_directories`` directories. Deltas whose ranges of write ids overlap are taken
    together.

    Args:
        listing: The files that a compactor sees.
        max_directories: The greatest number of deltas and delete deltas after the compaction.

    Returns:
        The run; None if there are neither deltas nor delete deltas.
    """
    steps = _groups_of_overlapping_deltas(listing)
    if not steps:
        return None
    run = steps.pop()
    directories_left = sum(step.directories for step in steps)
    for older in reversed(steps):
        # The results are one directory of each kind.
        if (
            older.bytes > SIZE_RATIO * run.bytes
            and directories_left + len(run.kinds) <= max_directories
        ):
            break
        run.add(older)
        directories_left -= older.directories
    return DeltaRun(run.first, run.directories, run.bytes, directories_left)


def _groups_of_overlapping_deltas(listing: Listing) -> list[_DeltaStep]:
    """Return the deltas in groups, the oldest first: deltas whose ranges of write ids overlap are
    one group. The base is left out.
    """
    bytes_from = Counter[int]()
    for file in (*listing.data, *listing.deletes):
        if file.directory.kind is not DirectoryKind.BASE:
            bytes_from[file.directory.min_write_id] += file.size
    for group in listing.originals:
        if group.in_delta:
            bytes_from[group.write_id] += sum(group.sizes)
    steps: list[_DeltaStep] = []
    for delta in sorted(listing.state.deltas, key=lambda delta: delta.min_write_id):
        if not steps or delta.min_write_id > steps[-1].last:
            steps.append(_DeltaStep(delta.min_write_id, delta.max_write_id))
        step = steps[-1]
        step.last = max(step.last, delta.max_write_id)
        step.directories += 1
        step.kinds.add(delta.kind)
        step.bytes += bytes_from.pop(delta.min_write_id, 0)
    return steps
