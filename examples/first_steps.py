"""The shortest way in: a Spark session, a connection, four statements.

python examples/first_steps.py [WAREHOUSE]
"""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import SparkSession

import acidsql


def main(warehouse: str) -> list[tuple[int, str, int]]:
    """Make a table, change it, and read it."""
    spark = SparkSession.builder.master("local[2]").appName("first steps").getOrCreate()
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TABLE stock (id INT, name STRING, pieces INT)")
        acid.sql("INSERT INTO stock VALUES (1, 'nut', 10), (2, 'bolt', 20), (3, 'cog', 0)")
        acid.sql("UPDATE stock SET pieces = pieces - :sold WHERE name = :name",
                 {"sold": 3, "name": "nut"})  # fmt: skip
        print(acid.last)  # the receipt of the UPDATE
        acid.sql("DELETE FROM stock WHERE pieces = 0")
        acid.sql("""
            MERGE INTO stock t USING (VALUES (2, 'bolt', 5), (4, 'gear', 7)) s (id, name, pieces)
            ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET pieces = t.pieces + s.pieces
            WHEN NOT MATCHED THEN INSERT *
        """).show()  # one row: how many rows were inserted, updated, deleted
        stock = acid.table("stock").orderBy("id")  # a plain, lazy DataFrame
        stock.show()
        return [tuple(row) for row in stock.collect()]


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="acidsql-"))
