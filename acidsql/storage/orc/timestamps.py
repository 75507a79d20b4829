"""Store timestamps before 1970 with a fraction of a second in a form that Java can read.

ORC stores a timestamp as seconds and nanoseconds. Arrow's writer divides towards zero, so it stores
-1.5 s as -1 s and *minus* 500,000,000 ns. Hive and Spark fail on such a file ("nanos > 999999999 or
< 0"). They expect -1 s and plus 500,000,000 ns: their readers subtract a second if the seconds are
negative and the fraction is 1 ms or more (ORC-763). So this module encodes the streams of such
stripes anew before they are written to the disk. Such files are rare. They get neither row indexes
nor statistics of timestamps.

This encoding has no value for one second: 1969-12-31 23:59:59.001 … .999999.

Source: ORC ``TreeReaderFactory.TimestampTreeReader``; Arrow ``adapters/orc/util.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acidsql.errors import WriteError
from acidsql.storage.orc.encoding import footer as orc_footer
from acidsql.storage.orc.encoding import rle as orc_rle
from acidsql.storage.orc.encoding.compression import compress, decompress
from acidsql.storage.orc.encoding.footer import PostScript
from acidsql.storage.orc.encoding.moments import FRACTION_SEEN, unpacked_nanos
from acidsql.storage.orc.encoding.protobuf import Field, as_bytes, decode_fields, encode_fields
from acidsql.storage.orc.encoding.stripe import DATA, ROW_INDEX, SECONDARY, Stripe, StripeFooter
from acidsql.storage.orc.holding_sink import HoldingSink

_SECOND = 1_000_000  # microseconds
_NANOS = 1_000_000_000
_TIMESTAMP_STATISTICS = 9  # field of ColumnStatistics
_CONTENT_LENGTH, _STRIPES, _STATISTICS, _ROW_INDEX_STRIDE = 2, 3, 7, 8  # fields of Footer


def needs_mending(array: pa.Array) -> bool:
    """Whether an array has, nested too, a timestamp before 1970 with a fraction of a second.

    Raises:
        WriteError: A timestamp cannot be stored: it is in the last second before 1970, from .001
            to .999999.
    """
    if pa.types.is_timestamp(array.type):
        micros = array.drop_null().cast(pa.int64()).to_numpy()
        if np.any((micros < 0) & (micros >= -_SECOND + 1000)):
            raise WriteError(
                "ORC as Hive and Spark read it has no timestamps from 1969-12-31 23:59:59.001 to "
                "23:59:59.999999: they would come back one second later"
            )
        return bool(np.any((micros < 0) & (micros % _SECOND != 0)))
    if not pa.types.is_nested(array.type):
        return False
    return any(needs_mending(part) for part in _flat_children(array))


def _flat_children(array: pa.Array) -> Sequence[pa.Array]:
    """Return the child arrays of a struct, list or map, without values below a null or outside a
    slice.
    """
    if isinstance(array, pa.StructArray):
        return list(array.flatten())
    if not isinstance(array, pa.MapArray):
        return [array.flatten()]
    first, last = (array.offsets[at].as_py() for at in (0, len(array)))
    return [part.slice(first, last - first) for part in (array.keys, array.items)]


def mend_file(sink: HoldingSink, message: bytes, script: PostScript) -> None:
    """Write the bytes that a sink has held back, and the file's tail, into the sink's file. In
    the held stripes, timestamps before 1970 are encoded anew in Java's form, and row indexes are
    left out. The footer gets their new places, and 0 as the stride of row indexes; all statistics
    of timestamps are left out of the tail.

    Args:
        sink: Holds whole stripes, the Metadata section and the tail.
        message: The Footer message, complete except for the fields that change here.
        script: The postscript that pyarrow wrote.
    """
    start = sink.written  # the position in the file of the first held byte
    footer = orc_footer.parse_footer(message)
    columns = frozenset(i for i, node in enumerate(footer.types) if node.kind == "timestamp")
    fields: list[Field] = []
    end = column = 0
    for number, value in decode_fields(message):
        if number == _STRIPES:
            stripe = Stripe.parse(as_bytes(value))
            end = stripe.offset + stripe.length
            if stripe.offset >= start:
                data = sink.read_held(stripe.offset - start, stripe.length)
                mended, stripe = mend_stripe(data, stripe, columns, script)
                stripe = stripe._replace(offset=sink.written)
                sink.write_out(mended)
            value = stripe.encode()
        elif number == _STATISTICS:
            if column in columns:
                value = strip_timestamp_statistics(as_bytes(value))
            column += 1
        fields.append((number, value))
    new: dict[int, int] = {_CONTENT_LENGTH: sink.written, _ROW_INDEX_STRIDE: 0}
    message = encode_fields([(number, new.get(number, value)) for number, value in fields])
    section = mend_metadata(sink.read_held(end - start, script.metadata_length), script)
    sink.write_out(section)
    sink.write_out(orc_footer.encode_tail(message, script, len(section)))


def mend_stripe(
    data: bytes, stripe: Stripe, columns: frozenset[int], script: PostScript
) -> tuple[bytes, Stripe]:
    """Encode the timestamps of a stripe anew, and leave out its indexes.

    Args:
        data: The stripe's bytes.
        stripe: The stripe's lengths.
        columns: The numbers of the timestamp columns.
        script: The postscript; it has the file's compression.

    Returns:
        The new bytes, and the new lengths (the offset is still the old one).
    """
    body_length = stripe.index_length + stripe.data_length
    footer = data[body_length:]
    pieces = {
        (stream.column, stream.kind): data[stream.offset : stream.offset + stream.length]
        for stream in StripeFooter.parse(footer, script.compression).streams
        if stream.kind < ROW_INDEX
    }
    for column in columns:
        if (column, SECONDARY) in pieces:
            _mend_column(pieces, column, script)
    streams: list[Field] = [
        (1, encode_fields([(1, kind), (2, column), (3, len(piece))]))
        for (column, kind), piece in pieces.items()
    ]
    other_fields = [f for f in decode_fields(decompress(footer, script.compression)) if f[0] != 1]
    body = b"".join(pieces.values())
    end = compress(encode_fields(streams + other_fields), script.compression, script.block_size)
    return body + end, stripe._replace(
        index_length=0, data_length=len(body), footer_length=len(end)
    )


def _mend_column(pieces: dict[tuple[int, int], bytes], column: int, script: PostScript) -> None:
    """Replace a column's streams of seconds and nanoseconds in ``pieces``, if they have negative
    nanoseconds, by streams in Java's form.

    ``pieces``: column and kind of a stream → its compressed bytes.
    """
    data, secondary = (column, DATA), (column, SECONDARY)

    def stored(values: orc_rle.Int64s, signed: bool) -> bytes:
        return compress(orc_rle.encode(values, signed), script.compression, script.block_size)

    seconds = orc_rle.decode(decompress(pieces[data], script.compression), signed=True)
    packed = orc_rle.decode(decompress(pieces[secondary], script.compression), signed=False)
    wrong = packed < 0
    if not wrong.any():
        return
    nanos = unpacked_nanos(packed[wrong]) + _NANOS
    seconds[wrong] -= nanos <= FRACTION_SEEN
    packed[wrong] = nanos << 3
    pieces[data] = stored(seconds, signed=True)
    pieces[secondary] = stored(packed, signed=False)


def strip_timestamp_statistics(statistics: bytes) -> bytes:
    """Return a ColumnStatistics message without the smallest and largest timestamp."""
    other_fields = [
        field for field in decode_fields(statistics) if field[0] != _TIMESTAMP_STATISTICS
    ]
    return encode_fields(other_fields)


def mend_metadata(section: bytes, script: PostScript) -> bytes:
    """Return the Metadata section (statistics of each stripe), compressed as before, without the
    statistics of timestamps.
    """
    stripes: list[Field] = []
    for number, stripe in decode_fields(decompress(section, script.compression)):
        columns = [
            (n, strip_timestamp_statistics(as_bytes(value)))
            for n, value in decode_fields(as_bytes(stripe))
        ]
        stripes.append((number, encode_fields(columns)))
    return compress(encode_fields(stripes), script.compression, script.block_size)
