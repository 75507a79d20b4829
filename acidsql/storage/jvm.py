"""The few things that only Spark's JVM can tell. Without it (Spark Connect) all works, slower."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import acidsql


def zone_offset_micros(spark: SparkSession) -> int | None:
    """What the JVM's default time zone is ahead of UTC, in microseconds.

    None if that depends on the date, or if there is no JVM to ask: then Spark's ORC reader cannot
    give every wall clock (two of them meet where a clock is put forward).
    """
    jvm = _jvm(spark)
    if jvm is None:
        return None
    rules = jvm.java.time.ZoneId.systemDefault().getRules()
    if not rules.isFixedOffset():
        return None
    now = jvm.java.time.Instant.now()
    return int(rules.getOffset(now).getTotalSeconds()) * 1_000_000


def _jvm(spark: SparkSession) -> Any | None:
    return getattr(spark, "_jvm", None)


def substitute_variables(spark: SparkSession, text: str) -> str:
    """``${…}`` replaced as Spark does before it parses; without a JVM the text as it is.

    Spark does it again with what it is given; that changes nothing more, because one pass already
    follows variables in variables.
    """
    jvm = _jvm(spark)
    if jvm is None or "${" not in text:
        return text
    return str(jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))


def is_temp_view(spark: SparkSession, name: str) -> bool:
    """True if a temporary view of that name hides tables of the same name."""
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return any(t.isTemporary and t.name == name for t in spark.catalog.listTables())
    jvm = _jvm(spark)
    assert jvm is not None
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name)
    return bool(session.sessionState().catalog().isTempView(identifier))


def ship_package(spark: SparkSession) -> None:
    """Send acidsql's own code to the executors of a cluster; local ones have it."""
    context = getattr(spark, "_sc", None)
    if context is None or str(context.master).startswith("local"):
        return
    root = Path(acidsql.__file__).parent
    archive = Path(tempfile.mkdtemp(prefix="acidsql-")) / "acidsql.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*.py")):
            file.write(path, path.relative_to(root.parent))
    context.addPyFile(str(archive))


def explain(frame: DataFrame, mode: str | None) -> str:
    """Spark's plan of a DataFrame, as EXPLAIN prints it."""
    known = {"EXTENDED": "extended", "FORMATTED": "formatted", "CODEGEN": "codegen", "COST": "cost"}
    return str(frame._explain_string(mode=known.get((mode or "").upper(), "simple")))
