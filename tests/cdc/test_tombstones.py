"""``acidsql.cdc.tombstone.retention``: a target may forget deletes that are old.

``test_cdc_oracle`` compares any records with a model that forgets.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from kit_cdc import COLUMNS, Change, deleted, live, put
from over_hive import beside

from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import LockTimeoutError
from acidsql.plan.cdc.state import tombstone_retention
from acidsql.statements.cdc import tombstones
from acidsql.statements.cdc.tombstones import Tombstones

CDC = "AUTO CDC INTO t FROM s KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY ts "
ONE_ROW_A_KEY = f"{CDC}COLUMNS (id, v, p)"
VERSIONS = f"{CDC}COLUMNS (id, v, p) STORED AS SCD TYPE 2 TRACK HISTORY ON (v)"
RETENTION = "'acidsql.cdc.tombstone.retention' = '10d'"

needs_state_tables = pytest.mark.needs("keeps_state_tables")


def apply(acid, *changes, text=ONE_ROW_A_KEY):
    put(acid, "s", changes)
    acid.sql(text)
    return str(acid.last)


def deletes(*keys):
    return [Change(key, None, 100, op="d") for key in keys]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.spark
@needs_state_tables
def test_a_delete_is_forgotten_when_it_is_old_and_then_a_late_record_brings_the_row_back(
    acid, calendar
):
    acid.sql(f"CREATE TABLE t (id INT, v STRING, p STRING) TBLPROPERTIES ({RETENTION})")
    truncating = ONE_ROW_A_KEY.replace("SEQUENCE", "APPLY AS TRUNCATE WHEN op = 't' SEQUENCE")
    apply(acid, Change(0, None, 2, op="t"), Change(1, "a", 5), *deletes(2, 3), text=truncating)
    assert "forgets deletes after: 10d" in acid.sql(f"EXPLAIN {ONE_ROW_A_KEY}").collect()[0].plan
    calendar.day = 10  # not older than ten days yet
    apply(acid, Change(3, None, 300, op="d"), *deletes(4))
    assert deleted(acid) == {2, 3, 4}
    calendar.day = 11
    said = apply(acid, Change(2, "too late for now", 4))
    assert "1 stale" in said and "1 old delete forgotten" in said
    assert live(acid).keys() == {1} and deleted(acid) == {3, 4}
    # Neither the order values of live rows nor the floor are forgotten.
    calendar.day = 12
    apply(acid, Change(1, "late", 4), Change(2, "back", 4), Change(5, "below the floor", 1))
    assert {key: v for key, (v, _) in live(acid).items()} == {1: "a", 2: "back"}


@pytest.mark.spark
@needs_state_tables
def test_what_cannot_be_forgotten_now_stays_until_the_next_time(acid, calendar, caplog):
    """The keys have odd names, and the session has another time zone and no ANSI mode."""
    acid.sql(
        "CREATE TABLE t (`sequence` INT, `Straße.nr``` STRING, v STRING) PARTITIONED BY (at INT) "
        f"TBLPROPERTIES ({RETENTION})"
    )
    text = (
        "AUTO CDC INTO t FROM (SELECT id AS sequence, p AS `Straße.nr```, v, 1 AS at, ts, op "
        "FROM s) KEYS (`straße.nr```, sequence) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY ts "
        "COLUMNS (v, at)"
    )
    conf = acid.spark.conf
    zone = conf.get("spark.sql.session.timeZone")
    conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    conf.set("spark.sql.ansi.enabled", "false")
    try:
        apply(acid, *deletes(1, 2), text=text)
        calendar.day = 11
        acid.sql("BEGIN")
        assert "forgotten" not in apply(acid, *deletes(3), text=text)  # it is not committed yet
        acid.sql("COMMIT")
        with beside(acid, compactor="off") as other, caplog.at_level(logging.WARNING):
            other.sql("BEGIN")
            other.sql("LOCK TABLE t__acidsql_cdc EXCLUSIVE")
            target = acid.metastore.find(TableName("default", "t"))
            said = acid._runner.auto_cdc.tombstones.forget(target)
            other.sql("ROLLBACK")
        assert "old deletes could not be forgotten" in said
        assert "Old deletes of default.t could not be forgotten" in caplog.text
        assert "2 old deletes forgotten" in apply(acid, *deletes(4), text=text)
        found = acid.sql("SELECT sequence FROM t__acidsql_cdc").collect()
        assert {row.sequence for row in found} == {3, 4}
    finally:
        conf.set("spark.sql.session.timeZone", zone)
        conf.unset("spark.sql.ansi.enabled")


@pytest.mark.spark
@needs_state_tables
def test_versions_keep_their_ends_and_the_records_that_a_late_one_may_part(acid, calendar):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, p STRING, __START_AT INT, __END_AT INT) "
        f"TBLPROPERTIES ({RETENTION})"
    )

    def versions():
        found = acid.sql("SELECT id, v, p, __START_AT AS a, __END_AT AS b FROM t").collect()
        return sorted(tuple(row) for row in found)

    apply(
        acid, Change(1, "a", 10, p="x"), Change(1, "a", 20, p="y"), Change(1, None, 30, op="d"),
        Change(2, None, 30, op="d"), text=VERSIONS,
    )  # fmt: skip
    before = [(1, "a", "y", 10, 30)]
    assert versions() == before
    calendar.day = 11
    assert "2 old deletes forgotten" in apply(acid, text=VERSIONS)
    assert versions() == before and deleted(acid) == set()
    # The version of key 1 is parted as ever, and still ends. Nothing tells the delete of key 2.
    apply(acid, Change(1, "b", 15), Change(2, "late", 20), text=VERSIONS)
    assert versions() == [
        (1, "a", "x", 10, 15), (1, "a", "y", 20, 30), (1, "b", "x", 15, 20),
        (2, "late", "x", 20, None),
    ]  # fmt: skip


@pytest.mark.spark
@needs_state_tables
def test_the_first_batch_of_a_stream_forgets_after_its_commit_and_the_next_ones_do_not(
    acid, calendar
):
    acid.sql(f"CREATE TABLE t (id INT, v STRING, p STRING) TBLPROPERTIES ({RETENTION})")
    apply(acid, *deletes(1))
    calendar.day = 11
    cdc = acid.auto_cdc(
        "t", keys="id", sequence_by="ts", apply_as_deletes="op = 'd'", column_list=["id", "v", "p"]
    )
    rows = acid.spark.createDataFrame([one.row for one in deletes(2)], COLUMNS)

    def batch(number):
        return str(cdc.apply(rows, txn_app_id="load", txn_version=number))

    assert "default.t: 1 old delete forgotten" in batch(1) and deleted(acid) == {2}
    calendar.day = 22
    assert "skipped" in batch(1)
    batch(2)  # not an hour later
    assert deleted(acid) == {2}


# ── how often ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("retention", "pause_s"), [("1h", 3600), ("100h", 36_000)])
def test_a_stream_forgets_at_its_first_batch_and_then_once_in_a_while(
    monkeypatch, retention, pause_s
):
    clock, deletes_run = SimpleNamespace(now=5.0), []
    monkeypatch.setattr(tombstones.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(Tombstones, "_run_delete", lambda _, text: deletes_run.append(text) or 3)
    known, last = tombstones_of({"t__acidsql_cdc": STATE}), {}
    target = table("t", {"Acidsql.cdc.Tombstone.retention": retention})
    for now, runs in ((5, 1), (6, 1), (5 + pause_s - 1, 1), (5 + pause_s, 2), (9 + pause_s, 2)):
        clock.now = float(now)
        known.forget(target, last)
        assert len(deletes_run) == runs
    assert known.forget(target) == "3 old deletes forgotten"  # a statement does so each time
    assert known.forget(table("u", target.properties), last) is None  # it has no state table
    assert known.forget(table("v", {}), last) is None
    assert len(deletes_run) == 3


def test_a_stream_tries_again_after_a_failure_and_sooner_if_the_retention_was_shortened(
    monkeypatch,
):
    clock, tries = SimpleNamespace(now=5.0), []

    def locked(_, text):
        tries.append(text)
        if len(tries) == 1:
            raise LockTimeoutError("another applier has locked it")
        return 0

    monkeypatch.setattr(tombstones.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(Tombstones, "_run_delete", locked)
    known, last = tombstones_of({"t__acidsql_cdc": STATE}), {}

    def batch(retention="300h"):
        target = table("t", {"acidsql.cdc.tombstone.retention": retention})
        return known.forget(target, last)

    assert "another applier has locked it" in batch()
    assert batch() is None and len(tries) == 2
    clock.now += 3600.0  # a tenth of 300 hours is more
    assert batch() is None and len(tries) == 2
    assert batch("10h") is None and len(tries) == 3


def test_a_retention_in_small_letters_counts_before_one_in_other_letters():
    name = "acidsql.cdc.tombstone.retention"
    assert tombstone_retention({name.upper(): "1h"}) == 3_600_000
    assert tombstone_retention({name.upper(): "1h", name: "2h"}) == 7_200_000


def test_whatever_goes_wrong_the_records_stay_applied(monkeypatch):
    target = table("t", {"acidsql.cdc.tombstone.retention": "some time"})  # others have set it
    assert "cannot be 'some time'" in tombstones_of({}).forget(target)
    target = table("t", {"acidsql.cdc.tombstone.retention": "9" * 30 + "d"})
    texts = []
    monkeypatch.setattr(Tombstones, "_run_delete", lambda _, text: texts.append(text) or 0)
    assert tombstones_of({"t__acidsql_cdc": STATE}).forget(target) is None
    assert "< TIMESTAMP_NTZ '1970-01-01 00:00:00'" in texts[0]
    no_state = table("t__acidsql_cdc", STATE.properties)  # a column was dropped
    assert tombstones_of({"t__acidsql_cdc": no_state}).forget(target) is None
    assert len(texts) == 1


STATE = Table(
    TableName("default", "t__acidsql_cdc"), "/t",
    (Column("id", "int"), Column("sequence", "int"), Column("deleted", "boolean"),
     Column("at", "timestamp")),
    properties={"acidsql.cdc.order": ""},
)  # fmt: skip


def table(name, properties):
    return Table(TableName("default", name), "/", (Column("id", "int"),), properties=properties)


def tombstones_of(tables: dict[str, Table]) -> Tombstones:
    """They look tables up here, and have nothing to run a statement with."""
    nothing: Any = None
    context: Any = SimpleNamespace(
        metastore=SimpleNamespace(find=lambda name: tables.get(name.name))
    )
    return Tombstones(context, nothing)
