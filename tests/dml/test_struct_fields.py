"""Fields of structs: where a writer matches columns by name, fields are matched by name, at every
depth; where columns go by position, fields do, too."""

from __future__ import annotations

import itertools
from string import Template

import pytest
from kit import refused, rows

from acidsql.errors import AnalysisError

pytestmark = pytest.mark.spark

_numbers = itertools.count()
_MISSING = "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA"
_EXTRA = "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS"

PAIR = "STRUCT<lat: BIGINT, lon: BIGINT>"
COLUMNS = {
    "st": PAIR,
    "deep": f"STRUCT<p: {PAIR}, x: INT>",
    "a": f"ARRAY<{PAIR}>",
    "m": f"MAP<STRING, {PAIR}>",
    "mk": f"MAP<{PAIR}, INT>",
}
NAMES = ", ".join(COLUMNS)
OTHERS = {"LON": 20, "lat": 10}  # fields of a pair in the source, in another order and case


def pair(fields):
    """SQL of a struct with these fields, in INT, so that they are converted."""
    return "named_struct(" + ", ".join(f"'{name}', {value}" for name, value in fields.items()) + ")"


def values(fields):
    """SQL of a value for each of ``COLUMNS``, from one struct at every depth."""
    one = pair(fields)
    return {
        "st": one,
        "deep": f"named_struct('x', 1, 'p', {one})",
        "a": f"array({one}, CAST(NULL AS {kind(fields)}))",
        "m": f"map('k', {one}, 'none', CAST(NULL AS {kind(fields)}))",
        "mk": f"map({one}, 7)",
    }


def kind(fields):
    return "STRUCT<" + ", ".join(f"{name}: INT" for name in fields) + ">"


def source(given, first=1):
    """A query: the first id has a value in each column, the next one a NULL in each."""
    listed = ", ".join(f"{sql} AS {name}" for name, sql in given.items())
    shown = ", ".join(f"if(id = {first}, {name}, NULL) AS {name}" for name in reversed(given))
    ids = f"explode(array({first}, {first + 1})) AS id"
    return f"SELECT {shown}, id FROM (SELECT {listed}, {ids})"


def stored(lat, lon, first=1):
    """What ``source`` gives in the table, as a Python model says."""
    one = (lat, lon)
    row = (first, one, (one, 1), [one, None], {"k": one, "none": None}, {one: 7})
    return [row, (first + 1, *[None] * 5)]


def plain(value):
    """A value with tuples in place of Rows."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    return value


def found(acid, query=f"SELECT id, {NAMES} FROM t ORDER BY id"):
    return [plain(tuple(row)) for row in acid.sql(query).collect()]


@pytest.fixture
def t(acid):
    columns = ", ".join(f"{name} {text}" for name, text in COLUMNS.items())
    acid.sql(f"CREATE TABLE t (id INT, {columns})")
    return acid


# ── the writers that match by name ───────────────────────────────────────────────────────────
# Each leaves the two rows of ``source`` in the table. If its name begins with "update", their ids
# are there before, with NULLs. The last ones empty the table.

SETS = ", ".join(f"{name} = s.{name}" for name in COLUMNS)
MERGE = "MERGE INTO t USING s ON t.id = s.id "


def statement(text):
    """A statement, in which $sets, $values and $first may be."""

    def run(acid, frame, given, first):
        sets = ", ".join(f"{name} = {sql}" for name, sql in given.items())
        values = ", ".join(given.values())
        acid.sql(Template(text).substitute(sets=sets, values=values, first=first))

    return run


def update_method(acid, frame, given, first):
    acid.update("t", given, f"id = {first}")


def insert_method(acid, frame, given, first):
    acid.insert_into("t", frame)


def insert_method_by_position(acid, frame, given, first):
    acid.insert_into("t", frame.select("id", *COLUMNS), by_name=False)


def merge_method(acid, frame, given, first):
    acid.merge_into(frame, "t", "t.id = source.id").whenMatched().updateAll().merge()


def merge_method_inserts(acid, frame, given, first):
    acid.merge_into(frame, "t", "t.id = source.id").whenNotMatched().insertAll().merge()


def merge_method_with_values(acid, frame, given, first):
    values = {name: f"source.{name}" for name in ("id", *COLUMNS)}
    writer = acid.merge_into(frame, "t", "t.id = source.id").whenNotMatched()
    writer.insert(values).merge()


def sink(mode, **options):
    def run(acid, frame, given, first):
        acid.sink("t", mode=mode, txn_app_id="app", **options)(frame, next(_numbers))

    return run


BY_NAME = {
    "update": statement("UPDATE t SET $sets WHERE id = $first"),
    "update from": statement(f"UPDATE t SET {SETS} FROM s WHERE t.id = s.id"),
    "update by merge *": statement(MERGE + "WHEN MATCHED THEN UPDATE SET *"),
    "update by merge": statement(MERGE + f"WHEN MATCHED THEN UPDATE SET {SETS}"),
    "update()": update_method,
    "update by merge_into": merge_method,
    "update by a sink": sink("upsert", keys=["id"]),
    "merge inserts *": statement(MERGE + "WHEN NOT MATCHED THEN INSERT *"),
    "merge inserts": statement(
        MERGE + f"WHEN NOT MATCHED THEN INSERT (id, {NAMES}) VALUES (s.id, "
        + ", ".join(f"s.{name}" for name in COLUMNS) + ")"
    ),
    "by name": statement("INSERT INTO t BY NAME SELECT * FROM s"),
    "replace by name": statement(
        "INSERT INTO t BY NAME REPLACE WHERE id BETWEEN $first AND $first + 1 SELECT * FROM s"
    ),
    "insert_into()": insert_method,
    "merge_into inserts all": merge_method_inserts,
    "merge_into inserts": merge_method_with_values,
    "auto cdc": statement("AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY id"),
    "sink appends": sink("append"),
    "sink upserts": sink("upsert", keys=["id"]),
    "overwrite by name": statement("INSERT OVERWRITE t BY NAME SELECT * FROM s"),
    "sink completes": sink("complete"),
}  # fmt: skip


def run(acid, writer, given, first=1):
    """Let a writer write the rows of ``source``."""
    frame = acid.spark.sql(source(given, first))
    frame.createOrReplaceTempView("s")
    writer(acid, frame, given, first)


def run_all(acid, writers, given, lat, lon):
    """Let each writer write two rows, and check that they are in the table."""
    firsts = {name: 10 * number for number, name in enumerate(writers, 1)}
    ids = [
        id for name, first in firsts.items() if name[:6] == "update" for id in (first, first + 1)
    ]
    acid.sql("INSERT INTO t (id) VALUES " + ", ".join(f"({id})" for id in ids or [1]))
    expected = [] if ids else [(1, *[None] * 5)]
    for name, first in firsts.items():
        if name in ("overwrite by name", "sink completes"):
            assert found(acid) == expected
            expected = []
        run(acid, writers[name], given, first)
        expected += stored(lat, lon, first)
    assert found(acid) == expected


def test_a_field_is_matched_by_its_name_where_columns_are(t):
    """Whatever the order and the case of the source's fields."""
    run_all(t, BY_NAME, values(OTHERS), 10, 20)


