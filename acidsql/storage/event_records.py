"""What travels between a statement's query, its tasks and the driver: names, specs, records.

Workers import this: no pyspark, nothing of the driver's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import pyarrow as pa

from acidsql.storage.orc_options import DEFAULT, OrcOptions
from acidsql.storage.row_schema import RowSchema

# The columns beside the user's: what a row is to become, and where. All begin with the reserved
# prefix, so that no user column can be taken for one of them.
PREFIX = "__acidsql_"
ACTION = f"{PREFIX}action"  # a sum of the three below
PARTITION_NUMBER = f"{PREFIX}partition_number"  # within one scan
PARTITION = f"{PREFIX}partition"  # directory of the row that the query read, "" if unpartitioned
WRITE_ID = f"{PREFIX}writeid"  # row id of the row that the query read
BUCKET_PROPERTY = f"{PREFIX}bucketid"
ROW_ID = f"{PREFIX}rowid"
KEYS = (WRITE_ID, BUCKET_PROPERTY, ROW_ID, PARTITION)  # which row that is
BUCKET = f"{PREFIX}bucket"  # CLUSTERED BY's number of a new row
VALUE = f"{PREFIX}p"  # + ordinal: value of a partition column as text, for new rows

INSERT, DELETE, MATCHED = 1, 2, 4

# What step 1 hands to step 2, and step 2 to the driver.
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
    """Whether events of these columns have no rows: they can only delete."""
    return set(columns) <= set(KEY_SCHEMA.names)


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """What a task must know to write a statement's events.

    Attributes:
        staging: The statement's hidden directory; files are written there under unique names.
        write_id: The transaction's write id in the table.
        insert_statement_id: Statement id of the insert events.
        delete_statement_id: That of the delete events; lower, so that Hive applies deletes to
            older rows only.
        row: The data columns.
        not_null: What may not be null: a column of the batches, and the name that the user
            knows it by (they differ for partition columns).
        partition_columns: Names, for new rows' directories; empty if not partitioned.
        static_partition: The one directory of new rows, where the statement names it.
        is_bucketed: Rows come with their bucket number, sorted by partition and bucket.
        allow_duplicate_deletes: Two source rows may match one row (MERGE's only, unconditional
            DELETE); otherwise a second match is reported as a violation.
        orc: How files are written.
        insert_only: Rows lie in plain files, without event columns.
        loaded: So do these, of whatever table: they are files of others.
        parquet: The compression of Parquet files; None: files are ORC.
    """

    staging: str
    write_id: int
    insert_statement_id: int
    delete_statement_id: int
    row: RowSchema
    not_null: tuple[tuple[str, str], ...] = ()
    partition_columns: tuple[str, ...] = ()
    static_partition: str | None = None
    is_bucketed: bool = False
    allow_duplicate_deletes: bool = False
    orc: OrcOptions = DEFAULT
    insert_only: bool = False
    loaded: bool = False
    parquet: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Which task this is: its number in the stage, and its attempt, unique in the application."""

    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Record:
    """What a task tells the driver.

    Attributes:
        kind: ``insert`` or ``delete`` (a file), ``done`` (step 1 of this task ended), ``seen``
            (step 2 read keys of this task), ``matched`` (rows matched without an action),
            ``duplicate`` (a row was matched twice), ``null`` (a NOT NULL column had nulls),
            ``gone`` (a file that was to be loaded).
        rows: Events in the file; rows concerned.
        updated: Of an insert file, how many events are new versions of existing rows.
        detail: The column, for ``null``.
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
        """One line of text, to travel in a column."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Record:
        """The record that ``to_json`` wrote."""
        return cls(**json.loads(text))
