"""Parses a text to a statement of ours or to a ``SparkStatement``.

The first words decide whose statement it is. A statement that changes or describes an ACID table,
or controls transactions, is ours. Our grammar (``grammar/dml.ebnf``) reads it to the last token,
and anything unknown is an error with a caret. Every other statement is passed on to Spark.

All readers of statements have the same three parameters, though some need fewer: the cursor,
whether a name is an ACID table's, and the place of the whole statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count, takewhile

from acidsql.errors import SqlError, SqlSyntaxError, UnsupportedError
from acidsql.sql.commands import transaction
from acidsql.sql.commands.create_table import parse_create_table
from acidsql.sql.commands.databases import (
    DATABASE_WORDS,
    parse_alter_database,
    parse_create_database,
    parse_describe_database,
    parse_drop_database,
    parse_use,
)
from acidsql.sql.commands.options import SettingName, parse_set_or_reset
from acidsql.sql.commands.show import parse_describe, parse_show
from acidsql.sql.commands.statistics import parse_analyze
from acidsql.sql.commands.tables import parse_alter_table, parse_drop_table, parse_truncate_table
from acidsql.sql.commands.undo import parse_restore, parse_revert
from acidsql.sql.commands.views import parse_alter_view, parse_create_view, parse_drop_view
from acidsql.sql.grammar.cdc import parse_auto_cdc
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.effects import effect_and_name, effect_of_word
from acidsql.sql.grammar.insert import QUERY_STARTS, IsOurs, parse_insert, parse_multi_insert
from acidsql.sql.grammar.load import parse_load_data
from acidsql.sql.grammar.modify import parse_delete, parse_merge, parse_update
from acidsql.sql.grammar.plain_values import LiteralRules, plain_insert
from acidsql.sql.grammar.refusals import (
    refuse_export,
    refuse_foreign_statement,
    refuse_import,
)
from acidsql.sql.grammar.returning import with_returning
from acidsql.sql.parsed.statements import (
    AutoCdc,
    Dml,
    Explain,
    Merge,
    Reads,
    SparkStatement,
    Statement,
    Undo,
)
from acidsql.sql.queries.references import declared_names
from acidsql.sql.text.lookahead import is_cte
from acidsql.sql.text.tokens import Span, Token, TokenKind, tokenize, words

__all__ = ["FIRST_WORDS", "IsOurs", "LiteralRules", "SettingName", "parse"]

# The text after these words is not SQL (`SET x=it's`, `ADD JAR /a'b`) and is not cut into tokens.
_RAW_WORDS = ("SET", "RESET", "ADD", "LIST", "DFS")
_RAW = re.compile(rf"\s*({'|'.join(_RAW_WORDS)})\b", re.IGNORECASE)


def parse(
    text: str,
    *,
    is_ours: IsOurs,
    setting_name: SettingName = lambda name: None,
    double_quoted_identifiers: bool = False,
    plain: LiteralRules | None = None,
) -> Statement:
    """Parse one statement.

    Args:
        text: The statement, with at most one ``;`` at its end.
        is_ours: Whether a name (its parts unquoted, perhaps qualified) is that of an ACID table, or
            of a view of ACID tables.
        setting_name: Returns the setting of acidsql's that a name means, or None. SET of any other
            name is Spark's.
        double_quoted_identifiers: Whether ``"…"`` is a name; otherwise it is a string.
        plain: If given, an INSERT of plain literals gets a source of type ``Literals``, without
            being cut into tokens.

    Returns:
        The statement; a SparkStatement, with its effect, if Spark runs it. Names are not resolved,
        and expressions stay places in the text.

    Raises:
        SqlSyntaxError: A statement of ours does not parse, or the text contains no statement or
            more than one.
        AnalysisError: A statement of ours names a type, a state or a number of values that cannot
            be.
        UnsupportedError: The statement is known, but not supported.
    """
    literal_insert = None if plain is None else plain_insert(text, plain)
    if literal_insert is not None and is_ours(literal_insert.target.parts):
        return literal_insert
    try:
        tokens = tokenize(text, double_quoted_identifiers=double_quoted_identifiers)
    except SqlError:
        raw = _RAW.match(text)
        if raw is None:
            raise
        statement_span = Span(raw.start(1), len(text.rstrip().removesuffix(";").rstrip()))
        return _parse_raw(text, statement_span, raw[1].upper(), setting_name)
    tokens = _single_statement(text, tokens)
    if tokens[0].upper in _RAW_WORDS:
        return _parse_raw(
            text, Span(tokens[0].start, tokens[-1].end), tokens[0].upper, setting_name
        )
    c = Cursor(text, tokens)
    statement = _parse_statement(c, is_ours)
    if isinstance(statement, SparkStatement):
        c.index = 0
        effect, name = effect_and_name(c)
        return replace(statement, effect=effect, statement_name=name)
    return statement


def _parse_raw(text: str, statement_span: Span, word: str, setting_name: SettingName) -> Statement:
    """Parse SET, RESET, ADD, LIST or DFS (``word``), whose text is not SQL. Return a SetOption or
    ResetOption for a setting of acidsql's, or else a SparkStatement with Reads.NOTHING."""
    ours = parse_set_or_reset(text, statement_span, setting_name)
    return ours or SparkStatement(statement_span, Reads.NOTHING, effect_of_word(word), word)


