"""Checks whether the existing rows of a table satisfy a new condition, and whether its files can be
read in other types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Row

from acidsql.acid.table import Column, Table
from acidsql.acid.values.evolution import TEXTS, has_no_cast
from acidsql.acid.values.types import parse_type
from acidsql.errors import ConstraintError, UnsupportedError
from acidsql.plan.analysis import lower
from acidsql.plan.standins.query import StandIn, view_name
from acidsql.plan.values.checks import columns_of, values_text_sql
from acidsql.statements.context.family import Context
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.columns import quote
from acidsql.storage.tables.orc_schema import types_by_directory
from acidsql.txn import Txn

_SHOWN_COLUMNS = 5  # of a row without a value


class ExistingRows:
    """Looks for rows that break a new constraint. The caller holds the table's EXCLUSIVE lock."""

    def __init__(self, context: Context) -> None:
        self._rows = TableRows(context)

    def require_condition(self, table: Table, name: str, condition: str, txn: Txn) -> None:
        """Raise ConstraintError if the condition of the CHECK ``name`` is false for a row; NULL is
        allowed. This reads the rows, in a job."""
        named_columns = columns_of(condition, table.all_columns)
        violations = self._violations(table, condition, named_columns, txn)
        if violations.n:
            example_text = f" for {violations.example}, for example" if named_columns else ""
            raise ConstraintError(
                f"{violations.n} row(s) of {table.name} break the CHECK constraint '{name}': "
                f"{condition} is false{example_text}. Change these rows before, or say "
                "NOVALIDATE to keep them.",
                condition="NEW_CHECK_CONSTRAINT_VIOLATION", sqlstate="23512",
                rows=violations.n, constraint=name,
            )  # fmt: skip

    def require_values(self, table: Table, columns: Iterable[Column], txn: Txn) -> None:
        """Raise ConstraintError if a row has a NULL in one of these columns. This reads the rows, a
        job for each column."""
        for column in columns:
            other_columns = [
                other_column for other_column in table.all_columns if other_column != column
            ][:_SHOWN_COLUMNS]
            violations = self._violations(
                table, f"{quote(column.name)} IS NOT NULL", other_columns, txn
            )
            if violations.n:
                example = (
                    f", for example the one with {violations.example}" if other_columns else ""
                )
                raise ConstraintError(
                    f"{violations.n} row(s) of {table.name} have no value in "
                    f"'{column.name}'{example}. Give them one before.",
                    condition="NOT_NULL_CONSTRAINT_VIOLATION", sqlstate="23502",
                    rows=violations.n, column=column.name,
                )  # fmt: skip

    def require_readable(self, table: Table, columns: Sequence[Column], txn: Txn) -> None:
        """Raise UnsupportedError if a file, by its footer, has a column in a type that no reader
        converts to the column's new type. Without a text that becomes a DOUBLE nothing is checked,
        and no file is read. ``columns``: the data columns with their new types.

        Readers can convert the types of each single change. But an earlier change may have led to
        the present type.
        """
        new_types = [parse_type(column.type) for column in columns]
        if not any(
            new_type.kind == "double" and parse_type(old.type).kind in TEXTS
            for old, new_type in zip(table.columns, new_types, strict=False)
        ):
            return
        listings, _ = self._rows.list_files(table, txn.snapshot([table.name]))
        for directory, file_types in types_by_directory(listings).items():
            for column, before, after in zip(columns, file_types, new_types, strict=False):
                if has_no_cast(before, after):
                    raise UnsupportedError(
                        f"Column '{column.name}' cannot be changed to {column.type.upper()}: "
                        f"'{directory}' is from a time when it was a {str(before).upper()}, which "
                        "no reader shows as a number. INSERT OVERWRITE … SELECT * FROM "
                        f"{table.name} writes it anew, and so does a major compaction of several "
                        "deltas.",
                        condition="NOT_SUPPORTED_CHANGE_COLUMN",
                    )

    def has_rows(self, table: Table, txn: Txn) -> bool:
        """Whether a table has rows in the snapshot of ``txn``. Spark may run a job."""
        rows = self._rows.rows(StandIn(view_name(), table), txn.snapshot([table.name]))
        return not rows.isEmpty()

    def _violations(
        self, table: Table, condition: str, example_columns: list[Column], txn: Txn
    ) -> Row:
        """Count, in a job, the rows for which a condition is false. Return a row with the count
        (``n``) and with the values of one of these rows in ``example_columns``, as a text
        (``example``)."""
        rows = self._rows.rows(StandIn(view_name(), table), txn.snapshot([table.name]))
        with lower.job_errors():
            (violations,) = lower.violation_summary(
                rows, condition, values_text_sql(example_columns)
            ).collect()
        return violations
