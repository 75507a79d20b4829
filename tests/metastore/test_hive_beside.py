"""Tables with others beside them in a real Hive Metastore: what others, and crashes, may do."""

from __future__ import annotations

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from acidsql.acid import cdc
from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.interface import Database

DATABASE = "beside"
T, U = TableName(DATABASE, "t"), TableName(DATABASE, "u")
OF_T, OF_U = cdc.state_name(T), cdc.state_name(U)


@pytest.fixture
def store(hive_metastore):
    store = HiveMetastore(hive_metastore.url, list_names=lambda _: [])
    store.create_database(Database(DATABASE, f"{store.warehouse}/{DATABASE}.db"))
    yield store
    store.drop_database(DATABASE, cascade=True)
    store.close()


def make(store, name, **properties):
    location = f"{store.warehouse}/{DATABASE}.db/{name.name}"
    acid = {"transactional": "true"}
    store.create_table(Table(name, location, (Column("a", "int"),), properties=acid | properties))
    return store.find(name)


def make_both(store, name=T):
    """A table with a state table, bound to each other."""
    target, beside = make(store, name), cdc.state_name(name)
    state = make(store, beside, **{cdc.ORDER: ""}, **cdc.new_bond(target))
    store.alter_table(name, set_properties={cdc.bond_key(beside): cdc.own_bond(state)})
    return store.find(name), state


def by_hive(store, name, new_name):
    """As another program, which knows no state tables, renames a table."""
    store.parts.tables.rename_table(name, new_name)


def belongs(store, beside, target):
    return cdc.belongs_to(store.find(beside), store.find(target))


def test_bonds_are_no_properties_and_a_copy_has_none(store):
    target, state = make_both(store)
    assert cdc.belongs_to(state, target) and cdc.bond_of(target, OF_T) == cdc.own_bond(state) != ""
    assert not [key for one in (target, state) for key in one.properties if cdc.BOND in key]
    store.alter_table(T, set_properties={"a": "b"})
    assert store.find(T).bonds == target.bonds
    copied = {f"{cdc.BOND}{key}": value for key, value in target.bonds.items()}
    assert cdc.bond_of(make(store, U, **copied), OF_T) is None  # as by SHOW CREATE TABLE of Hive


def test_a_bond_that_got_lost_is_known_by_the_number_of_the_table(store):
    target, _ = make_both(store)
    store.alter_table(T, unset_properties=[cdc.bond_key(OF_T)])
    assert store.find(T).bonds == {} and belongs(store, OF_T, T)
    older = Table(OF_T, "", (), bonds={"target": f"{target.identity} older"})
    assert not cdc.belongs_to(older, target)


def test_what_belongs_to_another_table_is_neither_dropped_nor_renamed(store):
    make_both(store)
    by_hive(store, T, U)
    make(store, T)
    assert not belongs(store, OF_T, T)
    store.rename_table(T, TableName(DATABASE, "v"))
    store.drop_table(TableName(DATABASE, "v"))
    assert store.tables(DATABASE) == [OF_T.name, U.name]
    store.rename_table(OF_T, OF_U)
    assert belongs(store, OF_U, U) and cdc.bond_of(store.find(U), OF_U) is not None
    store.drop_table(U)
    assert store.tables(DATABASE) == []


def test_after_a_crash_a_rename_goes_on_and_one_that_is_refused_changes_nothing(store, monkeypatch):
    make_both(store)
    rename, calls = HiveTables.rename_existing, []

    def dies(self, raw, new_name, txn_id):
        calls.append(TableName(raw.dbName, raw.tableName))
        if calls[-1] == T:
            raise calls_error
        rename(self, raw, new_name, txn_id)

    monkeypatch.setattr(HiveTables, "rename_existing", dies)
    for calls_error, left in ((CatalogError("no"), OF_T), (SystemExit(), OF_U)):
        with pytest.raises(type(calls_error)):
            store.rename_table(T, U)
        assert sorted([T.name, left.name]) == store.tables(DATABASE)
    assert calls[:2] == [OF_T, T]
    monkeypatch.undo()
    store.rename_table(T, U)
    assert store.tables(DATABASE) == [U.name, OF_U.name] and belongs(store, OF_U, U)


def test_who_drops_or_renames_a_state_table_by_its_name_means_it(store):
    make_both(store)
    put_aside = TableName(DATABASE, "kept")
    store.rename_table(OF_T, put_aside)
    assert store.find(T).bonds == {}
    make(store, OF_T, **{cdc.ORDER: ""}, **cdc.new_bond(store.find(T)))
    store.drop_table(OF_T)
    store.rename_table(put_aside, OF_T)
    assert belongs(store, OF_T, T)
