"""The directories of tables: makes them, adopts existing files, deletes what was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acidsql.acid.layout import MOVED_FILE, parse_directory, parse_partition_name
from acidsql.acid.paths import (
    is_local,
    is_same,
    is_within,
    may_be_within,
    normal,
    overlap,
    why_no_place,
)
from acidsql.acid.table import ORC, PARQUET, Partition, Table
from acidsql.acid.types import HiveType, parse_type
from acidsql.compaction.dropped import delete_dropped
from acidsql.errors import CatalogError, FormatError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.owners import Owner
from acidsql.plan.assignment import can_assign
from acidsql.storage.files.filesystem import Entry, FileSystem, filesystem_for, real, reals
from acidsql.storage.files.orc_schema import has_no_names, with_lost_days
from acidsql.storage.files.parquet import need_readable
from acidsql.storage.files.partition_tree import discover_partitions
from acidsql.storage.orc.row_schema import RowSchema, places_of_fields
from acidsql.storage.writing import adopt

# The first write id of a table that Hive has converted: Hive starts the table's counter here.
FIRST_WRITE_ID_AFTER_CONVERSION = 10_000_001


@dataclass(frozen=True, slots=True)
class Adopted:
    """The files that CREATE TABLE … LOCATION has found.

    Attributes:
        first_write_id: The new table's first write id. It is above all write ids of the files.
        partitions: The partition directories.
        notes: Remarks for the user, shown in the receipt.
    """

    first_write_id: int = 1
    partitions: tuple[Partition, ...] = ()
    notes: tuple[str, ...] = ()


def entering(location: str, *, links: bool = False) -> str:
    """The form of a LOCATION that is stored and compared: an absolute path without links.

    Args:
        location: The location as the user wrote it.
        links: Whether the location may be a link itself. A table's location must not be one: DROP
            would empty the directory behind the link.

    Raises:
        CatalogError: INVALID_LOCATION: the location cannot be the directory of a table or database.
    """
    why = why_no_place(location)
    if why is None:
        found = real(location)
        why = why_no_place(found)
        if not links and is_local(location) and filesystem_for(location).is_link(normal(location)):
            why = f"it is a link. If you mean the directory behind it, write its path: '{found}'"
        if why is None:
            return found
    raise CatalogError(
        f"'{location}' cannot be a LOCATION: {why}.",
        condition="INVALID_LOCATION", sqlstate="42K05", location=location,
    )  # fmt: skip


def has_moved_away(location: str) -> bool:
    """Whether the directory is that of a table that another metastore has now."""
    return filesystem_for(location).exists(f"{location}/{MOVED_FILE}")


def _moved_away(location: str) -> CatalogError:
    with filesystem_for(location).open_input(f"{location}/{MOVED_FILE}") as file:
        where = file.read(1000).decode(errors="replace").strip()
    return CatalogError(
        f"The directory '{location}' belongs to a table of another metastore: {where}.",
        condition="LOCATION_ALREADY_EXISTS", sqlstate="42710", location=location,
    )  # fmt: skip


class Places:
    """The directories of one metastore's tables."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore

    def owners_of(self, path: str) -> list[Owner]:
        """The owners of the directory ``path``. Compares real paths, not the catalog's texts."""
        return [owner for owner, place in self._owners() if may_be_within(path, place)]

    def neighbours(self, path: str) -> list[Owner]:
        """The owners of the directory ``path``, and of the directories inside of it."""
        return [owner for owner, place in self._owners() if overlap(path, place)]

    def _owners(self) -> Iterator[tuple[Owner, str]]:
        owners = self._metastore.owners()
        return zip(owners, reals(owner.location for owner in owners), strict=True)

    def free(self, table: Table, number: int) -> Table:
        """The same table, in a directory that no other table owns.

        Usually this is the directory with the table's name. Another table owns that directory if
        the table was renamed, was dropped and is not cleaned up yet, or moved to another metastore.

        Args:
            table: The table, which does not exist yet.
            number: The transaction's id, which makes the name of another directory unique.
        """
        for owner in self.neighbours(table.location):
            # ``prepare`` deletes the files of a dropped namesake, unless somebody may read them.
            is_own = owner.is_dropped and owner.table == table.name and not owner.has_readers
            if not is_own or not is_same(owner.location, table.location):
                return replace(table, location=f"{table.location}_{number}")
        if has_moved_away(table.location):
            return replace(table, location=f"{table.location}_{number}")
        return table

    def prepare(self, table: Table, *, adopt: bool) -> Adopted:
        """Check that a new table's directory is empty or, with ``adopt``, take over its files.

        Call this method under the table's lock. It first deletes what a dropped table of the same
        name has left in the directory. The files of a dropped table of another name stay: the
        holder of that table's lock may be deleting them.

        Raises:
            CatalogError: LOCATION_ALREADY_EXISTS: another table owns the directory or owned it, or
                the directory is not empty and ``adopt`` is False.
            UnsupportedError: The files may break the table's CHECK constraints.
        """
        for cleanup in self._metastore.pending_cleanups():
            is_own = cleanup.table == table.name and not cleanup.until
            if is_own and is_same(cleanup.location, table.location):
                delete_dropped(self._metastore, cleanup)
        if adopt:  # otherwise ``free`` has chosen the directory
            for owner in self.neighbours(table.location):
                raise owner.refusal(table.location)
            if has_moved_away(table.location):
                raise _moved_away(table.location)
        fs = filesystem_for(table.location)
        names = [entry.name for entry in fs.list_if_there(table.location)]
        is_link = fs.is_link(table.location)
        if adopt and names and table.checks:
            raise UnsupportedError(
                f"The rows of the files in '{table.location}' may break the table's CHECK. Create "
                "the table without it: ALTER TABLE … ADD CONSTRAINT looks at the rows.",
                condition="UNSUPPORTED_FEATURE.CHECK_CONSTRAINT",
            )
        if adopt and not is_link:
            return self._adopt(table) if names else Adopted()
        if not names and not is_link:
            return Adopted()
        raise CatalogError(
            f"The directory '{table.location}' is "
            + ("a link" if is_link else f"not empty ({names[0]} …)")
            + ". Write LOCATION to take over its files, or remove the directory.",
            condition="LOCATION_ALREADY_EXISTS",
            sqlstate="42710",
            location=table.location,
        )

    def convert(
        self, table: Table, partitions: Sequence[Partition]
    ) -> tuple[tuple[str, ...], dict[str, int]]:
        """Check that the files of a plain table can be those of a full-ACID table, and give them
        Hive's names. Call this method under the table's lock.

        Returns:
            Remarks for the user, and how many rows are in each directory: the partitions', or the
            table's own.

        Raises:
            CatalogError: The files cannot, or the table's partitions are elsewhere.
        """
        for owner in self.neighbours(table.location):
            raise owner.refusal(table.location)
        fs = filesystem_for(table.location)
        columns = [column.name for column in table.partition_columns]
        names = discover_partitions(fs.list, table.location, columns)
        there = {f"{table.location}/{name}".rstrip("/") for name in names}
        known = {one.location for one in partitions} if columns else {table.location}
        if odd := there.symmetric_difference(known):
            raise _cannot_adopt(
                f"'{min(odd)}' is not both a directory in the table's and a partition that the "
                "metastore knows. Let Hive add it (MSCK REPAIR TABLE) or drop it before.", table
            )  # fmt: skip
        for path in sorted(there):
            if acid := adopt.find(fs, path).acid:
                raise _cannot_adopt(
                    f"'{acid[0].path}' would be taken as a part of the ACID table. Move it away.",
                    table,
                )
        notes = self._adopt(table).notes[1:]
        return notes, {path: adopt.count_originals(adopt.find(fs, path)) for path in sorted(there)}

    def make(self, table: Table) -> None:
        """Make a table's directory, durably."""
        fs = filesystem_for(table.location)
        fs.create_directory(table.location)
        fs.sync_directory(table.location.rpartition("/")[0])

    def directories(self, table: Table, partitions: Sequence[str]) -> list[str]:
        """The directories that are inside of these partition directories now."""
        fs = filesystem_for(table.location)
        return [
            entry.path
            for partition in partitions
            for entry in fs.list_if_there(f"{table.location}/{partition}")
            if entry.is_dir
        ]

    def remove(self, table: Table, partitions: Sequence[str], directories: Sequence[str]) -> None:
        """Delete these directories in this order, then the partition directories that are empty.

        No reader needs the directories any more, so a failure is ignored: it leaves only litter.
        If a partition directory is a link, only the link is deleted, and nothing behind the link.
        """
        fs = filesystem_for(table.location)
        links = [fs.link_on_the_way(table.location, partition) for partition in partitions]
        own = {f"{table.location}/{partition}" for partition in partitions}
        behind = [link for link in links if link is not None]
        try:
            for path in own.intersection(behind):
                fs.delete_directory(path)
            for directory in directories:
                if not any(is_within(directory, link) for link in behind):
                    fs.delete_directory(directory)
            for partition, link in zip(partitions, links, strict=True):
                # An empty directory does no harm, and there is no lock any more.
                if link is None and fs.can_remove_empty:
                    self._remove_empty(table.location, partition)
        except OSError:
            return

    def check_full_acid(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Check that an insert-only table has the same rows for readers of full-ACID tables.

        Raises:
            CatalogError: There is a file that only one kind of reader would read.
        """
        fs = filesystem_for(table.location)
        where = [partition.location for partition in partitions]
        for path in where if table.partition_columns else [table.location]:
            odd = adopt.unreadable_as_full_acid(fs, path)
            if odd is not None:
                raise CatalogError(
                    f"'{odd}' would mean something else in a full-ACID table. CREATE TABLE … AS "
                    f"SELECT * FROM {table.name} copies the rows into a full-ACID table.",
                    condition="LOCATION_CANNOT_BE_ADOPTED", sqlstate="42710", location=path,
                )  # fmt: skip

    def _remove_empty(self, location: str, partition: str) -> None:
        fs = filesystem_for(location)
        while partition and fs.remove_empty_directory(f"{location}/{partition}"):
            partition = partition.rpartition("/")[0]

    def _adopt(self, table: Table) -> Adopted:
        fs = filesystem_for(table.location)
        columns = [column.name for column in table.partition_columns]
        names = discover_partitions(fs.list, table.location, columns)
        try:
            adopt.check_partitions(fs, table.location, columns)
            found = [adopt.find(fs, f"{table.location}/{name}".rstrip("/")) for name in names]
            notes = _checked(fs, table, found)
        except FormatError as error:
            raise _cannot_adopt(error.message, table) from None
        renamed = sum(adopt.rename_originals(fs, one) for one in found)
        if renamed:
            notes.append(f"renamed {renamed} files to Hive's names (000000_0 …)")
        partitions = tuple(
            Partition(
                tuple(value for _, value in parse_partition_name(name)), f"{table.location}/{name}"
            )
            for name in names
            if name
        )
        directories = [entry for one in found for entry in one.acid]
        highest = max((_highest_write_id(entry) for entry in directories), default=0)
        originals = sum(len(one.originals) for one in found)
        notes.insert(
            0,
            f"adopted {len(directories)} ACID directories up to write id {highest} and "
            f"{originals} original files; all of it is taken as committed",
        )
        first = max(highest + 1, FIRST_WRITE_ID_AFTER_CONVERSION if originals else 1)
        return Adopted(first, partitions, tuple(notes))


def _checked(fs: FileSystem, table: Table, found: Sequence[adopt.DirectoryContents]) -> list[str]:
    """Refuse files that the table's rows cannot be read from. Returns remarks for the user."""
    notes: list[str] = []
    for one in found:
        if table.is_insert_only and one.originals:
            raise _cannot_adopt(
                f"'{one.originals[0].path}' is in no delta or base, and an insert-only table does "
                "not see such files. Make the table elsewhere and LOAD DATA from there.", table
            )  # fmt: skip
        adopt.check_names(one)
        if table.is_insert_only:
            _check_plain(fs, table, one)
        if table.is_bucketed:
            adopt.check_buckets(one, table.num_buckets)
        for file, columns in zip(
            one.originals, adopt.columns_of_originals(one.originals), strict=True
        ):
            if fault := _misfit(columns, table):
                raise _cannot_adopt(f"'{file.path}' does not fit the table: {fault}.", table)
            theirs = [name.lower() for name, _ in columns]
            ours = [column.name for column in table.columns]
            if theirs != ours[: len(theirs)] and not has_no_names(theirs) and not notes:
                notes.append(
                    f"columns are matched by position, and '{file.path}' calls them "
                    f"{', '.join(theirs)}"
                )
    return notes


def _check_plain(fs: FileSystem, table: Table, found: adopt.DirectoryContents) -> None:
    """Refuse files of an insert-only table that Spark's reader would show other than they are."""
    paths = [entry.path for entry in adopt.plain_files(fs, found)]
    if table.file_format == PARQUET:
        need_readable(paths, RowSchema.of((c.name, c.type) for c in table.columns))
    if table.file_format == ORC and (misread := with_lost_days(paths)):
        raise _cannot_adopt(
            f"'{min(misread)}' may hold days that Spark's ORC reader shows as others: from "
            "1582-10-05 to 1582-10-14, or before the year 1. acidsql.read reads the directory.",
            table,
        )


def _misfit(columns: Sequence[tuple[str, str]], table: Table) -> str | None:
    """Why an original file cannot be read; None if it can. The last columns may be missing."""
    if len(columns) > len(table.columns):
        return f"it has {len(columns)} columns, the table {len(table.columns)}"
    for (name, text), column in zip(columns, table.columns, strict=False):
        try:
            fits = _fits(parse_type(text), parse_type(column.type))
        except FormatError:
            fits = False
        if not fits:
            return f"its column '{name}' is of type {text}, the table's '{column.name}' of " + (
                column.type
            )
    return None


def _fits(found: HiveType, wanted: HiveType) -> bool:
    """Whether values of a file's type can be read as the table's type. Struct fields are matched by
    name."""
    if found.kind != wanted.kind or not wanted.children:
        return can_assign(found, wanted)
    places: Sequence[int | None] = range(len(wanted.children))
    if wanted.kind == "struct":
        places = places_of_fields(wanted.names, found.names)
    pairs = zip(places, wanted.children, strict=True)
    return all(i is None or _fits(found.children[i], child) for i, child in pairs)


def _cannot_adopt(why: str, table: Table) -> CatalogError:
    return CatalogError(
        why, condition="LOCATION_CANNOT_BE_ADOPTED", sqlstate="42710", location=table.location
    )


def _highest_write_id(entry: Entry) -> int:
    directory = parse_directory(entry.name) if entry.is_dir else None
    return max(directory.max_write_id, 1) if directory else 0
