"""Many byte strings in one array, and Hive's two hashes of byte strings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SEED = 104729
_MICROS = 1_000_000


class ByteRows(NamedTuple):
    """One byte string for each row.

    Attributes:
        data: The bytes of all rows; other bytes may lie between the rows.
        starts: The start of each row in ``data``.
        lengths: The number of bytes of each row.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


# ── hashes ───────────────────────────────────────────────────────────────────────────────────


def murmur3(rows: ByteRows) -> npt.NDArray[np.int32]:
    """Return Hive's Murmur3_32 of each row: seed 104729, tail bytes sign-extended, because Java's
    bytes are signed.
    """
    data, starts, lengths = rows
    hashes = np.full(len(starts), _SEED, dtype=np.uint32)
    blocks = lengths // 4
    with np.errstate(over="ignore"):
        active = np.nonzero(blocks > 0)[0]
        block = 0
        while len(active):
            at = starts[active] + 4 * block
            word = np.zeros(len(active), dtype=np.uint32)
            for i in range(4):
                word |= data[at + i].astype(np.uint32) << np.uint32(8 * i)
            mixed_hashes = hashes[active] ^ _scramble(word)
            hashes[active] = _rotate_left(mixed_hashes, 13) * np.uint32(5) + np.uint32(0xE6546B64)
            block += 1
            active = active[blocks[active] > block]
        hashes ^= _tails(rows)
        return _finalize_hash(hashes ^ lengths.astype(np.uint32)).view(np.int32)


def _tails(rows: ByteRows) -> npt.NDArray[np.uint32]:
    """Return the last one to three bytes of each row, sign-extended, combined by XOR and scrambled:
    those after the last whole word of four; 0 for no such byte.
    """
    data, starts, lengths = rows
    tail = np.zeros(len(starts), dtype=np.uint32)
    for i in range(3):
        has = np.nonzero(lengths % 4 > i)[0]
        at = (starts + lengths - lengths % 4 + i)[has]
        signed = data[at].view(np.int8).astype(np.int32).view(np.uint32)
        tail[has] ^= signed << np.uint32(8 * i)
    # A row without a tail has 0 here, and the scrambled 0 is 0.
    return _scramble(tail)


