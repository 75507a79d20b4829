"""Hive's virtual columns beside ``row__id``: the file of a row, and whether it is deleted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from kit import counts, fill, refused, rows, table

from acidsql.errors import UnsupportedError

INSERT_ONLY = "TBLPROPERTIES ('transactional_properties'='insert_only')"
ODD = ["a b", "100%", "é+ü", "x#y?z", "q\"'<{[^`|", "\U0001f600 1:2"]


def path_of(url: str) -> Path:
    assert url.startswith("file:///"), url
    path = Path(unquote(url.removeprefix("file://")))
    assert path.is_file()
    return path


def events_in(found) -> Counter[str]:
    """The number of rows by the directory of the file that a virtual column names."""
    return Counter(path_of(url).parent.name for _, url in found)


@pytest.fixture
def t(acid, tmp_path):
    """A partitioned table with an original file, deltas and delete events, in a place of an odd
    name."""
    place = tmp_path / "own place 100% é+ü x#y q'^`| \U0001f600" / "s=a b"
    place.mkdir(parents=True)
    orc.write_table(pa.table([pa.array([1, 2], pa.int32())], names=["id"]), place / "000000_0")
    acid.sql(f'CREATE TABLE t (id INT) PARTITIONED BY (s STRING) LOCATION "{place.parent}"')
    acid.sql("INSERT INTO t VALUES (10, 'a b'), (11, 'c')")
    acid.sql("INSERT INTO t VALUES (20, 'a b'), (21, 'd/e'), (22, NULL)")
    acid.sql("DELETE FROM t WHERE id IN (2, 11)")
    return acid


@pytest.mark.parametrize("fast", ["true", "false"])
def test_the_name_of_a_rows_file_is_the_url_that_spark_shows(t, spark, fast):
    t.sql(f"SET acidsql.fast.paths = {fast}")
    found = rows(t, "SELECT id, INPUT__FILE__NAME FROM t")
    assert [one[0] for one in found] == [1, 10, 20, 21, 22]
    for _, url in found:
        files = spark.read.format("binaryFile").load(str(path_of(url)))
        alone = files.selectExpr("input_file_name()")
        assert url == alone.first()[0]
    assert [path_of(url).parent.parent.name for _, url in found[1:]] == [
        "s=a b", "s=a b", "s=d%2Fe", "s=__HIVE_DEFAULT_PARTITION__",
    ]  # fmt: skip
    assert path_of(found[0][1]).parent.name == "s=a b"


def test_a_compaction_moves_rows_to_other_files(t):
    t.sql("ALTER TABLE t PARTITION (s = 'a b') COMPACT 'major' AND WAIT")
    found = rows(t, "SELECT id, input__file__name FROM t WHERE s = 'a b'")
    assert [one[0] for one in found] == [1, 10, 20]
    assert {name.partition("_")[0] for name in events_in(found)} == {"base"}


def test_queries_name_it_as_any_column_and_no_star_has_it(t, conf):
    fill(t, "u (id INT, w STRING)", "1, 'x'", "10, 'y'")
    t.sql("CREATE VIEW v AS SELECT id, input__file__name AS f FROM u")
    t.sql(f"CREATE TABLE m (id INT) {INSERT_ONLY}")
    t.sql("INSERT INTO m VALUES (1), (2)")
    first = "VERSION AS OF 1" if t.metastore.abilities.keeps_versions else "AS x"
    for query, columns, number in [
        ("SELECT * FROM t WHERE input__file__name LIKE '%delta%'", ["id", "s"], 4),
        ("SELECT *, Input__File__Name FROM u", ["id", "w", "Input__File__Name"], 2),
        ("SELECT a.*, b.input__file__name AS f FROM t a JOIN u b USING (id)", ["id", "s", "f"], 2),
        ("SELECT * FROM t JOIN u ON t.id = u.id AND t.input__file__name <> u.input__file__name",
         ["id", "s", "id", "w"], 2),
        ("SELECT u.*, row__id.rowid FROM u WHERE EXISTS "
         "(SELECT * FROM m WHERE m.input__file__name <> u.input__file__name)",
         ["id", "w", "rowid"], 2),
        ("SELECT * FROM (SELECT input__file__name AS f, * FROM m)", ["f", "id"], 2),
        ("SELECT m.*, v.* FROM m JOIN v ON m.id = v.id AND v.f <> m.input__file__name",
         ["id", "id", "f"], 1),
        ("SELECT default.u.input__file__name, default.u.* FROM u",
         ["input__file__name", "id", "w"], 2),
        (f"SELECT * FROM m {first} WHERE input__file__name IS NULL", ["id"], 0),
        ("SELECT * FROM t WHERE input__file__name = 'no' OR id = 1", ["id", "s"], 1),
    ]:  # fmt: skip
        found = t.sql(query)
        assert (found.columns, found.count()) == (columns, number), query
    assert events_in(rows(t, "SELECT id, input__file__name FROM m")) == {
        "delta_0000001_0000001_0000": 2
    }
    refused(t, "SELECT * FROM t NATURAL JOIN u WHERE t.input__file__name = 'x'", "UNSUPPORTED")


def test_statements_choose_rows_by_their_file(acid):
    fill(acid, "t (id INT, f STRING)", "1, ''", "2, ''", "3, ''")
    acid.sql("INSERT INTO t VALUES (4, ''), (5, '')")
    ((first, second),) = rows(acid, "SELECT min(input__file__name), max(input__file__name) FROM t")
    said = {"f": first}
    assert counts(acid, "DELETE FROM t WHERE input__file__name = :f AND id = 3", said) == (0, 0, 1)
    update = "UPDATE t SET f = input__file__name WHERE t.input__file__name = :f"
    assert counts(acid, update, said) == (0, 2, 0)
    assert table(acid) == [(1, first), (2, first), (4, ""), (5, "")]
    merge = (
        "MERGE INTO t USING (SELECT * FROM t) s ON t.id = s.id AND t.input__file__name = :f "
        "WHEN MATCHED AND hash(t.*) = hash(s.*) THEN UPDATE SET f = 'merged' "
        "WHEN NOT MATCHED AND s.id = 1 THEN INSERT (id) VALUES (6)"
    )
    assert counts(acid, merge, {"f": second}) == (1, 2, 0)
    assert rows(acid, "SELECT id FROM t WHERE f = 'merged'") == [(4,), (5,)]
    refused(acid, "ALTER TABLE t ADD COLUMNS (input__file__name STRING)", "UNSUPPORTED")


def test_where_a_virtual_column_means_nothing_the_error_says_why(acid, conf):
    fill(acid, "t (id INT)", "1")
    acid.sql(f"CREATE TABLE m (id INT) {INSERT_ONLY}")
    change = ("SELECT c.input__file__name FROM table_changes('t', 1) c", "table_changes")
    for statement, why in [
        ("DELETE FROM t WHERE id = 1 RETURNING Input__File__Name", "RETURNING"),
        *[change][: acid.metastore.abilities.keeps_versions],
        ("SELECT m.row__id FROM t, m", "insert-only"),
        ("SELECT BLOCK__OFFSET__INSIDE__FILE FROM t", "no offset"),
        ("SELECT `input__file__name` FROM (SELECT * FROM t)", "metastore"),
    ]:
        assert why in refused(acid, statement, "UNRESOLVED_COLUMN").message
    conf("spark.sql.caseSensitive", "true")
    for name in ("INPUT__FILE__NAME", "ROW__ID", "ID"):
        told = refused(acid, f"SELECT {name} FROM t WHERE row__id IS NULL AND "
                       "input__file__name = ''", "UNRESOLVED_COLUMN").message  # fmt: skip
        assert "spark.sql.caseSensitive is true." in told and "virtual" not in told


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_insert_only_tables_have_files_too(acid, kind):
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY (s STRING) STORED AS {kind} {INSERT_ONLY}")
    assert rows(acid, "SELECT id, input__file__name FROM t") == []
    for name in ODD:
        acid.sql("INSERT INTO t SELECT 1, :s", {"s": name})
    found = rows(acid, "SELECT id, input__file__name, input_file_name() FROM t")
    assert len(found) == len(ODD)
    for _, url, sparks in found:
        assert path_of(url) and url == sparks


# ── deleted rows ─────────────────────────────────────────────────────────────────────────────

ALL = "('acid.fetch.deleted.rows'='true')"


def test_deleted_rows_are_shown_as_hive_shows_them(acid):
    """Hive's own test (fetch_deleted_rows_vector.q), and what Hive prints for it."""
    fill(acid, "t1 (a INT, b VARCHAR(128))", "1, 'one'", "2, 'two'")
    acid.sql("DELETE FROM t1 WHERE a = 1")
    acid.sql(
        "INSERT INTO t1(a, b) VALUES (3, 'three'), (4, 'four'), (4, 'four again'), (5, 'five')"
    )
    acid.sql("UPDATE t1 SET b = 'updated' WHERE a = 3")
    fill(acid, "t2 (a INT, c FLOAT)", "1, 1.0", "2, 2.0", "3, 3.3", "4, 4.4", "4, 4.5", "5, 5.5")
    acid.sql("DELETE FROM t2 WHERE a IN (1, 4)")
    found = acid.sql(
        "SELECT t1.ROW__IS__DELETED, t1.ROW__ID.writeId, t1.*, t2.ROW__IS__DELETED, "
        f"t2.ROW__ID.writeId, CAST(t2.c AS STRING) FROM t1{ALL} JOIN t2{ALL} ON t1.a = t2.a"
    )
    printed = sorted("\t".join(str(value).lower() for value in row) for row in found.collect())
    assert printed == sorted([
        "true\t2\t1\tone\ttrue\t2\t1.0",
        "false\t1\t2\ttwo\tfalse\t1\t2.0",
        "true\t4\t3\tthree\tfalse\t1\t3.3",
        "false\t4\t3\tupdated\tfalse\t1\t3.3",
        "false\t3\t4\tfour\ttrue\t2\t4.4",
        "false\t3\t4\tfour\ttrue\t2\t4.5",
        "false\t3\t4\tfour again\ttrue\t2\t4.4",
        "false\t3\t4\tfour again\ttrue\t2\t4.5",
        "false\t3\t5\tfive\tfalse\t1\t5.5",
    ])  # fmt: skip


