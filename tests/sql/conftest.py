"""What the tests of the language share: a small world of tables and settings, Spark's parser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acidsql.sql.parser import parse
from acidsql.sql.statements import Statement

ACID = {("t",), ("t2",), ("db", "t"), ("my t",)}


def is_acid(parts: tuple[str, ...]) -> bool:
    """The tests' catalog: t, t2, db.t and `my t` are ours."""
    return tuple(part.lower() for part in parts) in ACID


def is_setting(name: str) -> bool:
    """The tests' settings."""
    return name in ("hive.txn.timeout", "acidsql.values.max.rows")


@pytest.fixture(scope="session")
def read() -> Callable[..., Statement]:
    """``parse`` over the tests' catalog and settings."""

    def parse_here(text: str, **keywords: Any) -> Statement:
        return parse(text, **{"is_acid": is_acid, "is_setting": is_setting, **keywords})

    return parse_here


@pytest.fixture(scope="session")
def catalyst(spark: Any) -> Callable[[str], str | None]:
    """Spark's plan of a text as Spark prints it; None where Spark does not parse it."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def plan(text: str) -> str | None:
        try:
            return str(parser.parsePlan(text).toString())
        except Exception:
            return None

    return plan


@pytest.fixture(scope="session")
def keywords(spark: Any) -> list[str]:
    """All the words that Spark calls keywords."""
    return sorted(row[0] for row in spark.sql("SELECT keyword FROM sql_keywords()").collect())
