"""TABLE_VERSIONS, TBLS.OLDEST_VERSION and TBLS.FIRST_VERSION: the versions of tables
(``metastore/versions.py``).

All are acidsql's own. TV_ID grows in the order of the commits, because a store transaction that
writes waits for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from acidsql.acid.table import Table, TableName
from acidsql.metastore.conflict_rules import RecordedChange as Component
from acidsql.metastore.embedded.database import rows
from acidsql.metastore.embedded.database.engine import Store
from acidsql.metastore.embedded.database.schema import DBS, TABLE_VERSIONS, TBLS
from acidsql.metastore.embedded.records import write_ids
from acidsql.metastore.versions import Change, Version

V = TABLE_VERSIONS.c
_STATEMENT_LIMIT, _OPERATION_LIMIT = 1024, 64  # widths of the columns
CREATED = "CREATE TABLE"
_NO_ID = 2**62  # above every TV_ID


class EmbeddedVersions:
    """The ``VersionLog`` of the embedded metastore; the methods are described there."""

    _store: Store

    def versions(self, table: TableName) -> list[Version]:
        """Return the versions of a table that are remembered, newest commit first; none if there is
        no such table."""
        with self._store.read() as connection:
            is_of_table = V.TBL_ID == rows.table_id(connection, table)
            query = select(TABLE_VERSIONS).where(is_of_table).order_by(V.TV_ID.desc())
            return [_version_of_row(table, row) for row in connection.execute(query)]

    def oldest_version(self, table: TableName) -> int:
        """Return the oldest version (a write id) of a table that can still be read. Raise
        CatalogError if there is no such table."""
        with self._store.read() as connection:
            table_id = rows.need_table(connection, table)
            query = select(TBLS.c.OLDEST_VERSION).where(TBLS.c.TBL_ID == table_id)
            return int(connection.execute(query).scalar_one())

    def first_version(self, table: TableName) -> int | None:
        """Return the version that made a table; None if it is not known. Raise CatalogError if
        there is no such table."""
        with self._store.read() as connection:
            table_id = rows.need_table(connection, table)
            query = select(TBLS.c.FIRST_VERSION).where(TBLS.c.TBL_ID == table_id)
            number = connection.execute(query).scalar_one()
            return None if number is None else int(number)

    def identity(self, table: TableName) -> str:
        """Return a text that a table keeps when it is renamed or changed, and that no later table
        of its name has. Raise CatalogError if there is no such table."""
        with self._store.read() as connection:
            rows.need_table(connection, table)
            return rows.identity(connection, table)

    def forget_versions(self, table: TableName, oldest: int) -> None:
        """Make ``oldest`` the oldest version of a table that can be read, unless a higher one is
        stored already. Nothing happens if there is no such table."""
        with self._store.write() as connection:
            _raise_oldest_version(connection, rows.table_id(connection, table), oldest)

    def changed_by(self, txn_id: int) -> dict[TableName, int]:
        """Return the tables that a transaction changed (table → its write id there), as far as its
        versions are remembered. A table that it only created is left out."""
        query = (
            select(DBS.c.NAME, TBLS.c.TBL_NAME, V.TV_WRITEID)
            .join(TBLS, TBLS.c.TBL_ID == V.TBL_ID)
            .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
            .where(V.TV_TXNID == txn_id, V.TV_OPERATION != CREATED)
        )
        with self._store.read() as connection:
            return {TableName(row[0], row[1]): int(row[2]) for row in connection.execute(query)}

    def last_commit(self, *, until_ms: int | None = None, txn_id: int | None = None) -> int | None:
        """Return the number of the newest commit that is remembered, of all until a time and of a
        transaction (None: any); None if there is none."""
        query = select(func.max(V.TV_ID))
        if until_ms is not None:
            query = query.where(V.TV_COMMITTED_AT <= until_ms)
        if txn_id is not None:
            query = query.where(V.TV_TXNID == txn_id)
        with self._store.read() as connection:
            commit = connection.execute(query).scalar()
            return None if commit is None else int(commit)


def begin_history(connection: Connection, table: TableName) -> None:
    """Set a new table's oldest and first version to the write id before its next one."""
    first = write_ids.next_write_id(connection, table) - 1
    table_id = rows.need_table(connection, table)
    statement = update(TBLS).where(TBLS.c.TBL_ID == table_id)
    connection.execute(statement.values(OLDEST_VERSION=first, FIRST_VERSION=first))


