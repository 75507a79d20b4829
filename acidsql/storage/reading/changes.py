"""Changes: the events between two snapshots, each with its row.

An insert event has its row. A delete event names a row, so it is joined with the insert events of
the directories that hold them. A compacted base has neither delete events nor deleted rows. So a
base that was made in between is left out, and the directories that it has replaced are read
(``acid_state``, ``since``).

An INSERT OVERWRITE or TRUNCATE in between deletes all rows that were live before it. So a partition
is listed once for now, and once for the moment before each such base (``_Level``).

A row that one write id inserts and deletes again was never visible, so it is no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.layout import REBALANCED_FILE, AcidDirectory, DirectoryKind
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.acid.write_ids import NewWriteIds, ValidTxnList, ValidWriteIdList
from acidsql.errors import SnapshotTooOldError
from acidsql.storage.columns import quote
from acidsql.storage.event_records import KEYS, VERSION, WRITE_ID
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.files.gone import directory_gone_error, naming_missing
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.change_columns import CHANGE_TYPE, COMMIT_VERSION, DELETE, INSERT
from acidsql.storage.reading.events.deletes import join_deleted_rows, key_columns, remove_deleted
from acidsql.storage.reading.events.partners import keep_files_with_named_rows, read_few_delete_keys
from acidsql.storage.reading.python_rows import KEY_TYPES
from acidsql.storage.reading.scan import (
    Scan,
    delete_keys,
    insert_events,
    scan,
)
from acidsql.storage.reading.scan_columns import empty_scan, row_id_sql
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.spark.session import jvm
from acidsql.storage.tables.listing import EventFile, Listing, list_directory, list_table


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """Which changes of a table to read.

    Attributes:
        table: The table, which has row ids.
        partitions: The partition directories; ``[""]`` if the table has none.
        new: The write ids of the changes.
        txns: The valid transactions.
        is_net: Leave out rows that were inserted and deleted again in between.
        made_by: The version that made the table, if its rows are to be shown, too, as rows that it
            inserted. Then the other changes begin after it. None: the table was there before.
    """

    table: Table
    partitions: Sequence[str]
    new: NewWriteIds
    txns: ValidTxnList
    is_net: bool = False
    made_by: int | None = None


@dataclass(frozen=True, slots=True)
class _Level:
    """The events of a partition between two overwrites.

    Attributes:
        listing: The directories.
        write_ids: The write ids up to the end of the level.
        ended_by: The write id of the overwrite that deletes the rows of the level; None: none.
    """

    listing: Listing
    write_ids: ValidWriteIdList
    ended_by: int | None


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files that changes are read from.

    Attributes:
        new: The files that may have new events; one listing for each partition.
        all_levels: All files of the same partitions.
        overwritten: The files of the rows that an overwrite deleted, with its write id, and with
            the write ids that were visible before it.
    """

    new: Sequence[Listing]
    all_levels: Sequence[Listing]
    overwritten: Sequence[tuple[int, ValidWriteIdList, Sequence[Listing]]]

    def listings_with_named_rows(self, write_ids: ValidWriteIdList) -> list[Listing]:
        """Return a listing for each partition with new delete events: these, and the files that may
        have the rows which they name.

        The delete events are read now; if a partition has more than READ_MAX, all its files stay.
        ``write_ids``: the visible ones after the changes.

        Raises:
            SnapshotTooOldError: A file is gone.
        """
        deletes = {listing.partition: listing.deletes for listing in self.new if listing.deletes}
        whole_listings = [listing for listing in self.all_levels if listing.partition in deletes]
        return [
            keep_files_with_named_rows(
                replace(listing, deletes=deletes[listing.partition]), write_ids
            )
            for listing in whole_listings
        ]


def changes(spark: SparkSession, request: ChangesRequest) -> DataFrame:
    """Return the changes, lazily, in no order. As in ``keyed_changes``, directories are listed now.

    Returns:
        ``_change_type`` string (``insert`` or ``delete``), ``_commit_version`` bigint (the write
        id), ``row__id``, the table's columns and its partition columns.

    Raises:
        SnapshotTooOldError: A file is gone. Or ACID_NOT_ENOUGH_HISTORY: a rebalance in between gave
            the rows new row ids.
    """
    shown_changes = jvm.select(
        keyed_changes(spark, request),
        CHANGE_TYPE,
        COMMIT_VERSION,
        f"{row_id_sql()} AS {ROW__ID}",
        *(quote(column.name) for column in request.table.all_columns),
    )
    return mark_char_columns(shown_changes, request.table)


