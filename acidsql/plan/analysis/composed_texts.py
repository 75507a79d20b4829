"""Remembers the texts that acidsql has composed, by which a late error finds the user's own text.

A DataFrame is lazy: Spark evaluates an expression long after its text was composed. If it fails for
a row, Spark's error has an offset in the composed text. The newest texts are remembered, as many as
need little memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from pyspark.errors import QueryContextType

from acidsql.plan.values.sqltext import Text
from acidsql.sql.text.tokens import Span

_MOST_TEXTS = 500
_MOST_CHARACTERS = 8 << 20  # of the composed texts together, without the newest one
_CUT = "..."  # where Spark's summary of a text is cut

# By the composed text, the newest last. They do not keep the tokens of the users' texts.
_texts: OrderedDict[str, Text] = OrderedDict()
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class UsersPlace:
    """A place in a statement as the user gave it."""

    statement: str
    span: Span


def remember_text(text: Text) -> None:
    """Remember a composed text; of too many, or too long ones, the oldest are forgotten."""
    remembered = text.without_tokens()
    sql = remembered.sql
    with _guard:
        _texts.pop(sql, None)
        characters = sum(map(len, _texts))
        while _texts and (len(_texts) >= _MOST_TEXTS or characters > _MOST_CHARACTERS):
            oldest, _ = _texts.popitem(last=False)
            characters -= len(oldest)
        _texts[sql] = remembered


def users_place(error: Any) -> UsersPlace | None:
    """Return the place in a user's statement that an error of Spark's is about; None if the error
    has no place in a text, or if the place is not in a remembered text's copy of the user's."""
    for context in error.getQueryContext() or ():
        if context.contextType() is not QueryContextType.SQL or context.startIndex() < 0:
            continue
        start, stop = context.startIndex(), max(context.stopIndex(), context.startIndex())
        text = _composed_text(context, start, stop)
        if text is not None and (span := text.place(start, stop)) is not None:
            return UsersPlace(str(text.source), span)
    return None


def _composed_text(context: Any, start: int, stop: int) -> Text | None:
    """Return the remembered text that an error's context is about: by the whole text, which a
    session with a JVM tells; over Spark Connect, by the fragment and the line around it."""
    with _guard:
        newest_first = list(reversed(_texts.values()))
        # Over Spark Connect this is a message, which has no whole text.
        java_context: Any = getattr(context, "_q", None)
        if hasattr(java_context, "sqlText"):
            whole = java_context.sqlText()
            return _texts.get(str(whole.get())) if whole.isDefined() else None
    line = next(iter(context.summary().splitlines()[1:2]), "").removeprefix(_CUT)
    fragment, line = context.fragment(), line.removesuffix(_CUT)
    return next(
        (
            text
            for text in newest_first
            if text.sql[start : stop + 1] == fragment and line in text.sql
        ),
        None,
    )
