"""UPDATE: which rows it changes, what a value may be, fields of structs, and FROM."""

from __future__ import annotations

from typing import Any

from suite.case import Case, Table
from suite.tables import ALL_LAYOUTS, EMPTY, ODD, PARTS, S, T, values


def update(name: str, rest: str, *, table: Table = T, **more: Any) -> Case:
    """An UPDATE of ``t``."""
    return Case(name, (table,), f"UPDATE {table.name} {rest}", **more)


_CONDITIONS = {
    "an equal key": "id = 2",
    "a range": "id BETWEEN 2 AND 3",
    "a list": "id IN (1, 4, 9)",
    "a list with NULL": "id IN (1, NULL)",
    "not in a list with NULL": "id NOT IN (1, NULL)",
    "IS NULL": "v IS NULL",
    "IS NOT NULL": "v IS NOT NULL",
    "a comparison with NULL": "v = NULL",
    "a null-safe comparison with NULL": "v <=> NULL",
    "not equal, where values are NULL": "v <> 'a'",
    "a negation, where values are NULL": "NOT (v = 'a')",
    "OR, where values are NULL": "v = 'a' OR n = 30",
    "AND, where values are NULL": "v = 'd' AND n > 0",
    "LIKE": "v LIKE '_'",
    "IS DISTINCT FROM": "v IS DISTINCT FROM 'a'",
    "true": "true",
    "false": "false",
    "NULL": "CAST(NULL AS BOOLEAN)",
    "CASE": "CASE WHEN id < 3 THEN n > 10 ELSE v IS NULL END",
    "a function of several columns": "coalesce(v, 'x') = 'x' AND n + id > 30",
}
CONDITIONS = [
    update(f"where {name}", f"SET n = -1 WHERE {condition}",
           layouts=ALL_LAYOUTS if number % 5 == 0 else ("plain",))
    for number, (name, condition) in enumerate(_CONDITIONS.items())
]  # fmt: skip

PLAIN = [
    update("no condition", "SET v = 'all'", layouts=ALL_LAYOUTS),
    update("an empty table", "SET v = 'all'", table=EMPTY),
    update("a value of the row's own", "SET n = n * 2, v = concat(v, '!')"),
    update("values are those before the statement", "SET id = n, n = id", layouts=ALL_LAYOUTS),
    update("two columns change places", "SET v = CAST(n AS STRING), n = length(v) WHERE id < 3"),
    update("a value of NULL", "SET v = NULL, n = NULL WHERE id = 1"),
    update("the key itself", "SET id = id + 10 WHERE id IN (1, 3)", layouts=ALL_LAYOUTS),
    update("the key becomes NULL", "SET id = NULL WHERE id > 2", layouts=ALL_LAYOUTS),
    update("the last column becomes NULL", "SET n = NULL WHERE id < 3", layouts=ALL_LAYOUTS),
    update("a column that the condition names", "SET n = 0 WHERE n > 10"),
    update("rows with one key", "SET v = 'twice' WHERE id = 1", table=ODD),
    update("rows with a NULL key", "SET v = 'no key' WHERE id IS NULL", table=ODD),
    update("a column twice", "SET v = 'a', v = 'b' WHERE id = 1"),
    update("a column twice in other case", "SET v = 'a', V = 'b' WHERE id = 1"),
    update("a column in upper case", "SET V = 'up' WHERE ID = 1"),
    update("a column with the table before it", "SET t.v = 'q' WHERE t.id = 1"),
    update("an alias", "AS x SET x.v = 'q' WHERE x.id = 1"),
    update("an alias without AS", "x SET v = 'q' WHERE x.id = 1"),
    update("the table's name beside an alias", "AS x SET v = 'q' WHERE t.id = 1"),
    update("an unknown column", "SET nope = 1"),
    update("an unknown column in the value", "SET v = nope"),
    update("an unknown column in the condition", "SET v = 'x' WHERE nope = 1"),
    update("another table's name before the column", "SET other.v = 'x'"),
    update("a condition that is a number", "SET v = 'x' WHERE 1"),
    update("a condition that is a column of INT", "SET v = 'x' WHERE n"),
    update("an aggregate function in the value", "SET n = max(n)"),
    update("an aggregate function in the condition", "SET n = 1 WHERE max(n) > 1"),
    update("a window function in the value", "SET n = row_number() OVER (ORDER BY id)"),
    update("no assignment", "SET"),
    update("DEFAULT of a column without one", "SET v = DEFAULT WHERE id = 1"),
    update("a CASE without ELSE", "SET v = CASE WHEN id = 1 THEN 'one' END"),
    update("a struct of all columns as text", "SET v = to_json(struct(*)) WHERE id = 2"),
    update("a value by a function of time", "SET v = CASE WHEN current_date() > DATE '2020-01-01' THEN 'now' END"),
    update("a missing table", "SET v = 'x'", table=Table("t", "id INT, v STRING, n INT"),
           peer="UPDATE missing SET v = 'x'", method=lambda acid: acid.sql("UPDATE missing SET v = 'x'")),
]  # fmt: skip

