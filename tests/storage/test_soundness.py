"""Damage with which ORC's C++ reader would crash or run on for ever is found before it reads."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from acidsql.errors import FormatError
from acidsql.storage.orc import soundness
from acidsql.storage.orc.encoding import rle
from acidsql.storage.orc.encoding.footer import read_checked_footer
from acidsql.storage.orc.encoding.run_bounds import are_within, is_sum_within
from acidsql.storage.orc.encoding.stripe import LENGTH, SECONDARY, read_stripe_footer
from acidsql.storage.reading.events import orc_reader

ROWS = 300
COMPRESSED = ("zlib", "snappy", "lz4", "zstd")


def a_file(codec):
    arrays = {
        "i": pa.array([n % 7 for n in range(ROWS)], pa.int32()),
        "a": pa.array([[None] * (n % 5) for n in range(ROWS)], pa.list_(pa.int32())),
        "m": pa.array([{n: n} for n in range(ROWS)], pa.map_(pa.int32(), pa.int32())),
        "n": pa.array([Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(20, 2)),
        "t": pa.array(["x" * (n * 7919 % 50) for n in range(ROWS)]),
        "b": pa.array([b"x" * (n * 7919 % 50) for n in range(ROWS)]),
    }
    sink = BytesIO()
    orc.write_table(pa.table(arrays), sink, compression=codec)
    return sink.getvalue()


def places(data, kind, column):
    """The position and the length of a stream, and of the stripe's footer, in the file."""
    footer, _, script = read_checked_footer(BytesIO(data), len(data))
    (stripe,) = footer.stripes
    number = footer.types[0].children["iamntb".index(column)]
    streams = read_stripe_footer(lambda a, b: data[a:b], stripe, script.compression).streams
    found = next(one for one in streams if (one.kind, one.column) == (kind, number))
    return stripe.offset + found.offset, found.length


def replaced(data, kind, column, runs):
    """The file, with other bytes at the beginning of a stream."""
    at, length = places(data, kind, column)
    assert len(runs) <= length
    return data[:at] + runs + data[at + len(runs) :]


def refused(tmp_path, data):
    """The message of the one error with which a damaged file is refused."""
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        list(orc_reader.read_batches(str(path)))
    assert caught.value.parameters["path"] == str(path)
    assert "offset" in caught.value.parameters
    return caught.value.message


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("column", "iamn")
def test_zeros_where_a_chunk_should_be(tmp_path, codec, column):
    data = a_file(codec)
    kind = LENGTH if column in "am" else 1
    message = refused(tmp_path, replaced(data, kind, column, bytes(6)))
    assert "a compressed part of the ORC file is empty" in message


NOTHING = {
    "zlib": b"\x03\x00", "snappy": b"\x00", "lz4": b"\x00",
    "zstd": bytes(pa.Codec("zstd").compress(b"", asbytes=True)),
}  # fmt: skip


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_chunk_that_decompresses_to_nothing(tmp_path, codec):
    chunk = (len(NOTHING[codec]) << 1).to_bytes(3, "little") + NOTHING[codec]
    data = a_file(codec)
    message = refused(tmp_path, replaced(data, 1, "n", chunk))
    assert "a compressed part of the ORC file is empty" in message


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_chunk_that_is_longer_than_its_stream(tmp_path, codec):
    message = refused(tmp_path, replaced(a_file(codec), 1, "n", b"\xff\xff\x00"))
    assert "a compressed part of the ORC file is cut short" in message


# Runs of 256 equal steps: from 5 down to -250, and of 2**40.
FALLING, HUGE = b"\xc0\xff\x05\x01", b"\xc0\xff\x80\x80\x80\x80\x80\x20\x00"
LONG = b"\xc0\xff\x80\x08\x00"  # of 1024: each is possible, all together are not


@pytest.mark.parametrize(
    ("kind", "column", "runs", "what"),
    [
        (LENGTH, "a", FALLING, "lengths"),
        (LENGTH, "a", HUGE, "lengths"),
        (LENGTH, "m", FALLING, "lengths"),
        *[(LENGTH, column, runs, "lengths") for column in "tb" for runs in (FALLING, HUGE, LONG)],
        (SECONDARY, "n", b"\xc1\x2b\x01\x00", "scales"),  # -1
        (SECONDARY, "n", b"\xc1\x2b\x4e\x00", "scales"),  # 39
    ],
)
def test_integers_that_cannot_be(tmp_path, kind, column, runs, what):
    data = a_file("uncompressed")
    assert f"impossible {what}" in refused(tmp_path, replaced(data, kind, column, runs))


