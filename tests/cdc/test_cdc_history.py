"""STORED AS SCD TYPE 2: the target has a row for each version of a key.

The model is a list of records for each key, and the versions that they give.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit_cdc import Change, days, keep_deletes, one_way, put, retentions

from acidsql.errors import ConstraintError, SettingError, SqlError, UnsupportedError

pytestmark = [pytest.mark.spark, pytest.mark.needs("keeps_state_tables")]

EXAMPLES = int(os.environ.get("ACIDSQL_CDC_EXAMPLES", "3"))


@dataclass
class Model:
    """All distinct records. ``tracked`` tells the values that make a new version.

    ``noted`` has the deletes in the state table, with the day on which they came there.
    """

    tracked: Any
    records: dict[int, dict[Any, Change]] = field(default_factory=dict)
    noted: dict[tuple[int, Any], int] = field(default_factory=dict)

    def apply(self, changes: list[Change], order, day: int) -> None:
        for one in changes:
            known, at = self.records.setdefault(one.id, {}), order(one)
            # A delete that only a version's end tells loses to a record of the same order value.
            if at not in known or (known[at].op == "d" and (one.id, at) not in self.noted):
                known[at] = one
        came = {(one.id, order(one)) for one in changes}
        deletes = {one for one in came if self.records[one[0]][one[1]].op == "d"}
        for key in {one.id for one in changes}:
            deletes |= self.untold(key)
        for one in deletes:
            self.noted.setdefault(one, day)

    def untold(self, key: int) -> set[tuple[int, Any]]:
        """A key's deletes that no version's end tells."""
        runs = self.runs(key)
        return {
            (key, run[0][0])
            for before, run in zip([None, *runs], runs, strict=False)
            if run[0][1].op == "d" and (before is None or before[0][1].op == "d")
        }

    def forget(self, before: int) -> None:
        """Forget the deletes that came into the state table before a day."""
        old = {at for at, day in self.noted.items() if day < before}
        untold: set[tuple[int, Any]] = set().union(*map(self.untold, self.records))
        for key, at in old & untold:
            del self.records[key][at]
        self.records = {key: known for key, known in self.records.items() if known}
        self.noted = {at: day for at, day in self.noted.items() if at not in old}

    def runs(self, key: int) -> list[list[tuple[Any, Change]]]:
        """A key's records in their order: those of each version, and each delete alone."""
        runs: list[list[tuple[Any, Change]]] = []
        for at, one in sorted(self.records[key].items()):
            before = runs[-1][-1][1] if runs else None
            if (
                before is not None
                and "d" not in (before.op, one.op)
                and self.tracked(before) == self.tracked(one)
            ):
                runs[-1].append((at, one))
            else:
                runs.append([(at, one)])
        return runs

    def versions(self) -> list[tuple[Any, ...]]:
        """The rows: key, the values of the last record, the first order value, and the end."""
        found = []
        for key in self.records:
            runs = self.runs(key)
            for run, after in zip(runs, [*runs[1:], None], strict=True):
                last = run[-1][1]
                if last.op != "d":
                    found.append((key, last.v, last.p, run[0][0], after and after[0][0]))
        return sorted(found, key=str)

    def state(self) -> set[tuple[Any, ...]]:
        """What the rows do not tell: deletes, and the records of versions that have several."""
        return {(key, at, True, None) for key, at in self.noted} | {
            (key, at, False, one.v)
            for key in self.records
            for run in self.runs(key)
            for at, one in run
            if len(run) > 1
        }


def versions(acid) -> list[tuple[Any, ...]]:
    found = acid.sql("SELECT id, v, p, __START_AT AS a, __END_AT AS b FROM t").collect()
    rows = [(row.id, row.v, row.p, _order(row.a), _order(row.b)) for row in found]
    return sorted(rows, key=str)


def state(acid) -> set[tuple[Any, ...]]:
    found = acid.sql("SELECT id, sequence, deleted, v FROM t__acidsql_cdc").collect()
    rows = {(row.id, _order(row.sequence), row.deleted, row.v) for row in found}
    assert len(rows) == len(found), "a record came twice"
    return rows


def _order(value: Any) -> Any:
    return tuple(value) if isinstance(value, tuple) else value


# ── the oracle ───────────────────────────────────────────────────────────────────────────────

# (columns, SEQUENCE BY, TRACK HISTORY, the model's order, what the model tracks)
LAYOUTS = {
    "by one column": (
        "id INT, v STRING, __START_AT INT, __END_AT INT) PARTITIONED BY (p STRING", "ts",
        "TRACK HISTORY ON (p)", lambda one: one.ts, lambda one: one.p),
    "by all columns": (
        "id INT, v STRING, p STRING, __START_AT STRUCT<ts: INT, batch: SMALLINT>, "
        "__END_AT STRUCT<ts: INT, batch: SMALLINT>) CLUSTERED BY (v) INTO 2 BUCKETS --",
        "struct(ts, batch)", "", lambda one: (one.ts, one.batch), lambda one: (one.v, one.p)),
}  # fmt: skip

