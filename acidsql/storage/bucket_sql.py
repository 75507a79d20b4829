"""The bucket of a row as Spark computes it, for the types that tables are mostly clustered by.

``bucketing`` knows all types, in Python: there and back takes longer than the hash. Whether the
functions that are called here are Spark's own is for the caller to see: in Spark 4.1 a session may
have others under their names.
"""

from __future__ import annotations

from collections.abc import Sequence

# Spark's hash() begins with 42, and of this number makes 104729, which Hive's Murmur3 begins with.
_TO_HIVES_SEED = 1867871456
_BITS = 0x7FFFFFFF


def bucket_sql(
    columns: Sequence[str], hive_types: Sequence[str], num_buckets: int, version: int
) -> str | None:
    """SQL of ``bucketing.bucket_ids``; None: Spark cannot tell.

    Args:
        columns: SQL of the CLUSTERED BY columns, in order.
        hive_types: Their types in Hive's words.
        num_buckets: INTO n BUCKETS.
        version: The table's ``bucketing_version``.
    """
    combined = "0L"
    for column, kind in zip(columns, hive_types, strict=True):
        one = _hash(column, kind, version)
        if one is None:
            return None
        # The lowest 31 bits are all that matters, and with no more of them nothing overflows.
        bits = f"CASE WHEN {column} IS NULL THEN 0L ELSE CAST({one} AS BIGINT) & {_BITS} END"
        combined = f"((31L * {combined} + {bits}) & {_BITS})"
    return f"CAST({combined} % {num_buckets} AS INT)"


def _hash(column: str, kind: str, version: int) -> str | None:
    """SQL of a value's hash; of NULL it may be anything."""
    number = f"unix_date({column})" if kind == "date" else column
    if kind == "tinyint":
        return number
    if kind not in ("int", "date", "bigint"):
        return None
    if version == 1:
        return number if kind != "bigint" else f"(shiftrightunsigned({number}, 32) ^ {number})"
    if version == 2:
        return f"hash({_TO_HIVES_SEED}, {_reversed(number, 8 if kind == 'bigint' else 4)})"
    return None


def _reversed(number: str, width: int) -> str:
    """Its bytes from last to first: Java's ByteBuffer is big-endian, Spark's hash is not."""
    last = 8 * (width - 1)
    moved = (
        f"shiftleft(shiftrightunsigned({number}, {bits}) & 255, {last - bits})"
        for bits in range(0, last + 1, 8)
    )
    return f"({' | '.join(moved)})"
