"""What a person sees of acidsql in a notebook: in a real browser, with the style of JupyterLab."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import browser
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

pytest.importorskip("nbconvert")

import nbformat
from nbconvert import HTMLExporter

_FROM_ELSEWHERE = re.compile(r'<script[^>]* src="http.*?</script>', re.S)
# Each result with the text that a person sees, and the alignment of each cell. ``ends``: where the
# area of the result ends that the browser shows without scrolling.
LAYOUT = """{
    width: document.documentElement.clientWidth,
    page: document.documentElement.scrollWidth,
    shown: [...document.querySelectorAll("[class^=acidsql-]")].map(one => ({
        kind: one.className,
        text: one.innerText ?? one.textContent,
        ends: one.closest(".jp-OutputArea-output").getBoundingClientRect().right,
        align: getComputedStyle(one).textAlign,
        columns: [...one.querySelectorAll("th")].map((cell, at) => [
            cell.innerText, getComputedStyle(cell).textAlign,
            ...new Set([...one.querySelectorAll("tbody tr")].map(
                row => getComputedStyle(row.cells[at]).textAlign)),
        ]),
    })),
}"""
# The texts in red boxes: Jupyter shows so what a cell writes to standard error.
RED_BOXES = """[...document.querySelectorAll('[data-mime-type$="jupyter.stderr"]')]
    .filter(box => getComputedStyle(box).backgroundColor != "rgba(0, 0, 0, 0)")
    .map(box => box.innerText)"""
WIDE = ", ".join(f"'value {number}' AS column_{number}" for number in range(40))
CELLS = (
    "%acidsql EXPLAIN SELECT * FROM seen WHERE name = '<b>bold</b>'",
    "%acidsql SHOW CREATE TABLE seen",
    f"%acidsql SELECT {WIDE}",
    "%acidsql SHOW TRANSACTIONS",
    "%acidsql SELECT * FROM seen ORDER BY id",
    "%acidsql --health seen",
)


# A person's first hour. The first magic opens the session, and so starts Spark.
FIRST_HOUR = (
    "%load_ext acidsql",
    "%acidsql CREATE TABLE planes (tailnum STRING NOT NULL, seats INT, CHECK (seats < 900))",
    "%%acidsql\nINSERT INTO planes VALUES ('N1', 180), ('N2', NULL);\nSELECT * FROM planes",
    "%acidsql INSERT INTO planes SELECT concat('N', id + 3), 150 FROM range(40)",
    "least = 160",
    "%acidsql SELECT count(*) AS n FROM planes WHERE seats > :least",
    "%acidsql UPDATE planes SET seats = seats + 1 WHERE seats IS NOT NULL RETURNING *",
    "%acidsql --preview DELETE FROM planes WHERE seats IS NULL",
    "%acidsql DELETE FROM planes WHERE seats IS NULL",
    "%acidsql big << SELECT * FROM planes WHERE seats > 150",
    "big.count()",
    "%acidsql --format pandas SELECT seats, count(*) AS n FROM planes GROUP BY seats",
    "%acidsql EXPLAIN UPDATE planes SET seats = 0",
    "%acidsql SHOW CREATE TABLE planes",
    "from acidsql.api.session import newest_session\nacid = newest_session()\nacid",
    "acid.sql('SHOW CREATE TABLE planes')",
    "acid.sql('DROP TABLE IF EXISTS nothing_here')",
    "acid.table('planes').toPandas().head(3)",
    "%acidsql ALTER TABLE planes COMPACT 'major' AND WAIT",
    "%acidsql DESCRIBE HISTORY planes",
    "%acidsql --health planes",
    "%acidsql SHOW COMPACTIONS",
)
BROKEN = "%acidsql INSERT INTO planes SELECT 'N0', 899 + id FROM range(9)"


def as_page(ran: Sequence[nbformat.NotebookNode]) -> str:
    """Cells with their results, as Jupyter exports a notebook."""
    exporter = HTMLExporter(template_name="lab")
    page, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=ran))
    return _FROM_ELSEWHERE.sub("", page)


def page_of(cells: Sequence[str]) -> str:
    """Run cells, and show them with their results as Jupyter exports a notebook."""
    shell, ran = InteractiveShell.instance(), []
    shell.run_line_magic("load_ext", "acidsql")
    for source in cells:
        with capture_output() as said:
            result = shell.run_cell(source)
        shown = [one.data for one in said.outputs]
        if result.result is not None:
            shown.append(shell.display_formatter.format(result.result)[0])
        outputs = [nbformat.v4.new_output("display_data", data=one) for one in shown]
        ran.append(nbformat.v4.new_code_cell(source, outputs=outputs))
    return as_page(ran)


def looked_at(cells: Sequence[str], directory: Path, width: int = 900) -> list[dict[str, Any]]:
    """The results of cells, in a page that nothing makes wider than its window."""
    if reason := browser.missing():
        pytest.skip(reason)
    found = browser.ask(page_of(cells), LAYOUT, directory, width=width)
    assert found["page"] <= found["width"], "the page is wider than the window"
    assert all(one["ends"] <= found["width"] for one in found["shown"])
    return found["shown"]


def test_results_are_readable_in_a_browser(acid, tmp_path):
    acid.sql("CREATE TABLE seen (id INT, name STRING)")
    acid.sql("INSERT INTO seen VALUES (1, '<b>bold</b>'), (22, NULL)")
    plan, create, wide, transactions, rows, health = looked_at(CELLS, tmp_path, width=700)
    for text in (plan, create):
        assert (text["kind"], text["align"]) == ("acidsql-text", "left")
        assert "\n" in text["text"]
    assert "<b>bold</b>" in plan["text"] and "`name` STRING" in create["text"]
    assert len(wide["columns"]) == 40
    assert {tuple(one[1:]) for one in wide["columns"]} == {("left", "left")}
    started = transactions["text"].splitlines()
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", transactions["text"]), started
    assert rows["columns"] == [["id", "right", "right"], ["name", "left", "left"]]
    assert rows["text"].split() == ["id", "name", "1", "<b>bold</b>", "22", "NULL"]
    assert "default.seen" in health["text"] and "delete delta" in health["text"]


@pytest.mark.slow
@pytest.mark.classic
def test_a_first_hour_has_no_red_box_but_for_an_error_of_one_line(java_home, tmp_path):
    if reason := browser.missing():
        pytest.skip(reason)
    sources, cells = [*FIRST_HOUR, BROKEN], tmp_path / "cells.json"
    cells.write_text(json.dumps(sources))
    program = Path(__file__).parent / "notebook_cells.py"
    subprocess.run(
        [sys.executable, str(program), str(cells), "outputs.json"], cwd=tmp_path, check=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable}, timeout=400,
    )  # fmt: skip
    shown = json.loads((tmp_path / "outputs.json").read_text())
    ran = [
        nbformat.v4.new_code_cell(source, outputs=[nbformat.from_dict(one) for one in outputs])
        for source, outputs in zip(sources, shown, strict=True)
    ]
    (text,) = browser.ask(as_page(ran), RED_BOXES, tmp_path)
    assert text.startswith("UsageError: [CHECK_CONSTRAINT_VIOLATION]")
    assert len(text.strip().splitlines()) == 1
    assert all(shown[at] for at in range(1, 4))  # the cells show something
