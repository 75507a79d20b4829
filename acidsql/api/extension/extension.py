"""One session of acidsql that is in charge of its Spark session's own calls."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import date
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, Row, SparkSession

from acidsql.acid.table import Table
from acidsql.api.dataframes.methods import DataFrameMethods
from acidsql.api.extension.text_values import put_values
from acidsql.errors import CatalogError
from acidsql.metastore.interface import Database
from acidsql.settings.limits import OWN_PREFIX
from acidsql.sql.parsed import statements as st
from acidsql.sql.text.given_names import table_parts
from acidsql.sql.text.tokens import SqlText
from acidsql.storage.columns import quoted_path, string_literal
from acidsql.storage.spark.session.jvm import OWN_CATALOG, without_own_catalog

FORMAT = "acidsql"  # of new tables, in ``format``, ``using`` and USING
_Object = TypeVar("_Object")


class Extension:
    """Answers, for one session, what the doors ask.

    Attributes:
        session: The session of acidsql.
        spark: Its Spark session.
        catalogs: The extended catalog of each Python object of the Spark session.
        is_in_charge: False once Spark's calls were given back.
    """

    def __init__(self, session: DataFrameMethods) -> None:
        self.session, self.spark = session, session.spark
        self.catalogs: WeakKeyDictionary[SparkSession, Any] = WeakKeyDictionary()
        self._runner = session._runner
        self.is_in_charge = True

    @property
    def is_open(self) -> bool:
        """Whether Spark's calls are still this session's. What a door has given out asks this at
        each call."""
        return self.is_in_charge and not self.session._closed

    def find(self, name: object) -> Table | None:
        """Return the table or view that acidsql reads by a name that Spark's call got; None if the
        call is Spark's: for every other name, and for what is no name of a table."""
        parts = _parts(name)
        return None if parts is None or not self.is_open else self._runner.find_readable(parts)

    def find_lasting(self, name: object) -> Table | None:
        """Return the ACID table or view whose name a call gives to a new table, or that ``find``
        returns; None if the name is free. A temporary view hides a table from those who read, but
        not from ``saveAsTable`` and ``create``, as in Spark."""
        table, parts = self.find(name), _parts(name)
        if table is not None or parts is None or not self.is_open:
            return table
        return self._runner.find_hidden(parts)

    def require_free_name(self, name: object, advice: str) -> None:
        """Raise CatalogError if an ACID table or view has the name of a new table of Spark's, which
        it would hide. ``advice``: a sentence for the error."""
        table = self.find_lasting(name)
        if table is not None:
            raise CatalogError(
                f"There is {'an ACID table' if table.view is None else 'a view'} {table.name} "
                f"already. {advice}",
                condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07",
                relationName=full_name(table),
            )  # fmt: skip

    def makes_acid_table(self, name: object, format: str | None) -> bool:
        """Whether a call that names this format, or none, is to make an ACID table of a name that
        no ACID table has."""
        if format is not None:
            return self.is_open and format.lower() == FORMAT
        if not self.is_open or not self._runner.settings.default_tables:
            return False
        parts = _parts(name)
        return parts is not None and not self._runner.is_in_spark(parts)

    def database_name(self, name: object) -> str | None:
        """Return a database's name in lower case, without ``spark_catalog``; None if the call is
        Spark's, for a database of another catalog, and for what is no name."""
        if not isinstance(name, str) or not self.is_open:
            return None
        try:
            *catalog, last = table_parts(name)
        except CatalogError:
            return None
        return last.lower() if catalog in ([], [OWN_CATALOG]) else None

    def database(self, name: object) -> Database | None:
        """Return acidsql's database of a name; None if there is none, or the call is Spark's. (For
        Spark's catalog, too, a name without a catalog may be in ``spark_catalog`` while another one
        is current.)"""
        last = self.database_name(name)
        return None if last is None else self.session.metastore.get_database(last)

    def acid_names(self, database: str, pattern: str | None) -> list[str]:
        """Return the names of the ACID tables and views of a database that SHOW TABLES shows; []
        without such a database. ``pattern``: only those that LIKE it."""
        last = self.database_name(database)
        return [] if last is None else self._runner.acid_names(last, pattern)

    def database_names(self, pattern: str | None) -> list[str]:
        """Return the names of the databases that SHOW DATABASES shows; [] if the calls are Spark's.
        ``pattern``: only those that LIKE it."""
        if not self.is_open:
            return []
        like = "" if pattern is None else f" LIKE {string_literal(pattern)}"
        return [row.namespace for row in self.shown_rows(f"SHOW DATABASES{like}")]

    def shown_rows(self, text: str) -> list[Row]:
        """Return the rows of a SHOW statement about what a catalog has."""
        return self.session.sql(text).collect()

    def run(self, text: SqlText, args: Any, values: Mapping[str, Any]) -> DataFrame | None:
        """Run the text of a call of ``spark.sql`` if it concerns acidsql, and return its rows; None
        if Spark is to run it, alone or, as SET of a setting of Hive's, too. Lists of databases and
        tables have Spark's columns.

        Args:
            text: The text.
            args: The values of its parameters.
            values: What it names in braces.
        """
        recognized = self._runner.recognize(text)
        if recognized is None:
            return None
        statement = recognized.statement
        if isinstance(statement, st.CreateTable):
            self.share_database(statement.name.parts)
        if isinstance(statement, st.SetOption | st.ResetOption) and _is_of_both(statement.key):
            self.session.sql(text)
            return None
        with put_values(self.spark, text, values) as (whole_text, frames):
            rows = self.session.sql(whole_text, args, **frames)
        # Both catalogs may have a name. Without the column that tells them apart, it stands once.
        if isinstance(statement, st.ShowTables | st.ShowViews | st.ShowDatabases):
            names = rows.drop("catalog").distinct()
            return names.orderBy(*names.columns)
        return rows

    def share_database(self, parts: tuple[str, ...]) -> None:
        """Let acidsql have the database of a new table, if only Spark has it so far. ``parts``: the
        table's name."""
        self._runner.share_database(parts)

    def rows(
        self, name: str, version: int | None = None, timestamp: date | str | None = None
    ) -> DataFrame:
        """Return the rows of a table or view that ``find`` knows, lazily, with its last name as
        alias, so that its columns may be called ``t.c``, as in Spark."""
        parts = table_parts(name)
        table = self.find(name)
        if table is not None and not table.is_transactional and table.view is None:
            return self.session.sql(f"SELECT * FROM {quoted_path(parts)}").alias(parts[-1])
        rows = self._runner.read_table(parts, row_id=False, version=version, timestamp=timestamp)
        return rows.alias(parts[-1])


def full_name(table: Table) -> str:
    """Return the full name of an ACID table or view as SQL."""
    return quoted_path((table.name.database, table.name.shown))


@functools.cache
def _extended_class(kind: type, calls: type) -> type:
    """Return a subclass of a class of PySpark's with other calls."""
    return type(kind.__name__, (calls, kind), {"__module__": kind.__module__})


def extended(given: _Object, calls: type, extension: Extension) -> _Object:
    """Return an object of PySpark's, changed: its class has the methods of ``calls`` before its
    own, and ``_extension`` is the extension."""
    kind: Any = type(given)
    given.__class__ = _extended_class(kind, calls)
    given._extension = extension  # type: ignore[attr-defined]
    return given


def _is_of_both(setting: str) -> bool:
    """Whether Spark may have a setting, too: acidsql has some of Hive's."""
    return not setting.startswith(OWN_PREFIX)


def _parts(name: object) -> tuple[str, ...] | None:
    """Return the parts of a table's name; None if this is none that an ACID table can have."""
    if not isinstance(name, str):
        return None
    try:
        parts = table_parts(name)
    except CatalogError:
        return None
    return parts if len(without_own_catalog(parts)) <= 2 else None
