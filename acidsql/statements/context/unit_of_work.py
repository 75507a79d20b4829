"""The session's transaction: of one statement, or of several between BEGIN and COMMIT.

A statement publishes its directories when it ends. The write id is still open then, so only the
statement's own transaction sees the directories. ``Work`` notes the directories of one statement,
so that the statement can be undone:

* If a statement in a transaction of its own fails, the transaction is aborted. Then its
  directories, which nobody will ever see, are deleted.
* If a statement between BEGIN and COMMIT fails, or ROLLBACK TO undoes it, the transaction goes
  on. The statement's directories must be deleted, durably, before COMMIT makes the write id
  visible. COMMIT is refused while one of them exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from acidsql.acid.cdc import is_cdc_table
from acidsql.acid.table import Partition, Table, TableName
from acidsql.arguments import checked
from acidsql.errors import AcidSqlError, TxnError, WriteConflictError
from acidsql.metastore.interface import PLAIN_COMMIT, Commit, WriteConflict
from acidsql.metastore.streams import NextBatch, StreamEntry
from acidsql.metastore.versions import Change
from acidsql.statements.context.environment import file_errors
from acidsql.statements.context.overwrites import (
    OverwrittenPlace,
    overwritten_places,
    refuse_hidden_by_overwrite,
    refuse_overwrite_beside_insert,
    refuse_still_readable,
)
from acidsql.statements.context.work import (
    Work,
    new_columns,
    row_changes,
    statement_changes,
    without_dropped,
    written_partitions,
    written_places,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.writing.publish import discard
from acidsql.txn import Phase, Txn, abort_quietly

# (conflict, directories that our transaction published) → True if both changed a common row
SameRows = Callable[[WriteConflict, Sequence[str]], bool]


class Transaction:
    """One transaction of a session.

    Args:
        txn: The transaction in the store.
        is_block: True for a transaction that BEGIN, or ``with acid.transaction()``, opened: if a
            statement fails, only this statement is undone.
        read_only: True if the transaction must not change anything.
        in_block: True if a ``with acid.transaction()`` block began the transaction and ends it.
        on_commit: Called after the commit.
        batch: The batch that COMMIT notes in the ledger of streams; None: no batch.
        replayed: The entry of the ledger about an earlier commit; then statements are skipped.

    Attributes:
        works: One ``Work`` for each statement that was not undone.
        rolled_back: True if the session itself has rolled the transaction back.
        source_lock_txn: For LOAD DATA: a second transaction, which locks the directories of the
            source files. It ends last, because the source files are deleted after the commit, and
            the commit ends the locks of the transaction itself. None: no LOAD DATA.
        when_abandoned: Functions to call once it is certain that the transaction will never be
            committed.
        compaction: The compactor's messages about the tables that the transaction wrote to. The
            compactor adds them after the commit.
    """

    def __init__(
        self,
        txn: Txn,
        *,
        is_block: bool = False,
        read_only: bool = False,
        in_block: bool = False,
        on_commit: Callable[[Transaction], None] = lambda _: None,
        batch: NextBatch | None = None,
        replayed: StreamEntry | None = None,
    ) -> None:
        self.txn, self.works = txn, list[Work]()
        self.when_abandoned: list[Callable[[], None]] = []
        self.source_lock_txn: Txn | None = None
        self.rolled_back = False
        self.read_only, self.in_block = read_only, in_block
        self.batch, self.replayed_entry = batch, replayed
        self._is_block, self._on_commit = is_block, on_commit
        self.compaction: list[str] = []
        self._savepoints: dict[str, tuple[int, int]] = {}
        self._undone_directories: list[str] = []  # directories that must be gone before COMMIT
        self._shown_bases = set[OverwrittenPlace]()  # where DataFrames may read undone bases
        self._undo_failure: str | None = None
        self._is_in_doubt = False  # a request to an object store may be carried out later

    @property
    def id(self) -> int:
        """The transaction's number, as in SHOW TRANSACTIONS."""
        return self.txn.id

    @property
    def is_block(self) -> bool:
        """True if BEGIN, or ``with acid.transaction()``, opened it."""
        return self._is_block

    @property
    def replayed(self) -> bool:
        """True if an earlier run of the same program has committed this transaction, so that its
        statements are skipped."""
        return self.replayed_entry is not None

    # ── statements ───────────────────────────────────────────────────────────────────────────

    @contextmanager
    def statement(self, operation: str, text: str) -> Iterator[Work]:
        """Run one statement in the block, and yield its new ``Work``, which ``works`` then has.
        Between BEGIN and COMMIT, a statement that fails is undone; otherwise the caller aborts the
        transaction.

        Args:
            operation: What the history of its tables calls the statement: INSERT, MERGE ….
            text: The statement.

        Raises:
            TxnError: IN_FAILED_TRANSACTION: an earlier statement could not be undone.
        """
        self._refuse_after_failed_undo()
        # A transaction keeps its works, but not the tokens of a SqlText.
        work = Work(self.txn, self.txn.mark, operation, str(text))
        self.works.append(work)
        try:
            yield work
        except BaseException:
            self._is_in_doubt |= work.is_in_doubt
            if self._is_block and self.txn.phase is Phase.OPEN:
                self._undo_quietly(len(self.works) - 1, work.mark)
            raise

    def refuse_overwritten(
        self, table: Table, partitions: Collection[str], *, overwrite: bool
    ) -> None:
        """Refuse to write to partitions whose rows the transaction's base directory would hide or
        mix up.

        Args:
            table: The table of the statement that runs now.
            partitions: The partitions to write to; "" for an unpartitioned table.
            overwrite: Whether the statement overwrites them.

        Raises:
            UnsupportedError: An earlier statement of the transaction overwrote one of these
                partitions; or an earlier branch of this statement wrote there, and one of the two
                overwrites; or this statement overwrites a partition whose undone base a DataFrame
                may still read.
        """
        refuse_hidden_by_overwrite(self.works[:-1], table, partitions)
        refuse_overwrite_beside_insert(self.works[-1], table, partitions, overwrite=overwrite)
        if overwrite:
            refuse_still_readable(self._shown_bases, table, partitions)

    def mark_as_read(self, tables: Collection[TableName]) -> None:
        """Note in the statements so far that a DataFrame may read these tables, as far as the
        statements have written to them (``Work.is_shown``)."""
        for work in self.works:
            work.is_shown |= any(table.name in tables for table, _ in work.published)

    # ── savepoints ───────────────────────────────────────────────────────────────────────────

    @checked
    def savepoint(self, name: str) -> None:
        """Set a savepoint; case does not matter. A savepoint of the same name is replaced.

        Raises:
            TxnError: An earlier statement could not be undone.
        """
        self._refuse_after_failed_undo()
        self._savepoints.pop(name.lower(), None)
        self._savepoints[name.lower()] = (len(self.works), self.txn.mark)

    def release(self, name: str) -> None:
        """Forget a savepoint and all later ones; the changes since then stay. Raise TxnError if
        there is no such savepoint."""
        self._find_savepoint(name)
        self._forget_from(name.lower())

    @checked
    def rollback(self, to: str | None = None) -> None:
        """Undo the whole transaction or, with ``to``, all statements since a savepoint. In the
        second case the transaction, its locks and the savepoint stay, and later savepoints are
        forgotten.

        Raises:
            TxnError: There is no such savepoint, the transaction has ended otherwise, or a failed
                request to an object store may still be carried out.
            WriteError: A directory cannot be deleted. Now the whole transaction must be rolled
                back.
        """
        if to is None:
            self.rolled_back = True
            self.abandon("ROLLBACK")
            if self.txn.phase is not Phase.ABORTED:
                raise TxnError(f"Transaction {self.id} is {self.txn.phase.value}.")
            return
        if self._is_in_doubt:
            self.refuse_failed()
        count, mark = self._find_savepoint(to)
        self._forget_from(to.lower())
        self._savepoints[to.lower()] = (count, mark)
        with file_errors():
            self._undo(count, mark)

    def _find_savepoint(self, name: str) -> tuple[int, int]:
        """Return two facts about a savepoint: how many statements came before it, and the store's
        mark for ``Txn.undo``. Case does not matter. Raise TxnError if there is no such
        savepoint."""
        savepoint = self._savepoints.get(name.lower())
        if savepoint is None:
            raise TxnError(
                f"Transaction {self.id} has no savepoint '{name}'.",
                condition="NO_SUCH_SAVEPOINT", sqlstate="3B001", savepoint=name,
            )  # fmt: skip
        return savepoint

    def _forget_from(self, name: str) -> None:
        """Forget a savepoint and all later ones. ``name`` is in lower case, and must exist."""
        names = list(self._savepoints)
        for later in names[names.index(name) :]:
            del self._savepoints[later]

    # ── ends ─────────────────────────────────────────────────────────────────────────────────

    def commit(self, same_rows: SameRows | None = None, commit: Commit = PLAIN_COMMIT) -> None:
        """Commit all statements of the transaction, then call the functions that wait for the
        commit (``Work.when_committed``, ``on_commit``), and end the locks on the source files of
        LOAD DATA. An error of a function is raised, and the functions after it are not called, but
        the commit stands.

        Args:
            same_rows: Compares the rows if another transaction changed the same partition first. If
                no row is common, the commit is tried again. None: a change of the same partition is
                a conflict already.
            commit: What changes in the same step, beside what the statements have written.

        Raises:
            WriteConflictError: Another transaction committed first. This one is still open, unless
                the error says that it has ``ended``.
            TxnError: The transaction cannot be committed. Roll it back.
            CommitUnknownError: Nobody knows now whether the transaction is committed.
        """
        with file_errors():
            self._refuse_after_failed_undo()
        commit = self._commit_with_writes(commit)
        while True:
            try:
                self.txn.commit(commit)
                break
            except WriteConflictError as error:
                if same_rows is None or error.ended:
                    raise
                own_directories = [path for _, path in self._directories(self.works)]
                if any(
                    not conflict.by_row or same_rows(conflict, own_directories)
                    for conflict in error.conflicts
                ):
                    raise
                rivals = (conflict.txn_id for conflict in error.conflicts)
                compared = {txn_id for txn_id in rivals if txn_id is not None}
                commit = replace(commit, resolved_txns={*commit.resolved_txns, *compared})
        try:
            for callback in (callback for work in self.works for callback in work.when_committed):
                callback()
        finally:
            self._end_source_lock()
        self._on_commit(self)

    def _commit_with_writes(self, commit: Commit) -> Commit:
        """Return a copy of ``commit`` that has, in the place of its own values, all that the
        statements have written: added partitions, but for those that ``commit`` drops, row counts,
        changes, new columns, and the batch of a stream with its number of rows."""
        writes = (write for work in self.works for write in work.published)
        rows = sum(published.changed for table, published in writes if not is_cdc_table(table))
        return replace(
            commit,
            added_partitions=without_dropped(self.partitions(), commit.dropped_partitions),
            row_changes=row_changes(self.works),
            table_changes=self.table_changes(),
            new_columns=new_columns(self.works),
            batch=self.batch and self.batch.with_rows(rows),
        )

    def abandon(self, reason: str) -> bool:
        """Abort the transaction, delete its directories, which nobody can ever see, and call
        ``when_abandoned``. The transaction that locks LOAD DATA's source files ends in every case.

        Returns:
            True; or False, with nothing deleted, if the transaction may be committed or could not
            be aborted.
        """
        try:
            return self._abandon(reason)
        finally:
            self._end_source_lock()

    def _abandon(self, reason: str) -> bool:
        """Abort, delete the transaction's directories, and call ``when_abandoned``. Return False,
        with nothing deleted, if the transaction may be committed or could not be aborted."""
        may_be_committed = self.txn.phase in (Phase.UNKNOWN, Phase.COMMITTED)
        if may_be_committed or not abort_quietly(self.txn, reason):
            return False
        for table, directory in self._directories(self.works):
            discard(filesystem_for(table.location), [directory])
        for callback in self.when_abandoned:
            callback()
        return True

    def _end_source_lock(self) -> None:
        """End the transaction that locks the source files of LOAD DATA, if there is one."""
        takes, self.source_lock_txn = self.source_lock_txn, None
        if takes is not None:
            takes.end_quietly()

    @property
    def places(self) -> list[tuple[TableName, str | None]]:
        """The tables and partitions that the transaction has written to, perhaps some twice;
        partition None: an unpartitioned table."""
        return written_places(self.works)

    def partitions(self) -> dict[TableName, list[Partition]]:
        """Return the partitions that the transaction has written to, each once, by table. The
        catalog may have them already."""
        return written_partitions(self.works)

    def table_changes(self) -> list[Change]:
        """Return one change for each statement and table that it has changed, for the history of
        the tables."""
        return statement_changes(self.works)

    @staticmethod
    def _directories(works: Sequence[Work]) -> list[tuple[Table, str]]:
        return [table_directory for work in works for table_directory in work.directories]

    # ── undoing a part ───────────────────────────────────────────────────────────────────────

    def _undo(self, kept_count: int, mark: int) -> None:
        """Undo all statements but the first ``kept_count``: in the store, back to its ``mark``; on
        disk, by deleting their directories; and in ``works``. Undone overwrites that a DataFrame
        may read are remembered, and not allowed again. The transaction goes on. If the undoing
        fails or is interrupted, the error is raised, and COMMIT will be refused."""
        # COMMIT is refused until all is undone, whatever interrupts the next lines.
        self._undo_failure = "an earlier statement of it could not be undone"
        # The store first: it raises if the transaction has ended, and then no file may be deleted.
        self.txn.undo(mark)
        was_in_doubt = self._is_in_doubt
        for table, directory in self._directories(self.works[kept_count:]):
            # A late deletion may hit the base of a later statement, which has the same name.
            self._is_in_doubt |= not filesystem_for(table.location).has_directories
            _delete(table, directory)
            self._undone_directories.append(directory)
        self._shown_bases |= overwritten_places(
            work for work in self.works[kept_count:] if work.is_shown
        )
        del self.works[kept_count:]
        self._undo_failure, self._is_in_doubt = None, was_in_doubt

    def _undo_quietly(self, kept_count: int, mark: int) -> None:
        """Undo all statements but the first ``kept_count``, while the error of a statement is being
        raised. A failure of the undoing is not raised but noted; then the next statement, or
        COMMIT, is refused."""
        try:
            self._undo(kept_count, mark)
        except (AcidSqlError, OSError) as error:
            self._undo_failure = f"an earlier statement of it could not be undone ({error})"

    def _refuse_after_failed_undo(self) -> None:
        """Raise TxnError if an undone statement left a directory, or could not be undone. A
        transaction that has ended is not refused here."""
        if self.txn.phase is not Phase.OPEN:
            return  # the next call of ``txn`` raises a better error
        # A later statement may have published a base of the same name as an undone statement's.
        current_directories = {path for _, path in self._directories(self.works)}
        remaining = [
            directory
            for directory in self._undone_directories
            if directory not in current_directories and filesystem_for(directory).exists(directory)
        ]
        if remaining:
            raise self._failed_error(f"'{remaining[0]}' of an undone statement still exists")
        self.refuse_failed()

    def refuse_failed(self) -> None:
        """Refuse to go on, and to read, after a statement that could not be undone.

        A part of the statement's files may exist, and the transaction would see them.

        Raises:
            TxnError: IN_FAILED_TRANSACTION: the transaction can only be rolled back.
        """
        if self._is_in_doubt:
            raise self._failed_error(
                "a request to the object store failed, and may be carried out later"
            )
        if self._undo_failure is not None:
            raise self._failed_error(self._undo_failure)

    def _failed_error(self, reason: str) -> TxnError:
        """Return the error that says why the transaction can only be rolled back."""
        return TxnError(
            f"Transaction {self.id} can only be rolled back: {reason}. Say ROLLBACK.",
            condition="IN_FAILED_TRANSACTION",
            sqlstate="25P02",
            txnId=self.id,
        )


def _delete(table: Table, directory: str) -> None:
    """Delete a published directory durably: a power cut must not bring it back. A directory that
    does not exist is no error."""
    fs, parent = filesystem_for(table.location), directory.rpartition("/")[0]
    fs.delete_directory(directory)
    if fs.exists(parent):
        fs.sync_directory(parent)
