"""The health of tables as a picture (SVG) for notebooks, as lines of text, and as cells."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from acidsql.statements.health import Health
from acidsql.storage.files.sizes import size

CELLS = (
    "", "rows", "deleted", "live", "bases", "deltas", "delete deltas", "obsolete", "held by",
    "next", "why",
)  # fmt: skip
_MOST = 20  # bars
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
        found: The rows.
    """

    found: Sequence[Health]

    def __str__(self) -> str:
        return "\n".join(map(_line, self.found)) or "no partitions"

    def _repr_html_(self) -> str:
        """Bars of bytes, the largest first, and below them what is to be said of each."""
        found = sorted(self.found, key=lambda one: -_bytes(one))
        shown, left = found[:_MOST], found[_MOST:]
        longest = max(map(_bytes, shown), default=0) or 1
        lines = [_bar(one, number, longest) for number, one in enumerate(shown, 1)]
        if left:
            text = f"and {len(left):,} more: {size(sum(map(_bytes, left)))}"
            lines.append(_text(0, _LINE * (len(shown) + 1), text))
        height = _LINE * (len(shown) + 1 + bool(left)) + 8
        title = html.escape(", ".join(_line(one) for one in shown) or "no partitions")
        return (
            f'<svg class="acidsql-health" role="img" aria-label="{title}" width="{_WIDTH}" '
            f'height="{height}" viewBox="0 0 {_WIDTH} {height}" '
            'style="max-width: 100%; font: 13px sans-serif" fill="currentColor" '
            f'xmlns="http://www.w3.org/2000/svg">{_legend()}{"".join(lines)}</svg>'
        )


def cells(one: Any) -> tuple[str, ...]:
    """A row of the DataFrame as texts, under the heads ``CELLS``."""
    return (
        _place(one),
        "" if one.rows is None else f"{one.rows:,}",
        "" if one.deleted_rows is None else f"{one.deleted_rows:,}",
        size(one.live_bytes or 0),
        *(
            "" if number is None else f"{number:,} · {size(length)}"
            for number, length in (
                (one.bases, one.base_bytes),
                (one.deltas, one.delta_bytes),
                (one.delete_deltas, one.delete_delta_bytes),
            )
        ),
        size(one.obsolete_bytes or 0),
        _holder(one),
        one.next or "",
        one.problem or one.why or "",
    )


def _place(one: Any) -> str:
    """The partition, or the table of a row that is not about one partition."""
    return str(one.partition or one.table)


def _line(one: Health) -> str:
    """``p=1: 1,204 rows, 3.2 MB in 3 files · 12 deltas (34%) · …``"""
    if one.rows is None or one.deleted_rows is None:
        facts = [f"{_place(one)}: {one.problem or 'its rows are not known'}"]
    else:
        rows = f"{_number(one.rows, 'row')}, {one.deleted_rows:,} deleted"
        files = f"{size(one.live_bytes or 0)} in {_number(one.files or 0, 'file')}"
        facts = [f"{_place(one)}: {rows}, {files}"]
    if (number := (one.deltas or 0) + (one.delete_deltas or 0)) and one.delta_share is not None:
        facts.append(f"{_number(number, 'delta')}, {one.delta_share:.0%} of the bytes")
    if one.obsolete_bytes:
        holder = _holder(one)
        facts.append(f"{size(one.obsolete_bytes)} obsolete{holder and ': '}{holder}")
    if one.why is not None:
        facts.append(f"next: {one.next or 'nothing'}: {one.why}")
    return " · ".join(facts)


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _holder(one: Any) -> str:
    since = ""
    if one.held_since is not None:
        since = f", since {one.held_since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{one.held_by}{since}" if one.held_by else ""


def _bytes(one: Health) -> int:
    return (one.live_bytes or 0) + (one.obsolete_bytes or 0)


def _legend() -> str:
    found, x = [], 0
    for name, _, colour in _PARTS:
        found.append(f'<rect x="{x}" y="4" width="12" height="12" fill="{colour}"/>')
        found.append(_text(x + 17, 0, name))
        x += 40 + 8 * len(name)
    return "".join(found)


def _bar(one: Health, number: int, longest: int) -> str:
    """A name, a bar of four colours, and its bytes; the whole line of text comes up as a tip."""
    y, x = _LINE * number, float(_NAMES)
    name = (
        _place(one) if len(_place(one)) <= _LONGEST_NAME else f"{_place(one)[: _LONGEST_NAME - 1]}…"
    )
    found = [f"<g><title>{html.escape(_line(one))}</title>", _text(0, y, name)]
    for _, field, colour in _PARTS:
        width = (getattr(one, field) or 0) / longest * _BARS
        if width:
            found.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="14" fill="{colour}"/>'
            )
        x += width
    return "".join([*found, _text(x + 6, y, size(_bytes(one))), "</g>"])


def _text(x: float, y: int, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y + 15}">{html.escape(text)}</text>'
