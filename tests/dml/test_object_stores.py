"""A warehouse on an object store, by S3's protocol: rows, transactions, requests, failures."""

from __future__ import annotations

import logging
import traceback

import pyarrow as pa
import pytest
from kit import rows, table
from object_store import SECRET_KEY, Rule
from pyarrow import orc

import acidsql
from acidsql.acid.table import TableName
from acidsql.compaction.background import Background
from acidsql.errors import AcidSqlError, TxnError, UnsupportedError, WriteError
from acidsql.metastore.compaction_queue import CompactionState
from acidsql.settings import Settings
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.session.uploads import unfinished_uploads

ALWAYS = 10_000


@pytest.fixture
def store(spark, s3a, tmp_path):
    """A session on a warehouse in a bucket of the test's own."""
    with connected(spark, s3a, tmp_path) as session:
        yield session
    spark.catalog.setCurrentDatabase("default")


def connected(spark, s3a, tmp_path, **options):
    return acidsql.connect(
        spark, warehouse=f"{s3a}/warehouse", metastore=f"sqlite:///{tmp_path}/metastore.db",
        **{"compactor": "off", "settings": {"acidsql.history.retention": "0s"}, **options},
    )  # fmt: skip


def keys(s3, acid, below=""):
    """The keys below a directory of the warehouse, without objects that stand for directories."""
    bucket = acid.warehouse.removeprefix("s3a://").split("/")[0]
    start = f"warehouse/{below}"
    found = [key for key in s3.keys(bucket) if key.startswith(start) and not key.endswith("/")]
    return [key.removeprefix("warehouse/") for key in found]


SCRIPT = """
CREATE TABLE t (id int, v string, n decimal(10,2))
CREATE TABLE p (id int, v string) PARTITIONED BY (d string, `e f` int)
CREATE TABLE b (id int, v string) CLUSTERED BY (id) INTO 2 BUCKETS
CREATE TABLE io (id int) TBLPROPERTIES ('transactional_properties'='insert_only')
INSERT INTO t VALUES (1, 'a', 1.5), (2, NULL, 2.5), (3, 'ü', NULL)
INSERT INTO t SELECT id, concat('v', id), id FROM range(4, 5000) r(id)
UPDATE t SET v = 'x' WHERE id % 1000 = 7
DELETE FROM t WHERE id BETWEEN 20 AND 4000
INSERT INTO p VALUES (1, 'a', 'x y', 1), (2, 'b', '50%', 2), (3, 'c', 'a/b', 3), (4, 'd', NULL, 4)
UPDATE p SET d = 'x y' WHERE id = 3
INSERT OVERWRITE p PARTITION (d = '50%', `e f` = 2) SELECT 9, 'z'
INSERT INTO b SELECT id, v FROM t WHERE id < 30
INSERT INTO io VALUES (1), (2)
MERGE INTO t USING (SELECT id + 4990 AS id, 'm' AS v FROM range(20)) s ON t.id = s.id
  WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, NULL)
FROM t INSERT INTO io SELECT id WHERE id < 3 INSERT INTO b SELECT id, 'multi' WHERE id = 3
BEGIN
INSERT INTO p VALUES (20, 'n', 'new', 1)
UPDATE p SET v = 'twice' WHERE id = 20
SAVEPOINT s
DELETE FROM p
ROLLBACK TO s
COMMIT
BEGIN
DELETE FROM t
ROLLBACK
ALTER TABLE t COMPACT 'minor' AND WAIT
UPDATE t SET v = 'after minor' WHERE id = 1
ALTER TABLE t COMPACT 'major' AND WAIT
DELETE FROM b WHERE id = 1
ALTER TABLE b COMPACT 'major' AND WAIT
ALTER TABLE p DROP PARTITION (d = 'new', `e f` = 1)
ALTER TABLE p ADD PARTITION (d = 'empty', `e f` = 7)
CREATE TABLE copied AS SELECT id, v FROM t WHERE id < 10
TRUNCATE TABLE io
ALTER TABLE io RENAME TO renamed
INSERT INTO renamed VALUES (7)
"""


def statements():
    joined = SCRIPT.strip().replace("\n  ", " ")
    return joined.splitlines()


