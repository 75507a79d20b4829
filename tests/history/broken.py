"""acidsql with one thing broken on purpose: a checker that finds nothing then is worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from acidsql.acid.write_ids import ALL_TXNS, ValidWriteIdList
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.interface import PLAIN_COMMIT, Commit
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.txn import Snapshot, Txn

READS_DIRT = "all write ids are valid"


def _commits_blindly() -> None:
    commit = EmbeddedMetastore.commit_txn

    def commit_txn(store: EmbeddedMetastore, txn_id: int, changes: Commit = PLAIN_COMMIT) -> None:
        commit(store, txn_id, replace(changes, snapshot=None))

    EmbeddedMetastore.commit_txn = commit_txn  # type: ignore[method-assign]
    EmbeddedMetastore.write_conflicts = lambda *_, **__: []  # type: ignore[method-assign,assignment]


def _refreshes_snapshots() -> None:
    look = Txn.snapshot

    def snapshot(txn: Txn, tables: Any) -> Snapshot:
        txn.forget_snapshot()
        return look(txn, tables)

    Txn.snapshot = snapshot  # type: ignore[method-assign]


def _keeps_what_is_undone() -> None:
    rollback = Transaction.rollback

    def only_the_whole(transaction: Transaction, to: str | None = None) -> None:
        if to is None:
            rollback(transaction)

    Transaction.rollback = only_the_whole  # type: ignore[method-assign]


LAYERS: Mapping[str, Callable[[], None]] = {
    "": lambda: None,
    READS_DIRT: lambda: None,  # see ``snapshot``
    "commits without a look at others": _commits_blindly,
    "a new snapshot for each statement": _refreshes_snapshots,
    "ROLLBACK TO undoes nothing": _keeps_what_is_undone,
}


def install(layer: str) -> None:
    """Break it for the rest of this process's life."""
    LAYERS[layer]()


def snapshot(layer: str, found: Snapshot) -> Snapshot:
    """The snapshot for a reader: the real one, or one that sees everything."""
    if layer != READS_DIRT:
        return found
    return Snapshot(ALL_TXNS, {name: ValidWriteIdList(10**6) for name in found.write_ids})
