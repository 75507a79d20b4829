"""README and ``docs/`` as tests read them: pages, headings, links, and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code.

    Attributes:
        page: The file that it is in.
        line: The line of its fence.
        language: The word behind the fence.
        text: The code.
        reason: Why the tests do not run it: ``<!-- not run: reason -->`` in the line above it.
    """

    page: Path
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def pages() -> list[Path]:
    """README, and the pages of docs/ in the order in which README lists them."""
    listed = README.read_text().partition("## Documentation")[2]
    return [README, *(ROOT / name for name in re.findall(r"\]\((docs/[^)#]+)\)", listed))]


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(page, line, found["language"], found["text"], found["reason"])


def prose(page: Path) -> str:
    """The page without fenced and indented code."""
    return re.sub(r"^    .*$", "", _FENCE.sub("", page.read_text()), flags=re.MULTILINE)


def links(page: Path) -> list[str]:
    """The targets of all links but those into the web."""
    return [one for one in _LINK.findall(prose(page)) if "://" not in one]


def anchors(page: Path) -> set[str]:
    """What may stand behind ``#``: both GitHub and MkDocs make it of the headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page)
    }


def headings(page: Path) -> list[str]:
    """The words of all headings."""
    return re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