def test_all_statements_give_the_rows_that_they_give_on_a_disk(store, spark, tmp_path, s3):
    with acidsql.connect(spark, warehouse=str(tmp_path / "disk"), compactor="off") as disk:
        for statement in statements():
            done = [
                {name: value for name, value in row.asDict().items() if name.startswith("num_")}
                for acid in (store, disk)
                for row in acid.sql(statement).collect()
            ]
            assert done[: len(done) // 2] == done[len(done) // 2 :], statement
        for name in ("t", "p", "b", "renamed", "copied"):
            assert table(store, name) == table(disk, name), name
    assert [key for key in keys(s3, store) if "_tmp" in key] == []
    assert any("/base_" in key and "_v" in key for key in keys(s3, store, "t/"))
    assert rows(store, "SELECT count(*) FROM p WHERE d = 'x y'") == [(2,)]


# ── requests ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("partitions", [1, 100])
def test_an_insert_into_one_or_very_many_partitions_asks_twice_for_a_listing(store, s3, partitions):
    store.sql("CREATE TABLE p (id int) PARTITIONED BY (d int)")
    values = ", ".join(f"({n}, {n})" for n in range(partitions))
    s3.mark()
    store.sql(f"INSERT INTO p VALUES {values}")
    assert s3.counts() == {"LIST": 2, "PUT": 2 * partitions}
    s3.mark()
    lazy = store.sql("SELECT * FROM p")
    places = ("warehouse/p/", "warehouse/p/d=0/")  # one partition is listed alone
    assert len([one for one in s3.requests() if one.kind == "LIST" and one.key in places]) == 1
    s3.mark()
    assert lazy.count() == partitions
    assert s3.counts("/bucket_") == {"HEAD": partitions, "GET": partitions}  # by Python tasks


def test_a_thousand_partitions_are_listed_page_by_page(store, s3):
    store.sql("CREATE TABLE p (id int) PARTITIONED BY (d int)")
    values = ", ".join(f"({n}, {n})" for n in range(1000))
    s3.mark()
    store.sql(f"INSERT INTO p VALUES {values}")
    assert s3.counts() == {"LIST": 1 + 3, "PUT": 2000}  # before: no object; after: three pages
    s3.mark()
    store.sql("SELECT * FROM p WHERE d = 7").collect()
    listed = [one for one in s3.requests() if one.kind == "LIST" and one.key.endswith("/d=7/")]
    assert len(listed) == 1
    assert sum(s3.counts().values()) < 20


@pytest.mark.classic
def test_a_job_that_is_none_of_sparks_sql_reads_the_store_too(store):
    """Such a job carries the thread's properties, and not the session's settings."""
    store.sql("CREATE TABLE t (id int)")
    store.sql("INSERT INTO t VALUES (1), (2)")
    lazy = store.sql("SELECT * FROM t")
    assert sorted(row.id for row in lazy.rdd.collect()) == [1, 2]
    assert sorted(row.id for row in lazy.toLocalIterator()) == [1, 2]
    [code] = python_code(store.spark, lazy._jdf.queryExecution().analyzed())
    assert b"read_for_query" in code and SECRET_KEY.encode() not in code


def python_code(spark, plan):
    """The pickled functions of a plan."""
    if plan.nodeName() == "MapInArrow":
        of_bytes = spark._jvm.scala.reflect.ClassTag.Byte()
        yield bytes(plan.functionExpr().func().command().toArray(of_bytes))
    below = plan.children()
    for at in range(below.size()):
        yield from python_code(spark, below.apply(at))


def test_nothing_that_is_shown_has_a_secret(store, s3, caplog):
    caplog.set_level(logging.DEBUG)
    store.sql("CREATE TABLE t (id int)")
    store.sql("INSERT INTO t VALUES (1)")
    statements = (
        "EXPLAIN EXTENDED SELECT * FROM t", "EXPLAIN UPDATE t SET id = 2", "SHOW CREATE TABLE t",
        "DESCRIBE EXTENDED t", "DESCRIBE HISTORY t", "SHOW TBLPROPERTIES t", "SHOW TRANSACTIONS",
        "SHOW LOCKS", "SHOW COMPACTIONS", "SET", "SET -v",
    )  # fmt: skip
    shown = [row for statement in statements for row in store.sql(statement).collect()]
    shown += [store, store.last, filesystem_for(store.warehouse)]
    refusing = Rule("status", "GET", "/bucket_", times=ALWAYS, status=403, code="AccessDenied")
    with s3.failing(refusing):
        for statement in ("SELECT * FROM t", "DELETE FROM t WHERE id = 1"):
            with pytest.raises(Exception, match="AccessDenied|ACCESS_DENIED") as error:
                store.sql(statement).collect()
            shown += traceback.format_exception(error.value)
        shown += store.check("t").collect()
    shown = "\n".join([*map(repr, shown), *map(str, shown), caplog.text])
    assert "fs.s3a" in shown and "UNREACHABLE_FILE" in shown
    assert SECRET_KEY not in shown


# ── what fails ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["PUT", "COPY"])
def test_a_statement_whose_files_get_no_names_changes_nothing(store, s3, kind):
    store.sql("CREATE TABLE t (id int)")
    store.sql("INSERT INTO t VALUES (1)")
    store.sql("SET acidsql.driver.max.rows = 0")
    failing = s3.failing(Rule("status", kind, key=r"/delta_", times=ALWAYS))
    with failing, pytest.raises(WriteError):
        store.sql("INSERT INTO t SELECT 2")
    assert table(store) == [(1,)]
    store.sql("INSERT INTO t SELECT 3")
    assert table(store) == [(1,), (3,)]


@pytest.mark.parametrize("how", ["reset", "late", "lost"])
def test_after_a_failed_copy_a_transaction_can_only_be_rolled_back(store, s3, how):
    store.sql("CREATE TABLE t (id int)")
    store.sql("BEGIN")
    store.sql("INSERT INTO t VALUES (1)")
    failing = s3.failing(Rule(how, "PUT", key=r"/bucket_", times=ALWAYS))
    with failing, pytest.raises(WriteError):
        store.sql("INSERT INTO t VALUES (2)")
    for refused in ("SELECT * FROM t", "INSERT INTO t VALUES (3)", "COMMIT"):
        with pytest.raises(TxnError) as error:
            store.sql(refused)
        assert error.value.condition == "IN_FAILED_TRANSACTION"
    s3.do_late()
    assert table(store) == []
    store.sql("INSERT INTO t VALUES (4)")
    assert table(store) == [(4,)]


def test_after_a_deletion_that_failed_a_transaction_can_only_be_rolled_back(store, s3):
    """What is deleted late could be the base of a later statement, under the same name."""
    store.sql("CREATE TABLE t (id int)")
    for statement in ("BEGIN", "SAVEPOINT s", "INSERT OVERWRITE t VALUES (1)"):
        store.sql(statement)
    failing = s3.failing(Rule("late", "DELETES", times=ALWAYS))
    with failing, pytest.raises(WriteError):
        store.sql("ROLLBACK TO s")
    with pytest.raises(TxnError) as error:
        store.sql("ROLLBACK TO s")
    assert error.value.condition == "IN_FAILED_TRANSACTION"
    store.sql("ROLLBACK")
    s3.do_late()
    assert table(store) == []


def test_a_dropped_partition_leaves_no_finding(store, s3):
    store.sql("CREATE TABLE p (id int) PARTITIONED BY (d int)")
    store.sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    store.sql("ALTER TABLE p DROP PARTITION (d = 1)")
    assert keys(s3, store, "p/d=1") == []
    assert store.check("p").collect() == []


def test_what_a_late_attempt_of_a_task_writes_is_never_seen_and_is_cleaned_up(store, s3):
    store.sql("CREATE TABLE t (id int)")
    store.sql("SET acidsql.driver.max.rows = 0")
    store.sql("INSERT INTO t SELECT id FROM range(3)")
    committed = next(key for key in keys(s3, store, "t/delta") if "bucket" in key)
    fs, late = filesystem_for(store.warehouse), "t/_tmp_0000001_0000_0123456789ab/insert-0-1-x"
    fs.copy_file(f"{store.warehouse}/{committed}", f"{store.warehouse}/{late}")
    assert len(table(store)) == 3
    assert [row.kind for row in store.files("t").collect() if "_tmp" in row.path] == ["litter"]
    store.sql("INSERT INTO t VALUES (9)")
    store.clean()
    assert late not in keys(s3, store)
    assert len(table(store)) == 4


def test_a_compaction_that_dies_between_two_copies_changes_no_rows(store, s3, spark, s3a, tmp_path):
    store.sql("CREATE TABLE t (id int, v int)")
    store.sql("INSERT INTO t SELECT id, 0 FROM range(9)")
    store.sql("UPDATE t SET v = 1 WHERE id = 3")
    store.sql("DELETE FROM t WHERE id = 5")
    before = table(store)
    failing = s3.failing(Rule("status", "COPY|PUT", key=r"/delta_\d+_\d+_v", times=ALWAYS))
    with failing, pytest.raises(AcidSqlError):
        store.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    assert any("/delete_delta_" in key and "_v" in key for key in keys(s3, store, "t/"))
    assert table(store) == before
    store.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    assert table(store) == before
    store.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    store.close()  # its DataFrames may need the files
    with connected(spark, s3a, tmp_path) as fresh:
        fresh.clean()
        assert table(fresh) == before
    assert {key.split("/")[1].split("_")[0] for key in keys(s3, store, "t/")} == {"base"}


def test_load_data_copies_files_of_the_store_from_where_they_are(store, s3, s3a):
    fs = filesystem_for(s3a)
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"id": pa.array([7, 8], pa.int32())}), sink)
    fs.write_file(f"{s3a}/in coming/a.orc", sink.getvalue().to_pybytes())
    store.sql("CREATE TABLE t (id int)")
    s3.mark()
    store.sql(f"LOAD DATA INPATH '{s3a}/in coming' INTO TABLE t")
    assert s3.counts()["COPY"] == 1
    assert table(store) == [(7,), (8,)]
    assert fs.list_if_there(f"{s3a}/in coming") == []


