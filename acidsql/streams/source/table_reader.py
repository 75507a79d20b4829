"""A table as the source of a batch: ``spark.read.format("acidsql")``, also in pure SQL.

Spark starts a Python process when a DataFrame or view is made, others that plan its first query,
and others for its tasks. None of them has a session. The first one takes a snapshot under a lease
(``shared_leases``), which Spark hands to the others, and the tasks get files.

The snapshot is taken so early because Spark plans a source again for each place of a query that
names it, at once in several processes: each would see another moment. Spark keeps the plan for
later queries of the DataFrame. So the reader takes no filters (``pushFilters``): Spark would keep a
plan that was made for the filters of one query for queries without them, and lose rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from pyspark.sql.datasource import InputPartition

from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import CatalogError, SettingError, TableChangedError, UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore
from acidsql.metastore.older_versions import (
    commit_number_at,
    require_files_kept,
    require_versions,
    write_ids_at_commit,
    write_ids_at_version,
)
from acidsql.settings import Settings
from acidsql.storage.files.gone import check_after_block, naming_missing
from acidsql.storage.folding.live_rows import LiveRows, plan_tasks
from acidsql.storage.folding.stream_reads import StreamRead
from acidsql.storage.reading.read import TableSnapshot
from acidsql.streams.source.batch_options import BatchOptions
from acidsql.streams.source.catalog import missing_table_error, partition_names
from acidsql.streams.source.split_reader import Split, SplitReader, choose_columns
from acidsql.txn import Snapshot
from acidsql.txn.shared_leases import (
    changes_under_lease,
    is_lease_open,
    snapshot_under_shared_lease,
)

_AGENT_INFO = "spark.read.format('acidsql')"
_ATTEMPTS = 3  # to look at a table that others change meanwhile


@dataclass(frozen=True, slots=True)
class ShownSnapshot:
    """What a DataFrame or view shows. Spark keeps it with the DataFrame, as pickled bytes.

    Attributes:
        shown: The table and its columns.
        partitions: The table's partitions then; ("",) for an unpartitioned table.
        snapshot: What was committed, with the lease that keeps the files.
        write_ids: The visible write ids.
        is_old: They are those of an older version.
    """

    shown: LiveRows
    partitions: tuple[str, ...]
    snapshot: Snapshot
    write_ids: ValidWriteIdList
    is_old: bool

    def has_changed(self, store: Metastore) -> bool:
        """Whether the catalog shows something else now, so that files of the snapshot cannot be
        found. Raise SnapshotTooOldError if the lease has ended."""
        table = self.shown.table
        # A dropped partition counts even if it is not among ``partitions``, which were read after
        # the snapshot was taken: RENAME drops a partition, too.
        if changes_under_lease(store, self.snapshot, table.name):
            return True
        table_now = acid_table(store.find(table.name))
        if table_now is None or table_now.columns != table.columns:
            return True
        if not table_now.has_same_storage(table):
            return True
        return not set(self.partitions).issubset(partition_names(store, table))


class TableReader(SplitReader):
    """The rows of a table, in one snapshot.

    Args:
        open_store: Opens the metastore.
        options: What to read.
        snapshot: The result of ``take_snapshot``, without which rows cannot be read.
    """

    def __init__(
        self,
        open_store: Callable[[], Metastore],
        options: BatchOptions,
        snapshot: ShownSnapshot | None = None,
    ) -> None:
        self._open, self._options, self._snapshot = open_store, options, snapshot

    def take_snapshot(self) -> ShownSnapshot:
        """Take a snapshot of the table and its columns, under a lease.

        Raises:
            CatalogError: There is no such table or column, or the table was changed again and again
                meanwhile.
            SnapshotTooOldError: The lease has ended meanwhile.
            UnsupportedError: Python tasks cannot show the table.
            SettingError: The option ``snapshot`` is one of another table.
            VersionNotFoundError: There is no such version or time.
        """
        with closing(self._open()) as store:
            for _ in range(_ATTEMPTS):
                table = self._require_table(store)
                shown = self._shown(table)
                snapshot = snapshot_under_shared_lease(
                    store, Settings.of({}), table.name, _AGENT_INFO
                )
                write_ids, is_old = self._shown_write_ids(store, table, snapshot)
                partitions = tuple(partition_names(store, table))
                taken = ShownSnapshot(shown, partitions, snapshot, write_ids, is_old)
                if not taken.has_changed(store):
                    return taken
        raise CatalogError(
            f"{self._options.table} was changed again and again while its snapshot was taken. Load "
            "it again."
        )

    def partitions(self) -> Sequence[InputPartition]:
        """List the snapshot's files, and return the tasks that read them, a ``Split`` each.

        Raises:
            TableChangedError: The table was dropped, renamed or replaced, lost a partition, or got
                other columns, since the snapshot was taken.
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: the lease has ended, or the cleaner has
                deleted files of the version.
        """
        assert self._snapshot is not None, "Spark asks for the schema first"
        taken, table = self._snapshot, self._snapshot.shown.table
        with closing(self._open()) as store:
            table_snapshot = TableSnapshot(
                table, taken.partitions, taken.write_ids, taken.snapshot.valid_txns,
                is_kept=lambda: taken.is_old or is_lease_open(store, taken.snapshot),
                refuse_lost=None,
            )  # fmt: skip
            with check_after_block(partial(self._require_unchanged, store, taken)):
                tasks = self._plan(taken.shown, table_snapshot)
        return [Split(taken.shown, reads) for reads in tasks]

    @staticmethod
    def _plan(shown: LiveRows, snapshot: TableSnapshot) -> list[list[StreamRead]]:
        """List the files of a snapshot, and return those that each task reads."""
        directories = snapshot.partitions if shown.table.partition_columns else [""]
        with naming_missing(shown.table.location):
            listings = snapshot.list_directories(directories)
        return plan_tasks(shown, listings, snapshot.write_ids)

    def _require_unchanged(self, store: Metastore, taken: ShownSnapshot) -> None:
        """Raise an error, after files were listed, if they are not those of the snapshot."""
        name = taken.shown.table.name
        if taken.has_changed(store):
            raise TableChangedError(
                f"{name}, or a partition of it, was changed or dropped since it was loaded. Load "
                "the DataFrame again, or make the view again.",
                table=name,
            )
        if taken.is_old:
            require_files_kept(store, name, taken.write_ids)

    def _require_table(self, store: Metastore) -> Table:
        """Return the table as it is now. Raise CatalogError if there is none, and UnsupportedError
        if it is no ACID table."""
        name = self._options.table
        entry = store.find(name)
        if entry is None:
            raise missing_table_error(store, name)
        if (table := acid_table(entry)) is None:
            raise UnsupportedError(
                f"spark.read.format('acidsql') reads ACID tables, and {name} is none. Use "
                f"acid.table('{name}').",
                condition="UNSUPPORTED_FEATURE.BATCH_SOURCE",
            )
        return table

    def _shown(self, table: Table) -> LiveRows:
        """Return what to show of the table. Raise CatalogError if the option ``columns`` names a
        column that the table lacks, and UnsupportedError if Python tasks cannot show it."""
        columns = choose_columns(table, self._options.columns, str(table.name))
        return LiveRows(table, columns, f"acid.table('{table.name}')")

    def _shown_write_ids(
        self, store: Metastore, table: Table, snapshot: Snapshot
    ) -> tuple[ValidWriteIdList, bool]:
        """Return the visible write ids, and whether they are those of an older version."""
        options, visible = self._options, snapshot.write_ids[table.name]
        moments = (options.version, options.timestamp_ms, options.write_ids)
        if all(moment is None for moment in moments):
            return visible, False
        require_versions(store, table.name)
        if (write_ids := options.write_ids) is not None:
            if write_ids.table.lower() != f"{table.name.database}.{table.name.name}":
                raise SettingError(
                    f"The snapshot is one of {write_ids.table}, not of {table.name}.",
                    name="snapshot",
                )
            hidden = {number for number in write_ids.exceptions if visible.is_valid(number)}
            return visible.up_to(write_ids.high_water_mark).without_ids(hidden), True
        if options.version is not None:
            return write_ids_at_version(store, table.name, visible, options.version), True
        assert options.timestamp_ms is not None
        # The write ids are read first, so that the versions have all of them.
        versions = store.versions(table.name)
        commit = commit_number_at(store, options.timestamp_ms)
        return write_ids_at_commit(table.name, visible, versions, commit), True
