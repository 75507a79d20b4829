"""Views of acidsql's that Hive reads, and views of Hive's that acidsql reads."""

from __future__ import annotations

ROWS = [(1, "a"), (3, "c")]


def rows(both, query):
    """The rows of a query, by Hive and by acidsql, which must be the same."""
    ours = sorted(tuple(row) for row in both.acid.sql(query).collect())
    theirs = sorted(tuple(row) for row in both.hive.sql(query))
    assert [tuple(map(str, row)) for row in ours] == [tuple(map(str, row)) for row in theirs]
    return ours


def test_each_reads_the_views_of_the_other(both):
    both.acid.sql("CREATE TABLE t (id INT, v STRING)")
    both.acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    both.acid.sql("CREATE VIEW ours AS SELECT * FROM t WHERE id <> 2")
    both.hive.sql("CREATE VIEW theirs (v, n) AS SELECT v, count(*) AS c FROM ours GROUP BY v")
    assert rows(both, "SELECT * FROM ours") == ROWS
    assert rows(both, "SELECT v, n FROM theirs") == [("a", 1), ("c", 1)]
