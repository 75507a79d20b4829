"""What is taken over, whose calls it concerns, and that it is given back."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
from pyspark.errors import AnalysisException

import acidsql
from acidsql.api.extension import doors
from acidsql.errors import SettingError, SqlSyntaxError
from acidsql.storage.spark.session.jvm import is_remote

NAMES = ("sql", "table", "read", "catalog")


@pytest.fixture
def table(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    return acid


def places(spark):
    return {(owner, name): vars(owner)[name] for owner, name, _ in doors._places(spark)}


def knows_t(spark):
    return spark.catalog.tableExists("t")


@contextmanager
def extended(acid, **options):
    with acidsql.connect(
        acid.spark, warehouse=acid.warehouse, metastore=acid.metastore.url, compactor="off",
        **options,
    ) as session:  # fmt: skip
        yield session


def test_close_gives_everything_back(table, spark):
    before = places(spark)
    with extended(table, extend=True):
        assert knows_t(spark)
        assert all(place is not before[key] for key, place in places(spark).items())
    assert places(spark) == before
    assert not knows_t(spark)


def test_extend_can_be_switched_on_and_off(table, spark):
    before = places(spark)
    for _ in range(2):
        table.extend()
        table.extend()
        catalog = spark.catalog
        assert knows_t(spark)
        table.extend(False)
        table.extend(False)
        assert not catalog.tableExists("t")
        assert not knows_t(spark)
    assert places(spark) == before
    with extended(table) as closed:
        closed.close()
        with pytest.raises(SettingError, match="is closed"):
            closed.extend()


def test_without_extend_nothing_is_touched(table, spark):
    before = places(spark)
    with extended(table), extended(table, extend=False):
        assert places(spark) == before
        assert not knows_t(spark)


def test_without_extend_an_error_of_sparks_tells_who_has_the_table(table, spark):
    for call in (
        lambda: spark.sql("SELECT * FROM t").collect(),
        lambda: spark.table("default.t").collect(),
        lambda: spark.range(1).write.insertInto("t"),
    ):
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
            call()
        (note,) = caught.value.__notes__
        assert "acidsql.connect(spark, extend=True)" in note
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        spark.sql("SELECT * FROM nobody_has_it").collect()
    assert not hasattr(caught.value, "__notes__")


def test_the_conf_extends_every_session(table, spark):
    spark.conf.set("spark.acidsql.extend", "true")
    try:
        with extended(table):
            assert knows_t(spark)
        with extended(table, extend=False):
            assert not knows_t(spark)
        spark.conf.set("spark.acidsql.extend", "perhaps")
        with pytest.raises(SettingError, match="neither true nor false"):
            acidsql.connect(spark, warehouse=table.warehouse)
    finally:
        spark.conf.unset("spark.acidsql.extend")


def test_the_newest_of_two_sessions_answers(table, spark, tmp_path):
    with extended(table, extend=True):
        other = acidsql.connect(spark, warehouse=tmp_path / "other", compactor="off", extend=True)
        assert not knows_t(spark)
        spark.sql("CREATE TABLE only_there USING acidsql AS SELECT 1 AS one")
        assert other.metastore.tables("default") == ["only_there"]
        other.close()
        assert knows_t(spark)
        assert not spark.catalog.tableExists("only_there")
    assert not knows_t(spark)


def test_the_older_session_may_end_first(table, spark):
    before = places(spark)
    with extended(table, extend=True) as older, extended(table, extend=True):
        older.close()
        assert knows_t(spark)
    assert places(spark) == before


def test_another_spark_session_knows_nothing(table, spark):
    other = spark.newSession()
    with extended(table, extend=True):
        assert knows_t(spark)
        assert not knows_t(other)
        frame = other.range(3)
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            frame.write.insertInto("t")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            other.sql("SELECT * FROM t").collect()
    assert table.table("t").count() == 2


@pytest.mark.classic
def test_other_objects_of_the_same_spark_session_know_the_table(table, spark):
    from pyspark.sql import SparkSession

    twin = SparkSession(spark.sparkContext, spark._jsparkSession)
    with extended(table, extend=True):
        assert twin.table("t").count() == 2
        twin.range(1).selectExpr("5 AS id").write.insertInto("t")
        assert twin.range(1).sparkSession.catalog.tableExists("t")
    assert not twin.catalog.tableExists("t")


@pytest.mark.classic
def test_a_subclass_keeps_its_own_methods(table, spark):
    from pyspark.sql import SparkSession

    texts = []

    class NotebookSession(SparkSession):
        def sql(self, sqlQuery, args=None, **kwargs):  # noqa: N803
            texts.append(sqlQuery)
            return super().sql(sqlQuery, args, **kwargs)

    own_sql = NotebookSession.sql
    notebook = NotebookSession(spark.sparkContext, spark._jsparkSession)
    with acidsql.connect(
        notebook, warehouse=table.warehouse, metastore=table.metastore.url, compactor="off",
        extend=True,
    ):  # fmt: skip
        assert notebook.sql("SELECT * FROM t").count() == 2
        texts.clear()
        assert notebook.sql("SELECT 1 AS one").first().one == 1
        assert texts == ["SELECT 1 AS one"]
        assert notebook.table("t").count() == 2
    assert NotebookSession.sql is own_sql


def test_what_another_library_has_put_there_before_stays(table, spark):
    owner, calls = type(spark), []
    own_table = owner.table

    def traced(self, name):
        calls.append(name)
        return own_table(self, name)

    owner.table = traced
    try:
        with extended(table, extend=True):
            spark.range(1).createOrReplaceTempView("v")
            assert spark.table("v").count() == 1
            assert spark.table("t").count() == 2
        assert owner.table is traced
        assert "v" in calls
        assert "t" not in calls
    finally:
        owner.table = own_table


def test_what_another_library_puts_there_later_stays_and_works(table, spark):
    owner, calls = type(spark), []
    own_table = owner.table
    try:
        with extended(table, extend=True):
            door = owner.table

            def traced(self, name):
                calls.append(name)
                return door(self, name)

            owner.table = traced
            assert spark.table("t").count() == 2
        assert owner.table is traced
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.table("t").collect()
        with extended(table, extend=True):
            assert spark.table("t").count() == 2
        assert owner.table is traced
        users_calls = [name for name in calls if not name.startswith("__acidsql_")]
        assert users_calls == ["t", "t"]  # the second session has a new door before it
    finally:
        owner.table = own_table
        doors._doors.pop((owner, "table"), None)


def test_acidsqls_own_calls_pass_through_what_another_library_puts_there(table, spark):
    owner = type(spark)
    # Other tests may have left some.
    sparks_databases = sorted(database.name for database in spark.catalog.listDatabases())
    with extended(table, extend=True) as session:
        doors_there = {name: vars(owner)[name] for name in NAMES}

        def traced(door):
            if callable(door):
                return lambda self, *args, **options: door(self, *args, **options)
            return property(lambda self: door.__get__(self, type(self)))

        for name, door in doors_there.items():
            setattr(owner, name, traced(door))
        try:
            databases = [tuple(row) for row in session.sql("SHOW DATABASES").collect()]
            of_spark = [(name, "spark_catalog") for name in sparks_databases]
            assert databases == sorted([("default", "acidsql"), *of_spark])
            assert [tuple(row) for row in session.sql("SHOW TABLES").collect()] == [
                ("default", "t", False, "acidsql")
            ]
            session.sql("CREATE VIEW v AS SELECT * FROM t")
            assert session.sql("SELECT * FROM v").count() == 2
            database_names = [database.name for database in spark.catalog.listDatabases()]
            assert database_names == sparks_databases  # "default" is one name of both
            assert spark.sql("SELECT * FROM v").count() == spark.table("v").count() == 2
            assert spark.catalog.tableExists("t")
        finally:
            for name, door in doors_there.items():
                setattr(owner, name, door)


def test_what_a_door_gave_out_is_sparks_after_close(table, spark):
    with extended(table, extend=True):
        reader, catalog, writer = spark.read, spark.catalog, spark.range(1).write
        assert reader.table("t").count() == 2
    assert not catalog.tableExists("t")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        reader.table("t").collect()
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        writer.insertInto("t")
    assert table.table("t").count() == 2


def test_the_objects_are_pysparks(table, spark):
    kinds = [type(spark.read), type(spark.catalog), type(spark.range(1).write)]
    with extended(table, extend=True):
        given = [spark.read, spark.catalog, spark.range(1).write]
        assert [isinstance(one, kind) for one, kind in zip(given, kinds, strict=True)] == [True] * 3
        assert spark.catalog is spark.catalog
        assert spark.sql.__doc__ == type(spark).sql.__wrapped__.__doc__


def test_threads_share_the_session(table, spark):
    with extended(table, extend=True):
        counts = []

        def insert(number):
            spark.range(1).selectExpr(f"{number} AS id").write.insertInto("t")
            counts.append(spark.sql("SELECT * FROM t").count())

        threads = [threading.Thread(target=insert, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(counts)[-1] == spark.table("t").count() == 6


def test_acid_sql_is_as_it_was(table, spark):
    with extended(table, extend=True) as session:
        assert session.sql("SELECT * FROM t").count() == 2
        columns = session.sql("SHOW TABLES").columns
        assert columns == ["namespace", "tableName", "isTemporary", "catalog"]
        assert session.table("t").count() == 2
        assert session.sql("CREATE TABLE u (a INT)").columns == []
        assert spark.sql("SHOW TABLES").columns == ["namespace", "tableName", "isTemporary"]


def test_statements_that_only_acidsql_has(table, spark):
    with extended(table, extend=True):
        assert "tableName" not in spark.sql("SHOW TRANSACTIONS").columns
        assert spark.sql("DESCRIBE HISTORY t").count() >= 1
        spark.sql("SET acidsql.conflict.detection=row")
        spark.sql("RESET acidsql.conflict.detection")
        with pytest.raises(SettingError, match="no setting"):
            spark.sql("SET acidsql.nothing=1")
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            spark.sql("SELEC 1")
        with pytest.raises(SqlSyntaxError, match="SETT"):
            spark.sql("UPDATE t SETT id = 1")


def test_statements_that_other_formats_have_too_are_theirs_for_their_tables(table, spark):
    spark.sql("CREATE TABLE others (id INT) USING parquet")
    try:
        with extended(table, extend=True):
            # For Spark alone this describes a column "others".
            with pytest.raises(AnalysisException, match="HISTORY"):
                spark.sql("DESCRIBE HISTORY others")
            spark.sql("CREATE DATABASE only_sparks")
            spark.sql("CREATE TABLE only_sparks.u USING parquet AS SELECT 1 AS one")
            spark.sql("ANALYZE TABLES IN only_sparks COMPUTE STATISTICS")
            described = spark.sql("DESCRIBE EXTENDED only_sparks.u").collect()
            assert any("1 rows" in str(row.data_type) for row in described)
    finally:
        spark.sql("DROP TABLE others")
        spark.sql("DROP DATABASE IF EXISTS only_sparks CASCADE")


def test_values_may_have_any_name(table, spark):
    more = spark.range(1)
    names = ("text", "args_", "retries", "extension", "call", "spark", "owner", "txn_app_id")
    with extended(table, extend=True):
        for name in names:
            text = f"SELECT * FROM t WHERE id > {{{name}}}"
            assert spark.sql(text, **{name: 1}).count() == 1
            text = f"SELECT * FROM t JOIN {{{name}}} ON true"
            assert spark.sql(text, **{name: more}).count() == 2


def test_a_setting_of_hives_reaches_spark_too(table, spark):
    with extended(table, extend=True) as session:
        spark.sql("SET hive.exec.max.dynamic.partitions=77")
        try:
            assert spark.conf.get("hive.exec.max.dynamic.partitions") == "77"
            assert session._runner.settings.max_dynamic_partitions == 77
        finally:
            spark.conf.unset("hive.exec.max.dynamic.partitions")


def test_a_database_that_only_acidsql_has(acid, spark):
    acid.metastore.create_database(
        type(acid.metastore.get_database("default"))("hidden", f"{acid.warehouse}/hidden.db")
    )
    acid.extend()
    assert "hidden" in [row.namespace for row in spark.sql("SHOW DATABASES").collect()]
    assert spark.catalog.databaseExists("hidden")
    assert spark.catalog.getDatabase("hidden").name == "hidden"
    spark.catalog.setCurrentDatabase("hidden")
    try:
        spark.sql("CREATE TABLE here USING acidsql AS SELECT 1 AS one")
        assert [entry.name for entry in spark.catalog.listTables()] == ["here"]
        assert acid.metastore.tables("hidden") == ["here"]
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE hidden CASCADE")
    assert not spark.catalog.databaseExists("hidden")


def test_a_script_is_sparks(table, spark):
    with extended(table, extend=True):
        assert spark.sql("BEGIN SELECT 1 AS one; END").first().one == 1


class Messages:
    """Counts what goes to the JVM."""

    def __init__(self, spark):
        self.client, self.count = spark.sparkContext._gateway._gateway_client, 0

    def __call__(self, call):
        own, before = type(self.client).send_command, self.count

        def counted(client, *args, **options):
            self.count += 1
            return own(client, *args, **options)

        type(self.client).send_command = counted
        try:
            call()
        finally:
            type(self.client).send_command = own
        return self.count - before


@pytest.mark.classic
@pytest.mark.parametrize(
    ("bound", "call"),
    [
        (0, lambda spark, path: spark.sql("SELECT 1")),
        (0, lambda spark, path: spark.sql("SELECT :x AS one", args={"x": 1})),
        (0, lambda spark, path: spark.range(3).write.mode("overwrite").parquet(path)),
        (0, lambda spark, path: spark.range(3).write.format("noop").mode("overwrite").save()),
        (0, lambda spark, path: spark.read.option("a", "b").schema("id BIGINT")),
        (0, lambda spark, path: spark.sql("SELECT * FROM plain_db.plain")),
        (0, lambda spark, path: spark.table("plain_db.plain")),
        (0, lambda spark, path: spark.range(1).write.insertInto("plain_db.plain")),
        (1, lambda spark, path: spark.sql("SELECT * FROM range(3)")),
        (2, lambda spark, path: spark.table("plain")),
        (2, lambda spark, path: spark.sql("SELECT * FROM plain JOIN plain USING (id)")),
        (2, lambda spark, path: spark.range(1).write.insertInto("plain")),
    ],
)  # fmt: skip
def test_what_concerns_no_acid_table_costs_no_message(table, spark, tmp_path, bound, call):
    import gc

    spark.sql("CREATE DATABASE IF NOT EXISTS plain_db")
    for name in ("plain_db.plain", "plain"):
        spark.range(2).write.mode("overwrite").saveAsTable(name)
    messages, path = Messages(spark), str(tmp_path / "files")
    try:
        gc.disable()  # a deleted object of Java's is a message, too
        call(spark, path)
        alone = min(messages(lambda: call(spark, path)) for _ in range(3))
        with extended(table, extend=True):
            call(spark, path)
            within = min(messages(lambda: call(spark, path)) for _ in range(3))
        assert within - alone <= bound
    finally:
        gc.enable()
        spark.sql("DROP DATABASE plain_db CASCADE")
        spark.sql("DROP TABLE plain")


def test_the_table_of_the_package_is_the_truth():
    """The names in the package's docstring are those that have doors."""
    from acidsql.api import extension

    words = set(extension.__doc__.replace("``", " ").replace(",", " ").split())
    assert {*doors._SESSION_DOORS, *doors._FRAME_DOORS} <= words


def test_this_session_is_classic_or_remote(spark):
    assert doors._frame_class(spark).__module__.startswith(
        "pyspark.sql.connect" if is_remote(spark) else "pyspark.sql.classic"
    )
