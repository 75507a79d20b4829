"""The ledger of streams: which batch of which application was committed last, in which sink.

The words are Delta Lake's: ``txnAppId`` names an application, ``txnVersion`` numbers its
transactions. A streaming query is an application, and its batches are the versions. COMMIT writes a
batch's entry in the store transaction that commits the batch's rows. So the rows of a batch are
visible exactly when its entry is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

from acidsql.acid.table import TableName

_SINK_MAX = 500  # characters: less than the width of STREAMS.SINK
_BETWEEN, _MANY = ", ", " tables, "


@dataclass(frozen=True, slots=True)
class Batch:
    """The identity of one transaction of an application.

    Attributes:
        app_id: The application. For a streaming query, the query's id.
        version: The number of the transaction. For a streaming query, the batch id.
        sink: ``database.table`` if the entry is about the table; "" for ``acid.transaction()``.
        query_id: The streaming query's id; "" if there is no stream.
        run_id: The id of the run of the streaming query; "" if there is no stream.
        fingerprint: A hash of the batch's plan in the checkpoint; "" if the plan cannot be read.
        rows: The number of rows that the batch inserted, updated or deleted.
    """

    app_id: str
    version: int
    sink: str = ""
    query_id: str = ""
    run_id: str = ""
    fingerprint: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class NextBatch:
    """A batch to record, and the entry that it follows.

    Attributes:
        batch: The batch.
        after: The entry's batch when the session looked. None: there was no entry.
    """

    batch: Batch
    after: Batch | None

    def with_rows(self, rows: int) -> NextBatch:
        """Return a copy with the number of rows that the batch changed."""
        return replace(self, batch=replace(self.batch, rows=rows))


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """An entry of the ledger: the newest batch of an application in a sink.

    Attributes:
        batch: The batch.
        txn_id: The transaction that committed the batch.
        committed_ms: The time of the commit, in milliseconds since the epoch, by the store's clock.
        user: The user whose session committed the batch.
        host: The host of that session.
    """

    batch: Batch
    txn_id: int
    committed_ms: int
    user: str
    host: str

    @property
    def skipped_note(self) -> str:
        """The text for the receipt of a batch that is skipped, because this batch or an older one
        comes again: "skipped: batch 5 of 'app' was committed as txn 7", with "version" instead of
        "batch" if there is no sink."""
        subject = "batch" if self.batch.sink else "version"
        number, app_id = self.batch.version, self.batch.app_id
        return f"skipped: {subject} {number} of '{app_id}' was committed as txn {self.txn_id}"


class StreamLedger(Protocol):
    """The ledger. An entry goes when one of its tables is dropped, and follows renamed ones."""

    def stream(self, app_id: str, sink: str) -> StreamEntry | None:
        """Return the entry of an application for a sink, or None. *Read-only.*"""

    def streams(self, app_id: str | None = None) -> Sequence[StreamEntry]:
        """Return the entries, of one application or of all, sorted by application and sink.
        *Read-only.*"""

    def sink(self, tables: Iterable[TableName]) -> str:
        """Return the text that stands for the sink of a batch that changes several tables (see
        ``joint_sink``). *Read-only.*"""

    def take_over_stream(self, batch: Batch, after: Batch) -> None:
        """Note that another run has the entry from now on, though it committed nothing yet.
        *Idempotent.* The entry keeps all but its run. Raises StreamError STREAM_TAKEN_OVER if the
        entry is not ``after`` any more."""

    def end_other_runs(self, batch: Batch) -> Sequence[int]:
        """Abort the open transactions that work for a batch of the same application, sink and
        query, but of another run, and return their numbers. *Idempotent.* A new run ends with this
        what a dead run has left, and need not wait for its locks."""

    def forget_stream(self, app_id: str, sink: str | None = None) -> int:
        """Delete all entries of an application, or only its entry for ``sink``. *Idempotent.*
        Returns how many there were."""


def joint_sink(tables: Iterable[TableName], identity: Callable[[TableName], str]) -> str:
    """Return the text that stands for the sink of a batch that changes several tables: their names
    (``TableName.key``), each once, sorted, with ", " between them. If this is longer than 500
    characters, ``sink_of_identities`` instead.

    Args:
        tables: The tables.
        identity: Returns a text that a table keeps when it is renamed, and that no later table of
            its name has. It is called only for the hash.
    """
    tables_by_key = {table.key: table for table in tables}
    sink = _BETWEEN.join(sorted(tables_by_key))
    if len(sink) <= _SINK_MAX:
        return sink
    return sink_of_identities(map(identity, tables_by_key.values()))


def sink_of_identities(identities: Iterable[str]) -> str:
    """Return the text that stands for the sink of several tables whose names are too long: their
    number and a hash of their identities, as "30 tables, 0a1b…". The order does not matter."""
    ordered = sorted(identities)
    return f"{len(ordered)}{_MANY}{sha256(_BETWEEN.join(ordered).encode()).hexdigest()[:32]}"


def renamed_sink(
    sink: str, table: TableName, new_name: TableName, identity: Callable[[TableName], str]
) -> str:
    """Return the text of a sink after one of its tables was renamed: ``new_name`` in the place of
    ``table``. The sink must list its tables. For ``identity`` see ``joint_sink``."""
    tables = sink_tables(sink)
    return joint_sink([new_name if name == table else name for name in tables], identity)


def may_write_to(sink: str, table: TableName) -> bool:
    """Whether a sink's text lists a table. Always True for a hash, which does not tell its
    tables."""
    return _MANY in sink or str(table) in sink.split(_BETWEEN)


def sink_tables(sink: str) -> list[TableName]:
    """Return the names of the tables that a sink's text lists. The list is empty if the sink is ""
    (no table), or a hash, because the names were too long (``joint_sink``)."""
    if not sink or _MANY in sink:
        return []
    names = (key.partition(".") for key in sink.split(_BETWEEN))
    return [TableName(database, name) for database, _, name in names]


def next_batch(batch: Batch, entry: StreamEntry | None) -> NextBatch:
    """Make the NextBatch of a batch that is to follow an entry of the ledger; None: there is no
    entry yet."""
    return NextBatch(batch, None if entry is None else entry.batch)