MISSING = "CANNOT_FIND_DATA"
WRONG = {
    "missing": ({"lat": 1}, MISSING, ".lon"),
    "missing beside one more": ({"lat": 1, "foo": 2}, MISSING, ".lon"),
    "extra": ({"lat": 1, "lon": 2, "foo": 3}, "EXTRA_STRUCT_FIELDS", ""),
    "twice": ({"lat": 1, "lon": 2, "LAT": 3}, "AMBIGUOUS_COLUMN_NAME", ""),
}
PATHS = {"st": "st", "deep": "deep.p", "a": "a.element", "m": "m.value", "mk": "mk.key"}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_field_that_is_missing_or_unknown_is_an_error_of_each_writer(t, wrong):
    """At one depth for each writer, and at each depth for two of them."""
    fields, condition, behind = WRONG[wrong]
    t.sql("INSERT INTO t (id) VALUES (1), (3)")
    columns = itertools.cycle(COLUMNS)
    cases = [(writer, next(columns)) for writer in BY_NAME]
    cases += [(w, c) for c in COLUMNS for w in ("update by merge *", "by name")]
    for writer, column in cases:
        given = values(OTHERS) | {column: values(fields)[column]}
        with pytest.raises(AnalysisError) as caught:
            run(t, BY_NAME[writer], given)
        assert caught.value.condition == f"INCOMPATIBLE_DATA_FOR_TABLE.{condition}", writer
        assert caught.value.sqlstate == "KD000"
        assert f"'{PATHS[column]}{behind}'" in caught.value.message, writer
    assert found(t) == [(1, *[None] * 5), (3, *[None] * 5)]


# ── the writers that match by position ───────────────────────────────────────────────────────

LIST = f"(id, {NAMES})"
BY_POSITION = {
    "select": statement(f"INSERT INTO t SELECT id, {NAMES} FROM s"),
    "a list": statement(f"INSERT INTO t {LIST} SELECT id, {NAMES} FROM s"),
    "values": statement(
        "INSERT INTO t VALUES ($first, $values), ($first + 1, NULL, NULL, NULL, NULL, NULL)"
    ),
    "several": statement(f"FROM s INSERT INTO t SELECT id, {NAMES}"),
    "insert_into()": insert_method_by_position,
}


