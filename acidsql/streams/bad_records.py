"""Puts aside what AUTO CDC cannot apply: ``bad_records`` of ``Session.auto_cdc``.

The table of bad records is an ordinary ACID table. Its rows are written in the transaction of the
batch, so a record is either applied or put aside, and a replay does neither.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.plan.cdc_fold import FAULT
from acidsql.plan.cdc_state import moment
from acidsql.sql.given_names import table_parts
from acidsql.statements.result import Receipt
from acidsql.statements.runner import Runner
from acidsql.storage.columns import literal, quote, quoted_path
from acidsql.streams.batches import run, table_name, table_of, view_of

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

    def make_ready(self, runner: Runner) -> None:
        """Create the table, unless it exists.

        Raises:
            AnalysisError: The name is that of a table that is no ACID table.
        """
        if runner.resolve(table_parts(self.table)) is None:
            columns = ", ".join(f"{quote(name)} {rest}" for name, rest in _COLUMNS.items())
            name = quoted_path(table_parts(self.table))
            run(runner, f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        table_of(runner, self.table)

    def put(self, runner: Runner, found: DataFrame, target: str) -> Receipt | None:
        """Put records aside.

        Args:
            runner: Has a transaction.
            found: The records, with ``FAULT``.
            target: SQL of the name of their table.

        Returns:
            The receipt; None if there are no records.
        """
        counts = {row[0]: row[1] for row in found.groupBy(FAULT).count().collect()}
        if not counts:
            return None
        batch = runner.transactions.need().batch
        app_id = "NULL" if batch is None else literal(batch.batch.app_id)
        version = "NULL" if batch is None else str(batch.batch.version)
        fields = ", ".join(map(quote, found.drop(FAULT).columns))
        rows = found.selectExpr(
            f"{FAULT} AS reason", f"{target} AS target",
            f"to_json(struct({fields}), {_JSON}) AS record",
        )  # fmt: skip
        columns = ", ".join(map(quote, _COLUMNS))
        with view_of(rows) as view:
            done = run(
                runner,
                f"INSERT INTO {table_name(table_of(runner, self.table).name)} ({columns})\n"
                f"SELECT reason, target, record, {app_id}, {version}, {moment()} FROM {view}",
            )
        assert done is not None
        said = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
        return done.with_note(f"put aside {said}")
