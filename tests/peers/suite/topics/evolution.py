"""WITH SCHEMA EVOLUTION: new columns, new fields; and columns that ALTER TABLE changes."""

from __future__ import annotations

from typing import Any

from suite.case import Case, Table
from suite.tables import BUCKETED, EMPTY, PARTS, T

EVOLVE = {"spark.databricks.delta.schema.autoMerge.enabled": "true"}
STAR = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def merge(
    name: str,
    source: str,
    clauses: str = STAR,
    *,
    table: Table = T,
    on: str = "t.id = s.id",
    **more: Any,
) -> Case:
    """A MERGE WITH SCHEMA EVOLUTION of the temporary view ``s``."""
    text = f"MERGE WITH SCHEMA EVOLUTION INTO t USING s ON {on} {clauses}"
    return Case(name, (table,), text, views={"s": source}, **more)  # fmt: skip


def insert(name: str, source: str, *, table: Table = T, words: str = "INTO", **more: Any) -> Case:
    """An INSERT WITH SCHEMA EVOLUTION, by name."""
    rest = f"{words} t BY NAME SELECT * FROM s"
    return Case(name, (table,), f"INSERT WITH SCHEMA EVOLUTION {rest}", views={"s": source},
                peer=f"INSERT {rest}", conf=EVOLVE, **more)  # fmt: skip


_NEW = "SELECT * FROM VALUES (1,'x',11,'m'),(5,'z',51,NULL) AS s(id, v, n, more)"
COLUMNS = [
    merge("merge: a new column", _NEW, layouts=BUCKETED),
    merge("merge: a new column between the others", "SELECT id, 'm' AS more, v, n FROM VALUES (1,'x',11),(5,'z',51) AS q(id, v, n)"),
    merge("merge: two new columns", "SELECT 1 AS id, 'x' AS v, 5 AS n, 'a' AS m1, 2.5D AS m2"),
    merge("merge: a new column of a struct", "SELECT 1 AS id, 'x' AS v, 5 AS n, named_struct('a', 1, 'b', 'c') AS more"),
    merge("merge: a new column and one missing", "SELECT explode(array(1, 7)) AS id, 'x' AS v, 'a' AS more"),
    merge("merge: one missing alone", "SELECT explode(array(1, 7)) AS id, 'x' AS v"),
    merge("merge: no new column", "SELECT 1 AS id, 'x' AS v, 5 AS n"),
    merge("merge: new columns by UPDATE SET * alone", _NEW, "WHEN MATCHED THEN UPDATE SET *"),
    merge("merge: new columns by INSERT * alone", _NEW, "WHEN NOT MATCHED THEN INSERT *"),
    merge("merge: a new column that no clause names", _NEW, "WHEN MATCHED THEN UPDATE SET v = s.v"),
    merge("merge: a new column in SET", _NEW, "WHEN MATCHED THEN UPDATE SET more = s.more"),
    merge("merge: a new column in a list of INSERT", _NEW, "WHEN NOT MATCHED THEN INSERT (id, more) VALUES (s.id, s.more)"),
    merge("merge: a new column in SET beside INSERT *", _NEW, "WHEN MATCHED THEN UPDATE SET more = 'own' WHEN NOT MATCHED THEN INSERT *"),
    merge("merge: an unknown column in SET that the source lacks", _NEW, "WHEN MATCHED THEN UPDATE SET nope = 1"),
    merge("merge: a new column, with by source", _NEW, f"{STAR} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'gone'"),
    merge("merge: a new column, with DELETE", _NEW, "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"),
    merge("merge: a new column of an empty table", _NEW, table=EMPTY),
    merge("merge: a new column of a partitioned table", "SELECT 1 AS id, 'q' AS v, 'y' AS p, 5 AS more", table=PARTS, query="SELECT id, v, p, more FROM t"),
    merge("merge: a column in other case", "SELECT 1 AS ID, 'x' AS V, 5 AS n"),
    merge("merge: a condition on the new column of the source", _NEW, "WHEN MATCHED AND s.more = 'm' THEN UPDATE SET * WHEN NOT MATCHED AND s.more IS NULL THEN INSERT *"),
    merge("merge: an untyped NULL as a new column", "SELECT 1 AS id, 'x' AS v, 5 AS n, NULL AS more", query="SELECT id, v, n FROM t"),
    merge("merge: a value that does not fit", "SELECT 1 AS id, 'x' AS v, 'text' AS n"),
    insert("insert: a new column", _NEW, layouts=BUCKETED),
    insert("insert: a new column and another order", "SELECT 'a' AS more, 5 AS n, 9 AS id, 'x' AS v"),
    insert("insert: a new column and one missing", "SELECT 9 AS id, 'a' AS more"),
    insert("insert: no new column", "SELECT 9 AS id, 'x' AS v, 5 AS n"),
    insert("insert: OVERWRITE with a new column", _NEW, words="OVERWRITE"),
    insert("insert: a new column of a struct", "SELECT 9 AS id, 'x' AS v, 5 AS n, named_struct('a', 1) AS more"),
    insert("insert: a new column of a partitioned table", "SELECT 9 AS id, 'x' AS v, 'y' AS p, 5 AS more", table=PARTS, query="SELECT id, v, p, more FROM t"),
    Case("insert: a new column without the words", (T,), "INSERT INTO t BY NAME SELECT 9 AS id, 'x' AS v, 5 AS n, 1 AS more"),
    Case("merge: a new column without the words", (T,), f"MERGE INTO t USING s ON t.id = s.id {STAR}", views={"s": _NEW}),
    Case("merge: WITH SCHEMA EVOLUTION twice in turn", (T,), (
        f"MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id {STAR}",
        f"MERGE WITH SCHEMA EVOLUTION INTO t USING u ON t.id = u.id {STAR}"),
        views={"s": _NEW, "u": "SELECT 1 AS id, 'u' AS v, 0 AS n, 'w' AS more, true AS last"}),
]  # fmt: skip

