"""MERGE's source is listed once, also if new files come into its directory."""

from __future__ import annotations

import json

import pytest
from kit import rows

from acidsql.errors import TransientTxnError
from acidsql.plan.analysis import lower
from acidsql.storage.spark.repeatable import repeatable_query
from acidsql.txn import Txn

MERGE = (
    "MERGE INTO t USING {source} s ON t.id = s.id AND t.p = s.p "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"
)
OLD = [(n, "old", n) for n in range(12)]
FIRST, LATE = [(3, "first", 3)], [(7, "late", 7), (70, "late", 7)]


class Landing:
    """A directory that gets new files.

    Attributes:
        at: Before the query with this number is analysed, a file comes.
        seen: The number of analysed queries.
    """

    def __init__(self, path):
        self.path, self.at, self.seen = path, -1, 0
        path.mkdir()
        self.put(FIRST)

    def put(self, values):
        """Add a file in one step, as writers do that rename it into its place."""
        hidden = self.path / f"_{values[0][1]}"
        lines = (json.dumps(dict(zip(("id", "v", "p"), row, strict=True))) for row in values)
        hidden.write_text("\n".join(lines))
        hidden.rename(self.path / f"{values[0][1]}.json")

    def before(self):
        if self.seen == self.at:
            self.put(LATE)
        self.seen += 1


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id BIGINT, v STRING) PARTITIONED BY (p BIGINT)")
    acid.sql("INSERT INTO t SELECT id, 'old', id FROM range(0, 12, 1, 1)")
    return acid


@pytest.fixture
def landing(tmp_path, monkeypatch):
    found, frame = Landing(tmp_path / "landing"), lower.frame

    def analysed(*args, **options):
        found.before()
        return frame(*args, **options)

    monkeypatch.setattr(lower, "frame", analysed)
    return found


def merged(values):
    return sorted({**{row[0]: row for row in OLD}, **{row[0]: row for row in values}}.values())


SOURCES = [
    "json.`{0}`",
    "(SELECT /* with a table of ours */ j.* FROM json.`{0}` j JOIN one ON j.id >= one.id)",
]


@pytest.mark.parametrize("source", SOURCES, ids=["files", "files and a table of ours"])
@pytest.mark.classic
def test_a_file_that_comes_at_any_moment_is_read_by_all_or_by_none(t, landing, source):
    t.sql("CREATE TABLE one (id INT)")
    t.sql("INSERT INTO one VALUES (0)")
    statement = MERGE.format(source=source.format(landing.path))
    assert "LeftSemi" in t.sql(f"EXPLAIN {statement}").first()[0]
    found, at = [], 0
    while not found or landing.seen > landing.at:
        (landing.path / "late.json").unlink(missing_ok=True)
        landing.seen, landing.at = 0, at
        t.sql("START TRANSACTION")
        t.sql(statement)
        rows_now = sorted(map(tuple, t.sql("SELECT id, v, p FROM t").collect()))
        t.sql("ROLLBACK")
        assert rows_now in (merged(FIRST), merged(FIRST + LATE)), at
        found.append(rows_now)
        at += 1
    assert len(found) > 2
    assert {len(one) for one in found} == {12, 13}


def test_a_source_of_other_columns_than_it_was_understood_with_is_refused(t, landing, monkeypatch):
    locked = Txn.lock

    def lock(*args, **options):
        (landing.path / "late.json").write_text('{"id": "seven", "v": "late", "p": 7}')
        return locked(*args, **options)

    monkeypatch.setattr(Txn, "lock", lock)
    with pytest.raises(TransientTxnError, match="was changed while") as caught:
        t.sql(MERGE.format(source=f"json.`{landing.path}`"))
    assert caught.value.condition == "SOURCE_CHANGED"
    assert sorted(rows(t, "SELECT * FROM t")) == OLD


def test_what_with_declares_is_listed_once_though_a_clause_reads_it_too(t, landing):
    statement = (
        f"WITH c AS (SELECT * FROM json.`{landing.path}`) "
        "MERGE INTO t USING c AS s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED AND s.id IN (SELECT id FROM c) THEN UPDATE SET v = s.v"
    )
    landing.at = 5
    t.sql(statement)
    assert sorted(rows(t, "SELECT * FROM t")) in (merged(FIRST), merged([FIRST[0], LATE[0]]))


def test_a_partitioned_table_of_sparks_is_read_once(spark, t):
    """Each query lists the files of its partitions."""
    spark.sql("CREATE TABLE kept (id BIGINT, v STRING, p BIGINT) USING parquet PARTITIONED BY (p)")
    try:
        spark.sql("INSERT INTO kept VALUES (3, 'first', 3), (7, 'first', 7)")
        for source in ("kept", "(SELECT * FROM kept WHERE p = 3)"):
            assert repeatable_query(spark.sql(f"SELECT * FROM {source}")) is None
            statement = MERGE.format(source=source)
            assert "LeftSemi" not in t.sql(f"EXPLAIN {statement}").first()[0]
        t.sql(statement)
    finally:
        spark.sql("DROP TABLE kept")
    assert sorted(rows(t, "SELECT * FROM t")) == merged(FIRST)
