"""Insert-only tables: plain files in transactional directories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.orc as orc
import pytest
from kit import counts, directories, fill, ordered, refused, rows, table
from over_hive import HISTORY, OVER_HIVE, needs

from acidsql.errors import ConstraintError
from acidsql.storage.files.sizes import size_text

pytestmark = pytest.mark.usefixtures("by_jobs")

GOLDEN = Path(__file__).parent.parent / "golden"
MM = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


@pytest.fixture
def mm(acid):
    """A session with an insert-only table ``t``."""
    acid.sql(f"CREATE TABLE t (id INT, v STRING) {MM}")
    return acid


def files(acid, name="t"):
    """Every file below a table's directory, with the rows that pyarrow finds in it."""
    root = Path(acid.warehouse) / name
    return {
        str(path.relative_to(root)): [
            tuple(row.values()) for row in orc.read_table(path).to_pylist()
        ]
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_rows_lie_in_plain_files_without_a_marker(mm):
    assert counts(mm, "INSERT INTO t VALUES (1, 'a'), (2, NULL)") == (2, 0, 0)
    mm.sql("INSERT INTO t SELECT 3, 'c'")
    assert files(mm) == {
        "delta_0000001_0000001_0000/000000_0": [(1, "a"), (2, None)],
        "delta_0000002_0000002_0000/000000_0": [(3, "c")],
    }
    assert table(mm) == [(1, "a"), (2, None), (3, "c")]
    path = Path(mm.warehouse) / "t/delta_0000001_0000001_0000/000000_0"
    assert orc.ORCFile(path).schema.names == ["id", "v"]


def test_the_layout_is_that_of_hives_own_golden_table(acid):
    """The same statements as in tests/golden/insert_only give the same directories and rows."""
    acid.sql(f"CREATE TABLE t (id INT, name STRING) {MM}")
    for statement in [
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t VALUES (3, 'c')",
        "INSERT INTO t SELECT id + 10, name FROM t UNION ALL SELECT 99, 'u'",
        "INSERT OVERWRITE TABLE t SELECT id, name FROM t WHERE id <> 2",
        "INSERT INTO t VALUES (4, 'd')",
    ]:
        acid.sql(statement)
    golden = GOLDEN / "insert_only"
    assert directories(acid) == sorted(path.name for path in (golden / "data").iterdir())
    assert {Path(name).name[-2:] for name in files(acid)} == {"_0"}
    expected = json.loads((golden / "case.json").read_text())["expected"]
    assert table(acid) == ordered(row["values"] for row in expected)
    ours = orc.ORCFile(Path(acid.warehouse) / "t/delta_0000001_0000001_0000/000000_0")
    hives = orc.ORCFile(golden / "data/delta_0000001_0000001_0000/000000_0")
    assert ours.schema == hives.schema


def test_tasks_write_files_of_their_own_numbers(mm):
    mm.sql("INSERT INTO t SELECT CAST(id AS INT), 'x' FROM range(0, 100, 1, 2)")
    assert [name.rpartition("/")[2] for name in files(mm)] == ["000000_0", "000001_0"]
    assert mm.sql("SELECT count(DISTINCT id) FROM t").collect()[0][0] == 100


def test_a_write_costs_no_job_for_literal_rows_and_none_for_nothing(mm):
    mm.sql("INSERT INTO t SELECT id, 'x' FROM range(0)")
    assert directories(mm) == []


def test_overwrite_puts_a_base_even_of_nothing(mm):
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    mm.sql("INSERT OVERWRITE t VALUES (2, 'b'), (3, 'c')")
    assert table(mm) == [(2, "b"), (3, "c")]
    mm.sql("INSERT OVERWRITE t SELECT * FROM t WHERE false")
    assert table(mm) == []
    # Hive knows a directory by its files, so the empty base has a file without rows.
    assert files(mm)["base_0000003/000000_0"] == []
    mm.sql("INSERT INTO t VALUES (4, 'd')")
    assert table(mm) == [(4, "d")]


def test_truncate_empties(mm):
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    mm.sql("TRUNCATE TABLE t")
    assert table(mm) == []
    assert files(mm)["base_0000002/000000_0"] == []


def test_partitions_static_dynamic_dropped_and_overwritten(acid):
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY (p STRING, q INT) {MM}")
    acid.sql("INSERT INTO t PARTITION (p = 'x', q = 1) VALUES (1), (2)")
    acid.sql("INSERT INTO t SELECT 3, 'a/b', 2 UNION ALL SELECT 4, NULL, 1")
    acid.sql("INSERT INTO t PARTITION (q = 7, p) SELECT 5, 'x'")
    assert table(acid) == [
        (1, "x", 1), (2, "x", 1), (3, "a/b", 2), (4, None, 1), (5, "x", 7),
    ]  # fmt: skip
    assert "p=a%2Fb/q=2/delta_0000002_0000002_0000" in directories(acid)
    acid.sql("INSERT OVERWRITE t PARTITION (p = 'x', q = 1) SELECT 6 WHERE false")
    acid.sql("TRUNCATE TABLE t PARTITION (p = 'x', q = 7)")
    acid.sql("ALTER TABLE t DROP PARTITION (p = 'a/b')")
    assert table(acid) == [(4, None, 1)]
    assert rows(acid, "SELECT id FROM t WHERE q = 1") == [(4,)]


def test_a_bucketed_table_has_each_row_in_the_file_of_its_hash(acid):
    columns = "(id INT, s STRING) CLUSTERED BY (s) INTO 3 BUCKETS"
    acid.sql(f"CREATE TABLE t {columns} {MM}")
    acid.sql(f"CREATE TABLE full {columns}")
    for name in ("t", "full"):
        acid.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), concat('k', id) FROM range(50)")
    expected = acid.sql("SELECT row__id.bucketid, id, s FROM full").collect()
    by_bucket = {}
    for bucket, *row in expected:
        by_bucket.setdefault((bucket >> 16) & 0xFFF, []).append(tuple(row))
    found = {
        int(name.rpartition("/")[2].split("_")[0]): sorted(r) for name, r in files(acid).items()
    }
    assert found == {number: sorted(r) for number, r in by_bucket.items()}


