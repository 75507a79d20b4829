"""The work of several processes that use one store as fast as they can."""

from pathlib import Path

from compaction_steps import request, take
from contract_base import INSERT, T, begin, shared_read

from acidsql.acid.table import TableName
from acidsql.metastore.compaction_queue import Compacted, CompactionState
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.interface import Commit, LockComponent, LockType, Operation
from acidsql.settings import Settings
from acidsql.txn import TxnManager

LOCK = LockComponent(LockType.EXCL_WRITE, T.database, T.name, None, Operation.UPDATE)
EAGER = Settings.of({"acidsql.lock.poll.interval": "100ms"})


def take_turns(url: str, counter: str, rounds: int) -> list[tuple[int, int]]:
    """Run transactions one after the other. Each adds one to a file, under the table's lock."""
    store = EmbeddedMetastore(url, warehouse="/wh")
    manager = TxnManager(store, EAGER, user="u", host="h")
    done = []
    for _ in range(rounds):
        with manager.open() as txn:
            txn.lock([LOCK])
            # Read, then write: two processes in here at once would lose a count.
            Path(counter).write_text(str(int(Path(counter).read_text()) + 1))
            done.append((txn.id, txn.write_id(T)))
            txn.commit()
    manager.close()
    store.close()
    return done


def rush(url: str, rounds: int) -> list[tuple[int, int, bool]]:
    """Run transactions that need not wait for each other. Every fifth is aborted."""
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


def compact(url: str, tables: int) -> list[int]:
    """Run compactions until there are none. Those of dead workers are taken again."""
    store = EmbeddedMetastore(url, warehouse="/wh")
    done = []
    for number in range(tables):
        store.compact(request(TableName("default", f"t{number}")))
    while any(one.state is not CompactionState.SUCCEEDED for one in store.compactions()):
        txn, taken = take(store)
        if taken is None:
            store.commit_txn(txn)
            store.revoke(10**9)
            for one in store.ready_to_clean(0):
                store.mark_compaction_cleaned(one.id)
        elif txn % 5 == 4:
            store.abort_txn(txn)
        else:
            store.commit_txn(txn, Commit(compacted=Compacted(taken.id, 1, "")))
            done.append(taken.id)
    store.close()
    return done
