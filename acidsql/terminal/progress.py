"""One line that says what a statement does, from its third second on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acidsql.api.session import Session
from acidsql.storage.files.sizes import size_text
from acidsql.storage.spark.session.job_progress import Tasks, tagged_jobs, watched_tasks
from acidsql.txn.waits import waits_shown_by

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
    session: Session, show: Show, *, first_s: float = _FIRST_S, next_s: float = _NEXT_S
) -> Iterator[None]:
    """Show the progress of the statement that the block runs, if it takes longer than ``first_s``,
    and call ``show(None)`` at the end, even if no line was shown. The block's Spark jobs get a tag,
    by which they are found. Waits of the block for others are shown, and not logged.

    Args:
        session: The session that runs the statement.
        show: Shows a line; another thread calls it.
        first_s: The seconds before the first line.
        next_s: The seconds between two lines.
    """
    wait_text: str | None = None

    def note_wait(text: str | None) -> None:
        """Keep the newest sentences about a wait, for the next line."""
        nonlocal wait_text
        wait_text = text

    def look(tasks: Tasks) -> None:
        show(progress_line(tasks, wait_text))

    with (
        waits_shown_by(note_wait),
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


def progress_line(tasks: Tasks, wait_text: str | None) -> str:
    """Return what a statement does now, in words: how many tasks of its jobs are done and run, and
    what they have read; or else, without tasks, whom it waits for (``wait_text``, None if it waits
    for nobody); or else that the driver works."""
    if tasks.total:
        read = f", {tasks.rows:,} rows, {size_text(tasks.bytes)} read" if tasks.rows else ""
        return f"{tasks.finished} of {tasks.total} tasks are done, {tasks.running} run{read}"
    return wait_text or "in the driver: plan, files, commit"
