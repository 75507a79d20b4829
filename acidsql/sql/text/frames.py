"""DataFrames that a statement names: ``{name}`` stands where a query names a table.

The words are those of ``spark.sql("SELECT * FROM {df}", df=df)``. The runner gives each DataFrame a
temporary view, and the view's name is an argument of the statement.
"""

from __future__ import annotations

from collections.abc import Collection

from acidsql.errors import AnalysisError
from acidsql.sql.text.tokens import Span, Token, TokenKind, tokenize

_ARGUMENT = "__acidsql_frame_"


def is_frame(parts: tuple[str, ...]) -> bool:
    """Whether a name is that of a DataFrame: ``{name}``."""
    return parts[0].startswith("{")


def frame_name(parts: tuple[str, ...]) -> str:
    """Return the last part of a relation's name, without a DataFrame's braces: ``t`` for ``db.t``,
    ``df`` for ``{df}``. A relation without an alias has this as its alias."""
    return parts[0][1:-1] if is_frame(parts) else parts[-1]


def frame_argument(name: str) -> str:
    """Return the name of the statement's argument for the DataFrame ``name``. The argument's value
    is the name of the view over the DataFrame.

    ``name`` is in the result as hexadecimal digits, because Spark takes ASCII letters only.
    """
    return f"{_ARGUMENT}{name.encode().hex()}"


def frame_sql(text: str, span: Span) -> str:
    """Return the SQL ``IDENTIFIER(:argument)``, which reads the DataFrame that is named, with its
    braces, at ``span``."""
    return f"IDENTIFIER(:{frame_argument(span.slice(text)[1:-1])})"


def frame_tokens(text: str, *, double_quoted: bool) -> list[Token]:
    """Return the tokens ``{name}`` of a statement, which stand for DataFrames, in order. Raise
    SqlSyntaxError if the text, with a ``{`` in it, cannot be cut into tokens."""
    if "{" not in text:
        return []
    tokens = tokenize(text, double_quoted_identifiers=double_quoted)
    return [token for token in tokens if token.kind is TokenKind.FRAME]


def need_frames(text: str, argument_names: Collection[str], *, double_quoted: bool) -> None:
    """Check that each DataFrame which a statement names is among the arguments.

    Raises:
        AnalysisError: The arguments have no DataFrame of that name.
        SqlSyntaxError: The text cannot be cut into tokens.
    """
    for token in frame_tokens(text, double_quoted=double_quoted):
        if frame_argument(name := token.text[1:-1]) not in argument_names:
            raise AnalysisError(
                f"There is no DataFrame '{name}'. Pass it by its name: acid.sql(…, {name}=…).",
                text, token.start, token.end,
                condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
            )  # fmt: skip


def need_relations(
    text: str, relation_places: Collection[int] = (), *, double_quoted: bool = False
) -> None:
    """Check that a statement names DataFrames only where a query reads a table.

    Args:
        text: The user's statement.
        relation_places: The offsets in the text where queries read DataFrames; empty: nowhere.
        double_quoted: ``"…"`` is a name in this session.

    Raises:
        AnalysisError: A DataFrame is named at another place.
        SqlSyntaxError: The text cannot be cut into tokens.
    """
    for token in frame_tokens(text, double_quoted=double_quoted):
        if token.start not in relation_places:
            raise AnalysisError(
                "A DataFrame can only be named where a query reads a table, as in FROM {df}, JOIN "
                "{df} or USING {df}.",
                text, token.start, token.end,
                condition="UNSUPPORTED_FEATURE.DATAFRAME", sqlstate="0A000",
            )  # fmt: skip
