"""Which type a column may be changed to: Hive's rule, narrowed.

Old files are never rewritten; readers convert their values. Hive's metastore allows to change any
number to a wider number or to a text (``ColumnType.areColTypesCompatible``), any STRUCT to another
STRUCT, and a VARCHAR to a shorter one. acidsql allows only changes that lose nothing and that all
ORC readers (Hive's, Spark's and our own) convert in the same way.
"""

from __future__ import annotations

from acidsql.acid.types import HiveType

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_EXACT_IN_DOUBLE = ("tinyint", "smallint", "int", "float")


def can_widen(old: HiveType, new: HiveType) -> bool:
    """True if every value of the type ``old`` is the same value in the type ``new``."""
    if old == new:
        return True
    if old.kind in _DIGITS:
        return _can_widen_integer(old.kind, new)
    if new.kind == "double":
        return old.kind in _EXACT_IN_DOUBLE
    if old.kind == new.kind == "decimal":
        (precision, scale), (more, finer) = old.parameters, new.parameters
        return finer >= scale and more - finer >= precision - scale
    if old.kind == new.kind and old.kind in ("char", "varchar"):
        return new.parameters[0] >= old.parameters[0]
    return old.kind == "varchar" and new.kind == "string"


def _can_widen_integer(old: str, new: HiveType) -> bool:
    if new.kind in _DIGITS:
        return _DIGITS[new.kind] >= _DIGITS[old]
    if new.kind == "decimal":
        precision, scale = new.parameters
        return precision - scale >= _DIGITS[old]
    # Not to STRING: ORC's reader fails if a condition is pushed down to old files.
    return new.kind == "double" and old in _EXACT_IN_DOUBLE


def keeps_bucket(old: HiveType, new: HiveType) -> bool:
    """True if every value stays in its bucket when CLUSTERED BY hashes it as the type ``new``."""
    # The hash of a DECIMAL does not depend on its scale, nor that of a text on its length limit.
    return old == new or (old.kind == new.kind and old.kind in ("decimal", "varchar", "char"))
