"""The error of a reader whose file is gone. Spark's workers import this module, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acidsql.errors import AcidSqlError, SnapshotTooOldError


@contextmanager
def naming_missing(path: str) -> Iterator[None]:
    """Raise SnapshotTooOldError in place of a FileNotFoundError of the block; other errors pass.
    Its message has the path that the error tells, or ``path`` if it tells none.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise file_gone_error(str(error.filename or path)) from error


def file_gone_error(path: str) -> SnapshotTooOldError:
    """Return the error for a reader whose file is gone."""
    return SnapshotTooOldError(
        f"'{path}' is gone, and with it rows of this DataFrame. Its table or partition was "
        "dropped, or the transaction that wrote it was rolled back, or the DataFrame is older than "
        "acidsql.lease.timeout and its files were cleaned up. Read the table again.",
        path=path,
    )


def directory_gone_error(path: str, error: FileNotFoundError) -> SnapshotTooOldError:
    """Return the error for a reader that lists a table's or partition's directory which is gone.

    ``path``: the directory; the message names the missing file of ``error`` first.
    """
    missing = error.filename or path
    return SnapshotTooOldError(
        f"'{missing}' is gone, and with it rows of this snapshot. The table or the partition was "
        "dropped meanwhile: read it again. Or somebody has deleted the directory: restore it, or "
        f"drop the table or partition that the catalog has at '{path}'.",
        path=missing,
    )


@contextmanager
def check_after_block(check: Callable[[], None]) -> Iterator[None]:
    """Call ``check`` after the block, also if the block fails with an AcidSqlError or OSError: then
    ``check`` may raise the better error. Other errors pass without the call."""
    try:
        yield
    except (AcidSqlError, OSError):
        check()
        raise
    check()
