"""``conflict_rules`` compared with the simplest way to compute the same."""

import itertools

import pytest
from hypothesis import given, settings, strategies

from acidsql.acid.table import TableName
from acidsql.metastore import conflict_rules
from acidsql.metastore.conflict_rules import BY_ROW, RECORDED, RecordedChange, Rival
from acidsql.metastore.interface import Operation, WriteConflict
from acidsql.metastore.lock_rules import overlaps

INSERT, UPDATE, DELETE, OVERWRITE = RECORDED
PARTITIONS = (None, "p=1", "p=2")

# One write id for each table, as in a transaction: (database, table, partition), operation.
places = strategies.tuples(
    strategies.just("d"), strategies.sampled_from("tu"), strategies.sampled_from(PARTITIONS)
)
write_ids = strategies.dictionaries(strategies.sampled_from("tu"), strategies.integers(1, 4))
done = strategies.lists(strategies.tuples(places, strategies.sampled_from(RECORDED)), max_size=5)


@strategies.composite
def changes(draw):
    ids = draw(write_ids)
    return [RecordedChange(*place, operation, ids.get(place[1])) for place, operation in draw(done)]


rivals = strategies.builds(
    lambda txn_id, theirs: Rival(txn_id, "u", "h", "s", theirs),
    strategies.integers(1, 9),
    changes(),
)


def expected(ours, theirs):
    """(table, partition, by_row) of each place where two transactions conflict."""
    met = {
        (one.table, one.partition or other.partition)
        for one, other in itertools.product(ours, theirs)
        if overlaps(one, other) and is_conflict(one, other)
    }
    return {
        (table, partition, all(
            one.operation in BY_ROW
            for one in (*ours, *theirs)
            if overlaps(one, RecordedChange("d", table, partition, UPDATE))
        ))
        for table, partition in met
    }  # fmt: skip


def is_conflict(one, other):
    """The table in words: changes of old rows always conflict, an INSERT only with a base above
    it."""
    operations = {one.operation, other.operation}
    if INSERT not in operations:
        return True
    if operations != {INSERT, OVERWRITE} or one.write_id is None:
        return False
    base, rows = (one, other) if one.operation is OVERWRITE else (other, one)
    return other.write_id is None or base.write_id > rows.write_id


@settings(max_examples=500)
@given(changes(), strategies.lists(rivals, max_size=3, unique_by=lambda rival: rival.txn_id))
def test_conflicts_are_those_of_every_pair_of_changes(ours, others):
    found = conflict_rules.find_conflicts(ours, others)
    for rival in others:
        places = [
            (one.table.name, one.partition, one.by_row)
            for one in found
            if one.txn_id == rival.txn_id
        ]
        assert len(set(places)) == len(places)
        assert set(places) == expected(ours, rival.changes)
    order = [(one.txn_id, str(one.table), one.partition or "") for one in found]
    assert order == sorted(order)


@given(changes(), rivals)
def test_what_is_not_worth_looking_at_conflicts_with_nothing(ours, rival):
    operations = conflict_rules.rival_operations(change.operation for change in ours)
    seen = [change for change in rival.changes if change.operation in operations]
    less = Rival(rival.txn_id, rival.user, rival.host, rival.agent_info, seen)
    assert conflict_rules.find_conflicts(ours, [less]) == conflict_rules.find_conflicts(
        ours, [rival]
    )


def test_thousands_of_partitions_are_compared_without_comparing_each_with_each():
    count = 20_000
    ours = [RecordedChange("d", "t", f"p={n}", UPDATE, 1) for n in range(count)]
    theirs = [RecordedChange("d", "t", f"p={n}", UPDATE, 2) for n in range(count - 1, 2 * count)]
    (found,) = conflict_rules.find_conflicts(ours, [Rival(7, "u", "h", "", theirs)])
    assert found.partition == f"p={count - 1}"


# ── what a person is told ────────────────────────────────────────────────────────────────────


def lost_to(txn_id, **fields):
    known = {"partition": None, "write_id": 1, "by_row": True, "agent_info": "UPDATE t"}
    known |= {"user": "ann", "host": "h1", **fields}
    return WriteConflict(txn_id=txn_id, table=TableName("d", "t"), **known)


@pytest.mark.parametrize(
    "conflicts, says",
    [
        ([lost_to(5)], "Transaction 5 of user ann on host h1 (statement: UPDATE t) committed a "
         "change to d.t first, and transaction 7, which changes it too, does not see it. ROLLBACK"),
        ([lost_to(5, partition="p=1", agent_info=" ")], "host h1 committed a change to d.t/p=1 "),
        ([lost_to(5), lost_to(5, partition="p=1"), lost_to(6)], "it (1 other transaction did so"),
    ],
)  # fmt: skip
def test_the_error_names_the_first_conflict(conflicts, says):
    error = conflict_rules.conflict_error(7, conflicts)
    assert says in error.message
    assert error.getMessageParameters()["partition"] == (conflicts[0].partition or "")


def test_a_statement_of_any_length_is_told_in_one_line():
    assert conflict_rules.short_statement("UPDATE t\n  SET a = 1\n") == "UPDATE t SET a = 1"
    assert len(conflict_rules.short_statement("x" * 10_000)) < 300


def test_only_what_is_recorded_can_conflict():
    assert set(Operation) - set(RECORDED) == {Operation.SELECT, Operation.NO_TXN}
