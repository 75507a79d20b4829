"""The health of tables as a picture (SVG) for notebooks, as lines of text, and as cells."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from acidsql.statements.maintenance.health import Health
from acidsql.storage.files.sizes import size_text

CELLS = (
    "", "rows", "deleted", "live", "bases", "deltas", "delete deltas", "obsolete", "held by",
    "next", "why",
)  # fmt: skip
_MOST_BARS = 20  # bars
# Colours that keep their contrast on white and on black.
_PARTS = (
    ("base", "base_bytes", "#4c78c8"),
    ("delta", "delta_bytes", "#3a9a5b"),
    ("delete delta", "delete_delta_bytes", "#d0503c"),
    ("obsolete", "obsolete_bytes", "#8f8f8f"),
)
_WIDTH, _LINE, _NAMES, _BARS = 760, 22, 230, 400  # pixels
_LONGEST_NAME = 30  # letters


@dataclass(frozen=True, slots=True)
class Picture:
    """The rows of ``Session.health`` for a person.

    Attributes:
        health_rows: The rows.
    """

    health_rows: Sequence[Health]

    def __str__(self) -> str:
        return "\n".join(map(_health_line, self.health_rows)) or "no partitions"

    def _repr_html_(self) -> str:
        """Return SVG with a bar of bytes for each row, the largest first. After 20 bars a line
        counts the others. A bar's tip is the row's line of text."""
        ordered = sorted(self.health_rows, key=lambda health: -_total_bytes(health))
        shown, remaining = ordered[:_MOST_BARS], ordered[_MOST_BARS:]
        longest = max(map(_total_bytes, shown), default=0) or 1
        lines = [_bar_svg(health, number, longest) for number, health in enumerate(shown, 1)]
        if remaining:
            text = f"and {len(remaining):,} more: {size_text(sum(map(_total_bytes, remaining)))}"
            lines.append(_svg_text(0, _LINE * (len(shown) + 1), text))
        height = _LINE * (len(shown) + 1 + bool(remaining)) + 8
        title = html.escape(", ".join(_health_line(health) for health in shown) or "no partitions")
        return (
            f'<svg class="acidsql-health" role="img" aria-label="{title}" width="{_WIDTH}" '
            f'height="{height}" viewBox="0 0 {_WIDTH} {height}" '
            'style="max-width: 100%; font: 13px sans-serif" fill="currentColor" '
            f'xmlns="http://www.w3.org/2000/svg">{_legend_svg()}{"".join(lines)}</svg>'
        )


def health_cells(health: Any) -> tuple[str, ...]:
    """Return a row of ``Session.health`` as texts, under the heads ``CELLS``: the name, rows,
    deleted rows, live bytes, number and bytes of bases, of deltas and of delete deltas, obsolete
    bytes, what keeps them, the next compaction; last the problem or, if there is none, why the next
    compaction is due. "" stands for what is not known or not there; unknown bytes are shown as 0.
    """
    return (
        _row_name(health),
        "" if health.rows is None else f"{health.rows:,}",
        "" if health.deleted_rows is None else f"{health.deleted_rows:,}",
        size_text(health.live_bytes or 0),
        *(
            "" if number is None else f"{number:,} · {size_text(length)}"
            for number, length in (
                (health.bases, health.base_bytes),
                (health.deltas, health.delta_bytes),
                (health.delete_deltas, health.delete_delta_bytes),
            )
        ),
        size_text(health.obsolete_bytes or 0),
        _keeper_of_obsolete_text(health),
        health.next or "",
        health.problem or health.why or "",
    )


def _row_name(health: Any) -> str:
    """The partition, or the table of a row that is not about one partition."""
    return str(health.partition or health.table)


def _health_line(health: Health) -> str:
    """Return a row as a line of text, ``p=1: 1,204 rows, 0 deleted, 3.2 MB in 3 files · …``, with
    the problem in the place of rows that are not known. Behind the dots follow, each only if there
    is such a thing: the deltas and their part of the bytes, the obsolete bytes and what keeps them,
    the next compaction and why; ``next: nothing`` and why, if none is due."""
    if health.rows is None or health.deleted_rows is None:
        facts = [f"{_row_name(health)}: {health.problem or 'its rows are not known'}"]
    else:
        rows = f"{_count_text(health.rows, 'row')}, {health.deleted_rows:,} deleted"
        files = f"{size_text(health.live_bytes or 0)} in {_count_text(health.files or 0, 'file')}"
        facts = [f"{_row_name(health)}: {rows}, {files}"]
    if (
        number := (health.deltas or 0) + (health.delete_deltas or 0)
    ) and health.delta_share is not None:
        facts.append(f"{_count_text(number, 'delta')}, {health.delta_share:.0%} of the bytes")
    if health.obsolete_bytes:
        keeper = _keeper_of_obsolete_text(health)
        facts.append(f"{size_text(health.obsolete_bytes)} obsolete{keeper and ': '}{keeper}")
    if health.why is not None:
        facts.append(f"next: {health.next or 'nothing'}: {health.why}")
    return " · ".join(facts)


def _count_text(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``1,204 rows``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _keeper_of_obsolete_text(health: Any) -> str:
    """Return what keeps the obsolete files from deletion and, if that is known, since when: ``…,
    since 2024-05-01 12:00 UTC``; "" if nothing does."""
    since = ""
    if health.held_since is not None:
        since = f", since {health.held_since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{health.held_by}{since}" if health.held_by else ""


def _total_bytes(health: Health) -> int:
    """The live and the obsolete bytes together."""
    return (health.live_bytes or 0) + (health.obsolete_bytes or 0)


def _legend_svg() -> str:
    """Return the legend as SVG elements without an ``<svg>`` around them: for each part of
    ``_PARTS`` a square in its colour and then its name, all in one row from the left."""
    parts, x = [], 0
    for name, _, colour in _PARTS:
        parts.append(f'<rect x="{x}" y="4" width="12" height="12" fill="{colour}"/>')
        parts.append(_svg_text(x + 17, 0, name))
        x += 40 + 8 * len(name)
    return "".join(parts)


def _bar_svg(health: Health, line_number: int, most_bytes: int) -> str:
    """Return SVG of one line: a name, cut to 30 letters, a bar of four colours, and its bytes, live
    and obsolete; the whole line of text comes up as a tip. ``most_bytes``: the bytes of the longest
    bar, which is 400 pixels long."""
    y, x = _LINE * line_number, float(_NAMES)
    name = (
        _row_name(health)
        if len(_row_name(health)) <= _LONGEST_NAME
        else f"{_row_name(health)[: _LONGEST_NAME - 1]}…"
    )
    parts = [f"<g><title>{html.escape(_health_line(health))}</title>", _svg_text(0, y, name)]
    for _, field, colour in _PARTS:
        width = (getattr(health, field) or 0) / most_bytes * _BARS
        if width:
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="14" fill="{colour}"/>'
            )
        x += width
    return "".join([*parts, _svg_text(x + 6, y, size_text(_total_bytes(health))), "</g>"])


def _svg_text(x: float, y: int, text: str) -> str:
    """Return SVG of a text, escaped, in the line that begins at the height ``y``."""
    return f'<text x="{x:.0f}" y="{y + 15}">{html.escape(text)}</text>'
