"""The rules about a table's directories: names, marks, pairs, and what should not be there.

They need no file's contents. This module runs in the driver only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.findings import Finding
from acidsql.acid.layout import (
    PAIRED_FILE,
    AcidDirectory,
    Kind,
    is_hidden,
    parse_directory,
)
from acidsql.acid.paths import directory_of
from acidsql.acid.table import Table
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.files.listing import Listing
from acidsql.storage.files.parallel import in_threads
from acidsql.storage.reading.inventory import UNKNOWN, FoundFile


@dataclass(frozen=True, slots=True)
class Written:
    """What COMMIT noted of a write id.

    Attributes:
        files: How many files it wrote.
        bytes: How many bytes they have.
        places: In at least how many partitions they are; an unpartitioned table is one.
    """

    files: int = 0
    bytes: int = 0
    places: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What the metastore knows about a table.

    Attributes:
        partitions: The directories of its partitions below the table's; [""] if unpartitioned.
        highest_write_id: The last write id that was allocated.
        highest_txn: The last transaction that was opened.
        written: What visible write ids wrote, if COMMIT has noted it and no partition was dropped
            since.
    """

    partitions: Sequence[str]
    highest_write_id: int
    highest_txn: int
    written: Mapping[int, Written] = field(default_factory=dict)


def place_of(table: Table, partition: str) -> str:
    """The path of the table's directory, or of a partition's."""
    return f"{table.location}/{partition}".rstrip("/")


def missing_places(fs: FileSystem, table: Table, known: Known) -> dict[str, Finding]:
    """The partitions whose directories are missing; "" if the table's own is."""
    if not fs.exists(table.location):
        return {"": Finding(table.location, "TABLE_DIRECTORY_MISSING", "There is no directory.")}
    names = [name for name in known.partitions if name]
    are_there = in_threads(lambda name: fs.exists(place_of(table, name)), names)
    return {
        name: Finding(
            place_of(table, name), "PARTITION_WITHOUT_DIRECTORY",
            "The catalog has the partition, and there is no directory.",
        )
        for name, is_there in zip(names, are_there, strict=True)
        if not is_there
    }  # fmt: skip


def check_names(
    table: Table, found: Sequence[FoundFile], known: Known, listings: Iterable[Listing]
) -> Iterator[Finding]:
    """The rules that need only the inventory, and what readers take of it."""
    read = {path for listing in listings for path in paths_of(listing)}
    yield from check_catalog(table, found, known)
    yield from _as_committed(table, found, known)
    for one in found:
        if one.path in read:
            yield from _of_data(table, one)
        elif one.bytes == 0 and one.acid is not None and one.state == "visible":
            yield Finding(one.path, "EMPTY_FILE", "The file has no bytes.")
    yield from _strays(table, known, [one for one in found if one.path not in read])


def check_catalog(table: Table, found: Sequence[FoundFile], known: Known) -> Iterator[Finding]:
    """The rules about what the metastore knows of each directory."""
    yield from _of_unknown_partitions(table, found, known)
    yield from _numbers(table, found, known)


def paths_of(listing: Listing) -> Iterator[str]:
    """The paths of all files that a reader reads."""
    for file in (*listing.data, *listing.deletes):
        yield file.path
    for group in listing.originals:
        yield from group.paths


def _of_unknown_partitions(
    table: Table, found: Sequence[FoundFile], known: Known
) -> Iterator[Finding]:
    """A partition of which nothing is committed yet is none of these: an open transaction may
    make it. Where DROP PARTITION leaves an empty directory, one without files is none either."""
    places, needs_file = set(known.partitions), not filesystem_for(table.location).can_remove_empty
    names = {
        one.partition
        for one in found
        if one.partition not in places
        and one.state == UNKNOWN
        and one.kind != "litter"
        and not (needs_file and one.file is None)
    }
    for name in names:
        yield Finding(
            place_of(table, name), "PARTITION_NOT_IN_CATALOG",
            "The directory is that of a partition, and the catalog does not have the partition.",
        )  # fmt: skip


def _numbers(table: Table, found: Sequence[FoundFile], known: Known) -> Iterator[Finding]:
    """The numbers in the names of bases and deltas."""
    seen: dict[str, FoundFile] = {}
    for one in found:
        if one.acid is not None:
            seen.setdefault(f"{place_of(table, one.partition)}/{one.acid.name}", one)
    for path, one in seen.items():
        assert one.acid is not None
        if one.acid.max_write_id > known.highest_write_id:
            yield Finding(
                path, "WRITE_ID_NEVER_ALLOCATED",
                f"No transaction ever had a write id above {known.highest_write_id} in this table.",
            )  # fmt: skip
        elif one.acid.visibility_txn_id > known.highest_txn:
            yield Finding(
                path, "TRANSACTION_NEVER_OPENED",
                f"The last transaction that was opened is {known.highest_txn}.",
            )  # fmt: skip
        elif one.state == "aborted":
            yield Finding(path, "ABORTED_DIRECTORY", "The transaction that wrote it was aborted.")


