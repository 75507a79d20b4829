"""Delta Lake: copy-on-write and deletion vectors (merge-on-read)."""

from typing import ClassVar

from .base import Engine


class DeltaCow(Engine):
    name = "delta_cow"
    jars = ("delta/*.jar",)
    deletion_vectors = "false"
    conf: ClassVar[dict] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The default of 50 log-replay partitions suits large clusters only.
        "spark.databricks.delta.snapshotPartitions": "4",
    }

    def ddl(self, table):
        parts = f"PARTITIONED BY ({table.partition})" if table.partition else ""
        return (
            f"CREATE TABLE {table.name} ({self.columns_sql(table)}) USING delta {parts} "
            f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{self.deletion_vectors}') "
            f"LOCATION '{self.path(table.name)}'"
        )

    def delete_keys(self, table, view):
        # DELETE takes no subquery (DELTA_UNSUPPORTED_SUBQUERY).
        self.sql(
            f"MERGE INTO {table.name} t USING {view} s ON t.id = s.id WHEN MATCHED THEN DELETE"
        )

    def live_bytes(self, table):
        return self.sql(f"DESCRIBE DETAIL {table.name}").first()["sizeInBytes"]

    def optimize(self, table):
        self.sql(f"OPTIMIZE {table.name}").collect()


class DeltaDv(DeltaCow):
    name = "delta_dv"
    deletion_vectors = "true"

    def optimize(self, table):
        super().optimize(table)
        self.sql(f"REORG TABLE {table.name} APPLY (PURGE)").collect()
