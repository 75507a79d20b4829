"""Mends what a check finds and what can be mended without a guess: ``Session.repair``.

* What dead statements and compactions left, and directories of aborted transactions, go as the
  cleaner deletes them.
* Partitions without a directory leave the catalog, and directories with rows of a partition that
  the catalog does not have come into it, as by Hive's MSCK REPAIR TABLE. Files stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from acidsql.acid.findings import ERROR, Finding, in_order
from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import PARQUET, Partition, Table
from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.housekeeper import keep_house
from acidsql.errors import AcidSqlError
from acidsql.metastore.versions import Change
from acidsql.plan.locking import exclusive
from acidsql.statements.check import REPAIR_OPERATION, TableChecks
from acidsql.statements.unit_of_work import file_errors
from acidsql.storage.checking.job import Checking
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.listing import Listing
from acidsql.storage.files.parquet import rows_of_parquet
from acidsql.storage.reading.known_partitions import partition_values
from acidsql.storage.reading.orc_reader import row_count


@dataclass(frozen=True, slots=True)
class _Plan:
    """What there is to mend.

    Attributes:
        deleted: Findings of directories that nobody needs.
        missing: Findings of partitions whose directories are missing, by partition.
        unknown: Findings of partitions that the catalog does not have, by partition.
        left: Why some of these stay as they are.
    """

    deleted: tuple[Finding, ...]
    missing: dict[str, Finding]
    unknown: dict[str, Finding]
    left: dict[str, str] = field(default_factory=dict)

    @property
    def dropped(self) -> list[str]:
        """The partitions to drop from the catalog."""
        return [name for name in self.missing if name not in self.left]

    @property
    def added(self) -> list[str]:
        """The partitions to add to the catalog."""
        return [name for name in self.unknown if name not in self.left]


class TableRepairs(TableChecks):
    """Checks and repairs the tables of one session."""

    def repair(self, table: Table, *, dry_run: bool) -> DataFrame:
        """See ``Session.repair``."""
        self._transactions.need_plain("repair")
        with file_errors():
            if not dry_run:
                keep_house(self._metastore, self._txns.settings)  # else the dead seem alive
            plan = self._plan(table)
            if dry_run:
                found = [*_told(plan, "would be"), *_deleted(plan.deleted, "would be")]
            else:
                # The cleaner stops at a partition without a directory, so partitions come first.
                found = [*_told(self._mended(table, plan), "was"), *self._delete(table, plan)]
        return self.findings_frame(in_order(found))

    def _delete(self, table: Table, plan: _Plan) -> list[Finding]:
        if not plan.deleted:
            return []
        end_leases = self._txns.end_old_leases
        Cleaner(self._metastore, self._txns, end_leases, self._spark).of_table(table.name)
        fs = filesystem_for(table.location)
        return _deleted([one for one in plan.deleted if not fs.exists(one.path)], "was")

    # ── partitions ───────────────────────────────────────────────────────────────────────────

    def _plan(self, table: Table) -> _Plan:
        checking, found = self.check_directories(table)
        by_kind: dict[str, dict[str, Finding]] = {}
        for one in found:
            name = one.path.removeprefix(f"{table.location}/")
            by_kind.setdefault(one.condition, {})[name] = one
        aborted = by_kind.get("ABORTED_DIRECTORY", {})
        behind = [name for name in aborted if self._is_behind_a_link(checking, table, name)]
        # Over a Hive Metastore, Hive's cleaner deletes directories of aborted transactions.
        left = aborted if not self._metastore.abilities.can_clean else behind
        plan = _Plan(
            (
                *by_kind.get("LITTER", {}).values(),
                *(one for name, one in aborted.items() if name not in left),
            ),
            by_kind.get("PARTITION_WITHOUT_DIRECTORY", {}),
            by_kind.get("PARTITION_NOT_IN_CATALOG", {}),
        )
        known = self._transactions.partition_names(table) if table.partition_columns else ()
        if len(plan.missing) == len(known) > 1:
            gone = "all directories are missing, as if nothing were mounted"
            plan.left.update(dict.fromkeys(plan.missing, gone))
        if not plan.unknown:
            return plan
        values = partition_values(self._spark, table, [*known, *plan.unknown])
        taken = {tuple(values[name]) for name in known}
        for name in plan.unknown:
            place = f"{table.location}/{name}/"
            errors = [one for one in found if one.path.startswith(place) and one.severity == ERROR]
            wrong = (f"{one.condition}, {one.path}" for one in errors)
            why = next(wrong, None) or self._why_not(checking, table, name)
            if why is None and tuple(values[name]) in taken:
                why = "the catalog has this partition, in another directory"
            if why is None:
                taken.add(tuple(values[name]))
            else:
                plan.left[name] = why
        return plan

    @staticmethod
    def _is_behind_a_link(checking: Checking, table: Table, name: str) -> bool:
        return checking.fs.link_on_the_way(table.location, name) is not None

    def _why_not(self, checking: Checking, table: Table, name: str) -> str | None:
        """Why a directory cannot be a partition; None if it can."""
        if self._is_behind_a_link(checking, table, name):
            return "it is behind a link"
        listed = checking.listed(name)
        if not isinstance(listed, Listing):
            return listed.message
        (values,) = partition_values(self._spark, table, [name]).values()
        pairs = zip(values, _values(name), strict=True)
        if any(value is None and text is not None for value, text in pairs):
            return "its name has a text that is no value of the column"
        try:
            has_rows = any(_row_count(table, *one) for one in _files(listed))
        except (AcidSqlError, OSError) as error:
            return str(error)
        return None if has_rows else "it has no rows: perhaps a DROP PARTITION left it"

    def _mended(self, table: Table, plan: _Plan) -> _Plan:
        """Change the catalog, under the table's lock. Returns what was done."""
        if not plan.dropped and not plan.added:
            return plan
        name = table.name
        text = f"repair of {name}"
        with self._locked(text, exclusive(name)) as txn:
            table = self._again(name)
            plan = self._plan(table)
            dropped, added = plan.dropped, plan.added
            if not dropped and not added:
                return plan
            txn.write_id(name)
            # To forget and add a partition in one step tells older snapshots and versions that
            # they do not know it. A Hive Metastore, without versions, drops after the commit.
            forgotten = [*dropped, *(added if self._metastore.abilities.keeps_versions else [])]
            txn.commit(
                drop_partitions={name: [_values(one) for one in forgotten]},
                add_partitions={name: [_partition(table, one) for one in added]},
                changed=[
                    Change(name, REPAIR_OPERATION, text, partitions=len(dropped) + len(added))
                ],
            )
        return plan


