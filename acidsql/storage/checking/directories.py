"""The rules about a table's directories: names, marks, pairs, and what should not be there.

They need no file's contents. This module runs in the driver only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.listing import Listing
from acidsql.storage.files.parallel import in_threads
from acidsql.storage.reading.inventory import UNKNOWN, FoundFile


@dataclass(frozen=True, slots=True)
class Known:
    """What the metastore knows about a table.

    Attributes:
        partitions: The directories of its partitions below the table's; [""] if unpartitioned.
        highest_write_id: The last write id that was allocated.
        highest_txn: The last transaction that was opened.
    """

    partitions: Sequence[str]
    highest_write_id: int
    highest_txn: int


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
    yield from _of_unknown_partitions(table, found, known)
    yield from _numbers(table, found, known)
    for one in found:
        if one.path in read:
            yield from _of_data(table, one)
        elif one.bytes == 0 and one.acid is not None and one.state == "visible":
            yield Finding(one.path, "EMPTY_FILE", "The file has no bytes.")
    yield from _strays(table, [one for one in found if one.path not in read])


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
    make it."""
    names = {
        one.partition
        for one in found
        if one.partition not in known.partitions and one.state == UNKNOWN and one.kind != "litter"
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


def _strays(table: Table, others: Iterable[FoundFile]) -> Iterator[Finding]:
    """Visible files that no reader takes, by directory."""
    strays = [one.path for one in others if one.file and _is_stray(table, one)]
    for directory, count in Counter(map(directory_of, strays)).items():
        if count > 1:
            yield Finding(directory, "STRAY_FILE", f"{count} files in it belong to no table.")
        else:
            path = next(path for path in strays if directory_of(path) == directory)
            yield Finding(path, "STRAY_FILE", "The file belongs to no table.")


def _is_stray(table: Table, one: FoundFile) -> bool:
    below = one.path.removeprefix(f"{table.location}/")
    if any(map(is_hidden, below.split("/"))) or one.state in ("open", "aborted", "history"):
        return False
    return one.kind == "litter" or (one.kind == "original" and table.is_insert_only)


# ── one table's or partition's directory ─────────────────────────────────────────────────────


def check_pairs(fs: FileSystem, path: str) -> Iterator[Finding]:
    """The marks of minor compactions in a table's or partition's directory."""
    ranges = _ranges(fs, path)
    marked = {name for name in ranges if _is_marked(fs, f"{path}/{name}")}
    if any(_twin(name) not in ranges for name in marked):
        ranges = _ranges(fs, path)  # a worker may have renamed the second one meanwhile
    for name in sorted(marked & ranges.keys()):
        twin = _twin(name)
        if twin not in ranges:
            covered = (one for one in ranges.values() if one.name != name)
            is_safe = any(_is_inside(one, ranges[name]) for one in covered)
            yield Finding(
                f"{path}/{name}",
                "HALF_OF_A_PAIR" if is_safe else "LOST_HALF_OF_A_PAIR",
                f"It counts only together with {twin}, which is not there.",
            )
        elif twin not in marked:
            yield Finding(
                f"{path}/{twin}", "PAIR_MARK_MISSING",
                f"It counts only together with {name}, and has no {PAIRED_FILE} that says so.",
            )  # fmt: skip


def _ranges(fs: FileSystem, path: str) -> dict[str, AcidDirectory]:
    parsed = (parse_directory(entry.name) for entry in fs.list_if_there(path) if entry.is_dir)
    return {one.name: one for one in parsed if one is not None and one.kind is not Kind.BASE}


def _is_marked(fs: FileSystem, path: str) -> bool:
    return any(child.name == PAIRED_FILE for child in fs.list_if_there(path))


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
