"""The health of tables: their files, the holders of obsolete files, and the next compaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid.layout import DirectoryKind
from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import Range, ValidWriteIdList
from acidsql.compaction.outlook import Outlook
from acidsql.errors import AcidSqlError
from acidsql.metastore.catalog import all_tables
from acidsql.metastore.compaction_queue import CompactionType
from acidsql.metastore.foreign import acid_table
from acidsql.statements.context.family import Context, Family
from acidsql.statements.context.result import rows_frame
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import check_after_block
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.pruning.inventory import UNKNOWN, FoundFile
from acidsql.storage.tables.file_info import is_our_file, row_count_and_problem

_DDL = (
    "table string, partition string, rows bigint, deleted_rows bigint, live_bytes bigint, "
    "base_bytes bigint, bases int, delta_bytes bigint, deltas int, delete_delta_bytes bigint, "
    "delete_deltas int, delta_share double, deleted_share double, files int, small_files int, "
    "obsolete_bytes bigint, held_by string, held_since timestamp, oldest_txn bigint, "
    "oldest_txn_since timestamp, next string, why string, problem string"
)
_COLUMNS = [column.split()[0] for column in _DDL.split(", ")]
_SMALL_FILE = 16_000_000  # bytes; Hive's hive.merge.smallfiles.avgsize
_ORIGINAL = "original"
_KINDS = (*(kind.value for kind in DirectoryKind), _ORIGINAL)
_OBSOLETE = frozenset({"history", "obsolete", "aborted"})
_LATEST_TIME = datetime.max.replace(tzinfo=UTC)
_SUMMED_FIELDS = (
    "rows", "deleted_rows", "base_bytes", "bases", "delta_bytes", "deltas", "delete_delta_bytes",
    "delete_deltas", "files", "small_files", "obsolete_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a partition, of an unpartitioned table, or of all partitions of a table.

    ``HealthMethods.health`` describes the attributes. None: unknown, or there is no such thing.
    ``held_by`` keeps obsolete files from being deleted. ``next`` is the type of the next
    compaction, and ``why`` its reason, or the reason why none is due.
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
        """The bytes that readers read now."""
        return None if self.base_bytes is None else self.base_bytes + self._delta_and_delete_bytes

    @property
    def delta_share(self) -> float | None:
        """The part of ``live_bytes`` that is in deltas and delete deltas."""
        return self._delta_and_delete_bytes / self.live_bytes if self.live_bytes else None

    @property
    def _delta_and_delete_bytes(self) -> int:
        return (self.delta_bytes or 0) + (self.delete_delta_bytes or 0)

    @property
    def deleted_share(self) -> float | None:
        """The part of the inserted rows that is deleted."""
        if self.rows is None or self.deleted_rows is None or not self.rows + self.deleted_rows:
            return None
        return self.deleted_rows / (self.rows + self.deleted_rows)


class TableHealth(Family):
    """Finds out the health of the tables of one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._table_rows = TableRows(context)

    def health_of_table(self, table: Table, partition: str | None = None) -> list[Health]:
        """Return the health of each partition of a table, sorted by name, or only of
        ``partition``; one item for an unpartitioned table. Footers are read, no rows.

        Raises:
            CatalogError: There is no such partition.
            TxnError: Another thread has a transaction open in this session.
        """
        self._transactions.require_same_thread()
        return self._inspect_partitions(
            table, self._outlook(), self._target_partitions(table, partition)
        )

    def health_of_all_tables(self) -> list[Health]:
        """Inspect all tables, and return the health of each as one item. If a table cannot be
        inspected, ``problem`` says why. Raise TxnError if another thread has a transaction open in
        this session."""
        self._transactions.require_same_thread()
        outlook = self._outlook()
        return [self._health_of_whole_table(name, outlook) for name in all_tables(self._metastore)]

    def health_frame(self, health_rows: Sequence[Health]) -> DataFrame:
        """Return a DataFrame with a row for each item, in the columns of
        ``HealthMethods.health``."""
        rows = [[getattr(health, column) for column in _COLUMNS] for health in health_rows]
        return rows_frame(self._spark, _DDL, rows)

    def _outlook(self) -> Outlook:
        """Read the metastore's queue, transactions and locks now; the result tells what the
        compactor and the cleaner will do."""
        return Outlook(self._metastore, self._txns.settings)

    def _inspect_partitions(
        self, table: Table, outlook: Outlook, partitions: Sequence[str | None]
    ) -> list[Health]:
        """Return the health of these partitions in one snapshot, sorted by name; [None] means an
        unpartitioned table. Raise an error if the table is changed meanwhile."""
        snapshot = self._transactions.read_snapshot([table.name])
        partition_names = sorted(partition for partition in partitions if partition is not None)
        with check_after_block(
            lambda: self._catalog.require_unchanged(table, partition_names, snapshot)
        ):
            files = self._table_rows.inventory(table, snapshot)
            targets = partition_names if table.partition_columns else [None]
            return health_of_partitions(
                table, targets, files, snapshot.write_ids[table.name], outlook
            )

    def _health_of_whole_table(self, name: TableName, outlook: Outlook) -> Health:
        """Return the health of a table as one item. An error is not raised: it is the text of
        ``problem``, also if the table was dropped."""
        try:
            table = acid_table(self._catalog.find(name))
            if table is None:
                return Health(str(name), problem="the table was dropped meanwhile")
            return combined_health(
                name, self._inspect_partitions(table, outlook, self._target_partitions(table, None))
            )
        except (AcidSqlError, OSError) as error:
            return Health(str(name), problem=str(error))


