"""The worker and the initiator, without Spark: which entries they take, and the results."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from table_of_events import NAME, PAPER_SPARK

from acidsql.acid.table import Column, Table, TableName
from acidsql.compaction.housekeeper import keep_house
from acidsql.compaction.initiator import Initiator
from acidsql.compaction.service import Service
from acidsql.compaction.worker import progress_of
from acidsql.errors import AcidSqlError, MetastoreError, WriteError
from acidsql.metastore.compaction_queue import Candidate, CompactionState, CompactionType
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.folding import compact as compacting
from acidsql.storage.spark.session.job_progress import Tasks


def fill(warehouse, times=3):
    for _ in range(times):
        warehouse.change([0, 1])


def test_an_entry_goes_from_initiated_to_succeeded(warehouse):
    fill(warehouse)
    number = warehouse.queue(why="a test")
    assert warehouse.entry(number).state is CompactionState.INITIATED
    assert warehouse.worker().run_next() == number
    entry = warehouse.entry(number)
    assert entry.state is CompactionState.READY_FOR_CLEANING
    assert entry.highest_write_id == 3
    assert entry.message.startswith("a test; read 3 directories, 6 files")
    assert {removed.kind for removed in warehouse.cleaner().run()} == {"obsolete"}
    assert warehouse.entry(number).state is CompactionState.SUCCEEDED
    assert warehouse.directories() == ["base_0000003"]
    assert warehouse.worker().run_next() is None


def test_two_workers_never_take_the_same_entry(warehouse, monkeypatch):
    fill(warehouse)
    number = warehouse.queue()
    run, inside, go_on = compacting._run_fold_job, threading.Event(), threading.Event()

    def slowly(*args):
        inside.set()
        assert go_on.wait(20)
        return run(*args)

    monkeypatch.setattr(compacting, "_run_fold_job", slowly)
    first = threading.Thread(target=lambda: warehouse.worker().run_next())
    first.start()
    assert inside.wait(20)
    assert warehouse.worker().run_next() is None
    assert warehouse.worker().run_next(only=number) is None
    go_on.set()
    first.join()
    assert warehouse.entry(number).state is CompactionState.READY_FOR_CLEANING


def test_a_long_compaction_tells_how_far_it_is_until_it_has_ended(warehouse, monkeypatch):
    fill(warehouse)
    number, worker, run = warehouse.queue(), warehouse.worker(), compacting._run_fold_job
    worker.tells_s = 0.01
    note, noted = warehouse.store.note_progress, threading.Event()

    def fails_once(*args):
        if not noted.is_set():
            noted.set()
            raise WriteError("the store is away")
        note(*args)

    monkeypatch.setattr(warehouse.store, "note_progress", fails_once)

    def slowly(*args):
        deadline = time.monotonic() + 60
        while warehouse.entry(number).progress is None:
            assert time.monotonic() < deadline
        assert warehouse.entry(number).progress == "merge 0/2, 0 run, 0 B"
        return run(*args)

    monkeypatch.setattr(compacting, "_run_fold_job", slowly)
    assert worker.run_next() == number
    entry = warehouse.entry(number)
    assert (entry.state, entry.progress) == (CompactionState.READY_FOR_CLEANING, None)


def test_progress_in_words():
    work = SimpleNamespace(
        phase="merge", folded=12, written=(3, 0), staged_bytes=lambda: 1_234_000_000,
        plan=SimpleNamespace(folds=range(40)),
    )  # fmt: skip
    assert progress_of(work, Tasks(4, 1, 3)) == "merge 13/40, 3 run, 1.2 GB"
    work.plan.folds, work.folded = range(4096), 4000
    assert len(progress_of(work, Tasks(96, 0, 96))) <= 32
    work.phase = "spread"  # rebalance has other tasks than folds
    assert progress_of(work, Tasks(7, 2, 4)) == "spread 2/7, 4 run, 1.2 GB"
    assert progress_of(work, Tasks()) == "spread 1.2 GB"  # between two jobs
    work.phase, work.written = "publish", (3, 5_000_000)
    assert progress_of(work, Tasks()) == "publish 5.0 MB"


def test_a_dead_worker_s_entry_is_done_by_another(warehouse):
    fill(warehouse)
    number = warehouse.queue()
    txn = warehouse.txns.open()
    assert warehouse.store.take_next(txn.id, "gone-1").id == number
    assert warehouse.worker().run_next() is None
    warehouse.store.abort_txn(txn.id)  # its heartbeat has stopped
    keep_house(warehouse.store, Settings())
    assert warehouse.worker().run_next() == number
    assert warehouse.entry(number).state is CompactionState.READY_FOR_CLEANING


def test_what_a_dead_worker_has_put_in_place_is_not_made_again(warehouse, monkeypatch):
    fill(warehouse)
    number = warehouse.queue()
    monkeypatch.setattr(type(warehouse.store), "commit_txn", _lost)
    with pytest.raises(AcidSqlError):
        warehouse.worker().run_next()
    monkeypatch.undo()
    (txn,) = warehouse.store.show_txns()
    warehouse.store.abort_txn(txn.txn_id)  # its heartbeat has stopped
    assert "base_0000003" in warehouse.directories()
    assert warehouse.entry(number).state is CompactionState.FAILED
    assert warehouse.compact().message.endswith("nothing to merge")
    warehouse.cleaner().run()
    assert warehouse.directories() == ["base_0000003"]
    assert warehouse.read(warehouse.now()) == warehouse.expected(warehouse.now())


def _lost(*_, **__):
    raise WriteError("the disk is full")


def test_who_has_lost_its_entry_puts_nothing_in_place(warehouse, monkeypatch):
    """The worker slept until its transaction had timed out, and another worker took the entry."""
    fill(warehouse)
    warehouse.queue()
    run, worker = compacting._run_fold_job, warehouse.worker()

    def slept(*args):
        found = run(*args)
        warehouse.store.abort_txn(worker.txn_id)
        return found

    monkeypatch.setattr(compacting, "_run_fold_job", slept)
    with pytest.raises(AcidSqlError, match="aborted"):
        worker.run_next()
    assert not any(name.startswith("base") for name in warehouse.directories())


def test_a_stopped_worker_gives_its_entry_back(warehouse, monkeypatch):
    fill(warehouse)
    number, worker = warehouse.queue(), warehouse.worker()

    def stopped(*_):
        worker.stop()
        raise RuntimeError("the job was cancelled")

    monkeypatch.setattr(compacting, "_run_fold_job", stopped)
    with pytest.raises(RuntimeError):
        worker.run_next()
    assert warehouse.entry(number).state is CompactionState.INITIATED
    monkeypatch.undo()


@pytest.fixture
def in_driver(monkeypatch):
    """The driver folds small files itself, as it does outside of these tests."""
    monkeypatch.setattr(compacting, "_FEW_BYTES", 2**20)
    monkeypatch.setattr(compacting, "_run_fold_job", None)


@pytest.mark.usefixtures("in_driver")
def test_small_files_are_folded_without_a_job(warehouse):
    fill(warehouse)
    warehouse.change([], [0, 3])
    warehouse.queue()
    warehouse.worker().run_next()
    warehouse.cleaner().run()
    assert warehouse.directories() == ["base_0000004"]
    assert warehouse.read(warehouse.now()) == warehouse.expected(warehouse.now())


@pytest.mark.usefixtures("in_driver")
@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"acidsql.driver.max.rows": "0"}, None),
        ({"acidsql.fast.paths": "false"}, None),
        ({}, ("_FEW_BYTES", 100)),
        ({}, ("_FEW_FILES", 2)),
        ({}, ("_FEW_ROWS", 5)),
    ],
)
def test_a_job_folds_what_the_driver_may_not(warehouse, monkeypatch, settings, limit):
    jobs = []
    monkeypatch.setattr(compacting, "_run_fold_job", lambda *_: jobs.append(1) or [])
    if limit is not None:
        monkeypatch.setattr(compacting, *limit)
    fill(warehouse)
    warehouse.queue()
    warehouse.worker(**settings).run_next()
    assert jobs


@pytest.mark.usefixtures("in_driver")
def test_a_disk_that_is_full_fails_the_fold_in_the_driver_and_nothing_is_left(
    warehouse, monkeypatch
):
    fill(warehouse)
    before, number = warehouse.directories(), warehouse.queue()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compacting, "fold_bucket", full)
    with pytest.raises(WriteError, match="No space left"):
        warehouse.worker().run_next()
    assert warehouse.entry(number).state is CompactionState.FAILED
    assert "No space left" in warehouse.entry(number).message
    assert warehouse.directories() == before


@pytest.mark.usefixtures("in_driver")
def test_a_worker_that_is_stopped_between_two_folds_gives_its_entry_back(warehouse, monkeypatch):
    fill(warehouse)
    before, number, worker = warehouse.directories(), warehouse.queue(), warehouse.worker()
    fold, folded = compacting.fold_bucket, []

    def stopped(what, *more):
        folded.append(what.bucket_id)
        worker.stop()
        return fold(what, *more)

    monkeypatch.setattr(compacting, "fold_bucket", stopped)
    with pytest.raises(WriteError, match="given up"):
        worker.run_next()
    assert folded == [0]
    assert warehouse.entry(number).state is CompactionState.INITIATED
    assert warehouse.directories() == before


def test_a_compaction_lists_a_directory_as_often_among_many_others(warehouse, monkeypatch):
    """A reader's lease may keep thousands of obsolete directories in one place."""
    listed, real = [], LocalFileSystem.list

    def counted(fs, path):
        listed.append(path == warehouse.place)
        return real(fs, path)

    monkeypatch.setattr(LocalFileSystem, "list", counted)
    counts = set()
    for times in (3, 3, 12):
        fill(warehouse, times)
        listed.clear()
        warehouse.compact(CompactionType.MINOR)
        counts.add(sum(listed))
    assert len(warehouse.directories()) > 18 and len(counts) == 1


