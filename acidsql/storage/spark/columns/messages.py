"""Columns of a session of Spark Connect: messages of its protocol (``expressions.proto``).

The server would give them their meaning. So the SQL says what the server's ``SparkConnectPlanner``
and ``LiteralValueProtoConverter`` make of them.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention
from pyspark.sql.connect import proto
from pyspark.sql.connect.column import Column as RemoteColumn
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.plan import SubqueryAlias
from pyspark.sql.connect.types import parse_attr_name, proto_schema_to_pyspark_data_type

from acidsql.errors import AnalysisError, SqlSyntaxError, UnsupportedError
from acidsql.storage.columns import literal as sql_literal
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.columns.writer import (
    ColumnSql,
    another_frame_error,
    another_session_error,
    case_sql,
    no_sql_error,
)
from acidsql.storage.spark.session.jvm import is_on
from acidsql.storage.spark.type_sql import type_sql

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROS_OF_A_SECOND = 1_000_000
_OF_UNITS = ("timestampadd", "timestampdiff")  # their first argument is a word


class ColumnMessages(ColumnSql):
    """Writes columns of a session of Spark Connect."""

    _column: Column | None = None  # which is written

    def __call__(self, column: Column) -> str:
        """Return the SQL of a column; see ``ColumnSql``. Raises UnsupportedError, too, if it is not
        one of Spark Connect's. The column is remembered: errors show it.
        """
        if not isinstance(column, RemoteColumn):
            raise another_session_error("a session of Spark Connect")
        self._column = column
        return self._node_sql(column.to_plan(self._spark.client))

    def _kind_and_content(self, part: Any) -> tuple[str, Any]:
        kind = str(part.WhichOneof("expr_type"))
        return kind, getattr(part, kind)

    def _unknown_kind_error(self, part: Any) -> UnsupportedError:
        return self._no_sql(part.WhichOneof("expr_type"))

    def _parse(self, text: str) -> None:
        """Let the server parse an expression. Raises ParseException if it cannot; any other
        AnalysisException, as for a column that it does not know, is ignored.
        """
        try:
            _ = self._spark.range(0).select(F.expr(text)).schema
        except ParseException:
            raise
        except AnalysisException:
            pass  # the columns are those of the statement

    def _no_sql(self, kind: str) -> UnsupportedError:
        """Return the error for a part that no SQL has, of the column being written."""
        try:
            return no_sql_error(kind, str(self._column))
        except ValueError:  # PySpark cannot show each day
            return no_sql_error(kind, "")

    def _alias_name(self, part: Any) -> str | None:
        return part.alias.name[0] if part.WhichOneof("expr_type") == "alias" else None

    def _null_is_in_nothing(self) -> bool:
        """Whether NULL IN an empty list is false, and not NULL: the legacy setting is false or, if
        it is unset, ANSI mode is on.
        """
        legacy = "spark.sql.legacy.nullInEmptyListBehavior"
        if self._spark.conf.get(legacy, None) is None:
            return is_on(self._spark, "spark.sql.ansi.enabled")
        return not is_on(self._spark, legacy)

    # ── one method for each kind of message ──────────────────────────────────────────────────

    def _alias(self, message: Any) -> str:
        return self._node_sql(message.expr)

    def _unresolved_attribute(self, message: Any) -> str:
        """Return the SQL of a column by its name, each part quoted; of a DataFrame's own column
        (``df["id"]``) with the source's name before it, as ``_column_of_frame`` does. Raises
        UnsupportedError for a metadata column, and AnalysisError for one of a DataFrame that the
        statement does not read, and for a name with an empty part.
        """
        if message.HasField("plan_id"):
            return self._column_of_frame(message.unparsed_identifier, message.plan_id)
        if message.is_metadata_column:
            raise self._no_sql("metadata column")
        return quoted_path(_path(message.unparsed_identifier))

    def _column_of_frame(self, name: str, plan_id: int) -> str:
        """Return the SQL of a column that belongs to a DataFrame, ``df["id"]``: the source's name,
        a dot, and the column's name, both quoted.

        The server knows whether the column is the source's. Raises AnalysisError if it is not, or
        is a field of a column, or the statement has no source.
        """
        if self._source is None:
            raise another_frame_error(name)
        frame, alias = self._source
        column: Any = RemoteColumn(ColumnReference(name, plan_id))
        try:
            selected = frame.select(column)
            (selected_name,) = selected.columns
            # A field of a struct, or a column that a join has hidden, may have another's name.
            is_same = selected.sameSemantics(frame.select(F.col(quote(selected_name))))
        except AnalysisException:
            is_same = False
        if not is_same:
            raise another_frame_error(name)
        return f"{quote(alias)}.{quote(selected_name)}"

    def _literal(self, message: Any) -> str:
        """Return the SQL of a literal. Raises UnsupportedError for a type that SQL's literals do
        not have.
        """
        kind = message.WhichOneof("literal_type")
        write = _LITERALS.get(kind)
        if write is None:
            raise self._no_sql(str(kind))
        return write(getattr(message, kind))

    def _expression_string(self, message: Any) -> str:
        return self._parse_text(message.expression)

    def _unresolved_function(self, message: Any) -> str:
        """Return the SQL of a call of a function, operator or CASE (the function ``when``). The
        unit of ``timestampadd`` and ``timestampdiff`` is written as a word. Raises UnsupportedError
        if the function is internal, or as ``_function_sql`` does.
        """
        name, arguments = message.function_name, message.arguments
        if message.is_internal:
            raise self._no_sql(name)
        if name == "when":
            sqls = [self._node_sql(argument) for argument in arguments]
            pairs = list(zip(sqls[::2], sqls[1::2], strict=False))
            return case_sql(pairs, sqls[-1] if len(sqls) % 2 else None)
        if name in _OF_UNITS and (unit := arguments[0].literal.string).isalpha():
            return f"{name}({unit}, {', '.join(map(self._node_sql, arguments[1:]))})"
        path = _path(name) if message.is_user_defined_function else [name]
        return self._function_sql(path, arguments, is_distinct=message.is_distinct)

    def _call_function(self, message: Any) -> str:
        return self._function_sql(
            _path(message.function_name), message.arguments, is_distinct=False
        )

    def _cast(self, message: Any) -> str:
        """Return the SQL of CAST or TRY_CAST, with NOT NULL after fields that are never NULL.
        Raises SqlSyntaxError if the type's text is a list of columns, and the server's error if it
        is no type at all.
        """
        is_try = message.eval_mode == proto.Expression.Cast.EvalMode.EVAL_MODE_TRY
        if message.WhichOneof("cast_to_type") == "type":
            kind = proto_schema_to_pyspark_data_type(message.type)
        else:  # the server parses the text, so that nothing but a type is written
            kind = self._spark._parse_ddl(message.type_str)
            is_struct = message.type_str.lower().lstrip().startswith("struct")
            if isinstance(kind, T.StructType) and not is_struct:  # the columns of a table
                raise SqlSyntaxError(
                    "This text is no type.", message.type_str, 0, len(message.type_str)
                )
        cast, text = "TRY_CAST" if is_try else "CAST", type_sql(kind, with_not_null=True)
        return f"{cast}({self._node_sql(message.expr)} AS {text})"

    def _unresolved_extract_value(self, message: Any) -> str:
        """Return the SQL of a struct's field, or of an element of an array or map."""
        literal = message.extraction.literal
        is_text = literal.WhichOneof("literal_type") == "string"
        return self._extract_value(
            message.child, message.extraction, literal.string if is_text else None
        )

    def _lambda_function(self, message: Any) -> str:
        names = [argument.name_parts[0] for argument in message.arguments]
        return self._lambda(names, self._node_sql(message.function))

    def _unresolved_named_lambda_variable(self, message: Any) -> str:
        return self._variable(message.name_parts[0])

    def _named_argument_expression(self, message: Any) -> str:
        return f"{quote(message.key)} => {self._node_sql(message.value)}"

    def _common_inline_user_defined_function(self, message: Any) -> str:
        """Make the Python function that a part calls a temporary function of the session, until
        ``close``, and return the SQL of a call by its new name.

        Raises UnsupportedError for a function that is not Python's.
        """
        if message.WhichOneof("function") != "python_udf":
            raise self._no_sql(message.WhichOneof("function"))
        arguments = [self._node_sql(argument) for argument in message.arguments]
        command = proto.Command()
        command.register_function.CopyFrom(message)
        command.register_function.ClearField("arguments")
        command.register_function.function_name = name = self._function_name()
        self._spark.client.execute_command(command)
        return f"{name}({', '.join(arguments)})"