@pytest.mark.parametrize("fast", ["true", "false"])
def test_deleted_rows_are_there_until_a_major_compaction(t, fast):
    t.sql(f"SET acidsql.fast.paths = {fast}")
    query = f"SELECT id, s, row__is__deleted FROM t{ALL} WHERE id < 20"
    expected = [(1, "a b", False), (10, "a b", False), (11, "c", True), (2, "a b", True)]
    assert rows(t, query) == expected
    assert rows(t, f"SELECT id FROM t{ALL} x WHERE x.row__is__deleted") == [(11,), (2,)]
    assert rows(t, "SELECT count(*) FROM t WHERE NOT row__is__deleted AND id < 20") == [(2,)]
    assert t.sql(f"SELECT * FROM t{ALL} JOIN t USING (id, s)").columns == ["id", "s"]
    assert len(rows(t, f"SELECT input__file__name FROM t{ALL}")) == 7
    t.sql("BEGIN")
    t.sql("DELETE FROM t WHERE id = 10")
    assert rows(t, query)[1] == (10, "a b", True)
    t.sql("ROLLBACK")
    for s in ("a b", "c"):
        t.sql(f"ALTER TABLE t PARTITION (s = '{s}') COMPACT 'minor' AND WAIT")
    assert rows(t, query) == expected
    t.sql("ALTER TABLE t PARTITION (s = 'c') COMPACT 'major' AND WAIT")
    assert rows(t, query) == [one for one in expected if one[1] == "a b"]
    if t.metastore.abilities.keeps_versions:
        (found,) = rows(t, f"SELECT count(*) FROM t{ALL} VERSION AS OF 10000001 WHERE id = 2")
        assert found == (1,)


