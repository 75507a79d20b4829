"""A Hive Metastore as acidsql's store, over Thrift. No other package imports Thrift.

``hive_metastore.thrift`` (Hive's interface) ← ``idl`` (its classes) ← ``connection`` (one server)
← ``client`` (calls, repeats, errors) ← ``hive3`` (other calls for Hive 3.1) ← ``calls`` ←
``catalog``, ``partitions``, ``locks``, ``conflicts``, ``renewals``, ``compactions`` (one part each)
← ``txns`` ← ``store`` (the whole ``Metastore``).

``address`` is the URL (and needs no Thrift), ``features`` what the server can do, ``own_txns`` what
a session must remember. ``convert`` and ``snapshots`` turn Hive's structs into values.

Words of Thrift must not leave this package. It must not be imported by anything but ``opening``,
and only when a session asks for it, because Thrift is an optional dependency. Read ``own_txns``
first.
"""
