"""What a metastore can do. Callers ask for an ability by name, never for the metastore's class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Abilities:
    """Abilities that not every metastore has. The defaults are the embedded metastore's.

    Attributes:
        can_work: Sessions take entries of the compaction queue, and compact. False: a session only
            queues requests.
        can_rebalance: Sessions rebalance, too. False: the metastore's own workers do. COMMIT would
            not notice everywhere that the rows which it changes have got new row ids.
        can_initiate: The metastore tells which tables changed (``candidates``).
        can_clean: Sessions delete the files that a compaction has replaced.
        reads_pairs: All readers leave out one of a compaction's two directories if the other one is
            missing. False: Hive reads the tables, too. It leaves out what bears the number of a
            transaction (``_v``) that has not committed.
        conflicts_by_row: COMMIT can leave out conflicts whose rows a session has compared.
        compares_snapshots: COMMIT compares every change with the transaction's snapshot. False: a
            transaction of one statement that reads nothing needs none, because its locks were the
            first thing that it asked for, and its write id tells what came later.
        remembers_changes: ``catalog_changes`` knows every change since the snapshot of a
            transaction of several statements. False: it compares what a name means with what the
            name meant when the transaction first asked.
        queues_cleanups: The metastore keeps a list of directories that are to be deleted. False:
            it deletes a dropped table's directory itself.
        shared_with_hive: Hive and others use its tables, too.
        read_by_hive3: Hive 3 reads its tables, which knows neither ZSTD nor directories with a
            transaction's number (``_v``). So ORC files are in ZLIB unless a table has another
            ``orc.compress``.
        leases_keep_files: A lease keeps the cleaner from the files of a snapshot. False: the
            cleaner waits for locks only. A DataFrame that is read late may fail, because its files
            are gone.
        alters_in_commit: COMMIT can give tables other columns.
        keeps_session_locks: A session can hold locks beyond its transactions, and its own
            statements do not wait for them. False: each transaction waits for all others.
        keeps_temporary_tables: The metastore tells which tables live with a session.
        keeps_keys: Tables have primary, unique and foreign keys, as information.
        keeps_streams: COMMIT can record which batch of a stream it commits.
        keeps_versions: COMMIT notes what it changed, and the cleaner what it deletes.
        keeps_state_tables: DROP and RENAME of a table take what is beside it (``acid.cdc``) along,
            and if others drop or rename one of them, that is noticed.
        replaces_tables: COMMIT can put a new table in the place of another one.
        txn_timeout_ms: The metastore's own time-out of transactions. None: each session sets one.
    """

    can_work: bool = True
    can_rebalance: bool = True
    can_initiate: bool = True
    can_clean: bool = True
    reads_pairs: bool = True
    conflicts_by_row: bool = True
    compares_snapshots: bool = True
    remembers_changes: bool = True
    queues_cleanups: bool = True
    shared_with_hive: bool = False
    read_by_hive3: bool = False
    leases_keep_files: bool = True
    alters_in_commit: bool = True
    keeps_session_locks: bool = True
    keeps_temporary_tables: bool = True
    keeps_keys: bool = True
    keeps_streams: bool = True
    keeps_versions: bool = True
    keeps_state_tables: bool = True
    replaces_tables: bool = True
    txn_timeout_ms: int | None = None

    @property
    def compacts(self) -> bool:
        """Whether a session may do the whole work of compactions: find, compact, clean up."""
        return self.can_work and self.can_initiate and self.can_clean
