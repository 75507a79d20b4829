"""Spark Connect: a server in a process of its own, whose workers have no acidsql."""

from __future__ import annotations

import datetime
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import MagicMock

import object_store
import pandas as pd
import pyarrow as pa
import pytest
import s3a_jars
from column_cases import (
    an_element_without_a_name_is_no_field_of_a_struct,
    columns_become_the_sql_that_spark_reads_as_the_same,
    literals_stay_the_same_values_of_the_same_types,
    variables_of_lambda_functions_hide_no_column,
)
from connect_server import ConnectServer
from IPython.core.formatters import DisplayFormatter
from over_connect import OVER_CONNECT
from pages import DOCS, blocks
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import acidsql
from acidsql.compaction.worker import Worker, WorkerResources
from acidsql.errors import (
    AcidSqlError,
    AnalysisError,
    ConstraintError,
    FormatError,
    SettingError,
    UnsupportedError,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.interface import FileSystem
from acidsql.storage.reading import server as probe
from acidsql.storage.spark import views
from acidsql.storage.spark.session import jobs, python_workers
from acidsql.terminal.progress import show_progress

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(OVER_CONNECT, reason="this process has a server of Spark Connect already"),
]
OFF = {"acidsql.history.retention": "0s"}


def no_store():
    """Why no server of an object store, or no Spark for one, is to be had here; None if both
    are."""
    return object_store.missing() or s3a_jars.missing()


@pytest.fixture(scope="module")
def server(java_home, tmp_path_factory, request):
    hadoop = {} if no_store() else request.getfixturevalue("s3").hadoop
    running = ConnectServer(tmp_path_factory.mktemp("connect"), hadoop)
    yield running
    running.close()


@pytest.fixture(scope="module")
def remote(server):
    from pyspark.sql.connect.session import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        # PySpark's functions ask this: it is set in a process without a classic session.
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = SparkSession.builder.remote(server.url).create()
        yield session
        session.stop()


@pytest.fixture
def acid(remote, tmp_path):
    with acidsql.connect(remote, warehouse=str(tmp_path), compactor="off", settings=OFF) as session:
        session.sql("CREATE TABLE t (id INT, name STRING, at TIMESTAMP) PARTITIONED BY (p INT)")
        session.sql("INSERT INTO t VALUES (1, 'a', TIMESTAMP'2020-03-29 02:30:00', 1)")
        session.sql("INSERT INTO t SELECT id, 'b', NULL, id FROM VALUES (2), (3) AS new (id)")
        yield session


def ids(acid, query="SELECT id FROM t"):
    return sorted(row.id for row in acid.sql(query).collect())


def own_views(remote):
    return [one.name for one in remote.catalog.listTables() if one.name.startswith("__acidsql")]


def explained(frame):
    return frame._explain_string(mode="formatted")


def test_rows_are_changed_as_in_a_classic_session(acid, remote):
    assert acid.sql("UPDATE t SET name = upper(name), p = 7 WHERE id > 1").first()[2] == 2
    assert acid.sql("DELETE FROM t WHERE id = (SELECT max(id) FROM t)").first()[3] == 1
    new = remote.createDataFrame([(1, "ü"), (5, "{}")], "id int, name string")
    acid.sql(
        "MERGE INTO t USING {new} AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 9)", new=new,
    )  # fmt: skip
    found = acid.sql("SELECT id, name, CAST(at AS STRING) AS at, p FROM t ORDER BY id").collect()
    assert [tuple(row) for row in found] == [
        (1, "ü", "2020-03-29 02:30:00", 1), (2, "B", None, 7), (5, "{}", None, 9),
    ]  # fmt: skip
    assert "InArrow" not in explained(acid.sql("SELECT * FROM t"))  # no Python reads timestamps
    assert acid.compact("t", "p=1", wait=True).first().state == "ready for cleaning"
    assert ids(acid) == [1, 2, 5]


def test_rows_of_pandas_arrow_and_plain_python_are_taken_as_dataframes(acid):
    acid.create_table("u", pd.DataFrame({"id": [1], "v": ["pandas"]}))
    acid.insert_into("u", pa.table({"v": ["arrow"], "id": [2]}))
    acid.insert_into("u", [{"id": 3, "v": None}])
    merge = acid.merge_into(pd.DataFrame({"id": [3, 4]}), "u", "u.id = source.id")
    merge.whenMatchedDelete().whenNotMatchedInsert(values={"id": "source.id"}).execute()
    found = acid.sql("SELECT u.id, u.v FROM u JOIN {p} p USING (id)", p=pa.table({"id": [2, 4]}))
    assert sorted(map(tuple, found.collect())) == [(2, "arrow"), (4, None)]


