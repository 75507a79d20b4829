"""Runs a case in an engine, and returns its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from suite.answers import answer
from suite.case import Case, Table

WRAPPERS = ("TASK_WRITE_FAILED", "FAILED_", "_LEGACY_ERROR_TEMP", "INTERNAL_ERROR")
COUNTS = ("num_affected_rows", "num_inserted_rows", "num_updated_rows", "num_deleted_rows")


@contextmanager
def surroundings(spark: Any, case: Case) -> Iterator[None]:
    """The temporary views and the settings of a case."""
    before = {name: spark.conf.get(name, None) for name in case.conf}
    for name, value in case.conf.items():
        spark.conf.set(name, value)
    for name, query in case.views.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
    try:
        yield
    finally:
        for name in case.views:
            spark.catalog.dropTempView(name)
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def prepared(sql: Callable[[str], Any], case: Case, version: Callable[[Table], int]) -> Filled:
    """Run the statements before the one in question."""
    numbers: dict[str, str] = {}
    has_versions = "{v" in f"{case.statement} {case.peer} {case.query} {case.peer_query}"
    fill = Filled(numbers)
    for step, text in enumerate(case.setup, 1):
        sql(fill(text))
        if has_versions:
            numbers[f"{{v{step}}}"] = str(version(case.tables[0]))
    return fill


class Filled:
    """Puts the numbers of versions into texts."""

    def __init__(self, numbers: Mapping[str, str]) -> None:
        self.numbers = numbers

    def __call__(self, text: str) -> str:
        for name, value in self.numbers.items():
            text = text.replace(name, value)
        return text


def result(run: Callable[[], Any], show: Callable[[], Any]) -> dict[str, Any]:
    """The answer: the rows and counts, or the error's condition, and the rows that it has left.

    Args:
        run: Runs the statements, and returns the DataFrame of the last one.
        show: Returns the DataFrame with the rows.
    """
    try:
        counts = _counts(run())
    except Exception as error:
        left = {"rows": answer(show())["rows"]} if _may_have_changed(error) else {}
        return {"error": condition_of(error), **left}
    try:
        return {**answer(show()), **({"counts": counts} if counts else {})}
    except Exception as error:
        return {"error": condition_of(error)}


def condition_of(error: BaseException) -> str:
    """The name of an error's condition. An error around another one has that of the inner one."""
    # Spark does not know all names of Delta Lake's errors.
    if unnamed := re.search(r"Cannot find main error class '(\w+)'", str(error)):
        return unnamed[1]
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    names = [name for name in re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", str(error)) if "_" in name]
    if condition and not condition.startswith(WRAPPERS):
        return str(condition)
    return names[-1] if names else condition or type(error).__name__


def _may_have_changed(error: BaseException) -> bool:
    """Whether a statement failed while it ran, not before."""
    before = {"SqlError", "ParseException", "AnalysisException"}
    return not any(kind.__name__ in before for kind in type(error).__mro__)


def _counts(done: Any) -> dict[str, int]:
    names = getattr(done, "columns", [])
    if "num_affected_rows" not in names:
        return {}
    row = done.first()
    # Delta Lake says -1 for files that it drops unread.
    return {name: row[name] for name in COUNTS if name in names and row[name] >= 0}
