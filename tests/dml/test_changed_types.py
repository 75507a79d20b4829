"""Columns whose type was changed: old values are those that Hive shows, wherever they are read."""

from __future__ import annotations

import pytest
from changed_types import CHANGES, alterations, columns, new_rows, old_rows
from kit import fill, ordered, refused, rows, table
from over_hive import needs

from acidsql.costs import FastPath
from acidsql.errors import ConstraintError, UnsupportedError
from acidsql.storage.reading import read

pytestmark = pytest.mark.spark

DDL = ", ".join(f"{name} {kind}" for name, kind in columns(new=False))
INSERT_ONLY = "TBLPROPERTIES ('transactional_properties' = 'insert_only')"
COMPACT = "ALTER TABLE t COMPACT '{}' AND WAIT"


def text(found):
    """Rows that can be compared: NaN equals NaN, and 0.0 is not -0.0."""
    return sorted(map(repr, found))


@pytest.fixture
def t(acid):
    """A table whose first file is older than the changes, and whose second is not."""
    acid.sql(f"CREATE TABLE t ({DDL})")
    acid.sql(f"INSERT INTO t {old_rows()}")
    acid.sql(f"ALTER TABLE t {alterations()}")
    acid.sql("INSERT INTO t SELECT id + 100, * EXCEPT (id) FROM t")
    return acid


def test_old_values_are_cast_in_every_reader_and_in_every_rewrite(t):
    old = new_rows()
    both = text([*old, *((row[0] + 100, *row[1:]) for row in old)])
    assert text(table(t)) == both
    if t.metastore.abilities.keeps_versions:
        feed = t.changes("t", 1, 2).drop("row__id")
        feed = feed.select([name for name in feed.columns if not name.startswith("_")])
        assert text(map(tuple, feed.collect())) == both
    kinds = {row.col_name: row.data_type.upper() for row in t.sql("DESCRIBE t").collect()}
    assert [*kinds.items()] == columns(new=True)
    for kind in ("minor", "major"):
        t.sql(COMPACT.format(kind))
        assert text(table(t)) == both


def test_conditions_find_old_values_although_data_is_skipped(t, monkeypatch):
    monkeypatch.setattr(read, "MUCH_DATA", 0)
    conditions = ["c0 IS NULL"]
    for n, (_, _, pairs) in enumerate(CHANGES):
        value = next(one for _, one in pairs if one is not None)
        literal = f"'{value}'" if isinstance(value, str) else f"{value!r}D"
        operators = ("<", "=", ">=", "<>", "=", "<=", ">")
        conditions.append(f"c{n} {operators[n % len(operators)]} {literal}")
    expected = [*new_rows(), *((row[0] + 100, *row[1:]) for row in new_rows())]
    plain = t.spark.createDataFrame(expected, t.table("t").schema)
    decided = plain.selectExpr("id", *conditions).collect()
    for n, condition in enumerate(conditions, 1):
        found = rows(t, f"SELECT id FROM t WHERE {condition}")
        assert found == ordered((row[0],) for row in decided if row[n]), condition
    assert sum(any(column) for column in list(zip(*decided, strict=True))[1:]) > len(CHANGES) / 2


def test_old_rows_are_changed_by_their_new_values(t, spent, monkeypatch):
    monkeypatch.setattr(read, "MUCH_DATA", 0)  # the driver searches for the rows
    number = {(before, after): f"c{n}" for n, (before, after, _) in enumerate(CHANGES)}
    day, whole = number["DATE", "STRING"], number["INT", "STRING"]
    short = number["STRING", "VARCHAR(4)"]
    t.sql(f"UPDATE t SET {whole} = 'set' WHERE {day} = '1500-03-01'")
    assert rows(t, f"SELECT DISTINCT {day} FROM t WHERE {whole} = 'set'") == [("1500-03-01",)]
    t.sql(f"DELETE FROM t WHERE {short} = 'é€😀x'")
    assert rows(t, f"SELECT id FROM t WHERE {short} LIKE 'é%'") == []
    assert FastPath.POINT_SEARCH in spent.costs.fast_paths
    t.sql(
        f"MERGE INTO t USING (SELECT '1582-10-15' AS day) s ON t.{day} = s.day "
        f"WHEN MATCHED THEN UPDATE SET {whole} = 'merged' WHEN NOT MATCHED THEN "
        "INSERT (id) VALUES (-1)"
    )
    assert rows(t, f"SELECT DISTINCT {day} FROM t WHERE {whole} = 'merged'") == [("1582-10-15",)]
    assert rows(t, "SELECT id FROM t WHERE id < 0") == []


