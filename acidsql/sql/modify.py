"""Parses UPDATE, DELETE and MERGE."""

from __future__ import annotations

from acidsql.sql.cursor import Cursor
from acidsql.sql.frames import frame_name
from acidsql.sql.insert import IsAcid, column_list, value_list
from acidsql.sql.statements import (
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
from acidsql.sql.tokens import Kind, Span, words

_JOINS = words("JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL LATERAL ,")
# Spark's strict non-reserved words, which cannot be aliases of tables in Spark either.
_STRICT = _JOINS | {"USING", "ON", "UNION", "EXCEPT", "INTERSECT"}
# Spark takes most of these words as aliases. Here `DELETE FROM t LIMIT` is a mistake.
_NO_ALIAS = _JOINS | words(
    "WHERE SET USING ON FROM LIMIT ORDER RETURNING WHEN PARTITION GROUP HAVING WITH"
)


def _refused(statement: str) -> dict[str, str]:
    """The clauses of other SQL dialects in this statement, with the messages that refuse them."""
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


def update(c: Cursor, is_acid: IsAcid, ctes: Span | None) -> Update | Merge | None:
    """Parse ``UPDATE t [[AS] x] SET … [FROM …] [WHERE …]``; None if the target is Spark's."""
    c.expect("UPDATE")
    target = c.name("the name of a table")
    if not is_acid(target.parts):
        return None
    alias = _alias(c, "SET")
    _refuse_relations(c, "UPDATE")
    if not c.accept("SET"):
        c.fail("Expected SET")
    assignments = _assignments(c, ("FROM", "WHERE"), "UPDATE")
    if c.accept("FROM"):
        return _with_partners(c, target, alias, UpdateAction(assignments), ctes, "UPDATE")
    where = _where(c, "UPDATE")
    return Update(target, alias, assignments, where, ctes)


def delete(c: Cursor, is_acid: IsAcid, ctes: Span | None) -> Delete | Merge | None:
    """Parse ``DELETE FROM t [[AS] x] [USING …] [WHERE …]``; None if the target is Spark's."""
    c.expect("DELETE")
    c.expect("FROM")
    target = c.name("the name of a table")
    if not is_acid(target.parts):
        return None
    alias = _alias(c, "WHERE")
    if c.accept("USING"):
        return _with_partners(c, target, alias, Action.DELETE, ctes, "DELETE")
    _refuse_relations(c, "DELETE")
    return Delete(target, alias, _where(c, "DELETE"), ctes)


def _with_partners(
    c: Cursor,
    target: Name,
    alias: str | None,
    action: UpdateAction | Action,
    ctes: Span | None,
    called: str,
) -> Merge:
    """Parse what follows the FROM of UPDATE or the USING of DELETE.

    The statement is a MERGE that changes only rows with a partner, and WHERE is its ON.
    """
    start = c.index
    source, name = table_or_query(c, called)
    source_alias, source_columns = _source_alias(c, name, "WHERE")
    _refuse_join(c, called)
    on = _where(c, called)
    if on is None:
        c.fail("Expected WHERE, which says which rows belong together")
    clauses = (MergeClause(Matched.MATCHED, None, action, c.span_from(start)),)
    return Merge(target, alias, source, source_alias, source_columns, name, on, clauses, ctes,
                 called=called)  # fmt: skip


def _alias(c: Cursor, *follows: str) -> str | None:
    """Parse ``[AS] x``. Without AS, x is an alias only if it cannot begin the next clause."""
    if c.accept("AS"):
        return c.name_part("an alias").value
    if c.token.is_name and c.token.upper not in _NO_ALIAS:
        return c.take().value
    # LIMIT and the like are an alias if the clause after the alias follows: UPDATE t limit SET …
    if c.token.is_name and c.peek().upper in follows and c.token.upper not in (*_STRICT, *follows):
        return c.take().value
    return None


def _refuse_relations(c: Cursor, statement: str) -> None:
    if c.at_any(_JOINS):
        c.refuse(f"More than one table in {statement} is not supported: use MERGE or a subquery")
    if c.token.upper in (words := _refused(statement)):
        c.refuse(words[c.token.upper])


def _where(c: Cursor, statement: str) -> Span | None:
    condition = None
    if c.accept("WHERE"):
        condition = c.expression(("WHERE",), _refused(statement), "a condition")
        if c.at("WHERE"):
            c.fail("Expected one WHERE")
    if not c.done and condition is None:
        c.fail("Expected WHERE or the end of the statement")
    return condition


def _assignments(c: Cursor, stops: tuple[str, ...], statement: str) -> tuple[Assignment, ...]:
    found = [_assignment(c, stops, statement)]
    while c.accept(","):
        found.append(_assignment(c, stops, statement))
    return tuple(found)


def _assignment(c: Cursor, stops: tuple[str, ...], statement: str) -> Assignment:
    target = c.name("the name of a column")
    if c.at("["):
        c.refuse(
            "Assigning to an element of an array or a map is not supported: assign the whole column"
        )
    if not c.accept("=") and not c.accept("=="):
        c.fail("Expected '='")
    return Assignment(target, _value(c, (",", *stops), statement))


def _value(c: Cursor, stops: tuple[str, ...], statement: str) -> Value:
    start = c.index
    span = c.expression(stops, _refused(statement), "a value")
    is_default = c.index == start + 1 and c.tokens[start].upper == "DEFAULT"
    return Default(span) if is_default else span


# ── MERGE ────────────────────────────────────────────────────────────────────────────────────

_WHEN = ("WHEN MATCHED", "WHEN NOT MATCHED")


def merge(c: Cursor, is_acid: IsAcid, ctes: Span | None) -> Merge | None:
    """Parse ``MERGE INTO t … USING … ON … WHEN …``; None if the target is Spark's."""
    c.expect("MERGE")
    if c.token.kind is Kind.HINT:
        c.refuse("A hint in MERGE is not supported")
    evolution = c.accept("WITH", "SCHEMA", "EVOLUTION")
    c.expect("INTO")
    target = c.name("the name of a table")
    if not is_acid(target.parts):
        return None
    alias = _alias(c, "USING")
    c.expect("USING")
    source, name = table_or_query(c, "MERGE")
    source_alias, source_columns = _source_alias(c, name, "ON")
    _refuse_join(c, "MERGE")
    c.expect("ON")
    on = c.expression(_WHEN, what="a condition")
    clauses = _clauses(c)
    return Merge(
        target, alias, source, source_alias, source_columns, name, on, clauses, ctes,
        evolves=evolution is not None,
    )  # fmt: skip


def table_or_query(c: Cursor, statement: str) -> tuple[Span, Name | None]:
    """Parse the source of MERGE or AUTO CDC: its place, and its name if it is no query."""
    if c.at("("):
        if c.partner[c.index] == c.index + 1:
            c.fail("Expected a query", c.peek())
        return c.skip_brackets(), None
    if c.at("VALUES") and (c.peek().upper == "(" or not c.peek().is_name):
        start = c.index
        c.take()
        while True:
            if not c.at("("):
                c.fail("Expected a row in brackets")
            c.skip_brackets()
            if not c.accept(","):
                return c.span_from(start), None
    name = c.name("the name of a table, or a query in brackets")
    if c.at("("):
        c.refuse(f"A function as {statement}'s source is not supported: write (SELECT * FROM …)")
    return name.span, name


def _source_alias(
    c: Cursor, name: Name | None, follows: str
) -> tuple[str | None, tuple[str, ...] | None]:
    alias = _alias(c, follows)
    columns = None
    if alias is not None and c.at("("):
        columns = tuple(column.parts[-1] for column in column_list(c))
    if alias is None and name is not None:
        alias = frame_name(name.parts)
    return alias, columns


def _refuse_join(c: Cursor, statement: str) -> None:
    if c.at_any(_JOINS):
        c.refuse(f"A join as {statement}'s source is not supported: write (SELECT … FROM …)")


_ORDER = tuple(Matched)


def _clauses(c: Cursor) -> tuple[MergeClause, ...]:
    if not c.at("WHEN"):
        c.fail("Expected WHEN MATCHED or WHEN NOT MATCHED")
    clauses: list[MergeClause] = []
    while not c.done:
        at = c.token
        clause = _clause(c)
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


def _clause(c: Cursor) -> MergeClause:
    start = c.index
    matched = _matched(c)
    condition = _condition(c) if c.accept("AND") else None
    if not c.accept("THEN"):
        c.fail("Expected THEN" if condition else "Expected AND or THEN")
    action: UpdateAction | InsertAction | Action
    is_insert = matched is Matched.NOT_MATCHED
    action = _insert_action(c) if is_insert else _change_action(c, matched)
    if not c.done and not c.at("WHEN"):
        c.fail("Expected WHEN or the end of the statement")
    return MergeClause(matched, condition, action, c.span_from(start))


def _matched(c: Cursor) -> Matched:
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


def _condition(c: Cursor) -> Span:
    start = c.index
    actions = ("THEN UPDATE", "THEN DELETE", "THEN INSERT")
    span = c.expression((*actions, *_WHEN), what="a condition")
    if c.at("THEN"):
        return span
    # No THEN with an action follows: stop at the first THEN, so that the error is about its place.
    c.index = start
    return c.expression(("THEN", *_WHEN), what="a condition")


def _insert_action(c: Cursor) -> InsertAction | Action:
    if c.at_any(("UPDATE", "DELETE")):
        c.fail("Expected INSERT, as a row that is not in the target cannot be changed")
    c.expect("INSERT")
    if c.accept("*"):
        if c.at("EXCEPT", "("):
            c.refuse("INSERT * EXCEPT is not supported: name the columns")
        return Action.INSERT_ALL
    at = c.token
    columns = column_list(c) if c.at("(") else None
    if not c.accept("VALUES"):
        c.fail("Expected VALUES" if columns else "Expected '*', '(' or VALUES")
    if not c.at("("):
        c.fail("Expected '('")
    row = value_list(c)
    if columns is not None and len(columns) != len(row):
        c.fail(f"Expected as many columns as values: {len(columns)} columns, {len(row)} values", at)
    return InsertAction(columns, row)


def _change_action(c: Cursor, matched: Matched) -> UpdateAction | Action:
    if c.accept("DELETE"):
        return Action.DELETE
    if c.at("INSERT"):
        c.fail("Expected UPDATE or DELETE, as the row is in the target already")
    if not c.accept("UPDATE"):
        c.fail("Expected UPDATE or DELETE")
    if c.at("*"):
        c.fail("Expected SET (UPDATE SET *)")
    c.expect("SET")
    if not c.at("*"):
        return UpdateAction(_assignments(c, _WHEN, "MERGE"))
    if matched is Matched.NOT_MATCHED_BY_SOURCE:
        c.fail("Expected assignments, as there is no source row to take them from")
    star = c.take()
    if c.at("EXCEPT", "("):
        c.refuse("UPDATE SET * EXCEPT is not supported: name the columns", star.span)
    return Action.UPDATE_ALL
