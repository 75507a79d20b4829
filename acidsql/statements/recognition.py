"""Recognizes the texts, among all that ``spark.sql`` gets, that concern acidsql.

``acid.sql`` takes every text: what is Spark's it hands on. In ``spark.sql`` the rule is the
reverse, because most texts there concern no ACID table: they must mean what they mean without
acidsql, and cost no message to Spark. The readers of texts are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.table import Table
from acidsql.errors import SettingError, SqlError
from acidsql.plan.standins.foreign import made_name
from acidsql.settings import setting_name
from acidsql.sql.parsed import statements as st
from acidsql.sql.parsed.database_statements import CreateDatabase
from acidsql.sql.parser import LiteralRules, parse
from acidsql.sql.queries.references import mentioned_tables
from acidsql.sql.text.tokens import SqlText
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import has_double_quoted_names
from acidsql.statements.show.shows import ShowStatements
from acidsql.storage.spark.session.jvm import substitute_variables

_Databases = CreateDatabase | st.AlterDatabase | st.DescribeDatabase | st.Use


@dataclass(frozen=True, slots=True)
class Recognized:
    """A text that concerns acidsql. ``statement`` is None if the text has a fault."""

    statement: st.Statement | None


class Recognition:
    """Recognizes the texts and names of one session that concern acidsql."""

    def __init__(self, context: Context, shows: ShowStatements) -> None:
        self._context, self._names, self._shows = context, context.names, shows

    def find(self, parts: tuple[str, ...]) -> Table | None:
        """Return what acidsql reads by a name in the place of Spark: an ACID table, a view or a
        table of the metastore that Spark does not have; None for every other name.

        A name of two parts that the metastore does not have costs no message to Spark, and a name
        of one part costs one, for the current database.

        Raises:
            UnsupportedError: The metastore has a table of this name that nobody here can read.
        """
        return self._names.find_readable(parts) if self._names.may_be_ours(parts) else None

    def find_hidden(self, parts: tuple[str, ...]) -> Table | None:
        """Return the ACID table or view of the metastore that a new table of Spark's would have the
        name of; a temporary view does not hide it. None for every other name, at the costs of
        ``find``."""
        return self._names.find_hidden(parts) if self._names.may_be_ours(parts) else None

    def recognize(self, text: SqlText, plain: LiteralRules | None) -> Recognized | None:
        """Return the statement of a text if it concerns acidsql; None if Spark alone is to run it.

        A statement concerns acidsql

        * if it names an ACID table, or a view of ACID tables, anywhere; a temporary view does not
          hide the name that a new or renamed table is to have;
        * if only acidsql has such a statement, as BEGIN or SHOW COMPACTIONS;
        * if it is a CREATE TABLE without a format of Spark's that says USING acidsql,
          TRANSACTIONAL or TEMPORARY, or if ``acidsql.default.tables`` is on;
        * if it lists databases, or the tables of a database where acidsql has some, or analyses
          them;
        * if it is about a database that Spark does not have, or drops one that acidsql has.

        A text that the parser refuses is Spark's, which says what is wrong, unless the text names
        an ACID table before the fault, or a setting that only acidsql could have. ``plain``: as for
        ``parse``.
        """
        text = SqlText(substitute_variables(self._context.spark, text))
        double_quoted = has_double_quoted_names(self._context.spark, text)
        tables_by_name: dict[tuple[str, ...], Table | None] = {}

        def find(parts: tuple[str, ...]) -> Table | None:
            if parts not in tables_by_name:
                tables_by_name[parts] = self.find(parts)
            return tables_by_name[parts]

        try:
            statement = parse(
                text,
                is_ours=lambda parts: _is_acid_table_or_view(find(parts)),
                setting_name=setting_name,
                double_quoted_identifiers=double_quoted,
                plain=plain,
            )
            if not isinstance(statement, st.SparkStatement | st.CreateTable):
                return Recognized(statement) if self._is_own(statement) else None
            names = mentioned_tables(text, double_quoted_identifiers=double_quoted)
            made = made_name(text, double_quoted=double_quoted)
        except SettingError:
            return Recognized(None)
        except SqlError as error:
            is_refused = error.condition == "UNSUPPORTED_FEATURE.FOREIGN_TABLE"
            return Recognized(None) if is_refused or any(tables_by_name.values()) else None
        is_own = (
            (isinstance(statement, st.CreateTable) and self._makes_acid_table(statement))
            or (made is not None and self.find_hidden(made.parts) is not None)
            or any(find(name.parts) for name in names)
        )
        return Recognized(statement) if is_own else None

    def _is_own(self, statement: st.Statement) -> bool:
        """Whether a statement that acidsql's grammar has concerns acidsql. ALTER, DROP and the like
        of a table are parsed only if the table is acidsql's."""
        match statement:
            case st.Explain():
                inner = statement.statement
                return not isinstance(inner, st.CreateTable) or self._makes_acid_table(inner)
            case st.ConvertTable():
                parts = statement.name.parts
                return not statement.properties or self._names.find_foreign(parts) is not None
            case st.DescribeHistory():  # Delta Lake has this statement, too
                return self.find(statement.name.parts) is not None
            case st.ShowTables() | st.ShowViews() | st.AnalyzeTables():
                database = statement.database and statement.database.parts[-1].lower()
                return bool(self._shows.acid_names(database or self._names.current_database))
        if isinstance(statement, st.DropDatabase):
            return self._context.databases.is_acid_database(statement.name)
        if isinstance(statement, _Databases):
            return self._is_only_acid_database(statement.name)
        return True

    def _is_only_acid_database(self, name: st.Name) -> bool:
        """Whether acidsql has a database that Spark does not have."""
        databases = self._context.databases
        return databases.is_acid_database(name) and not databases.exists(name.parts[-1].lower())

    def _makes_acid_table(self, statement: st.CreateTable) -> bool:
        """Whether CREATE TABLE asks for an ACID table."""
        return (
            statement.names_format
            or statement.temporary
            or statement.like is not None
            or ("transactional", "true")
            in {(key.lower(), value.lower()) for key, value in statement.properties}
            or self._context.txns.settings.default_tables
        )


def _is_acid_table_or_view(table: Table | None) -> bool:
    """Whether this is an ACID table or a view, and no plain table of Hive's."""
    return table is not None and (table.is_transactional or table.view is not None)
