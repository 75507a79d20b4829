"""Write a statement's events and publish them: the phases *do* and *keep*, without the commit.

A statement's files first lie in its staging directory, which is hidden. A record names one of these
files, with its partition directory, or tells something else that a task has seen
(``event_records``). An event inserts or deletes a row.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.partition_names import PartitionNames
from acidsql.acid.table import Table
from acidsql.costs import FastPath, note_fast_path
from acidsql.errors import WriteError
from acidsql.storage.event_records import VALUE, Record, WriteMode, WriteSpec
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.memory import MEMORY, new_directory
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.spark.few_rows import collect_events_if_few
from acidsql.storage.spark.literal_rows import collect_rows, plain_rows
from acidsql.storage.spark.session.jvm import SEND_NOTHING, changed_conf, is_too_large_to_send
from acidsql.storage.tables.parquet import parquet_compression
from acidsql.storage.writing import load
from acidsql.storage.writing.job import write_events, write_rows
from acidsql.storage.writing.load import SourceFile
from acidsql.storage.writing.publish import (
    PublishedWrite,
    check_records,
    discard,
    empty_file,
    publish,
    staging_directory,
)


class TableWrite:
    """One statement's write to one table: at most one of the writing methods, then ``publish``.

    As a context manager it always removes its staging directory.

    Args:
        fs: The table's file system.
        table: The target.
        spec: The result of ``write_spec``.
        partitions_max: The greatest number of partitions that new rows may go to.
        is_fast: See ``job.write_events``.

    Attributes:
        directories: The directories that ``publish`` has moved into place, or may have moved before
            it failed.
    """

    def __init__(
        self,
        fs: FileSystem,
        table: Table,
        spec: WriteSpec,
        *,
        partitions_max: int = 1000,
        is_fast: bool = True,
    ) -> None:
        """Note what to write. Nothing is created before the block begins."""
        self._fs, self._table = fs, table
        self._partitions_max, self._is_fast = partitions_max, is_fast
        self._spec = self._own_spec = spec
        self._files: list[Record] = []
        self._has_staged = self._has_copies = False
        self.directories: list[str] = []

    def __enter__(self) -> TableWrite:
        """Create the staging directory, and return this object. A failure leaves no directory. On a
        file system without directories, nothing is created: there the files that the driver writes
        itself lie in a directory of its memory.
        """
        if not self._fs.has_directories:
            # What the driver writes itself goes out as a whole, without a staged object.
            self._own_spec = replace(self._spec, staging=new_directory())
            return self
        try:
            self._fs.create_directory(self._spec.staging)
        except BaseException:
            discard(self._fs, [self._spec.staging])
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the staging directory and the directory in memory, as far as they were used."""
        if self._own_spec is not self._spec:
            MEMORY.delete_directory(self._own_spec.staging)
        if self._fs.has_directories or self._has_staged:
            discard(self._fs, [self._spec.staging])

    def events(
        self,
        events: DataFrame,
        few: int = 0,
        *,
        if_small: bool = False,
        otherwise: Callable[[], DataFrame] | None = None,
    ) -> None:
        """Write a query's events into the staging directory, and add the files to those to publish.

        The driver collects and writes few events itself, unless the table has SORTED BY. Otherwise
        a job evaluates the query anew.

        Args:
            events: The query.
            few: How many events the driver collects and writes at most, ten times as many if they
                are only row ids to delete; 0: a job writes the events.
            if_small: The driver does not try if Spark estimates that the query gives more than 1
                MiB.
            otherwise: Makes another query of the same events, without the hint to broadcast MERGE's
                source. If a table is too large to broadcast, this query (by default ``events``
                again) runs with broadcasts switched off. Spark estimates a table's size by its
                files, which may be compressed well.

        Raises:
            ConstraintError: A NOT NULL column would get a null.
            MergeCardinalityError: A row of MERGE's target was matched twice.
            WriteError: A value cannot be stored, a row would be changed twice, Spark ran a task
                twice, or there are too many partitions.
            TransientTxnError: A file of the source was changed meanwhile.
        """
        try:
            self._check_and_add(self._write_few_or_run_job(events, few, if_small))
        except Exception as error:
            if not is_too_large_to_send(error):
                raise
            same_events = otherwise() if otherwise else events
            with changed_conf(events.sparkSession, SEND_NOTHING):
                self._check_and_add(self._write_by_job(same_events))

    def _write_few_or_run_job(self, events: DataFrame, few: int, if_small: bool) -> list[Record]:
        """Write the events in the driver if ``few`` is not 0, the table has no SORTED BY, and
        ``collect_events_if_few`` gives the events; else by a job. Return the records.
        """
        # Arrow and Spark sort some values differently.
        is_tried = few and not self._table.sort_columns
        collected = (
            collect_events_if_few(events, self._table, few, if_small=if_small) if is_tried else None
        )
        if collected is None:
            return self._write_by_job(events)
        note_fast_path(FastPath.FEW_ROWS)
        return write_rows(collected, self._table, self._own_spec)

    def _write_by_job(self, events: DataFrame) -> list[Record]:
        self._has_staged = True
        return write_events(events, self._table, self._spec, is_fast=self._is_fast)

    def literal_rows(self, rows: DataFrame) -> None:
        """Write a few literal rows in the driver; by a job if Python lacks a value, or the table
        has SORTED BY. The files are added to those to publish. Raises the errors of ``events``.
        """
        # Arrow and Spark sort some values differently.
        collected = None if self._table.sort_columns else collect_rows(rows, self._table)
        if collected is None:
            self.events(rows)
        else:
            note_fast_path(FastPath.LITERAL_ROWS)
            self._check_and_add(write_rows(collected, self._table, self._own_spec))

    def plain_rows(self, values: Mapping[str, Sequence[Any]]) -> None:
        """Write a few rows of plain values, given by column, in the driver, and add the files to
        those to publish. Raises the errors of ``events``.
        """
        note_fast_path(FastPath.PLAIN_LITERALS)
        rows = plain_rows(values, self._table)
        self._check_and_add(write_rows(rows, self._table, self._own_spec))

    def copies(self, sources: Sequence[SourceFile], spark: SparkSession | None) -> list[Record]:
        """Copy the files of LOAD DATA into the staging directory, unless ``publish`` can copy them
        from where they are. Return a record for each, to be given to ``files``; the record of a
        file that was not copied names the source.

        Spark tasks copy the files; without Spark the driver does.

        Raises:
            WriteError: A file was changed or taken away since it was examined.
        """
        if load.is_copied_in_place(sources, self._table.location):
            return load.records_in_place(sources, self._spec)
        self._has_staged = True
        if spark is None:
            return load.copy_in_driver(sources, self._spec)
        return load.copy_in_tasks(spark, sources, self._spec)

    def files(self, copies: list[Record]) -> None:
        """Add these copies to the files to publish, which then become plain files. Raises
        WriteError for too many partitions.
        """
        self._has_copies = True
        self._check_and_add(copies)

    def empty(self, partition: str) -> None:
        """Add an empty file for a partition, which in an overwrite becomes an empty base and
        replaces the contents; nothing if a file for the partition is there already.
        """
        if not any(file.partition == partition for file in self._files):
            self._files.append(empty_file(self._own_spec, partition))

    def replace_all(self) -> None:
        """Add an empty file (``empty``) for each directory that an overwrite replaces and has no
        file for, so that ``publish`` empties it.

        These are the partition that the statement names, or else the written ones; and all further
        existing directories with the same partition values.
        """
        static, written = self._spec.static_partition, self.partitions
        replaced_partitions = written if static is None else {static}
        for partition in self._spec.partitions.same_values(replaced_partitions) - written:
            self.empty(partition)

    @property
    def partitions(self) -> set[str]:
        """The partition directories to which ``publish`` will write."""
        return {file.partition for file in self._files}

    @property
    def is_in_doubt(self) -> bool:
        """After ``publish`` has failed: a request may still be carried out, however late. So it is
        on an object store, once ``publish`` has noted a directory.
        """
        return bool(self.directories) and not self._fs.has_directories

    def publish(self) -> PublishedWrite:
        """Move the files into their directories. Return what was published. Without files nothing
        is done, and a ``PublishedWrite`` with its defaults is returned. After a failure the
        directories are deleted as far as possible, and ``directories`` says which may be left.

        Raises:
            FileExistsError: Somebody else has a directory of this name.
            WriteError: A file is missing or has another length than its writer reported.
        """
        if not self._files:
            return PublishedWrite()
        return publish(
            self._fs,
            self._table.location,
            self._spec,
            self._files,
            self.directories,
            are_copies=self._has_copies,
        )

    def _check_and_add(self, records: list[Record]) -> None:
        """Check records, and add their files to those to publish. Raises the errors of
        ``publish.check_records``, and WriteError if new rows, of all calls together, go to more
        partitions than ``partitions_max``.
        """
        self._files += check_records(records, merge=self._spec.mode.is_merge)
        partitions = {file.partition for file in self._files if file.kind == "insert"}
        if len(partitions) > self._partitions_max:
            raise WriteError(
                f"The statement would write to {len(partitions)} partitions, more than "
                f"hive.exec.max.dynamic.partitions={self._partitions_max}.",
                condition="TOO_MANY_DYNAMIC_PARTITIONS",
                sqlstate="54000",
            )


