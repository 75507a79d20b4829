"""Where tables, transactions and locks are kept.

* ``interface``: the Protocols ``Catalog``, ``TxnStore``, ``Metastore``, and their values.
* ``lock_rules``: which lock waits for which; pure.
* ``embedded``: over SQLAlchemy, in an SQLite file by default.

Everything above this package knows ``interface`` only.
"""
