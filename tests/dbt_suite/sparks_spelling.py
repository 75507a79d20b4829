"""The suite's own tables are made by PostgreSQL's SQL. This is how Spark spells the same."""

from __future__ import annotations

import re

SPELLINGS = (
    # The name of the database, which Spark's relations have not.
    (re.compile(r"(\bNone|`None`)\."), ""),
    (re.compile(r"\bfrom \."), "from "),
    (re.compile(r"\bTIMESTAMP WITHOUT TIME ZONE\b"), "TIMESTAMP"),
    (re.compile(r" TEXT\b"), " STRING"),
    (re.compile(r"::text\b"), "::string"),
    (re.compile(r'\("seed_id","first_name","email","ip_address","birthday"\)'), ""),
    # In PostgreSQL, old rows get the DEFAULT of a new column.
    (re.compile(r"(add column \w+ VARCHAR\(50\) default '\w+')"), r"\1 with values"),
)


def as_spark_spells(sql: str) -> str:
    """Return a text of the suite's as Spark spells it."""
    for pattern, replacement in SPELLINGS:
        sql = pattern.sub(replacement, sql)
    return sql
