"""Cases that acidsql answers in another way than the oracle, with the reasons."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """Cases that differ for one reason.

    Attributes:
        reason: The sentence that docs/comparison.md has, too.
        cases: The answer of acidsql by the case, ``topic: name``: the kind of an error
            (``answers.py``), or ``{"rows": [...]}``.
    """

    reason: str
    cases: dict[str, Any]


DIFFERENCES: list[Difference] = [
    Difference(
        "Values are stored by Spark's rules of store assignment in every statement. Delta "
        "Lake casts in UPDATE and MERGE, so that a text becomes a number, and a number a "
        "boolean.",
        {
            "evolution: merge: a value that does not fit": "TYPE",
            "merge_sources: star: values that must be cast": "TYPE",
            "merge_sources: types: a text that is a number": "TYPE",
            "merge_sources: types: a text that is none": "TYPE",
            "merge_sources: types: a text for a date": "TYPE",
            "merge_sources: types: a number for a boolean": "TYPE",
            "merge_sources: types, inserted: a text that is a number": "TYPE",
            "merge_sources: types, inserted: a text for a date": "TYPE",
            "merge_sources: types: without ANSI, a text that is no number": "TYPE",
            "update: value: a number for a timestamp": "TYPE",
            "update: value: a number for a boolean": "TYPE",
            "update: value: a boolean for a number": "TYPE",
            "update: value: an array for a text": "TYPE",
            "update: value: a struct for a text": "TYPE",
            "update: SET of a nested column: fields that must be cast": "TYPE",
            "update: SET of a nested column: an array of texts": "TYPE",
            "update: FROM: a value that must be cast": "TYPE",
        },
    ),
    Difference(
        "A CHECK constraint is broken by false, not by NULL, as the SQL standard and Hive "
        "have it. In Delta Lake, NULL breaks it, too.",
        {
            "insert: rule: CHECK of NULL": {"rows": [[1, "a", 1], [2, "x", None]]},
            "evolution: alter: a CHECK is dropped": {
                "rows": [[1, "a", 10], [2, "b", 20], [3, None, 30], [4, "d", None], [9, "z", 0]]
            },
        },
    ),
    Difference(
        "INSERT OVERWRITE of a partitioned table replaces the partitions that get rows, "
        "as in Hive. In Delta Lake it replaces all, or what PARTITION names, unless "
        "`spark.sql.sources.partitionOverwriteMode` is `dynamic`.",
        {
            "insert: overwrite: a partitioned table as a whole": {
                "rows": [[3, "c", "y"], [4, "d", "y"], [5, "e", None], [9, "v", "x"]]
            },
            "insert: overwrite: one static one, in static mode": {
                "rows": [[1, 1, "a"], [3, 2, "a"], [4, None, "a"], [9, 1, "b"]]
            },
            "insert: overwrite: PARTITION without a value, in static mode": {
                "rows": [[3, "c", "y"], [4, "d", "y"], [5, "e", None], [9, "v", "x"]]
            },
        },
    ),
    Difference(
        "A MERGE without WHEN MATCHED may match a row twice. Delta Lake refuses this if "
        "there is a WHEN NOT MATCHED BY SOURCE.",
        {
            "merge_clauses: a row matches twice: by source alone": {"rows": [[1, "a", 10]]},
            "merge_clauses: a row matches twice: insert and by source": {
                "rows": [
                    [1, "a", 10],
                    [2, "gone", 20],
                    [3, "gone", 30],
                    [4, "gone", None],
                    [9, "z", 13],
                ]
            },
        },
    ),
    Difference(
        "ON and the conditions of a MERGE may have subqueries. Delta Lake refuses them.",
        {
            "merge_sources: source: a subquery in ON": {
                "rows": [
                    [1, "x", 10],
                    [2, "b", 20],
                    [3, "y", None],
                    [3, None, 30],
                    [4, "d", None],
                    [5, "z", None],
                ]
            },
            "merge_sources: source: a subquery in a condition": {
                "rows": [[1, "x", 10], [2, "b", 20], [3, "y", 30], [4, "d", None]]
            },
        },
    ),
    Difference(
        "The values of a MERGE may be DEFAULT, and `INSERT *` gives a column that the "
        "source lacks its DEFAULT. Delta Lake refuses both.",
        {
            "insert: rule: DEFAULT in MERGE": {
                "rows": [[1, "none", 7], [3, "none", 7], [5, "none", 7], [6, "none", 7]]
            },
            "merge_sources: values: DEFAULT without a default": {
                "rows": [[1, None, 10], [2, "b", 20], [3, None, 30], [4, "d", None]]
            },
            "merge_sources: star: a default in a column that the source lacks": {
                "rows": [[7, "none", 5]]
            },
        },
    ),
    Difference(
        "INSERT in a MERGE needs no list of columns before VALUES. In Delta Lake it does.",
        {
            "merge_sources: values: an INSERT without a list": {
                "rows": [
                    [1, "a", 10],
                    [2, "b", 20],
                    [3, None, 30],
                    [4, "d", None],
                    [5, "z", 51],
                    [6, None, None],
                ]
            },
        },
    ),
    Difference(
        "`*` may stand in a function's arguments in SET, as in `struct(s.*)`. Delta Lake "
        "refuses it.",
        {
            "update: a struct of all columns as text": {
                "rows": [
                    [1, "a", 10],
                    [2, '{"id":2,"v":"b","n":20}', 20],
                    [3, None, 30],
                    [4, "d", None],
                ]
            },
            "merge_sources: values: a struct of the whole source": {
                "rows": [
                    [1, '{"id":1,"v":"x","n":11}', 10],
                    [2, "b", 20],
                    [3, '{"id":3,"v":"y","n":31}', 30],
                    [4, "d", None],
                ]
            },
        },
    ),
    Difference(
        "A name that both tables of DELETE … USING have is ambiguous. In Iceberg's "
        "EXISTS, it is the inner table's.",
        {
            "delete: USING: a name that both have": "AMBIGUOUS",
        },
    ),
    Difference(
        "`DELETE FROM t WHERE` is an error. In Spark, WHERE is then the table's alias, "
        "and all rows are deleted.",
        {
            "delete: the word WHERE without a condition": "PARSE",
        },
    ),
    Difference(
        "WITH SCHEMA EVOLUTION, an INSERT stores NULL for fields that the source lacks, "
        "as it does for columns. Delta Lake refuses it.",
        {
            "evolution: insert, nested: a new field, and one missing": {
                "rows": [
                    [1, {"a": 1, "b": {"c": 1}, "z": None}, [{"x": 1}], {"map": [["k", {"y": 1}]]}],
                    [2, None, None, None],
                    [7, {"a": 5, "b": None, "z": "new"}, [{"x": 5}], {"map": [["k", {"y": 5}]]}],
                ]
            },
            "evolution: insert, nested: a field is missing": {
                "rows": [
                    [1, {"a": 1, "b": {"c": 1}}, [{"x": 1}], {"map": [["k", {"y": 1}]]}],
                    [2, None, None, None],
                    [7, {"a": None, "b": {"c": 5}}, [{"x": 5}], {"map": [["k", {"y": 5}]]}],
                ]
            },
        },
    ),
    Difference(
        "WITH SCHEMA EVOLUTION, SET adds columns, but no field of a struct: `SET *` does "
        "that, or a whole struct as a value. Delta Lake adds the field.",
        {
            "evolution: merge, nested: a new field in SET": "UNRESOLVED",
        },
    ),
    Difference(
        "No column gets the type VOID. Delta Lake adds it WITH SCHEMA EVOLUTION.",
        {
            "evolution: merge: an untyped NULL as a new column": "UNSUPPORTED",
        },
    ),
    Difference(
        "A time after the last commit means the newest rows. Delta Lake refuses it.",
        {
            "history: time: by the function of now": {
                "rows": [[1, "a", 11], [3, None, 30], [4, "d", None], [9, "z", 90]]
            },
        },
    ),
    Difference(
        "RESTORE changes the rows that differ, and the feed of changes shows those. Delta "
        "Lake's feed shows all rows of the files that come back or go.",
        {
            "history: changes: RESTORE": {
                "rows": [
                    [1, "a", 0, "update_preimage"],
                    [1, "a", 10, "update_postimage"],
                    [2, "b", 20, "insert"],
                ]
            },
        },
    ),
    Difference(
        "Some mistakes have another name: DEFAULT within an expression is an unresolved "
        "column, a text as a version is a syntax error, a field of an array in SET cannot "
        "be assigned, a NOT NULL column that is left out breaks the constraint, a name "
        "twice in BY NAME is a column too many, and `merge()` without a clause is a wrong "
        "call.",
        {
            "insert: list: DEFAULT in an expression": "UNRESOLVED",
            "history: version: a text": "PARSE",
            "update: SET of a field: a field of an array": "ASSIGNMENT",
            "insert: list: a NOT NULL column is left out": "CONSTRAINT",
            "insert: by name: a name twice": "COLUMNS",
            "methods: merge_into: no clause": "CALL",
        },
    ),
]


@functools.cache
def answers() -> dict[str, Any]:
    """The answers of acidsql that differ, by the names of the cases."""
    return {name: own for difference in DIFFERENCES for name, own in difference.cases.items()}
