"""ORC's compressed chunks. A header of three bytes has a chunk's length and an "original" bit.

A chunk with this bit is stored without compression.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.protobuf import varints

NO_COMPRESSION = 0
_HEADER = 3  # bytes
_SMALL = 32  # bytes; a longer chunk does not decompress to nothing
_ZSTD = b"\x28\xb5\x2f\xfd"  # a frame's first bytes
_MAX_CHUNK = (1 << 23) - 1  # a chunk's length has 23 bits


def decompress(stored: bytes, kind: int) -> bytes:
    """Decompress a sequence of chunks, and return their contents as one. Without compression there
    are no chunks, and the bytes are returned as they are.

    Args:
        stored: The chunks, one after the other.
        kind: CompressionKind: 0 none, 1 zlib, 2 snappy, 3 lzo, 4 lz4, 5 zstd.

    Raises:
        FormatError: The codec is not supported (as LZO), or a chunk is cut short or too long.
        Exception: The codec's own error for damaged bytes; see ``damage.naming_damage``.
    """
    if kind == NO_COMPRESSION:
        return stored
    parts, at = [], 0
    while at < len(stored):
        header = int.from_bytes(stored[at : at + 3], "little")
        at += 3
        chunk = stored[at : at + (header >> 1)]
        if len(chunk) < header >> 1:
            raise FormatError("a compressed part of the ORC file is cut short")
        parts.append(chunk if header & 1 else _decompress_chunk(chunk, kind))
        at += header >> 1
    return b"".join(parts)


def check_chunks(read_at: Callable[[int, int], bytes], begin: int, end: int, kind: int) -> int:
    """Check the chunks of a stream by their headers. Only chunks of up to 32 bytes are
    decompressed: a longer one does not become empty.

    Args:
        read_at: Returns the file's bytes between two positions.
        begin: The position of the stream in the file.
        end: The position behind the stream.
        kind: CompressionKind.

    Returns:
        The number of chunks; 0 without compression.

    Raises:
        FormatError: A chunk is cut short, or has no bytes, stored or decompressed. ORC's C++ reads
            behind an empty chunk's end.
        Exception: The codec's own error for a damaged chunk of up to 32 bytes.
    """
    at, count = begin if kind != NO_COMPRESSION else end, 0
    while at < end:
        count += 1
        start = read_at(at, min(at + _HEADER + _SMALL, end))
        length = int.from_bytes(start[:_HEADER], "little") >> 1
        stop = at + _HEADER + length
        if stop > end or len(start) < _HEADER:
            raise FormatError("a compressed part of the ORC file is cut short", offset=at)
        is_small = length <= _SMALL
        if not length or (is_small and not decompress(start[: stop - at], kind)):
            raise FormatError("a compressed part of the ORC file is empty", offset=at)
        at = stop
    return count


def _decompress_chunk(chunk: bytes, kind: int) -> bytes:
    """Decompress one chunk, without its header. ``kind``: CompressionKind, not 0.

    Raises FormatError for LZO and unknown kinds, and for a chunk that is cut short or becomes
    longer than a chunk can be. Other damage raises the codec's own error.
    """
    # A damaged chunk may claim any length, so every length is checked.
    if kind == 1:
        inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        inflated = _checked_bytes(inflate.decompress(chunk, _MAX_CHUNK + 1))
        if not inflate.eof:
            raise FormatError("a compressed part of the ORC file is cut short")
        return inflated
    if kind == 2:
        length = _checked_length(next(varints(chunk), 0))
        return bytes(pa.Codec("snappy").decompress(chunk, length, asbytes=True))
    if kind == 4:
        length = _checked_length(_lz4_length(chunk))
        return bytes(pa.Codec("lz4_raw").decompress(chunk, length, asbytes=True))
    if kind == 5:
        if (frame_length := _zstd_length(chunk)) is not None:
            return bytes(
                pa.Codec("zstd").decompress(chunk, _checked_length(frame_length), asbytes=True)
            )
        stream = pa.input_stream(pa.py_buffer(chunk), compression="zstd")
        return _checked_bytes(bytes(stream.read(_MAX_CHUNK + 1)))
    raise FormatError(f"ORC compression kind {kind} cannot be read", kind=kind)


def _checked_bytes(decompressed: bytes) -> bytes:
    """Return these bytes. Raises FormatError if they are more than a chunk can have (8 MiB − 1)."""
    _checked_length(len(decompressed))
    return decompressed


def _checked_length(length: int) -> int:
    """Return this length. Raises FormatError if it is greater than that of any chunk."""
    if length > _MAX_CHUNK:
        raise FormatError(f"a compressed part of the ORC file is longer than {_MAX_CHUNK} bytes")
    return length


def _zstd_length(chunk: bytes) -> int | None:
    """Return the decompressed length of a zstd frame; None if its header does not tell, or the
    bytes are no such frame. Source: RFC 8878, section 3.1.1.1.
    """
    if len(chunk) < 5 or chunk[:4] != _ZSTD:
        return None
    flags = chunk[4]
    size, is_single = flags >> 6, bool(flags & 0x20)  # "single segment": no window descriptor
    if not size and not is_single:
        return None
    at = 5 + (not is_single) + (0, 1, 2, 4)[flags & 3]  # the window, the dictionary's number
    length = int.from_bytes(chunk[at : at + (1 << size)], "little")
    return length + 256 if size == 1 else length


def _lz4_length(chunk: bytes) -> int:
    """Count the decompressed bytes of an LZ4 block, because the format does not store the
    length.
    """
    at, total = 0, 0
    while at < len(chunk):
        token = chunk[at]
        literals, at = _lz4_count(token >> 4, chunk, at + 1)
        at += literals + 2  # the two bytes after the literals are the match's offset
        total += literals
        if at < len(chunk):  # the last sequence has no match
            match, at = _lz4_count(token & 15, chunk, at)
            total += match + 4
    return total


def _lz4_count(nibble: int, chunk: bytes, at: int) -> tuple[int, int]:
    """Read a count of LZ4, and return the count and the position after it.

    ``nibble``: the count's first four bits. If they are 15, bytes from ``at`` on are added to it,
    up to the first byte that is not 255.
    """
    if nibble < 15:
        return nibble, at
    while at < len(chunk) and chunk[at] == 255:
        nibble, at = nibble + 255, at + 1
    return nibble + (chunk[at] if at < len(chunk) else 0), at + 1


def compress(message: bytes, kind: int, block_size: int) -> bytes:
    """Compress bytes into a sequence of chunks, with their headers. A chunk that does not become
    smaller is stored as it is. Without compression the bytes are returned as they are.

    Args:
        message: The bytes.
        kind: CompressionKind.
        block_size: The maximum size of a chunk before compression, from the postscript.
    """
    if kind == NO_COMPRESSION:
        return message
    parts = []
    for at in range(0, len(message), min(block_size, _MAX_CHUNK)):
        block = message[at : at + min(block_size, _MAX_CHUNK)]
        packed = _compress_block(block, kind)
        original = len(packed) >= len(block)
        chunk = block if original else packed
        parts.append((len(chunk) << 1 | original).to_bytes(3, "little") + chunk)
    return b"".join(parts)


def _compress_block(block: bytes, kind: int) -> bytes:
    """Compress one block, without a header. ``kind``: 1 zlib, 2 snappy, 4 lz4, 5 zstd; KeyError for
    others.
    """
    if kind == 1:
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return deflate.compress(block) + deflate.flush()
    codec = {2: "snappy", 4: "lz4_raw", 5: "zstd"}[kind]
    return bytes(pa.Codec(codec).compress(block, asbytes=True))
