"""Spark's own calls give the same rows and errors for an ACID table as for a plain one."""

from __future__ import annotations

from itertools import count

import pytest
from programs import PROGRAMS

NUMBERS = count()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_program_gives_the_same_result(acid, spark, program):
    table = f"default.programs_{next(NUMBERS)}"
    expected = program(spark, table, "parquet")
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    acid.extend()
    try:
        assert program(spark, table, "acidsql") == expected
    finally:
        acid.sql(f"DROP TABLE IF EXISTS {table}")
