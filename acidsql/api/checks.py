"""The public methods of a session that show and check the files of tables."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from acidsql.api.core import SessionCore
from acidsql.arguments import checked_while_open
from acidsql.errors import SettingError

LEVELS = ("files", "rows")


class CheckMethods(SessionCore):
    """What a ``Session`` offers to look at tables' files, and for their soundness."""

    @checked_while_open
    def files(self, table: str) -> DataFrame:
        """All files and directories below a table's directory, and what each of them is.

        Returns:
            One row for each file, and for each directory without files, ordered by path:
            ``partition`` string (the partition's directory, "" if there is none), ``directory``
            string, ``kind`` string (base, delta, delete_delta, original, litter), ``min_write_id``
            and ``max_write_id`` bigint, ``statement_id`` int, ``visibility_txn_id`` bigint (of Hive
            4's compactor), ``file`` string, ``bucket`` int (the bucket id), ``rows`` bigint (the
            number of events; NULL if the file is not an ORC file, or is deleted before the
            DataFrame is evaluated), ``bytes`` bigint, ``state`` string, ``path`` string,
            ``problem`` string (why ``rows`` is unknown). The state is that in the transaction's
            snapshot, or in a new one: visible; history (only older versions need it); obsolete
            (hidden by a base or a wider delta); aborted; open (its transaction has not committed);
            unknown (readers ignore it: left by a crash, not of this table, or of a dropped
            partition).

        Raises:
            CatalogError: There is no such table.
        """
        return self._runner.files(self._table(table))

    @checked_while_open
    def events(self, path: str | Path) -> DataFrame:
        """The events in a file, including invisible events and events of deleted rows, lazily.

        Args:
            path: A bucket file, or a base, delta or delete_delta directory, as in ``files``.

        Returns:
            One row for each event, in the file's order: ``operation`` int (0 insert, 2 delete),
            ``originalTransaction`` bigint, ``bucket`` int and ``rowId`` bigint (the row id),
            ``currentTransaction`` bigint (the write id of this event), ``row`` struct (the columns
            in the file; NULL for a delete event), ``path`` string.

        Raises:
            FormatError: There is no such file, or the file contains no events.
        """
        return self._runner.events(str(path))

    @checked_while_open
    def check(self, table: str, level: str = "files") -> DataFrame:
        """Look for damage, and for what does not belong there. Nothing is changed or locked.

        The check looks at one snapshot. It does not disturb writers, and they do not disturb it.
        (Over a Hive Metastore 3.1, a SHARED_READ lock keeps its cleaner from the files.)

        Args:
            table: ``table`` or ``database.table``.
            level: ``files``: look at the names of all directories and files, and at the footers of
                the files that readers need. ``rows``: also read each row of these files, in tasks,
                and compare the row ids of rows and delete events.

        Returns:
            The findings, the worst first; no rows if the table is sound. ``severity`` string:
            error (rows are wrong, lost or unreadable, or will be), warning (something does not
            belong there) or info. ``path`` string, ``finding`` string (a name that stays the same),
            ``message`` string (what is wrong), ``advice`` string (what to do). At most 1,000, and
            then a row that others were left out.

        Raises:
            CatalogError: There is no such table.
            SettingError: ``level`` is unknown.
        """
        if level not in LEVELS:
            raise SettingError(f"level='{level}' is not one of {', '.join(LEVELS)}.")
        with self._lock:
            return self._runner.checks.check(self._table(table), all_rows=level == "rows")

    @checked_while_open
    def repair(self, table: str, *, dry_run: bool = True) -> DataFrame:
        """Mend what ``check`` finds, as far as that needs no guess.

        * Hidden directories of statements and compactions that have ended, and directories of
          aborted transactions, are deleted. (Over a Hive Metastore, Hive's cleaner deletes the
          latter.)
        * A partition whose directory is missing is dropped from the catalog. A directory with rows
          of a partition that the catalog does not have is added. This takes the table's EXCLUSIVE
          lock, makes a version, and ends all older ones.

        No file is changed, and none is deleted that an open transaction, a lease or a running job
        may need. Links are not followed.

        Args:
            table: ``table`` or ``database.table``.
            dry_run: Only say what would be done.

        Returns:
            What was done, or would be, with the columns of ``check``; ``advice`` says it.

        Raises:
            CatalogError: There is no such table.
            TxnError: A transaction is open. End it first.
            LockTimeoutError: Others have locks on the table.
        """
        with self._lock:
            return self._runner.checks.repair(self._table(table), dry_run=dry_run)
