"""EXPLAIN: what a statement will read and lock, as text above Spark's plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acidsql.acid.layout import bucket_id_of
from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.metastore.interface import LockComponent
from acidsql.result import size
from acidsql.storage.file_info import read_file_info
from acidsql.storage.jvm import Scans
from acidsql.storage.listing import Listing
from acidsql.storage.parallel import in_threads

_DIRECTORIES_SHOWN = 20
_FOOTERS_MAX = 1000  # of so many delete files the events are counted
_ITEMS_SHOWN = 8
# Spark writes lists of columns with blanks, fields of a struct with colons. It begins where an item
# does, and never goes back: a literal may be a million letters.
_LONG_LIST = re.compile(r"(?<![^\[\](),:\s])(?:[^\[\](),:\s]*+,){16,}+[^\[\](),:\s]*+")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:(?://[^/]*)?(?=/)")


@dataclass(frozen=True, slots=True)
class _File:
    """One file that the snapshot has.

    Attributes:
        directory: Below the table's; "" for originals that lie there.
        bytes: Its size; 0 of an original, which listings do not tell.
        deletes: It holds delete events.
        bucket_id: Of a file of events; None of an original.
    """

    path: str
    partition: str
    directory: str
    bytes: int
    deletes: bool
    bucket_id: int | None


def locks_section(locks: Iterable[LockComponent]) -> str:
    """The locks that a statement takes; "" without any."""
    lines = []
    for lock in locks:
        what = ".".join(filter(None, (lock.database, lock.table)))
        partition = f" partition {lock.partition}" if lock.partition else ""
        lines.append(f"{lock.lock_type.name} on {what}{partition}")
    # A MERGE locks a place for each of its operations.
    return "\n".join(["== Locks ==", *dict.fromkeys(lines), ""]) if lines else ""


def plan_section(plan: str) -> str:
    """Spark's plan, of whose long lists only the beginning is shown.

    The values of partitions, and the sizes of files that tell a row's, stand in it as literals.
    """
    return _LONG_LIST.sub(_beginning, plan)


def _beginning(found: re.Match[str]) -> str:
    items = found[0].split(",")
    return f"{','.join(items[:_ITEMS_SHOWN])},… {len(items) - _ITEMS_SHOWN} more"


def tables_section(
    tables: Sequence[tuple[Table, Sequence[Listing], ValidWriteIdList]], scans: Scans | None
) -> str:
    """The files that a plan reads of each ACID table; "" without any.

    Args:
        tables: What the snapshot has of each.
        scans: What Spark's plan opens, and what is left when conditions on partitions have been
            looked at; None: nobody can tell, so all is taken to be read.
    """
    lines = [line for one in tables for line in _table_lines(*one, scans)]
    return "\n".join(["== ACID Tables ==", *lines, ""]) if lines else ""


def _table_lines(
    table: Table, listings: Sequence[Listing], write_ids: ValidWriteIdList, scans: Scans | None
) -> list[str]:
    files = [file for listing in listings for file in _files(table, listing)]
    read = _read(files, scans)
    directories = list(dict.fromkeys(file.directory for file in files))
    wanted = list(dict.fromkeys(file.directory for file in read))
    lines = [
        f"{table.name}: {len(read)} of {len(files)} files, {len(wanted)} of {len(directories)} "
        f"directories, {size(sum(file.bytes for file in read))}"
    ]
    if table.partition_columns:
        partitions = {file.partition for file in read}
        lines.append(f"  partitions: {len(partitions)} of {len(listings)}")
    deletes = [file for file in read if file.deletes]
    if deletes:
        lines.append(f"  delete events: {_events(deletes)} in {_number(len(deletes), 'file')}")
    rows = [file for file in read if not file.deletes]
    if scans is not None and any(_plain(file.path) not in scans.opened for file in rows):
        lines.append("  some files are read by Python tasks, which Spark's reader cannot read")
    lines.append(f"  snapshot: {write_ids}")
    for directory in wanted[:_DIRECTORIES_SHOWN]:
        inside = [file for file in read if file.directory == directory]
        lines.append(
            f"  {directory or '(originals)'}: {_number(len(inside), 'file')}, "
            f"{size(sum(file.bytes for file in inside))}"
        )
    if len(wanted) > _DIRECTORIES_SHOWN:
        lines.append(f"  … and {_number(len(wanted) - _DIRECTORIES_SHOWN, 'directory')} more")
    return lines


def _files(table: Table, listing: Listing) -> list[_File]:
    found = []
    for event_files, deletes in ((listing.data, False), (listing.deletes, True)):
        for file in event_files:
            directory = f"{listing.partition}/{file.directory.name}".lstrip("/")
            bucket_id = bucket_id_of(file.path.rpartition("/")[2])
            found.append(
                _File(file.path, listing.partition, directory, file.size, deletes, bucket_id)
            )
    for group in listing.originals:
        for path in group.paths:
            below = path.removeprefix(f"{table.location}/").rpartition("/")[0]
            found.append(_File(path, listing.partition, below, 0, False, None))
    return found


def _read(files: Sequence[_File], scans: Scans | None) -> list[_File]:
    """Those of a table's files that are read, and delete events that concern what is read."""
    if scans is None:
        return list(files)
    rows = {file for file in files if not file.deletes and _is_read(file, scans)}
    places = {(file.partition, file.bucket_id) for file in rows}
    # Without a bucket id it is an original, whose rows may be of any.
    anywhere = {partition for partition, bucket_id in places if bucket_id is None}

    def has_rows(file: _File) -> bool:
        return file.partition in anywhere or (file.partition, file.bucket_id) in places

    # Where there is no join, Spark does not see the delete events.
    return [
        file
        for file in files
        if file in rows
        or _plain(file.path) in scans.selected
        or (file.deletes and _plain(file.path) not in scans.opened and has_rows(file))
    ]


def _is_read(file: _File, scans: Scans) -> bool:
    path = _plain(file.path)
    # What Spark does not open itself is read by Python tasks, if there are any, or not at all.
    return path in scans.selected or (scans.has_python and path not in scans.opened)


def _plain(path: str) -> str:
    """A path without scheme and host."""
    found = _SCHEME.match(path)
    return path[found.end() :] if found else path


def _events(files: Sequence[_File]) -> str:
    if len(files) > _FOOTERS_MAX:
        return "?"
    rows = in_threads(lambda file: read_file_info(file.path).rows, files)
    return f"{sum(rows):,}"


def _number(count: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count:,} {what if count == 1 else plural}"
