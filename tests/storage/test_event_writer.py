"""The work of a Spark task on events, without Spark."""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest

from acidsql.acid import bucket_codec
from acidsql.acid.partition_names import PartitionNames
from acidsql.acid.table import Column
from acidsql.errors import ConstraintError, MergeCardinalityError, WriteError
from acidsql.storage import event_records as ew
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.writing import delete_writer, event_writer
from acidsql.storage.writing.publish import check_records, publish

ROW = RowSchema.from_fields([("id", "int"), ("v", "string")])
OLD = bucket_codec.encode(3, 0)
FIRST = ew.Task(0, 100)
BY_P = PartitionNames((Column("p", "string"),))
STATUS = Path("/proc/self/status")


@pytest.fixture
def spec(tmp_path):
    """The spec of a plain table; ``spec(name=…)`` changes it."""
    staging = str(tmp_path / "table" / "_tmp")
    filesystem_for(staging).create_directory(staging)

    def make(**fields):
        given = {"staging": staging, "write_id": 7, "insert_statement_id": 1,
                 "delete_statement_id": 0, "row": ROW, **fields}  # fmt: skip
        return ew.WriteSpec(**given)

    return make


def inserts(ids, **more):
    """A batch of new rows."""
    columns = {"id": pa.array(ids, pa.int32()), "v": pa.array(["v"] * len(ids)), **more}
    return pa.RecordBatch.from_pydict(columns)


def events(keys, actions, partition=""):
    """A batch of events; a key is a rowId of write id 1, bucket 3."""
    n = len(keys)
    return inserts(
        list(range(n)),
        **{
            ew.WRITE_ID: pa.array([None if k is None else 1 for k in keys], pa.int64()),
            ew.BUCKET_PROPERTY: pa.array([None if k is None else OLD for k in keys], pa.int32()),
            ew.ROW_ID: pa.array(keys, pa.int64()),
            ew.PARTITION: pa.array([None if k is None else partition for k in keys], pa.string()),
            ew.ACTION: pa.array(actions, pa.int32()),
        },
    )


