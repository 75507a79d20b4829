"""Store assignment: which type may be written to which column, and the SQL of the conversion.

``struct_fields`` says which field of a struct corresponds to which. For the other types, the rules
are those of ``spark.sql.storeAssignmentPolicy``:

* ANSI (``Cast.canANSIStoreAssign``): a column of a number type takes any number type, a string
  column any atomic type, a date or timestamp column any date or timestamp type. NULL goes into any
  column. A string does not go into an INT column, but a string literal does, if it is an INT:
  ``VALUES ('2024-01-01')`` is a date for a DATE column.
* STRICT (``Cast.canUpCast``): only types from which no value can be lost.
* LEGACY: as ANSI, and also strings into number, date, timestamp, boolean and binary columns, and
  numbers and booleans into each other. A text that is no such value becomes NULL, as in Hive.

A value that is out of range is an error, whatever the policy. (Spark's LEGACY would wrap integers
around.) CAST does not always raise this error: with
``spark.sql.ansi.enabled=false`` it wraps around. ``try_cast`` does not depend on the session, so
each conversion that can fail is checked by a ``try_cast``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from acidsql.acid.layout import DEFAULT_PARTITION
from acidsql.acid.table import Column
from acidsql.acid.types import HiveType, parse_type, spark_ddl
from acidsql.errors import AnalysisError
from acidsql.plan.struct_fields import FieldRules, TypeMismatchError, parts_of, shown_path
from acidsql.sql.tokens import Span
from acidsql.storage.columns import literal, nested, quote, shown_type

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # digits
_FLOATS = {"float", "double"}
_DATETIMES = {"date", "timestamp", "timestamp_ltz"}
_TEXTS = {"string", "char", "varchar"}
_NESTED = {"array", "map", "struct"}
_FROM_TEXT = frozenset(_INTEGERS) | _FLOATS | _DATETIMES | {"decimal", "boolean", "binary"}
# The order of Spark's UpCastRule: no value is lost on the way to a later type.
_UP = ["tinyint", "smallint", "int", "bigint", "float", "double"]


class Policy(Enum):
    """A value of ``spark.sql.storeAssignmentPolicy``."""

    ANSI = "ANSI"
    STRICT = "STRICT"
    LEGACY = "LEGACY"


# The prefix of our own raise_error texts, which the user's texts do not have. Condition, SQLSTATE
# and message follow, each with a bar after it. BAR stands for each bar in a message.
RAISED = "acidsql|"
BAR = "\u01c0"  # a letter that looks like a bar


# A time with a zone behind it. A TIMESTAMP is a wall clock and has no zone.
_HAS_ZONE = "[0-9]:[0-9]+.*[^0-9:. ]"


_BY_NAME = FieldRules()


def assign(
    sql: str,
    source: HiveType,
    column: str,
    target: str,
    text: str,
    where: Span,
    *,
    is_literal: bool = False,
    policy: Policy = Policy.ANSI,
    fields: FieldRules = _BY_NAME,
    old: str | None = None,
) -> str:
    """SQL that converts a value of type ``source`` to a column's type.

    Args:
        sql: The value. The result repeats it, so it should be a column, not an expression.
        source: The value's type, as Spark found it.
        column: The target column's name, for messages.
        target: The target column's Hive type.
        text: The user's statement.
        where: The value's place in the statement.
        is_literal: The value is a literal.
        policy: The session's policy.
        fields: How the fields of structs correspond.
        old: SQL of the column's old value. Fields of structs that the value lacks keep it.

    Raises:
        AnalysisError: INCOMPATIBLE_DATA_FOR_TABLE: the column takes no values of this type.
    """
    wanted = parse_type(target)
    is_said = is_literal and source.kind == "string" and takes_literals(wanted)
    if not is_said or policy is Policy.STRICT:
        try:
            need_assignable(source, wanted, policy, fields, (column,))
        except TypeMismatchError as error:
            raise AnalysisError(
                error.message, text, where.start, where.end,
                condition=error.condition, sqlstate="KD000", column=column,
            ) from None  # fmt: skip
    return _Assignment(column, policy, fields).sql(sql, source, wanted, old=old)


def can_assign(
    source: HiveType,
    target: HiveType,
    policy: Policy = Policy.ANSI,
    fields: FieldRules = _BY_NAME,
) -> bool:
    """Whether a column takes values of a type."""
    try:
        need_assignable(source, target, policy, fields, ("",))
    except TypeMismatchError:
        return False
    return True


def need_assignable(
    source: HiveType, target: HiveType, policy: Policy, fields: FieldRules, path: Sequence[str]
) -> None:
    """Refuse a value for a column or a field; ``path``: the names that lead to it.

    Raises:
        TypeMismatchError: The column, or a field of it, takes no values of this type.
    """
    if source.kind == "void" or source == target:
        return
    if source.kind != target.kind or source.kind not in _NESTED:
        if not _can_assign_leaf(source, target, policy):
            raise _type_mismatch(source, target, policy, path)
        return
    if source.kind == "struct":
        ordinals = fields.ordinals(source, target, path)
        parts = zip(target.names, ordinals, target.children, strict=True)
        pairs = [(name, source.children[i], kind) for name, i, kind in parts if i is not None]
    else:
        pairs = [*zip(parts_of(target), source.children, target.children, strict=True)]
    for name, inner, outer in pairs:
        need_assignable(inner, outer, policy, fields, (*path, name))


def _type_mismatch(
    source: HiveType, target: HiveType, policy: Policy, path: Sequence[str]
) -> TypeMismatchError:
    strictly = " (spark.sql.storeAssignmentPolicy is STRICT)" if policy is Policy.STRICT else ""
    place = f"column '{path[0]}'" if len(path) == 1 else f"'{shown_path(path)}'"
    shown = str(target).upper()
    return TypeMismatchError(
        "CANNOT_SAFELY_CAST",
        f"A value of type {_shown(source).upper()} cannot be written to {place} of type "
        f"{shown}{strictly}. Write CAST(… AS {shown}) to convert the value.",
    )


def _can_assign_leaf(source: HiveType, target: HiveType, policy: Policy) -> bool:
    """Whether a value of an atomic type goes into a field of an atomic type."""
    if source.kind in _NESTED or target.kind in _NESTED:
        return False
    if policy is Policy.STRICT:
        return _loses_nothing(source, target)
    if policy is Policy.LEGACY and _is_converted(source, target):
        return True
    if target.kind in _TEXTS:
        return _is_atomic(source)
    return (_is_number(source) and _is_number(target)) or (
        source.kind in _DATETIMES and target.kind in _DATETIMES
    )


def _loses_nothing(source: HiveType, target: HiveType) -> bool:
    """Spark's ``Cast.canUpCast`` of atomic types."""
    if target.kind in _TEXTS:
        return _is_atomic(source)
    if source.kind in _DATETIMES and target.kind in _DATETIMES:
        return target.kind != "date" or source.kind == "date"
    if source.kind in _UP and target.kind in _UP:
        return _UP.index(source.kind) <= _UP.index(target.kind)
    if target.kind == "decimal" and _is_number(source) and source.kind not in _FLOATS:
        return _fraction(source) <= _fraction(target) and _digits_in(source) <= _digits_in(target)
    # A DECIMAL without a fraction, and with fewer digits than the integer type.
    whole = source.kind == "decimal" and target.kind in _INTEGERS and _fraction(source) == 0
    return whole and _digits_in(source) < _digits_in(target)


