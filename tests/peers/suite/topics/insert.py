"""INSERT: by position and by name, lists of columns, partitions, OVERWRITE and REPLACE."""

from __future__ import annotations

from typing import Any

from suite.case import Case, Table
from suite.tables import ALL_LAYOUTS, BUCKETED, EMPTY, PARTS, S, T

DEFAULTS = Table("t", "id INT, v STRING DEFAULT 'none', n INT DEFAULT 7")
STRICT = Table(
    "t", "id INT NOT NULL, v STRING, n INT", "(1, 'a', 1)", checks=(("small", "n < 100"),)
)


def insert(
    name: str, text: str, *, table: Table = T, views: dict[str, str] | None = None, **more: Any
) -> Case:
    """An INSERT into ``t``, of the temporary view ``s`` if it names it."""
    sources = {"s": S} if views is None else views
    return Case(name, (table,), text, views=sources, **more)  # fmt: skip


POSITION = [
    insert("VALUES", "INSERT INTO t VALUES (9, 'z', 90)", layouts=ALL_LAYOUTS),
    insert("several rows of VALUES", "INSERT INTO t VALUES (8, 'y', 80), (9, NULL, NULL)"),
    insert("the word TABLE", "INSERT INTO TABLE t VALUES (9, 'z', 90)"),
    insert("expressions in VALUES", "INSERT INTO t VALUES (4 + 5, upper('z'), CAST('90' AS INT))"),
    insert("rows of VALUES of several types", "INSERT INTO t VALUES (8, 'y', 80), (9L, 'z', 90S)"),
    insert("a row of NULLs", "INSERT INTO t VALUES (NULL, NULL, NULL)", layouts=ALL_LAYOUTS),
    insert("an equal row once more", "INSERT INTO t VALUES (1, 'a', 10)"),
    insert("a query", "INSERT INTO t SELECT * FROM s", layouts=ALL_LAYOUTS),
    insert("a query whose names are in another order", "INSERT INTO t SELECT n AS id, v, id AS n FROM s"),
    insert("a query of the table itself", "INSERT INTO t SELECT id + 10, v, n FROM t", layouts=ALL_LAYOUTS),
    insert("a query of no rows", "INSERT INTO t SELECT * FROM s WHERE false"),
    insert("a query with ORDER BY and LIMIT", "INSERT INTO t SELECT * FROM s ORDER BY id DESC LIMIT 1"),
    insert("a query with GROUP BY", "INSERT INTO t SELECT n % 2, 'odd', count(*) FROM t WHERE n > 0 GROUP BY 1"),
    insert("a UNION", "INSERT INTO t SELECT 7, 'u', 1 UNION ALL SELECT 8, 'v', 2"),
    insert("a WITH in the query", "INSERT INTO t WITH x AS (SELECT * FROM s WHERE id = 5) SELECT * FROM x"),
    insert("a WITH before INSERT", "WITH x AS (SELECT * FROM s WHERE id = 5) INSERT INTO t SELECT * FROM x"),
    insert("TABLE as the query", "INSERT INTO t TABLE s"),
    insert("FROM stands first", "FROM s INSERT INTO t SELECT id, v, n", peer="INSERT INTO t SELECT id, v, n FROM s"),
    insert("too few columns", "INSERT INTO t SELECT id, v FROM s"),
    insert("too many columns", "INSERT INTO t SELECT id, v, n, n + 1 FROM s"),
    insert("too few values", "INSERT INTO t VALUES (1, 'a')"),
    insert("too many values", "INSERT INTO t VALUES (1, 'a', 2, 3)"),
    insert("rows of VALUES of unequal length", "INSERT INTO t VALUES (1, 'a', 2), (1, 'a')"),
    insert("an unknown column in the query", "INSERT INTO t SELECT nope, v, n FROM s"),
    insert("a table that does not exist", "INSERT INTO missing VALUES (1)"),
    insert("columns of one name in the query", "INSERT INTO t SELECT id, id, id FROM (SELECT 1 AS id)"),
    insert("texts with signs", r"INSERT INTO t VALUES (9, 'it''s', 1), (8, 'ä\n\t\\ \u20ac', 2), (7, '', 3)"),
]  # fmt: skip