def keyed_changes(spark: SparkSession, request: ChangesRequest) -> DataFrame:
    """Return the changes, lazily, in no order. Directories are listed, and small files of delete
    events read, before this returns.

    With ``is_net`` of the request, rows that were both inserted and deleted meanwhile are left out.
    With ``made_by``, the first rows of the table are changes, too, inserted by this version or by
    their own if that is later. With both, the only changes are the live rows of now, as inserted.

    Returns:
        ``_change_type`` string (``insert`` or ``delete``), ``_commit_version`` bigint (the write
        id), ``KEYS``, the table's columns and its partition columns.

    Raises:
        SnapshotTooOldError: A file is gone. Or ACID_NOT_ENOUGH_HISTORY: a rebalance in between gave
            the rows new row ids.
    """
    with naming_missing(request.table.location):
        if request.made_by is not None and request.is_net:  # there was no row that could be deleted
            return _all_inserted(spark, request, request.made_by, request.new.after)
        files = changed_files(request)
        parts = [*_change_events(spark, request, files), *_overwritten_rows(spark, request, files)]
        if request.made_by is not None:
            parts.append(_all_inserted(spark, request, request.made_by, request.new.before))
    if not parts:
        return _change_rows(empty_scan(spark, request.table), request.table, INSERT, "0L")
    rows = reduce(DataFrame.unionAll, parts)
    return _net_changes(rows, request.new) if request.is_net else rows


def _all_inserted(
    spark: SparkSession, request: ChangesRequest, made_by: int, write_ids: ValidWriteIdList
) -> DataFrame:
    """Return the rows that are live at these write ids as insertions. Each has the version that
    inserted it, or ``made_by``, the version that made the table, if this is later.
    """
    fs = filesystem_for(request.table.location)
    listings = list_table(
        fs,
        request.table.location,
        request.partitions,
        write_ids,
        request.txns,
        history_is_kept=True,
    )
    live = scan(spark, Scan(request.table, listings, write_ids))
    return _change_rows(live, request.table, INSERT, f"greatest({WRITE_ID}, {made_by}L)")


def changed_files(request: ChangesRequest) -> ChangedFiles:
    """List the files that the changes are read from, of each partition back to the version before
    the changes. Files are not opened.

    Raises:
        SnapshotTooOldError: A directory is gone. Or ACID_NOT_ENOUGH_HISTORY: a rebalance in between
            gave the rows new row ids.
    """
    fs = filesystem_for(request.table.location)
    levels = [
        level
        for levels_of_partition in run_in_threads(
            lambda name: list(_levels(fs, request, name)), request.partitions
        )
        for level in levels_of_partition
    ]
    whole_listings = _merge_levels(level.listing for level in levels)
    levels_by_end: dict[int, list[_Level]] = {}
    for level in levels:
        if level.ended_by is not None:
            levels_by_end.setdefault(level.ended_by, []).append(level)
    return ChangedFiles(
        [_only_new_files(listing, request.new) for listing in whole_listings],
        whole_listings,
        [
            (write_id, levels[0].write_ids, [level.listing for level in levels])
            for write_id, levels in sorted(levels_by_end.items())
        ],
    )


def no_changes(spark: SparkSession, table: Table) -> DataFrame:
    """Return no rows, with the columns of ``changes``, and ``KEYS`` after ``row__id``."""
    return jvm.select(
        empty_scan(spark, table),
        f"'' AS {CHANGE_TYPE}",
        f"0L AS {COMMIT_VERSION}",
        "*",
    )


# ── listing ──────────────────────────────────────────────────────────────────────────────────


def _levels(fs: FileSystem, request: ChangesRequest, partition: str) -> Iterator[_Level]:
    """Yield the levels of a partition, the newest first: each has the directories from one
    overwrite to the next, as far back as the new write ids go. Raises SnapshotTooOldError if a
    directory is gone, or was rebalanced.
    """
    path = f"{request.table.location}/{partition}".rstrip("/")
    write_ids, ended_by = request.new.after, None
    while True:
        try:
            listing = list_directory(
                fs,
                path,
                partition,
                write_ids,
                request.txns,
                history_is_kept=True,
                since=request.new.before,
            )
        except FileNotFoundError as error:
            raise directory_gone_error(path, error) from error
        _refuse_rebalanced(fs, request.table, path, listing)
        yield _Level(listing, write_ids, ended_by)
        base = listing.state.base
        if base is None or base.min_write_id not in request.new:
            return
        ended_by = base.min_write_id
        write_ids = request.new.after.up_to(ended_by - 1)


