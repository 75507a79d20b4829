"""A small canvas for SVG that is readable on light and on dark pages."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence

WIDTH = 860  # pixels
LINE = 20  # pixels from one line of text to the next
LETTER = 7.25  # pixels of a letter in the fixed-width font, 12 pixels high
# The colours of each class: on a light page, on a dark page.
COLOURS = {
    "page": ("#ffffff", "#16181d"),
    "panel": ("#f4f6f8", "#22262e"),
    "ink": ("#1f2328", "#e6e6e6"),
    "dim": ("#59636e", "#9da5b0"),
    "rule": ("#c9d1d9", "#4a515c"),
    "base": ("#3f68b3", "#7ea6ee"),
    "delta": ("#257a45", "#5cc482"),
    "delete": ("#b03a28", "#f08a78"),
    "open": ("#8a5a00", "#e3b341"),
    "code": ("#5a3fa8", "#b8a4f5"),
}
_FONTS = (
    "text { font: 13px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; }\n"
    "text.mono { font: 12px ui-monospace, 'SF Mono', Consolas, 'DejaVu Sans Mono', monospace;"
    " white-space: pre; }\n"
    "text.title, tspan.title { font-weight: 600; }\n"
    "text.end { text-anchor: end; }\n"
    "text.middle { text-anchor: middle; }\n"
    "text.gone { text-decoration: line-through; }\n"
)


class Canvas:
    """Takes shapes and texts, and gives a picture.

    Attributes:
        bottom: The lowest point that is drawn on so far.
    """

    def __init__(self, width: int = WIDTH) -> None:
        self.width, self.bottom = width, 0.0
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, kinds: str = "ink") -> None:
        """Write a line of text, whose baseline is at ``y``. ``kinds``: a colour, and perhaps
        ``mono``, ``title``, ``end``, ``middle`` or ``gone``."""
        self.bottom = max(self.bottom, y + 5)
        self._parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" class="{kinds}">{html.escape(text, quote=False)}</text>'
        )

    def spans(self, x: float, y: float, spans: Sequence[tuple[str, str]]) -> None:
        """Write a line of pieces in the fixed-width font, each with its own colour."""
        self.bottom = max(self.bottom, y + 5)
        pieces = "".join(
            f'<tspan class="{kinds}">{html.escape(text, quote=False)}</tspan>'
            for text, kinds in spans
        )
        self._parts.append(f'<text x="{x:.0f}" y="{y:.0f}" class="mono ink">{pieces}</text>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        edge: str = "rule",
        fill: str = "",
    ) -> None:
        """Draw a box with round corners. ``edge``: the colour of its border; "" for none.
        ``fill``: the colour inside, ``panel`` if it is empty."""
        self.bottom = max(self.bottom, y + height)
        border = f" line-{edge}" if edge else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
            f'class="{fill or "panel"}{border}"/>'
        )

    def line(
        self,
        x: float,
        y: float,
        x2: float,
        y2: float,
        colour: str = "rule",
        *,
        arrow: bool = False,
    ) -> None:
        """Draw a line, with an arrow at its second end if ``arrow``."""
        end = ' marker-end="url(#arrow)"' if arrow else ""
        self._parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'class="line-{colour}"{end}/>'
        )

    def circle(self, x: float, y: float, radius: float, colour: str, tip: str = "") -> None:
        """Draw a dot, with a text that comes up as a tip."""
        title = f"<title>{html.escape(tip)}</title>" if tip else ""
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{colour}">{title}</circle>'
        )

    def nested(self, x: float, y: float, svg: str, height: float) -> None:
        """Put a whole SVG picture into this one."""
        self.bottom = max(self.bottom, y + height)
        placed = svg.replace("<svg ", f'<svg x="{x:.0f}" y="{y:.0f}" ', 1)
        self._parts.append(f'<g class="ink">{placed}</g>')

    def svg(self, title: str) -> str:
        """Return the picture. ``title``: what a screen reader says."""
        height = self.bottom + 16
        styles = "".join(
            f".{name} {{ fill: {light}; color: {light}; }} .line-{name} {{ stroke: {light}; }}\n"
            for name, (light, _) in COLOURS.items()
        )
        dark = "".join(
            f".{name} {{ fill: {dark}; color: {dark}; }} .line-{name} {{ stroke: {dark}; }}\n"
            for name, (_, dark) in COLOURS.items()
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{self.width}" '
            f'height="{height:.0f}" viewBox="0 0 {self.width} {height:.0f}">\n'
            f"<title>{html.escape(title)}</title>\n"
            f"<style>\n{_FONTS}{styles}"
            f"@media (prefers-color-scheme: dark) {{\n{dark}}}\n</style>\n"
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" class="dim"/></marker>'
            "</defs>\n"
            f'<rect width="{self.width}" height="{height:.0f}" rx="8" class="page"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


def folded(text: str, width: float) -> list[str]:
    """The text in lines that are at most so many pixels wide in the fixed-width font, cut before a
    ``·`` or, without one, at a blank."""
    lines = [""]
    for number, fact in enumerate(text.split(" · ")):
        piece = fact if number == 0 else f" · {fact}"
        if (len(lines[-1]) + len(piece)) * LETTER <= width:
            lines[-1] += piece
        else:
            lines.append(f"    {piece.strip()}")
    wrapped = (textwrap.wrap(line, int(width / LETTER), subsequent_indent="    ",
                             drop_whitespace=False) for line in lines)  # fmt: skip
    return [line for group in wrapped for line in group]


def kind_colour(directory: str) -> str:
    """The colour of a directory's name: ``base``, ``delta`` or ``delete``."""
    if directory.startswith("base"):
        return "base"
    return "delete" if directory.startswith("delete") else "delta"