def test_a_field_goes_by_position_where_columns_do_as_in_a_table_of_sparks(t, spark):
    given = values({"lon": 20, "foo": 10})
    given["deep"] = given["deep"].replace("named_struct('x', 1, 'p', ", "named_struct('q', ")
    given["deep"] = given["deep"].removesuffix(")") + ", 'r', 1)"
    columns = ", ".join(f"{name} {text}" for name, text in COLUMNS.items())
    spark.sql(f"CREATE OR REPLACE TEMP VIEW s AS {source(given)}")
    spark.sql(f"CREATE TABLE plain_structs (id INT, {columns}) USING parquet")
    try:
        for columns in ("", LIST):
            spark.sql(f"INSERT OVERWRITE plain_structs {columns} SELECT id, {NAMES} FROM s")
            read = spark.table("plain_structs").orderBy("id").collect()
            assert [plain(tuple(row)) for row in read] == stored(20, 10)
    finally:
        spark.sql("DROP TABLE plain_structs")
    run_all(t, BY_POSITION, given, 20, 10)
    for fields, condition in (
        ({"lat": 1}, "STRUCT_MISSING_FIELDS"),
        ({"lat": 1, "lon": 2, "x": 3}, "EXTRA_STRUCT_FIELDS"),
    ):
        for column, value in values(fields).items():
            value = value.replace("'x', 1, 'p', ", "'p', ")[:-1] if column == "deep" else value
            value += ", 'x', 1)" if column == "deep" else ""
            insert = f"INSERT INTO t (id, {column}) SELECT 1, {value}"
            error = refused(t, insert, f"INCOMPATIBLE_DATA_FOR_TABLE.{condition}")
            assert PATHS[column] in error.message


# ── names ────────────────────────────────────────────────────────────────────────────────────


def test_names_are_compared_as_the_session_says_and_may_be_odd(acid, conf):
    acid.sql("CREATE TABLE t (id INT, st STRUCT<`a.b`: INT, `x``y`: INT, größe: INT>)")
    odd = "named_struct('GRÖSSE', 0, 'größe', 3, 'x`y', 2, 'a.b', 1)"
    error = refused(acid, f"INSERT INTO t BY NAME SELECT 1 AS id, {odd} AS st", _EXTRA)
    assert "'GRÖSSE'" in error.message
    acid.sql("INSERT INTO t VALUES (1, NULL)")
    right = odd.replace("'GRÖSSE', 0, ", "")
    acid.sql(f"UPDATE t SET st = {right}")
    assert rows(acid, "SELECT st.* FROM t") == [(1, 2, 3)]
    error = refused(acid, "UPDATE t SET st = named_struct('a.b', 1, 'größe', 2)", _MISSING)
    assert "'st.`x``y`'" in error.message
    acid.sql("CREATE TABLE u (id INT, st STRUCT<lat: INT, lon: INT>)")
    acid.sql("INSERT INTO u VALUES (1, NULL)")
    conf("spark.sql.caseSensitive", "true")
    refused(acid, "UPDATE u SET st = named_struct('LON', 1, 'lat', 2)", _MISSING)
    refused(acid, "UPDATE u SET st = named_struct('lon', 1, 'lat', 2, 'LAT', 3)", _EXTRA)
    acid.sql("UPDATE u SET st = named_struct('lon', 1, 'lat', 2)")
    assert rows(acid, "SELECT st.* FROM u") == [(2, 1)]


def test_a_part_of_another_type_is_named_by_its_path(t):
    update = "UPDATE t SET m = map('k', named_struct('lon', 1, 'lat', '2'))"
    error = refused(t, update, "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST")
    assert "'m.value.lat' of type BIGINT" in error.message


def test_fields_of_one_name_go_by_position_too(t):
    """``struct(a.v, b.v)`` has two fields called v; and at every depth, converted or not."""
    same = "named_struct('v', CAST({0} AS {2}), 'V', CAST({1} AS {2}))"
    for first, kind in ((1, "BIGINT"), (3, "INT")):
        pair = same.format(10, 20, kind)
        row = (
            f"{pair}, named_struct('d', {pair}, 'd', 1), array({pair}, NULL), "
            f"map('k', {pair}, 'none', NULL), map({pair}, 7)"
        )
        t.sql(f"INSERT INTO t SELECT {first}, {row}")
        t.sql(f"INSERT INTO t VALUES ({first + 1}, {row})")
    row = stored(10, 20)[0][1:]
    assert found(t) == [(number, *row) for number in (1, 2, 3, 4)]


def test_fields_of_a_default_go_by_position_as_in_sparks_tables(acid):
    acid.sql(
        "CREATE TABLE t (id INT, st STRUCT<lat: INT, lon: INT> DEFAULT "
        "named_struct('lon', 1, 'other', 2))"
    )
    acid.sql("INSERT INTO t (id) VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2, NULL)")
    acid.sql("UPDATE t SET st = DEFAULT WHERE id = 2")
    acid.sql("INSERT INTO t VALUES (3, DEFAULT)")
    assert rows(acid, "SELECT id, st.* FROM t") == [(1, 1, 2), (2, 1, 2), (3, 1, 2)]
