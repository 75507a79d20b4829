"""Deletes the directory of a dropped table: for DROP, the cleaner and the next CREATE. Drops
temporary tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from acidsql.acid.layout import is_hidden, parse_directory
from acidsql.acid.paths import directory_of
from acidsql.acid.table import TableName
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore
from acidsql.metastore.owners import PendingCleanup
from acidsql.plan.locking import exclusive_lock
from acidsql.storage.files.filesystem import Entry, FileSystem, filesystem_for
from acidsql.txn import NO_WAIT_SETTINGS, TxnManager

_log = logging.getLogger(__name__)


def delete_dropped(metastore: Metastore, cleanup: PendingCleanup) -> None:
    """Delete a dropped table's directory, and mark the clean-up as done. Do nothing if it is done
    already. The caller must hold the table's lock.

    A directory that has snapshots, which HDFS does not delete, is emptied; a warning is logged.

    A session may sleep at any moment, lose its lock, and wake when a later table of the same name
    has the directory. If the file system ``can_remove_empty``, the session still does no harm, for
    three reasons. The files to delete are listed first. While the clean-up is queued, there is no
    later table. And a later table has other names for its files, because write ids go on.
    """
    fs = filesystem_for(cleanup.location)
    leaves, parents = _leaves_and_parents(fs, cleanup.location)
    if cleanup not in metastore.pending_cleanups():
        return  # somebody else has done it
    for leaf in leaves:
        if leaf.is_dir:
            fs.delete_directory(leaf.path)
        else:
            fs.delete_file_if_there(leaf.path)
    is_removed = True  # a link has no parents, and is gone
    for parent in parents:
        is_removed = fs.remove_empty_directory(parent)
    if not is_removed and fs.exists(cleanup.location):
        _log.warning(
            "The files of the dropped table %s are deleted, and its directory '%s' stays: it has "
            "snapshots, or files of somebody else.",
            cleanup.table,
            cleanup.location,
        )
    _sync_emptied(fs, [cleanup.location, *parents])
    metastore.mark_cleaned(cleanup.id)


def drop_temporary(metastore: Metastore, txns: TxnManager, name: TableName) -> str | None:
    """Drop a temporary table and delete its files, in a transaction that waits for no lock. Return
    the path of its directory; None if the table is gone. The caller must know that the table's
    session has ended.

    Raises:
        LockTimeoutError: Somebody uses the table.
    """
    with txns.open(
        agent_info=f"the end of the temporary table {name}", lock_settings=NO_WAIT_SETTINGS
    ) as txn:
        txn.lock([exclusive_lock(name)])
        if (table := acid_table(metastore.find(name))) is None:
            return None
        if cleanup := metastore.drop_table(name, txn_id=txn.id):
            delete_dropped(metastore, cleanup)
        txn.end_quietly()
    return table.location


def _sync_emptied(fs: FileSystem, emptied: Iterable[str]) -> None:
    """Sync these directories to the disk, since they have lost entries; for a deleted one, its
    parent."""
    above = {path if fs.exists(path) else directory_of(path) for path in emptied}
    for path in sorted(above):
        if fs.exists(path):
            fs.sync_directory(path)


def _leaves_and_parents(fs: FileSystem, path: str) -> tuple[list[Entry], list[str]]:
    """List what has to be deleted with a table's directory, and return leaves and parents. The
    leaves are the files, links, ACID directories and hidden directories at any depth; nobody looks
    into the latter two. The parents are the paths of all other directories, the innermost first,
    ``path`` last, even if it is missing. If ``path`` is a link, it is the only leaf, and there are
    no parents."""
    if fs.is_link(path):
        return [Entry(path.rpartition("/")[2], path, True, 0, is_link=True)], []
    leaves: list[Entry] = []
    parents: list[str] = []
    for entry in fs.list_if_there(path):
        is_leaf = entry.is_link or parse_directory(entry.name) or is_hidden(entry.name)
        if entry.is_dir and not is_leaf:
            inner, around = _leaves_and_parents(fs, entry.path)
            leaves += inner
            parents += around
        else:
            leaves.append(entry)
    return leaves, [*parents, path]
