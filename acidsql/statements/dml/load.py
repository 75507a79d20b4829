"""LOAD DATA: brings files from elsewhere into a table.

As in Hive, copies of the files become a delta or, with OVERWRITE, a base. A row's row id comes from
the file's number and the row's place in the file. If the files may not be what the table demands
(buckets, NOT NULL, CHECK), or if their last columns tell each row's partition because the statement
has no PARTITION, the rows are inserted instead, as Hive does.

The files are deleted from INPATH after the commit, not earlier. LOCAL files are never deleted.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from acidsql.acid.layout import BUCKET_ID_MAX, parse_directory, parse_partition_name
from acidsql.acid.paths import directory_of, normal, plain_path, scheme_and_root
from acidsql.acid.table import ORC, Table
from acidsql.errors import AnalysisError, FormatError, UnsupportedError
from acidsql.plan.analysis.lower import job_errors, naming_checks, rows_with_checks
from acidsql.plan.locking import insert_locks, load_locks, overwrite_locks
from acidsql.plan.rows.event_query import EventQuery, partition_text
from acidsql.plan.rows.insert import plan_load
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import LoadData
from acidsql.statements.context.family import Context, Family, runs
from acidsql.statements.context.result import Receipt, receipt
from acidsql.statements.context.statement_text import StatementText
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.context.work import Work
from acidsql.statements.directories.places import Places
from acidsql.storage.columns import literal, quote
from acidsql.storage.event_records import VALUE, Record, WriteMode
from acidsql.storage.files.filesystem import filesystem_for, real_location, sparks_location
from acidsql.storage.reading.insert_only import PlainFiles, read_inserts_only
from acidsql.storage.writing import load
from acidsql.storage.writing.load import SourceFile
from acidsql.storage.writing.save import TableWrite, write_spec

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _LoadPlan:
    """The files of one LOAD DATA, and their destination.

    Attributes:
        table: The target table.
        partition: The partition directory; "" for an unpartitioned table; None if the files' last
            columns tell each row's partition.
        equal_partitions: All partition directories with the value of ``partition``.
        sources: The files to load.
    """

    table: Table
    partition: str | None
    equal_partitions: Sequence[str]
    sources: Sequence[SourceFile]

    @property
    def is_rewritten(self) -> bool:
        """Whether the rows are inserted anew instead of copying the files: the table has buckets,
        NOT NULL or CHECK, the rows tell their partitions, there are too many files, or Spark would
        read a file otherwise."""
        return (
            self.table.is_bucketed
            or self.partition is None
            or any(not column.nullable for column in self.table.all_columns)
            or bool(self.table.checks)
            or len(self.sources) > BUCKET_ID_MAX + 1
            # Spark reads the files of an insert-only table, and Python those of a full-ACID table.
            or (self.table.is_insert_only and any(source.may_mislead for source in self.sources))
        )


class LoadStatements(Family):
    """Runs LOAD DATA for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._places = Places(context.metastore)

    @runs(LoadData)
    def load(self, statement: LoadData, text: str) -> Receipt:
        """Run LOAD DATA, in the session's transaction or its own, and return the receipt. After the
        commit the source files are deleted, except LOCAL ones. A file that cannot be deleted is a
        note in the receipt of a transaction of its own; in the session's it is only logged. Another
        note says when Trino reads the rows, if Trino may see the table.

        Raises:
            AnalysisError: There are no files to load, or they do not fit the table.
            UnsupportedError: The table is not ORC, the files are those of an ACID table, or this
                transaction has overwritten the partition.
            WriteError: Somebody moved or changed a source file meanwhile.
        """
        plan = self._plan_load(statement, text, self._names.require_table(statement.name, text))
        unremoved_paths: list[str] = []
        with self._transactions.changing_statement("LOAD DATA", text) as (transaction, work):
            has_waited = self._lock(transaction, statement, plan, text)
            if (current_table := self._look_up_again(plan.table.name)) != plan.table or has_waited:
                plan = self._plan_load(statement, text, current_table)
            elif not statement.local:  # another session may have created a table there meanwhile
                self._refuse_files_of_tables(plan.sources[0].path, statement, text)
            transaction.txn.snapshot([])
            if plan.partition is not None:
                transaction.refuse_overwritten(
                    plan.table, [plan.partition], overwrite=statement.overwrite
                )
            self._write(transaction, work, statement, plan)
            if not statement.local:
                load.need_unchanged(plan.sources)
                work.when_committed.append(
                    lambda: unremoved_paths.extend(_remove_files(plan.sources))
                )
            self._transactions.end_statement(transaction)
        notes = [f"'{path}' could not be removed" for path in unremoved_paths]
        if self._is_hidden_from_trino(plan):
            name = plan.table.name
            rewrite = f"ALTER TABLE {name} COMPACT 'major'"
            if statement.overwrite:  # one base is not compacted
                rewrite = f"INSERT OVERWRITE TABLE {name} SELECT * FROM {name}"
            notes.append(f"Trino reads the table after {rewrite}")
        return replace(receipt(text, transaction.id, work.published, {}), notes=tuple(notes))

    def _is_hidden_from_trino(self, plan: _LoadPlan) -> bool:
        """Whether others may read the table, and Trino does not read the new files: in the
        directories of a full-ACID table it wants events, and copies of other files have none."""
        is_shared = self._metastore.abilities.shared_with_hive
        return is_shared and plan.table.has_row_ids and not plan.is_rewritten

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _plan_load(self, statement: LoadData, text: str, table: Table) -> _LoadPlan:
        """Find the files to load, check that each one's footer fits the table, and determine the
        partition that they go to: ``partition`` is None if a partitioned table has no PARTITION
        clause in the statement. Nothing is changed.

        Raises:
            AnalysisError: There are no files, one does not fit the table, or INPATH or PARTITION is
                wrong.
            UnsupportedError: The table is not ORC, or the files are another table's.
        """
        static_partition = plan_load(text, table, statement.partition)
        partition, equal_partitions = None if table.partition_columns else "", list[str]()
        if static_partition is not None:
            mode = WriteMode.of_insert(is_overwrite=statement.overwrite)
            partition_query = EventQuery(table, Text(text), mode, static_partition)
            equal_partitions = (
                self._partitions.possible_partitions(
                    partition_query, StatementText(text, None, double_quoted=False)
                )
                or []
            )
            partition = equal_partitions[0]
        if table.file_format != ORC:
            raise UnsupportedError(
                f"{table.name} is STORED AS {table.file_format.upper()}, and LOAD DATA takes ORC "
                f"files. INSERT INTO … SELECT * FROM {table.file_format}.`path` takes their rows.",
                text, statement.name.span.start, statement.name.span.end,
                condition="UNSUPPORTED_FEATURE.LOAD_DATA",
            )  # fmt: skip
        path = absolute_path(statement, text, table)
        try:
            columns = table.all_columns if partition is None else table.columns
            entries = load.find_files(path)
            if not statement.local:
                self._refuse_files_of_tables(entries[0].path, statement, text)
            sources = load.examine(entries, columns)
        except FormatError as error:
            raise AnalysisError(
                error.message, text, statement.place.start, statement.place.end,
                condition=error.condition, sqlstate=error.sqlstate, **error.parameters,
            ) from None  # fmt: skip
        return _LoadPlan(table, partition, equal_partitions, sources)

    def _refuse_files_of_tables(self, path: str, statement: LoadData, text: str) -> None:
        """Raise UnsupportedError if the directory of the file ``path`` belongs to an ACID table, or
        if it or a directory above is named like a base or delta: LOAD DATA would take a table's
        files away."""
        directory = real_location(directory_of(path))
        is_acid = any(parse_directory(part) is not None for part in directory.split("/"))
        if is_acid or self._places.owners_of(directory):
            raise UnsupportedError(
                f"'{directory}' belongs to an ACID table, whose files LOAD DATA would take away. "
                "INSERT … SELECT copies a table's rows.",
                text, statement.place.start, statement.place.end,
                condition="UNSUPPORTED_FEATURE.LOAD_DATA_OF_TABLE",
            )  # fmt: skip

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _lock(
        self, transaction: Transaction, statement: LoadData, plan: _LoadPlan, text: str
    ) -> bool:
        """Lock the directory of the files, unless LOCAL, then the target: the partitions of the
        PARTITION clause, or the whole table. This may wait. The lock on the target is shared, with
        OVERWRITE EXCL_WRITE or EXCLUSIVE (``overwrite_locks``); the lock on the directory is
        EXCLUSIVE.

        A second transaction, ``transaction.source_lock_txn``, locks the directory, because the
        files are removed after the commit, which ends all locks of the first transaction.

        Returns:
            True if one of the locks had to wait.
        """
        has_waited = False
        if not statement.local:
            if transaction.source_lock_txn is None:
                transaction.source_lock_txn = self._txns.open(agent_info=text)
            has_waited = transaction.source_lock_txn.lock(
                load_locks(real_location(directory_of(plan.sources[0].path)))
            ).waited
        locked_partitions = plan.equal_partitions or None
        if statement.overwrite:
            locks = overwrite_locks(plan.table.name, self._txns.settings, locked_partitions)
        else:
            locks = insert_locks(plan.table.name, locked_partitions)
        return transaction.txn.lock(locks, agent_info=text).waited or has_waited

    def _write(
        self, transaction: Transaction, work: Work, statement: LoadData, plan: _LoadPlan
    ) -> None:
        """Copy the files or, if ``plan.is_rewritten``, insert their rows, from copies of LOCAL
        files; publish the new files, and note them in ``work``. With OVERWRITE they replace the old
        rows. Nothing is committed. This uses up a statement id of the transaction.

        Raises:
            UnsupportedError: The transaction has overwritten one of the partitions.
            ConstraintError: An inserted row breaks NOT NULL or CHECK.
        """
        txn, table = transaction.txn, plan.table
        statement_id = txn.next_statement_id()
        spec = write_spec(
            table,
            txn.write_id(table.name),
            (statement_id, statement_id),
            WriteMode.of_insert(is_overwrite=statement.overwrite),
            static_partition=plan.partition,
            names=self._partitions.names(table),
        )
        partitions_max = self._txns.settings.max_dynamic_partitions
        new_write = TableWrite(
            filesystem_for(table.location), table, spec, partitions_max=partitions_max
        )
        with job_errors(), new_write as writing:
            if not plan.is_rewritten:
                writing.files(self._copy_files(writing, statement, plan))
            else:
                paths = [source.path for source in plan.sources]
                if statement.local:  # tasks do not see the driver's disk
                    paths = [copy.path for copy in self._copy_files(writing, statement, plan)]
                rows = self._rows(plan, paths)
                with naming_checks(rows, table):
                    writing.events(rows_with_checks(rows, table))
            if statement.overwrite:
                writing.replace_all()
            transaction.refuse_overwritten(table, writing.partitions, overwrite=statement.overwrite)
            work.publish(table, writing)

    def _copy_files(
        self, writing: TableWrite, statement: LoadData, plan: _LoadPlan
    ) -> list[Record]:
        """Copy the source files into the hidden directory of ``writing``: LOCAL files by the
        driver, others by Spark tasks. If publishing can copy them directly, nothing is copied now.
        Return a ``Record`` for each new file."""
        return writing.copies(plan.sources, None if statement.local else self._spark)

    def _rows(self, plan: _LoadPlan, paths: Sequence[str]) -> DataFrame:
        """Return the rows of the files ``paths``, lazily: the table's data columns, then the
        partition values as text, in columns with the names that the events of an INSERT have."""
        table = plan.table
        if plan.partition is None:
            plain_table = replace(table, columns=table.all_columns, partition_columns=())
            partition_columns = [
                partition_text(quote(column.name), column, number)
                for number, column in enumerate(table.partition_columns)
            ]
        else:
            plain_table = replace(table, partition_columns=())
            pairs = parse_partition_name(plan.partition) if plan.partition else []
            values = (
                "CAST(NULL AS STRING)" if value is None else literal(value) for _, value in pairs
            )
            partition_columns = [
                f"{value} AS {VALUE}{number}" for number, value in enumerate(values)
            ]
        files = PlainFiles(plain_table, {"": paths}, ORC, any_writer=True)
        rows = read_inserts_only(self._spark, files)
        return rows.selectExpr(
            *(quote(column.name) for column in table.columns), *partition_columns
        )


