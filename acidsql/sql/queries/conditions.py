"""Finds facts about a condition from its tokens, such as equated columns.

The terms and comparisons that are found are certain; whatever is in doubt is left out. Only
``has_subquery``, ``may_correlate`` and ``mentioned_columns`` may find too much. The facts decide
which rewrite, lock or clause is allowed. Spark alone decides which rows satisfy the condition.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection
from itertools import pairwise, takewhile

from acidsql.acid.values.predicate import VALUES_MAX
from acidsql.errors import SqlSyntaxError
from acidsql.sql.text.tokens import Span, Token, TokenKind, tokenize, unwrap, words


def terms_and_equated_pairs(
    text: str, condition: Span
) -> list[tuple[Span, set[tuple[str, str]] | None]]:
    """Return the terms of a condition that AND joins at its top level, and which of them equate two
    columns.

    Args:
        text: The user's statement.
        condition: The condition's place in the statement.

    Returns:
        Each term's place, and for ``x.a = s.b`` the set of the two (qualifier, column) pairs in
        lower case, else None; None also for columns without a qualifier, and for a term in
        brackets. Empty if the top level has an OR or a CASE.
    """
    return [(place, _equated_pair(term)) for place, term in _placed_terms(text, condition)]


def terms_decided_by(
    text: str, condition: Span, columns: Collection[str], qualifiers: Collection[str]
) -> list[Span]:
    """Return the places of the terms of a condition, joined by AND at its top level, that name at
    least one of these columns and otherwise only plain operators, literals and parameters.

    Args:
        text: The user's statement.
        condition: The condition's place in the statement.
        columns: Names of columns, in lower case; in the term they need no qualifier.
        qualifiers: The qualifiers that these columns may have, in lower case.

    Returns:
        The terms' places. Terms with a function call, a subquery, another name, or a string with a
        word such as 'today' are left out; so are all of them if the condition has an OR or a CASE
        at its top level.
    """
    return [
        place
        for place, term in _placed_terms(text, condition)
        if _is_decided_by(term, columns, qualifiers)
    ]


def plain_comparisons(
    text: str, condition: Span, qualifiers: Collection[str], *, leading: bool = False
) -> list[tuple[str, str, list[str]]]:
    """Return the terms of a condition, joined by AND at its top level, that compare a name with
    literals.

    Args:
        text: The user's statement.
        condition: The condition's place in the statement.
        qualifiers: The qualifiers that the names may have, in lower case.
        leading: Only the terms before the first of another kind, for a place that may end behind
            the condition, as `where_at` gives it.

    Returns:
        For each the name in lower case without its qualifier, ``=``, ``<``, ``<=``, ``>``, ``>=``
        or ``in``, and the literals as text with quotes and sign: integers, ``'…'`` without escapes,
        and ``DATE '…'`` as ``date '…'``. BETWEEN gives two, ``>=`` and ``<=``; ``5 < a`` is ``a >
        5``. Other terms, and IN with more than VALUES_MAX values, are left out.
    """
    by_term = (_plain_comparison(term, qualifiers) for _, term in _placed_terms(text, condition))
    return [
        comparison
        for comparisons in (takewhile(bool, by_term) if leading else by_term)
        for comparison in comparisons
    ]


_CONDITION = re.compile(r"\b(where|on|using)\b", re.IGNORECASE)
# Spark reads DATE'today' when it parses a text, so a second reading may give another day.
_DAYS = "now|today|yesterday|tomorrow"
_TYPED_DAY = re.compile(
    rf"\b(?:date|timestamp(?:_ntz|_ltz)?)\s*['\"]\s*(?:{_DAYS})\b", re.IGNORECASE
)
_DAY = re.compile(rf"\b(?:{_DAYS})\b", re.IGNORECASE)


def has_lasting_conditions(query: str) -> bool:
    """Whether a query's text has a word WHERE, ON or USING, and no literal such as DATE'today',
    whose value depends on the day when Spark reads the text. Words in strings and comments count.
    Only such a query has conditions that Spark could push down now and that mean the same later."""
    return bool(_CONDITION.search(query)) and not _TYPED_DAY.search(query)


_CLAUSES = words(
    "GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE WINDOW LIMIT OFFSET UNION EXCEPT MINUS INTERSECT"
)


def where_at(text: str, start: int) -> Span:
    """Return the place in ``text`` of a WHERE's condition that begins at ``start``; clauses behind
    it may be in it.

    It ends with its query, or where a clause is certain: behind a literal or a bracket, because no
    operand can stand there. Elsewhere the word may be the name of a column.
    """
    depth, before = 0, None
    for token in tokenize(text, Span(start, len(text))):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth < 0:
            break
        ends = before is not None and (
            before.kind in (TokenKind.NUMBER, TokenKind.STRING) or before.text == ")"
        )
        if depth == 0 and ends and token.kind is TokenKind.WORD and token.upper in _CLAUSES:
            break
        before = token
    return Span(start, start if before is None else before.end)


# Without quotes they are constants or, if keywords are reserved, functions.
_NO_COLUMNS = words(
    "TRUE FALSE NULL CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER SESSION_USER USER"
)
_MIRRORED_OPERATORS = {"=": "=", "==": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS = {operator: operator for operator in _MIRRORED_OPERATORS.values()} | {"==": "="}
_PLAIN_LITERAL = re.compile(r"[0-9]{1,18}|'[^'\\\x00-\x1f\x7f\ud800-\udfff]*'", re.ASCII)


def _plain_comparison(
    term: list[Token], qualifiers: Collection[str]
) -> list[tuple[str, str, list[str]]]:
    """Return a term that compares one column with literals as a list of one (column in lower case,
    operator, literals); BETWEEN gives two of them. [] for any other term, and for IN with more than
    VALUES_MAX values. ``5 < a`` becomes ``a > 5``."""
    rest = deque(term)
    first = _take_literal(rest)
    if first is not None:
        turned = _MIRRORED_OPERATORS.get(rest.popleft().text) if rest else None
        name = _take_column(rest, qualifiers)
        return [(name, turned, [first])] if turned and name and not rest else []
    name = _take_column(rest, qualifiers)
    if name is None or not rest:
        return []
    word = rest.popleft()
    if word.upper == "BETWEEN":
        low, _, high = _take_literal(rest), rest and rest.popleft(), _take_literal(rest)
        if low is None or high is None or rest:
            return []
        return [(name, ">=", [low]), (name, "<=", [high])]
    if word.upper == "IN":
        values, before = [], [token.text for token in term if token.text in ("(", ",", ")")]
        while (
            rest
            and rest.popleft().text in ("(", ",")
            and (literal := _take_literal(rest)) is not None
        ):
            values.append(literal)
        plain = (
            0 < len(values) <= VALUES_MAX
            and not rest
            and before == ["(", *[","] * (len(values) - 1), ")"]
        )
        return [(name, "in", values)] if plain else []
    value, operator = _take_literal(rest), _OPERATORS.get(word.text)
    return [(name, operator, [value])] if operator and value is not None and not rest else []


def _take_column(term_tokens: deque[Token], qualifiers: Collection[str]) -> str | None:
    """Take a name, perhaps with one of ``qualifiers``, from the tokens and return it in lower case,
    without the qualifier. None, without taking any, if they begin otherwise, or with a constant as
    NULL or CURRENT_DATE."""
    if not term_tokens or not term_tokens[0].is_name or term_tokens[0].kind is TokenKind.FRAME:
        return None
    if term_tokens[0].upper in _NO_COLUMNS:
        return None
    name = term_tokens.popleft().value.lower()
    if len(term_tokens) > 1 and term_tokens[0].text == "." and name in qualifiers:
        term_tokens.popleft()
        name = term_tokens.popleft().value.lower()
    return name


def _take_literal(term_tokens: deque[Token]) -> str | None:
    """Take a plain literal from the tokens and return it as it is written: an integer of up to 18
    digits, perhaps with ``-``, a string in ``'…'`` without escapes, or ``DATE '…'``, which is
    returned as ``date '…'``. Return None if they begin otherwise; a ``-`` or DATE may be taken
    then."""
    before = ""
    if (
        len(term_tokens) > 1
        and term_tokens[0].text == "-"
        and term_tokens[1].kind is TokenKind.NUMBER
    ):
        before = term_tokens.popleft().text
    elif (
        len(term_tokens) > 1
        and term_tokens[0].upper == "DATE"
        and term_tokens[1].kind is TokenKind.STRING
    ):
        before = term_tokens.popleft().upper.lower() + " "
    if (
        term_tokens
        and term_tokens[0].kind in (TokenKind.NUMBER, TokenKind.STRING)
        and _PLAIN_LITERAL.fullmatch(term_tokens[0].text)
    ):
        return before + term_tokens.popleft().text
    return None


def mentioned_columns(text: str, condition: Span) -> set[tuple[str, ...]]:
    """Return the names in an expression that may be columns, in lower case: each a tuple of its
    qualifiers, the column and its fields. Names of functions are left out; keywords and the names
    of parameters are in the result."""
    names: set[tuple[str, ...]] = set()
    tokens = tokenize(text, condition)
    chain: list[str] = []
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.text == ".":
            continue
        if token.is_name:
            chain.append(token.value.lower())
        if following.text != "." and chain:
            if following.text != "(":
                names.add(tuple(chain))
            chain = []
    return names


_PLAIN_WORDS = words("AND OR NOT IN BETWEEN LIKE IS NULL TRUE FALSE")
_PLAIN_SYMBOLS = ("(", ")", ",", "=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "?", "-")


def _is_decided_by(
    term: list[Token], columns: Collection[str], qualifiers: Collection[str]
) -> bool:
    """Whether a term names at least one of ``columns``, and otherwise only plain literals,
    operators and parameters. A string with the word now, today, yesterday or tomorrow is no
    plain literal, because as a date it depends on the moment."""
    named = False
    rest = deque(term)
    while rest:
        token = rest.popleft()
        following = rest[0].text if rest else ""
        if token.kind is TokenKind.STRING and _DAY.search(token.text):
            return False  # as a date it depends on the moment
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER) or token.text in _PLAIN_SYMBOLS:
            continue
        if token.text == ":" and rest and rest[0].is_name:
            rest.popleft()  # a parameter
            continue
        if token.is_name and following == "." and token.value.lower() in qualifiers:
            rest.popleft()
            token = rest.popleft() if rest else token
            following = rest[0].text if rest else ""
        if token.is_name and token.value.lower() in columns and following not in (".", "(", "["):
            named = True
        elif token.upper in ("DATE", "TIMESTAMP") and rest and rest[0].kind is TokenKind.STRING:
            continue
        elif token.upper not in _PLAIN_WORDS:
            return False
    return named


def has_subquery(text: str, condition: Span) -> bool:
    """Whether a word SELECT or TABLE stands in a condition, or a bracket begins with FROM or
    VALUES: the sign of a subquery. A column called select or table counts, too."""
    tokens = tokenize(text, condition)
    return any(token.upper in ("SELECT", "TABLE") for token in tokens) or any(
        before.text == "(" and token.upper in ("FROM", "VALUES")
        for before, token in pairwise(tokens)
    )


_QUERIES = words("SELECT WITH FROM TABLE VALUES")
_QUERY = re.compile(rf"\b(?:{'|'.join(sorted(_QUERIES))})\b", re.IGNORECASE)


def may_correlate(query: str) -> bool:
    """Whether a query has a subquery that may name columns around it: a query in brackets that do
    not stand behind FROM, JOIN or AS. FROM may also be a part of an expression, and then does not
    excuse the query: ``IS DISTINCT FROM (…)``, ``trim('x' FROM (…))``."""
    are_queries, before = [True], ("", "")  # of the query's own level, and of each open bracket
    for token, following in pairwise(_up_to_last_query(query)):
        if token.text == "(":
            is_query = following.upper in _QUERIES
            is_from = before[1] == "FROM" and before[0] != "DISTINCT" and are_queries[-1]
            if is_query and not is_from and before[1] not in ("JOIN", "AS"):
                return True
            are_queries.append(is_query)
        elif token.text == ")" and len(are_queries) > 1:
            are_queries.pop()
        before = (before[1], token.upper)
    return False


def _up_to_last_query(query: str) -> list[Token]:
    """Return the tokens up to the last word that may begin a query; [] without such a word, and all
    tokens if the text up to the word cannot be cut into tokens, because the word is in a string.
    Many rows may come behind VALUES."""
    end = max((match.end() for match in _QUERY.finditer(query)), default=0)
    try:
        return tokenize(query[:end])
    except SqlSyntaxError:  # the word is in a string
        return tokenize(query)


def window_function(text: str, expression: Span) -> Span | None:
    """Return the place of the first word OVER behind ``)`` or NULLS, outside of the expression's
    subqueries; None if there is none. It is a window function."""
    depth = 0
    subqueries: list[int] = []
    before = ""
    for token in tokenize(text, expression):
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            subqueries = [at for at in subqueries if at <= depth]
        elif token.upper in ("SELECT", "FROM", "WITH") and before == "(":
            subqueries.append(depth)
        elif token.upper == "OVER" and before in (")", "NULLS") and not subqueries:
            return token.span
        before = token.upper if token.kind is TokenKind.WORD else token.text
    return None


def _placed_terms(text: str, condition: Span) -> list[tuple[Span, list[Token]]]:
    """Return the terms that AND joins at the condition's top level, each with its place in the
    statement; brackets around the whole condition are dropped first. [] if it is not certain which
    these are."""
    return [
        (Span(term[0].start, term[-1].end), term)
        for term in _terms(unwrap(tokenize(text, condition)))
        if term
    ]


def _terms(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens of each term that AND joins outside brackets; the AND of BETWEEN does not.
    [] if it is not certain which these are: an OR or a CASE stands outside brackets."""
    terms: list[list[Token]] = [[]]
    depth, betweens, before = 0, 0, ""
    for token in tokens:
        # t.case is a column and :or a parameter.
        is_name = before in (".", ":") or token.kind is TokenKind.QUOTED
        word = "" if is_name else token.upper
        before = token.text
        depth += (word in ("(", "[")) - (word in (")", "]"))
        # A CASE contains conditions, and its END cannot be told from a column with the name end.
        if depth == 0 and word in ("OR", "CASE"):
            return []
        if depth == 0 and word == "AND" and not betweens:
            terms.append([])
            continue
        if depth == 0:  # the next AND after BETWEEN belongs to BETWEEN
            betweens += (word == "BETWEEN") - (word == "AND")
        terms[-1].append(token)
    return terms


def _equated_pair(term: list[Token]) -> set[tuple[str, str]] | None:
    """Return {(qualifier, column), (qualifier, column)} in lower case of a term ``a.x = b.y``; None
    for any other term."""
    if len(term) != 7 or [term[1].text, term[3].text, term[5].text] != [".", "=", "."]:
        return None
    names = [term[i] for i in (0, 2, 4, 6)]
    if any(token.kind not in (TokenKind.WORD, TokenKind.QUOTED) for token in names):
        return None
    left_name, right_name = [(names[i].value.lower(), names[i + 1].value.lower()) for i in (0, 2)]
    return {left_name, right_name}