def test_the_format_acidsql_is_known_to_the_server_without_acidsql(acid, remote, tmp_path):
    with pytest.raises(FormatError, match="There is no directory 't'"):
        remote.read.format("acidsql").load("t").collect()
    table = remote.read.format("acidsql").options(table="t", warehouse=acid.warehouse).load()
    assert sorted(row.id for row in table.collect()) == ids(acid)
    with pytest.raises(PySparkException, match=r"Write acid\.insert_into\('db\.t', df\)"):
        remote.range(1).write.format("acidsql").mode("append").save()
    reader = remote.readStream.format("acidsql").option("table", "default.t")
    stream = reader.option("warehouse", acid.warehouse).load()
    assert stream.columns == ["id", "name", "at", "p"]


def test_what_the_text_says_decides_which_partitions_are_read(acid):
    acid.sql("CREATE TABLE days (id INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO days SELECT id, id FROM range(10)")
    assert len(acid.sql("SELECT id FROM days WHERE p = 3").inputFiles()) == 1
    merge = "MERGE INTO days USING (SELECT 3 AS id) s ON days.id = s.id AND days.p IN (3, 4) "
    plan = acid.sql(f"EXPLAIN {merge} WHEN MATCHED THEN DELETE").first().plan
    assert "InMemoryFileIndex(2 paths)" in plan
    acid.sql(f"{merge} WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert ids(acid, "SELECT id FROM days") == []


def test_rows_are_changed_on_an_object_store_whose_keys_the_server_tells_nobody(
    remote, bucket, s3, tmp_path, monkeypatch
):
    if (missing := no_store()) is not None:
        pytest.skip(missing)
    place = {"warehouse": f"s3a://{bucket}/w", "metastore": f"sqlite:///{tmp_path}/metastore.db"}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody's")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nobody's")
    with pytest.raises(SettingError, match="InvalidAccessKeyId"):
        acidsql.connect(remote, **place)
    for name, value in object_store.environment(s3.hadoop).items():
        monkeypatch.setenv(name, value)
    with acidsql.connect(remote, **place, compactor="off", settings=OFF) as session:
        session.sql("CREATE TABLE t (id INT, name STRING) PARTITIONED BY (p INT)")
        session.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
        session.sql("INSERT INTO t SELECT id, 'c', id % 3 FROM range(3, 9000)")  # in workers
        session.sql("UPDATE t SET name = 'd' WHERE id % 2 = 1")
        session.sql("DELETE FROM t WHERE p = 2 AND id > 2")
        session.sql("ALTER TABLE t PARTITION (p = 1) COMPACT 'major'")
        rows = session.sql("SELECT count(*), count_if(name = 'd') FROM t").collect()
        hidden = remote.sql("SET").where("key LIKE '%secret%'").collect()
    assert [tuple(row) for row in rows] == [(6000, 3000)]
    assert {row.value for row in hidden} == {"*********(redacted)"}


def test_the_page_about_spark_connect_runs(remote, tmp_path):
    (block,) = blocks(DOCS / "spark-connect.md")
    text = block.text[block.text.index("acid = ") :]
    places = {"hdfs://namenode:8020/warehouse": f"{tmp_path}/w"}
    places["postgresql+psycopg://acid@db/acid"] = f"sqlite:///{tmp_path}/m.db"
    for said, here in places.items():
        text = text.replace(said, here)
    warehouse, metastore = places.values()
    with acidsql.connect(remote, warehouse=warehouse, metastore=metastore) as before:
        before.sql("CREATE TABLE planes (tailnum STRING, year INT)")
        before.sql("INSERT INTO planes VALUES ('N10156', 2004), ('N102UW', 1998)")
    names = {"spark": remote, "acidsql": acidsql}
    exec(compile(text, "spark-connect.md", "exec"), names)
    with names["acid"] as acid:
        assert sorted(acid.sql("SELECT year FROM planes").collect()) == [(1998,), (2005,)]


def test_the_code_of_the_workers_is_an_artifact(acid, remote):
    def place(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"place": [acidsql.__file__]})

    (row,) = remote.range(0, 1, 1, 1).mapInArrow(place, "place string").collect()
    assert "/acidsql-" in row.place and ".zip/" in row.place


