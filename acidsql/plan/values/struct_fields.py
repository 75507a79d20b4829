"""Which field of a value goes into which field of a STRUCT column, at every depth.

A writer that matches columns by name (UPDATE, MERGE, INSERT … BY NAME, AUTO CDC, the sinks of
streams) matches fields by name. A writer that matches columns by position (INSERT … SELECT, INSERT
… VALUES, also with a list of columns) matches fields by position, whatever their names. Both are
Spark's rules, and so are the errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from acidsql.acid.values.types import HiveType
from acidsql.storage.columns import quote

_BARE_NAME = re.compile(r"\w+")


class FieldMatching(Enum):
    """How a writer matches the fields of structs."""

    BY_NAME = "by name"
    BY_POSITION = "by position"


@dataclass(frozen=True, slots=True)
class FieldRules:
    """How the fields of a value correspond to those of a column.

    Attributes:
        matching: By name or by position.
        is_case_sensitive: The session tells names apart by case.
        fills_missing: With schema evolution: a field that the value lacks is NULL.
    """

    matching: FieldMatching = FieldMatching.BY_NAME
    is_case_sensitive: bool = False
    fills_missing: bool = False

    def ordinals(self, source: HiveType, target: HiveType, path: Sequence[str]) -> list[int | None]:
        """Return, for each field of the target, the ordinal of its field in the source; None for a
        field that the source lacks, which becomes NULL.

        Args:
            source: The struct of the value.
            target: The struct of the column.
            path: The names that lead to the struct, for messages.

        Raises:
            TypeMismatchError: The source lacks a field and ``fills_missing`` is false, or has one
                more; or two fields of the source have the name of one of the target's.
        """
        if self.matching is FieldMatching.BY_POSITION:
            return self._ordinals_by_position(source, target, path)
        return self._ordinals_by_name(source, target, path)

    def unite(self, source: HiveType, target: HiveType) -> HiveType:
        """Return the target's type with the source's additional fields, as last fields, at any
        depth. Where the two are of different kinds, the target's type stays.

        A field is not added if its name differs from another field's only in case, because readers
        would not tell the two apart; nor if the source has the field twice.
        """
        if source.kind != target.kind or source.kind not in ("array", "map", "struct"):
            return target
        if source.kind != "struct":
            children = map(self.unite, source.children, target.children)
            return replace(target, children=tuple(children))
        source_names = [self.fold_case(name) for name in source.names]
        source_types = dict(zip(source_names, source.children, strict=True))
        fields = {
            name: self.unite(source_types[self.fold_case(name)], kind)
            if self.fold_case(name) in source_types
            else kind
            for name, kind in zip(target.names, target.children, strict=True)
        }
        taken_names = {name.lower() for name in fields}
        lowered = [name.lower() for name in source.names]
        for name, kind in zip(source.names, source.children, strict=True):
            if name.lower() not in taken_names and lowered.count(name.lower()) == 1:
                fields[name] = kind
        return HiveType("struct", children=tuple(fields.values()), names=tuple(fields))

    def lacks(self, source: HiveType, target: HiveType) -> bool:
        """Whether a struct value lacks a field of the target, or one of a struct in it. Arrays and
        maps are not looked into. Raise TypeMismatchError where `ordinals` does."""
        if target.kind != "struct" or source.kind != "struct":
            return False
        ordinals = self.ordinals(source, target, ())
        return any(
            ordinal is None or self.lacks(source.children[ordinal], child)
            for ordinal, child in zip(ordinals, target.children, strict=True)
        )

    def has_namesakes(self, source: HiveType) -> bool:
        """Whether two fields of a struct have names that the session does not tell apart."""
        return len({*map(self.fold_case, source.names)}) < len(source.names)

    def fold_case(self, name: str) -> str:
        """Return a name in the form in which the session compares names: in lower case, unless it
        tells names apart by case."""
        return name if self.is_case_sensitive else name.lower()

    def _ordinals_by_position(
        self, source: HiveType, target: HiveType, path: Sequence[str]
    ) -> list[int | None]:
        """Return, for each field of the target, its ordinal in the source; None for a field that
        the source lacks at its end. Raise TypeMismatchError for surplus fields, and for missing
        ones unless they are filled."""
        count = len(target.names)
        if extra := source.names[count:]:
            raise _extra_fields(extra, path)
        missing = target.names[len(source.names) :]
        if missing and not self.fills_missing:
            raise TypeMismatchError(
                "STRUCT_MISSING_FIELDS",
                f"The value for '{shown_path(path)}' lacks {_quoted(missing)}. Here the fields of "
                "a struct go by position.",
            )
        return [i if i < len(source.names) else None for i in range(count)]

    def _ordinals_by_name(
        self, source: HiveType, target: HiveType, path: Sequence[str]
    ) -> list[int | None]:
        """Return, for each field of the target, the ordinal of the source's field of that name;
        None if the source lacks it. Raise TypeMismatchError for ambiguous and surplus fields, and
        for missing ones unless they are filled."""
        names = [self.fold_case(name) for name in source.names]
        ordinals: list[int | None] = []
        for field in target.names:
            folded = self.fold_case(field)
            if names.count(folded) > 1:
                namesakes = [n for n in source.names if self.fold_case(n) == folded]
                raise TypeMismatchError(
                    "AMBIGUOUS_COLUMN_NAME",
                    f"The value for '{shown_path(path)}' has several fields for '{field}': "
                    f"{_quoted(namesakes)}.",
                )
            if folded not in names and not self.fills_missing:
                raise TypeMismatchError(
                    "CANNOT_FIND_DATA",
                    f"The value has no field for '{shown_path([*path, field])}': its fields are "
                    f"{_quoted(source.names)}. Fields are matched by name here.",
                )
            ordinals.append(names.index(folded) if folded in names else None)
        if extra := [name for i, name in enumerate(source.names) if i not in ordinals]:
            raise _extra_fields(extra, path)
        return ordinals


class TypeMismatchError(Exception):
    """A column does not take a value of some type.

    Attributes:
        condition: What follows ``INCOMPATIBLE_DATA_FOR_TABLE`` in the error's condition.
        message: The message.
    """

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(message)
        self.condition, self.message = f"INCOMPATIBLE_DATA_FOR_TABLE.{condition}", message


def shown_path(path: Sequence[str]) -> str:
    """Return the names that lead to a field, with dots between them; a name that is no plain word
    is in backticks."""
    return ".".join(name if _BARE_NAME.fullmatch(name) else quote(name) for name in path)


def parts_of(kind: HiveType) -> tuple[str, ...]:
    """Return what the parts of an ARRAY (``element``) or MAP (``key``, ``value``) are called in a
    path; as of a MAP for any other type."""
    return ("element",) if kind.kind == "array" else ("key", "value")


def _extra_fields(extra_names: Sequence[str], path: Sequence[str]) -> TypeMismatchError:
    """Return the EXTRA_STRUCT_FIELDS for fields of a value that the struct at ``path`` does not
    have."""
    return TypeMismatchError(
        "EXTRA_STRUCT_FIELDS",
        f"The struct '{shown_path(path)}' has no field for {_quoted(extra_names)} of the value.",
    )


def _quoted(names: Sequence[str]) -> str:
    """Return the names as a text ``'a', 'b'``."""
    return ", ".join(f"'{name}'" for name in names)
