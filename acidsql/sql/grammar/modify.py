"""Parses UPDATE, DELETE and MERGE.

``is_ours`` tells, from the parts of a name, whether it means an ACID table. ``ctes`` is the place
of the WITH clause before the statement; None without one.
"""

from __future__ import annotations

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_column_list, parse_value_list
from acidsql.sql.parsed.statements import (
    Action,
    Assignment,
    Default,
    Delete,
    InsertAction,
    Matched,
    Merge,
    MergeClause,
    Name,
    Update,
    UpdateAction,
    Value,
)
from acidsql.sql.text.frames import frame_name
from acidsql.sql.text.tokens import Span, TokenKind, words

_JOINS = words("JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL LATERAL ,")
# Spark's strict non-reserved words, which cannot be aliases of tables in Spark either.
_STRICT_WORDS = _JOINS | {"USING", "ON", "UNION", "EXCEPT", "INTERSECT"}
# Spark takes most of these words as aliases. Here `DELETE FROM t LIMIT` is a mistake.
_NO_ALIAS = _JOINS | words(
    "WHERE SET USING ON FROM LIMIT ORDER RETURNING WHEN PARTITION GROUP HAVING WITH"
)


def _refused_clauses(statement: str) -> dict[str, str]:
    """Return the upper-cased words that begin a clause of other SQL dialects in this statement
    (ORDER, LIMIT, USING, FROM, JOIN; in MERGE also WHERE), each with the message that refuses
    it."""
    words = {
        "ORDER": f"{statement} … ORDER BY is not supported",
        "LIMIT": f"{statement} … LIMIT is not supported",
        "USING": f"{statement} … USING is not supported",
        "FROM": f"{statement} … FROM is not supported",
        "JOIN": f"A join in {statement} is not supported: use MERGE or a subquery",
    }
    if statement == "UPDATE":
        words["USING"] += ": use FROM, between SET and WHERE"
        words["FROM"] = "The FROM of UPDATE comes between SET and WHERE"
    if statement == "DELETE":
        words["USING"] = "The USING of DELETE comes before WHERE"
        words["FROM"] += ": use USING, before WHERE"
    if statement == "MERGE":
        words["WHERE"] = "WHERE in an action of MERGE is not supported: use AND behind its WHEN"
    return words


def parse_update(c: Cursor, is_ours: IsOurs, ctes: Span | None) -> Update | Merge | None:
    """Parse ``UPDATE t [[AS] x] SET … [FROM …] [WHERE …]``; return None if the target is Spark's.
    With FROM it is a Merge, whose ON is the WHERE, which is needed. Joins, ORDER BY and LIMIT raise
    UnsupportedError."""
    c.expect("UPDATE")
    target = c.take_name("the name of a table")
    if not is_ours(target.parts):
        return None
    alias = _parse_alias(c, "SET")
    _refuse_relations(c, "UPDATE")
    if not c.accept("SET"):
        c.fail("Expected SET")
    assignments = _parse_assignments(c, ("FROM", "WHERE"), "UPDATE")
    if c.accept("FROM"):
        return _parse_as_merge(c, target, alias, UpdateAction(assignments), ctes, "UPDATE")
    where = _parse_where(c, "UPDATE")
    return Update(target, alias, assignments, where, ctes)


def parse_delete(c: Cursor, is_ours: IsOurs, ctes: Span | None) -> Delete | Merge | None:
    """Parse ``DELETE FROM t [[AS] x] [USING …] [WHERE …]``; return None if the target is Spark's.
    With USING it is a Merge, whose ON is the WHERE, which is needed. Joins, ORDER BY and LIMIT
    raise UnsupportedError."""
    c.expect("DELETE")
    c.expect("FROM")
    target = c.take_name("the name of a table")
    if not is_ours(target.parts):
        return None
    alias = _parse_alias(c, "WHERE")
    if c.accept("USING"):
        return _parse_as_merge(c, target, alias, Action.DELETE, ctes, "DELETE")
    _refuse_relations(c, "DELETE")
    return Delete(target, alias, _parse_where(c, "DELETE"), ctes)


