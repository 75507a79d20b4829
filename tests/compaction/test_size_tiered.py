"""Size-tiered minor compactions, from the initiator to the cleaner, without Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from table_of_events import NAME

from acidsql.compaction import worker
from acidsql.compaction.decision import SIZE_TIERED, max_remaining_deltas, may_tier
from acidsql.compaction.housekeeper import keep_house
from acidsql.compaction.initiator import Initiator
from acidsql.errors import SettingError
from acidsql.metastore.abilities import Abilities
from acidsql.metastore.compaction_queue import CompactionState, CompactionType
from acidsql.settings import Settings
from acidsql.storage.folding.compact import staging_of

MINOR = CompactionType.MINOR
FEW = {"hive.compactor.delta.num.threshold": "3", "hive.compactor.delta.pct.threshold": "100"}
INSERT_ONLY = {"transactional_properties": "insert_only"}
LARGE = range(40)  # a change with a file in each of so many buckets


@pytest.fixture
def tiers(warehouse):
    return with_tiers(warehouse)


def with_tiers(warehouse, deletes=True):
    """Write a base, one large delta, and three small changes, two of which may delete rows."""
    warehouse.change([0])
    warehouse.change([0])
    warehouse.compact()
    warehouse.change(LARGE)
    warehouse.change([0])
    warehouse.change([1], [3] if deletes else [])
    warehouse.change([0, 1], [7, 9] if deletes else [])
    warehouse.cleaner().run()
    return warehouse


def initiate(warehouse, **settings):
    initiator = Initiator(warehouse.store, Settings.of({**FEW, **settings}), "here-1")
    return next(iter(initiator.run()), None)


def check(warehouse):
    now = warehouse.now()
    assert warehouse.read(now) == warehouse.expected(now)


def test_only_the_newest_small_deltas_are_merged_and_only_they_are_deleted(tiers):
    before = set(tiers.directories())
    found = initiate(tiers)
    assert "takes the newest 5 of 6 directories, from write id 4 on" in found.why
    _, seen = tiers.lease()
    tiers.worker(**FEW).run_next()
    entry = tiers.entry(found.id)
    assert (entry.state, entry.highest_write_id) == (CompactionState.READY_FOR_CLEANING, 6)
    assert entry.message.startswith(f"{found.why}; read 5 directories")
    check(tiers)
    merged = {"delta_0000004_0000006", "delete_delta_0000004_0000006"}
    assert set(tiers.directories()) == before | merged
    assert tiers.cleaner().run() == []  # a snapshot still reads what was replaced
    assert tiers.read(seen) == tiers.expected(seen)
    for txn in tiers.store.show_txns():
        tiers.store.abort_txn(txn.txn_id)
    removed = {one.path.rpartition("/")[2] for one in tiers.cleaner().run()}
    kept = {"base_0000002", "delta_0000003_0000003_0001"}
    assert removed == before - kept
    assert set(tiers.directories()) == kept | merged
    check(tiers)


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (MINOR, ["base_0000002", "delete_delta_0000003_0000007", "delta_0000003_0000007"]),
        (CompactionType.MAJOR, ["base_0000007"]),
    ],
)
def test_a_later_compaction_takes_what_was_made_as_a_whole(tiers, kind, left):
    initiate(tiers)
    tiers.worker(**FEW).run_next()
    tiers.change([0, 1], [12])
    check(tiers)
    tiers.compact(kind)
    check(tiers)
    tiers.cleaner().run()
    assert tiers.directories() == left
    check(tiers)


def test_who_asks_for_a_minor_compaction_gets_one_of_all_deltas(tiers):
    tiers.compact(MINOR)
    tiers.cleaner().run()
    assert tiers.directories() == [
        "base_0000002", "delete_delta_0000003_0000006", "delta_0000003_0000006",
    ]  # fmt: skip
    check(tiers)


def test_a_table_may_have_hives_rule(tiers):
    own = {"compactorthreshold.acidsql.compactor.strategy": "hive"}
    tiers.store.alter_table(NAME, set_properties=own)
    found = initiate(tiers)
    assert found.why.endswith("more than 3 deltas")
    assert tiers.entry(found.id).properties == {}


def test_a_worker_with_a_higher_threshold_does_what_the_initiator_asks_for(tiers):
    """With its own threshold, it would leave all of these deltas, and be asked again for ever."""
    tiers.compact(MINOR)
    tiers.cleaner().run()
    tiers.change(LARGE)
    tiers.change([0])
    assert len(tiers.directories()) == 5  # one of them is the base
    found = initiate(tiers)
    tiers.worker().run_next()
    assert tiers.entry(found.id).state is CompactionState.READY_FOR_CLEANING
    tiers.cleaner().run()
    assert initiate(tiers) is None
    check(tiers)


def test_an_old_aborted_transaction_makes_a_compaction_of_all_deltas(tiers):
    """Its deltas may be anywhere."""
    txn = tiers.begin()
    tiers.write(txn, [0], [])
    txn.abort("a test")
    found = initiate(
        tiers,
        **{
            "hive.compactor.aborted.txn.time.threshold": "1ms",
            "hive.compactor.delta.num.threshold": "99",
        },
    )
    assert "was aborted" in found.why
    assert tiers.entry(found.id).properties == {}


def test_an_unknown_strategy_fails_and_changes_nothing(tiers):
    before = tiers.directories()
    number = tiers.queue(MINOR, properties={"acidsql.compactor.strategy": "best"})
    with pytest.raises(SettingError, match="one of size_tiered, hive"):
        tiers.worker().run_next()
    assert tiers.entry(number).state is CompactionState.FAILED
    assert tiers.directories() == before


def test_tables_that_hive_compacts_too_and_insert_only_ones_have_hives_rule(tiers):
    table = tiers.store.find(NAME)
    beside_hive = SimpleNamespace(abilities=Abilities(shared_with_hive=True))
    assert max_remaining_deltas(tiers.store, table, SIZE_TIERED, Settings()) == 10
    assert not may_tier(beside_hive, table)
    assert not may_tier(tiers.store, replace(table, properties=INSERT_ONLY))
    assert max_remaining_deltas(beside_hive, table, SIZE_TIERED, Settings()) is None


@pytest.mark.parametrize(
    ("first", "second", "deletes", "step"),
    [
        ({}, SIZE_TIERED, False, 0),
        ({}, SIZE_TIERED, True, 0),
        ({}, SIZE_TIERED, True, 1),  # before the second of a pair
        (SIZE_TIERED, {}, False, 0),
        (SIZE_TIERED, SIZE_TIERED, True, 1),
    ],
)
def test_who_slept_before_a_renaming_puts_nothing_in_place(
    warehouse, monkeypatch, first, second, deletes, step
):
    """The worker has made sure that the compaction is its own, and sleeps. Meanwhile its
    transaction times out, others write, and another worker compacts another range: if the first
    was to take all deltas, and the second is size-tiered, their results would overlap."""
    tiers = with_tiers(warehouse, deletes)
    number, worker = tiers.queue(MINOR, properties=first), tiers.worker(**FEW)
    rename, steps = type(tiers.fs).rename, []

    def slowly(fs, source, target):
        if source.rpartition("/")[2] in ("0", "1"):  # a result; its number in the staging
            steps.append(target)
            if len(steps) == step + 1:
                meanwhile()
        rename(fs, source, target)

    def meanwhile():
        tiers.store.abort_txn(worker.txn_id)
        keep_house(tiers.store, Settings())
        tiers.store.abort_compactions([number])
        tiers.change([0, 1], [2] if deletes else [])
        tiers.change([0], [5] if deletes else [])
        tiers.compact(MINOR, properties=second, **FEW)

    monkeypatch.setattr(type(tiers.fs), "rename", slowly)
    with pytest.raises(FileNotFoundError):
        worker.run_next()
    assert tiers.entry(number).state is CompactionState.ABORTED
    kept = [n for n in tiers.directories() if n.startswith("delta_") and n.endswith("_0000008")]
    assert len(kept) == 1
    check(tiers)
    tiers.compact()
    tiers.cleaner().run()
    assert tiers.directories() == ["base_0000008"]
    check(tiers)


def test_what_cannot_be_deleted_is_taken_from_the_dead_once(warehouse, monkeypatch):
    """Its files may belong to another user. If it got a longer name each time, no compaction would
    be possible any more."""
    tiers = with_tiers(warehouse)
    txn = tiers.begin()
    txn.abort("a test")
    staging = staging_of(tiers.place, txn.id)
    tiers.fs.create_directory(staging)
    monkeypatch.setattr(worker, "discard", lambda *_: None)
    for _ in range(2):
        tiers.change([0])
        tiers.compact(MINOR)
        (left,) = [name for name in tiers.directories() if name.startswith("_tmp_")]
        assert left.startswith(staging.rpartition("/")[2])
        assert left.count(".taken") == 1
    tiers.fs.create_directory(staging)  # a late task makes it again
    tiers.compact(MINOR)
    assert sum(name.startswith("_tmp_") for name in tiers.directories()) == 2
    tiers.cleaner().run()
    assert not any(name.startswith("_tmp_") for name in tiers.directories())
