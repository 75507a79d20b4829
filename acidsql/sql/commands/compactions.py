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
from acidsql.metastore.compaction_queue import (
    REQUESTABLE_TYPES,
    CompactionState,
    CompactionType,
)
from acidsql.sql.commands.properties import parse_properties
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import parse_static_partition
from acidsql.sql.parsed.statements import (
    CompactionOrder,
    CompactTable,
    Name,
    PartitionItem,
    ShowCompactions,
)
from acidsql.sql.text.tokens import Span, Token, TokenKind, words

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
_NOT_IN_ORDER = words(
    "WHERE LIMIT OFFSET SORT CLUSTER DISTRIBUTE WINDOW GROUP HAVING QUALIFY UNION EXCEPT MINUS "
    "INTERSECT |>"
)


@dataclass(slots=True)
class _CompactionDraft:
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
    read: Callable[[Cursor, _CompactionDraft], None]


# ── ALTER TABLE … COMPACT ────────────────────────────────────────────────────────────────────


def is_at_compact(c: Cursor) -> bool:
    """Whether ``[PARTITION (…)] COMPACT`` comes next."""
    if c.is_at("PARTITION", "("):
        return c.has_words_at(c.partner[c.index + 1] + 1, "COMPACT")
    return c.is_at("COMPACT")


def parse_compact(c: Cursor, name: Name) -> CompactTable:
    """Parse ``[PARTITION (…)] COMPACT 'type' …`` after the name of the table.

    Args:
        c: A cursor at a place where `is_at_compact` is true.
        name: The name of the table.

    Raises:
        SqlSyntaxError: A clause does not parse, comes twice, or is in the wrong order.
        AnalysisError: There is no such type of compaction.
        UnsupportedError: A clause is only for COMPACT 'rebalance', or may be a part of its ORDER
            BY.
    """
    partition = parse_static_partition(c) if c.is_at("PARTITION") else ()
    c.expect("COMPACT")
    draft = _CompactionDraft()
    kind = draft.type = _parse_type(c)
    _parse_clauses(c, _COMPACT, draft, "COMPACT")
    return CompactTable(
        name, partition, kind, draft.buckets, draft.and_wait, draft.pool, draft.properties,
        draft.order_by,
    )  # fmt: skip


def _parse_type(c: Cursor) -> CompactionType:
    """Parse a type of compaction in quotes, whatever its case; raise AnalysisError for an unknown
    one."""
    token = c.token
    type_name = c.take_string("a type of compaction in quotes")
    kind = CompactionType.__members__.get(type_name.upper())
    if kind not in REQUESTABLE_TYPES:
        choices = _listed_choice(
            f"'{compaction_type.name.lower()}'" for compaction_type in REQUESTABLE_TYPES
        )
        _refuse_unknown(
            c, token, f"There is no compaction of type '{type_name}' (Hive 10282): say {choices}",
            "INVALID_COMPACTION_TYPE",
        )  # fmt: skip
    return kind


