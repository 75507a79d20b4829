"""Which type a column may be changed to."""

from __future__ import annotations

import pytest

from acidsql.acid.evolution import can_widen, keeps_bucket
from acidsql.acid.types import parse_type

TYPES = """
    boolean tinyint smallint int bigint float double decimal(3,0) decimal(10,0) decimal(19,0)
    decimal(38,2) string varchar(5) varchar(9) char(5) char(9) binary date timestamp array<int>
    array<bigint> struct<a:int> struct<a:int,b:int> map<int,int>
""".split()  # noqa: SIM905 - as a list it is a page long
WIDER = {
    "tinyint": "smallint int bigint double decimal(3,0) decimal(10,0) decimal(19,0) decimal(38,2)",
    "smallint": "int bigint double decimal(10,0) decimal(19,0) decimal(38,2)",
    "int": "bigint double decimal(10,0) decimal(19,0) decimal(38,2)",
    "bigint": "decimal(19,0) decimal(38,2)",
    "float": "double",
    "decimal(3,0)": "decimal(10,0) decimal(19,0) decimal(38,2)",
    "decimal(10,0)": "decimal(19,0) decimal(38,2)",
    "decimal(19,0)": "decimal(38,2)",
    "varchar(5)": "varchar(9) string",
    "varchar(9)": "string",
    "char(5)": "char(9)",
}


@pytest.mark.parametrize("old", TYPES)
def test_a_type_becomes_only_what_loses_nothing(old):
    found = {new for new in TYPES if can_widen(parse_type(old), parse_type(new))}
    assert found == {old, *WIDER.get(old, "").split()}


def test_digits_before_the_point_count():
    assert not can_widen(parse_type("decimal(10,2)"), parse_type("decimal(10,3)"))
    assert can_widen(parse_type("decimal(10,2)"), parse_type("decimal(11,3)"))
    assert not can_widen(parse_type("decimal(10,2)"), parse_type("decimal(12,1)"))


def test_only_the_length_of_a_bucketing_column_may_change():
    for old in TYPES:
        for new in TYPES:
            before, after = parse_type(old), parse_type(new)
            if can_widen(before, after) and keeps_bucket(before, after):
                assert before.kind == after.kind
    assert keeps_bucket(parse_type("varchar(5)"), parse_type("varchar(9)"))
    assert not keeps_bucket(parse_type("int"), parse_type("bigint"))
