"""The rules of Hive's ACID format and transactions: pure, frozen values; no Spark, no files.

The invariants that everything above keeps; code cites them (``# I4``) and tests are named after
them (``test_i4_…``):

1. An event is visible in a snapshot exactly when the write id it was written under is valid there.
2. A file is written once; a published directory of a committed write id is never changed, only
   deleted by the cleaner.
3. ``rowId`` is unique within (write id, bucket property) of a partition.
4. Events in a bucket file are strictly ascending by row id (originalTransaction, bucket, rowId);
   deletes too.
5. A delete event lies in the file of the 12-bit bucket id encoded in the row id it deletes; one
   row id is never in two visible delete files.
6. A snapshot is taken after the first locks and never refreshed within a transaction that has
   read or written. What others commit after it, to what the transaction changes, is a conflict.
7. Between scan and publish no row comes to the driver, one record per file does (literal VALUES
   up to a limit aside).
8. An event file is always read with all six event columns referenced (else Spark's ORC reader
   fails).
9. A statement's events come from one evaluation of one query (a source with ``rand()`` gives one
   answer).
10. Compaction changes no snapshot's rows.
11. The cleaner deletes only what no live snapshot can see.
12. In the store, a transaction's state and its locks change together or not at all.
"""
