"""Checks the records of an AUTO CDC statement, and counts the decisions about them.

The folded records are one row for each key: its newest record, in the columns ``k0``, ``k1`` … the
key, and counts of its records. A decision says what such a record does to the target (``act``) and
to the state table, which keeps order values beside the target (``note``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.errors import ConstraintError
from acidsql.plan.cdc.decision import DUPLICATE, STALE, RowAct
from acidsql.plan.cdc.fold import NULL_KEY, NULL_SEQUENCE
from acidsql.plan.cdc.queries import PreparedCdc
from acidsql.statements.context.result import Counts
from acidsql.storage.writing.staging import EvaluatedRows

_SAMPLES = 3
_CONFLICTING = "AUTOCDC_MICROBATCH_VALIDATION.CONFLICTING_RECORDS"


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of records, and of decisions about them.

    Attributes:
        records: The number of records.
        stale: The number of records that are older than another record, or row, of their key.
        duplicates: The number of records that the table or the source has already.
        acts: The number of rows of the target for each kind of act.
        state_rows: The number of rows of the state table that change.
        decisions: The number of decisions about keys that have records; with SCD type 2, about
            records.
        duplicate_targets: The number of decisions that found several rows of the target.
    """

    records: int
    stale: int
    duplicates: int
    acts: dict[RowAct, int]
    state_rows: int
    decisions: int
    duplicate_targets: int

    def counts(self, table: str, write_id: int | None) -> Counts:
        """Return the counts of changed rows for a receipt. A row that moves to another partition is
        one updated row."""
        acts = self.acts
        updated = acts[RowAct.UPDATE] + acts[RowAct.MOVE]
        return Counts(table, acts[RowAct.INSERT], updated, acts[RowAct.DELETE], write_id)

    @property
    def row_counts(self) -> tuple[int, int]:
        """The numbers of rows that change: of the target, and of the state table."""
        return sum(self.acts.values()), self.state_rows

    def __str__(self) -> str:
        """The tally for a receipt, such as ``3 records, 1 stale, 1 duplicate``, without stale ones
        or duplicates if there are none."""
        parts = [f"{self.records:,} record{'s' * (self.records != 1)}"]
        parts += [f"{self.stale:,} stale"] if self.stale else []
        parts += [f"{self.duplicates:,} duplicate"] if self.duplicates else []
        return ", ".join(parts)


def check_records(prepared: PreparedCdc, records: EvaluatedRows) -> dict[str, int]:
    """Count the records, and refuse bad ones before any table is changed. ``records``: the folded
    ones, a row for each key. A job may run.

    Returns:
        Counts by name: ``keys``, ``orders`` (pairs of a key and an order value), ``records``,
        ``nulls`` and ``no_keys`` (bad records), ``ties`` (bad pairs of a key and an order value)
        and ``truncations``.

    Raises:
        ConstraintError: AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY, .NULL_SEQUENCE or
            .CONFLICTING_RECORDS, with a few keys.
    """
    key_columns = [f"k{i}" for i in range(len(prepared.rules.keys))]
    no_key_condition = f"NOT tr AND ({' OR '.join(f'{name} IS NULL' for name in key_columns)})"
    counts = _sums(records, {
        "keys": "1", "orders": "m", "records": "n", "nulls": "nulls",
        "no_keys": f"CASE WHEN {no_key_condition} THEN n END", "ties": "ties",
        "truncations": "CASE WHEN tr THEN 1 END",
    })  # fmt: skip
    of_records, no_keys, nulls, ties = (
        f"of {counts['records']:,} records", counts["no_keys"],
        counts["nulls"], counts["ties"],
    )  # fmt: skip
    faults = (
        (NULL_KEY, no_keys, no_key_condition, f"{no_keys:,} {of_records} have a NULL in their key"),
        (NULL_SEQUENCE, nulls, "nulls > 0",
         f"{nulls:,} {of_records} have a NULL in their order value"),
        (_CONFLICTING, ties, "ties > 0",
         f"Different records have one key and one order value ({ties:,} times)"),
    )  # fmt: skip
    for condition, count, condition_sql, message in faults:
        if count:
            keys = _key_samples(
                prepared, records.rows.where(condition_sql), is_tie=condition == _CONFLICTING
            )
            raise ConstraintError(
                f"{message}: {keys}. Nothing of them was applied.", condition=condition, keys=keys
            )
    return counts


def check_decisions(
    prepared: PreparedCdc, decisions: EvaluatedRows, counts: Mapping[str, int]
) -> Tally:
    """Count the decisions about the records, and refuse a target with two rows of one key of the
    records before any table is changed. Such keys are only looked for if a decision has found two
    rows, there are more or fewer decisions than records tell, or a record truncates. Jobs may run.
    ``counts``: those of ``check_records``.

    Raises:
        ConstraintError: AUTOCDC_TARGET_KEY_NOT_UNIQUE, with a few keys.
    """
    tally = _count_decisions(decisions)
    is_history = prepared.rules.tracked_columns is not None
    expected = counts["orders" if is_history else "keys"]
    if tally.decisions != expected or tally.duplicate_targets or counts["truncations"]:
        _refuse_duplicate_keys(prepared, decisions.rows)
    return tally


