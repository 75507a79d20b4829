"""A stripe of an ORC file: the positions of its parts, and its footer.

Source: ORC specification v1, ``orc_proto.proto`` (field numbers below).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from acidsql.storage.orc.encoding.compression import decompress
from acidsql.storage.orc.encoding.protobuf import (
    as_bytes,
    as_int,
    cache_if_short,
    decode_fields,
    encode_fields,
)

DATA, LENGTH, DICTIONARY_DATA, SECONDARY, ROW_INDEX = (
    1,
    2,
    3,
    5,
    6,
)  # kinds of stream; kinds from 6 on are indexes
_STREAM, _ENCODING, _ZONE = 1, 2, 3  # fields of StripeFooter
_NEW_RUNS = (2, 3)  # kinds of ColumnEncoding: DIRECT_V2, DICTIONARY_V2


class Stripe(NamedTuple):
    """The position and size of a stripe (StripeInformation). All numbers but ``rows`` are bytes."""

    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @classmethod
    def parse(cls, message: bytes) -> Stripe:
        """Decode a StripeInformation message; missing numbers are 0. Raises FormatError."""
        values = dict(decode_fields(message))
        return cls(*(as_int(values.get(number)) for number in range(1, 6)))

    def encode(self) -> bytes:
        """Encode the protobuf message."""
        return encode_fields(list(enumerate(self, start=1)))

    @property
    def length(self) -> int:
        """The length of the whole stripe in bytes."""
        return self.index_length + self.data_length + self.footer_length

    @property
    def footer_offset(self) -> int:
        """The position of the stripe's footer in the file."""
        return self.offset + self.index_length + self.data_length


class Stream(NamedTuple):
    """A stream of a stripe; ``offset`` and ``length`` in bytes, from the stripe's beginning."""

    kind: int
    column: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class StripeFooter:
    """The footer of a stripe.

    Attributes:
        streams: The streams, indexes included, in the order of their positions.
        has_new_runs: For each column, whether its integers have run-length encoding version 2.
        zone: The time zone in which the timestamps were written; "" if the footer names none.
    """

    streams: tuple[Stream, ...]
    has_new_runs: tuple[bool, ...]
    zone: str

    @classmethod
    def parse(cls, stored: bytes, compression_kind: int) -> StripeFooter:
        """Decompress and decode a stripe's footer from its bytes in the file. The offset of a
        stream is the sum of the lengths before it.

        ``compression_kind``: CompressionKind. Raises FormatError if the bytes are damaged, or the
        codec's own error (``damage.naming_damage``).
        """
        streams, encodings, zone, at = list[Stream](), list[bool](), "", 0
        for number, value in decode_fields(decompress(stored, compression_kind)):
            if number == _ZONE:
                zone = as_bytes(value).decode()
            elif number in (_STREAM, _ENCODING):
                kind, column, length = _numbers(as_bytes(value))
                if number == _ENCODING:
                    encodings.append(kind in _NEW_RUNS)
                else:
                    streams.append(Stream(kind, column, at, length))
                    at += length
        return cls(tuple(streams), tuple(encodings), zone)


@cache_if_short(64)
def _numbers(message: bytes) -> tuple[int, int, int]:
    """Return the fields 1, 2 and 3 of a Stream or ColumnEncoding message; 0 for a missing one."""
    fields = dict(decode_fields(message))
    return as_int(fields.get(1)), as_int(fields.get(2)), as_int(fields.get(3))


def read_stripe_footer(
    read_at: Callable[[int, int], bytes], stripe: Stripe, compression_kind: int
) -> StripeFooter:
    """Read a stripe's footer. Raises FormatError if it is damaged.

    ``read_at`` returns the file's bytes between two positions; ``compression_kind``: as in the
    postscript.
    """
    stored = read_at(stripe.footer_offset, stripe.offset + stripe.length)
    return StripeFooter.parse(stored, compression_kind)
