"""Batches of ``foreachBatch``, whose Spark session is a copy of the one that is extended.

Without this, Spark's calls there would make tables of Spark's by the names of ACID tables, and the
rows of the batch would be lost in them. The calls are refused and not served: a batch that runs
again would write its rows twice, and ``acid.sink`` writes them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.api.extension.extension import Extension
from acidsql.api.extension.registry import in_charge_of_batch
from acidsql.errors import UnsupportedError
from acidsql.metastore.interface import Database
from acidsql.sql.parsed import statements as st
from acidsql.sql.text.tokens import SqlText
from acidsql.storage.spark.session.users_code import call_users_function

_Function = Callable[[DataFrame, int], Any]


def refusing_acid_tables(extension: Extension, function: _Function) -> _Function:
    """Return a function for ``foreachBatch`` that calls this one, while calls about ACID tables in
    the batch's session are errors."""

    def run_batch(batch: DataFrame, batch_id: int) -> Any:
        with in_charge_of_batch(_BatchExtension(extension), batch.sparkSession):
            return call_users_function(function, batch, batch_id)

    return run_batch


class _BatchExtension(Extension):
    """Refuses calls about ACID tables, as long as ``extension`` has the calls of its session."""

    def __init__(self, extension: Extension) -> None:
        super().__init__(extension.session)
        self._extension = extension

    @property
    def is_open(self) -> bool:
        """Whether Spark's calls are still the session's from which the batch's is a copy."""
        return self._extension.is_open

    def find(self, name: object) -> Table | None:
        """Return None for a name that only Spark can have. Raise UnsupportedError for any other."""
        self._refuse(super().find(name), name)
        return None

    def find_lasting(self, name: object) -> Table | None:
        """Return None for a name that is free. Raise UnsupportedError for any other."""
        self._refuse(super().find_lasting(name), name)
        return None

    def makes_acid_table(self, name: object, format: str | None) -> bool:
        """Return False. Raise UnsupportedError if the call is to make an ACID table."""
        self._refuse(super().makes_acid_table(name, format) or None, name)
        return False

    def database(self, name: object) -> Database | None:
        """Return None: the call is Spark's."""
        return None

    def acid_names(self, database: str, pattern: str | None) -> list[str]:
        """Return []: the call is Spark's."""
        return []

    def database_names(self, pattern: str | None) -> list[str]:
        """Return []: the call is Spark's."""
        return []

    def run(self, text: SqlText, args: Any, values: Mapping[str, Any]) -> DataFrame | None:
        """Return None for a text that is Spark's, and for lists of names. Raise UnsupportedError
        for any other."""
        recognized = self._runner.recognize(text) if self.is_open else None
        lists = st.ShowTables | st.ShowViews | st.ShowDatabases
        if recognized is not None and not isinstance(recognized.statement, lists):
            self._refuse(recognized, None)
        return None

    def _refuse(self, concerned: object, name: object) -> None:
        """Raise UnsupportedError if a call concerns an ACID table."""
        if concerned is None:
            return
        subject = "the statement names ACID tables" if name is None else f"{name} is an ACID table"
        raise UnsupportedError(
            f"In foreachBatch, {subject}, and Spark may run a batch twice. Use acid.sink(…) as the "
            "function, which writes each batch once. Or let the batch's own session know ACID "
            "tables: acidsql.connect(batch.sparkSession, extend=True).",
            condition="UNSUPPORTED_FEATURE.FOREACH_BATCH",
        )
