"""Decodes the timestamps of an ORC file from the file's own streams, as Java's reader does.

Arrow, and ORC's C++ reader below it, give wrong timestamps. Arrow counts nanoseconds since 1970, so
its timestamps are limited to 1677 to 2262. If a file was written in a time zone other than UTC,
ORC's C++ reader gives some values that are wrong by a second or an hour: it tests whether the wall
clock is negative, while Java, which wrote the file, tests the instant. So Arrow reads only the
seconds, as BIGINTs (``batches``), and this module does the rest.

Source: ORC ``TreeReaderFactory.TimestampTreeReader``. Runs in workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding import rle as orc_rle
from acidsql.storage.orc.encoding.compression import decompress
from acidsql.storage.orc.encoding.stripe import SECONDARY, Stripe, read_stripe_footer
from acidsql.storage.orc.encoding.zones import zone_of

# Nanoseconds. Readers correct the seconds of a negative timestamp only if its fraction is larger.
FRACTION_SEEN = 999_999
_SECOND = 1_000_000  # microseconds
_MOST_SECONDS = 9 * 10**12  # more seconds could be more than 2**63 microseconds


class Moments:
    """The timestamps of one stripe, column by column, in the order in which they are stored.

    The constructor reads the fractions of all timestamps. It raises FormatError if the stripe is
    damaged, or its time zone is unknown.

    Args:
        read_at: Returns the file's bytes between two positions.
        stripe: The stripe.
        compression: The file's compression.
        columns: The numbers of the timestamp columns.

    Attributes:
        is_cut: Whether one of the timestamps that ``take`` has returned is finer than a microsecond
            in the file.
    """

    def __init__(
        self,
        read_at: Callable[[int, int], bytes],
        stripe: Stripe,
        compression: int,
        columns: Iterable[int],
    ) -> None:
        footer = read_stripe_footer(read_at, stripe, compression)
        self._zone = zone_of(footer.zone)
        self._nanos = {column: np.zeros(0, np.int64) for column in columns}
        self._at = dict.fromkeys(self._nanos, 0)
        self.is_cut = False
        for stream in footer.streams:
            if stream.kind != SECONDARY or stream.column not in self._nanos:
                continue
            if stream.offset + stream.length > stripe.length:
                raise FormatError("a stream is longer than its stripe", offset=stripe.offset)
            begin = stripe.offset + stream.offset
            data = decompress(read_at(begin, begin + stream.length), compression)
            is_new = footer.has_new_runs[stream.column]
            read = orc_rle.decode if is_new else orc_rle.decode_old
            self._nanos[stream.column] = unpacked_nanos(read(data, signed=False))

    def take(self, column: int, seconds: pa.Int64Array) -> pa.Array:
        """Return the next timestamps of a column, one for each of ``seconds``, and move the
        column's position behind them. They are ``timestamp[us]``, rounded down, in the stripe's
        wall clock. NULL stays NULL, and takes no stored fraction. ``is_cut`` may become True.

        Args:
            column: The column's number.
            seconds: The stored seconds of these timestamps; NULL where the timestamp is NULL.

        Raises:
            FormatError: Fractions are missing, or a timestamp is too large.
        """
        count = len(seconds) - seconds.null_count
        start = self._at[column]
        self._at[column] = start + count
        nanos = self._nanos[column][start : start + count]
        if len(nanos) < count:
            raise FormatError("its timestamps are more than their fractions")
        self.is_cut |= bool(np.any(nanos % 1000))
        whole_seconds = seconds.drop_null().to_numpy()
        if np.any((whole_seconds > _MOST_SECONDS) | (whole_seconds < -_MOST_SECONDS)):
            raise FormatError("it holds a timestamp that no calendar has")
        moments = whole_seconds + self._zone.base
        moments -= (moments < 0) & (nanos > FRACTION_SEEN)
        moments += self._zone.offsets(moments)
        micros = moments * _SECOND + nanos // 1000
        if not seconds.null_count:
            return pa.array(micros).cast(pa.timestamp("us"))
        is_null = seconds.is_null().to_numpy(zero_copy_only=False)
        spread = np.zeros(len(seconds), np.int64)
        spread[~is_null] = micros
        return pa.array(spread, mask=is_null).cast(pa.timestamp("us"))


def unpacked_nanos(stored: orc_rle.Int64s) -> orc_rle.Int64s:
    """Return nanoseconds from their stored form, in which decimal zeros at the end are cut off.

    If the low three bits are n > 0, then n + 1 zeros are cut off.
    """
    zeros = stored & 7
    nanos: orc_rle.Int64s = (stored >> 3) * np.where(zeros > 0, 10 ** (zeros + 1), 1)
    return nanos
