"""The owner of a directory: no statement takes, empties or shares a directory of another table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from over_hive import needs
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidSqlError, CatalogError


def rows(acid: Any, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in acid.sql(f"SELECT * FROM {table}").collect())


def place(acid: Any, table: str) -> str:
    return str(acid._table(table).location)


def refused(acid: Any, text: str) -> str | None:
    with pytest.raises(AcidSqlError) as raised:
        acid.sql(text)
    return raised.value.condition


@pytest.fixture
def ext(acid: Any, tmp_path: Path) -> Path:
    """A directory outside of the warehouse. It has the table x with the row 1."""
    directory = tmp_path / "ext"
    directory.mkdir()
    acid.sql(f"CREATE TABLE x (id INT) LOCATION '{directory}/x'")
    acid.sql("INSERT INTO x VALUES (1)")
    return directory


@pytest.fixture
def adopted(acid: Any, spark: SparkSession, ext: Path) -> Path:
    """The directory of the table f. Its rows 1 and 2 are in plain files that Spark wrote."""
    spark.range(1, 3).coalesce(1).write.orc(f"{ext}/f")
    acid.sql(f"CREATE TABLE f (id BIGINT) LOCATION '{ext}/f'")
    acid.sql("CREATE TABLE y (id BIGINT)")
    return ext / "f"


# ── LOAD DATA ────────────────────────────────────────────────────────────────────────────────

OWNED = "UNSUPPORTED_FEATURE.LOAD_DATA_OF_TABLE"


def test_load_data_takes_no_files_of_a_table_that_lies_elsewhere(acid, adopted):
    for path in (adopted, f"{adopted}/*", f"{adopted}/000000_0"):
        assert refused(acid, f"LOAD DATA INPATH '{path}' INTO TABLE y") == OWNED
    assert rows(acid, "f") == [(1,), (2,)]


def test_load_data_takes_no_files_of_a_renamed_table(acid, adopted):
    acid.sql("ALTER TABLE f RENAME TO g")
    assert refused(acid, f"LOAD DATA INPATH '{adopted}' INTO TABLE y") == OWNED
    assert rows(acid, "g") == [(1,), (2,)]


def test_load_data_takes_no_files_of_a_table_through_a_link(acid, adopted, tmp_path):
    (tmp_path / "link").symlink_to(adopted)
    (tmp_path / "above").symlink_to(adopted.parent)
    for path in ("link", "link/*", "above/f", "above/../ext/f", "above//f"):
        assert refused(acid, f"LOAD DATA INPATH '{tmp_path}/{path}' INTO TABLE y") == OWNED
    assert rows(acid, "f") == [(1,), (2,)]


def test_load_data_takes_no_files_of_a_table_that_was_moved_and_linked(acid, adopted, tmp_path):
    os.rename(adopted, tmp_path / "moved")
    adopted.symlink_to(tmp_path / "moved")
    assert refused(acid, f"LOAD DATA INPATH '{tmp_path}/moved' INTO TABLE y") == OWNED
    assert rows(acid, "f") == [(1,), (2,)]


def test_load_data_takes_what_lies_beside_tables(acid, spark, adopted, tmp_path):
    spark.range(5, 6).coalesce(1).write.orc(str(adopted.parent / "ff"))
    acid.sql(f"LOAD DATA INPATH '{adopted.parent}/ff' INTO TABLE y")
    assert rows(acid, "y") == [(5,)]


# ── one directory, one table ─────────────────────────────────────────────────────────────────

TAKEN, BAD = "LOCATION_ALREADY_EXISTS", "INVALID_LOCATION"


@pytest.mark.parametrize(
    "other", ["ext/y/../x", "/ext/x", "./ext/x", "ext//x/", "above/x", "ext/x/in", "ext"]
)
def test_a_place_has_one_table_however_it_is_written(acid, ext, tmp_path, other):
    (ext / "y").mkdir()
    (tmp_path / "above").symlink_to(ext)
    for scheme in ("", "file:", "file://"):
        location = f"{scheme}{tmp_path}/{other}"
        assert refused(acid, f"CREATE TABLE z (id INT) LOCATION '{location}'") == TAKEN
    assert rows(acid, "x") == [(1,)]


def test_a_place_with_two_slashes_in_front_is_the_same(acid, ext):
    assert refused(acid, f"CREATE TABLE z (id INT) LOCATION '/{ext}/x'") == TAKEN


def test_a_link_is_no_place_for_a_table(acid, ext, tmp_path):
    (tmp_path / "link").symlink_to(ext / "free")
    with pytest.raises(CatalogError, match=f"{ext}/free") as raised:
        acid.sql(f"CREATE TABLE z (id INT) LOCATION '{tmp_path}/link/'")
    assert raised.value.condition == BAD
    assert not (ext / "free").exists()


@pytest.mark.parametrize(
    "location", ["", "/", "//", "file:/", "x", "./x", "file:x", "/a/..", "/a\nb", "/a\x00b"]
)
def test_what_is_no_place_is_refused(acid, location):
    text = location.replace("\n", "\\n").replace("\x00", "\\u0000")
    assert refused(acid, f"CREATE TABLE z (id INT) LOCATION '{text}'") == BAD
    assert refused(acid, f"CREATE DATABASE z LOCATION '{text}'") == BAD


def test_what_is_refused_leaves_the_files_as_they_are(acid, spark, ext):
    spark.range(1).coalesce(1).write.orc(f"{ext}/x/../w")
    before = sorted(os.listdir(ext / "w"))
    acid.sql(f"CREATE TABLE w2 (id INT) LOCATION '{ext}/w/deep'")
    assert refused(acid, f"CREATE TABLE w (id BIGINT) LOCATION '{ext}/w'") == TAKEN
    assert [name for name in sorted(os.listdir(ext / "w")) if name != "deep"] == before


@needs("a warehouse of its own")
def test_the_warehouse_is_one_by_whatever_path_it_is_opened(acid, spark, tmp_path):
    (tmp_path / "wh").symlink_to(tmp_path / "warehouse")
    with acidsql.connect(spark, warehouse=f"{tmp_path}/wh/../wh/", compactor="off") as other:
        assert other.warehouse == acid.warehouse
        other.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    assert place(acid, "t") == f"{tmp_path}/warehouse/t"


# ── names ────────────────────────────────────────────────────────────────────────────────────

NAMES = [
    "../evil", "zz/../e1", "a/b", "a\nb", ".a", "a.b", "x=1", "a b", "", "a%2Fb", "größe", "a-b",
    "x" * 129,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_hive_and_spark_refuse_is_refused(acid, name, tmp_path):
    acid.sql("CREATE TABLE e1 AS SELECT 1 AS id")
    before = sorted(path for path in tmp_path.rglob("*") if ".acidsql" not in path.parts)
    bad = "INVALID_SCHEMA_OR_RELATION_NAME"
    for text in (
        f"CREATE TABLE `{name}` (id INT)", f"CREATE TABLE `{name}` AS SELECT 1 AS id",
        f"CREATE TABLE `{name}` LIKE e1", f"ALTER TABLE e1 RENAME TO `{name}`",
        f"CREATE DATABASE `{name}`", f"CREATE TABLE `{name}` (id INT) LOCATION '{tmp_path}/n'",
    ):  # fmt: skip
        condition = refused(acid, text)
        assert condition == bad or (not name and condition == "PARSE_SYNTAX_ERROR"), text
    assert before == sorted(path for path in tmp_path.rglob("*") if ".acidsql" not in path.parts)


@pytest.mark.parametrize("name", ["_a", "__", "base_5", "delta_0000001_0000001", "1", "t_1"])
def test_a_name_that_hive_and_spark_take_gets_a_safe_directory(acid, name):
    acid.sql(f"CREATE TABLE `{name}` (id INT) ")
    acid.sql(f"INSERT INTO `{name}` VALUES (1)")
    directory = Path(place(acid, f"`{name}`"))
    assert directory.parent == Path(acid.warehouse)
    assert directory.name.lstrip("_.") == directory.name
    assert not directory.name.startswith(("base_", "delta_"))
    acid.sql(f"UPDATE `{name}` SET id = 2")
    assert rows(acid, f"`{name}`") == [(2,)]
    acid.sql(f"DROP TABLE `{name}`")
    assert not directory.exists()


# ── links ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A directory that belongs to no table, with a file in a subdirectory."""
    directory = tmp_path / "far"
    (directory / "delta_0000001_0000001_0000").mkdir(parents=True)
    (directory / "delta_0000001_0000001_0000" / "bucket_00000").write_text("precious")
    (directory / "inner").mkdir()
    (directory / "inner" / "file").write_text("precious")
    return directory


