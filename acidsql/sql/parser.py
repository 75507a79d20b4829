"""Parses a text to a statement of ours or to a ``SparkStatement``.

The first words decide whose statement it is. A statement that changes or describes an ACID table,
or controls transactions, is ours. Our grammar (``grammar/dml.ebnf``) reads it to the last token,
and anything unknown is an error with a caret. Every other statement is passed on to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from acidsql.errors import SqlError, SqlSyntaxError, UnsupportedError
from acidsql.sql import transaction
from acidsql.sql.cdc import auto_cdc
from acidsql.sql.create_table import create_table
from acidsql.sql.cursor import Cursor
from acidsql.sql.databases import (
    DATABASE_WORDS,
    alter_database,
    create_database,
    describe_database,
    drop_database,
    use,
)
from acidsql.sql.effects import effect_and_name, effect_of_word
from acidsql.sql.insert import QUERY_STARTS, IsAcid, insert, multi_insert
from acidsql.sql.load import load_data
from acidsql.sql.lookahead import is_cte
from acidsql.sql.modify import delete, merge, update
from acidsql.sql.options import IsSetting, set_or_reset
from acidsql.sql.plain_values import Plain, plain_insert
from acidsql.sql.references import declared_names
from acidsql.sql.refusals import FIRST_WORDS, refuse_export, refuse_import, refuse_of_others
from acidsql.sql.returning import with_returning
from acidsql.sql.show import describe, show
from acidsql.sql.statements import (
    AutoCdc,
    Dml,
    Explain,
    Merge,
    Reads,
    SparkStatement,
    Statement,
    Undo,
)
from acidsql.sql.statistics import analyze
from acidsql.sql.tables import alter_table, drop_table, truncate_table
from acidsql.sql.tokens import Kind, Span, Token, tokenize, words
from acidsql.sql.undo import restore, revert
from acidsql.sql.views import alter_view, create_view, drop_view

__all__ = ["IsAcid", "IsSetting", "Plain", "parse"]

# The text after these words is not SQL (`SET x=it's`, `ADD JAR /a'b`) and is not cut into tokens.
_RAW_WORDS = ("SET", "RESET", "ADD", "LIST", "DFS")
_RAW = re.compile(rf"\s*({'|'.join(_RAW_WORDS)})\b", re.IGNORECASE)


def parse(
    text: str,
    *,
    is_acid: IsAcid,
    is_setting: IsSetting = lambda name: False,
    double_quoted_identifiers: bool = False,
    plain: Plain | None = None,
) -> Statement:
    """Parse one statement.

    Args:
        text: The statement, with at most one ``;`` at its end.
        is_acid: Whether a name (unquoted, perhaps qualified) is that of an ACID table, or of a view
            of ACID tables.
        is_setting: Whether a name is a setting of acidsql. SET of any other name is Spark's.
        double_quoted_identifiers: Whether ``"…"`` is a name; otherwise it is a string.
        plain: If given, an INSERT of plain literals gets a source of type ``Literals``, without
            being cut into tokens.

    Raises:
        SqlSyntaxError: A statement of ours does not parse, or the text contains no statement or
            more than one.
        UnsupportedError: The statement is known, but not supported.
    """
    found = None if plain is None else plain_insert(text, plain)
    if found is not None and is_acid(found.target.parts):
        return found
    try:
        tokens = tokenize(text, double_quoted_identifiers=double_quoted_identifiers)
    except SqlError:
        raw = _RAW.match(text)
        if raw is None:
            raise
        whole = Span(raw.start(1), len(text.rstrip().removesuffix(";").rstrip()))
        return _raw(text, whole, raw[1].upper(), is_setting)
    tokens = _one_statement(text, tokens)
    if tokens[0].upper in _RAW_WORDS:
        return _raw(text, Span(tokens[0].start, tokens[-1].end), tokens[0].upper, is_setting)
    c = Cursor(text, tokens)
    statement = _statement(c, is_acid)
    if isinstance(statement, SparkStatement):
        c.index = 0
        effect, name = effect_and_name(c)
        return replace(statement, effect=effect, statement_name=name)
    return statement


def _raw(text: str, whole: Span, word: str, is_setting: IsSetting) -> Statement:
    ours = set_or_reset(text, whole, is_setting)
    return ours or SparkStatement(whole, Reads.NOTHING, effect_of_word(word), word)


def _one_statement(text: str, tokens: list[Token]) -> list[Token]:
    """The tokens without one trailing ``;``. Any other ``;`` is refused."""
    if tokens and tokens[-1].upper == ";":
        tokens = tokens[:-1]
    if not tokens:
        raise SqlSyntaxError("Expected a statement, found nothing.", text, 0, len(text))
    for index, token in enumerate(tokens):
        if token.upper == ";":
            if transaction.is_script(tokens):
                raise UnsupportedError(
                    f"{transaction.SCRIPT}.", text, tokens[0].start, tokens[0].end
                )
            second = tokens[index + 1] if index + 1 < len(tokens) else token
            raise SqlSyntaxError(
                "Expected one statement, found a second one. acid.script(…) runs several.",
                text,
                second.start,
                second.end,
            )
    return tokens


def _statement(c: Cursor, is_acid: IsAcid) -> Statement:
    """Parse all tokens that are left as one statement."""
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
    """Whether a statement of Spark's that begins with one of our words may read ACID tables."""
    if c.at_any(QUERY_STARTS) or c.at("INSERT"):
        return Reads.QUERY
    if c.at("CREATE") or c.at("REPLACE") or c.at("CACHE") or c.at("DESCRIBE") or c.at("DESC"):
        return Reads.QUERY
    return Reads.NOTHING


