"""Classes of the JVM."""

from __future__ import annotations

from typing import Any


def java_class(jvm: Any, name: str) -> Any:
    """A class, by its whole name.

    For ``jvm.org.apache…``, py4j asks for each package in a message of its own, and Java looks into
    all jars for a class of the package's name. That takes a hundred times as long.
    """
    return getattr(jvm, name)
