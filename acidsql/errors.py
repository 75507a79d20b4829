"""All errors that acidsql raises, in one tree.

::

    AcidSqlError
    ├── SqlError                     the text is wrong: nothing was opened, nothing was changed
    │   ├── SqlSyntaxError           the text does not parse
    │   ├── UnsupportedError         the text parses, but acidsql does not support the statement
    │   ├── AnalysisError            a name, a type or a count is wrong
    │   └── EvaluationError          an expression failed for a row; the statement is undone
    ├── CatalogError                 a table or database is missing, or exists already
    │   └── TableChangedError        a table was changed while the statement looked at it
    ├── ConstraintError              a row breaks a rule of the statement or of the table
    │   └── MergeCardinalityError    a target row matched more than one source row
    ├── TxnError                     the transaction cannot go on
    │   ├── TransientTxnError        … but the same statement may succeed if it is run again
    │   │   ├── LockTimeoutError     a lock was not granted in time
    │   │   ├── TxnAbortedError      another session aborted the transaction, or it timed out
    │   │   └── WriteConflictError   another transaction committed a change to the same thing first
    │   ├── NoSuchTxnError           there is no open transaction of that number
    │   ├── CommitUnknownError       the reply to COMMIT was lost: it may have happened
    │   └── StreamError              a batch of a stream is out of order
    ├── WriteError                   files could not be written
    ├── SnapshotTooOldError          the files or the table of a snapshot or DataFrame are gone
    ├── VersionNotFoundError         a table never had a version, or none at a time
    ├── FormatError                  a directory or file breaks the rules of Hive's format
    ├── SettingError                 a setting has an unknown name or a bad value
    ├── ArgumentTypeError            an argument of a method has a wrong type; a TypeError, too
    └── MetastoreError               the metastore cannot be reached or is not acidsql's

Like PySpark's errors, each error has a condition name (``getCondition``), a SQLSTATE
(``getSqlState``) and message parameters (``getMessageParameters``). The type tells whether a
statement may be run again (``TransientTxnError``); the message's text does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class AcidSqlError(Exception):
    """The root of the tree. The text of an error is ``[condition] message SQLSTATE: sqlstate``.

    Args:
        message: What is wrong, and what the user can do about it; ``message`` is it alone.
        condition: The condition's name, in Spark's style (``TABLE_OR_VIEW_NOT_FOUND``). None or
            "": the class's own.
        sqlstate: The SQLSTATE of the SQL standard, five characters. None or "": the class's own.
        parameters: The values in the message. They are kept as texts (``str``).
    """

    condition = "ACIDSQL_ERROR"
    sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        condition: str | None = None,
        sqlstate: str | None = None,
        **parameters: object,
    ) -> None:
        self.message = message
        self.condition = condition or type(self).condition
        self.sqlstate = sqlstate or type(self).sqlstate
        self.parameters = {name: str(value) for name, value in parameters.items()}
        super().__init__(f"[{self.condition}] {message} SQLSTATE: {self.sqlstate}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Let ``copy`` and ``pickle`` make an error with the same text and attributes: another
        process may raise it again."""
        return _copied_error, (type(self), self.args, vars(self))

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        """The condition's name, as ``PySparkException.getCondition`` gives it."""
        return self.condition

    def getSqlState(self) -> str:  # noqa: N802 - PySpark's name
        """The SQLSTATE, five characters."""
        return self.sqlstate

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        """The values in the message, by name."""
        return dict(self.parameters)


class SqlError(AcidSqlError):
    """The text is wrong. Nothing was opened and nothing was changed.

    Args:
        message: What is wrong.
        text: The statement as the user gave it. If it is given, ``message`` ends with the lines of
            ``point_at``; ``words`` is the message without them.
        start: Offset in ``text`` of the fault's first character.
        end: Offset behind the fault's last character.
    """

    condition = "INVALID_SQL"
    sqlstate = "42000"

    def __init__(
        self,
        message: str,
        text: str | None = None,
        start: int = 0,
        end: int = 0,
        **keywords: object,
    ) -> None:
        # A SqlText would keep its tokens, and is no str to Spark's pickler.
        self.text = None if text is None else str(text)
        self.start, self.end = start, end
        self.words = message
        if text is not None:
            message = f"{message} {point_at(text, start, end)}"
        super().__init__(message, **keywords)  # type: ignore[arg-type]


