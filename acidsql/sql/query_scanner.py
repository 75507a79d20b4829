"""Finds relations, query blocks and stars in the tokens of a query.

The scanner has no grammar of expressions. A token matters only if it can begin a query, name a
relation, or be a star. FROM begins a list of relations only directly in a query block, so
``extract(year FROM x)`` and ``IS DISTINCT FROM`` need no list of functions.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.virtual_columns import TYPES
from acidsql.sql.lookahead import (
    CLAUSES,
    INSERT_WORDS,
    RELATION_ENDS,
    Found,
    FoundBlock,
    FoundStar,
    Lookahead,
    is_cte,
)
from acidsql.sql.table_changes import TABLE_CHANGES
from acidsql.sql.tokens import Kind, Span, Token

Names = frozenset[str]
_EXTENDS_FROM = frozenset({"JOIN", "LATERAL", "PIVOT", "UNPIVOT"})


class QueryScanner(Lookahead):
    """Scans the tokens in one pass.

    Attributes:
        blocks: The query blocks.
        found: The named relations.
        doubts: Obstacles: the name of the ``Obstacle``, the place, the block.
        chains: Qualified names: index of the first token, index after the last, the block.
        named: Relations of any kind, and parameters of lambda functions: the name in lower case,
            the block, the place, whether it is a parameter.
        changes: The places of calls of ``table_changes``.
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__(text, tokens)
        self.blocks: list[FoundBlock] = []
        self.found: list[Found] = []
        self.doubts: list[tuple[str, Span, int]] = []
        self.chains: list[tuple[int, int, int]] = []
        self.named: list[tuple[str, int, int, bool]] = []
        self.changes: list[Span] = []

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def block(self, parent: int | None) -> int:
        """Add a new block and return its id."""
        self.blocks.append(FoundBlock(parent))
        return len(self.blocks) - 1

    def _doubt(self, kind: str, start: int, end: int, block: int) -> None:
        self.doubts.append((kind, self._span(start, end), block))

    # ── queries ──────────────────────────────────────────────────────────────────────────────

    def with_clause(self, i: int, parent: int, visible: Names) -> tuple[int, Names]:
        """Scan ``WITH a AS (…), …``. Return the index after it, and the names it declares."""
        i += 1
        recursive = self._word(i) == "RECURSIVE" and self.tokens[i + 1].is_name
        i += recursive
        declared: Names = frozenset()
        while self.tokens[i].is_name:
            name = self.tokens[i].value.lower()
            i += 1
            if self.tokens[i].text == "(" and not self._starts_query(i + 1):
                i = self.partner[i] + 1
            if self._word(i) == "MAX":
                i += 4
            i += self._word(i) == "AS"
            if self.tokens[i].text != "(":
                break
            # The name of a CTE is visible in its own body only if the CTE is recursive.
            inside = visible | declared | ({name} if recursive else frozenset())
            self._query(i + 1, self.partner[i], parent, inside)
            declared |= {name}
            i = self.partner[i] + 1
            if self.tokens[i].text != ",":
                break
            i += 1
        return i, declared

    def _query(self, i: int, end: int, parent: int | None, visible: Names) -> None:
        """Scan ``[WITH …] term {UNION term} …`` from ``i`` to before ``end``."""
        if i < end and self._word(i) == "WITH" and self._starts_query(i):
            if parent is None:
                parent = self.block(None)
            i, declared = self.with_clause(i, parent, visible)
            visible |= declared
        while i < end:
            block = self.block(parent)
            i = self._term(i, end, block, visible)
            if i < end:
                i += 1
                while self._word(i) in ("ALL", "DISTINCT"):
                    i += 1

    def _term(self, i: int, end: int, block: int, visible: Names) -> int:
        """Scan one query block. Return the index of the set operator after it, or ``end``."""
        if self.tokens[i].text == "(":
            close = self.partner[i]
            self._query(i + 1, close, block, visible)
            return self._clauses(close + 1, end, block, visible, "")
        if self._word(i) == "TABLE" and self._starts_query(i):
            _, behind = self._chain(i + 1)
            self._doubt("TABLE_QUERY", i, behind, block)
            self._relation_name(i + 1, block, visible, can_alias=False)
            return self._clauses(behind, end, block, visible, "")
        if self._word(i) == "VALUES":
            return self._clauses(self._rows(i + 1, end, block, visible), end, block, visible, "")
        return self._clauses(i, end, block, visible, "")

    def _clauses(self, i: int, end: int, block: int, visible: Names, clause: str) -> int:
        """Scan a block's clauses from ``i``. ``clause``: the current one, SELECT, FROM or ""."""
        while i < end:
            word = self._word(i)
            if self._ends_term(i):
                return i
            if self.tokens[i].text == "|>":
                self._doubt("PIPE", i, i + 1, block)
                clause = "OTHER"
                if self._word(i + 1) == "AS":
                    i = self._alias(i + 1, None, block)
                    continue
            elif word == "SELECT" and clause != "SELECT":
                clause = "SELECT"
            elif word == "FROM" and clause != "FROM" and self._is_from(i, clause):
                clause = "FROM"
                i = self._relation(i + 1, end, block, visible)
                continue
            elif word in CLAUSES and clause and self._is_clause(i):
                clause = "OTHER"
            elif word == "INSERT" and self.tokens[i + 1].upper in INSERT_WORDS:
                i, clause = self._behind_target(i), ""
                continue
            elif word in ("WITH", "TABLE") and not clause and self._starts_query(i):
                self._query(i, end, block, visible)  # the query of INSERT
                return end
            elif clause == "FROM" or (clause != "SELECT" and word in _EXTENDS_FROM):
                behind = self._from_word(i, end, block, visible)
                if behind is not None:
                    clause = "OTHER" if word == "LATERAL" else "FROM"
                    i = behind
                    continue
            i = self._token(i, block, visible, in_call=False)
        return end

    def _from_word(self, i: int, end: int, block: int, visible: Names) -> int | None:
        """Scan the next relation of FROM. Return the index after it; None if ``i`` begins none."""
        word = self._word(i)
        if word == "JOIN" or self.tokens[i].text == ",":
            return self._relation(i + 1, end, block, visible)
        if word == "NATURAL":
            self._doubt("NATURAL_JOIN", i, i + 1, block)
            return i + 1
        if word in ("PIVOT", "UNPIVOT") and (
            self.tokens[i + 1].text == "(" or self._word(i + 1) in ("INCLUDE", "EXCLUDE")
        ):
            self._doubt(word, i, i + 1, block)
            while self.tokens[i].text != "(":
                i += 1
            return self._alias(self._bracket(i, block, visible), None, block)
        if word == "LATERAL" and self._word(i + 1) == "VIEW":
            return self._lateral_view(i + 2, block, visible)
        return None

    def _lateral_view(self, i: int, block: int, visible: Names) -> int:
        """Scan ``[OUTER] f(…) x`` of a LATERAL VIEW. Return the index after it."""
        i += self._word(i) == "OUTER" and self.tokens[i + 1].is_name
        _, behind = self._chain(i)
        if self.tokens[behind].text != "(":
            return i
        return self._alias(self._bracket(behind, block, visible), None, block, has_list=False)

    # ── relations ────────────────────────────────────────────────────────────────────────────

    def _relation(self, i: int, end: int, block: int, visible: Names) -> int:
        """Scan one relation with its alias. Return the index after it."""
        if self._word(i) == "LATERAL" and i + 1 < end:
            i += 1
        if i >= end:
            return end
        if self.tokens[i].text == "(":
            doubt = "" if self._brackets(i, block, visible) else "BRACKETS_ALIAS"
            return self._alias(self.partner[i] + 1, None, block, doubt=doubt)
        if self._word(i) == "VALUES" and self._starts_query(i):
            return self._alias(self._rows(i + 1, end, block, visible), None, block)
        if not self.tokens[i].is_name:
            return i
        _, behind = self._chain(i)
        if self.tokens[behind].text == "(" and not self._are_properties(behind):
            if self._word(i) == "IDENTIFIER":
                self._doubt("IDENTIFIER", i, self.partner[behind] + 1, block)
            if self._word(i) == TABLE_CHANGES and behind == i + 1:
                self.changes.append(self._span(i, self.partner[behind] + 1))
            self._expression(behind + 1, self.partner[behind], block, visible, in_call=True)
            return self._alias(self.partner[behind] + 1, None, block)
        return self._relation_name(i, block, visible)

    def _brackets(self, i: int, block: int, visible: Names) -> bool:
        """Scan ``(query)`` or ``(relation JOIN relation)``. Tell whether it is a query."""
        inner, close = i + 1, self.partner[i]
        is_query = self._starts_query(inner)
        if self.tokens[inner].text == "(":
            behind = self.partner[inner] + 1
            is_query = self._is_query(inner) and (
                behind == close or self._ends_term(behind) or self._word(behind) in CLAUSES
            )
        if is_query:
            self._query(inner, close, block, visible)
        else:
            behind = self._relation(inner, close, block, visible)
            self._clauses(behind, close, block, visible, "FROM")
        return is_query

    def _relation_name(self, i: int, block: int, visible: Names, *, can_alias: bool = True) -> int:
        parts, behind = self._chain(i)
        found = Found(parts, self._span(i, behind), block, None)
        if can_alias:
            behind = self._behind_name(behind, found)
            found.alias_at = self.tokens[behind - 1].end
            behind = self._alias(behind, found, block)
            name = (found.alias or parts[-1]).lower()
            self.named.append((name, block, found.span.start, False))
        if not is_cte(parts, visible):
            self.found.append(found)
        return behind

    def _name(self, i: int, block: int, visible: Names) -> None:
        parts, behind = self._chain(i)
        if not is_cte(parts, visible):
            self.found.append(Found(parts, self._span(i, behind), block, None))

    def _alias(
        self, i: int, found: Found | None, block: int, *, has_list: bool = True, doubt: str = ""
    ) -> int:
        """Scan ``[AS] x [(a, b)]``. Return the index after it.

        ``has_list``: brackets after the alias belong to the alias. ``doubt``: an alias is this one.
        """
        token = self.tokens[i]
        if self._word(i) == "AS" and self.tokens[i + 1].is_name:
            i, token = i + 1, self.tokens[i + 1]
        elif not token.is_name or self._word(i) in RELATION_ENDS:
            return i
        if found is not None:
            found.alias, found.alias_span = token.value, token.span
        else:
            self.named.append((token.value.lower(), block, token.start, False))
        end = self.partner[i + 1] + 1 if has_list and self.tokens[i + 1].text == "(" else i + 1
        if doubt or (found is not None and end > i + 1):
            self._doubt(doubt or "COLUMN_ALIASES", i, end, block)
        return end

    def _rows(self, i: int, end: int, block: int, visible: Names) -> int:
        """Scan the rows after VALUES. Return the index after the last row."""
        while i < end:
            after_operand = False
            while i < end and self.tokens[i].text != ",":
                token = self.tokens[i]
                if after_operand and (token.is_name or token.text == "|>"):
                    return i
                after_operand = token.kind is not Kind.SYMBOL or token.text == "("
                # In `DATE '…'` the word DATE is only a part of the operand.
                if token.kind is Kind.WORD and self.tokens[i + 1].kind is Kind.STRING:
                    after_operand = False
                i = self._token(i, block, visible, in_call=False)
            if i >= end:
                return end
            i += 1
        return end

    # ── expressions ──────────────────────────────────────────────────────────────────────────

    def _expression(
        self, i: int, end: int, block: int, visible: Names, *, in_call: bool = False
    ) -> None:
        while i < end:
            arrow = self.partner.get(i, i) + 1
            if arrow < end and self.tokens[arrow].text == "->":
                i = self._lambda(i, arrow, end, block, visible)
            else:
                i = self._token(i, block, visible, in_call=in_call)

    def _lambda(self, i: int, arrow: int, end: int, block: int, visible: Names) -> int:
        """Scan ``x -> …`` or ``(x, y) -> …``. Here x may be a struct, so ``x.c`` is its field."""
        inside = self.block(block)
        for token in self.tokens[i:arrow]:
            if token.is_name:
                self.named.append((token.value.lower(), inside, token.start, True))
        i = arrow + 1
        while i < end and self.tokens[i].text != ",":
            i = self._token(i, inside, visible, in_call=True)
        self.blocks[block].stars += self.blocks[inside].stars
        self.blocks[inside].stars = []
        return i

    def _token(self, i: int, block: int, visible: Names, *, in_call: bool) -> int:
        """Scan one token of an expression, or a whole bracket. Return the index after it."""
        token = self.tokens[i]
        if token.text == "(" and token.kind is Kind.SYMBOL:
            return self._bracket(i, block, visible)
        if i in self.partner:
            self._expression(i + 1, self.partner[i], block, visible)
            return self.partner[i] + 1
        if token.is_name:
            return self._name_or_star(i, block, visible, in_call)
        if token.text == "*" and self._is_star(i):
            return self._star(i, i, None, block, in_call)
        return i + 1

    def _bracket(self, i: int, block: int, visible: Names) -> int:
        close, before = self.partner[i], self.tokens[i - 1] if i else self.tokens[-1]
        if self._is_query(i + 1) and not (before.is_name and self._word(i - 1) == "TRANSFORM"):
            self._query(i + 1, close, block, visible)
            return close + 1
        only_star = close == i + 2 and self.tokens[i + 1].text == "*"
        if not (before.is_name and only_star and before.upper == "COUNT"):
            self._expression(i + 1, close, block, visible, in_call=True)
        return close + 1

    def _name_or_star(self, i: int, block: int, visible: Names, in_call: bool) -> int:
        if in_call and self._word(i) == "TABLE":
            behind = self._table_argument(i, block, visible)
            if behind is not None:
                return behind
        parts, behind = self._chain(i)
        self._mention(parts, block)
        if len(parts) > 1:
            self.chains.append((i, behind, block))
        if self.tokens[behind].text == "." and self.tokens[behind + 1].text == "*":
            self.chains.append((i, behind + 2, block))
            return self._star(i, behind + 1, parts, block, in_call)
        return behind

    def _table_argument(self, i: int, block: int, visible: Names) -> int | None:
        """Scan ``f(TABLE t)`` or ``f(TABLE(t))``; None for other forms as ``TABLE(SELECT …)``."""
        if self.tokens[i - 1].text not in ("(", ",", "=>"):
            return None
        if self.tokens[i + 1].is_name:
            self._relation_name(i + 1, block, visible, can_alias=False)
            return self._chain(i + 1)[1]
        if self.tokens[i + 1].text == "(" and self.tokens[i + 2].is_name:
            close = self.partner[i + 1]
            if self._chain(i + 2)[1] == close:
                self._relation_name(i + 2, block, visible, can_alias=False)
                return close + 1
        return None

    def _star(
        self, start: int, i: int, qualifier: tuple[str, ...] | None, block: int, in_call: bool
    ) -> int:
        behind, kind, excepted = i + 1, "PLAIN", None
        opening = behind + 1
        is_list = self.tokens[opening].text == "(" and not self._is_query(opening)
        if self._word(behind) == "EXCEPT" and is_list:
            kind, behind = "EXCEPT", self.partner[opening] + 1
            excepted = Span(self.tokens[opening].end, self.tokens[behind - 1].start)
            names = [t.value for t in self.tokens[opening:behind] if t.is_name]
            self._mention(names, block)
        if in_call:
            kind = "ARGUMENT"
            self._doubt("STAR_ARGUMENT", start, behind, block)
        star = FoundStar(self._span(start, behind), qualifier, kind, excepted)
        self.blocks[block].stars.append(star)
        return behind

    def _mention(self, names: Iterable[str], block: int) -> None:
        self.blocks[block].mentions.update(TYPES.keys() & {name.lower() for name in names})
