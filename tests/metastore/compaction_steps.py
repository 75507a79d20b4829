"""Short functions for the contracts of compactions: each brings the store into a certain state."""

from contract_base import INSERT, T, begin, on

from acidsql.acid.table import TableName
from acidsql.metastore.compaction_queue import (
    REQUESTABLE_TYPES,
    Compacted,
    CompactionRequest,
    CompactionState,
)
from acidsql.metastore.interface import Commit, LockType, TxnType

MAJOR, MINOR, REBALANCE = REQUESTABLE_TYPES
INITIATED, WORKING, READY, SUCCEEDED, FAILED, REFUSED, DID_NOT_INITIATE, ABORTED = CompactionState
LONG = 10**9
V = TableName("default", "v")


def request(name=T, partition=None, kind=MAJOR, **others):
    return CompactionRequest(name, partition, kind, "h1-manual", **others)


def worker(store):
    return store.open_txn(user="ann", host="h1", txn_type=TxnType.COMPACTION)


def lease(store):
    return store.open_txn(user="ann", host="h1", txn_type=TxnType.READ_ONLY)


def queue(store, *args, **keywords):
    """Queue a compaction, and return its number."""
    enqueued = store.compact(request(*args, **keywords))
    assert enqueued.accepted
    return enqueued.id


def take(store, **keywords):
    """Open a worker's transaction, and take an entry of the queue."""
    txn = worker(store)
    return txn, store.take_next(txn, "h1-7", **keywords)


def done(store, *args, highest=1, message="", **keywords):
    """Queue and finish a compaction, and return its number."""
    number = queue(store, *args, **keywords)
    txn, _ = take(store, only=number)
    store.begin_compaction(number, txn, highest)
    store.commit_txn(txn, Commit(compacted=Compacted(number, highest, message)))
    return number


def failed(store, *args, **keywords):
    number = queue(store, *args, **keywords)
    txn, _ = take(store, only=number)
    store.mark_failed(number, txn, "it broke")
    store.abort_txn(txn)
    return number


def refused(store, *args, **keywords):
    number = queue(store, *args, **keywords)
    txn, _ = take(store, only=number)
    store.mark_refused(number, txn, "nothing to do")
    store.commit_txn(txn)
    return number


def succeeded(store, *args, **keywords):
    number = done(store, *args, **keywords)
    store.mark_compaction_cleaned(number)
    return number


def aborted(store, *args, **keywords):
    number = queue(store, *args, **keywords)
    store.abort_compactions([number])
    return number


def not_begun(store, *args, message="no", **keywords):
    before = known(store)
    store.did_not_initiate(request(*args, **keywords), message)
    (number,) = known(store) - before
    return number


def known(store):
    return {one.id for one in store.compactions()}


def shown(store, number):
    (found,) = [one for one in store.compactions() if one.id == number]
    return found


def state(store, number):
    return shown(store, number).state


def ready(store, retention=0):
    return [one.id for one in store.ready_to_clean(retention)]


def places(store):
    return [(one.table, one.partition) for one in store.candidates()]


def change(store, name=T, partition=None, *, commit=True):
    """Run a transaction that inserts, and return its write id."""
    txn = begin(store)
    store.lock(txn, [on(LockType.SHARED_READ, name, partition, INSERT)])
    write_id = store.allocate_write_id(txn, name)
    (store.commit_txn if commit else store.abort_txn)(txn)
    return write_id
