"""SQL by which Spark computes the bucket of a row, for the most usual types.

``bucketing`` knows all types, but it is Python, and to send the values to Python and back takes
longer than the hash. The caller must check that the functions in the SQL are Spark's own: in
Spark 4.1 a session may redefine them.
"""

from __future__ import annotations

from collections.abc import Sequence

# Hive's Murmur3 starts with the seed 104729. Spark's hash() starts with 42, and its state is 104729
# after it has hashed this number.
_TO_HIVES_SEED = 1867871456
_BITS = 0x7FFFFFFF


def bucket_sql(
    columns: Sequence[str], hive_types: Sequence[str], num_buckets: int, version: int
) -> str | None:
    """Return SQL of a row's bucket id, as ``bucketing.bucket_ids`` computes it; None if SQL cannot
    compute it.

    Only TINYINT, INT, BIGINT and DATE columns can be computed.

    Args:
        columns: SQL of the CLUSTERED BY columns, in order.
        hive_types: Their types in Hive's words.
        num_buckets: INTO n BUCKETS.
        version: The table's ``bucketing_version``.
    """
    combined = "0L"
    for column, kind in zip(columns, hive_types, strict=True):
        hash_sql = _hash_sql(column, kind, version)
        if hash_sql is None:
            return None
        # Only the lowest 31 bits matter. Without the other bits nothing overflows.
        bits = f"CASE WHEN {column} IS NULL THEN 0L ELSE CAST({hash_sql} AS BIGINT) & {_BITS} END"
        combined = f"((31L * {combined} + {bits}) & {_BITS})"
    return f"CAST({combined} % {num_buckets} AS INT)"


def _hash_sql(column: str, kind: str, version: int) -> str | None:
    """Return SQL of a value's hash; None if SQL cannot compute it. For NULL the result may be
    anything.
    """
    number = f"unix_date({column})" if kind == "date" else column
    if kind == "tinyint":
        return number
    if kind not in ("int", "date", "bigint"):
        return None
    if version == 1:
        return number if kind != "bigint" else f"(shiftrightunsigned({number}, 32) ^ {number})"
    if version == 2:
        return (
            f"hash({_TO_HIVES_SEED}, {_reversed_bytes_sql(number, 8 if kind == 'bigint' else 4)})"
        )
    return None


def _reversed_bytes_sql(number_sql: str, num_bytes: int) -> str:
    """Return SQL of an integer with its bytes in reversed order. ``num_bytes``: 4 of an INT, 8 of a
    BIGINT.

    Hive hashes the bytes of Java's ByteBuffer, which are big-endian; Spark's hash is little-endian.
    """
    last = 8 * (num_bytes - 1)
    moved = (
        f"shiftleft(shiftrightunsigned({number_sql}, {bits}) & 255, {last - bits})"
        for bits in range(0, last + 1, 8)
    )
    return f"({' | '.join(moved)})"