def test_sorted_buckets_are_sorted_with_nulls_as_the_smallest(acid):
    acid.sql(f"CREATE TABLE t (a INT, b STRING) CLUSTERED BY (b) SORTED BY (a DESC, b) "
             f"INTO 2 BUCKETS {MM}")  # fmt: skip
    acid.sql("INSERT INTO t SELECT nullif(CAST(id * 7 % 10 AS INT), 3), nullif(CAST(id AS STRING), "
             "'5') FROM range(40)")  # fmt: skip
    acid.sql("INSERT INTO t VALUES (1, 'x'), (NULL, 'y'), (9, 'z'), (9, NULL), (9, 'a')")
    assert len(files(acid)) == 4
    for found in files(acid).values():
        keys = [(-a if a is not None else 99, b or "") for a, b in found]
        assert keys == sorted(keys)
    assert len(table(acid)) == 45
    created = acid.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert "CLUSTERED BY (`b`) SORTED BY (`a` DESC, `b` ASC) INTO 2 BUCKETS" in created
    acid.sql("CREATE TABLE u LIKE t")
    assert acid.sql("SHOW CREATE TABLE u").collect()[0][0] == created.replace("`t`", "`u`")


def test_a_full_acid_table_is_not_sorted(acid):
    refused(acid, "CREATE TABLE t (a INT) CLUSTERED BY (a) SORTED BY (a) INTO 2 BUCKETS",
            "UNSUPPORTED_FEATURE.SORTED_BUCKETS", at="a")  # fmt: skip
    acid.sql(f"CREATE TABLE t (a INT) CLUSTERED BY (a) SORTED BY (a) INTO 2 BUCKETS {MM}")
    refused(acid, "CREATE TABLE u LIKE t TBLPROPERTIES ('transactional_properties'='default')",
            "UNSUPPORTED_FEATURE.SORTED_BUCKETS", at="u")  # fmt: skip
    refused(acid, f"CREATE TABLE u (a MAP<INT, INT>, b INT) CLUSTERED BY (b) SORTED BY (a) "
            f"INTO 2 BUCKETS {MM}", "UNSUPPORTED_FEATURE.SORT_COLUMN_TYPE", at="a")  # fmt: skip
    refused(acid, f"CREATE TABLE u (a INT) CLUSTERED BY (a) SORTED BY (nope) INTO 2 BUCKETS {MM}",
            "COLUMN_NOT_FOUND", at="nope")  # fmt: skip


