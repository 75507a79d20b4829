"""An error by name where a lazy DataFrame outlives the files that it was made from.

Spark reads when the user asks, long after we handed the DataFrame over; what it then raises for a
file that is gone is a bare ``Py4JJavaError``. PySpark turns Java's exceptions into its own in one
place, ``convert_exception``, and there this module puts itself in front, for the files of ACID
directories only. Where that place is not found (Spark Connect), Spark's own error stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors.exceptions import captured

from acidsql.acid.layout import parse_directory
from acidsql.errors import SnapshotTooOldError

_GONE = "FAILED_READ_FILE.FILE_NOT_EXIST"
_PATH = re.compile(r"reading file (\S+?)\.? File does not exist")
_OURS = "_acidsql_names_missing_files"


def name_missing_files() -> None:
    """Raise SnapshotTooOldError for them, in this process, from now on. May be called again."""
    convert = getattr(captured, "convert_exception", None)
    if convert is None or hasattr(convert, _OURS):
        return

    def convert_exception(e: Any) -> Any:
        gone = _missing_file(e)
        return convert(e) if gone is None else _too_old(gone)

    setattr(convert_exception, _OURS, True)
    captured.convert_exception = convert_exception


def _missing_file(error: Any) -> str | None:
    """The file of an ACID directory that a Java exception, or what caused it, says is gone."""
    while error is not None:
        message = str(error.getMessage())
        if _GONE in message and (found := _PATH.search(message)):
            directory = found[1].split("/")[-2]
            return found[1] if parse_directory(directory) is not None else None
        error = error.getCause()
    return None


@contextmanager
def naming_missing(path: str) -> Iterator[None]:
    """Raise SnapshotTooOldError where a file that is read in here is gone; ``path``: its own, or
    the table's."""
    try:
        yield
    except FileNotFoundError as error:
        raise _too_old(str(error.filename or path)) from error


def _too_old(path: str) -> SnapshotTooOldError:
    return SnapshotTooOldError(
        f"'{path}' is gone, and with it rows of this DataFrame. Its table or partition was "
        "dropped, or the transaction that wrote it was rolled back, or the DataFrame is older than "
        "acidsql.lease.timeout and its files were cleaned up. Make it anew from the table.",
        path=path,
    )
