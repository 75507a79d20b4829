"""Compaction: make few directories of many, and delete files that no snapshot can read any more.

    initiator     checks which changed tables and partitions need a compaction, and queues them
    worker        takes one entry of the queue, compacts, and marks the entry ready for cleaning
    cleaner       deletes the files that such a compaction has replaced, when every open transaction
                  began after the compaction; also files of aborted transactions and of crashes
    housekeeper   aborts timed-out transactions, queues entries of dead workers again, and deletes
                  old history
    service       runs these four in a loop (``acidsql compactor``)
    background    runs them for the tables that one session has written to

Several of each may run at once, in any process. The store decides which worker has an entry of the
queue. During a minor or major compaction only statements with an EXCLUSIVE lock wait, such as DROP
and ALTER of the table. During a rebalance, UPDATE, DELETE, MERGE and overwrites wait, too.

Source: Hive ``Initiator``, ``Worker``, ``Cleaner``, ``AcidHouseKeeperService``.

This package knows the queue, ``storage/`` and transactions. It must not know statements. Read
``initiator``, ``worker`` and ``cleaner`` first.
"""
