"""Parses ``table_changes('t', start[, end])`` in FROM, as Delta Lake has it."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.errors import SqlSyntaxError
from acidsql.sql.text.given_names import table_parts
from acidsql.sql.text.tokens import Span, Token, TokenKind, tokenize

TABLE_CHANGES = "TABLE_CHANGES"


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The call.

    Attributes:
        name: The table's name, as the string has it.
        name_span: The place of the string.
        start: The place of the first version or time.
        end: The place of the last one; None: until now.
    """

    name: str
    name_span: Span
    start: Span
    end: Span | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the table's name. Raises CatalogError if it is no name of a table."""
        return table_parts(self.name)


def parse_table_changes(text: str, span: Span) -> TableChanges:
    """Parse the call ``table_changes('t', start[, end])`` at a place that a scan has found. The
    bounds stay places in the text, unread, and the end is None without one.

    Raises:
        SqlSyntaxError: The table is not given as a string, or the number of arguments is wrong.
    """
    tokens = tokenize(text, span)
    arguments = _split(tokens[2:-1])
    spans = [Span(argument[0].start, argument[-1].end) for argument in arguments if argument]
    if len(spans) not in (2, 3) or len(spans) != len(arguments):
        raise SqlSyntaxError(
            "Expected table_changes('table', start[, end]): start and end are versions, as "
            "DESCRIBE HISTORY shows them, or times.",
            text, span.start, span.end,
        )  # fmt: skip
    (name, *more) = arguments[0]
    if more or name.kind is not TokenKind.STRING:
        raise SqlSyntaxError(
            "Expected the name of a table, as a string.", text, spans[0].start, spans[0].end
        )
    return TableChanges(name.value, spans[0], spans[1], spans[2] if len(spans) > 2 else None)


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens between the commas that are in no bracket: one list for each argument, and
    one empty list without tokens."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in "([{") - (token.text in ")]}")
        if token.text == "," and token.kind is TokenKind.SYMBOL and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
