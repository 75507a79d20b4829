"""``export_to_hive`` and ``import_from_hive``: a table changes its metastore, its files stay."""

from __future__ import annotations

from acidsql.acid.table import TableName
from acidsql.api.core import SessionCore
from acidsql.api.opening import need_hive, open_hive
from acidsql.arguments import checked_while_open
from acidsql.errors import AnalysisError, SettingError
from acidsql.metastore.hive.wire.address import Address
from acidsql.plan.standins.names import refuse_temporary
from acidsql.sql.text.given_names import table_parts
from acidsql.statements.directories.moving import Move, Side


class Migration(SessionCore):
    """The methods of a session that move tables."""

    @checked_while_open
    def export_to_hive(self, table: str, *, metastore: str, name: str | None = None) -> None:
        """Move a table from this session's metastore to a Hive Metastore. No row is copied.

        The Hive Metastore gets the columns, partitions, properties and write ids. Then the table is
        taken from this session's metastore; its files stay. If the call is interrupted, nobody
        can use the table by acidsql until the same call is made again and ends the move.

        Args:
            table: ``table`` or ``database.table``.
            metastore: The Hive Metastore, ``thrift://host:9083``.
            name: The table's name there. Default: the same. If there is no such database, it is
                made.

        Raises:
            CatalogError: There is no such table, the name is taken, or the server refuses the
                directory: Hive 4 demands that it is inside of the server's warehouse, or of the
                database's managed directory.
            LockTimeoutError: Somebody reads or writes the table.
            UnsupportedError: Files of aborted transactions or unfinished compactions are left.
            MetastoreError: A metastore does not answer. Make the same call again.
            SettingError: This session's metastore is a Hive Metastore.
            TxnError: A transaction is open. End it first.
        """
        ours = self._movable_name(table)
        self._move_table(
            ours, ours if name is None else self._movable_name(name), metastore, to_hive=True
        )

    @checked_while_open
    def import_from_hive(self, table: str, *, metastore: str, name: str | None = None) -> None:
        """Move a table from a Hive Metastore to this session's metastore. No row is copied.

        The files stay in the directory of Hive's database. ``DROP DATABASE`` in Hive deletes this
        directory with all that is in it, and Hive gives it to a new table of the same name.

        Args:
            table: The table's name in the Hive Metastore, ``table`` or ``database.table``.
            metastore: The Hive Metastore, ``thrift://host:9083``.
            name: The table's name in this session's metastore. Default: the same.

        Raises:
            CatalogError: There is no such table, or the name is taken.
            LockTimeoutError: Somebody reads or writes the table.
            UnsupportedError: Files of aborted transactions or unfinished compactions are left.
            MetastoreError: A metastore does not answer. Make the same call again.
            SettingError: This session's metastore is a Hive Metastore.
            TxnError: A transaction is open. End it first.
        """
        hive_name = self._movable_name(table)
        session_name = hive_name if name is None else self._movable_name(name)
        self._move_table(session_name, hive_name, metastore, to_hive=False)

    def _movable_name(self, given_name: str) -> TableName:
        """Return the name of a table that is to be moved, with its database, by default the current
        one. Whether there is such a table is not checked.

        Raises:
            AnalysisError: The name has too many parts, or names what is Spark's.
            CatalogError: The text is no name of a table.
            UnsupportedError: The table is temporary.
        """
        table_name = self._runner.qualify(table_parts(given_name))
        if table_name is None:
            raise AnalysisError(f"'{given_name}' is not 'table' or 'database.table'.")
        refuse_temporary(table_name, "A move")
        return table_name

    def _move_table(
        self, session_name: TableName, hive_name: TableName, url: str, *, to_hive: bool
    ) -> None:
        """Move a table between this session's metastore and the Hive Metastore at ``url``, in
        either direction.

        Raises:
            SettingError: This session's metastore is a Hive Metastore, or the URL is none of one.
            TxnError: A transaction is open.
            AcidSqlError: Any other error of ``export_to_hive`` or ``import_from_hive``.
        """
        call = "export_to_hive" if to_hive else "import_from_hive"
        if self.metastore.abilities.shared_with_hive:
            raise SettingError(
                "This session's metastore is a Hive Metastore already. Open a session with "
                "acidsql's own metastore, and name the Hive Metastore in the call.",
                name="metastore",
            )
        need_hive(url)
        with self._lock:
            self._runner.transactions.require_autocommit(call)
            hive, _ = open_hive(url, None)
            try:
                locks = self._runner.session_locks
                session_side = Side(
                    self.metastore, session_name, f"warehouse {self.warehouse}", locks
                )
                hive_side = Side(hive, hive_name, str(Address.parse(url)))
                source, target = (session_side, hive_side) if to_hive else (hive_side, session_side)
                Move(source, target, call, **self._user_and_host).run()
            finally:
                hive.close()
