"""The directories that one statement, and the statements of a transaction, have published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.metastore.interface import RowChange
from acidsql.metastore.versions import Change
from acidsql.storage.writing.publish import PublishedWrite
from acidsql.storage.writing.save import TableWrite
from acidsql.txn import Txn


@dataclass(slots=True)
class Work:
    """The directories that one statement has published so far.

    Attributes:
        txn: The transaction of the statement.
        mark: ``Txn.mark`` before the statement, for ``Txn.undo``.
        operation: INSERT, MERGE …: see ``Change``.
        text: The text of the statement.
        published: Pairs of a table and the result of one write into the table.
        when_committed: Functions to call after the transaction has committed.
        altered: The table that gets other columns by the COMMIT, with these columns; or None.
        reverted: The transaction that the statement reverts; None: the statement reverts none.
        is_shown: A DataFrame may read the directories that the statement has published.
        is_in_doubt: Publishing failed on an object store, which may still carry out a request.
    """

    txn: Txn
    mark: int
    operation: str = ""
    text: str = ""
    published: list[tuple[Table, PublishedWrite]] = field(default_factory=list)
    when_committed: list[Callable[[], None]] = field(default_factory=list)
    altered: Table | None = None
    reverted: int | None = None
    is_shown: bool = False
    is_in_doubt: bool = False
    _moved: list[tuple[Table, Sequence[str]]] = field(default_factory=list)

    def publish(self, table: Table, writing: TableWrite) -> PublishedWrite:
        """Move the files of one write into their place, and note and return the result. Before
        that, tell the store which partitions are written. The directories are noted even if this
        fails, so that they can be deleted."""
        self.txn.record_partitions(table.name, writing.partitions)
        self._moved.append((table, writing.directories))
        try:
            published = writing.publish()
        except BaseException:
            self.is_in_doubt = writing.is_in_doubt
            raise
        self.add(table, published)
        return published

    def add(self, table: Table, published: PublishedWrite) -> None:
        """Note the result of one write into a table."""
        self.published.append((table, published))

    @property
    def directories(self) -> list[tuple[Table, str]]:
        """Return the table and path of each directory that the statement has renamed, or was about
        to rename, into place; each path once."""
        published_paths = [(table, published.directories) for table, published in self.published]
        table_by_path = {
            path: table for table, paths in (*self._moved, *published_paths) for path in paths
        }
        return [(table, path) for path, table in table_by_path.items()]


def written_places(works: Sequence[Work]) -> list[tuple[TableName, str | None]]:
    """Return the table and partition of each write; partition None: unpartitioned. A place may come
    twice."""
    return [
        (table.name, partition or None)
        for work in works
        for table, published in work.published
        for partition in published.partitions
    ]


def written_partitions(works: Sequence[Work]) -> dict[TableName, list[Partition]]:
    """Return the partitions that were written to, each once, by table. The catalog may have them
    already. Unpartitioned tables are left out."""
    partitions_by_table: dict[TableName, dict[str, Partition]] = {}
    for work in works:
        for table, published in work.published:
            if table.partition_columns:
                partitions_by_table.setdefault(table.name, {}).update(
                    (name, _partition_of_name(table, name)) for name in published.partitions
                )
    return {name: list(by_name.values()) for name, by_name in partitions_by_table.items()}


def without_dropped(
    written: Mapping[TableName, list[Partition]],
    dropped: Mapping[TableName, Sequence[tuple[str | None, ...]]],
) -> dict[TableName, list[Partition]]:
    """Return ``written``, the partitions that a transaction has written to, by table, without those
    that its commit drops: ``dropped`` has their values by table. A table stays, even with an empty
    list."""
    return {
        name: [
            partition
            for partition in written_partitions
            if partition.values not in dropped.get(name, ())
        ]
        for name, written_partitions in written.items()
    }


def row_changes(works: Sequence[Work]) -> dict[TableName, dict[str, RowChange]]:
    """Return how the statements change the number of rows, by table and then by partition ("" for
    an unpartitioned table). Each ``RowChange`` also has the directories that were published
    there."""
    changes_by_table: dict[TableName, dict[str, RowChange]] = {}
    for work in works:
        for table, published in work.published:
            table_changes = changes_by_table.setdefault(table.name, {})
            for name, rows in published.rows.items():
                earlier = table_changes.get(name, RowChange(0))
                partition_directory = f"{table.location}/{name}".rstrip("/")
                directories = [
                    directory
                    for directory in published.directories
                    if directory.rpartition("/")[0] == partition_directory
                ]
                table_changes[name] = earlier.followed_by(
                    RowChange(rows, published.overwrote, tuple(directories))
                )
    return changes_by_table


def new_columns(works: Sequence[Work]) -> dict[TableName, Sequence[Column]]:
    """Return the data columns that tables will have after the commit, by table: only tables whose
    columns these statements change."""
    tables = (work.altered for work in works)
    return {table.name: table.columns for table in tables if table is not None}


def statement_changes(works: Sequence[Work]) -> list[Change]:
    """Return one change for each statement and table that it has changed, for the history of the
    tables."""
    return [
        _change(work, name, writes)
        for work in works
        for name, writes in _writes_by_table(work).items()
    ]


def _writes_by_table(work: Work) -> dict[TableName, list[PublishedWrite]]:
    """Return a statement's writes by table. Writes without a write id, which changed nothing, are
    left out."""
    writes: dict[TableName, list[PublishedWrite]] = {}
    for table, published in work.published:
        if published.write_id is not None:
            writes.setdefault(table.name, []).append(published)
    return writes


def _change(work: Work, table: TableName, writes: Sequence[PublishedWrite]) -> Change:
    """Return the change of a statement to a table: the sums of its writes there, and the number of
    different partitions. The operation of an INSERT that has overwritten is INSERT OVERWRITE."""
    overwrote = any(published.overwrote for published in writes)
    return Change(
        table,
        "INSERT OVERWRITE" if overwrote and work.operation == "INSERT" else work.operation,
        work.text,
        sum(published.inserted for published in writes),
        sum(published.updated for published in writes),
        sum(published.deleted for published in writes),
        sum(published.files for published in writes),
        sum(published.bytes for published in writes),
        len({partition for published in writes for partition in published.partitions}),
        work.reverted,
    )


def _partition_of_name(table: Table, name: str) -> Partition:
    values = tuple(value for _, value in parse_partition_name(name))
    return Partition(values, f"{table.location}/{name}")