def _parse_as_merge(
    c: Cursor,
    target: Name,
    alias: str | None,
    action: UpdateAction | Action,
    ctes: Span | None,
    keyword: str,
) -> Merge:
    """Parse the text after the FROM of UPDATE or the USING of DELETE, up to the statement's end.
    Return the statement as a MERGE: WHERE, which is needed, is its ON, and ``action`` is what its
    one clause, WHEN MATCHED, does.

    Joins and functions as the source are refused. ``keyword``: UPDATE or DELETE.
    """
    start = c.index
    source, name = parse_table_or_query(c, keyword)
    source_alias, source_columns = _parse_source_alias(c, name, "WHERE")
    _refuse_join(c, keyword)
    on = _parse_where(c, keyword)
    if on is None:
        c.fail("Expected WHERE, which says which rows belong together")
    clauses = (MergeClause(Matched.MATCHED, None, action, c.span_from(start)),)
    return Merge(target, alias, source, source_alias, source_columns, name, on, clauses, ctes,
                 keyword=keyword)  # fmt: skip


def _parse_alias(c: Cursor, *next_words: str) -> str | None:
    """Parse ``[AS] x``; return the alias without backticks, or None if there is none. Without AS, a
    word that could begin a clause (LIMIT, WHERE …) is an alias only if one of ``next_words``, the
    words that must come behind an alias, comes next; a word of a join, USING or ON never is."""
    if c.accept("AS"):
        return c.take_name_part("an alias").value
    if c.token.is_name and c.token.upper not in _NO_ALIAS:
        return c.take().value
    # LIMIT and the like are an alias if the clause after the alias follows: UPDATE t limit SET …
    if (
        c.token.is_name
        and c.peek().upper in next_words
        and c.token.upper not in (*_STRICT_WORDS, *next_words)
    ):
        return c.take().value
    return None


def _refuse_relations(c: Cursor, statement: str) -> None:
    """Raise UnsupportedError, with advice, if a comma, a word of a join, or a clause of other SQL
    dialects (LIMIT, ORDER …) comes next."""
    if c.is_at_any(_JOINS):
        c.refuse(f"More than one table in {statement} is not supported: use MERGE or a subquery")
    if c.token.upper in (words := _refused_clauses(statement)):
        c.refuse(words[c.token.upper])


def _parse_where(c: Cursor, statement: str) -> Span | None:
    """Parse ``[WHERE condition]`` up to the statement's end and return the condition's place, or
    None without WHERE. A clause of other dialects behind the condition, as LIMIT, raises
    UnsupportedError; a second WHERE, or any other word in the place of WHERE, is a syntax error."""
    condition = None
    if c.accept("WHERE"):
        condition = c.take_expression(("WHERE",), _refused_clauses(statement), "a condition")
        if c.is_at("WHERE"):
            c.fail("Expected one WHERE")
    if not c.is_at_end and condition is None:
        c.fail("Expected WHERE or the end of the statement")
    return condition


def _parse_assignments(c: Cursor, stops: tuple[str, ...], statement: str) -> tuple[Assignment, ...]:
    """Parse ``a = value, …`` up to one of ``stops``. A clause of other SQL dialects behind a value
    raises UnsupportedError."""
    assignments = [_parse_assignment(c, stops, statement)]
    while c.accept(","):
        assignments.append(_parse_assignment(c, stops, statement))
    return tuple(assignments)


def _parse_assignment(c: Cursor, stops: tuple[str, ...], statement: str) -> Assignment:
    """Parse ``a.b = value`` (or ``==``) up to ``,`` or one of ``stops``; ``a[i] = value`` raises
    UnsupportedError."""
    if c.is_at("("):
        c.refuse("SET (a, b) = (…) is not supported: write SET a = …, b = …", c.span_of_group())
    target = c.take_name("the name of a column")
    if c.is_at("["):
        c.refuse(
            "Assigning to an element of an array or a map is not supported: assign the whole column"
        )
    if not c.accept("=") and not c.accept("=="):
        c.fail("Expected '='")
    return Assignment(target, _parse_value(c, (",", *stops), statement))


def _parse_value(c: Cursor, stops: tuple[str, ...], statement: str) -> Value:
    """Take a value up to one of ``stops``: return its place, or a Default for the word DEFAULT. A
    clause of other SQL dialects behind the value raises UnsupportedError."""
    start = c.index
    span = c.take_expression(stops, _refused_clauses(statement), "a value")
    is_default = c.index == start + 1 and c.tokens[start].upper == "DEFAULT"
    return Default(span) if is_default else span


# ── MERGE ────────────────────────────────────────────────────────────────────────────────────

_WHEN = ("WHEN MATCHED", "WHEN NOT MATCHED")


