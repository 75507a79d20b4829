"""One line that says what a statement does, from its third second on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acidsql.api.session import Session
from acidsql.errors import AcidSqlError
from acidsql.metastore.interface import LockState
from acidsql.storage.files.sizes import size_text
from acidsql.storage.spark.session.job_progress import Tasks, tagged_jobs, watched_tasks
from acidsql.txn.locks import describe_lock

# Shows a line in the place of the last one; None takes it away.
Show = Callable[[str | None], None]
_FIRST_S, _NEXT_S = 2.0, 0.5
_UNDONE = (
    "Interrupted. The statement is undone, unless its COMMIT had begun: DESCRIBE HISTORY has what "
    "is committed."
)
_FINISHED = "Interrupted. The statement was done before."


@contextmanager
def show_progress(
    session: Session, text: str, show: Show, *, first_s: float = _FIRST_S, next_s: float = _NEXT_S
) -> Iterator[None]:
    """Show the progress of the statement that the block runs, if it takes longer than ``first_s``,
    and call ``show(None)`` at the end, even if no line was shown. The block's Spark jobs get a tag,
    by which they are found.

    Args:
        session: The session that runs the statement.
        text: The statement.
        show: Shows a line; another thread calls it.
        first_s: The seconds before the first line.
        next_s: The seconds between two lines.
    """

    def look(tasks: Tasks) -> None:
        show(progress_line(session, text, tasks))

    with (
        tagged_jobs(session.spark) as tag,
        watched_tasks(
            session.spark, tag, look, first_s=first_s, next_s=next_s, end=lambda: show(None)
        ),
    ):
        yield


def interruption_message(session: Session, before: object) -> str:
    """Return a message about a statement that Ctrl-C has interrupted: that it was done, if the
    session has a newer receipt than ``before``, or else that it is undone."""
    return _UNDONE if session.last is before else _FINISHED


def progress_line(session: Session, text: str, tasks: Tasks) -> str:
    """Return what a statement does now, in words: how many tasks of its jobs are done and run, and
    what they have read; or else, without tasks, the lock that it waits for; or else that the driver
    works."""
    if tasks.total:
        read = f", {tasks.rows:,} rows, {size_text(tasks.bytes)} read" if tasks.rows else ""
        return f"{tasks.finished} of {tasks.total} tasks are done, {tasks.running} run{read}"
    return _lock_wait_text(session, text) or "in the driver: plan, files, commit"


def _lock_wait_text(session: Session, text: str) -> str | None:
    """Return which lock a statement waits for, and who has it, in words; None if it waits for none,
    if its blocker is not known, or if the metastore does not answer. A lock is taken for the
    statement's own if the note on the lock, which may be cut, begins the statement's text."""
    try:
        locks = session.metastore.show_locks()
    except AcidSqlError:
        return None
    places = {(lock.lock_id, lock.internal_id): lock for lock in locks}
    for lock in locks:
        is_ours = bool(lock.agent_info) and text.startswith(lock.agent_info.rstrip("…"))
        if lock.state is LockState.WAITING and is_ours and lock.blocked_by in places:
            return f"waits for a lock. {describe_lock(places[lock.blocked_by])}"
    return None
