"""Cuts a text into tokens with sqlglot's tokenizer. Each token has its place in the user's text.

sqlglot is used as a lexer only, and without its keywords. Every word is a plain word here, and the
parser decides by the word's text, so that none of Spark's 444 keywords is reserved. sqlglot and
Spark read some comments, hints and dollar quotes differently. So the text between the tokens is
checked, and a statement is refused if this difference could change its meaning.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import ClassVar, NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from acidsql.errors import SqlSyntaxError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Span:
    """A slice of the user's text, in code points: ``start`` included, ``end`` excluded."""

    start: int
    end: int

    def slice(self, text: str) -> str:
        """Return the part of the text that the slice covers."""
        return text[self.start : self.end]


def words(text: str) -> frozenset[str]:
    """Return the set of the words in a text with blanks between them."""
    return frozenset(text.split())


class TokenKind(Enum):
    """The kinds of tokens that the parser tells apart."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT = "hint"
    FRAME = "DataFrame"  # {name}
    END = "end of the statement"


class Token(NamedTuple):
    """One token. ``upper`` is empty for quoted text, which is never a keyword.

    A token is immutable, because all readers of a text share its tokens. It is a tuple and not a
    dataclass, because a VALUES list may have a million tokens.
    """

    kind: TokenKind
    text: str
    upper: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The token's place in the text."""
        return Span(self.start, self.end)

    @property
    def is_name(self) -> bool:
        """Whether the token can be a name or a part of a name: a word of letters, digits and ``_``
        (no word is reserved), a quoted name that is not empty, or a DataFrame ``{name}``."""
        if self.kind is TokenKind.QUOTED:
            return len(self.text) > 2
        if self.kind is TokenKind.FRAME:
            return True
        return self.kind is TokenKind.WORD and _NAME.fullmatch(self.text) is not None

    @property
    def value(self) -> str:
        """A name without its quotes, the value of a string literal, or else the text.

        A DataFrame keeps its braces, so that no table has this name.
        """
        if self.kind is TokenKind.QUOTED:
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return string_value(self.text) if self.kind is TokenKind.STRING else self.text


_SYMBOLS = ("||", "==", "<=>", "<=", ">=", "!=", "<>", "->", "=>", "::", "|>")
_NAME = re.compile(r"\w+")
# ``1e-3OR``: a number and a keyword to Spark, one word to sqlglot.
_NUMBER_AND_WORD = re.compile(r"[\d.]+E[+-]", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)(E[+-]?\d+)?(L|S|Y|D|F|BD)?", re.IGNORECASE)


class _SparkTokenizer(Spark.Tokenizer):
    # sqlglot's compiled build allows subclasses of Tokenizer only.
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        k: v for k, v in Spark.Tokenizer.KEYWORDS.items() if k in _SYMBOLS
    }
    COMMANDS: ClassVar[set[TokenType]] = set()  # otherwise SHOW … would be one single token
    # Spark 4 reads '' inside '…' and "" inside "…" as a quote.
    STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
    STRING_ESCAPES_ALLOWED_IN_RAW_STRINGS = False
    # X'1F' becomes a word and a string, 1L one word. This is enough here and raises no errors.
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
    NUMERIC_LITERALS: ClassVar[dict[str, str]] = {}


