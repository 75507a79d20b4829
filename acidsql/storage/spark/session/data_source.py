"""Lets a Spark session know the format ``acidsql``.

When Spark meets a format that it does not know, it looks for data sources in the first ``python3``
on the path, or in that of PYSPARK_PYTHON. Where this is another Python than the driver's, as with a
virtual environment that is not active, acidsql is not there. So ``connect`` registers the source.
"""

from __future__ import annotations

import logging
import sys
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from acidsql.storage.spark.session.java_classes import java_class
from acidsql.storage.spark.session.jvm import spark_context

_log = logging.getLogger(__name__)

_JAVA_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"
_REGISTERED_SOURCES = "runtimeDataSourceBuilders"  # a map of DataSourceManager
_registered_defaults: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()


def register_data_source(spark: SparkSession, defaults: dict[str, str]) -> None:
    """Let ``format("acidsql")`` mean acidsql's data source in a Spark session. A later call for the
    same object replaces the defaults. Call ``prepare_workers`` first.

    With a local master the source runs in the driver's own Python, on a cluster in that of the
    workers. The server of Spark Connect runs it in the Python of its workers, from the code that
    ``prepare_workers`` has sent.

    If Spark refuses the source, nothing is raised: only the format needs it, and Spark looks for it
    itself then. The next call tries again.

    Args:
        spark: The session.
        defaults: Values of the options ``warehouse`` and ``metastore``, for those who give neither.
    """
    from pyspark_acidsql import DefaultSource

    if _registered_defaults.get(spark) == defaults:
        return
    source = type(DefaultSource.__name__, (DefaultSource,), {"defaults": defaults})
    try:
        if spark_context(spark) is None:
            spark.dataSource.register(source)
        else:
            _register_quietly(spark, source)
    except Exception as error:
        _log.debug("Spark does not take the format acidsql: %s", error)
        return
    _registered_defaults[spark] = defaults


def _register_quietly(spark: SparkSession, source: type[Any]) -> None:
    """Register a data source as ``spark.dataSource.register`` does, in the place of one of its
    name. Spark's own method also starts the first ``python3`` on the path and looks for data
    sources there. This takes a second, and if it fails, Spark logs a warning of eighty lines.

    If this version of Spark keeps its sources in another place, or lacks anything that is used
    here, call Spark's own method.
    """
    try:
        manager: Any = spark._jsparkSession.sessionState().dataSourceManager()
        sources = manager.getClass().getDeclaredField(_REGISTERED_SOURCES)
        sources.setAccessible(True)
        sources.get(manager).put(source.name(), _java_source(spark, source))
    except Exception:  # a missing class of Java is a TypeError, a missing function an ImportError
        spark.dataSource.register(source)


def _java_source(spark: SparkSession, source: type[Any]) -> Any:
    """Return Spark's Java object for a data source: the pickled class, with the Python that runs
    it, and the files and variables of the Spark context."""
    from pyspark.core.rdd import _prepare_for_python_RDD

    context: Any = spark_context(spark)
    pickled, broadcasts, environment, files = _prepare_for_python_RDD(context, source)
    is_local = str(context.master).startswith("local")
    function = context._jvm.SimplePythonFunction(
        bytearray(pickled), environment, files,
        sys.executable if is_local else context.pythonExec,
        context.pythonVer, broadcasts, context._javaAccumulator,
    )  # fmt: skip
    return java_class(context._jvm, _JAVA_SOURCE)(function)
