"""Writing any ORC file so that Hive understands it: pyarrow's writer, its footer completed.

pyarrow cannot set user metadata, a calendar, or the types CHAR and VARCHAR, and stores some
timestamps so that Java cannot read them. What it writes last is therefore kept back and put right
(``orc_footer``, ``orc_timestamps``) before it goes to the file. ``EventFileWriter`` and
``PlainFileWriter`` say what the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.orc as orc

from acidsql.acid.types import HiveType
from acidsql.storage import orc_footer, orc_timestamps
from acidsql.storage.holding_sink import HoldingSink
from acidsql.storage.orc_options import DEFAULT, OrcOptions

BATCH_ROWS = 65_536  # the writer is slow on small batches
_LONGEST_STRIDE = 2**31 - 1  # rows


@dataclass(frozen=True, slots=True)
class FileStats:
    """What was written into one file.

    Attributes:
        inserts: Insert events, or plain rows.
        deletes: Delete events.
        bytes: The file's length.
        stripes: Its stripes.
    """

    inserts: int
    deletes: int
    bytes: int
    stripes: int

    @property
    def rows(self) -> int:
        """Events of both kinds."""
        return self.inserts + self.deletes


class OrcWriter:
    """Writes one ORC file.

    Args:
        file: What ``FileSystem.open_output`` gave; the writer closes it.
        schema: Of the tables that ``write`` gets.
        root: Hive's type of the same, for what Arrow has no types for.
        options: What the table's ``orc.…`` properties say.
        bloom_filters: Numbers of the columns that get one.
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
        # What leaves the indexes out is what mends timestamps, so it is asked to.
        self._mending = not options.row_index_stride
        if self._mending:
            self._sink.hold()

    def write(self, table: pa.Table) -> bool:
        """Add rows; True if bytes went to the file, so that a stripe may have ended."""
        if self._has_timestamps and _needs_mending(table):
            # What is in the ORC writer's memory, and what comes, is kept back until close.
            self._mending = True
            self._sink.hold()
        self._is_empty = False
        before = self._sink.tell()
        self._orc.write(table)
        return self._sink.tell() != before

    def close(self, metadata: Callable[[tuple[int, ...]], Mapping[str, str]]) -> tuple[int, int]:
        """Complete the footer, and close (and sync) the file.

        Args:
            metadata: The user metadata, when the rows of each stripe are known.

        Returns:
            The file's bytes, its stripes.
        """
        if self._is_empty:
            self._orc.write(self._schema.empty_table())
        self._sink.hold()
        self._orc.close()
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
        """Close the file as it is; what lies there is no ORC file and must be deleted."""
        self._sink.held.close()
        self._sink.file.close()


def _needs_mending(table: pa.Table) -> bool:
    return any(
        orc_timestamps.needs_mending(chunk) for column in table.columns for chunk in column.chunks
    )
