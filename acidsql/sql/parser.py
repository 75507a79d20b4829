"""Text → Statement: what is ours is read strictly, what is Spark's is passed on.

The first words decide. A statement that changes an ACID table, or asks about one, is read by our
grammar to its last token (``grammar/dml.ebnf``), and whatever the grammar does not know is an
error with a caret. A statement that is not ours becomes a ``SparkStatement``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from acidsql.errors import SqlError, SqlSyntaxError, UnsupportedError
from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import QUERY_STARTS, IsAcid, insert, multi_insert
from acidsql.sql.modify import delete, merge, update
from acidsql.sql.show import (
    DATABASE_WORDS,
    abort,
    create_database,
    describe,
    drop_database,
    show,
    use,
)
from acidsql.sql.statements import Explain, Reads, SparkStatement, Statement
from acidsql.sql.tables import alter_table, create_table, drop_table, truncate_table
from acidsql.sql.tokens import Kind, Span, Token, tokenize, words

__all__ = ["IsAcid", "parse"]

# What follows these words is no SQL (`SET x=it's`, `ADD JAR /a'b`): Spark reads it raw.
_SCRIPT = "A script (BEGIN … END) is not supported: give one statement at a time"
_RAW = re.compile(r"\s*(SET|RESET|ADD|LIST|DFS)\b", re.IGNORECASE)


def parse(text: str, *, is_acid: IsAcid, double_quoted_identifiers: bool = False) -> Statement:
    """Reads one statement.

    Args:
        text: The statement, with at most one ``;`` behind it.
        is_acid: Whether a name, unquoted and perhaps qualified, is a table of our catalog.
        double_quoted_identifiers: Whether ``"…"`` is a name (else a string).

    Raises:
        SqlSyntaxError: The text is ours and does not parse, or holds no or two statements.
        UnsupportedError: The statement is understood and refused by name.
    """
    raw = _RAW.match(text)
    try:
        tokens = tokenize(text, double_quoted_identifiers=double_quoted_identifiers)
    except SqlError:
        if raw is None:
            raise
        return SparkStatement(Span(raw.start(1), len(text.rstrip())), Reads.NOTHING)
    tokens = _one_statement(text, tokens)
    if raw is not None:
        return SparkStatement(Span(tokens[0].start, tokens[-1].end), Reads.NOTHING)
    return _statement(Cursor(text, tokens), is_acid)


def _one_statement(text: str, tokens: list[Token]) -> list[Token]:
    """Drops one trailing ``;`` and refuses any other."""
    if tokens and tokens[-1].upper == ";":
        tokens = tokens[:-1]
    if not tokens:
        raise SqlSyntaxError("Expected a statement, found nothing.", text, 0, len(text))
    for index, token in enumerate(tokens):
        if token.upper == ";":
            if tokens[0].upper == "BEGIN" and index > 1:
                raise UnsupportedError(_SCRIPT, text, tokens[0].start, tokens[0].end)
            second = tokens[index + 1] if index + 1 < len(tokens) else token
            raise SqlSyntaxError(
                "Expected one statement, found a second one.", text, second.start, second.end
            )
    return tokens


def _statement(c: Cursor, is_acid: IsAcid) -> Statement:
    """Reads all that is left of ``c`` as one statement."""
    start = c.index
    whole = Span(c.token.start, c.tokens[-1].end)
    reader = _READERS.get(c.token.upper)
    if reader is None:
        return SparkStatement(whole, Reads.QUERY if _is_query(c) else Reads.NOTHING)
    statement = reader(c, is_acid, whole)
    if statement is not None:
        if not isinstance(statement, SparkStatement):
            c.end()
        return statement
    c.index = start
    return SparkStatement(whole, _reads(c))


def _is_query(c: Cursor) -> bool:
    return c.at_any(QUERY_STARTS)


def _reads(c: Cursor) -> Reads:
    """What a statement of Spark's that begins with one of our words may do with ACID tables."""
    if c.at_any(QUERY_STARTS) or c.at("INSERT"):
        return Reads.QUERY
    if c.at("CREATE") or c.at("REPLACE") or c.at("CACHE") or c.at("DESCRIBE") or c.at("DESC"):
        return Reads.QUERY
    return Reads.NOTHING


# ── the statements by their first word ───────────────────────────────────────────────────────


