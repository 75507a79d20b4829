"""Hive 3.1: the calls of Hive 4 that it lacks, in calls that it knows, and where it errs.

The rest of the package makes the calls of Hive 4. ``call`` stands between it and a server of Hive
3.1, and says the same in Hive 3's words.

* Hive 3 puts texts into SQL as they are. So no text that it gets has a quote or a backslash.
* It has no EXCL_WRITE. Its SHARED_WRITE locks exclude each other, which is the same.
* It may grant a lock too early: it compares a request with earlier locks one after another, and
  stops at the first one that it may ignore, such as one of the same transaction. ``blocking_locks``
  compares with all.
* A COMMIT is compared with others by time: see ``numbers``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acidsql.errors import CatalogError, UnsupportedError
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.interface import LockInfo, LockState
from acidsql.metastore.lock_rules import LocksByObject, blockers

# A table's property with which a table is created, and which the server takes away again: it keeps
# the server from counting the files that lie directly in the table's directory, which are none.
KEEP_STATISTICS = "DO_NOT_UPDATE_STATS"
# What the server says when it cannot set the write ids of a table that becomes full-ACID.
_NO_SEED = "Unable to update transaction database"
_HARMLESS = str.maketrans({"'": '"', "\\": "/"})


def call(client: Client, name: str, *values: Any) -> Any:
    """Call a method of Hive 4 on a Hive 3.1, in calls that this knows. Errors are those of
    ``Client.call``.

    Raises:
        UnsupportedError: Hive 3 cannot do this.
        CatalogError: A name or value has a quote or a backslash, or the server refuses.
    """
    substitute = _OTHERWISE.get(name)
    return client.call(name, *values) if substitute is None else substitute(client, *values)


def blocking_locks(
    lock_id: int, own_numbers: Collection[int], locks: Sequence[LockInfo]
) -> list[LockInfo]:
    """Return the locks of others that a lock must wait for (``lock_rules.blockers``), granted ones
    first, whatever the server says. The lock ``lock_id`` counts as not granted yet. Its components
    are compared one by one, so another lock may occur several times.

    Without such locks the lock is granted.

    Args:
        lock_id: The lock.
        own_numbers: The numbers of the lock's own transaction, which may have two.
        locks: All locks.
    """
    locks_as_one = unified_locks(lock_id, own_numbers, locks)
    near = LocksByObject((lock, lock) for lock in locks_as_one)
    blocking = [
        blocker
        for lock in locks_as_one
        if lock.lock_id == lock_id
        for blocker in blockers(lock, near)
    ]
    return sorted(blocking, key=lambda lock: lock.state.value)


def unified_locks(
    lock_id: int, own_numbers: Collection[int], locks: Sequence[LockInfo]
) -> list[LockInfo]:
    """Return the locks as if a transaction had only its first number, and its lock ``lock_id`` was
    not granted yet. ``own_numbers``: the transaction's numbers."""
    first = min(own_numbers)
    return [
        replace(
            lock,
            txn_id=first if lock.txn_id in own_numbers else lock.txn_id,
            state=LockState.WAITING if lock.lock_id == lock_id else lock.state,
        )
        for lock in locks
    ]


# ── databases and tables ─────────────────────────────────────────────────────────────────────


def _get_database(client: Client, request: Any) -> Any:
    database = client.call("get_database", request.name)
    database.managedLocationUri = database.locationUri  # there is only one
    return database


def _create_database(client: Client, request: Any) -> None:
    """Create a database in Hive 3's words; its managed location becomes its only one."""
    database = hive.Database(
        name=request.databaseName,
        description=request.description,
        locationUri=request.managedLocationUri,
        parameters=request.parameters,
        ownerName=request.ownerName,
        ownerType=request.ownerType,
        catalogName=request.catalogName,
    )
    client.call("create_database", database)


def _create_table(client: Client, request: Any) -> None:
    """Create a table with its constraints, so that the server does not count its files."""
    table = request.table
    table.parameters = {**table.parameters, KEEP_STATISTICS: "true"}
    client.call(
        "create_table_with_constraints",
        table,
        request.notNullConstraints or None,
        request.defaultConstraints or None,
        request.checkConstraints or None,
    )


def _alter_table(client: Client, request: Any) -> None:
    """Replace a table's struct. Raise UnsupportedError if a plain table shall become full-ACID that
    already has write ids, because somebody has written to it. Other errors are the server's."""
    try:
        client.call(
            "alter_table_with_environment_context",
            request.dbName, request.tableName, request.table, request.environmentContext,
        )  # fmt: skip
    except CatalogError as error:
        if _NO_SEED not in error.message:
            raise
        # The server gives the table a first write id, and fails if it has one.
        raise UnsupportedError(
            f"A metastore of Hive 3 makes no full-ACID table of {request.dbName}."
            f"{request.tableName}, because somebody has written to it: CREATE TABLE … AS SELECT "
            "copies the rows.",
            condition="UNSUPPORTED_FEATURE.HIVE3",
        ) from error


def _alter_partitions(client: Client, request: Any) -> None:
    """Replace the structs of some partitions."""
    client.call(
        "alter_partitions_with_environment_context",
        request.dbName, request.tableName, request.partitions, request.environmentContext,
    )  # fmt: skip