def _fraction(node: HiveType) -> int:
    return node.parameters[1] if node.kind == "decimal" else 0


def _digits_in(node: HiveType) -> int:
    """As ``_digits``; Spark counts 20 digits of a BIGINT."""
    return 20 if node.kind == "bigint" else _digits(node)


def _is_converted(source: HiveType, target: HiveType) -> bool:
    """Whether only the policy LEGACY converts these types into each other."""
    if source.kind == "string":
        return target.kind in _FROM_TEXT
    pair = {source.kind, target.kind}
    return "boolean" in pair and (_is_number(source) or _is_number(target))


def takes_literals(target: HiveType) -> bool:
    """Whether a column takes string literals, though it takes no other strings."""
    return _is_number(target) or target.kind in ("date", "timestamp", "boolean")


def as_read(sql: str, column: Column, *, is_partition: bool) -> str:
    """SQL of a column's value as it will be read, from SQL of the value as it is written."""
    kind = parse_type(column.type)
    if is_partition and kind.kind in _TEXTS:
        # A directory's name means NULL by each of these.
        text = f"rtrim({sql})" if kind.kind == "char" else sql
        sql = f"CASE WHEN {text} NOT IN ('', {literal(DEFAULT_PARTITION)}) THEN {sql} END"
    return f"rpad({sql}, {kind.parameters[0]}, ' ')" if kind.kind == "char" else sql


