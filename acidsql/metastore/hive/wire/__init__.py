"""The calls of a Hive Metastore, over Thrift.

``address`` reads a URL, ``connection`` and ``security`` open it, ``idl`` has Thrift's structs.
``server`` is what the rest calls: it knows which server has which call (``features``, ``hive3``).
``raw_tables`` fetches and replaces the structs of tables.
``convert`` makes our values of Thrift's. ``own_txns`` remembers the transactions of this process.

This package must not decide: it asks and converts. One exception: ``server`` aborts the second
number of a transaction whose own number has ended. Read ``server`` first.
"""
