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
    """Whether ALTER TABLE may change a column of the type ``old`` to ``new``.

    Nothing is lost if ``can_widen`` or ``adds_fields`` says so. Though values may be lost, these
    changes are allowed, too: from any simple type but BINARY to a text, from an integer or DECIMAL
    to FLOAT, and from an integer, DECIMAL or text to DOUBLE.
    """
    if can_widen(old, new) or adds_fields(old, new):
        return True
    if new.kind in TEXTS:
        return old.kind in _WITH_TEXT
    if new.kind == "float":
        return old.kind in (*_DIGITS, "decimal")
    return new.kind == "double" and old.kind in (*_DIGITS, *TEXTS, "decimal")


def adds_fields(old: HiveType, new: HiveType) -> bool:
    """Whether the types are the same, or ``new`` has more fields behind those of a STRUCT, at any
    depth. The old fields come first, with the same names and in the same order. No two names of
    fields may be equal but for case.

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
    """True if readers must cast the values of files that have the type ``old``: ``new`` is a text,
    FLOAT or DOUBLE, ``old`` is a simple type other than BINARY, and ``can_widen`` says no.

    Spark's reader would not convert them as Hive's does. The types may be the first and the last of
    several changes.
    """
    has_cast = new.kind in TEXTS or new.kind in ("float", "double")
    return has_cast and old.kind in _WITH_TEXT and not can_widen(old, new)


def has_no_cast(old: HiveType, new: HiveType) -> bool:
    """True for DATE or TIMESTAMP to FLOAT or DOUBLE: no reader casts such values. Only several
    changes in turn lead from one of the types to the other."""
    return new.kind in ("float", "double") and old.kind in ("date", "timestamp")


def can_widen(old: HiveType, new: HiveType) -> bool:
    """Whether ``new`` is ``old`` or one of these wider types, in which every value stays the same.

    An integer may become a wider integer, a DECIMAL with enough digits before the point, or, but
    for BIGINT, a DOUBLE; FLOAT a DOUBLE; DECIMAL one with as many digits before and behind the
    point; CHAR a longer CHAR; VARCHAR a longer VARCHAR or STRING. All other types, such as arrays,
    maps and structs, only if both are equal.
    """
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
    """Whether an integer of the type ``old`` may become ``new``: an integer type as wide, a DECIMAL
    with enough digits before the point, or, but for BIGINT, a DOUBLE."""
    if new.kind in _DIGITS:
        return _DIGITS[new.kind] >= _DIGITS[old]
    if new.kind == "decimal":
        precision, scale = new.parameters
        return precision - scale >= _DIGITS[old]
    return new.kind == "double" and old in _EXACT_IN_DOUBLE


def keeps_bucket(old: HiveType, new: HiveType) -> bool:
    """True if every value stays in its bucket when CLUSTERED BY hashes it as the type ``new``: the
    types are equal, or DECIMAL, VARCHAR or CHAR gets wider (``can_widen``) and keeps its kind."""
    # The hash of a DECIMAL does not depend on its scale, nor that of a text on its length limit.
    is_same_kind = old.kind == new.kind and old.kind in ("decimal", "varchar", "char")
    return old == new or (is_same_kind and can_widen(old, new))
