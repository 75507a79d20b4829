"""Finds the effect of a statement of Spark's from its first words.

Spark does not know our transactions: ROLLBACK cannot undo a change that Spark made. So a
transaction must refuse statements that change something. An unknown statement counts as a change.
"""

from __future__ import annotations

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import BRANCHES, QUERY_STARTS
from acidsql.sql.parsed.statements import Effect
from acidsql.sql.text.tokens import TokenKind, words

_EFFECTS = {
    **dict.fromkeys(QUERY_STARTS - {"(", "WITH"}, Effect.READS),
    **dict.fromkeys(words("SHOW DESCRIBE DESC EXPLAIN LIST"), Effect.READS),
    **dict.fromkeys(words("SET RESET USE DECLARE CACHE UNCACHE CLEAR REFRESH ADD"), Effect.SESSION),
}
# The name of these statements is the first word alone.
_ONE_WORD_NAMES = QUERY_STARTS | words("INSERT UPDATE DELETE MERGE EXPLAIN CALL")
# The last word of a statement's name: CREATE OR REPLACE TABLE, CACHE LAZY TABLE, LOAD DATA.
_OBJECTS = words(
    "TABLE TABLES VIEW VIEWS FUNCTION FUNCTIONS DATABASE DATABASES SCHEMA SCHEMAS NAMESPACE "
    "NAMESPACES VARIABLE VAR INDEX ROLE CACHE DATA CATALOG IMMEDIATE FLOW MACRO PROCEDURE"
)
_SESSION_OBJECTS = words("VIEW FUNCTION VARIABLE VAR")


def effect_of_word(word: str) -> Effect:
    """Return the effect of a statement by its first word alone, in upper case: READS for SELECT,
    SHOW and the like, SESSION for SET, CACHE and the like, CHANGES for an unknown word."""
    return _EFFECTS.get(word, Effect.CHANGES)


def effect_and_name(c: Cursor) -> tuple[Effect, str]:
    """Return the effect of a statement of Spark's, and its name in upper case, as CREATE TABLE or
    INSERT. Brackets and a WITH clause before the statement are skipped.

    CREATE and DROP of a temporary view, function or variable have the effect SESSION; otherwise the
    name's first word decides. ``FROM … INSERT`` is (CHANGES, "INSERT"). A statement that is not
    known has the effect CHANGES; if its WITH clause cannot be read, its name is "WITH".

    Args:
        c: A cursor at the first token. The call moves the cursor.
    """
    while c.is_at("(") or c.is_at("WITH"):
        if not c.accept("(") and (not c.skip_ctes() or c.is_at_end):
            return Effect.CHANGES, "WITH"
    if c.is_at("FROM") and _may_insert(c):
        return Effect.CHANGES, "INSERT"
    name = _statement_name(c)
    if name[0] in ("CREATE", "DROP") and {"TEMP", "TEMPORARY"} & set(name):
        effect = Effect.SESSION if name[-1] in _SESSION_OBJECTS else Effect.CHANGES
    else:
        effect = effect_of_word(name[0])
    return effect, " ".join(name)


def _may_insert(c: Cursor) -> bool:
    """Whether ``FROM …`` may be a multi-insert. True also for INSERT INTO inside brackets."""
    places = range(c.index, len(c.tokens))
    return any(c.has_words_at(index, *branch) for index in places for branch in BRANCHES)


def _statement_name(c: Cursor) -> list[str]:
    """Return the words that name a statement, in upper case, from the first word to an object, as
    [CREATE, TABLE]. It is the first word alone for SELECT, INSERT and the like, and if no object
    follows within four words."""
    first = c.token.upper or c.token.text
    if first in _ONE_WORD_NAMES:
        return [first]
    name_words = [first]
    for ahead in range(1, 5):
        token = c.peek(ahead)
        if token.kind is not TokenKind.WORD:
            break
        name_words.append(token.upper)
        if token.upper in _OBJECTS:
            return name_words
    return [first]
