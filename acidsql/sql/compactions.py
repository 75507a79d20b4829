"""Parses ALTER TABLE … COMPACT and SHOW COMPACTIONS, with Hive 4's clauses in Hive 4's order.

A clause in the wrong place is refused, because Hive could not read it, and the message names the
right order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from acidsql.errors import AnalysisError, SqlSyntaxError
from acidsql.metastore.compaction_queue import CompactionState, CompactionType
from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import static_partition
from acidsql.sql.properties import properties
from acidsql.sql.statements import (
    CompactionOrder,
    CompactTable,
    Name,
    PartitionItem,
    ShowCompactions,
)
from acidsql.sql.tokens import Kind, Span, Token, words

# The columns for ORDER BY in SHOW COMPACTIONS. HIGHESTWRITEID is Hive's word here, though Hive's
# column has the name hightestwriteid.
ORDERED = (
    "COMPACTIONID", "DBNAME", "TABNAME", "PARTNAME", "ENQUEUETIME", "STARTTIME", "POOLNAME",
    "NEXTTXNID", "HADOOPJOBID", "WORKERHOST", "WORKERID", "DURATION", "TXNID", "COMMITTIME",
    "HIGHESTWRITEID",
)  # fmt: skip

_DATABASE = ("DATABASE", "SCHEMA")
# Words that can follow a query's ORDER BY. COMPACT's ORDER BY is put into the query of the
# rebalance, and these words could make this query lose or add rows.
_NO_ORDER = words(
    "WHERE LIMIT OFFSET SORT CLUSTER DISTRIBUTE WINDOW GROUP HAVING QUALIFY UNION EXCEPT MINUS "
    "INTERSECT |>"
)


@dataclass(slots=True)
class _Draft:
    """The values of the clauses that were read so far."""

    type: CompactionType | None = None
    buckets: int | None = None
    and_wait: bool = False
    pool: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    order_by: Span | None = None
    state: CompactionState | None = None
    orders: tuple[CompactionOrder, ...] = ()
    limit: int | None = None
    offset: int = 0


class _Clause(NamedTuple):
    """A clause: its first word, its name in messages, and the function that reads it."""

    word: str
    shown: str
    read: Callable[[Cursor, _Draft], None]


# ── ALTER TABLE … COMPACT ────────────────────────────────────────────────────────────────────


def at_compact(c: Cursor) -> bool:
    """Whether ``[PARTITION (…)] COMPACT`` comes next."""
    if c.at("PARTITION", "("):
        return c.words_at(c.partner[c.index + 1] + 1, "COMPACT")
    return c.at("COMPACT")


def compact(c: Cursor, name: Name) -> CompactTable:
    """Parse ``[PARTITION (…)] COMPACT 'type' …`` after the name of the table.

    Args:
        c: A cursor at a place where ``at_compact`` is true.
        name: The name of the table.
    """
    partition = static_partition(c) if c.at("PARTITION") else ()
    c.expect("COMPACT")
    found = _Draft()
    kind = found.type = _type(c)
    _clauses(c, _COMPACT, found, "COMPACT")
    return CompactTable(
        name, partition, kind, found.buckets, found.and_wait, found.pool, found.properties,
        found.order_by,
    )  # fmt: skip


def _type(c: Cursor) -> CompactionType:
    token = c.token
    said = c.string("a type of compaction in quotes")
    kind = CompactionType.__members__.get(said.upper())
    if kind is None:
        known = _choice(f"'{one.name.lower()}'" for one in CompactionType)
        _unknown(
            c, token, f"There is no compaction of type '{said}' (Hive 10282): say {known}",
            "INVALID_COMPACTION_TYPE",
        )  # fmt: skip
    return kind


def _clustered(c: Cursor, draft: _Draft) -> None:
    _need_rebalance(c, draft, "CLUSTERED INTO")
    c.expect("CLUSTERED", "INTO")
    at = c.token
    draft.buckets = c.number()
    if not 0 < draft.buckets <= 4096:
        c.fail("Expected a number of buckets from 1 to 4096", at)
    c.expect("BUCKETS")


def _and_wait(c: Cursor, draft: _Draft) -> None:
    c.expect("AND", "WAIT")
    draft.and_wait = True


def _pool(c: Cursor, draft: _Draft) -> None:
    c.expect("POOL")
    at = c.token
    draft.pool = c.string("the name of a pool in quotes").lower()
    if not draft.pool:
        c.fail("Expected the name of a pool in quotes", at)


def _overwrite(c: Cursor, draft: _Draft) -> None:
    c.expect("WITH", "OVERWRITE", "TBLPROPERTIES")
    draft.properties = properties(c)


def _order_by(c: Cursor, draft: _Draft) -> None:
    _need_rebalance(c, draft, "ORDER BY")
    c.expect("ORDER", "BY")
    start = c.index
    while True:
        # AND WAIT could be part of a condition, but nobody orders rows by a condition.
        c.expression((",", "AND WAIT", "CLUSTERED INTO", "WITH OVERWRITE"))
        if not c.accept(","):
            break
    for index in range(start, c.index):
        _refuse_tail(c, index)
    draft.order_by = c.span_from(start)


def _refuse_tail(c: Cursor, index: int) -> None:
    """Refuse a word that may end the ORDER BY. In doubt refuse, because rows could be lost."""
    token = c.tokens[index]
    if token.upper == "POOL" and c.tokens[index + 1].kind is Kind.STRING:
        _out_of_place(c, token, _COMPACT, "COMPACT")
    if token.upper in _NO_ORDER and c.tokens[index - 1].text != ".":
        c.refuse(
            f"{token.upper} is not supported in COMPACT's ORDER BY (a column of that name is "
            "written in back-quotes)",
            token.span,
        )


def _need_rebalance(c: Cursor, draft: _Draft, what: str) -> None:
    if draft.type is not CompactionType.REBALANCE:
        span = Span(c.token.start, c.peek().end)
        c.refuse(
            f"{what} is supported by COMPACT 'rebalance' only: other compactions leave rows in "
            "their buckets and in their order",
            span,
        )


# ── SHOW COMPACTIONS ─────────────────────────────────────────────────────────────────────────


def show_compactions(c: Cursor) -> ShowCompactions:
    """Parse the text after ``SHOW COMPACTIONS``."""
    if c.at("COMPACTIONID", "="):
        c.take(2)
        number = c.number()
        c.end("the end of the statement, as a number needs no filters")
        return ShowCompactions(id=number)
    name = database = None
    partition: tuple[PartitionItem, ...] = ()
    if c.at_any(_DATABASE) and c.peek().is_name and not _at_clause(c, 1):
        c.take()
        database = c.name("the name of a database")
    elif c.token.is_name and not _at_clause(c):
        name = c.name()
        partition = static_partition(c) if c.at("PARTITION") else ()
    found = _Draft()
    _clauses(c, _SHOW, found, "SHOW COMPACTIONS")
    return ShowCompactions(
        None, name, partition, database, found.pool, found.type, found.state, found.orders,
        found.limit, found.offset,
    )  # fmt: skip


def _at_clause(c: Cursor, ahead: int = 0) -> bool:
    """Whether a clause begins here. Words such as POOL can also be the name of a table."""
    word, following = c.peek(ahead).upper, c.peek(ahead + 1)
    if word in ("POOL", "TYPE", "STATUS"):
        return following.kind is Kind.STRING
    if word == "LIMIT":
        return following.kind is Kind.NUMBER
    return (word, following.upper) in (("ORDER", "BY"), ("PARTITION", "("))


def _type_filter(c: Cursor, draft: _Draft) -> None:
    c.expect("TYPE")
    draft.type = _type(c)


def _status_filter(c: Cursor, draft: _Draft) -> None:
    c.expect("STATUS")
    token = c.token
    said = c.string("a state of compactions in quotes")
    draft.state = CompactionState.__members__.get(re.sub(r"[\s_]+", "_", said.strip()).upper())
    if draft.state is None:
        known = _choice(f"'{state.shown}'" for state in CompactionState)
        _unknown(
            c, token, f"No compaction has the state '{said}': say {known}",
            "INVALID_COMPACTION_STATE",
        )  # fmt: skip


def _orders(c: Cursor, draft: _Draft) -> None:
    c.expect("ORDER", "BY")
    found = [_order(c)]
    while c.accept(","):
        found.append(_order(c))
    draft.orders = tuple(found)


def _order(c: Cursor) -> CompactionOrder:
    start = c.index
    is_text = c.token.kind is Kind.STRING
    token = c.take() if is_text else c.name_part("the name of a column")
    column = token.value.upper()
    if column not in ORDERED:
        _unknown(
            c, token, f"SHOW COMPACTIONS cannot be ordered by '{token.value}', only by "
            f"{_choice(ORDERED)}",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703",
        )  # fmt: skip
    descending = c.accept("DESC") is not None
    if not descending:
        c.accept("ASC")
    return CompactionOrder(column, descending, c.span_from(start))


def _limit(c: Cursor, draft: _Draft) -> None:
    """Parse ``LIMIT n [OFFSET m]`` or ``LIMIT m, n``."""
    c.expect("LIMIT")
    draft.limit = c.number()
    if c.accept("OFFSET"):
        draft.offset = c.number()
    elif c.accept(","):
        draft.offset, draft.limit = draft.limit, c.number()


# ── clauses ──────────────────────────────────────────────────────────────────────────────────

_COMPACT = (
    _Clause("CLUSTERED", "CLUSTERED INTO … BUCKETS", _clustered),
    _Clause("AND", "AND WAIT", _and_wait),
    _Clause("POOL", "POOL", _pool),
    _Clause("WITH", "WITH OVERWRITE TBLPROPERTIES", _overwrite),
    _Clause("ORDER", "ORDER BY", _order_by),
)
_SHOW = (
    _Clause("POOL", "POOL", _pool),
    _Clause("TYPE", "TYPE", _type_filter),
    _Clause("STATUS", "STATUS", _status_filter),
    _Clause("ORDER", "ORDER BY", _orders),
    _Clause("LIMIT", "LIMIT", _limit),
)


def _clauses(c: Cursor, known: Sequence[_Clause], draft: _Draft, statement: str) -> None:
    """Parse clauses to the end: each of ``known`` at most once, and in the order of ``known``."""
    places = {clause.word: place for place, clause in enumerate(known)}
    last = -1
    while not c.done:
        place = places.get(c.token.upper)
        if place is None:
            left = [clause.shown for clause in known[last + 1 :] if _can_have(draft, clause)]
            c.fail(f"Expected {_choice([*left, 'the end of the statement'])}")
        if place <= last:
            _out_of_place(c, c.token, known, statement)
        last = place
        known[place].read(c, draft)


def _can_have(draft: _Draft, clause: _Clause) -> bool:
    is_rebalance = draft.type is CompactionType.REBALANCE
    return is_rebalance or clause.read not in (_clustered, _order_by)


def _out_of_place(c: Cursor, token: Token, known: Sequence[_Clause], statement: str) -> NoReturn:
    order = ", ".join(clause.shown for clause in known)
    raise SqlSyntaxError(
        f"{token.upper} stands in the wrong place: the clauses of {statement} come once each, in "
        f"this order: {order}.",
        c.text, token.start, token.end,
    )  # fmt: skip


def _unknown(
    c: Cursor, token: Token, message: str, condition: str, sqlstate: str = "42601"
) -> NoReturn:
    raise AnalysisError(
        f"{message}.", c.text, token.start, token.end, condition=condition, sqlstate=sqlstate
    )


def _choice(names: Iterable[Any]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else str(last)
