"""Which keyword a misspelt word is meant to be, and what else may be wrong at a place in a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from acidsql.sql.text.tokens import Span, Token, TokenKind, words

# The words of statements and queries at which users go wrong; not all keywords of Spark's.
_KEYWORDS = words(
    "SELECT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET JOIN INNER LEFT RIGHT FULL OUTER CROSS ON "
    "USING UNION INTERSECT EXCEPT VALUES INTO SET TABLE TABLES VIEW VIEWS DATABASE DATABASES "
    "SCHEMA SCHEMAS FUNCTION FUNCTIONS COLUMN COLUMNS PARTITION PARTITIONS PARTITIONED CLUSTERED "
    "BUCKETS STORED LOCATION COMMENT TBLPROPERTIES EXISTS TRANSACTIONS COMPACTIONS LOCKS STREAMS "
    "BETWEEN DISTINCT WINDOW LATERAL CASE WHEN THEN ELSE INSERT UPDATE DELETE MERGE CREATE DROP "
    "ALTER SHOW DESCRIBE EXPLAIN TRUNCATE REPLACE OVERWRITE RENAME COLUMNS CONSTRAINT DEFAULT "
    "VERSION TIMESTAMP RETURNING"
)
_CLAUSES = words("FROM WHERE GROUP HAVING ORDER LIMIT SET WHEN")
_BEFORE_OBJECTS = words("SHOW CREATE DROP ALTER DESCRIBE DESC TRUNCATE")
_LONG = 5  # letters
_OPERANDS = (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING, TokenKind.NUMBER)
# Words that stand before or behind an operand.
_NO_OPERANDS = _KEYWORDS | words(
    "AND OR NOT IN IS LIKE RLIKE ILIKE REGEXP ESCAPE AS BY ASC DESC NULLS FIRST LAST END DIV WITH "
    "OVER ANY ALL SOME NULL TRUE FALSE INTERVAL DATE OF MATCHED"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """What is probably wrong in a text: a sentence, and the place that it is about."""

    sentence: str
    span: Span


def meant_word(word: str, known_words: Iterable[str]) -> str | None:
    """Return the known word that a word is meant to be; None if it is one of them, or like none.

    A word is like another one if a letter is missing, added or another one, or two neighbours are
    exchanged; if both words have five or more letters, twice. A keyword is not misspelt. All words
    are in upper case.
    """
    candidates = sorted(set(known_words))
    if word in candidates or word in _NO_OPERANDS or len(word) < 2:
        return None
    distances = {
        known_word: _distance(word, known_word)
        for known_word in candidates
        if abs(len(word) - len(known_word)) <= 2
        and (len(known_word) > 2 or len(word) == len(known_word))
    }
    nearest = min(
        distances,
        key=lambda known_word: (
            distances[known_word],
            -SequenceMatcher(None, word, known_word).ratio(),
        ),
        default=None,
    )
    if nearest is None:
        return None
    most = 2 if min(len(word), len(nearest)) >= _LONG else 1
    return nearest if distances[nearest] <= most else None


def advice_at(tokens: Sequence[Token], index: int) -> Advice | None:
    """Return advice about a text in which Spark does not expect the token at ``index``; None if
    there is nothing to advise. An index behind the last token is the end of the text."""
    return (
        _advice_on_word(tokens, index)
        or _advice_on_dialect(tokens, index)
        or _advice_on_comma(tokens, index)
    )


def _advice_on_word(tokens: Sequence[Token], index: int) -> Advice | None:
    """Return advice if the token, the one before it, or the word behind CREATE and the like is a
    misspelt keyword: Spark takes such a word for a name, and fails later."""
    is_of_object = tokens[0].upper in _BEFORE_OBJECTS
    for at in dict.fromkeys((index, index - 1, 1 if is_of_object else index)):
        if not 0 <= at < len(tokens) or at > index or tokens[at].kind is not TokenKind.WORD:
            continue
        is_part = "." in (tokens[at - 1].text if at else "", _text_at(tokens, at + 1))
        keyword = None if is_part else meant_word(tokens[at].upper, _KEYWORDS)
        if keyword is not None:
            return Advice(f"Did you mean {keyword}?", tokens[at].span)
    return None


def _advice_on_dialect(tokens: Sequence[Token], index: int) -> Advice | None:
    """Return advice if the token begins, or ends, something that only other systems have."""
    here = tokens[index] if index < len(tokens) else None
    before = tokens[index - 1] if index > 0 else None
    if here is None:
        return None
    if here.text.startswith("@"):
        sentence = "An older version is read by … VERSION AS OF n or … TIMESTAMP AS OF '…'."
        return Advice(sentence, here.span)
    if before is not None and before.upper == "TOP" and here.kind is TokenKind.NUMBER:
        return Advice("Write LIMIT n at the end of the query.", before.span)
    if here.upper == "ON" and _text_at(tokens, index + 1).upper() in ("CONFLICT", "DUPLICATE"):
        return Advice("MERGE INTO … updates existing rows and inserts the others.", here.span)
    return None


def _advice_on_comma(tokens: Sequence[Token], index: int) -> Advice | None:
    """Return advice if two operands follow each other, as ``1 b`` in ``a = 1 b = 2``; or if a comma
    stands before FROM or the like, which Spark takes for a name then."""
    for at in (index, index - 1):
        if 0 < at < len(tokens) and tokens[at].upper in _CLAUSES and tokens[at - 1].text == ",":
            sentence = f"Is the comma before {tokens[at].upper} one too many?"
            return Advice(sentence, tokens[at - 1].span)
    second = index - 1 if index < len(tokens) and tokens[index].text == "=" else index
    if not 0 < second < len(tokens):
        return None
    pair = tokens[second - 1], tokens[second]
    is_pair_of_operands = all(
        token.kind in _OPERANDS and token.upper not in _NO_OPERANDS for token in pair
    )
    if not is_pair_of_operands:
        return None
    sentence = f"Is a comma or an operator missing before {_quoted(pair[1].text)}?"
    return Advice(sentence, pair[1].span)


def _text_at(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if index < len(tokens) else ""


def _quoted(text: str) -> str:
    return text if text.startswith("'") else f"'{text}'"


def _distance(word: str, other: str) -> int:
    """Return the number of letters to add, to drop, to replace, or to exchange with their
    neighbours, that make one word of the other one."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other_letter in enumerate(other, 1):
            costs = [rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other_letter)]
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == other_letter:
                costs.append(rows[-2][j - 2] + 1)
            row.append(min(costs))
        rows.append(row)
    return rows[-1][-1]
