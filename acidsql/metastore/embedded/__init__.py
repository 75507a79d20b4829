"""A metastore of our own, over SQLAlchemy Core: the only home of that library.

``schema`` (Hive's tables) ← ``migrations`` (how they came to be) ← ``upgrade``;
``dialect`` (what databases differ in) ← ``sqlite``, ``postgresql``, ``mysql`` ← ``engine``
(connections, store transactions, the clock) ← ``catalog``, ``txns``, ``locks`` (one part each) ←
``store`` (all of it as one ``Metastore``).

*txn* is always one of ours; SQLAlchemy's are called *store transactions*.
"""

from acidsql.metastore.embedded.sqlite import sqlite_url
from acidsql.metastore.embedded.store import EmbeddedMetastore

__all__ = ["EmbeddedMetastore", "sqlite_url"]
