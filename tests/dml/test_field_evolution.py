"""WITH SCHEMA EVOLUTION inside of STRUCT, ARRAY and MAP: new fields come last, old rows show NULL
in them, and so do rows whose source lacks a field."""

from __future__ import annotations

import pytest
from kit import fill, ordered, refused
from over_hive import needs

from acidsql.errors import UnsupportedError

pytestmark = [pytest.mark.spark, needs("alters_in_commit")]

STAR = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def merge(source, clauses=STAR, evolves=True):
    words = "WITH SCHEMA EVOLUTION " if evolves else ""
    return f"MERGE {words}INTO t USING ({source}) s ON t.id = s.id {clauses}"


def plain(value):
    """A value with tuples in place of Rows."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    return value


def found(acid, query="SELECT * FROM t"):
    return ordered(plain(tuple(row)) for row in acid.sql(query).collect())


def types(acid, *names):
    shown = {row.col_name: row.data_type for row in acid.sql("DESCRIBE t").collect()}
    return [shown[name] for name in names]


DDL = """t (id INT, st STRUCT<lat: INT, lon: INT>, deep STRUCT<p: STRUCT<q: INT>, x: INT>,
    a ARRAY<STRUCT<q: INT>>, m MAP<STRING, STRUCT<q: INT>>, mk MAP<STRUCT<q: INT>, INT>)"""
Q = "named_struct('q', {0})"
OLD = (
    "{0}, named_struct('lat', 1, 'lon', 2), named_struct('p', named_struct('q', 3), 'x', 4), "
    "array(named_struct('q', 5), NULL), map('k', named_struct('q', 6), 'none', NULL), "
    "map(named_struct('q', 7), 8)"
)
# Each struct in another order, with one or two more fields; the array's with a whole struct.
SOURCE = """SELECT {0} AS id, named_struct('alt', 'high', 'lon', 20, 'lat', 10) AS st,
    named_struct('x', 40, 'p', named_struct('r', 31L, 'q', 30), 'y', array(1)) AS deep,
    array(named_struct('n', named_struct('z', true), 'q', 50), NULL) AS a,
    map('k', named_struct('r', 61, 'q', 60)) AS m, map(named_struct('r', 71, 'q', 70), 80) AS mk"""
NEW_TYPES = [
    "struct<lat:int,lon:int,alt:string>",
    "struct<p:struct<q:int,r:bigint>,x:int,y:array<int>>",
    "array<struct<q:int,n:struct<z:boolean>>>",
    "map<string,struct<q:int,r:int>>",
    "map<struct<q:int,r:int>,int>",
]


def old(key):
    """A row that was written before, as the evolved table shows it."""
    return (key, (1, 2, None), ((3, None), 4, None), [(5, None), None],
            {"k": (6, None), "none": None}, {(7, None): 8})  # fmt: skip


def new(key):
    return (key, (10, 20, "high"), ((30, 31), 40, [1]), [(50, (True,)), None],
            {"k": (60, 61)}, {(70, 71): 80})  # fmt: skip


NULLS = (2, None, None, None, None, None)


@pytest.fixture
def t(acid):
    """A table with old rows in two files, and new ones."""
    fill(acid, DDL, OLD.format(1), "2, NULL, NULL, NULL, NULL, NULL")
    acid.sql("INSERT INTO t VALUES (" + OLD.format(3) + "), (" + OLD.format(4) + ")")
    acid.sql(merge(SOURCE.format("explode(array(1, 9))")))
    return acid


def check_all_readers(acid, expected):
    assert found(acid) == ordered(expected)
    for key, *_ in expected:  # found by the driver
        assert found(acid, f"SELECT * FROM t WHERE id = {key}") == [
            row for row in expected if row[0] == key
        ]
    # Spark reads only the fields that the query needs.
    assert found(acid, "SELECT id, st.alt FROM t") == ordered(
        (row[0], row[1] and row[1][2]) for row in expected
    )
    assert found(acid, "SELECT id, deep.p.r, a.n.z, size(a), m['k'].r FROM t") == ordered(
        (
            row[0], row[2] and row[2][0][1],
            row[3] and [one and one[1] and one[1][0] for one in row[3]],
            row[3] and len(row[3]), row[4] and row[4]["k"][1],
        )
        for row in expected
    )  # fmt: skip
    assert found(acid, "SELECT id FROM t WHERE st IS NULL AND a IS NULL") == ordered(
        (row[0],) for row in expected if row[1] is None
    )
    assert found(acid, "SELECT id FROM t WHERE st.alt IS NOT NULL") == ordered(
        (row[0],) for row in expected if row[1] and row[1][2]
    )


def test_old_and_new_rows_are_right_for_every_reader(t):
    assert types(t, "st", "deep", "a", "m", "mk") == NEW_TYPES
    expected = [new(1), NULLS, old(3), old(4), new(9)]
    check_all_readers(t, expected)
    assert t.check("t").count() == 0
    # Rows of few: an UPDATE and a DELETE that find them, and what they return.
    assert found(t, "UPDATE t SET id = 5 WHERE id = 3 RETURNING *") == [old(5)]
    assert found(t, "DELETE FROM t WHERE id = 4 AND st.alt IS NULL RETURNING id, st") == [
        old(4)[:2]
    ]
    expected = [new(1), NULLS, old(5), new(9)]
    assert found(t) == ordered(expected)
    changed = found(
        t, "SELECT id, st, a FROM table_changes('t', 1) WHERE _change_type = 'insert' AND id < 4"
    )
    inserted = [old(1), NULLS, old(3), new(1)]  # without keys, an update is a delete and an insert
    assert changed == ordered(row[:2] + row[3:4] for row in inserted)
    assert found(t, "SELECT * FROM t VERSION AS OF 2") == ordered([old(1), NULLS, old(3), old(4)])
    for kind in ("minor", "major"):
        t.compact("t", kind=kind, wait=True)
        check_all_readers(t, expected)
    t.clean()
    check_all_readers(t, expected)
    # A second field, by INSERT, when nothing but a compacted base is there.
    t.sql(
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME "
        "SELECT 6 AS id, named_struct('lon', 1, 'more', 5) AS st"
    )
    assert types(t, "st") == ["struct<lat:int,lon:int,alt:string,more:int>"]
    assert found(t, "SELECT id, st FROM t") == ordered(
        [*((row[0], row[1] and (*row[1], None)) for row in expected), (6, (None, 1, None, 5))]
    )


def test_python_tasks_read_what_sparks_reader_reads(t, monkeypatch):
    from acidsql.storage.reading import scan

    monkeypatch.setattr(scan, "names_at_positions", lambda *_: None)  # then nobody else reads
    assert found(t) == ordered([new(1), NULLS, old(3), old(4), new(9)])


def test_the_slow_paths_give_the_same(acid):
    acid.sql("SET acidsql.fast.paths = false")
    fill(acid, DDL, OLD.format(1), "2, NULL, NULL, NULL, NULL, NULL")
    acid.sql(merge(SOURCE.format("explode(array(1, 9))")))
    assert found(acid) == ordered([new(1), NULLS, new(9)])
    assert found(acid, "UPDATE t SET id = 3 WHERE id = 2 RETURNING *") == [(3, *NULLS[1:])]


def test_an_insert_only_table_gets_fields(acid):
    fill(
        acid, f"{DDL} TBLPROPERTIES ('transactional_properties'='insert_only')", OLD.format(1),
        "2, NULL, NULL, NULL, NULL, NULL",
    )  # fmt: skip
    acid.sql(f"INSERT WITH SCHEMA EVOLUTION INTO t BY NAME {SOURCE.format(9)}")
    expected = [old(1), NULLS, new(9)]
    check_all_readers(acid, expected)
    acid.compact("t", kind="major", wait=True)
    check_all_readers(acid, expected)


# ── fields that the source lacks ─────────────────────────────────────────────────────────────

LACKING = "SELECT id, IF(id = 3, NULL, named_struct('p', named_struct('r', 9), 'y', 8)) AS deep"
LACKING += " FROM (SELECT explode(array(1, 2, 3, 4)) AS id)"


@pytest.fixture
def lacking(acid):
    """Rows 2 and 4 are NULL in the table, row 3 in the source."""
    fill(acid, "t (id INT, deep STRUCT<p: STRUCT<q: INT>, x: INT>)",
         *(f"{i}, named_struct('p', named_struct('q', 3), 'x', 4)" for i in (1, 3)),
         "2, NULL")  # fmt: skip
    return acid


def test_update_star_keeps_fields_that_the_source_lacks_and_insert_star_makes_them_null(lacking):
    lacking.sql(merge(LACKING))
    assert types(lacking, "deep") == ["struct<p:struct<q:int,r:int>,x:int,y:int>"]
    assert found(lacking) == ordered(
        [
            (1, ((3, 9), 4, 8)),
            (2, ((None, 9), None, 8)),
            (3, ((3, None), 4, None)),  # as in Spark: no field of the source takes x away
            (4, ((None, 9), None, 8)),
        ]
    )
    lacking.sql("INSERT INTO t VALUES (5, NULL)")
    lacking.sql(merge("SELECT 5 AS id, CAST(NULL AS STRUCT<x: INT>) AS deep"))
    assert (5, None) in found(lacking)  # NULL stays NULL


def test_set_of_a_whole_column_makes_fields_null_that_the_value_lacks(lacking):
    lacking.sql(
        merge(
            LACKING,
            "WHEN MATCHED THEN UPDATE SET deep = s.deep "
            "WHEN NOT MATCHED THEN INSERT (id, deep) VALUES (s.id, s.deep)",
        )
    )
    given = ((None, 9), None, 8)
    assert found(lacking) == ordered([(1, given), (2, given), (3, None), (4, given)])
    assert types(lacking, "deep") == ["struct<p:struct<q:int,r:int>,x:int,y:int>"]


def test_only_a_column_that_is_taken_as_a_whole_gets_fields(lacking):
    lacking.sql(merge(LACKING, "WHEN MATCHED THEN UPDATE SET deep = t.deep"))
    assert types(lacking, "deep") == ["struct<p:struct<q:int>,x:int>"]
    refused(
        lacking, merge(LACKING, "WHEN MATCHED THEN UPDATE SET deep = coalesce(s.deep, s.deep)"),
        "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS",
    )  # fmt: skip
    refused(lacking, merge(LACKING, evolves=False), "INCOMPATIBLE_DATA_FOR_TABLE")


def test_a_default_from_before_has_null_in_the_new_field(acid):
    acid.sql("CREATE TABLE t (id INT, st STRUCT<q: INT> DEFAULT named_struct('q', 1))")
    insert = "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT "
    acid.sql(insert + "1 AS id, named_struct('r', 2, 'q', 3) AS st")
    acid.sql("INSERT INTO t (id) VALUES (2)")
    acid.sql("INSERT INTO t VALUES (3, DEFAULT), (4, NULL)")
    acid.sql("UPDATE t SET st = DEFAULT WHERE id = 4")
    assert found(acid) == [(1, (3, 2)), (2, (1, None)), (3, (1, None)), (4, (1, None))]


# ── what is refused, and ALTER TABLE ─────────────────────────────────────────────────────────


def test_fields_that_cannot_be_added_are_refused(acid, conf):
    insert = "INSERT WITH SCHEMA EVOLUTION INTO {0} BY NAME SELECT 1 AS id, {1} AS st"
    extra = "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS"
    fill(acid, "t (id INT, st STRUCT<q: INT>)")
    acid.sql("CREATE TABLE b (id INT, st STRUCT<q: INT>) CLUSTERED BY (st) INTO 2 BUCKETS")
    acid.sql("CREATE TABLE p (id INT, st STRUCT<q: INT>) STORED AS PARQUET "
             "TBLPROPERTIES ('transactional_properties' = 'insert_only')")  # fmt: skip
    more = "named_struct('q', 1, 'r', 2)"
    assert "a column of CLUSTERED BY" in refused(acid, insert.format("b", more), extra).message
    assert "only ORC tables" in refused(acid, insert.format("p", more), extra).message
    void = insert.format("t", "named_struct('q', 1, 'r', NULL)")
    refused(acid, void, "UNSUPPORTED_DATATYPE")
    twice = insert.format("t", "named_struct('q', 1, 'r', 2, 'R', 3)")
    refused(acid, twice, extra)
    conf("spark.sql.caseSensitive", "true")
    refused(acid, insert.format("t", "named_struct('q', 1, 'Q', 2)"), extra)
    assert types(acid, "st") == ["struct<q:int>"]


def test_alter_table_adds_fields_behind_the_others_and_nothing_else(acid):
    fill(
        acid,
        "t (id INT, a ARRAY<STRUCT<q: INT, r: INT>>)",
        "1, array(named_struct('q', 1, 'r', 2))",
    )
    for change in ("q: INT", "r: INT, q: INT", "q: INT, s: INT", "q: BIGINT, r: INT"):
        with pytest.raises(UnsupportedError, match="10312"):
            acid.sql(f"ALTER TABLE t CHANGE COLUMN a a ARRAY<STRUCT<{change}>>")
    acid.sql("ALTER TABLE t CHANGE COLUMN a b ARRAY<STRUCT<q: INT, r: INT, s: DATE>>")
    assert found(acid) == [(1, [(1, 2, None)])]
    acid.sql(
        "ALTER TABLE t REPLACE COLUMNS (id INT, b ARRAY<STRUCT<q: INT, r: INT, s: DATE, u: INT>>)"
    )
    acid.sql("INSERT INTO t VALUES (2, array(named_struct('q', 3, 'r', 4, 's', NULL, 'u', 5)))")
    assert found(acid) == [(1, [(1, 2, None, None)]), (2, [(3, 4, None, 5)])]


@pytest.mark.needs("keeps_state_tables")
def test_auto_cdc_says_how_its_state_table_gets_the_field(acid):
    versions = "__START_AT BIGINT, __END_AT BIGINT"
    acid.sql(f"CREATE TABLE t (id INT, st STRUCT<q: BIGINT, r: INT>, {versions})")
    cdc = "AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY ts COLUMNS * EXCEPT (ts) "
    cdc += "STORED AS SCD TYPE 2"
    first = "SELECT 1 AS id, named_struct('r', {0}, 'q', {0}) AS st, {0} AS ts"
    acid.spark.sql(" UNION ALL ".join([first.format(1), first.format(3)])).createOrReplaceTempView(
        "s"
    )
    acid.sql(cdc)
    acid.sql("ALTER TABLE t CHANGE COLUMN st st STRUCT<q: BIGINT, r: INT, s: INT>")
    late = "SELECT 1 AS id, named_struct('s', 9, 'r', 2, 'q', 2) AS st, 2 AS ts"
    acid.spark.sql(late).createOrReplaceTempView("s")
    said = refused(acid, cdc, "AUTOCDC_INVALID_STATE.COLUMNS_DRIFT").message
    acid.sql(said[said.index("ALTER TABLE") : said.rindex(">.") + 1])
    acid.sql(cdc)
    expected = [(1, (1, 1, None), 1, 2), (1, (2, 2, 9), 2, 3), (1, (3, 3, None), 3, None)]
    assert found(acid) == ordered(expected)


TWICE = "STRUCT<q: INT, n: STRUCT<r: INT, R: INT>>"
NEW = "named_struct('q', 1, 'n', named_struct('r', 2, 'R', 3))"


WITH_TWICE = [
    (f"CREATE TABLE u (c {TWICE})", "c.n"),
    ("CREATE TABLE u (c MAP<INT, ARRAY<STRUCT<r: INT, r: INT>>>)", "c.value.element"),
    (f"CREATE TABLE u AS SELECT {NEW} AS c", "c.n"),
    (f"ALTER TABLE t ADD COLUMNS (c {TWICE})", "c.n"),
    (f"ALTER TABLE t CHANGE COLUMN s s {TWICE}", "s.n"),
    (f"ALTER TABLE t REPLACE COLUMNS (id INT, s {TWICE})", "s.n"),
    (f"INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 2 AS id, {NEW} AS c", "c.n"),
    (merge(f"SELECT 2 AS id, {NEW} AS s"), "s.n"),
    (merge(f"SELECT 2 AS id, {NEW} AS s", "WHEN MATCHED THEN UPDATE SET s = s.s"), "s.n"),
]


def test_a_struct_has_each_field_once_in_whatever_letters(acid):
    """Otherwise no session could read the table again, unless it tells names apart by case."""
    fill(acid, "t (id INT, s STRUCT<q: INT>)", "1, struct(1)")
    for statement, path in WITH_TWICE:
        error = refused(acid, statement, "COLUMN_ALREADY_EXISTS")
        assert f"'{path}'" in str(error)
    assert found(acid) == [(1, (1,))]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_field_has_a_name_that_can_be_read_again(acid, name):
    fill(acid, "t (id INT, s STRUCT<q: INT>)", "1, struct(1)")
    new = f"SELECT 1 AS id, struct(q, `{name}`) AS s FROM (SELECT 5 AS q, 6 AS `{name}`)"
    for statement in (
        f"CREATE TABLE u (s STRUCT<q: INT, `{name}`: INT>)",
        f"CREATE TABLE u AS {new}",
        merge(new),
        merge(new.replace("AS s", "AS added")),
    ):
        refused(acid, statement, "INVALID_IDENTIFIER")
    if name:  # the grammar has no column without a name
        partitioned = f"CREATE TABLE u (id INT) PARTITIONED BY (`{name}` INT)"
        refused(acid, partitioned, "INVALID_IDENTIFIER")
    assert found(acid) == [(1, (1,))]


def test_white_space_belongs_to_the_name_of_a_field(acid):
    """`` r`` was read as ``r``."""
    fill(acid, "t (id INT, s STRUCT<q: INT, ` r`: INT, `r `: INT, `\t`: INT>)", "1, (1, 2, 3, 4)")
    acid.sql("UPDATE t SET s.` r` = s.`r ` + s.`\t`")
    acid.sql("CREATE TABLE u AS SELECT *, named_struct(' ', 5) AS blank FROM t")
    acid.sql(merge("SELECT 1 AS id, named_struct(' n', 8, ' r', 9) AS s"))
    assert found(acid) == [(1, (1, 9, 3, 4, 8))]
    assert found(acid, "SELECT s.` r`, s.`r `, blank FROM u") == [(7, 3, (5,))]
