"""Every error acidsql raises, in one tree.

::

    AcidSqlError
    ├── SqlError                     the text is wrong: nothing was opened, nothing was done
    │   ├── SqlSyntaxError           it does not parse
    │   ├── UnsupportedError         it parses, and acidsql refuses it by name
    │   └── AnalysisError            a name, a type or a count is wrong
    ├── CatalogError                 a table or database is missing, or is there already
    ├── ConstraintError              a row breaks a rule of the statement or of the table
    │   └── MergeCardinalityError    a target row matched more than one source row
    ├── TxnError                     the transaction cannot go on
    │   ├── TransientTxnError        … but the same statement may succeed if it is run again
    │   │   ├── LockTimeoutError
    │   │   ├── TxnAbortedError
    │   │   └── WriteConflictError   somebody else committed a change to the same thing first
    │   ├── NoSuchTxnError
    │   └── CommitUnknownError       the store's reply to COMMIT was lost: it may have happened
    ├── WriteError                   files could not be written as they must be
    ├── SnapshotTooOldError          what a snapshot or a DataFrame was made from is gone
    ├── FormatError                  a directory or file is not what Hive's format allows
    ├── SettingError                 a setting has no such name or no such value
    └── MetastoreError               the metastore cannot be reached or is not ours

As PySpark's errors do, each carries a condition name (``getCondition``), a SQLSTATE
(``getSqlState``) and message parameters (``getMessageParameters``). Whether a statement may be
run again is told by the type (``TransientTxnError``), never by the text.
"""

from __future__ import annotations

from typing import Any


class AcidSqlError(Exception):
    """The root of the tree.

    Args:
        message: What is wrong and what to do about it, in words for a person.
        condition: The condition's name, in Spark's style (``TABLE_OR_VIEW_NOT_FOUND``).
        sqlstate: Five characters, as the SQL standard has them.
        parameters: The values that the message was made from.
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

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        """The condition's name, as ``PySparkException.getCondition`` gives it."""
        return self.condition

    def getSqlState(self) -> str:  # noqa: N802 - PySpark's name
        """The SQLSTATE, five characters."""
        return self.sqlstate

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        """The values that the message was made from."""
        return dict(self.parameters)


class SqlError(AcidSqlError):
    """The text is wrong. Nothing was opened and nothing was done.

    Args:
        message: What is wrong.
        text: The statement as the user gave it; with it the message shows the line and a caret.
        start: Offset of the fault's first character in ``text``.
        end: Offset behind its last character.
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
        self.text, self.start, self.end = text, start, end
        if text is not None:
            message = f"{message} {point_at(text, start, end)}"
        super().__init__(message, **keywords)  # type: ignore[arg-type]


class SqlSyntaxError(SqlError):
    """The text does not parse."""

    condition = "PARSE_SYNTAX_ERROR"
    sqlstate = "42601"


class UnsupportedError(SqlError):
    """The statement is understood and refused by name."""

    condition = "UNSUPPORTED_FEATURE"
    sqlstate = "0A000"


class AnalysisError(SqlError):
    """A name, a type or a count in the statement is wrong."""

    condition = "ANALYSIS_ERROR"
    sqlstate = "42000"


class CatalogError(AcidSqlError):
    """A table, partition or database is missing, or is there already."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"
    sqlstate = "42P01"


class ConstraintError(AcidSqlError):
    """A row breaks a rule: NOT NULL, CHECK, a length, the range of a type."""

    condition = "CONSTRAINT_VIOLATION"
    sqlstate = "23000"


class MergeCardinalityError(ConstraintError):
    """A row of MERGE's target was matched by more than one row of its source."""

    condition = "MERGE_CARDINALITY_VIOLATION"
    sqlstate = "23K01"


class TxnError(AcidSqlError):
    """The transaction cannot go on; the table is as it was before it."""

    condition = "TRANSACTION_FAILED"
    sqlstate = "25000"


class TransientTxnError(TxnError):
    """The transaction failed because of others; the same statement may be run again."""

    condition = "TRANSACTION_CONFLICT"
    sqlstate = "40001"


class LockTimeoutError(TransientTxnError):
    """A lock was not granted in time (Hive: 10307 LOCK_ACQUIRE_TIMEDOUT)."""

    condition = "LOCK_ACQUIRE_TIMEDOUT"


class TxnAbortedError(TransientTxnError):
    """The transaction was aborted by somebody else, or timed out (Hive: 10263 TXN_ABORTED)."""

    condition = "TXN_ABORTED"


class WriteConflictError(TransientTxnError):
    """Another transaction committed a change to the same table, partition or row first, after
    this one's snapshot (Hive: 10263 TXN_ABORTED, "due to a write conflict"). It sees the older
    rows for good: roll it back and run it again.

    Attributes:
        conflicts: Each ``WriteConflict``, by the winner's number.
    """

    condition = "WRITE_CONFLICT"
    conflicts: tuple[Any, ...] = ()


class NoSuchTxnError(TxnError):
    """There is no open transaction of that number (Hive: 10262 TXN_NO_SUCH_TRANSACTION)."""

    condition = "TXN_NO_SUCH_TRANSACTION"


class CommitUnknownError(TxnError):
    """The metastore did not answer COMMIT: the transaction may or may not have committed."""

    condition = "COMMIT_OUTCOME_UNKNOWN"
    sqlstate = "08007"


class WriteError(AcidSqlError):
    """Files could not be written as they must be; the transaction was aborted."""

    condition = "WRITE_FAILED"
    sqlstate = "58030"


class SnapshotTooOldError(AcidSqlError):
    """What a snapshot, or a lazy DataFrame, was made from is gone (Hive: 10327): files were
    deleted, or others have dropped, renamed or altered the table. Look again, in a new one."""

    condition = "ACID_NOT_ENOUGH_HISTORY"
    sqlstate = "72000"


class FormatError(AcidSqlError):
    """A directory or a file is not what Hive's ACID format allows."""

    condition = "INVALID_ACID_FORMAT"
    sqlstate = "58030"


class SettingError(AcidSqlError):
    """A setting has no such name, or cannot have that value."""

    condition = "INVALID_CONF_VALUE"
    sqlstate = "22022"


class MetastoreError(AcidSqlError):
    """The metastore cannot be reached, or is not one of ours."""

    condition = "METASTORE_UNAVAILABLE"
    sqlstate = "08001"


def point_at(text: str, start: int, end: int) -> str:
    """The place of a fault: line and column, the line itself, and carets below it.

    Args:
        text: The user's text.
        start: Offset of the first character, in code points.
        end: Offset behind the last one; carets stop at the line's end.
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    line, column = text.count("\n", 0, start) + 1, start - line_start + 1
    # Tabs stay tabs, so that the caret stands below its character in any terminal.
    indent = "".join("\t" if c == "\t" else " " for c in text[line_start:start])
    carets = "^" * max(1, min(end, line_end) - start)
    shown = text[line_start:line_end].rstrip("\r")
    return f"(line {line}, column {column})\n  {shown}\n  {indent}{carets}\n"
