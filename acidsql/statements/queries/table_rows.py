"""The rows, and the files, of one table in a snapshot or in an older version.

A stand-in is the view in the place of a table in a statement; it may have virtual columns, such as
``row__id``, and a demand says which of its rows are needed. A plain table is a table of the
metastore that is not ACID; it has no versions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.acid.values.predicate import EVERYTHING, Demand
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import CatalogError, UnsupportedError
from acidsql.metastore.foreign import ForeignTable
from acidsql.metastore.interface import TxnState
from acidsql.metastore.older_versions import require_files_kept
from acidsql.plan.standins.query import StandIn
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText
from acidsql.statements.context.time_travel import PointInTime, TimeTravel
from acidsql.statements.queries.view_rows import in_view, text_of_view_query
from acidsql.storage.columns import quote
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import check_after_block
from acidsql.storage.reading.plain_tables import read_plain
from acidsql.storage.reading.pruning.inventory import FoundFile, inventory
from acidsql.storage.reading.read import NeededRows, TableSnapshot, read_rows
from acidsql.storage.spark.session import jvm
from acidsql.storage.tables.listing import Listing, list_table
from acidsql.txn import Snapshot


class TableRows:
    """Reads the tables of one session.

    Attributes:
        travel: Finds the write ids of older versions.
    """

    def __init__(self, context: Context) -> None:
        self._spark, self._metastore = context.spark, context.metastore
        self._txns, self._transactions = context.txns, context.transactions
        self._catalog = context.catalog
        self.travel = TimeTravel(context.spark, context.metastore)

    def live_rows(
        self, table: Table, *, row_id: bool, point_in_time: PointInTime | None = None
    ) -> DataFrame:
        """Return a table's live rows, lazily; with ``row_id``, the first column is ``row__id``.

        Raises:
            UnsupportedError: ``row_id`` is true, and the table is insert-only.
            VersionNotFoundError: There is no such version.
            SnapshotTooOldError: The table was changed in the catalog since the transaction's
                snapshot, or files of the version were deleted.
        """
        if row_id and table.is_insert_only:
            raise UnsupportedError(
                f"{table.name} is an insert-only table: its rows have no row__id.",
                condition="UNSUPPORTED_FEATURE.ROW_ID",
            )
        return self.rows(
            StandIn("", table, (ROW__ID,) if row_id else ()),
            self._transactions.read_snapshot([table.name]),
            point_in_time,
        )

    def rows(
        self,
        standin: StandIn,
        snapshot: Snapshot,
        point_in_time: PointInTime | None = None,
        *,
        demand: Demand | Callable[[], Demand] = lambda: EVERYTHING,
        few: int = 0,
    ) -> DataFrame:
        """Return the rows of one stand-in, lazily, with its virtual columns. Its files are listed
        immediately. A plain table is read as it is now, whatever the other arguments say.

        Args:
            standin: The stand-in, of an ACID table or a plain one.
            snapshot: What the transaction sees.
            point_in_time: An older version; None: the version of ``acid.snapshot(…)``, or the rows
                of ``snapshot``.
            demand: The rows that the query needs, or a function that returns it; others may be left
                out.
            few: Up to how many rows the driver may find itself, without a job; 0: none.

        Raises:
            SnapshotTooOldError: Another session changed the table in the catalog after the
                transaction's snapshot was taken, or files of the version were deleted.
            VersionNotFoundError: There is no such version.
            CatalogError: Another session changed the table while its files were listed.
        """
        table = standin.table
        if not table.is_transactional:
            return select_standin_columns(self._plain_rows(standin), standin)
        dropped_partitions = self._catalog.partitions_dropped_by_others(table)
        partition_names = self._catalog.partition_names(table)
        write_ids, is_old = self._visible_write_ids(table, snapshot, point_in_time)

        def check_unchanged() -> None:
            self._catalog.require_unchanged(table, partition_names, snapshot, dropped_partitions)
            if is_old:
                require_files_kept(self._metastore, table.name, write_ids)

        def is_kept() -> bool:
            return is_old or self._is_kept(snapshot)

        refuse_dropped = partial(self._catalog.refuse_dropped_partitions, table)
        table_snapshot = TableSnapshot(
            table, partition_names, write_ids, snapshot.valid_txns,
            is_kept=is_kept, refuse_lost=refuse_dropped if dropped_partitions else None,
        )  # fmt: skip
        needed = NeededRows(
            demand=demand, few=few, is_fast=self._txns.settings.fast_paths,
            virtual=standin.virtual, with_deleted=standin.with_deleted,
        )  # fmt: skip
        with check_after_block(check_unchanged):
            rows = read_rows(self._spark, table_snapshot, needed)
        return select_standin_columns(rows, standin)

    def point_in_time(self, standin: StandIn, statement_text: StatementText) -> PointInTime | None:
        """Return the older version that a stand-in shows by AS OF; None: it shows the rows that the
        transaction sees. Spark evaluates a timestamp."""
        if standin.as_of is None:
            return None
        with in_view(self._spark, standin.enclosing_view):
            view_text = text_of_view_query(standin.enclosing_view, statement_text)
            return self.travel.resolve_as_of(standin.as_of, view_text)

    def list_files(
        self, table: Table, snapshot: Snapshot, point_in_time: PointInTime | None = None
    ) -> tuple[list[Listing], ValidWriteIdList]:
        """List the files of a table in a snapshot or an older version, and return them with the
        visible write ids: one listing for each partition, also for an empty one. ``point_in_time``:
        None means the version of ``acid.snapshot(…)``, or the snapshot itself.

        Raises:
            SnapshotTooOldError: A partition was dropped since the transaction's snapshot, or files
                of the version were deleted.
            VersionNotFoundError: There is no such version.
        """
        write_ids, is_old = self._visible_write_ids(table, snapshot, point_in_time)
        partitions = self._catalog.partition_names(table) if table.partition_columns else [""]
        self._catalog.refuse_dropped_partitions(table, partitions)
        fs = filesystem_for(table.location)
        listings = list_table(
            fs, table.location, partitions, write_ids, snapshot.valid_txns,
            plain=table.is_insert_only, history_is_kept=True,
        )  # fmt: skip
        if is_old:
            require_files_kept(self._metastore, table.name, write_ids)
        return listings, write_ids

    def inventory(self, table: Table, snapshot: Snapshot) -> list[FoundFile]:
        """List all directories and files of a table, also invisible ones, and return each with its
        state in a snapshot. Raise SnapshotTooOldError if a partition was dropped since."""
        columns = [column.name for column in table.partition_columns]
        names = self._catalog.partition_names(table) if columns else None
        keeps_versions = self._metastore.abilities.keeps_versions
        files = inventory(
            filesystem_for(table.location),
            table.location,
            names,
            snapshot.write_ids[table.name],
            snapshot.valid_txns,
            columns=columns,
            oldest=self._metastore.oldest_version(table.name) if keeps_versions else math.inf,
        )
        self._catalog.refuse_dropped_partitions(table, names or ())
        return files

    def _visible_write_ids(
        self, table: Table, snapshot: Snapshot, point_in_time: PointInTime | None
    ) -> tuple[ValidWriteIdList, bool]:
        """Return the visible write ids, and whether they are those of an older version, which is
        ``point_in_time`` or that of ``acid.snapshot(…)``."""
        point_in_time = point_in_time or self._transactions.pinned_moment
        if point_in_time is None:
            return snapshot.write_ids[table.name], False
        return self.travel.write_ids(table, point_in_time, snapshot), True

    def _plain_rows(self, standin: StandIn) -> DataFrame:
        """Return the rows of a plain table of the metastore, lazily. Raise CatalogError if it was
        changed meanwhile, or acidsql cannot read it."""
        table = standin.table
        foreign_table = self._metastore.find(table.name)
        if not isinstance(foreign_table, ForeignTable) or foreign_table.table != table:
            raise CatalogError(f"{table.name} was changed meanwhile. Read it again.")
        foreign_table = self._metastore.with_partitions(foreign_table)
        foreign_table.need_table()  # refuses the table if acidsql cannot read its partitions
        text_format = foreign_table.text
        delimiter_and_null = (text_format.field_end, text_format.null)
        return read_plain(
            self._spark, table, foreign_table.partitions, delimiter_and_null, standin.virtual
        )

    def _is_kept(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot belongs to a transaction that is open in the store now. Then the
        cleaner keeps the snapshot's files."""
        holder = snapshot.held_by
        return holder is not None and self._metastore.txn_state(holder) is TxnState.OPEN


def select_standin_columns(rows: DataFrame, standin: StandIn) -> DataFrame:
    """Return the rows with only the columns that a stand-in has: its virtual columns (such as
    ``row__id``) first, then the table's. The rows of a statement's target stay as they are."""
    if standin.is_target:
        return rows
    columns = (quote(column.name) for column in standin.table.all_columns)
    return jvm.select(rows, *standin.virtual, *columns)
