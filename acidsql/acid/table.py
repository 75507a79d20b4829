"""A table as the metastore has it: columns, partitions, buckets, properties. Pure values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from acidsql.acid.constraints import Constraint

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PROPERTIES = "transactional_properties"
BUCKETING_VERSION = "bucketing_version"
ORC_COMPRESSION = "orc.compress"
# These properties describe the table's files, so ALTER TABLE must not change them.
FIXED_PROPERTIES = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, BUCKETING_VERSION)
# While a table moves to another metastore, both metastores have it with this property.
MOVING = "acidsql.moving"
# Metastores keep statistics in properties of these names, which no ``Table`` has.
STATISTICS = "acidsql.statistics."
FULL_ACID, INSERT_ONLY = "default", "insert_only"  # values of transactional_properties
ORC, PARQUET = "orc", "parquet"  # the file formats: STORED AS
TEMPORARY = "@txn_"  # in the names of temporary tables, before a transaction's number
_TEMPORARY = re.compile(rf"{TEMPORARY}(\d+)$")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: The column's name in lower case, as in a Hive metastore.
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
    """A database and a table, both in lower case.

    The metastore keeps a temporary table under a name that nobody can give to another table. It
    ends with the number of the SESSION transaction that the table lives with. People are shown the
    name that they have given.
    """

    database: str
    name: str

    def __str__(self) -> str:
        """Return ``database.table`` as users write it."""
        return f"{self.database}.{self.shown}"

    @property
    def key(self) -> str:
        """``database.table`` as the metastore keeps it: a text that no other table has."""
        return f"{self.database}.{self.name}"

    @property
    def shown(self) -> str:
        """The table's name as users write it, without the database."""
        return _TEMPORARY.sub("", self.name)

    @property
    def session_txn_id(self) -> int | None:
        """The SESSION transaction that a temporary table lives with; None for any other table."""
        name_match = _TEMPORARY.search(self.name)
        return None if name_match is None else int(name_match[1])

    def for_session(self, session_txn_id: int) -> TableName:
        """Return the name under which the metastore keeps a temporary table of this name, which
        lives with the SESSION transaction ``session_txn_id``."""
        return TableName(self.database, f"{self.shown}{TEMPORARY}{session_txn_id}")


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column of SORTED BY. NULL sorts below all values, as in Hive."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ViewText:
    """The query of a view.

    Attributes:
        original: As its author wrote it.
        expanded: The same query with the database of each table, and no ``*`` that could get other
            columns. So it means the same in every session.
    """

    original: str
    expanded: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view as the metastore has it.

    Attributes:
        name: The table's qualified name.
        location: Absolute path or URI of the table's directory.
        columns: The data columns in order, without the partition columns.
        partition_columns: The partition columns in order; empty if there are none.
        bucket_columns: CLUSTERED BY, in order; empty if the table is not bucketed.
        num_buckets: INTO n BUCKETS; -1 if the table is not bucketed, as in Hive.
        properties: TBLPROPERTIES.
        comment: The table's COMMENT, or None.
        constraints: CHECK and keys, in the order of the statements that added them.
        sort_columns: SORTED BY: the order of rows in each bucket file. Only insert-only tables
            have it, because full-ACID files are sorted by row id.
        file_format: ``orc``, or ``parquet`` (only for insert-only tables).
        identity: The metastore's own number of the table, by which a later table of the same name
            is another table. Empty if a metastore tells such tables apart otherwise.
        is_transactional: False for a view, and for a plain table of Hive's, which queries can read.
            Only then may ``file_format`` be ``text``.
        view: The query of a view, which has no directory; None for a table.
        bonds: What a metastore notes of tables that belong together (``cdc``).
    """

    name: TableName
    location: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()
    bucket_columns: tuple[str, ...] = ()
    num_buckets: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    constraints: tuple[Constraint, ...] = ()
    sort_columns: tuple[SortColumn, ...] = ()
    file_format: str = ORC
    identity: str = ""
    is_transactional: bool = True
    view: ViewText | None = None
    bonds: Mapping[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> dict[str, str]:
        """The CHECK constraints that are enforced: name → SQL text of the condition."""
        return {
            constraint.name: constraint.condition
            for constraint in self.constraints
            if constraint.is_enforced
        }

    @property
    def is_insert_only(self) -> bool:
        """True for ``transactional_properties=insert_only`` (no row ids, no deletes)."""
        return self.properties.get(TRANSACTIONAL_PROPERTIES, "").lower() == INSERT_ONLY

    def with_zlib(self) -> Table:
        """Return a copy with the property ``orc.compress`` of ZLIB; the table itself if its
        properties name a compression, or if it is not ORC."""
        has_compression = any(key.lower() == ORC_COMPRESSION for key in self.properties)
        if has_compression or self.file_format != ORC:
            return self
        return replace(self, properties={**self.properties, ORC_COMPRESSION: "ZLIB"})

    @property
    def has_row_ids(self) -> bool:
        """True for a full-ACID table."""
        return self.is_transactional and not self.is_insert_only

    @property
    def moving(self) -> str | None:
        """Where the table moves to or from (a property's text), while it is on the way to another
        metastore; otherwise None."""
        return self.properties.get(MOVING)

    @property
    def is_bucketed(self) -> bool:
        """True if the table is CLUSTERED BY."""
        return self.num_buckets > 0

    @property
    def bucketing_version(self) -> int:
        """The hash of CLUSTERED BY: 2 if the property says so, otherwise 1 (Hive's rule)."""
        return 2 if self.properties.get(BUCKETING_VERSION) == "2" else 1

    def has_same_storage(self, other_table: Table) -> bool:
        """Whether both are one table by the metastore's number, with the same text as the location,
        and with the same layout of files: partition columns with all that ``Column`` has, bucket
        columns, number of buckets and their hash, insert-only or not. Names, data columns, the file
        format and other properties may differ."""
        return (
            self.location == other_table.location
            and self.identity == other_table.identity
            and self.partition_columns == other_table.partition_columns
            and self.bucket_columns == other_table.bucket_columns
            and self.num_buckets == other_table.num_buckets
            and self.bucketing_version == other_table.bucketing_version
            and self.is_insert_only == other_table.is_insert_only
        )

    def directory_names(self, partitions: Iterable[Partition]) -> list[str]:
        """Return the directories of partitions below the table's, like ``p1=a/p2=1``, in their
        order."""
        prefix = f"{self.location}/"
        return [partition.location.removeprefix(prefix) for partition in partitions]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Data columns, then partition columns: the order of ``SELECT *``."""
        return self.columns + self.partition_columns


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition.

    Attributes:
        values: The values as unescaped text, in the order of the partition columns. None for NULL
            and for the empty string, which share ``__HIVE_DEFAULT_PARTITION__``.
        location: Absolute path or URI of the partition's directory.
    """

    values: tuple[str | None, ...]
    location: str
