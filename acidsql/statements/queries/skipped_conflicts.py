"""SKIP CONFLICTS: the changes of a version, without those of rows that were changed again since.

A changed row has another row id than the row that it replaced, so only the table's key tells which
of the version's deleted rows a new row replaced. If the key does not tell this, a row could come
back beside its changed twin, or be lost. Then the revert is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.storage.columns import literal, quote
from acidsql.storage.event_records import KEYS
from acidsql.storage.reading.change_columns import CHANGE_TYPE, DELETE, INSERT
from acidsql.storage.spark.session import jvm

_CHANGED_AGAIN = "again"  # in CHANGE_TYPE: a row that was changed again
_DELETED_COUNT, _INSERTED_COUNT, _CHANGED_AGAIN_COUNT = (
    "__acidsql_deleted",
    "__acidsql_inserted",
    "__acidsql_again",
)


def exclude_conflicts(
    rows: DataFrame, rows_changed_again: DataFrame, keys: Sequence[str]
) -> DataFrame:
    """Return the changes of a version, lazily, without those of rows that were changed again:
    without the insertion of such a row, and without the deletions of rows with its key.

    Args:
        rows: The changes of the version, with the row ids in the columns ``KEYS``.
        rows_changed_again: The rows that the version inserted, and that were deleted since.
        keys: The table's key columns; NULL is a value as any other.
    """
    names = [*KEYS, *map(quote, keys)]
    changed_rows = jvm.select(
        rows_changed_again,
        *(f"{name} AS `__acidsql_{number}`" for number, name in enumerate(names)),
    )
    equalities = [f"{name} <=> `__acidsql_{number}`" for number, name in enumerate(names)]
    is_same_row, is_same_key = (
        " AND ".join(part) for part in (equalities[: len(KEYS)], equalities[len(KEYS) :])
    )
    is_skipped = f"CASE WHEN {CHANGE_TYPE} = '{INSERT}' THEN {is_same_row} ELSE {is_same_key} END"
    return rows.join(changed_rows, F.expr(is_skipped), "left_anti")


def unknown_twin_reason(
    rows: DataFrame, rows_changed_again: DataFrame, keys: Sequence[str], updated_count: int
) -> str | None:
    """Return why the keys do not tell which old rows were replaced by the rows that were changed
    again. This runs a job.

    Args:
        rows: The changes of the version.
        rows_changed_again: The rows that the version inserted, and that were deleted since.
        keys: The table's key columns.
        updated_count: The number of updated rows, by the counts of the version's statements.

    Returns:
        The reason, as part of a sentence; None if the keys tell it.
    """
    counts = _count_keys(rows, rows_changed_again, keys)
    if counts.several is not None:
        return f"the version has several rows with {counts.several}"
    if not counts.lost:
        return None  # a row whose key was changed leaves its old key without a row
    if counts.without is not None:
        return (
            f"the version had no row with {counts.without} before, and deleted rows under other "
            "keys: an UPDATE may have changed a key"
        )
    if counts.new and counts.pairs != updated_count:
        return "the version may have given rows another key, as an UPDATE of a key does"
    return None


def _count_keys(rows: DataFrame, rows_changed_again: DataFrame, keys: Sequence[str]) -> Row:
    """Count keys by their changes, in one job. Return a row with these fields:

    - ``lost``, ``new``: how many keys have more deletions than insertions, or fewer;
    - ``pairs``: how many pairs of a deletion and an insertion of one key there are;
    - ``several``: the text of a key that was changed again and has several rows, or None;
    - ``without``: the text of a key that was changed again and has no deleted row, or None.
    """
    names = [f"`__acidsql_{number}`" for number in range(len(keys))]
    columns = [f"{quote(key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    changes = jvm.select(rows, CHANGE_TYPE, *columns).unionAll(
        jvm.select(rows_changed_again, f"'{_CHANGED_AGAIN}' AS {CHANGE_TYPE}", *columns)
    )
    kinds_and_counts = (
        (DELETE, _DELETED_COUNT),
        (INSERT, _INSERTED_COUNT),
        (_CHANGED_AGAIN, _CHANGED_AGAIN_COUNT),
    )
    by_key = changes.groupBy(*names).agg(
        *(
            F.expr(f"count_if({CHANGE_TYPE} = '{kind}')").alias(name)
            for kind, name in kinds_and_counts
        )
    )
    key_text = ", ', ', ".join(
        f"{literal(key)}, ' = ', coalesce(CAST({name} AS STRING), 'NULL')"
        for key, name in zip(keys, names, strict=True)
    )
    is_doubled = f"{_CHANGED_AGAIN_COUNT} > 0 AND ({_DELETED_COUNT} > 1 OR {_INSERTED_COUNT} > 1)"
    is_alone = f"{_CHANGED_AGAIN_COUNT} > 0 AND {_DELETED_COUNT} = 0"
    counts = by_key.agg(
        F.expr(f"min(CASE WHEN {is_doubled} THEN concat({key_text}) END) AS several"),
        F.expr(f"min(CASE WHEN {is_alone} THEN concat({key_text}) END) AS without"),
        F.expr(f"count_if({_DELETED_COUNT} > {_INSERTED_COUNT}) AS lost"),
        F.expr(f"count_if({_DELETED_COUNT} < {_INSERTED_COUNT}) AS new"),
        F.expr(f"coalesce(sum(least({_DELETED_COUNT}, {_INSERTED_COUNT})), 0) AS pairs"),
    )
    (row,) = counts.collect()
    return row
