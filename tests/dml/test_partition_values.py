"""Partitions are found by value, whatever the names of their directories are, in every session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kit import counts, ordered, rows, table
from over_hive import needs

from acidsql.acid.layout import partition_name
from acidsql.acid.partition_names import canonical, uncanonical_candidates
from acidsql.acid.table import Column
from acidsql.acid.values.partition_values import partition_value
from acidsql.errors import AnalysisError, ConstraintError

ANSI = "spark.sql.ansi.enabled"
MM = "TBLPROPERTIES ('transactional_properties'='insert_only')"


@pytest.fixture(params=["true", "false"], ids=["ansi", "not-ansi"])
def session(acid, conf, request):
    conf(ANSI, request.param)
    return acid


@pytest.mark.parametrize("value", ["'abc'", "300", "'300'", "12.5 * 100"])
def test_a_value_that_is_none_of_the_columns_type_is_refused_by_every_statement(session, value):
    session.sql("CREATE TABLE t (id INT) PARTITIONED BY (p TINYINT)")
    session.sql("INSERT INTO t VALUES (1, 44), (2, NULL), (3, 1), (4, -30)")
    before = table(session)
    for statement in (
        "TRUNCATE TABLE t PARTITION (p = {})",
        "ALTER TABLE t DROP PARTITION (p = {})",
        "ALTER TABLE t DROP IF EXISTS PARTITION (p = 1), PARTITION (p = {})",
        "ALTER TABLE t PARTITION (p = {}) COMPACT 'major'",
        "LOCK TABLE t PARTITION (p = {}) EXCLUSIVE",
        "SHOW PARTITIONS t PARTITION (p = {})",
        "SHOW LOCKS t PARTITION (p = {})",
        "INSERT INTO t PARTITION (p = {}) VALUES (9)",
        "INSERT OVERWRITE t PARTITION (p = {}) SELECT 9",
    ):
        with pytest.raises(ConstraintError, match="'p' is no TINYINT") as error:
            session.sql(statement.format(value)).collect()
        assert (error.value.condition, error.value.sqlstate) == ("CAST_INVALID_INPUT", "22018")
    assert table(session) == before


def test_a_value_may_be_any_constant_of_the_columns_type(session):
    session.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT, d DATE)")
    session.sql("INSERT INTO t SELECT 1, n, DATE'2024-01-02' FROM (VALUES (1), (2), (NULL)) s(n)")
    for spec, names in (
        ("p = '1'", ["p=1/d=2024-01-02"]),
        ("p = 1L + 1", ["p=2/d=2024-01-02"]),
        ("d = '2024-1-2', p = NULL", ["p=__HIVE_DEFAULT_PARTITION__/d=2024-01-02"]),
        ("d = DATE'2024-01-01' + INTERVAL 1 DAY, p = 1", ["p=1/d=2024-01-02"]),
        ("p, d = '2024-01-03'", []),
    ):
        assert rows(session, f"SHOW PARTITIONS t PARTITION ({spec})") == [(n,) for n in names]
    session.sql("ALTER TABLE t DROP PARTITION (p = '01')")
    session.sql("TRUNCATE TABLE t PARTITION (d = TIMESTAMP_NTZ'2024-01-02 10:00:00', p = 2.0)")
    assert [row[1] for row in table(session)] == [None]


def test_a_clause_that_fits_no_table_empties_none(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT)")
    acid.sql("CREATE TABLE u (id INT, p INT)")
    for name in "tu":
        acid.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    for statement in ("TRUNCATE TABLE {}", "ALTER TABLE {} DROP", "LOCK TABLE {}"):
        mode = " SHARED" if "LOCK" in statement else ""
        for name, spec, condition in (
            ("t", "(p = 1, P = 2)", "DUPLICATE_KEY"),
            ("t", "(q = 1)", "PARTITION_COLUMN_NOT_FOUND"),
            ("u", "(p = 1)", "PARTITION_COLUMN_NOT_FOUND"),
            ("t", "(p = 3)", "PARTITIONS_NOT_FOUND"),
        ):
            with pytest.raises(AnalysisError) as error:
                acid.sql(f"{statement.format(name)} PARTITION {spec}{mode}")
            assert error.value.condition == condition
    assert table(acid, "t") == table(acid, "u") == [(1, 1), (2, 2)]


@needs("can_work")
def test_compactions_are_shown_by_the_value_of_their_partition(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (d DATE, p INT)")
    acid.sql("INSERT INTO t VALUES (1, DATE'2024-01-01', 1), (2, DATE'2024-01-02', 1)")
    acid.compact("t", wait=True)
    one, both = ("d=2024-01-01/p=1",), ("d=2024-01-02/p=1",)
    for spec, expected in (
        ("d = DATE'2024-01-01'", [one]), ("p = '01', d = '2024-1-1'", [one]),
        ("p = 1", [one, both]), ("p = 2", []),
    ):  # fmt: skip
        shown = acid.sql(f"SHOW COMPACTIONS t PARTITION ({spec})").select("partname").collect()
        assert ordered(shown) == expected, spec


def test_a_decimal_has_one_name_in_every_session(acid, conf):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p DECIMAL(10,7))")
    for number, ansi in enumerate(("true", "false"), 1):
        conf(ANSI, ansi)
        acid.sql(f"INSERT INTO t VALUES ({number}, 0), ({number}, 0.0000001), ({number}, 123.45)")
        acid.sql(f"INSERT INTO t SELECT {number + 10}, id FROM range(0, 1, 1, 1)")
        acid.sql(f"INSERT INTO t PARTITION (p = 0) VALUES ({number + 20})")
    names = ["p=0.0000000", "p=0.0000001", "p=123.4500000"]
    assert rows(acid, "SHOW PARTITIONS t") == [(name,) for name in names]
    assert rows(acid, "SELECT id FROM t WHERE p = 0") == [(1,), (11,), (12,), (2,), (21,), (22,)]
    for ansi, other in (("true", "false"), ("false", "true")):
        conf(ANSI, ansi)
        acid.sql("INSERT OVERWRITE t SELECT 7, CAST(0 AS DECIMAL(10,7))")
        conf(ANSI, other)
        assert rows(acid, "SELECT id FROM t WHERE p = 0") == [(7,)]
        acid.sql("INSERT OVERWRITE t PARTITION (p = 0) SELECT 8")
        assert rows(acid, "SELECT id FROM t WHERE p = 0") == [(8,)]
    conf(ANSI, "false")  # here Spark's text of zero is 0E-7
    acid.sql("TRUNCATE TABLE t PARTITION (p = 1e-7)")
    acid.sql("ALTER TABLE t DROP PARTITION (p = 0)")
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,)]


def adopted(acid, tmp_path, ddl, values, renamed):
    """A table with another writer's directories: copies of acidsql's directories under other
    names."""
    by, kind = ddl
    acid.sql(f"CREATE TABLE made (id INT) PARTITIONED BY ({by}) {kind}")
    acid.sql(f"INSERT INTO made VALUES {values}")
    paths = {(row.path.split("/made/")[0], row.partition) for row in acid.files("made").collect()}
    for own, name in renamed:
        for place, partition in paths:
            if own in (partition, None):
                made = Path(place) / "made" / partition
                shutil.copytree(made, tmp_path / "theirs" / name, dirs_exist_ok=True)
    acid.sql("DROP TABLE made")
    location = f"LOCATION '{tmp_path}/theirs'"
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY ({by}) {location} {kind}")
    return acid


def partition_directories(tmp_path):
    found = (path.parent for path in (tmp_path / "theirs").rglob("de*lta_*"))
    return sorted({str(path.relative_to(tmp_path / "theirs")) for path in found})


# For each column: the type, a value, and a name that another writer may give the directory.
OTHERS = {
    "i": ("INT", "1", "I=01"),
    "n": ("DECIMAL(5,2)", "1.5", "n=1.5"),
    "o": ("DECIMAL(10,8)", "0", "o=0E-8"),
    "d": ("DATE", "DATE'2024-01-01'", "d=2024-1-1"),
    "at": ("TIMESTAMP", "TIMESTAMP_NTZ'2024-01-01 00:00:00'", "at=2024-01-01 00%3A00%3A00.0"),
    "f": ("DOUBLE", "1D", "f=1"),
    "b": ("BOOLEAN", "true", "b=TRUE"),
    "c": ("CHAR(4)", "'a'", "c=a   "),
    "s": ("STRING", "'a b'", "s=a%20b"),
}


@pytest.mark.parametrize("few", [0, 1000], ids=["jobs", "driver"])
def test_a_directory_that_others_have_named_is_found_by_its_value(acid, tmp_path, few):
    by = ", ".join(f"{name} {kind}" for name, (kind, _, _) in OTHERS.items())
    values = ", ".join(value for _, value, _ in OTHERS.values())
    spec = ", ".join(f"{name} = {value}" for name, (_, value, _) in OTHERS.items())
    theirs = "/".join(name for _, _, name in OTHERS.values())
    where = spec.replace(",", " AND")
    acid = adopted(acid, tmp_path, (by, ""), f"(1, {values})", [(None, theirs)])
    acid.sql(f"SET acidsql.driver.max.rows = {few}")
    acid.sql(f"INSERT INTO t PARTITION ({spec}) VALUES (2)")
    acid.sql(f"INSERT INTO t VALUES (3, {values})")
    acid.sql(f"INSERT INTO t SELECT 4, {values}")
    done = counts(
        acid,
        f"MERGE INTO t USING (SELECT explode(array(1, 5)) AS id) s ON t.id = s.id AND {where} "
        f"WHEN MATCHED THEN UPDATE SET id = 9 WHEN NOT MATCHED THEN INSERT VALUES (s.id, {values})",
    )
    assert done == (1, 1, 0)
    assert rows(acid, f"SELECT id FROM t WHERE {where}") == [(2,), (3,), (4,), (5,), (9,)]
    assert partition_directories(tmp_path) == [theirs]
    assert len(rows(acid, f"SHOW PARTITIONS t PARTITION ({spec})")) == 1
    acid.sql(f"INSERT OVERWRITE t PARTITION ({spec}) SELECT 6")
    assert rows(acid, "SELECT id FROM t") == [(6,)]
    acid.sql(f"INSERT OVERWRITE t SELECT 7, {values}")
    assert rows(acid, "SELECT id FROM t") == [(7,)]
    acid.sql(f"TRUNCATE TABLE t PARTITION ({spec})")
    assert table(acid) == []
    acid.sql(f"ALTER TABLE t DROP PARTITION ({spec})")
    assert rows(acid, "SHOW PARTITIONS t") == []


@pytest.mark.parametrize("kind", ["", MM], ids=["full", "insert-only"])
def test_two_directories_of_one_value_are_one_partition(acid, tmp_path, kind):
    acid = adopted(
        acid, tmp_path, ("p INT, q STRING", kind), "(1, 1, 'x'), (2, 1, 'y')",
        [("p=1/q=x", "p=01/q=x"), ("p=1/q=x", "p=001/q=x"), ("p=1/q=y", "p=1/q=y"),
         ("p=1/q=y", "p=+1/q=y")],
    )  # fmt: skip
    assert table(acid) == [(1, 1, "x"), (1, 1, "x"), (2, 1, "y"), (2, 1, "y")]
    acid.sql("INSERT INTO t SELECT id + 10, p, q FROM t WHERE q = 'y'")
    acid.sql("INSERT INTO t PARTITION (p = 1, q = 'x') SELECT 11")
    assert {name: len(rows(acid, f"SELECT * FROM t WHERE q = '{name}'")) for name in "xy"} == {
        "x": 3, "y": 4,
    }  # fmt: skip
    acid.sql("INSERT OVERWRITE t SELECT 3, 1, 'y'")
    assert rows(acid, "SELECT id FROM t WHERE q = 'y'") == [(3,)]
    acid.sql("INSERT OVERWRITE t PARTITION (p = 1, q = 'x') SELECT 4 WHERE false")
    assert table(acid) == [(3, 1, "y")]
    acid.sql("INSERT INTO t VALUES (5, 1, 'x')")
    acid.sql("TRUNCATE TABLE t PARTITION (p = 1, q = 'y')")
    assert table(acid) == [(5, 1, "x")]
    acid.sql("ALTER TABLE t DROP PARTITION (p = 1, q = 'x')")
    assert table(acid) == []
    assert len(rows(acid, "SHOW PARTITIONS t")) == 2


def test_a_name_without_a_value_of_the_type_is_shown_as_null_and_gets_no_rows(acid, tmp_path):
    acid = adopted(acid, tmp_path, ("p INT", ""), "(1, 1)", [("p=1", "p=one")])
    acid.sql("INSERT INTO t VALUES (2, NULL)")
    assert table(acid) == [(1, None), (2, None)]
    names = ["p=__HIVE_DEFAULT_PARTITION__", "p=one"]
    assert rows(acid, "SHOW PARTITIONS t") == [(name,) for name in names]
    acid.sql("INSERT OVERWRITE t PARTITION (p = NULL) SELECT 3")
    assert table(acid) == [(3, None)]


def test_a_directory_without_a_value_of_the_type_is_renamed_as_the_one_of_null(acid, tmp_path):
    acid = adopted(acid, tmp_path, ("p INT", ""), "(1, 1)", [("p=1", "p=one"), ("p=1", "p=two")])
    acid.sql("ALTER TABLE t PARTITION (p = NULL) RENAME TO PARTITION (p = 2)")
    assert table(acid) == [(1, 2), (1, 2)]
    assert rows(acid, "SHOW PARTITIONS t") == [("p=2",)]


def test_the_value_of_a_name_is_what_spark_casts_its_text_to(spark):
    """Streams know it without Spark."""
    numbers = [
        "0",
        "-0",
        "+7",
        " 8 ",
        "007",
        "1.5",
        "1e3",
        "٣",
        "- 1",
        "+",
        "0x1",
        "1_0",
        "\t1\x7f",
    ]
    numbers += [f"{sign}{2**bits + more}" for sign in ("", "-", "-000") for bits in (7, 15, 31, 63)
                for more in (-1, 0, 1)]  # fmt: skip
    numbers += ["9" * 20, "0" * 5000 + "1", "9" * 5000, "", "\xa01"]
    days = [
        "2024-01-05", "2024-1-5", "2024-2", "2024", "2024-01-05 10:00", "2024-01-05Tx", "-1-01-01",
        " 2024-01-06 ", "2024-02-30", "24-01-05", "+12024-01-05", "-0001-12-31", "0000-02-29",
        "2024-001-01", "2024-01-", "2024-", "2024T", "2024-1T", "now", "2024-01-05x", "epoch",
        "5881580-07-11", "5881580-07-12", "-5877641-06-23", "-5877641-06-22", "9999999-12-31",
        "10000000-01-01", "1582-10-10", "1900-02-29", "2000-02-29", "2024-13-01", "2024-00-01",
        "2024-01-00", "2024-01-05\n", "2024-01-05T", "٢٠٢٤-01-05", "--2024-01-05", "20240105",
    ]  # fmt: skip
    texts = spark.createDataFrame([(text,) for text in (*numbers, *days)], "text STRING")
    kinds = ("tinyint", "smallint", "int", "bigint")
    row_values = texts.selectExpr(
        "text", *(f"try_cast(text AS {kind})" for kind in kinds),
        "unix_date(try_cast(text AS DATE))",
    ).collect()  # fmt: skip
    for text, *values in row_values:
        assert [partition_value(text, kind) for kind in (*kinds, "date")] == values, text
    assert partition_value(None, "int") is None and partition_value(" a", "string") == " a"


def test_a_row_that_moves_goes_to_the_directory_that_is_there(acid, tmp_path):
    renamed = [("p=1", "p=01"), ("p=2", "p=2")]
    acid = adopted(acid, tmp_path, ("p INT", ""), "(1, 1), (2, 2)", renamed)
    acid.sql("UPDATE t SET p = 1 WHERE id = 2")
    assert partition_directories(tmp_path) == ["p=01", "p=2"]
    assert rows(acid, "SELECT id, p FROM t") == [(1, 1), (2, 1)]


def test_locks_and_conflicts_are_about_the_directory_that_is_there(acid, tmp_path):
    acid = adopted(acid, tmp_path, ("p INT", ""), "(1, 1)", [("p=1", "p=01")])
    for statement in (
        "LOCK TABLE t PARTITION (p = '1') EXCLUSIVE",
        "INSERT INTO t PARTITION (p = 1) SELECT 2",
        "UPDATE t SET id = 3 WHERE p = 1",
        "TRUNCATE TABLE t PARTITION (p = 1.0)",
    ):
        acid.sql("BEGIN")
        acid.sql(statement)
        locks = rows(acid, "SHOW LOCKS t PARTITION (p = 001)")
        assert {lock[3] for lock in locks} == {"p=01"}, statement
        acid.sql("ROLLBACK")


TEXTS = {
    "tinyint": ["0", "-1", "127", "128", "-128", "00", "+1", "-0", "99", " 1", "1.0", "x"],
    "int": ["2147483647", "20240101", "-999999999", "999999999999", "007", "1e3"],
    "bigint": ["9223372036854775807", "1700000000000", "01"],
    "decimal(5,2)": ["1.50", "1.5", "0.00", "-0.00", "-0.01", "999.99", "1000.00", "01.00", "1"],
    "decimal(10,0)": ["0", "-0", "12", "012", "1.0", "9999999999"],
    "decimal(2,2)": ["0.50", ".50", "0.5", "0.00", "1.00"],
    "boolean": ["true", "false", "TRUE", "1", "t"],
    "date": ["2024-01-01", "2024-1-1", "2024-02-30", "2023-02-29", "2024-02-29", "0000-01-01",
             "0001-01-01", "+10000-01-01", "2024-01-01 00:00:00", "20240101", "2024-W01-1"],
    "timestamp": ["2024-01-01 00:00:00", "2024-01-01 00:00:00.0", "2024-01-01 00:00:00.5",
                  "2024-01-01 00:00:00.500", "2024-01-01T00:00:00", "2024-01-01",
                  "2024-01-01 00:00", "2024-01-01 00:00:00Z", "2024-01-01 00:00:00.123456",
                  "2024-01-01 00:00:00.1234567", "2024-01-01 00:00:00+00:00"],
    "char(3)": ["a", "a ", "abc", "abcd", " a"],
    "double": ["1.0", "1", "-0.0", "NaN"],
    "string": ["a", " ", "é", "%", "_"],
}  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_name_is_canonical_only_if_spark_gives_that_text_of_its_value(spark, conf, ansi):
    """If a name is not in doubt, it must be Spark's own text. A name in doubt only costs a
    question."""
    conf(ANSI, ansi)
    for kind, texts in TEXTS.items():
        cast = "rpad(text, 3, ' ')" if kind == "char(3)" else f"try_cast(text AS {kind})"
        cast = cast.replace("timestamp", "timestamp_ntz")
        given = spark.createDataFrame([(text,) for text in texts], "text string")
        shown = dict(map(tuple, given.selectExpr("text", f"CAST({cast} AS STRING)").collect()))
        names = {text: partition_name(["p"], [text]) for text in texts}
        doubt = uncanonical_candidates([Column("p", kind)], list(names.values()))
        sure = {text for text in texts if names[text] not in doubt}
        assert {text: canonical(shown[text], kind) for text in sure} == {t: t for t in sure}, kind
        assert sure or kind == "double", kind
