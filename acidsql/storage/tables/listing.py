"""Which files of a table a snapshot reads. This module runs in the driver only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from acidsql.acid.layout import (
    FLUSH_LENGTH_SUFFIX,
    AcidDirectory,
    DirectoryKind,
    bucket_id_of,
    is_hidden,
    is_original,
    parse_directory,
)
from acidsql.acid.state import AcidState, acid_state, history_gone_error
from acidsql.acid.write_ids import Range, ValidTxnList, ValidWriteIdList
from acidsql.costs import note_listed_directories
from acidsql.errors import FormatError
from acidsql.storage.files.entries import visible_entries
from acidsql.storage.files.filesystem import Entry, FileSystem
from acidsql.storage.files.gone import directory_gone_error
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.damage import damaged_file_error
from acidsql.storage.tables.hive2 import refuse_old_updates


@dataclass(frozen=True, slots=True)
class EventFile:
    """A bucket file of events.

    Attributes:
        path: Absolute path or URI.
        directory: The base, delta or delete delta that holds the file.
        size: Bytes on disk.
        length: Committed bytes, if a streaming writer left a ``_flush_length`` side file; None if
            the whole file is committed.
    """

    path: str
    directory: AcidDirectory
    size: int
    length: int | None = None

    @property
    def place(self) -> str:
        """The path of its directory."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class OriginalFiles:
    """Files without event columns: of a converted table, of LOAD DATA, or of an insert-only table.

    Attributes:
        paths: Sorted by full path, the order in which Hive numbers their rows.
        write_id: 0 for a converted table, else the write id of their directory.
        statement_id: The statement id of their directory, or 0.
        in_delta: Their directory is a delta; otherwise it is a base or the table's directory.
        sizes: Bytes on disk of each file, in the order of ``paths``.
    """

    paths: tuple[str, ...]
    write_id: int = 0
    statement_id: int = 0
    in_delta: bool = False
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that a snapshot reads in one table or partition directory.

    Attributes:
        partition: The directory below the table's, ``p1=a/p2=1``; "" for the table itself.
        data: Files of insert events.
        deletes: Files of delete events.
        originals: Files without event columns.
        state: How Hive's rules sorted the directories.
        needs_filter: Some events in these files are invisible, so readers must filter events.
    """

    partition: str
    data: tuple[EventFile, ...] = ()
    deletes: tuple[EventFile, ...] = ()
    originals: tuple[OriginalFiles, ...] = ()
    state: AcidState = field(default_factory=AcidState)
    needs_filter: bool = False


def list_table(
    fs: FileSystem,
    location: str,
    partitions: Sequence[str],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    plain: bool = False,
    history_is_kept: bool = False,
) -> list[Listing]:
    """List the given partition directories below ``location`` (``[""]``: the table itself), and
    return a listing for each, in the given order.

    Args:
        fs: The table's file system.
        location: The table's directory.
        partitions: The directories below it.
        write_ids: The valid write ids of the snapshot.
        txns: The valid transactions of the snapshot.
        plain: The table is insert-only: list as ``list_plain`` does.
        history_is_kept: Do not refuse a snapshot whose files compactions have replaced, if the
            files are still there.

    Raises:
        FormatError: A directory breaks Hive's rules, or the cleaner has deleted needed files.
        UnsupportedError: A delta has updates or deletes in the layout of Hive 2.
        SnapshotTooOldError: A directory that the snapshot needs is missing.
    """
    try:
        fs = fs.cached_listings(location, partitions)
    except FileNotFoundError as error:
        raise directory_gone_error(location, error) from error

    def list_partition(partition: str) -> Listing:
        """Return the listing of one partition. Raises SnapshotTooOldError if its directory is
        missing.
        """
        path = f"{location}/{partition}" if partition else location
        make = list_plain if plain else list_directory
        try:
            return make(fs, path, partition, write_ids, txns, history_is_kept=history_is_kept)
        except FileNotFoundError as error:
            raise directory_gone_error(path, error) from error

    note_listed_directories(len(partitions))
    return run_in_threads(list_partition, partitions)


def list_directory(
    fs: FileSystem,
    path: str,
    partition: str,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    history_is_kept: bool = False,
    since: ValidWriteIdList | None = None,
) -> Listing:
    """List one table or partition directory of a full-ACID table, and return the files that a
    snapshot reads.

    Args:
        fs: The table's file system.
        path: The directory.
        partition: Its path below the table's directory, for the listing.
        write_ids: The valid write ids of the snapshot.
        txns: The valid transactions of the snapshot.
        history_is_kept: Do not refuse a snapshot whose files compactions have replaced, if the
            files are still there.
        since: An older snapshot whose reader wants all later events: compacted bases that hold some
            of these are left out, and the directories that they have replaced are read.

    Raises:
        FileNotFoundError: The directory is missing.
        FormatError: The directory breaks Hive's rules, or the cleaner has deleted needed files.
        UnsupportedError: A delta has updates or deletes in the layout of Hive 2.
    """
    entries, children = visible_entries(fs, path)
    state = acid_state(children, write_ids, txns, history_is_kept=history_is_kept, since=since)
    by_name = {entry.name: entry for entry in entries}
    data: list[EventFile] = []
    deletes: list[EventFile] = []
    originals = _originals_at_root(fs, [by_name[name] for name in state.originals])
    for directory in state.directories:
        files, raw = _list_event_files(fs, by_name[directory.name], directory)
        (deletes if directory.kind is DirectoryKind.DELETE_DELTA else data).extend(files)
        originals += raw
    return Listing(
        partition,
        tuple(data),
        tuple(deletes),
        tuple(originals),
        state,
        any(not _all_visible(directory, write_ids) for directory in state.directories),
    )


def list_published(
    fs: FileSystem, location: str, directories: Iterable[str], *, plain: bool = False
) -> list[Listing]:
    """List directories that a statement of this transaction has published, and return one listing
    for each partition. The listings come in the order of their first directories. Without
    ``plain``, files without event columns are left out; with ``plain``, each directory gives a
    group of originals, even if it has no files. ``state`` and ``needs_filter`` have their defaults.

    Whether the directories' write ids are valid is not asked.

    Args:
        fs: The table's file system.
        location: The table's directory.
        directories: Their paths.
        plain: They are of an insert-only table.

    Raises:
        FileNotFoundError: A directory is gone.
    """
    listings: dict[str, Listing] = {}
    for path in directories:
        parent, _, name = path.rpartition("/")
        partition, directory = parent.removeprefix(location).lstrip("/"), parse_directory(name)
        assert directory is not None
        entry, listing = Entry(name, path, True, 0), listings.get(partition, Listing(partition))
        if plain:
            raw = _originals_of_directory(list(_walk_files(fs, entry)), directory)
            listing = replace(listing, originals=(*listing.originals, raw))
        else:
            files, _ = _list_event_files(fs, entry, directory)
            if directory.kind is DirectoryKind.DELETE_DELTA:
                listing = replace(listing, deletes=(*listing.deletes, *files))
            else:
                listing = replace(listing, data=(*listing.data, *files))
        listings[partition] = listing
    return list(listings.values())


def list_plain(
    fs: FileSystem,
    path: str,
    partition: str,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    history_is_kept: bool = False,
) -> Listing:
    """List one directory of an insert-only table, and return the files that a snapshot reads: all
    are originals, a group for each base or delta that counts, even if it has no files.

    Files may lie deeper (``HIVE_UNION_SUBDIR_1``). Files beside the deltas are not read (Hive's
    ``hive.mm.allow.originals`` is false, too).

    Args:
        fs: The table's file system.
        path: The directory.
        partition: Its path below the table's directory, for the listing.
        write_ids: The valid write ids of the snapshot.
        txns: The valid transactions of the snapshot.
        history_is_kept: Do not refuse a snapshot whose files compactions have replaced, if the
            files are still there.

    Raises:
        FileNotFoundError: The directory is missing.
        FormatError: The directory breaks Hive's rules, or has a directory ``name=value``; or a
            compacted directory has rows that the snapshot must not see.
    """
    entries, children = visible_entries(fs, path)
    state = acid_state(children, write_ids, txns, history_is_kept=history_is_kept)
    by_name = {entry.name: entry for entry in entries}
    _refuse_partitions(by_name[name] for name in state.originals)
    folded = [
        directory.name
        for directory in state.directories
        if write_ids.is_any_open(directory.min_write_id, directory.max_write_id)
    ]
    if folded:  # the rows of a file without events have no write ids
        raise history_gone_error(folded, write_ids)
    groups = [
        _originals_of_directory(list(_walk_files(fs, by_name[directory.name])), directory)
        for directory in state.directories
    ]
    return Listing(partition, originals=tuple(groups), state=state)


def _list_event_files(
    fs: FileSystem, entry: Entry, directory: AcidDirectory
) -> tuple[list[EventFile], list[OriginalFiles]]:
    """List a base, delta or delete delta, and return its event files, and as a group (or none) its
    files without event columns; of a delete delta these are left out. The files are sorted by name.
    Files of which no byte is committed, by the side file or else by their size, are left out.
    Raises FormatError for an unknown name in a base or a damaged side file, and UnsupportedError
    for Hive 2's layout.
    """
    children = [child for child in fs.list(entry.path) if not child.is_dir]
    names = {child.name for child in children}
    refuse_old_updates(entry, children)
    if directory.kind is DirectoryKind.BASE:
        _check_base(children)
    files = [
        EventFile(child.path, directory, child.size, length)
        for child in sorted(children, key=lambda child: child.name)
        if bucket_id_of(child.name) is not None
        # On HDFS, a streamed file that is still open may be listed with size 0.
        and ((length := committed_length(fs, child, names)) or (length is None and child.size))
    ]
    raw = [child for child in children if is_original(child.name) and child.size]
    raw.sort(key=lambda child: child.path)
    if not raw or directory.kind is DirectoryKind.DELETE_DELTA:
        return files, []
    return files, [_originals_of_directory(raw, directory)]


def _originals_of_directory(files: Sequence[Entry], directory: AcidDirectory) -> OriginalFiles:
    """Return files without event columns as the originals of their base or delta, in this order,
    with its lowest write id and its statement id, or 0 without one.
    """
    return OriginalFiles(
        tuple(file.path for file in files),
        directory.min_write_id,
        directory.statement_id or 0,
        directory.kind is DirectoryKind.DELTA,
        tuple(file.size for file in files),
    )


def _check_base(children: Iterable[Entry]) -> None:
    """Raise FormatError if a file of a base has an unknown name: Hive reads every visible file of a
    base. Names of bucket files and originals, hidden names and ``…_flush_length`` are known.
    """
    for child in children:
        if is_hidden(child.name) or child.name.endswith(FLUSH_LENGTH_SUFFIX):
            continue
        if bucket_id_of(child.name) is None and not is_original(child.name):
            raise FormatError(f"'{child.path}' is no name of a file in a base", path=child.path)


def committed_length(fs: FileSystem, entry: Entry, siblings: set[str]) -> int | None:
    """Read the side file of a streamed file, and return the committed bytes: the last of the longs
    in the side file.

    None if ``siblings``, the names beside the file, have no side file: then the whole file is
    committed. 0 if the side file has no whole long. Raises FormatError for a negative length.
    """
    side_file = f"{entry.name}{FLUSH_LENGTH_SUFFIX}"
    if side_file not in siblings:
        return None
    with fs.open_input(f"{entry.path}{FLUSH_LENGTH_SUFFIX}") as file:
        data = file.read()
    complete_bytes = len(data) // 8 * 8
    length = (
        int.from_bytes(data[complete_bytes - 8 : complete_bytes], "big", signed=True)
        if complete_bytes
        else 0
    )
    if length < 0:
        raise damaged_file_error(f"{entry.path}{FLUSH_LENGTH_SUFFIX}", f"it says {length} bytes")
    return length


def _originals_at_root(fs: FileSystem, entries: Sequence[Entry]) -> list[OriginalFiles]:
    """Return the originals beside a table's deltas, at any depth, as one group with the write id 0,
    sorted by path; no group if there are no files. Empty files are left out. Raises FormatError for
    a directory ``name=value``.
    """
    _refuse_partitions(entries)
    files = (
        file for entry in entries for file in (_walk_files(fs, entry) if entry.is_dir else [entry])
    )
    # Names of another form are not left out here: the numbering of rows refuses them.
    paths_and_sizes = sorted((file.path, file.size) for file in files if file.size)
    paths, sizes = zip(*paths_and_sizes, strict=True) if paths_and_sizes else ((), ())
    return [OriginalFiles(paths, sizes=sizes)] if paths_and_sizes else []


def _refuse_partitions(entries: Iterable[Entry]) -> None:
    """Raise FormatError for a directory ``name=value``: without its partition columns a table shows
    no rows.
    """
    for entry in entries:
        if entry.is_dir and "=" in entry.name:
            raise FormatError(
                f"'{entry.path}' looks like a partition, but there is no such partition column "
                "(acidsql.read: say partitioned_by=…)",
                path=entry.path,
            )


def _walk_files(fs: FileSystem, entry: Entry) -> list[Entry]:
    """Return the files below a directory, at any depth, sorted by name in each directory; without
    hidden and empty files, and not those in a base or delta.
    """
    files = []
    for child in sorted(fs.list(entry.path), key=lambda child: child.name):
        if child.is_dir and not is_hidden(child.name):
            # A wrong rename left a delta inside a delta; Hive and Trino do not read it either.
            if parse_directory(child.name) is None:
                files += _walk_files(fs, child)
        elif not is_hidden(child.name) and child.size > 0:
            files.append(child)
    return files


def _all_visible(directory: AcidDirectory, write_ids: ValidWriteIdList) -> bool:
    """Whether all events that a base or delta may have, by its name, are visible. A base may have
    each write id from 1 on up to its own.
    """
    # A base has events of every write id from 1 on, a delta those of the range in its name.
    first = 1 if directory.kind is DirectoryKind.BASE else directory.min_write_id
    last = directory.max_write_id
    return last <= 0 or write_ids.range_validity(first, last) is Range.ALL


def plain_files_by_partition(
    listings: Sequence[Listing],
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the visible files of an insert-only table by partition directory, with an empty list
    for a partition without files, and their sizes by path.
    """
    files: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for listing in listings:
        partition_files = files.setdefault(listing.partition, [])
        for group in listing.originals:
            partition_files += group.paths
            sizes.update(zip(group.paths, group.sizes, strict=True))
    return files, sizes
