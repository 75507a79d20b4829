"""The line that says what a statement does."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

import acidsql
from acidsql.storage.spark.session.job_progress import (
    Tasks,
    _is_of_ctrl_c,
    running_tasks,
    tagged_jobs,
)
from acidsql.terminal import magic
from acidsql.terminal.progress import progress_line, show_progress


class Line:
    """Keeps what is shown; ``seen`` is set when a line contains a text."""

    def __init__(self, awaited: str = "") -> None:
        self.lines: list[str | None] = []
        self.awaited, self.seen = awaited, threading.Event()

    def show(self, text: str | None) -> None:
        self.lines.append(text)
        if text is not None and self.awaited in text:
            self.seen.set()


def test_tasks_in_words():
    assert progress_line(Tasks(8, 3, 2), None) == "3 of 8 tasks are done, 2 run"
    read = progress_line(Tasks(8, 3, 2, rows=12345, bytes=1_500_000), None)
    assert read == "3 of 8 tasks are done, 2 run, 12,345 rows, 1.5 MB read"


def test_the_tasks_of_a_statement_are_shown_and_the_line_goes(acid, spark):
    told = Line("of 4 tasks")  # the stages after the first have 3 and 1
    with show_progress(acid, told.show, first_s=0, next_s=0.01):
        rows = 8
        while not told.seen.is_set():
            assert spark.range(0, rows, 1, 4).repartition(3).selectExpr("sum(id)").collect()
            rows *= 10
    assert told.lines[-1] is None


def test_jobs_that_have_ended_are_not_counted_and_their_tag_goes(acid, spark):
    with tagged_jobs(spark) as tag:
        spark.range(5).count()
        assert tag in spark.sparkContext.getJobTags()
    assert running_tasks(spark, tag) == Tasks()  # they have ended
    assert running_tasks(spark, "nobody") == Tasks()
    assert tag not in spark.sparkContext.getJobTags()


def _runs(stage) -> bool:
    return stage is not None and stage.numActiveTasks > 0


def test_ctrl_c_ends_the_jobs_of_its_statement_where_spark_does_not_see_it(acid, spark, request):
    """A notebook has a handler of its own. Only the call of the JVM ends, and the job goes on."""
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    spark.udf.register("slowly", lambda one: [time.sleep(0.1) for _ in range(600)] and one, "int")
    tracker = spark.sparkContext.statusTracker()

    def press() -> None:
        while not any(_runs(tracker.getStageInfo(one)) for one in tracker.getActiveStageIds()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        acid.sql("UPDATE t SET id = slowly(id)")
    deadline = time.monotonic() + 30
    while tracker.getActiveJobsIds():
        assert time.monotonic() < deadline
    spark.sql("DROP TEMPORARY FUNCTION slowly")
    assert [row.id for row in acid.table("t").collect()] == [1]


def test_an_error_that_follows_a_ctrl_c_is_a_ctrl_c_and_no_other_is(spark):
    def broken(before=None):
        with tagged_jobs(spark):
            try:
                raise before or OSError("the first")
            finally:
                raise ValueError("the connection is broken, too")

    with pytest.raises(KeyboardInterrupt):
        broken(KeyboardInterrupt())
    with pytest.raises(ValueError, match="broken"):
        broken()
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:  # the caller handles its own
        with pytest.raises(ValueError, match="broken"):
            broken()


def test_a_lock_that_a_statement_waits_for_is_told_with_its_holder(acid, spark):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other = spark.newSession()

    with acidsql.connect(other, warehouse=acid.warehouse, metastore=acid.metastore.url) as writer:
        writer.sql("BEGIN")
        writer.sql("UPDATE t SET id = 2")
        update, told = "UPDATE t SET id = id + 1", Line("has waited")

        def wait() -> None:
            with show_progress(acid, told.show, first_s=0, next_s=0.01):
                acid.sql(update)

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert told.seen.wait(60)
        writer.sql("COMMIT")
        waiter.join()
    waits = next(text for text in told.lines if text and "has waited" in text)
    assert "UPDATE t SET id = 2" in waits and "default.t" in waits
    assert [row.id for row in acid.table("t").collect()] == [3]


def test_a_short_statement_shows_nothing_and_an_error_comes_through(acid):
    told = Line()
    with show_progress(acid, told.show):
        acid.sql("SELECT 1").collect()
    with pytest.raises(ZeroDivisionError), show_progress(acid, told.show):
        raise ZeroDivisionError
    assert told.lines == []


def test_a_progress_that_cannot_be_shown_does_not_fail_its_statement(acid):
    asked = threading.Event()

    def show(text: str | None) -> None:
        asked.set()
        if text is not None:
            raise OSError("no terminal")

    with show_progress(acid, show, first_s=0, next_s=0.01):
        assert asked.wait(60)


def test_a_notebook_has_one_line_that_changes(monkeypatch):
    handles = []

    def display(content, display_id):
        assert display_id
        handles.append([content.data])
        return SimpleNamespace(update=lambda new: handles[-1].append(new.data))

    monkeypatch.setattr(magic, "display", display)
    told = magic._Line()
    told.show(None)
    for text in ("1 < 2", "2 of 2", None):
        told.show(text)
    assert handles == [["<small>1 &lt; 2</small>", "<small>2 of 2</small>", ""]]


def test_errors_that_are_causes_of_each_other_are_looked_at_once():
    """As Spark Connect raises them."""
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert not _is_of_ctrl_c(one, None)
    stopped = KeyboardInterrupt()
    other.__cause__ = stopped
    assert _is_of_ctrl_c(one, None) and not _is_of_ctrl_c(one, other)
