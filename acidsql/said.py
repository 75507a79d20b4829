"""What the user says: a statement's text, its arguments, and how the session takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from acidsql.plan.query import argument_name

Args = Mapping[str, Any] | Sequence[Any] | None


@dataclass(frozen=True, slots=True)
class Said:
    """A statement's text, and what was said with it.

    Attributes:
        text: The text, variables substituted.
        args: Arguments by name; those of ``?`` under the names that composed text has for them.
        double_quoted: ``"…"`` is a name in this session.
    """

    text: str
    args: dict[str, Any] | None
    double_quoted: bool


def by_name(args: Args) -> dict[str, Any] | None:
    """Arguments by name; those of ``?`` under the names that composed text has for them."""
    if not args:
        return None
    if isinstance(args, Mapping):
        return dict(args)
    return {argument_name(number): value for number, value in enumerate(args)}


def has_double_quoted_names(spark: SparkSession, text: str) -> bool:
    """Whether ``"…"`` is a name in this session; there are none in a text without quotes."""
    names = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.ansi.enabled")
    return '"' in text and all(
        str(spark.conf.get(name, "false")).lower() == "true" for name in names
    )


def is_utc(spark: SparkSession) -> bool:
    """Whether the session's clock is UTC by a name that leaves no doubt."""
    return spark.conf.get("spark.sql.session.timeZone") in ("UTC", "Etc/UTC", "GMT")
