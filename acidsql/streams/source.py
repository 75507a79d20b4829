"""A table as the source of a stream: the rows that transactions have inserted, each once.

Commits are not in the order of write ids. So an offset is a snapshot, the valid write ids as text:
a transaction that was open at one offset and commits later belongs to a later batch.

The reader lives in a Python process of Spark's own, without a session. The tasks get files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import NewWriteIds, ValidTxnList, ValidWriteIdList
from acidsql.errors import (
    CatalogError,
    SettingError,
    SnapshotTooOldError,
    UnsupportedError,
    VersionNotFoundError,
)
from acidsql.metastore.interface import Metastore
from acidsql.metastore.kept_versions import lost_before
from acidsql.storage.folding.stream_reads import (
    StreamRead,
    live_reads,
    new_reads,
    stream_ddl,
    stream_rows,
)
from acidsql.storage.reading.changes import Changes

_OPTIONS = {
    "table", "warehouse", "metastore", "path", "startingversion", "failondataloss",
    "readchangefeed",
}  # fmt: skip


class Split(InputPartition):
    """A task's work."""

    def __init__(self, read: StreamRead) -> None:
        self.read = read


class TableStream(DataSourceStreamReader):
    """The micro-batches of a table.

    Args:
        open_store: Opens the metastore.
        options: The options of ``readStream``.
        ddl: The columns that Spark knows; None: ask the table.

    Raises:
        SettingError: An option is missing, unknown or wrong.
        UnsupportedError: The metastore keeps no versions, or the table cannot be a stream.
        CatalogError: There is no such table, or it has other columns than Spark knows.
    """

    def __init__(
        self,
        open_store: Callable[[], Metastore],
        options: Mapping[str, str],
        ddl: str | None = None,
    ) -> None:
        known = {name.lower(): value for name, value in options.items()}
        _check(known)
        self._start = known.get("startingversion")
        self._fails = known.get("failondataloss", "true").lower() != "false"
        self._open = open_store
        self._name = _name_of(known["table"])
        self._store: Metastore | None = None
        self.ddl = ddl
        self.table = self._found()
        self.ddl = stream_ddl(self.table)

    def __getstate__(self) -> dict[str, Any]:
        """Tasks need the table only: no connection and no address of the metastore."""
        return {"table": self.table}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Where a new query begins."""
        if self._start is None:
            return self._offset("")  # the current rows first
        seen, _ = self._seen()
        if self._start.lower() == "latest":
            return self._offset(str(seen))
        version = int(self._start)
        if not 1 <= version <= seen.high_water_mark:
            raise VersionNotFoundError(
                f"{self._name} has no version {version}: it has the versions 1 to "
                f"{seen.high_water_mark}.",
                table=self._name, version=version,
            )  # fmt: skip
        return self._offset(str(seen.up_to(version - 1)))

    # PySpark 4.1 calls it so, and later versions call a method without parameters so too.
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
        """What is committed now.

        Raises:
            CatalogError: STREAM_SOURCE_CHANGED: the table has other columns now.
        """
        offset = self._offset(str(self._seen()[0]))
        self._found()  # after the snapshot: none of its rows has a column that is new by then
        return offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files of a batch.

        Raises:
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: the cleaner has deleted files of it.
            CatalogError: STREAM_SOURCE_CHANGED: the table was dropped and made again, or has other
                columns now.
        """
        self.table = self._found()
        self._need_same(start, end)
        seen, txns = self._seen()
        after = _today(end["snapshot"], seen)
        before = _today(start["snapshot"], seen) if start["snapshot"] else None
        reads = self._reads(before, after, seen, txns)
        self._need_same(start, end)  # and while the files were listed
        return [Split(read) for read in reads]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a file."""
        assert isinstance(partition, Split)
        yield from stream_rows(partition.read, self.table)

    def stop(self) -> None:
        """Close the metastore."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _reads(
        self,
        before: ValidWriteIdList | None,
        after: ValidWriteIdList,
        seen: ValidWriteIdList,
        txns: ValidTxnList,
    ) -> list[StreamRead]:
        where = self._directories()
        try:
            if before is None:
                reads = live_reads(self.table, where, after, txns)
                self._need_kept(after)
                return reads
            new = NewWriteIds(before, after)
            reads = new_reads(Changes(self.table, where, new, txns))
            self._need_kept(before)
            return reads
        except SnapshotTooOldError:
            if self._fails:
                raise
            left = live_reads(self.table, where, seen, txns)
            new = NewWriteIds(before or ValidWriteIdList(0), after)
            return [replace(one, new=new, is_live=before is None) for one in left]

    def _directories(self) -> list[str]:
        if not self.table.partition_columns:
            return [""]
        prefix = f"{self.table.location}/"
        found = self._metastore.partitions(self._name)
        return [one.location.removeprefix(prefix) for one in found]

    def _need_kept(self, shown: ValidWriteIdList) -> None:
        """See ``TimeTravel.need_kept``: after the files were listed."""
        if (oldest := lost_before(self._metastore, self._name, shown)) is None:
            return
        needed = shown.complete_up_to
        raise SnapshotTooOldError(
            f"The stream of {self._name} needs files since version {needed}, which the cleaner has "
            f"deleted, or a partition was dropped. The oldest version that can be read is "
            f"{oldest}. Begin a new stream, or set the option failOnDataLoss to false to go on "
            "with what is left.",
            table=self._name, version=needed, oldest=oldest,
        )  # fmt: skip

    @property
    def _metastore(self) -> Metastore:
        if self._store is None:
            self._store = self._open()
        return self._store

    def _found(self) -> Table:
        if not self._metastore.abilities.keeps_versions:
            raise UnsupportedError(
                "A Hive Metastore does not note which files were deleted, so a stream of a table "
                "could lack rows. It needs acidsql's own metastore.",
                condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
            )
        table = self._metastore.get_table(self._name)
        if table is None:
            raise CatalogError(f"There is no table '{self._name}'.", relationName=self._name)
        if self.ddl is not None and (now := stream_ddl(table)) != self.ddl:
            raise _changed(
                f"{self._name} has other columns now than when the stream began: {now} instead of "
                f"{self.ddl}. Start the query again."
            )
        return table

    def _seen(self) -> tuple[ValidWriteIdList, ValidTxnList]:
        txns = self._metastore.valid_txns()
        return self._metastore.valid_write_ids(txns, [self._name])[self._name], txns

    def _offset(self, snapshot: str) -> dict[str, Any]:
        """A snapshot, its newest version with that version's transaction (0: none), and the table.

        A restored store may have the table's identity, and other versions.
        """
        seen = ValidWriteIdList.parse(snapshot) if snapshot else None
        found = [
            (one.write_id, one.txn_id)
            for one in self._metastore.versions(self._name)
            if seen is not None and one.write_id > 0 and seen.is_valid(one.write_id)
        ]
        version, txn = max(found, default=(0, 0))
        identity = self._metastore.identity(self._name)
        return {"snapshot": snapshot, "version": version, "txn": txn, "table": identity}

    def _need_same(self, *offsets: dict[str, Any]) -> None:
        """Check that the table is the one of the offsets, and that these are not after now."""
        identity = self._metastore.identity(self._name)
        known = {one.write_id: one.txn_id for one in self._metastore.versions(self._name)}
        mark = self._seen()[0].high_water_mark
        for offset in offsets:
            version, txn = offset["version"], offset["txn"]
            is_same = version == 0 or (version <= mark and known.get(version, txn) == txn)
            if offset["table"] != identity or not is_same:
                raise _changed(
                    f"{self._name} was dropped and made again, or restored from a copy, since the "
                    "stream's checkpoint was written. Begin a new stream with a new checkpoint."
                )


