"""Runs BEGIN, COMMIT, ROLLBACK, SAVEPOINT, LOCK, UNLOCK, SET and ABORT TRANSACTIONS.

It also refuses the statements that cannot be part of a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, SettingError, TxnError, UnsupportedError
from acidsql.metastore.interface import LockComponent, LockInfo, LockType
from acidsql.metastore.locks import locks_on_table
from acidsql.settings import Settings
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Family, runs
from acidsql.statements.context.result import Counts, Receipt, ReceiptWithRows, receipt, rows_frame
from acidsql.statements.context.statement_text import statement_name
from acidsql.txn import SessionLocks

_DDL = (
    st.CreateTable, st.DropTable, st.AddColumns, st.AddFilledColumns, st.ChangeColumns,
    st.ReplaceColumns,
    st.SetTableProperties, st.UnsetTableProperties, st.SetFileFormat, st.AddPartitions,
    st.DropPartitions, st.RenamePartition, st.RenameTable,
    st.CreateView, st.AlterView, st.RenameView, st.DropView,
    st.CreateDatabase, st.AlterDatabase, st.DropDatabase, st.CompactTable, st.AbortCompactions,
    st.AddConstraint, st.DropConstraint, st.AnalyzeTable, st.AnalyzeTables, st.ConvertTable,
)  # fmt: skip
_CHANGES = (
    *_DDL,
    st.Insert,
    st.MultiInsert,
    st.Update,
    st.Delete,
    st.Merge,
    st.AutoCdc,
    st.Restore,
    st.RevertTransaction,
    st.TruncateTable,
    st.LoadData,
)


class TransactionStatements(Family):
    """Runs the statements about transactions, locks and settings for one session."""

    def require_allowed(self, statement: Any, text: str) -> None:
        """Refuse a statement that cannot be part of the open transaction or of ``acid.snapshot()``.
        Without either do nothing. ``text`` is not used.

        Raises:
            UnsupportedError: The statement cannot be undone (Hive: 20007 OP_NOT_ALLOWED_IN_TXN).
            TxnError: The statement changes something, and only reads are allowed here.
        """
        if self._transactions.is_autocommit:
            return
        spark_changes = isinstance(statement, st.SparkStatement) and (
            statement.effect is st.Effect.CHANGES
        )
        if isinstance(statement, _CHANGES) or spark_changes:
            self._transactions.require_writable(statement_name(statement))
        if isinstance(statement, _DDL) or spark_changes:
            transaction = self._transactions.require_transaction()
            raise UnsupportedError(
                f"{statement_name(statement)} cannot be part of a transaction, because it cannot "
                f"be undone: transaction {transaction.id} is open. COMMIT or ROLLBACK it first.",
                condition="OP_NOT_ALLOWED_IN_TXN",
                sqlstate="25001",
            )

    def replay_receipt(self, statement: Any, text: str) -> Receipt | None:
        """Return the receipt of a statement that must be skipped, because the open transaction
        replays an earlier one that has committed it. None: the statement must run, because the
        transaction is no replay, or the statement only reads.

        A replay skips statements that change something, and LOCK. The receipt has a count for each
        target of the statement. All counts are zero.
        """
        current = self._transactions.current
        entry = None if current is None else current.replayed_entry
        if entry is None or not isinstance(statement, (*_CHANGES, st.LockTable, st.LockDatabase)):
            return None
        counts = tuple(Counts(self._full_name(target)) for target in _targets(statement))
        return Receipt(text, counts, entry.txn_id, notes=(entry.skipped_note,))

    def _full_name(self, name: st.Name) -> str:
        return str(self._names.qualify(name.parts) or ".".join(name.parts))

    # ── BEGIN … COMMIT ───────────────────────────────────────────────────────────────────────

    @runs(st.StartTransaction)
    def _start_transaction(self, statement: st.StartTransaction, text: str) -> None:
        self._transactions.begin(text, read_only=statement.read_only)

    @runs(st.Commit)
    def _commit(self, statement: st.Commit, text: str) -> Receipt:
        """Run COMMIT, and return a receipt of all changes of the transaction. Raise TxnError in a
        ``with acid.transaction()`` block, if no transaction is open, or if it cannot be
        committed."""
        self._refuse_in_block("COMMIT")
        transaction = self._transactions.commit()
        writes = [write for work in transaction.works for write in work.published]
        return receipt(text, transaction.id, writes, {}, transaction.compaction)

    @runs(st.Rollback)
    def _rollback(self, statement: st.Rollback, text: str) -> None:
        """Run ROLLBACK, or ROLLBACK TO a savepoint. In a ``with acid.transaction()`` block only the
        latter is allowed. Raise TxnError if it is not, or there is no transaction or savepoint."""
        if statement.savepoint is not None:
            self._transactions.require_transaction().rollback(statement.savepoint.parts[-1])
            return
        self._refuse_in_block("ROLLBACK")
        self._transactions.rollback()

    @runs(st.Savepoint)
    def _savepoint(self, statement: st.Savepoint, text: str) -> None:
        self._transactions.require_transaction().savepoint(statement.name.parts[-1])

    @runs(st.ReleaseSavepoint)
    def _release_savepoint(self, statement: st.ReleaseSavepoint, text: str) -> None:
        self._transactions.require_transaction().release(statement.name.parts[-1])

    def _refuse_in_block(self, label: str) -> None:
        """Raise TxnError in a ``with acid.transaction()`` block, or if no transaction is open."""
        if self._transactions.require_transaction().in_block:
            raise TxnError(
                f"{label} inside of a 'with acid.transaction()' block: the block's end commits, an "
                "exception or the transaction's rollback() undoes.",
                condition="ACTIVE_SQL_TRANSACTION",
                sqlstate="25001",
            )

    # ── locks ────────────────────────────────────────────────────────────────────────────────

    @runs(st.LockTable)
    def _lock_table(self, statement: st.LockTable, text: str) -> None:
        """Run LOCK TABLE: take a SHARED_READ or EXCLUSIVE lock for the open transaction or else for
        the session; with PARTITION, one on each existing partition that it means. This may wait.
        Raise AnalysisError if there is no such partition."""
        table = self._names.require_table(statement.name, text)
        partitions: Sequence[str | None] = [None]
        if statement.partition:
            partitions = self._partitions.matching_partitions(table, [statement.partition], text)
        self._acquire_locks(
            [_table_lock(statement.exclusive, table.name, partition) for partition in partitions],
            text,
        )

    @runs(st.LockDatabase)
    def _lock_database(self, statement: st.LockDatabase, text: str) -> None:
        """Run LOCK DATABASE: take a SHARED_READ or EXCLUSIVE lock for the open transaction or else
        for the session. Whether there is such a database is not checked. This may wait. Raise
        AnalysisError if the name is in another catalog."""
        name = self._spark_databases.require_acid_name(statement.name, text)
        kind = LockType.EXCLUSIVE if statement.exclusive else LockType.SHARED_READ
        self._acquire_locks([LockComponent(kind, name)], text)

    def _acquire_locks(self, locks: Sequence[LockComponent], text: str) -> None:
        """Acquire locks for the open transaction, or for the session if there is no transaction.
        This waits while others hold conflicting locks. Raise the errors of ``_session_locks``."""
        if self._transactions.current is not None:
            self._transactions.current.txn.lock(locks, agent_info=text)
        else:
            self._session_locks("LOCK").acquire(locks, text)

    @runs(st.UnlockTable)
    def _unlock_table(self, statement: st.UnlockTable, text: str) -> None:
        """Run UNLOCK TABLE, which ends the session's locks on a table and its partitions or, with
        PARTITION, on those partitions. Without PARTITION the table may be dropped already. Raise
        TxnError if a transaction is open, or the session holds no such lock."""
        session_locks = self._session_locks("UNLOCK TABLE")
        name = self._names.qualify(statement.name.parts)  # the table may be gone
        if name is None or statement.partition:
            table = self._names.require_table(statement.name, text)
            table_locks = self._partitions.locks_on(
                table, statement.partition, session_locks.held_locks(), text
            )
            name = table.name
        else:
            table_locks = locks_on_table(name, session_locks.held_locks())
        _release_locks(session_locks, table_locks, f"on {name}")

    @runs(st.UnlockDatabase)
    def _unlock_database(self, statement: st.UnlockDatabase, text: str) -> None:
        """Run UNLOCK DATABASE, which ends the session's locks on a database and on all in it. Raise
        TxnError if a transaction is open, or there is no such lock."""
        session_locks = self._session_locks("UNLOCK DATABASE")
        name = self._spark_databases.require_acid_name(statement.name, text)
        database_locks = [lock for lock in session_locks.held_locks() if lock.database == name]
        _release_locks(session_locks, database_locks, f"on the database {name}, or in it")

    def _session_locks(self, label: str) -> SessionLocks:
        """Return the locks that the session holds outside of transactions.

        Raises:
            TxnError: A transaction or ``acid.snapshot()`` is open.
            UnsupportedError: The metastore keeps no locks of sessions.
        """
        self._transactions.require_autocommit(label)
        if not self._metastore.abilities.keeps_session_locks:
            raise UnsupportedError(
                f"{label} outside of a transaction is not possible with this metastore, where this "
                "session's own statements would wait for the lock: say BEGIN first. Then the "
                "transaction holds the lock until it ends (Hive 10271).",
                condition="LOCK_REQUEST_UNSUPPORTED",
            )
        return self._txns.session_locks

    # ── settings, others' transactions ───────────────────────────────────────────────────────

    @runs(st.SetOption)
    def _set_option(self, statement: st.SetOption, text: str) -> DataFrame:
        """Change a setting of this session, unless the statement has no value. Return the setting,
        as it is then, as a row of its key and value, as Spark's SET does."""
        if statement.value is not None:
            try:
                self._txns.settings = self._txns.settings.with_(statement.key, statement.value)
            except SettingError as error:
                raise error.at(text, statement.span.start, statement.span.end) from None
        row = statement.key, dict(self._txns.settings.items())[statement.key]
        return rows_frame(self._spark, "key string, value string", [row])

    @runs(st.ResetOption)
    def _reset_option(self, statement: st.ResetOption, text: str) -> None:
        """Give a setting of this session its default value."""
        default = dict(Settings().items())[statement.key]
        self._txns.settings = self._txns.settings.with_(statement.key, default)

    @runs(st.AbortTransactions)
    def _abort_transactions(self, statement: st.AbortTransactions, text: str) -> ReceiptWithRows:
        """Run ABORT TRANSACTIONS, which may be those of other sessions. Return a row of id, status
        and message for each, and a receipt with a note for each that is not aborted. As in Hive,
        the number of a transaction that is unknown or has ended is no error."""
        rows = [
            (str(txn_id), *self._abort_outcome(txn_id))
            for txn_id in dict.fromkeys(statement.txn_ids)
        ]
        notes = tuple(message for _, status, message in rows if status == "Error")
        return ReceiptWithRows(
            Receipt(text, notes=notes),
            rows_frame(self._spark, "txnid string, status string, message string", rows),
        )

    def _abort_outcome(self, txn_id: int) -> tuple[str, str]:
        """Abort a transaction, and return a status, ``Success`` or ``Error``, and a message. It is
        a success if the transaction was aborted before."""
        try:
            self._metastore.abort_txn(txn_id, "ABORT TRANSACTIONS")
        except AcidSqlError as error:
            if error.condition != "TXN_NO_SUCH_TRANSACTION":
                raise
            return "Error", error.message
        return "Success", f"Transaction {txn_id} is aborted."


def _targets(statement: st.Statement) -> list[st.Name]:
    """Return the names of the tables whose changed rows a statement's receipt counts: one for each
    branch of a multi-insert; [] for a statement whose receipt has no counts."""
    if isinstance(statement, st.MultiInsert):
        return [branch.target for branch in statement.branches]
    return [statement.target] if isinstance(statement, st.Dml | st.AutoCdc | st.Restore) else []


def _release_locks(session_locks: SessionLocks, locks: Sequence[LockInfo], place: str) -> None:
    """Release these locks of the session. Raise TxnError if it holds none of them. ``place``: what
    they are on, for the message."""
    if not session_locks.release(locks):
        raise TxnError(
            f"This session holds no lock {place}, outside of transactions. SHOW LOCKS has all "
            "locks.",
            condition="NO_SUCH_LOCK",
        )


def _table_lock(exclusive: bool, name: TableName, partition: str | None) -> LockComponent:
    kind = LockType.EXCLUSIVE if exclusive else LockType.SHARED_READ
    return LockComponent(kind, name.database, name.name, partition)
