"""Runs statements about databases: CREATE, ALTER, DROP and USE."""

from __future__ import annotations

from acidsql.acid.paths import directory_name
from acidsql.errors import AnalysisError
from acidsql.metastore.catalog import missing_database_text
from acidsql.metastore.interface import Database
from acidsql.plan.locking import database_lock
from acidsql.plan.standins.names import need_name
from acidsql.sql.parsed import statements as st
from acidsql.statements.context.family import Family, runs
from acidsql.statements.directories.places import normalized_location
from acidsql.storage.files.filesystem import real_location, sparks_location


class DatabaseStatements(Family):
    """Runs the statements about databases for one session."""

    @runs(st.CreateDatabase)
    def _create_database(self, statement: st.CreateDatabase, text: str) -> None:
        """Run CREATE DATABASE in both catalogs, Spark's first: if Spark refuses the name, nothing
        is created. A database of another catalog is left to Spark. With IF NOT EXISTS an existing
        database stays as it is; without, it is an error."""
        if self._spark_databases.is_elsewhere(statement.name):
            self._spark.sql(text)
            return
        name = statement.name.parts[-1].lower()
        need_name(name, statement.name, text)
        existing = self._metastore.get_database(name)
        if existing is not None and statement.if_not_exists:
            self._spark_databases.share(existing)
            return
        default_database = self._metastore.get_database("default")
        assert default_database is not None
        if statement.location is None:
            own_location = f"{real_location(default_database.location)}/{directory_name(name)}.db"
            location = self._spark_databases.separate_location(name, own_location)
        else:
            location = normalized_location(sparks_location(statement.location), may_be_link=True)
        properties = dict(statement.properties)
        database = Database(name, location, statement.comment, properties)
        if existing is None:
            self._spark_databases.share(database)
        self._metastore.create_database(database)

    @runs(st.AlterDatabase)
    def _alter_database(self, statement: st.AlterDatabase, text: str) -> None:
        """Run ALTER DATABASE in the metastore, or leave it to Spark if this is no ACID database. If
        Spark's catalog does not have the ACID database yet, it is created there."""
        if (database := self._spark_databases.find_and_share(statement.name)) is None:
            self._spark.sql(text)
        else:
            self._metastore.alter_database(
                database.name,
                set_properties=dict(statement.properties),
                unset_properties=statement.unset,
            )

    @runs(st.DropDatabase)
    def _drop_database(self, statement: st.DropDatabase, text: str) -> None:
        """Run DROP DATABASE in both catalogs, Spark's last: if the metastore refuses, nothing is
        dropped. An EXCLUSIVE lock on the ACID database is taken; the directories of its tables are
        deleted, and the session forgets its temporary tables there. A database of another catalog
        is left to Spark. Raise CatalogError if there is no such database, without IF EXISTS, or it
        is not empty, without CASCADE."""
        if self._spark_databases.is_elsewhere(statement.name):
            self._spark.sql(text)
            return
        name, cascade = statement.name.parts[-1].lower(), statement.cascade
        is_ours = self._metastore.get_database(name) is not None
        is_sparks = self._spark_databases.exists(name)
        if statement.if_exists and not is_ours and not is_sparks:
            return
        if is_sparks:
            self._spark_databases.check_drop(name, cascade=cascade)
        if is_ours or not is_sparks:
            with self._locked_transaction(text, database_lock(name)) as txn:
                dropped = self._metastore.drop_database(name, cascade=cascade, txn_id=txn.id)
                self._temporary.forget_database(name)
                self._delete_directories(*dropped)
                txn.end_quietly()
        if is_sparks:
            self._spark_databases.drop(name, cascade=cascade)

    @runs(st.Use)
    def _use(self, statement: st.Use, text: str) -> None:
        """Set Spark's current database, which is also the session's; create an ACID database in
        Spark's catalog if it is missing there. Raise AnalysisError if there is no such database or
        catalog."""
        name = statement.name.parts[-1].lower()
        if not self._spark_databases.is_elsewhere(statement.name):
            database = self._metastore.get_database(name)
            if database is not None:
                self._spark_databases.share(database)
            elif not self._spark_databases.exists(name) and not self._spark_databases.is_catalog(
                name
            ):
                raise AnalysisError(
                    missing_database_text(self._metastore, name),
                    text, statement.name.span.start, statement.name.span.end,
                    condition="SCHEMA_NOT_FOUND", sqlstate="42704",
                )  # fmt: skip
        self._spark.sql(text)
