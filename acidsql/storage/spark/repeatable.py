"""Whether a statement may evaluate a query twice: does the query give the same rows both times?

Spark calls an expression deterministic if it is so for given rows. But a LIMIT, or a window over
ties, may choose other rows the second time. So a query may be evaluated twice only if its plan has
known nodes only: columns, filters and joins over files and literals. Others may overwrite the files
meanwhile, so the sizes and modification times of the files are noted, and compared afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.paths import is_within
from acidsql.errors import TransientTxnError
from acidsql.storage.spark.clocks import is_timeless
from acidsql.storage.spark.session.java_classes import java_class
from acidsql.storage.spark.session.jvm import (
    calls_java,
    estimated_bytes,
    heap_bytes,
    may_call_user_code,
)

_PLANS = frozenset({"Project", "Filter", "Union", "Join", "SubqueryAlias", "View", "ResolvedHint"})
_LEAVES = frozenset({"LocalRelation", "Range", "OneRowRelation"})
# The name of the Python function that reads an ACID table's files, which never change (I2).
READER = "__acidsql_reader"
_FILES_MAX = 200  # each file is compared afterwards; a source of more files is read once
_STATUS = re.compile(
    r"\w*FileStatus\{path=([^;]+); isDirectory=false; length=(\d+);.*?modification_time=(\d+);"
)
# Spark broadcasts a relation of up to spark.sql.autoBroadcastJoinThreshold bytes. Only the source's
# columns that ON names are broadcast, so the whole source may be so many times as large.
_WIDER = 8
_HASHED = 32  # for numeric keys, the driver's hash table takes ten times the keys' bytes
_TINY = 128 * 1024

_Stamp = tuple[str, str, str]  # path, bytes, milliseconds


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A query that may be evaluated twice, unless its files are changed meanwhile.

    Attributes:
        bytes: Spark's estimate of the size of its rows.
        stamps: For each of its files the path, the size and the time of the last change.
    """

    bytes: float
    stamps: Sequence[_Stamp]

    def is_small(self, spark: SparkSession) -> bool:
        """Whether Spark's estimate lets the session broadcast a few of its columns: at most eight
        times ``spark.sql.autoBroadcastJoinThreshold``, and a 32nd of the driver's heap. Needs a
        JVM.
        """
        limit = int(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
        return self.bytes <= min(limit * _WIDER, heap_bytes(spark) // _HASHED)

    @property
    def is_tiny(self) -> bool:
        """Whether the estimate is 128 KiB or less: a MERGE with this source probably changes few
        rows.
        """
        return self.bytes <= _TINY

    @contextmanager
    def require_unchanged(self, spark: SparkSession) -> Iterator[None]:
        """Run a block, and raise TransientTxnError at its end if a file has changed or gone since
        the stamps were taken, in place of any error of the block. Otherwise this error passes.
        """
        try:
            yield
        except Exception:
            self.refuse_changed(spark)
            raise
        self.refuse_changed(spark)

    def refuse_changed(self, spark: SparkSession, but_below: str | None = None) -> None:
        """Raise TransientTxnError if a file has changed since the stamps were taken, or is gone.

        ``but_below``: a directory whose files never change, and are not looked at.
        """
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        for stamp in self.stamps:
            if but_below is not None and is_within(stamp[0], but_below):
                continue
            if _stamp_now(spark, stamp[0], conf) != stamp:
                raise source_changed_error(f"'{stamp[0]}'")


def source_changed_error(path: str = "a file") -> TransientTxnError:
    """Return the error for a source that has changed."""
    return TransientTxnError(
        f"{path}, which the source is read from, was changed while the statement ran. Run it "
        "again.",
        condition="SOURCE_CHANGED",
    )


def repeatable_query(frame: DataFrame) -> Repeatable | None:
    """Return a query that may be evaluated twice, with the stamps of its files (path, size, time of
    change): if they stay, the rows are the same both times. No job runs.

    None if the plan does not make this certain: it may depend on the time (``is_timeless``), calls
    a function of the user's in Java, is not deterministic for Spark, has a node that this module
    does not know, reads more than 200 files, or lists its files anew. None, too, without a JVM.
    """
    execution = getattr(frame, "_jdf", None)
    if execution is None:  # Spark Connect
        return None
    # The optimised plan has values where the query asks for the time or calls a function.
    if not is_timeless(frame) or calls_java(frame):
        return None
    plan = execution.queryExecution().optimizedPlan()
    stamps: list[_Stamp] = []
    if not plan.deterministic() or not _is_known(plan, stamps):
        return None
    if not _lists_once(execution.queryExecution().analyzed()):
        return None
    return Repeatable(estimated_bytes(frame), stamps)


def prevent_reevaluation(source: DataFrame) -> DataFrame:
    """Return the same rows, lazily, in a form in which a query that reads them once evaluates each
    row once (``hide_constants``). It is ``source`` itself if it calls no function of the user's, or
    may be evaluated twice (``repeatable_query``).

    Spark takes a function of the user's for deterministic unless the user says otherwise. Of ``f()
    AS k`` and ``t.k = s.k`` its optimiser concludes ``t.k = f()``, and calls the function for each
    row of ``t``, too. It cannot do so through a generator.
    """
    if may_call_user_code(source) and repeatable_query(source) is None:
        return hide_constants(source)
    return source


def is_of_literals(frame: DataFrame) -> bool:
    """Whether a query reads nothing: all leaves of Spark's analysed plan are literal rows, a range
    or the row of a SELECT without FROM. Subqueries in expressions are not looked at. False without
    a JVM.
    """
    execution = getattr(frame, "_jdf", None)
    if execution is None:
        return False
    leaves = execution.queryExecution().analyzed().collectLeaves()
    return all(leaves.apply(i).nodeName() in _LEAVES for i in range(leaves.size()))


def constant_columns(frame: DataFrame) -> frozenset[str]:
    """Return the names, in lower case, of the columns that have the same value in all rows, as far
    as Spark's optimised plan tells: it ends with a projection that gives the name to a constant
    expression. Empty without such a projection. Needs a JVM.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    if plan.nodeName() != "Project":
        return frozenset()
    columns = plan.projectList()
    plan_columns = (columns.apply(i) for i in range(columns.size()))
    return frozenset(
        str(column.name()).lower()
        for column in plan_columns
        if column.getClass().getSimpleName() == "Alias" and column.child().foldable()
    )


def hide_constants(frame: DataFrame) -> DataFrame:
    """Return the same rows in a form in which Spark cannot see that a column is constant.

    A semi-join by constant columns alone has no condition left. Spark's rules then move it below
    the scan's projection and back again, up to their limit of a hundred iterations.
    """
    return frame.selectExpr("inline(array(struct(*)))")


def is_broadcast_by_spark(rows: DataFrame) -> bool:
    """Whether Spark by itself takes a query's rows for few enough to broadcast them: its estimate
    for the analysed plan is within ``spark.sql.autoBroadcastJoinThreshold``. Needs a JVM; no job
    runs.

    Spark pushes comparisons with constants down to such a table, so it broadcasts few rows. A
    search for partners beforehand would cost another job.
    """
    session = rows.sparkSession._jsparkSession
    limit = int(session.sessionState().conf().autoBroadcastJoinThreshold())
    size = rows._jdf.queryExecution().analyzed().stats().sizeInBytes()
    return int(str(size)) <= limit


def _lists_once(analyzed: Any) -> bool:
    """Whether every query made of an analysed plan reads the files that the plan has listed
    (``_files_of``). False if a relation has more than 200 files. Leaves that are no relations of a
    data source do not count.

    This is not so for a partitioned table of Spark's catalog: each query lists its files anew.
    """
    leaves = analyzed.collectLeaves()
    relations = (leaves.apply(i) for i in range(leaves.size()))
    return all(
        _files_of(leaf.relation()) is not None
        for leaf in relations
        if leaf.getClass().getSimpleName() == "LogicalRelation"
    )


def _is_known(plan: Any, stamps: list[_Stamp]) -> bool:
    """Whether all nodes of a plan and its subqueries are known, and it reads at most 200 files
    together with those in ``stamps``. Adds the stamps of the plan's files to ``stamps``, also if
    the answer is no. Our own Python reader of an ACID table is known, and has no stamps.
    """
    name = plan.getClass().getSimpleName()
    if name == "LogicalRelation":
        files = _files_of(plan.relation())
        stamps += files or []
        return files is not None and len(stamps) <= _FILES_MAX
    if name in _LEAVES:
        return True
    is_reader = name == "MapInArrow" and plan.functionExpr().name() == READER
    if name not in _PLANS and not is_reader:
        return False
    # Subqueries in expressions stand beside the children.
    children_and_subqueries = [plan.children(), plan.subqueries()]
    return all(
        _is_known(nodes.apply(i), stamps)
        for nodes in children_and_subqueries
        for i in range(nodes.size())
    )


def _files_of(relation: Any) -> list[_Stamp] | None:
    """Return the stamps of a relation's files, as Spark has listed them; None if it does not read
    a fixed list of plain files, has more than 200, or does not tell the stamp of each.
    """
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    index = relation.location()
    if index.getClass().getSimpleName() != "InMemoryFileIndex":
        return None
    files = index.allFiles()
    if files.size() > _FILES_MAX:
        return None
    stamps = _STATUS.findall(files.mkString("\n"))
    return stamps if len(stamps) == files.size() else None


def _stamp_now(spark: SparkSession, path: str, conf: Any) -> _Stamp | None:
    """Return the stamp that a file has now; None if it does not exist, or is a directory.
    ``conf``: Hadoop's.
    """
    jvm = spark._jvm
    assert jvm is not None
    name = java_class(jvm, "org.apache.hadoop.fs.Path")(path)
    files = name.getFileSystem(conf)
    if not files.exists(name):
        return None
    stamps = _STATUS.findall(files.getFileStatus(name).toString())
    return stamps[0] if stamps else None
