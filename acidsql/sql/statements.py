"""What a statement says: frozen values, no names resolved, no types known.

Expressions and queries are spans into the user's text, never trees: Spark gets them verbatim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from acidsql.sql.tokens import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A possibly qualified name, unquoted, as the user wrote it (case kept)."""

    parts: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Default:
    """The word DEFAULT in the place of a value."""

    span: Span


Value = Span | Default


@dataclass(frozen=True, slots=True)
class Query:
    """Anything Spark reads as a query: SELECT, WITH, FROM, TABLE, VALUES as a query, (…)."""

    span: Span


@dataclass(frozen=True, slots=True)
class Values:
    """The rows of ``INSERT … VALUES``; ``span`` runs from the word VALUES to the last bracket.

    A row without brackets (``VALUES 1, 2``) is a row of one value, as in Spark.
    """

    span: Span
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class PartitionItem:
    """``p = value`` (static) or ``p`` (dynamic, value None) of a PARTITION clause."""

    name: str
    value: Span | None
    span: Span


@dataclass(frozen=True, slots=True)
class Insert:
    """``[WITH …] INSERT INTO|OVERWRITE [TABLE] t [(columns)] [PARTITION (…)] [(columns)] source``.

    ``columns`` is None where no list was given; ``ctes`` spans the leading WITH clause.
    """

    target: Name
    source: Query | Values
    columns: tuple[Name, ...] | None = None
    partition: tuple[PartitionItem, ...] = ()
    overwrite: bool = False
    by_name: bool = False
    ctes: Span | None = None


@dataclass(frozen=True, slots=True)
class InsertBranch:
    """One ``INSERT INTO t … SELECT …`` of a multi-insert; ``body`` is its SELECT without FROM."""

    target: Name
    body: Span
    columns: tuple[Name, ...] | None = None
    partition: tuple[PartitionItem, ...] = ()
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class MultiInsert:
    """``[WITH …] FROM s INSERT … INSERT …``; ``source`` spans what follows FROM."""

    source: Span
    branches: tuple[InsertBranch, ...]
    ctes: Span | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """``[x.]c = value`` of SET; ``target`` keeps the parts as written."""

    target: Name
    value: Value


@dataclass(frozen=True, slots=True)
class Update:
    """``[WITH …] UPDATE t [[AS] x] SET … [WHERE …]``."""

    target: Name
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: Span | None
    ctes: Span | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """``[WITH …] DELETE FROM t [[AS] x] [WHERE …]``."""

    target: Name
    alias: str | None
    where: Span | None
    ctes: Span | None = None


class Matched(Enum):
    """Which rows a WHEN clause of MERGE speaks of."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True, slots=True)
class UpdateAction:
    """``UPDATE SET c = value, …``."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class InsertAction:
    """``INSERT [(columns)] VALUES (…)``; ``columns`` None where no list was given."""

    columns: tuple[Name, ...] | None
    values: tuple[Value, ...]


class Action(Enum):
    """The actions that carry nothing else."""

    UPDATE_ALL = "UPDATE SET *"
    INSERT_ALL = "INSERT *"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """``WHEN … [AND condition] THEN action``."""

    matched: Matched
    condition: Span | None
    action: UpdateAction | InsertAction | Action
    span: Span


