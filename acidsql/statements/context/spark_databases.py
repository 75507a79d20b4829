"""Creates each ACID database in Spark's catalog, too, so that both catalogs know its name.

The two databases of a name have different directories, because Spark deletes the directory of a
database that it drops. Spark does not know the ACID tables that such a directory could contain.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from acidsql.acid.paths import is_same, may_be_within
from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, CatalogError
from acidsql.metastore.catalog import all_tables
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Database, Metastore
from acidsql.sql.parsed.statements import Name
from acidsql.storage.columns import quote, string_literal
from acidsql.storage.spark.session import jvm

_WAREHOUSE = "spark.sql.warehouse.dir"
_WORD = re.compile(r"\w+")  # Spark's catalog takes such names for databases


class SparkDatabases:
    """The databases of Spark's own catalog that correspond to those of one metastore."""

    def __init__(self, spark: SparkSession, metastore: Metastore) -> None:
        self._spark, self._metastore = spark, metastore

    def is_elsewhere(self, name: Name | None) -> bool:
        """Whether a database's name is in a catalog that is not Spark's own (``spark_catalog``);
        for None, whether the current namespace is. A name without a catalog is in the current one.
        A name of three or more parts is always elsewhere.

        A namespace elsewhere is never an ACID database.
        """
        parts = () if name is None else name.parts
        if len(parts) < 2:
            return not jvm.is_own_catalog(self._spark)
        return len(parts) > 2 or parts[0].lower() != jvm.OWN_CATALOG

    def require_acid_name(self, name: Name, text: str) -> str:
        """Return the last part of a database's name, in lower case, if it can be an ACID database.
        Whether the database exists is not checked.

        Raises:
            AnalysisError: SCHEMA_NOT_FOUND: the name is in another catalog, which has no ACID
                databases.
        """
        if self.is_elsewhere(name):
            raise AnalysisError(
                f"'{'.'.join(name.parts)}' is no database of ACID tables: it is in another catalog "
                f"than {jvm.OWN_CATALOG}.",
                text, name.span.start, name.span.end,
                condition="SCHEMA_NOT_FOUND", sqlstate="42704",
            )  # fmt: skip
        return name.parts[-1].lower()

    def is_acid_database(self, name: Name) -> bool:
        """Whether the metastore has a database of ACID tables of this name."""
        if self.is_elsewhere(name):
            return False
        return self._metastore.get_database(name.parts[-1].lower()) is not None

    def is_catalog(self, name: str) -> bool:
        """Whether the Spark session has a catalog of this name: its own (``spark_catalog``), or one
        that a conf ``spark.sql.catalog.<name>`` configures. The case of letters matters."""
        return (
            name == jvm.OWN_CATALOG
            or self._spark.conf.get(f"spark.sql.catalog.{name}", None) is not None
        )

    def exists(self, name: str) -> bool:
        """Whether Spark has a database of this name."""
        return self._spark.catalog.databaseExists(f"{jvm.OWN_CATALOG}.{quote(name)}")

    def share(self, database: Database) -> None:
        """Create this ACID database in Spark's catalog, too, unless it exists there. Its directory
        there is another one.

        Raises:
            AnalysisException: Spark refuses the name. (The error is Spark's own.)
        """
        if self.exists(database.name):
            return
        comment = "" if database.comment is None else f" COMMENT {string_literal(database.comment)}"
        self._spark.sql(
            f"CREATE DATABASE IF NOT EXISTS {jvm.OWN_CATALOG}.{quote(database.name)}{comment} "
            f"LOCATION {string_literal(self._default_location(database.name))}"
        )

    def find_and_share(self, name: Name) -> Database | None:
        """Return the ACID database of a name; None if there is none, or the name is in another
        catalog. If Spark's catalog does not have the database yet, it is created there."""
        if self.is_elsewhere(name):
            return None
        database = self._metastore.get_database(name.parts[-1].lower())
        if database is not None:
            self.share(database)
        return database

    def share_named(self, text: str) -> None:
        """Create, in Spark's catalog, each ACID database whose name occurs as a word, in upper or
        lower case, anywhere in the text of a statement for Spark, even in a string."""
        words = set(_WORD.findall(text.lower()))
        for database in self._metastore.databases():
            if database.name in words:
                self.share(database)

    def separate_location(self, name: str, location: str) -> str:
        """Return a directory for a new ACID database that Spark's database of this name does not
        have: ``location`` or, if Spark's database has ``location``, one beside it: the same path
        with ``.acid.db`` in the place of ``.db``."""
        if not self.exists(name) or not is_same(self._location(name), location):
            return location
        return f"{location.removesuffix('.db')}.acid.db"

    def check_drop(self, name: str, *, cascade: bool) -> None:
        """Check that Spark's database can be dropped. Nothing is dropped.

        Raises:
            CatalogError: SCHEMA_NOT_EMPTY: Spark has a table in the database, and there is no
                ``cascade``; or an ACID table of another database is in the directory of Spark's
                database, which would be deleted. The directory that ``share`` gives to a database
                is never refused.
        """
        database = f"{jvm.OWN_CATALOG}.{quote(name)}"
        spark_tables = [
            table.name
            for table in self._spark.catalog.listTables(database)
            if not table.isTemporary
        ]
        if spark_tables and not cascade:
            raise _not_empty_error(
                name,
                f"The database '{name}' is not empty: it has the table '{spark_tables[0]}' "
                "of Spark's.",
            )
        location = self._location(name)
        if is_same(location, self._default_location(name)):
            return
        for table in self._tables_elsewhere(name):
            if may_be_within(table.location, location):
                raise _not_empty_error(
                    name,
                    f"Spark would delete the directory '{location}' with its database "
                    f"'{name}', and the ACID table {table.name} lies there.",
                )

    def drop(self, name: str, *, cascade: bool) -> None:
        """Drop Spark's database of this name, if there is one; with ``cascade`` also its tables."""
        drop_behavior = "CASCADE" if cascade else "RESTRICT"
        self._spark.sql(f"DROP DATABASE IF EXISTS {jvm.OWN_CATALOG}.{quote(name)} {drop_behavior}")

    def _location(self, name: str) -> str:
        return self._spark.catalog.getDatabase(f"{jvm.OWN_CATALOG}.{quote(name)}").locationUri

    def _default_location(self, name: str) -> str:
        """Return the directory that ``share`` gives to Spark's database of this name."""
        return f"{self._spark.conf.get(_WAREHOUSE)}/{name}.spark.db"

    def _tables_elsewhere(self, name: str) -> list[Table]:
        """Return the ACID tables, temporary ones included, of all databases of the metastore except
        the database of this name."""
        names = all_tables(self._metastore) + self._metastore.temporary_tables()
        tables = (
            acid_table(self._metastore.find(table_name))
            for table_name in names
            if table_name.database != name
        )
        return [table for table in tables if table is not None]


def _not_empty_error(name: str, message: str) -> CatalogError:
    return CatalogError(message, condition="SCHEMA_NOT_EMPTY", sqlstate="2BP01", schemaName=name)