def _refuse_duplicate_keys(prepared: PreparedCdc, decisions: DataFrame) -> None:
    """Refuse a target, or state table, with two rows of one key; with SCD type 2, of one key and
    one ``__START_AT``. The rows of ``decisions`` tell. Keys with a NULL are passed over. This runs
    a job.

    Raises:
        ConstraintError: AUTOCDC_TARGET_KEY_NOT_UNIQUE, with up to three keys.
    """
    key_columns = [f"k{i}" for i in range(len(prepared.rules.keys))]
    whole_key = " AND ".join(f"{name} IS NOT NULL" for name in key_columns)
    grouping_columns = [
        *key_columns,
        *(["s"] if prepared.rules.tracked_columns is not None else []),
    ]
    groups = (
        decisions.where(whole_key).groupBy(*grouping_columns).agg(F.count("*"), F.bool_or("twice"))
    )
    duplicate_keys = groups.toDF(*grouping_columns, "count", "twice").where("count > 1 OR twice")
    if duplicate_keys.isEmpty():
        return
    keys = _key_samples(prepared, duplicate_keys)
    and_start = "" if len(grouping_columns) == len(key_columns) else " and one __START_AT"
    raise ConstraintError(
        f"{prepared.queries[0].table.name}, or its table of order values, has several rows of one "
        f"key{and_start}: {keys}. So it cannot follow changes. Delete all but one of them.",
        condition="AUTOCDC_TARGET_KEY_NOT_UNIQUE",
        keys=keys,
    )


def _key_samples(prepared: PreparedCdc, rows: DataFrame, *, is_tie: bool = False) -> str:
    """Return the names of the key columns and up to three keys of ``rows`` as text, ``(k) = (1),
    (2)``; with ``is_tie``, each with the order value that several different records have. A job may
    run."""
    keys = prepared.rules.keys
    columns = [f"CAST(k{i} AS STRING)" for i in range(len(keys))]
    sample_rows = rows.selectExpr(*columns, *(["tie"] if is_tie else [])).head(_SAMPLES)
    names = ", ".join(key.name for key in keys)

    def key_text(row: Row) -> str:
        values = ", ".join("NULL" if value is None else value for value in row[: len(keys)])
        return f"({values})" + (f" at {row[-1]}" if is_tie else "")

    return f"({names}) = {', '.join(map(key_text, sample_rows))}"


def _count_decisions(decisions: EvaluatedRows) -> Tally:
    """Return the tally of AUTO CDC's decisions, and of the records that they are about. A key's
    newest record counts by its fate, the older ones as stale, and each further copy of a record as
    a duplicate. A job runs unless the decisions are few."""

    def one_if(condition: str) -> str:
        return f"CASE WHEN {condition} THEN 1 ELSE 0 END"

    is_duplicate, is_stale = (one_if(f"fate = '{fate}'") for fate in (DUPLICATE, STALE))
    totals = _sums(decisions, {
        **{act.name: one_if(f"act = {act.value}") for act in list(RowAct)[1:]},
        "keys": one_if("n IS NOT NULL"),
        "twice": one_if("twice"),
        "notes": one_if(f"note <> {RowAct.NOTHING.value}"),
        "records": "n",
        # A key's newest record is applied, or is a duplicate, or is stale. The older ones are
        # stale, and further copies of each are duplicates.
        "duplicates": f"coalesce(n - m, 0) + {is_duplicate}",
        "stale": f"coalesce(m - 1, 0) + {is_stale}",
    })  # fmt: skip
    acts = {act: totals[act.name] for act in list(RowAct)[1:]}
    return Tally(
        totals["records"], totals["stale"], totals["duplicates"], acts, totals["notes"],
        totals["keys"], totals["twice"],
    )  # fmt: skip


def _sums(evaluated: EvaluatedRows, expressions: Mapping[str, str]) -> dict[str, int]:
    """Return the sum of each SQL expression over all rows: name → sum, 0 for NULLs and no rows.

    For few rows no job runs: Spark's optimiser evaluates columns of literals.
    """
    if evaluated.few is not None:
        rows = evaluated.rows.selectExpr(*expressions.values()).collect()
        return {name: sum(row[i] or 0 for row in rows) for i, name in enumerate(expressions)}
    sums = (f"coalesce(sum({sql}), 0) AS {name}" for name, sql in expressions.items())
    (row,) = evaluated.rows.selectExpr(*sums).collect()
    return {name: int(row[name]) for name in expressions}