def health_of_partitions(
    table: Table,
    partitions: Sequence[str | None],
    files: Sequence[FoundFile],
    write_ids: ValidWriteIdList,
    outlook: Outlook,
) -> list[Health]:
    """Return the health of each partition, in the order of ``partitions``; ``problem`` says if its
    directory is missing; rows and deleted rows are then None. Files' footers are read, in threads.
    Originals of an insert-only table are left out.

    Args:
        table: The table.
        partitions: Names of partitions; [None] for an unpartitioned table.
        files: All files of the table.
        write_ids: The valid write ids of the snapshot.
        outlook: The plans of the compactor and the cleaner.
    """
    kinds = [kind for kind in _KINDS if not (table.is_insert_only and kind == _ORIGINAL)]
    files_by_partition: dict[str, list[FoundFile]] = defaultdict(list)
    for file in files:
        if file.kind in kinds:
            files_by_partition[file.partition].append(file)

    fs = filesystem_for(table.location)

    def health_of_partition(partition: str | None) -> Health:
        """Return the health of one partition; None: of an unpartitioned table."""
        partition_files = files_by_partition[partition or ""]
        directory = f"{table.location}/{partition or ''}".rstrip("/")
        health = _add_file_facts(
            Health(str(table.name), partition or ""), partition_files, write_ids
        )
        if not partition_files and not fs.exists(directory):
            problem = f"'{directory}' is missing: acid.check says what to do"
            health = replace(health, rows=None, deleted_rows=None, problem=problem)
        return _add_outlook(health, table, partition, partition_files, outlook)

    return run_in_threads(health_of_partition, partitions)


def _add_file_facts(
    health: Health, files: Sequence[FoundFile], write_ids: ValidWriteIdList
) -> Health:
    """Return a copy of ``health`` with what the files tell: rows, bytes, and numbers of directories
    and files that readers see, and the bytes of obsolete ones. Originals count to ``base_bytes``,
    but not to ``bases``. Footers are read. If they do not tell the rows, or readers pass a file
    over, the rows are None, and ``problem`` says why."""
    visible_files = [file for file in files if file.state == "visible"]
    data_files = [file for file in visible_files if file.file is not None]
    sizes = dict.fromkeys(_KINDS, 0)
    directories: dict[str, set[str | None]] = defaultdict(set)
    for file in visible_files:
        sizes[file.kind] += file.bytes or 0
        directories[file.kind].add(file.acid.name if file.acid else None)
    rows, deleted, problem = _count_rows(data_files, write_ids)
    if (unknown_file := next((file for file in files if file.state == UNKNOWN), None)) is not None:
        rows = deleted = None
        problem = f"readers do not read {unknown_file.path}: acid.check says why"
    return replace(
        health,
        rows=rows,
        deleted_rows=deleted,
        base_bytes=sizes["base"] + sizes[_ORIGINAL],
        bases=len(directories["base"]),
        delta_bytes=sizes["delta"],
        deltas=len(directories["delta"]),
        delete_delta_bytes=sizes["delete_delta"],
        delete_deltas=len(directories["delete_delta"]),
        files=len(data_files),
        small_files=sum((file.bytes or 0) < _SMALL_FILE for file in data_files),
        obsolete_bytes=sum(file.bytes or 0 for file in files if file.state in _OBSOLETE),
        problem=problem,
    )


def _count_rows(
    files: Sequence[FoundFile], write_ids: ValidWriteIdList
) -> tuple[int | None, int | None, str | None]:
    """Count, by the files' footers, the rows that are live and those that are deleted.

    Returns:
        Both numbers, and None; or (None, None, the reason why they are unknown): a footer does not
        tell, a file may have rows that readers skip, or there are more deletes than rows.
    """
    footers = run_in_threads(
        lambda file: row_count_and_problem(
            file.file, file.path, file.length, file.kind, file.problem
        ),
        files,
    )
    inserted = deleted = 0
    for file, (rows, problem) in zip(files, footers, strict=True):
        if rows is None:
            return None, None, f"{file.path}: {problem or 'its footer does not tell its rows'}"
        if _is_partly_visible(file, write_ids):
            text = f"{file.path} may have rows of write ids that are open or were aborted"
            return None, None, f"{text}: COUNT(*) tells"
        if file.kind == DirectoryKind.DELETE_DELTA.value:
            deleted += rows
        else:
            inserted += rows
    if deleted > inserted:
        return None, None, "more deletes than rows: acid.check(…, level='rows') says which"
    return inserted - deleted, deleted, None


