"""Deletes rows that no open or future transaction can need.

*The mark.* For each open transaction X, MIN_HISTORY_LEVEL has M(X) ≤ X, the lowest transaction
number that was open when X began. Take a snapshot S after X began, while X is open. A transaction
that is open in S was open when X began, or began after X. So no number below M(X) is open in S, and
none is above S's high-water mark: in S each of them is committed or aborted, for good. The mark is
the lowest M of all open transactions, or the next transaction number if none is open. All these
snapshots agree about numbers below the mark: the snapshots of open transactions, the snapshots that
were taken under a lease that is still open, and all later snapshots. READ_ONLY transactions
(leases) have an M, too, and so keep what their old snapshots hide. They write nothing, so they do
not lower the M of other transactions. A SESSION transaction has no snapshot, and no M.

*TXN_TO_WRITE_ID.* A write id without a row counts as visible (``write_ids``). In all those
snapshots, write ids of committed transactions below the mark are visible, so their rows are
deleted. Rows of open transactions are not below the mark. Rows of aborted transactions must stay
for ever, even after the compactor has deleted their files and called ``forget_aborted``. A writer
that does not know that it was aborted may publish its directory after that, and nobody looks for
such a directory. Readers would see the directory as soon as the row is gone, however late that is.
(Hive stops at the lowest aborted transaction, because Hive reads a table's high-water mark from the
remaining rows. Here the high-water mark is the name's counter, which is never deleted.)

*WRITE_SET.* An open transaction that may write asks for rows with a commit id of its own number or
higher (``conflicts``). So rows below the lowest of these transactions are deleted. READ_ONLY
transactions, too, ask for changes of the catalog (``catalog_history``), so these rows are deleted
only below the mark.

*TXNS.* The row of a committed transaction says how the transaction ended. If the transaction is a
rival of another one, the row also says which user's statement it was. The row is deleted if it is
old, below the mark, and no row of WRITE_SET refers to it. An aborted transaction is an exception in
snapshots. Its row is deleted if it is old and no data of the transaction can exist. A compaction
has no write id of its own; only the number of its transaction hides its directory
(``base_5_v17``). So the row of an aborted compaction stays.
Therefore a compaction that published nothing should commit its transaction, not abort it.
"""

