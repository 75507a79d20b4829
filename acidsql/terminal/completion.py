"""Completes a word of a statement: keywords, databases, tables, columns.

Keywords are known without Spark. Names are asked for in the background, so that a slow store or a
busy Spark never stops a person who types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from acidsql.errors import AcidSqlError
from acidsql.sql.text.lookahead import RELATION_ENDS
from acidsql.sql.text.tokens import SqlText, Token, split_statements, tokenize, words
from acidsql.storage.columns import quote
from acidsql.terminal.background import BackgroundAnswers, Questions
from acidsql.terminal.keywords import KEYWORDS

# After these words stands the name of a table or of a database.
_BEFORE_TABLE = words("FROM JOIN INTO UPDATE TABLE USING DESCRIBE DESC HISTORY")
_BEFORE_DATABASE = words("USE DATABASE SCHEMA IN")
# A word behind a table's name that is no alias.
_NO_ALIAS = RELATION_ENDS | words(
    "SET VALUES WHEN PARTITION VERSION TIMESTAMP RETURNING REPLACE BY TO KEYS"
)
_WORD = re.compile(r"\w*\Z")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class Names(Protocol):
    """The names that statements may use, as ``api.names.NameLists`` has them."""

    def acid_databases(self) -> list[str]: ...

    def spark_databases(self) -> list[str]: ...

    def acid_tables(self, database: str | None = None) -> list[str]: ...

    def spark_tables(self, database: str | None = None) -> list[str]: ...

    def columns(self, parts: tuple[str, ...]) -> list[str]: ...


@dataclass
class StatementCompleter:
    """Completes words of one session's statements. Any thread may call its method.

    Args:
        names: Lists databases, tables and columns.
        background: Asks ``names``, and limits the time that this takes.
    """

    names: Names
    background: BackgroundAnswers = field(default_factory=BackgroundAnswers)

    def prepare(self) -> None:
        """Ask for the names of tables and databases in the background, and do not wait. The
        answer to a question takes longest, so a shell calls this before a person types."""
        self.background.prepare({**self._database_questions(), **self._table_questions()})

    def completions(self, text: str, cursor: int) -> tuple[int, list[str]]:
        """Return the words that may replace the word that ends at the cursor.

        Args:
            text: One or more statements, the last of them perhaps not complete.
            cursor: The cursor's offset in the text.

        Returns:
            The offset where the word starts (at its back quote, if it has one), and the sorted
            words that begin with what is typed, whatever the case. There are none in a string or in
            a comment. A name that needs back quotes has them. Names that nobody has told in time
            are missing, but the next call may have them.
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
        names, may_be_keyword = self._candidate_names(text, cursor, before)
        candidates = {*map(_sql_name, names), *(KEYWORDS if may_be_keyword else ())}
        prefix = word[0].lower()
        return start, sorted(n for n in candidates if n.strip("`").lower().startswith(prefix))

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
        names, _ = self._candidate_names(surroundings, start, before)
        quoted_names = sorted(map(quote, {*names}))
        end = -1 if closed == 1 else None  # the back quote that follows stays
        return start, [n[:end] for n in quoted_names if n[1:].lower().startswith(prefix)]

    def _candidate_names(
        self, text: str, cursor: int, before: list[Token]
    ) -> tuple[list[str], bool]:
        """Return the names that may stand at the cursor, whatever is typed of the word, and whether
        a keyword may stand there, too. Some names come twice. ``before``: the tokens before the
        word.

        Behind ``a.b.`` these are `_child_names`; behind FROM and the like, tables and databases;
        behind USE, IN and the like, databases, if the statement names no table. Else they are the
        columns of the statement's tables, the names and aliases of these tables in lower case, and
        keywords.
        """
        tables = _named_tables(_statement_tokens(text, cursor))
        path = _dotted_prefix(before)
        if path:
            return self._child_names(path, tables), False
        last = before[-1].upper if before else ""
        if last in _BEFORE_TABLE:
            questions = {**self._database_questions(), **self._table_questions()}
            return self.background.answers(questions), False
        if last in _BEFORE_DATABASE and not tables:
            return self.background.answers(self._database_questions()), False
        return [*self._columns_of({*tables.values()}), *tables], True

    def _database_questions(self) -> Questions:
        """Return the questions for all databases."""
        return {
            ("databases", "acid"): self.names.acid_databases,
            ("databases", "spark"): self.names.spark_databases,
        }

    def _table_questions(self, database: str | None = None) -> Questions:
        """Return the questions for the tables of a database; None: of the current one."""
        place = () if database is None else (database,)
        return {
            ("tables", "acid", *place): partial(self.names.acid_tables, database),
            ("tables", "spark", *place): partial(self.names.spark_tables, database),
        }

    def _child_names(self, path: tuple[str, ...], tables: dict[str, tuple[str, ...]]) -> list[str]:
        """Return the names that may stand behind ``path.``: if ``path`` is one name of ``tables``
        (a table of the statement or its alias), this table's columns; else the tables of the
        database ``path`` and the columns of the table ``path``."""
        if len(path) == 1 and path[0].lower() in tables:
            path = tables[path[0].lower()]
        elif len(path) == 1:
            questions = {**self._table_questions(path[0]), **self._column_questions({path})}
            return self.background.answers(questions)
        return self._columns_of({path})

    def _columns_of(self, tables: set[tuple[str, ...]]) -> list[str]:
        """Return the names of the columns of tables, which are given by the parts of their
        names."""
        return self.background.answers(self._column_questions(tables))

    def _column_questions(self, tables: set[tuple[str, ...]]) -> Questions:
        """Return the questions for the columns of tables."""
        return {("columns", *parts): partial(self.names.columns, parts) for parts in tables}


def _sql_name(name: str) -> str:
    """Return a name in back quotes if it needs them."""
    return name if _PLAIN.fullmatch(name) else quote(name)


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