def parse_merge(c: Cursor, is_ours: IsOurs, ctes: Span | None) -> Merge | None:
    """Parse ``MERGE INTO t … USING … ON … WHEN …``; return None if the target is Spark's.

    Raises:
        SqlSyntaxError: The text does not parse, or the WHEN clauses are in the wrong order.
        UnsupportedError: There is a hint, a join, a function as the source, or ``* EXCEPT``.
    """
    c.expect("MERGE")
    if c.token.kind is TokenKind.HINT:
        c.refuse("A hint in MERGE is not supported")
    evolution = c.accept("WITH", "SCHEMA", "EVOLUTION")
    c.expect("INTO")
    target = c.take_name("the name of a table")
    if not is_ours(target.parts):
        return None
    alias = _parse_alias(c, "USING")
    c.expect("USING")
    source, name = parse_table_or_query(c, "MERGE")
    source_alias, source_columns = _parse_source_alias(c, name, "ON")
    _refuse_join(c, "MERGE")
    c.expect("ON")
    on = c.take_expression(_WHEN, noun="a condition")
    clauses = _parse_clauses(c)
    return Merge(
        target, alias, source, source_alias, source_columns, name, on, clauses, ctes,
        evolves=evolution is not None,
    )  # fmt: skip


def parse_table_or_query(c: Cursor, statement: str) -> tuple[Span, Name | None]:
    """Parse the source of MERGE, AUTO CDC, UPDATE … FROM or DELETE … USING. Return its place (with
    the brackets, or with the word VALUES), and its name, which is None for a query in brackets and
    for VALUES. A function raises UnsupportedError; empty brackets are a syntax error."""
    if c.is_at("("):
        if c.partner[c.index] == c.index + 1:
            c.fail("Expected a query", c.peek())
        return c.skip_brackets(), None
    if c.is_at("VALUES") and (c.peek().upper == "(" or not c.peek().is_name):
        start = c.index
        c.take()
        while True:
            if not c.is_at("("):
                c.fail("Expected a row in brackets")
            c.skip_brackets()
            if not c.accept(","):
                return c.span_from(start), None
    name = c.take_name("the name of a table, or a query in brackets")
    if c.is_at("("):
        c.refuse(f"A function as {statement}'s source is not supported: write (SELECT * FROM …)")
    return name.span, name


def _parse_source_alias(
    c: Cursor, name: Name | None, next_word: str
) -> tuple[str | None, tuple[str, ...] | None]:
    """Parse ``[AS] x [(a, b)]`` behind a source. Return the alias and the columns, each None if
    missing; of a column's name only the last part. Without an alias, a source with a name gets the
    last part of the name, without a DataFrame's braces. ``next_word``: the word that must come
    next."""
    alias = _parse_alias(c, next_word)
    columns = None
    if alias is not None and c.is_at("("):
        columns = tuple(column.parts[-1] for column in parse_column_list(c))
    if alias is None and name is not None:
        alias = frame_name(name.parts)
    return alias, columns


def _refuse_join(c: Cursor, statement: str) -> None:
    """Raise UnsupportedError, with advice, if a comma or a word of a join comes next."""
    if c.is_at_any(_JOINS):
        c.refuse(f"A join as {statement}'s source is not supported: write (SELECT … FROM …)")


_ORDER = tuple(Matched)


def _parse_clauses(c: Cursor) -> tuple[MergeClause, ...]:
    """Parse the WHEN clauses up to the statement's end, one at least. Raise SqlSyntaxError if their
    kinds are not in the order MATCHED, NOT MATCHED, NOT MATCHED BY SOURCE, or if a clause without
    AND is not the last of its kind."""
    if not c.is_at("WHEN"):
        c.fail("Expected WHEN MATCHED or WHEN NOT MATCHED")
    clauses: list[MergeClause] = []
    while not c.is_at_end:
        at = c.token
        clause = _parse_clause(c)
        if clauses:
            before = clauses[-1]
            if _ORDER.index(before.matched) > _ORDER.index(clause.matched):
                c.fail(
                    f"Expected the {clause.matched.value} clauses before the "
                    f"{before.matched.value} clauses",
                    at,
                )
            if before.matched is clause.matched and before.condition is None:
                c.fail(
                    f"Expected AND in each {clause.matched.value} clause but the last, "
                    "as this clause can never apply",
                    at,
                )
        clauses.append(clause)
    return tuple(clauses)


