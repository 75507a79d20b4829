"""The methods beside SQL text: update, delete, merge_into, insert_into, create_table, script."""

from __future__ import annotations

import datetime
import random
import re

import pytest
from column_cases import (
    an_element_without_a_name_is_no_field_of_a_struct,
    columns_become_the_sql_that_spark_reads_as_the_same,
    literals_stay_the_same_values_of_the_same_types,
    variables_of_lambda_functions_hide_no_column,
)
from over_hive import needs
from pyspark.errors import AnalysisException
from pyspark.sql import Row, Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql import types as T  # noqa: N812

import acidsql
from acidsql.errors import (
    AnalysisError,
    ArgumentTypeError,
    CatalogError,
    MergeCardinalityError,
    SettingError,
    SqlError,
    SqlSyntaxError,
    UnsupportedError,
)
from acidsql.storage.spark.columns.column_sql import column_sql

pytestmark = pytest.mark.spark


def rows(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def table(acid, name="t"):
    return rows(acid.sql(f"SELECT * FROM {name}"))


def test_a_column_becomes_the_sql_that_spark_reads_as_the_same(spark):
    columns_become_the_sql_that_spark_reads_as_the_same(spark)


def test_variables_of_lambda_functions_hide_no_column(spark):
    variables_of_lambda_functions_hide_no_column(spark)


def test_an_element_without_a_name_is_no_field_of_a_struct(spark):
    an_element_without_a_name_is_no_field_of_a_struct(spark)


def test_each_part_of_a_column_is_written_once(spark):
    column = F.udf(lambda x: x, "int")(F.col("i"))
    for _ in range(5):
        column = F.abs(column)
    with column_sql(spark) as write:
        assert write(column).count("abs`(") == 5
        assert spark.sql("SHOW USER FUNCTIONS LIKE 'acidsql_function_*'").count() == 1
    assert spark.sql("SHOW USER FUNCTIONS LIKE 'acidsql_function_*'").count() == 0


def test_a_column_keeps_its_meaning_in_every_session(spark, conf):
    """Of an empty list, which SQL does not have; of TIMESTAMP, which is one of two types."""
    frame = spark.createDataFrame([(1,), (None,)], "i INT")
    moment = T.StructType([T.StructField("TIMESTAMP", T.TimestampType())])
    plus = F.udf(lambda x, y=1: x + y, "int")
    for ansi in ("true", "false"):
        conf("spark.sql.ansi.enabled", ansi)
        conf("spark.sql.timestampType", "TIMESTAMP_NTZ")
        columns = [
            F.col("i").isin([]).alias("c"),
            (~F.col("i").isin([])).alias("c"),
            F.struct(F.lit(None).cast(T.TimestampType())).cast(moment).alias("c"),
            plus(F.lit(1), y=F.lit(5)).alias("c"),
        ]
        for column in columns:
            with column_sql(spark) as write:
                written = frame.selectExpr(f"{write(column)} AS c")
                expected = frame.select(column)
                assert written.dtypes == expected.dtypes
                assert written.collect() == expected.collect()


def test_a_text_stays_the_same_text(spark):
    """Whatever it has that is special in SQL or in a variable."""
    text = "it's \"\\ \n {x} ${x} :y ? -- \u00e9"
    with column_sql(spark) as write:
        sql = write(F.lit(text))
    assert spark.sql(f"SELECT {sql}").first()[0] == text


@pytest.mark.parametrize("clock", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_a_literal_stays_the_same_value_of_the_same_type(spark, conf, clock):
    conf("spark.sql.timestampType", clock)
    literals_stay_the_same_values_of_the_same_types(spark)


def test_an_instant_stays_the_same_instant(spark):
    """Also one whose wall clock comes twice, when clocks are set back."""
    moment = datetime.datetime(2024, 10, 27, 1, 30, tzinfo=datetime.UTC)
    with column_sql(spark) as write:
        sql = write(F.lit(moment))
    assert spark.sql(f"SELECT unix_micros({sql})").first()[0] == moment.timestamp() * 1_000_000


def test_a_column_that_no_sql_has_is_refused(spark):
    window = Window.partitionBy("s")
    for column in (F.sum("i").over(window), F.col("a").withField("f", F.lit(1)), F.col("*")):
        with column_sql(spark) as write, pytest.raises(UnsupportedError, match="SQL text instead"):
            write(column)


def test_the_builders_and_the_dictionary_agree(acid, spark):
    """Random statements by methods, against a dictionary."""
    acid.create_table("t", "id INT, v STRING, n INT")
    model, chance = {}, random.Random(5)
    plus = F.udf(lambda n: n + 100, "int")
    for turn in range(12):
        third = chance.randrange(3)
        news = [(key, "m", turn) for key in chance.sample(range(12), 5)]
        frame = spark.createDataFrame(news, "id INT, v STRING, n INT")
        match turn % 4:
            case 0:
                acid.insert_into(
                    "t", frame.where(~F.col("id").isin(*model, -1)).select("n", "v", "id")
                )
                model.update({key: (v, n) for key, v, n in news if key not in model})
            case 1:
                is_it = F.col("id") % 3 == third if turn < 6 else f"id % 3 = {third}"
                value = plus("n") if turn < 6 else F.col("n") + 100
                acid.update("t", {"v": F.concat("v", F.lit("u")), "n": value}, is_it)
                model.update(
                    {k: (v + "u", n + 100) for k, (v, n) in model.items() if k % 3 == third}
                )
            case 2:
                acid.delete("t", "id % 3 = :third AND id > 5", {"third": third})
                model = {k: row for k, row in model.items() if not (k % 3 == third and k > 5)}
            case 3:
                merge = acid.merge_into(frame.alias("s"), "t", F.col("t.id") == frame["id"])
                merge.whenMatched(F.col("s.id") > 8).delete()
                merge.whenNotMatched().insertAll()
                merge.whenMatched("t.id > 4").update({"n": F.col("s.n"), "v": "'x'"})
                merge.whenMatched().updateAll()
                merge.whenNotMatchedBySource(F.col("t.id") == 0).update({"v": F.lit("z")}).merge()
                model = _merged(model, news)
        assert table(acid) == sorted(((k, v, n) for k, (v, n) in model.items()), key=repr), turn
    assert not [one for one in spark.catalog.listFunctions() if one.name.startswith("acidsql")]


def _merged(model, news):
    after = dict(model)
    for key, v, n in news:
        if key not in model:
            after[key] = (v, n)
        elif key > 8:
            del after[key]
        else:
            after[key] = ("x", n) if key > 4 else (v, n)
    if 0 in model and 0 not in {key for key, _, _ in news}:
        after[0] = ("z", model[0][1])
    return after


def test_insert_into_partitions_by_name_and_by_position(acid, spark):
    acid.create_table("t", "a INT, b INT, p STRING", partitioned_by=["p"])
    frame = spark.createDataFrame([(1, 2)], "b INT, a INT")
    acid.insert_into("t", frame, partition={"p": "it's"})
    acid.insert_into("t", frame, partition={"p": "x"}, by_name=False)
    assert table(acid) == [(1, 2, "x"), (2, 1, "it's")]
    acid.insert_into("t", frame, partition={"p": "x"}, overwrite=True)
    assert table(acid) == [(2, 1, "it's"), (2, 1, "x")]


def test_create_table_from_rows_and_from_a_schema(acid, spark):
    frame = spark.createDataFrame([(1, "a", 2), (2, "b", 3)], "p INT, v STRING, k INT")
    acid.create_table(
        "t", frame, partitioned_by=["p"], clustered_by=["k"], buckets=2, properties={"a'b": "c\\"}
    )
    assert table(acid) == [("a", 2, 1), ("b", 3, 2)]
    assert acid.sql("SHOW TBLPROPERTIES t ('a\\'b')").first().value == "c\\"
    acid.create_table("t", frame, if_not_exists=True)
    schema = T.StructType(
        [
            T.StructField("Id", T.IntegerType(), nullable=False, metadata={"comment": "the 'key'"}),
            T.StructField("at", T.TimestampType()),
            T.StructField("s", T.StructType([T.StructField("d", T.DecimalType(5, 2))])),
        ]
    )
    acid.create_table("u", schema)
    text = acid.sql("SHOW CREATE TABLE u").first()[0].lower()
    for part in ("`id` int not null", "timestamp", "struct<d: decimal(5,2)>", "the \\'key\\'"):
        assert part.replace(" ", "") in text.replace(" ", ""), text
    with pytest.raises(SettingError, match="belong together"):
        acid.create_table("w", "a INT", clustered_by=["a"])
    with pytest.raises(SettingError, match="names 'q'"):
        acid.create_table("w", "a INT", partitioned_by=["q"])


def test_what_is_wrong_is_said_before_anything_is_done(acid, spark):
    acid.create_table("t", "id INT, v STRING")
    frame = spark.createDataFrame([(1, "a"), (1, "b")], "id INT, v STRING")
    acid.insert_into("t", frame.limit(1))
    other = spark.range(1)
    with pytest.raises(AnalysisError, match="belongs to a DataFrame that the statement does not"):
        acid.delete("t", other["id"] == 1)
    with pytest.raises(TypeError, match=r"set\['id'\] should be str or Column.*pass F.lit\(5\)"):
        acid.update("t", {"id": 5})
    with pytest.raises(SqlSyntaxError, match="closes nothing"):
        acid.delete("t", "id = 1) OR (v = 'a'")
    with pytest.raises(SqlSyntaxError, match="no expression"):
        acid.delete("t", F.expr("id = 1) OR (v = 'a'"))
    with pytest.raises((AnalysisError, AnalysisException), match="ATTRIBUTE_NAME"):
        acid.delete("t", F.col("id.") - 7 < 0)
    with pytest.raises(SqlSyntaxError, match="found nothing"):
        acid.delete("t", "  ")
    with pytest.raises(SettingError, match="one column at least"):
        acid.update("t", {})
    with pytest.raises(SettingError, match="needs a clause"):
        acid.merge_into(frame, "t", "t.id = source.id").merge()
    with pytest.raises(MergeCardinalityError):
        acid.merge_into(frame, "t", "t.id = source.id").whenMatched().updateAll().merge()
    assert table(acid) == [(1, "a")]


def test_a_script_runs_statement_by_statement(acid, tmp_path):
    path = tmp_path / "load.sql"
    path.write_text(
        "CREATE TABLE t (a INT);\n-- ; no end\nINSERT INTO t VALUES (1);\nSELECT a FROM t;"
    )
    assert rows(acid.script(path)[-1]) == [(1,)]
    with pytest.raises(AnalysisError) as caught:
        acid.script(
            "INSERT INTO t VALUES (2);\n\nDELETE FROM t WHERE b = 1; INSERT INTO t VALUES (3)"
        )
    assert caught.value.__notes__ == ["This is statement 2 of the script, in line 3."]
    assert table(acid) == [(1,), (2,)]
    with pytest.raises(SqlSyntaxError, match=r"acid.script"):
        acid.sql("SELECT 1; SELECT 2")


def test_names_of_columns_are_read_as_pyspark_and_delta_read_them(acid, spark):
    """With the table's name or alias before them; in backticks, they may have any characters."""
    acid.create_table("t", "id INT, `a.b` STRING, `c``d` INT, s STRUCT<f: INT>")
    acid.insert_into("t", [{"id": 1, "a.b": "x", "c`d": 1}, {"id": 2, "a.b": "y", "c`d": 2}])
    acid.update("t", {"t.id": "t.id + 10", "`a.b`": "'z'", "default.t.`c``d`": F.lit(7)}, "id = 1")
    acid.update("default.t AS `k.l`", {"`k.l`.`a.b`": "`k.l`.`a.b` || '!'"}, "`k.l`.id = 2")
    assert table(acid) == [(11, "z", 7, None), (2, "y!", 2, None)]
    acid.delete("t AS k", "k.id = 11")
    news = spark.createDataFrame([(2, "m"), (3, "n")], "id INT, v STRING").alias("n")
    merge = acid.merge_into(news, "default.t as k", F.col("k.id") == F.col("n.id"))
    merge.whenMatched("k.id < 9").update({"k.`a.b`": "n.v", "`c``d`": "k.id"})
    merge.whenNotMatched().insert({"k.id": "n.id", "`a.b`": F.col("n.v")}).merge()
    assert table(acid) == [(2, "m", 2, None), (3, "n", None, None)]
    for change in (
        lambda: acid.update("t AS k", {"t.id": "1"}),
        lambda: acid.update("t", {"a.b": "'v'"}),
        lambda: acid.update("t", {"n.id": "1"}),
        lambda: acid.merge_into(news, "t", "true").whenNotMatched().insert({"n.id": "1"}).merge(),
        lambda: acid.merge_into(news, "t", "true").whenNotMatched().insert({"s.f": "1"}).merge(),
        lambda: acid.sql("INSERT INTO t (u.id) VALUES (1)"),
    ):
        with pytest.raises(AnalysisError, match=r"UNRESOLVED_COLUMN|ROW_LEVEL_OPERATION_ASSIGN"):
            change()
    for name in ("", ".", "a.", "`a", "`a`b", "a`b`"):
        with pytest.raises(AnalysisError, match="INVALID_ATTRIBUTE_NAME_SYNTAX"):
            acid.update("t", {name: "1"})
    for name in ("", "t.", "t AS", "a b c", "`t"):
        with pytest.raises(CatalogError, match="is no name of a table"):
            acid.update(name, {"id": "1"})
    assert table(acid) == [(2, "m", 2, None), (3, "n", None, None)]
    for field, name in enumerate(("s.f", "t.s.f", "default.t.s.f"), 1):
        acid.update("t", {"s": "named_struct('f', 0)"})
        acid.update("t", {name: str(field)}, "id = 2")
        assert acid.sql("SELECT s.f FROM t ORDER BY id").collect() == [(field,), (0,)]


@needs("keeps_versions")
def test_the_key_of_changes_may_be_a_name_in_backticks(acid):
    acid.create_table("t", "id INT, `a.b` STRING")
    acid.insert_into("t", [{"id": 1, "a.b": "x"}])
    acid.update("t", {"id": "2"})
    changed = acid.changes("t", 2, keys="`a.b`").collect()
    assert {row["a.b"] for row in changed} == {"x"}


def test_lists_of_columns_take_names_in_backticks_and_no_qualifiers(acid, spark):
    acid.create_table("t", "id INT, `p.q` INT", partitioned_by="`p.q`")
    acid.insert_into("t", [{"id": 1}], partition={"`p.q`": 5})
    frame = spark.createDataFrame([(2, 6), (3, 6)], "id INT, `p.q` INT")
    cdc = acid.auto_cdc("t", keys=["id", "`p.q`"], sequence_by="id", column_list=["id", "`p.q`"])
    cdc.apply(frame)
    acid.sink("t", mode="upsert", keys="id", txn_app_id="a")(frame.limit(1), 0)
    assert table(acid) == [(1, 5), (2, 6), (3, 6)]
    for call in (
        lambda: acid.create_table("u", "id INT", partitioned_by=["u.id"]),
        lambda: acid.create_table("u", frame, clustered_by=["p.q"], buckets=1),
        lambda: acid.insert_into("t", frame, partition={"p.q": 1}),
        lambda: acid.changes("t", 1, keys=["p.q"]),
        lambda: acid.sink("t", mode="upsert", keys=["p.q"]),
        lambda: acid.changes_from("maxwell", frame, "id INT", keys="p.q"),
        lambda: acid.auto_cdc("t", keys=["p.q"], sequence_by="id"),
        lambda: acid.auto_cdc("t", keys=["id"], sequence_by="id", except_column_list=["t.id"]),
        lambda: acid.auto_cdc([cdc], by="p.q"),
    ):
        with pytest.raises(AnalysisError, match="QUALIFIED_COLUMN"):
            call()
    with pytest.raises(SettingError, match="column_list=.. names no column"):
        acid.auto_cdc("t", keys=["id"], sequence_by="id", column_list=[])


def test_rows_of_pandas_arrow_and_plain_python_are_taken_as_dataframes(acid):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    acid.create_table("t", pandas.DataFrame({"id": [1], "v": ["pandas"]}))
    acid.insert_into("t", arrow.table({"v": ["arrow"], "id": [2]}))
    acid.insert_into("t", [{"v": "dict", "id": 3}])
    news = pandas.DataFrame({"id": [1, 4], "v": ["merged", "new"]})
    merge = acid.merge_into(news, "t", "t.id = source.id").whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll("source.id > 3").execute()
    assert table(acid) == [(1, "merged"), (2, "arrow"), (3, "dict"), (4, "new")]
    found = acid.sql(
        "SELECT t.v FROM t JOIN {p} p ON t.id = p.id JOIN {l} l ON t.id = l.id",
        p=news, l=[{"id": 4}, {"id": 2}],
    )  # fmt: skip
    assert rows(found) == [("new",)]


def test_rows_in_memory_are_previewed_and_applied_as_change_records(acid):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    acid.create_table("t", [{"id": 1, "v": "old"}])
    news = pandas.DataFrame({"id": [1], "v": ["pandas"]}, index=[7])
    seen = acid.preview("MERGE INTO t USING {n} ON t.id = n.id WHEN MATCHED THEN DELETE", n=news)
    assert rows(seen.select("id", "_change_type")) == [(1, "delete")]
    applier = acid.auto_cdc("t", keys=["id"], sequence_by="at", except_column_list=["at"])
    applier.apply(arrow.table({"id": [1, 2], "v": ["arrow", "new"], "at": [1, 1]}))
    assert table(acid) == [(1, "arrow"), (2, "new")]
    records = [{"value": '{"op": "c", "after": {"id": 5, "v": "x"}, "source": {"lsn": 1}}'}]
    changes = acid.changes_from("debezium", records, "id INT, v STRING", sequence="0")
    assert rows(changes.select("id", "v", "_op")) == [(5, "x", "insert")]


class PandasTable(pytest.importorskip("pandas").DataFrame):
    """A class of a library that is built on pandas."""


def test_a_table_of_a_library_built_on_pandas_has_the_columns_of_pandas(acid):
    acid.create_table("t", PandasTable({"id": [1, 2]}, index=["a", "b"]))
    assert acid.table("t").columns == ["id"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "rows should be a DataFrame of Spark or pandas, an Arrow table, or a list of dicts or "
            "Rows, and is 3"),
        ("SELECT 1", "or a list of dicts or Rows, and is 'SELECT 1'"),
        ({"id": [1]}, "or a list of dicts or Rows, and is dict"),
        ([(1, "a")], r"rows\[0\] should be a dict or a Row, which have the names of the columns, "
                     "and is tuple"),
        (pytest.importorskip("pyarrow").chunked_array([[1]]), "no table, but a ChunkedArray"),
    ],
)  # fmt: skip
def test_what_is_no_rows_is_refused_with_what_is_taken(acid, wrong, message):
    acid.sql("CREATE TABLE t (id INT)")
    with pytest.raises(TypeError, match=message):
        acid.insert_into("t", wrong)
    with pytest.raises(TypeError, match=message.replace("rows", "some_rows", 1)):
        acid.sql("INSERT INTO t SELECT * FROM {some_rows}", some_rows=wrong)
    assert table(acid) == []


