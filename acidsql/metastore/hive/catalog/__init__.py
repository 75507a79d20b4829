"""Tables, partitions and views of a Hive Metastore, and the ledger of streams in them.

``catalog`` reads and writes them, ``alterations`` changes them inside of a transaction, ``ledger``
keeps the entries of streams in properties.

This package must not open or end transactions. Read ``catalog`` first.
"""
