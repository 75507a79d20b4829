"""A Hive Metastore as a whole ``Metastore``."""

from __future__ import annotations

from dataclasses import replace

from acidsql.metastore.abilities import Abilities
from acidsql.metastore.hive.catalog.cdc_tables import HiveCdcTables
from acidsql.metastore.hive.catalog.foreign import HiveForeign
from acidsql.metastore.hive.streams import HiveStreams
from acidsql.metastore.hive.wire.address import Address
from acidsql.metastore.hive.wire.calls import ListNames
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.features import probe

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


class HiveMetastore(HiveCdcTables, HiveStreams, HiveForeign):
    """Tables, transactions and locks of a Hive Metastore, shared with Hive and others.

    Several threads may use an instance; each gets a connection.

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
        super().__init__(client, features, list_names)

    @property
    def abilities(self) -> Abilities:
        """The abilities, which depend on the server's version and settings."""
        of_version = ABILITIES_OF_3 if self.features.is_hive3 else ABILITIES
        return replace(
            of_version,
            # With a cache nobody could tell whether a batch was noted.
            keeps_streams=of_version.keeps_streams and not self.features.caches_tables,
            remembers_changes=self.features.logs_changes,
            txn_timeout_ms=self.features.txn_timeout_ms,
        )

    @property
    def url(self) -> str:
        """The servers, without options."""
        return str(self._client.address)

    @property
    def warehouse(self) -> str:
        """The directory of the database ``default``."""
        return self.features.warehouse

    def close(self) -> None:
        self._client.close()
