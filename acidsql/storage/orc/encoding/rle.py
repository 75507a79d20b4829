"""Decodes and encodes ORC's integer streams (run-length encoding).

This module reads all four kinds of run of version 2, and version 1, which Hive 0.11 wrote. It
writes only the plainest kind of version 2 (DIRECT, in whole bytes). The decoders of single kinds
of run return uint64, a negative integer as its two's complement.

Source: ORC specification v1, "Integer Run Length Encoding".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from acidsql.errors import FormatError

Int64s = npt.NDArray[np.int64]
_UInt64s = npt.NDArray[np.uint64]
# (bytes, start of the run, whether integers are signed) → (values, end of the run)
_RunDecoder = Callable[[bytes, int, bool], tuple[_UInt64s, int]]

# The bit width for each five-bit code.
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_LONGEST_RUN = 512


def decode(data: bytes, signed: bool) -> Int64s:
    """Decode the integers of a stream of version 2.

    Args:
        data: The stream, decompressed.
        signed: Whether the integers are signed (zigzag).

    Returns:
        The values. In an unsigned stream, values from 2**63 on become negative.

    Raises:
        FormatError: The stream is damaged.
    """
    return _decode_runs(data, signed, lambda first: _KINDS[first >> 6])


def decode_old(data: bytes, signed: bool) -> Int64s:
    """Decode the integers of a stream of version 1.

    Args:
        data: The stream, decompressed.
        signed: Whether the integers are signed (zigzag).

    Returns:
        The values. In an unsigned stream, values from 2**63 on become negative.

    Raises:
        FormatError: The stream is damaged.
    """
    return _decode_runs(
        data, signed, lambda first: _decode_literals if first >= 0x80 else _decode_steps
    )


def decode_run(data: bytes, at: int, signed: bool) -> tuple[Int64s, int]:
    """Decode the run of version 2 at a position: return its integers, and the position after it.
    Damage raises IndexError, ValueError or StopIteration.
    """
    values, end = _KINDS[data[at] >> 6](data, at, signed)
    return values.view(np.int64), end


def decode_even_delta(data: bytes, at: int, signed: bool) -> tuple[int, int, int, int]:
    """Decode the header of a DELTA run whose steps are all equal, as the caller has seen: return
    the first value, the step, the number of values, and the position after the run.
    """
    first, end = _read_varint(data, at + 2)
    step, end = _read_varint(data, end)
    return (
        _unzigzag_number(first) if signed else first,
        _unzigzag_number(step),
        _header(data, at)[1],
        end,
    )


def _unzigzag_number(zigzag: int) -> int:
    return zigzag >> 1 ^ -(zigzag & 1)


def _decode_runs(data: bytes, signed: bool, kind_of: Callable[[int], _RunDecoder]) -> Int64s:
    """Decode all runs of a stream; ``kind_of`` chooses the decoder by a run's first byte. Raises
    FormatError if the stream is damaged.
    """
    runs, at = [], 0
    try:
        while at < len(data):
            values, at = kind_of(data[at])(data, at, signed)
            runs.append(values)
    except (IndexError, ValueError, StopIteration) as error:
        raise FormatError("an integer stream of an ORC file is damaged") from error
    return np.concatenate(runs).view(np.int64) if runs else np.zeros(0, dtype=np.int64)


def encode(values: Int64s, signed: bool) -> bytes:
    """Encode integers as a stream of DIRECT runs of version 2, of up to 512 integers. All have the
    same width, the fewest whole bytes that hold the largest. No integers give no bytes.

    ``signed``: store them in zigzag form. Otherwise negative ones are stored as large unsigned
    ones.
    """
    numbers = (values << 1 ^ values >> 63 if signed else values).view(np.uint64)
    size = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    code = _WIDTHS.index(size * 8)
    data = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - size :]
    out = bytearray()
    for start in range(0, len(numbers), _LONGEST_RUN):
        run = data[start : start + _LONGEST_RUN]
        count = len(run) - 1
        out += bytes([0x40 | code << 1 | count >> 8, count & 0xFF]) + run.tobytes()
    return bytes(out)


def _decode_short_repeat(data: bytes, at: int, signed: bool) -> tuple[_UInt64s, int]:
    """Decode a SHORT_REPEAT run: return its values, and the position after it."""
    size, count = (data[at] >> 3 & 7) + 1, (data[at] & 7) + 3
    value = np.array([int.from_bytes(data[at + 1 : at + 1 + size], "big")], dtype=np.uint64)
    return np.repeat(_unzigzag(value) if signed else value, count), at + 1 + size


def _header(data: bytes, at: int) -> tuple[int, int]:
    """Return the code of the bit width and the number of values from the header of a DIRECT,
    PATCHED_BASE or DELTA run.
    """
    return data[at] >> 1 & 31, ((data[at] & 1) << 8 | data[at + 1]) + 1


def _decode_direct(data: bytes, at: int, signed: bool) -> tuple[_UInt64s, int]:
    """Decode a DIRECT run: return its values, and the position after it."""
    code, count = _header(data, at)
    values, at = _unpack(data, at + 2, _WIDTHS[code], count)
    return (_unzigzag(values) if signed else values), at


def _decode_patched_base(data: bytes, at: int, signed: bool) -> tuple[_UInt64s, int]:
    """Decode a PATCHED_BASE run: return its values, and the position after it. ``signed`` plays no
    part: the base has a sign of its own, and the values are distances from the base.
    """
    code, count = _header(data, at)
    width = _WIDTHS[code]
    base_size, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    at += 4
    base = int.from_bytes(data[at : at + base_size], "big")
    sign = 1 << (8 * base_size - 1)
    base = -(base & sign - 1) if base & sign else base
    values, at = _unpack(data, at + base_size, width, count)
    entry_width = next(w for w in _WIDTHS if w >= gap_width + patch_width)
    entries, at = _unpack(data, at, entry_width, patches)
    position = 0
    for entry in map(int, entries):
        position += entry >> patch_width
        patch = entry & (1 << patch_width) - 1
        values[position] |= np.uint64(patch << width & (1 << 64) - 1)
    return values + np.uint64(base & (1 << 64) - 1), at


def _decode_delta(data: bytes, at: int, signed: bool) -> tuple[_UInt64s, int]:
    """Decode a DELTA run: return its values, and the position after it."""
    code, count = _header(data, at)
    first, at = _read_varint(data, at + 2)
    step, at = _read_varint(data, at)
    start = np.array([first], dtype=np.uint64)
    start = _unzigzag(start) if signed else start
    signed_step = _unzigzag(np.array([step], dtype=np.uint64))
    if code == 0:  # all steps are equal
        deltas = np.repeat(signed_step, count - 1)
    else:
        sizes, at = _unpack(data, at, _WIDTHS[code], count - 2)
        if signed_step.view(np.int64)[0] < 0:
            sizes = (-sizes.view(np.int64)).view(np.uint64)
        deltas = np.concatenate((signed_step, sizes))
    return np.cumsum(np.concatenate((start, deltas)), dtype=np.uint64), at


_KINDS: tuple[_RunDecoder, ...] = (
    _decode_short_repeat,
    _decode_direct,
    _decode_patched_base,
    _decode_delta,
)  # of version 2


def _decode_literals(data: bytes, at: int, signed: bool) -> tuple[_UInt64s, int]:
    """Decode a run of version 1 of up to 128 numbers, stored one by one: return them, and the
    position after it.
    """
    count, at = 256 - data[at], at + 1
    numbers = []
    for _ in range(count):
        number, at = _read_varint(data, at)
        numbers.append(number)
    values = np.array(numbers, dtype=np.uint64)
    return (_unzigzag(values) if signed else values), at


def _decode_steps(data: bytes, at: int, signed: bool) -> tuple[_UInt64s, int]:
    """Decode a run of version 1 of 3 to 130 numbers with equal differences: return them, and the
    position after it.
    """
    count, step = data[at] + 3, data[at + 1]
    first, at = _read_varint(data, at + 2)
    start = np.array([first], dtype=np.uint64)
    start = _unzigzag(start) if signed else start
    steps = np.arange(count, dtype=np.int64) * (step - 256 if step >= 128 else step)
    return start + steps.view(np.uint64), at


def _unpack(data: bytes, at: int, width: int, count: int) -> tuple[_UInt64s, int]:
    """Unpack ``count`` numbers of ``width`` bits, highest bit first; return them, and the position
    after them.
    """
    size = (width * count + 7) // 8
    bits = np.unpackbits(np.frombuffer(data, np.uint8, size, at), count=width * count)
    padded = np.zeros((count, 64), dtype=np.uint8)
    padded[:, 64 - width :] = bits.reshape(count, width)
    return np.packbits(padded, axis=1).view(">u8").reshape(-1).astype(np.uint64), at + size


def _unzigzag(values: _UInt64s) -> _UInt64s:
    return values >> np.uint64(1) ^ -(values & np.uint64(1)).view(np.int64).view(np.uint64)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read the varint at a position: return its low 64 bits, and the position after it. Raises
    IndexError at the end of the bytes.
    """
    value = shift = 0
    while data[at] >= 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return (value | data[at] << shift) & (1 << 64) - 1, at + 1
