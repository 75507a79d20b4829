"""What a condition says for certain, read from its tokens: used to allow, never to decide rows."""

from __future__ import annotations

from acidsql.sql.tokens import Kind, Span, Token, tokenize


def equated_columns(text: str, condition: Span) -> list[set[tuple[str, str]]]:
    """The pairs ``x.a = s.b`` that a condition demands, joined by AND at its top level.

    Args:
        text: The user's statement.
        condition: The condition's place in it.

    Returns:
        For each such term the two (qualifier, column) in lower case.
    """
    tokens = [token for token in tokenize(condition.of(text)) if token.kind is not Kind.END]
    while len(tokens) > 2 and _is_wrapped(tokens):
        tokens = tokens[1:-1]
    pairs = (_pair(term) for term in _terms(tokens))
    return [pair for pair in pairs if pair is not None]


def window_function(text: str, expression: Span) -> Span | None:
    """The first OVER of a window function that is not inside a subquery of the expression."""
    depth = 0
    subqueries: list[int] = []
    before = ""
    for token in tokenize(expression.of(text)):
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            subqueries = [at for at in subqueries if at <= depth]
        elif token.upper in ("SELECT", "FROM", "WITH") and before == "(":
            subqueries.append(depth)
        elif token.upper == "OVER" and before in (")", "NULLS") and not subqueries:
            return Span(expression.start + token.start, expression.start + token.end)
        before = token.upper if token.kind is Kind.WORD else token.text
    return None


def _terms(tokens: list[Token]) -> list[list[Token]]:
    terms: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper == "OR":
            return []
        if depth == 0 and token.upper == "AND":
            terms.append([])
        else:
            terms[-1].append(token)
    return terms


def _is_wrapped(tokens: list[Token]) -> bool:
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return number == len(tokens) - 1
    return False


def _pair(term: list[Token]) -> set[tuple[str, str]] | None:
    if len(term) != 7 or [term[1].text, term[3].text, term[5].text] != [".", "=", "."]:
        return None
    names = [term[i] for i in (0, 2, 4, 6)]
    if any(token.kind not in (Kind.WORD, Kind.QUOTED) for token in names):
        return None
    left, right = [(names[i].value.lower(), names[i + 1].value.lower()) for i in (0, 2)]
    return {left, right}
