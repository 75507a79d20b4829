"""The SQL of a Column's parts, whatever tree it is of."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession

from acidsql.errors import AnalysisError, SqlSyntaxError, UnsupportedError
from acidsql.storage.columns import quote, quoted_path

# Functions that are operators of two operands in SQL.
_INFIX = frozenset(
    ["+", "-", "*", "/", "%", "=", "==", "<=>", ">", ">=", "<", "<=", "and", "or", "&", "|", "^",
     "rlike"]
)  # fmt: skip
_NOT_PLAIN = frozenset("'\\{}$")
_PREFIX = {"!": "NOT", "not": "NOT", "negative": "-", "~": "~"}


class ColumnSql(ABC):
    """Writes the columns of one statement as SQL. A subclass has a method for each kind of part,
    named ``_`` and the kind in snake case.

    Args:
        spark: The Spark session.
        source: A DataFrame whose own columns may be used (``df["id"]``), and its name in the
            statement.

    Python functions in the columns get names as temporary functions, which ``close`` removes.
    """

    def __init__(self, spark: SparkSession, source: tuple[DataFrame, str] | None = None) -> None:
        self._spark: Any = spark
        self._source = source
        self._functions: list[str] = []
        # In SQL, a lambda function's variable hides a column of its name; in a Column it does not.
        self._of_variables = f"acidsql_{uuid.uuid4().hex}_"

    @abstractmethod
    def __call__(self, column: Column) -> str:
        """Return the SQL of a column.

        Raises:
            UnsupportedError: No SQL has the same meaning, or the column is of another kind of
                session.
            AnalysisError: The column is one of another DataFrame's.
        """

    def close(self) -> None:
        """Drop the temporary functions that stand for Python functions in the columns."""
        for name in self._functions:
            self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
        self._functions.clear()

    # ── what a tree must tell ────────────────────────────────────────────────────────────────

    @abstractmethod
    def _kind_and_content(self, part: Any) -> tuple[str, Any]:
        """Return the kind of a part, in snake case, and the argument for the method of this
        kind.
        """

    @abstractmethod
    def _unknown_kind_error(self, part: Any) -> UnsupportedError:
        """Return the error for a part of a kind that no SQL has."""

    @abstractmethod
    def _parse(self, text: str) -> None:
        """Parse an expression, and do nothing with it. Raises ``ParseException``."""

    @abstractmethod
    def _alias_name(self, part: Any) -> str | None:
        """Return the alias of a part; None if it has none."""

    @abstractmethod
    def _null_is_in_nothing(self) -> bool:
        """Whether NULL IN an empty list is false in this session; otherwise it is NULL. The setting
        is ``spark.sql.legacy.nullInEmptyListBehavior``.
        """

    # ── what all trees have ──────────────────────────────────────────────────────────────────

    def _node_sql(self, part: Any) -> str:
        """Return the SQL of a node of a column's tree, by the method that is named after the node's
        kind.

        Raises UnsupportedError if there is no method for the kind.
        """
        kind, content = self._kind_and_content(part)
        write: Callable[[Any], str] | None = getattr(self, f"_{kind}", None)
        if write is None:
            raise self._unknown_kind_error(part)
        return write(content)

    def _parse_text(self, text: str) -> str:
        """Return a text of SQL in brackets, the closing one on a line of its own, as the text may
        end with a comment. Raises SqlSyntaxError if the text is no expression, so that no bracket
        in it can end ours.
        """
        try:
            self._parse(text)
        except ParseException:
            raise SqlSyntaxError("This text is no expression.", text, 0, len(text)) from None
        return f"({text}\n)"

    def _extract_value(self, child: Any, key: Any, value: object) -> str:
        """Return the SQL of a struct's field, or of an element of an array or map: ``child[key]``.

        ``value``: the key's value if the key is a literal. A text without special characters is put
        between single quotes: for a struct's field, Spark takes nothing else.
        """
        is_plain = isinstance(value, str) and value.isprintable() and not set(value) & _NOT_PLAIN
        text = f"'{value}'" if is_plain else self._node_sql(key)
        return f"{self._node_sql(child)}[{text}]"

    def _function_sql(
        self, path: Sequence[str], arguments: Sequence[Any], *, is_distinct: bool
    ) -> str:
        """Return the SQL of a function, or an operator, of some parts. An operator is written in
        brackets, with its two operands around it or its operand behind it; ``in`` as ``_is_in``
        does. In ``struct`` the alias of an argument follows it; elsewhere an alias is left out.
        ``path``: the parts of the function's name.

        Raises UnsupportedError for an alias in ``arrays_zip``, and for an element without a name in
        ``struct``.
        """
        name = path[-1] if len(path) == 1 else ""
        if name in _INFIX and len(arguments) == 2:
            first_sql, second_sql = map(self._node_sql, arguments)
            return f"({first_sql} {name.upper()} {second_sql})"
        if name in _PREFIX and len(arguments) == 1:
            return f"({_PREFIX[name]} {self._node_sql(arguments[0])})"
        sqls = [self._node_sql(argument) for argument in arguments]
        if name == "in":
            return self._is_in(*sqls)
        aliases = [self._alias_name(argument) for argument in arguments]
        if name == "arrays_zip" and any(aliases):
            raise no_sql_error("an alias in arrays_zip", ", ".join(sqls))
        if name == "struct":  # an alias is the name of a field
            for sql, alias, argument in zip(sqls, aliases, arguments, strict=True):
                # In SQL a value of a map gets its key's name, in a Column another one.
                if (
                    alias is None
                    and self._kind_and_content(argument)[0] == "unresolved_extract_value"
                ):
                    raise no_sql_error(
                        "struct of an element without a name; give one by .alias", sql
                    )
            sqls = [
                sql if alias is None else f"{sql} AS {quote(alias)}"
                for sql, alias in zip(sqls, aliases, strict=True)
            ]
        called = name if name == "struct" else quoted_path(path)
        return f"{called}({'DISTINCT ' if is_distinct else ''}{', '.join(sqls)})"

    def _lambda(self, names: Sequence[str], body: str) -> str:
        """Return the SQL of a lambda function. ``names``: of its arguments; ``body``: SQL. Spark
        parses no brackets around one argument.
        """
        arguments = ", ".join(map(self._variable, names))
        return f"{arguments if len(names) == 1 else f'({arguments})'} -> {body}"

    def _variable(self, name: str) -> str:
        """Return the SQL of a lambda function's variable: a name that no column has."""
        return quote(self._of_variables + name)

    def _is_in(self, value: str, *values: str) -> str:
        """Return the SQL of IN. For no values it is false; if ``value`` is NULL, it is NULL or
        false, as Spark's settings say.
        """
        if values:
            return f"({value} IN ({', '.join(values)}))"
        # SQL has no empty list.
        if self._null_is_in_nothing():
            return f"({value} IS NULL AND false)"
        return f"nullif({value} IS NULL, true)"

    def _function_name(self) -> str:
        """Return a new name for a Python function. ``close`` drops the temporary function of this
        name.
        """
        self._functions.append(f"acidsql_function_{uuid.uuid4().hex}")
        return self._functions[-1]


