"""``df.writeTo``: rows into a table by name, and new tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Table
from acidsql.api.dataframes.merge import SOURCE
from acidsql.api.dataframes.text import expression_sql
from acidsql.api.extension.extension import full_name
from acidsql.api.extension.new_table import NewTable
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.sql.text.given_names import table_parts
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.columns.column_sql import column_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameWriterV2

    from acidsql.api.extension.extension import Extension

    _Writer = DataFrameWriterV2
else:
    _Writer = object


class WriterV2Calls(_Writer):
    """The calls of a ``DataFrameWriterV2`` that acidsql takes over. Those that set something note
    it, and set it for Spark, too."""

    _extension: Extension
    _frame: DataFrame
    _table: str
    _provider: str | None = None
    _option: str | None = None
    _partitions: tuple[Any, ...] = ()
    _clusters: tuple[str, ...] = ()

    @property
    def _properties(self) -> dict[str, str]:
        """The properties of a new table that were set."""
        properties: dict[str, str] = self.__dict__.setdefault("_acidsql_properties", {})
        return properties

    def using(self, provider: str) -> Any:
        """Note the format of a new table, and set it for Spark."""
        self._provider = provider
        return super().using(provider)

    def option(self, key: str, value: Any) -> Any:
        """Note an option, and set it for Spark."""
        self._option = self._option if value is None else key
        return super().option(key, value)

    def options(self, **options: Any) -> Any:
        """Set options, as ``option`` does."""
        for key, value in options.items():
            self._option = self._option if value is None else key
        return super().options(**options)

    def tableProperty(self, property: str, value: str) -> Any:  # noqa: N802 - PySpark's name
        """Note a property of a new table, and set it for Spark."""
        self._properties[property] = value
        return super().tableProperty(property, value)

    def partitionedBy(self, col: Any, *cols: Any) -> Any:  # noqa: N802 - PySpark's name
        """Note the partition columns of a new table, and set them for Spark."""
        self._partitions = (col, *cols)
        return super().partitionedBy(col, *cols)

    def clusterBy(self, col: str, *cols: str) -> Any:  # noqa: N802 - PySpark's name
        """Note the clustering columns of a new table, and set them for Spark."""
        self._clusters = (col, *cols)
        return super().clusterBy(col, *cols)

    def create(self) -> None:
        """Make a table of the rows. Raise CatalogError if there is one."""
        table = self._find_lasting()
        if table is None and not self._makes_acid_table():
            return super().create()
        return self._create(table, replaces=False)

    def replace(self) -> None:
        """Replace a table by one of the rows, in one commit. Raise AnalysisError without one."""
        table = self._find_lasting()
        if table is not None:
            return self._create(table, replaces=True)
        if self._makes_acid_table():
            name = quoted_path(table_parts(self._table))
            raise AnalysisError(
                f"There is no table {name} to replace. createOrReplace() makes it.",
                condition="TABLE_OR_VIEW_NOT_FOUND", sqlstate="42P01", relationName=name,
            )  # fmt: skip
        return super().replace()

    def createOrReplace(self) -> None:  # noqa: N802 - PySpark's name
        """Make a table of the rows, in the place of the table of this name, if there is one."""
        table = self._find_lasting()
        if table is None and not self._makes_acid_table():
            return super().createOrReplace()
        return self._create(table, replaces=table is not None)

    def append(self) -> None:
        """Insert the rows, by name."""
        if self._find() is None:
            return super().append()
        return self._insert("INTO", "")

    def overwrite(self, condition: Column | str) -> None:
        """Replace the rows that satisfy a condition, in one statement (REPLACE WHERE). Raise
        ConstraintError if one of the new rows does not satisfy it."""
        if self._find() is None:
            return super().overwrite(condition)
        column = F.col(condition) if isinstance(condition, str) else condition
        with column_sql(self._extension.spark) as columns:
            return self._insert("INTO", f" REPLACE WHERE {expression_sql(column, columns)}")

    def overwritePartitions(self) -> None:  # noqa: N802 - PySpark's name
        """Replace the partitions that get rows, or all rows of a table without partitions."""
        if self._find() is None:
            return super().overwritePartitions()
        return self._insert("OVERWRITE", "")

    def _find(self) -> Table | None:
        """Return the ACID table of the name; None if the call is Spark's."""
        return self._extension.find(self._table)

    def _find_lasting(self) -> Table | None:
        """Return the ACID table that has the name of a new table, also if a temporary view hides
        it; None if the call is Spark's."""
        return self._extension.find_lasting(self._table)

    def _makes_acid_table(self) -> bool:
        """Whether a new table is to be an ACID table."""
        return self._extension.makes_acid_table(self._table, self._provider)

    def _insert(self, verb: str, replacing: str) -> None:
        """Insert the rows by name. ``verb``: INTO or OVERWRITE. ``replacing``: the clause REPLACE,
        or ""."""
        self._refuse_options()
        name = quoted_path(table_parts(self._table))
        self._extension.session.sql(
            f"INSERT {verb} {name} BY NAME{replacing} SELECT * FROM {{{SOURCE}}}",
            **{SOURCE: self._frame},
        )

    def _create(self, table: Table | None, *, replaces: bool) -> None:
        """Create the table with the rows, or replace it. ``table``: what has the name now.

        Raises:
            AnalysisError: ``using`` names another format than the ACID table's.
            UnsupportedError: A partition is no column, but an expression of one.
        """
        self._refuse_options()
        if self._provider is not None and not self._makes_acid_table():
            raise AnalysisError(
                f"{self._table} is an ACID table, and using('{self._provider}') names another "
                "format. Leave it out, or drop the table first.",
                condition="_LEGACY_ERROR_TEMP_1159",
            )
        name = self._table if table is None else full_name(table)
        NewTable(
            name, self._partition_names(), properties=self._properties,
            cluster_columns=self._clusters,
        ).create(self._extension, self._frame, replaces=replaces)  # fmt: skip

    def _partition_names(self) -> tuple[str, ...]:
        """Return the names of the partition columns. Raise UnsupportedError for an expression, as
        ``F.partitioning.days("t")``."""
        with column_sql(self._extension.spark) as columns:
            names = [
                column if isinstance(column, str) else expression_sql(column, columns)
                for column in self._partitions
            ]
        for name in names:
            if "(" in name:
                raise UnsupportedError(
                    f"partitionedBy({name}) is not supported: name a column of the rows.",
                    condition="UNSUPPORTED_FEATURE.PARTITION_TRANSFORM",
                )
        return tuple(names)

    def _refuse_options(self) -> None:
        """Raise UnsupportedError if an option was set, which would be lost."""
        if self._option is not None:
            raise UnsupportedError(
                f"An ACID table has no option '{self._option}' of df.writeTo. Properties of a "
                "table go into tableProperty(…).",
                condition="UNSUPPORTED_FEATURE.WRITER_OPTION",
            )
