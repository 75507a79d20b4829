"""A table as the source of a batch: ``spark.read.format("acidsql")``, also in pure SQL.

Spark starts a Python process that plans the query, and others for its tasks. None of them has a
session. The plan takes a snapshot under a lease (``shared_leases``), and the tasks get files.

Spark plans a source once for each DataFrame or view, and keeps the plan for later queries of it. So
these see the snapshot of the first query. The reader takes no filters (``pushFilters``): Spark
would keep a plan that was made for the filters of one query for queries without them, and lose
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from acidsql.acid.table import Column, Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import CatalogError, UnsupportedError
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
from acidsql.storage.folding.live_rows import LiveRows, live_rows, plan_tasks
from acidsql.storage.folding.stream_reads import StreamRead, shown_ddl
from acidsql.streams.source.batch_options import BatchOptions
from acidsql.streams.source.catalog import missing_table_error, partition_names
from acidsql.suggestions import names_question
from acidsql.txn import Snapshot
from acidsql.txn.shared_leases import snapshot_under_shared_lease

_AGENT_INFO = "spark.read.format('acidsql')"
_ATTEMPTS = 3  # to list a table that others change meanwhile


class Split(InputPartition):
    """The work of one task: the files that it reads, and what it shows of them."""

    def __init__(self, shown: LiveRows, reads: Sequence[StreamRead]) -> None:
        self.shown, self.reads = shown, reads


class TableReader(DataSourceReader):
    """The rows of a table, in one snapshot that is taken when the first query is planned.

    Args:
        open_store: Opens the metastore.
        options: What to read.

    Attributes:
        ddl: The columns that Spark knows, as DDL; None: Spark has not asked for them.
    """

    def __init__(self, open_store: Callable[[], Metastore], options: BatchOptions) -> None:
        self._open, self._options = open_store, options
        self.ddl: str | None = None

    def read_columns(self) -> str:
        """Read the table's columns from the metastore, and return them as DDL.

        Raises:
            CatalogError: There is no such table or column.
            UnsupportedError: Python tasks cannot show the table.
        """
        with closing(self._open()) as store:
            return shown_ddl(self._shown(self._require_table(store)).columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Take a snapshot, list its files, and return the tasks that read them, a ``Split`` each.

        Raises:
            CatalogError: The table is gone, has other columns than Spark knows, or was changed
                again and again while its files were listed.
            VersionNotFoundError: There is no such version or time.
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: the cleaner has deleted files of the
                version.
        """
        with closing(self._open()) as store:
            for _ in range(_ATTEMPTS):
                if (splits := self._plan(store)) is not None:
                    return splits
        raise CatalogError(
            f"{self._options.table} was changed again and again while its files were listed. Run "
            "the query again."
        )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, a ``Split``, as Arrow record batches, in a Python worker of
        Spark's."""
        assert isinstance(partition, Split)
        yield from live_rows(partition.shown, partition.reads)

    def _plan(self, store: Metastore) -> list[InputPartition] | None:
        """Return the tasks; None if the table was changed in the catalog meanwhile."""
        table = self._require_table(store)
        shown = self._shown(table)
        if self.ddl is not None and (now := shown_ddl(shown.columns)) != self.ddl:
            raise CatalogError(
                f"{table.name} has other columns now than when it was loaded: {now} instead of "
                f"{self.ddl}. Load it again."
            )
        settings = Settings.of({})
        snapshot = snapshot_under_shared_lease(store, settings, table.name, _AGENT_INFO)
        write_ids, is_old = self._shown_write_ids(store, table, snapshot)
        partitions = partition_names(store, table)
        tasks = plan_tasks(shown, partitions, write_ids, snapshot.valid_txns)
        if is_old:
            require_files_kept(store, table.name, write_ids)
        if self._require_table(store) != table or partition_names(store, table) != partitions:
            return None
        return [Split(shown, reads) for reads in tasks]

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
        columns: tuple[Column, ...] = tuple(table.all_columns)
        if self._options.columns is not None:
            columns_by_name = {column.name: column for column in columns}
            for name in self._options.columns:
                if name not in columns_by_name:
                    hint = names_question(name, columns_by_name)
                    raise CatalogError(f"{table.name} has no column '{name}'.{hint}")
            columns = tuple(columns_by_name[name] for name in self._options.columns)
        return LiveRows(table, columns)

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
            hidden = {number for number in write_ids.exceptions if visible.is_valid(number)}
            return visible.up_to(write_ids.high_water_mark).without_ids(hidden), True
        if options.version is not None:
            return write_ids_at_version(store, table.name, visible, options.version), True
        assert options.timestamp_ms is not None
        # The write ids are read first, so that the versions have all of them.
        versions = store.versions(table.name)
        commit = commit_number_at(store, options.timestamp_ms)
        return write_ids_at_commit(table.name, visible, versions, commit), True
