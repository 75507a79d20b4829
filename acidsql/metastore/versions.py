"""The versions of tables: what each committed write id changed, and which versions can be read.

A *version* of a table is a write id, as a version of a Delta table is the number of a commit. It
shows the events of all committed write ids up to it. COMMIT notes a version in the store
transaction that commits its events.

The cleaner deletes files that only older versions need. Before it does, it notes the oldest version
that can be read from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from acidsql.acid.table import TableName


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one table by one statement.

    Attributes:
        table: The table.
        operation: INSERT, UPDATE, DELETE, MERGE, INSERT OVERWRITE, TRUNCATE TABLE, LOAD DATA ….
        statement: The statement's text, which is cut if it is long: nothing is decided by it.
        inserted: The number of new rows.
        updated: The number of rows with new values.
        deleted: The number of deleted rows.
        files: The number of files.
        bytes: The size of these files.
        partitions: The number of changed partitions; 1 for an unpartitioned table.
        reverted: The transaction whose changes a REVERT TRANSACTION has undone; None: another
            statement.
    """

    table: TableName
    operation: str
    statement: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files: int = 0
    bytes: int = 0
    partitions: int = 0
    reverted: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One change of a version, and its commit. A transaction of several statements has several.

    Attributes:
        write_id: The number of the version.
        commit: Orders the commits of the whole metastore.
        txn_id: The transaction.
        committed_ms: The time of the commit, in milliseconds since the epoch, by the store's clock.
        user: The user whose session committed.
        host: The host of that session.
        change: What was changed.
    """

    write_id: int
    commit: int
    txn_id: int
    committed_ms: int
    user: str
    host: str
    change: Change


class VersionLog(Protocol):
    """The versions of tables. They go when their table is dropped, and follow when it is renamed.

    A metastore without the ability ``keeps_versions`` has none.
    """

    def versions(self, table: TableName) -> Sequence[Version]:
        """Return the versions of a table that are remembered, newest commit first. *Read-only.*"""

    def oldest_version(self, table: TableName) -> int:
        """Return the oldest version (a write id) of a table whose files were not deleted.
        *Read-only.* Raises CatalogError if there is no such table."""

    def first_version(self, table: TableName) -> int | None:
        """Return the version that made a table, which shows the rows that the table began with.
        None: that version is not known. *Read-only.* Raises CatalogError if there is no such
        table."""

    def identity(self, table: TableName) -> str:
        """Return a text that a table keeps when it is renamed or changed, and that no later table
        of its name has. *Read-only.* Raises CatalogError if there is no such table."""

    def forget_versions(self, table: TableName, oldest: int) -> None:
        """Make ``oldest`` the oldest version of a table that can be read, before the caller deletes
        files that only versions below it need. *Idempotent.* The oldest version is never
        lowered."""

    def changed_by(self, txn_id: int) -> Mapping[TableName, int]:
        """Return the tables that a committed transaction changed (table → its write id there), as
        far as its versions are remembered and the tables are still there. *Read-only.*"""

    def last_commit(self, *, until_ms: int | None = None, txn_id: int | None = None) -> int | None:
        """Return the number of the newest commit that is remembered, of all until a time and of a
        transaction (None: any); None if there is none. *Read-only.*"""
