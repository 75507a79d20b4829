"""A table as the source of a stream: the rows that were inserted, each once, or all changes.

Commits are not in the order of write ids. So an offset is a snapshot, the valid write ids as text:
a transaction that was open at one offset and commits later belongs to a later batch.

The reader lives in a Python process of Spark's own, without a session. The tasks get files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from acidsql.acid.table import Table
from acidsql.acid.write_ids import NewWriteIds, ValidTxnList, ValidWriteIdList
from acidsql.errors import (
    CatalogError,
    SnapshotTooOldError,
    UnsupportedError,
    VersionNotFoundError,
)
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore
from acidsql.metastore.older_versions import (
    commit_number_at,
    oldest_version_after_loss,
    write_ids_at_commit,
)
from acidsql.storage.folding.stream_changes import FeedRead, feed_reads, feed_rows, feed_schema
from acidsql.storage.folding.stream_reads import (
    Shows,
    StreamRead,
    live_reads,
    new_reads,
    stream_rows,
    stream_schema,
)
from acidsql.storage.reading.change_columns import change_keys, refuse_reserved_names
from acidsql.storage.reading.changes import ChangesRequest
from acidsql.storage.spark.shown_schema import schema_text
from acidsql.streams.source.catalog import missing_table_error, partition_names
from acidsql.streams.source.read_limits import (
    SupportsTriggerAvailableNow,
    default_limit,
    is_unlimited,
    limited_end,
)
from acidsql.streams.source.source_options import LATEST, source_options

_NOTHING = ValidWriteIdList(-1)  # not even the rows of a converted table, which have 0


class Split(InputPartition):
    """The work of one task: the files that it reads, and how."""

    def __init__(self, read: StreamRead | FeedRead) -> None:
        self.read = read


class TableStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The micro-batches of a table.

    Args:
        open_store: Opens the metastore.
        options: The options of ``readStream``.
        schema: The columns that Spark knows; None: ask the table.

    Raises:
        SettingError: An option is missing, unknown or wrong.
        UnsupportedError: The metastore keeps no versions, or the table cannot be a stream.
        CatalogError: There is no such table or key column, or the table has other columns than
            Spark knows.
    """

    def __init__(
        self,
        open_store: Callable[[], Metastore],
        options: Mapping[str, str],
        schema: StructType | None = None,
    ) -> None:
        self._options = source_options(options)
        self._open = open_store
        self._name = self._options.table
        self._store: Metastore | None = None
        self._last: ValidWriteIdList | None = None  # where Trigger.AvailableNow ends
        self.schema = schema
        self.table = self._require_table()
        self.schema = self._schema_of(self.table)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled for tasks: the table only, and nothing of the metastore."""
        return {"table": self.table}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the offset at which a new query begins, in the form of ``_offset``: by default an
        empty snapshot, after which the current rows come first, also if ``startingVersion`` is the
        version that made the table. A time: the snapshot of all that committed before; LATEST: that
        of now; a number: the valid write ids below.

        Raises:
            VersionNotFoundError: There is no such version or time.
        """
        start, start_ms = self._options.start, self._options.start_ms
        if start is None and start_ms is None:
            return self._offset("")  # the current rows first
        current, _ = self._current_snapshot()
        if start_ms is not None:
            commit = commit_number_at(self._metastore, start_ms - 1)
            versions = self._metastore.versions(self._name)
            return self._offset(str(write_ids_at_commit(self._name, current, versions, commit)))
        if start == LATEST:
            return self._offset(str(current))
        assert isinstance(start, int)
        if start and start == self._metastore.first_version(self._name):
            return self._offset("")  # what made the table may have left no events
        following = current.high_water_mark + 1
        if not 1 <= start <= following:
            raise VersionNotFoundError(
                f"A stream of {self._name} cannot begin with version {start}: the first version "
                f"is 1, the next one will be {following}.",
                table=self._name,
                version=start,
            )
        return self._offset(str(current.up_to(start - 1)))

    # PySpark 4.1 calls it without arguments.
    def latestOffset(  # noqa: N802 - PySpark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return the offset of the end of the next batch, in the form of ``_offset``: the newest
        committed version (after ``prepareForTriggerAvailableNow``, that of its call) or, if Spark
        passes a ``limit``, as many versions after ``start`` as the options allow. A first batch, of
        the current rows, has no limit.

        Raises:
            CatalogError: STREAM_SOURCE_CHANGED: the table has other columns now.
        """
        end = self._current_snapshot()[0] if self._last is None else self._last
        if start is not None and start["snapshot"] and not is_unlimited(limit):
            new = NewWriteIds(_snapshot_of_offset(start["snapshot"], end), end)
            end = limited_end(
                new, self._version_sizes(), self._options.max_versions, self._options.max_bytes
            )
        offset = self._offset(str(end))
        self._require_table()  # after the snapshot was taken: its rows have no newer columns
        return offset

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - PySpark's name
        """Return the object that Spark is to pass to ``latestOffset`` as ``limit``."""
        return default_limit(is_limited=self._options.is_limited)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        """Let the query end with the versions that are committed now, perhaps in many batches."""
        self._last = self._current_snapshot()[0]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks that read a batch, a ``Split`` each, between two offsets.

        Raises:
            SnapshotTooOldError: ACID_NOT_ENOUGH_HISTORY: the cleaner has deleted files of the
                batch, or a rebalance gave the rows other row ids.
            CatalogError: STREAM_SOURCE_CHANGED: the table was dropped and made again, or has other
                columns now.
        """
        self.table = self._require_table()
        self._require_same_table(start, end)
        current, txns = self._current_snapshot()
        after = _snapshot_of_offset(end["snapshot"], current)
        before = _snapshot_of_offset(start["snapshot"], current) if start["snapshot"] else None
        reads = self._plan_reads(before, after, current, txns)
        self._require_same_table(start, end)  # and while the files were listed
        if not self._options.is_feed:
            return [Split(read) for read in reads]
        new = NewWriteIds(before or _NOTHING, after)
        commits = {
            version.write_id: (version.committed_ms, version.txn_id)
            for version in self._metastore.versions(self._name)
            if version.write_id in new
        }
        # No row of the first batch was deleted, so there are no pairs.
        keys = () if before is None else change_keys(self.table, self._options.keys)
        return [Split(read) for read in feed_reads(reads, keys, commits)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, a ``Split``, as Arrow record batches, in a Python worker of
        Spark's: inserted rows or, for a change feed, all changes."""
        assert isinstance(partition, Split)
        if isinstance(partition.read, FeedRead):
            yield from feed_rows(partition.read, self.table)
        else:
            yield from stream_rows(partition.read, self.table)

    def stop(self) -> None:
        """Close the metastore."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _plan_reads(
        self,
        before: ValidWriteIdList | None,
        after: ValidWriteIdList,
        current: ValidWriteIdList,
        txns: ValidTxnList,
    ) -> list[StreamRead]:
        """Return what to read between two snapshots; ``before`` None: the live rows of ``after``.
        If files were deleted, raise SnapshotTooOldError or, with failOnDataLoss=false, read what
        the live rows of ``current`` still have of it."""
        directories = partition_names(self._metastore, self.table)
        try:
            if before is None:
                reads = live_reads(self.table, directories, after, txns)
                self._require_history(after)
                return reads
            table_changes = ChangesRequest(
                self.table, directories, NewWriteIds(before, after), txns
            )
            reads = new_reads(table_changes, with_deletes=self._options.is_feed)
            self._require_history(before)
            return reads
        except SnapshotTooOldError:
            if self._options.fails_on_data_loss:
                raise
            live = live_reads(self.table, directories, current, txns)
            new = NewWriteIds(before or _NOTHING, after)
            shows = Shows.LIVE if before is None else Shows.NEW
            return [replace(read, new=new, shows=shows) for read in live]

    def _require_history(self, shown: ValidWriteIdList) -> None:
        """Raise SnapshotTooOldError if files that came after a snapshot, or that it shows, were
        deleted. Call this after files were listed: the cleaner notes the loss of a version before
        it deletes files."""
        if (oldest := oldest_version_after_loss(self._metastore, self._name, shown)) is None:
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
        """Return the metastore, which is opened by the first call."""
        if self._store is None:
            self._store = self._open()
        return self._store

    def _require_table(self) -> Table:
        """Return the table as it is now.

        Raises:
            UnsupportedError: The metastore keeps no versions.
            CatalogError: There is no such table, or it has other columns than Spark knows since the
                stream began.
        """
        if not self._metastore.abilities.keeps_versions:
            raise UnsupportedError(
                "A Hive Metastore does not note which files were deleted, so a stream of a table "
                "could lack rows. It needs acidsql's own metastore.",
                condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
            )
        table = acid_table(self._metastore.find(self._name))
        if table is None:
            raise missing_table_error(self._metastore, self._name)
        if self.schema is not None and (now := self._schema_of(table)) != self.schema:
            raise _source_changed_error(
                f"{self._name} has other columns now than when the stream began: "
                f"{schema_text(now)} instead of {schema_text(self.schema)}. Start the query again."
            )
        return table

    def _schema_of(self, table: Table) -> StructType:
        """Return the schema of the stream: the table's columns or, for a change feed, with the
        columns about changes. Raise an error if the table cannot be a stream, or lacks a key
        column."""
        if not self._options.is_feed:
            return stream_schema(table)
        refuse_reserved_names(table)
        return feed_schema(table, change_keys(table, self._options.keys))

    def _version_sizes(self) -> dict[int, int]:
        """Return how many bytes each version wrote, by write id, as far as the metastore remembers
        versions."""
        sizes: dict[int, int] = {}
        for version in self._metastore.versions(self._name):
            sizes[version.write_id] = sizes.get(version.write_id, 0) + version.change.bytes
        return sizes

    def _current_snapshot(self) -> tuple[ValidWriteIdList, ValidTxnList]:
        """Return the table's valid write ids and the valid transactions of now."""
        txns = self._metastore.valid_txns()
        return self._metastore.valid_write_ids(txns, [self._name])[self._name], txns

    def _offset(self, snapshot: str) -> dict[str, Any]:
        """Return the offset of a snapshot, as a dict: ``snapshot``, its text ("": the current rows
        are still to come); ``version``, the highest version that it shows; ``txn``, that version's
        transaction; ``table``, the table's identity.

        The version and the transaction are 0 if the snapshot has no version. They are needed
        because a restored store may have the same identity of the table, and other versions.
        """
        write_ids = ValidWriteIdList.parse(snapshot) if snapshot else None
        versions = [
            (table_version.write_id, table_version.txn_id)
            for table_version in self._metastore.versions(self._name)
            if write_ids is not None
            and table_version.write_id > 0
            and write_ids.is_valid(table_version.write_id)
        ]
        version, txn = max(versions, default=(0, 0))
        identity = self._metastore.identity(self._name)
        return {"snapshot": snapshot, "version": version, "txn": txn, "table": identity}

    def _require_same_table(self, *offsets: dict[str, Any]) -> None:
        """Raise CatalogError if the table was dropped and made again since an offset, or the store
        was restored from a copy, by which the offset's version is another transaction's or is still
        to come. A version that the metastore has forgotten, and version 0, count as the same."""
        identity = self._metastore.identity(self._name)
        txn_ids = {
            table_version.write_id: table_version.txn_id
            for table_version in self._metastore.versions(self._name)
        }
        high_water_mark = self._current_snapshot()[0].high_water_mark
        for offset in offsets:
            version, txn = offset["version"], offset["txn"]
            is_same = version == 0 or (
                version <= high_water_mark and txn_ids.get(version, txn) == txn
            )
            if offset["table"] != identity or not is_same:
                raise _source_changed_error(
                    f"{self._name} was dropped and made again, or restored from a copy, since the "
                    "stream's checkpoint was written. Begin a new stream with a new checkpoint."
                )


def _source_changed_error(message: str) -> CatalogError:
    """Return the error STREAM_SOURCE_CHANGED."""
    return CatalogError(message, condition="STREAM_SOURCE_CHANGED", sqlstate="55000")


def _snapshot_of_offset(text: str, current: ValidWriteIdList) -> ValidWriteIdList:
    """Return the snapshot that an offset's text describes. Write ids that were open then, and were
    aborted since (by ``current``), are aborted in it; others that were open stay open, so they
    belong to a later batch."""
    snapshot = ValidWriteIdList.parse(text)
    aborted = tuple(write_id for write_id in snapshot.open if current.is_aborted(write_id))
    still_open = tuple(write_id for write_id in snapshot.open if write_id not in aborted)
    return replace(snapshot, open=still_open, aborted=snapshot.aborted + aborted)
