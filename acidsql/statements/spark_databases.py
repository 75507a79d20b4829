"""Creates each ACID database in Spark's catalog, too, so that a name means the same in both.

The two databases have different directories: when Spark drops a database, it deletes the directory
with all that is inside, and Spark does not know the ACID tables.
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
_WORD = re.compile(r"\w+")  # Spark's catalog takes such names for databases


def is_of_another_catalog(name: Name) -> bool:
    """Whether the name belongs to a catalog other than ``spark_catalog``."""
    return len(name.parts) > 2 or (len(name.parts) == 2 and name.parts[0].lower() != CATALOG)


class SparkDatabases:
    """The databases of Spark's own catalog that correspond to those of one metastore."""

    def __init__(self, spark: SparkSession, metastore: Metastore) -> None:
        self._spark, self._metastore = spark, metastore

    def exists(self, name: str) -> bool:
        """Whether Spark has a database of this name."""
        return self._spark.catalog.databaseExists(f"{CATALOG}.{quote(name)}")

    def share(self, database: Database) -> None:
        """Create this database in Spark's catalog, unless it exists there.

        Raises:
            AnalysisException: Spark refuses the name. (The error is Spark's own.)
        """
        if self.exists(database.name):
            return
        comment = "" if database.comment is None else f" COMMENT {_string(database.comment)}"
        self._spark.sql(
            f"CREATE DATABASE IF NOT EXISTS {CATALOG}.{quote(database.name)}{comment} "
            f"LOCATION {_string(self._own_place(database.name))}"
        )

    def share_named(self, text: str) -> None:
        """Create, in Spark's catalog, the databases that a statement for Spark may name."""
        words = set(_WORD.findall(text.lower()))
        for database in self._metastore.databases():
            if database.name in words:
                self.share(database)

    def apart(self, name: str, location: str) -> str:
        """A directory for a new ACID database: ``location``, or another one if Spark's database of
        that name has this directory."""
        if not self.exists(name) or not is_same(self._place(name), location):
            return location
        return f"{location.removesuffix('.db')}.acid.db"

    def check_drop(self, name: str, *, cascade: bool) -> None:
        """Check that Spark's database can be dropped.

        Raises:
            CatalogError: SCHEMA_NOT_EMPTY: the database has a table (without ``cascade``), or an
                ACID table of another database is inside of its directory.
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
