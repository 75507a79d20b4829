"""The physical floor: plain files written and read by Spark, no row-level changes."""

from .base import Engine


class PlainParquet(Engine):
    name = "plain_parquet"
    format = "parquet"
    can = frozenset({"insert"})

    def ddl(self, table):
        by = f"PARTITIONED BY ({table.partition})" if table.partition else ""
        return (
            f"CREATE TABLE {table.name} ({self.columns_sql(table)}) USING {self.format} {by} "
            f"LOCATION '{self.path(table.name)}'"
        )

    def insert_select(self, table, view):
        super().insert_select(table, view)
        if table.partition:
            self.sql(f"MSCK REPAIR TABLE {table.name}")

    load = insert_select

    def append(self, table, frame):
        frame.write.insertInto(table.name)


class PlainOrc(PlainParquet):
    name = "plain_orc"
    format = "orc"