# Values of one type into a column of another one, under ANSI's rules of store assignment.
NUMBERS = Table(
    "t",
    "id INT, tiny TINYINT, small SMALLINT, big BIGINT, f FLOAT, d DOUBLE, m DECIMAL(5,2), "
    "s STRING, b BOOLEAN, day DATE, at TIMESTAMP",
    "(1, 1, 1, 1, 1.0, 1.0, 1.00, '1', true, DATE '2024-01-01', TIMESTAMP '2024-01-01 00:00:00')",
)
_CASTS = {
    "an INT that fits a TINYINT": "tiny = 100",
    "an INT too large for a TINYINT": "tiny = 1000",
    "a BIGINT too large for an INT": "id = 3000000000",
    "an INT for a BIGINT": "big = 7",
    "a DOUBLE for an INT": "id = 2.9D",
    "a DOUBLE too large for an INT": "id = 1e12D",
    "a decimal for an INT": "id = 2.9",
    "a negative decimal for an INT": "id = -2.5",
    "a decimal that must be rounded": "m = 1.005",
    "a decimal too large": "m = 12345.1",
    "an INT for a decimal": "m = 12",
    "an INT too large for a decimal": "m = 12345",
    "a text for an INT": "id = '7'",
    "a text that is no number for an INT": "id = 'x'",
    "a text for a decimal": "m = '1.5'",
    "a text for a date": "day = '2024-02-02'",
    "a text for a boolean": "b = 'true'",
    "a number for a text": "s = 12",
    "a decimal for a text": "s = 1.50",
    "a DOUBLE for a text": "s = 1e7D",
    "a boolean for a text": "s = true",
    "a date for a text": "s = DATE '2024-02-29'",
    "a timestamp for a text": "s = TIMESTAMP '2024-02-29 01:02:03.4'",
    "a date for a timestamp": "at = DATE '2024-02-29'",
    "a timestamp for a date": "day = TIMESTAMP '2024-02-29 01:02:03'",
    "a number for a date": "day = 1",
    "a number for a timestamp": "at = 1",
    "a number for a boolean": "b = 1",
    "a boolean for a number": "id = true",
    "a FLOAT for a DOUBLE": "d = CAST(0.1 AS FLOAT)",
    "a DOUBLE for a FLOAT": "f = 0.1D",
    "NaN for a FLOAT": "f = double('NaN')",
    "infinity for a DOUBLE": "d = double('Infinity')",
    "an array for a text": "s = array(1, 2)",
    "a struct for a text": "s = named_struct('a', 1)",
    "an untyped NULL for each column": "tiny = NULL, m = NULL, b = NULL, day = NULL, at = NULL",
    "an overflow inside of the value": "id = 2147483647 + id",
    "a division by zero inside of the value": "d = 1 / (id - 1)",
    "a cast that fails inside of the value": "id = CAST('x' AS INT)",
    "a cast that is tried inside of the value": "id = TRY_CAST('x' AS INT)",
}
CASTS = [update(f"value: {name}", f"SET {value}", table=NUMBERS) for name, value in _CASTS.items()]

