"""Constraints of tables in a Hive Metastore: what a session remembers, and what it asks again."""

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from acidsql.acid.table import Column, Table, TableName
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive

T = TableName("default", "glanced_at")


@pytest.fixture
def store(hive_metastore):
    store = HiveMetastore(hive_metastore.url, list_names=lambda _: [])
    make(store, nullable=False)
    yield store
    store.drop_table(T)
    store.close()


def make(store, *, nullable):
    place = f"{store.warehouse}/{T.name}"
    columns = (Column("a", "int", nullable),)
    store.create_table(Table(T, place, columns, properties={"transactional": "true"}))


def allow_null(store):
    """As Hive's ALTER TABLE … DROP CONSTRAINT."""
    (known,) = store.parts.constraints.fetch(T).notNullConstraints
    request = hive.DropConstraintRequest(
        dbname=T.database, tablename=T.name, constraintname=known.nn_name, catName="hive"
    )
    store.parts.server.call("drop_constraint", request)


def nullable(table):
    return table.columns[0].nullable


def test_a_glance_may_be_old_and_a_look_is_not(store):
    assert not nullable(store.glance(T))
    allow_null(store)
    assert not nullable(store.glance(T))
    assert nullable(store.find(T))
    assert nullable(store.glance(T))


def test_a_glance_takes_no_constraints_of_an_earlier_table_of_the_name(store):
    assert not nullable(store.glance(T))
    store.drop_table(T)
    make(store, nullable=True)
    assert nullable(store.glance(T))


def test_a_look_takes_nothing_that_another_thread_has_asked_before(store, monkeypatch):
    """The compactor of a session is such a thread."""
    before, real = store.parts.constraints.fetch(T), store.parts.raw_tables.find

    def meets(name):
        raw = real(name)
        store.parts.tables._cached_constraints[name] = (
            convert.identity(raw),
            before,
        )  # it notes its old answer
        return raw

    allow_null(store)
    monkeypatch.setattr(store.parts.raw_tables, "find", meets)
    assert nullable(store.find(T))
