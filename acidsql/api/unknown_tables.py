"""Notes on Spark's errors about what Spark cannot do, but acidsql can: read a table that Spark does
not have, and write in each mode."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from acidsql.api.core import SessionCore
from acidsql.api.extension.registry import is_extended
from acidsql.plan.analysis.evaluation_errors import add_note_maker
from acidsql.sql.text.given_names import table_parts

_MISSING, _NO_MODE = "TABLE_OR_VIEW_NOT_FOUND", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
_sessions: WeakSet[SessionCore] = WeakSet()


def note_tables_of(session: SessionCore) -> None:
    """Let Spark's errors about missing tables tell, in this process, that a session of acidsql has
    the table, as long as the session is open. Let errors about the mode of
    ``df.write.format("acidsql")`` name the call that can."""
    _sessions.add(session)
    add_note_maker(_note)
    add_note_maker(_note_about_mode)


def _note_about_mode(error: Any) -> str | None:
    """Return the note for an error about the mode in which a data source is written; None if it is
    another error, or about another source."""
    if error.getCondition() != _NO_MODE or "acidsql" not in error.getMessageParameters().values():
        return None
    return (
        "Python's data sources cannot write in transactions. Write acid.insert_into('db.t', df), "
        "or acid.create_table('db.t', df) for a new table."
    )


def _note(error: Any) -> str | None:
    """Return the note for an error of Spark's; None if no open session has the table."""
    if not str(error.getCondition()).startswith(_MISSING):
        return None
    name = error.getMessageParameters()["relationName"]
    parts = table_parts(name)
    owners = [session for session in _open_sessions() if session._runner.may_be_ours(parts)]
    if not owners:
        return None
    if any(map(is_extended, owners)):
        advice = (
            " Use acid.sql or acid.table: connect(extend=True) takes over neither other Spark "
            "sessions, nor all calls, nor names that only Spark computes"
        )
    else:
        advice = (
            " Use acid.sql or acid.table, or let spark.sql and Spark's other calls know the table: "
            "acidsql.connect(spark, extend=True)"
        )
    return f"acidsql has {name}.{advice}. In foreachBatch, use acid.sink."


def _open_sessions() -> list[SessionCore]:
    """Return the sessions that were not closed."""
    return [session for session in list(_sessions) if not session._closed]
