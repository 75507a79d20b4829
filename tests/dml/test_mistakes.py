"""Typical mistakes of new users: what each error is called, what it shows, and what it advises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import rows

import acidsql
from acidsql.errors import AcidSqlError, SqlError
from acidsql.sql.text.misspelt import meant_word

SYNTAX, UNSUPPORTED = "PARSE_SYNTAX_ERROR", "UNSUPPORTED_FEATURE"
TARGET, NO_COLUMN = f"{UNSUPPORTED}.TABLE_OPERATION", "UNRESOLVED_COLUMN.WITH_SUGGESTION"
ARITY = "INSERT_COLUMN_ARITY_MISMATCH"
ON = "ON planes.id = s.id"

# Each statement, the error's condition, the text at the caret, and words of the message. Without a
# caret (None), the error is about rows.
MISTAKES = [
    # ── a misspelt first word ────────────────────────────────────────────────────────────────
    ("UPDTE planes SET seats = 1", SYNTAX, "UPDTE", "Did you mean UPDATE?"),
    ("DELTE FROM planes", SYNTAX, "DELTE", "Did you mean DELETE?"),
    ("INSRT INTO planes VALUES (1)", SYNTAX, "INSRT", "Did you mean INSERT?"),
    ("SELCT * FROM planes", SYNTAX, "SELCT", "Did you mean SELECT?"),
    ("creat TABLE x (id INT)", SYNTAX, "creat", "Did you mean CREATE?"),
    ("COMIT", SYNTAX, "COMIT", "Did you mean COMMIT?"),
    ("ROLBACK", SYNTAX, "ROLBACK", "Did you mean ROLLBACK?"),
    ("EXPLAIN UPDTE planes SET seats = 1", SYNTAX, "UPDTE", "Did you mean UPDATE?"),
    # ── another misspelt word ────────────────────────────────────────────────────────────────
    ("UPDATE planes SETT seats = 1", SYNTAX, "SETT", "found 'SETT'. Did you mean SET?"),
    ("UPDATE planes SET seats = 1 WHER id = 1", SYNTAX, "WHER", "Did you mean WHERE?"),
    ("DELETE FORM planes WHERE id = 1", SYNTAX, "FORM", "Did you mean FROM?"),
    ("DELETE FROM planes WEHRE id = 1", SYNTAX, "WEHRE", "Did you mean WHERE?"),
    ("INSERT INOT planes VALUES (1)", SYNTAX, "INOT", "Did you mean INTO?"),
    ("INSERT INTO planes VALUS (1)", SYNTAX, "VALUS", "Did you mean VALUES?"),
    (f"MERGE INTO planes USNG s {ON} WHEN MATCHED THEN DELETE", SYNTAX, "USNG", "mean USING?"),
    (f"MERGE INTO planes USING s {ON} WHEN MATCHD THEN DELETE", SYNTAX, "MATCHD", "mean MATCHED?"),
    (f"MERGE INTO planes USING s {ON} WHN MATCHED THEN DELETE", SYNTAX, "WHN", "mean WHEN?"),
    (f"MERGE INTO planes USING s {ON} WHEN MATCHED TEHN DELETE", SYNTAX, "TEHN", "mean THEN?"),
    (
        f"MERGE INTO planes USING s {ON} WHEN NOT MATCHED THEN INSRT *",
        SYNTAX, "INSRT", "Did you mean INSERT?",
    ),
    ("SELECT * FORM planes", SYNTAX, "FORM", "Did you mean FROM?"),
    ("SELECT * FROM planes WHER id = 1", SYNTAX, "WHER", "Did you mean WHERE?"),
    ("SELECT * FROM planes ORDR BY id", SYNTAX, "ORDR", "Did you mean ORDER?"),
    ("CREATE TABEL x (id INT)", SYNTAX, "TABEL", "Did you mean TABLE?"),
    ("DROP TABEL planes", SYNTAX, "TABEL", "Did you mean TABLE?"),
    ("CREATE TABLE x (id INT) PARTITONED BY (p INT)", SYNTAX, "PARTITONED", "mean PARTITIONED?"),
    ("CREATE TABLE x (id INTT)", "UNSUPPORTED_DATATYPE", "INTT", "Did you mean 'INT'?"),
    ("ALTER TABLE planes AD COLUMN x INT", SYNTAX, "AD", "Did you mean ADD?"),
    ("ALTER TABLE planes COMPACT 'maior'", "INVALID_COMPACTION_TYPE", "'maior'", "say 'major'"),
    ("SHOW COMPACTION", SYNTAX, "COMPACTION", "Did you mean COMPACTIONS?"),
    ("SHOW LOCK", SYNTAX, "LOCK", "Did you mean LOCKS?"),
    ("SET acidsql.lock.pol.interval = 1s", "UNKNOWN_SETTING", None, "'acidsql.lock.poll.interval'"),
    # ── names ────────────────────────────────────────────────────────────────────────────────
    ("DELETE FROM plane WHERE id = 1", "TABLE_OR_VIEW_NOT_FOUND", "plane", "mean `planes`?"),
    ("UPDATE planes SET seat = 1", NO_COLUMN, "seat", "`id`, `name`, `seats`"),
    ("UPDATE planes SET seats = seat + 1", NO_COLUMN, "seat", "`seats`"),
    ("DELETE FROM planes WHERE idd = 1", NO_COLUMN, "idd", "`id`"),
    ("INSERT INTO planes (id, nam) VALUES (1, 'a')", NO_COLUMN, "nam", "`id`, `name`, `seats`"),
    ("SELECT idd FROM planes", NO_COLUMN, "idd", "`id`"),
    ("SELECT select FROM planes", NO_COLUMN, "select", "`seats`"),
    ("DELETE FROM tv WHERE id = 1", "EXPECT_TABLE_NOT_VIEW", "tv", "`tv` is a temporary view"),
    ("UPDATE tv SET id = 1", "EXPECT_TABLE_NOT_VIEW", "tv", "`tv` is a temporary view"),
    ("UPDATE av SET seats = 1", "EXPECT_TABLE_NOT_VIEW", "av", "default.av is a view"),
    ("UPDATE pq SET id = 1", TARGET, "pq", "(parquet), and this statement needs an ACID"),
    ("DELETE FROM pq", TARGET, "pq", "CREATE TABLE new AS SELECT * FROM `pq` makes an ACID table"),
    ("MERGE INTO pq USING s ON pq.id = s.id WHEN MATCHED THEN DELETE", TARGET, "pq", "Spark's"),
    # ── commas, brackets and quotes ──────────────────────────────────────────────────────────
    ("UPDATE planes SET seats = 1 name = 'x'", SYNTAX, "name", "comma or an operator"),
    ("SELECT id name seats FROM planes", SYNTAX, "seats", "comma or an operator missing before"),
    ("SELECT id, FROM planes", SYNTAX, ",", "comma before FROM one too many?"),
    ("SELECT count(* FROM planes", SYNTAX, "(", "'(' is not closed"),
    ("UPDATE planes SET name = 'O'Hare'", SYNTAX, "'", "A quote in a string is written twice"),
    ("DELETE FROM planes WHERE id = 1 AND", SYNTAX, "", "near the end of the statement"),
    # ── values ───────────────────────────────────────────────────────────────────────────────
    ("INSERT INTO planes VALUES (1, 'a')", ARITY, "VALUES (1, 'a')", "takes 3 value(s) here"),
    ("INSERT INTO planes (id, name) SELECT id FROM s", ARITY, "SELECT id FROM s", "takes 2 v"),
    ("INSERT INTO planes VALUES ('one', 'a', 2)", "CAST_INVALID_INPUT", None, "is no INT, which"),
    (
        "INSERT INTO planes SELECT 'one', 'a', 2",
        "INCOMPATIBLE_DATA_FOR_TABLE", "SELECT 'one', 'a', 2", "CAST(… AS INT)",
    ),
    ("UPDATE planes SET seats = CAST(name AS INT)", "CAST_INVALID_INPUT", "CAST(name AS INT)", ""),
    (
        f"MERGE INTO planes USING s {ON} WHEN MATCHED THEN UPDATE SET name = s.v",
        "MERGE_CARDINALITY_VIOLATION", None, "match one row of default.planes: id = 1. Make",
    ),
    # ── what other systems have ──────────────────────────────────────────────────────────────
    ("DELETE planes WHERE id = 1", SYNTAX, "planes", "Expected FROM"),
    ("UPDATE planes SET (name, seats) = ('a', 1)", UNSUPPORTED, "(name, seats)", "write SET a = …"),
    ("INSERT INTO planes SET id = 1", UNSUPPORTED, "SET", "INSERT INTO t (a, b) VALUES (1, 2)"),
    ("INSERT IGNORE INTO planes VALUES (1)", UNSUPPORTED, "IGNORE", "MERGE INTO … WHEN NOT"),
    ("INSERT OR REPLACE INTO planes VALUES (1)", UNSUPPORTED, "OR", "MERGE INTO … WHEN NOT"),
    ("INSERT INTO planes VALUES (1, 'a', 2) ON CONFLICT DO NOTHING", SYNTAX, "ON", "MERGE INTO …"),
    ("UPSERT INTO planes VALUES (1)", UNSUPPORTED, "UPSERT INTO", "MERGE INTO"),
    ("REPLACE INTO planes VALUES (1)", UNSUPPORTED, "REPLACE INTO", "REPLACE USING"),
    ("DELETE FROM planes LIMIT 1", UNSUPPORTED, "LIMIT", "DELETE … LIMIT is not supported"),
    ("SELECT TOP 5 * FROM planes", SYNTAX, "TOP", "LIMIT n at the end"),
    ("SELECT * FROM planes@v1", SYNTAX, "@", "VERSION AS OF n"),
    ("VACUUM planes", UNSUPPORTED, "VACUUM", "acid.clean()"),
    ("OPTIMIZE planes ZORDER BY (id)", UNSUPPORTED, "OPTIMIZE", "COMPACT 'rebalance' … ORDER BY"),
    ("DESCRIBE DETAIL planes", UNSUPPORTED, "DESCRIBE DETAIL", "acid.files(table)"),
    ("CONVERT TO DELTA planes", UNSUPPORTED, "CONVERT TO DELTA", "CONVERT TO ACID"),
    ("CREATE TABLE x SHALLOW CLONE planes", UNSUPPORTED, "SHALLOW", "CREATE TABLE … AS SELECT"),
    ("CREATE TABLE x (id INT) USING delta", "DATA_SOURCE_NOT_FOUND", "delta", "without USING"),
    ("CREATE INDEX i ON planes (id)", UNSUPPORTED, "CREATE INDEX", "orc.bloom.filter.columns"),
    ("MSCK REPAIR TABLE planes", UNSUPPORTED, "MSCK REPAIR TABLE", "acid.repair"),
    ("FSCK REPAIR TABLE planes", UNSUPPORTED, "FSCK REPAIR TABLE", "acid.check"),
    ("RESTORE TABLE planes TO VERSION AS OF 99", "VERSION_NOT_FOUND", None, "has no version 99"),
    ("ALTER TABLE planes DROP COLUMN name", UNSUPPORTED, "DROP COLUMN", "CREATE TABLE … AS SELECT"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with a few tables, which no mistake changes."""
    warehouse = tmp_path_factory.mktemp("mistakes")
    with acidsql.connect(spark, warehouse=warehouse, compactor="off") as session:
        session.sql("CREATE TABLE planes (id INT, name STRING, seats INT)")
        session.sql("INSERT INTO planes VALUES (1, 'a', 100), (2, 'b', 200)")
        session.sql("CREATE TABLE s (id INT, v STRING)")
        session.sql("INSERT INTO s VALUES (1, 'x'), (1, 'y')")
        session.sql("CREATE VIEW av AS SELECT * FROM planes")
        spark.sql("CREATE TABLE pq USING parquet AS SELECT 1 AS id")
        spark.range(1).createOrReplaceTempView("tv")
        yield session
        assert rows(session, "SELECT * FROM planes") == [(1, "a", 100), (2, "b", 200)]
        spark.catalog.dropTempView("tv")
        spark.sql("DROP TABLE pq")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("statement", "condition", "at", "words"), MISTAKES, ids=[case[0] for case in MISTAKES]
)
def test_a_mistake_is_shown_where_it_is_with_advice(tables, statement, condition, at, words):
    with pytest.raises(AcidSqlError) as caught:
        tables.sql(statement).collect()
    error = caught.value
    assert error.condition.startswith(condition), error
    assert words in error.message, error
    assert len(error.sqlstate) == 5
    if at is not None:
        assert isinstance(error, SqlError)
        assert error.text[error.start : error.end] == at, error
        line, carets = error.message.splitlines()[-2:]
        assert line.strip() == statement and carets.strip() == "^" * max(1, len(at))


@pytest.mark.spark
def test_a_name_that_is_like_a_keyword_is_no_mistake(tables):
    assert tables.sql("SELECT form.id AS wher FROM planes form WHERE form.id = 1").first().wher == 1
    with pytest.raises(SqlError) as caught:
        tables.sql("SELECT form.id FROM planes form WHERE form.id = = 1")
    assert "Did you mean" not in caught.value.message


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("UPDTE", "UPDATE"), ("UPADTE", "UPDATE"), ("UPDATEE", "UPDATE"), ("UPDITE", "UPDATE"),
        ("UDTE", None), ("UPDTEE", "UPDATE"), ("UPDATE", None), ("DATE", None), ("WHER", "WHERE"),
        ("ST", "SET"), ("SEATS", None), ("O", None), ("NO", "ON"), ("X", None), ("", None),
    ],
)  # fmt: skip
def test_the_word_that_is_meant(word, meant):
    assert meant_word(word, ["UPDATE", "SET", "ON", "WHEN", "WHERE"]) == meant
