"""Draws all pictures from ``facts.json``; with ``--record``, records the facts before."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import diagrams
from notebook import draw_notebook
from terminal import draw_terminal

FACTS = Path(__file__).parent / "facts.json"
PICTURES = Path(__file__).resolve().parents[2] / "pictures"
DRAWERS: Mapping[str, Callable[[Any], str]] = {
    "update": diagrams.draw_update,
    "snapshot": diagrams.draw_snapshots,
    "compaction": diagrams.draw_compaction,
    "phases": diagrams.draw_phases,
    "lag": diagrams.draw_lag,
    "health": diagrams.draw_health,
    "notebook": lambda facts: draw_notebook(facts["cells"], "Cells of a notebook with acidsql"),
    "shell": lambda facts: draw_terminal(facts["lines"], "The shell of acidsql", "acidsql"),
    "top": lambda facts: draw_terminal(facts["lines"], "acidsql top", "acidsql top"),
}


def drawn_pictures(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the SVG of each picture, by its name."""
    return {name: draw(facts[name]) for name, draw in DRAWERS.items() if name in facts}


def _recorded_facts(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Run what has to be run, and yield the name and the facts of each of these pictures."""
    import record

    with tempfile.TemporaryDirectory(prefix="acidsql-pictures-") as place:
        if "top" in names:
            yield "top", record.record_top(Path(place), wait_s=12)
        if "shell" in names:
            yield "shell", record.record_shell(Path(place) / "shell")
        with_spark = [name for name in names if name not in ("top", "shell")]
        spark = _spark_session(place) if with_spark else None
        for name in with_spark:
            yield name, record.record(spark, name)
        if spark is not None:
            spark.stop()


def _spark_session(place: str) -> Any:
    """A session of Spark whose own tables are below a directory."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", f"{place}/spark")
        .getOrCreate()
    )


def main() -> None:
    """Record what was asked for, then draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", nargs="*", choices=[*DRAWERS], metavar="PICTURE",
                        help="record the facts anew, of these pictures or of all")  # fmt: skip
    options = parser.parse_args()
    facts = json.loads(FACTS.read_text("utf-8")) if FACTS.exists() else {}
    if options.record is not None:
        for name, recorded in _recorded_facts(options.record or [*DRAWERS]):
            facts[name] = recorded
            text = json.dumps(facts, indent=1, ensure_ascii=False, sort_keys=True)
            FACTS.write_text(f"{text}\n", encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, svg in drawn_pictures(facts).items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main()
