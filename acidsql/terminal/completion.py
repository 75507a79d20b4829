"""Completes a word of a statement: keywords, databases, tables, columns.

The names come from SHOW and DESCRIBE, so acidsql's tables, Spark's and views are known alike.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from acidsql.errors import AcidSqlError
from acidsql.plan.analysis.lower import no_log
from acidsql.sql.text.lookahead import RELATION_ENDS
from acidsql.sql.text.tokens import SqlText, Token, split_statements, tokenize, words
from acidsql.storage.columns import quote, quoted_path

# After these words stands the name of a table or of a database.
_BEFORE_TABLE = words("FROM JOIN INTO UPDATE TABLE USING DESCRIBE DESC HISTORY")
_BEFORE_DATABASE = words("USE DATABASE SCHEMA IN")
# A word behind a table's name that is no alias.
_NO_ALIAS = RELATION_ENDS | words(
    "SET VALUES WHEN PARTITION VERSION TIMESTAMP RETURNING REPLACE BY TO KEYS"
)
# acidsql's words that Spark's own list lacks.
_OWN_WORDS = words(
    "ABORT AUTO CDC COMPACT COMPACTIONS CONFLICTS HISTORY KEYS LOAD LOCK MATCHED MERGE RELEASE "
    "RETURNING REVERT ROLLBACK SAVEPOINT SEQUENCE SKIP STREAMS TRANSACTION TRANSACTIONS UNLOCK WAIT"
)
_WORD = re.compile(r"\w*\Z")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


@dataclass
class StatementCompleter:
    """Completes words of one session's statements.

    Args:
        run: ``Session.sql``.
    """

    run: Callable[[str], DataFrame]

    def completions(self, text: str, cursor: int) -> tuple[int, list[str]]:
        """Return the words that may replace the word that ends at the cursor.

        Args:
            text: One or more statements, the last of them perhaps not complete.
            cursor: The cursor's offset in the text.

        Returns:
            The offset where the word starts (at its back quote, if it has one), and the sorted
            words that begin with what is typed, whatever the case. There are none in a string or in
            a comment. A name that needs back quotes has them.
        """
        word = _WORD.search(text, 0, cursor)
        assert word is not None  # it may be empty
        start = word.start()
        try:
            before = tokenize(text[:start])
        except AcidSqlError:
            return self._quoted_completions(text, cursor)
        if _is_in_comment(text[:start], before):
            return start, []
        names, prefix = set(self._candidate_names(text, cursor, before)), word[0].lower()
        return start, sorted(n for n in names if n.strip("`").lower().startswith(prefix))

    def _quoted_completions(self, text: str, cursor: int) -> tuple[int, list[str]]:
        """Return the offset of the open back quote at the cursor, and the names, no keywords, that
        may replace the word behind it, in back quotes. If a back quote stands right behind the
        cursor, the names lack their closing one. If the cursor is in another open quote or in a
        comment, return the cursor and []."""
        start = text.rfind("`", 0, cursor)
        try:
            before = tokenize(text[: max(start, 0)])
        except AcidSqlError:
            return cursor, []
        if start < 0 or _is_in_comment(text[:start], before):
            return cursor, []
        rest = text[cursor:].split("\n")[0]
        closed = rest.find("`") + 1
        surroundings, prefix = (
            text[:start] + text[cursor + closed :],
            text[start + 1 : cursor].lower(),
        )
        names = {*self._candidate_names(surroundings, start, before)}.difference(self._keywords)
        quoted_names = sorted(n if n.startswith("`") else quote(n) for n in names)
        end = -1 if closed == 1 else None  # the back quote that follows stays
        return start, [n[:end] for n in quoted_names if n[1:].lower().startswith(prefix)]

    def _candidate_names(self, text: str, cursor: int, before: list[Token]) -> list[str]:
        """Return the names and keywords that may stand at the cursor, whatever is typed of the
        word; some come twice. ``before``: the tokens before the word.

        Behind ``a.b.`` these are `_child_names`; behind FROM and the like, tables and databases;
        behind USE, IN and the like, databases, if the statement names no table. Else they are the
        columns of the statement's tables, the names and aliases of these tables in lower case, and
        all keywords.
        """
        tables = _named_tables(_statement_tokens(text, cursor))
        path = _dotted_prefix(before)
        if path:
            return self._child_names(path, tables)
        last = before[-1].upper if before else ""
        if last in _BEFORE_TABLE:
            return [*self._tables(), *self._databases()]
        if last in _BEFORE_DATABASE and not tables:
            return self._databases()
        columns = [name for parts in {*tables.values()} for name in self._table_columns(parts)]
        return [*columns, *tables, *self._keywords]

    def _child_names(self, path: tuple[str, ...], tables: dict[str, tuple[str, ...]]) -> list[str]:
        """Return the names that may stand behind ``path.``: if ``path`` is one name of ``tables``
        (a table of the statement or its alias), this table's columns; else the tables of the
        database ``path`` or, if there are none or ``path`` has several parts, the columns of the
        table ``path``."""
        if len(path) == 1 and path[0].lower() in tables:
            return self._table_columns(tables[path[0].lower()])
        return (self._tables(path[0]) if len(path) == 1 else []) or self._table_columns(path)

    def _databases(self) -> list[str]:
        """Return the names of all databases, as they are written in SQL."""
        return self._column_of_query("SHOW DATABASES")

    def _tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's tables, by default of the current one, as they are
        written in SQL; [] if there is no such database."""
        inside = "" if database is None else f" IN {quote(database)}"
        return self._column_of_query(f"SHOW TABLES{inside}", "tableName")

    def _table_columns(self, parts: tuple[str, ...]) -> list[str]:
        """Return the names of a table's columns, as they are written in SQL: the first block of the
        rows of DESCRIBE TABLE; [] if there is no such table."""
        names = self._column_of_query(f"DESCRIBE TABLE {quoted_path(parts)}")
        # What follows the columns begins with an empty line or a heading.
        return list(itertools.takewhile(lambda name: name[:1] not in ("", "#"), names))

    @cached_property
    def _keywords(self) -> list[str]:
        """Return the keywords of Spark and of acidsql, each once, in alphabetical order; if Spark's
        cannot be asked for, acidsql's alone. They are fetched once."""
        return sorted({*_OWN_WORDS, *self._column_of_query("SELECT keyword FROM sql_keywords()")})

    def _column_of_query(self, query: str, column: str | None = None) -> list[str]:
        """Run a query, and return one column of its rows, by default the first, as names in SQL; []
        if the query fails with an error of acidsql or Spark, which is not logged."""
        with suppress(AcidSqlError, PySparkException), no_log():
            frame = self.run(query)
            rows = frame.select(column or frame.columns[0]).collect()
            return [_sql_name(row[0]) for row in rows]
        return []


