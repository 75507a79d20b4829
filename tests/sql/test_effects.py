"""The effects of Spark's statements, and their names in messages. Spark says which of them read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from effect_cases import KNOWN, UNKNOWN
from test_against_spark import QUERIES

from acidsql.sql.parsed.statements import Effect, SparkStatement, Statement

Read = Callable[..., Statement]


@pytest.mark.parametrize(("text", "effect", "name"), KNOWN + UNKNOWN)
def test_a_statement_is_known_by_its_first_words(
    text: str, effect: Effect, name: str, read: Read
) -> None:
    statement = read(text)
    assert isinstance(statement, SparkStatement)
    assert (statement.effect, statement.statement_name) == (effect, name)


@pytest.mark.parametrize("text", [*(text for text, _, _ in KNOWN), *QUERIES])
def test_what_only_reads_is_to_spark_a_query_or_a_question(
    text: str, spark: Any, read: Read
) -> None:
    statement = read(text)
    assert isinstance(statement, SparkStatement)
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    assert statement.effect is not Effect.READS or _only_reads(plan), plan.toString()


def _only_reads(plan: Any) -> bool:
    while plan.getClass().getSimpleName() == "UnresolvedWith":
        plan = plan.child()
    name, loader = plan.getClass().getSimpleName(), plan.getClass().getClassLoader()
    command = loader.loadClass("org.apache.spark.sql.catalyst.plans.logical.Command")
    if command.isInstance(plan):
        return bool(name.startswith(("Show", "Describe", "Explain", "List")))
    return "Insert" not in plan.toString()
