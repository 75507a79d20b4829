"""The values that the source of a MERGE or an AUTO CDC has for columns of the target."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Column
from acidsql.acid.values.predicate import (
    ANYTHING,
    INTEGERS,
    VALUES_MAX,
    Comparison,
    Predicate,
    TypedValue,
    conjunction,
)
from acidsql.costs import FastPath, note_fast_path
from acidsql.storage.columns import quote

_MENDED = "\ufffd"  # Python gets this character for bytes that are not valid UTF-8


def source_predicate(
    source: DataFrame,
    equated: Sequence[tuple[Column, str]],
    *,
    is_distinct: bool = False,
    most: int = VALUES_MAX,
) -> Predicate:
    """Return a predicate on columns of the target that holds for every target row with a source
    row: that each column, by itself, has one of the values of its source's column. ANYTHING if the
    values tell nothing or are too many.

    A job reads the source, unless the driver has its rows.

    Args:
        source: A query that gives the same rows each time.
        equated: Pairs of a column of the target and the source's column that it must equal. Only
            pairs of the same type count, and only integers, decimals, dates, strings and booleans.
        is_distinct: Most rows of the source have values of their own, so the rows are counted
            instead of the different values.
        most: If the source has more different values, the predicate is ANYTHING.
    """
    # Spark's own name of a type tells a string with a collation from a string without one.
    types = dict(source.dtypes)
    comparable_pairs = [
        (column, name)
        for column, name in equated
        if types[name] == column.type and has_one_text(column.type)
    ]
    if not comparable_pairs:
        return ANYTHING
    texts = [F.col(quote(name)).cast("string") for _, name in comparable_pairs]
    values = source.select(*texts)
    values = values if is_distinct else values.distinct()
    rows = values.limit(most + 1).collect()
    if len(rows) > most:
        return ANYTHING
    predicate = conjunction(
        [
            _in_list({row[i] for row in rows}, column)
            for i, (column, _) in enumerate(comparable_pairs)
        ]
    )
    if predicate != ANYTHING:
        note_fast_path(FastPath.SOURCE_PARTITIONS)
    return predicate


def has_one_text(kind: str) -> bool:
    """Whether two values of this type are equal if, and only if, their texts are equal."""
    return kind in (*INTEGERS, "date", "string", "boolean") or kind.startswith("decimal")


def _in_list(texts: set[str | None], column: Column) -> Predicate:
    """Return the predicate that a column has one of these texts; ANYTHING if there are none, or one
    is not valid UTF-8. A None does not count.
    """
    value_texts = sorted(text for text in texts if text is not None)
    if not value_texts or any(_MENDED in text for text in value_texts):
        return ANYTHING
    return Comparison(
        column.name, "in", tuple(TypedValue(column.type, text) for text in value_texts)
    )
