"""One error for every way in which a damaged file can fail. This module runs in workers.

A reader of meaningless bytes may fail anywhere: in zlib, in Arrow's C++, at a list that is too
short. So all code that reads files does so in ``naming_damage``, which turns all these errors into
one ``FormatError``. ORC has no checksums: wrong bytes that can still be decoded are not noticed.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from acidsql.errors import FormatError, UnsupportedError

MISPLACED_EVENTS = "INVALID_ACID_FORMAT.MISPLACED_EVENTS"

# ValueError includes UnicodeDecodeError and ArrowInvalid; LookupError: IndexError and KeyError.
_FAULTS = (
    ValueError, LookupError, ArithmeticError, TypeError, NotImplementedError, RuntimeError,
    MemoryError, EOFError, OSError, StopIteration, struct.error, zlib.error, pa.ArrowException,
)  # fmt: skip
# How Arrow says that a request to an object store has failed. Such an error has no number.
_OF_STORES = ("AWS Error", "google::cloud::", "Azure Error")
_GONE_MESSAGES = (
    "NO_SUCH_KEY", "RESOURCE_NOT_FOUND", "[BlobNotFound]", "No such file or directory",
    "No such directory",
)  # fmt: skip


@contextmanager
def naming_damage(path: str) -> Iterator[None]:
    """Raise FormatError with the path if the file that the block reads is damaged.

    Any error of a decoder counts as damage; a FormatError that names a path already passes. Errors
    of the file system (with an ``errno``) and the object store pass: an unreachable file need not
    be damaged. If the object store says that the file is gone, raise FileNotFoundError.
    """
    try:
        yield
    except FormatError as error:
        if "path" in error.parameters:
            raise
        raise damaged_file_error(path, error.message, error.parameters.get("offset")) from error
    except _FAULTS as error:
        if isinstance(error, OSError) and (error.errno is not None or _is_of_store(error)):
            if is_gone(error):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
            raise
        raise damaged_file_error(path, _error_text(error)) from error


def is_gone(error: OSError) -> bool:
    """Whether an error has words with which an object store says that there is no such object.
    False for an error that has a number (``errno``), as a store's never has.
    """
    return error.errno is None and any(words in str(error) for words in _GONE_MESSAGES)


def _is_of_store(error: OSError) -> bool:
    """Whether a request to an object store has failed, as Arrow's message says."""
    return any(words in str(error) for words in _OF_STORES)


def damaged_file_error(path: str, fault: str, offset: object = None) -> FormatError:
    """Return the error for a file that is damaged, or is not of the right kind. Its parameters have
    the arguments: ``path``, ``reason`` and, if it is known, ``offset``.

    Args:
        path: The file.
        fault: What is wrong with the file.
        offset: The position of the damage in bytes; None if it is unknown.
    """
    at = "" if offset is None else f", at byte {offset}"
    parameters = {"path": path, "reason": fault} | ({} if offset is None else {"offset": offset})
    return FormatError(
        f"'{path}' cannot be read{at}: {fault}. If the file is damaged, restore it from a backup: "
        "without the file its rows are lost",
        **parameters,  # type: ignore[arg-type]
    )


def misplaced_events_error(path: str, fault: str) -> FormatError:
    """Return the error for a file whose events are sound, but in the wrong file or order. Its
    condition is MISPLACED_EVENTS, its parameters are ``path`` and ``reason``.

    Args:
        path: The file.
        fault: Which rule it breaks.
    """
    return FormatError(
        f"'{path}' breaks a rule of Hive's format: {fault}. No row is lost: queries of acidsql "
        "read the events wherever they are. In a table without buckets, a minor or major "
        "compaction writes sound files; in a bucketed table, INSERT OVERWRITE of the table with "
        "its own rows does",
        condition=MISPLACED_EVENTS,
        path=path,
        reason=fault,
    )


def finer_timestamps_error(path: str) -> UnsupportedError:
    """Return the error for a file whose timestamps are finer than a microsecond, which we cannot
    rewrite.
    """
    return UnsupportedError(
        f"'{path}' has timestamps finer than a microsecond, which a compaction by acidsql would "
        "cut. Let Hive compact this table.",
        condition="UNSUPPORTED_FEATURE.NANOSECONDS",
        path=path,
    )


def reason_of(error: FormatError) -> str:
    """Return what is wrong with a file, for a message that already names the file: the error's
    parameter ``reason``, which has no path in it, or else the whole message.
    """
    return str(error.parameters.get("reason", error.message))


def _error_text(error: BaseException) -> str:
    """Return the first line of an error's message, without a dot at its end; without a message the
    name of the error's class.
    """
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
