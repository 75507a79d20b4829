"""The public method of a session about the health of tables."""

from __future__ import annotations

from pyspark.sql import DataFrame

from acidsql.api.core import SessionCore
from acidsql.api.picture import Picture
from acidsql.arguments import checked_while_open
from acidsql.errors import SettingError
from acidsql.statements.context.result import with_display


class HealthMethods(SessionCore):
    """What a ``Session`` offers to see how tables are."""

    @checked_while_open
    def health(self, table: str | None = None, partition: str | None = None) -> DataFrame:
        """What the files of tables are, what holds old ones, and what the compactor will do next.

        Nothing is changed or locked. The method lists the tables' directories and reads the footers
        of the files that readers read, in threads of the driver. It reads no row, and runs no job.

        Args:
            table: ``table`` or ``database.table``. Default: all tables, one row for each.
            partition: The partition's directory, ``p1=a/p2=1``. Default: all partitions.

        Returns:
            One row for each partition (one for an unpartitioned table), by name. A notebook shows
            the DataFrame as a picture.

            * ``table`` string, ``partition`` string ("" if the table is unpartitioned; NULL in a
                row that is about a whole table).
            * ``rows`` bigint: inserted rows minus deleted rows. That is exact unless a row was
                deleted twice, which no writer of ours or Hive's does, and which ``check`` with
                level ``rows`` finds. NULL if the footers do not tell it: ``problem`` says why.
            * ``deleted_rows`` bigint: rows that deltas delete, and that a compaction would drop.
            * ``live_bytes`` bigint: what a reader reads: ``base_bytes`` bigint (also of original
                files), ``delta_bytes`` bigint and ``delete_delta_bytes`` bigint. ``bases``,
                ``deltas`` and ``delete_deltas`` int are the numbers of their directories; they come
                after the bytes of each.
            * ``delta_share`` double: the part of live_bytes that is in deltas and delete deltas.
                ``deleted_share`` double: the part of the inserted rows that is deleted.
            * ``files`` int: the files that a reader reads. ``small_files`` int: those below 16 MB.
            * ``obsolete_bytes`` bigint: what no reader of now needs. ``held_by`` string: what keeps
                it (an open transaction or lease, older versions, a time to wait, the next
                compaction), and ``held_since`` timestamp: since when. Both are NULL if nothing is
                obsolete, and over a Hive Metastore, whose cleaner alone knows.
            * ``oldest_txn`` bigint, ``oldest_txn_since`` timestamp: the oldest open transaction
                that holds a lock there.
            * ``next`` string: minor, major or rebalance, the next compaction; NULL: none. ``why``
                string: the reason, as the initiator gives it.
            * ``problem`` string: why something is not known.

            In the row of a whole table, numbers are sums (NULL if one is not known); held_by and
            oldest_txn are those of the oldest; next and why are those of the largest partition that
            needs a major compaction or, without such a partition, another compaction.

        Raises:
            CatalogError: There is no such table or partition.
            SettingError: There is a partition without a table.
        """
        if table is None and partition is not None:
            raise SettingError(f"partition='{partition}' is of which table? Give the table, too.")
        with self._lock:
            looks = self._runner.health
            health_rows = (
                looks.health_of_all_tables()
                if table is None
                else looks.health_of_table(self._table(table), partition)
            )
            return with_display(looks.health_frame(health_rows), Picture(health_rows))