def test_a_table_that_is_gone_is_refused(warehouse, monkeypatch):
    fill(warehouse)
    number = warehouse.queue()
    monkeypatch.setattr(warehouse.store, "find", lambda name: None)
    assert warehouse.worker().run_next() == number
    entry = warehouse.entry(number)
    assert entry.state is CompactionState.REFUSED and "no table" in entry.message


def test_the_initiator_queues_what_needs_it_and_says_why_of_the_rest(warehouse):
    few = Settings.of({"hive.compactor.delta.num.threshold": "3"})
    initiator = Initiator(warehouse.store, few, "here-1")
    fill(warehouse, 3)
    (found,) = initiator.run()
    assert (found.table, found.id) == (NAME, None)
    assert found.why == "3 deltas, no base; below the thresholds"
    fill(warehouse, 1)
    (found,) = initiator.run()
    assert found.id is not None and "more than 3" in found.why
    (again,) = initiator.run()
    assert again.id == found.id and "is initiated" in again.why
    entry = warehouse.entry(found.id)
    assert (entry.type, entry.state) == (CompactionType.MAJOR, CompactionState.INITIATED)
    warehouse.worker().run_next()
    warehouse.cleaner().run()
    assert initiator.run() == []  # nothing was written since


def test_the_initiator_reads_the_queue_once_in_a_round(warehouse, monkeypatch):
    few = Settings.of({"hive.compactor.delta.num.threshold": "3"})
    initiator = Initiator(warehouse.store, few, "here-1")
    fill(warehouse, 4)
    read, times = warehouse.store.compactions, []
    monkeypatch.setattr(warehouse.store, "compactions", lambda: times.append(1) or read())
    due = warehouse.store.candidates() * 3
    monkeypatch.setattr(warehouse.store, "candidates", lambda: due)
    for rounds in (1, 2):
        found = initiator.run()
        assert len({one.id for one in found}) == 1 and len(found) == 3
        assert len(times) == rounds


