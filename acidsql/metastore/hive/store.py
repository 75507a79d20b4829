"""A Hive Metastore as a whole ``Metastore``."""

from __future__ import annotations

from dataclasses import replace

from acidsql.metastore.abilities import Abilities
from acidsql.metastore.hive.parts import Parts
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.features import Features, probe
from acidsql.metastore.hive.wire.server import ListNames, Server

ABILITIES = Abilities(
    reads_pairs=False,
    can_rebalance=False,
    can_initiate=False,
    can_clean=False,
    conflicts_by_row=False,
    compares_snapshots=False,
    queues_cleanups=False,
    shared_with_hive=True,
    alters_in_commit=False,
    keeps_session_locks=False,
    keeps_keys=False,
    keeps_versions=False,
    replaces_tables=False,
    keeps_temporary_tables=False,
)
ABILITIES_OF_3 = replace(
    ABILITIES,
    can_work=False,
    keeps_streams=False,  # a COMMIT sets no property
    keeps_state_tables=False,  # a table has no number by which a later one of its name is another
    compares_snapshots=True,  # right before its snapshot, a transaction gets its newer number
    read_by_hive3=True,
    leases_keep_files=False,
)


class HiveMetastore:
    """Tables, transactions and locks of a Hive Metastore, shared with Hive and others.

    Several threads may use an instance; each gets a connection. The methods of ``Metastore`` are
    those of the parts: the instance has them as attributes, so a subclass cannot override them.

    Attributes:
        parts: The parts. Each has some of the methods, which ``Metastore`` describes.

    Args:
        url: ``thrift://host:9083``; see ``address``.
        list_names: Gives the names of what is in a directory; none if there is no such directory.

    Raises:
        SettingError: The URL is wrong, a package or a password is missing, or the server is too
            old.
        MetastoreError: No server answers.
    """

    def __init__(self, url: str, *, list_names: ListNames) -> None:
        client = Client(Address.parse(url))
        try:
            features = probe(client)
        except BaseException:
            client.close()
            raise
        self.parts = parts = Parts(Server(client, features, list_names))
        self._delegate_catalog(parts)
        self._delegate_txns(parts)
        self._delegate_compactions(parts)
        self._delegate_streams_and_versions(parts)

    def _delegate_catalog(self, parts: Parts) -> None:
        """Set the methods of ``Catalog`` and ``CatalogHistory`` as attributes: the bound methods of
        the parts."""
        self.databases = parts.databases.databases
        self.get_database = parts.databases.get_database
        self.create_database = parts.databases.create_database
        self.alter_database = parts.databases.alter_database
        self.drop_database = parts.databases.drop_database
        self.tables = parts.tables.tables
        self.temporary_tables = parts.tables.temporary_tables
        self.find = parts.tables.find
        self.glance = parts.tables.glance
        self.create_table = parts.tables.create_table
        self.owners = parts.tables.owners
        self.pending_cleanups = parts.tables.pending_cleanups
        self.queue_cleanup = parts.tables.queue_cleanup
        self.mark_cleaned = parts.tables.mark_cleaned
        self.drop_table = parts.cdc_tables.drop_table
        self.rename_table = parts.cdc_tables.rename_table
        self.alter_table = parts.alterations.alter_table
        self.foreign_keys_to = parts.alterations.foreign_keys_to
        self.views = parts.views.views
        self.create_view = parts.views.create_view
        self.drop_view = parts.views.drop_view
        self.rename_view = parts.views.rename_view
        self.partitions = parts.partitions.partitions
        self.statistics = parts.statistics.statistics
        self.keep_statistics = parts.statistics.keep_statistics
        self.with_partitions = parts.foreign.with_partitions
        self.make_transactional = parts.foreign.make_transactional
        self.watch_catalog = parts.history.watch_catalog
        self.catalog_changes = parts.history.catalog_changes

    def _delegate_txns(self, parts: Parts) -> None:
        """Set the methods of ``TxnStore`` as attributes: the bound methods of the parts."""
        self.open_txn = parts.txns.open_txn
        self.valid_txns = parts.txns.valid_txns
        self.valid_txns_under = parts.txns.valid_txns_under
        self.keep_files = parts.txns.keep_files
        self.allocate_write_id = parts.txns.allocate_write_id
        self.record_partitions = parts.txns.record_partitions
        self.restore_components = parts.txns.restore_components
        self.abort_txn = parts.txns.abort_txn
        self.txn_state = parts.txns.txn_state
        self.show_txns = parts.txns.show_txns
        self.abort_timed_out = parts.txns.abort_timed_out
        self.house_keep = parts.txns.house_keep
        self.commit_txn = parts.commit.commit_txn
        self.renew = parts.numbers.renew
        self.heartbeat = parts.numbers.heartbeat
        self.lock = parts.locks.lock
        self.check_lock = parts.locks.check_lock
        self.unlock = parts.locks.unlock
        self.show_locks = parts.locks.show_locks
        self.write_conflicts = parts.conflicts.write_conflicts
        self.valid_write_ids = parts.conflicts.valid_write_ids

    def _delegate_compactions(self, parts: Parts) -> None:
        """Set the methods of ``CompactionQueue`` as attributes: the bound methods of the parts."""
        self.compact = parts.workers.compact
        self.has_work = parts.workers.has_work
        self.take_next = parts.workers.take_next
        self.begin_compaction = parts.workers.begin_compaction
        self.note_progress = parts.workers.note_progress
        self.mark_failed = parts.workers.mark_failed
        self.mark_refused = parts.workers.mark_refused
        self.queue_again = parts.workers.queue_again
        self.revoke = parts.workers.revoke
        self.compactions = parts.compactions.compactions
        self.abort_compactions = parts.compactions.abort_compactions
        self.now_ms = parts.compactions.now_ms
        self.purge_compaction_history = parts.compactions.purge_compaction_history
        self.candidates = parts.compactions.candidates
        self.ready_to_clean = parts.compactions.ready_to_clean
        self.aborted_write_ids = parts.compactions.aborted_write_ids
        self.did_not_initiate = parts.compactions.did_not_initiate
        self.mark_compaction_cleaned = parts.compactions.mark_compaction_cleaned
        self.retry_cleaning_later = parts.compactions.retry_cleaning_later
        self.forget_aborted = parts.compactions.forget_aborted

    def _delegate_streams_and_versions(self, parts: Parts) -> None:
        """Set the methods of ``StreamLedger`` and ``VersionLog`` as attributes: the bound methods
        of the parts."""
        self.stream = parts.ledger.stream
        self.streams = parts.ledger.streams
        self.sink = parts.ledger.sink
        self.take_over_stream = parts.streams.take_over_stream
        self.end_other_runs = parts.streams.end_other_runs
        self.forget_stream = parts.streams.forget_stream
        self.versions = parts.versions.versions
        self.changed_by = parts.versions.changed_by
        self.oldest_version = parts.versions.oldest_version
        self.first_version = parts.versions.first_version
        self.identity = parts.versions.identity
        self.forget_versions = parts.versions.forget_versions
        self.last_commit = parts.versions.last_commit

    @property
    def features(self) -> Features:
        """The server's version and settings."""
        return self.parts.server.features

    @property
    def abilities(self) -> Abilities:
        """The abilities: those of a server of Hive 3 or Hive 4, without streams if the server
        caches tables, and without leases that keep files if the server's cleaner asks for what a
        reader cannot tell. Whether changes are remembered, and the time-out, are as the server
        says."""
        keeps_files = self.features.registers_readers or not self.features.cleans_by_write_id
        of_version = ABILITIES_OF_3 if self.features.is_hive3 else ABILITIES
        return replace(
            of_version,
            # With a cache nobody could tell whether a batch was noted.
            keeps_streams=of_version.keeps_streams and not self.features.caches_tables,
            remembers_changes=self.features.logs_changes,
            leases_keep_files=of_version.leases_keep_files and keeps_files,
            txn_timeout_ms=self.features.txn_timeout_ms,
        )

    @property
    def url(self) -> str:
        """The servers, without options."""
        return str(self.parts.server.client.address)

    @property
    def kind(self) -> str:
        """The server, with the version that it tells."""
        return f"Hive Metastore {self.features.version}"

    @property
    def warehouse(self) -> str:
        """The directory of the database ``default``."""
        return self.features.warehouse

    def close(self) -> None:
        self.parts.server.client.close()
