"""Protobuf messages, as far as ORC's tail needs them: fields in, fields out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acidsql.errors import FormatError

_MAX_BITS = 70  # of a varint of ten bytes: 64 bits and some
Field = tuple[int, int | bytes]  # number, and an int (varint) or the bytes of any other kind


def decode_fields(message: bytes) -> Iterator[Field]:
    """The fields of a protobuf message, in order.

    Varints come as int; length-delimited ones as bytes. Others (ORC's tail has only fixed64,
    inside statistics, which are not looked into) are an error.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
        elif wire == 2:
            size, at = _varint(message, at)
            yield number, message[at : at + size]
            at += size
        else:
            raise FormatError(f"the ORC footer has an unexpected wire type {wire}")
    if at != len(message):
        raise FormatError("the ORC footer is cut short")


def encode_fields(fields: Iterable[Field]) -> bytes:
    """Put a message together again."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _encoded(number << 3) + _encoded(value)
        else:
            out += _encoded(number << 3 | 2) + _encoded(len(value)) + value
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
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
    """The varints that lie one behind the other in a packed field."""
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def as_int(value: int | bytes | None) -> int:
    """A varint's value; 0 if the field is missing."""
    return value if isinstance(value, int) else 0


def as_bytes(value: int | bytes | None) -> bytes:
    """A message's or text's bytes; none if the field is missing."""
    return value if isinstance(value, bytes) else b""