def test_two_drivers_share_a_warehouse(store, spark, s3a, tmp_path):
    store.sql("CREATE TABLE t (id int, v int)")
    store.sql("INSERT INTO t VALUES (1, 0), (2, 0)")
    with connected(spark, s3a, tmp_path) as other:
        other.sql("BEGIN")
        other.sql("UPDATE t SET v = v + 1 WHERE id = 1")
        assert table(store) == [(1, 0), (2, 0)]
        other.sql("COMMIT")
        assert table(store) == [(1, 1), (2, 0)]


def test_a_directory_is_read_without_a_metastore(store, spark):
    store.sql("CREATE TABLE t (id int, v string)")
    store.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    store.sql("DELETE FROM t WHERE id = 1")
    found = acidsql.read(spark, f"{store.warehouse}/t")
    assert [tuple(row) for row in found.select("id", "v").collect()] == [(2, "b")]


def test_what_needs_a_rename_is_refused_by_name(store, s3, s3a):
    fs = filesystem_for(s3a)
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"id": pa.array([7], pa.int32())}), sink)
    fs.write_file(f"{s3a}/found/part-0.orc", sink.getvalue().to_pybytes())
    with pytest.raises(UnsupportedError) as error:
        store.sql(f"CREATE TABLE t (id int) LOCATION '{s3a}/found'")
    assert error.value.condition == "UNSUPPORTED_FEATURE.RENAME_ON_OBJECT_STORE"
    assert [entry.name for entry in fs.list(f"{s3a}/found")] == ["part-0.orc"]


