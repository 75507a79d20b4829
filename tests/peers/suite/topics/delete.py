"""DELETE: which rows go, subqueries with NULLs, and USING."""

from __future__ import annotations

from typing import Any

from suite.case import Case, Table
from suite.tables import ALL_LAYOUTS, EMPTY, ODD, PARTS, S, T, values


def delete(name: str, rest: str, *, table: Table = T, **more: Any) -> Case:
    """A DELETE from ``t``."""
    return Case(name, (table,), f"DELETE FROM t {rest}", **more)


_CONDITIONS = {
    "an equal key": "id = 2",
    "two keys": "id = 2 OR id = 4",
    "a list with NULL": "id IN (1, NULL)",
    "not in a list with NULL": "id NOT IN (1, NULL)",
    "not in a list": "v NOT IN ('a')",
    "IS NULL": "v IS NULL",
    "IS NOT NULL": "v IS NOT NULL",
    "a comparison with NULL": "v = NULL",
    "a null-safe comparison": "v <=> NULL",
    "not equal, where values are NULL": "n <> 10",
    "a negation, where values are NULL": "NOT (n > 10)",
    "OR, where values are NULL": "v = 'a' OR n = 30",
    "a negated AND, where values are NULL": "NOT (v = 'a' AND n = 10)",
    "IS DISTINCT FROM": "n IS DISTINCT FROM 10",
    "a range": "n BETWEEN 10 AND 20",
    "RLIKE": "v RLIKE '^[a-c]$'",
    "true": "true",
    "false": "false",
    "NULL": "CAST(NULL AS BOOLEAN)",
    "a text and a number": "id = '2'",
    "a text that is no number": "id = 'x'",
    "a division that may fail": "10 / (id - 1) > 4",
    "a struct": "struct(id, v) = struct(2, 'b')",
    "an expression of two columns": "n = id * 10",
    "IS TRUE": "(n > 10) IS TRUE",
    "IS NOT TRUE": "(n > 10) IS NOT TRUE",
    "IS UNKNOWN": "(n > 10) IS UNKNOWN",
}
CONDITIONS = [
    delete(f"rows where {name}", f"WHERE {condition}",
           layouts=ALL_LAYOUTS if number % 6 == 0 else ("plain",))
    for number, (name, condition) in enumerate(_CONDITIONS.items())
]  # fmt: skip

PLAIN = [
    delete("all rows", "", layouts=ALL_LAYOUTS),
    delete("of an empty table", "WHERE id = 1", table=EMPTY),
    delete("rows of one key", "WHERE id = 1", table=ODD),
    delete("rows of no key", "WHERE id IS NULL", table=ODD),
    delete("an empty text", "WHERE v = ''", table=ODD),
    delete("an alias", "AS x WHERE x.id = 1"),
    delete("an alias without AS", "x WHERE x.id = 1"),
    delete("the table's name beside an alias", "AS x WHERE t.id = 1"),
    delete("an unknown column", "WHERE nope = 1"),
    delete("a condition that is no boolean", "WHERE id"),
    delete("a condition that is a text", "WHERE 'true'"),
    delete("an aggregate function", "WHERE max(id) = 1"),
    delete("a window function", "WHERE row_number() OVER (ORDER BY id) = 1"),
    delete("the word WHERE without a condition", "WHERE"),
    delete("a column in upper case", "WHERE ID = 1 AND V = 'a'"),
    Case("DELETE without FROM", (T,), "DELETE t WHERE id = 1"),
    Case("a table that does not exist", (T,), "DELETE FROM missing WHERE id = 1"),
    Case("rows that another statement has changed before", (T,), "DELETE FROM t WHERE n = 11",
         setup=("UPDATE t SET n = n + 1",), layouts=ALL_LAYOUTS),
    Case("rows that were inserted later", (T,), "DELETE FROM t WHERE id > 3",
         setup=("INSERT INTO t VALUES (7, 'late', 1)",)),
    Case("a row that was deleted before", (T,), "DELETE FROM t WHERE id = 1",
         setup=("DELETE FROM t WHERE id = 1",)),
    Case("a row that was deleted and came back", (T,), "DELETE FROM t WHERE v = 'a'",
         setup=("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 'back', 1)")),
    Case("several statements in turn", (T,), ("DELETE FROM t WHERE id = 1",
         "INSERT INTO t VALUES (1, 'new', 0)", "UPDATE t SET n = n + 1 WHERE id < 3",
         "DELETE FROM t WHERE n = 21"), layouts=ALL_LAYOUTS),
    Case("TRUNCATE", (T,), "TRUNCATE TABLE t", peer="DELETE FROM t"),
]  # fmt: skip

