"""The call by which a transaction commits. It is sent again if its reply is lost."""

from __future__ import annotations

import time
from typing import Any

from acidsql.errors import MetastoreError, NoSuchTxnError, TxnAbortedError
from acidsql.metastore.hive.locking.conflicts import converted_conflict
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn

_PAUSES_S = (0.2, 1.0, 3.0)  # before COMMIT is sent again


def send_commit(client: Client, own: OwnTxn, entry: Any = None) -> None:
    """Send COMMIT, again if the reply is lost, at most three times and until the address's
    time-out: for the server, a second COMMIT is a success. If the server does not know the
    transaction then, that counts as a success if it has no write id and no ``entry``.

    ``entry``: the property that notes a batch of a stream, or None.

    Raises:
        MetastoreError: The outcome is not known.
        WriteConflictError: The server has aborted the transaction because of a conflict.
        TxnAbortedError, NoSuchTxnError: The transaction has ended otherwise.
    """
    # The server's own comparison, by time, is needed only if locks let others change the same.
    request = hive.CommitTxnRequest(
        txnid=own.id, keyValue=entry, exclWriteEnabled=own.excludes, txn_type=own.type.value
    )
    lost: MetastoreError | None = None
    end = time.monotonic() + client.address.timeout_s
    for pause_s in (*_PAUSES_S, None):
        try:
            client.call("commit_txn", request, repeats=0)
            return
        except MetastoreError as error:
            lost = error
            if pause_s is None or time.monotonic() >= end:
                raise
            time.sleep(pause_s)
        except TxnAbortedError as error:
            raise converted_conflict(own, error) from error
        except NoSuchTxnError:
            if lost is None:
                raise
            if own.write_ids or entry is not None:
                raise lost from None  # committed and forgotten, or lost with the database
            return
