"""Compactions: ``CompactionQueue`` over Hive's COMPACTION_QUEUE and COMPLETED_COMPACTIONS.

Only one store transaction writes at a time, so no two workers take the same INITIATED entry. All
that a worker does with its entry later, up to the commit, first checks that the entry is still
WORKING for the worker's transaction.

Source: Hive ``CompactionTxnHandler`` (3.1), ``CompactFunction``, ``FindNextCompactFunction``,
``ReadyToCleanHandler``, ``MarkCleanedFunction`` (4.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    and_,
    delete,
    distinct,
    func,
    insert,
    or_,
    select,
    true,
    type_coerce,
)

from acidsql.acid.table import TableName
from acidsql.metastore.compaction_queue import (
    Candidate,
    CompactionInfo,
    CompactionRequest,
    CompactionState,
    Enqueued,
    HistoryRetention,
)
from acidsql.metastore.embedded.database.engine import Store
from acidsql.metastore.embedded.database.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXNS,
)
from acidsql.metastore.embedded.records import compaction_history, compaction_rows, housekeeping
from acidsql.metastore.embedded.records.compaction_rows import CQ
from acidsql.metastore.embedded.records.write_ids import is_of_table
from acidsql.metastore.embedded.txns import end, need_open
from acidsql.metastore.interface import TxnState

CC, CTC, TC, T = COMPLETED_COMPACTIONS.c, COMPLETED_TXN_COMPONENTS.c, TXN_COMPONENTS.c, TXNS.c
INITIATED, WORKING = CompactionState.INITIATED.value, CompactionState.WORKING.value
_AT_ONCE = 1000  # numbers in one statement: databases have a limit


class EmbeddedCompactions:
    """The ``CompactionQueue`` of the embedded metastore; the methods are described there."""

    _store: Store

    # ── the queue ────────────────────────────────────────────────────────────────────────────

    def compact(self, request: CompactionRequest) -> Enqueued:
        """Queue a request for a compaction, and return the new entry. If the table or partition has
        an INITIATED or WORKING entry of any type, nothing is queued, and the answer is this entry,
        with ``accepted`` false."""
        with self._store.write() as connection:
            is_of_place = compaction_rows.is_about(
                COMPACTION_QUEUE, "CQ", request.table, request.partition
            )
            unfinished = select(CQ.CQ_ID, CQ.CQ_STATE).where(
                is_of_place, CQ.CQ_STATE.in_((INITIATED, WORKING))
            )
            running = connection.execute(unfinished.order_by(CQ.CQ_ID)).first()
            if running is not None:
                return Enqueued(running.CQ_ID, CompactionState(running.CQ_STATE), accepted=False)
            new = compaction_rows.new_entry_values(connection, "CQ", request, request.why)
            new |= {"CQ_STATE": INITIATED, "CQ_ENQUEUE_TIME": self._store.now_ms(connection)}
            connection.execute(insert(COMPACTION_QUEUE).values(new))
            return Enqueued(new["CQ_ID"], CompactionState.INITIATED, accepted=True)

    def take_next(
        self,
        txn_id: int,
        worker_id: str,
        *,
        pool: str | None = None,
        pool_timeout_ms: int | None = None,
        only: int | None = None,
    ) -> CompactionInfo | None:
        """Give the worker the oldest INITIATED entry of its pool, or the entry ``only`` if that is
        INITIATED, in whatever pool. The entry becomes WORKING for this transaction, and is returned
        as it is then; None if there is none. A worker without a pool also gets what has waited in
        any pool for longer than ``pool_timeout_ms``. Raise TxnAbortedError or NoSuchTxnError if its
        transaction has ended."""
        with self._store.write() as connection:
            need_open(connection, txn_id)
            now_ms = self._store.now_ms(connection)
            is_eligible = (
                _is_for_pool(pool, pool_timeout_ms, now_ms) if only is None else CQ.CQ_ID == only
            )
            number = _oldest(connection, is_eligible)
            if number is None:
                return None
            compaction_rows.set_columns(
                connection,
                number,
                CQ_STATE=WORKING,
                CQ_START=now_ms,
                CQ_WORKER_ID=compaction_rows.cut_to_column(worker_id, CQ.CQ_WORKER_ID),
                CQ_TXN_ID=txn_id,
            )
            query = select(COMPACTION_QUEUE).where(CQ.CQ_ID == number)
            return compaction_rows.info_of_row(connection.execute(query).one(), "CQ")

    def begin_compaction(self, compaction_id: int, txn_id: int, highest_write_id: int) -> None:
        """Do nothing: ``commit_txn`` records the compaction."""

    def note_progress(self, compaction_id: int, txn_id: int, progress: str) -> None:
        """Note what the worker does now, cut to the column's width, if the entry is still WORKING
        for this transaction; otherwise do nothing."""
        with self._store.write() as connection:
            if compaction_rows.working_entry(connection, compaction_id, txn_id) is not None:
                noted = compaction_rows.cut_to_column(progress, CQ.CQ_HADOOP_JOB_ID)
                compaction_rows.set_columns(connection, compaction_id, CQ_HADOOP_JOB_ID=noted)

    def has_work(self, *, pool: str | None = None, pool_timeout_ms: int | None = None) -> bool:
        """Whether ``take_next`` with this pool and time-out would find an entry."""
        with self._store.read() as connection:
            is_eligible = _is_for_pool(pool, pool_timeout_ms, self._store.now_ms(connection))
            return _oldest(connection, is_eligible) is not None

    def mark_failed(self, compaction_id: int, txn_id: int, message: str) -> None:
        """Move an entry that is WORKING for this transaction into the history as FAILED, with this
        message. Any other entry stays as it is."""
        self._end_working_entry(compaction_id, txn_id, CompactionState.FAILED, message)

    def mark_refused(self, compaction_id: int, txn_id: int, message: str) -> None:
        """Move an entry that is WORKING for this transaction into the history as REFUSED (nothing
        to compact), with this message. Any other entry stays as it is."""
        self._end_working_entry(compaction_id, txn_id, CompactionState.REFUSED, message)

    def _end_working_entry(
        self, compaction_id: int, txn_id: int, state: CompactionState, message: str
    ) -> None:
        """Move an entry that is WORKING for this transaction into the history, in this state and
        with this message. Any other entry stays as it is."""
        with self._store.write() as connection:
            row = compaction_rows.working_entry(connection, compaction_id, txn_id)
            if row is not None:
                now_ms = self._store.now_ms(connection)
                compaction_rows.end(connection, row, state, now_ms, message)

    def queue_again(self, compaction_id: int, txn_id: int) -> None:
        """Make an entry that is WORKING for this transaction INITIATED again, in its old place of
        the queue. Any other entry stays as it is. The transaction stays open."""
        with self._store.write() as connection:
            if compaction_rows.working_entry(connection, compaction_id, txn_id) is not None:
                compaction_rows.requeue(connection, compaction_id)

    def revoke(self, worker_timeout_ms: int) -> list[int]:
        """Queue WORKING entries again whose transaction has ended, or that began longer ago than
        the time-out; transactions of the latter are aborted. Return the entries' numbers."""
        with self._store.read() as connection:  # usually there are none: do not block writers
            if not _lost_entries(connection, self._store.now_ms(connection) - worker_timeout_ms):
                return []
        with self._store.write() as connection:
            oldest_ms = self._store.now_ms(connection) - worker_timeout_ms
            lost = _lost_entries(connection, oldest_ms)
            for number in lost:
                compaction_rows.requeue(connection, number)
            slow = sorted({txn_id for txn_id in lost.values() if txn_id is not None})
            reason = "the compaction took longer than hive.compactor.worker.timeout"
            end(connection, slow, TxnState.ABORTED, reason)
            return list(lost)

    def did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        """Insert an entry DID_NOT_INITIATE with this message, cut to 4000 characters, into the
        history, unless the newest entry of the table or partition there is such a one with the same
        message."""
        is_of_place = compaction_rows.is_about(
            COMPLETED_COMPACTIONS, "CC", request.table, request.partition
        )
        newest = (
            select(CC.CC_STATE, CC.CC_ERROR_MESSAGE).where(is_of_place).order_by(CC.CC_ID.desc())
        )
        state = CompactionState.DID_NOT_INITIATE.value
        with self._store.write() as connection:
            last_entry = connection.execute(newest.limit(1)).first()
            shown = compaction_rows.cut_to_column(message, CC.CC_ERROR_MESSAGE) or None
            if last_entry is not None and tuple(last_entry) == (state, shown):
                return
            now_ms = self._store.now_ms(connection)
            new = compaction_rows.new_entry_values(connection, "CC", request, message)
            new |= {"CC_STATE": state, "CC_ENQUEUE_TIME": now_ms, "CC_END": now_ms}
            connection.execute(insert(COMPLETED_COMPACTIONS).values(new))

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, CompactionState | None]:
        """Move the INITIATED ones of these entries into the history as ABORTED. Return the state of
        each entry before this, by number; None if there is no such entry."""
        with self._store.write() as connection:
            now_ms = self._store.now_ms(connection)
            return {number: _abort(connection, number, now_ms) for number in dict.fromkeys(ids)}

    def compactions(self) -> list[CompactionInfo]:
        """Return all entries of the queue and the history, the most recent start, end or commit
        first. Directories of dropped tables are in the queue, too."""
        with self._store.read() as connection:
            entries = [
                compaction_rows.info_of_row(row, prefix)
                for table, prefix in ((COMPACTION_QUEUE, "CQ"), (COMPLETED_COMPACTIONS, "CC"))
                for row in connection.execute(select(table))
            ]
        return sorted(entries, key=_newest_first)

    # ── cleaning ─────────────────────────────────────────────────────────────────────────────

    def ready_to_clean(self, retention_ms: int) -> list[CompactionInfo]:
        """Return the compactions whose old files no open transaction can read, by table, partition
        and highest write id: those that committed at least ``retention_ms`` ago, and whose pause
        after a failure is over. SESSION transactions, which read nothing, do not count. Directories
        of dropped tables are not among them."""
        lowest_open = select(func.min(T.TXN_ID)).where(housekeeping.may_look())
        with self._store.read() as connection:
            now_ms = self._store.now_ms(connection)
            lowest = connection.execute(lowest_open).scalar()
            # Hive looks at one of the two times only: after a failure the pause, else the other.
            paused_until = CQ.CQ_CLEANER_START + CQ.CQ_RETRY_RETENTION
            query = select(COMPACTION_QUEUE).where(
                compaction_rows.is_cleanable(),
                true() if lowest is None else CQ.CQ_NEXT_TXN_ID <= lowest,
                CQ.CQ_COMMIT_TIME + retention_ms <= now_ms,
                or_(CQ.CQ_RETRY_RETENTION == 0, paused_until <= now_ms),
            )
            ready = [compaction_rows.info_of_row(row, "CQ") for row in connection.execute(query)]
        return sorted(
            ready,
            key=lambda entry: (
                *_by_name(entry.table, entry.partition),
                entry.highest_write_id or 0,
            ),
        )

    def mark_compaction_cleaned(self, compaction_id: int) -> None:
        """Move a compaction whose old files are deleted into the history as SUCCEEDED, and delete
        the rows of COMPLETED_TXN_COMPONENTS that it has compacted: of its table or partition, up to
        its highest write id, or without a write id. Nothing happens if the entry is not ready for
        cleaning."""
        with self._store.write() as connection:
            row = compaction_rows.cleanable_entry(connection, compaction_id)
            if row is None:
                return
            name = TableName(row.CQ_DATABASE, row.CQ_TABLE)
            is_of_place = compaction_rows.is_about(
                COMPLETED_TXN_COMPONENTS, "CTC", name, row.CQ_PARTITION
            )
            # A transaction without a write id has written nothing, so its rows can go, too.
            is_compacted = or_(
                CTC.CTC_WRITEID <= row.CQ_HIGHEST_WRITE_ID, CTC.CTC_WRITEID.is_(None)
            )
            connection.execute(delete(COMPLETED_TXN_COMPONENTS).where(is_of_place, is_compacted))
            now_ms = self._store.now_ms(connection)
            compaction_rows.end(connection, row, CompactionState.SUCCEEDED, now_ms)

    def retry_cleaning_later(
        self, compaction_id: int, retention_ms: int, max_attempts: int, message: str
    ) -> None:
        """Note that cleaning failed, and append the message: the next try is after
        ``retention_ms``, after each further failure twice as late. At failure number
        ``max_attempts`` + 1 the entry moves into the history as FAILED, with this message alone.
        Nothing happens if the entry is not ready for cleaning."""
        with self._store.write() as connection:
            row = compaction_rows.cleanable_entry(connection, compaction_id)
            if row is None:
                return
            now_ms, first_ms = self._store.now_ms(connection), max(1, retention_ms)
            # As in Hive, the number of attempts follows from the retention: 1, 2, 4, … × the first.
            attempts = (row.CQ_RETRY_RETENTION // first_ms).bit_length()
            if attempts >= max_attempts:
                compaction_rows.end(connection, row, CompactionState.FAILED, now_ms, message)
                return
            compaction_rows.set_columns(
                connection,
                compaction_id,
                CQ_CLEANER_START=now_ms,
                CQ_RETRY_RETENTION=first_ms << attempts,
                CQ_ERROR_MESSAGE=compaction_rows.append_message(row.CQ_ERROR_MESSAGE, message),
            )

    # ── what might need a compaction ─────────────────────────────────────────────────────────

    def candidates(self) -> list[Candidate]:
        """Return the tables and partitions that have changed since their last compaction, or have
        data of aborted transactions, by name: one Candidate for each, which tells how long ago the
        last change was, how many such transactions there are, and how long ago the oldest began."""
        where = (CTC.CTC_DATABASE, CTC.CTC_TABLE, CTC.CTC_PARTITION)
        changed = select(*where, func.max(CTC.CTC_TIMESTAMP)).group_by(*where)
        place = (TC.TC_DATABASE, TC.TC_TABLE, TC.TC_PARTITION)
        aborted = (
            select(*place, func.count(distinct(TC.TC_TXNID)), func.min(T.TXN_STARTED))
            .join_from(TXN_COMPONENTS, TXNS)
            .where(_is_aborted_writer(), TC.TC_TABLE.is_not(None))
            .group_by(*place)
        )
        with self._store.read() as connection:
            now_ms, now = self._store.now_ms(connection), _database_time(connection)
            candidates: dict[tuple[TableName, str | None], Candidate] = {}
            for database, table, partition, last in connection.execute(
                changed.where(CTC.CTC_TABLE.is_not(None))
            ):
                name = TableName(database, table)
                quiet_ms = max(0, int((now - last).total_seconds() * 1000))
                candidates[name, partition] = Candidate(name, partition, quiet_ms=quiet_ms)
            for database, table, partition, count, began_ms in connection.execute(aborted):
                name = TableName(database, table)
                candidate = candidates.get((name, partition), Candidate(name, partition))
                candidates[name, partition] = replace(
                    candidate, aborted_txns=count, oldest_abort_ms=now_ms - began_ms
                )
        return sorted(
            candidates.values(),
            key=lambda candidate: _by_name(candidate.table, candidate.partition),
        )

    def aborted_write_ids(self, table: TableName) -> list[int]:
        """Return the write ids of aborted transactions that may still have data in a table,
        ascending."""
        query = select(TC.TC_WRITEID).distinct().join_from(TXN_COMPONENTS, TXNS)
        query = query.where(_is_aborted_writer(), is_of_table(TXN_COMPONENTS, "TC", table))
        with self._store.read() as connection:
            return list(connection.execute(query.order_by(TC.TC_WRITEID)).scalars())

    def forget_aborted(self, table: TableName, write_ids: Sequence[int]) -> None:
        """Delete the rows of TXN_COMPONENTS that say that these write ids changed the table, if
        their transactions are aborted."""
        aborted = select(T.TXN_ID).where(T.TXN_STATE == TxnState.ABORTED.value)
        conditions = (is_of_table(TXN_COMPONENTS, "TC", table), TC.TC_TXNID.in_(aborted))
        with self._store.write() as connection:
            for first in range(0, len(write_ids), _AT_ONCE):
                is_listed = TC.TC_WRITEID.in_(write_ids[first : first + _AT_ONCE])
                connection.execute(delete(TXN_COMPONENTS).where(*conditions, is_listed))

    def now_ms(self) -> int:
        """Return the store's time, in milliseconds since the epoch."""
        with self._store.read() as connection:
            return self._store.now_ms(connection)

    def purge_compaction_history(self, keep: HistoryRetention) -> None:
        """Delete the entries of the history that ``keep`` does not keep. Writers are blocked only
        if there are such entries."""
        with self._store.read() as connection:  # usually there are none: do not block writers
            now_ms = self._store.now_ms(connection)
            if not compaction_history.outdated_entries(connection, keep, now_ms):
                return
        with self._store.write() as connection:
            now_ms = self._store.now_ms(connection)
            outdated = compaction_history.outdated_entries(connection, keep, now_ms)
            compaction_history.forget(connection, outdated)


def _database_time(connection: Connection) -> datetime:
    """Return the database's time, without a zone, as in CTC_TIMESTAMP: UTC on SQLite, elsewhere the
    time in the connection's time zone. It is not the store's clock."""
    is_sqlite = connection.dialect.name == "sqlite"
    clock = func.current_timestamp() if is_sqlite else func.localtimestamp()
    now: datetime = connection.execute(select(type_coerce(clock, DateTime))).scalar_one()
    return now


def _is_for_pool(pool: str | None, pool_timeout_ms: int | None, now_ms: int) -> ColumnElement[bool]:
    """Make the condition that a worker of this pool may take an entry. The case of the pool's name
    does not count. Without a pool, a worker takes entries without one and, unless the time-out is
    None, what has waited in any pool for longer than the time-out."""
    if pool is not None:
        return CQ.CQ_POOL_NAME == compaction_rows.pool_name(pool)
    of_none = CQ.CQ_POOL_NAME.is_(None)
    if pool_timeout_ms is None:
        return of_none
    return or_(of_none, CQ.CQ_ENQUEUE_TIME < now_ms - pool_timeout_ms)


def _oldest(connection: Connection, is_eligible: ColumnElement[bool]) -> int | None:
    """Return the number of the oldest INITIATED entry for which the condition holds, or None."""
    query = select(func.min(CQ.CQ_ID)).where(CQ.CQ_STATE == INITIATED, is_eligible)
    return connection.execute(query).scalar()


def _lost_entries(connection: Connection, oldest_ms: int) -> dict[int, int | None]:
    """Return the WORKING entries without a living worker, by number: number → None if its
    transaction has ended or is unknown; → the open transaction if it took the entry before
    ``oldest_ms``."""
    query = (
        select(CQ.CQ_ID, CQ.CQ_TXN_ID, CQ.CQ_START, T.TXN_STATE)
        .outerjoin_from(COMPACTION_QUEUE, TXNS, T.TXN_ID == CQ.CQ_TXN_ID)
        .where(CQ.CQ_STATE == WORKING)
        .order_by(CQ.CQ_ID)
    )
    lost: dict[int, int | None] = {}
    for number, txn_id, began_ms, state in connection.execute(query):
        if state != TxnState.OPEN.value:
            lost[number] = None
        elif began_ms < oldest_ms:
            lost[number] = txn_id
    return lost


def _abort(connection: Connection, number: int, now_ms: int) -> CompactionState | None:
    """Move an INITIATED entry of the queue into the history as ABORTED; any other entry stays.
    Return its state before, also of an entry of the history; None if there is no such entry."""
    queued = select(COMPACTION_QUEUE).where(CQ.CQ_ID == number)
    row = connection.execute(queued).first()
    if row is None:
        letter = connection.execute(select(CC.CC_STATE).where(CC.CC_ID == number)).scalar()
        return None if letter is None else CompactionState(letter)
    state = CompactionState(row.CQ_STATE)
    if state is CompactionState.INITIATED:
        compaction_rows.end(connection, row, CompactionState.ABORTED, now_ms)
    return state


def _is_aborted_writer() -> ColumnElement[bool]:
    """Make the condition, on TXNS and TXN_COMPONENTS, that a transaction was aborted and had a
    write id; without one it wrote nothing."""
    return and_(T.TXN_STATE == TxnState.ABORTED.value, TC.TC_WRITEID.is_not(None))


def _by_name(table: TableName, partition: str | None) -> tuple[str, str, str]:
    """Return the sort key: database, table, partition ("" for None)."""
    return table.database, table.name, partition or ""


def _newest_first(entry: CompactionInfo) -> tuple[int, int, int]:
    """Return the sort key: the most recent end, start or commit first, then in the order in which
    the entries were queued."""
    times = (entry.ended_ms, entry.started_ms, entry.committed_ms)
    return -max(time or 0 for time in times), entry.enqueued_ms or 0, entry.id
