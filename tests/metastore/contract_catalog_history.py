"""The contract of ``catalog_changes``: what an old snapshot is told about the catalog."""

from unittest.mock import ANY

import pytest
from contract_base import T, U, begin, each_needs, exclusive, table, write
from over_hive import needs

from acidsql.acid.table import Column, Partition
from acidsql.errors import NoSuchTxnError, TxnAbortedError
from acidsql.metastore.interface import Commit, Database, TxnType

P1, P2 = (Partition((value,), f"/wh/t/p={value}") for value in "12")


def changing(store, act, name=T, info="DDL"):
    """One whole transaction that changes the catalog under its lock; its number."""
    txn = begin(store, info)
    store.lock(txn, [exclusive(name)])
    act(txn)
    store.commit_txn(txn)
    return txn


def drop(store, name=T):
    return changing(store, lambda txn: store.drop_table(name, txn_id=txn), name)


class Looker:
    """A transaction that has taken its snapshot."""

    def __init__(self, store, txn_type=TxnType.READ_ONLY):
        self.store = store
        self.id = store.open_txn(user="u", host="h", txn_type=txn_type)
        self.look()

    def look(self):
        self.store.watch_catalog(self.id)
        self.snapshot = self.store.valid_txns(self.id)

    def told(self, name=T):
        """Transactions and partitions; a store that does not tell the transaction says ANY."""
        found = self.store.catalog_changes(self.id, self.snapshot, name)
        return [(ANY if one.txn_id is None else one.txn_id, one.partition) for one in found]


@each_needs("remembers_changes")
class CatalogHistoryContract:
    @pytest.fixture
    def looker(self, store):
        store.create_table(table(partitioned=True))
        return Looker(store)

    def test_a_drop_is_told_to_who_looked_before_it(self, store, looker):
        assert looker.told() == []
        txn = drop(store)
        assert looker.told() == [(txn, None)]
        assert looker.told(U) == []
        assert Looker(store).told() == []

    @needs("who changed the catalog")
    def test_who_changed_it_is_told_too(self, store, looker):
        drop(store)
        (found,) = store.catalog_changes(looker.id, looker.snapshot, T)
        assert (found.user, found.host, found.agent_info) == ("ann", "h1", "DDL")

    def test_a_transaction_that_looks_after_a_change_sees_it(self, store, looker):
        """Although it began earlier."""
        txn = drop(store)
        assert looker.told() == [(txn, None)]
        looker.look()
        assert looker.told() == []

    def test_a_change_counts_from_the_moment_in_which_it_is_made(self, store, looker):
        txn = begin(store)
        store.lock(txn, [exclusive()])
        assert looker.told() == []
        store.drop_table(T, txn_id=txn)
        assert looker.told() == [(txn, None)]
        store.commit_txn(txn)
        assert looker.told() == [(txn, None)]

    def test_a_change_stays_if_its_transaction_is_aborted_afterwards(self, store, looker):
        txn = begin(store)
        store.lock(txn, [exclusive()])
        store.drop_table(T, txn_id=txn)
        store.abort_txn(txn)
        assert looker.told() == [(txn, None)]
        looker.look()
        assert looker.told() == []

    def test_a_table_that_is_made_is_a_change(self, store, looker):
        first = drop(store)
        second = begin(store)
        store.lock(second, [exclusive()])
        store.commit_txn(second, Commit(created_table=table(location="/wh/t2")))
        third = changing(store, lambda txn: store.create_table(table(U), txn_id=txn), U)
        assert looker.told() == [(first, None), (second, None)]
        assert looker.told(U) == [(third, None)]

    def test_a_rename_changes_both_names(self, store, looker):
        txn = changing(store, lambda txn: store.rename_table(T, U, txn_id=txn))
        assert looker.told() == looker.told(U) == [(txn, None)]
        assert Looker(store).told() == Looker(store).told(U) == []

    def test_columns_are_a_change_and_properties_are_not(self, store, looker):
        def alter(**what):
            return changing(store, lambda txn: store.alter_table(T, txn_id=txn, **what))

        alter(set_properties={"a": "b"})
        alter(unset_properties=["a"])
        alter(columns=[Column("a", "int", comment="said"), Column("b", "string")])
        assert looker.told() == []
        wider = alter(columns=[Column("a", "bigint"), Column("b", "string")])
        more = alter(add_columns=[Column("c", "int")])
        assert looker.told() == [(wider, None), (more, None)]

    def test_a_database_takes_its_tables_with_it(self, store):
        store.create_database(Database("d", "/wh/d"))
        name = type(T)("d", "t")
        store.create_table(table(name, location="/wh/d/t"))
        looker = Looker(store)
        txn = changing(store, lambda txn: store.drop_database("d", cascade=True, txn_id=txn), name)
        assert looker.told(name)[0] == (txn, None)

    def test_a_partition_that_is_dropped_is_told_by_its_name(self, store, looker):
        adds = begin(store)
        store.commit_txn(adds, Commit(added_partitions={T: [P1, P2]}))
        txn = begin(store)
        store.commit_txn(txn, Commit(dropped_partitions={T: [P1.values]}))
        assert looker.told() == [(txn, "p=1")]

    @needs("what happened under an old name")
    def test_dropped_partitions_go_with_a_table_that_is_renamed(self, store, looker):
        adds, drops = begin(store), begin(store)
        store.commit_txn(adds, Commit(added_partitions={T: [P1]}))
        store.commit_txn(drops, Commit(dropped_partitions={T: [P1.values]}))
        txn = changing(store, lambda txn: store.rename_table(T, U, txn_id=txn))
        assert looker.told(U) == [(drops, "p=1"), (txn, None)]

    def test_rows_that_are_written_are_no_change(self, store, looker):
        write(store)
        adds = begin(store)
        store.commit_txn(adds, Commit(added_partitions={T: [P1]}))
        assert looker.told() == []

    def test_changes_of_the_catalog_are_nobodys_write_conflict(self, store, looker):
        ours = Looker(store, TxnType.DEFAULT)
        drop(store)
        assert ours.told()
        assert store.write_conflicts(ours.id, ours.snapshot) == []

    @pytest.mark.parametrize("kind", [TxnType.READ_ONLY, TxnType.DEFAULT])
    def test_it_is_kept_while_an_open_transaction_can_ask(self, store, clock, kind):
        store.create_table(table())
        looker = Looker(store, kind)
        txn = drop(store)
        clock.now += 100
        store.house_keep(10**9, 0, 0)
        assert looker.told() == [(txn, None)]

    def test_who_has_ended_is_told_nothing(self, store, looker):
        """What it could ask for may be forgotten."""
        other = Looker(store)
        store.abort_txn(looker.id)
        store.commit_txn(other.id)
        with pytest.raises(TxnAbortedError):
            looker.told()
        with pytest.raises(NoSuchTxnError):
            other.told()
