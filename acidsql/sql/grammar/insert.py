"""Parses all forms of INSERT, and the clauses that other statements share with INSERT.

``is_ours`` tells, from the parts of a name, whether it means an ACID table. ``ctes`` is the place
of the WITH clause before the statement; None without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from acidsql.errors import AnalysisError
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.statements import (
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
from acidsql.sql.text.tokens import Span, TokenKind, words

IsOurs = Callable[[tuple[str, ...]], bool]

QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "(", "MAP", "REDUCE"})
BRANCHES = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"))
# Not FROM, which IS DISTINCT FROM has, and no bracket, which may be a part of the condition.
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE")
_HEAD_ENDS = QUERY_STARTS | {"PARTITION", "BY", "REPLACE", "IF"}
# A VALUES list with one of these words outside brackets is a query.
_QUERY_TAIL = words(
    "UNION EXCEPT INTERSECT MINUS ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW AS |>"
)


def parse_insert(c: Cursor, is_ours: IsOurs, ctes: Span | None) -> Insert | None:
    """Parse ``INSERT …``; return None if its target is a table of Spark's or a directory. A query
    stays a span.

    Raises:
        SqlSyntaxError: The text does not parse, or clauses exclude each other.
        AnalysisError: The rows of VALUES differ in length.
        UnsupportedError: A clause is not supported: REPLACE ON, IF NOT EXISTS, options, or WITH
            SCHEMA EVOLUTION without BY NAME or without a query.
    """
    c.expect("INSERT")
    evolution = c.accept("WITH", "SCHEMA", "EVOLUTION")
    overwrite, target = _parse_head(c)
    if target is None or not is_ours(target.parts):
        return None
    columns, partition, by_name = _parse_destination(c)
    if evolution and not by_name:
        c.refuse("INSERT WITH SCHEMA EVOLUTION needs BY NAME before the query", evolution.span)
    replacing = _parse_replacing(c, is_alone=not (overwrite or columns or partition))
    if c.is_at_end:
        c.fail("Expected VALUES or a query")
    source: Values | Query | None = parse_values(c) if c.is_at("VALUES") else None
    if source is None:
        source = _parse_query(c)
    elif evolution:
        c.refuse("INSERT WITH SCHEMA EVOLUTION needs a query: VALUES have no names", source.span)
    return Insert(
        target, source, columns, partition, overwrite, by_name, ctes,
        replacing=replacing, evolves=evolution is not None,
    )  # fmt: skip


def _parse_head(c: Cursor) -> tuple[bool, Name | None]:
    """Parse ``INTO|OVERWRITE [TABLE] t``: return whether it is OVERWRITE, and the name. For Spark's
    ``OVERWRITE [LOCAL] DIRECTORY`` the name is None, and the cursor stays behind OVERWRITE."""
    overwrite = c.accept("OVERWRITE") is not None
    if not overwrite and not c.accept("INTO"):
        if c.is_at("IGNORE", "INTO") or c.is_at("OR"):
            c.refuse(
                f"INSERT {c.token.upper} is not supported: MERGE INTO … WHEN NOT MATCHED THEN "
                "INSERT … inserts only rows that are not there, and WHEN MATCHED THEN UPDATE … "
                "updates the others"
            )
        c.fail("Expected INTO or OVERWRITE")
    if overwrite and (_is_at_directory(c) or (c.is_at("LOCAL") and _is_at_directory(c, 1))):
        return overwrite, None
    if c.is_at("TABLE") and _is_table_keyword(c):
        c.take()
    return overwrite, c.take_name("the name of a table")


def _is_at_directory(c: Cursor, ahead: int = 0) -> bool:
    """Whether the DIRECTORY of Spark's INSERT OVERWRITE DIRECTORY comes ``ahead`` tokens after the
    next one: a string, OPTIONS or USING follows, so no table is called directory here."""
    following = c.peek(ahead + 1)
    return c.peek(ahead).upper == "DIRECTORY" and (
        following.kind is TokenKind.STRING or following.upper in ("OPTIONS", "USING")
    )


def _is_table_keyword(c: Cursor) -> bool:
    """Whether the next word, TABLE, is the keyword, and not the name of the table as in ``INSERT
    INTO table VALUES …``: a name follows. Before a word such as VALUES or BY, it is the keyword
    only if a query begins behind that word; before PARTITION it always is."""
    following = c.peek()
    if not following.is_name:
        return False
    if following.upper in _HEAD_ENDS:
        return c.peek(2).upper in QUERY_STARTS - {"("} or following.upper == "PARTITION"
    return True


def _parse_destination(
    c: Cursor,
) -> tuple[tuple[Name, ...] | None, tuple[PartitionItem, ...], bool]:
    """Parse ``[(columns)] [PARTITION (…)] [(columns) | BY NAME]`` after the target. Return the
    columns (None without a list), the items of PARTITION, and whether BY NAME is there. IF NOT
    EXISTS, options, and an alias before REPLACE ON raise UnsupportedError; a second clause of a
    kind is a syntax error, as is BY NAME with columns."""
    _refuse_options(c)
    columns = parse_column_list(c) if _is_at_column_list(c) else None
    partition: tuple[PartitionItem, ...] = ()
    if c.is_at("PARTITION", "("):
        partition = parse_partition_clause(c)
    if c.is_at("IF", "NOT", "EXISTS"):
        c.refuse("INSERT … IF NOT EXISTS is not supported")
    by_name = c.accept("BY", "NAME")
    if by_name and columns is not None:
        c.fail("Expected a query, as BY NAME and a list of columns exclude each other", by_name)
    if _is_at_column_list(c):
        if columns is not None or by_name:
            c.fail("Expected VALUES or a query, as the columns are named already")
        columns = parse_column_list(c)
    _refuse_second_clause(c)
    return columns, partition, by_name is not None


def _refuse_options(c: Cursor) -> None:
    """Raise UnsupportedError if options of an INSERT's target, or an alias with REPLACE ON, come
    next."""
    if c.is_at("WITH", "(") or c.is_at("OPTIONS", "("):
        c.refuse("Options of an INSERT's target are not supported")
    ahead = 2 if c.is_at("AS") else 1
    if c.token.is_name and c.peek(ahead).upper == "REPLACE" and c.peek(ahead + 1).upper == "ON":
        c.take(ahead)
        _refuse_replace_on(c)


def _parse_replacing(c: Cursor, *, is_alone: bool) -> Replacing | None:
    """Parse ``REPLACE WHERE condition`` or ``REPLACE USING (columns)``; return None without either.
    REPLACE ON raises UnsupportedError; a condition that no query follows is a syntax error.

    ``is_alone``: the statement has no clause that REPLACE excludes; otherwise REPLACE is a syntax
    error.
    """
    start = c.index
    if c.is_at("REPLACE", "ON"):
        _refuse_replace_on(c)
    is_where = c.accept("REPLACE", "WHERE") is not None
    if not is_where and not c.accept("REPLACE", "USING"):
        return None
    if not is_alone:
        c.fail(
            "Expected VALUES or a query, as REPLACE excludes OVERWRITE, PARTITION (…) and a list "
            "of columns",
            c.tokens[start],
        )
    if not is_where:
        columns = parse_column_list(c)
        return Replacing(c.span_from(start), using=columns)
    where = c.take_expression(_QUERY_WORDS, noun="a condition")
    if c.is_at_end:
        c.fail("Expected a query behind the condition: SELECT, WITH, VALUES or TABLE")
    return Replacing(c.span_from(start), where)


def _refuse_replace_on(c: Cursor) -> NoReturn:
    """Raise the UnsupportedError for INSERT … REPLACE ON, with advice."""
    c.refuse(
        "INSERT … REPLACE ON is not supported: use REPLACE USING (columns), or MERGE with WHEN NOT "
        "MATCHED BY SOURCE"
    )


def _refuse_second_clause(c: Cursor) -> None:
    """Raise SqlSyntaxError if a second PARTITION clause, or BY NAME behind a column list, comes
    next."""
    if c.is_at("PARTITION", "("):
        c.fail("Expected VALUES or a query, as there is a PARTITION clause already")
    if c.is_at("BY", "NAME"):
        c.fail("Expected VALUES or a query, as BY NAME excludes a list of columns")


def _is_at_column_list(c: Cursor) -> bool:
    """Whether a bracket with nothing but names, dotted or not, comes next, or an empty one. A
    bracket that ends the statement does not count."""
    if not c.is_at("("):
        return False
    close, index = c.partner[c.index], c.index + 1
    if c.tokens[close + 1].kind is TokenKind.END:
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


def parse_column_list(c: Cursor) -> tuple[Name, ...]:
    """Parse ``(a, b.c, …)``: one name at least, each perhaps with several parts. Anything else
    raises SqlSyntaxError."""
    c.expect("(")
    names = [c.take_name("the name of a column")]
    while c.take_separator():
        names.append(c.take_name("the name of a column"))
    return tuple(names)


def parse_partition_clause(c: Cursor) -> tuple[PartitionItem, ...]:
    """Parse ``PARTITION (p = value, q)``: return an item for each column, in order, with None as
    the value of ``q``. Names are not resolved, and values stay spans."""
    c.expect("PARTITION")
    c.expect("(")
    items = [_parse_partition_item(c)]
    while c.take_separator():
        items.append(_parse_partition_item(c))
    return tuple(items)


def parse_static_partition(c: Cursor) -> tuple[PartitionItem, ...]:
    """Parse ``PARTITION (p = value, …)``. Raise SqlSyntaxError if a column has no value."""
    start = c.index
    items = parse_partition_clause(c)
    for item in items:
        if item.value is None:
            after = next(t for t in c.tokens[start:] if t.start >= item.span.end)
            c.fail(f"Expected '=' and a value for '{item.name}'", after)
    return items


def _parse_partition_item(c: Cursor) -> PartitionItem:
    """Parse one item of a PARTITION clause: ``p = value`` (or ``==``), or ``p`` alone, whose value
    is None."""
    start = c.index
    name = c.take_name_part("the name of a partition column").value
    value = None
    if c.accept("=") or c.accept("=="):
        value = c.take_expression((",", ")"), noun="a value")
    elif not c.is_at_any((",", ")")):
        c.fail("Expected '=', ',' or ')'")
    return PartitionItem(name, value, c.span_from(start))


def _parse_query(c: Cursor) -> Query:
    """Take the rest of the statement as a query, unread. Raise SqlSyntaxError if no query begins
    here, or if a further INSERT stands in it."""
    if not c.is_at_any(QUERY_STARTS):
        if c.is_at("SET") and c.peek().is_name:
            c.refuse(
                "INSERT … SET is not supported: INSERT INTO t (a, b) VALUES (1, 2) names columns"
            )
        c.fail("Expected VALUES or a query", also_expected=("SELECT", "PARTITION", "REPLACE"))
    begin = c.index
    c.skip_to(*BRANCHES)
    if not c.is_at_end:
        c.fail("Expected one INSERT (several stand behind FROM)")
    c.index = begin
    return Query(c.take_rest())


# ── VALUES ───────────────────────────────────────────────────────────────────────────────────


def parse_values(c: Cursor) -> Values | None:
    """Parse ``VALUES row, row, …`` up to the statement's end; return None, without moving, if
    VALUES is a query (with an alias, a UNION …). Raise AnalysisError if the rows differ in length,
    and SqlSyntaxError if anything else follows a row."""
    start = c.index
    c.expect("VALUES")
    rows: list[tuple[Value, ...]] = []
    while True:
        row = _parse_row(c)
        if row is None:
            c.index = start
            return None
        rows.append(row)
        if not c.accept(","):
            break
    c.expect_end("',' or the end of the statement")
    _check_widths(c, rows)
    return Values(c.span_from(start), tuple(rows))


def _check_widths(c: Cursor, rows: list[tuple[Value, ...]]) -> None:
    """Raise AnalysisError, at the row, if a row of VALUES has another number of values than the
    first."""
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


def _parse_row(c: Cursor) -> tuple[Value, ...] | None:
    """Parse one row of VALUES, in brackets or a single value, as a tuple of its values (places, and
    a Default for the word DEFAULT); return None if an alias, a UNION or the like makes VALUES a
    query."""
    if c.is_at("("):
        following = c.tokens[c.partner[c.index] + 1]
        if following.upper == "," or following.kind is TokenKind.END:
            return parse_value_list(c)
    start = c.index
    span = c.take_expression((",",), noun="a row")
    for index in range(start + 1, c.index):
        token = c.tokens[index]
        # An alias needs no AS: VALUES (1), (2) v
        if token.upper in _QUERY_TAIL or (token.is_name and c.tokens[index - 1].text == ")"):
            return None
    only = c.tokens[start] if c.index == start + 1 else None
    return (Default(span) if only is not None and only.upper == "DEFAULT" else span,)


def parse_value_list(c: Cursor) -> tuple[Value, ...]:
    """Parse ``(value, …)``, the bracket of which must come next: return the places of the values,
    and a Default for the word DEFAULT. An empty value is a syntax error. For speed with long lists
    it does without `Cursor.take_expression`."""
    tokens, partner = c.tokens, c.partner
    close = partner[c.index]
    index = first = c.index + 1
    row_values: list[Value] = []
    while True:
        if index == close or tokens[index].text == ",":
            if index == first:
                c.fail("Expected a value", tokens[index])
            span = Span(tokens[first].start, tokens[index - 1].end)
            is_default = index == first + 1 and tokens[first].upper == "DEFAULT"
            row_values.append(Default(span) if is_default else span)
            if index == close:
                break
            first = index + 1
        index = partner.get(index, index) + 1
    c.index = close + 1
    return tuple(row_values)


# ── one source, many targets ─────────────────────────────────────────────────────────────────


def parse_multi_insert(c: Cursor, is_ours: IsOurs, ctes: Span | None) -> MultiInsert | None:
    """Parse ``FROM s INSERT … INSERT …``; return None if there is no INSERT, or no target is an
    ACID table.

    Raises:
        SqlSyntaxError: There is no source behind FROM, or a branch does not parse.
        UnsupportedError: Only some of the targets are ACID tables, or an INSERT has BY NAME or
            REPLACE.
    """
    c.expect("FROM")
    start = c.index
    c.skip_to(*BRANCHES)
    if c.is_at_end:
        return None
    if c.index == start:
        c.fail("Expected a source behind FROM")
    source = c.span_from(start)
    targets = _branch_targets(c)
    ours = [name is not None and is_ours(name.parts) for name, _ in targets]
    if not any(ours):
        return None
    for (name, span), acid in zip(targets, ours, strict=True):
        if not acid:
            foreign_target = "a directory" if name is None else f"'{'.'.join(name.parts)}'"
            c.refuse(f"One INSERT cannot write to ACID tables and to {foreign_target}, too", span)
    branches = []
    while not c.is_at_end:
        branches.append(_parse_branch(c))
    return MultiInsert(source, tuple(branches), ctes)


def _branch_targets(c: Cursor) -> list[tuple[Name | None, Span]]:
    """Return the branches' targets (None for a directory), each with its place, in order. Queries
    are skipped. The cursor does not move."""
    start, targets = c.index, []
    while not c.is_at_end:
        c.expect("INSERT")
        at = c.index
        _, name = _parse_head(c)
        targets.append((name, name.span if name else c.tokens[at + 1].span))
        c.skip_to(*BRANCHES)
    c.index = start
    return targets


def _parse_branch(c: Cursor) -> InsertBranch:
    """Parse one ``INSERT … SELECT …`` of a multi-insert up to the next INSERT; its query, which
    begins with SELECT, MAP or REDUCE, stays a span. BY NAME and REPLACE raise UnsupportedError;
    other sources, as VALUES, are a syntax error."""
    c.expect("INSERT")
    overwrite, target = _parse_head(c)
    assert target is not None  # parse_multi_insert has refused directories
    columns, partition, by_name = _parse_destination(c)
    if by_name:
        c.refuse("BY NAME in a multi-insert is not supported")
    if c.is_at("REPLACE"):
        c.refuse("REPLACE in a multi-insert is not supported")
    if not c.is_at_any(("SELECT", "MAP", "REDUCE")):
        c.fail("Expected SELECT")
    start = c.index
    c.skip_to(*BRANCHES)
    return InsertBranch(target, c.span_from(start), columns, partition, overwrite)
