"""Parses Hive's type text, such as ``struct<a:int,b:array<varchar(3)>>``.

Source: Hive ``TypeInfoUtils.TypeInfoParser``, Spark's ``DataType.catalogString``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from acidsql.errors import FormatError, suggestion

_PLAIN = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double",
    "string", "binary", "date", "timestamp",
}  # fmt: skip
_SYNONYMS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint",
             "real": "float", "dec": "decimal", "numeric": "decimal"}  # fmt: skip
_OTHERS = ("decimal", "array", "map", "struct")
_MAX_LENGTH = {"char": 255, "varchar": 65535}
_MAX_PRECISION = 38
_REFUSED = re.compile(
    r"uniontype|timestamp\s+with\s+(?:local\s+)?time\s+zone|timestamplocaltz|timestamp_ltz"
    r"|interval\w*|void|variant|geometry|geography",
    re.IGNORECASE,
)
_DEFAULT_DECIMAL = (10, 0)
_BARE_NAME = re.compile(r"[A-Za-z_]\w*")
_BARE_IN_SPARK = re.compile(_BARE_NAME.pattern, re.ASCII)


@dataclass(frozen=True, slots=True)
class HiveType:
    """One node of a type.

    Attributes:
        kind: ``int``, ``decimal``, ``char``, ``array``, ``map``, ``struct``, …
        parameters: char and varchar: (length,); decimal: (precision, scale); otherwise empty.
        children: array: (element,); map: (key, value); struct: its fields; otherwise empty.
        names: The names of a struct's fields; otherwise empty.
        collation: The collation of a text in a query, unless the text compares byte by byte. It is
            no part of the type: columns of tables have none.
    """

    kind: str
    parameters: tuple[int, ...] = ()
    children: tuple[HiveType, ...] = ()
    names: tuple[str, ...] = ()
    collation: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Hive's text; field names are back-quoted if necessary."""
        return _type_text(self, {}, _BARE_NAME)

    def holds(self, *kinds: str) -> bool:
        """True if this type, or a type inside it, is of one of these kinds."""
        return self.kind in kinds or any(child.holds(*kinds) for child in self.children)


def parse_type(text: str) -> HiveType:
    """Parse Hive's type text. Synonyms such as ``integer`` and ``numeric`` become Hive's own word.

    Args:
        text: The type, in any case and spacing; field names may be back-quoted, and keep their
            case.

    Raises:
        FormatError: The text is no type, or a type that acidsql does not support (uniontype,
            timestamp with time zone, intervals, void, variant, geometry, geography).
    """
    parser = _Parser(text)
    parsed = parser.type()
    parser.skip_space()
    if parser.at < len(text):
        raise parser.error("something follows the type")
    return parsed


def spark_ddl(hive_type: str | HiveType, timestamp: str = "timestamp_ntz") -> str:
    """Return a type in Spark's DDL; CHAR and VARCHAR become STRING.

    Args:
        hive_type: Hive's type.
        timestamp: Spark's type for Hive's TIMESTAMP, a wall clock. For the schema of an ORC *read*
            it must be ``timestamp_ltz``: Spark's reader would read a TIMESTAMP_NTZ column as a
            bigint, and give seconds as microseconds without an error.

    Raises:
        FormatError: A text is no type that acidsql supports.
    """
    parsed = parse_type(hive_type) if isinstance(hive_type, str) else hive_type
    renamed = {"timestamp": timestamp, "char": "string", "varchar": "string"}
    return _type_text(parsed, renamed, _BARE_IN_SPARK)


def type_text(hive_type: HiveType, texts_by_kind: dict[str, str]) -> str:
    """Return Hive's text of a type in which each type of a kind in ``texts_by_kind``, also inside
    of other types, is that text alone. Names of fields stay as they are."""
    return _type_text(hive_type, texts_by_kind, _BARE_NAME)


def _type_text(node: HiveType, texts_by_kind: dict[str, str], bare: re.Pattern[str]) -> str:
    """Write a type as text. A type whose kind is in ``texts_by_kind`` becomes that text alone,
    without its parameters or parts. Names of fields are in back quotes unless all of the name
    matches ``bare``."""
    if node.kind in texts_by_kind:
        return texts_by_kind[node.kind]
    children = [_type_text(child, texts_by_kind, bare) for child in node.children]
    if node.kind == "struct":
        pairs = zip(node.names, children, strict=True)
        children = [f"{_quoted(name, bare)}:{child}" for name, child in pairs]
    if children:
        return f"{node.kind}<{','.join(children)}>"
    if node.parameters:
        return f"{node.kind}({','.join(map(str, node.parameters))})"
    return node.kind


def _quoted(name: str, bare: re.Pattern[str]) -> str:
    if bare.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"


