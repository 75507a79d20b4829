"""What a reader sees in a table's or partition's directory, before Hive's rules sort it.

A pair is a delta and the delete delta of the same name that one minor compaction has made. While
only one half of a pair is there, it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from acidsql.acid.layout import (
    METADATA_FILE,
    PAIRED_FILE,
    DirectoryKind,
    is_hidden,
    parse_directory,
)
from acidsql.acid.state import Child
from acidsql.errors import FormatError
from acidsql.storage.files.filesystem import Entry, FileSystem
from acidsql.storage.orc.damage import naming_damage

_MARKER_BYTES = 1 << 16  # more than any _metadata_acid has
_SAID_OF_BASES = ("", "compacted", "truncated", "dropped")  # Hive's ``AcidUtils.MetaDataFile``
_LOOKS = 10  # attempts to list a directory that changes meanwhile


def visible_entries(fs: FileSystem, path: str) -> tuple[list[Entry], list[Child]]:
    """List a table's or partition's directory without its hidden entries and lone halves of pairs.

    A minor compaction renames two directories, one after the other. Between the two renames (or if
    the compaction died there), the first directory alone would hide the events of the second. So
    this function leaves out a directory without its twin. (The mark in the directory is never
    removed, so every reader that lists only one of the two finds the mark.)

    If a directory disappears while this function looks into it (the cleaner deletes it, or a worker
    moves a half away), the function lists again, because the directory may have mattered.

    Returns:
        The entries, sorted by name; and in the same order a ``Child`` for each: its name, whether
        it is a directory, and whether Hive 3.1 marks it as a base of a compaction.

    Raises:
        FileNotFoundError: The directory is missing, or it changed again at each of ten attempts.
        FormatError: A file has the name of a base or delta, or a base's marker is damaged.
    """
    for look in range(_LOOKS):
        shown_entries = [entry for entry in fs.list(path) if not is_hidden(entry.name)]
        names = {entry.name for entry in shown_entries}
        try:
            entries = [entry for entry in shown_entries if not is_lone_half(fs, entry, names)]
            return entries, [read_child(fs, entry) for entry in entries]
        except FileNotFoundError:
            if look == _LOOKS - 1:
                raise
    raise AssertionError("it returns or raises")


def is_lone_half(fs: FileSystem, entry: Entry, names: Collection[str]) -> bool:
    """Whether a directory is one half of a pair, and the other half is not among these names.

    A half is a delta or delete delta without a statement id in its name, and with the mark of a
    half in it. The function lists the directory to find this mark, but only if the name fits and
    the other half is missing. False for a file, a base and any other directory.

    Raises:
        FileNotFoundError: The directory is gone; a worker may have moved the half away.
    """
    directory = parse_directory(entry.name) if entry.is_dir else None
    if (
        directory is None
        or directory.kind is DirectoryKind.BASE
        or directory.statement_id is not None
    ):
        return False
    name = entry.name
    twin = name.removeprefix("delete_") if name.startswith("delete_") else f"delete_{name}"
    if twin in names:
        return False
    return _has_file(fs, entry.path, PAIRED_FILE)


def _has_file(fs: FileSystem, path: str, name: str) -> bool:
    """Whether a directory has a file of this name. Raises FileNotFoundError if the directory is
    gone.
    """
    return any(child.name == name for child in fs.list(path))


def read_child(fs: FileSystem, entry: Entry) -> Child:
    """Return a child of a table's or partition's directory as a ``Child``: its name, whether it is
    a directory, and whether Hive 3.1 marks it as a base of a compaction. A base is looked into.

    Raises:
        FileNotFoundError: The child is gone.
        FormatError: A file has the name of a base or delta, or a base's marker is damaged.
    """
    if not entry.is_dir and parse_directory(entry.name) is not None:
        raise FormatError(f"'{entry.path}' is no directory, or a dead link", path=entry.path)
    is_base = entry.is_dir and entry.name.startswith("base_")
    return Child(entry.name, entry.is_dir, is_base and _is_compacted(fs, entry.path))


def _is_compacted(fs: FileSystem, path: str) -> bool:
    """Whether a base has Hive 3.1's marker of a compaction in it (Hive 4 marks it by the name).
    False without a marker, and for a marker of another kind (truncated, dropped). Raises
    FormatError if the marker cannot be read, or names a kind that Hive does not know.
    """
    if not _has_file(fs, path, METADATA_FILE):
        return False
    marker = f"{path}/{METADATA_FILE}"
    with naming_damage(marker), fs.open_input(marker) as file:
        data_format = json.loads(file.read(_MARKER_BYTES)).get("dataFormat", "")
        if data_format not in _SAID_OF_BASES:
            raise FormatError(f"it says that its directory is '{data_format}'")
        return bool(data_format == "compacted")
