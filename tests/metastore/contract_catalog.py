"""The contract of ``Catalog``: databases, tables, partitions, names that are used again."""

from dataclasses import replace
from unittest.mock import ANY

import pytest
from contract_base import ACID, T, U, begin, seen, table, write
from over_hive import needs

from acidsql.acid import cdc
from acidsql.acid.constraints import Constraint, ConstraintKind, check_constraint
from acidsql.acid.table import Column, Partition, SortColumn, Table, TableName
from acidsql.errors import CatalogError, TxnAbortedError
from acidsql.metastore.interface import Commit, Database
from acidsql.metastore.owners import Owner, PendingCleanup

SALES = Database("sales", "/wh/sales.db", "of the sales people")


def condition(call, *args, **keywords):
    """The condition name and SQLSTATE of the CatalogError that a call raises."""
    with pytest.raises(CatalogError) as caught:
        call(*args, **keywords)
    return caught.value.getCondition(), caught.value.getSqlState()


class CatalogContract:
    # ── databases ────────────────────────────────────────────────────────────────────────────

    @needs("things just as they were given")
    def test_the_database_default_is_there_from_the_start_in_the_warehouse(self, store):
        assert store.databases() == [Database("default", "/wh")]
        assert store.get_database("default") == Database("default", "/wh")

    @needs("things just as they were given")
    def test_a_database_is_created_found_and_dropped(self, store, reopen):
        store.create_database(SALES)
        assert reopen().databases() == [Database("default", "/wh"), SALES]
        store.drop_database("sales")
        assert store.get_database("sales") is None

    def test_properties_of_a_database_are_set_one_by_one(self, store, reopen):
        given = {"a": "1", "A ": "", "ü.'\"": "x" * 300}
        store.create_database(replace(SALES, properties=given))
        assert reopen().get_database("sales").properties == given
        changed = {"a": "2", "new": "3", "d": "4"}
        store.alter_database("sales", set_properties=changed)
        store.alter_database("sales", unset_properties=["d", "A ", "unknown"])
        (now,) = [one for one in reopen().databases() if one.name == "sales"]
        assert now.properties == {"a": "2", "ü.'\"": "x" * 300, "new": "3"}
        store.drop_database("sales")
        store.create_database(SALES)
        assert store.get_database("sales").properties == {}
        assert condition(store.alter_database, "no") == ("SCHEMA_NOT_FOUND", "42704")

    def test_databases_that_cannot_be_created_or_dropped_are_refused_by_name(self, store):
        store.create_database(SALES)
        store.create_table(table(TableName("sales", "t")))
        assert condition(store.create_database, SALES) == ("SCHEMA_ALREADY_EXISTS", "42P06")
        assert condition(store.drop_database, "nope") == ("SCHEMA_NOT_FOUND", "42704")
        assert condition(store.drop_database, "sales") == ("SCHEMA_NOT_EMPTY", "2BP01")
        assert condition(store.drop_database, "default")[1] == "0A000"

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    @needs("things just as they were given")
    def test_a_table_comes_back_as_it_was_given(self, store, reopen):
        full = Table(
            T,
            "/wh/t",
            (
                Column("z", "decimal(10,2)", False, "1.5", "the z"),
                Column("a", "struct<x:int>"),
                Column("größe", "string"),
            ),
            (Column("q", "int"), Column("p", "string", comment="late")),
            ("a", "z"),
            8,
            {"transactional": "true", "bucketing_version": "2", "empty": ""},
            "a comment",
            (
                check_constraint("c2", "z > 0"),
                check_constraint("c1", "a.x < 9"),
                Constraint("c0", ConstraintKind.CHECK, "größe > ''", is_relied=True),
                Constraint(
                    "k, 1", ConstraintKind.PRIMARY_KEY, columns=("a", "größe"), is_relied=True
                ),
                Constraint("f", ConstraintKind.FOREIGN_KEY, "", ("z",), "default.größe", ("x, y",)),
                Constraint("u", ConstraintKind.UNIQUE, columns=("z",)),
                Constraint("n", ConstraintKind.NOT_NULL, columns=("a",)),
            ),
            (SortColumn("z", True), SortColumn("größe")),
        )
        store.create_table(full)
        assert reopen().find(T) == full
        assert store.find(T).checks == {"c2": "z > 0", "c1": "a.x < 9"}
        assert store.tables("default") == ["t"]
        assert store.find(U) is None and store.tables("nope") == []

    def test_tables_that_cannot_be_created_are_refused_by_name(self, store):
        store.create_table(table())
        assert condition(store.create_table, table(location="/wh/x")) == (
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            "42P07",
        )
        other = table(TableName("nope", "t"), "/wh/nope.db/t")
        assert condition(store.create_table, other) == ("SCHEMA_NOT_FOUND", "42704")

    @pytest.mark.parametrize(
        "location", ["/wh/t", "/wh/t/", "file:/wh/t", "file:///wh/t", "/wh/t/inside", "/wh"]
    )
    def test_two_tables_never_share_a_directory(self, store, location):
        """DROP deletes a directory with all that is in it."""
        store.create_table(table())
        refused = condition(store.create_table, table(U, location))
        assert refused == ("LOCATION_ALREADY_EXISTS", "42710")
        store.create_table(table(U, "/wh/t2"))

    def test_altering_appends_columns_and_replaces_properties(self, store):
        store.create_table(table(properties={"k": "1", "keep": "x"}))
        store.alter_table(T, add_columns=[Column("c", "date")], set_properties={"k": "2"})
        store.alter_table(T, add_columns=[Column("d", "date"), Column("e", "date")])
        altered = store.find(T)
        assert [column.name for column in altered.columns] == ["a", "b", "c", "d", "e"]
        assert altered.properties == {**ACID, "k": "2", "keep": "x"}

    @needs("things just as they were given")
    def test_altering_puts_columns_in_the_place_of_others_in_one_step(self, store, reopen):
        store.create_table(table(properties={"k": "1"}))
        columns = [Column("b", "bigint", False, "1", "c"), Column("z", "date")]
        store.alter_table(
            T, columns=columns, bucket_columns=["z"], add_columns=[Column("y", "int")],
            set_properties={"k": "2"},
        )  # fmt: skip
        altered = reopen().find(T)
        assert altered.columns == (*columns, Column("y", "int"))
        assert altered.bucket_columns == ("z",)
        assert altered.properties == {**ACID, "k": "2"}

    def test_altering_changes_the_order_of_rows_and_the_table_beside_in_one_step(
        self, store, reopen
    ):
        layout = {"bucket_columns": ("a",), "num_buckets": 2}
        sorted_by = (SortColumn("b", descending=True), SortColumn("a"))
        properties = {**ACID, "transactional_properties": "insert_only"}
        made = replace(table(properties=properties), **layout, sort_columns=sorted_by)
        store.create_table(made)
        store.create_table(replace(table(U, "/wh/u"), **layout))
        beside = replace(
            store.find(U), columns=(Column("n", "int"), Column("m", "string")),
            bucket_columns=("n",), properties={**store.find(U).properties, "k": "v"},
        )  # fmt: skip
        now = (SortColumn("z", descending=True), SortColumn("a"))
        columns = [store.find(T).columns[0], Column("z", "string")]
        store.alter_table(T, columns=columns, sort_columns=now, cdc_table=beside)
        assert reopen().find(T).sort_columns == now
        found = reopen().find(U)
        assert (found.columns, found.bucket_columns) == (beside.columns, ("n",))
        assert found.properties == beside.properties
        store.alter_table(T, set_properties={"x": "y"})
        assert reopen().find(T).sort_columns == now

    @needs("keeps_keys")
    def test_the_foreign_keys_of_other_tables_are_found(self, store):
        key = Constraint("f", ConstraintKind.FOREIGN_KEY, "", ("a",), str(T), ("b",))
        other = replace(key, name="other", parent="default.another")
        store.create_table(table(constraints=(replace(key, name="own"),)))
        store.create_table(
            replace(table(U, "/wh/u"), constraints=(check_constraint("c", "a > 0"), key, other))
        )
        assert store.foreign_keys_to(T) == [(U, key)]
        assert store.foreign_keys_to(U) == []

    @needs("keeps_temporary_tables")
    def test_temporary_tables_are_apart_from_the_others(self, store):
        store.create_table(table())
        for kept in (T.for_session(12), U.for_session(7)):
            store.create_table(table(kept, location=f"/wh/{kept.name}"))
            assert (str(kept), kept.session_txn_id) in {("default.t", 12), ("default.u", 7)}
        assert store.tables("default") == ["t"]
        assert store.temporary_tables() == [T.for_session(12), U.for_session(7)]
        store.rename_table(U.for_session(7), TableName("default", "v").for_session(7))
        store.drop_table(T.for_session(12))
        assert store.find(T) is not None
        assert [one.key for one in store.temporary_tables()] == ["default.v@txn_7"]

    def test_statistics_are_kept_beside_the_properties_of_a_table(self, store, reopen):
        store.create_table(table(properties={"k": "1", "acidsql.statistics": "no entry"}))
        assert store.statistics(T) == {} == store.statistics(U)
        before = store.find(T)
        store.keep_statistics(T, {"size": "1", "column.0": "größe"})
        store.keep_statistics(T, {"size": "22"}, txn_id=begin(store))
        assert reopen().statistics(T) == {"size": "22", "column.0": "größe"}
        store.alter_table(T, set_properties={"k": "2"})
        assert store.statistics(T) == {"size": "22", "column.0": "größe"}
        assert store.find(T) == replace(before, properties={**before.properties, "k": "2"})
        ended = begin(store)
        store.abort_txn(ended)
        with pytest.raises(TxnAbortedError):
            store.keep_statistics(T, {"size": "3"}, txn_id=ended)
        assert condition(store.keep_statistics, U, {"size": "1"})[1] == "42P01"
        store.drop_table(T)
        store.create_table(table(location="/wh/t2"))
        assert store.statistics(T) == {}

    def test_altering_replaces_the_constraints(self, store, reopen):
        store.create_table(
            table(constraints=(check_constraint("x", "a > 0"), check_constraint("y", "a > 1")))
        )
        info = Constraint("z", ConstraintKind.CHECK, "b <> ''")
        store.alter_table(T, constraints=[check_constraint("y", "a > 1"), info])
        assert set(reopen().find(T).constraints) == {check_constraint("y", "a > 1"), info}
        store.alter_table(T, constraints=[])
        assert reopen().find(T).constraints == ()

    def test_columns_that_are_there_twice_are_refused_and_nothing_is_changed(self, store):
        store.create_table(table(partitioned=True))
        before = store.find(T)
        for names in (["x", "x"], ["x", "p"]):
            columns = [Column(name, "int") for name in names]
            refused = condition(store.alter_table, T, columns=columns)
            assert refused == ("COLUMN_ALREADY_EXISTS", "42711")
        assert store.find(T) == before

    def test_a_column_that_is_there_is_refused_and_nothing_is_changed(self, store):
        store.create_table(table(partitioned=True))
        before = store.find(T)
        for name in ("a", "p", "new"):
            columns = [Column("new", "int"), Column(name, "int")]
            refused = condition(store.alter_table, T, add_columns=columns)
            assert refused == ("COLUMN_ALREADY_EXISTS", "42711")
        assert store.find(T) == before

    def test_a_table_that_is_missing_is_said_to_be(self, store):
        missing = ("TABLE_OR_VIEW_NOT_FOUND", "42P01")
        assert condition(store.drop_table, T) == missing
        assert condition(store.rename_table, T, U) == missing
        assert condition(store.alter_table, T, set_properties={"a": "b"}) == missing
        assert store.partitions(T) == []

    # ── dropping ─────────────────────────────────────────────────────────────────────────────

    @needs("queues_cleanups")
    def test_a_dropped_tables_directory_waits_to_be_cleaned(self, store, reopen):
        """The session may die right after the store's decision; another one finds the rest."""
        store.create_table(table(location="/wh/t: 1:2"))
        pending = store.drop_table(T)
        assert (pending.table, pending.location) == (T, "/wh/t: 1:2")
        later = reopen()
        assert later.find(T) is None
        assert later.pending_cleanups() == [pending]
        later.mark_cleaned(pending.id)
        later.mark_cleaned(pending.id)
        assert store.pending_cleanups() == []

    @needs("keeps_state_tables")
    def test_a_state_table_is_renamed_and_dropped_with_its_table(self, store, reopen):
        """In the same step: no death leaves a table without it, or a later namesake with it. So is
        a table of pending records."""
        (of_t, waits_for_t), (of_u, waits_for_u) = cdc.cdc_table_names(T), cdc.cdc_table_names(U)
        store.create_table(table())
        bond = cdc.new_bond(store.find(T))
        store.create_table(table(of_t, properties={cdc.ORDER: "", **bond}))
        store.create_table(table(waits_for_t, properties={cdc.PENDING: "true", **bond}))
        write(store, of_t)
        store.create_table(table(of_u))
        assert condition(store.rename_table, T, U)[0] == "TABLE_OR_VIEW_ALREADY_EXISTS"
        assert store.find(T) is not None and store.find(U) is None
        store.drop_table(of_u)
        store.rename_table(T, U)
        assert store.tables("default") == [U.name, of_u.name, waits_for_u.name]
        assert seen(store, of_u).is_valid(1)
        store.drop_table(U)
        assert store.tables("default") == []
        if store.abilities.queues_cleanups:
            assert {one.table for one in reopen().pending_cleanups()} == {U, of_u, waits_for_u}

    def test_a_table_that_only_has_the_name_of_a_state_table_stays(self, store):
        store.create_table(table())
        for name in cdc.cdc_table_names(T):
            store.create_table(table(name))
        store.drop_table(T)
        assert store.tables("default") == [name.name for name in cdc.cdc_table_names(T)]

    @needs("queues_cleanups")
    def test_a_directory_is_not_used_again_before_it_is_cleaned(self, store):
        store.create_table(table())
        pending = store.drop_table(T)
        assert condition(store.create_table, table())[0] == "LOCATION_ALREADY_EXISTS"
        store.create_table(table(location="/wh/elsewhere"))
        store.drop_table(T)
        store.mark_cleaned(pending.id)
        store.create_table(table())

    @needs("queues_cleanups")
    def test_write_ids_go_on_above_those_of_a_dropped_namesake(self, store):
        store.create_table(table())
        assert [write(store), write(store, commit=False)] == [1, 2]
        store.mark_cleaned(store.drop_table(T).id)
        store.create_table(table())
        assert write(store) == 3

    @needs("queues_cleanups")
    def test_a_late_writer_of_a_dropped_namesake_is_never_seen(self, store):
        """Its transaction timed out, its process lives, and publishes into the new table."""
        store.create_table(table())
        zombie = write(store, commit=False)
        store.mark_cleaned(store.drop_table(T).id)
        store.create_table(table())
        own = write(store)
        assert not seen(store).is_valid(zombie)
        assert seen(store).is_valid(own)

    @needs("queues_cleanups")
    def test_a_late_writer_of_a_renamed_table_is_never_seen_in_its_directory(self, store):
        """CREATE t; RENAME t TO u; DROP u: the next t lies where u lay."""
        store.create_table(table())
        write(store)
        store.rename_table(T, U)
        zombie, dead = write(store, U, commit=False), write(store, U)
        store.mark_cleaned(store.drop_table(U).id)
        store.create_table(table())
        own = write(store)
        assert own > max(zombie, dead), "a cleaner that sleeps deletes by names"
        assert not seen(store).is_valid(zombie) and seen(store).is_valid(own)

    @needs("queues_cleanups")
    def test_a_table_in_the_place_of_a_dropped_one_goes_on_above_its_write_ids(self, store):
        store.create_table(table(location="/ext/x"))
        write(store)
        zombie = write(store, commit=False)
        store.mark_cleaned(store.drop_table(T).id)
        store.create_table(table(U, "/ext/x"))
        assert write(store, U) == zombie + 1, "a cleaner that sleeps deletes by names"
        assert not seen(store, U).is_valid(zombie), "its late directory would be in the place"
        store.mark_cleaned(store.drop_table(U).id)
        within = TableName("default", "w")
        store.create_table(table(within, "/ext/x/k=1"))
        assert write(store, within) == zombie + 2, "the cleaner may sleep in a partition"
        beside = TableName("default", "b")
        store.create_table(table(beside, "/ext/xx"))
        assert write(store, beside) == 1

    @needs("tables anywhere")
    def test_the_store_tells_whose_directories_there_are(self, store):
        store.create_table(table())
        store.create_table(table(U, "/ext/u"))
        store.drop_table(T)
        owners = sorted(store.owners(), key=lambda owner: owner.location)
        assert owners == [Owner(U, "/ext/u"), Owner(T, "/wh/t", is_dropped=True)]

    @needs("tables anywhere")
    def test_an_adopted_directory_seeds_the_write_ids_and_all_in_it_is_seen(self, store):
        store.create_table(table())
        write(store, commit=False)  # write id 1 of a namesake must not hide the adopted 1
        store.drop_table(T)
        store.create_table(table(location="/old/t"), first_write_id=8)
        valid = seen(store)
        assert [valid.is_valid(write_id) for write_id in (1, 7, 8)] == [True, True, False]
        assert write(store) == 8

    # ── renaming ─────────────────────────────────────────────────────────────────────────────

    @needs("old directories")
    def test_a_renamed_table_keeps_directory_partitions_and_write_ids(self, store):
        store.create_table(table(partitioned=True))
        committed, aborted = write(store), write(store, commit=False)
        store.commit_txn(
            begin(store), Commit(added_partitions={T: [Partition(("1",), "/wh/t/p=1")]})
        )
        store.rename_table(T, U)
        assert store.find(T) is None
        assert store.find(U) == table(U, "/wh/t", partitioned=True)
        assert store.partitions(U) == [Partition(("1",), "/wh/t/p=1")]
        assert seen(store, U).is_valid(committed) and not seen(store, U).is_valid(aborted)
        assert write(store, U) == 3

    @needs("old directories")
    def test_a_table_moves_to_another_database(self, store):
        store.create_database(SALES)
        store.create_table(table())
        moved = TableName("sales", "v")
        store.rename_table(T, moved)
        assert store.tables("default") == [] and store.tables("sales") == ["v"]
        assert store.find(moved).location == "/wh/t"

    def test_a_rename_to_a_name_that_is_taken_or_nowhere_is_refused(self, store):
        store.create_table(table())
        store.create_table(table(U))
        assert condition(store.rename_table, T, U)[0] == "TABLE_OR_VIEW_ALREADY_EXISTS"
        nowhere = TableName("nope", "t")
        assert condition(store.rename_table, T, nowhere)[0] == "SCHEMA_NOT_FOUND"

    @needs("queues_cleanups")
    def test_a_name_with_a_past_takes_a_renamed_table_and_still_hides_its_own_past(self, store):
        """DROP prod; RENAME staging TO prod; DROP prod; CREATE prod."""
        store.create_table(table())
        zombie = [write(store), write(store, commit=False)][1]
        pending = store.drop_table(T)
        store.create_table(table(U))
        assert [write(store, U), write(store, U)] == [1, 2]
        store.rename_table(U, T)
        assert seen(store).is_valid(2), "the renamed table's own write id 2 is committed"
        assert write(store) == 3
        store.mark_cleaned(store.drop_table(T).id)
        store.mark_cleaned(pending.id)
        store.create_table(table())
        assert write(store) == 4
        assert not seen(store).is_valid(zombie)

    @needs("queues_cleanups")
    def test_a_name_renamed_away_does_not_number_from_one_again(self, store):
        store.create_table(table())
        zombie = write(store, commit=False)
        store.rename_table(T, U)
        store.mark_cleaned(store.drop_table(U).id)
        store.create_table(table())
        assert write(store) > zombie
        assert not seen(store).is_valid(zombie)

    @needs("queues_cleanups")
    def test_a_late_writer_of_a_namesake_stays_hidden_when_the_table_is_renamed(self, store):
        """The directory moves with the table, and the late writer knows the directory."""
        store.create_table(table())
        zombie = write(store, commit=False)
        store.mark_cleaned(store.drop_table(T).id)
        store.create_table(table())
        store.rename_table(T, U)
        write(store, U)
        assert not seen(store, U).is_valid(zombie)

    # ── partitions ───────────────────────────────────────────────────────────────────────────

    def test_partitions_come_and_go_with_a_commit(self, store):
        store.create_table(table(partitioned=True))
        one, two = Partition(("1",), "/wh/t/p=1"), Partition(("2",), "/wh/t/p=2")
        null = Partition((None,), "/wh/t/p=__HIVE_DEFAULT_PARTITION__")
        txn = begin(store)
        store.commit_txn(txn, Commit(added_partitions={T: [two, null, one]}))
        assert store.partitions(T) == [null, one, two]
        store.commit_txn(
            begin(store), Commit(added_partitions={T: [one]}, dropped_partitions={T: [("2",)]})
        )
        assert store.partitions(T) == [null, one]

    def test_null_and_the_empty_string_are_one_partition(self, store):
        store.create_table(table(partitioned=True))
        both = [Partition(("",), "/wh/t/p=x"), Partition((None,), "/wh/t/p=x")]
        store.commit_txn(begin(store), Commit(added_partitions={T: both}))
        assert store.partitions(T) == [Partition((None,), "/wh/t/p=x")]

    @needs("commits in one step")
    def test_a_commit_whose_partitions_do_not_fit_changes_nothing(self, store):
        store.create_table(table(partitioned=True))
        good, bad = Partition(("1",), "/a"), Partition(("1", "2"), "/b")
        txn = begin(store)
        with pytest.raises(CatalogError):
            store.commit_txn(txn, Commit(added_partitions={T: [good, bad]}))
        with pytest.raises(CatalogError):
            store.commit_txn(txn, Commit(added_partitions={U: [good]}))
        assert store.partitions(T) == []
        store.commit_txn(txn)  # it is still open

    # ── a table that comes into being with a commit ──────────────────────────────────────────

    @needs("queues_cleanups")
    def test_a_table_and_its_first_rows_appear_with_one_commit(self, store):
        txn = begin(store)
        place = store.queue_cleanup(T, "/wh/t", txn_id=txn)
        first = store.allocate_write_id(txn, T)
        assert store.find(T) is None
        store.commit_txn(txn, Commit(created_table=table(), cleanup_id=place.id))
        assert store.find(T) == table()
        assert store.pending_cleanups() == []
        assert seen(store).is_valid(first)
        second = write(store)
        assert seen(store).is_valid(second)

    @needs("queues_cleanups")
    def test_rows_of_a_dropped_namesake_stay_hidden_from_a_table_made_by_a_commit(self, store):
        store.create_table(table())
        lost = write(store, commit=False)
        store.mark_cleaned(store.drop_table(T).id)
        txn = begin(store)
        first = store.allocate_write_id(txn, T)
        store.commit_txn(txn, Commit(created_table=table()))
        assert first > lost
        assert seen(store).is_valid(first)
        assert not seen(store).is_valid(lost)

    @needs("replaces_tables")
    def test_a_commit_puts_a_table_in_the_place_of_another_one(self, store):
        store.create_table(table(partitioned=True))
        lost = write(store, commit=False)
        txn = begin(store)
        new = replace(table(), columns=(Column("b", "date"),), location="/wh/t_1")
        place = store.queue_cleanup(T, "/wh/t_1", txn_id=txn)
        first = store.allocate_write_id(txn, T)
        assert store.find(T) == table(partitioned=True)
        lease = begin(store)
        store.commit_txn(txn, Commit(created_table=new, is_replacement=True, cleanup_id=place.id))
        assert store.find(T) == new
        assert store.partitions(T) == []
        assert first > lost
        assert seen(store).is_valid(first) and not seen(store).is_valid(lost)
        # The old directory stays while a transaction of that time is open.
        assert store.pending_cleanups() == [PendingCleanup(ANY, T, "/wh/t", until=lease)]
        assert [one.has_readers for one in store.owners()] == [False, True]

    @needs("replaces_tables")
    def test_a_commit_that_replaces_a_table_needs_none(self, store):
        store.commit_txn(begin(store), Commit(created_table=table(), is_replacement=True))
        assert store.find(T) == table()
        assert store.pending_cleanups() == []

    @needs("queues_cleanups")
    def test_an_aborted_creation_leaves_a_directory_to_be_cleaned_and_no_table(self, store):
        txn = begin(store)
        store.queue_cleanup(T, "/wh/t", txn_id=txn)
        store.abort_txn(txn)
        assert store.find(T) is None
        assert [gone.location for gone in store.pending_cleanups()] == ["/wh/t"]

    @needs("queues_cleanups")
    def test_a_transaction_that_lost_its_locks_can_change_no_table(self, store):
        store.create_table(table())
        dead = begin(store)
        store.abort_txn(dead)
        for change in (
            lambda: store.create_table(table(U), txn_id=dead),
            lambda: store.drop_table(T, txn_id=dead),
            lambda: store.rename_table(T, U, txn_id=dead),
            lambda: store.alter_table(T, set_properties={"k": "v"}, txn_id=dead),
            lambda: store.queue_cleanup(U, "/wh/u", txn_id=dead),
        ):
            with pytest.raises(TxnAbortedError):
                change()
        assert store.find(T) == table()
        assert store.tables("default") == ["t"]