def _sql_name(name: str) -> str:
    """Return a name in back quotes if it needs them. A heading of DESCRIBE (``# …``) and "" stay as
    they are."""
    return name if _PLAIN.fullmatch(name) or name[:1] in ("", "#") else quote(name)


def _is_in_comment(text: str, before: list[Token]) -> bool:
    """Whether a text ends inside of a comment ``-- …``: behind its last token, its last line has
    ``--``. ``before``: the tokens of the text."""
    return "--" in text[before[-1].end if before else 0 :].rpartition("\n")[2]


def _dotted_prefix(before: list[Token]) -> tuple[str, ...]:
    """Return the qualifiers before the cursor, from the tokens before it: ``FROM a.b.`` → (a, b).
    Return () if the last token is no dot behind a name."""
    parts: list[str] = []
    while len(before) > 1 and before[-1].text == "." and before[-2].is_name:
        parts.insert(0, before[-2].value)
        before = before[:-2]
    return tuple(parts)


def _statement_tokens(text: str, cursor: int) -> list[Token]:
    """Return the tokens of the statement around the cursor, also those behind it; [] between
    statements. If the text cannot be cut into statements, only the text before the cursor counts.
    """
    text = SqlText(text)
    try:
        spans = split_statements(text)
    except AcidSqlError:  # behind the place
        text = SqlText(text[:cursor])
        spans = split_statements(text)
    for span in reversed(spans):
        if span.start <= cursor:
            return [] if ";" in text[span.end : cursor] else tokenize(text, span)
    return []


def _named_tables(tokens: list[Token]) -> dict[str, tuple[str, ...]]:
    """Return the tables that a statement names: alias, and last part of the name, in lower case →
    the parts of the table's name, as written. A name counts behind FROM, JOIN, INTO, UPDATE and the
    like, and behind any comma that follows such a name, so columns may be among them."""
    tables: dict[str, tuple[str, ...]] = {}
    position = 0
    while position < len(tokens):
        opens = tokens[position].upper in _BEFORE_TABLE or (tables and tokens[position].text == ",")
        position += 1
        if not opens:
            continue
        parts: list[str] = []
        while position < len(tokens) and tokens[position].is_name:
            parts.append(tokens[position].value)
            position += 1
            if position == len(tokens) or tokens[position].text != ".":
                break
            position += 1
        if not parts:
            continue
        tables[parts[-1].lower()] = tuple(parts)
        alias = position + (position < len(tokens) and tokens[position].upper == "AS")
        if alias < len(tokens) and tokens[alias].is_name and tokens[alias].upper not in _NO_ALIAS:
            tables[tokens[alias].value.lower()] = tuple(parts)
    return tables