class _Assignment:
    """Converts values to the type of a column.

    Args:
        column: The column's name, for messages.
        policy: The session's policy.
        fields: How the fields of structs correspond.
    """

    def __init__(self, column: str, policy: Policy, fields: FieldRules) -> None:
        self._column, self._policy, self._fields = column, policy, fields

    def sql(
        self, sql: str, source: HiveType, target: HiveType, depth: int = 0, old: str | None = None
    ) -> str:
        """SQL of the converted value.

        Args:
            sql: The value.
            source: The value's type.
            target: The column's type.
            depth: How deep in the column's type the value is.
            old: The old value in its place, of which a struct keeps the fields that the value
                lacks.
        """
        if source.kind == "void":
            return f"CAST({sql} AS {shown_type(str(target))})"
        if target.kind in _NESTED:
            return self._nested(sql, source, target, depth, old)
        if target.kind in ("char", "varchar"):
            text = sql if source.kind == "string" else f"CAST({sql} AS STRING)"
            return _fitted(text, target, self._column)
        if source == target:
            return sql
        wanted = shown_type(str(target))
        if source.kind == "string" and target.kind != "string":
            return self._read(sql, target, wanted)
        if _is_safe(source, target):
            return f"CAST({sql} AS {wanted})"
        failed = raise_sql(
            "CAST_OVERFLOW_IN_TABLE_INSERT",
            "22003",
            f"A value is out of the range of column '{self._column}' of type "
            f"{str(target).upper()}.",
        )
        cast = f"try_cast({sql} AS {wanted})"
        return f"CASE WHEN {sql} IS NOT NULL AND {cast} IS NULL THEN {failed} ELSE {cast} END"

    def _read(self, sql: str, target: HiveType, wanted: str) -> str:
        """SQL that reads a text as a value of the target type."""
        cast = f"try_cast({sql} AS {wanted})"
        if self._policy is Policy.LEGACY and target.kind in _INTEGERS:
            # As in Hive, '1.5' is 1, and '.5' is 0.
            with_zero = f"regexp_replace({sql}, '^([ ]*[-+]?)[.](?=[0-9])', '$10.')"
            cast = f"try_cast(regexp_replace({with_zero}, '[.][0-9]*[ ]*$', '') AS {wanted})"
        wrong = f"{cast} IS NULL"
        if target.kind == "timestamp":
            wrong = f"({wrong} OR {sql} RLIKE {literal(_HAS_ZONE)})"
        instead = "NULL" if self._policy is Policy.LEGACY else self._no_value(sql, target)
        return f"CASE WHEN {sql} IS NOT NULL AND {wrong} THEN {instead} ELSE {cast} END"

    def _no_value(self, sql: str, target: HiveType) -> str:
        """SQL that fails the job, because a text is no value of the target type."""
        kind = str(target).upper()
        said = literal(f"This text is no {kind}, which column '{self._column}' takes: ")
        return raise_told("CAST_INVALID_INPUT", "22018", f"concat({said}, {sql})")

    def _nested(
        self, sql: str, source: HiveType, target: HiveType, depth: int, old: str | None
    ) -> str:
        if _same_for_storage(source, target):
            return sql
        if source.kind == "struct":
            return self._struct(sql, source, target, depth, old)
        sources = {id(child): source.children[i] for i, child in enumerate(target.children)}
        return nested(
            sql,
            target,
            lambda part, child, deeper: self.sql(part, sources[id(child)], child, deeper),
            depth,
        )

    def _struct(
        self, sql: str, source: HiveType, target: HiveType, depth: int, old: str | None
    ) -> str:
        ordinals = self._fields.ordinals(source, target, (self._column,))
        if self._fields.has_namesakes(source):  # the fields go by position
            sql, source = _with_numbers(sql, source)
        values = []
        for name, ordinal, outer in zip(target.names, ordinals, target.children, strict=True):
            kept = None if old is None else f"{old}.{quote(name)}"
            if ordinal is None:
                value = kept or f"CAST(NULL AS {shown_type(str(outer))})"
            else:
                given = f"{sql}.{quote(source.names[ordinal])}"
                value = self.sql(given, source.children[ordinal], outer, depth, kept)
            values.append(f"{literal(name)}, {value}")
        # The old value is not NULL: a NULL must not take the fields away that the source lacks.
        keeps = old is not None and self._fields.lacks(source, target)
        is_value = f"{sql} IS NOT NULL" + (f" OR {old} IS NOT NULL" if keeps else "")
        return f"CASE WHEN {is_value} THEN named_struct({', '.join(values)}) END"


