"""The error of a reader whose file is gone; also for Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from acidsql.errors import SnapshotTooOldError


@contextmanager
def naming_missing(path: str) -> Iterator[None]:
    """Raise SnapshotTooOldError where a file that is read in here is gone; ``path``: its own, or
    the table's."""
    try:
        yield
    except FileNotFoundError as error:
        raise too_old(str(error.filename or path)) from error


def too_old(path: str) -> SnapshotTooOldError:
    """What a reader is told whose file is gone."""
    return SnapshotTooOldError(
        f"'{path}' is gone, and with it rows of this DataFrame. Its table or partition was "
        "dropped, or the transaction that wrote it was rolled back, or the DataFrame is older than "
        "acidsql.lease.timeout and its files were cleaned up. Make it anew from the table.",
        path=path,
    )