from __future__ import annotations

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from acidsql.metastore.embedded.database.schema import (
    AUX_TABLE,
    MIN_HISTORY_LEVEL,
    NEXT_TXN_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from acidsql.metastore.embedded.records import versions
from acidsql.metastore.embedded.records.catalog_history import is_catalog_change
from acidsql.metastore.interface import TxnState, TxnType

HOUSE_KEEPER = "HouseKeeper"  # Hive's key in AUX_TABLE
WRITE_NOTHING = (TxnType.READ_ONLY.value, TxnType.SESSION.value)

T, AUX = TXNS.c, AUX_TABLE.c


def may_write() -> ColumnElement[bool]:
    """Make the condition on TXNS that a transaction may write (it is not READ_ONLY or SESSION), so
    that it is an exception in snapshots while it is open."""
    return T.TXN_TYPE.not_in(WRITE_NOTHING)


def may_look() -> ColumnElement[bool]:
    """Make the condition on TXNS that a transaction is open and no SESSION, so that it may need
    what others have replaced or deleted."""
    return and_(T.TXN_STATE == TxnState.OPEN.value, T.TXN_TYPE != TxnType.SESSION.value)


def is_due(connection: Connection, now_ms: int, interval_ms: int) -> bool:
    """Whether the last housekeeping is at least ``interval_ms`` ago, lies in the future because the
    clock was set back, or is not known."""
    query = select(AUX.MT_KEY2).where(AUX.MT_KEY1 == HOUSE_KEEPER)
    last_ms = connection.execute(query).scalar()
    # If the clock was set back, the last time may lie in the future. Then it does not count.
    return last_ms is None or not 0 <= now_ms - last_ms < interval_ms


def note(connection: Connection, now_ms: int) -> None:
    """Store the time of this housekeeping, for ``is_due``."""
    new_time = update(AUX_TABLE).where(AUX.MT_KEY1 == HOUSE_KEEPER).values(MT_KEY2=now_ms)
    if connection.execute(new_time).rowcount == 0:
        connection.execute(insert(AUX_TABLE).values(MT_KEY1=HOUSE_KEEPER, MT_KEY2=now_ms))


def forget(connection: Connection, now_ms: int, retention_ms: int) -> None:
    """Delete the rows of transactions, write ids, write sets and versions that no open or future
    transaction can need. Rows of ended transactions are kept for at least ``retention_ms`` from
    their last heartbeat on, versions from their commit on."""
    lowest_writer, mark = _bounds(connection)
    _forget_write_set(connection, lowest_writer, mark)
    _forget_write_ids(connection, mark)
    old = T.TXN_LAST_HEARTBEAT < now_ms - retention_ms
    _forget_committed(connection, old, mark)
    _forget_aborted(connection, old)
    versions.forget_old(connection, now_ms - retention_ms)


def _bounds(connection: Connection) -> tuple[int, int]:
    """Return the lowest open transaction that may write (the next transaction number if there is
    none), and the mark: the number below which every open or later snapshot sees each transaction
    as ended."""
    lowest_writer = select(func.min(T.TXN_ID)).where(may_look(), may_write())
    query = select(
        NEXT_TXN_ID.c.NTXN_NEXT,
        lowest_writer.scalar_subquery(),
        select(func.min(T.TXN_ID)).where(may_look()).scalar_subquery(),
        select(func.min(MIN_HISTORY_LEVEL.c.MHL_MIN_OPEN_TXNID)).scalar_subquery(),
    )
    next_id, writer, *levels = connection.execute(query).one()
    mark = min(level for level in (next_id, *levels) if level is not None)
    return (next_id if writer is None else writer), mark


def _forget_write_set(connection: Connection, lowest_writer: int, mark: int) -> None:
    """Delete the rows of WRITE_SET whose commit id is below the mark, and changes of rows (not of
    the catalog) whose commit id is below ``lowest_writer``."""
    commit_id = WRITE_SET.c.WS_COMMIT_ID
    of_rows = and_(commit_id < lowest_writer, not_(is_catalog_change()))
    connection.execute(delete(WRITE_SET).where(or_(commit_id < mark, of_rows)))


def _forget_write_ids(connection: Connection, mark: int) -> None:
    """Delete the rows of TXN_TO_WRITE_ID of transactions below the mark that are not aborted."""
    txn_id = TXN_TO_WRITE_ID.c.T2W_TXNID
    aborted = select(T.TXN_ID).where(T.TXN_STATE == TxnState.ABORTED.value, T.TXN_ID < mark)
    connection.execute(delete(TXN_TO_WRITE_ID).where(txn_id < mark, txn_id.not_in(aborted)))


def _forget_committed(connection: Connection, is_old: ColumnElement[bool], mark: int) -> None:
    """Delete the rows of committed transactions that are old (``is_old``: a condition on TXNS) and
    below the mark, and that WRITE_SET does not name."""
    connection.execute(
        delete(TXNS).where(
            T.TXN_STATE == TxnState.COMMITTED.value,
            T.TXN_ID < mark,
            is_old,
            T.TXN_ID.not_in(select(WRITE_SET.c.WS_TXNID)),
        )
    )


def _forget_aborted(connection: Connection, is_old: ColumnElement[bool]) -> None:
    """Delete the rows of aborted transactions that are old (``is_old``: a condition on TXNS) and
    have neither data nor a write id, but not of compactions."""
    connection.execute(
        delete(TXNS).where(
            T.TXN_STATE == TxnState.ABORTED.value,
            T.TXN_TYPE != TxnType.COMPACTION.value,
            is_old,
            T.TXN_ID.not_in(select(TXN_COMPONENTS.c.TC_TXNID)),
            T.TXN_ID.not_in(select(TXN_TO_WRITE_ID.c.T2W_TXNID)),
        )
    )
