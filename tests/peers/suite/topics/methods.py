"""Methods of DataFrames and of the session. The oracle runs the statement that a method stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suite.case import Case, Table
from suite.tables import ALL_LAYOUTS, PARTS, S, T


def method(
    name: str, call: Callable[[Any], Any], peer: str, *, table: Table = T, **more: Any
) -> Case:
    """A call with the session of acidsql, and the statement of the oracle. The source is ``s``."""
    return Case(
        name, (table,), peer=peer, method=call, views={"s": S, **more.pop("views", {})}, **more
    )


def _s(acid: Any, name: str = "s") -> Any:
    return acid.spark.table("s").alias(name)


def _col(name: str) -> Any:
    from pyspark.sql import functions

    return functions.col(name)


def _lit(value: Any) -> Any:
    from pyspark.sql import functions

    return functions.lit(value)


def merger(acid: Any, on: Any = "t.id = s.id", table: str = "t") -> Any:
    """A MERGE of ``s`` into ``t`` that waits for its clauses."""
    return acid.merge_into(_s(acid), table, on)


HEAD = "MERGE INTO t USING s ON t.id = s.id "
MERGE = [
    method("merge_into: update and insert", lambda acid: merger(acid)
           .whenMatched().updateAll().whenNotMatched().insertAll().merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", layouts=ALL_LAYOUTS),
    method("merge_into: delete with a condition", lambda acid: merger(acid).whenMatched("t.n > 10").delete().merge(),
           f"{HEAD} WHEN MATCHED AND t.n > 10 THEN DELETE"),
    method("merge_into: a condition of Columns", lambda acid: merger(acid, _col("t.id") == _col("s.id"))
           .whenMatched(_col("t.n") < _col("s.n")).update({"v": _col("s.v")}).merge(),
           f"{HEAD} WHEN MATCHED AND t.n < s.n THEN UPDATE SET v = s.v"),
    method("merge_into: values as text", lambda acid: merger(acid).whenMatched().update({"v": "concat(t.v, s.v)", "n": "NULL"}).merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v), n = NULL"),
    method("merge_into: insert of some columns", lambda acid: merger(acid).whenNotMatched().insert({"id": "s.id", "v": _lit("new")}).merge(),
           f"{HEAD} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')"),
    method("merge_into: insert with a condition", lambda acid: merger(acid).whenNotMatched("s.v IS NULL").insertAll().merge(),
           f"{HEAD} WHEN NOT MATCHED AND s.v IS NULL THEN INSERT *"),
    method("merge_into: by source, delete", lambda acid: merger(acid).whenNotMatchedBySource().delete().merge(),
           f"{HEAD} WHEN NOT MATCHED BY SOURCE THEN DELETE"),
    method("merge_into: by source, update", lambda acid: merger(acid).whenNotMatchedBySource("t.id = 2").update({"v": "'gone'"}).merge(),
           f"{HEAD} WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'gone'"),
    method("merge_into: several clauses of a kind", lambda acid: merger(acid).whenMatched("t.id = 1").update({"v": "'one'"})
           .whenMatched().delete().merge(),
           f"{HEAD} WHEN MATCHED AND t.id = 1 THEN UPDATE SET v = 'one' WHEN MATCHED THEN DELETE"),
    method("merge_into: no clause", lambda acid: merger(acid).merge(), HEAD),
    method("merge_into: an unknown column", lambda acid: merger(acid).whenMatched().update({"nope": "1"}).merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET nope = 1"),
    method("merge_into: an unknown column of the source", lambda acid: merger(acid).whenMatched().update({"v": "s.nope"}).merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET v = s.nope"),
    method("merge_into: the target's name before a column", lambda acid: merger(acid).whenMatched().update({"t.v": "s.v"}).merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET t.v = s.v"),
    method("merge_into: backticks around a column", lambda acid: merger(acid).whenMatched().update({"`v`": "s.v"}).merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET `v` = s.v"),
    method("merge_into: an alias of the target", lambda acid: merger(acid, "x.id = s.id", "t AS x").whenMatched().update({"x.v": "s.v"}).merge(),
           "MERGE INTO t AS x USING s ON x.id = s.id WHEN MATCHED THEN UPDATE SET x.v = s.v"),
    method("merge_into: a row matches twice", lambda acid: acid.merge_into(acid.spark.table("s").union(acid.spark.table("s")).alias("s"), "t", "t.id = s.id")
           .whenMatched().updateAll().merge(),
           "MERGE INTO t USING (SELECT * FROM s UNION ALL SELECT * FROM s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"),
    method("merge_into: schema evolution", lambda acid: acid.merge_into(acid.spark.table("s").withColumn("more", _lit(1)).alias("s"), "t", "t.id = s.id")
           .whenMatched().updateAll().whenNotMatched().insertAll().withSchemaEvolution().merge(),
           "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT *, 1 AS more FROM s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
    method("merge_into: columns of the source in another order", lambda acid: acid.merge_into(acid.spark.table("s").select("n", "v", "id").alias("s"), "t", "t.id = s.id")
           .whenMatched().updateAll().whenNotMatched().insertAll().merge(),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
    method("merge_into: null-safe", lambda acid: merger(acid, _col("t.v").eqNullSafe(_col("s.v"))).whenMatched().delete().merge(),
           "MERGE INTO t USING s ON t.v <=> s.v WHEN MATCHED THEN DELETE"),
]  # fmt: skip

UPDATE = [
    method("update: text", lambda acid: acid.update("t", {"n": "n + 1"}, "id = 1"), "UPDATE t SET n = n + 1 WHERE id = 1", layouts=ALL_LAYOUTS),
    method("update: Columns", lambda acid: acid.update("t", {"n": _col("n") * 2}, _col("id") < 3), "UPDATE t SET n = n * 2 WHERE id < 3"),
    method("update: all rows", lambda acid: acid.update("t", {"v": _lit("all")}), "UPDATE t SET v = 'all'"),
    method("update: NULL", lambda acid: acid.update("t", {"v": _lit(None)}, "id = 1"), "UPDATE t SET v = NULL WHERE id = 1"),
    method("update: several columns", lambda acid: acid.update("t", {"v": "upper(v)", "n": "0"}, "v IS NOT NULL"), "UPDATE t SET v = upper(v), n = 0 WHERE v IS NOT NULL"),
    method("update: the table's name before a column", lambda acid: acid.update("t", {"t.v": "'q'"}, "t.id = 1"), "UPDATE t SET t.v = 'q' WHERE t.id = 1"),
    method("update: an unknown column", lambda acid: acid.update("t", {"nope": "1"}), "UPDATE t SET nope = 1"),
    method("update: a value that does not fit", lambda acid: acid.update("t", {"n": _lit(3000000000)}), "UPDATE t SET n = 3000000000"),
    method("update: a partition column", lambda acid: acid.update("t", {"p": "'z'"}, "id = 1"), "UPDATE t SET p = 'z' WHERE id = 1", table=PARTS),
    method("update: a table that does not exist", lambda acid: acid.update("missing", {"v": "1"}), "UPDATE missing SET v = 1"),
]  # fmt: skip

DELETE = [
    method("delete: text", lambda acid: acid.delete("t", "id = 1"), "DELETE FROM t WHERE id = 1", layouts=ALL_LAYOUTS),
    method("delete: a Column", lambda acid: acid.delete("t", _col("v").isNull()), "DELETE FROM t WHERE v IS NULL"),
    method("delete: all rows", lambda acid: acid.delete("t"), "DELETE FROM t"),
    method("delete: a list", lambda acid: acid.delete("t", _col("id").isin(1, 3)), "DELETE FROM t WHERE id IN (1, 3)"),
    method("delete: not in a list, NULL in the column", lambda acid: acid.delete("t", ~_col("v").isin("a")), "DELETE FROM t WHERE NOT v IN ('a')"),
    method("delete: an unknown column", lambda acid: acid.delete("t", "nope = 1"), "DELETE FROM t WHERE nope = 1"),
    method("delete: a partition", lambda acid: acid.delete("t", "p = 'x'"), "DELETE FROM t WHERE p = 'x'", table=PARTS),
]  # fmt: skip

INSERT = [
    method("insert_into: the same columns", lambda acid: acid.insert_into("t", _s(acid)), "INSERT INTO t SELECT * FROM s", layouts=ALL_LAYOUTS),
    method("insert_into: another order", lambda acid: acid.insert_into("t", _s(acid).select("n", "id", "v")), "INSERT INTO t BY NAME SELECT n, id, v FROM s"),
    method("insert_into: a column too many", lambda acid: acid.insert_into("t", _s(acid).withColumn("more", _lit(1))), "INSERT INTO t BY NAME SELECT *, 1 AS more FROM s"),
    method("insert_into: a column is missing", lambda acid: acid.insert_into("t", _s(acid).select("id", "v")), "INSERT INTO t BY NAME SELECT id, v FROM s"),
    method("insert_into: overwrite", lambda acid: acid.insert_into("t", _s(acid), overwrite=True), "INSERT OVERWRITE t SELECT * FROM s"),
    method("insert_into: no rows", lambda acid: acid.insert_into("t", _s(acid).where("false")), "INSERT INTO t SELECT * FROM s WHERE false"),
    method("insert_into: overwrite by no rows", lambda acid: acid.insert_into("t", _s(acid).where("false"), overwrite=True), "INSERT OVERWRITE t SELECT * FROM s WHERE false"),
    method("insert_into: a value that does not fit", lambda acid: acid.insert_into("t", _s(acid).withColumn("n", _lit(3000000000))), "INSERT INTO t SELECT id, v, 3000000000 FROM s"),
    method("insert_into: a partitioned table", lambda acid: acid.insert_into("t", _s(acid).selectExpr("v AS p", "id", "v")), "INSERT INTO t BY NAME SELECT v AS p, id, v FROM s", table=PARTS),
    method("insert_into: the table itself", lambda acid: acid.insert_into("t", acid.table("t")), "INSERT INTO t SELECT * FROM t"),
]  # fmt: skip

FRAMES = [
    method("a frame in braces: INSERT", lambda acid: acid.sql("INSERT INTO t SELECT * FROM {news}", news=_s(acid)), "INSERT INTO t SELECT * FROM s"),
    method("a frame in braces: MERGE", lambda acid: acid.sql("MERGE INTO t USING {news} n ON t.id = n.id WHEN MATCHED THEN UPDATE SET v = n.v", news=_s(acid)),
           f"{HEAD} WHEN MATCHED THEN UPDATE SET v = s.v"),
    method("a frame in braces: DELETE", lambda acid: acid.sql("DELETE FROM t USING {news} n WHERE t.id = n.id", news=_s(acid)), f"{HEAD} WHEN MATCHED THEN DELETE"),
    method("a frame in braces: UPDATE", lambda acid: acid.sql("UPDATE t SET v = n.v FROM {news} n WHERE t.id = n.id", news=_s(acid)), f"{HEAD} WHEN MATCHED THEN UPDATE SET v = s.v"),
    method("a parameter by name", lambda acid: acid.sql("UPDATE t SET v = :w WHERE id = :k", {"w": "it's", "k": 2}), "UPDATE t SET v = 'it\\'s' WHERE id = 2"),
    method("a parameter by position", lambda acid: acid.sql("DELETE FROM t WHERE id IN (?, ?)", [1, 4]), "DELETE FROM t WHERE id IN (1, 4)"),
    method("a parameter of NULL", lambda acid: acid.sql("UPDATE t SET v = :w", {"w": None}), "UPDATE t SET v = NULL"),
    method("parameters in VALUES", lambda acid: acid.sql("INSERT INTO t VALUES (:a, :b, :c)", {"a": 9, "b": "ä\n", "c": None}), "INSERT INTO t VALUES (9, 'ä\\n', NULL)"),
    method("a script", lambda acid: acid.script("DELETE FROM t WHERE id = 1; UPDATE t SET v = 'a;b' WHERE id = 2;"),
           "MERGE INTO t USING (SELECT explode(array(1, 2)) AS k) s ON t.id = s.k WHEN MATCHED AND s.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'a;b'"),
]  # fmt: skip

CASES = [*MERGE, *UPDATE, *DELETE, *INSERT, *FRAMES]
