"""Columns of a classic session: nodes in the JVM."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession

from acidsql.errors import SqlSyntaxError, UnsupportedError
from acidsql.storage.columns import literal as sql_literal
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.columns.writer import (
    ColumnSql,
    another_frames,
    another_sessions,
    case,
    field,
    no_sql,
)
from acidsql.storage.spark.java_classes import java_class

_CONVERTER = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$"
_PYTHON_FUNCTION = "org.apache.spark.sql.execution.python.UserDefinedPythonFunction"
# The word TIMESTAMP in a type's SQL. It must not be a field's name or a part of one.
_TIMESTAMP = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\bTIMESTAMP\b(?!:)", re.DOTALL)


class ColumnNodes(ColumnSql):
    """Writes columns of a classic session.

    Args:
        spark: The Spark session.
        source: As of ``column_sql``.
    """

    def __init__(self, spark: SparkSession, source: tuple[DataFrame, str] | None = None) -> None:
        super().__init__(spark)
        self._jvm = spark._jvm
        self._known = {} if source is None else _own_columns(*source)

    def __call__(self, column: Column) -> str:
        """See ``ColumnSql``."""
        java = getattr(column, "_jc", None)
        if java is None:
            raise another_sessions("a classic session")
        return self._sql(java.node())

    def _sql(self, part: Any) -> str:
        kind = part.getClass().getSimpleName()
        write: Callable[[Any], str] | None = getattr(self, f"_{_snake(kind)}", None)
        if write is None:
            raise _no_sql(part)
        return write(part)

    def _alias_name(self, part: Any) -> str | None:
        if part.getClass().getSimpleName() != "Alias":
            return None
        (alias,) = _items(part.name())
        return str(alias)

    def _null_is_in_nothing(self) -> bool:
        return not self._session_state().conf().legacyNullInEmptyBehavior()

    def _session_state(self) -> Any:
        return self._spark._jsparkSession.sessionState()

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

    def _unresolved_function(self, node: Any) -> str:
        if node.isInternal():
            raise _no_sql(node)
        name, arguments = node.functionName(), _items(node.arguments())
        path = self._path(name) if node.isUserDefinedFunction() else [name]
        return self._called(path, arguments, is_distinct=node.isDistinct())

    def _path(self, name: str) -> list[str]:
        return _items(self._session_state().sqlParser().parseMultipartIdentifier(name))

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
        child, key = self._sql(node.child()), self._sql(node.extraction())
        if node.extraction().getClass().getSimpleName() == "Literal":
            name = node.extraction().value()
            found = field(child, name) if isinstance(name, str) else None
            if found is not None:
                return found
        return f"{child}[{key}]"

    def _case_when_otherwise(self, node: Any) -> str:
        branches = [(self._sql(one._1()), self._sql(one._2())) for one in _items(node.branches())]
        otherwise = node.otherwise()
        return case(branches, self._sql(otherwise.get()) if otherwise.isDefined() else None)

    def _lambda_function(self, node: Any) -> str:
        names = [one.name() for one in _items(node.arguments())]
        return self._lambda(names, self._sql(node.function()))

    def _unresolved_named_lambda_variable(self, node: Any) -> str:
        return self._variable(node.name())

    def _column_node_expression(self, node: Any) -> str:
        return self._sql(node.node())

    def _expression_column_node(self, node: Any) -> str:
        return self._sql(node.expression())

    def _attribute_reference(self, expression: Any) -> str:
        """A column that belongs to a DataFrame: ``df["id"]``."""
        known = self._known.get(expression.exprId().id())
        if known is None:
            raise another_frames(expression.name())
        return known

    def _named_argument_expression(self, expression: Any) -> str:
        return f"{quote(expression.key())} => {self._sql(expression.value())}"

    def _python_udf(self, expression: Any) -> str:
        """A call of a Python function, which gets a name in the session."""
        arguments = [self._sql(one) for one in _items(expression.children())]
        name = self._function_name()
        given = [name, expression.func(), expression.dataType(), expression.evalType(),
                 expression.udfDeterministic()]  # fmt: skip
        # Later versions of Spark have lists more, of what they know about the function's code.
        more: list[Any] = [[]] * (_constructor_size(self._jvm, _PYTHON_FUNCTION) - len(given))
        function = getattr(self._jvm, _PYTHON_FUNCTION)(*given, *more)
        self._spark._jsparkSession.udf().registerPython(name, function)
        return f"{name}({', '.join(arguments)})"


def alias_of(frame: DataFrame) -> str | None:
    """The name that ``df.alias("s")`` gave."""
    plan = frame._jdf.queryExecution().analyzed()
    return str(plan.alias()) if plan.getClass().getSimpleName() == "SubqueryAlias" else None


def _own_columns(frame: DataFrame, name: str) -> dict[int, str]:
    """SQL of the columns of a DataFrame, by their ids in Spark's plans."""
    output = frame._jdf.queryExecution().analyzed().output()
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
    return no_sql(node.getClass().getSimpleName(), str(node.sql()))
