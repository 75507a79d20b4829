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
_MENDED = "\ufffd"  # what no UTF-8 is becomes in Python


def demanded_by_source(source: DataFrame, equated: Sequence[tuple[Column, str]]) -> Predicate:
    """What must hold of a row's partition, for a row of the source to be its partner.

    A job reads the source.

    Args:
        source: A query that gives the same rows each time.
        equated: Partition columns, and the source's columns that must be equal to them.
    """
    found = _equal_types(source, equated)
    if not found:
        return ANYTHING
    texts = [F.col(quote(name)).cast("string") for _, name in found]
    rows = source.select(*texts).distinct().limit(_VALUES_MAX + 1).collect()
    if len(rows) > _VALUES_MAX:
        return ANYTHING
    return all_of([_among({row[i] for row in rows}, column) for i, (column, _) in enumerate(found)])


def _equal_types(
    source: DataFrame, equated: Sequence[tuple[Column, str]]
) -> list[tuple[Column, str]]:
    """The pairs whose values are equal where their texts are; names as the source has them."""
    found = []
    for column, wanted in equated:
        # A session may tell p from P.
        same = [(name, kind) for name, kind in source.dtypes if name.lower() == wanted]
        if len(same) == 1 and same[0][1] == column.type and _has_one_text(column.type):
            found.append((column, same[0][0]))
    return found


def _has_one_text(kind: str) -> bool:
    return kind in (*INTEGERS, "date", "string", "boolean") or kind.startswith("decimal")


def _among(texts: set[str | None], column: Column) -> Predicate:
    known = sorted(text for text in texts if text is not None)
    if not known or any(_MENDED in text for text in known):
        return ANYTHING
    return Comparison(column.name, "in", tuple(Value(column.type, text) for text in known))
