"""The statements of the oracle's test, as the methods that have PySpark's names."""

from __future__ import annotations

from typing import Any

from model import Clause, Condition, Row, text

SCHEMA = "id INT, v STRING, n INT, p STRING"


def frame(acid: Any, rows: list[Row]) -> Any:
    """Rows as a DataFrame."""
    return acid.spark.createDataFrame(rows, SCHEMA)


def counts_by_method(acid: Any, name: str, kind: str, what: list[Any]) -> tuple[int, int, int]:
    """Run a statement, and return the numbers of rows that it inserted, updated and deleted."""
    row = _run(acid, name, kind, *what).collect()[0]
    return row.num_inserted_rows, row.num_updated_rows, row.num_deleted_rows


def _run(acid: Any, name: str, kind: str, *what: Any) -> Any:
    match kind:
        case "delete":
            return acid.delete(name, what[0].sql())
        case "update":
            test, v, plus = what
            value = "NULL" if v is None else f"'{v}'"
            return acid.update(name, {"v": value, "n": f"n + {plus}"}, test.sql())
        case "move":
            test, p = what
            return acid.update(name, {"p": text(p), "id": "id + 1"}, test.sql())
        case "merge":
            return merge(acid, name, *what)
        case "overwrite":
            return acid.insert_into(name, frame(acid, what[0]), overwrite=True)
    return acid.insert_into(name, frame(acid, what[0]), by_name=kind == "values")


def merge(acid: Any, name: str, source: list[Row], clauses: list[Clause]) -> Any:
    """A MERGE by its builder."""
    rows = frame(acid, source).alias("s")
    builder = acid.merge_into(rows, name, f"{name}.id = s.id")
    for clause in clauses:
        builder = _added(builder, name, clause)
    return builder.merge()


def _added(builder: Any, name: str, clause: Clause) -> Any:
    test: Condition | None = clause.test
    side = "s." if clause.when == "NOT MATCHED" else f"{name}."
    condition = None if test is None else test.sql(side)
    if clause.when == "NOT MATCHED":
        return builder.whenNotMatched(condition).insertAll()
    is_matched = clause.when == "MATCHED"
    when = builder.whenMatched if is_matched else builder.whenNotMatchedBySource
    match clause.action:
        case "delete":
            return when(condition).delete()
        case "move":
            return when(condition).update({"p": "s.p", "v": "s.v", "n": "7"})
    return when(condition).update({"v": "s.v" if is_matched else "'gone'", "n": "7"})
