"""A cursor over the tokens of a statement, with the operations that all parsers here use.

``is_at`` looks at the next tokens, ``accept`` takes them if they match, ``expect`` takes them or
raises an error. A word is compared by its upper-cased text. No word is reserved: each may be a
name. Expressions are not parsed. They are islands: runs of tokens with balanced brackets, which
end before a word that the statement's grammar allows next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from acidsql.errors import SqlSyntaxError, UnsupportedError
from acidsql.sql.parsed.statements import Name
from acidsql.sql.text.misspelt import meant_word
from acidsql.sql.text.tokens import Span, Token, TokenKind, match_brackets, words

# After these words an operand must follow, so the next word does not end an expression.
_OPERATORS = words(
    "AND OR NOT IN LIKE RLIKE ILIKE REGEXP BETWEEN IS DISTINCT ESCAPE DIV "
    "CASE WHEN THEN ELSE WHERE SET ON BY"
)
# A word between an operator and one of these is a column, so it does not end an expression.
_BINARY = words("= < > + - * / % . , ) ] <=> == <= >= != <> || | & ^ :: ; -> =>")

_INFIX = _BINARY - {")", "]"}


class Cursor:
    """The tokens of one statement, and the index of the next token.

    Args:
        text: The user's text.
        tokens: The text's tokens. Brackets that do not match raise SqlSyntaxError.

    Attributes:
        tokens: The tokens, and one END token behind them.
        index: The index of the next token.
        partner: The index of the closing bracket by the index of the opening one.
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.partner = match_brackets(text, tokens)
        end = tokens[-1].end if tokens else len(text)
        self._end = len(tokens)
        self.tokens = [*tokens, Token(TokenKind.END, "", "", end, end)]
        self.index = 0

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    @property
    def token(self) -> Token:
        """The next token, or END."""
        return self.tokens[self.index]

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are taken."""
        return self.index >= self._end

    def peek(self, ahead: int = 1) -> Token:
        """Return the token ``ahead`` places after the next one; END behind the last."""
        return self.tokens[min(self.index + ahead, self._end)]

    def is_at(self, *words: str) -> bool:
        """Whether the next tokens are these words or symbols."""
        return self.has_words_at(self.index, *words)

    def has_words_at(self, index: int, *words: str) -> bool:
        """Whether the tokens from ``index`` are these words or symbols."""
        tokens = self.tokens[index : index + len(words)]
        return [token.upper for token in tokens] == list(words)

    def is_at_any(self, words: Iterable[str]) -> bool:
        """Whether the next token is one of these words or symbols."""
        return self.token.upper in words and self.token.upper != ""

    def cut_before(self, index: int) -> Cursor:
        """Return a new cursor at the same place whose tokens end before the token at ``index``."""
        cursor = Cursor(self.text, self.tokens[:index])
        cursor.index = self.index
        return cursor

    # ── taking ───────────────────────────────────────────────────────────────────────────────

    def accept(self, *words: str) -> Token | None:
        """Take these words or symbols if all of them come next, and return the first token;
        otherwise return None, without moving."""
        if not self.is_at(*words):
            return None
        return self.take(len(words))

    def take(self, count: int = 1) -> Token:
        """Move past ``count`` tokens, but not past the end, and return the first of them."""
        token = self.token
        self.index = min(self.index + count, self._end)
        return token

    def expect(self, *words: str) -> Token:
        """Take these words and return the first token. Raise SqlSyntaxError, at the first other
        word, if they do not come next."""
        for offset, word in enumerate(words):
            if self.peek(offset).upper != word:
                self.index += offset
                self.fail(f"Expected {word}")
        return self.take(len(words))

    def take_name_part(self, noun: str = "a name") -> Token:
        """Take one part of a name, and return its token. Raise SqlSyntaxError ("Expected ``noun``")
        if no name comes next."""
        if not self.token.is_name:
            self.fail(f"Expected {noun}")
        return self.take()

    def take_name(self, noun: str = "a name") -> Name:
        """Take a name, which may be qualified, and return its parts without quotes and its place.
        ``IDENTIFIER(…)`` raises UnsupportedError, and anything else SqlSyntaxError ("Expected
        ``noun``")."""
        if self.is_at("IDENTIFIER", "("):
            self.refuse("IDENTIFIER(…) in the place of a name is not supported")
        first = last = self.take_name_part(noun)
        parts = [first.value]
        while self.accept("."):
            last = self.take_name_part("a name behind '.'")
            parts.append(last.value)
        return Name(tuple(parts), Span(first.start, last.end))

    def take_string(self, noun: str = "a string in quotes") -> str:
        """Take a string literal and return its value. Raise SqlSyntaxError ("Expected ``noun``")
        for any other token."""
        if self.token.kind is not TokenKind.STRING:
            self.fail(f"Expected {noun}")
        return self.take().value

    def take_number(self) -> int:
        """Take a whole number without a sign and return it. Raise SqlSyntaxError for any other
        token."""
        if not self.token.text.isascii() or not self.token.text.isdigit():
            self.fail("Expected a whole number")
        return int(self.take().text)

    def take_separator(self) -> bool:
        """Take the token after an item of a list in brackets: return True for ``,`` and False for
        ``)``; raise SqlSyntaxError for any other."""
        if self.accept(","):
            return True
        if not self.accept(")"):
            self.fail("Expected ',' or ')'")
        return False

    def expect_end(self, expected: str = "the end of the statement") -> None:
        """Raise SqlSyntaxError ("Expected ``expected``") unless all tokens are taken."""
        if not self.is_at_end:
            self.fail(f"Expected {expected}")

    def span_of_group(self) -> Span:
        """Return the span from an opening bracket, which must come next, to its closing bracket,
        without moving."""
        return Span(self.token.start, self.tokens[self.partner[self.index]].end)

    def skip_brackets(self) -> Span:
        """Take an opening bracket, which must come next, and all tokens up to its closing bracket.
        Return their span."""
        start = self.index
        self.index = self.partner[start] + 1
        return Span(self.tokens[start].start, self.tokens[self.index - 1].end)

    def span_from(self, index: int) -> Span:
        """Return the span from the token at ``index`` to the last taken token."""
        return Span(self.tokens[index].start, self.tokens[max(index, self.index - 1)].end)

    def take_rest(self) -> Span:
        """Take all tokens that are left, and return their span."""
        start = self.index
        self.index = self._end
        return Span(self.tokens[start].start, self.tokens[self._end].end)

    # ── failing ──────────────────────────────────────────────────────────────────────────────

    def fail(
        self, expected: str, token: Token | None = None, also_expected: Iterable[str] = ()
    ) -> NoReturn:
        """Raise a SqlSyntaxError: the text ``expected`` ("Expected …"), and the token that was
        found, which is the next one, or ``token``. If a word here, or the word before it, is a
        misspelt word of ``expected`` or of ``also_expected``, it is at the caret, and the error
        says what is meant."""
        words_here = [*re.findall(r"\b[A-Z]{2,}\b", expected), *also_expected]
        misspelt = None if token is not None else self._misspelt_word(words_here)
        hint = "" if misspelt is None else f" Did you mean {misspelt[1]}?"
        token = token or (self.token if misspelt is None else misspelt[0])
        token_text = (
            "the end of the statement" if token.kind is TokenKind.END else f"'{_short(token.text)}'"
        )
        raise SqlSyntaxError(
            f"{expected}, found {token_text}.{hint}", self.text, token.start, token.end
        )

    def _misspelt_word(self, expected_words: Sequence[str]) -> tuple[Token, str] | None:
        """Return a token that is one of these words, misspelt, and the word that is meant; None if
        there is none. Looked at are the next token and the one before it, which may be taken for an
        alias. At the end of the statement, they are all words beside one of the expected words: an
        expression may have taken them."""
        if self.is_at_end:
            indexes = [
                index
                for index in range(self._end)
                if self.tokens[index - 1 if index else 0].upper in expected_words
                or self.tokens[index + 1].upper in expected_words
            ]
            places = [self.index - 1, *reversed(indexes)]
        else:
            places = [self.index, self.index - 1]
        for index in places:
            token = self.tokens[index]
            is_word = token.kind is TokenKind.WORD and index >= 0
            meant = meant_word(token.upper, expected_words) if is_word else None
            if meant is not None and (index == self.index or len(meant) > 2):
                return token, meant
        return None

    def refuse(self, message: str, span: Span | None = None) -> NoReturn:
        """Raise an UnsupportedError with this message, in which the caller names what is not
        supported, and a dot after it. ``span``: the place of the caret; None: the next token."""
        span = span or self.token.span
        raise UnsupportedError(f"{message}.", self.text, span.start, span.end)

    # ── islands ──────────────────────────────────────────────────────────────────────────────

    def take_expression(
        self,
        stops: Iterable[str] = (),
        refused: Mapping[str, str] | None = None,
        noun: str = "an expression",
    ) -> Span:
        """Take an expression: all tokens up to one of ``stops`` outside brackets and CASE … END, or
        up to the end. Only its place is found: the expression is not read.

        Args:
            stops: Symbols, words, or pairs of words (``"WHEN MATCHED"``) that end the expression.
            refused: Words that end the expression in other SQL dialects, each with the error
                message that refuses it.
            noun: A name for the expression, for the error if the expression is missing.

        Raises:
            SqlSyntaxError: There is no token before the end or the stop.
            UnsupportedError: One of the ``refused`` words ends the expression.
        """
        start = self.index
        ends = tuple(tuple(stop.split()) for stop in stops)
        while not self.is_at_end:
            if self._is_at_end_of_expression(start, ends):
                break
            if refused and self.token.upper in refused and self._follows_operand(start):
                self.refuse(refused[self.token.upper])
            self._skip_token_or_group()
        if self.index == start:
            self.fail(f"Expected {noun}")
        return self.span_from(start)

    def skip_to(self, *stops: tuple[str, ...]) -> None:
        """Move to the first of ``stops`` outside brackets and CASE … END that does not stand behind
        a dot, or to the end. Each stop is a sequence of words."""
        while not self.is_at_end:
            if any(self.is_at(*stop) for stop in stops) and not self._is_after("."):
                return
            self._skip_token_or_group()

    def skip_ctes(self) -> bool:
        """Move past ``WITH [RECURSIVE] a [(…)] [MAX RECURSION LEVEL n] [AS] (…), …`` and return
        True. Return False, with the cursor somewhere inside, if the tokens behind WITH do not have
        this form. Raise SqlSyntaxError if the cursor is not at WITH."""
        self.expect("WITH")
        if self.is_at("RECURSIVE") and self.peek().is_name:
            self.take()
        while True:
            if not self.token.is_name:
                return False
            self.take()
            if self.is_at("("):
                next_word = self.tokens[self.partner[self.index] + 1].upper
                if next_word in ("AS", "(", "MAX"):
                    self.skip_brackets()
            if self.accept("MAX", "RECURSION", "LEVEL"):
                self.take()
            self.accept("AS")
            if not self.is_at("("):
                return False
            self.skip_brackets()
            if not self.accept(","):
                return True

    def _skip_token_or_group(self) -> None:
        """Move past the next token: past a whole bracket if one opens here, and past a whole CASE …
        END."""
        if self.index in self.partner:
            self.index = self.partner[self.index] + 1
        elif self.token.upper == "CASE" and (end := self._case_end()) is not None:
            self.index = end + 1
        else:
            self.index += 1

    def _is_after(self, symbol: str) -> bool:
        """Whether the last taken token is this symbol."""
        return self.index > 0 and self.tokens[self.index - 1].text == symbol

    def _is_at_end_of_expression(self, start: int, ends: tuple[tuple[str, ...], ...]) -> bool:
        """Whether the next token is one of ``ends`` and really ends the expression that begins at
        the index ``start``: it is no column or field of that name, and no FROM of IS DISTINCT FROM.
        """
        if not any(self.is_at(*end) for end in ends):
            return False
        if self.token.kind is TokenKind.SYMBOL:
            return True
        if self.is_at("FROM") and self.tokens[self.index - 1].upper == "DISTINCT":
            return False  # IS [NOT] DISTINCT FROM
        return not self._is_after(".") and not self._is_operand(start)

    def _is_operand(self, start: int) -> bool:
        """Whether the next token, a word that could end the expression, is a column of it (``where
        = 1``). So it is if an operator or the same word follows, and it is the expression's first
        token (at the index ``start``) or has an operator before it."""
        before = self.tokens[self.index - 1]
        if self.index > start and before.text not in _INFIX and before.upper not in _OPERATORS:
            return False
        following = self.peek()
        return following.upper in _BINARY or following.upper == self.token.upper

    def _follows_operand(self, start: int) -> bool:
        """Whether an operand of the expression that begins at the index ``start`` ends before the
        next token, so that the token is no operand itself."""
        if self.index == start or self._is_after("."):
            return False
        before = self.tokens[self.index - 1]
        if before.kind is TokenKind.SYMBOL:
            return before.text in (")", "]", "?", "*")
        # IS [NOT] DISTINCT FROM has an operator word before FROM, so this FROM is not refused.
        return before.upper not in _OPERATORS

    def _case_end(self) -> int | None:
        """Return the index of the END of the CASE at the cursor; None if ``case`` is a name here,
        or no END follows."""
        if self._is_after(".") or self.peek().upper in _BINARY - {"-", "+"}:
            return None
        depth, index = 1, self.index + 1
        while index < self._end:
            word = self.tokens[index].upper if self.tokens[index - 1].text != "." else ""
            if word == "CASE" and self.tokens[index + 1].upper not in _BINARY:
                depth += 1
            elif word == "END":
                depth -= 1
                if depth == 0:
                    return index
            elif word in (")", "]"):
                return None
            index = self.partner.get(index, index) + 1
        return None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
