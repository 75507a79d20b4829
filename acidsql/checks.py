"""The public methods of a session that check tables."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.errors import SettingError
from acidsql.statements.runner import Runner

LEVELS = ("files", "rows")


class CheckMethods:
    """What a ``Session`` offers for the soundness of tables."""

    _runner: Runner
    _lock: threading.RLock
    _need_open: Callable[[], None]
    _table: Callable[[str], Table]

    def check(self, table: str, level: str = "files") -> DataFrame:
        """Look for damage, and for what does not belong there. Nothing is changed or locked.

        The check looks at one snapshot. It does not disturb writers, and they do not disturb it.

        Args:
            table: ``table`` or ``database.table``.
            level: ``files``: look at the names of all directories and files, and at the footers of
                the files that readers need. ``rows``: also read each row of these files, in tasks,
                and compare the row ids of rows and delete events.

        Returns:
            The findings, the worst first; no rows if the table is sound. ``severity`` string:
            error (rows are wrong, lost or unreadable, or will be), warning (something does not
            belong there) or info. ``path`` string, ``finding`` string (a name that stays the same),
            ``message`` string (what is wrong), ``advice`` string (what to do). At most 1,000.

        Raises:
            CatalogError: There is no such table.
            SettingError: ``level`` is unknown.
        """
        self._need_open()
        if level not in LEVELS:
            raise SettingError(f"level='{level}' is not one of {', '.join(LEVELS)}.")
        with self._lock:
            return self._runner.checks.check(self._table(table), all_rows=level == "rows")
