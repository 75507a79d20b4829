"""Temporary views for the time of an analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def temp_views(views: Mapping[str, DataFrame]) -> Iterator[None]:
    """Let Spark's SQL name these DataFrames in the block. What is analysed there keeps the plans.

    A view replaces another of its name, so the names must be the caller's own.
    """
    made = []
    try:
        for name, view in views.items():
            view.createOrReplaceTempView(name)
            made.append((view.sparkSession, name))
        yield
    finally:
        for session, name in made:
            session.catalog.dropTempView(name)
