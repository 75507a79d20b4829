"""Programs of Spark's own calls, for a plain table and for an ACID table.

Each program gets a session, the name of a table that does not exist yet, and a format for new
tables. What it returns must be the same for both kinds of tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

Program = Callable[[Any, str, str], Any]
PROGRAMS: list[Program] = []
PARTITIONS = "spark.sql.sources.partitionOverwriteMode"
ROWS = [(1, "a", 10), (2, "b", 20), (3, None, 30)]
COLUMNS = "id INT, name STRING, amount INT"


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


def condition_of(call: Callable[[], Any]) -> str | None:
    """The condition of the error that a call raises; None if it raises none."""
    try:
        call()
    except Exception as error:
        return str(error.getCondition())  # type: ignore[attr-defined]
    return None


def rows_of(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def frame_of(spark: Any, rows: Any = ROWS, columns: str = COLUMNS) -> Any:
    return spark.createDataFrame(rows, columns)


def made(spark: Any, table: str, fmt: str, *partitions: str) -> None:
    writer = frame_of(spark).write.format(fmt)
    (writer.partitionBy(*partitions) if partitions else writer).saveAsTable(table)


@program
def a_table_is_made_and_read_by_all_names(spark, table, fmt):
    made(spark, table, fmt)
    frames = [spark.sql(f"SELECT * FROM {table}"), spark.table(table), spark.read.table(table)]
    return [rows_of(frame) for frame in frames], [frame.columns for frame in frames]


@program
def columns_may_have_the_tables_name(spark, table, fmt):
    made(spark, table, fmt)
    last = table.rpartition(".")[2]
    return rows_of(spark.table(table).select(f"{last}.id", F.col(f"{last}.name")))


@program
def a_second_table_of_the_name_is_an_error(spark, table, fmt):
    made(spark, table, fmt)
    again = frame_of(spark, [(9, "z", 90)])
    errors = [
        condition_of(lambda: again.write.format(fmt).saveAsTable(table)),
        condition_of(lambda: again.write.saveAsTable(table, format=fmt, mode="error")),
    ]
    return errors, rows_of(spark.table(table))


@program
def ignore_leaves_the_table_as_it_is(spark, table, fmt):
    made(spark, table, fmt)
    frame_of(spark, [(9, "z", 90)]).write.format(fmt).mode("ignore").saveAsTable(table)
    return rows_of(spark.table(table))


@program
def ignore_makes_a_table_that_is_missing(spark, table, fmt):
    frame_of(spark).write.format(fmt).mode("ignore").saveAsTable(table)
    return rows_of(spark.table(table))


@program
def append_goes_by_name(spark, table, fmt):
    made(spark, table, fmt)
    swapped = frame_of(spark, [(90, 9, "z")], "amount INT, id INT, name STRING")
    swapped.write.format(fmt).mode("append").saveAsTable(table)
    frame_of(spark, [(8, "y", 80)], "ID INT, Name STRING, AMOUNT INT").write.saveAsTable(
        table, format=fmt, mode="append"
    )
    return rows_of(spark.table(table).select("id", "name", "amount"))


@program
def append_makes_a_table_that_is_missing(spark, table, fmt):
    frame_of(spark).write.format(fmt).mode("append").saveAsTable(table)
    return rows_of(spark.table(table))


@program
def append_of_other_columns_is_an_error(spark, table, fmt):
    made(spark, table, fmt)
    fewer = frame_of(spark, [(1, "x")], "id INT, name STRING")
    more = frame_of(spark, [(1, "x", 1, 1)], f"{COLUMNS}, more INT")
    failed = [
        condition_of(lambda: frame.write.format(fmt).mode("append").saveAsTable(table)) is not None
        for frame in (fewer, more)
    ]
    return failed, rows_of(spark.table(table))


@program
def append_with_other_partitions_is_an_error(spark, table, fmt):
    made(spark, table, fmt, "amount")
    writer = frame_of(spark).write.format(fmt).mode("append").partitionBy("name")
    failed = condition_of(lambda: writer.saveAsTable(table)) is not None
    return failed, rows_of(spark.table(table))


@program
def overwrite_makes_another_table_of_other_columns(spark, table, fmt):
    made(spark, table, fmt)
    other = frame_of(spark, [("p", 1.5)], "word STRING, size DOUBLE")
    other.write.format(fmt).mode("overwrite").saveAsTable(table)
    return rows_of(spark.table(table)), spark.table(table).columns


@program
def partition_columns_become_the_last(spark, table, fmt):
    made(spark, table, fmt, "name", "id")
    columns = [
        (column.name, column.dataType, column.isPartition)
        for column in spark.catalog.listColumns(table)
    ]
    return columns, rows_of(spark.table(table))


@program
def buckets_are_the_writers(spark, table, fmt):
    frame_of(spark).write.format(fmt).bucketBy(3, "id").saveAsTable(table)
    columns = [(column.name, column.isBucket) for column in spark.catalog.listColumns(table)]
    return columns, rows_of(spark.table(table))


@program
def insert_into_goes_by_position(spark, table, fmt):
    made(spark, table, fmt)
    frame_of(spark, [(4, "d", 40)], "x INT, y STRING, z INT").write.insertInto(table)
    frame_of(spark, [(5, "e", 50)]).write.mode("append").insertInto(table)
    return rows_of(spark.table(table))


@program
def insert_into_may_replace_all_rows(spark, table, fmt):
    made(spark, table, fmt)
    frame_of(spark, [(4, "d", 40)]).write.insertInto(table, overwrite=True)
    once = rows_of(spark.table(table))
    frame_of(spark, [(5, "e", 50)]).write.mode("overwrite").insertInto(table)
    twice = rows_of(spark.table(table))
    frame_of(spark, [(6, "f", 60)]).write.mode("overwrite").insertInto(table, overwrite=False)
    return once, twice, rows_of(spark.table(table))


@program
def insert_into_with_dynamic_partitions(spark, table, fmt):
    made(spark, table, fmt, "amount")
    spark.conf.set(PARTITIONS, "dynamic")  # the rule for ACID tables, as for Hive's
    try:
        frame_of(spark, [(7, "g", 10)]).write.insertInto(table, overwrite=True)
    finally:
        spark.conf.unset(PARTITIONS)
    return rows_of(spark.table(table))


@program
def insert_into_with_static_partitions(spark, table, fmt):
    made(spark, table, fmt, "amount")
    new = frame_of(spark, [(7, "g", 10)])
    new.write.option("partitionOverwriteMode", "static").insertInto(table, overwrite=True)
    return rows_of(spark.table(table))


@program
def insert_into_refuses_a_layout(spark, table, fmt):
    made(spark, table, fmt)
    frame = frame_of(spark)
    return [
        condition_of(lambda: frame.write.partitionBy("id").insertInto(table)) is not None,
        condition_of(lambda: frame.write.bucketBy(2, "id").insertInto(table)) is not None,
        rows_of(spark.table(table)),
    ]


@program
def insert_into_with_another_number_of_columns(spark, table, fmt):
    made(spark, table, fmt)
    return (
        condition_of(lambda: frame_of(spark, [(1,)], "id INT").write.insertInto(table)),
        rows_of(spark.table(table)),
    )


@program
def what_is_missing_is_an_error(spark, table, fmt):
    frame = frame_of(spark)
    return [
        condition_of(lambda: spark.table(table).collect()),
        condition_of(lambda: spark.read.table(table).collect()),
        condition_of(lambda: spark.sql(f"SELECT * FROM {table}").collect()),
        condition_of(lambda: frame.write.insertInto(table)),
        condition_of(lambda: frame.writeTo(table).append()),
        condition_of(lambda: spark.catalog.getTable(table)),
        condition_of(lambda: spark.catalog.listColumns(table)),
        spark.catalog.tableExists(table),
    ]


@program
def parameters_and_values_in_braces(spark, table, fmt):
    made(spark, table, fmt)
    more = frame_of(spark, [(1, "one"), (2, "two")], "id INT, word STRING")
    return [
        rows_of(spark.sql(f"SELECT * FROM {table} WHERE id = :x", args={"x": 2})),
        rows_of(spark.sql(f"SELECT * FROM {table} WHERE id = ? OR name = ?", [2, "a"])),
        rows_of(spark.sql(f"SELECT * FROM {table} WHERE id > {{least}}", least=1)),
        rows_of(spark.sql(f"SELECT * FROM {table} WHERE name = {{name}}", name="a")),
        rows_of(
            spark.sql(
                f"SELECT t.id, m.word FROM {table} t JOIN {{more}} m ON t.id = m.id",
                more=more,
            )
        ),
        rows_of(
            spark.sql(
                f"SELECT {{column}} FROM {table} WHERE id = :x", args={"x": 1}, column=F.col("name")
            )
        ),
    ]


@program
def wrong_parameters_are_an_error(spark, table, fmt):
    made(spark, table, fmt)
    return [
        condition_of(lambda: spark.sql(f"SELECT nothing FROM {table}").collect()),
        condition_of(lambda: spark.sql(f"SELECT * FRM {table}").collect()),
        condition_of(lambda: spark.sql(f"SELECT * FROM {table} WHERE id = :x").collect())
        is not None,
    ]


@program
def a_temporary_view_hides_a_table(spark, table, fmt):
    made(spark, table, fmt)
    last = table.rpartition(".")[2]
    frame_of(spark, [(0, "view", 0)]).createOrReplaceTempView(last)
    shown = [
        rows_of(spark.sql(f"SELECT * FROM {last}")),
        rows_of(spark.table(last)),
        rows_of(spark.read.table(last)),
        spark.catalog.getTable(last).isTemporary,
    ]
    spark.catalog.dropTempView(last)
    return shown


@program
def a_temporary_view_hides_no_table_from_save_as_table(spark, table, fmt):
    made(spark, table, fmt)
    last = table.rpartition(".")[2]
    frame_of(spark, [(0, "view", 0)]).createOrReplaceTempView(last)
    new = frame_of(spark, [(4, "d", 40)])
    new.write.format(fmt).mode("append").saveAsTable(last)
    appended = rows_of(spark.table(table))
    failed = condition_of(lambda: new.write.format(fmt).saveAsTable(last))
    new.write.format(fmt).mode("overwrite").saveAsTable(last)
    spark.catalog.dropTempView(last)
    return appended, failed, rows_of(spark.table(table))


@program
def a_name_may_begin_with_sparks_catalog(spark, table, fmt):
    full = f"spark_catalog.{table}"
    frame_of(spark).write.format(fmt).saveAsTable(full)
    new = frame_of(spark, [(4, "d", 40)])
    new.write.insertInto(full)
    new.write.format(fmt).mode("append").saveAsTable(full)
    spark.sql(f"INSERT INTO `spark_catalog`.{table} VALUES (5, 'e', 50)")
    return [
        rows_of(spark.table(full)),
        rows_of(spark.read.table(full)),
        rows_of(spark.sql(f"SELECT id FROM {full} AS x WHERE x.id > 3")),
        rows_of(spark.table(table)),
        spark.catalog.tableExists(full),
        spark.catalog.getTable(full).name == spark.catalog.getTable(table).name,
        len(spark.catalog.listColumns(full)),
        table.split(".")[1]
        in [one.name for one in spark.catalog.listTables("spark_catalog.default")],
        condition_of(lambda: new.write.format(fmt).saveAsTable(full)),
        condition_of(lambda: spark.table(f"nowhere.{table}")) is not None,
    ]


@program
def columns_may_have_one_name_twice_by_position(spark, table, fmt):
    made(spark, table, fmt)
    spark.sql("SELECT 9 AS a, 'x' AS a, 1 AS `b.c`").write.insertInto(table)
    return rows_of(spark.table(table))


@program
def a_temporary_view_over_the_rows(spark, table, fmt):
    made(spark, table, fmt)
    spark.table(table).where("id > 1").createOrReplaceTempView("some_of_them")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW all_of_them AS SELECT * FROM {table}")
    shown = [
        rows_of(spark.sql("SELECT * FROM some_of_them")),
        rows_of(spark.sql("SELECT count(*) FROM all_of_them")),
        rows_of(spark.table("some_of_them")),
    ]
    spark.catalog.dropTempView("some_of_them")
    spark.catalog.dropTempView("all_of_them")
    return shown


@program
def the_catalog_knows_the_table(spark, table, fmt):
    made(spark, table, fmt)
    catalog, (database, last) = spark.catalog, table.split(".")
    catalog.refreshTable(table)
    entry = catalog.getTable(table)
    return [
        catalog.tableExists(table),
        catalog.tableExists(f"{table}x"),
        last in [one.name for one in catalog.listTables(database)],
        [one.name for one in catalog.listTables(database, f"{last}|nothing")],
        [one.name for one in catalog.listTables(database, "nothing*")],
        (entry.name, entry.catalog, entry.namespace, entry.tableType, entry.isTemporary),
        [(column.name, column.dataType, column.nullable) for column in catalog.listColumns(table)],
        catalog.databaseExists(database),
        catalog.databaseExists("no_such_database"),
    ]


@program
def statements_of_two_tables(spark, table, fmt):
    made(spark, table, fmt)
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd', 40)")
    spark.sql(f"INSERT INTO {table} SELECT id + 10, name, amount FROM {table} WHERE id < 3")
    spark.sql(f"CREATE TABLE {table}_copy USING {fmt} AS SELECT id FROM {table}")
    copied = rows_of(spark.table(f"{table}_copy"))
    spark.sql(f"DROP TABLE {table}_copy")
    return copied, rows_of(spark.table(table)), spark.catalog.tableExists(f"{table}_copy")


@program
def show_tables_and_describe(spark, table, fmt):
    made(spark, table, fmt)
    database, last = table.split(".")
    shown = spark.sql(f"SHOW TABLES IN {database}")
    described = spark.sql(f"DESCRIBE {table}")
    return [
        shown.columns,
        [tuple(row) for row in shown.collect() if row.tableName == last],
        described.columns,
        rows_of(described.select("col_name", "data_type")),
        rows_of(spark.sql(f"SHOW COLUMNS IN {table}")),
    ]


@program
def pandas_on_spark(spark, table, fmt):
    import pyspark.pandas as ps

    made(spark, table, fmt)
    frame = ps.read_table(table, index_col="id")
    frame.to_table(f"{table}_out", format=fmt, mode="overwrite", index_col="id")
    more = ps.DataFrame({"id": [9], "name": ["z"], "amount": [90]}).astype({"id": "int32"})
    more["amount"] = more["amount"].astype("int32")
    more.to_table(f"{table}_out", format=fmt, mode="append")
    written = rows_of(spark.table(f"{table}_out").select("id", "name", "amount"))
    spark.sql(f"DROP TABLE {table}_out")
    return written
