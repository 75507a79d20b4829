"""Shows Spark's syntax errors at whole words of the user's text, with advice.

Spark's parser tells one offset, at which it cannot go on. The fault is often a misspelt word there
or before. A first word that nobody knows is misspelt, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pyspark.errors import ParseException

from acidsql.errors import SqlError, SqlSyntaxError, UnsupportedError
from acidsql.plan.analysis.lower import error_offset, message_without_sql
from acidsql.sql.parser import FIRST_WORDS
from acidsql.sql.text.misspelt import advice_at, meant_word
from acidsql.sql.text.tokens import Span, Token, TokenKind, tokenize, words

_SYNTAX = SqlSyntaxError.condition
_FROM_SPARK = "Syntax error at or near"
_TABLE_OPERATION = f"{UnsupportedError.condition}.TABLE_OPERATION"
# Words that begin statements of Spark's alone.
_SPARKS_FIRST_WORDS = words(
    "ANALYZE COMMENT REFRESH UNCACHE CLEAR ADD LIST SET RESET CALL EXECUTE DECLARE SELECT VALUES "
    "TABLE MAP REDUCE DFS GRANT REVOKE"
)
_MEANT_FIRST_WORDS = FIRST_WORDS | _SPARKS_FIRST_WORDS


@contextmanager
def explained_syntax_errors(text: str) -> Iterator[None]:
    """Raise Spark's syntax errors in the block as SqlSyntaxErrors that show a whole word of the
    statement, with advice if it is known what is wrong. Other errors pass.

    Args:
        text: The statement. An error of ours has the text that it shows.
    """
    try:
        yield
    except (ParseException, SqlSyntaxError, UnsupportedError) as error:
        explained = None
        # The error itself must come through.
        with suppress(Exception):
            explained = _first_word_error(error, text) or _explained_error(error, text)
        if explained is None:
            raise
        raise explained from None


def _first_word_error(error: Exception, text: str) -> SqlSyntaxError | None:
    """Return the error that the first word of a statement, or the first one behind EXPLAIN, is
    misspelt; None if it is not, or if the error is another one. Spark does not know the word, or
    acidsql has refused a statement with it because it names an ACID table."""
    if isinstance(error, SqlError) and error.condition != _TABLE_OPERATION:
        return None
    tokens = tokenize(text)
    first = tokens[1] if tokens[0].upper == "EXPLAIN" and len(tokens) > 1 else tokens[0]
    meant = meant_word(first.upper, _MEANT_FIRST_WORDS) if first.kind is TokenKind.WORD else None
    if meant is None:
        return None
    return SqlSyntaxError(
        f"There is no statement {first.upper}. Did you mean {meant}?", text, first.start, first.end
    )


def _explained_error(error: Exception, text: str) -> SqlSyntaxError | None:
    """Return a SqlSyntaxError for Spark's syntax error, or for one that was made of Spark's; None
    for any other error."""
    if isinstance(error, ParseException):
        start = error_offset(error, text)
        if error.getCondition() != _SYNTAX or start is None:
            return None
        message = message_without_sql(error)
    elif isinstance(error, SqlSyntaxError) and error.words.startswith(_FROM_SPARK):
        text, start, message = error.text or text, error.start, error.words
    else:
        return None
    tokens = tokenize(text)
    index = _index_at(tokens, start)
    span = tokens[index].span if index < len(tokens) else Span(start, start)
    advice = advice_at(tokens, index)
    if advice is not None:
        span, message = advice.span, f"{message} {advice.sentence}"
    return SqlSyntaxError(message, text, span.start, span.end)


def _index_at(tokens: Sequence[Token], offset: int) -> int:
    """Return the index of the token that holds an offset, or of the first one behind it; the number
    of tokens if there is none."""
    return next((index for index, token in enumerate(tokens) if offset < token.end), len(tokens))
