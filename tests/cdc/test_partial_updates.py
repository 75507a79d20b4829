"""IGNORE NULL UPDATES: a NULL in a record means that the record leaves the column as it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit_cdc import one_way

from acidsql.errors import SettingError, SqlError

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

EXAMPLES = int(os.environ.get("ACIDSQL_CDC_EXAMPLES", "3"))
RECORD = "id INT, a STRING, b STRUCT<x: INT, y: ARRAY<INT>>, c STRING, p STRING, ts INT, op STRING"
TABLE = (
    "id INT, a STRING, b STRUCT<x: INT, y: ARRAY<INT>>, c STRING, kept STRING DEFAULT 'new'{}) "
    "PARTITIONED BY (p STRING"
)
CDC = (
    "AUTO CDC INTO t FROM s KEYS (id) IGNORE NULL UPDATES ON * EXCEPT (c) "
    "APPLY AS DELETE WHEN op = 'd' SEQUENCE BY ts COLUMNS * EXCEPT (op{})"
)


def put(acid, records):
    acid.spark.createDataFrame(records, RECORD).createOrReplaceTempView("s")


def rows(acid) -> dict[int, tuple[Any, ...]]:
    """The rows without their order values, by key."""
    found = acid.sql("SELECT id, a, b, c, p, kept FROM t").collect()
    assert len({row.id for row in found}) == len(found), "a key came twice"
    return {row.id: (row.a, row.b and (row.b.x, row.b.y), row.c, row.p, row.kept) for row in found}


# ── the oracle ───────────────────────────────────────────────────────────────────────────────


@dataclass
class Model:
    """Plain Python: applies records one after another, in the order of their order values."""

    newest: dict[int, int] = field(default_factory=dict)
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def apply(self, batch) -> None:
        for key, a, b, c, p, ts, op in sorted(batch, key=lambda record: record[5]):
            if ts <= self.newest.get(key, -1):
                continue
            self.newest[key] = ts
            if op == "d":
                self.rows.pop(key, None)
                continue
            old = self.rows.get(key, (None, None, None, None, "new"))
            self.rows[key] = (
                _first(a, old[0]),
                old[1] if b is None else tuple(map(_first, b, old[1] or (None, None))),
                c,
                _first(p, old[3]),
                old[4],
            )


def _first(new: Any, old: Any) -> Any:
    return old if new is None else new


def record(key: int, ts: int, shape: int) -> tuple[Any, ...]:
    """For one key and one order value there is one record: ``shape`` is a function of both."""

    def some(bit: int, value: Any) -> Any:
        return value if shape >> bit & 1 else None

    b = some(1, (some(2, ts), some(3, [key, ts])))
    return (key, some(0, f"a{ts}"), b, some(4, f"c{ts}"), some(5, "xyz"[ts % 3]), ts,
            "d" if shape % 7 == 0 else "u")  # fmt: skip


records = st.builds(
    lambda key, ts: record(key, ts, (key * 37 + ts * 11) % 64), st.integers(1, 4), st.integers(1, 9)
)
batches = st.lists(st.lists(records, min_size=1, max_size=14), min_size=2, max_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("is_in_target", [True, False], ids=["order in", "order beside"])
def test_the_table_is_what_the_records_one_after_another_give(acid_of_all, is_in_target):
    acid = acid_of_all

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES <= 3,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(batches)
    def run(given_batches):
        acid.sql("DROP TABLE IF EXISTS t")
        acid.sql(f"CREATE TABLE t ({TABLE.format(', ts INT' if is_in_target else '')})")
        model = Model()
        for number, batch in enumerate([*given_batches, given_batches[0]]):
            put(acid, batch)
            with one_way(acid, number):
                acid.sql(CDC.format("" if is_in_target else ", ts"))
            model.apply(batch)
            assert rows(acid) == model.rows
            if number == 0:
                acid.sql("UPDATE t SET kept = 'mine', a = 'by hand' WHERE id < 3")
                model.rows |= {
                    key: ("by hand", *row[1:4], "mine")
                    for key, row in model.rows.items()
                    if key < 3
                }

    run()


# ── single cases ─────────────────────────────────────────────────────────────────────────────


def test_a_late_partial_record_is_stale_as_a_whole(acid):
    acid.sql(f"CREATE TABLE t ({TABLE.format('')})")
    put(acid, [(1, "a", None, "c", "x", 5, "u")])
    acid.sql(CDC.format(", ts"))
    put(
        acid,
        [(1, "late", (7, None), "late", None, 4, "u"), (1, None, (None, [8]), "c", None, 6, "u")],
    )
    (counts,) = acid.sql(CDC.format(", ts")).collect()
    assert rows(acid) == {1: ("a", (None, [8]), "c", "x", "new")}
    assert (counts.num_records, counts.num_stale_records) == (2, 1)


def test_the_columns_of_the_clause_are_columns_that_the_records_set(acid):
    acid.sql(f"CREATE TABLE t ({TABLE.format('')})")
    put(acid, [])
    for wrong in ("id", "kept", "nothing"):
        text = (
            f"AUTO CDC INTO t FROM s KEYS (id) IGNORE NULL UPDATES ON (a, {wrong}) "
            "SEQUENCE BY ts COLUMNS * EXCEPT (op, ts)"
        )
        with pytest.raises(SqlError) as caught:
            acid.sql(text)
        assert caught.value.condition == "UNRESOLVED_COLUMN"
        assert text[caught.value.start : caught.value.end] == wrong


def test_the_python_words_are_sparks(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, w STRING)")

    def apply(ts, v, w, **clauses):
        cdc = acid.auto_cdc("t", keys="id", sequence_by="ts", except_column_list=["ts"], **clauses)
        cdc.apply(acid.spark.createDataFrame([(1, v, w, ts)], "id INT, v STRING, w STRING, ts INT"))
        return [tuple(row) for row in acid.sql("SELECT v, w FROM t").collect()]

    assert apply(1, "v1", "w1") == [("v1", "w1")]
    assert apply(2, None, "w2", ignore_null_updates=True) == [("v1", "w2")]
    assert apply(3, None, None, ignore_null_updates_column_list=["v"]) == [("v1", None)]
    assert apply(4, "v4", "w4") == [("v4", "w4")]
    assert apply(5, None, None, ignore_null_updates_except_column_list=["v"]) == [(None, "w4")]
    with pytest.raises(SettingError, match="not both"):
        apply(6, "v", "w", ignore_null_updates=True, ignore_null_updates_column_list=["v"])
