"""The temporary tables of a session. No other session finds them, and they end with the session.

The metastore keeps such a table under a name that ends with the number of a SESSION transaction
(``TableName.session_txn_id``). The first temporary table opens this transaction. Its heartbeat is
the session's sign of life: if it stops, the cleaner drops the tables.
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
        names: The user's name of a table → the name under which the metastore keeps the table.
    """

    def __init__(self, metastore: Metastore, txns: TxnManager) -> None:
        self._metastore, self._txns = metastore, txns
        self._names: dict[TableName, TableName] = {}
        self._session_txn: Txn | None = None

    @property
    def names(self) -> Mapping[TableName, TableName]:
        return self._names

    def require_existing(self) -> None:
        """Raise TxnError if a temporary table of the session does not exist any more.

        Lost tables are removed from ``names``, so each loss is raised once. Afterwards their names
        mean other tables, or none.

        Raises:
            TxnError: TEMPORARY_TABLES_LOST: the session timed out, or others dropped the tables.
            MetastoreError: The store cannot be reached.
        """
        if not self._names:
            return
        existing_names: set[TableName] = set()
        if self._session_txn is not None and self._session_txn.is_alive:
            existing_names = {*self._metastore.temporary_tables()}
        # Without a live holder, the cleaner may drop the tables at any moment.
        lost_names = [
            name
            for name, stored_name in [*self._names.items()]
            if stored_name not in existing_names
        ]
        self._forget(lost_names)
        if lost_names:
            raise TxnError(
                f"This session has lost its temporary tables {', '.join(map(str, lost_names))}: "
                "the transaction that kept them has ended, or their database was dropped. The "
                "names do not mean them any more: CREATE TEMPORARY TABLE makes them again.",
                condition="TEMPORARY_TABLES_LOST",
            )

    def forget_database(self, database: str) -> None:
        """Remove the temporary tables of a dropped database from ``names``."""
        self._forget([name for name in self._names if name.database == database])

    def _forget(self, names: list[TableName]) -> None:
        for name in names:
            self._names.pop(name, None)

    def new_stored_name(self, name: TableName) -> TableName:
        """Return the name under which the metastore will keep a temporary table. The first call, or
        one after a time-out, opens the transaction whose heartbeat keeps the tables. No table is
        created.

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
        if self._session_txn is None or not self._session_txn.is_alive:
            self._session_txn = self._txns.open(
                agent_info="the temporary tables of a session", txn_type=TxnType.SESSION
            )
        return name.for_session(self._session_txn.id)

    @contextmanager
    def track(self, name: TableName) -> Iterator[None]:
        """Update ``names`` after a block that creates, drops or renames a temporary table: then
        ``names`` has the table if the metastore has it, also if the block fails. For a table that
        is not temporary nothing is done."""
        user_name = TableName(name.database, name.shown)
        try:
            yield
        finally:
            if name.session_txn_id is not None and self._may_exist(name):
                self._names[user_name] = name
            elif name.session_txn_id is not None:
                self._names.pop(user_name, None)

    def _may_exist(self, name: TableName) -> bool:
        """Whether the metastore has an ACID table of this name; also true if the look-up fails."""
        try:
            return acid_table(self._metastore.find(name)) is not None
        except AcidSqlError:
            return True  # ``require_existing`` asks again

    def close(self) -> None:
        """Drop the temporary tables, and end the transaction that keeps them. An error is only
        logged: then the cleaner drops the table later."""
        for name in self._names.values():
            try:
                drop_temporary(self._metastore, self._txns, name)
            except (AcidSqlError, OSError) as error:
                _log.warning("The temporary table %s is still to be dropped: %s", name, error)
        self._names.clear()
        if self._session_txn is not None:
            self._session_txn.end_quietly()
            self._session_txn = None