def record_versions(
    connection: Connection,
    txn: Row[Any],
    changes: Sequence[Change],
    created: Table | None,
    components: Iterable[Component],
    now_ms: int,
) -> None:
    """Insert the changes of a transaction into TABLE_VERSIONS, in the store transaction that
    commits them, each with its own TV_ID. Raise CatalogError if a table is missing.

    Args:
        connection: The connection of the store transaction.
        txn: The transaction's row of TXNS.
        changes: The changes, in the order of the statements.
        created: The table that the transaction creates. If no statement has written to it, a change
            CREATE TABLE is inserted, too: its first version is the empty table.
        components: The operations that the transaction has recorded, with its write ids.
        now_ms: The time.
    """
    if created is not None and all(change.table != created.name for change in changes):
        changes = [*changes, Change(created.name, CREATED, txn.TXN_AGENT_INFO or "")]
    # All other writers wait meanwhile, so ask once for each table, and insert all at once.
    write_ids_by_table = {component.table_name: component.write_id for component in components}
    columns_by_table = {
        table: {
            "TBL_ID": rows.need_table(connection, table),
            "TV_WRITEID": write_ids_by_table.get(table) or _write_id(connection, txn.TXN_ID, table),
            "TV_TXNID": txn.TXN_ID,
            "TV_COMMITTED_AT": now_ms,
            "TV_USER": txn.TXN_USER,
            "TV_HOST": txn.TXN_HOST,
        }
        for table in dict.fromkeys(change.table for change in changes)
    }
    if changes:
        connection.execute(
            insert(TABLE_VERSIONS),
            [columns_by_table[change.table] | _change_columns(change) for change in changes],
        )


def _write_id(connection: Connection, txn_id: int, table: TableName) -> int:
    """Return the transaction's write id in a table. If it has none, because it only creates the
    table, return the one before the table's next."""
    write_id = write_ids.find(connection, txn_id, table)
    return write_ids.next_write_id(connection, table) - 1 if write_id is None else write_id


def _change_columns(change: Change) -> dict[str, Any]:
    """Return the columns (name → value) of TABLE_VERSIONS for a change; long texts are cut."""
    return {
        "TV_OPERATION": change.operation[:_OPERATION_LIMIT],
        "TV_STATEMENT": change.statement[:_STATEMENT_LIMIT],
        "TV_INSERTED": change.inserted,
        "TV_UPDATED": change.updated,
        "TV_DELETED": change.deleted,
        "TV_FILES": change.files,
        "TV_BYTES": change.bytes,
        "TV_PARTITIONS": change.partitions,
        "TV_REVERTED": change.reverted,
    }


def drop_partitions(
    connection: Connection, txn_id: int, dropped: Mapping[TableName, Sequence[object]]
) -> None:
    """Make the dropping transaction's write id the oldest version that can be read of each table
    with a dropped partition, because the files are deleted now; the oldest version is never
    lowered. A table without partitions in ``dropped``, or in which the transaction has no write id,
    stays as it is."""
    for table, partitions in dropped.items():
        write_id = write_ids.find(connection, txn_id, table)
        if partitions and write_id is not None:
            _raise_oldest_version(connection, rows.table_id(connection, table), write_id)


def forget_old(connection: Connection, before_ms: int) -> None:
    """Delete the records of changes that were committed before a time, except the newest of each
    table.

    Only the first commits are forgotten, without gaps: an older version would show the rows of a
    forgotten commit that came after it. If the clock was set back, a time alone could leave gaps.
    """
    # MySQL refuses a subquery over the table itself, unless it is in another subquery.
    young = select(func.min(V.TV_ID).label("first")).where(V.TV_COMMITTED_AT >= before_ms)
    newest = select(func.max(V.TV_ID).label("newest")).group_by(V.TBL_ID).subquery()
    first = select(func.coalesce(young.subquery().c.first, _NO_ID)).scalar_subquery()
    is_old = and_(V.TV_ID < first, V.TV_ID.not_in(select(newest.c.newest)))
    connection.execute(delete(TABLE_VERSIONS).where(is_old))


def _raise_oldest_version(connection: Connection, table_id: int | None, oldest: int) -> None:
    """Set a table's oldest version, unless it is as high already. None, or a number without a
    table: nothing changes."""
    older = or_(TBLS.c.OLDEST_VERSION.is_(None), TBLS.c.OLDEST_VERSION < oldest)
    connection.execute(
        update(TBLS).where(TBLS.c.TBL_ID == table_id, older).values(OLDEST_VERSION=oldest)
    )


def _version_of_row(table: TableName, row: Row[Any]) -> Version:
    """Make the Version of a row of TABLE_VERSIONS, with its Change of ``table``; the row's TV_ID
    orders the commits."""
    change = Change(
        table,
        row.TV_OPERATION,
        row.TV_STATEMENT,
        row.TV_INSERTED,
        row.TV_UPDATED,
        row.TV_DELETED,
        row.TV_FILES,
        row.TV_BYTES,
        row.TV_PARTITIONS,
        row.TV_REVERTED,
    )
    return Version(
        row.TV_WRITEID,
        row.TV_ID,
        row.TV_TXNID,
        row.TV_COMMITTED_AT,
        row.TV_USER,
        row.TV_HOST,
        change,
    )
