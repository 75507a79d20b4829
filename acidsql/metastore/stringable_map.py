"""Writes properties as one text, and parses it, like Hive's ``StringableMap``.

The text is ``<n>:``, then for each of n entries ``<length>:<key><length>:<value>``. A length counts
UTF-16 code units, as in Java; -1 stands for null.
"""

from __future__ import annotations

from collections.abc import Mapping

from acidsql.errors import FormatError


def encode(properties: Mapping[str, str]) -> str:
    """Return the text of these properties, in their order: ``1:1:k5:value`` for ``{k: value}``."""
    parts = (part for entry in properties.items() for part in entry)
    return f"{len(properties)}:" + "".join(f"{_length(part)}:{part}" for part in parts)


def decode(text: str | None) -> dict[str, str]:
    """Parse the text of a StringableMap into properties; an entry whose key or value is null is
    left out, and what follows the last entry is ignored. Empty for None and "". Raises FormatError
    for any other text."""
    if not text:
        return {}
    try:
        count, rest = _number(text.encode("utf-16-le"))
        parts: list[str | None] = []
        for _ in range(2 * count):
            length, rest = _number(rest)
            end = 2 * max(length, 0)
            if end > len(rest):
                raise ValueError("it ends too early")
            parts.append(rest[:end].decode("utf-16-le") if length >= 0 else None)
            rest = rest[end:]
    except ValueError as error:  # of int() and decode(), too
        raise FormatError(f"'{text}' is no StringableMap: {error}", text=text) from error
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {key: value for key, value in pairs if key is not None and value is not None}


def _length(text: str) -> int:
    """Return the number of UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def _number(units: bytes) -> tuple[int, bytes]:
    """Parse the number before the first colon of UTF-16-LE text; return the number, and the bytes
    after the colon. Raise ValueError if there is no colon or no number."""
    at = 0
    while units[at : at + 2] != b":\0":
        if at >= len(units):
            raise ValueError("a colon is missing")
        at += 2
    return int(units[:at].decode("utf-16-le")), units[at + 2 :]
