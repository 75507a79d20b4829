"""Applies the changes of one stream, or batch, to several tables at once: ``Session.auto_cdc``.

A column of the records names the target. All targets are changed in one transaction, with one entry
in the ledger: a reader sees all of a batch, or nothing of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, SettingError, WriteError
from acidsql.plan.cdc.fold import FAULT
from acidsql.statements.context.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import quote
from acidsql.storage.spark.session.users_code import call_users_function
from acidsql.storage.writing.staging import stage_rows
from acidsql.streams.auto_cdc import Applier, AutoCdc, combined_receipt
from acidsql.streams.bad_records import BadRecords
from acidsql.streams.batches import Setup
from acidsql.suggestions import names_sentence

Transform = Callable[[str, DataFrame], DataFrame]

_UNKNOWN = "CDC_UNKNOWN_TARGET"
_MAX_NAMED = 10  # an error names at most so many unknown values


class SeveralCdc(Applier[Mapping[str, Table]]):
    """Applies each record to the table that a column of the record names.

    Args:
        setup: What all writers of batches need.
        targets: The appliers by the values of the column.
        by: The column.
        transform: Makes a target's records, from its value of the column and the rows with it.
        bad_records: The table for the records of no target, and for the bad records of each target
            that has no such table of its own.
    """

    def __init__(
        self,
        setup: Setup,
        targets: Mapping[str, AutoCdc],
        by: str,
        transform: Transform | None,
        bad_records: BadRecords | None,
    ) -> None:
        super().__init__(setup)
        # Always in pair order, so that two appliers of the same tables do not deadlock.
        ordered = sorted(targets.items(), key=lambda applier: (applier[1].table, applier[0]))
        self._targets = {value: applier.with_bad_records(bad_records) for value, applier in ordered}
        self._by, self._transform, self._bad_records = by, transform, bad_records

    def __repr__(self) -> str:
        tables = ", ".join(applier.table for applier in self._targets.values())
        return f"<acidsql auto_cdc into {tables}, by {self._by}>"

    def require_target(self, runner: Runner) -> Mapping[str, Table]:
        """Return the table of each value of the column. Raise AnalysisError if one is missing."""
        return {value: applier.require_target(runner) for value, applier in self._targets.items()}

    def _sink_name(self, target: Mapping[str, Table]) -> str:
        """Return the name that all tables together have in the ledger."""
        return self._setup.metastore.sink(table.name for table in target.values())

    def tables(self, target: Mapping[str, Table]) -> Sequence[Table]:
        return list(target.values())

    def target_index(self, rows: DataFrame, target: Mapping[str, Table]) -> Column:
        """Return, lazily, the position in ``tables(target)`` of the table that a record is for, as
        an INT column; NULL: the record names no target."""
        value, table_number = self._value(self._target_column(rows)), F.lit(None).cast("int")
        for number, name in enumerate(target):
            table_number = F.when(value == name, F.lit(number)).otherwise(table_number)
        return table_number

    def names_no_target(self, rows: DataFrame) -> Column:
        """Return a condition that is true if the column that names the target is NULL."""
        return F.col(quote(self._target_column(rows))).isNull()

    def check_targets(self, rows: DataFrame, target: Mapping[str, Table]) -> None:
        """Raise WriteError, by a job, if a record is for no target, and there is no table for bad
        records."""
        self._present_values(rows, self._target_column(rows))

    def prepare_target(self, runner: Runner, target: Mapping[str, Table], rows: DataFrame) -> None:
        """Call ``make_tables``."""
        self.make_tables(runner, target, rows)

    def make_tables(self, runner: Runner, target: Mapping[str, Table], rows: DataFrame) -> None:
        """Make the table of bad records, those that targets have of their own, and the state tables
        of all targets, as far as they are missing, in transactions of their own."""
        if self._bad_records is not None:
            self._bad_records.create_if_missing(runner)
        column, no_rows = self._target_column(rows), rows.where(F.lit(False))
        for value, applier in self._targets.items():
            table = target[value]
            applier.prepare_target(runner, table, rows)
            if applier.lacks_state(runner, table):
                applier.apply_all(runner, table, self._records(no_rows, column, value, table))

    def write(
        self, runner: Runner, target: Mapping[str, Table], rows: DataFrame, txn_id: int
    ) -> Receipt | None:
        """Apply the batch's records to their tables, in the runner's transaction, and return one
        receipt. The rows are evaluated once, and the tables that they name are locked first.
        Records of no target are put aside if there is a table for bad records; otherwise raise
        WriteError."""
        column = self._target_column(rows)
        location, few_rows = next(iter(target.values())).location, runner.settings.driver_row_limit
        with stage_rows(rows, location, txn_id, few_rows) as staged_rows:
            present_values = self._present_values(staged_rows, column)
            runner.auto_cdc.lock_targets(
                [target[value] for value in self._targets if value in present_values]
            )
            receipts = []
            for value, applier in self._targets.items():
                if value in present_values:
                    records = self._records(staged_rows, column, value, target[value])
                    receipts.append(applier.write(runner, target[value], records, txn_id))
            if self._bad_records is not None:
                unknown_records = staged_rows.where(~self._has_target(column))
                faults = unknown_records.withColumn(FAULT, F.lit(_UNKNOWN))
                receipts.append(self._bad_records.put_aside(runner, faults, quote(column)))
        return combined_receipt(receipts, txn_id)

    def _records(self, staged_rows: DataFrame, column: str, value: str, table: Table) -> DataFrame:
        """Return the records for the target of this ``value``, through ``transform`` if there is
        one; otherwise without the column that names the target, unless the table has a column of
        that name."""
        rows = staged_rows.where(self._value(column) == value)
        if self._transform is not None:
            return call_users_function(self._transform, value, rows)
        table_columns = {table_column.name for table_column in table.all_columns}
        return rows if column.lower() in table_columns else rows.drop(column)

    def _target_column(self, rows: DataFrame) -> str:
        """Return the name, as the records have it, of the column that names the target. Raise
        AnalysisError unless there is exactly one, whatever the case."""
        matches = [name for name in rows.columns if name.lower() == self._by.lower()]
        if len(matches) != 1:
            columns = names_sentence(self._by, rows.columns, owner="the batch")
            raise AnalysisError(
                f"The records have no column '{self._by}' that names their table. {columns}",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=self._by,
            )  # fmt: skip
        return matches[0]

    def _has_target(self, column: str) -> Column:
        """Return a condition that is true if a record names one of the targets, and else false."""
        return F.coalesce(self._value(column).isin(list(self._targets)), F.lit(False))

    @staticmethod
    def _value(column: str) -> Column:
        """Return the column that names the target, as a text without a collation."""
        return F.col(quote(column)).cast("string")

    def _present_values(self, staged_rows: DataFrame, column: str) -> set[str]:
        """Return, by a job, the values in the column that name a target, and that some record has.
        With a table for bad records, other values are passed over.

        Raises:
            WriteError: A record is for no target, and there is no table for such records.
        """
        if self._bad_records is not None:
            staged_rows = staged_rows.where(self._has_target(column))
        distinct_values = staged_rows.select(self._value(column)).distinct()
        values = [
            row[0] for row in distinct_values.limit(len(self._targets) + _MAX_NAMED).collect()
        ]
        unknown = [value for value in values if value not in self._targets]
        if unknown:
            value_list = ", ".join(
                sorted("NULL" if value is None else f"'{value}'" for value in unknown)
            )
            raise WriteError(
                f"Records have {value_list} in the column '{self._by}', and no target has this "
                "name. Nothing of the batch was applied. Add a target, filter these records out, "
                "or pass bad_records=… to put them aside.",
                condition=_UNKNOWN, sqlstate="22023", column=self._by,
            )  # fmt: skip
        return set(values)


def appliers_by_value(targets: Sequence[AutoCdc] | Mapping[str, AutoCdc]) -> dict[str, AutoCdc]:
    """Return the appliers by the values of the column that names the target.

    The values are the keys of a mapping. For a list, the values are the tables' names without their
    database.

    Raises:
        SettingError: There is no target, a target is no result of ``auto_cdc`` for one table, or
            two targets have one name or one table.
    """
    pairs = list(targets.items()) if isinstance(targets, Mapping) else [
        (getattr(applier, "table", "").rpartition(".")[2], applier) for applier in targets
    ]  # fmt: skip
    if not pairs or not all(isinstance(applier, AutoCdc) for _, applier in pairs):
        raise SettingError(
            "Pass the results of acid.auto_cdc(…) for one table each.", name="target"
        )
    for kind, names in (
        ("name", [value for value, _ in pairs]),
        ("table", [applier.table for _, applier in pairs]),
    ):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise SettingError(
                f"Two targets have the {kind} '{repeated[0]}'. Pass a dict with a key for each, "
                "and each table once.",
                name="target",
            )
    return dict(pairs)
