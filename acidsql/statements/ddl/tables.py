"""Statements without events: CREATE, DROP, ALTER, USE.

Each statement takes its locks in a transaction of its own. A statement first changes the store,
then the files. If the process dies in between, the next statement that needs the directory finishes
the work. Beside a target of AUTO CDC there may be a state table (of order values) and a pending
table (of records that wait); both are dropped and renamed together with the target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acidsql.acid import cdc, statistics
from acidsql.acid.paths import directory_name
from acidsql.acid.table import STATISTICS, Table, TableName
from acidsql.acid.values.types import HiveType
from acidsql.errors import AcidSqlError, CatalogError, TxnError, UnsupportedError
from acidsql.metastore.catalog import missing_database_text
from acidsql.metastore.foreign import ForeignTable, acid_table, view_of
from acidsql.metastore.interface import Commit, LockComponent, RowChange
from acidsql.metastore.locks import locks_on_table
from acidsql.plan.analysis import lower
from acidsql.plan.cdc.state import is_state, with_renamed_columns
from acidsql.plan.locking import drop_locks, exclusive_lock, load_locks
from acidsql.plan.standins.names import need_name
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed import statements as st
from acidsql.sql.text.tokens import Span
from acidsql.statements.context.family import Context, runs
from acidsql.statements.context.result import Receipt
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.ddl import columns as alter
from acidsql.statements.ddl import create, table_properties
from acidsql.statements.ddl.column_references import (
    NewName,
    refuse_referenced_names,
    refuse_version_columns,
    rename_error,
)
from acidsql.statements.ddl.constraints import (
    ConstraintStatements,
    extended_constraints,
    require_conditions,
)
from acidsql.statements.directories.places import Places, normalized_location
from acidsql.storage.files.filesystem import filesystem_for, real_location, sparks_location
from acidsql.txn import Txn

_log = logging.getLogger(__name__)


class TableStatements(ConstraintStatements):
    """Runs CREATE, DROP and ALTER TABLE for one session, and gives parts of them to CREATE TABLE …
    AS SELECT."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._places = Places(context.metastore)

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    @runs(st.CreateTable)
    def _create_table(self, statement: st.CreateTable, text: str) -> Receipt | None:
        """Run CREATE TABLE without a query in a transaction of its own. OR REPLACE replaces an ACID
        table of the name; LOCATION makes the files there the table's rows. Return the receipt, with
        notes about such files; None if a table or view of the name exists and the statement has IF
        NOT EXISTS. Raise CatalogError if the name is taken otherwise."""
        name = self.new_name(statement, text)
        if self.has_nothing_to_create_or_replace(statement, name):
            return None
        table = self.define_table(statement, text, name)
        with self._temporary.track(name), self._transactions.own_transaction(text) as transaction:
            files = load_locks(table.location) if statement.location is not None else []
            if not self.lock_new(statement, name, files, transaction, text):
                return None
            adopt, replaces = statement.location is not None, statement.or_replace
            notes = self._commit_new_table(table, transaction, adopt=adopt, replaces=replaces)
        return Receipt(text, txn_id=transaction.id, notes=notes)

    def new_name(self, statement: st.CreateTable, text: str) -> TableName:
        """Return the full name under which the metastore will keep the new table. For the first
        temporary table, this opens the transaction that keeps such tables. Raise an error if a
        table cannot have the name, UnsupportedError if the metastore has no temporary tables."""
        name = self._names.new_table_name(statement.name, text)
        return self._temporary.new_stored_name(name) if statement.temporary else name

    def lock_new(
        self,
        statement: st.CreateTable,
        name: TableName,
        other_locks: Sequence[LockComponent],
        transaction: Transaction,
        text: str,
    ) -> bool:
        """Lock the name of a new table, and take ``other_locks``; this may wait. With OR REPLACE,
        lock the tables of AUTO CDC beside a table of this name, too.

        Returns:
            Whether the table is still to be created. False if a table or view of the name exists,
            and the statement has IF NOT EXISTS.

        Raises:
            CatalogError: The name is taken, and the statement has neither IF NOT EXISTS nor OR
                REPLACE.
            TxnError: A lock was not granted in time.
        """
        transaction.txn.lock([exclusive_lock(name), *other_locks], agent_info=text)
        if self.has_nothing_to_create_or_replace(statement, name):
            return False
        if statement.or_replace and (cdc_names := self._cdc_names(name)):
            transaction.txn.lock(
                [exclusive_lock(cdc_name) for cdc_name in cdc_names], agent_info=text
            )
        return True

    def _commit_new_table(
        self, table: Table, transaction: Transaction, *, adopt: bool, replaces: bool = False
    ) -> tuple[str, ...]:
        """Make a new table's directory, and commit the transaction, which creates the table or, if
        ``replaces`` and without ``adopt``, puts it in the place of another. With ``adopt``, the
        files in the directory become the table's rows. Return notes about these files for the
        receipt; () without ``adopt``."""
        if not adopt:
            table, cleanup_id = self.claim_directory(table, transaction)
            transaction.txn.commit(
                Commit(
                    created_table=table,
                    is_replacement=replaces,
                    cleanup_id=cleanup_id,
                    row_changes={table.name: {"": RowChange(0)}},
                )
            )
            return ()
        adopted = self._places.prepare_directory(table, adopt=True)
        self._places.make_directory(table)
        transaction.txn.commit(
            Commit(
                created_table=table,
                first_write_id=adopted.first_write_id,
                added_partitions={table.name: adopted.partitions} if adopted.partitions else {},
            )
        )
        return adopted.notes

    def define_table(
        self, statement: st.CreateTable, text: str, name: TableName, fields: Any = ()
    ) -> Table:
        """Return the table that a CREATE TABLE defines, also with LIKE. Nothing is created.

        Args:
            statement: The statement.
            text: The statement's text.
            name: The new table's name.
            fields: The columns of the query after AS SELECT; none without a query.

        Raises:
            AnalysisError: A column, a property or a constraint is wrong.
            UnsupportedError: A table cannot have this layout or constraint.
            CatalogError: There is no such database, or the LOCATION cannot be used.
        """
        location = self._location(statement, name)
        if statement.like is not None:
            source = self._names.require_table(statement.like, text)
            return create.define_table_like(source, statement, text, name, location)
        table = create.define_table(
            statement, text, name, location, type_of=self.type_of(text), fields=fields
        )
        return replace(
            table,
            constraints=extended_constraints(self._context, table, statement.constraints, text),
        )

    def claim_directory(self, table: Table, transaction: Transaction) -> tuple[Table, int | None]:
        """Make the directory of a table that the commit will create. Call this under the lock.

        If another table owns the directory with the table's name, the new table gets another
        directory. Until the commit, the directory is queued for deletion: it is deleted if the
        transaction is abandoned or, after a crash, by the next CREATE. If the metastore has no such
        queue, the directory stays after a crash.

        Returns:
            The table, with its directory, and the id of the queued deletion, which the commit must
            end (``Commit.cleanup_id``); None: nothing is queued.

        Raises:
            CatalogError: The directory is not empty, or is a link.
        """
        table = self._places.choose_location(table, transaction.id)
        self._places.prepare_directory(table, adopt=False)
        cleanup = self._metastore.queue_cleanup(table.name, table.location, txn_id=transaction.id)
        if cleanup is None:
            fs = filesystem_for(table.location)
            transaction.when_abandoned.append(lambda: fs.delete_directory(table.location))
        else:
            transaction.when_abandoned.append(lambda: self._delete_directories(cleanup))
        self._places.make_directory(table)
        return table, None if cleanup is None else cleanup.id

    @runs(st.DropTable)
    def _drop_table(self, statement: st.DropTable, text: str) -> Receipt | None:
        """Run DROP TABLE: drop the table, AUTO CDC's tables beside it, and their directories, under
        EXCLUSIVE locks on all of them; for one of AUTO CDC's tables also on its target. If the
        table was dropped between the look-up and the lock, return None with IF EXISTS, and raise
        CatalogError without it. Files that cannot be deleted are only logged."""
        name = self._names.require_table(statement.name, text, at_a_glance=True).name
        with self._temporary.track(name), self._locked_transaction(text, *drop_locks(name)) as txn:
            if statement.if_exists and acid_table(self._metastore.glance(name)) is None:
                return None
            if cdc_names := self._cdc_names(name):
                txn.lock([exclusive_lock(cdc_name) for cdc_name in cdc_names], agent_info=text)
            cleanup = self._metastore.drop_table(name, txn_id=txn.id)
            self._delete_directories(cleanup)
            if cdc_names:
                self._clean_tables(cdc_names)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.AddColumns)
    def _add_columns(self, statement: st.AddColumns, text: str) -> Receipt:
        """Run ADD COLUMNS under the table's EXCLUSIVE lock. No file changes: old rows show NULL,
        even if the column has a DEFAULT, of which a note tells. Raise AnalysisError if a column
        exists already or its type is unknown, UnsupportedError if it is NOT NULL or its name is
        reserved."""
        table = self._names.require_table(statement.name, text)
        columns = alter.added_columns(table, statement, text, self.type_of(text))
        with self._locked_transaction(text, exclusive_lock(table.name)) as txn:
            self._metastore.alter_table(table.name, add_columns=columns, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id, notes=alter.added_columns_notes(columns))

    @runs(st.ChangeColumns, st.ReplaceColumns)
    def _alter_columns(self, statement: st.ChangeColumns | st.ReplaceColumns, text: str) -> Receipt:
        """Run CHANGE, RENAME, ALTER and REPLACE COLUMNS, under EXCLUSIVE locks on the table and, if
        a column gets a new name, on its tables of AUTO CDC. Properties, statistics and the state
        table get the new names; no file changes. Return a receipt without counts.

        Raises:
            AnalysisError: A column or type is wrong.
            UnsupportedError: Old files would show wrong values, something names the column, or
                records of AUTO CDC wait under its old name.
            ConstraintError: A row has a NULL in a column that becomes NOT NULL; a job reads the
                rows.
        """
        type_of = self.type_of(text)
        table = self._names.require_table(statement.name, text)
        # These raise before a transaction is opened.
        altered = alter.altered_columns(table, statement, text, type_of)
        refuse_version_columns(self._state_table(table), altered.new_names, text)
        refuse_referenced_names(self._metastore, table, altered.new_names, text)
        cdc_names = self._cdc_names(table.name) if altered.names else []
        with self._locked_transaction(text, *map(exclusive_lock, [table.name, *cdc_names])) as txn:
            table = self._look_up_again(table.name)
            altered = alter.altered_columns(table, statement, text, type_of)
            self._refuse_while_records_wait(table, altered.new_names, txn, text)
            kept_statistics = self._metastore.statistics(table.name) if altered.names else {}
            entries = statistics.entries_with_new_names(table, altered.names, kept_statistics)
            if table.columns != altered.columns:
                require_conditions(self._context, replace(table, columns=altered.columns))
            self._existing.require_readable(table, altered.columns, txn)
            self._existing.require_values(table, altered.newly_required, txn)
            self._metastore.alter_table(
                table.name,
                columns=altered.columns,
                bucket_columns=altered.bucket_columns,
                sort_columns=altered.sort_columns,
                set_properties={
                    **altered.properties,
                    **{f"{STATISTICS}{key}": value for key, value in entries.items()},
                },
                cdc_table=self._renamed_state(table, altered.names),
                txn_id=txn.id,
            )
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    def _renamed_state(self, table: Table, names: Mapping[str, str]) -> Table | None:
        """Return the state table of a target, with the new names of the target's columns (old name
        → new name); None if there are no new names, or no state table. Nothing is changed."""
        state = self._state_table(table) if names else None
        return None if state is None else with_renamed_columns(state, names)

    def _state_table(self, table: Table) -> Table | None:
        """Return the state table that AUTO CDC has made beside a table; None: there is none."""
        state = self._own_cdc_table(table, cdc.state_name(table.name))
        return state if state is not None and is_state(state) else None

    def _refuse_while_records_wait(
        self, table: Table, new_names: Sequence[NewName], txn: Txn, text: str
    ) -> None:
        """Raise UnsupportedError if columns get new names while records wait in AUTO CDC's table
        for the rest of their source transactions: these have the old names. Without new names
        nothing is checked."""
        pending = self._own_cdc_table(table, cdc.pending_name(table.name)) if new_names else None
        if pending is not None and self._existing.has_rows(pending, txn):
            raise rename_error(
                new_names[0], f"records wait in {pending.name} for the rest of their transactions, "
                "and have the column's old name.", text,
            )  # fmt: skip

    def _own_cdc_table(self, table: Table, name: TableName) -> Table | None:
        """Return the table of this name, if AUTO CDC has made it beside ``table`` and it still
        belongs to this very table; otherwise None. None, too, if the metastore keeps no such
        tables."""
        if not self._metastore.abilities.keeps_state_tables:
            return None
        cdc_table = acid_table(self._metastore.find(name))
        is_own = (
            cdc_table is not None
            and cdc.is_cdc_table(cdc_table)
            and cdc.belongs_to(cdc_table, table)
        )
        return cdc_table if is_own else None

    @runs(st.SetTableProperties)
    def _set_table_properties(self, statement: st.SetTableProperties, text: str) -> Receipt:
        """Run SET TBLPROPERTIES under the table's EXCLUSIVE lock, and return a receipt. An
        insert-only table may become full-ACID, if its files, which are looked at then, allow that.
        A property that the table cannot have raises AnalysisError or UnsupportedError before a
        transaction begins."""
        table = self._names.require_table(statement.name, text)
        name = table.name
        table_properties.property_changes(
            table, statement, text
        )  # raises before a transaction is opened
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            table = self._look_up_again(name)
            changes = table_properties.property_changes(table, statement, text)
            if changes.becomes_full_acid:
                self._places.check_full_acid(table, self._metastore.partitions(name))
            self._metastore.alter_table(name, set_properties=changes.values, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.UnsetTableProperties)
    def _unset_table_properties(self, statement: st.UnsetTableProperties, text: str) -> Receipt:
        """Run UNSET TBLPROPERTIES under the table's EXCLUSIVE lock. Raise AnalysisError for a
        property that the table does not have, without IF EXISTS, and UnsupportedError for one that
        describes its files."""
        table = self._names.require_table(statement.name, text)
        name = table.name
        table_properties.check_unset(table, statement, text)
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            table_properties.check_unset(self._look_up_again(name), statement, text)
            self._metastore.alter_table(name, unset_properties=statement.keys, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    @runs(st.ConvertTable)
    def _convert_table(self, statement: st.ConvertTable, text: str) -> Receipt:
        """Turn a plain table of the metastore into a full-ACID table, in place and under its
        EXCLUSIVE lock: files without a bucket id in their names get Hive's names, and the rows are
        counted for the statistics. The receipt has notes about the files. Raise UnsupportedError if
        the table, and CatalogError if its files or partitions do not allow that."""
        name = self._require_convertible_table(
            statement, text
        ).name  # raises before a transaction is opened
        with self._locked_transaction(text, exclusive_lock(name)) as txn:
            foreign_table = self._require_convertible_table(statement, text)
            notes, rows = self._places.convert_files(
                foreign_table.need_table(), foreign_table.partitions
            )
            self._metastore.make_transactional(name, rows, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id, notes=notes)

    def _require_convertible_table(self, statement: st.ConvertTable, text: str) -> ForeignTable:
        """Look up the plain table that CONVERT TO ACID, or SET TBLPROPERTIES
        ('transactional'='true'), names, and return it with its partitions. Raise UnsupportedError
        if there is no such table in the metastore, if Spark has it or it is an ACID table already,
        or if it cannot become full-ACID in place."""
        parts = statement.name.parts
        entry, foreign_table = self._names.find_entry(parts, at_a_glance=True), None
        if isinstance(entry, ForeignTable) and not self._names.is_in_spark(parts):
            foreign_table = self._metastore.with_partitions(entry)
        is_acid = acid_table(entry) is not None
        return table_properties.require_convertible(foreign_table, is_acid, statement, text)

    @runs(st.SetFileFormat)
    def _set_file_format(self, statement: st.SetFileFormat, text: str) -> None:
        """Run SET FILEFORMAT, which changes nothing and returns nothing: it is refused
        (UnsupportedError) unless the table has this format already."""
        table = self._names.require_table(statement.name, text)
        if statement.file_format.lower() != table.file_format:
            raise UnsupportedError(
                f"The files of {table.name} stay {table.file_format.upper()}. CREATE TABLE … "
                f"STORED AS … AS SELECT * FROM {table.name} copies the rows into other files.",
                text, statement.place.start, statement.place.end,
                condition="UNSUPPORTED_FEATURE.FILE_FORMAT",
            )  # fmt: skip

    @runs(st.RenameTable)
    def _rename_table(self, statement: st.RenameTable, text: str) -> Receipt:
        """Run RENAME TO: rename a table, and AUTO CDC's tables beside it, under EXCLUSIVE locks on
        all old and new names. Its directory stays. Raise TxnError if this session itself (LOCK
        TABLE) holds a lock on the table or a partition, and CatalogError if the new name is
        taken."""
        name = self._names.require_table(statement.name, text, at_a_glance=True).name
        new_name = self._names.new_table_name(statement.new_name, text)
        new_name = (
            new_name if name.session_txn_id is None else new_name.for_session(name.session_txn_id)
        )
        self._names.require_free_name(statement.new_name, new_name)
        if locks_on_table(name, self._txns.session_locks.held_locks()):
            message = f"This session holds a lock on the name {name}. Say UNLOCK TABLE first."
            raise TxnError(message, condition="SESSION_HOLDS_LOCK", sqlstate="25001")
        noting = self._temporary.track
        locked = self._locked_transaction(text, *drop_locks(name), exclusive_lock(new_name))
        with noting(name), noting(new_name), locked as txn:
            if cdc_names := self._cdc_names(name):
                pairs = zip(cdc.cdc_table_names(name), cdc.cdc_table_names(new_name), strict=True)
                cdc_renames = [pair for pair in pairs if pair[0] in cdc_names]
                for _, new_cdc_name in cdc_renames:
                    need_name(new_cdc_name.name, statement.new_name, text)  # it may be too long
                txn.lock(
                    [exclusive_lock(cdc_name) for pair in cdc_renames for cdc_name in pair],
                    agent_info=text,
                )
            self._metastore.rename_table(name, new_name, txn_id=txn.id)
            txn.end_quietly()
        return Receipt(text, txn_id=txn.id)

    def _cdc_names(self, name: TableName) -> list[TableName]:
        """Return the names of the existing tables that are called like AUTO CDC's tables beside
        this table, whoever made them. The store drops and renames them together with the table."""
        if not self._metastore.abilities.keeps_state_tables:
            return []
        return [
            cdc_name
            for cdc_name in cdc.cdc_table_names(name)
            if acid_table(self._metastore.find(cdc_name))
        ]

    # ── parts of several statements ──────────────────────────────────────────────────────────

    def has_nothing_to_create_or_replace(self, statement: st.CreateTable, name: TableName) -> bool:
        """Whether IF NOT EXISTS leaves nothing to do, because a table or view of the name exists.
        With OR REPLACE the result is False, although an ACID table may exist.

        Raises:
            CatalogError: The name is taken, and the statement has neither IF NOT EXISTS nor an OR
                REPLACE that can replace what has the name: a view and a table of Spark's stay.
            UnsupportedError: OR REPLACE, and the metastore cannot replace tables.
        """
        entry = self._metastore.find(name)
        if statement.or_replace and view_of(entry) is None:
            self._refuse_to_replace(statement, name)
            return False
        existing_kind = (
            "a view" if view_of(entry) else "an ACID table" if acid_table(entry) else None
        )
        return self._has_nothing_to_create(statement, name, existing_kind)

    def _refuse_to_replace(self, statement: st.CreateTable, name: TableName) -> None:
        """Raise an error if OR REPLACE cannot replace what has this name: the metastore cannot
        replace tables (UnsupportedError), or the name is Spark's (CatalogError)."""
        if not self._metastore.abilities.replaces_tables:
            raise UnsupportedError(
                "CREATE OR REPLACE TABLE needs acidsql's own metastore. A Hive Metastore cannot "
                "replace a table in one step, so others would find none in between. INSERT "
                "OVERWRITE replaces the rows; DROP TABLE and CREATE TABLE replace the table.",
                condition="UNSUPPORTED_FEATURE.REPLACE_TABLE",
            )
        if acid_table(self._catalog.find(name)) is None:
            self._names.require_free_name(statement.name, name)

    def _location(self, statement: st.CreateTable, name: TableName) -> str:
        """Return the directory of a new table: its LOCATION, or a directory with the table's name
        in the database's. Nothing is made. Raise CatalogError if the LOCATION cannot be used or,
        without LOCATION, if there is no such database."""
        if statement.location is not None:
            return normalized_location(sparks_location(statement.location))
        database = self._metastore.get_database(name.database)
        if database is None:
            raise CatalogError(
                missing_database_text(self._metastore, name.database),
                condition="SCHEMA_NOT_FOUND", sqlstate="42704", database=name.database,
            )  # fmt: skip
        return f"{real_location(database.location)}/{directory_name(name.name)}"

    def _clean_tables(self, names: Sequence[TableName]) -> None:
        """Delete the directories of these dropped tables, except those of tables that another table
        has replaced, which readers may still need. Errors are only logged."""
        try:
            pending = self._metastore.pending_cleanups()
        except AcidSqlError as error:
            _log.warning("Dropped tables are still to be deleted: %s", error)
            return
        self._delete_directories(
            *(cleanup for cleanup in pending if cleanup.table in names and not cleanup.until)
        )

    def type_of(self, text: str) -> Callable[[Span], HiveType]:
        """Return a function that returns the type of an expression, which is given by its span in
        ``text``. The function lets Spark analyse the expression, and raises SqlError if Spark
        cannot."""

        def type_of(span: Span) -> HiveType:
            return lower.fields(self._spark, Text(text).raw("SELECT ").user(span), {})[0][1]

        return type_of
