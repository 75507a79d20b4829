"""A metastore of our own, over SQLAlchemy Core: the only home of that library.

``schema`` (Hive's tables) ← ``engine`` (connections, store transactions, the clock) ←
``catalog``, ``txns``, ``locks`` (one part each) ← ``store`` (all of it as one ``Metastore``).

*txn* is always one of ours; SQLAlchemy's are called *store transactions*.
"""

from acidsql.metastore.embedded.engine import sqlite_url
from acidsql.metastore.embedded.store import EmbeddedMetastore

__all__ = ["EmbeddedMetastore", "sqlite_url"]
