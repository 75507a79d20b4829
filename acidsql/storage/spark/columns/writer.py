"""The SQL of a Column's parts, whatever tree it is of."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, SparkSession

from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.storage.columns import quote, quoted_path

# Functions that are operators of two operands in SQL.
_INFIX = frozenset(
    ["+", "-", "*", "/", "%", "=", "==", "<=>", ">", ">=", "<", "<=", "and", "or", "&", "|", "^",
     "rlike"]
)  # fmt: skip
_PREFIX = {"!": "NOT", "not": "NOT", "negative": "-", "~": "~"}


class ColumnSql(ABC):
    """Writes the columns of one statement.

    Args:
        spark: The Spark session.

    Python functions in the columns get names, which ``close`` removes.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._functions: list[str] = []
        # In SQL, a lambda function's variable hides a column of its name; in a Column it does not.
        self._of_variables = f"acidsql_{uuid.uuid4().hex}_"

    @abstractmethod
    def __call__(self, column: Column) -> str:
        """The SQL of a column.

        Raises:
            UnsupportedError: No SQL has the same meaning.
            AnalysisError: The column is one of another DataFrame's.
        """

    def close(self) -> None:
        """Remove the names of Python functions."""
        for name in self._functions:
            self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
        self._functions.clear()

    # ── what a tree must tell ────────────────────────────────────────────────────────────────

    @abstractmethod
    def _sql(self, part: Any) -> str:
        """The SQL of a part."""

    @abstractmethod
    def _alias_name(self, part: Any) -> str | None:
        """The alias of a part, if it has one."""

    @abstractmethod
    def _null_is_in_nothing(self) -> bool:
        """Whether NULL is known to be in no empty list: ``legacy.nullInEmptyListBehavior``."""

    # ── what all trees have ──────────────────────────────────────────────────────────────────

    def _called(self, path: Sequence[str], arguments: Sequence[Any], *, is_distinct: bool) -> str:
        """A function, or an operator, of some parts. ``path``: the parts of its name."""
        name = path[-1] if len(path) == 1 else ""
        if name in _INFIX and len(arguments) == 2:
            left, right = map(self._sql, arguments)
            return f"({left} {name.upper()} {right})"
        if name in _PREFIX and len(arguments) == 1:
            return f"({_PREFIX[name]} {self._sql(arguments[0])})"
        sqls = [self._sql(one) for one in arguments]
        if name == "in":
            return self._is_in(*sqls)
        aliases = [self._alias_name(one) for one in arguments]
        if name == "arrays_zip" and any(aliases):
            raise no_sql("an alias in arrays_zip", ", ".join(sqls))
        if name == "struct":  # an alias is the name of a field
            sqls = [
                sql if alias is None else f"{sql} AS {quote(alias)}"
                for sql, alias in zip(sqls, aliases, strict=True)
            ]
        called = name if name == "struct" else quoted_path(path)
        return f"{called}({'DISTINCT ' if is_distinct else ''}{', '.join(sqls)})"

    def _lambda(self, names: Sequence[str], body: str) -> str:
        """A lambda function. Spark parses no brackets around one argument."""
        arguments = ", ".join(map(self._variable, names))
        return f"{arguments if len(names) == 1 else f'({arguments})'} -> {body}"

    def _variable(self, name: str) -> str:
        """A variable of a lambda function."""
        return quote(self._of_variables + name)

    def _is_in(self, value: str, *values: str) -> str:
        if values:
            return f"({value} IN ({', '.join(values)}))"
        # SQL has no empty list.
        if self._null_is_in_nothing():
            return f"({value} IS NULL AND false)"
        return f"nullif({value} IS NULL, true)"

    def _function_name(self) -> str:
        """A name for a Python function, until ``close``."""
        self._functions.append(f"acidsql_function_{uuid.uuid4().hex}")
        return self._functions[-1]


def case(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """CASE, from conditions with their values."""
    whens = [f"WHEN {condition} THEN {value}" for condition, value in branches]
    whens += [] if otherwise is None else [f"ELSE {otherwise}"]
    return f"CASE {' '.join(whens)} END"


def field(child: str, name: str) -> str | None:
    """A field of a struct, or a value of a map, by its name; None if no plain text has this name.

    The name must be a literal: of a struct, Spark takes no other text.
    """
    is_plain = name.isprintable() and not set(name) & set("'\\{}$")
    return f"{child}['{name}']" if is_plain else None


def no_sql(kind: str, shown: str) -> UnsupportedError:
    """The error of a part that no SQL has."""
    return UnsupportedError(
        f"This Column cannot be written as SQL ({kind}): {shown[:100]}. Write the "
        "expression as SQL text instead.",
        condition="UNSUPPORTED_FEATURE.COLUMN",
    )


def another_frames(name: str) -> AnalysisError:
    """The error of a column that no table of the statement has."""
    return AnalysisError(
        f"The column '{name}' belongs to a DataFrame that the statement does not read. "
        f'Name it: F.col("{name}"), or F.col("t.{name}") for a table t.',
        condition="UNRESOLVED_COLUMN", sqlstate="42703",
    )  # fmt: skip


def another_sessions(session: str) -> UnsupportedError:
    """The error of a Column that was made for another kind of Spark session."""
    return UnsupportedError(
        f"This Column was not made for {session}, in which the statement runs. Write SQL text.",
        condition="UNSUPPORTED_FEATURE.COLUMN",
    )
