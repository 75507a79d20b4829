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
from acidsql.plan.event_query import EventQuery, partition_text
from acidsql.plan.insert import plan_load
from acidsql.plan.locking import inserting, overwriting, taking
from acidsql.plan.lower import enforced, job_errors, naming_checks
from acidsql.plan.sqltext import Text
from acidsql.sql.statements import LoadData
from acidsql.statements.family import Context, Family, runs
from acidsql.statements.places import Places
from acidsql.statements.result import Receipt, receipt
from acidsql.statements.statement_text import StatementText
from acidsql.statements.unit_of_work import Transaction
from acidsql.statements.work import Work
from acidsql.storage.columns import literal, quote
from acidsql.storage.event_records import VALUE, Record
from acidsql.storage.files.filesystem import filesystem_for, real
from acidsql.storage.reading.insert_only import read_inserts_only
from acidsql.storage.writing import load
from acidsql.storage.writing.load import Source
from acidsql.storage.writing.save import Save, Writing

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Load:
    """The files of one LOAD DATA, and their destination.

    Attributes:
        table: The target table.
        partition: The partition directory; "" for an unpartitioned table; None if the files' last
            columns tell each row's partition.
        same_value: All directories of the same partition value.
        sources: The files.
    """

    table: Table
    partition: str | None
    same_value: Sequence[str]
    sources: Sequence[Source]

    @property
    def is_rewritten(self) -> bool:
        """Whether the rows are inserted: the files themselves may not be what the table demands."""
        return (
            self.table.is_bucketed
            or self.partition is None
            or any(not column.nullable for column in self.table.all_columns)
            or bool(self.table.checks)
            or len(self.sources) > BUCKET_ID_MAX + 1
            # Python reads them in a full-ACID table, Spark in an insert-only one.
            or (self.table.is_insert_only and any(one.may_mislead for one in self.sources))
        )


