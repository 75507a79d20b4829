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
from acidsql.acid.values.types import HiveType, parse_type, spark_ddl, type_text
from acidsql.errors import AnalysisError
from acidsql.plan.values.struct_fields import FieldRules, TypeMismatchError, parts_of, shown_path
from acidsql.sql.text.tokens import Span
from acidsql.storage.columns import literal, nested_sql, quote, shown_type

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # digits
_FLOATS = {"float", "double"}
_DATETIMES = {"date", "timestamp", "timestamp_ltz"}
_TEXTS = {"string", "char", "varchar"}
_NESTED = {"array", "map", "struct"}
_PARSED_TYPES = frozenset(_INTEGERS) | _FLOATS | _DATETIMES | {"decimal", "boolean", "binary"}
# The order of Spark's UpCastRule: no value is lost on the way to a later type.
_UPCAST_ORDER = ["tinyint", "smallint", "int", "bigint", "float", "double"]


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


def assignment_sql(
    sql: str,
    source: HiveType,
    column: str,
    target: str,
    text: str,
    where: Span,
    *,
    is_literal: bool = False,
    policy: Policy = Policy.ANSI,
    field_rules: FieldRules = _BY_NAME,
    old_sql: str | None = None,
) -> str:
    """Return SQL that converts a value of type ``source`` to a column's type; NULL stays NULL. At a
    value that does not fit, the job fails; but with the policy LEGACY, a text that is no value of
    the type becomes NULL.

    Args:
        sql: The value. The result repeats it, so it should be a column, not an expression.
        source: The value's type, as Spark found it.
        column: The target column's name, for messages.
        target: The target column's Hive type.
        text: The user's statement.
        where: The value's place in the statement.
        is_literal: The value is a string literal. A column of numbers, days, times or BOOLEANs
            takes it, too, unless the policy is STRICT.
        policy: The session's policy.
        field_rules: How the fields of structs correspond.
        old_sql: SQL of the column's old value. Fields of structs that the value lacks keep it.

    Raises:
        AnalysisError: INCOMPATIBLE_DATA_FOR_TABLE: the column takes no values of this type.
    """
    target_type = parse_type(target)
    is_convertible_literal = is_literal and source.kind == "string" and takes_literals(target_type)
    if not is_convertible_literal or policy is Policy.STRICT:
        try:
            require_assignable(source, target_type, policy, field_rules, (column,))
        except TypeMismatchError as error:
            raise AnalysisError(
                error.message, text, where.start, where.end,
                condition=error.condition, sqlstate="KD000", column=column,
            ) from None  # fmt: skip
    return _Assignment(column, policy, field_rules).sql(sql, source, target_type, old_sql=old_sql)


def can_assign(
    source: HiveType,
    target: HiveType,
    policy: Policy = Policy.ANSI,
    field_rules: FieldRules = _BY_NAME,
) -> bool:
    """Whether a column of type ``target`` takes values of type ``source``, under the policy. NULL
    (``void``) fits every column. That a string may be a literal is not considered."""
    try:
        require_assignable(source, target, policy, field_rules, ("",))
    except TypeMismatchError:
        return False
    return True


def require_assignable(
    source: HiveType, target: HiveType, policy: Policy, field_rules: FieldRules, path: Sequence[str]
) -> None:
    """Check that values of type ``source`` may be written to a column or field of type ``target``,
    under the session's store assignment policy.

    ``path``: the column's name and the names of the fields that lead to the target, for the
    message.

    Raises:
        TypeMismatchError: They may not; or a struct lacks a field of the target, or has one more.
    """
    if source.kind == "void" or source == target:
        return
    if source.kind != target.kind or source.kind not in _NESTED:
        if not _can_assign_leaf(source, target, policy):
            raise _type_mismatch(source, target, policy, path)
        return
    if source.kind == "struct":
        ordinals = field_rules.ordinals(source, target, path)
        fields_of_target = zip(target.names, ordinals, target.children, strict=True)
        pairs = [
            (name, source.children[i], kind) for name, i, kind in fields_of_target if i is not None
        ]
    else:
        pairs = [*zip(parts_of(target), source.children, target.children, strict=True)]
    for name, source_part, target_part in pairs:
        require_assignable(source_part, target_part, policy, field_rules, (*path, name))


