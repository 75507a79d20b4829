"""The rows that the embedded store keeps in Hive's tables, and when it forgets them."""

import pytest
from contract_base import INSERT, UPDATE, Clock, T, U, begin, on, shared_read, table, write
from sqlalchemy import select

from acidsql.acid.table import Partition
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.embedded.database import schema as hive
from acidsql.metastore.interface import Commit, LockType, Operation, TxnType

DELETE, OVERWRITE = Operation.DELETE, Operation.OVERWRITE
LONG = 10**9


@pytest.fixture
def store(tmp_path):
    store = EmbeddedMetastore(sqlite_url(tmp_path / "s.db"), warehouse="/wh", clock=Clock())
    yield store
    store.close()


def rows(store, sql_table, *columns):
    """These columns of all rows, by name without the prefix."""
    chosen = [column for column in sql_table.c if column.name.partition("_")[2] in columns]
    with store._store.read() as connection:
        return sorted(map(tuple, connection.execute(select(*chosen))), key=repr)


def change(*operations, name=T, partition=None):
    return [on(LockType.SHARED_WRITE, name, partition, operation) for operation in operations]


def lease(store):
    return store.open_txn(user="u", host="h", txn_type=TxnType.READ_ONLY)


def keep(store, retention=0):
    store._store._clock.now += 1
    assert store.house_keep(LONG, 0, retention)


# ── MIN_HISTORY_LEVEL ────────────────────────────────────────────────────────────────────────


def test_each_transaction_notes_the_lowest_that_was_open_when_it_began(store):
    """A reader has such a row, too, but is not the lowest for others, because it writes nothing."""
    reader, one, two = lease(store), begin(store), begin(store)
    assert rows(store, hive.MIN_HISTORY_LEVEL, "TXNID", "MIN_OPEN_TXNID") == [
        (reader, reader), (one, one), (two, one),
    ]  # fmt: skip
    store.commit_txn(one)
    store.abort_txn(reader)
    late = lease(store)
    assert rows(store, hive.MIN_HISTORY_LEVEL, "TXNID", "MIN_OPEN_TXNID") == [
        (two, one),
        (late, two),
    ]


def test_the_row_goes_with_the_transaction_however_it_ends(store):
    for end in (store.commit_txn, store.abort_txn):
        end(begin(store))
    begin(store)
    store._store._clock.now += 10
    store.abort_timed_out(5)
    begin(store)
    store._store._clock.now += 10
    store.house_keep(5, 0, LONG)
    assert rows(store, hive.MIN_HISTORY_LEVEL, "TXNID") == []


# ── what a commit leaves ─────────────────────────────────────────────────────────────────────


def test_a_commit_leaves_what_it_changed_with_the_highest_number_so_far(store):
    store.create_table(table(partitioned=True))
    txn, _ = begin(store), begin(store)
    store.lock(txn, [*change(INSERT, UPDATE), *change(OVERWRITE, name=U), shared_read()])
    store.allocate_write_id(txn, T)
    written = [Partition(("1",), "/wh/t/p=1"), Partition(("2",), "/wh/t/p=2")]
    latest = begin(store)
    store.commit_txn(txn, Commit(added_partitions={T: written}))
    found = rows(
        store, hive.WRITE_SET, "TABLE", "PARTITION", "TXNID", "COMMIT_ID", "OPERATION_TYPE"
    )
    assert found == [
        ("t", "p=1", txn, latest, "i"),
        ("t", "p=1", txn, latest, "u"),
        ("t", "p=2", txn, latest, "i"),
        ("t", "p=2", txn, latest, "u"),
        ("u", None, txn, latest, "o"),
    ]
    found = rows(store, hive.COMPLETED_TXN_COMPONENTS, "TABLE", "PARTITION", "WRITEID")
    assert found == [("t", "p=1", 1), ("t", "p=2", 1), ("u", None, None)]
    assert rows(store, hive.TXN_COMPONENTS, "TXNID") == []


@pytest.mark.parametrize(
    "operations, flag",
    [
        ([INSERT], "N"),
        ([UPDATE], "Y"),
        ([DELETE], "Y"),
        ([OVERWRITE], "Y"),
        ([INSERT, UPDATE], "Y"),
    ],
)
def test_the_compactor_is_told_whether_older_rows_were_changed(store, operations, flag):
    txn = begin(store)
    store.lock(txn, change(*operations))
    store.commit_txn(txn)
    assert rows(store, hive.COMPLETED_TXN_COMPONENTS, "UPDATE_DELETE") == [(flag,)]


