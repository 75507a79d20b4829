"""Finds the directories of partitions by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from acidsql.acid.layout import is_hidden, parse_partition_name
from acidsql.storage.files.filesystem import Entry
from acidsql.storage.files.gone import directory_gone_error

# ``map``, or the ``map`` of a pool of threads.
_Map = Callable[[Callable[[str], list[str]], Iterable[str]], Iterable[list[str]]]


def discover_partitions(
    list_children: Callable[[str], list[Entry]],
    location: str,
    columns: Sequence[str],
    map_level: _Map = map,
) -> list[str]:
    """Find the partitions' directories on disk by their names, and return their paths below
    ``location``, sorted: ``p1=a/p2=1``; [""] without partition columns.

    Only directories of all the columns, in this order, count; the columns' names may differ in
    case. Names stay as they are on disk, escapes included. Hidden directories and empty files are
    left out. A broken link counts, and so does any file with a size, so that listing it fails.

    Args:
        list_children: The file system's ``list``; ``list_if_there`` if directories may be missing.
        location: The table's directory.
        columns: The partition columns.
        map_level: Lists the directories of one level: ``map``, or the one of a pool of threads.

    Raises:
        SnapshotTooOldError: ``list_children`` raised FileNotFoundError: a directory is missing.
    """
    partitions = [""]
    for column in columns:

        def partitions_below(prefix: str, column: str = column) -> list[str]:
            """Return the paths below ``location`` of a directory's children ``column=value``."""
            path = f"{location}/{prefix}" if prefix else location
            try:
                entries = list_children(path)
            except FileNotFoundError as error:
                raise directory_gone_error(path, error) from error
            # A broken link is listed as a file with a size. It is kept, so that listing it fails.
            entries = [entry for entry in entries if entry.is_dir or entry.size]
            names = (entry.name for entry in entries if is_partition(entry.name, column))
            return [f"{prefix}/{name}".lstrip("/") for name in names]

        partitions = [name for names in map_level(partitions_below, partitions) for name in names]
    return sorted(partitions)


def is_partition(name: str, column: str) -> bool:
    """Whether a name is ``column=value``, that of a partition's directory, and not hidden. The
    column's case does not count.
    """
    if "=" not in name or is_hidden(name):
        return False
    return parse_partition_name(name)[0][0].lower() == column.lower()
