"""ALTER TABLE … COLUMNS: old files are read right, and new files have the present columns."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pyorc
import pytest
from kit import fill, ordered, refused, rows, table
from over_hive import beside

import acidsql
from acidsql.storage.spark.session import zones

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parent.parent / "golden"


def columns(acid, name="t"):
    return [(row.col_name, row.data_type) for row in acid.sql(f"DESCRIBE {name}").collect()]


def newest_row_type(acid, name="t"):
    """The row type in the newest file of rows, as pyorc reads it."""
    found = [f for f in acid.files(name).collect() if f.kind in ("delta", "base")]
    newest = max(found, key=lambda file: file.max_write_id)
    with open(newest.path, "rb") as file:
        return str(pyorc.Reader(file).schema.fields["row"])


@pytest.fixture(params=["spark", "python"])
def reader(request, monkeypatch):
    """Each of the two readers of event files: Spark's, and Python tasks."""
    if request.param == "python":
        monkeypatch.setattr("acidsql.storage.reading.scan.has_timestamp", lambda types: True)
        monkeypatch.setattr(zones, "zone_offset_micros", lambda spark: None)


def test_columns_are_added_renamed_and_widened_and_rows_go_on_changing(acid, reader):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("ALTER TABLE t ADD COLUMNS (n INT COMMENT 'new')")
    acid.sql("ALTER TABLE t RENAME COLUMN v TO name")
    acid.sql("ALTER TABLE t CHANGE COLUMN id id BIGINT COMMENT 'wide'")
    assert columns(acid) == [("id", "bigint"), ("name", "string"), ("n", "int")]
    assert table(acid) == [(1, "a", None), (2, "b", None), (3, "c", None)]
    acid.sql("UPDATE t SET n = CAST(id AS INT) * 10 WHERE name = 'b'")
    assert newest_row_type(acid) == "struct<id:bigint,name:string,n:int>"
    acid.sql("INSERT INTO t VALUES (9999999999, 'big', 7)")
    acid.sql("DELETE FROM t WHERE name = 'a'")
    acid.sql(
        "MERGE INTO t USING (SELECT 3 AS id, 'merged' AS name) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name, n = coalesce(n, -1)"
    )
    assert table(acid) == ordered([(2, "b", 20), (3, "merged", -1), (9999999999, "big", 7)])
    assert rows(acid, "SELECT name FROM t WHERE id > 2000000000") == [("big",)]
    assert rows(acid, "SELECT id FROM t WHERE n IS NULL") == []


def test_a_name_that_is_free_again_shows_nothing_of_what_had_it(acid, reader):
    fill(acid, "t (id INT, v STRING)", "1, 'old'")
    acid.sql("ALTER TABLE t CHANGE v w STRING")
    acid.sql("ALTER TABLE t ADD COLUMN v STRING")
    acid.sql("INSERT INTO t VALUES (2, 'w', 'v')")
    assert table(acid) == [(1, "old", None), (2, "w", "v")]
    acid.sql("UPDATE t SET v = concat(w, '!') WHERE id = 1")
    assert table(acid) == [(1, "old", "old!"), (2, "w", "v")]
    assert rows(acid, "SELECT count(v), count(w) FROM t") == [(2, 2)]


WIDENINGS = [
    ("TINYINT", "SMALLINT", "-128"), ("TINYINT", "DOUBLE", "-128"),
    ("SMALLINT", "INT", "32767"), ("SMALLINT", "DECIMAL(5, 0)", "-32768"),
    ("INT", "BIGINT", "-2147483648"), ("INT", "DOUBLE", "2147483647"),
    ("INT", "DECIMAL(12, 2)", "-2147483648"),
    ("BIGINT", "DECIMAL(20, 1)", "9223372036854775807"),
    ("FLOAT", "DOUBLE", "0.1"), ("DECIMAL(5, 2)", "DECIMAL(9, 4)", "-123.45"),
    ("DECIMAL(18, 0)", "DECIMAL(38, 10)", "999999999999999999"),
    ("VARCHAR(3)", "VARCHAR(9)", "'abc'"), ("VARCHAR(3)", "STRING", "'a '"),
    ("CHAR(3)", "CHAR(6)", "'ab'"),
]  # fmt: skip


