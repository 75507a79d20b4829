"""What an ORC file says about itself: a look into its footer, without reading rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from acidsql.acid import event
from acidsql.errors import FormatError
from acidsql.storage import orc_footer
from acidsql.storage.damage import naming_damage
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.parallel import in_threads

LITTER = "litter"  # the kind of what is no data, and may be anything


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What an ORC file's footer says.

    Attributes:
        rows: Rows in it.
        stripe_rows: Rows of each stripe.
        user_metadata: ``hive.acid.…`` and others; the values are bytes.
        column_names: The names of the root's fields.
        row_names: The user's columns: in ``row`` of an event file, else the same as above.
        calendar: 0 not said, 1 hybrid Julian/Gregorian, 2 proleptic Gregorian.
    """

    rows: int
    stripe_rows: tuple[int, ...]
    user_metadata: Mapping[str, bytes]
    column_names: tuple[str, ...]
    row_names: tuple[str, ...]
    calendar: int

    @property
    def is_acid(self) -> bool:
        """True if it has the six event columns."""
        return is_acid(self.column_names)


def is_acid(names: Iterable[str]) -> bool:
    """Whether these are the six event columns (ORC core compares them in any case)."""
    wanted = [name.lower() for name in event.EVENT_COLUMNS]
    return [name.lower() for name in names] == wanted


def read_file_info(path: str, length: int | None = None) -> FileInfo:
    """Read a file's footer.

    Args:
        path: Of the file.
        length: Where it ends, in bytes, if not at its size (``_flush_length``).

    Raises:
        FormatError: It is no ORC file, or damaged.
    """
    files = filesystem_for(path)
    with naming_damage(path), files.open_input(path) as file:
        return info_of(file, files.size(path) if length is None else length)


def read_user_metadata(path: str, length: int | None = None) -> Mapping[str, bytes]:
    """The user metadata of a file's footer."""
    return read_file_info(path, length).user_metadata


def read_stripe_rows(path: str, length: int | None = None) -> tuple[int, ...]:
    """Rows of each stripe of a file."""
    return read_file_info(path, length).stripe_rows


def info_of(file: BinaryIO, length: int) -> FileInfo:
    """The same, of an open file of a known length in bytes."""
    if length == 0:  # what ORC itself reads as a file without rows
        return FileInfo(0, (), {}, (), (), 0)
    footer = orc_footer.read_footer(file, length)
    root = footer.types[0]
    names = row_names = root.names
    if len(names) == len(event.EVENT_COLUMNS) and names[-1].lower() == event.ROW:
        row_names = footer.types[root.children[-1]].names
    return FileInfo(
        footer.rows, footer.stripe_rows, footer.user_metadata, names, row_names, footer.calendar
    )


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fill in how many rows files have, and what is wrong with them, in a Spark task.

    Args:
        batches: ``path`` of each file; ``rows``: in how many bytes it ends, if not at its size;
            ``file`` is null where there is none; ``kind``. Other columns are passed on.

    Yields:
        The same with ``rows``, and with ``problem`` where that is null. Rows are null of what is
        no ORC file, or gone meanwhile.
    """
    asked = ("file", "path", "rows", "kind", "problem")
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in asked)
        looked = in_threads(lambda one: _rows_of(*one), zip(*columns, strict=True))
        rows = pa.array((rows for rows, _ in looked), pa.int64())
        problems = pa.array((problem for _, problem in looked), pa.string())
        for name, column in (("rows", rows), ("problem", problems)):
            batch = batch.set_column(batch.schema.get_field_index(name), name, column)
        yield batch


def _rows_of(
    file: str | None, path: str, length: int | None, kind: str, problem: str | None
) -> tuple[int | None, str | None]:
    """Its rows, and what is wrong with it."""
    if file is None or problem is not None:
        return None, problem
    try:
        return read_file_info(path, length).rows, None
    except FormatError as error:
        rows = _rows_of_parquet(path)
        return rows, error.message if rows is None and kind != LITTER else None
    except OSError as error:
        return None, str(error)


def _rows_of_parquet(path: str) -> int | None:
    from acidsql.storage.parquet_file import rows_of_parquet  # see plain_file.insert_writer

    try:
        return rows_of_parquet(path)
    except (FormatError, OSError):
        return None