def test_a_transaction_is_undone(acid):
    acid.sql("BEGIN")
    acid.sql("DELETE FROM t WHERE id > 1")
    assert ids(acid) == [1]
    acid.sql("ROLLBACK")
    assert ids(acid) == [1, 2, 3]


def test_one_lazy_frame_is_read_by_eight_threads_while_statements_run(acid):
    frame = acid.sql("SELECT id FROM t WHERE id < 9")
    with ThreadPoolExecutor(8) as threads:
        counts = [threads.submit(frame.count) for _ in range(24)]
        acid.sql("DELETE FROM t")
        assert [one.result() for one in counts] == [3] * 24


def test_frames_outlive_what_follows_and_their_session(acid, remote):
    frame = acid.sql("SELECT * FROM t")
    derived = frame.where("id > 1").select("id")
    acid.sql("UPDATE t SET id = id + 10")
    frame.createOrReplaceTempView("kept")
    remote.catalog.cacheTable("kept")
    del frame
    gc.collect()
    assert ids(acid) == [11, 12, 13]
    acid.close()
    assert sorted(row.id for row in derived.collect()) == [2, 3]
    assert remote.table("kept").count() == 3
    assert "InMemoryRelation" in explained(remote.table("kept"))
    remote.catalog.uncacheTable("kept")
    remote.catalog.dropTempView("kept")


def test_a_frame_means_what_it_meant_when_it_was_made(acid, remote):
    remote.conf.set("spark.sql.ansi.enabled", "false")
    lenient = acid.sql("SELECT CAST(name AS INT) AS n FROM t WHERE id = 1")
    remote.conf.unset("spark.sql.ansi.enabled")
    assert lenient.first().n is None


def test_a_statement_of_sparks_with_a_subquery_runs_once(acid, remote):
    acid.sql("CREATE TABLE default.plain (id INT) USING parquet")
    acid.sql("INSERT INTO default.plain SELECT id FROM t WHERE id > (SELECT min(id) FROM t)")
    assert sorted(remote.table("default.plain").collect()) == [(2,), (3,)]
    acid.sql("DROP TABLE default.plain")


def test_no_more_views_are_left_than_frames(acid, remote):
    acid.sql("SHOW TABLES")
    gc.collect()
    views.drop_unneeded(remote)
    before = len(own_views(remote))  # of frames that pytest still holds
    frames = [acid.sql(f"SELECT id FROM t WHERE id > {n}") for n in range(3)]
    acid.sql("UPDATE t SET name = 'x'")
    for text in ("SELECT nope FROM t", "UPDATE t SET name = nope", "UPDATE t SET id = 'x'"):
        with suppress(AnalysisError, ConstraintError):
            acid.sql(text)
    gc.collect()
    views.drop_unneeded(remote)
    assert len(own_views(remote)) <= before + len(frames)
    assert [row.tableName for row in acid.sql("SHOW TABLES").collect()] == ["t"]
    frames.clear()
    gc.collect()
    acid.close()
    assert len(own_views(remote)) <= before


def test_an_error_points_at_the_word(acid):
    with pytest.raises(AnalysisError) as wrong:
        acid.sql("SELECT id FROM t WHERE nope = 1")
    assert "WHERE nope = 1\n" + " " * 25 + "^^^^" in str(wrong.value)
    assert "stacktrace" not in str(wrong.value) and "__acidsql" not in str(wrong.value)
    with pytest.raises(ConstraintError, match=r"\[CAST_INVALID_INPUT\] .* column 'id' takes: x"):
        acid.sql("UPDATE t SET id = 'x'")


def test_a_session_does_not_wait_long_for_a_server_that_is_gone(monkeypatch):
    spark, gone = "a session", threading.Event()
    monkeypatch.setattr(jobs, "_PATIENCE_S", 0)
    monkeypatch.setattr(views, "_unneeded", {spark: ["view"]})
    monkeypatch.setattr(views, "drop_unneeded", lambda _: gone.wait())
    views.drop_unneeded_briefly(spark)
    monkeypatch.setattr(jobs, "cancel_jobs", lambda *_: gone.wait())
    worker = Worker(spark, None, None, "", WorkerResources("tag"))
    worker.txn_id = 1  # a compaction runs
    worker.stop()
    gone.set()