def test_every_widening_reads_old_values_as_a_cast_does(acid, reader):
    ddl = ", ".join(f"c{n} {old}" for n, (old, _, _) in enumerate(WIDENINGS))
    values = ", ".join(value for _, _, value in WIDENINGS)
    nulls = ", ".join("NULL" for _ in WIDENINGS)
    fill(acid, f"t (id INT, {ddl})", f"1, {values}", f"2, {nulls}")
    actions = ", ".join(f"c{n} TYPE {new}" for n, (_, new, _) in enumerate(WIDENINGS))
    before = acid.sql("SELECT * FROM t WHERE id = 1").collect()[0]
    acid.sql(f"ALTER TABLE t ALTER COLUMN {actions}")
    acid.sql(f"INSERT INTO t VALUES (3, {values})")
    found = {row.id: row for row in acid.sql("SELECT * FROM t").collect()}
    assert [value for value in found[2][1:] if value is not None] == []
    for number, (old, new, _) in enumerate(WIDENINGS):
        name = f"c{number}"
        if old == "CHAR(3)":
            expected = before[name] + "   "
        elif new == "STRING":
            expected = str(before[name])
        else:
            expected = before[name]
        assert found[1][name] == expected, (old, new)
        if old != "FLOAT":  # 0.1 as a FLOAT is not 0.1 as a DOUBLE
            assert found[3][name] == found[1][name], (old, new)
        # Conditions that are pushed down to ORC must not lose rows of old files.
        (new_value,) = {found[1][name]}
        ids = rows(acid, f"SELECT id FROM t WHERE {name} = :v", {"v": new_value})
        assert (1,) in ids, (old, new)


def test_files_that_hive_wrote_read_on_after_a_change(acid):
    case = json.loads((GOLDEN / "schema_evolution_rename" / "case.json").read_text())
    place = Path(acid.warehouse) / "found"
    shutil.copytree(GOLDEN / "schema_evolution_rename" / "data", place)
    ddl = ", ".join(f"{name} {kind}" for name, kind in case["columns"])
    acid.sql(f"CREATE TABLE g ({ddl}) LOCATION '{place}'")
    before = table(acid, "g")
    assert before == ordered(row["values"] for row in case["expected"])
    first, kind = case["columns"][0]
    acid.sql(f"ALTER TABLE g CHANGE {first} other {kind}")
    acid.sql("ALTER TABLE g ADD COLUMNS (extra STRING)")
    assert table(acid, "g") == ordered((*row, None) for row in before)
    acid.sql("UPDATE g SET extra = 'x'")
    assert table(acid, "g") == ordered((*row, "x") for row in before)


def test_replace_columns_renames_widens_and_appends_in_place(acid):
    fill(acid, "t (a INT NOT NULL COMMENT 'x', b STRING DEFAULT 'd')", "1, 'b'")
    acid.sql("ALTER TABLE t REPLACE COLUMNS (a BIGINT, c STRING COMMENT 'y', d DATE)")
    assert columns(acid) == [("a", "bigint"), ("c", "string"), ("d", "date")]
    assert table(acid) == [(1, "b", None)]
    acid.sql("INSERT INTO t (a) VALUES (2)")
    assert table(acid) == ordered([(1, "b", None), (2, "d", None)])
    with pytest.raises(acidsql.AcidSqlError, match="NOT_NULL"):
        acid.sql("INSERT INTO t (c) VALUES ('x')")


