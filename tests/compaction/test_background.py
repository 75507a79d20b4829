"""A session's own compactor and the service, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from table_of_events import NAME, PAPER_SPARK

from acidsql.acid.state import Child, acid_state
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.compaction.background import Background
from acidsql.compaction.service import Service
from acidsql.metastore.compaction_queue import CompactionState
from acidsql.settings import Settings
from acidsql.storage.files.entries import is_lone_half, visible_entries
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.folding import compact as compacting

FEW = Settings.of({"hive.compactor.delta.num.threshold": "1"})


@dataclass
class Committed:
    places: list = field(default_factory=lambda: [(NAME, None)])
    compaction: list = field(default_factory=list)


@pytest.fixture
def inline(warehouse):
    made = Background(
        PAPER_SPARK, warehouse.store, lambda: FEW, user="me", host="here", mode="inline"
    )
    yield made
    made.close()


def test_who_was_stopped_once_compacts_the_next_time(warehouse, inline):
    warehouse.change([0])
    warehouse.change([0])
    inline._worker.stop()
    inline.on_committed(Committed())
    assert warehouse.directories()[0] == "base_0000002"


def test_what_is_found_is_told_to_the_statement(warehouse, inline):
    warehouse.change([0])
    told = Committed()
    inline.on_committed(told)
    assert told.compaction == ["default.t: not compacted: 1 delta, no base; below the thresholds"]


def test_a_session_that_writes_nothing_makes_no_worker(warehouse):
    made = Background(
        PAPER_SPARK, warehouse.store, lambda: FEW, user="me", host="here", mode="background"
    )
    with made.statement():
        pass
    made.on_committed(Committed(places=[]))
    made.close()
    assert "_worker" not in vars(made)


def test_the_service_goes_on_when_a_compaction_fails_in_whatever_way(warehouse, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(compacting, "_run_fold_job", fail)
    warehouse.change([0])
    warehouse.change([0])
    told = []
    service = Service(PAPER_SPARK, warehouse.store, FEW, user="me", host="here", tell=told.append)
    service.run(once=True)
    assert len(told) == 1 and told[0].startswith("queued")
    (entry,) = warehouse.store.compactions()
    assert entry.state is CompactionState.FAILED and "no space left" in entry.message


def test_where_a_half_is_taken_away_while_it_is_looked_at_all_is_looked_at_again(warehouse):
    path = f"{warehouse.place}/delete_delta_0000001_0000003"
    warehouse.fs.create_directory(path)
    (entry,) = warehouse.fs.list(warehouse.place)
    # As Hive's compactor leaves it: without a mark.
    assert not is_lone_half(warehouse.fs, entry, {entry.name})
    warehouse.fs.delete_directory(path)
    with pytest.raises(FileNotFoundError):
        is_lone_half(warehouse.fs, entry, {entry.name})
    listings = iter([[entry], []])
    fs = LocalFileSystem()
    fs.list = lambda at: next(listings) if at == warehouse.place else LocalFileSystem.list(fs, at)
    assert visible_entries(fs, warehouse.place) == ([], [])


def test_what_hive_4s_names_hide_from_a_snapshot_it_is_asked_about():
    """The snapshot's transaction may have ended, and the replaced files may be deleted."""
    running = ValidTxnList(9, open=(7,))
    state = acid_state([Child("base_0000005_v0000007")], ValidWriteIdList(5), running)
    assert state.base is None and state.newer == ("base_0000005_v0000007",)