def test_texts_of_a_dictionary_are_no_longer_than_the_dictionary(tmp_path):
    texts = pa.table({"i": ["x" * length for length in range(1, 9)] * 50})
    sink = BytesIO()
    orc.write_table(texts, sink, compression="uncompressed", dictionary_key_size_threshold=1.0)
    data = sink.getvalue()
    at, length = places(data, LENGTH, "i")
    path = tmp_path / "file"
    path.write_bytes(data)
    ((batch, _),) = orc_reader.read_batches(str(path))
    assert batch.to_pydict() == texts.to_pydict()
    assert rle.decode(data[at : at + length], signed=False).tolist() == list(range(1, 9))
    message = refused(tmp_path, replaced(data, LENGTH, "i", b"\xc0\x07\x7f\x00"))  # 8 times 127
    assert "impossible lengths" in message


@pytest.mark.parametrize("column", ["t", "b"])
def test_a_text_of_a_large_stripe_is_no_longer_than_its_column(tmp_path, monkeypatch, column):
    monkeypatch.setattr(soundness, "_SMALL", 0)
    data = a_file("uncompressed")
    path = tmp_path / "file"
    path.write_bytes(data)
    assert list(orc_reader.read_batches(str(path)))
    repeated = b"\x0f\xff\xff" * 20  # ten times 65,535, in three bytes
    for runs in (HUGE, FALLING, LONG, repeated):
        assert "impossible lengths" in refused(tmp_path, replaced(data, LENGTH, column, runs))


def test_a_stripe_without_all_columns(tmp_path, monkeypatch):
    data = a_file("uncompressed")
    footer, _, script = read_checked_footer(BytesIO(data), len(data))
    found = read_stripe_footer(lambda a, b: data[a:b], footer.stripes[0], script.compression)
    short = type(found)(found.streams, found.has_new_runs[:-1], found.zone)
    monkeypatch.setattr(soundness, "read_stripe_footer", lambda *_: short)
    assert "a stripe has not all columns" in refused(tmp_path, data)


NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 1 << 16), st.integers(-(1 << 62), 1 << 62))
REPEATED = st.lists(st.tuples(NUMBERS, st.integers(1, 600)), min_size=1, max_size=6)


@given(REPEATED, st.sampled_from([2, 38, (1 << 31) - 1]), st.booleans())
def test_integers_are_tested_as_if_they_were_decoded(pairs, most, signed):
    values = np.repeat([value for value, _ in pairs], [count for _, count in pairs])
    data = rle.encode(values.astype(np.int64), signed)
    expected = bool(values.min() >= 0 and values.max() <= most)
    assert are_within(data, most, signed=signed, is_new=True) == expected


@given(REPEATED, st.integers(0, 1 << 40), st.booleans())
def test_a_sum_is_tested_as_if_all_were_decoded(pairs, most, is_new):
    values = [value for value, count in pairs for _ in range(count)]
    if is_new:
        data = rle.encode(np.array(values, np.int64), False)
    else:
        data = b"".join(literal(value) for value in values)
    expected = min(values) >= 0 and sum(values) <= most
    assert is_sum_within(data, most, is_new=is_new, exactly=True) == expected
    # Plain runs do not count, and have no value of 256 or more.
    large = [value for value in values if not 0 <= value < 256]
    roughly = is_sum_within(data, most, is_new=is_new, exactly=False)
    assert roughly if expected else roughly <= (min(values) >= 0 and sum(large) <= most)


def literal(value):
    """A run of one literal of run-length encoding version 1."""
    number, out = value % (1 << 64), b"\xff"
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20)), min_size=1, max_size=200))
def test_lengths_that_a_real_writer_wrote(pairs):
    lengths = [length for length, count in pairs for _ in range(count)]
    lists = pa.array([[None] * length for length in lengths], pa.list_(pa.int32()))
    sink = BytesIO()
    orc.write_table(pa.table({"i": lists}), sink, compression="uncompressed")
    data = sink.getvalue()
    at, length = places(data, LENGTH, "i")
    stored = data[at : at + length]
    assert rle.decode(stored, signed=False).tolist() == lengths
    assert are_within(stored, (1 << 31) - 1, signed=False, is_new=True)
    assert are_within(stored, max(lengths), signed=False, is_new=True)
    if max(lengths):
        assert not are_within(stored, max(lengths) - 1, signed=False, is_new=True)