def _with(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    """``WITH … INSERT|UPDATE|DELETE|MERGE|FROM``; None for a query."""
    start = c.index
    if not _skip_ctes(c):
        return None
    ctes = c.span_from(start)
    reader = _WITH_READERS.get(c.token.upper)
    if reader is None:
        return None
    is_change = c.at_any(("UPDATE", "DELETE", "MERGE"))
    statement = reader(c, is_acid, ctes)
    if statement is None and is_change:
        return SparkStatement(whole, Reads.NOTHING)
    return statement


def _skip_ctes(c: Cursor) -> bool:
    """Goes behind ``WITH a [(…)] [AS] (…), …``; False if it does not look like that."""
    c.expect("WITH")
    if c.at("RECURSIVE") and c.peek().is_name:
        c.take()
    while True:
        if not c.token.is_name:
            return False
        c.take()
        if c.at("(") and (c.tokens[c.partner[c.index] + 1].upper in ("AS", "(", "MAX")):
            c.skip_brackets()
        if c.accept("MAX", "RECURSION", "LEVEL"):
            c.take()
        c.accept("AS")
        if not c.at("("):
            return False
        c.skip_brackets()
        if not c.accept(","):
            return True


def _explain(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement:
    c.expect("EXPLAIN")
    mode = None
    if c.at_any(("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")):
        mode = c.take().upper
    if c.done or c.at("EXPLAIN"):
        c.fail("Expected a statement to explain")
    statement = _statement(c, is_acid)
    if isinstance(statement, SparkStatement):
        return SparkStatement(whole, statement.reads)
    return Explain(mode, statement)


def _create(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    words = [c.peek(n).upper for n in range(1, 6)]
    if words[0] in DATABASE_WORDS[:2] or words[0] == "NAMESPACE":
        return create_database(c)
    leading = [w for w in words if w in _CREATE_WORDS]
    what = words[len(leading)] if words[: len(leading)] == leading else ""
    if what == "TABLE":
        return create_table(c, is_acid, whole)
    temporary = bool({"TEMP", "TEMPORARY"} & set(leading))
    if what == "VIEW" and temporary:
        return SparkStatement(whole, Reads.QUERY)
    return SparkStatement(whole, Reads.NOTHING)


_CREATE_WORDS = words("OR REPLACE GLOBAL TEMP TEMPORARY EXTERNAL TRANSACTIONAL")


def _drop(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    if c.peek().upper in DATABASE_WORDS:
        return drop_database(c)
    return drop_table(c, is_acid) if c.peek().upper == "TABLE" else None


def _alter(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return alter_table(c, is_acid) if c.peek().upper == "TABLE" else None


def _describe(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    what = c.peek()
    is_query = what.upper in ("QUERY", *QUERY_STARTS) and what.upper != "TABLE"
    if is_query and c.peek(2).kind is not Kind.END:
        return SparkStatement(whole, Reads.QUERY)
    if what.upper in ("FUNCTION", *DATABASE_WORDS, "CATALOG", "PROCEDURE") and c.peek(2).is_name:
        return SparkStatement(whole, Reads.NOTHING)
    return describe(c, is_acid) or SparkStatement(whole, Reads.NOTHING)


def _cache(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement:
    """``CACHE [LAZY] TABLE t [OPTIONS …] [AS] query``; without a query it only names a table."""
    c.take()
    c.accept("LAZY")
    if c.accept("TABLE"):
        c.name("the name of a table")
        if c.accept("OPTIONS") and c.at("("):
            c.skip_brackets()
        if c.accept("AS") or _is_query(c):
            return SparkStatement(whole, Reads.QUERY)
    return SparkStatement(whole, Reads.NOTHING)


def _load(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    at = c.token
    c.skip_to(("INTO", "TABLE"))
    if not c.done:
        c.take(2)
        name = c.name("the name of a table")
        if is_acid(name.parts):
            c.refuse("LOAD DATA into an ACID table is not built yet", at.span)
    return None


def _lock(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    if c.peek().upper in ("TABLE", *DATABASE_WORDS):
        c.refuse(f"{c.token.upper} {c.peek().upper} is not built yet")
    return None


def _transaction(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    word, following = c.token.upper, c.peek()
    if word == "START" and following.upper != "TRANSACTION":
        return None
    if (
        word == "BEGIN"
        and following.kind is not Kind.END
        and following.upper
        not in (
            "TRANSACTION",
            "WORK",
        )
    ):
        c.refuse(_SCRIPT)
    name = "START TRANSACTION" if word == "START" else word
    c.refuse(f"{name} is not built yet: every statement is a transaction of its own")


def _show(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return show(c, is_acid)


def _use(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return use(c)


def _abort(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return abort(c)


def _truncate(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return truncate_table(c, is_acid)


def _plain(read: Callable[[Cursor, IsAcid, Span | None], Statement | None]) -> _Reader:
    return lambda c, is_acid, whole: read(c, is_acid, None)


_Reader = Callable[[Cursor, IsAcid, Span], Statement | None]
_WITH_READERS: dict[str, Callable[[Cursor, IsAcid, Span | None], Statement | None]] = {
    "INSERT": insert,
    "UPDATE": update,
    "DELETE": delete,
    "MERGE": merge,
    "FROM": multi_insert,
}
_READERS: dict[str, _Reader] = {
    **{word: _plain(read) for word, read in _WITH_READERS.items()},
    "WITH": _with,
    "EXPLAIN": _explain,
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "TRUNCATE": _truncate,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "USE": _use,
    "ABORT": _abort,
    "CACHE": _cache,
    "LOAD": _load,
    "LOCK": _lock,
    "UNLOCK": _lock,
    "BEGIN": _transaction,
    "START": _transaction,
    "COMMIT": _transaction,
    "ROLLBACK": _transaction,
    "SAVEPOINT": _transaction,
}
