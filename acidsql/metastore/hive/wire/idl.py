"""Hive's interface file → Python classes for Apache Thrift.

``hive_metastore.thrift`` is read once, when this module is imported. The classes get what Thrift's
own generator would write: ``thrift_spec``, slots and defaults. So Thrift's codec in C reads and
writes them.

    >>> hive.LockRequest(txnid=7, component=[])          # a struct
    >>> hive.LockType.SHARED_READ                        # an enum's number
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from thrift.protocol.TBase import TBase
from thrift.protocol.TBase import TExceptionBase as TExceptionBase
from thrift.Thrift import TType

_FILE = Path(__file__).with_name("hive_metastore.thrift")
_BASIC = {
    "bool": (TType.BOOL, None),
    "byte": (TType.BYTE, None),
    "i16": (TType.I16, None),
    "i32": (TType.I32, None),
    "i64": (TType.I64, None),
    "double": (TType.DOUBLE, None),
    "string": (TType.STRING, "UTF8"),
    "binary": (TType.STRING, "BINARY"),
}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|#[^\n]*", re.DOTALL)
_TOKEN = re.compile(r'"[^"]*"|[\w.-]+|[{}()<>,:=]')
_STRUCTS = ("struct", "union", "exception")
_REQUIREDNESS = ("required", "optional")


class _Field(NamedTuple):
    number: int
    name: str
    type: tuple[int, Any]
    default: Any


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the service.

    Attributes:
        arguments: The struct of the arguments.
        result: The struct of the answer: ``success``, and one field for each exception.
        throws: The names of the exceptions' fields.
        returns: True if the method returns a value.
    """

    arguments: Any
    result: Any
    throws: tuple[str, ...]
    returns: bool


