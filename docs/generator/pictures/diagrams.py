"""Diagrams of directories and times, drawn from a table's real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svg import LINE, WIDTH, Canvas, folded, kind_colour

from acidsql.acid.state import Child, acid_state
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList

Facts = Mapping[str, Any]
ROW_ID = "(1, 0, 1) is a row id: the write id, the bucket id, and the number of the row there."


def draw_update(facts: Facts) -> str:
    """The directories of a table before an UPDATE and after it, with all events."""
    canvas = Canvas()
    middle = WIDTH / 2
    canvas.text(20, 30, facts["statement"], "mono code")
    canvas.text(20, 58, "before", "title ink")
    canvas.text(middle + 10, 58, "after", "title ink")
    olds = {directory["directory"] for directory in facts["before"]}
    _draw_directories(canvas, 20, 70, facts["before"], middle - 40, olds)
    _draw_directories(canvas, middle + 10, 70, facts["after"], middle - 30, olds)
    canvas.text(20, canvas.bottom + 26, ROW_ID, "dim")
    _draw_folded(canvas, 20, canvas.bottom + 22, f"acid.last: {facts['receipt']}")
    return canvas.svg("What an UPDATE does to the files of a table")


def _draw_folded(canvas: Canvas, x: float, y: float, text: str) -> None:
    """Write a dim text in the fixed-width font, in as many lines as it needs."""
    for number, line in enumerate(folded(text, WIDTH - 2 * x)):
        canvas.text(x, y + LINE * number, line, "mono dim")


def _draw_directories(
    canvas: Canvas,
    x: float,
    y: float,
    directories: Sequence[Facts],
    width: float,
    olds: set[str],
) -> None:
    """Draw a box for each directory, with its events. New ones have an edge in their colour."""
    for directory in directories:
        name = directory["directory"]
        is_new = name not in olds
        height = LINE * (len(directory["events"]) + 1) + 12
        canvas.box(x, y, width, height, kind_colour(name) if is_new else "rule")
        canvas.text(x + 10, y + 19, f"{name}/{directory['file']}", f"mono {kind_colour(name)}")
        if is_new:
            canvas.text(x + width - 10, y + 19, "new", f"title end {kind_colour(name)}")
        for number, event in enumerate(directory["events"], 1):
            canvas.text(x + 26, y + 19 + LINE * number, event, "mono ink")
        y += height + 10


def draw_snapshots(facts: Facts) -> str:
    """Which directories each snapshot reads, by the code that chooses them."""
    canvas = Canvas()
    snapshots = facts["snapshots"]
    lefts = [370 + 165 * number for number in range(len(snapshots))]
    canvas.text(20, 34, "directories on the disk", "title ink")
    for x, snapshot in zip(lefts, snapshots, strict=True):
        canvas.text(x, 34, snapshot["name"], "title ink")
        canvas.text(x, 54, snapshot["says"], "dim")
    children = [Child(directory["name"]) for directory in facts["directories"]]
    txns = ValidTxnList.parse(facts["txns"])
    chosen = []
    for snapshot in snapshots:
        state = acid_state(children, ValidWriteIdList.parse(snapshot["write_ids"]), txns,
                           history_is_kept=True)  # fmt: skip
        chosen.append({directory.name for directory in state.directories})
    y = 72.0
    for directory in facts["directories"]:
        name = directory["name"]
        canvas.box(12, y, WIDTH - 24, 44)
        canvas.text(24, y + 18, name, f"mono {kind_colour(name)}")
        canvas.text(24, y + 36, directory["made_by"], "dim")
        for x, names in zip(lefts, chosen, strict=True):
            if name in names:
                canvas.circle(x + 8, y + 18, 6, kind_colour(name))
                canvas.text(x + 22, y + 22, "reads", "ink")
            else:
                canvas.text(x + 22, y + 22, "ignores", "dim")
        y += 52
    canvas.text(24, y + 18, "rows", "title ink")
    for x, snapshot in zip(lefts, snapshots, strict=True):
        for number, row in enumerate(snapshot["rows"]):
            canvas.text(x, y + 18 + 18 * number, row, "mono ink")
    return canvas.svg("Which directories a snapshot reads, by its valid write ids")


def draw_compaction(facts: Facts) -> str:
    """The directories of a table in each step of a compaction."""
    canvas = Canvas()
    steps = facts["steps"]
    width = (WIDTH - 24 - 24 * (len(steps) - 1)) / len(steps)
    for number, step in enumerate(steps):
        x = 12 + (width + 24) * number
        canvas.text(x, 30, f"{number + 1}. {step['name']}", "title ink")
        canvas.text(x, 50, step["says"], "dim")
        canvas.text(x, 70, f"state: {step['state']}", "code")
        for place, directory in enumerate(step["directories"]):
            _draw_state(canvas, x, 84 + 52 * place, width, directory)
        if number + 1 < len(steps):
            canvas.line(x + width + 4, 107, x + width + 20, 107, "dim", arrow=True)
    y = canvas.bottom + 26
    canvas.text(
        12,
        y,
        "A new reader reads directories with a coloured edge. Its rows, always:",
        "dim",
    )
    canvas.text(12, y + LINE, facts["rows"], "mono ink")
    return canvas.svg("The life of a compaction")


def _draw_state(canvas: Canvas, x: float, y: float, width: float, directory: Facts) -> None:
    """Draw a box with a directory's name, number of events, and state."""
    name, is_read = directory["directory"], directory["state"] == "visible"
    colour = kind_colour(name)
    canvas.box(x, y, width, 46, colour if is_read else "rule")
    canvas.text(x + 8, y + 19, _without_zeros(name), f"mono {colour if is_read else 'dim'}")
    events = f"{directory['rows']} event{'s' * (directory['rows'] != 1)}"
    canvas.text(x + 8, y + 37, f"{events} · {directory['state']}", "dim")


