"""Which type a column may be changed to.

Old files are never rewritten; readers convert their values. Some changes lose nothing, and all ORC
readers (Hive's, Spark's and our own) convert the old values in the same way. Other changes may lose
something: there old values are what Hive's reader makes of them (``storage/orc/casts``). Hive's
metastore allows more: any STRUCT to another STRUCT, for example.
"""

from __future__ import annotations

from acidsql.acid.values.types import HiveType

TEXTS = ("string", "char", "varchar")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_EXACT_IN_DOUBLE = ("tinyint", "smallint", "int", "float")
_WITH_TEXT = (*_DIGITS, *TEXTS, "float", "double", "decimal", "boolean", "date", "timestamp")


def can_change(old: HiveType, new: HiveType) -> bool:
    """Whether ALTER TABLE may change a column of the type ``old`` to ``new``: to a wider type, to a
    STRUCT with more fields, or, though values may be lost, from a simple type to a text, from a
    number to FLOAT, or from a number or text to DOUBLE."""
    if can_widen(old, new) or adds_fields(old, new):
        return True
    if new.kind in TEXTS:
        return old.kind in _WITH_TEXT
    if new.kind == "float":
        return old.kind in (*_DIGITS, "decimal")
    return new.kind == "double" and old.kind in (*_DIGITS, *TEXTS, "decimal")


def adds_fields(old: HiveType, new: HiveType) -> bool:
    """Whether the types are the same, or ``new`` has more fields behind those of a STRUCT, at any
    depth. No two names of fields may be equal but for case.

    Readers find the fields of old files by name and by position, and show NULL for the rest.
    """
    if old.kind != new.kind or not old.children:
        return old == new
    if old.kind == "struct":
        lowered = [name.lower() for name in new.names]
        if new.names[: len(old.names)] != old.names or len({*lowered}) < len(lowered):
            return False
    return all(map(adds_fields, old.children, new.children))


def is_cast(old: HiveType, new: HiveType) -> bool:
    """True if readers must cast the values of files that have the type ``old``.

    Spark's reader would not convert them as Hive's does. The types may be the first and the last of
    several changes.
    """
    has_cast = new.kind in TEXTS or new.kind in ("float", "double")
    return has_cast and old.kind in _WITH_TEXT and not can_widen(old, new)


def has_no_cast(old: HiveType, new: HiveType) -> bool:
    """True if no reader casts values of files that have the type ``old``: several changes in turn
    led from one type to the other."""
    return new.kind in ("float", "double") and old.kind in ("date", "timestamp")


def can_widen(old: HiveType, new: HiveType) -> bool:
    """Whether every value of the type ``old`` is the same value in the type ``new``. For nested
    types (arrays, maps, structs) only if both are equal."""
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
    """Whether every value of the integer type ``old`` is the same value in the type ``new``."""
    if new.kind in _DIGITS:
        return _DIGITS[new.kind] >= _DIGITS[old]
    if new.kind == "decimal":
        precision, scale = new.parameters
        return precision - scale >= _DIGITS[old]
    return new.kind == "double" and old in _EXACT_IN_DOUBLE


def keeps_bucket(old: HiveType, new: HiveType) -> bool:
    """True if every value stays in its bucket when CLUSTERED BY hashes it as the type ``new``."""
    # The hash of a DECIMAL does not depend on its scale, nor that of a text on its length limit.
    is_same_kind = old.kind == new.kind and old.kind in ("decimal", "varchar", "char")
    return old == new or (is_same_kind and can_widen(old, new))