def resident_mebibytes():
    """The memory of this process that is not swapped out."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) // 1024


def run(spec, *batches, tasks=(FIRST,), order=True):
    """Both stages, with a shuffle in between: one batch for each task of the insert stage."""
    passed = []
    for task, batch in zip(tasks, batches, strict=True):
        passed += list(event_writer.write_inserts_pass_deletes(spec, task, [batch]))
    keys = pa.Table.from_batches(passed, ew.KEY_SCHEMA)
    if order:
        by = [ew.PARTITION, ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID]
        keys = keys.sort_by([(name, "ascending") for name in by])
    return list(delete_writer.write_deletes(spec, ew.Task(0, 200), keys.to_batches()))


def rows(record):
    with open(record.path, "rb") as file:
        return list(pyorc.Reader(file))


def files(records, kind):
    return [record for record in records if record.kind == kind]


def test_an_update_is_a_delete_and_an_insert(spec):
    records = run(spec(), events([5, 2], [ew.INSERT | ew.DELETE] * 2))
    inserted, deleted = files(records, "insert"), files(records, "delete")
    assert [(r.rows, r.updated, r.bucket_id) for r in inserted] == [(2, 2, 0)]
    assert [(r.rows, r.bucket_id) for r in deleted] == [(2, 3)]
    assert [event[:5] for event in rows(deleted[0])] == [(2, 1, OLD, 2, 7), (2, 1, OLD, 5, 7)]
    new = bucket_codec.encode(0, 1)
    assert [event[:5] for event in rows(inserted[0])] == [(0, 7, new, 0, 7), (0, 7, new, 1, 7)]
    assert check_records(records, merge=False) == inserted + deleted


def test_marks_of_matches_are_counted_and_written_nowhere(spec):
    records = run(spec(), events([1, 2, None], [ew.MATCHED, ew.DELETE, ew.INSERT]))
    assert [r.rows for r in files(records, "matched")] == [1]
    assert [event[3] for event in rows(files(records, "delete")[0])] == [2]
    assert [r.updated for r in files(records, "insert")] == [0]


@pytest.mark.parametrize("actions", [(ew.DELETE, ew.DELETE), (ew.DELETE, ew.MATCHED),
                                     (ew.MATCHED, ew.MATCHED), (3, 3)])  # fmt: skip
def test_a_row_that_is_matched_twice_is_a_violation(spec, actions):
    records = run(spec(), events([4, 4], actions))
    with pytest.raises(MergeCardinalityError):
        check_records(records, merge=True)
    with pytest.raises(WriteError):
        check_records(records, merge=False)


def test_repeated_deletes_are_one_where_that_is_allowed(spec):
    allowed = spec(mode=ew.WriteMode.MERGE_WITH_REPEATS)
    records = run(allowed, events([4, 9, 4], [ew.DELETE] * 3))
    assert [r.rows for r in check_records(records, merge=True)] == [2]


def test_a_repeat_is_seen_across_batches(spec):
    passed = list(event_writer.write_inserts_pass_deletes(spec(), FIRST, [events([4, 4], [2, 2])]))
    split = [part for batch in passed for part in (batch.slice(0, 1), batch.slice(1))]
    records = list(
        delete_writer.write_deletes(spec(), ew.Task(0, 1), [b for b in split if b.num_rows])
    )
    assert [r.rows for r in files(records, "duplicate")] == [1]


def test_of_rows_that_are_matched_very_often_three_different_ones_are_noted(spec, monkeypatch):
    made_keys = []
    row_key = ew.RowKey
    monkeypatch.setattr(
        delete_writer, "RowKey", lambda *parts: made_keys.append(parts) or row_key(*parts)
    )
    numbers = [1] * 500 + [2] + [3] * 500 + [4, 4] + [5] * 500
    records = run(spec(), events(numbers, [ew.MATCHED] * len(numbers)))
    (duplicate,) = files(records, "duplicate")
    assert duplicate.rows == 499 + 499 + 1 + 499
    assert [key.row_id for key in ew.keys_of_text(duplicate.detail)] == [1, 3, 4]
    assert len(made_keys) < 10  # and not one for each match


def test_unsorted_keys_are_an_error_and_no_lost_delete(spec):
    with pytest.raises(WriteError):
        run(spec(), events([5, 2], [ew.DELETE] * 2), order=False)


def one_by_one(spec, keys):
    """The delete stage alone: pairs of a partition and a key, each in a batch of its own."""
    made = [events([key], [ew.DELETE], partition) for partition, key in keys]
    passed = [next(event_writer.write_inserts_pass_deletes(spec, FIRST, [one])) for one in made]
    return list(delete_writer.write_deletes(spec, ew.Task(0, 200), passed))


@pytest.mark.parametrize("at_once", [True, False])
def test_partitions_whose_keys_come_mixed_get_a_file_each(spec, at_once):
    keys = [("p=1", 1), ("p=2", 1), ("p=1", 4), ("p=2", 5), ("p=2", 5), ("p=1", 6)]
    given = spec(partitions=BY_P, static_partition="")
    if at_once:
        batch = pa.concat_batches([events([key], [ew.DELETE], where) for where, key in keys])
        records = run(given, batch, order=False)
    else:
        records = one_by_one(given, keys)
    found = {r.partition: [event[3] for event in rows(r)] for r in files(records, "delete")}
    assert found == {"p=1": [1, 4, 6], "p=2": [1, 5]}
    assert [r.rows for r in files(records, "duplicate")] == [1]


def test_a_bucket_that_comes_back_late_is_refused(spec):
    """So many other buckets came in between that its file was closed. It would get a second
    file."""
    keys = [(f"p={number}", number) for number in range(9)]
    records = one_by_one(spec(partitions=BY_P), [*keys, ("p=0", 9)])
    with pytest.raises(WriteError, match="written twice"):
        check_records(records, merge=False)


def test_two_attempts_of_one_task_are_never_published_together(spec):
    batch = events([1], [ew.DELETE])
    twin = events([2], [ew.DELETE])
    records = run(spec(), batch, twin, tasks=(ew.Task(4, 10), ew.Task(4, 11)))
    with pytest.raises(WriteError, match="again"):
        check_records(records, merge=False)
    # Keys of one attempt, and file records of another one.
    keys_of_one = list(event_writer.write_inserts_pass_deletes(spec(), ew.Task(4, 10), [batch]))[:1]
    rest_of_other = list(event_writer.write_inserts_pass_deletes(spec(), ew.Task(4, 11), [twin]))[
        1:
    ]
    records = list(delete_writer.write_deletes(spec(), FIRST, keys_of_one + rest_of_other))
    with pytest.raises(WriteError, match="again"):
        check_records(records, merge=False)


def test_nulls_where_there_may_be_none_are_counted_by_the_users_name(spec):
    value = f"{ew.VALUE}0"
    strict = spec(not_null=(("id", "id"), (value, "p")), partitions=BY_P)
    batch = inserts([1, None, None], **{value: pa.array(["a", "a", "a"])})
    with pytest.raises(ConstraintError) as caught:
        check_records(event_writer.write_inserts(strict, FIRST, [batch]), merge=False)
    assert caught.value.getMessageParameters()["column"] == "id"
    batch = inserts([1], **{value: pa.array([None], pa.string())})
    with pytest.raises(ConstraintError, match="'p' is NOT NULL"):
        check_records(event_writer.write_inserts(strict, FIRST, [batch]), merge=False)


def test_many_partitions_that_come_sorted_are_a_file_each(spec):
    names = [f"{i // 3:03d}" for i in range(60)]
    batch = inserts(list(range(60)), **{f"{ew.VALUE}0": pa.array(names)})
    records = list(event_writer.write_inserts(spec(partitions=BY_P), FIRST, [batch]))
    found = check_records(records, merge=False)
    assert [r.partition for r in found] == [f"p={i:03d}" for i in range(20)]
    assert {r.rows for r in found} == {3}
    ids = [event[1:4] for r in found for event in rows(r)]
    assert len(set(ids)) == 60  # row ids continue from file to file


@pytest.mark.skipif(not STATUS.exists(), reason="the memory is asked as Linux tells it")
@pytest.mark.parametrize(
    "kind", [{}, {"insert_only": True, "parquet": "snappy"}], ids=["orc", "parquet"]
)
def test_a_finished_file_keeps_no_memory(spec, kind):
    gc.disable()  # the garbage collector comes too late: it does not know how big the buffers are
    try:
        before = resident_mebibytes()
        for _ in range(5):
            names = [f"d{i}" for i in range(100)]
            batch = inserts(list(range(100)), **{f"{ew.VALUE}0": pa.array(names)})
            list(event_writer.write_inserts(spec(partitions=BY_P, **kind), FIRST, [batch]))
        assert resident_mebibytes() - before < 150  # a megabyte for each of 500 files, before
    finally:
        gc.enable()


def test_partitions_that_come_unsorted_lose_no_row(spec):
    """Up to eight files are open at once. With more, a closed file would have to be opened
    again."""
    few = pa.array([f"{i % 8}" for i in range(64)])
    found = check_records(
        event_writer.write_inserts(spec(partitions=BY_P), FIRST,
                         [inserts(list(range(64)), **{f"{ew.VALUE}0": few})]),
        merge=False,
    )  # fmt: skip
    assert sum(r.rows for r in found) == 64
    many = pa.array([f"{i % 9}" for i in range(64)])
    records = event_writer.write_inserts(spec(partitions=BY_P), FIRST,
                               [inserts(list(range(64)), **{f"{ew.VALUE}0": many})])  # fmt: skip
    with pytest.raises(WriteError, match="written twice"):
        check_records(records, merge=False)


def test_an_update_stays_in_its_partition_however_that_is_spelled(spec):
    """Another writer's ``p=01`` is not the directory that acidsql would make for 1."""
    batch = events([1], [ew.INSERT | ew.DELETE], "p=01")
    batch = batch.append_column(f"{ew.VALUE}0", pa.array(["1"]))
    records = run(spec(partitions=BY_P), batch)
    assert {r.partition for r in check_records(records, merge=False)} == {"p=01"}


