"""A Hive Metastore as acidsql's store, over Thrift. No other package imports Thrift.

``wire/`` has the calls, from ``hive_metastore.thrift`` (Hive's interface) to ``calls`` (which call
which server has). ``locking/`` and ``catalog/`` are parts on top of it, as are ``compactions`` and
``workers`` here; ``txns`` puts them together, and ``store`` is the whole ``Metastore``.

Words of Thrift must not leave this package. It must not be imported by anything but
``api/opening`` and ``terminal/hive_check``, and only when a session asks for it, because Thrift is
an optional dependency. Read ``wire/own_txns`` first.
"""