def test_a_worker_that_compacts_nothing_asks_the_server_nothing(monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "cancel_jobs", lambda *given: asked.append(given))
    worker = Worker("a session", None, None, "", WorkerResources("tag"))
    worker.stop()
    assert asked == [] and worker.is_stopped
    worker.txn_id = 1
    worker.stop()
    assert asked == [("a session", "tag")]


def test_a_remote_session_is_found_and_its_temporary_view_hides_a_table(acid, remote, tmp_path):
    with acidsql.connect(warehouse=str(tmp_path), settings=OFF) as found:
        assert found.spark is remote
    remote.range(42, 43).createOrReplaceTempView("t")
    assert ids(acid) == [42]
    remote.catalog.dropTempView("t")
    assert ids(acid) == [1, 2, 3]


class Elsewhere(FileSystem):
    """The file system of another machine."""

    def __init__(self, root):
        self._root, self._files = str(root), filesystem_for(str(root))

    def create_directory(self, path):
        self._files.create_directory(self._root + path)

    def write_file(self, path, data):
        self._files.write_file(self._root + path, data)

    def delete_directory(self, path):
        self._files.delete_directory(self._root + path)


def test_a_warehouse_that_the_server_does_not_see_is_told_at_once(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "filesystem_for", lambda _: Elsewhere(tmp_path / "elsewhere"))
    with pytest.raises(SettingError, match="the server does not see it"):
        acidsql.connect(remote, warehouse=str(tmp_path / "here"))


def test_a_server_without_keys_is_told_and_not_its_python():
    spark, text = MagicMock(), "AccessDeniedException: s3a://b/w\n\nJVM stacktrace:\n\tat hadoop"
    rows = spark.read.schema.return_value.text.return_value.mapInArrow.return_value
    rows.collect.side_effect = PySparkException(text)
    with pytest.raises(SettingError, match="needs keys for this store") as caught:
        probe._try_worker(spark, "s3a://b/w", "s3a://b/w/probe")
    assert not {"stacktrace", "PYSPARK_PYTHON"} & set(str(caught.value).split())


def test_jobs_are_cancelled_by_their_tag(remote):
    began, ended = threading.Event(), []

    def run():
        with jobs.named_jobs(remote, "long", "mine"):
            try:
                # Only between its tasks Spark is sure to notice that it shall stop.
                remote.range(0, 10**12, 1, 20_000).selectExpr("sum(id % 7)").collect()
            except Exception as error:
                ended.append(str(error))

    def watch(stages, inflight_tasks, operation_id, done):
        if inflight_tasks:
            began.set()

    remote.registerProgressHandler(watch)
    thread = threading.Thread(target=run)
    thread.start()
    assert began.wait(60)
    jobs.cancel_jobs(remote, "mine")
    thread.join()
    remote.clearProgressHandlers()
    assert "OPERATION_CANCELED" in ended[0]
    assert remote.getTags() == set() and jobs.task_slots(remote) == 2


def test_the_tasks_of_a_statement_are_shown_and_those_of_another_thread_are_not(acid, remote):
    lines, seen, ended = [], threading.Event(), threading.Event()

    def show(text):
        lines.append(text)
        if text is not None and " of 4 tasks are done" in text:
            seen.set()

    def run_beside():
        while not ended.is_set():
            remote.range(0, 10**8, 1, 7).selectExpr("sum(id % 7)").collect()

    other = threading.Thread(target=run_beside)
    other.start()
    with show_progress(acid, show, first_s=0, next_s=0.01):
        rows = 10**6
        while not seen.is_set():
            assert remote.range(0, rows, 1, 4).selectExpr("sum(id % 7)").collect()
            rows *= 10
        remote.clearProgressHandlers()  # harms nobody
    ended.set()
    other.join()
    assert lines[-1] is None
    assert not [text for text in lines if text is not None and " of 7 tasks" in text]


