"""The recorded answers: a file for each topic, a line for each case."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parent / "recorded"


@functools.cache
def load(topic: str) -> dict[str, dict[str, Any]]:
    """The answers of a topic, by the names of its cases."""
    place = PLACE / f"{topic}.json"
    return json.loads(place.read_text()) if place.exists() else {}


def save(topic: str, answers: dict[str, dict[str, Any]]) -> None:
    """Write the answers of a topic."""
    lines = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}: "
        f"{json.dumps(answer, ensure_ascii=False, separators=(',', ':'))}"
        for name, answer in answers.items()
    )
    PLACE.mkdir(exist_ok=True)
    (PLACE / f"{topic}.json").write_text(f"{{\n{lines}\n}}\n")
