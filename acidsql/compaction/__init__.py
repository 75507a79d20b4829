"""Compaction: making few directories of many, and deleting what nobody can read any more.

    initiator     what was written to → does it need one? → the queue
    worker        the queue → one compaction at a time → ready for cleaning
    cleaner       ready for cleaning, and no open transaction is older → the old files go
    housekeeper   dead workers, old history
    service       all four, again and again: ``acidsql compactor``; ``background`` in a session

Several of each may run at once, in any process: the store says whose an entry is. None of them
holds a lock that a reader or writer waits for; only who drops a table or changes its columns does.

Source: Hive ``Initiator``, ``Worker``, ``Cleaner``, ``AcidHouseKeeperService``.
"""
