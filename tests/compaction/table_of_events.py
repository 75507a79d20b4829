"""A table of events in an embedded metastore, compacted and cleaned without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from rows_on_disk import rows_on_disk

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import (
    ACID_VERSION,
    ACID_VERSION_FILE,
    bucket_name,
    delete_delta_name,
    delta_name,
)
from acidsql.acid.table import Column, Table, TableName
from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.worker import Worker, WorkerResources
from acidsql.metastore.compaction_queue import CompactionRequest, CompactionType
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, Operation, TxnType
from acidsql.settings import Settings
from acidsql.storage.checking.directories import CatalogFacts
from acidsql.storage.checking.job import TableCheck
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.pruning.inventory import inventory
from acidsql.txn import TxnManager

AS_HIVE = {"acidsql.history.retention": "0s"}  # nothing is kept for older versions
SCHEMA = RowSchema.from_fields([("v", "string")])
NAME = TableName("default", "t")


class PaperSpark:
    """A session of Spark Connect of which no job is asked."""

    session_id, is_stopped = "paper", False
    conf = SimpleNamespace(get=lambda name, default=None: default)
    # PySpark's names
    interruptTag = staticmethod(lambda tag: [])  # noqa: N815
    addTag = removeTag = staticmethod(print)  # noqa: N815
    registerProgressHandler = removeProgressHandler = staticmethod(print)  # noqa: N815


PAPER_SPARK = PaperSpark()


class Warehouse:
    """One table, its metastore, and a model of the rows that each snapshot sees."""

    def __init__(self, root: str) -> None:
        self.store = EmbeddedMetastore(sqlite_url(f"{root}/metastore.db"), warehouse=root)
        self.settings = Settings.of(AS_HIVE)
        self.txns = TxnManager(self.store, self.settings, user="me", host="here")
        self.place = f"{root}/t"
        self.store.create_table(Table(NAME, self.place, (Column("v", "string"),), ()))
        self.fs = filesystem_for(root)
        self.fs.create_directory(self.place)
        self.inserted: dict[tuple[int, int, int], str] = {}
        self.deleted: dict[tuple[int, int, int], set[int]] = {}

    def worker(self, **settings: str) -> Worker:
        self.txns.settings = Settings.of(AS_HIVE | settings)
        return Worker(PAPER_SPARK, self.store, self.txns, "here-1", WorkerResources("tag"))

    def cleaner(self) -> Cleaner:
        return Cleaner(self.store, self.txns)

    # ── writers ──────────────────────────────────────────────────────────────────────────────

    def begin(self, *, deletes=True):
        txn = self.txns.open()
        operation = Operation.DELETE if deletes else Operation.INSERT
        txn.lock([LockComponent(LockType.SHARED_READ, "default", "t", None, operation)])
        return txn

    def write(self, txn, buckets, victims, statement=0):
        """A statement: new rows in these bucket ids, and deletes of visible rows by number."""
        visible = sorted(self.expected(txn.snapshot([NAME])))
        keys = sorted({visible[victim % len(visible)] for victim in victims if visible})
        write_id = txn.write_id(NAME)
        for bucket in {key[1] >> 16 & 4095 for key in keys}:
            own = np.array([key for key in keys if key[1] >> 16 & 4095 == bucket]).T
            with_file = self._writer(delete_delta_name(write_id, statement), bucket)
            with_file.write_deletes(*own, write_id)
            with_file.close()
        for key in keys:
            self.deleted.setdefault(key, set()).add(write_id)
        for bucket in sorted(set(buckets)):
            rows, value = buckets.count(bucket), f"{write_id}-{statement}"
            with_file = self._writer(delta_name(write_id, statement + 1), bucket)
            batch = pa.record_batch([[value] * rows], ["v"])
            with_file.write_inserts(batch, write_id, encode(bucket, statement + 1), 0)
            with_file.close()
            for row in range(rows):
                self.inserted[write_id, encode(bucket, statement + 1), row] = value

    def change(self, buckets, victims=()):
        """A transaction with one statement."""
        txn = self.begin()
        self.write(txn, list(buckets), list(victims))
        txn.commit()

    def _writer(self, directory, bucket):
        path = f"{self.place}/{directory}"
        self.fs.create_directory(path)
        self.fs.write_file(f"{path}/{ACID_VERSION_FILE}", ACID_VERSION)
        return EventFileWriter(self.fs.open_output(f"{path}/{bucket_name(bucket)}"), SCHEMA)

    # ── readers ──────────────────────────────────────────────────────────────────────────────

    def lease(self):
        """An open snapshot: its transaction, and the rows that it sees."""
        txn = self.txns.open(txn_type=TxnType.READ_ONLY)
        return txn, txn.snapshot([NAME])

    def expected(self, seen):
        write_ids = seen.write_ids[NAME]
        # A transaction's own write id is open, and visible to itself.
        return {
            key: value
            for key, value in self.inserted.items()
            if write_ids.is_valid(key[0])
            and not any(map(write_ids.is_valid, self.deleted.get(key, ())))
        }

    def read(self, seen):
        return rows_on_disk(self.place, SCHEMA, seen.write_ids[NAME], seen.valid_txns)

    def findings(self, seen):
        """What a check of the snapshot finds, without what the cleaner is going to delete."""
        table, write_ids = self.store.find(NAME), seen.write_ids[NAME]
        found = inventory(self.fs, self.place, None, write_ids, seen.valid_txns)
        last = self.store.valid_txns()
        highest = self.store.valid_write_ids(last, [NAME])[NAME].high_water_mark
        known = CatalogFacts([""], highest, last.high_water_mark)
        checking = TableCheck(self.fs, table, write_ids, seen.valid_txns, all_rows=True)
        findings = checking.run(SimpleNamespace(), found, known)
        return [one for one in findings if one.condition != "ABORTED_DIRECTORY"]

    def now(self):
        """The rows that a new reader sees."""
        txn, seen = self.lease()
        txn.end_quietly()
        return seen

    # ── compaction ───────────────────────────────────────────────────────────────────────────

    def queue(self, kind=CompactionType.MAJOR, **more):
        return self.store.compact(CompactionRequest(NAME, None, kind, "here-me", **more)).id

    def compact(self, kind=CompactionType.MAJOR, *, properties=(), **settings):
        """Queue a compaction and run it. Returns its entry."""
        number = self.queue(kind, properties=dict(properties))
        self.worker(**settings).run_next(only=number)
        return self.entry(number)

    def entry(self, number):
        return next(one for one in self.store.compactions() if one.id == number)

    def directories(self):
        return sorted(entry.name for entry in self.fs.list(self.place))

    def close(self):
        self.txns.close()
        self.store.close()
