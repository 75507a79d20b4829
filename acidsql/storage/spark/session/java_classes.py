"""Classes of the JVM, and arrays of texts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any


def java_class(jvm: Any, name: str) -> Any:
    """Return a class of the JVM, by its whole name.

    For ``jvm.org.apache…``, py4j asks for each package in a message of its own, and Java looks into
    all jars for a class of the package's name. That takes a hundred times as long.
    """
    return getattr(jvm, name)


def tree_patterns(jvm: Any) -> Any:
    """Return Spark's Java class TreePattern: its values are the kinds of a plan's expressions."""
    return java_class(jvm, "org.apache.spark.sql.catalyst.trees.TreePattern")


def java_strings(jvm: Any, texts: Iterable[str]) -> Any:
    """Return these texts as Java's array, made in one message. No text may contain a NUL."""
    return _nul(jvm).split("\0".join(texts))


@lru_cache(maxsize=1)
def _nul(jvm: Any) -> Any:
    """Return Java's pattern of a NUL. It is kept: each statement needs it."""
    return java_class(jvm, "java.util.regex.Pattern").compile("\0")
