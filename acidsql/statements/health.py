"""The health of tables: what their files are, what holds old ones, what the compactor will do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid.layout import Kind
from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import Range, ValidWriteIdList
from acidsql.compaction.outlook import Outlook
from acidsql.errors import AcidSqlError
from acidsql.metastore.catalog import all_tables
from acidsql.metastore.compaction_queue import CompactionType
from acidsql.metastore.foreign import acid_table
from acidsql.statements.family import Context, Family
from acidsql.statements.result import rows_frame
from acidsql.statements.table_rows import TableRows, explained_by
from acidsql.storage.files.file_info import is_ours, rows_of
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.parallel import in_threads
from acidsql.storage.reading.inventory import UNKNOWN, FoundFile

_DDL = (
    "table string, partition string, rows bigint, deleted_rows bigint, live_bytes bigint, "
    "base_bytes bigint, bases int, delta_bytes bigint, deltas int, delete_delta_bytes bigint, "
    "delete_deltas int, delta_share double, deleted_share double, files int, small_files int, "
    "obsolete_bytes bigint, held_by string, held_since timestamp, oldest_txn bigint, "
    "oldest_txn_since timestamp, next string, why string, problem string"
)
_COLUMNS = [column.split()[0] for column in _DDL.split(", ")]
_SMALL = 16_000_000  # bytes; Hive's hive.merge.smallfiles.avgsize
_ORIGINAL = "original"
_KINDS = (*(kind.value for kind in Kind), _ORIGINAL)
_OBSOLETE = frozenset({"history", "obsolete", "aborted"})
_NEVER = datetime.max.replace(tzinfo=UTC)
_SUMMED = (
    "rows", "deleted_rows", "base_bytes", "bases", "delta_bytes", "deltas", "delete_delta_bytes",
    "delete_deltas", "files", "small_files", "obsolete_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a partition, of an unpartitioned table, or of all partitions of a table.

    ``HealthMethods.health`` describes the attributes. None: not known, or there is nothing.
    """

    table: str
    partition: str | None = None
    rows: int | None = None
    deleted_rows: int | None = None
    base_bytes: int | None = None
    bases: int | None = None
    delta_bytes: int | None = None
    deltas: int | None = None
    delete_delta_bytes: int | None = None
    delete_deltas: int | None = None
    files: int | None = None
    small_files: int | None = None
    obsolete_bytes: int | None = None
    held_by: str | None = None
    held_since: datetime | None = None
    oldest_txn: int | None = None
    oldest_txn_since: datetime | None = None
    next: str | None = None
    why: str | None = None
    problem: str | None = None

    @property
    def live_bytes(self) -> int | None:
        """The bytes that a reader of now reads."""
        return None if self.base_bytes is None else self.base_bytes + self._in_deltas

    @property
    def delta_share(self) -> float | None:
        """The part of these bytes that is in deltas and delete deltas."""
        return self._in_deltas / self.live_bytes if self.live_bytes else None

    @property
    def _in_deltas(self) -> int:
        return (self.delta_bytes or 0) + (self.delete_delta_bytes or 0)

    @property
    def deleted_share(self) -> float | None:
        """The part of the inserted rows that is deleted."""
        if self.rows is None or self.deleted_rows is None or not self.rows + self.deleted_rows:
            return None
        return self.deleted_rows / (self.rows + self.deleted_rows)


