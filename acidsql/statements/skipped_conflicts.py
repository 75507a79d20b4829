"""SKIP CONFLICTS: the changes of a version, without those of rows that were changed again since.

A changed row has another row id than the row that it replaced, so only the table's key tells which
of the version's deleted rows a new row replaced. Where the key does not tell it, a row could come
back beside its changed twin, or be lost: then the revert is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.storage.columns import literal, quote
from acidsql.storage.event_records import KEYS
from acidsql.storage.reading.change_columns import CHANGE_TYPE, DELETE, INSERT
from acidsql.storage.spark import jvm

_AGAIN = "again"  # in CHANGE_TYPE: a row that was changed again
_DELETED, _INSERTED, _CHANGED = "__acidsql_deleted", "__acidsql_inserted", "__acidsql_again"


def without_conflicts(rows: DataFrame, again: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The changes of a version, without those of the rows that were changed again.

    Args:
        rows: The changes of the version, as ``keyed_changes`` gives them.
        again: The rows that the version inserted, and that were deleted since.
        keys: The table's key columns; NULL is a value as any other.
    """
    names = [*KEYS, *map(quote, keys)]
    changed = jvm.select(
        again, *(f"{name} AS `__acidsql_{number}`" for number, name in enumerate(names))
    )
    same = [f"{name} <=> `__acidsql_{number}`" for number, name in enumerate(names)]
    same_row, same_key = (" AND ".join(part) for part in (same[: len(KEYS)], same[len(KEYS) :]))
    is_skipped = f"CASE WHEN {CHANGE_TYPE} = '{INSERT}' THEN {same_row} ELSE {same_key} END"
    return rows.join(changed, F.expr(is_skipped), "left_anti")


def unknown_twin(
    rows: DataFrame, again: DataFrame, keys: Sequence[str], updated: int
) -> str | None:
    """Why nothing tells which rows the rows that were changed again had replaced.

    Args:
        rows: The changes of the version, as for ``without_conflicts``.
        again: The rows that were changed again.
        keys: The table's key columns.
        updated: The number of rows that the version's statements say to have updated.

    Returns:
        The reason, as part of a sentence; None if the keys tell it.
    """
    counts = _counted(rows, again, keys)
    if counts.several is not None:
        return f"the version has several rows with {counts.several}"
    if not counts.lost:
        return None  # a row whose key was changed leaves its old key without a row
    if counts.without is not None:
        return (
            f"the version had no row with {counts.without} before, and deleted rows under other "
            "keys: an UPDATE may have changed a key"
        )
    if counts.new and counts.pairs != updated:
        return "the version may have given rows another key, as an UPDATE of a key does"
    return None


def _counted(rows: DataFrame, again: DataFrame, keys: Sequence[str]) -> Row:
    """Counts of keys by what became of their rows, and one key of each doubtful kind, as text."""
    names = [f"`__acidsql_{number}`" for number in range(len(keys))]
    columns = [f"{quote(key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    kinds = jvm.select(rows, CHANGE_TYPE, *columns).unionAll(
        jvm.select(again, f"'{_AGAIN}' AS {CHANGE_TYPE}", *columns)
    )
    numbers = ((DELETE, _DELETED), (INSERT, _INSERTED), (_AGAIN, _CHANGED))
    by_key = kinds.groupBy(*names).agg(
        *(F.expr(f"count_if({CHANGE_TYPE} = '{kind}')").alias(name) for kind, name in numbers)
    )
    key_text = ", ', ', ".join(
        f"{literal(key)}, ' = ', coalesce(CAST({name} AS STRING), 'NULL')"
        for key, name in zip(keys, names, strict=True)
    )
    is_doubled = f"{_CHANGED} > 0 AND ({_DELETED} > 1 OR {_INSERTED} > 1)"
    is_alone = f"{_CHANGED} > 0 AND {_DELETED} = 0"
    counts = by_key.agg(
        F.expr(f"min(CASE WHEN {is_doubled} THEN concat({key_text}) END) AS several"),
        F.expr(f"min(CASE WHEN {is_alone} THEN concat({key_text}) END) AS without"),
        F.expr(f"count_if({_DELETED} > {_INSERTED}) AS lost"),
        F.expr(f"count_if({_DELETED} < {_INSERTED}) AS new"),
        F.expr(f"coalesce(sum(least({_DELETED}, {_INSERTED})), 0) AS pairs"),
    )
    (row,) = counts.collect()
    return row
