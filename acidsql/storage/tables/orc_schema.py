"""The columns of an ORC file as Hive's types, from its footer. Driver only, without a Spark job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid import event
from acidsql.acid.values.evolution import is_cast
from acidsql.acid.values.types import HiveType
from acidsql.errors import FormatError
from acidsql.storage.files.filesystem import filesystem_for, length_of
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.encoding.footer import Footer, OrcType, read_footer
from acidsql.storage.orc.lost_days import may_hold_lost_days
from acidsql.storage.tables.file_info import footer_facts, read_file_info
from acidsql.storage.tables.listing import EventFile, Listing

_NAMELESS = re.compile(r"_col\d+")
_MISSING = "__acidsql_missing"


def columns_of(path: str, length: int | None = None) -> list[tuple[str, str]]:
    """Return the user's columns of a file: their names in the file, and Hive's type texts.

    Args:
        path: A file of events (the columns are the fields of ``row``), or any other ORC file.
        length: The committed length in bytes, if it is not the whole file (``_flush_length``).

    Raises:
        FormatError: The file is not ORC, is damaged, or its root is no struct.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        end = length_of(file) if length is None else length
        return _user_columns(read_footer(file, end).types, path)


def _user_columns(types: Sequence[OrcType], path: str) -> list[tuple[str, str]]:
    """Return name and Hive's type text of the user's columns, in order: in a file of events (its
    columns have the names of the event columns, in any case) the fields of ``row``, in others all
    columns. Raises FormatError if the root is no struct.
    """
    if not types or types[0].kind != "struct":
        raise FormatError(f"'{path}' has no columns", path=path)
    root = types[0]
    if [name.lower() for name in root.names] == [n.lower() for n in event.EVENT_COLUMNS]:
        root = types[root.children[-1]]
    return [
        (name, str(_node(child, types)))
        for name, child in zip(root.names, root.children, strict=True)
    ]


def _node(number: int, types: Sequence[OrcType]) -> HiveType:
    """Return the type with this number as Hive's, with all that is inside of it."""
    orc = types[number]
    children = tuple(_node(child, types) for child in orc.children)
    return HiveType(orc.kind, orc.parameters, children, orc.names)


@dataclass(frozen=True, slots=True)
class FileColumnNames:
    """The names that the files of a directory have for their columns.

    Attributes:
        events: The six event columns. Hive's query-based compaction writes them in lower case.
        row: The user's columns.
        types: The types of the user's columns, without what is inside of nested types.
        is_foreign_proleptic: The calendar is proleptic, and another writer than ours wrote the
            files.
    """

    events: tuple[str, ...]
    row: tuple[str, ...]
    types: tuple[HiveType, ...] = ()
    is_foreign_proleptic: bool = False


def names_by_directory(files: Sequence[EventFile]) -> dict[str, FileColumnNames]:
    """Return the path of each directory of these event files → the names and types that its files
    have for their columns.

    A statement writes all its files with one schema, so one footer is read for all files of a
    statement, in all partitions. For compactions and streams, one footer of each directory is read.

    Raises:
        FormatError: A file that was read is damaged, or does not have the six event columns.
    """
    writers = {file.place: _writer(file) for file in files}
    one_of_each = {_writer(file): file.path for file in files}
    names = dict(
        zip(one_of_each, run_in_threads(_read_column_names, one_of_each.values()), strict=True)
    )
    return {directory: names[writer] for directory, writer in writers.items()}


def _writer(file: EventFile) -> str:
    """Return a key that all files of one statement, or of one directory of a compaction or stream,
    share: the directory's name for a statement, else its path.
    """
    is_statements = file.directory.statement_id is not None
    return file.directory.name if is_statements else file.place


def _read_column_names(path: str) -> FileColumnNames:
    """Return the names and types of a file's columns. Raises FormatError if it is no file of
    events.
    """
    info = read_file_info(path)
    if not info.is_acid:
        raise FormatError(f"'{path}' is no file of ACID events", path=path)
    return FileColumnNames(
        info.column_names, info.row_names, info.row_types, info.is_foreign_proleptic
    )


def column_types(path: str) -> tuple[HiveType, ...]:
    """Return the types of the user's columns in a file, without what is inside of nested types.
    Raises FormatError if it is not ORC, or is damaged.
    """
    return read_file_info(path).row_types


def types_by_directory(listings: Sequence[Listing]) -> dict[str, tuple[HiveType, ...]]:
    """Return path → the types of the user's columns. The paths are those of the directories of
    files of insert events, and those of the files without event columns. Footers are read, of the
    former as ``names_by_directory`` does. Raises FormatError if a file is not ORC, or is damaged.
    """
    names = names_by_directory([file for listing in listings for file in listing.data])
    plain = [path for listing in listings for group in listing.originals for path in group.paths]
    types = {directory: directory_names.types for directory, directory_names in names.items()}
    return {**types, **dict(zip(plain, run_in_threads(column_types, plain), strict=True))}


def files_with_lost_days(paths: Sequence[str]) -> set[str]:
    """Return the files that may hold days which Spark's reader shows as other days. Reads all
    footers.
    """
    answers = zip(paths, run_in_threads(_may_have_lost_days, paths), strict=True)
    return {path for path, may_have in answers if may_have}


def _may_have_lost_days(path: str) -> bool:
    """Whether a file may hold days which Spark's reader shows as others, by its footer."""
    return may_hold_lost_days(_footer(path))


def any_misread(paths: Sequence[str], types: Sequence[HiveType]) -> bool:
    """Whether Spark's reader may show other values than Hive's for one of these files of any
    writer: old days, or columns whose type was changed since, by position. Columns that a file
    lacks are no difference.

    ``types``: the types of the table's columns. Reads all footers. Raises FormatError if a file is
    not ORC, or is damaged.
    """

    def is_misread(path: str) -> bool:
        """Whether Spark's reader may show other values than Hive's for this file."""
        footer = _footer(path)
        return may_hold_lost_days(footer) or any(
            map(is_cast, footer_facts(footer).row_types, types)
        )

    return any(run_in_threads(is_misread, paths))


def _footer(path: str) -> Footer:
    """Read and return the footer of an ORC file. Raises FormatError if it is damaged."""
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        return read_footer(file, length_of(file))


def has_no_names(names: Sequence[str]) -> bool:
    """Whether all names are Hive's ``_col0``, ``_col1`` …, which are only numbers. True for no
    names.
    """
    return all(_NAMELESS.fullmatch(name) for name in names)


def names_at_positions(names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names by which to read a table's columns from a file that has them at the same
    positions.

    Args:
        names: The file's names; fewer than ``columns`` if columns were added later.
        columns: The table's names.

    Returns:
        ``columns`` if they agree with the file's names, in upper and lower case too, as far as both
        go; else the file's names, then names that no file has for added columns. None if Spark's
        reader cannot find columns by name: the file has no names, or names that differ in case
        only, or Hive's ``_col0``, ``_col1`` …, which ORC does not treat as names, even if the
        table's columns have these names.
    """
    shared_count = min(len(names), len(columns))
    if has_no_names(names):
        return None
    if list(names[:shared_count]) == list(columns[:shared_count]):
        return tuple(columns)
    if len({name.lower() for name in names}) < len(names):
        return None
    missing = (f"{_MISSING}{number}" for number in range(shared_count, len(columns)))
    return (*names[:shared_count], *missing)
