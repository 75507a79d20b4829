"""Runs DESCRIBE HISTORY: the versions of a table, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid.layout import parse_directory
from acidsql.acid.table import Table
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.metastore.versions import Version
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import rows_frame
from acidsql.statements.queries.table_rows import TableRows

_HISTORY = (
    "version bigint, timestamp timestamp, userName string, operation string, statement string, "
    "txnId bigint, host string, numInsertedRows bigint, numUpdatedRows bigint, "
    "numDeletedRows bigint, numFiles bigint, numBytes bigint, partitions bigint, "
    "isAvailable boolean"
)
_UNKNOWN_COLUMNS = 12  # columns between the version and isAvailable


class HistoryStatements(Family):
    """Runs DESCRIBE HISTORY for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._table_rows = TableRows(context)

    @runs(st.DescribeHistory)
    def _describe_history(self, statement: st.DescribeHistory, text: str) -> DataFrame:
        """Run DESCRIBE HISTORY. Spark runs the statement if the name is no table of acidsql's, and
        Spark has a table of this name (of another format), or one called ``history`` (the name is
        then a column's)."""
        parts = statement.name.parts
        if self._names.find(parts, at_a_glance=True) is None and (
            self._names.is_in_spark(parts) or self._names.is_in_spark(("history",))
        ):
            return self._spark.sql(text)  # another format's history, or a column of ``history``
        return self.history(self._names.require_table(statement.name, text), statement.limit)

    def history(self, table: Table, limit: int | None = None) -> DataFrame:
        """Return the versions and the finished compactions of a table as rows, the newest first.
        ``limit``: at most so many rows; None: all.

        Versions that the metastore has forgotten, or that others wrote, come from the names of
        directories, and have NULLs in all columns but ``version`` and ``isAvailable``. A compaction
        has no version; it comes before the versions that it covers.
        """
        versions = self._metastore.versions(table.name)
        if limit is not None:
            versions = versions[:limit]
        oldest_version = self._oldest_version(table)
        rows = [(version.write_id, _version_row(version, oldest_version)) for version in versions]
        if limit is None or len(rows) < limit:
            version_ids = {version.write_id for version in versions}
            other_ids = sorted(self._write_ids_on_disk(table) - version_ids, reverse=True)
            rows += [
                (
                    number,
                    (
                        number,
                        *[None] * _UNKNOWN_COLUMNS,
                        None if oldest_version is None else number >= oldest_version,
                    ),
                )
                for number in other_ids[: None if limit is None else limit - len(rows)]
            ]
        rows = [*self._compaction_rows(table), *rows]
        # The sort is stable: a compaction is newer than the versions that it covers.
        rows.sort(key=lambda row: row[0], reverse=True)
        return rows_frame(self._spark, _HISTORY, [row for _, row in rows[:limit]])

    def _compaction_rows(self, table: Table) -> list[tuple[int, tuple[Any, ...]]]:
        """Return a pair for each finished compaction of a table, the last one to end first: its
        highest write id (0: unknown), and its row in DESCRIBE HISTORY."""
        finished_states = (CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED)
        compactions = [
            compaction
            for compaction in self._metastore.compactions()
            if compaction.table == table.name
            and compaction.state in finished_states
            and compaction.committed_ms is not None
        ]
        compactions.sort(
            key=lambda compaction: (compaction.committed_ms or 0, compaction.id), reverse=True
        )
        return [
            (compaction.highest_write_id or 0, _compaction_row(compaction))
            for compaction in compactions
        ]

    def _oldest_version(self, table: Table) -> int | None:
        """Return the oldest version that can be read; None if the metastore keeps no versions."""
        if not self._metastore.abilities.keeps_versions:
            return None
        return self._metastore.oldest_version(table.name)

    def _write_ids_on_disk(self, table: Table) -> set[int]:
        """Return the visible write ids that the names of a table's directories tell, also of
        obsolete directories. A delta of several write ids, as a compaction makes, is left out."""
        listings, visible = self._table_rows.list_files(
            table, self._transactions.read_snapshot([table.name])
        )
        names = {
            name
            for listing in listings
            for name in (
                *(directory.name for directory in listing.state.directories),
                *listing.state.obsolete,
            )
        }
        directories = [
            directory for name in names if (directory := parse_directory(name)) is not None
        ]
        return {
            directory.min_write_id
            for directory in directories
            if directory.min_write_id == directory.max_write_id
            and visible.is_valid(directory.min_write_id)
            and directory.min_write_id > 0
        }


def _compaction_row(entry: CompactionInfo) -> tuple[Any, ...]:
    """Return the row of a compaction in DESCRIBE HISTORY: time (in UTC), operation, such as
    ``COMPACT MAJOR``, a text about it, and transaction; all else is None. It has no version: the
    table has the same rows as before."""
    partition_text = "" if entry.partition is None else f" of {entry.partition}"
    return (
        None,
        datetime.fromtimestamp((entry.committed_ms or 0) / 1000, UTC),
        None,
        f"COMPACT {entry.type.name}",
        f"{entry.type.name.lower()} compaction{partition_text}, up to version "
        f"{entry.highest_write_id}",
        entry.txn_id,
        *[None] * 8,
    )


def _version_row(version: Version, oldest_version: int | None) -> tuple[Any, ...]:
    """Return the row of a version in DESCRIBE HISTORY: the version, its time in UTC, who wrote it
    by what, its counts, and last ``isAvailable``: whether it is at least ``oldest_version``, the
    oldest that can be read; None if that is None: the metastore keeps no versions."""
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
        None if oldest_version is None else version.write_id >= oldest_version,
    )