def _parse_clause(c: Cursor) -> MergeClause:
    """Parse ``WHEN … [AND condition] THEN action``. It is a syntax error if an INSERT stands behind
    anything but NOT MATCHED, or another action there."""
    start = c.index
    matched = _parse_matched(c)
    condition = _parse_condition(c) if c.accept("AND") else None
    if not c.accept("THEN"):
        c.fail("Expected THEN" if condition else "Expected AND or THEN")
    action: UpdateAction | InsertAction | Action
    is_insert = matched is Matched.NOT_MATCHED
    action = _parse_insert_action(c) if is_insert else _parse_change_action(c, matched)
    if not c.is_at_end and not c.is_at("WHEN"):
        c.fail("Expected WHEN or the end of the statement")
    return MergeClause(matched, condition, action, c.span_from(start))


def _parse_matched(c: Cursor) -> Matched:
    """Parse ``WHEN MATCHED | NOT MATCHED [BY TARGET] | NOT MATCHED BY SOURCE``, and return which of
    them it is; BY TARGET is Matched.NOT_MATCHED, too."""
    c.expect("WHEN")
    if c.accept("MATCHED"):
        return Matched.MATCHED
    if not c.accept("NOT"):
        c.fail("Expected MATCHED or NOT MATCHED")
    c.expect("MATCHED")
    if not c.accept("BY"):
        return Matched.NOT_MATCHED
    if c.accept("TARGET"):
        return Matched.NOT_MATCHED
    if not c.accept("SOURCE"):
        c.fail("Expected TARGET or SOURCE")
    return Matched.NOT_MATCHED_BY_SOURCE


def _parse_condition(c: Cursor) -> Span:
    """Take the condition between AND and THEN, which may contain a CASE or a column called then,
    and return its place. THEN is not taken; if it is missing, the condition ends before the next
    WHEN clause, without an error."""
    start = c.index
    actions = ("THEN UPDATE", "THEN DELETE", "THEN INSERT")
    span = c.take_expression((*actions, *_WHEN), noun="a condition")
    if c.is_at("THEN"):
        return span
    # No THEN with an action follows: stop at the first THEN, so that the error is about its place.
    c.index = start
    return c.take_expression(("THEN", *_WHEN), noun="a condition")


def _parse_insert_action(c: Cursor) -> InsertAction | Action:
    """Parse ``INSERT *``, which gives Action.INSERT_ALL, or ``INSERT [(columns)] VALUES (…)``,
    which gives an InsertAction. ``* EXCEPT`` raises UnsupportedError; UPDATE and DELETE are syntax
    errors."""
    if c.is_at_any(("UPDATE", "DELETE")):
        c.fail("Expected INSERT, as a row that is not in the target cannot be changed")
    c.expect("INSERT")
    if c.accept("*"):
        if c.is_at("EXCEPT", "("):
            c.refuse("INSERT * EXCEPT is not supported: name the columns")
        return Action.INSERT_ALL
    columns = parse_column_list(c) if c.is_at("(") else None
    if not c.accept("VALUES"):
        c.fail("Expected VALUES" if columns else "Expected '*', '(' or VALUES")
    if not c.is_at("("):
        c.fail("Expected '('")
    return InsertAction(columns, parse_value_list(c))


def _parse_change_action(c: Cursor, matched: Matched) -> UpdateAction | Action:
    """Parse ``DELETE`` (Action.DELETE), ``UPDATE SET *`` (Action.UPDATE_ALL) or ``UPDATE SET a =
    value, …`` (an UpdateAction). ``* EXCEPT`` raises UnsupportedError; INSERT, and ``*`` behind NOT
    MATCHED BY SOURCE, are syntax errors."""
    if c.accept("DELETE"):
        return Action.DELETE
    if c.is_at("INSERT"):
        c.fail("Expected UPDATE or DELETE, as the row is in the target already")
    if not c.accept("UPDATE"):
        c.fail("Expected UPDATE or DELETE")
    if c.is_at("*"):
        c.fail("Expected SET (UPDATE SET *)")
    c.expect("SET")
    if not c.is_at("*"):
        return UpdateAction(_parse_assignments(c, _WHEN, "MERGE"))
    if matched is Matched.NOT_MATCHED_BY_SOURCE:
        c.fail("Expected assignments, as there is no source row to take them from")
    star = c.take()
    if c.is_at("EXCEPT", "("):
        c.refuse("UPDATE SET * EXCEPT is not supported: name the columns", star.span)
    return Action.UPDATE_ALL