def untouched(far: Path) -> bool:
    files = [far / "delta_0000001_0000001_0000" / "bucket_00000", far / "inner" / "file"]
    return all(path.read_text() == "precious" for path in files)


@pytest.mark.parametrize("name", ["link", "k=1", "delta_0000009_0000009_0000", "_tmp", "000000_0"])
def test_drop_removes_a_link_and_nothing_behind_it(acid, ext, far, name):
    (ext / "x" / name).symlink_to(far)
    (ext / "x" / "deep").mkdir()
    (ext / "x" / "deep" / "file").symlink_to(far / "inner" / "file")
    acid.sql("DROP TABLE x")
    assert untouched(far)
    assert not (ext / "x").exists()


def test_drop_of_a_table_whose_directory_has_become_a_link_removes_the_link(acid, ext, tmp_path):
    os.rename(ext / "x", tmp_path / "moved")
    (ext / "x").symlink_to(tmp_path / "moved")
    assert rows(acid, "x") == [(1,)]
    before = sorted((tmp_path / "moved").rglob("*"))
    acid.sql("DROP TABLE x")
    assert sorted((tmp_path / "moved").rglob("*")) == before
    assert not os.path.lexists(ext / "x")


def test_drop_partition_removes_the_link_and_nothing_behind_it(acid, tmp_path):
    acid.sql("CREATE TABLE p (id INT) PARTITIONED BY (k INT)")
    acid.sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    os.rename(f"{place(acid, 'p')}/k=1", tmp_path / "moved")
    Path(f"{place(acid, 'p')}/k=1").symlink_to(tmp_path / "moved")
    assert rows(acid, "p") == [(1, 1), (2, 2)]
    before = os.listdir(tmp_path / "moved")
    acid.sql("ALTER TABLE p DROP PARTITION (k = 1)")
    assert rows(acid, "p") == [(2, 2)]
    assert set(os.listdir(tmp_path / "moved")) >= set(before)
    assert not os.path.lexists(f"{place(acid, 'p')}/k=1")


