"""Finds the damage with which ORC's C++ reader would crash, or run on for ever.

ORC has no checksums, and the C++ reader trusts a stripe in some ways. It takes a column's encoding
from a list that may be too short. It reads on behind the end of an empty chunk. It takes the
lengths of lists and maps as they are, even if they are negative. And if a decimal has another
scale, the reader multiplies by ten until the scale is right. So all of these are checked before
Arrow reads a stripe. The lengths of texts are added up in small stripes. In large ones that would
take too long, so only lengths count that may be 256 or more.

This module runs in workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.compression import check_chunks, decompress
from acidsql.storage.orc.encoding.footer import Footer, PostScript
from acidsql.storage.orc.encoding.protobuf import decode_fields
from acidsql.storage.orc.encoding.run_bounds import are_within, is_sum_within
from acidsql.storage.orc.encoding.stripe import (
    DATA,
    DICTIONARY_DATA,
    LENGTH,
    ROW_INDEX,
    SECONDARY,
    Stripe,
    StripeFooter,
    read_stripe_footer,
)

_SMALL = 1 << 20  # bytes of a stripe, all lengths of whose texts are added up
_TEXTS = ("string", "varchar", "char", "binary")
_MOST_LENGTH, _MOST_SCALE = (1 << 31) - 1, 38
# For streams of these kinds in columns of these types: what their integers are, the largest that
# is possible, and whether they are signed.
_LENGTHS, _SCALES = ("lengths", _MOST_LENGTH, False), ("scales", _MOST_SCALE, True)
_TRUSTED = {(LENGTH, "array"): _LENGTHS, (LENGTH, "map"): _LENGTHS, (SECONDARY, "decimal"): _SCALES}


def check_stripes(
    read_at: Callable[[int, int], bytes],
    footer: Footer,
    script: PostScript,
    *,
    indexes: bool = False,
) -> None:
    """Check all stripes of a file for the damage with which ORC's C++ reader would crash or never
    end; other damage is not looked for.

    Args:
        read_at: Returns the file's bytes between two positions.
        footer: The file's footer.
        script: The file's postscript.
        indexes: Decompress the indexes, too. A reader without a condition does not read them.

    Raises:
        FormatError: A stripe is damaged. The error has the ``offset`` of the damage, or else of the
            stripe.
        Exception: A codec's own error for damaged bytes; see ``damage.naming_damage``.
    """
    for stripe in footer.stripes:
        try:
            _check_stripe(read_at, footer, script, stripe, indexes=indexes)
        except FormatError as error:
            offset = error.parameters.get("offset", stripe.offset)
            raise FormatError(error.message, offset=offset) from error


def _check_stripe(
    read_at: Callable[[int, int], bytes],
    footer: Footer,
    script: PostScript,
    stripe: Stripe,
    *,
    indexes: bool,
) -> None:
    """Raise FormatError if a stripe is damaged so that ORC's C++ reader would crash or never end.

    Its footer must be readable and have an encoding for each column. Each stream of data must end
    before this footer, and its chunks must be whole and not empty. Lengths of arrays, maps and
    texts, and scales of decimals, must be possible. ``indexes``: decompress the indexes, too.
    """
    compression, room = script.compression, Counter[int]()  # for texts, by column
    footer_of_stripe = read_stripe_footer(read_at, stripe, compression)
    if len(footer_of_stripe.has_new_runs) != len(footer.types):
        raise FormatError("a stripe has not all columns", offset=stripe.footer_offset)
    for stream in footer_of_stripe.streams:
        begin = stripe.offset + stream.offset
        if stream.kind >= ROW_INDEX or stream.column >= len(footer.types):
            if indexes:
                _check_index(read_at(begin, begin + stream.length), compression, begin)
            continue
        if begin + stream.length > stripe.footer_offset:
            raise FormatError("a stream is longer than its stripe", offset=begin)
        chunks = check_chunks(read_at, begin, begin + stream.length, compression)
        if stream.kind in (DATA, DICTIONARY_DATA):
            room[stream.column] += max(chunks * script.block_size, stream.length)
        trusted = _TRUSTED.get((stream.kind, footer.types[stream.column].kind))
        if trusted is not None:
            stream_name, most, signed = trusted
            data = decompress(read_at(begin, begin + stream.length), compression)
            is_new = footer_of_stripe.has_new_runs[stream.column]
            if not are_within(data, most, signed=signed, is_new=is_new):
                raise FormatError(
                    f"column {stream.column} has impossible {stream_name}", offset=begin
                )
    _check_texts(read_at, footer, compression, stripe, footer_of_stripe, room)


def _check_texts(
    read_at: Callable[[int, int], bytes],
    footer: Footer,
    compression: int,
    stripe: Stripe,
    footer_of_stripe: StripeFooter,
    room: Counter[int],
) -> None:
    """Raise FormatError if the texts (or binaries) of a column in a stripe have more bytes together
    than the chunks of the column can have. In a stripe of more than 1 MiB, lengths are not counted
    if their run's header says that they are below 256.

    ``room``: for each column's number, the bytes that its chunks can have at most.
    """
    for kind, column, offset, length in footer_of_stripe.streams:
        if kind != LENGTH or column >= len(footer.types) or not length:
            continue
        if footer.types[column].kind in _TEXTS:
            begin = stripe.offset + offset
            data = decompress(read_at(begin, begin + length), compression)
            if not is_sum_within(
                data,
                room[column],
                is_new=footer_of_stripe.has_new_runs[column],
                exactly=stripe.length <= _SMALL,
            ):
                raise FormatError(f"column {column} has impossible lengths", offset=begin)


def _check_index(data: bytes, compression: int, begin: int) -> None:
    """Raise FormatError if an index of a stripe has a chunk that is cut short, or is no sequence of
    protobuf fields; a codec's own error for damaged bytes passes. ``begin``: its position in the
    file, for the error.
    """
    try:
        for _ in decode_fields(decompress(data, compression)):
            pass
    except FormatError as error:
        raise FormatError(f"an index is damaged: {error.message}", offset=begin) from error