def _type_mismatch(
    source: HiveType, target: HiveType, policy: Policy, path: Sequence[str]
) -> TypeMismatchError:
    """Return the CANNOT_SAFELY_CAST, which says that values of type ``source`` cannot be written to
    the column or field that ``path`` leads to."""
    strictly = " (spark.sql.storeAssignmentPolicy is STRICT)" if policy is Policy.STRICT else ""
    place = f"column '{path[0]}'" if len(path) == 1 else f"'{shown_path(path)}'"
    target_name = str(target).upper()
    return TypeMismatchError(
        "CANNOT_SAFELY_CAST",
        f"A value of type {_spark_type_name(source).upper()} cannot be written to {place} of type "
        f"{target_name}{strictly}. Write CAST(… AS {target_name}) to convert the value.",
    )


def _can_assign_leaf(source: HiveType, target: HiveType, policy: Policy) -> bool:
    """Whether the policy lets values of a type without parts be written to a target without parts,
    which is of another type. Nested types never may. VOID is not considered: the caller has let it
    pass."""
    if source.kind in _NESTED or target.kind in _NESTED:
        return False
    if policy is Policy.STRICT:
        return _can_upcast(source, target)
    if policy is Policy.LEGACY and _is_legacy_conversion(source, target):
        return True
    if target.kind in _TEXTS:
        return _is_atomic(source)
    return (_is_number(source) and _is_number(target)) or (
        source.kind in _DATETIMES and target.kind in _DATETIMES
    )


def _can_upcast(source: HiveType, target: HiveType) -> bool:
    """Whether the policy STRICT lets values of one type be written to the other, by the rules of
    Spark's ``Cast.canUpCast``. Other than in Spark, a BIGINT does not become a TIMESTAMP, nor a
    TIMESTAMP a BIGINT. The types differ and have no parts; ``void``, which callers let pass
    themselves, has no rule here."""
    if target.kind in _TEXTS:
        return _is_atomic(source)
    if source.kind in _DATETIMES and target.kind in _DATETIMES:
        return target.kind != "date" or source.kind == "date"
    if source.kind in _UPCAST_ORDER and target.kind in _UPCAST_ORDER:
        return _UPCAST_ORDER.index(source.kind) <= _UPCAST_ORDER.index(target.kind)
    if target.kind == "decimal" and _is_number(source) and source.kind not in _FLOATS:
        return _fraction_digits(source) <= _fraction_digits(target) and _digits_by_spark(
            source
        ) <= _digits_by_spark(target)
    # A DECIMAL without a fraction, and with fewer digits than the integer type.
    is_whole_decimal = (
        source.kind == "decimal" and target.kind in _INTEGERS and _fraction_digits(source) == 0
    )
    return is_whole_decimal and _digits_by_spark(source) < _digits_by_spark(target)


def _fraction_digits(number_type: HiveType) -> int:
    """Return the number of digits behind the decimal point: a DECIMAL's scale, 0 for other
    types."""
    return number_type.parameters[1] if number_type.kind == "decimal" else 0


def _digits_by_spark(number_type: HiveType) -> int:
    """Return the greatest number of digits before the decimal point as Spark counts them: 20 for a
    BIGINT, for which ``_digits`` returns 19."""
    return 20 if number_type.kind == "bigint" else _digits(number_type)


def _is_legacy_conversion(source: HiveType, target: HiveType) -> bool:
    """Whether the policy LEGACY converts these types into each other, which ANSI does not: a
    STRING, which is parsed, into a number, date, timestamp, boolean or binary, or a BOOLEAN and a
    number."""
    if source.kind == "string":
        return target.kind in _PARSED_TYPES
    pair = {source.kind, target.kind}
    return "boolean" in pair and (_is_number(source) or _is_number(target))


def takes_literals(target: HiveType) -> bool:
    """Whether a column takes string literals, though it takes no other strings: a column of
    numbers, DATE, TIMESTAMP or BOOLEAN."""
    return _is_number(target) or target.kind in ("date", "timestamp", "boolean")


