"""Plans the compaction of one table or partition: which directories, into which, in which tasks.

A fold is one of these tasks: the files of one bucket id, to be merged.

Source: Hive ``CompactorMR``; hive-format, "Compaction and cleaning".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from acidsql.acid import bucket_codec
from acidsql.acid.layout import (
    ORIGINALS_BASE,
    DirectoryKind,
    base_name,
    bucket_id_of,
    compacted_delta_name,
    is_original,
)
from acidsql.acid.state import AcidState
from acidsql.acid.table import Table
from acidsql.acid.write_ids import CompactorWriteIdList, ValidTxnList, ValidWriteIdList
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.folding.fold import BucketFold
from acidsql.storage.folding.newest_run import DeltaRun, newest_run
from acidsql.storage.reading.events.event_reader import (
    FileRead,
    plain_reads,
    plan_deletes,
    plan_reads,
)
from acidsql.storage.tables.listing import Listing, list_table


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction of one table or partition will do.

    Attributes:
        table: The table.
        partition: The directory below the table's; "" if unpartitioned.
        major: The compaction makes a base; otherwise it makes deltas.
        listing: The files to read, and the directories that are already obsolete.
        write_ids: The write id list by which events are chosen.
        inserts: The name of the directory for insert events.
        deletes: The name of the directory for delete events; None for a major compaction.
        run: The deltas of a size-tiered minor compaction; None: the compaction takes all.
    """

    table: Table
    partition: str
    major: bool
    listing: Listing
    write_ids: CompactorWriteIdList
    inserts: str
    deletes: str | None
    run: DeltaRun | None = None

    @property
    def path(self) -> str:
        """The table's or partition's directory."""
        return f"{self.table.location}/{self.partition}".rstrip("/")

    @property
    def directories(self) -> list[str]:
        """The names of the files and directories that are read, in a reader's order: with ``major``
        the originals and the base, then always the deltas and delete deltas.
        """
        state = self.listing.state
        base = [state.base.name] if state.base and self.major else []
        originals = list(state.originals) if self.major else []
        return [*originals, *base, *(delta.name for delta in state.deltas)]

    @property
    def sizes(self) -> list[int]:
        """The bytes of each file that is read."""
        originals = [size for group in self.listing.originals for size in group.sizes]
        return originals + [file.size for file in (*self.listing.data, *self.listing.deletes)]

    @cached_property
    def folds(self) -> list[BucketFold]:
        """The tasks. This reads the footers of files without event columns."""
        return folds_of(self.table, self.listing, self.write_ids, major=self.major)


def folds_of(
    table: Table, listing: Listing, write_ids: ValidWriteIdList, *, major: bool
) -> list[BucketFold]:
    """Return one fold for each bucket id that the visible files of a listing have, sorted by bucket
    id. ``major`` says of each whether it applies the delete events. For a table with row ids, the
    footers of files without event columns are read.

    Raises:
        FormatError: Such a file is damaged, or has no bucket id in its name.
    """
    if table.is_insert_only:
        paths = [path for group in listing.originals for path in group.paths]
        reads = plain_reads({listing.partition: paths})
    else:
        reads = plan_reads([listing], write_ids)
    inserts, deletes = _reads_by_bucket(reads), _reads_by_bucket(plan_deletes(listing, write_ids))
    return [
        BucketFold(
            listing.partition,
            bucket,
            tuple(inserts.get(bucket, ())),
            tuple(deletes.get(bucket, ())),
            major,
        )
        for bucket in sorted({*inserts, *deletes})
    ]


def plan_compaction(
    fs: FileSystem,
    table: Table,
    partition: str,
    write_ids: CompactorWriteIdList,
    txns: ValidTxnList,
    *,
    major: bool,
    visibility_txn_id: int = 0,
    anyway: bool = False,
    most_left: int | None = None,
) -> tuple[CompactionPlan | None, AcidState]:
    """Plan a compaction. The directory is listed now; nothing is written.

    Args:
        fs: The table's file system.
        table: The table.
        partition: The directory below the table's; "" if unpartitioned.
        write_ids: The valid write ids of the compactor.
        txns: The valid transactions.
        major: Plan a major compaction. A compaction of an insert-only table is always major.
        visibility_txn_id: The ``_v`` number in the names of the results, which Hive 3 cannot read;
            0: no ``_v``.
        anyway: Plan the compaction also for a single delta or base. A single base gets a new base
            with a higher number.
        most_left: Plan a size-tiered minor compaction, which leaves at most so many deltas (see
            ``newest_run``). None: take all deltas, as Hive does.

    Returns:
        The plan, or None if there are too few directories to compact; and the state of all
        directories by Hive's rules.

    Raises:
        FormatError, UnsupportedError: The directory breaks Hive's rules, or is in Hive 2's layout.
        SnapshotTooOldError: The directory is missing.
    """
    # Rows of a plain file have no write ids. From a delta of several write ids, a snapshot could
    # not leave out the rows that it must not see. A base can be left out as a whole.
    major = major or table.is_insert_only
    (listing,) = list_table(
        fs, table.location, [partition], write_ids, txns, plain=table.is_insert_only
    )
    state, run = listing.state, None
    if not major:
        listing = _files_above_base(listing)
        run = None if most_left is None else newest_run(listing, most_left)
        listing = listing if run is None else _deltas_from(listing, run.first)
    is_something = anyway and (listing.data or listing.originals)
    if not is_something and not _is_worth_compacting(table, listing, write_ids, major=major):
        return None, state
    first, last = _write_id_range(listing.state)
    if anyway and state.base and not state.deltas:
        last = max(write_ids.high_water_mark, last + 1)  # two bases cannot have one name
    if major:
        inserts, deletes = base_name(last, visibility_txn_id), None
    else:
        inserts = compacted_delta_name(first, last, visibility_txn_id)
        deletes = f"delete_{inserts}"
    plan = CompactionPlan(table, partition, major, listing, write_ids, inserts, deletes, run)
    return plan, state


