"""MERGE: what may be its source, stars, values and their types, nested columns."""

from __future__ import annotations

from suite.case import Case, Table
from suite.tables import ALL_LAYOUTS, EMPTY, ODD, PARTS, T, merge, values
from suite.topics.update import NESTED, NUMBERS

UPSERT = (
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
)
STAR = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
ROWS = "(1,'x',11),(3,'y',31),(5,'z',51)"
SOURCE = Table("src", "id INT, v STRING, n INT", ROWS)


def using(
    name: str,
    source: str,
    on: str = "t.id = s.id",
    clauses: str = UPSERT,
    *,
    before: str = "",
    table: Table = T,
    peer: str = "",
    **more: object,
) -> Case:
    """A MERGE of a source that the statement spells out, or of the table ``src``."""
    text = f"{before}MERGE INTO t USING {source} ON {on} {clauses}"
    return Case(name, (table, SOURCE), text, peer=peer and f"MERGE INTO t USING {peer} AS s ON {on} {clauses}", **more)  # type: ignore[arg-type]  # fmt: skip


SOURCES = [
    using("source: a table", "src AS s", layouts=ALL_LAYOUTS),
    using("source: a table without an alias", "src", "t.id = src.id", "WHEN MATCHED THEN UPDATE SET v = src.v"),
    using("source: an alias without AS", "src s"),
    using("source: a query", "(SELECT id, upper(v) AS v FROM src WHERE n > 20) AS s"),
    using("source: a query with a join", "(SELECT a.id, b.v FROM src a JOIN src b ON a.id = b.id + 2) AS s"),
    using("source: a query with GROUP BY", "(SELECT n % 2 AS id, max(v) AS v FROM src GROUP BY 1) AS s"),
    using("source: a query with DISTINCT", "(SELECT DISTINCT 1 AS id, 'same' AS v FROM src) AS s"),
    using("source: a UNION", "(SELECT id, v FROM src UNION ALL SELECT 9, 'nine') AS s"),
    using("source: a query with a window",
          "(SELECT id, v FROM (SELECT *, row_number() OVER (ORDER BY n DESC) AS r FROM src) WHERE r = 1) AS s"),
    using("source: a query with LIMIT", "(SELECT * FROM src ORDER BY id LIMIT 1) AS s"),
    using("source: VALUES", "(SELECT * FROM VALUES (1, 'in'), (8, 'out') AS q(id, v)) AS s"),
    using("source: VALUES with names", "(VALUES (1, 'in'), (8, 'out')) AS s(id, v)",
          peer="(SELECT * FROM VALUES (1, 'in'), (8, 'out') AS q(id, v))"),
    using("source: a WITH inside", "(WITH x AS (SELECT id, v FROM src WHERE id > 1) SELECT * FROM x) AS s"),
    using("source: a WITH before MERGE", "x AS s", before="WITH x AS (SELECT id, v FROM src WHERE id > 1) ",
          peer="(SELECT id, v FROM src WHERE id > 1)"),
    using("source: a WITH with the name of a table", "src AS s", before="WITH src AS (SELECT 1 AS id, 'cte' AS v) ",
          peer="(SELECT 1 AS id, 'cte' AS v)"),
    using("source: a WITH with the name of the target", "t AS s", "t.id = s.id",
          before="WITH t AS (SELECT 1 AS id, 'cte' AS v) ", peer="(SELECT 1 AS id, 'cte' AS v)"),
    using("source: a WITH of a WITH", "y AS s",
          before="WITH x AS (SELECT * FROM src), y AS (SELECT id, concat(v, v) AS v FROM x) ",
          peer="(SELECT id, concat(v, v) AS v FROM src)"),
    using("source: the target itself", "t AS s", clauses="WHEN MATCHED THEN UPDATE SET v = concat(s.v, '!')", layouts=ALL_LAYOUTS),
    using("source: the target itself, by another column", "t AS s", "t.n = s.n + 10",
          "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE"),
    using("source: the target itself, all inserted", "(SELECT id + 10 AS id, v, n FROM t) AS s", clauses=STAR),
    using("source: the target itself, grouped", "(SELECT max(id) AS id, 'max' AS v FROM t) AS s"),
    using("source: the target joined with another table", "(SELECT t.id, src.v FROM t JOIN src ON t.id = src.id) AS s"),
    using("source: one without a match in any partition", "src AS s", "t.id = s.id AND t.p = s.v", table=PARTS,
          clauses="WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'new', s.v)"),
    using("source: a table that does not exist", "missing AS s"),
    using("source: one name for both sides", "src AS t", "t.id = t.id", "WHEN MATCHED THEN DELETE"),
    using("source: a subquery in ON", "src AS s", "t.id = s.id AND t.id IN (SELECT 1)"),
    using("source: a subquery in a condition", "src AS s",
          clauses="WHEN MATCHED AND EXISTS (SELECT 1) THEN UPDATE SET v = s.v"),
    using("source: a scalar subquery in a value", "src AS s",
          clauses="WHEN MATCHED THEN UPDATE SET n = (SELECT max(n) FROM src)"),
    using("source: columns with dots in their names", "(SELECT id AS `k.1`, v AS `a b` FROM src) AS s", "t.id = s.`k.1`",
          "WHEN MATCHED THEN UPDATE SET v = s.`a b`"),
    using("source: names in other case", "src AS S", "T.ID = S.Id", "WHEN MATCHED THEN UPDATE SET V = S.V"),
    Case("source: the target has an alias", (T, SOURCE),
        "MERGE INTO t AS x USING src AS s ON x.id = s.id WHEN MATCHED THEN UPDATE SET x.v = concat(x.v, s.v)"),
    Case("source: the target's name beside its alias", (T, SOURCE),
         "MERGE INTO t AS x USING src AS s ON t.id = s.id WHEN MATCHED THEN DELETE"),
]  # fmt: skip