def test_a_kind_of_table_that_hive_does_not_know_is_refused(acid):
    refused(acid, "CREATE TABLE t (a INT) TBLPROPERTIES ('transactional_properties'='mm')",
            "INVALID_PROPERTY_VALUE", at="t")  # fmt: skip
    acid.sql("CREATE TABLE t (a INT) TBLPROPERTIES ('Transactional_Properties'='INSERT_ONLY')")
    acid.sql("INSERT INTO t VALUES (1)")
    assert list(files(acid)) == ["delta_0000001_0000001_0000/000000_0"]


def test_create_as_select_and_like_make_insert_only_tables(acid):
    fill(acid, "s (id INT, v STRING)", "1, 'a'", "2, 'b'")
    acid.sql(f"CREATE TABLE t PARTITIONED BY (id) {MM} AS SELECT v, id FROM s")
    assert table(acid) == [("a", 1), ("b", 2)]
    assert set(files(acid)) == {
        "id=1/delta_0000001_0000001_0000/000000_0", "id=2/delta_0000001_0000001_0000/000000_0",
    }  # fmt: skip
    acid.sql("CREATE TABLE u LIKE t")
    acid.sql("INSERT INTO u SELECT * FROM t")
    assert table(acid, "u") == table(acid)
    assert {name[-9:-3] for name in files(acid, "u")} == {"/00000"}


def test_create_as_select_sorts_too(acid):
    acid.sql(f"CREATE TABLE t CLUSTERED BY (k) SORTED BY (id DESC) INTO 2 BUCKETS {MM} AS "
             "SELECT CAST(id AS INT) AS id, id % 5 AS k FROM range(20)")  # fmt: skip
    assert len(files(acid)) == 2
    for found in files(acid).values():
        assert found == sorted(found, reverse=True)


def test_an_insert_only_table_is_the_source_of_a_merge(mm):
    fill(mm, "full (id INT, v STRING)", "1, 'old'")
    mm.sql("INSERT INTO t VALUES (1, 'new'), (2, 'added')")
    merge = "MERGE INTO full USING t ON full.id = t.id AND full.row__id.rowid >= 0"
    found = counts(mm, f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert found == (1, 1, 0)
    assert table(mm, "full") == [(1, "new"), (2, "added")]


def test_a_multi_insert_writes_to_both_kinds_of_table(mm):
    fill(mm, "full (id INT)")
    mm.sql("FROM (SELECT 1 AS id, 'a' AS v) s INSERT INTO t SELECT id, v INSERT INTO t "
           "SELECT id + 1, v INSERT INTO full SELECT id")  # fmt: skip
    assert table(mm) == [(1, "a"), (2, "a")]
    assert table(mm, "full") == [(1,)]
    assert set(files(mm)) == {
        "delta_0000001_0000001_0000/000000_0", "delta_0000001_0000001_0001/000000_0",
    }  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    ["UPDATE t SET v = 'x'", "DELETE FROM t", "DELETE FROM t WHERE id = 1",
     "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"],
)  # fmt: skip
def test_rows_can_be_added_and_never_changed(mm, statement):
    error = refused(mm, statement, "UNSUPPORTED_FEATURE", at="t")
    assert "insert-only" in error.message
    assert "10414" in error.message


