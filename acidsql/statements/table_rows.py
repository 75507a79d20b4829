"""The rows, and the files, of one table in a snapshot or in an older version."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from acidsql.acid.predicate import EVERYTHING, Demand
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import AcidSqlError, CatalogError, UnsupportedError
from acidsql.metastore.foreign import ForeignTable
from acidsql.metastore.interface import TxnState
from acidsql.plan.query import StandIn
from acidsql.statements.family import Context
from acidsql.statements.time_travel import TimeTravel, When
from acidsql.storage.columns import quote
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.listing import Listing, list_table
from acidsql.storage.reading.inventory import FoundFile, inventory
from acidsql.storage.reading.plain_tables import read_plain
from acidsql.storage.reading.read import read_rows
from acidsql.storage.spark import jvm
from acidsql.txn import Snapshot


class TableRows:
    """Reads the tables of one session.

    Attributes:
        travel: Finds the write ids of older versions.
    """

    def __init__(self, context: Context) -> None:
        self._spark, self._metastore = context.spark, context.metastore
        self._txns, self._transactions = context.txns, context.transactions
        self.travel = TimeTravel(context.spark, context.metastore)

    def of(self, table: Table, *, row_id: bool, when: When | None = None) -> DataFrame:
        """A table's live rows.

        Raises:
            UnsupportedError: ``row_id`` is true, and the table is insert-only.
        """
        if row_id and table.is_insert_only:
            raise UnsupportedError(
                f"{table.name} is an insert-only table: its rows have no row__id.",
                condition="UNSUPPORTED_FEATURE.ROW_ID",
            )
        return self.rows(
            StandIn("", table, (ROW__ID,) if row_id else ()),
            self._transactions.read_snapshot([table.name]),
            when,
        )

    def rows(
        self,
        standin: StandIn,
        snapshot: Snapshot,
        when: When | None = None,
        demanded: Demand | Callable[[], Demand] = lambda: EVERYTHING,
        few: int = 0,
    ) -> DataFrame:
        """The rows of one stand-in.

        Args:
            standin: The stand-in.
            snapshot: What the transaction sees.
            when: An older version; None: that of ``acid.snapshot(…)``, or what the snapshot shows.
            demanded: See ``read_rows``.
            few: See ``read_rows``.

        Raises:
            SnapshotTooOldError: Another session changed the table in the catalog after the
                transaction's snapshot was taken, or files of the version were deleted.
            VersionNotFoundError: There is no such version.
            CatalogError: Another session changed the table while its files were listed.
        """
        table = standin.table
        if not table.is_transactional:
            return shaped(self._plain(standin), standin)
        lost = self._transactions.lost_partitions(table)
        names = self._transactions.partition_names(table)
        seen, is_old = self._seen(table, snapshot, when)

        def still_there() -> None:
            self._transactions.need_unchanged(table, names, snapshot, lost)
            if is_old:
                self.travel.need_kept(table, seen)

        with explained_by(still_there):
            rows = read_rows(
                self._spark,
                table,
                names,
                seen,
                snapshot.valid_txns,
                demanded,
                lambda: is_old or self._is_kept(snapshot),
                few,
                (lambda needed: self._transactions.refuse_lost(table, needed)) if lost else None,
                is_fast=self._txns.settings.fast_paths,
                virtual=standin.virtual,
                with_deleted=standin.with_deleted,
            )
        return shaped(rows, standin)

    def listed(
        self, table: Table, snapshot: Snapshot, when: When | None = None
    ) -> tuple[list[Listing], ValidWriteIdList]:
        """The files of a table, and the write ids that are visible in them."""
        seen, is_old = self._seen(table, snapshot, when)
        where = self._transactions.partition_names(table) if table.partition_columns else [""]
        self._transactions.refuse_lost(table, where)
        fs = filesystem_for(table.location)
        listings = list_table(
            fs, table.location, where, seen, snapshot.valid_txns, history_is_kept=True
        )
        if is_old:
            self.travel.need_kept(table, seen)
        return listings, seen

    def inventory(self, table: Table, snapshot: Snapshot) -> list[FoundFile]:
        """All directories and files of a table, and the state of each in a snapshot."""
        columns = [column.name for column in table.partition_columns]
        names = self._transactions.partition_names(table) if columns else None
        keeps_versions = self._metastore.abilities.keeps_versions
        found = inventory(
            filesystem_for(table.location),
            table.location,
            names,
            snapshot.write_ids[table.name],
            snapshot.valid_txns,
            columns=columns,
            oldest=self._metastore.oldest_version(table.name) if keeps_versions else math.inf,
        )
        self._transactions.refuse_lost(table, names or ())
        return found

    def _seen(
        self, table: Table, snapshot: Snapshot, when: When | None
    ) -> tuple[ValidWriteIdList, bool]:
        """The visible write ids, and whether they are those of an older version."""
        when = when or self._transactions.when
        if when is None:
            return snapshot.write_ids[table.name], False
        return self.travel.write_ids(table, when, snapshot), True

    def _plain(self, standin: StandIn) -> DataFrame:
        table = standin.table
        found = self._metastore.find(table.name)
        if not isinstance(found, ForeignTable) or found.table != table:
            raise CatalogError(f"{table.name} was changed meanwhile. Read it again.")
        found = self._metastore.with_partitions(found)
        found.need_table()  # its partitions may be a reason to refuse it
        text = found.text
        form = (text.field_end, text.null)
        return read_plain(self._spark, table, found.partitions, form, standin.virtual)

    def _is_kept(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot's transaction is open: then the cleaner keeps the files it needs."""
        holder = snapshot.held_by
        return holder is not None and self._metastore.txn_state(holder) is TxnState.OPEN


@contextmanager
def explained_by(check: Callable[[], None]) -> Iterator[None]:
    """Call ``check`` after the block. If the block fails, ``check`` may raise the better error."""
    try:
        yield
    except (AcidSqlError, OSError):
        check()
        raise
    check()


def shaped(rows: DataFrame, standin: StandIn) -> DataFrame:
    """The columns of a stand-in, of all columns of ``scan``."""
    if standin.is_target:
        return rows
    columns = (quote(column.name) for column in standin.table.all_columns)
    return jvm.select(rows, *standin.virtual, *columns)