STARS = [
    merge("star: the same columns", STAR, layouts=ALL_LAYOUTS),
    merge("star: another order", STAR, source="SELECT n, v, id FROM VALUES (1,'x',11),(5,'z',51) AS q(id, v, n)", layouts=ALL_LAYOUTS),
    merge("star: other case", STAR, source="SELECT id AS ID, v AS V, n AS N FROM VALUES (1,'x',11),(5,'z',51) AS q(id, v, n)"),
    merge("star: a column too many", STAR, source="SELECT *, 1 AS more FROM VALUES (1,'x',11),(5,'z',51) AS q(id, v, n)"),
    merge("star: a column is missing for UPDATE", "WHEN MATCHED THEN UPDATE SET *", source="SELECT 1 AS id, 'x' AS v"),
    merge("star: a column is missing for INSERT", "WHEN NOT MATCHED THEN INSERT *", source="SELECT 7 AS id, 'x' AS v"),
    merge("star: UPDATE alone", "WHEN MATCHED THEN UPDATE SET *"),
    merge("star: INSERT alone", "WHEN NOT MATCHED THEN INSERT *"),
    merge("star: INSERT with a condition", "WHEN NOT MATCHED AND s.v IS NOT NULL THEN INSERT *"),
    merge("star: UPDATE with a condition, else DELETE", "WHEN MATCHED AND s.n > 20 THEN UPDATE SET * WHEN MATCHED THEN DELETE"),
    merge("star: UPDATE beside a list of values", "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"),
    merge("star: into an empty table", STAR, table=EMPTY),
    merge("star: NULL in the source replaces values", "WHEN MATCHED THEN UPDATE SET *", source=values("1, NULL, NULL")),
    merge("star: values that must be cast", STAR, source="SELECT 1L AS id, 5 AS v, '12' AS n"),
    merge("star: a value that does not fit", STAR, source="SELECT 1 AS id, 'x' AS v, 3000000000 AS n"),
    merge("star: a partitioned table", STAR, table=PARTS, on="t.id = s.id",
          source=values("1, 'x', 'y'", "5, 'z', NULL", "8, 'n', 'new'", names="id, v, p")),
    merge("star: by source", "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *"),
    merge("star: a default in a column that the source lacks", "WHEN NOT MATCHED THEN INSERT *",
          table=Table("t", "id INT, v STRING DEFAULT 'none', n INT"), source="SELECT 7 AS id, 5 AS n"),
]  # fmt: skip

