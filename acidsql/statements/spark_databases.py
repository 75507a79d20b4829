"""A database of ours is one of Spark's, too, so that a name means the same to both.

Spark's has a directory of its own: Spark deletes a database's directory with all that is in it, and
knows nothing of our tables.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from acidsql.acid.paths import is_same, may_be_within
from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.interface import Database, Metastore
from acidsql.sql.statements import Name
from acidsql.storage.columns import quote

CATALOG = "spark_catalog"
_WAREHOUSE = "spark.sql.warehouse.dir"
_WORD = re.compile(r"\w+")  # a database's name, as Spark's catalog takes it


def is_of_another_catalog(name: Name) -> bool:
    """Whether the name is that of a namespace outside of Spark's own catalog."""
    return len(name.parts) > 2 or (len(name.parts) == 2 and name.parts[0].lower() != CATALOG)


class SparkDatabases:
    """The databases of Spark's own catalog, beside those of one metastore."""

    def __init__(self, spark: SparkSession, metastore: Metastore) -> None:
        self._spark, self._metastore = spark, metastore

    def exists(self, name: str) -> bool:
        """Whether Spark has a database of this name."""
        return self._spark.catalog.databaseExists(f"{CATALOG}.{quote(name)}")

    def share(self, database: Database) -> None:
        """Let Spark have this database, too.

        Raises:
            AnalysisException: Spark's own, where Spark takes no such name.
        """
        if self.exists(database.name):
            return
        comment = "" if database.comment is None else f" COMMENT {_string(database.comment)}"
        self._spark.sql(
            f"CREATE DATABASE IF NOT EXISTS {CATALOG}.{quote(database.name)}{comment} "
            f"LOCATION {_string(self._own_place(database.name))}"
        )

    def share_named(self, text: str) -> None:
        """Let Spark have the databases that a statement of Spark's may name."""
        words = set(_WORD.findall(text.lower()))
        for database in self._metastore.databases():
            if database.name in words:
                self.share(database)

    def apart(self, name: str, location: str) -> str:
        """A place for a new database's tables: this one, unless Spark's of that name lies there."""
        if not self.exists(name) or not is_same(self._place(name), location):
            return location
        return f"{location.removesuffix('.db')}.acid.db"

    def check_drop(self, name: str, *, cascade: bool) -> None:
        """See that Spark's database can be dropped.

        Raises:
            CatalogError: SCHEMA_NOT_EMPTY: it has a table, or an ACID table of another database
                lies in its directory.
        """
        within = f"{CATALOG}.{quote(name)}"
        found = [one.name for one in self._spark.catalog.listTables(within) if not one.isTemporary]
        if found and not cascade:
            raise _not_empty(name, f"The database '{name}' is not empty: it has the table "
                             f"'{found[0]}' of Spark's.")  # fmt: skip
        place = self._place(name)
        if is_same(place, self._own_place(name)):
            return
        for table in self._tables_elsewhere(name):
            if may_be_within(table.location, place):
                raise _not_empty(
                    name, f"Spark would delete the directory '{place}' with its database '{name}', "
                    f"and the ACID table {table.name} lies there."
                )  # fmt: skip

    def drop(self, name: str, *, cascade: bool) -> None:
        """Drop Spark's database."""
        how = "CASCADE" if cascade else "RESTRICT"
        self._spark.sql(f"DROP DATABASE IF EXISTS {CATALOG}.{quote(name)} {how}")

    def _place(self, name: str) -> str:
        return self._spark.catalog.getDatabase(f"{CATALOG}.{quote(name)}").locationUri

    def _own_place(self, name: str) -> str:
        return f"{self._spark.conf.get(_WAREHOUSE)}/{name}.spark.db"

    def _tables_elsewhere(self, name: str) -> list[Table]:
        names = [
            TableName(database.name, table)
            for database in self._metastore.databases()
            for table in self._metastore.tables(database.name)
            if database.name != name
        ]
        return [table for one in names if (table := self._metastore.get_table(one)) is not None]


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _not_empty(name: str, message: str) -> CatalogError:
    return CatalogError(message, condition="SCHEMA_NOT_EMPTY", sqlstate="2BP01", schemaName=name)