class TableHealth(Family):
    """Looks at the tables of one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._files = TableRows(context)

    def of_table(self, table: Table, partition: str | None = None) -> list[Health]:
        """Each partition of a table, or one of them; the table, if it is unpartitioned.

        Raises:
            CatalogError: There is no such partition.
        """
        self._transactions.need_thread()
        return self._looked(table, self._outlook(), self._target_partitions(table, partition))

    def of_all(self) -> list[Health]:
        """One row for each table. A table that cannot be looked at has a problem."""
        self._transactions.need_thread()
        outlook = self._outlook()
        return [self._summed(name, outlook) for name in all_tables(self._metastore)]

    def frame(self, found: Sequence[Health]) -> DataFrame:
        """The rows of ``HealthMethods.health``."""
        rows = [[getattr(one, name) for name in _COLUMNS] for one in found]
        return rows_frame(self._spark, _DDL, rows)

    def _outlook(self) -> Outlook:
        return Outlook(self._metastore, self._txns.settings)

    def _looked(
        self, table: Table, outlook: Outlook, partitions: Sequence[str | None]
    ) -> list[Health]:
        seen = self._transactions.read_snapshot([table.name])
        names = sorted(one for one in partitions if one is not None)
        with explained_by(lambda: self._transactions.need_unchanged(table, names, seen)):
            found = self._files.inventory(table, seen)
            where = names if table.partition_columns else [None]
            return health_of(table, where, found, seen.write_ids[table.name], outlook)

    def _summed(self, name: TableName, outlook: Outlook) -> Health:
        try:
            table = acid_table(self._transactions.find(name))
            if table is None:
                return Health(str(name), problem="the table was dropped meanwhile")
            return sum_of(name, self._looked(table, outlook, self._target_partitions(table, None)))
        except (AcidSqlError, OSError) as error:
            return Health(str(name), problem=str(error))


def health_of(
    table: Table,
    partitions: Sequence[str | None],
    found: Sequence[FoundFile],
    write_ids: ValidWriteIdList,
    outlook: Outlook,
) -> list[Health]:
    """The health of partitions.

    Args:
        table: The table.
        partitions: Names of partitions; [None] for an unpartitioned table.
        found: All files of the table.
        write_ids: The valid write ids of the snapshot.
        outlook: What the compactor and the cleaner will do.
    """
    kinds = [kind for kind in _KINDS if not (table.is_insert_only and kind == _ORIGINAL)]
    files: dict[str, list[FoundFile]] = defaultdict(list)
    for one in found:
        if one.kind in kinds:
            files[one.partition].append(one)

    fs = filesystem_for(table.location)

    def one_of(partition: str | None) -> Health:
        here, place = files[partition or ""], f"{table.location}/{partition or ''}".rstrip("/")
        known = _with_files(Health(str(table.name), partition or ""), here, write_ids)
        if not here and not fs.exists(place):
            problem = f"'{place}' is missing: acid.check says what to do"
            known = replace(known, rows=None, deleted_rows=None, problem=problem)
        return _with_outlook(known, table, partition, here, outlook)

    return in_threads(one_of, partitions)


def _with_files(known: Health, here: Sequence[FoundFile], write_ids: ValidWriteIdList) -> Health:
    live = [one for one in here if one.state == "visible"]
    with_rows = [one for one in live if one.file is not None]
    sizes = dict.fromkeys(_KINDS, 0)
    directories: dict[str, set[str | None]] = defaultdict(set)
    for one in live:
        sizes[one.kind] += one.bytes or 0
        directories[one.kind].add(one.acid.name if one.acid else None)
    rows, deleted, problem = _counted(with_rows, write_ids)
    if (lost := next((one for one in here if one.state == UNKNOWN), None)) is not None:
        rows = deleted = None
        problem = f"readers do not read {lost.path}: acid.check says why"
    return replace(
        known,
        rows=rows,
        deleted_rows=deleted,
        base_bytes=sizes["base"] + sizes[_ORIGINAL],
        bases=len(directories["base"]),
        delta_bytes=sizes["delta"],
        deltas=len(directories["delta"]),
        delete_delta_bytes=sizes["delete_delta"],
        delete_deltas=len(directories["delete_delta"]),
        files=len(with_rows),
        small_files=sum((one.bytes or 0) < _SMALL for one in with_rows),
        obsolete_bytes=sum(one.bytes or 0 for one in here if one.state in _OBSOLETE),
        problem=problem,
    )


def _counted(
    files: Sequence[FoundFile], write_ids: ValidWriteIdList
) -> tuple[int | None, int | None, str | None]:
    """The rows and the deleted rows by the files' footers; None with the reason."""
    footers = in_threads(
        lambda one: rows_of(one.file, one.path, one.length, one.kind, one.problem), files
    )
    inserted = deleted = 0
    for one, (rows, problem) in zip(files, footers, strict=True):
        if rows is None:
            return None, None, f"{one.path}: {problem or 'its footer does not tell its rows'}"
        if _is_partly_visible(one, write_ids):
            text = f"{one.path} may have rows of write ids that are open or were aborted"
            return None, None, f"{text}: COUNT(*) tells"
        if one.kind == Kind.DELETE_DELTA.value:
            deleted += rows
        else:
            inserted += rows
    if deleted > inserted:
        return None, None, "more deletes than rows: acid.check(…, level='rows') says which"
    return inserted - deleted, deleted, None


