"""*Hold*: take a statement's locks, then the snapshot under the locks (I6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acidsql.acid.table import Table
from acidsql.errors import CatalogError
from acidsql.metastore.interface import LockComponent
from acidsql.plan.locking import PossiblePartitions, exclusive_lock, read_lock, statement_locks
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import PartitionSearch
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText
from acidsql.statements.dml.prepare import Changing, Preparer
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.txn import Snapshot, Txn


@dataclass(frozen=True, slots=True)
class LockedStatement:
    """A statement whose locks are held.

    Attributes:
        prepared: The prepared statement.
        possible_partitions: For each query, the partitions that it can change; None: any.
        snapshot: The snapshot that was taken under the locks.
    """

    prepared: PreparedStatement
    possible_partitions: Sequence[PossiblePartitions]
    snapshot: Snapshot


class Holder:
    """Takes the locks of the statements that change rows, for one session."""

    def __init__(self, context: Context, preparer: Preparer) -> None:
        self._context, self._preparer = context, preparer

    def hold(
        self,
        txn: Txn,
        statement: Changing,
        statement_text: StatementText,
        prepared: PreparedStatement,
    ) -> LockedStatement:
        """Take the locks of a statement on its targets and on each table that it reads, then the
        snapshot. This waits while others hold conflicting locks.

        If a table or view that it reads or writes changed before the locks were granted, or if its
        condition now means other partitions than the locked ones, the statement is prepared again.
        The second time each target table is locked as a whole, so that two rounds are enough. The
        result has the statement as it was prepared last.

        Raises:
            SqlError: A table was dropped or changed meanwhile, and the statement no longer fits it.
            CatalogError: A target's directory is missing, over a Hive Metastore.
            TxnError: A lock was not granted in time, or the transaction has ended.
        """
        locked = self._lock_and_take_snapshot(txn, statement, statement_text, prepared)
        if self._context.metastore.abilities.shared_with_hive:
            for query in locked.prepared.queries:
                _check_directory(query.table)
        return locked

    def _lock_and_take_snapshot(
        self,
        txn: Txn,
        statement: Changing,
        statement_text: StatementText,
        prepared: PreparedStatement,
    ) -> LockedStatement:
        """Take a statement's locks, then the snapshot. If a table or view that it reads or writes
        has changed since the statement was prepared, or its condition now means partitions without
        a lock, prepare it again, lock its targets as a whole, and take a new snapshot. A snapshot
        that an earlier statement of the transaction took stays; then partitions are not compared,
        because newer ones have no visible rows."""
        is_first = not txn.has_snapshot
        possible_partitions = self._possible_partitions_by_query(prepared, statement_text)
        txn.lock(
            self._lock_components(statement, prepared, possible_partitions),
            agent_info=statement_text.text,
        )
        snapshot = txn.snapshot(prepared.reads)
        # If an earlier statement took the snapshot, newer partitions have no visible rows.
        is_covered = not is_first or self._is_still_covered(
            possible_partitions, prepared, statement_text
        )
        if is_covered and self._is_current(prepared.tables):
            return LockedStatement(prepared, possible_partitions, snapshot)
        if is_first:
            txn.forget_snapshot()
        prepared_again = self._preparer.prepare_change(statement, statement_text)
        whole_table_locks = self._lock_components(
            statement, prepared_again, [None] * len(prepared_again.queries)
        )
        txn.lock(whole_table_locks, agent_info=statement_text.text)
        return LockedStatement(
            prepared_again,
            self._possible_partitions_by_query(prepared_again, statement_text),
            txn.snapshot(prepared_again.reads),
        )

    def locks(
        self, statement: Changing, prepared: PreparedStatement, statement_text: StatementText
    ) -> list[LockComponent]:
        """Return the locks that ``hold`` would take now, without taking them. Spark may run a job
        to find the partitions."""
        return self._lock_components(
            statement, prepared, self._possible_partitions_by_query(prepared, statement_text)
        )

    def _lock_components(
        self,
        statement: Changing,
        prepared: PreparedStatement,
        possible_partitions: Sequence[PossiblePartitions],
    ) -> list[LockComponent]:
        """Return the locks that a statement needs if its queries change ``possible_partitions``
        (one item for each query; None: any): those on the targets, then a shared one on each table
        that it reads. An EXCLUSIVE lock on the target comes first if the commit changes the
        target's columns. Nothing is locked."""
        targets = zip(prepared.queries, possible_partitions, strict=True)
        altering_locks = (
            [] if prepared.table_before is None else [exclusive_lock(prepared.table_before.name)]
        )
        return altering_locks + statement_locks(
            statement, targets, prepared.reads, self._context.txns.settings
        )

    def _possible_partitions_by_query(
        self, prepared: PreparedStatement, statement_text: StatementText
    ) -> list[PossiblePartitions]:
        """Return, for each query of the statement, the names of the partitions that it can change;
        None if these may be any, or if the table is unpartitioned (see
        ``Partitions.possible_partitions``). Spark may run a job."""
        return [
            self._context.partitions.possible_partitions(query, statement_text)
            for query in prepared.queries
        ]

    def _is_still_covered(
        self,
        possible_partitions: Sequence[PossiblePartitions],
        prepared: PreparedStatement,
        statement_text: StatementText,
    ) -> bool:
        """Whether the queries' conditions, evaluated again under the locks, mean no other
        partitions than those that are locked: ``possible_partitions``, one item for each query;
        None: all. A query without such a condition (``PartitionSearch``) counts as covered. Spark
        may run a job."""
        for query, locked_partitions in zip(prepared.queries, possible_partitions, strict=True):
            if isinstance(query.partitions, PartitionSearch) and locked_partitions is not None:
                current_partitions = self._context.partitions.possible_partitions(
                    query, statement_text
                )
                if current_partitions is None or not set(current_partitions) <= set(
                    locked_partitions
                ):
                    return False
        return True

    def prepare_under_locks(
        self,
        txn: Txn,
        statement: st.CreateTable,
        statement_text: StatementText,
        prepared: PreparedStatement,
    ) -> PreparedStatement:
        """Prepare a CREATE TABLE … AS SELECT again, and take read locks on what it then reads, if
        an ACID table or view that it reads has changed since it was prepared; otherwise return
        ``prepared``, and lock nothing.

        So the query is prepared over the tables as they are under the locks.
        """
        if self._is_current(standin.table for standin in prepared.standins):
            return prepared
        prepared_again = self._preparer.prepare_create_as_select(statement, statement_text)
        txn.lock([*map(read_lock, prepared_again.reads)], agent_info=statement_text.text)
        return prepared_again

    def _is_current(self, tables: Iterable[Table]) -> bool:
        """Whether the catalog still has these ACID tables and views exactly as they were looked up,
        with equal columns, constraints and properties. Plain tables, which are not ACID, are not
        compared."""
        catalog = self._context.catalog

        def is_same(table: Table) -> bool:
            is_plain = table.view is None and not table.is_transactional
            return is_plain or catalog.find(table.name) == table

        return all(map(is_same, tables))


def _check_directory(table: Table) -> None:
    """Raise CatalogError if a table's directory cannot be seen from this machine: a new one would
    be in another place than others see.

    Hive's server makes the directory together with the table. So if the directory is missing, its
    file system may not be mounted here, for example.
    """
    if not filesystem_for(table.location).exists(table.location):
        raise CatalogError(
            f"The directory '{table.location}' of {table.name} cannot be seen from this machine. "
            "The same path must lead to the same files here and in Hive: mount the file system. "
            "acidsql hive-check tries the directories of all tables.",
            condition="PATH_NOT_FOUND", sqlstate="42K03", path=table.location,
        )  # fmt: skip
