"""Reads the rows of any ORC file in batches of bounded size.

Arrow's ``ORCFile`` reads whole stripes, and a stripe of repetitive texts may be larger than Arrow's
arrays of texts can be. Arrow's dataset reads a stripe in batches. The dataset gets the file with a
changed footer. In this footer columns are named by position, because the dataset cannot tell equal
names apart. And timestamps are BIGINTs, because ORC stores their seconds like a BIGINT; ``moments``
makes timestamps of these. This module runs in workers.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any, BinaryIO, cast

import pyarrow as pa

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding import footer as orc_footer
from acidsql.storage.orc.encoding.footer import Footer
from acidsql.storage.orc.encoding.moments import Moments
from acidsql.storage.orc.encoding.protobuf import (
    Field,
    as_bytes,
    as_int,
    decode_fields,
    encode_fields,
)
from acidsql.storage.orc.encoding.stripe import StripeFooter, read_stripe_footer
from acidsql.storage.orc.row_schema import exact_children, nested_array
from acidsql.storage.orc.soundness import check_stripes
from acidsql.storage.orc.writer import BATCH_BYTES, BATCH_ROWS

# Bytes. A file up to this size is read at once: ORC reads many small pieces, and each would be a
# call back into Python.
READ_WHOLE = 1 << 20
# Of Arrow's file systems (HDFS, object stores), each piece would be a request. So larger files are
# read there in blocks, of which the last used ones are kept: a column or two for each.
_BLOCK, _BLOCKS_KEPT = 512 * 1024, 16
_VALUE_BYTES, _TEXT_BYTES = 8, 1024  # estimates for a value, and for a text without statistics
_TYPES, _STATISTICS = 4, 7  # fields of Footer
_TEXTS = ("string", "varchar", "char", "binary")


class OrcBatches:
    """The rows of an open file, in batches. Iterate over the object once. The constructor reads the
    file's tail, and a file of up to 1 MiB as a whole.

    Args:
        file: The file, with random access. It must stay open. Other threads read it, too.
        length: The file's length in bytes.

    Attributes:
        footer: The file's footer.
        is_cut: Whether one of the timestamps yielded so far is finer than a microsecond in the
            file; its value is rounded down.

    Raises:
        FormatError: The file is not an ORC file, is damaged, or its rows are no structs.
    """

    def __init__(self, file: BinaryIO, length: int) -> None:
        self.footer, message, self._script = orc_footer.read_checked_footer(file, length)
        self.is_cut = False
        if self.footer.types[0].kind != "struct":
            raise FormatError("the ORC file has no columns")
        self._moments = {i for i, n in enumerate(self.footer.types) if n.kind == "timestamp"}
        self._above = _containing_types(self.footer, self._moments)
        self._rows = _batch_rows(message, self.footer)
        tail = orc_footer.encode_tail(_footer_for_arrow(message, self.footer), self._script)
        self._head = FileHead(file, length - self._script.length - self._script.footer_length, tail)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Check all stripes, then yield the rows in batches, in the file's order; no empty batch.

        The batches have the file's column names, and timestamps in microseconds without a zone.
        When the iteration ends, nothing reads the file any more, and it may be closed. A damaged
        file raises FormatError, or an error of a decoder's, see ``damage.naming_damage``.
        """
        stripes, rows_left = (stripe for stripe in self.footer.stripes if stripe.rows), 0
        moments: Moments | None = None
        check_stripes(self._head.read_at, self.footer, self._script)
        try:
            for batch in self._unfinished_batches():
                if not batch.num_rows:
                    continue
                if not rows_left:
                    stripe = next(stripes)
                    rows_left = stripe.rows
                    if self._moments:
                        read_at, kind = self._head.read_at, self._script.compression
                        moments = Moments(read_at, stripe, kind, self._moments)
                rows_left -= batch.num_rows
                if rows_left < 0:
                    raise FormatError("a stripe has another number of rows than the footer says")
                yield self._finish_batch(batch, moments)
        finally:
            self._head.close()

    def stripe_footers(self) -> Iterator[StripeFooter]:
        """Read and yield the footer of each stripe. Call this before the iteration ends."""
        for stripe in self.footer.stripes:
            yield read_stripe_footer(self._head.read_at, stripe, self._script.compression)

    def _unfinished_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches as Arrow's dataset reads them with the changed footer: columns are
        named by position, and timestamps are BIGINTs. A batch may be empty, and has at most as many
        rows as ``_batch_rows`` says. ``_finish_batch`` makes the user's batches of them.
        """
        # Imported here because few tasks read files in Python.
        from pyarrow import dataset

        fragment = dataset.OrcFileFormat().make_fragment(self._head.native())
        yield from fragment.to_batches(
            batch_size=self._rows, use_threads=False, batch_readahead=1, fragment_readahead=1
        )

    def _finish_batch(self, batch: pa.RecordBatch, moments: Moments | None) -> pa.RecordBatch:
        """Return a batch with the file's column names and with timestamps in the place of their
        BIGINTs.

        ``moments``: the timestamps of the batch's stripe, from which the next ones are taken; None
        if the file has none. ``is_cut`` becomes True if a timestamp is finer than a microsecond.
        """
        root = self.footer.types[0]
        columns = batch.columns
        if moments is not None:
            pairs = zip(columns, root.children, strict=True)
            columns = [
                self._restore_timestamps(column, number, moments) for column, number in pairs
            ]
            self.is_cut |= moments.is_cut
        return pa.RecordBatch.from_arrays(columns, names=list(root.names))

    def _restore_timestamps(self, array: pa.Array, number: int, moments: Moments) -> pa.Array:
        """Return a column with timestamps, nested ones too, in the place of their BIGINTs; a column
        without timestamps as it is.

        ``number``: the column's number in the file's types. The timestamps are taken from
        ``moments``, which then stands behind them.
        """
        if number in self._moments:
            return moments.take(number, array)
        if number not in self._above:
            return array
        offsets, parts = exact_children(array)
        pairs = zip(parts, self.footer.types[number].children, strict=True)
        timed_parts = [self._restore_timestamps(part, child, moments) for part, child in pairs]
        return nested_array(
            array.is_null(), offsets, timed_parts, _nested_type(array.type, timed_parts)
        )


def _nested_type(kind: pa.DataType, parts: list[pa.Array]) -> pa.DataType:
    """Return a struct, map or list type like ``kind``, whose parts have the types of these arrays.
    Only the fields of a struct keep their names.
    """
    types = [part.type for part in parts]
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(own) for f, own in zip(kind, types, strict=True)])
    return pa.map_(*types) if pa.types.is_map(kind) else pa.list_(*types)


def _containing_types(footer: Footer, columns: set[int]) -> set[int]:
    """Return the numbers of the nested types that contain one of these columns at any depth. A
    UNIONTYPE is left out, as if it had no children.
    """
    containing: set[int] = set()
    for number in reversed(range(len(footer.types))):  # children have higher numbers than parents
        node = footer.types[number]
        # No table has a UNIONTYPE, so nobody reads the contents of one.
        if node.kind != "uniontype" and not (columns | containing).isdisjoint(node.children):
            containing.add(number)
    return containing


def _footer_for_arrow(message: bytes, footer: Footer) -> bytes:
    """Return the Footer message changed for Arrow: columns are named ``c0``, ``c1`` … by position,
    fields of structs as Java reads their names, and timestamps are BIGINTs.
    """
    fields: list[Field] = []
    number = 0
    for tag, value in decode_fields(message):
        if tag == _TYPES:
            node = footer.types[number]
            # Struct fields are named as Java reads them, see ``read_name``.
            names = node.names if number else [f"c{i}" for i in range(len(node.children))]
            other_fields = [field for field in decode_fields(as_bytes(value)) if field[0] != 3]
            value = encode_fields([*other_fields, *((3, name.encode()) for name in names)])
            if node.kind == "timestamp":
                value = encode_fields([(1, orc_footer.BIGINT)])
            number += 1
        fields.append((tag, value))
    return encode_fields(fields)


def _batch_rows(message: bytes, footer: Footer) -> int:
    """Return the number of rows that have about BATCH_BYTES, by an estimate; at least 1, at most
    BATCH_ROWS. The file's statistics tell how many values a column has, of 8 bytes each, and how
    long all of its texts are (1 KiB for each if they do not tell).
    """
    columns = (as_bytes(value) for tag, value in decode_fields(message) if tag == _STATISTICS)
    size = 1
    for node, column in zip(footer.types, columns, strict=False):
        statistics = dict(decode_fields(column))
        values = as_int(statistics.get(1))
        size += values * _VALUE_BYTES
        if node.kind in _TEXTS:
            text_statistics = dict(
                decode_fields(as_bytes(statistics.get(8 if node.kind == "binary" else 4)))
            )
            total = text_statistics.get(1 if node.kind == "binary" else 3)
            # The sum of lengths is a signed number: its lowest bit is the sign.
            size += values * _TEXT_BYTES if total is None else as_int(total) >> 1
    return max(1, min(BATCH_ROWS, footer.rows * BATCH_BYTES // size))


class FileHead:
    """The first bytes of a file, followed by other bytes. Threads may share a FileHead.

    If the file's part has up to 1 MiB, the constructor reads it into memory.

    Args:
        file: The file, with random access.
        length: The number of bytes to take from the file.
        tail: The bytes that follow.
    """

    def __init__(self, file: BinaryIO, length: int, tail: bytes = b"") -> None:
        self._file, self._length, self._tail = file, length, tail
        self._lock, self._is_closed = Lock(), False
        self._blocks, self._blocks_lock = OrderedDict[int, bytes](), Lock()
        self._in_blocks = isinstance(file, pa.NativeFile)
        self._data = self._read(0, length) + tail if length <= READ_WHOLE else None

    @property
    def size(self) -> int:
        """The number of all bytes."""
        return self._length + len(self._tail)

    def native(self) -> pa.NativeFile:
        """Return these bytes as a file of Arrow's, with a position of its own."""
        if self._data is not None:
            return pa.BufferReader(self._data)
        return pa.PythonFile(cast(Any, _HeadReader(self)), mode="r")

    def read_at(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``; fewer at the end of all bytes. Of one of
        Arrow's files, short pieces are read in blocks of 512 KiB, of which 16 are kept.

        Raises:
            FormatError: The file is shorter than it should be.
            ValueError: ``close`` was called, and the bytes are not in memory.
        """
        if self._data is not None:
            return self._data[start:end]
        read = self._from_blocks if self._in_blocks and end - start < _BLOCK else self._read
        head_bytes = read(start, min(end, self._length)) if start < self._length else b""
        return head_bytes + self._tail[max(0, start - self._length) : max(0, end - self._length)]

    def close(self) -> None:
        """Refuse all later reads, because the file is going to be closed."""
        with self._lock:
            self._is_closed = True

    def _from_blocks(self, start: int, end: int) -> bytes:
        """Return the file's bytes from ``start`` to ``end``, cut out of whole blocks: kept ones,
        and those that are read now.
        """
        first = start // _BLOCK
        with self._blocks_lock:
            data = b"".join(self._block(number) for number in range(first, -(-end // _BLOCK)))
        return data[start - first * _BLOCK : end - first * _BLOCK]

    def _block(self, number: int) -> bytes:
        """Return a block of the file by its number, and keep it. If more than 16 would be kept, the
        one that was used longest ago goes.
        """
        if number not in self._blocks:
            start = number * _BLOCK
            self._blocks[number] = self._read(start, min(start + _BLOCK, self._length))
            if len(self._blocks) > _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]

    def _read(self, start: int, end: int) -> bytes:
        """Read bytes of the file, one thread at a time. Raises FormatError if the file is too
        short, and ValueError after ``close``.
        """
        with self._lock:
            if self._is_closed:
                raise ValueError("the file is closed")
            self._file.seek(start)
            data = self._file.read(end - start)
        if len(data) < end - start:
            raise FormatError("the ORC file ends before the length that was committed")
        return data


class _HeadReader(io.RawIOBase):
    """A FileHead as a file with a position of its own."""

    def __init__(self, head: FileHead) -> None:
        self._head, self._at = head, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._head.size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return up to ``size`` bytes from the position on, and move the position behind them. For
        a ``size`` of None or below 0, return all.
        """
        bytes_left = max(0, self._head.size - self._at)
        size_now = bytes_left if size is None or size < 0 else min(size, bytes_left)
        data = self._head.read_at(self._at, self._at + size_now)
        self._at += len(data)
        return data