NESTED = Table(
    "t",
    "id INT, st STRUCT<lat: DOUBLE, lon: DOUBLE, at: STRUCT<day: STRING, n: INT>>, "
    "a ARRAY<INT>, m MAP<STRING, INT>, l ARRAY<STRUCT<x: INT, y: STRING>>",
    "(1, named_struct('lat', 1D, 'lon', 2D, 'at', named_struct('day', 'mo', 'n', 1)), "
    "array(1, 2), map('k', 1), array(named_struct('x', 1, 'y', 'a'))), "
    "(2, NULL, NULL, NULL, NULL), "
    "(3, named_struct('lat', NULL, 'lon', 4D, 'at', NULL), array(), map(), array())",
)
_FIELDS = {
    "one field": "st.lat = 9D",
    "two fields of a struct": "st.lat = 9D, st.lon = 8D",
    "a deep field": "st.at.n = 7",
    "two deep fields": "st.at.n = 7, st.at.day = 'tu'",
    "fields of two depths": "st.lat = 9D, st.at.day = 'tu'",
    "a field by its own value": "st.lat = st.lat + 1",
    "fields change places": "st.lat = st.lon, st.lon = st.lat",
    "a field becomes NULL": "st.lon = NULL",
    "a struct in a struct becomes NULL": "st.at = NULL",
    "a struct in a struct": "st.at = named_struct('day', 'we', 'n', 3)",
    "a field in upper case": "ST.LAT = 9D",
    "a field with the table before it": "t.st.lat = 9D",
    "a field and a column": "st.lat = 9D, id = id + 10",
    "a value that must be cast": "st.at.n = '5', st.lat = 3",
    "a value that overflows": "st.at.n = 3000000000",
    "a struct and its field": "st = named_struct('lat', 1D, 'lon', 1D, 'at', NULL), st.lat = 2D",
    "a field twice": "st.lat = 1D, st.lat = 2D",
    "a struct in a struct and its field": "st.at = NULL, st.at.n = 1",
    "an unknown field": "st.nope = 1",
    "an unknown deep field": "st.at.nope = 1",
    "a field of a number": "id.x = 1",
    "a field of an array": "a.x = 1",
    "a field of an array's structs": "l.x = 1",
    "an entry of a map": "m.k = 1",
}
FIELDS = [
    update(f"SET of a field: {name}", f"SET {value} WHERE id = 1", table=NESTED)
    for name, value in _FIELDS.items()
] + [
    update("SET of a field: the struct is NULL", "SET st.lat = 9D WHERE id = 2", table=NESTED),
    update("SET of a field: the outer struct is NULL", "SET st.at.n = 9 WHERE id = 2", table=NESTED),
    update("SET of a field: the inner struct is NULL", "SET st.at.n = 9 WHERE id = 3", table=NESTED),
    update("SET of a field: all rows", "SET st.at.day = 'su'", table=NESTED),
    update("SET of a field: NULL, where the struct is NULL", "SET st.lat = NULL WHERE id = 2", table=NESTED),
    update("SET of a field: a condition on a field", "SET st.lat = 0D WHERE st.at.day = 'mo'", table=NESTED),
]  # fmt: skip

_STRUCTS = {
    "fields in another order": "st = named_struct('lon', 20D, 'lat', 10D, 'at', NULL)",
    "fields in another case": "st = named_struct('LAT', 10D, 'LON', 20D, 'AT', NULL)",
    "a field is missing": "st = named_struct('lat', 10D, 'at', NULL)",
    "a field too many": "st = named_struct('lat', 10D, 'lon', 20D, 'at', NULL, 'more', 1)",
    "another name for a field": "st = named_struct('foo', 7D, 'lat', 8D, 'at', NULL)",
    "a deep field in another order": "st = named_struct('lat', 1D, 'lon', 2D, 'at', "
    "named_struct('n', 3, 'day', 'th'))",
    "a deep field is missing": "st = named_struct('lat', 1D, 'lon', 2D, 'at', "
    "named_struct('n', 3))",
    "fields that must be cast": "st = named_struct('lat', 1, 'lon', '2', 'at', NULL)",
    "a struct of NULLs": "st = named_struct('lat', NULL, 'lon', NULL, 'at', NULL)",
    "NULL": "st = NULL",
    "a number": "st = 1",
    "an array of another type": "a = array(1L, 2L)",
    "an array of texts": "a = array('x')",
    "an array with NULL": "a = array(1, NULL)",
    "an empty array": "a = array()",
    "a map of another type": "m = map('z', 9L)",
    "a map with a NULL value": "m = map('z', NULL)",
    "structs in an array, in another order": "l = array(named_struct('y', 'b', 'x', 2))",
    "structs in an array, one field missing": "l = array(named_struct('x', 2))",
    "an array made of itself": "a = array_append(a, 3)",
    "a struct made of itself": "st = named_struct('lon', st.lon, 'lat', st.lat, 'at', st.at)",
}
STRUCTS = [
    update(f"SET of a nested column: {name}", f"SET {value} WHERE id = 1", table=NESTED)
    for name, value in _STRUCTS.items()
]

