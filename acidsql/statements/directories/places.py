"""The directories of tables: makes them, adopts existing files, deletes what was dropped.

To adopt files is to make them a new table's rows, in their place. An original is a file in no base
or delta, from the time before the table was ACID.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acidsql.acid.layout import MOVED_FILE, parse_directory, parse_partition_name
from acidsql.acid.paths import (
    directory_of,
    is_local,
    is_same,
    is_within,
    may_be_within,
    normal,
    overlap,
    why_no_place,
)
from acidsql.acid.table import ORC, PARQUET, Partition, Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.compaction.dropped import delete_dropped
from acidsql.errors import CatalogError, FormatError, UnsupportedError
from acidsql.metastore.interface import Metastore
from acidsql.metastore.owners import Owner
from acidsql.plan.values.assignment import can_assign
from acidsql.storage.files.filesystem import (
    Entry,
    FileSystem,
    filesystem_for,
    real_location,
    real_locations,
)
from acidsql.storage.files.partition_tree import discover_partitions
from acidsql.storage.orc.row_schema import RowSchema, places_of_fields
from acidsql.storage.tables.orc_schema import files_with_lost_days, has_no_names
from acidsql.storage.tables.parquet import need_readable
from acidsql.storage.writing import adopt

# The first write id of a table that Hive has converted: Hive starts the table's counter here.
FIRST_WRITE_ID_AFTER_CONVERSION = 10_000_001


@dataclass(frozen=True, slots=True)
class AdoptedFiles:
    """The files that CREATE TABLE … LOCATION has adopted.

    Attributes:
        first_write_id: The new table's first write id. It is above all write ids of the files.
        partitions: The partition directories.
        notes: Remarks for the user, shown in the receipt.
    """

    first_write_id: int = 1
    partitions: tuple[Partition, ...] = ()
    notes: tuple[str, ...] = ()


def normalized_location(location: str, *, may_be_link: bool = False) -> str:
    """Return the form of a LOCATION that is stored and compared: an absolute path, on this machine
    without links. A scheme stays, also ``file:``.

    Args:
        location: The location as the user wrote it.
        may_be_link: Whether the location itself may be a link, if it is on this machine. A table's
            location must not be a link: DROP would empty the directory behind the link.

    Raises:
        CatalogError: INVALID_LOCATION: the location cannot be the directory of a table or database,
            or is a link that it may not be.
    """
    reason = why_no_place(location)
    if reason is None:
        real_path = real_location(location)
        reason = why_no_place(real_path)
        if (
            not may_be_link
            and is_local(location)
            and filesystem_for(location).is_link(normal(location))
        ):
            reason = (
                f"it is a link. If you mean the directory behind it, write its path: '{real_path}'"
            )
        if reason is None:
            return real_path
    raise CatalogError(
        f"'{location}' cannot be a LOCATION: {reason}.",
        condition="INVALID_LOCATION", sqlstate="42K05", location=location,
    )  # fmt: skip


def has_moved_away(location: str) -> bool:
    """Whether the directory belongs to a table that has moved to another metastore: whether it has
    the label file that the move has written."""
    return filesystem_for(location).exists(f"{location}/{MOVED_FILE}")


def _moved_away_error(location: str) -> CatalogError:
    """Return the error that a directory's table has moved to another metastore, whose address is in
    the label file there; this reads the label."""
    with filesystem_for(location).open_input(f"{location}/{MOVED_FILE}") as file:
        new_place = file.read(1000).decode(errors="replace").strip()
    return CatalogError(
        f"The directory '{location}' belongs to a table of another metastore: {new_place}.",
        condition="LOCATION_ALREADY_EXISTS", sqlstate="42710", location=location,
    )  # fmt: skip


class Places:
    """The directories of one metastore's tables."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore

    def owners_of(self, path: str) -> list[Owner]:
        """Return the tables whose directory is ``path`` or contains it. A dropped table counts
        until its files are deleted. Links are followed before paths are compared."""
        return [owner for owner, place in self._owners() if may_be_within(path, place)]

    def overlapping_owners(self, path: str) -> list[Owner]:
        """Return the tables whose directory is ``path``, contains it, or is inside of it. A dropped
        table counts until its files are deleted. Links are followed before paths are compared."""
        return [owner for owner, place in self._owners() if overlap(path, place)]

    def _owners(self) -> Iterator[tuple[Owner, str]]:
        """Yield each table that has a directory, with the real path of the directory."""
        owners = self._metastore.owners()
        return zip(owners, real_locations(owner.location for owner in owners), strict=True)

    def choose_location(self, table: Table, txn_id: int) -> Table:
        """Return the same table, with a location that no other table owns: its own, or its own with
        ``_<txn_id>`` at the end. Nothing is created.

        Usually this is the directory with the table's name. Another table owns that directory if a
        table was renamed, was dropped and is not cleaned up yet, or moved to another metastore.

        Args:
            table: The table, which does not exist yet.
            txn_id: The transaction's id, which makes the name of another directory unique.
        """
        for owner in self.overlapping_owners(table.location):
            # If nobody reads the files of a dropped namesake, ``prepare_directory`` deletes them.
            is_own = owner.is_dropped and owner.table == table.name and not owner.has_readers
            if not is_own or not is_same(owner.location, table.location):
                return replace(table, location=f"{table.location}_{txn_id}")
        if has_moved_away(table.location):
            return replace(table, location=f"{table.location}_{txn_id}")
        return table

    def prepare_directory(self, table: Table, *, adopt: bool) -> AdoptedFiles:
        """Check that a new table's directory is empty or missing or, with ``adopt``, that its files
        can be the table's; those without a bucket id in their names are then renamed. The directory
        is not created.

        Call this method under the table's lock. The method first deletes the files that a dropped
        table of the same name has left in the directory. The files of a dropped table of another
        name stay: the holder of that table's lock may be deleting them.

        Returns:
            The adopted files; without ``adopt``, or without files, an empty ``AdoptedFiles``.

        Raises:
            CatalogError: LOCATION_ALREADY_EXISTS: the directory is a link, or is not empty and
                ``adopt`` is False; with ``adopt``, another table owns the directory, or has moved
                away from there. LOCATION_CANNOT_BE_ADOPTED: the files do not fit the table.
            UnsupportedError: The files may break the table's CHECK constraints.
        """
        for cleanup in self._metastore.pending_cleanups():
            is_own = cleanup.table == table.name and not cleanup.until
            if is_own and is_same(cleanup.location, table.location):
                delete_dropped(self._metastore, cleanup)
        if adopt:  # otherwise ``choose_location`` has chosen the directory
            for owner in self.overlapping_owners(table.location):
                raise owner.refusal(table.location)
            if has_moved_away(table.location):
                raise _moved_away_error(table.location)
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
            return self._adopt_files(table) if names else AdoptedFiles()
        if not names and not is_link:
            return AdoptedFiles()
        raise CatalogError(
            f"The directory '{table.location}' is "
            + ("a link" if is_link else f"not empty ({names[0]} …)")
            + ". Write LOCATION to take over its files, or remove the directory.",
            condition="LOCATION_ALREADY_EXISTS",
            sqlstate="42710",
            location=table.location,
        )

    def convert_files(
        self, table: Table, partitions: Sequence[Partition]
    ) -> tuple[tuple[str, ...], dict[str, int]]:
        """Check that the files of a plain table can be those of a full-ACID table, and rename those
        without a bucket id in their names. Call this method under the table's lock.

        Returns:
            Remarks for the user, and how many rows are in each directory, by its path: the
            partitions', or the table's own.

        Raises:
            CatalogError: Another table owns the directory, the files cannot be those of a full-ACID
                table, or the metastore has other partitions than the table's directory.
        """
        for owner in self.overlapping_owners(table.location):
            raise owner.refusal(table.location)
        fs = filesystem_for(table.location)
        columns = [column.name for column in table.partition_columns]
        names = discover_partitions(fs.list, table.location, columns)
        directory_locations = {f"{table.location}/{name}".rstrip("/") for name in names}
        catalog_locations = (
            {partition.location for partition in partitions} if columns else {table.location}
        )
        if unmatched := directory_locations.symmetric_difference(catalog_locations):
            raise _adoption_error(
                f"'{min(unmatched)}' is not both a directory in the table's and a partition that "
                "the metastore knows. Let Hive add it (MSCK REPAIR TABLE) or drop it before.",
                table,
            )
        for path in sorted(directory_locations):
            if acid_entries := adopt.list_contents(fs, path).acid:
                raise _adoption_error(
                    f"'{acid_entries[0].path}' would be taken as a part of the ACID table. Move it "
                    "away.",
                    table,
                )
        notes = self._adopt_files(table).notes[1:]
        return notes, {
            path: adopt.count_originals(adopt.list_contents(fs, path))
            for path in sorted(directory_locations)
        }

    def make_directory(self, table: Table) -> None:
        """Make a table's directory, durably."""
        fs = filesystem_for(table.location)
        fs.create_directory(table.location)
        fs.sync_directory(directory_of(table.location))

    def child_directories(self, table: Table, partitions: Sequence[str]) -> list[str]:
        """Return the paths of the directories directly inside these partition directories now,
        without files. A partition directory that is missing has none."""
        fs = filesystem_for(table.location)
        return [
            entry.path
            for partition in partitions
            for entry in fs.list_if_there(f"{table.location}/{partition}")
            if entry.is_dir
        ]

    def remove(self, table: Table, partitions: Sequence[str], directories: Sequence[str]) -> None:
        """Delete these directories in this order, then the partition directories, and those above
        them, that are empty. ``partitions``: names below the table's directory.

        No reader needs the directories any more. So an OSError ends the method without an error,
        and what then stays is only litter. If a partition directory is a link, only the link is
        deleted; nothing behind a link on the path is.
        """
        fs = filesystem_for(table.location)
        links = [fs.first_link_on_path(table.location, partition) for partition in partitions]
        partition_locations = {f"{table.location}/{partition}" for partition in partitions}
        partition_links = [link for link in links if link is not None]
        try:
            for path in partition_locations.intersection(partition_links):
                fs.delete_directory(path)
            for directory in directories:
                if not any(is_within(directory, link) for link in partition_links):
                    fs.delete_directory(directory)
            for partition, link in zip(partitions, links, strict=True):
                # An empty directory does no harm, and there is no lock any more.
                if link is None and fs.can_remove_empty:
                    self._remove_empty(table.location, partition)
        except OSError:
            return

    def check_full_acid(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Check that readers of full-ACID tables would find the same rows in an insert-only
        table's files. ``partitions``: its partitions; not looked at for an unpartitioned table.

        Raises:
            CatalogError: There is a file that readers of full-ACID tables would read otherwise.
        """
        fs = filesystem_for(table.location)
        locations = [partition.location for partition in partitions]
        for path in locations if table.partition_columns else [table.location]:
            misread_file = adopt.unreadable_as_full_acid(fs, path)
            if misread_file is not None:
                raise CatalogError(
                    f"'{misread_file}' would mean something else in a full-ACID table. CREATE "
                    f"TABLE … AS SELECT * FROM {table.name} copies the rows into a full-ACID "
                    "table.",
                    condition="LOCATION_CANNOT_BE_ADOPTED", sqlstate="42710", location=path,
                )  # fmt: skip

    def _remove_empty(self, location: str, partition: str) -> None:
        """Delete a partition's directory, and those above it below the table's, as long as they are
        empty. ``location``: the table's directory."""
        fs = filesystem_for(location)
        while partition and fs.remove_empty_directory(f"{location}/{partition}"):
            partition = partition.rpartition("/")[0]

    def _adopt_files(self, table: Table) -> AdoptedFiles:
        """Check that the files in a table's directory fit the table, then give Hive's names to
        original files without a bucket id in theirs. Return the partitions, a first write id above
        all write ids of the files, and notes for the user. All rows in the files count as
        committed. Nothing is renamed if a check fails.

        Raises:
            CatalogError: LOCATION_CANNOT_BE_ADOPTED: a file or directory does not fit the table.
        """
        fs = filesystem_for(table.location)
        columns = [column.name for column in table.partition_columns]
        names = discover_partitions(fs.list, table.location, columns)
        try:
            adopt.check_partitions(fs, table.location, columns)
            directories = [
                adopt.list_contents(fs, f"{table.location}/{name}".rstrip("/")) for name in names
            ]
            notes = _check_directories(fs, table, directories)
        except FormatError as error:
            raise _adoption_error(error.message, table) from None
        renamed_count = sum(adopt.rename_originals(fs, directory) for directory in directories)
        if renamed_count:
            notes.append(f"renamed {renamed_count} files to Hive's names (000000_0 …)")
        partitions = tuple(
            Partition(
                tuple(value for _, value in parse_partition_name(name)), f"{table.location}/{name}"
            )
            for name in names
            if name
        )
        acid_entries = [entry for directory in directories for entry in directory.acid]
        highest_write_id = max((_highest_write_id(entry) for entry in acid_entries), default=0)
        original_count = sum(len(directory.originals) for directory in directories)
        notes.insert(
            0,
            f"adopted {len(acid_entries)} ACID directories up to write id {highest_write_id} and "
            f"{original_count} original files; all of it is taken as committed",
        )
        first_write_id = max(
            highest_write_id + 1, FIRST_WRITE_ID_AFTER_CONVERSION if original_count else 1
        )
        return AdoptedFiles(first_write_id, partitions, tuple(notes))


def _check_directories(
    fs: FileSystem, table: Table, directories: Sequence[adopt.DirectoryContents]
) -> list[str]:
    """Check that a table's rows can be read from the files that it is to take over, and return
    remarks for the user: at most one, about columns with other names. Raise CatalogError if a file
    does not fit, FormatError if its name or bucket does not."""
    notes: list[str] = []
    for directory in directories:
        if table.is_insert_only and directory.originals:
            raise _adoption_error(
                f"'{directory.originals[0].path}' is in no delta or base, and an insert-only table "
                "does not see such files. Make the table elsewhere and LOAD DATA from there.",
                table,
            )
        adopt.check_names(directory)
        if table.is_insert_only:
            _check_plain_files(fs, table, directory)
        if table.is_bucketed:
            adopt.check_buckets(directory, table.num_buckets)
        for file, file_columns in zip(
            directory.originals, adopt.columns_of_originals(directory.originals), strict=True
        ):
            if reason := _misfit_reason(file_columns, table):
                raise _adoption_error(f"'{file.path}' does not fit the table: {reason}.", table)
            file_names = [name.lower() for name, _ in file_columns]
            table_names = [column.name for column in table.columns]
            if (
                file_names != table_names[: len(file_names)]
                and not has_no_names(file_names)
                and not notes
            ):
                notes.append(
                    f"columns are matched by position, and '{file.path}' calls them "
                    f"{', '.join(file_names)}"
                )
    return notes


def _check_plain_files(fs: FileSystem, table: Table, directory: adopt.DirectoryContents) -> None:
    """Check that Spark's reader shows the values of an insert-only table's files as they are. Raise
    CatalogError for an ORC file with days that the reader shows as others, and an error for a
    Parquet file that it cannot read in the types of the table's columns."""
    paths = [entry.path for entry in adopt.plain_files(fs, directory)]
    if table.file_format == PARQUET:
        need_readable(
            paths, RowSchema.from_fields((column.name, column.type) for column in table.columns)
        )
    if table.file_format == ORC and (misread := files_with_lost_days(paths)):
        raise _adoption_error(
            f"'{min(misread)}' may hold days that Spark's ORC reader shows as others: from "
            "1582-10-05 to 1582-10-14, or before the year 1. acidsql.read reads the directory.",
            table,
        )


def _misfit_reason(file_columns: Sequence[tuple[str, str]], table: Table) -> str | None:
    """Return why an original file does not fit the table, for a message; None: it fits.

    Columns are matched by position; names are not compared. The file may lack the table's last
    columns, but may not have more. The type of each column in the file must be readable as the
    table's type (``_is_readable_as``); a type that acidsql cannot parse does not fit.
    """
    if len(file_columns) > len(table.columns):
        return f"it has {len(file_columns)} columns, the table {len(table.columns)}"
    for (name, file_type), column in zip(file_columns, table.columns, strict=False):
        try:
            is_readable = _is_readable_as(parse_type(file_type), parse_type(column.type))
        except FormatError:
            is_readable = False
        if not is_readable:
            return (
                f"its column '{name}' is of type {file_type}, the table's '{column.name}' of "
                + (column.type)
            )
    return None


def _is_readable_as(file_type: HiveType, table_type: HiveType) -> bool:
    """Whether values of a file's type can be read as the table's type: types that are not nested by
    the rules of assignment under the policy ANSI, nested ones of the same kind if all their parts
    can be. Struct fields are matched by name, and the file may lack some or have more.
    """
    if file_type.kind != table_type.kind or not table_type.children:
        return can_assign(file_type, table_type)
    field_indexes: Sequence[int | None] = range(len(table_type.children))
    if table_type.kind == "struct":
        field_indexes = places_of_fields(table_type.names, file_type.names)
    pairs = zip(field_indexes, table_type.children, strict=True)
    return all(
        field_index is None or _is_readable_as(file_type.children[field_index], table_child)
        for field_index, table_child in pairs
    )


def _adoption_error(reason: str, table: Table) -> CatalogError:
    return CatalogError(
        reason, condition="LOCATION_CANNOT_BE_ADOPTED", sqlstate="42710", location=table.location
    )


def _highest_write_id(entry: Entry) -> int:
    """Return the highest write id in the name of a base or delta, at least 1; 0 for another file or
    directory."""
    directory = parse_directory(entry.name) if entry.is_dir else None
    return max(directory.max_write_id, 1) if directory else 0