PARTITIONS = [
    delete("a partition", "WHERE p = 'x'", table=PARTS),
    delete("the partition of NULL", "WHERE p IS NULL", table=PARTS),
    delete("all partitions but one", "WHERE p <> 'x'", table=PARTS),
    delete("all partitions but one, null-safe", "WHERE NOT (p <=> 'x')", table=PARTS),
    delete("a row of a partition", "WHERE p = 'x' AND id = 1", table=PARTS),
    delete("a partition or a row", "WHERE p = 'x' OR id = 3", table=PARTS),
    delete("partitions in a list", "WHERE p IN ('y', 'z')", table=PARTS),
    delete("partitions not in a list with NULL", "WHERE p NOT IN ('y', NULL)", table=PARTS),
    delete("a partition that is a column's value", "WHERE p = v", table=PARTS),
    delete("a partition by a function", "WHERE concat(p, v) = 'xa'", table=PARTS),
    delete("a partition that is not there", "WHERE p = 'nowhere'", table=PARTS),
]  # fmt: skip

OTHER = Table("o", "id INT, w STRING", "(1,'one'),(3,NULL),(NULL,'none'),(9,'nine')")
_SUBQUERIES = {
    "IN": "id IN (SELECT id FROM o)",
    "IN where the column is NULL": "v IN (SELECT w FROM o)",
    "IN of nothing": "id IN (SELECT id FROM o WHERE false)",
    "NOT IN where a row is NULL": "id NOT IN (SELECT id FROM o)",
    "NOT IN without NULL": "id NOT IN (SELECT id FROM o WHERE id IS NOT NULL)",
    "NOT IN where the column is NULL": "v NOT IN (SELECT 'a')",
    "NOT IN of nothing, where the column is NULL": "v NOT IN (SELECT w FROM o WHERE false)",
    "NOT (IN) where a row is NULL": "NOT (id IN (SELECT id FROM o))",
    "EXISTS": "EXISTS (SELECT 1 FROM o WHERE o.id = t.id)",
    "EXISTS without a correlation": "EXISTS (SELECT 1 FROM o)",
    "EXISTS of nothing": "EXISTS (SELECT 1 FROM o WHERE false)",
    "EXISTS by <=>": "EXISTS (SELECT 1 FROM o WHERE o.w <=> t.v)",
    "NOT EXISTS": "NOT EXISTS (SELECT 1 FROM o WHERE o.id = t.id)",
    "NOT EXISTS without a correlation": "NOT EXISTS (SELECT 1 FROM o)",
    "EXISTS with an inequality": "EXISTS (SELECT 1 FROM o WHERE o.id > t.id AND o.w = 'nine')",
    "IN and another condition": "id IN (SELECT id FROM o) AND n > 10",
    "IN or another condition": "id IN (SELECT id FROM o) OR n = 20",
    "two subqueries": "id IN (SELECT id FROM o) AND NOT EXISTS (SELECT 1 FROM o WHERE w = t.v)",
    "a scalar": "id = (SELECT max(id) FROM o WHERE id < 9)",
    "a scalar of nothing": "id = (SELECT max(id) FROM o WHERE false)",
    "a scalar with a correlation": "id = (SELECT max(o.id) FROM o WHERE o.id = t.id)",
    "a scalar of two rows": "id = (SELECT id FROM o WHERE id IN (1, 3))",
    "two columns IN": "(id, v) IN (SELECT 1, 'a')",
    "two columns NOT IN": "(id, v) NOT IN (SELECT id, w FROM o WHERE id = 1)",
    "IN of a UNION": "id IN (SELECT 1 UNION SELECT 4)",
    "IN of the table itself": "n IN (SELECT max(n) FROM t)",
    "EXISTS over the table itself": "EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id + 1)",
    "NOT IN of the table itself": "id NOT IN (SELECT min(id) FROM t GROUP BY n % 20)",
    "a subquery in a subquery": "id IN (SELECT id FROM o WHERE id IN (SELECT min(id) FROM o))",
    "a subquery with a WITH": "id IN (WITH x AS (SELECT id FROM o) SELECT id FROM x)",
    "a subquery of VALUES": "id IN (SELECT * FROM VALUES (2), (3))",
    "an unknown column in a subquery": "id IN (SELECT nope FROM o)",
    "two columns for one": "id IN (SELECT id, w FROM o)",
}
SUBQUERIES = [
    Case(f"subquery: {name}", (T, OTHER), f"DELETE FROM t WHERE {condition}", oracle="iceberg",
         layouts=ALL_LAYOUTS if number % 8 == 0 else ("plain",))
    for number, (name, condition) in enumerate(_SUBQUERIES.items())
]  # fmt: skip
WITH = [
    Case("subquery: a WITH before DELETE", (T, OTHER),
         "WITH x AS (SELECT id FROM o) DELETE FROM t WHERE id IN (SELECT id FROM x)",
         peer="DELETE FROM t WHERE id IN (SELECT id FROM o)", oracle="iceberg"),
    Case("subquery: a WITH with the name of a table", (T, OTHER),
         "WITH o AS (SELECT 2 AS id) DELETE FROM t WHERE id IN (SELECT id FROM o)",
         peer="DELETE FROM t WHERE id = 2"),
    Case("subquery: a WITH with the name of the target", (T, OTHER),
         "WITH t AS (SELECT 2 AS id) DELETE FROM t WHERE id IN (SELECT id FROM t)",
         peer="DELETE FROM t WHERE id = 2"),
]  # fmt: skip


