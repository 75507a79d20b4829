"""The contract of ``Catalog`` about views."""

import pytest
from contract_base import T, U, begin, each_needs, exclusive, table, view
from contract_catalog import SALES, condition
from contract_catalog_history import Looker, changing

from acidsql.acid.table import Column, Table, TableName, ViewText
from acidsql.errors import TxnAbortedError
from acidsql.metastore.foreign import acid_table, view_of

V = TableName("default", "v")


class ViewContract:
    def test_a_view_comes_back_as_it_was_given(self, store, reopen):
        full = Table(
            V,
            "",
            (Column("z", "decimal(10,2)", comment="the z"), Column("größe", "struct<x:int>")),
            properties={"view.sqlConfig.spark.sql.ansi.enabled": "true", "k": "it's"},
            comment="a comment",
            is_transactional=False,
            view=ViewText("SELECT * FROM t -- all", "SELECT `z`, `größe` FROM (SELECT 1)" * 900),
        )
        store.create_view(full)
        found = view_of(reopen().find(V))
        assert (found.name, found.columns, found.comment) == (V, full.columns, full.comment)
        assert (found.view, found.is_transactional) == (full.view, False)
        assert full.properties.items() <= found.properties.items()

    def test_views_and_tables_are_listed_apart_and_share_their_names(self, store):
        store.create_table(table())
        store.create_view(view(V))
        assert (store.tables("default"), store.views("default")) == (["t"], ["v"])
        for look in (store.find, store.glance):
            assert (acid_table(look(V)), view_of(look(T))) == (None, None)
            assert (view_of(look(V)).name, acid_table(look(T)).name) == (V, T)
        assert [owner.table for owner in store.owners()] == [T]
        taken = ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07")
        assert condition(store.create_view, view(T)) == taken
        assert condition(store.create_view, view(T), replace=True) == taken
        assert condition(store.create_view, view(V)) == taken
        assert condition(store.create_table, table(V)) == taken
        assert condition(store.rename_view, V, T) == taken
        assert condition(store.rename_table, T, V) == taken
        missing = ("TABLE_OR_VIEW_NOT_FOUND", "42P01")
        assert condition(store.drop_view, T) == condition(store.drop_view, U) == missing
        assert condition(store.drop_table, V) == condition(store.rename_view, T, U) == missing
        nowhere = view(TableName("nope", "v"))
        assert condition(store.create_view, nowhere) == ("SCHEMA_NOT_FOUND", "42704")

    def test_a_view_is_replaced_renamed_and_dropped(self, store):
        store.create_database(SALES)
        store.create_view(view(V, properties={"old": "1"}, comment="old"))
        new = view(V, "SELECT 2 AS `a`", properties={"new": "2"})
        store.create_view(new, replace=True)
        found = view_of(store.find(V))
        assert (found.view, found.comment) == (new.view, None)
        assert found.properties.get("new") == "2" and "old" not in found.properties
        moved = TableName("sales", "w")
        store.rename_view(V, moved)
        assert store.find(V) is None and store.find(moved).view == new.view
        store.drop_view(moved)
        assert store.views("sales") == []

    def test_a_database_with_a_view_is_dropped_by_cascade_only(self, store):
        store.create_database(SALES)
        store.create_view(view(TableName("sales", "v")))
        assert condition(store.drop_database, "sales") == ("SCHEMA_NOT_EMPTY", "2BP01")
        assert store.drop_database("sales", cascade=True) == []
        assert store.find(TableName("sales", "v")) is None

    def test_who_has_lost_the_lock_changes_no_view(self, store):
        store.create_view(view(V))
        txn = begin(store)
        store.lock(txn, [exclusive(V)])
        store.abort_txn(txn)
        for change in (
            lambda: store.create_view(view(V, "SELECT 2"), replace=True, txn_id=txn),
            lambda: store.rename_view(V, U, txn_id=txn),
            lambda: store.drop_view(V, txn_id=txn),
        ):
            with pytest.raises(TxnAbortedError):
                change()
        assert store.find(V).view == view(V).view


@each_needs("remembers_changes")
class ViewHistoryContract:
    def test_each_change_of_a_view_is_told_to_who_looked_before_it(self, store):
        looker = Looker(store)
        made = changing(store, lambda txn: store.create_view(view(V), txn_id=txn), V)
        assert looker.told(V) == [(made, None)] and looker.told(T) == []
        looker = Looker(store)
        new = view(V, "SELECT 2 AS `a`")
        replaced = changing(store, lambda txn: store.create_view(new, replace=True, txn_id=txn), V)
        assert looker.told(V) == [(replaced, None)]
        looker = Looker(store)
        renamed = changing(store, lambda txn: store.rename_view(V, U, txn_id=txn), V)
        assert looker.told(V) == looker.told(U) == [(renamed, None)]
        looker = Looker(store)
        gone = changing(store, lambda txn: store.drop_view(U, txn_id=txn), U)
        assert looker.told(U) == [(gone, None)] and looker.told(V) == []