# For one key and one order value there is one record: it is a function of both.
records = st.builds(
    lambda key, ts, batch: Change(
        key,
        "ab"[(key + ts // 2 + batch) % 2],
        ts,
        batch,
        p="xy"[(key * 5 + ts // 3) % 2],
        op="d" if (key * 7 + ts * 3 + batch) % 5 == 0 else "u",
    ),
    st.integers(1, 3),
    st.integers(1, 12),
    st.integers(0, 1),
)
batches = st.lists(st.lists(records, min_size=1, max_size=14), min_size=2, max_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_versions_are_those_of_the_distinct_records(acid_of_all, layout, calendar):
    acid, (columns, sequence, track, order, tracked) = acid_of_all, LAYOUTS[layout]
    text = (
        f"AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY {sequence} "
        f"COLUMNS (id, v, p) STORED AS SCD TYPE 2 {track}"
    )

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES <= 3,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(batches, st.sampled_from(["minor", "major", None]), retentions, days)
    def run(given_batches, compaction, retention, pauses):
        acid.sql("DROP TABLE IF EXISTS t")
        acid.sql(f"CREATE TABLE t ({columns})")
        keep_deletes(acid, retention)
        model = Model(tracked)
        for number, batch in enumerate([*given_batches, given_batches[0]]):
            # Of the records of one order value, the layouts that leave ``batch`` out know one.
            batch = list({(one.id, order(one)): one for one in batch}.values())
            put(acid, "s", batch)
            calendar.day += pauses[number]
            with one_way(acid, number):
                acid.sql(text)
            model.apply(batch, order, calendar.day)
            if retention is not None:
                model.forget(calendar.day - retention)
            assert versions(acid) == model.versions()
            assert state(acid) == model.state()
            if number == 0 and compaction:
                acid.compact("t", kind=compaction, wait=True)
                acid.compact("t__acidsql_cdc", kind=compaction, wait=True)

    run()


# ── single cases ─────────────────────────────────────────────────────────────────────────────

TABLE = "CREATE TABLE t (id INT, v STRING, p STRING, __START_AT INT, __END_AT INT)"
CDC = (
    "AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY ts "
    "COLUMNS (id, v, p) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (p)"
)


def apply(acid, *changes, text=CDC):
    put(acid, "s", changes)
    return acid.sql(text).collect()[0]


def test_a_late_record_splits_a_version_and_a_late_delete_closes_one(acid):
    acid.sql(TABLE)
    counts = apply(acid, Change(1, "a", 10), Change(1, "b", 20), Change(2, "c", 10))
    assert (counts.num_inserted_rows, counts.num_updated_rows) == (3, 0)
    counts = apply(acid, Change(1, "late", 15), Change(2, None, 30, op="d"))
    assert (counts.num_inserted_rows, counts.num_updated_rows, counts.num_deleted_rows) == (1, 2, 0)
    apply(acid, Change(2, "later", 40), Change(2, None, 20, op="d"), Change(3, None, 5, op="d"))
    assert versions(acid) == [
        (1, "a", "x", 10, 15), (1, "b", "x", 20, None), (1, "late", "x", 15, 20),
        (2, "c", "x", 10, 20), (2, "later", "x", 40, None),
    ]  # fmt: skip
    counts = apply(acid, Change(1, "late", 15), Change(2, "x", 30), Change(3, "y", 5))
    assert (counts.num_affected_rows, counts.num_duplicate_records) == (0, 3)
    current = acid.sql("SELECT id FROM t WHERE __END_AT IS NULL").collect()
    assert {row.id for row in current} == {1, 2}


def test_untracked_columns_change_in_place_and_a_late_record_still_finds_the_old_values(acid):
    acid.sql(TABLE)
    apply(acid, Change(1, "a", 10, p="p10"), Change(1, "a", 20, p="p20"))
    assert versions(acid) == [(1, "a", "p20", 10, None)]
    counts = apply(acid, Change(1, "a", 30, p="p30"))
    assert (counts.num_inserted_rows, counts.num_updated_rows) == (0, 1)
    apply(acid, Change(1, "b", 25))
    assert versions(acid) == [
        (1, "a", "p20", 10, 25), (1, "a", "p30", 30, None), (1, "b", "x", 25, 30),
    ]  # fmt: skip


def test_columns_may_have_the_names_that_the_query_uses_inside(acid):
    names = "src, rec, val, old, s, d, n, r, t, x, k0, v0, prev, run, until, copies, deleted, at"
    columns = [f"`{name}`" for name in names.split(", ")]
    acid.sql(
        f"CREATE TABLE t (id INT, {', '.join(f'{one} INT' for one in columns)}, "
        "__START_AT INT, __END_AT INT)"
    )
    for ts in (1, 3, 2):
        values = ", ".join(f"{ts * 100 + i} AS {one}" for i, one in enumerate(columns))
        acid.sql(
            f"AUTO CDC INTO t FROM (SELECT 1 AS id, {values}, {ts} AS ts) KEYS (id) "
            "SEQUENCE BY ts COLUMNS * EXCEPT (ts) STORED AS SCD TYPE 2"
        )
    found = {tuple(row) for row in acid.sql("SELECT * FROM t").collect()}
    assert found == {
        (1, *(ts * 100 + i for i in range(len(columns))), ts, end)
        for ts, end in ((1, 2), (2, 3), (3, None))
    }


def test_versions_that_were_loaded_otherwise_are_continued(acid):
    """Their ends tell deletes. A row without a start is older than any record."""
    acid.sql(TABLE)
    acid.sql(
        "INSERT INTO t VALUES (1, 'a', 'x', NULL, 10), (1, 'b', 'x', 10, 20), (2, 'c', 'x', 5, 9), "
        "(3, 'd', 'x', NULL, NULL)"
    )
    apply(acid, Change(1, "new", 30), Change(2, "late", 7), Change(2, "at the end", 9),
          Change(3, "e", 1))  # fmt: skip
    assert versions(acid) == sorted([
        (1, "a", "x", None, 10), (1, "b", "x", 10, 20), (1, "new", "x", 30, None),
        (2, "at the end", "x", 9, None), (2, "c", "x", 5, 7), (2, "late", "x", 7, 9),
        (3, "d", "x", None, 1), (3, "e", "x", 1, None),
    ], key=str)  # fmt: skip
    apply(acid, Change(1, None, 12, op="d"), Change(1, "again", 11))
    apply(acid, Change(1, "between", 15))
    assert [row for row in versions(acid) if row[0] == 1] == sorted([
        (1, "a", "x", None, 10), (1, "b", "x", 10, 11), (1, "again", "x", 11, 12),
        (1, "between", "x", 15, 20), (1, "new", "x", 30, None),
    ], key=str)  # fmt: skip


def test_columns_that_no_record_sets_belong_to_the_version(acid):
    acid.sql(TABLE.replace("p STRING,", "p STRING, kept STRING DEFAULT 'new',"))
    apply(acid, Change(1, "a", 10))
    acid.sql("UPDATE t SET kept = 'mine'")
    apply(acid, Change(1, "b", 20))
    found = acid.sql("SELECT v, kept, __END_AT AS b FROM t").collect()
    assert {tuple(row) for row in found} == {("a", "mine", 20), ("b", "new", None)}
    apply(acid, Change(1, "a", 5))  # now it begins with another record
    found = acid.sql("SELECT v, kept, __START_AT AS a, __END_AT AS b FROM t").collect()
    assert {tuple(row) for row in found} == {("a", "mine", 5, 20), ("b", "new", 20, None)}


@pytest.mark.parametrize(
    ("columns", "sequence"),
    [
        ("id INT, v STRING, p STRING", "ts"),
        ("id INT, v STRING, p STRING, __START_AT INT", "ts"),
        ("id INT, v STRING, p STRING, __START_AT STRING, __END_AT STRING", "ts"),
        ("id INT, v STRING, p STRING, __START_AT INT, __END_AT INT", "CAST(ts AS DECIMAL(9, 2))"),
        # A wall clock does not tell the hours apart between which the clocks go back.
        ("id INT, v STRING, p STRING, __START_AT TIMESTAMP, __END_AT TIMESTAMP",
         "timestamp_seconds(ts)"),
        ("id INT, v STRING, p STRING, __START_AT STRUCT<a: INT>, __END_AT STRUCT<a: INT>",
         "struct(ts, batch)"),
    ],
)  # fmt: skip
def test_the_target_needs_columns_that_keep_the_order_values(acid, columns, sequence):
    acid.sql(f"CREATE TABLE t ({columns})")
    put(acid, "s", [Change(1, "a", 1)])
    with pytest.raises(SqlError, match="needs the columns __START_AT ") as caught:
        acid.sql(CDC.replace("BY ts", f"BY {sequence}"))
    assert caught.value.condition == "AUTOCDC_TARGET_COLUMNS"
    assert acid.metastore.tables("default") == ["t"]


def test_an_order_value_that_does_not_fit_the_target_is_an_error(acid):
    acid.sql(TABLE.replace("__START_AT INT", "__START_AT TINYINT"))
    acid.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(ConstraintError):
            apply(acid, Change(1, "a", 300))
    finally:
        acid.spark.conf.unset("spark.sql.ansi.enabled")
    assert versions(acid) == []


def test_times_begin_and_end_versions(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, __START_AT TIMESTAMP, __END_AT TIMESTAMP)")
    text = (
        "AUTO CDC INTO t FROM (SELECT id, v, TIMESTAMP_NTZ '2026-01-01 00:00:00' + "
        "make_dt_interval(ts) AS at FROM s) KEYS (id) SEQUENCE BY at COLUMNS * EXCEPT (at) "
        "STORED AS SCD TYPE 2"
    )
    for changes in ([Change(1, "a", 0)], [Change(1, "b", 2)], [Change(1, "c", 1)]):
        apply(acid, *changes, text=text)
    found = acid.sql("SELECT v, __START_AT AS a, __END_AT AS b FROM t").collect()
    days = {row.v: (row.a.day, row.b and row.b.day) for row in found}
    assert days == {"a": (1, 2), "c": (2, 3), "b": (3, None)}


def test_a_new_column_of_the_target_is_asked_for_in_the_state_table(acid):
    acid.sql(TABLE)
    text = CDC.replace("COLUMNS (id, v, p)", "COLUMNS * EXCEPT (op, ts, batch)")
    apply(acid, Change(1, "a", 10, p="p10"), Change(1, "a", 20, p="p20"), text=text)
    acid.sql("ALTER TABLE t ADD COLUMNS (batch INT)")
    text = text.replace("ts, batch", "ts")
    with pytest.raises(SqlError, match="ALTER TABLE default.t__acidsql_cdc ADD COLUMNS") as caught:
        apply(acid, Change(1, "b", 15, 7), text=text)
    assert caught.value.condition == "AUTOCDC_INVALID_STATE.COLUMNS_DRIFT"
    acid.sql("ALTER TABLE t__acidsql_cdc ADD COLUMNS (batch INT)")
    apply(acid, Change(1, "b", 15, 7), Change(1, "c", 30, 8), Change(1, "c", 31, 9), text=text)
    found = acid.sql("SELECT v, p, batch, __START_AT AS a FROM t ORDER BY a").collect()
    assert [tuple(row) for row in found] == [
        ("a", "p10", None, 10), ("b", "x", 7, 15), ("a", "p20", None, 20), ("c", "x", 8, 30),
        ("c", "x", 9, 31),
    ]  # fmt: skip
    with pytest.raises(SqlError, match="NULL AS `batch`") as caught:
        apply(acid, Change(1, "d", 30, 8))  # its versions would lose the column's values
    assert caught.value.condition == "AUTOCDC_INVALID_STATE.COLUMNS_DRIFT"


def test_what_versions_cannot_have_is_refused(acid):
    acid.sql(TABLE)
    put(acid, "s", [Change(1, "a", 1)])
    for clause in ("IGNORE NULL UPDATES", "APPLY AS TRUNCATE WHEN op = 't'"):
        before = "APPLY AS DELETE" if clause.startswith("IGNORE") else "SEQUENCE"
        with pytest.raises(UnsupportedError, match=f"{clause[:13]}.* with STORED AS SCD TYPE 2"):
            acid.sql(CDC.replace(before, f"{clause} {before}"))
    with pytest.raises(SqlError) as caught:
        acid.sql(CDC.replace("FROM s", "FROM (SELECT *, 1 AS __START_AT FROM s)").replace(
            "(id, v, p)", "(id, v, p, __START_AT)"))  # fmt: skip
    assert caught.value.condition == "AUTOCDC_RESERVED_COLUMN"
    acid.sql(CDC)
    with pytest.raises(SqlError) as caught:
        acid.sql(CDC.partition("STORED")[0])
    assert caught.value.condition == "AUTOCDC_INVALID_STATE.SCD_TYPE_DRIFT"
    acid.sql("INSERT INTO t VALUES (1, 'b', 'x', 1, NULL)")
    with pytest.raises(ConstraintError, match="one __START_AT") as caught:
        apply(acid, Change(1, "c", 2))
    assert caught.value.condition == "AUTOCDC_TARGET_KEY_NOT_UNIQUE"


def test_python_has_the_same_words(acid):
    acid.sql(TABLE)
    cdc = acid.auto_cdc(
        "t", keys="id", sequence_by="ts", column_list=["id", "v", "p"], stored_as_scd_type="2",
        track_history_column_list=["v"],
    )  # fmt: skip
    put(acid, "s", [Change(1, "a", 1), Change(1, "a", 2, p="y"), Change(1, "b", 3)])
    cdc.apply(acid.spark.table("s"))
    assert versions(acid) == [(1, "a", "y", 1, 3), (1, "b", "x", 3, None)]
    with pytest.raises(SettingError, match="not both"):
        acid.auto_cdc("t", track_history_column_list=["v"], track_history_except_column_list=["p"])
