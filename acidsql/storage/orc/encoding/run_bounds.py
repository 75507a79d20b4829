"""Tests the integers of a stream without decoding most of its runs.

``soundness`` must know that no length is absurd, and may take little time for it. The header of a
run tells how many bits its values have. There are many runs, so a regular expression walks over
those that are plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding import rle

# The regular expressions know DIRECT runs of these sizes in bytes, and longest runs.
_SIZES, _LONGEST = range(1, 33), 512
_DELTA = 3


def are_within(data: bytes, most: int, *, signed: bool, is_new: bool) -> bool:
    """Whether all integers of a stream are from 0 to ``most``.

    Args:
        data: The stream, decompressed.
        most: The largest integer that is allowed.
        signed: Whether the integers are signed.
        is_new: Whether the stream has run-length encoding version 2.

    Raises:
        FormatError: The stream is damaged.
    """
    # The largest integer of a plain run is not looked at, so it must be allowed.
    runs = _bounds_of_runs(
        data, signed=signed, is_new=is_new, plain_bits=0 if signed or not most >> 16 else 16
    )
    return all(run.least >= 0 and run.greatest <= most for run in runs)


def is_sum_within(data: bytes, most: int, *, is_new: bool, exactly: bool) -> bool:
    """Whether each unsigned integer of a stream is below 2**63, and their sum is at most ``most``.

    Args:
        data: The stream, decompressed.
        most: The greatest sum that is allowed.
        is_new: Whether the stream has run-length encoding version 2.
        exactly: Decode every run. Otherwise plain runs with values below 256 do not count; version
            1 has none.

    Raises:
        FormatError: The stream is damaged.
    """
    total = 0
    for run in _bounds_of_runs(data, signed=False, is_new=is_new, plain_bits=0 if exactly else 8):
        if run.least < 0 or run.greatest > most:
            return False
        total += run.total
        if total > most:
            return False
    return True


class _RunBounds(NamedTuple):
    """The least and the greatest integer of a run, and the sum of all."""

    least: int
    greatest: int
    total: int


def _bounds_of_runs(
    data: bytes, *, signed: bool, is_new: bool, plain_bits: int
) -> Iterator[_RunBounds]:
    """Yield the bounds and the sum of each run of a stream. Left out are runs that a pattern finds
    (SHORT_REPEAT, DIRECT, DELTA without steps) if their values have at most ``plain_bits`` bits:
    8 or 16; 0: all runs are yielded. A stream of version 1 counts as one run. Raises FormatError
    if the stream is damaged.
    """
    if not is_new:
        yield _bounds_of_values(rle.decode_old(data, signed))
        return
    at, end = 0, len(data)
    try:
        while at < end:
            if plain_bits:
                at = _skip_plain_runs(data, at, plain_bits)
            if at < end:
                run, at = _run_bounds(data, at, signed)
                yield run
    except (IndexError, ValueError, StopIteration) as error:
        raise FormatError("an integer stream of an ORC file is damaged") from error


def _skip_plain_runs(data: bytes, at: int, bits: int) -> int:
    """Return the position of the first run, from ``at`` on, that ``_plain_runs`` does not match.
    It is ``at`` itself if the run there is no plain one.
    """
    plain_runs = _plain_runs(bits).match(data, at)
    return plain_runs.end() if plain_runs else at


@cache
def _plain_runs(bits: int) -> re.Pattern[bytes]:
    """Return a pattern that matches any number of runs of the kinds SHORT_REPEAT and DIRECT, and
    DELTA without steps, if their values have at most ``bits`` bits (8 or 16).
    """
    runs = [rb"[\x00-\x07].", rb"[\xC0\xC1].[\x00-\x7F]\x00"]
    if bits == 16:
        runs += [rb"[\x08-\x0F]..", rb"[\xC0\xC1].[\x80-\xFF][\x00-\x7F]\x00"]
    for width in range(1, bits + 1):
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
    """Return the escape that matches a byte in a regular expression."""
    return b"\\x%02X" % byte


def _run_bounds(data: bytes, at: int, signed: bool) -> tuple[_RunBounds, int]:
    """Return the bounds and the sum of the run at a position, and the position after it."""
    if data[at] >> 6 == _DELTA and not data[at] & 0x3E:  # all steps are equal
        first, step, count, end = rle.decode_even_delta(data, at, signed)
        last = first + step * (count - 1)
        total = (first + last) * count // 2
        return _RunBounds(min(first, last), max(first, last), total), end
    values, end = rle.decode_run(data, at, signed)
    return _bounds_of_values(values), end


def _bounds_of_values(values: rle.Int64s) -> _RunBounds:
    """Return the bounds and the sum of these integers; all are 0 if there are none."""
    if not len(values):
        return _RunBounds(0, 0, 0)
    return _RunBounds(int(values.min()), int(values.max()), int(values.sum()))
