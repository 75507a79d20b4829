"""Python workers are started early: once, in the background, and nobody notices."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from weakref import WeakSet

import pytest

import acidsql
from acidsql.api import session as sessions
from acidsql.statements.context import family
from acidsql.storage.spark.session import jobs as spark_jobs
from acidsql.storage.writing import warm_workers as module
from acidsql.storage.writing.warm_workers import warm_workers

WRITER = "acidsql.storage.writing.event_writer"


@pytest.fixture
def new(spark, monkeypatch):
    """The shared Spark, as if its workers had never been started early."""
    monkeypatch.setattr(module, "_WARMED", WeakSet())
    return spark


@contextmanager
def other_workers(spark):
    """Let Spark start new workers: it keeps workers apart that have other environments."""
    name = f"ACIDSQL_TEST_{os.urandom(4).hex()}"
    spark.sparkContext.environment[name] = "1"
    try:
        yield
    finally:
        del spark.sparkContext.environment[name]


@pytest.fixture
def session(spark, acid):
    """A session with the default setting; the shared Spark's conf switches it off."""
    with acidsql.connect(
        spark,
        warehouse=acid.warehouse,
        compactor="off",
        settings={"acidsql.warm.workers": "statement"},
    ) as own:
        own.sql("CREATE TABLE t (k INT, v STRING) TBLPROPERTIES ('transactional'='true')")
        own.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        yield own


@pytest.fixture
def started(monkeypatch):
    """The Spark sessions whose workers a statement or ``connect`` would start."""
    found = []
    monkeypatch.setattr(family, "warm_workers", found.append)
    monkeypatch.setattr(sessions, "warm_workers", found.append)
    return found


def has_writer(spark):
    """Whether the worker of a new task has imported the writer before the task began."""
    writer = WRITER

    def tell(batches):
        import pyarrow as pa

        for _ in batches:
            pass
        yield pa.record_batch({"found": [writer in sys.modules]})

    return spark.range(0, 1, 1, 1).mapInArrow(tell, "found boolean").first()[0]


def jobs(spark):
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return context.dagScheduler().nextJobId()


def test_a_later_task_finds_a_worker_that_has_imported_the_writer(new):
    with other_workers(new):
        assert not has_writer(new)
    with other_workers(new):
        warm_workers(new).join()
        assert has_writer(new)


def test_the_workers_of_a_context_are_started_once(new):
    before = jobs(new)
    warm_workers(new).join()
    assert jobs(new) == before + 1
    assert warm_workers(new) is None
    assert warm_workers(new.newSession()) is None
    assert jobs(new) == before + 1


def test_a_callers_jobs_keep_their_properties(new):
    context = new.sparkContext
    context.setJobGroup("a caller of warm_workers", "my description")
    context.setLocalProperty("spark.scheduler.pool", "my pool")
    try:
        warm_workers(new).join()
        assert context.getLocalProperty("spark.job.description") == "my description"
        assert context.getLocalProperty("spark.scheduler.pool") == "my pool"
        assert list(context.statusTracker().getJobIdsForGroup("a caller of warm_workers")) == []
        assert [*context.getJobTags()] == []
    finally:
        context._jsc.clearJobGroup()
        context.setLocalProperty("spark.scheduler.pool", None)


@pytest.mark.classic
def test_an_error_in_the_thread_reaches_nobody(new, session, monkeypatch, capfd):
    def fail(_):
        raise RuntimeError("the context was stopped")

    monkeypatch.setattr(spark_jobs, "run_alone", fail)
    session.sql("DELETE FROM t WHERE k IN (SELECT 1)")
    assert [row.k for row in session.sql("SELECT k FROM t").collect()] == [2]
    monkeypatch.setattr(module, "_WARMED", WeakSet())
    warm_workers(new).join()
    told = capfd.readouterr()
    assert "the context was stopped" not in told.out + told.err


def test_nothing_is_started_if_spark_does_not_keep_workers(new, monkeypatch):
    monkeypatch.setattr(spark_jobs, "keeps_workers", lambda _: False)
    assert warm_workers(new) is None


@pytest.mark.parametrize("value, keeps", [("true", True), ("FALSE", False), (None, True)])
def test_spark_keeps_workers_unless_it_is_told_not_to(value, keeps):
    class Context:
        def getConf(self):  # noqa: N802 - Spark's name
            return self

        def get(self, name, default):
            return default if value is None else value

    assert spark_jobs.keeps_workers(Context()) == keeps


def test_without_a_context_nothing_is_started():
    assert warm_workers(object()) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE k IN (SELECT 1)",
        "SHOW TABLES",
        "EXPLAIN DELETE FROM t WHERE k IN (SELECT 1)",
        "INSERT INTO t VALUES (3, 'c')",
        "UPDATE t SET v = 'x' WHERE k = 1",
        "DELETE FROM t WHERE k = 1",
    ],
)
def test_a_statement_that_reads_or_changes_few_rows_starts_no_worker(session, started, text):
    session.sql(text)
    assert started == []


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT k + 10, v FROM t",
        "FROM t INSERT INTO t SELECT k + 10, v",
        "CREATE TABLE u TBLPROPERTIES ('transactional'='true') AS SELECT * FROM t",
        "DELETE FROM t",
        "UPDATE t SET v = 'x' WHERE k IN (SELECT 1)",
        "MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE",
    ],
)
def test_a_statement_that_may_need_workers_starts_them(session, started, text):
    session.sql(text)
    assert started == [session.spark]


def test_the_setting_can_be_changed_in_a_session(session, started):
    session.sql("SET acidsql.warm.workers = off")
    session.sql("DELETE FROM t")
    assert started == []


@pytest.mark.parametrize("when, times", [("connect", 1), ("statement", 0), ("off", 0)])
def test_connect_starts_workers_only_if_the_setting_says_so(spark, acid, started, when, times):
    chosen = {"acidsql.warm.workers": when}
    with acidsql.connect(spark, warehouse=acid.warehouse, compactor="off", settings=chosen):
        assert started == [spark] * times
