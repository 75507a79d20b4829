"""Runs a case in acidsql."""

from __future__ import annotations

import itertools
from typing import Any

from suite.case import Case, Table
from suite.runs import prepared, result, surroundings

# What a message of acidsql must not have: names of views and columns of its own, and of Java.
INTERNAL = ("__acidsql_", "org.apache.", "java.", "py4j")

_numbers = itertools.count()


def ask(acid: Any, case: Case, layout: str = "plain") -> dict[str, Any]:
    """The answer of acidsql, in a database of the case's own."""
    database = f"case_{next(_numbers)}"
    acid.sql(f"CREATE DATABASE {database}")
    acid.sql(f"USE {database}")

    def version(table: Table) -> int:
        counts = acid.last.counts  # a statement that changes columns alone has none
        return int(counts[-1].write_id) if counts else 0

    messages: list[str] = []

    def run() -> Any:
        try:
            if case.method is not None:
                return case.method(acid)
            return [acid.sql(fill(text)) for text in case.statements][-1]
        except Exception as error:
            messages.append(str(error))
            raise

    with surroundings(acid.spark, case):
        for place, table in enumerate(case.tables):
            acid.sql(table.acid_ddl(layout if place == 0 else "plain"))
            if table.rows:
                acid.sql(f"INSERT INTO {table.name} VALUES {table.rows}")
        fill = prepared(acid.sql, case, version)
        answer = result(run, lambda: acid.sql(fill(case.shown)))
    assert not [words for words in messages for name in INTERNAL if name in words]
    return answer