def test_comments_and_defaults_change_alone(acid):
    fill(acid, "t (a INT NOT NULL, b STRING COMMENT 'old')", "1, 'b'")
    acid.sql("ALTER TABLE t ALTER COLUMN b COMMENT 'it''s', a SET DEFAULT 40 + 2")
    (_, b) = acid.sql("DESCRIBE t").collect()
    assert b.comment == "it's"
    acid.sql("INSERT INTO t (b) VALUES ('x')")
    acid.sql("ALTER TABLE t ALTER COLUMN a DROP DEFAULT")
    acid.sql("ALTER TABLE t ALTER a DROP NOT NULL")
    acid.sql("INSERT INTO t (b) VALUES ('y')")
    assert table(acid) == ordered([(1, "b"), (42, "x"), (None, "y")])
    acid.sql("ALTER TABLE t CHANGE b c STRING")
    assert acid.sql("DESCRIBE t").collect()[1].comment == "it's"


def test_a_bucketing_column_keeps_its_buckets_under_a_new_name(acid):
    acid.sql(
        "CREATE TABLE t (id INT, k VARCHAR(5), v INT) CLUSTERED BY (k, id) INTO 4 BUCKETS "
        "TBLPROPERTIES ('orc.bloom.filter.columns' = 'V, k')"
    )
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), CAST(id AS STRING), 0 FROM range(40)")
    acid.sql("ALTER TABLE t RENAME COLUMN k TO key")
    acid.sql("ALTER TABLE t CHANGE key key VARCHAR(9)")
    created = acid.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert "CLUSTERED BY (`key`, `id`) INTO 4 BUCKETS" in created
    assert "'orc.bloom.filter.columns'='V,key'" in created
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), CAST(id AS STRING), 1 FROM range(40)")
    found = rows(acid, "SELECT key, count(DISTINCT (row__id.bucketid DIV 65536) % 4096) FROM t "
                 "GROUP BY key")  # fmt: skip
    assert found == ordered((str(number), 1) for number in range(40))


def test_a_partitioned_table_keeps_its_partitions(acid):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p STRING)", "1, 'a', 'x'", "2, 'b', 'y'")
    acid.sql("ALTER TABLE t CHANGE v w STRING CASCADE")
    acid.sql("ALTER TABLE t ADD COLUMNS (n INT)")
    acid.sql("INSERT INTO t VALUES (3, 'c', 7, 'x')")
    assert table(acid) == [(1, "a", None, "x"), (2, "b", None, "y"), (3, "c", 7, "x")]
    assert rows(acid, "SELECT w FROM t WHERE p = 'y'") == [("b",)]


REFUSED = [
    ("CHANGE id id SMALLINT", "NOT_SUPPORTED_CHANGE_COLUMN", "SMALLINT", "Hive 10312"),
    ("CHANGE v v INT", "NOT_SUPPORTED_CHANGE_COLUMN", "INT", "Hive 10312"),
    ("ALTER COLUMN id TYPE DATE", "NOT_SUPPORTED_CHANGE_COLUMN", "DATE", "Hive 10312"),
    ("ALTER COLUMN v TYPE BINARY", "NOT_SUPPORTED_CHANGE_COLUMN", "BINARY", "Hive 10312"),
    ("CHANGE s s STRUCT<b: INT, a: INT>", "NOT_SUPPORTED_CHANGE_COLUMN", None, "Hive 10312"),
    ("CHANGE k k BIGINT", "NOT_SUPPORTED_CHANGE_COLUMN", "BIGINT", "other buckets"),
    ("CHANGE p p BIGINT", "NOT_SUPPORTED_CHANGE_COLUMN", "p", "directories are named by it"),
    ("RENAME COLUMN nope TO x", "COLUMN_NOT_FOUND", "nope", "There is no column 'nope'"),
    ("RENAME COLUMN id TO V", "COLUMN_ALREADY_EXISTS", "V", "Hive 10036"),
    ("RENAME COLUMN id TO p", "COLUMN_ALREADY_EXISTS", "p", "Hive 10036"),
    ("RENAME COLUMN id TO row__id", "UNSUPPORTED_FEATURE", "row__id", "the name is taken"),
    ("CHANGE id id INTERVAL", "UNSUPPORTED_DATATYPE", "INTERVAL", "cannot be used"),
    ("ALTER COLUMN id SET DEFAULT 'x'", "INVALID_DEFAULT_VALUE", "'x'", "of type string"),
    ("REPLACE COLUMNS (id INT, v STRING)", "NOT_SUPPORTED_CHANGE_COLUMN", "id INT, v STRING",
     "cannot drop columns (Hive 10313)"),
    ("REPLACE COLUMNS (v STRING, id INT, s STRUCT<a: INT>, k INT)", "NOT_SUPPORTED_CHANGE_COLUMN",
     "v STRING", "Hive 10311"),
    ("REPLACE COLUMNS (id INT, v STRING, s STRUCT<a: INT>, k INT, x INT NOT NULL)",
     "UNSUPPORTED_FEATURE", "x INT NOT NULL", "cannot be NOT NULL"),
    ("REPLACE COLUMNS (id INT, v STRING, s STRUCT<a: INT>, k INT, p INT)",
     "COLUMN_ALREADY_EXISTS", "p INT", "Hive 10036"),
]  # fmt: skip


