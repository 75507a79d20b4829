"""Decode and encode protobuf messages, as far as ORC's tail needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from acidsql.errors import FormatError

_MAX_BITS = 70  # the bits of a varint of ten bytes, which is enough for 64 bits
_Decoded = TypeVar("_Decoded")
Field = tuple[int, int | bytes]  # the field's number; an int for a varint, else bytes


def decode_fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a protobuf message, in order: number and value.

    A varint comes as int, a length-delimited field as bytes.

    Raises:
        FormatError: The message is damaged, or has a field of another wire type. ORC's tail has
            such fields (fixed64) only in statistics, which we do not decode.
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _read_varint(message, at)
        wire = tag & 7
        if wire not in (0, 2):
            raise FormatError(f"the ORC footer has an unexpected wire type {wire}")
        value, at = _read_varint(message, at)
        if wire == 0:
            yield tag >> 3, value
        else:
            yield tag >> 3, message[at : at + value]
            at += value
    if at != end:
        raise FormatError("the ORC footer is cut short")


def cache_if_short(
    longest: int,
) -> Callable[[Callable[[bytes], _Decoded]], Callable[[bytes], _Decoded]]:
    """Return a decorator for a function that decodes a message. The decorated function keeps its
    last 4096 results for messages of up to ``longest`` bytes, and returns the same object for equal
    ones. It decodes a longer message each time.

    The limit bounds the memory: a damaged file may have messages of any length.
    """

    def decorated(decode: Callable[[bytes], _Decoded]) -> Callable[[bytes], _Decoded]:
        cached = lru_cache(maxsize=4096)(decode)
        return lambda message: cached(message) if len(message) <= longest else decode(message)

    return decorated


def encode_fields(fields: Iterable[Field]) -> bytes:
    """Encode fields as a protobuf message: an int as a varint, bytes as a length-delimited
    field.
    """
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _encode_varint(number << 3) + _encode_varint(value)
        else:
            out += _encode_varint(number << 3 | 2) + _encode_varint(len(value)) + value
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read the varint at a position: return it, and the position after it. Raises FormatError if it
    is cut short, or has more than ten bytes.
    """
    if at < len(data) and (byte := data[at]) < 0x80:
        return byte, at + 1  # nearly all
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= _MAX_BITS:
            raise FormatError("the ORC footer holds a number of more than 64 bits")
    raise FormatError("the ORC footer is cut short")


def varints(data: bytes) -> Iterator[int]:
    """Yield the varints of a packed field. Raises FormatError if one is damaged."""
    at = 0
    while at < len(data):
        value, at = _read_varint(data, at)
        yield value


def _encode_varint(value: int) -> bytes:
    """Encode an integer from 0 on as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def as_int(value: int | bytes | None) -> int:
    """Return the value of a varint field; 0 if the field is missing, or no varint."""
    return value if isinstance(value, int) else 0


def as_bytes(value: int | bytes | None) -> bytes:
    """Return the bytes of a length-delimited field; none if the field is missing, or a varint."""
    return value if isinstance(value, bytes) else b""
