"""The metastore: tables, transactions, locks, and the queue of compactions.

* ``interface``: the Protocols ``TxnStore`` and ``Metastore``, and their values.
* ``catalog``, ``compaction_queue``, ``catalog_history``: the Protocols ``Catalog``,
  ``CompactionQueue``, ``CatalogHistory``.
* ``abilities``: what not every metastore can do.
* ``lock_rules``, ``conflict_rules``: which locks wait and which changes conflict; pure functions.
* ``embedded``: the metastore over SQLAlchemy, in an SQLite file by default.
* ``hive``: a Hive Metastore, over Thrift.

Everything above this package knows the Protocols and the rules only.

It must not know files or Spark. Read ``interface`` first.
"""
