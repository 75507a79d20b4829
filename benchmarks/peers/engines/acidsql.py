"""acidsql: Hive ACID ORC tables, embedded metastore, compaction only when asked."""

from .base import Engine


class AcidSql(Engine):
    name = "acidsql"

    def start(self):
        import acidsql

        spark = super().start()
        self.acid = acidsql.connect(spark, warehouse=str(self.work / "warehouse"), compactor="off")
        return spark

    def sql(self, text):
        return self.acid.sql(text)

    def ddl(self, table):
        columns = {n: kind for n, kind in table.columns.items() if n != table.partition}
        text = f"CREATE TABLE {table.name} ({', '.join(f'{n} {k}' for n, k in columns.items())})"
        if table.partition:
            text += f" PARTITIONED BY ({table.partition} {table.columns[table.partition]})"
        if table.buckets:
            text += f" CLUSTERED BY (id) INTO {table.buckets} BUCKETS"
        return f"{text} STORED AS ORC TBLPROPERTIES ('transactional'='true')"

    def insert_select(self, table, view):
        names = ", ".join(table.names)
        self.sql(f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {view}")

    load = insert_select

    def optimize(self, table):
        self.acid.compact(table.name, wait=True).collect()

    def append(self, table, frame):
        frame.createOrReplaceTempView("bench_append")
        self.insert_select(table, "bench_append")