def test_a_column_of_a_list_may_have_only_nulls(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, st STRUCT<a: INT>)")
    acid.insert_into("t", [{"v": None, "id": None, "st": None}])
    acid.insert_into("t", [{"id": 1, "v": None}, {"id": 2, "st": Row(a=3)}])
    acid.insert_into("t", [Row(id=3, v=None, st=None)], by_name=False)
    acid.insert_into("t", [Row(4, "by position", Row(a=5))], by_name=False)
    acid.sql("DELETE FROM t WHERE id = 4 AND st.a = 5")
    assert table(acid) == [(1, None, None), (2, None, (3,)), (3, None, None), (None, None, None)]
    changes = [{"id": 1, "v": None}, {"id": 4, "v": None}]
    acid.sql(
        "MERGE INTO t USING {changes} c ON t.id = c.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c.id, c.v)",
        changes=changes,
    )
    assert [row[0] for row in table(acid)] == [2, 3, 4, None]


def test_an_empty_list_is_refused_because_nothing_says_its_columns(acid):
    acid.sql("CREATE TABLE t (id INT)")
    with pytest.raises(ArgumentTypeError, match=r"pass a DataFrame that has the columns"):
        acid.insert_into("t", [])
    with pytest.raises(ArgumentTypeError, match="is empty"):
        acid.merge_into([], "t", "t.id = source.id")