def test_what_was_only_read_leaves_nothing(store):
    txn = begin(store)
    store.lock(txn, [shared_read(), on(LockType.EXCLUSIVE, U)])
    store.commit_txn(txn)
    for left in (hive.WRITE_SET, hive.COMPLETED_TXN_COMPONENTS, hive.TXN_COMPONENTS):
        assert rows(store, left, "TXNID") == []


# ── restoring ────────────────────────────────────────────────────────────────────────────────


def test_restored_components_are_exactly_those_given(store):
    txn = begin(store)
    store.lock(txn, [*change(INSERT), *change(UPDATE, name=U)])
    store.allocate_write_id(txn, T)
    wanted = [*change(INSERT, OVERWRITE, INSERT), *change(DELETE, partition="p=1"), shared_read(U)]
    for _ in range(2):
        store.restore_components(txn, wanted)
        found = rows(store, hive.TXN_COMPONENTS, "TABLE", "PARTITION", "OPERATION_TYPE", "WRITEID")
        assert found == [("t", "p=1", "d", 1), ("t", None, "i", 1), ("t", None, "o", 1)]


# ── forgetting ───────────────────────────────────────────────────────────────────────────────


def test_when_nothing_is_open_only_what_must_stay_hidden_is_remembered(store):
    for commit in (True, False, True):
        write(store, commit=commit)
    store.commit_txn(begin(store))
    store.abort_txn(begin(store))
    keep(store)
    assert rows(store, hive.WRITE_SET, "TXNID") == []
    assert rows(store, hive.TXN_TO_WRITE_ID, "TXNID", "WRITEID") == [(2, 2)]
    assert rows(store, hive.TXNS, "ID", "STATE") == [(2, "a")]


def test_an_open_transaction_keeps_what_it_may_ask_for_and_no_more(store):
    before = write(store)
    early = begin(store)
    store.lock(early, change(UPDATE))
    store.allocate_write_id(early, T)
    ours = begin(store)
    store.commit_txn(early)
    later = write(store)
    keep(store)
    assert before == 1
    assert rows(store, hive.TXN_TO_WRITE_ID, "TXNID") == [(early,), (ours + 1,)]
    assert rows(store, hive.WRITE_SET, "TXNID") == [(early,), (ours + 1,)]
    assert rows(store, hive.TXNS, "ID") == [(early,), (ours,), (ours + 1,)]
    assert later == 3


def test_a_lease_keeps_write_ids_for_its_snapshots_but_no_write_sets(store):
    """It never commits a change that could conflict with another."""
    early, reader = begin(store), lease(store)
    store.lock(early, change(UPDATE))
    store.allocate_write_id(early, T)
    store.commit_txn(early)
    keep(store)
    assert rows(store, hive.WRITE_SET, "TXNID") == []
    assert rows(store, hive.TXN_TO_WRITE_ID, "TXNID") == [(early,)]
    store.commit_txn(reader)
    keep(store)
    assert rows(store, hive.TXN_TO_WRITE_ID, "TXNID") == []


def test_an_aborted_transaction_does_not_keep_those_after_it(store):
    write(store, commit=False)
    for _ in range(5):
        write(store)
    keep(store)
    assert rows(store, hive.TXN_TO_WRITE_ID, "TXNID") == [(1,)]


def test_aborted_components_are_kept_for_whoever_will_clean_up(store):
    """As far as the store knows, nothing was written yet; but a directory may exist."""
    txn = begin(store)
    store.lock(txn, change(INSERT))
    store.abort_txn(txn)
    keep(store)
    assert rows(store, hive.TXNS, "ID") == rows(store, hive.TXN_COMPONENTS, "TXNID") == [(txn,)]


def test_what_ended_lately_is_kept_as_long_as_is_wanted(store):
    store.commit_txn(begin(store))
    store.abort_txn(begin(store))
    keep(store, retention=1)
    assert rows(store, hive.TXNS, "ID") == [(1,), (2,)]
    keep(store, retention=1)
    assert rows(store, hive.TXNS, "ID") == []


def test_the_last_time_is_kept_under_hives_name(store):
    keep(store)
    keep(store)
    assert rows(store, hive.AUX_TABLE, "KEY1", "KEY2") == [("HouseKeeper", 1_000_002)]
