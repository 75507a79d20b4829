"""Turn Spark's errors about a missing or damaged file of an ACID directory into errors of ours.

A DataFrame is lazy, so Spark reads files long after the user got the DataFrame. If a file is gone
or damaged then, Spark raises a bare ``Py4JJavaError``, or the traceback of a Python task. PySpark
converts Java's exceptions in one function, ``convert_exception``, and in another one of this name
those that a server of Spark Connect tells. This module wraps both, for files of ACID directories
only. Without these functions, Spark's error stays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from pyspark.errors.exceptions import captured

from acidsql.acid.layout import parse_directory
from acidsql.acid.paths import local_path_of
from acidsql.errors import AcidSqlError, FormatError, SnapshotTooOldError
from acidsql.storage.files.gone import file_gone_error
from acidsql.storage.orc.damage import damaged_file_error

_FAILED, _FILE_GONE = "[FAILED_READ_FILE", "FAILED_READ_FILE.FILE_NOT_EXIST"
_MISFIT = re.compile(
    r"reading Parquet column \[?(.*?)\]?\. Expected Spark type (.*?), actual Parquet type (.*?)\.\s"
)
_PATH = re.compile(r"reading file (\S+?)\.?\s+(?:File does not exist|Data type|SQLSTATE)")
# An error of ours in the traceback of a Python task. If there are several, the last one counts: the
# others are its causes.
_TRANSLATED = {kind.__name__: kind for kind in (FormatError, SnapshotTooOldError)}
_FROM_TASK = re.compile(
    rf"acidsql\.errors\.({'|'.join(_TRANSLATED)}): \[([\w.]+)\] (.*?) SQLSTATE: (\w{{5}})", re.S
)
# HDFS has a colon in its words, too.
_GONE_IN_TASK = re.compile(r"^FileNotFoundError: \[Errno 2\] .*?: '(.*)'$", re.M)
# Errors of these classes say nothing about the bytes of a file, nor do these words of Hadoop's, of
# a stream that it has closed because the store did not answer, or refused.
_ELSEWHERE = (
    "java.net.", "java.nio.channels.", "java.nio.file.", "org.apache.hadoop.ipc.",
    "org.apache.hadoop.hdfs.", "org.apache.hadoop.fs.s3a.", "org.apache.hadoop.fs.azurebfs.",
    "org.apache.hadoop.fs.gs.", "software.amazon.", "com.google.",
)  # fmt: skip
_DAMAGED_PROTOBUF = "com.google.protobuf."
_CLOSED = "Stream is closed!"
_OURS = "_acidsql_names_missing_files"


def translate_file_errors() -> None:
    """Make Spark raise SnapshotTooOldError, from now on, if a file of an ACID directory is gone,
    and FormatError if it is damaged.

    This changes PySpark in this process: its own function and, if a session of Spark Connect has
    been made, that of Spark Connect. A function that was changed by an earlier call stays.
    """
    _wrap_convert_exception(captured, lambda error: error)
    # PySpark imports this module together with the first session of Spark Connect.
    if client := sys.modules.get("pyspark.sql.connect.client.core"):
        _wrap_convert_exception(client, _error_in_reply)


def _wrap_convert_exception(pyspark_module: Any, error_in_arguments: Callable[..., Any]) -> None:
    """Replace a module's ``convert_exception`` by one that returns our error if there is one, and
    PySpark's otherwise.

    ``error_in_arguments``: finds the Java error among the arguments of ``convert_exception``. A
    module without this function, or with ours already, stays as it is.
    """
    convert = getattr(pyspark_module, "convert_exception", None)
    if convert is None or hasattr(convert, _OURS):
        return

    def convert_exception(*exception_args: Any, **exception_kwargs: Any) -> Any:
        return _translated_error(error_in_arguments(*exception_args)) or convert(
            *exception_args, **exception_kwargs
        )

    setattr(convert_exception, _OURS, True)
    pyspark_module.convert_exception = convert_exception


class _ServersError:
    """An exception in a reply of a Spark Connect server, with those methods of a Java exception
    that this module calls. Its class is itself: ``getClass().getName()`` is the Java class's name.
    """

    def __init__(self, errors: Any, at: int) -> None:
        self._errors, self._own = errors, errors[at]

    def getMessage(self) -> str:  # noqa: N802 - Java's name
        return str(self._own.message)

    def getCause(self) -> _ServersError | None:  # noqa: N802
        has_cause = self._own.HasField("cause_idx")
        return _ServersError(self._errors, self._own.cause_idx) if has_cause else None

    def getClass(self) -> _ServersError:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return str(self._own.error_type_hierarchy[0])


def _error_in_reply(
    _: Any = None, __: Any = None, reply: Any = None, *___: Any
) -> _ServersError | None:
    """Return the exception in the third argument, a reply of a Spark Connect server. None if the
    reply has no exception, or if there is no third argument.
    """
    is_told = reply is not None and reply.HasField("root_error_idx")
    return _ServersError(reply.errors, reply.root_error_idx) if is_told else None


def _translated_error(error: Any) -> AcidSqlError | None:
    """Return the acidsql error that stands for a Java exception, or None.

    It is made of the first message in the chain of causes that tells one of these things:
    - Spark failed to read a file in an ACID directory. The file is gone (SnapshotTooOldError), has
      a column of another type or is damaged (FormatError); None if the network, the store or the
      file system caused the failure.
    - A Python task raised FormatError or SnapshotTooOldError. The last such error in the traceback
      is made anew, with its words, condition and SQLSTATE.
    - A Python task did not find a file in an ACID directory (SnapshotTooOldError).

    None if no message does so, or ``error`` is None.
    """
    while error is not None:
        message = str(error.getMessage())
        if (
            _FAILED in message
            and (path_match := _PATH.search(message))
            and _is_in_acid_directory(path_match[1])
        ):
            path = (
                local_path_of(path_match[1]) if path_match[1].startswith("file:") else path_match[1]
            )
            if _FILE_GONE in message:
                return file_gone_error(path)
            return _type_mismatch_error(path, message) or _unreadable_file_error(path, error)
        if task_errors := _FROM_TASK.findall(message):
            kind, condition, words, sqlstate = task_errors[-1]
            return _TRANSLATED[kind](words, condition=condition, sqlstate=sqlstate)
        if (path_match := _GONE_IN_TASK.search(message)) and _is_in_acid_directory(path_match[1]):
            return file_gone_error(path_match[1])
        error = error.getCause()
    return None


def _is_in_acid_directory(path: str) -> bool:
    """Whether one of the directories on a path has the name of a base, delta or delete delta."""
    return any(parse_directory(part) is not None for part in path.split("/")[:-1])


def _type_mismatch_error(path: str, message: str) -> FormatError | None:
    """Return the error for a Parquet file whose column has another type than the table's; None if
    Spark's message says something else.
    """
    if mismatch := _MISFIT.search(message):
        return FormatError(
            f"'{path}' does not fit the table: its column '{mismatch[1]}' is of Parquet's type "
            f"{mismatch[3]}, the table's of {mismatch[2]}.",
            path=path,
        )
    return None


def _unreadable_file_error(path: str, error: Any) -> FormatError | None:
    """Return the FormatError for a file that cannot be read, with the class and the first line of
    the message of the last cause of a Java exception. None if the exception or a cause of it has a
    class of the network, the store or the file system (`_ELSEWHERE`; protobuf's are none), or says
    that a stream is closed.
    """
    while True:
        kind, cause = str(error.getClass().getName()), error.getCause()
        is_elsewhere = kind.startswith(_ELSEWHERE) and not kind.startswith(_DAMAGED_PROTOBUF)
        if is_elsewhere or _CLOSED in str(error.getMessage()):
            return None
        if cause is None:
            break
        error = cause
    lines = str(error.getMessage()).strip().splitlines()
    return damaged_file_error(
        path, f"{kind.rpartition('.')[2]}: {lines[0] if lines else ''}".rstrip(".: ")
    )