def _told(plan: _Plan, verb: str) -> list[Finding]:
    """The findings about partitions, each with what was done, or would be."""
    told = dict.fromkeys(plan.dropped, f"The partition {verb} dropped from the catalog.")
    told |= dict.fromkeys(plan.added, f"The partition {verb} added to the catalog.")
    for name, why in plan.left.items():
        told[name] = f"The partition {verb} left as it is: {why}."
    both = {**plan.missing, **plan.unknown}
    return [replace(one, done=told[name]) for name, one in both.items()]


def _deleted(found: Iterable[Finding], verb: str) -> list[Finding]:
    return [replace(one, done=f"It {verb} deleted.") for one in found]


def _files(listing: Listing) -> list[tuple[str, int | None]]:
    """The paths and committed lengths of a listing's files of rows."""
    plain = [(path, None) for group in listing.originals for path in group.paths]
    return [*((file.path, file.length) for file in listing.data), *plain]


def _row_count(table: Table, path: str, length: int | None) -> int:
    return rows_of_parquet(path) if table.file_format == PARQUET else row_count(path, length)


def _values(name: str) -> tuple[str | None, ...]:
    return tuple(value for _, value in parse_partition_name(name))


def _partition(table: Table, name: str) -> Partition:
    return Partition(_values(name), f"{table.location}/{name}")
