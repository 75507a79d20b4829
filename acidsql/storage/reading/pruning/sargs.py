"""Search arguments: they let ORC skip stripes and row groups that have no row that matters.

Spark makes a search argument of the conditions that it pushes down. But Spark names a column of an
ACID file ``row.x``, and ORC looks for ``x`` within ``row``: ORC would not find the column, and
would skip nothing. So this module makes the search argument, with the names that ORC wants, and
hands it over as options of the read. If Spark pushed a condition down, it would replace these
options; ``unpushable_sql`` prevents the push-down (and an error of Spark 4.3, which cannot push
``x IN (1, NULL)`` down to ORC).

A search argument has only values that ORC and Spark compare alike: no doubles (NaN), no timestamps
(time zones), no CHAR (padding), no days of the hybrid calendar, no strings that UTF-8 and UTF-16
sort differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from acidsql.acid import event
from acidsql.acid.table import Column, Table
from acidsql.acid.values.predicate import (
    ANYTHING,
    INTEGERS,
    VALUES_MAX,
    And,
    Comparison,
    Not,
    Or,
    Predicate,
    TypedValue,
    weaken,
)
from acidsql.storage.spark.session.java_classes import java_class, java_strings
from acidsql.storage.spark.session.jvm import java_error

_EVENT_COLUMNS = frozenset(name.lower() for name in event.EVENT_COLUMNS)
_GREGORIAN = "1582-10-15"  # from year 0 to 9999, dates sort as text as they do as days
_LAST_ALIKE = "\ud7ff"  # surrogates come next: UTF-16 sorts them before U+E000


def read_options(
    spark: SparkSession, table: Table, names: Sequence[str], condition: Predicate
) -> dict[str, str]:
    """Return options of an ORC read that skip data by a condition; empty if nothing can be skipped,
    Spark gives no access to its JVM, or a call to the JVM fails.

    Args:
        spark: The session.
        table: The table.
        names: The names that the files have for the table's columns. Terms about a column that the
            files have under another name are not used.
        condition: A predicate that holds for every row that matters.
    """
    unrenamed = [
        c for c, file_name in zip(table.columns, names, strict=True) if c.name == file_name
    ]
    kinds = {column.name: column.type for column in unrenamed if _is_simple(column.name)}
    # Each value is a message to the JVM. AUTO CDC may ask for thousands.
    pushed = weaken(
        comparable_condition(condition, kinds), lambda term: len(term.values) <= VALUES_MAX
    )
    jvm = getattr(spark, "_jvm", None)
    if pushed == ANYTHING or jvm is None:
        return {}
    try:
        return _serialized_filter(jvm, unrenamed, _Filters(spark, jvm).build(pushed))
    except java_error():
        return {}  # these classes are internal to Spark and ORC: if they changed, all is read


def unpushable_sql(column: str) -> str:
    """Return SQL of a column in a form through which Spark pushes no condition down."""
    return f"coalesce({column}, {column})"


def comparable_condition(condition: Predicate, kinds: Mapping[str, str]) -> Predicate:
    """Return the part of a condition that ORC and Arrow decide as Spark does; ANYTHING if there is
    none. The part holds at least for all rows for which the condition does.

    ``kinds``: the types of the columns that the result may use, by name.
    """
    return weaken(condition, lambda term: term.column in kinds and _is_compared_alike(term, kinds))


def _is_compared_alike(term: Comparison, kinds: Mapping[str, str]) -> bool:
    """Whether ORC and Arrow compare the column of a term with its values as Spark does: a column of
    integers, days, strings (VARCHAR too), booleans or decimals, and literals of the same type with
    an agreed order.
    """
    kind = kinds[term.column]
    if kind.startswith("varchar"):
        kind = "string"
    if kind not in (*INTEGERS, "date", "string", "boolean") and not kind.startswith("decimal"):
        return False
    return all(value.type == kind and _has_agreed_order(value) for value in term.values)


def _is_simple(name: str) -> bool:
    """Whether ORC finds the column by this name: an ASCII identifier that is no event column's.

    ORC treats dots and backticks in a name as a path. Some other names could mean event columns.
    """
    return name.isidentifier() and name.isascii() and name not in _EVENT_COLUMNS


def _has_agreed_order(value: TypedValue) -> bool:
    """Whether readers agree on a value's order: days from 1582-10-16 to 9999, strings that UTF-8
    and UTF-16 sort alike; all values of other types.
    """
    if value.type == "date":
        return len(value.text) == len(_GREGORIAN) and value.text > _GREGORIAN
    if value.type == "string":
        return all(character <= _LAST_ALIKE for character in value.text)
    return True


class _Filters:
    """Builds Spark's data source filters in the JVM."""

    def __init__(self, spark: SparkSession, jvm: Any) -> None:
        self._jvm = jvm
        gateway: Any = spark.sparkContext._gateway
        self._new_array = gateway.new_array

    def build(self, predicate: Predicate) -> Any:
        """Return a predicate as a filter object of Spark's in the JVM."""
        match predicate:
            case And(terms):
                return self._join_terms(self._filter_class("And"), terms)
            case Or(terms):
                return self._join_terms(self._filter_class("Or"), terms)
            case Not(term):
                return self._filter_class("Not")(self.build(term))
            case Comparison(column, "is null"):
                return self._filter_class("IsNull")(column)
            case Comparison(column, "in", values):
                array = self._new_array(java_class(self._jvm, "java.lang.Object"), len(values))
                for at, value in enumerate(values):
                    array[at] = self._value(value)
                return self._filter_class("In")(column, array)
            case Comparison(column, operator, (value,)):
                return self._filter_class(_NAMES[operator])(column, self._value(value))
        raise AssertionError(predicate)

    def _filter_class(self, name: str) -> Any:
        """Return the Java class of a data source filter, by its name."""
        return java_class(self._jvm, f"org.apache.spark.sql.sources.{name}")

    def _join_terms(self, joined: Any, terms: Sequence[Predicate]) -> Any:
        """Join two or more terms by a Java class of two arguments, ``And`` or ``Or``."""
        first, *other_terms = terms
        folded = self.build(first)
        for term in other_terms:
            folded = joined(folded, self.build(term))
        return folded

    def _value(self, value: TypedValue) -> Any:
        """Return a literal as Py4J can hand it over: a boolean, a ``java.sql.Date``, or Python's
        value.
        """
        if value.type == "boolean":
            return value.text == "true"
        if value.type == "date":
            return java_class(self._jvm, "java.sql.Date").valueOf(value.text)
        return value.python