LISTS = [
    insert("list: all columns", "INSERT INTO t (id, v, n) VALUES (9, 'z', 90)"),
    insert("list: another order", "INSERT INTO t (n, id, v) VALUES (90, 9, 'z')", layouts=ALL_LAYOUTS),
    insert("list: some columns", "INSERT INTO t (id) VALUES (9)"),
    insert("list: some columns of a query", "INSERT INTO t (n, id) SELECT id, n FROM s"),
    insert("list: a default", "INSERT INTO t (id) VALUES (9)", table=DEFAULTS),
    insert("list: two defaults and a NULL", "INSERT INTO t (id, v) VALUES (9, NULL)", table=DEFAULTS),
    insert("list: the word DEFAULT", "INSERT INTO t (id, v) VALUES (9, DEFAULT)", table=DEFAULTS),
    insert("list: the word DEFAULT without a list", "INSERT INTO t VALUES (9, DEFAULT, DEFAULT)", table=DEFAULTS),
    insert("list: DEFAULT of a column without one", "INSERT INTO t VALUES (9, DEFAULT, 1)"),
    insert("list: DEFAULT in an expression", "INSERT INTO t VALUES (9, concat(DEFAULT, 'x'), 1)", table=DEFAULTS),
    insert("list: DEFAULT in some rows", "INSERT INTO t (id, n) VALUES (1, 1), (2, DEFAULT)", table=DEFAULTS),
    insert("list: a column twice", "INSERT INTO t (id, id, v) VALUES (1, 2, 'a')"),
    insert("list: a column twice in other case", "INSERT INTO t (id, ID, v) VALUES (1, 2, 'a')"),
    insert("list: an unknown column", "INSERT INTO t (id, nope) VALUES (1, 2)"),
    insert("list: upper case", "INSERT INTO t (ID, V) VALUES (9, 'z')"),
    insert("list: too few values", "INSERT INTO t (id, v) VALUES (1)"),
    insert("list: too many values", "INSERT INTO t (id) VALUES (1, 2)"),
    insert("list: too many columns of a query", "INSERT INTO t (id) SELECT id, n FROM s"),
    insert("list: a NOT NULL column is left out", "INSERT INTO t (v) VALUES ('x')", table=STRICT),
    insert("list: OVERWRITE", "INSERT OVERWRITE t (n, id) VALUES (90, 9)"),
]  # fmt: skip

NAMES = [
    insert("by name: the same order", "INSERT INTO t BY NAME SELECT id, v, n FROM s"),
    insert("by name: another order", "INSERT INTO t BY NAME SELECT n, v, id FROM s", layouts=ALL_LAYOUTS),
    insert("by name: other case", "INSERT INTO t BY NAME SELECT N, V, ID FROM s"),
    insert("by name: a column is missing", "INSERT INTO t BY NAME SELECT id, n FROM s"),
    insert("by name: a column with a default is missing", "INSERT INTO t BY NAME SELECT id FROM s", table=DEFAULTS),
    insert("by name: an unknown column", "INSERT INTO t BY NAME SELECT id, v, n, 1 AS more FROM s"),
    insert("by name: an unknown column for a known one", "INSERT INTO t BY NAME SELECT id, v, n AS other FROM s"),
    insert("by name: a name twice", "INSERT INTO t BY NAME SELECT id, v, n, id FROM s"),
    insert("by name: no name", "INSERT INTO t BY NAME SELECT id, upper(v), n FROM s"),
    insert("by name: an alias", "INSERT INTO t BY NAME SELECT id + 1 AS id, upper(v) AS v, 0 AS n FROM s"),
    insert("by name: OVERWRITE", "INSERT OVERWRITE t BY NAME SELECT n, v, id FROM s"),
    insert("by name: a value that must be cast", "INSERT INTO t BY NAME SELECT 1L AS id, 'x' AS v, 2L AS n"),
    insert("by name: a partition column", "INSERT INTO t BY NAME SELECT 'z' AS p, 9 AS id, 'v' AS v", table=PARTS),
    insert("by name: the partition column is missing", "INSERT INTO t BY NAME SELECT 9 AS id, 'v' AS v", table=PARTS),
]  # fmt: skip

