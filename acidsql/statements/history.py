"""Runs DESCRIBE HISTORY: the versions of a table, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid.layout import parse_directory
from acidsql.acid.table import Table
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.metastore.versions import Version
from acidsql.sql import statements as st
from acidsql.statements.family import Context, Family, runs
from acidsql.statements.result import rows_frame
from acidsql.statements.table_rows import TableRows

_HISTORY = (
    "version bigint, timestamp timestamp, userName string, operation string, statement string, "
    "txnId bigint, host string, numInsertedRows bigint, numUpdatedRows bigint, "
    "numDeletedRows bigint, numFiles bigint, numBytes bigint, partitions bigint, "
    "isAvailable boolean"
)
_UNKNOWN = 12  # columns between the version and isAvailable


class HistoryStatements(Family):
    """Runs these statements for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._tables = TableRows(context)

    @runs(st.DescribeHistory)
    def _describe(self, statement: st.DescribeHistory, text: str) -> DataFrame:
        parts = statement.name.parts
        if self._names.peek_table_or_view(parts) is None and (
            self._names.is_in_spark(parts) or self._names.is_in_spark(("history",))
        ):
            return self._spark.sql(text)  # another format's history, or a column of ``history``
        return self.history(self._names.require_table(statement.name, text), statement.limit)

    def history(self, table: Table, limit: int | None = None) -> DataFrame:
        """See ``Session.history``."""
        remembered = self._metastore.versions(table.name)
        if limit is not None:
            remembered = remembered[:limit]
        oldest = self._oldest(table)
        rows = [(version.write_id, _row(version, oldest)) for version in remembered]
        if limit is None or len(rows) < limit:
            known = {version.write_id for version in remembered}
            found = sorted(self._on_disk(table) - known, reverse=True)
            rows += [
                (number, (number, *[None] * _UNKNOWN, None if oldest is None else number >= oldest))
                for number in found[: None if limit is None else limit - len(rows)]
            ]
        rows = [*self._compactions(table), *rows]
        # Stable: a compaction comes after the versions that it covers, and before newer ones.
        rows.sort(key=lambda row: row[0], reverse=True)
        return rows_frame(self._spark, _HISTORY, [row for _, row in rows[:limit]])

    def _compactions(self, table: Table) -> list[tuple[int, tuple[Any, ...]]]:
        """The highest write id that each compaction covers, and its row, the newest first."""
        done = (CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED)
        found = [
            one
            for one in self._metastore.compactions()
            if one.table == table.name and one.state in done and one.committed_ms is not None
        ]
        found.sort(key=lambda one: (one.committed_ms or 0, one.id), reverse=True)
        return [(one.highest_write_id or 0, _compaction_row(one)) for one in found]

    def _oldest(self, table: Table) -> int | None:
        if not self._metastore.abilities.keeps_versions:
            return None
        return self._metastore.oldest_version(table.name)

    def _on_disk(self, table: Table) -> set[int]:
        """The write ids of the directories of single statements that the snapshot sees."""
        listings, seen = self._tables.listed(table, self._transactions.read_snapshot([table.name]))
        names = {
            name
            for listing in listings
            for name in (
                *(directory.name for directory in listing.state.directories),
                *listing.state.obsolete,
            )
        }
        found = [directory for name in names if (directory := parse_directory(name)) is not None]
        return {
            one.min_write_id
            for one in found
            if one.min_write_id == one.max_write_id
            and seen.is_valid(one.min_write_id)
            and one.min_write_id > 0
        }


def _compaction_row(entry: CompactionInfo) -> tuple[Any, ...]:
    """A compaction has no version: it changes no row, and readers see the same as before."""
    where = "" if entry.partition is None else f" of {entry.partition}"
    return (
        None,
        datetime.fromtimestamp((entry.committed_ms or 0) / 1000, UTC),
        None,
        f"COMPACT {entry.type.name}",
        f"{entry.type.name.lower()} compaction{where}, up to version {entry.highest_write_id}",
        entry.txn_id,
        *[None] * 8,
    )


def _row(version: Version, oldest: int | None) -> tuple[Any, ...]:
    change = version.change
    return (
        version.write_id,
        datetime.fromtimestamp(version.committed_ms / 1000, UTC),
        version.user,
        change.operation,
        change.statement,
        version.txn_id,
        version.host,
        change.inserted,
        change.updated,
        change.deleted,
        change.files,
        change.bytes,
        change.partitions,
        None if oldest is None else version.write_id >= oldest,
    )
