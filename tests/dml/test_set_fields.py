"""SET of a struct's field, in UPDATE, MERGE and the methods."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from kit import counts, fill, refused, rows
from over_hive import needs

from acidsql.errors import ConstraintError

S = "s STRUCT<a: INT, b: BIGINT, c: STRUCT<x: STRING, y: DECIMAL(10,2)>, e: CHAR(3)>"
ONE = "named_struct('a', 1, 'b', 2, 'c', named_struct('x', 'q', 'y', 1.50), 'e', 'e')"
NO_C = ONE.replace("named_struct('x', 'q', 'y', 1.50)", "NULL")
IN_ONE = (1, 2, ("q", Decimal("1.50")), "e  ")


@pytest.fixture
def t(acid):
    """Rows 1 and 2 have a whole struct, 3 has NULL for it, 4 for the struct inside."""
    fill(acid, f"t (id INT, {S})", f"1, {ONE}", f"2, {ONE}", "3, NULL", f"4, {NO_C}")
    return acid


def structs(acid: Any, name: str = "t") -> dict[int, Any]:
    """The structs by id, as tuples."""
    return {row[0]: plain(row[1]) for row in rows(acid, f"SELECT id, s FROM {name}")}


def plain(value: Any) -> Any:
    """A Row as a tuple, at every depth."""
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("fast", ["true", "false"])
def test_set_changes_the_named_fields_and_keeps_all_others_exactly(t, fast):
    t.sql(f"SET acidsql.fast.paths = {fast}")
    shown = rows(t, "EXPLAIN CHANGES UPDATE t SET s.c.x = upper(s.c.x), s.a = s.b, s.b = s.a + 10 "
                    "WHERE id = 1")  # fmt: skip
    expected = (2, 11, ("Q", Decimal("1.50")), "e  ")
    assert {row[2]: plain(row[1]) for row in shown} == {
        "update_preimage": IN_ONE, "update_postimage": expected
    }  # fmt: skip
    done = counts(t, "UPDATE t SET s.c.x = upper(s.c.x), s.a = s.b, s.b = s.a + 10 WHERE id = 1")
    assert done == (0, 1, 0)
    assert structs(t) == {1: expected, 2: IN_ONE, 3: None, 4: (1, 2, None, "e  ")}
    returned = t.sql("UPDATE t SET s.a = 7 WHERE id = 2 RETURNING old.s.a, new.s").collect()
    assert [plain(row) for row in returned] == [(1, (7, *IN_ONE[1:]))]


def test_a_struct_that_is_null_becomes_one_whose_other_fields_are_null(t):
    assert counts(t, "UPDATE t SET s.c.x = concat('n', id), s.e = 'f' WHERE id > 2") == (0, 2, 0)
    assert structs(t)[3] == (None, None, ("n3", None), "f  ")
    assert structs(t)[4] == (1, 2, ("n4", None), "f  ")
    t.sql("UPDATE t SET s = NULL WHERE id = 4")
    t.sql("UPDATE t SET s.c.y = NULL WHERE id = 4")
    assert structs(t)[4] == (None, None, (None, None), None)


def test_merge_and_update_from_set_fields_of_the_row_that_was_read(t):
    fill(t, f"n (id INT, k INT, {S})", f"1, 5, {ONE}", "2, 6, NULL", f"9, 7, {ONE}")
    assert counts(t, """
        MERGE INTO t USING n ON t.id = n.id
        WHEN MATCHED AND n.s IS NULL THEN UPDATE SET s.a = n.k, t.s.c.x = t.s.e
        WHEN MATCHED THEN UPDATE SET s.c = named_struct('x', 'w', 'y', n.k), s.b = t.s.a + n.s.b
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND s IS NULL THEN UPDATE SET s.b = id
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.c.y = s.b""".replace("INSERT *",
        "INSERT (id, s) VALUES (id, s)")) == (1, 4, 0)  # fmt: skip
    assert structs(t) == {
        1: (1, 3, ("w", Decimal("5.00")), "e  "),
        2: (6, 2, ("e  ", Decimal("1.50")), "e  "),
        3: (None, 3, None, None),
        4: (1, 2, (None, Decimal("2.00")), "e  "),
        9: IN_ONE,
    }
    counts(t, "UPDATE t AS x SET x.s.a = n.k, s.c.x = 'from' FROM n WHERE x.id = n.id AND n.id = 9")
    assert structs(t)[9] == (7, 2, ("from", Decimal("1.50")), "e  ")


def test_methods_set_fields(t):
    t.update("t", {"s.a": "s.b + 1", "`s`.`c`.x": "'m'"}, "id = 1")
    assert structs(t)[1] == (3, 2, ("m", Decimal("1.50")), "e  ")
    news = t.spark.sql("SELECT 2 AS id, 8 AS k").alias("n")
    merge = t.merge_into(news, "t", "t.id = n.id").whenMatched().update({"s.a": "n.k"})
    merge.whenNotMatchedBySource("id = 4").update({"t.s.c.x": "'by'"}).merge()
    assert structs(t)[2] == (8, *IN_ONE[1:])
    assert structs(t)[4] == (1, 2, ("by", None), "e  ")


def test_a_name_is_first_a_column_of_the_table_and_then_a_field(acid):
    odd = "`a.b`: INT, `größe`: INT, `C``d`: STRUCT<`x y`: INT>"
    fill(acid, f"t (id INT, a INT, s STRUCT<a: INT, s: INT>, `o.o` STRUCT<{odd}>)",
         "1, 1, named_struct('a', 2, 's', 3), "
         "named_struct('a.b', 4, 'größe', 5, 'C`d', named_struct('x y', 6))")  # fmt: skip
    read = "SELECT a, s, `o.o` FROM t"
    for assignments, expected in (
        ("s.a = 10", (10, (2, 3), (4, 5, (6,)))),  # s is the alias, and a a column
        ("s.s.a = 20, s.id = 1", (10, (20, 3), (4, 5, (6,)))),
        ("S.S.S = 30", (10, (20, 30), (4, 5, (6,)))),
        ("`o.o`.`a.b` = 40, s.`O.O`.GRÖßE = 50", (10, (20, 30), (40, 50, (6,)))),
        ("`o.o`.`c``D`.`X y` = 60", (10, (20, 30), (40, 50, (60,)))),
    ):
        acid.sql(f"UPDATE t AS s SET {assignments}")
        assert plain(tuple(acid.sql(read).first())) == expected
    acid.sql("UPDATE t SET default.t.s.a = 21, t.s.s = 31")
    assert plain(acid.sql("SELECT s FROM t").first()[0]) == (21, 31)


OVERLAP = "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS"


def test_what_cannot_be_set_is_refused_where_it_stands(acid):
    fill(acid, f"t (id INT, {S}, l ARRAY<STRUCT<f: INT>>, m MAP<STRING, INT>)")
    fill(acid, "n (id INT)", "1")
    for assignments, condition, at in (
        ("s.a = 1, s.A = 2", "DUPLICATE_ASSIGNMENTS", "s.A"),
        ("s.a = 1, s = NULL", OVERLAP, "s"),
        ("s = NULL, s.c.x = 'x'", OVERLAP, "s.c.x"),
        ("s.c.x = 'x', t.s.c = NULL", OVERLAP, "t.s.c"),
        ("l.f = 1", OVERLAP, "l.f"),
        ("m.k = 1", OVERLAP, "m.k"),
        ("m['k'] = 1", "UNSUPPORTED_FEATURE", "["),
        ("id.x = 1", "INVALID_EXTRACT_BASE_FIELD_TYPE", "id.x"),
        ("s.c.x.y = 1", "INVALID_EXTRACT_BASE_FIELD_TYPE", "s.c.x.y"),
        ("s.nope = 1", "FIELD_NOT_FOUND", "s.nope"),
        ("x.s.a = 1", "UNRESOLVED_COLUMN", "x.s.a"),
        ("s.a = DEFAULT", "UNSUPPORTED_FEATURE.DEFAULT_OF_FIELD", "DEFAULT"),
        ("s.a = 'x' || id", "INCOMPATIBLE_DATA_FOR_TABLE", "'x' || id"),
        ("s.c = 1", "INCOMPATIBLE_DATA_FOR_TABLE", "1"),
    ):
        for statement in (f"UPDATE t SET {assignments}",
                          "MERGE INTO t USING n ON t.id = n.id "
                          f"WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {assignments}"):  # fmt: skip
            error = refused(acid, statement, condition, at)
        if condition.startswith("INCOMPATIBLE"):
            assert f"'{assignments.split(' =')[0]}'" in error.message
    for insert in ("INSERT INTO t (s.a) VALUES (1)",
                   "MERGE INTO t USING n ON t.id = n.id "
                   "WHEN NOT MATCHED THEN INSERT (t.s.a) VALUES (1)"):  # fmt: skip
        refused(acid, insert, OVERLAP, "t.s.a" if "MERGE" in insert else "s.a")


def test_conversions_and_constraints_hold_for_fields(acid):
    fill(acid, f"t (id INT, {S} CHECK (s.a < 100))", f"1, {ONE}")
    for value, condition in (("s.b + 3000000000", "CAST_OVERFLOW"), ("s.b + 99", "CHECK")):
        with pytest.raises(ConstraintError) as caught:
            acid.sql(f"UPDATE t SET s.a = {value}")
        assert condition in caught.value.condition
        if "OVERFLOW" in condition:
            assert "'s.a'" in caught.value.message
    with pytest.raises(ConstraintError, match=r"s\.e"):
        acid.sql("UPDATE t SET s.e = 'long'")
    assert structs(acid) == {1: IN_ONE}
    acid.sql("UPDATE t SET s.a = '42', s.c.y = 1.5F")
    assert structs(acid) == {1: (42, *IN_ONE[1:])}


@needs("keeps_versions")
def test_a_row_moves_with_its_struct_and_changes_show_it(acid):
    fill(acid, f"t (id INT, {S}) PARTITIONED BY (p INT) CLUSTERED BY (id) INTO 2 BUCKETS",
         f"1, {ONE}, 1", f"2, {ONE}, 1")  # fmt: skip
    before = acid.history("t").first().version
    assert counts(acid, "UPDATE t SET s.a = 9, p = 2, id = 7 WHERE id = 1") == (0, 1, 0)
    assert rows(acid, "SELECT id, s.a, s.c.y, p FROM t") == [
        (2, 1, Decimal("1.50"), 1), (7, 9, Decimal("1.50"), 2)
    ]  # fmt: skip
    changes = rows(acid, "SELECT _change_type, to_json(s) FROM "
                         f"table_changes('t', {before + 1})")  # fmt: skip
    found = {kind: json.loads(text)["a"] for kind, text in changes}
    assert found == {"delete": 1, "insert": 9}  # it has moved


@needs("alters_in_commit")
def test_a_statement_with_schema_evolution_adds_no_column_for_a_field(acid):
    fill(acid, "t (id INT, s STRUCT<k: INT>)", "1, named_struct('k', 1)")
    acid.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id, 5 AS k, 6 AS new) AS n "
        "ON t.id = n.id WHEN MATCHED THEN UPDATE SET s.k = n.k, t.new = n.new"
    )
    assert [plain(row) for row in acid.sql("SELECT * FROM t").collect()] == [(1, (5,), 6)]