def test_drop_leaves_nothing(store, s3):
    store.sql("CREATE TABLE p (id int) PARTITIONED BY (d int)")
    store.sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    store.sql("DROP TABLE p")
    assert keys(s3, store) == []


def test_s3_and_s3a_are_the_same_place(store, spark, s3a, tmp_path):
    bucket = s3a.removeprefix("s3a://")
    store.sql(
        f"CREATE TABLE p (id int, v int) PARTITIONED BY (d string) LOCATION 's3://{bucket}/p'"
    )
    store.sql("INSERT INTO p VALUES (1, 1, 'a b'), (2, 2, 'c'), (3, 3, 'c')")
    store.sql("UPDATE p SET v = 20, d = 'a b' WHERE id = 2")
    store.sql("DELETE FROM p WHERE d = 'c'")
    assert table(store, "p") == [(1, 1, "a b"), (2, 20, "a b")]
    with pytest.raises(AcidSqlError) as error:
        store.sql(f"CREATE TABLE q (id int) LOCATION '{s3a}/p/inside'")
    assert error.value.condition == "LOCATION_ALREADY_EXISTS"


def test_the_upload_of_a_task_that_died_is_ended_and_that_of_a_running_one_is_not(
    store, spark, s3a, tmp_path
):
    store.sql("CREATE TABLE t (id int)")
    store.sql("INSERT INTO t VALUES (1)")
    other = connected(spark, s3a, tmp_path)
    other.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (2)")  # write id 2 is open
    path = spark._jvm.org.apache.hadoop.fs.Path(f"{store.warehouse}/t")
    hadoop = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    uploads = hadoop.createMultipartUploader(path).build()
    for write_id in (1, 2):
        name = f"_tmp_{write_id:07d}_0000_0123456789ab/insert-0-0-x"
        uploads.startUpload(spark._jvm.org.apache.hadoop.fs.Path(path, name)).get()
    removed = [row.path.rpartition("/")[2] for row in store.clean().collect()]
    assert removed == ["_tmp_0000001_0000_0123456789ab"]
    left = [one.path.split("/")[-2] for one in unfinished_uploads(spark, f"{store.warehouse}/t")]
    assert left == ["_tmp_0000002_0000_0123456789ab"]
    other.close()


