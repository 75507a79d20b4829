"""The rows of RETURNING: what one statement has changed, read from the directories it published.

The new rows are the statement's insert events. The old rows are those that its delete events name.
A hidden file says which new row replaces which old one (``tables.replaced``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import parse_directory, replaced_bucket_id
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID, ROW__ID_TYPE
from acidsql.acid.write_ids import NONE_OPEN, ValidWriteIdList
from acidsql.storage.columns import literal, quote, shown_type
from acidsql.storage.event_records import BUCKET_PROPERTY, KEYS, PARTITION, PREFIX, ROW_ID, WRITE_ID
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.reading.changes import deleted_rows
from acidsql.storage.reading.insert_only import PlainFiles, read_inserts_only
from acidsql.storage.reading.python_rows import KEY_TYPES
from acidsql.storage.reading.scan import (
    Scan,
    delete_keys,
    insert_events,
)
from acidsql.storage.reading.scan_columns import empty_scan, row_id_sql
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.session.worker_process import spare_later_tasks
from acidsql.storage.tables.listing import Listing, list_published
from acidsql.storage.tables.replaced import DDL, OLD, ReplacementFile, read_replaced

MERGE_ACTION = f"{PREFIX}merge_action"
_NEW = f"{PREFIX}new_"
_NO_WRITE_ID = f"{-(2**63)}L"
_ALL = ValidWriteIdList(NONE_OPEN)  # a statement's own directories have only its own events


@dataclass(frozen=True, slots=True)
class ReturnedColumns:
    """The columns in which RETURNING shows changed rows.

    Attributes:
        table: The table.
        has_old: The statement may have deleted or updated rows, and they are needed.
        has_new: The statement may have inserted or updated rows.
        old: The name of the struct with the old row; None: there is no such struct.
        new: The name of the struct with the new row; None: there is no such struct.
        is_merge: The statement may insert, update and delete rows.
    """

    table: Table
    has_old: bool
    has_new: bool
    old: str | None = None
    new: str | None = None
    is_merge: bool = False


def no_rows(spark: SparkSession, shown: ReturnedColumns) -> DataFrame:
    """Return no rows, with the columns of ``returned_rows``."""
    rows = empty_scan(spark, shown.table)
    new = _side_columns(rows, shown.table, _NEW)
    return _select_returned_columns(new.crossJoin(_side_columns(rows, shown.table, OLD)), shown)


def returned_rows(
    spark: SparkSession,
    shown: ReturnedColumns,
    directories: Sequence[str],
    before: Sequence[Listing],
    *,
    is_small: bool = False,
) -> DataFrame:
    """Return the changed rows, lazily: one row for each inserted, updated or deleted row.

    Args:
        spark: The session.
        shown: How to show them.
        directories: The paths of the directories that the statement has published.
        before: The files that the statement read, of the partitions whose rows it deleted.
        is_small: The changed rows fit into the memory of a task.

    Returns:
        The columns of the table, and ``row__id`` if the table has row ids: those of the new row,
        and of a deleted row the old ones. Then the structs of the old and the new row, with
        the same fields; NULL if there is none. Then MERGE_ACTION: INSERT, UPDATE or DELETE.

    Raises:
        SnapshotTooOldError: A file or directory is gone, as after a ROLLBACK.
    """
    fs, table = filesystem_for(shown.table.location), shown.table
    with naming_missing(table.location):
        written = list_published(fs, table.location, directories, plain=table.is_insert_only)
        new = _new_rows(spark, table, written) if shown.has_new else None
        old = _old_rows(spark, table, written, before) if shown.has_old else None
        if new is None or old is None:
            only = new if old is None else old
            has = replace(shown, has_old=old is not None, has_new=new is not None)
            return no_rows(spark, shown) if only is None else _select_returned_columns(only, has)
        rows = _pair_rows(spark, new, old, shown, directories, is_small=is_small)
        return _select_returned_columns(rows, shown)


def _new_rows(spark: SparkSession, table: Table, written: Sequence[Listing]) -> DataFrame | None:
    """Return the rows that the statement inserted, or wrote as new versions, lazily, with the
    columns of ``_side_columns`` for new rows; None if a table with row ids has no files of them.
    """
    if table.is_insert_only:
        files = {
            listing.partition: [p for group in listing.originals for p in group.paths]
            for listing in written
        }
        new_rows = read_inserts_only(spark, PlainFiles(table, files, table.file_format))
        return _side_columns(new_rows, table, _NEW)
    rows = insert_events(spark, Scan(table, written, _ALL))
    return None if rows is None else _side_columns(rows, table, _NEW)


def _old_rows(
    spark: SparkSession, table: Table, written: Sequence[Listing], before: Sequence[Listing]
) -> DataFrame | None:
    """Return the rows that the statement deleted or replaced, lazily, with the columns of
    ``_side_columns`` for old rows; None if it deleted none. Each evaluation also reads the
    delete events, so that it fails after a ROLLBACK.
    """
    deleting = {listing.partition: listing.deletes for listing in written if listing.deletes}
    holding = [
        Listing(listing.partition, listing.data, deleting[listing.partition], listing.originals)
        for listing in before
        if listing.partition in deleting
    ]
    if not holding or (rows := deleted_rows(spark, Scan(table, holding, _ALL))) is None:
        return None
    # Spark reads the delete events of the join once, and keeps them. A ROLLBACK deletes their
    # files. So that it is noticed, each evaluation reads them for nothing.
    none = delete_keys(spark, Scan(table, holding, _ALL)).where(f"{WRITE_ID} = {_NO_WRITE_ID}")
    kinds = {key: KEY_TYPES[key] for key in KEYS}
    kinds |= {quote(column.name): shown_type(column.type) for column in table.all_columns}
    nulls = jvm.select(none, *(f"CAST(NULL AS {kind}) AS {name}" for name, kind in kinds.items()))
    return _side_columns(rows, table, OLD).unionAll(_side_columns(nulls, table, OLD))


def _pair_rows(
    spark: SparkSession,
    new: DataFrame,
    old: DataFrame,
    shown: ReturnedColumns,
    directories: Sequence[str],
    *,
    is_small: bool,
) -> DataFrame:
    """Return each new row once, with the old row that it replaces, or NULLs. In a MERGE, deleted
    rows without a new row follow, with NULLs for the new one; other statements have none.

    Args:
        spark: The session.
        new: The new rows, as ``_side_columns``.
        old: The old rows, as ``_side_columns``.
        shown: Says whether the statement is a MERGE.
        directories: The statement's directories, whose hidden files tell the pairs.
        is_small: The rows fit into the memory of a task, so they are broadcast.
    """
    place = (PARTITION, BUCKET_PROPERTY, ROW_ID)
    pairs = jvm.select(
        _replaced_pairs(spark, directories, shown.table.location),
        *(f"{name} AS {PREFIX}of_{name}" for name in place),
        *(f"{OLD}{name} AS {PREFIX}to_{name}" for name in KEYS),
    )
    is_new = " AND ".join(f"{_NEW}{name} = {PREFIX}of_{name}" for name in place)
    is_old = " AND ".join(f"{OLD}{name} = {PREFIX}to_{name}" for name in KEYS)
    # Joined so, each evaluation reads the statement's own files, which a ROLLBACK deletes.
    replaced = old.join(_hint_broadcast(pairs, is_small), F.expr(is_old))
    changed = new.join(_hint_broadcast(replaced, is_small), F.expr(is_new), "left")
    if not shown.is_merge:
        return changed
    deleted = old.join(_hint_broadcast(pairs, is_small), F.expr(is_old), "left_anti")
    return changed.unionByName(deleted, allowMissingColumns=True)


def _hint_broadcast(rows: DataFrame, is_small: bool) -> DataFrame:
    return rows.hint("broadcast") if is_small else rows


def _replaced_pairs(spark: SparkSession, directories: Sequence[str], location: str) -> DataFrame:
    """Return which new row replaces which old one, by the hidden files in these directories,
    lazily, with the columns of ``DDL``. Directories are listed now. Python tasks read the files:
    Spark's own reader ignores hidden files.
    """
    fs, replaced_files = filesystem_for(location), []
    for path in directories:
        parent, _, name = path.rpartition("/")
        directory = parse_directory(name)
        statement_id = (directory and directory.statement_id) or 0
        for child in fs.list(path):
            bucket_id = replaced_bucket_id(child.name)
            if bucket_id is not None:
                partition = parent.removeprefix(location).lstrip("/")
                replaced_files.append(
                    ReplacementFile(child.path, partition, encode(bucket_id, statement_id))
                )
    tasks = spark.range(0, len(replaced_files), 1, max(1, len(replaced_files)))
    return tasks.mapInArrow(_read_function(replaced_files), DDL)


def _read_function(
    files: Sequence[ReplacementFile],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: numbers of files → the pairs in these files
    (``read_replaced``).
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the pairs in the files with these numbers."""
        spare_later_tasks()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_replaced(files[number])

    return run


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def _side_columns(rows: DataFrame, table: Table, prefix: str) -> DataFrame:
    """Return the columns of one side, old or new: ``KEYS`` if the table has row ids, and the
    table's columns, each with ``prefix`` before its name, then a TRUE under ``prefix`` alone.
    """
    keys = KEYS if table.has_row_ids else ()
    key_columns = [f"{key} AS {prefix}{key}" for key in keys]
    columns = [f"{quote(c.name)} AS {quote(prefix + c.name)}" for c in table.all_columns]
    return jvm.select(rows, *key_columns, *columns, f"TRUE AS {prefix}")


