"""A newer number for a transaction, because Hive 3 compares transactions by time.

When a transaction of Hive 3 commits, the server looks for others that changed the same table or
partition and committed *after this one was opened*. That is too much: a transaction that waited
for their locks has seen what they did. Hive 4 can be told not to compare; Hive 3 cannot.

So a transaction gets a newer number under its locks, right before its snapshot, if others have
committed since it was opened. The first number goes on to hold the locks: if it were given up,
somebody else might get them, and commit, again and again. With the newer number the transaction
writes and commits.

* Both are kept alive together. If a call tells that one has ended, the other one is aborted
  (``Server.call``).
* COMMIT first sends a heartbeat for the first number: the locks are held, and will not time out
  before the commit. Then the newer number commits, which is the only commit point, and then the
  first.
* If the process dies in between, the first number holds the locks until it times out.
* If the reply to the COMMIT is lost, nobody ends the first number; it times out.
"""

from __future__ import annotations

from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import MetastoreError, NoSuchTxnError, TxnAbortedError, TxnError
from acidsql.metastore.hive.locking.conflicts import unseen_ids
from acidsql.metastore.hive.wire import snapshots
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.server import NAME_MAX, Server, log
from acidsql.metastore.interface import TxnType


class HiveNumbers:
    """The part of the store about numbers of transactions; ``TxnStore`` describes ``renew``."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def open(self, own: OwnTxn) -> int:
        """Open a transaction on the server, and return its number. ``own.before`` becomes what had
        committed before, over Hive 3 and unless it is READ_ONLY; otherwise None. ``own.id`` is left
        to the caller."""
        matters = self._server.features.is_hive3 and own.type is not TxnType.READ_ONLY
        before = (
            self._valid_txns_now() if matters else None
        )  # first: what commits meanwhile counts as later
        request = hive.OpenTxnRequest(
            num_txns=1,
            user=own.user[:NAME_MAX],
            hostname=own.host[:NAME_MAX],
            agentInfo="acidsql",
            txn_type=own.type.value,
        )
        number: int = self._server.call("open_txns", request).txn_ids[0]
        own.before = before
        return number

    def renew(self, txn_id: int) -> int:
        """Return the number with which a transaction goes on. Over Hive 3 this is a newer one, if
        others have committed since it was opened and it has no write id yet; the first number goes
        on to hold the locks. Otherwise it is the same."""
        own = self._server.own_txns.get(txn_id)
        if own is None or own.before is None or own.write_ids:
            return txn_id
        if not unseen_ids(own.before, self._valid_txns_now(), None):
            return txn_id
        newer = self.open(own)
        unused, own.id = own.id, newer
        self._server.own_txns[newer] = self._server.own_txns.pop(unused)
        if unused != own.holder:
            self._server.end_number(unused)
        return newer

    def _valid_txns_now(self) -> ValidTxnList:
        return snapshots.valid_txns(self._server.call("get_open_txns"), 0)

    def heartbeat(self, txn_id: int) -> None:
        """Note a sign of life of a transaction, and of the number that holds its locks. Raise
        TxnAbortedError or NoSuchTxnError if one has ended."""
        own = self._server.own_txns.get(txn_id)
        self._send_heartbeat(txn_id)
        if own is not None:
            self.need_locks(own)

    def need_open(self, txn_id: int | None) -> None:
        """Raise as ``heartbeat`` does if a transaction is not open. None, which is no
        transaction, is no error."""
        if txn_id is not None:
            self.heartbeat(txn_id)

    def need_locks(self, own: OwnTxn) -> None:
        """Send a heartbeat for the number that holds the locks, if that is another one.

        Raises:
            TxnAbortedError: It has ended, and so the transaction was aborted.
        """
        if own.holder == own.id:
            return
        try:
            self._send_heartbeat(own.holder)
        except (NoSuchTxnError, TxnAbortedError) as error:
            raise TxnAbortedError(
                f"Transaction {own.id} was aborted, because transaction {own.holder}, which held "
                f"its locks, has ended. {error.message}",
                txnId=own.id,
            ) from error

    def _send_heartbeat(self, number: int) -> None:
        self._server.call("heartbeat", hive.HeartbeatRequest(txnid=number))

    def release(self, own: OwnTxn) -> None:
        """Give up the locks of a transaction that has ended, if another number holds them. If the
        server does not answer, they time out."""
        if own.holder == own.id:
            return
        try:
            self._server.call("commit_txn", hive.CommitTxnRequest(txnid=own.holder))
        except MetastoreError as error:
            log.warning("Transaction %d holds its locks until it times out: %s", own.holder, error)
        except TxnError:
            pass  # others have ended it, and with it its locks
