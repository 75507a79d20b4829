"""The rows that RETURNING returns: lazy, over the files that the statement has written.

A lease is a transaction of the session's that only reads: while it is open, the cleaner deletes no
file that the rows may need.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.returning import ReturningQuery
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.context.work import Work
from acidsql.statements.dml.hold import LockedStatement
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.returned import no_rows, returned_rows
from acidsql.storage.tables.listing import list_table

_SMALL_ROWS, _SMALL_BYTES = 10_000, 1 << 20  # compressed


class ReturnedRows:
    """Reads the rows that statements of one session have changed."""

    def __init__(self, context: Context) -> None:
        self._spark, self._txns = context.spark, context.txns

    def keep_files(self, prepared: PreparedStatement) -> None:
        """Take a lease, which keeps the cleaner from deleting files that RETURNING reads. Without
        RETURNING do nothing.

        Call this method before the transaction begins.
        """
        if prepared.returning is not None:
            self._txns.hold_lease([table.name for table in prepared.tables])

    def rows(
        self, held: LockedStatement, work: Work, statement_text: StatementText
    ) -> DataFrame | None:
        """Return the rows that RETURNING returns, lazily, over the files that the statement has
        published (``work.published``) and, for old values, over older files of the same partitions,
        which are listed now. None without RETURNING. ``work`` is marked as read by a DataFrame.

        Raises:
            SqlError: Spark cannot analyse the query; the error points into the statement.
        """
        if (returning := held.prepared.returning) is None:
            return None
        returned, snapshot = returning.shown, held.snapshot
        work.is_shown = True
        table, old_listings = returned.table, []
        ((_, published),) = work.published
        if returned.has_old:
            old_listings = list_table(
                filesystem_for(table.location),
                table.location,
                published.partitions,
                snapshot.write_ids[table.name],
                snapshot.valid_txns,
                history_is_kept=True,
            )
        is_small = published.changed <= _SMALL_ROWS and published.bytes <= _SMALL_BYTES
        rows = returned_rows(
            self._spark, returned, published.directories, old_listings, is_small=is_small
        )
        views = {returning.view: rows}
        return query_rows(self._spark, returning.query, views, statement_text)

    def empty_rows(self, returning: ReturningQuery, statement_text: StatementText) -> DataFrame:
        """Return a DataFrame with the columns that RETURNING returns, but without rows."""
        rows = no_rows(self._spark, returning.shown)
        views = {returning.view: rows}
        return query_rows(self._spark, returning.query, views, statement_text)