@needs("can_clean")
@pytest.mark.parametrize("linked", ["", "k=1"])
def test_the_cleaner_removes_nothing_behind_a_link(acid, tmp_path, linked):
    acid.sql("CREATE TABLE p (id INT) PARTITIONED BY (k INT)")
    for number in range(3):
        acid.sql(f"INSERT INTO p VALUES ({number}, 1)")
    directory = f"{place(acid, 'p')}/{linked}".rstrip("/")
    os.rename(directory, tmp_path / "moved")
    Path(directory).symlink_to(tmp_path / "moved")
    before = sorted((tmp_path / "moved").rglob("*"))
    acid.compact("p", "k=1", wait=True)
    assert acid.clean().collect() == []
    assert set(before) <= set((tmp_path / "moved").rglob("*"))
    assert rows(acid, "p") == [(0, 1), (1, 1), (2, 1)]


def test_a_link_in_a_directory_is_not_adopted(acid, spark, ext, tmp_path):
    spark.range(1).write.orc(f"{tmp_path}/theirs")
    (ext / "n").mkdir()
    (ext / "n" / "k=1").symlink_to(tmp_path / "theirs")
    for ddl in ("(id BIGINT) PARTITIONED BY (k INT)", "(id BIGINT)"):
        condition = refused(acid, f"CREATE TABLE n {ddl} LOCATION '{ext}/n'")
        assert condition == "LOCATION_CANNOT_BE_ADOPTED"


# ── names that are used again ────────────────────────────────────────────────────────────────


@needs("a warehouse of its own")
def test_build_and_swap_again_and_again(acid):
    acid.sql("CREATE TABLE t AS SELECT 0 AS id")
    for number in range(1, 5):
        create = "AS SELECT" if number % 2 else "(id INT)"
        acid.sql(f"CREATE TABLE t_new {create} {f'{number} AS id' if number % 2 else ''}")
        if not number % 2:
            acid.sql(f"INSERT INTO t_new VALUES ({number})")
        acid.sql("ALTER TABLE t RENAME TO t_old")
        acid.sql("ALTER TABLE t_new RENAME TO t")
        assert (rows(acid, "t"), rows(acid, "t_old")) == ([(number,)], [(number - 1,)])
        acid.sql("DROP TABLE t_old")
    assert rows(acid, "t") == [(4,)]
    assert [name for name in os.listdir(acid.warehouse) if name[0] != "."] == [
        os.path.basename(place(acid, "t"))
    ]


