"""A table is the source of a stream of changes: what it gives leads from each offset to the next.

Most tests ask the reader as Spark asks it, without a query, because a query takes seconds to start.
"""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from datetime import UTC
from functools import partial
from pathlib import Path

import pytest
from histories import History
from over_hive import beside, needs

import pyspark_acidsql
from acidsql.acid.write_ids import NewWriteIds, ValidWriteIdList
from acidsql.errors import (
    CatalogError,
    ConstraintError,
    SettingError,
    SnapshotTooOldError,
    UnsupportedError,
    VersionNotFoundError,
)
from acidsql.storage.folding import stream_changes
from acidsql.streams.source.read_limits import CAN_LIMIT, default_limit, limited_end
from acidsql.streams.source.source import TableStream

pytestmark = [pytest.mark.spark, needs("keeps_versions")]
ADDED = ["_change_type", "_commit_version", "_commit_timestamp", "_txn_id", "row__id"]
KEPT = "'acidsql.history.retention' = '1h', 'acidsql.history.max.ratio' = '1000'"


def fill(acid, columns, *rows):
    """Make a table whose first version has these rows."""
    acid.sql(f"CREATE TABLE {columns}")
    acid.sql(f"INSERT INTO {columns.split()[0]} VALUES {', '.join(f'({one})' for one in rows)}")


def table(acid, name):
    """The rows of a table."""
    return sorted(tuple(row) for row in acid.table(name).collect())


class Feed:
    """A stream as Spark drives it, which can be stopped and begun again at its last offset."""

    def __init__(self, acid, table="t", **options):
        self.acid = acid
        self.options = {"table": table, "warehouse": acid.warehouse, "readChangeFeed": "true"}
        self.options |= options
        self.at = None
        self.begin()

    def begin(self):
        """Begin, or begin again."""
        if self.at is not None:
            self.stop()
        opened = partial(pyspark_acidsql._open_metastore, self.options)
        self.stream = TableStream(opened, self.options)
        self.at = self.stream.initialOffset() if self.at is None else self.at

    def stop(self):
        self.stream.stop()

    def batch(self):
        """The next batch, each change as a dict."""
        limit = self.stream.getDefaultReadLimit()
        end = json.loads(json.dumps(self.stream.latestOffset(self.at, limit)))
        splits, self.at = self.stream.partitions(self.at, end), end
        stream, splits = pickle.loads(pickle.dumps((self.stream, splits)))
        batches = [batch for split in splits for batch in stream.read(split)]
        return [change for batch in batches for change in batch.to_pylist()]

    def short(self):
        """The next batch: version, kind and values of each change, in this order."""
        found = self.batch()
        names = [one.name for one in self.stream.table.all_columns]
        return sorted(
            (one["_commit_version"], one["_change_type"], *(one[name] for name in names))
            for one in found
        )


