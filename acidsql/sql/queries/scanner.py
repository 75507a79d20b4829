"""Finds the queries in a statement, and passes them to the query scanner."""

from __future__ import annotations

from acidsql.sql.queries.query_scanner import CteNames, QueryScanner
from acidsql.sql.text.lookahead import INSERT_WORDS

EXPLAIN_MODES = ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL", "CHANGES")


class StatementScanner(QueryScanner):
    """Scans the tokens of a statement of Spark's, a query, or an expression."""

    def scan_statement(self, visible: CteNames) -> None:
        """Scan all tokens as a statement (with EXPLAIN before it or not), a query or an expression.
        The statement's target is skipped. ``visible``: the names of CTEs that are declared outside.
        """
        i = 0
        if self._word(0) == "EXPLAIN" and self.size > 1:
            i = 1
            while self._word(i) in EXPLAIN_MODES:
                i += 1
        word, following = self._word(i), self.tokens[i + 1]
        if word == "INSERT" and following.upper in INSERT_WORDS:
            self._scan_insert(i, visible)
        elif word in ("CREATE", "CACHE", "ALTER", "REPLACE", "DESCRIBE", "DESC") and (
            following.is_name or following.text == "("
        ):
            self._scan_enclosed_query(i + 1, visible)
        elif self._is_query(i):
            self._scan_query(i, self.size, None, visible)
        else:
            self.scan_value(visible, i)

    def scan_value(self, visible: CteNames, start: int = 0) -> None:
        """Scan all tokens from ``start`` as an expression."""
        self._scan_expression(start, self.size, self.add_block(None), visible)

    def _scan_insert(self, i: int, visible: CteNames) -> None:
        """Skip the target of ``INSERT INTO t … query`` at ``i``, scan brackets before the query
        (columns, PARTITION) as expressions, then scan the query."""
        i = self._index_after_target(i)
        root = self.add_block(None)
        while i < self.size and not self._starts_query(i):
            if self.tokens[i].text == "(":
                if self._is_query(i):
                    break
                self._scan_expression(i + 1, self.partner[i], root, visible)
                i = self.partner[i]
            i += 1
        self._scan_query(i, self.size, root, visible)

    def _scan_enclosed_query(self, i: int, visible: CteNames) -> None:
        """Scan the query of ``CREATE … AS query`` and the like from ``i`` on; skip all before it.
        Nothing is scanned if there is none."""
        start = i
        while i < self.size:
            if self.tokens[i].text == "(":
                if i > start + 1 and self._is_query(i):
                    break
                i = self.partner[i]
            elif self._word(i) == "AS" and self._is_query(i + 1):
                i += 1
                break
            elif self._word(i) in ("SELECT", "WITH", "FROM", "VALUES") and (
                (self._starts_query(i) and i > start + 1) or i == start
            ):
                break
            elif self._word(i) == "QUERY" and i == start and self._is_query(i + 1):
                i += 1
                break
            i += 1
        if i < self.size and self._is_query(i):
            self._scan_query(i, self.size, None, visible)

    def scan_targets(self) -> None:
        """Note as a relation each name that may be a table's name: outside brackets, behind a word
        that a table's name can follow, such as INTO, or behind DESCRIBE, REFRESH or UPDATE as the
        first word. In doubt too many are noted. The scan ends at ``AS query``. A CTE's name is
        noted only where it cannot mean the CTE, as behind INTO."""
        root, i = self.add_block(None), 0
        declared: CteNames = frozenset()
        if self._word(0) == "WITH" and self._starts_query(0):
            i, declared = self.scan_with_clause(0, root, declared)
        if self._word(0) in ("DESCRIBE", "DESC", "REFRESH", "UPDATE") and self.tokens[1].is_name:
            self._scan_name(1, root, declared)
        words = ("TABLE", "INTO", "VIEW", "FROM", "USING", "LIKE", "EXISTS", "JOIN", "TABLES")
        while i < self.size:
            word = self._word(i)
            if word == "AS" and self._is_query(i + 1):
                return
            if word in words and self.tokens[i + 1].is_name:
                is_read = word in ("FROM", "USING", "JOIN") and self._word(i - 1) != "DELETE"
                self._scan_name(i + 1, root, declared if is_read else frozenset())
            i = self.partner.get(i, i) + 1