def test_what_would_read_wrong_is_refused_by_name_and_changes_nothing(acid):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING, s STRUCT<a: INT>, k INT) PARTITIONED BY (p INT) "
        "CLUSTERED BY (k) INTO 2 BUCKETS"
    )
    before = columns(acid)
    for what, condition, at, words in REFUSED:
        error = refused(acid, f"ALTER TABLE t {what}", condition, at)
        assert words in error.message, what
    assert columns(acid) == before


def test_a_change_waits_for_those_who_write_and_they_see_it_then(acid, spark):
    fill(acid, "t (id INT)", "1")
    done = []
    with beside(acid) as other:

        def change():
            other.sql("ALTER TABLE t CHANGE id number BIGINT")
            done.append(True)

        with acid.transaction():
            acid.sql("INSERT INTO t VALUES (2)")
            thread = threading.Thread(target=change)
            thread.start()
            thread.join(1.5)
            assert not done
        thread.join(60)
    assert done
    assert rows(acid, "SELECT number FROM t") == [(1,), (2,)]


def test_a_dataframe_from_before_shows_what_it_was_made_from(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    frame = acid.table("t")
    acid.sql("ALTER TABLE t CHANGE id number BIGINT")
    acid.sql("UPDATE t SET v = 'b'")
    assert [tuple(row) for row in frame.collect()] == [(1, "a")]
    assert frame.columns == ["id", "v"]


def test_a_read_that_meets_a_change_says_so(acid, spark, monkeypatch):
    """Otherwise it would read newer values as the narrower type, and NULL for values that do not
    fit."""
    fill(acid, "t (id INT)", "1")
    read_snapshot = acid._runner.transactions.read_snapshot
    with beside(acid) as other:

        def change_first(tables):
            other.sql("ALTER TABLE t CHANGE id id BIGINT")
            other.sql("INSERT INTO t VALUES (9999999999)")
            return read_snapshot(tables)

        monkeypatch.setattr(acid._runner.transactions, "read_snapshot", change_first)
        with pytest.raises(acidsql.AcidSqlError, match="were changed meanwhile"):
            acid.table("t")
        monkeypatch.undo()
    assert rows(acid, "SELECT id FROM t") == [(1,), (9999999999,)]
    acid.sql("CREATE TABLE nothing (id INT)")
    assert acid.files("nothing").collect() == []


def test_no_column_is_changed_in_a_transaction(acid):
    fill(acid, "t (id INT)", "1")
    with acid.transaction():
        for what in ("CHANGE id x INT", "REPLACE COLUMNS (id INT)"):
            with pytest.raises(acidsql.AcidSqlError, match="OP_NOT_ALLOWED_IN_TXN"):
                acid.sql(f"ALTER TABLE t {what}")


def test_a_table_keeps_its_file_format(acid):
    acid.sql("CREATE MANAGED TABLE t (id INT)")
    acid.sql("ALTER TABLE t SET FILEFORMAT orc")
    error = refused(acid, "ALTER TABLE t SET FILEFORMAT PARQUET", "UNSUPPORTED_FEATURE", "PARQUET")
    assert "AS SELECT * FROM default.t" in str(error)