def test_statements_of_one_transaction_have_ids_and_can_be_undone(mm):
    with mm.transaction() as transaction:
        mm.sql("INSERT INTO t VALUES (1, 'a')")
        mm.sql("INSERT INTO t SELECT id + 1, v FROM t")
        transaction.savepoint("here")
        mm.sql("INSERT INTO t VALUES (99, 'undone')")
        assert len(table(mm)) == 3
        transaction.rollback("here")
        mm.sql("INSERT INTO t VALUES (3, 'c')")
    assert table(mm) == [(1, "a"), (2, "a"), (3, "c")]
    assert directories(mm) == [f"delta_0000001_0000001_000{n}" for n in (0, 1, 3)]


def test_what_is_rolled_back_was_never_there(mm):
    mm.sql("BEGIN")
    mm.sql("INSERT OVERWRITE t VALUES (1, 'a')")
    assert table(mm) == [(1, "a")]
    refused_again = "INSERT INTO t VALUES (2, 'b')"
    with pytest.raises(Exception, match="CHANGE_AFTER_OVERWRITE"):
        mm.sql(refused_again)
    mm.sql("ROLLBACK")
    assert table(mm) == []
    assert directories(mm) == []


def test_a_lazy_frame_keeps_what_it_was_made_from(mm):
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    frame = mm.table("t")
    mm.sql("INSERT OVERWRITE t VALUES (2, 'b')")
    assert [tuple(row) for row in frame.collect()] == [(1, "a")]


def test_not_null_is_kept(acid):
    acid.sql(f"CREATE TABLE t (id INT NOT NULL) {MM}")
    with pytest.raises(ConstraintError, match="'id' is NOT NULL"):
        acid.sql("INSERT INTO t SELECT nullif(id, 3) FROM range(5)")
    with pytest.raises(ConstraintError, match="'id' is NOT NULL"):
        acid.sql("INSERT INTO t VALUES (NULL)")
    assert directories(acid) == []


def test_row_ids_are_none(mm):
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(Exception, match="row__id"):
        mm.sql("SELECT row__id FROM t").collect()
    with pytest.raises(Exception, match="insert-only"):
        mm.table("t", row_id=True)


def test_fields_of_structs_are_found_whatever_is_pruned(acid):
    structs = "s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT, y: INT>>"
    acid.sql(f"CREATE TABLE t (id INT, {structs}) {MM}")
    acid.sql("INSERT INTO t SELECT 1, named_struct('a', 2, 'b', 'two'), "
             "array(named_struct('x', 3, 'y', 4))")  # fmt: skip
    assert rows(acid, "SELECT s.b FROM t") == [("two",)]
    assert rows(acid, "SELECT l.y FROM t") == [([4],)]
    assert rows(acid, "SELECT id FROM t WHERE s.b = 'two' AND l[0].y = 4") == [(1,)]
    acid.sql("ALTER TABLE t ADD COLUMNS (n STRUCT<p: INT, q: INT>)")
    acid.sql("INSERT INTO t (id, n) SELECT 2, named_struct('p', 5, 'q', 6)")
    assert rows(acid, "SELECT n.q FROM t") == [(6,), (None,)]
    assert rows(acid, "SELECT id, s.b FROM t") == [(1, "two"), (2, None)]


def test_added_columns_are_null_in_old_files(mm):
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    mm.sql("ALTER TABLE t ADD COLUMNS (n BIGINT)")
    mm.sql("INSERT INTO t VALUES (2, 'b', 3)")
    assert table(mm) == [(1, "a", None), (2, "b", 3)]
    assert rows(mm, "SELECT n FROM t") == [(3,), (None,)]