SETS = [
    merge("values: an expression of both sides", "WHEN MATCHED THEN UPDATE SET n = t.n * 100 + s.n"),
    merge("values: columns change places", "WHEN MATCHED THEN UPDATE SET id = t.n, n = t.id", layouts=ALL_LAYOUTS),
    merge("values: CASE over both sides", "WHEN MATCHED THEN UPDATE SET v = CASE WHEN s.n > t.n THEN s.v ELSE t.v END"),
    merge("values: the greater one, NULL beside it", "WHEN MATCHED THEN UPDATE SET n = greatest(t.n, s.n)", on="t.id = s.id OR s.n IS NULL AND t.id = 4"),
    merge("values: a column twice", "WHEN MATCHED THEN UPDATE SET v = 'a', v = 'b'"),
    merge("values: a column twice in an INSERT", "WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)"),
    merge("values: too few in an INSERT", "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id)"),
    merge("values: too many in an INSERT", "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id, s.v)"),
    merge("values: an INSERT without a list", "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.n)"),
    merge("values: an unknown column in SET", "WHEN MATCHED THEN UPDATE SET nope = 1"),
    merge("values: an unknown column in INSERT", "WHEN NOT MATCHED THEN INSERT (id, nope) VALUES (1, 2)"),
    merge("values: an unknown column of the source", "WHEN MATCHED THEN UPDATE SET v = s.nope"),
    merge("values: a name that both have in SET", "WHEN MATCHED THEN UPDATE SET v = v"),
    merge("values: a name that both have in INSERT", "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (id, v)"),
    merge("values: a name that both have in a condition of INSERT", "WHEN NOT MATCHED AND id > 5 THEN INSERT (id) VALUES (s.id)"),
    merge("values: a name that both have by source", "WHEN NOT MATCHED BY SOURCE AND id = 2 THEN UPDATE SET v = upper(v)"),
    merge("values: a name that both have in a condition", "WHEN MATCHED AND n > 11 THEN DELETE"),
    merge("values: a name that one has", "WHEN MATCHED THEN UPDATE SET v = w", source="SELECT 1 AS k, 'w' AS w", on="id = k"),
    merge("values: a name that one has in INSERT", "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, w)", source="SELECT 8 AS k, 'w' AS w", on="id = k"),
    merge("values: the target's name before a column of SET", "WHEN MATCHED THEN UPDATE SET t.v = s.v"),
    merge("values: the source's name before a column of SET", "WHEN MATCHED THEN UPDATE SET s.v = 'x'"),
    merge("values: the target's name before a column of INSERT", "WHEN NOT MATCHED THEN INSERT (t.id) VALUES (s.id)"),
    merge("values: an aggregate function", "WHEN MATCHED THEN UPDATE SET n = max(s.n)"),
    merge("values: DEFAULT without a default", "WHEN MATCHED THEN UPDATE SET v = DEFAULT"),
    merge("values: a struct of the whole source", "WHEN MATCHED THEN UPDATE SET v = to_json(struct(s.*))"),
    merge("values: the partition column moves rows", "WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *",
          table=PARTS, source=values("1, 'q', 'y'", "3, 'q', NULL", "9, 'q', 'x'", names="id, v, p")),
    merge("values: ON equates the partition", "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
          table=PARTS, on="t.p = s.p AND t.id = s.id", source=values("1, 'q', 'x'", "3, 'q', 'x'", "5, 'q', NULL", names="id, v, p")),
    merge("values: ON equates the partition, by <=>", "WHEN MATCHED THEN UPDATE SET v = s.v",
          table=PARTS, on="t.p <=> s.p AND t.id = s.id", source=values("1, 'q', 'x'", "5, 'q', NULL", names="id, v, p")),
    merge("values: ON equates the partition, rest by source", "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'rest'",
          table=PARTS, on="t.p = s.p AND t.id = s.id", source=values("1, 'q', 'x'", names="id, v, p")),
    merge("values: ON names a partition by a literal", "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
          table=PARTS, on="t.p = 'x' AND t.id = s.id", source=values("1, 'q', 'x'", "3, 'q', 'y'", names="id, v, p")),
]  # fmt: skip

