"""*Hold*: take a statement's locks, then the snapshot under the locks (I6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acidsql.acid.table import Table
from acidsql.errors import CatalogError
from acidsql.metastore.interface import LockComponent
from acidsql.plan.locking import Touched, exclusive, locks_of, read_lock
from acidsql.plan.rewrite import Prepared
from acidsql.sql import statements as st
from acidsql.statements.family import Context
from acidsql.statements.prepare import Changing, Preparer
from acidsql.statements.statement_text import StatementText
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.txn import Snapshot, Txn


@dataclass(frozen=True, slots=True)
class Held:
    """A statement whose locks are held.

    Attributes:
        prepared: The statement.
        touched: For each query, the partitions that the query can change. None means any.
        snapshot: The snapshot that was taken under the locks.
    """

    prepared: Prepared
    touched: Sequence[Touched]
    snapshot: Snapshot


class Holder:
    """Takes the locks of the statements that change rows, for one session."""

    def __init__(self, context: Context, preparer: Preparer) -> None:
        self._context, self._preparer = context, preparer

    def hold(self, txn: Txn, statement: Changing, said: StatementText, prepared: Prepared) -> Held:
        """Take the locks, then the snapshot.

        If a table or its partitions changed before the locks were granted, prepare the statement
        again. The second time lock each target table as a whole, so that two rounds are enough.

        Raises:
            CatalogError: The directory of a target is not there.
        """
        held = self._held(txn, statement, said, prepared)
        if self._context.metastore.abilities.shared_with_hive:
            for query in held.prepared.queries:
                _need_place(query.table)
        return held

    def _held(self, txn: Txn, statement: Changing, said: StatementText, prepared: Prepared) -> Held:
        is_first = not txn.has_looked
        touched = self._touched(prepared, said)
        txn.lock(self._locks(statement, prepared, touched), agent_info=said.text)
        snapshot = txn.snapshot(prepared.reads)
        # If an earlier statement took the snapshot, newer partitions have no visible rows.
        is_whole = not is_first or self._covers(touched, prepared, said)
        if is_whole and self._is_current(prepared.tables):
            return Held(prepared, touched, snapshot)
        if is_first:
            txn.forget_snapshot()
        again = self._preparer.prepare_change(statement, said)
        whole = self._locks(statement, again, [None] * len(again.queries))
        txn.lock(whole, agent_info=said.text)
        return Held(again, self._touched(again, said), txn.snapshot(again.reads))

    def locks(
        self, statement: Changing, prepared: Prepared, said: StatementText
    ) -> list[LockComponent]:
        """The locks that ``hold`` would take now."""
        return self._locks(statement, prepared, self._touched(prepared, said))

    def _locks(
        self, statement: Changing, prepared: Prepared, touched: Sequence[Touched]
    ) -> list[LockComponent]:
        targets = zip(prepared.queries, touched, strict=True)
        altering = [] if prepared.before is None else [exclusive(prepared.before.name)]
        return altering + locks_of(statement, targets, prepared.reads, self._context.txns.settings)

    def _touched(self, prepared: Prepared, said: StatementText) -> list[Touched]:
        return [
            self._context.partitions.possible_partitions(query, said) for query in prepared.queries
        ]

    def _covers(self, touched: Sequence[Touched], prepared: Prepared, said: StatementText) -> bool:
        """Whether the locked partitions are still all that the statement can change."""
        for query, before in zip(prepared.queries, touched, strict=True):
            if query.partitions is not None and before is not None:
                now = self._context.partitions.possible_partitions(query, said)
                if now is None or not set(now) <= set(before):
                    return False
        return True

    def current(
        self, txn: Txn, statement: st.CreateTable, said: StatementText, prepared: Prepared
    ) -> Prepared:
        """A CREATE TABLE … AS SELECT, over the tables as they are under its locks."""
        if self._is_current(one.table for one in prepared.standins):
            return prepared
        again = self._preparer.prepare_create_as_select(statement, said)
        txn.lock([*map(read_lock, again.reads)], agent_info=said.text)
        return again

    def _is_current(self, tables: Iterable[Table]) -> bool:
        """Whether these tables and views are still as they were looked up."""
        transactions = self._context.transactions

        def is_same(one: Table) -> bool:
            is_plain = one.view is None and not one.is_transactional
            return is_plain or transactions.find(one.name) == one

        return all(map(is_same, tables))


def _need_place(table: Table) -> None:
    """Refuse a table without a directory, which would be made elsewhere than where others see it.

    Hive's server makes the directory together with the table. So if it is missing, its file system
    is not mounted on this machine, for example.
    """
    if not filesystem_for(table.location).exists(table.location):
        raise CatalogError(
            f"The directory '{table.location}' of {table.name} cannot be seen from this machine. "
            "The same path must lead to the same files here and in Hive: mount the file system. "
            "acidsql hive-check tries the directories of all tables.",
            condition="PATH_NOT_FOUND", sqlstate="42K03", path=table.location,
        )  # fmt: skip