PARTITIONS = [
    insert("partition: the last column", "INSERT INTO t VALUES (9, 'v', 'x')", table=PARTS),
    insert("partition: a new one", "INSERT INTO t VALUES (9, 'v', 'new')", table=PARTS),
    insert("partition: NULL", "INSERT INTO t VALUES (9, 'v', NULL)", table=PARTS),
    insert("partition: several at once", "INSERT INTO t VALUES (7, 'v', 'x'), (8, 'v', 'q'), (9, 'v', NULL)", table=PARTS),
    insert("partition: static", "INSERT INTO t PARTITION (p = 'x') VALUES (9, 'v')", table=PARTS),
    insert("partition: static, a new one", "INSERT INTO t PARTITION (p = 'new') SELECT id, v FROM s", table=PARTS),
    insert("partition: static, by a number", "INSERT INTO t PARTITION (p = 5) VALUES (9, 'v')", table=PARTS),
    insert("partition: static, NULL", "INSERT INTO t PARTITION (p = NULL) VALUES (9, 'v')", table=PARTS),
    insert("partition: static, with its value in the query", "INSERT INTO t PARTITION (p = 'x') VALUES (9, 'v', 'x')", table=PARTS),
    insert("partition: dynamic", "INSERT INTO t PARTITION (p) VALUES (9, 'v', 'dyn')", table=PARTS),
    insert("partition: static, with a list", "INSERT INTO t PARTITION (p = 'x') (v, id) VALUES ('v', 9)", table=PARTS),
    insert("partition: an unknown column", "INSERT INTO t PARTITION (q = 'x') VALUES (9, 'v')", table=PARTS),
    insert("partition: a column that is none", "INSERT INTO t PARTITION (v = 'x') VALUES (9, 'v')", table=PARTS),
    insert("partition: a table without any", "INSERT INTO t PARTITION (v = 'x') VALUES (9, 1)"),
    insert("partition: a list with the partition column first", "INSERT INTO t (p, id, v) VALUES ('x', 9, 'v')", table=PARTS),
    insert("partition: a list without the partition column", "INSERT INTO t (id, v) VALUES (9, 'v')", table=PARTS),
]  # fmt: skip
TWO = Table("t", "id INT", "(1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a'), (4, NULL, 'a')",
            partitioned="p INT, q STRING")  # fmt: skip
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
OVERWRITE = [
    insert("overwrite: VALUES", "INSERT OVERWRITE t VALUES (9, 'z', 90)", layouts=BUCKETED),
    insert("overwrite: a query", "INSERT OVERWRITE TABLE t SELECT * FROM s"),
    insert("overwrite: no rows", "INSERT OVERWRITE t SELECT * FROM s WHERE false", layouts=BUCKETED),
    insert("overwrite: the table itself", "INSERT OVERWRITE t SELECT id, v, n + 1 FROM t WHERE id < 3", layouts=BUCKETED),
    insert("overwrite: an empty table", "INSERT OVERWRITE t SELECT * FROM s", table=EMPTY),
    insert("overwrite: too few columns", "INSERT OVERWRITE t SELECT id FROM s"),
    insert("overwrite: a value that does not fit", "INSERT OVERWRITE t SELECT 3000000000, v, n FROM s"),
    insert("overwrite: a partitioned table as a whole", "INSERT OVERWRITE t VALUES (9, 'v', 'x')", table=PARTS),
    insert("overwrite: static partition", "INSERT OVERWRITE t PARTITION (p = 'x') VALUES (9, 'v')", table=PARTS),
    insert("overwrite: a static partition that is not there", "INSERT OVERWRITE t PARTITION (p = 'new') VALUES (9, 'v')", table=PARTS),
    insert("overwrite: a static partition with no rows", "INSERT OVERWRITE t PARTITION (p = 'x') SELECT id, v FROM s WHERE false", table=PARTS),
    insert("overwrite: static partition by name", "INSERT OVERWRITE t PARTITION (p = 'x') BY NAME SELECT 'v' AS v, 9 AS id", table=PARTS),
    insert("overwrite: dynamic partitions", "INSERT OVERWRITE t PARTITION (p) VALUES (9, 'v', 'x')", table=PARTS, conf=DYNAMIC),
    insert("overwrite: dynamic partitions without PARTITION", "INSERT OVERWRITE t VALUES (9, 'v', 'x')", table=PARTS, conf=DYNAMIC),
    insert("overwrite: dynamic partitions, NULL", "INSERT OVERWRITE t PARTITION (p) VALUES (9, 'v', NULL)", table=PARTS, conf=DYNAMIC),
    insert("overwrite: dynamic partitions with no rows", "INSERT OVERWRITE t PARTITION (p) SELECT id, v, v FROM s WHERE false", table=PARTS, conf=DYNAMIC),
    insert("overwrite: one static and one dynamic", "INSERT OVERWRITE t PARTITION (p = 1, q) VALUES (9, 'b')", table=TWO, conf=DYNAMIC),
    insert("overwrite: both static", "INSERT OVERWRITE t PARTITION (p = 1, q = 'a') VALUES (9)", table=TWO),
    insert("overwrite: both dynamic", "INSERT OVERWRITE t PARTITION (p, q) VALUES (9, 1, 'a'), (8, 3, 'c')", table=TWO, conf=DYNAMIC),
    insert("overwrite: one static one, in static mode", "INSERT OVERWRITE t PARTITION (p = 1, q) VALUES (9, 'b')", table=TWO),
    insert("overwrite: PARTITION without a value, in static mode", "INSERT OVERWRITE t PARTITION (p) VALUES (9, 'v', 'x')", table=PARTS),
]  # fmt: skip