def _select_returned_columns(rows: DataFrame, shown: ReturnedColumns) -> DataFrame:
    """Select the columns of ``returned_rows`` from rows that have one side or both."""

    def typed_values(prefix: str, *, is_there: bool) -> list[tuple[str, str]]:
        """Return SQL and name of each column of one side, cast to its type; all NULL if the side is
        not there.
        """
        pairs = [
            (quote(prefix + c.name) if is_there else "NULL", c.name, shown_type(c.type))
            for c in shown.table.all_columns
        ]
        if shown.table.has_row_ids:
            pairs.append((row_id_sql(prefix) if is_there else "NULL", ROW__ID, ROW__ID_TYPE))
        return [(f"CAST({value} AS {kind})", name) for value, name, kind in pairs]

    old, new = typed_values(OLD, is_there=shown.has_old), typed_values(_NEW, is_there=shown.has_new)
    is_new = f"{_NEW} IS NOT NULL" if shown.has_new else "FALSE"
    is_old = f"{OLD} IS NOT NULL" if shown.has_old else "FALSE"
    columns = [
        f"CASE WHEN {is_new} THEN {new_value} ELSE {old_value} END AS {quote(name)}"
        for (new_value, name), (old_value, _) in zip(new, old, strict=True)
    ]
    for called, condition, fields in ((shown.old, is_old, old), (shown.new, is_new, new)):
        if called is not None:
            parts = ", ".join(f"{literal(name)}, {value}" for value, name in fields)
            row = f"CASE WHEN {condition} THEN named_struct({parts}) END"
            columns.append(f"{row} AS {quote(called)}")
    action = f"CASE WHEN NOT ({is_old}) THEN 'INSERT' WHEN {is_new} THEN 'UPDATE' ELSE 'DELETE' END"
    return mark_char_columns(jvm.select(rows, *columns, f"{action} AS {MERGE_ACTION}"), shown.table)
