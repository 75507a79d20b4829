"""Columns as SQL text: the values and conditions that a person gives as ``F.col("price") * 2``.

A ``Column`` of PySpark's is a tree of nodes in the JVM, which Spark has not analysed yet. Each node
is written as the SQL that Spark parses to the same expression. A node that no SQL has is refused by
name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession

from acidsql.errors import AnalysisError, SqlSyntaxError, UnsupportedError
from acidsql.storage.columns import literal as sql_literal
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.java_classes import java_class

_CONVERTER = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$"
_PYTHON_FUNCTION = "org.apache.spark.sql.execution.python.UserDefinedPythonFunction"
# Functions that are operators of two operands in SQL.
_INFIX = frozenset(
    ["+", "-", "*", "/", "%", "=", "<=>", ">", ">=", "<", "<=", "and", "or", "&", "|", "^", "rlike"]
)
# The word TIMESTAMP in a type's SQL. It must not be a field's name or a part of one.
_TIMESTAMP = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\bTIMESTAMP\b(?!:)", re.DOTALL)
_PREFIX = {"!": "NOT", "not": "NOT", "negative": "-", "~": "~"}


class ColumnSql:
    """Writes the columns of one statement.

    Args:
        spark: The Spark session.
        source: A DataFrame whose own columns may be used (``df["id"]``), and its name in the
            statement.

    Python functions in the columns get names, which ``close`` removes.
    """

    def __init__(self, spark: SparkSession, source: tuple[DataFrame, str] | None = None) -> None:
        self._spark, self._jvm = spark, spark._jvm
        self._functions: list[str] = []
        self._known = {} if source is None else _own_columns(*source)

    def __call__(self, column: Column) -> str:
        """The SQL of a column.

        Raises:
            UnsupportedError: No SQL has the same meaning, or the session is remote.
            AnalysisError: The column is one of another DataFrame's.
        """
        java = getattr(column, "_jc", None)
        if java is None:
            raise UnsupportedError(
                "Columns of a remote Spark session are not supported here: write SQL text.",
                condition="UNSUPPORTED_FEATURE.COLUMN",
            )
        return self._sql(java.node())

    def close(self) -> None:
        """Remove the names of Python functions."""
        for name in self._functions:
            self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
        self._functions.clear()

    def _sql(self, node: Any) -> str:
        kind = node.getClass().getSimpleName()
        write: Callable[[Any], str] | None = getattr(self, f"_{_snake(kind)}", None)
        if write is None:
            raise _no_sql(node)
        return write(node)

    # ── one method for each kind of node ─────────────────────────────────────────────────────

    def _alias(self, node: Any) -> str:
        return self._sql(node.child())

    def _unresolved_attribute(self, node: Any) -> str:
        return quoted_path(_items(node.nameParts()))

    def _literal(self, node: Any) -> str:
        converter = getattr(self._jvm, _CONVERTER)
        literal = getattr(converter, "MODULE$").apply(node)
        if literal.dataType().typeName() == "timestamp" and literal.value() is not None:
            return f"timestamp_micros({literal.value()})"  # a wall clock may come twice a year
        if literal.dataType().typeName() == "string" and literal.value() is not None:
            return sql_literal(literal.value().toString())
        return str(literal.sql())

    def _sql_expression(self, node: Any) -> str:
        text = node.expression()
        try:  # a bracket that closes nothing would end ours
            self._session_state().sqlParser().parseExpression(text)
        except ParseException:
            raise SqlSyntaxError("This text is no expression.", text, 0, len(text)) from None
        return f"({text}\n)"

    def _session_state(self) -> Any:
        return self._spark._jsparkSession.sessionState()

    def _unresolved_function(self, node: Any) -> str:
        if node.isInternal():
            raise _no_sql(node)
        name, arguments = node.functionName(), _items(node.arguments())
        if name in _INFIX and len(arguments) == 2:
            left, right = map(self._sql, arguments)
            return f"({left} {name.upper()} {right})"
        if name in _PREFIX and len(arguments) == 1:
            return f"({_PREFIX[name]} {self._sql(arguments[0])})"
        if name == "in":
            return self._is_in(*map(self._sql, arguments))
        named = ", ".join(map(self._argument, arguments))
        called = name if name.isidentifier() else quoted_path(name.split("."))
        return f"{called}({'DISTINCT ' if node.isDistinct() else ''}{named})"

    def _is_in(self, value: str, *values: str) -> str:
        if values:
            return f"({value} IN ({', '.join(values)}))"
        # SQL has no empty list. In some sessions, NULL is not known to be in none.
        is_null = self._session_state().conf().legacyNullInEmptyBehavior()
        return f"nullif({value} IS NULL, true)" if is_null else f"({value} IS NULL AND false)"

    def _argument(self, node: Any) -> str:
        """An argument keeps its alias, which may be the name of a struct's field."""
        sql = self._sql(node)
        if node.getClass().getSimpleName() != "Alias":
            return sql
        (alias,) = _items(node.name())
        return f"{sql} AS {quote(alias)}"

    def _cast(self, node: Any) -> str:
        mode = node.evalMode()
        is_try = mode.isDefined() and "Try" in mode.get().getClass().getSimpleName()
        cast = "TRY_CAST" if is_try else "CAST"
        # What the word TIMESTAMP means depends on the session (spark.sql.timestampType).
        kind = _TIMESTAMP.sub(
            lambda found: "TIMESTAMP_LTZ" if found.group() == "TIMESTAMP" else found.group(),
            node.dataType().sql(),
        )
        return f"{cast}({self._sql(node.child())} AS {kind})"

    def _unresolved_extract_value(self, node: Any) -> str:
        return f"{self._sql(node.child())}[{self._sql(node.extraction())}]"

    def _case_when_otherwise(self, node: Any) -> str:
        branches = [
            f"WHEN {self._sql(one._1())} THEN {self._sql(one._2())}"
            for one in _items(node.branches())
        ]
        otherwise = node.otherwise()
        if otherwise.isDefined():
            branches.append(f"ELSE {self._sql(otherwise.get())}")
        return f"CASE {' '.join(branches)} END"

    def _lambda_function(self, node: Any) -> str:
        names = ", ".join(quote(one.name()) for one in _items(node.arguments()))
        names = f"({names})" if "," in names else names  # Spark parses no brackets around one
        return f"{names} -> {self._sql(node.function())}"

    def _unresolved_named_lambda_variable(self, node: Any) -> str:
        return quote(node.name())

    def _column_node_expression(self, node: Any) -> str:
        return self._sql(node.node())

    def _expression_column_node(self, node: Any) -> str:
        return self._sql(node.expression())

    def _attribute_reference(self, expression: Any) -> str:
        """A column that belongs to a DataFrame: ``df["id"]``."""
        known = self._known.get(expression.exprId().id())
        if known is None:
            name = expression.name()
            raise AnalysisError(
                f"The column '{name}' belongs to a DataFrame that the statement does not read. "
                f'Name it: F.col("{name}"), or F.col("t.{name}") for a table t.',
                condition="UNRESOLVED_COLUMN", sqlstate="42703",
            )  # fmt: skip
        return known

    def _named_argument_expression(self, expression: Any) -> str:
        return f"{quote(expression.key())} => {self._sql(expression.value())}"

    def _python_udf(self, expression: Any) -> str:
        """A call of a Python function, which gets a name in the session."""
        arguments = [self._sql(one) for one in _items(expression.children())]
        name = f"acidsql_function_{uuid.uuid4().hex}"
        given = [name, expression.func(), expression.dataType(), expression.evalType(),
                 expression.udfDeterministic()]  # fmt: skip
        # Later versions of Spark have lists more, of what they know about the function's code.
        more: list[Any] = [[]] * (_constructor_size(self._jvm, _PYTHON_FUNCTION) - len(given))
        function = getattr(self._jvm, _PYTHON_FUNCTION)(*given, *more)
        self._spark._jsparkSession.udf().registerPython(name, function)
        self._functions.append(name)
        return f"{name}({', '.join(arguments)})"


