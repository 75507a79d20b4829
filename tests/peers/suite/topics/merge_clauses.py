"""MERGE: which clause takes a row, and what it does."""

from __future__ import annotations

from suite.case import Case
from suite.tables import (
    ALL_LAYOUTS,
    EMPTY,
    NOTHING,
    NULLS,
    ODD,
    TWICE,
    merge,
    values,
)

UPDATE = "WHEN MATCHED THEN UPDATE SET v = s.v"
DELETE = "WHEN MATCHED THEN DELETE"
INSERT = "WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, s.v, s.n)"
GONE = "WHEN NOT MATCHED BY SOURCE THEN DELETE"
MARKED = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'gone'"

# Each way to put together one clause of each kind, or none.
_MATCHED = {
    "": "",
    "update": UPDATE,
    "delete": DELETE,
    "update if": "WHEN MATCHED AND s.n > 20 THEN UPDATE SET v = s.v, n = s.n",
    "delete if, else update": f"WHEN MATCHED AND t.v IS NULL THEN DELETE {UPDATE}",
}
_NOT_MATCHED = {
    "": "",
    "insert": INSERT,
    "insert if": "WHEN NOT MATCHED AND s.v IS NOT NULL THEN INSERT (v, id) VALUES (s.v, s.id)",
}
_BY_SOURCE = {
    "": "",
    "delete": GONE,
    "update": MARKED,
    "update if, else delete": "WHEN NOT MATCHED BY SOURCE AND t.n > 10 THEN UPDATE SET n = t.n + 1 "
    f"{GONE}",
}

TOGETHER = [
    merge(
        f"matched {one or 'left out'}, not matched {two or 'left out'}, "
        f"by source {three or 'left out'}",
        f"{matched} {not_matched} {by_source}",
        layouts=ALL_LAYOUTS if one.endswith("update") and two == "insert if" else ("plain",),
    )
    for one, matched in _MATCHED.items()
    for two, not_matched in _NOT_MATCHED.items()
    for three, by_source in _BY_SOURCE.items()
    if one or two or three
]

ORDER = [
    merge(
        "the first clause whose condition holds takes the row",
        "WHEN MATCHED AND t.id < 3 THEN UPDATE SET v = 'first' "
        "WHEN MATCHED AND t.id < 9 THEN UPDATE SET v = 'second'",
    ),
    merge(
        "a delete stands before an update of the same rows",
        "WHEN MATCHED AND t.id = 1 THEN DELETE WHEN MATCHED AND t.id = 1 THEN UPDATE SET v = 'no'",
    ),
    merge(
        "a condition of NULL goes on to the next clause",
        "WHEN MATCHED AND CAST(NULL AS BOOLEAN) THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'yes'",
    ),
    merge(
        "conditions that are NULL for some rows",
        "WHEN MATCHED AND t.v = 'a' THEN UPDATE SET v = 'was a' "
        "WHEN MATCHED AND NOT t.v = 'a' THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'unknown'",
    ),
    merge(
        "five clauses of one kind",
        " ".join(f"WHEN MATCHED AND t.id = {i} THEN UPDATE SET n = {i}00" for i in range(1, 6)),
    ),
    merge(
        "three inserts, by condition",
        "WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id, v) VALUES (s.id, 'five') "
        "WHEN NOT MATCHED AND s.id = 6 THEN INSERT (id, n) VALUES (s.id, 66) "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (-1)",
    ),
    merge(
        "three clauses by source, by condition",
        "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'two' "
        "WHEN NOT MATCHED BY SOURCE AND t.n IS NULL THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'never'",
    ),
    merge(
        "a clause without a condition that is not the last of its kind",
        "WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'x'",
    ),
    merge(
        "an insert without a condition that is not the last of its kind",
        f"{INSERT} WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id) VALUES (0)",
    ),
    merge(
        "a clause by source without a condition that is not the last of its kind",
        f"{GONE} WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'x'",
    ),
    merge("the insert stands before the matched clause", f"{INSERT} {UPDATE}"),
    merge("the clause by source stands before the others", f"{GONE} {UPDATE} {INSERT}"),
    merge("no clause at all", ""),
    merge(
        "BY TARGET is a longer word for not matched",
        "WHEN NOT MATCHED BY TARGET AND s.id = 5 THEN INSERT (id) VALUES (s.id)",
    ),
    merge("an update in a clause of not matched", "WHEN NOT MATCHED THEN UPDATE SET v = s.v"),
    merge("a delete in a clause of not matched", "WHEN NOT MATCHED THEN DELETE"),
    merge("an insert in a clause of matched", "WHEN MATCHED THEN INSERT (id) VALUES (1)"),
    merge(
        "an insert in a clause by source", "WHEN NOT MATCHED BY SOURCE THEN INSERT (id) VALUES (1)"
    ),
    merge(
        "a source clause that names the source",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v",
    ),
    merge("an insert that names the target", "WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)"),
    merge(
        "a condition of an insert that names the target",
        "WHEN NOT MATCHED AND t.id > 1 THEN INSERT (id) VALUES (s.id)",
    ),
    merge(
        "a condition by source that names the source",
        "WHEN NOT MATCHED BY SOURCE AND s.id > 1 THEN DELETE",
    ),
    merge("a condition that is no boolean", "WHEN MATCHED AND t.n THEN DELETE"),
    merge("a condition that is a text", "WHEN MATCHED AND 'true' THEN DELETE"),
    merge("an aggregate function in a condition", "WHEN MATCHED AND max(s.n) > 1 THEN DELETE"),
    merge(
        "a window function in a condition",
        "WHEN MATCHED AND row_number() OVER (ORDER BY s.n) > 1 THEN DELETE",
    ),
]

