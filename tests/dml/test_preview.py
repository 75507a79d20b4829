"""EXPLAIN CHANGES and ``acid.preview``: what a statement would do, compared with what it does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from kit import fill, refused, rows
from over_hive import beside, needs

from acidsql.errors import UnsupportedError

pytestmark = pytest.mark.spark

STATEMENTS = [
    "INSERT INTO t VALUES (10, 'x', 7), (11, NULL, NULL)",
    "INSERT INTO t SELECT id + 20, v, p FROM t WHERE id < 3",
    "UPDATE t SET v = concat(v, '!') WHERE id <> 2",
    "DELETE FROM t WHERE id IN (SELECT max(id) FROM t)",
    "MERGE INTO t USING (SELECT 3 AS id UNION ALL SELECT 30) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm', 5) "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET v = 'n'",
    "INSERT OVERWRITE t PARTITION (p = 2) VALUES (40, 'o')",
    "INSERT OVERWRITE t SELECT 50, 'd', 5",
    "UPDATE t SET v = 'none' WHERE id = 1234",
]


@needs("keeps_versions")
def test_a_preview_shows_what_the_statement_then_does(acid):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p INT)", "1, 'a', 1", "2, 'b', 2", "3, 'c', 2")
    for statement in [*STATEMENTS, "RESTORE TABLE t TO VERSION AS OF 2"]:
        before = Counter(rows(acid, "SELECT * FROM t"))
        versions = acid.history("t").count()
        found = acid.preview(statement).collect()
        assert Counter(rows(acid, "SELECT * FROM t")) == before
        assert acid.history("t").count() == versions
        acid.sql(statement)
        after = Counter(rows(acid, "SELECT * FROM t"))
        gone, new = images(found)
        assert before - gone + new == after, statement
        assert gone <= before, statement
        last = acid.last.counts[0]
        if "OVERWRITE" not in statement:
            kinds = Counter(one._change_type for one in found)
            updated = (kinds.pop("update_preimage", 0), kinds.pop("update_postimage", 0))
            assert updated == (last.updated, last.updated)
            assert (kinds["insert"], kinds["delete"]) == (last.inserted, last.deleted)


@needs("keeps_versions")
def test_a_preview_shows_values_as_readers_will_see_them(acid):
    """CHAR is padded, '' is in the partition of NULL, and a snapshot of a time is of that time."""
    fill(acid, "t (c CHAR(3), m STRUCT<x: CHAR(2)>) PARTITIONED BY (p STRING)", "'a', NULL, ''")
    first = acid.last.txn_id
    for statement in (
        "INSERT OVERWRITE t VALUES ('b', named_struct('x', 'x'), '')",
        "INSERT INTO t VALUES ('c', NULL, '__HIVE_DEFAULT_PARTITION__')",
        "UPDATE t SET c = 'd', m = named_struct('x', 'y') WHERE c = 'b'",
    ):
        before = Counter(rows(acid, "SELECT * FROM t"))
        old, new = images(acid.preview(statement).collect())
        acid.sql(statement)
        after = Counter(rows(acid, "SELECT * FROM t"))
        assert (before - after, after - before) == (old, new), statement
    with acid.snapshot(txn_id=first):
        assert acid.preview("RESTORE TABLE t TO VERSION AS OF 1").collect() == []
        (gone,) = acid.preview(f"REVERT TRANSACTION {first}").collect()
        assert (gone.c, gone._change_type) == ("a  ", "delete")


def images(found: list[Any]) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """The rows that would go, and the rows that would come."""
    old = ("delete", "update_preimage")
    parts = [(one._change_type in old, tuple(one[: len(one) - 2])) for one in found]
    assert all((one.row__id is not None) is (one._change_type in old) for one in found)
    return Counter(r for is_old, r in parts if is_old), Counter(
        r for is_old, r in parts if not is_old
    )


def test_a_preview_waits_for_no_lock_and_takes_arguments(acid):
    fill(acid, "t (id INT, v DOUBLE)", "1, 0", "2, 0")
    with beside(acid, compactor="off") as other:
        other.sql("BEGIN")
        other.sql("UPDATE t SET v = 1")
        locks = acid.sql("SHOW LOCKS").collect()
        assert acid.preview("UPDATE t SET v = 2 WHERE id = 1").count() == 2
        assert [one.lockid for one in acid.sql("SHOW LOCKS").collect()] == [
            one.lockid for one in locks
        ]
        other.sql("ROLLBACK")
    found = acid.preview("UPDATE t SET v = rand() WHERE id < :n", {"n": 3})
    assert found.columns == ["id", "v", "_change_type", "row__id"]
    counts = found.groupBy("_change_type").count().collect()
    assert {(one._change_type, one["count"]) for one in counts} == {
        ("update_preimage", 2), ("update_postimage", 2),
    }  # fmt: skip
    (told,) = acid.sql("EXPLAIN CHANGES DELETE FROM t WHERE id = 2").collect()
    assert (told.id, told._change_type) == (2, "delete")
    assert rows(acid, "SELECT * FROM t") == [(1, 0.0), (2, 0.0)]


def test_what_has_no_preview_is_refused_with_a_reason(acid):
    fill(acid, "t (id INT)", "1")
    fill(acid, "plain (id INT)\nTBLPROPERTIES ('transactional_properties'='insert_only')", "1")
    (new,) = acid.preview("INSERT INTO plain VALUES (2)").collect()
    assert (new.id, new.row__id) == (2, None)
    assert acid.preview("INSERT OVERWRITE plain VALUES (2)").count() == 2
    refused(acid, "EXPLAIN CHANGES SELECT 1", "PARSE_SYNTAX_ERROR", "SELECT")
    refused(acid, "EXPLAIN CHANGES TRUNCATE TABLE t", "PARSE_SYNTAX_ERROR", "TRUNCATE")
    refused(acid, "EXPLAIN CHANGES UPDATE t SET nope = 1", "UNRESOLVED_COLUMN", "nope")
    acid.sql("CREATE TABLE odd (id INT, _change_type INT)")
    with pytest.raises(UnsupportedError, match="_change_type"):
        acid.preview("INSERT INTO odd VALUES (1, 2)")
    both = "FROM t INSERT INTO t SELECT id + 1 INSERT INTO t SELECT id + 2 WHERE id = 1"
    assert sorted((one.id, one._change_type) for one in acid.preview(both).collect()) == [
        (2, "insert"), (3, "insert"),
    ]  # fmt: skip
    with pytest.raises(UnsupportedError, match="several tables"):
        acid.preview("FROM t INSERT INTO t SELECT id INSERT INTO plain SELECT id")