def test_the_merge_builder_knows_deltas_names_and_whether_it_was_run(acid, spark):
    acid.create_table("t", "id INT, v STRING")
    acid.insert_into("t", [{"id": n, "v": "old"} for n in range(5)])
    merge = acid.merge_into(spark.range(1, 7), "t", "t.id = source.id")
    assert repr(merge) == "<MERGE INTO t, 0 clauses, not run yet: call .merge()>"
    assert "lacks its action: .update(), .updateAll(), .delete()" in repr(merge.whenMatched())
    merge.whenMatchedDelete("t.id = 1").whenMatchedUpdate("t.id = 2", {"v": "'two'"})
    merge.whenMatchedUpdate(set={"t.v": F.lit("more")})
    merge.whenNotMatchedInsert("source.id = 5", {"id": "source.id", "v": "'new'"})
    merge.whenNotMatchedInsert(values={"t.id": "source.id"})
    merge.whenNotMatchedBySourceUpdate("t.id = 0", {"v": "'zero'"}).whenNotMatchedBySourceDelete()
    assert repr(merge) == "<MERGE INTO t, 7 clauses, not run yet: call .merge()>"
    merge.execute()
    assert repr(merge) == "<MERGE INTO t, 7 clauses, was run>"
    expected = [(0, "zero"), (2, "two"), (3, "more"), (4, "more"), (5, "new"), (6, None)]
    assert table(acid) == expected
    with pytest.raises(SettingError, match="one column at least"):
        merge.whenMatchedUpdate("t.id = 1")