# ── the statements by their first word ───────────────────────────────────────────────────────


def _with(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    """Parse ``WITH … INSERT|UPDATE|DELETE|MERGE|FROM``; None for a query."""
    start = c.index
    if not c.skip_ctes():
        return None
    ctes = c.span_from(start)
    reader = _WITH_READERS.get(c.token.upper)
    if reader is None:
        return None
    clause = c.tokens[start : c.index]
    is_change = c.at_any(("UPDATE", "DELETE", "MERGE"))
    statement = reader(c, is_acid, ctes)
    if isinstance(statement, Merge):
        return _scoped(statement, c.text, clause)
    if statement is None and is_change:
        return SparkStatement(whole, Reads.NOTHING)
    return statement


def _scoped(merge: Merge, text: str, clause: list[Token]) -> Merge:
    """A MERGE whose source is no table if the WITH clause before it declares the source's name."""
    name = merge.source_name
    if name is not None and is_cte(name.parts, declared_names(text, clause)):
        return replace(merge, source_name=None)
    return merge


def _explain(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement:
    c.expect("EXPLAIN")
    mode = None
    if c.at_any(("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")):
        mode = c.take().upper
    elif c.at("CHANGES"):
        return _explain_changes(c, is_acid)
    if c.done or c.at("EXPLAIN"):
        c.fail("Expected a statement to explain")
    if c.at_any(transaction.TRANSACTION_WORDS):
        c.refuse(f"EXPLAIN {c.token.upper} is not supported: it has no plan")
    only_a_query = mode != "LOGICAL" and _only_a_query(c)
    statement = _statement(c, is_acid)
    if isinstance(statement, SparkStatement):
        explained = (mode, statement.span) if only_a_query else None
        return SparkStatement(whole, statement.reads, explained=explained)
    return Explain(mode, statement)


def _explain_changes(c: Cursor, is_acid: IsAcid) -> Explain:
    """Parse ``EXPLAIN CHANGES`` of a statement that changes rows of an ACID table."""
    c.expect("CHANGES")
    first = c.token
    statement = None if c.done else _statement(c, is_acid)
    if not isinstance(statement, Dml | AutoCdc | Undo):
        known = "INSERT, UPDATE, DELETE, MERGE, AUTO CDC, RESTORE or REVERT"
        c.fail(f"Expected {known} of ACID tables", first)
    return Explain("CHANGES", statement)


def _only_a_query(c: Cursor) -> bool:
    """Whether a query follows that can contain no INSERT (as one after WITH or FROM can)."""
    start = c.index
    if c.at("WITH"):
        c.skip_ctes()
    found = c.at_any(("SELECT", "VALUES", "TABLE", "("))
    c.index = start
    return found


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
    view = (
        create_view(c, is_acid) if what == "VIEW" and leading in ([], ["OR", "REPLACE"]) else None
    )
    return view or SparkStatement(whole, Reads.NOTHING)


_CREATE_WORDS = words("OR REPLACE GLOBAL TEMP TEMPORARY EXTERNAL MANAGED TRANSACTIONAL")


def _drop(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    if c.peek().upper in DATABASE_WORDS:
        return drop_database(c)
    if c.peek().upper == "VIEW":
        return drop_view(c, is_acid)
    return drop_table(c, is_acid) if c.peek().upper == "TABLE" else None


def _export(c: Cursor, is_acid: IsAcid, whole: Span) -> None:
    refuse_export(c, is_acid)


def _import(c: Cursor, is_acid: IsAcid, whole: Span) -> None:
    refuse_import(c)


def _of_others(c: Cursor, is_acid: IsAcid, whole: Span) -> None:
    refuse_of_others(c, is_acid)


def _alter(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    if c.peek().upper == "VIEW":
        return alter_view(c, is_acid)
    if c.peek().upper in DATABASE_WORDS:
        return alter_database(c)
    return alter_table(c, is_acid) if c.peek().upper == "TABLE" else None


def _describe(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    what = c.peek()
    is_query = what.upper in ("QUERY", *QUERY_STARTS) and what.upper != "TABLE"
    if is_query and c.peek(2).kind is not Kind.END:
        return SparkStatement(whole, Reads.QUERY)
    if what.upper in DATABASE_WORDS and c.peek(2).is_name:
        return describe_database(c)
    if what.upper in ("FUNCTION", "CATALOG", "PROCEDURE") and c.peek(2).is_name:
        return SparkStatement(whole, Reads.NOTHING)
    return describe(c, is_acid) or SparkStatement(whole, Reads.NOTHING)


def _cache(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement:
    """Parse ``CACHE [LAZY] TABLE t [OPTIONS …] [AS] query``.

    Without a query the statement caches a table, which must not be an ACID table.
    """
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
    return load_data(c, is_acid)


def _show(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return show(c, is_acid)


def _auto_cdc(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return auto_cdc(c, is_acid)


def _truncate(c: Cursor, is_acid: IsAcid, whole: Span) -> Statement | None:
    return truncate_table(c, is_acid)


def _plain(read: Callable[[Cursor, IsAcid, Span | None], Statement | None]) -> _Reader:
    return lambda c, is_acid, whole: read(c, is_acid, None)


def _alone(read: Callable[[Cursor], Statement | None]) -> _Reader:
    return lambda c, is_acid, whole: read(c)


_Reader = Callable[[Cursor, IsAcid, Span], Statement | None]
_WITH_READERS: dict[str, Callable[[Cursor, IsAcid, Span | None], Statement | None]] = {
    "INSERT": with_returning(insert),
    "UPDATE": with_returning(update),
    "DELETE": with_returning(delete),
    "MERGE": with_returning(merge),
    "FROM": with_returning(multi_insert),
}
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(FIRST_WORDS, _of_others),
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
    "USE": _alone(use),
    "CACHE": _cache,
    "EXPORT": _export,
    "IMPORT": _import,
    "LOAD": _load,
    "AUTO": _auto_cdc,
    "APPLY": _auto_cdc,
    "BEGIN": _alone(transaction.begin),
    "START": _alone(transaction.start),
    "COMMIT": _alone(transaction.commit),
    "ROLLBACK": _alone(transaction.rollback),
    "SAVEPOINT": _alone(transaction.savepoint),
    "RELEASE": _alone(transaction.release),
    "LOCK": transaction.lock,
    "UNLOCK": transaction.unlock,
    "ABORT": _alone(transaction.abort),
    "RESTORE": restore,
    "REVERT": revert,
    "ANALYZE": analyze,
}
