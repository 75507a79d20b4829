"""Finds the ACID table of a name: in the metastore, unless a temporary view has this name.

A temporary table of the session hides another table of its name, except in the query of a view. A
CTE hides a table, too; ``sql.references`` does not list the names of CTEs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Protocol

from pyspark.sql import SparkSession

from acidsql.acid.paths import is_name
from acidsql.acid.table import Table, TableName
from acidsql.errors import AnalysisError, CatalogError, UnsupportedError
from acidsql.metastore.foreign import CatalogEntry, ForeignTable, acid_table, view_of
from acidsql.plan.standins.query import VIEW_PREFIX, no_acid_table_error
from acidsql.plan.standins.view_text import ViewQuery, mark_view_name, need_table, split_view_mark
from acidsql.sql.parsed.statements import Name
from acidsql.sql.queries.references import mentioned_tables
from acidsql.sql.text.frames import is_frame
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.session import jvm, temporary


class Tables(Protocol):
    """Finds the metastore's entry for the full name of a table or view."""

    def find(self, name: TableName, *, at_a_glance: bool = False) -> CatalogEntry:
        """The entry of a name (``Catalog.find``). ``at_a_glance``: the constraints may be earlier
        ones (``Catalog.glance``)."""


class NameResolver:
    """Resolves the names in one session's statements.

    Args:
        spark: The session.
        tables: Finds tables by their full names.
        temporary: The session's temporary tables: the name in statements → the name in the
            metastore.
    """

    def __init__(
        self, spark: SparkSession, tables: Tables, temporary: Mapping[TableName, TableName]
    ) -> None:
        self._spark, self._tables, self._temporary = spark, tables, temporary

    @property
    def current_database(self) -> str:
        """The database of unqualified names, in lower case. It is Spark's, so a name means the same
        to Spark."""
        return self._spark.catalog.currentDatabase().lower()

    def find(self, parts: tuple[str, ...], *, at_a_glance: bool = False) -> Table | None:
        """Return the ACID table of a name, or the view of the metastore; None for any other name,
        and for a view that Spark has, too, and whose query names no ACID table.

        ``at_a_glance``: the constraints may be earlier ones (``Catalog.glance``).
        """
        return self.acid_table_or_view(parts, self.find_entry(parts, at_a_glance=at_a_glance))

    def may_be_ours(self, parts: tuple[str, ...]) -> bool:
        """Whether the metastore has a table or view of this name, or the session a temporary table.
        Temporary views and other catalogs are not looked at: they may hide it. Only a name of one
        part needs a message to Spark, for the current database."""
        parts = jvm.without_own_catalog(parts)
        if is_frame(parts) or len(parts) > 2:
            return False
        *database, last = (part.lower() for part in parts)
        name = TableName(database[0] if database else self.current_database, last)
        if name.session_txn_id is not None:
            return False
        return name in self._temporary or self._tables.find(name, at_a_glance=True) is not None

    def find_entry(self, parts: tuple[str, ...], *, at_a_glance: bool = False) -> CatalogEntry:
        """Return the metastore's entry of a name, whatever kind of table or view it is; None if
        there is none, or for a temporary view or DataFrame.

        ``at_a_glance``: the constraints may be earlier ones (``Catalog.glance``).
        """
        if is_frame(parts) or (len(parts) == 1 and temporary.is_temp_view(self._spark, parts[0])):
            return None
        name = self.qualify(parts)
        return None if name is None else self._tables.find(name, at_a_glance=at_a_glance)

    def find_hidden(self, parts: tuple[str, ...]) -> Table | None:
        """Return the ACID table or view that the metastore has under a name, also if a temporary
        view or table hides it: neither keeps a statement from making a table of the name. None for
        any other name."""
        name = self.qualify(mark_view_name(parts))
        entry = None if name is None else self._tables.find(name, at_a_glance=True)
        return self.acid_table_or_view(parts, entry)

    def acid_table_or_view(self, parts: tuple[str, ...], entry: CatalogEntry) -> Table | None:
        """Return the ACID table or view of a metastore entry; None for any other entry, and without
        one.

        None for a view that Spark has, too, and whose query names no ACID table: Spark reads such
        a view right.
        """
        if (view := view_of(entry)) and self.is_in_spark(parts):
            return view if self._names_acid_tables(view, set()) else None
        return None if isinstance(entry, ForeignTable) else entry

    def find_readable(self, parts: tuple[str, ...]) -> Table | None:
        """Return what a query reads by a name: an ACID table, a plain table or a view of the
        metastore. None if there is none, or if Spark itself has a table or view of the name that it
        reads right.

        Raises:
            UnsupportedError: The name is that of a materialized view or of another engine's table,
                and Spark does not have it.
        """
        return self.readable_table(parts, self.find_entry(parts))

    def readable_table(self, parts: tuple[str, ...], entry: CatalogEntry) -> Table | None:
        """Return the ACID table, plain table or view of a metastore entry that a query reads. None
        without an entry, and if Spark itself has a table or view of the name that it reads right.

        Raises:
            UnsupportedError: The entry is a materialized view or another engine's table, and Spark
                does not have it.
        """
        if isinstance(entry, ForeignTable):
            return None if self.is_in_spark(parts) else entry.need_table()
        return self.acid_table_or_view(parts, entry)

    def _names_acid_tables(self, view: Table, visited: set[TableName]) -> bool:
        """Whether a view's query names ACID tables, or views that do. The views that were looked at
        are added to ``visited``; a name that is in it already counts as none."""
        visited.add(view.name)
        view_query = ViewQuery(view)
        references = mentioned_tables(
            view_query.text, double_quoted_identifiers=view_query.double_quoted
        )
        for name in filter(
            None, (self.qualify(mark_view_name(reference.parts)) for reference in references)
        ):
            entry = None if name in visited else self._tables.find(name)
            inner_view = view_of(entry)
            if acid_table(entry) or (inner_view and self._names_acid_tables(inner_view, visited)):
                return True
        return False

    def require_table(self, name: Name, text: str, *, at_a_glance: bool = False) -> Table:
        """Return the ACID table that a statement names.

        ``at_a_glance``: the constraints may be earlier ones (``Catalog.glance``).

        Raises:
            AnalysisError: TABLE_OR_VIEW_NOT_FOUND: there is no ACID table of this name. Or the name
                is that of a view.
        """
        table = self.require_table_or_view(name, text, at_a_glance=at_a_glance)
        need_table(table, name, text)
        return table

    def require_table_or_view(self, name: Name, text: str, *, at_a_glance: bool = False) -> Table:
        """Return the ACID table or view that a statement names.

        ``at_a_glance``: the constraints may be earlier ones (``Catalog.glance``).

        Raises:
            AnalysisError: TABLE_OR_VIEW_NOT_FOUND: there is none of this name.
        """
        table = self.find(name.parts, at_a_glance=at_a_glance)
        if table is None:
            raise no_acid_table_error(".".join(name.parts), text, name.span)
        return table

    def find_foreign(self, parts: tuple[str, ...]) -> ForeignTable | None:
        """Return the metastore's table of a name that is neither an ACID table nor a view that
        acidsql reads; None if there is none. Whether a temporary view has the name is not looked
        at."""
        name = self.qualify(parts)
        entry = None if name is None else self._tables.find(name)
        return entry if isinstance(entry, ForeignTable) else None

    def is_in_spark(self, parts: tuple[str, ...]) -> bool:
        """True if Spark has a table or view of that name."""
        return self._spark.catalog.tableExists(quoted_path(split_view_mark(parts)[1]))

    def is_name_taken(self, name: Name, full: TableName) -> bool:
        """Whether Spark has a table or view of the name of a new one. For a temporary table only a
        temporary view counts, because it hides all others. ``full``: the name in the metastore."""
        if full.session_txn_id is None:
            return self.is_in_spark(name.parts)
        return len(name.parts) == 1 and temporary.is_temp_view(self._spark, name.parts[0])

    def require_free_name(self, name: Name, full: TableName) -> None:
        """Raise CatalogError if the name of a new table or view is taken by Spark."""
        if self.is_name_taken(name, full):
            quoted_name = quoted_path(name.parts)
            raise CatalogError(
                f"Spark has a table or view {quoted_name} already.",
                condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=quoted_name,
            )  # fmt: skip

    def qualify(self, parts: tuple[str, ...]) -> TableName | None:
        """Return the full name in lower case, under which the metastore keeps the table, whether
        there is one or not. A temporary table's name becomes the metastore's name of it.

        None for a name that is Spark's: one in another catalog, as any name without a catalog is
        while another one is current. ``spark_catalog.db.t`` is ``db.t``. None, too, for the name
        under which the metastore keeps a temporary table.
        """
        is_in_view, full_parts = split_view_mark(parts)
        parts = jvm.without_own_catalog(full_parts)
        if len(parts) > 2 or (parts == full_parts and not jvm.is_own_catalog(self._spark)):
            return None
        *database, last = (part.lower() for part in parts)
        name = TableName(database[0] if database else self.current_database, last)
        if name.session_txn_id is not None:
            return None
        return name if is_in_view else self._temporary.get(name, name)

    def new_table_name(self, name: Name, text: str) -> TableName:
        """Return the full name of a table that a statement creates. A temporary table of the name
        does not count.

        Raises:
            AnalysisError: The name belongs to another catalog, or Hive or Spark would refuse it.
            UnsupportedError: The name is reserved for our own views.
        """
        full_name = self.qualify(mark_view_name(name.parts))  # it may hide another table
        if full_name is None:
            raise AnalysisError(
                "An ACID table is called 'table' or 'database.table', and made while spark_catalog "
                "is the current catalog.",
                text, name.span.start, name.span.end, condition="REQUIRES_SINGLE_PART_NAMESPACE",
                sqlstate="42K05",
            )  # fmt: skip
        need_name(full_name.name, name, text)
        return full_name


class Glance:
    """Looks each name of one statement up once, and remembers the result. ``find(parts)`` returns
    what `NameResolver.find` returns, the ACID table or view of a name, and ``find_readable(parts)``
    also a plain table; None if there is none. Constraints may be earlier ones."""

    def __init__(self, names: NameResolver) -> None:
        find_entry = cache(partial(names.find_entry, at_a_glance=True))
        self.find = cache(lambda parts: names.acid_table_or_view(parts, find_entry(parts)))
        self.find_readable = cache(
            lambda parts: self.find(parts) or names.readable_table(parts, find_entry(parts))
        )


def refuse_temporary(name: TableName | None, feature: str) -> None:
    """Raise UnsupportedError if a feature that needs a lasting table names a temporary table.
    ``name``: None passes."""
    if name is not None and name.session_txn_id is not None:
        raise UnsupportedError(
            f"{feature} needs a table that lasts: {name} is a temporary table of this session.",
            condition="UNSUPPORTED_FEATURE.TEMPORARY_TABLE",
        )


def need_name(part: str, name: Name, text: str) -> None:
    """Check the name of a new table or database. The name becomes the name of a directory, too.

    Args:
        part: The name without its database, in lower case.
        name: The name in the statement, for the caret.
        text: The statement.

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