@dataclass(frozen=True, slots=True)
class Merge:
    """``[WITH …] MERGE INTO t [[AS] x] USING source [[AS] s] ON condition WHEN …``.

    ``source`` spans the relation without its alias; ``source_alias`` is the name that columns
    may be qualified with: the alias, or a named table's last part; None for a bare subquery.
    ``source_columns`` are the names in ``s(a, b)``, or None. ``source_name`` is the relation's
    name where it is a plain table or view.
    """

    target: Name
    alias: str | None
    source: Span
    source_alias: str | None
    source_columns: tuple[str, ...] | None
    source_name: Name | None
    on: Span
    clauses: tuple[MergeClause, ...]
    ctes: Span | None = None


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column of CREATE TABLE or ADD COLUMNS; ``type`` spans the type as written."""

    name: str
    type: Span
    nullable: bool = True
    default: Span | None = None
    comment: str | None = None
    span: Span = field(default=Span(0, 0))


@dataclass(frozen=True, slots=True)
class Check:
    """``[CONSTRAINT name] CHECK (condition)``."""

    name: str | None
    condition: Span


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE TABLE [IF NOT EXISTS] t (…) …``, also ``LIKE`` and ``AS SELECT``."""

    name: Name
    columns: tuple[ColumnDef, ...] = ()
    partitioned_by: tuple[ColumnDef, ...] = ()
    partition_names: tuple[Name, ...] = ()  # PARTITIONED BY (a, b): names only, for CTAS
    bucket_columns: tuple[Name, ...] = ()
    num_buckets: int = -1
    sorted_by: Span | None = None
    stored_as: str | None = None
    location: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    checks: tuple[Check, ...] = ()
    like: Name | None = None
    query: Query | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """``DROP TABLE [IF EXISTS] t [PURGE]``."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """``TRUNCATE TABLE t [PARTITION (…)]``."""

    name: Name
    partition: tuple[PartitionItem, ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ALTER TABLE t ADD COLUMN[S] (…)``."""

    name: Name
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """``ALTER TABLE t SET TBLPROPERTIES (…)``."""

    name: Name
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """``ALTER TABLE t DROP [IF EXISTS] PARTITION (…) [, PARTITION (…)]``."""

    name: Name
    specs: tuple[tuple[PartitionItem, ...], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """``ALTER TABLE t RENAME TO u``."""

    name: Name
    new_name: Name


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """``CREATE DATABASE|SCHEMA [IF NOT EXISTS] d [COMMENT '…'] [LOCATION '…']``."""

    name: Name
    if_not_exists: bool = False
    comment: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """``DROP DATABASE|SCHEMA [IF EXISTS] d [RESTRICT|CASCADE]``."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """``USE [DATABASE|SCHEMA|NAMESPACE] d``."""

    name: Name


@dataclass(frozen=True, slots=True)
class ShowDatabases:
    """``SHOW DATABASES|SCHEMAS [[LIKE] 'pattern']``."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """``SHOW TABLES [IN|FROM d] [[LIKE] 'pattern']``."""

    database: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """``SHOW PARTITIONS t [PARTITION (…)]``."""

    name: Name
    partition: tuple[PartitionItem, ...] = ()


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """``SHOW CREATE TABLE t``."""

    name: Name


@dataclass(frozen=True, slots=True)
class ShowTableProperties:
    """``SHOW TBLPROPERTIES t [('key')]``."""

    name: Name
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """``SHOW COLUMNS IN|FROM t``."""

    name: Name


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """``DESCRIBE|DESC [TABLE] [EXTENDED|FORMATTED] t``."""

    name: Name
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ShowTransactions:
    """``SHOW TRANSACTIONS``."""


@dataclass(frozen=True, slots=True)
class AbortTransactions:
    """``ABORT TRANSACTIONS n n …``."""

    txn_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN [EXTENDED|FORMATTED|…] statement``, where the statement is one of ours."""

    mode: str | None
    statement: Statement


class Reads(Enum):
    """What may be done about ACID tables that a statement of Spark's names."""

    QUERY = "the statement is or holds a query: its ACID tables are replaced by stand-ins"
    NOTHING = "Spark would misread them: the statement is refused if it names one"


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """A statement that goes to Spark verbatim, but for its ACID tables (see ``Reads``)."""

    span: Span
    reads: Reads


Dml = Insert | MultiInsert | Update | Delete | Merge
Statement = (
    Dml | CreateTable | DropTable | TruncateTable | AddColumns | SetTableProperties
    | DropPartitions | RenameTable | CreateDatabase | DropDatabase | Use | ShowDatabases
    | ShowTables | ShowPartitions | ShowCreateTable | ShowTableProperties | ShowColumns
    | DescribeTable | ShowTransactions | AbortTransactions | Explain | SparkStatement
)  # fmt: skip
