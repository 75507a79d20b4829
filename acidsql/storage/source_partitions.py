"""The partitions that a MERGE's source has rows for, where ON equates columns with them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.predicate import (
    ANYTHING,
    INTEGERS,
    Comparison,
    Predicate,
    Value,
    all_of,
)
from acidsql.acid.table import Column
from acidsql.storage.columns import quote

_VALUES_MAX = 1000
_ALIKE = (*INTEGERS, "date", "string", "boolean")
_MENDED = "\ufffd"  # what no UTF-8 is becomes in Python


def demanded_by_source(source: DataFrame, equated: Sequence[tuple[Column, str]]) -> Predicate:
    """What must hold of a row's partition, for a row of the source to be its partner.

    A job reads the source.

    Args:
        source: A query that gives the same rows each time.
        equated: Partition columns, and the source's columns that must be equal to them.
    """
    kinds = {name.lower(): kind for name, kind in source.dtypes}
    alike = [(column, name) for column, name in equated if _is_alike(column, kinds.get(name, ""))]
    if not alike:
        return ANYTHING
    texts = [F.col(quote(name)).cast("string") for _, name in alike]
    rows = source.select(*texts).distinct().limit(_VALUES_MAX + 1).collect()
    if len(rows) > _VALUES_MAX:
        return ANYTHING
    return all_of(
        [
            _among({row[i] for row in rows}, kinds[name], column)
            for i, (column, name) in enumerate(alike)
        ]
    )


def _is_alike(column: Column, kind: str) -> bool:
    """Whether values are equal where their texts are."""
    return column.type == kind and (kind in _ALIKE or kind.startswith("decimal"))


def _among(texts: set[str | None], kind: str, column: Column) -> Predicate:
    known = sorted(text for text in texts if text is not None)
    if not known or any(_MENDED in text for text in known):
        return ANYTHING
    return Comparison(column.name, "in", tuple(Value(kind, text) for text in known))
