"""Which table a name means: CTE, temporary view, then our catalog in the current database."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import SparkSession

from acidsql.acid.table import Table, TableName
from acidsql.errors import AnalysisError
from acidsql.sql.statements import Name
from acidsql.storage import jvm


class Tables(Protocol):
    """What finds a table by its full name."""

    def get_table(self, name: TableName) -> Table | None:
        """One table, or None."""


class Names:
    """Resolves names for one session.

    Attributes:
        current_database: What an unqualified name is looked up in; ``USE`` changes it.
    """

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self._spark, self._tables = spark, tables
        self.current_database = "default"

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table of a name; None for Spark's own, and for temporary views."""
        name = self.qualify(parts)
        if name is None or (len(parts) == 1 and jvm.is_temp_view(self._spark, parts[0])):
            return None
        return self._tables.get_table(name)

    def need(self, name: Name, text: str) -> Table:
        """The ACID table that a statement names.

        Raises:
            AnalysisError: TABLE_OR_VIEW_NOT_FOUND.
        """
        table = self.resolve(name.parts)
        if table is None:
            raise AnalysisError(
                f"There is no ACID table '{'.'.join(name.parts)}'.",
                text, name.span.start, name.span.end,
                condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01",
            )  # fmt: skip
        return table

    def is_acid(self, parts: tuple[str, ...]) -> bool:
        """True if the name is that of an ACID table."""
        return self.resolve(parts) is not None

    def qualify(self, parts: tuple[str, ...]) -> TableName | None:
        """Database and table, lower case; None for a name that only Spark can have
        (``spark_catalog.db.t``)."""
        lowered = tuple(part.lower() for part in parts)
        if len(lowered) == 1:
            return TableName(self.current_database, lowered[0])
        return TableName(*lowered) if len(lowered) == 2 else None

    def new(self, name: Name, text: str) -> TableName:
        """The name of a table that is to be made.

        Raises:
            AnalysisError: It has three parts or more.
        """
        found = self.qualify(name.parts)
        if found is None:
            raise AnalysisError(
                "An ACID table is called 'table' or 'database.table'.",
                text, name.span.start, name.span.end, condition="REQUIRES_SINGLE_PART_NAMESPACE",
                sqlstate="42K05",
            )  # fmt: skip
        return found
