"""STREAMS: the ledger of streams (``metastore/streams.py``). The table is acidsql's own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, select, update

from acidsql.acid.table import TableName
from acidsql.metastore.embedded.database import rows
from acidsql.metastore.embedded.database.engine import Store
from acidsql.metastore.embedded.database.schema import STREAMS, TXNS
from acidsql.metastore.interface import TxnState
from acidsql.metastore.stream_rules import taken_over_error
from acidsql.metastore.streams import (
    Batch,
    NextBatch,
    StreamEntry,
    joint_sink,
    renamed_sink,
    sink_of_identities,
    sink_tables,
)

S = STREAMS.c
_LINE = "\n"  # between the parts of a name, which have none


class EmbeddedStreams:
    """The ``StreamLedger`` of the embedded metastore; the methods are described there."""

    _store: Store

    def stream(self, app_id: str, sink: str) -> StreamEntry | None:
        """Return the entry of an application for a sink, or None."""
        with self._store.read() as connection:
            row = _find_row(connection, app_id, sink)
        return None if row is None else _entry_of_row(row)

    def streams(self, app_id: str | None = None) -> list[StreamEntry]:
        """Return the entries, of one application or of all, sorted by application and sink."""
        query = select(STREAMS).order_by(S.TXN_APP_ID, S.SINK)
        if app_id is not None:
            query = query.where(S.TXN_APP_ID == app_id)
        with self._store.read() as connection:
            return [_entry_of_row(row) for row in connection.execute(query)]

    def sink(self, tables: Iterable[TableName]) -> str:
        """Return the text that stands for the sink of a batch that changes these tables."""
        with self._store.read() as connection:
            return joint_sink(tables, partial(rows.identity, connection))

    def take_over_stream(self, batch: Batch, after: Batch) -> None:
        """Store the run of ``batch`` in the ledger's entry of its application and sink. Raise
        StreamError STREAM_TAKEN_OVER unless the entry still has the version of ``after``, and the
        run of ``after`` or of ``batch``."""
        with self._store.write() as connection:
            # The last run, or this one if the reply to an earlier call was lost.
            is_known_run = and_(
                _is_of_sink(connection, batch.app_id, batch.sink),
                S.TXN_VERSION == after.version,
                S.RUN_ID.in_([after.run_id, batch.run_id]),
            )
            _update_entry(connection, batch, is_known_run, RUN_ID=batch.run_id)

    def forget_stream(self, app_id: str, sink: str | None = None) -> int:
        """Delete all entries of an application, or only its entry for ``sink``, and return how many
        there were."""
        with self._store.write() as connection:
            of_app = S.TXN_APP_ID == app_id
            is_forgotten = of_app if sink is None else _is_of_sink(connection, app_id, sink)
            return connection.execute(delete(STREAMS).where(is_forgotten)).rowcount


def record_batch(connection: Connection, txn: Row[Any], new: NextBatch, now_ms: int) -> None:
    """Write a batch into the ledger, in the store transaction that commits its rows: over the entry
    ``new.after``, whose sink becomes the batch's text, or as a new entry if that is None. ``txn``:
    the transaction's row of TXNS.

    Raises:
        StreamError: STREAM_TAKEN_OVER: the entry has another version or run than when the session
            looked, or there is one now.
    """
    batch = new.batch
    values = {
        "TXN_VERSION": batch.version,
        "TXN_ID": txn.TXN_ID,
        "QUERY_ID": batch.query_id,
        "RUN_ID": batch.run_id,
        "FINGERPRINT": batch.fingerprint,
        "NUM_ROWS": batch.rows,
        "COMMITTED_AT": now_ms,
        "TXN_USER": txn.TXN_USER,
        "TXN_HOST": txn.TXN_HOST,
    }
    if new.after is not None:
        is_last_run = and_(
            _is_of_sink(connection, batch.app_id, batch.sink),
            S.TXN_VERSION == new.after.version,
            S.RUN_ID == new.after.run_id,
        )
        _update_entry(connection, batch, is_last_run, **values, SINK=batch.sink)
    elif _find_row(connection, batch.app_id, batch.sink) is not None:
        raise _taken_over_error(connection, batch)
    else:
        connection.execute(
            insert(STREAMS).values(TXN_APP_ID=batch.app_id, SINK=batch.sink, **values)
        )


def worker_text(batch: Batch) -> str:
    """Return the text for TXN_META_INFO of an open transaction that works for a batch: application,
    sink, query and run, one a line."""
    return _LINE.join((batch.app_id, batch.sink, batch.query_id, batch.run_id))


def other_runs(connection: Connection, batch: Batch) -> list[int]:
    """Return the numbers of the open transactions that work for the batch's application, sink and
    streaming query, but for another run of it."""
    stream, _, run = worker_text(batch).rpartition(_LINE)
    open_ones = select(TXNS.c.TXN_ID, TXNS.c.TXN_META_INFO).where(
        TXNS.c.TXN_STATE == TxnState.OPEN.value, TXNS.c.TXN_META_INFO.is_not(None)
    )
    # Compared here, because MySQL's texts are equal whatever their case is.
    marks = [(txn_id, mark.rpartition(_LINE)) for txn_id, mark in connection.execute(open_ones)]
    return [txn_id for txn_id, (of, _, by) in marks if of == stream and by != run]


def drop(connection: Connection, table: TableName) -> None:
    """Delete the entries of the streams into a dropped table, also those into others beside it: a
    new table of its name has none of their rows.

    Sinks whose names do not tell their tables stay. They have another name if one of the tables is
    made anew.
    """
    for app_id, sink in _entries_with_table(connection, table):
        connection.execute(delete(STREAMS).where(S.TXN_APP_ID == app_id, S.SINK == sink))


def rename(connection: Connection, table: TableName, new_name: TableName) -> None:
    """Rename a table in the sinks of all entries, also of those about several tables. An entry of
    the same application that has the new sink already is deleted."""
    for app_id, sink in _entries_with_table(connection, table):
        new_sink = renamed_sink(sink, table, new_name, partial(rows.identity, connection))
        of_app = S.TXN_APP_ID == app_id
        # An entry of that name is about a table that was dropped before the batch was committed.
        connection.execute(delete(STREAMS).where(of_app, S.SINK == new_sink))
        connection.execute(update(STREAMS).where(of_app, S.SINK == sink).values(SINK=new_sink))


def _entries_with_table(connection: Connection, table: TableName) -> list[tuple[str, str]]:
    """Return the (application, sink) of each entry whose sink names a table."""
    query = select(S.TXN_APP_ID, S.SINK).where(S.SINK.contains(table.key, autoescape=True))
    pairs = ((app_id, sink) for app_id, sink in connection.execute(query))
    return [(app_id, sink) for app_id, sink in pairs if table in sink_tables(sink)]


def _update_entry(
    connection: Connection, batch: Batch, is_expected: ColumnElement[bool], **values: object
) -> None:
    """Set columns of the entry for which the condition holds. Raise StreamError STREAM_TAKEN_OVER,
    about ``batch``, if there is none."""
    if connection.execute(update(STREAMS).where(is_expected).values(values)).rowcount == 0:
        raise _taken_over_error(connection, batch)


def _is_of_sink(connection: Connection, app_id: str, sink: str) -> ColumnElement[bool]:
    """Make the condition that an entry is of this application and sink, also if the sink's tables
    had names too long to be listed when the entry was written."""
    sinks, tables = [sink], sink_tables(sink)
    if len(tables) > 1:
        sinks.append(sink_of_identities(rows.identity(connection, table) for table in tables))
    return and_(S.TXN_APP_ID == app_id, S.SINK.in_(sinks))


def _find_row(connection: Connection, app_id: str, sink: str) -> Row[Any] | None:
    """Read the row of STREAMS of an application and sink; None if there is none."""
    return connection.execute(select(STREAMS).where(_is_of_sink(connection, app_id, sink))).first()


def _taken_over_error(connection: Connection, batch: Batch) -> Exception:
    """Make the error STREAM_TAKEN_OVER, which names the run that has the entry now."""
    row = _find_row(connection, batch.app_id, batch.sink)
    return taken_over_error(batch, None if row is None else _entry_of_row(row))


def _entry_of_row(row: Row[Any]) -> StreamEntry:
    """Make the StreamEntry, with its Batch, of a row of STREAMS."""
    return StreamEntry(
        Batch(
            row.TXN_APP_ID,
            row.TXN_VERSION,
            row.SINK,
            row.QUERY_ID,
            row.RUN_ID,
            row.FINGERPRINT,
            row.NUM_ROWS,
        ),
        row.TXN_ID,
        row.COMMITTED_AT,
        row.TXN_USER,
        row.TXN_HOST,
    )
