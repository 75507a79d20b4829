"""Facts about an ORC file from its footer. No rows are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from acidsql.acid import event
from acidsql.acid.values.types import HiveType
from acidsql.errors import FormatError
from acidsql.storage.files.filesystem import filesystem_for, length_of
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc import lost_days
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.encoding import footer as orc_footer

LITTER = "litter"  # the kind of files that are not data; they may have any contents


@dataclass(frozen=True, slots=True)
class FileInfo:
    """Facts from an ORC file's footer.

    Attributes:
        rows: The number of rows in the file.
        stripe_rows: The number of rows in each stripe.
        user_metadata: ``hive.acid.…`` and others; the values are bytes.
        column_names: The names of the root's fields.
        row_names: The names of the user's columns: the fields of ``row`` in an event file, else
            ``column_names``.
        row_types: The types of the user's columns, without what is inside of nested types.
        calendar: 0 not declared, 1 hybrid Julian/Gregorian, 2 proleptic Gregorian.
        is_foreign_proleptic: The calendar is proleptic, and another writer than ours wrote the
            file.
    """

    rows: int
    stripe_rows: tuple[int, ...]
    user_metadata: Mapping[str, bytes]
    column_names: tuple[str, ...]
    row_names: tuple[str, ...]
    row_types: tuple[HiveType, ...]
    calendar: int
    is_foreign_proleptic: bool = False

    @property
    def is_acid(self) -> bool:
        """True if the file has the six event columns."""
        return is_acid(self.column_names)

    @property
    def is_ours(self) -> bool:
        """True if acidsql has written the file: ORC's C++ writer alone declares no calendar."""
        return self.calendar == orc_footer.CALENDAR_PROLEPTIC and not self.is_foreign_proleptic


def is_acid(names: Iterable[str]) -> bool:
    """Whether these are the six event columns, in order, in upper or lower case (so ORC core
    compares them).
    """
    event_columns = [name.lower() for name in event.EVENT_COLUMNS]
    return [name.lower() for name in names] == event_columns


def read_file_info(path: str, length: int | None = None) -> FileInfo:
    """Return the facts in a file's footer. An empty file counts as a file without rows and columns.

    Args:
        path: The file's path.
        length: The committed length in bytes, if it is not the whole file (``_flush_length``).

    Raises:
        FormatError: The file is not ORC, or is damaged.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        return info_of(file, length_of(file) if length is None else length)


def info_of(file: BinaryIO, length: int) -> FileInfo:
    """Return facts from the footer of an open file; for 0 bytes, those of a file without rows and
    columns.

    ``length``: the file's length in bytes. Raises FormatError.
    """
    if length == 0:  # ORC itself reads an empty file as a file without rows
        return FileInfo(0, (), {}, (), (), (), 0)
    return footer_facts(orc_footer.read_footer(file, length))


def footer_facts(footer: orc_footer.Footer) -> FileInfo:
    """Return facts from a footer that was read already. If the root has six columns, of which the
    last is ``row``, the user's columns are the fields of ``row``.
    """
    root = row = footer.types[0]
    names = root.names
    if len(names) == len(event.EVENT_COLUMNS) and names[-1].lower() == event.ROW:
        row = footer.types[root.children[-1]]
    columns = (footer.types[number] for number in row.children)
    types = tuple(HiveType(column.kind, column.parameters) for column in columns)
    return FileInfo(
        footer.rows, footer.stripe_rows, footer.user_metadata, names, row.names, types,
        footer.calendar, lost_days.is_foreign_proleptic(footer),
    )  # fmt: skip


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the footers of files, in a Spark task, and fill in their numbers of rows and their
    problems.

    Args:
        batches: The columns are ``path``; ``rows``: the file's committed length, if it is not the
            whole file; ``file``: null for a directory without files; ``kind``; ``problem``. Other
            columns are passed on.

    Yields:
        The batches with the number of rows of each ORC or Parquet file in ``rows``, and with
        ``problem`` filled in where it was null. The number of rows is null for a directory without
        files, for a file that is gone or cannot be read, and for one whose problem was known
        before: that one is not opened.
    """
    input_columns = ("file", "path", "rows", "kind", "problem")
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in input_columns)
        row_counts = run_in_threads(
            lambda row: row_count_and_problem(*row), zip(*columns, strict=True)
        )
        rows = pa.array((rows for rows, _ in row_counts), pa.int64())
        problems = pa.array((problem for _, problem in row_counts), pa.string())
        for name, column in (("rows", rows), ("problem", problems)):
            batch = batch.set_column(batch.schema.get_field_index(name), name, column)
        yield batch


def row_count_and_problem(
    file: str | None, path: str, length: int | None, kind: str, problem: str | None
) -> tuple[int | None, str | None]:
    """Return the number of rows of an ORC or Parquet file, and the problem with the file; one or
    both are None. A file in neither format has ORC's problem, a damaged Parquet file has Parquet's.

    Args:
        file: The file's name; None for a directory without files.
        path: Its path.
        length: Its committed bytes; None for the whole file.
        kind: The kind of ``FoundFile``. Litter has no problem if it is damaged or of another
            format.
        problem: A problem that is known already: then the file is not opened.
    """
    if file is None or problem is not None:
        return None, problem
    try:
        return read_file_info(path, length).rows, None
    except FormatError as error:
        rows, fault = _rows_of_parquet(path)
        problem = None if fault is None else fault or error.message
        return rows, None if kind == LITTER else problem
    except OSError as error:
        return None, str(error)


def is_our_file(path: str, length: int | None) -> bool:
    """Whether acidsql has written a file, by its footer; False if the footer cannot be read.

    ``length``: the committed bytes; None for the whole file.
    """
    try:
        return read_file_info(path, length).is_ours
    except (FormatError, OSError):
        return False


def _rows_of_parquet(path: str) -> tuple[int | None, str | None]:
    """Return the number of rows of a Parquet file, or None, and what is wrong with the file: None
    if nothing is, "" if the file does not begin as a Parquet file does.
    """
    from acidsql.storage.tables.parquet import (  # see plain_file.insert_writer
        MAGIC,
        rows_of_parquet,
    )

    try:
        return rows_of_parquet(path), None
    except FormatError as error:
        with filesystem_for(path).open_input(path) as file:
            return None, error.message if file.read(len(MAGIC)) == MAGIC else ""