def _scramble(word: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return Murmur3's mix of each word, before it goes into a hash."""
    return _rotate_left(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotate_left(word: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return word << np.uint32(bits) | word >> np.uint32(32 - bits)


def _finalize_hash(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return Murmur3's final mix of each hash. This also changes the array that is passed."""
    hashes ^= hashes >> np.uint32(16)
    hashes = hashes * np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes = hashes * np.uint32(0xC2B2AE35)
    return hashes ^ hashes >> np.uint32(16)


def java_polynomial(rows: ByteRows, start: int) -> npt.NDArray[np.int32]:
    """Return the hash of each row that begins as ``start`` and becomes ``31·h + byte`` with each
    byte (signed).
    """
    data, starts, lengths = rows
    hashes = np.full(len(starts), start, dtype=np.int32)
    active = np.nonzero(lengths > 0)[0]
    position = 0
    with np.errstate(over="ignore"):
        while len(active):
            signed = data[starts[active] + position].view(np.int8).astype(np.int32)
            hashes[active] = hashes[active] * np.int32(31) + signed
            position += 1
            active = active[lengths[active] > position]
    return hashes


# ── bytes of values ──────────────────────────────────────────────────────────────────────────


def big_endian(values: npt.NDArray[Any], dtype: str) -> ByteRows:
    """Return the big-endian bytes of numbers. ``dtype``: numpy's type of the bytes, as ``>i4``."""
    width = np.dtype(dtype).itemsize
    data = values.astype(dtype).view(np.uint8)
    starts = np.arange(len(values), dtype=np.int64) * width
    return ByteRows(data, starts, np.full(len(values), width, dtype=np.int64))


def string_bytes(array: pa.Array) -> ByteRows:
    """Return the bytes of strings or binaries, without copying them. For NULL the result may be
    anything.
    """
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    if not len(array) or offsets is None:
        none = np.zeros(len(array), dtype=np.int64)
        return ByteRows(np.zeros(0, dtype=np.uint8), none, none)
    stored = np.frombuffer(offsets, dtype="<i8" if large else "<i4")
    ends: npt.NDArray[np.int64]
    ends = stored[array.offset : array.offset + len(array) + 1].astype(np.int64)
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    return ByteRows(content, ends[:-1], np.diff(ends))


def split_micros(
    micros: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return microseconds since the epoch as whole seconds (rounded down) and nanoseconds."""
    seconds, rest = np.divmod(micros, _MICROS)
    return seconds, rest * 1000


def timestamp_bytes(seconds: npt.NDArray[np.int64], nanos: npt.NDArray[np.int64]) -> ByteRows:
    """Return Hive's bytes of each timestamp (``TimestampWritableV2``).

    The first four bytes have the low 31 bits of the seconds; their top bit is set if more bytes
    follow. Then come the nine digits of the nanoseconds, reversed, as a VLong (-n-1 if the seconds
    do not fit into 31 bits). Only in that case, the seconds above bit 31 follow as a VLong.
    """
    beyond = (seconds < 0) | (seconds >= 1 << 31)
    more = beyond | (nanos != 0)
    first = seconds & 0x7FFFFFFF | np.where(more, np.int64(1 << 31), np.int64(0))
    reversed_nanos = _reversed_digits(nanos)
    reversed_nanos = np.where(beyond, -reversed_nanos - 1, reversed_nanos)
    out = np.zeros((len(seconds), 4 + 9 + 9), dtype=np.uint8)
    out[:, :4] = first.astype(">u4").view(np.uint8).reshape(-1, 4)
    lengths = np.full(len(seconds), 4, dtype=np.int64)
    _append_bytes(out, lengths, *_vlong(reversed_nanos), only=more)
    _append_bytes(out, lengths, *_vlong(seconds >> 31), only=beyond)
    return ByteRows(out.reshape(-1), np.arange(len(out), dtype=np.int64) * out.shape[1], lengths)


def _reversed_digits(nanos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each number's nine decimal digits in reversed order, as a number."""
    reversed_digits, remaining = np.zeros_like(nanos), nanos
    for _ in range(9):
        remaining, digit = np.divmod(remaining, 10)
        reversed_digits = reversed_digits * 10 + digit
    return reversed_digits


def _vlong(
    values: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of each value in the form of Hadoop's ``WritableUtils.writeVLong``: nine
    bytes for each, and how many of these are used.
    """
    small = (values >= -112) & (values <= 127)
    magnitude = np.where(values < 0, ~values, values)
    width = np.ones(len(values), dtype=np.int64)
    for size in range(1, 8):
        width += magnitude >> (8 * size) != 0
    out = np.zeros((len(values), 9), dtype=np.uint8)
    # The first byte has sign and width: -112 - width, or -120 - width for a negative value.
    head = np.where(values < 0, np.int64(-120), np.int64(-112)) - width
    out[:, 0] = np.where(small, values, head).astype(np.int8).view(np.uint8)
    for position in range(8):
        shift = np.maximum(8 * (width - 1 - position), 0)
        out[:, 1 + position] = (magnitude >> shift & 0xFF).astype(np.uint8)
    return out, np.where(small, 1, 1 + width)


def _append_bytes(
    out: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    more: npt.NDArray[np.uint8],
    more_lengths: npt.NDArray[np.int64],
    only: npt.NDArray[np.bool_],
) -> None:
    """Append the first ``more_lengths`` bytes of each row of ``more`` to the rows of ``out`` that
    ``only`` selects, and add to their ``lengths``, in place.
    """
    for position in range(more.shape[1]):
        rows = np.nonzero(only & (more_lengths > position))[0]
        out[rows, lengths[rows] + position] = more[rows, position]
    lengths += np.where(only, more_lengths, 0)


class Decimals(NamedTuple):
    """Decimals without trailing zeros after the point, as in ``HiveDecimal``.

    Attributes:
        high: The upper 64 bits of the unscaled value, two's complement.
        low: The lower 64 bits.
        scales: The number of digits after the point.
    """

    high: npt.NDArray[np.int64]
    low: npt.NDArray[np.uint64]
    scales: npt.NDArray[np.int32]


def normalized_decimals(array: pa.Array, scale: int) -> Decimals:
    """Return the values of a decimal128 array without trailing zeros. For NULL the result has any
    value.
    """
    words = np.frombuffer(array.buffers()[1], dtype="<i8").reshape(-1, 2)
    words = words[array.offset : array.offset + len(array)]
    low, high = words[:, 0].copy(), words[:, 1].copy()
    scales = np.full(len(low), scale, dtype=np.int32)
    fits = high == low >> 63
    for _ in range(scale):
        has_trailing_zero = fits & (scales > 0) & (low % 10 == 0)
        if not has_trailing_zero.any():
            break
        low[has_trailing_zero] //= 10
        scales[has_trailing_zero] -= 1
    unsigned = low.view(np.uint64)
    for row in np.nonzero(~fits)[0]:  # numpy has no integers of more than 64 bits
        unscaled = int(high[row]) << 64 | int(unsigned[row])
        while scales[row] > 0 and unscaled % 10 == 0:
            unscaled //= 10
            scales[row] -= 1
        high[row], unsigned[row] = unscaled >> 64, unscaled & (1 << 64) - 1
    return Decimals(high, unsigned, scales)


def decimal_bytes(decimals: Decimals) -> ByteRows:
    """Return the fewest big-endian two's-complement bytes of each unscaled value."""
    out = np.empty((len(decimals.low), 16), dtype=np.uint8)
    out[:, :8] = decimals.high.astype(">i8").view(np.uint8).reshape(-1, 8)
    out[:, 8:] = decimals.low.astype(">u8").view(np.uint8).reshape(-1, 8)
    # A leading byte that only repeats the sign is dropped if the next byte also shows the sign.
    differs = out ^ np.where(decimals.high < 0, np.uint8(0xFF), np.uint8(0))[:, None]
    first = np.where(differs.any(axis=1), (differs != 0).argmax(axis=1), 15)
    hides_sign = differs[np.arange(len(out)), first] >= 0x80
    lengths = (16 - first + hides_sign).astype(np.int64)
    starts = np.arange(len(out), dtype=np.int64) * 16 + 16 - lengths
    return ByteRows(out.reshape(-1), starts, lengths)


def big_integer_hashes(decimals: Decimals) -> npt.NDArray[np.int32]:
    """Return Java's ``BigInteger.hashCode`` of each unscaled value: a polynomial over the
    magnitude's 32-bit words.
    """
    negative = decimals.high < 0
    high = decimals.high.view(np.uint64)
    borrowed = ~high + (decimals.low == 0).astype(np.uint64)
    hashes = np.zeros(len(high), dtype=np.uint32)
    with np.errstate(over="ignore"):
        low = np.where(negative, ~decimals.low + np.uint64(1), decimals.low)
        for half in (np.where(negative, borrowed, high), low):
            for word in (half >> np.uint64(32), half & np.uint64(0xFFFFFFFF)):
                # Java has no leading zero words. Here they do no harm: a hash of 0 stays 0.
                hashes = hashes * np.uint32(31) + word.astype(np.uint32)
        signed = hashes.view(np.int32)
        return np.where(negative, -signed, signed)