def _single_statement(text: str, tokens: list[Token]) -> list[Token]:
    """Return the tokens without one trailing ``;``. Raise SqlSyntaxError for no statement or a
    second one, and UnsupportedError for a script (BEGIN … END) that has a ``;`` inside."""
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


def _parse_statement(c: Cursor, is_ours: IsOurs) -> Statement:
    """Parse all tokens that are left as one statement. Return a SparkStatement, unread, if Spark
    runs it: with Reads.QUERY if it is or may contain a query of ACID tables. Raise SqlSyntaxError
    if tokens are left over behind a statement of acidsql's."""
    start = c.index
    statement_span = Span(c.token.start, c.tokens[-1].end)
    refuse_foreign_statement(c, is_ours)
    c.index = start
    reader = _READERS.get(c.token.upper)
    if reader is None:
        return SparkStatement(statement_span, Reads.QUERY if _is_query(c) else Reads.NOTHING)
    statement = reader(c, is_ours, statement_span)
    if statement is not None:
        if not isinstance(statement, SparkStatement):
            c.expect_end()
        return statement
    c.index = start
    return SparkStatement(statement_span, _reads(c))


def _is_query(c: Cursor) -> bool:
    """Whether a word that begins a query, or ``(``, comes next."""
    return c.is_at_any(QUERY_STARTS)


def _reads(c: Cursor) -> Reads:
    """Return what a statement of Spark's reads whose first word acidsql's statements have, too:
    QUERY if it may contain a query of ACID tables (a query, INSERT, CREATE, REPLACE, CACHE,
    DESCRIBE), NOTHING otherwise."""
    if c.is_at_any(QUERY_STARTS) or c.is_at("INSERT"):
        return Reads.QUERY
    if (
        c.is_at("CREATE")
        or c.is_at("REPLACE")
        or c.is_at("CACHE")
        or c.is_at("DESCRIBE")
        or c.is_at("DESC")
    ):
        return Reads.QUERY
    return Reads.NOTHING


# ── the statements by their first word ───────────────────────────────────────────────────────


