"""The rules of Hive's ACID format and transactions, as pure, frozen values.

This package knows neither Spark nor files. Everything above this package keeps the invariants
below. Code cites them (``# I4``), and tests are named after them (``test_i4_…``):

1. A snapshot sees an event exactly when the event's write id is valid in the snapshot.
2. A file is written once. A published directory of a committed write id is never changed; only
   the cleaner deletes such a directory.
3. ``rowId`` is unique within (write id, bucket property) of a partition.
4. The events of a bucket file, delete events too, ascend strictly by row id
   (originalTransaction, bucket, rowId).
5. A delete event lies in the file of the 12-bit bucket id that is encoded in the row id to delete.
   No row id is in two visible delete files.
6. A transaction takes its snapshot after its first locks. The snapshot is never refreshed once
   the transaction has read or written. If another transaction then commits a change to something
   that this transaction changes too, the two are in conflict.
7. Between scan and publish the driver receives one record for each file, and no rows. There are
   bounded exceptions: literal VALUES; the few rows of a small change, which the driver writes
   itself; names and values of partitions.
8. Every read of an event file references all six event columns (otherwise Spark's ORC reader
   fails).
9. A statement's events come from one evaluation of one query, so a source with ``rand()`` gives
   one answer. The query reads a source twice only if the source gives the same rows each time.
10. Compaction does not change the rows of any snapshot.
11. The cleaner deletes only files that no live snapshot can see.
12. In the store, a transaction's state and its locks change together or not at all.

This package is values and pure functions. It must not know files, Spark or stores. Read ``layout``,
``event`` and ``state`` first.
"""
