"""Finds the partition directories that a statement's PARTITION clauses and conditions mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from acidsql.acid.partition_names import PartitionNames, canonical
from acidsql.acid.table import Table
from acidsql.errors import AcidSqlError, AnalysisError
from acidsql.metastore.locks import LockInfo, on_table
from acidsql.plan import lower
from acidsql.plan.event_query import EventQuery
from acidsql.plan.insert import static_value
from acidsql.plan.query import placeholders
from acidsql.plan.sqltext import Text
from acidsql.sql.binder import bind_partition
from acidsql.sql.statements import PartitionItem
from acidsql.statements.current_txn import Transactions
from acidsql.statements.statement_text import StatementText
from acidsql.storage.reading.known_partitions import partition_names, partition_values
from acidsql.storage.reading.partition_columns import partitions_frame

Spec = Sequence[PartitionItem]
# Canonical values, by the ordinal of their partition column.
_Wanted = Mapping[int, str | None]


class Partitions:
    """Finds the partitions of tables, by value, for one session.

    Attributes:
        args: The arguments of the statement that runs, by name.
    """

    def __init__(self, spark: SparkSession, transactions: Transactions) -> None:
        self._spark, self._transactions = spark, transactions
        self.args: dict[str, Any] | None = None

    def names(self, table: Table) -> PartitionNames:
        """The names of the table's partition directories now."""
        known = self._transactions.partition_names(table) if table.partition_columns else []
        return partition_names(self._spark, table, known)

    def touched(self, query: EventQuery, said: StatementText) -> list[str] | None:
        """The partitions that a statement can change, as far as its text tells. None: any of them.

        If the statement names a partition, its new rows go into the first of the result.
        """
        table = query.table
        if not table.partition_columns:
            return None
        if query.static_partition is not None:
            with lower.mapped_errors(query.static_partition):
                values = query.static_partition
                row = lower.frame(self._spark, values, {}, said.args, said.time).collect()[0]
            found = self.names(table).directories(row)
            return list(found if query.overwrite else found[:1])
        known = [] if query.partitions is None else self._transactions.partition_names(table)
        if query.partitions is None or not known:
            return None
        view, asked = query.partitions
        views = {view: partitions_frame(self._spark, table, known)}
        try:
            with lower.mapped_errors(asked):
                rows = lower.frame(self._spark, asked, views, said.args, said.time).collect()
        except AcidSqlError:
            return None  # the condition fails here, but the statement may never evaluate it
        return sorted(row[0] for row in rows)

    def matching(
        self, table: Table, specs: Sequence[Spec], text: str, *, may_be_missing: bool = False
    ) -> list[str]:
        """The directories that the PARTITION clauses name, in the clauses' order.

        Args:
            table: The table.
            specs: The clauses. A clause that names only some of the columns means all partitions
                with these values.
            text: The text of the statement.
            may_be_missing: If True, a clause may name a partition that does not exist.

        Raises:
            AnalysisError: A clause names a partition that does not exist, or as ``bind_partition``.
            ConstraintError: A value does not fit the column's type.
        """
        wanted = self._wanted(table, specs, text)
        values = partition_values(self._spark, table, self._transactions.partition_names(table))
        found: dict[str, None] = {}
        for spec, one in zip(specs, wanted, strict=True):
            matching = [name for name, own in values.items() if _is(own, one)]
            if not matching and spec and not may_be_missing:
                raise AnalysisError(
                    f"{table.name} has no such partition.",
                    text, spec[0].span.start, spec[-1].span.end,
                    condition="PARTITIONS_NOT_FOUND", sqlstate="428FT",
                )  # fmt: skip
            found.update(dict.fromkeys(matching))
        return list(found)

    def wholly_named(self, table: Table, specs: Sequence[Spec], text: str) -> list[str]:
        """The directory of the one partition that each clause names. It may not exist yet.

        Raises as ``matching``, and if a clause names only some of the columns.
        """
        names = self.names(table)
        return [
            names.directories([values[at] for at in range(len(table.partition_columns))])[0]
            for values in self._wanted(table, specs, text, is_whole=True)
        ]

    def among(self, table: Table, spec: Spec, names: Collection[str], text: str) -> list[str]:
        """The directories among ``names`` that a PARTITION clause names.

        Raises as ``matching``, but an empty result is no error.
        """
        (wanted,) = self._wanted(table, [spec], text)
        values = partition_values(self._spark, table, list(dict.fromkeys(names)))
        return [name for name, own in values.items() if _is(own, wanted)]

    def locks_on(
        self, table: Table, spec: Spec, locks: Iterable[LockInfo], text: str
    ) -> list[LockInfo]:
        """The locks on a table; with a PARTITION clause, on the partitions that it names."""
        found = on_table(table.name, locks)
        if not spec:
            return found
        held = [one.partition for one in found if one.partition is not None]
        stated = self.among(table, spec, held, text)
        return [one for one in found if one.partition in stated]

    def _wanted(
        self, table: Table, specs: Sequence[Spec], text: str, *, is_whole: bool = False
    ) -> list[_Wanted]:
        """The values that each clause names, cast to the columns' types as INSERT casts them."""
        columns, whole = table.partition_columns, Text(text, placeholders(text))
        values: list[Text | str] = []
        places: list[dict[int, int]] = []
        for spec in specs:
            places.append({})
            for column, span in bind_partition(text, table, spec, is_whole=is_whole):
                places[-1][columns.index(column)] = len(values)
                values.append(static_value(whole.new(), column, span).raw(f" AS v{len(values)}"))
        row = self._evaluated(whole.new().raw("SELECT ").commas(values)) if values else ()
        return [
            {at: canonical(row[place], columns[at].type) for at, place in of_spec.items()}
            for of_spec in places
        ]

    def _evaluated(self, query: Text) -> Sequence[str | None]:
        with lower.mapped_errors(query):
            return lower.frame(self._spark, query, {}, self.args).collect()[0]


def _is(values: Sequence[str | None], wanted: _Wanted) -> bool:
    return all(values[ordinal] == value for ordinal, value in wanted.items())
