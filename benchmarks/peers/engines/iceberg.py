"""Apache Iceberg: copy-on-write, position deletes (v2), deletion vectors (v3)."""

from .base import Engine


class IcebergCow(Engine):
    name = "iceberg_cow"
    jars = ("iceberg/*.jar",)
    catalog = "ice.bench."
    format_version = 2
    mode = "copy-on-write"

    def spark_conf(self):
        return {
            **super().spark_conf(),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(self.work / "warehouse"),
        }

    def refresh(self, name):
        self.spark.catalog.refreshTable(self.table(name))

    def path(self, name):
        return self.work / "warehouse" / "bench" / name

    def ddl(self, table):
        self.sql("CREATE NAMESPACE IF NOT EXISTS ice.bench")
        parts = [table.partition] if table.partition else []
        parts += [f"bucket({table.buckets}, id)"] if table.buckets else []
        by = f"PARTITIONED BY ({', '.join(parts)})" if parts else ""
        modes = ", ".join(
            f"'write.{op}.mode' = '{self.mode}'" for op in ("delete", "update", "merge")
        )
        return (
            f"CREATE TABLE {self.table(table.name)} ({self.columns_sql(table)}) USING iceberg {by} "
            f"TBLPROPERTIES ('format-version' = '{self.format_version}', {modes})"
        )

    def live_bytes(self, table):
        return self.sql(
            f"SELECT sum(file_size_in_bytes) FROM {self.table(table.name)}.files"
        ).first()[0]

    def optimize(self, table):
        self.sql(
            f"CALL ice.system.rewrite_data_files(table => 'bench.{table.name}', "
            f"options => map('rewrite-all', 'true'))"
        ).collect()


class IcebergMor(IcebergCow):
    name = "iceberg_mor_v2"
    mode = "merge-on-read"


class IcebergDv(IcebergMor):
    name = "iceberg_mor_v3"
    format_version = 3
