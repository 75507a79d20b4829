"""What keeps old files, what is compacted next, and how many rows footers tell: without Spark."""

from __future__ import annotations

from dataclasses import fields, replace

from table_of_events import AS_HIVE, NAME

from acidsql.acid.table import TableName
from acidsql.compaction.initiator import Initiator
from acidsql.compaction.outlook import Outlook
from acidsql.metastore.compaction_queue import Candidate, CompactionType
from acidsql.metastore.interface import TxnType
from acidsql.settings import Settings
from acidsql.statements.maintenance import health as statement
from acidsql.statements.maintenance.health import Health, combined_health, health_of_partitions
from acidsql.storage.reading.pruning.inventory import inventory

KEPT = {"acidsql.history.retention": "1h", "acidsql.history.max.ratio": "100"}
CLEANER = "nothing: the cleaner deletes them when it runs next"


def health(warehouse, **settings):
    """The table's health in a new snapshot."""
    seen, settings = warehouse.now(), Settings.of(AS_HIVE | settings)
    found = inventory(
        warehouse.fs, warehouse.place, None, seen.write_ids[NAME], seen.valid_txns,
        oldest=warehouse.store.oldest_version(NAME),
    )  # fmt: skip
    outlook = Outlook(warehouse.store, settings)
    table = warehouse.store.find(NAME)
    (one,) = health_of_partitions(table, [None], found, seen.write_ids[NAME], outlook)
    return one


def test_footers_tell_as_many_rows_as_a_reader_finds(warehouse):
    for _ in range(4):
        warehouse.change([0, 0, 1], [3])
        one = health(warehouse)
        assert (one.rows, one.problem) == (len(warehouse.read(warehouse.now())), None)
    assert one.deleted_rows == 4 - 1  # the first change had no row to delete
    assert (one.deltas, one.delete_deltas, one.bases) == (4, 3, 0)
    warehouse.compact(CompactionType.MINOR)
    warehouse.change([0], [5])
    warehouse.compact()
    one = health(warehouse)
    assert (one.rows, one.deleted_rows) == (len(warehouse.read(warehouse.now())), 0)
    assert (one.deltas, one.delete_deltas, one.bases, one.delta_share) == (0, 0, 1, 0.0)


def test_a_delta_of_others_with_aborted_write_ids_does_not_tell_its_rows(warehouse, monkeypatch):
    warehouse.change([0, 0])
    aborted = warehouse.begin()
    warehouse.write(aborted, [0], [])
    aborted.abort()
    assert health(warehouse).rows == 2  # the aborted directory is left out as a whole
    warehouse.change([0])
    warehouse.compact(CompactionType.MINOR)
    assert health(warehouse).rows == 3  # acidsql's own compactor leaves aborted rows out
    monkeypatch.setattr(statement, "is_our_file", lambda *_: False)
    one = health(warehouse)
    assert one.rows is None and "delta_0000001_0000003" in one.problem
    assert one.delta_bytes > 0
    warehouse.compact()
    assert health(warehouse).rows == 3


def test_the_oldest_reader_holds_what_a_compaction_has_replaced(warehouse):
    warehouse.change([0, 0])
    warehouse.change([0], [1])
    assert health(warehouse).held_by is None
    second, first = (warehouse.lease()[0] for _ in range(2))
    assert second.id < first.id
    warehouse.compact()
    one = health(warehouse)
    assert one.obsolete_bytes > 0
    assert f"Transaction {second.id} of user me on host here" in one.held_by
    (txn,) = [x for x in warehouse.store.show_txns() if x.txn_id == second.id]
    assert one.held_since.timestamp() == txn.started_ms / 1000
    second.end_quietly()
    assert f"Transaction {first.id} " in health(warehouse).held_by
    assert warehouse.cleaner().run() == []
    first.end_quietly()
    later, _ = warehouse.lease()  # began after the compaction, so it holds nothing
    assert (health(warehouse).held_by, health(warehouse).held_since) == (CLEANER, None)
    warehouse.cleaner().run()
    assert (health(warehouse).obsolete_bytes, health(warehouse).held_by) == (0, None)
    later.end_quietly()


def test_locks_of_a_session_hold_no_files(warehouse):
    warehouse.change([0])
    warehouse.change([0])
    session = warehouse.txns.open(txn_type=TxnType.SESSION)
    warehouse.compact()
    assert health(warehouse).held_by == CLEANER
    session.end_quietly()


