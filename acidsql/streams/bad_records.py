"""Puts aside the records that AUTO CDC cannot apply: ``bad_records`` of ``Session.auto_cdc``.

The table of bad records is an ordinary ACID table. Its rows are written in the transaction of the
batch, so a record is either applied or put aside. A replay does neither.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.plan.cdc.fold import FAULT
from acidsql.plan.cdc.state import now_sql
from acidsql.sql.text.given_names import table_parts
from acidsql.statements.context.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import literal, quote, quoted_path
from acidsql.streams.batches import resolve_table, run_statement, table_name, temporary_view

_COLUMNS = {
    "reason": "STRING COMMENT 'The condition of the error that the record would have been'",
    "target": "STRING COMMENT 'The table, or the name of no table, that the record is for'",
    "record": "STRING COMMENT 'The columns of the record, as JSON'",
    "txn_app_id": "STRING COMMENT 'The application, as in SHOW STREAMS'",
    "txn_version": "BIGINT COMMENT 'The number of the batch'",
    "at": "TIMESTAMP COMMENT 'The time of the batch, in UTC'",
}
# NULLs are shown, and times have all their digits.
_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)


class BadRecords:
    """A table of bad records.

    Args:
        table: ``database.table``.
    """

    def __init__(self, table: str) -> None:
        self.table = table

    def create_if_missing(self, runner: Runner) -> None:
        """Create the table of bad records, unless it exists. Its columns are not checked.

        Raises:
            AnalysisError: The name is that of a table that is no ACID table.
        """
        if runner.resolve(table_parts(self.table)) is None:
            columns = ", ".join(f"{quote(name)} {rest}" for name, rest in _COLUMNS.items())
            name = quoted_path(table_parts(self.table))
            run_statement(runner, f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        resolve_table(runner, self.table)

    def put_aside(self, runner: Runner, bad_rows: DataFrame, target: str) -> Receipt | None:
        """Insert bad records as JSON into the table, in the runner's transaction, with their fault,
        the batch and the time. A job counts them before.

        Args:
            runner: Has a transaction.
            bad_rows: The records, with the column ``FAULT``: the condition of the error.
            target: SQL of the name of the table that the records are for.

        Returns:
            The receipt, whose note counts the records by fault; None if there are no records.
        """
        counts = {row[0]: row[1] for row in bad_rows.groupBy(FAULT).count().collect()}
        if not counts:
            return None
        batch = runner.transactions.require_transaction().batch
        app_id = "NULL" if batch is None else literal(batch.batch.app_id)
        version = "NULL" if batch is None else str(batch.batch.version)
        fields = ", ".join(map(quote, bad_rows.drop(FAULT).columns))
        rows = bad_rows.selectExpr(
            f"{FAULT} AS reason",
            f"{target} AS target",
            f"to_json(struct({fields}), {_JSON}) AS record",
        )
        columns = ", ".join(map(quote, _COLUMNS))
        with temporary_view(rows) as view:
            receipt = run_statement(
                runner,
                f"INSERT INTO {table_name(resolve_table(runner, self.table).name)} ({columns})\n"
                f"SELECT reason, target, record, {app_id}, {version}, {now_sql()} FROM {view}",
            )
        assert receipt is not None
        counts_text = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
        return receipt.with_note(f"put aside {counts_text}")