JOINS = [
    merge("rows match by an expression", f"{UPDATE} {INSERT}", on="t.id + 2 = s.id"),
    merge("rows match by a range", DELETE, on="t.id > s.id AND s.id = 3"),
    merge("rows match never", f"{UPDATE} {INSERT} {MARKED}", on="false"),
    merge("rows match by NULL", f"{UPDATE} {INSERT}", on="CAST(NULL AS BOOLEAN)"),
    merge("all rows match one row", UPDATE, on="true", source=values("1, 'all', 0")),
    merge("all rows match two rows", UPDATE, on="true", source=values("1, 'all', 0", "2, 'b', 1")),
    merge("rows match by the negation of a key", DELETE, on="NOT (t.id <> s.id)"),
    merge("rows match by one of two columns", UPDATE, on="t.id = s.id OR t.n + 1 = s.n"),
    merge("rows match with a part of the target only", f"{UPDATE} {INSERT}", on="t.id = s.id AND t.n > 10"),
    merge("rows match with a part of the source only", f"{UPDATE} {INSERT}", on="t.id = s.id AND s.n > 20"),
    merge(
        "what ON leaves out of the target is not matched by source",
        f"{UPDATE} {GONE}", on="t.id = s.id AND t.n > 10",
    ),
    merge("ON names the target alone", f"{UPDATE} {INSERT}", on="t.id = 1", source=values("8, 'o', 1")),
    merge("ON names the source alone", f"{UPDATE} {INSERT}", on="s.id = 1", source=values("8, 'o', 1")),
    merge("ON is no boolean", UPDATE, on="t.id + s.id"),
    merge("ON names a column that is in both", UPDATE, on="id = s.id"),
    merge("ON names a column that is in none", UPDATE, on="t.id = s.nope"),
    merge("ON has an aggregate function", UPDATE, on="t.id = max(s.id)"),
    merge("ON has a random number", UPDATE, on="t.id = s.id AND rand() < 2"),
    merge("rows match by a text and a number", UPDATE, on="t.v = s.v",
          table=ODD, source=values("1, 10, 0")),
    merge("rows match by texts in other case", UPDATE, on="upper(t.v) = upper(s.v)",
          source=values("1, 'A', 0")),
    merge("rows match by several columns", f"{DELETE} {INSERT}", on="t.id = s.id AND t.v = s.v",
          source=values("1, 'a', 1", "2, 'x', 1")),
]  # fmt: skip

ABSENT = [
    merge(
        f"NULL keys: {name}", clauses, source=NULLS, table=ODD, on=on, layouts=ALL_LAYOUTS
    )
    for name, clauses, on in [
        ("update by =", UPDATE, "t.id = s.id AND t.v = '10'"),
        ("update by <=>", UPDATE, "t.id <=> s.id AND t.v <=> 'a'"),
        ("insert by =", INSERT, "t.id = s.id"),
        ("insert by <=>", INSERT, "t.id <=> s.id"),
        ("delete by =", DELETE, "t.id = s.id"),
        ("delete by <=>", DELETE, "t.id <=> s.id"),
        ("by source and =", GONE, "t.id = s.id"),
        ("by source and <=>", MARKED, "t.id <=> s.id"),
        ("all kinds by =", f"WHEN MATCHED THEN DELETE {INSERT} {MARKED}", "t.id = s.id"),
        ("all kinds by <=>", f"WHEN MATCHED THEN DELETE {INSERT} {MARKED}", "t.id <=> s.id"),
    ]
] + [
    merge("a value is set to NULL", "WHEN MATCHED THEN UPDATE SET v = NULL, n = NULL"),
    merge("a key is set to NULL", "WHEN MATCHED THEN UPDATE SET id = NULL", layouts=ALL_LAYOUTS),
    merge("NULL is inserted into all columns", "WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (NULL, NULL, NULL)"),
    merge("a source of NULLs alone", f"{UPDATE} {INSERT}", source="SELECT CAST(NULL AS INT) AS id, CAST(NULL AS STRING) AS v, CAST(NULL AS INT) AS n"),
    merge("an untyped NULL in the source", f"{UPDATE} {INSERT}", source="SELECT 1 AS id, NULL AS v, NULL AS n"),
]  # fmt: skip