REPLACE = [
    insert("replace where: a range", "INSERT INTO t REPLACE WHERE id < 3 SELECT 2 AS id, 'new' AS v, 0 AS n"),
    insert("replace where: no row before", "INSERT INTO t REPLACE WHERE id > 100 SELECT 101 AS id, 'new' AS v, 0 AS n"),
    insert("replace where: no new rows", "INSERT INTO t REPLACE WHERE id < 3 SELECT * FROM s WHERE false"),
    insert("replace where: NULL in the condition's column", "INSERT INTO t REPLACE WHERE n > 15 SELECT 8 AS id, 'new' AS v, 16 AS n"),
    insert("replace where: a new row outside", "INSERT INTO t REPLACE WHERE id < 3 SELECT 7 AS id, 'new' AS v, 0 AS n"),
    insert("replace where: a new row of NULL", "INSERT INTO t REPLACE WHERE n < 3 SELECT 7 AS id, 'new' AS v, CAST(NULL AS INT) AS n"),
    insert("replace where: a partition", "INSERT INTO t REPLACE WHERE p = 'x' SELECT 9 AS id, 'v' AS v, 'x' AS p", table=PARTS),
    insert("replace where: the partition of NULL", "INSERT INTO t REPLACE WHERE p IS NULL SELECT 9 AS id, 'v' AS v, CAST(NULL AS STRING) AS p", table=PARTS),
    insert("replace where: by position", "INSERT INTO t REPLACE WHERE id = 1 SELECT 1, 'new', 5"),
    insert("replace where: true", "INSERT INTO t REPLACE WHERE true SELECT * FROM s"),
    insert("replace where: an unknown column", "INSERT INTO t REPLACE WHERE nope = 1 SELECT * FROM s"),
    insert("replace where: a query of the table itself", "INSERT INTO t REPLACE WHERE id < 3 SELECT id, concat(v, '!'), n FROM t WHERE id < 3"),
    *[
        insert(f"replace using: {name}", f"INSERT INTO t REPLACE USING ({columns}) {query}", views={"s": source},
               table=table,
               peer=(f"DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE {match})", f"INSERT INTO t {query}"),
               oracle="iceberg")
        for name, columns, query, source, match, table in [
            ("one column", "id", "SELECT * FROM s", S, "s.id = t.id", T),
            ("two columns", "id, v", "SELECT * FROM s", "SELECT * FROM VALUES (1,'a',5),(2,'z',6) AS s(id, v, n)", "s.id = t.id AND s.v = t.v", T),
            ("NULL keys", "v", "SELECT * FROM s", "SELECT * FROM VALUES (7,CAST(NULL AS STRING),5) AS s(id, v, n)", "s.v = t.v", T),
            ("a key twice in the source", "id", "SELECT * FROM s", "SELECT * FROM VALUES (1,'a',5),(1,'b',6) AS s(id, v, n)", "s.id = t.id", T),
            ("an empty source", "id", "SELECT * FROM s", "SELECT * FROM VALUES (1,'a',5) AS s(id, v, n) WHERE false", "s.id = t.id", T),
            ("a partition column", "p", "SELECT * FROM s", "SELECT * FROM VALUES (8,'n','x'),(9,'n','q') AS s(id, v, p)", "s.p = t.p", PARTS),
        ]
    ],
]  # fmt: skip

RULES = [
    insert("rule: NOT NULL", "INSERT INTO t VALUES (NULL, 'x', 1)", table=STRICT),
    insert("rule: NOT NULL in one of several rows", "INSERT INTO t VALUES (2, 'x', 1), (NULL, 'y', 2)", table=STRICT),
    insert("rule: CHECK", "INSERT INTO t VALUES (2, 'x', 100)", table=STRICT),
    insert("rule: CHECK of NULL", "INSERT INTO t VALUES (2, 'x', NULL)", table=STRICT),
    insert("rule: CHECK in UPDATE", "UPDATE t SET n = 200", table=STRICT),
    insert("rule: NOT NULL in UPDATE", "UPDATE t SET id = NULL", table=STRICT),
    insert("rule: CHECK in MERGE", "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 200", table=STRICT),
    insert("rule: CHECK in the INSERT of MERGE", "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 500)", table=STRICT),
    insert("rule: NOT NULL in the INSERT of MERGE", "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v)", table=STRICT),
    insert("rule: DEFAULT in UPDATE", "UPDATE t SET v = DEFAULT, n = DEFAULT", table=DEFAULTS, setup=("INSERT INTO t VALUES (1, 'a', 1)",)),
    insert("rule: DEFAULT in MERGE", "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, DEFAULT)", table=DEFAULTS),
    insert("rule: a default of a column that MERGE leaves out", "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", table=DEFAULTS),
]  # fmt: skip

CASES = [*POSITION, *LISTS, *NAMES, *PARTITIONS, *OVERWRITE, *REPLACE, *RULES]