def test_what_has_no_deleted_rows_is_refused_by_name(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql(f"CREATE TABLE m (id INT) {INSERT_ONLY}")
    acid.sql("CREATE VIEW v AS SELECT * FROM t")
    for query, at in [
        (f"SELECT * FROM m{ALL}", ALL),
        (f"SELECT * FROM v{ALL}", ALL),
        ("SELECT * FROM t('acid.fetch.deleted.rows'='yes')", "'acid.fetch.deleted.rows'='yes'"),
        ("SELECT * FROM t('a'='b', 'c'='d') x", "'a'='b'"),
    ]:
        refused(acid, query, "UNSUPPORTED_FEATURE.TABLE_OPTIONS", at)
    refused(acid, "SELECT 1 FROM t('a'='b', c) x", "PARSE_SYNTAX_ERROR", ")")
    assert "full-ACID" in refused(acid, "SELECT row__is__deleted FROM m", "UNRESOLVED").message
    assert rows(acid, "SELECT * FROM t('acid.fetch.deleted.rows'='false')") == [(1,)]


def test_a_word_of_the_text_changes_no_star_of_a_source(acid):
    fill(acid, "t (id INT, w STRING)", "1, 'a'", "2, 'b'")
    fill(acid, "s (id INT, w STRING)", "1, 'a'", "2, 'x'")
    for more in ("", "/* row__id */", "AND s.w <> 'ROW__ID'", "AND t.input__file__name <> ''",
                 "AND t.row__id IS NOT NULL", "AND s.row__id IS NOT NULL"):  # fmt: skip
        acid.sql(
            "MERGE INTO t USING s ON t.id = s.id "
            f"WHEN MATCHED AND hash(t.*) = hash(s.*) {more} THEN UPDATE SET w = t.w"
        )
        assert acid.last.counts[0].updated == 1, more
    acid.sql(
        "MERGE INTO t USING s AS x (k, z) ON t.id = x.k "
        "WHEN MATCHED AND t.row__id.writeid > 0 AND x.z = 'x' THEN UPDATE SET w = x.z"
    )
    assert table(acid) == [(1, "a"), (2, "x")]
    fill(acid, "r (src_row__id INT, w STRING, v INT)", "1, 'a', 1", "2, 'row__id', 2")
    acid.sql("CREATE TABLE c (src_row__id INT, w STRING, v INT)")
    acid.sql(
        "AUTO CDC INTO c FROM r KEYS (src_row__id) APPLY AS DELETE WHEN w = 'row__id' "
        "SEQUENCE BY length(input__file__name)"
    )
    assert table(acid, "c") == [(1, "a", 1)]


def test_a_star_may_except_virtual_columns(acid):
    fill(acid, "t (id INT, w STRING)", "1, 'a'")
    for star in ("*", "t.*"):
        assert rows(acid, f"SELECT {star} EXCEPT (row__id) FROM t") == [(1, "a")]
        shown = rows(acid, f"SELECT {star} EXCEPT (input__file__name, w), t.row__id.rowid FROM t")
        assert shown == [(1, 0)]


def test_a_star_has_nothing_of_a_relation_that_only_filters(acid):
    fill(acid, "t (id INT, w STRING)", "1, 'a'", "2, 'b'")
    fill(acid, "s (id INT)", "2")
    on = "t.id = s.id AND s.row__id.rowid = 0"
    assert rows(acid, f"SELECT * FROM t LEFT SEMI JOIN s ON {on}") == [(2, "b")]
    assert rows(acid, f"SELECT * FROM t LEFT /* not */ ANTI JOIN s ON {on}") == [(1, "a")]
    assert rows(acid, f"SELECT * FROM t JOIN s ON {on}") == [(2, "b", 2)]


@pytest.mark.parametrize(
    ("query", "beside"),
    [
        ("SELECT * FROM t AS x (a) WHERE row__is__deleted = false", "names of columns"),
        ("SELECT x.* FROM (t) x WHERE row__is__deleted = false", "tables in brackets"),
        ("SELECT * FROM (t JOIN t AS s ON t.id = s.id) j WHERE t.row__id > 1", "in brackets"),
    ],
)
def test_a_table_with_another_alias_has_no_virtual_columns(acid, query, beside):
    fill(acid, "t (id INT)", "1")
    with pytest.raises(UnsupportedError, match=f"cannot be kept out .* beside .*{beside}"):
        acid.sql(query)