def _parse_with(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    """Parse ``WITH … INSERT|UPDATE|DELETE|MERGE|FROM``. Return None for a query, for a WITH clause
    that cannot be read, and for an INSERT into Spark's tables; for another change of these, return
    a SparkStatement that reads nothing. A MERGE takes the WITH clause into its source."""
    start = c.index
    if not c.skip_ctes():
        return None
    ctes = c.span_from(start)
    reader = _WITH_READERS.get(c.token.upper)
    if reader is None:
        return None
    clause = c.tokens[start : c.index]
    is_change = c.is_at_any(("UPDATE", "DELETE", "MERGE"))
    statement = reader(c, is_ours, ctes)
    if isinstance(statement, Merge):
        return _with_cte_as_source(statement, c.text, clause)
    if statement is None and is_change:
        return SparkStatement(statement_span, Reads.NOTHING)
    return statement


def _with_cte_as_source(merge: Merge, text: str, clause: list[Token]) -> Merge:
    """Return the MERGE; with ``source_name`` None if the WITH clause before it declares that name,
    because the source is then no table. ``clause``: the tokens of the WITH clause."""
    name = merge.source_name
    if name is not None and is_cte(name.parts, declared_names(text, clause)):
        return replace(merge, source_name=None)
    return merge


def _parse_explain(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement:
    """Parse ``EXPLAIN [mode] statement``: return an Explain of a statement of acidsql's, and a
    SparkStatement, with the inner statement's ``reads``, if Spark runs that. Its ``explained`` is
    the mode and the place of the inner statement if this is a query alone, and None for other
    statements and for EXPLAIN LOGICAL. EXPLAIN of transaction statements raises UnsupportedError;
    EXPLAIN EXPLAIN is a syntax error."""
    c.expect("EXPLAIN")
    mode = None
    if c.is_at_any(("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")):
        mode = c.take().upper
    elif c.is_at("CHANGES"):
        return _parse_explain_changes(c, is_ours)
    if c.is_at_end or c.is_at("EXPLAIN"):
        c.fail("Expected a statement to explain")
    if c.is_at_any(transaction.TRANSACTION_WORDS):
        c.refuse(f"EXPLAIN {c.token.upper} is not supported: it has no plan")
    only_a_query = mode != "LOGICAL" and _is_only_query(c)
    statement = _parse_statement(c, is_ours)
    if isinstance(statement, SparkStatement):
        explained = (mode, statement.span) if only_a_query else None
        return SparkStatement(statement_span, statement.reads, explained=explained)
    return Explain(mode, statement)


def _parse_explain_changes(c: Cursor, is_ours: IsOurs) -> Explain:
    """Parse ``CHANGES statement`` behind EXPLAIN, as an Explain with the mode CHANGES. Raise
    SqlSyntaxError if the statement changes no rows of an ACID table."""
    c.expect("CHANGES")
    first = c.token
    statement = None if c.is_at_end else _parse_statement(c, is_ours)
    if not isinstance(statement, Dml | AutoCdc | Undo):
        statement_names = "INSERT, UPDATE, DELETE, MERGE, AUTO CDC, RESTORE or REVERT"
        c.fail(f"Expected {statement_names} of ACID tables", first)
    return Explain("CHANGES", statement)


def _is_only_query(c: Cursor) -> bool:
    """Whether a query follows that can contain no INSERT. False for ``FROM …``, and for WITH before
    anything but SELECT, VALUES, TABLE or a bracket. The cursor does not move."""
    start = c.index
    if c.is_at("WITH"):
        c.skip_ctes()
    is_plain_query = c.is_at_any(("SELECT", "VALUES", "TABLE", "("))
    c.index = start
    return is_plain_query


def _parse_create(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    """Parse CREATE of a database, or of a table or view that acidsql makes. Return a SparkStatement
    for any other object, and for tables and views of Spark's: its ``reads`` is QUERY for a
    temporary view and for a table (not for LIKE), else NOTHING. None is never returned."""
    if c.peek().upper in DATABASE_WORDS[:2] or c.peek().upper == "NAMESPACE":
        return parse_create_database(c)
    # peek returns the end of the text, which is no word, wherever the text has ended.
    following_words = (c.peek(n).upper for n in count(1))
    leading = list(takewhile(_CREATE_WORDS.__contains__, following_words))
    object_type = c.peek(1 + len(leading)).upper
    if object_type == "TABLE":
        return parse_create_table(c, is_ours, statement_span)
    temporary = bool({"TEMP", "TEMPORARY"} & set(leading))
    if object_type == "VIEW" and temporary:
        return SparkStatement(statement_span, Reads.QUERY)
    view = (
        parse_create_view(c, is_ours)
        if object_type == "VIEW" and leading in ([], ["OR", "REPLACE"])
        else None
    )
    return view or SparkStatement(statement_span, Reads.NOTHING)


_CREATE_WORDS = words("OR REPLACE GLOBAL TEMP TEMPORARY EXTERNAL MANAGED TRANSACTIONAL")


def _parse_drop(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    """Parse DROP of a database, view or table; return None if Spark runs it: the view or table is
    Spark's, or the object is another. Each DROP DATABASE is acidsql's. ``statement_span`` is not
    used: all statement parsers have it."""
    if c.peek().upper in DATABASE_WORDS:
        return parse_drop_database(c)
    if c.peek().upper == "VIEW":
        return parse_drop_view(c, is_ours)
    return parse_drop_table(c, is_ours) if c.peek().upper == "TABLE" else None


def _refuse_export(c: Cursor, is_ours: IsOurs, statement_span: Span) -> None:
    """Refuse EXPORT of an ACID table; return None, as Spark's readers do, for any other EXPORT."""
    refuse_export(c, is_ours)


def _refuse_import(c: Cursor, is_ours: IsOurs, statement_span: Span) -> None:
    """Refuse Hive's IMPORT; return None for any other IMPORT."""
    refuse_import(c)


def _parse_alter(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    """Parse ALTER of a view, database or table; return None if Spark runs it: the view or table is
    Spark's, the object is another, or ALTER DATABASE does not SET or UNSET properties. The
    parameter ``statement_span`` is not used: all statement parsers have it."""
    if c.peek().upper == "VIEW":
        return parse_alter_view(c, is_ours)
    if c.peek().upper in DATABASE_WORDS:
        return parse_alter_database(c)
    return parse_alter_table(c, is_ours) if c.peek().upper == "TABLE" else None


def _parse_describe(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    """Parse DESCRIBE of a database or of an ACID table (or a view of some). Return a SparkStatement
    that reads a query for DESCRIBE of a query, and one that reads nothing for a function, a
    catalog, a procedure, or a table of Spark's. None is never returned."""
    following = c.peek()
    is_query = following.upper in ("QUERY", *QUERY_STARTS) and following.upper != "TABLE"
    if is_query and c.peek(2).kind is not TokenKind.END:
        return SparkStatement(statement_span, Reads.QUERY)
    if following.upper in DATABASE_WORDS and c.peek(2).is_name:
        return parse_describe_database(c)
    if following.upper in ("FUNCTION", "CATALOG", "PROCEDURE") and c.peek(2).is_name:
        return SparkStatement(statement_span, Reads.NOTHING)
    return parse_describe(c, is_ours) or SparkStatement(statement_span, Reads.NOTHING)


def _parse_cache(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement:
    """Parse ``CACHE [LAZY] TABLE t [OPTIONS …] [AS] query`` as a SparkStatement.

    Its ``reads`` is QUERY if a query comes there. Otherwise it is NOTHING, so the statement is
    refused later if it names an ACID table.
    """
    c.take()
    c.accept("LAZY")
    if c.accept("TABLE"):
        c.take_name("the name of a table")
        if c.accept("OPTIONS") and c.is_at("("):
            c.skip_brackets()
        if c.accept("AS") or _is_query(c):
            return SparkStatement(statement_span, Reads.QUERY)
    return SparkStatement(statement_span, Reads.NOTHING)


def _parse_load(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    return parse_load_data(c, is_ours)


def _parse_show(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    return parse_show(c, is_ours)


def _parse_auto_cdc(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    return parse_auto_cdc(c, is_ours)


def _parse_truncate(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Statement | None:
    return parse_truncate_table(c, is_ours)


def _without_ctes(read: Callable[[Cursor, IsOurs, Span | None], Statement | None]) -> _Reader:
    """Return a reader that calls ``read`` with None for the WITH clause."""
    return lambda c, is_ours, statement_span: read(c, is_ours, None)


def _without_catalog(read: Callable[[Cursor], Statement | None]) -> _Reader:
    """Return a reader that calls ``read`` with the cursor alone."""
    return lambda c, is_ours, statement_span: read(c)


_Reader = Callable[[Cursor, IsOurs, Span], Statement | None]
_WITH_READERS: dict[str, Callable[[Cursor, IsOurs, Span | None], Statement | None]] = {
    "INSERT": with_returning(parse_insert),
    "UPDATE": with_returning(parse_update),
    "DELETE": with_returning(parse_delete),
    "MERGE": with_returning(parse_merge),
    "FROM": with_returning(parse_multi_insert),
}
_READERS: dict[str, _Reader] = {
    **{word: _without_ctes(read) for word, read in _WITH_READERS.items()},
    "WITH": _parse_with,
    "EXPLAIN": _parse_explain,
    "CREATE": _parse_create,
    "DROP": _parse_drop,
    "ALTER": _parse_alter,
    "TRUNCATE": _parse_truncate,
    "SHOW": _parse_show,
    "DESCRIBE": _parse_describe,
    "DESC": _parse_describe,
    "USE": _without_catalog(parse_use),
    "CACHE": _parse_cache,
    "EXPORT": _refuse_export,
    "IMPORT": _refuse_import,
    "LOAD": _parse_load,
    "AUTO": _parse_auto_cdc,
    "APPLY": _parse_auto_cdc,
    "BEGIN": _without_catalog(transaction.parse_begin),
    "START": _without_catalog(transaction.parse_start),
    "COMMIT": _without_catalog(transaction.parse_commit),
    "ROLLBACK": _without_catalog(transaction.parse_rollback),
    "SAVEPOINT": _without_catalog(transaction.parse_savepoint),
    "RELEASE": _without_catalog(transaction.parse_release),
    "LOCK": transaction.parse_lock,
    "UNLOCK": transaction.parse_unlock,
    "ABORT": _without_catalog(transaction.parse_abort),
    "RESTORE": parse_restore,
    "REVERT": parse_revert,
    "ANALYZE": parse_analyze,
}
FIRST_WORDS = frozenset(_READERS)  # of the statements that acidsql knows