def test_all_types_come_back(acid):
    acid.sql(f"""CREATE TABLE t (a TINYINT, b SMALLINT, c BIGINT, d FLOAT, e DOUBLE,
        f DECIMAL(20, 3), g CHAR(4), h VARCHAR(5), i BINARY, j DATE, k TIMESTAMP,
        l BOOLEAN, m MAP<STRING, INT>, n ARRAY<DATE>, o STRUCT<p: TIMESTAMP, q: CHAR(2)>) {MM}""")
    values = """1Y, 2S, 3L, CAST(1.5 AS FLOAT), 2.5D, 1.234BD, 'ab', 'cd', X'00ff',
        DATE'1999-12-31', TIMESTAMP_NTZ'1960-02-03 04:05:06.7', true, map('k', 1),
        array(DATE'2000-01-01'),
        named_struct('p', TIMESTAMP_NTZ'2001-01-01 00:00:00', 'q', 'x')"""
    acid.sql(f"INSERT INTO t VALUES ({values})")
    acid.sql(f"INSERT INTO t SELECT {values}")
    acid.sql("CREATE TABLE full LIKE t TBLPROPERTIES ('transactional_properties'='default')")
    acid.sql(f"INSERT INTO full VALUES ({values}), ({values})")
    assert table(acid) == table(acid, "full")
    assert acid.table("t").schema == acid.table("full").schema
    assert len(rows(acid, "SELECT 1 FROM t WHERE g = 'ab' AND o.q = 'x '")) == 2


def test_files_says_what_is_visible(mm):
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    mm.sql("INSERT OVERWRITE t VALUES (2, 'b')")
    found = [(row.directory, row.file, row.state) for row in mm.files("t").collect()]
    assert found == [
        ("base_0000002", "000000_0", "visible"),
        ("delta_0000001_0000001_0000", "000000_0", HISTORY),
    ]


def test_sparks_own_reader_and_acidsqls_without_a_metastore_agree(mm, spark):
    import acidsql

    mm.sql("INSERT INTO t VALUES (1, 'a')")
    mm.sql("INSERT INTO t VALUES (2, 'b')")
    path = f"{mm.warehouse}/t"
    assert sorted(map(tuple, spark.read.orc(f"{path}/*").collect())) == table(mm)
    assert sorted(map(tuple, acidsql.read(spark, path, insert_only=True).collect())) == table(mm)


def test_literal_rows_cost_no_job(mm, spark):
    next_job = spark.sparkContext._jsc.sc().dagScheduler().nextJobId
    before = next_job()
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    assert next_job() == before
    assert table(mm) == [(1, "a")]


@needs("can_work")
def test_a_compaction_tells_how_many_bytes_it_reads(acid):
    acid.sql(f"CREATE TABLE t (id INT) {MM}")
    for number in (1, 2):
        acid.sql(f"INSERT INTO t VALUES ({number})")
    read = sum(path.stat().st_size for path in Path(acid.warehouse, "t").rglob("0*_0"))
    expected = f"2 directories, 2 files, {size_text(read)}"
    plan = acid.sql("EXPLAIN ALTER TABLE t COMPACT 'major'").first()[0]
    assert f"reads {expected}" in plan and f"frees {size_text(read)}" in plan
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    shown = acid.sql("SHOW COMPACTIONS t").first()
    assert OVER_HIVE or f"read {expected}" in str(shown)  # Hive keeps no word about a success


def test_files_that_lie_deeper_are_in_explain_and_in_statistics(mm):
    """Hive's UNION ALL writes such files."""
    mm.sql("INSERT INTO t VALUES (1, 'a')")
    delta = Path(mm.warehouse) / "t/delta_0000001_0000001_0000"
    deeper = delta / "HIVE_UNION_SUBDIR_1"
    deeper.mkdir()
    shutil.copy(delta / "000000_0", deeper)
    assert table(mm) == [(1, "a"), (1, "a")]
    plan = mm.sql("EXPLAIN SELECT * FROM t").first()[0]
    assert "delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_1: 1 file" in plan
    mm.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    size = (delta / "000000_0").stat().st_size
    assert f"{2 * size} bytes" in str(mm.last)
