"""What a metastore knows of a table: columns, partitions, buckets, properties. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PROPERTIES = "transactional_properties"
BUCKETING_VERSION = "bucketing_version"
# They say what a table's files are, so that they cannot be changed at will.
FIXED_PROPERTIES = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, BUCKETING_VERSION)
FULL_ACID, INSERT_ONLY = "default", "insert_only"  # values of transactional_properties
ORC, PARQUET = "orc", "parquet"  # what a table's files are; STORED AS


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: In lower case, as a Hive metastore has it.
        type: Hive's type text, in lower case (``decimal(10,2)``, ``struct<a:int>``).
        nullable: False for NOT NULL.
        default: The SQL text of its DEFAULT, or None.
        comment: Its COMMENT, or None.
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class TableName:
    """A database and a table, both in lower case."""

    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column of SORTED BY; nulls are smaller than all values, as in Hive."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the metastore has it.

    Attributes:
        name: Its qualified name.
        location: Absolute path or URI of its directory.
        columns: The data columns, in order; partition columns are not among them.
        partition_columns: In order; empty if the table is not partitioned.
        bucket_columns: CLUSTERED BY, in order; empty if the table is not bucketed.
        num_buckets: INTO n BUCKETS; -1 if the table is not bucketed, as in Hive.
        properties: TBLPROPERTIES.
        comment: The table's COMMENT, or None.
        checks: CHECK constraints: name → SQL text.
        sort_columns: SORTED BY: how rows follow one another in each bucket file. Insert-only
            tables alone have it: full-ACID files are sorted by row id.
        file_format: ``orc``, or ``parquet``, which insert-only tables alone may have.
    """

    name: TableName
    location: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()
    bucket_columns: tuple[str, ...] = ()
    num_buckets: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    sort_columns: tuple[SortColumn, ...] = ()
    file_format: str = ORC

    @property
    def is_insert_only(self) -> bool:
        """True for ``transactional_properties=insert_only`` (no row ids, no deletes)."""
        return self.properties.get(TRANSACTIONAL_PROPERTIES, "").lower() == INSERT_ONLY

    @property
    def is_bucketed(self) -> bool:
        """True if it is CLUSTERED BY."""
        return self.num_buckets > 0

    @property
    def bucketing_version(self) -> int:
        """Which hash CLUSTERED BY uses: 2 if the property says so, else 1 (Hive's rule)."""
        return 2 if self.properties.get(BUCKETING_VERSION) == "2" else 1

    def lies_as(self, other: Table) -> bool:
        """True if the files of both lie in the same place and are read in the same way."""
        return (
            self.location == other.location
            and self.partition_columns == other.partition_columns
            and self.bucket_columns == other.bucket_columns
            and self.num_buckets == other.num_buckets
            and self.bucketing_version == other.bucketing_version
            and self.is_insert_only == other.is_insert_only
        )

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Data columns, then partition columns: the order of ``SELECT *``."""
        return self.columns + self.partition_columns


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its values as Hive writes them, in the order of the partition columns.

    Attributes:
        values: Unescaped text; None for NULL and for the empty string, which share
            ``__HIVE_DEFAULT_PARTITION__``.
        location: Absolute path or URI of its directory.
    """

    values: tuple[str | None, ...]
    location: str
