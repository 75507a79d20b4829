"""Writes the micro-batches of a streaming query into one ACID table, each exactly once."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.errors import AnalysisError
from acidsql.statements.context.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.writing.staging import stage_rows
from acidsql.streams.batches import (
    BatchWriter,
    Setup,
    resolve_table,
    run_statement,
    table_name,
    temporary_view,
)
from acidsql.streams.upsert import merge_text, refuse_bad_keys, with_typed_keys
from acidsql.suggestions import names_sentence

MODES = ("append", "complete", "upsert")


class Sink(BatchWriter[Table]):
    """A function for ``DataStreamWriter.foreachBatch``; ``Session.sink`` makes it.

    Args:
        setup: What all writers of batches need.
        table: The target, ``database.table``.
        mode: ``append``, ``complete`` or ``upsert``.
        keys: For ``upsert``: the columns that name a row.
    """

    def __init__(self, setup: Setup, table: str, *, mode: str, keys: Sequence[str]) -> None:
        super().__init__(setup)
        self.table, self._mode = table, mode
        self._keys = list(dict.fromkeys(key.lower() for key in keys))

    def __repr__(self) -> str:
        return f"<acidsql sink of {self.table}, {self._mode}>"

    def require_target(self, runner: Runner) -> Table:
        """Return the table. Raise AnalysisError if there is no such ACID table."""
        return resolve_table(runner, self.table)

    def _sink_name(self, target: Table) -> str:
        return str(target.name)

    def write(self, runner: Runner, target: Table, rows: DataFrame, txn_id: int) -> Receipt | None:
        """Insert the batch's rows, replace all rows of the table by them, or upsert them by MERGE,
        as the sink's mode says, in the runner's transaction. Return the statement's receipt; a
        partitioned table whose rows are replaced is emptied by a DELETE before, and the receipt is
        that of the INSERT. An upsert evaluates the rows once. Raise AnalysisError if a column does
        not fit, ConstraintError if an upsert has a NULL in a key or a key twice."""
        rows = _fit_columns(target, rows)
        target_name = table_name(target.name)
        if self._mode == "upsert":
            keyed_rows, few_rows = (
                with_typed_keys(target, rows, self._keys),
                runner.settings.driver_row_limit,
            )
            with stage_rows(keyed_rows, target.location, txn_id, few_rows) as staged_rows:
                refuse_bad_keys(staged_rows, self._keys)
                with temporary_view(staged_rows) as view:
                    return run_statement(
                        runner, merge_text(target_name, view, staged_rows, self._keys)
                    )
        with temporary_view(rows) as view:
            if self._mode == "complete":
                # An overwrite replaces only the partitions that get rows, and must be alone in its
                # transaction (see ``statements.overwrites``).
                if target.partition_columns:
                    run_statement(runner, f"DELETE FROM {target_name}")
                else:
                    overwrite = f"INSERT OVERWRITE TABLE {target_name} BY NAME"
                    return run_statement(runner, f"{overwrite} SELECT * FROM {view}")
            return run_statement(runner, f"INSERT INTO {target_name} BY NAME SELECT * FROM {view}")


def _fit_columns(table: Table, rows: DataFrame) -> DataFrame:
    """Return the batch with its columns' names in lower case, after a check that the table has each
    of them. The batch may lack columns of the table.

    Raises:
        AnalysisError: The table lacks one of the columns, or the batch has it twice.
    """
    table_columns = {column.name for column in (*table.columns, *table.partition_columns)}
    names = [name.lower() for name in rows.columns]
    for name in names:
        if name not in table_columns:
            raise AnalysisError(
                f"The batch has a column '{name}' that the table {table.name} does not have. "
                f"{names_sentence(name, sorted(table_columns), owner='the table')} "
                "Leave it out by select(…), or add it by ALTER TABLE … ADD COLUMNS.",
                condition="UNRESOLVED_COLUMN", sqlstate="42703", column=name,
            )  # fmt: skip
        if names.count(name) > 1:
            raise AnalysisError(
                f"The batch for {table.name} has two columns '{name}'.",
                condition="COLUMN_ALREADY_EXISTS", sqlstate="42711", column=name,
            )  # fmt: skip
    return rows.toDF(*names)
