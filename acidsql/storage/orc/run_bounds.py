"""Tests the integers of a stream without decoding most of its runs.

``soundness`` must know that no length is absurd, and may take little time for it. The header of a
run tells how many bits its values have. There are many runs, so a regular expression walks over
those that are plain.
"""

from __future__ import annotations

import re
from functools import cache

from acidsql.errors import FormatError
from acidsql.storage.orc import rle

# The regular expression knows DIRECT runs of these widths in bits and sizes in bytes, and longest
# runs. The values of all runs that it knows are below 2**16.
_WIDTHS, _SIZES, _LONGEST = range(1, 17), range(1, 33), 512
_DELTA = 3


def all_within(data: bytes, most: int, *, signed: bool, is_new: bool) -> bool:
    """Whether all integers of a stream are from 0 to ``most``.

    Args:
        data: The stream, decompressed.
        most: The largest integer that is allowed.
        signed: Whether the integers are signed.
        is_new: Whether the stream has run-length encoding version 2.

    Raises:
        FormatError: The stream is damaged.
    """
    if not is_new:
        return _are_within(rle.decode_old(data, signed), most)
    at, end = 0, len(data)
    try:
        while at < end:
            if not signed and most >> 16:
                at = _passed(data, at)
            if at < end:
                at, is_within = _run(data, at, most, signed)
                if not is_within:
                    return False
    except (IndexError, ValueError, StopIteration) as error:
        raise FormatError("an integer stream of an ORC file is damaged") from error
    return True


def is_sum_within(data: bytes, most: int, *, is_new: bool) -> bool:
    """Whether unsigned integers of a stream are not negative, and their sum is at most ``most``.

    Unlike ``all_within``, this decodes every run.

    Raises:
        FormatError: The stream is damaged.
    """
    if not is_new:
        values = rle.decode_old(data, False)
        return _are_within(values, most) and int(values.sum()) <= most
    at, total = 0, 0
    try:
        while at < len(data) and total <= most:
            if data[at] >> 6 == _DELTA and not data[at] & 0x3E:
                first, step, count, at = rle.even_steps(data, at, False)
                least, part = min(first, first + step * (count - 1)), count * first
                part += step * count * (count - 1) // 2
            else:
                values, at = rle.decode_run(data, at, False)
                least = 0 if _are_within(values, most) else -1
                part = int(values.sum())
            if least < 0:
                return False
            total += part
    except (IndexError, ValueError, StopIteration) as error:
        raise FormatError("an integer stream of an ORC file is damaged") from error
    return total <= most


def _passed(data: bytes, at: int) -> int:
    """The position of the first run from ``at`` on that is not plain."""
    found = _plain_runs().match(data, at)
    return found.end() if found else at


@cache
def _plain_runs() -> re.Pattern[bytes]:
    """Matches any number of runs of the kinds SHORT_REPEAT and DIRECT, if they have few bits."""
    runs = [rb"[\x00-\x07].", rb"[\x08-\x0F].."]
    for width in _WIDTHS:
        header = 0x40 | width - 1 << 1
        sizes = []
        for size in _SIZES:
            fewest, most = 8 * (size - 1) // width + 1, min(256, 8 * size // width)
            if fewest <= most:
                counts = b"[%s-%s]" % (_literal(fewest - 1), _literal(most - 1))
                sizes.append(b"%s.{%d}" % (counts, size))
        runs.append(b"%s(?:%s)" % (_literal(header), b"|".join(sizes)))
        full = _literal(header | 1) + _literal(0xFF)  # the count is stored minus one, in nine bits
        runs.append(b"%s.{%d}" % (full, _LONGEST * width // 8))
    return re.compile(b"(?s:%s)*+" % b"|".join(runs))


def _literal(byte: int) -> bytes:
    return b"\\x%02X" % byte


def _run(data: bytes, at: int, most: int, signed: bool) -> tuple[int, bool]:
    """The position after a run, and whether its integers are from 0 to ``most``."""
    if data[at] >> 6 == _DELTA and not data[at] & 0x3E:  # all steps are equal
        first, step, count, end = rle.even_steps(data, at, signed)
        last = first + step * (count - 1)
        return end, 0 <= min(first, last) and max(first, last) <= most
    values, end = rle.decode_run(data, at, signed)
    return end, _are_within(values, most)


def _are_within(values: rle.Int64s, most: int) -> bool:
    return not len(values) or bool(values.min() >= 0 and values.max() <= most)
