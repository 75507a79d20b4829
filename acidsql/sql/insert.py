"""Parses all forms of INSERT, and the clauses that other statements share with INSERT."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from acidsql.errors import AnalysisError
from acidsql.sql.cursor import Cursor
from acidsql.sql.statements import (
    Default,
    Insert,
    InsertBranch,
    MultiInsert,
    Name,
    PartitionItem,
    Query,
    Replacing,
    Value,
    Values,
)
from acidsql.sql.tokens import Kind, Span, words

IsAcid = Callable[[tuple[str, ...]], bool]

QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "(", "MAP", "REDUCE"})
BRANCHES = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"))
# Not FROM, which IS DISTINCT FROM has, and no bracket, which may be a part of the condition.
_BEHIND_CONDITION = ("SELECT", "WITH", "VALUES", "TABLE")
_HEAD_ENDS = QUERY_STARTS | {"PARTITION", "BY", "REPLACE", "IF"}
# A VALUES list with one of these words outside brackets is a query.
_QUERY_TAIL = words(
    "UNION EXCEPT INTERSECT MINUS ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW AS |>"
)


def insert(c: Cursor, is_acid: IsAcid, ctes: Span | None) -> Insert | None:
    """Parse ``INSERT …``; None if its target is Spark's."""
    c.expect("INSERT")
    evolution = c.accept("WITH", "SCHEMA", "EVOLUTION")
    overwrite, target = _head(c)
    if target is None or not is_acid(target.parts):
        return None
    columns, partition, by_name = _destination(c)
    if evolution and not by_name:
        c.refuse("INSERT WITH SCHEMA EVOLUTION needs BY NAME before the query", evolution.span)
    replacing = _replacing(c, alone=not (overwrite or columns or partition))
    if c.done:
        c.fail("Expected VALUES or a query")
    source: Values | Query | None = values(c) if c.at("VALUES") else None
    if source is None:
        source = _query(c)
    elif evolution:
        c.refuse("INSERT WITH SCHEMA EVOLUTION needs a query: VALUES have no names", source.span)
    return Insert(
        target, source, columns, partition, overwrite, by_name, ctes,
        replacing=replacing, evolves=evolution is not None,
    )  # fmt: skip


def _head(c: Cursor) -> tuple[bool, Name | None]:
    """Parse ``INTO|OVERWRITE [TABLE] t``; no name for ``OVERWRITE DIRECTORY`` of Spark's."""
    overwrite = c.accept("OVERWRITE") is not None
    if not overwrite and not c.accept("INTO"):
        c.fail("Expected INTO or OVERWRITE")
    if overwrite and (_at_directory(c) or (c.at("LOCAL") and _at_directory(c, 1))):
        return overwrite, None
    if c.at("TABLE") and _is_noise(c):
        c.take()
    return overwrite, c.name("the name of a table")


def _at_directory(c: Cursor, ahead: int = 0) -> bool:
    following = c.peek(ahead + 1)
    return c.peek(ahead).upper == "DIRECTORY" and (
        following.kind is Kind.STRING or following.upper in ("OPTIONS", "USING")
    )


def _is_noise(c: Cursor) -> bool:
    """Whether TABLE is the keyword here. In ``INSERT INTO table VALUES …`` it is a table's name."""
    following = c.peek()
    if following.upper in _HEAD_ENDS or not following.is_name:
        return c.peek(2).upper in QUERY_STARTS - {"("} or following.upper == "PARTITION"
    return True


def _destination(
    c: Cursor,
) -> tuple[tuple[Name, ...] | None, tuple[PartitionItem, ...], bool]:
    """Parse ``[(columns)] [PARTITION (…)] [(columns) | BY NAME]`` after the target."""
    _refuse_options(c)
    columns = column_list(c) if _at_column_list(c) else None
    partition: tuple[PartitionItem, ...] = ()
    if c.at("PARTITION", "("):
        partition = partition_clause(c)
    if c.at("IF", "NOT", "EXISTS"):
        c.refuse("INSERT … IF NOT EXISTS is not supported")
    by_name = c.accept("BY", "NAME")
    if by_name and columns is not None:
        c.fail("Expected a query, as BY NAME and a list of columns exclude each other", by_name)
    if _at_column_list(c):
        if columns is not None or by_name:
            c.fail("Expected VALUES or a query, as the columns are named already")
        columns = column_list(c)
    _no_second_clause(c)
    return columns, partition, by_name is not None


