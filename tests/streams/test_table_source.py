"""A table is the source of a stream: each inserted row comes once.

Most tests ask the reader as Spark asks it, without a query, because a query takes seconds to start.
"""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from over_hive import beside, needs

import pyspark_acidsql
from acidsql.acid.table import TableName
from acidsql.errors import (
    CatalogError,
    SnapshotTooOldError,
    UnsupportedError,
    VersionNotFoundError,
)
from acidsql.streams.source.source import TableStream

pytestmark = [pytest.mark.spark, needs("keeps_versions")]


def read(acid, table="src", **options):
    """The stream of a table, as a DataFrame."""
    reader = acid.spark.readStream.format("acidsql").option("table", f"default.{table}")
    return reader.option("warehouse", acid.warehouse).options(**options)


def run(frame, place):
    """Run a query until it has seen everything; returns the new rows."""
    batches = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
    writer = writer.option("checkpointLocation", str(place)).trigger(availableNow=True)
    writer.start().awaitTermination()
    return sorted((one for batch in batches for one in batch), key=repr)


def ids(rows):
    return [one.id for one in rows]


class Reader:
    """A stream as Spark drives it: it asks for offsets, and hands the splits to tasks."""

    def __init__(self, acid, **options):
        options |= {"table": "src", "warehouse": acid.warehouse}
        self.stream = TableStream(partial(pyspark_acidsql._open_metastore, options), options)
        self.at = self.stream.initialOffset()

    def ids(self, end=None):
        """The ids of the next batch."""
        end = end or self.stream.latestOffset()
        splits, self.at = self.stream.partitions(self.at, end), end
        stream, splits = pickle.loads(pickle.dumps((self.stream, splits)))
        batches = [batch for split in splits for batch in stream.read(split)]
        return sorted(number for batch in batches for number in batch.column("id").to_pylist())


@pytest.fixture
def reader(acid):
    """A function that makes readers of the table ``src``."""
    made = []

    def make(**options):
        made.append(Reader(acid, **options))
        return made[-1]

    yield make
    for one in made:
        one.stream.stop()


@pytest.mark.classic
def test_a_query_gets_each_insert_once_across_restarts_late_commits_and_compaction(acid, tmp_path):
    acid.sql("CREATE TABLE src (id INT, v STRING)")
    acid.sql("INSERT INTO src VALUES (1, 'a'), (2, 'b')")
    acid.sql("DELETE FROM src WHERE id = 2")
    frame, place = read(acid).load(), tmp_path / "c"
    assert ids(run(frame, place)) == [1]  # the current rows
    with beside(acid, compactor="off") as other:
        with other.transaction():
            other.sql("INSERT INTO src VALUES (3, 'late')")
            acid.sql("INSERT INTO src VALUES (4, 'early')")
            assert ids(run(frame, place)) == [4]
        acid.sql("INSERT INTO src VALUES (5, 'e')")
    with acid.transaction():
        acid.sql("INSERT INTO src VALUES (6, 'f'), (7, 'never seen')")
        acid.sql("DELETE FROM src WHERE id = 7")
    acid.sql("ALTER TABLE src COMPACT 'major' AND WAIT")
    assert ids(run(frame, place)) == [3, 5, 6]
    acid.sql("ALTER TABLE src ADD COLUMNS (w INT)")
    acid.sql("INSERT INTO src VALUES (8, 'g', 80)")
    with pytest.raises(Exception, match="STREAM_SOURCE_CHANGED.*other columns"):
        run(frame, place)
    assert [tuple(one) for one in run(read(acid).load(), place)] == [(8, "g", 80)]


@pytest.mark.classic
def test_a_program_that_has_connected_need_not_name_the_warehouse(acid, tmp_path):
    acid.sql("CREATE TABLE src (id INT)")
    acid.sql("INSERT INTO src VALUES (1)")
    frame = acid.spark.readStream.format("acidsql").option("table", "src").load()
    assert ids(run(frame, tmp_path / "c")) == [1]


