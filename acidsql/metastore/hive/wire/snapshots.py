"""Hive's answers about transactions and write ids → snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList


def valid_txns(answer: Any, own: int) -> ValidTxnList:
    """Make the snapshot of a ``GetOpenTxnsResponse``; the transaction ``own`` is not among the open
    ones, so it sees its own writes. If it was aborted, it stays among the aborted ones.

    Hive's client cuts the list at its own number, and takes it before its locks. acidsql takes it
    under its locks, and must see what the others did for which it has waited.
    """
    opened, aborted = _split_open_and_aborted(answer.open_txns, answer.abortedBits)
    return ValidTxnList(
        answer.txn_high_water_mark,
        tuple(number for number in opened if number != own),
        aborted,
    )


def valid_write_ids(answer: Any) -> ValidWriteIdList:
    """Make the list of a ``TableValidWriteIds``."""
    opened, aborted = _split_open_and_aborted(answer.invalidWriteIds, answer.abortedBits)
    return ValidWriteIdList(
        answer.writeIdHighWaterMark, opened, aborted, table=answer.fullTableName
    )


def _split_open_and_aborted(
    numbers: Sequence[int], bits: bytes
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the open and the aborted numbers. Bit i of ``bits`` says that the number at place i is
    aborted; zeroes at the end are not sent."""
    opened: list[int] = []
    aborted: list[int] = []
    for place, number in enumerate(numbers):
        is_set = place >> 3 < len(bits) and bits[place >> 3] >> (place & 7) & 1
        (aborted if is_set else opened).append(number)
    return tuple(opened), tuple(aborted)