_NAMES = {
    "=": "EqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}


def _serialized_filter(jvm: Any, columns: Sequence[Column], filters: Any) -> dict[str, str]:
    """Return a filter as the two options from which ORC reads it; empty if ORC has no use for it:
    the search argument, and the names of all usable columns. ``filters``: the result of
    ``_Filters.build``.
    """
    columns = [column for column in columns if _is_simple(column.name)]
    ddl = ", ".join(f"`{column.name}` {_spark_type(column.type)}" for column in columns)
    schema = java_class(jvm, "org.apache.spark.sql.types.StructType").fromDDL(ddl)
    search_argument = _create_filter(jvm, schema, jvm.PythonUtils.toSeq([filters]))
    if search_argument.isEmpty():
        return {}
    configuration = java_class(jvm, "org.apache.hadoop.conf.Configuration")(False)
    names = java_strings(jvm, [column.name for column in columns])
    orc = java_class(jvm, "org.apache.orc.mapred.OrcInputFormat")
    orc.setSearchArgument(configuration, search_argument.get(), names)
    keys = ("orc.kryo.sarg", "orc.sarg.column.names")
    return {key: str(configuration.get(key)) for key in keys}


def _create_filter(jvm: Any, schema: Any, filters: Any) -> Any:
    """Return ORC's search argument for a filter, as Scala's Option, by Spark's own internal
    method.
    """
    orc_filters = java_class(jvm, "org.apache.spark.sql.execution.datasources.orc.OrcFilters")
    try:
        third = getattr(orc_filters, "createFilter$default$3")()
    except java_error():  # before Spark 4.3
        return orc_filters.createFilter(schema, filters)
    return orc_filters.createFilter(schema, filters, third)


def _spark_type(hive_type: str) -> str:
    """Spark's type of a column. Filters use few types; for all others, STRING will do."""
    is_known = hive_type in (*INTEGERS, "date", "boolean") or hive_type.startswith("decimal")
    return hive_type if is_known else "string"
