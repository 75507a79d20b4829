"""A job for spark-submit. The options --conf say where the tables are.

    PYSPARK_PYTHON=.venv/bin/python .venv/bin/spark-submit \\
        --conf spark.acidsql.warehouse=/srv/warehouse \\
        --conf spark.acidsql.metastore=sqlite:////srv/warehouse/.acidsql/metastore.db \\
        --conf spark.acidsql.hive.txn.timeout=120s \\
        examples/submit.py

Without spark.acidsql.metastore, the metastore is the same SQLite file. On a cluster, the warehouse
must be a directory that all machines see, and acidsql with its dependencies must be installed for
the driver. The session sends its own code to the executors; their Python needs pyarrow and numpy.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

import acidsql


def main() -> None:
    """Count the runs of this job, each in a transaction."""
    spark = SparkSession.builder.appName("acidsql submit").getOrCreate()
    with acidsql.connect(spark) as acid:
        acid.sql("CREATE TABLE IF NOT EXISTS runs (job STRING, runs INT, last TIMESTAMP)")
        acid.sql("""
            MERGE INTO runs r USING (SELECT 'submit.py' AS job, current_timestamp() AS now) s
            ON r.job = s.job
            WHEN MATCHED THEN UPDATE SET runs = r.runs + 1, last = s.now
            WHEN NOT MATCHED THEN INSERT (job, runs, last) VALUES (s.job, 1, s.now)
        """)
        print(acid.last)
        acid.sql("SELECT job, runs FROM runs").show()


if __name__ == "__main__":
    main()
