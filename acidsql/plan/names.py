"""Finds the ACID table of a name: in the metastore, unless a temporary view has this name.

A temporary table of the session hides another table of its name, except in the query of a view. A
CTE hides a table, too; ``sql.references`` does not list the names of CTEs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pyspark.sql import SparkSession

from acidsql.acid.paths import is_name
from acidsql.acid.table import Table, TableName
from acidsql.errors import AnalysisError, CatalogError, UnsupportedError
from acidsql.metastore.foreign import ForeignTable, Found, acid_table, view_of
from acidsql.plan.query import VIEW_PREFIX, no_acid_table
from acidsql.plan.view_text import InView, is_of_view, need_table, of_view
from acidsql.sql.frames import is_frame
from acidsql.sql.references import mentioned_tables
from acidsql.sql.statements import Name
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark import jvm, temporary
from acidsql.storage.spark.catalog_names import kind_of


class Tables(Protocol):
    """Finds what a full name means."""

    def find(self, name: TableName) -> Found:
        """As ``Catalog.find``."""

    def glance(self, name: TableName) -> Found:
        """As ``Catalog.glance``."""


class Names:
    """Resolves the names in one session's statements.

    Args:
        spark: The session.
        tables: Finds tables by their full names.
        temporary: The session's temporary tables: the name that people say → the kept name.
    """

    def __init__(
        self, spark: SparkSession, tables: Tables, temporary: Mapping[TableName, TableName]
    ) -> None:
        self._spark, self._tables, self._temporary = spark, tables, temporary

    @property
    def current_database(self) -> str:
        """The database of unqualified names. It is Spark's, so a name means the same to Spark."""
        return self._spark.catalog.currentDatabase().lower()

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table of a name; None for a table of Spark's and for a temporary view."""
        return acid_table(self._look(parts, self._tables.find))

    def glance(self, parts: tuple[str, ...]) -> Table | None:
        """As ``resolve``, at a glance (see ``Catalog``)."""
        return acid_table(self._look(parts, self._tables.glance))

    def _look(self, parts: tuple[str, ...], look: Callable[[TableName], Found]) -> Found:
        name = self._ours(parts)
        return None if name is None else look(name)

    def _ours(self, parts: tuple[str, ...]) -> TableName | None:
        if is_frame(parts) or (len(parts) == 1 and temporary.is_temp_view(self._spark, parts[0])):
            return None
        return self.qualify(parts)

    def known(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table, at a glance, or the view of ACID tables, of a name."""
        return self.table_or_view(parts, self.seen(parts))

    def seen(self, parts: tuple[str, ...]) -> Found:
        """What a name means in the metastore, at a glance."""
        return self._look(parts, self._tables.glance)

    def table_or_view(self, parts: tuple[str, ...], found: Found) -> Table | None:
        """The ACID table or view that was found; no view that Spark has, too, and reads right."""
        if (hidden := view_of(found)) and self.is_sparks(parts):
            return hidden if self._names_acid_tables(hidden, set()) else None
        return None if isinstance(found, ForeignTable) else found

    def readable(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table, plain table or view that a query reads; None for what Spark itself has.

        Raises:
            UnsupportedError: The name is that of a materialized view or of another engine's table,
                and Spark does not have it.
        """
        return self.to_read(parts, self._look(parts, self._tables.find))

    def to_read(self, parts: tuple[str, ...], found: Found) -> Table | None:
        """As ``readable``, if this was found."""
        if isinstance(found, ForeignTable):
            return None if self.is_sparks(parts) else found.need_table()
        return self.table_or_view(parts, found)

    def _names_acid_tables(self, outer: Table, seen: set[TableName]) -> bool:
        """Whether a view's query names ACID tables, or other views that do."""
        seen.add(outer.name)
        inside = InView(outer)
        found = mentioned_tables(inside.text, double_quoted_identifiers=inside.double_quoted)
        for name in filter(None, (self.qualify(of_view(one.parts)) for one in found)):
            meant = None if name in seen else self._tables.find(name)
            inner = view_of(meant)
            if acid_table(meant) or (inner and self._names_acid_tables(inner, seen)):
                return True
        return False

    def need(self, name: Name, text: str, *, at_a_glance: bool = False) -> Table:
        """The ACID table that a statement names. ``at_a_glance``: see ``Catalog.glance``.

        Raises:
            AnalysisError: TABLE_OR_VIEW_NOT_FOUND: there is no ACID table of this name. Or it is
                the name of a view.
        """
        table = self.need_any(name, text, at_a_glance=at_a_glance)
        need_table(table, name, text)
        return table

    def need_any(self, name: Name, text: str, *, at_a_glance: bool = False) -> Table:
        """The ACID table or view that a statement names. Raises AnalysisError: there is none."""
        look = self._tables.glance if at_a_glance else self._tables.find
        table = self.table_or_view(name.parts, self._look(name.parts, look))
        if table is None:
            raise no_acid_table(".".join(name.parts), text, name.span)
        return table

    def foreign(self, parts: tuple[str, ...]) -> ForeignTable | None:
        """The table of the metastore that is no ACID table, of a name."""
        name = self.qualify(parts)
        found = None if name is None else self._tables.find(name)
        return found if isinstance(found, ForeignTable) else None

    def is_acid(self, parts: tuple[str, ...]) -> bool:
        """Whether the name is that of an ACID table."""
        return self.glance(parts) is not None

    def is_sparks(self, parts: tuple[str, ...]) -> bool:
        """True if Spark has a table or view of that name."""
        return self._spark.catalog.tableExists(quoted_path(is_of_view(parts)[1]))

    def is_taken(self, name: Name, full: TableName) -> bool:
        """True if Spark has a table or view of the name of a new one. A temporary table hides all
        but a temporary view."""
        if full.holder is None:
            return self.is_sparks(name.parts)
        return len(name.parts) == 1 and temporary.is_temp_view(self._spark, name.parts[0])

    def need_free(self, name: Name, full: TableName) -> None:
        """Raise CatalogError if the name of a new table or view is taken by Spark."""
        if self.is_taken(name, full):
            said = quoted_path(name.parts)
            raise CatalogError(
                f"Spark has a table or view {said} already.",
                condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=said,
            )  # fmt: skip

    def qualify(self, parts: tuple[str, ...]) -> TableName | None:
        """The full name in lower case, under which the metastore keeps the table.

        None for a name that is Spark's: a name of three parts or more (``spark_catalog.db.t``), and
        any name while another catalog is current. And for the kept name of a temporary table.
        """
        of_a_view, parts = is_of_view(parts)
        if len(parts) > 2 or not jvm.is_own_catalog(self._spark):
            return None
        *database, last = (part.lower() for part in parts)
        name = TableName(database[0] if database else self.current_database, last)
        if name.holder is not None:
            return None
        return name if of_a_view else self._temporary.get(name, name)

    def new(self, name: Name, text: str) -> TableName:
        """The full name of a table that a statement creates.

        Raises:
            AnalysisError: The name has three parts or more, belongs to another catalog, or Hive or
                Spark would refuse it.
            UnsupportedError: The name is reserved for our own views.
        """
        found = self.qualify(of_view(name.parts))  # it may hide another table
        if found is None:
            raise AnalysisError(
                "An ACID table is called 'table' or 'database.table', and made while spark_catalog "
                "is the current catalog.",
                text, name.span.start, name.span.end, condition="REQUIRES_SINGLE_PART_NAMESPACE",
                sqlstate="42K05",
            )  # fmt: skip
        need_name(found.name, name, text)
        return found


def refuse_temporary(name: TableName | None, what: str) -> None:
    """Raise UnsupportedError if something that needs a lasting table names a temporary one."""
    if name is not None and name.holder is not None:
        raise UnsupportedError(
            f"{what} needs a table that lasts: {name} is a temporary table of this session.",
            condition="UNSUPPORTED_FEATURE.TEMPORARY_TABLE",
        )


def need_acid_table(spark: SparkSession, table: Table | None, parts: tuple[str, ...]) -> Table:
    """The table of a name in a method's argument. Raises CatalogError if there is none."""
    if table is None:
        name, kind = ".".join(parts), kind_of(spark, parts)
        meaning = "" if kind is None else f": it is {kind.value}"
        raise CatalogError(f"There is no ACID table '{name}'{meaning}.", table=name)
    return table


def need_name(part: str, name: Name, text: str) -> None:
    """Check the name of a new table or database. The name becomes the name of a directory, too.

    Raises:
        AnalysisError: Hive or Spark would refuse the name.
        UnsupportedError: The name begins with the prefix of our own views.
    """
    if part.startswith(VIEW_PREFIX):
        raise UnsupportedError(
            f"Names that begin with {VIEW_PREFIX} are reserved.", text, name.span.start,
            name.span.end, condition="UNSUPPORTED_FEATURE.RESERVED_NAME",
        )  # fmt: skip
    if not is_name(part):
        raise AnalysisError(
            f"`{part}` is no name of a table or a database: such names are made of a to z, digits "
            "and _, and no longer than 128.",
            text, name.span.start, name.span.end,
            condition="INVALID_SCHEMA_OR_RELATION_NAME", sqlstate="42602",
        )  # fmt: skip
