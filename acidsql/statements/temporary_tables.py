"""The temporary tables of a session: it alone names them, and they end with it.

The metastore keeps such a table under a name that ends with the number of a SESSION transaction
(``TableName.holder``). The first temporary table opens this transaction. Its heartbeat is the
session's sign of life: if it stops, the cleaner drops the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from acidsql.acid.table import TableName
from acidsql.compaction.dropped import drop_temporary
from acidsql.errors import AcidSqlError, TxnError, UnsupportedError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore, TxnType
from acidsql.txn import Txn, TxnManager

_log = logging.getLogger(__name__)


class TemporaryTables:
    """The temporary tables of one session.

    Attributes:
        names: The name that people say → the name under which the metastore keeps the table.
    """

    def __init__(self, metastore: Metastore, txns: TxnManager) -> None:
        self._metastore, self._txns = metastore, txns
        self._names: dict[TableName, TableName] = {}
        self._holder: Txn | None = None

    @property
    def names(self) -> Mapping[TableName, TableName]:
        return self._names

    def need_kept(self) -> None:
        """Check that the tables are still there. A loss is told once: then the names mean other
        tables, or none.

        Raises:
            TxnError: TEMPORARY_TABLES_LOST: the session timed out, or others have dropped them.
            MetastoreError: The store cannot be reached.
        """
        if not self._names:
            return
        there: set[TableName] = set()
        if self._holder is not None and self._holder.is_alive:
            there = {*self._metastore.temporary_tables()}
        # Otherwise, the cleaner may drop them at any moment.
        lost = [name for name, kept in [*self._names.items()] if kept not in there]
        self._forget(lost)
        if lost:
            raise TxnError(
                f"This session has lost its temporary tables {', '.join(map(str, lost))}: the "
                "transaction that kept them has ended, or their database was dropped. The names "
                "do not mean them any more: CREATE TEMPORARY TABLE makes them again.",
                condition="TEMPORARY_TABLES_LOST",
            )

    def dropped_with(self, database: str) -> None:
        """Note that the session has dropped a database with all that is in it."""
        self._forget([name for name in self._names if name.database == database])

    def _forget(self, names: list[TableName]) -> None:
        for name in names:
            self._names.pop(name, None)

    def new(self, name: TableName) -> TableName:
        """The name under which the metastore will keep a temporary table.

        Raises:
            UnsupportedError: The metastore has no temporary tables.
        """
        if not self._metastore.abilities.keeps_temporary_tables:
            raise UnsupportedError(
                "Temporary tables need acidsql's own metastore: a Hive Metastore does not know "
                "them, and each session of Hive keeps its own. A temporary view of Spark's, or a "
                "table that is dropped in the end, may serve.",
                condition="UNSUPPORTED_FEATURE.TEMPORARY_TABLE",
            )
        if self._holder is None or not self._holder.is_alive:
            self._holder = self._txns.open(
                agent_info="the temporary tables of a session", txn_type=TxnType.SESSION
            )
        return name.held_by(self._holder.id)

    @contextmanager
    def noting(self, name: TableName) -> Iterator[None]:
        """Create, drop or rename a table in the block. Afterwards the session knows by this name
        what the store has, whatever happened."""
        plain = TableName(name.database, name.shown)
        try:
            yield
        finally:
            if name.holder is not None and self._may_be_there(name):
                self._names[plain] = name
            elif name.holder is not None:
                self._names.pop(plain, None)

    def _may_be_there(self, name: TableName) -> bool:
        try:
            return acid_table(self._metastore.find(name)) is not None
        except AcidSqlError:
            return True  # ``need_kept`` asks again

    def close(self) -> None:
        """Drop the tables. The cleaner drops those for which that fails."""
        for name in self._names.values():
            try:
                drop_temporary(self._metastore, self._txns, name)
            except (AcidSqlError, OSError) as error:
                _log.warning("The temporary table %s is still to be dropped: %s", name, error)
        self._names.clear()
        if self._holder is not None:
            self._holder.end_quietly()
            self._holder = None
