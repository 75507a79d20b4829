"""One database as a whole ``Metastore``."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.metastore.abilities import Abilities
from acidsql.metastore.embedded.catalog import EmbeddedCatalog
from acidsql.metastore.embedded.compactions import EmbeddedCompactions
from acidsql.metastore.embedded.database.engine import Store
from acidsql.metastore.embedded.database.schema import SCHEMA_VERSION
from acidsql.metastore.embedded.locks import EmbeddedLocks
from acidsql.metastore.embedded.records.streams import EmbeddedStreams
from acidsql.metastore.embedded.records.versions import EmbeddedVersions
from acidsql.metastore.embedded.txns import EmbeddedTxns
from acidsql.settings import Settings


class EmbeddedMetastore(
    EmbeddedCatalog,
    EmbeddedTxns,
    EmbeddedLocks,
    EmbeddedCompactions,
    EmbeddedStreams,
    EmbeddedVersions,
):
    """Tables, transactions, locks, compactions: one database, shared by any number of processes.

    Every method is one store transaction: all of its changes happen or, if it raises, none (I12).
    Several threads may use an instance. A process must not fork during a call.

    Args:
        url: ``sqlite:////directory/file`` (see ``sqlite_url``). The directory must exist, on a
            disk of this machine; opening makes the file. Or ``postgresql+psycopg://…``,
            ``mysql+pymysql://…``, ``mariadb+pymysql://…``. The database must exist; opening makes
            its tables or brings them up to date.
        warehouse: Location of the database ``default``; used when the tables are made.
        clock: Milliseconds since the epoch, for tests; None for the database's own clock.
        settings: For ``acidsql.metastore.busy.timeout``.

    Raises:
        MetastoreError: The database cannot be opened, is no metastore of acidsql, or belongs to
            a newer acidsql.
    """

    def __init__(
        self,
        url: str,
        *,
        warehouse: str,
        clock: Callable[[], int] | None = None,
        settings: Settings | None = None,
    ) -> None:
        busy_timeout_ms = (settings or Settings()).metastore_busy_timeout_ms
        self._store = Store(url, warehouse=warehouse, clock=clock, busy_timeout_ms=busy_timeout_ms)

    @property
    def abilities(self) -> Abilities:
        """All abilities: the defaults of ``Abilities``."""
        return Abilities()

    @property
    def url(self) -> str:
        """The URL without a password."""
        return self._store.name

    @property
    def kind(self) -> str:
        """The database, and the version of the schema, which is that of this acidsql."""
        return f"{self._store.dialect_name}, schema version {SCHEMA_VERSION} of acidsql"

    def close(self) -> None:
        """Close the connections to the database."""
        self._store.close()
