"""Applies the changes of one stream, or batch, to several tables at once: ``Session.auto_cdc``.

A column of the records names the target. All targets move in one transaction, with one entry in the
ledger: a reader sees all of a batch, or nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, SettingError, WriteError
from acidsql.plan.cdc_fold import FAULT
from acidsql.statements.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import quote
from acidsql.storage.writing.staging import staged
from acidsql.streams.auto_cdc import Applier, AutoCdc, together
from acidsql.streams.bad_records import BadRecords
from acidsql.streams.batches import Setup

Transform = Callable[[str, DataFrame], DataFrame]

_UNKNOWN = "CDC_UNKNOWN_TARGET"
_NAMED = 10  # unknown values that an error names


class SeveralCdc(Applier[Mapping[str, Table]]):
    """Applies each record to the table that a column of the record names.

    Args:
        setup: What all writers of batches need.
        targets: The appliers by the values of the column.
        by: The column.
        transform: See ``Session.auto_cdc``.
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
        # Always in one order, so that two appliers of the same tables do not deadlock.
        ordered = sorted(targets.items(), key=lambda one: (one[1].table, one[0]))
        self._targets = {value: one.or_else(bad_records) for value, one in ordered}
        self._by, self._transform, self._bad_records = by, transform, bad_records

    def __repr__(self) -> str:
        tables = ", ".join(one.table for one in self._targets.values())
        return f"<acidsql auto_cdc into {tables}, by {self._by}>"

    def target(self, runner: Runner) -> Mapping[str, Table]:
        return {value: one.target(runner) for value, one in self._targets.items()}

    def _sink(self, target: Mapping[str, Table]) -> str:
        return self._setup.metastore.sink(table.name for table in target.values())

    def tables(self, target: Mapping[str, Table]) -> Sequence[Table]:
        return list(target.values())

    def home(self, rows: DataFrame, target: Mapping[str, Table]) -> Column:
        value, found = self._value(self._column(rows)), F.lit(None).cast("int")
        for number, name in enumerate(target):
            found = F.when(value == name, F.lit(number)).otherwise(found)
        return found

    def names_no_table(self, rows: DataFrame) -> Column:
        return F.col(quote(self._column(rows))).isNull()

    def check(self, rows: DataFrame, target: Mapping[str, Table]) -> None:
        self._present(rows, self._column(rows))

    def make_ready(self, runner: Runner, target: Mapping[str, Table], rows: DataFrame) -> None:
        self.make_tables(runner, target, rows)

    def make_tables(self, runner: Runner, target: Mapping[str, Table], rows: DataFrame) -> None:
        if self._bad_records is not None:
            self._bad_records.make_ready(runner)
        column, none = self._column(rows), rows.where(F.lit(False))
        for value, one in self._targets.items():
            table = target[value]
            one.make_ready(runner, table, rows)
            if one.lacks_state(runner, table):
                one.apply_all(runner, table, self._records(none, column, value, table))

    def write(
        self, runner: Runner, target: Mapping[str, Table], rows: DataFrame, txn_id: int
    ) -> Receipt | None:
        column = self._column(rows)
        location, few = next(iter(target.values())).location, runner.settings.few_rows
        with staged(rows, location, txn_id, few) as kept:
            wanted = self._present(kept, column)
            runner.auto_cdc.lock_targets(
                [target[value] for value in self._targets if value in wanted]
            )
            receipts = []
            for value, one in self._targets.items():
                if value in wanted:
                    records = self._records(kept, column, value, target[value])
                    receipts.append(one.write(runner, target[value], records, txn_id))
            if self._bad_records is not None:
                unknown = kept.where(~self._is_known(column))
                faults = unknown.withColumn(FAULT, F.lit(_UNKNOWN))
                receipts.append(self._bad_records.put(runner, faults, quote(column)))
        return together(receipts, txn_id)

    def _records(self, kept: DataFrame, column: str, value: str, table: Table) -> DataFrame:
        rows = kept.where(self._value(column) == value)
        if self._transform is not None:
            return self._transform(value, rows)
        known = {one.name for one in table.all_columns}
        return rows if column.lower() in known else rows.drop(column)

    def _column(self, rows: DataFrame) -> str:
        found = [name for name in rows.columns if name.lower() == self._by.lower()]
        if len(found) != 1:
            raise AnalysisError(
                f"The records have no column '{self._by}' that names their table.",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=self._by,
            )  # fmt: skip
        return found[0]

    def _is_known(self, column: str) -> Column:
        """Whether a record is for one of the targets."""
        return F.coalesce(self._value(column).isin(list(self._targets)), F.lit(False))

    @staticmethod
    def _value(column: str) -> Column:
        return F.col(quote(column)).cast("string")  # without a collation

    def _present(self, kept: DataFrame, column: str) -> set[str]:
        """The values that occur, but those of records to put aside.

        Raises:
            WriteError: A record is for no target, and there is no table for such records.
        """
        if self._bad_records is not None:
            kept = kept.where(self._is_known(column))
        values = kept.select(self._value(column)).distinct()
        found = [row[0] for row in values.limit(len(self._targets) + _NAMED).collect()]
        unknown = [value for value in found if value not in self._targets]
        if unknown:
            named = ", ".join(sorted("NULL" if one is None else f"'{one}'" for one in unknown))
            raise WriteError(
                f"Records have {named} in the column '{self._by}', and no target has this name. "
                "Nothing of the batch was applied. Add a target, filter these records out, or pass "
                "bad_records=… to put them aside.",
                condition=_UNKNOWN, sqlstate="22023", column=self._by,
            )  # fmt: skip
        return set(found)


def by_value(targets: Sequence[AutoCdc] | Mapping[str, AutoCdc]) -> dict[str, AutoCdc]:
    """The appliers by the values of the column: the tables' names without database, or the keys.

    Raises:
        SettingError: There is no target, one is no result of ``auto_cdc`` for one table, or two
            have one name.
    """
    pairs = list(targets.items()) if isinstance(targets, Mapping) else [
        (getattr(one, "table", "").rpartition(".")[2], one) for one in targets
    ]  # fmt: skip
    if not pairs or not all(isinstance(one, AutoCdc) for _, one in pairs):
        raise SettingError(
            "Pass the results of acid.auto_cdc(…) for one table each.", name="target"
        )
    for kind, names in (
        ("name", [value for value, _ in pairs]), ("table", [one.table for _, one in pairs])
    ):  # fmt: skip
        twice = sorted({one for one in names if names.count(one) > 1})
        if twice:
            raise SettingError(
                f"Two targets have the {kind} '{twice[0]}'. Pass a dict with a key for each, and "
                "each table once.",
                name="target",
            )
    return dict(pairs)