def _without_zeros(name: str) -> str:
    """A directory's name without the zeros before its numbers: ``delta_1_1_0``."""
    kind, *numbers = name.replace("delete_delta", "delete-delta").split("_")
    return "_".join([kind.replace("-", "_"), *(number.lstrip("0") or "0" for number in numbers)])


_PHASES = {
    "say": ("parse, bind names,", "let Spark analyse: a wrong", "text costs nothing"),
    "hold": ("open a transaction, lock,", "take the snapshot", "(in the metastore)"),
    "do": ("run the query of events,", "write files that nobody", "sees yet"),
    "keep": (
        "publish the directories,",
        "COMMIT: all readers see",
        "the change at once",
    ),
}


def draw_phases(facts: Facts) -> str:
    """The four phases of a statement, with the seconds of a real one."""
    canvas = Canvas()
    canvas.text(16, 28, facts["statement"], "mono code")
    width = (WIDTH - 32 - 20 * 3) / 4
    colours = dict(zip(_PHASES, ("base", "open", "delta", "code"), strict=True))
    for number, (phase, texts) in enumerate(_PHASES.items()):
        x = 16 + (width + 20) * number
        canvas.box(x, 42, width, 98, colours[phase])
        canvas.text(x + 10, 62, phase, f"title {colours[phase]}")
        canvas.text(x + width - 10, 62, f"{facts['seconds'][phase]:.2f} s", "mono end ink")
        for line, text in enumerate(texts):
            canvas.text(x + 10, 86 + LINE * line, text, "dim")
        if number < 3:
            canvas.line(x + width + 3, 90, x + width + 17, 90, "dim", arrow=True)
    canvas.text(16, 168, "the same seconds as a line of time", "dim")
    x, total = 16.0, sum(facts["seconds"].values())
    for phase in _PHASES:
        part = (WIDTH - 32) * facts["seconds"][phase] / total
        canvas.box(x, 176, max(part - 2, 1), 18, "", colours[phase])
        x += part
    _draw_folded(canvas, 16, 220, f"acid.last: {facts['receipt']}")
    return canvas.svg("The four phases of a statement: say, hold, do, keep")


def draw_lag(facts: Facts) -> str:
    """How old the rows of each batch of a stream are at its COMMIT."""
    canvas = Canvas()
    batches, left, top, height = facts["batches"], 60.0, 56.0, 200.0
    width = WIDTH - left - 24
    last = max(batch["at"] for batch in batches)
    most = max(batch["oldest"] for batch in batches)
    step = next(size for size in (0.5, 1, 2, 5, 10, 20, 60) if most / size <= 6)
    canvas.text(16, 24, "age of a batch's rows at its COMMIT, in seconds", "title ink")
    canvas.text(
        16,
        42,
        f"{facts['rows']:,} rows of {facts['rate']} a second; {facts['trigger']}",
        "dim",
    )
    scale = height / (step * 6)
    for number in range(7):
        y = top + height - number * step * scale
        canvas.line(left, y, left + width, y)
        canvas.text(left - 8, y + 4, f"{number * step:g}", "dim end")
    for batch in batches:
        x = left + 8 + (width - 16) * batch["at"] / last
        newest, oldest = (top + height - batch[name] * scale for name in ("newest", "oldest"))
        tip = f"version {batch['version']}: {batch['count']} rows"
        canvas.line(x, newest, x, oldest, "delta")
        canvas.circle(x, newest, 3, "delta", tip)
        canvas.circle(x, oldest, 3, "base", tip)
    for at in facts["compactions"]:
        x = left + 8 + (width - 16) * min(at, last) / last
        canvas.line(x, top, x, top + height, "open")
    for second in range(0, int(last) + 1, 10):
        canvas.text(
            left + 8 + (width - 16) * second / last,
            top + height + 18,
            f"{second} s",
            "dim middle",
        )
    y = top + height + 42
    canvas.circle(left + 6, y - 4, 4, "base")
    canvas.text(left + 16, y, "oldest row of the batch", "ink")
    canvas.circle(left + 206, y - 4, 4, "delta")
    canvas.text(left + 216, y, "newest row of the batch", "ink")
    canvas.line(left + 406, y - 12, left + 406, y + 4, "open")
    canvas.text(left + 416, y, "a compaction of the table ends", "ink")
    return canvas.svg("The lag of a stream into a table over time")


def draw_health(facts: Facts) -> str:
    """The picture that a notebook shows of a table's health, with its lines of text."""
    canvas = Canvas()
    canvas.text(16, 28, facts["call"], "mono code")
    height = float(facts["svg"].split('height="', 1)[1].split('"', 1)[0])
    canvas.nested(16, 40, facts["svg"], height)
    y = 40 + height + 20
    canvas.text(16, y, "The tip of each bar says:", "dim")
    for line in facts["lines"]:
        for text in folded(line, WIDTH - 32):
            y += LINE
            canvas.text(16, y, text, "mono ink")
    return canvas.svg("The health of a table as a notebook shows it")
