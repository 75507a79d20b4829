"""Finds the tables that a query names: their places in the text, and their query blocks.

The caller replaces ACID tables by stand-ins and leaves virtual columns out of ``*``. Both need
places in the text, not trees. :mod:`scanner` finds them in the tokens. The result has ACID tables
and Spark's tables, but no names of common table expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from acidsql.errors import SqlSyntaxError
from acidsql.sql.queries.scanner import StatementScanner
from acidsql.sql.queries.table_changes import parse_table_changes
from acidsql.sql.text.lookahead import RelationDraft
from acidsql.sql.text.tokens import Span, Token, tokenize


class StarKind(Enum):
    """The kinds of ``*``, by their place."""

    PLAIN = "SELECT *"
    EXCEPT = "SELECT * EXCEPT (…)"
    ARGUMENT = "f(*), but not count(*)"


@dataclass(frozen=True, slots=True)
class Star:
    """A ``*`` or ``x.*``. ``span`` includes the qualifier, and EXCEPT with its list.

    ``excepted`` spans the list inside EXCEPT's brackets, to which names can be added.
    """

    span: Span
    qualifier: tuple[str, ...] | None
    kind: StarKind
    excepted: Span | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A query block: one SELECT, VALUES or TABLE, or the whole expression.

    ``mentions`` has the virtual columns that this block names, without the blocks inside. A block
    can also use the columns of its parents.
    """

    id: int
    parent: int | None
    mentions: frozenset[str]
    stars: tuple[Star, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation that a query names.

    Attributes:
        parts: The parts of the name, unquoted.
        span: The place of the name.
        alias: The alias, or None. ``alias_span`` is the alias's place.
        block: The id of the block whose FROM names the relation.
        alias_at: The place for a new ``AS name``; None if no alias is allowed (``TABLE t``).
        time_travel: The place of ``VERSION AS OF …`` after the name.
        sample: The place of ``TABLESAMPLE (…)`` after the name.
        options: The place of ``WITH (…)`` after the name.
        properties: The place of Hive's ``('key'='value')`` after the name.
        prefixes: For ``db.t`` without an alias, the place of each ``db.`` in ``db.t.c``. They are
            removed when the alias of the stand-in is ``t``.
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
    properties: Span | None = None
    prefixes: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Qualifier:
    """A relation of any kind. ``name`` is the lower-cased qualifier of the relation's columns.

    ``at`` is the relation's place: for a ``Reference`` the start of its span. ``is_value``: no
    relation, but the parameter of a lambda function, which has fields only.
    """

    name: str
    block: int
    at: int
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """``a.b.c`` in an expression: the lower-cased names, the end of each name, and the block.

    The last name may be ``*``.
    """

    names: tuple[str, ...]
    start: int
    ends: tuple[int, ...]
    block: int


class Obstacle(Enum):
    """Syntax that leaves unknown which columns a block has, or which table a block reads."""

    TABLE_QUERY = "TABLE t as a query"
    PIPE = "pipe syntax"
    NATURAL_JOIN = "NATURAL JOIN"
    PIVOT = "PIVOT"
    UNPIVOT = "UNPIVOT"
    STAR_ARGUMENT = "* as an argument of a function"
    IDENTIFIER = "IDENTIFIER(…) as a table"
    COLUMN_ALIASES = "a table's alias with names of columns"
    BRACKETS_ALIAS = "an alias of tables in brackets"


@dataclass(frozen=True, slots=True)
class Doubt:
    """An obstacle, its place, and its block."""

    obstacle: Obstacle
    span: Span
    block: int


@dataclass(frozen=True, slots=True)
class References:
    """All results of a scan, in the order of the text.

    ``changes`` has the places of calls of ``table_changes``.
    """

    blocks: tuple[Block, ...]
    references: tuple[Reference, ...]
    doubts: tuple[Doubt, ...]
    qualifiers: tuple[Qualifier, ...] = ()
    chains: tuple[Chain, ...] = ()
    changes: tuple[Span, ...] = ()

    def enclosing_blocks(self, block: int) -> Iterator[int]:
        """Yield a block's id, and then those of the blocks that contain it, from the inside out."""
        block_id: int | None = block
        while block_id is not None:
            yield block_id
            block_id = self.blocks[block_id].parent

    def virtual_columns_by_block(self) -> dict[int, set[str]]:
        """Return, by block id, the lower-cased virtual columns (such as ``row__id``) that the block
        or a block inside it mentions. Blocks without any are left out.

        Inner blocks count because a correlated subquery may mean the ``row__id`` of a block around
        it.
        """
        columns_by_block: dict[int, set[str]] = {}
        for block in self.blocks:
            for enclosing_block in self.enclosing_blocks(block.id) if block.mentions else ():
                columns_by_block.setdefault(enclosing_block, set()).update(block.mentions)
        return columns_by_block


def references(
    text: str,
    span: Span | None = None,
    *,
    double_quoted_identifiers: bool = False,
    visible: frozenset[str] = frozenset(),
    is_value: bool = False,
) -> References:
    """Return the tables that a statement, a query or an expression names, with its query blocks and
    stars, found by its tokens alone. CTEs are left out.

    Args:
        text: The user's text.
        span: The slice to scan; default: the whole text. It is a query, an expression with
            subqueries, a WITH clause alone, or a statement that contains a query (INSERT, CREATE …
            AS, CACHE, EXPLAIN). The statement's target is not in the result.
        double_quoted_identifiers: Whether ``"…"`` is a name.
        visible: Lower-cased names of common table expressions that are declared outside ``span``.
        is_value: The slice is an expression, even if it is ``(SELECT …)``. The first block is then
            the expression, and the SELECT is a block inside.

    Raises:
        SqlSyntaxError: Brackets do not match, a string or comment is not closed, or the text is
            nested too deeply.
    """
    scanner = _scanner(text, span, double_quoted_identifiers)
    with _refuse_deep_nesting(text, span.start if span else 0):
        scan = scanner.scan_value if is_value else scanner.scan_statement
        scan(visible)
    return _scan_result(scanner)


@contextmanager
def _refuse_deep_nesting(text: str, start: int) -> Iterator[None]:
    """Raise SqlSyntaxError, at ``start``, in the place of a RecursionError in the ``with``
    block."""
    try:
        yield
    except RecursionError:
        raise SqlSyntaxError("This is nested too deeply.", text, start, start) from None


def cte_names(text: str, span: Span, *, double_quoted_identifiers: bool = False) -> frozenset[str]:
    """Return the lower-cased names that the WITH clause at ``span`` declares, which `references`
    takes as ``visible``."""
    tokens = tokenize(text, span, double_quoted_identifiers=double_quoted_identifiers)
    return declared_names(text, tokens)


def declared_names(text: str, clause: list[Token]) -> frozenset[str]:
    """Return the lower-cased names that a WITH clause declares, from its tokens. Raise
    SqlSyntaxError if brackets do not match or are nested too deeply."""
    scanner = StatementScanner(text, clause)
    with _refuse_deep_nesting(text, clause[0].start):
        return scanner.scan_with_clause(0, scanner.add_block(None), frozenset())[1]


def tables_in(text: str, tokens: list[Token]) -> list[tuple[str, ...]]:
    """Return the names of the tables that a query names, as parts, in no certain order and perhaps
    twice, those in ``table_changes('t', …)`` included; CTEs are left out. [] if the query is nested
    too deeply. Raise SqlSyntaxError if brackets do not match or ``table_changes`` has wrong
    arguments, and CatalogError if its string is no name of a table.

    Args:
        text: The user's text.
        tokens: The tokens of the query.
    """
    scanner = StatementScanner(text, tokens)
    try:
        scanner.scan_statement(frozenset())
    except RecursionError:
        return []  # whoever reads the query refuses it
    changed = [parse_table_changes(text, span).parts for span in scanner.changes]
    return [relation.parts for relation in scanner.relations] + changed


def mentioned_tables(
    text: str, span: Span | None = None, *, double_quoted_identifiers: bool = False
) -> tuple[Reference, ...]:
    """Return every name in a statement of Spark's that may be a table's name, including the target,
    in the order of the text, each place once. CTEs are left out where that is certain.

    In doubt a name is in the result. Only names that a query reads have their alias and clauses.
    This is for statements that must not name an ACID table. Raises SqlSyntaxError if the text
    cannot be scanned.
    """
    scanner = _scanner(text, span, double_quoted_identifiers)
    with _refuse_deep_nesting(text, span.start if span else 0):
        scanner.scan_targets()
    targets = _scan_result(scanner).references
    inside = references(text, span, double_quoted_identifiers=double_quoted_identifiers).references
    references_by_span = {reference.span: reference for reference in (*targets, *inside)}
    return tuple(sorted(references_by_span.values(), key=lambda reference: reference.span.start))


def _scanner(text: str, span: Span | None, double_quoted: bool) -> StatementScanner:
    """Return a scanner of the text, or of a slice of it, which has scanned nothing yet."""
    return StatementScanner(text, tokenize(text, span, double_quoted_identifiers=double_quoted))


def _scan_result(scanner: StatementScanner) -> References:
    """Return what a scanner has found: the blocks, the relations in the order of the text, the
    obstacles, the qualifiers, the dotted names in lower case, without names of functions, and the
    calls of ``table_changes``."""
    blocks = tuple(
        Block(
            number,
            draft.parent,
            frozenset(draft.mentions),
            tuple(Star(s.span, s.qualifier, StarKind[s.kind], s.excepted) for s in draft.stars),
        )
        for number, draft in enumerate(scanner.blocks)
    )
    relations = tuple(
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
            r.properties,
            _database_prefixes(scanner, r),
        )
        for r in sorted(scanner.relations, key=lambda r: r.span.start)
    )
    doubts = tuple(Doubt(Obstacle[kind], span, block) for kind, span, block in scanner.doubts)
    qualifiers = tuple(Qualifier(*relation) for relation in scanner.qualifiers)
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
    return References(blocks, relations, doubts, qualifiers, chains, tuple(scanner.changes))


