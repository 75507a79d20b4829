"""Which tables a query names, where, and in which query block.

The caller replaces ACID tables by stand-ins and hides ``row__id`` from ``*``; for both it needs
places in the text, not trees. :mod:`scanner` finds them by reading tokens. All names are listed,
whoever owns the table; names of common table expressions are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from acidsql.errors import SqlSyntaxError
from acidsql.sql.scanner import StatementScanner
from acidsql.sql.tokens import Span, tokenize


class StarKind(Enum):
    """Where a ``*`` stands."""

    PLAIN = "SELECT *"
    EXCEPT = "SELECT * EXCEPT (…)"
    ARGUMENT = "f(*), but not count(*)"


@dataclass(frozen=True, slots=True)
class Star:
    """A ``*`` or ``x.*``; ``span`` runs over the qualifier, and over EXCEPT and its list.

    ``excepted`` spans the inside of EXCEPT's brackets, so that names can be added to it.
    """

    span: Span
    qualifier: tuple[str, ...] | None
    kind: StarKind
    excepted: Span | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A query block: one SELECT (or VALUES, or TABLE), or the expression that was given.

    ``mentions_row_id`` speaks of the block itself; a block sees what its parents see.
    """

    id: int
    parent: int | None
    mentions_row_id: bool
    stars: tuple[Star, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation that is named.

    Attributes:
        parts: The name, unquoted.
        span: The name in the text.
        alias: Its alias, if there is one, and ``alias_span`` where.
        block: The id of the block whose FROM names it.
        alias_at: Where ``AS name`` can be put; None where no alias may stand (``TABLE t``).
        time_travel: ``VERSION AS OF …`` behind the name.
        sample: ``TABLESAMPLE (…)`` behind the name.
        options: ``WITH (…)`` behind the name.
        prefixes: For ``db.t`` without alias: each ``db.`` of ``db.t.c``, to be dropped once
            the table is called ``t``.
    """

    parts: tuple[str, ...]
    span: Span
    alias: str | None
    alias_span: Span | None
    block: int
    alias_at: int | None
    time_travel: Span | None = None
    sample: Span | None = None
    options: Span | None = None
    prefixes: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """A relation of whatever kind: the lower-cased name that columns are qualified with.

    ``at`` is where it stands: of a ``Reference`` the start of its span.
    """

    name: str
    block: int
    at: int


@dataclass(frozen=True, slots=True)
class Chain:
    """``a.b.c`` in an expression: the lower-cased names, where each ends, and in which block.

    The last may be ``*``.
    """

    names: tuple[str, ...]
    start: int
    ends: tuple[int, ...]
    block: int


class Obstacle(Enum):
    """What makes it uncertain which columns a block has, or which table it reads."""

    TABLE_QUERY = "TABLE t as a query"
    PIPE = "pipe syntax"
    NATURAL_JOIN = "NATURAL JOIN"
    PIVOT = "PIVOT"
    UNPIVOT = "UNPIVOT"
    STAR_ARGUMENT = "* as an argument of a function"
    IDENTIFIER = "IDENTIFIER(…) as a table"


@dataclass(frozen=True, slots=True)
class Doubt:
    """An obstacle, where it stands, and in which block."""

    obstacle: Obstacle
    span: Span
    block: int


@dataclass(frozen=True, slots=True)
class References:
    """All that was found, in the order of the text."""

    blocks: tuple[Block, ...]
    references: tuple[Reference, ...]
    doubts: tuple[Doubt, ...]
    named: tuple[Named, ...] = ()
    chains: tuple[Chain, ...] = ()

    def around(self, block: int) -> Iterator[int]:
        """A block, and those around it from the inside out."""
        at: int | None = block
        while at is not None:
            yield at
            at = self.blocks[at].parent

    def shows_row_id(self) -> frozenset[int]:
        """The blocks that mention ``row__id``, and those around them (correlation)."""
        shown: set[int] = set()
        for block in self.blocks:
            shown.update(self.around(block.id) if block.mentions_row_id else ())
        return frozenset(shown)


def references(
    text: str,
    span: Span | None = None,
    *,
    double_quoted_identifiers: bool = False,
    visible: frozenset[str] = frozenset(),
    is_value: bool = False,
) -> References:
    """Finds the tables that a statement, a query or an expression names.

    Args:
        text: The user's text.
        span: The slice to look at (default: all of it): a query; an expression, whose
            subqueries are found; a WITH clause alone; or a statement that holds a query
            (INSERT, CREATE … AS, CACHE, EXPLAIN), whose target is not listed.
        double_quoted_identifiers: Whether ``"…"`` is a name.
        visible: Lower-cased names of common table expressions declared outside ``span``.
        is_value: ``(SELECT …)`` is a value too: the first block is what stands around it.

    Raises:
        SqlSyntaxError: Brackets do not match, or a string or comment has no end.
    """
    scanner = _scanner(text, span, double_quoted_identifiers)
    try:
        scan = scanner.value if is_value else scanner.statement
        scan(visible)
    except RecursionError:
        start = span.start if span else 0
        raise SqlSyntaxError("This is nested too deeply.", text, start, start) from None
    return _result(scanner)


def cte_names(text: str, span: Span, *, double_quoted_identifiers: bool = False) -> frozenset[str]:
    """The lower-cased names that the WITH clause at ``span`` declares, for ``visible``."""
    scanner = _scanner(text, span, double_quoted_identifiers)
    return scanner.with_clause(0, scanner.block(None), frozenset())[1]


def mentioned_tables(
    text: str, span: Span | None = None, *, double_quoted_identifiers: bool = False
) -> tuple[Reference, ...]:
    """Every name in a statement of Spark's that may be a table's; rather too many than too few.

    For statements that may not touch an ACID table at all: the target too is listed.
    """
    scanner = _scanner(text, span, double_quoted_identifiers)
    scanner.targets()
    targets = _result(scanner).references
    inside = references(text, span, double_quoted_identifiers=double_quoted_identifiers).references
    found = {reference.span: reference for reference in (*targets, *inside)}
    return tuple(sorted(found.values(), key=lambda reference: reference.span.start))


def _scanner(text: str, span: Span | None, double_quoted: bool) -> StatementScanner:
    span = span or Span(0, len(text))
    tokens = tokenize(span.of(text), double_quoted_identifiers=double_quoted)
    if span.start:
        tokens = [
            token._replace(start=token.start + span.start, end=token.end + span.start)
            for token in tokens
        ]
    return StatementScanner(text, tokens)


def _result(scanner: StatementScanner) -> References:
    blocks = tuple(
        Block(
            number,
            draft.parent,
            draft.mentions_row_id,
            tuple(Star(s.span, s.qualifier, StarKind[s.kind], s.excepted) for s in draft.stars),
        )
        for number, draft in enumerate(scanner.blocks)
    )
    found = tuple(
        Reference(
            r.parts,
            r.span,
            r.alias,
            r.alias_span,
            r.block,
            r.alias_at,
            r.time_travel,
            r.sample,
            r.options,
            scanner.prefixes(r),
        )
        for r in sorted(scanner.found, key=lambda r: r.span.start)
    )
    doubts = tuple(Doubt(Obstacle[kind], span, block) for kind, span, block in scanner.doubts)
    named = tuple(Named(*relation) for relation in scanner.named)
    chains = tuple(
        Chain(
            tuple(token.value.lower() for token in tokens),
            tokens[0].start,
            tuple(token.end for token in tokens),
            block,
        )
        for start, end, block in scanner.chains
        if scanner.tokens[end].text != "("
        for tokens in [scanner.tokens[start:end:2]]
    )
    return References(blocks, found, doubts, named, chains)
