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
from acidsql.metastore.streams import StreamEntry, may_write_to, tables_of
from acidsql.plan.query import StandIn, view_name
from acidsql.statements.family import Context
from acidsql.statements.table_rows import TableRows

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for one stream.

    Attributes:
        records: The number of records.
        oldest: The source's transaction that has waited longest. None: none waits; or some wait
            beside several tables, and the metastore keeps no versions, which tell them apart.
    """

    records: int
    oldest: str | None


@dataclass(frozen=True, slots=True)
class _Group:
    """What waits of one application beside one table, the oldest one since a write id."""

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

    def of(self, entries: Sequence[StreamEntry]) -> list[Waiting | None]:
        """What waits for each entry; None: no pending table is beside its tables.

        In a transaction also None: its snapshot, which this would take, is not what waits now. And
        None if a pending table cannot be read: the rest of the answer does not depend on it.
        """
        tables = self._pending_tables(entries) if entries and self._transactions.is_plain else {}
        try:
            groups = self._groups(tables)
        except AcidSqlError as error:
            _log.warning("Records that wait at commit points cannot be counted: %s", error)
            return [None] * len(entries)
        return [self._of(entry, tables, groups) for entry in entries]

    def _of(
        self, entry: StreamEntry, tables: dict[TableName, Table], groups: Sequence[_Group]
    ) -> Waiting | None:
        beside = {target for target in tables if may_write_to(entry.batch.sink, target)}
        if not beside:
            return None
        ours = [one for one in groups if one.app_id == entry.batch.app_id and one.target in beside]
        # Write ids of different tables do not compare; the commits that made them do.
        is_known = len(ours) == 1 or self._metastore.abilities.keeps_versions
        oldest = min(ours, key=self._commit).oldest if ours and is_known else None
        return Waiting(sum(one.records for one in ours), oldest)

    def _commit(self, group: _Group) -> int:
        """The commit since which a group waits; 0 if it was forgotten, as only old ones are."""
        versions = self._metastore.versions(cdc.pending_name(group.target))
        return next((one.commit for one in versions if one.write_id == group.since), 0)

    def _pending_tables(self, entries: Sequence[StreamEntry]) -> dict[TableName, Table]:
        """The pending tables beside the tables of these entries, by their targets."""
        if not self._metastore.abilities.keeps_state_tables:
            return {}
        told = [tables_of(one.batch.sink) for one in entries if one.batch.sink]
        targets = {target for tables in told for target in tables}
        if not all(told):
            known = set(all_tables(self._metastore))
            targets = {one for one in known if cdc.pending_name(one) in known}
        found: dict[TableName, Table] = {}
        for target in sorted(targets, key=str):
            table = acid_table(self._metastore.find(cdc.pending_name(target)))
            if table is not None and cdc.is_pending(table):
                found[target] = table
        return found

    def _groups(self, tables: dict[TableName, Table]) -> list[_Group]:
        if not tables:
            return []
        snapshot = self._transactions.read_snapshot([table.name for table in tables.values()])
        parts: list[DataFrame] = []
        targets = list(tables)
        for number, table in enumerate(tables.values()):
            if snapshot.write_ids[table.name].is_any_valid:
                rows = self._rows.rows(StandIn(view_name(), table, (ROW__ID,)), snapshot)
                parts.append(rows.withColumn("home", F.lit(number)))
        if not parts:
            return []
        oldest = F.min(F.struct("row__id.writeid", "source_txn"))
        counted = (
            reduce(DataFrame.unionByName, parts)
            .groupBy("home", "txn_app_id")
            .agg(F.count("record").alias("records"), oldest.alias("oldest"))
        )
        return [
            _Group(one.txn_app_id, targets[one.home], one.records, *one.oldest)
            for one in counted.collect()
        ]
