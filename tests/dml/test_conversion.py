"""Plain ORC files and insert-only tables become full-ACID tables; TBLPROPERTIES in general."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from kit import counts, fill, refused, row_ids_are_unique, rows, table
from over_hive import OVER_HIVE_3, needs

from acidsql.errors import AcidSqlError, CatalogError
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.writing import adopt

GOLDEN = Path(__file__).parent.parent / "golden"
MM = "TBLPROPERTIES ('transactional_properties'='insert_only')"


def put(path, ids, names=("id", "v")):
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = [pa.array(ids, pa.int32()), pa.array([f"v{i}" for i in ids])]
    orc.write_table(pa.table(arrays, names=list(names)), path)


def names(directory):
    return sorted(path.name for path in Path(directory).iterdir())


# ── CREATE TABLE … LOCATION over plain files ─────────────────────────────────────────────────


@needs("given write ids")
def test_sparks_files_are_renamed_and_are_full_acid_from_then_on(acid, spark, tmp_path):
    path = str(tmp_path / "plain")
    spark.range(0, 90, 1, 3).selectExpr("CAST(id AS INT) id", "concat('v', id) v").write.orc(path)
    acid.sql(f"CREATE TABLE t (id INT, v STRING) LOCATION '{path}'")
    assert [name for name in names(path) if name[0] not in "._"] == [
        "000000_0", "000001_0", "000002_0",
    ]  # fmt: skip
    assert "renamed 3 files" in acid.last.notes[-1]
    assert acid.sql("SELECT count(*), sum(id) FROM t").collect()[0] == (90, 4005)
    row_ids_are_unique(acid, "t")
    assert counts(acid, "UPDATE t SET v = 'x' WHERE id = 89") == (0, 1, 0)
    assert acid.last.write_ids == {"default.t": 10_000_001}
    assert counts(acid, "DELETE FROM t WHERE id < 80") == (0, 0, 80)
    assert len(table(acid)) == 10
    assert spark.read.orc(f"{path}/0*").count() == 90, "plain readers still find the files"


@needs("given write ids")
def test_files_in_partitions_are_numbered_in_each(acid, spark, tmp_path):
    path = str(tmp_path / "plain")
    frame = spark.range(0, 20, 1, 2).selectExpr("CAST(id AS INT) id", "CAST(id % 2 AS INT) k")
    frame.write.partitionBy("k").orc(path)
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY (k INT) LOCATION '{path}'")
    assert rows(acid, "SHOW PARTITIONS t") == [("k=0",), ("k=1",)]
    assert {name for name in names(f"{path}/k=1") if name[0] != "."} == {"000000_0", "000001_0"}
    assert sorted(acid.sql("SELECT id FROM t WHERE k = 1").toPandas()["id"]) == list(
        range(1, 20, 2)
    )
    acid.sql("DELETE FROM t WHERE id > 3")
    assert table(acid) == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_a_partitioned_directory_that_is_not_said_to_be_one_is_refused(acid, spark, tmp_path):
    path = str(tmp_path / "plain")
    spark.range(3).selectExpr("id", "id k").write.partitionBy("k").orc(path)
    with pytest.raises(CatalogError, match="say PARTITIONED BY"):
        acid.sql(f"CREATE TABLE t (id BIGINT) LOCATION '{path}'")
    assert acid.sql("SHOW TABLES LIKE 't'").collect() == []


@needs("given write ids")
def test_what_lies_beside_partitions_is_not_passed_over(acid, tmp_path):
    put(tmp_path / "plain" / "k=1" / "part-0.orc", [1])
    put(tmp_path / "plain" / "part-0.orc", [2])
    create = f"CREATE TABLE t (id INT, v STRING) PARTITIONED BY (k INT) LOCATION '{tmp_path}/plain'"
    with pytest.raises(CatalogError, match="is in no partition"):
        acid.sql(create)
    (tmp_path / "plain" / "part-0.orc").unlink()
    acid.sql(create)
    assert table(acid) == [(1, "v1", 1)]


@needs("given write ids")
def test_hives_own_names_are_kept(acid, tmp_path):
    path = tmp_path / "plain"
    put(path / "000000_0", [1, 2])
    put(path / "000000_0_copy_1", [3])
    put(path / "000004_0", [4])
    put(path / "HIVE_UNION_SUBDIR_1" / "000000_0", [5])
    acid.sql(f"CREATE TABLE t (id INT, v STRING) LOCATION '{path}'")
    assert names(path) == ["000000_0", "000000_0_copy_1", "000004_0", "HIVE_UNION_SUBDIR_1"]
    found = acid.sql("SELECT row__id.bucketid, row__id.rowid, id FROM t").collect()
    assert sorted(map(tuple, found)) == [
        (536870912, 0, 1), (536870912, 1, 2), (536870912, 2, 3), (536870912, 3, 5),
        (537133056, 0, 4),
    ]  # fmt: skip


@needs("given write ids")
def test_new_numbers_go_on_above_those_that_are_there(acid, tmp_path):
    path = tmp_path / "plain"
    put(path / "000007_0", [1])
    put(path / "part-b.orc", [3])
    put(path / "part-a.orc", [2])
    put(path / "deeper" / "part-c.orc", [4])
    (path / "_SUCCESS").touch()
    (path / "part-empty").touch()
    acid.sql(f"CREATE TABLE t (id INT, v STRING) LOCATION '{path}'")
    assert names(path) == ["000007_0", "000009_0", "000010_0", "_SUCCESS", "deeper", "part-empty"]
    assert names(path / "deeper") == ["000008_0"]
    assert [row[0] for row in table(acid)] == [1, 2, 3, 4]


def test_more_files_than_bucket_ids_are_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(adopt, "BUCKET_ID_MAX", 2)
    for number in range(7):
        put(tmp_path / f"part-{number}", [number])
    fs = LocalFileSystem()
    assert adopt.rename_originals(fs, adopt.list_contents(fs, str(tmp_path))) == 7
    assert names(tmp_path) == [
        "000000_0", "000000_0_copy_1", "000000_0_copy_2", "000001_0", "000001_0_copy_1",
        "000002_0", "000002_0_copy_1",
    ]  # fmt: skip


@pytest.mark.parametrize("done", range(4))
def test_renaming_that_was_stopped_goes_on_to_the_same_names(tmp_path, monkeypatch, done):
    for number in range(4):
        put(tmp_path / f"part-{number}", [number])
    fs, left = LocalFileSystem(), [done]
    rename = LocalFileSystem.rename_file

    def stop(self, source, target):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        rename(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "rename_file", stop)
        with pytest.raises(KeyboardInterrupt):
            adopt.rename_originals(fs, adopt.list_contents(fs, str(tmp_path)))
    assert len(names(tmp_path)) == 4, "each has one name at each moment"
    adopt.rename_originals(fs, adopt.list_contents(fs, str(tmp_path)))
    for number in range(4):
        assert orc.read_table(tmp_path / f"00000{number}_0").to_pylist()[0]["id"] == number


@needs("given write ids")
def test_beside_deltas_nothing_is_renamed(acid, tmp_path):
    path = tmp_path / "acid"
    shutil.copytree(GOLDEN / "original_files" / "data", path)
    put(path / "part-0.orc", [77], names=("id", "name"))
    with pytest.raises(CatalogError, match="part-0.orc' has no bucket id in its name"):
        acid.sql(f"CREATE TABLE t (id INT, name STRING) LOCATION '{path}'")
    (path / "part-0.orc").unlink()
    acid.sql(f"CREATE TABLE t (id INT, name STRING) LOCATION '{path}'")
    assert "original files" in acid.last.notes[0]
    assert len(table(acid)) > 0


@needs("given write ids")
def test_buckets_are_believed_only_by_hives_names(acid, tmp_path):
    path = tmp_path / "plain"
    put(path / "part-00000_00000.c000.orc", [1])
    sql = f"(id INT, v STRING) CLUSTERED BY (id) INTO 2 BUCKETS LOCATION '{path}'"
    with pytest.raises(CatalogError, match="is in no bucket"):
        acid.sql(f"CREATE TABLE t {sql}")
    shutil.move(path / "part-00000_00000.c000.orc", path / "000002_0")
    with pytest.raises(CatalogError, match="is in no bucket"):
        acid.sql(f"CREATE TABLE t {sql}")
    shutil.move(path / "000002_0", path / "000000_0")
    acid.sql(f"CREATE TABLE t {sql}")
    assert table(acid) == [(1, "v1")]


@needs("given write ids")
def test_what_does_not_fit_is_refused_before_anything_is_renamed(acid, tmp_path):
    path = tmp_path / "plain"
    put(path / "part-0.orc", [1])
    create = f"LOCATION '{path}'"
    for columns, message in [
        ("(id INT)", "has 2 columns, the table 1"),
        ("(id DATE, v STRING)", "column 'id' is of type int, the table's 'id' of date"),
    ]:
        with pytest.raises(CatalogError, match=message):
            acid.sql(f"CREATE TABLE t {columns} {create}")
    (path / "notes.txt").write_text("hello")
    with pytest.raises(CatalogError, match=r"notes\.txt' cannot be a table's: not an ORC file"):
        acid.sql(f"CREATE TABLE t (id INT, v STRING) {create}")
    assert names(path) == ["notes.txt", "part-0.orc"]
    (path / "notes.txt").unlink()
    acid.sql(f"CREATE TABLE t (number BIGINT, v STRING, later DATE) {create}")
    assert "matched by position" in acid.last.notes[1]
    assert table(acid) == [(1, "v1", None)]


def test_an_insert_only_table_does_not_take_plain_files(acid, tmp_path):
    put(tmp_path / "plain" / "000000_0", [1])
    with pytest.raises(CatalogError, match="LOAD DATA"):
        acid.sql(f"CREATE TABLE t (id INT, v STRING) {MM} LOCATION '{tmp_path}/plain'")


def test_an_insert_only_directory_of_hives_is_adopted_as_such(acid, tmp_path):
    path = tmp_path / "mm"
    shutil.copytree(GOLDEN / "insert_only" / "data", path)
    acid.sql(f"CREATE TABLE t (id INT, name STRING) {MM} LOCATION '{path}'")
    before = table(acid)
    assert len(before) == 7
    acid.sql("INSERT INTO t VALUES (100, 'ours')")
    assert acid.last.write_ids == {"default.t": 6}
    assert len(table(acid)) == 8


# ── insert-only → full ACID ──────────────────────────────────────────────────────────────────


@needs("full ACID in place")
def test_an_insert_only_table_becomes_full_acid_in_place(acid):
    fill(acid, f"t (id INT, v STRING) {MM}")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    acid.sql("INSERT OVERWRITE t SELECT id + 10, v FROM t")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'c' FROM range(0, 4, 1, 2)")
    before = table(acid)
    old_files = {row.file for row in acid.files("t").collect()}
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('Transactional_Properties' = 'DEFAULT', 'k' = 'v')")
    assert table(acid) == before
    assert {row.file for row in acid.files("t").collect()} == old_files
    row_ids_are_unique(acid, "t")
    assert counts(acid, "UPDATE t SET v = 'x' WHERE id = 12") == (0, 1, 0)
    assert counts(acid, "DELETE FROM t WHERE id IN (0, 3, 11)") == (0, 0, 3)
    acid.sql("INSERT INTO t VALUES (9, 'new')")
    assert table(acid) == [(1, "c"), (12, "x"), (2, "c"), (9, "new")]
    properties = dict(rows(acid, "SHOW TBLPROPERTIES t"))
    assert (properties["transactional_properties"], properties["k"]) == ("default", "v")


@needs("full ACID in place")
def test_an_empty_base_of_an_insert_only_table_stays_empty(acid):
    fill(acid, f"t (id INT) PARTITIONED BY (p INT) {MM}", "1, 1", "2, 2")
    acid.sql("TRUNCATE TABLE t PARTITION (p = 1)")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('transactional_properties' = 'default')")
    assert table(acid) == [(2, 2)]
    acid.sql("MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert table(acid) == []


@needs("full ACID in place")
def test_buckets_of_an_insert_only_table_are_those_of_a_full_acid_one(acid):
    fill(acid, f"t (id INT, v STRING) CLUSTERED BY (id) INTO 3 BUCKETS {MM}")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'x' FROM range(20)")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('transactional_properties' = 'default')")
    acid.sql("CREATE TABLE u LIKE t")
    acid.sql("INSERT INTO u SELECT * FROM t")
    buckets = "SELECT id, row__id.bucketid FROM "
    assert rows(acid, f"{buckets} t") == rows(acid, f"{buckets} u")


def test_what_a_full_acid_reader_would_not_see_is_not_converted(acid):
    convert = "ALTER TABLE t SET TBLPROPERTIES ('transactional_properties' = 'default')"
    fill(acid, f"t (id INT, v STRING) {MM}", "1, 'a'")
    deeper = Path(acid.warehouse) / "t/delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_1"
    put(deeper / "000000_0", [2])
    assert len(table(acid)) == 2
    with pytest.raises(CatalogError, match="HIVE_UNION_SUBDIR_1' would mean something else"):
        acid.sql(convert)
    shutil.rmtree(deeper)
    put(Path(acid.warehouse) / "t/000000_0", [3])
    with pytest.raises(CatalogError, match="would mean something else"):
        acid.sql(convert)
    assert table(acid) == [(1, "a")]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'transactional' = 'false'", "stays transactional"),
        ("'transactional_properties' = 'mm'", "not 'mm'"),
        ("'transactional_properties' = 'insert_only'", "cannot be changed"),
        ("'bucketing_version' = '1'", "cannot be changed"),
    ],
)
def test_a_full_acid_table_stays_so(acid, properties, message):
    acid.sql("CREATE TABLE t (id INT)")
    error = refused(acid, f"ALTER TABLE t SET TBLPROPERTIES ({properties})", "",
                    at=f"({properties})")  # fmt: skip
    assert message in error.message


def test_sorted_buckets_keep_a_table_insert_only(acid):
    acid.sql(f"CREATE TABLE t (id INT) CLUSTERED BY (id) SORTED BY (id) INTO 2 BUCKETS {MM}")
    with pytest.raises(AcidSqlError, match="10298"):
        acid.sql("ALTER TABLE t SET TBLPROPERTIES ('transactional_properties' = 'default')")


# ── TBLPROPERTIES ────────────────────────────────────────────────────────────────────────────


def test_properties_are_set_and_unset(acid):
    acid.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('a' = '1', 'B' = '2')")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('c.d' = 'x', 'transactional' = 'TRUE')")
    acid.sql("ALTER TABLE t UNSET TBLPROPERTIES ('a', c.d)")
    acid.sql("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('nothing', 'B')")
    # Hive 3.1 cannot read acidsql's own default.
    compression = {"orc.compress": "ZLIB"} if OVER_HIVE_3 else {}
    assert dict(rows(acid, "SHOW TBLPROPERTIES t")) == {
        "transactional": "true", "transactional_properties": "default", "bucketing_version": "2",
        **compression,
    }  # fmt: skip
    with pytest.raises(AcidSqlError, match="no property 'a'") as caught:
        acid.sql("ALTER TABLE t UNSET TBLPROPERTIES ('a')")
    assert caught.value.condition == "UNSET_NONEXISTENT_PROPERTIES"
    with pytest.raises(AcidSqlError, match="cannot be unset"):
        acid.sql("ALTER TABLE t UNSET TBLPROPERTIES ('transactional')")


def test_a_table_of_sparks_is_not_converted_by_a_property_that_spark_ignores(acid, spark):
    spark.sql("CREATE TABLE plain (id INT) USING orc")
    try:
        error = refused(acid, "ALTER TABLE plain SET TBLPROPERTIES ('transactional' = 'true')",
                        "UNSUPPORTED_FEATURE", at="plain")  # fmt: skip
        assert "LOCATION" in error.message
        acid.sql("ALTER TABLE plain SET TBLPROPERTIES ('k' = 'v')")
        shown = spark.sql("SHOW TBLPROPERTIES plain ('k')").collect()[0]
        assert shown.value == "v"
    finally:
        spark.sql("DROP TABLE plain")
