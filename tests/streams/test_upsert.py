"""An upsert compares keys as the table keeps them, and moves rows to their new places."""

from __future__ import annotations

import pytest

from acidsql.errors import AnalysisError, ConstraintError
from acidsql.streams import batches as module
from acidsql.streams.query import RunningQuery

pytestmark = pytest.mark.spark


@pytest.fixture
def upsert(acid, monkeypatch):
    monkeypatch.setattr(module, "running_query", lambda *_: RunningQuery("q", "run", None))
    done, sinks = [], {}

    def write(query, keys):
        sink = sinks.setdefault(str(keys), acid.sink("t", mode="upsert", keys=keys))
        sink(acid.spark.sql(query), len(done))  # a batch that fails comes again
        done.append(query)

    return write


def rows(acid):
    return sorted((tuple(row) for row in acid.sql("SELECT * FROM t").collect()), key=str)


@pytest.mark.parametrize(
    ("kind", "key", "again"),
    [
        ("DATE", "timestamp'2020-01-01 10:00:00'", "timestamp'2020-01-01 11:00:00'"),
        ("DECIMAL(10,2)", "CAST(1.001 AS DECIMAL(10,4))", "CAST(1.002 AS DECIMAL(10,4))"),
        ("CHAR(5)", "'a'", "'a '"),
        ("VARCHAR(2)", "'a '", "'a  '"),
        ("INT", "1.2D", "1.4D"),
        ("STRING", "7", "'7'"),
        ("DOUBLE", "double('NaN')", "float('NaN')"),
    ],
)
def test_a_key_is_compared_in_its_columns_type(acid, upsert, kind, key, again):
    acid.sql(f"CREATE TABLE t (k {kind}, v STRING)")
    upsert(f"SELECT {key} AS k, 'old' AS v", "k")
    upsert(f"SELECT {again} AS k, 'new' AS v", "K")
    assert [row[1] for row in rows(acid)] == ["new"]


def test_keys_that_become_one_key_in_the_table_are_refused(acid, upsert):
    acid.sql("CREATE TABLE t (count INT, v STRING)")
    with pytest.raises(ConstraintError) as caught:
        upsert("SELECT explode(array(1.2D, 1.4D)) AS count, 'a' AS v", "count")
    assert caught.value.condition == "UPSERT_KEY_INVALID"
    upsert("SELECT 1 AS count, 'a' AS v", "count")
    assert rows(acid) == [(1, "a")]


def test_a_text_that_a_partition_reads_as_null(acid, upsert):
    """As a key it is refused: no later batch would find its row. As a value it moves no row."""
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p STRING)")
    with pytest.raises(ConstraintError) as caught:
        upsert("SELECT 1 AS id, 'a' AS v, '' AS p", ["id", "p"])
    assert caught.value.condition == "UPSERT_KEY_INVALID"
    for v in "ab":
        upsert(f"SELECT 1 AS id, '{v}' AS v, '' AS p", "id")
    assert rows(acid) == [(1, "b", None)]
    upsert("SELECT 1 AS id, NULL AS v, NULL AS p", "id")
    assert rows(acid) == [(1, None, None)]


@pytest.mark.parametrize("place", ["PARTITIONED BY (p STRING)", "CLUSTERED BY (p) INTO 2 BUCKETS"])
def test_an_upsert_moves_a_row_to_its_new_place(acid, upsert, place):
    p = "" if "PARTITIONED" in place else ", p STRING"
    acid.sql(f"CREATE TABLE t (id INT, v STRING{p}) {place}")
    upsert("SELECT 1 AS id, 'a' AS v, 'x' AS p", "id")
    upsert("SELECT 1 AS id, 'b' AS v, 'x' AS P", "id")
    upsert("SELECT 1 AS id, 'y' AS p", "id")
    assert rows(acid) == [(1, "b", "y")]
    upsert("SELECT 1 AS id, 'c' AS v, 'x' AS p", "id")
    assert rows(acid) == [(1, "c", "x")]


def test_a_column_twice_in_a_batch_is_refused(acid, upsert):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    with pytest.raises(AnalysisError) as caught:
        upsert("SELECT 1 AS id, 'a' AS v, 2 AS ID", "id")
    assert caught.value.condition == "COLUMN_ALREADY_EXISTS"
