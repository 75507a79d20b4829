"""A Hive Metastore with two catalogs, whose databases and tables have the same names."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from contract_base import begin

from acidsql.acid.table import Column, Table, TableName, ViewText
from acidsql.metastore.catalog import Database
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.interface import Commit
from acidsql.metastore.streams import Batch, NextBatch

V = TableName("same", "v")


@pytest.fixture
def two(hive_metastore):
    """A session in the usual catalog, and one in another."""
    place = hive_metastore.warehouse / "other"
    place.mkdir()
    hive_metastore.query(
        "INSERT INTO CTLGS (CTLG_ID, NAME, LOCATION_URI, CREATE_TIME) "
        f"VALUES (77, 'other', 'file://{place}', 1)"
    )
    urls = hive_metastore.url, f"{hive_metastore.url}/?catalog=other"
    usual, other = (HiveMetastore(one, list_names=lambda _: []) for one in urls)
    with closing(usual), closing(other):
        yield usual, other
        for store in (usual, other):
            store.forget_stream("app")
            for name in {one.name for one in store.databases()} - {"default"}:
                store.drop_database(name, cascade=True)
    hive_metastore.query("DELETE FROM CTLGS WHERE CTLG_ID = 77")
    place.rmdir()


def test_a_session_sees_and_changes_only_its_own_catalog(two):
    usual, other = two
    for store, name in ((usual, "usual"), (other, "other")):
        location = Path(usual.warehouse, f"{name}_same")
        store.create_database(Database("same", str(location), None))
        query = ViewText(f"SELECT '{name}' AS a", f"SELECT '{name}' AS `a`")
        store.create_view(
            Table(V, "", (Column("a", "string"),), is_transactional=False, view=query)
        )
        store.alter_database("same", set_properties={"of": name})
    other.create_database(Database("alone", str(Path(usual.warehouse, "alone")), None))
    assert {"same", "alone"} <= {one.name for one in other.databases()}
    assert "alone" not in {one.name for one in usual.databases()}
    assert [one.get_database("same").properties["of"] for one in two] == ["usual", "other"]
    assert other.views("same") == ["v"] and other.views("alone") == []
    other.drop_database("same", cascade=True)
    assert other.get_database("same") is None
    assert usual.views("same") == ["v"]


def test_each_catalog_has_a_ledger_of_streams(two):
    usual, other = two
    batch = Batch("app", 0, "", "query", "run")
    for store in two:
        store.commit_txn(begin(store), Commit(batch=NextBatch(batch, None)))
    assert [one.batch for one in other.streams("app")] == [batch]
    assert other.forget_stream("app") == 1
    assert other.stream("app", "") is None and other.streams() == []
    assert usual.stream("app", "").batch == batch
