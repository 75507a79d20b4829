"""LOAD DATA: files of other writers get into a table, and are not lost on the way."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyorc
import pytest
from kit import counts, directories, fill, refused, row_ids_are_unique, rows, table
from over_hive import OVER_HIVE, beside

from acidsql.errors import AcidSqlError, ConstraintError, WriteError
from acidsql.storage.writing import load

GOLDEN = Path(__file__).parent.parent / "golden"
MM = "TBLPROPERTIES ('transactional_properties'='insert_only')"


@pytest.fixture
def incoming(tmp_path):
    """A directory with two ORC files of other writers, and the other files that such writers
    leave."""
    directory = tmp_path / "incoming"
    directory.mkdir()
    put(directory / "part-00000-a.snappy.orc", [(1, "a"), (2, None)])
    put(directory / "part-00001-b.snappy.orc", [(3, "c")])
    (directory / "_SUCCESS").touch()
    (directory / "._SUCCESS.crc").write_bytes(b"crc")
    (directory / "part-00002-empty").touch()
    return directory


@pytest.fixture
def t(acid):
    """A session with a full-ACID table."""
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    return acid


def put(path, values, names=("id", "v")):
    columns = zip(*values, strict=True)
    kinds = [pa.int32(), pa.string()]
    arrays = [pa.array(list(c), kind) for c, kind in zip(columns, kinds, strict=True)]
    orc.write_table(pa.table(arrays, names=list(names)), path)


def names(directory):
    return sorted(path.name for path in Path(directory).iterdir())


def test_files_are_moved_into_a_delta_under_hives_names(t, incoming):
    t.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE t")
    assert table(t) == [(1, "a"), (2, None), (3, "c")]
    delta = Path(t.warehouse) / "t/delta_0000001_0000001_0000"
    assert names(delta) == ["000000_0", "000001_0", "_orc_acid_version"]
    assert names(incoming) == ["._SUCCESS.crc", "_SUCCESS", "part-00002-empty"]
    assert t.last.counts[0].inserted == 3
    assert t.last.write_ids == {"default.t": 1}
    trinos = "Trino reads the table after ALTER TABLE default.t COMPACT 'major'"
    assert t.last.notes == ((trinos,) if OVER_HIVE else ())


def test_rows_have_the_ids_that_hive_gives_them(t, incoming):
    fill(t, "u (id INT, v STRING)", "9, 'first'")
    t.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE u")
    found = t.sql("SELECT row__id.writeid, row__id.bucketid, row__id.rowid, id FROM u").collect()
    assert sorted(map(tuple, found)) == [
        (1, 536870912, 0, 9), (2, 536870912, 0, 1), (2, 536870912, 1, 2), (2, 536936448, 0, 3),
    ]  # fmt: skip
    row_ids_are_unique(t, "u")


def test_the_layout_is_that_of_hives_own_golden_table(acid, tmp_path):
    """The same statements as in tests/golden/load_data give the same directories and row ids."""
    source = tmp_path / "ld_000000_0"
    shutil.copy(GOLDEN / "load_data/data/delta_0000002_0000002_0000/000000_0", source)
    fill(acid, "t (id INT, name STRING)", "9, 'first'")
    acid.sql(f"LOAD DATA LOCAL INPATH '{source}' INTO TABLE t")
    acid.sql("DELETE FROM t WHERE id = 2")
    assert table(acid) == [(1, "a"), (3, "c"), (9, "first")]
    acid.sql(f"LOAD DATA LOCAL INPATH '{source}' OVERWRITE INTO TABLE t")
    acid.sql("UPDATE t SET name = 'U' WHERE id = 3")
    golden = GOLDEN / "load_data/data"
    assert set(directories(acid)) == {path.name for path in golden.iterdir()}
    found = acid.sql("SELECT row__id.writeid, row__id.bucketid, row__id.rowid, * FROM t").collect()
    assert sorted(map(tuple, found)) == [
        (4, 536870912, 0, 1, "a"), (4, 536870912, 1, 2, "b"), (5, 536870913, 0, 3, "U"),
    ]  # fmt: skip
    ours = Path(acid.warehouse) / "t"
    for part in ("base_0000004/000000_0", "delta_0000002_0000002_0000/000000_0"):
        assert (ours / part).read_bytes() == (golden / part).read_bytes()


def test_local_files_are_copied_and_stay(t, incoming):
    before = names(incoming)
    t.sql(f"LOAD DATA LOCAL INPATH 'file://{incoming}' INTO TABLE t")
    assert len(table(t)) == 3
    assert names(incoming) == before


def test_one_file_and_a_pattern(t, incoming):
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00001-b.snappy.orc' INTO TABLE t")
    assert table(t) == [(3, "c")]
    t.sql(f"LOAD DATA INPATH '{incoming}/part-*' INTO TABLE t")
    assert len(table(t)) == 3
    assert not list(incoming.glob("part-*.orc"))


def test_a_directory_that_alone_fits_a_pattern_counts_as_its_files(t, incoming):
    t.sql(f"LOAD DATA LOCAL INPATH '{incoming.parent}/{incoming.name[:-1]}*' INTO TABLE t")
    assert len(table(t)) == 3


def test_overwrite_replaces(t, incoming):
    t.sql("INSERT INTO t VALUES (9, 'old')")
    t.sql(f"LOAD DATA INPATH '{incoming}' OVERWRITE INTO TABLE t")
    assert table(t) == [(1, "a"), (2, None), (3, "c")]
    assert "base_0000002" in directories(t)


def test_what_is_loaded_is_changed_as_any_row(t, incoming):
    t.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE t")
    assert counts(t, "UPDATE t SET v = 'x' WHERE id = 2") == (0, 1, 0)
    assert counts(t, "DELETE FROM t WHERE id = 3") == (0, 0, 1)
    assert counts(
        t,
        "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'",
    ) == (0, 1, 0)
    assert table(t) == [(1, "m"), (2, "x")]


def test_a_partition_is_named_and_may_be_new(acid, incoming):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p STRING, q INT)")
    acid.sql(f"LOAD DATA LOCAL INPATH '{incoming}' INTO TABLE t PARTITION (q = 1 + 1, p = 'a/b')")
    assert table(acid) == [(1, "a", "a/b", 2), (2, None, "a/b", 2), (3, "c", "a/b", 2)]
    assert rows(acid, "SHOW PARTITIONS t") == [("p=a%2Fb/q=2",)]
    acid.sql(f"LOAD DATA LOCAL INPATH '{incoming}/part-00001-b.snappy.orc' OVERWRITE INTO TABLE t "
             "PARTITION (p = 'a/b', q = 2)")  # fmt: skip
    assert table(acid) == [(3, "c", "a/b", 2)]
    acid.sql("ALTER TABLE t DROP PARTITION (q = 2)")
    path = f"LOAD DATA LOCAL INPATH '{incoming}' INTO TABLE t"
    error = refused(acid, path, "INCOMPATIBLE_DATA_FOR_TABLE.LOADED_FILE")
    assert "has 2 columns, the table 4" in error.message
    refused(acid, f"{path} PARTITION (p = 'x')", "NEED_PARTITION")
    refused(acid, f"{path} PARTITION (p = 'x', q = 1, r = 2)", "PARTITION_COLUMN_NOT_FOUND")
    with pytest.raises(AcidSqlError, match="is no INT"):
        acid.sql(f"{path} PARTITION (p = 'x', q = 'nope')")
    assert table(acid) == []


@pytest.mark.parametrize("kind", ["", MM])
@pytest.mark.parametrize("local", ["", "LOCAL"])
def test_without_partition_the_last_columns_tell_it(acid, spark, tmp_path, local, kind):
    path = str(tmp_path / "written")
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY (p STRING, d DATE) {kind}")
    acid.sql("INSERT INTO t VALUES (9, 'a', DATE'2020-01-01'), (8, 'z', DATE'2020-01-01')")
    query = """SELECT CAST(id AS INT) id, elt(CAST(id % 3 + 1 AS INT), 'a', 'b/c', NULL) p,
        DATE'2020-01-01' d FROM range(6)"""
    spark.sql(query).write.orc(path)
    expected = [tuple(row) for row in spark.sql(query).collect()]
    old = table(acid)
    acid.sql(f"LOAD DATA LOCAL INPATH '{path}' INTO TABLE t")
    assert table(acid) == sorted(expected + old, key=repr)
    acid.sql(f"LOAD DATA {local} INPATH '{path}' OVERWRITE INTO TABLE t")
    assert table(acid) == sorted([*expected, *(row for row in old if row[1] == "z")], key=repr)
    assert bool(list(Path(path).glob("*.orc"))) == bool(local)


def test_rows_of_buckets_are_inserted_anew(acid, incoming):
    columns = "(id INT, v STRING) PARTITIONED BY (p INT) CLUSTERED BY (id) INTO 2 BUCKETS"
    for kind in ("", MM):
        acid.sql(f"CREATE TABLE t {columns} {kind}")
        acid.sql(f"CREATE TABLE u {columns} {kind}")
        for local in ("LOCAL", ""):
            copy = incoming.with_name("copy")
            shutil.copytree(incoming, copy)
            acid.sql(f"LOAD DATA {local} INPATH '{copy}' OVERWRITE INTO TABLE t PARTITION (p = 1)")
            assert bool(list(copy.glob("*.orc"))) == bool(local)
            shutil.rmtree(copy)
        acid.sql("INSERT INTO u VALUES (1, 'a', 1), (2, NULL, 1), (3, 'c', 1)")
        assert table(acid) == table(acid, "u")
        files = [
            {row.file: row.bytes for row in acid.files(name).collect() if row.state == "visible"}
            for name in ("t", "u")
        ]
        assert files[0].keys() == files[1].keys()
        acid.sql("DROP TABLE t")
        acid.sql("DROP TABLE u")


def test_not_null_is_kept(acid, incoming):
    acid.sql("CREATE TABLE t (id INT NOT NULL, v STRING)")
    acid.sql(f"LOAD DATA LOCAL INPATH '{incoming}' INTO TABLE t")
    assert len(table(acid)) == 3
    acid.sql("CREATE TABLE u (id INT, v STRING NOT NULL)")
    with pytest.raises(ConstraintError, match="'v' is NOT NULL"):
        acid.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE u")
    assert table(acid, "u") == []
    assert len(list(incoming.glob("*.orc"))) == 2


def test_an_insert_only_table_gets_the_files_too(acid, incoming):
    acid.sql(f"CREATE TABLE t (id INT, v STRING) {MM}")
    acid.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE t")
    acid.sql("INSERT INTO t VALUES (4, 'd')")
    assert table(acid) == [(1, "a"), (2, None), (3, "c"), (4, "d")]
    assert names(Path(acid.warehouse) / "t/delta_0000001_0000001_0000") == ["000000_0", "000001_0"]


def test_spark_writes_and_it_is_loaded(t, spark, tmp_path):
    path = str(tmp_path / "written")
    rows_of_spark = spark.range(0, 1000, 1, 3).selectExpr("CAST(id AS INT) id", "concat('v', id) v")
    rows_of_spark.write.orc(path)
    expected = sorted(map(tuple, rows_of_spark.collect()), key=repr)
    t.sql(f"LOAD DATA INPATH '{path}' INTO TABLE t")
    assert table(t) == expected
    # Hadoop's checksum files are deleted, too: they would be wrong for later files of the same
    # name.
    assert names(path) == ["._SUCCESS.crc", "_SUCCESS"]


def test_all_types_of_spark_come_back(acid, spark, tmp_path):
    kinds = {
        "a": "TINYINT", "b": "SMALLINT", "c": "BIGINT", "d": "FLOAT", "e": "DOUBLE",
        "f": "DECIMAL(20,3)", "g": "BINARY", "h": "DATE", "i": "BOOLEAN", "j": "TIMESTAMP",
        "k": "MAP<STRING,INT>", "l": "ARRAY<STRUCT<x: DATE, y: STRING>>",
    }  # fmt: skip
    acid.sql(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
    query = """SELECT 1Y a, 2S b, 3L c, CAST(1.5 AS FLOAT) d, 2.5D e,
        CAST(1.234 AS DECIMAL(20,3)) f, X'00ff' g, DATE'1999-12-31' h, true i,
        TIMESTAMP'2001-02-03 04:05:06.789' j,
        map('k', 1) k, array(named_struct('x', DATE'2000-01-01', 'y', 'z')) l"""
    path = str(tmp_path / "written")
    spark.sql(query).write.orc(path)
    acid.sql(f"LOAD DATA INPATH '{path}' INTO TABLE t")
    assert table(acid) == [tuple(row) for row in spark.sql(query).collect()]


def test_hives_nameless_columns_are_taken_by_position(t, incoming):
    put(incoming / "000000_0", [(7, "seven")], names=("_col0", "_col1"))
    t.sql(f"LOAD DATA INPATH '{incoming}/000000_0' INTO TABLE t")
    assert table(t) == [(7, "seven")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("struct<v:string,id:int>", "column 1 is called 'v', the table's 'id'"),
        ("struct<id:bigint,v:string>", "column 'id' is of type bigint, the table's of int"),
        ("struct<id:int>", "it has 1 columns, the table 2"),
        ("struct<id:int,v:string,w:int>", "it has 3 columns, the table 2"),
        ("struct<id:int,v:varchar(3)>", "of type varchar(3), the table's of string"),
        ("struct<id:int,v:uniontype<int,string>>", "of type uniontype"),
    ],
)
def test_a_file_of_other_columns_is_refused_though_hive_would_take_it(
    t, tmp_path, columns, message
):
    path = tmp_path / "odd.orc"
    with path.open("wb") as file, pyorc.Writer(file, columns):
        pass
    error = refused(t, f"LOAD DATA INPATH '{path}' INTO TABLE t",
                    "INCOMPATIBLE_DATA_FOR_TABLE.LOADED_FILE", at=f"'{path}'")  # fmt: skip
    assert message in error.message
    assert path.exists()


def test_what_is_no_orc_file_is_refused(t, tmp_path):
    (tmp_path / "x.csv").write_text("1,a\n")
    error = refused(t, f"LOAD DATA INPATH '{tmp_path}/x.csv' INTO TABLE t", "INCOMPATIBLE_DATA")
    assert "not an ORC file" in error.message


def test_an_acid_file_is_refused(t, tmp_path):
    t.sql("INSERT INTO t VALUES (1, 'a')")
    bucket = Path(t.warehouse) / "t/delta_0000001_0000001_0000/bucket_00000"
    shutil.copy(bucket, tmp_path / "000000_0")
    error = refused(
        t, f"LOAD DATA INPATH '{tmp_path}/000000_0' INTO TABLE t", "LOAD_DATA_ACID_FILE"
    )
    assert "10413" in error.message


@pytest.mark.parametrize("where", ["t", "t/delta_0000001_0000001_0000", "u", "../warehouse/u", "s"])
def test_the_files_of_a_table_are_not_taken_away(t, incoming, where):
    fill(t, f"u (id INT, v STRING) {MM}")
    t.sql(f"LOAD DATA LOCAL INPATH '{incoming}' INTO TABLE t")
    t.sql(f"LOAD DATA LOCAL INPATH '{incoming}' INTO TABLE u")
    (Path(t.warehouse) / "s").symlink_to(Path(t.warehouse) / "u/delta_0000001_0000001_0000")
    path = f"{t.warehouse}/{where}"
    if where == "s":
        path += "/000000_0"
    with pytest.raises(AcidSqlError):
        t.sql(f"LOAD DATA INPATH '{path}' INTO TABLE t")
    assert len(table(t)) == len(table(t, "u")) == 3


@pytest.mark.parametrize(
    ("path", "condition"),
    [
        ("/nowhere/at/all", "LOAD_DATA_PATH_NOT_EXISTS"), ("relative", "LOAD_DATA_INVALID_PATH"),
        ("oss://bucket/x", "UNSUPPORTED_FEATURE"),
    ],
)  # fmt: skip
def test_a_path_with_nothing_to_load_is_refused(t, path, condition):
    with pytest.raises(AcidSqlError) as caught:
        t.sql(f"LOAD DATA INPATH '{path}' INTO TABLE t")
    assert caught.value.condition.startswith(condition)


def test_directories_in_a_directory_are_refused(t, incoming):
    (incoming / "deeper").mkdir()
    error = refused(t, f"LOAD DATA INPATH '{incoming}' INTO TABLE t", "LOAD_DATA_PATH_NOT_EXISTS")
    assert "'deeper'" in error.message


def test_files_stay_until_commit_and_after_rollback(t, incoming):
    t.sql("BEGIN")
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00000*' INTO TABLE t")
    assert len(table(t)) == 2
    assert len(list(incoming.glob("*.orc"))) == 2
    t.sql("ROLLBACK")
    assert table(t) == []
    t.sql("BEGIN")
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00000*' INTO TABLE t")
    t.sql("SAVEPOINT a")
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00001*' INTO TABLE t")
    t.sql("ROLLBACK TO a")
    t.sql("COMMIT")
    assert table(t) == [(1, "a"), (2, None)]
    assert [path.name for path in incoming.glob("*.orc")] == ["part-00001-b.snappy.orc"]


def test_a_file_that_changed_since_it_was_loaded_is_not_removed(t, incoming):
    path = incoming / "part-00001-b.snappy.orc"
    t.sql("BEGIN")
    t.sql(f"LOAD DATA INPATH '{path}' INTO TABLE t")
    put(path, [(4, "new")])
    t.sql("COMMIT")
    assert table(t) == [(3, "c")]
    assert path.exists()


def test_a_file_that_changes_while_it_is_copied_is_not_loaded(t, incoming, monkeypatch):
    examine = load.examine

    def then_change(*args):
        found = examine(*args)
        put(incoming / "part-00001-b.snappy.orc", [(4, "new"), (5, "newer")])
        return found

    monkeypatch.setattr(load, "examine", then_change)
    with pytest.raises(WriteError, match="was changed or taken away"):
        t.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE t")
    assert table(t) == []
    assert len(list(incoming.glob("*.orc"))) == 2


def test_of_two_that_load_the_same_files_one_does(t, spark, incoming, monkeypatch):
    """The second statement waits for the first, and then finds no files."""

    outcomes, remove = [], load.delete_sources

    def second():
        with beside(t) as other:
            try:
                other.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE t")
                outcomes.append("loaded")
            except AcidSqlError as error:
                outcomes.append(error.condition)

    thread = threading.Thread(target=second)

    def slowly(sources):
        # The first statement has committed, and the files still exist.
        thread.start()
        thread.join(4)
        return remove(sources)

    with monkeypatch.context() as patch:
        patch.setattr(load, "delete_sources", slowly)
        t.sql(f"LOAD DATA INPATH '{incoming}' INTO TABLE t")
    thread.join(60)
    assert outcomes == ["LOAD_DATA_PATH_NOT_EXISTS"]
    assert len(table(t)) == 3


def test_the_place_that_files_are_taken_from_is_locked(t, incoming):
    t.sql("BEGIN")
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00000*' INTO TABLE t")
    t.sql(f"LOAD DATA LOCAL INPATH '{incoming}/part-00001*' INTO TABLE t")
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00001*' INTO TABLE t")
    locks = [row for row in t.sql("SHOW LOCKS").collect() if row.lock_type == "EXCLUSIVE"]
    (lock,) = {(row.database, row.table.rpartition("#")[0]) for row in locks}
    assert lock == ("(files)", str(incoming)[-80:])
    t.sql("ROLLBACK")
    assert t.sql("SHOW LOCKS").count() == 0


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_what_is_loaded_is_not_adopted_meanwhile(t, spark, incoming, monkeypatch, levels):
    """CREATE … LOCATION of the directory, or of one around it, waits until the files are gone."""

    place = incoming.joinpath(*(f"p{n}=1" for n in range(levels)))
    place.mkdir(parents=True, exist_ok=True)
    for file in incoming.glob("*.orc"):
        file.rename(place / file.name)
    (incoming / "part-00002-empty").unlink()
    columns = ", ".join(f"p{n} INT" for n in range(levels))
    by = f"PARTITIONED BY ({columns})" if levels else ""

    def adopt():
        with beside(t) as other:
            other.sql(f"CREATE TABLE x (id INT, v STRING) {by} LOCATION '{incoming}'")

    thread, remove = threading.Thread(target=adopt), load.delete_sources

    def slowly(sources):
        thread.start()
        thread.join(3)
        assert "x" not in t.metastore.tables("default")
        return remove(sources)

    with monkeypatch.context() as patch:
        patch.setattr(load, "delete_sources", slowly)
        t.sql(f"LOAD DATA INPATH '{place}' INTO TABLE t")
    thread.join(60)
    assert len(table(t)) == 3
    assert table(t, "x") == []


def test_a_source_that_cannot_be_removed_is_told(t, incoming, monkeypatch):
    def fail(*_):
        raise PermissionError(13, "no")

    monkeypatch.setattr("acidsql.storage.files.filesystem.LocalFileSystem.delete_file", fail)
    t.sql(f"LOAD DATA INPATH '{incoming}/part-00001*' INTO TABLE t")
    assert table(t) == [(3, "c")]
    assert "could not be removed" in t.last.notes[0]


def test_explain_and_read_only(t, incoming):
    statement = f"LOAD DATA INPATH '{incoming}' INTO TABLE t"
    assert "Execute LoadData" in t.sql(f"EXPLAIN {statement}").collect()[0][0]
    t.sql("BEGIN READ ONLY")
    with pytest.raises(AcidSqlError, match="READ_ONLY"):
        t.sql(statement)
    t.sql("ROLLBACK")
    assert len(list(incoming.glob("*.orc"))) == 2


def test_a_table_of_sparks_is_loaded_by_spark(t, spark, incoming):
    refused(t, f"LOAD DATA INPATH '{incoming}' INTO TABLE nobodys", "TABLE_OR_VIEW_NOT_FOUND")
