"""What the statement families of one session share: a context, and ``@runs``.

A family is a class whose methods run statements. ``@runs`` says at a method which statements the
method runs. The runner asks all families once and gets one table of methods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table, TableName
from acidsql.compaction.dropped import delete_dropped
from acidsql.errors import AcidSqlError, CatalogError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import LockComponent, Metastore
from acidsql.metastore.owners import PendingCleanup
from acidsql.plan.names import Names
from acidsql.sql import statements as st
from acidsql.statements.current_txn import Transactions
from acidsql.statements.partition_specs import Partitions
from acidsql.statements.result import Receipt
from acidsql.statements.spark_databases import SparkDatabases
from acidsql.statements.temporary_tables import TemporaryTables
from acidsql.txn import Txn, TxnManager

_log = logging.getLogger(__name__)
# Runs a statement, given with its text. Returns rows, a receipt if something changed, or None.
Handler = Callable[[Any, str], DataFrame | Receipt | None]
_Method = TypeVar("_Method", bound=Callable[..., DataFrame | Receipt | None])


@dataclass(frozen=True, slots=True)
class Context:
    """One session, for the code that runs its statements.

    Attributes:
        spark: The Spark session.
        metastore: Keeps tables and transactions.
        txns: Opens transactions, and has the session's settings.
        transactions: The current transaction: which one a statement runs in, what its reads see.
        names: Finds the ACID table of a name.
        databases: The databases in Spark's own catalog with the names of ACID databases.
        partitions: Finds the partitions that a statement names.
        temporary: The session's temporary tables.
        host: The host of this process, shown to other sessions.
    """

    spark: SparkSession
    metastore: Metastore
    txns: TxnManager
    transactions: Transactions
    names: Names
    databases: SparkDatabases
    partitions: Partitions
    temporary: TemporaryTables
    host: str


class Family:
    """A family of statements. Methods marked with ``@runs`` run the statements."""

    def __init__(self, context: Context) -> None:
        self._spark, self._metastore = context.spark, context.metastore
        self._txns, self._transactions = context.txns, context.transactions
        self._names, self._partitions = context.names, context.partitions
        self._sparks, self._temporary = context.databases, context.temporary

    @contextmanager
    def _locked(self, text: str, *locks: LockComponent) -> Iterator[Txn]:
        """A transaction of a statement's own, which holds these locks."""
        with self._txns.open(agent_info=text) as txn:
            txn.lock(locks, agent_info=text)
            yield txn

    def _again(self, name: TableName) -> Table:
        """Look the table up under the lock: it may have changed while the statement waited."""
        table = acid_table(self._transactions.find(name))
        if table is None:
            raise CatalogError(f"Table {name} was dropped meanwhile.", table=name)
        return table

    def _clean(self, *cleanups: PendingCleanup | None) -> None:
        """Delete the directories of dropped tables.

        The store has decided, so the statement has happened. If deleting files fails now, the next
        statement that needs the directory finishes the work. The locks end with a time-out.
        """
        for cleanup in filter(None, cleanups):
            try:
                delete_dropped(self._metastore, cleanup)
            except (AcidSqlError, OSError) as error:
                _log.warning("%s is still to be deleted: %s", cleanup.location, error)

    def _targets(self, table: Table, partition: str | None) -> Sequence[str | None]:
        """The partitions that a method's argument names; [None] for an unpartitioned table.

        Raises:
            CatalogError: There is no such partition.
        """
        if not table.partition_columns:
            if partition is not None:
                raise CatalogError(f"{table.name} is not partitioned.", table=table.name)
            return [None]
        known = self._transactions.partition_names(table)
        if partition is not None and partition not in known:
            raise CatalogError(
                f"{table.name} has no partition '{partition}'.",
                condition="PARTITIONS_NOT_FOUND", sqlstate="428FT", table=table.name,
            )  # fmt: skip
        return known if partition is None else [partition]

    def _is_taken(
        self, statement: st.CreateTable | st.CreateView, name: TableName, found: str | None
    ) -> bool:
        """Whether a name is taken, and IF NOT EXISTS leaves nothing to do.

        Args:
            statement: The statement.
            name: The full name of the new table or view.
            found: What has this name in the metastore, in words; None: nothing.

        Raises:
            CatalogError: The name is taken, also by Spark, and there is no IF NOT EXISTS.
        """
        if statement.if_not_exists and (found or self._names.is_name_taken(statement.name, name)):
            return True
        if found is None:
            self._names.require_free_name(statement.name, name)
            return False
        raise CatalogError(
            f"There is {found} {name} already.",
            condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=name,
        )  # fmt: skip

    def handlers(self) -> dict[type, Handler]:
        """The method for each type of statement that this family runs."""
        return {
            kind: getattr(self, name)
            for family in type(self).__mro__
            for name, method in vars(family).items()
            for kind in getattr(method, "statement_types", ())
        }


def runs(*kinds: type) -> Callable[[_Method], _Method]:
    """Mark a family's method: it runs the statements of these types."""

    def mark(method: _Method) -> _Method:
        method.statement_types = kinds  # type: ignore[attr-defined]
        return method

    return mark


def all_handlers(families: Iterable[Family]) -> dict[type, Handler]:
    """The one method that runs each type of statement."""
    found: dict[type, Handler] = {}
    for family in families:
        own = family.handlers()
        assert found.keys().isdisjoint(own), f"{type(family).__name__} runs another's statement"
        found.update(own)
    return found