class SqlText(str):
    """SQL text that is cut into tokens once, when ``tokenize`` first needs its tokens.

    It is a ``str``, so Spark and error messages take it as such. Whoever gets the text of a
    statement passes this object on, and not a copy. A ``SqlText`` of a ``SqlText`` is the same
    object. A slice is a plain ``str``, as is what ``copy`` and ``pickle`` make of it.
    """

    def __new__(cls, text: str) -> SqlText:
        """Return the text itself if it is a ``SqlText``; else one with the text's characters,
        whatever its ``__str__`` says, as that of an Enum."""
        return text if isinstance(text, cls) else super().__new__(cls, str.__str__(text))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens, ``"…"`` as strings. Raise the errors of ``tokenize``."""
        return cut_into_tokens(str(self))


def tokenize(
    text: str, span: Span | None = None, *, double_quoted_identifiers: bool = False
) -> list[Token]:
    """Return the tokens of a text, or of a slice of it, with hints, without comments and white
    space, as a new list. Their places are those in the whole text. A ``SqlText`` is cut into tokens
    once for all calls, another text by each call.

    Args:
        text: SQL as the user wrote it.
        span: The slice, which begins and ends between two tokens; None: the whole text.
        double_quoted_identifiers: Whether ``"…"`` is a name (Spark's
            ``spark.sql.ansi.doubleQuotedIdentifiers``) or a string.

    Raises:
        SqlSyntaxError: A string, a quoted name or a comment is not closed, a comment has a hint
            inside or is another that Spark would read differently, or a word follows a number
            without a blank.
        UnsupportedError: The text contains a dollar-quoted string.
    """
    tokens = SqlText(text).tokens
    if span is not None:
        first = bisect_left(tokens, span.start, key=lambda token: token.start)
        tokens = tokens[first : bisect_right(tokens, span.end, key=lambda token: token.end)]
    return [_as_name(token) for token in tokens] if double_quoted_identifiers else [*tokens]


def _as_name(token: Token) -> Token:
    """Return the token; a quoted name instead of a string ``"…"``."""
    is_double_quoted = token.kind is TokenKind.STRING and token.text[0] == '"'
    return token._replace(kind=TokenKind.QUOTED) if is_double_quoted else token


def cut_into_tokens(text: str) -> tuple[Token, ...]:
    """Cut a text into tokens by sqlglot's lexer, with hints and DataFrames ``{name}`` as one token
    each. Raise SqlSyntaxError for an open string or comment, for a number with an exponent and a
    word right behind it (``1e-3OR``), and for comments that Spark would read differently;
    UnsupportedError for ``$$…$$``."""
    try:
        raw = _SparkTokenizer(dialect="spark").tokenize(text)
    except TokenError:
        raise _unreadable_text_error(text) from None
    tokens = []
    for raw_token in raw:
        start, end = raw_token.start, raw_token.end + 1
        token = _make_token(raw_token.token_type, text[start:end], start, end)
        if token.kind is TokenKind.WORD and _NUMBER_AND_WORD.match(token.text):
            raise SqlSyntaxError(
                "A number ends before a word: put a blank there.", text, start, end
            )
        tokens.append(token)
    return tuple(_add_hints(text, _join_frames(text, tokens)))


def _join_frames(text: str, tokens: list[Token]) -> list[Token]:
    """Return the tokens with one FRAME token in the place of each ``{``, unquoted name and ``}``
    that have no blanks between them."""
    if "{" not in text:
        return tokens
    merged_tokens: list[Token] = []
    for token in tokens:
        merged_tokens.append(token)
        if token.text == "}" and _is_frame(merged_tokens[-3:]):
            start, end = merged_tokens[-3].start, token.end
            merged_tokens[-3:] = [Token(TokenKind.FRAME, text[start:end], "", start, end)]
    return merged_tokens


def _is_frame(last_tokens: list[Token]) -> bool:
    """Whether ``last_tokens`` are a ``{``, an unquoted name and a ``}``, with no blanks between
    them; False if there are fewer than three."""
    if len(last_tokens) < 3:
        return False
    opening, inner, closing = last_tokens
    is_close = opening.end == inner.start and inner.end == closing.start
    is_name = inner.kind is TokenKind.WORD and inner.text.isidentifier()
    return opening.text == "{" and is_close and is_name


_KINDS = {
    TokenType.STRING: TokenKind.STRING,
    TokenType.RAW_STRING: TokenKind.STRING,
    TokenType.NATIONAL_STRING: TokenKind.STRING,
    TokenType.IDENTIFIER: TokenKind.QUOTED,
    TokenType.NUMBER: TokenKind.NUMBER,
}


def _make_token(token_type: TokenType, text: str, start: int, end: int) -> Token:
    """Return the token of a piece of the text, whose kind follows from the lexer's type; a word
    such as ``1L`` is a number. ``upper`` is "" for strings, numbers and quoted names, and the text
    for symbols."""
    kind = _KINDS.get(token_type)
    if kind is not None:
        return Token(kind, text, "", start, end)
    if token_type is not TokenType.VAR:
        return Token(TokenKind.SYMBOL, text, text, start, end)
    if text[0].isdigit() and _NUMBER.fullmatch(text):
        return Token(TokenKind.NUMBER, text, "", start, end)
    return Token(TokenKind.WORD, text, text.upper(), start, end)


def split_statements(text: str) -> list[Span]:
    """Return the places of the statements of a notebook cell or a script, without the ``;`` between
    them. A place goes from the first token to the end of the last one, without comments around.

    A ``;`` in a string, a quoted name or a comment does not separate statements. Empty pieces (only
    white space and comments) are left out.

    Raises:
        SqlSyntaxError: The text cannot be cut into tokens.
    """
    pieces: list[Span] = []
    first: Token | None = None
    last: Token | None = None
    for token in tokenize(text):
        if token.upper != ";":
            first, last = first or token, token
        elif first is not None and last is not None:
            pieces.append(Span(first.start, last.end))
            first = last = None
    if first is not None and last is not None:
        pieces.append(Span(first.start, last.end))
    return pieces


def words_before(text: str, place: int, count: int) -> list[str]:
    """Return the last words or symbols before a place in a text, at most ``count`` of them, in
    their order and in upper case; quoted names, literals, hints and DataFrames as "". The place is
    between two tokens."""
    return [token.upper for token in tokenize(text, Span(0, place))[-count:]]


def unwrap(tokens: list[Token]) -> list[Token]:
    """Return the tokens of an expression without the brackets ``(…)`` around all of it, also if
    there are several pairs. ``()`` stays."""
    while len(tokens) > 2 and bracket_length(tokens) == len(tokens):
        tokens = tokens[1:-1]
    return tokens


def bracket_length(tokens: list[Token]) -> int:
    """Return how many tokens the bracket has that the first token, a ``(``, opens, with both
    brackets; 1 if the first token is no bracket, and 0 if its bracket is not closed or there is no
    token."""
    depth = 0
    for number, token in enumerate(tokens, 1):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return number
    return 0


_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def match_brackets(text: str, tokens: list[Token]) -> dict[int, int]:
    """Return the index of the closing bracket by the index of each opening bracket: ``(``, ``[``
    and ``{``.

    Raises:
        SqlSyntaxError: A bracket has no partner. The caret points to this bracket.
    """
    partner: dict[int, int] = {}
    open_: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.text in _CLOSERS:
            open_.append(index)
        elif token.text in ")]}":
            if not open_ or _CLOSERS[tokens[open_[-1]].text] != token.text:
                raise SqlSyntaxError(
                    f"'{token.text}' closes nothing.", text, token.start, token.end
                )
            partner[open_.pop()] = index
    if open_:
        token = tokens[open_[-1]]
        raise SqlSyntaxError(f"'{token.text}' is not closed.", text, token.start, token.end)
    return partner


# ── the value of a string literal ────────────────────────────────────────────────────────────

_ESCAPE = re.compile(
    r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([0-3][0-7]{2})|\\(.)|(''|\"\")", re.DOTALL
)
_ESCAPED_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def string_value(literal: str) -> str:
    """Return the value of a string literal, by Spark's rules: the text between the quotes, with
    escapes and doubled quotes replaced, but as it is in a raw string ``r'…'``. A backslash before
    ``%`` or ``_`` stays."""
    if literal[0] not in "'\"":
        return literal[2:-1]
    quote = literal[0]

    def replace(match: re.Match[str]) -> str:
        """Return the text that one escape, or two quotes in a row, stand for: one quote if they are
        of the literal's own kind; quotes of the other kind, and a code beyond Unicode, stay as they
        are."""
        four, eight, octal, escaped, doubled = match.groups()
        if doubled:
            return quote if doubled[0] == quote else doubled
        if escaped:
            # LIKE patterns keep \% and \_ with the backslash.
            return "\\" + escaped if escaped in "%_" else _ESCAPED_CHARACTERS.get(escaped, escaped)
        code = int(octal, 8) if octal else int(four or eight, 16)
        return chr(code) if code < 0x110000 else match.group()

    return _ESCAPE.sub(replace, literal[1:-1])


# ── the text between the tokens ──────────────────────────────────────────────────────────────

_QUOTED_TEXT = re.compile(
    r"[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`",
    re.DOTALL,
)
_LINE_COMMENT = re.compile(r"--[^\r\n]*")
_WORD_OR_SPACE = re.compile(r"\w+|\s+")
_COMMENT_EDGE = re.compile(r"/\*\+?|\*/")


def _unreadable_text_error(text: str) -> SqlSyntaxError:
    """Return the error for a text that the lexer cannot read, with the caret at the first string,
    quoted name or comment that is not closed; the whole text is marked if none is open."""
    at = 0
    while at < len(text):
        if text[at] in "'\"`" or (text[at] in "rR" and text[at + 1 : at + 2] in ("'", '"')):
            match = _QUOTED_TEXT.match(text, at)
            if match is None:
                at += text[at] in "rR"
                noun = "quoted name" if text[at] == "`" else "string"
                hint = " A quote in a string is written twice ('')." if text[at] == "'" else ""
                return SqlSyntaxError(f"This {noun} is not closed.{hint}", text, at, at + 1)
            at = match.end()
        elif text.startswith("/*", at):
            end = _comment_end(text, at)
            if end is None:
                return _open_comment_error(text, at)
            at = end
        elif text.startswith("--", at):
            at = len(text) if (line := _LINE_COMMENT.match(text, at)) is None else line.end()
        else:
            word = _WORD_OR_SPACE.match(text, at)
            at = word.end() if word and text[at] not in "rR" else at + 1
    return SqlSyntaxError("This text cannot be read as SQL.", text, 0, len(text))


def _open_comment_error(text: str, at: int) -> SqlSyntaxError:
    """Return the error for a comment that begins at ``at`` and is not closed."""
    return SqlSyntaxError("This comment is not closed.", text, at, at + 2)


def _comment_end(text: str, at: int) -> int | None:
    """Return the end of the comment ``/*`` at ``at``; None if it is not closed. Comments nest in
    Spark."""
    depth, edge = 0, _COMMENT_EDGE.match(text, at)
    while edge is not None:
        depth += -1 if edge.group() == "*/" else 1
        if depth == 0:
            return edge.end()
        edge = _COMMENT_EDGE.search(text, edge.end())
    return None


def _add_hints(text: str, tokens: list[Token]) -> list[Token]:
    """Return the tokens with ``/*+ … */`` as tokens, too. Raise SqlSyntaxError for comments that
    Spark would read differently, and UnsupportedError for ``$$…$$``. A text without any mark of
    these is not read: its ``tokens`` are returned."""
    if not any(mark in text for mark in ("/*", "\\\n", "\\\r", "{#", "$$")):
        return tokens
    result: list[Token] = []
    at = 0
    for token in tokens:
        _read_gap(text, at, token.start, result)
        result.append(token)
        at = token.end
        if text.startswith("$$", token.start) and token.kind is TokenKind.SYMBOL:
            raise UnsupportedError(
                "Dollar-quoted strings are not supported: use '…'.", text, at - 1, at + 1
            )
    _read_gap(text, at, len(text), result)
    return result


def _read_gap(text: str, at: int, end: int, result: list[Token]) -> None:
    """Read the text between two tokens, from ``at`` to ``end``, and append its hints to ``result``.
    Raise SqlSyntaxError for anything but white space and comments, for an open comment, and for a
    hint inside a comment."""
    while at < end:
        if text.startswith("/*", at):
            close = _comment_end(text, at)
            if close is None or close > end:
                raise _open_comment_error(text, at)
            if text.startswith("/*+", at):
                result.append(Token(TokenKind.HINT, text[at:close], "", at, close))
            elif "/*+" in text[at + 2 : close]:
                raise SqlSyntaxError("A comment cannot hold a hint.", text, at, at + 2)
            at = close
        elif text.startswith("--", at):
            at = _line_comment_end(text, at)
        elif text[at].isspace():
            at += 1
        else:
            raise SqlSyntaxError(f"Unexpected '{text[at : at + 2]}'.", text, at, at + 2)


def _line_comment_end(text: str, at: int) -> int:
    """Return the end of the comment ``--`` at ``at``, before the line break. Raise SqlSyntaxError
    if a backslash ends its line and a line follows, because the comment goes on there for Spark."""
    match = _LINE_COMMENT.match(text, at)
    assert match is not None
    # For Spark this comment goes on in the next line. A person would not expect this.
    if match.group().endswith("\\") and match.end() < len(text):
        raise SqlSyntaxError(
            "A comment cannot be continued with a backslash.", text, match.end() - 1, match.end()
        )
    return match.end()
