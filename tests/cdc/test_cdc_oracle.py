"""Any records in any batches, in any order, again and again: the table is the fold of them.

With a retention, a delete is forgotten some days after it came, and then counts no longer.
``ACIDSQL_CDC_EXAMPLES`` sets the number of examples.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit_cdc import Change, Model, days, deleted, keep_deletes, live, one_way, put, retentions

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = int(os.environ.get("ACIDSQL_CDC_EXAMPLES", "3"))
LAYOUTS = {
    "order in the target": (
        "id INT, v STRING, ts INT, batch INT) PARTITIONED BY (p STRING", "op"),
    "order beside the target": (
        "id INT, v STRING, p STRING) CLUSTERED BY (v) INTO 2 BUCKETS --", "op, ts, batch"),
}  # fmt: skip

# For one key and one order value there is one record: it is a function of both. All records of
# one order value truncate.
records = st.builds(
    lambda key, ts, batch: Change(
        key,
        f"{key} at {ts}.{batch}",
        ts,
        batch,
        p="xyz"[(key + ts) % 3],
        op="t" if (ts, batch) == (3, 0) else "d" if (key * 7 + ts * 3 + batch) % 4 == 0 else "u",
    ),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(0, 1),
)
batches = st.lists(st.lists(records, min_size=1, max_size=12), min_size=2, max_size=3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_table_is_the_fold_of_the_distinct_records(acid_of_all, layout, calendar):
    acid, (columns, left_out) = acid_of_all, LAYOUTS[layout]

    def state() -> dict[int, tuple[int, int]]:
        """Each key's order value, wherever it is kept. The floor has no key."""
        found = acid.sql("SELECT id, sequence FROM t__acidsql_cdc").collect()
        known = {row.id: tuple(row.sequence) for row in found}
        assert len(known) == len(found), "a key came twice"
        if "ts" not in left_out:
            live_rows = acid.sql("SELECT id, ts, batch FROM t").collect()
            assert known.keys().isdisjoint(row.id for row in live_rows)
            known |= {row.id: (row.ts, row.batch) for row in live_rows}
        return known

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES <= 3,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(batches, st.integers(0, 2), st.sampled_from(["minor", "major", None]), retentions, days)
    def run(given_batches, replayed, compaction, retention, pauses):
        acid.sql("DROP TABLE IF EXISTS t")
        acid.sql(f"CREATE TABLE t ({columns})")
        keep_deletes(acid, retention)
        model = Model()
        before: dict[int, tuple[int, int]] = {}
        replay = given_batches[replayed % len(given_batches)]
        for number, batch in enumerate([*given_batches, replay]):
            put(acid, "s", batch)
            calendar.day += pauses[number]
            with one_way(acid, number):
                acid.sql(
                    "AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' "
                    "APPLY AS TRUNCATE WHEN op = 't' "
                    f"SEQUENCE BY struct(ts, batch) COLUMNS * EXCEPT ({left_out})"
                )
            model.day = calendar.day
            model.apply(reversed(batch))
            if retention is not None:
                model.forget(retention)
            assert live(acid) == model.rows
            after = state()
            floor = after.pop(None, None)
            assert (after, floor) == (model.newest, model.floor)
            never_fall = retention is None
            assert not never_fall or all(after.get(key, floor) >= at for key, at in before.items())
            assert deleted(acid) == model.newest.keys() - model.rows.keys()
            before = after
            if number == 0 and compaction:
                acid.compact("t", kind=compaction, wait=True)
                acid.compact("t__acidsql_cdc", kind=compaction, wait=True)

    run()
