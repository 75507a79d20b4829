"""The events of a file, as stored: ``Session.events``, like Hive's ``orcfiledump -d``.

The result has all events that a reader would hide: deleted rows, delete events, events of aborted
transactions. Python tasks read one file each, because of the limits of Spark's reader (I8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import bucket_id_of, parse_directory
from acidsql.errors import FormatError
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.event_reader import dump_file
from acidsql.storage.tables.file_info import read_file_info
from acidsql.storage.tables.listing import committed_length
from acidsql.storage.tables.orc_schema import columns_of

_PathAndLength = tuple[str, int | None]  # path, and committed length if it is not the whole file


def dump_events(spark: SparkSession, path: str) -> DataFrame:
    """Return all events of a file or directory as they are stored, lazily: the event columns under
    Hive's names, ``row`` as a struct, and ``path``.

    Args:
        spark: The session.
        path: A bucket file, or a base, delta or delete delta. A side file's committed length
            counts.

    Raises:
        FormatError: The path is of another kind, there is no bucket file with bytes, or the first
            one lacks the event columns.
    """
    path = path.rstrip("/")
    fs = filesystem_for(path)
    files = _event_files(fs, path)
    for file, length in files[:1]:
        if not read_file_info(file, length).is_acid:
            raise FormatError(
                f"'{file}' is no file of ACID events: its rows have no row ids of their own. "
                "Read it with spark.read.orc.",
                path=file,
            )
    # One statement or one compaction writes a directory, so all its files have one schema.
    schema = RowSchema.from_fields(columns_of(*files[0]))
    fields = ", ".join(
        f"{quote(name)}: {shown_type(kind)}"
        for name, kind in zip(schema.names, schema.types, strict=True)
    )
    ddl = (
        "operation int, originalTransaction bigint, bucket int, rowId bigint, "
        f"currentTransaction bigint, row struct<{fields}>, path string"
    )
    tasks = spark.range(0, len(files), 1, len(files))
    return tasks.mapInArrow(_read_function(files, schema), ddl)


def _event_files(fs: FileSystem, path: str) -> list[_PathAndLength]:
    """Return the bucket files at a path (a file or a directory), sorted by name, without empty
    ones: path, and committed length if it is not the whole file.

    Raises FormatError if the path is of another kind, or there are no files.
    """
    parent, _, name = path.rpartition("/")
    if bucket_id_of(name) is not None:
        entries, names = fs.list_if_there(parent), {name}
    elif parse_directory(name) is not None:
        entries = fs.list_if_there(path)
        names = {entry.name for entry in entries if bucket_id_of(entry.name) is not None}
    else:
        raise FormatError(
            f"'{path}' is no bucket file, and no base_…, delta_… or delete_delta_… directory. "
            "Session.files(table) tells the paths of a table's files.",
            path=path,
        )
    siblings = {entry.name for entry in entries}
    files = [
        (entry.path, committed_length(fs, entry, siblings))
        for entry in entries
        if entry.name in names and not entry.is_dir and entry.size
    ]
    if not files:
        raise FormatError(f"There is no file of events at '{path}'.", path=path)
    return files


def _read_function(
    files: Sequence[_PathAndLength], schema: RowSchema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: numbers of files → the events of these files, as
    ``dump_file`` gives them.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of the files with these numbers."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                path, length = files[number]
                yield from dump_file(path, length, schema)

    return run
