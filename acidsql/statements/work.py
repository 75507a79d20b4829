"""What one statement has published, and what a transaction's statements have published together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.metastore.interface import RowChange
from acidsql.metastore.versions import Change
from acidsql.storage.writing.publish import Published
from acidsql.storage.writing.save import Writing
from acidsql.txn import Txn


@dataclass(slots=True)
class Work:
    """The directories that one statement has published so far.

    Attributes:
        txn: The transaction of the statement.
        mark: ``Txn.mark`` before the statement, for ``Txn.undo``.
        operation: INSERT, MERGE …: see ``Change``.
        text: The statement.
        published: Each table, and what the statement published there.
        when_committed: Functions to call after the transaction has committed.
        altered: The table that gets other columns by the COMMIT, with these columns; or None.
        reverted: The transaction that the statement reverts; None: it reverts none.
        is_shown: A DataFrame may read what the statement has published.
        is_in_doubt: Publishing failed on an object store, which may still carry out a request.
    """

    txn: Txn
    mark: int
    operation: str = ""
    text: str = ""
    published: list[tuple[Table, Published]] = field(default_factory=list)
    when_committed: list[Callable[[], None]] = field(default_factory=list)
    altered: Table | None = None
    reverted: int | None = None
    is_shown: bool = False
    is_in_doubt: bool = False
    _moved: list[tuple[Table, Sequence[str]]] = field(default_factory=list)

    def publish(self, table: Table, writing: Writing) -> Published:
        """Publish the files of one write. Each directory is noted, even if publishing fails."""
        self.txn.record_partitions(table.name, writing.partitions)
        self._moved.append((table, writing.directories))
        try:
            published = writing.publish()
        except BaseException:
            self.is_in_doubt = writing.is_in_doubt
            raise
        self.add(table, published)
        return published

    def add(self, table: Table, published: Published) -> None:
        """Note what the statement published in a table."""
        self.published.append((table, published))

    @property
    def directories(self) -> list[tuple[Table, str]]:
        """Each directory that the statement has renamed, or was about to rename, into place."""
        done = [(table, one.directories) for table, one in self.published]
        found = {path: table for table, paths in (*self._moved, *done) for path in paths}
        return [(table, path) for path, table in found.items()]


def places(works: Sequence[Work]) -> list[tuple[TableName, str | None]]:
    """The tables and partitions that were written to (partition None: unpartitioned)."""
    return [
        (table.name, partition or None)
        for work in works
        for table, done in work.published
        for partition in done.partitions
    ]


def partitions(works: Sequence[Work]) -> dict[TableName, list[Partition]]:
    """The partitions that were written to, by table; the catalog may know them already."""
    found: dict[TableName, dict[str, Partition]] = {}
    for work in works:
        for table, done in work.published:
            if table.partition_columns:
                found.setdefault(table.name, {}).update(
                    (name, _partition(table, name)) for name in done.partitions
                )
    return {name: list(of_table.values()) for name, of_table in found.items()}


def without(
    written: Mapping[TableName, list[Partition]],
    dropped: Mapping[TableName, Sequence[tuple[str | None, ...]]],
) -> dict[TableName, list[Partition]]:
    """The partitions that a transaction has written to, without those that its commit drops."""
    return {
        name: [one for one in found if one.values not in dropped.get(name, ())]
        for name, found in written.items()
    }


def row_changes(works: Sequence[Work]) -> dict[TableName, dict[str, RowChange]]:
    """How the numbers of rows change, by table and partition."""
    found: dict[TableName, dict[str, RowChange]] = {}
    for work in works:
        for table, done in work.published:
            of_table = found.setdefault(table.name, {})
            for name, rows in done.rows.items():
                before = of_table.get(name, RowChange(0))
                above = f"{table.location}/{name}".rstrip("/")
                there = [one for one in done.directories if one.rpartition("/")[0] == above]
                of_table[name] = before.then(RowChange(rows, done.overwrote, tuple(there)))
    return found


def new_columns(works: Sequence[Work]) -> dict[TableName, Sequence[Column]]:
    """The data columns of the tables that get other columns."""
    tables = (work.altered for work in works)
    return {table.name: table.columns for table in tables if table is not None}


def changes(works: Sequence[Work]) -> list[Change]:
    """What each statement did to each table, for the versions of the tables."""
    return [
        _change(work, name, writes)
        for work in works
        for name, writes in _writes_by_table(work).items()
    ]


def _writes_by_table(work: Work) -> dict[TableName, list[Published]]:
    writes: dict[TableName, list[Published]] = {}
    for table, done in work.published:
        if done.write_id is not None:
            writes.setdefault(table.name, []).append(done)
    return writes


def _change(work: Work, table: TableName, writes: Sequence[Published]) -> Change:
    """What a statement did to a table, also if it wrote there several times."""
    overwrote = any(done.overwrote for done in writes)
    return Change(
        table,
        "INSERT OVERWRITE" if overwrote and work.operation == "INSERT" else work.operation,
        work.text,
        sum(done.inserted for done in writes),
        sum(done.updated for done in writes),
        sum(done.deleted for done in writes),
        sum(done.files for done in writes),
        sum(done.bytes for done in writes),
        len({partition for done in writes for partition in done.partitions}),
        work.reverted,
    )


def _partition(table: Table, name: str) -> Partition:
    values = tuple(value for _, value in parse_partition_name(name))
    return Partition(values, f"{table.location}/{name}")
