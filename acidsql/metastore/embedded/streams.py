"""STREAMS: the ledger of streams (``metastore/streams.py``). The table is acidsql's own."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, select, update

from acidsql.acid.table import TableName
from acidsql.metastore.embedded.engine import Store
from acidsql.metastore.embedded.schema import STREAMS, TXNS
from acidsql.metastore.interface import TxnState
from acidsql.metastore.stream_rules import taken_over
from acidsql.metastore.streams import Batch, NextBatch, StreamEntry, after_rename

S = STREAMS.c
_LINE = "\n"  # between the parts of a name, which have none


class EmbeddedStreams:
    """The ``StreamLedger`` of the embedded metastore; the methods are described there."""

    _store: Store

    def stream(self, app_id: str, sink: str) -> StreamEntry | None:
        with self._store.read() as connection:
            row = connection.execute(
                select(STREAMS).where(S.TXN_APP_ID == app_id, S.SINK == sink)
            ).first()
        return None if row is None else _entry(row)

    def streams(self, app_id: str | None = None) -> list[StreamEntry]:
        query = select(STREAMS).order_by(S.TXN_APP_ID, S.SINK)
        if app_id is not None:
            query = query.where(S.TXN_APP_ID == app_id)
        with self._store.read() as connection:
            return [_entry(row) for row in connection.execute(query)]

    def take_over_stream(self, batch: Batch, after: Batch) -> None:
        # The last run, or this one if the reply to an earlier call was lost.
        is_known_run = and_(
            _is(batch), S.TXN_VERSION == after.version, S.RUN_ID.in_([after.run_id, batch.run_id])
        )
        with self._store.write() as connection:
            _change(connection, batch, is_known_run, RUN_ID=batch.run_id)

    def forget_stream(self, app_id: str, sink: str | None = None) -> int:
        ours = S.TXN_APP_ID == app_id
        with self._store.write() as connection:
            is_forgotten = ours if sink is None else and_(ours, S.SINK == sink)
            return connection.execute(delete(STREAMS).where(is_forgotten)).rowcount


def record(connection: Connection, txn: Row[Any], new: NextBatch, now_ms: int) -> None:
    """Note a batch, in the store transaction that commits its rows. ``txn``: its row of TXNS.

    Raises:
        StreamError: STREAM_TAKEN_OVER: the entry has changed since the session looked.
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
            _is(batch), S.TXN_VERSION == new.after.version, S.RUN_ID == new.after.run_id
        )
        _change(connection, batch, is_last_run, **values)
    elif _find(connection, batch) is not None:
        raise _taken_over(connection, batch)
    else:
        connection.execute(
            insert(STREAMS).values(TXN_APP_ID=batch.app_id, SINK=batch.sink, **values)
        )


def worker(batch: Batch) -> str:
    """What TXN_META_INFO says of an open transaction: the stream, and the run that works for it."""
    return _LINE.join((batch.app_id, batch.sink, batch.query_id, batch.run_id))


def other_runs(connection: Connection, batch: Batch) -> list[int]:
    """The open transactions of the batch's stream that work for another run of it."""
    stream, _, run = worker(batch).rpartition(_LINE)
    open_ones = select(TXNS.c.TXN_ID, TXNS.c.TXN_META_INFO).where(
        TXNS.c.TXN_STATE == TxnState.OPEN.value, TXNS.c.TXN_META_INFO.is_not(None)
    )
    # Compared here, because MySQL's texts are equal whatever their case is.
    marks = [(txn_id, mark.rpartition(_LINE)) for txn_id, mark in connection.execute(open_ones)]
    return [txn_id for txn_id, (of, _, by) in marks if of == stream and by != run]


def drop(connection: Connection, table: TableName) -> None:
    """Forget the streams into a dropped table: a new table of its name has none of their rows."""
    connection.execute(delete(STREAMS).where(S.SINK == table.key))


def rename(connection: Connection, table: TableName, new_name: TableName) -> None:
    """Let the entries follow a renamed table, also those about several tables."""
    query = select(S.TXN_APP_ID, S.SINK).where(S.SINK.contains(table.key, autoescape=True))
    for app_id, sink in connection.execute(query).all():
        new_sink = after_rename(sink, table, new_name)
        if new_sink is not None:
            of_app = S.TXN_APP_ID == app_id
            # An entry of that name is about tables of which one was dropped.
            connection.execute(delete(STREAMS).where(of_app, S.SINK == new_sink))
            connection.execute(update(STREAMS).where(of_app, S.SINK == sink).values(SINK=new_sink))


def _change(
    connection: Connection, batch: Batch, is_expected: ColumnElement[bool], **values: object
) -> None:
    if connection.execute(update(STREAMS).where(is_expected).values(values)).rowcount == 0:
        raise _taken_over(connection, batch)


def _is(batch: Batch) -> ColumnElement[bool]:
    return and_(S.TXN_APP_ID == batch.app_id, S.SINK == batch.sink)


def _find(connection: Connection, batch: Batch) -> Row[Any] | None:
    return connection.execute(select(STREAMS).where(_is(batch))).first()


def _taken_over(connection: Connection, batch: Batch) -> Exception:
    row = _find(connection, batch)
    return taken_over(batch, None if row is None else _entry(row))


def _entry(row: Row[Any]) -> StreamEntry:
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