PARTITIONS = [
    update("a partition is changed whole", "SET v = 'new' WHERE p = 'x'", table=PARTS),
    update("a partition of NULL is changed", "SET v = 'new' WHERE p IS NULL", table=PARTS),
    update("rows move to another partition", "SET p = 'y' WHERE id = 1", table=PARTS),
    update("rows move to a new partition", "SET p = 'z' WHERE p = 'x'", table=PARTS),
    update("rows move to the partition of NULL", "SET p = NULL WHERE id < 4", table=PARTS),
    update("rows leave the partition of NULL", "SET p = 'x' WHERE p IS NULL", table=PARTS),
    update("partition and column change places", "SET p = v, v = p", table=PARTS),
    update("a partition is its own value", "SET p = p, v = 'same'", table=PARTS),
    update("a partition's name is made of signs", "SET p = 'a/b=c %ä' WHERE id = 2", table=PARTS),
    update("a partition by an expression", "SET v = 'up' WHERE upper(p) = 'Y'", table=PARTS),
    update("a partition in a list", "SET v = 'in' WHERE p IN ('x', 'q')", table=PARTS),
    update("a partition not in a list with NULL", "SET v = 'in' WHERE p NOT IN ('x', NULL)", table=PARTS),
    update("a partition becomes a number", "SET p = id WHERE id < 3", table=PARTS),
]  # fmt: skip

OTHER = Table("o", "id INT, w STRING", "(1,'one'),(3,NULL),(NULL,'none'),(9,'nine')")


def by_iceberg(name: str, rest: str, **more: Any) -> Case:
    """An UPDATE with a subquery over ``o``, which Delta Lake refuses."""
    return Case(name, (T, OTHER), f"UPDATE t {rest}", oracle="iceberg", **more)


SUBQUERIES = [
    by_iceberg("subquery: IN", "SET v = 'in' WHERE id IN (SELECT id FROM o)"),
    by_iceberg("subquery: NOT IN where a row is NULL", "SET v = 'x' WHERE id NOT IN (SELECT id FROM o)"),
    by_iceberg("subquery: NOT IN without NULL",
               "SET v = 'x' WHERE id NOT IN (SELECT id FROM o WHERE id IS NOT NULL)"),
    by_iceberg("subquery: IN of nothing", "SET v = 'x' WHERE id IN (SELECT id FROM o WHERE false)"),
    by_iceberg("subquery: NOT IN of nothing", "SET v = 'x' WHERE v NOT IN (SELECT w FROM o WHERE false)"),
    by_iceberg("subquery: EXISTS", "SET v = 'x' WHERE EXISTS (SELECT 1 FROM o WHERE o.id = t.id)"),
    by_iceberg("subquery: NOT EXISTS", "SET v = 'x' WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.id = t.id)"),
    by_iceberg("subquery: EXISTS with another condition",
               "SET v = 'x' WHERE n > 10 AND EXISTS (SELECT 1 FROM o WHERE o.id = t.id)"),
    by_iceberg("subquery: a scalar in the condition", "SET v = 'max' WHERE id < (SELECT max(id) FROM o WHERE id < 9)"),
    by_iceberg("subquery: a scalar of nothing", "SET v = 'max' WHERE id < (SELECT max(id) FROM o WHERE false)"),
    by_iceberg("subquery: IN over the target itself", "SET v = 'own' WHERE n IN (SELECT max(n) FROM t)"),
    by_iceberg("subquery: two columns IN", "SET v = 'two' WHERE (id, v) IN (SELECT 1, 'a')"),
    by_iceberg("subquery: IN a list made by VALUES", "SET v = 'x' WHERE id IN (SELECT * FROM VALUES (1), (4))"),
    by_iceberg("subquery: IN or another condition", "SET v = 'x' WHERE id IN (SELECT id FROM o) OR n = 20"),
]  # fmt: skip