def test_a_text_that_is_no_sql_gets_the_advice_to_quote_it(acid, spark):
    acid.create_table("t", "id INT, v STRING")
    merge = acid.merge_into(spark.range(1), "t", "true").whenNotMatched().insert({"v": "Rome"})
    for call in (lambda: acid.update("t", {"v": "Rome"}), merge.merge):
        with pytest.raises(AnalysisError, match="A value is SQL: the text is F.lit..Rome.., or "):
            call()
    with pytest.raises(SqlSyntaxError, match="F.lit..New York.."):
        acid.update("t", {"v": "New York"})
    for text in ("O'Hare", "it's", "Rome (IT)", "http://x.y/z", "Köln"):
        with pytest.raises(SqlError, match=f"the text is F.lit.{re.escape(repr(text))}."):
            acid.update("t", {"v": text})
    for call in (
        lambda: acid.update("t", {"v": "'Rome'"}, "nope = 1"),
        lambda: acid.update("t", {"v": "concat(nope, 'x')"}),
        lambda: acid.update("t", {"v": "upperr(v)"}),
        lambda: acid.delete("t", "nope > 1"),
    ):
        with pytest.raises(AnalysisError) as caught:
            call()
        assert "F.lit" not in str(caught.value) and "is a text" not in str(caught.value)


