"""The statement that makes an ACID table of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from acidsql.api.dataframes.merge import SOURCE
from acidsql.api.dataframes.text import name_list
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.sql.text.given_names import table_parts
from acidsql.statements.show.described import tblproperties_clause
from acidsql.storage.columns import quoted_path

if TYPE_CHECKING:
    from acidsql.api.extension.extension import Extension


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that a writer of Spark's describes.

    Attributes:
        name: ``table`` or ``database.table``.
        partition_columns: The partition columns; they become the last ones.
        bucket_columns: The bucketing columns, with ``buckets``.
        buckets: How many buckets; None: the table is not bucketed.
        sort_columns: The order of rows within a bucket.
        properties: The table's properties.
        cluster_columns: Those of Spark's ``clusterBy``, which ACID tables do not have.
    """

    name: str
    partition_columns: tuple[str, ...] = ()
    bucket_columns: tuple[str, ...] = ()
    buckets: int | None = None
    sort_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_columns: tuple[str, ...] = ()

    def create(self, extension: Extension, frame: DataFrame, *, replaces: bool) -> None:
        """Create the table with a DataFrame's columns and rows in one commit; ``replaces``: in the
        place of the table of this name.

        Raises:
            AnalysisError: The writer has an order without buckets.
            UnsupportedError: The writer has ``clusterBy``.
            CatalogError: There is such a table, also one of Spark's.
        """
        if self.cluster_columns:
            raise no_cluster_by_error()
        if self.sort_columns and self.buckets is None:
            raise AnalysisError("sortBy() needs bucketBy().", condition="SORT_BY_WITHOUT_BUCKETING")
        parts = table_parts(self.name)
        extension.share_database(parts)
        verb = "CREATE OR REPLACE TABLE" if replaces else "CREATE TABLE"
        text = f"{verb} {quoted_path(parts)}{self._clauses()} AS SELECT * FROM {{{SOURCE}}}"
        extension.session.sql(text, **{SOURCE: frame})

    def _clauses(self) -> str:
        """Return the clauses of CREATE TABLE, each with a blank before it."""
        text = ""
        if self.partition_columns:
            text += f" PARTITIONED BY ({name_list(self.partition_columns, 'partitionBy(…)')})"
        if self.buckets is not None:
            text += f" CLUSTERED BY ({name_list(self.bucket_columns, 'bucketBy(…)')})"
            if self.sort_columns:
                text += f" SORTED BY ({name_list(self.sort_columns, 'sortBy(…)')})"
            text += f" INTO {self.buckets} BUCKETS"
        if self.properties:
            text += f" {tblproperties_clause(self.properties)}"
        return text


def no_cluster_by_error() -> UnsupportedError:
    """Return the error for a writer that has ``clusterBy``."""
    return UnsupportedError(
        "clusterBy() is not supported for an ACID table: use partitionBy() or bucketBy().",
        condition="UNSUPPORTED_FEATURE.CLUSTER_BY",
    )