class SqlSyntaxError(SqlError):
    """The text does not parse."""

    condition = "PARSE_SYNTAX_ERROR"
    sqlstate = "42601"


class UnsupportedError(SqlError):
    """The statement parses, but acidsql does not support it."""

    condition = "UNSUPPORTED_FEATURE"
    sqlstate = "0A000"


class AnalysisError(SqlError):
    """A name, a type or a count in the statement is wrong."""

    condition = "ANALYSIS_ERROR"
    sqlstate = "42000"


class EvaluationError(SqlError):
    """An expression of the statement failed for a row: a text that is no number, a division by
    zero.

    Condition and SQLSTATE are Spark's, as CAST_INVALID_INPUT or DIVIDE_BY_ZERO. A job had begun; a
    statement that changes rows is undone. A DataFrame raises it when it is read.
    """

    condition = "EVALUATION_FAILED"
    sqlstate = "22000"


class CatalogError(AcidSqlError):
    """A table, partition or database is missing, or exists already."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"
    sqlstate = "42P01"


class TableChangedError(CatalogError):
    """Another session has changed or replaced a table while the statement was looking at it.

    The same statement may be run again. ``Session.sql`` has done so once.
    """

    condition = "TABLE_CHANGED_MEANWHILE"
    sqlstate = "40001"


class ConstraintError(AcidSqlError):
    """A row breaks a rule: NOT NULL, CHECK, the length or the range of a type."""

    condition = "CONSTRAINT_VIOLATION"
    sqlstate = "23000"


class MergeCardinalityError(ConstraintError):
    """More than one row of MERGE's source matched the same row of the target.

    Attributes:
        examples: At most three of these rows of the target (``RowKey``).
    """

    condition = "MERGE_CARDINALITY_VIOLATION"
    sqlstate = "23K01"
    examples: tuple[Any, ...] = ()


class TxnError(AcidSqlError):
    """The transaction cannot go on. The table is as it was before the transaction."""

    condition = "TRANSACTION_FAILED"
    sqlstate = "25000"


class TransientTxnError(TxnError):
    """The transaction failed because of other transactions. The same statement may be run again."""

    condition = "TRANSACTION_CONFLICT"
    sqlstate = "40001"


class LockTimeoutError(TransientTxnError):
    """A lock was not granted in time (Hive: 10307 LOCK_ACQUIRE_TIMEDOUT)."""

    condition = "LOCK_ACQUIRE_TIMEDOUT"


class TxnAbortedError(TransientTxnError):
    """Another session aborted the transaction, or it timed out (Hive: 10263 TXN_ABORTED)."""

    condition = "TXN_ABORTED"


class WriteConflictError(TransientTxnError):
    """Another transaction committed a change to the same table, partition or row first.

    The change is newer than this transaction's snapshot, so this transaction can never see it.
    ROLLBACK, and run the transaction again (Hive: 10263 TXN_ABORTED, "due to a write conflict").

    Attributes:
        conflicts: All conflicts (``WriteConflict``), in the order of the winners' numbers.
        ended: True if the metastore has aborted the transaction already.
    """

    condition = "WRITE_CONFLICT"
    conflicts: tuple[Any, ...] = ()
    ended = False


class NoSuchTxnError(TxnError):
    """There is no open transaction of that number (Hive: 10262 TXN_NO_SUCH_TRANSACTION)."""

    condition = "TXN_NO_SUCH_TRANSACTION"


class CommitUnknownError(TxnError):
    """The metastore did not answer COMMIT: the transaction may be committed or not."""

    condition = "COMMIT_OUTCOME_UNKNOWN"
    sqlstate = "08007"


class StreamError(TxnError):
    """A batch of a stream is out of order. Nothing of the batch was written.

    ``condition`` says why: STREAM_TAKEN_OVER, STREAM_REWOUND, STREAM_GAP, STREAM_SHARED,
    STREAM_RESTARTED, STREAM_BATCH_REPEATED.
    """

    condition = "STREAM_GAP"
    sqlstate = "55000"


class WriteError(AcidSqlError):
    """Files could not be written, or written files could not be deleted."""

    condition = "WRITE_FAILED"
    sqlstate = "58030"


class SnapshotTooOldError(AcidSqlError):
    """The files or the table of a snapshot, or of a lazy DataFrame, are gone (Hive: 10327).

    Files were deleted, or others have dropped, renamed or altered the table. Read again in a new
    snapshot or a new DataFrame.
    """

    condition = "ACID_NOT_ENOUGH_HISTORY"
    sqlstate = "72000"


class VersionNotFoundError(AcidSqlError):
    """A table never had the version, or there was no version at the time."""

    condition = "VERSION_NOT_FOUND"
    sqlstate = "22003"


class FormatError(AcidSqlError):
    """A directory or a file breaks the rules of Hive's ACID format."""

    condition = "INVALID_ACID_FORMAT"
    sqlstate = "58030"


