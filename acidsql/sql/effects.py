"""Finds the effect of a statement of Spark's from its first words.

Spark does not know our transactions: ROLLBACK cannot undo a change that Spark made. So a
transaction must refuse statements that change something. An unknown statement counts as a change.
"""

from __future__ import annotations

from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import BRANCHES, QUERY_STARTS
from acidsql.sql.statements import Effect
from acidsql.sql.tokens import Kind, words

_EFFECTS = {
    **dict.fromkeys(QUERY_STARTS - {"(", "WITH"}, Effect.READS),
    **dict.fromkeys(words("SHOW DESCRIBE DESC EXPLAIN LIST"), Effect.READS),
    **dict.fromkeys(words("SET RESET USE DECLARE CACHE UNCACHE CLEAR REFRESH ADD"), Effect.SESSION),
}
# The name of these statements is the first word alone.
_ONE_WORD = QUERY_STARTS | words("INSERT UPDATE DELETE MERGE EXPLAIN CALL")
# The last word of a statement's name: CREATE OR REPLACE TABLE, CACHE LAZY TABLE, LOAD DATA.
_THINGS = words(
    "TABLE TABLES VIEW VIEWS FUNCTION FUNCTIONS DATABASE DATABASES SCHEMA SCHEMAS NAMESPACE "
    "NAMESPACES VARIABLE VAR INDEX ROLE CACHE DATA CATALOG IMMEDIATE FLOW MACRO PROCEDURE"
)
_OF_SESSION = words("VIEW FUNCTION VARIABLE VAR")


def effect_of_word(word: str) -> Effect:
    """The effect of a statement with this first word, if no other word is known."""
    return _EFFECTS.get(word, Effect.CHANGES)


def effect_and_name(c: Cursor) -> tuple[Effect, str]:
    """The effect of a statement, and its name (CREATE TABLE, INSERT).

    Args:
        c: A cursor at the first token. The call moves the cursor.
    """
    while c.at("(") or c.at("WITH"):
        if not c.accept("(") and (not c.skip_ctes() or c.done):
            return Effect.CHANGES, "WITH"
    if c.at("FROM") and _inserts(c):
        return Effect.CHANGES, "INSERT"
    name = _name(c)
    if name[0] in ("CREATE", "DROP") and {"TEMP", "TEMPORARY"} & set(name):
        effect = Effect.SESSION if name[-1] in _OF_SESSION else Effect.CHANGES
    else:
        effect = effect_of_word(name[0])
    return effect, " ".join(name)


def _inserts(c: Cursor) -> bool:
    """Whether ``FROM …`` may be a multi-insert. True also for INSERT INTO inside brackets."""
    places = range(c.index, len(c.tokens))
    return any(c.words_at(index, *branch) for index in places for branch in BRANCHES)


def _name(c: Cursor) -> list[str]:
    first = c.token.upper or c.token.text
    if first in _ONE_WORD:
        return [first]
    found = [first]
    for ahead in range(1, 5):
        token = c.peek(ahead)
        if token.kind is not Kind.WORD:
            break
        found.append(token.upper)
        if token.upper in _THINGS:
            return found
    return [first]
