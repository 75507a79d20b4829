"""Finds the partition directories that a statement's PARTITION clauses and conditions mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from acidsql.acid.partition_names import PartitionNames, canonical
from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError, AnalysisError
from acidsql.metastore.locks import LockInfo, locks_on_table
from acidsql.plan.analysis import lower
from acidsql.plan.rows.event_query import EventQuery, StaticPartition
from acidsql.plan.rows.insert import static_value
from acidsql.plan.standins.query import placeholders
from acidsql.plan.values.sqltext import Text
from acidsql.sql.binder import bind_partition
from acidsql.sql.parsed.statements import PartitionItem
from acidsql.statements.context.snapshot_catalog import SnapshotCatalog
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.storage.event_records import WriteMode
from acidsql.storage.reading.pruning.known_partitions import (
    canonical_partition_values,
    partition_names,
)
from acidsql.storage.reading.pruning.partition_columns import partitions_frame

PartitionSpec = Sequence[PartitionItem]
# The values that a clause names, in canonical form, by the ordinal of their partition column.
_SpecValues = Mapping[int, str | None]


class Partitions:
    """Finds the partitions of tables, by value, for one session.

    Attributes:
        args: The arguments of the running statement, by name.
    """

    def __init__(self, spark: SparkSession, catalog: SnapshotCatalog) -> None:
        self._spark, self._catalog = spark, catalog
        self.args: dict[str, Any] | None = None

    def names(self, table: Table) -> PartitionNames:
        """Return the table's partition directories that reads see now, as an object that finds the
        directories of partition values."""
        return partition_names(self._spark, table, self._catalog.partition_names(table))

    def possible_partitions(
        self, query: EventQuery, statement_text: StatementText
    ) -> list[str] | None:
        """Return the partitions that a statement can change, as far as its text tells.

        If a PARTITION clause gives all values, this is the one directory of the new rows, which may
        not exist yet; with OVERWRITE, all directories of these values, the one of the new rows
        first. Otherwise Spark evaluates the statement's condition on the partitions, perhaps in a
        job, and the result is sorted.

        Returns:
            Names like ``p1=a/p2=1``; an empty list if no partition satisfies the condition. None:
            any partition, because there is no such condition or it cannot be evaluated; or the
            table is unpartitioned, or has no partition yet.

        Raises:
            AcidSqlError: A value of the PARTITION clause cannot be evaluated, or does not fit its
                column.
        """
        table = query.table
        if not table.partition_columns:
            return None
        if isinstance(query.partitions, StaticPartition):
            values = query.partitions.values
            with lower.mapped_errors(values):
                row = query_rows(self._spark, values, {}, statement_text).collect()[0]
            directories = self.names(table).directories(row)
            return list(directories if query.mode is WriteMode.OVERWRITE else directories[:1])
        names = [] if query.partitions is None else self._catalog.partition_names(table)
        if query.partitions is None or not names:
            return None
        search = query.partitions
        views = {search.view: partitions_frame(self._spark, table, names)}
        try:
            with lower.mapped_errors(search.query):
                rows = query_rows(self._spark, search.query, views, statement_text).collect()
        except AcidSqlError:
            return None  # the condition fails here, but perhaps the statement never evaluates it
        return sorted(row[0] for row in rows)

    def matching_partitions(
        self,
        table: Table,
        specs: Sequence[PartitionSpec],
        text: str,
        *,
        may_be_missing: bool = False,
    ) -> list[str]:
        """Return the existing directories that the PARTITION clauses mean, each once, in the
        clauses' order.

        Args:
            table: The table.
            specs: The clauses. A clause that names only some of the columns means all partitions
                with these values; an empty clause means all partitions.
            text: The text of the statement.
            may_be_missing: If True, a clause that means no existing partition is no error.

        Raises:
            AnalysisError: A clause means no existing partition, or names what is no partition
                column.
            ConstraintError: A value does not fit the column's type.
        """
        values_of_specs = self._spec_values(table, specs, text)
        values_by_name = canonical_partition_values(
            self._spark, table, self._catalog.partition_names(table)
        )
        names: dict[str, None] = {}
        for spec, spec_values in zip(specs, values_of_specs, strict=True):
            matching_names = [
                name
                for name, values in values_by_name.items()
                if _has_spec_values(values, spec_values)
            ]
            if not matching_names and spec and not may_be_missing:
                raise AnalysisError(
                    f"{table.name} has no such partition.",
                    text, spec[0].span.start, spec[-1].span.end,
                    condition="PARTITIONS_NOT_FOUND", sqlstate="428FT",
                )  # fmt: skip
            names.update(dict.fromkeys(matching_names))
        return list(names)

    def fully_named_partitions(
        self, table: Table, specs: Sequence[PartitionSpec], text: str
    ) -> list[str]:
        """Return, for each clause, the directory of the one partition that it names. The partition
        may not exist yet. Of several directories with equal values, it is the one for new rows.

        Raises:
            AnalysisError: A clause names only some of the columns, or what is no partition column.
            ConstraintError: A value does not fit the column's type.
        """
        names = self.names(table)
        return [
            names.directories(
                [spec_values[ordinal] for ordinal in range(len(table.partition_columns))]
            )[0]
            for spec_values in self._spec_values(table, specs, text, is_whole=True)
        ]

    def filter_partitions(
        self, table: Table, spec: PartitionSpec, names: Collection[str], text: str
    ) -> list[str]:
        """Return the directories among ``names`` that a PARTITION clause means, each once. That
        there are none is no error.

        Raises:
            AnalysisError: The clause names what is no partition column.
            ConstraintError: A value does not fit the column's type.
        """
        (spec_values,) = self._spec_values(table, [spec], text)
        values_by_name = canonical_partition_values(self._spark, table, list(dict.fromkeys(names)))
        return [
            name for name, values in values_by_name.items() if _has_spec_values(values, spec_values)
        ]

    def locks_on(
        self, table: Table, spec: PartitionSpec, locks: Iterable[LockInfo], text: str
    ) -> list[LockInfo]:
        """Return those of the locks, held or waiting, that are on a table and its partitions or,
        with a PARTITION clause, only on the partitions that it means. Raise the errors of
        ``filter_partitions``."""
        table_locks = locks_on_table(table.name, locks)
        if not spec:
            return table_locks
        locked_names = [lock.partition for lock in table_locks if lock.partition is not None]
        named_partitions = self.filter_partitions(table, spec, locked_names, text)
        return [lock for lock in table_locks if lock.partition in named_partitions]

    def _spec_values(
        self, table: Table, specs: Sequence[PartitionSpec], text: str, *, is_whole: bool = False
    ) -> list[_SpecValues]:
        """Return, for each clause, its values in canonical form, by the ordinal of their partition
        column. Spark casts them as INSERT does. Raise AnalysisError for a column that is no
        partition column or, if ``is_whole``, for a missing one; ConstraintError for a value that
        does not fit."""
        columns, source_text = table.partition_columns, Text(text, placeholders(text))
        values: list[Text | str] = []
        value_indexes: list[dict[int, int]] = []
        for spec in specs:
            value_indexes.append({})
            for column, span in bind_partition(text, table, spec, is_whole=is_whole):
                value_indexes[-1][columns.index(column)] = len(values)
                values.append(
                    static_value(source_text.new(), column, span).raw(f" AS v{len(values)}")
                )
        row = self._evaluate(source_text.new().raw("SELECT ").commas(values)) if values else ()
        return [
            {
                ordinal: canonical(row[index], columns[ordinal].type)
                for ordinal, index in indexes_of_spec.items()
            }
            for indexes_of_spec in value_indexes
        ]

    def _evaluate(self, query: Text) -> Sequence[str | None]:
        """Run a query with the statement's arguments by Spark, and return the values of its one
        row. An error points into the user's text."""
        with lower.mapped_errors(query):
            return lower.frame(self._spark, query, {}, self.args).collect()[0]


def _has_spec_values(values: Sequence[str | None], spec_values: _SpecValues) -> bool:
    """Whether a partition has the values of a clause."""
    return all(values[ordinal] == value for ordinal, value in spec_values.items())