def from_source(
    name: str,
    rest: str,
    clause: str,
    on: str = "t.id = s.id",
    source: str = S,
    table: Table = T,
    **more: Any,
) -> Case:
    """An UPDATE … FROM, which is MERGE in Delta Lake."""
    return Case(name, (table,), f"UPDATE t {rest}", views={"s": source},
                peer=f"MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET {clause}", **more)  # fmt: skip


FROM = [
    from_source("FROM: one match each", "SET v = s.v FROM s WHERE t.id = s.id", "v = s.v",
                layouts=ALL_LAYOUTS),
    from_source("FROM: values of both sides", "SET n = t.n + s.n FROM s WHERE t.id = s.id", "n = t.n + s.n"),
    from_source("FROM: a condition on the target", "SET v = s.v FROM s WHERE t.id = s.id AND t.n > 10",
                "v = s.v", "t.id = s.id AND t.n > 10"),
    from_source("FROM: a condition on the source", "SET v = s.v FROM s WHERE t.id = s.id AND s.n > 11",
                "v = s.v", "t.id = s.id AND s.n > 11"),
    from_source("FROM: NULL keys do not match", "SET v = s.v FROM s WHERE t.id = s.id AND t.v = '10'", "v = s.v",
                "t.id = s.id AND t.v = '10'", values("NULL, 'n', 1", "1, 'o', 1"), ODD),
    from_source("FROM: NULL keys match by <=>", "SET v = s.v FROM s WHERE t.id <=> s.id AND t.n = 1", "v = s.v",
                "t.id <=> s.id AND t.n = 1", values("NULL, 'n', 1"), ODD),
    from_source("FROM: a row matches twice", "SET v = s.v FROM s WHERE t.id = s.id", "v = s.v",
                source=values("1, 'x', 1", "1, 'y', 2")),
    from_source("FROM: an empty source", "SET v = s.v FROM s WHERE t.id = s.id", "v = s.v",
                source=values("9, 'x', 1")),
    from_source("FROM: an alias of the target", "AS x SET v = s.v FROM s WHERE x.id = s.id", "v = s.v"),
    from_source("FROM: an alias of the source", "SET v = y.v FROM s AS y WHERE t.id = y.id", "v = s.v"),
    from_source("FROM: a subquery", "SET v = y.w FROM (SELECT id, upper(v) AS w FROM s) y WHERE t.id = y.id",
                "v = upper(s.v)"),
    from_source("FROM: a subquery with a list of columns",
                "SET v = y.b FROM (SELECT id, v FROM s) y (a, b) WHERE t.id = y.a", "v = s.v"),
    from_source("FROM: a name that both have", "SET v = v FROM s WHERE t.id = s.id", "v = v"),
    from_source("FROM: a key moves", "SET id = s.n FROM s WHERE t.id = s.id", "id = s.n", layouts=ALL_LAYOUTS),
    from_source("FROM: a value that must be cast", "SET n = s.v FROM s WHERE t.id = s.id", "n = s.v",
                source=values("1, '77', 1")),
    from_source("FROM: an unknown column", "SET v = s.nope FROM s WHERE t.id = s.id", "v = s.nope"),
]  # fmt: skip

CASES = [
    *CONDITIONS, *PLAIN, *CASTS, *FIELDS, *STRUCTS, *PARTITIONS, *SUBQUERIES, *FROM,
]  # fmt: skip
