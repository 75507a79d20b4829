"""What others have changed in the catalog since a transaction took its snapshot.

A server that has DbNotificationListener among its *transactional* listeners notes each change of
the catalog in its notification log, in the database transaction that makes the change. The numbers
of the entries have no gaps, and they ascend as those transactions commit. So a transaction of
several statements asks for the highest number right before its snapshot, and reads later entries
when it has read the catalog.

Other servers remember nothing. Over them, a transaction compares a table with what the table was
when the transaction first asked.
"""

from __future__ import annotations

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import SnapshotTooOldError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.notifications import LogReader, event_changes, table_meaning
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server

_MOST_ENTRIES = 500  # in one call


class HiveHistory:
    """The part of the store that looks back at the catalog; ``CatalogHistory`` describes it."""

    def __init__(self, server: Server, raw_tables: RawTables, numbers: HiveNumbers) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers

    def watch_catalog(self, txn_id: int) -> None:
        """Note that the transaction may have several statements. If the server keeps a notification
        log, note its last entry, too: ``catalog_changes`` reads it from there."""
        own = self._server.own_txn(txn_id)
        own.may_have_several_statements = True
        if self._server.features.logs_changes:
            own.log = LogReader(self._last_entry())

    def catalog_changes(
        self, txn_id: int, snapshot: ValidTxnList, table: TableName
    ) -> list[CatalogChange]:
        """Return the changes that others made to a name since the snapshot, without their authors:
        a partition that is gone by its name, any other change as None. They come from the server's
        notification log, in its order; none if ``watch_catalog`` was not called. Without a log,
        compare with what the name was when this transaction first asked. ``snapshot`` is not used:
        the reader of the log knows where it began.

        Raises:
            TxnAbortedError, NoSuchTxnError: The transaction has ended. The server is asked unless
                the transaction has one statement, whose COMMIT tells, or is a lease.
            SnapshotTooOldError: The server has deleted entries of its log.
        """
        own = self._server.own_txns.get(txn_id)
        if own is None:
            self._numbers.heartbeat(txn_id)  # raises, because the transaction has ended
            return []
        if not self._server.features.logs_changes:
            changes = self._changes_since_first_look(own, table)
        elif own.log is None:
            return []  # a statement of its own, whose locks keep the catalog as it is, or a lease
        else:
            self._read_log(own.log)
            partitions = [change.partition for change in own.log.changes if change.concerns(table)]
            changes = [CatalogChange(None, partition) for partition in partitions]
        if own.may_have_several_statements:
            # The server forgets which write ids were open when an ended transaction took its
            # snapshot, and deletes the files that it wrote itself. So what was read is wrong then.
            self._numbers.heartbeat(txn_id)
        return changes

    def _last_entry(self) -> int:
        number: int = self._server.call("get_current_notificationEventId").eventId
        return number

    def _read_log(self, log: LogReader) -> None:
        """Read the entries since ``log.last``, and append the changes of this catalog to
        ``log.changes``.

        Raises:
            SnapshotTooOldError: Some of them are gone: the server deletes old ones.
        """
        last = self._last_entry()
        while log.last != last:
            request = hive.NotificationEventRequest(lastEvent=log.last, maxEvents=_MOST_ENTRIES)
            events = self._server.call("get_next_notification", request).events
            numbers = [event.eventId for event in events]
            if not numbers or numbers != list(range(log.last + 1, log.last + 1 + len(numbers))):
                raise SnapshotTooOldError(
                    "Nobody can tell any more which tables were changed since the snapshot, "
                    "because the metastore has deleted entries of its notification log. End this "
                    "transaction, or snapshot, and begin a new one.",
                )
            log.changes += (
                change for event in events for change in event_changes(event, self._server.catalog)
            )
            log.last = numbers[-1]
            last = max(last, log.last)

    def _changes_since_first_look(self, own: OwnTxn, table: TableName) -> list[CatalogChange]:
        """Return how a table differs from what it was when this transaction first asked: one change
        without a partition if the name means something else, otherwise a change for each partition
        that is gone, by name. The first call notes what there is, and gives no change; later calls
        note new partitions, too."""
        raw = self._raw_tables.find(table)
        partitions = frozenset[str]()
        if raw is not None and raw.partitionKeys:
            database = self._server.qualified_database(table.database)
            names = self._server.call("get_partition_names", database, table.name, -1)
            partitions = frozenset(names)
        now = None if raw is None else (convert.identity(raw), table_meaning(raw))
        before, partitions_before = own.first_looks.setdefault(table, (now, partitions))
        if now != before:
            return [CatalogChange(None, None)]
        own.first_looks[table] = (now, partitions_before | partitions)
        return [CatalogChange(None, name) for name in sorted(partitions_before - partitions)]