def write_spec(
    table: Table,
    write_id: int,
    statement_ids: tuple[int, int],
    mode: WriteMode,
    *,
    static_partition: str | None = None,
    names: PartitionNames | None = None,
    notes_replaced: bool = False,
) -> WriteSpec:
    """Return how one statement writes to a table, with a staging directory that does not exist yet.

    ``statement_ids``: those of the delete events and of the insert events. ``names``: those of the
    partition directories; None: all are canonical. For an unpartitioned table, ``static_partition``
    becomes "". `WriteSpec` explains the other arguments.

    Raises:
        SettingError: An ``orc.…`` or ``parquet.…`` property of the table is wrong.
    """
    delete_statement, insert_statement = statement_ids
    unique = uuid.uuid4().hex[:12]
    return WriteSpec(
        staging=staging_directory(table.location, write_id, delete_statement, unique),
        write_id=write_id,
        insert_statement_id=insert_statement,
        delete_statement_id=delete_statement,
        row=RowSchema.from_fields((column.name, column.type) for column in table.columns),
        not_null=_not_null(table),
        mode=mode,
        partitions=names or PartitionNames(table.partition_columns),
        static_partition=static_partition if table.partition_columns else "",
        is_bucketed=table.is_bucketed,
        orc=OrcOptions.from_properties(table.properties),
        insert_only=table.is_insert_only,
        parquet=parquet_compression(table),
        notes_replaced=notes_replaced,
    )


def _not_null(table: Table) -> tuple[tuple[str, str], ...]:
    """Return the NOT NULL columns as pairs: the name among the events' columns, which for partition
    columns is VALUE and the ordinal, then the table's name.
    """
    data = [(column.name, column) for column in table.columns]
    partitions = [(f"{VALUE}{i}", column) for i, column in enumerate(table.partition_columns)]
    return tuple((name, c.name) for name, c in data + partitions if not c.nullable)
