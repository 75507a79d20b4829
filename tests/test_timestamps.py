"""A Hive TIMESTAMP is a wall clock: in every time zone, the value that was written is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from wall_clocks import CLOCKS, shown, written

from acidsql.acid import bucket_codec
from acidsql.acid.layout import bucket_name, delta_name
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.orc_reader import read_events
from acidsql.storage.reading.read import read
from acidsql.storage.spark.session.zones import fixed_offset

SCHEMA = RowSchema.from_fields([("id", "int"), ("ts", "timestamp"), ("s", "struct<ts:timestamp>")])
ROOT = Path(__file__).parent
ZONES = [  # the JVM's zone, the session's zone
    ("America/New_York", "Asia/Tokyo"),  # daylight saving: Python tasks read
    ("GMT-09:30", "America/New_York"),  # a fixed offset: Spark's own reader reads
]
ROWS = [[number, clock, clock] for number, clock in enumerate(CLOCKS)]
WRITTEN = [
    *ROWS,
    *([number + 100, clock, clock] for number, clock, _ in ROWS),
    [200, "2021-06-01 12:00:00", "2021-01-01 12:00:00"],
]


@pytest.fixture(scope="module")
def clocks(tmp_path_factory):
    """A table with each clock time, written without Spark."""
    location = tmp_path_factory.mktemp("clocks")
    stamps = pa.array(np.array([c.replace(" ", "T") for c in CLOCKS], "datetime64[us]"))
    inner = pa.StructArray.from_arrays([stamps], names=["ts"])
    ids = pa.array(range(len(CLOCKS)), pa.int32())
    batch = pa.record_batch([ids, stamps, inner], ["id", "ts", "s"])
    directory = location / delta_name(1, 0)
    directory.mkdir()
    file = filesystem_for(str(location)).open_output(str(directory / bucket_name(0)))
    writer = EventFileWriter(file, SCHEMA)
    writer.write_inserts(batch, 1, bucket_codec.encode(0, 0), 0)
    writer.close()
    return location


def test_a_servers_zone_has_an_offset_only_if_it_is_always_the_same():
    hours = {
        "UTC": 0, "Z": 0, "Etc/UTC": 0, "GMT": 0, "GMT-09:30": -9.5, "UTC+01:00": 1, "+05:30": 5.5,
        "-00:00:36": -0.01, "Europe/Berlin": None, "Asia/Kolkata": None, "Etc/GMT+5": None,
        "GMT+1": None, "UTC\n": None, "": None,
    }  # fmt: skip
    assert {zone: fixed_offset(zone) for zone in hours} == {
        zone: None if offset is None else offset * 3_600_000_000 for zone, offset in hours.items()
    }


def test_a_file_outside_the_range_of_nanoseconds_is_read_exactly(clocks):
    path = str(clocks / delta_name(1, 0) / bucket_name(0))
    (batch,) = read_events(path, SCHEMA)
    for column in (batch.column("ts"), batch.column("s").field("ts")):
        found = column.cast(pa.int64()).to_numpy().astype("datetime64[us]")
        assert found.tolist() == np.array([c.replace(" ", "T") for c in CLOCKS], "M8[us]").tolist()


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_sessions_zone_changes_nothing(spark, clocks, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert shown(read(spark, str(clocks))) == ROWS
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
def test_what_a_session_in_another_zone_writes_is_read_back(spark, acid):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert written(acid) == WRITTEN
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.parametrize(("jvm_zone", "session_zone"), ZONES)
def test_the_jvms_zone_changes_nothing(java_home, clocks, tmp_path, jvm_zone, session_zone):
    script = [sys.executable, str(ROOT / "wall_clocks.py")]
    arguments = [str(clocks), str(tmp_path / "warehouse"), jvm_zone, session_zone]
    run = subprocess.run(
        [*script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT.parent), str(ROOT)])},
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, run.stdout[-2000:] + run.stderr[-4000:]
    found = json.loads(lines[0].removeprefix("RESULT "))
    assert found["read"] == ROWS
    assert found["written"] == WRITTEN
