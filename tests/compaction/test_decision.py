"""When a table is compacted automatically: Hive's thresholds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.acid.table import Column, Table, TableName
from acidsql.compaction.decision import (
    DirectorySizes,
    decide,
    has_failed_too_often,
    is_left_alone,
    pool_of,
    thresholds_of,
)
from acidsql.errors import SettingError
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState, CompactionType
from acidsql.settings import Settings

DEFAULT = Settings()
MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
HOUR = 3_600_000
TABLE = Table(TableName("d", "t"), "/t", (Column("v", "int"),), ())


@pytest.mark.parametrize(
    ("sizes", "expected", "why"),
    [
        (DirectorySizes(0, 0, 0), None, "0 deltas, no base; below the thresholds"),
        (
            DirectorySizes(1000, 4, 3),
            None,
            "3 deltas, 0.4% of the base's bytes; below the thresholds",
        ),
        (DirectorySizes(1000, 100, 10), None, "below"),
        (DirectorySizes(1000, 101, 1), MAJOR, "10.1% of the base's bytes, more than 10.0%"),
        (DirectorySizes(10_000, 4, 11), MINOR, "more than 10 deltas"),
        (DirectorySizes(0, 500, 10), None, "below"),
        (DirectorySizes(0, 500, 11), MAJOR, "no base"),
        (DirectorySizes(1000, 0, 0, has_obsolete_bases=True), MAJOR, "another has replaced"),
        (DirectorySizes(1000, 4, 3, aborted_txns=1000), None, "below"),
        (DirectorySizes(1000, 4, 3, aborted_txns=1001), MAJOR, "1001 aborted transactions"),
        (DirectorySizes(1000, 4, 3, aborted_txns=1, oldest_abort_ms=12 * HOUR), None, "below"),
        (DirectorySizes(1000, 4, 3, aborted_txns=1, oldest_abort_ms=13 * HOUR), MINOR, "13 h ago"),
    ],
)
def test_hives_rules(sizes, expected, why):
    found = decide(sizes, DEFAULT)
    assert found.type is expected
    assert why in found.why


def test_quiet_hours_are_used_where_somebody_wants_that():
    wanted = DEFAULT.with_("acidsql.compactor.quiet.time", "2h")
    quiet = DirectorySizes(1000, 4, 1, quiet_ms=2 * HOUR)
    assert decide(quiet, wanted).type is MAJOR
    assert decide(quiet, DEFAULT).type is None
    assert decide(replace(quiet, quiet_ms=HOUR), wanted).type is None
    assert decide(replace(quiet, quiet_ms=None), wanted).type is None
    assert decide(replace(quiet, deltas=0, delta_bytes=0), wanted).type is None
    # One delta without a base needs no compaction, just as a base alone.
    assert decide(replace(quiet, base_bytes=0), wanted).type is None


def test_a_table_may_have_thresholds_of_its_own():
    own = {"compactorthreshold.hive.compactor.delta.num.threshold": "2"}
    settings = thresholds_of(replace(TABLE, properties=own), DEFAULT)
    assert decide(DirectorySizes(1000, 4, 3), settings).type is MINOR
    with pytest.raises(SettingError):
        thresholds_of(replace(TABLE, properties={"compactorthreshold.nonsense": "2"}), DEFAULT)


@pytest.mark.parametrize(
    ("properties", "left"),
    [
        ({"NO_AUTO_COMPACTION": "true"}, True),
        ({"no_auto_compaction": "TRUE"}, True),
        ({"no_auto_compaction": "false"}, False),
        ({}, False),
    ],
)
def test_a_table_may_be_left_alone(properties, left):
    assert is_left_alone(replace(TABLE, properties=properties)) is left


def test_a_request_s_pool_comes_before_the_table_s():
    table = replace(TABLE, properties={"hive.compactor.worker.pool": "Nightly"})
    assert pool_of(table) == "nightly"
    assert pool_of(table, "other") == "other"
    assert pool_of(TABLE) is None


def entries(*states, enqueued_ms=0):
    return [
        CompactionInfo(number, TABLE.name, None, MAJOR, state, enqueued_ms=enqueued_ms)
        for number, state in enumerate(states)
    ]


FAILED, DONE = CompactionState.FAILED, CompactionState.SUCCEEDED
REFUSED = CompactionState.REFUSED


@pytest.mark.parametrize(
    ("newest_first", "too_often"),
    [
        ([], False),
        ([FAILED], False),
        ([FAILED, FAILED], True),
        ([FAILED, REFUSED, FAILED], True),
        ([FAILED, DONE, FAILED], False),
        ([DONE, FAILED, FAILED], False),
        ([CompactionState.READY_FOR_CLEANING, FAILED, FAILED], False),
    ],
)
def test_who_failed_twice_in_a_row_is_left_alone(newest_first, too_often):
    assert has_failed_too_often(entries(*newest_first), 0, DEFAULT) is too_often


def test_after_a_week_it_is_tried_again():
    failed = entries(FAILED, FAILED)
    assert not has_failed_too_often(failed, 7 * 24 * HOUR, DEFAULT)
    assert has_failed_too_often(failed, 7 * 24 * HOUR - 1, DEFAULT)
