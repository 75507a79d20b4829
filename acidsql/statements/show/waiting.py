"""How many records of each stream wait at commit points, for SHOW STREAMS.

The records wait in the pending tables (``acid.cdc``). A job counts them, if there are such tables.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid import cdc
from acidsql.acid.table import Table, TableName
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import AcidSqlError
from acidsql.metastore.catalog import all_tables
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.streams import StreamEntry, may_write_to, sink_tables
from acidsql.plan.standins.query import StandIn, view_name
from acidsql.statements.context.family import Context
from acidsql.statements.queries.table_rows import TableRows

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The records that wait for one stream.

    Attributes:
        records: The number of records.
        oldest: The source's transaction that has waited longest. None: no record waits; or records
            wait beside several tables, and the metastore keeps no versions, by which the ages of
            records of different tables are compared.
    """

    records: int
    oldest: str | None


@dataclass(frozen=True, slots=True)
class _WaitingGroup:
    """The waiting records of one application beside one table.

    Attributes:
        app_id: The application.
        target: The table beside which the records wait.
        records: The number of records.
        since: The write id of the pending table that has added the oldest record.
        oldest: The source's transaction of the oldest record.
    """

    app_id: str | None
    target: TableName
    records: int
    since: int
    oldest: str


class WaitingRecords:
    """Counts the records that wait in one session's metastore."""

    def __init__(self, context: Context) -> None:
        self._metastore, self._transactions = context.metastore, context.transactions
        self._rows = TableRows(context)

    def count_waiting(self, entries: Sequence[StreamEntry]) -> list[Waiting | None]:
        """Count, in one job, the records that wait for each entry of the ledger of streams. Return
        an item for each entry; None: its tables have no pending table, where records wait.

        All items are None in a transaction: reading would fix the transaction's snapshot, which
        does not show the records that wait now. All items are also None if a pending table cannot
        be read, which is only logged.
        """
        tables = (
            self._pending_tables(entries) if entries and self._transactions.is_autocommit else {}
        )
        try:
            groups = self._count_groups(tables)
        except AcidSqlError as error:
            _log.warning("Records that wait at commit points cannot be counted: %s", error)
            return [None] * len(entries)
        return [self._waiting_for_entry(entry, tables, groups) for entry in entries]

    def _waiting_for_entry(
        self, entry: StreamEntry, tables: dict[TableName, Table], groups: Sequence[_WaitingGroup]
    ) -> Waiting | None:
        """Return how many records wait for one entry, 0 included, and which source transaction has
        waited longest (None as in ``Waiting``). None: its tables have no pending table. ``tables``:
        the pending tables by their targets."""
        targets = {target for target in tables if may_write_to(entry.batch.sink, target)}
        if not targets:
            return None
        stream_groups = [
            group
            for group in groups
            if group.app_id == entry.batch.app_id and group.target in targets
        ]
        # Write ids of different tables do not compare; the commits that made them do.
        is_comparable = len(stream_groups) == 1 or self._metastore.abilities.keeps_versions
        oldest = (
            min(stream_groups, key=self._first_commit).oldest
            if stream_groups and is_comparable
            else None
        )
        return Waiting(sum(group.records for group in stream_groups), oldest)

    def _first_commit(self, group: _WaitingGroup) -> int:
        """Return the number of the commit since which a group waits; 0 if the metastore has
        forgotten this commit."""
        versions = self._metastore.versions(cdc.pending_name(group.target))
        return next((version.commit for version in versions if version.write_id == group.since), 0)

    def _pending_tables(self, entries: Sequence[StreamEntry]) -> dict[TableName, Table]:
        """Return the existing pending tables beside the tables of these entries: target → pending
        table, sorted. An entry whose sink is a hash, which names no tables, means all targets of
        the metastore; one without a sink means none. {} if the metastore keeps no such tables."""
        if not self._metastore.abilities.keeps_state_tables:
            return {}
        targets_of_sinks = [sink_tables(entry.batch.sink) for entry in entries if entry.batch.sink]
        targets = {target for tables in targets_of_sinks for target in tables}
        if not all(targets_of_sinks):
            table_names = set(all_tables(self._metastore))
            targets = {name for name in table_names if cdc.pending_name(name) in table_names}
        pending_tables: dict[TableName, Table] = {}
        for target in sorted(targets, key=str):
            table = acid_table(self._metastore.find(cdc.pending_name(target)))
            if table is not None and cdc.is_pending(table):
                pending_tables[target] = table
        return pending_tables

    def _count_groups(self, tables: dict[TableName, Table]) -> list[_WaitingGroup]:
        """Count, in one job, the records in pending tables. Return one group for each table and
        application that has rows there; rows that are only commit points are not counted.
        ``tables``: the pending tables by their targets. Without tables or visible writes no job
        runs."""
        if not tables:
            return []
        snapshot = self._transactions.read_snapshot([table.name for table in tables.values()])
        parts: list[DataFrame] = []
        targets = list(tables)
        for table_number, table in enumerate(tables.values()):
            if snapshot.write_ids[table.name].is_any_valid:
                rows = self._rows.rows(StandIn(view_name(), table, (ROW__ID,)), snapshot)
                parts.append(rows.withColumn("home", F.lit(table_number)))
        if not parts:
            return []
        oldest = F.min(F.struct("row__id.writeid", "source_txn"))
        counted_rows = (
            reduce(DataFrame.unionByName, parts)
            .groupBy("home", "txn_app_id")
            .agg(F.count("record").alias("records"), oldest.alias("oldest"))
        )
        return [
            _WaitingGroup(row.txn_app_id, targets[row.home], row.records, *row.oldest)
            for row in counted_rows.collect()
        ]
