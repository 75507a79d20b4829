"""Makes a temporary view of each DataFrame that a statement names (``{name}``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import AnalysisError
from acidsql.plan.standins.query import view_name
from acidsql.sql.text.frames import frame_argument, frame_tokens
from acidsql.statements.context.statement_text import Args, named_args
from acidsql.storage.spark.given_rows import Rows, to_frame
from acidsql.storage.spark.session.jvm import session_key, substitute_variables
from acidsql.storage.spark.views import temp_views


@contextmanager
def named_frames(
    spark: SparkSession, text: str, args: Args, frames: Mapping[str, Rows]
) -> Iterator[Args]:
    """Make a temporary view of each DataFrame (or rows) that a statement names in braces, for as
    long as the block runs. Those that the text does not name are checked, but get no view.
    ``${…}`` variables in the text are substituted before.

    Yields:
        The statement's arguments by name and, for each DataFrame that the text names, its view's
        name under ``frame_argument(name)``. If the text names none: ``args`` as they are.

    Raises:
        AnalysisError: A DataFrame is a stream, or belongs to another Spark session.
        pyspark.errors.PySparkException: Spark cannot make a DataFrame of the rows.
    """
    for name, rows in frames.items():
        if isinstance(rows, DataFrame):
            _check_frame(spark, name, rows)
    text = substitute_variables(spark, text) if frames else ""
    used_names = {token.text[1:-1] for token in frame_tokens(text, double_quoted=False)}
    views = {name: view_name() for name in frames if name in used_names}
    if not views:
        yield args
        return
    with temp_views({view: to_frame(spark, frames[name]) for name, view in views.items()}):
        yield {**(named_args(args) or {}), **{frame_argument(name): views[name] for name in views}}


def _check_frame(spark: SparkSession, name: str, frame: DataFrame) -> None:
    """Raise AnalysisError, which shows the DataFrame's ``name`` in the statement, if the DataFrame
    is a stream, or belongs to another Spark session than ``spark``."""
    if frame.isStreaming:
        raise _unusable_frame_error(f"The DataFrame '{name}' is a stream. Use acid.write_stream.")
    if session_key(frame.sparkSession) != session_key(spark):
        raise _unusable_frame_error(
            f"The DataFrame '{name}' belongs to another Spark session than this session of "
            "acidsql. Open one there: acidsql.connect(df.sparkSession, …)."
        )


def _unusable_frame_error(message: str) -> AnalysisError:
    return AnalysisError(message, condition="UNSUPPORTED_FEATURE.DATAFRAME", sqlstate="0A000")
