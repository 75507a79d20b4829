"""The program of test_timestamps. It runs in a process whose JVM has another time zone.

Arguments: a directory to read, a warehouse to write to, the JVM's zone, the session's zone. It
prints one JSON object: the rows that were read, and the rows that were written and read again.
"""

from __future__ import annotations

import json
import sys

CLOCKS = [
    "0001-01-01 00:00:00",
    "1500-02-28 12:00:00.5",
    "1582-10-04 23:59:59",
    "1582-10-15 00:00:00",
    "1883-11-18 12:01:30.000001",  # New York set its clocks back by 3:58 min
    "1900-01-01 00:00:00",
    "1948-05-02 00:30:00",  # Tokyo, daylight saving begins: no such time
    "1969-12-31 23:59:58.5",
    "1970-01-01 00:00:00",
    "2020-02-29 12:34:56.789",
    "2021-03-14 02:30:00.123456",  # New York, daylight saving begins: no such time
    "2021-11-07 01:30:00",  # New York, it ends: twice
    "2262-04-12 00:00:00",  # nanoseconds end
    "9999-12-31 23:59:59.999999",
]


def shown(rows):
    """``id``, ``ts`` and a timestamp in a struct, as text."""
    columns = ("id", "CAST(ts AS STRING) AS ts", "CAST(s.ts AS STRING) AS inner_ts")
    found = rows.selectExpr(*columns).collect()
    return sorted([row.id, row.ts, row.inner_ts] for row in found)


def written(acid):
    """The clock times, written by a Spark job, as literals, and from instants of the session's
    zone."""
    acid.sql("CREATE TABLE t (id INT, ts TIMESTAMP, s STRUCT<ts: TIMESTAMP>)")
    values = ", ".join(f"({number}, '{clock}')" for number, clock in enumerate(CLOCKS))
    acid.spark.sql(f"SELECT * FROM VALUES {values} AS v(id, text)").createOrReplaceTempView("v")
    ntz = "CAST(text AS TIMESTAMP_NTZ)"
    acid.sql(f"INSERT INTO t SELECT id, {ntz}, named_struct('ts', {ntz}) FROM v")
    acid.spark.catalog.dropTempView("v")
    literals = ", ".join(
        f"({100 + number}, TIMESTAMP_NTZ '{clock}', named_struct('ts', TIMESTAMP_NTZ '{clock}'))"
        for number, clock in enumerate(CLOCKS)
    )
    acid.sql(f"INSERT INTO t VALUES {literals}")
    acid.sql(
        "INSERT INTO t VALUES (200, TIMESTAMP '2021-06-01 12:00:00', "
        "named_struct('ts', TIMESTAMP '2021-01-01 12:00:00'))"
    )
    acid.sql("UPDATE t SET ts = ts WHERE id % 2 = 1")
    return shown(acid.sql("SELECT * FROM t"))


def main():
    directory, warehouse, jvm_zone, session_zone = sys.argv[1:]
    from small_spark import small_spark

    import acidsql

    spark = small_spark(warehouse, java_options=f"-Duser.timezone={jvm_zone}")
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    found = {"read": shown(acidsql.read(spark, directory))}
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        found["written"] = written(acid)
    print("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main()
