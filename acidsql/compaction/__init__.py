"""Compaction: make few directories of many, and delete files that no snapshot can read any more.

    initiator     changed tables and partitions → need a compaction? → the queue
    worker        the queue → one compaction at a time → ready for cleaning
    cleaner       ready for cleaning, and no open transaction is older → delete the old files
    housekeeper   dead workers, old history
    service       all four in a loop: ``acidsql compactor``; ``background`` in a session

Several of each may run at once, in any process. The store decides which worker has an entry of the
queue. No reader or writer waits for a lock of theirs; DROP and ALTER of the table do. For a
rebalance, statements that update, delete or overwrite wait, too.

Source: Hive ``Initiator``, ``Worker``, ``Cleaner``, ``AcidHouseKeeperService``.

This package knows the queue, ``storage/`` and transactions. It must not know statements. Read
``initiator``, ``worker`` and ``cleaner`` first.
"""
