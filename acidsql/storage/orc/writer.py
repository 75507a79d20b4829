"""Write ORC files that Hive understands: pyarrow's writer, with a completed footer.

pyarrow cannot set user metadata, a calendar, or the types CHAR and VARCHAR, and it stores some
timestamps in a form that Java cannot read. So this module holds back the end of the file, and
corrects it (``footer``, ``timestamps``) before it is written. ``EventFileWriter`` and
``PlainFileWriter`` define the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.orc as orc

from acidsql.acid.values.types import HiveType
from acidsql.storage.orc import timestamps as orc_timestamps
from acidsql.storage.orc.encoding import footer as orc_footer
from acidsql.storage.orc.holding_sink import HoldingSink
from acidsql.storage.orc.options import DEFAULT, OrcOptions

BATCH_ROWS = 65_536  # the writer is slow on small batches
BATCH_BYTES = 16 * 1024 * 1024  # before encoding; a task has some files open
_LONGEST_STRIDE = 2**31 - 1  # rows


@dataclass(frozen=True, slots=True)
class FileStats:
    """The numbers of events, bytes and stripes of one file.

    Attributes:
        inserts: The number of insert events, or of plain rows.
        deletes: The number of delete events.
        bytes: The file's length.
        stripes: The number of stripes (row groups in a Parquet file).
    """

    inserts: int
    deletes: int
    bytes: int
    stripes: int

    @property
    def rows(self) -> int:
        """The number of events of both kinds."""
        return self.inserts + self.deletes


class OrcWriter:
    """Writes one ORC file. Without row indexes all bytes are held back until ``close``, which
    leaves out the indexes that pyarrow writes.

    Args:
        file: The result of ``FileSystem.open_output``; the writer closes it.
        schema: The schema of the tables that ``write`` gets.
        root: Hive's type of the same rows, because Arrow lacks some of Hive's types.
        options: The options that the table's ``orc.…`` properties set.
        bloom_filters: The numbers of the columns that get a bloom filter.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: pa.Schema,
        root: HiveType,
        options: OrcOptions = DEFAULT,
        bloom_filters: Set[int] = frozenset(),
    ) -> None:
        self._schema, self._root = schema, root
        self._sink = HoldingSink(file)
        self._orc = orc.ORCWriter(
            pa.PythonFile(self._sink, mode="w"),
            compression=options.compression.replace("none", "uncompressed"),
            compression_block_size=options.block_size,
            stripe_size=options.stripe_size,
            row_index_stride=options.row_index_stride or _LONGEST_STRIDE,
            bloom_filter_columns=set(bloom_filters),
            bloom_filter_fpp=options.bloom_filter_fpp,
        )
        self._has_timestamps = "timestamp" in str(root)
        self._is_empty = True
        # Without a stride the file must have no row indexes. mend_file leaves them out.
        self._mending = not options.row_index_stride
        if self._mending:
            self._sink.hold()

    def write(self, table: pa.Table) -> bool:
        """Add rows. Return True if pyarrow's writer has put out bytes, so that a stripe may have
        ended. From the first timestamp on that must be mended, all bytes are held back until
        ``close``.

        Raises:
            WriteError: A timestamp cannot be stored.
        """
        if self._has_timestamps and _needs_mending(table):
            # From now on, all stripes are held back until close, also the current one.
            self._mending = True
            self._sink.hold()
        self._is_empty = False
        position_before = self._sink.tell()
        self._orc.write(table)
        return self._sink.tell() != position_before

    def close(self, metadata: Callable[[tuple[int, ...]], Mapping[str, str]]) -> tuple[int, int]:
        """Write the bytes that were held back, complete the footer, and close (and sync) the file.
        Stripes that were held back are mended first. A file without rows is a valid ORC file, too.

        Args:
            metadata: Returns the user metadata; it gets the number of rows in each stripe.

        Returns:
            The file's bytes, and the number of its stripes.
        """
        if self._is_empty:
            self._orc.write(self._schema.empty_table())
        self._sink.hold()
        self._orc.close()
        del self._orc  # its buffers take a megabyte, as long as a cycle of references lives
        held, size = self._sink.held, self._sink.held_size
        message, script = orc_footer.read_tail(held, size)
        stripe_rows = orc_footer.parse_footer(message).stripe_rows
        message = orc_footer.complete_footer(message, metadata(stripe_rows), self._root)
        if self._mending:
            orc_timestamps.mend_file(self._sink, message, script)
        else:
            self._sink.pass_on(0, size - script.length - script.footer_length)
            self._sink.write_out(orc_footer.encode_tail(message, script))
        held.close()
        self._sink.file.close()
        return self._sink.written, len(stripe_rows)

    def abort(self) -> None:
        """Close the file as it is. It is no valid ORC file, so the caller must delete it. Errors
        of pyarrow's writer are ignored.
        """
        self._sink.abort()
        with suppress(Exception):  # pyarrow's writer may have failed; it must not try again later
            self._orc.close()


def _needs_mending(table: pa.Table) -> bool:
    """Whether a table has, nested too, a timestamp before 1970 with a fraction of a second. Raises
    WriteError if one cannot be stored.
    """
    return any(
        orc_timestamps.needs_mending(chunk) for column in table.columns for chunk in column.chunks
    )
