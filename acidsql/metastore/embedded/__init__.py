"""A metastore of our own, over SQLAlchemy Core. No other package imports SQLAlchemy.

``database/`` has the schema (Hive's tables), its revisions, the dialects, and ``engine``:
connections, store transactions, the clock. ``records/`` reads and writes single tables of the
database. On them stand ``catalog``, ``txns``, ``locks`` and ``compactions``, one part each;
``store`` is the whole ``Metastore``.

*txn* always means a transaction of acidsql. A transaction of SQLAlchemy is a *store transaction*.

This package must not be imported by anything but ``api/``. Read ``database/schema`` and ``txns``
first.
"""

from acidsql.metastore.embedded.database.sqlite import sqlite_url
from acidsql.metastore.embedded.store import EmbeddedMetastore

__all__ = ["EmbeddedMetastore", "sqlite_url"]
