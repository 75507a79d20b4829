"""COMPLETED_COMPACTIONS: which entries of the history are kept.

For each table or partition, the newest entries of each state are kept, up to a number. An entry
that did not succeed is deleted after a time-out, if a compaction of the same type, or a major one,
has succeeded since.

Source: Hive 4.0 ``PurgeCompactionHistoryFunction``. Hive keeps aborted entries for ever; here they
count as entries that were not begun.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select

from acidsql.metastore.compaction_queue import CompactionState, CompactionType, HistoryRetention
from acidsql.metastore.embedded.database.schema import COMPLETED_COMPACTIONS

CC = COMPLETED_COMPACTIONS.c


def outdated_entries(connection: Connection, keep: HistoryRetention, now_ms: int) -> list[int]:
    """Return the numbers of the entries of the history that ``keep`` does not keep: of each table
    or partition those beyond the newest ones of their state, and unsuccessful ones that ended
    longer ago than the time-out and were followed by a success."""
    place = (CC.CC_DATABASE, CC.CC_TABLE, CC.CC_PARTITION)
    query = select(*place, CC.CC_ID, CC.CC_STATE, CC.CC_TYPE, CC.CC_END)
    rows = connection.execute(query.order_by(*place, CC.CC_ID.desc()))
    oldest_ms = now_ms - keep.timeout_ms
    return [
        number
        for _, one_place in itertools.groupby(rows, key=lambda row: tuple(row[: len(place)]))
        for number in _outdated_ids(one_place, keep, oldest_ms)
    ]


def forget(connection: Connection, numbers: Iterable[int]) -> None:
    """Delete the entries of the history that have these numbers."""
    chosen = [{"number": number} for number in numbers]
    if chosen:
        this = CC.CC_ID == bindparam("number")
        connection.execute(delete(COMPLETED_COMPACTIONS).where(this), chosen)


def _outdated_ids(
    newest_first: Iterable[Any], keep: HistoryRetention, oldest_ms: int
) -> Iterator[int]:
    """Yield the numbers of the entries of one table or partition that are not to be kept: too many
    of their state (an aborted one counts as not begun), or unsuccessful, ended before
    ``oldest_ms``, and followed by a success of the same type or of a major one."""
    most = {
        CompactionState.SUCCEEDED: keep.succeeded,
        CompactionState.FAILED: keep.failed,
        CompactionState.REFUSED: keep.refused,
        CompactionState.DID_NOT_INITIATE: keep.did_not_initiate,
    }
    counts: Counter[CompactionState] = Counter()
    succeeded: set[CompactionType] = set()
    for row in newest_first:
        state, kind = CompactionState(row.CC_STATE), CompactionType(row.CC_TYPE)
        if state is CompactionState.ABORTED:
            state = CompactionState.DID_NOT_INITIATE
        counts[state] += 1
        made_good = bool(succeeded & {kind, CompactionType.MAJOR})
        if state is CompactionState.SUCCEEDED:
            succeeded.add(kind)
            made_good = False
        if counts[state] > most[state] or (made_good and row.CC_END < oldest_ms):
            yield row.CC_ID