def read_back_sql(sql: str, column: Column, *, is_partition: bool) -> str:
    """Return SQL of the value that readers will get, from SQL of the value that is written: CHAR is
    padded, and a partition's text that means NULL ('' and Hive's default partition) is NULL."""
    kind = parse_type(column.type)
    if is_partition and kind.kind in _TEXTS:
        # Each of these names of a directory means NULL.
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
        self,
        sql: str,
        source: HiveType,
        target: HiveType,
        depth: int = 0,
        old_sql: str | None = None,
    ) -> str:
        """Return SQL of the converted value. The SQL fails the job at a value that does not fit;
        but with the policy LEGACY, a text that is no value of the type becomes NULL.

        Args:
            sql: The value.
            source: The value's type.
            target: The column's type.
            depth: How deep in the column's type the value is, for the names of lambda parameters.
            old_sql: SQL of the old value. A struct keeps its fields that the new value lacks.
        """
        if source.kind == "void":
            return f"CAST({sql} AS {shown_type(str(target))})"
        if target.kind in _NESTED:
            return self._convert_nested(sql, source, target, depth, old_sql)
        if target.kind in ("char", "varchar"):
            text = sql if source.kind == "string" else f"CAST({sql} AS STRING)"
            return _fitted_text_sql(text, target, self._column)
        if source == target:
            return sql
        target_sql = shown_type(str(target))
        if source.kind == "string" and target.kind != "string":
            return self._parse_text_sql(sql, target, target_sql)
        if _is_safe(source, target):
            return f"CAST({sql} AS {target_sql})"
        failure = raise_sql(
            "CAST_OVERFLOW_IN_TABLE_INSERT",
            "22003",
            f"A value is out of the range of column '{self._column}' of type "
            f"{str(target).upper()}.",
        )
        cast = f"try_cast({sql} AS {target_sql})"
        return f"CASE WHEN {sql} IS NOT NULL AND {cast} IS NULL THEN {failure} ELSE {cast} END"

    def _parse_text_sql(self, text_sql: str, target: HiveType, target_sql: str) -> str:
        """Return SQL that casts a text to the target type. If the cast is impossible, or a
        timestamp has a time zone, the SQL fails the job; with the policy LEGACY it gives NULL.
        LEGACY also drops the fraction of a text for an integer column: '1.5' is 1."""
        cast = f"try_cast({text_sql} AS {target_sql})"
        if self._policy is Policy.LEGACY and target.kind in _INTEGERS:
            # As in Hive, '1.5' is 1, and '.5' is 0.
            with_zero = f"regexp_replace({text_sql}, '^([ ]*[-+]?)[.](?=[0-9])', '$10.')"
            cast = f"try_cast(regexp_replace({with_zero}, '[.][0-9]*[ ]*$', '') AS {target_sql})"
        is_invalid = f"{cast} IS NULL"
        if target.kind == "timestamp":
            is_invalid = f"({is_invalid} OR {text_sql} RLIKE {literal(_HAS_ZONE)})"
        fallback = (
            "NULL" if self._policy is Policy.LEGACY else self._invalid_text_sql(text_sql, target)
        )
        return f"CASE WHEN {text_sql} IS NOT NULL AND {is_invalid} THEN {fallback} ELSE {cast} END"

    def _invalid_text_sql(self, text_sql: str, target: HiveType) -> str:
        """Return SQL that fails the job, because the text is no value of the target type."""
        kind = str(target).upper()
        message = literal(f"This text is no {kind}, which column '{self._column}' takes: ")
        return raise_dynamic_sql("CAST_INVALID_INPUT", "22018", f"concat({message}, {text_sql})")

    def _convert_nested(
        self, sql: str, source: HiveType, target: HiveType, depth: int, old_sql: str | None
    ) -> str:
        """Return SQL of a struct, array or map in the target's type; ``sql`` itself if both types
        are stored alike. Only a struct keeps fields of its old value."""
        if _same_for_storage(source, target):
            return sql
        if source.kind == "struct":
            return self._convert_struct(sql, source, target, depth, old_sql)
        sources = {id(child): source.children[i] for i, child in enumerate(target.children)}
        return nested_sql(
            sql,
            target,
            lambda part, child, deeper: self.sql(part, sources[id(child)], child, deeper),
            depth,
        )

    def _convert_struct(
        self, sql: str, source: HiveType, target: HiveType, depth: int, old_sql: str | None
    ) -> str:
        """Return SQL of a struct in the target's type. A field that the source lacks keeps its old
        value, or becomes NULL. A NULL struct stays NULL, unless there are old fields to keep."""
        ordinals = self._fields.ordinals(source, target, (self._column,))
        if self._fields.has_namesakes(source):  # the fields go by position
            sql, source = _with_numbered_fields(sql, source)
        values = []
        for name, ordinal, field_type in zip(target.names, ordinals, target.children, strict=True):
            old_field = None if old_sql is None else f"{old_sql}.{quote(name)}"
            if ordinal is None:
                value = old_field or f"CAST(NULL AS {shown_type(str(field_type))})"
            else:
                new_field = f"{sql}.{quote(source.names[ordinal])}"
                value = self.sql(new_field, source.children[ordinal], field_type, depth, old_field)
            values.append(f"{literal(name)}, {value}")
        # The old value is not NULL: a NULL must not take the fields away that the source lacks.
        keeps_old = old_sql is not None and self._fields.lacks(source, target)
        is_value = f"{sql} IS NOT NULL" + (f" OR {old_sql} IS NOT NULL" if keeps_old else "")
        return f"CASE WHEN {is_value} THEN named_struct({', '.join(values)}) END"