def _refuse_options(c: Cursor) -> None:
    if c.at("WITH", "(") or c.at("OPTIONS", "("):
        c.refuse("Options of an INSERT's target are not supported")
    ahead = 2 if c.at("AS") else 1
    if c.token.is_name and c.peek(ahead).upper == "REPLACE" and c.peek(ahead + 1).upper == "ON":
        c.take(ahead)
        _refuse_on(c)


def _replacing(c: Cursor, *, alone: bool) -> Replacing | None:
    """Parse ``REPLACE WHERE condition`` or ``REPLACE USING (columns)``, if it is there.

    ``alone``: no clause is there that REPLACE excludes.
    """
    start = c.index
    if c.at("REPLACE", "ON"):
        _refuse_on(c)
    is_where = c.accept("REPLACE", "WHERE") is not None
    if not is_where and not c.accept("REPLACE", "USING"):
        return None
    if not alone:
        c.fail(
            "Expected VALUES or a query, as REPLACE excludes OVERWRITE, PARTITION (…) and a list "
            "of columns",
            c.tokens[start],
        )
    if not is_where:
        columns = column_list(c)
        return Replacing(c.span_from(start), using=columns)
    where = c.expression(_BEHIND_CONDITION, what="a condition")
    if c.done:
        c.fail("Expected a query behind the condition: SELECT, WITH, VALUES or TABLE")
    return Replacing(c.span_from(start), where)


def _refuse_on(c: Cursor) -> NoReturn:
    c.refuse(
        "INSERT … REPLACE ON is not supported: use REPLACE USING (columns), or MERGE with WHEN NOT "
        "MATCHED BY SOURCE"
    )


def _no_second_clause(c: Cursor) -> None:
    if c.at("PARTITION", "("):
        c.fail("Expected VALUES or a query, as there is a PARTITION clause already")
    if c.at("BY", "NAME"):
        c.fail("Expected VALUES or a query, as BY NAME excludes a list of columns")


def _at_column_list(c: Cursor) -> bool:
    """Whether a bracket with only names comes next, and is not the end of the statement."""
    if not c.at("("):
        return False
    close, index = c.partner[c.index], c.index + 1
    if c.tokens[close + 1].kind is Kind.END:
        return False
    while index < close:
        if not c.tokens[index].is_name:
            return False
        index += 1
        while c.tokens[index].text == "." and c.tokens[index + 1].is_name:
            index += 2
        if index < close and c.tokens[index].text != ",":
            return False
        index += 1
    return True


def column_list(c: Cursor) -> tuple[Name, ...]:
    """Parse ``(a, b, …)``."""
    c.expect("(")
    names = [c.name("the name of a column")]
    while c.inside():
        names.append(c.name("the name of a column"))
    return tuple(names)


def partition_clause(c: Cursor) -> tuple[PartitionItem, ...]:
    """Parse ``PARTITION (p = value, q)``."""
    c.expect("PARTITION")
    c.expect("(")
    items = [_partition_item(c)]
    while c.inside():
        items.append(_partition_item(c))
    return tuple(items)


def static_partition(c: Cursor) -> tuple[PartitionItem, ...]:
    """Parse ``PARTITION (p = value, …)``, where each column must have a value."""
    start = c.index
    items = partition_clause(c)
    for item in items:
        if item.value is None:
            after = next(t for t in c.tokens[start:] if t.start >= item.span.end)
            c.fail(f"Expected '=' and a value for '{item.name}'", after)
    return items


def _partition_item(c: Cursor) -> PartitionItem:
    start = c.index
    name = c.name_part("the name of a partition column").value
    value = None
    if c.accept("=") or c.accept("=="):
        value = c.expression((",", ")"), what="a value")
    elif not c.at_any((",", ")")):
        c.fail("Expected '=', ',' or ')'")
    return PartitionItem(name, value, c.span_from(start))


def _query(c: Cursor) -> Query:
    if not c.at_any(QUERY_STARTS):
        c.fail("Expected VALUES or a query")
    begin = c.index
    c.skip_to(*BRANCHES)
    if not c.done:
        c.fail("Expected one INSERT (several stand behind FROM)")
    c.index = begin
    return Query(c.rest())


# ── VALUES ───────────────────────────────────────────────────────────────────────────────────


