"""ALTER TABLE … CONSTRAINT, NOT NULL that comes later, and constraints that are information."""

from __future__ import annotations

import threading

import pytest
from kit import counts, fill, refused, rows, table
from over_hive import beside, needs

from acidsql.errors import AcidSqlError, ConstraintError, SqlError, UnsupportedError


def broken(acid, statement, condition, *words):
    """Check that rows break a new constraint, and that the table keeps its definition."""
    before = shown(acid)
    with pytest.raises(ConstraintError) as caught:
        acid.sql(statement)
    error = caught.value
    assert error.condition == condition, error
    for word in words:
        assert word in error.message, error
    assert shown(acid) == before


def shown(acid, name="t"):
    return acid.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]


@needs("keeps_keys")
def test_a_constraint_that_comes_later_is_checked_against_the_rows(acid):
    fill(acid, "t (id INT, n INT) PARTITIONED BY (p STRING)", "1, 1, 'x'", "2, NULL, 'x'",
         "3, 7, 'y'", "4, 9, 'y'")  # fmt: skip
    acid.sql("DELETE FROM t WHERE id = 4")
    broken(acid, "ALTER TABLE t ADD CONSTRAINT small CHECK (n < 5 OR p = 'z')",
           "NEW_CHECK_CONSTRAINT_VIOLATION", "1 row(s) of default.t", "'small'",
           "n < 5 OR p = 'z' is false for n = 7, p = 'y'")  # fmt: skip
    broken(acid, "ALTER TABLE t ADD CHECK (false)", 
           "NEW_CHECK_CONSTRAINT_VIOLATION", "3 row(s)")  # fmt: skip
    broken(acid, "ALTER TABLE t ALTER COLUMN n SET NOT NULL", "NOT_NULL_CONSTRAINT_VIOLATION",
           "1 row(s) of default.t have no value in 'n'", "id = 2, p = 'x'")  # fmt: skip
    broken(acid, "ALTER TABLE t CHANGE COLUMN n m INT NOT NULL", "NOT_NULL_CONSTRAINT_VIOLATION")
    acid.sql("ALTER TABLE t ADD CONSTRAINT Small CHECK (n < 8) ENFORCED")
    with pytest.raises(ConstraintError, match="'small' of default.t: n < 8 is false for n = 8"):
        acid.sql("UPDATE t SET n = n + 1")
    refused(acid, "ALTER TABLE t ADD CONSTRAINT SMALL CHECK (n < 9)", "CONSTRAINT_ALREADY_EXISTS",
            "SMALL")  # fmt: skip
    # NOVALIDATE keeps rows that break it, until they change.
    acid.sql("ALTER TABLE t ADD CONSTRAINT even CHECK (id % 2 = 0) NOVALIDATE")
    assert counts(acid, "UPDATE t SET n = 6 WHERE id = 2") == (0, 1, 0)
    with pytest.raises(ConstraintError, match="'even'"):
        acid.sql("UPDATE t SET n = 6 WHERE id = 1")
    acid.sql("ALTER TABLE t ALTER COLUMN n SET NOT NULL")
    with pytest.raises(ConstraintError, match="NOT NULL"):
        acid.sql("UPDATE t SET n = NULL WHERE id = 2")
    acid.sql("ALTER TABLE t ALTER COLUMN n DROP NOT NULL")
    acid.sql("ALTER TABLE t DROP CONSTRAINT even")
    acid.sql("ALTER TABLE t DROP CONSTRAINT IF EXISTS even")
    error = refused(acid, "ALTER TABLE t DROP CONSTRAINT even", "CONSTRAINT_DOES_NOT_EXIST", "even")
    assert "Its only constraint is `small`." in error.message
    acid.sql("UPDATE t SET n = NULL WHERE id = 1")
    acid.sql("ALTER TABLE t DROP CONSTRAINT small")
    acid.sql("INSERT INTO t VALUES (5, 100, 'y')")
    assert table(acid) == [(1, None, "x"), (2, 6, "x"), (3, 7, "y"), (5, 100, "y")]


@needs("keeps_keys")
def test_a_column_that_a_constraint_names_keeps_its_name(acid):
    fill(acid, "t (`a b` INT, s STRUCT<n: INT>, k INT, free INT, CHECK (`A B` > 0 OR S.N > 0), "
         "PRIMARY KEY (k))", "1, NULL, 1, 1")  # fmt: skip
    for column, name in {"`a b`": "t_chk_1", "s": "t_chk_1", "k": "t_pk_1"}.items():
        for sql in ("RENAME COLUMN {} TO other", "CHANGE {} other INT"):
            with pytest.raises(SqlError, match="constraint|cannot be changed") as caught:
                acid.sql(f"ALTER TABLE t {sql.format(column)}")
            assert name in caught.value.message or column == "s"
    with pytest.raises(UnsupportedError, match="the constraint t_chk_1 names it"):
        acid.sql("ALTER TABLE t REPLACE COLUMNS (x INT, s STRUCT<n: INT>, k INT, free INT)")
    acid.sql("ALTER TABLE t RENAME COLUMN free TO freed")
    acid.sql("ALTER TABLE t CHANGE COLUMN `a b` `a b` BIGINT")
    with pytest.raises(ConstraintError, match="a b = 0"):
        acid.sql("UPDATE t SET `a b` = 0, s = named_struct('n', 0)")