def test_a_bucketed_row_goes_into_the_file_of_its_bucket(spec):
    batch = inserts([1, 2, 3], **{ew.BUCKET: pa.array([0, 0, 5], pa.int32())})
    found = check_records(
        event_writer.write_inserts(spec(is_bucketed=True), FIRST, [batch]), merge=False
    )
    assert [(r.bucket_id, r.rows) for r in found] == [(0, 2), (5, 1)]
    assert rows(found[1])[0][2] == bucket_codec.encode(5, 1)


def test_there_are_4096_writers_and_no_more(spec):
    with pytest.raises(WriteError, match="4096"):
        list(event_writer.write_inserts(spec(), ew.Task(4096, 1), [inserts([1])]))


def test_what_is_published_is_complete_or_not_at_all(spec, tmp_path):
    location, made = str(tmp_path / "table"), spec()
    files = filesystem_for(location)
    found = check_records(run(made, events([1, None], [ew.DELETE, ew.INSERT])), merge=False)
    done = publish(files, location, made, found, [])
    made_paths = [path for path in (tmp_path / "table").rglob("*_*") if path.name != "_tmp"]
    names = sorted(path.relative_to(location).as_posix() for path in made_paths)
    assert names == [
        "delete_delta_0000007_0000007_0000", "delete_delta_0000007_0000007_0000/_orc_acid_version",
        "delete_delta_0000007_0000007_0000/bucket_00003", "delta_0000007_0000007_0001",
        "delta_0000007_0000007_0001/_orc_acid_version", "delta_0000007_0000007_0001/bucket_00000",
    ]  # fmt: skip
    assert (done.inserted, done.updated, done.deleted, done.write_id) == (1, 0, 1, 7)


def test_a_file_that_is_gone_or_short_is_not_published(spec, tmp_path):
    location, made = str(tmp_path / "table"), spec()
    found = check_records(event_writer.write_inserts(made, FIRST, [inserts([1])]), merge=False)
    with open(found[0].path, "ab") as file:
        file.truncate(10)
    with pytest.raises(WriteError, match="same warehouse"):
        publish(filesystem_for(location), location, made, found, [])
    assert not [p for p in (tmp_path / "table").iterdir() if not p.name.startswith("_")]


def test_a_record_travels_as_text():
    record = ew.Record("insert", 1, 2, 'p=ä/q="x"', 3, "/a b", 4, 5, 6, "it's")
    assert ew.Record.from_json(record.to_json()) == record
