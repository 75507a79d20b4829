"""Runs Python models in dbt's own process, in the session of their connection."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from dbt.adapters.acidsql.session import SessionHandle
from pyspark.sql import DataFrame


def run_python_model(handle: SessionHandle, code: str, path: str) -> None:
    """Run the code that dbt has compiled for a model.

    The code finds ``spark``, ``acid``, and the functions that dbt's generated lines call:
    ``load_model``, ``write_table`` and ``write_view``. ``path`` is the model's, for tracebacks.
    """
    session = handle.session

    def load_model(name: str) -> DataFrame:
        return session.sql(f"SELECT * FROM {name}")

    def write_table(rows: Any, statement: str) -> None:
        """Run a statement that reads the model's rows as ``{model_rows}``."""
        handle.execute_with_frames(statement, {"model_rows": _as_spark_frame(rows)})

    def write_view(rows: Any, name: str) -> None:
        """Let the session read the model's rows under a name."""
        _as_spark_frame(rows).createOrReplaceTempView(name)

    def _as_spark_frame(rows: Any) -> DataFrame:
        """Return a model's rows as a DataFrame of this Spark session: also those of pandas, of
        pandas on Spark, and all else that ``createDataFrame`` takes."""
        # A frame of Spark Connect takes the name of any attribute for that of a column.
        if not isinstance(rows, DataFrame) and hasattr(rows, "to_spark"):
            rows = rows.to_spark()
        if not isinstance(rows, DataFrame):
            return session.spark.createDataFrame(rows)
        return rows if rows.sparkSession is session.spark else _in_this_session(rows)

    def _in_this_session(frame: DataFrame) -> DataFrame:
        """Return a DataFrame that another Spark session has made, as pandas on Spark does, as one
        of this session: all sessions of Spark see a global temporary view."""
        name = f"dbt_model_{uuid4().hex}"
        frame.createGlobalTempView(name)
        database = session.spark.conf.get("spark.sql.globalTempDatabase")
        return session.spark.table(f"{database}.{name}")

    names = {
        # No module has this name, so that functions of the model go to Spark's workers by value.
        "__name__": "dbt_python_model",
        "spark": session.spark,
        "acid": session,
        "load_model": load_model,
        "write_table": write_table,
        "write_view": write_view,
    }
    # dbt's macros put white space before the first line, which Python would take for a block.
    exec(compile(code.lstrip(), path, "exec"), names)
