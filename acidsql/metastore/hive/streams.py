"""Runs of streams in a Hive Metastore: who may note batches. ``ledger`` has the entries."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from socket import gethostname
from typing import Any

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore.hive.catalog.ledger import (
    HiveLedger,
    NotedEntry,
    commit_property,
    entry_state,
    view_entry,
)
from acidsql.metastore.hive.catalog.views import HiveViews
from acidsql.metastore.hive.commit_call import send_commit
from acidsql.metastore.hive.locking.locks import HiveLocks, worker_text
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.txns import HiveTxns
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server, log
from acidsql.metastore.interface import TxnType
from acidsql.metastore.stream_rules import taken_over_error
from acidsql.metastore.streams import Batch, NextBatch, StreamEntry


class HiveStreams:
    """The part of the store about runs of streams; ``StreamLedger`` describes the methods."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        numbers: HiveNumbers,
        locks: HiveLocks,
        views: HiveViews,
        ledger: HiveLedger,
        txns: HiveTxns,
    ) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers
        self._locks, self._views, self._ledger, self._txns = locks, views, ledger, txns

    def take_over_stream(self, batch: Batch, after: Batch) -> None:
        """Give the entry the run of ``batch``, by the COMMIT of a transaction of its own; all else
        stays. Raise StreamError STREAM_TAKEN_OVER if there is no entry, or if it has not the
        version of ``after`` and the run of ``after`` or of ``batch``; raise LockTimeoutError if
        others hold it."""
        place = self._ledger.entry_place(batch.app_id, batch.sink)
        with self._with_entry_locked(place.view, batch) as own:
            raw = self._raw_tables.find(place.view)
            entry = view_entry(raw, batch.sink)
            # The last run, or this one if the reply to an earlier call was lost.
            accepted_states = (entry_state(after), (after.version, batch.run_id))
            if entry is None or entry_state(entry.batch) not in accepted_states:
                raise taken_over_error(batch, entry)
            now = replace(entry, batch=replace(entry.batch, run_id=batch.run_id))
            send_commit(self._server.client, own, commit_property(raw, now))

    def end_other_runs(self, batch: Batch) -> Sequence[int]:
        """Abort the transactions with locks that work for the batch's application, sink and query,
        but for another run. Return their numbers, ascending, also of those that have ended
        meanwhile."""
        other_txns = self._locks.txns_of_other_runs(batch)
        for txn_id in other_txns:
            with suppress(TxnError):  # it has ended meanwhile
                self._txns.abort_txn(txn_id, f"the run {batch.run_id} of its stream has begun")
        return other_txns

    def forget_stream(self, app_id: str, sink: str | None = None) -> int:
        """Delete the entries of an application, or its entry for one sink, and return how many of
        them this call has deleted. Without ``sink``, its entries whose tables have gone are
        deleted, too, but not counted. Raise LockTimeoutError if others hold one."""
        forgotten = 0
        for noted in self._ledger.entries(app_id):
            if sink is None or (noted.is_valid and noted.entry.batch.sink == sink):
                forgotten += self._forget_noted(noted) and noted.is_valid
        return forgotten

    def lock_next_entry(self, own: OwnTxn, new: NextBatch) -> Any:
        """Lock the entry of a stream, and return the property (``CommitTxnKeyValue``) that COMMIT
        must set, so that it notes the batch. The lock lasts until the transaction ends. If there is
        no entry, an empty one is made; before, this user's entries about tables that have gone are
        deleted.

        Raises:
            StreamError: STREAM_TAKEN_OVER: the entry's version and run are not those of
                ``new.after``.
            LockTimeoutError: Others hold the lock.
        """
        batch = new.batch
        place = self._ledger.entry_place(batch.app_id, batch.sink)
        self._ledger.lock_entry(own, place.view)
        raw = self._raw_tables.find(place.view)
        entry = view_entry(raw, batch.sink)
        if entry_state(None if entry is None else entry.batch) != entry_state(new.after):
            raise taken_over_error(batch, entry)
        if raw is None:
            self._forget_void()
            raw = self._ledger.make_entry(place)
        now_ms = int(time.time() * 1000)
        return commit_property(raw, StreamEntry(batch, own.id, now_ms, own.user, own.host))

    def _forget_void(self) -> None:
        """Delete this user's entries, of all applications, about tables that have gone. It does not
        wait for locks; the first failure ends it, and is only logged.

        Others' tables may only be hidden from this user. A table that others rename meanwhile may
        be in no list, so a second look must agree.
        """
        try:
            looks = [
                {
                    noted
                    for noted in self._ledger.entries()
                    if not noted.is_valid and noted.owner == self._server.user
                }
                for _ in range(2)
            ]
            for noted in set.intersection(*looks):
                self._forget_noted(noted, pauses_s=(0,))
        except Exception as error:  # the batch that is noted does not depend on it
            log.warning("Entries of the ledger of streams could not be forgotten: %s", error)

    def _forget_noted(self, noted: NotedEntry, pauses_s: Sequence[float] | None = None) -> bool:
        """Delete an entry, in a transaction that locks it; return False if it is gone already.
        Raise LockTimeoutError if others still hold it after the pauses, by default a minute."""
        with self._with_entry_locked(
            noted.view, replace(noted.entry.batch, run_id=""), pauses_s
        ) as own:
            if self._raw_tables.find(noted.view) is None:
                return False  # another session was faster
            self._views.drop_view(noted.view, txn_id=own.id)
            return True

    @contextmanager
    def _with_entry_locked(
        self, view: TableName, batch: Batch, pauses_s: Sequence[float] | None = None
    ) -> Iterator[OwnTxn]:
        """Run a block in a transaction that has locked an entry and is aborted at the end, unless
        the block has committed it. Raise LockTimeoutError if others still hold the entry after the
        pauses, by default a minute. If its process dies, the next run of the stream of ``batch``
        ends it, and need not wait for the lock."""
        own = OwnTxn(
            0, self._server.user, gethostname(), "a stream's entry", type=TxnType.READ_ONLY
        )
        own.works_for = worker_text(batch)
        own.id = own.holder = self._numbers.open(own)
        try:
            self._ledger.lock_entry(own, view, pauses_s)
            yield own
        finally:
            self._server.end_number(own.id)
