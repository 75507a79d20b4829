"""Repairs the damage that a check finds, if no guess is needed: ``Session.repair``.

* Litter of dead statements and compactions, and directories of aborted transactions, are deleted
  as by the cleaner.
* Partitions without a directory are dropped from the catalog. Directories that have rows of a
  partition unknown to the catalog are added to the catalog. Hive's MSCK REPAIR TABLE does the same.
  Files stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from acidsql.acid.findings import ERROR, Finding, sort_findings
from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import PARQUET, Partition, Table
from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.housekeeper import keep_house
from acidsql.errors import AcidSqlError
from acidsql.metastore.interface import Commit
from acidsql.metastore.versions import Change
from acidsql.plan.locking import exclusive_lock
from acidsql.statements.context.environment import statement_environment
from acidsql.statements.maintenance.check import REPAIR_OPERATION, TableChecks
from acidsql.storage.checking.job import TableCheck
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.events.orc_reader import row_count
from acidsql.storage.reading.pruning.known_partitions import canonical_partition_values
from acidsql.storage.tables.listing import Listing
from acidsql.storage.tables.parquet import rows_of_parquet


@dataclass(frozen=True, slots=True)
class _RepairPlan:
    """The repairs of one table.

    Attributes:
        deletable_directories: Findings of directories that nobody needs.
        missing_partitions: Findings of partitions whose directories are missing, by partition.
        unknown_partitions: Findings of partitions that the catalog does not have, by partition.
        reasons_to_keep: By partition, why some of these partitions stay as they are.
    """

    deletable_directories: tuple[Finding, ...]
    missing_partitions: dict[str, Finding]
    unknown_partitions: dict[str, Finding]
    reasons_to_keep: dict[str, str] = field(default_factory=dict)

    @property
    def partitions_to_drop(self) -> list[str]:
        """The partitions to drop from the catalog."""
        return [name for name in self.missing_partitions if name not in self.reasons_to_keep]

    @property
    def partitions_to_add(self) -> list[str]:
        """The partitions to add to the catalog."""
        return [name for name in self.unknown_partitions if name not in self.reasons_to_keep]


class TableRepairs(TableChecks):
    """Checks and repairs the tables of one session."""

    def repair(self, table: Table, *, dry_run: bool) -> DataFrame:
        """Repair a table, in transactions of its own, and return what was done as rows of findings,
        also for partitions that were left as they are; with ``dry_run`` change nothing, and return
        what would be done. Before a repair, transactions that timed out are aborted.

        Raises:
            TxnError: A transaction is open.
        """
        self._transactions.require_autocommit("repair")
        with statement_environment(self._spark):
            if not dry_run:
                # Aborts transactions of dead sessions. Otherwise they would seem alive.
                keep_house(self._metastore, self._txns.settings)
            plan = self._plan_repair(table)
            if dry_run:
                findings = [
                    *_partition_findings(plan, "would be"),
                    *_deletion_findings(plan.deletable_directories, "would be"),
                ]
            else:
                # The cleaner stops at a partition without a directory, so partitions come first.
                findings = [
                    *_partition_findings(self._repair_catalog(table, plan), "was"),
                    *self._delete_unneeded(table, plan),
                ]
        return self.findings_frame(sort_findings(findings))

    def _delete_unneeded(self, table: Table, plan: _RepairPlan) -> list[Finding]:
        """Run the cleaner on the table, unless the plan has no directories to delete. The cleaner
        deletes all that no reader can see any more, and perhaps not each of the plan's directories.
        Return a finding for each of these that is gone now."""
        if not plan.deletable_directories:
            return []
        end_leases = self._txns.end_old_leases
        Cleaner(self._metastore, self._txns, end_leases, self._spark).clean_table(table.name)
        fs = filesystem_for(table.location)
        return _deletion_findings(
            [finding for finding in plan.deletable_directories if not fs.exists(finding.path)],
            "was",
        )

    # ── partitions ───────────────────────────────────────────────────────────────────────────

    def _plan_repair(self, table: Table) -> _RepairPlan:
        """Compare the table's directories with the metastore, and return which repairs are
        possible, with reasons for partitions that must stay as they are. If all of several
        partitions lack their directories, all stay. Footers may be read; nothing is changed."""
        checking, findings = self.check_directories(table)
        findings_by_condition: dict[str, dict[str, Finding]] = {}
        for finding in findings:
            name = finding.path.removeprefix(f"{table.location}/")
            findings_by_condition.setdefault(finding.condition, {})[name] = finding
        aborted = findings_by_condition.get("ABORTED_DIRECTORY", {})
        names_behind_links = [
            name for name in aborted if self._is_behind_a_link(checking, table, name)
        ]
        # Over a Hive Metastore, Hive's cleaner deletes directories of aborted transactions.
        undeletable = aborted if not self._metastore.abilities.can_clean else names_behind_links
        plan = _RepairPlan(
            (
                *findings_by_condition.get("LITTER", {}).values(),
                *(finding for name, finding in aborted.items() if name not in undeletable),
            ),
            findings_by_condition.get("PARTITION_WITHOUT_DIRECTORY", {}),
            findings_by_condition.get("PARTITION_NOT_IN_CATALOG", {}),
        )
        catalog_names = self._catalog.partition_names(table)
        if len(plan.missing_partitions) == len(catalog_names) > 1:
            reason_to_keep = "all directories are missing, as if nothing were mounted"
            plan.reasons_to_keep.update(dict.fromkeys(plan.missing_partitions, reason_to_keep))
        if not plan.unknown_partitions:
            return plan
        values = canonical_partition_values(
            self._spark, table, [*catalog_names, *plan.unknown_partitions]
        )
        taken_values = {tuple(values[name]) for name in catalog_names}
        for name in plan.unknown_partitions:
            directory = f"{table.location}/{name}/"
            errors = [
                finding
                for finding in findings
                if finding.path.startswith(directory) and finding.severity == ERROR
            ]
            damage = (f"{finding.condition}, {finding.path}" for finding in errors)
            reason = next(damage, None) or self._partition_obstacle(checking, table, name)
            if reason is None and tuple(values[name]) in taken_values:
                reason = "the catalog has this partition, in another directory"
            if reason is None:
                taken_values.add(tuple(values[name]))
            else:
                plan.reasons_to_keep[name] = reason
        return plan

    @staticmethod
    def _is_behind_a_link(checking: TableCheck, table: Table, name: str) -> bool:
        """Whether the table's directory, the directory ``name`` below it, or one between the two is
        a link."""
        return checking.fs.first_link_on_path(table.location, name) is not None

    def _partition_obstacle(
        self, checking: TableCheck, table: Table, partition_name: str
    ) -> str | None:
        """Return why a directory that the catalog does not know cannot be a partition, for a
        message; None if it can.

        There must be no link on its path. Each text in its name must be a value of its column; the
        default partition's NULL is one. A file must have rows, by the footers, which are read. An
        error of the listing or of a footer is returned as the reason, too, not raised.
        """
        if self._is_behind_a_link(checking, table, partition_name):
            return "it is behind a link"
        listing = checking.list_or_refuse(partition_name)
        if not isinstance(listing, Listing):
            return listing.message
        (values,) = canonical_partition_values(self._spark, table, [partition_name]).values()
        pairs = zip(values, _partition_values(partition_name), strict=True)
        if any(value is None and name_value is not None for value, name_value in pairs):
            return "its name has a text that is no value of the column"
        try:
            has_rows = any(
                _row_count(table, *path_and_length) for path_and_length in _row_files(listing)
            )
        except (AcidSqlError, OSError) as error:
            return str(error)
        return None if has_rows else "it has no rows: perhaps a DROP PARTITION left it"

    def _repair_catalog(self, table: Table, plan: _RepairPlan) -> _RepairPlan:
        """Drop and add the plan's partitions in the catalog, in a transaction under the table's
        EXCLUSIVE lock; the table's history notes it as REPAIR TABLE. Return the plan that was
        carried out, which is made anew under the lock; ``plan`` itself, without a transaction, if
        it has nothing to drop or add."""
        if not plan.partitions_to_drop and not plan.partitions_to_add:
            return plan
        name = table.name
        text = f"repair of {name}"
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            table = self._look_up_again(name)
            plan = self._plan_repair(table)
            partitions_to_drop, partitions_to_add = plan.partitions_to_drop, plan.partitions_to_add
            if not partitions_to_drop and not partitions_to_add:
                return plan
            txn.write_id(name)
            # An added partition is also dropped in the same commit. This tells older snapshots and
            # versions that they do not know the partition. A Hive Metastore has no versions, and
            # drops partitions after the commit.
            forgotten = [
                *partitions_to_drop,
                *(partitions_to_add if self._metastore.abilities.keeps_versions else []),
            ]
            count = len(partitions_to_drop) + len(partitions_to_add)
            added = [_partition(table, partition) for partition in partitions_to_add]
            txn.commit(
                Commit(
                    dropped_partitions={name: [*map(_partition_values, forgotten)]},
                    added_partitions={name: added},
                    table_changes=[Change(name, REPAIR_OPERATION, text, partitions=count)],
                )
            )
        return plan


def _partition_findings(plan: _RepairPlan, verb: str) -> list[Finding]:
    """Return a finding for each missing or unknown partition of the plan, whose ``repair_outcome``
    says that the partition was (or would be) dropped, added, or left, and why. ``verb``: ``was`` or
    ``would be``."""
    outcomes = dict.fromkeys(
        plan.partitions_to_drop, f"The partition {verb} dropped from the catalog."
    )
    outcomes |= dict.fromkeys(plan.partitions_to_add, f"The partition {verb} added to the catalog.")
    for name, reason in plan.reasons_to_keep.items():
        outcomes[name] = f"The partition {verb} left as it is: {reason}."
    findings = {**plan.missing_partitions, **plan.unknown_partitions}
    return [replace(finding, repair_outcome=outcomes[name]) for name, finding in findings.items()]


def _deletion_findings(findings: Iterable[Finding], verb: str) -> list[Finding]:
    """Return copies of the findings that say that the directory was (or would be) deleted.
    ``verb``: ``was`` or ``would be``."""
    return [replace(finding, repair_outcome=f"It {verb} deleted.") for finding in findings]


def _row_files(listing: Listing) -> list[tuple[str, int | None]]:
    """Return the path and the committed length of each file of rows in a listing, without those of
    delete events. The length is None for an original, which is committed as a whole."""
    plain = [(path, None) for group in listing.originals for path in group.paths]
    return [*((file.path, file.length) for file in listing.data), *plain]


def _row_count(table: Table, path: str, length: int | None) -> int:
    """Return the number of rows in a file, by its footer. ``length``: its committed length."""
    return rows_of_parquet(path) if table.file_format == PARQUET else row_count(path, length)


def _partition_values(name: str) -> tuple[str | None, ...]:
    return tuple(value for _, value in parse_partition_name(name))


def _partition(table: Table, name: str) -> Partition:
    return Partition(_partition_values(name), f"{table.location}/{name}")
