"""What the cleaner keeps for older versions, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from table_of_events import NAME

from acidsql.compaction.initiator import Initiator
from acidsql.compaction.kept_history import with_history_properties
from acidsql.metastore.compaction_queue import CompactionState, CompactionType
from acidsql.settings import Settings

KEPT = {"acidsql.history.retention": "1h", "acidsql.history.max.ratio": "100"}


@pytest.fixture
def clock(warehouse, monkeypatch):
    """Moves the cleaner's clock forward by so many hours."""
    ahead, now_ms = [0], warehouse.store.now_ms
    monkeypatch.setattr(warehouse.store, "now_ms", lambda: now_ms() + ahead[0])

    def move(hours):
        ahead[0] += hours * 3_600_000

    return move


def test_a_property_in_small_letters_holds_beside_one_in_capitals():
    small, large = dict.fromkeys(KEPT, "2"), {name.upper(): "1" for name in KEPT}
    for properties in (large, small, large | small, small | large):
        kept = with_history_properties(properties, Settings())
        wanted = 2 if small.items() <= properties.items() else 1
        assert kept.history_retention_ms == wanted * 3_600_000
        assert kept.history_max_ratio == wanted


def compacted(warehouse, kind=CompactionType.MAJOR):
    """Two changes, and a compaction."""
    warehouse.change([0, 0, 0], [1])
    warehouse.change([0], [0])
    return warehouse.compact(kind, **KEPT).id


def clean(warehouse, **settings):
    warehouse.txns.settings = Settings.of(KEPT | settings)
    return {one.path.rsplit("/", 1)[1] for one in warehouse.cleaner().run()}


def is_waiting(warehouse, number):
    return warehouse.entry(number).state is CompactionState.READY_FOR_CLEANING


def rows_at(warehouse, version):
    seen = warehouse.now()
    older = replace(seen, write_ids={NAME: seen.write_ids[NAME].up_to(version)})
    assert warehouse.read(older) == warehouse.expected(older), version


def test_an_age_is_kept_until_its_compaction_is_old_enough_and_the_oldest_goes_first(
    warehouse, clock, monkeypatch
):
    first = compacted(warehouse)  # base_2
    assert clean(warehouse) == set() and is_waiting(warehouse, first)
    second = compacted(warehouse)  # base_4
    assert clean(warehouse) == set()
    for version in range(1, 5):
        rows_at(warehouse, version)
    assert warehouse.store.oldest_version(NAME) == 0
    clock(2)
    third = compacted(warehouse)  # base_6, by the store's own clock as old as the others
    assert is_waiting(warehouse, first) and is_waiting(warehouse, second)
    gone = clean(warehouse)
    assert len([one for one in warehouse.directories() if one.startswith("base_")]) == 1
    assert {one.split("_v")[0] for one in gone if one.startswith("base_")} == {
        "base_0000002", "base_0000004",
    }  # fmt: skip
    assert warehouse.store.oldest_version(NAME) == 6
    assert not any(is_waiting(warehouse, one) for one in (first, second, third))


def test_no_more_bytes_are_kept_than_the_ratio_allows(warehouse):
    first = compacted(warehouse)
    second = compacted(warehouse)
    whole = warehouse.directories()
    assert clean(warehouse) == set() and warehouse.directories() == whole
    # The newer age is the base of write id 2 and what two changes wrote; the older one goes.
    sizes = {
        one.name: sum(file.size for file in warehouse.fs.list(one.path))
        for one in warehouse.fs.list(warehouse.place)
    }
    live = next(size for name, size in sizes.items() if name.startswith("base_0000004"))
    newer = sum(
        size
        for name, size in sizes.items()
        if name.startswith(("base_0000002", "delta_0000003", "delete_delta_0000003"))
        or name.startswith(("delta_0000004", "delete_delta_0000004"))
    )
    enough = str(newer / live + 0.001)
    gone = clean(warehouse, **{"acidsql.history.max.ratio": enough})
    assert gone and all("_0000001_" in one or "_0000002_" in one for one in gone)
    assert warehouse.store.oldest_version(NAME) == 2
    assert not is_waiting(warehouse, first) and is_waiting(warehouse, second)
    for version in (2, 3, 4):
        rows_at(warehouse, version)
    assert clean(warehouse, **{"acidsql.history.max.ratio": str(newer / live - 0.001)})
    assert warehouse.store.oldest_version(NAME) == 4 and not is_waiting(warehouse, second)


def test_a_minor_compaction_holds_nothing_back_because_the_wider_delta_has_the_same_events(
    warehouse,
):
    minor = compacted(warehouse, CompactionType.MINOR)
    assert clean(warehouse) and not is_waiting(warehouse, minor)
    rows_at(warehouse, 1)
    assert warehouse.store.oldest_version(NAME) == 0
    major = compacted(warehouse)
    assert clean(warehouse) == set() and is_waiting(warehouse, major)
    for version in range(1, 5):
        rows_at(warehouse, version)


def test_what_rolled_back_is_not_held_back_and_the_tables_own_property_goes_first(warehouse):
    number = compacted(warehouse)
    txn = warehouse.begin()
    warehouse.write(txn, [0], [])
    txn.abort("a test")
    assert {one.split("_")[1] for one in clean(warehouse)} == {"0000003"}
    assert is_waiting(warehouse, number)
    table = warehouse.store.find(NAME)
    changed = replace(table, properties={**table.properties, "acidsql.history.retention": "0s"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warehouse.store, "find", lambda name: changed)
        assert clean(warehouse)
    assert not is_waiting(warehouse, number)


def test_the_cleaner_lists_a_directory_again_only_when_something_can_go(
    warehouse, clock, monkeypatch
):
    compacted(warehouse)
    warehouse.txns.settings = Settings.of(KEPT)
    cleaner, looks = warehouse.cleaner(), []
    look = cleaner._take_snapshot
    monkeypatch.setattr(cleaner, "_take_snapshot", lambda name: looks.append(name) or look(name))
    assert cleaner.clean_after_compactions() == [] and len(looks) == 1
    assert cleaner.clean_after_compactions() == [] and len(looks) == 1
    clock(2)
    assert cleaner.clean_after_compactions() and len(looks) == 2


def test_a_base_that_is_kept_as_history_asks_for_no_compaction(warehouse):
    compacted(warehouse)
    compacted(warehouse)
    initiator = Initiator(warehouse.store, Settings.of(KEPT), "here-1")
    clean(warehouse)
    (checked,) = initiator.run()
    assert checked.id is None, checked
    assert any(one.startswith("base_0000002") for one in warehouse.directories())