class LoadStatements(Family):
    """Runs LOAD DATA for one session."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._places = Places(context.metastore)

    @runs(LoadData)
    def load(self, statement: LoadData, text: str) -> Receipt:
        """Run the statement.

        Raises:
            AnalysisError: There is nothing to load, or it does not fit the table.
            UnsupportedError: Nothing can be loaded from there.
        """
        what = self._say(statement, text, self._names.require_table(statement.name, text))
        left: list[str] = []
        with self._transactions.statement("LOAD DATA", text) as (transaction, work):
            waited = self._lock(transaction, statement, what, text)
            if (now := self._again(what.table.name)) != what.table or waited:
                what = self._say(statement, text, now)
            elif not statement.local:  # a table may have been created there meanwhile
                self._refuse_files_of_tables(what.sources[0].path, statement, text)
            transaction.txn.snapshot([])
            if what.partition is not None:
                transaction.refuse_overwritten(
                    what.table, [what.partition], overwrite=statement.overwrite
                )
            self._write(transaction, work, statement, what)
            if not statement.local:
                load.need_unchanged(what.sources)
                work.when_committed.append(lambda: left.extend(_removed(what.sources)))
            self._transactions.end_of_statement(transaction)
        notes = tuple(f"'{path}' could not be removed" for path in left)
        return replace(receipt(text, transaction.id, work.published, {}), notes=notes)

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _say(self, statement: LoadData, text: str, table: Table) -> _Load:
        query = plan_load(text, table, statement.partition)
        partition, same_value = None if table.partition_columns else "", list[str]()
        if query is not None:
            overwrite = statement.overwrite
            named = EventQuery(table, Text(text), static_partition=query, overwrite=overwrite)
            same_value = (
                self._partitions.touched(named, StatementText(text, None, double_quoted=False))
                or []
            )
            partition = same_value[0]
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
            found = load.find_files(path)
            if not statement.local:
                self._refuse_files_of_tables(found[0].path, statement, text)
            sources = load.examine(found, columns)
        except FormatError as error:
            raise AnalysisError(
                error.message, text, statement.place.start, statement.place.end,
                condition=error.condition, sqlstate=error.sqlstate, **error.parameters,
            ) from None  # fmt: skip
        return _Load(table, partition, same_value, sources)

    def _refuse_files_of_tables(self, path: str, statement: LoadData, text: str) -> None:
        """Refuse to take away an ACID table's files. All files are in the directory of ``path``."""
        place = real(directory_of(path))
        is_acid = any(parse_directory(part) is not None for part in place.split("/"))
        if is_acid or self._places.owners_of(place):
            raise UnsupportedError(
                f"'{place}' belongs to an ACID table, whose files LOAD DATA would take away. "
                "INSERT … SELECT copies a table's rows.",
                text, statement.place.start, statement.place.end,
                condition="UNSUPPORTED_FEATURE.LOAD_DATA_OF_TABLE",
            )  # fmt: skip

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _lock(self, transaction: Transaction, statement: LoadData, what: _Load, text: str) -> bool:
        """Lock the directory of the files and the target. Returns True if the locks had to wait.

        Another transaction locks the directory: the files are removed after the commit, which ends
        all locks of this transaction.
        """
        waited = False
        if not statement.local:
            if transaction.takes is None:
                transaction.takes = self._txns.open(agent_info=text)
            waited = transaction.takes.lock(taking(real(directory_of(what.sources[0].path)))).waited
        touched = what.same_value or None
        if statement.overwrite:
            locks = overwriting(what.table.name, self._txns.settings, touched)
        else:
            locks = inserting(what.table.name, touched)
        return transaction.txn.lock(locks, agent_info=text).waited or waited

    def _write(
        self, transaction: Transaction, work: Work, statement: LoadData, what: _Load
    ) -> None:
        txn, table = transaction.txn, what.table
        statement_id = txn.next_statement_id()
        save = Save(
            table,
            txn.write_id(table.name),
            (statement_id, statement_id),
            what.partition,
            statement.overwrite,
            names=self._partitions.names(table),
            partitions_max=self._txns.settings.max_dynamic_partitions,
            loaded=not what.is_rewritten,
        )
        with job_errors(), Writing(filesystem_for(table.location), save) as writing:
            if not what.is_rewritten:
                writing.files(self._copies(writing, statement, what))
            else:
                paths = [source.path for source in what.sources]
                if statement.local:  # tasks do not see the driver's disk
                    paths = [copy.path for copy in self._copies(writing, statement, what)]
                rows = self._rows(what, paths)
                with naming_checks(rows, table):
                    writing.events(enforced(rows, table))
            if statement.overwrite:
                writing.replace_all()
            transaction.refuse_overwritten(table, writing.partitions, overwrite=statement.overwrite)
            work.publish(table, writing)

    def _copies(self, writing: Writing, statement: LoadData, what: _Load) -> list[Record]:
        return writing.copies(what.sources, None if statement.local else self._spark)

    def _rows(self, what: _Load, paths: Sequence[str]) -> DataFrame:
        """The rows of the files and the values of their partition, in the columns of an INSERT."""
        table = what.table
        if what.partition is None:
            plain = replace(table, columns=table.all_columns, partition_columns=())
            texts = [
                partition_text(quote(column.name), column, number)
                for number, column in enumerate(table.partition_columns)
            ]
        else:
            plain = replace(table, partition_columns=())
            pairs = parse_partition_name(what.partition) if what.partition else []
            values = ("CAST(NULL AS STRING)" if v is None else literal(v) for _, v in pairs)
            texts = [f"{value} AS {VALUE}{number}" for number, value in enumerate(values)]
        rows = read_inserts_only(self._spark, plain, {"": paths}, ORC, any_writer=True)
        return rows.selectExpr(*(quote(column.name) for column in table.columns), *texts)


def absolute_path(statement: LoadData, text: str, table: Table) -> str:
    """INPATH with its file system: by default the table's or, with LOCAL, the driver's."""
    path = statement.path.rstrip("/")
    scheme, root = scheme_and_root(path)
    if scheme in ("", "file"):
        path = plain_path(path)
    elif statement.local:
        raise _bad_path(f"LOCAL means the driver's own disk, not '{scheme}:'", statement, text)
    if not scheme and not path.startswith("/"):
        if not statement.local:
            raise _bad_path(
                "A path without LOCAL begins with '/' or names its file system", statement, text
            )
        path = os.path.abspath(path)
    theirs, their_root = scheme_and_root(table.location)
    is_theirs = scheme == theirs or not (scheme or statement.local)
    if not root and theirs not in ("", "file") and is_theirs:
        return normal(f"{their_root or f'{theirs}:'}/{path.removeprefix(f'{scheme}:').lstrip('/')}")
    return normal(path)


def _bad_path(what: str, statement: LoadData, text: str) -> AnalysisError:
    return AnalysisError(
        f"{what}.", text, statement.place.start, statement.place.end,
        condition="LOAD_DATA_INVALID_PATH", sqlstate="42K03",
    )  # fmt: skip


def _removed(sources: Sequence[Source]) -> list[str]:
    """Delete the loaded files after the commit. Returns the files that could not be deleted."""
    left = load.remove(sources)
    for path in left:
        _log.warning("'%s' is loaded, but could not be removed or has changed since.", path)
    return left
