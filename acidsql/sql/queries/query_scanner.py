"""Finds relations, query blocks and stars in the tokens of a query.

The scanner has no grammar of expressions. A token matters only if it can begin a query, name a
relation, or be a star. FROM begins a list of relations only directly in a query block, so
``extract(year FROM x)`` and ``IS DISTINCT FROM`` need no list of functions.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.virtual_columns import TYPES
from acidsql.sql.queries.table_changes import TABLE_CHANGES
from acidsql.sql.text.lookahead import (
    CLAUSES,
    INSERT_WORDS,
    RELATION_ENDS,
    BlockDraft,
    Lookahead,
    RelationDraft,
    StarDraft,
    is_cte,
)
from acidsql.sql.text.tokens import Span, Token, TokenKind

CteNames = frozenset[str]
_EXTENDS_FROM = frozenset({"JOIN", "LATERAL", "PIVOT", "UNPIVOT"})


class QueryScanner(Lookahead):
    """Scans the tokens of a query in one pass. The methods ``scan_…`` note what they find in the
    attributes.

    Attributes:
        blocks: The query blocks; a block's id is its index.
        relations: The named relations.
        doubts: Obstacles: the name of the ``Obstacle``, the place, the block.
        chains: Qualified names: index of the first token, index after the last, the block.
        qualifiers: Relations of any kind, and parameters of lambda functions: the name in lower
            case, the block, the place, whether it is a parameter.
        changes: The places of calls of ``table_changes``.
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__(text, tokens)
        self.blocks: list[BlockDraft] = []
        self.relations: list[RelationDraft] = []
        self.doubts: list[tuple[str, Span, int]] = []
        self.chains: list[tuple[int, int, int]] = []
        self.qualifiers: list[tuple[str, int, int, bool]] = []
        self.changes: list[Span] = []

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def add_block(self, parent: int | None) -> int:
        """Add a new block and return its id."""
        self.blocks.append(BlockDraft(parent))
        return len(self.blocks) - 1

    def _add_doubt(self, kind: str, start: int, end: int, block: int) -> None:
        """Note an obstacle at the tokens from ``start`` to before ``end``. ``kind``: the
        ``Obstacle``'s name."""
        self.doubts.append((kind, self._span(start, end), block))

    # ── queries ──────────────────────────────────────────────────────────────────────────────

    def scan_with_clause(self, i: int, parent: int, visible: CteNames) -> tuple[int, CteNames]:
        """Scan ``WITH a AS (…), …`` at ``i``, whose queries become blocks inside ``parent``. Return
        the index after it, and the names that it declares, in lower case. ``visible``: the names of
        the CTEs declared outside."""
        i += 1
        recursive = self._word(i) == "RECURSIVE" and self.tokens[i + 1].is_name
        i += recursive
        declared: CteNames = frozenset()
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
            self._scan_query(i + 1, self.partner[i], parent, inside)
            declared |= {name}
            i = self.partner[i] + 1
            if self.tokens[i].text != ",":
                break
            i += 1
        return i, declared

    def _scan_query(self, i: int, end: int, parent: int | None, visible: CteNames) -> None:
        """Scan ``[WITH …] term {UNION term} …`` from ``i`` to before ``end``: each term becomes a
        block inside ``parent`` (None: the outermost). ``visible``: the names of the CTEs declared
        outside."""
        if i < end and self._word(i) == "WITH" and self._starts_query(i):
            if parent is None:
                parent = self.add_block(None)
            i, declared = self.scan_with_clause(i, parent, visible)
            visible |= declared
        while i < end:
            block = self.add_block(parent)
            i = self._scan_term(i, end, block, visible)
            if i < end:
                i += 1
                while self._word(i) in ("ALL", "DISTINCT"):
                    i += 1

    def _scan_term(self, i: int, end: int, block: int, visible: CteNames) -> int:
        """Scan one term of a query (SELECT …, TABLE t, VALUES …, or a bracket) as the block
        ``block``. ``TABLE t`` is also noted as a doubt, TABLE_QUERY. Return the index of the set
        operator after the term, or ``end``."""
        if self.tokens[i].text == "(":
            close = self.partner[i]
            self._scan_query(i + 1, close, block, visible)
            return self._scan_clauses(close + 1, end, block, visible, "")
        if self._word(i) == "TABLE" and self._starts_query(i):
            _, next_index = self._dotted_name(i + 1)
            self._add_doubt("TABLE_QUERY", i, next_index, block)
            self._scan_relation_name(i + 1, block, visible, can_alias=False)
            return self._scan_clauses(next_index, end, block, visible, "")
        if self._word(i) == "VALUES":
            return self._scan_clauses(
                self._scan_rows(i + 1, end, block, visible), end, block, visible, ""
            )
        return self._scan_clauses(i, end, block, visible, "")

    def _scan_clauses(self, i: int, end: int, block: int, visible: CteNames, clause: str) -> int:
        """Scan a block's clauses from ``i``. Return ``end``, or the index of the set operator that
        ends the block. ``clause``: the current one, SELECT, FROM or ""."""
        while i < end:
            word = self._word(i)
            if self._ends_term(i):
                return i
            if self.tokens[i].text == "|>":
                self._add_doubt("PIPE", i, i + 1, block)
                clause = "OTHER"
                if self._word(i + 1) == "AS":
                    i = self._scan_alias(i + 1, None, block)
                    continue
            elif word == "SELECT" and clause != "SELECT":
                clause = "SELECT"
            elif word == "FROM" and clause != "FROM" and self._is_from(i, clause):
                clause = "FROM"
                i = self._scan_relation(i + 1, end, block, visible)
                continue
            elif word in CLAUSES and clause and self._is_clause(i):
                clause = "OTHER"
            elif word == "INSERT" and self.tokens[i + 1].upper in INSERT_WORDS:
                i, clause = self._index_after_target(i), ""
                continue
            elif word in ("WITH", "TABLE") and not clause and self._starts_query(i):
                self._scan_query(i, end, block, visible)  # the query of INSERT
                return end
            elif clause == "FROM" or (clause != "SELECT" and word in _EXTENDS_FROM):
                next_index = self._scan_from_word(i, end, block, visible)
                if next_index is not None:
                    clause = "OTHER" if word == "LATERAL" else "FROM"
                    i = next_index
                    continue
            i = self._scan_token(i, block, visible, in_call=False)
        return end

    def _scan_from_word(self, i: int, end: int, block: int, visible: CteNames) -> int | None:
        """Scan what goes on with a FROM at ``i``: a relation behind ``,`` or JOIN, NATURAL, PIVOT,
        UNPIVOT or a LATERAL VIEW. NATURAL, PIVOT and UNPIVOT are noted as obstacles. Return the
        index after it; None if ``i`` begins none of them."""
        word = self._word(i)
        if word == "JOIN" or self.tokens[i].text == ",":
            return self._scan_relation(i + 1, end, block, visible)
        if word == "NATURAL":
            self._add_doubt("NATURAL_JOIN", i, i + 1, block)
            return i + 1
        if word in ("PIVOT", "UNPIVOT") and (
            self.tokens[i + 1].text == "(" or self._word(i + 1) in ("INCLUDE", "EXCLUDE")
        ):
            self._add_doubt(word, i, i + 1, block)
            while self.tokens[i].text != "(":
                i += 1
            return self._scan_alias(self._scan_bracket(i, block, visible), None, block)
        if word == "LATERAL" and self._word(i + 1) == "VIEW":
            return self._scan_lateral_view(i + 2, block, visible)
        return None

    def _scan_lateral_view(self, i: int, block: int, visible: CteNames) -> int:
        """Scan ``[OUTER] f(…) x`` of a LATERAL VIEW. Return the index after it; that of the name if
        no function follows."""
        i += self._word(i) == "OUTER" and self.tokens[i + 1].is_name
        _, next_index = self._dotted_name(i)
        if self.tokens[next_index].text != "(":
            return i
        return self._scan_alias(
            self._scan_bracket(next_index, block, visible), None, block, has_list=False
        )

    # ── relations ────────────────────────────────────────────────────────────────────────────

    def _scan_relation(self, i: int, end: int, block: int, visible: CteNames) -> int:
        """Scan one relation with its alias: a table, a query or join in brackets, VALUES, or a
        function; LATERAL before it is skipped. A call of ``table_changes`` is noted in ``changes``,
        and IDENTIFIER as an obstacle. Return the index after it; ``i`` itself if no relation begins
        there."""
        if self._word(i) == "LATERAL" and i + 1 < end:
            i += 1
        if i >= end:
            return end
        if self.tokens[i].text == "(":
            doubt = "" if self._scan_relation_brackets(i, block, visible) else "BRACKETS_ALIAS"
            return self._scan_alias(self.partner[i] + 1, None, block, doubt=doubt)
        if self._word(i) == "VALUES" and self._starts_query(i):
            return self._scan_alias(self._scan_rows(i + 1, end, block, visible), None, block)
        if not self.tokens[i].is_name:
            return i
        _, next_index = self._dotted_name(i)
        if self.tokens[next_index].text == "(" and not self._are_properties(next_index):
            if self._word(i) == "IDENTIFIER":
                self._add_doubt("IDENTIFIER", i, self.partner[next_index] + 1, block)
            if self._word(i) == TABLE_CHANGES and next_index == i + 1:
                self.changes.append(self._span(i, self.partner[next_index] + 1))
            self._scan_expression(
                next_index + 1, self.partner[next_index], block, visible, in_call=True
            )
            return self._scan_alias(self.partner[next_index] + 1, None, block)
        return self._scan_relation_name(i, block, visible)

    def _scan_relation_brackets(self, i: int, block: int, visible: CteNames) -> bool:
        """Scan ``(query)`` or ``(relation JOIN relation)``. Return whether it is a query."""
        inner, close = i + 1, self.partner[i]
        is_query = self._starts_query(inner)
        if self.tokens[inner].text == "(":
            next_index = self.partner[inner] + 1
            is_query = self._is_query(inner) and (
                next_index == close
                or self._ends_term(next_index)
                or self._word(next_index) in CLAUSES
            )
        if is_query:
            self._scan_query(inner, close, block, visible)
        else:
            next_index = self._scan_relation(inner, close, block, visible)
            self._scan_clauses(next_index, close, block, visible, "FROM")
        return is_query

    def _scan_relation_name(
        self, i: int, block: int, visible: CteNames, *, can_alias: bool = True
    ) -> int:
        """Scan a table's name with its clauses and alias, and note it as a relation, unless it is a
        CTE. Return the index after it.

        ``can_alias``: clauses and an alias may follow. The alias, or else the name's last part, is
        then noted as a qualifier, for a CTE too.
        """
        parts, next_index = self._dotted_name(i)
        relation = RelationDraft(parts, self._span(i, next_index), block, None)
        if can_alias:
            next_index = self._scan_table_clauses(next_index, relation)
            relation.alias_at = self.tokens[next_index - 1].end
            next_index = self._scan_alias(next_index, relation, block)
            name = (relation.alias or parts[-1]).lower()
            self.qualifiers.append((name, block, relation.span.start, False))
        if not is_cte(parts, visible):
            self.relations.append(relation)
        return next_index

    def _scan_name(self, i: int, block: int, visible: CteNames) -> None:
        """Note the dotted name at ``i``, without alias and clauses, as a relation, unless it is a
        CTE."""
        parts, next_index = self._dotted_name(i)
        if not is_cte(parts, visible):
            self.relations.append(RelationDraft(parts, self._span(i, next_index), block, None))

    def _scan_alias(
        self,
        i: int,
        relation: RelationDraft | None,
        block: int,
        *,
        has_list: bool = True,
        doubt: str = "",
    ) -> int:
        """Scan ``[AS] x [(a, b)]``. Return the index after it; ``i`` itself without an alias. Names
        of columns behind a table's alias are an obstacle, which is noted in ``doubts``.

        ``relation``: the table whose ``alias`` is set; None for another relation, whose alias goes
        into ``qualifiers``. ``has_list``: brackets after the alias belong to the alias. ``doubt``:
        the obstacle that any alias is here, which is noted in the place of the other; "" for none.
        """
        token = self.tokens[i]
        if self._word(i) == "AS" and self.tokens[i + 1].is_name:
            i, token = i + 1, self.tokens[i + 1]
        elif not token.is_name or self._word(i) in RELATION_ENDS:
            return i
        if relation is not None:
            relation.alias, relation.alias_span = token.value, token.span
        else:
            self.qualifiers.append((token.value.lower(), block, token.start, False))
        end = self.partner[i + 1] + 1 if has_list and self.tokens[i + 1].text == "(" else i + 1
        if doubt or (relation is not None and end > i + 1):
            self._add_doubt(doubt or "COLUMN_ALIASES", i, end, block)
        return end

    def _scan_rows(self, i: int, end: int, block: int, visible: CteNames) -> int:
        """Scan the rows after VALUES. Return the index after the last row, where an alias or
        ``end`` is."""
        while i < end:
            after_operand = False
            while i < end and self.tokens[i].text != ",":
                token = self.tokens[i]
                if after_operand and (token.is_name or token.text == "|>"):
                    return i
                after_operand = token.kind is not TokenKind.SYMBOL or token.text == "("
                # In `DATE '…'` the word DATE is only a part of the operand.
                if token.kind is TokenKind.WORD and self.tokens[i + 1].kind is TokenKind.STRING:
                    after_operand = False
                i = self._scan_token(i, block, visible, in_call=False)
            if i >= end:
                return end
            i += 1
        return end

    # ── expressions ──────────────────────────────────────────────────────────────────────────

    def _scan_expression(
        self, i: int, end: int, block: int, visible: CteNames, *, in_call: bool = False
    ) -> None:
        """Scan the tokens of an expression from ``i`` to before ``end``, with its lambdas and
        subqueries. ``in_call``: they are arguments of a function."""
        while i < end:
            arrow = self.partner.get(i, i) + 1
            if arrow < end and self.tokens[arrow].text == "->":
                i = self._scan_lambda(i, arrow, end, block, visible)
            else:
                i = self._scan_token(i, block, visible, in_call=in_call)

    def _scan_lambda(self, i: int, arrow: int, end: int, block: int, visible: CteNames) -> int:
        """Scan ``x -> …`` or ``(x, y) -> …`` up to ``,`` or ``end`` as a block of its own, whose
        stars go to the block around it. Return the index after it. Here x may be a struct, so
        ``x.c`` is its field."""
        inside = self.add_block(block)
        for token in self.tokens[i:arrow]:
            if token.is_name:
                self.qualifiers.append((token.value.lower(), inside, token.start, True))
        i = arrow + 1
        while i < end and self.tokens[i].text != ",":
            i = self._scan_token(i, inside, visible, in_call=True)
        self.blocks[block].stars += self.blocks[inside].stars
        self.blocks[inside].stars = []
        return i

    def _scan_token(self, i: int, block: int, visible: CteNames, *, in_call: bool) -> int:
        """Scan one token of an expression, or a whole bracket. Return the index after it."""
        token = self.tokens[i]
        if token.text == "(" and token.kind is TokenKind.SYMBOL:
            return self._scan_bracket(i, block, visible)
        if i in self.partner:
            self._scan_expression(i + 1, self.partner[i], block, visible)
            return self.partner[i] + 1
        if token.is_name:
            return self._scan_name_or_star(i, block, visible, in_call)
        if token.text == "*" and self._is_star(i):
            return self._scan_star(i, i, None, block, in_call)
        return i + 1

    def _scan_bracket(self, i: int, block: int, visible: CteNames) -> int:
        """Scan the bracket at ``i``, a subquery or an expression. Return the index after it. The
        star of ``count(*)`` is skipped."""
        close, before = self.partner[i], self.tokens[i - 1] if i else self.tokens[-1]
        if self._is_query(i + 1) and not (before.is_name and self._word(i - 1) == "TRANSFORM"):
            self._scan_query(i + 1, close, block, visible)
            return close + 1
        only_star = close == i + 2 and self.tokens[i + 1].text == "*"
        if not (before.is_name and only_star and before.upper == "COUNT"):
            self._scan_expression(i + 1, close, block, visible, in_call=True)
        return close + 1

    def _scan_name_or_star(self, i: int, block: int, visible: CteNames, in_call: bool) -> int:
        """Scan a dotted name or ``x.*``: note the virtual columns in it, the name if it has several
        parts, and the star. The TABLE of ``f(TABLE t)`` is scanned with its table. Return the index
        after it."""
        if in_call and self._word(i) == "TABLE":
            next_index = self._scan_table_argument(i, block, visible)
            if next_index is not None:
                return next_index
        parts, next_index = self._dotted_name(i)
        self._note_virtual_columns(parts, block)
        if len(parts) > 1:
            self.chains.append((i, next_index, block))
        if self.tokens[next_index].text == "." and self.tokens[next_index + 1].text == "*":
            self.chains.append((i, next_index + 2, block))
            return self._scan_star(i, next_index + 1, parts, block, in_call)
        return next_index

    def _scan_table_argument(self, i: int, block: int, visible: CteNames) -> int | None:
        """Scan the ``TABLE t`` or ``TABLE(t)`` of a function's argument, from the word TABLE at
        ``i``, and note t as a relation. Return the index after it; None for other forms, as
        ``TABLE(SELECT …)``."""
        if self.tokens[i - 1].text not in ("(", ",", "=>"):
            return None
        if self.tokens[i + 1].is_name:
            self._scan_relation_name(i + 1, block, visible, can_alias=False)
            return self._dotted_name(i + 1)[1]
        if self.tokens[i + 1].text == "(" and self.tokens[i + 2].is_name:
            close = self.partner[i + 1]
            if self._dotted_name(i + 2)[1] == close:
                self._scan_relation_name(i + 2, block, visible, can_alias=False)
                return close + 1
        return None

    def _scan_star(
        self, start: int, i: int, qualifier: tuple[str, ...] | None, block: int, in_call: bool
    ) -> int:
        """Scan ``* [EXCEPT (…)]``, whose ``*`` is at ``i`` and whose qualifier begins at ``start``;
        note it, and the virtual columns in EXCEPT, in its block. As a function's argument it is
        also noted as an obstacle in ``doubts``. Return the index after it."""
        next_index, kind, excepted = i + 1, "PLAIN", None
        opening = next_index + 1
        is_list = self.tokens[opening].text == "(" and not self._is_query(opening)
        if self._word(next_index) == "EXCEPT" and is_list:
            kind, next_index = "EXCEPT", self.partner[opening] + 1
            excepted = Span(self.tokens[opening].end, self.tokens[next_index - 1].start)
            names = [t.value for t in self.tokens[opening:next_index] if t.is_name]
            self._note_virtual_columns(names, block)
        if in_call:
            kind = "ARGUMENT"
            self._add_doubt("STAR_ARGUMENT", start, next_index, block)
        star = StarDraft(self._span(start, next_index), qualifier, kind, excepted)
        self.blocks[block].stars.append(star)
        return next_index

    def _note_virtual_columns(self, names: Iterable[str], block: int) -> None:
        """Note in the block those of the names that are virtual columns, such as ``row__id``."""
        self.blocks[block].mentions.update(TYPES.keys() & {name.lower() for name in names})
