"""Explains the errors of statements whose target is no ACID table.

Spark may be able to change the rows of a view, or of a table of its own, by means of another
library. So Spark runs the statement first, and only an error, Spark's or ours, is replaced by a
better one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import AcidSqlError, AnalysisError, SqlError, UnsupportedError
from acidsql.plan.standins.names import NameResolver
from acidsql.plan.standins.query import no_acid_table_error
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.effects import effect_and_name
from acidsql.sql.parser import parse
from acidsql.sql.text.frames import is_frame
from acidsql.sql.text.tokens import Span, tokenize, words
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.catalog_names import SparkRelationKind, relation_kind, table_provider

_UNSUPPORTED = UnsupportedError.condition
_TABLE_OPERATION = f"{_UNSUPPORTED}.TABLE_OPERATION"
# For a target that is no ACID table, the text is not read as a MERGE or the like, so it is unknown
# where the statement reads a table.
_NO_FRAME_HERE = f"{_UNSUPPORTED}.DATAFRAME"
_NO_STATEMENT, _NOT_PARSED = "INVALID_STATEMENT_OR_CLAUSE", "PARSE_SYNTAX_ERROR"
_NOT_FOUND, _NO_COLUMN = "TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN"
_UNNAMED = ""  # an error of the JVM without a name
# Spark refuses a view by these names, or fails because it did not expect one.
_REFUSALS_OF_VIEWS = (
    _TABLE_OPERATION, _NO_STATEMENT, f"{_UNSUPPORTED}.SET_TRANSACTIONAL",
    f"{_UNSUPPORTED}.ANALYZE_VIEW", "UNSUPPORTED_INSERT", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
    "EXPECT_PERMANENT_VIEW_NOT_TEMP", "VIEW_WRITE_NOT_ALLOWED", "INTERNAL_ERROR",
)  # fmt: skip
# The conditions of Spark's errors for statements and clauses that only acidsql has.
_FAULTS_OF_OWN_SYNTAX = {
    "RESTORE": (_NOT_PARSED,),
    "RETURNING": (_NOT_PARSED,),
    "REPLACE": (_NOT_PARSED, _NO_COLUMN),
    "HISTORY": (_NOT_FOUND,),
}
_POSSIBLE = (*_REFUSALS_OF_VIEWS, _NOT_PARSED, _NOT_FOUND, _NO_COLUMN, _UNSUPPORTED)
_DML = words("INSERT UPDATE DELETE MERGE")
_CHANGES = _DML | {"REPLACE", "RETURNING"}
# These never work with a view, whatever else is wrong. (INSERT does, for example into JDBC.)
_NEVER_OF_VIEWS = words("UPDATE DELETE MERGE TRUNCATE ALTER LOAD")


class Targets:
    """Explains the errors of one session's statements whose target is no ACID table.

    Args:
        spark: The Spark session.
        names: Resolves names.
    """

    def __init__(self, spark: SparkSession, names: NameResolver) -> None:
        self._spark, self._names = spark, names

    @contextmanager
    def explain_errors(self, text: str) -> Iterator[None]:
        """If the statement in the ``with`` block fails because its target is no ACID table, raise
        an error that says what the target is, and what to write instead. What the cause is, is told
        by the error's condition and by what Spark knows of the target now. Other errors pass
        unchanged, also if the target is an ACID table.

        Args:
            text: The statement.

        Raises:
            AnalysisError: The target is a view, or there is nothing of its name.
            UnsupportedError: The target is a table of Spark's, or of another engine.
        """
        try:
            yield
        except Exception as error:  # an error of Py4J has no class without a JVM
            condition = _error_condition(error)
            if condition is None or not (condition == _UNNAMED or condition.startswith(_POSSIBLE)):
                raise
            refusal = self._refusal(error, condition, text)
            if refusal is None:
                raise
            raise refusal from error

    def _refusal(self, error: Exception, condition: str, text: str) -> SqlError | None:
        """Return the error that says what the target is (a view of Spark's, a table of Spark's or
        another engine's, nothing). Return None if it is an ACID table or a view of ACID tables, if
        the statement is ALTER VIEW or the like, or if such a target does not raise an error of this
        ``condition`` in this statement."""
        target = _target_parts(text)
        if target is None or self._names.find(target, at_a_glance=True) is not None:
            return None
        statement, start = _statement_word_and_start(text)
        place = place_of_name(target, text, start)
        if statement == "VIEW":  # ALTER VIEW and the like need no table
            return None
        is_named = condition in (_UNSUPPORTED, _NOT_FOUND) and (
            isinstance(error, SqlError) and Span(error.start, error.end) == place
        )
        faults = (_NO_STATEMENT, _NO_FRAME_HERE, *_FAULTS_OF_OWN_SYNTAX.get(statement, ()))
        is_ours = condition.startswith(faults)
        kind = relation_kind(self._spark, target)
        if kind in (SparkRelationKind.TEMPORARY_VIEW, SparkRelationKind.VIEW):
            is_never = statement in _NEVER_OF_VIEWS and (
                condition == _UNNAMED or condition.startswith((_NOT_PARSED, _NO_COLUMN))
            )
            if is_ours or is_never or is_named or condition.startswith(_REFUSALS_OF_VIEWS):
                return _view_target_error(target, kind, statement, text, place)
        elif kind is SparkRelationKind.TABLE:
            is_refused = condition == _TABLE_OPERATION and (
                isinstance(error, PySparkException) or statement in _CHANGES
            )
            if is_ours or is_refused or is_named:
                provider = table_provider(self._spark, target)
                return _spark_table_error(target, provider, text, place)
        elif is_ours:
            foreign = self._names.find_foreign(target)
            return (
                foreign.refused_error()
                if foreign
                else no_acid_table_error(".".join(target), text, place)
            )
        return None


def _error_condition(error: Exception) -> str | None:
    """Return the name of the condition of an error that Spark or we have raised; ``_UNNAMED`` if it
    has none; None for any other error. An error of the JVM's own has none, but INTERNAL_ERROR if
    its text says so."""
    if isinstance(error, AcidSqlError):
        return error.condition
    if isinstance(error, PySparkException):
        return error.getCondition() or _UNNAMED
    if type(error).__name__ != "Py4JJavaError":
        return None
    return "INTERNAL_ERROR" if "[INTERNAL_ERROR]" in str(error) else _UNNAMED


def _target_parts(text: str) -> tuple[str, ...] | None:
    """Return the parts of the first name for which the parser calls ``is_ours``: the target's name.
    None if there is none, or for a DataFrame."""
    asked_names: list[tuple[str, ...]] = []

    def ask(parts: tuple[str, ...]) -> bool:
        """Note the name, and say that it is no ACID table's."""
        asked_names.append(parts)
        return False

    with suppress(AcidSqlError):
        parse(text, is_ours=ask)
    return asked_names[0] if asked_names and not is_frame(asked_names[0]) else None


def _statement_word_and_start(text: str) -> tuple[str, int]:
    """Return the first word of a statement behind its WITH clause, in upper case, and the word's
    offset (0 without a WITH clause). The word is REPLACE or RETURNING for an INSERT, UPDATE, DELETE
    or MERGE with such a clause, VIEW for statements about views, and the second word of DESCRIBE.
    """
    tokens = tokenize(text)
    c, start = Cursor(text, tokens), 0
    if c.is_at("WITH") and c.skip_ctes():
        start = c.token.start
    name, words_of_text = effect_and_name(c)[1].split(), [token.upper for token in tokens]
    if name[-1] == "VIEW":
        return "VIEW", start
    statement = name[0]
    if statement in ("DESCRIBE", "DESC"):
        return words_of_text[1], start
    if statement == "INSERT" and {("REPLACE", "WHERE"), ("REPLACE", "USING")} & {
        *pairwise(words_of_text)
    }:
        return "REPLACE", start
    if statement in _DML and "RETURNING" in words_of_text:
        return "RETURNING", start
    return statement, start


def _view_target_error(
    parts: tuple[str, ...],
    view_kind: SparkRelationKind,
    statement_word: str,
    text: str,
    place: Span,
) -> SqlError:
    """Return the error that the target is a view, and the statement needs a table; it advises to
    change the table behind the view."""
    condition = ", with the view's condition in WHERE" if statement_word in _CHANGES else ""
    return AnalysisError(
        f"{quoted_path(parts)} is {view_kind.value}, and this statement needs a table. Name the "
        f"table whose rows the view shows{condition}.",
        text, place.start, place.end,
        condition="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", sqlstate="42809",
    )  # fmt: skip


def _spark_table_error(
    parts: tuple[str, ...], provider: str | None, text: str, place: Span
) -> SqlError:
    """Return the error that the target is a table of Spark's, of which data source (None: not
    known); it says how to make an ACID table of its rows."""
    name, source = quoted_path(parts), f" ({provider.lower()})" if provider else ""
    return UnsupportedError(
        f"{name} is {SparkRelationKind.TABLE.value}{source}, and this statement needs an ACID "
        f"table. CREATE TABLE new AS SELECT * FROM {name} makes an ACID table of its rows.",
        text, place.start, place.end, condition=_TABLE_OPERATION,
    )  # fmt: skip


def place_of_name(parts: tuple[str, ...], text: str, start: int = 0) -> Span:
    """Return the first place of a name in a statement, from ``start`` on, whatever the case.

    It is the whole statement, if the name is not there or has no parts.
    """
    lowered_parts = [part.lower() for part in parts]
    if not lowered_parts:
        return Span(0, len(text))
    tokens = [token for token in tokenize(text) if token.text != "." and token.start >= start]
    for at in range(len(tokens) - len(lowered_parts) + 1):
        chain = tokens[at : at + len(lowered_parts)]
        if [token.value.lower() for token in chain if token.is_name] == lowered_parts:
            return Span(chain[0].start, chain[-1].end)
    return Span(0, len(text))
