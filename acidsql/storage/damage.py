"""One error for every way in which a damaged file can fail. Runs in workers.

A reader of bytes that mean nothing fails somewhere, in zlib, in Arrow's C++, in a list that is too
short. Whoever reads a file does so in ``naming_damage``, which makes one ``FormatError`` of it all.
ORC has no checksums: data bytes that are wrong and still can be decoded are shown as they are.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from acidsql.errors import FormatError

# ValueError: also UnicodeDecodeError, ArrowInvalid. LookupError: IndexError, KeyError.
_FAULTS = (
    ValueError, LookupError, ArithmeticError, TypeError, NotImplementedError, RuntimeError,
    MemoryError, EOFError, OSError, StopIteration, struct.error, zlib.error, pa.ArrowException,
)  # fmt: skip


@contextmanager
def naming_damage(path: str) -> Iterator[None]:
    """Raise FormatError, with the path, where a file that is read in here is damaged.

    Errors of the file system stay: that a file cannot be reached says nothing about its bytes.
    """
    try:
        yield
    except FormatError as error:
        if "path" in error.parameters:
            raise
        raise damaged(path, error.message, error.parameters.get("offset")) from error
    except _FAULTS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise damaged(path, _words(error)) from error


def damaged(path: str, what: str, offset: object = None) -> FormatError:
    """The error of a file that is not, or not any more, what it must be.

    Args:
        path: The file.
        what: Is wrong with it.
        offset: Where, in bytes, if that is known.
    """
    at = "" if offset is None else f", at byte {offset}"
    known = {"path": path, "reason": what} | ({} if offset is None else {"offset": offset})
    return FormatError(
        f"'{path}' cannot be read{at}: {what}. If the file is damaged, put it back from a backup: "
        "without it the rows in it are lost",
        **known,  # type: ignore[arg-type]
    )


def reason_of(error: FormatError) -> str:
    """What is wrong with a file, for a message that names the file itself."""
    return str(error.parameters.get("reason", error.message))


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
