"""The cases, by topic: each module has a list ``CASES``."""

from __future__ import annotations

import importlib
import pkgutil

from suite.case import Case


def topics() -> list[str]:
    """The names of all topics."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def cases_of(topic: str) -> list[Case]:
    """The cases of a topic."""
    cases: list[Case] = importlib.import_module(f"suite.topics.{topic}").CASES
    return cases