TWO_SOURCES = [
    merge("a row matches twice: update", UPDATE, source=TWICE),
    merge("a row matches twice: delete", DELETE, source=TWICE),
    merge("a row matches twice: delete with an insert", f"{DELETE} {INSERT}", source=TWICE),
    merge("a row matches twice: insert alone", INSERT, source=TWICE),
    merge("a row matches twice: by source alone", GONE, source=TWICE),
    merge("a row matches twice: insert and by source", f"{INSERT} {MARKED}", source=TWICE),
    merge(
        "a row matches twice: a condition leaves one row",
        "WHEN MATCHED AND s.n = 12 THEN UPDATE SET v = s.v", source=TWICE,
    ),
    merge(
        "a row matches twice: a condition leaves none",
        "WHEN MATCHED AND s.n = 99 THEN UPDATE SET v = s.v", source=TWICE,
    ),
    merge(
        "a row matches twice: update by one, delete by the other",
        "WHEN MATCHED AND s.n = 12 THEN UPDATE SET v = s.v WHEN MATCHED THEN DELETE", source=TWICE,
    ),
    merge(
        "a row matches twice: a conditional delete of both",
        "WHEN MATCHED AND s.n > 10 THEN DELETE", source=TWICE,
    ),
    merge(
        "a row matches twice: a conditional delete of one",
        "WHEN MATCHED AND s.n > 11 THEN DELETE", source=TWICE,
    ),
    merge(
        "a row matches twice: equal rows of the source", UPDATE,
        source=values("1, 'x', 11", "1, 'x', 11"),
    ),
    merge("a row matches twice: ON leaves one row", UPDATE, source=TWICE, on="t.id = s.id AND s.n = 12"),
    merge("a row matches twice: the source is made distinct", UPDATE,
          source="SELECT DISTINCT * FROM VALUES (1,'x',11),(1,'x',11) AS s(id, v, n)"),
    merge("a row matches twice: the source is grouped", UPDATE,
          source="SELECT id, max(v) AS v, max(n) AS n FROM VALUES (1,'x',11),(1,'y',12) AS s(id, v, n) GROUP BY id"),
    merge("rows of one key in the target: update", UPDATE, table=ODD, source=values("1, 'new', 0")),
    merge("rows of one key in the target: delete", DELETE, table=ODD, source=values("1, 'new', 0")),
    merge("rows of one key in the source are all inserted", INSERT, source=values("8, 'a', 1", "8, 'a', 1")),
]  # fmt: skip

NONE = [
    merge("an empty source: update and insert", f"{UPDATE} {INSERT}", source=NOTHING),
    merge("an empty source: by source", GONE, source=NOTHING, layouts=ALL_LAYOUTS),
    merge("an empty source: by source with a condition",
          "WHEN NOT MATCHED BY SOURCE AND t.n > 10 THEN DELETE", source=NOTHING),
    merge("an empty target: update and insert", f"{UPDATE} {INSERT}", table=EMPTY, layouts=ALL_LAYOUTS),
    merge("an empty target: by source", GONE, table=EMPTY),
    merge("an empty target: all kinds", f"{DELETE} {INSERT} {MARKED}", table=EMPTY),
    merge("an empty target and an empty source", f"{DELETE} {INSERT} {MARKED}", table=EMPTY, source=NOTHING),
    merge("no row is changed", "WHEN MATCHED AND false THEN DELETE"),
    merge("each value stays as it is", "WHEN MATCHED THEN UPDATE SET v = t.v"),
]  # fmt: skip

CASES: list[Case] = [*TOGETHER, *ORDER, *JOINS, *ABSENT, *TWO_SOURCES, *NONE]