def _as_committed(table: Table, found: Sequence[FoundFile], known: Known) -> Iterator[Finding]:
    """Compare the files of each write id with what COMMIT noted, as long as they need be there: a
    base may replace them in any partition, and so may a wider delta.

    COMMIT notes no names of partitions, but their number: so many have a directory with the files,
    or with what has replaced them.
    """
    there: dict[int, tuple[int, int]] = dict.fromkeys(known.written, (0, 0))
    ranges: dict[tuple[int, int], set[str]] = {}  # of write ids → the partitions
    replaced: set[tuple[int, int]] = set()
    places = set(known.partitions)
    for one in found:
        if one.acid is None or one.partition not in places:
            continue
        is_base = one.acid.kind is Kind.BASE
        first, last = 0 if is_base else one.acid.min_write_id, one.acid.max_write_id
        ranges.setdefault((first, last), set()).add(one.partition)
        if one.file is None:
            continue
        if is_base or one.acid.statement_id is None:
            replaced.add((first, last))
        elif first in there:
            files, size = there[first]
            there[first] = files + 1, size + (one.bytes or 0)
    for write_id, promised in known.written.items():
        files, size = there[write_id]
        if (files, size) == (promised.files, promised.bytes):
            continue
        around = [one for one in ranges if one[0] <= write_id <= one[1]]
        is_everywhere = len(set().union(*(ranges[one] for one in around))) >= promised.places
        if replaced.isdisjoint(around) or not is_everywhere:
            yield Finding(
                table.location, "FILES_NOT_AS_COMMITTED",
                f"Write id {write_id} wrote {promised.files} files of {promised.bytes} bytes, and "
                f"there are {files} of {size} bytes.",
            )  # fmt: skip


def _of_data(table: Table, one: FoundFile) -> Iterator[Finding]:
    bucket = one.bucket
    if bucket is None and not table.is_insert_only:
        yield Finding(
            one.path, "NAME_WITHOUT_BUCKET", "The name is none of a bucket, such as 000000_0."
        )
    elif bucket is not None and table.is_bucketed and bucket >= table.num_buckets:
        yield Finding(
            one.path, "UNKNOWN_BUCKET",
            f"The file is of bucket {bucket}, and the table has {table.num_buckets} buckets.",
        )  # fmt: skip


def _strays(table: Table, known: Known, others: Iterable[FoundFile]) -> Iterator[Finding]:
    """Visible files that no reader takes, by directory."""
    strays: dict[str, list[str]] = {}
    places = {place_of(table, name) for name in known.partitions}  # a broken link is no file
    for one in others:
        if one.file and one.path not in places and _is_stray(table, one):
            strays.setdefault(directory_of(one.path), []).append(one.path)
    for directory, paths in strays.items():
        if len(paths) > 1:
            said = f"No reader takes {len(paths)} files in it."
            yield Finding(directory, "STRAY_FILE", said)
        else:
            yield Finding(paths[0], "STRAY_FILE", "No reader takes the file.")


def _is_stray(table: Table, one: FoundFile) -> bool:
    below = one.path.removeprefix(f"{table.location}/")
    if any(map(is_hidden, below.split("/"))) or one.state in ("open", "aborted", "history"):
        return False
    return one.kind == "litter" or (one.kind == "original" and table.is_insert_only)


# ── one table's or partition's directory ─────────────────────────────────────────────────────


def check_pairs(fs: FileSystem, path: str, listing: Listing | None) -> list[Finding]:
    """The marks of minor compactions in a table's or partition's directory.

    ``listing``: what a reader reads there. What that replaces may be on the way to be deleted.
    """
    ranges = _ranges(fs, path)
    named = [one for one in ranges.values() if one.statement_id is None]
    marked = {one.name for one in named if _is_marked(fs, f"{path}/{one.name}")}
    if any(_twin(name) not in ranges for name in marked):
        ranges = _ranges(fs, path)  # a worker may have renamed the second one meanwhile
    read = [] if listing is None else listing.state.directories
    found = []
    for name in sorted(marked & ranges.keys()):
        twin, own = _twin(name), ranges[name]
        if any(one.name not in (name, twin) and _replaces(one, own) for one in read):
            continue
        if twin not in ranges:
            is_safe = any(one.name != name and _is_inside(one, own) for one in ranges.values())
            condition = "HALF_OF_A_PAIR" if is_safe else "LOST_HALF_OF_A_PAIR"
            said = f"It counts only together with {twin}, which is not there."
            found.append(Finding(f"{path}/{name}", condition, said))
        elif twin not in marked:
            said = f"It counts only together with {name}, and has no {PAIRED_FILE} that says so."
            found.append(Finding(f"{path}/{twin}", "PAIR_MARK_MISSING", said))
    return found


def _ranges(fs: FileSystem, path: str) -> dict[str, AcidDirectory]:
    parsed = (parse_directory(entry.name) for entry in fs.list_if_there(path) if entry.is_dir)
    return {one.name: one for one in parsed if one is not None and one.kind is not Kind.BASE}


def _is_marked(fs: FileSystem, path: str) -> bool:
    return any(child.name == PAIRED_FILE for child in fs.list_if_there(path))


def _replaces(one: AcidDirectory, other: AcidDirectory) -> bool:
    if one.kind is Kind.BASE:
        return other.max_write_id <= one.max_write_id
    return _is_inside(other, one)


def _twin(name: str) -> str:
    return name.removeprefix("delete_") if name.startswith("delete_") else f"delete_{name}"


def _is_inside(one: AcidDirectory, other: AcidDirectory) -> bool:
    return other.min_write_id <= one.min_write_id and one.max_write_id <= other.max_write_id


def check_overlaps(listing: Listing, path: str) -> Iterator[Finding]:
    """Directories that readers take, and that share a part of their write ids."""
    widest = listing.state.base
    for delta in listing.state.deltas:
        shares = widest is not None and delta.min_write_id <= widest.max_write_id
        if widest is not None and shares and not _is_inside(delta, widest):
            yield Finding(
                f"{path}/{delta.name}", "OVERLAPPING_DELTAS",
                f"It shares write ids with {widest.name}, and readers read both.",
            )  # fmt: skip
        if widest is None or delta.max_write_id > widest.max_write_id:
            widest = delta