def case_sql(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """Return the SQL of CASE, from pairs of a condition and its value. Without ``otherwise`` there
    is no ELSE.
    """
    whens = [f"WHEN {condition} THEN {value}" for condition, value in branches]
    whens += [] if otherwise is None else [f"ELSE {otherwise}"]
    return f"CASE {' '.join(whens)} END"


def no_sql_error(kind: str, shown: str) -> UnsupportedError:
    """Return the error for a part of a Column that no SQL has. ``kind``: what the part is;
    ``shown``: its text, of which the message has 100 characters at most.
    """
    return UnsupportedError(
        f"This Column cannot be written as SQL ({kind}): {shown[:100]}. Write the "
        "expression as SQL text instead.",
        condition="UNSUPPORTED_FEATURE.COLUMN",
    )


def another_frame_error(name: str) -> AnalysisError:
    """Return the error for a column of a DataFrame that the statement does not read."""
    return AnalysisError(
        f"The column '{name}' belongs to a DataFrame that the statement does not read. "
        f'Name it: F.col("{name}"), or F.col("t.{name}") for a table t.',
        condition="UNRESOLVED_COLUMN",
        sqlstate="42703",
    )


def another_session_error(session: str) -> UnsupportedError:
    """Return the error for a Column that was made for another kind of Spark session. ``session``:
    the statement's kind, for the message.
    """
    return UnsupportedError(
        f"This Column was not made for {session}, in which the statement runs. Write SQL text.",
        condition="UNSUPPORTED_FEATURE.COLUMN",
    )
