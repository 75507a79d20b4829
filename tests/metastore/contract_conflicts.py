"""The contract of ``TxnStore``'s conflicts: first committer wins, by exact snapshot isolation."""

from dataclasses import replace

import pytest
from contract_base import INSERT, UPDATE, T, U, begin, every_day, on, table
from over_hive import needs

from acidsql.acid.table import Partition
from acidsql.errors import TxnAbortedError, WriteConflictError
from acidsql.metastore.interface import PLAIN_COMMIT, Commit, LockType, Operation, TxnState

DELETE, OVERWRITE = Operation.DELETE, Operation.OVERWRITE
READ, WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE

# Our operation; then whether it conflicts with their i, u, d, o if their write id is lower.
MATRIX = {
    INSERT: (False, False, False, False),
    UPDATE: (False, True, True, True),
    DELETE: (False, True, True, True),
    OVERWRITE: (True, True, True, True),
}
CASES = [
    (ours, theirs, conflict)
    for ours, row in MATRIX.items()
    for theirs, conflict in zip((INSERT, UPDATE, DELETE, OVERWRITE), row, strict=True)
]
# The partitions of both changes, and the common thing (None: there is none).
PLACES = [
    (None, None, "whole"),
    ("p=1", None, "p=1"),
    (None, "p=1", "p=1"),
    ("p=1", "p=1", "p=1"),
    ("p=1", "p=2", None),
]


def partition(value):
    return Partition((value,), f"/wh/t/p={value}")


class Statement:
    """A transaction with one statement, in the usual order: lock, snapshot, write."""

    def __init__(self, store, *operations, name=T, partition=None, info=""):
        self.store, self.id = store, begin(store, info)
        self.components = [on(WRITE, name, partition, operation) for operation in operations]
        store.lock(self.id, self.components)
        self.snapshot = store.valid_txns(self.id)
        self.name = name

    def write(self):
        self.write_id = self.store.allocate_write_id(self.id, self.name)
        return self

    def commit(self, commit=PLAIN_COMMIT):
        self.store.commit_txn(self.id, replace(commit, snapshot=self.snapshot))

    @property
    def rivals(self):
        return [found.txn_id for found in self.conflicts]

    @property
    def conflicts(self):
        return self.store.write_conflicts(self.id, self.snapshot)


def fails_to_commit(statement, commit=PLAIN_COMMIT):
    try:
        statement.commit(commit)
    except WriteConflictError:
        return True
    return False