def alias_of(frame: DataFrame) -> str | None:
    """Return the name that ``df.alias("s")`` gave; None if the DataFrame has none, or was changed
    since.
    """
    remote: Any = frame
    return remote._plan._alias if isinstance(remote._plan, SubqueryAlias) else None


def _path(name: str) -> list[str]:
    """Return the parts of a name, as the server parses them. Raises AnalysisError for an empty
    part.
    """
    parts = parse_attr_name(name)
    if not parts or not all(parts):
        raise AnalysisError(
            f"The name '{name}' has an empty part, or a backtick without its pair.",
            condition="INVALID_ATTRIBUTE_NAME_SYNTAX",
            sqlstate="42604",
        )
    return list(parts)


# ── literals ─────────────────────────────────────────────────────────────────────────────────


def _null(message: Any) -> str:
    """Return NULL as SQL, cast to the type that a message has."""
    kind = proto_schema_to_pyspark_data_type(message)
    return "NULL" if isinstance(kind, T.NullType) else f"CAST(NULL AS {type_sql(kind)})"


def _binary_float(value: float, letter: str, kind: str) -> str:
    """Return a FLOAT or DOUBLE as SQL. ``letter``: ends the literal; ``kind``: the type, for NaN
    and the infinities.
    """
    return f"{value!r}{letter}" if math.isfinite(value) else f"CAST('{value!r}' AS {kind})"