def values(c: Cursor) -> Values | None:
    """Parse ``VALUES row, row, …`` up to the end; None, without moving, if VALUES is a query."""
    start = c.index
    c.expect("VALUES")
    rows: list[tuple[Value, ...]] = []
    while True:
        row = _row(c)
        if row is None:
            c.index = start
            return None
        rows.append(row)
        if not c.accept(","):
            break
    c.end("',' or the end of the statement")
    _check_widths(c, rows)
    return Values(c.span_from(start), tuple(rows))


def _check_widths(c: Cursor, rows: list[tuple[Value, ...]]) -> None:
    width = len(rows[0])
    for row in rows:
        if len(row) != width:
            first = row[0] if isinstance(row[0], Span) else row[0].span
            raise AnalysisError(
                f"This row has {len(row)} values, the first one {width}.",
                c.text,
                first.start,
                first.end,
                condition="INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
            )


def _row(c: Cursor) -> tuple[Value, ...] | None:
    """Parse one row; None if an alias, a UNION or the like makes VALUES a query."""
    if c.at("("):
        following = c.tokens[c.partner[c.index] + 1]
        if following.upper == "," or following.kind is Kind.END:
            return value_list(c)
    start = c.index
    span = c.expression((",",), what="a row")
    for index in range(start + 1, c.index):
        token = c.tokens[index]
        # An alias needs no AS: VALUES (1), (2) v
        if token.upper in _QUERY_TAIL or (token.is_name and c.tokens[index - 1].text == ")"):
            return None
    only = c.tokens[start] if c.index == start + 1 else None
    return (Default(span) if only is not None and only.upper == "DEFAULT" else span,)


def value_list(c: Cursor) -> tuple[Value, ...]:
    """Parse ``(value, …)``. For speed with long VALUES lists, ``expression`` is not used."""
    tokens, partner = c.tokens, c.partner
    close = partner[c.index]
    index = first = c.index + 1
    found: list[Value] = []
    while True:
        if index == close or tokens[index].text == ",":
            if index == first:
                c.fail("Expected a value", tokens[index])
            span = Span(tokens[first].start, tokens[index - 1].end)
            is_default = index == first + 1 and tokens[first].upper == "DEFAULT"
            found.append(Default(span) if is_default else span)
            if index == close:
                break
            first = index + 1
        index = partner.get(index, index) + 1
    c.index = close + 1
    return tuple(found)


# ── one source, many targets ─────────────────────────────────────────────────────────────────


def multi_insert(c: Cursor, is_acid: IsAcid, ctes: Span | None) -> MultiInsert | None:
    """Parse ``FROM s INSERT … INSERT …``; None if there is no INSERT, or no target is ours."""
    c.expect("FROM")
    start = c.index
    c.skip_to(*BRANCHES)
    if c.done:
        return None
    if c.index == start:
        c.fail("Expected a source behind FROM")
    source = c.span_from(start)
    targets = _targets(c)
    ours = [name is not None and is_acid(name.parts) for name, _ in targets]
    if not any(ours):
        return None
    for (name, span), acid in zip(targets, ours, strict=True):
        if not acid:
            what = "a directory" if name is None else f"'{'.'.join(name.parts)}'"
            c.refuse(f"One INSERT cannot write to ACID tables and to {what}, too", span)
    branches = []
    while not c.done:
        branches.append(_branch(c))
    return MultiInsert(source, tuple(branches), ctes)


def _targets(c: Cursor) -> list[tuple[Name | None, Span]]:
    """The branches' targets (None for a directory) and their places. The cursor does not move."""
    start, found = c.index, []
    while not c.done:
        c.expect("INSERT")
        at = c.index
        _, name = _head(c)
        found.append((name, name.span if name else c.tokens[at + 1].span))
        c.skip_to(*BRANCHES)
    c.index = start
    return found


def _branch(c: Cursor) -> InsertBranch:
    c.expect("INSERT")
    overwrite, target = _head(c)
    assert target is not None  # _targets has refused directories
    columns, partition, by_name = _destination(c)
    if by_name:
        c.refuse("BY NAME in a multi-insert is not supported")
    if c.at("REPLACE"):
        c.refuse("REPLACE in a multi-insert is not supported")
    if not c.at_any(("SELECT", "MAP", "REDUCE")):
        c.fail("Expected SELECT")
    start = c.index
    c.skip_to(*BRANCHES)
    return InsertBranch(target, c.span_from(start), columns, partition, overwrite)
