"""A stream's driver is killed again and again, at random moments. After each kill the table is what
the records of some files make of it, and after the last one, those of all files.

``ACIDSQL_KILLS=50`` says how often. The drivers live ten seconds on average if the stream appends,
and 25 if AUTO CDC applies changes. With ``ACIDSQL_OVER_HIVE=4``, the table is in a Hive Metastore.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from over_hive import OVER_HIVE

import acidsql

KILLS = int(os.environ.get("ACIDSQL_KILLS", "0"))
pytestmark = [
    pytest.mark.spark, pytest.mark.slow,
    pytest.mark.skipif(not KILLS, reason="ACIDSQL_KILLS is not set"),
]  # fmt: skip
ROOT = Path(__file__).parents[2]
ROWS = 20  # of a file
# How many seconds a driver lives, at least and at most. The first batch of AUTO CDC takes longer.
LIVES = {"append": (3, 17), "changes": (10, 40)}


class Source:
    """A directory that gets a file every half second. A record's number is its place in all."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.place, self.records, self._random = place, [], random.Random(1)

    def grow(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._add_file()
            time.sleep(0.5)

    def _add_file(self) -> None:
        number = len(self.records)
        keys = self._random.sample(range(60), ROWS)
        records = [{"id": key, "number": number + at} for at, key in enumerate(keys)]
        hidden = self.place / f".{number:09d}"
        hidden.write_text("\n".join(map(json.dumps, records)))
        hidden.rename(self.place / f"{number:09d}.json")
        self.records += records


class Driver:
    """The process with the stream."""

    def __init__(self, *told: Any) -> None:
        self._told, self._log = told, Path(told[0]) / "log"
        self.start()

    def start(self) -> None:
        program = Path(__file__).with_name("killed_driver.py")
        path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, program, *self._told],
                env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill it with its JVM. It must not have ended by itself."""
        assert self._process.poll() is None, self._log.read_text()[-3000:]
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.mark.parametrize("kind", LIVES)
def test_a_killed_stream_goes_on_and_no_record_is_lost_or_doubled(spark, tmp_path, kind, request):
    source, begin, moments = Source(tmp_path / "source"), time.monotonic(), random.Random(KILLS)
    option, place = "warehouse", tmp_path / "warehouse"
    if OVER_HIVE:
        option, place = "metastore", request.getfixturevalue("hive_metastore").url
    with acidsql.connect(spark, **{option: str(place)}, compactor="off") as acid:
        acid.sql("CREATE TABLE t (id BIGINT, number BIGINT)")
        driver, seen, lives_with_news = Driver(tmp_path, kind, f"{option}={place}"), 0, 0
        for _ in range(KILLS):
            source.grow(moments.uniform(*LIVES[kind]))
            driver.kill()
            before, seen = seen, checked(acid, source, kind)
            assert seen >= before
            lives_with_news += seen > before
            driver.start()
        took = time.monotonic() - begin
        while checked(acid, source, kind) < len(source.records):
            time.sleep(1)
        driver.kill()
        (entry,) = acid.streams().collect()
        acid.sql("DROP TABLE t")
    told = f"{KILLS} kills in {took:.0f} s, {lives_with_news} after news, {entry.txnVersion + 1}"
    print(f"{kind}: {told} batches, {len(source.records)} records, all were equal")
    assert lives_with_news > KILLS // 10


def checked(acid, source: Source, kind: str) -> int:
    """How many records the table has. Those of whole files, in their order, must make it."""
    found = sorted(tuple(row) for row in acid.sql("SELECT number, id FROM t").collect())
    count = found[-1][0] + 1 if found else 0
    assert count % ROWS == 0
    records = [(one["number"], one["id"]) for one in source.records[:count]]
    if kind == "changes":
        newest = {key: number for number, key in records}
        records = [(number, key) for number, key in records if newest[key] == number]
    assert found == records
    return count