_CASTS = {
    "a BIGINT that fits": ("id", "7L"),
    "a BIGINT too large": ("id", "3000000000"),
    "a text that is a number": ("id", "'7'"),
    "a text that is none": ("id", "'x'"),
    "a DOUBLE": ("id", "2.7D"),
    "a number for a text": ("s", "5"),
    "a decimal that is rounded": ("m", "1.005"),
    "a decimal too large": ("m", "1234.5"),
    "a text for a date": ("day", "'2024-02-02'"),
    "a timestamp for a date": ("day", "TIMESTAMP '2024-02-29 10:00:00'"),
    "a number for a boolean": ("b", "1"),
    "a struct for a number": ("id", "struct(1)"),
    "an INT too large for a TINYINT": ("tiny", "200"),
}
CASTS = [
    merge(f"types: {name}", f"WHEN MATCHED THEN UPDATE SET {column} = s.x", table=NUMBERS,
          source=f"SELECT 1 AS k, {value} AS x", on="t.big = s.k")
    for name, (column, value) in _CASTS.items()
] + [
    merge(f"types, inserted: {name}", f"WHEN NOT MATCHED THEN INSERT (big, {column}) VALUES (s.k, s.x)", table=NUMBERS,
          source=f"SELECT 2 AS k, {value} AS x", on="t.big = s.k")
    for name, (column, value) in list(_CASTS.items())[:9:2]
] + [
    merge("types: without ANSI, an INT too large", "WHEN MATCHED THEN UPDATE SET tiny = s.x", table=NUMBERS,
          source="SELECT 1 AS k, 200 AS x", on="t.big = s.k", conf={"spark.sql.ansi.enabled": "false"}),
    merge("types: without ANSI, a text that is no number", "WHEN MATCHED THEN UPDATE SET id = s.x", table=NUMBERS,
          source="SELECT 1 AS k, 'x' AS x", on="t.big = s.k", conf={"spark.sql.ansi.enabled": "false"}),
]  # fmt: skip