class _Parser:
    """Recursive descent over the text; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def error(self, problem: str, hint: str = "") -> FormatError:
        """Make the error that names the problem and the present place in the text. ``hint``: a
        sentence behind it, without its full stop."""
        return FormatError(
            f"'{self.text}' is no known type: {problem} at character {self.at + 1}{hint}",
            type=self.text,
        )

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, token: str) -> bool:
        """Skip white space. If the token comes next, move past it and return True; otherwise return
        False. The white space stays skipped."""
        self.skip_space()
        is_there = self.text.startswith(token, self.at)
        self.at += len(token) if is_there else 0
        return is_there

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error(f"'{token}' is missing")

    def match(self, pattern: str, expectation: str) -> str:
        """Skip white space, return the text that the pattern matches here, and move past it. Raise
        FormatError, which names ``expectation``, if it does not match."""
        self.skip_space()
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            raise self.error(f"{expectation} is missing")
        self.at = match.end()
        return match.group()

    def type(self) -> HiveType:
        """Parse one type, and move past it; what follows is not looked at. Raise FormatError if it
        is none of Hive's types, or UNSUPPORTED_DATATYPE for one that acidsql does not support."""
        self.skip_space()
        refused = _REFUSED.match(self.text, self.at)
        if refused:
            raise FormatError(
                f"a column of type {refused.group().upper()} is not supported",
                condition="UNSUPPORTED_DATATYPE",
                sqlstate="0A000",
                type=self.text,
            )
        start = self.at
        kind = self.match(r"[A-Za-z]\w*", "a type").lower()
        kind = _SYNONYMS.get(kind, kind)
        if kind in _PLAIN:
            return HiveType(kind)
        if kind in ("array", "map"):
            return self.nested(kind, 1 if kind == "array" else 2)
        if kind == "struct":
            return self.struct()
        if kind in _MAX_LENGTH:
            return self.sized(kind)
        if kind == "decimal":
            return self.decimal()
        self.at = start
        hint = suggestion(
            kind.upper(), map(str.upper, (*_PLAIN, *_MAX_LENGTH, *_SYNONYMS, *_OTHERS)), 1
        )
        raise self.error(f"'{kind}' is not one of Hive's types", f".{hint}" if hint else "")

    def nested(self, kind: str, num_children: int) -> HiveType:
        """Parse ``<type,…>`` of an array or a map, with exactly ``num_children`` types. Raise
        FormatError for anything else."""
        self.expect("<")
        children = [self.type()]
        for _ in range(num_children - 1):
            self.expect(",")
            children.append(self.type())
        self.expect(">")
        return HiveType(kind, children=tuple(children))

    def struct(self) -> HiveType:
        """Parse ``<name:type,…>`` of a struct, with at least one field. Raise FormatError for
        anything else."""
        self.expect("<")
        names: list[str] = []
        children: list[HiveType] = []
        while not names or self.take(","):
            names.append(self.name())
            self.expect(":")
            children.append(self.type())
        self.expect(">")
        return HiveType("struct", children=tuple(children), names=tuple(names))

    def name(self) -> str:
        """Parse the name of a field: in back quotes (a doubled one inside stands for itself), or
        anything up to a delimiter (``:,<>`` or a back quote) without white space around it. Raise
        FormatError if it is missing."""
        if self.take("`"):
            self.at -= 1  # white space behind it belongs to the name
            name = self.match(r"`(?:[^`]|``)*`", "the closing back-quote")
            return name[1:-1].replace("``", "`")
        # Hive quotes no name, whatever its characters are. So only Hive's delimiters end a name.
        return self.match(r"[^:,<>`]+", "a field's name").rstrip()

    def numbers(self) -> tuple[int, ...]:
        """Parse ``(n,…)``, at least one number without a sign; an empty tuple if no bracket comes
        next. Raise FormatError for anything else in the brackets."""
        if not self.take("("):
            return ()
        numbers = [int(self.match(r"\d+", "a number"))]
        while self.take(","):
            numbers.append(int(self.match(r"\d+", "a number")))
        self.expect(")")
        return tuple(numbers)

    def sized(self, kind: str) -> HiveType:
        """Parse ``(n)`` behind CHAR or VARCHAR, and return the type. Raise FormatError unless it is
        one length, from 1 to 255 or 65535."""
        lengths = self.numbers()
        if len(lengths) != 1 or not 1 <= lengths[0] <= _MAX_LENGTH[kind]:
            raise self.error(f"{kind} needs a length from 1 to {_MAX_LENGTH[kind]}")
        return HiveType(kind, lengths)

    def decimal(self) -> HiveType:
        """Parse ``(precision, scale)`` behind DECIMAL, and return the type. Without brackets it is
        DECIMAL(10, 0); without a scale, the scale is 0. Raise FormatError for more numbers, or
        unless the precision is from 1 to 38 and not less than the scale."""
        parameters = self.numbers()
        if len(parameters) > 2:
            raise self.error("decimal takes a precision and a scale")
        precision, scale = (
            parameters + (0,) * (2 - len(parameters)) if parameters else _DEFAULT_DECIMAL
        )
        if not 1 <= precision <= _MAX_PRECISION or scale > precision:
            raise self.error(f"decimal({precision},{scale}) is not possible")
        return HiveType("decimal", (precision, scale))