class _Loader:
    """Reads the tokens of an interface file from the front to the back."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(_COMMENT.sub(" ", text))
        self._at = 0
        # The pair of class and spec, by name. Thrift's C codec demands a list. A struct may name a
        # struct that comes later, so all classes are made first.
        self._pairs: dict[str, list[Any]] = {}
        self.enums: dict[str, Mapping[str, int]] = {}
        self.methods: dict[str, Method] = {}

    def load(self) -> dict[str, Any]:
        """Read the whole file, and return the structs' classes and the enums, by name. Methods are
        in ``methods`` then."""
        for kind, name in zip(self._tokens, self._tokens[1:], strict=False):
            if kind in _STRUCTS:
                base = TExceptionBase if kind == "exception" else TBase
                self._pairs[name] = [type(name, (base,), {"__module__": __name__}), None]
        while self._at < len(self._tokens):
            kind, name = self._next(), self._next()
            self._expect("{")
            if kind == "enum":
                self.enums[name] = dict(self._parse_members())
            elif kind in _STRUCTS:
                self._fill_class(self._pairs[name], list(self._parse_fields("}")))
            else:
                self.methods.update(self._parse_service())
        numbers = {name: SimpleNamespace(**members) for name, members in self.enums.items()}
        return {**{name: pair[0] for name, pair in self._pairs.items()}, **numbers}

    # ── tokens ───────────────────────────────────────────────────────────────────────────────

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _skip(self, *tokens: str) -> str | None:
        """Take the next token if it is one of these. Otherwise leave it."""
        return self._next() if self._tokens[self._at] in tokens else None

    def _expect(self, token: str) -> None:
        next_token = self._next()
        assert next_token == token, f"{_FILE.name}: '{next_token}' where '{token}' belongs"

    # ── definitions ──────────────────────────────────────────────────────────────────────────

    def _parse_members(self) -> Iterator[tuple[str, int]]:
        """Yield the names and numbers of an enum, up to the closing brace."""
        while not self._skip("}"):
            name = self._next()
            self._expect("=")
            yield name, int(self._next())
            self._skip(",")

    def _parse_fields(self, end_token: str) -> Iterator[_Field]:
        """Yield the fields of a struct or of arguments, and move past ``end_token`` behind them."""
        while not self._skip(end_token):
            number = int(self._next())
            self._expect(":")
            self._skip(*_REQUIREDNESS)
            kind, name = self._parse_type(), self._next()
            default = self._parse_value(self._next()) if self._skip("=") else None
            self._skip(",")
            yield _Field(number, name, kind, default)

    def _parse_type(self) -> tuple[int, Any]:
        """Parse a type into Thrift's number of it, and what its codec needs beside it: a struct's
        pair, for a list, set or map the types inside, for a text or bytes which of both, otherwise
        None. A name that is neither a basic type nor a struct's counts as that of an enum, an I32.
        """
        name = self._next()
        if name in _BASIC:
            return _BASIC[name]
        if name in ("list", "set", "map"):
            self._expect("<")
            inner = self._parse_type()
            if name == "map":
                self._expect(",")
                inner = (*inner, *self._parse_type())  # type: ignore[assignment]
            self._expect(">")
            number: int = {"list": TType.LIST, "set": TType.SET, "map": TType.MAP}[name]
            return number, (*inner, False)
        if name in self._pairs:
            return TType.STRUCT, self._pairs[name]
        return TType.I32, None  # an enum

    def _parse_value(self, text: str) -> Any:
        """Return the Python value of a default: a text, a boolean, an enum's number or an
        integer."""
        if text.startswith('"'):
            return text.strip('"')
        if text in ("true", "false"):
            return text == "true"
        enum, dot, member = text.partition(".")
        return self.enums[enum][member] if dot else int(text)

    def _parse_service(self) -> Iterator[tuple[str, Method]]:
        """Yield the methods of the service, with their names, up to the closing brace."""
        while not self._skip("}"):
            returns = [] if self._skip("void") else [_Field(0, "success", self._parse_type(), None)]
            name = self._next()
            self._expect("(")
            arguments = self._new_struct(f"{name}_args", list(self._parse_fields(")")))
            throws: list[_Field] = []
            if self._skip("throws"):
                self._expect("(")
                throws = list(self._parse_fields(")"))
            self._skip(",")
            result = self._new_struct(f"{name}_result", [*returns, *throws])
            names = tuple(error_field.name for error_field in throws)
            yield name, Method(arguments, result, names, bool(returns))

    def _new_struct(self, name: str, fields: list[_Field]) -> Any:
        """Make a class with these fields."""
        pair = [type(name, (TBase,), {"__module__": __name__}), None]
        self._fill_class(pair, fields)
        return pair[0]

    @staticmethod
    def _fill_class(pair: list[Any], fields: list[_Field]) -> None:
        """Give a class its fields, as Thrift's generator does: slots, ``thrift_spec``, and a
        constructor by keywords, which raises TypeError for a name that is no field. The spec in
        ``pair``, of class and spec, is set: a tuple by field numbers, with None for unused ones."""
        spec: list[Any] = [None] * (max((field.number for field in fields), default=-1) + 1)
        for field in fields:
            spec[field.number] = (
                field.number,
                field.type[0],
                field.name,
                field.type[1],
                field.default,
            )
        cls, pair[1] = pair[0], tuple(spec)
        cls.__slots__ = tuple(field.name for field in fields)  # ``repr`` and ``==`` look there
        defaults = {field.name: field.default for field in fields}

        def __init__(self: Any, **values: Any) -> None:  # noqa: N807
            for name, default in defaults.items():
                setattr(self, name, values.pop(name, default))
            if values:
                raise TypeError(f"{cls.__name__} has no field {', '.join(values)}")

        cls.__init__ = __init__
        cls.thrift_spec = pair[1]


_loader = _Loader(_FILE.read_text(encoding="utf-8"))
hive: Any = SimpleNamespace(**_loader.load())
methods: Mapping[str, Method] = _loader.methods
