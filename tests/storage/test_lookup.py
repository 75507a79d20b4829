"""The SQL by which Spark looks numbers up by other numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.storage.reading.lookup import Lookup
from acidsql.storage.spark.local_rows import local_rows

KEYS = st.sets(st.integers(1, (1 << 40) - 1), min_size=1, max_size=600)


@given(KEYS)
def test_there_is_a_place_for_every_key(keys):
    table = Lookup.of(keys)
    assert table is None or sorted(key for key in table.keys if key >= 0) == sorted(keys)


@pytest.mark.parametrize("count", [1, 2, 3, 80, 500, 1000])
def test_files_of_a_table_have_sizes_that_differ_enough(count):
    """In whatever way they are similar: they grow by one, by pages, or at random."""
    for step in (1, 7, 64, 4096):
        assert Lookup.of(range(100_000, 100_000 + count * step, step)) is not None
    assert Lookup.of({(n * 2654435761) % 300_000_007 + 1 for n in range(count)}) is not None


def test_numbers_that_leave_no_room_for_a_multiple_have_no_table():
    assert Lookup.of([5, 1 << 39]) is not None
    assert Lookup.of([5, 1 << 40]) is None


@pytest.mark.parametrize("count", [1, 3, 100, 500])
def test_spark_finds_the_number_of_each_key_and_none_of_others(spark, count):
    numbers = {n * 48_271 % (1 << 31): n % 7 for n in range(1, count + 1)}
    table = Lookup.of(numbers)
    others = [0, 1, 2, (1 << 40) + 1, *(key + 1 for key in numbers if key + 1 not in numbers)]
    asked = local_rows(spark, pa.table({"k": [*numbers, *others]}))
    found = asked.selectExpr("k", f"{table.number(numbers, 'k', '-1L')} AS n").collect()
    assert dict(map(tuple, found)) == {**numbers, **dict.fromkeys(others, -1)}