@pytest.mark.classic
def test_the_options_are_checked(acid):
    acid.sql("CREATE TABLE src (id INT, v STRING)")
    for options, said in [
        ({"readChangeFeed": "maybe"}, "neither true nor false"),
        ({"startingVersion": "x"}, "neither a version nor latest"),
        ({"ignoreDeletes": "true"}, "no option"),
        ({"metastore": "postgresql://u:secret@h/d"}, "ACIDSQL_METASTORE"),
        ({"table": "none"}, "There is no table 'default.none'"),
    ]:
        with pytest.raises(Exception, match=said) as caught:
            read(acid, options.pop("table", "src"), **options).load()
        assert "secret" not in str(caught.value)
    given = read(acid).schema("id BIGINT, v STRING").load().writeStream.format("noop")
    with pytest.raises(Exception, match=r"Leave out \.schema"):
        given.trigger(availableNow=True).start().awaitTermination()


def test_a_metastore_without_versions_is_told_at_once(acid):
    class Lacking:
        abilities = replace(acid.metastore.abilities, keeps_versions=False)

    with pytest.raises(UnsupportedError, match="needs acidsql's own metastore"):
        TableStream(Lacking, {"table": "src", "warehouse": acid.warehouse})


def test_a_stream_begins_where_it_is_told(acid, reader):
    acid.sql("CREATE TABLE src (id INT)")
    of = {"of the empty table": reader(startingVersion="1")}
    acid.sql("INSERT INTO src VALUES (1)")
    acid.sql("INSERT INTO src VALUES (2)")
    of |= {start: reader(startingVersion=start) for start in ("1", "2", "3", "latest")}
    acid.sql("INSERT INTO src VALUES (3)")
    assert {start: one.ids() for start, one in of.items()} == {
        "of the empty table": [1, 2, 3], "1": [1, 2, 3], "2": [2, 3], "3": [3], "latest": [3],
    }  # fmt: skip
    for wrong in ("0", "5"):
        with pytest.raises(VersionNotFoundError, match="the next one will be 4"):
            reader(startingVersion=wrong)


def test_a_stream_may_begin_with_the_version_that_made_its_table(acid, reader):
    acid.sql("CREATE TABLE src AS SELECT 1 AS id")
    first = reader(startingVersion="1")
    acid.sql("INSERT INTO src VALUES (2)")
    assert first.ids() == [1, 2]
    acid.sql("INSERT INTO src VALUES (3)")
    assert first.ids() == [3]


def test_a_table_that_was_made_again_is_another_one(acid, reader):
    """The store may give a number of a table again, and forgets old versions of tables."""

    def make():
        acid.sql("DROP TABLE IF EXISTS src")
        acid.sql("CREATE TABLE src (id INT)")

    make()
    of_empty = reader()  # has no offset yet
    acid.sql("INSERT INTO src VALUES (1)")
    of_full = reader()
    assert of_full.ids() == [1]
    make()
    acid.sql("INSERT INTO src VALUES (2)")
    acid.sql("INSERT INTO src VALUES (3)")
    store = Path(acid.warehouse, ".acidsql", "metastore.db")
    with closing(sqlite3.connect(store)) as rows, rows:
        rows.execute("DELETE FROM TABLE_VERSIONS")
    for one in (of_empty, of_full):
        with pytest.raises(CatalogError, match="made again") as caught:
            one.ids()
        assert caught.value.getCondition() == "STREAM_SOURCE_CHANGED"
    new = reader()
    assert new.ids() == [2, 3]
    acid.sql("ALTER TABLE src RENAME TO other")
    with pytest.raises(CatalogError, match="There is no table"):
        new.ids()
    acid.sql("CREATE TABLE src (id INT)")
    with pytest.raises(CatalogError, match="made again"):
        new.ids()
    acid.sql("DROP TABLE src")
    acid.sql("ALTER TABLE other RENAME TO src")
    assert new.ids() == []