def test_a_service_tells_once_that_its_metastore_is_away(warehouse, monkeypatch, caplog):
    fill(warehouse)
    service = Service(PAPER_SPARK, warehouse.store, Settings(), user="me", host="here")

    def away(*_, **__):
        raise MetastoreError("the metastore is away")

    with monkeypatch.context() as broken:
        for name in ("candidates", "has_work", "ready_to_clean", "house_keep"):
            broken.setattr(warehouse.store, name, away)
        for _ in range(3):
            service._checked_s = None  # the tables are due, too
            service._do_one_round()
    (told,) = [one.message for one in caplog.records if one.name.startswith("acidsql")]
    assert "the metastore is away" in told
    number = warehouse.queue()
    service.run(once=True)
    assert warehouse.entry(number).state is CompactionState.SUCCEEDED


def test_what_nobody_has_written_to_for_a_while_is_compacted_if_that_is_wanted(warehouse):
    fill(warehouse, 2)
    time.sleep(1.1)  # the store times changes by the second
    quiet = Settings.of({"acidsql.compactor.quiet.time": "1ms"})
    (found,) = Initiator(warehouse.store, quiet, "here-1").run()
    assert found.id is not None and "quiet for" in found.why


def test_what_cannot_be_checked_is_noted_once(warehouse):
    fill(warehouse, 1)
    (delta,) = warehouse.directories()
    # A delta whose contents no reader can know.
    warehouse.fs.write_file(f"{warehouse.place}/{delta}/bucket_00000_flush_length", b"\xff" * 8)
    initiator = Initiator(warehouse.store, Settings(), "here-1")
    for _ in range(2):
        (found,) = initiator.run()
        assert "says -1 bytes" in found.why
    (entry,) = warehouse.store.compactions()
    assert entry.state is CompactionState.DID_NOT_INITIATE


