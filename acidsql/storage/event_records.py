"""Names, specs and records that a statement's query, its tasks and the driver share.

Workers import this module: it imports neither pyspark nor modules of the driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, field
from enum import Enum, auto

import pyarrow as pa

from acidsql.acid.partition_names import PartitionNames
from acidsql.storage.orc.options import DEFAULT, OrcOptions
from acidsql.storage.orc.row_schema import RowSchema

# Columns beside the user's columns: they say which events a row gives, and where. Their names begin
# with the reserved prefix, so no user column has such a name.
PREFIX = "__acidsql_"
ACTION = f"{PREFIX}action"  # a sum of INSERT, DELETE, MATCHED and MOVED
PARTITION_NUMBER = f"{PREFIX}partition_number"  # a partition's number within one scan
PARTITION = f"{PREFIX}partition"  # directory of the row that the query read, "" if unpartitioned
WRITE_ID = f"{PREFIX}writeid"  # row id of the row that the query read
BUCKET_PROPERTY = f"{PREFIX}bucketid"
ROW_ID = f"{PREFIX}rowid"
VERSION = f"{PREFIX}version"  # the write id under which a row was inserted or deleted
KEYS = (WRITE_ID, BUCKET_PROPERTY, ROW_ID, PARTITION)  # identify the row that the query read
BUCKET = f"{PREFIX}bucket"  # the bucket id of a new row, by CLUSTERED BY
VALUE = f"{PREFIX}p"  # + ordinal: value of a partition column as text, for new rows

INSERT, DELETE, MATCHED = 1, 2, 4
MOVED = 8  # with INSERT and DELETE: the new row's values say in which partition it is

# Columns that the insert stage hands to the delete stage, and the delete stage to the driver.
BUCKET_ID = f"{PREFIX}bucket_id"  # 12 bits
SOURCE_TASK = f"{PREFIX}task"
SOURCE_ATTEMPT = f"{PREFIX}attempt"
RECORD = f"{PREFIX}record"
KEY_SCHEMA = pa.schema(
    [
        (PARTITION, pa.string()),
        (BUCKET_ID, pa.int32()),
        (WRITE_ID, pa.int64()),
        (BUCKET_PROPERTY, pa.int32()),
        (ROW_ID, pa.int64()),
        (ACTION, pa.int32()),
        (SOURCE_TASK, pa.int32()),
        (SOURCE_ATTEMPT, pa.int64()),
        (RECORD, pa.string()),
    ]
)
RECORD_SCHEMA = pa.schema([(RECORD, pa.string())])


def are_keys_alone(columns: Iterable[str]) -> bool:
    """Whether events with these columns are row ids without the user's columns: all of the columns
    are columns of ``KEY_SCHEMA``. Such events can only delete rows.
    """
    return set(columns) <= set(KEY_SCHEMA.names)


class WriteMode(Enum):
    """What a statement's events do to the rows of its target."""

    NEW_TABLE = auto()  # CREATE TABLE … AS SELECT: they insert rows into a table that has none yet
    INSERT = auto()
    OVERWRITE = auto()  # they insert rows, which hide all older rows of their directories
    CHANGE = auto()  # UPDATE, DELETE; it is a WriteError if a row of the target is changed twice
    MOVE = auto()  # as CHANGE, for an UPDATE of a partition column: rows move to other partitions
    MERGE = auto()  # they delete and insert; a row that is matched twice: MergeCardinalityError
    MERGE_WITH_REPEATS = auto()  # the only WHEN MATCHED is a DELETE without a condition: no error

    @classmethod
    def of_insert(cls, *, is_overwrite: bool) -> WriteMode:
        """The mode of a statement that only inserts rows into an existing table: OVERWRITE or
        INSERT.
        """
        return cls.OVERWRITE if is_overwrite else cls.INSERT

    @property
    def is_merge(self) -> bool:
        """Whether the statement is a MERGE, of either mode."""
        return self in (WriteMode.MERGE, WriteMode.MERGE_WITH_REPEATS)

    @property
    def has_deletes(self) -> bool:
        """Whether there may be delete events (CHANGE, MOVE or a MERGE), so that a query has
        ``KEYS`` and ``ACTION``.
        """
        return self in (WriteMode.CHANGE, WriteMode.MOVE) or self.is_merge


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """How a statement's events are written to one table. Its tasks and the driver share it.

    Attributes:
        staging: The statement's hidden directory; files are written there under unique names.
        write_id: The transaction's write id in the table.
        insert_statement_id: Statement id of the insert events.
        delete_statement_id: Statement id of the delete events. It is lower than the id of the
            insert events, so that Hive applies deletes to older rows only.
        row: The data columns.
        not_null: The NOT NULL columns. Each is the name in the batches, and the user's name for the
            column (they differ for partition columns).
        mode: What the events do to the table's rows.
        partitions: The names of the partition directories.
        static_partition: The only directory of new rows, if the statement names it, or "" if the
            table has no partitions; else None.
        is_bucketed: Rows come with their bucket id, and rows of one bucket come together.
        orc: How ORC files are written.
        insert_only: Rows are written to plain files, without event columns.
        parquet: The compression of Parquet files; None if files are ORC.
        notes_replaced: The statement notes which rows its new versions of rows replace (see
            ``tables.replaced``).
    """

    staging: str
    write_id: int
    insert_statement_id: int
    delete_statement_id: int
    row: RowSchema
    not_null: tuple[tuple[str, str], ...] = ()
    mode: WriteMode = WriteMode.INSERT
    partitions: PartitionNames = field(default_factory=PartitionNames)
    static_partition: str | None = None
    is_bucketed: bool = False
    orc: OrcOptions = DEFAULT
    insert_only: bool = False
    parquet: str | None = None
    notes_replaced: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its number in the stage, and its attempt, which is unique in the application."""

    number: int
    attempt: int


EXAMPLES = 3  # rows that an error names


@dataclass(frozen=True, slots=True)
class RowKey:
    """What identifies a row of a table: the partition's directory and the row id."""

    partition: str
    write_id: int
    bucket_property: int
    row_id: int


def keys_as_text(keys: Sequence[RowKey]) -> str:
    """Return keys of rows as a text, for ``Record.detail``."""
    return json.dumps([astuple(key) for key in keys])


def keys_of_text(text: str) -> list[RowKey]:
    """Return the keys of rows that ``keys_as_text`` has written as this text; [] for ""."""
    return [RowKey(*values) for values in json.loads(text or "[]")]


@dataclass(frozen=True, slots=True)
class Record:
    """A message from a task to the driver.

    Attributes:
        kind: ``insert`` or ``delete`` (a written file), ``replaced`` (a file beside an ``insert``,
            see ``tables.replaced``), ``done`` (this task of the insert stage has ended), ``seen``
            (the delete stage read keys of this task), ``matched`` (rows matched without an action),
            ``duplicate`` (a row was matched twice), ``null`` (a NOT NULL column had nulls),
            ``gone`` (a file of LOAD DATA that does not exist any more).
        rows: The number of events in the file, or of the rows that the record is about.
        updated: For an insert file, the number of events that are new versions of rows.
        detail: For ``null``, the column's name. For ``duplicate``, the first rows (``RowKey``) that
            were matched twice, as text.
    """

    kind: str
    task: int
    attempt: int
    partition: str = ""
    bucket_id: int = 0
    path: str = ""
    rows: int = 0
    updated: int = 0
    bytes: int = 0
    detail: str = ""

    def to_json(self) -> str:
        """Return the record as one line of JSON, for a column of strings."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Return the record that ``to_json`` has written as this text."""
        return cls(**json.loads(text))