def _is_partly_visible(file: FoundFile, write_ids: ValidWriteIdList) -> bool:
    """Whether readers may skip some events of a file, because it is in a delta of several write
    ids. This may read its footer.

    A base has no such events, nor has a delta of Hive 4's compactor (``_v``). A delta of several
    write ids that acidsql wrote has none, either: the compactor made it, from ended write ids
    without the aborted ones.
    """
    directory = file.acid
    if directory is None or directory.kind is DirectoryKind.BASE or directory.visibility_txn_id:
        return False
    if write_ids.range_validity(directory.min_write_id, directory.max_write_id) is Range.ALL:
        return False
    return not is_our_file(file.path, file.length)


def _add_outlook(
    health: Health,
    table: Table,
    partition: str | None,
    files: Sequence[FoundFile],
    outlook: Outlook,
) -> Health:
    """Return a copy of ``health`` with the oldest transaction that is open on the partition, with
    what keeps its obsolete files from being deleted and since when (None without such files), and
    with the next compaction (None: none is due; else its type in lower case) and the reason."""
    if (txn := outlook.oldest_txn(table.name, partition)) is not None:
        health = replace(health, oldest_txn=txn.txn_id, oldest_txn_since=_timestamp(txn.started_ms))
    states = frozenset(file.state for file in files if file.bytes) & _OBSOLETE
    if states and (holder := outlook.keeper_of_obsolete(table, partition, states)) is not None:
        health = replace(health, held_by=holder.description, held_since=_timestamp(holder.since_ms))
    decision = outlook.next_compaction(table, partition)
    next_type = None if decision.type is None else decision.type.name.lower()
    return replace(health, next=next_type, why=decision.why)


def _timestamp(milliseconds: int | None) -> datetime | None:
    """Return a time since the epoch as a datetime in UTC; None for None."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def combined_health(name: TableName, parts: Sequence[Health]) -> Health:
    """Return the health of a table as one item: sums of its partitions (None if one is unknown),
    the holder that has kept obsolete files longest, the oldest transaction, the first problem, and
    the compaction of the largest partition that needs one, major before minor."""
    totals: dict[str, Any] = {field: _field_total(parts, field) for field in _SUMMED_FIELDS}
    no_health = Health(str(name))
    held_parts = [part for part in parts if part.held_by is not None]
    holder = min(held_parts, key=lambda part: part.held_since or _LATEST_TIME, default=no_health)
    parts_with_txn = [part for part in parts if part.oldest_txn is not None]
    txn = min(parts_with_txn, key=lambda part: part.oldest_txn or 0, default=no_health)
    due_parts = [part for part in parts if part.next is not None]
    due_parts.sort(
        key=lambda part: (part.next != CompactionType.MAJOR.name.lower(), -(part.live_bytes or 0))
    )
    return replace(
        no_health,
        **totals,
        held_by=holder.held_by,
        held_since=holder.held_since,
        oldest_txn=txn.oldest_txn,
        oldest_txn_since=txn.oldest_txn_since,
        next=due_parts[0].next if due_parts else None,
        why=_combined_reason(due_parts, parts),
        problem=next((part.problem for part in parts if part.problem), None),
    )


def _combined_reason(due_parts: Sequence[Health], parts: Sequence[Health]) -> str | None:
    """Return why the next compaction is due: the first of ``due_parts`` with its
    reason, and how many more there are, such as ``p=1: 12 deltas (and 3 more)``. Without any, the
    reason that all ``parts`` have in common (None if they have none), or that no partition needs
    one. An unpartitioned table's reason has no name before it."""
    if not due_parts:
        reasons = dict.fromkeys(part.why for part in parts)
        return next(iter(reasons)) if len(reasons) == 1 else "no partition needs a compaction"
    largest, omission = due_parts[0], f" (and {len(due_parts) - 1} more)" if due_parts[1:] else ""
    return (f"{largest.partition}: " if largest.partition else "") + f"{largest.why}{omission}"


def _field_total(parts: Sequence[Health], field_name: str) -> int | None:
    """Return the sum of a field over all parts; None if it is None in one of them."""
    values = [getattr(part, field_name) for part in parts]
    return None if None in values else sum(values)