ST = Table("t", "id INT, st STRUCT<a: INT, b: STRUCT<c: INT>>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<y: INT>>",
           "(1, named_struct('a', 1, 'b', named_struct('c', 1)), array(named_struct('x', 1)), map('k', named_struct('y', 1))), "
           "(2, NULL, NULL, NULL)")  # fmt: skip
_L, _M, _B = (
    "array(named_struct('x', 5)) AS l",
    "map('k', named_struct('y', 5)) AS m",
    "named_struct('c', 5)",
)
_SOURCES = {
    "a new field": f"named_struct('a', 5, 'b', {_B}, 'z', 'new') AS st, {_L}, {_M}",
    "a new field between the others": f"named_struct('a', 5, 'z', 'new', 'b', {_B}) AS st, {_L}, {_M}",
    "a new deep field": f"named_struct('a', 5, 'b', named_struct('c', 5, 'd', 6)) AS st, {_L}, {_M}",
    "a new field, and one missing": f"named_struct('a', 5, 'z', 'new') AS st, {_L}, {_M}",
    "a field is missing": f"named_struct('b', {_B}) AS st, {_L}, {_M}",
    "a new field in an array": f"named_struct('a', 5, 'b', {_B}) AS st, array(named_struct('x', 5, 'w', 6)) AS l, {_M}",
    "a new field in a map": f"named_struct('a', 5, 'b', {_B}) AS st, {_L}, map('k', named_struct('y', 5, 'w', 6)) AS m",
    "fields in another order": f"named_struct('b', {_B}, 'a', 5) AS st, {_L}, {_M}",
}
NESTED = [
    merge(f"merge, nested: {name}", f"SELECT explode(array(1, 7)) AS id, {source}", table=ST)
    for name, source in _SOURCES.items()
] + [
    insert(f"insert, nested: {name}", f"SELECT 7 AS id, {source}", table=ST)
    for name, source in _SOURCES.items()
] + [
    merge("merge, nested: a struct with a new field in SET",
          f"SELECT 1 AS id, named_struct('a', 5, 'b', {_B}, 'z', 'new') AS st", "WHEN MATCHED THEN UPDATE SET st = s.st", table=ST),
    merge("merge, nested: a new field in SET", "SELECT 1 AS id, named_struct('z', 5) AS st",
          "WHEN MATCHED THEN UPDATE SET st.z = s.st.z", table=ST),
    merge("merge, nested: INSERT * alone", f"SELECT 7 AS id, named_struct('a', 5, 'b', {_B}, 'z', 'new') AS st, {_L}, {_M}",
          "WHEN NOT MATCHED THEN INSERT *", table=ST),
    merge("merge, nested: UPDATE SET * alone", f"SELECT 1 AS id, named_struct('a', 5, 'b', {_B}, 'z', 'new') AS st, {_L}, {_M}",
          "WHEN MATCHED THEN UPDATE SET *", table=ST),
    merge("merge, nested: a new field, the struct is NULL", f"SELECT 2 AS id, named_struct('a', 5, 'b', {_B}, 'z', 'new') AS st, {_L}, {_M}",
          table=ST),
    Case("merge, nested: a new field without the words", (ST,), f"MERGE INTO t USING s ON t.id = s.id {STAR}",
         views={"s": f"SELECT 1 AS id, named_struct('a', 5, 'b', {_B}, 'z', 'new') AS st, {_L}, {_M}"}),
]  # fmt: skip

