"""A Spark that leaves standard error to errors: no banner, no bars, no traces of failed tasks.

A failed task's error comes to the caller as a Python exception, with all that Spark knows. Spark
logs it twice more, with forty lines of Java each: the executor, and the scheduler.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from logging import CRITICAL
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from acidsql.storage.spark.session.java_classes import java_class
from acidsql.storage.spark.session.jvm import java_error, spark_context

_LEVEL, _BARS = "spark.log.level", "spark.ui.showConsoleProgress"
_LOGGERS_OF_TASKS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
)
# PySpark's, in Python: they log an error that is raised.
_LOGGERS_OF_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# What a JVM prints before the log level holds.
_GREETING = re.compile(
    rb"WARNING: Using incubator modules|Using Spark's default log4j profile|Setting default log "
    rb"level to|Setting Spark log level to|To adjust logging level use|"
    rb"\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN "
)
_own_jvms: list[Any] = []  # the gateway of the JVM that this module has started
_quiet_applications: set[str] = set()  # by application id


def new_spark(confs: Mapping[str, str]) -> SparkSession:
    """Return the Spark session of this process, with these confs set, or a new one.

    If this starts Spark, it logs errors only, without those of tasks, and shows no bars. It logs as
    it is told if the confs have a log level or options of log4j, or if Spark's directory of
    settings has any. A session of Spark Connect, and one of ``spark-submit``, whose JVM runs
    already, stay as they are.
    """
    if _is_started_by_others() or _is_remote(confs):
        return _session(confs)
    if _has_own_logging(confs):
        return _session({_BARS: "false", **confs})
    quiet_confs = {_BARS: "false", _LEVEL: "ERROR", **confs}
    with _quiet_jvm(quiet_confs):
        spark = _session(quiet_confs)
        _silence_tasks(spark)
    return spark


def _session(confs: Mapping[str, str]) -> SparkSession:
    """Return the session of this process, or a new one, with these confs set."""
    builder = SparkSession.builder
    for name, value in confs.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def is_noisy(spark: SparkSession) -> bool:
    """Whether Spark shows bars in this process, which was not told to be quiet. False over Spark
    Connect, whose server has a log of its own."""
    context = spark_context(spark)
    if context is None or context.applicationId in _quiet_applications:
        return False
    return str(context.getConf().get(_BARS, "false")).lower() == "true"


def quiet_spark(spark: SparkSession) -> None:
    """Let a Spark that runs log errors only, without those of tasks, and show no bars; for all
    sessions of this process. Over Spark Connect do nothing."""
    context = spark_context(spark)
    if context is None:
        return
    context.setLogLevel("ERROR")
    _silence_tasks(spark)
    bar = context._jsc.sc().progressBar()
    if bar.isDefined():
        bar.get().stop()


def _is_started_by_others() -> bool:
    """Whether Spark runs already, or ``spark-submit`` or somebody else has started this process's
    JVM. A JVM that ``new_spark`` has started, whose Spark was stopped since, does not count."""
    has_jvm = SparkContext._gateway is not None and not _own_jvms
    is_running = SparkContext._active_spark_context is not None
    return is_running or has_jvm or "PYSPARK_GATEWAY_PORT" in os.environ


def _is_remote(confs: Mapping[str, str]) -> bool:
    """Whether a new session is one of Spark Connect."""
    names = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")
    mode = confs.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    is_named = any(name in os.environ for name in names) or "spark.remote" in confs
    return is_named or mode.lower() == "connect"


def _has_own_logging(confs: Mapping[str, str]) -> bool:
    """Whether someone has decided how Spark logs: by a conf, or in Spark's directory of
    settings."""
    home = Path(os.environ.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf")
    defaults, arguments = "", os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    with suppress(OSError):
        defaults = (home / "spark-defaults.conf").read_text(errors="replace")
    lines = [line for line in defaults.splitlines() if not line.lstrip().startswith("#")]
    texts = "\n".join([*lines, arguments, *confs, *confs.values()])
    # A distribution of Spark has a template, which has no effect.
    has_file = any(path.suffix != ".template" for path in home.glob("log4j2*"))
    return _LEVEL in texts or "log4j" in texts or has_file


@contextmanager
def _quiet_jvm(confs: Mapping[str, str]) -> Iterator[None]:
    """Start the JVM that PySpark uses from now on, unless there is one, with its standard error
    behind a filter. Its greeting ends with the block."""
    if SparkContext._gateway is not None:
        yield
        return
    conf = SparkConf()
    for name, value in confs.items():
        conf.set(name, value)
    with _Filter() as filter_:
        gateway = launch_gateway(conf, {"stderr": filter_.input})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
        _own_jvms.append(gateway)
        yield


def _silence_tasks(spark: SparkSession) -> None:
    """Let Spark and PySpark not log errors that they raise, too, and remember that it is quiet. A
    Java whose log is not log4j's goes on logging."""
    context = spark_context(spark)
    if context is None:
        return
    for name in _LOGGERS_OF_ERRORS:
        PySparkLogger.getLogger(name).setLevel(CRITICAL)
    jvm = spark._jvm
    with suppress(java_error(), TypeError):
        level = java_class(jvm, "org.apache.logging.log4j.Level").OFF
        configurator = java_class(jvm, "org.apache.logging.log4j.core.config.Configurator")
        for name in _LOGGERS_OF_TASKS:
            configurator.setLevel(name, level)
    _quiet_applications.add(context.applicationId)


class _Filter:
    """Passes on what a JVM writes to its standard error; within ``with``, without its greeting.

    Attributes:
        input: The descriptor of a pipe, for the JVM.
    """

    def __init__(self) -> None:
        self._output, self.input = os.pipe()
        self._is_starting = True

    def __enter__(self) -> _Filter:
        threading.Thread(target=self._pass_on, name="acidsql JVM output", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_starting = False
        os.close(self.input)  # the JVM has its own copy

    def _pass_on(self) -> None:
        """Write all to standard error until the JVM ends: line by line while it starts, afterwards
        as it comes, because a bar is no line."""
        unfinished = b""
        with suppress(OSError):  # standard error is closed
            while chunk := os.read(self._output, 65_536):
                unfinished += chunk
                if self._is_starting:
                    *lines, unfinished = unfinished.split(b"\n")
                    for line in lines:
                        if not _GREETING.match(line):
                            os.write(2, line + b"\n")
                else:
                    os.write(2, unfinished)
                    unfinished = b""
            os.write(2, unfinished)
        os.close(self._output)
