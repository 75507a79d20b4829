"""MERGE evaluates a source that calls functions of the user's once: they may be random.

Spark takes such a function for deterministic, unless the user says otherwise.
"""

from __future__ import annotations

import zipfile

import pytest

from acidsql.storage.spark.repeatable import repeatable_query

# Counts its calls for the whole JVM: tasks load the class anew.
COUNTING = """
public class CountingCalls implements org.apache.spark.sql.api.java.UDF1 {
    public Object call(Object x) {
        synchronized (System.getProperties()) {
            long calls = Long.getLong("acidsql.calls", 0L).longValue();
            System.setProperty("acidsql.calls", Long.toString(calls + 1));
            return Long.valueOf(calls % 12);
        }
    }
}
"""


@pytest.fixture(scope="module")
def java_function(spark, tmp_path_factory):
    """A function in Java that gives another value with each call."""
    jvm, new_array = spark._jvm, spark._sc._gateway.new_array
    compiler = getattr(jvm, "org.codehaus.janino.SimpleCompiler")()  # Spark's own
    compiler.cook(COUNTING)
    jar = tmp_path_factory.mktemp("jar") / "counting.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("CountingCalls.class", bytes(compiler.getBytecodes()["CountingCalls"]))
    spark.sql(f"ADD JAR '{jar}'")
    made = spark._jsparkSession.sharedState().jarClassLoader().loadClass("CountingCalls")
    function = made.getDeclaredConstructor(new_array(jvm.Class, 0)).newInstance(
        new_array(jvm.Object, 0)
    )
    kind = getattr(jvm, "org.apache.spark.sql.types.LongType$").__getattr__("MODULE$")
    spark._jsparkSession.udf().register("of_java", function, kind)
    yield "of_java"
    spark.sql("DROP TEMPORARY FUNCTION of_java")


@pytest.fixture
def of_python(spark, tmp_path):
    """Functions in Python that give another value with each call."""
    counter = str(tmp_path / "calls")

    def next_number(*_):
        import fcntl
        from pathlib import Path

        with Path(counter).open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            number = file.tell()
            file.write("x")
        return number % 12

    from pyspark.sql.functions import pandas_udf

    spark.udf.register("of_python", next_number, "bigint")
    spark.udf.register("of_pandas", pandas_udf(lambda x: x * 0 + next_number(), "bigint"))
    yield ["of_python", "of_pandas"]
    for name in ("of_python", "of_pandas"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


MERGE = (
    "MERGE INTO t USING {source} s ON t.p = s.p AND t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'new' "
    "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'inserted', s.p)"
)


@pytest.fixture
def t(acid):
    """A table in which each row of a source has its partner."""
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p BIGINT)")
    acid.sql("INSERT INTO t SELECT 1, 'old', id FROM range(12)")
    return acid


def counts(acid, source, **frames):
    row = acid.sql(MERGE.format(source=source), **frames).first()
    return row.num_inserted_rows, row.num_updated_rows


def check_found(acid, function):
    """Each row of the source finds its partner."""
    for query in (
        f"SELECT 1 AS id, {function}(1) AS p",
        f"SELECT id, {function}(id) AS p FROM VALUES (1) AS x(id)",
        f"SELECT 1 AS id, (SELECT max({function}(id)) FROM range(1)) AS p",
    ):
        assert counts(acid, f"({query})") == (0, 1), query
    # WITH and a subquery in a clause: the source is no view of its own.
    done = acid.sql(
        f"WITH w AS (SELECT 1 AS id, {function}(1) AS p) "
        "MERGE INTO t USING w AS s ON t.p = s.p AND t.id = s.id "
        "WHEN MATCHED AND EXISTS (SELECT 1 FROM w) THEN UPDATE SET v = 'new' "
        "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'inserted', s.p)"
    ).first()
    assert (done.num_inserted_rows, done.num_updated_rows) == (0, 1)


@pytest.mark.classic
def test_a_source_that_calls_java_is_evaluated_once(t, java_function):
    check_found(t, java_function)


def test_a_source_that_calls_python_is_evaluated_once(t, spark, of_python):
    for function in of_python:
        check_found(t, function)

    def numbers(batches):
        import random

        for batch in batches:
            yield batch.assign(p=random.randrange(12))

    one = spark.sql("SELECT 1 AS id").mapInPandas(numbers, "id INT, p BIGINT")
    assert counts(t, "{one}", one=one) == (0, 1)


@pytest.mark.classic
def test_no_function_of_the_users_gives_the_same_twice(spark, java_function, of_python):
    for function in (java_function, *of_python):
        for query in (
            f"SELECT {function}(1) AS k",
            f"SELECT {function}(id) AS k FROM VALUES (1) AS x(id)",
            f"SELECT id FROM range(3) WHERE id > {function}(id)",
            f"SELECT id FROM range(3) WHERE id > (SELECT max({function}(id)) FROM range(2))",
        ):
            assert repeatable_query(spark.sql(query)) is None, query
    script = "SELECT TRANSFORM(id) USING 'cat' AS (id STRING) FROM range(3)"
    assert repeatable_query(spark.sql(script)) is None
    assert repeatable_query(spark.sql("SELECT id FROM range(3)")) is not None