@pytest.mark.parametrize("more", ["", INSERT_ONLY])
def test_plain_files_are_cast_too(acid, spark, tmp_path, more):
    """Files without event columns: of an insert-only table, and of a table that has become ACID."""
    acid.sql(f"CREATE TABLE s ({DDL}) {INSERT_ONLY}")
    acid.sql(f"INSERT INTO s {old_rows()}")
    if not more:
        acid.sql("ALTER TABLE s SET TBLPROPERTIES ('transactional_properties' = 'default')")
    acid.sql(f"ALTER TABLE s {alterations()}")
    assert text(table(acid, "s")) == text(new_rows())
    acid.sql("INSERT INTO s SELECT id + 100, * EXCEPT (id) FROM s")
    acid.sql("ALTER TABLE s COMPACT 'major' AND WAIT")
    assert text(rows(acid, "SELECT * FROM s WHERE id < 100")) == text(new_rows())
    assert rows(acid, "SELECT count(*) FROM s") == [(2 * len(new_rows()),)]


@needs("changed columns beside a CHECK")
def test_a_change_that_loses_values_is_refused_where_somebody_relies_on_them(acid):
    acid.sql(
        "CREATE TABLE t (id INT, k STRING, c INT, d STRING DEFAULT 'x y ', e DOUBLE NOT NULL, "
        "f STRING NOT NULL, CONSTRAINT small CHECK (c < 10)) CLUSTERED BY (k) INTO 2 BUCKETS"
    )
    acid.sql(
        "INSERT INTO t VALUES (1, 'k', 1, 'd', 1D, '2'), (2, 'k', 2, 'd', double('NaN'), 'two')"
    )
    for what, words in [
        ("k TYPE VARCHAR(3)", "other buckets"), ("c TYPE STRING", "the constraint small names it"),
        ("d TYPE DOUBLE", "DEFAULT"), ("id TYPE DATE", "Hive 10312"),
        ("d TYPE VARCHAR(2)", "its DEFAULT 'x y ' is longer"), ("d TYPE CHAR(1)", "is longer"),
        ("e TYPE STRING", "NOT NULL"), ("f TYPE DOUBLE", "NOT NULL"),
    ]:  # fmt: skip
        error = refused(acid, f"ALTER TABLE t ALTER COLUMN {what}", "NOT_SUPPORTED_CHANGE_COLUMN")
        assert words in error.message
    acid.sql("ALTER TABLE t ALTER COLUMN d TYPE VARCHAR(3)")
    acid.sql("ALTER TABLE t ALTER COLUMN e DROP NOT NULL, f DROP NOT NULL, d DROP DEFAULT")
    acid.sql("ALTER TABLE t ALTER COLUMN e TYPE STRING, f TYPE DOUBLE, d TYPE DOUBLE")
    assert table(acid) == [(1, "k", 1, None, "1.0", 2.0), (2, "k", 2, None, None, None)]
    with pytest.raises(ConstraintError, match="no value in 'e'.*id = 2"):
        acid.sql("ALTER TABLE t ALTER COLUMN e SET NOT NULL")


@needs("keeps_versions")
def test_an_older_version_tells_if_its_values_are_of_a_type_that_cannot_be_read_any_more(acid):
    fill(acid, "t (c TIMESTAMP)", "TIMESTAMP_NTZ'2024-01-02 03:04:05'")
    acid.sql("ALTER TABLE t ALTER COLUMN c TYPE STRING")
    acid.sql("INSERT OVERWRITE t SELECT '1.5'")
    acid.sql("ALTER TABLE t ALTER COLUMN c TYPE DOUBLE")
    assert table(acid) == [(1.5,)]
    with pytest.raises(Exception, match="values of type TIMESTAMP in this version") as caught:
        table(acid, "t VERSION AS OF 1")
    assert "restore" not in str(caught.value)


def test_parquet_files_are_read_in_their_own_types(acid):
    fill(acid, f"t (id INT) STORED AS PARQUET {INSERT_ONLY}", "1")
    refused(acid, "ALTER TABLE t CHANGE id id STRING", "NOT_SUPPORTED_CHANGE_COLUMN")


def test_several_changes_are_one_cast_from_the_type_in_the_file(acid):
    fill(acid, "t (a TINYINT, b DATE, c BOOLEAN)", "5, DATE'2024-02-29', true")
    acid.sql("ALTER TABLE t ALTER COLUMN a TYPE DOUBLE, b TYPE STRING, c TYPE STRING")
    assert table(acid) == [(5.0, "2024-02-29", "TRUE")]
    acid.sql("ALTER TABLE t ALTER COLUMN a TYPE STRING, c TYPE DOUBLE")
    assert table(acid) == [("5", "2024-02-29", 1.0)]
    with pytest.raises(UnsupportedError, match="Column 'b' .* when it was a DATE.*OVERWRITE"):
        acid.sql("ALTER TABLE t ALTER COLUMN b TYPE DOUBLE")
    acid.sql("INSERT OVERWRITE t SELECT * FROM t")
    acid.sql("ALTER TABLE t ALTER COLUMN b TYPE DOUBLE")
    assert table(acid) == [("5", None, 1.0)]