def _changed(message: str) -> CatalogError:
    return CatalogError(message, condition="STREAM_SOURCE_CHANGED", sqlstate="55000")


def _today(text: str, seen: ValidWriteIdList) -> ValidWriteIdList:
    """The snapshot of an offset. Of the write ids that were open then, some are aborted now."""
    then = ValidWriteIdList.parse(text)
    gone = tuple(number for number in then.open if seen.is_aborted(number))
    still = tuple(number for number in then.open if number not in gone)
    return replace(then, open=still, aborted=then.aborted + gone)


def _check(options: Mapping[str, str]) -> None:
    if unknown := sorted(set(options) - _OPTIONS):
        raise SettingError(f"A stream of a table has no option '{unknown[0]}'.", name=unknown[0])
    if options.get("readchangefeed", "false").lower() != "false":
        raise UnsupportedError(
            "A stream gives inserts only. Write acid.changes('db.t', …) for deletes and updates.",
            condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
        )
    start = options.get("startingversion", "latest")
    if start.lower() != "latest" and not start.isdecimal():
        raise SettingError(
            f"startingVersion='{start}' is neither a version nor latest.", name="startingVersion"
        )


def _name_of(text: str) -> TableName:
    parts = text.lower().split(".")
    if len(parts) > 2 or not all(parts):
        raise SettingError(f"table='{text}' is not database.table.", name="table")
    return TableName(*(parts if len(parts) == 2 else ["default", *parts]))