def _parse_clustered(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse CLUSTERED INTO n BUCKETS into ``draft``. Raise UnsupportedError if the type is not
    REBALANCE, and SqlSyntaxError if n is not from 1 to 4096."""
    _need_rebalance(c, draft, "CLUSTERED INTO")
    c.expect("CLUSTERED", "INTO")
    at = c.token
    draft.buckets = c.take_number()
    if not 0 < draft.buckets <= 4096:
        c.fail("Expected a number of buckets from 1 to 4096", at)
    c.expect("BUCKETS")


def _parse_and_wait(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse AND WAIT into ``draft``."""
    c.expect("AND", "WAIT")
    draft.and_wait = True


def _parse_pool(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse ``POOL 'name'`` into ``draft``, in lower case; "" is a syntax error."""
    c.expect("POOL")
    at = c.token
    draft.pool = c.take_string("the name of a pool in quotes").lower()
    if not draft.pool:
        c.fail("Expected the name of a pool in quotes", at)


def _parse_overwrite(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse ``WITH OVERWRITE TBLPROPERTIES (…)`` into the properties of ``draft``."""
    c.expect("WITH", "OVERWRITE", "TBLPROPERTIES")
    draft.properties = parse_properties(c)


def _parse_order_by(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse the ORDER BY of COMPACT 'rebalance' into ``draft``, as a span. Raise UnsupportedError
    for other types, and for words in it that may begin a clause of a query, as WHERE."""
    _need_rebalance(c, draft, "ORDER BY")
    c.expect("ORDER", "BY")
    start = c.index
    while True:
        # AND WAIT could be part of a condition, but nobody orders rows by a condition.
        c.take_expression((",", "AND WAIT", "CLUSTERED INTO", "WITH OVERWRITE"))
        if not c.accept(","):
            break
    for index in range(start, c.index):
        _refuse_clause_in_order_by(c, index)
    draft.order_by = c.span_from(start)


def _refuse_clause_in_order_by(c: Cursor, token_index: int) -> None:
    """Raise UnsupportedError if a token of the ORDER BY of COMPACT 'rebalance' is a word such as
    WHERE or LIMIT, which begins a clause of a query: the table would lose rows. A column of such a
    name passes only in back-quotes or behind a dot. ``POOL 'x'``, which belongs before ORDER BY,
    raises SqlSyntaxError."""
    token = c.tokens[token_index]
    if token.upper == "POOL" and c.tokens[token_index + 1].kind is TokenKind.STRING:
        _refuse_order(c, token, _COMPACT, "COMPACT")
    if token.upper in _NOT_IN_ORDER and c.tokens[token_index - 1].text != ".":
        c.refuse(
            f"{token.upper} is not supported in COMPACT's ORDER BY (a column of that name is "
            "written in back-quotes)",
            token.span,
        )


def _need_rebalance(c: Cursor, draft: _CompactionDraft, clause_name: str) -> None:
    """Raise UnsupportedError, which names the clause, if the compaction's type is not REBALANCE."""
    if draft.type is not CompactionType.REBALANCE:
        span = Span(c.token.start, c.peek().end)
        c.refuse(
            f"{clause_name} is supported by COMPACT 'rebalance' only: other compactions leave rows "
            "in their buckets and in their order",
            span,
        )


# ── SHOW COMPACTIONS ─────────────────────────────────────────────────────────────────────────


def parse_show_compactions(c: Cursor) -> ShowCompactions:
    """Parse the text after ``SHOW COMPACTIONS``, up to the statement's end: ``COMPACTIONID = n``
    alone, or a table (perhaps with PARTITION) or a database, each optional, and filters in their
    fixed order."""
    if c.is_at("COMPACTIONID", "="):
        c.take(2)
        number = c.take_number()
        c.expect_end("the end of the statement, as a number needs no filters")
        return ShowCompactions(id=number)
    name = database = None
    partition: tuple[PartitionItem, ...] = ()
    if c.is_at_any(_DATABASE) and c.peek().is_name and not _is_at_clause(c, 1):
        c.take()
        database = c.take_name("the name of a database")
    elif c.token.is_name and not _is_at_clause(c):
        name = c.take_name()
        partition = parse_static_partition(c) if c.is_at("PARTITION") else ()
    draft = _CompactionDraft()
    _parse_clauses(c, _SHOW, draft, "SHOW COMPACTIONS")
    return ShowCompactions(
        None, name, partition, database, draft.pool, draft.type, draft.state, draft.orders,
        draft.limit, draft.offset,
    )  # fmt: skip


def _is_at_clause(c: Cursor, ahead: int = 0) -> bool:
    """Whether a clause of SHOW COMPACTIONS begins ``ahead`` tokens after the next one: POOL, TYPE
    or STATUS with a string, LIMIT with a number, ORDER BY, or ``PARTITION (``. Such words alone can
    be the name of a table."""
    word, following = c.peek(ahead).upper, c.peek(ahead + 1)
    if word in ("POOL", "TYPE", "STATUS"):
        return following.kind is TokenKind.STRING
    if word == "LIMIT":
        return following.kind is TokenKind.NUMBER
    return (word, following.upper) in (("ORDER", "BY"), ("PARTITION", "("))


def _parse_type_filter(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse ``TYPE 'type'`` into ``draft``. Raise AnalysisError for an unknown type."""
    c.expect("TYPE")
    draft.type = _parse_type(c)


def _parse_status_filter(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse ``STATUS 'state'`` into ``draft``; case does not matter, and blanks and underscores are
    alike. Raise AnalysisError for an unknown state."""
    c.expect("STATUS")
    token = c.token
    state_name = c.take_string("a state of compactions in quotes")
    draft.state = CompactionState.__members__.get(
        re.sub(r"[\s_]+", "_", state_name.strip()).upper()
    )
    if draft.state is None:
        choices = _listed_choice(f"'{state.shown}'" for state in CompactionState)
        _refuse_unknown(
            c, token, f"No compaction has the state '{state_name}': say {choices}",
            "INVALID_COMPACTION_STATE",
        )  # fmt: skip


def _parse_orders(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse the ORDER BY of SHOW COMPACTIONS into ``draft``."""
    c.expect("ORDER", "BY")
    orders = [_parse_order(c)]
    while c.accept(","):
        orders.append(_parse_order(c))
    draft.orders = tuple(orders)


def _parse_order(c: Cursor) -> CompactionOrder:
    """Parse ``column [ASC|DESC]``, the column perhaps in quotes, which the result has in upper
    case; raise AnalysisError for a column that SHOW COMPACTIONS cannot be ordered by."""
    start = c.index
    is_text = c.token.kind is TokenKind.STRING
    token = c.take() if is_text else c.take_name_part("the name of a column")
    column = token.value.upper()
    if column not in ORDERED:
        _refuse_unknown(
            c, token, f"SHOW COMPACTIONS cannot be ordered by '{token.value}', only by "
            f"{_listed_choice(ORDERED)}",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703",
        )  # fmt: skip
    descending = c.accept("DESC") is not None
    if not descending:
        c.accept("ASC")
    return CompactionOrder(column, descending, c.span_from(start))


def _parse_limit(c: Cursor, draft: _CompactionDraft) -> None:
    """Parse ``LIMIT n [OFFSET m]`` or ``LIMIT m, n`` into ``draft``; m is the offset."""
    c.expect("LIMIT")
    draft.limit = c.take_number()
    if c.accept("OFFSET"):
        draft.offset = c.take_number()
    elif c.accept(","):
        draft.offset, draft.limit = draft.limit, c.take_number()


# ── clauses ──────────────────────────────────────────────────────────────────────────────────

_COMPACT = (
    _Clause("CLUSTERED", "CLUSTERED INTO … BUCKETS", _parse_clustered),
    _Clause("AND", "AND WAIT", _parse_and_wait),
    _Clause("POOL", "POOL", _parse_pool),
    _Clause("WITH", "WITH OVERWRITE TBLPROPERTIES", _parse_overwrite),
    _Clause("ORDER", "ORDER BY", _parse_order_by),
)
_SHOW = (
    _Clause("POOL", "POOL", _parse_pool),
    _Clause("TYPE", "TYPE", _parse_type_filter),
    _Clause("STATUS", "STATUS", _parse_status_filter),
    _Clause("ORDER", "ORDER BY", _parse_orders),
    _Clause("LIMIT", "LIMIT", _parse_limit),
)


def _parse_clauses(
    c: Cursor, clauses: Sequence[_Clause], draft: _CompactionDraft, statement: str
) -> None:
    """Parse all remaining clauses into ``draft``. Raise SqlSyntaxError unless each is one of
    ``clauses``, comes at most once, and stands in that order. ``statement``: its name, for the
    message."""
    places = {clause.word: place for place, clause in enumerate(clauses)}
    last = -1
    while not c.is_at_end:
        place = places.get(c.token.upper)
        if place is None:
            expected_clauses = [
                clause.shown for clause in clauses[last + 1 :] if _can_have_clause(draft, clause)
            ]
            c.fail(f"Expected {_listed_choice([*expected_clauses, 'the end of the statement'])}")
        if place <= last:
            _refuse_order(c, c.token, clauses, statement)
        last = place
        clauses[place].read(c, draft)


def _can_have_clause(draft: _CompactionDraft, clause: _Clause) -> bool:
    """Whether the statement can have a clause: CLUSTERED INTO and COMPACT's ORDER BY only if the
    draft's type is REBALANCE."""
    is_rebalance = draft.type is CompactionType.REBALANCE
    return is_rebalance or clause.read not in (_parse_clustered, _parse_order_by)


def _refuse_order(c: Cursor, token: Token, clauses: Sequence[_Clause], statement: str) -> NoReturn:
    """Raise a SqlSyntaxError that says that a clause comes twice or in the wrong order, and which
    order is right."""
    order = ", ".join(clause.shown for clause in clauses)
    raise SqlSyntaxError(
        f"{token.upper} stands in the wrong place: the clauses of {statement} come once each, in "
        f"this order: {order}.",
        c.text, token.start, token.end,
    )  # fmt: skip


def _refuse_unknown(
    c: Cursor, token: Token, message: str, condition: str, sqlstate: str = "42601"
) -> NoReturn:
    """Raise an AnalysisError with this message and a dot, about a token with an unknown value."""
    raise AnalysisError(
        f"{message}.", c.text, token.start, token.end, condition=condition, sqlstate=sqlstate
    )


def _listed_choice(names: Iterable[Any]) -> str:
    """Return the names, one at least, as a text ``a, b or c``."""
    *earlier_names, last_name = names
    return f"{', '.join(earlier_names)} or {last_name}" if earlier_names else str(last_name)
