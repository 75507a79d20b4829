"""AUTO CDC's records: what is wrong with them, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.errors import ConstraintError
from acidsql.plan.cdc import PreparedCdc
from acidsql.plan.cdc_decision import DUPLICATE, STALE, Act
from acidsql.plan.cdc_fold import NULL_KEY, NULL_SEQUENCE
from acidsql.statements.result import Counts
from acidsql.storage.writing.staging import Evaluated

_SAMPLES = 3
_CONFLICTING = "AUTOCDC_MICROBATCH_VALIDATION.CONFLICTING_RECORDS"


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the records.

    Attributes:
        records: The number of records.
        stale: Those that a newer record, or a newer row, has overtaken.
        duplicates: Those that were there already, in the table or in the source.
        acts: The number of rows of the target for each kind of act.
        notes: The number of rows of the state table that change.
        keys: The number of decisions about keys with records or, with SCD type 2, about records.
        twice: The number of decisions about several rows of the target.
    """

    records: int
    stale: int
    duplicates: int
    acts: dict[Act, int]
    notes: int
    keys: int
    twice: int

    def counts(self, table: str, write_id: int | None) -> Counts:
        """The changed rows. A row that moves is one updated row."""
        acts = self.acts
        updated = acts[Act.UPDATE] + acts[Act.MOVE]
        return Counts(table, acts[Act.INSERT], updated, acts[Act.DELETE], write_id)

    def __str__(self) -> str:
        parts = [f"{self.records:,} record{'s' * (self.records != 1)}"]
        parts += [f"{self.stale:,} stale"] if self.stale else []
        parts += [f"{self.duplicates:,} duplicate"] if self.duplicates else []
        return ", ".join(parts)


def check_records(prepared: PreparedCdc, folded: Evaluated) -> dict[str, int]:
    """Refuse bad records, before anything is changed.

    Returns:
        The numbers of ``keys``, of ``orders`` (keys and order values) and of ``truncations``, by
        name.

    Raises:
        ConstraintError: AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY, .NULL_SEQUENCE or
            .CONFLICTING_RECORDS, with a few keys.
    """
    names = [f"k{i}" for i in range(len(prepared.rules.keys))]
    no_key = f"NOT tr AND ({' OR '.join(f'{name} IS NULL' for name in names)})"
    found = _totals(folded, {
        "keys": "1", "orders": "m", "records": "n", "nulls": "nulls",
        "no_keys": f"CASE WHEN {no_key} THEN n END", "ties": "ties",
        "truncations": "CASE WHEN tr THEN 1 END",
    })  # fmt: skip
    of, no_keys, nulls, ties = (
        f"of {found['records']:,} records", found["no_keys"], found["nulls"], found["ties"]
    )  # fmt: skip
    faults = (
        (NULL_KEY, no_keys, no_key, f"{no_keys:,} {of} have a NULL in their key"),
        (NULL_SEQUENCE, nulls, "nulls > 0", f"{nulls:,} {of} have a NULL in their order value"),
        (_CONFLICTING, ties, "ties > 0",
         f"Different records have one key and one order value ({ties:,} times)"),
    )  # fmt: skip
    for condition, count, where, message in faults:
        if count:
            keys = _samples(prepared, folded.rows.where(where), is_tie=condition == _CONFLICTING)
            raise ConstraintError(
                f"{message}: {keys}. Nothing of them was applied.",
                condition=condition, keys=keys,
            )  # fmt: skip
    return found


def refuse_twice(prepared: PreparedCdc, decided: DataFrame) -> None:
    """Refuse a target with two rows of one key.

    Raises:
        ConstraintError: AUTOCDC_TARGET_KEY_NOT_UNIQUE, with a few keys.
    """
    names = [f"k{i}" for i in range(len(prepared.rules.keys))]
    whole = " AND ".join(f"{name} IS NOT NULL" for name in names)
    by = [*names, *(["s"] if prepared.rules.history is not None else [])]
    found = decided.where(whole).groupBy(*by).agg(F.count("*"), F.bool_or("twice"))
    twice = found.toDF(*by, "count", "twice").where("count > 1 OR twice")
    if twice.isEmpty():
        return
    keys = _samples(prepared, twice)
    and_start = "" if len(by) == len(names) else " and one __START_AT"
    raise ConstraintError(
        f"{prepared.queries[0].table.name}, or its table of order values, has several rows of one "
        f"key{and_start}: {keys}. So it cannot follow changes. Delete all but one of them.",
        condition="AUTOCDC_TARGET_KEY_NOT_UNIQUE", keys=keys,
    )  # fmt: skip


def _samples(prepared: PreparedCdc, rows: DataFrame, *, is_tie: bool = False) -> str:
    """A few keys as text, each with an order value that several records have."""
    keys = prepared.rules.keys
    columns = [f"CAST(k{i} AS STRING)" for i in range(len(keys))]
    found = rows.selectExpr(*columns, *(["tie"] if is_tie else [])).head(_SAMPLES)
    names = ", ".join(key.name for key in keys)

    def shown(row: Row) -> str:
        values = ", ".join("NULL" if one is None else one for one in row[: len(keys)])
        return f"({values})" + (f" at {row[-1]}" if is_tie else "")

    return f"({names}) = {', '.join(map(shown, found))}"


def tally_of(decided: Evaluated) -> Tally:
    """Count what was decided."""

    def if_(condition: str) -> str:
        return f"CASE WHEN {condition} THEN 1 ELSE 0 END"

    is_duplicate, is_stale = (if_(f"fate = '{fate}'") for fate in (DUPLICATE, STALE))
    found = _totals(decided, {
        **{act.name: if_(f"act = {act.value}") for act in list(Act)[1:]},
        "keys": if_("n IS NOT NULL"),
        "twice": if_("twice"),
        "notes": if_(f"note <> {Act.NOTHING.value}"),
        "records": "n",
        # A key's newest record is applied, or is a duplicate, or is stale. The older ones are
        # stale, and further copies of each are duplicates.
        "duplicates": f"coalesce(n - m, 0) + {is_duplicate}",
        "stale": f"coalesce(m - 1, 0) + {is_stale}",
    })  # fmt: skip
    acts = {act: found[act.name] for act in list(Act)[1:]}
    return Tally(
        found["records"], found["stale"], found["duplicates"], acts, found["notes"],
        found["keys"], found["twice"],
    )  # fmt: skip


def _totals(found: Evaluated, values: Mapping[str, str]) -> dict[str, int]:
    """The sum of each of these numbers (SQL by name) over all rows; a NULL counts nothing.

    No job runs for few rows: Spark's optimiser evaluates columns of literals.
    """
    if found.few is not None:
        rows = found.rows.selectExpr(*values.values()).collect()
        return {name: sum(row[i] or 0 for row in rows) for i, name in enumerate(values)}
    sums = (f"coalesce(sum({sql}), 0) AS {name}" for name, sql in values.items())
    (row,) = found.rows.selectExpr(*sums).collect()
    return {name: int(row[name]) for name in values}
