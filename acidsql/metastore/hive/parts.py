"""The parts of a Hive Metastore as a store: each gets the parts below it that it needs."""

from __future__ import annotations

from acidsql.metastore.hive.catalog.alterations import HiveAlterations
from acidsql.metastore.hive.catalog.cdc_tables import HiveCdcTables
from acidsql.metastore.hive.catalog.constraints import HiveConstraints
from acidsql.metastore.hive.catalog.databases import HiveDatabases
from acidsql.metastore.hive.catalog.foreign import HiveForeign
from acidsql.metastore.hive.catalog.history import HiveHistory
from acidsql.metastore.hive.catalog.ledger import HiveLedger
from acidsql.metastore.hive.catalog.partitions import HivePartitions
from acidsql.metastore.hive.catalog.statistics import HiveStatistics
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.catalog.views import HiveViews
from acidsql.metastore.hive.commit import HiveCommit
from acidsql.metastore.hive.compactions import HiveCompactions
from acidsql.metastore.hive.locking.conflicts import HiveConflicts
from acidsql.metastore.hive.locking.locks import HiveLocks
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.streams import HiveStreams
from acidsql.metastore.hive.txns import HiveTxns
from acidsql.metastore.hive.versions import HiveVersions
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server
from acidsql.metastore.hive.workers import HiveWorkers


class Parts:
    """The parts over one server, from the bottom up."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.raw_tables = raw = RawTables(server)
        self.conflicts = HiveConflicts(server, raw)
        self.numbers = HiveNumbers(server)
        self.locks = HiveLocks(server, self.numbers)
        # The catalog.
        self.databases = HiveDatabases(server, self.numbers)
        self.constraints = HiveConstraints(server)
        self.tables = HiveTables(server, raw, self.numbers, self.databases, self.constraints)
        self.alterations = HiveAlterations(server, raw, self.numbers, self.constraints, self.tables)
        self.cdc_tables = HiveCdcTables(raw, self.numbers, self.tables)
        self.views = HiveViews(server, raw, self.numbers, self.tables, self.cdc_tables)
        self.foreign = HiveForeign(server, raw, self.numbers)
        self.partitions = HivePartitions(server, raw)
        self.statistics = HiveStatistics(server, raw, self.locks, self.partitions)
        self.history = HiveHistory(server, raw, self.numbers)
        self.ledger = HiveLedger(server, raw, self.locks, self.databases, self.views)
        self.versions = HiveVersions()
        # Transactions.
        self.compactions = HiveCompactions(server)
        self.workers = HiveWorkers(server, raw, self.compactions)
        self.txns = HiveTxns(
            server, raw, self.numbers, self.locks, self.partitions, self.statistics
        )
        self.streams = HiveStreams(
            server, raw, self.numbers, self.locks, self.views, self.ledger, self.txns
        )
        self.commit = HiveCommit(
            server, self.numbers, self.conflicts, self.tables, self.partitions,
            self.statistics, self.txns, self.streams, self.workers,
        )  # fmt: skip