@contextmanager
def column_sql(
    spark: SparkSession, source: tuple[DataFrame, str] | None = None
) -> Iterator[ColumnSql]:
    """A ``ColumnSql`` for the statements of the block."""
    writer = ColumnSql(spark, source)
    try:
        yield writer
    finally:
        writer.close()


def alias_of(frame: DataFrame) -> str | None:
    """The name that ``df.alias("s")`` gave."""
    java = getattr(frame, "_jdf", None)
    plan = None if java is None else java.queryExecution().analyzed()
    if plan is None or plan.getClass().getSimpleName() != "SubqueryAlias":
        return None
    return str(plan.alias())


def _own_columns(frame: DataFrame, name: str) -> dict[int, str]:
    """SQL of the columns of a DataFrame, by their ids in Spark's plans."""
    java = getattr(frame, "_jdf", None)
    if java is None:
        return {}
    output = java.queryExecution().analyzed().output()
    return {one.exprId().id(): f"{quote(name)}.{quote(one.name())}" for one in _items(output)}


def _items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def _constructor_size(jvm: Any, name: str) -> int:
    (constructor,) = java_class(jvm, "java.lang.Class").forName(name).getConstructors()
    return int(constructor.getParameterCount())


def _snake(name: str) -> str:
    """``PythonUDF`` → python_udf."""
    words: list[str] = []
    for before, letter in zip(" " + name, name, strict=False):
        words.append("_" if letter.isupper() and not before.isupper() and words else "")
        words.append(letter.lower())
    return "".join(words).lstrip("_")


def _no_sql(node: Any) -> UnsupportedError:
    kind = node.getClass().getSimpleName()
    return UnsupportedError(
        f"This Column cannot be written as SQL ({kind}): {str(node.sql())[:100]}. Write the "
        "expression as SQL text instead.",
        condition="UNSUPPORTED_FEATURE.COLUMN",
    )