@needs("keeps_keys")
def test_keys_and_what_is_not_enforced_are_information(acid):
    fill(acid, "parent (x INT, y INT, CONSTRAINT px PRIMARY KEY (y, x) NOT ENFORCED)")
    fill(
        acid,
        "t (a INT NOT NULL ENABLE NOVALIDATE RELY PRIMARY KEY DISABLE NOVALIDATE RELY, "
        "b INT CONSTRAINT Off NOT NULL DISABLE, c INT UNIQUE CHECK (c > 0) NOT ENFORCED, "
        "d INT CONSTRAINT named NOT NULL ENFORCED CONSTRAINT filled DEFAULT 7 ENABLE, "
        "CONSTRAINT f FOREIGN KEY (b, c) REFERENCES parent DISABLE NOVALIDATE, "
        "FOREIGN KEY (a) REFERENCES t (a), CONSTRAINT own CHECK (d < 9) NORELY) "
        "PARTITIONED BY (p INT CHECK (p > 0) UNIQUE)",
        "1, NULL, -1, 1, 1", "1, NULL, -1, 1, 1",
    )  # fmt: skip
    assert len(table(acid)) == 2
    acid.sql("INSERT INTO t (a, p) VALUES (2, 2)")
    for bad in ("a = NULL", "d = NULL", "d = 9", "p = 0"):
        with pytest.raises(ConstraintError):
            acid.sql(f"UPDATE t SET {bad} WHERE a = 2")
    made = shown(acid)
    for line in (
        "`a` INT NOT NULL",
        "`b` INT CONSTRAINT `off` NOT NULL DISABLE NOVALIDATE",
        "CONSTRAINT `t_pk_1` PRIMARY KEY (`a`) DISABLE NOVALIDATE RELY",
        "CONSTRAINT `t_uk_1` UNIQUE (`c`) DISABLE NOVALIDATE",
        "CONSTRAINT `t_chk_1` CHECK (c > 0) DISABLE NOVALIDATE",
        "CONSTRAINT `f` FOREIGN KEY (`b`, `c`) REFERENCES `default`.`parent` (`y`, `x`) DISABLE",
        "CONSTRAINT `t_fk_1` FOREIGN KEY (`a`) REFERENCES `default`.`t` (`a`) DISABLE NOVALIDATE",
        "CONSTRAINT `own` CHECK (d < 9) NORELY",
    ):
        assert line in made, made
    described = {row[0]: row[1] for row in acid.sql("DESCRIBE EXTENDED t").collect()}
    assert described["Constraint t_pk_1"] == "PRIMARY KEY (`a`) DISABLE NOVALIDATE RELY"
    assert described["Constraint off"] == "`b` NOT NULL DISABLE NOVALIDATE"
    acid.sql("DROP TABLE t")
    acid.sql(made)
    assert shown(acid) == made
    acid.sql("ALTER TABLE parent RENAME TO mother")
    assert shown(acid) == made
    acid.sql("ALTER TABLE mother RENAME TO parent")
    acid.sql("CREATE TABLE u LIKE t")
    assert "CONSTRAINT" not in shown(acid, "u")
    acid.sql("ALTER TABLE u ADD CONSTRAINT pk PRIMARY KEY (a, b) DISABLE NOVALIDATE RELY")
    acid.sql("ALTER TABLE u ADD FOREIGN KEY (a, b) REFERENCES parent (x, y) NOT ENFORCED")
    assert "CONSTRAINT `pk` PRIMARY KEY (`a`, `b`) DISABLE NOVALIDATE RELY" in shown(acid, "u")


@needs("keeps_keys")
@pytest.mark.parametrize(
    ("element", "condition", "at"),
    [
        ("PRIMARY KEY (x)", "COLUMN_NOT_FOUND", "x"),
        ("UNIQUE (a, A)", "COLUMN_ALREADY_EXISTS", "A"),
        ("a2 INT PRIMARY KEY, PRIMARY KEY (a)", "CONSTRAINT_ALREADY_EXISTS", "PRIMARY KEY (a)"),
        ("FOREIGN KEY (a) REFERENCES nowhere (x)", "TABLE_OR_VIEW_NOT_FOUND", None),
        ("FOREIGN KEY (a) REFERENCES t (z)", "COLUMN_NOT_FOUND", "z"),
        ("FOREIGN KEY (a) REFERENCES t", "INVALID_FOREIGN_KEY", "t"),
        ("FOREIGN KEY (a) REFERENCES t (a, b)", "INVALID_FOREIGN_KEY", "t"),
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_is_refused(acid, element, condition, at):
    with pytest.raises(AcidSqlError) as caught:
        acid.sql(f"CREATE TABLE t (a INT, b INT, {element})")
    error = caught.value
    assert error.condition == condition, error
    if at is not None:
        assert error.text[error.start : error.end] == at
    assert rows(acid, "SHOW TABLES") == []


def test_no_writer_slips_a_row_in_while_a_constraint_is_added(acid):
    fill(acid, "t (n INT)", "1")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (-1)")
    failed = []
    with beside(acid) as other:

        def add():
            with pytest.raises(ConstraintError) as caught:
                other.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0)")
            failed.append(caught.value.condition)

        waiter = threading.Thread(target=add)
        waiter.start()
        while not [lock for lock in rows(acid, "SHOW LOCKS") if lock[4] == "WAITING"]:
            assert waiter.is_alive()
        acid.sql("COMMIT")
        waiter.join()
        assert failed == ["NEW_CHECK_CONSTRAINT_VIOLATION"]
        # A transaction whose snapshot is older than the constraint keeps it, too.
        acid.sql("DELETE FROM t WHERE n < 0")
        acid.sql("BEGIN")
        assert table(acid) == [(1,)]
        other.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0)")
        with pytest.raises(ConstraintError, match="'positive'"):
            acid.sql("INSERT INTO t VALUES (-2)")
        acid.sql("ROLLBACK")
    assert table(acid) == [(1,)]


