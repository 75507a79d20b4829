"""Checks a table without changing it: ``Session.check``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from acidsql.acid.findings import Finding, sort_findings
from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.compaction.litter import orphaned_directories
from acidsql.plan.analysis.lower import job_errors
from acidsql.plan.locking import read_lock
from acidsql.statements.context.environment import statement_environment
from acidsql.statements.context.family import Family
from acidsql.statements.context.result import rows_frame
from acidsql.storage.checking.directories import (
    CatalogFacts,
    CommittedFiles,
    check_catalog,
    missing_places,
)
from acidsql.storage.checking.job import MOST, TableCheck, too_many_findings
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.files.gone import check_after_block
from acidsql.storage.reading.pruning.inventory import FoundFile, inventory

REPAIR_OPERATION = "REPAIR TABLE"  # the operation in a table's history
_DROPS_PARTITIONS = (REPAIR_OPERATION, "DROP PARTITION", "RENAME PARTITION")
_FINDINGS = "severity string, path string, finding string, message string, advice string"


@dataclass(frozen=True, slots=True)
class _Inspection:
    """The contents of a table's directory, the metastore's facts about the table, and the check
    that can read the files."""

    check: TableCheck
    files: list[FoundFile]
    catalog_facts: CatalogFacts
    litter: list[Finding]


class TableChecks(Family):
    """Checks the tables of one session."""

    def check(self, table: Table, *, all_rows: bool) -> DataFrame:
        """Check a table's files, and return findings as rows: the worst first, at most 1,000, and
        then one more row if findings were left out. ``all_rows``: also read each row. Nothing is
        changed. Raise an error if the table is changed meanwhile, or another thread has the
        session's transaction."""
        self._transactions.require_same_thread()
        with statement_environment(self._spark), self._keep_files(table):
            findings = sort_findings(self._findings(table, all_rows=all_rows))
        if len(findings) > MOST:
            findings = [*findings[:MOST], too_many_findings(table.location)]
        return self.findings_frame(findings)

    def findings_frame(self, findings: Sequence[Finding]) -> DataFrame:
        """Return a DataFrame with a row for each finding: severity, path, finding, message and
        advice, all texts."""
        rows = [(f.severity, f.path, f.condition, f.message, f.advice) for f in findings]
        return rows_frame(self._spark, _FINDINGS, rows)

    def check_directories(self, table: Table) -> tuple[TableCheck, list[Finding]]:
        """Compare the table's directories with the metastore. No file is opened. Raise an error if
        the table is changed meanwhile.

        Returns:
            An object that can check the table's files, too, and the findings about directories.
        """
        with self._inspect(table) as inspection:
            table_check, files, facts = inspection.check, inspection.files, inspection.catalog_facts
            missing_findings = missing_places(table_check.fs, table, facts)
            catalog_findings = check_catalog(table, files, facts)
            return table_check, [*inspection.litter, *missing_findings.values(), *catalog_findings]

    def _findings(self, table: Table, *, all_rows: bool) -> list[Finding]:
        """Return the findings of all checks, in no order. A directory that was to be deleted, and
        was removed meanwhile, is left out. This runs jobs."""
        with self._inspect(table, all_rows=all_rows) as inspection, job_errors():
            findings = [
                *inspection.litter,
                *inspection.check.run(self._spark, inspection.files, inspection.catalog_facts),
            ]
            return [
                finding
                for finding in findings
                if not _is_cleared_away(inspection.check.fs, finding)
            ]

    @contextmanager
    def _inspect(self, table: Table, *, all_rows: bool = False) -> Iterator[_Inspection]:
        """List the table's files in a snapshot. Yield them with the check that can read them
        (``all_rows``: each row, otherwise footers alone), the metastore's facts, and the litter
        (hidden directories that nobody needs).

        If the table is changed or dropped meanwhile, SnapshotTooOldError, TableChangedError or
        CatalogError is raised at the end of the block, in place of an AcidSqlError or OSError of
        the block. SnapshotTooOldError is also raised at the start, if a partition was dropped.
        """
        name, fs = table.name, filesystem_for(table.location)
        snapshot = self._transactions.read_snapshot([name])
        partition_names = self._catalog.partition_names(table) if table.partition_columns else None
        self._catalog.refuse_dropped_partitions(table, partition_names or ())
        write_ids, txns = snapshot.write_ids[name], snapshot.valid_txns

        def check_unchanged() -> None:
            self._catalog.require_unchanged(table, partition_names or (), snapshot)

        with check_after_block(check_unchanged):
            litter = self._litter(table)
            files = inventory(
                fs, table.location, partition_names, write_ids, txns,
                columns=[column.name for column in table.partition_columns],
                oldest=self._oldest_version(table),
            )  # fmt: skip
            table_check = TableCheck(fs, table, write_ids, txns, all_rows)
            yield _Inspection(
                table_check, files, self._catalog_facts(table, partition_names, write_ids), litter
            )

    def _catalog_facts(
        self,
        table: Table,
        partition_names: Sequence[str] | None,
        visible_write_ids: ValidWriteIdList,
    ) -> CatalogFacts:
        """Return the metastore's facts about a table: partitions, the highest write id and
        transaction id, and how many files and bytes each visible write id committed.

        Call this method after the files were listed: then each writer that published a listed
        directory has its transaction and write id already. ``partition_names`` is None for an
        unpartitioned table, whose one partition in the result is "".
        """
        valid_txns = self._metastore.valid_txns()
        write_ids = self._metastore.valid_write_ids(valid_txns, [table.name])[table.name]
        partitions = [""] if partition_names is None else partition_names
        totals = self._committed_files(table, visible_write_ids)
        return CatalogFacts(
            partitions, write_ids.high_water_mark, valid_txns.high_water_mark, totals
        )

    def _committed_files(
        self, table: Table, visible_write_ids: ValidWriteIdList
    ) -> dict[int, CommittedFiles]:
        """Return how many files and bytes each visible write id committed, and to how many
        partitions at least, by write id. Write ids up to the last drop, rename or repair of a
        partition are left out, as files are gone; {} if the metastore keeps no versions."""
        if not self._metastore.abilities.keeps_versions:
            return {}
        versions = self._metastore.versions(table.name)
        drop_ids = (
            version.write_id
            for version in versions
            if version.change.operation in _DROPS_PARTITIONS
        )
        last_drop_id = max(drop_ids, default=0)
        totals: dict[int, CommittedFiles] = {}
        for version in versions:
            if version.write_id > last_drop_id and visible_write_ids.is_valid(version.write_id):
                total, change = totals.get(version.write_id, CommittedFiles()), version.change
                totals[version.write_id] = CommittedFiles(
                    total.files + change.files,
                    total.bytes + change.bytes,
                    max(total.places, change.partitions),
                )
        return totals

    def _oldest_version(self, table: Table) -> float:
        """Return the oldest version that can be read; infinity if the metastore keeps no
        versions."""
        keeps_versions = self._metastore.abilities.keeps_versions
        return self._metastore.oldest_version(table.name) if keeps_versions else math.inf

    def _litter(self, table: Table) -> list[Finding]:
        """Return a finding LITTER for each hidden directory in the table's directory that belongs
        to a statement or compaction that has ended; [] if the table's directory is a link."""
        fs = filesystem_for(table.location)
        if fs.is_link(table.location):
            return []  # nothing behind a link is deleted
        entries = fs.list_if_there(table.location)
        return [
            Finding(entry.path, "LITTER", "The statement or compaction that made it has ended.")
            for entry in orphaned_directories(self._metastore, table.name, entries)
        ]

    @contextmanager
    def _keep_files(self, table: Table) -> Iterator[None]:
        """Keep the cleaner from deleting the snapshot's files in the block: by a read lock, in a
        transaction of its own, if neither leases nor the open transaction keep them."""
        if self._metastore.abilities.leases_keep_files or self._transactions.current is not None:
            yield
            return
        with self._locked_transaction(f"check of {table.name}", read_lock(table.name)) as txn:
            yield
            txn.end_quietly()


def _is_cleared_away(fs: FileSystem, finding: Finding) -> bool:
    """Whether a finding is about litter, or a directory of an aborted transaction, that is gone
    now, because a statement has cleared up after itself."""
    return finding.condition in ("LITTER", "ABORTED_DIRECTORY") and not fs.exists(finding.path)