_POINT = "named_struct('lat', 5D, 'lon', 6D, 'at', named_struct('day', 'su', 'n', 9))"
_MIXED = "named_struct('at', named_struct('n', 9, 'day', 'su'), 'lon', 6D, 'lat', 5D)"
_REST = "array(7) AS a, map('z', 1) AS m, array(named_struct('x', 1, 'y', 'q')) AS l"
_MIXED_REST = "array(7) AS a, map('z', 1) AS m, array(named_struct('y', 'q', 'x', 1)) AS l"
STRUCTS = [
    merge(f"nested: {name}", clauses, table=NESTED, source=f"SELECT explode(array(1, 7)) AS id, {source}")
    for name, clauses, source in [
        ("star", STAR, f"{_POINT} AS st, {_REST}"),
        ("star, fields in another order", STAR, f"{_MIXED} AS st, {_MIXED_REST}"),
        ("star, a field is missing", STAR, f"named_struct('lat', 5D, 'lon', 6D) AS st, {_REST}"),
        ("star, a field too many", STAR, f"named_struct('lat', 5D, 'lon', 6D, 'at', NULL, 'up', 1) AS st, {_REST}"),
        ("star, a struct that is NULL", STAR, f"NULL AS st, {_REST}"),
        ("a struct is set", "WHEN MATCHED THEN UPDATE SET st = s.st", f"{_POINT} AS st"),
        ("a struct in another order is set", "WHEN MATCHED THEN UPDATE SET st = s.st", f"{_MIXED} AS st"),
        ("a struct without a field is set", "WHEN MATCHED THEN UPDATE SET st = s.st", "named_struct('lon', 6D) AS st"),
        ("a struct in another order is inserted", "WHEN NOT MATCHED THEN INSERT (id, st) VALUES (s.id, s.st)", f"{_MIXED} AS st"),
        ("a field is set", "WHEN MATCHED THEN UPDATE SET st.lat = s.x", "3D AS x"),
        ("a deep field is set", "WHEN MATCHED THEN UPDATE SET st.at.n = s.x, st.lon = t.st.lat", "3 AS x"),
        ("a field is set by a field", "WHEN MATCHED THEN UPDATE SET st.at.day = s.q.r", "named_struct('r', 'fr') AS q"),
        ("an unknown field is set", "WHEN MATCHED THEN UPDATE SET st.nope = 1", "1 AS x"),
        ("a field by source", "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET st.lat = 0D", "1 AS x"),
        ("a field in INSERT", "WHEN NOT MATCHED THEN INSERT (id, st.lat) VALUES (s.id, 1D)", "1 AS x"),
        ("a field in the condition", "WHEN MATCHED AND t.st.at.day = 'mo' THEN DELETE", "1 AS x"),
        ("an array is set", "WHEN MATCHED THEN UPDATE SET a = s.x", "array(1L, NULL) AS x"),
        ("structs of an array in another order are set", "WHEN MATCHED THEN UPDATE SET l = s.x", "array(named_struct('y', 'q', 'x', 1)) AS x"),
        ("a map is set", "WHEN MATCHED THEN UPDATE SET m = s.x", "map('a', 1, 'b', NULL) AS x"),
    ]
] + [
    merge("nested: ON a field", "WHEN MATCHED THEN DELETE", table=NESTED, on="t.st.lat = s.x", source="SELECT 1D AS x"),
    merge("nested: ON a whole struct", "WHEN MATCHED THEN DELETE", table=NESTED, on="t.st.at = s.x",
          source="SELECT named_struct('day', 'mo', 'n', 1) AS x"),
]  # fmt: skip

ORDER = [
    Case("in turn: the same MERGE twice", (T, SOURCE), (f"MERGE INTO t USING src AS s ON t.id = s.id {STAR}",) * 2, layouts=ALL_LAYOUTS),
    Case("in turn: MERGE after UPDATE and DELETE", (T, SOURCE), f"MERGE INTO t USING src AS s ON t.id = s.id {STAR}",
         setup=("UPDATE t SET id = 5 WHERE id = 2", "DELETE FROM t WHERE id = 1"), layouts=ALL_LAYOUTS),
    Case("in turn: MERGE, DELETE what it inserted, MERGE", (T, SOURCE),
         (f"MERGE INTO t USING src AS s ON t.id = s.id {STAR}", "DELETE FROM t WHERE id = 5",
          f"MERGE INTO t USING src AS s ON t.id = s.id {STAR}"), layouts=ALL_LAYOUTS),
    Case("in turn: MERGE into a table with equal rows", (ODD, SOURCE),
         "MERGE INTO t USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE",
         setup=("INSERT INTO t SELECT * FROM t",), layouts=ALL_LAYOUTS),
]  # fmt: skip
CASES = [*SOURCES, *STARS, *SETS, *CASTS, *STRUCTS, *ORDER]
