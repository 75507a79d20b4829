"""The parsed statements, as frozen dataclasses. Names are not resolved and types not known.

Expressions and queries are spans of the user's text, not trees: Spark gets them verbatim. This
module also exports the classes of ``parts`` and of the other modules ``…_statements``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from acidsql.acid.table import Column
from acidsql.sql.parsed.cdc_statements import AutoCdc as AutoCdc
from acidsql.sql.parsed.compaction_statements import AbortCompactions as AbortCompactions
from acidsql.sql.parsed.compaction_statements import CompactionOrder as CompactionOrder
from acidsql.sql.parsed.compaction_statements import CompactTable as CompactTable
from acidsql.sql.parsed.compaction_statements import ShowCompactions as ShowCompactions
from acidsql.sql.parsed.constraint_statements import AddConstraint as AddConstraint
from acidsql.sql.parsed.constraint_statements import ConstraintDef as ConstraintDef
from acidsql.sql.parsed.constraint_statements import DropConstraint as DropConstraint
from acidsql.sql.parsed.constraint_statements import Traits as Traits
from acidsql.sql.parsed.database_statements import AlterDatabase as AlterDatabase
from acidsql.sql.parsed.database_statements import CreateDatabase as CreateDatabase
from acidsql.sql.parsed.database_statements import DescribeDatabase as DescribeDatabase
from acidsql.sql.parsed.database_statements import DropDatabase as DropDatabase
from acidsql.sql.parsed.database_statements import Use as Use
from acidsql.sql.parsed.history_statements import DescribeHistory as DescribeHistory
from acidsql.sql.parsed.history_statements import Restore as Restore
from acidsql.sql.parsed.history_statements import RevertTransaction as RevertTransaction
from acidsql.sql.parsed.history_statements import Undo as Undo
from acidsql.sql.parsed.parts import Action as Action
from acidsql.sql.parsed.parts import Assignment as Assignment
from acidsql.sql.parsed.parts import ColumnChange as ColumnChange
from acidsql.sql.parsed.parts import ColumnDef as ColumnDef
from acidsql.sql.parsed.parts import Default as Default
from acidsql.sql.parsed.parts import InsertAction as InsertAction
from acidsql.sql.parsed.parts import Literals as Literals
from acidsql.sql.parsed.parts import Matched as Matched
from acidsql.sql.parsed.parts import MergeClause as MergeClause
from acidsql.sql.parsed.parts import Name as Name
from acidsql.sql.parsed.parts import PartitionItem as PartitionItem
from acidsql.sql.parsed.parts import Query as Query
from acidsql.sql.parsed.parts import Replacing as Replacing
from acidsql.sql.parsed.parts import Returning as Returning
from acidsql.sql.parsed.parts import SortBy as SortBy
from acidsql.sql.parsed.parts import UpdateAction as UpdateAction
from acidsql.sql.parsed.parts import Value as Value
from acidsql.sql.parsed.parts import Values as Values
from acidsql.sql.parsed.show_statements import DescribeTable as DescribeTable
from acidsql.sql.parsed.show_statements import ShowColumns as ShowColumns
from acidsql.sql.parsed.show_statements import ShowCreateTable as ShowCreateTable
from acidsql.sql.parsed.show_statements import ShowDatabases as ShowDatabases
from acidsql.sql.parsed.show_statements import ShowPartitions as ShowPartitions
from acidsql.sql.parsed.show_statements import ShowTableProperties as ShowTableProperties
from acidsql.sql.parsed.show_statements import ShowTables as ShowTables
from acidsql.sql.parsed.statistics_statements import AnalyzeTable as AnalyzeTable
from acidsql.sql.parsed.statistics_statements import AnalyzeTables as AnalyzeTables
from acidsql.sql.parsed.transaction_statements import AbortTransactions as AbortTransactions
from acidsql.sql.parsed.transaction_statements import Commit as Commit
from acidsql.sql.parsed.transaction_statements import LockDatabase as LockDatabase
from acidsql.sql.parsed.transaction_statements import LockTable as LockTable
from acidsql.sql.parsed.transaction_statements import ReleaseSavepoint as ReleaseSavepoint
from acidsql.sql.parsed.transaction_statements import ResetOption as ResetOption
from acidsql.sql.parsed.transaction_statements import Rollback as Rollback
from acidsql.sql.parsed.transaction_statements import Savepoint as Savepoint
from acidsql.sql.parsed.transaction_statements import SetOption as SetOption
from acidsql.sql.parsed.transaction_statements import ShowLocks as ShowLocks
from acidsql.sql.parsed.transaction_statements import ShowStreams as ShowStreams
from acidsql.sql.parsed.transaction_statements import ShowTransactions as ShowTransactions
from acidsql.sql.parsed.transaction_statements import StartTransaction as StartTransaction
from acidsql.sql.parsed.transaction_statements import UnlockDatabase as UnlockDatabase
from acidsql.sql.parsed.transaction_statements import UnlockTable as UnlockTable
from acidsql.sql.parsed.view_statements import AlterView as AlterView
from acidsql.sql.parsed.view_statements import CreateView as CreateView
from acidsql.sql.parsed.view_statements import DropView as DropView
from acidsql.sql.parsed.view_statements import RenameView as RenameView
from acidsql.sql.parsed.view_statements import ShowViews as ShowViews
from acidsql.sql.parsed.view_statements import ViewColumn as ViewColumn
from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class Insert:
    """``[WITH …] INSERT INTO|OVERWRITE [TABLE] t [(columns)] [PARTITION (…)] [(columns)] source``.

    ``columns`` is None without a column list. ``ctes`` spans the leading WITH clause. ``replacing``
    tells which old rows the new rows replace: none without REPLACE. ``evolves``: WITH SCHEMA
    EVOLUTION.
    """

    target: Name
    source: Query | Values | Literals
    columns: tuple[Name, ...] | None = None
    partition: tuple[PartitionItem, ...] = ()
    overwrite: bool = False
    by_name: bool = False
    ctes: Span | None = None
    returning: Returning | None = None
    replacing: Replacing | None = None
    evolves: bool = False


@dataclass(frozen=True, slots=True)
class InsertBranch:
    """One ``INSERT INTO t … SELECT …`` of a multi-insert. ``body`` spans SELECT, without FROM."""

    target: Name
    body: Span
    columns: tuple[Name, ...] | None = None
    partition: tuple[PartitionItem, ...] = ()
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class MultiInsert:
    """``[WITH …] FROM s INSERT … INSERT …``. ``source`` spans the text after FROM (here ``s``)."""

    source: Span
    branches: tuple[InsertBranch, ...]
    ctes: Span | None = None


@dataclass(frozen=True, slots=True)
class _RowChange:
    """A statement that changes rows of ``target``, which the statement may give an alias."""

    target: Name
    alias: str | None

    @property
    def qualifier(self) -> str:
        """The name by which the statement's expressions mean the target: its alias, or the last
        part of its name."""
        return self.alias or self.target.parts[-1]


@dataclass(frozen=True, slots=True)
class Update(_RowChange):
    """``[WITH …] UPDATE t [[AS] x] SET … [WHERE …] [RETURNING …]``.

    ``new_columns``: columns that the table gets by the same commit.
    """

    assignments: tuple[Assignment, ...]
    where: Span | None
    ctes: Span | None = None
    returning: Returning | None = None
    new_columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete(_RowChange):
    """``[WITH …] DELETE FROM t [[AS] x] [WHERE …] [RETURNING …]``."""

    where: Span | None
    ctes: Span | None = None
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class Merge(_RowChange):
    """``[WITH …] MERGE INTO t [[AS] x] USING source [[AS] s] ON condition WHEN …``.

    Also ``UPDATE t SET … FROM source WHERE condition`` and ``DELETE FROM t USING source WHERE
    condition``; ``keyword`` is the first word that the user wrote.

    ``source`` spans the relation without its alias. ``source_alias`` is the qualifier of the
    source's columns: the alias, or the last part of a table's name; None for a subquery without an
    alias. ``source_columns`` are the names in ``s(a, b)``, or None. ``source_name`` is the name of
    a table, a view or a DataFrame; None for a query or a CTE. ``evolves``: WITH SCHEMA EVOLUTION.
    """

    source: Span
    source_alias: str | None
    source_columns: tuple[str, ...] | None
    source_name: Name | None
    on: Span
    clauses: tuple[MergeClause, ...]
    ctes: Span | None = None
    returning: Returning | None = None
    keyword: str = "MERGE"
    evolves: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE [OR REPLACE] [TEMPORARY] TABLE [IF NOT EXISTS] t (…) …``, also ``LIKE`` and ``AS
    SELECT``.

    ``property_spans`` are the places of the properties in the text, in their order. A property
    that the word TRANSACTIONAL stands for comes last and has no place. ``names_format``: the text
    says USING acidsql.
    """

    name: Name
    columns: tuple[ColumnDef, ...] = ()
    partitioned_by: tuple[ColumnDef, ...] = ()
    partition_names: tuple[Name, ...] = ()  # PARTITIONED BY (a, b) of CREATE TABLE … AS SELECT
    bucket_columns: tuple[Name, ...] = ()
    num_buckets: int = -1
    sorted_by: tuple[SortBy, ...] = ()
    stored_as: str | None = None
    location: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    constraints: tuple[ConstraintDef, ...] = ()
    like: Name | None = None
    query: Query | None = None
    if_not_exists: bool = False
    property_spans: tuple[Span, ...] = ()
    or_replace: bool = False
    temporary: bool = False
    names_format: bool = False


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
class LoadData:
    """``LOAD DATA [LOCAL] INPATH '…' [OVERWRITE] INTO TABLE t [PARTITION (…)]``.

    ``place`` spans the path in quotes.
    """

    name: Name
    path: str
    place: Span
    local: bool = False
    overwrite: bool = False
    partition: tuple[PartitionItem, ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ALTER TABLE t ADD COLUMN[S] (…)``."""

    name: Name
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True)
class AddFilledColumns(AddColumns):
    """``ALTER TABLE t ADD COLUMN[S] (…) WITH VALUES``; ``place`` spans the last two words."""

    place: Span


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """``ALTER TABLE t RENAME COLUMN …``, ``CHANGE [COLUMN] …`` or ``ALTER [COLUMN] …``."""

    name: Name
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """``ALTER TABLE t REPLACE COLUMNS (…)``."""

    name: Name
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """``ALTER TABLE t SET TBLPROPERTIES (…)``; ``place`` spans the properties, and
    ``property_spans`` has the place of each one."""

    name: Name
    properties: tuple[tuple[str, str], ...]
    place: Span
    property_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsetTableProperties:
    """``ALTER TABLE t UNSET TBLPROPERTIES [IF EXISTS] ('key', …)``; ``place`` spans the keys."""

    name: Name
    keys: tuple[str, ...]
    place: Span
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ConvertTable:
    """``ALTER TABLE t CONVERT TO ACID``, or SET TBLPROPERTIES of a table that is no ACID table.

    ``properties`` have ``'transactional'='true'``; () if CONVERT TO ACID was said.
    """

    name: Name
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SetFileFormat:
    """``ALTER TABLE t SET FILEFORMAT f``; ``place`` spans the format."""

    name: Name
    file_format: str
    place: Span


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """``ALTER TABLE t ADD [IF NOT EXISTS] PARTITION (…) [PARTITION (…)] …``."""

    name: Name
    specs: tuple[tuple[PartitionItem, ...], ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """``ALTER TABLE t DROP [IF EXISTS] PARTITION (…) [, PARTITION (…)]``."""

    name: Name
    specs: tuple[tuple[PartitionItem, ...], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenamePartition:
    """``ALTER TABLE t PARTITION (…) RENAME TO PARTITION (…)``."""

    name: Name
    partition: tuple[PartitionItem, ...]
    new_partition: tuple[PartitionItem, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    """``ALTER TABLE t RENAME TO u``."""

    name: Name
    new_name: Name


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN [EXTENDED|FORMATTED|…] statement``, if the statement is one of ours."""

    mode: str | None
    statement: Statement


class Reads(Enum):
    """How the ACID tables that a statement of Spark's names are treated."""

    QUERY = "the statement is or contains a query: its ACID tables are replaced by stand-ins"
    NOTHING = "Spark would misread an ACID table: the statement is refused if it names one"


class Effect(Enum):
    """The effect of a statement of Spark's: it decides whether a transaction allows it."""

    READS = "the statement only reads"
    SESSION = "the statement changes this session only: settings, temporary views, caches"
    CHANGES = "the statement changes what other sessions see, or its effect is unknown"


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """A statement that Spark runs verbatim, except for its ACID tables (see ``Reads``).

    ``statement_name`` is the name in messages: CREATE TABLE, INSERT. ``explained`` is the mode and
    the query's place, if the statement is EXPLAIN of a query that certainly changes nothing.
    """

    span: Span
    reads: Reads
    effect: Effect = Effect.CHANGES
    statement_name: str = ""
    explained: tuple[str | None, Span] | None = None


Dml = Insert | MultiInsert | Update | Delete | Merge
Statement = (
    Dml | AutoCdc | Undo | CreateTable | DropTable | TruncateTable | LoadData | AddColumns
    | ChangeColumns | ReplaceColumns | SetTableProperties | UnsetTableProperties | SetFileFormat
    | AddPartitions | DropPartitions | RenamePartition | RenameTable
    | CreateView | AlterView | RenameView | DropView
    | CreateDatabase | AlterDatabase | DescribeDatabase | DropDatabase | Use | ShowDatabases
    | ShowTables | ShowViews | ShowPartitions
    | ShowCreateTable | ShowTableProperties | ShowColumns | DescribeTable | ShowTransactions
    | ShowStreams | ShowLocks | AbortTransactions | StartTransaction | Commit | Rollback | Savepoint
    | ReleaseSavepoint | LockTable | LockDatabase | UnlockTable | UnlockDatabase | SetOption
    | ResetOption | CompactTable | ShowCompactions | AbortCompactions | DescribeHistory | Explain
    | SparkStatement | AddConstraint | DropConstraint | AnalyzeTable | AnalyzeTables | ConvertTable
)  # fmt: skip
