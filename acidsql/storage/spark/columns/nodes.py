"""Columns of a classic session: nodes in the JVM."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame

from acidsql.errors import UnsupportedError
from acidsql.storage.columns import literal as sql_literal
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.columns.writer import (
    ColumnSql,
    another_frame_error,
    another_session_error,
    case_sql,
    no_sql_error,
)
from acidsql.storage.spark.session.java_classes import java_class

_CONVERTER = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$"
_PYTHON_FUNCTION = "org.apache.spark.sql.execution.python.UserDefinedPythonFunction"
# The word TIMESTAMP in a type's SQL. It must not be a field's name or a part of one.
_TIMESTAMP = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\bTIMESTAMP\b(?!:)", re.DOTALL)


class ColumnNodes(ColumnSql):
    """Writes columns of a classic session."""

    @cached_property
    def _sql_by_id(self) -> dict[int, str]:
        """The source's columns: id in Spark's plans → SQL, the source's name, a dot, and the
        column's name, both quoted. Empty without a source.
        """
        if self._source is None:
            return {}
        frame, name = self._source
        output = _items(frame._jdf.queryExecution().analyzed().output())
        return {
            attribute.exprId().id(): f"{quote(name)}.{quote(attribute.name())}"
            for attribute in output
        }

    def __call__(self, column: Column) -> str:
        """Return the SQL of a column; see ``ColumnSql``. Raises UnsupportedError, too, if it is not
        one of a classic session.
        """
        java = getattr(column, "_jc", None)
        if java is None:
            raise another_session_error("a classic session")
        return self._node_sql(java.node())

    def _kind_and_content(self, part: Any) -> tuple[str, Any]:
        return _snake(part.getClass().getSimpleName()), part

    def _unknown_kind_error(self, part: Any) -> UnsupportedError:
        return no_sql_error(part.getClass().getSimpleName(), str(part.sql()))

    def _parse(self, text: str) -> None:
        """Let Spark parse an expression. Raises ParseException if it cannot."""
        self._session_state().sqlParser().parseExpression(text)

    def _alias_name(self, part: Any) -> str | None:
        """Return the alias of a part; None if it has none."""
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
        return self._node_sql(node.child())

    def _unresolved_attribute(self, node: Any) -> str:
        return quoted_path(_items(node.nameParts()))

    def _literal(self, node: Any) -> str:
        """Return the SQL of a literal. A TIMESTAMP is written by its microseconds, a text by
        ``storage.columns.literal``, anything else (and NULL) as Spark writes it.
        """
        converter = getattr(self._spark._jvm, _CONVERTER)
        literal = getattr(converter, "MODULE$").apply(node)
        if literal.dataType().typeName() == "timestamp" and literal.value() is not None:
            return f"timestamp_micros({literal.value()})"  # a wall clock may come twice a year
        if literal.dataType().typeName() == "string" and literal.value() is not None:
            return sql_literal(literal.value().toString())
        return str(literal.sql())

    def _sql_expression(self, node: Any) -> str:
        return self._parse_text(node.expression())

    def _unresolved_function(self, node: Any) -> str:
        """Return the SQL of a call of a function or operator. Raises UnsupportedError if it is
        internal, or as ``_function_sql`` does.
        """
        if node.isInternal():
            raise self._unknown_kind_error(node)
        name, arguments = node.functionName(), _items(node.arguments())
        path = self._path(name) if node.isUserDefinedFunction() else [name]
        return self._function_sql(path, arguments, is_distinct=node.isDistinct())

    def _path(self, name: str) -> list[str]:
        return _items(self._session_state().sqlParser().parseMultipartIdentifier(name))

    def _cast(self, node: Any) -> str:
        """Return the SQL of CAST or TRY_CAST; TIMESTAMP is written as TIMESTAMP_LTZ."""
        mode = node.evalMode()
        is_try = mode.isDefined() and "Try" in mode.get().getClass().getSimpleName()
        cast = "TRY_CAST" if is_try else "CAST"
        # What the word TIMESTAMP means depends on the session (spark.sql.timestampType).
        kind = _TIMESTAMP.sub(
            lambda word_match: (
                "TIMESTAMP_LTZ" if word_match.group() == "TIMESTAMP" else word_match.group()
            ),
            node.dataType().sql(),
        )
        return f"{cast}({self._node_sql(node.child())} AS {kind})"

    def _unresolved_extract_value(self, node: Any) -> str:
        """Return the SQL of a struct's field, or of an element of an array or map."""
        key = node.extraction()
        is_literal = key.getClass().getSimpleName() == "Literal"
        return self._extract_value(node.child(), key, key.value() if is_literal else None)

    def _case_when_otherwise(self, node: Any) -> str:
        """Return the SQL of CASE."""
        branches = [
            (self._node_sql(branch._1()), self._node_sql(branch._2()))
            for branch in _items(node.branches())
        ]
        otherwise = node.otherwise()
        return case_sql(
            branches, self._node_sql(otherwise.get()) if otherwise.isDefined() else None
        )

    def _lambda_function(self, node: Any) -> str:
        names = [argument.name() for argument in _items(node.arguments())]
        return self._lambda(names, self._node_sql(node.function()))

    def _unresolved_named_lambda_variable(self, node: Any) -> str:
        return self._variable(node.name())

    def _column_node_expression(self, node: Any) -> str:
        return self._node_sql(node.node())

    def _expression_column_node(self, node: Any) -> str:
        return self._node_sql(node.expression())

    def _attribute_reference(self, expression: Any) -> str:
        """Return the SQL of a column that belongs to a DataFrame: ``df["id"]``. Raises
        AnalysisError if it is not the source's.
        """
        sql = self._sql_by_id.get(expression.exprId().id())
        if sql is None:
            raise another_frame_error(expression.name())
        return sql

    def _named_argument_expression(self, expression: Any) -> str:
        return f"{quote(expression.key())} => {self._node_sql(expression.value())}"

    def _python_udf(self, expression: Any) -> str:
        """Make the Python function that a part calls a temporary function of the session, until
        ``close``, and return the SQL of a call by its new name.
        """
        arguments = [self._node_sql(child) for child in _items(expression.children())]
        name, jvm = self._function_name(), self._spark._jvm
        arguments_of_jvm = [name, expression.func(), expression.dataType(), expression.evalType(),
                 expression.udfDeterministic()]  # fmt: skip
        # Later versions of Spark have lists more, of what they know about the function's code.
        empty_lists: list[Any] = [[]] * (
            _constructor_size(jvm, _PYTHON_FUNCTION) - len(arguments_of_jvm)
        )
        function = getattr(jvm, _PYTHON_FUNCTION)(*arguments_of_jvm, *empty_lists)
        self._spark._jsparkSession.udf().registerPython(name, function)
        return f"{name}({', '.join(arguments)})"


def alias_of(frame: DataFrame) -> str | None:
    """Return the name that ``df.alias("s")`` gave; None if the DataFrame has none, or was changed
    since.
    """
    plan = frame._jdf.queryExecution().analyzed()
    return str(plan.alias()) if plan.getClass().getSimpleName() == "SubqueryAlias" else None


def _items(seq: Any) -> list[Any]:
    """Return the items of Scala's sequence."""
    return [seq.apply(i) for i in range(seq.size())]


def _constructor_size(jvm: Any, name: str) -> int:
    """Return the number of parameters of the only constructor of a Java class."""
    (constructor,) = java_class(jvm, "java.lang.Class").forName(name).getConstructors()
    return int(constructor.getParameterCount())


def _snake(name: str) -> str:
    """Return a name in snake case: ``PythonUDF`` → ``python_udf``."""
    words: list[str] = []
    for previous, letter in zip(" " + name, name, strict=False):
        words.append("_" if letter.isupper() and not previous.isupper() and words else "")
        words.append(letter.lower())
    return "".join(words).lstrip("_")