def _decimal(message: Any) -> str:
    """Return a DECIMAL as SQL, with the server's type: it is widened until the value fits.

    Raises UnsupportedError if the value is no number.
    """
    _, digits, exponent = Decimal(message.value).as_tuple()
    if not isinstance(exponent, int):
        raise no_sql_error("decimal", message.value)
    scale = max(message.scale, -exponent)
    precision = max(message.precision, len(digits) + max(exponent, 0), scale)
    return f"CAST('{message.value}' AS DECIMAL({precision}, {scale}))"


def _timestamp_ntz(micros: int) -> str:
    """Return a TIMESTAMP_NTZ literal. ``micros``: microseconds since 1970."""
    moment = _EPOCH + datetime.timedelta(microseconds=micros)
    return f"TIMESTAMP_NTZ '{moment.isoformat(sep=' ')}'"


def _day_time_interval(micros: int) -> str:
    """Return microseconds as an INTERVAL literal, from days to seconds."""
    seconds, rest = divmod(abs(micros), _MICROS_OF_A_SECOND)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    interval_text = f"{days} {hours:02}:{minutes:02}:{seconds % 60:02}.{rest:06}"
    return f"INTERVAL '{'-' if micros < 0 else ''}{interval_text}' DAY TO SECOND"


def _array(message: Any) -> str:
    """Return an array literal as SQL, with its type."""
    kind = T.ArrayType(proto_schema_to_pyspark_data_type(message.element_type))
    return f"CAST(array({', '.join(_elements(message.elements))}) AS {type_sql(kind)})"


def _elements(messages: Sequence[Any]) -> list[str]:
    """Return the SQL of the elements of an array literal."""
    kinds = [literal.WhichOneof("literal_type") for literal in messages]
    return [
        _LITERALS[kind](getattr(literal, kind))
        for kind, literal in zip(kinds, messages, strict=True)
    ]


# All that PySpark's Columns have, but TIME, which Spark has only as a preview.
_LITERALS: dict[str, Callable[[Any], str]] = {
    "null": _null,
    "binary": lambda value: f"X'{value.hex()}'",
    "boolean": lambda value: str(value).lower(),
    "byte": lambda value: f"{value}Y",
    "short": lambda value: f"{value}S",
    "integer": str,
    "long": lambda value: f"{value}L",
    "float": lambda value: _binary_float(value, "F", "FLOAT"),
    "double": lambda value: _binary_float(value, "D", "DOUBLE"),
    "decimal": _decimal,
    "string": sql_literal,
    "date": lambda days: f"DATE '{_EPOCH.date() + datetime.timedelta(days=days)}'",
    "timestamp": lambda micros: f"timestamp_micros({micros})",  # a wall clock may come twice a year
    "timestamp_ntz": _timestamp_ntz,
    "day_time_interval": _day_time_interval,
    "array": _array,
}
