"""A metastore of our own, over SQLAlchemy Core. No other package imports SQLAlchemy.

``schema`` (Hive's tables) ← ``migrations`` (revisions of the schema) ← ``upgrade``;
``dialect`` (differences between databases) ← ``sqlite``, ``postgresql``, ``mysql`` ← ``engine``
(connections, store transactions, the clock) ← ``catalog``, ``txns``, ``locks``, ``compactions``
(one part each) ← ``store`` (the whole ``Metastore``).

*txn* always means a transaction of acidsql. A transaction of SQLAlchemy is a *store transaction*.

This package must not be imported by anything but ``session``. Read ``schema`` and ``txns`` first.
"""

from acidsql.metastore.embedded.sqlite import sqlite_url
from acidsql.metastore.embedded.store import EmbeddedMetastore

__all__ = ["EmbeddedMetastore", "sqlite_url"]