def test_new_columns_end_a_running_stream(acid, reader):
    acid.sql("CREATE TABLE src (id INT)")
    acid.sql("INSERT INTO src VALUES (1)")
    one = reader()
    end = one.stream.latestOffset()
    acid.sql("ALTER TABLE src ADD COLUMNS (v STRING)")
    for ask in (one.stream.latestOffset, lambda: one.ids(end)):
        with pytest.raises(CatalogError, match="other columns") as caught:
            ask()
        assert caught.value.getCondition() == "STREAM_SOURCE_CHANGED"
    assert reader().ids(end) == [1]


def test_what_the_cleaner_took_is_an_error_by_name(acid, reader):
    acid.sql("CREATE TABLE src (id INT)")
    acid.sql("INSERT INTO src VALUES (1), (2)")
    strict, lax = reader(), reader(failOnDataLoss="false")
    assert strict.ids() == lax.ids() == [1, 2]
    acid.sql("INSERT INTO src VALUES (3), (4)")
    acid.sql("DELETE FROM src WHERE id = 4")
    acid.sql("ALTER TABLE src COMPACT 'major' AND WAIT")
    assert acid.clean().count() > 0
    acid.sql("INSERT INTO src VALUES (5)")
    with pytest.raises(SnapshotTooOldError, match="failOnDataLoss") as caught:
        strict.ids()
    assert caught.value.getCondition() == "ACID_NOT_ENOUGH_HISTORY"
    assert lax.ids() == [3, 5]  # what is left
    acid.sql("INSERT INTO src VALUES (6)")
    assert lax.ids() == [6]


def test_what_is_left_of_a_converted_table_comes_too(acid, reader, tmp_path):
    acid.spark.createDataFrame([(1,), (2,)], "id INT").coalesce(1).write.orc(str(tmp_path / "old"))
    acid.sql(f"CREATE TABLE src (id INT) LOCATION '{tmp_path}/old'")
    strict, lax = reader(), reader(failOnDataLoss="false")
    end = lax.stream.latestOffset()
    acid.sql("DELETE FROM src WHERE id = 1")
    acid.sql("ALTER TABLE src COMPACT 'major' AND WAIT")
    assert acid.clean().count() > 0
    with pytest.raises(SnapshotTooOldError):
        strict.ids(end)
    assert lax.ids(end) == [2]


@pytest.mark.classic
def test_directories_of_other_writers_have_the_values_that_a_query_shows(acid, tmp_path):
    """Beside canonical names, there are texts that Spark casts, and texts that are no values."""
    texts = [
        ("2024-01-05", "1"), ("2024-1-5", "+7"), ("2024-2", " 8 "), ("2024-01-05Tx", "abc"),
        ("2024-02-30", "99999999999"), ("+12024-01-05", "007"), ("5881580-07-12", "1.5"),
    ]  # fmt: skip
    acid.sql("CREATE TABLE src (id INT) PARTITIONED BY (a DATE, b INT)")
    acid.sql("INSERT INTO src VALUES (0, DATE '2000-01-01', 0)")
    (made,) = Path(acid.metastore.find(TableName("default", "src")).location).glob("a=*/b=*")
    place = tmp_path / "others"
    for number, (day, text) in enumerate(texts):
        shutil.copytree(made, place / f"a={day}" / f"b={text}{' ' * (number == 0)}")
    acid.sql(f"CREATE TABLE found (id INT) PARTITIONED BY (a DATE, b INT) LOCATION '{place}'")
    shown = "SELECT id, CAST(a AS STRING), b FROM found"
    expected = sorted(map(tuple, acid.sql(shown).collect()), key=repr)
    assert len(expected) == len(texts) and len({row[1] for row in expected}) == 4
    for options in ({}, {"readChangeFeed": "true"}):
        loaded = read(acid, table="found", **options).load()
        frame = loaded.selectExpr("id", "CAST(a AS STRING)", "b")
        rows = run(frame, tmp_path / f"c{len(options)}")
        assert sorted((tuple(row)[:3] for row in rows), key=repr) == expected
