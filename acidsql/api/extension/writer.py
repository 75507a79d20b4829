"""``df.write``: rows into tables by name.

The rules are Spark's: ``insertInto`` goes by position, ``saveAsTable`` appends by name. A name that
an ACID table has stays an ACID table, whatever the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acidsql.acid.table import Table
from acidsql.api.dataframes.merge import SOURCE
from acidsql.api.extension.extension import FORMAT, full_name
from acidsql.api.extension.new_table import NewTable, no_cluster_by_error
from acidsql.api.extension.writer_options import WriterOptions
from acidsql.errors import AnalysisError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

    from acidsql.api.extension.extension import Extension

    _Writer = DataFrameWriter
else:
    _Writer = object


class WriterCalls(_Writer):
    """The calls of a ``DataFrameWriter`` that acidsql takes over. Those that set something note it,
    and set it for Spark, too."""

    _extension: Extension
    _frame: DataFrame
    _mode: str = "error"
    _source: str | None = None
    _partition_columns: tuple[str, ...] = ()
    _cluster_columns: tuple[str, ...] = ()
    _sort_columns: tuple[str, ...] = ()
    _buckets: int | None = None
    _bucket_columns: tuple[str, ...] = ()

    @property
    def _noted_options(self) -> dict[str, str]:
        """The options that were set, by their names in lower case."""
        options: dict[str, str] = self.__dict__.setdefault("_acidsql_options", {})
        return options

    def mode(self, saveMode: str | None) -> Any:  # noqa: N803 - PySpark's name
        """Note what to do with rows that are there, and set it for Spark."""
        if saveMode is not None:
            self._mode = saveMode.lower()
        return super().mode(saveMode)

    def format(self, source: str) -> Any:
        """Note the format, and set it for Spark."""
        self._source = source
        return super().format(source)

    def option(self, key: str, value: Any) -> Any:
        """Note an option, and set it for Spark. None sets nothing, as in PySpark."""
        if value is not None:
            self._noted_options[key.lower()] = str(value)
        return super().option(key, value)

    def options(self, **options: Any) -> Any:
        """Set options, as ``option`` does."""
        for key, value in options.items():
            if value is not None:
                self._noted_options[key.lower()] = str(value)
        return super().options(**options)

    def partitionBy(self, *cols: Any) -> Any:  # noqa: N802 - PySpark's name
        """Note the partition columns of a new table, and set them for Spark."""
        self._partition_columns = _names(cols)
        return super().partitionBy(*cols)

    def bucketBy(self, numBuckets: int, col: Any, *cols: Any) -> Any:  # noqa: N802, N803
        """Note the buckets of a new table, and set them for Spark."""
        self._buckets, self._bucket_columns = numBuckets, _names((col, *cols))
        return super().bucketBy(numBuckets, col, *cols)

    def sortBy(self, col: Any, *cols: Any) -> Any:  # noqa: N802 - PySpark's name
        """Note the order of rows in the buckets of a new table, and set it for Spark."""
        self._sort_columns = _names((col, *cols))
        return super().sortBy(col, *cols)

    def clusterBy(self, *cols: Any) -> Any:  # noqa: N802 - PySpark's name
        """Note the clustering columns of a new table, and set them for Spark."""
        self._cluster_columns = _names(cols)
        return super().clusterBy(*cols)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802, N803
        """Insert the rows by position. With ``overwrite``, or the mode ``overwrite``, replace the
        rows of an ACID table, or of those of its partitions that get rows, as Spark does with
        Hive's tables.

        Raises:
            AnalysisError: The columns are not as many as the table's, or the writer has partitions
                or buckets, which the table decides.
        """
        table = self._extension.find(tableName)
        if table is None:
            return super().insertInto(tableName, overwrite)
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        if self._partition_columns:
            raise AnalysisError(
                "insertInto() excludes partitionBy(): the table has its partition columns.",
                condition="_LEGACY_ERROR_TEMP_1309",
            )
        if self._bucket_columns or self._sort_columns:
            raise AnalysisError(
                "insertInto() excludes bucketBy() and sortBy(): the table has its buckets.",
                condition="_LEGACY_ERROR_TEMP_1312",
            )
        options = self._read_options()
        if options.merges_schema or options.overwrites_schema:
            raise UnsupportedError(
                "insertInto() goes by position and keeps the table's columns, so it takes neither "
                "mergeSchema nor overwriteSchema. Use saveAsTable(), which goes by name.",
                condition="UNSUPPORTED_FEATURE.WRITER_OPTION",
            )
        self._insert(table, options, by_name=False)
        return None

    def saveAsTable(  # noqa: N802 - PySpark's name
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - PySpark's name
        **options: Any,
    ) -> None:
        """Make a table of the rows, or write them into the ACID table of this name: ``append`` by
        name, ``overwrite`` by a new table with the rows' columns in the same commit, ``ignore`` not
        at all. Options of ``overwrite`` may say that the table stays, and rows are replaced.

        Raises:
            CatalogError: TABLE_OR_VIEW_ALREADY_EXISTS: there is the table, and no mode is given.
            AnalysisError: The rows, or the partitions and buckets of the writer, do not fit.
            SettingError: An option has a wrong value, or needs the mode ``overwrite``.
        """
        table = self._extension.find_lasting(name)
        source = self._source if format is None else format
        if table is None and not self._extension.makes_acid_table(name, source):
            return super().saveAsTable(name, format, mode, partitionBy, **options)
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if source is not None and source.lower() != FORMAT:
            raise AnalysisError(
                f"{name} is an ACID table, and format('{source}') names another format. Leave it "
                f"out, or drop the table first: spark.sql('DROP TABLE {name}').",
                condition="_LEGACY_ERROR_TEMP_1159",
            )
        if table is None:
            self._read_options()
            return self._create(name, replaces=False)
        if self._mode == "ignore":
            return None
        if self._mode not in ("append", "overwrite"):
            self._extension.require_free_name(
                name, "mode('append') adds rows, mode('overwrite') replaces the table."
            )
        noted = self._read_options()
        if self._mode == "overwrite" and not noted.keeps_table:
            return self._create(full_name(table), replaces=True)
        self._require_layout_of(table)
        self._require_columns_of(table, noted)
        return self._insert(table, noted, by_name=True)

    def _create(self, name: str, *, replaces: bool) -> None:
        """Create a table with the rows' columns and the rows, or replace the table of the name."""
        NewTable(
            name, self._partition_columns, self._bucket_columns, self._buckets,
            self._sort_columns, {}, self._cluster_columns,
        ).create(self._extension, self._frame, replaces=replaces)  # fmt: skip

    def _insert(self, table: Table, options: WriterOptions, *, by_name: bool) -> None:
        """Insert the rows into an ACID table, or replace rows by them, in one statement."""
        evolution = " WITH SCHEMA EVOLUTION" if options.merges_schema else ""
        verb, replacing = "INTO", ""
        if self._mode == "overwrite":
            condition = options.replaced_rows(
                is_partitioned=bool(table.partition_columns), by_name=by_name
            )
            verb = "OVERWRITE" if condition is None else "INTO"
            replacing = "" if condition is None else f" REPLACE WHERE {condition}"
        order = " BY NAME" if by_name else ""
        self._extension.session.sql(
            f"INSERT{evolution} {verb} {full_name(table)}{order}{replacing} "
            f"SELECT * FROM {{{SOURCE}}}",
            **{SOURCE: self._frame},
        )

    def _read_options(self) -> WriterOptions:
        """Return the options that were set. Raise UnsupportedError or SettingError for those that
        would be lost."""
        return WriterOptions.of(self._noted_options, is_overwrite=self._mode == "overwrite")

    def _require_columns_of(self, table: Table, options: WriterOptions) -> None:
        """Raise AnalysisError if ``saveAsTable`` writes rows that do not have all columns of the
        table, and no others, unless the table may get new columns."""
        if options.merges_schema:
            return
        table_names = [column.name.lower() for column in table.all_columns]
        row_names = [name.lower() for name in self._frame.columns]
        if sorted(table_names) != sorted(row_names):
            raise AnalysisError(
                f"The rows have the columns {', '.join(row_names)}, and {table.name} has "
                f"{', '.join(table_names)}. option('mergeSchema', True) adds new columns to the "
                "table, and leaves the others NULL.",
                condition="_LEGACY_ERROR_TEMP_1161",
            )

    def _require_layout_of(self, table: Table) -> None:
        """Raise AnalysisError if the writer names other partitions or buckets than a table has, and
        UnsupportedError if it has ``clusterBy``."""
        partitions = tuple(column.name.lower() for column in table.partition_columns)
        named = tuple(name.lower() for name in self._partition_columns)
        if named and named != partitions:
            raise AnalysisError(
                f"{table.name} is partitioned by ({', '.join(partitions)}), and partitionBy() "
                f"names ({', '.join(named)}).",
                condition="_LEGACY_ERROR_TEMP_1163",
            )
        buckets = (table.num_buckets, tuple(name.lower() for name in table.bucket_columns))
        named_buckets = (self._buckets, tuple(name.lower() for name in self._bucket_columns))
        if self._buckets is not None and named_buckets != buckets:
            raise AnalysisError(
                f"{table.name} has other buckets than bucketBy() names.",
                condition="_LEGACY_ERROR_TEMP_1164",
            )
        order = tuple(column.name.lower() for column in table.sort_columns)
        if self._sort_columns and tuple(name.lower() for name in self._sort_columns) != order:
            raise AnalysisError(
                f"{table.name} has another order in its buckets than sortBy() names.",
                condition="_LEGACY_ERROR_TEMP_1164",
            )
        if self._cluster_columns:
            raise no_cluster_by_error()


def _names(columns: Sequence[Any]) -> tuple[str, ...]:
    """Return the names that a call got, one by one or as one list."""
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        return tuple(columns[0])
    return tuple(columns)
