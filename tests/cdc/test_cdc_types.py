"""AUTO CDC and types: a key, a value or an order value that its column stores as another one."""

from __future__ import annotations

import pytest
from kit_cdc import deleted

from acidsql.acid.table import Column
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import ConstraintError, SqlError
from acidsql.plan.cdc.order import keeps_order

spark = pytest.mark.spark
ours = pytest.mark.needs("keeps_state_tables")


@pytest.mark.parametrize(
    ("given", "column", "keeps"),
    [
        ("int", "smallint", True),  # a number out of range is an error
        ("tinyint", "decimal(9,2)", True),
        ("decimal(9,0)", "bigint", True),
        ("decimal(9,1)", "decimal(12,2)", True),
        ("decimal(9,3)", "decimal(12,2)", False),
        ("decimal(9,1)", "bigint", False),
        ("bigint", "double", False),
        ("double", "bigint", False),
        ("float", "double", True),
        ("double", "float", False),
        ("int", "string", False),
        ("string", "string", True),
        ("string", "char(3)", False),
        ("date", "timestamp", True),
        ("timestamp", "date", False),
        ("array<int>", "array<int>", False),
    ],
)
def test_a_column_keeps_the_order_of_values_that_it_tells_apart(given, column, keeps):
    assert keeps_order(parse_type(given), Column("c", column)) == keeps


def test_a_wall_clock_does_not_keep_the_order_of_instants():
    assert not keeps_order(HiveType("timestamp_ltz"), Column("c", "timestamp"))


def apply(acid, source: str, *, keys: str = "id", order: str = "ts", rest: str = ""):
    (counts,) = acid.sql(
        f"AUTO CDC INTO t FROM (SELECT {source}) KEYS ({keys}) "
        f"APPLY AS DELETE WHEN op = 'd' SEQUENCE BY {order} COLUMNS * EXCEPT (op{rest})"
    ).collect()
    return counts


def rows(acid) -> set[tuple]:
    return {tuple(row) for row in acid.sql("SELECT * FROM t").collect()}


@spark
@ours
def test_records_of_one_day_are_told_apart_though_the_target_keeps_the_day_only(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, ts DATE)")
    at = "TIMESTAMP_NTZ '2026-01-01 {}:00:00'"
    apply(acid, f"1 AS id, 'at ten' AS v, {at.format(10)} AS ts, 'u' AS op")
    apply(acid, f"1 AS id, 'at eleven' AS v, {at.format(11)} AS ts, 'u' AS op")
    assert apply(acid, f"1 AS id, 'x' AS v, {at.format(9)} AS ts, 'u' AS op").num_stale_records == 1
    assert [row.v for row in acid.sql("SELECT v FROM t").collect()] == ["at eleven"]


@spark
@ours
@pytest.mark.parametrize(
    ("kind", "value"),
    [("STRING", "''"), ("CHAR(30)", "''"), ("VARCHAR(30)", "'__HIVE_DEFAULT_PARTITION__'")],
)
def test_a_text_that_a_partition_reads_as_null_is_no_key(acid, kind, value):
    acid.sql(f"CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p {kind})")
    source = f"1 AS id, 'a' AS v, {value} AS p, 'u' AS op, 1 AS ts"
    with pytest.raises(ConstraintError) as caught:
        apply(acid, source, keys="id, p", rest=", ts")
    assert caught.value.condition == "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY"
    if kind == "STRING":  # a text does not go into another type without a change of its blanks
        with pytest.raises(ConstraintError) as caught:
            apply(acid, source, order="p", rest=", ts")
        assert caught.value.condition == "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE"
    assert rows(acid) == set()


@spark
@ours
def test_texts_compare_as_the_columns_do_whatever_collation_the_source_has(acid):
    acid.sql("CREATE TABLE t (id STRING, v STRING)")
    source = (
        "id COLLATE UTF8_LCASE AS id, v COLLATE UTF8_LCASE AS v, 'u' AS op, ts FROM VALUES "
        "('A', 'x', 1), ('a', 'y', 2), ('b', 'z', 1), ('b', '{}', 1) AS s (id, v, ts)"
    )
    with pytest.raises(ConstraintError) as caught:
        apply(acid, source.format("Z"), rest=", ts")
    assert caught.value.condition == "AUTOCDC_MICROBATCH_VALIDATION.CONFLICTING_RECORDS"
    apply(acid, source.format("z"), rest=", ts")
    assert rows(acid) == {("A", "x"), ("a", "y"), ("b", "z")}


@spark
@ours
def test_an_order_value_with_a_collation_is_refused_by_name(acid):
    """A column of a table cannot keep its order: 'a' and 'B' compare there byte by byte."""
    acid.sql("CREATE TABLE t (id INT, v STRING, ts STRING)")
    for order in ("ts COLLATE UTF8_LCASE", "struct(1, ts COLLATE UNICODE)", "other"):
        with pytest.raises(SqlError, match="COLLATE UTF8_BINARY") as caught:
            apply(acid, "1 AS id, 'a' AS v, 'x' AS ts, 'u' AS op, 'x' COLLATE UNICODE AS other",
                  order=order, rest=", other")  # fmt: skip
        assert caught.value.condition.endswith("NON_ORDERABLE_SEQUENCE")
    apply(acid, "1 AS id, 'a' AS v, 'x' AS ts, 'u' AS op, 'x' COLLATE UNICODE AS other",
          order="other COLLATE UTF8_BINARY", rest=", other")  # fmt: skip
    assert rows(acid) == {(1, "a", "x")}


@spark
@ours
def test_order_values_can_be_kept_if_the_key_gets_a_wider_type(acid):
    """As the error says: rename the state table, make a new one, insert the old rows."""
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    apply(acid, "1 AS id, 'a' AS v, 5 AS ts, 'd' AS op", rest=", ts")
    acid.sql("ALTER TABLE t CHANGE COLUMN id id BIGINT")
    late = "1 AS id, 'late' AS v, 4 AS ts, 'u' AS op"
    with pytest.raises(SqlError) as caught:
        apply(acid, late, rest=", ts")
    assert caught.value.condition == "AUTOCDC_INVALID_STATE.KEYS_DRIFT"
    acid.sql("ALTER TABLE t__acidsql_cdc RENAME TO old")
    apply(acid, f"{late} WHERE false", rest=", ts")
    acid.sql("INSERT INTO t__acidsql_cdc SELECT * FROM old")
    assert apply(acid, late, rest=", ts").num_stale_records == 1
    assert rows(acid) == set()
    assert deleted(acid) == {1}
