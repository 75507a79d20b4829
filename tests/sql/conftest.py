"""Fixtures of the tests of the language: a few tables and settings, and Spark's parser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acidsql.sql.parsed.statements import Statement
from acidsql.sql.parser import parse

ACID = {("t",), ("t2",), ("db", "t"), ("my t",)}


def is_acid(parts: tuple[str, ...]) -> bool:
    """The catalog of these tests: t, t2, db.t and `my t` are ACID tables."""
    return tuple(part.lower() for part in parts) in ACID


def setting_name(name: str) -> str | None:
    """The settings of these tests."""
    return name if name in ("hive.txn.timeout", "acidsql.values.max.rows") else None


@pytest.fixture(scope="session")
def read() -> Callable[..., Statement]:
    """``parse`` with the catalog and settings of these tests."""

    def parse_here(text: str, **keywords: Any) -> Statement:
        return parse(text, **{"is_ours": is_acid, "setting_name": setting_name, **keywords})

    return parse_here


@pytest.fixture(scope="session")
def catalyst(spark: Any) -> Callable[[str], str | None]:
    """Spark's plan of a text as Spark prints it; None if Spark does not parse the text."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def plan(text: str) -> str | None:
        try:
            return str(parser.parsePlan(text).toString())
        except Exception:
            return None

    return plan


@pytest.fixture(scope="session")
def keywords(spark: Any) -> list[str]:
    """All words that Spark calls keywords."""
    return sorted(row[0] for row in spark.sql("SELECT keyword FROM sql_keywords()").collect())
