"""The whole of it: one database as a ``Metastore``."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.metastore.embedded.catalog import EmbeddedCatalog
from acidsql.metastore.embedded.compactions import EmbeddedCompactions
from acidsql.metastore.embedded.engine import Store
from acidsql.metastore.embedded.locks import EmbeddedLocks
from acidsql.metastore.embedded.txns import EmbeddedTxns
from acidsql.settings import Settings


class EmbeddedMetastore(EmbeddedCatalog, EmbeddedTxns, EmbeddedLocks, EmbeddedCompactions):
    """Tables, transactions, locks, compactions: one database, shared by any number of processes.

    Every method is one store transaction: it happens wholly or, where it raises, not at all
    (I12). An instance may be used from several threads, not across a fork's open call.

    Args:
        url: ``sqlite:////directory/file`` (see ``sqlite_url``): the directory must exist, on a
            disk of this machine; the file is made when it is opened. Or
            ``postgresql+psycopg://…``, ``mysql+pymysql://…``, ``mariadb+pymysql://…``: the
            database must exist; its tables are made when it is opened, and brought up to date.
        warehouse: Location of the database ``default``; used when the tables are made.
        clock: Milliseconds since the epoch, for tests; None for the database's own clock.
        settings: For ``acidsql.metastore.busy.timeout``.

    Raises:
        MetastoreError: It cannot be opened, or it is something else or newer.
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
    def url(self) -> str:
        """Where it is, without a password."""
        return self._store.name

    def close(self) -> None:
        """See ``Metastore.close``."""
        self._store.close()
