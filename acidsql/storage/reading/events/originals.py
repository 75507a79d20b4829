"""Originals: files without event columns, of a converted table or of LOAD DATA.

Their rows have row ids, too. A row id is made from the file's directory, the file's name, and the
number of rows before the row.

Source: Hive ``OrcRawRecordMerger.OriginalReaderPair``,
``VectorizedOrcAcidRowBatchReader.computeOffsetAndBucket``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acidsql.acid import bucket_codec
from acidsql.acid.layout import bucket_id_of_original
from acidsql.errors import FormatError
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.row_schema import RowSchema, conform
from acidsql.storage.reading.events.orc_reader import flat_names, read_batches
from acidsql.storage.tables.file_info import read_file_info

WRITE_ID_OF_ORIGINALS = 0  # for files from before the table became transactional
_BATCH_ROWS = 65536


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """A file without event columns, and the parts of its rows' row ids.

    Attributes:
        path: The file's path.
        write_id: 0, or the write id of the directory that LOAD DATA made.
        bucket_property: The bucket property of every row.
        first_row_id: The ``rowId`` of the first row; the other rows count on from it.
        rows: The number of rows in the file.
    """

    path: str
    write_id: int
    bucket_property: int
    first_row_id: int
    rows: int


def original_files(
    paths: Iterable[str], write_id: int = WRITE_ID_OF_ORIGINALS, statement_id: int = 0
) -> list[OriginalFile]:
    """Return the original files of one directory tree, sorted by path, with the row ids of their
    rows. Files without rows are left out. Every footer is read.

    The rows of all files with one bucket id are numbered together, in the order of the files' whole
    paths (so ``_copy_10`` comes before ``_copy_2``).

    Args:
        paths: *All* files of the tree. A missing path would change the row ids of other files.
        write_id: The write id of the files' base or delta, or 0.
        statement_id: The statement id of the delta; 0 if it has none.

    Raises:
        FormatError: A name does not begin with a bucket id, or a file is not ORC, or has events.
    """
    files: list[OriginalFile] = []
    next_row_ids: dict[int, int] = {}
    for path in sorted(paths):
        bucket_id = bucket_id_of_original(path)
        rows = _row_count(path)
        first = next_row_ids.get(bucket_id, 0)
        next_row_ids[bucket_id] = first + rows
        if rows:
            bucket = bucket_codec.encode(bucket_id, statement_id)
            files.append(OriginalFile(path, write_id, bucket, first, rows))
    return files


def _row_count(path: str) -> int:
    """Return the number of rows in an original. Raises FormatError if the file has events, or is
    damaged.
    """
    info = read_file_info(path)
    if info.is_acid:
        raise FormatError(
            f"'{path}' holds ACID events under the name of a file without them", path=path
        )
    return info.rows


def read_originals(
    file: OriginalFile, schema: RowSchema, *, exact: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an original file, with the row ids that Hive gives them.

    Args:
        file: A result of ``original_files``.
        schema: The table's data columns; they are matched with the file's columns by position.
        exact: Refuse timestamps finer than a microsecond, because the rows will be written again.

    Yields:
        originalTransaction, bucket, rowId, currentTransaction, then the columns of ``schema``
        under its names.

    Raises:
        FormatError: The file cannot be read.
        UnsupportedError: With ``exact``: a timestamp is finer than a microsecond.
    """
    row_id = file.first_row_id
    with naming_damage(file.path):
        for batch, info in read_batches(file.path, exact=exact):
            rows = batch.num_rows
            users = conform(batch.to_struct_array(), schema, info.calendar, info.row_types)
            write_ids, properties, row_ids = _row_ids(file, row_id, rows)
            columns = [write_ids, properties, row_ids, write_ids, *users.flatten()]
            yield pa.RecordBatch.from_arrays(columns, names=flat_names(schema))
            row_id += rows


def original_row_ids(file: OriginalFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the row ids of all rows of an original file, as three columns under ``names``. The file
    is not read.
    """
    end = file.first_row_id + file.rows
    for first in range(file.first_row_id, end, _BATCH_ROWS):
        columns = _row_ids(file, first, min(_BATCH_ROWS, end - first))
        yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _row_ids(file: OriginalFile, first: int, rows: int) -> list[pa.Array]:
    """Return write ids, bucket properties and row ids (from ``first`` on) of so many rows of a
    file.
    """
    return [
        pa.array(np.full(rows, file.write_id, dtype=np.int64)),
        pa.array(np.full(rows, file.bucket_property, dtype=np.int32)),
        pa.array(np.arange(first, first + rows, dtype=np.int64)),
    ]
