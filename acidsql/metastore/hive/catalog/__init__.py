"""Tables, partitions and views of a Hive Metastore, and the ledger of streams in them.

``tables`` finds, creates and drops tables, ``alterations`` changes them, ``ledger`` keeps the
entries of streams in properties.

This package must not open or end transactions. Read ``tables`` first.
"""