def test_a_text_without_quotes_in_a_condition_gets_the_advice_to_quote_it(acid, spark):
    acid.create_table("t", "id INT, v STRING")
    merge = acid.merge_into(spark.range(1), "t", "t.id = source.id")
    for call in (
        lambda: acid.delete("t", "v = Rome"),
        lambda: acid.delete("t", "v IN ('Oslo', Rome)"),
        lambda: acid.update("t", {"v": "'x'"}, "v <> Rome"),
        merge.whenMatchedDelete("t.v = Rome").merge,
        acid.merge_into(spark.range(1), "t", "t.v = Rome").whenMatchedDelete().merge,
    ):
        with pytest.raises(AnalysisError, match="If Rome is a text, write 'Rome'"):
            call()


def test_a_date_without_quotes_is_no_subtraction(acid, spark):
    acid.create_table("t", "id INT, v STRING")
    acid.insert_into("t", [{"id": 1, "v": "old"}])
    merge = acid.merge_into(spark.range(2), "t", "t.id = source.id")
    for call in (
        lambda: acid.update("t", {"v": "2024-01-31"}),
        merge.whenNotMatchedInsert(values={"id": "source.id", "v": " 2024-1-31"}).merge,
    ):
        with pytest.raises(AnalysisError, match="DATE_WITHOUT_QUOTES.*The date is DATE'2024-"):
            call()
    assert table(acid) == [(1, "old")]
    acid.update("t", {"v": "(2024-01-31)"})
    assert table(acid) == [(1, "1992")]
    acid.update("t", {"id": "1000-20-40"})
    assert table(acid) == [(940, "1992")]