class SettingError(AcidSqlError):
    """A setting has an unknown name or a bad value."""

    condition = "INVALID_CONF_VALUE"
    sqlstate = "22022"

    def at(self, text: str, start: int, end: int) -> SettingError:
        """Return a copy of the error that also shows the place in a statement (``point_at``)."""
        return SettingError(
            f"{self.message} {point_at(text, start, end)}",
            condition=self.condition, sqlstate=self.sqlstate, **self.parameters,
        )  # fmt: skip


class ArgumentTypeError(AcidSqlError, TypeError):
    """An argument of a method has a wrong type. Nothing was opened and nothing was changed."""

    condition = "NOT_EXPECTED_TYPE"
    sqlstate = "42K09"


class MetastoreError(AcidSqlError):
    """The metastore cannot be reached, or it is not a metastore of acidsql."""

    condition = "METASTORE_UNAVAILABLE"
    sqlstate = "08001"


def _copied_error(
    error_class: type[AcidSqlError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> AcidSqlError:
    """Make an error from its ``args``, which have the whole text, and its attributes."""
    error = error_class.__new__(error_class, *args)
    vars(error).update(attributes)
    return error


def suggestion(name: str, known_names: Iterable[str], count: int = 3) -> str:
    """Return a sentence with the known names that are most similar to a name, after a blank:
    `` Did you mean 'a' or 'b'?``; "" if none is similar. The case of letters does not matter.

    Args:
        name: The name that is not known.
        known_names: The names that are.
        count: How many names the sentence has at most.
    """
    name_of_key = {known_name.lower(): known_name for known_name in known_names}
    close_keys = get_close_matches(name.lower(), name_of_key, count)
    quoted_names = [f"'{name_of_key[key]}'" for key in close_keys]
    if not quoted_names:
        return ""
    *first_names, last_name = quoted_names
    listed = f"{', '.join(first_names)} or {last_name}" if first_names else last_name
    return f" Did you mean {listed}?"


def point_at(text: str, start: int, end: int) -> str:
    """Return three lines of text that show a fault: ``(line 1, column 5)``, then the line itself,
    and carets below the fault, both after two blanks. Each line ends with a line feed.

    Args:
        text: The user's text.
        start: Offset of the fault's first character, in code points. Lines and columns count from
            1.
        end: Offset behind the fault's last character. Carets stop at the line's end; there is at
            least one.
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    line, column = text.count("\n", 0, start) + 1, start - line_start + 1
    # Tabs stay tabs, so that every terminal shows the caret below its character.
    indent = "".join("\t" if c == "\t" else " " for c in text[line_start:start])
    carets = "^" * max(1, min(end, line_end) - start)
    shown = text[line_start:line_end].rstrip("\r")
    return f"(line {line}, column {column})\n  {shown}\n  {indent}{carets}\n"