def test_the_compactor_beside_a_session_has_its_keys(store, spark):
    store.sql("CREATE TABLE t (id int)")
    for n in range(2):
        store.sql(f"INSERT INTO t VALUES ({n})")
    few = Settings.of({"hive.compactor.delta.num.threshold": "1"})
    beside = Background(
        spark, store.metastore, lambda: few, user="me", host="here", mode="background"
    )
    beside._written[TableName("default", "t"), None] = [[]]
    beside._do_one_round()
    beside.close()
    assert [one.state for one in store.metastore.compactions()] == [CompactionState.SUCCEEDED]
    assert rows(store, "SELECT id FROM t") == [(0,), (1,)]


def changes(spark, *rows):
    columns = "id int, v string, op string, seq bigint"
    spark.createDataFrame(list(rows), columns).createOrReplaceTempView("changes")
    return (
        "AUTO CDC INTO c FROM changes KEYS (id) APPLY AS DELETE WHEN op = 'DELETE' SEQUENCE BY seq "
        "COLUMNS * EXCEPT (op, seq)"
    )


def test_streams_changes_views_and_other_kinds_of_tables_work_there_too(
    store, spark, s3, s3a, tmp_path
):
    store.sql("CREATE TABLE c (id INT, v STRING)")
    store.sql(changes(spark, (1, "a", "INSERT", 1), (2, "b", "INSERT", 2), (1, "c", "UPDATE", 3)))
    store.sql(changes(spark, (1, "", "DELETE", 4), (2, "late", "UPDATE", 1)))
    assert table(store, "c") == [(2, "b")]

    store.sql("CREATE TABLE s (id INT)")
    (tmp_path / "in").mkdir()
    for number in (7, 8):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": {number}}}')
        query = spark.readStream.schema("id int").json(str(tmp_path / "in")).writeStream
        query = query.option("checkpointLocation", f"{s3a}/checkpoint")
        query.trigger(availableNow=True).foreachBatch(store.sink("s")).start().awaitTermination()
    assert table(store, "s") == [(7,), (8,)]

    store.sql("CREATE OR REPLACE TABLE s AS SELECT id FROM c")
    store.sql("CREATE TEMPORARY TABLE own AS SELECT * FROM s")
    store.sql("CREATE VIEW more AS SELECT id + 1 AS id FROM s")
    kind = "TBLPROPERTIES ('transactional_properties'='insert_only')"
    store.sql(f"CREATE TABLE io (id INT) STORED AS PARQUET {kind}")
    store.sql("INSERT INTO io SELECT id FROM more")
    assert (table(store, "own"), table(store, "more"), table(store, "io")) == (
        [(2,)],
        [(3,)],
        [(3,)],
    )
    for name in ("c", "s", "io"):
        assert store.check(name, level="rows").collect() == []
    assert store.repair("c", dry_run=False).collect() == []
    assert [key for key in keys(s3, store) if "_tmp" in key] == []
