"""Decisions about a place in a query's tokens that need only a few tokens after the place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from acidsql.sql.text.tokens import Span, Token, TokenKind, match_brackets, words

SET_OPERATORS = words("UNION EXCEPT INTERSECT MINUS SETMINUS")
JOIN_WORDS = words("INNER CROSS LEFT RIGHT FULL SEMI ANTI OUTER")
CLAUSES = words("WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY")
RELATION_ENDS = (
    SET_OPERATORS
    | JOIN_WORDS
    | CLAUSES
    | words(
        "JOIN NATURAL ON USING LATERAL PIVOT UNPIVOT TABLESAMPLE SELECT INSERT FOR MAP REDUCE WITH"
    )
)
QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
TIME_TRAVEL_WORDS = frozenset({"VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"})
# After an operand these words go on with the expression.
_EXPRESSION_WORDS = words("AND OR IS IN BETWEEN LIKE DIV COLLATE AT TO")
# A word before one of these is a column or a table, not the start of a query.
AFTER_NAME = words(". , ) = < > + / % <=> <= >= != <> || ; -> => ::")
INSERT_WORDS = frozenset({"INTO", "OVERWRITE", "WITH"})
INSERT_TARGET_WORDS = frozenset({"INTO", "OVERWRITE", "TABLE", "LOCAL", "DIRECTORY"})


def is_cte(parts: Sequence[str], visible: Collection[str]) -> bool:
    """Whether a relation's name means a common table expression, and so no DataFrame, no temporary
    view and no table. This is decided nowhere else; a name with a database is never a CTE's.

    ``visible``: the lower-cased names of the CTEs that are declared around the relation.
    """
    return len(parts) == 1 and parts[0].lower() in visible


@dataclass(slots=True)
class StarDraft:
    """A ``*`` that was found. ``kind`` is the name of a ``StarKind``."""

    span: Span
    qualifier: tuple[str, ...] | None
    kind: str
    excepted: Span | None = None


@dataclass(slots=True)
class BlockDraft:
    """A query block, while the scanner fills it."""

    parent: int | None
    mentions: set[str] = field(default_factory=set)
    stars: list[StarDraft] = field(default_factory=list)


@dataclass(slots=True)
class RelationDraft:
    """A relation, while the scanner fills it."""

    parts: tuple[str, ...]
    span: Span
    block: int
    alias_at: int | None
    alias: str | None = None
    alias_span: Span | None = None
    time_travel: Span | None = None
    sample: Span | None = None
    options: Span | None = None
    properties: Span | None = None


class Lookahead:
    """The tokens of a query, without hints and ``;``, and decisions that depend on the tokens
    alone.

    The methods take the index of a token. A text whose brackets do not match raises SqlSyntaxError
    at once.

    Attributes:
        text: The user's text.
        tokens: The tokens, and four END tokens behind them.
        size: The number of tokens without these.
        partner: The index of the closing bracket by the index of the opening one.
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        tokens = [t for t in tokens if t.kind is not TokenKind.HINT and t.upper != ";"]
        self.text = text
        self.size = len(tokens)
        self.partner = match_brackets(text, tokens)
        end = tokens[-1].end if tokens else len(text)
        # Four END tokens, so that looking a few tokens ahead needs no check.
        self.tokens = tokens + [Token(TokenKind.END, "", "", end, end)] * 4

    def _word(self, i: int) -> str:
        """Return the upper-cased word at ``i``; empty after a dot, where any word is a name."""
        return "" if i and self.tokens[i - 1].text == "." else self.tokens[i].upper

    def _span(self, start: int, end: int) -> Span:
        """Return the place in the text of the tokens from ``start`` to before ``end``; of one token
        at least."""
        return Span(self.tokens[start].start, self.tokens[max(start, end - 1)].end)

    def _dotted_name(self, i: int) -> tuple[tuple[str, ...], int]:
        """Return the parts of the dotted name at ``i``, without quotes, and the index after it."""
        parts = [self.tokens[i].value]
        i += 1
        while self.tokens[i].text == "." and self.tokens[i + 1].is_name:
            parts.append(self.tokens[i + 1].value)
            i += 2
        return tuple(parts), i

    def _are_properties(self, i: int) -> bool:
        """Whether Hive's ``('key'='value', …)`` of a table begins at ``i``."""
        opening, key, equals, value = self.tokens[i : i + 4]
        are_texts = key.kind is value.kind is TokenKind.STRING
        return opening.text == "(" and are_texts and equals.text in ("=", "==")

    def _starts_query(self, i: int) -> bool:
        """Whether a query begins at ``i`` (SELECT, WITH, FROM, VALUES, TABLE, MAP or REDUCE), and
        not a column or table of such a name. False at a bracket."""
        word, following = self._word(i), self.tokens[i + 1]
        if word not in QUERY_WORDS or following.upper in AFTER_NAME:
            return False
        if following.kind is TokenKind.END:
            return False
        if word == "TABLE":
            next_index = self._dotted_name(i + 1)[1] if following.is_name else i + 1
            after = self.tokens[next_index]
            return following.is_name and (
                after.kind is TokenKind.END
                or after.text in (")", "|>")
                or after.upper in SET_OPERATORS | CLAUSES
            )
        if word == "WITH":
            return following.is_name
        if word in ("MAP", "REDUCE"):
            return following.text != "(" and following.text != "["
        if word == "FROM":
            return following.is_name or following.text == "("
        return following.upper not in ("*",) if word == "VALUES" else True

    def _is_query(self, i: int) -> bool:
        """Whether a query begins at ``i``, perhaps in brackets."""
        while self.tokens[i].text == "(":
            i += 1
        return self._starts_query(i)

    def _index_after_target(self, i: int) -> int:
        """Return the index after the target of the INSERT at ``i``, which is a table's name or the
        path of a directory: ``INSERT [WITH SCHEMA EVOLUTION] INTO|OVERWRITE [TABLE] t``."""
        i += 1
        if self._word(i) == "WITH":
            i += 3
        while (
            self._word(i) in INSERT_TARGET_WORDS
            and (self.tokens[i + 1].is_name or self.tokens[i + 1].kind is TokenKind.STRING)
            and not (self._word(i) == "TABLE" and self._starts_source(i + 1))
        ):
            i += 1
        return self._dotted_name(i)[1] if self.tokens[i].is_name else i + 1

    def _starts_source(self, i: int) -> bool:
        """Whether SELECT or VALUES, the source of an INSERT, begins at ``i``."""
        return self._starts_query(i) and self.tokens[i].upper in ("SELECT", "VALUES")

    def _ends_term(self, i: int) -> bool:
        """Whether the word at ``i`` is a set operator (UNION …) that ends a term of a query: no
        column, and no EXCEPT with a list of columns."""
        if self._word(i) not in SET_OPERATORS:
            return False
        following = self._word(i + 1)
        if self.tokens[i + 1].text == "(":
            return self._word(i) != "EXCEPT" or self._is_query(i + 1)
        return following in ("ALL", "DISTINCT") or following in QUERY_WORDS

    def _is_from(self, i: int, clause: str) -> bool:
        """Whether the word FROM at ``i`` begins the FROM clause: a name or a bracket follows, and
        it is no column (``SELECT from FROM t``) and no part of IS DISTINCT FROM. ``clause``: the
        current one, SELECT, FROM or "", or OTHER (a later one), where it never does."""
        before, following = self.tokens[i - 1].upper if i else "", self.tokens[i + 1]
        if self._word(i + 1) == "FROM" and self.tokens[i + 2].kind is not TokenKind.END:
            return False  # SELECT from FROM t
        if clause == "OTHER":
            return False
        if before == "DISTINCT" and self.tokens[i - 2].upper in ("IS", "NOT"):
            return False
        return following.is_name or following.text == "("

    def _is_clause(self, i: int) -> bool:
        """Whether the word at ``i``, one that can begin a clause, begins one, and is not a column:
        BY must follow GROUP, ORDER and the like, and no operator, bracket, FROM or end another
        word."""
        following = self.tokens[i + 1]
        if self.tokens[i].upper in ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"):
            return following.upper == "BY"
        if following.upper == "FROM" or following.kind is TokenKind.END:
            return False
        return following.upper not in AFTER_NAME

    def _scan_table_clauses(self, i: int, relation: RelationDraft) -> int:
        """Scan the clauses between a table's name and its alias, from ``i``, and write their places
        into ``relation``: properties, AS OF, options, TABLESAMPLE. Return the index after them."""
        if self._are_properties(i):
            close = self.partner[i] + 1
            relation.properties, i = self._span(i, close), close
        start = i
        if self._word(i) == "FOR" and self._word(i + 1) in TIME_TRAVEL_WORDS:
            i += 1
        if (
            self._word(i) in TIME_TRAVEL_WORDS
            and self._word(i + 1) == "AS"
            and self._word(i + 2) == "OF"
        ):
            i += 3
            if "VERSION" in self._word(i - 3) or self.tokens[i].kind is TokenKind.STRING:
                i += 1
            while i < self.size and not self._ends_time_travel(i):
                i = self.partner.get(i, i) + 1
            relation.time_travel = self._span(start, i)
        else:
            i = start
        if self._word(i) == "WITH" and self.tokens[i + 1].text == "(":
            close = self.partner[i + 1] + 1
            relation.options, i = self._span(i, close), close
        if self._word(i) == "TABLESAMPLE" and i + 1 < self.size:
            start = i
            i += 1 + (self._word(i + 1) in ("SYSTEM", "BERNOULLI"))
            i = self.partner.get(i, i) + 1
            if self._word(i) == "REPEATABLE":
                i = self.partner.get(i + 1, i) + 1
            relation.sample = self._span(start, i)
        return i

    def _ends_time_travel(self, i: int) -> bool:
        """Whether the value of AS OF ends before the token at ``i``: an alias, a clause or a
        bracket begins there."""
        token = self.tokens[i]
        if (
            token.is_name
            and self._word(i) not in _EXPRESSION_WORDS
            and self._ends_as_of_operand(i - 1)
        ):
            return True  # the alias in `OF '2024' x` and `OF now() x`
        return token.text in (")", ",", "|>") or self._word(i) in RELATION_ENDS | {"AS"}

    def _ends_as_of_operand(self, index: int) -> bool:
        """Whether the token at ``index`` ends an operand of AS OF's value, so that a name after it
        is an alias: a literal, a parameter, an interval's unit, or ``)``. The name of a column does
        not, nor does a number that a unit must follow (``INTERVAL 1``)."""
        token, before = self.tokens[index], self.tokens[index - 1]
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER):
            is_next_unit = before.is_name and self.tokens[index - 2].kind in (
                TokenKind.STRING,
                TokenKind.NUMBER,
            )
            return self._word(index - 1) != "INTERVAL" and not is_next_unit
        if token.is_name:  # a parameter, or the unit of an interval
            is_unit = (
                before.kind in (TokenKind.STRING, TokenKind.NUMBER) or self._word(index - 1) == "TO"
            )
            return is_unit or before.text == ":"
        return token.text in (")", "?")

    def _is_star(self, i: int) -> bool:
        """Whether the ``*`` at ``i`` stands where an item or an argument begins, and so does not
        multiply: at the beginning, or behind ``(``, ``,``, ``[``, SELECT, DISTINCT, ALL, EXTEND or
        AGGREGATE. False for the ``*`` of ``t.*``."""
        before = self.tokens[i - 1] if i else self.tokens[-1]
        return (
            i == 0
            or before.text in ("(", ",", "[")
            or self._word(i - 1)
            in (
                "SELECT",
                "DISTINCT",
                "ALL",
                "EXTEND",
                "AGGREGATE",
            )
        )