def _with_numbers(sql: str, source: HiveType) -> tuple[str, HiveType]:
    """SQL of a struct whose fields are called by their numbers, and its type. CAST changes nothing
    but names here: SQL has no other way to name one of two fields of one name."""
    numbered = replace(source, names=tuple(map(str, range(len(source.names)))))
    return f"CAST({sql} AS {spark_ddl(numbered)})", numbered


def raise_sql(condition: str, sqlstate: str, message: str) -> str:
    """SQL that fails the job with one of our errors."""
    words = message.replace("|", BAR)
    return f"raise_error({literal(f'{RAISED}{condition}|{sqlstate}|{words}|')})"


def raise_told(condition: str, sqlstate: str, message: str) -> str:
    """As ``raise_sql``, but the message is SQL."""
    start = literal(f"{RAISED}{condition}|{sqlstate}|")
    return f"raise_error(concat({start}, translate({message}, '|', {literal(BAR)}), '|'))"


def _fitted(sql: str, target: HiveType, column: str) -> str:
    """SQL that cuts off only blanks of a text that is too long. The writer pads CHAR."""
    length = target.parameters[0]
    failed = raise_sql(
        "EXCEED_LIMIT_LENGTH",
        "22001",
        f"A text is longer than column '{column}' of type {str(target).upper()} allows.",
    )
    return (
        f"CASE WHEN {sql} IS NULL OR char_length({sql}) <= {length} THEN {sql} "
        f"WHEN char_length(rtrim({sql})) <= {length} THEN left({sql}, {length}) "
        f"ELSE {failed} END"
    )


def _is_safe(source: HiveType, target: HiveType) -> bool:
    """Whether no value of the source type can be out of the target type's range."""
    if target.kind in _TEXTS or target.kind in _FLOATS or source.kind in _DATETIMES:
        return True
    if source.kind in _FLOATS:
        return False
    if "boolean" in (source.kind, target.kind):
        return target.kind != "decimal"  # DECIMAL(1, 1) has no 1
    # The last digit of an integer type does not have its full range (a TINYINT ends at 127), and
    # rounding may carry into a new digit.
    must_be_wider = source.kind == "decimal" and (
        target.kind in _INTEGERS or source.parameters[1] > target.parameters[1]
    )
    return _digits(source) + must_be_wider <= _digits(target)


def _digits(node: HiveType) -> int:
    """The greatest number of digits before the decimal point."""
    if node.kind == "decimal":
        return node.parameters[0] - node.parameters[1]
    return _INTEGERS[node.kind]


def _is_number(node: HiveType) -> bool:
    return node.kind in _INTEGERS or node.kind in _FLOATS or node.kind == "decimal"


def _is_atomic(node: HiveType) -> bool:
    known = node.kind in _TEXTS | _DATETIMES | {"boolean", "binary", "variant"} or _is_number(node)
    # "interval" alone is Spark's old calendar interval, which no column takes.
    return known or node.kind.startswith(("interval ", "time"))


def _same_for_storage(source: HiveType, target: HiveType) -> bool:
    if target.kind in ("char", "varchar"):
        return False
    if target.kind in _NESTED:
        return source.names == target.names and all(
            map(_same_for_storage, source.children, target.children)
        )
    return source == target


def _shown(node: HiveType) -> str:
    return (
        str(node)
        .replace("timestamp_ltz", "\0")
        .replace("timestamp", "timestamp_ntz")
        .replace("\0", "timestamp")
    )
