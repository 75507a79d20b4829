"""What one of several processes does that use a store as fast as they can."""

from pathlib import Path

from contract_base import INSERT, T, begin, shared_read

from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.settings import Settings
from acidsql.txn import TxnManager

LOCK = LockComponent(LockType.EXCL_WRITE, T.database, T.name, None, Operation.UPDATE)
EAGER = Settings.of({"acidsql.lock.poll.interval": "100ms"})


def take_turns(url: str, counter: str, rounds: int) -> list[tuple[int, int]]:
    """Transactions one after the other; each adds one to a file, under the table's lock."""
    store = EmbeddedMetastore(url, warehouse="/wh")
    manager = TxnManager(store, EAGER, user="u", host="h")
    done = []
    for _ in range(rounds):
        with manager.open() as txn:
            txn.lock([LOCK])
            # Read, then write: two inside at once would lose a count.
            Path(counter).write_text(str(int(Path(counter).read_text()) + 1))
            done.append((txn.id, txn.write_id(T)))
            txn.commit()
    manager.close()
    store.close()
    return done


def rush(url: str, rounds: int) -> list[tuple[int, int, bool]]:
    """Transactions that need not wait for each other; every fifth is aborted."""
    store = EmbeddedMetastore(url, warehouse="/wh")
    done = []
    for number in range(rounds):
        txn, commits = begin(store), number % 5 != 4
        store.lock(txn, [shared_read(operation=INSERT)])
        done.append((txn, store.allocate_write_id(txn, T), commits))
        if commits:
            store.commit_txn(txn)
        else:
            store.abort_txn(txn)
    store.close()
    return done