@pytest.fixture
def feed(acid):
    """A function that makes streams of changes."""
    made = []

    def make(**options):
        made.append(Feed(acid, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def limit(versions):
    """The option that limits batches, if Spark can."""
    return {"maxVersionsPerTrigger": str(versions)} if CAN_LIMIT else {}


def changed(state, changes):
    """Change a multiset of rows."""
    for one in changes:
        row = tuple(value for name, value in one.items() if name not in ADDED)
        state[row] += 1 if one["_change_type"] in ("insert", "update_postimage") else -1
    assert min(state.values(), default=0) >= 0


def as_told(changes):
    """The changes as ``acid.changes`` gives them."""
    return sorted(
        (
            *(value for name, value in one.items() if name not in ("row__id", *ADDED[2:3])),
            one["_commit_timestamp"].astimezone(UTC).isoformat(),
            *one["row__id"].values(),
        )
        for one in changes
    )


# ── random histories ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", [1, 2])
def test_the_changes_of_any_offsets_lead_to_the_rows_of_the_table(acid, feed, seed, monkeypatch):
    acid.sql(
        f"CREATE TABLE t (id INT, v INT) PARTITIONED BY (p INT) TBLPROPERTIES ({KEPT}, "
        "'acidsql.key' = 'id')"
    )
    monkeypatch.setattr(stream_changes, "_TASK_BYTES", 2000)  # so that batches have several tasks
    history, chance = History(acid, seed), random.Random(seed)
    from_the_first = feed(startingVersion="latest", **limit(2))
    from_the_rows, of_the_first, state = None, [], Counter()
    for step in range(9):
        history.write()
        if step == 2:
            from_the_rows = feed()
        if step in (3, 6):
            kind = chance.choice(["minor", "major"])
            acid.sql(f"ALTER TABLE t PARTITION (p = {step % 2}) COMPACT '{kind}' AND WAIT")
            acid.clean()
        if from_the_rows and chance.random() < 0.7:
            changed(state, from_the_rows.batch())
            assert sorted(state.elements()) == sorted(history.rows)
        if chance.random() < 0.3:
            of_the_first += from_the_first.batch()
            from_the_first.begin()
    changed(state, from_the_rows.batch())
    assert sorted(state.elements()) == sorted(history.rows) == table(acid, "t")
    while found := from_the_first.batch():
        assert len({one["_commit_version"] for one in found}) <= 2 or not CAN_LIMIT
        of_the_first += found
    all_at_once = [one.asDict(recursive=True) for one in acid.changes("t", 1).collect()]
    assert as_told(of_the_first) == as_told(all_at_once)
    assert {"update_preimage", "update_postimage"} <= {one["_change_type"] for one in of_the_first}


# ── a query ──────────────────────────────────────────────────────────────────────────────────


def follower(acid):
    """AUTO CDC from the changes of ``src``, as docs/streams.md says."""
    acid.sql("CREATE TABLE copy (id INT, v STRING)")
    return acid.auto_cdc(
        target="copy", keys=["id"], except_column_list=ADDED,
        sequence_by="struct(coalesce(_commit_timestamp, timestamp_millis(0)), _commit_version)",
        apply_as_deletes="_change_type = 'delete'",
    )  # fmt: skip


def test_a_key_that_comes_late_under_a_lower_version_is_not_lost(acid):
    """A transaction gets its version when it begins to write, and others may commit before it."""
    fill(acid, "src (id INT, v STRING)", "1, 'old'")
    with beside(acid, compactor="off") as other, other.transaction():
        other.sql("INSERT INTO src VALUES (2, 'first')")
        acid.sql("DELETE FROM src WHERE id = 1")
        other.sql("INSERT INTO src VALUES (1, 'new')")
    changes = acid.changes("src", 1)
    of_key = {(row._change_type, row._commit_version) for row in changes.where("id = 1").collect()}
    assert of_key == {("insert", 1), ("insert", 2), ("delete", 3)}
    follower(acid).apply(changes)
    assert table(acid, "copy") == table(acid, "src") == [(1, "new"), (2, "first")]


def test_a_table_follows_another_one_across_replays(acid, tmp_path):
    fill(acid, "src (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    follow = follower(acid)
    versions = []

    def apply(batch, number):
        versions.append({row[0] for row in batch.select("_commit_version").distinct().collect()})
        follow(batch, number)

    def run():
        del versions[:]
        source = acid.spark.readStream.format("acidsql").option("table", "default.src")
        source = source.option("warehouse", acid.warehouse).option("readChangeFeed", "true")
        rows = source.options(keys="id", **limit(1)).load()
        wanted = rows.where("_change_type <> 'update_preimage'").writeStream.foreachBatch(apply)
        place = wanted.option("checkpointLocation", str(tmp_path / "c"))
        place.trigger(availableNow=True).start().awaitTermination()

    run()
    assert table(acid, "copy") == table(acid, "src")
    acid.sql("UPDATE src SET v = 'x' WHERE id = 1")
    acid.sql("DELETE FROM src WHERE id = 2")
    acid.sql("INSERT INTO src VALUES (2, 'again')")
    run()
    # One version in each batch, and all that there were.
    assert versions == ([{2}, {3}, {4}] if CAN_LIMIT else [{2, 3, 4}])
    assert table(acid, "copy") == table(acid, "src") == [(1, "x"), (2, "again"), (3, "c")]
    last = max(Path(tmp_path / "c" / "commits").glob("[0-9]*"), key=lambda one: int(one.name))
    last.unlink()  # as if Spark had crashed before it noted the batch
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    run()
    assert versions == ([{4}] if CAN_LIMIT else [{2, 3, 4}])
    assert table(acid, "copy") == table(acid, "src")


# ── what a batch shows ───────────────────────────────────────────────────────────────────────


def of_kinds(changes):
    """Version, value of ``v`` and kind of each change."""
    return sorted((one["_commit_version"], one["v"], one["_change_type"]) for one in changes)


def test_keys_make_pairs_also_of_rows_in_different_files(acid, feed, monkeypatch):
    acid.sql("CREATE TABLE t (k DOUBLE, v STRING) PARTITIONED BY (q STRING)")
    old = "(0D, 'zero', 'a'), (DOUBLE('NaN'), 'nan', 'a'), (1.5D, 'old', 'a'), (NULL, 'none', 'a')"
    acid.sql(f"INSERT INTO t VALUES {old}")
    plain = feed(startingVersion="latest")
    keyed, split = (feed(startingVersion="latest", keys="K") for _ in range(2))
    with acid.transaction():
        acid.sql("DELETE FROM t")
        new = old.replace("'a'", "'b'").replace("0D", "-0D").replace("1.5D, 'old'", "2D, 'new'")
        acid.sql(f"INSERT INTO t VALUES {new}")
    acid.sql("INSERT OVERWRITE t PARTITION (q = 'b') VALUES (2D, 'newer')")
    found = of_kinds(plain.batch())
    assert found == sorted(
        [(2, v, "delete") for v in ("nan", "none", "old", "zero")]
        + [(2, v, "insert") for v in ("nan", "new", "none", "zero")]
        + [(3, v, "delete") for v in ("nan", "new", "none", "zero")]
        + [(3, "newer", "insert")]
    )
    pairs = {(2, "nan"), (2, "zero"), (3, "new"), (3, "newer")}
    image = {"delete": "update_preimage", "insert": "update_postimage"}
    of_pairs = sorted(
        (number, v, image[kind] if (number, v) in pairs else kind) for number, v, kind in found
    )
    assert of_kinds(keyed.batch()) == of_pairs
    monkeypatch.setattr(stream_changes, "_TASK_BYTES", 1)
    assert of_kinds(split.batch()) == of_pairs


def test_two_rows_of_one_version_under_one_key_are_an_error(acid, feed):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    one, by_rows = feed(startingVersion="latest", keys="id"), feed(keys="v")
    acid.sql("INSERT INTO t VALUES (7, 'b'), (7, 'c')")
    with pytest.raises(ConstraintError, match="two rows of one version have the same key"):
        one.batch()
    assert of_kinds(by_rows.batch()) == [(1, "a", "insert"), (2, "b", "insert"), (2, "c", "insert")]


def test_a_late_commit_is_in_the_batch_after_it_and_no_own_row_is_shown_twice(acid, feed):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    one = feed(startingVersion="latest")
    with beside(acid, compactor="off") as other:
        with other.transaction():
            other.sql("INSERT INTO t VALUES (2, 'late')")
            other.sql("INSERT INTO t VALUES (3, 'never')")
            other.sql("UPDATE t SET v = 'seen' WHERE id = 2")
            other.sql("DELETE FROM t WHERE id = 3")
            acid.sql("INSERT INTO t VALUES (4, 'early')")
            assert one.short() == [(3, "insert", 4, "early")]
        assert one.short() == [(2, "insert", 2, "seen")]
    assert one.short() == []


def test_a_feed_begins_at_a_version_or_a_time(acid, feed):
    fill(acid, "t (id INT)", "1")
    acid.sql("DELETE FROM t WHERE id = 1")
    acid.sql("INSERT INTO t VALUES (2)")
    times = {row.version: row.timestamp for row in acid.history("t").collect()}
    second = times[2].astimezone(UTC).isoformat()
    since = [(2, "delete", 1), (3, "insert", 2)]
    assert feed(startingVersion="2").short() == since
    assert feed(startingTimestamp=second).short() == since
    assert feed().short() == [(3, "insert", 2)]
    with pytest.raises(VersionNotFoundError, match="is after now"):
        feed(startingTimestamp="2999-01-01T00:00:00Z")
    with pytest.raises(VersionNotFoundError, match="Nothing is known"):
        feed(startingTimestamp="1999-01-01T00:00:00Z")


def test_what_the_cleaner_took_is_an_error_unless_what_is_left_is_wanted(acid, feed):
    fill(acid, "t (id INT)", "1", "2")
    strict, lax = (feed(startingVersion="latest", failOnDataLoss=one) for one in ("true", "false"))
    acid.sql("INSERT INTO t VALUES (3)")
    acid.sql("DELETE FROM t WHERE id = 1")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert acid.clean().count() > 0
    with pytest.raises(SnapshotTooOldError, match="failOnDataLoss"):
        strict.batch()
    assert lax.short() == [(2, "insert", 3)]


def test_the_options_are_checked(acid, feed, monkeypatch):
    acid.sql("CREATE TABLE t (id INT, s STRUCT<a: INT>)")
    for options, error, said in [
        ({"keys": "nope"}, CatalogError, "no column 'nope'"),
        ({"keys": "s"}, UnsupportedError, "it has parts"),
        ({"keys": "id", "readChangeFeed": "false"}, SettingError, "needs the option readChange"),
        ({"readChangeFeed": "yes"}, SettingError, "neither true nor false"),
        ({"maxVersionsPerTrigger": "0"}, SettingError, "no number from 1 on"),
        ({"startingTimestamp": "2026-11-26"}, SettingError, "no time with an offset"),
        ({"startingTimestamp": "2026-11-26T00:00Z", "startingVersion": "1"}, SettingError, "both"),
    ]:
        with pytest.raises(error, match=said):
            feed(**options)
    monkeypatch.setattr("acidsql.streams.source.source_options.CAN_LIMIT", False)
    with pytest.raises(UnsupportedError, match=r"Spark 4\.2"):
        feed(maxBytesPerTrigger="1")
    acid.sql("CREATE TABLE u (id INT, _change_type STRING)")
    with pytest.raises(UnsupportedError, match="has a column '_change_type'"):
        feed(table="u")


def test_only_files_that_may_have_a_change_are_read(acid, feed):
    acid.sql("CREATE TABLE t (id INT, v STRING) CLUSTERED BY (id) INTO 4 BUCKETS")
    for start in (0, 100):
        acid.sql(f"INSERT INTO t SELECT INT(id), 'v' FROM range({start}, {start + 100})")
    one = feed(startingVersion="latest")
    acid.sql("UPDATE t SET v = 'w' WHERE id = 7")
    splits = one.stream.partitions(one.at, one.stream.latestOffset())
    opened = sorted(
        path.split("/")[-2:]
        for split in splits
        for read in split.read.own_reads
        for path in (read.read.path, *(deletes.path for deletes in read.deletes))
    )
    assert [directory for directory, _ in opened] == [
        "delete_delta_0000003_0000003_0000", "delta_0000001_0000001_0000",
        "delta_0000003_0000003_0001",
    ]  # fmt: skip
    assert len({bucket for _, bucket in opened}) == 1
    assert one.short() == [(3, "delete", 7, "v"), (3, "insert", 7, "w")]


# ── limits ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("versions", "size", "ends"),
    [
        (None, None, [[3, 6, 8, 9]]),
        (1, None, [[3], [6], [8], [9]]),
        (3, None, [[3, 6, 8], [9]]),
        (None, 1, [[3], [6], [8], [9]]),
        (None, 25, [[3, 6], [8, 9]]),
        (1, 100, [[3], [6], [8], [9]]),
    ],
)
def test_a_limit_takes_the_first_of_the_new_versions(versions, size, ends):
    """3 and 6 were open at first, and 7 was rolled back. 8 is as large as a batch, 9 unknown."""
    before = ValidWriteIdList(6, (3, 6))
    after, sizes = ValidWriteIdList(9, (), (7,)), {3: 10, 6: 15, 8: 25}
    found = []
    while numbers := NewWriteIds(before, after).numbers:
        end = limited_end(NewWriteIds(before, after), sizes, versions, size)
        found.append([one for one in numbers if end.is_valid(one)])
        assert all(end.is_valid(one) for one in range(1, 10) if before.is_valid(one))
        before = end
    assert found == ends


@pytest.mark.skipif(not CAN_LIMIT, reason="Spark 4.1 has no limits for data sources in Python")
def test_spark_takes_the_limit_of_a_stream_that_has_one():
    assert type(default_limit(is_limited=False)).__name__ == "ReadAllAvailable"
    assert type(default_limit(is_limited=True)).__name__ == "ReadMaxFiles"
