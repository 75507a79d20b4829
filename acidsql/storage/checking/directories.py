"""The rules about a table's directories: names, marks, pairs, and what should not be there.

They need no file's contents. A minor compaction may make a delta and a delete delta that only count
together: they are the halves of a pair, each the other's twin, and a side file in each is the mark
of the pair. A place is the directory of a table or partition. This module runs in the driver only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.findings import Finding
from acidsql.acid.layout import (
    PAIRED_FILE,
    AcidDirectory,
    DirectoryKind,
    is_hidden,
    parse_directory,
)
from acidsql.acid.paths import directory_of
from acidsql.acid.table import Table
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.pruning.inventory import UNKNOWN, FoundFile
from acidsql.storage.tables.listing import Listing


@dataclass(frozen=True, slots=True)
class CommittedFiles:
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
class CatalogFacts:
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
    written: Mapping[int, CommittedFiles] = field(default_factory=dict)


def place_of(table: Table, partition: str) -> str:
    """Return the path of the directory of a table's partition; of the table's own for ""."""
    return f"{table.location}/{partition}".rstrip("/")


def missing_places(fs: FileSystem, table: Table, catalog_facts: CatalogFacts) -> dict[str, Finding]:
    """Return partition → a finding, for each partition whose directory is missing. If the table's
    own directory is missing, return only the finding about that, under "".
    """
    if not fs.exists(table.location):
        return {"": Finding(table.location, "TABLE_DIRECTORY_MISSING", "There is no directory.")}
    names = [name for name in catalog_facts.partitions if name]
    are_there = run_in_threads(lambda name: fs.exists(place_of(table, name)), names)
    return {
        name: Finding(
            place_of(table, name),
            "PARTITION_WITHOUT_DIRECTORY",
            "The catalog has the partition, and there is no directory.",
        )
        for name, is_there in zip(names, are_there, strict=True)
        if not is_there
    }


def check_names(
    table: Table,
    found_files: Sequence[FoundFile],
    catalog_facts: CatalogFacts,
    listings: Iterable[Listing],
) -> Iterator[Finding]:
    """Yield what names and sizes alone show: what ``check_catalog`` yields, write ids whose files
    are not those that COMMIT noted, read files with wrong names, visible files without bytes in a
    base or delta, and stray files (``_is_stray``).

    ``listings``: what readers read of each partition that can be listed.
    """
    read = {path for listing in listings for path in paths_of(listing)}
    yield from check_catalog(table, found_files, catalog_facts)
    yield from _committed_file_findings(table, found_files, catalog_facts)
    for file in found_files:
        if file.path in read:
            yield from _data_file_findings(table, file)
        elif file.bytes == 0 and file.acid is not None and file.state == "visible":
            yield Finding(file.path, "EMPTY_FILE", "The file has no bytes.")
    yield from _stray_findings(
        table, catalog_facts, [file for file in found_files if file.path not in read]
    )


def check_catalog(
    table: Table, found_files: Sequence[FoundFile], catalog_facts: CatalogFacts
) -> Iterator[Finding]:
    """Yield where the directories contradict the metastore: directories of unknown partitions, and
    bases and deltas whose name has a write id above the highest allocated one, a transaction above
    the last opened one, or an aborted write id.
    """
    yield from _unknown_partition_findings(table, found_files, catalog_facts)
    yield from _number_findings(table, found_files, catalog_facts)


def paths_of(listing: Listing) -> Iterator[str]:
    """Yield the paths of all files of a listing: those that a reader reads."""
    for file in (*listing.data, *listing.deletes):
        yield file.path
    for group in listing.originals:
        yield from group.paths


def _unknown_partition_findings(
    table: Table, found_files: Sequence[FoundFile], catalog_facts: CatalogFacts
) -> Iterator[Finding]:
    """Yield a finding for each partition directory that the catalog does not have, and that has a
    file or directory of state ``unknown`` other than litter.

    A partition of which nothing is committed yet gives none: an open transaction may make it. Where
    DROP PARTITION leaves an empty directory, the file must be one, not an empty directory.
    """
    partitions, needs_file = (
        set(catalog_facts.partitions),
        not filesystem_for(table.location).can_remove_empty,
    )
    names = {
        file.partition
        for file in found_files
        if file.partition not in partitions
        and file.state == UNKNOWN
        and file.kind != "litter"
        and not (needs_file and file.file is None)
    }
    for name in names:
        yield Finding(
            place_of(table, name),
            "PARTITION_NOT_IN_CATALOG",
            "The directory is that of a partition, and the catalog does not have the partition.",
        )


def _number_findings(
    table: Table, found_files: Sequence[FoundFile], catalog_facts: CatalogFacts
) -> Iterator[Finding]:
    """Yield one finding for each base or delta whose name has a write id or transaction that is
    higher than any so far, or else an aborted write id.
    """
    first_files: dict[str, FoundFile] = {}
    for file in found_files:
        if file.acid is not None:
            first_files.setdefault(f"{place_of(table, file.partition)}/{file.acid.name}", file)
    for path, file in first_files.items():
        assert file.acid is not None
        if file.acid.max_write_id > catalog_facts.highest_write_id:
            yield Finding(
                path,
                "WRITE_ID_NEVER_ALLOCATED",
                "No transaction ever had a write id above "
                f"{catalog_facts.highest_write_id} in this table.",
            )
        elif file.acid.visibility_txn_id > catalog_facts.highest_txn:
            yield Finding(
                path,
                "TRANSACTION_NEVER_OPENED",
                f"The last transaction that was opened is {catalog_facts.highest_txn}.",
            )
        elif file.state == "aborted":
            yield Finding(path, "ABORTED_DIRECTORY", "The transaction that wrote it was aborted.")


def _committed_file_findings(
    table: Table, found_files: Sequence[FoundFile], catalog_facts: CatalogFacts
) -> Iterator[Finding]:
    """Yield a finding for each write id whose files, by number and bytes, are not those that COMMIT
    noted. Only the files of the statements' own deltas in known partitions are counted. There is no
    finding if a base or compacted delta with files covers the write id, and all directories that
    cover it are in at least as many partitions as COMMIT noted: there its files were replaced.
    (COMMIT notes no names of partitions.)
    """
    sizes: dict[int, tuple[int, int]] = dict.fromkeys(catalog_facts.written, (0, 0))
    partitions_of_range: dict[tuple[int, int], set[str]] = {}  # of write ids → the partitions
    replaced: set[tuple[int, int]] = set()
    partitions = set(catalog_facts.partitions)
    for file in found_files:
        if file.acid is None or file.partition not in partitions:
            continue
        is_base = file.acid.kind is DirectoryKind.BASE
        first, last = 0 if is_base else file.acid.min_write_id, file.acid.max_write_id
        partitions_of_range.setdefault((first, last), set()).add(file.partition)
        if file.file is None:
            continue
        if is_base or file.acid.statement_id is None:
            replaced.add((first, last))
        elif first in sizes:
            files, size = sizes[first]
            sizes[first] = files + 1, size + (file.bytes or 0)
    for write_id, committed in catalog_facts.written.items():
        files, size = sizes[write_id]
        if (files, size) == (committed.files, committed.bytes):
            continue
        covering_ranges = [
            (first, last) for first, last in partitions_of_range if first <= write_id <= last
        ]
        covered = set().union(*map(partitions_of_range.__getitem__, covering_ranges))
        if replaced.isdisjoint(covering_ranges) or len(covered) < committed.places:
            yield Finding(
                table.location,
                "FILES_NOT_AS_COMMITTED",
                f"Write id {write_id} wrote {committed.files} files of {committed.bytes} bytes, "
                f"and there are {files} of {size} bytes.",
            )


def _data_file_findings(table: Table, file: FoundFile) -> Iterator[Finding]:
    """Yield what is wrong with the name of a data file: no bucket id (only in a table with row
    ids), or one that a bucketed table does not have.
    """
    bucket = file.bucket
    if bucket is None and not table.is_insert_only:
        yield Finding(
            file.path, "NAME_WITHOUT_BUCKET", "The name is none of a bucket, such as 000000_0."
        )
    elif bucket is not None and table.is_bucketed and bucket >= table.num_buckets:
        yield Finding(
            file.path,
            "UNKNOWN_BUCKET",
            f"The file is of bucket {bucket}, and the table has {table.num_buckets} buckets.",
        )


def _stray_findings(
    table: Table, catalog_facts: CatalogFacts, unread_files: Iterable[FoundFile]
) -> Iterator[Finding]:
    """Yield a finding for the files that no reader takes and that should not be there
    (``_is_stray``): one for a file that is the only stray one in its directory, or one for the
    directory of several. An entry at the path of a known partition is none: it is a broken link.
    """
    strays: dict[str, list[str]] = {}
    places = {
        place_of(table, name) for name in catalog_facts.partitions
    }  # a broken link is no file
    for file in unread_files:
        if file.file and file.path not in places and _is_stray(table, file):
            strays.setdefault(directory_of(file.path), []).append(file.path)
    for directory, paths in strays.items():
        if len(paths) > 1:
            message = f"No reader takes {len(paths)} files in it."
            yield Finding(directory, "STRAY_FILE", message)
        else:
            yield Finding(paths[0], "STRAY_FILE", "No reader takes the file.")


def _is_stray(table: Table, file: FoundFile) -> bool:
    """Whether a file that nobody reads should not be there: litter, or a plain file beside the
    deltas of an insert-only table; no file with a hidden part in its path below the table's, and
    none of an open, aborted or historic directory.
    """
    relative_path = file.path.removeprefix(f"{table.location}/")
    if any(map(is_hidden, relative_path.split("/"))) or file.state in (
        "open",
        "aborted",
        "history",
    ):
        return False
    return file.kind == "litter" or (file.kind == "original" and table.is_insert_only)


# ── one table's or partition's directory ─────────────────────────────────────────────────────


def check_pairs(fs: FileSystem, path: str, listing: Listing | None) -> list[Finding]:
    """Return what is wrong with the pairs (delta, delete delta) that minor compactions made in a
    table's or partition's directory: a half whose twin is missing, or a twin without the mark. The
    findings are sorted by the name of the marked half. A half without its twin is HALF_OF_A_PAIR if
    another delta or delete delta lies inside of its range of write ids, else LOST_HALF_OF_A_PAIR.
    ``listing``: what a reader reads there; None if it cannot be listed. A pair that another
    directory of the listing replaces is not checked: it may be on the way to be deleted.
    """
    deltas = _deltas_in(fs, path)
    compacted_directories = [
        directory for directory in deltas.values() if directory.statement_id is None
    ]
    marked = {
        directory.name
        for directory in compacted_directories
        if _is_marked(fs, f"{path}/{directory.name}")
    }
    if any(_twin(name) not in deltas for name in marked):
        deltas = _deltas_in(fs, path)  # a worker may have renamed the second one meanwhile
    read = [] if listing is None else listing.state.directories
    findings = []
    for name in sorted(marked & deltas.keys()):
        twin, delta = _twin(name), deltas[name]
        if any(
            directory.name not in (name, twin) and _replaces(directory, delta) for directory in read
        ):
            continue
        if twin not in deltas:
            is_safe = any(
                directory.name != name and _is_inside(directory, delta)
                for directory in deltas.values()
            )
            condition = "HALF_OF_A_PAIR" if is_safe else "LOST_HALF_OF_A_PAIR"
            message = f"It counts only together with {twin}, which is not there."
            findings.append(Finding(f"{path}/{name}", condition, message))
        elif twin not in marked:
            message = f"It counts only together with {name}, and has no {PAIRED_FILE} that says so."
            findings.append(Finding(f"{path}/{twin}", "PAIR_MARK_MISSING", message))
    return findings


def _deltas_in(fs: FileSystem, path: str) -> dict[str, AcidDirectory]:
    """Return the deltas and delete deltas that lie in a directory now, by name. Bases are
    left out.
    """
    parsed = (parse_directory(entry.name) for entry in fs.list_if_there(path) if entry.is_dir)
    return {
        directory.name: directory
        for directory in parsed
        if directory is not None and directory.kind is not DirectoryKind.BASE
    }


def _is_marked(fs: FileSystem, path: str) -> bool:
    """Whether a directory has the mark of a half of a pair. The directory is listed."""
    return any(child.name == PAIRED_FILE for child in fs.list_if_there(path))


def _replaces(newer: AcidDirectory, older: AcidDirectory) -> bool:
    """Whether a reader of the newer directory needs no events of the older one, by the ranges of
    write ids in their names.
    """
    if newer.kind is DirectoryKind.BASE:
        return older.max_write_id <= newer.max_write_id
    return _is_inside(older, newer)


def _twin(name: str) -> str:
    """Return the name of the other half of a pair."""
    return name.removeprefix("delete_") if name.startswith("delete_") else f"delete_{name}"


def _is_inside(inner: AcidDirectory, outer: AcidDirectory) -> bool:
    """Whether the range of write ids of one directory lies inside of another's."""
    return outer.min_write_id <= inner.min_write_id and inner.max_write_id <= outer.max_write_id


def check_overlaps(listing: Listing, path: str) -> Iterator[Finding]:
    """Yield a finding for each delta that readers take, and whose range of write ids overlaps that
    of the base or delta before it that reaches furthest, without lying inside of it. Deltas come in
    the order of the listing, after the base.
    """
    widest = listing.state.base
    for delta in listing.state.deltas:
        shares = widest is not None and delta.min_write_id <= widest.max_write_id
        if widest is not None and shares and not _is_inside(delta, widest):
            yield Finding(
                f"{path}/{delta.name}",
                "OVERLAPPING_DELTAS",
                f"It shares write ids with {widest.name}, and readers read both.",
            )
        if widest is None or delta.max_write_id > widest.max_write_id:
            widest = delta