def _drop_table(client: Client, request: Any) -> None:
    """Drop a table or view."""
    client.call(
        "drop_table_with_environment_context",
        request.dbName, request.tableName, request.deleteData, None,
    )  # fmt: skip


def _constraints(client: Client, request: Any) -> Any:
    """Fetch a table's NOT NULL, DEFAULT and CHECK constraints by three calls, as one answer of Hive
    4."""
    about = {"catName": request.catName, "db_name": request.dbName, "tbl_name": request.tblName}
    required = client.call("get_not_null_constraints", hive.NotNullConstraintsRequest(**about))
    filled = client.call("get_default_constraints", hive.DefaultConstraintsRequest(**about))
    checked = client.call("get_check_constraints", hive.CheckConstraintsRequest(**about))
    return hive.AllTableConstraintsResponse(
        allTableConstraints=hive.SQLAllTableConstraints(
            notNullConstraints=required.notNullConstraints,
            defaultConstraints=filled.defaultConstraints,
            checkConstraints=checked.checkConstraints,
        )
    )


# ── transactions and locks ───────────────────────────────────────────────────────────────────


def _open_txns(client: Client, request: Any) -> Any:
    request.user, request.hostname = _plain(request.user), _plain(request.hostname)
    return client.call("open_txns", request)


def _lock(client: Client, request: Any) -> Any:
    """Request a lock: EXCL_WRITE as SHARED_WRITE. In user, host and statement, and in the path that
    stands for a table where the database's name begins with "(", ``'`` becomes ``"`` and a
    backslash becomes ``/``. Raise CatalogError if any other name has one of the two."""
    for component in request.component:
        if component.dbname.startswith("("):
            component.tablename = _plain(component.tablename)  # no table, but a path
        _need_plain(component.dbname, component.tablename, component.partitionname)
        if component.type == hive.LockType.EXCL_WRITE:
            component.type = hive.LockType.SHARED_WRITE
    request.user, request.hostname = _plain(request.user), _plain(request.hostname)
    request.agentInfo = _plain(request.agentInfo)
    return client.call("lock", request)


def _show_locks(client: Client, request: Any) -> Any:
    """Fetch the locks, with SHARED_WRITE as EXCL_WRITE."""
    answer = client.call("show_locks", request)
    for lock in answer.locks or ():
        if lock.type == hive.LockType.SHARED_WRITE:
            lock.type = hive.LockType.EXCL_WRITE
    return answer


# ── compactions ──────────────────────────────────────────────────────────────────────────────


def _compact(client: Client, request: Any) -> Any:
    """Queue a compaction. Raise UnsupportedError for a rebalance or a pool, CatalogError for a
    property with a quote or backslash."""
    if request.type == hive.CompactionType.REBALANCE:
        raise _missing_ability_error("compaction of the type REBALANCE")
    if request.poolName is not None:
        raise _missing_ability_error("pool of workers")
    for name, value in (request.properties or {}).items():
        _need_plain(name, value)
    request.runas = _plain(request.runas)
    return client.call("compact2", request)


def _show_compact(client: Client, request: Any) -> Any:
    """Fetch the queue and the history, with the states as Hive 4 calls them."""
    answer = client.call("show_compact", request)
    for entry in answer.compacts:
        if entry.state == "attempted":
            entry.state = "did not initiate"  # as Hive 4 calls it
    return answer


def _abort_compactions(client: Client, request: Any) -> Any:
    raise _missing_ability_error("call to abort compactions")


def _seed_write_id(client: Client, request: Any) -> Any:
    """Raise UnsupportedError, with advice: Hive 3 does not seed write ids. The arguments, those of
    every call, are not used."""
    raise _missing_ability_error(
        "call to seed write ids. Over files without write ids, let Hive create a plain table, then "
        "say ALTER TABLE … CONVERT TO ACID"
    )


_OTHERWISE: Mapping[str, Callable[..., Any]] = {
    "get_database_req": _get_database,
    "create_database_req": _create_database,
    "create_table_req": _create_table,
    "alter_table_req": _alter_table,
    "alter_partitions_req": _alter_partitions,
    "drop_table_req": _drop_table,
    "get_all_table_constraints": _constraints,
    "open_txns": _open_txns,
    "lock": _lock,
    "show_locks": _show_locks,
    "compact2": _compact,
    "show_compact": _show_compact,
    "abort_Compactions": _abort_compactions,
    "seed_write_id": _seed_write_id,
}


def _plain(text: str) -> str:
    return text.translate(_HARMLESS)


def _need_plain(*texts: str | None) -> None:
    """Raise CatalogError if a text has a single quote or a backslash; None has neither."""
    for text in texts:
        if text is not None and text != _plain(text):
            raise CatalogError(
                f"A metastore of Hive 3 takes no name or value with a quote or a backslash: {text}",
                condition="METASTORE_REFUSED",
                sqlstate="38000",
            )


def _missing_ability_error(ability: str) -> UnsupportedError:
    return UnsupportedError(
        f"A metastore of Hive 3 has no {ability}.", condition="UNSUPPORTED_FEATURE.HIVE3"
    )