@every_day
class ConflictContract:
    # ── what meets what ──────────────────────────────────────────────────────────────────────

    @needs("conflicts by records")
    @pytest.mark.parametrize("ours, theirs, conflict", CASES)
    def test_a_later_committer_loses_as_the_table_says(self, store, ours, theirs, conflict):
        first, second = Statement(store, theirs), Statement(store, ours)
        first.write()
        second.write()
        first.commit()
        assert second.rivals == ([first.id] if conflict else [])
        assert fails_to_commit(second) is conflict

    @needs("conflicts by records")
    @pytest.mark.parametrize("first", [INSERT, OVERWRITE])
    @pytest.mark.parametrize("lower", [INSERT, OVERWRITE])
    def test_an_insert_and_an_overwrite_conflict_if_the_base_hides_the_rows(
        self, store, first, lower
    ):
        """base_N hides rows with a write id up to N, whichever of the two commits first."""
        both = {INSERT: Statement(store, INSERT), OVERWRITE: Statement(store, OVERWRITE)}
        winner = both[first]
        for operation in (lower, *(both.keys() - {lower})):
            both[operation].write()
        (loser,) = (statement for statement in both.values() if statement is not winner)
        winner.commit()
        assert fails_to_commit(loser) is (lower is INSERT)

    @needs("conflicts by records")
    def test_an_insert_that_has_written_nothing_yet_is_hidden_by_no_base(self, store):
        overwriter, inserter = Statement(store, OVERWRITE), Statement(store, INSERT)
        overwriter.write().commit()
        assert inserter.rivals == []
        inserter.write().commit()

    @needs("conflicts by records")
    def test_an_overwrite_without_a_write_id_may_have_hidden_everything(self, store):
        """This cannot be known, so it counts as a conflict."""
        overwriter, inserter = Statement(store, OVERWRITE), Statement(store, INSERT)
        inserter.write()
        overwriter.commit()
        assert fails_to_commit(inserter)

    @needs("conflicts by records")
    @pytest.mark.parametrize("one, other, place", PLACES)
    def test_changes_meet_only_on_a_common_thing(self, store, one, other, place):
        first = Statement(store, UPDATE, partition=one)
        second = Statement(store, UPDATE, partition=other)
        elsewhere = Statement(store, UPDATE, name=U)
        first.write().commit()
        found = [(conflict.table, conflict.partition) for conflict in second.conflicts]
        assert found == ([] if place is None else [(T, None if place == "whole" else place)])
        assert not fails_to_commit(elsewhere)

    def test_a_transaction_has_no_conflict_with_its_own_earlier_statement(self, store):
        store.create_table(table())
        txn = Statement(store, UPDATE).write()
        store.lock(txn.id, [on(WRITE, operation=DELETE)])
        txn.commit()

    # ── exact snapshot isolation ─────────────────────────────────────────────────────────────

    def test_what_the_snapshot_sees_is_no_conflict(self, store):
        """It committed after the transaction began, but before its snapshot was taken."""
        early = begin(store)
        Statement(store, UPDATE).write().commit()
        store.lock(early, [on(WRITE, operation=UPDATE)])
        store.commit_txn(early, Commit(snapshot=store.valid_txns(early)))

    @needs("conflicts by records")
    def test_a_rival_that_began_earlier_conflicts_if_it_commits_after_the_look(self, store):
        rival = begin(store)
        store.lock(rival, [on(WRITE, operation=UPDATE)])
        ours = Statement(store, UPDATE)
        store.commit_txn(rival)
        assert ours.rivals == [rival]

    @needs("conflicts by records")
    def test_a_rival_that_began_later_conflicts_too(self, store):
        ours = Statement(store, UPDATE)
        rival = Statement(store, UPDATE).write()
        rival.commit()
        assert ours.rivals == [rival.id]

    def test_a_rival_that_gave_up_is_none(self, store):
        ours, rival = Statement(store, UPDATE), Statement(store, UPDATE).write()
        store.abort_txn(rival.id)
        assert ours.rivals == []
        ours.commit()

    @needs("conflicts by records")
    def test_conflicts_are_listed_by_number_then_by_place(self, store):
        store.create_table(table(partitioned=True))
        ours = Statement(store, UPDATE)
        later, earlier = Statement(store, UPDATE).write(), Statement(store, UPDATE).write()
        earlier.commit(Commit(added_partitions={T: [partition("2"), partition("1")]}))
        store.commit_txn(later.id)
        found = [(one.txn_id, one.partition, one.write_id) for one in ours.conflicts]
        assert found == [(later.id, None, 1), (earlier.id, "p=1", 2), (earlier.id, "p=2", 2)]

    def test_without_a_snapshot_nobody_compares(self, store):
        one, two = Statement(store, UPDATE), Statement(store, UPDATE)
        store.commit_txn(one.id)
        store.commit_txn(two.id)

    @needs("conflicts by records")
    def test_a_statement_can_ask_before_it_writes(self, store):
        """The second statement of a transaction uses the snapshot of the first."""
        ours = Statement(store, UPDATE, name=U)
        rival = Statement(store, DELETE).write()
        rival.commit()
        assert ours.conflicts == []
        about = [on(WRITE, operation=UPDATE), on(READ, U)]
        (found,) = store.write_conflicts(ours.id, ours.snapshot, about)
        assert (found.txn_id, found.table, found.write_id) == (rival.id, T, 1)
        assert store.write_conflicts(ours.id, ours.snapshot, [on(READ)]) == []
        ours.commit()

    @needs("conflicts by records")
    def test_a_renamed_table_is_still_the_same(self, store):
        store.create_table(table())
        ours, rival = Statement(store, UPDATE), Statement(store, UPDATE).write()
        rival.commit()
        store.rename_table(T, U)
        assert [found.table for found in ours.conflicts] == [U]

    # ── at the commit ────────────────────────────────────────────────────────────────────────

    @needs("conflicts by records")
    def test_the_loser_is_still_open_and_nothing_of_its_commit_has_happened(self, store):
        store.create_table(table(partitioned=True))
        ours, rival = Statement(store, UPDATE).write(), Statement(store, UPDATE).write()
        rival.commit()
        for _ in range(2):
            assert fails_to_commit(ours, Commit(added_partitions={T: [partition("1")]}))
        assert store.txn_state(ours.id) is TxnState.OPEN
        assert [lock.txn_id for lock in store.show_locks()] == [ours.id]
        assert store.partitions(T) == []
        store.abort_txn(ours.id)

    @needs("conflicts by records")
    def test_a_conflict_that_the_caller_has_looked_into_is_passed_over(self, store):
        ours = Statement(store, UPDATE)
        one, two = Statement(store, UPDATE).write(), Statement(store, UPDATE).write()
        store.commit_txn(one.id)
        store.commit_txn(two.id)
        assert fails_to_commit(ours, Commit(resolved_txns={one.id}))
        assert not fails_to_commit(ours, Commit(resolved_txns=[two.id, one.id]))

    @needs("conflicts by records")
    def test_the_loser_is_told_who_was_first_where_and_what_to_do(self, store):
        ours = Statement(store, UPDATE, partition="p=1")
        rival = Statement(store, DELETE, info="DELETE  FROM t\nWHERE " + "x" * 300)
        others = [Statement(store, UPDATE) for _ in range(2)]
        for one in (rival, *others):
            store.commit_txn(one.id)
        with pytest.raises(WriteConflictError) as caught:
            ours.commit()
        text = caught.value.message
        assert text.startswith(
            f"Transaction {rival.id} of user ann on host h1 (statement: DELETE FROM t WHERE xxx"
        )
        assert "x… committed a change to default.t/p=1 first" in text.replace("…)", "…")
        assert "2 other transactions" in text
        assert "ROLLBACK" in text and "retries=n" in text and len(text) < 600
        assert caught.value.getCondition() == "WRITE_CONFLICT"
        assert caught.value.getSqlState() == "40001"
        said = caught.value.getMessageParameters()
        assert said.pop("winnerStatement").startswith("DELETE  FROM")
        assert said == {
            "txnId": str(ours.id), "winnerTxnId": str(rival.id), "table": "default.t",
            "partition": "p=1", "winnerUser": "ann", "winnerHost": "h1",
        }  # fmt: skip

    @needs("conflicts by records")
    def test_the_winners_statement_is_the_one_that_locked_last(self, store):
        ours, rival = Statement(store, UPDATE), Statement(store, UPDATE, info="BEGIN")
        store.lock(rival.id, [on(READ, U)], agent_info="UPDATE t SET a = 1")
        rival.commit()
        assert [found.agent_info for found in ours.conflicts] == ["UPDATE t SET a = 1"]

    # ── narrowing ────────────────────────────────────────────────────────────────────────────

    @needs("conflicts by records")
    def test_a_commit_narrows_a_whole_table_to_the_partitions_that_were_written(self, store):
        store.create_table(table(partitioned=True))
        one, two, three = (Statement(store, UPDATE).write() for _ in range(3))
        one.commit(Commit(added_partitions={T: [partition("1")]}))
        two.commit(Commit(added_partitions={T: [partition("2")]}))
        assert [found.partition for found in three.conflicts] == ["p=1", "p=2"]
        with pytest.raises(WriteConflictError) as caught:
            three.commit(Commit(added_partitions={T: [partition("2"), partition("3")]}))
        assert caught.value.getMessageParameters()["winnerTxnId"] == str(two.id)
        three.commit(
            Commit(added_partitions={T: [partition("3"), Partition((None,), "/wh/t/p=null")]})
        )

    def test_a_commit_that_wrote_to_no_partition_is_nobodys_rival(self, store):
        store.create_table(table(partitioned=True))
        one, two = Statement(store, UPDATE).write(), Statement(store, UPDATE).write()
        one.commit(Commit(added_partitions={T: []}))
        assert two.conflicts == []

    @needs("conflicts by records")
    def test_what_names_a_partition_is_not_narrowed(self, store):
        store.create_table(table(partitioned=True))
        one, two = (Statement(store, OVERWRITE, partition="p=9").write() for _ in range(2))
        one.commit(Commit(added_partitions={T: []}))
        assert fails_to_commit(two, Commit(added_partitions={T: [partition("1")]}))

    # ── by row ───────────────────────────────────────────────────────────────────────────────

    @needs("conflicts by records")
    @pytest.mark.parametrize(
        "ours, theirs, by_row",
        [
            ([UPDATE], [DELETE], True),
            ([UPDATE, DELETE], [UPDATE, DELETE], True),
            ([UPDATE, INSERT], [UPDATE], False),
            ([UPDATE], [UPDATE, INSERT], False),
            ([UPDATE], [OVERWRITE], False),
            ([UPDATE, OVERWRITE], [UPDATE], False),
        ],
    )
    def test_delete_events_tell_only_if_both_did_nothing_but_change_rows(
        self, store, ours, theirs, by_row
    ):
        one, two = Statement(store, *ours), Statement(store, *theirs)
        store.commit_txn(two.id)
        assert [found.by_row for found in one.conflicts] == [by_row]

    @needs("conflicts by records")
    def test_what_was_inserted_elsewhere_is_no_reason_not_to_compare_rows(self, store):
        ours, rival = Statement(store, UPDATE), Statement(store, UPDATE, partition="p=1")
        store.lock(rival.id, [on(READ, partition="p=2", operation=INSERT)])
        store.commit_txn(rival.id)
        assert [(found.partition, found.by_row) for found in ours.conflicts] == [("p=1", True)]

    # ── undone statements ────────────────────────────────────────────────────────────────────

    def test_what_an_undone_statement_recorded_is_nobodys_conflict(self, store):
        ours, other = Statement(store, INSERT).write(), Statement(store, UPDATE, name=U)
        store.lock(ours.id, [on(WRITE, U, operation=UPDATE)])
        for _ in range(2):
            store.restore_components(ours.id, ours.components)
        store.commit_txn(ours.id)
        assert other.conflicts == []

    @needs("conflicts by records")
    def test_restored_components_are_those_of_the_statements_that_stay(self, store):
        ours = Statement(store, UPDATE).write()
        rival = Statement(store, UPDATE).write()
        store.commit_txn(rival.id)
        store.restore_components(ours.id, [])
        assert ours.conflicts == []
        store.restore_components(ours.id, [on(READ, U), *ours.components])
        assert ours.rivals == [rival.id]
        assert {lock.table for lock in store.show_locks()} == {"t"}  # its locks stay

    @needs("conflicts by records")
    def test_restored_components_have_the_transactions_write_id(self, store):
        """Otherwise an INSERT that an OVERWRITE hides would not be known to be hidden."""
        ours, rival = Statement(store, INSERT).write(), Statement(store, OVERWRITE).write()
        store.restore_components(ours.id, ours.components)
        rival.commit()
        assert ours.rivals == [rival.id]

    def test_an_aborted_transaction_has_nothing_to_restore(self, store):
        ours = Statement(store, UPDATE)
        store.abort_txn(ours.id)
        with pytest.raises(TxnAbortedError):
            store.restore_components(ours.id, [])