ALTER = [
    Case("alter: ADD COLUMNS, old rows", (T,), "ALTER TABLE t ADD COLUMNS (more STRING)"),
    Case("alter: ADD COLUMNS, then INSERT", (T,), ("ALTER TABLE t ADD COLUMNS (more STRING)", "INSERT INTO t VALUES (9, 'z', 1, 'm')"), layouts=BUCKETED),
    Case("alter: ADD COLUMNS, then UPDATE of old rows", (T,), ("ALTER TABLE t ADD COLUMNS (more STRING)", "UPDATE t SET more = v WHERE id < 3")),
    Case("alter: ADD COLUMNS, then DELETE of old rows", (T,), ("ALTER TABLE t ADD COLUMNS (more STRING)", "DELETE FROM t WHERE more IS NULL AND id = 1")),
    Case("alter: ADD COLUMNS, then MERGE", (T,), ("ALTER TABLE t ADD COLUMNS (more STRING)", f"MERGE INTO t USING s ON t.id = s.id {STAR}"), views={"s": _NEW}),
    Case("alter: ADD COLUMNS with a name that is there", (T,), "ALTER TABLE t ADD COLUMNS (v STRING)"),
    Case("alter: ADD COLUMNS with a name in other case", (T,), "ALTER TABLE t ADD COLUMNS (V STRING)"),
    Case("alter: NOT NULL by ALTER COLUMN, then a NULL", (T,), ("ALTER TABLE t ALTER COLUMN id SET NOT NULL", "INSERT INTO t VALUES (NULL, 'x', 1)"), peer=("ALTER TABLE t ADD CONSTRAINT k CHECK (id IS NOT NULL)", "INSERT INTO t VALUES (NULL, 'x', 1)")),
    Case("alter: a CHECK that old rows break", (T,), "ALTER TABLE t ADD CONSTRAINT c CHECK (n > 10)"),
    Case("alter: a CHECK that old rows satisfy, then one that does not", (T,), ("ALTER TABLE t ADD CONSTRAINT c CHECK (n > 0)", "INSERT INTO t VALUES (9, 'z', 0)")),
    Case("alter: a CHECK is dropped", (T,), ("ALTER TABLE t ADD CONSTRAINT c CHECK (n > 0)", "ALTER TABLE t DROP CONSTRAINT c", "INSERT INTO t VALUES (9, 'z', 0)")),
    Case("alter: a CHECK twice by one name", (T,), ("ALTER TABLE t ADD CONSTRAINT c CHECK (n > 0)", "ALTER TABLE t ADD CONSTRAINT c CHECK (n > 1)")),
]  # fmt: skip

CASES = [*COLUMNS, *NESTED, *ALTER]
