"""Runs of streams in a Hive Metastore: who may note batches. ``ledger`` has the entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from socket import gethostname

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore.hive.ledger import entry_in, seen, setting
from acidsql.metastore.hive.locks import working_for
from acidsql.metastore.hive.own_txns import OwnTxn
from acidsql.metastore.hive.txns import HiveTxns
from acidsql.metastore.interface import TxnType
from acidsql.metastore.stream_rules import taken_over
from acidsql.metastore.streams import Batch


class HiveStreams(HiveTxns):
    """The part of the store about streams; ``StreamLedger`` describes the methods."""

    def take_over_stream(self, batch: Batch, after: Batch) -> None:
        place = self._place(batch.app_id, batch.sink)
        with self._alone(place.view, batch) as own:
            raw = self._raw(place.view)
            entry = entry_in(raw, batch.sink)
            # The last run, or this one if the reply to an earlier call was lost.
            known = (seen(after), (after.version, batch.run_id))
            if entry is None or seen(entry.batch) not in known:
                raise taken_over(batch, entry)
            now = replace(entry, batch=replace(entry.batch, run_id=batch.run_id))
            self._send_commit(own, setting(raw, now))

    def end_other_runs(self, batch: Batch) -> Sequence[int]:
        others = self._working_for_others(batch)
        for txn_id in others:
            with suppress(TxnError):  # it has ended meanwhile
                self.abort_txn(txn_id, f"the run {batch.run_id} of its stream has begun")
        return others

    def forget_stream(self, app_id: str, sink: str | None = None) -> int:
        forgotten = 0
        for view, entry in list(self._entries(app_id)):
            if sink is None or (entry is not None and entry.batch.sink == sink):
                forgotten += self._forget(view) and entry is not None
        return forgotten

    def _forget(self, view: TableName) -> bool:
        with self._alone(view):
            if self._raw(view) is None:
                return False  # another session was faster
            self.drop_view(view)
            return True

    @contextmanager
    def _alone(self, view: TableName, batch: Batch | None = None) -> Iterator[OwnTxn]:
        """A transaction that has locked an entry, and writes nothing else. If its process dies, the
        next run of the stream of ``batch`` ends it, and need not wait for the lock."""
        own = OwnTxn(0, self._user, gethostname(), "a stream's entry", type=TxnType.READ_ONLY)
        if batch is not None:
            own.works_for = working_for(batch)
        own.id = own.holder = self._open(own)
        try:
            self._lock_entry(own, view)
            yield own
        finally:
            self._end_number(own.id)