def test_counts_below_zero_and_a_warehouse_without_a_name_are_refused(acid, spark):
    acid.create_table("t", "id INT")
    for call in (
        lambda: acid.sql("SELECT 1", retries=-1),
        lambda: acid.history("t", -1),
        lambda: acidsql.connect(spark, retries=-1),
        lambda: acidsql.connect(spark, warehouse=""),
        lambda: acid.sink("t", retries=-1),
    ):
        with pytest.raises(SettingError):
            call()


def test_a_closed_session_says_that_it_is_closed(spark, tmp_path):
    acid = acidsql.connect(spark, warehouse=tmp_path, compactor="off")
    acid.create_table("t", "id INT")
    frame = spark.range(1)
    merge = acid.merge_into(frame, "t", "true").whenMatched().delete()
    sink = acid.sink("t", txn_app_id="a")
    acid.close()
    for call in (
        lambda: acid.sql("SELECT 1"), lambda: acid.table("t"), lambda: acid.delete("t"),
        lambda: acid.merge_into(frame, "t", "true"), merge.merge, lambda: acid.txn_state(1),
        lambda: acid.files("t"), acid.transaction, acid.snapshot, acid.streams,
        lambda: sink(frame, 0), lambda: acid.script(""),
        lambda: acid.export_to_hive("t", metastore="thrift://h"),
    ):  # fmt: skip
        with pytest.raises(SettingError, match="INVALID_HANDLE.SESSION_CLOSED.*session is closed"):
            call()
