"""Cells of a notebook: run as Jupyter runs them, and drawn with what they show."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from svg import LETTER, LINE, Canvas, folded

_LEFT = 76  # pixels in front of a cell, for In [1]:


def run_cells(cells: Sequence[str]) -> list[dict[str, Any]]:
    """Run cells in IPython, and return each with what it has shown: its ``source``, and
    ``outputs`` as ``shown_parts`` returns them. A cell that fails raises AssertionError."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "acidsql")
    ran = []
    for source in cells:
        with capture_output() as captured:
            result = shell.run_cell(source)
        assert result.success, captured.stdout + captured.stderr
        shown = [output.data for output in captured.outputs]
        if result.result is not None:
            shown.append(shell.display_formatter.format(result.result)[0])
        outputs = [part for data in shown for part in shown_parts(data["text/html"])]
        ran.append({"source": source, "outputs": outputs})
    return ran


def shown_parts(page: str) -> list[dict[str, Any]]:
    """Return what HTML of acidsql shows: receipts and small texts (``text``), tables (``head`` and
    ``rows``; each cell is a list of texts with a mark: ``del``, ``b``, ``i`` or "")."""
    reader = _Reader()
    reader.feed(page)
    return reader.parts


class _Reader(HTMLParser):
    """Collects receipts, tables and small texts."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[dict[str, Any]] = []
        self._cell: list[list[str]] | None = None
        self._mark, self._is_text = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        match tag:
            case "table":
                self.parts.append({"kind": "table", "head": [], "rows": []})
            case "tr":
                self.parts[-1]["rows"].append([])
            case "th" | "td":
                self._cell = []
                self.parts[-1]["rows"][-1].append(self._cell)
            case "del" | "b" | "i":
                self._mark = tag
            case "code" | "small":
                self.parts.append({"kind": tag, "text": ""})
                self._is_text = True

    def handle_endtag(self, tag: str) -> None:
        match tag:
            case "th" | "td":
                self._cell = None
            case "thead":
                self.parts[-1]["head"] = self.parts[-1]["rows"].pop()
            case "del" | "b" | "i":
                self._mark = ""
            case "code" | "small":
                self._is_text = False

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append([data, self._mark])
        elif self._is_text:
            self.parts[-1]["text"] += data


def draw_notebook(cells: Sequence[dict[str, Any]], title: str) -> str:
    """Return the picture of cells with what they have shown."""
    canvas, y = Canvas(), 16.0
    for number, cell in enumerate(cells, 1):
        lines = cell["source"].splitlines()
        canvas.text(_LEFT - 10, y + 18, f"In [{number}]:", "mono base end")
        canvas.box(_LEFT, y, canvas.width - _LEFT - 16, LINE * len(lines) + 10, "rule")
        for line in lines:
            y += LINE
            canvas.text(_LEFT + 10, y - 2, line, "mono code" if line[0] == "%" else "mono ink")
        y += 20
        for output in cell["outputs"]:
            y = _draw_output(canvas, y, output)
        y += 12
    return canvas.svg(title)


def _draw_output(canvas: Canvas, y: float, output: dict[str, Any]) -> float:
    """Draw a part of a cell's output below ``y``, and return where it ends."""
    if output["kind"] != "table":
        for line in folded(output["text"], canvas.width - _LEFT - 26):
            y += LINE
            canvas.text(
                _LEFT + 10,
                y - 2,
                line,
                "mono " + ("dim" if output["kind"] == "small" else "ink"),
            )
        return y + 4
    table = [output["head"], *output["rows"]]
    widths = [
        max(sum(len(text) for text, _ in row[at]) + max(0, len(row[at]) - 1) for row in table)
        for at in range(len(output["head"]))
    ]
    for number, row in enumerate(table):
        y += LINE
        x = float(_LEFT + 10)
        for cell, width in zip(row, widths, strict=True):
            _draw_cell(canvas, x, y - 2, cell, is_head=number == 0)
            x += (width + 3) * LETTER
        if number == 0:
            canvas.line(_LEFT + 10, y + 4, x, y + 4)
            y += 5
    return y + 4


def _draw_cell(canvas: Canvas, x: float, y: float, cell: list[list[str]], *, is_head: bool) -> None:
    """Draw the pieces of a cell: heads and new values bold, old values struck out."""
    kinds = {"del": "delete gone", "b": "delta title", "i": "dim"}
    for text, mark in cell:
        if text.strip():
            canvas.text(
                x,
                y,
                text.strip(),
                f"mono {kinds.get(mark, 'title ink' if is_head else 'ink')}",
            )
            x += (len(text.strip()) + 1) * LETTER