def _is_worth_compacting(
    table: Table, listing: Listing, write_ids: CompactorWriteIdList, *, major: bool
) -> bool:
    """Whether there is enough for a compaction to do. Major: there are originals, aborted write ids
    in the deltas' range or files of LOAD DATA (rules of our own), or more than one directory.
    Minor: there is more than one delta or delete delta, and not only one delete delta with one
    delta. The rest is Hive 4's rule (``QueryCompactor.Util.isEnoughToCompact``).
    """
    state = listing.state
    if major:
        # Files beside the deltas of an insert-only table are not listed: no reader takes them.
        # Trino reads files without events in no delta. In a base it does not read them, either, but
        # the new base would have the old one's name.
        has_originals = any(
            not group.write_id or (group.in_delta and table.has_row_ids)
            for group in listing.originals
        )
        # A base has no aborted events, so its readers need not know which write ids were aborted.
        has_aborted = bool(state.deltas) and write_ids.is_any_aborted(*_write_id_range(state))
        return has_originals or has_aborted or len(state.deltas) + (state.base is not None) > 1
    deletes = sum(delta.kind is DirectoryKind.DELETE_DELTA for delta in state.deltas)
    return len(state.deltas) > 1 and not (len(state.deltas) == 2 and deletes == 1)


def _write_id_range(state: AcidState) -> tuple[int, int]:
    """Return the lowest and the highest write id of the deltas; without deltas, the lowest possible
    one and the base's (the lowest possible one again if there is no base).
    """
    first = min((delta.min_write_id for delta in state.deltas), default=ORIGINALS_BASE)
    base = state.base.max_write_id if state.base else ORIGINALS_BASE
    return first, max((delta.max_write_id for delta in state.deltas), default=base)


def _files_above_base(listing: Listing) -> Listing:
    """Return the listing with only the files that a minor compaction reads: those of deltas and
    delete deltas. ``state`` stays as it is.
    """
    return replace(
        listing,
        data=tuple(file for file in listing.data if file.directory.kind is not DirectoryKind.BASE),
        originals=tuple(group for group in listing.originals if group.in_delta),
    )


def _deltas_from(listing: Listing, first: int) -> Listing:
    """Return the listing with only the deltas from write id ``first`` on, with which a delta
    begins. The base stays in ``state``.
    """
    deltas = tuple(delta for delta in listing.state.deltas if delta.min_write_id >= first)
    return replace(
        listing,
        data=tuple(file for file in listing.data if file.directory.min_write_id >= first),
        deletes=tuple(file for file in listing.deletes if file.directory.min_write_id >= first),
        originals=tuple(group for group in listing.originals if group.write_id >= first),
        state=replace(listing.state, deltas=deltas),
    )


def _reads_by_bucket(reads: Sequence[FileRead]) -> dict[int, list[FileRead]]:
    """Return bucket id → the files with this bucket id, in the given order."""
    reads_by_bucket: dict[int, list[FileRead]] = {}
    for read in reads:
        reads_by_bucket.setdefault(_bucket_id(read), []).append(read)
    return reads_by_bucket


def _bucket_id(read: FileRead) -> int:
    """Return the bucket id of a file: the one in its name; for an original without one, that of the
    rows' bucket property. An event file without one in its name fails an assertion.
    """
    if read.path is not None:
        bucket = bucket_id_of(read.path.rpartition("/")[2])
        assert bucket is not None, "listings have bucket files only"
        return bucket
    assert read.original is not None
    name = read.original.path.rpartition("/")[2]
    if is_original(name):
        return int(name.partition("_")[0])
    return bucket_codec.decode(read.original.bucket_property).bucket_id
