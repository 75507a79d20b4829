"""Which type a column may be changed to."""

from __future__ import annotations

import pytest

from acidsql.acid.values.evolution import can_change, can_widen, is_cast, keeps_bucket
from acidsql.acid.values.types import parse_type

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


NUMBERS = {
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(3,0)", "decimal(10,0)",
    "decimal(19,0)", "decimal(38,2)",
}  # fmt: skip
SHORT = {"varchar(5)", "varchar(9)", "char(5)", "char(9)"}
TO_TEXT = {*NUMBERS, *SHORT, "string", "boolean", "date", "timestamp"}
LOSING = {
    **dict.fromkeys(["string", *SHORT], TO_TEXT),
    "float": NUMBERS - {"float", "double"},
    "double": {*NUMBERS, *SHORT, "string"},
}
SHORTER = {"struct<a:int,b:int>": {"struct<a:int>"}}  # the same struct with fewer fields


@pytest.mark.parametrize("new", TYPES)
def test_alter_table_allows_what_hives_reader_casts(new):
    after = parse_type(new)
    found = {old for old in TYPES if can_change(parse_type(old), after)}
    wider = {old for old in TYPES if can_widen(parse_type(old), after)}
    shorter = SHORTER.get(new, set())
    assert found == wider | shorter | LOSING.get(new, set())
    # Whatever ALTER TABLE allows beyond a widening, or more fields, is cast; these never are.
    assert found - wider - shorter == {old for old in found if is_cast(parse_type(old), after)}


def test_several_changes_in_turn_are_one_cast():
    for old in ("boolean", "date", "timestamp"):
        assert not can_change(parse_type(old), parse_type("double"))
        assert is_cast(parse_type(old), parse_type("double"))
    assert not is_cast(parse_type("binary"), parse_type("string"))
    assert not is_cast(parse_type("struct<a:int>"), parse_type("string"))


def test_digits_before_the_point_count():
    assert not can_widen(parse_type("decimal(10,2)"), parse_type("decimal(10,3)"))
    assert can_widen(parse_type("decimal(10,2)"), parse_type("decimal(11,3)"))
    assert not can_widen(parse_type("decimal(10,2)"), parse_type("decimal(12,1)"))


def test_only_the_length_of_a_bucketing_column_may_change():
    for old in TYPES:
        for new in TYPES:
            before, after = parse_type(old), parse_type(new)
            if can_change(before, after) and keeps_bucket(before, after):
                assert before.kind == after.kind
    assert keeps_bucket(parse_type("varchar(5)"), parse_type("varchar(9)"))
    assert not keeps_bucket(parse_type("int"), parse_type("bigint"))
    assert not keeps_bucket(parse_type("varchar(9)"), parse_type("varchar(5)"))