@needs("given write ids")
def test_files_that_may_break_a_condition_become_no_table(acid, spark, tmp_path):
    path = f"{tmp_path}/plain"
    spark.range(1).write.orc(path)
    with pytest.raises(UnsupportedError, match="ADD CONSTRAINT looks at the rows"):
        acid.sql(f"CREATE TABLE t (id BIGINT CHECK (id > 0)) LOCATION '{path}'")
    acid.sql(f"CREATE TABLE t (id BIGINT) LOCATION '{path}'")
    broken(acid, "ALTER TABLE t ADD CHECK (id > 0)", "NEW_CHECK_CONSTRAINT_VIOLATION", "id = 0")


@needs("keeps_versions")
def test_what_a_constraint_has_come_after_is_not_restored(acid):
    fill(acid, "t (n INT)", "-1", "1")
    acid.sql("DELETE FROM t WHERE n < 0")
    acid.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0)")
    deleted = acid.history("t").where("operation = 'DELETE'").collect()[0]
    for undo in (f"RESTORE t VERSION AS OF {deleted.version - 1}",
                 f"REVERT TRANSACTION {deleted.txnId}"):  # fmt: skip
        with pytest.raises(
            ConstraintError, match="'positive' of default.t: n > 0 is false for n ="
        ):
            acid.sql(undo)
    assert table(acid) == [(1,)]


@needs("replaces_tables")
def test_a_table_that_replaces_another_has_its_own_constraints(acid):
    fill(acid, "t (n INT CHECK (n > 0), PRIMARY KEY (n))", "1")
    acid.sql("CREATE OR REPLACE TABLE t (n INT, CONSTRAINT below CHECK (n < 0))")
    acid.sql("INSERT INTO t VALUES (-1)")
    with pytest.raises(ConstraintError, match="'below'"):
        acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS n")
    acid.sql("INSERT INTO t VALUES (1), (-1)")
    assert table(acid) == [(-1,), (1,), (1,)]


def test_create_table_as_takes_columns_and_constraints(acid):
    """The columns stand in the statement, and the query fills them as INSERT … BY NAME does."""
    acid.sql(
        "CREATE TABLE t (id BIGINT NOT NULL CHECK (id > 0), d INT DEFAULT 7, p STRING COMMENT 'c',"
        " CONSTRAINT small CHECK (id + d < 100)) PARTITIONED BY (p) AS SELECT 'a' AS p, 1 AS id"
    )
    assert rows(acid, "SELECT id, d, p FROM t") == [(1, 7, "a")]
    assert rows(acid, "SHOW PARTITIONS t") == [("p=a",)]
    described = {row[0]: row[1:] for row in rows(acid, "DESCRIBE t")}
    assert described["id"] == ("bigint", "") and described["p"] == ("string", "c")
    with pytest.raises(ConstraintError, match="small"):
        acid.sql("INSERT INTO t (id, p) VALUES (99, 'b')")
    with pytest.raises(ConstraintError, match="'id' is NOT NULL"):
        acid.sql("INSERT INTO t VALUES (NULL, 1, 'b')")


@needs("replaces_tables")
@pytest.mark.parametrize(
    ("elements", "query", "condition"),
    [
        ("id INT CHECK (id > 1)", "SELECT id FROM t", "CHECK_CONSTRAINT_VIOLATION"),
        ("id INT NOT NULL", "SELECT NULL AS id FROM t", "NOT_NULL_CONSTRAINT_VIOLATION"),
        ("id INT", "SELECT 'x' AS id", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"),
        ("id INT", "SELECT 1 AS id, 2 AS more", "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS"),
    ],
)
def test_rows_that_do_not_fit_the_new_table_leave_the_old_one(acid, elements, query, condition):
    fill(acid, "t (id INT)", "1")
    with pytest.raises(AcidSqlError) as caught:
        acid.sql(f"CREATE OR REPLACE TABLE t ({elements}) AS {query}")
    assert caught.value.condition == condition
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    assert "CHECK" not in str(acid.sql("SHOW CREATE TABLE t").first())
