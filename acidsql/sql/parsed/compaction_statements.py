"""The parsed statements about compactions. Import them from ``statements``.

The types and states of compactions come from ``metastore.compaction_queue``.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.metastore.compaction_queue import CompactionState, CompactionType
from acidsql.sql.parsed.parts import Name, PartitionItem
from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class CompactTable:
    """``ALTER TABLE t [PARTITION (…)] COMPACT 'type' …``.

    Only a rebalance has ``buckets`` (CLUSTERED INTO) and ``order_by``, which spans the text after
    the words ORDER BY. ``pool`` is in lower case, as Hive stores it.
    """

    name: Name
    partition: tuple[PartitionItem, ...]
    type: CompactionType
    buckets: int | None
    and_wait: bool
    pool: str | None
    properties: tuple[tuple[str, str], ...]
    order_by: Span | None


@dataclass(frozen=True, slots=True)
class CompactionOrder:
    """``column [ASC|DESC]`` of SHOW COMPACTIONS. The column is one of ``compactions.ORDERED``."""

    column: str
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ShowCompactions:
    """``SHOW COMPACTIONS [COMPACTIONID = n | [t [PARTITION (…)] | DATABASE|SCHEMA d] filters]``.

    ``limit`` is the number of entries to show, None for all, after ``offset`` entries are skipped.
    """

    id: int | None = None
    name: Name | None = None
    partition: tuple[PartitionItem, ...] = ()
    database: Name | None = None
    pool: str | None = None
    type: CompactionType | None = None
    state: CompactionState | None = None
    order_by: tuple[CompactionOrder, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class AbortCompactions:
    """``ABORT COMPACTIONS n n …``."""

    ids: tuple[int, ...]