def test_times_and_older_versions_hold_files_too(warehouse):
    warehouse.change([0, 0], [])
    warehouse.change([0], [1])
    entry = warehouse.compact(**KEPT)
    waits = {"hive.compactor.cleaner.retention.time.seconds": "1h"}
    one = health(warehouse, **waits)
    assert (one.held_by, one.held_since.timestamp()) == (*waits, entry.committed_ms / 1000)
    warehouse.cleaner().run()  # keeps the files
    one = health(warehouse, **KEPT)
    assert one.held_by == "older versions (acidsql.history.retention)"
    wrong = replace(warehouse.store.find(NAME), properties={"acidsql.history.retention": "x"})
    holder = Outlook(warehouse.store, Settings()).keeper_of_obsolete(
        wrong, None, frozenset({"history"})
    )
    assert holder.description.startswith("the cleaner fails: ") and "'x'" in holder.description
    assert one.held_since.timestamp() == entry.committed_ms / 1000


def test_the_next_compaction_is_what_the_initiator_says(warehouse):
    assert (health(warehouse).next, health(warehouse).why) == (None, "every change is compacted")
    initiator = Initiator(warehouse.store, Settings(), "here-1")
    for number in range(12):
        warehouse.change([0])
        one = health(warehouse)
        before = warehouse.store.compactions()
        assert before == []  # nothing is queued by looking
        if number < 11 and one.next is None:
            assert initiator.check(Candidate(NAME, None)).why == one.why
    assert one.next == "major"
    queued = initiator.check(Candidate(NAME, None))
    assert queued.why == one.why and queued.id is not None
    one = health(warehouse)
    assert (one.next, one.why) == ("major", f"compaction {queued.id} is initiated: {queued.why}")
    txn = warehouse.txns.open()
    warehouse.store.take_next(txn.id, "w", only=queued.id)
    warehouse.store.note_progress(queued.id, txn.id, "merge 1/2")
    assert health(warehouse).why == f"compaction {queued.id} is working (merge 1/2): {queued.why}"
    txn.end_quietly()


def test_failures_and_wrong_properties_are_the_reason_why_nothing_comes_next(warehouse):
    for _ in range(12):
        warehouse.change([0])
    for _ in range(2):
        number, txn = warehouse.queue(), warehouse.txns.open()
        warehouse.store.take_next(txn.id, "w", only=number)
        warehouse.store.mark_failed(number, txn.id, "no disk")
        txn.end_quietly()
    one = health(warehouse)
    assert one.next is None and one.why.startswith("the last 2 compactions failed")
    table = warehouse.store.find(NAME)
    wrong = replace(table, properties={"compactorthreshold.nonsense": "1"})
    said = Outlook(warehouse.store, Settings()).next_compaction(wrong, None)
    assert said.type is None and "nonsense" in said.why
    assert len(warehouse.store.compactions()) == 2  # looking has noted nothing


def test_the_oldest_writer_is_told_and_readers_are_not(warehouse):
    reader, _ = warehouse.lease()
    assert health(warehouse).oldest_txn is None
    writers = [warehouse.begin(deletes=False) for _ in range(2)]
    one = health(warehouse)
    assert one.oldest_txn == writers[0].id and one.oldest_txn_since is not None
    outlook = Outlook(warehouse.store, Settings())
    assert outlook.oldest_txn(NAME, "p=1").txn_id == writers[0].id  # the whole table is locked
    assert outlook.oldest_txn(TableName("default", "other"), None) is None
    for txn in (*writers, reader):
        txn.end_quietly()


def test_a_tables_row_sums_its_partitions_and_names_the_largest_that_is_due():
    zeros = {field.name: 0 for field in fields(Health) if "int" in field.type} | {
        "oldest_txn": None
    }
    parts = [
        Health("d.t", "p=1", **zeros | {"rows": 5, "deleted_rows": 1, "delta_bytes": 10},
               next="minor", why="few", held_by="x"),
        Health("d.t", "p=2", **zeros | {"rows": 7, "delta_bytes": 90}, next="major", why="many"),
        Health("d.t", "p=3", **zeros | {"oldest_txn": 4}, why="none"),
    ]  # fmt: skip
    one = combined_health(TableName("d", "t"), parts)
    assert (one.rows, one.deleted_rows, one.live_bytes, one.partition) == (12, 1, 100, None)
    assert (one.next, one.why) == ("major", "p=2: many (and 1 more)")
    assert (one.held_by, one.oldest_txn, one.deleted_share) == ("x", 4, 1 / 13)
    unknown = combined_health(TableName("d", "t"), [*parts, Health("d.t", "p=4", problem="gone")])
    assert (unknown.rows, unknown.problem) == (None, "gone")
    assert combined_health(TableName("d", "t"), []).rows == 0