def test_columns_are_values_and_conditions(acid, remote):
    columns_become_the_sql_that_spark_reads_as_the_same(remote)
    literals_stay_the_same_values_of_the_same_types(remote)
    variables_of_lambda_functions_hide_no_column(remote)
    an_element_without_a_name_is_no_field_of_a_struct(remote)
    plus = F.udf(lambda n: n + 100, "int")
    acid.update("t", {"name": F.concat("name", F.lit("'"))}, F.col("id") > plus(F.lit(-98)))
    acid.delete("t", F.col("id").isin([]) | (F.col("p") == 2))
    new = remote.createDataFrame([(1, "m"), (9, "n")], "id INT, name STRING")
    writer = acid.merge_into(new.alias("s"), "t", F.col("t.id") == new["id"])
    writer = writer.whenMatched(F.col("s.name") == "m").update({"name": new["name"]})
    writer.whenNotMatched().insert({"id": "s.id", "name": F.upper("s.name"), "p": F.lit(5)}).merge()
    found = acid.sql("SELECT id, name, p FROM t ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "m", 1), (3, "b'", 3), (9, "N", 5)]
    assert not [one for one in remote.catalog.listFunctions() if one.name.startswith("acidsql")]
    for column, error in (
        (remote.range(1)["id"] == 1, "belongs to a DataFrame"),
        (new.withColumnRenamed("id", "key")["id"] == 1, "belongs to a DataFrame"),
        (F.col("id.") - 7 < 0, "INVALID_ATTRIBUTE_NAME_SYNTAX"),
        (F.call_function("a..b", F.col("id")) < 0, "INVALID_ATTRIBUTE_NAME_SYNTAX"),
        (F.lit(datetime.datetime.min) == F.lit(Decimal("NaN")), "SQL text instead"),
        (F.col("id").cast("a INT") == 1, "no type"),
        (F.expr("id = 1) OR (true"), "no expression"),
        (F.col("name").cast("string) IS NULL OR (true AND 'x' AS string"), "PARSE_SYNTAX_ERROR"),
        (F.sum("id").over(Window.partitionBy("p")) > 1, "SQL text instead"),
    ):
        with pytest.raises((AcidSqlError, PySparkException), match=error):
            acid.delete("t", column)
    assert acid.table("t").count() == 3


def test_a_column_of_a_dataframe_is_no_other_column_of_its_name(acid, remote):
    nested = remote.createDataFrame([(1, (111,), 222)], "id INT, a STRUCT<f: INT>, f INT")
    left = remote.createDataFrame([(1, 5)], "id INT, x INT")
    right = remote.createDataFrame([(2, 6)], "id INT, y INT")
    joined = left.join(right, "id", "left")
    for source, column in ((nested, nested["a.f"]), (joined, right["id"])):
        writer = acid.merge_into(source, "t", F.col("t.id") == source["id"])
        with pytest.raises(AnalysisError, match="belongs to a DataFrame"):
            writer.whenMatched().update({"p": column}).merge()
    conf = "spark.sql.ansi.enabled"
    try:
        remote.conf.set(conf, "FALSE")  # then NULL may be in an empty list
        assert acid.delete("t", ~F.col("at").isin([])).first()[3] == 1
    finally:
        remote.conf.unset(conf)


def test_a_char_is_compared_as_a_char_and_a_condition_is_the_same_each_time(acid):
    acid.sql("CREATE TABLE c (v CHAR(3), CONSTRAINT k CHECK (v <> 'no'))")
    with pytest.raises(ConstraintError, match="CHECK_CONSTRAINT_VIOLATION"):
        acid.sql("INSERT INTO c SELECT 'no'")
    acid.sql("INSERT INTO c VALUES ('ab')")
    assert acid.sql("SELECT v FROM c WHERE v = 'ab'").collect() == [("ab ",)]
    assert acid.sql("DELETE FROM c WHERE v = 'ab'").first()[3] == 1
    with pytest.raises(AnalysisError, match="NON_DETERMINISTIC"):
        acid.sql("CREATE TABLE d (a INT CHECK (a > rand()))")


def test_changes_of_a_transaction_that_nobody_has_committed(acid):
    """Tables of commits in the driver are empty, and Spark Connect derives no types from them."""
    after = acid.history("t").first().version + 1
    with acid.transaction():
        acid.sql("DELETE FROM t WHERE id = 1")
        (own,) = acid.changes("t", after).collect()
        assert (own.id, own._change_type, own._commit_version) == (1, "delete", after)


def test_a_notebook_shows_results_as_html(acid):
    shown, _ = DisplayFormatter().format(acid.health("t"))
    assert shown["text/html"].startswith("<svg")


# A process of its own: this one may have a classic session. Warnings would be of confs that only
# such a session has.
COMMAND = "from acidsql.terminal import cli; cli.use_java = None; cli.main()"


def test_the_command_line_needs_no_java(acid, server, tmp_path):
    words = ["--remote", server.url, "--warehouse", str(tmp_path), "sql", "--format", "csv"]
    text = "DELETE FROM t WHERE id = 1; SELECT id FROM t ORDER BY id"
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", COMMAND, *words, text],
        env={**os.environ, "SPARK_HOME": "", "SPARK_CONNECT_MODE_ENABLED": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "id\n2\n3\n", done.stderr


def test_streams_into_tables_are_refused_by_name(acid):
    cdc = acid.auto_cdc("t", keys="id", sequence_by="at")  # its method apply(…) needs no stream
    numbers = acid.spark.readStream.format("rate").load()
    for refused in (
        lambda: acid.sink("t"),
        lambda: acid.write_stream(numbers),
        lambda: numbers.writeStream.foreachBatch(cdc),
    ):
        with pytest.raises(UnsupportedError, match="STREAMS_OVER_CONNECT"):
            refused()


def test_the_compactor_in_the_background_has_a_session_of_its_own_until_the_end(
    remote, tmp_path, monkeypatch
):
    with acidsql.connect(remote, warehouse=str(tmp_path), settings=OFF) as session:
        session.sql("CREATE TABLE t (id INT)")
        session.sql("INSERT INTO t VALUES (1)")
        beside = session._runner._background._own_session
        has_its_own = hasattr(type(remote), "newSession")  # from PySpark 4.3 on
        assert (beside.session_id != remote.session_id) == has_its_own
        if has_its_own:
            beside.client.release_session()  # as a server does after an hour without a call
            session._runner._background._renew_lost_session()
            assert session._runner._background._own_session is not beside
            assert beside.is_stopped
            beside = session._runner._background._own_session
            assert not jobs.is_forgotten(beside)
    assert beside.is_stopped == has_its_own and not remote.is_stopped
    # The end of that session takes nothing from this one.
    with acidsql.connect(remote, warehouse=str(tmp_path), compactor="off") as session:
        session.sql("INSERT INTO t SELECT id FROM range(9)")
        assert session.table("t").count() == 10
    monkeypatch.setattr(jobs, "isolates_artifacts", lambda _: False)
    assert jobs.sibling_session(remote) is remote
    monkeypatch.undo()
    monkeypatch.delattr(type(remote), "newSession", raising=False)
    assert jobs.sibling_session(remote) is remote


def test_the_end_of_a_fork_closes_nothing():
    closed = []
    client = SimpleNamespace(is_closed=False, close=lambda: closed.append(True))
    jobs._close_at_exit(client, os.getppid())
    assert closed == []
    jobs._close_at_exit(client, os.getpid())
    assert closed == [True]


# PySpark's own server, in the program's process, ends with the session that began it.
LOCAL = """
import sys
import acidsql
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
acid = acidsql.connect(spark, warehouse=sys.argv[1])
acid.sql("CREATE TABLE t (id INT)")
acid.sql("INSERT INTO t VALUES (1)")
acid.close()
print(spark.range(3).count())
acidsql.connect(spark, warehouse=sys.argv[1]).sql("INSERT INTO t VALUES (2)")  # is not closed
spark.stop()
print("stopped")
"""


def test_the_end_of_a_session_does_not_end_the_server_in_its_process(java_home, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LOCAL, str(tmp_path / "warehouse")],
        env={**os.environ, "SPARK_CONNECT_MODE_ENABLED": ""}, cwd=tmp_path,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "3\nstopped\n", done.stderr
    assert "compactor" not in done.stderr


def test_a_server_that_keeps_files_of_sessions_together_is_told(remote, monkeypatch, caplog):
    """Sessions of such a server fail after the end of another one."""
    monkeypatch.setattr(python_workers, "_prepared", set())
    monkeypatch.setattr(type(remote.conf), "get", lambda *_: "false")
    python_workers.prepare_workers(remote)
    assert "spark.sql.artifact.isolation.enabled=true" in caplog.text