def _is_partly_visible(one: FoundFile, write_ids: ValidWriteIdList) -> bool:
    """Whether a delta of several write ids may have events that readers skip. A base has none, and
    a delta of Hive 4's compactor (``_v``) has none, either. Nor has one of ours: the compactor
    alone makes it, from ended write ids, without aborted ones."""
    acid = one.acid
    if acid is None or acid.kind is Kind.BASE or acid.visibility_txn_id:
        return False
    if write_ids.is_range_valid(acid.min_write_id, acid.max_write_id) is Range.ALL:
        return False
    return not is_ours(one.path, one.length)


def _with_outlook(
    known: Health, table: Table, partition: str | None, here: Sequence[FoundFile], outlook: Outlook
) -> Health:
    if (txn := outlook.oldest_txn(table.name, partition)) is not None:
        known = replace(known, oldest_txn=txn.txn_id, oldest_txn_since=_time(txn.started_ms))
    states = frozenset(one.state for one in here if one.bytes) & _OBSOLETE
    if states and (holder := outlook.holder(table, partition, states)) is not None:
        known = replace(known, held_by=holder.description, held_since=_time(holder.since_ms))
    decision = outlook.next(table, partition)
    kind = None if decision.type is None else decision.type.name.lower()
    return replace(known, next=kind, why=decision.why)


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def sum_of(name: TableName, parts: Sequence[Health]) -> Health:
    """A table as one row: sums, the oldest holder and transaction, the greatest compaction."""
    totals: dict[str, Any] = {field: _total(parts, field) for field in _SUMMED}
    nothing = Health(str(name))
    held = [one for one in parts if one.held_by is not None]
    holder = min(held, key=lambda one: one.held_since or _NEVER, default=nothing)
    touched = [one for one in parts if one.oldest_txn is not None]
    txn = min(touched, key=lambda one: one.oldest_txn or 0, default=nothing)
    due = [one for one in parts if one.next is not None]
    due.sort(
        key=lambda one: (one.next != CompactionType.MAJOR.name.lower(), -(one.live_bytes or 0))
    )
    return replace(
        nothing,
        **totals,
        held_by=holder.held_by,
        held_since=holder.held_since,
        oldest_txn=txn.oldest_txn,
        oldest_txn_since=txn.oldest_txn_since,
        next=due[0].next if due else None,
        why=_why(due, parts),
        problem=next((one.problem for one in parts if one.problem), None),
    )


def _why(due: Sequence[Health], parts: Sequence[Health]) -> str | None:
    if not due:
        reasons = dict.fromkeys(one.why for one in parts)
        return next(iter(reasons)) if len(reasons) == 1 else "no partition needs a compaction"
    first, more = due[0], f" (and {len(due) - 1} more)" if due[1:] else ""
    return (f"{first.partition}: " if first.partition else "") + f"{first.why}{more}"


def _total(parts: Sequence[Health], name: str) -> int | None:
    values = [getattr(one, name) for one in parts]
    return None if None in values else sum(values)
