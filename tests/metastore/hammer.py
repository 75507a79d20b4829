"""One of several processes that use a store as fast as they can."""

from pathlib import Path

from contract_base import T

from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.settings import Settings
from acidsql.txn import TxnManager

LOCK = LockComponent(LockType.EXCL_WRITE, T.database, T.name, None, Operation.UPDATE)
EAGER = Settings.of({"acidsql.lock.poll.interval": "100ms"})


def run(path: str, counter: str, rounds: int) -> list[tuple[int, int]]:
    """Transactions one after the other; each adds one to a file, under the table's lock."""
    store = EmbeddedMetastore(sqlite_url(path), warehouse="/wh")
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