def absolute_path(statement: LoadData, text: str, table: Table) -> str:
    """Return INPATH as an absolute path, without a slash at its end. A path on a local disk, with
    LOCAL or without, has no scheme: ``file:`` is removed.

    A path without a scheme is on ``fs.defaultFS``, if that is another disk than this machine's, or
    else in the table's file system; with LOCAL it is on the driver's disk. A relative path with
    LOCAL begins in this process's working directory. A path with the table's scheme, but without a
    host or bucket, gets the table's.

    Raises:
        AnalysisError: LOCAL with another file system, a relative path without LOCAL, an empty path,
            or a local disk's root.
        FormatError: ``file:`` names another host.
    """
    path = statement.path.rstrip("/")
    if not path.removeprefix("file:"):  # it would mean the working directory
        raise _path_error("The path names neither a file nor a directory", statement, text)
    if path.startswith("/") and not statement.local:
        path = sparks_location(path)
    scheme, root = scheme_and_root(path)
    if scheme in ("", "file"):
        path = plain_path(path)
    elif statement.local:
        raise _path_error(f"LOCAL means the driver's own disk, not '{scheme}:'", statement, text)
    if not scheme and not path.startswith("/"):
        if not statement.local:
            raise _path_error(
                "A path without LOCAL begins with '/' or names its file system", statement, text
            )
        path = os.path.abspath(path)
    table_scheme, table_root = scheme_and_root(table.location)
    is_table_file_system = scheme == table_scheme or not (scheme or statement.local)
    if not root and table_scheme not in ("", "file") and is_table_file_system:
        return normal(
            f"{table_root or f'{table_scheme}:'}/{path.removeprefix(f'{scheme}:').lstrip('/')}"
        )
    return normal(path)


def _path_error(reason: str, statement: LoadData, text: str) -> AnalysisError:
    """Return the error of a wrong INPATH, which points to the path in the statement."""
    return AnalysisError(
        f"{reason}.", text, statement.place.start, statement.place.end,
        condition="LOAD_DATA_INVALID_PATH", sqlstate="42K03",
    )  # fmt: skip


def _remove_files(sources: Sequence[SourceFile]) -> list[str]:
    """Delete the loaded files. Return, and log, the paths of those that could not be deleted or
    have changed since they were loaded; nothing is raised."""
    unremoved_paths = load.delete_sources(sources)
    for path in unremoved_paths:
        _log.warning("'%s' is loaded, but could not be removed or has changed since.", path)
    return unremoved_paths
