"""The preview of AUTO CDC, compared with the change feed of the statement that runs afterwards."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kit_cdc import Change, put

import acidsql
from acidsql.errors import SqlError

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

OLD = ("delete", "update_preimage")
WAYS = {
    "SCD TYPE 1": (
        "c CHAR(2) DEFAULT 'c') PARTITIONED BY (p STRING",
        "APPLY AS DELETE WHEN op = 'd' SEQUENCE BY struct(ts, batch)"),
    "with truncations": (
        "p STRING) CLUSTERED BY (v) INTO 2 BUCKETS --",
        "APPLY AS DELETE WHEN op = 'd' APPLY AS TRUNCATE WHEN op = 't' "
        "SEQUENCE BY struct(ts, batch)"),
    "SCD TYPE 2": (
        "p STRING, __START_AT STRUCT<ts: INT, batch: INT>, "
        "__END_AT STRUCT<ts: INT, batch: INT>) --",
        "APPLY AS DELETE WHEN op = 'd' SEQUENCE BY struct(ts, batch)"),
}  # fmt: skip


def records(dice: random.Random, number: int) -> list[Change]:
    """Random records of few keys. One of each batch but the first may truncate."""
    found = []
    for _ in range(8):
        key, ts, batch = dice.randint(1, 5), dice.randint(1, 9), dice.randint(0, 1)
        op = "d" if (key + ts * 3 + batch) % 4 == 0 else "u"
        # For one key and one order value there is one record: it is a function of both.
        found.append(Change(key, f"{key} at {ts % 3}", ts, batch, p="xyz"[(key + ts) % 3], op=op))
    if number:
        found.append(Change(None, None, 2 * number, 2, p=None, op="t"))
    return found


def images(found: list[Any], columns: list[str]) -> tuple[Counter[Any], Counter[Any]]:
    """The rows that go and the rows that come."""
    parts = [(one["_change_type"] in OLD, tuple(one[name] for name in columns)) for one in found]
    return (
        Counter(row for is_old, row in parts if is_old),
        Counter(row for is_old, row in parts if not is_old),
    )


@pytest.mark.needs("keeps_versions")
@pytest.mark.parametrize("way", WAYS)
def test_the_preview_is_the_change_feed_of_the_statement(acid, way):
    columns, clauses = WAYS[way]
    acid.sql(f"CREATE TABLE t (id INT, v STRING, {columns})")
    acid.sql("INSERT INTO t (id, v, p) VALUES (1, 'loaded', 'x'), (9, 'loaded', 'y')")
    if way == "SCD TYPE 2":
        acid.sql("UPDATE t SET __START_AT = named_struct('ts', 0, 'batch', 0)")
    names = [field.name for field in acid.table("t").schema]
    statement = (
        f"AUTO CDC INTO t FROM s KEYS (id) {clauses} COLUMNS (id, v, p) "
        f"STORED AS SCD TYPE {2 if '2' in way else 1}"
    )
    dice = random.Random(way)
    for number in range(3):
        given = records(dice, number if way == "with truncations" else 0)
        put(acid, "s", given)
        shown = acid.preview(statement)
        assert shown.columns == [*names, "_change_type", "row__id"]
        found = shown.collect()
        acid.sql(statement)
        done = acid.last.counts[0]
        fed = acid.changes("t", done.write_id, done.write_id).collect()
        assert images(found, names) == images(fed, names), number
        assert {one.row__id for one in found if one._change_type in OLD} == {
            one.row__id for one in fed if one._change_type in OLD
        }
        kinds = Counter(one._change_type for one in found)
        assert (kinds["insert"], kinds["delete"]) == (done.inserted, done.deleted)
        assert kinds["update_preimage"] == kinds["update_postimage"] == done.updated
        assert done.inserted + done.updated + done.deleted > 0, "the records changed nothing"


@pytest.mark.needs("keeps_session_locks")
def test_a_preview_leaves_nothing_behind_and_waits_for_nobody(acid):
    """Also the first statement's, before there is a state table, and over a DataFrame."""
    acid.sql("CREATE TABLE t (id INT, v STRING, p STRING)")
    frame = acid.spark.createDataFrame([(1, "a", 1)], "id INT, v STRING, n INT")
    text = "AUTO CDC INTO t FROM {s} KEYS (id) SEQUENCE BY n COLUMNS (id, v)"
    tables, files = acid.sql("SHOW TABLES").collect(), list(Path(acid.warehouse).rglob("*"))
    with acidsql.connect(acid.spark, warehouse=acid.warehouse, compactor="off") as other:
        other.sql("BEGIN")
        other.sql("LOCK TABLE t EXCLUSIVE")
        shown = acid.preview(text, s=frame)
        assert [tuple(row) for row in shown.collect()] == [(1, "a", None, "insert", None)]
        assert [row[0] for row in acid.sql(f"EXPLAIN CHANGES {text}", s=frame).collect()] == [1]
        other.sql("ROLLBACK")
    assert acid.sql("SHOW TABLES").collect() == tables
    assert list(Path(acid.warehouse).rglob("*")) == files
    acid.sql(text, s=frame)
    assert acid.last.counts[0].write_id == 1  # the preview took none
    with pytest.raises(SqlError, match="n2"):
        acid.preview(text.replace("BY n", "BY n2"), s=frame)
