"""Checks a table, without changing anything: ``Session.check``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from acidsql.acid.findings import Finding, in_order
from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.compaction.litter import left_by_the_dead
from acidsql.plan.locking import read_lock
from acidsql.plan.lower import job_errors
from acidsql.statements.family import Family
from acidsql.statements.result import rows_frame
from acidsql.statements.table_rows import explained_by
from acidsql.statements.unit_of_work import file_errors
from acidsql.storage.checking.directories import (
    CatalogFacts,
    CommittedFiles,
    check_catalog,
    missing_places,
)
from acidsql.storage.checking.job import MOST, Checking, too_many
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.reading.inventory import FoundFile, inventory

REPAIRED = "REPAIR TABLE"  # the operation in a table's history
_DROPS_PARTITIONS = (REPAIRED, "DROP PARTITION", "RENAME PARTITION")
_FINDINGS = "severity string, path string, finding string, message string, advice string"


@dataclass(frozen=True, slots=True)
class _Look:
    """What is in a table's directory, and what the metastore knows about it."""

    checking: Checking
    found: list[FoundFile]
    known: CatalogFacts
    litter: list[Finding]


class TableChecks(Family):
    """Checks the tables of one session."""

    def check(self, table: Table, *, all_rows: bool) -> DataFrame:
        """See ``Session.check``."""
        self._transactions.need_thread()
        with file_errors(), self._files_kept(table):
            found = in_order(self._findings(table, all_rows=all_rows))
        if len(found) > MOST:
            found = [*found[:MOST], too_many(table.location)]
        return self.frame(found)

    def frame(self, found: Sequence[Finding]) -> DataFrame:
        """Findings as rows."""
        rows = [(f.severity, f.path, f.condition, f.message, f.advice) for f in found]
        return rows_frame(self._spark, _FINDINGS, rows)

    def directories(self, table: Table) -> tuple[Checking, list[Finding]]:
        """A check of what the metastore knows of each directory, and what it finds."""
        with self._looked(table) as look:
            checking, found, known = look.checking, look.found, look.known
            missing = missing_places(checking.fs, table, known)
            of_catalog = check_catalog(table, found, known)
            return checking, [*look.litter, *missing.values(), *of_catalog]

    def _findings(self, table: Table, *, all_rows: bool) -> list[Finding]:
        with self._looked(table, all_rows=all_rows) as look, job_errors():
            found = [*look.litter, *look.checking.run(self._spark, look.found, look.known)]
            return [one for one in found if not _has_gone(look.checking.fs, one)]

    @contextmanager
    def _looked(self, table: Table, *, all_rows: bool = False) -> Iterator[_Look]:
        """A snapshot's inventory. The block fails if the table is changed or dropped meanwhile."""
        name, fs = table.name, filesystem_for(table.location)
        seen = self._transactions.look([name])
        names = self._transactions.partition_names(table) if table.partition_columns else None
        self._transactions.refuse_lost(table, names or ())
        write_ids, txns = seen.write_ids[name], seen.valid_txns

        def still_there() -> None:
            self._transactions.need_unchanged(table, names or (), seen)

        with explained_by(still_there):
            litter = self._litter(table)
            found = inventory(
                fs, table.location, names, write_ids, txns,
                columns=[column.name for column in table.partition_columns],
                oldest=self._oldest(table),
            )  # fmt: skip
            checking = Checking(fs, table, write_ids, txns, all_rows)
            yield _Look(checking, found, self._known(table, names, write_ids), litter)

    def _known(
        self, table: Table, names: Sequence[str] | None, seen: ValidWriteIdList
    ) -> CatalogFacts:
        """What the metastore knows now: whoever has published a directory that was listed before
        has a number by now."""
        now = self._metastore.valid_txns()
        write_ids = self._metastore.valid_write_ids(now, [table.name])[table.name]
        where, written = [""] if names is None else names, self._written(table, seen)
        return CatalogFacts(where, write_ids.high_water_mark, now.high_water_mark, written)

    def _written(self, table: Table, seen: ValidWriteIdList) -> dict[int, CommittedFiles]:
        """See ``CatalogFacts.written``."""
        if not self._metastore.abilities.keeps_versions:
            return {}
        versions = self._metastore.versions(table.name)
        drops = (one.write_id for one in versions if one.change.operation in _DROPS_PARTITIONS)
        after = max(drops, default=0)
        written: dict[int, CommittedFiles] = {}
        for one in versions:
            if one.write_id > after and seen.is_valid(one.write_id):
                before, more = written.get(one.write_id, CommittedFiles()), one.change
                written[one.write_id] = CommittedFiles(
                    before.files + more.files,
                    before.bytes + more.bytes,
                    max(before.places, more.partitions),
                )
        return written

    def _oldest(self, table: Table) -> float:
        keeps_versions = self._metastore.abilities.keeps_versions
        return self._metastore.oldest_version(table.name) if keeps_versions else math.inf

    def _litter(self, table: Table) -> list[Finding]:
        """The hidden directories of statements and compactions that have ended."""
        fs = filesystem_for(table.location)
        if fs.is_link(table.location):
            return []  # nothing behind a link is deleted
        entries = fs.list_if_there(table.location)
        return [
            Finding(entry.path, "LITTER", "The statement or compaction that made it has ended.")
            for entry in left_by_the_dead(self._metastore, table.name, entries)
        ]

    @contextmanager
    def _files_kept(self, table: Table) -> Iterator[None]:
        """Keep the files of snapshots from the cleaner. If leases do not do that, a lock does."""
        if self._metastore.abilities.leases_keep_files or self._transactions.current is not None:
            yield
            return
        with self._locked(f"check of {table.name}", read_lock(table.name)) as txn:
            yield
            txn.end_quietly()


def _has_gone(fs: FileSystem, one: Finding) -> bool:
    """Whether others have cleared it away meanwhile: each statement clears up behind itself."""
    return one.condition in ("LITTER", "ABORTED_DIRECTORY") and not fs.exists(one.path)