def _database_prefixes(scanner: StatementScanner, relation: RelationDraft) -> tuple[Span, ...]:
    """Return the places of the ``db.`` in each ``db.t.c`` in the scope of a table ``db.t``, to be
    removed when its alias becomes ``t``, in the order of the text. () if the table has an alias,
    can have none (``TABLE t``), or has a name of one part."""
    if len(relation.parts) == 1 or relation.alias is not None or relation.alias_at is None:
        return ()
    name_parts, spans = [part.lower() for part in relation.parts], set()
    for start, end, block in scanner.chains:
        parts = [scanner.tokens[i].value.lower() for i in range(start, end, 2)]
        is_column = len(parts) > len(name_parts) and scanner.tokens[end].text != "("
        is_ours = parts[: len(name_parts)] == name_parts and relation.block in _enclosing_blocks(
            scanner, block
        )
        if is_column and is_ours:
            last = scanner.tokens[start + 2 * (len(name_parts) - 1)]
            spans.add(Span(scanner.tokens[start].start, last.start))
    return tuple(sorted(spans, key=lambda span: span.start))


def _enclosing_blocks(scanner: StatementScanner, block: int) -> Iterator[int]:
    """Yield a block's id, and then those of the blocks that contain it, from the inside out."""
    at: int | None = block
    while at is not None:
        yield at
        at = scanner.blocks[at].parent
