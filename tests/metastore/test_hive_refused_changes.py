"""A real Hive Metastore refuses a change that takes several calls: the table is as it was."""

from contextlib import suppress
from dataclasses import replace

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from acidsql.acid import cdc
from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.hive.store import HiveMetastore

T = TableName("default", "refused")
(CDC, *_) = cdc.cdc_table_names(T)
COLUMNS = (Column("a", "int", nullable=False), Column("b", "int", default="7"), Column("c", "int"))


@pytest.fixture
def store(hive_metastore):
    store = HiveMetastore(hive_metastore.url, list_names=lambda _: [])
    yield store
    for name in (CDC, T):
        with suppress(CatalogError):
            store.drop_table(name)
    store.close()


def create(store, name=T, columns=COLUMNS, **properties):
    location = f"{store.warehouse}/{name.name}"
    store.create_table(
        Table(name, location, columns, properties={"transactional": "true", **properties})
    )
    return store.find(name)


def test_a_refused_rename_of_columns_keeps_not_null_and_default(store):
    before = create(store)
    # The server refuses a type that it cannot read old values as.
    columns = (
        replace(COLUMNS[0], name="x"),
        replace(COLUMNS[1], name="y"),
        replace(COLUMNS[2], type="array<int>"),
    )
    with pytest.raises(CatalogError):
        store.alter_table(T, columns=columns)
    assert store.find(T) == before


def test_a_refused_rename_of_a_state_table_keeps_its_bond_to_its_target(store):
    target = create(store)
    bond = cdc.new_bond(target)
    create(store, CDC, **bond, **{cdc.ORDER: "c"})
    (text,) = bond.values()
    store.alter_table(T, set_properties={cdc.bond_key(CDC): text})
    before = store.find(T)
    with pytest.raises(CatalogError):
        store.rename_table(CDC, TableName("no_such_database", "other"))
    assert store.find(T) == before