def test_a_cleaning_that_fails_is_tried_again_later(warehouse, monkeypatch):
    fill(warehouse)
    entry = warehouse.compact()
    cleaner = warehouse.cleaner()
    monkeypatch.setattr(type(warehouse.fs), "delete_directory", _fail)
    assert cleaner.run() == []
    monkeypatch.undo()
    found = warehouse.entry(entry.id)
    assert found.state is CompactionState.READY_FOR_CLEANING and found.retry_retention_ms > 0
    assert "no disk" in found.message
    assert cleaner.run() == []  # it waits


def _fail(*_):
    raise OSError("no disk")


def test_the_cleaner_waits_for_everyone_who_began_before_the_compaction_ended(warehouse):
    fill(warehouse)
    lease, seen = warehouse.lease()
    warehouse.compact()
    later, _ = warehouse.lease()
    assert warehouse.cleaner().run() == []
    assert warehouse.read(seen) == warehouse.expected(seen)
    lease.end_quietly()
    assert len(warehouse.cleaner().run()) == 3
    later.end_quietly()


def test_a_base_that_is_called_after_an_aborted_write_id_is_kept(warehouse):
    """Its name may have an aborted write id: the last one of a range that a streaming writer
    left."""
    fill(warehouse, 2)
    warehouse.compact()
    warehouse.cleaner().run()
    txn = warehouse.begin()
    warehouse.write(txn, [0], [])
    txn.abort("a test")
    (lost,) = [name for name in warehouse.directories() if name.startswith("delta_0000003")]
    warehouse.fs.rename(f"{warehouse.place}/base_0000002", f"{warehouse.place}/base_0000003")
    (removed,) = warehouse.cleaner().run()
    assert removed.path.endswith(lost) and removed.kind == "aborted"
    assert warehouse.directories() == ["base_0000003"]
    assert warehouse.read(warehouse.now()) == warehouse.expected(warehouse.now())
    assert warehouse.store.aborted_write_ids(NAME) == []


def test_a_directory_that_came_after_its_write_id_was_forgotten_goes_if_one_table_is_cleaned(
    warehouse,
):
    fill(warehouse, 1)
    txn = warehouse.begin()
    warehouse.write(txn, [0], [])
    txn.abort()
    (removed,) = warehouse.cleaner().run()
    assert removed.kind == "aborted"
    warehouse.write(txn := warehouse.begin(), [0], [])  # a writer that is open stays
    warehouse._writer("delta_0000002_0000002_0001", 0).close()  # one that does not know comes late
    warehouse.fs.create_directory(f"{warehouse.place}/_tmp_0000002_0000_dead")
    assert [one.kind for one in warehouse.cleaner().run()] == ["litter"]
    assert [one.path for one in warehouse.cleaner().clean_table(NAME)] == [
        f"{warehouse.place}/delta_0000002_0000002_0001"
    ]
    assert warehouse.directories() == ["delta_0000001_0000001_0001", "delta_0000003_0000003_0001"]
    txn.commit()


def test_one_cleaning_is_enough_for_several_compactions(warehouse):
    fill(warehouse)
    first = warehouse.compact(CompactionType.MINOR)
    fill(warehouse, 2)
    second = warehouse.compact()
    fill(warehouse, 1)
    warehouse.cleaner().run()
    assert {warehouse.entry(one.id).state for one in (first, second)} == {CompactionState.SUCCEEDED}
    assert warehouse.directories() == ["base_0000005", "delta_0000006_0000006_0001"]


def test_a_partition_without_a_name_in_the_queue_of_a_partitioned_table_is_passed_over(warehouse):
    store, place = warehouse.store, f"{warehouse.place}_p"
    name = TableName("default", "p")
    store.create_table(Table(name, place, (Column("v", "string"),), (Column("k", "int"),)))
    assert Initiator(store, Settings(), "here-1").check(Candidate(name, None)) is None
