"""The base class of statement families, their shared context, and the decorator ``@runs``.

A family is a class whose methods run statements. ``@runs`` marks a method with the types of the
statements that the method runs. From all families ``wiring`` makes one table of methods.
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
from acidsql.plan.standins.names import NameResolver
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.current_txn import Transactions
from acidsql.statements.context.partition_specs import Partitions
from acidsql.statements.context.result import Receipt, ReceiptWithRows
from acidsql.statements.context.snapshot_catalog import SnapshotCatalog
from acidsql.statements.context.spark_databases import SparkDatabases
from acidsql.statements.context.temporary_tables import TemporaryTables
from acidsql.storage.writing.warm_workers import warm_workers
from acidsql.txn import Txn, TxnManager

_log = logging.getLogger(__name__)
# Runs a statement; the arguments are the statement and its text. The result is rows, a receipt if
# something changed, both, or None.
Handler = Callable[[Any, str], DataFrame | Receipt | ReceiptWithRows | None]
_Method = TypeVar("_Method", bound=Callable[..., DataFrame | Receipt | ReceiptWithRows | None])


@dataclass(frozen=True, slots=True)
class Context:
    """One session, for the code that runs its statements.

    Attributes:
        spark: The Spark session.
        metastore: Keeps tables and transactions.
        txns: Opens transactions, and has the session's settings.
        transactions: The transaction in which a statement runs, and the snapshot of its reads.
        catalog: Tables and partitions as the snapshot of reads sees them.
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
    catalog: SnapshotCatalog
    names: NameResolver
    databases: SparkDatabases
    partitions: Partitions
    temporary: TemporaryTables
    host: str

    def warm_workers(self) -> None:
        """Start Spark's Python workers in the background, once, so that they are ready for the
        statement's job. Without ``acidsql.warm.workers=statement`` do nothing."""
        if self.txns.settings.warm_workers == "statement":
            warm_workers(self.spark)


class Family:
    """A family of statements. Methods marked with ``@runs`` run the statements."""

    def __init__(self, context: Context) -> None:
        self._spark, self._metastore = context.spark, context.metastore
        self._txns, self._transactions = context.txns, context.transactions
        self._catalog, self._names = context.catalog, context.names
        self._partitions, self._temporary = context.partitions, context.temporary
        self._spark_databases = context.databases

    @contextmanager
    def _locked_transaction(self, text: str, *locks: LockComponent) -> Iterator[Txn]:
        """Yield a new transaction for one statement, after it has got these locks; this may wait.
        It is aborted unless the block ends it."""
        with self._txns.open(agent_info=text) as txn:
            txn.lock(locks, agent_info=text)
            yield txn

    def _look_up_again(self, name: TableName) -> Table:
        """Return an ACID table as it is now in the catalog: it may have changed while the statement
        waited for its lock. Raise CatalogError if it was dropped, or if a view or another table
        has the name now."""
        table = acid_table(self._catalog.find(name))
        if table is None:
            raise CatalogError(f"Table {name} was dropped meanwhile.", table=name)
        return table

    def _delete_directories(self, *cleanups: PendingCleanup | None) -> None:
        """Delete the directories of dropped tables, whose drop is committed. None is passed over.
        Errors are only logged: the next statement that needs such a directory deletes it."""
        for cleanup in filter(None, cleanups):
            try:
                delete_dropped(self._metastore, cleanup)
            except (AcidSqlError, OSError) as error:
                _log.warning("%s is still to be deleted: %s", cleanup.location, error)

    def _target_partitions(self, table: Table, partition: str | None) -> Sequence[str | None]:
        """Return the names of the partitions that a method's argument means: [``partition``], or
        all partitions if it is None; [] if a partitioned table has none yet. For an unpartitioned
        table the result is [None].

        Raises:
            CatalogError: There is no partition of this name, or the table is not partitioned.
        """
        if not table.partition_columns:
            if partition is not None:
                raise CatalogError(f"{table.name} is not partitioned.", table=table.name)
            return [None]
        partition_names = self._catalog.partition_names(table)
        if partition is not None and partition not in partition_names:
            raise CatalogError(
                f"{table.name} has no partition '{partition}'.",
                condition="PARTITIONS_NOT_FOUND", sqlstate="428FT", table=table.name,
            )  # fmt: skip
        return partition_names if partition is None else [partition]

    def _has_nothing_to_create(
        self, statement: st.CreateTable | st.CreateView, name: TableName, existing_kind: str | None
    ) -> bool:
        """Whether IF NOT EXISTS leaves nothing to do, because the name is taken. False: the name is
        free.

        Args:
            statement: The statement.
            name: The full name of the new table or view.
            existing_kind: What has this name in the metastore, in words, such as "a view"; None:
                nothing.

        Raises:
            CatalogError: The name is taken, also by Spark, and there is no IF NOT EXISTS.
        """
        if statement.if_not_exists and (
            existing_kind or self._names.is_name_taken(statement.name, name)
        ):
            return True
        if existing_kind is None:
            self._names.require_free_name(statement.name, name)
            return False
        raise CatalogError(
            f"There is {existing_kind} {name} already.",
            condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=name,
        )  # fmt: skip

    def handlers(self) -> dict[type, Handler]:
        """Return, for each type of statement that this family runs, the method, bound to this
        object. Methods of base classes are included."""
        return {
            kind: getattr(self, name)
            for family in type(self).__mro__
            for name, method in vars(family).items()
            for kind in getattr(method, "statement_types", ())
        }


def runs(*kinds: type) -> Callable[[_Method], _Method]:
    """Mark a family's method: it runs the statements of these types. The method gets the attribute
    ``statement_types``."""

    def mark(method: _Method) -> _Method:
        method.statement_types = kinds  # type: ignore[attr-defined]
        return method

    return mark


def all_handlers(families: Iterable[Family]) -> dict[type, Handler]:
    """Return the method that runs a statement, for each type of statement. No two families may run
    one type (an assertion)."""
    handlers: dict[type, Handler] = {}
    for family in families:
        family_handlers = family.handlers()
        assert handlers.keys().isdisjoint(family_handlers), (
            f"{type(family).__name__} runs another's statement"
        )
        handlers.update(family_handlers)
    return handlers
