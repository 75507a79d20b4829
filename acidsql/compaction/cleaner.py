"""The cleaner: it deletes files that no open snapshot can see, and nothing else.

*After a compaction.* The compaction's entry is ready for cleaning when every open transaction
(leases included) began after the compaction ended (``CompactionQueue.ready_to_clean``). For all
these transactions, every write id up to the compaction's highest write id is decided, in the same
way as for the compaction. So no reader needs the directories that Hive's rules call obsolete under
a write id list that ends there.

Of these, the files that older versions need stay for ``acidsql.history.retention``, within
``acidsql.history.max.ratio`` (``kept_history``). The compaction's entry stays in the queue as long.

*After aborted transactions.* Nobody has ever seen directories whose write ids were all aborted.

*After crashes and DROP.* Hidden directories of statements and compactions whose transaction has
ended, and the directories of dropped tables. The temporary tables of sessions that have ended are
dropped.

A Hive Metastore has a cleaner of its own, which does not know the hidden directories. So these are
all that ``run`` deletes there.

Source: Hive ``CompactionCleaner``, ``AbortedTxnCleaner``, ``Cleaner`` (4.0).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pyspark.sql import SparkSession

from acidsql.acid.ages import ages
from acidsql.acid.layout import DirectoryKind, parse_directory
from acidsql.acid.paths import is_within
from acidsql.acid.state import acid_state
from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import CompactorWriteIdList
from acidsql.compaction.decision import has_partition
from acidsql.compaction.dropped import delete_dropped, drop_temporary
from acidsql.compaction.kept_history import (
    FileSizes,
    HistoryLimits,
    LastLook,
    keep,
    total_bytes,
    with_history_properties,
)
from acidsql.compaction.litter import orphaned_directories
from acidsql.errors import AcidSqlError, FormatError
from acidsql.metastore.catalog import all_tables
from acidsql.metastore.compaction_queue import CompactionInfo
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore, TxnState
from acidsql.plan.locking import exclusive_lock, load_locks
from acidsql.storage.files.entries import visible_entries
from acidsql.storage.files.filesystem import Entry, FileSystem, filesystem_for
from acidsql.storage.files.partition_tree import discover_partitions
from acidsql.storage.folding.compact import rename_dead_staging
from acidsql.storage.spark.session.uploads import Upload, unfinished_uploads
from acidsql.txn import NO_WAIT_SETTINGS, Snapshot, TxnManager, snapshot_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RemovedPath:
    """A directory or file that the cleaner has deleted.

    Attributes:
        table: The table that it belonged to.
        path: Its path.
        kind: obsolete, aborted, litter (a hidden directory of a dead session or worker), or dropped
            (the directory of a dropped table).
        bytes: The size of all files in it.
    """

    table: TableName
    path: str
    kind: str
    bytes: int


class Cleaner:
    """Cleans up for one metastore.

    Args:
        metastore: The metastore with the tables and the queue.
        txns: Opens the transactions that hold locks.
        end_old_leases: Ends the old leases of the session that cleans up. Otherwise the cleaner
            would keep files for these leases.
        spark: Tells the unfinished uploads to an object store.
    """

    def __init__(
        self,
        metastore: Metastore,
        txns: TxnManager,
        end_old_leases: Callable[[], None] = lambda: None,
        spark: SparkSession | None = None,
    ) -> None:
        self._metastore, self._txns, self._end_old_leases = metastore, txns, end_old_leases
        self._spark = spark
        self._last_looks: dict[
            tuple[TableName, str | None], LastLook
        ] = {}  # by table and partition

    def run(self) -> list[RemovedPath]:
        """Delete all files that may be deleted now: replaced, aborted, left by crashes, or of
        dropped tables. Drop the temporary tables of ended sessions. Return what was deleted. An
        error in one table is logged; the next run tries again."""
        removed = [*self.clean_after_compactions(), *self.clean_aborted()]
        for name in self._metastore.temporary_tables() + all_tables(self._metastore):
            removed += self._clean_quietly(name, self._delete_litter)
        return [*removed, *self.drop_temporary(), *self._delete_dropped()]

    def clean_table(self, name: TableName) -> list[RemovedPath]:
        """Delete directories of aborted transactions, and hidden directories of ended ones, in one
        table (on a Hive Metastore only the hidden ones); return what was deleted. All directories
        are looked at, also if the store knows of no aborted write id: a writer may have published
        after the store had forgotten it. Errors are raised. [] if there is no ACID table of the
        name."""
        aborted = (
            self._clean_aborted_in_table(name, always=True)
            if self._metastore.abilities.can_clean
            else []
        )
        return [*aborted, *self._delete_litter(name)]

    def clean_after_compactions(self) -> list[RemovedPath]:
        """Delete the files that compactions have replaced and no reader needs, mark these
        compactions as cleaned, and return what was deleted.

        Compactions that ended less than the setting ``compactor_cleaner_retention_ms`` ago wait, as
        do files for older versions (``kept_history``). The old leases of this session are ended
        first, as they would keep files. An error in one table or partition is logged and noted in
        its entry; a later run tries again.
        """
        self._end_old_leases()
        retention_ms = self._txns.settings.compactor_cleaner_retention_ms
        ready = self._metastore.ready_to_clean(retention_ms)
        removed: list[RemovedPath] = []
        for _, entries in groupby(ready, key=lambda entry: (entry.table, entry.partition)):
            removed += self._clean_place(list(entries))
        return removed

    def clean_aborted(self) -> list[RemovedPath]:
        """Delete the directories of aborted transactions in all tables that have some, and return
        these directories. The metastore forgets the write ids of which nothing is left. An error in
        one table is logged, and the others are cleaned."""
        tables = {
            candidate.table for candidate in self._metastore.candidates() if candidate.aborted_txns
        }
        return [
            removed
            for name in sorted(tables, key=str)
            for removed in self._clean_quietly(name, self._clean_aborted_in_table)
        ]

    def drop_temporary(self) -> list[RemovedPath]:
        """Drop the temporary tables of sessions that have ended, and return their directories.
        Errors are logged."""
        names = self._metastore.temporary_tables()
        return [
            removed for name in names for removed in self._clean_quietly(name, self._drop_temporary)
        ]

    def _drop_temporary(self, name: TableName) -> list[RemovedPath]:
        """Drop a temporary table whose session has ended, and delete its files. Return its
        directory in a list; [] if the session is open, or there is no such table. Raise
        LockTimeoutError if somebody uses the table."""
        table, holder = acid_table(self._metastore.find(name)), name.session_txn_id
        if table is None or holder is None:
            return []
        if self._metastore.txn_state(holder) is TxnState.OPEN:
            return []
        size = total_bytes(filesystem_for(table.location), table.location)
        location = drop_temporary(self._metastore, self._txns, name)
        return [] if location is None else [RemovedPath(name, location, "dropped", size)]

    def delete_replaced(self) -> list[RemovedPath]:
        """Delete the directories of tables that CREATE OR REPLACE has replaced and nobody can read,
        and return these directories. Those of dropped tables stay. Errors are logged."""
        return self._delete_dropped(only_replaced=True)

    # ── after compactions ────────────────────────────────────────────────────────────────────

    def _clean_place(self, entries: Sequence[CompactionInfo]) -> list[RemovedPath]:
        """Clean one table or partition up to the last of ``entries``, its compactions that are
        ready; return what was deleted. Mark the entries as cleaned, except those that keep history;
        mark none if `_delete_obsolete` returns None. An error is logged and noted in the last
        entry; it is tried again later."""
        last, settings = entries[-1], self._txns.settings
        try:
            removed = self._delete_obsolete(entries)
        except (AcidSqlError, OSError) as error:
            _log.warning("Cleaning after compaction %d failed: %s", last.id, error)
            self._metastore.retry_cleaning_later(
                last.id,
                settings.compactor_cleaner_retry_retention_ms,
                settings.compactor_cleaner_max_attempts,
                str(error),
            )
            return []
        if removed is None:
            return []
        last_look = self._last_looks.get(_place(entries))
        kept_compaction_ids = (
            last_look.history.kept_compaction_ids if last_look is not None else frozenset()
        )
        for entry in entries:
            if entry.id not in kept_compaction_ids:
                self._metastore.mark_compaction_cleaned(entry.id)
        return removed

    def _delete_obsolete(self, entries: Sequence[CompactionInfo]) -> list[RemovedPath] | None:
        """Delete a place's obsolete and aborted directories; kept history stays, and is remembered.
        Forget versions without files. Return what was deleted; [] if the place is gone or behind a
        link; None if nothing has changed since the last look, or a later compaction cleans."""
        entry = entries[-1]
        table = acid_table(self._metastore.find(entry.table))
        if table is None or entry.highest_write_id is None:
            self._last_looks.pop(_place(entries), None)
            return []  # the directory of a dropped table is deleted as a whole
        limits = self._history_limits(table)
        last_look = self._last_looks.pop(_place(entries), None)
        if last_look is not None and last_look.still_holds(entries, limits):
            self._last_looks[_place(entries)] = last_look
            return None
        snapshot = self._take_snapshot(table.name)
        decided = replace(
            snapshot.write_ids[table.name],
            high_water_mark=min(
                entry.highest_write_id, snapshot.write_ids[table.name].high_water_mark
            ),
            open=(),
        )
        fs = filesystem_for(table.location)
        if (link := fs.first_link_on_path(table.location, entry.partition or "")) is not None:
            _log.warning("'%s' is a link: files behind it are not cleaned up.", link)
            return []
        try:
            entries_there, children = visible_entries(
                fs, f"{table.location}/{entry.partition or ''}".rstrip("/")
            )
        except FileNotFoundError:
            if has_partition(self._metastore, table, entry.partition):
                raise
            return []  # the partition was dropped
        try:
            state = acid_state(
                children, CompactorWriteIdList.from_snapshot(decided), snapshot.valid_txns
            )
        except FormatError:
            return None
        sizes = FileSizes(
            fs, entries_there, children, snapshot.write_ids[table.name], snapshot.valid_txns
        )
        history = keep(ages(children, state, decided, snapshot.valid_txns), entries, limits, sizes)
        if history.kept_compaction_ids:
            self._last_looks[_place(entries)] = LastLook(
                history, tuple(compaction.id for compaction in entries), limits
            )
        names = {*state.obsolete, *state.aborted} - history.names
        if table.is_insert_only:
            # Files beside the deltas do not belong to the table: no reader takes them.
            names -= {name for name in names if parse_directory(name) is None}
        if history.oldest > limits.oldest and self._metastore.abilities.keeps_versions:
            # Before the files go: a reader asks for the oldest version after it has listed them.
            self._metastore.forget_versions(table.name, history.oldest)
        return [
            _delete(fs, table.name, child, "aborted" if child.name in state.aborted else "obsolete")
            for child in entries_there
            if child.name in names
        ]

    def _history_limits(self, table: Table) -> HistoryLimits:
        """Return how much history a table keeps, from its properties, else the settings; limits of
        0 if the metastore keeps no versions. Raise SettingError for a wrong property."""
        if not self._metastore.abilities.keeps_versions:
            return HistoryLimits(0, 0.0, 0, self._metastore.now_ms())
        settings = with_history_properties(table.properties, self._txns.settings)
        return HistoryLimits(
            settings.history_retention_ms,
            settings.history_max_ratio,
            self._metastore.oldest_version(table.name),
            self._metastore.now_ms(),
        )

    # ── after aborted transactions ───────────────────────────────────────────────────────────

    def _clean_aborted_in_table(
        self, name: TableName, *, always: bool = False
    ) -> list[RemovedPath]:
        """Delete directories of aborted transactions in a table, unless they are behind a link, and
        forget the write ids of which nothing is left. Return what was deleted.

        A directory that also has events of other transactions stays until it is compacted, and its
        aborted write ids are not forgotten. ``always``: look also if none are to be forgotten.
        """
        table = acid_table(self._metastore.find(name))
        # Ask before listing: a transaction that aborts later may have written in between.
        write_ids = self._metastore.aborted_write_ids(name)
        if table is None or not (write_ids or always):
            return []
        snapshot = self._take_snapshot(name)
        fs = filesystem_for(table.location)
        removed: list[RemovedPath] = []
        write_ids_on_disk: set[int] = set()
        for path in self._place_directories(fs, table):
            link = fs.first_link_on_path(table.location, path.removeprefix(table.location))
            entries, children = visible_entries(fs, path)
            state = acid_state(
                children, snapshot.write_ids[name], snapshot.valid_txns, history_is_kept=True
            )
            for entry in entries:
                directory = parse_directory(entry.name) if entry.is_dir else None
                if directory is None:
                    continue
                first, last = directory.min_write_id, directory.max_write_id
                within = {number for number in write_ids if first <= number <= last}
                is_aborted = (bool(within) or always) and entry.name in state.aborted
                if is_aborted and link is None:
                    removed.append(_delete(fs, name, entry, "aborted"))
                elif is_aborted or directory.kind is not DirectoryKind.BASE:
                    write_ids_on_disk |= (
                        within  # not for a base: it has no events of aborted write ids
                    )
        forgettable = [number for number in write_ids if number not in write_ids_on_disk]
        self._metastore.forget_aborted(name, forgettable)
        return removed

    def _place_directories(self, fs: FileSystem, table: Table) -> list[str]:
        """Return the paths of the directories that may have deltas: the table's alone, if it is
        unpartitioned; else those of all partitions in the catalog or on disk, sorted."""
        if not table.partition_columns:
            return [table.location]
        columns = [column.name for column in table.partition_columns]
        on_disk = discover_partitions(fs.list, table.location, columns)
        locations = {partition.location for partition in self._metastore.partitions(table.name)}
        return sorted(locations | {f"{table.location}/{name}" for name in on_disk})

    # ── after crashes and DROP ───────────────────────────────────────────────────────────────

    def _delete_litter(self, name: TableName) -> list[RemovedPath]:
        """Delete the hidden directories of statements and compactions whose transactions have
        ended, and abort uploads into them. Before, those of compactions are renamed, so that a dead
        worker cannot publish them. Return what was deleted; [] if there is no such table, or its
        directory is a link."""
        table = acid_table(self._metastore.find(name))
        if table is None:
            return []
        fs = filesystem_for(table.location)
        if fs.is_link(table.location):
            return []
        rename_dead_staging(fs, table.location, self._is_open)
        uploads = unfinished_uploads(self._spark, table.location) if self._spark else []
        entries = fs.list(table.location)
        entries += _places_of_uploads(table.location, uploads, entries)
        dead = orphaned_directories(self._metastore, name, entries)
        for upload in uploads:
            if any(is_within(upload.path, entry.path) for entry in dead):
                upload.abort()
        return [_delete(fs, name, entry, "litter") for entry in dead]

    def _is_open(self, txn_id: int) -> bool:
        return self._metastore.valid_txns().is_any_open(txn_id, txn_id)

    def _delete_dropped(self, *, only_replaced: bool = False) -> list[RemovedPath]:
        """Delete the directories of dropped tables, and of replaced tables that nobody can read any
        more, each in a transaction of its own that holds an exclusive lock on the table, for a
        replaced table on the directory. Return what was deleted; an error, as a lock that another
        holds, is logged. ``only_replaced``: leave the directories of dropped tables."""
        removed = []
        pending = self._metastore.pending_cleanups()
        # Ask after that: no transaction up to ``until`` can begin any more.
        readers = self._reader_txn_ids() if any(cleanup.until for cleanup in pending) else []
        for cleanup in pending:
            if only_replaced and not cleanup.until:
                continue
            if any(txn_id <= cleanup.until for txn_id in readers):
                continue
            fs = filesystem_for(cleanup.location)
            try:
                size = total_bytes(fs, cleanup.location)
                with self._txns.open(
                    agent_info="the cleaner", lock_settings=NO_WAIT_SETTINGS
                ) as txn:
                    # The name of a replaced table has a table, which others use.
                    locks = (
                        load_locks(cleanup.location)
                        if cleanup.until
                        else [exclusive_lock(cleanup.table)]
                    )
                    txn.lock(locks)
                    delete_dropped(self._metastore, cleanup)
                    txn.end_quietly()
            except (AcidSqlError, OSError) as error:
                _log.warning("%s could not be deleted yet: %s", cleanup.location, error)
                continue
            removed.append(RemovedPath(cleanup.table, cleanup.location, "dropped", size))
        return removed

    def _reader_txn_ids(self) -> list[int]:
        """Return the ids of the open transactions and leases, without those that only show that a
        session lives, which read nothing."""
        return [
            txn.txn_id
            for txn in self._metastore.show_txns()
            if txn.state is TxnState.OPEN and not txn.is_session
        ]

    # ── shared by all of these ───────────────────────────────────────────────────────────────

    def _take_snapshot(self, name: TableName) -> Snapshot:
        """Return a snapshot of a table as of now. There is no lease: for one, the cleaner would
        keep files."""
        return snapshot_of(self._metastore, self._metastore.valid_txns(), [name])

    def _clean_quietly(
        self, name: TableName, clean: Callable[[TableName], list[RemovedPath]]
    ) -> list[RemovedPath]:
        """Call ``clean`` for a table, and return what it has deleted; [] if it fails, which is only
        logged."""
        try:
            return clean(name)
        except (AcidSqlError, OSError) as error:
            _log.warning("%s could not be cleaned: %s", name, error)
            return []


def _places_of_uploads(
    location: str, uploads: Iterable[Upload], listed: Iterable[Entry]
) -> list[Entry]:
    """Return the directories directly in ``location`` into which something is being uploaded, and
    that ``listed``, the table directory's listing, lacks: an object store lists a directory only
    once it has a file. Each has the size 0."""
    names = {upload.path.removeprefix(f"{location}/").partition("/")[0] for upload in uploads}
    names.difference_update(entry.name for entry in listed)
    return [Entry(name, f"{location}/{name}", True, 0) for name in sorted(names)]


def _place(entries: Sequence[CompactionInfo]) -> tuple[TableName, str | None]:
    """Return the table and the partition that all these entries are of."""
    return entries[-1].table, entries[-1].partition


def _delete(fs: FileSystem, table: TableName, entry: Entry, kind: str) -> RemovedPath:
    """Delete a directory with all below it, or a file, and return it with its size in bytes. A
    missing one is no error. ``kind``: as in `RemovedPath`."""
    size = total_bytes(fs, entry.path) if entry.is_dir else entry.size
    if entry.is_dir:
        fs.delete_directory(entry.path)
    else:
        fs.delete_file_if_there(entry.path)
    return RemovedPath(table, entry.path, kind, size)
