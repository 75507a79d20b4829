"""Forgetting: rows that no transaction, open or yet to come, can ask for any more.

*The mark.* MIN_HISTORY_LEVEL has for each open transaction X the lowest number that was open when X
began, M(X) ≤ X. Take a snapshot S after X began, while X is open. What is open in S was open when X
began already, or began after X; so no number below M(X) is open in S, nor above its high-water
mark: S has it as committed or as aborted, for good. The mark is the least M of all open
transactions, or the next number where nothing is open. So below it every snapshot that an open
transaction took, or that was taken while a lease is open, agrees with every one that will be taken.
READ_ONLY transactions (leases) have an M of their own and so keep what their old snapshots hide;
as they write nothing, they lower nobody else's.

*TXN_TO_WRITE_ID.* A write id without a row counts as visible (``write_ids``). Rows of committed
transactions below the mark are visible in all those snapshots: they can go. Rows of aborted ones
must stay, wherever they are, even when the compactor has deleted what they wrote and
``forget_aborted`` was told so: a writer that does not know that it was aborted may publish its
directory after that, nobody looks for it again, and it would be seen as soon as the row goes,
however long one waits with that. Those of open ones are not below the mark. (Hive stops at the
lowest aborted transaction, since it reads a table's high-water mark from the rows that are left.
Ours is the name's counter, which is never forgotten.)

*WRITE_SET.* An open transaction that may write asks for rows with a commit id from its own number
on (``conflicts``), so what lies below the lowest of them can go. For changes of the catalog those
that only read ask, too (``catalog_history``).

*TXNS.* A committed row says what became of the transaction, and who it was if it is another's
rival: it goes when it is old, below the mark, and no row of WRITE_SET refers to it. An aborted one
is an exception in snapshots: it goes when it is old and nothing that it wrote can be there. What a
compaction writes has no write id of its own, but is hidden by the number of its transaction
(``base_5_v17``): so an aborted compaction's row stays. A transaction that took a compaction and
published nothing should rather commit.
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

from acidsql.metastore.embedded.catalog_history import is_catalog_change
from acidsql.metastore.embedded.schema import (
    AUX_TABLE,
    MIN_HISTORY_LEVEL,
    NEXT_TXN_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from acidsql.metastore.interface import TxnState, TxnType

HOUSE_KEEPER = "HouseKeeper"  # Hive's key in AUX_TABLE

T, AUX = TXNS.c, AUX_TABLE.c


def is_due(connection: Connection, now_ms: int, interval_ms: int) -> bool:
    """True if nobody has done it for so long."""
    found = select(AUX.MT_KEY2).where(AUX.MT_KEY1 == HOUSE_KEEPER)
    last_ms = connection.execute(found).scalar()
    # A time in the future is no reason to wait for it: the clock was set back.
    return last_ms is None or not 0 <= now_ms - last_ms < interval_ms


def note(connection: Connection, now_ms: int) -> None:
    """Remember that it is done now."""
    again = update(AUX_TABLE).where(AUX.MT_KEY1 == HOUSE_KEEPER).values(MT_KEY2=now_ms)
    if connection.execute(again).rowcount == 0:
        connection.execute(insert(AUX_TABLE).values(MT_KEY1=HOUSE_KEEPER, MT_KEY2=now_ms))


def forget(connection: Connection, now_ms: int, retention_ms: int) -> None:
    """Delete what nobody can ask for any more; see above for what that is."""
    lowest_writer, mark = _bounds(connection)
    _forget_write_set(connection, lowest_writer, mark)
    _forget_write_ids(connection, mark)
    old = T.TXN_LAST_HEARTBEAT < now_ms - retention_ms
    _forget_committed(connection, old, mark)
    _forget_aborted(connection, old)


def _bounds(connection: Connection) -> tuple[int, int]:
    """The lowest open transaction that may write, and the mark; the next number if none is."""
    is_open = T.TXN_STATE == TxnState.OPEN.value
    lowest_writer = select(func.min(T.TXN_ID)).where(is_open, T.TXN_TYPE != TxnType.READ_ONLY.value)
    found = select(
        NEXT_TXN_ID.c.NTXN_NEXT,
        lowest_writer.scalar_subquery(),
        select(func.min(T.TXN_ID)).where(is_open).scalar_subquery(),
        select(func.min(MIN_HISTORY_LEVEL.c.MHL_MIN_OPEN_TXNID)).scalar_subquery(),
    )
    next_id, writer, *levels = connection.execute(found).one()
    mark = min(level for level in (next_id, *levels) if level is not None)
    return (next_id if writer is None else writer), mark


def _forget_write_set(connection: Connection, lowest_writer: int, mark: int) -> None:
    commit_id = WRITE_SET.c.WS_COMMIT_ID
    of_rows = and_(commit_id < lowest_writer, not_(is_catalog_change()))
    connection.execute(delete(WRITE_SET).where(or_(commit_id < mark, of_rows)))


def _forget_write_ids(connection: Connection, mark: int) -> None:
    txn_id = TXN_TO_WRITE_ID.c.T2W_TXNID
    aborted = select(T.TXN_ID).where(T.TXN_STATE == TxnState.ABORTED.value, T.TXN_ID < mark)
    connection.execute(delete(TXN_TO_WRITE_ID).where(txn_id < mark, txn_id.not_in(aborted)))


def _forget_committed(connection: Connection, old: ColumnElement[bool], mark: int) -> None:
    connection.execute(
        delete(TXNS).where(
            T.TXN_STATE == TxnState.COMMITTED.value,
            T.TXN_ID < mark,
            old,
            T.TXN_ID.not_in(select(WRITE_SET.c.WS_TXNID)),
        )
    )


def _forget_aborted(connection: Connection, old: ColumnElement[bool]) -> None:
    connection.execute(
        delete(TXNS).where(
            T.TXN_STATE == TxnState.ABORTED.value,
            T.TXN_TYPE != TxnType.COMPACTION.value,
            old,
            T.TXN_ID.not_in(select(TXN_COMPONENTS.c.TC_TXNID)),
            T.TXN_ID.not_in(select(TXN_TO_WRITE_ID.c.T2W_TXNID)),
        )
    )
