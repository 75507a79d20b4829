"""Puts values into a text in the places of ``{name}``, as ``spark.sql`` does.

PySpark's own formatter does it. Only DataFrames stay: ``acid.sql`` takes them by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.sql.text.tokens import SqlText
from acidsql.storage.spark.session.jvm import is_remote


@contextmanager
def put_values(
    spark: SparkSession, text: SqlText, values: Mapping[str, Any]
) -> Iterator[tuple[SqlText, dict[str, Any]]]:
    """Give the block the text with the values that are no DataFrames, and the DataFrames by names
    of their own: a parameter of ``acid.sql`` may have theirs.

    Raises:
        KeyError: The text names what is not given. (PySpark's error, as those of wrong values.)
    """
    if not values:
        yield text, {}
        return
    frames = {name: value for name, value in values.items() if isinstance(value, DataFrame)}
    own_names = {name: f"frame_{name}" for name in frames}
    shown = {name: _Named(own_names[name], frame) for name, frame in frames.items()}
    whole_text = _formatter(spark).format(text, **{**values, **shown})
    yield SqlText(whole_text), {own_names[name]: frame for name, frame in frames.items()}


class _Named:
    """A DataFrame in a text: ``{df}`` stays, and ``{df[c]}`` or ``{df.c}`` is its column."""

    def __init__(self, name: str, frame: DataFrame) -> None:
        self._name, self._frame = name, frame

    def __getitem__(self, key: Any) -> Any:
        return self._frame[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    def __format__(self, spec: str) -> str:
        return f"{{{self._name}}}"


def _formatter(spark: SparkSession) -> Any:
    """Return PySpark's formatter for a session."""
    if is_remote(spark):
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter as RemoteFormatter

        return RemoteFormatter(spark)  # type: ignore[arg-type]
    from pyspark.sql.sql_formatter import SQLStringFormatter

    return SQLStringFormatter(spark)