def test_a_name_whose_directory_another_table_has_gets_another_one(acid):
    acid.sql("CREATE TABLE r1 AS SELECT 1 AS id")
    acid.sql("ALTER TABLE r1 RENAME TO r2")
    acid.sql("CREATE TABLE r1 AS SELECT 2 AS id")
    acid.sql("UPDATE r2 SET id = id + 10")
    assert (rows(acid, "r1"), rows(acid, "r2")) == ([(2,)], [(11,)])
    acid.sql("DROP TABLE r2")
    assert rows(acid, "r1") == [(2,)]


@needs("can_clean")
def test_a_name_whose_directory_is_still_to_be_cleaned_can_be_made(acid, monkeypatch):
    acid.sql("CREATE TABLE r1 AS SELECT 1 AS id")
    acid.sql("ALTER TABLE r1 RENAME TO r2")
    with monkeypatch.context() as patch:  # as if the process of DROP had died before the deletion
        patch.setattr("acidsql.statements.context.family.delete_dropped", lambda *_: None)
        acid.sql("DROP TABLE r2")
    acid.sql("CREATE TABLE r1 AS SELECT 2 AS id")
    assert rows(acid, "r1") == [(2,)]
    assert [row.kind for row in acid.clean().collect()] == ["dropped"]
    assert rows(acid, "r1") == [(2,)]
    acid.sql("CREATE TABLE r2 AS SELECT 3 AS id")
    assert (rows(acid, "r1"), rows(acid, "r2")) == ([(2,)], [(3,)])


@needs("can_clean")
def test_where_a_dropped_table_is_still_to_be_deleted_no_other_table_is_made(
    acid, tmp_path, monkeypatch
):
    """Another process may be deleting it now, by names that files of the other table would have,
    too."""
    place = tmp_path / "ext"
    place.mkdir()
    acid.sql(f"CREATE TABLE x (id INT) LOCATION '{place}'")
    acid.sql("INSERT INTO x VALUES (1)")
    with monkeypatch.context() as patch:
        patch.setattr("acidsql.statements.context.family.delete_dropped", lambda *_: None)
        acid.sql("DROP TABLE x")
    for columns in ("(id INT)", "(id INT) PARTITIONED BY (p INT)"):
        for location in (place, place / "p=1", tmp_path):
            statement = f"CREATE TABLE z {columns} LOCATION '{location}'"
            assert refused(acid, statement) == "LOCATION_ALREADY_EXISTS"
    assert [row.kind for row in acid.clean().collect()] == ["dropped"]
    acid.sql(f"CREATE TABLE z (id INT) LOCATION '{place}'")
    acid.sql("INSERT INTO z VALUES (2)")
    assert rows(acid, "z") == [(2,)]


# ── INSERT OVERWRITE DIRECTORY ───────────────────────────────────────────────────────────────────


def test_spark_does_not_overwrite_the_directory_of_a_table(acid, ext):
    """Neither one inside of it nor one around it, also of a dropped table that readers still
    need."""
    target = [
        "DIRECTORY '{}' USING orc",
        "LOCAL DIRECTORY '{}' STORED AS ORC",
        "DIRECTORY USING orc OPTIONS ('path' '{}')",
        "DIRECTORY USING orc OPTIONS (compression 'none', path = '{}')",
    ]
    for path in (f"{ext}/x", f"{ext}/x/delta_0000001_0000001_0000", f"{ext}", f"file:{ext}/y/../x"):
        for words in target:
            insert = f"INSERT OVERWRITE {words.format(path)} SELECT * FROM c"
            condition = refused(acid, f"WITH c AS (SELECT 1 AS x) {insert}")
            assert condition == "UNSUPPORTED_FEATURE.OVERWRITE_DIRECTORY"
    assert rows(acid, "x") == [(1,)]
    acid.sql(f"INSERT OVERWRITE DIRECTORY '{ext}/free' USING orc SELECT * FROM x")
    assert acid.spark.read.orc(f"{ext}/free").collect() == [(1,)]
