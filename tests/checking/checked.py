"""Tables of files for tests of the check, and the check itself, without Spark and metastore."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

from acidsql.acid.bucket_codec import encode
from acidsql.acid.findings import sort_findings
from acidsql.acid.layout import ACID_VERSION, ACID_VERSION_FILE
from acidsql.acid.table import ORC, PARQUET, Column, Table, TableName
from acidsql.acid.write_ids import ALL_TXNS, ValidWriteIdList
from acidsql.storage.checking import job
from acidsql.storage.checking.directories import CatalogFacts
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.pruning.inventory import inventory
from acidsql.storage.tables.parquet import ParquetFileWriter
from acidsql.storage.writing.plain_file import PlainFileWriter

SCHEMA = RowSchema.from_fields([("v", "string")])
HIGHEST, HIGHEST_TXN = 20, 100


class Files:
    """A table's directory, with the column ``v``."""

    def __init__(
        self, root: Path, *, partition_columns=(), buckets=(), file_format=ORC, **properties: str
    ) -> None:
        self.root = root
        columns, by = (Column("v", "string"),), tuple(Column(c, "int") for c in partition_columns)
        self.table = Table(
            TableName("d", "t"), str(root), columns, by, tuple(buckets),
            4 if buckets else -1, properties, file_format=file_format,
        )  # fmt: skip
        root.mkdir(parents=True, exist_ok=True)

    def insert(self, path: str, keys) -> Path:
        """A file of insert events with these (write id, bucket id, row number)."""
        writer = self._writer(path)
        batch = pa.record_batch([[f"value {number}" for number in range(len(keys))]], ["v"])
        writes, buckets, numbers = np.array(keys, dtype=np.int64).T
        properties = [encode(int(bucket), 0) for bucket in buckets]
        writer.rewrite_inserts(batch, writes, properties, numbers)
        writer.close()
        return self.root / path

    def delete(self, path: str, keys, by) -> Path:
        """A file of delete events; ``by``: the write id of all, or of each."""
        writer = self._writer(path)
        writes, buckets, numbers = np.array(keys, dtype=np.int64).T
        properties = [encode(int(bucket), 0) for bucket in buckets]
        writer.write_deletes(writes, properties, numbers, np.broadcast_to(by, len(keys)))
        writer.close()
        return self.root / path

    def plain(self, path: str, rows: int) -> Path:
        """A file without events."""
        target = self._made(path)
        opened = filesystem_for(str(target)).open_output(str(target))
        if self.table.file_format == PARQUET:
            writer = ParquetFileWriter(opened, SCHEMA, "uncompressed")
        else:
            writer = PlainFileWriter(opened, SCHEMA)
        writer.write_inserts(pa.record_batch([["x"] * rows], ["v"]), 0, 0, 0)
        writer.close()
        return target

    def put(self, path: str, data: bytes = b"x") -> Path:
        target = self._made(path)
        target.write_bytes(data)
        return target

    def copy(self, source: str, target: str) -> None:
        shutil.copytree(self.root / source, self.root / target)

    def _made(self, path: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _writer(self, path: str) -> EventFileWriter:
        target = self._made(path)
        (target.parent / ACID_VERSION_FILE).write_bytes(ACID_VERSION)
        # Bytes of an uncompressed file can be changed one by one.
        options = OrcOptions(compression="none")
        opened = filesystem_for(str(target)).open_output(str(target))
        return EventFileWriter(opened, SCHEMA, options)

    def check(
        self, *, all_rows=True, partitions=None, write_ids=None, txns=ALL_TXNS
    ) -> list[tuple[str, str]]:
        """The condition and the path below the table of each finding."""
        return [(one.condition, self.below(one.path)) for one in self.findings(
            all_rows=all_rows, partitions=partitions, write_ids=write_ids, txns=txns
        )]  # fmt: skip

    def findings(self, *, all_rows=True, partitions=None, write_ids=None, txns=ALL_TXNS):
        location, seen = str(self.root), write_ids or ValidWriteIdList(HIGHEST)
        fs = filesystem_for(location)
        columns = [column.name for column in self.table.partition_columns]
        found = inventory(fs, location, partitions, seen, txns, columns=columns)
        known = CatalogFacts([""] if partitions is None else partitions, HIGHEST, HIGHEST_TXN)
        checking = job.TableCheck(fs, self.table, seen, txns, all_rows)
        return sort_findings(checking.run(None, found, known))

    def below(self, path: str) -> str:
        return path.removeprefix(str(self.root)).lstrip("/")