def _refuse_rebalanced(fs: FileSystem, table: Table, path: str, listing: Listing) -> None:
    """List the compacted directories of a listing, and raise SnapshotTooOldError if one has the
    mark of a rebalance. ``path``: the partition's directory.
    """
    for name in listing.state.folded:
        if any(entry.name == REBALANCED_FILE for entry in fs.list(f"{path}/{name}")):
            raise SnapshotTooOldError(
                f"{path}/{name} was rebalanced: its rows have other row ids than before. Changes "
                "cannot be followed from before a rebalance to after it.",
                table=table.name,
            )


def _only_new_files(listing: Listing, new: NewWriteIds) -> Listing:
    """Return the listing of a partition with only the files that may have new events.
    ``needs_filter`` is true, as these files may have other events, too.
    """

    def may_have(directory: AcidDirectory) -> bool:
        return new.has_any(directory.min_write_id, directory.max_write_id)

    return replace(
        listing,
        data=tuple(file for file in listing.data if may_have(file.directory)),
        deletes=tuple(file for file in listing.deletes if may_have(file.directory)),
        originals=tuple(group for group in listing.originals if group.write_id in new),
        needs_filter=True,
    )


# ── events ───────────────────────────────────────────────────────────────────────────────────


def _change_events(
    spark: SparkSession, request: ChangesRequest, files: ChangedFiles
) -> Iterator[DataFrame]:
    """Yield the inserted rows, and the rows that delete events name, as changes. Left out are rows
    that one write id both inserted and deleted. Up to three DataFrames; none if nothing changed.
    """
    unchanged = [listing for listing in files.new if not listing.deletes]
    changed = [listing for listing in files.new if listing.deletes]
    if (inserts := _inserted_rows(spark, request, unchanged)) is not None:
        yield _change_rows(inserts, request.table, INSERT, WRITE_ID)
    if not changed:
        return
    deletes = _versioned_delete_keys(spark, Scan(request.table, changed, request.new.after))
    deletes = deletes.where(request.new.sql(VERSION))
    if (inserts := _inserted_rows(spark, request, changed)) is not None:
        if may_delete_own(changed):
            own_deletes = deletes.where(f"{VERSION} = {WRITE_ID}").drop(VERSION)
            deleting = [file for listing in changed for file in listing.deletes]
            inserts = remove_deleted(inserts, own_deletes, deleting)
        yield _change_rows(inserts, request.table, INSERT, WRITE_ID)
    foreign_deletes = deletes.where(f"{VERSION} <> {WRITE_ID}")
    holding = Scan(
        request.table, files.listings_with_named_rows(request.new.after), request.new.after
    )
    if (named_rows := _named_rows(spark, holding, foreign_deletes)) is not None:
        yield _change_rows(named_rows, request.table, DELETE, VERSION)


def _versioned_delete_keys(spark: SparkSession, request: Scan) -> DataFrame:
    """Return the keys (``key_columns``) of the rows that the visible delete events name, each with
    VERSION, the write id of its delete event. If the delete events' files are small
    (``read_few_delete_keys``), the driver reads them now; otherwise Spark reads them later.
    """
    keys_in_driver = read_few_delete_keys(request.listings, request.write_ids, request.numbers)
    if keys_in_driver is None:
        return delete_keys(spark, request, with_version=True)
    return local_rows(spark, keys_in_driver.select([*key_columns(len(request.listings)), VERSION]))