def _with_numbered_fields(sql: str, source: HiveType) -> tuple[str, HiveType]:
    """Return SQL of a struct whose fields have numbers from 0 as names, and its type.

    Two fields may have the same name, and SQL could not tell them apart. The CAST changes only the
    names.
    """
    numbered = replace(source, names=tuple(map(str, range(len(source.names)))))
    return f"CAST({sql} AS {spark_ddl(numbered)})", numbered


def raise_sql(condition: str, sqlstate: str, message: str) -> str:
    """Return SQL that fails the job with an error of acidsql's: condition, SQLSTATE and message. A
    bar in the message becomes a letter that looks like it."""
    escaped = message.replace("|", BAR)
    return f"raise_error({literal(f'{RAISED}{condition}|{sqlstate}|{escaped}|')})"


def raise_dynamic_sql(condition: str, sqlstate: str, message: str) -> str:
    """Return SQL that fails the job with an error of acidsql's. ``message`` is SQL that computes
    the message, in which a bar becomes a letter that looks like it."""
    start = literal(f"{RAISED}{condition}|{sqlstate}|")
    return f"raise_error(concat({start}, translate({message}, '|', {literal(BAR)}), '|'))"


def _fitted_text_sql(sql: str, target: HiveType, column: str) -> str:
    """Return SQL that fits a text into CHAR or VARCHAR: trailing blanks beyond the length are cut
    off.

    A text that is still too long fails the job. The writer pads CHAR.
    """
    length = target.parameters[0]
    failure = raise_sql(
        "EXCEED_LIMIT_LENGTH",
        "22001",
        f"A text is longer than column '{column}' of type {str(target).upper()} allows.",
    )
    return (
        f"CASE WHEN {sql} IS NULL OR char_length({sql}) <= {length} THEN {sql} "
        f"WHEN char_length(rtrim({sql})) <= {length} THEN left({sql}, {length}) "
        f"ELSE {failure} END"
    )


def _is_safe(source: HiveType, target: HiveType) -> bool:
    """Whether no value of the source type can be out of the target type's range. Both are types
    without parts."""
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


def _digits(number_type: HiveType) -> int:
    """Return the greatest number of digits before the decimal point."""
    if number_type.kind == "decimal":
        return number_type.parameters[0] - number_type.parameters[1]
    return _INTEGERS[number_type.kind]


def _is_number(value_type: HiveType) -> bool:
    return (
        value_type.kind in _INTEGERS or value_type.kind in _FLOATS or value_type.kind == "decimal"
    )


def _is_atomic(value_type: HiveType) -> bool:
    """Whether values of a type can be written as a text: the types without parts that a column can
    have, VARIANT, times, and intervals other than Spark's old calendar interval."""
    is_basic = value_type.kind in _TEXTS | _DATETIMES | {
        "boolean",
        "binary",
        "variant",
    } or _is_number(value_type)
    # "interval" alone is Spark's old calendar interval, which no column takes.
    return is_basic or value_type.kind.startswith(("interval ", "time"))


def _same_for_storage(source: HiveType, target: HiveType) -> bool:
    """Whether values of a type are stored as they are in the target's type: the types are the same,
    in a struct with the same names in the same order. The caller has checked that two nested types
    are of one kind. CHAR and VARCHAR never are, not inside of a
    nested type either: their lengths are checked."""
    if target.kind in ("char", "varchar"):
        return False
    if target.kind in _NESTED:
        return source.names == target.names and all(
            map(_same_for_storage, source.children, target.children)
        )
    return source == target


def _spark_type_name(value_type: HiveType) -> str:
    """Return the text of a type for an error, in lower case: ``timestamp_ltz`` is ``timestamp``,
    and ``timestamp`` is ``timestamp_ntz``, also inside of other types."""
    return type_text(value_type, {"timestamp_ltz": "timestamp", "timestamp": "timestamp_ntz"})
