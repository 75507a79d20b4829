"""ORC's compressed chunks come back as they were, and damaged ones are errors."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.compression import compress, decompress

ZSTD = 5
KINDS = {"none": 0, "zlib": 1, "snappy": 2, "lz4": 4, "zstd": ZSTD}
# Around the lengths at which a zstd frame's header gets another form.
LENGTHS = (1, 255, 256, 257, 65_791, 65_792, 300_000)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_of_every_kind_come_back(kind, length):
    message = (b"abc" * length)[:length]
    for block in (1 << 18, 100):
        stored = compress(message, KINDS[kind], block)
        assert decompress(stored, KINDS[kind]) == message


def chunk(frame: bytes) -> bytes:
    return (len(frame) << 1).to_bytes(3, "little") + frame


@pytest.mark.parametrize("length", LENGTHS)
def test_a_zstd_frame_need_not_tell_its_length(length):
    message = (b"abc" * length)[:length]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(message)
    assert decompress(chunk(sink.getvalue().to_pybytes()), ZSTD) == message


@given(st.data())
def test_a_damaged_zstd_frame_is_an_error_or_has_other_bytes_but_never_too_many(data):
    frame = bytearray(pa.Codec("zstd").compress(b"some text " * 30, asbytes=True))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decompress(chunk(bytes(frame[: data.draw(st.integers(0, len(frame)))])), ZSTD)
    except (FormatError, OSError, pa.ArrowException):
        return
    assert len(found) < 1 << 23


def test_a_zstd_frame_that_claims_to_be_huge_takes_no_memory():
    frame = b"\x28\xb5\x2f\xfd" + bytes([0xE0]) + (1 << 40).to_bytes(8, "little")
    with pytest.raises(FormatError, match="longer than"):
        decompress(chunk(frame), ZSTD)