def deleted_rows(spark: SparkSession, request: Scan) -> DataFrame | None:
    """Return the rows that delete events name, lazily, with the columns of ``insert_events``, then
    columns of the delete events under other names. None if no file can have such rows. Delete
    events are read now, to choose the files, if a partition has at most READ_MAX.

    Args:
        spark: The session.
        request: The delete events, and the files that may have the rows.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    holding = [
        keep_files_with_named_rows(listing, request.write_ids) for listing in request.listings
    ]
    return _named_rows(spark, replace(request, listings=holding), delete_keys(spark, request))


def _named_rows(spark: SparkSession, request: Scan, deletes: DataFrame) -> DataFrame | None:
    """Return the rows that these keys of delete events name, lazily, with the events' VERSION if
    they have it; None if there are no files of insert events. The scan is of the same partitions
    as the keys, so both give the partitions the same numbers.
    """
    files = [file for listing in request.listings for file in listing.deletes]
    rows = insert_events(spark, request)
    return None if rows is None else join_deleted_rows(rows, deletes, files)


def _inserted_rows(
    spark: SparkSession, request: ChangesRequest, listings: Sequence[Listing]
) -> DataFrame | None:
    """Return the rows that the new write ids inserted, deleted since or not, lazily; None if there
    are no files of insert events.
    """
    rows = insert_events(spark, Scan(request.table, listings, request.new.after))
    return None if rows is None else rows.where(request.new.sql(WRITE_ID))


def _merge_levels(listings: Iterable[Listing]) -> list[Listing]:
    """Return one listing for each partition, with the files of all its levels; ``needs_filter`` is
    true if one level's is; the rest is the newest level's, which comes first.
    """
    merged_listings: dict[str, Listing] = {}
    for listing in listings:
        if (listing_so_far := merged_listings.get(listing.partition)) is not None:
            listing = replace(
                listing_so_far,
                data=listing_so_far.data + listing.data,
                deletes=listing_so_far.deletes + listing.deletes,
                originals=listing_so_far.originals + listing.originals,
                needs_filter=listing_so_far.needs_filter or listing.needs_filter,
            )
        merged_listings[listing.partition] = listing
    return list(merged_listings.values())


def may_delete_own(listings: Sequence[Listing]) -> bool:
    """Whether a write id may have deleted a row that it inserted itself, by the names of the
    directories. True if the names do not tell, as after a compaction: a base, or a directory of
    several write ids. True, too, if a write id has delete events under a higher statement id than
    the lowest of its insert events.

    A statement writes its delete events under a lower statement id than its insert events, or, if
    Hive writes them, under the same one. A compaction drops the statement ids.
    """

    def number(file: EventFile) -> int:
        return -1 if file.directory.statement_id is None else file.directory.statement_id

    for listing in listings:
        written: dict[int, int] = {}
        for file in listing.data:
            directory = file.directory
            if (
                directory.kind is not DirectoryKind.DELTA
                or directory.min_write_id != directory.max_write_id
            ):
                return True
            first = written.get(directory.min_write_id, number(file))
            written[directory.min_write_id] = min(first, number(file))
        for group in listing.originals:
            written[group.write_id] = min(written.get(group.write_id, 0), group.statement_id)
        for file in listing.deletes:
            directory = file.directory
            if directory.min_write_id != directory.max_write_id or number(file) < 0:
                return True
            if written.get(directory.min_write_id, number(file)) < number(file):
                return True
    return False


def _overwritten_rows(
    spark: SparkSession, request: ChangesRequest, files: ChangedFiles
) -> Iterator[DataFrame]:
    """Yield the rows that each overwrite deleted, as deletions."""
    for write_id, write_ids, listings in files.overwritten:
        live = scan(spark, Scan(request.table, listings, write_ids))
        yield _change_rows(live, request.table, DELETE, f"{write_id}L")


def _net_changes(change_rows: DataFrame, new: NewWriteIds) -> DataFrame:
    """Return the changes without those of rows that the new write ids (the same or different ones)
    both inserted and deleted: neither the insertion nor the deletion is left.
    """
    deleted = change_rows.where(f"{CHANGE_TYPE} = '{DELETE}'")
    inserted = change_rows.where(f"{CHANGE_TYPE} = '{INSERT}'")
    deleted_again = deleted.where(new.sql(WRITE_ID)).selectExpr(
        *(f"{key} AS {key}_" for key in KEYS)
    )
    same_keys = " AND ".join(f"{key} = {key}_" for key in KEYS)
    lasting = inserted.join(deleted_again, F.expr(same_keys), "left_anti")
    return lasting.unionAll(deleted.where(f"NOT ({new.sql(WRITE_ID)})"))


def _change_rows(rows: DataFrame, table: Table, change_type: str, version_sql: str) -> DataFrame:
    """Return rows as changes of one type (``insert`` or ``delete``): type, version, ``KEYS``, then
    the table's and the partition columns. ``version_sql``: SQL of the write id.
    """
    return jvm.select(
        rows,
        f"'{change_type}' AS {CHANGE_TYPE}",
        f"{version_sql} AS {COMMIT_VERSION}",
        *(f"CAST({name} AS {KEY_TYPES[name]}) AS {name}" for name in KEYS),
        *(quote(column.name) for column in table.all_columns),
    )