def using(
    name: str, rest: str, condition: str, *, source: str = S, table: Table = T, **more: Any
) -> Case:
    """A DELETE … USING, which is DELETE … WHERE EXISTS elsewhere."""
    return Case(name, (table,), f"DELETE FROM t {rest}", views={"s": source}, oracle="iceberg",
                peer=f"DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE {condition})", **more)  # fmt: skip


USING = [
    using("USING: one match each", "USING s WHERE t.id = s.id", "t.id = s.id", layouts=ALL_LAYOUTS),
    using("USING: a row matches twice", "USING s WHERE t.id = s.id", "t.id = s.id",
          source=values("1, 'x', 1", "1, 'y', 2")),
    using("USING: a condition on the target", "USING s WHERE t.id = s.id AND t.n > 10", "t.id = s.id AND t.n > 10"),
    using("USING: a condition on the source", "USING s WHERE t.id = s.id AND s.n > 11", "t.id = s.id AND s.n > 11"),
    using("USING: NULL keys", "USING s WHERE t.id = s.id", "t.id = s.id",
          source=values("NULL, 'x', 1", "2, 'y', 2"), table=ODD),
    using("USING: NULL keys by <=>", "USING s WHERE t.id <=> s.id", "t.id <=> s.id",
          source=values("NULL, 'x', 1"), table=ODD),
    using("USING: an inequality", "USING s WHERE t.id < s.id AND s.id < 4", "t.id < s.id AND s.id < 4"),
    using("USING: no match", "USING s WHERE t.id = s.id", "t.id = s.id", source=values("9, 'x', 1")),
    using("USING: all rows", "USING s WHERE true", "true"),
    using("USING: an alias of the target", "AS x USING s WHERE x.id = s.id", "t.id = s.id"),
    using("USING: an alias of the source", "USING s AS y WHERE t.id = y.id", "t.id = s.id"),
    using("USING: a subquery", "USING (SELECT max(id) AS k FROM s WHERE id < 4) y WHERE t.id = y.k", "t.id = 3"),
    using("USING: a WITH as the source", "USING w WHERE t.id = w.id", "t.id = s.id AND s.id = 1"),
    using("USING: a name that both have", "USING s WHERE id = 1", "t.id = 1 AND id = 1"),
    using("USING: an unknown column", "USING s WHERE t.id = s.nope", "t.id = s.nope"),
    using("USING: OR with the target alone", "USING s WHERE t.id = s.id OR t.id = 2", "t.id = s.id OR t.id = 2"),
]  # fmt: skip
USING = [
    Case(c.name, c.tables, f"WITH w AS (SELECT id FROM s WHERE id = 1) {c.statement}", oracle=c.oracle,
         views=c.views, peer=c.peer)
    if "USING w" in c.statement else c
    for c in USING
]  # fmt: skip

CASES = [*CONDITIONS, *PLAIN, *PARTITIONS, *SUBQUERIES, *WITH, *USING]
