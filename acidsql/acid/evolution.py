"""Which type a column may be changed to, so that old files read right: Hive's rule, narrowed.

Old files are never rewritten: readers convert. Hive's metastore lets any number become a wider one
or a text (``ColumnType.areColTypesCompatible``), any STRUCT another STRUCT, a VARCHAR a shorter
one. Here only that is allowed which loses nothing and which ORC's readers (Hive's, Spark's and our
own) convert alike.
"""

from __future__ import annotations

from acidsql.acid.types import HiveType

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_EXACT_IN_DOUBLE = ("tinyint", "smallint", "int", "float")


def can_widen(old: HiveType, new: HiveType) -> bool:
    """True if every value of ``old`` reads as the same value of ``new``."""
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
    # Not to a STRING: ORC's reader fails on a condition that is pushed down to old files.
    return new.kind == "double" and old in _EXACT_IN_DOUBLE


def keeps_bucket(old: HiveType, new: HiveType) -> bool:
    """True if CLUSTERED BY puts every value into the bucket that it is in already."""
    # The hash of a DECIMAL does not know its scale, that of a text not its greatest length.
    return old == new or (old.kind == new.kind and old.kind in ("decimal", "varchar", "char"))
